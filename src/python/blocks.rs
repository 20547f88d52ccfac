//! Binding of [`crate::blocks`]: fits, searches and decision values over a store.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{CsrSlices, Slices, table};
use super::fit::{Ask, Facts, facts_dict, fit_mapped, fit_slices, report_dict};
use super::options::FitOptions;
use super::pairs::MapOptions;
use super::run::run;
use super::search::{Fold, PlanOptions, SearchCall, as_folds};
use super::store::StoreReader;
use super::{multiclass, options};
use crate::blocks::trainer::{AllOutcome, Keep, Outcome};
use crate::blocks::{DualsIn, Policy, Settings, StoreMap, Task, Waiting, budget, scan, search};
use crate::fit::{Monitor, SolverKind};
use crate::labels::Labels;
use crate::loss::LossKind;
use crate::matrix::CsrValues;
use crate::matrix::arena::OwnedCsr;
use crate::memory::CollectLarge;
use crate::presolve::Report;
use crate::store::reader::Store;
use crate::{Error, Result, blocks, memory};

/// Options of training on blocks, in a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct BlockOptions {
    memory_budget: u64,
    cache: String,
    cache_share: Option<f64>,
    rounds: usize,
    round_tol: f64,
    keep_compressed: bool,
    while_reading: String,
    duals: String,
    in_memory: Option<bool>,
    checkpoint: Option<PathBuf>,
    checkpoint_seconds: f64,
}

fn policy(name: &str) -> Result<Policy> {
    match name {
        "none" => Ok(Policy::None),
        "random" => Ok(Policy::Random),
        "gradient" => Ok(Policy::Gradient),
        "projected" => Ok(Policy::Projected),
        _ => Err(Error::Parameter {
            name: "cache",
            value: format!("{name:?}"),
            rule: "'none', 'random', 'gradient' or 'projected'",
        }),
    }
}

fn waiting(name: &str) -> Result<Waiting> {
    match name {
        "rest" => Ok(Waiting::Rest),
        "train" => Ok(Waiting::Train),
        _ => {
            let rule = "'rest' or 'train'";
            Err(Error::Parameter { name: "while_reading", value: format!("{name:?}"), rule })
        }
    }
}

fn duals(name: &str) -> Result<DualsIn> {
    match name {
        "auto" => Ok(DualsIn::Auto),
        "memory" => Ok(DualsIn::Memory),
        "file" => Ok(DualsIn::File),
        _ => {
            let rule = "'auto', 'memory' or 'file'";
            Err(Error::Parameter { name: "duals", value: format!("{name:?}"), rule })
        }
    }
}

/// The degree-2 map of a store's rows, if one is asked for.
fn store_map(store: &Store, map: Option<&MapOptions>) -> Result<Option<StoreMap>> {
    map.map(|map| StoreMap::new(store, map.map(store.meta().n_cols)?)).transpose()
}

/// The settings of a descent.
pub fn settings<'a>(
    options: &FitOptions,
    blocks: &BlockOptions,
    map: Option<&'a StoreMap>,
) -> Result<Settings<'a>> {
    Ok(Settings {
        loss: options::loss(&options.loss)?,
        intercept: options::intercept(options.intercept)?,
        tol: options.tol,
        max_passes: options.max_iter,
        seed: options.seed,
        budget: blocks.memory_budget,
        policy: policy(&blocks.cache)?,
        cache_share: blocks.cache_share,
        rounds: blocks.rounds,
        round_tol: blocks.round_tol,
        keeps_stored: blocks.keep_compressed,
        waiting: waiting(&blocks.while_reading)?,
        duals: duals(&blocks.duals)?,
        map,
    })
}

/// Fits one binary problem per class (one in all for two classes), or all classes at once, on the rows of a
/// store. `cost` is C times the class weight by class.
#[pyfunction]
#[pyo3(signature = (reader, cost, options, blocks, progress=None))]
pub fn fit_store<'py>(
    py: Python<'py>,
    reader: &Bound<'py, StoreReader>,
    cost: PyReadonlyArray1<'py, f64>,
    options: FitOptions,
    blocks: BlockOptions,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let store = &reader.get().store;
    let cost = cost.as_slice()?;
    let tasks = Task::one_against_rest(store.classes().len(), cost)?;
    let map = store_map(store, options.map.as_ref())?;
    let settings = settings(&options, &blocks, map.as_ref())?;
    let solver = options::solver(&options.solver)?;
    let fits = |copies| budget::fits_in_memory(store, &settings, tasks.len(), copies);
    let in_memory = blocks.in_memory.unwrap_or(fits(1) && blocks.checkpoint.is_none());
    // "auto" stays within the budget; who asks for the presolve gets it.
    let presolve =
        if options.presolve == "auto" && !fits(budget::PRESOLVE_COPIES) { "off" } else { &options.presolve };
    let ask = Ask { presolve, ..Ask::of(&options)? };
    if !in_memory && !matches!(solver, SolverKind::Auto | SolverKind::DualCd | SolverKind::CrammerSinger) {
        return Err(wrong_solver(&options).into());
    }
    let keep = blocks.checkpoint.as_deref().map(|path| Keep { path, seconds: blocks.checkpoint_seconds });
    if solver == SolverKind::CrammerSinger {
        let ask = Ask { loss: LossKind::Hinge, ..ask };
        let (outcome, report) = run(py, options.n_threads, progress.as_ref(), |monitor| match in_memory {
            true => crammer_singer_in_memory(store, cost, &ask, monitor),
            false => Ok((blocks::fit_crammer_singer(store, cost, &settings, keep, monitor)?, None)),
        })?;
        return multiclass::of_store(py, store, &outcome, name(in_memory), report.as_ref());
    }
    let (outcomes, report) = run(py, options.n_threads, progress.as_ref(), |monitor| {
        if in_memory {
            return fit_in_memory(store, cost, &ask, &settings, monitor);
        }
        Ok((blocks::fit(store, &tasks, &[], &settings, keep, monitor)?, None))
    })?;
    let n_weights = map.as_ref().map_or(store.meta().n_cols, StoreMap::n_input);
    let result = as_dict(py, outcomes, n_weights, name(in_memory))?;
    result.set_item("presolve", report.map(|report| report_dict(py, &report)).transpose()?)?;
    Ok(result)
}

fn wrong_solver(options: &FitOptions) -> Error {
    if options.solver == "crammer_singer" {
        let rule = "'ovr' for a search over a store that is larger than memory_budget";
        return Error::Parameter { name: "multi_class", value: format!("{:?}", options.solver), rule };
    }
    let rule = "'auto' or 'dual_cd' for a store that is larger than memory_budget";
    Error::Parameter { name: "solver", value: format!("{:?}", options.solver), rule }
}

/// The whole store as one matrix, for the solvers in memory.
struct Whole {
    matrix: OwnedCsr,
    n_cols: usize,
    classes: Vec<u32>,
    costs: Vec<f64>,
}

impl Whole {
    fn read(store: &Store, cost: &[f64], monitor: &dyn Monitor) -> Result<Self> {
        let pages: Vec<u32> = (0..store.pages().len() as u32).collect();
        let (arena, facts) = store.load(&pages, store.plain_width(), monitor)?;
        let costs =
            facts.classes.iter().zip(&facts.weights).map(|(&k, w)| cost[k as usize] * w).collect_large();
        let Ok(matrix) = arena.into_csr() else {
            let rule = "below 2^31 entries for in_memory=True";
            return Err(Error::Parameter {
                name: "entries of the store",
                value: store.meta().nnz.to_string(),
                rule,
            });
        };
        Ok(Self { matrix, n_cols: store.meta().n_used, classes: facts.classes, costs })
    }

    fn slices(&self) -> Slices<'_> {
        let (OwnedCsr { indptr, indices, values }, n_cols) = (&self.matrix, self.n_cols);
        match values {
            CsrValues::F32(values) => Slices::Csr32F32(CsrSlices { indptr, indices, values, n_cols }),
            CsrValues::F64(values) => Slices::Csr32F64(CsrSlices { indptr, indices, values, n_cols }),
        }
    }
}

/// All problems, by the solvers in memory.
fn fit_in_memory(
    store: &Store,
    cost: &[f64],
    ask: &Ask<'_>,
    settings: &Settings<'_>,
    monitor: &dyn Monitor,
) -> Result<(Vec<Outcome>, Option<Report>)> {
    let whole = Whole::read(store, cost, monitor)?;
    let labels = Labels { ids: &whole.classes, n_classes: cost.len() as u32 };
    let (slices, costs) = (whole.slices(), &whole.costs);
    let (solutions, report) = match settings.map {
        Some(map) => (fit_mapped(slices.checked()?, map.inner(), &labels, costs, ask, monitor)?, None),
        None => {
            let (solutions, _, report) = fit_slices(slices, &labels, costs, ask, monitor)?;
            (solutions, report)
        }
    };
    let old = store.old_columns()?;
    let outcome = |solution: crate::fit::Solution| {
        let crate::fit::Solution { w, intercept, certificate, status, n_iter, passes, .. } = solution;
        let w = settings.to_input(store, &old, w);
        Outcome { w, intercept, certificate, status, n_iter, passes, loads: 1.0 }
    };
    Ok((solutions.into_iter().map(outcome).collect(), report))
}

/// All classes at once, by the solver in memory.
fn crammer_singer_in_memory(
    store: &Store,
    cost: &[f64],
    ask: &Ask<'_>,
    monitor: &dyn Monitor,
) -> Result<(AllOutcome, Option<Report>)> {
    let whole = Whole::read(store, cost, monitor)?;
    let labels = Labels { ids: &whole.classes, n_classes: cost.len() as u32 };
    let (solution, _, report) =
        super::multiclass::fit_slices(whole.slices(), &labels, &whole.costs, ask, monitor)?;
    let crate::fit::crammer_singer::ClassSolution {
        weights,
        intercepts,
        certificate,
        status,
        n_iter,
        passes,
        ..
    } = solution;
    Ok((AllOutcome { weights, intercepts, certificate, status, n_iter, passes, loads: 1.0 }, report))
}

fn name(in_memory: bool) -> &'static str {
    if in_memory { "in_memory" } else { blocks::trainer::NAME }
}

/// Models, one row of weights each, and their certificates as Python has them.
pub fn as_dict<'py>(
    py: Python<'py>,
    outcomes: Vec<Outcome>,
    n_cols: usize,
    solver: &'static str,
) -> PyResult<Bound<'py, PyDict>> {
    let facts = |o: &Outcome| {
        let Outcome { certificate, passes, n_iter, status, .. } = *o;
        Facts { certificate, passes, n_iter, status, solver }
    };
    let result = facts_dict(py, &outcomes.iter().map(facts).collect::<Vec<_>>())?;
    let column = |f: fn(&Outcome) -> f64| outcomes.iter().map(f).collect::<Vec<_>>().into_pyarray(py);
    result.set_item("intercept", column(|o| o.intercept))?;
    result.set_item("loads", column(|o| o.loads))?;
    // One problem: its vector is the result, without a copy.
    let coef = match <[Outcome; 1]>::try_from(outcomes) {
        Ok([only]) => only.w.into_pyarray(py).reshape([1, n_cols])?,
        Err(outcomes) => table(py, n_cols, outcomes.iter().map(|outcome| &outcome.w[..]))?,
    };
    result.set_item("coef", coef)?;
    Ok(result)
}

/// Searches for `C` over a store: [`super::search::search`] with folds as row numbers of the store's input.
/// `factor` are the class weights. Returns why the search ended.
#[pyfunction]
#[pyo3(signature = (reader, factor, folds, options, blocks, plan, visit, progress=None))]
#[allow(clippy::too_many_arguments)] // the arguments of one Python call
pub fn search_store<'py>(
    py: Python<'py>,
    reader: &Bound<'py, StoreReader>,
    factor: PyReadonlyArray1<'py, f64>,
    folds: Vec<Fold<'py>>,
    options: FitOptions,
    blocks: BlockOptions,
    plan: PlanOptions,
    visit: Bound<'py, PyAny>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<&'static str> {
    let store = &reader.get().store;
    let (factor, folds) = (factor.as_slice()?, as_folds(&folds)?);
    search::check_factor(store, factor)?;
    let map = store_map(store, options.map.as_ref())?;
    let (settings, block_settings) =
        (super::search::settings(&options)?, settings(&options, &blocks, map.as_ref())?);
    let call = SearchCall::new(plan, visit, folds.len())?;
    let resume = call.resume.clone();
    let plan = call.plan.clone();
    let task = search::Task { store, factor, folds: &folds };
    let search =
        search::Search { task, settings, blocks: block_settings, plan: &plan, resume: resume.as_deref() };
    let in_memory = blocks.in_memory.unwrap_or_else(|| search.fits_in_memory());
    if !in_memory && !matches!(settings.solver, SolverKind::Auto | SolverKind::DualCd) {
        return Err(wrong_solver(&options).into());
    }
    call.run(py, options.n_threads, progress.as_ref(), |monitor, visit| search.run(in_memory, monitor, visit))
}

/// Decision values of a model, run by run over the pages of a store.
#[pyclass(frozen, module = "hinge._native")]
pub struct StoreScorer {
    reader: Py<StoreReader>,
    /// Weights in the order of the store's columns, or of their pairs.
    weights: Vec<Vec<f64>>,
    intercept: Vec<f64>,
    map: Option<StoreMap>,
}

#[pymethods]
impl StoreScorer {
    /// A model of one row of `coef` per binary problem, `map` its degree-2 map if it has one.
    #[new]
    #[pyo3(signature = (reader, coef, intercept, map=None))]
    fn new(
        py: Python<'_>,
        reader: &Bound<'_, StoreReader>,
        coef: PyReadonlyArray2<'_, f64>,
        intercept: PyReadonlyArray1<'_, f64>,
        map: Option<MapOptions>,
    ) -> PyResult<Self> {
        let store = &reader.get().store;
        let map = store_map(store, map.as_ref())?;
        let n_used = store.meta().n_used;
        let n_cols = map.as_ref().map_or(store.meta().n_cols, StoreMap::n_input);
        let (coef, intercept) = (coef.as_slice()?, intercept.as_slice()?.to_vec());
        if coef.len() != intercept.len() * n_cols {
            return Err(PyValueError::new_err(format!(
                "coef has {} numbers, {n_cols} are needed for each problem",
                coef.len()
            )));
        }
        let in_order = || -> Result<Vec<Vec<f64>>> {
            if let Some(map) = &map {
                return Ok(coef.chunks_exact(n_cols.max(1)).map(|w| map.to_store(w)).collect());
            }
            let old = store.old_columns()?;
            let column = |j: usize| old.get(j).map_or(j, |&j| j as usize);
            let one = |w: &[f64]| (0..n_used).map(|j| w[column(j)]).collect_large();
            Ok(coef.chunks_exact(n_cols.max(1)).map(one).collect())
        };
        let weights = py.detach(|| memory::catch(in_order))?;
        Ok(Self { reader: reader.clone().unbind(), weights, intercept, map })
    }

    /// Row numbers and decision values (rows x problems) of the pages `start..end`, in the order of the file.
    fn pages<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        end: usize,
        n_threads: usize,
    ) -> PyResult<Scored<'py>> {
        let store = &self.reader.get().store;
        let end = end.min(store.pages().len());
        let (numbers, values) = run(py, n_threads, None, |monitor| {
            scan::decisions(store, start..end, &self.weights, &self.intercept, self.map.as_ref(), monitor)
        })?;
        let shape = [numbers.len(), self.weights.len()];
        Ok((numbers.into_pyarray(py), values.into_pyarray(py).reshape(shape)?))
    }
}

/// Row numbers and decision values.
type Scored<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray2<f64>>);
