//! The largest `C` at which all penalised weights are zero.
//!
//! At zero weights (and the best free columns, which do not depend on `C`: their losses alone count) the
//! slopes of the losses grow in proportion to `C`; a weight leaves zero where its slope passes `l1_j` in a
//! direction that its bounds leave open. So the smallest `l1_j / |v_j|` at `C = 1` is exact.

use super::newton::{Losses, NewtonSteps};
use super::working_set::WorkingSet;
use super::{PenalisedProblem, SMOOTH_ONLY, slopes};
use crate::fit::monitor::Monitor;
use crate::loss::{Loss, LossKind, with_smooth_loss};
use crate::{Error, Result, memory};

/// Newton steps on the free columns at most.
const MAX_STEPS: usize = 100;

/// That `C`, for costs at `C = 1`; `None` where zero is no solution at any: a column whose weight must not be
/// zero, or a penalty without absolute values.
///
/// # Errors
/// [`Error::Parameter`] for a loss that is not smooth, and [`Error::Cancelled`].
pub fn largest_null_cost(
    problem: &PenalisedProblem<'_>,
    loss: LossKind,
    monitor: &dyn Monitor,
) -> Result<Option<f64>> {
    with_smooth_loss!(loss, loss => of_smooth(problem, loss, monitor), else {
        Err(Error::Parameter { name: "loss", value: "\"hinge\"".into(), rule: SMOOTH_ONLY })
    })
}

fn of_smooth<L: Loss>(problem: &PenalisedProblem<'_>, loss: L, monitor: &dyn Monitor) -> Result<Option<f64>> {
    let d = problem.columns.len();
    if problem.terms.iter().any(|term| term.clip(0.0) != 0.0) {
        return Ok(None);
    }
    let mut w = memory::zeros(d);
    let losses = Losses::at(problem, loss, memory::zeros(problem.y.len()));
    let mut steps = NewtonSteps::new(problem, loss, MAX_STEPS, monitor);
    let losses = steps.settle_free(&WorkingSet::new(problem.terms), &mut w, losses)?;
    let all: Vec<u32> = (0..d as u32).collect();
    let mut slope = memory::zeros(d);
    slopes(problem.columns, &all, &losses.slope, &mut slope);
    let threshold = |(term, slope): (&crate::penalty::Term, &f64)| {
        let is_open = if *slope < 0.0 { term.upper > 0.0 } else { term.lower < 0.0 };
        if term.is_free() || !is_open || *slope == 0.0 { f64::INFINITY } else { term.l1 / slope.abs() }
    };
    let smallest = problem.terms.iter().zip(&slope).map(threshold).fold(f64::INFINITY, f64::min);
    Ok((smallest > 0.0 && smallest.is_finite()).then_some(smallest))
}
