//! Binding of [`crate::model::predictor`]: a model that any number of Python threads may ask at once.
//!
//! One row is answered with the interpreter held: the answer takes less than giving the interpreter back and
//! getting it again, for which a thread may wait five milliseconds where others compute. Batches give it
//! back. What is too short for a pool of threads, and not worth a look at signals, is cut into one part a
//! thread; the parts are plain threads that end with the call, so that nothing lives on that a fork would
//! lose.

use std::ops::Range;
use std::sync::Arc;
use std::thread;

use numpy::ndarray::ArrayView2;
use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray2, PyReadwriteArray1,
    PyReadwriteArray2, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyString};

use super::arrays::{PyMatrix, collected, readable, with_pieces};
use super::encode::{RecordArrays, record_arrays};
use super::model_parts::{Parts, head_of, parts_of, probability_of};
use super::run::run;
use crate::labels::scores::FloatSlice;
use crate::matrix::csr::CsrPieces;
use crate::matrix::{Index, Value};
use crate::model::predictor::{Part, Predictor, UnknownNames};
use crate::model::probability::Outputs;
use crate::model::rows::{ModelRows, SparseRow};
use crate::model::weights::WeightVectors;
use crate::names::NameKey;
use crate::{Error, memory};

/// Products up to which the interpreter is held: a few microseconds.
const HOLD: usize = 1 << 12;
/// Products up to which a batch stays on its thread: less than a tenth of a millisecond.
const ALONE: usize = 1 << 16;
/// Products from which a batch looks at signals: some tens of milliseconds.
const LONG: usize = 1 << 24;
/// Decision values of a row that are kept on the stack.
const FEW: usize = 16;

/// A model that never changes.
#[pyclass(name = "NativeModel", frozen, module = "hinge._native")]
pub struct NativeModel {
    /// What answers.
    pub inner: Arc<Predictor>,
}

/// Evaluates `$body` with `$row` the entries of one row, whatever their types.
macro_rules! with_row {
    ($indices:expr, $values:expr, |$row:ident| $body:expr) => {{
        macro_rules! typed {
            ($index:ty, $value:ty) => {
                if let (Ok(indices), Ok(values)) =
                    ($indices.cast::<PyArray1<$index>>(), $values.cast::<PyArray1<$value>>())
                {
                    let (indices, values) = (readable(indices)?, readable(values)?);
                    let $row = SparseRow { indices: indices.as_slice()?, values: values.as_slice()? };
                    return $body;
                }
            };
        }
        typed!(i32, f64);
        typed!(i64, f64);
        typed!(i32, f32);
        typed!(i64, f32);
        Err(PyTypeError::new_err(
            "a row is (indices, values): int32 or int64, and float32 or float64, each in one piece",
        ))
    }};
}

#[pymethods]
impl NativeModel {
    #[new]
    fn new(parts: Parts<'_>) -> PyResult<Self> {
        Self::of(parts.model()?)
    }

    /// The parts that another one can be made of.
    fn parts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        parts_of(py, self.inner.model())
    }

    /// The parts without weights and names of columns.
    fn head<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        head_of(py, self.inner.model())
    }

    /// The record of the encoder, if there is one.
    fn encoder<'py>(&self, py: Python<'py>) -> Option<RecordArrays<'py>> {
        self.inner.model().encoder.as_ref().map(|record| record_arrays(py, record.clone()))
    }

    /// Names of the columns, if they have any.
    fn feature_names(&self) -> Option<&[String]> {
        self.inner.model().feature_names.as_deref()
    }

    /// Dense weights where they lie, a row per vector, as an array that cannot be written to; None for sparse
    /// ones.
    fn coef<'py>(slf: Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let model = slf.get().inner.clone();
        let model = model.model();
        let m = model.n_vectors();
        let (numbers, is_turned) = match &model.weights {
            WeightVectors::ByLabel(numbers) => (numbers.slice(), false),
            WeightVectors::ByColumn(numbers) => (numbers.slice(), true),
            WeightVectors::Sparse { .. } => return Ok(None),
        };
        let owner = slf.into_any();
        let array = match numbers {
            FloatSlice::F32(numbers) => view(numbers, m, is_turned, owner)?,
            FloatSlice::F64(numbers) => view(numbers, m, is_turned, owner)?,
        };
        Ok(Some(array))
    }

    /// Makes sure that all weights are what was written, where they lie in a file.
    fn verify(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| memory::catch(|| self.inner.verify())).map_err(Into::into)
    }

    /// Decision values of one row: a number for one vector of weights, else an array.
    fn row_decision<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        with_row!(indices, values, |row| match self.inner.outputs() {
            outputs if outputs.n_values() == 1 => {
                let mut out = [0.0];
                self.inner.decide_row(row, &mut out)?;
                Ok(PyFloat::new(py, out[0]).into_any())
            }
            outputs => {
                let mut out = vec![0.0; outputs.n_values()];
                self.decide(py, row, &mut out)?;
                Ok(out.into_pyarray(py).into_any())
            }
        })
    }

    /// Decision values of one row, into an array.
    fn row_decision_into<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
        mut out: PyReadwriteArray1<'py, f64>,
    ) -> PyResult<()> {
        let out = out.as_slice_mut()?;
        with_row!(indices, values, |row| self.decide(py, row, out))
    }

    /// Number of the class of one row.
    fn row_class<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<u32> {
        with_row!(indices, values, |row| self.with_decisions(py, row, |values| {
            let mut class = [0];
            self.inner.answer(values, Part::Classes(&mut class))?;
            Ok(class[0])
        }))
    }

    /// Probabilities of one row, or their logarithms, into an array.
    fn row_probabilities<'py>(
        &self,
        py: Python<'py>,
        indices: &Bound<'py, PyAny>,
        values: &Bound<'py, PyAny>,
        logarithms: bool,
        mut out: PyReadwriteArray1<'py, f64>,
    ) -> PyResult<()> {
        let out = out.as_slice_mut()?;
        let part = if logarithms { Part::Logarithms(out) } else { Part::Probabilities(out) };
        with_row!(indices, values, |row| self
            .with_decisions(py, row, |values| self.inner.answer(values, part)))
    }

    /// Columns and values of a row that is given by names.
    fn named_row<'py>(
        &self,
        py: Python<'py>,
        row: &Bound<'py, PyDict>,
        ignore_unknown: bool,
    ) -> PyResult<NamedRow<'py>> {
        let unknown = if ignore_unknown { UnknownNames::Ignore } else { UnknownNames::Error };
        let table = self.inner.names()?;
        let mut entries = Vec::with_capacity(row.len());
        for (name, value) in row.iter() {
            let known = name.cast::<PyString>();
            let known = known.map_err(|_| {
                PyTypeError::new_err(format!(
                    "a row by names is a dict of strings, one of its keys is {name:?}"
                ))
            })?;
            let key = NameKey::of(known.to_str()?);
            table.prefetch(key);
            let number: f64 = value.extract().map_err(|_| {
                PyTypeError::new_err(format!(
                    "feature {name:?} must have a number as its value, got {value:?}"
                ))
            })?;
            entries.push((key, number));
        }
        let (mut indices, mut values) = (Vec::with_capacity(row.len()), Vec::with_capacity(row.len()));
        for (at, (key, value)) in entries.into_iter().enumerate() {
            if let Some(column) = table.column(key) {
                indices.push(i64::from(column));
                values.push(value);
            } else if let Some((name, _)) = row.iter().nth(at) {
                self.inner.column(name.cast::<PyString>()?.to_str()?, unknown)?;
            }
        }
        Ok((indices.into_pyarray(py), values.into_pyarray(py)))
    }

    /// Decision values of rows into an array, a column per vector of weights.
    fn decisions<'py>(
        &self,
        py: Python<'py>,
        matrix: PyMatrix<'py>,
        n_threads: usize,
        mut out: PyReadwriteArray2<'py, f64>,
    ) -> PyResult<()> {
        self.batch(py, &matrix, n_threads, Part::Decisions(out.as_slice_mut()?))
    }

    /// Numbers of the classes of rows.
    fn classes<'py>(
        &self,
        py: Python<'py>,
        matrix: PyMatrix<'py>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let mut out = memory::catch(|| PyResult::Ok(memory::zeros(matrix.slices()?.n_rows())))?;
        self.batch(py, &matrix, n_threads, Part::Classes(&mut out))?;
        Ok(out.into_pyarray(py))
    }

    /// Probabilities of rows, or their logarithms, into an array, a column per class or label.
    fn probabilities<'py>(
        &self,
        py: Python<'py>,
        matrix: PyMatrix<'py>,
        n_threads: usize,
        logarithms: bool,
        mut out: PyReadwriteArray2<'py, f64>,
    ) -> PyResult<()> {
        let out = out.as_slice_mut()?;
        let part = if logarithms { Part::Logarithms(out) } else { Part::Probabilities(out) };
        self.batch(py, &matrix, n_threads, part)
    }

    /// Numbers of the classes of rows of decision values.
    fn classes_of<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray2<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let mut out = memory::catch(|| PyResult::Ok(memory::zeros(values.shape()[0])))?;
        let values = values.as_slice()?;
        py.detach(|| self.inner.answer(values, Part::Classes(&mut out)))?;
        Ok(out.into_pyarray(py))
    }

    /// Probabilities of rows of decision values, or their logarithms, into an array.
    fn probabilities_of<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray2<'py, f64>,
        logarithms: bool,
        mut out: PyReadwriteArray2<'py, f64>,
    ) -> PyResult<()> {
        let (values, out) = (values.as_slice()?, out.as_slice_mut()?);
        let part = if logarithms { Part::Logarithms(out) } else { Part::Probabilities(out) };
        Ok(py.detach(|| self.inner.answer(values, part))?)
    }

    /// The `k` classes or labels with the highest decision values of each row, highest first, and these
    /// values.
    fn top_k<'py>(
        &self,
        py: Python<'py>,
        matrix: PyMatrix<'py>,
        k: usize,
        n_threads: usize,
    ) -> PyResult<BestLabels<'py>> {
        let slices = matrix.slices()?;
        let (labels, values) = with_pieces!(slices, |x| {
            let n_threads = self.threads(&x, n_threads);
            run(py, n_threads, None, |monitor| self.inner.top_k(&x, k, monitor))?
        });
        let shape = [labels.len() / k.max(1), k];
        Ok((labels.into_pyarray(py).reshape(shape)?, values.into_pyarray(py).reshape(shape)?))
    }

    /// The labels with positive decision values, as `indptr` and `indices` of a CSR matrix.
    fn positive_labels<'py>(
        &self,
        py: Python<'py>,
        matrix: PyMatrix<'py>,
        n_threads: usize,
    ) -> PyResult<LabelRows<'py>> {
        let slices = matrix.slices()?;
        let (starts, labels) = with_pieces!(slices, |x| {
            let n_threads = self.threads(&x, n_threads);
            run(py, n_threads, None, |monitor| self.inner.positive_labels(&x, monitor))?
        });
        Ok((collected(py, starts.into_iter())?, collected(py, labels.into_iter())?))
    }
}

/// Numbers as an array of `m` rows; they lie column after column if it `is_turned`.
#[allow(unsafe_code)]
fn view<'py, T: Element>(
    numbers: &[T],
    m: usize,
    is_turned: bool,
    owner: Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let n = numbers.len() / m;
    let shape = if is_turned { (n, m) } else { (m, n) };
    let rows = ArrayView2::from_shape(shape, numbers).map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
    let rows = if is_turned { rows.reversed_axes() } else { rows };
    // SAFETY: the array holds `owner`, which holds the model, which never changes nor moves its numbers. It
    // is made read-only before anybody sees it, and NumPy lets nobody take that back where the owner has no
    // buffer to write to.
    let array = unsafe { PyArray2::borrow_from_array(&rows, owner) };
    array.call_method1("setflags", (false,))?;
    Ok(array.into_any())
}

/// Numbers of labels and decision values.
type BestLabels<'py> = (Bound<'py, PyArray2<u32>>, Bound<'py, PyArray2<f64>>);
/// `indptr` and `indices`.
type LabelRows<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>);
/// Columns and values.
type NamedRow<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, numpy::PyArray1<f64>>);

impl NativeModel {
    /// A model that is ready to answer.
    pub fn of(model: crate::model::Model) -> PyResult<Self> {
        let ready = Predictor::new(model);
        let inner =
            ready.map_err(|flaw| PyValueError::new_err(format!("{}: {}", flaw.field, flaw.reason)))?;
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Decision values of one row; a long one gives the interpreter back meanwhile.
    fn decide<I: Index, V: Value>(
        &self,
        py: Python<'_>,
        row: SparseRow<'_, I, V>,
        out: &mut [f64],
    ) -> PyResult<()>
    where
        for<'a> CsrPieces<'a, I, V>: ModelRows,
    {
        let products = row.indices.len().saturating_mul(out.len());
        let mut decide = || memory::catch(|| self.inner.decide_row(row, out));
        if products <= HOLD && self.inner.has_parts() {
            decide()?
        } else {
            py.detach(decide)?
        }
        Ok(())
    }

    /// `f` of the decision values of one row.
    fn with_decisions<I: Index, V: Value, T>(
        &self,
        py: Python<'_>,
        row: SparseRow<'_, I, V>,
        f: impl FnOnce(&[f64]) -> crate::Result<T>,
    ) -> PyResult<T>
    where
        for<'a> CsrPieces<'a, I, V>: ModelRows,
    {
        let n = self.inner.outputs().n_values();
        let (mut few, mut many) = ([0.0; FEW], Vec::new());
        if n > FEW {
            many.resize(n, 0.0);
        }
        let values = if n > FEW { &mut many[..] } else { &mut few[..n] };
        self.decide(py, row, values)?;
        Ok(f(values)?)
    }

    /// Threads that are worth their start.
    fn threads<P: ModelRows>(&self, x: &P, n_threads: usize) -> usize {
        if self.inner.products(x) <= ALONE { 1 } else { n_threads }
    }

    /// Answers for all rows.
    fn batch(&self, py: Python<'_>, matrix: &PyMatrix<'_>, n_threads: usize, out: Part<'_>) -> PyResult<()> {
        let slices = matrix.slices()?;
        with_pieces!(slices, |x| self.answer(py, &x, n_threads, out))
    }

    fn answer<P: ModelRows>(&self, py: Python<'_>, x: &P, n_threads: usize, out: Part<'_>) -> PyResult<()> {
        let (inner, products, n) = (&*self.inner, self.inner.products(x), x.n_rows());
        if products > LONG || !(inner.has_parts() || n == 1) {
            return run(py, n_threads, None, |monitor| inner.fill(x, monitor, out));
        }
        let whole = |out| memory::catch(|| inner.verify_for(x).and_then(|()| inner.fill_part(x, 0..n, out)));
        match products {
            _ if !inner.has_parts() => {
                Ok(py.detach(|| memory::catch(|| inner.fill(x, &crate::fit::Silent, out)))?)
            }
            ..=HOLD => Ok(whole(out)?),
            _ if products <= ALONE || n_threads <= 1 || n < n_threads => Ok(py.detach(|| whole(out))?),
            _ => py.detach(|| in_parts(inner, x, n_threads, out)),
        }
    }
}

/// Answers for all rows, one part a thread, of which this one is the first.
fn in_parts<P: ModelRows>(inner: &Predictor, x: &P, n_threads: usize, out: Part<'_>) -> PyResult<()> {
    inner.verify_for(x)?;
    let n = x.n_rows();
    let border = |t: usize| n / n_threads * t + n % n_threads * t / n_threads;
    let width = inner.outputs().n_probabilities().max(1);
    let width = if matches!(out, Part::Decisions(_)) { inner.outputs().n_values() } else { width };
    let fill = |rows: Range<usize>, out: Part<'_>| memory::catch(|| inner.fill_part(x, rows, out));
    let ended: Vec<crate::Result<()>> = thread::scope(|scope| {
        let (first, mut rest) = out.split(border(1), width);
        let mut threads = Vec::with_capacity(n_threads - 1);
        for t in 1..n_threads {
            let rows = border(t)..border(t + 1);
            let (part, others) = rest.split(rows.len(), width);
            rest = others;
            let started = thread::Builder::new().spawn_scoped(scope, move || fill(rows, part));
            threads.push(started);
        }
        let mut ended = vec![fill(0..border(1), first)];
        ended.extend(threads.into_iter().map(|started| match started.map(|thread| thread.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => Err(Error::Thread(error)),
        }));
        ended
    });
    // The first error in the order of the rows, whichever thread was faster.
    Ok(ended.into_iter().collect::<crate::Result<()>>()?)
}

/// Probabilities of rows of decision values, or their logarithms, into an array. `kind` is "pair", "classes"
/// or "labels".
#[pyfunction]
pub fn probabilities_of<'py>(
    py: Python<'py>,
    probability: &Bound<'py, PyDict>,
    kind: &str,
    values: PyReadonlyArray2<'py, f64>,
    logarithms: bool,
    mut out: PyReadwriteArray2<'py, f64>,
) -> PyResult<()> {
    let probability = probability_of(probability)?;
    let n = values.shape()[1];
    let outputs = match kind {
        "pair" => Outputs::Pair,
        "classes" => Outputs::Classes(n),
        "labels" => Outputs::Labels(n),
        other => return Err(PyValueError::new_err(format!("outputs of an unknown kind, {other:?}"))),
    };
    let flaw = probability.check(n).err().map(|flaw| flaw.reason);
    let flaw =
        flaw.or((outputs.n_values() != n).then(|| format!("{n} columns of decision values for two classes")));
    if let Some(reason) = flaw {
        return Err(PyValueError::new_err(reason));
    }
    let rows = values.shape()[0];
    if n == 0 || out.shape() != [rows, outputs.n_probabilities()] {
        return Err(PyRuntimeError::new_err("an array of probabilities has the wrong shape"));
    }
    let (values, out) = (values.as_slice()?, out.as_slice_mut()?);
    py.detach(|| {
        if logarithms {
            probability.fill_logarithms(outputs, values, out);
        } else {
            probability.fill(outputs, values, out);
        }
    });
    Ok(())
}
