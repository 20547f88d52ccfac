//! Logistic: `xi(m) = log(1 + exp(-m))`, `xi*(-a) = a log a + (1 - a) log(1 - a)` for `0 <= a <= 1`.

use super::elementary::{exp_of_negative, exp_of_negatives, ln_1p_of_fraction};
use super::traits::Loss;

/// The loss of logistic regression.
#[derive(Clone, Copy, Debug)]
pub struct Logistic;

/// `1 / (1 + exp(-t))`, without overflow.
#[inline(always)]
pub fn sigmoid(t: f64) -> f64 {
    let e = exp_of_negative(-t.abs());
    if t >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}

/// `x log x`, continued by 0 at 0.
#[inline(always)]
fn x_log_x(x: f64) -> f64 {
    if x > 0.0 { x * x.ln() } else { 0.0 }
}

impl Loss for Logistic {
    #[inline(always)]
    fn value(self, m: f64) -> f64 {
        ln_1p_of_fraction(exp_of_negative(-m.abs())) + (-m).max(0.0)
    }
    #[inline(always)]
    fn derivative(self, m: f64) -> f64 {
        let [_, derivative, _] = self.all(m);
        derivative
    }
    #[inline(always)]
    fn curvature(self, m: f64) -> f64 {
        let [_, _, curvature] = self.all(m);
        curvature
    }
    #[inline(always)]
    fn all(self, m: f64) -> [f64; 3] {
        let terms = self.all_of([m]);
        terms.map(|[term]| term)
    }
    #[inline(always)]
    fn all_of<const N: usize>(self, m: [f64; N]) -> [[f64; N]; 3] {
        let mut size = m;
        for k in 0..N {
            size[k] = -m[k].abs();
        }
        let e = exp_of_negatives(size);
        let mut terms = [[0.0; N]; 3];
        for k in 0..N {
            let inverse = 1.0 / (1.0 + e[k]);
            let numerator = if m[k] > 0.0 { e[k] } else { 1.0 };
            terms[0][k] = ln_1p_of_fraction(e[k]) + (-m[k]).max(0.0);
            terms[1][k] = -(numerator * inverse);
            terms[2][k] = e[k] * inverse * inverse;
        }
        terms
    }
    #[inline(always)]
    fn conjugate(self, a: f64) -> f64 {
        if (0.0..=1.0).contains(&a) { x_log_x(a) + x_log_x(1.0 - a) } else { f64::INFINITY }
    }
    /// Chu15 eq. (21).
    fn smallest_c(self, weight: f64, max_squared_norm: f64) -> f64 {
        1.0 / (weight * max_squared_norm)
    }
    /// `log(1 - p)` is not off by a rounding error of 1.
    fn dual_term_closely(self, cost: f64, a: f64) -> f64 {
        let p = a / cost;
        if 0.0 < p && p < 0.5 {
            -cost * (p * p.ln() + (1.0 - p) * (-p).ln_1p())
        } else {
            self.dual_term(cost, a)
        }
    }
    /// `-xi' = 1 - exp(-xi) <= xi`.
    fn steepness(self, cost: f64, losses: f64) -> f64 {
        losses.min(cost)
    }
    #[inline(always)]
    fn upper(self, cost: f64) -> f64 {
        cost
    }
    #[inline(always)]
    fn dual_slope(self, m: f64, cost: f64, a: f64) -> f64 {
        m + (a / (cost - a)).ln()
    }
    fn is_smooth(self) -> bool {
        true
    }
    fn can_be_zero(self) -> bool {
        false
    }
    fn largest_curvature(self) -> f64 {
        0.25
    }
    /// A loss of `log 2` at zero bounds the norm, too.
    fn squared_radius(self) -> f64 {
        2.0 * std::f64::consts::LN_2
    }
    /// 8 to 10 passes at C = 1, 14 to 15 at C = 16.
    fn expected_passes(self) -> [f64; 2] {
        [9.0, 0.2]
    }
}
