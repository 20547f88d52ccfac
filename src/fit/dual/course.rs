//! When a descent is checked, and whether it ends there.

use super::DualOptions;
use super::method::Epoch;
use super::schedule::Schedule;
use crate::fit::params::Params;
use crate::fit::problem::{Certificate, Status};
use crate::fit::routes::SLOW_CHECKS;

/// Epochs over few active rows are cheap; this many of them count as one whole epoch at most, so that a fit
/// always ends.
const MAX_EPOCHS_PER_ITER: usize = 50;

/// The epochs of one descent so far.
pub(super) struct DescentCourse<'s> {
    params: &'s Params,
    options: DualOptions<'s>,
    schedule: Schedule,
    /// Checks in a row at which it was too slow.
    slow: usize,
}

impl<'s> DescentCourse<'s> {
    /// Starts at about this dual value.
    pub fn new(params: &'s Params, options: DualOptions<'s>, dual: f64) -> Self {
        Self { params, options, schedule: Schedule::new(dual.max(0.0)), slow: 0 }
    }

    /// Notes an epoch.
    pub fn record(&mut self, epoch: &Epoch, n_rows: usize) {
        self.schedule.record(epoch, n_rows);
    }

    /// Work in whole epochs.
    pub fn iterations(&self) -> usize {
        self.schedule.iterations()
    }

    /// Whether no more epochs are allowed.
    fn is_last(&self) -> bool {
        let most = self.params.max_iter;
        self.schedule.work >= most as f64 || self.schedule.epochs >= MAX_EPOCHS_PER_ITER * most
    }

    /// Whether the second epoch has gained too much more than the first.
    fn grows(&self) -> bool {
        self.schedule.epochs == 2
            && self.options.most_growth.is_some_and(|most| self.schedule.growth() > most)
    }

    /// Whether the gap should be computed now.
    pub fn is_due(&self) -> bool {
        self.schedule.is_due(self.params.tol) || self.is_last() || self.grows()
    }

    /// How the descent ends at a check with this outcome, if it does.
    pub fn judge(&mut self, certificate: &Certificate) -> Option<Status> {
        if certificate.relative_gap() <= self.params.tol {
            return Some(Status::Converged);
        }
        if self.is_last() {
            return Some(Status::MaxIter);
        }
        let remaining = self.schedule.checked(certificate, self.params.tol);
        let is_slow = self.options.is_slow.is_some_and(|is_slow| is_slow(self.schedule.work, remaining));
        self.slow = if is_slow { self.slow + 1 } else { 0 };
        (self.slow >= SLOW_CHECKS || self.grows()).then_some(Status::Stalled)
    }
}
