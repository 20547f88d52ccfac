//! Which solver for which shape.

use crate::fit::auto::prefers_lanes;
use crate::fit::crammer_singer::ClassProblem;
use crate::fit::newton::factorisation::{factorisation, is_small};
use crate::fit::params::{Params, SolverKind};
use crate::fit::routes::{EASY, PATIENCE_DIRECT, Patience, SLOW_CHECKS};
use crate::matrix::Rows;
use crate::matrix::design::Design;

/// The choice.
pub struct MultinomialRoute {
    /// Whether the dual descent comes first.
    pub begins_with_descent: bool,
    /// When Newton takes over; `None` for never.
    pub patience: Option<Patience>,
    /// Checks in a row that must find the descent slow.
    pub slow_checks: usize,
}

impl MultinomialRoute {
    /// For a problem over `plain` rows.
    pub fn of(problem: &ClassProblem<'_>, plain: &Design<'_>, params: &Params) -> Self {
        let is_auto = params.solver == SolverKind::Auto;
        let is_newtons = params.solver == SolverKind::Newton || (is_auto && is_newtons(problem, plain));
        let patience = is_auto.then_some(PATIENCE_DIRECT);
        Self { begins_with_descent: !is_newtons, patience, slow_checks: SLOW_CHECKS }
    }
}

/// Whether Newton is the better way for most problems of this shape and cost.
fn is_newtons(problem: &ClassProblem<'_>, plain: &Design<'_>) -> bool {
    if is_small(plain) {
        return true;
    }
    let suits = factorisation(plain).is_some_and(|f| f.is_worth_it) || prefers_lanes(plain);
    suits && !is_easy(problem, plain)
}

/// Whether costs are so small that the descent takes few epochs.
fn is_easy(problem: &ClassProblem<'_>, plain: &Design<'_>) -> bool {
    let total: f64 = (0..plain.n_rows()).map(|i| problem.cost[i] * plain.squared_norm(i)).sum();
    total <= EASY * plain.n_rows() as f64
}
