//! Compressed sparse rows, borrowed and checked once.
//!
//! ```text
//!     . 5 .          indptr  0 1 3 3
//!     7 . 8          indices 1 | 0 2 |
//!     . . .          values  5 | 7 8 |
//! ```
//!
//! Row `i` owns the entries `indptr[i] .. indptr[i + 1]`. Columns within a row may come in any order.
//! Duplicates are reported by [`CsrView::new`], not summed: the caller sums them before a view is made
//! (SciPy's reading of duplicates).

use std::ops::Range;

use super::kernels;
use super::number::{Index, Value};
use super::pieces::{CheckedRows, Finite, RowProducts, are_below, are_inside};
use super::rows::Rows;
use crate::memory::CollectLarge;
use crate::{Error, Result};

/// Rows checked per parallel task.
const CHECK_ROWS: usize = 4096;
/// Sums of squares that do not wait for each other.
const WAYS: usize = 4;

/// A borrowed, checked CSR matrix with `I` indices and `V` values. Row pointers have one type: they
/// are few, and each type more would compile every pass over rows once more.
#[derive(Clone, Copy)]
pub struct CsrView<'a, I, V> {
    indptr: &'a [i64],
    indices: &'a [I],
    values: &'a [V],
    n_cols: usize,
}

/// What a check of the structure found beside errors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Structure {
    /// Some row holds the same column twice.
    pub has_duplicates: bool,
    /// Largest squared norm of a row (duplicates taken as separate entries).
    pub max_squared_norm: f64,
}

impl<'a, I: Index, V: Value> CsrView<'a, I, V> {
    /// Checks the arrays and wraps them.
    ///
    /// # Errors
    /// [`Error::Structure`] for row pointers that do not start at 0, fall, or leave the arrays;
    /// [`Error::Entry`] for a column outside `0..n_cols`, [`Error::NotFinite`] for a value that is, row and
    /// column named.
    pub fn new(
        indptr: &'a [i64],
        indices: &'a [I],
        values: &'a [V],
        n_cols: usize,
    ) -> Result<(Self, Structure)> {
        let nnz = check_pointers(indptr, indices.len().min(values.len()))?;
        let view = Self { indptr, indices: &indices[..nnz], values: &values[..nnz], n_cols };
        let structure = check_entries(&view)?;
        Ok((view, structure))
    }

    /// Wraps the arrays of a checked matrix under other numbers of columns, of which no row has one twice.
    ///
    /// # Errors
    /// [`Error::Structure`] as in [`Self::new`].
    pub fn of_distinct(indptr: &'a [i64], indices: &'a [I], values: &'a [V], n_cols: usize) -> Result<Self> {
        let nnz = check_pointers(indptr, indices.len().min(values.len()))?;
        let view = Self { indptr, indices: &indices[..nnz], values: &values[..nnz], n_cols };
        if !are_inside(view.indices, n_cols) {
            (0..view.n_rows()).try_for_each(|i| check_columns(i, view.row(i).0, n_cols))?;
        }
        Ok(view)
    }

    /// Wraps arrays that are right by construction; debug builds check them all the same.
    ///
    /// # Safety
    /// [`Self::new`] would accept the arrays and find no duplicates.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn from_sound(
        indptr: &'a [i64],
        indices: &'a [I],
        values: &'a [V],
        n_cols: usize,
    ) -> Self {
        debug_assert!(matches!(Self::new(indptr, indices, values, n_cols), Ok((_, s)) if !s.has_duplicates));
        Self { indptr, indices, values, n_cols }
    }

    /// Row pointers, columns and values.
    pub(crate) fn arrays(&self) -> (&'a [i64], &'a [I], &'a [V]) {
        (self.indptr, self.indices, self.values)
    }

    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> (&'a [I], &'a [V]) {
        let range = self.indptr[i].to_usize()..self.indptr[i + 1].to_usize();
        (&self.indices[range.clone()], &self.values[range])
    }
}

/// Checks row pointers against the number of stored entries and returns how many of these belong to rows.
///
/// # Errors
/// [`Error::Structure`] as in [`CsrView::new`].
pub fn check_pointers(indptr: &[i64], stored: usize) -> Result<usize> {
    let broken = |row: usize, reason: String| Err(Error::Structure { row, reason });
    let Some(first) = indptr.first() else {
        return broken(0, "indptr is empty, it must have one entry more than there are rows".into());
    };
    if first.checked() != Some(0) {
        return broken(0, format!("indptr starts at {first}, it must start at 0"));
    }
    let mut previous = 0;
    for (row, pointer) in indptr[1..].iter().enumerate() {
        match pointer.checked() {
            Some(next) if next >= previous => previous = next,
            _ => {
                return broken(row, format!("indptr falls from {previous} to {pointer}, it must never fall"));
            }
        }
        if previous > stored {
            return broken(row, format!("indptr reaches {pointer}, only {stored} entries are stored"));
        }
    }
    Ok(previous)
}

fn check_entries<I: Index, V: Value>(view: &CsrView<'_, I, V>) -> Result<Structure> {
    let n_rows = view.n_rows();
    let tasks = n_rows.div_ceil(CHECK_ROWS);
    let found = crate::parallel::try_map(0..tasks, |_, t| {
        let mut all = Structure::default();
        for i in t * CHECK_ROWS..((t + 1) * CHECK_ROWS).min(n_rows) {
            let (indices, values) = view.row(i);
            all.join(check_row(i, indices, values, view.n_cols)?);
        }
        Ok(all)
    })?;
    let mut all = Structure::default();
    for one in found {
        all.join(one);
    }
    Ok(all)
}

/// Squares of squared norms still fit in double precision up to here; larger features are a mistake of scale.
pub const MAX_SQUARED_NORM: f64 = 1e120;

impl Structure {
    /// Refuses what no solver takes.
    ///
    /// # Errors
    /// [`Error::Duplicates`] and, for features too large for double precision, [`Error::Scale`].
    pub fn check_solvable(&self) -> Result<()> {
        if self.has_duplicates {
            return Err(Error::Duplicates);
        }
        if self.max_squared_norm > MAX_SQUARED_NORM {
            return Err(Error::Scale { squared_norm: self.max_squared_norm, limit: MAX_SQUARED_NORM });
        }
        Ok(())
    }

    fn join(&mut self, other: Self) {
        self.has_duplicates |= other.has_duplicates;
        self.max_squared_norm = self.max_squared_norm.max(other.max_squared_norm);
    }
}

fn check_row<I: Index, V: Value>(
    row: usize,
    indices: &[I],
    values: &[V],
    n_cols: usize,
) -> Result<Structure> {
    let (mut sorted, mut previous, mut squared) = (true, None, [0.0; WAYS]);
    let mut look = |way: usize, j: &I, v: &V| {
        let v = v.to_f64();
        let column = match j.checked() {
            Some(column) if column < n_cols => column,
            _ => return Err(outside(row, j, n_cols)),
        };
        if !v.is_finite() {
            return Err(not_finite(row, column, v));
        }
        sorted &= previous < Some(column);
        previous = Some(column);
        squared[way] += v * v;
        Ok(())
    };
    let ((fours, rest), (values, rest_of_values)) = (indices.as_chunks::<WAYS>(), values.as_chunks::<WAYS>());
    for (columns, values) in fours.iter().zip(values) {
        for way in 0..WAYS {
            look(way, &columns[way], &values[way])?;
        }
    }
    for (j, v) in rest.iter().zip(rest_of_values) {
        look(0, j, v)?;
    }
    let has_duplicates = !sorted && repeats(indices);
    Ok(Structure { has_duplicates, max_squared_norm: squared.iter().sum() })
}

/// The error for a value that is NaN or infinite.
pub(crate) fn not_finite(row: usize, column: usize, value: f64) -> Error {
    let name = if value.is_nan() { "NaN" } else { "infinity" };
    Error::NotFinite { row, column, name }
}

/// A CSR matrix whose row pointers are checked, and whose entries are checked piece by piece.
#[derive(Clone, Copy)]
pub struct CsrPieces<'a, I, V> {
    /// Not handed out: its entries are not checked.
    all: CsrView<'a, I, V>,
}

/// Values below this in absolute value cannot add up to infinity, however often their column is repeated.
const SAFE_TO_ADD: f64 = f64::MAX / (1u64 << 40) as f64;

impl<'a, I: Index, V: Value> CsrPieces<'a, I, V> {
    /// Checks the row pointers and wraps the arrays.
    ///
    /// # Errors
    /// [`Error::Structure`] as in [`CsrView::new`].
    pub fn new(indptr: &'a [i64], indices: &'a [I], values: &'a [V], n_cols: usize) -> Result<Self> {
        let nnz = check_pointers(indptr, indices.len().min(values.len()))?;
        Ok(Self { all: CsrView { indptr, indices: &indices[..nnz], values: &values[..nnz], n_cols } })
    }

    /// Row pointers, columns and values, of which only the pointers are checked.
    pub(crate) fn arrays(&self) -> (&'a [i64], &'a [I], &'a [V]) {
        self.all.arrays()
    }

    /// Finds what is wrong with some rows, if anything is.
    #[cold]
    fn check_one_by_one(&self, rows: Range<usize>, finite: Finite) -> Result<()> {
        for i in rows {
            let (indices, values) = self.all.row(i);
            check_columns(i, indices, self.all.n_cols)?;
            if finite == Finite::Required {
                check_finite(i, indices, values)?;
            }
        }
        Ok(())
    }
}

impl<'a, I: Index, V: Value> CheckedRows for CsrPieces<'a, I, V> {
    type Piece = CsrView<'a, I, V>;
    fn n_rows(&self) -> usize {
        self.all.n_rows()
    }
    fn n_cols(&self) -> usize {
        self.all.n_cols
    }
    fn n_entries(&self) -> usize {
        self.all.indices.len()
    }
    fn piece(&self, rows: Range<usize>, finite: Finite) -> Result<Self::Piece> {
        let indptr = &self.all.indptr[rows.start..=rows.end];
        let entries = indptr[0].to_usize()..indptr[indptr.len() - 1].to_usize();
        let is_sound = are_inside(&self.all.indices[entries.clone()], self.all.n_cols)
            && (finite == Finite::Assumed || are_below(&self.all.values[entries], SAFE_TO_ADD));
        if !is_sound {
            self.check_one_by_one(rows, finite)?;
        }
        Ok(CsrView { indptr, ..self.all })
    }
}

impl<I: Index, V: Value> RowProducts for CsrView<'_, I, V> {
    /// Vector after vector: the rows of a piece find it in the cache.
    #[allow(unsafe_code)]
    fn products<W: Value>(&self, w: &[W], intercept: &[f64], out: &mut [f64]) {
        let (d, n_labels) = (self.n_cols, intercept.len());
        for (l, b) in intercept.iter().enumerate() {
            let w = &w[l * d..(l + 1) * d];
            for (i, out) in out.chunks_exact_mut(n_labels).enumerate().take(self.n_rows()) {
                let (indices, values) = self.row(i);
                // SAFETY: whoever made the view proved every index below `n_cols`, which is the length of
                // `w`.
                out[l] = b + unsafe { kernels::dot(indices, values, w) };
            }
        }
    }
}

fn check_columns<I: Index>(row: usize, indices: &[I], n_cols: usize) -> Result<()> {
    let bad = indices.iter().find(|j| j.checked().is_none_or(|column| column >= n_cols));
    bad.map_or(Ok(()), |j| Err(outside(row, j, n_cols)))
}

fn outside<I: Index>(row: usize, column: &I, n_cols: usize) -> Error {
    Error::Structure { row, reason: format!("column index {column} is outside 0..{n_cols}") }
}

/// Refuses values that are not finite, and entries of one column that add up to no finite value.
fn check_finite<I: Index, V: Value>(row: usize, indices: &[I], values: &[V]) -> Result<()> {
    let mut entries: Vec<(usize, f64)> =
        indices.iter().zip(values).map(|(j, v)| (j.to_usize(), v.to_f64())).collect();
    if let Some((column, value)) = entries.iter().find(|entry| !entry.1.is_finite()) {
        return Err(not_finite(row, *column, *value));
    }
    entries.sort_by_key(|entry| entry.0);
    for same in entries.chunk_by(|a, b| a.0 == b.0) {
        if !same.iter().map(|entry| entry.1).sum::<f64>().is_finite() {
            let (column, count) = (same[0].0, same.len());
            let reason = format!("its {count} entries add up to infinity, only finite numbers are accepted");
            return Err(Error::Entry { row, column, reason });
        }
    }
    Ok(())
}

fn repeats<I: Index>(indices: &[I]) -> bool {
    let mut columns: Vec<usize> = indices.iter().map(|j| j.to_usize()).collect_large();
    columns.sort_unstable();
    columns.windows(2).any(|pair| pair[0] == pair[1])
}

impl<I: Index, V: Value> Rows for CsrView<'_, I, V> {
    fn n_rows(&self) -> usize {
        self.indptr.len() - 1
    }
    fn n_cols(&self) -> usize {
        self.n_cols
    }
    #[inline(always)]
    fn row_len(&self, i: usize) -> usize {
        self.indptr[i + 1].to_usize() - self.indptr[i].to_usize()
    }
    #[inline(always)]
    #[allow(unsafe_code)]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        assert!(w.len() >= self.n_cols);
        let (indices, values) = self.row(i);
        // SAFETY: `new` proved every index below `n_cols`, which is at most `w.len()`.
        unsafe { kernels::dot(indices, values, w) }
    }
    #[inline(always)]
    #[allow(unsafe_code)]
    fn add_scaled(&self, i: usize, scale: f64, w: &mut [f64]) {
        assert!(w.len() >= self.n_cols);
        let (indices, values) = self.row(i);
        // SAFETY: as in `dot`.
        unsafe { kernels::add_scaled(indices, values, scale, w) }
    }
    #[inline(always)]
    #[allow(unsafe_code)]
    fn dot_lanes<const L: usize>(&self, i: usize, w: &[[f64; L]]) -> [f64; L] {
        assert!(w.len() >= self.n_cols);
        let (indices, values) = self.row(i);
        if L == 1 {
            // SAFETY: as in `dot`.
            return [unsafe { kernels::dot(indices, values, w.as_flattened()) }; L];
        }
        // SAFETY: as in `dot`.
        unsafe { kernels::dot_lanes(indices, values, w) }
    }
    #[inline(always)]
    #[allow(unsafe_code)]
    fn add_lanes<const L: usize>(&self, i: usize, scale: &[f64; L], w: &mut [[f64; L]]) {
        assert!(w.len() >= self.n_cols);
        let (indices, values) = self.row(i);
        // SAFETY: as in `dot`.
        unsafe { kernels::add_lanes(indices, values, scale, w) }
    }
    #[inline(always)]
    #[allow(unsafe_code)]
    fn dot_lines<const G: usize>(
        &self,
        i: usize,
        w: &[[f64; kernels::LINE]],
        stride: usize,
        first: usize,
    ) -> [[f64; kernels::LINE]; G] {
        assert!(w.len() >= self.n_cols * stride && first + G <= stride);
        let (indices, values) = self.row(i);
        // SAFETY: every index is below `n_cols`, so
        // `index * stride + first + G <= n_cols * stride <= w.len()`.
        unsafe { kernels::dot_lines(indices, values, w, stride, first) }
    }
    #[inline(always)]
    #[allow(unsafe_code)]
    fn add_lines(&self, i: usize, delta: &[[f64; kernels::LINE]], w: &mut [[f64; kernels::LINE]]) {
        assert!(w.len() >= self.n_cols * delta.len());
        let (indices, values) = self.row(i);
        // SAFETY: every index is below `n_cols`.
        unsafe { kernels::add_lines(indices, values, delta, w) }
    }
    #[inline(always)]
    #[allow(unsafe_code)]
    fn dot_places<const N: usize>(&self, i: usize, w: &[f64], stride: usize, places: [usize; N]) -> [f64; N] {
        assert!(w.len() >= self.n_cols * stride && places.iter().all(|place| *place < stride));
        let (indices, values) = self.row(i);
        // SAFETY: every index is below `n_cols` and every position below `stride`, so all sums are below
        // `n_cols * stride`.
        unsafe { kernels::dot_places(indices, values, w, stride, places) }
    }
    #[inline(always)]
    #[allow(unsafe_code)]
    fn add_places<const N: usize>(
        &self,
        i: usize,
        scale: [f64; N],
        w: &mut [f64],
        stride: usize,
        places: [usize; N],
    ) {
        assert!(w.len() >= self.n_cols * stride && places.iter().all(|place| *place < stride));
        let (indices, values) = self.row(i);
        // SAFETY: as in `dot_places`.
        unsafe { kernels::add_places(indices, values, scale, w, stride, places) }
    }
    #[inline(always)]
    fn for_each(&self, i: usize, mut f: impl FnMut(usize, f64)) {
        let (indices, values) = self.row(i);
        for (j, v) in indices.iter().zip(values) {
            f(j.to_usize(), v.to_f64());
        }
    }
    #[inline(always)]
    fn prefetch_header(&self, i: usize) {
        kernels::prefetch(self.indptr, i, 1);
    }
    #[inline(always)]
    fn prefetch(&self, i: usize) {
        let (start, len) = (self.indptr[i].to_usize(), self.row_len(i));
        kernels::prefetch(self.indices, start, len * I::BYTES);
        kernels::prefetch(self.values, start, len * V::BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(indptr: &[i64], indices: &[i32], values: &[f32], n_cols: usize) -> String {
        CsrView::new(indptr, indices, values, n_cols).err().map(|e| e.to_string()).unwrap_or_default()
    }

    #[test]
    fn reads_the_matrix_of_the_module_doc() {
        let (x, structure) = CsrView::new(&[0i64, 1, 3, 3], &[1, 0, 2], &[5.0, 7.0, 8.0], 3).unwrap();
        assert_eq!((x.n_rows(), x.n_cols(), x.row_len(1), x.row_len(2)), (3, 3, 2, 0));
        assert_eq!(x.dot(1, &[1.0, 10.0, 100.0]), 807.0);
        let mut w = vec![0.0; 3];
        x.add_scaled(0, 2.0, &mut w);
        assert_eq!(w, [0.0, 10.0, 0.0]);
        assert_eq!(structure, Structure { has_duplicates: false, max_squared_norm: 113.0 });
    }

    #[test]
    fn finds_duplicates_sorted_or_not() {
        let duplicates = |indices: &[i32]| {
            CsrView::new(&[0, indices.len() as i64], indices, &vec![1.0f32; indices.len()], 9)
                .unwrap()
                .1
                .has_duplicates
        };
        assert!(!duplicates(&[3, 1, 2]));
        assert!(duplicates(&[1, 3, 1]));
        assert!(duplicates(&[2, 2]));
    }

    #[test]
    fn names_what_is_broken() {
        assert!(error(&[], &[], &[], 1).contains("indptr is empty"));
        assert!(error(&[1, 1], &[0], &[1.0], 1).contains("starts at 1"));
        assert!(error(&[0, 2, 1], &[0, 0], &[1.0; 2], 1).contains("row 1: indptr falls from 2 to 1"));
        assert!(error(&[0, 3], &[0, 0], &[1.0; 2], 1).contains("reaches 3, only 2"));
        assert!(error(&[0, 0, 1], &[7], &[1.0], 3).contains("row 1: column index 7 is outside 0..3"));
        assert!(error(&[0, 1], &[-1], &[1.0], 3).contains("column index -1 is outside 0..3"));
        assert!(error(&[0, 1, 2], &[0, 2], &[1.0, f32::NAN], 3).contains("contains NaN in row 1, column 2"));
        assert!(error(&[0, 1], &[0], &[f32::INFINITY], 3).contains("infinity"));
    }

    #[test]
    fn pieces_are_checked_when_asked_for() {
        let (indptr, indices) = ([0, 2, 2, 4, 5], [0, 2, 1, 1, 9]);
        let values = [1.0, f64::NAN, 1e308, 1e308, 3.0];
        let x = CsrPieces::new(&indptr, &indices, &values, 3).unwrap();
        let error = |rows, finite| x.piece(rows, finite).err().map(|e| e.to_string()).unwrap_or_default();
        assert_eq!((x.n_rows(), x.n_cols(), x.n_entries()), (4, 3, 5));
        assert!(error(0..4, Finite::Required).contains("contains NaN in row 0, column 2"));
        assert!(error(1..3, Finite::Required).contains("row 2, column 1: its 2 entries add up to infinity"));
        for finite in [Finite::Required, Finite::Assumed] {
            assert!(error(3..4, finite).contains("row 3: column index 9 is outside 0..3"));
            assert_eq!(x.piece(1..2, finite).unwrap().row_len(0), 0);
        }
        let piece = x.piece(0..3, Finite::Assumed).unwrap();
        assert!(piece.n_rows() == 3 && piece.dot(0, &[1.0; 3]).is_nan());
        assert_eq!(x.piece(2..3, Finite::Assumed).unwrap().dot(0, &[0.0, 0.5, 0.0]), 1e308);
        assert!(CsrPieces::new(&[0, 3], &[0, 1], &[1.0f32; 2], 3).is_err());
    }

    /// Row pointers beyond 2^31 are ordinary numbers; only the pointers are made, not the entries.
    #[test]
    fn pointers_beyond_two_billion_are_ordinary() {
        let huge = [0i64, 3_000_000_000, 3_000_000_000, 9_000_000_000];
        assert_eq!(check_pointers(&huge, 9_000_000_000).unwrap(), 9_000_000_000);
        let message = check_pointers(&huge, 8_999_999_999).unwrap_err().to_string();
        assert!(message.contains("reaches 9000000000, only 8999999999"), "{message}");
    }
}
