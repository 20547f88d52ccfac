//! The smooth terms of the rows that rounds of Newton steps minimise: those of a smooth loss as they are, or
//! what stands for the hinge around a dual point ([`SmoothedHinge`]).

use crate::fit::newton::hinge::SmoothedHinge;
use crate::fit::objective::{Objective, Weighted};
use crate::loss::Loss;

/// Convex terms `f_i` with what a dual point and a Newton step ask of them.
pub trait SmoothTerms: Objective<1> {
    /// The term of row `i` in the dual, `-f_i*`, at a slope of size `a` within its box.
    fn dual_term(&self, i: usize, a: f64) -> f64;
    /// At least `f_i''`.
    fn largest_bend(&self, i: usize) -> f64;
}

impl<T: Loss> SmoothTerms for Weighted<'_, T> {
    fn dual_term(&self, i: usize, a: f64) -> f64 {
        self.loss.dual_term_closely(self.cost[i], a)
    }
    fn largest_bend(&self, i: usize) -> f64 {
        self.cost[i] * self.loss.largest_curvature()
    }
}

impl SmoothTerms for SmoothedHinge<'_> {
    fn dual_term(&self, i: usize, a: f64) -> f64 {
        let moved = a - self.alpha[i];
        a - moved * moved / (2.0 * self.sigma * self.cost[i])
    }
    fn largest_bend(&self, i: usize) -> f64 {
        self.sigma * self.cost[i]
    }
}
