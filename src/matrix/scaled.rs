//! Rows whose nonzero values are all equal: columns and one number per row.
//!
//! Binary features, raw or scaled to unit length, take 4 bytes per entry instead of 8: a cache of given size
//! holds twice as many rows, and a step of a solver reads half the memory.

use std::sync::atomic::{AtomicBool, Ordering};

use super::csr::CsrView;
use super::kernels;
use super::number::{Index, Value};
use super::rows::Rows;
use crate::memory;
use crate::memory::CollectLarge;
use crate::parallel;

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
    /// `indptr` starts at 0, never falls, has one entry more than `scale` and ends within `indices`; every
    /// index it covers is in `0..n_cols`, none comes twice in a row.
    #[allow(unsafe_code)]
    pub(super) unsafe fn from_sound(
        indptr: &'a [i64],
        indices: &'a [i32],
        scale: &'a [f64],
        n_cols: usize,
    ) -> Self {
        debug_assert_eq!(indptr.len(), scale.len() + 1);
        debug_assert!(indices.iter().all(|&j| usize::try_from(j).is_ok_and(|j| j < n_cols)));
        Self { indptr, indices, scale, n_cols }
    }

    /// The columns of row `i` and their value.
    #[inline(always)]
    pub(crate) fn parts(&self, i: usize) -> (&'a [i32], f64) {
        (self.row(i), self.scale[i])
    }

    #[inline(always)]
    fn row(&self, i: usize) -> &'a [i32] {
        &self.indices[self.indptr[i] as usize..self.indptr[i + 1] as usize]
    }
}

/// Rows per parallel task of the search for unequal values.
const TASK_ROWS: usize = 4096;

/// The columns of a CSR matrix and one number for each row.
pub struct Scaled<'a> {
    indptr: Vec<i64>,
    indices: &'a [i32],
    scale: Vec<f64>,
    n_cols: usize,
}

impl<'a> Scaled<'a> {
    /// Reads one number per row off `rows`; `None` if a row has two different values or the columns are not
    /// 4-byte numbers. `rows` without duplicates.
    pub fn new<I: Index, V: Value>(rows: &CsrView<'a, I, V>) -> Option<Self> {
        let (indptr, indices, values) = rows.arrays();
        let indices = I::as_i32(indices)?;
        let mut scale = memory::zeros(rows.n_rows());
        let differs = AtomicBool::new(false);
        parallel::each_chunk(&mut scale, TASK_ROWS, |first, scale| {
            for (scale, i) in scale.iter_mut().zip(first..) {
                if differs.load(Ordering::Relaxed) {
                    return;
                }
                match common_value(&values[indptr[i].to_usize()..indptr[i + 1].to_usize()]) {
                    Some(value) => *scale = value,
                    None => differs.store(true, Ordering::Relaxed),
                }
            }
        });
        if differs.into_inner() {
            return None;
        }
        let indptr = indptr.iter().map(|p| p.to_usize() as i64).collect_large();
        Some(Self { indptr, indices, scale, n_cols: rows.n_cols() })
    }

    /// The rows.
    #[allow(unsafe_code)]
    pub fn view(&self) -> ScaledView<'_> {
        // SAFETY: the arrays are those of a `CsrView`, one number per row beside them.
        unsafe { ScaledView::from_sound(&self.indptr, self.indices, &self.scale, self.n_cols) }
    }
}

/// The number that all values are equal to, 0 if there are none.
fn common_value<V: Value>(values: &[V]) -> Option<f64> {
    let first = values.first().map_or(0.0, |v| v.to_f64());
    // Without an early end inside a group, the comparison takes whole registers.
    let is_common =
        values.chunks(64).all(|group| group.iter().fold(true, |all, v| all & (v.to_f64() == first)));
    is_common.then_some(first)
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
    #[allow(unsafe_code)]
    fn dot_lanes<const L: usize>(&self, i: usize, w: &[[f64; L]]) -> [f64; L] {
        if L == 1 {
            return [self.dot(i, w.as_flattened()); L];
        }
        assert!(w.len() >= self.n_cols);
        // SAFETY: as in `dot`.
        let sum = unsafe { kernels::sum_lanes_at(self.row(i), w) };
        sum.map(|sum| sum * self.scale[i])
    }
    #[inline(always)]
    #[allow(unsafe_code)]
    fn add_lanes<const L: usize>(&self, i: usize, scale: &[f64; L], w: &mut [[f64; L]]) {
        assert!(w.len() >= self.n_cols);
        // SAFETY: as in `dot`.
        unsafe { kernels::add_lanes_at(self.row(i), &scale.map(|scale| scale * self.scale[i]), w) }
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
        kernels::prefetch(self.indices, self.indptr[i] as usize, bytes);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows() -> impl Strategy<Value = Vec<(Vec<i32>, f32)>> {
        let row = (prop::collection::btree_set(0..30i32, 0..20), -3.0..3.0f32);
        prop::collection::vec(row.prop_map(|(columns, value)| (columns.into_iter().collect(), value)), 1..20)
    }

    proptest! {
        #[test]
        fn is_the_matrix_it_was_made_of(rows in rows()) {
            let mut indptr = vec![0i64];
            let (mut indices, mut values) = (Vec::<i32>::new(), Vec::new());
            for (columns, value) in &rows {
                indices.extend(columns);
                values.resize(indices.len(), *value);
                indptr.push(indices.len() as i64);
            }
            let (csr, _) = CsrView::new(&indptr, &indices, &values, 30).unwrap();
            let scaled = Scaled::new(&csr).unwrap();
            let view = scaled.view();
            let w: Vec<f64> = (0..30).map(|k| f64::from(k * 3).cos()).collect();
            let lanes: Vec<[f64; 3]> = w.iter().map(|w| [*w, 2.0 * w, w * w]).collect();
            for i in 0..rows.len() {
                prop_assert_eq!(view.row_len(i), csr.row_len(i));
                prop_assert!((view.dot(i, &w) - csr.dot(i, &w)).abs() < 1e-12);
                prop_assert!((view.squared_norm(i) - csr.squared_norm(i)).abs() < 1e-12);
                for (a, b) in view.dot_lanes(i, &lanes).into_iter().zip(csr.dot_lanes(i, &lanes)) {
                    prop_assert!((a - b).abs() < 1e-12);
                }
                let (mut a, mut b) = (w.clone(), w.clone());
                view.add_scaled(i, 0.7, &mut a);
                csr.add_scaled(i, 0.7, &mut b);
                prop_assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-12));
                let (mut a, mut b) = (lanes.clone(), lanes.clone());
                view.add_lanes(i, &[0.7, -1.0, 2.0], &mut a);
                csr.add_lanes(i, &[0.7, -1.0, 2.0], &mut b);
                prop_assert!(
                    a.as_flattened().iter().zip(b.as_flattened()).all(|(a, b)| (a - b).abs() < 1e-12)
                );
                let (mut a, mut b) = (Vec::new(), Vec::new());
                view.for_each(i, |j, v| a.push((j, v)));
                csr.for_each(i, |j, v| b.push((j, v)));
                prop_assert_eq!(a, b);
            }
        }

        #[test]
        fn two_values_in_a_row_are_not_one(len in 2..200usize, at in 0..200usize) {
            let indices: Vec<i32> = (0..len as i32).collect();
            let mut values = vec![0.5f64; len];
            let at = at % len;
            values[at] = 0.25;
            let indptr = [0, len as i64];
            let (csr, _) = CsrView::new(&indptr, &indices, &values, len).unwrap();
            prop_assert!(Scaled::new(&csr).is_none());
        }
    }

    #[test]
    fn wide_columns_stay_as_they_are() {
        let (csr, _) = CsrView::new(&[0i64, 1], &[0i64], &[1.0f32], 1).unwrap();
        assert!(Scaled::new(&csr).is_none());
    }
}
