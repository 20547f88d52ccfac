//! The descent: its state, its start, its epochs and its end.

use rayon::prelude::*;

use super::check::{Check, largest};
use super::kernels::ClassRows;
use super::rows::{Alpha, Entry, Lists};
use super::simplex::{Candidate, project};
use super::weights::{Change, Weights};
use super::{Intercept, Monitor, Solution, Start, Status};
use crate::solver::active::{ActiveSet, Random};
use crate::solver::dual::Epoch;
use crate::solver::sweep::{ROW_CHUNK, dot};
use crate::{Error, Result};

/// Cache lines of classes up to which every visit computes all scores.
pub const FULL_LINES: usize = 4;
/// Epochs at the beginning that read all classes however many there are.
pub const FULL_EPOCHS: usize = 2;
/// Steps between the request for a row's memory and its use.
const AHEAD: usize = 4;
/// Steps between two looks at the cancel flag.
pub const POLL_STEPS: usize = 512;
/// A spread of gradients below this, relatively, is rounding.
const NEGLIGIBLE: f64 = 1e-14;

/// A problem, free of the type of its rows.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    /// Rows, a constant column included.
    pub rows: &'a dyn ClassRows,
    /// Rows as they are.
    pub plain: &'a dyn ClassRows,
    /// Height of the constant column.
    pub bias: f64,
    /// Class per row.
    pub class: &'a [u32],
    /// Number of classes.
    pub n_classes: usize,
    /// Cost per row.
    pub cost: &'a [f64],
    /// Treatment of the intercepts.
    pub intercept: Intercept,
    /// Progress and cancelling.
    pub monitor: &'a dyn Monitor,
}

/// What a row's visit did.
enum Visit {
    /// The row has nothing left.
    Idle,
    /// Increase of the dual value, and how far the row was from its optimum: the highest gradient less the lowest of a positive variable.
    Gain { gain: f64, spread: f64 },
}

/// Scratch of a step.
#[derive(Default)]
struct Scratch {
    scores: Vec<f64>,
    classes: Vec<u32>,
    candidates: Vec<Candidate>,
    list: Vec<Entry>,
    changes: Vec<Change>,
}

/// A point of a descent.
pub struct Point {
    /// Weights.
    pub w: Weights,
    /// Dual variables.
    pub lists: Lists,
    /// Multipliers of the free intercept's constraints.
    pub offsets: Vec<f64>,
}

/// A running descent.
pub struct Descent<'a> {
    pub(super) setup: Setup<'a>,
    pub(super) w: Weights,
    pub(super) lists: Lists,
    /// `|x_i|^2`, constant column included.
    squared: Vec<f64>,
    pub(super) active: ActiveSet,
    /// Multipliers of the free intercept's constraints.
    pub(super) offsets: Vec<f64>,
    scratch: Scratch,
    /// Rows with less of the gap than this rest.
    pub(super) idle: f64,
    pub(super) passes: f64,
}

impl<'a> std::ops::Deref for Descent<'a> {
    type Target = Setup<'a>;

    fn deref(&self) -> &Setup<'a> {
        &self.setup
    }
}

impl<'a> Descent<'a> {
    /// At `start`, or at zero.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn new(setup: Setup<'a>, start: &Start) -> Result<Self> {
        let Setup { rows, class, n_classes, cost, .. } = setup;
        let point = Point {
            w: Weights::zeros(rows.n_columns(), n_classes),
            lists: Lists::new(class, cost),
            offsets: vec![0.0; n_classes],
        };
        let mut descent = Self::at(setup, point);
        if let Some(alpha) = &start.alpha {
            descent.lists = alpha.lists(start.factor.unwrap_or(1.0), class, cost);
            descent.fill()?;
        }
        if let (Some(intercepts), Intercept::Free) = (&start.intercepts, setup.intercept) {
            descent.offsets.clone_from(intercepts);
        }
        Ok(descent)
    }

    /// At a point whose weights belong to its dual variables, and to rows besides these, if there are any.
    pub fn at(setup: Setup<'a>, point: Point) -> Self {
        let (rows, n) = (setup.rows, setup.class.len());
        let Point { w, lists, offsets } = point;
        Self {
            setup,
            scratch: Scratch { scores: vec![0.0; w.padded()], ..Scratch::default() },
            squared: (0..n).into_par_iter().with_min_len(ROW_CHUNK).map(|i| rows.squared(i)).collect(),
            w,
            lists,
            active: ActiveSet::all(n),
            offsets,
            idle: 0.0,
            passes: 0.0,
        }
    }

    /// Where the descent is.
    pub fn into_point(self) -> Point {
        Point { w: self.w, lists: self.lists, offsets: self.offsets }
    }

    /// Rows with less of the gap than this rest.
    pub fn set_idle(&mut self, gap: f64) {
        self.idle = gap;
    }

    /// Whether every visit looks at all classes.
    pub fn sees_all(&self) -> bool {
        self.w.lines() <= FULL_LINES
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.class.len()
    }

    /// Makes `w`, zero so far, the weights of the dual variables.
    fn fill(&mut self) -> Result<()> {
        let Setup { rows, class, monitor, .. } = self.setup;
        let mut changes = Vec::new();
        for (i, &own) in class.iter().enumerate() {
            if i % POLL_STEPS == 0 {
                monitor.poll()?;
            }
            changes.clear();
            let others = self.lists.get(i).iter().filter(|entry| entry.class != own && entry.u > 0.0);
            changes.extend(others.map(|entry| Change { class: entry.class, delta: -entry.u }));
            if !changes.is_empty() {
                let sum: f64 = changes.iter().map(|change| change.delta).sum();
                changes.push(Change { class: own, delta: -sum });
                self.w.add(rows, i, &changes);
            }
        }
        self.passes += 1.0;
        Ok(())
    }

    /// Dual value without regard to the constraints of a free intercept.
    pub fn dual_estimate(&self) -> f64 {
        (self.lists.sum_of_others(self.class) - 0.5 * self.squared_weights()).max(0.0)
    }

    /// `sum_m |w_m|^2`, without the constant column of a free intercept.
    pub(super) fn squared_weights(&self) -> f64 {
        let numbers = self.penalised(&self.w);
        dot(numbers, numbers)
    }

    /// The numbers of `w` that are part of the norm.
    pub(super) fn penalised<'w>(&self, w: &'w Weights) -> &'w [f64] {
        let is_free = self.intercept == Intercept::Free;
        let columns = self.rows.n_columns() - usize::from(is_free);
        &w.numbers()[..columns * w.padded()]
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

    /// Visits every active row once, in a fresh random order.
    /// With `is_full`, all classes are looked at however many there are.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn epoch(&mut self, random: &mut Random, is_full: bool) -> Result<Epoch> {
        self.active.shuffle(random);
        let is_full = is_full || self.sees_all();
        let (mut epoch, mut s) = (Epoch::default(), 0);
        while let Some(i) = self.active.get(s) {
            if epoch.visited % POLL_STEPS == 0 {
                self.monitor.poll()?;
            }
            epoch.visited += 1;
            if let Some(next) = self.active.get(s + AHEAD) {
                self.rows.ask(next);
                self.lists.prefetch_list(next);
            }
            if let Some(next) = self.active.get(s + 2 * AHEAD) {
                self.rows.ask_header(next);
                self.lists.prefetch(next);
            }
            match self.step(i, is_full) {
                Visit::Idle => self.active.shrink(s),
                Visit::Gain { gain, spread } => {
                    epoch.gain += gain;
                    epoch.largest = epoch.largest.max(spread);
                    epoch.smallest = 0.0;
                    s += 1;
                }
            }
        }
        self.lists.tidy();
        self.passes += epoch.visited as f64 / self.class.len().max(1) as f64;
        if self.intercept == Intercept::Free {
            let (bias, constant) = (self.bias, self.w.column(self.rows.n_columns() - 1));
            self.offsets.iter_mut().zip(constant).for_each(|(b, w)| *b += bias * w);
        }
        Ok(epoch)
    }

    /// Solves for the variables of row `i`; all classes are candidates, or those in its list.
    fn step(&mut self, i: usize, is_full: bool) -> Visit {
        let Setup { rows, class, n_classes, cost, .. } = self.setup;
        let (own, c, q) = (class[i], cost[i], self.squared[i]);
        let Scratch { scores, classes, candidates, list, changes } = &mut self.scratch;
        list.clear();
        list.extend_from_slice(self.lists.get(i));
        candidates.clear();
        // Gradients: of all classes in `scores`, or of the list's, at the same positions.
        if is_full {
            self.w.scores(rows, i, scores);
            let scores = &mut scores[..n_classes];
            scores.iter_mut().zip(&self.offsets).for_each(|(g, b)| *g += b + 1.0);
            scores[own as usize] -= 1.0;
        } else {
            classes.clear();
            classes.extend(list.iter().map(|entry| entry.class));
            self.w.some_scores(rows, i, classes, &mut scores[..list.len()]);
            for (g, class) in scores.iter_mut().zip(classes) {
                *g += self.offsets[*class as usize] + f64::from(u8::from(*class != own));
            }
        }
        let at = |position: usize, entry: &Entry| if is_full { entry.class as usize } else { position };
        let n_scores = if is_full { n_classes } else { list.len() };
        let highest = largest(&scores[..n_scores]);
        let (mut gap, mut smallest) = (0.0, f64::INFINITY);
        for (position, entry) in list.iter().enumerate() {
            let g = scores[at(position, entry)];
            gap += entry.u * (highest - g);
            if entry.u > 0.0 {
                smallest = smallest.min(g);
            }
        }
        if gap <= self.idle || highest - smallest <= NEGLIGIBLE * highest.abs().max(1.0) {
            return Visit::Idle;
        }
        // Candidates with their d, in `scores` from here on; the list keeps its gradients in `changes`.
        changes.clear();
        for (position, entry) in list.iter().enumerate() {
            let g = &mut scores[at(position, entry)];
            changes.push(Change { class: entry.class, delta: *g });
            *g += q * entry.u;
        }
        let top = largest(&scores[..n_scores]);
        let least = top - q * c;
        for (position, &d) in scores[..n_scores].iter().enumerate() {
            if d >= least {
                let class = if is_full { position as u32 } else { list[position].class };
                candidates.push(Candidate { class, d, u: 0.0 });
            }
        }
        project(candidates, q, c);
        // Changes and the new list.
        let mut gain = 0.0;
        let mut count = 0;
        for position in 0..list.len() {
            let Entry { u, class } = list[position];
            let g = changes[position].delta;
            let found = candidates.iter().position(|candidate| candidate.class == class);
            let next = found.map_or(0.0, |at| candidates.swap_remove(at).u);
            let delta = u - next;
            gain -= delta * (g + 0.5 * q * delta);
            let is_dropped = next == 0.0 && (is_full || (u == 0.0 && g < smallest));
            if !is_dropped {
                list[count] = Entry { u: next, class };
                count += 1;
            }
            changes[position] = Change { class, delta };
        }
        list.truncate(count);
        for candidate in candidates.iter() {
            // Only where all classes were candidates: d is the gradient of a class without a variable.
            let delta = -candidate.u;
            gain -= delta * (candidate.d + 0.5 * q * delta);
            changes.push(Change { class: candidate.class, delta });
            list.push(Entry { u: candidate.u, class: candidate.class });
        }
        changes.retain(|change| change.delta != 0.0);
        self.lists.set(i, list);
        if !changes.is_empty() {
            self.w.add(rows, i, changes);
        }
        Visit::Gain { gain, spread: highest - smallest }
    }

    /// The answer.
    pub fn into_solution(self, check: Check, status: Status, n_iter: usize) -> Solution {
        let alpha = Alpha::of(&self.lists, self.class);
        let Check { certificate, intercepts } = check;
        Solution { weights: self.w, intercepts, alpha, certificate, status, n_iter, passes: self.passes }
    }
}
