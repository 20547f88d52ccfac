//! What coordinate descent on one kind of dual problem consists of.

use super::active::ActiveSet;
use crate::loss::Loss;
use crate::matrix::Rows;

/// The state that an epoch changes beside the method's own.
pub struct Visit<'a> {
    /// `sum_i y_i a_i x_i`, constant column included.
    pub w: &'a mut [f64],
    /// Added to every `w.x_i`.
    pub offset: f64,
    /// How many times a change counts in `w`: once, or as often as there are others who at the same time
    /// change rows of their own.
    pub stretch: f64,
}

/// What an epoch did.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    /// Rows visited.
    pub visited: usize,
    /// Increase of the dual objective.
    pub gain: f64,
    /// Largest projected gradient.
    pub largest: f64,
    /// Smallest projected gradient.
    pub smallest: f64,
}

impl Default for Epoch {
    fn default() -> Self {
        Self { visited: 0, gain: 0.0, largest: f64::NEG_INFINITY, smallest: f64::INFINITY }
    }
}

/// What becomes of a row after a step on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is visited again in the next epoch.
    Stays,
    /// It is left out until the next check of the gap.
    Shrinks,
}

/// Coordinate descent on one kind of dual problem: its state and its step. The epochs are in [`super`].
pub trait Method {
    /// The loss of the primal problem.
    type Loss: Loss;
    /// The loss.
    fn loss(&self) -> Self::Loss;
    /// Takes over a start point, moved into the box where it is outside.
    fn start_at(&mut self, alpha: &[f64]);
    /// The dual variable of row `i`.
    fn alpha(&self, i: usize) -> f64;
    /// The rows that are visited.
    fn active(&mut self) -> &mut ActiveSet;
    /// One step on row `i`.
    fn step<R: Rows>(&mut self, rows: &R, i: usize, visit: &mut Visit<'_>, epoch: &mut Epoch) -> Fate;
    /// Prefetches the method's own state of row `i`.
    fn prefetch(&self, i: usize);
    /// Called after an epoch over permuted rows.
    fn finish(&mut self, _: &Epoch) {}
    /// Decides anew which rows are active, from the margins of all rows.
    fn recheck(&mut self, _: &[f64]) {}
}
