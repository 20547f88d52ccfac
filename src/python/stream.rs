//! Binding of [`crate::outofcore::stream`]: a model that learns from pieces of a stream, and can be pickled.

use std::sync::Mutex;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, ToPyArray};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Matrix, with_rows};
use super::options::{self, FitOptions};
use super::outofcore::{BlockOptions, settings};
use super::run::run;
use crate::data::arena::Width;
use crate::outofcore::resident::Plain;
use crate::outofcore::stream::{Counts, Options, Snapshot, Stream};
use crate::outofcore::task::{State, Sums};

/// A linear model that learns from rows seen once.
#[pyclass(frozen, module = "hinge._native")]
pub struct StreamLearner {
    stream: Mutex<Option<Stream>>,
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
            lens: self.lens.as_slice()?.to_vec(),
            columns: self.columns.as_slice()?.to_vec(),
            values: self.values.as_slice()?.to_vec(),
        };
        let n = self.w.len();
        if [self.alpha.len(), self.numbers.len(), self.visits.len()] != [n; 3] {
            return Err(PyValueError::new_err("the state of a stream has lists of different lengths"));
        }
        let state = |k: usize| -> PyResult<State> {
            let [offset, terms, all_0, all_1, inside_0, inside_1] = self.numbers[k];
            Ok(State {
                w: self.w[k].as_slice()?.to_vec(),
                alpha: self.alpha[k].as_slice()?.to_vec(),
                offset,
                sums: Sums { terms, all: [all_0, all_1], inside: [inside_0, inside_1] },
                losses: 0.0,
                visits: self.visits[k],
            })
        };
        Ok(Snapshot {
            rows,
            classes: self.classes.as_slice()?.to_vec(),
            weights: self.weights.as_slice()?.to_vec(),
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
    /// Begins; `cost` is C times the class weight by class, `dtype` that of the values, `state` what [`Self::state`] gave.
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
            _ => return Err(PyValueError::new_err(format!("dtype must be 'float32' or 'float64', got {dtype:?}"))),
        };
        options::solver(&options.solver)?;
        let settings = settings(&options, &blocks, None)?;
        let options = Options { settings, n_cols: n_features, cost: cost.as_slice()?.to_vec(), width };
        let stream = match state {
            Some(kept) => Stream::restore(options, kept.snapshot()?)?,
            None => Stream::new(options)?,
        };
        Ok(Self { stream: Mutex::new(Some(stream)) })
    }

    /// Learns from rows; after an interrupt in the middle the learner is of no use.
    #[pyo3(signature = (matrix, class_ids, weight, n_threads))]
    fn learn(
        &self,
        py: Python<'_>,
        matrix: Matrix<'_>,
        class_ids: PyReadonlyArray1<'_, u32>,
        weight: Option<PyReadonlyArray1<'_, f64>>,
        n_threads: usize,
    ) -> PyResult<()> {
        let (classes, slices) = (class_ids.as_slice()?, matrix.slices()?);
        let weight = weight.as_ref().map(|weight| weight.as_slice()).transpose()?;
        let mut held = self.stream.lock().map_err(|_| broken())?;
        let seen = held.as_ref().ok_or_else(broken)?.counts().seen;
        let stream = held.as_mut().ok_or_else(broken)?;
        let done = run(py, n_threads, None, |monitor| {
            with_rows!(slices, |rows, _structure| stream.learn(&rows, classes, weight, monitor))
        });
        // What is refused before anything is learned leaves the stream as it was.
        if done.is_err() && held.as_ref().is_some_and(|stream| stream.counts().seen != seen) {
            *held = None;
        }
        done
    }

    /// Weights (problems x features) and intercepts.
    fn model<'py>(&self, py: Python<'py>) -> PyResult<Model<'py>> {
        let held = self.stream.lock().map_err(|_| broken())?;
        let stream = held.as_ref().ok_or_else(broken)?;
        let n = stream.n_problems();
        let mut coef = Vec::with_capacity(n * stream.model(0).0.len());
        let mut intercept = Vec::with_capacity(n);
        for k in 0..n {
            let (w, b) = stream.model(k);
            coef.extend_from_slice(w);
            intercept.push(b);
        }
        let d = coef.len() / n.max(1);
        Ok((coef.into_pyarray(py).reshape([n, d])?, intercept.into_pyarray(py)))
    }

    /// (rows seen, rows at hand, dual value of each problem).
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<(u64, usize, Bound<'py, PyArray1<f64>>)> {
        let held = self.stream.lock().map_err(|_| broken())?;
        let stream = held.as_ref().ok_or_else(broken)?;
        let dual: Vec<f64> = (0..stream.n_problems()).map(|k| stream.dual(k)).collect();
        Ok((stream.counts().seen, stream.n_resident(), dual.into_pyarray(py)))
    }

    /// All that the learner is made of, as arrays and numbers.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let held = self.stream.lock().map_err(|_| broken())?;
        let Snapshot { rows, classes, weights, states, bias, counts } = held.as_ref().ok_or_else(broken)?.snapshot();
        let state = PyDict::new(py);
        state.set_item("lens", rows.lens.into_pyarray(py))?;
        state.set_item("columns", rows.columns.into_pyarray(py))?;
        state.set_item("values", rows.values.into_pyarray(py))?;
        state.set_item("classes", classes.into_pyarray(py))?;
        state.set_item("weights", weights.into_pyarray(py))?;
        state.set_item("w", states.iter().map(|s| s.w.to_pyarray(py)).collect::<Vec<_>>())?;
        state.set_item("alpha", states.iter().map(|s| s.alpha.to_pyarray(py)).collect::<Vec<_>>())?;
        let numbers = |s: &State| {
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
    PyRuntimeError::new_err("partial_fit was interrupted in the middle of a piece: begin again with a new estimator")
}
