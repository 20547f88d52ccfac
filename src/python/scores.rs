//! Bindings of [`crate::labels::scores`]: predictions from weights as they lie in `coef_`.

use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;

use super::arrays::{IndexArray, Pointers, PyMatrix, with_pieces};
use super::run::run;
use crate::fit::{Monitor, Silent};
use crate::labels::inverted_index::InvertedIndex;
use crate::labels::scores::{FloatSlice, ModelWeights, Scorer};
use crate::matrix::pieces::Finite;
use crate::memory;

/// Where the entries of each column of a CSR matrix of weights lie; checked when it is made.
#[pyclass(name = "ColumnIndex", frozen, module = "hinge._native")]
pub struct PyColumnIndex {
    inner: InvertedIndex,
}

#[pymethods]
impl PyColumnIndex {
    #[new]
    fn new(
        py: Python<'_>,
        indptr: Pointers<'_>,
        indices: IndexArray<'_>,
        n_columns: usize,
    ) -> PyResult<Self> {
        let indptr = indptr.as_slice()?;
        let inner = match &indices {
            IndexArray::Narrow(indices) => {
                let indices = indices.as_slice()?;
                py.detach(|| memory::catch(|| InvertedIndex::new(indptr, indices, n_columns)))?
            }
            IndexArray::Wide(indices) => {
                let indices = indices.as_slice()?;
                py.detach(|| memory::catch(|| InvertedIndex::new(indptr, indices, n_columns)))?
            }
        };
        Ok(Self { inner })
    }
}

/// Weights as they lie in `coef_`: an array of either order, or a CSR matrix as the index of its columns and
/// its values.
#[derive(FromPyObject)]
pub enum Coef<'py> {
    DenseF64(PyReadonlyArray2<'py, f64>),
    DenseF32(PyReadonlyArray2<'py, f32>),
    SparseF64((Py<PyColumnIndex>, PyReadonlyArray1<'py, f64>)),
    SparseF32((Py<PyColumnIndex>, PyReadonlyArray1<'py, f32>)),
}

impl Coef<'_> {
    fn weights(&self) -> PyResult<ModelWeights<'_>> {
        let dense = |is_c: bool, w| if is_c { ModelWeights::ByLabel(w) } else { ModelWeights::ByColumn(w) };
        let sparse = |index, values| ModelWeights::Sparse { index, values, gathered: None };
        Ok(match self {
            Self::DenseF64(w) => dense(w.is_c_contiguous(), FloatSlice::F64(w.as_slice()?)),
            Self::DenseF32(w) => dense(w.is_c_contiguous(), FloatSlice::F32(w.as_slice()?)),
            Self::SparseF64((index, w)) => sparse(&index.get().inner, FloatSlice::F64(w.as_slice()?)),
            Self::SparseF32((index, w)) => sparse(&index.get().inner, FloatSlice::F32(w.as_slice()?)),
        })
    }
}

/// A fitted model and rows for it: weights, intercepts, whether the values of rows need no check, number of
/// threads.
#[derive(FromPyObject)]
pub struct Prediction<'py>(Coef<'py>, PyReadonlyArray1<'py, f64>, bool, usize);

/// Calls `$method` of the model with the rows, in the calling thread if that is little work.
macro_rules! predict {
    (
        $py:expr, $matrix:expr, $model:expr,
        |$m:ident, $x:ident, $finite:ident, $monitor:ident| $body:expr
    ) => {{
        let Prediction(coef, intercept, is_finite, n_threads) = &$model;
        let $m = Scorer { weights: coef.weights()?, intercept: intercept.as_slice()? };
        let $finite = if *is_finite { Finite::Assumed } else { Finite::Required };
        let slices = $matrix.slices()?;
        with_pieces!(slices, |$x| {
            let job = |$monitor: &dyn Monitor| $body;
            if $m.is_small(&$x) { job(&Silent)? } else { run($py, *n_threads, None, |monitor| job(monitor))? }
        })
    }};
}

/// Decision values of all labels, row after row.
#[pyfunction]
pub fn decision_values<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    model: Prediction<'py>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let n_labels = model.1.len();
    let values =
        predict!(py, matrix, model, |model, x, finite, monitor| model.decisions(&x, finite, monitor));
    let n_rows = values.len() / n_labels.max(1);
    values.into_pyarray(py).reshape([n_rows, n_labels])
}

type Top<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray2<f64>>);

/// The `k` labels with the highest decision values of each row, highest first, and these values.
#[pyfunction]
pub fn top_k<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    model: Prediction<'py>,
    k: usize,
) -> PyResult<Top<'py>> {
    let (labels, values) =
        predict!(py, matrix, model, |model, x, finite, monitor| model.top_k(&x, k, finite, monitor));
    let shape = [labels.len() / k.max(1), k];
    Ok((labels.into_pyarray(py).reshape(shape)?, values.into_pyarray(py).reshape(shape)?))
}

type Pattern<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>);

/// The labels with positive decision values, as `indptr` and `indices` of a CSR matrix.
#[pyfunction]
pub fn positive_labels<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    model: Prediction<'py>,
) -> PyResult<Pattern<'py>> {
    let (starts, labels) =
        predict!(py, matrix, model, |model, x, finite, monitor| model.positive(&x, finite, monitor));
    Ok((starts.into_pyarray(py), labels.into_pyarray(py)))
}
