//! The route by fits to a duality gap: dual coordinate descent, and Newton for the hinge.
//!
//! Lanes are independent tasks ([`LaneRoute`]). Each keeps its dual variables and their weights, and
//! starts the next `C` from both, scaled (Chu15, eq. 14).
//!
//! A solution that stays accepted at the next `C` is kept as it is, see [`super::lane`]. The others of a
//! fold descend at once where classes are many ([`crate::fit::dual::classes`]): what a lane does depends on
//! nothing of the other classes, and so not on which of them are accepted.
//!
//! **From descent to Newton.** With [`SolverKind::Auto`] a lane descends, and where that is slow Newton takes
//! over for all values that follow: the larger `C`, the slower the descent. Searches with the hinge, five
//! folds, seconds of one thread without this and with it (no link-time optimisation; up to `C` = 1024, 64
//! from mnist on): a9a 4.3 and 2.6, w8a 109 and 12, ijcnn1 0.63 and 0.50, 200,000 x 28 16.5 and 15, covtype
//! 42 and 31, mnist (a digit against the rest) 231 and 45, madelon 530 and 50, phishing_urls 24 and 21, imdb
//! 15 and 14. Tried: Newton at once where a fit would begin with it ([`crate::fit::routes::HARD_HINGE`]),
//! 200,000 x 28 20, since there an epoch from the scaled solution is enough at every `C`; a shorter patience,
//! 8 and 20 or 5 and 10 visits, the same within noise. A first `sigma` by which the rows inside the box would
//! cross it, or a tenth of that: 26 and 14 s on w8a, and two to five times the passes on flights.
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
//! of the fits in flight, one per thread or up to eight where classes are many.

use super::GAP_PER_TOL;
use super::folds::LaneSetup;
use super::lane::{AcceptedFit, LaneFit, LaneFits, LaneRoute, Saved, SearchLane, accepted_until};
use super::saturation;
use super::saturation::{Extension, PrimalPoint};
use crate::fit::{Monitor, Params, Problem, Solution, SolverKind, Start, Status, auto, check_length};
use crate::loss::{Loss, with_loss};
use crate::matrix::Rows;
use crate::memory::CollectLarge;
use crate::{Error, Result, memory};

/// Fits of binary problems.
pub struct DualFits<'a> {
    setup: &'a LaneSetup<'a>,
}

/// The route of such fits, before the first value of `C`.
pub fn route<'a>(setup: &'a LaneSetup<'a>) -> LaneRoute<'a, DualFits<'a>> {
    LaneRoute::new(setup, DualFits { setup })
}

/// What a lane keeps of a fit.
pub struct DualSolution {
    start: Start,
    /// The dual value at the fit's `C`.
    dual: f64,
    /// What the next fit begins with where [`SolverKind::Auto`] is asked for.
    solver: SolverKind,
}

impl DualSolution {
    /// Weights and intercept.
    pub fn weights(&self) -> Option<(&[f64], f64)> {
        self.start.w.as_ref().map(|(w, b)| (&w[..], *b))
    }
}

impl LaneFits for DualFits<'_> {
    type Kept = DualSolution;
    const SAVES_DECISIONS: bool = false;

    fn n_lanes(&self) -> usize {
        self.setup.n_lanes()
    }

    /// Columns, and training rows of the lane.
    fn shape(&self, lane: usize) -> [usize; 2] {
        [self.setup.rows.n_cols(), self.setup.part(lane).train.len()]
    }

    fn fit_at(
        &self,
        lane: usize,
        c: f64,
        last: Option<(AcceptedFit, DualSolution)>,
        monitor: &dyn Monitor,
    ) -> Result<LaneFit<DualSolution>> {
        LaneAt { setup: self.setup, number: lane, c }.fit(last, monitor)
    }

    /// The classes of a fold that dual descent moves. It takes one of them alone as it takes several, so that
    /// their number does not decide how a class is fitted.
    fn at_once(&self, c: f64, lanes: &[SearchLane<DualSolution>]) -> Vec<Vec<usize>> {
        let (setup, settings) = (self.setup, self.setup.settings);
        if !auto::may_be_at_once(setup.n_problems(), settings.loss) {
            return Vec::new();
        }
        let of_fold = |fold: usize| {
            let numbers = setup.numbers().of_fold(fold);
            let is_open = |k: &usize| {
                let is_newtons = |(_, kept): &(AcceptedFit, DualSolution)| {
                    settings.params.solver == SolverKind::Auto && kept.solver == SolverKind::Newton
                };
                lanes[*k].accepted_at(c).is_none() && !lanes[*k].solution.as_ref().is_some_and(is_newtons)
            };
            let open: Vec<usize> = numbers.filter(is_open).collect();
            let descends = |k: &usize| LaneAt { setup, number: *k, c }.descends();
            if open.first().is_some_and(descends) { open } else { Vec::new() }
        };
        let open: Vec<Vec<usize>> = (0..setup.parts.len()).map(of_fold).collect();
        let counts: Vec<usize> = open.iter().map(Vec::len).collect();
        let most = auto::lanes_at_once(&counts);
        open.iter().flat_map(|open| open.chunks(most).map(<[usize]>::to_vec)).collect()
    }

    fn fit_at_once(
        &self,
        lanes: &[usize],
        c: f64,
        last: Vec<Option<(AcceptedFit, DualSolution)>>,
        monitor: &dyn Monitor,
    ) -> Result<Vec<LaneFit<DualSolution>>> {
        let (setup, settings) = (self.setup, self.setup.settings);
        let lanes: Vec<LaneAt<'_>> = lanes.iter().map(|&number| LaneAt { setup, number, c }).collect();
        let starts: Vec<Start> = lanes.iter().zip(last).map(|(lane, last)| lane.start(last).0).collect();
        let signs: Vec<Vec<f64>> = lanes.iter().map(|lane| setup.signs(lane.number)).collect();
        let cost = lanes[0].cost(c);
        let problems: Vec<_> =
            lanes.iter().zip(&signs).map(|(lane, y)| setup.problem(lane.number, y, &cost)).collect();
        let params = setup.class_params(setup.numbers().fold(lanes[0].number));
        let found = auto::solve_classes_in_search(&problems, settings.loss, &params, &starts, monitor)?;
        drop(starts);
        let all = lanes.iter().zip(&problems).zip(found);
        Ok(all.map(|((lane, problem), solution)| lane.settle(problem, solution)).collect())
    }

    fn decisions(&self, lane: usize, kept: &DualSolution) -> Option<Vec<f64>> {
        kept.weights().map(|(w, b)| self.setup.decisions(lane, w, b))
    }

    fn write_decisions(&self, lane: usize, decisions: Vec<f64>, all: &mut [Vec<f64>]) {
        self.setup.write_decisions(lane, &decisions, all);
    }
}

/// Numbers in the first array of a lane.
const FACTS: usize = 8;
/// The solvers that a fit of a binary problem can name, by their number in a state.
const SOLVERS: [SolverKind; 4] =
    [SolverKind::DualCd, SolverKind::DualCdOnline, SolverKind::Newton, SolverKind::DualCdPermuted];

impl Saved for DualSolution {
    type Shape = [usize; 2];
    /// Facts, weights, dual variables.
    const ARRAYS: usize = 3;

    fn arrays(&self, accepted: &AcceptedFit) -> Vec<Vec<f64>> {
        let AcceptedFit { c, norm, loss, until } = *accepted;
        let (w, b) = self.start.w.as_ref().expect("a fit leaves weights");
        let alpha = self.start.alpha.as_ref().expect("a fit leaves dual variables");
        let solver = SOLVERS.iter().position(|s| *s == self.solver).unwrap_or(0) as f64;
        let is_consistent = f64::from(u8::from(self.start.is_consistent));
        let facts = vec![c, norm, loss, self.dual, until, solver, is_consistent, *b];
        vec![facts, memory::copy(w), memory::copy(alpha)]
    }

    fn rebuild(arrays: &[Vec<f64>], [n_cols, n_rows]: [usize; 2]) -> Result<(AcceptedFit, Self)> {
        let [facts, w, alpha] = arrays else { unreachable!("a lane has three arrays") };
        check_length("facts of a search state", FACTS, facts.len())?;
        check_length("weights of a search state", n_cols, w.len())?;
        check_length("dual variables of a search state", n_rows, alpha.len())?;
        let [c, norm, loss, dual, until, solver, is_consistent, b] = facts[..] else {
            unreachable!("the number of facts is checked")
        };
        let solver = *SOLVERS.get(solver as usize).ok_or_else(|| Error::Parameter {
            name: "solver of a search state",
            value: solver.to_string(),
            rule: "0, 1, 2 or 3",
        })?;
        let is_consistent = is_consistent != 0.0;
        let start = Start { w: Some((memory::copy(w), b)), alpha: Some(memory::copy(alpha)), is_consistent };
        Ok((AcceptedFit { c, norm, loss, until }, Self { start, dual, solver }))
    }
}

/// One lane at one value of `C`.
struct LaneAt<'a> {
    setup: &'a LaneSetup<'a>,
    number: usize,
    c: f64,
}

impl LaneAt<'_> {
    fn weight(&self) -> &[f64] {
        &self.setup.part(self.number).weight
    }

    /// Costs of the training rows at `c`.
    fn cost(&self, c: f64) -> Vec<f64> {
        self.weight().iter().map(|v| c * v).collect_large()
    }

    /// Whether a fit that no other has gone before is one by dual descent.
    fn descends(&self) -> bool {
        let (y, cost) = (self.setup.signs(self.number), self.cost(self.c));
        let problem = self.setup.problem(self.number, &y, &cost);
        match self.setup.settings.params.solver {
            SolverKind::Auto => auto::choose(&problem, self.setup.settings.loss) == SolverKind::DualCd,
            solver => solver == SolverKind::DualCd,
        }
    }

    /// The last solution, scaled to the present `C`, and the solver.
    fn start(&self, last: Option<(AcceptedFit, DualSolution)>) -> (Start, SolverKind) {
        let solver = self.setup.settings.params.solver;
        let Some((accepted, mut kept)) = last else { return (Start::default(), solver) };
        self.rescale(&mut kept.start, accepted.c);
        let is_newtons = solver == SolverKind::Auto && kept.solver == SolverKind::Newton;
        (kept.start, if is_newtons { SolverKind::Newton } else { solver })
    }

    fn fit(
        &self,
        last: Option<(AcceptedFit, DualSolution)>,
        monitor: &dyn Monitor,
    ) -> Result<LaneFit<DualSolution>> {
        let settings = self.setup.settings;
        let (start, solver) = self.start(last);
        let (y, cost) = (self.setup.signs(self.number), self.cost(self.c));
        let tol = GAP_PER_TOL * settings.params.tol;
        let params = Params { solver, tol, ..settings.params.of_task(self.number) };
        let problem = self.setup.problem(self.number, &y, &cost);
        let solution = auto::solve_in_search(&problem, settings.loss, &params, &start, monitor)?;
        Ok(self.settle(&problem, solution))
    }

    /// What is kept of a solution and said of it.
    fn settle(&self, problem: &Problem<'_>, mut solution: Solution) -> LaneFit<DualSolution> {
        let (settings, c) = (self.setup.settings, self.c);
        let tol = GAP_PER_TOL * settings.params.tol;
        let is_converged = solution.status == Status::Converged;
        let norm = saturation::norm(settings.intercept, &solution.w, solution.intercept);
        let mut accepted = AcceptedFit::new(c, norm, solution.certificate, is_converged, tol);
        let can_extend = is_converged && accepted.until < self.setup.last;
        let is_extended = can_extend && self.extend(&mut solution, &mut accepted, problem.y, tol);
        let Solution { w, intercept, alpha, passes, n_iter, certificate, solver, .. } = solution;
        let decisions = self.setup.decisions(self.number, &w, intercept);
        let is_consistent = solution.is_consistent && !is_extended;
        let start = Start { w: Some((w, intercept)), alpha: Some(alpha), is_consistent };
        let solver = match settings.params.solver {
            SolverKind::Auto => auto::choose_next(problem, settings.loss, solver, passes),
            _ => solver,
        };
        let kept = DualSolution { start, dual: certificate.dual, solver };
        let objective = accepted.objective(c);
        LaneFit { accepted, kept, passes, n_iter, is_converged, objective, decisions }
    }

    /// Tries to make the solution one that is accepted up to the last `C` of the search; tells whether it
    /// did.
    fn extend(&self, solution: &mut Solution, accepted: &mut AcceptedFit, y: &[f64], tol: f64) -> bool {
        with_loss!(self.setup.settings.loss, loss => {
            loss.can_be_zero() && self.extend_with(loss, solution, accepted, y, tol)
        })
    }

    fn extend_with<L: Loss>(
        &self,
        loss: L,
        solution: &mut Solution,
        accepted: &mut AcceptedFit,
        y: &[f64],
        tol: f64,
    ) -> bool {
        let (last, dual) = (self.setup.last, solution.certificate.dual);
        let cost = self.cost(last);
        let problem = self.setup.problem(self.number, y, &cost);
        let mut extension = Extension { problem, loss, limit: (1.0 + tol) * dual, passes: 0.0 };
        let mut point =
            PrimalPoint { w: memory::copy(&solution.w), b: solution.intercept, norm: accepted.norm };
        let loss_at_last = extension.run(&mut point);
        solution.passes += extension.passes;
        let Some(loss_at_last) = loss_at_last else {
            return false;
        };
        let (norm, loss) = (point.norm, loss_at_last * self.c / last);
        let until = accepted_until(self.c, norm, loss, dual, tol).max(last);
        (solution.w, solution.intercept) = (point.w, point.b);
        *accepted = AcceptedFit { norm, loss, until, ..*accepted };
        true
    }

    /// Multiplies the dual variables and their weights for the step from `last` to the present `C`.
    ///
    /// Chu15, eq. (14), takes the ratio of the two, which theorem 4 says is right in the limit where the rows
    /// are not separable. Deviation: of 1, the ratio and its square root the one with the largest dual value
    /// is taken; on separable data the dual variables hardly grow any more at large `C`, and the ratio would
    /// throw the start far off. Reads no data.
    fn rescale(&self, start: &mut Start, last: f64) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Intercept, Silent};
    use crate::labels::{Labels, MultiClass};
    use crate::loss::LossKind;
    use crate::matrix::dense::DenseView;
    use crate::parallel;
    use crate::search::folds::{Fold, parts};
    use crate::search::{Route, RouteState, SearchSettings, StopRule};
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

    fn settings(loss: LossKind, intercept: Intercept, params: Params) -> SearchSettings {
        SearchSettings { loss, intercept, params, multi_class: MultiClass::OneVsRest }
    }

    /// Calls `f` with the lanes of a search up to `last` on rows with labels and weights.
    fn with_setup<T>(
        (x, ids, weight): (&[f64], &[u32], &[f64]),
        folds: &[Fold],
        settings: &SearchSettings,
        last: f64,
        f: impl FnOnce(&LaneSetup<'_>) -> T,
    ) -> T {
        let rows = crate::matrix::Matrix::from(DenseView::new(x, ids.len(), COLUMNS).unwrap().0);
        let labels = Labels { ids, n_classes: ids.iter().max().unwrap() + 1 };
        let parts = parts(ids.len(), &labels, weight, folds).unwrap();
        let (rows, labels, parts) = (&rows, &labels, &parts);
        let stop = StopRule::Exact;
        f(&LaneSetup { rows, labels, weight, parts, settings, last, stop, monitor: &Silent })
    }

    /// Runs the route over doublings up to `last`, and checks after each step, at that and every later value,
    /// that what the route promises about its solutions is true: their objective there is what it says, and
    /// within the gap of the optimum. Returns the value from which on nothing changes.
    fn check_promises(seed: u64, wrong: f64, loss: LossKind, intercept: Intercept) -> f64 {
        let (n, last) = (60, 4096.0);
        let (x, ids) = data(n, seed, wrong);
        let all: Vec<u32> = (0..n as u32).collect();
        let folds = [
            Fold { train: all[..40].to_vec(), test: all[40..].to_vec() },
            Fold { train: all[10..].to_vec(), test: all[..10].to_vec() },
        ];
        let weight: Vec<f64> = (0..n).map(|i| 0.5 + (i % 3) as f64).collect();
        let params = Params { solver: SolverKind::DualCd, tol: TOL, max_iter: 100_000, seed };
        let settings = settings(loss, intercept, params);
        with_setup((&x, &ids, &weight), &folds, &settings, last, check_setup)
    }

    /// [`check_promises`] of a search.
    fn check_setup(setup: &LaneSetup<'_>) -> f64 {
        let SearchSettings { loss, intercept, .. } = *setup.settings;
        let last = setup.last;
        let optimum = |k: usize, c: f64| {
            let (y, cost) = (setup.signs(k), setup.part(k).weight.iter().map(|v| c * v).collect::<Vec<_>>());
            let problem: Problem<'_> = setup.problem(k, &y, &cost);
            let params = Params { solver: SolverKind::Newton, tol: 1e-9, max_iter: 10_000, seed: 0 };
            auto::solve(&problem, loss, &params, &Start::default(), &Silent).unwrap().certificate.primal
        };
        let mut route = super::route(setup);
        let (mut c, mut end) = (1.0 / 64.0, last);
        while c <= last {
            let step = route.advance(c).unwrap();
            assert!(step.is_converged);
            for (k, lane) in route.lanes.iter().enumerate() {
                let (accepted, kept) = lane.solution.as_ref().unwrap();
                let (w, b) = kept.start.w.as_ref().unwrap();
                let until = accepted.until.min(last);
                for (at, is_present) in [(c, true), (0.5 * (c + until), false), (until, false)] {
                    let losses = setup.part(k).train.iter().zip(setup.signs(k)).zip(&setup.part(k).weight);
                    let loss_of = |((&i, y), v): ((&u32, f64), &f64)| {
                        let margin = y * (setup.rows.dot(i as usize, w) + b);
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
            intercept in prop::sample::select(vec![
                Intercept::None,
                Intercept::Free,
                Intercept::Penalised(2.0),
            ]),
        ) {
            check_promises(seed, wrong, loss, intercept);
        }
    }

    /// Many classes, which descend at once, keep the promises, too, and have the same bits on any number of
    /// threads and from any state.
    #[test]
    fn accepted_solutions_of_many_classes_are_within_the_gap() {
        let n = 150;
        let (x, _) = data(n, 5, 0.0);
        let ids: Vec<u32> = (0..n as u32).map(|i| if i % 7 == 3 { i * i % 13 } else { i % 13 }).collect();
        let all: Vec<u32> = (0..n as u32).collect();
        let folds = [
            Fold { train: all[..110].to_vec(), test: all[110..].to_vec() },
            Fold { train: all[30..].to_vec(), test: all[..30].to_vec() },
        ];
        let weight: Vec<f64> = (0..n).map(|i| 0.5 + (i % 3) as f64).collect();
        let params = Params { solver: SolverKind::DualCd, tol: TOL, max_iter: 100_000, seed: 1 };
        for (loss, intercept) in [
            (LossKind::Hinge, Intercept::None),
            (LossKind::SquaredHinge, Intercept::Free),
            (LossKind::Logistic, Intercept::Penalised(2.0)),
        ] {
            let settings = settings(loss, intercept, params);
            with_setup((&x, &ids, &weight), &folds, &settings, 16.0, |setup| {
                check_setup(setup);
                let groups = super::route(setup);
                assert!(groups.fits().at_once(1.0, &groups.lanes).len() >= 4);
                let walk = || {
                    let mut route = super::route(setup);
                    let step = |k: i32| {
                        let step = route.advance(0.5f64.powi(k)).unwrap();
                        let state = route.state();
                        route = super::route(setup);
                        route.restore(&state).unwrap();
                        (step.objective, step.decisions, state)
                    };
                    (-4..=4).rev().map(step).collect::<Vec<_>>()
                };
                assert!(parallel::alone(walk) == walk());
            });
        }
    }

    #[test]
    fn separable_data_end_early() {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised(2.0)] {
            let end = check_promises(3, 0.0, LossKind::Hinge, intercept);
            assert!(end < 4096.0, "{intercept:?}: {end}");
        }
    }

    /// The solver of each lane at rising values of `C`, and the objectives, of rows far from the origin.
    fn walk(solver: SolverKind) -> (Vec<Vec<SolverKind>>, Vec<Vec<f64>>) {
        let n = 9_000;
        let (mut x, ids) = data(n, 1, 0.0);
        x.iter_mut().for_each(|value| *value += 4.0);
        let (low, high): (Vec<u32>, Vec<u32>) = (0..n as u32).partition(|i| i % 10 == 0);
        let folds = [Fold { train: high.clone(), test: low.clone() }, Fold { train: high, test: low }];
        let weight = vec![1.0; n];
        let params = Params { solver, tol: TOL, max_iter: 10_000, seed: 0 };
        let settings = settings(LossKind::Hinge, Intercept::Free, params);
        with_setup((&x, &ids, &weight), &folds, &settings, 64.0, |setup| {
            let mut route = super::route(setup);
            let mut step = |k: i32| {
                let step = route.advance(0.5f64.powi(k)).unwrap();
                let solvers = route.lanes.iter().map(|lane| lane.solution.as_ref().unwrap().1.solver);
                (solvers.collect(), step.objective)
            };
            (-6..=14).rev().map(&mut step).unzip()
        })
    }

    #[test]
    fn a_lane_goes_to_newton_where_descent_is_slow_and_stays_there() {
        use SolverKind::{Auto, DualCd, Newton};
        let (solvers, objectives) = walk(Auto);
        let (descents, expected) = walk(DualCd);
        assert!(descents.iter().flatten().all(|s| *s == DualCd));
        assert_eq!(solvers[0], [DualCd, DualCd]);
        assert_eq!(solvers[solvers.len() - 1], [Newton, Newton]);
        for pair in solvers.windows(2) {
            assert!(
                pair[0].iter().zip(&pair[1]).all(|(before, after)| *before == DualCd || *after == Newton)
            );
        }
        for (found, expected) in objectives.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found / expected - 1.0).abs() <= GAP_PER_TOL * TOL + 1e-9, "{found} {expected}");
        }
    }

    #[test]
    fn states_of_another_search_are_refused() {
        let (x, ids) = data(20, 0, 0.0);
        let folds = [Fold { train: (0..20).collect(), test: vec![0] }];
        let params = Params { solver: SolverKind::DualCd, tol: TOL, max_iter: 100, seed: 0 };
        let settings = settings(LossKind::Hinge, Intercept::None, params);
        with_setup((&x, &ids, &[1.0; 20]), &folds, &settings, 1.0, |setup| {
            let mut route = super::route(setup);
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
        });
    }
}
