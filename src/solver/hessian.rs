//! The matrix `X'DX` for Newton steps by factorisation, when columns are few.
//!
//! With far more rows than columns a sample of the rows is nearly as good a preconditioner as all of them ([`thinned_matrix`]):
//! with `k` sampled rows per column the eigenvalues of the product of one and the inverse of the other lie within about
//! `(1 +- k^-1/2)^2`, so that each further product of the conjugate gradient multiplies the error by `k^-1/2`.

use rayon::prelude::*;

use super::cholesky::Symmetric;
use super::passes::squares;
use super::sample::is_sampled;
use super::sweep::Sweep;
use crate::data::Rows;
use crate::data::kernels::{RANK, rank_update};

/// A row with at least one entry per this many columns is treated as dense.
pub const DENSE_SHARE: usize = 4;
/// Matrices summed in parallel; each costs `d^2` numbers to clear and add.
const MAX_PIECES: usize = 4;
/// Rows between two looks at the cancel flag.
const POLL_ROWS: usize = 1 << 12;

/// Sampled rows per column at least. Tried: 30, half as many products but too dear a matrix where columns are many (mnist).
const ROWS_PER_COLUMN: usize = 8;
/// A sample's matrix need not be much cheaper than one pass over the rows, the price of its diagonal.
const SAMPLE_PASSES: f64 = 0.25;

/// Every how many-th row with curvature is enough for a preconditioner; 1 means all. `passes` is the cost of the matrix of all
/// rows in passes over the data.
pub fn thinning(curvature: &[f64], d: usize, passes: f64) -> usize {
    let rows = curvature.iter().filter(|c| **c != 0.0).count();
    (rows / (ROWS_PER_COLUMN * d)).min((passes / SAMPLE_PASSES) as usize).max(1)
}

/// An approximation of [`curvature_matrix`] from about every `every`-th row, with a diagonal at least that of all rows: a
/// column that the sample misses keeps its scale.
pub fn thinned_matrix<R: Rows>(sweep: &mut Sweep<'_, R>, curvature: &[f64], every: usize) -> Symmetric {
    let scale = |(i, c): (usize, &f64)| if is_sampled(i, every) { every as f64 * c } else { 0.0 };
    let sample: Vec<f64> = curvature.iter().enumerate().map(scale).collect();
    let mut matrix = curvature_matrix(sweep, &sample);
    for (j, exact) in squares(sweep, curvature).into_iter().enumerate() {
        let entry = &mut matrix.values[j * matrix.n + j];
        *entry = entry.max(exact);
    }
    matrix
}

/// Lower triangle of `sum_i curvature[i] x_i x_i'`, summed over the parts of the sweep in order; rows of curvature 0 are not
/// read. Meaningless if the sweep's monitor is cancelled: poll it afterwards.
pub fn curvature_matrix<R: Rows, const L: usize>(sweep: &Sweep<'_, R, L>, curvature: &[f64]) -> Symmetric {
    let (design, d) = (&sweep.design, sweep.design.n_cols());
    let parts = sweep.parts();
    let pieces: Vec<Vec<f64>> = parts
        .par_chunks(parts.len().div_ceil(MAX_PIECES))
        .map(|parts| {
            let mut triangle = Triangle::new(d);
            for range in parts {
                for (i, &c) in range.clone().zip(&curvature[range.clone()]) {
                    if i % POLL_ROWS == 0 && sweep.is_cancelled() {
                        break;
                    }
                    if c != 0.0 {
                        triangle.add(design, i, c);
                    }
                }
            }
            triangle.finish()
        })
        .collect();
    let mut pieces = pieces.into_iter();
    let mut values = pieces.next().unwrap_or_else(|| vec![0.0; d * d]);
    for piece in pieces {
        for (sum, v) in values.iter_mut().zip(piece) {
            *sum += v;
        }
    }
    Symmetric { n: d, values }
}

/// A lower triangle under construction.
struct Triangle {
    d: usize,
    lower: Vec<f64>,
    /// Entries of the row at hand.
    row: Vec<(usize, f64)>,
    /// Dense rows that wait until there are [`RANK`] of them.
    dense: Vec<f64>,
    scale: [f64; RANK],
    waiting: usize,
}

impl Triangle {
    fn new(d: usize) -> Self {
        Self { d, lower: vec![0.0; d * d], row: Vec::new(), dense: vec![0.0; RANK * d], scale: [0.0; RANK], waiting: 0 }
    }

    fn add<R: Rows>(&mut self, rows: &R, i: usize, scale: f64) {
        if rows.row_len(i) * DENSE_SHARE >= self.d {
            let target = &mut self.dense[self.waiting * self.d..(self.waiting + 1) * self.d];
            rows.for_each(i, |j, v| target[j] = v);
            self.scale[self.waiting] = scale;
            self.waiting += 1;
            if self.waiting == RANK {
                self.flush();
            }
        } else {
            self.row.clear();
            rows.for_each(i, |j, v| self.row.push((j, v)));
            self.add_pairs(scale);
        }
    }

    /// Adds the row at hand entry by entry; with columns in rising order, each lands left of the diagonal by itself.
    fn add_pairs(&mut self, scale: f64) {
        if !self.row.is_sorted_by_key(|&(j, _)| j) {
            self.row.sort_unstable_by_key(|&(j, _)| j);
        }
        for (k, &(i, v)) in self.row.iter().enumerate() {
            let (target, t) = (&mut self.lower[i * self.d..(i + 1) * self.d], scale * v);
            for &(j, u) in &self.row[..=k] {
                target[j] += t * u;
            }
        }
    }

    fn flush(&mut self) {
        rank_update(&mut self.lower, self.d, &self.dense, self.scale);
        self.dense.fill(0.0);
        self.scale = [0.0; RANK];
        self.waiting = 0;
    }

    fn finish(mut self) -> Vec<f64> {
        if self.waiting > 0 {
            self.flush();
        }
        self.lower
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::dense::DenseView;
    use crate::data::design::Design;
    use crate::solver::Silent;

    #[test]
    fn thins_where_rows_are_many_and_the_matrix_is_dear() {
        assert_eq!(thinning(&vec![1.0; 3000], 10, 100.0), 37);
        assert_eq!(thinning(&vec![1.0; 3000], 10, 1.0), 4);
        assert_eq!(thinning(&vec![1.0; 3000], 10, 0.1), 1);
        assert_eq!(thinning(&[0.0, 1.0], 10, 100.0), 1);
    }

    #[test]
    fn a_sample_approximates_the_matrix_and_keeps_rare_columns() {
        let (n, d) = (4000, 5);
        // The last column occurs in one row only, which the sample leaves out.
        let rare = (0..n).find(|&i| !is_sampled(i, 8)).unwrap();
        let entry = |i: usize, j: usize| {
            if j + 1 < d { ((i * 7 + j * j) as f64).sin() } else { f64::from(u8::from(i == rare)) }
        };
        let values: Vec<f64> = (0..n * d).map(|k| entry(k / d, k % d)).collect();
        let (x, _) = DenseView::new(&values, n, d).unwrap();
        let mut sweep = Sweep::new(Design { rows: &x, ids: None, bias: 0.0 }, &Silent);
        let curvature: Vec<f64> = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
        let (exact, thin) = (curvature_matrix(&sweep, &curvature), thinned_matrix(&mut sweep, &curvature, 8));
        for i in 0..d {
            let on = |m: &Symmetric| m.values[i * d + i];
            assert!(on(&thin) >= on(&exact) && on(&thin) <= 1.3 * on(&exact));
            for j in 0..i {
                let off = (thin.values[i * d + j] - exact.values[i * d + j]).abs();
                assert!(off <= 0.3 * (exact.values[i * d + i] * exact.values[j * d + j]).sqrt());
            }
        }
        assert_eq!(thin.values[d * d - 1], curvature[rare]);
    }
}
