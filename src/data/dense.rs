//! Dense C-ordered rows, borrowed and checked once.

use super::csr::{Structure, not_finite};
use super::{Rows, Value, kernels};
use crate::{Error, Result};

/// Bytes of one row that are asked for ahead of its use.
const PREFETCH_BYTES: usize = 512;

/// A borrowed, checked dense matrix, row after row.
#[derive(Clone, Copy)]
pub struct DenseView<'a, V> {
    values: &'a [V],
    n_rows: usize,
    n_cols: usize,
}

impl<'a, V: Value> DenseView<'a, V> {
    /// Checks the values and wraps them.
    ///
    /// # Errors
    /// [`Error::Shape`] when `values` does not hold `n_rows * n_cols` numbers, [`Error::Entry`] for NaN or infinity.
    pub fn new(values: &'a [V], n_rows: usize, n_cols: usize) -> Result<(Self, Structure)> {
        let expected = n_rows.saturating_mul(n_cols);
        if values.len() != expected {
            return Err(Error::Shape { what: "dense values", expected, found: values.len() });
        }
        let mut structure = Structure::default();
        if n_cols > 0 {
            for (row, entries) in values.chunks_exact(n_cols).enumerate() {
                structure.max_squared_norm = structure.max_squared_norm.max(check_row(row, entries)?);
            }
        }
        Ok((Self { values, n_rows, n_cols }, structure))
    }

    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> &'a [V] {
        &self.values[i * self.n_cols..(i + 1) * self.n_cols]
    }
}

fn check_row<V: Value>(row: usize, entries: &[V]) -> Result<f64> {
    let squared = entries.iter().map(|v| v.to_f64() * v.to_f64()).sum::<f64>();
    if !squared.is_finite()
        && let Some(column) = entries.iter().position(|v| !v.to_f64().is_finite())
    {
        return Err(not_finite(row, column, entries[column].to_f64()));
    }
    Ok(squared)
}

impl<V: Value> Rows for DenseView<'_, V> {
    fn n_rows(&self) -> usize {
        self.n_rows
    }
    fn n_cols(&self) -> usize {
        self.n_cols
    }
    fn row_len(&self, _: usize) -> usize {
        self.n_cols
    }
    #[inline(always)]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        kernels::dot_dense(self.row(i), w)
    }
    #[inline(always)]
    fn add_scaled(&self, i: usize, scale: f64, w: &mut [f64]) {
        for (x, v) in w.iter_mut().zip(self.row(i)) {
            *x += scale * v.to_f64();
        }
    }
    #[inline(always)]
    fn dot_lanes<const L: usize>(&self, i: usize, w: &[[f64; L]]) -> [f64; L] {
        if L == 1 {
            return [kernels::dot_dense(self.row(i), w.as_flattened()); L];
        }
        kernels::dot_dense_lanes(self.row(i), w)
    }
    #[inline(always)]
    fn dot_lines<const G: usize>(
        &self,
        i: usize,
        w: &[[f64; kernels::LINE]],
        stride: usize,
        first: usize,
    ) -> [[f64; kernels::LINE]; G] {
        let mut sums = [[0.0; kernels::LINE]; G];
        for (v, column) in self.row(i).iter().zip(w.chunks_exact(stride)) {
            let (v, lines) = (v.to_f64(), &column[first..first + G]);
            for g in 0..G {
                for l in 0..kernels::LINE {
                    sums[g][l] += v * lines[g][l];
                }
            }
        }
        sums
    }
    #[inline(always)]
    fn add_lanes<const L: usize>(&self, i: usize, scale: &[f64; L], w: &mut [[f64; L]]) {
        let row = self.row(i);
        let w = &mut w[..row.len()];
        for k in 0..row.len() {
            let v = row[k].to_f64();
            for l in 0..L {
                w[k][l] += scale[l] * v;
            }
        }
    }
    #[inline(always)]
    fn for_each(&self, i: usize, mut f: impl FnMut(usize, f64)) {
        for (j, v) in self.row(i).iter().enumerate() {
            f(j, v.to_f64());
        }
    }
    #[inline(always)]
    fn prefetch(&self, i: usize) {
        kernels::prefetch(self.values, i * self.n_cols, (self.n_cols * V::BYTES).min(PREFETCH_BYTES));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rows() {
        let (x, structure) = DenseView::new(&[1.0f32, 2.0, 3.0, 4.0], 2, 2).unwrap();
        assert_eq!(x.dot(1, &[1.0, 10.0]), 43.0);
        assert_eq!((x.squared_norm(0), structure.max_squared_norm), (5.0, 25.0));
    }

    #[test]
    fn names_the_bad_value() {
        let message = DenseView::new(&[1.0, 2.0, 3.0, f64::NEG_INFINITY], 2, 2).err().unwrap().to_string();
        assert!(message.contains("row 1, column 1: the value is infinity"), "{message}");
        assert!(DenseView::new(&[1.0f64; 3], 2, 2).is_err());
    }
}
