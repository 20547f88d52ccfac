//! Binding of [`crate::outofcore`]: fits and decision values over a store.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::fit::status_name;
use super::options::{self, FitOptions};
use super::run::run;
use super::store::StoreReader;
use crate::data::arena::with_view;
use crate::multiclass::{self, Labels};
use crate::outofcore::trainer::{Keep, Outcome};
use crate::outofcore::{self, Policy, Settings, Task, budget, scan};
use crate::solver::{Params, SolverKind};
use crate::store::columns;
use crate::{Error, Result};

/// Options of training on blocks, in a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct BlockOptions {
    memory_budget: u64,
    cache: String,
    cache_share: f64,
    rounds: usize,
    round_tol: f64,
    keep_compressed: bool,
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

/// Fits one binary problem per class (one in all for two classes) on the rows of a store. `cost` is C times the class weight by
/// class.
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
    let n_classes = store.classes().len();
    if cost.len() != n_classes {
        return Err(PyValueError::new_err(format!("{} costs for {n_classes} classes", cost.len())));
    }
    let settings = Settings {
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
    };
    let solver = options::solver(&options.solver)?;
    let n_problems = if n_classes == 2 { 1 } else { n_classes };
    let fits = budget::fits_in_memory(store, settings.budget, n_problems);
    let in_memory = blocks.in_memory.unwrap_or(fits && blocks.checkpoint.is_none());
    if !in_memory && !matches!(solver, SolverKind::Auto | SolverKind::DualCd) {
        let value = format!("{:?}", options.solver);
        let rule = "'auto' or 'dual_cd' for a store that is larger than memory_budget";
        return Err(Error::Parameter { name: "solver", value, rule }.into());
    }
    let keep = blocks.checkpoint.as_deref().map(|path| Keep { path, seconds: blocks.checkpoint_seconds });
    let outcomes = run(py, options.n_threads, progress.as_ref(), |monitor| {
        if in_memory {
            return fit_in_memory(store, cost, &settings, solver, monitor);
        }
        let task = |k: usize| {
            let positive = if n_classes == 2 { 1 } else { k as u32 };
            Task { positive, cost: cost.to_vec(), held_out: None }
        };
        let tasks: Vec<Task> = (0..n_problems).map(task).collect();
        outofcore::fit(store, &tasks, &[], &settings, keep, monitor)
    })?;
    as_dict(py, outcomes, store.meta().n_cols, in_memory)
}

/// The whole store as one matrix, for the solvers in memory.
fn fit_in_memory(
    store: &crate::store::reader::Store,
    cost: &[f64],
    settings: &Settings,
    solver: SolverKind,
    monitor: &dyn crate::solver::Monitor,
) -> Result<Vec<Outcome>> {
    let pages: Vec<u32> = (0..store.pages().len() as u32).collect();
    let (arena, facts) = store.load(&pages, store.plain_width(), monitor)?;
    let labels = Labels { ids: &facts.classes, n_classes: cost.len() as u32 };
    let costs: Vec<f64> = facts.classes.iter().zip(&facts.weights).map(|(&k, w)| cost[k as usize] * w).collect();
    let params = Params { solver, tol: settings.tol, max_iter: settings.max_passes, seed: settings.seed };
    let Settings { intercept, loss, .. } = *settings;
    let solutions = with_view!(arena.view(), |rows| {
        multiclass::fit(&rows, &labels, &costs, intercept, loss, &params, monitor)
    })?;
    let old = store.old_columns()?;
    let outcome = |solution: crate::solver::Solution| {
        let mut w = solution.w;
        w.resize(store.meta().n_cols, 0.0);
        columns::restore(&old, &mut w);
        let crate::solver::Solution { intercept, certificate, status, n_iter, passes, .. } = solution;
        Outcome { w, intercept, certificate, status, n_iter, passes, loads: 1.0 }
    };
    Ok(solutions.into_iter().map(outcome).collect())
}

fn as_dict<'py>(
    py: Python<'py>,
    outcomes: Vec<Outcome>,
    n_cols: usize,
    in_memory: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let column = |f: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(f).collect::<Vec<_>>().to_pyarray(py);
    let result = PyDict::new(py);
    result.set_item("intercept", column(&|o| o.intercept))?;
    result.set_item("primal", column(&|o| o.certificate.primal))?;
    result.set_item("dual", column(&|o| o.certificate.dual))?;
    result.set_item("relative_gap", column(&|o| o.certificate.relative_gap()))?;
    result.set_item("passes", column(&|o| o.passes))?;
    result.set_item("loads", column(&|o| o.loads))?;
    result.set_item("n_iter", outcomes.iter().map(|o| o.n_iter).collect::<Vec<_>>())?;
    result.set_item("status", outcomes.iter().map(|o| status_name(o.status)).collect::<Vec<_>>())?;
    let solver = if in_memory { "in_memory" } else { "block_cd" };
    result.set_item("solver", vec![solver; outcomes.len()])?;
    result.set_item("presolve", py.None())?;
    let n = outcomes.len();
    // One problem: its vector is the result, without a copy.
    let coef = match <[Outcome; 1]>::try_from(outcomes) {
        Ok([only]) => only.w.into_pyarray(py).reshape([1, n_cols])?,
        Err(outcomes) => {
            let coef = PyArray2::<f64>::zeros(py, (n, n_cols), false);
            {
                let mut writable = coef.try_readwrite()?;
                let target = writable.as_slice_mut()?;
                for (row, outcome) in target.chunks_exact_mut(n_cols.max(1)).zip(&outcomes) {
                    row.copy_from_slice(&outcome.w);
                }
            }
            coef
        }
    };
    result.set_item("coef", coef)?;
    Ok(result)
}

/// Decision values of all rows, in the order of the input, one column per row of `coef`.
#[pyfunction]
pub fn store_decisions<'py>(
    py: Python<'py>,
    reader: &Bound<'py, StoreReader>,
    coef: PyReadonlyArray2<'py, f64>,
    intercept: PyReadonlyArray1<'py, f64>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let store = &reader.get().store;
    let (n_rows, n_cols) = (store.meta().n_rows as usize, store.meta().n_cols);
    let (coef, intercept) = (coef.as_slice()?, intercept.as_slice()?);
    if coef.len() != intercept.len() * n_cols {
        return Err(PyValueError::new_err(format!("coef has {} numbers for {n_cols} features", coef.len())));
    }
    let k = intercept.len();
    let values = run(py, n_threads, None, |monitor| {
        let old = store.old_columns()?;
        let weights: Vec<Vec<f64>> = coef
            .chunks_exact(n_cols.max(1))
            .map(|w| (0..store.meta().n_used).map(|j| w[old.get(j).map_or(j, |&j| j as usize)]).collect())
            .collect();
        let mut out = vec![0.0; n_rows * k];
        scan::decisions(store, &weights, intercept, monitor, |numbers, values| {
            for (&number, values) in numbers.iter().zip(values.chunks_exact(k.max(1))) {
                out[number as usize * k..(number as usize + 1) * k].copy_from_slice(values);
            }
        })?;
        Ok(out)
    })?;
    values.into_pyarray(py).reshape([n_rows, k])
}
