//! A fit on packed columns, brought back to the caller's: the dual variables are the same on both.
//!
//! The fit on the caller's rows starts from the dual variables of the packed one, which takes a pass to make
//! their weights and one for the certificate; it goes on only where rounding of the packed values asks for
//! more.

use super::problem::{ClassProblem, ClassSolution, ClassStart};
use super::{certify, solve as solve_plain};
use crate::Result;
use crate::fit::monitor::Monitor;
use crate::fit::params::Params;
use crate::fit::problem::Status;
use crate::presolve::Presolved;

/// Solves `problem` by way of `packed`, which was made from all its rows.
///
/// # Errors
/// As for [`super::solve`].
pub fn solve(
    problem: &ClassProblem<'_>,
    packed: &Presolved,
    params: &Params,
    threads: usize,
    monitor: &dyn Monitor,
) -> Result<ClassSolution> {
    let view = packed.view();
    let ClassProblem { ids, class, n_classes, cost, intercept, .. } = *problem;
    let there = ClassProblem { rows: &view, ids, class, n_classes, cost, intercept };
    let found = solve_plain(&there, params, &ClassStart::default(), threads, monitor)?;
    let start = ClassStart { alpha: Some(found.alpha), intercepts: Some(found.intercepts), factor: None };
    let is_out_of_steps = found.n_steps > 0 && found.status != Status::Converged;
    let left = params.max_iter.saturating_sub(found.n_iter);
    let params =
        Params { max_iter: if found.status == Status::Converged { left.max(1) } else { 0 }, ..*params };
    // Epochs of the descent would only lead away from where Newton steps have ended.
    let mut finished = match is_out_of_steps {
        true => certify(problem, &start, found.status, monitor)?,
        false => solve_plain(problem, &params, &start, threads, monitor)?,
    };
    finished.n_iter += found.n_iter;
    finished.n_steps += found.n_steps;
    finished.passes += found.passes;
    Ok(finished)
}
