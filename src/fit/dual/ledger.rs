//! What a descent keeps count of beside its point: the multiplier of a free intercept, and how far rounding
//! may have taken the weights ([`super`], "Free intercept" and "Drift"); and what follows from it at a check.

use super::segment::Best;
use crate::Result;
use crate::fit::certificate;
use crate::fit::checks::finite;
use crate::fit::intercept::best_intercept;
use crate::fit::problem::{Certificate, Evidence, Intercept, Problem};
use crate::fit::sweep::dot;
use crate::loss::Loss;
use crate::memory;

/// The counts of one problem.
pub(super) struct Ledger<'a> {
    pub problem: Problem<'a>,
    /// Height of the constant column.
    pub bias: f64,
    /// Multiplier of the equality constraint.
    pub offset: f64,
    /// Sum of the costs.
    total: f64,
    /// The dual objective is at least this.
    level: f64,
    /// Bound on `|w - w(a)|`; `None` where that of the start is unknown.
    pub drift: Option<f64>,
    /// The best primal point, for the hinge without a free intercept.
    pub best: Option<Best>,
}

/// Result of a gap check.
pub(super) struct GapCheck {
    pub certificate: Certificate,
    pub intercept: f64,
    /// Margins of `w` without a free intercept, where they are still there.
    pub margins: Vec<f64>,
}

impl<'a> Ledger<'a> {
    pub fn new(problem: &Problem<'a>, bias: f64, offset: f64) -> Self {
        let total = problem.cost.iter().sum();
        Self { problem: *problem, bias, offset, total, level: 0.0, drift: Some(0.0), best: None }
    }

    pub fn is_free(&self) -> bool {
        self.problem.intercept == Intercept::Free
    }

    /// Dual value of these weights and dual variables, without regard to the equality constraint; the dual
    /// objective begins there.
    pub fn begin<L: Loss>(&mut self, loss: L, w: &[f64], alpha: &[f64]) -> f64 {
        let terms = certificate::dual_terms(loss, self.problem.cost, alpha);
        let estimate = terms - 0.5 * dot(w, w);
        // The multiplier times the constraint's excess.
        let multiplier = if self.is_free() { self.offset * w[w.len() - 1] / self.bias } else { 0.0 };
        self.level = estimate - multiplier;
        estimate
    }

    /// Adds what so many visits may have done to the weights, that of the constant column being `last`, and
    /// moves the multiplier.
    pub fn after_epoch(&mut self, visited: usize, last: f64) {
        let mut multiplier = 0.0;
        if self.is_free() {
            multiplier = (self.offset / self.bias).powi(2);
            self.level -= last.powi(2);
        }
        let longest = (2.0 * (self.total - self.level).max(0.0) + multiplier).sqrt();
        self.drift = self.drift.map(|drift| drift + 2.0 * f64::EPSILON * visited as f64 * longest);
        if self.is_free() {
            self.offset += self.bias * last;
        }
    }

    /// The gap at weights with these margins, the constant column of a free intercept counted in.
    pub fn check<L: Loss>(
        &mut self,
        loss: L,
        w: &[f64],
        mut margins: Vec<f64>,
        alpha: &[f64],
    ) -> Result<GapCheck> {
        let Problem { y, cost, .. } = self.problem;
        if !self.is_free() {
            let half = 0.5 * dot(w, w);
            let mut primal = half + certificate::losses(loss, cost, |i| margins[i]);
            let dual = certificate::dual_terms(loss, cost, alpha) - half;
            finite("objective", primal, &self.problem.design(self.bias))?;
            if !loss.is_smooth() {
                let margins = std::mem::take(&mut margins);
                primal = match &mut self.best {
                    Some(best) => best.approach(loss, cost, w, &margins),
                    best => best.insert(Best::new(memory::copy(w), margins, primal)).value,
                };
            }
            return Ok(GapCheck { certificate: Certificate { primal, dual }, intercept: 0.0, margins });
        }
        let (last, w) = w.split_last().expect("the constant column");
        margins.iter_mut().zip(y).for_each(|(m, y)| *m -= y * self.bias * last);
        let b = best_intercept(loss, y, cost, &margins);
        let losses = certificate::losses(loss, cost, |i| margins[i] + y[i] * b);
        let primal = finite("objective", 0.5 * dot(w, w) + losses, &self.problem.design(self.bias))?;
        let dual = certificate::dual_on_constraint(&self.problem, loss, alpha, memory::copy(w));
        Ok(GapCheck { certificate: Certificate { primal, dual }, intercept: b, margins })
    }

    /// Weights and intercept of the answer where the descent is at `w` with the free intercept `b`, and
    /// whether the weights are those of the dual variables.
    pub fn answer(&mut self, w: Vec<f64>, b: f64) -> (Vec<f64>, f64, bool) {
        let best = self.best.take();
        let is_consistent = best.is_none();
        let (w, penalised) = self.problem.split(best.map_or(w, |best| best.w), self.bias);
        (w, if self.is_free() { b } else { penalised }, is_consistent)
    }

    /// What a check says of the weights that it was made at; nothing of a better point.
    pub fn evidence(&self, check: GapCheck, w: &[f64], alpha: &[f64]) -> Option<Evidence> {
        if self.best.is_some() {
            return None;
        }
        let (drift, additions) = (self.drift?, alpha.len() as f64);
        let GapCheck { mut margins, intercept, .. } = check;
        if !self.is_free() {
            return Some(Evidence { margins, distance: 0.0, drift, additions, alpha: None });
        }
        margins.iter_mut().zip(self.problem.y).for_each(|(m, y)| *m += y * intercept);
        let w = &w[..w.len() - 1];
        let (mut moved, mut moved_w) = (alpha.to_vec(), w.to_vec());
        certificate::move_onto_constraint(&self.problem, &mut moved, &mut moved_w);
        let distance = certificate::distance(&moved_w, w);
        Some(Evidence { margins, distance, drift, additions: 2.0 * additions, alpha: Some(moved) })
    }
}
