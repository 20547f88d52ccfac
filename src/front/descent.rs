//! Subgradient descent ([`crate::fit::baselines::subgradient`]) on a matrix or a store.

use super::outcome::Outcome;
use super::source::{Checked, Source, Targets};
use super::spec::Spec;
use crate::blocks::{self, BinaryTask};
use crate::fit::baselines::subgradient::{self, Evaluation, SubgradientOptions, SubgradientState};
use crate::fit::{Monitor, Problem, Solution, Status, certificate};
use crate::labels::{self, Classification, Labels};
use crate::loss::LossKind;
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::presolve::Presolved;
use crate::{Error, Result, parallel};

/// Passes that a descent is taken to make, for the choice of presolve.
const EXPECTED_PASSES: f64 = 60.0;

/// Descends on each problem. Beside the models it returns the evaluations on the way.
/// Of `spec` count loss, intercept and presolve.
///
/// # Errors
/// As for [`crate::fit()`], and those of the caller's step lengths.
pub fn descend(
    source: &Source<'_>,
    targets: &Targets<'_>,
    cost: &[f64],
    spec: &Spec,
    options: &SubgradientOptions<'_>,
    monitor: &dyn Monitor,
) -> Result<(Outcome, Vec<Vec<Evaluation>>)> {
    match (source, targets) {
        (Source::Rows(data), Targets::Classes(labels)) => {
            descend_on_rows(data, labels, cost, spec, options, monitor)
        }
        (Source::Store(store, settings), Targets::Stored) => {
            let tasks = BinaryTask::one_against_rest(store.classes().len(), cost)?;
            let (loss, intercept, budget) = (spec.loss, spec.intercept, settings.budget);
            let found = blocks::subgradient::fit(store, &tasks, loss, intercept, options, budget, monitor)?;
            let (found, looks) = found.into_iter().map(|found| (found.outcome, found.looks)).unzip();
            Ok((Outcome::of_blocks(found, store.meta().n_cols, "subgradient"), looks))
        }
        _ => Err(Error::Labels { reason: "a descent is on the classes of rows or of a store".into() }),
    }
}

fn descend_on_rows(
    data: &Checked<'_>,
    labels: &Labels<'_>,
    cost: &[f64],
    spec: &Spec,
    options: &SubgradientOptions<'_>,
    monitor: &dyn Monitor,
) -> Result<(Outcome, Vec<Vec<Evaluation>>)> {
    let packed = data.pack(spec.presolve, EXPECTED_PASSES, labels.n_problems(), monitor)?;
    let rows = Matrix::from(data.rows);
    let all = Classification { rows: &rows, labels, cost, intercept: spec.intercept };
    let found = labels::fit_each(&all, options.seed, |problem, _, seed| {
        descend_one(problem, packed.as_ref(), spec.loss, &SubgradientOptions { seed, ..*options }, monitor)
    })?;
    let (solutions, looks) = found.into_iter().unzip();
    Ok((Outcome::of_solutions(solutions, rows.n_cols(), packed.as_ref()), looks))
}

/// Descends on the packed columns where there are any; the certificate is proved on the caller's rows,
/// whatever rounding the packed ones have.
fn descend_one(
    problem: &Problem<'_>,
    packed: Option<&Presolved>,
    loss: LossKind,
    options: &SubgradientOptions<'_>,
    monitor: &dyn Monitor,
) -> Result<(Solution, Vec<Evaluation>)> {
    let view = packed.map(Presolved::view);
    let there = Problem { rows: view.as_ref().unwrap_or(problem.rows), ..*problem };
    let (mut solution, looks) = subgradient::solve(&there, loss, options, monitor)?;
    if let Some(packed) = packed {
        solution.w = packed.map_weights_back(&solution.w);
    }
    certificate::certify(problem, loss, &mut solution, options.tol, monitor)?;
    if solution.status == Status::Converged && solution.certificate.relative_gap() > options.tol {
        solution.status = Status::Stalled;
    }
    Ok((solution, looks))
}

/// One pass over further rows for each problem, from `states`; `cost` adds up to `1 / lambda`, rows of cost 0
/// are left out.
///
/// # Errors
/// As for [`descend`].
pub fn advance(
    data: &Checked<'_>,
    labels: &Labels<'_>,
    cost: &[f64],
    spec: &Spec,
    options: &SubgradientOptions<'_>,
    states: &[SubgradientState],
    monitor: &dyn Monitor,
) -> Result<Vec<SubgradientState>> {
    let rows = Matrix::from(data.rows);
    data.structure.check_solvable()?;
    labels.check(rows.n_rows())?;
    labels::check_weights(cost, rows.n_rows())?;
    let n_rows = labels::check_row_count(&rows)?;
    let ids: Vec<u32> = (0..n_rows).filter(|&i| cost[i as usize] > 0.0).collect_large();
    let cost: Vec<f64> = ids.iter().map(|&i| cost[i as usize]).collect_large();
    parallel::try_map(states, |k, state| {
        let y = labels.signs(k, &ids);
        let intercept = spec.intercept;
        let problem = Problem { rows: &rows, ids: Some(&ids), y: &y, cost: &cost, intercept };
        let options = SubgradientOptions { seed: options.seed.wrapping_add(k as u64), ..*options };
        subgradient::advance(&problem, spec.loss, &options, state, monitor)
    })
}
