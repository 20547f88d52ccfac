//! Binding of [`crate::encode`].

use std::sync::Arc;

use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::run::run;
use super::table::{PyTableBatch, with_cell};
use super::turns::Turns;
use crate::encode::alphabet::{Alphabet, AlphabetRecord};
use crate::encode::batch::CrossKey;
use crate::encode::cell::{Cell, ValueType};
use crate::encode::column::{Buffers, Drift, FittedColumn};
use crate::encode::counts::TermList;
use crate::encode::encoder::Encoder;
use crate::encode::part::SparseRows;
use crate::encode::record::EncoderRecord;
use crate::encode::settled::Settled;
use crate::encode::spec::{ColumnKind, ColumnSpec, Numbering};
use crate::encode::survey::{Survey, key_text};
use crate::fit::Monitor;
use crate::{Error, memory};

/// What a survey is made of, in JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    numbering: Numbering,
    columns: Vec<ColumnSpec>,
    alphabet: Option<AlphabetRecord>,
}

/// The first reading of a table.
#[pyclass(name = "TableSurvey", frozen, module = "hinge._native")]
pub struct PySurvey {
    inner: Turns<(Survey, Vec<Vec<u32>>)>,
}

#[pymethods]
impl PySurvey {
    /// Begins; the request is JSON.
    #[new]
    fn new(request: &str) -> PyResult<Self> {
        let Request { numbering, columns, alphabet } = serde_json::from_str(request)
            .map_err(|error| PyValueError::new_err(format!("columns: {error}")))?;
        let alphabet = alphabet.map(Alphabet::new).transpose()?.map(Arc::new);
        let orders = vec![vec![]; columns.len()];
        Ok(Self { inner: Turns::new((Survey::new(numbering, columns, alphabet)?, orders)) })
    }

    /// Whether rows have to be read, or types are enough.
    fn needs_rows(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.inner.take(py)?.0.needs_rows())
    }

    /// Notes the types of a batch.
    fn add_types(&self, py: Python<'_>, batch: &PyTableBatch) -> PyResult<()> {
        Ok(self.inner.take(py)?.0.add_types(&batch.inner)?)
    }

    /// Reads a batch.
    fn add(&self, py: Python<'_>, batch: &PyTableBatch, n_threads: usize) -> PyResult<()> {
        let mut turn = self.inner.take(py)?;
        run(py, n_threads, None, |flag| turn.0.add(&batch.inner, flag))
    }

    /// Ends the reading.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut turn = self.inner.take(py)?;
        py.detach(|| memory::catch(|| turn.0.close()))?;
        Ok(())
    }

    /// Number of rows, and of each column what is known of its numbers.
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<(usize, Vec<Bound<'py, PyDict>>)> {
        let turn = self.inner.take(py)?;
        let facts = |column: &crate::encode::survey::Surveyed| {
            let facts = PyDict::new(py);
            facts.set_item("count", column.spread.count)?;
            facts.set_item("mean", column.spread.mean)?;
            facts.set_item("squares", column.spread.squares)?;
            facts.set_item("largest", column.spread.largest)?;
            Ok(facts)
        };
        Ok((turn.0.n_rows, turn.0.columns().iter().map(facts).collect::<PyResult<_>>()?))
    }

    /// All numbers of a column that is cut into bins.
    fn values<'py>(&self, py: Python<'py>, k: usize) -> PyResult<Bound<'py, PyArray1<f64>>> {
        Ok(memory::copy(&self.inner.take(py)?.0.columns()[k].values).into_pyarray(py))
    }

    /// Sorts the terms of column `k` that are in at least `least` and at most `most` rows: how often each
    /// occurs, and in how many rows.
    fn order<'py>(
        &self,
        py: Python<'py>,
        k: usize,
        least: f64,
        most: f64,
        n_threads: usize,
    ) -> PyResult<TermFrequencies<'py>> {
        let mut turn = self.inner.take(py)?;
        let (survey, orders) = &mut *turn;
        let counts = &survey.columns()[k].counts;
        orders[k] = run(py, n_threads, None, |_| Ok(counts.sorted(least, most)))?;
        let of =
            |list: &[i64]| -> Vec<i64> { orders[k].iter().map(|number| list[*number as usize]).collect() };
        Ok((of(&counts.occurrences).into_pyarray(py), of(&counts.rows).into_pyarray(py)))
    }

    /// Settles column `k`: which of the sorted terms are kept, what they are multiplied by, what numbers are
    /// divided by, where inner bins begin.
    #[pyo3(signature = (k, keep=None, factors=None, scale=None, edges=None))]
    fn settle(
        &self,
        py: Python<'_>,
        k: usize,
        keep: Option<PyReadonlyArray1<'_, bool>>,
        factors: Option<Vec<f64>>,
        scale: Option<f64>,
        edges: Option<Vec<f64>>,
    ) -> PyResult<()> {
        let mut turn = self.inner.take(py)?;
        let (survey, orders) = &mut *turn;
        let mut terms = TermList::default();
        let keep = keep.as_ref().map(|keep| keep.as_slice()).transpose()?;
        for (at, number) in orders[k].iter().enumerate() {
            if keep.is_none_or(|keep| keep[at]) {
                terms.push(survey.columns()[k].counts.list().get(*number as usize));
            }
        }
        let (scale, edges) = (scale.unwrap_or(1.0), edges.unwrap_or_default());
        survey.settle(k, Settled { terms, factors, scale, edges });
        Ok(())
    }

    /// The encoder.
    fn encoder(&self, py: Python<'_>) -> PyResult<PyEncoder> {
        let mut turn = self.inner.take(py)?;
        let inner = py.detach(|| memory::catch(|| turn.0.encoder()))?;
        Ok(PyEncoder::new(py, inner))
    }
}

/// A fitted encoder.
#[pyclass(name = "TableCoder", frozen, module = "hinge._native")]
pub struct PyEncoder {
    inner: Arc<Encoder>,
    /// Of each column, the names of the columns of the table that it reads.
    names: Vec<Vec<Py<PyString>>>,
}

/// A record as Python has it: head, text and ends of the terms, numbers.
pub type RecordArrays<'py> =
    (String, Bound<'py, PyArray1<u8>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

/// The arrays of a record.
pub fn record_arrays(py: Python<'_>, record: EncoderRecord) -> RecordArrays<'_> {
    let EncoderRecord { head, terms, numbers } = record;
    (head, terms.text.into_pyarray(py), terms.ends.into_pyarray(py), numbers.into_pyarray(py))
}

/// The record of its arrays.
pub fn record_of((head, text, ends, numbers): &RecordArrays<'_>) -> PyResult<EncoderRecord> {
    let terms = TermList {
        text: memory::copy(text.try_readonly()?.as_slice()?),
        ends: memory::copy(ends.try_readonly()?.as_slice()?),
    };
    Ok(EncoderRecord {
        head: head.clone(),
        terms,
        numbers: memory::copy(numbers.try_readonly()?.as_slice()?),
    })
}

/// How often each term occurs, and in how many rows.
type TermFrequencies<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>);
/// Name, kind, type of values, first column of the result, their number, whether missing values have one.
type ColumnFacts = (String, &'static str, Option<&'static str>, u32, u32, bool);
/// Columns and values of a row.
type OneRow<'py> = (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<f32>>);
/// The arrays of rows: indptr, indices, values.
type RowArrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<f32>>);

impl PyEncoder {
    /// The object of an encoder.
    pub fn new(py: Python<'_>, inner: Encoder) -> Self {
        let interned = |name: &str| PyString::intern(py, name).unbind();
        let names = inner
            .columns
            .iter()
            .map(|column| match &column.spec.kind {
                ColumnKind::Cross { columns } => columns.iter().map(|name| interned(name)).collect(),
                _ => vec![interned(&column.spec.name)],
            })
            .collect();
        Self { inner: Arc::new(inner), names }
    }
}

#[pymethods]
impl PyEncoder {
    /// The encoder of a record, and the parameters of the facade, in JSON.
    #[staticmethod]
    fn of_record(py: Python<'_>, record: RecordArrays<'_>) -> PyResult<(Self, String)> {
        let record = record_of(&record)?;
        let (encoder, parameters) = py.detach(|| memory::catch(|| record.encoder()))?;
        Ok((Self::new(py, encoder), Value::Object(parameters).to_string()))
    }

    /// What is saved, with the parameters of the facade, in JSON.
    fn record<'py>(&self, py: Python<'py>, parameters: &str) -> PyResult<RecordArrays<'py>> {
        let parameters: Map<String, Value> = serde_json::from_str(parameters)
            .map_err(|error| PyValueError::new_err(format!("parameters: {error}")))?;
        let record = py.detach(|| memory::catch(|| Ok::<_, Error>(self.inner.record(&parameters))))?;
        Ok(record_arrays(py, record))
    }

    #[getter]
    fn is_counted(&self) -> bool {
        self.inner.numbering == Numbering::Counted
    }

    #[getter]
    fn n_features(&self) -> u32 {
        self.inner.n_features
    }

    /// Of each column: its name, kind, type of values, first column of the result, their number, and whether
    /// the last of them is for missing values.
    fn columns(&self) -> Vec<ColumnFacts> {
        let kind = |column: &FittedColumn| match column.spec.kind {
            ColumnKind::Numeric(_) => "numeric",
            ColumnKind::Categorical { .. } => "categorical",
            ColumnKind::Tokens(_) => "tokens",
            ColumnKind::Text(..) => "text",
            ColumnKind::Cross { .. } => "cross",
        };
        let widths = self.inner.widths();
        let all = self.inner.columns.iter().zip(widths).map(|(column, (first, width))| {
            let of = column.value_type.map(ValueType::name);
            (column.spec.name.clone(), kind(column), of, first, width, column.missing.is_some())
        });
        all.collect()
    }

    /// The columns of the table that are read, each once.
    fn reads(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let mut reads: Vec<String> = Vec::new();
        for name in self.names.iter().flatten() {
            let name = name.bind(py).to_str()?;
            if !reads.iter().any(|known| known == name) {
                reads.push(name.to_owned());
            }
        }
        Ok(reads)
    }

    /// Whether the numbers of column `k` are cut into bins.
    fn is_binned(&self, k: usize) -> bool {
        matches!(self.inner.columns[k].spec.kind, ColumnKind::Numeric(crate::encode::spec::NumberScale::Bins))
    }

    /// The terms of column `k` of the encoder, as Python writes them.
    fn terms(&self, k: usize) -> Vec<String> {
        let column = &self.inner.columns[k];
        let of = column.spec.kind.weighting().map_or(column.value_type, |_| Some(ValueType::Text));
        let text = |term: usize| of.and_then(|of| key_text(column.terms.get(term), of)).unwrap_or_default();
        (0..column.terms.len()).map(text).collect()
    }

    /// Columns whose type is not that of the fit: name, type then, type now.
    fn type_changes(&self, batch: &PyTableBatch) -> PyResult<Vec<(String, String, String)>> {
        let mut changes = Vec::new();
        for column in &self.inner.columns {
            let found = batch.inner.value_type(&column.spec)?;
            if let Some((before, now)) = type_change(column, found) {
                changes.push((column.spec.name.clone(), before.to_string(), now.to_string()));
            }
        }
        Ok(changes)
    }

    /// Columns of the table that are not in a batch.
    fn absent(&self, py: Python<'_>, batch: &PyTableBatch) -> PyResult<Vec<String>> {
        let mut absent = self.reads(py)?;
        absent.retain(|name| batch.inner.column(name).is_none());
        Ok(absent)
    }

    /// One row, a dict: indices, values; and of each column values that were unseen and missing, if asked
    /// for. Keys that are not there count as missing values if `fills`.
    #[pyo3(signature = (row, fills, drift=None))]
    fn row<'py>(
        &self,
        row: &Bound<'py, PyDict>,
        fills: bool,
        drift: Option<&PyDriftCounts>,
    ) -> PyResult<OneRow<'py>> {
        let py = row.py();
        let mut found = vec![Drift::default(); if drift.is_some() { self.names.len() } else { 0 }];
        let mut names = self.names.iter();
        let part = self.inner.encode_row::<PyErr>(&mut Buffers::default(), &mut found, |column, visit| {
            let visit = &mut |cell: Cell<'_>| match type_change(column, cell.value_type()) {
                Some((before, now)) if !fills => {
                    Err(format!("each value was {before} in the fit, and is {now} here"))
                }
                _ => visit(cell),
            };
            match names.next().map(Vec::as_slice) {
                Some([name]) => cell_of(row, name, fills, visit),
                Some(several) => combination(row, several, fills, visit),
                None => Ok(Err(format!("column {:?} has no name", column.spec.name))),
            }
        })?;
        if let Some(drift) = drift {
            drift.add(py, &found)?;
        }
        Ok((part.indices.into_pyarray(py), part.values.into_pyarray(py)))
    }

    /// What becomes of the values of one row: of each column of the table, name, terms or value as text, and
    /// columns of the result.
    fn explain(&self, row: &Bound<'_, PyDict>, fills: bool) -> PyResult<Vec<(String, String, u32, f32)>> {
        let mut found = Vec::new();
        for (column, names) in self.inner.columns.iter().zip(&self.names) {
            let mut note = |cell: Cell<'_>| {
                column.explain(cell, &mut |text, index, value| {
                    found.push((column.spec.name.clone(), text, index, value))
                })
            };
            let said = match &names[..] {
                [name] => cell_of(row, name, fills, &mut note),
                several => combination(row, several, fills, &mut note),
            }?;
            said.map_err(|reason| Error::Cell { column: column.spec.name.clone(), row: 0, reason })?;
        }
        Ok(found)
    }
}

/// The type of the values of a column in the fit and the type of others, where the others do not serve.
fn type_change(column: &FittedColumn, found: Option<ValueType>) -> Option<(ValueType, ValueType)> {
    let (before, now) = (column.value_type?, found?);
    (before != now && !is_near(before, now, &column.spec.kind)).then_some((before, now))
}

/// Whether values of a type serve where those of another were, without a word.
fn is_near(before: ValueType, now: ValueType, kind: &ColumnKind) -> bool {
    let is_number = |of| matches!(of, ValueType::Whole | ValueType::Real | ValueType::Truth);
    match kind {
        ColumnKind::Numeric(_) => is_number(before) && is_number(now),
        ColumnKind::Categorical { .. } => {
            matches!((before, now), (ValueType::Whole, ValueType::Real) | (ValueType::Real, ValueType::Whole))
        }
        _ => false,
    }
}

/// Hands over the value under a key.
fn cell_of(
    row: &Bound<'_, PyDict>,
    name: &Py<PyString>,
    fills: bool,
    visit: &mut dyn FnMut(Cell<'_>) -> Result<(), String>,
) -> PyResult<Result<(), String>> {
    match row.get_item(name)? {
        Some(value) => Ok(with_cell(&value, visit).and_then(|done| done)),
        None if fills => Ok(visit(Cell::Missing)),
        None => Ok(Err("the row has no such column".into())),
    }
}

/// Hands over the values under several keys as one.
fn combination(
    row: &Bound<'_, PyDict>,
    names: &[Py<PyString>],
    fills: bool,
    visit: &mut dyn FnMut(Cell<'_>) -> Result<(), String>,
) -> PyResult<Result<(), String>> {
    let mut all = CrossKey::default();
    for name in names {
        let written = cell_of(row, name, fills, &mut |cell| all.push(cell))?;
        if written.is_err() {
            return Ok(written);
        }
    }
    Ok(visit(all.cell()))
}

/// How often the values of each column were not as in the fit.
#[pyclass(name = "DriftCounts", frozen, module = "hinge._native")]
pub struct PyDriftCounts {
    counts: Turns<Vec<Drift>>,
}

impl PyDriftCounts {
    fn add(&self, py: Python<'_>, found: &[Drift]) -> PyResult<()> {
        self.counts.take(py)?.iter_mut().zip(found).for_each(|(sum, more)| *sum += *more);
        Ok(())
    }
}

#[pymethods]
impl PyDriftCounts {
    #[new]
    fn new(encoder: &PyEncoder) -> Self {
        Self { counts: Turns::new(vec![Drift::default(); encoder.names.len()]) }
    }

    /// Of each column: unseen values, missing values.
    fn get(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64)>> {
        Ok(self.counts.take(py)?.iter().map(|drift| (drift.unseen, drift.missing)).collect())
    }
}

/// Rows of a matrix that batches are appended to.
#[pyclass(name = "EncodedRows", frozen, module = "hinge._native")]
pub struct PyEncodedRows {
    rows: Turns<SparseRows>,
}

#[pymethods]
impl PyEncodedRows {
    #[new]
    fn new() -> Self {
        Self { rows: Turns::new(SparseRows::default()) }
    }

    /// Encodes a batch and appends its rows.
    #[pyo3(signature = (encoder, batch, n_threads, drift=None))]
    fn add(
        &self,
        py: Python<'_>,
        encoder: &PyEncoder,
        batch: &PyTableBatch,
        n_threads: usize,
        drift: Option<&PyDriftCounts>,
    ) -> PyResult<()> {
        let mut rows = self.rows.take(py)?;
        let mut found = vec![Drift::default(); encoder.names.len()];
        let n_threads = n_threads.min(batch.inner.n_rows.div_ceil(crate::encode::encoder::TEXT_CHUNK));
        run(py, n_threads, None, |flag| {
            encoder.inner.encode(&batch.inner, flag as &dyn Monitor, &mut rows, &mut found)
        })?;
        drift.map_or(Ok(()), |drift| drift.add(py, &found))
    }

    /// The rows: indptr, indices, values. Then there are none.
    fn take<'py>(&self, py: Python<'py>) -> PyResult<RowArrays<'py>> {
        let SparseRows { ends, mut indices, mut values } = std::mem::take(&mut *self.rows.take(py)?);
        let indptr = memory::catch(|| {
            let mut indptr = memory::with_capacity(ends.len() + 1);
            indptr.push(0);
            indptr.extend_from_slice(&ends);
            Ok::<_, PyErr>(indptr)
        })?;
        indices.shrink_to_fit();
        values.shrink_to_fit();
        Ok((indptr.into_pyarray(py), indices.into_pyarray(py), values.into_pyarray(py)))
    }
}
