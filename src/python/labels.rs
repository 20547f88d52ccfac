//! Bindings of [`crate::multiclass::labels::fit`] and [`crate::multiclass::scores`].

use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Matrix, with_rows};
use super::fit::{Ask, Facts, facts_dict, report_dict};
use super::options::{self, FitOptions};
use super::run::run;
use crate::multiclass::labels::{self, Indicator, SparseSolution, Task};
use crate::multiclass::scores::{ByColumn, Model};

/// Fits each label against the rest, its positive rows given as a column of an indicator matrix, and returns sparse weights.
#[pyfunction]
#[pyo3(signature = (matrix, starts, rows, cost, options, drop, progress=None))]
#[allow(clippy::too_many_arguments)] // the arguments of one Python call
pub fn fit_labels<'py>(
    py: Python<'py>,
    matrix: Matrix<'py>,
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
        with_rows!(slices, |x, structure| {
            let packed = ask.pack(&x, &structure, cost, indicator.n_labels(), monitor)?;
            let mut found: Vec<Option<SparseSolution>> = vec![None; indicator.n_labels()];
            let task = Task { rows: &x, packed: packed.as_ref(), cost, intercept, loss, params, drop };
            labels::fit(&task, &indicator, monitor, &mut |label, solution| found[label] = Some(solution))?;
            Ok((found, packed.map(|packed| *packed.report())))
        })
    })?;
    let solutions: Vec<SparseSolution> = solutions.into_iter().flatten().collect();
    let is_rounded = drop > 0.0 && solutions.iter().flat_map(|s| &s.values).all(|v| f64::from(*v as f32) == *v);
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
    let nnz = solutions.iter().map(|s| s.columns.len()).sum();
    let (mut indptr, mut indices) = (vec![0i64], Vec::<i32>::with_capacity(nnz));
    for solution in &solutions {
        indices.extend(solution.columns.iter().map(|j| *j as i32));
        indptr.push(indices.len() as i64);
    }
    let values = solutions.into_iter().flat_map(|solution| solution.values);
    let values = if is_rounded {
        values.map(|v| v as f32).collect::<Vec<_>>().into_pyarray(py).into_any()
    } else {
        values.collect::<Vec<_>>().into_pyarray(py).into_any()
    };
    result.set_item("coef", (indptr.into_pyarray(py), indices.into_pyarray(py), values))?;
    Ok(result)
}

/// A model as Python has it: transposed dense weights, or the sparse ones by column of the data.
#[derive(FromPyObject)]
pub enum Weights<'py> {
    Dense(PyReadonlyArray2<'py, f64>),
    Sparse((PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f64>)),
}

impl Weights<'_> {
    fn model<'a>(&'a self, intercept: &'a [f64]) -> PyResult<Model<'a>> {
        let weights = match self {
            Self::Dense(w) => ByColumn::Dense(w.as_slice()?),
            Self::Sparse((starts, labels, values)) => {
                ByColumn::Sparse { starts: starts.as_slice()?, labels: labels.as_slice()?, values: values.as_slice()? }
            }
        };
        Ok(Model { weights, intercept })
    }
}

type Top<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray2<f64>>);

/// The `k` labels with the highest decision values of each row, highest first, and these values.
#[pyfunction]
pub fn top_k<'py>(
    py: Python<'py>,
    matrix: Matrix<'py>,
    weights: Weights<'py>,
    intercept: PyReadonlyArray1<'py, f64>,
    k: usize,
    n_threads: usize,
) -> PyResult<Top<'py>> {
    let model = weights.model(intercept.as_slice()?)?;
    let slices = matrix.slices()?;
    let (labels, values) = run(py, n_threads, None, |monitor| model.top_k(&slices.any()?.0, k, monitor))?;
    let shape = [labels.len() / k.max(1), k];
    Ok((labels.into_pyarray(py).reshape(shape)?, values.into_pyarray(py).reshape(shape)?))
}

/// Decision values of all labels, row after row.
#[pyfunction]
pub fn decision_values<'py>(
    py: Python<'py>,
    matrix: Matrix<'py>,
    weights: Weights<'py>,
    intercept: PyReadonlyArray1<'py, f64>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let model = weights.model(intercept.as_slice()?)?;
    let slices = matrix.slices()?;
    let n_labels = model.intercept.len();
    let values = run(py, n_threads, None, |monitor| model.decisions(&slices.any()?.0, monitor))?;
    let n_rows = values.len() / n_labels.max(1);
    values.into_pyarray(py).reshape([n_rows, n_labels])
}
