//! Hinge: `xi(m) = max(0, 1 - m)`, `xi*(-a) = -a` for `0 <= a <= 1`.

use super::traits::{BoxLoss, Loss};

/// The loss of the classical (L1-loss) SVM.
#[derive(Clone, Copy, Debug)]
pub struct Hinge;

impl Loss for Hinge {
    #[inline(always)]
    fn value(self, m: f64) -> f64 {
        (1.0 - m).max(0.0)
    }
    #[inline(always)]
    fn derivative(self, m: f64) -> f64 {
        if m < 1.0 { -1.0 } else { 0.0 }
    }
    #[inline(always)]
    fn curvature(self, _: f64) -> f64 {
        0.0
    }
    #[inline(always)]
    fn conjugate(self, a: f64) -> f64 {
        if (0.0..=1.0).contains(&a) { -a } else { f64::INFINITY }
    }
    /// With `C` below this every `a_i` is at its bound: `|w.x_i| <= C sum_j |x_j||x_i| < 1`.
    fn smallest_c(self, weight: f64, max_squared_norm: f64) -> f64 {
        1.0 / (weight * max_squared_norm)
    }
    fn steepness(self, cost: f64, _: f64) -> f64 {
        cost
    }
    #[inline(always)]
    fn upper(self, cost: f64) -> f64 {
        cost
    }
    #[inline(always)]
    fn dual_slope(self, m: f64, _: f64, _: f64) -> f64 {
        m - 1.0
    }
    fn is_smooth(self) -> bool {
        false
    }
    fn can_be_zero(self) -> bool {
        true
    }
    fn largest_curvature(self) -> f64 {
        0.0
    }
    fn squared_radius(self) -> f64 {
        1.0
    }
    /// 23 to 42 passes at C = 1, 139 to 165 at C = 16.
    fn expected_passes(self) -> [f64; 2] {
        [30.0, 0.5]
    }
}

impl BoxLoss for Hinge {
    #[inline(always)]
    fn diagonal(self, _: f64) -> f64 {
        0.0
    }
}
