//! Logistic: `xi(m) = log(1 + exp(-m))`, `xi*(-a) = a log a + (1 - a) log(1 - a)` for `0 <= a <= 1`.

use super::elementary::{exp_of_negative, exp_of_negatives, ln_1p_of_fraction, ln_of_normal};
use super::traits::Loss;

/// The loss of logistic regression.
#[derive(Clone, Copy, Debug)]
pub struct Logistic;

/// `1 / (1 + exp(-t))`, without overflow.
#[inline(always)]
pub fn sigmoid(t: f64) -> f64 {
    let [s] = sigmoids([t]);
    s
}

/// [`sigmoid`] of several numbers, each step for all of them before the next.
#[inline(always)]
pub fn sigmoids<const N: usize>(t: [f64; N]) -> [f64; N] {
    let mut s = t;
    for k in 0..N {
        s[k] = -t[k].abs();
    }
    let e = exp_of_negatives(s);
    for k in 0..N {
        let numerator = if t[k] >= 0.0 { 1.0 } else { e[k] };
        s[k] = numerator / (1.0 + e[k]);
    }
    s
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
    /// `-t log t - (1 - t) log(1 - t)` for the smaller `t` of `p` and `1 - p`, which neither logarithm makes
    /// inexact.
    #[inline(always)]
    fn dual_terms_closely<const N: usize>(self, cost: &[f64; N], a: &[f64; N]) -> [f64; N] {
        let mut terms = [0.0; N];
        for k in 0..N {
            let p = a[k] / cost[k];
            let t = p.min(1.0 - p);
            let rest = 1.0 - t;
            let entropy = rest * ln_1p_of_fraction(t / rest) - t * ln_of_normal(t.max(f64::MIN_POSITIVE));
            terms[k] = if t >= 0.0 { cost[k] * entropy } else { f64::NEG_INFINITY };
        }
        terms
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn dual_terms_of_several_rows_are_those_of_each(
            p in prop_oneof![
                0.0..=1.0f64, 0.0..1e-9f64, 0.999..=1.0f64, Just(0.0), Just(1.0), 0.0..1e-300f64
            ],
            cost in prop_oneof![1e-6..1e6f64],
        ) {
            let a = (p * cost).min(cost);
            let [found, first] = Logistic.dual_terms_closely(&[cost, cost], &[a, 0.0]);
            let expected = Logistic.dual_term_closely(cost, a);
            let bound = f64::EPSILON * (8.0 * expected + 40.0 * a) + 1e-305;
            prop_assert!((found - expected).abs() <= bound, "{p}: {found} {expected}");
            prop_assert_eq!(first, 0.0);
        }
    }

    #[test]
    fn dual_terms_outside_of_the_box_are_infinite() {
        let found = Logistic.dual_terms_closely(&[1.0; 4], &[-1e-9, 1.0 + 1e-9, 1.0, 0.5]);
        assert_eq!(found, [f64::NEG_INFINITY, f64::NEG_INFINITY, 0.0, std::f64::consts::LN_2]);
    }
}
