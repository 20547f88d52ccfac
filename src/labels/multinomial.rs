//! A multinomial fit of a classification task: rows of weight zero left out, packed columns where given.

use super::{Classification, with_weighted_rows};
use crate::Result;
use crate::fit::multinomial::{self, MultinomialSolution};
use crate::fit::{Monitor, Params};
use crate::presolve::Presolved;

/// Fits all classes at once, by way of `packed`, the presolved rows, if given. Weights and the certificate
/// are those of the rows themselves.
///
/// # Errors
/// As for [`super::fit`].
pub fn fit(
    data: &Classification<'_>,
    packed: Option<&Presolved>,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<MultinomialSolution> {
    with_weighted_rows(data, |problem| match packed {
        Some(packed) => multinomial::presolved::solve(problem, packed, params, monitor),
        None => multinomial::solve(problem, params, monitor),
    })
}

/// [`fit`] by Newton steps from weights, those of one class after the other, and intercepts.
///
/// # Errors
/// As for [`super::fit`].
pub fn fit_from(
    data: &Classification<'_>,
    start: (&[f64], &[f64]),
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<MultinomialSolution> {
    with_weighted_rows(data, |problem| multinomial::go_on(problem, start, params, monitor))
}
