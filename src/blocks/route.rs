//! All lanes of a search for `C` over a store: the folds (and classes) of [`crate::search`] as held-out
//! problems of one descent.
//!
//! A lane is one binary problem of one fold. All lanes that must move to the next `C` descend side by side,
//! so that one reading of a block, one cache and one certifying scan serve them all; one more scan predicts
//! the held-out rows of all of them. As in [`crate::search::dual`], each lane starts from its dual variables
//! at the `C` before, scaled, and a lane whose solution stays accepted at the next `C` takes no part; if
//! none does, nothing is read.
//!
//! Classes, weights and folds of all rows are in memory (13 bytes per row, and 4 for the position in the
//! held-out part), which makes the scaling exact: the dual value of each factor is computed, and so are
//! the sums that the descent keeps.
//!
//! The cache is empty at the beginning of each `C`: a state is then the lanes' own, and a search that goes on
//! from a journal has the bits of one that was never stopped. It costs the help of the cache for the first
//! blocks of each `C`.

use std::sync::Arc;

use rayon::prelude::*;

use super::budget::MemoryPlan;
use super::descent::BlockDescent;
use super::problem::ProblemEnd;
use super::scan::for_pages;
use super::settings::BlockSettings;
use super::state::{BinaryProblem, BinaryState};
use super::sums::Sums;
use super::task::BinaryTask;
use super::{task, trainer};
use crate::fit::sweep::{dot, sum};
use crate::fit::{Intercept, Monitor, Progress, Reading, SearchProgress, Status, check_length};
use crate::loss::{Loss, with_loss};
use crate::matrix::Rows;
use crate::memory::CollectLarge;
use crate::search::lane::{AcceptedFit, Done, Saved, SearchLane, step};
use crate::search::{Route, RouteState, SearchStep};
use crate::source::fetch::{Fetch, Kept};
use crate::source::mapped::mapped;
use crate::store::format::checksum;
use crate::store::reader::Store;
use crate::{Result, labels, memory};

/// What all lanes share. SearchLane `k` is problem `k % n_problems` of fold `k / n_problems`.
pub struct StoreSetup<'a> {
    /// The rows.
    pub store: &'a Store,
    /// How to descend; `tol` is the relative duality gap of the fits.
    pub settings: BlockSettings<'a>,
    /// The division of the budget, for all lanes.
    pub plan: &'a MemoryPlan,
    /// Class weights.
    pub factor: &'a [f64],
    /// Class of each row, by position.
    pub classes: Vec<u32>,
    /// Sample weight of each row, by position.
    pub weights: Vec<f64>,
    /// Fold that holds each row out, by position; [`NO_FOLD`] for none.
    pub folds: Vec<u8>,
    /// Position of each row within the held-out part of its fold.
    pub test_positions: Vec<u32>,
    /// Rows held out by each fold.
    pub sizes: Vec<usize>,
    /// Progress and cancelling.
    pub monitor: &'a dyn Monitor,
}

/// The fold of a row that no fold holds out.
pub const NO_FOLD: u8 = u8::MAX;

impl StoreSetup<'_> {
    /// Weights of a lane, a constant column left out.
    fn n_weights(&self) -> usize {
        self.settings.n_weights(self.store)
    }

    /// Binary problems per fold.
    pub fn n_problems(&self) -> usize {
        labels::n_problems(self.factor.len())
    }

    /// Folds times problems.
    pub fn n_lanes(&self) -> usize {
        self.sizes.len() * self.n_problems()
    }

    fn task(&self, lane: usize, c: f64) -> BinaryTask {
        let p = self.n_problems();
        let positive = if p == 1 { 1 } else { (lane % p) as u32 };
        let cost = self.factor.iter().map(|factor| c * factor).collect_large();
        BinaryTask { positive, cost, held_out: Some((lane / p) as u8) }
    }
}

/// The route of all lanes.
pub struct StoreRoute<'a> {
    setup: &'a StoreSetup<'a>,
    lanes: Vec<SearchLane<StoreSolution>>,
    /// Stored bytes of pages, where they are kept.
    kept: Vec<Vec<u8>>,
    decisions: Arc<Vec<Vec<f64>>>,
}

/// What a lane keeps of a fit.
#[derive(Debug)]
struct StoreSolution {
    w: Vec<f64>,
    alpha: Vec<f64>,
    offset: f64,
    intercept: f64,
    is_converged: bool,
}

impl<'a> StoreRoute<'a> {
    /// Starts before the first value of `C`.
    pub fn new(setup: &'a StoreSetup<'a>) -> Self {
        let decisions =
            setup.sizes.iter().map(|size| memory::zeros(size * setup.n_problems())).collect_large();
        let lanes = (0..setup.n_lanes()).map(|_| SearchLane::default()).collect();
        Self { setup, lanes, kept: Vec::new(), decisions: Arc::new(decisions) }
    }

    /// The start of a lane at `c`.
    fn start<'t>(&mut self, lane: usize, task: &'t BinaryTask, c: f64) -> Result<BinaryProblem<'t>> {
        let setup = self.setup;
        let mut fresh = BinaryProblem::new(setup.store, task, &setup.settings, None)?;
        if let Some((accepted, kept)) = self.lanes[lane].solution.take() {
            let d = setup.n_weights();
            (fresh.state.w, fresh.state.alpha, fresh.state.offset) = (kept.w, kept.alpha, kept.offset);
            let old_task = setup.task(lane, accepted.c);
            let old_bias = task::bias(setup.store, &old_task.cost, &setup.settings);
            let rescaling = Rescaling { setup, task, ratio: c / accepted.c };
            with_loss!(setup.settings.loss, loss => rescaling.apply(loss, &mut fresh.state));
            // The constant column of a free intercept has another height at another C.
            if setup.settings.intercept == Intercept::Free {
                fresh.state.w[d] *= fresh.bias / old_bias;
            }
        }
        Ok(fresh)
    }

    /// Descends with the lanes of the given numbers; the readings of the data and the passes in all.
    fn descend(&mut self, due: &[usize], c: f64) -> Result<(f64, usize)> {
        let setup = self.setup;
        let tasks: Vec<BinaryTask> = due.iter().map(|&lane| setup.task(lane, c)).collect();
        let problems =
            due.iter().zip(&tasks).map(|(&lane, task)| self.start(lane, task, c)).collect::<Result<_>>()?;
        let seed = checksum(setup.settings.seed, &c.to_le_bytes());
        let settings = BlockSettings { seed, ..setup.settings };
        let watch = Watch { caller: setup.monitor, c, lanes_left: due.len() };
        let kept = std::mem::take(&mut self.kept);
        let remains = std::thread::scope(|scope| -> Result<_> {
            let plan = setup.plan;
            let fetch = Fetch::start(scope, setup.store, &plan.blocks, kept, plan.keeps_stored, &watch)?;
            let mut descent = BlockDescent::new(problems, &setup.folds, &settings, plan, fetch, &watch)?;
            descent.run(|_| Ok(()))?;
            Ok(descent.into_parts())
        })?;
        self.kept = remains.kept;
        let (mut passes, mut n_iter) = ((remains.scans * due.len() as u64) as f64, 0);
        let ends = remains.ends.into_iter().flatten();
        for ((&lane, problem), end) in due.iter().zip(remains.problems).zip(ends) {
            passes += problem.state.visits as f64 / setup.store.meta().n_rows as f64;
            n_iter += end.n_iter;
            let solution = Some(self.solution(c, problem.state, &end));
            self.lanes[lane] = SearchLane { solution, is_scored: false };
        }
        Ok((passes, n_iter))
    }

    fn solution(&self, c: f64, state: BinaryState, end: &ProblemEnd) -> (AcceptedFit, StoreSolution) {
        let (setup, d) = (self.setup, self.setup.n_weights());
        let BinaryState { w, alpha, offset, .. } = state;
        let penalised = if setup.settings.intercept == Intercept::Free { &w[..d] } else { &w[..] };
        let (norm, is_converged) = (0.5 * dot(penalised, penalised), end.status == Status::Converged);
        let accepted = AcceptedFit::new(c, norm, end.certified.certificate, is_converged, setup.settings.tol);
        let intercept = match setup.settings.intercept {
            Intercept::None => 0.0,
            Intercept::Free => end.certified.intercept,
            Intercept::Penalised(scale) => scale * w[d],
        };
        (accepted, StoreSolution { w, alpha, offset, intercept, is_converged })
    }

    /// Predicts the held-out rows of all lanes that are not predicted yet: one reading.
    fn score(&mut self) -> Result<()> {
        let setup = self.setup;
        let (store, d, p) = (setup.store, setup.n_weights(), setup.n_problems());
        if self.lanes.iter().all(|lane| lane.is_scored) {
            return Ok(());
        }
        let lanes = &self.lanes;
        let page = |page: usize,
                    view: crate::matrix::arena::View<'_>,
                    _: &crate::store::reader::RowFacts,
                    (): ()| {
            let first = store.starts()[page] as usize;
            let mut found: Vec<(u32, f64)> = Vec::new();
            let rows = &mapped(view, setup.settings.map);
            for i in 0..rows.n_rows() {
                let fold = setup.folds[first + i];
                if fold == NO_FOLD {
                    continue;
                }
                for problem in 0..p {
                    let lane = &lanes[fold as usize * p + problem];
                    if let (false, Some((_, kept))) = (lane.is_scored, &lane.solution) {
                        found.push((problem as u32, rows.dot(i, &kept.w[..d]) + kept.intercept));
                    }
                }
            }
            found
        };
        let items = vec![(); store.pages().len()];
        let pages = for_pages(store, &Kept::of(&self.kept), store.width(), items, setup.monitor, page)?;
        let decisions = Arc::make_mut(&mut self.decisions);
        for (page, found) in pages.into_iter().enumerate() {
            let mut found = found.into_iter();
            for position in store.starts()[page] as usize..store.starts()[page + 1] as usize {
                let fold = setup.folds[position];
                if fold == NO_FOLD {
                    continue;
                }
                let open = lanes[fold as usize * p..][..p].iter().filter(|lane| !lane.is_scored).count();
                for (problem, value) in found.by_ref().take(open) {
                    decisions[fold as usize]
                        [setup.test_positions[position] as usize * p + problem as usize] = value;
                }
            }
        }
        self.lanes.iter_mut().for_each(|lane| lane.is_scored = true);
        Ok(())
    }
}

impl Route for StoreRoute<'_> {
    fn advance(&mut self, c: f64) -> Result<SearchStep> {
        let due: Vec<usize> =
            (0..self.lanes.len()).filter(|&k| self.lanes[k].accepted_at(c).is_none()).collect();
        let (passes, n_iter) = if due.is_empty() { (0.0, 0) } else { self.descend(&due, c)? };
        self.score()?;
        let done = |(accepted, kept): &(AcceptedFit, StoreSolution)| Done {
            passes: 0.0,
            n_iter: 0,
            is_converged: kept.is_converged,
            is_unchanged: due.is_empty(),
            objective: accepted.objective(c),
            until: accepted.until,
        };
        let done: Vec<Done> = self.lanes.iter().filter_map(|lane| lane.solution.as_ref().map(done)).collect();
        Ok(SearchStep { passes, n_iter, ..step(c, &done, &self.decisions) })
    }

    fn state(&self) -> RouteState {
        RouteState(SearchLane::arrays(&self.lanes))
    }

    fn restore(&mut self, state: &RouteState) -> Result<()> {
        let d = self.setup.n_weights() + usize::from(self.setup.settings.intercept != Intercept::None);
        let n = self.setup.store.meta().n_rows as usize;
        self.lanes = SearchLane::rebuild(state.lanes(self.lanes.len(), StoreSolution::ARRAYS)?, |_| [d, n])?;
        Ok(())
    }
}

impl Saved for StoreSolution {
    /// Weights, a constant column included, and rows.
    type Shape = [usize; 2];
    /// Facts, weights, dual variables.
    const ARRAYS: usize = 3;

    fn arrays(&self, accepted: &AcceptedFit) -> Vec<Vec<f64>> {
        let AcceptedFit { c, norm, loss, until } = *accepted;
        let is_converged = f64::from(u8::from(self.is_converged));
        let facts = vec![c, norm, loss, until, self.intercept, is_converged, self.offset];
        vec![facts, memory::copy(&self.w), memory::copy(&self.alpha)]
    }

    fn rebuild(arrays: &[Vec<f64>], [d, n]: [usize; 2]) -> Result<(AcceptedFit, Self)> {
        let [facts, w, alpha] = arrays else { unreachable!("a lane has three arrays") };
        check_length("facts of a search state", 7, facts.len())?;
        check_length("weights of a search state", d, w.len())?;
        check_length("dual variables of a search state", n, alpha.len())?;
        let [c, norm, loss, until, intercept, is_converged, offset] = facts[..] else {
            unreachable!("the number of facts is checked")
        };
        let (w, alpha, is_converged) = (memory::copy(w), memory::copy(alpha), is_converged != 0.0);
        Ok((AcceptedFit { c, norm, loss, until }, Self { w, alpha, offset, intercept, is_converged }))
    }
}

/// Scales the dual variables of a lane, its start at the next `C` (Chu15, eq. 14).
///
/// Deviation, as in memory: of the factors 1, the ratio and its square root the one with the largest dual
/// value is taken.
struct Rescaling<'a> {
    setup: &'a StoreSetup<'a>,
    task: &'a BinaryTask,
    ratio: f64,
}

impl Rescaling<'_> {
    /// Cost and label of the row at a position.
    fn row(&self, position: usize) -> (f64, f64) {
        let (class, setup) = (self.setup.classes[position], self.setup);
        (self.task.cost(class, setup.weights[position], Some(setup.folds[position])), self.task.sign(class))
    }

    fn apply<L: Loss>(&self, loss: L, state: &mut BinaryState) {
        let d = self.setup.n_weights();
        let is_free = self.setup.settings.intercept == Intercept::Free;
        let w = if is_free { &state.w[..d] } else { &state.w[..] };
        let half = 0.5 * dot(w, w);
        let moved = |a: f64, t: f64, c: f64| (t * a).min(loss.upper(c));
        let factors = [1.0, self.ratio.sqrt(), self.ratio];
        let alpha = &state.alpha;
        let terms: [f64; 3] = sum(alpha.len(), |position| {
            let (c, _) = self.row(position);
            if c == 0.0 { [0.0; 3] } else { factors.map(|t| loss.dual_term(c, moved(alpha[position], t, c))) }
        });
        let value = |k: usize| terms[k] - factors[k] * factors[k] * half;
        let best = (0..3).max_by(|&a, &b| value(a).total_cmp(&value(b))).map_or(1.0, |k| factors[k]);
        state.alpha.par_iter_mut().enumerate().with_min_len(1 << 14).for_each(|(position, a)| {
            let (c, _) = self.row(position);
            *a = if c == 0.0 { 0.0 } else { moved(*a, best, c) };
        });
        state.w.iter_mut().for_each(|w| *w *= best);
        let alpha = &state.alpha;
        let [terms, all_0, all_1, inside_0, inside_1] = sum(alpha.len(), |position| {
            let ((c, y), mut sums) = (self.row(position), Sums::default());
            if c > 0.0 {
                sums.add(loss, 1.0, y, c, alpha[position]);
            }
            [sums.terms, sums.all[0], sums.all[1], sums.inside[0], sums.inside[1]]
        });
        state.sums = Sums { terms, all: [all_0, all_1], inside: [inside_0, inside_1] };
    }
}

/// Adds to the news of a descent where the search is.
struct Watch<'a> {
    caller: &'a dyn Monitor,
    c: f64,
    lanes_left: usize,
}

impl Monitor for Watch<'_> {
    fn cancelled(&self) -> bool {
        self.caller.cancelled()
    }

    fn observe_reading(&self, reading: &Reading) {
        let search = Some(SearchProgress { c: self.c, lanes_left: self.lanes_left, passes: reading.passes });
        let (solver, iteration) = (trainer::NAME, reading.passes as usize);
        self.caller.observe(&Progress { solver, iteration, accuracy: reading.gap, search });
    }
}
