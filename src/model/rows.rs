//! What a model takes as rows.

use std::ops::Range;

use crate::Result;
use crate::fit::check_length;
use crate::front::Checked;
use crate::matrix::csr::{CsrPieces, CsrView};
use crate::matrix::dense::{DensePieces, DenseView};
use crate::matrix::layout::Layout;
use crate::matrix::pieces::{CheckedRows, Finite};
use crate::matrix::{Index, Rows, Value};
use crate::memory;

/// Rows that are checked as they are used, or all at once where their products are features.
pub trait ModelRows: CheckedRows {
    /// All rows, checked.
    ///
    /// # Errors
    /// As for [`CheckedRows::piece`].
    fn checked(&self) -> Result<Checked<'_>>;
}

impl<'a, I: Index, V: Value> ModelRows for CsrPieces<'a, I, V>
where
    Layout<'a>: From<CsrView<'a, I, V>>,
{
    fn checked(&self) -> Result<Checked<'_>> {
        let (indptr, indices, values) = self.arrays();
        let (rows, structure) = CsrView::new(indptr, indices, values, self.n_cols())?;
        Ok(Checked { rows: rows.into(), structure })
    }
}

impl<'a, V: Value> ModelRows for DensePieces<'a, V>
where
    Layout<'a>: From<DenseView<'a, V>>,
{
    fn checked(&self) -> Result<Checked<'_>> {
        let (rows, structure) = DenseView::new(self.values(), self.n_rows(), self.n_cols())?;
        Ok(Checked { rows: rows.into(), structure })
    }
}

/// One row of columns in any order; one that comes twice counts with the sum of its values.
#[derive(Clone, Copy)]
pub struct SparseRow<'a, I, V> {
    /// Columns.
    pub indices: &'a [I],
    /// Their values.
    pub values: &'a [V],
}

impl<'a, I: Index, V: Value> SparseRow<'a, I, V> {
    /// Calls `f` with the row as a matrix of one.
    pub(super) fn with<T>(
        &self,
        n_cols: usize,
        f: impl FnOnce(&CsrPieces<'_, I, V>) -> Result<T>,
    ) -> Result<T> {
        check_length("values of the row, one per index", self.indices.len(), self.values.len())?;
        f(&CsrPieces::new(&[0, self.indices.len() as i64], self.indices, self.values, n_cols)?)
    }
}

/// Rows with rising columns, each once.
pub struct RisingRows {
    indptr: Vec<i64>,
    indices: Vec<i64>,
    values: Vec<f64>,
    n_cols: usize,
}

impl RisingRows {
    /// A copy of rows that have them in another order; none of rows that are in order.
    pub fn of(rows: &Layout<'_>) -> Option<Self> {
        let n_rows = rows.n_rows();
        if (0..n_rows).all(|i| rises(rows, i)) {
            return None;
        }
        let (mut indptr, mut indices, mut values) =
            (memory::with_capacity(n_rows + 1), Vec::new(), Vec::new());
        indptr.push(0);
        let mut entries: Vec<(i64, f64)> = Vec::new();
        for i in 0..n_rows {
            entries.clear();
            rows.for_each(i, |j, v| entries.push((j as i64, v)));
            entries.sort_by_key(|entry| entry.0);
            let sums = entries.chunk_by(|a, b| a.0 == b.0);
            let sums =
                sums.map(|same| (same[0].0, same[1..].iter().fold(same[0].1, |sum, entry| sum + entry.1)));
            let (columns, sums): (Vec<_>, Vec<_>) = sums.unzip();
            memory::extend(&mut indices, columns);
            memory::extend(&mut values, sums);
            indptr.push(indices.len() as i64);
        }
        Some(Self { indptr, indices, values, n_cols: rows.n_cols() })
    }

    /// The rows, checked: sums may be infinite.
    ///
    /// # Errors
    /// [`crate::Error::Entry`].
    pub fn checked(&self) -> Result<Checked<'_>> {
        let (rows, structure) = CsrView::new(&self.indptr, &self.indices, &self.values, self.n_cols)?;
        Ok(Checked { rows: rows.into(), structure })
    }
}

fn rises(rows: &Layout<'_>, i: usize) -> bool {
    let (mut last, mut rises) = (None, true);
    rows.for_each(i, |j, _| {
        rises &= last < Some(j);
        last = Some(j);
    });
    rises
}

/// All rows of a matrix, checked.
pub(super) fn whole<P: CheckedRows>(x: &P) -> Result<P::Piece> {
    x.piece(Range { start: 0, end: x.n_rows() }, Finite::Required)
}
