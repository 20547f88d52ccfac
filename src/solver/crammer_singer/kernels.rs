//! The row operations of the method, behind one object: the solver is compiled once, these loops once per layout of the rows.

use super::weights::Change;
use crate::data::Rows;
use crate::data::design::Design;

/// Rows times weights of several classes: those of class `m` begin at `m stride`.
pub trait ClassRows: Sync {
    /// Number of columns, a constant one included.
    fn n_columns(&self) -> usize;
    /// Score of row `i` with the weights of one class.
    fn dot(&self, i: usize, w: &[f64]) -> f64;
    /// Scores of chosen classes of row `i`, at their positions in `classes`.
    fn some_scores(&self, i: usize, numbers: &[f64], stride: usize, classes: &[u32], out: &mut [f64]);
    /// `w_m += delta x_i` for every change `(m, delta)`.
    fn add(&self, i: usize, changes: &[Change], numbers: &mut [f64], stride: usize);
    /// `|x_i|^2`.
    fn squared(&self, i: usize) -> f64;
    /// Asks for the entries of row `i`.
    fn ask(&self, i: usize);
    /// Asks for what is needed to ask for the entries of row `i`.
    fn ask_header(&self, i: usize);
}

impl<R: Rows> ClassRows for Design<'_, R> {
    fn n_columns(&self) -> usize {
        self.n_cols()
    }

    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        Rows::dot(self, i, &w[..self.n_cols()])
    }

    fn some_scores(&self, i: usize, numbers: &[f64], stride: usize, classes: &[u32], out: &mut [f64]) {
        let d = self.n_cols();
        classes.iter().zip(out).for_each(|(&m, out)| *out = Rows::dot(self, i, &numbers[m as usize * stride..][..d]));
    }

    fn add(&self, i: usize, changes: &[Change], numbers: &mut [f64], stride: usize) {
        let d = self.n_cols();
        for change in changes {
            self.add_scaled(i, change.delta, &mut numbers[change.class as usize * stride..][..d]);
        }
    }

    fn squared(&self, i: usize) -> f64 {
        self.squared_norm(i)
    }

    fn ask(&self, i: usize) {
        self.prefetch(i);
    }

    fn ask_header(&self, i: usize) {
        self.prefetch_header(i);
    }
}
