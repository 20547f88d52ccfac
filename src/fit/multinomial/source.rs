//! What Newton asks of the rows, wherever they are, for all classes at once.
//!
//! Newton keeps what has a number for each column and class (weights, gradient, direction) and decides; what
//! has a number for each row and class belongs to the place of the rows. [`super::tables`] is that place in
//! memory, where scores and probabilities stay in tables; over the blocks of a store they are computed anew
//! from the weights whenever a block is read, so that nothing grows with the number of rows.

use super::passes::Evaluated;
use super::shape::{SoftmaxShape, SoftmaxSizes};
use super::softmax::Lines;
use super::strips::Strips;
use crate::Result;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::newton::factorisation::Factorisation;
use crate::fit::newton::preconditioner::Gram;

/// How well intercepts are to be balanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balance {
    /// For a step: sums of classes within a tenth of the sizes of their terms.
    Rough,
    /// For a dual point.
    Exact,
}

impl Balance {
    /// Share of the sizes of its terms at which a class's sum is small enough; `exact` is what counts as 0.
    pub fn share(self, exact: f64) -> f64 {
        match self {
            Self::Rough => ROUGH,
            Self::Exact => exact,
        }
    }
}

/// See [`Balance::Rough`].
const ROUGH: f64 = 0.1;

/// The losses at logits plus a shift that all rows share: what [`super::balance`] asks for.
///
/// # Errors
/// Of all methods: those of the place where the rows are, none in memory.
pub trait ShiftedLogits {
    /// The sizes.
    fn shape(&self) -> SoftmaxShape;
    /// Whether the caller asked to stop.
    fn is_cancelled(&self) -> bool;
    /// The losses at logits plus `shift`, and what they lack of the constraint.
    #[allow(clippy::missing_errors_doc)] // of the trait
    fn evaluate_at(&mut self, shift: &Lines) -> Result<Evaluated>;
    /// `sum_i c_i (diag(p_i) - p_i p_i') v` where the losses were last evaluated.
    #[allow(clippy::missing_errors_doc)]
    fn curve(&mut self, v: &Lines) -> Result<Vec<[f64; LINE]>>;
}

/// Rows with what a minimisation knows of each, somewhere.
///
/// # Errors
/// Of all methods: those of the place where the rows are; [`crate::Error::Cancelled`].
pub trait SoftmaxPasses: SoftmaxSizes {
    /// Hands on how far a fit is: its steps, and the relative gap.
    fn observe(&mut self, steps: usize, gap: f64);
    /// What a matrix of all columns costs, where there is room for one.
    fn factorisation(&self) -> Option<Factorisation>;
    /// Readings of the data so far.
    fn readings(&self) -> f64;
    /// Notes readings that were made for the same fit in another way.
    fn add_readings(&mut self, more: f64);
    /// Begins at weights.
    #[allow(clippy::missing_errors_doc)] // of the trait
    fn decide(&mut self, w: &Strips) -> Result<()>;
    /// The losses at the present weights.
    #[allow(clippy::missing_errors_doc)]
    fn evaluate(&mut self, w: &Strips) -> Result<Evaluated>;
    /// The best shift of all scores, or one near it, and the losses there. The weights are still those
    /// without it.
    #[allow(clippy::missing_errors_doc)]
    fn balance(&mut self, w: &Strips, how: Balance) -> Result<(Vec<[f64; LINE]>, Evaluated)>;
    /// The scores move by so much: the shift found, up to what all classes have in common.
    fn shift(&mut self, shift: &Lines);
    /// Writes `sum_i c_i (p_i - e_{y_i}) x_i'` of the point evaluated last.
    #[allow(clippy::missing_errors_doc)]
    fn slopes(&mut self, h: &mut Strips) -> Result<()>;
    /// `sum_i c_i g_i x_i x_i'` or its diagonal, with `g_i = p_ik (1 - p_ik)` of a class or their mean.
    #[allow(clippy::missing_errors_doc)]
    fn curvature(&mut self, w: &Strips, class: Option<usize>, is_dense: bool) -> Result<Gram>;
    /// Forgets the direction before.
    fn begin_direction(&mut self);
    /// Writes `sum_i c_i (diag(p_i) - p_i p_i') (D x_i) x_i'`. `length` is that of the step along the
    /// direction before, 0 at first.
    #[allow(clippy::missing_errors_doc)]
    fn multiply(&mut self, w: &Strips, d: &Strips, length: f64, out: &mut Strips) -> Result<()>;
    /// The step is complete: its last part has this length.
    fn end_direction(&mut self, length: f64);
    /// The losses at `w + length * step`.
    #[allow(clippy::missing_errors_doc)]
    fn loss_at(&mut self, w: &Strips, step: &Strips, length: f64) -> Result<f64>;
    /// Goes so many steps.
    fn advance(&mut self, length: f64);
}
