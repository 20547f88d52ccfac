//! What a dense factorisation for Newton steps costs, and whether it is better than conjugate gradient.

use crate::fit::routes::{DENSE_SHARE, MAX_CHOLESKY_COLUMNS, MAX_CHOLESKY_PASSES, SMALL, VECTORISED};
use crate::matrix::design::Design;
use crate::matrix::{Pass, Rows};

/// How much of the matrix `X'DX` a preconditioner is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The diagonal.
    Diagonal,
    /// The diagonal, and the block of the most frequent columns.
    Frequent,
    /// All of it.
    Dense,
}

/// What a dense factorisation for Newton steps costs.
#[derive(Clone, Copy, Debug)]
pub struct Factorisation {
    /// In passes over the data.
    pub passes: f64,
    /// Whether it is better than conjugate gradient with a diagonal preconditioner.
    pub is_worth_it: bool,
    /// What is factorised.
    pub form: Form,
}

/// Whether a problem is so small that Newton takes no time.
pub fn is_small(design: &Design<'_>) -> bool {
    design.n_rows().saturating_mul(design.n_cols()) <= SMALL
}

/// What a dense factorisation costs; `None` for more columns than [`MAX_CHOLESKY_COLUMNS`].
pub fn factorisation(design: &Design<'_>) -> Option<Factorisation> {
    let d = design.n_cols();
    (d <= MAX_CHOLESKY_COLUMNS).then(|| of_sums(d, pairs(design), is_small(design)))
}

/// Entries of the rows, and products that a matrix of their columns takes: sums over the rows.
pub fn pairs(design: &Design<'_>) -> [f64; 2] {
    design.visit(Pairs)
}

/// [`pairs`].
struct Pairs;

impl Pass for Pairs {
    type Output = [f64; 2];
    fn run<R: Rows>(self, rows: &R) -> [f64; 2] {
        let d = rows.n_cols();
        let (mut entries, mut pairs) = (0.0, 0.0);
        for i in 0..rows.n_rows() {
            let len = rows.row_len(i);
            entries += len as f64;
            pairs += pairs_of_row(len, d);
        }
        [entries, pairs]
    }
}

/// Products that a row of so many entries brings to a matrix of `d` columns.
pub fn pairs_of_row(len: usize, d: usize) -> f64 {
    let width = if len * DENSE_SHARE < d { len as f64 } else { d as f64 / VECTORISED };
    len as f64 * width / 2.0
}

/// What a factorisation of `d` columns costs, from [`pairs`].
pub fn of_sums(d: usize, [entries, pairs]: [f64; 2], is_small: bool) -> Factorisation {
    let work = pairs + (d as f64).powi(3) / (6.0 * VECTORISED);
    let passes = work / (2.0 * entries).max(1.0);
    Factorisation { passes, is_worth_it: passes <= MAX_CHOLESKY_PASSES || is_small, form: Form::Dense }
}
