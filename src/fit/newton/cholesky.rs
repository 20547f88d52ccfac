//! Cholesky factorisation of a small dense symmetric matrix, for Newton steps when columns are few.

use crate::fit::sweep::dot;
use crate::matrix::kernels::dot_dense_lanes;
use crate::matrix::simd;
use crate::matrix::simd::Loop;
use crate::memory;

/// A symmetric matrix of order `n`, of which only the lower triangle (row after row, full rows) is read.
pub struct Symmetric {
    /// Order.
    pub n: usize,
    /// `n * n` numbers; the factor overwrites the lower triangle.
    pub values: Vec<f64>,
}

impl Clone for Symmetric {
    fn clone(&self) -> Self {
        Self { n: self.n, values: memory::copy(&self.values) }
    }
}

impl Symmetric {
    /// The lower triangle, row after row.
    pub fn lower(&self) -> impl Iterator<Item = f64> {
        (0..self.n).flat_map(|i| self.values[i * self.n..][..=i].iter().copied())
    }

    /// The matrix of order `n` with a lower triangle of so many numbers.
    pub fn from_lower(n: usize, lower: &[f64]) -> Self {
        let mut values = memory::zeros(n * n);
        let mut rest = lower;
        for i in 0..n {
            let (row, later) = rest.split_at(i + 1);
            values[i * n..][..=i].copy_from_slice(row);
            rest = later;
        }
        Self { n, values }
    }

    /// Overwrites the lower triangle with `L`, `L L' = A`.
    ///
    /// A pivot not above `n * eps` times its diagonal entry is a direction without curvature (the free
    /// intercept when no row is active): it gets a huge pivot, so that the solution has no component along
    /// it.
    pub fn factorise(&mut self) {
        let n = self.n;
        let floor = n as f64 * f64::EPSILON;
        for i in 0..n {
            let (done, rest) = self.values.split_at_mut(i * n);
            let row = &mut rest[..n];
            for j in 0..i {
                let above = &done[j * n..j * n + n];
                row[j] = (row[j] - dot(&row[..j], &above[..j])) / above[j];
            }
            let full = row[i];
            let pivot = full - dot(&row[..i], &row[..i]);
            row[i] = if pivot > floor * full { pivot.sqrt() } else { f64::MAX.sqrt() };
        }
    }

    /// Solves `L L' x = b` in place in each lane, after [`Self::factorise`].
    pub fn solve<const LANES: usize>(&self, b: &mut [[f64; LANES]]) {
        simd::run(Substitution { factor: self, b });
    }
}

/// [`Symmetric::solve`], to be compiled for the machine.
struct Substitution<'a, const LANES: usize> {
    factor: &'a Symmetric,
    b: &'a mut [[f64; LANES]],
}

impl<const LANES: usize> Loop for Substitution<'_, LANES> {
    type Output = ();
    const IS_WIDE: bool = LANES > 1;
    #[inline(always)]
    fn run(self) {
        let (n, b) = (self.factor.n, self.b);
        for i in 0..n {
            let row = &self.factor.values[i * n..i * n + i + 1];
            let (done, rest) = b.split_at_mut(i);
            let sum = dot_dense_lanes(&row[..i], done);
            for l in 0..LANES {
                rest[0][l] = (rest[0][l] - sum[l]) / row[i];
            }
        }
        for i in (0..n).rev() {
            let row = &self.factor.values[i * n..i * n + i + 1];
            let (before, rest) = b.split_at_mut(i);
            let x = &mut rest[0];
            for l in 0..LANES {
                x[l] /= row[i];
            }
            for (b, v) in before.iter_mut().zip(row) {
                for l in 0..LANES {
                    b[l] -= v * x[l];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn solves_positive_definite_systems(n in 1..12usize, seed in 0..1000u32) {
            let entry = |i: usize, j: usize| f64::from(((i * 31 + j * 17) as u32 + seed * 7) % 23) - 11.0;
            let mut a = Symmetric { n, values: vec![0.0; n * n] };
            for i in 0..n {
                for j in 0..n {
                    let product: f64 = (0..n).map(|k| entry(i, k) * entry(j, k)).sum();
                    a.values[i * n + j] = product + if i == j { 1.0 } else { 0.0 };
                }
            }
            let x: Vec<f64> = (0..n).map(|i| i as f64 - 2.5).collect();
            let mut b: Vec<[f64; 2]> = (0..n)
                .map(|i| (0..n).map(|j| a.values[i * n + j] * x[j]).sum())
                .map(|b: f64| [b, 2.0 * b])
                .collect();
            a.factorise();
            a.solve(&mut b);
            for i in 0..n {
                prop_assert!((b[i][0] - x[i]).abs() < 1e-6 && (b[i][1] - 2.0 * x[i]).abs() < 1e-6, "{b:?}");
            }
        }
    }

    #[test]
    fn ignores_a_direction_without_curvature() {
        let mut a = Symmetric { n: 2, values: vec![4.0, 0.0, 0.0, 0.0] };
        a.factorise();
        let mut b = [[8.0], [0.0]];
        a.solve(&mut b);
        assert_eq!(b, [[2.0], [0.0]]);
    }
}
