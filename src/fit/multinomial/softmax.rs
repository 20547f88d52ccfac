//! Softmax and entropy of one row, class by class in cache lines of eight.
//!
//! The logits of a row are `K` numbers, padded to whole lines by [`FAR`], whose exponential is 0: a padded
//! class has no probability, and products with it are 0. The probability of the others, `1 - p_y`, is summed
//! by itself, so that rows that are all but certain do not lose it to a difference of two ones.

use crate::fit::crammer_singer::weights::LINE;
use crate::loss::elementary::{exp_of_negative, exp_of_negatives, ln_1p_of_fraction, ln_of_normal};
use crate::matrix::kernels;

/// The logit of a class that does not exist.
pub const FAR: f64 = -1e290;

/// A row of classes in lines.
pub type Lines = [[f64; LINE]];

/// What the softmax of a row leaves beside the probabilities.
#[derive(Clone, Copy, Debug)]
pub struct RowLoss {
    /// `log sum_k exp(z_k) - z_y`.
    pub loss: f64,
    /// `1 - p_y`.
    pub rest: f64,
}

/// `log(1 + x)` for `x >= 0`.
#[inline(always)]
pub fn ln_1p_positive(x: f64) -> f64 {
    if x <= 1.0 { ln_1p_of_fraction(x) } else { ln_of_normal(1.0 + x) }
}

/// The largest number.
#[inline(always)]
pub fn largest(x: &Lines) -> f64 {
    let mut lanes = [f64::NEG_INFINITY; LINE];
    for line in x {
        for l in 0..LINE {
            lanes[l] = if line[l] > lanes[l] { line[l] } else { lanes[l] };
        }
    }
    largest_of(lanes)
}

#[inline(always)]
fn largest_of(lanes: [f64; LINE]) -> f64 {
    let larger = |x: f64, y: f64| if x > y { x } else { y };
    let [a, b, c, d, e, f, g, h] = lanes;
    larger(larger(larger(a, e), larger(c, g)), larger(larger(b, f), larger(d, h)))
}

/// The sum of all numbers, lanes first.
#[inline(always)]
pub fn total(x: &Lines) -> f64 {
    let mut lanes = [0.0; LINE];
    for line in x {
        for l in 0..LINE {
            lanes[l] += line[l];
        }
    }
    sum_of(lanes)
}

#[inline(always)]
fn sum_of(s: [f64; LINE]) -> f64 {
    ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

/// `sum_k a_k b_k`.
#[inline(always)]
pub fn dot(a: &Lines, b: &Lines) -> f64 {
    let mut lanes = [0.0; LINE];
    for (a, b) in a.iter().zip(b) {
        for l in 0..LINE {
            lanes[l] += a[l] * b[l];
        }
    }
    sum_of(lanes)
}

/// Writes the softmax of `z` to `p`.
#[inline(always)]
pub fn softmax(z: &Lines, own: usize, p: &mut Lines) -> RowLoss {
    let top = largest(z);
    for (p, z) in p.iter_mut().zip(z) {
        kernels::one_at_a_time();
        *p = exp_of_negatives(z.map(|z| z - top));
    }
    let (line, lane) = (own / LINE, own % LINE);
    let mine = p[line][lane];
    p[line][lane] = 0.0;
    let others = total(p);
    p[line][lane] = mine;
    let inverse = 1.0 / (others + mine);
    for p in p.iter_mut() {
        kernels::one_at_a_time();
        for l in 0..LINE {
            p[l] *= inverse;
        }
    }
    let z_own = z[line][lane];
    let loss =
        if z_own >= top { ln_1p_positive(others) } else { (top - z_own) + ln_of_normal(others + mine) };
    RowLoss { loss, rest: others * inverse }
}

/// The loss of a row at `z + length * step`.
#[inline(always)]
pub fn loss_at(z: &Lines, step: &Lines, length: f64, own: usize) -> f64 {
    let mut lanes = [f64::NEG_INFINITY; LINE];
    for (z, s) in z.iter().zip(step) {
        for l in 0..LINE {
            let moved = z[l] + length * s[l];
            lanes[l] = if moved > lanes[l] { moved } else { lanes[l] };
        }
    }
    let top = largest_of(lanes);
    let (line, lane) = (own / LINE, own % LINE);
    let mut sums = [0.0; LINE];
    for (k, (z, s)) in z.iter().zip(step).enumerate() {
        // Without the row's own class.
        let mut keep = [1.0; LINE];
        keep[lane] = if k == line { 0.0 } else { 1.0 };
        let mut moved = [0.0; LINE];
        kernels::one_at_a_time();
        for l in 0..LINE {
            moved[l] = z[l] + length * s[l] - top;
        }
        let e = exp_of_negatives(moved);
        kernels::one_at_a_time();
        for l in 0..LINE {
            sums[l] += keep[l] * e[l];
        }
    }
    let z_own = z[line][lane] + length * step[line][lane];
    let mine = exp_of_negative(z_own - top);
    let others = sum_of(sums);
    if z_own >= top { ln_1p_positive(others) } else { (top - z_own) + ln_of_normal((others + mine).max(1.0)) }
}

/// `sum_k p_k (a_k - b_k)` for probabilities `p`; classes without one do not count.
#[inline(always)]
pub fn mean_difference(p: &Lines, a: &Lines, b: &Lines) -> f64 {
    let mut lanes = [0.0; LINE];
    for ((p, a), b) in p.iter().zip(a).zip(b) {
        for l in 0..LINE {
            lanes[l] += p[l] * (a[l] - b[l]);
        }
    }
    sum_of(lanes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(z: &[f64]) -> Vec<[f64; LINE]> {
        let mut out = vec![[FAR; LINE]; z.len().div_ceil(LINE)];
        out.as_flattened_mut()[..z.len()].copy_from_slice(z);
        out
    }

    proptest! {
        #[test]
        fn softmax_is_the_softmax(
            z in prop::collection::vec(prop_oneof![-3.0..3.0f64, -900.0..900.0f64], 2..20),
            own in 0..20usize,
            length in 0.0..2.0f64,
        ) {
            let own = own % z.len();
            let step: Vec<f64> = z.iter().map(|z| 0.3 * z + 0.1).collect();
            let mut p = lines(&z);
            let found = softmax(&lines(&z), own, &mut p);
            let exact = |z: &[f64]| {
                let top = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let sum: f64 = z.iter().map(|z| (z - top).exp()).sum();
                (top + sum.ln() - z[own], z.iter().map(|z| (z - top).exp() / sum).collect::<Vec<_>>())
            };
            let (loss, q) = exact(&z);
            prop_assert!((found.loss - loss).abs() <= 1e-12 * (1.0 + loss.abs()) + 1e-12);
            for (k, q) in q.iter().enumerate() {
                prop_assert!((p.as_flattened()[k] - q).abs() <= 1e-13 * q + 1e-300);
            }
            prop_assert!(p.as_flattened()[z.len()..].iter().all(|p| *p == 0.0));
            prop_assert!((found.rest - (1.0 - q[own])).abs() < 1e-12);
            let moved: Vec<f64> = z.iter().zip(&step).map(|(z, s)| z + length * s).collect();
            let mut padded = lines(&step);
            padded.as_flattened_mut()[z.len()..].fill(0.0);
            let there = loss_at(&lines(&z), &padded, length, own);
            prop_assert!((there - exact(&moved).0).abs() <= 1e-11 * (1.0 + there.abs()));
        }
    }

    #[test]
    fn the_loss_of_a_certain_row_is_not_rounded_away() {
        let mut p = lines(&[0.0, -50.0, -60.0]);
        let found = softmax(&lines(&[0.0, -50.0, -60.0]), 0, &mut p);
        let exact = (-50f64).exp() + (-60f64).exp();
        assert!((found.loss / exact - 1.0).abs() < 1e-12 && (found.rest / exact - 1.0).abs() < 1e-12);
    }
}
