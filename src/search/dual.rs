//! The route by fits to a duality gap: dual coordinate descent, and Newton for the hinge.
//!
//! Lanes are independent tasks. Each keeps its dual variables and their weights, and starts the next `C` from
//! both, stretched (Chu15, eq. 14).
//!
//! **Steps that cost nothing.** Let a solution at `C` have the primal value `P = R + L`, norm and loss, and
//! dual value `D`. At `C' > C` the dual variables are still feasible and their dual value is no lower (their
//! box grows, and each row's dual term rises with its cost), while the loss grows in proportion: the same
//! weights have a gap of at most `R + L C'/C - D`. So they stay accepted up to
//!
//! ```text
//! C' = C ((1 + tol) D - R) / L
//! ```
//!
//! **The exact end.** On separable data `L` is never quite zero although the solution ends to depend on `C`;
//! see [`super::saturation`] for how it becomes one that is accepted up to the last `C` of the search.
//!
//! Tried: tighter fits, an eighth or half of the gap, once the dual variables no longer grow, so that a
//! solution lasts for more values; the end comes hardly earlier and the passes are more (imdb, hinge, `C`
//! from 4 to the end: 390 and 250 against 190).
//!
//! Memory per lane: a weight vector of the columns and a dual variable per training row, both kept between
//! steps: for `K` folds and `k` classes `K k (d + (K - 1) n / K)` numbers, and about as much again for each
//! of the fits in flight, one per thread.

use std::sync::Arc;

use super::folds::LaneSetup;
use super::lane::Done;
use super::saturation::{Extension, PrimalPoint};
use super::watch::Watch;
use super::{Route, RouteState, SearchStep, lane, saturation};
use crate::fit::{Monitor, Params, Solution, SolverKind, Start, Status, auto, check_length};
use crate::loss::{Loss, with_loss};
use crate::matrix::Rows;
use crate::memory::CollectLarge;
use crate::{Error, Result, memory, parallel};

/// Relative duality gap of dual fits per unit of `tol`: about the accuracy that the gradient criterion gives
/// in the primal.
pub const GAP_PER_TOL: f64 = 0.1;

/// All lanes.
pub struct Dual<'a> {
    setup: &'a LaneSetup<'a>,
    lanes: Vec<Lane>,
    decisions: Arc<Vec<Vec<f64>>>,
}

/// One binary problem of one fold, between two values of `C`.
#[derive(Clone, Default)]
struct Lane {
    start: Start,
    fitted: Option<Fitted>,
    /// The held-out rows are predicted from the present weights.
    is_scored: bool,
}

/// The last certified fit of a lane.
#[derive(Clone, Copy)]
struct Fitted {
    c: f64,
    /// Norm and loss parts of the primal value at `c`, and the dual value.
    norm: f64,
    loss: f64,
    dual: f64,
    /// Largest `C` at which the solution is accepted unchanged.
    until: f64,
    solver: SolverKind,
}

impl<'a> Dual<'a> {
    /// Starts before the first value of `C`.
    pub fn new(setup: &'a LaneSetup<'a>) -> Self {
        let lanes = vec![Lane::default(); setup.n_lanes()];
        Self { setup, lanes, decisions: Arc::new(setup.no_decisions()) }
    }
}

impl Route for Dual<'_> {
    fn advance(&mut self, c: f64) -> Result<SearchStep> {
        let setup = self.setup;
        let watch = Watch::new(setup.monitor, c, self.lanes.len());
        let done = parallel::try_map(&mut self.lanes, |number, lane| {
            let done = Task { setup, number, c, monitor: &watch }.advance(lane)?;
            watch.finish(done.passes);
            Ok(done)
        })?;
        for (k, done) in done.iter().enumerate() {
            if let Some(decisions) = &done.decisions {
                setup.place(k, decisions, &mut Arc::make_mut(&mut self.decisions)[..]);
            }
        }
        Ok(lane::step(c, &done, &self.decisions))
    }

    fn state(&self) -> RouteState {
        RouteState(self.lanes.iter().flat_map(Lane::arrays).collect())
    }

    fn restore(&mut self, state: &RouteState) -> Result<()> {
        let lanes = state.lanes(self.lanes.len(), ARRAYS)?;
        let rebuilt = lanes.enumerate().map(|(k, arrays)| {
            Lane::rebuild(arrays, self.setup.rows.n_cols(), self.setup.part(k).train.len())
        });
        self.lanes = rebuilt.collect::<Result<_>>()?;
        Ok(())
    }
}

/// Arrays of a lane's state: facts, weights, dual variables; the last two empty before the first fit.
const ARRAYS: usize = 3;
/// Numbers in the first of them.
const FACTS: usize = 8;
/// The solvers that a fit of a binary problem can name, by their number in a state.
const SOLVERS: [SolverKind; 3] = [SolverKind::DualCd, SolverKind::DualCdOnline, SolverKind::Newton];

impl Lane {
    fn arrays(&self) -> [Vec<f64>; ARRAYS] {
        let (Some(f), Some((w, b)), Some(alpha)) = (self.fitted, &self.start.w, &self.start.alpha) else {
            return Default::default();
        };
        let solver = SOLVERS.iter().position(|s| *s == f.solver).unwrap_or(0) as f64;
        let is_consistent = f64::from(u8::from(self.start.is_consistent));
        [
            vec![f.c, f.norm, f.loss, f.dual, f.until, solver, is_consistent, *b],
            memory::copy(w),
            memory::copy(alpha),
        ]
    }

    fn rebuild(arrays: &[Vec<f64>], n_cols: usize, n_rows: usize) -> Result<Self> {
        let [facts, w, alpha] = arrays else { unreachable!("a lane has {ARRAYS} arrays") };
        if facts.is_empty() {
            return Ok(Self::default());
        }
        check_length("facts of a search state", FACTS, facts.len())?;
        check_length("weights of a search state", n_cols, w.len())?;
        check_length("dual variables of a search state", n_rows, alpha.len())?;
        let [c, norm, loss, dual, until, solver, is_consistent, b] = facts[..] else {
            unreachable!("the number of facts is checked")
        };
        let solver = *SOLVERS.get(solver as usize).ok_or_else(|| Error::Parameter {
            name: "solver of a search state",
            value: solver.to_string(),
            rule: "0, 1 or 2",
        })?;
        let is_consistent = is_consistent != 0.0;
        let start = Start { w: Some((memory::copy(w), b)), alpha: Some(memory::copy(alpha)), is_consistent };
        Ok(Self { start, fitted: Some(Fitted { c, norm, loss, dual, until, solver }), is_scored: false })
    }
}

/// One step of one lane.
struct Task<'a> {
    setup: &'a LaneSetup<'a>,
    number: usize,
    c: f64,
    monitor: &'a dyn Monitor,
}

impl Task<'_> {
    fn advance(&self, lane: &mut Lane) -> Result<Done> {
        let accepted = lane.fitted.filter(|fitted| fitted.covers(self.c));
        let mut done = match accepted {
            Some(fitted) => Done::unchanged(fitted.objective(self.c), fitted.until),
            None => self.fit(lane)?,
        };
        if !(done.is_unchanged && lane.is_scored) {
            let (w, b) = lane.start.w.as_ref().expect("a fit leaves weights");
            done.decisions = Some(self.setup.decisions(self.number, w, *b));
            lane.is_scored = true;
        }
        Ok(done)
    }

    fn weight(&self) -> &[f64] {
        &self.setup.part(self.number).weight
    }

    fn fit(&self, lane: &mut Lane) -> Result<Done> {
        let settings = self.setup.settings;
        let tol = GAP_PER_TOL * settings.tol;
        let mut solver = settings.solver;
        if let Some(last) = lane.fitted {
            self.stretch(&mut lane.start, last.c);
            if solver == SolverKind::Auto {
                solver = last.solver;
            }
        }
        let y = self.setup.signs(self.number);
        let cost: Vec<f64> = self.weight().iter().map(|v| self.c * v).collect_large();
        let seed = settings.seed.wrapping_add(self.number as u64);
        let params = Params { solver, tol, max_iter: settings.max_iter, seed };
        let problem = self.setup.problem(self.number, &y, &cost);
        let mut solution = auto::solve_unproved(&problem, settings.loss, &params, &lane.start, self.monitor)?;
        let is_converged = solution.status == Status::Converged;
        let mut fitted = self.judge(&solution, is_converged, tol);
        let can_extend = is_converged && fitted.until < self.setup.last;
        let is_extended = can_extend && self.extend(&mut solution, &mut fitted, &y, tol);
        let (passes, n_iter, objective) = (solution.passes, solution.n_iter, fitted.objective(self.c));
        let is_consistent = solution.is_consistent && !is_extended;
        let start =
            Start { w: Some((solution.w, solution.intercept)), alpha: Some(solution.alpha), is_consistent };
        *lane = Lane { start, fitted: Some(fitted), is_scored: false };
        let until = fitted.until;
        Ok(Done { passes, n_iter, is_converged, is_unchanged: false, objective, until, decisions: None })
    }

    fn judge(&self, solution: &Solution, is_converged: bool, tol: f64) -> Fitted {
        let norm = saturation::norm(self.setup.settings.intercept, &solution.w, solution.intercept);
        let certificate = solution.certificate;
        let loss = (certificate.primal - norm).max(0.0);
        let (c, dual, solver) = (self.c, certificate.dual, solution.solver);
        let until = if is_converged { accepted_until(c, norm, loss, dual, tol) } else { c };
        Fitted { c, norm, loss, dual, until, solver }
    }

    /// Tries to make the solution one that is accepted up to the last `C` of the search; tells whether it
    /// did.
    fn extend(&self, solution: &mut Solution, fitted: &mut Fitted, y: &[f64], tol: f64) -> bool {
        with_loss!(self.setup.settings.loss, loss => {
            loss.can_be_zero() && self.extend_with(loss, solution, fitted, y, tol)
        })
    }

    fn extend_with<L: Loss>(
        &self,
        loss: L,
        solution: &mut Solution,
        fitted: &mut Fitted,
        y: &[f64],
        tol: f64,
    ) -> bool {
        let last = self.setup.last;
        let cost: Vec<f64> = self.weight().iter().map(|v| last * v).collect_large();
        let problem = self.setup.problem(self.number, y, &cost);
        let mut extension = Extension { problem, loss, limit: (1.0 + tol) * fitted.dual, passes: 0.0 };
        let mut point =
            PrimalPoint { w: memory::copy(&solution.w), b: solution.intercept, norm: fitted.norm };
        let loss_at_last = extension.run(&mut point);
        solution.passes += extension.passes;
        let Some(loss_at_last) = loss_at_last else {
            return false;
        };
        let (norm, loss) = (point.norm, loss_at_last * self.c / last);
        let until = accepted_until(self.c, norm, loss, fitted.dual, tol).max(last);
        (solution.w, solution.intercept) = (point.w, point.b);
        *fitted = Fitted { norm, loss, until, ..*fitted };
        true
    }

    /// Multiplies the dual variables and their weights for the step from `last` to the present `C`.
    ///
    /// Chu15, eq. (14), takes the ratio of the two. Deviation: of 1, the ratio and its square root the one
    /// with the largest dual value is taken; on separable data the dual variables hardly grow any more at
    /// large `C`, and the ratio would throw the start far off. Reads no data.
    fn stretch(&self, start: &mut Start, last: f64) {
        let ratio = self.c / last;
        let (Some(alpha), Some((w, _))) = (&mut start.alpha, &mut start.w) else {
            return;
        };
        let half = 0.5 * w.iter().map(|w| w * w).sum::<f64>();
        let dual = |t: f64| {
            let terms = alpha.iter().zip(self.weight()).map(|(&a, v)| {
                let cost = self.c * v;
                with_loss!(self.setup.settings.loss, loss => {
                    loss.dual_term(cost, (t * a).min(loss.upper(cost)))
                })
            });
            terms.sum::<f64>() - t * t * half
        };
        let best =
            [1.0, ratio.sqrt(), ratio].map(|t| (dual(t), t)).into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let factor = best.map_or(ratio, |(_, t)| t);
        alpha.iter_mut().for_each(|a| *a *= factor);
        w.iter_mut().for_each(|w| *w *= factor);
    }
}

impl Fitted {
    fn covers(&self, c: f64) -> bool {
        self.c <= c && c <= self.until
    }

    /// Primal value of the unchanged solution.
    fn objective(&self, c: f64) -> f64 {
        self.norm + c / self.c * self.loss
    }
}

/// Largest `C'` with a relative gap of at most `tol`; see the module's description. `c` itself if the dual
/// value is useless.
pub fn accepted_until(c: f64, norm: f64, loss: f64, dual: f64, tol: f64) -> f64 {
    let room = (1.0 + tol) * dual - norm;
    if !(dual > 0.0 && room >= 0.0) {
        c
    } else if loss == 0.0 {
        f64::INFINITY
    } else {
        (c * room / loss).max(c)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Intercept, Problem, Silent};
    use crate::labels::Labels;
    use crate::loss::LossKind;
    use crate::matrix::dense::DenseView;
    use crate::search::SearchSettings;
    use crate::search::folds::{Fold, parts};
    use proptest::prelude::*;

    const COLUMNS: usize = 12;
    const TOL: f64 = 1e-2;

    /// Random rows labelled by a hyperplane, a share of the labels wrong.
    fn data(n: usize, seed: u64, wrong: f64) -> (Vec<f64>, Vec<u32>) {
        let mut random = crate::fit::dual::active::random(seed, 7);
        let mut uniform =
            || crate::fit::dual::active::below(&mut random, 1 << 20) as f64 / (1 << 19) as f64 - 1.0;
        let x: Vec<f64> = (0..n * COLUMNS).map(|_| uniform()).collect();
        let mut ids: Vec<u32> =
            x.chunks(COLUMNS).map(|r| u32::from(r[0] - 0.5 * r[1] + r[2] > 0.1)).collect();
        ids.iter_mut().for_each(|id| *id ^= u32::from(0.5 * (uniform() + 1.0) < wrong));
        (ids[0], ids[1], ids[n - 2], ids[n - 1]) = (0, 1, 0, 1);
        (x, ids)
    }

    /// Runs the route over doublings up to `last`, and checks after each step, at that and every later value,
    /// that what the route promises about its solutions is true: their objective there is what it says, and
    /// within the gap of the optimum. Returns the value from which on nothing changes.
    fn check_promises(seed: u64, wrong: f64, loss: LossKind, intercept: Intercept) -> f64 {
        let (n, last) = (60, 4096.0);
        let (x, ids) = data(n, seed, wrong);
        let view = crate::matrix::Matrix::from(DenseView::new(&x, n, COLUMNS).unwrap().0);
        let labels = Labels { ids: &ids, n_classes: 2 };
        let all: Vec<u32> = (0..n as u32).collect();
        let folds = [
            Fold { train: all[..40].to_vec(), test: all[40..].to_vec() },
            Fold { train: all[10..].to_vec(), test: all[..10].to_vec() },
        ];
        let weight: Vec<f64> = (0..n).map(|i| 0.5 + (i % 3) as f64).collect();
        let parts = parts(&view, &labels, &weight, &folds).unwrap();
        let settings =
            SearchSettings { loss, intercept, solver: SolverKind::DualCd, tol: TOL, max_iter: 100_000, seed };
        let (labels, weight) = (&labels, &weight[..]);
        let setup = LaneSetup {
            rows: &view,
            labels,
            weight,
            parts: &parts,
            settings: &settings,
            last,
            monitor: &Silent,
        };
        let optimum = |k: usize, c: f64| {
            let (y, cost) = (setup.signs(k), setup.part(k).weight.iter().map(|v| c * v).collect::<Vec<_>>());
            let problem: Problem<'_> = setup.problem(k, &y, &cost);
            let params = Params { solver: SolverKind::Newton, tol: 1e-9, max_iter: 10_000, seed: 0 };
            auto::solve(&problem, loss, &params, &Start::default(), &Silent).unwrap().certificate.primal
        };
        let mut route = Dual::new(&setup);
        let (mut c, mut end) = (1.0 / 64.0, last);
        while c <= last {
            let step = route.advance(c).unwrap();
            assert!(step.is_converged);
            for (k, lane) in route.lanes.iter().enumerate() {
                let (w, b) = lane.start.w.as_ref().unwrap();
                let until = lane.fitted.unwrap().until.min(last);
                for (at, is_present) in [(c, true), (0.5 * (c + until), false), (until, false)] {
                    let losses = setup.part(k).train.iter().zip(setup.signs(k)).zip(&setup.part(k).weight);
                    let loss_of = |((&i, y), v): ((&u32, f64), &f64)| {
                        let margin = y * (view.dot(i as usize, w) + b);
                        at * v * with_loss!(loss, loss => loss.value(margin))
                    };
                    let true_value = saturation::norm(intercept, w, *b) + losses.map(loss_of).sum::<f64>();
                    if is_present {
                        assert!(
                            (true_value / step.objective[k] - 1.0).abs() < 1e-7,
                            "{true_value} {}",
                            step.objective[k]
                        );
                    }
                    if at >= c {
                        let best = optimum(k, at);
                        assert!(
                            true_value <= best * (1.0 + GAP_PER_TOL * TOL + 1e-7),
                            "C {c}, at {at}: {true_value} {best}"
                        );
                    }
                }
            }
            if step.unchanged_until >= last {
                end = end.min(c);
            }
            c *= 2.0;
        }
        end
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]
        #[test]
        fn accepted_solutions_are_within_the_gap(
            seed in 0u64..1000,
            wrong in prop::sample::select(vec![0.0, 0.0, 0.1]),
            loss in prop::sample::select(vec![LossKind::Hinge, LossKind::SquaredHinge, LossKind::Logistic]),
            intercept in prop::sample::select(vec![Intercept::None, Intercept::Free, Intercept::Penalised(2.0)]),
        ) {
            check_promises(seed, wrong, loss, intercept);
        }
    }

    #[test]
    fn separable_data_end_early() {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised(2.0)] {
            let end = check_promises(3, 0.0, LossKind::Hinge, intercept);
            assert!(end < 4096.0, "{intercept:?}: {end}");
        }
    }

    #[test]
    fn states_of_another_search_are_refused() {
        let (x, ids) = data(20, 0, 0.0);
        let view = crate::matrix::Matrix::from(DenseView::new(&x, 20, COLUMNS).unwrap().0);
        let labels = Labels { ids: &ids, n_classes: 2 };
        let folds = [Fold { train: (0..20).collect(), test: vec![0] }];
        let weight = [1.0; 20];
        let parts = parts(&view, &labels, &weight, &folds).unwrap();
        let (intercept, solver) = (Intercept::None, SolverKind::DualCd);
        let settings =
            SearchSettings { loss: LossKind::Hinge, intercept, solver, tol: TOL, max_iter: 100, seed: 0 };
        let setup = LaneSetup {
            rows: &view,
            labels: &labels,
            weight: &weight,
            parts: &parts,
            settings: &settings,
            last: 1.0,
            monitor: &Silent,
        };
        let mut route = Dual::new(&setup);
        let fresh = route.state();
        route.advance(1.0).unwrap();
        let good = route.state();
        assert!(route.restore(&fresh).is_ok() && route.restore(&good).is_ok());
        for spoil in [
            |s: &mut RouteState| s.0.truncate(2),
            |s: &mut RouteState| s.0[1].push(0.0),
            |s: &mut RouteState| s.0[0][5] = 9.0,
        ] {
            let mut bad = good.clone();
            spoil(&mut bad);
            assert!(route.restore(&bad).is_err());
        }
    }
}
