//! Each class against the rest with a penalty other than the square, see [`crate::fit::penalised`]: all
//! problems read one copy of the data by columns.

use super::{Classification, check_row_count, check_weights, weighted_rows};
use crate::fit::penalised::{PenalisedProblem, PenalisedSolution, solve};
use crate::fit::{Intercept, Monitor, Params, Solution, SolverKind};
use crate::loss::LossKind;
use crate::matrix::columns::Columns;
use crate::matrix::design::Design;
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::penalty::{Penalty, Term};
use crate::{Result, parallel};

/// Data by columns with the penalty of each; the constant column of an intercept is the last one.
pub struct PenalisedColumns {
    /// The columns.
    pub columns: Columns,
    /// Their penalties and bounds.
    pub terms: Vec<Term>,
    /// Number of columns of the data themselves.
    n_cols: usize,
    /// Height of the constant column, 0 for none.
    bias: f64,
}

impl PenalisedColumns {
    /// Copies the data.
    ///
    /// # Errors
    /// Those of [`Penalty::check`].
    pub fn of(rows: &Matrix<'_>, intercept: Intercept, penalty: &Penalty) -> Result<Self> {
        let n_cols = rows.n_cols();
        penalty.check(n_cols)?;
        let (bias, term) = match intercept {
            Intercept::None => (0.0, None),
            Intercept::Free => (1.0, Some(Term::FREE)),
            Intercept::Penalised(scale) => (scale, Some(penalty.plain_term())),
        };
        let terms = (0..n_cols).map(|j| penalty.term(j)).chain(term).collect_large();
        Ok(Self { columns: Columns::of(&Design { rows, ids: None, bias }), terms, n_cols, bias })
    }

    /// The problem of labels and costs of all rows.
    pub fn problem<'a>(&'a self, y: &'a [f64], cost: &'a [f64]) -> PenalisedProblem<'a> {
        PenalisedProblem { columns: &self.columns, y, cost, terms: &self.terms }
    }

    /// Weights of the data's columns and the intercept, from those of all columns.
    pub fn split(&self, mut w: Vec<f64>) -> (Vec<f64>, f64) {
        let intercept = w.get(self.n_cols).map_or(0.0, |v| self.bias * v);
        w.truncate(self.n_cols);
        (w, intercept)
    }
}

/// Fits every binary problem.
///
/// # Errors
/// Those of the checks of the input and of [`solve`].
pub fn fit(
    data: &Classification<'_>,
    loss: LossKind,
    penalty: &Penalty,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<Vec<Solution>> {
    let Classification { rows, labels, cost, intercept } = *data;
    let n_rows = check_row_count(rows)?;
    labels.check(rows.n_rows())?;
    check_weights(cost, rows.n_rows())?;
    weighted_rows(labels, cost, 0..n_rows, "the training data")?;
    let all = PenalisedColumns::of(rows, intercept, penalty)?;
    let ids: Vec<u32> = (0..n_rows).collect_large();
    parallel::try_map(0..labels.n_problems(), |_, k| {
        let y = labels.signs(k, &ids);
        let found = solve(&all.problem(&y, cost), loss, params, None, monitor)?;
        let PenalisedSolution { w, certificate, status, n_iter, passes, .. } = found;
        let (w, intercept) = all.split(w);
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
    })
}
