//! What coordinate descent on one kind of dual problem consists of.

use super::DualLoss;
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

/// What the epochs of several problems did, or with what the next ones begin.
#[derive(Clone, Copy, Debug)]
pub struct Epochs<const L: usize> {
    /// Increase of each dual objective.
    pub gain: [f64; L],
    /// Largest projected gradient.
    pub largest: [f64; L],
    /// Smallest projected gradient.
    pub smallest: [f64; L],
}

impl<const L: usize> Default for Epochs<L> {
    fn default() -> Self {
        Self { gain: [0.0; L], largest: [f64::NEG_INFINITY; L], smallest: [f64::INFINITY; L] }
    }
}

/// What is the same for the variables of a row in all problems.
#[derive(Clone, Copy, Debug)]
pub struct RowConstants {
    /// Cost.
    pub cost: f64,
    /// Squared norm.
    pub squared_norm: f64,
}

/// The variables of a row in several problems with the same rows and costs, and the step of [`Method`] on all
/// of them at once.
pub trait ClassRow<T: DualLoss, const L: usize>: Clone + Send + Sync {
    /// Where the descent starts by itself.
    fn first(loss: T, cost: f64) -> Self;
    /// Takes over a start of problem `l`, moved into the box where it is outside.
    fn start_at(&mut self, loss: T, cost: f64, l: usize, alpha: f64);
    /// The variables in these problems.
    fn lanes<const N: usize>(&self, from: [usize; N]) -> T::Row<N>;
    /// The dual variables.
    fn alpha(&self) -> &[f64; L];
    /// One step in the problems of which the bit is set in `active`, at these margins; by how much each
    /// variable changes. `bounds` are what [`bounds_after`] says. A problem that is to leave the row out
    /// until the next check loses its bit. `#[inline(always)]`.
    fn step(
        &mut self,
        loss: T,
        row: RowConstants,
        margin: &[f64; L],
        bounds: &[[f64; L]; 2],
        active: &mut u8,
        epochs: &mut Epochs<L>,
    ) -> [f64; L];
    /// Whether problem `l` is to visit the row at this margin, decided anew.
    fn is_visited(&self, _loss: T, _cost: f64, _l: usize, _margin: f64, _bounds: &[[f64; L]; 2]) -> bool {
        true
    }
}

/// The projected gradients beyond which rows are shrunk in the epoch after one with these, upper ones first.
/// As in LIBLINEAR: a bound that would shrink violating rows is no bound.
#[inline(always)]
pub fn bounds_after(largest: f64, smallest: f64) -> [f64; 2] {
    [
        if largest > 0.0 { largest } else { f64::INFINITY },
        if smallest < 0.0 { smallest } else { f64::NEG_INFINITY },
    ]
}

/// Ones for the bits that are set, zeros for the others.
#[inline(always)]
pub fn ones<const L: usize>(bits: u8) -> [f64; L] {
    let mut ones = [0.0; L];
    for l in 0..L {
        ones[l] = if bits >> l & 1 == 1 { 1.0 } else { 0.0 };
    }
    ones
}
