//! Primal coordinate descent for the squared hinge (PCD): Chang, Hsieh, Lin, Coordinate Descent Method for
//! Large-scale L2-loss Linear SVM, JMLR 9, 2008. Here for comparison with the dual method.
//!
//! Minimises `f(w) = 1/2 |w|^2 + sum_i c_i max(0, s_i)^2`, `s_i = 1 - y_i w.x_i`, one weight at a time, over
//! a copy of the data by columns. For weight `j` with `I = {i: s_i > 0}`:
//! `D' = w_j - 2 sum_I c_i y_i x_ij s_i`, `D'' = 1 + 2 sum_I c_i x_ij^2`, and the step is `t d`,
//! `d = -D'/D''`, with `t` halved from 1 until `f` falls by `sigma (t d)^2`. Where
//! `t <= D'' / (H_j/2 + sigma)`, `H_j` being `D''` with all rows, it does for certain (their theorem 2), and
//! the loss need not be evaluated. A step costs the entries of a column.
//!
//! Deviation: weights are visited in the same random order for a few epochs, whose iterates are then
//! extrapolated ([`super::extrapolation`]). Columns that nearly add up to others leave valleys that the plain
//! method follows for ever: a9a, `C = 1`, 1.3e-5 from the optimum after 8000 epochs with a fresh order in
//! each.
//!
//! A free intercept is a weight without the `1/2 w^2`; it is visited `INTERCEPT_VISITS` times an epoch. The
//! gap is half the squared gradient, whose parts the steps of an epoch see anyway: when their sum says that
//! the tolerance may be reached, a check computes all margins anew and the gap from them.

use super::extrapolation::Extrapolation;
use crate::fit::certificate;
use crate::fit::checks::finite;
use crate::fit::dual::active::{ActiveSet, random};
use crate::fit::monitor::{Monitor, Progress};
use crate::fit::params::{Params, SolverKind};
use crate::fit::problem::{Certificate, Intercept, Problem, Solution, Start, Status};
use crate::fit::sweep::{Sweep, dot};
use crate::loss::SquaredHinge;
use crate::matrix::columns::Columns;
use crate::memory::CollectLarge;
use crate::{Result, memory};

/// Demanded decrease, relative to the squared step.
const SIGMA: f64 = 0.01;
/// Halvings of a step at most; the certain step is reached long before.
const MAX_HALVINGS: usize = 40;
/// Visits of a free intercept per epoch.
const INTERCEPT_VISITS: usize = 4;
/// A check is made when the gap, guessed from the steps of an epoch, is at most this many tolerances.
const LIKELY: f64 = 2.0;
/// Epochs between checks at most.
const MAX_UNCHECKED: usize = 64;

/// What a step needs of a row.
#[derive(Clone, Copy)]
struct Row {
    slack: f64,
    cost: f64,
}

struct Descent {
    columns: Columns,
    rows: Vec<Row>,
    w: Vec<f64>,
    /// `2 sum_i c_i x_ij^2`.
    bend: Vec<f64>,
    /// Number of the weight without penalty.
    free: Option<usize>,
}

impl Descent {
    /// At the weights of `start`, or at zero.
    fn new(problem: &Problem<'_>, sweep: &Sweep<'_>, start: &Start) -> Self {
        let (cost, bias) = (problem.cost, sweep.design.bias);
        let mut columns = Columns::of(&sweep.design);
        columns.scale_rows(problem.y);
        let d = columns.len();
        let bend = (0..d)
            .map(|j| {
                let mut sum = 0.0;
                columns.for_each(j, |i, x| sum += 2.0 * cost[i] * x * x);
                sum
            })
            .collect_large();
        let mut w = memory::zeros(d);
        if let Some((known, b)) = &start.w {
            w[..known.len()].copy_from_slice(known);
            if bias != 0.0 {
                w[d - 1] = b / bias;
            }
        }
        let free = (problem.intercept == Intercept::Free).then(|| d - 1);
        let margins = margins(problem, sweep, &w);
        let rows = margins.iter().zip(cost).map(|(m, &cost)| Row { slack: 1.0 - m, cost }).collect_large();
        Self { columns, rows, w, bend, free }
    }

    /// Takes over margins computed anew, and visits a free intercept.
    fn refresh(&mut self, margins: &[f64]) {
        self.rows.iter_mut().zip(margins).for_each(|(row, m)| row.slack = 1.0 - m);
        if let Some(b) = self.free {
            for _ in 0..INTERCEPT_VISITS {
                self.step(b);
            }
        }
    }

    /// Moves weight `j`; returns the derivative before.
    fn step(&mut self, j: usize) -> f64 {
        let penalty = if self.free == Some(j) { 0.0 } else { 1.0 };
        let (mut slope, mut bend) = (penalty * self.w[j], penalty);
        self.columns.for_each(j, |i, x| {
            let Row { slack, cost } = self.rows[i];
            if slack > 0.0 {
                slope -= 2.0 * cost * x * slack;
                bend += 2.0 * cost * x * x;
            }
        });
        if slope == 0.0 || bend == 0.0 {
            return slope;
        }
        let mut d = -slope / bend;
        let certain = bend / (0.5 * (penalty + self.bend[j]) + SIGMA);
        let mut t = 1.0;
        for _ in 0..MAX_HALVINGS {
            if t <= certain || self.change(j, d, penalty) <= -SIGMA * d * d {
                break;
            }
            t *= 0.5;
            d *= 0.5;
        }
        self.columns.for_each(j, |i, x| self.rows[i].slack -= d * x);
        self.w[j] += d;
        slope
    }

    /// How much the objective changes with weight `j` moved by `d`.
    fn change(&self, j: usize, d: f64, penalty: f64) -> f64 {
        let mut change = penalty * d * (self.w[j] + 0.5 * d);
        self.columns.for_each(j, |i, x| {
            let Row { slack, cost } = self.rows[i];
            let (before, after) = (slack.max(0.0), (slack - d * x).max(0.0));
            change += cost * (after - before) * (after + before);
        });
        change
    }

    /// Goes to a point with these margins if the objective is lower there.
    fn try_point(&mut self, w: Vec<f64>, margins: &[f64]) {
        let rows =
            self.rows.iter().zip(margins).map(|(row, m)| Row { slack: 1.0 - m, ..*row }).collect_large();
        let (before, here) =
            (objective(self), (std::mem::replace(&mut self.w, w), std::mem::replace(&mut self.rows, rows)));
        if objective(self) >= before {
            (self.w, self.rows) = here;
        }
    }

    /// One visit of each weight; returns the sum of the squared derivatives met.
    fn epoch(&mut self, order: &ActiveSet, monitor: &dyn Monitor) -> Result<f64> {
        let mut squares = 0.0;
        let stride = self.w.len().div_ceil(INTERCEPT_VISITS).max(1);
        for s in 0..order.len() {
            if s % 1024 == 0 {
                monitor.poll()?;
            }
            if let Some(b) = self.free
                && s % stride == 0
            {
                self.step(b);
            }
            let j = order.get(s).expect("s is below the number of weights");
            if self.free != Some(j) {
                squares += self.step(j).powi(2);
            }
        }
        Ok(squares)
    }
}

/// Descends to the relative duality gap `params.tol`.
///
/// # Errors
/// [`crate::Error::Cancelled`] and [`crate::Error::Overflow`].
pub fn solve(
    problem: &Problem<'_>,
    params: &Params,
    start: &Start,
    monitor: &dyn Monitor,
) -> Result<Solution> {
    let mut sweep = Sweep::new(problem.design(problem.intercept.bias()), monitor);
    let mut descent = Descent::new(problem, &sweep, start);
    let d = descent.w.len();
    let (mut order, mut random) = (ActiveSet::all(d), random(params.seed, 0));
    let (mut epoch, mut passes, mut unchecked) = (0, 3.0, 0);
    let mut extrapolation = Extrapolation::new(d);
    order.shuffle(&mut random);
    let (status, certificate, alpha) = loop {
        epoch += 1;
        unchecked += 1;
        let squares = descent.epoch(&order, monitor)?;
        passes += 2.0;
        if let Some(guess) = extrapolation.push(&descent.w) {
            let margins = margins(problem, &sweep, &guess);
            monitor.poll()?;
            passes += 1.0;
            descent.try_point(guess, &margins);
            order.shuffle(&mut random);
        }
        let primal = objective(&descent);
        let guess = 0.5 * squares / primal;
        monitor.observe(&Progress { solver: "primal_cd", iteration: epoch, accuracy: guess, search: None });
        let is_last = epoch >= params.max_iter;
        if guess > LIKELY * params.tol && !is_last && unchecked < MAX_UNCHECKED && primal.is_finite() {
            continue;
        }
        unchecked = 0;
        passes += 2.0;
        descent.refresh(&margins(problem, &sweep, &descent.w));
        let (certificate, alpha) = check(problem, &descent, &mut sweep)?;
        monitor.poll()?;
        if certificate.relative_gap() <= params.tol {
            break (Status::Converged, certificate, alpha);
        }
        if is_last {
            break (Status::MaxIter, certificate, alpha);
        }
    };
    let (w, intercept) = problem.split(descent.w, problem.intercept.bias());
    Ok(Solution {
        w,
        intercept,
        alpha,
        certificate,
        status,
        n_iter: epoch,
        passes,
        solver: SolverKind::PrimalCd,
        is_consistent: false,
        evidence: None,
    })
}

fn margins(problem: &Problem<'_>, sweep: &Sweep<'_>, w: &[f64]) -> Vec<f64> {
    let mut margins = memory::zeros(problem.y.len());
    sweep.margins(problem.y, w, &mut margins);
    margins
}

fn objective(descent: &Descent) -> f64 {
    let free = descent.free.map_or(0.0, |b| descent.w[b]);
    let losses: f64 = descent.rows.iter().map(|row| row.cost * row.slack.max(0.0).powi(2)).sum();
    0.5 * (dot(&descent.w, &descent.w) - free * free) + losses
}

/// Certificate and dual variables `2 c_i max(0, s_i)` of the present weights.
fn check(problem: &Problem<'_>, descent: &Descent, sweep: &mut Sweep<'_>) -> Result<(Certificate, Vec<f64>)> {
    let primal = finite("objective", objective(descent), &sweep.design)?;
    let alpha: Vec<f64> = descent.rows.iter().map(|row| 2.0 * row.cost * row.slack.max(0.0)).collect_large();
    let signed: Vec<f64> = alpha.iter().zip(problem.y).map(|(a, y)| a * y).collect_large();
    let mut w = memory::zeros(descent.w.len());
    sweep.weighted_sum(&signed, &mut w);
    let dual = if descent.free.is_some() {
        w.pop();
        certificate::dual_on_constraint(problem, SquaredHinge, &alpha, w)
    } else {
        use crate::loss::Loss;
        let terms: f64 = alpha.iter().zip(problem.cost).map(|(&a, &c)| SquaredHinge.dual_term(c, a)).sum();
        terms - 0.5 * dot(&w, &w)
    };
    Ok((Certificate { primal, dual }, alpha))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::waves::Waves;
    use crate::fit::{Silent, auto};
    use crate::loss::LossKind;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
        #[test]
        fn reaches_newtons_optimum(
            n in 2..30usize,
            d in 1..6usize,
            scale in 0.01..50.0f64,
            intercept in 0..3usize,
            seed in 0..99usize,
        ) {
            let waves = Waves::new(n, d, scale, seed);
            let x = waves.rows();
            let problem = waves.problem(&x, intercept);
            let solve = |solver, tol| {
                let params = Params { solver, tol, max_iter: 100_000, seed: 1 };
                auto::solve(&problem, LossKind::SquaredHinge, &params, &Start::default(), &Silent).unwrap()
            };
            let (exact, s) = (solve(SolverKind::Newton, 1e-10), solve(SolverKind::PrimalCd, 1e-7));
            prop_assert_eq!(s.status, Status::Converged);
            let best = exact.certificate.primal;
            prop_assert!(s.certificate.primal <= best * (1.0 + 1.1e-7), "{} {best}", s.certificate.primal);
            prop_assert!(s.certificate.dual <= best * (1.0 + 1e-9));
        }
    }
}
