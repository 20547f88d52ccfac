//! The largest `C` at which all penalised weights are zero.
//!
//! At zero weights (and the best free columns, which do not depend on `C`: their losses alone count) the
//! slopes of the losses grow in proportion to `C`; a weight leaves zero where its slope passes `l1_j` in a
//! direction that its bounds leave open. So the smallest `l1_j / |v_j|` at `C = 1` is exact.

use super::PenalisedProblem;
use super::binary::BinaryLosses;
use super::newton::NewtonSteps;
use super::smooth_part::{Losses, SmoothPart};
use super::working_set::WorkingSet;
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
    with_smooth_loss!(loss, loss => {
        of_smooth(&BinaryLosses { problem, smooth: &Weighted { loss, y, cost } }, monitor)
    }, else {
        let alpha = std::sync::Arc::new(memory::zeros(y.len()));
        let smooth = &SmoothedHinge { y, cost, alpha, sigma: HINGE_SIGMA };
        of_smooth(&BinaryLosses { problem, smooth }, monitor)
    })
}

/// That `C` for smooth terms.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn of_smooth<T: SmoothPart>(smooth_part: &T, monitor: &dyn Monitor) -> Result<Option<f64>> {
    let coordinates = smooth_part.coordinates();
    if coordinates.terms.iter().any(|term| term.clip(0.0) != 0.0) {
        return Ok(None);
    }
    let mut w = memory::zeros(coordinates.len());
    let losses = Losses::at(smooth_part, memory::zeros(coordinates.n_decisions()));
    let mut steps = NewtonSteps::new(smooth_part, MAX_STEPS, monitor);
    let losses = steps.settle_free(&WorkingSet::new(coordinates), &mut w, losses)?;
    let slope = coordinates.all_slopes(&losses.slope);
    let threshold = |(j, slope): (usize, &f64)| {
        let term = coordinates.term(j);
        let is_open = if *slope < 0.0 { term.upper > 0.0 } else { term.lower < 0.0 };
        if term.is_free() || !is_open || *slope == 0.0 { f64::INFINITY } else { term.l1 / slope.abs() }
    };
    let smallest = slope.iter().enumerate().map(threshold).fold(f64::INFINITY, f64::min);
    Ok((smallest > 0.0 && smallest.is_finite()).then_some(smallest))
}
