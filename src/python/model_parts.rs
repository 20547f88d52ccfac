//! A model as a dict of arrays, numbers and texts, and back: `hinge._parts.ModelParts` as the native module
//! takes it.

use std::sync::Arc;

use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Map, Value};

use super::encode::{RecordArrays, record_arrays, record_of};
use super::pairs::MapOptions;
use super::store::{classes_of, labels_of};
use crate::labels::inverted_index::InvertedIndex;
use crate::labels::scores::FloatSlice;
use crate::memory;
use crate::model::answer::ClassRule;
use crate::model::file::WeightSlices;
use crate::model::probability::{Line, Probability};
use crate::model::weights::{Numbers, WeightVectors};
use crate::model::{Model, ModelRecord};

/// The parts of a model.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Parts<'py> {
    n_features: usize,
    coef: PartsCoef<'py>,
    intercept: PyReadonlyArray1<'py, f64>,
    classes: Bound<'py, PyList>,
    answer: Bound<'py, PyDict>,
    probability: Option<Bound<'py, PyDict>>,
    pairs: Option<MapOptions>,
    feature_names: Option<Vec<String>>,
    encoder: Option<RecordArrays<'py>>,
    record: Bound<'py, PyDict>,
}

type SparseParts<'py, V> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, V>);

/// Weights: an array of either order, or pointers, columns and values of a CSR matrix.
#[derive(FromPyObject)]
enum PartsCoef<'py> {
    DenseF64(PyReadonlyArray2<'py, f64>),
    DenseF32(PyReadonlyArray2<'py, f32>),
    SparseF64(SparseParts<'py, f64>),
    SparseF32(SparseParts<'py, f32>),
}

impl Parts<'_> {
    /// The model, a copy of everything, checked.
    pub fn model(&self) -> PyResult<Model> {
        let mut model = self.rest()?;
        model.weights = memory::catch(|| self.coef.weights(self.n_features))?;
        model.check().map_err(|flaw| PyValueError::new_err(format!("{}: {}", flaw.field, flaw.reason)))?;
        Ok(model)
    }

    /// The model without its weights, for what takes them as they lie: [`Self::weights`].
    pub fn rest(&self) -> PyResult<Model> {
        let record = ModelRecord {
            estimator: item(&self.record, "estimator")?,
            version: item(&self.record, "version")?,
            label_dtype: item(&self.record, "label_dtype")?,
            parameters: json(&self.record, "parameters")?,
            fitted: json(&self.record, "fitted")?,
            data: json(&self.record, "data")?,
            metadata: json(&self.record, "metadata")?,
        };
        Ok(Model {
            n_features: self.n_features,
            weights: WeightVectors::ByLabel(Numbers::F64(Arc::default())),
            intercepts: self.intercept.as_slice()?.to_vec(),
            classes: classes_of(&self.classes)?,
            answer: answer_of(&self.answer)?,
            probability: self.probability.as_ref().map(probability_of).transpose()?,
            pairs: self.pairs.as_ref().map(MapOptions::spec),
            feature_names: self.feature_names.clone(),
            encoder: self.encoder.as_ref().map(record_of).transpose()?,
            record,
        })
    }

    /// The weights where they lie.
    pub fn weights(&self) -> PyResult<WeightSlices<'_>> {
        let dense = |is_c: bool, w| if is_c { WeightSlices::ByLabel(w) } else { WeightSlices::ByColumn(w) };
        let sparse = |indptr, indices, values| WeightSlices::Sparse { indptr, indices, values };
        Ok(match &self.coef {
            PartsCoef::DenseF64(w) => dense(w.is_c_contiguous(), FloatSlice::F64(w.as_slice()?)),
            PartsCoef::DenseF32(w) => dense(w.is_c_contiguous(), FloatSlice::F32(w.as_slice()?)),
            PartsCoef::SparseF64((indptr, indices, values)) => {
                sparse(indptr.as_slice()?, indices.as_slice()?, FloatSlice::F64(values.as_slice()?))
            }
            PartsCoef::SparseF32((indptr, indices, values)) => {
                sparse(indptr.as_slice()?, indices.as_slice()?, FloatSlice::F32(values.as_slice()?))
            }
        })
    }
}

impl PartsCoef<'_> {
    fn weights(&self, n_columns: usize) -> PyResult<WeightVectors> {
        let dense = |is_c: bool, w| if is_c { WeightVectors::ByLabel(w) } else { WeightVectors::ByColumn(w) };
        let double = |w: &[f64]| Numbers::F64(Arc::new(memory::copy(w)));
        let single = |w: &[f32]| Numbers::F32(Arc::new(memory::copy(w)));
        Ok(match self {
            Self::DenseF64(w) => dense(w.is_c_contiguous(), double(w.as_slice()?)),
            Self::DenseF32(w) => dense(w.is_c_contiguous(), single(w.as_slice()?)),
            Self::SparseF64((indptr, indices, values)) => {
                sparse(indptr.as_slice()?, indices.as_slice()?, double(values.as_slice()?), n_columns)?
            }
            Self::SparseF32((indptr, indices, values)) => {
                sparse(indptr.as_slice()?, indices.as_slice()?, single(values.as_slice()?), n_columns)?
            }
        })
    }
}

fn sparse(indptr: &[i64], indices: &[i64], values: Numbers, n_columns: usize) -> PyResult<WeightVectors> {
    let index = InvertedIndex::new(indptr, indices, n_columns)?;
    Ok(WeightVectors::Sparse { indptr: memory::copy(indptr), indices: memory::copy(indices), values, index })
}

fn item<'py, T: for<'a> FromPyObject<'a, 'py>>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<T> {
    let value = dict.get_item(name)?;
    let value = value.ok_or_else(|| PyValueError::new_err(format!("a part of the model lacks {name:?}")))?;
    value.extract().map_err(Into::into)
}

/// A text of JSON, an object.
fn json(dict: &Bound<'_, PyDict>, name: &str) -> PyResult<Map<String, Value>> {
    let text: String = item(dict, name)?;
    serde_json::from_str(&text).map_err(|error| PyValueError::new_err(format!("{name}: {error}")))
}

fn unknown<T>(what: &str, kind: &str) -> PyResult<T> {
    Err(PyValueError::new_err(format!("{what} of an unknown kind, {kind:?}")))
}

fn numbers<'py>(dict: &Bound<'py, PyDict>, name: &str) -> PyResult<Vec<f64>> {
    let array: PyReadonlyArray1<'py, f64> = item(dict, name)?;
    Ok(memory::copy(array.as_slice()?))
}

fn answer_of(dict: &Bound<'_, PyDict>) -> PyResult<ClassRule> {
    let kind: String = item(dict, "kind")?;
    Ok(match kind.as_str() {
        "sign" => ClassRule::Sign,
        "threshold" => ClassRule::Threshold(item(dict, "threshold")?),
        "highest" => ClassRule::Highest,
        "most_probable" => ClassRule::MostProbable,
        "cheapest" => {
            let costs: PyReadonlyArray2<'_, f64> = item(dict, "costs")?;
            ClassRule::Cheapest(costs.as_array().iter().copied().collect())
        }
        "labels" => ClassRule::Labels,
        other => return unknown("an answer", other),
    })
}

/// How probabilities follow from decision values.
pub fn probability_of(dict: &Bound<'_, PyDict>) -> PyResult<Probability> {
    let kind: String = item(dict, "kind")?;
    Ok(match kind.as_str() {
        "logistic" => Probability::Logistic,
        "sigmoid" => {
            Probability::Sigmoid { slopes: numbers(dict, "slopes")?, offsets: numbers(dict, "offsets")? }
        }
        "isotonic" => {
            let lines: Vec<(PyReadonlyArray1<'_, f64>, PyReadonlyArray1<'_, f64>)> = item(dict, "lines")?;
            let line = |(x, y): &(PyReadonlyArray1<'_, f64>, PyReadonlyArray1<'_, f64>)| {
                PyResult::Ok(Line { x: memory::copy(x.as_slice()?), y: memory::copy(y.as_slice()?) })
            };
            Probability::Isotonic(lines.iter().map(line).collect::<PyResult<_>>()?)
        }
        "temperature" => Probability::Temperature(item(dict, "factor")?),
        other => return unknown("probabilities", other),
    })
}

/// The parts of a model as a dict, arrays copied.
pub fn parts_of<'py>(py: Python<'py>, model: &Model) -> PyResult<Bound<'py, PyDict>> {
    let parts = head_of(py, model)?;
    parts.set_item("coef", coef_of(py, model)?)?;
    parts.set_item("feature_names", model.feature_names.as_deref())?;
    parts.set_item("encoder", model.encoder.as_ref().map(|record| record_arrays(py, record.clone())))?;
    Ok(parts)
}

/// The parts of a model without those that are large: its weights and the names of its columns.
pub fn head_of<'py>(py: Python<'py>, model: &Model) -> PyResult<Bound<'py, PyDict>> {
    let parts = PyDict::new(py);
    parts.set_item("n_features", model.n_features)?;
    parts.set_item("intercept", PyArray1::from_slice(py, &model.intercepts))?;
    parts.set_item("classes", labels_of(py, &model.classes)?)?;
    parts.set_item("answer", answer_dict(py, &model.answer, model.classes.len())?)?;
    let probability = model.probability.as_ref();
    parts.set_item("probability", probability.map(|p| probability_dict(py, p)).transpose()?)?;
    parts.set_item("pairs", model.pairs.map(|pairs| MapOptions::of(pairs).dict(py)).transpose()?)?;
    let (record, known) = (PyDict::new(py), &model.record);
    record.set_item("estimator", &known.estimator)?;
    record.set_item("version", &known.version)?;
    record.set_item("label_dtype", &known.label_dtype)?;
    for (name, value) in [
        ("parameters", &known.parameters),
        ("fitted", &known.fitted),
        ("data", &known.data),
        ("metadata", &known.metadata),
    ] {
        record.set_item(name, Value::Object(value.clone()).to_string())?;
    }
    parts.set_item("record", record)?;
    Ok(parts)
}

fn coef_of<'py>(py: Python<'py>, model: &Model) -> PyResult<Bound<'py, PyAny>> {
    let m = model.n_vectors();
    Ok(match &model.weights {
        WeightVectors::ByLabel(w) => matrix(py, w, m, false)?,
        WeightVectors::ByColumn(w) => matrix(py, w, m, true)?,
        WeightVectors::Sparse { indptr, indices, values, .. } => {
            let values = match whole(values)? {
                FloatSlice::F32(w) => PyArray1::from_slice(py, w).into_any(),
                FloatSlice::F64(w) => PyArray1::from_slice(py, w).into_any(),
            };
            let pointers = (PyArray1::from_slice(py, indptr), PyArray1::from_slice(py, indices), values);
            pointers.into_pyobject(py)?.into_any()
        }
    })
}

/// Numbers that are known to be what was written.
fn whole(numbers: &Numbers) -> PyResult<FloatSlice<'_>> {
    let found = numbers.slice();
    let len = match found {
        FloatSlice::F32(w) => w.len(),
        FloatSlice::F64(w) => w.len(),
    };
    numbers.verify(0..len)?;
    Ok(found)
}

/// An array of `m` rows, the numbers of which lie row after row, or column after column.
fn matrix<'py>(py: Python<'py>, w: &Numbers, m: usize, by_column: bool) -> PyResult<Bound<'py, PyAny>> {
    fn shaped<'py, T: Element + Copy>(
        py: Python<'py>,
        w: &[T],
        m: usize,
        by_column: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let w = memory::catch(|| PyResult::Ok(memory::copy(w)))?.into_pyarray(py);
        let columns = w.len() / m.max(1);
        let matrix: Bound<'py, PyArray2<T>> =
            if by_column { w.reshape([columns, m])? } else { w.reshape([m, columns])? };
        if by_column { matrix.getattr("T") } else { Ok(matrix.into_any()) }
    }
    match whole(w)? {
        FloatSlice::F32(w) => shaped(py, w, m, by_column),
        FloatSlice::F64(w) => shaped(py, w, m, by_column),
    }
}

fn answer_dict<'py>(py: Python<'py>, answer: &ClassRule, k: usize) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let kind = match answer {
        ClassRule::Sign => "sign",
        ClassRule::Threshold(threshold) => {
            dict.set_item("threshold", threshold)?;
            "threshold"
        }
        ClassRule::Highest => "highest",
        ClassRule::MostProbable => "most_probable",
        ClassRule::Cheapest(costs) => {
            dict.set_item("costs", PyArray1::from_slice(py, costs).reshape([k, k])?)?;
            "cheapest"
        }
        ClassRule::Labels => "labels",
    };
    dict.set_item("kind", kind)?;
    Ok(dict)
}

fn probability_dict<'py>(py: Python<'py>, probability: &Probability) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let kind = match probability {
        Probability::Logistic => "logistic",
        Probability::Sigmoid { slopes, offsets } => {
            dict.set_item("slopes", PyArray1::from_slice(py, slopes))?;
            dict.set_item("offsets", PyArray1::from_slice(py, offsets))?;
            "sigmoid"
        }
        Probability::Isotonic(lines) => {
            let line = |l: &Line| (PyArray1::from_slice(py, &l.x), PyArray1::from_slice(py, &l.y));
            dict.set_item("lines", lines.iter().map(line).collect::<Vec<_>>())?;
            "isotonic"
        }
        Probability::Temperature(factor) => {
            dict.set_item("factor", factor)?;
            "temperature"
        }
    };
    dict.set_item("kind", kind)?;
    Ok(dict)
}
