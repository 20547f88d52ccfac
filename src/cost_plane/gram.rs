//! Inner products of the signed rows, computed once: their Gram matrix.
//!
//! `Q_ij = y_i y_j x_i.x_j` over the training rows, and beside them, for rows that are only watched (held-out
//! data), `y_i x_i.v_j`. A row of the table is what one unit of the dual variable `a_i` adds to every margin
//! and every watched decision value, so that moving a row between the sets is a sum of rows of the table,
//! whatever the number of features.

use rayon::prelude::*;

use crate::fit::Monitor;
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::{Result, memory};

/// Columns of the table are padded to a multiple of this, the step of its loops.
pub const BLOCK: usize = 16;

/// The Gram matrix of the signed rows, with the products of the watched rows beside it; row after row.
pub struct GramMatrix {
    n_rows: usize,
    n_watched: usize,
    width: usize,
    values: Vec<f64>,
}

/// Rows with their labels in {-1, +1}.
pub struct Signed<'a> {
    /// The rows; a constant column is part of them.
    pub rows: &'a Design<'a>,
    /// The labels.
    pub y: &'a [f64],
}

impl GramMatrix {
    /// Products of all `rows` with each other, and with `watched` (decision values, no sign). Cost: every row
    /// scattered once and read `n_rows` times.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn new(signed: &Signed<'_>, watched: Option<&Design<'_>>, monitor: &dyn Monitor) -> Result<Self> {
        let (n_rows, n_cols) = (signed.rows.n_rows(), signed.rows.n_cols());
        let n_watched = watched.map_or(0, Rows::n_rows);
        let width = (n_rows + n_watched).next_multiple_of(BLOCK).max(BLOCK);
        let mut values = memory::zeros(n_rows * width);
        values.par_chunks_mut(width).enumerate().for_each_init(
            || memory::zeros(n_cols),
            |dense, (i, row)| {
                if monitor.cancelled() {
                    return;
                }
                signed.rows.add_scaled(i, signed.y[i], dense);
                let (own, beside) = row.split_at_mut(n_rows);
                for (j, product) in own.iter_mut().enumerate() {
                    *product = signed.y[j] * signed.rows.dot(j, dense);
                }
                for (j, product) in beside[..n_watched].iter_mut().enumerate() {
                    *product = watched.map_or(0.0, |watched| watched.dot(j, dense));
                }
                signed.rows.for_each(i, |column, _| dense[column] = 0.0);
            },
        );
        monitor.poll()?;
        Ok(Self { n_rows, n_watched, width, values })
    }

    /// Bytes of a table.
    pub fn bytes(n_rows: usize, n_watched: usize) -> usize {
        n_rows.saturating_mul((n_rows + n_watched).next_multiple_of(BLOCK)).saturating_mul(size_of::<f64>())
    }

    /// Number of training rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of watched rows, which follow the training rows in every line.
    pub fn n_watched(&self) -> usize {
        self.n_watched
    }

    /// Length of a line, padding included.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The line of row `i`.
    #[inline(always)]
    pub fn line(&self, i: usize) -> &[f64] {
        &self.values[i * self.width..(i + 1) * self.width]
    }
}
