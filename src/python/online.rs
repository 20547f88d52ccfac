//! Binding of [`crate::online`]: a model that learns from pieces of a stream, and can be pickled.

use numpy::{IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{PyMatrix, collected, copied, table};
use super::blocks::BlockOptions;
use super::options::FitOptions;
use super::run::run;
use super::turns::Turns;
use crate::blocks::state::BinaryState;
use crate::blocks::sums::Sums;
use crate::matrix::arena::Width;
use crate::memory;
use crate::online::{Counts, Snapshot, Stream, StreamOptions, StreamProblem};
use crate::source::resident::Plain;

/// A linear model that learns from rows seen once.
#[pyclass(frozen, module = "hinge._native")]
pub struct StreamLearner {
    stream: Turns<Option<Stream>>,
}

/// The arrays of a [`Snapshot`], as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Kept<'py> {
    lens: PyReadonlyArray1<'py, i64>,
    columns: PyReadonlyArray1<'py, i32>,
    values: PyReadonlyArray1<'py, f64>,
    classes: PyReadonlyArray1<'py, u32>,
    weights: PyReadonlyArray1<'py, f64>,
    w: Vec<PyReadonlyArray1<'py, f64>>,
    alpha: Vec<PyReadonlyArray1<'py, f64>>,
    /// Offset and sums of each problem.
    numbers: Vec<[f64; 6]>,
    visits: Vec<u64>,
    bias: Option<f64>,
    seen: u64,
    cached: usize,
    steps: u64,
}

impl Kept<'_> {
    fn snapshot(&self) -> PyResult<Snapshot> {
        let rows = Plain {
            lens: memory::copy(self.lens.as_slice()?),
            columns: memory::copy(self.columns.as_slice()?),
            values: memory::copy(self.values.as_slice()?),
        };
        let n = self.w.len();
        if [self.alpha.len(), self.numbers.len(), self.visits.len()] != [n; 3] {
            return Err(PyValueError::new_err("the state of a stream has lists of different lengths"));
        }
        let state = |k: usize| -> PyResult<BinaryState> {
            let [offset, terms, all_0, all_1, inside_0, inside_1] = self.numbers[k];
            Ok(BinaryState {
                w: memory::copy(self.w[k].as_slice()?),
                alpha: memory::copy(self.alpha[k].as_slice()?),
                offset,
                sums: Sums { terms, all: [all_0, all_1], inside: [inside_0, inside_1] },
                losses: 0.0,
                visits: self.visits[k],
            })
        };
        Ok(Snapshot {
            rows,
            classes: memory::copy(self.classes.as_slice()?),
            weights: memory::copy(self.weights.as_slice()?),
            states: (0..n).map(state).collect::<PyResult<_>>()?,
            bias: self.bias,
            counts: Counts { seen: self.seen, cached: self.cached, steps: self.steps },
        })
    }
}

/// Weights and intercepts.
type Model<'py> = (Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl StreamLearner {
    /// Begins; `cost` is C times the class weight by class, `dtype` that of the values, `state` what
    /// [`Self::state`] gave.
    #[new]
    #[pyo3(signature = (n_features, cost, dtype, options, blocks, state=None))]
    fn new(
        n_features: usize,
        cost: PyReadonlyArray1<'_, f64>,
        dtype: &str,
        options: FitOptions,
        blocks: BlockOptions,
        state: Option<Kept<'_>>,
    ) -> PyResult<Self> {
        let width = match dtype {
            "float32" => Width::F32,
            "float64" => Width::F64,
            _ => {
                return Err(PyValueError::new_err(format!(
                    "dtype must be 'float32' or 'float64', got {dtype:?}"
                )));
            }
        };
        let (spec, cost) = (options.spec()?, cost.as_slice()?.to_vec());
        let problem = match (spec.is_crammer_singer(), spec.is_multinomial(cost.len() as u32)?) {
            (true, _) => StreamProblem::CrammerSinger,
            (false, true) => StreamProblem::Softmax,
            (false, false) => StreamProblem::Each,
        };
        let settings = blocks.resolve()?.settings(&spec, None);
        let options = StreamOptions { settings, n_cols: n_features, cost, width, problem };
        let stream = memory::catch(|| match state {
            Some(kept) => Ok::<_, PyErr>(Stream::restore(options, kept.snapshot()?)?),
            None => Ok(Stream::new(options)?),
        })?;
        Ok(Self { stream: Turns::new(Some(stream)) })
    }

    /// Learns from rows; after an interrupt in the middle the learner can no longer be used.
    #[pyo3(signature = (matrix, class_ids, weight, n_threads))]
    fn learn(
        &self,
        py: Python<'_>,
        matrix: PyMatrix<'_>,
        class_ids: PyReadonlyArray1<'_, u32>,
        weight: Option<PyReadonlyArray1<'_, f64>>,
        n_threads: usize,
    ) -> PyResult<()> {
        let (classes, slices) = (class_ids.as_slice()?, matrix.slices()?);
        let weight = weight.as_ref().map(|weight| weight.as_slice()).transpose()?;
        let mut held = self.stream.take(py)?;
        let seen = held.as_ref().ok_or_else(broken)?.counts().seen;
        let stream = held.as_mut().ok_or_else(broken)?;
        let done = run(py, n_threads, None, |monitor| {
            let rows = slices.checked()?.rows;
            stream.learn(&rows.into(), classes, weight, monitor)
        });
        // What is refused before anything is learned leaves the stream as it was.
        if done.is_err() && held.as_ref().is_some_and(|stream| stream.counts().seen != seen) {
            *held = None;
        }
        done
    }

    /// Weights (problems x features) and intercepts.
    fn model<'py>(&self, py: Python<'py>) -> PyResult<Model<'py>> {
        let held = self.stream.take(py)?;
        let stream = held.as_ref().ok_or_else(broken)?;
        let n = stream.n_problems();
        let coef = table(py, stream.model(0).0.len(), (0..n).map(|k| stream.model(k).0.into_owned()))?;
        Ok((coef, collected(py, (0..n).map(|k| stream.model(k).1))?))
    }

    /// (rows seen, rows in memory, dual value of each problem).
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<(u64, usize, Bound<'py, PyArray1<f64>>)> {
        let held = self.stream.take(py)?;
        let stream = held.as_ref().ok_or_else(broken)?;
        Ok((stream.counts().seen, stream.n_resident(), stream.duals().into_pyarray(py)))
    }

    /// All that the learner is made of, as arrays and numbers.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let held = self.stream.take(py)?;
        let stream = held.as_ref().ok_or_else(broken)?;
        let snapshot = memory::catch(|| Ok::<_, PyErr>(stream.snapshot()))?;
        let Snapshot { rows, classes, weights, states, bias, counts } = snapshot;
        let state = PyDict::new(py);
        state.set_item("lens", rows.lens.into_pyarray(py))?;
        state.set_item("columns", rows.columns.into_pyarray(py))?;
        state.set_item("values", rows.values.into_pyarray(py))?;
        state.set_item("classes", classes.into_pyarray(py))?;
        state.set_item("weights", weights.into_pyarray(py))?;
        state.set_item("w", states.iter().map(|s| copied(py, &s.w)).collect::<PyResult<Vec<_>>>()?)?;
        state
            .set_item("alpha", states.iter().map(|s| copied(py, &s.alpha)).collect::<PyResult<Vec<_>>>()?)?;
        let numbers = |s: &BinaryState| {
            let Sums { terms, all, inside } = s.sums;
            [s.offset, terms, all[0], all[1], inside[0], inside[1]]
        };
        state.set_item("numbers", states.iter().map(numbers).collect::<Vec<_>>())?;
        state.set_item("visits", states.iter().map(|s| s.visits).collect::<Vec<_>>())?;
        state.set_item("bias", bias)?;
        state.set_item("seen", counts.seen)?;
        state.set_item("cached", counts.cached)?;
        state.set_item("steps", counts.steps)?;
        Ok(state)
    }
}

fn broken() -> PyErr {
    PyRuntimeError::new_err(
        "partial_fit was interrupted in the middle of a piece: begin again with a new estimator",
    )
}
