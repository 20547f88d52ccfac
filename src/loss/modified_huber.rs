//! Modified Huber: the squared hinge for `m >= -1`, linear below: `xi(m) = -4 m` for `m < -1`;
//! `xi*(-a) = a^2 / 4 - a` for `0 <= a <= 4`.
//!
//! A row far on the wrong side, mislabelled perhaps, pulls with a force of 4 at most, where with the squared
//! hinge it pulls the more the further it is off.

use super::{BoxLoss, Loss};

/// The squared hinge with a linear end.
#[derive(Clone, Copy, Debug)]
pub struct ModifiedHuber;

/// The largest dual variable of a row of cost 1.
const STEEPEST: f64 = 4.0;

impl Loss for ModifiedHuber {
    #[inline(always)]
    fn value(self, m: f64) -> f64 {
        if m < -1.0 {
            return -STEEPEST * m;
        }
        let short = (1.0 - m).max(0.0);
        short * short
    }
    #[inline(always)]
    fn derivative(self, m: f64) -> f64 {
        if m < -1.0 { -STEEPEST } else { -2.0 * (1.0 - m).max(0.0) }
    }
    #[inline(always)]
    fn curvature(self, m: f64) -> f64 {
        if (-1.0..1.0).contains(&m) { 2.0 } else { 0.0 }
    }
    #[inline(always)]
    fn conjugate(self, a: f64) -> f64 {
        if (0.0..=STEEPEST).contains(&a) { a * (0.25 * a - 1.0) } else { f64::INFINITY }
    }
    /// As for the squared hinge, Chu15 eq. (22): up to there all margins are in the part that both share.
    fn smallest_c(self, weight: f64, max_squared_norm: f64) -> f64 {
        1.0 / (2.0 * weight * max_squared_norm)
    }
    /// By Cauchy and Schwarz: `xi'^2 <= 4 xi`.
    fn steepness(self, cost: f64, losses: f64) -> f64 {
        2.0 * (cost * losses).sqrt()
    }
    #[inline(always)]
    fn upper(self, cost: f64) -> f64 {
        STEEPEST * cost
    }
    #[inline(always)]
    fn dual_slope(self, m: f64, cost: f64, a: f64) -> f64 {
        m - 1.0 + 0.5 * a / cost
    }
    fn is_smooth(self) -> bool {
        true
    }
    fn can_be_zero(self) -> bool {
        true
    }
    fn largest_curvature(self) -> f64 {
        2.0
    }
    /// `2 (1 - m) m`; below -1 it is negative.
    fn squared_radius(self) -> f64 {
        0.5
    }
    /// Those of the squared hinge, whose dual problem differs by the upper bound only.
    fn expected_passes(self) -> [f64; 2] {
        [13.0, 0.25]
    }
}

impl BoxLoss for ModifiedHuber {
    #[inline(always)]
    fn diagonal(self, cost: f64) -> f64 {
        0.5 / cost
    }
}
