//! A Crammer-Singer fit of a classification task: rows of weight zero left out, packed columns where given.

use super::{Classification, with_weighted_rows};
use crate::Result;
use crate::fit::crammer_singer::{ClassSolution, ClassStart};
use crate::fit::{Monitor, Params, crammer_singer};
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
) -> Result<ClassSolution> {
    let threads = rayon::current_num_threads();
    with_weighted_rows(data, |problem| match packed {
        Some(packed) => crammer_singer::presolved::solve(problem, packed, params, threads, monitor),
        None => crammer_singer::solve(problem, params, &ClassStart::default(), threads, monitor),
    })
}
