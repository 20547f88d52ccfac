//! Binding of [`crate::search::search`].

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{PyMatrix, copied};
use super::blocks::BlockOptions;
use super::options::FitOptions;
use super::run::{Flag, callback_error, run_within, unwrap_callback};
use super::store::StoreReader;
use crate::front::search::{Search, StepVisitor};
use crate::front::{Source, Targets};
use crate::labels::Labels;
use crate::labels::sparse_weights::SparseWeights;
use crate::search::{EndReason, SearchPlan, SearchStep, StopRule, Values};
use crate::{Error, Result, memory};

/// Values and limits of a search, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
#[allow(non_snake_case)] // the keys
pub struct PlanOptions {
    Cs: Option<Vec<f64>>,
    C_min: Option<f64>,
    C_max: f64,
    ratio: f64,
    refine: usize,
    stop: String,
    time_limit: Option<f64>,
    resume: Option<PathBuf>,
}

/// Training and held-out rows, as row numbers.
pub type FoldArrays<'py> = (PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, u32>);

/// The folds as lists.
pub fn as_folds(folds: &[FoldArrays<'_>]) -> PyResult<Vec<crate::search::Fold>> {
    let fold = |(train, test): &FoldArrays<'_>| {
        Ok(crate::search::Fold {
            train: memory::copy(train.as_slice()?),
            test: memory::copy(test.as_slice()?),
        })
    };
    memory::catch(|| folds.iter().map(fold).collect())
}

/// Searches for `C`. `visit` is called after each value with a dict of the step; it returns the score, which
/// refinement maximises, or `None` to end the search. Returns why the search ended.
#[pyfunction]
#[pyo3(signature = (matrix, class_ids, n_classes, weight, folds, options, plan, visit, progress=None))]
#[allow(clippy::too_many_arguments)] // the arguments of one Python call
pub fn search<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    class_ids: PyReadonlyArray1<'py, u32>,
    n_classes: u32,
    weight: PyReadonlyArray1<'py, f64>,
    folds: Vec<FoldArrays<'py>>,
    options: FitOptions,
    plan: PlanOptions,
    visit: Bound<'py, PyAny>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<&'static str> {
    let targets = Targets::Classes(Labels { ids: class_ids.as_slice()?, n_classes });
    let (slices, weight, folds) = (matrix.slices()?, weight.as_slice()?, as_folds(&folds)?);
    let (spec, call) = (options.spec()?, SearchCall::new(plan, visit, folds.len())?);
    let (plan, resume) = (call.plan.clone(), call.resume.clone());
    let search = Search { spec: &spec, folds: &folds, plan: &plan, resume: resume.as_deref() };
    call.run(py, options.n_threads, progress.as_ref(), |monitor, visit| {
        search.run(&Source::Rows(slices.checked()?), &targets, weight, monitor, visit)
    })
}

/// Searches for `C` over a store: [`search`] with folds as row numbers of the store's input. `factor` are the
/// class weights.
#[pyfunction]
#[pyo3(signature = (reader, factor, folds, options, blocks, plan, visit, progress=None))]
#[allow(clippy::too_many_arguments)] // the arguments of one Python call
pub fn search_store<'py>(
    py: Python<'py>,
    reader: &Bound<'py, StoreReader>,
    factor: PyReadonlyArray1<'py, f64>,
    folds: Vec<FoldArrays<'py>>,
    options: FitOptions,
    blocks: BlockOptions,
    plan: PlanOptions,
    visit: Bound<'py, PyAny>,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<&'static str> {
    let source = Source::Store(&reader.get().store, blocks.resolve()?);
    let (factor, folds) = (factor.as_slice()?, as_folds(&folds)?);
    let (spec, call) = (options.spec()?, SearchCall::new(plan, visit, folds.len())?);
    let (plan, resume) = (call.plan.clone(), call.resume.clone());
    let search = Search { spec: &spec, folds: &folds, plan: &plan, resume: resume.as_deref() };
    call.run(py, options.n_threads, progress.as_ref(), |monitor, visit| {
        search.run(&source, &Targets::Stored, factor, monitor, visit)
    })
}

/// What every search from Python needs around it: the plan, the time limit, the caller's function and its
/// errors.
pub struct SearchCall {
    /// Values and rules.
    pub plan: SearchPlan,
    /// The journal.
    pub resume: Option<PathBuf>,
    limit: Option<Duration>,
    visitor: Visitor,
}

impl SearchCall {
    /// Checks the plan.
    pub fn new(plan: PlanOptions, visit: Bound<'_, PyAny>, n_folds: usize) -> PyResult<Self> {
        let (limit, resume) = (time_limit(plan.time_limit)?, plan.resume.clone());
        let visitor = Visitor { visit: visit.unbind(), n_folds, last: None };
        Ok(Self { plan: SearchPlan::try_from(plan)?, resume, limit, visitor })
    }

    /// Runs `job`, which calls its second argument after each value of `C`.
    pub fn run(
        mut self,
        py: Python<'_>,
        n_threads: usize,
        progress: Option<&Bound<'_, PyAny>>,
        job: impl FnOnce(&Flag, &mut StepVisitor<'_>) -> Result<EndReason> + Send,
    ) -> PyResult<&'static str> {
        let failed = Mutex::new(None);
        let visitor = &mut self.visitor;
        let mut call = |step: &SearchStep| -> Result<Option<f64>> {
            Python::attach(|py| visitor.call(py, step)).map_err(|error| callback_error(error, &failed))
        };
        let result = run_within(py, n_threads, self.limit, progress, |monitor| job(monitor, &mut call));
        unwrap_callback(result, &failed).map(reason_name)
    }
}

fn time_limit(seconds: Option<f64>) -> Result<Option<Duration>> {
    let limit = |seconds: f64| {
        let limit = Duration::try_from_secs_f64(seconds).ok().filter(|_| seconds > 0.0);
        let rule = "a number of seconds above 0, or None";
        limit.ok_or_else(|| Error::Parameter { name: "time_limit", value: seconds.to_string(), rule })
    };
    seconds.map(limit).transpose()
}

impl TryFrom<PlanOptions> for SearchPlan {
    type Error = Error;

    fn try_from(options: PlanOptions) -> Result<Self> {
        let PlanOptions { Cs, C_min, C_max, ratio, refine, stop, .. } = options;
        let stop = match stop.as_str() {
            "exact" => StopRule::Exact,
            "unchanged" => StopRule::Unchanged,
            "gradient" => StopRule::Gradient,
            "liblinear" => StopRule::Liblinear,
            _ => {
                let rule = "'exact', 'unchanged', 'gradient' or 'liblinear'";
                return Err(Error::Parameter { name: "stop", value: format!("{stop:?}"), rule });
            }
        };
        let range = Values::Range { c_min: C_min, c_max: C_max, ratio };
        Ok(Self { values: Cs.map_or(range, Values::List), refine, stop })
    }
}

fn reason_name(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Unchanged => "unchanged",
        EndReason::CMax => "C_max",
        EndReason::List => "Cs",
        EndReason::TimeLimit => "time_limit",
        EndReason::Visit => "visit",
    }
}

/// Columns, weights and intercept of a lane.
type LaneWeights<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>, f64);

/// Those of each lane.
fn sparse_weights<'py>(py: Python<'py>, weights: &[SparseWeights]) -> PyResult<Vec<LaneWeights<'py>>> {
    weights.iter().map(|w| Ok((copied(py, &w.columns)?, copied(py, &w.values)?, w.intercept))).collect()
}

/// Decision values with the arrays made of them.
type Shown = (Arc<Vec<Vec<f64>>>, Vec<Py<PyArray1<f64>>>);

/// The caller's function; steps that share decision values show it the same arrays.
struct Visitor {
    visit: Py<PyAny>,
    n_folds: usize,
    last: Option<Shown>,
}

impl Visitor {
    fn call(&mut self, py: Python<'_>, step: &SearchStep) -> PyResult<Option<f64>> {
        let facts = PyDict::new(py);
        facts.set_item("C", step.c)?;
        facts.set_item("decisions", self.decisions(py, step)?)?;
        facts.set_item("objective", self.objective(py, step)?)?;
        if let Some(weights) = &step.weights {
            facts.set_item("weights", sparse_weights(py, weights)?)?;
        }
        facts.set_item("passes", step.passes)?;
        facts.set_item("n_iter", step.n_iter)?;
        facts.set_item("inner", step.inner)?;
        facts.set_item("unchanged", step.is_unchanged)?;
        facts.set_item("converged", step.is_converged)?;
        facts.set_item("unchanged_until", step.unchanged_until)?;
        facts.set_item("seconds", step.seconds)?;
        facts.set_item("replayed", step.is_replayed)?;
        self.visit.call1(py, (facts,))?.extract(py)
    }

    fn decisions<'py>(
        &mut self,
        py: Python<'py>,
        step: &SearchStep,
    ) -> PyResult<Vec<Bound<'py, PyArray1<f64>>>> {
        let shown = match self.last.take().filter(|(decisions, _)| Arc::ptr_eq(decisions, &step.decisions)) {
            Some(shown) => shown,
            None => {
                let arrays = step.decisions.iter().map(|d| Ok(copied(py, d)?.unbind()));
                (Arc::clone(&step.decisions), arrays.collect::<PyResult<_>>()?)
            }
        };
        let (_, arrays) = self.last.insert(shown);
        Ok(arrays.iter().map(|array| array.bind(py).clone()).collect())
    }

    fn objective<'py>(&self, py: Python<'py>, step: &SearchStep) -> PyResult<Bound<'py, PyArray2<f64>>> {
        step.objective.to_pyarray(py).reshape([self.n_folds, step.objective.len() / self.n_folds])
    }
}
