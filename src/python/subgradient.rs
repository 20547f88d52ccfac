//! Binding of [`crate::fit::baselines::subgradient`].

use std::sync::Mutex;

use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{PyMatrix, collected, table};
use super::options;
use super::outcome::as_dict;
use super::run::{callback_error, run, unwrap_callback};
use super::store::StoreReader;
use crate::fit::baselines::subgradient::step_size::StepFunction;
use crate::fit::baselines::subgradient::{
    Average, Batch, Evaluation, StepLength, StepSize, SubgradientOptions, SubgradientState,
};
use crate::front::{Blocks, Source, Spec, Targets, descent};
use crate::labels::Labels;
use crate::{Error, Result, memory};

/// SubgradientOptions of a descent, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct DescentOptions {
    loss: String,
    intercept: Option<f64>,
    batch_size: Option<usize>,
    replace: bool,
    step_size: String,
    eta0: f64,
    projects: bool,
    average: String,
    tol: f64,
    objective_tol: f64,
    window: usize,
    step_tol: f64,
    step_length: String,
    max_iter: usize,
    seed: u64,
    n_threads: usize,
    presolve: String,
}

fn unknown<T>(name: &'static str, value: &str, rule: &'static str) -> Result<T> {
    Err(Error::Parameter { name, value: format!("{value:?}"), rule })
}

impl DescentOptions {
    fn spec(&self) -> Result<Spec<'_>> {
        let (loss, intercept) = (options::loss(&self.loss)?, options::intercept(self.intercept)?);
        Ok(Spec { loss, intercept, presolve: options::presolve(&self.presolve)?, ..Spec::default() })
    }

    fn resolve<'a>(&self, function: Option<&'a StepFunction<'a>>) -> Result<SubgradientOptions<'a>> {
        let step_size = match (self.step_size.as_str(), function) {
            ("pegasos", _) => StepSize::Pegasos,
            ("root", _) => StepSize::Root(self.eta0),
            ("constant", _) => StepSize::Constant(self.eta0),
            ("function", Some(function)) => StepSize::Function(function),
            (name, _) => return unknown("eta", name, "'pegasos', 'root', 'constant' or a function"),
        };
        let average = match self.average.as_str() {
            "none" => Average::None,
            "all" => Average::All,
            "suffix" => Average::Suffix,
            name => return unknown("average", name, "'suffix', 'all' or 'none'"),
        };
        let step_length = match self.step_length.as_str() {
            "whole" => StepLength::Whole,
            "loss" => StepLength::Loss,
            name => return unknown("step_length", name, "'whole' or 'loss'"),
        };
        Ok(SubgradientOptions {
            batch: match self.batch_size {
                None => Batch::All,
                Some(k) if self.replace => Batch::Rows(k),
                Some(k) => Batch::Subset(k),
            },
            step_size,
            projects: self.projects,
            average,
            tol: self.tol,
            objective_tol: self.objective_tol,
            window: (self.window, self.step_tol),
            step_length,
            max_epochs: self.max_iter,
            seed: self.seed,
        })
    }
}

/// `eta` as the solver calls it; what it raises is kept in `failed`.
fn step_function(eta: Py<PyAny>, failed: &Mutex<Option<PyErr>>) -> Box<StepFunction<'_>> {
    Box::new(move |first, out| call_eta(&eta, first, out).map_err(|error| callback_error(error, failed)))
}

/// Calls `eta(t)` for a run of steps.
fn call_eta(eta: &Py<PyAny>, first: u64, out: &mut [f64]) -> PyResult<()> {
    Python::attach(|py| {
        for (k, value) in out.iter_mut().enumerate() {
            *value = eta.call1(py, (first + k as u64,))?.extract(py)?;
        }
        Ok(())
    })
}

/// Descends on one binary problem per class (one in all for two classes). `eta` is the step length as a
/// function of the step.
#[pyfunction]
#[pyo3(signature = (matrix, class_ids, n_classes, cost, options, eta=None, progress=None))]
#[allow(clippy::too_many_arguments)] // the arguments of one Python call
pub fn descend<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    class_ids: PyReadonlyArray1<'py, u32>,
    n_classes: u32,
    cost: PyReadonlyArray1<'py, f64>,
    options: DescentOptions,
    eta: Option<Py<PyAny>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let targets = Targets::Classes(Labels { ids: class_ids.as_slice()?, n_classes });
    let (slices, cost, spec) = (matrix.slices()?, cost.as_slice()?, options.spec()?);
    let failed = Mutex::new(None);
    let function = eta.map(|eta| step_function(eta, &failed));
    let settings = options.resolve(function.as_deref())?;
    let result = run(py, options.n_threads, progress.as_ref(), |monitor| {
        let source = Source::Rows(slices.checked()?);
        descent::descend(&source, &targets, cost, &spec, &settings, monitor)
    });
    let (outcome, looks) = unwrap_callback(result, &failed)?;
    let result = as_dict(py, outcome, false)?;
    set_looks(py, &result, &looks)?;
    Ok(result)
}

/// Descends on the rows of a store, block by block. `cost` is C times the class weight by class, `budget` the
/// bytes to use.
#[pyfunction]
#[pyo3(signature = (reader, cost, options, budget, eta=None, progress=None))]
pub fn descend_store<'py>(
    py: Python<'py>,
    reader: &Bound<'py, StoreReader>,
    cost: PyReadonlyArray1<'py, f64>,
    options: DescentOptions,
    budget: u64,
    eta: Option<Py<PyAny>>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let store = &reader.get().store;
    let (cost, spec) = (cost.as_slice()?, options.spec()?);
    let failed = Mutex::new(None);
    let function = eta.map(|eta| step_function(eta, &failed));
    let settings = options.resolve(function.as_deref())?;
    let source = Source::Store(store, Blocks::within(budget));
    let result = run(py, options.n_threads, progress.as_ref(), |monitor| {
        descent::descend(&source, &Targets::Stored, cost, &spec, &settings, monitor)
    });
    let (outcome, looks) = unwrap_callback(result, &failed)?;
    let result = as_dict(py, outcome, false)?;
    set_looks(py, &result, &looks)?;
    Ok(result)
}

fn set_looks(py: Python<'_>, result: &Bound<'_, PyDict>, looks: &[Vec<Evaluation>]) -> PyResult<()> {
    result.set_item("looks", looks.iter().map(|looks| look_table(py, looks)).collect::<PyResult<Vec<_>>>()?)
}

/// A row per evaluation: epoch, steps, seconds, primal, dual, norm.
fn look_table<'py>(py: Python<'py>, looks: &[Evaluation]) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let numbers: Vec<f64> = looks
        .iter()
        .flat_map(|l| [l.epoch as f64, l.steps as f64, l.seconds, l.primal, l.dual, l.norm])
        .collect();
    numbers.into_pyarray(py).reshape([looks.len(), 6])
}

/// What is kept between passes, as Python has it: weights and sums with one row per problem, intercepts and
/// their sums, number of iterates in the sums, number of steps.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct PassState<'py> {
    w: PyReadonlyArray2<'py, f64>,
    sum: PyReadonlyArray2<'py, f64>,
    b: PyReadonlyArray1<'py, f64>,
    b_sum: PyReadonlyArray1<'py, f64>,
    counted: u64,
    steps: u64,
}

impl PassState<'_> {
    fn states(&self) -> PyResult<Vec<SubgradientState>> {
        let (w, sum, b, b_sum) =
            (self.w.as_slice()?, self.sum.as_slice()?, self.b.as_slice()?, self.b_sum.as_slice()?);
        let d = w.len() / b.len().max(1);
        if b.is_empty() || sum.len() != w.len() || b_sum.len() != b.len() || d * b.len() != w.len() {
            return Err(
                Error::Shape { what: "state of the passes", expected: w.len(), found: sum.len() }.into()
            );
        }
        let part = |v: &[f64], k: usize| memory::copy(&v[k * d..(k + 1) * d]);
        Ok((0..b.len())
            .map(|k| SubgradientState {
                w: part(w, k),
                sum: part(sum, k),
                b: b[k],
                b_sum: b_sum[k],
                counted: self.counted,
                steps: self.steps,
            })
            .collect())
    }
}

/// One pass over further rows; returns the new state. `cost` adds up to `1 / lambda`, rows of cost 0 are left
/// out.
#[pyfunction]
#[pyo3(signature = (matrix, class_ids, n_classes, cost, options, state, eta=None))]
#[allow(clippy::too_many_arguments)] // the arguments of one Python call
pub fn descend_on<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    class_ids: PyReadonlyArray1<'py, u32>,
    n_classes: u32,
    cost: PyReadonlyArray1<'py, f64>,
    options: DescentOptions,
    state: PassState<'py>,
    eta: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let labels = Labels { ids: class_ids.as_slice()?, n_classes };
    let (slices, cost, spec) = (matrix.slices()?, cost.as_slice()?, options.spec()?);
    let states = memory::catch(|| state.states())?;
    let failed = Mutex::new(None);
    let function = eta.map(|eta| step_function(eta, &failed));
    let settings = options.resolve(function.as_deref())?;
    let result = run(py, options.n_threads, None, |monitor| {
        descent::advance(&slices.checked()?, &labels, cost, &spec, &settings, &states, monitor)
    });
    state_dict(py, &unwrap_callback(result, &failed)?)
}

fn state_dict<'py>(py: Python<'py>, states: &[SubgradientState]) -> PyResult<Bound<'py, PyDict>> {
    let width = states.first().map_or(0, |s| s.w.len());
    let table = |f: fn(&SubgradientState) -> &[f64]| table(py, width, states.iter().map(f));
    let column = |f: fn(&SubgradientState) -> f64| collected(py, states.iter().map(f));
    let result = PyDict::new(py);
    result.set_item("w", table(|s| &s.w)?)?;
    result.set_item("sum", table(|s| &s.sum)?)?;
    result.set_item("b", column(|s| s.b)?)?;
    result.set_item("b_sum", column(|s| s.b_sum)?)?;
    result.set_item("counted", states.first().map_or(0, |s| s.counted))?;
    result.set_item("steps", states.first().map_or(0, |s| s.steps))?;
    Ok(result)
}
