//! Binding of [`crate::select::search`].

use std::sync::Mutex;

use numpy::{PyArray1, PyReadonlyArray1, ToPyArray};
use pyo3::prelude::*;

use super::arrays::{Matrix, with_presolved_rows};
use super::options::{self, FitOptions};
use super::run::{callback_error, run, unwrap_callback};
use crate::Result;
use crate::multiclass::Labels;
use crate::select::{self, Fold, Settings, Step};
use crate::solver::Monitor;

/// The first `C` of a search: lower bound of Chu15, rounded down to a power of two.
#[pyfunction]
pub fn lower_bound(loss: &str, weight: f64, max_squared_norm: f64) -> PyResult<f64> {
    Ok(select::lower_bound(options::loss(loss)?, weight, max_squared_norm))
}

/// Limits of a search, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Range {
    c_min: Option<f64>,
    c_max: f64,
    ratio: f64,
}

/// Searches for `C`. `visit(c, decisions, passes, n_iter, unchanged, converged)` is called after each value with the held-out
/// decision values per fold; it returns whether to go on.
#[pyfunction]
#[pyo3(signature = (matrix, class_ids, n_classes, weight, folds, options, range, visit, progress=None))]
#[allow(clippy::too_many_arguments)] // the arguments of one Python call
pub fn search<'py>(
    py: Python<'py>,
    matrix: Matrix<'py>,
    class_ids: PyReadonlyArray1<'py, u32>,
    n_classes: u32,
    weight: PyReadonlyArray1<'py, f64>,
    folds: Vec<(PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u32>)>,
    options: FitOptions,
    range: Range,
    visit: Bound<'py, PyAny>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let labels = Labels { ids: class_ids.as_slice()?, n_classes };
    let weight = weight.as_slice()?;
    let folds = folds
        .iter()
        .map(|(train, test)| Ok(Fold { train: train.as_slice()?.to_vec(), test: test.as_slice()?.to_vec() }))
        .collect::<PyResult<Vec<_>>>()?;
    let settings = settings(&options, &range)?;
    let mode = options::presolve(&options.presolve, f64::INFINITY, labels.n_problems())?;
    let failed = Mutex::new(None);
    let visit = visit.unbind();
    let call = |step: Step| -> Result<bool> {
        Python::attach(|py| call_visit(py, &visit, &step)).map_err(|error| callback_error(error, &failed))
    };
    let slices = matrix.slices()?;
    let result = run(py, options.n_threads, progress.as_ref(), |monitor| {
        with_presolved_rows!(slices, mode, monitor, |rows| {
            select::search(&rows, &labels, weight, &folds, &settings, monitor, call)
        })
    });
    unwrap_callback(result, &failed)
}

fn settings(options: &FitOptions, range: &Range) -> Result<Settings> {
    Ok(Settings {
        loss: options::loss(&options.loss)?,
        intercept: options::intercept(options.intercept)?,
        solver: options::solver(&options.solver)?,
        tol: options.tol,
        max_iter: options.max_iter,
        seed: options.seed,
        c_min: range.c_min,
        c_max: range.c_max,
        ratio: range.ratio,
    })
}

fn call_visit(py: Python<'_>, visit: &Py<PyAny>, step: &Step) -> PyResult<bool> {
    let decisions: Vec<Bound<'_, PyArray1<f64>>> = step.decisions.iter().map(|d| d.to_pyarray(py)).collect();
    visit.call1(py, (step.c, decisions, step.passes, step.n_iter, step.is_unchanged, step.is_converged))?.extract(py)
}
