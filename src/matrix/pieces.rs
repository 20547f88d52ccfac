//! Rows that are checked a piece at a time, right before their product with weights.
//!
//! A prediction reads its input once. A check of all rows ahead of it would read everything twice, and took
//! longer than the product itself (10,000 dense rows of 100 columns, one vector of weights); checked piece by
//! piece, the second reading finds the piece in the cache. Both questions (is every column inside, is every
//! number finite) are asked of a whole piece by loops without branches; which entry is to blame is looked for
//! only where the answer is no.

use std::ops::Range;

use super::number::{Index, Value};
use super::rows::Rows;
use super::simd;
use crate::Result;

/// What is known of the values of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finite {
    /// They are checked.
    Required,
    /// The caller vouches for them; whatever follows from NaN or infinity is returned.
    Assumed,
}

/// A matrix whose rows can be had piece by piece, each checked when it is asked for.
pub trait CheckedRows: Sync {
    /// A checked piece.
    type Piece: RowProducts;
    /// Number of rows.
    fn n_rows(&self) -> usize;
    /// Number of columns.
    fn n_cols(&self) -> usize;
    /// Number of stored entries.
    fn n_entries(&self) -> usize;
    /// Checks some rows and wraps them; duplicates within a row are taken as separate entries.
    ///
    /// # Errors
    /// [`crate::Error::Structure`] for a column outside the matrix, [`crate::Error::Entry`] for a value that
    /// is not finite, or entries of one column that add up to such a value, if that is [`Finite::Required`].
    /// Rows are counted in the whole matrix.
    fn piece(&self, rows: Range<usize>, finite: Finite) -> Result<Self::Piece>;
}

/// Rows that multiply several vectors at a time.
pub trait RowProducts: Rows {
    /// `out[i * n_labels + l] = intercept[l] + x_i . w_l` for the vectors `w_l` that lie one after the other
    /// in `w`.
    ///
    /// The number for a row and a vector does not depend on which others are asked for together with it.
    ///
    /// # Panics
    /// If `w` has fewer than `n_labels * n_cols` numbers, or `out` fewer than `n_rows * n_labels`.
    fn products<W: Value>(&self, w: &[W], intercept: &[f64], out: &mut [f64]);
}

/// Whether every value is smaller than `limit` in absolute value (NaN is not).
pub(super) fn are_below<V: Value>(values: &[V], limit: f64) -> bool {
    simd::run(Below { values, limit })
}

/// Whether every index is at least 0 and below `end`.
pub(super) fn are_inside<I: Index>(indices: &[I], end: usize) -> bool {
    simd::run(Inside { indices, last: end as i64 - 1 })
}

/// Entries between two tests of the answer.
const STRIDE: usize = 256;

struct Below<'a, V> {
    values: &'a [V],
    limit: f64,
}

impl<V: Value> simd::Loop for Below<'_, V> {
    type Output = bool;
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) -> bool {
        let all = |piece: &[V]| piece.iter().fold(true, |ok, v| ok & (v.to_f64().abs() < self.limit));
        self.values.chunks(STRIDE).all(all)
    }
}

struct Inside<'a, I> {
    indices: &'a [I],
    last: i64,
}

impl<I: Index> simd::Loop for Inside<'_, I> {
    type Output = bool;
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) -> bool {
        // The sign of either number tells of an index that is outside; a difference wraps around for negative
        // ones only.
        let signs = |j: &I| j.to_i64() | self.last.wrapping_sub(j.to_i64());
        let outside = |piece: &[I]| piece.iter().fold(0, |sign, j| sign | signs(j));
        self.indices.chunks(STRIDE).all(|piece| outside(piece) >= 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_bad_entry_is_noticed_wherever_it_is() {
        for len in [1, 7, 8, 255, 256, 257, 600] {
            let (mut values, mut narrow) = (vec![-1.5f32; len], vec![3i32; len]);
            assert!(are_below(&values, f64::INFINITY) && are_inside(&narrow, 4) && !are_inside(&narrow, 3));
            for at in [0, len / 2, len - 1] {
                for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    values[at] = bad;
                    assert!(!are_below(&values, f64::INFINITY), "{bad} at {at} of {len}");
                }
                values[at] = f32::MAX;
                assert!(are_below(&values, f64::INFINITY));
                for bad in [-1, i32::MIN, 4, i32::MAX] {
                    narrow[at] = bad;
                    assert!(!are_inside(&narrow, 4), "{bad} at {at} of {len}");
                }
                (values[at], narrow[at]) = (0.0, 0);
            }
        }
        assert!(
            are_inside::<i64>(&[], 0) && !are_inside(&[0i64], 0) && !are_inside(&[i64::MAX, i64::MIN], 9)
        );
    }
}
