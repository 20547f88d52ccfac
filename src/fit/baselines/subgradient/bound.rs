//! The duality gap of a subgradient method.
//!
//! Any `0 <= a_i <= c_i` gives a lower bound (`a_i >= 0` for the squared hinge). A row's slope `-xi'(m_i)` at
//! the current margins would do, but for the hinge it is 0 or 1, and rows on the margin, whose optimal `a_i`
//! lies between, would keep the gap open. The mean of the slopes over the visits of a row since the suffix
//! began does better: the weights of Pegasos without projection are `sum_i a_i y_i x_i` with just these
//! `a_i`, but for the difference between a row's share of the draws and its probability. A row without a
//! visit takes the slope at its current margin. An evaluation costs two passes: margins, and
//! `sum_i a_i y_i x_i`.

use super::draw::Draw;
use crate::fit::certificate;
use crate::fit::checks::finite;
use crate::fit::intercept::best_intercept;
use crate::fit::problem::{Certificate, Intercept, Problem};
use crate::fit::sweep::{Sweep, dot};
use crate::loss::Loss;
use crate::matrix::kernels::prefetch;
use crate::memory::CollectLarge;
use crate::{Result, memory};

/// How steep each row was at its visits.
pub struct Shares {
    /// Sum of slopes and number of visits.
    rows: Vec<(f64, f64)>,
}

impl Shares {
    /// No visits yet.
    pub fn new(n: usize) -> Self {
        Self { rows: memory::filled((0.0, 0.0), n) }
    }

    /// Those of some rows of many.
    pub fn gather(&self, rows: &[u32]) -> Self {
        Self { rows: rows.iter().map(|&i| self.rows[i as usize]).collect_large() }
    }

    /// Copies the shares of some rows back to those of all.
    pub fn scatter(&mut self, rows: &[u32], shares: &Self) {
        rows.iter().zip(&shares.rows).for_each(|(&i, share)| self.rows[i as usize] = *share);
    }

    /// Forgets all visits.
    pub fn restart(&mut self) {
        self.rows.fill((0.0, 0.0));
    }

    /// Row `i` was visited and had this slope.
    #[inline(always)]
    pub fn visit(&mut self, i: usize, slope: f64) {
        let (sum, visits) = &mut self.rows[i];
        *sum += slope;
        *visits += 1.0;
    }

    /// Prefetches the state of row `i`.
    #[inline(always)]
    pub fn prefetch(&self, i: usize) {
        prefetch(&self.rows, i, 16);
    }

    /// Mean slope of row `i` at its visits.
    pub fn mean(&self, i: usize) -> Option<f64> {
        let (sum, visits) = self.rows[i];
        (visits > 0.0).then(|| sum / visits)
    }
}

/// The best lower bound so far and its dual variables.
pub struct Bound {
    /// The bound.
    pub value: f64,
    /// The dual variables, before they are moved onto the constraint of a free intercept.
    pub alpha: Vec<f64>,
}

impl Default for Bound {
    fn default() -> Self {
        Self { value: f64::NEG_INFINITY, alpha: Vec::new() }
    }
}

impl Bound {
    /// The certificate of a point with this objective.
    pub fn certificate(&self, primal: f64) -> Certificate {
        Certificate { primal, dual: self.value }
    }
}

/// Best intercept (0 unless it is free) and objective of the weights `w`; `best` takes over the dual point at
/// hand if that is better.
///
/// # Errors
/// [`crate::Error::Overflow`] and [`crate::Error::Cancelled`].
pub fn evaluate<L: Loss>(
    sweep: &mut Sweep<'_>,
    problem: &Problem<'_>,
    loss: L,
    w: &[f64],
    shares: &Shares,
    draw: &Draw,
    best: &mut Bound,
) -> Result<(f64, f64)> {
    let Problem { y, cost, .. } = *problem;
    let is_free = problem.intercept == Intercept::Free;
    let mut margins = memory::zeros(y.len());
    sweep.margins(y, w, &mut margins);
    let b = if is_free { best_intercept(loss, y, cost, &margins) } else { 0.0 };
    let losses = certificate::losses(loss, cost, |i| margins[i] + y[i] * b);
    let primal = finite("objective", 0.5 * dot(w, w) + losses, &sweep.design)?;

    let slope = |i: usize| {
        let mean = shares.mean(draw.representative[i] as usize);
        mean.unwrap_or_else(|| -loss.derivative(margins[i] + y[i] * b))
    };
    let alpha: Vec<f64> = (0..y.len()).map(|i| cost[i] * slope(i)).collect_large();
    let signed: Vec<f64> = alpha.iter().zip(y).map(|(a, y)| a * y).collect_large();
    let mut dual_w = memory::zeros(w.len());
    sweep.weighted_sum(&signed, &mut dual_w);
    let value = if is_free {
        certificate::dual_on_constraint(problem, loss, &alpha, dual_w)
    } else {
        let terms = certificate::dual_terms(loss, cost, &alpha);
        terms - 0.5 * dot(&dual_w, &dual_w)
    };
    if value > best.value || best.alpha.is_empty() {
        *best = Bound { value: value.max(best.value), alpha };
    }
    Ok((b, primal))
}
