//! Exact column presolve: the same problem with fewer columns in a better order, made before a solver starts.
//!
//! **Why it is exact.** Let columns `j` of a group be multiples `x_j = s_j z` of one column `z`. The decision
//! values depend on their weights through `t = sum_j s_j w_j` only, and of all weights with the same `t`
//! those of least norm are `w_j = t s_j / f^2`, with `f^2 = sum_j s_j^2` and `sum_j w_j^2 = (t / f)^2`. So
//! one column `f z` with weight `v = t / f` has the same decision values and the same norm: an orthogonal
//! change of variables, after which the columns that are left out would have weight zero. It holds for every
//! loss, class, cost and set of rows (a fold), because none of them is used; it needs a regulariser that
//! is the sum of squares of all weights. The constant column of an intercept is not part of the matrix and
//! stays as it is.
//!
//! ```text
//!     1 2 . 5 .  -1        columns 0, 1 and 5 are proportional          2.449 .     5
//!     . . . . 3  .         column 2 is empty                      ->    .     3     .
//!     2 4 . . .  -2        the rest occurs in one row each               4.899 .     .
//! ```
//!
//! Columns of one row are multiples of each other within that row, so each row keeps at most one of them.
//!
//! **What counts as proportional.** Same rows, and all quotients of entries within `4 EPSILON` of each other
//! relatively, `EPSILON` being the spacing of the *input* type at one: 8.9e-16 for double, 4.8e-7 for single
//! precision. That admits columns that are multiples before they are rounded to the input type (each quotient
//! then carries up to three roundings of half a spacing, the difference of two of them six) and nothing
//! further off. Stored zeros count as absent.
//!
//! **What rounding does.** Packed values have the input's type, so double precision input is reproduced to
//! 1e-15 in every value: objective, weights and decisions agree with the fit of the input to the conditioning
//! of the problem times that, far below 1e-10. Values of single precision input that stand for several
//! columns are rounded to single precision again, 6e-8 relative and independent per value, so that the errors
//! largely cancel: imdb, C = 1, the final objective moves by 1e-10 (hinge) and 1e-13 (squared hinge,
//! logistic) relatively. Certificates are computed on the caller's rows, and a fit that falls short of its
//! tolerance there is finished there ([`crate::fit::presolved`]). Packed values in double precision would
//! avoid it at half as much memory traffic again in every pass; that was not tried.
//!
//! **Cost.** imdb (1.5 M columns, 8.8 M entries of which 7.7 M are left): 155 ms on one core, half of it the
//! writing pass, of which a random access per entry (to the table of packed columns) is the larger part;
//! copying the arrays takes 28 ms. Tried: rows sorted by packed column, 90 ms more, and no effect on the
//! solvers, to which a row is a set of cache lines. Tried: equally frequent columns in the order of their
//! numbers, or counts compared exactly instead of by powers of two: within 2 %.
//!
//! **Memory.** The packed matrix (4 bytes and the size of a value per entry) and 12 bytes per column stay.
//! While it is made: 16 bytes per column (and up to 8 bytes per entry for further threads); then, before the
//! packed arrays exist, about 20 (float32) or 28 (float64) bytes for each candidate of merging, at most half
//! the entries of the matrix at a time, or all columns that occur in the same rows.
//!
//! * `survey`: first reading, a record per column;
//! * `proportional`: the columns that merge, verified;
//! * `layout`: the packed column of each column;
//! * `pack`: the writing pass;
//! * `merged`: the way from columns to packed ones and back, also without the writing ([`merge`]);
//! * `choice`: whether it pays.
//!
//! Nothing depends on the number of threads.

mod choice;
mod layout;
mod merged;
mod pack;
mod proportional;
mod survey;

use std::ops::Range;

use crate::matrix::csr::{CsrView, Structure};
use crate::matrix::{CsrValues, Index, Matrix, Value};
use crate::{Error, Result, parallel};
use layout::PackedLayout;
use proportional::Class;

pub use choice::{Mode, pack};
pub use merged::MergedColumns;

/// Quotients of proportional columns differ by at most this many spacings of the input type, relatively.
const ROUNDING: f64 = 4.0;
/// Entries per parallel task.
const CHUNK_ENTRIES: usize = 1 << 17;
/// Rows counted per task.
const ROWS: usize = 4096;

/// Says whether the caller asked to stop.
pub type Cancelled<'a> = dyn Fn() -> bool + Sync + 'a;

fn poll(cancelled: &Cancelled<'_>) -> Result<()> {
    if cancelled() { Err(Error::Cancelled) } else { Ok(()) }
}

/// What was done to the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PresolveReport {
    /// Columns of the input.
    pub columns_in: usize,
    /// Columns of the packed matrix.
    pub columns_out: usize,
    /// Stored entries of the input.
    pub nonzeros_in: usize,
    /// Entries of the packed matrix.
    pub nonzeros_out: usize,
    /// Columns of two rows or more that were merged into a proportional one.
    pub merged: usize,
    /// Columns of one row that were merged into another one of that row.
    pub merged_alone: usize,
    /// Columns without a nonzero entry.
    pub dropped: usize,
}

/// A packed matrix and the way back.
pub struct Presolved {
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: CsrValues,
    columns: MergedColumns,
    report: PresolveReport,
}

/// The input as the passes see it.
struct Source<'a, I, V> {
    indptr: &'a [i64],
    indices: &'a [I],
    values: &'a [V],
    n_rows: usize,
    n_cols: usize,
    /// Spacing of numbers at one, in which quotients of proportional columns may differ by [`ROUNDING`].
    spacing: f64,
}

impl<'a, I: Index, V: Value> Source<'a, I, V> {
    /// `None` for more rows or columns than 4-byte numbers, and for values so large that those of merged
    /// columns might leave the range of their type.
    fn of(rows: &CsrView<'a, I, V>, structure: &Structure, spacing: f64) -> Result<Option<Self>> {
        structure.check_solvable()?;
        let (indptr, indices, values) = rows.arrays();
        let (n_rows, n_cols) = (indptr.len() - 1, crate::matrix::Rows::n_cols(rows));
        let is_too_large = !V::from_f64(2.0 * structure.max_squared_norm.sqrt()).to_f64().is_finite();
        let is_one = !is_too_large && u32::try_from(n_rows.max(n_cols)).is_ok();
        Ok(is_one.then_some(Self { indptr, indices, values, n_rows, n_cols, spacing }))
    }

    fn nnz(&self) -> usize {
        self.indices.len()
    }

    #[inline(always)]
    fn range(&self, row: usize) -> Range<usize> {
        self.indptr[row] as usize..self.indptr[row + 1] as usize
    }

    /// At most `count` runs of rows with about equally many entries; together all rows.
    fn cut(&self, count: usize) -> Vec<Range<usize>> {
        let mut runs = Vec::with_capacity(count);
        let mut start = 0;
        for k in 1..=count {
            let limit = (self.nnz() as u128 * k as u128 / count as u128) as usize;
            let end = if k == count {
                self.n_rows
            } else {
                self.indptr[..self.n_rows].partition_point(|p| (*p as usize) < limit).max(start)
            };
            if end > start || (k == count && runs.is_empty()) {
                runs.push(start..end);
            }
            start = end;
        }
        runs
    }
}

/// Packs a matrix. `None` if it has no nonzero entry, more rows or columns than 4-byte numbers, or values so
/// large that those of merged columns might leave the range of their type.
///
/// # Errors
/// [`Error::Duplicates`] and [`Error::Scale`] for a matrix that no solver takes, [`Error::Cancelled`].
pub fn presolve<I: Index, V: Value>(
    rows: &CsrView<'_, I, V>,
    structure: &Structure,
    cancelled: &Cancelled<'_>,
) -> Result<Option<Presolved>> {
    let Some(x) = Source::of(rows, structure, V::EPSILON)? else { return Ok(None) };
    let Some(Plan { layout, classes, dropped }) = plan(&x, cancelled)? else { return Ok(None) };
    let (columns_out, merged_alone) = (layout.n_columns, layout.merged_alone);
    let packed = pack::pack(&x, layout, cancelled)?;
    let report = PresolveReport {
        columns_in: x.n_cols,
        columns_out,
        nonzeros_in: x.nnz(),
        nonzeros_out: packed.indices.len(),
        merged: classes.iter().map(|class| class.members.len() - 1).sum(),
        merged_alone,
        dropped,
    };
    let pack::Packed { indptr, indices, values, places } = packed;
    let columns = MergedColumns::new(places, columns_out, &classes);
    Ok(Some(Presolved { indptr, indices, values: V::typed(values), columns, report }))
}

/// Where the columns of a matrix go, without the packed matrix. Columns count as proportional by the spacing
/// of double precision, whatever the type of the values. `None` as for [`presolve`].
///
/// # Errors
/// Those of [`presolve`].
pub fn merge<I: Index, V: Value>(
    rows: &CsrView<'_, I, V>,
    structure: &Structure,
    cancelled: &Cancelled<'_>,
) -> Result<Option<MergedColumns>> {
    let Some(x) = Source::of(rows, structure, f64::EPSILON)? else { return Ok(None) };
    let Some(Plan { layout, classes, .. }) = plan(&x, cancelled)? else { return Ok(None) };
    let n_columns = layout.n_columns;
    let places = pack::places(&x, layout, cancelled)?;
    Ok(Some(MergedColumns::new(places, n_columns, &classes)))
}

/// What is to be done to the columns.
struct Plan {
    layout: PackedLayout,
    classes: Vec<Class>,
    /// Columns without a nonzero entry.
    dropped: usize,
}

/// `None` for a matrix without a nonzero entry, or with more packed columns than 4-byte indices.
fn plan<I: Index, V: Value>(x: &Source<'_, I, V>, cancelled: &Cancelled<'_>) -> Result<Option<Plan>> {
    let columns = survey::survey(x, cancelled)?;
    let (classes, removed) = proportional::find(x, &columns, cancelled)?;
    poll(cancelled)?;
    let dropped = columns.iter().filter(|c| c.count == 0).count();
    let layout = layout::lay_out(&columns, &classes, row_lengths(x, &columns), &removed);
    poll(cancelled)?;
    let layout = layout.filter(|layout| layout.n_columns > 0);
    Ok(layout.map(|layout| Plan { layout, classes, dropped }))
}

/// Entries per row without zeros.
fn row_lengths<I: Index, V: Value>(x: &Source<'_, I, V>, columns: &[survey::Column]) -> Vec<u32> {
    let has_zeros = columns.iter().map(|c| c.count as usize).sum::<usize>() != x.nnz();
    let length = |row: usize| {
        let range = x.range(row);
        if has_zeros { x.values[range].iter().filter(|v| v.to_f64() != 0.0).count() } else { range.len() }
    };
    parallel::numbers(x.n_rows, ROWS, |row| length(row) as u32)
}

impl Presolved {
    /// The packed matrix.
    #[allow(unsafe_code)]
    pub fn view(&self) -> Matrix<'_> {
        let (indptr, indices, n_cols) = (&self.indptr, &self.indices, self.report.columns_out);
        // SAFETY: `pack` made the arrays: pointers rise, columns are packed ones and differ within a row,
        // values are finite.
        unsafe {
            match &self.values {
                CsrValues::F32(values) => CsrView::from_sound(indptr, indices, values, n_cols).into(),
                CsrValues::F64(values) => CsrView::from_sound(indptr, indices, values, n_cols).into(),
            }
        }
    }

    /// What was done.
    pub fn report(&self) -> &PresolveReport {
        &self.report
    }

    /// Weights of the input's columns from those of the packed matrix.
    pub fn map_weights_back(&self, packed: &[f64]) -> Vec<f64> {
        self.columns.expand(packed)
    }

    /// Weights of the packed matrix with the same decision values, if `full` could have come from
    /// [`Self::map_weights_back`]; else the nearest ones that could.
    pub fn map_weights_in(&self, full: &[f64]) -> Vec<f64> {
        self.columns.contract(full)
    }
}
