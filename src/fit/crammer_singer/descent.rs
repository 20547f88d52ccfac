//! The descent: its state, its start, its threads and its solution.

use std::thread;

use rayon::prelude::*;

use super::kernels::Change;
use super::problem::{ClassSolution, ClassStart};
use super::rows::{Alpha, Lists};
use super::setup::{ClassSetup, POLL_STEPS};
use super::team::Team;
use super::weights::{ClassWeights, WeightsPart};
use super::worker::{DualState, EpochsEnd, SharedState, Worker};
use crate::fit::dual::active::{ActiveSet, Random};
use crate::fit::dual::method::Epoch;
use crate::fit::problem::{Certificate, Intercept, Status};
use crate::fit::routes::{FULL_LINES, LEAST_ALONE};
use crate::fit::sweep::ROW_CHUNK;
use crate::{Error, Result, memory};

/// Result of a check of all rows and classes.
pub struct Check {
    /// Primal and dual value.
    pub certificate: Certificate,
    /// Intercepts on the scale of the scores.
    pub intercepts: Vec<f64>,
}

/// A point of a descent.
pub struct ClassPoint {
    /// Weights.
    pub w: ClassWeights,
    /// Dual variables.
    pub lists: Lists,
    /// Multipliers of the free intercept's constraints.
    pub offsets: Vec<f64>,
}

/// A running descent.
pub struct ClassDescent<'a> {
    pub(super) setup: ClassSetup<'a>,
    /// In as many parts as there are threads.
    pub(super) w: ClassWeights,
    /// Of each thread, all equal between calls of [`Self::epochs`].
    states: Vec<DualState>,
    /// Epochs that one thread alone is to do.
    pub(super) alone: usize,
    /// The number of them after the next time that threads were slow is twice this.
    patience: usize,
    /// `|x_i|^2`, constant column included.
    pub(super) squared: Vec<f64>,
    /// Multipliers of the free intercept's constraints.
    pub(super) offsets: Vec<f64>,
    /// Rows with less of the gap than this rest.
    pub(super) idle: f64,
    /// Readings of all rows, checks above all.
    pub(super) readings: usize,
    /// Visits of single rows.
    pub(super) visits: usize,
}

impl<'a> std::ops::Deref for ClassDescent<'a> {
    type Target = ClassSetup<'a>;

    fn deref(&self) -> &ClassSetup<'a> {
        &self.setup
    }
}

impl<'a> ClassDescent<'a> {
    /// At `start`, or at zero, by up to `threads` threads.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn new(setup: ClassSetup<'a>, start: &ClassStart, threads: usize) -> Result<Self> {
        let ClassSetup { rows, class, n_classes, cost, .. } = setup;
        let lists = match &start.alpha {
            Some(alpha) => alpha.lists(start.factor.unwrap_or(1.0), class, cost),
            None => Lists::new(class, cost),
        };
        let w = ClassWeights::divided(rows.n_columns(), n_classes, setup.worthwhile(threads));
        let mut descent = Self::at(setup, ClassPoint { w, lists, offsets: vec![0.0; n_classes] });
        if start.alpha.is_some() {
            descent.fill()?;
        }
        if let (Some(intercepts), Intercept::Free) = (&start.intercepts, setup.intercept) {
            descent.offsets.clone_from(intercepts);
        }
        Ok(descent)
    }

    /// At a point whose weights belong to its dual variables, and to rows besides these, if there are any; by
    /// as many threads as the weights have parts, or by one.
    pub fn at(setup: ClassSetup<'a>, point: ClassPoint) -> Self {
        let (rows, n) = (setup.rows, setup.class.len());
        let ClassPoint { w, lists, offsets } = point;
        Self {
            setup,
            states: vec![DualState { lists, active: ActiveSet::all(n), n_epochs: 0 }],
            alone: 0,
            patience: LEAST_ALONE,
            squared: memory::collect_parallel(
                (0..n).into_par_iter().with_min_len(ROW_CHUNK).map(|i| rows.squared(i)),
            ),
            w,
            offsets,
            idle: 0.0,
            readings: 0,
            visits: 0,
        }
    }

    /// Where the descent is.
    pub fn into_point(self) -> ClassPoint {
        let lists = self.states.into_iter().next().map_or_else(|| Lists::empty(0), |state| state.lists);
        ClassPoint { w: self.w, lists, offsets: self.offsets }
    }

    /// Dual variables.
    pub(super) fn lists(&self) -> &Lists {
        &self.states[0].lists
    }

    /// The dual states of all threads, to be changed alike.
    pub(super) fn states(&mut self) -> &mut [DualState] {
        &mut self.states
    }

    /// Rows with less of the gap than this rest.
    pub fn set_idle(&mut self, gap: f64) {
        self.idle = gap;
    }

    /// Whether every visit computes the scores of all classes.
    pub fn sees_all(&self) -> bool {
        self.w.lines() <= FULL_LINES
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.class.len()
    }

    /// Makes `w`, zero so far, the weights of the dual variables.
    fn fill(&mut self) -> Result<()> {
        let ClassSetup { rows, class, monitor, .. } = self.setup;
        let mut changes = Vec::new();
        for (i, &own) in class.iter().enumerate() {
            if i % POLL_STEPS == 0 {
                monitor.poll()?;
            }
            changes.clear();
            let others = self.lists().get(i).iter().filter(|entry| entry.class != own && entry.u > 0.0);
            changes.extend(others.map(|entry| Change { class: entry.class, delta: -entry.u }));
            if !changes.is_empty() {
                let sum: f64 = changes.iter().map(|change| change.delta).sum();
                changes.push(Change { class: own, delta: -sum });
                self.w.add(rows, i, &changes);
            }
        }
        self.readings += 1;
        Ok(())
    }

    /// Dual value without regard to the constraints of a free intercept.
    pub fn dual_estimate(&self) -> f64 {
        (self.lists().sum_of_others(self.class) - 0.5 * self.squared_weights()).max(0.0)
    }

    /// `sum_m |w_m|^2`, without the constant column of a free intercept.
    pub(super) fn squared_weights(&self) -> f64 {
        self.w.squared(self.n_penalised())
    }

    /// Columns whose weights are part of the norm.
    pub(super) fn n_penalised(&self) -> usize {
        self.rows.n_columns() - usize::from(self.intercept == Intercept::Free)
    }

    /// Passes a primal value on if it is finite.
    pub(super) fn finite(&self, value: f64) -> Result<f64> {
        if value.is_finite() {
            return Ok(value);
        }
        let max_squared_norm = self.squared.iter().copied().fold(0.0, f64::max);
        Err(Error::Overflow { what: "objective", max_squared_norm })
    }

    /// Intercepts that belong to the present point, on the scale of the scores.
    pub(super) fn intercepts(&self) -> Vec<f64> {
        if self.bias == 0.0 {
            return vec![0.0; self.n_classes];
        }
        let constant = self.w.column(self.rows.n_columns() - 1);
        self.offsets.iter().zip(constant).map(|(b, w)| b + self.bias * w).collect()
    }

    /// Epochs until `goes_on`, which is asked after each, says no; by one thread alone for a while where
    /// others have no cores.
    ///
    /// # Errors
    /// [`Error::Cancelled`]; [`Error::Thread`] where no thread can be had.
    pub fn epochs(&mut self, random: &mut Random, mut goes_on: impl FnMut(&Epoch) -> bool) -> Result<()> {
        loop {
            let n_threads = if self.alone == 0 { self.w.parts().len() } else { 1 };
            let (alone, mut n_epochs, mut visits, mut is_done) = (self.alone, 0, 0, false);
            let end = self.epochs_on(n_threads, random, |epoch| {
                (visits, n_epochs) = (visits + epoch.visited, n_epochs + 1);
                is_done = !goes_on(epoch);
                !is_done && n_epochs != alone
            });
            self.visits += visits;
            self.alone = alone.saturating_sub(n_epochs);
            if end? == EpochsEnd::Slow {
                self.patience *= 2;
                self.alone = self.patience;
            }
            if is_done {
                return Ok(());
            }
        }
    }

    /// Epochs of `n_threads` threads, one or as many as the weights have parts.
    fn epochs_on(
        &mut self,
        n_threads: usize,
        random: &mut Random,
        mut goes_on: impl FnMut(&Epoch) -> bool,
    ) -> Result<EpochsEnd> {
        let sees_all = self.sees_all();
        let Self { setup, w, states, offsets, squared, idle, .. } = self;
        states.truncate(n_threads);
        while states.len() < n_threads {
            states.push(states[0].clone());
        }
        let per_thread = w.parts().len() / n_threads;
        let owner: Vec<u16> = (0..)
            .zip(w.parts().chunks(per_thread))
            .flat_map(|(me, parts)| parts.iter().flat_map(WeightsPart::classes).map(move |_| me))
            .collect();
        let shared = SharedState { setup, squared, idle: *idle, sees_all, owner: &owner };
        let team = Team::new(n_threads, setup.n_classes);
        let mut offsets = &mut offsets[..];
        let mut workers = Vec::new();
        for (me, (parts, state)) in w.parts_mut().chunks_mut(per_thread).zip(states).enumerate() {
            let n_classes = parts.iter().map(|part| part.classes().len()).sum();
            let (mine, others) = std::mem::take(&mut offsets).split_at_mut(n_classes);
            offsets = others;
            workers.push(Worker::new(shared, team.member(me), state, parts, mine));
        }
        let leader = workers.remove(0);
        thread::scope(|scope| {
            for worker in workers {
                let random = random.clone();
                let thread = thread::Builder::new().name("hinge".into());
                thread.spawn_scoped(scope, move || worker.follow(random)).map_err(Error::Thread)?;
            }
            leader.lead(random, &mut goes_on)
        })
    }

    /// Visits of rows in units of all rows, checks included.
    pub fn passes(&self) -> f64 {
        self.readings as f64 + self.visits as f64 / self.n_rows().max(1) as f64
    }

    /// The answer.
    pub fn into_solution(self, check: Check, status: Status, n_iter: usize) -> ClassSolution {
        let alpha = Alpha::of(self.lists(), self.class);
        let Check { certificate, intercepts } = check;
        let passes = self.passes();
        ClassSolution { weights: self.w, intercepts, alpha, certificate, status, n_iter, n_steps: 0, passes }
    }
}
