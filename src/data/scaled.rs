//! Rows whose nonzero values are all equal: columns and one number per row.
//!
//! Binary features, raw or scaled to unit length, take 4 bytes per entry instead of 8: a cache of given size holds twice as
//! many rows, and a step of a solver reads half the memory.

use super::{Rows, kernels};

/// Bytes of one row that are asked for ahead of its use, as for CSR.
const PREFETCH_BYTES: usize = 512;

/// Borrowed rows; row `i` has the value `scale[i]` in the columns `indices[indptr[i]..indptr[i + 1]]`.
#[derive(Clone, Copy)]
pub struct ScaledView<'a> {
    indptr: &'a [i64],
    indices: &'a [i32],
    scale: &'a [f64],
    n_cols: usize,
}

impl<'a> ScaledView<'a> {
    /// Wraps arrays that are right by construction.
    ///
    /// # Safety
    /// `indptr` starts at 0, never falls, has one entry more than `scale` and ends within `indices`; every index it covers is in
    /// `0..n_cols`, none comes twice in a row.
    #[allow(unsafe_code)]
    pub(super) unsafe fn from_sound(indptr: &'a [i64], indices: &'a [i32], scale: &'a [f64], n_cols: usize) -> Self {
        debug_assert_eq!(indptr.len(), scale.len() + 1);
        debug_assert!(indices.iter().all(|&j| usize::try_from(j).is_ok_and(|j| j < n_cols)));
        Self { indptr, indices, scale, n_cols }
    }

    #[inline(always)]
    fn row(&self, i: usize) -> &'a [i32] {
        &self.indices[self.indptr[i] as usize..self.indptr[i + 1] as usize]
    }
}

impl Rows for ScaledView<'_> {
    fn n_rows(&self) -> usize {
        self.scale.len()
    }
    fn n_cols(&self) -> usize {
        self.n_cols
    }
    #[inline(always)]
    fn row_len(&self, i: usize) -> usize {
        (self.indptr[i + 1] - self.indptr[i]) as usize
    }
    #[inline(always)]
    #[allow(unsafe_code)]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        assert!(w.len() >= self.n_cols);
        // SAFETY: `from_sound` was promised every index below `n_cols`, which is at most `w.len()`.
        self.scale[i] * unsafe { kernels::sum_at(self.row(i), w) }
    }
    #[inline(always)]
    #[allow(unsafe_code)]
    fn add_scaled(&self, i: usize, scale: f64, w: &mut [f64]) {
        assert!(w.len() >= self.n_cols);
        // SAFETY: as in `dot`.
        unsafe { kernels::add_at(self.row(i), scale * self.scale[i], w) }
    }
    #[inline(always)]
    fn dot_lanes<const L: usize>(&self, i: usize, w: &[[f64; L]]) -> [f64; L] {
        if L == 1 {
            return [self.dot(i, w.as_flattened()); L];
        }
        let mut sum = [0.0; L];
        for &j in self.row(i) {
            let w = &w[j as usize];
            for l in 0..L {
                sum[l] += w[l];
            }
        }
        sum.map(|sum| sum * self.scale[i])
    }
    #[inline(always)]
    fn add_lanes<const L: usize>(&self, i: usize, scale: &[f64; L], w: &mut [[f64; L]]) {
        let scale = scale.map(|scale| scale * self.scale[i]);
        for &j in self.row(i) {
            let w = &mut w[j as usize];
            for l in 0..L {
                w[l] += scale[l];
            }
        }
    }
    #[inline(always)]
    fn for_each(&self, i: usize, mut f: impl FnMut(usize, f64)) {
        for &j in self.row(i) {
            f(j as usize, self.scale[i]);
        }
    }
    #[inline(always)]
    fn squared_norm(&self, i: usize) -> f64 {
        self.row_len(i) as f64 * (self.scale[i] * self.scale[i])
    }
    #[inline(always)]
    fn prefetch_header(&self, i: usize) {
        kernels::prefetch(self.indptr, i, 1);
        kernels::prefetch(self.scale, i, 1);
    }
    #[inline(always)]
    fn prefetch(&self, i: usize) {
        let bytes = self.row_len(i) * size_of::<i32>();
        kernels::prefetch(self.indices, self.indptr[i] as usize, bytes.min(PREFETCH_BYTES));
    }
}
