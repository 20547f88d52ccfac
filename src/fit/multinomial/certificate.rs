//! The certificate of weights, intercepts and a dual point on given rows: a proof, in spite of rounding,
//! after the pattern of [`crate::fit::certificate`].
//!
//! **The bound.** Let `z` be the computed scores with intercepts, `d_ik = z_ik - z_{i,y_i}`, and `p` the
//! exact softmax of the table of logits `u`, or of `z` itself. Since `sum_i c_i (z_{i,y_i} - p_i.z_i)` is
//! `<W, W(p)>` where the intercepts are not free or `p` is on their constraint,
//!
//! ```text
//! F(W, b) = 1/2 |W|^2 + sum_i c_i log sum_k exp(d_ik)
//! D(p)    = 1/2 |W|^2 + sum_i c_i (H(p_i) + p_i.d_i) - 1/2 |W(p) - W|^2
//! F - D   = sum_i c_i KL(p_i | softmax(z_i)) + 1/2 |W(p) - W|^2
//! ```
//!
//! with no KL at all for the softmax of `z`: then the gap is half the squared gradient. It is computed from
//! this difference, and lowers the dual value.
//!
//! **What is subtracted** beside the gap, with `u = 2^-53` twice over as there:
//!
//! * a score is off by at most `e_i = u (n_i + 4) (|x_i| max_k |w_k| + max_k |b_k|)`. That moves `p_i.d_i` by
//!   `2 (1 - p_iy) e_i`, and the row's loss by `2 (1 - s_iy) e_i` with the softmax `s` somewhere between, at
//!   most a factor `exp(2 e_i)` away;
//! * `|W(p) - W|` is raised for the additions behind an entry of `W(p)`, and for the exponentials: those of
//!   floating-point numbers are off by `u` times their argument, at most 708, and a few `u` more;
//! * sums of terms as there; terms by a few `u` and by the errors of exponentials;
//! * with free intercepts a rest `r_k = sum_i c_i ([y_i = k] - p_ik)` remains. With `N_k` the costs of a
//!   class, `N` their sum and `t = max_k |r_k| / N_k`, the point `(1 - t) p + t q` with the same
//!   `q_k = N_k / N + (1 - t) r_k / (t N)` in each row is on the constraint. The entropy is concave and at
//!   least 0, so this costs at most `t sum_i c_i (loss_i + max_k (-d_ik))`, and moves `W(p)` by
//!   `t sqrt(2) sum_i c_i |x_i|`.

use super::balance::balance;
use super::passes::{Coefficients, Setup, SoftmaxSlopes};
use super::point::Point;
use super::softmax::{Lines, dot, largest, mean_difference};
use crate::fit::certificate::UNIT;
use crate::fit::crammer_singer::largest::largest_size;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::problem::{Certificate, Intercept};
use crate::fit::sweep::{ROW_CHUNK, sum};
use crate::matrix::lanes::Block;
use crate::matrix::{Pass, Rows};
use crate::{Error, Result, memory, parallel};

/// Rounding of exponentials, in units of `UNIT`: arguments up to 708 and the polynomial.
const EXPONENTIALS: f64 = 800.0;
/// An error of a score up to which the softmax moves by less than a quarter.
const SMALL: f64 = 0.1;
/// Additions behind a sum over `n` rows.
fn chain(n: usize) -> f64 {
    (n.min(ROW_CHUNK) + n / ROW_CHUNK) as f64
}

/// The certificate that can be proved for a point on the rows of `setup`, whose constant column is that of a
/// penalised intercept. The rows are read once: nothing that a solver has computed is believed.
///
/// # Errors
/// [`Error::Cancelled`] and [`Error::Overflow`].
pub fn certify(setup: &Setup<'_>, point: &mut Point) -> Result<Certificate> {
    let is_free = setup.problem.intercept == Intercept::Free;
    let norms = row_norms(setup);
    setup.poll()?;
    let (mut p, mut rest) = (setup.table(), memory::zeros(setup.n_rows()));
    let (scores, distance) = gather(setup, point, &mut p, &mut rest)?;
    point.passes += 1.0;
    let zero = setup.row(0.0);
    let here = setup.evaluate(&scores, &zero, &mut p, &mut rest);
    let rest_here: Vec<f64> = memory::copy(&rest);
    let there = match &point.logits {
        Some(logits) => setup.evaluate(logits, &zero, &mut p, &mut rest),
        None => here.clone(),
    };
    setup.poll()?;
    let k = setup.problem.n_classes;
    let (lengths, b) = longest_class(setup, point);
    let found = RowSums::of(setup, point, &Tables { scores: &scores, p: &p, norms: &norms }, |i| {
        [rest_here[i], rest[i], lengths, b]
    });
    let n_weights = point.w.n_columns() * k;
    let half = 0.5 * point.w.dot(&point.w, point.w.n_columns());
    let primal = half + here.loss;
    if !primal.is_finite() {
        let max_squared_norm = setup.design.max_squared_norm();
        return Err(Error::Overflow { what: "objective", max_squared_norm });
    }
    let additions = setup.n_rows() as f64 + 16.0;
    let mut radius = distance
        + UNIT * ((2.0 * half).sqrt() + (additions + EXPONENTIALS + 8.0) * found.reach)
        + 2e-154 * (n_weights as f64).sqrt();
    let mut price = 0.0;
    if is_free {
        let share = lacking(setup, &there.residual, &there.scale);
        radius += share * std::f64::consts::SQRT_2 * found.width;
        price = if share < 1.0 { share * found.depth } else { f64::INFINITY };
    }
    radius *= 1.0 + UNIT * (chain(n_weights) + 8.0);
    let divergence = match &point.logits {
        // Below 0 by rounding alone; NaN stays NaN, and proves nothing.
        Some(_) => at_least_zero(here.loss - there.loss + found.mixed),
        None => 0.0,
    };
    let size = here.loss + there.loss + found.size;
    let lines = setup.lines as f64;
    let rounding = found.slack
        + price
        + UNIT
            * ((chain(setup.n_rows()) + EXPONENTIALS + 2.0 * lines + 64.0) * size
                + 2.0 * (chain(n_weights) + 24.0) * half)
        + f64::MIN_POSITIVE * (setup.n_rows() + n_weights) as f64;
    Ok(Certificate { primal, dual: primal - divergence - 0.5 * radius * radius - rounding })
}

/// Scores and the distance of the weights of the dual point, from the data; a dual point with free intercepts
/// is balanced.
fn gather(
    setup: &Setup<'_>,
    point: &mut Point,
    p: &mut Lines,
    rest: &mut [f64],
) -> Result<(Block<LINE>, f64)> {
    let mut scores = setup.table();
    setup.scores(&point.w, &point.offset, &mut scores);
    setup.poll()?;
    let is_free = setup.problem.intercept == Intercept::Free;
    if is_free {
        // The intercepts of other rows, or of other roundings of them, are not quite the best here.
        let (shift, _) = balance(setup, &scores, p, rest);
        setup.shift(&mut scores, &shift);
        for (offset, shift) in point.offset.iter_mut().zip(&shift) {
            for l in 0..LINE {
                offset[l] += shift[l];
            }
        }
    }
    if let Some(logits) = &mut point.logits {
        if is_free {
            let (shift, _) = balance(setup, logits, p, rest);
            setup.shift(logits, &shift);
        }
        setup.evaluate(logits, &setup.row(0.0), p, rest);
    } else {
        setup.evaluate(&scores, &setup.row(0.0), p, rest);
    }
    let mut gradient = setup.strips();
    setup.scatter(&SoftmaxSlopes { lines: setup.lines, p, rest, problem: setup.problem }, &mut gradient);
    setup.poll()?;
    gradient.add_scaled(1.0, &point.w);
    let distance = gradient.dot(&gradient, gradient.n_columns()).sqrt();
    Ok((scores, distance))
}

/// As `max(0.0)`, but NaN for NaN.
pub fn at_least_zero(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

/// `|x_i|` of every row, a penalised constant included.
fn row_norms(setup: &Setup<'_>) -> Vec<f64> {
    struct Norms<'s>(usize, &'s mut [f64]);
    impl Pass for Norms<'_> {
        type Output = ();
        fn run<R: Rows>(self, rows: &R) {
            for (k, norm) in self.1.iter_mut().enumerate() {
                // Raised by what may be lost below the range of double precision.
                *norm = rows.squared_norm(self.0 + k).sqrt() * (1.0 + UNIT * 64.0) + 1e-150;
            }
        }
    }
    let mut norms = memory::zeros(setup.n_rows());
    parallel::each_chunk(&mut norms, ROW_CHUNK, |first, norms| {
        if !setup.monitor.cancelled() {
            setup.design.visit(Norms(first, norms));
        }
    });
    norms
}

/// The largest `|w_k|` and `|b_k|`.
fn longest_class(setup: &Setup<'_>, point: &Point) -> (f64, f64) {
    let k = setup.problem.n_classes;
    let mut squares = setup.row(0.0);
    for strip in &point.w.strips {
        for column in strip.numbers[..point.w.n_columns() * strip.width].chunks_exact(strip.width) {
            for (sum, line) in squares[strip.first..].iter_mut().zip(column) {
                for l in 0..LINE {
                    sum[l] += line[l] * line[l];
                }
            }
        }
    }
    let longest = squares.as_flattened().iter().copied().fold(0.0, f64::max).sqrt();
    let raised = longest * (1.0 + UNIT * point.w.n_columns() as f64) + 1e-150;
    let b = match setup.problem.intercept {
        Intercept::Free => largest_size(&point.offset.as_flattened()[..k]),
        _ => 0.0,
    };
    (raised, b)
}

/// `t` of the module's description.
fn lacking(setup: &Setup<'_>, residual: &Lines, scale: &Lines) -> f64 {
    let k = setup.problem.n_classes;
    let mut of_class = vec![0.0; k];
    for (class, cost) in setup.problem.class.iter().zip(setup.problem.cost) {
        of_class[*class as usize] += cost;
    }
    let (residual, scale) = (&residual.as_flattened()[..k], &scale.as_flattened()[..k]);
    let errors = UNIT * (chain(setup.n_rows()) + EXPONENTIALS + 64.0);
    let lack = |m: usize| (residual[m].abs() + errors * scale[m]) / (of_class[m] * (1.0 - 1e-9));
    (0..k).map(lack).fold(0.0, f64::max)
}

struct Tables<'s> {
    scores: &'s Lines,
    p: &'s Lines,
    norms: &'s [f64],
}

/// Sums over the rows.
struct RowSums {
    /// `sum c_i (sum_k p_ik (u_ik - u_iy - d_ik))`.
    mixed: f64,
    /// What errors of the scores can do.
    slack: f64,
    /// At least `sum c_i |p_i - e_y| |x_i|`.
    reach: f64,
    /// The sum of the sizes of the terms.
    size: f64,
    /// `sum c_i |x_i|`.
    width: f64,
    /// `sum c_i (loss_i + max_k (-d_ik))`, or more.
    depth: f64,
}

impl RowSums {
    /// `of_row` gives `1 - s_y` at the scores and at the dual point, and the largest norms of weights and
    /// intercepts.
    fn of(
        setup: &Setup<'_>,
        point: &Point,
        tables: &Tables<'_>,
        of_row: impl Fn(usize) -> [f64; 4] + Sync,
    ) -> Self {
        let (lines, k) = (setup.lines, setup.problem.n_classes);
        let (class, cost) = (setup.problem.class, setup.problem.cost);
        let Tables { scores, p, norms } = *tables;
        let [mixed, slack, reach, size, width, depth] = sum(setup.n_rows(), |i| {
            let at = i * lines..(i + 1) * lines;
            let (z, p, own, c) = (&scores[at.clone()], &p[at.clone()], class[i] as usize, cost[i]);
            let [rest_here, rest, length, b] = of_row(i);
            let z_own = z.as_flattened()[own];
            let error = UNIT * (setup.design.row_len(i) + 4) as f64 * (norms[i] * length + b);
            let between = if error < SMALL { (1.3 * rest_here).min(1.0) } else { 1.0 };
            let slack = c * 2.0 * error * (rest + between);
            let top = largest(z);
            let lowest = z.as_flattened()[..k].iter().copied().fold(f64::INFINITY, f64::min);
            let depth = c * (2.0 * (top - z_own) + (top - lowest) + (k as f64).ln() + 1.0);
            let (mut mixed, mut size) = (0.0, 0.0);
            if let Some(logits) = &point.logits {
                let u = &logits[at];
                let y = u.as_flattened()[own] - z_own;
                // The own class's term is zero, however certain the row.
                mixed = mean_difference(p, u, z) - p.as_flattened()[own] * y - rest * y;
                let sizes = |x: &Lines| -> f64 {
                    let moved: f64 = dot(p, &x.iter().map(|x| x.map(f64::abs)).collect::<Vec<_>>());
                    moved + x.as_flattened()[own].abs()
                };
                size = (sizes(u) + sizes(z)).min(1e300);
            } else {
                size += rest * (top.abs() + z_own.abs());
            }
            [c * mixed, slack, c * std::f64::consts::SQRT_2 * rest * norms[i], c * size, c * norms[i], depth]
        });
        Self { mixed, slack, reach, size, width, depth }
    }
}

/// Ensures that the coefficients of a scattering pass may be shared.
const _: fn() = || {
    fn is_sync<T: Coefficients>() {}
    is_sync::<SoftmaxSlopes<'_>>();
};
