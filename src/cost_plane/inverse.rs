//! The inverse of the margin system `Q_MM`, kept under single changes of the set `M`.
//!
//! A row that enters or leaves `M` changes the inverse by one outer product, O(|M|^2). The inverse is
//! explicit rather than a triangular factor: both changes are then one streaming pass over a symmetric
//! matrix, and a row leaves from any position by swapping with the last. Rounding errors add up slowly;
//! owners watch a residual and call [`Inverse::rebuild`] when it grows.

use crate::matrix::simd;
use crate::matrix::simd::Loop;
use crate::memory;

/// Lines are padded to a multiple of this.
const PAD: usize = 8;

/// `Q_MM^-1` and the order of the rows in it.
#[derive(Clone, Debug, Default)]
pub struct Inverse {
    /// Row numbers, in the order of the matrix.
    pub members: Vec<u32>,
    stride: usize,
    values: Vec<f64>,
}

/// `out = A q` for a symmetric matrix.
struct Multiply<'a> {
    values: &'a [f64],
    stride: usize,
    q: &'a [f64],
    out: &'a mut [f64],
}

impl Loop for Multiply<'_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) {
        let width = self.q.len().next_multiple_of(PAD);
        let out = &mut self.out[..width];
        out.fill(0.0);
        for (q, line) in self.q.iter().zip(self.values.chunks_exact(self.stride)) {
            for (out, value) in out.iter_mut().zip(&line[..width]) {
                *out += q * value;
            }
        }
    }
}

/// `A += scale * r r'`.
struct Outer<'a> {
    values: &'a mut [f64],
    stride: usize,
    r: &'a [f64],
    n: usize,
    scale: f64,
}

impl Loop for Outer<'_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) {
        let width = self.n.next_multiple_of(PAD);
        let r = &self.r[..width];
        for (k, line) in self.values.chunks_exact_mut(self.stride).take(self.n).enumerate() {
            let scale = self.scale * self.r[k];
            for (value, r) in line[..width].iter_mut().zip(r) {
                *value += scale * r;
            }
        }
    }
}

impl Inverse {
    /// Number of rows in `M`.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Whether `M` is empty.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Length that scratch vectors need for `M` and one row more.
    pub fn padded(&self) -> usize {
        (self.len() + 1).next_multiple_of(PAD)
    }

    /// Line `k` of the inverse.
    #[inline(always)]
    pub fn line(&self, k: usize) -> &[f64] {
        &self.values[k * self.stride..k * self.stride + self.len()]
    }

    /// `out = Q_MM^-1 q`; `out` has at least [`Self::padded`] entries.
    #[inline]
    pub fn multiply(&self, q: &[f64], out: &mut [f64]) {
        debug_assert_eq!(q.len(), self.len());
        if !q.is_empty() {
            simd::run(Multiply { values: &self.values, stride: self.stride, q, out });
        }
    }

    /// Takes row `i` in at the last position. `r = Q_MM^-1 Q_Mi`, `s = Q_ii - Q_iM r > 0`; `r` has at least
    /// [`Self::padded`] entries, zero beyond the members.
    pub fn enter(&mut self, i: u32, r: &[f64], s: f64) {
        let n = self.len();
        self.reserve(n + 1);
        let scale = 1.0 / s;
        simd::run(Outer { values: &mut self.values, stride: self.stride, r, n, scale });
        for (k, r) in r[..n].iter().enumerate() {
            let value = -scale * r;
            self.values[k * self.stride + n] = value;
            self.values[n * self.stride + k] = value;
        }
        self.values[n * self.stride + n] = scale;
        self.members.push(i);
    }

    /// Removes the row at position `k`; the last row moves there. `column` is scratch of at least
    /// [`Self::padded`] entries.
    pub fn leave(&mut self, k: usize, column: &mut [f64]) {
        let (n, stride) = (self.len(), self.stride);
        column[..n].copy_from_slice(&self.values[k * stride..k * stride + n]);
        column[n..n.next_multiple_of(PAD)].fill(0.0);
        let scale = -1.0 / column[k];
        simd::run(Outer { values: &mut self.values, stride, r: column, n, scale });
        let last = n - 1;
        if k < last {
            self.values.copy_within(last * stride..last * stride + n, k * stride);
            for line in self.values.chunks_exact_mut(stride).take(n) {
                line[k] = line[last];
            }
        }
        for line in self.values.chunks_exact_mut(stride).take(n) {
            line[last] = 0.0;
        }
        self.values[last * stride..last * stride + n].fill(0.0);
        self.members.swap_remove(k);
    }

    /// Computes the inverse anew by Cholesky; `product(i, j)` is `Q_ij`. Members that depend on earlier ones
    /// within `limit` (pivot relative to the diagonal) make it fail, with the position of the first.
    ///
    /// # Errors
    /// The position of a dependent member; the inverse is then meaningless.
    pub fn rebuild(
        &mut self,
        members: &[u32],
        limit: f64,
        product: impl Fn(u32, u32) -> f64,
    ) -> Result<(), usize> {
        let n = members.len();
        self.members.clear();
        self.members.extend_from_slice(members);
        self.reserve(n);
        self.values.fill(0.0);
        let stride = self.stride;
        let mut lower = memory::zeros(n * n);
        for i in 0..n {
            let (done, row) = lower.split_at_mut(i * n);
            for j in 0..i {
                let above = &done[j * n..j * n + n];
                row[j] = (product(members[i], members[j]) - dot(&row[..j], &above[..j])) / above[j];
            }
            let full = product(members[i], members[i]);
            let pivot = full - dot(&row[..i], &row[..i]);
            if pivot.is_nan() || pivot <= limit * full {
                return Err(i);
            }
            row[i] = pivot.sqrt();
        }
        // Rows of the inverse of L, then A^-1 = L^-T L^-1 as a sum of outer products.
        let mut column = vec![0.0; n.next_multiple_of(PAD).max(PAD)];
        let mut inverse_lower = memory::zeros(n * n);
        for j in 0..n {
            inverse_lower[j * n + j] = 1.0 / lower[j * n + j];
            for i in j + 1..n {
                let sum: f64 = (j..i).map(|k| lower[i * n + k] * inverse_lower[k * n + j]).sum();
                inverse_lower[i * n + j] = -sum / lower[i * n + i];
            }
        }
        for i in 0..n {
            column.fill(0.0);
            column[..=i].copy_from_slice(&inverse_lower[i * n..i * n + i + 1]);
            simd::run(Outer { values: &mut self.values, stride, r: &column, n: i + 1, scale: 1.0 });
        }
        Ok(())
    }

    fn reserve(&mut self, n: usize) {
        if n <= self.stride {
            return;
        }
        let stride = (n + n / 2).next_multiple_of(PAD).max(4 * PAD);
        let mut values = memory::zeros(stride * stride);
        if self.stride > 0 {
            for (to, from) in values.chunks_exact_mut(stride).zip(self.values.chunks_exact(self.stride)) {
                to[..self.stride].copy_from_slice(from);
            }
        }
        (self.stride, self.values) = (stride, values);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(seed: u64, i: u32, j: u32) -> f64 {
        let x =
            (u64::from(i) * 7919 + u64::from(j) * 104_729 + seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        (x % 1000) as f64 / 500.0 - 1.0
    }

    fn product(seed: u64, a: u32, b: u32) -> f64 {
        (0..40).map(|k| entry(seed, a, k) * entry(seed, b, k)).sum::<f64>() + if a == b { 0.5 } else { 0.0 }
    }

    proptest! {
        #[test]
        fn changes_equal_a_rebuild(seed in 0..1000u64, moves in prop::collection::vec(0..30u32, 1..60)) {
            let mut inverse = Inverse::default();
            for i in moves {
                let mut scratch = vec![0.0; inverse.padded()];
                if let Some(k) = inverse.members.iter().position(|&m| m == i) {
                    inverse.leave(k, &mut scratch);
                } else {
                    let q: Vec<f64> = inverse.members.iter().map(|&m| product(seed, m, i)).collect();
                    inverse.multiply(&q, &mut scratch);
                    let s = product(seed, i, i) - dot(&q, &scratch);
                    inverse.enter(i, &scratch, s);
                }
            }
            let mut fresh = Inverse::default();
            fresh.rebuild(&inverse.members, 1e-12, |a, b| product(seed, a, b)).unwrap();
            for k in 0..inverse.len() {
                for (a, b) in inverse.line(k).iter().zip(fresh.line(k)) {
                    prop_assert!((a - b).abs() < 1e-8, "{a} {b}");
                }
                let unit: f64 = (0..inverse.len())
                    .map(|j| fresh.line(k)[j] * product(seed, fresh.members[j], fresh.members[k]))
                    .sum();
                prop_assert!((unit - 1.0).abs() < 1e-8);
            }
        }
    }

    #[test]
    fn names_a_dependent_member() {
        let rows = [[1.0, 0.0], [0.0, 2.0], [1.0, 2.0]];
        let product = |a: u32, b: u32| dot(&rows[a as usize], &rows[b as usize]);
        assert_eq!(Inverse::default().rebuild(&[0, 1, 2], 1e-12, product), Err(2));
        assert_eq!(Inverse::default().rebuild(&[], 1e-12, product), Ok(()));
    }
}
