//! Which solver for which shape.

use crate::fit::auto::{is_newtons, mean_diagonal};
use crate::fit::crammer_singer::ClassProblem;
use crate::fit::newton::factorisation::factorisation;
use crate::fit::params::{Params, SolverKind};
use crate::fit::routes::{EASY, PATIENCE_SOFTMAX, Patience};
use crate::loss::LossKind;
use crate::matrix::design::Design;

/// The choice.
pub struct MultinomialRoute {
    /// Whether the dual descent comes first.
    pub begins_with_descent: bool,
    /// When Newton takes over; `None` for never.
    pub patience: Option<Patience>,
}

impl MultinomialRoute {
    /// For a problem over `plain` rows; exact steps are Newton's.
    pub fn of(problem: &ClassProblem<'_>, plain: &Design<'_>, params: &Params, is_exact: bool) -> Self {
        let is_auto = params.solver == SolverKind::Auto;
        let is_newtons = params.solver == SolverKind::Newton
            || (is_auto && (is_exact || begins_with_newton(problem, plain)));
        Self { begins_with_descent: !is_newtons, patience: is_auto.then_some(PATIENCE_SOFTMAX) }
    }
}

/// Whether Newton is the better way for most problems of this shape and cost.
fn begins_with_newton(problem: &ClassProblem<'_>, plain: &Design<'_>) -> bool {
    is_newtons(plain, factorisation(plain), LossKind::Logistic) && mean_diagonal(plain, problem.cost) > EASY
}
