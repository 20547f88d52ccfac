//! Binding of [`crate::model::file`].

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Map, Value};

use super::durable::replaced;
use super::model_parts::Parts;
use super::predictor::NativeModel;
use crate::memory;
use crate::model::Model;
use crate::model::file::{Precision, SaveOptions, Storage, WeightSlices, save};

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
pub fn save_parts(
    py: Python<'_>,
    parts: Parts<'_>,
    path: PathBuf,
    dtype: Option<&str>,
    sparse: Option<bool>,
    overwrite: bool,
) -> PyResult<()> {
    let options = save_options(dtype, sparse, overwrite)?;
    let (rest, weights) = (parts.rest()?, parts.weights()?);
    py.detach(|| memory::catch(|| save(&rest, weights, &rest.record.metadata, &path, &options)))?;
    Ok(())
}

/// Writes a model to a file, with its own metadata or with others, in JSON.
#[pyfunction]
#[pyo3(signature = (model, path, dtype=None, sparse=None, overwrite=false, metadata=None))]
pub fn save_model(
    py: Python<'_>,
    model: Bound<'_, NativeModel>,
    path: PathBuf,
    dtype: Option<&str>,
    sparse: Option<bool>,
    overwrite: bool,
    metadata: Option<&str>,
) -> PyResult<()> {
    let options = save_options(dtype, sparse, overwrite)?;
    let metadata: Option<Map<String, Value>> = metadata
        .map(serde_json::from_str)
        .transpose()
        .map_err(|error| PyValueError::new_err(format!("metadata: {error}")))?;
    let model = model.get().inner.clone();
    py.detach(|| {
        memory::catch(|| {
            let model = model.model();
            model.weights.verify()?;
            let metadata = metadata.as_ref().unwrap_or(&model.record.metadata);
            save(model, WeightSlices::of(&model.weights), metadata, &path, &options)
        })
    })?;
    Ok(())
}

/// The model in a file.
#[pyfunction]
pub fn load_model(py: Python<'_>, path: PathBuf) -> PyResult<NativeModel> {
    NativeModel::of(py.detach(|| memory::catch(|| Model::load(&path)))?)
}
