//! The dual step on one row: all its probabilities at once.
//!
//! With the others fixed, the dual objective over the simplex is, up to a constant and divided by `c`,
//!
//! ```text
//! max_q   (q - p).z - A/2 |q - p|^2 + H(q),        A = c |x|^2,   z = W x
//! ```
//!
//! whose solution has `A q_k + log q_k = z_k + A p_k - lambda` for each class, with the `lambda` for which
//! the sum is 1 (Yu, Huang, Lin 2011 solve the same dual; their second level is a coordinate
//! descent within the row). Newton's method on `v = log q` and `lambda` together, from the present `log p`,
//! takes two to four steps of an exponential per class. What is kept of a row is `v`: a dual point is the
//! softmax of a table of logits, feasible whatever rounding does, and needs no logarithm.

use super::softmax::{FAR, Lines, dot, total};
use crate::fit::crammer_singer::weights::LINE;
use crate::loss::elementary::{exp_of_negatives, ln_of_normal};
use crate::matrix::kernels;

/// Newton steps on a row. From above a logit falls by about 1 a step as long as `A exp(v)` is large.
const MAX_STEPS: usize = 100;
/// Mean squared step of a logit at which a row is solved: the next one would be its square.
const EXACT: f64 = 1e-7;

/// Vectors of one row, kept from visit to visit.
pub struct RowScratch {
    /// Scores.
    pub z: Vec<[f64; LINE]>,
    /// Probabilities before.
    pub p: Vec<[f64; LINE]>,
    /// Probabilities after, in the end what is added to the weights.
    pub q: Vec<[f64; LINE]>,
    v: Vec<[f64; LINE]>,
    target: Vec<[f64; LINE]>,
}

impl RowScratch {
    /// For rows of so many lines.
    pub fn new(lines: usize) -> Self {
        let row = || vec![[0.0; LINE]; lines];
        Self { z: row(), p: row(), q: row(), v: row(), target: row() }
    }

    /// Solves for a row with scores `self.z`, logits `u` (of sum-one exponentials, or with NaN first for a
    /// row that was never visited and has all on its own class) and curvature `a`. On return `u` are the new
    /// logits, `self.q - self.p` the change; the gain is that of the dual objective over `c`, or `None`
    /// where nothing was found.
    #[inline(always)]
    pub fn solve(&mut self, u: &mut Lines, own: usize, n_classes: usize, a: f64) -> Option<f64> {
        let is_new = u[0][0].is_nan();
        let entropy_before = if is_new { self.begin(own, n_classes) } else { self.go_on(u) };
        let Self { z, p, target, .. } = self;
        for ((t, z), p) in target.iter_mut().zip(z.iter()).zip(p.iter()) {
            kernels::one_at_a_time();
            for l in 0..LINE {
                t[l] = z[l] + a * p[l];
            }
        }
        let is_solved = (0..MAX_STEPS).any(|_| self.step(a) <= EXACT);
        // A new row takes what there is, or it would have no logits.
        if !(is_solved || is_new) {
            return None;
        }
        self.normalise();
        let gain = self.gain(a) - entropy_before;
        if !(gain >= 0.0 || is_new) {
            return None;
        }
        u.copy_from_slice(&self.v);
        // What is kept must be what is added: the next visit computes the probabilities from the logits.
        exponentials(u, &mut self.q);
        Some(gain)
    }

    /// A row that has all on its own class, to be solved from uniform probabilities; returns its entropy.
    #[inline(always)]
    fn begin(&mut self, own: usize, n_classes: usize) -> f64 {
        let uniform = -ln_of_normal(n_classes as f64);
        self.p.iter_mut().for_each(|p| *p = [0.0; LINE]);
        self.p[own / LINE][own % LINE] = 1.0;
        self.v.iter_mut().for_each(|v| *v = [uniform; LINE]);
        self.v.as_flattened_mut()[n_classes..].fill(FAR);
        0.0
    }

    /// A row at logits `u`; returns its entropy.
    #[inline(always)]
    fn go_on(&mut self, u: &Lines) -> f64 {
        exponentials(u, &mut self.p);
        self.v.copy_from_slice(u);
        -dot(&self.p, u)
    }

    /// A Newton step; returns the mean square by which logits have moved.
    #[inline(always)]
    fn step(&mut self, a: f64) -> f64 {
        let Self { q, v, target, .. } = self;
        let mut sums = [[0.0; LINE]; 3];
        for ((q, v), t) in q.iter_mut().zip(v.iter()).zip(target.iter()) {
            let e = exp_of_negatives(*v);
            *q = e;
            for l in 0..LINE {
                let share = e[l] / (1.0 + a * e[l]);
                sums[0][l] += e[l];
                sums[1][l] += share * (t[l] - v[l] - a * e[l]);
                sums[2][l] += share;
            }
        }
        let [sum, pull, share] = [total(&sums[..1]), total(&sums[1..2]), total(&sums[2..])];
        let lambda = (sum - 1.0 + pull) / share;
        let mut squares = [0.0; LINE];
        for ((q, v), t) in q.iter().zip(v.iter_mut()).zip(target.iter()) {
            kernels::one_at_a_time();
            for l in 0..LINE {
                let step = (t[l] - v[l] - a * q[l] - lambda) / (1.0 + a * q[l]);
                let next = v[l] + step;
                let next = if next > 0.0 { 0.0 } else { next };
                let moved = next - v[l];
                squares[l] += q[l] * moved * moved;
                v[l] = next;
            }
        }
        total(&[squares])
    }

    /// Moves the logits so that the probabilities add up to 1.
    #[inline(always)]
    fn normalise(&mut self) {
        let Self { q, v, .. } = self;
        exponentials(v, q);
        let sum = total(q);
        let (inverse, log) = (1.0 / sum, ln_of_normal(sum));
        for (q, v) in q.iter_mut().zip(v.iter_mut()) {
            kernels::one_at_a_time();
            for l in 0..LINE {
                q[l] *= inverse;
                let next = v[l] - log;
                v[l] = if next > 0.0 { 0.0 } else { next };
            }
        }
    }

    /// What the change gains, with the entropy that the row has now.
    #[inline(always)]
    fn gain(&self, a: f64) -> f64 {
        let Self { z, p, q, v, .. } = self;
        let (mut linear, mut square) = ([0.0; LINE], [0.0; LINE]);
        for ((q, p), z) in q.iter().zip(p.iter()).zip(z.iter()) {
            kernels::one_at_a_time();
            for l in 0..LINE {
                let change = q[l] - p[l];
                linear[l] += change * z[l];
                square[l] += change * change;
            }
        }
        total(&[linear]) - 0.5 * a * total(&[square]) - dot(q, v)
    }
}

/// The exponentials of logits.
#[inline(always)]
fn exponentials(logits: &Lines, out: &mut Lines) {
    for (out, u) in out.iter_mut().zip(logits) {
        kernels::one_at_a_time();
        *out = exp_of_negatives(*u);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value(q: &[f64], p: &[f64], z: &[f64], a: f64) -> f64 {
        let entropy: f64 = q.iter().map(|q| if *q > 0.0 { -q * q.ln() } else { 0.0 }).sum();
        let terms = q.iter().zip(p).zip(z).map(|((q, p), z)| (q - p) * z - 0.5 * a * (q - p) * (q - p));
        terms.sum::<f64>() + entropy
    }

    proptest! {
        #[test]
        fn a_step_is_the_maximum(
            z in prop::collection::vec(-8.0..8.0f64, 3..20),
            a in prop_oneof![0.0..3.0f64, 0.0..300.0f64],
            own in 0..20usize,
        ) {
            let (k, own) = (z.len(), own % z.len());
            let lines = k.div_ceil(LINE);
            let mut scratch = RowScratch::new(lines);
            let mut u = vec![[FAR; LINE]; lines];
            u[0][0] = f64::NAN;
            for round in 0..3 {
                scratch.z.iter_mut().for_each(|z| *z = [FAR; LINE]);
                for (to, z) in scratch.z.as_flattened_mut().iter_mut().zip(&z) {
                    *to = if round == 1 { -z } else { *z };
                }
                let gain = scratch.solve(&mut u, own, k, a);
                prop_assert!(gain.is_some());
                let (p, q) = (&scratch.p.as_flattened()[..k], &scratch.q.as_flattened()[..k]);
                let z = &scratch.z.as_flattened()[..k];
                prop_assert!((q.iter().sum::<f64>() - 1.0).abs() < 1e-9);
                let found = value(q, p, z, a);
                prop_assert!((found - value(p, p, z, a) - gain.unwrap()).abs() < 1e-6 * (1.0 + found.abs()));
                for from in 0..k {
                    for to in 0..k {
                        let (mut moved, delta) = (q.to_vec(), 1e-3 * q[from]);
                        moved[from] -= delta;
                        moved[to] += delta;
                        prop_assert!(value(&moved, p, z, a) <= found + 1e-6);
                    }
                }
            }
        }
    }
}
