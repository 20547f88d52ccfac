//! Binding of [`crate::fit()`]: a matrix or a store in, a model out.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::PyMatrix;
use super::blocks::BlockOptions;
use super::options::FitOptions;
use super::outcome::as_dict;
use super::run::run;
use super::store::StoreReader;
use crate::front::{Source, Targets};
use crate::labels::Labels;
use crate::labels::sparse::Indicator;

/// Checks a matrix; returns (some row holds a column twice, largest squared norm of a row).
#[pyfunction]
pub fn check(py: Python<'_>, matrix: PyMatrix<'_>) -> PyResult<(bool, f64)> {
    let slices = matrix.slices()?;
    run(py, 1, None, |_| {
        let structure = slices.checked()?.structure;
        Ok((structure.has_duplicates, structure.max_squared_norm))
    })
}

/// Fits one binary problem per class (one in all for two classes), or all classes at once; two classes come
/// back as one vector, the second less the first.
#[pyfunction]
#[pyo3(signature = (matrix, class_ids, n_classes, cost, options, progress=None))]
pub fn fit<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    class_ids: PyReadonlyArray1<'py, u32>,
    n_classes: u32,
    cost: PyReadonlyArray1<'py, f64>,
    options: FitOptions,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let targets = Targets::Classes(Labels { ids: class_ids.as_slice()?, n_classes });
    let (slices, cost, spec) = (matrix.slices()?, cost.as_slice()?, options.spec()?);
    let outcome = run(py, options.n_threads, progress.as_ref(), |monitor| {
        crate::fit(&Source::Rows(slices.checked()?), &targets, cost, &spec, monitor)
    })?;
    as_dict(py, outcome, false)
}

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
    let (slices, cost, spec) = (matrix.slices()?, cost.as_slice()?, options.spec()?);
    let outcome = run(py, options.n_threads, progress.as_ref(), |monitor| {
        let source = Source::Rows(slices.checked()?);
        crate::fit(&source, &Targets::Sets { indicator, drop }, cost, &spec, monitor)
    })?;
    as_dict(py, outcome, drop > 0.0)
}

/// Fits on the rows of a store. `cost` is C times the class weight by class.
#[pyfunction]
#[pyo3(signature = (reader, cost, options, blocks, progress=None))]
pub fn fit_store<'py>(
    py: Python<'py>,
    reader: &Bound<'py, StoreReader>,
    cost: PyReadonlyArray1<'py, f64>,
    options: FitOptions,
    blocks: BlockOptions,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let source = Source::Store(&reader.get().store, blocks.resolve()?);
    let (cost, spec) = (cost.as_slice()?, options.spec()?);
    let outcome = run(py, options.n_threads, progress.as_ref(), |monitor| {
        crate::fit(&source, &Targets::Stored, cost, &spec, monitor)
    })?;
    as_dict(py, outcome, false)
}
