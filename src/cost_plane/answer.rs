//! The exact solution at one pair of costs, from the sets of its facet.
//!
//! The facet is one of the perturbed problem. A walk with fixed costs takes the perturbation back to zero;
//! what remains is a linear system, a clip of rounding and the certificate, computed on the data as given.
//! Should rounding stop the walk, dual coordinate descent finishes from where it stood. Either way the
//! returned gap is that of the unperturbed problem.

use super::keys::Side;
use super::margins::PerturbedProblem;
use super::walk::{CostLine, PathWalk};
use crate::fit::{Certificate, Intercept, Monitor, Params, Problem, SolverKind, Start, auto, certificate};
use crate::loss::LossKind;
use crate::matrix::design::Design;
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::{Error, Result, memory};

/// Changes of sets per row before a walk to the unperturbed problem is given up.
const STEPS_PER_ROW: usize = 20;
/// Perturbation of a margin at which a walk to the unperturbed problem ends: a hundred times rounding, so
/// that events still come one at a time. The last step to 0 changes the dual variables of M only.
const LAST: f64 = 3e-11;
/// Relative gap above which dual coordinate descent takes over.
const MAX_GAP: f64 = 1e-10;
/// Epochs of that descent.
const MAX_EPOCHS: usize = 100_000;

/// An exact solution.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Weights, one per column.
    pub w: Vec<f64>,
    /// Intercept on the scale of the decision value.
    pub intercept: f64,
    /// Dual variables, one per row.
    pub alpha: Vec<f64>,
    /// How good they are.
    pub certificate: Certificate,
    /// Changes of sets from the facet to here.
    pub steps: usize,
    /// Coordinate descent finished the answer.
    pub descended: bool,
}

/// The data of a path.
pub struct Data<'a> {
    /// The rows without constant column.
    pub rows: &'a Matrix<'a>,
    /// Labels in {-1, +1}.
    pub y: &'a [f64],
    /// Height of the constant column, 0 for none.
    pub bias: f64,
    /// The perturbation `eps_i`.
    pub perturbation: &'a [f64],
}

impl Clone for Data<'_> {
    fn clone(&self) -> Self {
        *self
    }
}
impl Copy for Data<'_> {}

impl<'a> Data<'a> {
    /// The rows with their constant column.
    pub fn design(&self) -> Design<'a> {
        Design { rows: self.rows, ids: None, bias: self.bias }
    }
}

/// Solves at `cost = (C+, C-)`, starting from the sets of the perturbed problem there.
///
/// # Errors
/// [`Error::Cancelled`]; [`Error::Overflow`].
pub fn answer(data: &Data<'_>, sides: &[Side], cost: [f64; 2], monitor: &dyn Monitor) -> Result<Answer> {
    let design = data.design();
    let largest = data.perturbation.iter().fold(0.0, |a: f64, &b| a.max(b));
    let last = if largest > LAST { LAST / largest } else { 0.0 };
    let end: Vec<f64> = data.perturbation.iter().map(|eps| last * eps).collect_large();
    let problem = PerturbedProblem { rows: &design, y: data.y, perturbation: [data.perturbation, &end] };
    let line = CostLine { cost: cost.map(|c| [c, 0.0]) };
    let mut walk = PathWalk::new(problem, line, 0.0, sides);
    match walk.run(100 + STEPS_PER_ROW * data.y.len(), monitor) {
        Ok(()) | Err(Error::Stalled { .. }) => {}
        Err(error) => return Err(error),
    }
    walk.settle();
    let mut alpha = walk.alphas();
    for (alpha, y) in alpha.iter_mut().zip(data.y) {
        *alpha = alpha.clamp(0.0, cost[usize::from(*y < 0.0)]);
    }
    certified(data, alpha, cost, walk.breakpoints.len(), monitor)
}

fn certified(
    data: &Data<'_>,
    alpha: Vec<f64>,
    cost: [f64; 2],
    steps: usize,
    monitor: &dyn Monitor,
) -> Result<Answer> {
    let costs: Vec<f64> = data.y.iter().map(|&y| cost[usize::from(y < 0.0)]).collect_large();
    let intercept = if data.bias == 0.0 { Intercept::None } else { Intercept::Penalised(data.bias) };
    let design = data.design();
    let mut w = memory::zeros(design.n_cols());
    for (i, alpha) in alpha.iter().enumerate() {
        if *alpha != 0.0 {
            design.add_scaled(i, alpha * data.y[i], &mut w);
        }
    }
    let b = if data.bias == 0.0 { 0.0 } else { data.bias * w.pop().unwrap_or(0.0) };
    let problem = Problem { rows: data.rows, ids: None, y: data.y, cost: &costs, intercept };
    let empty = Certificate { primal: 0.0, dual: 0.0 };
    let mut solution = crate::fit::Solution {
        w,
        intercept: b,
        alpha,
        certificate: empty,
        status: crate::fit::Status::Converged,
        n_iter: 0,
        passes: 0.0,
        solver: SolverKind::DualCd,
        is_consistent: true,
        evidence: None,
    };
    certificate::certify(&problem, LossKind::Hinge, &mut solution, MAX_GAP, monitor)?;
    if solution.certificate.relative_gap() <= MAX_GAP || cost.contains(&0.0) {
        let crate::fit::Solution { w, intercept, alpha, certificate, .. } = solution;
        return Ok(Answer { w, intercept, alpha, certificate, steps, descended: false });
    }
    let solver = SolverKind::DualCd;
    let params = Params { solver, tol: MAX_GAP, max_iter: MAX_EPOCHS, ..Params::default() };
    let start = Start { w: None, alpha: Some(memory::copy(&solution.alpha)), is_consistent: false };
    let better = auto::solve(&problem, LossKind::Hinge, &params, &start, monitor)?;
    let is_better = better.certificate.relative_gap() < solution.certificate.relative_gap();
    let crate::fit::Solution { w, intercept, alpha, certificate, .. } =
        if is_better { better } else { solution };
    Ok(Answer { w, intercept, alpha, certificate, steps, descended: true })
}

/// A certified fit at one pair of costs above 0, from dual variables if given: no facet involved.
///
/// # Errors
/// [`Error::Cancelled`]; [`Error::Overflow`]; [`Error::Parameter`] for costs that are not above 0.
pub fn fit(
    data: &Data<'_>,
    cost: [f64; 2],
    tol: f64,
    start: Option<Vec<f64>>,
    monitor: &dyn Monitor,
) -> Result<Answer> {
    if cost.iter().any(|c| !(*c > 0.0 && c.is_finite())) {
        let value = format!("({}, {})", cost[0], cost[1]);
        return Err(Error::Parameter { name: "costs", value, rule: "finite and above 0" });
    }
    let costs: Vec<f64> = data.y.iter().map(|&y| cost[usize::from(y < 0.0)]).collect_large();
    let intercept = if data.bias == 0.0 { Intercept::None } else { Intercept::Penalised(data.bias) };
    let problem = Problem { rows: data.rows, ids: None, y: data.y, cost: &costs, intercept };
    let solver = if start.is_some() { SolverKind::DualCd } else { SolverKind::Auto };
    let params = Params { solver, tol, max_iter: MAX_EPOCHS, ..Params::default() };
    let start = Start { w: None, alpha: start, is_consistent: false };
    let solution = auto::solve(&problem, LossKind::Hinge, &params, &start, monitor)?;
    let crate::fit::Solution { w, intercept, alpha, certificate, n_iter, .. } = solution;
    Ok(Answer { w, intercept, alpha, certificate, steps: n_iter, descended: true })
}
