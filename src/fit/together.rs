//! Loops over what is known of each row that do several rows at once, so that these fill vector registers.

use std::ops::Range;

use super::sweep::{ROW_CHUNK, sum_pieces};
use crate::matrix::simd::{self, Loop};

/// Rows that are done together: two registers of numbers in double precision.
pub const TOGETHER: usize = 16;

/// What is done with each row, for several successive ones at once.
pub trait OfRows<const K: usize> {
    /// Whether several rows at once fill registers that one does not.
    const GAINS: bool = true;
    /// Does it for `N` rows from the `i`-th on, and adds to the sums.
    fn add<const N: usize>(&mut self, i: usize, sums: &mut [f64; K]);
}

/// Work on the rows of a range, `TOGETHER` at a time and the rest one by one; its sums.
pub struct Together<W, const K: usize>(pub W, pub Range<usize>);

impl<W: OfRows<K>, const K: usize> Loop for Together<W, K> {
    type Output = [f64; K];
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) -> [f64; K] {
        let Self(mut work, rows) = self;
        let (mut sums, mut i) = ([0.0; K], rows.start);
        while W::GAINS && i + TOGETHER <= rows.end {
            work.add::<TOGETHER>(i, &mut sums);
            i += TOGETHER;
        }
        while i < rows.end {
            work.add::<1>(i, &mut sums);
            i += 1;
        }
        sums
    }
}

/// The sums over `n` rows of such work.
pub fn sum_rows<W: OfRows<K>, const K: usize>(n: usize, work: impl Fn() -> W + Sync) -> [f64; K] {
    sum_pieces(n, ROW_CHUNK, |rows| simd::run(Together(work(), rows)).map(|sum| [sum])).map(|[sum]| sum)
}

/// The entries of `N` rows from `i` on.
///
/// # Panics
/// Where there are fewer.
#[inline(always)]
pub fn entries<T: Copy, const N: usize>(of_rows: &[T], i: usize) -> [T; N] {
    *of_rows[i..].first_chunk().expect("as many rows")
}
