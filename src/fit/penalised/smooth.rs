//! The smooth terms of the rows that rounds of Newton steps minimise: those of a smooth loss as they are, or
//! what stands for the hinge around a dual point ([`SmoothedHinge`]).

use crate::fit::newton::hinge::SmoothedHinge;
use crate::fit::objective::{Objective, Weighted};
use crate::fit::together::entries;
use crate::loss::Loss;

/// Convex terms `f_i` with what a dual point and a Newton step ask of them.
pub trait SmoothTerms: Objective<1> {
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
    /// Whether `f_i` is made of parabolas, so that `f_i''` is another only where a step passes a kink.
    fn is_piecewise(&self) -> bool;
    /// The largest size of a slope.
    fn upper(&self, i: usize) -> f64;
}

impl<T: Loss> SmoothTerms for Weighted<'_, T> {
    #[inline(always)]
    fn dual_terms<const N: usize>(&self, i: usize, a: &[f64; N]) -> [f64; N] {
        self.loss.dual_terms_closely(&entries(self.cost, i), a)
    }
    fn largest_bend(&self, i: usize) -> f64 {
        self.cost[i] * self.loss.largest_curvature()
    }
    fn half_parabola(&self, i: usize) -> Option<[f64; 2]> {
        self.loss.is_half_parabola().then(|| [self.y[i], self.y[i] * self.largest_bend(i)])
    }
    /// The losses that end are, the logistic one has no kink.
    fn is_piecewise(&self) -> bool {
        self.loss.can_be_zero()
    }
    fn upper(&self, i: usize) -> f64 {
        self.loss.upper(self.cost[i])
    }
}

impl SmoothTerms for SmoothedHinge<'_> {
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
    fn is_piecewise(&self) -> bool {
        true
    }
    fn upper(&self, i: usize) -> f64 {
        self.cost[i]
    }
}
