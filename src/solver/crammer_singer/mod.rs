//! The multi-class machine of Crammer and Singer, by the sequential dual method.
//!
//! ```text
//! primal   min_{W,b}  1/2 sum_m |w_m|^2 + sum_i c_i (max_m (e_im + w_m.x_i + b_m) - w_{y_i}.x_i - b_{y_i})
//! dual     max_u      sum_i (c_i - u_{i,y_i}) - 1/2 sum_m |w_m(u)|^2,     u_im >= 0,  sum_m u_im = c_i
//!          w_m(u) = sum_{i: y_i = m} c_i x_i - sum_i u_im x_i,            e_im = 0 if m = y_i, else 1
//! ```
//!
//! (Crammer and Singer, JMLR 2, 2001; Keerthi, Sundararajan, Chang, Hsieh, Lin: A Sequential Dual Method for Large Scale
//! Multi-class Linear SVMs, KDD 2008 = **Keerthi08**, whose `alpha_im` is `c_i [m = y_i] - u_im`; LIBLINEAR `-s 4` is the same
//! method.) A step takes one row and solves for its `k` variables exactly ([`simplex`]), with the gradient
//! `G_im = e_im + w_m.x_i + b_m`. With a free intercept the dual has the constraint `sum_i u_im = sum_{i: y_i = m} c_i` for
//! each class, met by the method of multipliers as in [`super::dual`]; see [`intercept`].
//!
//! **The gap falls apart into rows.** With `w = w(u)`, primal minus dual is `sum_i sum_m u_im (max_p G_ip - G_im)`, each term at
//! least zero. So a check of all rows, which the certificate needs anyway, tells how much every row has left, and rows
//! with next to nothing ([`IDLE`]) rest until the next check. This takes the place of LIBLINEAR's adaptive tolerance.
//!
//! **What is read of a row.** Weights are interleaved by class ([`weights`]). Up to [`FULL_LINES`] cache lines of classes per
//! column, all scores of a row are computed in each visit, in vector arithmetic: it costs no more than picking a few. With more
//! classes, a visit reads only the classes in the row's list ([`rows`]): those with a positive variable and the candidates
//! that the last check of all classes found, shrunk as in Keerthi08, section 3.3.
//!
//! Memory: `(d + 1) k` weights and the sparse dual variables, 40 bytes or more per row; a free intercept takes a second copy of the
//! weights during a check.

pub mod intercept;
pub mod presolved;
pub mod rows;
pub mod simplex;
pub mod weights;

use rayon::prelude::*;

use super::active::{self, ActiveSet, Random};
use super::dual::{self, Epoch};
use super::schedule::Schedule;
use super::sweep::{ROW_CHUNK, dot};
use super::{Certificate, Intercept, Monitor, Params, Progress, Status, finite};
use crate::Result;
use crate::data::Rows;
use crate::data::design::Design;
pub use rows::Alpha;
use rows::{Entry, Lists};
use simplex::{Candidate, project};
use weights::{Change, LINE, Weights};

/// Cache lines of classes up to which every visit computes all scores.
const FULL_LINES: usize = 4;
/// Epochs at the beginning that read all classes however many there are.
const FULL_EPOCHS: usize = 2;
/// Candidates that a check adds to a row at most.
const MAX_CANDIDATES: usize = 8;
/// Rows whose part of the gap is below this share of the tolerated one, and of the mean at the last check, rest until the next check.
const IDLE: [f64; 2] = [0.1, 0.01];
/// Steps between the request for a row's memory and its use.
const AHEAD: usize = 4;
/// Steps between two looks at the cancel flag.
const POLL_STEPS: usize = 512;
/// Epochs over few active rows are cheap; this many of them count as one whole epoch at most, so that a fit always ends.
const MAX_EPOCHS_PER_ITER: usize = 50;

/// A multi-class problem over borrowed rows.
pub struct Problem<'a, R> {
    /// The full matrix.
    pub rows: &'a R,
    /// The rows that belong to the problem, all if `None`.
    pub ids: Option<&'a [u32]>,
    /// Class per row of the problem.
    pub class: &'a [u32],
    /// Number of classes, at least 2.
    pub n_classes: usize,
    /// Costs `c_i > 0`, one per row of the problem.
    pub cost: &'a [f64],
    /// Treatment of the intercepts.
    pub intercept: Intercept,
}

impl<R> Clone for Problem<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<R> Copy for Problem<'_, R> {}

/// Where a fit begins: dual variables, moved into their simplex where they are outside, and multipliers of a free intercept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Start {
    /// Dual variables.
    pub alpha: Option<Alpha>,
    /// Intercepts, one per class.
    pub intercepts: Option<Vec<f64>>,
    /// Factor of the dual variables.
    pub factor: Option<f64>,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct Solution {
    /// Weights of the columns, class within column, without padding.
    pub weights: Weights,
    /// Intercepts on the scale of the scores.
    pub intercepts: Vec<f64>,
    /// Dual variables.
    pub alpha: Alpha,
    /// How good the weights are.
    pub certificate: Certificate,
    /// How the fit ended.
    pub status: Status,
    /// Epochs.
    pub n_iter: usize,
    /// Visits of rows in units of all rows, checks included.
    pub passes: f64,
}

/// Runs to the relative duality gap `params.tol`; `params.solver` is not looked at.
///
/// # Errors
/// [`crate::Error::Cancelled`] and [`crate::Error::Overflow`].
pub fn solve<R: Rows>(
    problem: &Problem<'_, R>,
    params: &Params,
    start: &Start,
    monitor: &dyn Monitor,
) -> Result<Solution> {
    let mut descent = Descent::new(problem, params.tol, start, monitor)?;
    let mut random = active::random(params.seed, 0);
    let mut schedule = Schedule::new(descent.dual_estimate());
    if start.alpha.is_some() {
        let check = descent.check()?;
        if check.certificate.relative_gap() <= params.tol {
            return Ok(descent.into_solution(check, Status::Converged, 0));
        }
    }
    let limit = params.max_iter as f64;
    let (check, status) = loop {
        let done = descent.epoch(&mut random, schedule.epochs < FULL_EPOCHS)?;
        schedule.record(&done, problem.class.len());
        let is_last = schedule.work >= limit || schedule.epochs >= MAX_EPOCHS_PER_ITER * params.max_iter;
        if !schedule.is_due(params.tol) && !is_last {
            continue;
        }
        let check = descent.check()?;
        let gap = check.certificate.relative_gap();
        monitor.observe(&Progress {
            solver: "crammer_singer",
            iteration: schedule.iterations(),
            accuracy: gap,
            place: None,
        });
        if gap <= params.tol {
            break (check, Status::Converged);
        }
        if is_last {
            break (check, Status::MaxIter);
        }
        schedule.checked(&check.certificate, params.tol);
    };
    Ok(descent.into_solution(check, status, schedule.iterations()))
}

/// Result of a check of all rows and classes.
pub(super) struct Check {
    certificate: Certificate,
    intercepts: Vec<f64>,
}

/// What a row's visit did.
enum Visit {
    /// The row has nothing left.
    Idle,
    /// Increase of the dual value.
    Gain(f64),
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

/// A running descent.
struct Descent<'a, R> {
    problem: Problem<'a, R>,
    design: Design<'a, R>,
    monitor: &'a dyn Monitor,
    w: Weights,
    lists: Lists,
    /// `|x_i|^2`, constant column included.
    squared: Vec<f64>,
    active: ActiveSet,
    /// Multipliers of the free intercept's constraints.
    offsets: Vec<f64>,
    scratch: Scratch,
    tol: f64,
    /// Rows with less of the gap than this rest.
    idle: f64,
    passes: f64,
}

impl<'a, R: Rows> Descent<'a, R> {
    fn new(problem: &Problem<'a, R>, tol: f64, start: &Start, monitor: &'a dyn Monitor) -> Result<Self> {
        let plain = Design { rows: problem.rows, ids: problem.ids, bias: 0.0 };
        let bias = match problem.intercept {
            Intercept::None => 0.0,
            Intercept::Penalised(scale) => scale,
            Intercept::Free => dual::penalty(&plain, problem.cost.iter().sum()).sqrt(),
        };
        let design = Design { bias, ..plain };
        let n = problem.class.len();
        let lists = match &start.alpha {
            Some(alpha) => alpha.lists(start.factor.unwrap_or(1.0), problem.class, problem.cost),
            None => Lists::new(problem.class, problem.cost),
        };
        let offsets = match (&start.intercepts, problem.intercept) {
            (Some(b), Intercept::Free) => b.clone(),
            _ => vec![0.0; problem.n_classes],
        };
        let w = Weights::zeros(design.n_cols(), problem.n_classes);
        let scratch = Scratch { scores: vec![0.0; w.lines() * LINE], ..Scratch::default() };
        let squared = (0..n).into_par_iter().with_min_len(ROW_CHUNK).map(|i| design.squared_norm(i)).collect();
        let (active, problem) = (ActiveSet::all(n), *problem);
        let mut descent =
            Self { problem, design, monitor, w, lists, squared, active, offsets, scratch, tol, idle: 0.0, passes: 0.0 };
        if start.alpha.is_some() {
            descent.add_rows()?;
        }
        Ok(descent)
    }

    /// Makes `w` that of the dual variables, starting at zero.
    fn add_rows(&mut self) -> Result<()> {
        let mut changes = Vec::new();
        for i in 0..self.problem.class.len() {
            if i % POLL_STEPS == 0 {
                self.monitor.poll()?;
            }
            changes.clear();
            let own = self.problem.class[i];
            let others = self.lists.get(i).iter().filter(|entry| entry.class != own && entry.u > 0.0);
            changes.extend(others.map(|entry| Change { class: entry.class, delta: -entry.u }));
            if !changes.is_empty() {
                let sum: f64 = changes.iter().map(|change| change.delta).sum();
                changes.push(Change { class: own, delta: -sum });
                self.w.add(&self.design, i, &changes);
            }
        }
        self.passes += 1.0;
        Ok(())
    }

    /// `sum_i (c_i - u_{i,y_i})`.
    fn dual_sum(&self) -> f64 {
        let terms = |i: usize| {
            let own = self.problem.class[i];
            self.lists.get(i).iter().filter(|entry| entry.class != own).map(|entry| entry.u).sum::<f64>()
        };
        (0..self.problem.class.len()).map(terms).sum()
    }

    fn dual_estimate(&self) -> f64 {
        (self.dual_sum() - 0.5 * self.squared_weights()).max(0.0)
    }

    /// `sum_m |w_m|^2`, without the constant column of a free intercept.
    fn squared_weights(&self) -> f64 {
        let numbers = self.penalised(&self.w);
        dot(numbers, numbers)
    }

    /// The numbers of `w` that are part of the norm.
    fn penalised<'w>(&self, w: &'w Weights) -> &'w [f64] {
        let is_free = self.problem.intercept == Intercept::Free;
        let columns = self.design.n_cols() - usize::from(is_free);
        &w.numbers()[..columns * w.lines() * LINE]
    }

    /// Visits every active row once, in a fresh random order.
    fn epoch(&mut self, random: &mut Random, is_full: bool) -> Result<Epoch> {
        self.active.shuffle(random);
        let is_full = is_full || self.w.lines() <= FULL_LINES;
        let (mut epoch, mut s) = (Epoch::default(), 0);
        while let Some(i) = self.active.get(s) {
            if epoch.visited % POLL_STEPS == 0 {
                self.monitor.poll()?;
            }
            epoch.visited += 1;
            if let Some(next) = self.active.get(s + AHEAD) {
                self.design.prefetch(next);
                self.lists.prefetch_list(next);
            }
            if let Some(next) = self.active.get(s + 2 * AHEAD) {
                self.design.prefetch_header(next);
                self.lists.prefetch(next);
            }
            match self.step(i, is_full) {
                Visit::Idle => self.active.shrink(s),
                Visit::Gain(gain) => {
                    epoch.gain += gain;
                    s += 1;
                }
            }
        }
        self.lists.tidy();
        self.passes += epoch.visited as f64 / self.problem.class.len().max(1) as f64;
        if self.problem.intercept == Intercept::Free {
            let constant = self.w.column(self.design.n_cols() - 1);
            self.offsets.iter_mut().zip(constant).for_each(|(b, w)| *b += self.design.bias * w);
        }
        Ok(epoch)
    }

    /// Solves for the variables of row `i`; all classes are candidates, or those in its list.
    #[inline(always)]
    fn step(&mut self, i: usize, is_full: bool) -> Visit {
        let (own, c, q) = (self.problem.class[i], self.problem.cost[i], self.squared[i]);
        let Scratch { scores, classes, candidates, list, changes } = &mut self.scratch;
        list.clear();
        list.extend_from_slice(self.lists.get(i));
        candidates.clear();
        // Gradients: of all classes in `scores`, or of the list's, at the same positions.
        if is_full {
            self.w.scores(&self.design, i, scores);
            let scores = &mut scores[..self.problem.n_classes];
            scores.iter_mut().zip(&self.offsets).for_each(|(g, b)| *g += b + 1.0);
            scores[own as usize] -= 1.0;
        } else {
            classes.clear();
            classes.extend(list.iter().map(|entry| entry.class));
            self.w.some_scores(&self.design, i, classes, &mut scores[..list.len()]);
            for (g, class) in scores.iter_mut().zip(classes) {
                *g += self.offsets[*class as usize] + f64::from(u8::from(*class != own));
            }
        }
        let at = |position: usize, entry: &Entry| if is_full { entry.class as usize } else { position };
        let n_scores = if is_full { self.problem.n_classes } else { list.len() };
        let largest = scores[..n_scores].iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
        let (mut gap, mut smallest) = (0.0, f64::INFINITY);
        for (position, entry) in list.iter().enumerate() {
            let g = scores[at(position, entry)];
            gap += entry.u * (largest - g);
            if entry.u > 0.0 {
                smallest = smallest.min(g);
            }
        }
        if gap <= self.idle || largest - smallest <= NEGLIGIBLE * largest.abs().max(1.0) {
            return Visit::Idle;
        }
        // Candidates with their d, in `scores` from here on; the list keeps its gradients in `changes`.
        changes.clear();
        for (position, entry) in list.iter().enumerate() {
            let g = &mut scores[at(position, entry)];
            changes.push(Change { class: entry.class, delta: *g });
            *g += q * entry.u;
        }
        let top = scores[..n_scores].iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
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
            self.w.add(&self.design, i, changes);
        }
        Visit::Gain(gain)
    }

    /// The certificate at the present point; decides anew which rows are active and which classes are their candidates.
    fn check(&mut self) -> Result<Check> {
        let n = self.problem.class.len();
        let intercepts = self.intercepts();
        let pieces: Vec<Piece> = (0..n.div_ceil(ROW_CHUNK).max(1) * SPLIT)
            .into_par_iter()
            .map(|piece| {
                let size = ROW_CHUNK / SPLIT;
                let rows = (piece * size).min(n)..((piece + 1) * size).min(n);
                if self.monitor.cancelled() { Piece::default() } else { self.look(rows, &intercepts) }
            })
            .collect();
        self.monitor.poll()?;
        self.passes += 1.0;
        let squares = self.squared_weights();
        let losses: f64 = pieces.iter().map(|piece| piece.loss).sum();
        let total_gap: f64 = pieces.iter().map(|piece| piece.gap).sum();
        let primal = finite("objective", 0.5 * squares + losses, &self.design)?;
        let dual = match self.problem.intercept {
            Intercept::Free => self.repaired_dual()?,
            _ => self.dual_sum() - 0.5 * squares,
        };
        let mean = total_gap / n.max(1) as f64;
        let tolerated = self.tol * dual.max(0.0) / n.max(1) as f64;
        self.idle = (IDLE[0] * tolerated).max(IDLE[1] * mean);
        for (row, class) in pieces.iter().flat_map(|piece| &piece.candidates) {
            self.lists.push(*row as usize, *class);
        }
        let gaps: Vec<f32> = pieces.iter().flat_map(|piece| &piece.gaps).copied().collect();
        let idle = self.idle;
        self.active.restore(|i| f64::from(gaps[i]) > idle);
        Ok(Check { certificate: Certificate { primal, dual }, intercepts })
    }

    /// Intercepts that belong to the present point, on the scale of the scores.
    fn intercepts(&self) -> Vec<f64> {
        if self.design.bias == 0.0 {
            return vec![0.0; self.problem.n_classes];
        }
        let constant = self.w.column(self.design.n_cols() - 1);
        self.offsets.iter().zip(constant).map(|(b, w)| b + self.design.bias * w).collect()
    }

    /// All classes of some rows at fixed weights.
    fn look(&self, range: std::ops::Range<usize>, intercepts: &[f64]) -> Piece {
        let plain = Design { bias: 0.0, ..self.design };
        let k = self.problem.n_classes;
        let mut scores = vec![0.0; self.w.lines() * LINE];
        let mut piece = Piece::default();
        let wants_candidates = self.w.lines() > FULL_LINES;
        let mut found: Vec<(f64, u32)> = Vec::new();
        for i in range {
            let (own, c) = (self.problem.class[i] as usize, self.problem.cost[i]);
            self.w.scores(&plain, i, &mut scores);
            scores.iter_mut().zip(intercepts).for_each(|(g, b)| *g += b + 1.0);
            scores[own] -= 1.0;
            let largest = scores[..k].iter().fold(f64::NEG_INFINITY, |a, b| a.max(*b));
            piece.loss += c * (largest - scores[own]);
            let (mut gap, mut smallest) = (0.0, f64::INFINITY);
            for entry in self.lists.get(i) {
                let g = scores[entry.class as usize];
                gap += entry.u * (largest - g);
                if entry.u > 0.0 {
                    smallest = smallest.min(g);
                }
            }
            piece.gap += gap;
            piece.gaps.push(gap as f32);
            if wants_candidates && gap > 0.0 {
                for entry in self.lists.get(i) {
                    scores[entry.class as usize] = f64::NEG_INFINITY;
                }
                found.clear();
                found.extend((0..k).filter(|m| scores[*m] > smallest).map(|m| (scores[m], m as u32)));
                if found.len() > MAX_CANDIDATES {
                    found.select_nth_unstable_by(MAX_CANDIDATES, |a, b| b.0.total_cmp(&a.0));
                    found.truncate(MAX_CANDIDATES);
                }
                piece.candidates.extend(found.iter().map(|(_, class)| (i as u32, *class)));
            }
        }
        piece
    }

    fn into_solution(self, check: Check, status: Status, n_iter: usize) -> Solution {
        let alpha = Alpha::of(&self.lists, self.problem.class);
        Solution {
            weights: self.w,
            intercepts: check.intercepts,
            alpha,
            certificate: check.certificate,
            status,
            n_iter,
            passes: self.passes,
        }
    }
}

/// Pieces of a check per [`ROW_CHUNK`] rows: all classes of a row are much work.
const SPLIT: usize = 8;
/// A spread of gradients below this, relatively, is rounding.
const NEGLIGIBLE: f64 = 1e-14;

/// What a check finds in some rows.
#[derive(Default)]
struct Piece {
    loss: f64,
    gap: f64,
    gaps: Vec<f32>,
    candidates: Vec<(u32, u32)>,
}

#[cfg(test)]
mod tests;
