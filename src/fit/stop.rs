//! When a Newton minimisation ([`super::newton`]) is done, lane by lane.

use super::problem::{Certificate, Status};

/// Share of the squared gradient that would end a fit at which a step is accurate enough. flights, squared
/// hinge, C = 16, gap 1e-2, 1e-3, 1e-4: 204, 325 and 732 passes; without this end 532, 532 and 1,399. Tried
/// there: a factorisation of the thousand columns with the largest diagonal entries in the preconditioner,
/// 120, 335 and 448 passes, each dearer: 1.1, 0.75 and 1.4 times the speed.
const ENOUGH: f64 = 0.5;
/// And the share of the squared gradient before the step that it must not exceed, where rows that change
/// sides keep the gradient from following the residual: madelon in degree 2 took 391 steps of a product or
/// two without it.
const LEAST_FALL: f64 = 0.1;
/// Steps in which neither the gradient nor the objective fell, after which the limit of double precision is
/// reached.
const MAX_IDLE: usize = 8;
/// Share of what an accurate step was to gain that its conjugate gradient may have left, beside what the
/// model was wrong by: where steps are judged by all that they were to gain, searches on hashed text take 1.1
/// times the products.
const LEFT: f64 = 0.25;
/// Steps for the height alone that a minimisation takes at most, each of few products. `select_C` on 10,000
/// rows of mnist, ten classes one against the rest, up to C = 1024: passes, by how much the objectives of all
/// lanes together are above those of the last line at C = 1, 8, 64 and 1024, and accuracies at 8 and 256:
///
/// ```text
///                  squared hinge                            logistic
/// 1                1,998  0.27 1.6 2.8 3.9 % .8635 .8502    3,361  0.00 0.16 0.28 0.46 % .8831 .8607
/// 3                2,448  0.02 0.3 0.5 1.6   .8603 .8449    4,683  0.00 0.00 0.04 0.10   .8838 .8608
/// any number       3,567  0.02 0.1 0.5 1.1   .8606 .8459
/// any, to the end  6,118                     .8610 .8458    6,777                        .8838 .8612
/// ```
///
/// The best accuracies, at C = 2^-5 and 0.5, are the same with all; 20news takes 1.3 times as long with three
/// steps as with one (squared hinge; 1.1 with the logistic loss), objectives at C = 1024 are 0.2 % instead of
/// 6 % above those of any number of steps. Searches on a9a, w8a, covtype, ijcnn1, madelon, flights and imdb
/// take the same steps.
const HEIGHT_STEPS: usize = 3;
/// Below this relative change of the objective, rounding decides.
pub const ROUNDING: f64 = 1e-13;

/// When a minimisation is done.
#[derive(Clone, Copy, Debug)]
pub enum NewtonStop<const L: usize> {
    /// Relative duality gap.
    RelativeGap(f64),
    /// Norm of the gradient per lane, and how far the objective may be above its minimum.
    Gradient {
        /// The norms.
        norm: [f64; L],
        /// The distance as a share of the objective, if it counts.
        excess: Option<f64>,
    },
}

impl<const L: usize> NewtonStop<L> {
    /// What [`Self::accuracy`] must not exceed.
    pub fn limit(&self, lane: usize) -> f64 {
        match self {
            Self::RelativeGap(tol) => *tol,
            Self::Gradient { norm, .. } => norm[lane],
        }
    }

    /// The squared residual at which a direction is accurate enough at this value of the objective. None in a
    /// search: solutions that are better than asked for hold at the next `C`, which then costs nothing.
    pub fn squared_residual(&self, value: f64, squared_gradient: f64) -> f64 {
        match self {
            Self::RelativeGap(tol) => (ENOUGH * 2.0 * tol * value).min(LEAST_FALL * squared_gradient),
            Self::Gradient { .. } => 0.0,
        }
    }

    /// How far a lane is.
    pub fn accuracy(&self, report: &LaneReport) -> f64 {
        match self {
            Self::RelativeGap(_) => report.relative_gap(),
            Self::Gradient { .. } => report.squared_gradient.sqrt(),
        }
    }

    /// What the objective may be above its minimum, if that counts.
    fn height(&self, value: f64) -> Option<f64> {
        match self {
            Self::Gradient { excess, .. } => excess.map(|excess| excess * value),
            Self::RelativeGap(_) => None,
        }
    }
}

/// How a minimisation went in one lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneReport {
    /// How it ended.
    pub status: Status,
    /// Newton steps taken; 0 means that the start was good enough.
    pub steps: usize,
    /// Primal and dual value; step 2 in [`super::newton`], confirmed on fresh decision values at the end of a
    /// fit.
    pub certificate: Certificate,
    /// Squared norm of the gradient, the free intercept's part left out for a gap, where it is zero but for
    /// rounding.
    pub squared_gradient: f64,
}

impl LaneReport {
    /// The relative gap from the gradient, which tells gaps apart that the difference of the values rounds to
    /// zero.
    pub fn relative_gap(&self) -> f64 {
        let dual = self.certificate.dual;
        if dual > 0.0 { 0.5 * self.squared_gradient / dual } else { self.certificate.relative_gap() }
    }
}

/// Progress of one lane.
#[derive(Clone, Copy)]
pub struct LaneProgress {
    best: f64,
    lowest: f64,
    idle: usize,
    first_norm: Option<f64>,
    /// How it went so far.
    pub report: LaneReport,
    /// Whether it is not done.
    pub is_running: bool,
    /// The stop was met but not confirmed, and the decision values are fresh.
    pub is_fresh: bool,
    /// It was met on fresh decision values and not confirmed: one step whatever the gradient says.
    pub must_step: bool,
    /// The gradient or gap is small enough.
    pub is_near: bool,
    /// What the last step was to gain, by its model.
    foretold: f64,
    /// It is the last one for a height that counts.
    pub is_last: bool,
    /// Steps for the height alone so far.
    height_steps: usize,
    /// What may be left to gain: half the squared gradient at most, as no eigenvalue of its matrix is below
    /// 1.
    left: f64,
}

impl LaneProgress {
    /// At the start.
    pub fn new(report: LaneReport) -> Self {
        let (best, lowest) = (f64::INFINITY, f64::INFINITY);
        Self {
            best,
            lowest,
            idle: 0,
            first_norm: None,
            report,
            is_running: true,
            is_fresh: false,
            must_step: false,
            is_near: false,
            foretold: f64::INFINITY,
            is_last: false,
            height_steps: 0,
            left: f64::INFINITY,
        }
    }

    /// Records the current point; `penalised` is the squared gradient without a free intercept's part.
    pub fn observe(&mut self, value: f64, squared_gradient: f64, penalised: f64) {
        let missed = (self.report.certificate.primal - value - self.foretold).abs();
        let by_step = if self.is_near { LEFT * self.foretold + missed } else { self.foretold };
        self.left = by_step.min(self.foretold).min(0.5 * squared_gradient);
        self.report.certificate = Certificate { primal: value, dual: value - 0.5 * penalised };
        self.report.squared_gradient = squared_gradient;
        self.first_norm.get_or_insert(squared_gradient.sqrt());
    }

    /// Takes note of what a step is to gain. Where the gradient is small enough and that is little, it is the
    /// last; so is the last of `HEIGHT_STEPS` for the height alone, as the gradients of all lanes are small.
    /// A lane that has come to these is not judged again by the gradient, which may grow while the
    /// objective falls.
    pub fn foresee<const L: usize>(&mut self, stop: &NewtonStop<L>, gain: f64, are_near: bool) {
        self.foretold = gain;
        let Some(height) = stop.height(self.report.certificate.primal) else { return };
        self.height_steps += usize::from(are_near);
        self.is_last = self.is_near && (gain <= height || self.height_steps >= HEIGHT_STEPS);
    }

    /// Ends the lane if it is done, makes no progress, or is out of steps.
    pub fn settle<const L: usize>(&mut self, stop: &NewtonStop<L>, lane: usize, max_steps: usize) {
        let (value, squared) = (self.report.certificate.primal, self.report.squared_gradient);
        self.is_near = self.height_steps > 0 || stop.accuracy(&self.report) <= stop.limit(lane);
        let is_low = stop.height(value).is_none_or(|height| self.left <= height);
        let is_done = self.is_last || (self.is_near && is_low && !std::mem::take(&mut self.must_step));
        let is_better = squared < self.best || value < self.lowest * (1.0 - ROUNDING);
        self.idle = if is_better { 0 } else { self.idle + 1 };
        (self.best, self.lowest) = (self.best.min(squared), self.lowest.min(value));
        let end = if is_done {
            Some(Status::Converged)
        } else if self.idle >= MAX_IDLE {
            Some(Status::Stalled)
        } else if self.report.steps >= max_steps {
            Some(Status::MaxIter)
        } else {
            None
        };
        if let Some(status) = end {
            (self.is_running, self.report.status) = (false, status);
        }
    }

    /// Norm of the gradient over that at the start.
    pub fn relative_gradient(&self) -> f64 {
        let first = self.first_norm.unwrap_or(0.0);
        if first > 0.0 { self.report.squared_gradient.sqrt() / first } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STOP: NewtonStop<1> = NewtonStop::Gradient { norm: [100.0], excess: Some(0.01) };

    /// A lane whose steps are all to gain so much of an objective of 100; the number of them for the height.
    /// From the first one on its gradient is larger than what it is to be.
    fn height_steps(stop: &NewtonStop<1>, gain: f64) -> usize {
        let certificate = Certificate { primal: 0.0, dual: 0.0 };
        let report = LaneReport { status: Status::Stalled, steps: 0, certificate, squared_gradient: 0.0 };
        let mut lane = LaneProgress::new(report);
        let mut squared = 2500.0;
        for steps in 0..20 {
            lane.observe(100.0, squared, squared);
            lane.settle(stop, 0, 1000);
            if !lane.is_running {
                assert_eq!(lane.report.status, Status::Converged);
                return steps;
            }
            lane.foresee(stop, gain, lane.is_near);
            squared = 40_000.0;
        }
        panic!("no end");
    }

    #[test]
    fn a_lane_ends_where_a_step_is_to_gain_little_or_after_some_for_the_height() {
        assert_eq!(height_steps(&STOP, 0.9), 1);
        assert_eq!(height_steps(&STOP, 5.0), HEIGHT_STEPS);
        let by_gradient = NewtonStop::Gradient { norm: [100.0], excess: None };
        assert_eq!(height_steps(&by_gradient, 5.0), 0);
    }
}
