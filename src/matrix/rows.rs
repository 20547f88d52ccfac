//! Row access to matrices, and work on rows that is compiled once for each layout.

use super::kernels::LINE;

/// Rows between the request for a row's memory ([`Rows::prefetch`]) and its use, where rows are not read one
/// behind the other: the hardware foresees only those. Its header is asked for twice as far ahead.
///
/// Dual descent: distances 2 and 8 make no difference, nor does asking for 2 KiB of a row instead of 512
/// bytes (`benches/limits.rs`, all sets within 3 %). Tried: asking one or two rows ahead for the weights too
/// (imdb 0.43 s for fifteen epochs without, 0.49 s with; phishing_urls 0.46 and 0.38 s as it comes, 0.48 and
/// 0.53 s presolved; flights 0.49 and 0.58 s): out-of-order loads of one row already keep the memory busy.
pub const ROWS_AHEAD: usize = 4;

/// A matrix read row by row.
///
/// Invariant of every implementation: column numbers are below `n_cols` and values are finite; both are
/// checked when the view is made, so no solver checks again.
pub trait Rows: Sync {
    /// Number of rows.
    fn n_rows(&self) -> usize;
    /// Number of columns.
    fn n_cols(&self) -> usize;
    /// Number of stored entries in row `i`.
    fn row_len(&self, i: usize) -> usize;
    /// `x_i . w`, for `w` of at least `n_cols` numbers.
    fn dot(&self, i: usize, w: &[f64]) -> f64;
    /// `w += scale * x_i`, for `w` of at least `n_cols` numbers.
    fn add_scaled(&self, i: usize, scale: f64, w: &mut [f64]);
    /// `x_i . w` in each lane, for `w` of at least `n_cols` entries.
    fn dot_lanes<const L: usize>(&self, i: usize, w: &[[f64; L]]) -> [f64; L];
    /// `w += scale * x_i` in each lane, for `w` of at least `n_cols` entries.
    fn add_lanes<const L: usize>(&self, i: usize, scale: &[f64; L], w: &mut [[f64; L]]);
    /// `x_i` times `G` successive lines of a matrix of `stride` lines per column, from line `first` on.
    ///
    /// # Panics
    /// If `w` has fewer than `n_cols * stride` lines, or `first + G > stride`.
    #[inline(always)]
    fn dot_lines<const G: usize>(
        &self,
        i: usize,
        w: &[[f64; LINE]],
        stride: usize,
        first: usize,
    ) -> [[f64; LINE]; G] {
        let mut sums = [[0.0; LINE]; G];
        self.for_each(i, |j, v| {
            for (sum, entry) in sums.iter_mut().zip(&w[j * stride + first..][..G]) {
                sum.iter_mut().zip(entry).for_each(|(sum, w)| *sum += v * w);
            }
        });
        sums
    }
    /// Adds `x_i[j] * delta` to the lines of every column `j` of a matrix of `delta.len()` lines per column.
    ///
    /// # Panics
    /// If `w` has fewer than `n_cols * delta.len()` lines.
    #[inline(always)]
    fn add_lines(&self, i: usize, delta: &[[f64; LINE]], w: &mut [[f64; LINE]]) {
        self.for_each(i, |j, v| {
            for (entry, delta) in w[j * delta.len()..][..delta.len()].iter_mut().zip(delta) {
                entry.iter_mut().zip(delta).for_each(|(w, delta)| *w += v * delta);
            }
        });
    }
    /// Whether rows are read faster together ([`Self::dot_lines_of`], [`Self::add_lines_of`]): where they
    /// have entries in the same columns.
    const IS_DENSE: bool = false;
    /// [`Self::dot_lines`] of `N` rows, with the same bits.
    ///
    /// # Panics
    /// As there.
    #[inline(always)]
    fn dot_lines_of<const G: usize, const N: usize>(
        &self,
        rows: [usize; N],
        w: &[[f64; LINE]],
        stride: usize,
        first: usize,
    ) -> [[[f64; LINE]; G]; N] {
        rows.map(|i| self.dot_lines(i, w, stride, first))
    }
    /// [`Self::add_lines`] for one row after the other, with the same bits.
    ///
    /// # Panics
    /// As there.
    #[inline(always)]
    fn add_lines_of<const G: usize, const N: usize>(
        &self,
        rows: [usize; N],
        deltas: &[[[f64; LINE]; G]; N],
        w: &mut [[f64; LINE]],
    ) {
        rows.iter().zip(deltas).for_each(|(i, delta)| self.add_lines(*i, delta, w));
    }
    /// `x_i` times `N` chosen columns of a matrix of `stride` numbers per column of the data.
    ///
    /// # Panics
    /// If `w` has fewer than `n_cols * stride` numbers, or a position is not below `stride`.
    #[inline(always)]
    fn dot_places<const N: usize>(&self, i: usize, w: &[f64], stride: usize, places: [usize; N]) -> [f64; N] {
        let mut sums = [0.0; N];
        self.for_each(i, |j, v| {
            for n in 0..N {
                sums[n] += v * w[j * stride + places[n]];
            }
        });
        sums
    }
    /// Adds `scale[n] * x_i` to `N` chosen columns of such a matrix.
    ///
    /// # Panics
    /// As for [`Self::dot_places`].
    #[inline(always)]
    fn add_places<const N: usize>(
        &self,
        i: usize,
        scale: [f64; N],
        w: &mut [f64],
        stride: usize,
        places: [usize; N],
    ) {
        self.for_each(i, |j, v| {
            for n in 0..N {
                w[j * stride + places[n]] += scale[n] * v;
            }
        });
    }
    /// Calls `f(column, value)` for each stored entry of row `i`, in storage order.
    fn for_each(&self, i: usize, f: impl FnMut(usize, f64));
    /// Prefetches row `i`, which is about to be read.
    fn prefetch(&self, i: usize);
    /// Prefetches what [`Self::prefetch`] itself must read of row `i`.
    fn prefetch_header(&self, _: usize) {}

    /// `|x_i|^2`; no duplicates within a row may exist.
    fn squared_norm(&self, i: usize) -> f64 {
        let mut sum = 0.0;
        self.for_each(i, |_, v| sum += v * v);
        sum
    }

    /// Runs `pass` over these rows; those of a [`super::Matrix`] in their own layout.
    #[inline]
    fn visit<P: Pass>(&self, pass: P) -> P::Output
    where
        Self: Sized,
    {
        pass.run(self)
    }

    /// Calls `f(k, x_i . w)` for the rows `i = first + k`, `k` below `count`.
    fn each_dot(&self, first: usize, count: usize, w: &[f64], f: &mut dyn FnMut(usize, f64))
    where
        Self: Sized,
    {
        self.visit(EachDot { first, count, w, f });
    }

    /// Largest of [`Self::squared_norm`], 0 for no rows.
    fn max_squared_norm(&self) -> f64 {
        (0..self.n_rows()).map(|i| self.squared_norm(i)).fold(0.0, f64::max)
    }
}

/// Work on rows that is compiled once for each layout, because it takes nanoseconds an entry: an epoch, or a
/// run of rows in a sum. Everything around it is compiled once, over a [`super::Matrix`].
pub trait Pass {
    /// What it computes.
    type Output;
    /// Does the work.
    fn run<R: Rows>(self, rows: &R) -> Self::Output;
}

/// [`Rows::each_dot`].
struct EachDot<'s> {
    first: usize,
    count: usize,
    w: &'s [f64],
    f: &'s mut dyn FnMut(usize, f64),
}

impl Pass for EachDot<'_> {
    type Output = ();
    fn run<R: Rows>(self, rows: &R) {
        for k in 0..self.count {
            (self.f)(k, rows.dot(self.first + k, self.w));
        }
    }
}
