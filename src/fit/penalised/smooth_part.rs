//! What Newton steps descend on: the losses of all rows as a function of the decision values, with the models
//! of a step around a point. [`super::binary`] is that of one decision value a row, [`super::softmax`] that
//! of one for each class.

use super::chosen_columns::ChosenColumns;
use super::coordinates::Coordinates;
use super::entries::RowModels;
use super::half_parabolas::HalfParabolas;
use crate::fit::monitor::Monitor;
use crate::{Result, memory};

/// The losses, or what stands for them, at given decision values.
pub struct Losses {
    /// Decision values.
    pub z: Vec<f64>,
    /// Sum of all losses times costs.
    pub value: f64,
    /// Its slope along each decision value.
    pub slope: Vec<f64>,
    /// What its curvature follows from, a number for each decision value: the curvature itself, or of the
    /// softmax the probability times the cost.
    pub bend: Vec<f64>,
}

impl Losses {
    /// Evaluates the terms of the rows.
    pub fn at<T: SmoothPart>(smooth_part: &T, z: Vec<f64>) -> Self {
        let mut losses = Self::unknown(z);
        smooth_part.evaluate(&mut losses);
        losses
    }

    /// Nothing but decision values.
    pub fn unknown(z: Vec<f64>) -> Self {
        let n = z.len();
        Self { z, value: 0.0, slope: memory::zeros(n), bend: memory::zeros(n) }
    }
}

/// Smooth convex terms of the rows over the coordinates of a problem.
pub trait SmoothPart: Sync {
    /// The quadratic model by the entries of the columns.
    type Rows<'s>: RowModels
    where
        Self: 's;

    /// What there is to move, with its penalties and bounds.
    fn coordinates(&self) -> Coordinates<'_>;
    /// Evaluates the terms at other decision values.
    fn evaluate(&self, losses: &mut Losses);
    /// Curvature of the terms along a column at most, the same in all blocks.
    fn largest_bend(&self, column: usize) -> f64;
    /// Whether no row of positive cost is flat.
    fn is_curved(&self, losses: &Losses) -> bool;
    /// The model around `losses` on the coordinates of `list`, along which the losses have these slopes.
    fn row_models<'s>(&'s self, list: &'s [u32], losses: &'s Losses, slope: &'s [f64]) -> Self::Rows<'s>;
    /// The terms themselves on the coordinates of `list`, where they are half parabolas.
    fn half_parabolas<'s>(&'s self, _list: &'s [u32], _losses: &Losses) -> Option<HalfParabolas<'s>> {
        None
    }
    /// The matrix of that model.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    fn matrix(
        &self,
        chosen: &ChosenColumns<'_>,
        list: &[u32],
        losses: &Losses,
        monitor: &dyn Monitor,
    ) -> Result<Vec<f64>>;
    /// The weights of the rows of whose products that matrix is the sum, where few of them change in a step.
    fn row_weights<'l>(&self, _losses: &'l Losses) -> Option<&'l [f64]> {
        None
    }
    /// The terms of the rows in the dual at `scale` times the point that has the slopes of the losses, in
    /// sum, and the sum of their sizes.
    fn dual_terms(&self, slope: &[f64], scale: f64) -> [f64; 2];
    /// The slopes that the model around `losses` has along the decision values where these have moved by
    /// `along`, as a dual point: within the box, and zero along free columns. None where that is not at hand.
    fn model_slopes(&self, _losses: &Losses, _along: &[f64]) -> Option<Vec<f64>> {
        None
    }
    /// Moves weights to better or equally good ones along directions that change no term.
    fn normalise(&self, _w: &mut [f64]) {}
}
