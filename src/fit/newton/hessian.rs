//! The matrix `X'DX` for Newton steps by factorisation, when columns are few.
//!
//! Tried, for a single fit with far more rows than columns: the matrix of a sample of the rows, with the
//! diagonal of all, as a preconditioner. Good for small `C` only. Passes and milliseconds, w8a, squared
//! hinge, C = 16: 18 and 86 with all rows, 41 and 191 with eight sampled rows per column, as columns that the
//! sample nearly misses have large eigenvalues; a9a, C = 1: 14 and 28 against 42 and 60.

use std::ops::Range;

use super::cholesky::Symmetric;
use crate::fit::routes::DENSE_SHARE;
use crate::fit::sweep::Sweep;
use crate::matrix::kernels::{RANK, rank_update};
use crate::matrix::{Pass, Rows};
use crate::{memory, parallel};

/// Matrices summed in parallel; each costs `d^2` numbers to clear and add.
const MAX_PIECES: usize = 4;
/// Rows between two polls of the cancel flag.
const POLL_ROWS: usize = 1 << 12;

/// Lower triangle of `sum_i curvature[i] x_i x_i'`, summed over the parts of the sweep in order; rows of
/// curvature 0 are not read. Meaningless if the sweep's monitor is cancelled: poll it afterwards.
pub fn curvature_matrix<const L: usize>(sweep: &Sweep<'_, L>, curvature: &[f64]) -> Symmetric {
    let (design, d) = (&sweep.design, sweep.design.n_cols());
    let parts = sweep.parts();
    let groups: Vec<_> = parts.chunks(parts.len().div_ceil(MAX_PIECES)).collect();
    let pieces = parallel::map(groups.len(), |k| {
        let mut triangle = Triangle::new(d);
        for range in groups[k] {
            for start in range.clone().step_by(POLL_ROWS) {
                if sweep.is_cancelled() {
                    break;
                }
                let rows = start..(start + POLL_ROWS).min(range.end);
                design.visit(Outer { triangle: &mut triangle, curvature, rows });
            }
        }
        triangle.finish()
    });
    let mut pieces = pieces.into_iter();
    let mut values = pieces.next().unwrap_or_else(|| memory::zeros(d * d));
    for piece in pieces {
        for (sum, v) in values.iter_mut().zip(piece) {
            *sum += v;
        }
    }
    Symmetric { n: d, values }
}

/// Adds the products of some rows to a triangle.
struct Outer<'s> {
    triangle: &'s mut Triangle,
    curvature: &'s [f64],
    rows: Range<usize>,
}

impl Pass for Outer<'_> {
    type Output = ();
    fn run<R: Rows>(self, rows: &R) {
        for i in self.rows {
            if self.curvature[i] != 0.0 {
                self.triangle.add(rows, i, self.curvature[i]);
            }
        }
    }
}

/// A lower triangle under construction.
struct Triangle {
    d: usize,
    lower: Vec<f64>,
    /// Entries of the present row.
    row: Vec<(usize, f64)>,
    /// Dense rows that wait until there are [`RANK`] of them.
    dense: Vec<f64>,
    scale: [f64; RANK],
    waiting: usize,
}

impl Triangle {
    fn new(d: usize) -> Self {
        Self {
            d,
            lower: memory::zeros(d * d),
            row: Vec::new(),
            dense: memory::zeros(RANK * d),
            scale: [0.0; RANK],
            waiting: 0,
        }
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

    /// Adds the present row entry by entry; with columns in rising order, each lands left of the diagonal by
    /// itself.
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
