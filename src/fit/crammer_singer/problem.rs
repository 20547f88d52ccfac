//! A multi-class problem, where its fit begins, and the answer.

use super::rows::Alpha;
use super::weights::ClassWeights;
use crate::fit::problem::{Certificate, Intercept, Status};
use crate::matrix::Matrix;

/// A multi-class problem over borrowed rows.
pub struct ClassProblem<'a> {
    /// The full matrix.
    pub rows: &'a Matrix<'a>,
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

impl Clone for ClassProblem<'_> {
    fn clone(&self) -> Self {
        *self
    }
}
impl Copy for ClassProblem<'_> {}

/// Where a fit begins: dual variables, moved into their simplex where they are outside, and multipliers of a
/// free intercept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassStart {
    /// Dual variables.
    pub alpha: Option<Alpha>,
    /// Intercepts, one per class.
    pub intercepts: Option<Vec<f64>>,
    /// Factor of the dual variables.
    pub factor: Option<f64>,
}

/// The answer.
#[derive(Clone, Debug)]
pub struct ClassSolution {
    /// Weights of the columns, class within column, without padding.
    pub weights: ClassWeights,
    /// Intercepts on the scale of the scores.
    pub intercepts: Vec<f64>,
    /// Dual variables.
    pub alpha: Alpha,
    /// How good the weights are.
    pub certificate: Certificate,
    /// How the fit ended.
    pub status: Status,
    /// Epochs and Newton steps.
    pub n_iter: usize,
    /// Newton steps, 0 for a fit by the descent alone.
    pub n_steps: usize,
    /// Visits of rows in units of all rows, checks included.
    pub passes: f64,
}
