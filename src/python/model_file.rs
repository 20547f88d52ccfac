//! Binding of [`crate::model::file`].

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use twox_hash::XxHash3_64;

use super::durable::replaced;
use super::model_parts::{Parts, parts_of};
use crate::memory;
use crate::model::Model;
use crate::model::file::{Precision, SaveOptions, Storage, save};

/// How a model is saved, by the facade's names.
pub fn save_options(dtype: Option<&str>, sparse: Option<bool>, overwrite: bool) -> PyResult<SaveOptions> {
    let precision = match dtype {
        None => None,
        Some("float32") => Some(Precision::Single),
        Some("float64") => Some(Precision::Double),
        Some(other) => return Err(PyValueError::new_err(format!("{other:?} is not a dtype of weights"))),
    };
    let storage = match sparse {
        None => Storage::AsIs,
        Some(true) => Storage::Sparse,
        Some(false) => Storage::Dense,
    };
    Ok(SaveOptions { precision, storage, replace: replaced(overwrite) })
}

/// Writes the parts of a model to a file. Weights are not copied unless `sparse` changes them.
#[pyfunction]
#[pyo3(signature = (parts, path, dtype=None, sparse=None, overwrite=false))]
pub fn save_model(
    py: Python<'_>,
    parts: Parts<'_>,
    path: PathBuf,
    dtype: Option<&str>,
    sparse: Option<bool>,
    overwrite: bool,
) -> PyResult<()> {
    let options = save_options(dtype, sparse, overwrite)?;
    let (rest, weights) = (parts.rest()?, parts.weights()?);
    py.detach(|| memory::catch(|| save(&rest, weights, &path, &options)))?;
    Ok(())
}

/// The parts of the model in a file.
#[pyfunction]
pub fn load_model(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let model = py.detach(|| memory::catch(|| Model::load(&path)))?;
    parts_of(py, &model)
}

/// The xxh3 checksum of some bytes.
#[pyfunction]
pub fn checksum(py: Python<'_>, bytes: &[u8]) -> u64 {
    py.detach(|| XxHash3_64::oneshot(bytes))
}
