//! Binding of [`crate::text::read`].

use std::path::PathBuf;

use numpy::{Element, IntoPyArray, PyArray1};
use pyo3::prelude::*;

use super::run::run;
use crate::fit::Monitor;
use crate::text::{IndexBase, Indices, ReadOptions, SvmlightData, TextValue};
use crate::{Error, text};

/// A file as Python gets it: indptr, indices, values, number of columns, labels, queries.
pub(super) type SvmlightArrays<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyAny>,
    Bound<'py, PyAny>,
    usize,
    Bound<'py, PyArray1<f64>>,
    Option<Bound<'py, PyArray1<i64>>>,
);

/// Reads a file. `zero_based` is None for "auto", `dtype` is "float32" or "float64"; the arrays are moved,
/// not copied.
#[pyfunction]
#[pyo3(signature = (path, n_features, zero_based, dtype, n_threads))]
pub fn load_svmlight<'py>(
    py: Python<'py>,
    path: PathBuf,
    n_features: Option<usize>,
    zero_based: Option<bool>,
    dtype: &str,
    n_threads: usize,
) -> PyResult<SvmlightArrays<'py>> {
    let options = ReadOptions { base: base_of(zero_based), n_features };
    match dtype {
        "float32" => read_as::<f32>(py, path, &options, n_threads),
        "float64" => read_as::<f64>(py, path, &options, n_threads),
        _ => Err(unknown(dtype).into()),
    }
}

/// The base of the indices; `None` is "auto".
pub(super) fn base_of(zero_based: Option<bool>) -> IndexBase {
    match zero_based {
        None => IndexBase::Auto,
        Some(true) => IndexBase::Zero,
        Some(false) => IndexBase::One,
    }
}

fn unknown(dtype: &str) -> Error {
    Error::Parameter { name: "dtype", value: format!("{dtype:?}"), rule: "'float32' or 'float64'" }
}

fn read_as<'py, V: TextValue + Element>(
    py: Python<'py>,
    path: PathBuf,
    options: &ReadOptions,
    n_threads: usize,
) -> PyResult<SvmlightArrays<'py>> {
    let data = run(py, n_threads, None, |monitor| text::read::<V>(&path, options, &|| monitor.cancelled()))?;
    Ok(svmlight_arrays(py, data))
}

/// Moves the arrays of a file, or of a piece of one, to Python.
pub(super) fn svmlight_arrays<V: TextValue + Element>(
    py: Python<'_>,
    data: SvmlightData<V>,
) -> SvmlightArrays<'_> {
    let indices = match data.indices {
        Indices::Narrow(list) => list.into_pyarray(py).into_any(),
        Indices::Wide(list) => list.into_pyarray(py).into_any(),
    };
    (
        data.indptr.into_pyarray(py),
        indices,
        data.values.into_pyarray(py).into_any(),
        data.n_cols,
        data.labels.into_pyarray(py),
        data.qid.map(|qid| qid.into_pyarray(py)),
    )
}
