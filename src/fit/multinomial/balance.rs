//! Intercepts that are best for given logits: the constraint of the dual variables with a free intercept.
//!
//! ```text
//! min_b  sum_i c_i [log sum_k exp(z_ik + b_k) - z_{i,y_i} - b_{y_i}]
//! ```
//!
//! is smooth and convex in `K` numbers, of which a common shift changes nothing. At its minimum
//! `sum_i c_i (p_i - e_{y_i}) = 0` for `p = softmax(z + b)`: so it gives both the best primal point over the
//! intercepts, with `z` the scores, and the point of the dual constraint nearest to any dual point, in the
//! sense of Kullback and Leibler, with `z` its logits. Newton's method by conjugate gradient; no data are
//! read. The sum of `b` stays 0.
//!
//! Only a proof needs the constraint to hold exactly. For a step of Newton's method the intercepts are
//! variables like others, which it helps to have near their best.

use super::intercepts::InterceptCurvature;
use super::passes::{Evaluated, Setup};
use super::shape::SoftmaxShape;
use super::softmax::{Lines, dot, total};
use super::source::{Balance, ShiftedLogits};
use crate::fit::crammer_singer::weights::LINE;
use crate::matrix::kernels;
use crate::matrix::simd::{self, Loop};
use crate::{Result, parallel};

/// Share of the sizes of its terms at which a class's sum counts as 0.
const EXACT: f64 = 1e-14;
/// Classes up to which the second derivatives are a matrix, which takes about as long as one product per two
/// classes without it: a direction takes ten to twenty of these.
const CLASSES_OF_MATRIX: usize = 32;
/// Relative rounding of a sum of losses, at most.
const ROUNDING: f64 = 1e-11;
const MAX_STEPS: usize = 60;
const MAX_HALVINGS: usize = 30;
/// Steps that neither halve the residual nor lower the sum, after which rounding has taken over.
const MAX_IDLE: usize = 2;

/// A shift of the logits `z` as good as asked for; `p` and `rest` are left with the softmax there.
///
/// # Errors
/// None: those of [`best_shift`] are of other places than memory.
pub fn balance(
    setup: &Setup<'_>,
    z: &Lines,
    p: &mut Lines,
    rest: &mut [f64],
    how: Balance,
) -> Result<(Vec<[f64; LINE]>, Evaluated)> {
    best_shift(&mut Tables { setup, z, p, rest, curvature: None }, how.share(EXACT))
}

/// The best shift of logits, to the residual `exact`. The losses evaluated last are those there.
///
/// # Errors
/// Those of `logits`.
pub fn best_shift(logits: &mut impl ShiftedLogits, exact: f64) -> Result<(Vec<[f64; LINE]>, Evaluated)> {
    let mut shift = logits.shape().row(0.0);
    let mut at = logits.evaluate_at(&shift)?;
    let (mut smallest, mut lowest, mut idle) = (f64::INFINITY, f64::INFINITY, 0);
    for _ in 0..MAX_STEPS {
        let miss = relative(&at);
        // Far from the minimum the residual may rise while the sum falls.
        let is_better = miss <= 0.5 * smallest || at.loss < lowest * (1.0 - ROUNDING);
        idle = if is_better { 0 } else { idle + 1 };
        (smallest, lowest) = (smallest.min(miss), lowest.min(at.loss));
        if miss <= exact || idle > MAX_IDLE || logits.is_cancelled() {
            break;
        }
        let step = direction(logits, &at, miss)?;
        let slope = dot(&at.residual, &step);
        let mut length = 1.0;
        let mut moved = None;
        for _ in 0..MAX_HALVINGS {
            let there = add(&shift, length, &step);
            let found = logits.evaluate_at(&there)?;
            // Where the decrease is below the rounding of the sum, the residual decides.
            let is_close = found.loss <= at.loss * (1.0 + ROUNDING) && relative(&found) < miss;
            if found.loss <= at.loss + 1e-4 * length * slope || is_close {
                moved = Some((there, found));
                break;
            }
            length *= if logits.is_cancelled() { 0.0 } else { 0.5 };
        }
        let Some((there, found)) = moved else {
            at = logits.evaluate_at(&shift)?;
            break;
        };
        (shift, at) = (there, found);
    }
    Ok((shift, at))
}

/// The largest residual of a class over the size of its terms.
pub fn relative(at: &Evaluated) -> f64 {
    let pairs = at.residual.as_flattened().iter().zip(at.scale.as_flattened());
    pairs.map(|(r, s)| if *s > 0.0 { r.abs() / s } else { 0.0 }).fold(0.0, f64::max)
}

fn add(x: &Lines, scale: f64, y: &Lines) -> Vec<[f64; LINE]> {
    x.iter().zip(y).map(|(x, y)| std::array::from_fn(|l| x[l] + scale * y[l])).collect()
}

fn times(x: &Lines, y: &Lines) -> Vec<[f64; LINE]> {
    x.iter().zip(y).map(|(x, y)| std::array::from_fn(|l| x[l] * y[l])).collect()
}

/// Newton's direction by conjugate gradient, as accurate as the residual is small.
fn direction(logits: &mut impl ShiftedLogits, at: &Evaluated, miss: f64) -> Result<Vec<[f64; LINE]>> {
    let (k, zero) = (logits.shape().n_classes, logits.shape().row(0.0));
    let inverse: Vec<[f64; LINE]> =
        at.scale.iter().map(|scale| scale.map(|s| if s > 0.0 { 1.0 / s } else { 0.0 })).collect();
    let mut step = zero;
    let mut r: Vec<[f64; LINE]> = at.residual.iter().map(|r| r.map(|r| -r)).collect();
    let mut z = times(&r, &inverse);
    let mut d = z.clone();
    let mut rz = dot(&r, &z);
    let wanted = rz * miss.clamp(1e-6, 0.1).powi(2);
    for _ in 0..2 * k + 10 {
        if rz <= wanted {
            break;
        }
        let product = logits.curve(&d)?;
        let curvature = dot(&d, &product);
        if curvature <= 0.0 {
            break;
        }
        let length = rz / curvature;
        step = add(&step, length, &d);
        r = add(&r, -length, &product);
        z = times(&r, &inverse);
        let next = dot(&r, &z);
        d = add(&z, next / rz, &d);
        rz = next;
    }
    let mean = total(&step) / k as f64;
    step.as_flattened_mut()[..k].iter_mut().for_each(|x| *x -= mean);
    Ok(step)
}

/// Logits in a table.
struct Tables<'s, 'a> {
    setup: &'s Setup<'a>,
    z: &'s Lines,
    p: &'s mut Lines,
    rest: &'s mut [f64],
    /// The second derivatives where the losses were evaluated last, if they were asked for.
    curvature: Option<InterceptCurvature>,
}

impl ShiftedLogits for Tables<'_, '_> {
    fn shape(&self) -> SoftmaxShape {
        self.setup.shape()
    }

    fn is_cancelled(&self) -> bool {
        self.setup.monitor.cancelled()
    }

    fn evaluate_at(&mut self, shift: &Lines) -> Result<Evaluated> {
        self.curvature = None;
        Ok(self.setup.evaluate(self.z, shift, self.p, self.rest))
    }

    fn curve(&mut self, v: &Lines) -> Result<Vec<[f64; LINE]>> {
        let setup = self.setup;
        if setup.problem.n_classes <= CLASSES_OF_MATRIX {
            let matrix = self.curvature.get_or_insert_with(|| {
                let mut matrix = InterceptCurvature::zero(setup.problem.n_classes);
                matrix.add(setup, self.p);
                matrix
            });
            return Ok(matrix.times(v));
        }
        let chunk = setup.chunk * setup.lines;
        let pieces = self.p.chunks(chunk).zip(setup.problem.cost.chunks(setup.chunk));
        let found = parallel::map_each(pieces, |_, (p, cost)| simd::run(ProductPiece { p, v, cost }));
        Ok(found.into_iter().fold(setup.row(0.0), |sum, piece| add(&sum, 1.0, &piece)))
    }
}

struct ProductPiece<'s> {
    p: &'s Lines,
    v: &'s Lines,
    cost: &'s [f64],
}

impl Loop for ProductPiece<'_> {
    type Output = Vec<[f64; LINE]>;
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) -> Vec<[f64; LINE]> {
        let mut sums = vec![[0.0; LINE]; self.v.len()];
        for (p, c) in self.p.chunks_exact(self.v.len()).zip(self.cost) {
            let mean = dot(p, self.v);
            for ((sum, p), v) in sums.iter_mut().zip(p).zip(self.v) {
                kernels::one_at_a_time();
                for l in 0..LINE {
                    sum[l] += c * p[l] * (v[l] - mean);
                }
            }
        }
        sums
    }
}
