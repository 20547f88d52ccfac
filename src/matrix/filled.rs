//! CSR rows with few gaps as dense ones.
//!
//! Files of dense data leave out the zeros, however few there are. Whoever reads the rows then reads a number
//! of each column that follows from the one before, and cannot take several rows at once.

use super::csr::CsrView;
use super::dense::DenseView;
use super::layout::Layout;
use super::number::{CsrValues, Index, Value};
use super::rows::Rows;
use crate::{Error, Result, memory, parallel};

/// Share of the cells that are stored entries from which on rows are filled up. By how much fits are faster
/// on dense rows, at such shares of random entries, one thread: Newton (squared hinge, C = 0.1), Newton
/// (logistic), the hinge, dual descent:
///
/// ```text
///                            0.5                 0.6                 0.75                0.9
/// 20,000 x 100, single    1.1 1.2 1.1 0.9     1.3 1.3 1.2 1.2     1.3 1.3 1.4 1.4     1.5 1.4 1.5 1.5
/// 5,000 x 1,000, double   0.8 0.8 0.9 0.8     1.1 1.0 1.1 0.9     1.3 1.2 1.3 1.2     1.5 1.4 1.3 1.3
/// ```
///
/// To fill up costs about a nanosecond for each cell, once, and the memory of the cells. madelon (2,600 x
/// 500, one entry is missing) takes 33 ms instead of 50 by Newton's method, and 0.67 s instead of 1.6 by dual
/// descent.
const FILLED_SHARE: f64 = 0.75;
/// Cells that are filled by one task.
const TASK: usize = 1 << 16;

/// The cells of all rows.
pub struct Filled {
    values: CsrValues,
    n_rows: usize,
    n_cols: usize,
}

impl Filled {
    /// A copy of `rows`, where they have few gaps; no column may come twice in a row.
    ///
    /// # Errors
    /// [`Error::Cancelled`] where `is_cancelled` says so in the middle.
    pub fn of(rows: &Layout<'_>, is_cancelled: &(dyn Fn() -> bool + Sync)) -> Result<Option<Self>> {
        let filled = match rows {
            Layout::Csr32F32(rows) => Self::of_csr(rows, is_cancelled),
            Layout::Csr32F64(rows) => Self::of_csr(rows, is_cancelled),
            Layout::Csr64F32(rows) => Self::of_csr(rows, is_cancelled),
            Layout::Csr64F64(rows) => Self::of_csr(rows, is_cancelled),
            Layout::DenseF32(_) | Layout::DenseF64(_) | Layout::Scaled(_) => None,
        };
        match filled {
            Some(_) if is_cancelled() => Err(Error::Cancelled),
            filled => Ok(filled),
        }
    }

    /// What is left of the rows when it is cancelled is zero.
    fn of_csr<I: Index, V: Value>(
        rows: &CsrView<'_, I, V>,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Option<Self> {
        let (n_rows, n_cols) = (rows.n_rows(), rows.n_cols());
        let n_cells = n_rows.checked_mul(n_cols)?;
        let n_entries = rows.arrays().1.len();
        if n_entries == 0 || (n_entries as f64) < FILLED_SHARE * n_cells as f64 {
            return None;
        }
        let mut cells: Vec<V> = memory::zeros(n_cells);
        let chunk = TASK.div_ceil(n_cols) * n_cols;
        parallel::each_chunk(&mut cells, chunk, |first, cells| {
            if is_cancelled() {
                return;
            }
            for (i, row) in (first / n_cols..).zip(cells.chunks_mut(n_cols)) {
                let (columns, values) = rows.row(i);
                for (j, v) in columns.iter().zip(values) {
                    row[j.to_usize()] = *v;
                }
            }
        });
        Some(Self { values: V::typed(cells), n_rows, n_cols })
    }

    /// The rows.
    pub fn rows(&self) -> Layout<'_> {
        let Self { ref values, n_rows, n_cols } = *self;
        match values {
            CsrValues::F32(values) => DenseView::of_finite(values, n_rows, n_cols).into(),
            CsrValues::F64(values) => DenseView::of_finite(values, n_rows, n_cols).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rows of the cells that are not zero, those of odd rows from the last column to the first.
    fn stored(cells: &[f64], d: usize) -> (Vec<i64>, Vec<i32>, Vec<f64>) {
        let (mut starts, mut columns, mut values) = (vec![0], Vec::new(), Vec::new());
        for (i, row) in cells.chunks(d).enumerate() {
            let mut entries: Vec<(usize, f64)> =
                row.iter().copied().enumerate().filter(|e| e.1 != 0.0).collect();
            if i % 2 == 1 {
                entries.reverse();
            }
            columns.extend(entries.iter().map(|entry| entry.0 as i32));
            values.extend(entries.iter().map(|entry| entry.1));
            starts.push(columns.len() as i64);
        }
        (starts, columns, values)
    }

    proptest! {
        #[test]
        fn filled_rows_have_the_same_cells(
            (n, d) in (1..40usize, 1..12usize),
            gaps in prop::collection::vec(0..480usize, 0..60),
        ) {
            let mut cells: Vec<f64> = (0..n * d).map(|k| k as f64 + 0.5).collect();
            for gap in gaps {
                cells[gap % (n * d)] = 0.0;
            }
            let (starts, columns, values) = stored(&cells, d);
            let (rows, _) = CsrView::new(&starts, &columns, &values, d).unwrap();
            let filled = Filled::of(&rows.into(), &|| false).unwrap();
            let is_nearly_full = values.len() as f64 >= FILLED_SHARE * (n * d) as f64;
            prop_assert_eq!(filled.is_some(), is_nearly_full);
            let cancelled = Filled::of(&rows.into(), &|| true);
            prop_assert_eq!(matches!(cancelled, Err(Error::Cancelled)), is_nearly_full);
            if let Some(filled) = filled {
                let rows = filled.rows();
                prop_assert_eq!((rows.n_rows(), rows.n_cols()), (n, d));
                let mut found = Vec::new();
                (0..n).for_each(|i| rows.for_each(i, |_, v| found.push(v)));
                prop_assert_eq!(found, cells);
            }
        }
    }

    #[test]
    fn nothing_is_filled_without_entries_or_columns() {
        let none: &[f32] = &[];
        for (starts, d) in [(&[0i64][..], 3), (&[0, 0, 0][..], 0), (&[0, 0][..], 2)] {
            let (rows, _) = CsrView::<i32, f32>::new(starts, &[], none, d).unwrap();
            assert!(Filled::of(&rows.into(), &|| false).unwrap().is_none());
        }
    }
}
