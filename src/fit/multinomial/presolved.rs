//! A fit on packed columns, brought back to the caller's.
//!
//! Weights are mapped back class by class, the dual point is the same on both; the certificate is proved on
//! the caller's rows, and a fit that falls short of its tolerance there goes on there.

use super::point::Point;
use super::strips::Strips;
use super::{MultinomialSolution, Occasion, attempt, finish};
use crate::Result;
use crate::fit::crammer_singer::ClassProblem;
use crate::fit::monitor::Monitor;
use crate::fit::params::Params;
use crate::fit::problem::Intercept;
use crate::matrix::Rows;
use crate::presolve::Presolved;

/// Solves `problem` by way of `packed`, which was made from all its rows.
///
/// # Errors
/// As for [`super::solve`].
pub fn solve(
    problem: &ClassProblem<'_>,
    packed: &Presolved,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<MultinomialSolution> {
    let view = packed.view();
    let ClassProblem { ids, class, n_classes, cost, intercept, .. } = *problem;
    let there = ClassProblem { rows: &view, ids, class, n_classes, cost, intercept };
    let found = attempt(&there, Occasion::Model, params, monitor)?.point;
    let n_packed = view.n_cols();
    let is_penalised = matches!(intercept, Intercept::Penalised(_));
    let n_columns = problem.rows.n_cols();
    let mut w = Strips::zeros(n_columns + usize::from(is_penalised), found.offset.len());
    for k in 0..n_classes {
        let numbers = found.w.class(k);
        w.set_class(k, &packed.map_weights_back(&numbers[..n_packed]));
        if is_penalised {
            w.set(n_columns, k, numbers[n_packed]);
        }
    }
    let point = Point { w, ..found };
    finish(problem, point, params, monitor)
}
