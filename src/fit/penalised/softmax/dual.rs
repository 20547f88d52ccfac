//! The terms of the rows in the dual: their entropies.

use super::PenalisedClasses;
use crate::fit::multinomial::softmax::ln_1p_positive;
use crate::fit::together::{OfRows, sum_rows};
use crate::loss::elementary::ln_of_normal;

/// `c_i H(q_i)` of all rows in sum, and the sum of their sizes, for the distributions `q_i` with `scale`
/// times the sizes of `a` over `c_i`: for a row's own class the size of `a` is what it has not.
pub fn terms(problem: &PenalisedClasses<'_>, a: &[f64], scale: f64) -> [f64; 2] {
    sum_rows(problem.cost.len(), || Entropies { problem, a, scale })
}

struct Entropies<'s> {
    problem: &'s PenalisedClasses<'s>,
    a: &'s [f64],
    scale: f64,
}

impl OfRows<2> for Entropies<'_> {
    /// A row that is absent has no terms.
    #[inline(always)]
    fn add<const N: usize>(&mut self, i: usize, sums: &mut [f64; 2]) {
        let PenalisedClasses { class, n_classes, cost, .. } = *self.problem;
        let n = cost.len();
        let (class, cost) = (&class[i..i + N], &cost[i..i + N]);
        let mut factor = [0.0; N];
        for r in 0..N {
            factor[r] = if cost[r] > 0.0 { self.scale / cost[r] } else { 0.0 };
        }
        let mut entropy = [0.0; N];
        for k in 0..n_classes {
            let a = &self.a[k * n + i..k * n + i + N];
            for r in 0..N {
                let share = factor[r] * a[r].abs();
                entropy[r] += if class[r] as usize == k { of_rest(share) } else { of_share(share) };
            }
        }
        for r in 0..N {
            // Not a number stays what it is.
            let term = if cost[r] > 0.0 { cost[r] * entropy[r] } else { 0.0 };
            sums[0] += term;
            sums[1] += term.abs();
        }
    }
}

/// `-q log q`; below the normal numbers something smaller.
#[inline(always)]
fn of_share(q: f64) -> f64 {
    -q * ln_of_normal(if q < f64::MIN_POSITIVE { f64::MIN_POSITIVE } else { q }) // 0 at 0
}

/// `-(1 - b) log(1 - b)`, 0 where rounding has made `b` larger than 1.
#[inline(always)]
fn of_rest(b: f64) -> f64 {
    let q = if b >= 1.0 { 0.0 } else { 1.0 - b };
    if b <= 0.5 { q * ln_1p_positive(b / q) } else { of_share(q) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entropies_are_exact_at_both_ends() {
        for b in [0.0, 1e-300, 1e-20, 1e-9, 0.1, 0.5, 0.7, 0.999, 1.0 - f64::EPSILON, 1.0, 1.5] {
            let exact = if b < 1.0 { -(1.0 - b) * f64::ln_1p(-b) } else { 0.0 };
            assert!((of_rest(b) - exact).abs() <= 1e-15 * exact.abs(), "{b}");
            let exact = if b > 0.0 { -b * f64::ln(b) } else { 0.0 };
            assert!((of_share(b) - exact).abs() <= 1e-15 * exact.abs() + 1e-16 * b, "{b}");
        }
        assert!(of_share(f64::NAN).is_nan() && of_rest(f64::NAN).is_nan());
        assert!(of_share(5e-324) <= 5e-324 * 745.0);
    }
}
