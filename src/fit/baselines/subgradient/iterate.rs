//! The iterate as scale times vector, with its running sum: a step costs O(nonzeros), not O(columns).
//!
//! The weights are `w = s v`. Shrinking multiplies `s`, adding a row changes `v` where the row has entries.
//! The sum of all iterates since the last [`Iterate::restart_sum`] is `S v + u`, `S` the sum of the scales:
//! when `v` changes by `d`, `u` changes by `-S d`, so that the iterates summed before stay what they were.
//! These changes are multiples of rows: a step only adds its multiple to a number of its row, and a pass in
//! order of the rows makes `u` of them when the sum is asked for ([`Iterate::settle`]). `|w|^2` is kept
//! beside them.
//!
//! Tried: `u` changed in every step, in a vector of its own or as a second lane of `v`. Milliseconds of an
//! epoch of imdb (463,000 columns, 38 % of the steps change the weights, machine shared): 56 and 61, against
//! 41 without a sum. What is left is bound by the weights' cache misses: 25 for the inner products alone, 9
//! for streaming the rows in order; 38 with weights in single precision, 45 to 56 with the weights of the
//! next row prefetched.

use crate::fit::sweep::{Sweep, dot};
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::memory;
use crate::memory::CollectLarge;

/// Scales below this are multiplied out, long before `v` or `S` leave double precision.
const LEAST_SCALE: f64 = 1e-9;

/// Weights and their running sum, if one is kept.
pub struct Iterate {
    v: Vec<f64>,
    /// Empty where no sum is kept.
    u: Vec<f64>,
    /// What `u` lacks: multiples of the rows.
    pending: Vec<f64>,
    scale: f64,
    sum_of_scales: f64,
    /// `|w|^2`, the constant column included.
    pub squared_norm: f64,
}

impl Iterate {
    /// Starts at `w`, with `sum` as the sum so far; without one, none is kept.
    pub fn new(w: Vec<f64>, sum: Option<Vec<f64>>) -> Self {
        let squared_norm = dot(&w, &w);
        Self {
            v: w,
            u: sum.unwrap_or_default(),
            pending: Vec::new(),
            scale: 1.0,
            sum_of_scales: 0.0,
            squared_norm,
        }
    }

    /// Declares that the next steps are on `n` rows. The iterate must be settled.
    pub fn begin(&mut self, n: usize) {
        self.pending.clear();
        memory::resize(&mut self.pending, if self.u.is_empty() { 0 } else { n }, 0.0);
    }

    /// Brings the sum up to date: a pass over the rows, those of all steps since [`Self::begin`].
    pub fn settle(&mut self, sweep: &mut Sweep<'_>) {
        if self.pending.iter().any(|&multiple| multiple != 0.0) {
            let mut change = memory::zeros(self.u.len());
            sweep.weighted_sum(&self.pending, &mut change);
            self.u.iter_mut().zip(change).for_each(|(u, d)| *u += d);
            self.pending.fill(0.0);
        }
    }

    /// `w . x_i`.
    #[inline(always)]
    pub fn dot(&self, design: &Design<'_>, i: usize) -> f64 {
        self.scale * design.dot(i, &self.v)
    }

    /// `w <- factor w`.
    #[inline(always)]
    pub fn shrink(&mut self, factor: f64) {
        self.scale *= factor;
        self.squared_norm *= factor * factor;
        if self.scale.abs() < LEAST_SCALE {
            self.multiply_out();
        }
    }

    /// `w <- w + delta x_i`, where `product` is `w . x_i` and `squared` is `|x_i|^2`.
    #[inline(always)]
    pub fn add(&mut self, design: &Design<'_>, i: usize, delta: f64, product: f64, squared: f64) {
        let change = delta / self.scale;
        design.add_scaled(i, change, &mut self.v);
        if let Some(multiple) = self.pending.get_mut(i) {
            *multiple -= self.sum_of_scales * change;
        }
        self.squared_norm = (self.squared_norm + delta * (2.0 * product + delta * squared)).max(0.0);
    }

    /// Adds the present iterate to the sum.
    #[inline(always)]
    pub fn count(&mut self) {
        self.sum_of_scales += self.scale;
    }

    /// Makes the scale 1. O(columns), but rare: shrinking by `1 - 1/t` takes 1e9 steps to get here.
    #[cold]
    fn multiply_out(&mut self) {
        let (scale, sum_of_scales) = (self.scale, self.sum_of_scales);
        // The sum no longer follows `v`.
        self.u.iter_mut().zip(&self.v).for_each(|(u, v)| *u += sum_of_scales * v);
        self.v.iter_mut().for_each(|v| *v *= scale);
        self.scale = 1.0;
        self.sum_of_scales = 0.0;
    }

    /// Forgets the iterates summed so far.
    pub fn restart_sum(&mut self) {
        self.sum_of_scales = 0.0;
        self.u.fill(0.0);
        self.pending.fill(0.0);
    }

    /// The weights.
    pub fn weights(&self) -> Vec<f64> {
        self.v.iter().map(|v| self.scale * v).collect_large()
    }

    /// The sum of the iterates, settled; where none is kept, the weights.
    pub fn sum(&self) -> Vec<f64> {
        if self.u.is_empty() {
            return self.weights();
        }
        self.v.iter().zip(&self.u).map(|(v, u)| self.sum_of_scales * v + u).collect_large()
    }

    /// Computes the norm anew, free of the rounding of many steps.
    pub fn renew_norm(&mut self) {
        let w = self.weights();
        self.squared_norm = dot(&w, &w);
    }

    /// Replaces the weights by `shrink w + change`, one number per column.
    pub fn move_all(&mut self, shrink: f64, change: &[f64]) {
        self.shrink(shrink);
        let (scale, sum_of_scales) = (self.scale, self.sum_of_scales);
        self.v.iter_mut().zip(change).for_each(|(v, d)| *v += d / scale);
        self.u.iter_mut().zip(change).for_each(|(u, d)| *u -= sum_of_scales * (d / scale));
        self.renew_norm();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Silent;
    use crate::matrix::dense::DenseView;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn matches_plain_vectors(
            steps in prop::collection::vec(
                (0..4usize, -1.0..1.0f64, prop_oneof![Just(0.0), Just(1e-10), -1.0..1.0f64]),
                1..40,
            ),
            restart in 0..40usize,
        ) {
            let values: Vec<f64> = (0..12).map(|k| f64::from(k * 5 % 7) - 3.0).collect();
            let x = crate::matrix::Matrix::from(DenseView::new(&values, 4, 3).unwrap().0);
            let design = Design { rows: &x, ids: None, bias: 0.5 };
            let mut fast = Iterate::new(vec![1.0, -2.0, 0.5, 0.0], Some(vec![0.0; 4]));
            fast.begin(4);
            let mut sweep = Sweep::new(design, &Silent);
            let (mut w, mut sum) = (vec![1.0, -2.0, 0.5, 0.0], vec![0.0; 4]);
            for (t, &(i, delta, factor)) in steps.iter().enumerate() {
                if t == restart {
                    fast.restart_sum();
                    sum.fill(0.0);
                }
                fast.shrink(factor);
                let product = fast.dot(&design, i);
                fast.add(&design, i, delta, product, design.squared_norm(i));
                fast.count();
                if t % 7 == 3 {
                    fast.settle(&mut sweep);
                }
                w.iter_mut().for_each(|w| *w *= factor);
                design.for_each(i, |j, v| w[j] += delta * v);
                sum.iter_mut().zip(&w).for_each(|(s, w)| *s += w);
            }
            fast.settle(&mut sweep);
            let scale = 1.0 + sum.iter().map(|s| s.abs()).fold(0.0, f64::max) + 10.0 * steps.len() as f64;
            for j in 0..4 {
                prop_assert!((fast.weights()[j] - w[j]).abs() <= 1e-12 * scale);
                prop_assert!(
                    (fast.sum()[j] - sum[j]).abs() <= 1e-6 * scale,
                    "{} and {}",
                    fast.sum()[j],
                    sum[j]
                );
            }
            prop_assert!((fast.squared_norm - dot(&w, &w)).abs() <= 1e-10 * scale * scale);
        }
    }
}
