//! The design matrix of one binary problem: chosen rows of a matrix, with an optional constant column.
//!
//! Folds and zero-weight rows are choices of rows, intercepts are constant columns: with both here, no solver
//! has a second code path and nothing is copied.

use super::any::Matrix;
use super::kernels::{self, LINE};
use super::rows::{Pass, Rows};

/// Chosen rows of `rows` (all, if `ids` is `None`) with a constant last column of height `bias` (none, if
/// `bias` is 0).
pub struct Design<'a, R = Matrix<'a>> {
    /// The full matrix.
    pub rows: &'a R,
    /// Row numbers in the full matrix.
    pub ids: Option<&'a [u32]>,
    /// Value of the constant column, 0 for none.
    pub bias: f64,
}

impl<R> Clone for Design<'_, R> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<R> Copy for Design<'_, R> {}

impl<R: Rows> Design<'_, R> {
    #[inline(always)]
    fn id(&self, i: usize) -> usize {
        self.ids.map_or(i, |ids| ids[i] as usize)
    }

    /// Number of stored entries, the constant column left out.
    pub fn nnz(&self) -> usize {
        (0..self.n_rows()).map(|i| self.rows.row_len(self.id(i))).sum()
    }
}

impl<R: Rows> Rows for Design<'_, R> {
    fn n_rows(&self) -> usize {
        self.ids.map_or(self.rows.n_rows(), <[u32]>::len)
    }
    fn n_cols(&self) -> usize {
        self.rows.n_cols() + usize::from(self.bias != 0.0)
    }
    #[inline(always)]
    fn row_len(&self, i: usize) -> usize {
        self.rows.row_len(self.id(i)) + usize::from(self.bias != 0.0)
    }
    #[inline(always)]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        let sum = self.rows.dot(self.id(i), w);
        if self.bias == 0.0 { sum } else { sum + self.bias * w[self.rows.n_cols()] }
    }
    #[inline(always)]
    fn add_scaled(&self, i: usize, scale: f64, w: &mut [f64]) {
        self.rows.add_scaled(self.id(i), scale, w);
        if self.bias != 0.0 {
            w[self.rows.n_cols()] += scale * self.bias;
        }
    }
    #[inline(always)]
    fn dot_lanes<const L: usize>(&self, i: usize, w: &[[f64; L]]) -> [f64; L] {
        let mut sum = self.rows.dot_lanes(self.id(i), w);
        if self.bias != 0.0 {
            let constant = &w[self.rows.n_cols()];
            for l in 0..L {
                sum[l] += self.bias * constant[l];
            }
        }
        sum
    }
    #[inline(always)]
    fn add_lanes<const L: usize>(&self, i: usize, scale: &[f64; L], w: &mut [[f64; L]]) {
        self.rows.add_lanes(self.id(i), scale, w);
        if self.bias != 0.0 {
            let constant = &mut w[self.rows.n_cols()];
            for l in 0..L {
                constant[l] += self.bias * scale[l];
            }
        }
    }
    #[inline(always)]
    fn dot_lines<const G: usize>(
        &self,
        i: usize,
        w: &[[f64; LINE]],
        stride: usize,
        first: usize,
    ) -> [[f64; LINE]; G] {
        let [sums] = self.dot_lines_of([i], w, stride, first);
        sums
    }
    #[inline(always)]
    fn add_lines(&self, i: usize, delta: &[[f64; LINE]], w: &mut [[f64; LINE]]) {
        self.rows.add_lines(self.id(i), delta, w);
        if self.bias != 0.0 {
            let constant = &mut w[self.rows.n_cols() * delta.len()..][..delta.len()];
            for (entry, delta) in constant.iter_mut().zip(delta) {
                for l in 0..LINE {
                    entry[l] += self.bias * delta[l];
                }
            }
        }
    }
    const IS_DENSE: bool = R::IS_DENSE;
    #[inline(always)]
    fn dot_lines_of<const G: usize, const N: usize>(
        &self,
        rows: [usize; N],
        w: &[[f64; LINE]],
        stride: usize,
        first: usize,
    ) -> [[[f64; LINE]; G]; N] {
        let mut sums: [[[f64; LINE]; G]; N] =
            self.rows.dot_lines_of(rows.map(|i| self.id(i)), w, stride, first);
        if self.bias != 0.0 {
            let constant = &w[self.rows.n_cols() * stride + first..][..G];
            for sums in &mut sums {
                for (sum, w) in sums.iter_mut().zip(constant) {
                    kernels::add_entry(sum, self.bias, w);
                }
            }
        }
        sums
    }
    #[inline(always)]
    fn add_lines_of<const G: usize, const N: usize>(
        &self,
        rows: [usize; N],
        deltas: &[[[f64; LINE]; G]; N],
        w: &mut [[f64; LINE]],
    ) {
        self.rows.add_lines_of(rows.map(|i| self.id(i)), deltas, w);
        if self.bias != 0.0 {
            let constant = &mut w[self.rows.n_cols() * G..][..G];
            for delta in deltas {
                for (w, delta) in constant.iter_mut().zip(delta) {
                    kernels::add_entry(w, self.bias, delta);
                }
            }
        }
    }
    #[inline(always)]
    fn dot_places<const N: usize>(&self, i: usize, w: &[f64], stride: usize, places: [usize; N]) -> [f64; N] {
        let mut sums = self.rows.dot_places(self.id(i), w, stride, places);
        if self.bias != 0.0 {
            let constant = &w[self.rows.n_cols() * stride..][..stride];
            for n in 0..N {
                sums[n] += self.bias * constant[places[n]];
            }
        }
        sums
    }
    #[inline(always)]
    fn add_places<const N: usize>(
        &self,
        i: usize,
        scale: [f64; N],
        w: &mut [f64],
        stride: usize,
        places: [usize; N],
    ) {
        self.rows.add_places(self.id(i), scale, w, stride, places);
        if self.bias != 0.0 {
            let constant = &mut w[self.rows.n_cols() * stride..][..stride];
            for n in 0..N {
                constant[places[n]] += self.bias * scale[n];
            }
        }
    }
    #[inline(always)]
    fn for_each(&self, i: usize, mut f: impl FnMut(usize, f64)) {
        self.rows.for_each(self.id(i), &mut f);
        if self.bias != 0.0 {
            f(self.rows.n_cols(), self.bias);
        }
    }
    #[inline(always)]
    fn prefetch_header(&self, i: usize) {
        self.rows.prefetch_header(self.id(i));
    }
    #[inline(always)]
    fn prefetch(&self, i: usize) {
        self.rows.prefetch(self.id(i));
    }
    #[inline]
    fn visit<P: Pass>(&self, pass: P) -> P::Output {
        self.rows.visit(OfDesign { ids: self.ids, bias: self.bias, pass })
    }
}

/// A pass over chosen rows with a constant column.
struct OfDesign<'a, P> {
    ids: Option<&'a [u32]>,
    bias: f64,
    pass: P,
}

impl<P: Pass> Pass for OfDesign<'_, P> {
    type Output = P::Output;
    #[inline]
    fn run<R: Rows>(self, rows: &R) -> P::Output {
        self.pass.run(&Design { rows, ids: self.ids, bias: self.bias })
    }
}
