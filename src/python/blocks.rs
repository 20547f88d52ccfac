//! Binding of [`crate::blocks`]: options of training on a store, and decision values of its rows.

use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::pairs::MapOptions;
use super::run::run;
use super::store::StoreReader;
use crate::blocks::checkpoint::CheckpointOptions;
use crate::blocks::{DualsIn, Policy, Waiting, scan};
use crate::front::Blocks;
use crate::memory::CollectLarge;
use crate::source::mapped::StoreMap;
use crate::{Error, Result, memory};

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
        "auto" => Ok(Policy::Auto),
        "none" => Ok(Policy::None),
        "random" => Ok(Policy::Random),
        "gradient" => Ok(Policy::Gradient),
        "projected" => Ok(Policy::Projected),
        "steepest" => Ok(Policy::Steepest),
        _ => Err(Error::Parameter {
            name: "cache",
            value: format!("{name:?}"),
            rule: "'auto', 'none', 'random', 'gradient', 'projected' or 'steepest'",
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

impl BlockOptions {
    /// The options as the crate has them.
    pub fn resolve(&self) -> Result<Blocks<'_>> {
        let keep = |path| CheckpointOptions { path, seconds: self.checkpoint_seconds };
        Ok(Blocks {
            budget: self.memory_budget,
            policy: policy(&self.cache)?,
            cache_share: self.cache_share,
            rounds: self.rounds,
            round_tol: self.round_tol,
            keeps_stored: self.keep_compressed,
            waiting: waiting(&self.while_reading)?,
            duals: duals(&self.duals)?,
            in_memory: self.in_memory,
            keep: self.checkpoint.as_deref().map(keep),
        })
    }
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
        let map = map.map(|map| map.spec().of_store(store)).transpose()?;
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
