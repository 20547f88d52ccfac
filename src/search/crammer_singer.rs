//! The route of Crammer-Singer fits to a duality gap: one lane per fold, all classes in it.
//!
//! Each lane keeps its dual variables and starts the next `C` from a multiple of them: of the factors between
//! 1 and the ratio of the two `C`, all of which keep them feasible, the one with the largest dual value,
//! `sum / |W|^2` without bounds. As in [`super::dual`], a solution with norm part `R`, loss `L` and dual
//! value `D` stays accepted up to `C ((1 + tol) D - R) / L`.
//!
//! Memory per fold: the sparse dual variables, and for each of the fits in flight the weights of all classes.

use std::sync::Arc;

use super::dual::{GAP_PER_TOL, accepted_until};
use super::folds::Setup;
use super::lane::Done;
use super::watch::Watch;
use super::{Route, State, Step, lane};
use crate::fit::crammer_singer::{Alpha, ClassProblem, ClassSolution, ClassStart};
use crate::fit::{Intercept, Monitor, Params, SolverKind, Status, check_length, crammer_singer};
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::memory::CollectLarge;
use crate::{Result, memory, parallel};

/// All folds.
pub struct CrammerSinger<'a> {
    setup: &'a Setup<'a>,
    lanes: Vec<Lane>,
    decisions: Arc<Vec<Vec<f64>>>,
}

/// One fold between two values of `C`.
#[derive(Clone, Default)]
struct Lane {
    start: ClassStart,
    fitted: Option<Fitted>,
}

/// The last certified fit of a fold.
#[derive(Clone, Copy)]
struct Fitted {
    c: f64,
    /// `1/2 |W|^2`, and the loss part of the primal value at `c`.
    norm: f64,
    loss: f64,
    /// Factor of the dual variables with the largest dual value, without bounds.
    factor: f64,
    /// Largest `C` at which the solution is accepted unchanged.
    until: f64,
}

impl<'a> CrammerSinger<'a> {
    /// Starts before the first value of `C`.
    pub fn new(setup: &'a Setup<'a>) -> Self {
        let lanes = vec![Lane::default(); setup.parts.len()];
        Self { setup, lanes, decisions: Arc::new(setup.no_decisions()) }
    }
}

/// One step of one fold.
struct Fold<'a> {
    setup: &'a Setup<'a>,
    fold: usize,
    c: f64,
    monitor: &'a dyn Monitor,
}

impl Fold<'_> {
    fn advance(&self, lane: &mut Lane) -> Result<Done> {
        let Self { setup, fold, c, monitor } = *self;
        if let Some(fitted) = lane.fitted.filter(|fitted| fitted.c <= c && c <= fitted.until) {
            return Ok(Done::unchanged(fitted.norm + c / fitted.c * fitted.loss, fitted.until));
        }
        let part = &setup.parts[fold];
        let class: Vec<u32> = part.train.iter().map(|&i| setup.labels.ids[i as usize]).collect_large();
        let cost: Vec<f64> = part.weight.iter().map(|v| c * v).collect_large();
        let problem = ClassProblem {
            rows: setup.rows,
            ids: Some(&part.train),
            class: &class,
            n_classes: setup.labels.n_classes as usize,
            cost: &cost,
            intercept: setup.settings.intercept,
        };
        let tol = GAP_PER_TOL * setup.settings.tol;
        let params = Params {
            solver: SolverKind::CrammerSinger,
            tol,
            max_iter: setup.settings.max_iter,
            seed: setup.settings.seed.wrapping_add(fold as u64),
        };
        if let Some(last) = lane.fitted {
            lane.start.factor = Some(last.factor.clamp(1.0, c / last.c));
        }
        let solution = crammer_singer::solve(&problem, &params, &lane.start, 1, monitor)?;
        let is_converged = solution.status == Status::Converged;
        let norm = 0.5 * squared_norm(&solution, setup);
        let loss = (solution.certificate.primal - norm).max(0.0);
        let until =
            if is_converged { accepted_until(c, norm, loss, solution.certificate.dual, tol) } else { c };
        let factor = if norm > 0.0 { solution.alpha.values.iter().sum::<f64>() / (2.0 * norm) } else { 1.0 };
        let objective = solution.certificate.primal;
        let decisions = Some(self.decisions(&solution));
        let (passes, n_iter) = (solution.passes, solution.n_iter);
        let start =
            ClassStart { alpha: Some(solution.alpha), intercepts: Some(solution.intercepts), factor: None };
        *lane = Lane { start, fitted: Some(Fitted { c, norm, loss, factor, until }) };
        Ok(Done { passes, n_iter, is_converged, is_unchanged: false, objective, until, decisions })
    }

    /// Decision values of the held-out rows: one per class, for two classes that of the second less that of
    /// the first.
    fn decisions(&self, solution: &ClassSolution) -> Vec<f64> {
        let (rows, b) = (Design { rows: self.setup.rows, ids: None, bias: 0.0 }, &solution.intercepts);
        let mut scores = memory::zeros(solution.weights.padded());
        let n_values = if b.len() == 2 { 1 } else { b.len() };
        let mut decisions = memory::with_capacity(self.setup.parts[self.fold].test.len() * n_values);
        for &i in self.setup.parts[self.fold].test {
            solution.weights.scores(&rows, i as usize, &mut scores);
            if b.len() == 2 {
                decisions.push(scores[1] + b[1] - scores[0] - b[0]);
            } else {
                decisions.extend(scores.iter().zip(b).map(|(s, b)| s + b));
            }
        }
        decisions
    }
}

/// `sum_m |w_m|^2`, with the penalised intercepts.
fn squared_norm(solution: &ClassSolution, setup: &Setup<'_>) -> f64 {
    let constant = match setup.settings.intercept {
        Intercept::Penalised(s) => solution.intercepts.iter().map(|b| (b / s).powi(2)).sum(),
        _ => 0.0,
    };
    solution.weights.squared(setup.rows.n_cols()) + constant
}

impl Route for CrammerSinger<'_> {
    fn advance(&mut self, c: f64) -> Result<Step> {
        let setup = self.setup;
        let watch = Watch::new(setup.monitor, c, self.lanes.len());
        let mut done = parallel::try_map(&mut self.lanes, |fold, lane| {
            let done = Fold { setup, fold, c, monitor: &watch }.advance(lane)?;
            watch.finish(done.passes);
            Ok(done)
        })?;
        for (fold, done) in done.iter_mut().enumerate() {
            if let Some(decisions) = done.decisions.take() {
                Arc::make_mut(&mut self.decisions)[fold] = decisions;
            }
        }
        Ok(lane::step(c, &done, &self.decisions))
    }

    fn state(&self) -> State {
        let scores = self.decisions.iter().cloned();
        State(self.lanes.iter().flat_map(Lane::arrays).chain(scores).collect())
    }

    fn restore(&mut self, state: &State) -> Result<()> {
        let n = self.lanes.len();
        check_length("arrays of a search state", n * (ARRAYS + 1), state.0.len())?;
        let (lanes, scores) = state.0.split_at(n * ARRAYS);
        let rebuilt = lanes.chunks_exact(ARRAYS).enumerate().map(|(fold, arrays)| {
            Lane::rebuild(arrays, self.setup.parts[fold].train.len(), self.setup.labels.n_classes as usize)
        });
        let rebuilt = rebuilt.collect::<Result<_>>()?;
        for (scores, present) in scores.iter().zip(self.decisions.iter()) {
            check_length("decision values of a search state", present.len(), scores.len())?;
        }
        self.lanes = rebuilt;
        self.decisions = Arc::new(memory::copy(scores));
        Ok(())
    }
}

/// Arrays of a lane's state: facts, intercepts, and starts, classes and values of the dual variables; empty
/// before the first fit.
const ARRAYS: usize = 5;
/// Numbers in the first of them.
const FACTS: usize = 5;

impl Lane {
    fn arrays(&self) -> [Vec<f64>; ARRAYS] {
        let (Some(f), Some(alpha), Some(b)) = (self.fitted, &self.start.alpha, &self.start.intercepts) else {
            return Default::default();
        };
        let starts = alpha.starts.iter().map(|s| *s as f64).collect_large();
        let classes = alpha.classes.iter().map(|c| f64::from(*c)).collect_large();
        [
            vec![f.c, f.norm, f.loss, f.factor, f.until],
            memory::copy(b),
            starts,
            classes,
            memory::copy(&alpha.values),
        ]
    }

    fn rebuild(arrays: &[Vec<f64>], n_rows: usize, n_classes: usize) -> Result<Self> {
        let [facts, b, starts, classes, values] = arrays else { unreachable!("a lane has {ARRAYS} arrays") };
        if facts.is_empty() {
            return Ok(Self::default());
        }
        check_length("facts of a search state", FACTS, facts.len())?;
        check_length("intercepts of a search state", n_classes, b.len())?;
        check_length("rows of a search state", n_rows + 1, starts.len())?;
        let alpha = Alpha {
            starts: starts.iter().map(|s| *s as usize).collect_large(),
            classes: classes.iter().map(|c| *c as u32).collect_large(),
            values: memory::copy(values),
        };
        alpha.check(n_classes)?;
        let [c, norm, loss, factor, until] = facts[..] else {
            unreachable!("the number of facts is checked")
        };
        let start = ClassStart { alpha: Some(alpha), intercepts: Some(memory::copy(b)), factor: None };
        Ok(Self { start, fitted: Some(Fitted { c, norm, loss, factor, until }) })
    }
}
