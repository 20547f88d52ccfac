//! Classes with a penalty other than the square, see [`crate::fit::penalised`]: each against the rest, where
//! all problems read one copy of the data by columns, or all as one problem.

use super::sparse::{self, Indicator, LabelTask, SparseSolution};
use super::{Classification, check_row_count, check_weights, weighted_rows};
use crate::fit::penalised::reach::Reach;
use crate::fit::penalised::softmax::{self, PenalisedClasses};
use crate::fit::penalised::{PenalisedProblem, PenalisedSolution, solve};
use crate::fit::{Certificate, Intercept, Monitor, Params, Solution, SolverKind, Status};
use crate::loss::LossKind;
use crate::matrix::columns::Columns;
use crate::matrix::design::Design;
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::penalty::{Penalty, Term};
use crate::{Error, Result, memory, parallel};

/// Data by columns with the penalty of each; the constant column of an intercept is the last one.
pub struct PenalisedColumns {
    /// The columns.
    pub columns: Columns,
    /// Their penalties and bounds,
    pub terms: Vec<Term>,
    /// and what they need to leave zero.
    reach: Option<Reach>,
    /// Number of columns of the data themselves.
    n_cols: usize,
    /// Height of the constant column, 0 for none.
    bias: f64,
}

impl PenalisedColumns {
    /// Copies the data.
    ///
    /// # Errors
    /// Those of [`Penalty::check`]; [`Error::Cancelled`].
    pub fn of(
        rows: &Matrix<'_>,
        intercept: Intercept,
        penalty: &Penalty,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        let n_cols = rows.n_cols();
        penalty.check(n_cols)?;
        let (bias, term) = match intercept {
            Intercept::None => (0.0, None),
            Intercept::Free => (1.0, Some(Term::FREE)),
            Intercept::Penalised(scale) => (scale, Some(penalty.plain_term())),
        };
        let terms = (0..n_cols).map(|j| penalty.term(j)).chain(term).collect_large();
        let design = Design { rows, ids: None, bias };
        let columns = Columns::unless_cancelled(&design, &|| monitor.cancelled())?;
        let reach = Reach::of(&columns, &terms);
        Ok(Self { columns, terms, reach, n_cols, bias })
    }

    /// The problem of labels and costs of all rows.
    pub fn problem<'a>(&'a self, y: &'a [f64], cost: &'a [f64]) -> PenalisedProblem<'a> {
        let Self { columns, terms, .. } = self;
        PenalisedProblem { columns, y, cost, terms, reach: self.reach.as_ref() }
    }

    /// The problem of all classes, one per row, and their costs.
    pub fn classes<'a>(
        &'a self,
        class: &'a [u32],
        n_classes: usize,
        cost: &'a [f64],
    ) -> PenalisedClasses<'a> {
        let Self { columns, terms, .. } = self;
        PenalisedClasses { columns, class, n_classes, cost, terms, reach: self.reach.as_ref() }
    }

    /// Solves the problem of labels and costs of all rows, from weights and intercept of `start` or zero.
    fn solve(
        &self,
        (y, cost): (&[f64], &[f64]),
        loss: LossKind,
        params: &Params,
        start: Option<(&[f64], f64)>,
        monitor: &dyn Monitor,
    ) -> Result<Solution> {
        let start = start.map(|(w, intercept)| self.all_weights(w, intercept));
        let found = solve(&self.problem(y, cost), loss, params, start.as_deref(), monitor)?;
        let PenalisedSolution { w, certificate, status, n_iter, passes, .. } = found;
        let (w, intercept) = self.split(&w);
        let w = memory::copy(w);
        let solver = SolverKind::WorkingSet;
        let (alpha, is_consistent, evidence) = (Vec::new(), false, None);
        Ok(Solution {
            w,
            intercept,
            alpha,
            certificate,
            status,
            n_iter,
            passes,
            solver,
            is_consistent,
            evidence,
        })
    }

    /// Weights of the data's columns and the intercept, from those of all columns.
    pub fn split<'w>(&self, w: &'w [f64]) -> (&'w [f64], f64) {
        let (w, constant) = w.split_at(self.n_cols);
        (w, constant.first().map_or(0.0, |v| self.bias * v))
    }

    /// Weights of all columns, from those of the data's columns and the intercept.
    fn all_weights(&self, w: &[f64], intercept: f64) -> Vec<f64> {
        let constant = (self.bias != 0.0).then(|| intercept / self.bias);
        w.iter().copied().chain(constant).collect_large()
    }

    /// As [`Self::split`] for each class, from the weights of one class after the other.
    pub fn split_classes<'w>(&self, w: &'w [f64], n_classes: usize) -> Vec<(&'w [f64], f64)> {
        let d = self.columns.len();
        (0..n_classes).map(|class| self.split(&w[class * d..][..d])).collect()
    }
}

/// Fits every binary problem, from its weights and intercept of `starts` or from zero.
///
/// # Errors
/// Those of the checks of the input and of [`solve`].
pub fn fit(
    data: &Classification<'_>,
    loss: LossKind,
    penalty: &Penalty,
    params: &Params,
    starts: Option<&[(&[f64], f64)]>,
    monitor: &dyn Monitor,
) -> Result<Vec<Solution>> {
    let Classification { rows, labels, cost, intercept } = *data;
    let n_rows = check(data)?;
    let all = PenalisedColumns::of(rows, intercept, penalty, monitor)?;
    let ids: Vec<u32> = (0..n_rows).collect_large();
    parallel::try_map(0..labels.n_problems(), |_, k| {
        let start = starts.map(|starts| starts[k]);
        all.solve((&labels.signs(k, &ids), cost), loss, params, start, monitor)
    })
}

/// Fits every label of an indicator, all by one copy of the data by columns; calls `keep(label, solution)` in
/// no particular order, from one thread at a time.
///
/// A label whose rows are all of one sign has, with a free intercept, the constant decision value of
/// [`sparse::fit`], unless bounds keep weights away from zero.
///
/// # Errors
/// Those of the checks of the input and of [`solve`]; [`Error::Parameter`] for such bounds and such a label
/// with the logistic loss, which has no minimum then.
pub fn fit_labels(
    task: &LabelTask<'_>,
    labels: &Indicator<'_>,
    penalty: &Penalty,
    monitor: &dyn Monitor,
    keep: &mut (dyn FnMut(usize, SparseSolution) + Send),
) -> Result<()> {
    let LabelTask { rows, cost, intercept, loss, ref params, .. } = *task;
    let n_counted = task.rows_that_count(labels)?.len();
    let all = PenalisedColumns::of(rows, intercept, penalty, monitor)?;
    let are_around_zero = all.terms.iter().all(|term| term.lower <= 0.0 && term.upper >= 0.0);
    let solve = |label: usize| {
        let mut y = memory::filled(-1.0, rows.n_rows());
        labels.positive(label).iter().for_each(|&i| y[i as usize] = 1.0);
        let count = labels.positive(label).iter().filter(|&&i| cost[i as usize] > 0.0).count();
        if intercept == Intercept::Free && (count == 0 || count == n_counted) {
            if are_around_zero {
                return Ok(sparse::constant(loss, if count == 0 { -1.0 } else { 1.0 }));
            }
            if !loss.can_be_zero() {
                let value = format!("without zero, and label {label} with {count} of {n_counted} rows");
                let rule = "around 0 where a label has no row or all of them and the intercept is free";
                return Err(Error::Parameter { name: "bounds", value, rule });
            }
        }
        Ok(SparseSolution::of(all.solve((&y, cost), loss, params, None, monitor)?))
    };
    sparse::each_alone(labels.n_labels(), solve, keep)
}

/// The answer to one problem of all classes.
#[derive(Clone, Debug)]
pub struct PenalisedSoftmax {
    /// Weights of each class.
    pub weights: Vec<Vec<f64>>,
    /// Intercepts on the scale of the scores.
    pub intercepts: Vec<f64>,
    /// How good they are.
    pub certificate: Certificate,
    /// How the fit ended.
    pub status: Status,
    /// Newton steps.
    pub n_iter: usize,
    /// Readings of the data.
    pub passes: f64,
}

/// Fits all classes as one problem with the softmax, from the weights and intercepts of `starts` or zero.
///
/// # Errors
/// Those of the checks of the input and of [`softmax::solve`].
pub fn fit_softmax(
    data: &Classification<'_>,
    penalty: &Penalty,
    params: &Params,
    starts: Option<&[(&[f64], f64)]>,
    monitor: &dyn Monitor,
) -> Result<PenalisedSoftmax> {
    let Classification { rows, labels, cost, intercept } = *data;
    check(data)?;
    let (all, n_classes) =
        (PenalisedColumns::of(rows, intercept, penalty, monitor)?, labels.n_classes as usize);
    let of_all = |starts: &[(&[f64], f64)]| -> Vec<f64> {
        starts.iter().flat_map(|(w, intercept)| all.all_weights(w, *intercept)).collect_large()
    };
    let start = starts.map(of_all);
    let found = softmax::solve(&all.classes(labels.ids, n_classes, cost), params, start.as_deref(), monitor)?;
    let classes = all.split_classes(&found.w, n_classes).into_iter();
    let (weights, intercepts) = classes.map(|(w, b)| (memory::copy(w), b)).unzip();
    let PenalisedSolution { certificate, status, n_iter, passes, .. } = found;
    Ok(PenalisedSoftmax { weights, intercepts, certificate, status, n_iter, passes })
}

/// Checks labels and weights; the number of rows.
fn check(data: &Classification<'_>) -> Result<u32> {
    let Classification { rows, labels, cost, .. } = *data;
    let n_rows = check_row_count(rows)?;
    labels.check(rows.n_rows())?;
    check_weights(cost, rows.n_rows())?;
    weighted_rows(labels, cost, 0..n_rows, "the training data")?;
    Ok(n_rows)
}
