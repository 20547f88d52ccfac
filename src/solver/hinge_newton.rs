//! Newton for the hinge: a proximal (augmented Lagrangian) sequence of smooth problems.
//!
//! Around dual variables `a` the hinge of row `i` is replaced by
//!
//! ```text
//! f_i(m) = max_{0 <= t <= c_i}  t (1 - m) - (t - a_i)^2 / (2 sigma c_i)
//! ```
//!
//! which has the derivative `-t(m)`, `t(m) = clip(a_i + sigma c_i (1 - m), 0, c_i)`, and curvature `sigma c_i` strictly
//! inside the box. With the factor `c_i` a row of cost 2 and two rows of cost 1 take the same path. [`super::newton`]
//! minimises the sum, `a <- t(m)` follows, and `sigma` grows: a proximal point method on the dual that
//! ends after finitely many steps for a piecewise quadratic (Rockafellar, Augmented Lagrangians and applications of the
//! proximal point algorithm, 1976; the Newton matrix `I + sigma X_J'C_J X_J` needs the rows `J` inside the box only). Where rows
//! outnumber columns this beats coordinate descent by far at large `C`; where columns outnumber rows it does not.

use super::newton::Newton;
use super::objective::Objective;
use super::stop::Stop;
use super::sweep::sum;
use super::{Certificate, Monitor, Params, Problem, Progress, Solution, Start, Status};
use crate::Result;
use crate::data::Rows;
use crate::data::block::Block;

/// Growth of sigma per outer step. Tried: 10 takes up to three times the Newton steps and stalls on w8a at C = 16.
const GROWTH: f64 = 3.0;
/// The first sigma at most: the smoothed corner is `1 / sigma` wide on the margin axis. Between 1e-4 and 1 the number of
/// Newton steps hardly depends on it (german, a9a, w8a, covtype, C from 2^-8 to 2^8).
const FIRST: f64 = 0.1;
/// The first smooth problem has a Hessian of at most about this mean eigenvalue, or at huge `C` the first steps zigzag between
/// walls instead of following them.
const FIRST_CURVATURE: f64 = 1e3;
/// A smooth problem is solved until `1/2 |g|^2`, its share of the duality gap, is this part of the gap before it.
const INNER: f64 = 0.03;
/// Newton steps of one smooth problem before it is given up and sigma falls.
const MAX_INNER: usize = 50;
/// Outer steps without a smaller gap after which the limit of double precision is reached.
const MAX_IDLE: usize = 10;

/// The smoothed hinge around `alpha`.
struct Smoothed<'a> {
    y: &'a [f64],
    cost: &'a [f64],
    alpha: &'a [f64],
    sigma: f64,
}

impl Smoothed<'_> {
    #[inline(always)]
    fn unclipped(&self, i: usize, m: f64) -> f64 {
        self.alpha[i] + self.sigma * self.cost[i] * (1.0 - m)
    }
}

impl Objective<1> for Smoothed<'_> {
    #[inline(always)]
    fn value(&self, i: usize, z: &[f64; 1]) -> [f64; 1] {
        let [value, _, _] = self.all(i, z);
        value
    }
    #[inline(always)]
    fn all(&self, i: usize, z: &[f64; 1]) -> [[f64; 1]; 3] {
        let m = self.y[i] * z[0];
        let unclipped = self.unclipped(i, m);
        let t = unclipped.clamp(0.0, self.cost[i]);
        let moved = t - self.alpha[i];
        let value = t * (1.0 - m) - moved * moved / (2.0 * self.sigma * self.cost[i]);
        let is_inside = 0.0 < unclipped && unclipped < self.cost[i];
        [[value], [-self.y[i] * t], [if is_inside { self.sigma * self.cost[i] } else { 0.0 }]]
    }
}

/// Fits the hinge loss to the relative duality gap `params.tol`. `max_iter` limits the Newton steps of all smooth problems
/// together.
///
/// # Errors
/// Those of [`Newton::minimise`].
pub fn solve<'a, R: Rows>(
    problem: &Problem<'a, R>,
    params: &Params,
    start: &Start,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    let cost = problem.cost;
    let total: f64 = cost.iter().sum();
    let mut newton = Newton::<R, 1>::new(problem, 1, true, monitor);
    let mut alpha: Vec<f64> = match &start.alpha {
        Some(alpha) => alpha.iter().zip(cost).map(|(a, c)| a.clamp(0.0, *c)).collect(),
        None => vec![0.0; cost.len()],
    };
    newton.start_at(start);
    let mut best =
        Point { certificate: Certificate { primal: total, dual: 0.0 }, w: newton.w.clone(), alpha: alpha.clone() };
    let mut sigma = first_sigma(problem);
    let (mut share, mut steps, mut idle) = (INNER, 0, 0);
    let status = loop {
        let gap = best.certificate.primal - best.certificate.dual;
        let inner = (share * gap).max(0.1 * params.tol * best.certificate.dual);
        let smoothed = Smoothed { y: problem.y, cost, alpha: &alpha, sigma };
        let budget = MAX_INNER.min(params.max_iter - steps);
        newton.objective_changed();
        let [report] = newton.minimise(&smoothed, 1.0, &Stop::Gradient([(2.0 * inner).sqrt()]), budget)?;
        steps += report.steps;
        alpha = newton.alpha(problem.y);
        newton.refresh();
        monitor.poll()?;
        let certificate = certify(problem, &newton, &alpha);
        let accuracy = certificate.relative_gap();
        monitor.observe(&Progress { solver: "newton", iteration: steps, accuracy, place: None });
        if certificate.relative_gap() < best.certificate.relative_gap() || steps == 0 {
            best = Point { certificate, w: newton.w.clone(), alpha: alpha.clone() };
            idle = 0;
        } else {
            share *= INNER;
            idle += 1;
        }
        if best.certificate.relative_gap() <= params.tol {
            break Status::Converged;
        }
        if idle >= MAX_IDLE {
            break Status::Stalled;
        }
        if steps >= params.max_iter {
            break Status::MaxIter;
        }
        // A problem too hard for its budget is followed by an easier one around the new alpha.
        sigma *= if report.status == Status::Converged { GROWTH } else { 1.0 / GROWTH };
    };
    newton.w = best.w;
    let mut solution = newton.into_solution(problem, best.certificate, status, steps);
    solution.alpha = best.alpha;
    Ok(solution)
}

fn first_sigma<R: Rows>(problem: &Problem<'_, R>) -> f64 {
    let design = problem.design(0.0);
    let [curvature] = sum(problem.cost.len(), |i| [problem.cost[i] * design.squared_norm(i)]);
    FIRST.min(FIRST_CURVATURE * design.n_cols() as f64 / curvature.max(f64::MIN_POSITIVE))
}

/// The best point so far.
struct Point {
    certificate: Certificate,
    w: Block<1>,
    alpha: Vec<f64>,
}

/// Hinge objective at the solver's weights and intercept, and dual value of `alpha`, for which `w(alpha) = -h`.
fn certify<R: Rows>(problem: &Problem<'_, R>, newton: &Newton<'_, R, 1>, alpha: &[f64]) -> Certificate {
    let (y, cost, z) = (problem.y, problem.cost, &newton.z);
    let [loss, linear] = sum(cost.len(), |i| [cost[i] * (1.0 - y[i] * z[i][0]).max(0.0), alpha[i]]);
    let [products] = newton.products(1.0);
    Certificate { primal: 0.5 * products.ww + loss, dual: linear - 0.5 * products.hh }
}
