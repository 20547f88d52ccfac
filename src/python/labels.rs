//! Binding of [`crate::labels::sparse::fit`].

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{PyMatrix, collected};
use super::fit::{Ask, Facts, facts_dict, report_dict};
use super::options;
use super::options::FitOptions;
use super::run::run;
use crate::labels::sparse;
use crate::labels::sparse::{Indicator, LabelTask, SparseSolution};

/// Fits each label against the rest, its positive rows given as a column of an indicator matrix, and returns
/// sparse weights.
#[pyfunction]
#[pyo3(signature = (matrix, starts, rows, cost, options, drop, progress=None))]
#[allow(clippy::too_many_arguments)] // the arguments of one Python call
pub fn fit_labels<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    starts: PyReadonlyArray1<'py, i64>,
    rows: PyReadonlyArray1<'py, u32>,
    cost: PyReadonlyArray1<'py, f64>,
    options: FitOptions,
    drop: f64,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let indicator = Indicator { starts: starts.as_slice()?, rows: rows.as_slice()? };
    let cost = cost.as_slice()?;
    let ask = Ask::of(&options)?;
    let Ask { loss, intercept, params, .. } = ask;
    let slices = matrix.slices()?;
    let (solutions, report) = run(py, options.n_threads, progress.as_ref(), |monitor| {
        let (rows, structure) = slices.checked()?;
        let packed = ask.pack(&rows, &structure, cost, indicator.n_labels(), monitor)?;
        let mut found: Vec<Option<SparseSolution>> = vec![None; indicator.n_labels()];
        let task =
            LabelTask { rows: &rows.into(), packed: packed.as_ref(), cost, intercept, loss, params, drop };
        sparse::fit(&task, &indicator, monitor, &mut |label, solution| found[label] = Some(solution))?;
        Ok((found, packed.map(|packed| *packed.report())))
    })?;
    let solutions: Vec<SparseSolution> = solutions.into_iter().flatten().collect();
    let is_rounded =
        drop > 0.0 && solutions.iter().flat_map(|s| &s.values).all(|v| f64::from(*v as f32) == *v);
    let result = as_dict(py, solutions, is_rounded)?;
    result.set_item("presolve", report.map(|report| report_dict(py, &report)).transpose()?)?;
    Ok(result)
}

/// The model; with `is_rounded` its weights are numbers of single precision, and returned as such.
fn as_dict(py: Python<'_>, solutions: Vec<SparseSolution>, is_rounded: bool) -> PyResult<Bound<'_, PyDict>> {
    let facts = |s: &SparseSolution| {
        let SparseSolution { certificate, passes, n_iter, status, solver, .. } = *s;
        Facts { certificate, passes, n_iter, status, solver: options::solver_name(solver) }
    };
    let result = facts_dict(py, &solutions.iter().map(facts).collect::<Vec<_>>())?;
    let intercepts: Vec<f64> = solutions.iter().map(|s| s.intercept).collect();
    result.set_item("intercept", intercepts.into_pyarray(py))?;
    let ends = solutions.iter().scan(0, |end, solution| {
        *end += solution.columns.len() as i64;
        Some(*end)
    });
    let indptr = collected(py, std::iter::once(0).chain(ends))?;
    let indices = collected(py, solutions.iter().flat_map(|solution| &solution.columns).map(|j| *j as i32))?;
    let values = solutions.iter().flat_map(|solution| &solution.values).copied();
    let values = if is_rounded {
        collected(py, values.map(|v| v as f32))?.into_any()
    } else {
        collected(py, values)?.into_any()
    };
    result.set_item("coef", (indptr, indices, values))?;
    Ok(result)
}
