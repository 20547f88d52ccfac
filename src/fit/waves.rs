//! A small made-up problem for tests: rows of waves with zeros among them, two classes, three costs.

use super::problem::{Intercept, Problem};
use crate::matrix::Matrix;
use crate::matrix::dense::DenseView;

/// The arrays of a problem of `n` rows and `d` columns.
pub struct Waves {
    values: Vec<f64>,
    y: Vec<f64>,
    cost: Vec<f64>,
    d: usize,
}

impl Waves {
    /// Costs are `scale` times 1 to 3; at least two rows.
    pub fn new(n: usize, d: usize, scale: f64, seed: usize) -> Self {
        let wave = |k: usize| (((k + seed) * 7919 % 1009) as f64 / 1009.0 - 0.5) * 3.0;
        let values: Vec<f64> = (0..n * d).map(|k| if k % 4 == 1 { 0.0 } else { wave(k) }).collect();
        let mut y: Vec<f64> =
            (0..n).map(|i| if values[i * d] + wave(31 * i) > 0.2 { 1.0 } else { -1.0 }).collect();
        (y[0], y[1]) = (1.0, -1.0);
        let cost = (0..n).map(|i| scale * (1.0 + (i % 3) as f64)).collect();
        Self { values, y, cost, d }
    }

    /// The rows.
    pub fn rows(&self) -> Matrix<'_> {
        DenseView::new(&self.values, self.y.len(), self.d).unwrap().0.into()
    }

    /// The problem over [`Self::rows`], with no, a free or a penalised intercept.
    pub fn problem<'a>(&'a self, rows: &'a Matrix<'a>, intercept: usize) -> Problem<'a> {
        let intercept = [Intercept::None, Intercept::Free, Intercept::Penalised(0.7)][intercept];
        Problem { rows, ids: None, y: &self.y, cost: &self.cost, intercept }
    }
}
