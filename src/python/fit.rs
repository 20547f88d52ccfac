//! Binding of [`crate::multiclass::fit`].

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Matrix, with_narrowest, with_rows};
use super::options::{self, FitOptions};
use super::poly2::check_mapped;
use super::run::run;
use crate::data::Rows;
use crate::data::poly2::Poly2;
use crate::data::presolve::{Packable, Report};
use crate::multiclass::{self, Labels};
use crate::solver::{Monitor, Params, Solution, Status, auto};

/// Checks a matrix; returns (some row holds a column twice, largest squared norm of a row).
#[pyfunction]
pub fn check(py: Python<'_>, matrix: Matrix<'_>) -> PyResult<(bool, f64)> {
    let slices = matrix.slices()?;
    run(py, 1, None, |_| {
        with_rows!(slices, |_rows, structure| Ok((structure.has_duplicates, structure.max_squared_norm)))
    })
}

/// Fits one binary problem per class (one in all for two classes).
#[pyfunction]
#[pyo3(signature = (matrix, class_ids, n_classes, cost, options, progress=None))]
pub fn fit<'py>(
    py: Python<'py>,
    matrix: Matrix<'py>,
    class_ids: PyReadonlyArray1<'py, u32>,
    n_classes: u32,
    cost: PyReadonlyArray1<'py, f64>,
    options: FitOptions,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let labels = Labels { ids: class_ids.as_slice()?, n_classes };
    let cost = cost.as_slice()?;
    let loss = options::loss(&options.loss)?;
    let intercept = options::intercept(options.intercept)?;
    let params = Params {
        solver: options::solver(&options.solver)?,
        tol: options.tol,
        max_iter: options.max_iter,
        seed: options.seed,
    };
    let slices = matrix.slices()?;
    let mean_cost = cost.iter().sum::<f64>() / cost.len().max(1) as f64;
    let (solutions, n_cols, report) = run(py, options.n_threads, progress.as_ref(), |monitor| {
        if let Some(map) = &options.map {
            let (rows, structure) = slices.any()?;
            let map = map.map(rows.n_cols())?;
            check_mapped(&structure, &map)?;
            let rows = Poly2::new(rows, &map)?;
            let solutions = multiclass::fit(&rows, &labels, cost, intercept, loss, &params, monitor)?;
            return Ok((solutions, rows.n_cols(), None));
        }
        with_rows!(slices, |rows, structure| {
            structure.check_solvable()?;
            let passes = auto::expected_passes(loss, mean_cost, structure.max_squared_norm, params.tol);
            let mode = options::presolve(&options.presolve, passes, labels.n_problems())?;
            let packed = rows.pack(&structure, mode, &|| monitor.cancelled())?;
            let solutions = match &packed {
                Some(packed) => {
                    multiclass::fit_presolved(&rows, packed, &labels, cost, intercept, loss, &params, monitor)?
                }
                None => with_narrowest!(rows, |narrow| {
                    multiclass::fit(&narrow, &labels, cost, intercept, loss, &params, monitor)?
                }),
            };
            Ok((solutions, rows.n_cols(), packed.map(|packed| *packed.report())))
        })
    })?;
    let result = as_dict(py, &solutions, n_cols)?;
    result.set_item("presolve", report.map(|report| report_dict(py, &report)).transpose()?)?;
    Ok(result)
}

pub fn report_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    for (name, count) in [
        ("n_features_in", report.columns_in),
        ("n_columns", report.columns_out),
        ("nnz_in", report.nonzeros_in),
        ("nnz_out", report.nonzeros_out),
        ("n_merged", report.merged),
        ("n_merged_alone", report.merged_alone),
        ("n_dropped", report.dropped),
    ] {
        result.set_item(name, count)?;
    }
    Ok(result)
}

pub fn as_dict<'py>(py: Python<'py>, solutions: &[Solution], n_cols: usize) -> PyResult<Bound<'py, PyDict>> {
    let column = |f: fn(&Solution) -> f64| -> Bound<'py, PyArray1<f64>> {
        solutions.iter().map(f).collect::<Vec<_>>().to_pyarray(py)
    };
    let coef = PyArray2::<f64>::zeros(py, (solutions.len(), n_cols), false);
    {
        let mut writable = coef.try_readwrite()?;
        let target = writable.as_slice_mut()?;
        for (row, solution) in target.chunks_exact_mut(n_cols.max(1)).zip(solutions) {
            row.copy_from_slice(&solution.w);
        }
    }
    let result = PyDict::new(py);
    result.set_item("coef", coef)?;
    result.set_item("intercept", column(|s| s.intercept))?;
    result.set_item("primal", column(|s| s.certificate.primal))?;
    result.set_item("dual", column(|s| s.certificate.dual))?;
    result.set_item("relative_gap", column(|s| s.certificate.relative_gap()))?;
    result.set_item("passes", column(|s| s.passes))?;
    result.set_item("n_iter", solutions.iter().map(|s| s.n_iter).collect::<Vec<_>>())?;
    result.set_item("status", solutions.iter().map(|s| status_name(s.status)).collect::<Vec<_>>())?;
    result.set_item("solver", solutions.iter().map(|s| options::solver_name(s.solver)).collect::<Vec<_>>())?;
    Ok(result)
}

/// Name of a status.
pub(super) fn status_name(status: Status) -> &'static str {
    match status {
        Status::Converged => "converged",
        Status::MaxIter => "max_iter",
        Status::Stalled => "stalled",
    }
}
