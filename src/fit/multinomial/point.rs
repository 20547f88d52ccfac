//! Where a solver has ended: weights, intercepts, a dual point, and what is known of them.

use super::strips::Strips;
use crate::fit::crammer_singer::ClassProblem;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::problem::{Intercept, Status};
use crate::matrix::lanes::Block;

/// A solution to be proved.
pub struct Point {
    /// Weights; those of a penalised intercept's column last.
    pub w: Strips,
    /// Intercepts that are not among the weights, by line; [`FAR`](super::softmax::FAR) beyond the last.
    pub offset: Vec<[f64; LINE]>,
    /// Logits of the dual point by row; `None` is the softmax at the weights.
    pub logits: Option<Block<LINE>>,
    /// How the solver ended.
    pub status: Status,
    /// Epochs and Newton steps.
    pub n_iter: usize,
    /// Readings of the data.
    pub passes: f64,
    /// The descent has ended here: the weights are those of the logits.
    pub is_of_descent: bool,
}

impl Point {
    /// Intercepts by class.
    pub fn intercepts(&self, problem: &ClassProblem<'_>) -> Vec<f64> {
        let k = problem.n_classes;
        match problem.intercept {
            Intercept::Penalised(scale) => {
                let mut column = vec![[0.0; LINE]; self.offset.len()];
                self.w.column(self.w.n_columns() - 1, &mut column);
                column.as_flattened()[..k].iter().map(|w| scale * w).collect()
            }
            Intercept::Free => self.offset.as_flattened()[..k].to_vec(),
            Intercept::None => vec![0.0; k],
        }
    }
}
