//! Multinomial logistic regression: all classes in one problem, exact and certified.
//!
//! ```text
//! primal   min_{W,b}  1/2 sum_k |w_k|^2 + sum_i c_i [log sum_k exp(w_k.x_i + b_k) - (w_{y_i}.x_i + b_{y_i})]
//! dual     max_p      sum_i c_i H(p_i) - 1/2 sum_k |w_k(p)|^2,      p_i in the simplex, H the entropy
//!          w_k(p) = sum_i c_i ([y_i = k] - p_ik) x_i
//! ```
//!
//! **Where the dual comes from.** `log sum_k exp(z_k)` is the maximum over the simplex of `p.z + H(p)`, taken
//! at `p = softmax(z)`. Put in, the primal is a minimum over `W` of a maximum over `p` of
//! `1/2 |W|^2 - <W, W(p)> - b.r(p) + sum_i c_i H(p_i)`, with `r_k(p) = sum_i c_i ([y_i = k] - p_ik)`;
//! exchanged, the minimum over `W` is at `W = W(p)`. What becomes of `b`:
//!
//! * none: there is no `b.r`;
//! * penalised, the weight of a constant column of height `s`: one column more in `W` and `x_i`;
//! * free: the minimum over `b` is minus infinity unless `r(p) = 0`, a constraint of the dual.
//!
//! **The gap.** At any `W, b` let `p` be the softmax of the scores. Then the maximum above is attained, so
//! that `sum_i c_i H(p_i)` equals the losses plus `<W, W(p)> + b.r(p)`, and with `r(p) = 0` where `b` is
//! free,
//!
//! ```text
//! primal - dual = 1/2 |W|^2 + 1/2 |W(p)|^2 - <W, W(p)> = 1/2 |W - W(p)|^2,
//! ```
//!
//! half the squared gradient with respect to `W`, as for two classes. `r(p) = 0` is the condition for `b` to
//! be optimal at `W`: so a free intercept is minimised over first, `K` unknowns for which no data are read
//! ([`balance`]). For any other dual point `p` at the same `W` the losses of the rows add
//! `sum_i c_i KL(p_i | softmax(z_i))`; with `W = W(p)`, as in the dual descent, that is the whole gap.
//!
//! The same shift of all intercepts changes nothing: their sum is 0, as for scikit-learn's lbfgs from zero.
//! The sum of the weights of a column over the classes is 0 by itself.
//!
//! **Solvers.** [`descent`]: coordinate descent in the dual, all classes of a row at a time, for wide text
//! and small costs; [`newton`]: truncated Newton in the primal with all classes side by side, where rows are
//! many to a column, and where the descent is slow. [`certificate`] proves what either has found. Newton
//! and the proof ask the rows by traits ([`source`], [`certificate::ProofRows`]): tables in memory answer
//! ([`tables`]), or the blocks of a store (`crate::blocks::softmax`).
//! [`presolved`]: by way of packed columns; [`start`]: from the end of a fit at smaller costs. Classes lie
//! side by side in cache lines ([`strips`]), so that one reading of an entry serves all.

pub mod balance;
pub mod certificate;
pub mod descent;
pub mod entropy;
pub mod intercepts;
pub mod newton;
pub mod passes;
pub mod point;
pub mod polish;
pub mod precondition;
pub mod presolved;
pub mod route;
pub mod shape;
pub mod softmax;
pub mod source;
pub mod start;
pub mod strips;
pub mod tables;

use self::certificate::RowsToProve;
use self::descent::Descent;
use self::newton::SoftmaxNewton;
use self::passes::Setup;
use self::point::Point;
use self::precondition::ClassPreconditioner;
use self::route::MultinomialRoute;
use self::shape::SoftmaxSizes;
use self::softmax::FAR;
use self::source::SoftmaxPasses;
use self::start::{DualStart, SoftmaxStart};
use self::tables::SoftmaxTables;
use super::crammer_singer::ClassProblem;
use super::crammer_singer::weights::{ClassWeights, LINE};
use super::dual;
use super::dual::active;
use super::dual::schedule::Schedule;
use super::monitor::{Monitor, Progress};
use super::newton::factorisation::is_small;
use super::params::Params;
use super::problem::{Certificate, Intercept, Status};
use super::routes::SLOW_CHECKS;
use crate::Result;
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::matrix::lanes::Block;

/// How often [`solve`] tries again, and the share of the tolerance that it then aims at.
pub const FURTHER_ATTEMPTS: usize = 2;
/// See there.
pub const SHARPER: f64 = 0.1;
/// Gap of a Newton iterate, in tolerances, from which a better dual point is looked for; and by how much it
/// must have fallen before that is tried again.
const POLISHED_FROM: f64 = 100.0;
const POLISHED_AGAIN: f64 = 0.2;

/// The answer.
#[derive(Clone, Debug)]
pub struct MultinomialSolution {
    /// Weights of the columns, class within column.
    pub weights: ClassWeights,
    /// Intercepts on the scale of the scores.
    pub intercepts: Vec<f64>,
    /// How good the weights are.
    pub certificate: Certificate,
    /// How the fit ended.
    pub status: Status,
    /// Epochs and Newton steps.
    pub n_iter: usize,
    /// Readings of the data.
    pub passes: f64,
}

/// What a fit is for.
enum Occasion {
    /// A model. Steps of small problems are exact, so that a row of weight 2 does what the row twice does.
    Model,
    /// A step of a search, from the end of the step before.
    Step(Option<SoftmaxStart>),
}

/// Where a solver has ended.
pub struct Found {
    /// The point.
    pub point: Point,
    /// How good it is: by the solver's own figures, or proved.
    pub certificate: Certificate,
}

/// Fits to the relative duality gap `params.tol` and proves it.
///
/// # Errors
/// [`crate::Error::Cancelled`] and [`crate::Error::Overflow`].
pub fn solve(
    problem: &ClassProblem<'_>,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<MultinomialSolution> {
    let found = attempt(problem, Occasion::Model, params, monitor)?;
    finish(problem, found.point, params, monitor)
}

/// The same by Newton steps from weights, those of one class after the other, and intercepts.
///
/// # Errors
/// As for [`solve`].
pub fn go_on(
    problem: &ClassProblem<'_>,
    (coef, intercepts): (&[f64], &[f64]),
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<MultinomialSolution> {
    let is_exact = is_small(&Design { rows: problem.rows, ids: problem.ids, bias: 0.0 });
    let start = Point::of_weights(problem, coef, intercepts);
    let found = newton_from(problem, Some(start), is_exact, params, monitor)?;
    finish(problem, found.point, params, monitor)
}

/// A step of a search, from the end of a fit of the same rows at smaller costs. Its accuracy is that of the
/// solver's own figures: to prove it would take another reading of the data.
///
/// # Errors
/// As for [`solve`].
pub fn solve_from(
    problem: &ClassProblem<'_>,
    start: Option<SoftmaxStart>,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<Found> {
    attempt(problem, Occasion::Step(start), params, monitor)
}

/// The rows as the certificate sees them: the constant column is that of a penalised intercept.
fn certified_setup<'a>(problem: &ClassProblem<'a>, monitor: &'a dyn Monitor) -> Setup<'a> {
    let bias = problem.intercept.penalised_height();
    Setup::new(problem, bias, monitor)
}

/// Height of the constant column of a descent.
fn descent_bias(problem: &ClassProblem<'_>) -> f64 {
    let plain = Design { rows: problem.rows, ids: problem.ids, bias: 0.0 };
    dual::constant_column(&plain, problem.cost, problem.intercept)
}

/// Proves a point; where rounding has made a solver believe in an accuracy that cannot be proved, Newton goes
/// on to a tenth of it.
fn finish(
    problem: &ClassProblem<'_>,
    mut point: Point,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<MultinomialSolution> {
    let setup = certified_setup(problem, monitor);
    let prove = |point: &mut Point| certificate::certify(&mut RowsToProve::new(&setup), point);
    let mut certificate = prove(&mut point)?;
    let mut tol = params.tol;
    for _ in 0..FURTHER_ATTEMPTS {
        let is_proved = certificate.relative_gap() <= params.tol;
        if is_proved || point.status != Status::Converged || point.n_iter >= params.max_iter {
            break;
        }
        tol *= SHARPER;
        let left = Params { tol, max_iter: params.max_iter - point.n_iter, ..*params };
        let is_exact = is_small(&Design { rows: problem.rows, ids: problem.ids, bias: 0.0 });
        point = newton_from(problem, Some(point), is_exact, &left, monitor)?.point;
        certificate = prove(&mut point)?;
    }
    let status = match point.status {
        _ if certificate.relative_gap() <= params.tol => Status::Converged,
        Status::Converged => Status::Stalled,
        other => other,
    };
    Ok(MultinomialSolution {
        weights: point.w.class_weights(problem.rows.n_cols(), problem.n_classes),
        intercepts: point.intercepts(problem),
        certificate,
        status,
        n_iter: point.n_iter,
        passes: point.passes,
    })
}

/// One run of the solver that the shape asks for.
fn attempt(
    problem: &ClassProblem<'_>,
    occasion: Occasion,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<Found> {
    let plain = Design { rows: problem.rows, ids: problem.ids, bias: 0.0 };
    let (start, is_exact) = match occasion {
        Occasion::Model => (None, is_small(&plain)),
        Occasion::Step(start) => (start, false),
    };
    let route = MultinomialRoute::of(problem, &plain, params, is_exact);
    let certified = certified_setup(problem, monitor);
    // Where Newton has ended the fit at smaller costs, this one is not easier for the descent.
    let follows_newton = matches!(start, Some(SoftmaxStart::Weights(..))) && route.patience.is_some();
    if !route.begins_with_descent || follows_newton {
        let start = start.map(|start| start.into_point(&certified)).transpose()?;
        return newton_from(problem, start, is_exact, params, monitor);
    }
    let start = start.map(|start| start.into_dual(&certified)).transpose()?;
    let mut descent = Descent::new(Setup::new(problem, descent_bias(problem), monitor), certified);
    let mut schedule = Schedule::new(start.as_ref().map_or(0.0, |start| start.value));
    if let Some(DualStart { w, offset, logits, .. }) = start {
        descent.start_at(&w, &offset, logits);
        descent.passes += 0.5;
        // Small costs move so little that the start may do.
        let check = descent.check(params.tol)?;
        if check.certificate.relative_gap() <= params.tol {
            return Ok(descent.into_found(check, Status::Converged, 0));
        }
    }
    let mut random = active::random(params.seed, 0);
    let mut slow = 0;
    loop {
        let epoch = descent.epoch(&mut random)?;
        schedule.record(&epoch, problem.class.len());
        let is_last = schedule.epochs >= params.max_iter;
        if !schedule.is_due(params.tol) && !is_last {
            continue;
        }
        let check = descent.check(params.tol)?;
        let gap = check.certificate.relative_gap();
        monitor.observe(&Progress {
            solver: "multinomial",
            iteration: schedule.iterations(),
            accuracy: gap,
            search: None,
        });
        let epochs = schedule.epochs;
        if gap <= params.tol {
            return Ok(descent.into_found(check, Status::Converged, epochs));
        }
        if is_last {
            return Ok(descent.into_found(check, Status::MaxIter, epochs));
        }
        let remaining = schedule.checked(&check.certificate, params.tol);
        let is_slow = route.patience.is_some_and(|patience| patience.is_over(schedule.work, remaining));
        slow = if is_slow { slow + 1 } else { 0 };
        if slow >= SLOW_CHECKS {
            let point = descent.into_found(check, Status::Stalled, epochs).point;
            let left = Params { max_iter: params.max_iter - epochs, ..*params };
            return newton_from(problem, Some(point), is_exact, &left, monitor);
        }
    }
}

/// Newton from a point, or from zero.
fn newton_from(
    problem: &ClassProblem<'_>,
    start: Option<Point>,
    is_exact: bool,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<Found> {
    let is_free = problem.intercept == Intercept::Free;
    let rows = SoftmaxTables::new(Setup::new(problem, problem.intercept.bias(), monitor));
    let preconditioner = ClassPreconditioner::new(&rows);
    let mut newton = SoftmaxNewton::new(rows, preconditioner, is_exact);
    let (mut before, mut passes) = (0, 0.0);
    if let Some(point) = &start {
        newton.start_at(&point.w, &point.offset);
        (before, passes) = (point.n_iter, point.passes);
        newton.refresh()?;
    }
    let (status, logits, certificate) = newton_steps(&mut newton, params)?;
    let mut offset = newton.rows.shape().row(FAR);
    newton.intercepts(&mut offset);
    let SoftmaxNewton { mut w, course, rows, .. } = newton;
    if is_free {
        w.drop_last_column();
    }
    let (n_iter, passes) = (before + course.steps, passes + rows.readings());
    let point = Point { w, offset, logits, status, n_iter, passes, is_of_descent: false };
    Ok(Found { point, certificate })
}

/// Newton steps until the gap is at most `params.tol`, by the softmax as dual point or by a better one, which
/// is returned.
fn newton_steps(
    newton: &mut SoftmaxNewton<SoftmaxTables<'_>>,
    params: &Params,
) -> Result<(Status, Option<Block<LINE>>, Certificate)> {
    if newton.is_exact {
        // A better dual point would depend on the order of the rows, and so would the last step.
        let status = newton.minimise(params.tol, params.max_iter)?;
        return Ok((status, None, newton.certificate()));
    }
    let mut target = POLISHED_FROM * params.tol;
    loop {
        let status = newton.minimise(target.max(params.tol), params.max_iter)?;
        let gap = newton.certificate().relative_gap();
        if status != Status::Converged || gap <= params.tol {
            return Ok((status, None, newton.certificate()));
        }
        let polished = polish::polish(newton, params.seed)?;
        newton.rows.add_readings(polished.passes);
        let both = Certificate { primal: newton.certificate().primal, dual: polished.value };
        if both.relative_gap() <= params.tol {
            return Ok((Status::Converged, Some(polished.logits), both));
        }
        target = gap * POLISHED_AGAIN;
    }
}

#[cfg(test)]
mod tests;
