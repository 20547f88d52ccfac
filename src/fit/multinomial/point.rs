//! Where a solver has ended: weights, intercepts, a dual point, and what is known of them.

use super::softmax::{FAR, Lines};
use super::strips::Strips;
use crate::fit::crammer_singer::ClassProblem;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::problem::{Intercept, Status};
use crate::matrix::Rows;
use crate::matrix::lanes::Block;

/// A solution to be proved.
pub struct Point {
    /// Weights; those of a penalised intercept's column last.
    pub w: Strips,
    /// Intercepts that are not among the weights, by line; [`FAR`] beyond the last.
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
    /// Weights, those of one class after the other, and intercepts, of which nothing else is known.
    pub fn of_weights(problem: &ClassProblem<'_>, coef: &[f64], intercepts: &[f64]) -> Self {
        let (n, k) = (problem.rows.n_cols(), problem.n_classes);
        let (lines, height) = (k.div_ceil(LINE), problem.intercept.penalised_height());
        let mut w = Strips::zeros(n + usize::from(height != 0.0), lines);
        let mut offset = vec![[FAR; LINE]; lines];
        for (class, intercept) in intercepts.iter().enumerate() {
            let mut numbers = coef[class * n..(class + 1) * n].to_vec();
            numbers.extend((height != 0.0).then(|| intercept / height));
            w.set_class(class, &numbers);
            let is_free = problem.intercept == Intercept::Free;
            offset.as_flattened_mut()[class] = if is_free { *intercept } else { 0.0 };
        }
        let (logits, status, n_iter, passes, is_of_descent) = (None, Status::Stalled, 0, 0.0, false);
        Self { w, offset, logits, status, n_iter, passes, is_of_descent }
    }

    /// Moves free intercepts by `shift`, less what all classes have in common, which changes no probability:
    /// the sum of the intercepts stays 0.
    pub fn shift(&mut self, shift: &mut Lines, n_classes: usize) {
        let offsets = &mut self.offset.as_flattened_mut()[..n_classes];
        let shifts = &mut shift.as_flattened_mut()[..n_classes];
        let mean = offsets.iter().chain(&*shifts).sum::<f64>() / n_classes as f64;
        for (offset, shift) in offsets.iter_mut().zip(shifts) {
            *shift -= mean;
            *offset += *shift;
        }
    }

    /// Intercepts by class.
    pub fn intercepts(&self, problem: &ClassProblem<'_>) -> Vec<f64> {
        self.intercepts_of(problem.intercept, problem.n_classes)
    }

    /// Intercepts of so many classes.
    pub fn intercepts_of(&self, intercept: Intercept, k: usize) -> Vec<f64> {
        match intercept {
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
