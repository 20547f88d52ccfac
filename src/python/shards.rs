//! Binding of [`crate::shards`]: a shard of rows that answers requests; fits and searches whose rows are at
//! shards.

use std::path::PathBuf;
use std::sync::Mutex;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{PyMatrix, Slices, copied};
use super::options::FitOptions;
use super::outcome::as_dict;
use super::run::{callback_error, run, unwrap_callback};
use super::search::{FoldArrays, PlanOptions, SearchCall, as_folds};
use super::turns::Turns;
use crate::durable::nameless::folder_beside;
use crate::front::Outcome;
use crate::labels::Labels;
use crate::matrix::{CsrValues, Value};
use crate::memory::{self, CollectLarge};
use crate::shards::checkpoint::Recorded;
use crate::shards::exchange::Exchange;
use crate::shards::pieces::StoreRows;
use crate::shards::served::{OwnedRows, Served, ShardData, StoreData};
use crate::shards::shard::ShardFacts;
use crate::shards::wire::{Op, Request, ShardAnswer, VectorAt};
use crate::shards::{self, ShardSearch, ShardTask};
use crate::{Error, Result};

/// Numbers of [`ShardFacts`]: those that are added, and the two largest squared norms.
const FACTS: usize = 10;

/// Rows that answer what a fit elsewhere asks of them.
#[pyclass(frozen, module = "hinge._native")]
pub struct RowShard {
    served: Turns<Option<Served>>,
}

/// Sums and maxima, and where in the sums there are vectors of which a shard may know some columns only.
type Answers<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Vec<VectorAt>);

#[pymethods]
impl RowShard {
    /// Copies and checks the rows.
    #[new]
    fn new(
        py: Python<'_>,
        matrix: PyMatrix<'_>,
        class_ids: PyReadonlyArray1<'_, u32>,
        cost: PyReadonlyArray1<'_, f64>,
        options: FitOptions,
    ) -> PyResult<Self> {
        let (slices, spec) = (matrix.slices()?, options.spec()?);
        let (classes, cost) = (class_ids.as_slice()?, cost.as_slice()?);
        let n_threads = options.n_threads;
        let served = py.detach(|| {
            memory::catch(|| {
                let (loss, intercept) = (spec.loss, spec.intercept);
                let (classes, cost) = (memory::copy(classes), memory::copy(cost));
                let rows = owned(slices)?;
                Served::start(ShardData { rows, classes, cost, loss, intercept, n_threads })
            })
        })?;
        Ok(Self { served: Turns::new(Some(served)) })
    }

    /// The rows of a block store, which stay there: of as many columns as the data, within so many bytes.
    /// `classes` are those of the store's, each with the cost of a row of weight 1; `lanes` those that a
    /// problem has at most.
    #[staticmethod]
    fn of_store(
        py: Python<'_>,
        path: PathBuf,
        n_columns: usize,
        classes: Vec<(u32, f64)>,
        lanes: usize,
        budget: u64,
        options: FitOptions,
    ) -> PyResult<Self> {
        let (spec, n_threads) = (options.spec()?, options.n_threads);
        let (loss, intercept) = (spec.loss, spec.intercept);
        let rows =
            StoreRows { n_columns, classes, lanes, budget, loss, intercept, folder: folder_beside(None) };
        let served = py.detach(|| memory::catch(|| Served::start(StoreData { path, rows, n_threads })))?;
        Ok(Self { served: Turns::new(Some(served)) })
    }

    /// What is added over all shards before a fit, and then the largest squared norms: of rows with a cost,
    /// and of all.
    fn facts(&self, py: Python<'_>) -> PyResult<[f64; FACTS]> {
        let turn = self.served.take(py)?;
        let facts = turn.as_ref().ok_or_else(closed)?.facts();
        let ShardFacts { n_entries, cost, curvature, max_squared_norm, longest, pairs, .. } = facts;
        let [n_shards, n_pieces, n_rows] = [facts.n_shards, facts.n_pieces, facts.n_rows].map(|n| n as f64);
        let [entries, pairs] = pairs;
        Ok([
            n_shards,
            n_pieces,
            n_rows,
            n_entries,
            cost,
            curvature,
            entries,
            pairs,
            max_squared_norm,
            longest,
        ])
    }

    /// Takes the splits of a search, in rows of the shard; a problem that was begun is forgotten.
    fn split(&self, py: Python<'_>, folds: Vec<FoldArrays<'_>>) -> PyResult<()> {
        let folds = as_folds(&folds)?;
        let mut turn = self.served.take(py)?;
        Ok(turn.as_mut().ok_or_else(closed)?.split(folds)?)
    }

    /// Does what a request says; returns sums and maxima, and for each vector of the sums of which a shard
    /// may know some columns only where it begins, and how many numbers it has of a column.
    fn answer<'py>(&self, py: Python<'py>, request: PyReadonlyArray1<'py, f64>) -> PyResult<Answers<'py>> {
        let mut turn = self.served.take(py)?;
        let (served, request) = (turn.as_mut().ok_or_else(closed)?, memory::copy(request.as_slice()?));
        let ShardAnswer { sums, maxima, vectors, .. } = py.detach(|| served.answer(request))?;
        Ok((sums.into_pyarray(py), maxima.into_pyarray(py), vectors))
    }

    /// How many columns travel, and which of them the rows have, in rising order; None where all of the
    /// data's travel to all shards.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Option<(usize, Bound<'py, PyArray1<i64>>)>> {
        let mut turn = self.served.take(py)?;
        let served = turn.as_mut().ok_or_else(closed)?;
        let mut request = Request::new(1);
        request.op(Op::Travelling);
        let ShardAnswer { sums, .. } = py.detach(|| served.answer(memory::copy(request.words())))?;
        let found = sums.split_first().map(|(n, columns)| {
            let columns: Vec<i64> = columns.iter().map(|j| *j as i64).collect_large();
            (*n as usize, columns.into_pyarray(py))
        });
        Ok(found)
    }

    /// Gives the memory back.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut turn = self.served.take(py)?;
        let served = turn.take();
        py.detach(|| drop(served));
        Ok(())
    }
}

fn closed() -> PyErr {
    PyRuntimeError::new_err("the shard has been closed")
}

/// A copy of the rows.
fn owned(slices: Slices<'_>) -> Result<OwnedRows> {
    macro_rules! sparse {
        ($x:expr) => {{
            let narrow = |column: &_| i32::try_from(*column).map_err(|_| too_wide($x.n_cols));
            Ok(OwnedRows::Sparse {
                indptr: memory::copy($x.indptr),
                indices: $x.indices.iter().map(narrow).collect::<Result<_>>()?,
                values: Value::typed(memory::copy($x.values)),
                n_cols: $x.n_cols,
            })
        }};
    }
    let dense = |values: CsrValues, n_rows, n_cols| Ok(OwnedRows::Dense { values, n_rows, n_cols });
    match slices {
        Slices::Csr32F32(x) => sparse!(x),
        Slices::Csr32F64(x) => sparse!(x),
        Slices::Csr64F32(x) => sparse!(x),
        Slices::Csr64F64(x) => sparse!(x),
        Slices::DenseF32(x) => dense(Value::typed(memory::copy(x.values)), x.n_rows, x.n_cols),
        Slices::DenseF64(x) => dense(Value::typed(memory::copy(x.values)), x.n_rows, x.n_cols),
    }
}

fn too_wide(n_cols: usize) -> Error {
    Error::Parameter { name: "columns of X", value: n_cols.to_string(), rule: "below 2^31 for shards" }
}

/// The client's side of the way to the shards, in Python.
struct Callback<'a> {
    exchange: &'a Py<PyAny>,
    failed: &'a Mutex<Option<PyErr>>,
}

impl Exchange for Callback<'_> {
    fn ask(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        self.call("ask", request, restore, |reply| {
            let (sums, maxima): (PyReadonlyArray1<'_, f64>, PyReadonlyArray1<'_, f64>) = reply.extract()?;
            Ok(ShardAnswer { sums: numbers(&sums)?, maxima: numbers(&maxima)?, ..ShardAnswer::default() })
        })
    }

    fn gather(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
        self.call("gather", request, restore, |reply| {
            let answers: Vec<PyReadonlyArray1<'_, f64>> = reply.extract()?;
            answers.iter().map(numbers).collect()
        })
    }
}

impl Callback<'_> {
    /// Calls a method with the words of a request, and where its vectors are, until no shard has begun anew.
    fn call<T>(
        &self,
        method: &str,
        request: &Request,
        restore: &dyn Fn() -> Vec<f64>,
        read: impl Fn(Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Result<T> {
        let call = |py: Python<'_>| -> PyResult<T> {
            let exchange = self.exchange.bind(py);
            let mut reply =
                exchange.call_method1(method, (copied(py, request.words())?, request.vectors().to_vec()))?;
            while reply.is_none() {
                reply = exchange.call_method1("resume", (restore().into_pyarray(py),))?;
            }
            read(reply)
        };
        Python::attach(call).map_err(|error| callback_error(error, self.failed))
    }
}

fn numbers(array: &PyReadonlyArray1<'_, f64>) -> PyResult<Vec<f64>> {
    Ok(memory::copy(array.as_slice()?))
}

/// The numbers of all shards.
fn facts_of(facts: [f64; FACTS]) -> ShardFacts {
    let [shards, pieces, rows, n_entries, cost, curvature, entries, pairs, max_squared_norm, longest] = facts;
    let [n_shards, n_pieces, n_rows] = [shards, pieces, rows].map(|n| n as usize);
    let pairs = [entries, pairs];
    ShardFacts { n_shards, n_pieces, n_rows, n_entries, cost, curvature, max_squared_norm, longest, pairs }
}

/// Fits on rows at shards. `facts` are those of all shards: sums, and the largest norms last. `exchange.ask`
/// takes a request to all of them and returns the reduced sums and maxima, or None where shards have begun
/// anew: `exchange.resume` then takes the request that brings those to where the others are. All costs are
/// multiplied by `scale`. With `checkpoint` the answers are kept in that file, and those in it not asked for.
#[pyfunction]
#[pyo3(signature = (exchange, facts, n_columns, n_classes, options, progress=None, scale=1.0,
                    checkpoint=None))]
#[allow(clippy::too_many_arguments)] // the arguments of one Python call
pub fn fit_shards<'py>(
    py: Python<'py>,
    exchange: Py<PyAny>,
    facts: [f64; FACTS],
    n_columns: usize,
    n_classes: u32,
    options: FitOptions,
    progress: Option<Bound<'py, PyAny>>,
    scale: f64,
    checkpoint: Option<PathBuf>,
) -> PyResult<Bound<'py, PyDict>> {
    let spec = options.spec()?;
    let facts = facts_of(facts).scaled(scale);
    let new = ShardTask::new(facts, (n_columns, n_classes), (spec.loss, spec.intercept), spec.params);
    let task = ShardTask { scale, ..new };
    let failed = Mutex::new(None);
    let result = run(py, 1, progress.as_ref(), |monitor| {
        let mut exchange = Callback { exchange: &exchange, failed: &failed };
        match checkpoint {
            Some(path) => shards::fit(&task, &mut Recorded::open(&path, &task, &mut exchange)?, monitor),
            None => shards::fit(&task, &mut exchange, monitor),
        }
    });
    let solutions = unwrap_callback(result, &failed)?;
    as_dict(py, Outcome::of_solutions(solutions, n_columns, None), false)
}

/// Searches for `C` on rows at shards, which have the folds: [`super::search::search`] with the exchange and
/// the facts of [`fit_shards`]. Classes, weights and folds are those of all rows, shard after shard;
/// `borders` are the first row of each shard, and the number of rows.
#[pyfunction]
#[pyo3(signature = (exchange, facts, borders, n_columns, class_ids, n_classes, weight, folds, options, plan,
                    visit, progress=None))]
#[allow(clippy::too_many_arguments)] // the arguments of one Python call
pub fn search_shards<'py>(
    py: Python<'py>,
    exchange: Py<PyAny>,
    facts: [f64; FACTS],
    borders: PyReadonlyArray1<'py, u32>,
    n_columns: usize,
    class_ids: PyReadonlyArray1<'py, u32>,
    n_classes: u32,
    weight: PyReadonlyArray1<'py, f64>,
    folds: Vec<FoldArrays<'py>>,
    options: FitOptions,
    plan: PlanOptions,
    visit: Bound<'py, PyAny>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<&'static str> {
    let (spec, folds, facts) = (options.spec()?, as_folds(&folds)?, facts_of(facts));
    let (borders, weight) = (borders.as_slice()?, weight.as_slice()?);
    let task = &ShardTask::new(facts, (n_columns, n_classes), (spec.loss, spec.intercept), spec.params);
    let call = SearchCall::new(plan, visit, folds.len())?;
    let (plan, resume) = (&call.plan.clone(), call.resume.clone());
    let labels = Labels { ids: class_ids.as_slice()?, n_classes };
    let folds = &folds[..];
    let search = ShardSearch { task, labels, weight, folds, borders, plan, resume: resume.as_deref() };
    let failed = Mutex::new(None);
    let result = call.run(py, 1, progress.as_ref(), |monitor, visit| {
        let mut exchange = Callback { exchange: &exchange, failed: &failed };
        shards::search::search(&search, &mut exchange, monitor, visit)
    });
    unwrap_callback(result, &failed)
}
