//! Bindings of the multi-class fits: [`crate::labels::crammer_singer::fit`].

use numpy::{IntoPyArray, PyArrayMethods, PyReadonlyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{PyMatrix, Slices};
use super::fit::{Ask, Facts, facts_dict, report_dict};
use super::options;
use super::options::FitOptions;
use super::run::run;
use crate::blocks::AllOutcome;
use crate::fit::crammer_singer::ClassSolution;
use crate::fit::crammer_singer::weights::ClassWeights;
use crate::fit::{Monitor, SolverKind};
use crate::labels::{Labels, crammer_singer};
use crate::loss::LossKind;
use crate::matrix::Rows;
use crate::memory;
use crate::presolve::Report;
use crate::store::reader::Store;

/// Fits the machine of Crammer and Singer; two classes come back as one weight vector, the second less the
/// first.
#[pyfunction]
#[pyo3(signature = (matrix, class_ids, n_classes, cost, options, progress=None))]
pub fn fit_crammer_singer<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    class_ids: PyReadonlyArray1<'py, u32>,
    n_classes: u32,
    cost: PyReadonlyArray1<'py, f64>,
    options: FitOptions,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let labels = Labels { ids: class_ids.as_slice()?, n_classes };
    let cost = cost.as_slice()?;
    let ask = Ask { loss: LossKind::Hinge, ..Ask::of(&options)? };
    let slices = matrix.slices()?;
    let (solution, n_cols, report) = run(py, options.n_threads, progress.as_ref(), |monitor| {
        fit_slices(slices, &labels, cost, &ask, monitor)
    })?;
    let ClassSolution { weights, intercepts, certificate, passes, n_iter, status, .. } = &solution;
    let solver = options::solver_name(SolverKind::CrammerSinger);
    let facts =
        Facts { certificate: *certificate, passes: *passes, n_iter: *n_iter, status: *status, solver };
    as_dict(py, &Model { weights, intercepts, columns: &[], n_used: n_cols, n_cols }, facts, report.as_ref())
}

/// Fits all classes on a matrix, by way of the packed one where that pays.
pub fn fit_slices(
    slices: Slices<'_>,
    labels: &Labels<'_>,
    cost: &[f64],
    ask: &Ask<'_>,
    monitor: &dyn Monitor,
) -> crate::Result<(ClassSolution, usize, Option<Report>)> {
    let (rows, structure) = slices.checked()?;
    let packed = ask.pack(&rows, &structure, cost, labels.n_classes as usize, monitor)?;
    let packed_rows = packed.as_ref();
    let solution =
        crammer_singer::fit(&rows.into(), packed_rows, labels, cost, ask.intercept, &ask.params, monitor)?;
    Ok((solution, rows.n_cols(), packed.map(|packed| *packed.report())))
}

/// A model of all classes from a store.
pub fn of_store<'py>(
    py: Python<'py>,
    store: &Store,
    outcome: &AllOutcome,
    solver: &'static str,
    report: Option<&Report>,
) -> PyResult<Bound<'py, PyDict>> {
    let columns = py.detach(|| memory::catch(|| store.old_columns()))?;
    let AllOutcome { weights, intercepts, certificate, passes, n_iter, status, loads } = outcome;
    let facts =
        Facts { certificate: *certificate, passes: *passes, n_iter: *n_iter, status: *status, solver };
    let (n_used, n_cols) = (store.meta().n_used, store.meta().n_cols);
    let result =
        as_dict(py, &Model { weights, intercepts, columns: &columns, n_used, n_cols }, facts, report)?;
    result.set_item("loads", [*loads].to_pyarray(py))?;
    Ok(result)
}

/// Weights and what they are of.
struct Model<'a> {
    weights: &'a ClassWeights,
    intercepts: &'a [f64],
    /// The caller's column of the first columns of the weights; the others are the same.
    columns: &'a [u32],
    /// Columns of the weights.
    n_used: usize,
    /// Columns of the caller.
    n_cols: usize,
}

fn as_dict<'py>(
    py: Python<'py>,
    model: &Model<'_>,
    facts: Facts,
    report: Option<&Report>,
) -> PyResult<Bound<'py, PyDict>> {
    let Model { weights, intercepts: b, columns, n_used, n_cols } = *model;
    let (n_vectors, intercepts) = if b.len() == 2 { (1, vec![b[1] - b[0]]) } else { (b.len(), b.to_vec()) };
    let mut coef = memory::catch(|| Ok::<_, PyErr>(memory::zeros(n_vectors * n_cols)))?;
    for column in 0..n_used {
        let to = columns.get(column).map_or(column, |&to| to as usize);
        if n_vectors == 1 {
            // The second class less the first.
            coef[to] = weights.column(column).fold(0.0, |first, second| second - first);
        } else {
            weights.column(column).enumerate().for_each(|(class, w)| coef[class * n_cols + to] = w);
        }
    }
    let result = facts_dict(py, &[facts])?;
    result.set_item("coef", coef.into_pyarray(py).reshape([n_vectors, n_cols])?)?;
    result.set_item("intercept", intercepts.to_pyarray(py))?;
    result.set_item("presolve", report.map(|report| report_dict(py, report)).transpose()?)?;
    Ok(result)
}
