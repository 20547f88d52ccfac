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
    let view = packed.view();
    let mut solution =
        auto::solve_unproved(&Problem { rows: &view, ..*problem }, loss, params, start, monitor)?;
    take_back(&mut solution, packed);
    certificate::certify(problem, loss, &mut solution, params.tol, monitor)?;
    finish(problem, loss, params, solution, monitor)
}

/// [`solve`] for problems of the same rows and costs, at most [`classes_at_once`] of them.
///
/// # Errors
/// As for [`solve`].
pub fn solve_classes<'a>(
    problems: &[Problem<'a>],
    packed: &Presolved,
    loss: LossKind,
    params: &Params,
    monitor: &'a dyn Monitor,
) -> Result<Vec<Solution>> {
    let view = packed.view();
    let of_packed: Vec<Problem<'_>> = problems.iter().map(|p| Problem { rows: &view, ..*p }).collect();
    let mut solutions = auto::solve_classes_unproved(&of_packed, loss, params, monitor)?;
    solutions.iter_mut().for_each(|solution| take_back(solution, packed));
    certificate::certify_classes(problems, loss, &mut solutions, params.tol, monitor)?;
    let all = problems.iter().zip(solutions);
    all.map(|(problem, solution)| finish(problem, loss, params, solution, monitor)).collect()
}

/// [`auto::classes_at_once`] by way of `packed`.
pub fn classes_at_once(
    problem: &Problem<'_>,
    packed: &Presolved,
    n_problems: usize,
    loss: LossKind,
    params: &Params,
) -> usize {
    auto::classes_at_once(&Problem { rows: &packed.view(), ..*problem }, n_problems, loss, params)
}

/// Makes a solution on the packed columns one on the caller's.
fn take_back(solution: &mut Solution, packed: &Presolved) {
    solution.w = packed.map_weights_back(&solution.w);
    solution.evidence = None; // that of the packed rows
}

/// Finishes a fit on the caller's rows where it has not reached its tolerance there.
fn finish<'a>(
    problem: &Problem<'a>,
    loss: LossKind,
    params: &Params,
    mut solution: Solution,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
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
