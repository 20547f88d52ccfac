//! Binding of [`crate::model::liblinear`]: models of LIBLINEAR, and numbers as C prints them.

use std::path::PathBuf;

use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::durable::replaced;
use super::model_parts::Parts;
use super::predictor::NativeModel;
use crate::memory;
use crate::model::Model;
use crate::model::liblinear::{self, ClassOrder, SolverType, WriteOptions, decimal};

/// The model of a file; `as_in_file` keeps the order of its labels.
#[pyfunction]
#[pyo3(signature = (path, as_in_file=false))]
pub fn load_liblinear(py: Python<'_>, path: PathBuf, as_in_file: bool) -> PyResult<NativeModel> {
    let order = if as_in_file { ClassOrder::AsInFile } else { ClassOrder::Sorted };
    NativeModel::of(py.detach(|| memory::catch(|| liblinear::read(&path, order)))?)
}

/// What is written: a model, or the parts of one.
#[derive(FromPyObject)]
pub enum Written<'py> {
    Model(PyRef<'py, NativeModel>),
    Parts(Parts<'py>),
}

/// Writes a model file. `solver` is the name of a solver type, None chooses; `labels` are the classes in the
/// order of the file.
#[pyfunction]
#[pyo3(signature = (model, path, solver=None, labels=None, overwrite=false))]
pub fn save_liblinear(
    py: Python<'_>,
    model: Written<'_>,
    path: PathBuf,
    solver: Option<&str>,
    labels: Option<Vec<i64>>,
    overwrite: bool,
) -> PyResult<()> {
    let of_name = |name: &str| {
        let unknown = || PyValueError::new_err(format!("{name:?} is no solver type of LIBLINEAR"));
        SolverType::of_name(name).ok_or_else(unknown)
    };
    let options =
        WriteOptions { solver: solver.map(of_name).transpose()?, labels, replace: replaced(overwrite) };
    let save = |model: &Model| py.detach(|| memory::catch(|| liblinear::save(model, &path, &options)));
    match model {
        Written::Model(model) => save(model.inner.model())?,
        Written::Parts(parts) => save(&parts.model()?)?,
    }
    Ok(())
}

/// Numbers as C's `%.<precision>g` prints them, `per_line` of them in a line, with a blank between two.
#[pyfunction]
pub fn print_numbers<'py>(
    py: Python<'py>,
    numbers: PyReadonlyArray1<'py, f64>,
    precision: usize,
    per_line: usize,
) -> PyResult<Bound<'py, PyBytes>> {
    let (numbers, mut out) = (numbers.as_slice()?, Vec::new());
    py.detach(|| {
        for line in numbers.chunks(per_line.max(1)) {
            for (k, number) in line.iter().enumerate() {
                if k > 0 {
                    out.push(b' ');
                }
                decimal::push(&mut out, *number, precision.clamp(1, 17));
            }
            out.push(b'\n');
        }
    });
    Ok(PyBytes::new(py, &out))
}
