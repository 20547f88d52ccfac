//! The largest `C` at which all penalised weights are zero.
//!
//! At zero weights (and the best free columns, which do not depend on `C`: their losses alone count) the
//! slopes of the losses grow in proportion to `C`; a weight leaves zero where its slope passes `l1_j` in a
//! direction that its bounds leave open. So the smallest `l1_j / |v_j|` at `C = 1` is exact.

use super::newton::{Losses, NewtonSteps};
use super::smooth::SmoothTerms;
use super::working_set::WorkingSet;
use super::{PenalisedProblem, all_slopes};
use crate::fit::monitor::Monitor;
use crate::fit::newton::hinge::SmoothedHinge;
use crate::fit::objective::Weighted;
use crate::loss::{LossKind, with_smooth_loss};
use crate::{Result, memory};

/// How smooth the hinge is made. At zero weights all rows have the margin 0, or that of the intercept: those
/// of the smaller class then have their full cost as slope, the others share the same sum, as at the hinge's
/// own optimum. With further free columns the answer is near the largest such `C`, not exact.
const HINGE_SIGMA: f64 = 1.0;
/// Newton steps on the free columns at most.
const MAX_STEPS: usize = 100;

/// That `C`, for costs at `C = 1`; `None` where zero is no solution at any: a column whose weight must not be
/// zero, or a penalty without absolute values.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn largest_null_cost(
    problem: &PenalisedProblem<'_>,
    loss: LossKind,
    monitor: &dyn Monitor,
) -> Result<Option<f64>> {
    let PenalisedProblem { y, cost, .. } = *problem;
    with_smooth_loss!(loss, loss => of_smooth(problem, &Weighted { loss, y, cost }, monitor), else {
        let alpha = std::sync::Arc::new(memory::zeros(y.len()));
        of_smooth(problem, &SmoothedHinge { y, cost, alpha, sigma: HINGE_SIGMA }, monitor)
    })
}

fn of_smooth<S: SmoothTerms>(
    problem: &PenalisedProblem<'_>,
    smooth: &S,
    monitor: &dyn Monitor,
) -> Result<Option<f64>> {
    let d = problem.columns.len();
    if problem.terms.iter().any(|term| term.clip(0.0) != 0.0) {
        return Ok(None);
    }
    let mut w = memory::zeros(d);
    let losses = Losses::at(problem, smooth, memory::zeros(problem.y.len()));
    let mut steps = NewtonSteps::new(problem, smooth, MAX_STEPS, monitor);
    let losses = steps.settle_free(&WorkingSet::new(problem.terms), &mut w, losses)?;
    let slope = all_slopes(problem.columns, &losses.slope);
    let threshold = |(term, slope): (&crate::penalty::Term, &f64)| {
        let is_open = if *slope < 0.0 { term.upper > 0.0 } else { term.lower < 0.0 };
        if term.is_free() || !is_open || *slope == 0.0 { f64::INFINITY } else { term.l1 / slope.abs() }
    };
    let smallest = problem.terms.iter().zip(&slope).map(threshold).fold(f64::INFINITY, f64::min);
    Ok((smallest > 0.0 && smallest.is_finite()).then_some(smallest))
}
