//! Binding of [`crate::fit::baselines::subgradient`].

use std::sync::Mutex;

use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{PyMatrix, collected, table};
use super::fit::{as_dict, report_dict};
use super::options;
use super::run::{callback_error, run, unwrap_callback};
use super::store::StoreReader;
use crate::blocks::{Task, subgradient as blocks};
use crate::fit::baselines::subgradient;
use crate::fit::baselines::subgradient::step_size::StepFunction;
use crate::fit::baselines::subgradient::{
    Average, Batch, Evaluation, StepSize, SubgradientOptions, SubgradientState,
};
use crate::fit::{Monitor, Problem, Solution, Status, certificate};
use crate::labels::Labels;
use crate::loss::LossKind;
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::presolve::{Presolved, pack};
use crate::{Error, Result, labels, memory, parallel};

/// Passes that a descent is taken to make, for the choice of presolve.
const EXPECTED_PASSES: f64 = 60.0;

/// Options of a descent, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct DescentOptions {
    loss: String,
    intercept: Option<f64>,
    batch_size: Option<usize>,
    step_size: String,
    eta0: f64,
    projects: bool,
    average: String,
    tol: f64,
    objective_tol: f64,
    window: usize,
    step_tol: f64,
    max_iter: usize,
    seed: u64,
    n_threads: usize,
    presolve: String,
}

fn unknown<T>(name: &'static str, value: &str, rule: &'static str) -> Result<T> {
    Err(Error::Parameter { name, value: format!("{value:?}"), rule })
}

impl DescentOptions {
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
        Ok(SubgradientOptions {
            batch: self.batch_size.map_or(Batch::All, Batch::Rows),
            step_size,
            projects: self.projects,
            average,
            tol: self.tol,
            objective_tol: self.objective_tol,
            window: (self.window, self.step_tol),
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
    let labels = Labels { ids: class_ids.as_slice()?, n_classes };
    let cost = cost.as_slice()?;
    let (loss, intercept) = (options::loss(&options.loss)?, options::intercept(options.intercept)?);
    let mode = options::presolve(&options.presolve, EXPECTED_PASSES, labels.n_problems())?;
    let failed = Mutex::new(None);
    let function = eta.map(|eta| step_function(eta, &failed));
    let settings = options.resolve(function.as_deref())?;
    let slices = matrix.slices()?;
    let result = run(py, options.n_threads, progress.as_ref(), |monitor| {
        let (rows, structure) = slices.checked()?;
        structure.check_solvable()?;
        let packed = pack(&rows, &structure, mode, &|| monitor.cancelled())?;
        let rows = Matrix::from(rows);
        let found = labels::fit_each(&rows, &labels, cost, intercept, settings.seed, |problem, seed| {
            descend_one(problem, packed.as_ref(), loss, &SubgradientOptions { seed, ..settings }, monitor)
        })?;
        Ok((found, rows.n_cols(), packed.map(|packed| *packed.report())))
    });
    let (found, n_cols, report) = unwrap_callback(result, &failed)?;
    let (solutions, looks): (Vec<Solution>, Vec<Vec<Evaluation>>) = found.into_iter().unzip();
    let result = as_dict(py, &solutions, n_cols)?;
    result.set_item("presolve", report.map(|report| report_dict(py, &report)).transpose()?)?;
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
    let tasks = Task::one_against_rest(store.classes().len(), cost.as_slice()?)?;
    let (loss, intercept) = (options::loss(&options.loss)?, options::intercept(options.intercept)?);
    let failed = Mutex::new(None);
    let function = eta.map(|eta| step_function(eta, &failed));
    let settings = options.resolve(function.as_deref())?;
    let result = run(py, options.n_threads, progress.as_ref(), |monitor| {
        blocks::fit(store, &tasks, loss, intercept, &settings, budget, monitor)
    });
    let found = unwrap_callback(result, &failed)?;
    let (outcomes, looks): (Vec<_>, Vec<_>) =
        found.into_iter().map(|found| (found.outcome, found.looks)).unzip();
    let result = super::blocks::as_dict(py, outcomes, store.meta().n_cols, "subgradient")?;
    result.set_item("presolve", py.None())?;
    set_looks(py, &result, &looks)?;
    Ok(result)
}

fn set_looks(py: Python<'_>, result: &Bound<'_, PyDict>, looks: &[Vec<Evaluation>]) -> PyResult<()> {
    result.set_item("looks", looks.iter().map(|looks| look_table(py, looks)).collect::<PyResult<Vec<_>>>()?)
}

/// Descends on the packed columns where there are any; the certificate is proved on the caller's rows,
/// whatever rounding the packed ones have.
fn descend_one(
    problem: &Problem<'_>,
    packed: Option<&Presolved>,
    loss: LossKind,
    settings: &SubgradientOptions<'_>,
    monitor: &dyn Monitor,
) -> Result<(Solution, Vec<Evaluation>)> {
    let view = packed.map(Presolved::view);
    let there = Problem { rows: view.as_ref().unwrap_or(problem.rows), ..*problem };
    let (mut solution, looks) = subgradient::solve(&there, loss, settings, monitor)?;
    if let Some(packed) = packed {
        solution.w = packed.map_weights_back(&solution.w);
    }
    certificate::certify(problem, loss, &mut solution, settings.tol, monitor)?;
    if solution.status == Status::Converged && solution.certificate.relative_gap() > settings.tol {
        solution.status = Status::Stalled;
    }
    Ok((solution, looks))
}

/// A row per look: epoch, steps, seconds, primal, dual, norm.
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
    let cost = cost.as_slice()?;
    let (loss, intercept) = (options::loss(&options.loss)?, options::intercept(options.intercept)?);
    let states = memory::catch(|| state.states())?;
    let failed = Mutex::new(None);
    let function = eta.map(|eta| step_function(eta, &failed));
    let settings = options.resolve(function.as_deref())?;
    let slices = matrix.slices()?;
    let result = run(py, options.n_threads, None, |monitor| {
        let (rows, structure) = slices.checked()?;
        let rows = Matrix::from(rows);
        structure.check_solvable()?;
        labels.check(rows.n_rows())?;
        labels::check_weights(cost, rows.n_rows())?;
        let n_rows = labels::check_row_count(&rows)?;
        let ids: Vec<u32> = (0..n_rows).filter(|&i| cost[i as usize] > 0.0).collect_large();
        let cost: Vec<f64> = ids.iter().map(|&i| cost[i as usize]).collect_large();
        parallel::try_map(&states, |k, state| {
            let y = labels.signs(k, &ids);
            let problem = Problem { rows: &rows, ids: Some(&ids), y: &y, cost: &cost, intercept };
            let settings = SubgradientOptions { seed: settings.seed.wrapping_add(k as u64), ..settings };
            subgradient::advance(&problem, loss, &settings, state, monitor)
        })
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
