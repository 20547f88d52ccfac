//! The quadratic model of a Newton step as a matrix `H_jk = sum_i h_i x_ij x_ik` over the working set: a
//! visit of a column costs as many numbers as the set has columns, whatever its entries.

use super::factor::Factor;
use super::path::Path;
use super::quadratic::{Jump, QuadraticModel};
use super::walls::is_inside;
use crate::Result;
use crate::fit::monitor::Monitor;
use crate::fit::routes::JUMP_COLUMNS;
use crate::memory::CollectLarge;
use crate::penalty::Term;

/// Added to the diagonal of the matrix, as a share of it: along columns that add up to others the model is
/// flat and the penalty alone says how far to go, up to the next wall.
const RIDGE: f64 = 1e-10;
/// Newton steps of a jump at most.
const MAX_STEPS: usize = 20;

/// The model by its matrix.
pub struct ModelMatrix {
    matrix: Vec<f64>,
    /// The diagonal as it was given,
    given: Vec<f64>,
    /// and with the damping, as it is in the matrix.
    bend: Vec<f64>,
    slope: Vec<f64>,
    factor: Factor,
    /// Whether a jump was asked for.
    was_asked: bool,
}

impl ModelMatrix {
    /// The model of a matrix whose slopes along the columns are `slope`, with a curvature of `damping`
    /// added along each.
    pub fn new(mut matrix: Vec<f64>, slope: Vec<f64>, damping: &[f64]) -> Self {
        let m = slope.len();
        let given: Vec<f64> = (0..m).map(|k| matrix[k * m + k]).collect_large();
        let bend: Vec<f64> = given.iter().zip(damping).map(|(own, damping)| own + damping).collect_large();
        (0..m).for_each(|k| matrix[k * m + k] = bend[k]);
        Self { matrix, given, bend, slope, factor: Factor::new(m), was_asked: false }
    }

    /// The matrix as it was given.
    pub fn into_matrix(self) -> Vec<f64> {
        let Self { mut matrix, given, .. } = self;
        let m = given.len();
        (0..m).for_each(|k| matrix[k * m + k] = given[k]);
        matrix
    }

    /// The same model where its slopes are others.
    pub fn restart(&mut self, slope: Vec<f64>) {
        self.slope = slope;
        self.was_asked = false;
    }
}

impl QuadraticModel for ModelMatrix {
    const FINDS_MINIMUM: bool = true;

    fn visited(&self) -> Vec<u32> {
        (0..self.slope.len() as u32).collect_large()
    }
    #[inline(always)]
    fn along(&self, k: usize) -> [f64; 2] {
        [self.slope[k], self.bend[k]]
    }
    #[inline(always)]
    fn shift(&mut self, k: usize, by: f64) {
        let m = self.slope.len();
        let line = &self.matrix[k * m..][..m];
        self.slope.iter_mut().zip(line).for_each(|(slope, h)| *slope += by * h);
    }

    /// To the minimum over the weights that are neither zero nor on a bound. Where a factorisation takes
    /// longer than the epochs between two jumps, the first one is left out.
    fn jump(&mut self, terms: &[Term], w: &mut [f64], _: f64, monitor: &dyn Monitor) -> Result<(Jump, f64)> {
        let is_first = !std::mem::replace(&mut self.was_asked, true);
        if is_first && inside(terms, w).len() > JUMP_COLUMNS {
            return Ok((Jump::None, 0.0));
        }
        self.jump_to_minimum(terms, w, monitor)
    }
}

/// The weights that are neither zero nor on a bound.
fn inside(terms: &[Term], w: &[f64]) -> Vec<usize> {
    (0..w.len()).filter(|&k| is_inside(&terms[k], w[k])).collect_large()
}

impl ModelMatrix {
    /// Newton steps. A weight that meets a wall on the way stays there, and the next step is without it.
    fn jump_to_minimum(
        &mut self,
        terms: &[Term],
        w: &mut [f64],
        monitor: &dyn Monitor,
    ) -> Result<(Jump, f64)> {
        let (mut found, mut fall) = (Jump::None, 0.0);
        for _ in 0..MAX_STEPS {
            monitor.poll()?;
            let inside = inside(terms, w);
            let Some(by) = self.step(terms, w, &inside, monitor)? else { break };
            let path = Path::along(&self.matrix, terms, w, &inside, by);
            let end = path.descend(&mut self.slope, w);
            fall += end.fall;
            if end.is_minimum {
                return Ok((Jump::Minimum, fall));
            }
            if end.fall == 0.0 {
                break;
            }
            found = Jump::Better;
        }
        Ok((found, fall))
    }

    /// The step to the minimum over the weights `inside`, if it can be had.
    fn step(
        &mut self,
        terms: &[Term],
        w: &[f64],
        inside: &[usize],
        monitor: &dyn Monitor,
    ) -> Result<Option<Vec<f64>>> {
        if inside.is_empty() {
            return Ok(None);
        }
        let (m, matrix, bend) = (self.slope.len(), &self.matrix, &self.bend);
        let entry = |k: usize, l: usize| {
            if k == l { bend[k] * (1.0 + RIDGE) + terms[k].l2 } else { matrix[k * m + l] }
        };
        self.factor.follow(inside, entry, monitor)?;
        let step = self.factor.solve(inside, |k| -terms[k].slope_inside(w[k], self.slope[k]));
        Ok(step.iter().all(|s| s.is_finite()).then_some(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_is_given_back_without_the_damping() {
        let matrix = vec![0.3, 0.1, 0.1, 0.7];
        let mut model = ModelMatrix::new(matrix.clone(), vec![1.0, -1.0], &[0.1, 0.2]);
        assert_eq!([model.along(0), model.along(1)], [[1.0, 0.3 + 0.1], [-1.0, 0.7 + 0.2]]);
        model.shift(0, 1.0);
        assert_eq!(model.into_matrix(), matrix);
    }
}
