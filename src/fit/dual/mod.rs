//! The loop around dual coordinate descent: gap checks, the free intercept, stalling.
//!
//! [`box_cd`] (hinge, squared hinge) and [`logistic_cd`] are its steps, [`active`] its set of visited rows,
//! [`schedule`] the times of its checks and `course` its end, `ledger` what it counts and what a check says,
//! [`segment`] its primal point, [`classes`] the same for several classes at once.
//!
//! **Checks.** A duality gap costs one pass over all rows without random access to them, about a third of an
//! epoch. It is computed when [`schedule`] says so. The same pass brings shrunk rows back
//! ([`Method::recheck`]).
//!
//! **Free intercept.** The dual then has the constraint `sum_i y_i a_i = 0`. It is met by the method of
//! multipliers: with multiplier `b` and penalty `sigma`, the augmented problem is the same box problem with a
//! constant column `sqrt(sigma)` and margins shifted by the offset `b`, so epochs do not know of it; after
//! each epoch `b <- b + sigma sum_i y_i a_i`. The certificate does not depend on `b`: the primal value takes
//! the exact best intercept for `w`, the dual value a copy of `a` moved onto the constraint.
//!
//! **Threads.** Epochs are sequential; checks, Newton's passes, classes and folds are what runs in parallel.
//! Tried: two halves of the rows at once on copies of the weights, joined several times an epoch by the exact
//! step along the sum of both changes. Epochs that squared hinge takes to a gap of 1e-4, sequentially and
//! with 2 and 4 joins: imdb, C = 1, 5, 24 and 11; 20news 6, 16 and 11, C = 16 15, 69 and 37; phishing_urls 8,
//! 16 and 11. Hinge, 1e-3: 20news 12, 98 and 53, phishing_urls 17, 27 and 22. Twice the work a second does
//! not make up for that, and more joins cost more than they save (weights are streamed three times in each).
//!
//! **Primal point.** With the hinge the primal value of `w(a)` jumps up and down long after the dual value
//! has settled. The certificate, and the model, are therefore those of the best point met on the way, which
//! each check moves to the minimum of the segment from it to `w(a)` ([`segment`]).
//!
//! **Drift.** `w` is kept by updates, each of which may be off by `3 u |w|`. The dual objective never falls,
//! and no term of it is above `c_i`; hence `|w|^2 <= 2 (sum_i c_i - D)` with `D` its value at the start (less
//! `sigma (sum_i y_i a_i)^2` for each step of the multiplier, and `b^2 / sigma` more for the multiplier's own
//! term). That, times the visits, bounds the distance of `w` from `w(a)`.

pub mod active;
pub mod box_cd;
pub mod classes;
mod course;
mod ledger;
pub mod logistic_cd;
pub mod method;
pub mod schedule;
pub mod segment;
pub mod trial;

use self::active::{Random, below};
use self::box_cd::{BoxCd, BoxRow};
use self::course::DescentCourse;
use self::ledger::{GapCheck, Ledger};
use self::logistic_cd::{LogisticCd, LogisticRow};
pub use self::method::{ClassRow, Epoch, Fate, Method, Visit};
use super::certificate;
use super::monitor::{Monitor, Progress};
use super::params::{Params, SolverKind};
use super::problem::{Evidence, Intercept, Problem, Solution, Start, Status};
use super::sweep::{Sweep, sum};
use crate::loss::{BoxLoss, Logistic, Loss};
use crate::matrix::design::Design;
use crate::matrix::rows::ROWS_AHEAD;
use crate::matrix::{Pass, Rows};
use crate::memory::CollectLarge;
use crate::{Result, memory};

/// See [`penalty`].
const LEAST_MOVE: f64 = 10.0;
/// Rows by which the scale of the data is judged.
const NORM_SAMPLE: usize = 1024;
/// Steps between two polls of the cancel flag.
const POLL_STEPS: usize = 4096;

/// A loss with its kind of dual problem.
pub trait DualLoss: Loss {
    /// Coordinate descent on it.
    type Method: Method<Loss = Self>;
    /// The same in several problems at once.
    type Row<const L: usize>: ClassRow<Self, L>;
    /// Where the descent starts by itself, for rows of such labels and costs.
    fn method(self, y: &[f64], cost: &[f64]) -> Self::Method;
}

impl<L: BoxLoss> DualLoss for L {
    type Method = BoxCd<L>;
    type Row<const N: usize> = BoxRow<N>;
    fn method(self, y: &[f64], cost: &[f64]) -> BoxCd<L> {
        BoxCd::of(y, cost, self)
    }
}

impl DualLoss for Logistic {
    type Method = LogisticCd;
    type Row<const L: usize> = LogisticRow<L>;
    fn method(self, y: &[f64], cost: &[f64]) -> LogisticCd {
        LogisticCd::of(y, cost)
    }
}

/// Visits every active row once, in a fresh random order (Hsieh08, slide "Order of Sub-problems"). The memory
/// of a row visited a few steps later is asked for ahead of time, because a random order defeats the
/// hardware.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn epoch<M: Method>(
    method: &mut M,
    design: &Design<'_>,
    visit: &mut Visit<'_>,
    random: &mut Random,
    monitor: &dyn Monitor,
) -> Result<Epoch> {
    let epoch = epoch_permuted(method, design, visit, random, monitor)?;
    method.finish(&epoch);
    Ok(epoch)
}

/// Visits every active row once, in the order of the set; [`epoch`] without the permutation.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn epoch_in_order<M: Method>(
    method: &mut M,
    design: &Design<'_>,
    visit: &mut Visit<'_>,
    monitor: &dyn Monitor,
) -> Result<Epoch> {
    let epoch = design.visit(Permuted { method: &mut *method, visit, monitor })?;
    method.finish(&epoch);
    Ok(epoch)
}

/// Visits every active row once, in a fresh random order, and leaves the bounds beyond which rows are shrunk
/// where they are: without any, as at the start, none ever is.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn epoch_permuted<M: Method>(
    method: &mut M,
    design: &Design<'_>,
    visit: &mut Visit<'_>,
    random: &mut Random,
    monitor: &dyn Monitor,
) -> Result<Epoch> {
    method.active().shuffle(random);
    design.visit(Permuted { method, visit, monitor })
}

/// The visits of an epoch.
struct Permuted<'s, 'v, M> {
    method: &'s mut M,
    visit: &'s mut Visit<'v>,
    monitor: &'s dyn Monitor,
}

impl<M: Method> Pass for Permuted<'_, '_, M> {
    type Output = Result<Epoch>;
    fn run<R: Rows>(self, rows: &R) -> Result<Epoch> {
        let Self { method, visit, monitor } = self;
        let (mut epoch, mut s) = (Epoch::default(), 0);
        while let Some(i) = method.active().get(s) {
            if epoch.visited % POLL_STEPS == 0 {
                monitor.poll()?;
            }
            epoch.visited += 1;
            if let Some(next) = method.active().get(s + ROWS_AHEAD) {
                rows.prefetch(next);
            }
            if let Some(next) = method.active().get(s + 2 * ROWS_AHEAD) {
                method.prefetch(next);
                rows.prefetch_header(next);
            }
            match method.step(rows, i, visit, &mut epoch) {
                Fate::Stays => s += 1,
                Fate::Shrinks => method.active().shrink(s),
            }
        }
        Ok(epoch)
    }
}

/// Visits as many rows as there are, each drawn at random, without shrinking: the online setting of Hsieh08,
/// slide "Order of Sub-problems".
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn epoch_online<M: Method>(
    method: &mut M,
    design: &Design<'_>,
    visit: &mut Visit<'_>,
    random: &mut Random,
    monitor: &dyn Monitor,
) -> Result<Epoch> {
    let mut epoch = Epoch::default();
    while epoch.visited < design.n_rows() {
        if epoch.visited % POLL_STEPS == 0 {
            monitor.poll()?;
        }
        epoch.visited += 1;
        method.step(design, below(random, design.n_rows()), visit, &mut epoch);
    }
    Ok(epoch)
}

/// Which rows an epoch visits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EpochOrder {
    /// Those that are not shrunk, permuted: [`epoch`].
    Shrinking,
    /// All, permuted: [`epoch_permuted`].
    Permuted,
    /// Rows drawn one at a time: [`epoch_online`].
    Online,
}

impl EpochOrder {
    /// That of a solver.
    pub fn of(solver: SolverKind) -> Self {
        match solver {
            SolverKind::DualCdPermuted => Self::Permuted,
            SolverKind::DualCdOnline => Self::Online,
            _ => Self::Shrinking,
        }
    }

    fn solver(self) -> SolverKind {
        match self {
            Self::Shrinking => SolverKind::DualCd,
            Self::Permuted => SolverKind::DualCdPermuted,
            Self::Online => SolverKind::DualCdOnline,
        }
    }
}

/// Variants of the loop.
#[derive(Clone, Copy)]
pub struct DualOptions<'s> {
    /// Which rows an epoch visits.
    pub order: EpochOrder,
    /// Whether to end with [`Status::Stalled`] after so many visits of all rows, if the gap, extrapolated,
    /// may need so many more; never, if `None`.
    pub is_slow: Option<&'s dyn Fn(f64, f64) -> bool>,
    /// Gain of the second epoch over that of the first above which it ends so at once; never, if `None`.
    pub most_growth: Option<f64>,
    /// Whether the solution is to come with evidence.
    pub is_proved: bool,
}

/// Runs the method to the relative duality gap `params.tol`.
///
/// # Errors
/// [`crate::Error::Cancelled`] and [`crate::Error::Overflow`].
pub fn solve<'a, M: Method>(
    problem: &Problem<'a>,
    method: M,
    params: &Params,
    options: DualOptions<'_>,
    start: &Start,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    let mut descent = Descent::new(problem, method, start, monitor)?;
    let estimate = descent.ledger.begin(descent.method.loss(), &descent.w, &descent.alpha());
    descent.run(DescentCourse::new(params, options, estimate), options, active::random(params.seed, 0))
}

/// A running descent.
struct Descent<'a, M> {
    ledger: Ledger<'a>,
    sweep: Sweep<'a>,
    monitor: &'a dyn Monitor,
    method: M,
    w: Vec<f64>,
    passes: f64,
}

impl<'a, M: Method> Descent<'a, M> {
    fn new(problem: &Problem<'a>, mut method: M, start: &Start, monitor: &'a dyn Monitor) -> Result<Self> {
        let bias = constant_column(&problem.design(0.0), problem.cost, problem.intercept);
        if let Some(alpha) = &start.alpha {
            method.start_at(alpha);
        }
        let offset = match (&start.w, problem.intercept) {
            (Some((_, b)), Intercept::Free) => *b,
            _ => 0.0,
        };
        let ledger = Ledger::new(problem, bias, offset);
        let sweep = Sweep::new(problem.design(bias), monitor);
        let mut descent = Self { ledger, sweep, monitor, method, w: Vec::new(), passes: 0.0 };
        descent.w = descent.weights(start);
        monitor.poll()?;
        Ok(descent)
    }

    /// `sum_i y_i a_i x_i`, read off the start where it is consistent.
    fn weights(&mut self, start: &Start) -> Vec<f64> {
        let (y, design) = (self.ledger.problem.y, self.sweep.design);
        let mut signed = self.alpha();
        signed.iter_mut().zip(y).for_each(|(a, y)| *a *= y);
        if let Some(w) = start.consistent_weights() {
            let mut w = memory::copy(w);
            self.ledger.drift = None;
            if design.bias != 0.0 {
                w.push(design.bias * sum(signed.len(), |i| [signed[i]])[0]);
            }
            return w;
        }
        let mut w = memory::zeros(design.n_cols());
        if signed.iter().any(|&a| a != 0.0) {
            self.sweep.weighted_sum(&signed, &mut w);
            self.passes += 1.0;
        }
        w
    }

    fn alpha(&self) -> Vec<f64> {
        (0..self.ledger.problem.y.len()).map(|i| self.method.alpha(i)).collect_large()
    }

    fn epoch(&mut self, order: EpochOrder, random: &mut Random) -> Result<Epoch> {
        let design = self.sweep.design;
        let mut visit = Visit { w: &mut self.w, offset: self.ledger.offset, stretch: 1.0 };
        let run = match order {
            EpochOrder::Shrinking => epoch,
            EpochOrder::Permuted => epoch_permuted,
            EpochOrder::Online => epoch_online,
        };
        let done = run(&mut self.method, &design, &mut visit, random, self.monitor)?;
        self.passes += done.visited as f64 / design.n_rows().max(1) as f64;
        self.ledger.after_epoch(done.visited, self.w.last().copied().unwrap_or(0.0));
        Ok(done)
    }

    /// The gap at the current point; brings shrunk rows back.
    fn check(&mut self) -> Result<GapCheck> {
        let y = self.ledger.problem.y;
        let mut margins = memory::zeros(y.len());
        self.sweep.margins(y, &self.w, &mut margins);
        self.passes += 1.0;
        self.monitor.poll()?;
        if self.ledger.is_free() {
            let offset = self.ledger.offset;
            let shifted: Vec<f64> = margins.iter().zip(y).map(|(m, y)| m + y * offset).collect_large();
            self.method.recheck(&shifted);
        } else {
            self.method.recheck(&margins);
        }
        self.ledger.check(self.method.loss(), &self.w, margins, &self.alpha())
    }

    /// Visits rows until the course ends.
    fn run(
        mut self,
        mut course: DescentCourse<'_>,
        options: DualOptions<'_>,
        mut random: Random,
    ) -> Result<Solution> {
        let (check, status) = loop {
            let done = self.epoch(options.order, &mut random)?;
            course.record(&done, self.ledger.problem.y.len());
            if !course.is_due() {
                continue;
            }
            let check = self.check()?;
            self.monitor.observe(&Progress {
                solver: "dual_cd",
                iteration: course.iterations(),
                accuracy: check.certificate.relative_gap(),
                search: None,
            });
            if let Some(status) = course.judge(&check.certificate) {
                break (check, status);
            }
        };
        self.into_solution(check, status, course.iterations(), options.order.solver(), options.is_proved)
    }

    fn into_solution(
        mut self,
        check: GapCheck,
        status: Status,
        n_iter: usize,
        solver: SolverKind,
        is_proved: bool,
    ) -> Result<Solution> {
        let alpha = self.alpha();
        let (certificate, b) = (check.certificate, check.intercept);
        let evidence = if is_proved { self.evidence(check, &alpha)? } else { None };
        let (w, intercept, is_consistent) = self.ledger.answer(self.w, b);
        let passes = self.passes;
        Ok(Solution {
            w,
            intercept,
            alpha,
            certificate,
            status,
            n_iter,
            passes,
            solver,
            is_consistent,
            evidence,
        })
    }

    /// What the last check says of the solution.
    fn evidence(&mut self, check: GapCheck, alpha: &[f64]) -> Result<Option<Evidence>> {
        let Some(best) = &self.ledger.best else { return Ok(self.ledger.evidence(check, &self.w, alpha)) };
        let Some(drift) = self.ledger.drift else { return Ok(None) };
        let (y, additions) = (self.ledger.problem.y, alpha.len() as f64);
        // Those of the best point are mixed from those of others.
        let mut margins = memory::zeros(y.len());
        self.sweep.margins(y, &best.w, &mut margins);
        self.passes += 1.0;
        self.monitor.poll()?;
        let distance = certificate::distance(&self.w, &best.w);
        Ok(Some(Evidence { margins, distance, drift, additions, alpha: None }))
    }
}

/// Height of the constant column of a descent over the rows of `plain`, which is without one: that of a
/// penalised intercept, or of the method of multipliers; 0 for none.
pub(super) fn constant_column(plain: &Design<'_>, cost: &[f64], intercept: Intercept) -> f64 {
    match intercept {
        Intercept::None => 0.0,
        Intercept::Penalised(scale) => scale,
        Intercept::Free => penalty(plain, cost.iter().sum()).sqrt(),
    }
}

/// The penalty `sigma` of the method of multipliers: the mean squared norm of the rows, which makes the
/// constant column as important as a row; but at tiny costs at least so much that `sigma sum_i c_i`, by which
/// the multiplier moves in an epoch at most, is of the order of the margins.
pub(super) fn penalty(design: &Design<'_>, total_cost: f64) -> f64 {
    penalty_for(mean_squared_norm(design), total_cost)
}

/// [`penalty`] for rows of a mean squared norm and a sum of costs.
pub(crate) fn penalty_for(mean_squared_norm: f64, total_cost: f64) -> f64 {
    mean_squared_norm.max(LEAST_MOVE / total_cost)
}

/// Mean squared norm of about [`NORM_SAMPLE`] rows at equal distances.
fn mean_squared_norm(design: &Design<'_>) -> f64 {
    let stride = design.n_rows().div_ceil(NORM_SAMPLE).max(1);
    let (mut total, mut count) = (0.0, 0.0);
    for i in (0..design.n_rows()).step_by(stride) {
        total += design.squared_norm(i);
        count += 1.0;
    }
    if total > 0.0 { total / count } else { 1.0 }
}
