//! The certificate of a solution on given rows, whoever found it and wherever: two passes over the rows.
//!
//! Primal value of the weights and the intercept, dual value of the dual variables. With a free intercept the dual variables
//! are first moved onto their constraint ([`dual_on_constraint`]).

use super::sweep::{Sweep, dot, sum};
use super::{Certificate, Intercept, Monitor, Problem, Solution, finite};
use crate::Result;
use crate::data::Rows;
use crate::loss::{Hinge, Logistic, Loss, LossKind, SquaredHinge};

/// Number of readings of the data that [`certify`] takes.
pub const PASSES: f64 = 2.0;

/// Primal and dual value of `solution` for the rows of `problem`; its own certificate is not looked at.
///
/// # Errors
/// [`crate::Error::Cancelled`] and [`crate::Error::Overflow`].
pub fn certify<R: Rows>(
    problem: &Problem<'_, R>,
    loss: LossKind,
    solution: &Solution,
    monitor: &dyn Monitor,
) -> Result<Certificate> {
    match loss {
        LossKind::Hinge => certify_loss(problem, Hinge, solution, monitor),
        LossKind::SquaredHinge => certify_loss(problem, SquaredHinge, solution, monitor),
        LossKind::Logistic => certify_loss(problem, Logistic, solution, monitor),
    }
}

fn certify_loss<R: Rows, L: Loss>(
    problem: &Problem<'_, R>,
    loss: L,
    solution: &Solution,
    monitor: &dyn Monitor,
) -> Result<Certificate> {
    let Problem { y, .. } = *problem;
    let Solution { w, intercept, alpha, .. } = solution;
    let mut sweep = Sweep::new(problem.design(0.0), monitor);
    let primal = primal_of(problem, loss, &sweep, w, *intercept, monitor)?;
    let signed: Vec<f64> = alpha.iter().zip(y).map(|(a, y)| a * y).collect();
    let mut dual_w = vec![0.0; sweep.design.n_cols()];
    sweep.weighted_sum(&signed, &mut dual_w);
    monitor.poll()?;
    let dual = match problem.intercept {
        Intercept::Free => dual_on_constraint(problem, loss, alpha, dual_w),
        Intercept::None => dual_value(problem, loss, alpha, &dual_w, 0.0),
        Intercept::Penalised(scale) => {
            let [total] = sum(y.len(), |i| [signed[i]]);
            dual_value(problem, loss, alpha, &dual_w, scale * total)
        }
    };
    Ok(Certificate { primal, dual })
}

/// Primal value of any weights and intercept for the rows of `problem`: one reading of the data.
///
/// # Errors
/// As for [`certify`].
pub fn primal<R: Rows>(
    problem: &Problem<'_, R>,
    loss: LossKind,
    w: &[f64],
    intercept: f64,
    monitor: &dyn Monitor,
) -> Result<f64> {
    let sweep = Sweep::new(problem.design(0.0), monitor);
    match loss {
        LossKind::Hinge => primal_of(problem, Hinge, &sweep, w, intercept, monitor),
        LossKind::SquaredHinge => primal_of(problem, SquaredHinge, &sweep, w, intercept, monitor),
        LossKind::Logistic => primal_of(problem, Logistic, &sweep, w, intercept, monitor),
    }
}

fn primal_of<R: Rows, L: Loss>(
    problem: &Problem<'_, R>,
    loss: L,
    sweep: &Sweep<'_, R>,
    w: &[f64],
    intercept: f64,
    monitor: &dyn Monitor,
) -> Result<f64> {
    let Problem { y, cost, .. } = *problem;
    let penalised = if let Intercept::Penalised(scale) = problem.intercept { intercept / scale } else { 0.0 };
    let mut margins = vec![0.0; y.len()];
    sweep.margins(y, w, &mut margins);
    monitor.poll()?;
    let [losses] = sum(y.len(), |i| [cost[i] * loss.value(margins[i] + y[i] * intercept)]);
    finite("objective", 0.5 * (dot(w, w) + penalised * penalised) + losses, &sweep.design)
}

/// Dual value of `alpha` with weights `w` and the weight `constant` of a constant column.
fn dual_value<R, L: Loss>(problem: &Problem<'_, R>, loss: L, alpha: &[f64], w: &[f64], constant: f64) -> f64 {
    let [terms] = sum(alpha.len(), |i| [loss.dual_term(problem.cost[i], alpha[i])]);
    terms - 0.5 * (dot(w, w) + constant * constant)
}

/// Dual value of a copy of `alpha` moved onto `sum y_i a_i = 0` by scaling down variables of the heavier sign: those well
/// inside the box if they suffice (their gradient is small, so the value hardly falls), else all. `w` is
/// `sum_i y_i a_i x_i`.
pub fn dual_on_constraint<R: Rows, L: Loss>(problem: &Problem<'_, R>, loss: L, alpha: &[f64], mut w: Vec<f64>) -> f64 {
    let Problem { y, cost, .. } = *problem;
    let [excess] = sum(y.len(), |i| [y[i] * alpha[i]]);
    let is_inside = |i: usize| alpha[i] < (1.0 - 1e-9) * cost[i];
    let [inside, all] = sum(y.len(), |i| {
        let a = if y[i] * excess > 0.0 { alpha[i] } else { 0.0 };
        [if is_inside(i) { a } else { 0.0 }, a]
    });
    let use_inside = inside > 2.0 * excess.abs();
    let factor = if excess == 0.0 { 0.0 } else { (excess.abs() / if use_inside { inside } else { all }).min(1.0) };
    let rows = problem.design(0.0);
    let mut dual = 0.0;
    for i in 0..y.len() {
        let mut a = alpha[i];
        if factor > 0.0 && y[i] * excess > 0.0 && a > 0.0 && (!use_inside || is_inside(i)) {
            let cut = factor * a;
            a -= cut;
            rows.add_scaled(i, -cut * y[i], &mut w);
        }
        dual += loss.dual_term(cost[i], a);
    }
    dual - 0.5 * dot(&w, &w)
}
