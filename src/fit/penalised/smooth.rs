//! The smooth terms of the rows that rounds of Newton steps minimise: those of a smooth loss as they are, or
//! what stands for the hinge around a dual point ([`SmoothedHinge`]); and loops that evaluate some of them
//! together.

use std::ops::Range;

use crate::fit::newton::hinge::SmoothedHinge;
use crate::fit::objective::{Objective, Weighted};
use crate::loss::Loss;
use crate::matrix::simd::Loop;

/// Rows whose terms are evaluated together: two registers of numbers in double precision.
const TOGETHER: usize = 16;

/// What is done with each row, for several successive ones at once.
pub trait OfRows<const K: usize> {
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
        while i + TOGETHER <= rows.end {
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

/// Convex terms `f_i` with what a dual point and a Newton step ask of them.
pub trait SmoothTerms: Objective<1> {
    /// [`Objective::all`] of the successive rows from `i` on, at a decision value each.
    fn all_of<const N: usize>(&self, i: usize, z: &[f64; N]) -> [[f64; N]; 3];
    /// The terms of the successive rows from `i` on in the dual, `-f_i*`, at a slope of size `a` within its
    /// box each; anything for rows that are absent.
    fn dual_terms<const N: usize>(&self, i: usize, a: &[f64; N]) -> [f64; N];
    /// At least `f_i''`.
    fn largest_bend(&self, i: usize) -> f64;
    /// The decision value from which on `f_i` is zero, and its curvature before, signed as the label; None
    /// where it is not such a half of a parabola.
    fn half_parabola(&self, _: usize) -> Option<[f64; 2]> {
        None
    }
    /// The largest size of a slope.
    fn upper(&self, i: usize) -> f64;
}

impl<T: Loss> SmoothTerms for Weighted<'_, T> {
    #[inline(always)]
    fn all_of<const N: usize>(&self, i: usize, z: &[f64; N]) -> [[f64; N]; 3] {
        let (y, c) = (&self.y[i..i + N], &self.cost[i..i + N]);
        let mut m = *z;
        for k in 0..N {
            m[k] *= y[k];
        }
        let [mut value, mut slope, mut bend] = self.loss.all_of(m);
        for k in 0..N {
            value[k] *= c[k];
            slope[k] *= c[k] * y[k];
            bend[k] *= c[k];
        }
        [value, slope, bend]
    }
    #[inline(always)]
    fn dual_terms<const N: usize>(&self, i: usize, a: &[f64; N]) -> [f64; N] {
        let mut cost = [0.0; N];
        cost.copy_from_slice(&self.cost[i..i + N]);
        self.loss.dual_terms_closely(&cost, a)
    }
    fn largest_bend(&self, i: usize) -> f64 {
        self.cost[i] * self.loss.largest_curvature()
    }
    fn half_parabola(&self, i: usize) -> Option<[f64; 2]> {
        self.loss.is_half_parabola().then(|| [self.y[i], self.y[i] * self.largest_bend(i)])
    }
    fn upper(&self, i: usize) -> f64 {
        self.loss.upper(self.cost[i])
    }
}

impl SmoothTerms for SmoothedHinge<'_> {
    #[inline(always)]
    fn all_of<const N: usize>(&self, i: usize, z: &[f64; N]) -> [[f64; N]; 3] {
        let mut terms = [[0.0; N]; 3];
        for k in 0..N {
            let [[value], [slope], [bend]] = self.all(i + k, &[z[k]]);
            (terms[0][k], terms[1][k], terms[2][k]) = (value, slope, bend);
        }
        terms
    }
    #[inline(always)]
    fn dual_terms<const N: usize>(&self, i: usize, a: &[f64; N]) -> [f64; N] {
        let mut terms = *a;
        for k in 0..N {
            let moved = a[k] - self.alpha[i + k];
            terms[k] -= moved * moved / (2.0 * self.sigma * self.cost[i + k]);
        }
        terms
    }
    fn largest_bend(&self, i: usize) -> f64 {
        self.sigma * self.cost[i]
    }
    fn upper(&self, i: usize) -> f64 {
        self.cost[i]
    }
}
