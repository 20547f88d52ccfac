//! Dense C-ordered rows, borrowed and checked once.

use std::ops::Range;

use super::csr::{Structure, not_finite};
use super::number::Value;
use super::pieces::{CheckedRows, Finite, RowProducts, are_below};
use super::rows::Rows;
use super::{kernels, simd};
use crate::{Error, Result};

/// Rows that are checked side by side.
const TOGETHER: usize = 8;

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
    /// [`Error::Shape`] when `values` does not hold `n_rows * n_cols` numbers, [`Error::NotFinite`] for NaN
    /// or infinity.
    pub fn new(values: &'a [V], n_rows: usize, n_cols: usize) -> Result<(Self, Structure)> {
        let view = DensePieces::new(values, n_rows, n_cols)?.all;
        let mut structure = Structure::default();
        let grouped = n_rows - n_rows % TOGETHER;
        for first in (0..grouped).step_by(TOGETHER) {
            structure.max_squared_norm = structure.max_squared_norm.max(view.check_rows::<TOGETHER>(first)?);
        }
        for row in grouped..n_rows {
            structure.max_squared_norm = structure.max_squared_norm.max(view.check_rows::<1>(row)?);
        }
        Ok((view, structure))
    }

    /// Wraps the cells of checked rows.
    pub(super) fn of_finite(values: &'a [V], n_rows: usize, n_cols: usize) -> Self {
        debug_assert!(Self::new(values, n_rows, n_cols).is_ok());
        Self { values, n_rows, n_cols }
    }

    /// The largest squared norm of `N` rows. Each is summed from left to right, all side by side: a sum waits
    /// for itself only.
    fn check_rows<const N: usize>(&self, first: usize) -> Result<f64> {
        let rows: [&[V]; N] = std::array::from_fn(|r| self.row(first + r));
        let mut squared = [0.0; N];
        for k in 0..self.n_cols {
            for r in 0..N {
                squared[r] += rows[r][k].to_f64() * rows[r][k].to_f64();
            }
        }
        if !squared.iter().all(|squared| squared.is_finite()) {
            self.check_finite(first..first + N)?;
        }
        Ok(squared.into_iter().fold(0.0, f64::max))
    }

    #[cold]
    fn check_finite(&self, rows: Range<usize>) -> Result<()> {
        for row in rows {
            let entries = self.row(row);
            if let Some(column) = entries.iter().position(|v| !v.to_f64().is_finite()) {
                return Err(not_finite(row, column, entries[column].to_f64()));
            }
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn row(&self, i: usize) -> &'a [V] {
        &self.values[i * self.n_cols..(i + 1) * self.n_cols]
    }
}

/// A dense matrix whose values are checked piece by piece.
#[derive(Clone, Copy)]
pub struct DensePieces<'a, V> {
    /// Not handed out: its values are not checked.
    all: DenseView<'a, V>,
}

impl<'a, V: Value> DensePieces<'a, V> {
    /// Checks the shape and wraps the values.
    ///
    /// # Errors
    /// [`Error::Shape`] when `values` does not hold `n_rows * n_cols` numbers.
    pub fn new(values: &'a [V], n_rows: usize, n_cols: usize) -> Result<Self> {
        let expected = n_rows.saturating_mul(n_cols);
        if values.len() != expected {
            return Err(Error::Shape { what: "dense values", expected, found: values.len() });
        }
        Ok(Self { all: DenseView { values, n_rows, n_cols } })
    }

    /// The values, not checked.
    pub(crate) fn values(&self) -> &'a [V] {
        self.all.values
    }
}

impl<'a, V: Value> CheckedRows for DensePieces<'a, V> {
    type Piece = DenseView<'a, V>;
    fn n_rows(&self) -> usize {
        self.all.n_rows
    }
    fn n_cols(&self) -> usize {
        self.all.n_cols
    }
    fn n_entries(&self) -> usize {
        self.all.values.len()
    }
    fn piece(&self, rows: Range<usize>, finite: Finite) -> Result<Self::Piece> {
        let n_cols = self.all.n_cols;
        let values = &self.all.values[rows.start * n_cols..rows.end * n_cols];
        if finite == Finite::Required && !are_below(values, f64::INFINITY) {
            self.all.check_finite(rows.clone())?;
        }
        Ok(DenseView { values, n_rows: rows.len(), n_cols })
    }
}

/// Entries of the rows that stay in the first-level cache while vector after vector passes.
const CACHED_ENTRIES: usize = 1 << 12;

/// The products of a few dense rows with dense vectors.
struct DenseProducts<'a, V, W> {
    rows: DenseView<'a, V>,
    w: &'a [W],
    intercept: &'a [f64],
    out: &'a mut [f64],
}

impl<V: Value, W: Value> simd::Loop for DenseProducts<'_, V, W> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) {
        let Self { rows, w, intercept, out } = self;
        let (d, n_labels) = (rows.n_cols, intercept.len());
        let vector = |l: usize| &w[l * d..(l + 1) * d];
        for l in (1..n_labels).step_by(2) {
            let pair = [vector(l - 1), vector(l)];
            for (i, out) in out.chunks_exact_mut(n_labels).enumerate() {
                let [first, second] = kernels::dot_dense_pair(rows.row(i), pair);
                out[l - 1] = intercept[l - 1] + first;
                out[l] = intercept[l] + second;
            }
        }
        if n_labels % 2 == 1 {
            let l = n_labels - 1;
            for (i, out) in out.chunks_exact_mut(n_labels).enumerate() {
                out[l] = intercept[l] + kernels::dot_dense_portable(rows.row(i), vector(l));
            }
        }
    }
}

impl<V: Value> RowProducts for DenseView<'_, V> {
    fn products<W: Value>(&self, w: &[W], intercept: &[f64], out: &mut [f64]) {
        let together = (CACHED_ENTRIES / self.n_cols.max(1)).max(8);
        for (k, out) in out.chunks_mut((together * intercept.len()).max(1)).enumerate() {
            let rows = k * together..((k + 1) * together).min(self.n_rows);
            let values = &self.values[rows.start * self.n_cols..rows.end * self.n_cols];
            simd::run(DenseProducts {
                rows: Self { values, n_rows: rows.len(), ..*self },
                w,
                intercept,
                out,
            });
        }
    }
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
        let [sums] = self.dot_lines_of([i], w, stride, first);
        sums
    }
    #[inline(always)]
    fn add_lanes<const L: usize>(&self, i: usize, scale: &[f64; L], w: &mut [[f64; L]]) {
        let (row, scale) = (self.row(i), *scale);
        for (v, w) in row.iter().zip(&mut w[..row.len()]) {
            if L > 1 {
                kernels::one_at_a_time();
            }
            kernels::add_entry(w, v.to_f64(), &scale);
        }
    }
    #[inline(always)]
    fn add_lines(&self, i: usize, delta: &[[f64; kernels::LINE]], w: &mut [[f64; kernels::LINE]]) {
        for (v, column) in self.row(i).iter().zip(w.chunks_exact_mut(delta.len())) {
            for (w, delta) in column.iter_mut().zip(delta) {
                kernels::one_at_a_time();
                kernels::add_entry(w, v.to_f64(), delta);
            }
        }
    }
    const IS_DENSE: bool = true;
    #[inline(always)]
    fn dot_lines_of<const G: usize, const N: usize>(
        &self,
        rows: [usize; N],
        w: &[[f64; kernels::LINE]],
        stride: usize,
        first: usize,
    ) -> [[[f64; kernels::LINE]; G]; N] {
        let n = self.n_cols;
        let rows: [&[V]; N] = rows.map(|i| &self.row(i)[..n]);
        let mut sums = [[[0.0; kernels::LINE]; G]; N];
        for (j, column) in w.chunks_exact(stride).take(n).enumerate() {
            kernels::one_at_a_time();
            let lines = &column[first..first + G];
            for r in 0..N {
                let v = rows[r][j].to_f64();
                for g in 0..G {
                    kernels::add_entry(&mut sums[r][g], v, &lines[g]);
                }
            }
        }
        sums
    }
    #[inline(always)]
    fn add_lines_of<const G: usize, const N: usize>(
        &self,
        rows: [usize; N],
        deltas: &[[[f64; kernels::LINE]; G]; N],
        w: &mut [[f64; kernels::LINE]],
    ) {
        let n = self.n_cols;
        let (rows, deltas): ([&[V]; N], _) = (rows.map(|i| &self.row(i)[..n]), *deltas);
        for (j, column) in w[..n * G].as_chunks_mut::<G>().0.iter_mut().enumerate() {
            kernels::one_at_a_time();
            let (mut v, mut sums) = ([0.0; N], *column);
            for r in 0..N {
                v[r] = rows[r][j].to_f64();
            }
            for r in 0..N {
                for g in 0..G {
                    kernels::add_entry(&mut sums[g], v[r], &deltas[r][g]);
                }
            }
            *column = sums;
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
        kernels::prefetch(self.values, i * self.n_cols, self.n_cols * V::BYTES);
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
    fn pairs_give_the_numbers_of_single_products() {
        for (n, d, n_labels) in [(1, 1, 1), (5, 7, 6), (4, 8, 8), (3, 50, 9), (7, 131, 5)] {
            let number = |k: usize| ((k * 37 + 11) as f64).sin();
            let x: Vec<f32> = (0..n * d).map(|k| number(k) as f32).collect();
            let (w, b): (Vec<f64>, Vec<f64>) =
                ((0..n_labels * d).map(|k| number(k + 5)).collect(), (0..n_labels).map(number).collect());
            let pieces = DensePieces::new(&x, n, d).unwrap();
            let (all, mut out) = (pieces.piece(0..n, Finite::Required).unwrap(), vec![0.0; n * n_labels]);
            all.products(&w, &b, &mut out);
            for i in 0..n {
                for l in 0..n_labels {
                    let w = &w[l * d..(l + 1) * d];
                    assert_eq!(out[i * n_labels + l].to_bits(), (b[l] + all.dot(i, w)).to_bits());
                    let mut one = [0.0];
                    pieces.piece(i..i + 1, Finite::Assumed).unwrap().products(w, &b[l..=l], &mut one);
                    assert_eq!(out[i * n_labels + l].to_bits(), one[0].to_bits());
                }
            }
        }
    }

    #[test]
    fn a_piece_counts_its_rows_in_the_whole() {
        let mut values = vec![0.5; 20 * 3];
        values[17 * 3 + 2] = f64::NAN;
        let x = DensePieces::new(&values, 20, 3).unwrap();
        assert!(x.piece(0..17, Finite::Required).is_ok() && x.piece(16..20, Finite::Assumed).is_ok());
        for message in [
            x.piece(16..20, Finite::Required).err().unwrap().to_string(),
            DenseView::new(&values, 20, 3).err().unwrap().to_string(),
        ] {
            assert!(message.contains("contains NaN in row 17, column 2"), "{message}");
        }
    }

    #[test]
    fn names_the_bad_value() {
        let message = DenseView::new(&[1.0, 2.0, 3.0, f64::NEG_INFINITY], 2, 2).err().unwrap().to_string();
        assert!(message.contains("contains infinity in row 1, column 1"), "{message}");
        assert!(DenseView::new(&[1.0f64; 3], 2, 2).is_err());
    }
}
