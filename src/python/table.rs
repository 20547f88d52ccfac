//! Tables from Python: Arrow's C interface, NumPy arrays and lists of Python's own values, all as Arrow
//! arrays.

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::builder::NullBufferBuilder;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, LargeListArray, LargeStringArray, NullArray,
    RecordBatch, StructArray, make_array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{ArrowError, DataType, Field};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyCapsule, PyFloat, PyInt, PyList, PyString, PyTuple};

use super::turns::Turns;
use crate::encode::batch::TableBatch;
use crate::encode::cell::{Cell, value_type};
use crate::{Error, memory};

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// Some rows of a table.
#[pyclass(name = "TableBatch", frozen, module = "hinge._native")]
pub struct PyTableBatch {
    pub inner: TableBatch,
}

#[pymethods]
impl PyTableBatch {
    /// The rows of an object's `__arrow_c_array__`, which are structs.
    #[staticmethod]
    fn of_arrow(
        schema: &Bound<'_, PyCapsule>,
        array: &Bound<'_, PyCapsule>,
        first_row: usize,
    ) -> PyResult<Self> {
        let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
        let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
        // SAFETY: capsules of these names hold these structures of Arrow's C interface, live as long as the
        // capsules do and are not used elsewhere meanwhile: we have the interpreter. The array is moved out,
        // and what is left in the capsule says so.
        #[allow(unsafe_code)]
        let data = unsafe { from_ffi(FFI_ArrowArray::from_raw(array.as_ptr()), schema.as_ref()) };
        let array = make_array(data.map_err(arrow_error)?);
        let Some(rows) = array.as_any().downcast_ref::<StructArray>() else {
            return Err(PyTypeError::new_err(
                "an Arrow array of a table holds structs, the columns of a row each",
            ));
        };
        Ok(Self { inner: of_record(&RecordBatch::from(rows), first_row) })
    }

    /// Rows of columns `(name, values)`: arrays of float64, int64 or bool, or lists of Python's values.
    #[staticmethod]
    fn of_columns(
        columns: Vec<(String, Bound<'_, PyAny>)>,
        n_rows: usize,
        first_row: usize,
    ) -> PyResult<Self> {
        let mut made = Vec::with_capacity(columns.len());
        for (name, values) in columns {
            let array = memory::catch(|| array_of(&values)).map_err(|error| match error {
                Unusable::Value(row, reason) => {
                    PyErr::from(Error::Cell { column: name.clone(), row: first_row + row, reason })
                }
                Unusable::Other(error) => error,
            })?;
            if array.len() != n_rows {
                return Err(PyValueError::new_err(format!(
                    "column {name:?} has {} values, the table has {n_rows} rows",
                    array.len()
                )));
            }
            made.push((name, array));
        }
        Ok(Self { inner: TableBatch { columns: made, n_rows, first_row } })
    }

    #[getter]
    fn n_rows(&self) -> usize {
        self.inner.n_rows
    }

    #[getter]
    fn first_row(&self) -> usize {
        self.inner.first_row
    }

    /// The batch with columns of missing values added.
    fn with_missing(&self, names: Vec<String>) -> Self {
        let mut inner = self.inner.clone();
        let nulls: ArrayRef = Arc::new(NullArray::new(inner.n_rows));
        inner.columns.extend(names.into_iter().map(|name| (name, nulls.clone())));
        Self { inner }
    }

    /// The values of a column as a list, None where they are missing.
    fn values<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let array = self.inner.only(name)?;
        let list = PyList::empty(py);
        let mut failure = None;
        crate::encode::cell::each_cell(array, 0..array.len(), &mut |cell| {
            let appended = match cell {
                Cell::Missing => list.append(py.None()),
                Cell::Text(text) => list.append(text),
                Cell::Whole(value) => list.append(value),
                Cell::Real(value) => list.append(value),
                Cell::Truth(value) => list.append(value),
                Cell::Strings(strings) => list.append(strings.to_vec()),
            };
            appended.map_err(|error| {
                let said = error.to_string();
                failure = Some(error);
                said
            })
        })
        .map_err(|error| self.inner.error(name, error))?;
        failure.map_or(Ok(list), Err)
    }

    /// Names and types of the columns: "text", "whole", "real", "truth", "strings", "null", or in words
    /// why not.
    fn types(&self) -> Vec<(String, String)> {
        let kind = |array: &ArrayRef| match value_type(array.data_type()) {
            Ok(None) => "null".to_owned(),
            Ok(Some(kind)) => kind.name().to_owned(),
            Err(reason) => reason,
        };
        self.inner.columns.iter().map(|(name, array)| (name.clone(), kind(array))).collect()
    }

    /// Whether a column is a dictionary.
    fn is_dictionary(&self, name: &str) -> bool {
        self.inner.column(name).is_some_and(|array| matches!(array.data_type(), DataType::Dictionary(_, _)))
    }

    /// Of up to 1000 texts of a column: how many there are, how many different ones, and their blanks in all.
    fn text_sample(&self, name: &str) -> PyResult<(usize, usize, usize)> {
        let Some(array) = self.inner.column(name) else { return Ok((0, 0, 0)) };
        let (mut texts, mut count, mut blanks) = (std::collections::HashSet::new(), 0, 0);
        crate::encode::cell::each_cell(array, 0..array.len().min(1000), &mut |cell| {
            if let Cell::Text(text) = cell {
                count += 1;
                blanks += text.split_whitespace().count().saturating_sub(1);
                texts.insert(text.to_owned());
            }
            Ok(())
        })
        .map_err(|error| self.inner.error(name, error))?;
        Ok((count, texts.len(), blanks))
    }
}

/// The batches of an object's `__arrow_c_stream__`.
#[pyclass(name = "TableReader", frozen, module = "hinge._native")]
pub struct PyTableReader {
    inner: Turns<(RecordBatchStreamReader, usize)>,
}

#[pymethods]
impl PyTableReader {
    #[new]
    fn new(stream: &Bound<'_, PyCapsule>) -> PyResult<Self> {
        let stream = stream.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
        // SAFETY: a capsule of this name holds this structure, live as long as the capsule is; it is moved
        // out, and what is left in the capsule says so.
        #[allow(unsafe_code)]
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
        let reader = RecordBatchStreamReader::try_new(stream).map_err(arrow_error)?;
        Ok(Self { inner: Turns::new((reader, 0)) })
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyTableBatch>> {
        let mut turn = self.inner.take(py)?;
        let (reader, first_row) = &mut *turn;
        // What makes the batches may need the interpreter, on threads of its own.
        let Some(batch) = py.detach(|| reader.next()) else { return Ok(None) };
        let inner = of_record(&batch.map_err(arrow_error)?, *first_row);
        *first_row += inner.n_rows;
        Ok(Some(PyTableBatch { inner }))
    }
}

fn of_record(batch: &RecordBatch, first_row: usize) -> TableBatch {
    let names = batch.schema_ref().fields().iter().map(|field| field.name().clone());
    let columns = names.zip(batch.columns().iter().cloned()).collect();
    TableBatch { columns, n_rows: batch.num_rows(), first_row }
}

fn arrow_error(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("the table cannot be read: {error}"))
}

/// Why a column cannot be used.
enum Unusable {
    /// Its row, and what is wrong.
    Value(usize, String),
    Other(PyErr),
}

impl From<Error> for Unusable {
    fn from(error: Error) -> Self {
        Self::Other(error.into())
    }
}

impl From<PyErr> for Unusable {
    fn from(error: PyErr) -> Self {
        Self::Other(error)
    }
}

/// The Arrow array of a column.
fn array_of(values: &Bound<'_, PyAny>) -> Result<ArrayRef, Unusable> {
    if let Ok(numbers) = values.extract::<PyReadonlyArray1<'_, f64>>() {
        let numbers = memory::copy(numbers.as_slice().map_err(PyErr::from)?);
        return Ok(Arc::new(Float64Array::new(numbers.into(), None)));
    }
    if let Ok(numbers) = values.extract::<PyReadonlyArray1<'_, i64>>() {
        let numbers = memory::copy(numbers.as_slice().map_err(PyErr::from)?);
        return Ok(Arc::new(Int64Array::new(numbers.into(), None)));
    }
    if let Ok(truths) = values.extract::<PyReadonlyArray1<'_, bool>>() {
        let truths = memory::copy(truths.as_slice().map_err(PyErr::from)?);
        return Ok(Arc::new(BooleanArray::from(truths)));
    }
    let values = values.cast::<PyList>().map_err(PyErr::from)?;
    let mut builder = Builder::Nothing(0);
    for (row, value) in values.iter().enumerate() {
        with_cell(&value, |cell| builder.push(cell))
            .and_then(|pushed| pushed)
            .map_err(|reason| Unusable::Value(row, reason))?;
    }
    builder.finish().map_err(|error| Unusable::Other(arrow_error(error)))
}

/// Values and which of them are there. Arrow's own builders end the process where there is no memory.
struct Column<T> {
    values: T,
    is_there: NullBufferBuilder,
}

impl<T> Column<T> {
    fn new(values: T) -> Self {
        Self { values, is_there: NullBufferBuilder::new(0) }
    }
}

/// Strings, one behind the other.
struct Strings {
    text: Vec<u8>,
    ends: Vec<i64>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { text: vec![], ends: vec![0] }
    }
}

impl<T> Column<Vec<T>> {
    fn push(&mut self, value: T, is_there: bool) {
        memory::push(&mut self.values, value);
        self.is_there.append(is_there);
    }
}

impl Column<Strings> {
    fn push(&mut self, text: &str, is_there: bool) {
        memory::extend_from_slice(&mut self.values.text, text.as_bytes());
        memory::push(&mut self.values.ends, self.values.text.len() as i64);
        self.is_there.append(is_there);
    }

    /// Where the next string begins, counted in strings.
    fn len(&self) -> i64 {
        self.values.ends.len() as i64 - 1
    }

    fn finish(mut self) -> Result<LargeStringArray, ArrowError> {
        let Strings { text, ends } = self.values;
        LargeStringArray::try_new(OffsetBuffer::new(ends.into()), text.into(), self.is_there.finish())
    }
}

/// Values of one type, which the first of them decides.
enum Builder {
    Nothing(usize),
    Text(Column<Strings>),
    Whole(Column<Vec<i64>>),
    Real(Column<Vec<f64>>),
    Truth(Column<Vec<bool>>),
    /// The strings of all lists, and where lists end among them.
    Lists(Column<Vec<i64>>, Column<Strings>),
}

impl Builder {
    fn push(&mut self, cell: Cell<'_>) -> Result<(), String> {
        match (&mut *self, cell) {
            (Self::Nothing(n), Cell::Missing) => *n += 1,
            (Self::Nothing(n), cell) => {
                let n = *n;
                *self = Self::of(cell);
                (0..n).for_each(|_| self.push_missing());
                return self.push(cell);
            }
            (_, Cell::Missing) => self.push_missing(),
            (Self::Text(column), Cell::Text(text)) => column.push(text, true),
            (Self::Whole(column), Cell::Whole(value)) => column.push(value, true),
            (Self::Whole(column), Cell::Real(_)) => {
                let mut numbers = memory::with_capacity(column.values.len() + 1);
                numbers.extend(column.values.iter().map(|value| *value as f64));
                let is_there = std::mem::replace(&mut column.is_there, NullBufferBuilder::new(0));
                *self = Self::Real(Column { values: numbers, is_there });
                return self.push(cell);
            }
            (Self::Real(column), Cell::Real(value)) => column.push(value, true),
            (Self::Real(column), Cell::Whole(value)) => column.push(value as f64, true),
            (Self::Truth(column), Cell::Truth(value)) => column.push(value, true),
            (Self::Lists(lists, items), Cell::Strings(strings)) => {
                strings.iter().for_each(|text| items.push(text.unwrap_or_default(), text.is_some()));
                lists.push(items.len(), true);
            }
            (_, cell) => {
                return Err(format!(
                    "{} is {}, the values before are not",
                    crate::encode::column::shown(cell),
                    cell.type_name()
                ));
            }
        }
        Ok(())
    }

    fn push_missing(&mut self) {
        match self {
            Self::Nothing(n) => *n += 1,
            Self::Text(column) => column.push("", false),
            Self::Whole(column) => column.push(0, false),
            Self::Real(column) => column.push(0.0, false),
            Self::Truth(column) => column.push(false, false),
            Self::Lists(lists, items) => lists.push(items.len(), false),
        }
    }

    fn of(cell: Cell<'_>) -> Self {
        match cell {
            Cell::Missing => Self::Nothing(0),
            Cell::Text(_) => Self::Text(Column::new(Strings::default())),
            Cell::Whole(_) => Self::Whole(Column::new(vec![])),
            Cell::Real(_) => Self::Real(Column::new(vec![])),
            Cell::Truth(_) => Self::Truth(Column::new(vec![])),
            Cell::Strings(_) => Self::Lists(Column::new(vec![0]), Column::new(Strings::default())),
        }
    }

    fn finish(self) -> Result<ArrayRef, ArrowError> {
        Ok(match self {
            Self::Nothing(n) => Arc::new(NullArray::new(n)),
            Self::Text(column) => Arc::new(column.finish()?),
            Self::Whole(mut column) => {
                Arc::new(Int64Array::try_new(column.values.into(), column.is_there.finish())?)
            }
            Self::Real(mut column) => {
                Arc::new(Float64Array::try_new(column.values.into(), column.is_there.finish())?)
            }
            Self::Truth(mut column) => {
                Arc::new(BooleanArray::new(column.values.into(), column.is_there.finish()))
            }
            Self::Lists(mut lists, items) => {
                let field = Arc::new(Field::new("item", DataType::LargeUtf8, true));
                let (ends, items) = (OffsetBuffer::new(lists.values.into()), Arc::new(items.finish()?));
                Arc::new(LargeListArray::try_new(field, ends, items, lists.is_there.finish())?)
            }
        })
    }
}

/// Calls `f` with the value of a Python object.
///
/// # Errors
/// What the object is, if it is no value of a table.
pub fn with_cell<T>(value: &Bound<'_, PyAny>, f: impl FnOnce(Cell<'_>) -> T) -> Result<T, String> {
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(f(Cell::Text(text.to_str().map_err(|error| not_utf8(text, &error))?)));
    }
    if value.is_none() {
        return Ok(f(Cell::Missing));
    }
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(f(Cell::Truth(truth.is_true())));
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(f(real(number.value())));
    }
    if value.is_instance_of::<PyInt>() {
        return value
            .extract()
            .map(|number| f(Cell::Whole(number)))
            .map_err(|_| format!("{value} is not below 2^63"));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        let text = str::from_utf8(bytes.as_bytes());
        return text
            .map(|text| f(Cell::Text(text)))
            .map_err(|error| format!("these bytes are no UTF-8: {error}"));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return with_strings(value, f);
    }
    with_other(value, f)
}

/// Lists of strings.
fn with_strings<T>(value: &Bound<'_, PyAny>, f: impl FnOnce(Cell<'_>) -> T) -> Result<T, String> {
    let items: Vec<Bound<'_, PyAny>> = value.extract().map_err(|error: PyErr| error.to_string())?;
    let mut strings = Vec::with_capacity(items.len());
    for (k, item) in items.iter().enumerate() {
        strings.push(match item.cast::<PyString>() {
            Ok(text) => Some(text.to_str().map_err(|error| not_utf8(text, &error))?),
            Err(_) if item.is_none() => None,
            Err(_) => {
                return Err(format!("lists hold strings, entry {k} of this one is a {}", type_of(item)));
            }
        });
    }
    Ok(f(Cell::Strings(&strings)))
}

/// Numbers of NumPy, missing values of pandas, arrays of strings.
fn with_other<T>(value: &Bound<'_, PyAny>, f: impl FnOnce(Cell<'_>) -> T) -> Result<T, String> {
    match &*type_of(value) {
        "NAType" | "NaTType" => return Ok(f(Cell::Missing)),
        "bool" | "bool_" => {
            return value.is_truthy().map(|truth| f(Cell::Truth(truth))).map_err(|error| error.to_string());
        }
        "ndarray" | "Series" => {
            if let Ok(list) = value.call_method0("tolist").or_else(|_| value.call_method0("to_list")) {
                return with_strings(&list, f);
            }
        }
        _ => {}
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(f(Cell::Whole(number)));
    }
    if let Ok(number) = value.extract::<f64>() {
        return Ok(f(real(number)));
    }
    Err(format!(
        "a {} is neither a number, a string, a truth value nor a list of strings: convert it",
        type_of(value)
    ))
}

fn real<'a>(value: f64) -> Cell<'a> {
    if value.is_nan() { Cell::Missing } else { Cell::Real(value) }
}

fn not_utf8(text: &Bound<'_, PyString>, error: &PyErr) -> String {
    let shown = text.repr().map_or_else(|_| "this string".into(), |text| text.to_string());
    format!("{shown} cannot be written in UTF-8: {error}")
}

fn type_of(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string())
}
