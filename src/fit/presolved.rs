//! A fit on packed columns, brought back to the caller's.
//!
//! The solver sees the packed matrix only. Its weights are mapped back, and the certificate is computed anew
//! on the caller's own rows: it holds for the caller's data whatever rounding the packed values have. Should
//! that gap be above the tolerance where the packed one was not (float32 values at a tolerance near their
//! rounding), the fit is finished on the caller's rows.

use super::monitor::Monitor;
use super::params::Params;
use super::problem::{Problem, Solution, Start, Status};
use super::{auto, certificate};
use crate::Result;
use crate::loss::LossKind;
use crate::presolve::Presolved;

/// Solves `problem` by way of `packed`, which was made from all its rows.
///
/// # Errors
/// [`crate::Error::Cancelled`] and [`crate::Error::Overflow`].
pub fn solve<'a>(
    problem: &Problem<'a>,
    packed: &Presolved,
    loss: LossKind,
    params: &Params,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    solve_from(problem, packed, loss, params, &Start::default(), monitor)
}

/// [`solve`] from a start on the packed columns.
///
/// # Errors
/// As for [`solve`].
pub fn solve_from<'a>(
    problem: &Problem<'a>,
    packed: &Presolved,
    loss: LossKind,
    params: &Params,
    start: &Start,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    let mut solution = solve_packed(problem, packed, loss, params, start, monitor)?;
    solution.w = packed.map_weights_back(&solution.w);
    solution.evidence = None; // that of the packed rows
    certificate::certify(problem, loss, &mut solution, params.tol, monitor)?;
    let is_certified = solution.certificate.relative_gap() <= params.tol;
    if is_certified {
        solution.status = Status::Converged;
    }
    if is_certified || solution.status != Status::Converged {
        return Ok(solution);
    }
    let start =
        Start { w: Some((solution.w, solution.intercept)), alpha: Some(solution.alpha), ..Start::default() };
    let mut finished = auto::solve(problem, loss, params, &start, monitor)?;
    finished.n_iter += solution.n_iter;
    finished.passes += solution.passes;
    Ok(finished)
}

fn solve_packed(
    problem: &Problem<'_>,
    packed: &Presolved,
    loss: LossKind,
    params: &Params,
    start: &Start,
    monitor: &dyn Monitor,
) -> Result<Solution> {
    let view = packed.view();
    let Problem { ids, y, cost, intercept, .. } = *problem;
    auto::solve_unproved(&Problem { rows: &view, ids, y, cost, intercept }, loss, params, start, monitor)
}
