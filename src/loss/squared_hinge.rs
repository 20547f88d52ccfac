//! Squared hinge: `xi(m) = max(0, 1 - m)^2`, `xi*(-a) = a^2 / 4 - a` for `a >= 0`.

use super::{BoxLoss, Loss};

/// The loss of the L2-loss SVM.
#[derive(Clone, Copy, Debug)]
pub struct SquaredHinge;

impl Loss for SquaredHinge {
    #[inline(always)]
    fn value(self, m: f64) -> f64 {
        let short = (1.0 - m).max(0.0);
        short * short
    }
    #[inline(always)]
    fn derivative(self, m: f64) -> f64 {
        -2.0 * (1.0 - m).max(0.0)
    }
    #[inline(always)]
    fn curvature(self, m: f64) -> f64 {
        if m < 1.0 { 2.0 } else { 0.0 }
    }
    #[inline(always)]
    fn conjugate(self, a: f64) -> f64 {
        if a >= 0.0 { a * (0.25 * a - 1.0) } else { f64::INFINITY }
    }
    /// Chu15 eq. (22).
    fn smallest_c(self, weight: f64, max_squared_norm: f64) -> f64 {
        1.0 / (2.0 * weight * max_squared_norm)
    }
    /// By Cauchy and Schwarz: `xi'^2 = 4 xi`.
    fn steepness(self, cost: f64, losses: f64) -> f64 {
        2.0 * (cost * losses).sqrt()
    }
}

impl BoxLoss for SquaredHinge {
    #[inline(always)]
    fn upper(_: f64) -> f64 {
        f64::INFINITY
    }
    #[inline(always)]
    fn diagonal(cost: f64) -> f64 {
        0.5 / cost
    }
}
