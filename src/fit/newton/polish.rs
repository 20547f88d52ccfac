//! Dual points that keep up with the fit: the slopes after an epoch of dual coordinate descent or, where
//! steps are factorised, after a Newton step of their own.
//!
//! **Why the slopes are not enough.** At weights `w` with the gradient `g`, the slopes `a_i = -y_i f_i'(z_i)`
//! have `w(a) = w - g`, and the duality gap is `1/2 |g|^2` ([`super`]). The distance to the optimum is about
//! `1/2 g'H^-1 g`, `H = I + X'DX`: a part of the gradient along an eigenvector of eigenvalue `l` counts `l`
//! times as much in the gap as in the distance. Where costs are not small the gap is therefore hundreds to
//! thousands of times the distance, all of it the dual point's fault, and a fit goes on long after it is
//! done.
//!
//! **What removes it: an epoch.** The dual Hessian `XX' + D^-1` has the same large eigenvalues, and
//! Gauss-Seidel steps on it, which are the steps of dual coordinate descent, take away errors along large
//! eigenvalues first. One epoch from the slopes divides the gap by 5 to 100, and no data need be read to
//! begin it: `w(a)` is `-h`. Rows without curvature, on the flat side of the loss or at an end of their box,
//! are at rest and are not visited. Where there is a preconditioner, two products go before it, and the gap
//! falls by a further 2 to 13 times ([`super::approach`]).
//!
//! **What removes it: a step.** [`super::dual_step`].
//!
//! **Free intercept.** The epoch is one on the augmented Lagrangian, as in [`crate::fit::dual`]: a constant
//! column of height `sqrt(sigma)` keeps `sum_i y_i a_i` close to the 0 at which it begins, the intercept is
//! the multiplier. Without the penalty, w8a's gap gets worse instead of better. What excess there is at the
//! end is taken off by [`certificate::move_onto_constraint`].
//!
//! **Rounding.** What an epoch begins with is a sum of `n` terms, the way onto the constraint adds as many;
//! the updates of an epoch add [`certificate::drift`] (the dual value does not fall, and is positive where
//! this begins). For the logistic loss the way of a variable through its logit `t` and back costs up to
//! `|t| + 3` roundings, and `t` is -708 at the least (`OF_A_LOGIT`). The weights of a step are summed anew.
//!
//! **Order.** Random, or rows that are sorted undo each other's work (flights, sorted by date, squared hinge,
//! C = 1: the gap falls to a seventh in the order of the file, to a thirtieth in a random one), but random by
//! blocks of `BLOCK` rows, whose memory then comes in one go: there 0.08 s an epoch instead of 0.47 s, and 28
//! instead of 31 times less.
//!
//! Tried: the best multiple of the dual point, which gains less than 1e-5 of its value, a hundredth of the
//! gap; visits of all rows: no better, and on w8a (10,506 of 49,749 rows have slopes) worse, a gap of 1.8e-4
//! instead of 7.6e-5; logistic loss: leaving out rows with less than a tenth or three tenths of the largest
//! curvature, as good on flights, and four times the gap on covtype with a free intercept.

use super::Newton;
use super::approach::Approach;
use super::dual_step::{Affordable, linearise};
use super::row_state::{Passes, RowState};
use crate::fit::certificate;
use crate::fit::dual::active::{ActiveSet, random, shuffle};
use crate::fit::dual::{DualLoss, Method, Visit, epoch_in_order, penalty};
use crate::fit::monitor::Monitor;
use crate::fit::objective::Weighted;
use crate::fit::problem::{Evidence, Intercept, Problem};
use crate::fit::sweep::dot;
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::memory::CollectLarge;
use crate::{Result, memory};

/// Successive rows that are visited together.
const BLOCK: usize = 64;
/// More than the roundings of `cost * sigmoid(log(a / (cost - a)))`.
const OF_A_LOGIT: f64 = 1024.0;

/// A feasible dual point.
pub struct DualPoint {
    /// Dual variables.
    pub alpha: Vec<f64>,
    /// Dual value.
    pub value: f64,
    /// Rows that were visited for it.
    pub visited: usize,
    /// `sum_i y_i a_i x_i`, off by no more than `drift` beside the rounding of a sum.
    w: Vec<f64>,
    drift: f64,
    /// Additions behind each entry of that sum.
    additions: f64,
}

impl DualPoint {
    /// The slopes of the evaluated point of `newton`, for `C = 1`, after an epoch of descent.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn from_slopes<T: DualLoss>(
        problem: &Problem<'_>,
        loss: T,
        newton: &mut Newton<'_, RowState<'_, 1>, 1>,
        seed: u64,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        let start = approached(problem, loss, newton)?;
        Self::descend(problem, loss, newton, start, seed, monitor)
    }

    /// This point after another epoch at the same weights.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn further<T: DualLoss>(
        self,
        problem: &Problem<'_>,
        loss: T,
        newton: &Newton<'_, RowState<'_, 1>, 1>,
        seed: u64,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        let Self { alpha, mut w, drift, .. } = self;
        w.resize(newton.w.len(), 0.0); // on the constraint
        let found = Self::descend(problem, loss, newton, (alpha, w, 0), seed, monitor)?;
        let additions = found.additions + way_of_an_epoch(problem);
        Ok(Self { drift: found.drift + drift, additions, ..found })
    }

    /// An epoch from dual variables with these weights, found by reading so many rows.
    fn descend<T: DualLoss>(
        problem: &Problem<'_>,
        loss: T,
        newton: &Newton<'_, RowState<'_, 1>, 1>,
        (alpha, mut w, read): (Vec<f64>, Vec<f64>, usize),
        seed: u64,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        let Problem { y, cost, .. } = *problem;
        let total = cost.iter().sum();
        let is_free = problem.intercept == Intercept::Free;
        let (bias, offset) = newton.augment(&mut w, || penalty(&problem.design(0.0), total));
        let slopes = SlopeRows { y, cost, alpha: &alpha, design: problem.design(bias), epochs: 1, seed };
        let bends = |i: usize| newton.rows.curvature[i] != [0.0];
        let mut visit = Visit { w: &mut w, offset, stretch: 1.0 };
        let (mut alpha, visited) = slopes.descend(loss, bends, &mut visit, monitor)?;
        let mut multiplier = 0.0;
        if is_free {
            w.truncate(problem.design(0.0).n_cols());
            multiplier = offset / bias;
            certificate::move_onto_constraint(problem, &mut alpha, &mut w);
        }
        let terms = certificate::dual_terms(loss, cost, &alpha);
        let value = terms - 0.5 * dot(&w, &w);
        let drift = certificate::drift(visited as f64, total, multiplier);
        let additions = problem.y.len() as f64 + way_of_an_epoch(problem);
        Ok(Self { alpha, value, visited: visited + read, w, drift, additions })
    }

    /// The slopes after a Newton step in the dual, for `C = 1`, by what is `affordable`
    /// ([`super::dual_step`]); none without a factor. The weights of `newton` stay where they are.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn from_step<T: DualLoss>(
        problem: &Problem<'_>,
        loss: T,
        newton: &mut Newton<'_, RowState<'_, 1>, 1>,
        affordable: &Affordable,
    ) -> Result<Option<Self>> {
        let Problem { y, cost, .. } = *problem;
        let Some((mut alpha, mut visited)) = newton.dual_step(&Weighted { loss, y, cost }, affordable)?
        else {
            return Ok(None);
        };
        let is_free = problem.intercept == Intercept::Free;
        if is_free {
            certificate::scale_onto_constraint(problem, &mut alpha, |_, _| ());
        }
        let (mut w, read) = weights(newton, &alpha, y)?;
        w.truncate(w.len() - usize::from(is_free));
        visited += read;
        let terms = certificate::dual_terms(loss, cost, &alpha);
        let value = terms - 0.5 * dot(&w, &w);
        let additions = y.len() as f64 + way_of_an_epoch(problem);
        Ok(Some(Self { alpha, value, visited, w, drift: 0.0, additions }))
    }

    /// What is known of this point beside the weights of `newton`, whose decision values are fresh.
    pub fn evidence(&self, newton: &Newton<'_, RowState<'_, 1>, 1>, y: &[f64]) -> Evidence {
        let margins = newton.rows.margins(y);
        let distance = certificate::distance(&self.w, &newton.w.as_flattened()[..self.w.len()]);
        Evidence { margins, distance, drift: self.drift, additions: self.additions, alpha: None }
    }
}

/// Additions of the way onto the constraint, and more than the roundings on the way through a logit.
fn way_of_an_epoch(problem: &Problem<'_>) -> f64 {
    problem.y.len() as f64 + OF_A_LOGIT
}

/// Dual variables from which an epoch begins: the slopes of the evaluated point, linearised along a step
/// where there is a preconditioner ([`super::approach`]); their weights, and how many rows were read.
fn approached<T: DualLoss>(
    problem: &Problem<'_>,
    loss: T,
    newton: &mut Newton<'_, RowState<'_, 1>, 1>,
) -> Result<(Vec<f64>, Vec<f64>, usize)> {
    let Problem { y, cost, .. } = *problem;
    let mut alpha = newton.alpha(y);
    let Some(Approach { lengths: [first, second], read, .. }) = newton.approach()? else {
        return Ok((alpha, newton.slope_weights(), 0));
    };
    let rows = &newton.rows;
    let moved = |i: usize| first * rows.step_z[i][0] + second * rows.product_z[i][0];
    linearise(loss, (y, cost), &mut alpha, |i| rows.curvature[i][0], moved);
    let (w, more) = weights(newton, &alpha, y)?;
    Ok((alpha, w, read + more))
}

/// `sum_i y_i a_i x_i`, and how many rows were read.
fn weights(
    newton: &mut Newton<'_, RowState<'_, 1>, 1>,
    alpha: &[f64],
    y: &[f64],
) -> Result<(Vec<f64>, usize)> {
    let signed: Vec<f64> = alpha.iter().zip(y).map(|(a, y)| a * y).collect_large();
    let mut w = memory::zeros(newton.w.len());
    newton.rows.sweep.weighted_sum(&signed, &mut w);
    newton.monitor.poll()?;
    Ok((w, alpha.iter().filter(|a| **a != 0.0).count()))
}

/// The slopes of some rows.
pub struct SlopeRows<'p> {
    /// Labels in {-1, +1}.
    pub y: &'p [f64],
    /// Costs.
    pub cost: &'p [f64],
    /// Dual variables of the slopes.
    pub alpha: &'p [f64],
    /// The rows, with the columns of the weights.
    pub design: Design<'p>,
    /// Epochs over them,
    pub epochs: usize,
    /// and what their orders follow from.
    pub seed: u64,
}

impl SlopeRows<'_> {
    /// Dual variables after the epochs over the rows `i` with `bends(i)`, and how many were visited; `visit`
    /// has the weights of the slopes of all rows.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn descend<T: DualLoss>(
        &self,
        loss: T,
        bends: impl Fn(usize) -> bool,
        visit: &mut Visit<'_>,
        monitor: &dyn Monitor,
    ) -> Result<(Vec<f64>, usize)> {
        let Self { y, cost, alpha, design, epochs, seed } = *self;
        let mut method = loss.method(y, cost);
        method.start_at(alpha);
        let (bent, mut visited) = ((0..y.len() as u32).filter(|i| bends(*i as usize)).collect_large(), 0);
        for epoch in 0..epochs as u64 {
            *method.active() = ActiveSet::of(in_blocks(&bent, seed.wrapping_add(epoch)));
            visited += epoch_in_order(&mut method, &design, visit, monitor)?.visited;
        }
        Ok(((0..y.len()).map(|i| method.alpha(i)).collect_large(), visited))
    }
}

/// The dual value of a point that was found beside the slopes.
#[derive(Clone, Copy, Debug)]
pub struct DualFound {
    /// Dual value.
    pub value: f64,
    /// Rows that were visited for it.
    pub visited: usize,
}

/// The dual points of the rows, wherever those are: what [`super::single`] asks about them. The last one is
/// kept.
///
/// # Errors
/// Of all methods: [`crate::Error::Cancelled`], and those of the place where the rows are.
pub trait DualPoints<R> {
    /// The terms of the objective.
    type Terms;
    /// Those of this objective.
    fn terms(&self) -> &Self::Terms;
    /// Largest curvature of the loss.
    fn largest_curvature(&self) -> f64;
    /// Rows with curvature at the evaluated point.
    fn curved(&self, rows: &R) -> usize;
    /// [`DualPoint::from_slopes`].
    #[allow(clippy::missing_errors_doc)] // of the trait
    fn polish_slopes(&mut self, newton: &mut Newton<'_, R, 1>) -> Result<DualFound>;
    /// [`DualPoint::further`] for the last one.
    #[allow(clippy::missing_errors_doc)]
    fn polish_again(&mut self, newton: &mut Newton<'_, R, 1>) -> Result<DualFound>;
    /// [`DualPoint::from_step`].
    #[allow(clippy::missing_errors_doc)]
    fn polish_step(
        &mut self,
        newton: &mut Newton<'_, R, 1>,
        affordable: &Affordable,
    ) -> Result<Option<DualFound>>;
    /// The objective at decision values computed anew; one pass.
    #[allow(clippy::missing_errors_doc)]
    fn fresh_value(&mut self, newton: &mut Newton<'_, R, 1>) -> Result<f64>;
}

impl<R: Passes<1>> Newton<'_, R, 1> {
    /// The weights of the slopes, for `C = 1`.
    pub fn slope_weights(&self) -> Vec<f64> {
        self.h.as_flattened().iter().map(|h| -h).collect_large()
    }

    /// Height of the constant column and offset of an epoch from weights `w` of dual variables; with a free
    /// intercept the height is the root of `penalty`, by which the last weight then counts.
    pub fn augment(&self, w: &mut [f64], penalty: impl FnOnce() -> f64) -> (f64, f64) {
        if !self.is_free {
            return (self.bias, 0.0);
        }
        let (height, last) = (penalty().sqrt(), w.len() - 1);
        w[last] *= height / self.bias;
        (height, self.bias * self.w[last][0])
    }

    /// About the distance of the evaluated point to the optimum, `1/2 g'M^-1 g`, where a factor has been
    /// kept.
    pub(super) fn distance_estimate(&self) -> Option<f64> {
        let kept = self.preconditioner.as_ref().filter(|kept| kept.matrix.is_dense())?;
        let downhill = self.downhill(1.0);
        Some(0.5 * dot(&downhill, kept.matrix.solve(&downhill).as_flattened()))
    }
}

/// The rows in blocks of [`BLOCK`], the blocks in a random order.
fn in_blocks(rows: &[u32], seed: u64) -> Vec<u32> {
    let mut blocks: Vec<&[u32]> = rows.chunks(BLOCK).collect_large();
    shuffle(&mut blocks, &mut random(seed, 0));
    blocks.into_iter().flatten().copied().collect_large()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::newton::InMemory;
    use crate::fit::routes::POLISH_SHARE_ENOUGH;
    use crate::fit::stop::NewtonStop;
    use crate::fit::waves::Waves;
    use crate::fit::{Params, Silent, Start, newton};
    use crate::loss::{Logistic, ModifiedHuber, SquaredHinge};
    use proptest::prelude::*;

    /// The dual points after `steps` Newton steps, checked against plain sums, and whether they are better
    /// than the slopes.
    fn check<T: DualLoss>(
        problem: &Problem<'_>,
        loss: T,
        steps: usize,
    ) -> std::result::Result<bool, TestCaseError> {
        let mut newton = InMemory::<1>::new(problem, 1, true, &Silent);
        let objective = Weighted { loss, y: problem.y, cost: problem.cost };
        let [report] = newton.minimise(&objective, 1.0, &NewtonStop::RelativeGap(1e-12), steps).unwrap();
        newton.evaluate(&objective).unwrap();
        let (dual, bias) = (report.certificate.dual, newton.bias());
        let epoch = DualPoint::from_slopes(problem, loss, &mut newton, 3, &Silent).unwrap();
        // No fit begins an epoch below 0: what it loses by rounding is not bounded.
        let mut is_better = epoch.value >= dual;
        if dual > 0.0 {
            check_point(problem, loss, &epoch, bias)?;
            let (value, drift) = (epoch.value, epoch.drift);
            let again = epoch.further(problem, loss, &newton, 4, &Silent).unwrap();
            prop_assert!(again.drift >= drift && again.visited > 0 || drift == 0.0);
            // The way onto the constraint may cost more than an epoch gains.
            let falls = again.value < value * (1.0 - 1e-12);
            prop_assert!(!falls || problem.intercept == Intercept::Free, "{value} {}", again.value);
            check_point(problem, loss, &again, bias)?;
        }
        let affordable = Affordable { passes: 4.0, curved: 1.0, distance: 1e-6 * report.certificate.primal };
        let step = DualPoint::from_step(problem, loss, &mut newton, &affordable).unwrap();
        prop_assert_eq!(step.is_some(), report.steps > 0);
        if let Some(step) = step {
            check_point(problem, loss, &step, bias)?;
            is_better &= step.value >= dual;
        }
        Ok(is_better)
    }

    fn check_point<T: DualLoss>(
        problem: &Problem<'_>,
        loss: T,
        point: &DualPoint,
        bias: f64,
    ) -> std::result::Result<(), TestCaseError> {
        let n = problem.y.len();
        let is_free = problem.intercept == Intercept::Free;
        let rows = problem.design(if is_free { 0.0 } else { bias });
        let (mut w, mut terms) = (vec![0.0; rows.n_cols()], 0.0);
        let (mut excess, mut size, mut reach) = (0.0, 0.0, 0.0);
        for i in 0..n {
            let a = point.alpha[i];
            prop_assert!(a >= 0.0 && a <= loss.upper(problem.cost[i]) * (1.0 + 1e-12), "{a} of row {i}");
            rows.add_scaled(i, problem.y[i] * a, &mut w);
            terms += loss.dual_term(problem.cost[i], a);
            excess += problem.y[i] * a;
            size += a;
            reach += a * rows.squared_norm(i).sqrt();
        }
        if is_free {
            prop_assert!(excess.abs() <= 1e-12 * size, "{excess} of {size}");
        }
        let value = terms - 0.5 * dot(&w, &w);
        let scale = terms.abs() + dot(&w, &w);
        prop_assert!((value - point.value).abs() <= 1e-11 * scale, "{value} {}", point.value);
        let apart = w.iter().zip(&point.w).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt();
        // Beside the drift there is the rounding of the sum above, whose terms are as long as this.
        let rounding = 1e-13 * (reach + scale.sqrt());
        prop_assert!(apart <= point.drift + rounding, "{apart} {}", point.drift);
        let params = Params { tol: 1e-11, max_iter: 10_000, ..Params::default() };
        let best = newton::solve(problem, loss, &params, &Start::default(), false, &Silent).unwrap();
        prop_assert!(point.value <= best.certificate.primal * (1.0 + 1e-10), "{} {best:?}", point.value);
        Ok(())
    }

    proptest! {
        #[test]
        fn points_are_feasible_and_their_values_true(
            n in 2..60usize,
            d in 1..8usize,
            power in -4..5i32,
            seed in 0..10_000usize,
            intercept in 0..3usize,
            steps in 0..4usize,
        ) {
            let waves = Waves::new(n, d, 10f64.powi(power), seed);
            let rows = waves.rows();
            let problem = waves.problem(&rows, intercept);
            check(&problem, SquaredHinge, steps)?;
            check(&problem, ModifiedHuber, steps)?;
            check(&problem, Logistic, steps)?;
        }
    }

    #[test]
    fn points_are_better_than_the_slopes() {
        let waves = Waves::new(3000, 12, 4.0, 5);
        let rows = waves.rows();
        for intercept in 0..3 {
            let problem = waves.problem(&rows, intercept);
            assert!(check(&problem, SquaredHinge, 2).unwrap(), "squared hinge, {intercept}");
            assert!(check(&problem, ModifiedHuber, 2).unwrap(), "modified Huber, {intercept}");
            assert!(check(&problem, Logistic, 2).unwrap(), "logistic, {intercept}");
        }
    }

    #[test]
    fn steps_further_come_closer() {
        fn check<T: DualLoss>(problem: &Problem<'_>, loss: T) {
            let mut newton = InMemory::<1>::new(problem, 1, true, &Silent);
            let objective = Weighted { loss, y: problem.y, cost: problem.cost };
            let [report] = newton.minimise(&objective, 1.0, &NewtonStop::RelativeGap(1e-12), 1).unwrap();
            newton.evaluate(&objective).unwrap();
            let distance = 1e-9 * report.certificate.primal;
            let mut value = |passes| {
                let affordable = Affordable { passes, curved: 0.9, distance };
                DualPoint::from_step(problem, loss, &mut newton, &affordable).unwrap().unwrap()
            };
            let found = [2.8, 3.0, 20.0].map(&mut value);
            let gaps = found.each_ref().map(|point| report.certificate.primal - point.value);
            for k in 1..3 {
                assert!(found[k].visited > found[k - 1].visited);
                assert!(gaps[k] < 0.2 * gaps[k - 1], "{gaps:?}");
            }
        }
        let waves = Waves::new(3000, 40, 400.0, 5);
        let rows = waves.rows();
        for intercept in 0..3 {
            let problem = waves.problem(&rows, intercept);
            check(&problem, SquaredHinge);
            check(&problem, ModifiedHuber);
        }
    }

    #[test]
    fn fits_end_sooner_and_with_the_same_bits_for_any_number_of_threads() {
        let waves = Waves::new(6000, 30, 8.0, 1);
        let rows = waves.rows();
        for intercept in 0..3 {
            let problem = waves.problem(&rows, intercept);
            let run = |threads: usize, polishes| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let params = Params { tol: 1e-2, ..Params::default() };
                let start = Start::default();
                pool.install(|| {
                    newton::solve(&problem, Logistic, &params, &start, polishes, &Silent).unwrap()
                })
            };
            let (one, three, plain) = (run(1, true), run(3, true), run(1, false));
            assert_eq!((&one.w, &one.alpha, one.intercept), (&three.w, &three.alpha, three.intercept));
            // A step for a gap that is far from the truth takes its share of the fit.
            let most = (1.0 + POLISH_SHARE_ENOUGH) * plain.passes + 2.0;
            assert!(one.certificate.relative_gap() <= 1e-2 && one.passes <= most);
        }
    }

    /// Where steps are factorised, and dear enough that one in the dual is cheap beside them; the distance is
    /// that to a fit far closer.
    fn check_truth<T: DualLoss>(problem: &Problem<'_>, loss: T, tol: f64) {
        let start = Start::default();
        let solve = |tol, polishes| {
            let params = Params { tol, ..Params::default() };
            newton::solve(problem, loss, &params, &start, polishes, &Silent).unwrap()
        };
        let (found, best) = (solve(tol, true), solve(1e-13, false).certificate);
        let (gap, distance) = (found.certificate.relative_gap(), found.certificate.primal / best.dual - 1.0);
        assert!(distance - 1e-12 <= gap && gap <= tol, "{gap} {distance} {tol}");
        assert!(gap <= 300.0 * distance.max(1e-12), "{gap} {distance} {tol}");
    }

    #[test]
    fn gaps_are_close_to_the_truth() {
        let waves = Waves::new(3000, 100, 8.0, 1);
        let rows = waves.rows();
        for intercept in 0..3 {
            let problem = waves.problem(&rows, intercept);
            for tol in [1e-4, 1e-6] {
                check_truth(&problem, SquaredHinge, tol);
                check_truth(&problem, ModifiedHuber, tol);
                check_truth(&problem, Logistic, tol);
            }
        }
    }

    #[test]
    fn blocks_are_whole_and_no_row_is_lost() {
        let rows: Vec<u32> = (0..1000).map(|i| 3 * i).collect();
        let mut ordered = in_blocks(&rows, 7);
        assert_ne!(ordered, rows);
        assert!(ordered.windows(2).filter(|pair| pair[1] != pair[0] + 3).count() < 1000 / BLOCK + 1);
        ordered.sort_unstable();
        assert_eq!(ordered, rows);
        assert!(in_blocks(&[], 7).is_empty());
    }
}
