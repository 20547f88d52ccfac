//! All lanes of a search for `C` over a store: the folds (and classes) of [`crate::search`] as held-out
//! problems of one descent.
//!
//! A lane is one binary problem of one fold. All lanes that must move to the next `C` descend side by side,
//! so that one reading of a block, one cache and one certifying scan serve them all; one more scan predicts
//! the held-out rows of all of them. As in [`crate::search::dual`], each lane starts from its dual variables
//! at the `C` before, stretched, and a lane whose solution stays accepted at the next `C` takes no part; if
//! none does, nothing is read.
//!
//! Classes, weights and folds of all rows are in memory (13 bytes per row, and 4 for the place in the
//! held-out part), which makes the stretching exact: the dual value of each factor is computed, and so are
//! the sums that the descent keeps.
//!
//! The cache is empty at the beginning of each `C`: a state is then the lanes' own, and a search that goes on
//! from a journal has the bits of one that was never stopped. It costs the help of the cache for the first
//! blocks of each `C`.

use std::sync::Arc;

use rayon::prelude::*;

use super::budget::Plan;
use super::descent::{Descent, End};
use super::scan::for_pages;
use super::task::{Running, State, Sums, Task};
use super::{Settings, task, trainer};
use crate::fit::sweep::{dot, sum};
use crate::fit::{Intercept, Monitor, Progress, Reading, SearchProgress, Status, check_length};
use crate::loss::{Loss, with_loss};
use crate::matrix::Rows;
use crate::memory::CollectLarge;
use crate::search::dual::accepted_until;
use crate::search::{Route, Step};
use crate::source::fetch::{Fetch, Kept};
use crate::source::mapped::mapped;
use crate::store::format::checksum;
use crate::store::reader::Store;
use crate::{Result, memory};

/// What all lanes share. Lane `k` is problem `k % n_problems` of fold `k / n_problems`.
pub struct Setup<'a> {
    /// The rows.
    pub store: &'a Store,
    /// How to descend; `tol` is the relative duality gap of the fits.
    pub settings: Settings<'a>,
    /// The division of the budget, for all lanes.
    pub plan: &'a Plan,
    /// Class weights.
    pub factor: &'a [f64],
    /// Class of each row, by place.
    pub classes: Vec<u32>,
    /// Sample weight of each row, by place.
    pub weights: Vec<f64>,
    /// Fold that holds each row out, by place; [`NO_FOLD`] for none.
    pub parts: Vec<u8>,
    /// Place of each row within the held-out part of its fold.
    pub positions: Vec<u32>,
    /// Rows held out by each fold.
    pub sizes: Vec<usize>,
    /// The caller's eyes and brake.
    pub monitor: &'a dyn Monitor,
}

/// The part of a row that no fold holds out.
pub const NO_FOLD: u8 = u8::MAX;

impl Setup<'_> {
    /// Weights of a lane, a constant column left out.
    fn n_weights(&self) -> usize {
        self.settings.n_weights(self.store)
    }

    /// Binary problems per fold.
    pub fn n_problems(&self) -> usize {
        if self.factor.len() == 2 { 1 } else { self.factor.len() }
    }

    /// Folds times problems.
    pub fn n_lanes(&self) -> usize {
        self.sizes.len() * self.n_problems()
    }

    fn task(&self, lane: usize, c: f64) -> Task {
        let p = self.n_problems();
        let positive = if p == 1 { 1 } else { (lane % p) as u32 };
        let cost = self.factor.iter().map(|factor| c * factor).collect_large();
        Task { positive, cost, held_out: Some((lane / p) as u8) }
    }
}

/// The lanes on their way.
pub struct StoreRoute<'a> {
    setup: &'a Setup<'a>,
    lanes: Vec<Lane>,
    /// Stored bytes of pages, where they are kept.
    kept: Vec<Vec<u8>>,
    decisions: Arc<Vec<Vec<f64>>>,
}

/// One binary problem of one fold, between two values of `C`.
#[derive(Clone, Debug)]
struct Lane {
    w: Vec<f64>,
    alpha: Vec<f64>,
    offset: f64,
    fitted: Option<Fitted>,
    /// The held-out rows are predicted from the present weights.
    is_scored: bool,
}

/// The last certified fit of a lane.
#[derive(Clone, Copy, Debug)]
struct Fitted {
    c: f64,
    /// Norm and loss parts of the primal value at `c`.
    norm: f64,
    loss: f64,
    /// Largest `C` at which the solution is accepted unchanged.
    until: f64,
    intercept: f64,
    is_converged: bool,
}

/// Arrays of a lane's state: facts, weights, dual variables; empty before the first fit.
const ARRAYS: usize = 3;

impl<'a> StoreRoute<'a> {
    /// Starts before the first value of `C`.
    pub fn new(setup: &'a Setup<'a>) -> Self {
        let lane = Lane { w: Vec::new(), alpha: Vec::new(), offset: 0.0, fitted: None, is_scored: false };
        let decisions =
            setup.sizes.iter().map(|size| memory::zeros(size * setup.n_problems())).collect_large();
        Self { setup, lanes: vec![lane; setup.n_lanes()], kept: Vec::new(), decisions: Arc::new(decisions) }
    }

    /// The start of a lane at `c`.
    fn start<'t>(&mut self, lane: usize, task: &'t Task, c: f64) -> Result<Running<'t>> {
        let setup = self.setup;
        let mut fresh = Running::new(setup.store, task, &setup.settings, None)?;
        let old = &mut self.lanes[lane];
        if let Some(fitted) = old.fitted {
            let d = setup.n_weights();
            (fresh.state.w, fresh.state.alpha) = (std::mem::take(&mut old.w), std::mem::take(&mut old.alpha));
            fresh.state.offset = old.offset;
            let old_task = setup.task(lane, fitted.c);
            let old_bias = task::bias(setup.store, &old_task.cost, &setup.settings);
            let stretch = Stretch { setup, task, ratio: c / fitted.c };
            with_loss!(setup.settings.loss, loss => stretch.apply(loss, &mut fresh.state));
            // The constant column of a free intercept has another height at another C.
            if setup.settings.intercept == Intercept::Free {
                fresh.state.w[d] *= fresh.bias / old_bias;
            }
        }
        Ok(fresh)
    }

    /// Descends with the lanes of the given numbers; how each ended, and the readings of the data in all.
    fn descend(&mut self, due: &[usize], c: f64) -> Result<(Vec<End>, f64)> {
        let setup = self.setup;
        let tasks: Vec<Task> = due.iter().map(|&lane| setup.task(lane, c)).collect();
        let problems =
            due.iter().zip(&tasks).map(|(&lane, task)| self.start(lane, task, c)).collect::<Result<_>>()?;
        let seed = checksum(setup.settings.seed, &c.to_le_bytes());
        let settings = Settings { seed, ..setup.settings };
        let watch = Watch { caller: setup.monitor, c, lanes_left: due.len() };
        let kept = std::mem::take(&mut self.kept);
        let remains = std::thread::scope(|scope| -> Result<_> {
            let plan = setup.plan;
            let fetch = Fetch::start(scope, setup.store, &plan.blocks, kept, plan.keeps_stored, &watch)?;
            let mut descent = Descent::new(problems, &setup.parts, &settings, plan, fetch, &watch)?;
            descent.run(|_| Ok(()))?;
            Ok(descent.into_parts())
        })?;
        self.kept = remains.kept;
        let mut passes = (remains.scans * due.len() as u64) as f64;
        for (&lane, problem) in due.iter().zip(remains.problems) {
            let State { w, alpha, offset, visits, .. } = problem.state;
            passes += visits as f64 / setup.store.meta().n_rows as f64;
            self.lanes[lane] = Lane { w, alpha, offset, fitted: None, is_scored: false };
        }
        Ok((remains.ends.into_iter().flatten().collect(), passes))
    }

    fn judge(&self, lane: usize, c: f64, end: &End) -> Fitted {
        let setup = self.setup;
        let d = setup.n_weights();
        let is_free = setup.settings.intercept == Intercept::Free;
        let w = &self.lanes[lane].w;
        let w = if is_free { &w[..d] } else { &w[..] };
        let (norm, certificate) = (0.5 * dot(w, w), end.certified.certificate);
        let (loss, is_converged) = ((certificate.primal - norm).max(0.0), end.status == Status::Converged);
        let until = if is_converged {
            accepted_until(c, norm, loss, certificate.dual, setup.settings.tol)
        } else {
            c
        };
        Fitted { c, norm, loss, until, intercept: self.intercept(lane, end), is_converged }
    }

    fn intercept(&self, lane: usize, end: &End) -> f64 {
        match self.setup.settings.intercept {
            Intercept::None => 0.0,
            Intercept::Free => end.certified.intercept,
            Intercept::Penalised(scale) => scale * self.lanes[lane].w[self.setup.n_weights()],
        }
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
            {
                let rows = &mapped(view, setup.settings.map);
                for i in 0..rows.n_rows() {
                    let part = setup.parts[first + i];
                    if part == NO_FOLD {
                        continue;
                    }
                    for problem in 0..p {
                        let lane = &lanes[part as usize * p + problem];
                        if let (false, Some(fitted)) = (lane.is_scored, lane.fitted) {
                            found.push((problem as u32, rows.dot(i, &lane.w[..d]) + fitted.intercept));
                        }
                    }
                }
            };
            found
        };
        let items = vec![(); store.pages().len()];
        let pages = for_pages(store, &Kept::of(&self.kept), store.width(), items, setup.monitor, page)?;
        let decisions = Arc::make_mut(&mut self.decisions);
        for (page, found) in pages.into_iter().enumerate() {
            let mut found = found.into_iter();
            for place in store.starts()[page] as usize..store.starts()[page + 1] as usize {
                let part = setup.parts[place];
                if part == NO_FOLD {
                    continue;
                }
                let open = lanes[part as usize * p..][..p].iter().filter(|lane| !lane.is_scored).count();
                for (problem, value) in found.by_ref().take(open) {
                    decisions[part as usize][setup.positions[place] as usize * p + problem as usize] = value;
                }
            }
        }
        self.lanes.iter_mut().for_each(|lane| lane.is_scored = true);
        Ok(())
    }
}

impl Route for StoreRoute<'_> {
    fn advance(&mut self, c: f64) -> Result<Step> {
        let covers = |fitted: &Fitted| fitted.c <= c && c <= fitted.until;
        let is_due = |lane: &Lane| !lane.fitted.as_ref().is_some_and(covers);
        let due: Vec<usize> = (0..self.lanes.len()).filter(|&k| is_due(&self.lanes[k])).collect();
        let (ends, passes) = if due.is_empty() { (Vec::new(), 0.0) } else { self.descend(&due, c)? };
        for (&lane, end) in due.iter().zip(&ends) {
            self.lanes[lane].fitted = Some(self.judge(lane, c, end));
        }
        let n_iter = ends.iter().map(|end| end.n_iter).sum();
        self.score()?;
        let fitted: Vec<Fitted> = self.lanes.iter().filter_map(|lane| lane.fitted).collect();
        Ok(Step {
            c,
            passes,
            n_iter,
            inner: 0,
            is_unchanged: due.is_empty(),
            is_converged: fitted.iter().all(|f| f.is_converged),
            unchanged_until: fitted.iter().map(|f| f.until).fold(f64::INFINITY, f64::min).max(c),
            objective: fitted.iter().map(|f| f.norm + c / f.c * f.loss).collect(),
            decisions: Arc::clone(&self.decisions),
            seconds: 0.0,
            is_replayed: false,
        })
    }

    fn state(&self) -> crate::search::State {
        crate::search::State(self.lanes.iter().flat_map(Lane::arrays).collect())
    }

    fn restore(&mut self, state: &crate::search::State) -> Result<()> {
        let d = self.setup.n_weights() + usize::from(self.setup.settings.intercept != Intercept::None);
        let n = self.setup.store.meta().n_rows as usize;
        let lanes = state.lanes(self.lanes.len(), ARRAYS)?.map(|arrays| Lane::rebuild(arrays, d, n));
        self.lanes = lanes.collect::<Result<_>>()?;
        Ok(())
    }
}

impl Lane {
    fn arrays(&self) -> [Vec<f64>; ARRAYS] {
        let Some(f) = self.fitted else { return Default::default() };
        let is_converged = f64::from(u8::from(f.is_converged));
        let facts = vec![f.c, f.norm, f.loss, f.until, f.intercept, is_converged, self.offset];
        [facts, memory::copy(&self.w), memory::copy(&self.alpha)]
    }

    fn rebuild(arrays: &[Vec<f64>], d: usize, n: usize) -> Result<Self> {
        let empty = Self { w: Vec::new(), alpha: Vec::new(), offset: 0.0, fitted: None, is_scored: false };
        let [facts, w, alpha] = arrays else { unreachable!("a lane has {ARRAYS} arrays") };
        if facts.is_empty() {
            return Ok(empty);
        }
        check_length("facts of a search state", 7, facts.len())?;
        check_length("weights of a search state", d, w.len())?;
        check_length("dual variables of a search state", n, alpha.len())?;
        let is_converged = facts[5] != 0.0;
        let [c, norm, loss, until, intercept] = *facts.first_chunk().expect("the number of facts is checked");
        let fitted = Some(Fitted { c, norm, loss, until, intercept, is_converged });
        Ok(Self {
            w: memory::copy(w),
            alpha: memory::copy(alpha),
            offset: facts[6],
            fitted,
            is_scored: false,
        })
    }
}

/// The step of a lane's start from one `C` to the next (Chu15, eq. 14).
///
/// Deviation, as in memory: of the factors 1, the ratio and its square root the one with the largest dual
/// value is taken.
struct Stretch<'a> {
    setup: &'a Setup<'a>,
    task: &'a Task,
    ratio: f64,
}

impl Stretch<'_> {
    /// Cost and label of the row at a place.
    fn row(&self, place: usize) -> (f64, f64) {
        let (class, setup) = (self.setup.classes[place], self.setup);
        (self.task.cost(class, setup.weights[place], Some(setup.parts[place])), self.task.sign(class))
    }

    fn apply<L: Loss>(&self, loss: L, state: &mut State) {
        let d = self.setup.n_weights();
        let is_free = self.setup.settings.intercept == Intercept::Free;
        let w = if is_free { &state.w[..d] } else { &state.w[..] };
        let half = 0.5 * dot(w, w);
        let moved = |a: f64, t: f64, c: f64| (t * a).min(loss.upper(c));
        let factors = [1.0, self.ratio.sqrt(), self.ratio];
        let alpha = &state.alpha;
        let terms: [f64; 3] = sum(alpha.len(), |place| {
            let (c, _) = self.row(place);
            if c == 0.0 { [0.0; 3] } else { factors.map(|t| loss.dual_term(c, moved(alpha[place], t, c))) }
        });
        let value = |k: usize| terms[k] - factors[k] * factors[k] * half;
        let best = (0..3).max_by(|&a, &b| value(a).total_cmp(&value(b))).map_or(1.0, |k| factors[k]);
        state.alpha.par_iter_mut().enumerate().with_min_len(1 << 14).for_each(|(place, a)| {
            let (c, _) = self.row(place);
            *a = if c == 0.0 { 0.0 } else { moved(*a, best, c) };
        });
        state.w.iter_mut().for_each(|w| *w *= best);
        let alpha = &state.alpha;
        let [terms, all_0, all_1, inside_0, inside_1] = sum(alpha.len(), |place| {
            let ((c, y), mut sums) = (self.row(place), Sums::default());
            if c > 0.0 {
                sums.add(loss, 1.0, y, c, alpha[place]);
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
