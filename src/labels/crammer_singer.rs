//! A Crammer-Singer fit of a classification task: rows of weight zero left out, packed columns where given.

use super::{Classification, check_row_count, check_weights, weighted_rows};
use crate::Result;
use crate::fit::crammer_singer::{ClassProblem, ClassSolution, ClassStart};
use crate::fit::{Monitor, Params, crammer_singer};
use crate::matrix::Rows;
use crate::memory::CollectLarge;
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
    let Classification { rows, labels, cost, intercept } = *data;
    let n_rows = check_row_count(rows)?;
    labels.check(rows.n_rows())?;
    check_weights(cost, rows.n_rows())?;
    let chosen = weighted_rows(labels, cost, 0..n_rows, "the training data")?;
    let cost: Vec<f64> = chosen.iter().map(|&i| cost[i as usize]).collect_large();
    let class: Vec<u32> = chosen.iter().map(|&i| labels.ids[i as usize]).collect_large();
    let ids = (chosen.len() < rows.n_rows()).then_some(chosen.as_slice());
    let problem = ClassProblem {
        rows,
        ids,
        class: &class,
        n_classes: labels.n_classes as usize,
        cost: &cost,
        intercept,
    };
    let threads = rayon::current_num_threads();
    match packed {
        Some(packed) => crammer_singer::presolved::solve(&problem, packed, params, threads, monitor),
        None => crammer_singer::solve(&problem, params, &ClassStart::default(), threads, monitor),
    }
}
