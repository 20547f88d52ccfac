//! Fits with a penalty on the absolute values of the weights, with bounds, or with a factor for each column
//! ([`crate::penalty`]):
//!
//! ```text
//! min over w      sum_j p_j(w_j) + sum_i c_i xi(y_i z_i),     z = X w,    p_j(w) = l1_j |w| + l2_j/2 w^2
//! ```
//!
//! within `lo_j <= w_j <= hi_j`. An intercept is the weight of a constant column, free or with the plain
//! penalty.
//!
//! **Method.** Few weights differ from zero, so the solver works on few columns. A round computes the slope
//! of the losses along all columns, from it a dual point and the gap ([`dual_point`]); chooses the *working
//! set*, the columns that are not zero and those that miss their optimality condition by most
//! ([`working_set`]); and takes Newton steps on it ([`newton`]). A step minimises the quadratic model of the
//! losses plus the penalty by coordinate descent ([`quadratic`]), on the entries of the columns or, where
//! they are few, on the matrix of the model ([`gram`]), and searches along the line to that minimum. Those
//! are the proximal Newton steps of Yuan, Ho, Lin: An Improved GLMNET for L1-regularized Logistic Regression
//! (JMLR 13, 2012), on the working sets of Massias, Gramfort, Salmon: Celer (ICML 2018).
//!
//! The hinge, which has a corner, is met by a sequence of smooth terms ([`hinge`]).
//!
//! The answer is proved in spite of rounding ([`proof`]), as that of every other solver.
//!
//! Memory: the copy of the data by columns, three vectors of columns and fourteen of rows, and for the matrix
//! of the model at most 8 MB or a third of the copy.

pub mod directions;
pub mod dual_point;
pub mod gram;
pub mod hinge;
pub mod newton;
pub mod proof;
pub mod quadratic;
pub mod smooth;
pub mod start;
pub mod walls;
pub mod working_set;

use super::monitor::{Monitor, Progress};
use super::objective::Weighted;
use super::params::{Params, WORKING_SET};
use super::problem::{Certificate, Status};
use super::routes;
use super::sweep::sum;
use crate::loss::{Loss, LossKind, with_smooth_loss};
use crate::matrix::columns::Columns;
use crate::memory::CollectLarge;
use crate::penalty::Term;
use crate::{Error, Result, memory, parallel};
use newton::{Losses, NOISE, NewtonSteps};
use smooth::SmoothTerms;
use working_set::WorkingSet;

/// Columns whose slopes one task computes.
const COLUMN_CHUNK: usize = 256;

/// One binary problem by columns.
#[derive(Clone, Copy)]
pub struct PenalisedProblem<'a> {
    /// The data, the constant column of an intercept last.
    pub columns: &'a Columns,
    /// Labels in {-1, +1}, one per row.
    pub y: &'a [f64],
    /// Costs, one per row; a row of cost 0 is absent.
    pub cost: &'a [f64],
    /// Penalty and bounds, one per column.
    pub terms: &'a [Term],
}

/// Weights of all columns with their certificate.
#[derive(Clone, Debug)]
pub struct PenalisedSolution {
    /// Weights, that of the constant column last.
    pub w: Vec<f64>,
    /// How good they are.
    pub certificate: Certificate,
    /// The penalty's part of the primal value.
    pub penalty: f64,
    /// How the fit ended.
    pub status: Status,
    /// Newton steps.
    pub n_iter: usize,
    /// Readings of all entries.
    pub passes: f64,
}

/// Fits to the relative duality gap `params.tol`, from the weights of `start` or from zero.
///
/// # Errors
/// [`Error::Cancelled`] and [`Error::Overflow`].
pub fn solve(
    problem: &PenalisedProblem<'_>,
    loss: LossKind,
    params: &Params,
    start: Option<&[f64]>,
    monitor: &dyn Monitor,
) -> Result<PenalisedSolution> {
    with_smooth_loss!(loss, loss => solve_smooth(problem, loss, params, start, monitor), else {
        hinge::solve(problem, params, start, monitor)
    })
}

/// Slopes `sum_i g_i x_ij` of the columns `list`.
pub fn slopes(columns: &Columns, list: &[u32], g: &[f64]) -> Vec<f64> {
    parallel::numbers(list.len(), COLUMN_CHUNK, |k| slope(columns, list[k] as usize, g))
}

/// Those of all columns.
pub fn all_slopes(columns: &Columns, g: &[f64]) -> Vec<f64> {
    parallel::numbers(columns.len(), COLUMN_CHUNK, |j| slope(columns, j, g))
}

fn slope(columns: &Columns, j: usize, g: &[f64]) -> f64 {
    let [sum] = columns.sum(j, |i, x| [g[i] * x]);
    sum
}

/// `z = X w`, from the columns of nonzero weight.
pub fn decisions(columns: &Columns, w: &[f64]) -> Vec<f64> {
    let mut z = memory::zeros(columns.n_rows());
    for (j, &w) in w.iter().enumerate().filter(|(_, w)| **w != 0.0) {
        columns.for_each(j, |i, x| z[i] += w * x);
    }
    z
}

/// The penalty of all weights.
pub fn penalty(terms: &[Term], w: &[f64]) -> f64 {
    let [total] = sum(w.len(), |j| [if w[j] == 0.0 { 0.0 } else { terms[j].value(w[j]) }]);
    total
}

/// What is known at the weights with which a round begins.
pub(super) struct RoundStart {
    losses: Losses,
    /// Slopes of the losses along all columns.
    slope: Vec<f64>,
    /// Values up to rounding.
    rough: Certificate,
}

impl RoundStart {
    /// Moves the free columns to their optimum and looks around. `known` are the losses at `w`, if they are.
    fn of<S: SmoothTerms>(
        steps: &mut NewtonSteps<'_, S>,
        working: &WorkingSet,
        w: &mut [f64],
        known: Option<Losses>,
    ) -> Result<Self> {
        let problem = steps.problem;
        let anew = || Losses::at(problem, steps.smooth, decisions(problem.columns, w));
        let losses = known.unwrap_or_else(anew);
        check_finite(problem, losses.value + penalty(problem.terms, w))?;
        let losses = steps.settle_free(working, w, losses)?;
        let slope = all_slopes(problem.columns, &losses.slope);
        steps.passes += 1.0;
        let rough = dual_point::certificate(problem, steps.smooth, &losses, &slope, w);
        Ok(Self { losses, slope, rough })
    }

    /// Steps on the next working set; the losses behind them.
    fn go_on<S: SmoothTerms>(
        self,
        steps: &mut NewtonSteps<'_, S>,
        working: &mut WorkingSet,
        w: &mut [f64],
    ) -> Result<Losses> {
        working.choose(steps.problem, w, &self.slope);
        let room = self.rough.primal - self.rough.dual;
        let target = routes::WORKING_SET_AIM * room.min(self.rough.primal).max(0.0);
        let slope = working.columns.iter().map(|&j| self.slope[j as usize]).collect_large();
        steps.minimise(w, self.losses, &working.columns, Some(slope), target)
    }
}

fn solve_smooth<L: Loss>(
    problem: &PenalisedProblem<'_>,
    loss: L,
    params: &Params,
    start: Option<&[f64]>,
    monitor: &dyn Monitor,
) -> Result<PenalisedSolution> {
    let mut w = first_weights(problem, start);
    let smooth = Weighted { loss, y: problem.y, cost: problem.cost };
    let mut steps = NewtonSteps::new(problem, &smooth, params.max_iter, monitor);
    let mut working = WorkingSet::new(problem.terms);
    let (mut best_gap, mut best_primal, mut known) = (f64::INFINITY, f64::INFINITY, None);
    let (status, certificate) = loop {
        let here = RoundStart::of(&mut steps, &working, &mut w, known.take())?;
        steps.poll()?;
        let mut gap = here.rough.relative_gap();
        observe(monitor, steps.taken, gap);
        let is_over = steps.taken >= params.max_iter;
        // Rounds that lower neither the gap nor the objective have met the limit of double precision. A set
        // of few columns may be done, and the objective lower, without a better bound.
        let is_lower = here.rough.primal < best_primal * (1.0 - NOISE);
        let is_stuck = steps.is_stuck && gap >= best_gap && !is_lower;
        if gap <= params.tol || is_over || is_stuck {
            let (proven, passes) = proof::to_tolerance(problem, loss, &here.losses, &w, (gap, params.tol));
            steps.passes += passes;
            gap = proven.relative_gap();
            if gap <= params.tol {
                break (Status::Converged, proven);
            }
            if is_over || is_stuck {
                break (if is_over { Status::MaxIter } else { Status::Stalled }, proven);
            }
        }
        // Tried: not where the set leaves out columns that miss their condition; phishing_urls with the
        // squared hinge and 1,050 weights takes 22 steps and 9.0 s to 1e-4 instead of 14 and 3.7 s, imdb as
        // long as before.
        if gap > 0.5 * best_gap {
            steps.go_further();
        }
        (best_gap, best_primal) = (best_gap.min(gap), best_primal.min(here.rough.primal));
        known = Some(here.go_on(&mut steps, &mut working, &mut w)?);
    };
    let penalty = penalty(problem.terms, &w);
    Ok(PenalisedSolution { w, certificate, penalty, status, n_iter: steps.taken, passes: steps.passes })
}

/// The weights of `start` within their bounds, or those nearest to zero.
fn first_weights(problem: &PenalisedProblem<'_>, start: Option<&[f64]>) -> Vec<f64> {
    let mut w = start.map_or_else(|| memory::zeros(problem.columns.len()), memory::copy);
    w.iter_mut().zip(problem.terms).for_each(|(w, term)| *w = term.clip(*w));
    w
}

fn observe(monitor: &dyn Monitor, iteration: usize, accuracy: f64) {
    monitor.observe(&Progress { solver: WORKING_SET, iteration, accuracy, search: None });
}

/// Refuses an objective that is not a number.
fn check_finite(problem: &PenalisedProblem<'_>, objective: f64) -> Result<()> {
    if objective.is_finite() {
        return Ok(());
    }
    let mut squared = memory::zeros::<f64>(problem.y.len());
    for j in 0..problem.columns.len() {
        problem.columns.for_each(j, |i, x| squared[i] += x * x);
    }
    let max_squared_norm = squared.into_iter().fold(0.0, f64::max);
    Err(Error::Overflow { what: "objective", max_squared_norm })
}

#[cfg(test)]
mod tests;
