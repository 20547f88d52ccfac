//! The front door: what a caller of the crate, or its Python binding, asks for, and what comes back.
//!
//! ```text
//! Source (a matrix or a store) + Targets (classes or label sets) + costs + Spec   ->  fit  ->  Outcome
//! ```
//!
//! All decisions that stand between a question and a solver are made here: whether a store is read into
//! memory, whether columns are presolved, in which layout rows are fastest, which form of the problem is
//! solved. [`spec`] is the question, [`source`] the data, [`outcome`] the answer; [`search`] is the same for
//! the choice of `C`, [`descent`] for subgradient descent.

pub mod descent;
mod on_disk;
pub mod outcome;
pub mod search;
pub mod source;
pub mod spec;
mod trial;

pub use crate::labels::MultiClass;
pub use outcome::{Outcome, ProblemFacts, Weights};
pub use source::{Blocks, Checked, Source, Targets};
pub use spec::{MapSpec, PresolveChoice, Spec, StartWeights};

use crate::blocks::budget;
use crate::fit::{Intercept, Monitor, Solution, SolverKind, Start, auto, check_length};
use crate::labels::sparse::{self, Indicator, LabelTask, SparseSolution};
use crate::labels::{self, Classification, Labels, crammer_singer, multinomial};
use crate::loss::LossKind;
use crate::matrix::Rows;
use crate::pairs::map::Map;
use crate::penalty::Penalty;
use crate::presolve::Presolved;
use crate::source::mapped::StoreMap;
use crate::store::reader::Store;
use crate::{Error, Result, blocks};
use on_disk::OnDisk;
use source::Whole;

/// Fits a model.
///
/// `cost` has an entry per row, `C` times class weight times sample weight; for a [`Source::Store`], which
/// has classes and sample weights in it, an entry per class, `C` times class weight. A row of cost 0 is
/// absent. [`SolverKind::CrammerSinger`] fits all classes as one problem, and so does
/// [`MultiClass::Multinomial`] more than two; else it is each class against the rest (one problem in all for
/// two classes).
///
/// ```
/// use hinge::fit::Silent;
/// use hinge::front::{Checked, Source, Spec, Targets};
/// use hinge::labels::Labels;
/// use hinge::matrix::csr::CsrView;
///
/// let (indptr, indices, values) = ([0i64, 1, 2, 3, 4], [0i32, 1, 0, 1], [1.0f64, 1.0, 2.0, 0.5]);
/// let (rows, structure) = CsrView::new(&indptr, &indices, &values, 2)?;
/// let source = Source::Rows(Checked { rows: rows.into(), structure });
/// let labels = Labels { ids: &[1, 0, 1, 0], n_classes: 2 };
/// let outcome = hinge::fit(&source, &Targets::Classes(labels), &[1.0; 4], &Spec::default(), &Silent)?;
/// assert!(outcome.facts[0].certificate.relative_gap() <= 1e-4);
/// # Ok::<(), hinge::Error>(())
/// ```
///
/// # Errors
/// Those of the checks of the input, of the solvers and of the store; [`Error::Parameter`] for a solver that
/// does not go with the loss or the source.
pub fn fit(
    source: &Source<'_>,
    targets: &Targets<'_>,
    cost: &[f64],
    spec: &Spec,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    spec.check_penalty()?;
    spec.check_start(source, targets)?;
    if let Source::Rows(data) = source
        && let Some(filled) = data.filled(spec.presolve, monitor)?
    {
        return fit(&Source::Rows(data.with_rows(filled.rows())), targets, cost, spec, monitor);
    }
    if let (Source::Rows(data), Targets::Classes(labels), Some(penalty)) = (source, targets, spec.penalty) {
        return fit_penalised(data, labels, cost, (spec, penalty), monitor);
    }
    match (source, targets) {
        (Source::Rows(data), Targets::Classes(labels)) if spec.is_crammer_singer() => {
            fit_all_classes(data, labels, cost, spec, monitor)
        }
        (Source::Rows(data), Targets::Classes(labels)) if spec.is_multinomial(labels.n_classes)? => {
            fit_multinomial(data, labels, cost, spec, monitor)
        }
        (Source::Rows(data), Targets::Classes(labels)) => fit_classes(data, labels, cost, spec, monitor),
        (Source::Rows(data), Targets::Sets { indicator, drop }) => {
            fit_sets(data, indicator, *drop, cost, spec, monitor)
        }
        (Source::Store(store, blocks), Targets::Stored) => fit_store(store, blocks, cost, spec, monitor),
        (Source::Rows(_), Targets::Stored) | (Source::Store(..), _) => Err(Error::Labels {
            reason: "a store has its classes in it, a matrix needs classes or label sets".into(),
        }),
    }
}

/// The packed form of rows for `n_problems` problems, where it pays; refuses rows that no solver takes.
fn pack(
    data: &Checked<'_>,
    spec: &Spec,
    cost: &[f64],
    n_problems: usize,
    monitor: &dyn Monitor,
) -> Result<Option<Presolved>> {
    if spec.start.is_some() {
        return Ok(None); // it is on the columns as they are
    }
    let mean_cost = cost.iter().sum::<f64>() / cost.len().max(1) as f64;
    let norm = data.structure.max_squared_norm;
    let passes = auto::expected_passes(spec.loss, mean_cost, norm, spec.params.tol);
    data.pack(spec.presolve, passes, n_problems, monitor)
}

fn fit_classes(
    data: &Checked<'_>,
    labels: &Labels<'_>,
    cost: &[f64],
    spec: &Spec,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    if let Some(map) = &spec.map {
        return fit_mapped(data, &map.map(data.rows.n_cols())?, labels, cost, spec, monitor);
    }
    let packed = pack(data, spec, cost, labels.n_problems(), monitor)?;
    let scaled = if packed.is_none() { data.rows.scaled() } else { None };
    let rows = data.narrowest(scaled.as_ref());
    let all = Classification { rows: &rows, labels, cost, intercept: spec.intercept };
    let solutions = match spec.start {
        Some(start) => {
            let start = |k: usize| {
                let (w, intercept) = start.problem(k);
                Start { w: Some((w.to_vec(), intercept)), ..Start::default() }
            };
            labels::fit_from(&all, spec.loss, &spec.params, &start, monitor)?
        }
        None => fit_each_class(&all, packed.as_ref(), spec, monitor)?,
    };
    Ok(Outcome::of_solutions(solutions, data.rows.n_cols(), packed.as_ref()))
}

/// With a penalty other than the square, on the rows or their degree-2 features.
fn fit_penalised(
    data: &Checked<'_>,
    labels: &Labels<'_>,
    cost: &[f64],
    (spec, penalty): (&Spec, &Penalty),
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    let map = spec.map.map(|map| map.map(data.rows.n_cols())).transpose()?;
    let rows = data.by_columns(map.as_ref())?;
    let all = Classification { rows: &rows, labels, cost, intercept: spec.intercept };
    let starts = spec.start.map(StartWeights::problems);
    let starts = starts.as_deref();
    if spec.is_multinomial(labels.n_classes)? {
        let solution = labels::penalised::fit_softmax(&all, penalty, &spec.params, starts, monitor)?;
        return Ok(Outcome::of_penalised_softmax(solution, rows.n_cols()));
    }
    let solutions = labels::penalised::fit(&all, spec.loss, penalty, &spec.params, starts, monitor)?;
    Ok(Outcome::of_solutions(solutions, rows.n_cols(), None))
}

/// Each label of an indicator against the rest.
fn fit_sets(
    data: &Checked<'_>,
    indicator: &Indicator<'_>,
    drop: f64,
    cost: &[f64],
    spec: &Spec,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    if spec.map.is_some() {
        let rule = "1 where rows have sets of labels";
        return Err(Error::Parameter { name: "degree", value: "2".into(), rule });
    }
    let mut found: Vec<Option<SparseSolution>> = vec![None; indicator.n_labels()];
    let mut keep = |label: usize, solution| found[label] = Some(solution);
    let Spec { loss, intercept, params, .. } = *spec;
    let rows = &data.rows.into();
    let task = LabelTask { rows, cost, intercept, loss, params };
    if let Some(penalty) = spec.penalty {
        data.structure.check_solvable()?;
        labels::penalised::fit_labels(&task, indicator, penalty, monitor, &mut keep)?;
        return Ok(Outcome::of_sets(found, data.rows.n_cols(), None));
    }
    let packed = pack(data, spec, cost, indicator.n_labels(), monitor)?;
    let packed = packed.as_ref();
    sparse::fit(&task, indicator, packed, drop, monitor, &mut keep)?;
    Ok(Outcome::of_sets(found, data.rows.n_cols(), packed))
}

/// On the degree-2 features of the rows: all classes at once, or each against the rest.
fn fit_mapped(
    data: &Checked<'_>,
    map: &Map,
    labels: &Labels<'_>,
    cost: &[f64],
    spec: &Spec,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    let scaled = data.rows.scaled();
    let rows = data.mapped(scaled.as_ref(), map)?;
    let all = Classification { rows: &rows, labels, cost, intercept: spec.intercept };
    if spec.is_multinomial(labels.n_classes)? {
        let solution = multinomial::fit(&all, None, &spec.params, monitor)?;
        return Ok(Outcome::of_multinomial(solution, map.n_out(), None));
    }
    let solutions = fit_each_class(&all, None, spec, monitor)?;
    Ok(Outcome::of_solutions(solutions, map.n_out(), None))
}

/// Each class against the rest, by way of the packed rows where there are any.
fn fit_each_class(
    data: &Classification<'_>,
    packed: Option<&Presolved>,
    spec: &Spec,
    monitor: &dyn Monitor,
) -> Result<Vec<Solution>> {
    match packed {
        Some(packed) => labels::fit_presolved(data, packed, spec.loss, &spec.params, monitor),
        None => labels::fit(data, spec.loss, &spec.params, monitor),
    }
}

fn fit_all_classes(
    data: &Checked<'_>,
    labels: &Labels<'_>,
    cost: &[f64],
    spec: &Spec,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    // The loss of the problem is the hinge, whatever is asked for.
    let spec = Spec { loss: LossKind::Hinge, ..*spec };
    let packed = pack(data, &spec, cost, labels.n_classes as usize, monitor)?;
    let all = Classification { rows: &data.rows.into(), labels, cost, intercept: spec.intercept };
    let solution = crammer_singer::fit(&all, packed.as_ref(), &spec.params, monitor)?;
    Ok(Outcome::of_all_classes(solution, data.rows.n_cols(), packed.as_ref()))
}

fn fit_multinomial(
    data: &Checked<'_>,
    labels: &Labels<'_>,
    cost: &[f64],
    spec: &Spec,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    if let Some(map) = &spec.map {
        return fit_mapped(data, &map.map(data.rows.n_cols())?, labels, cost, spec, monitor);
    }
    let packed = pack(data, spec, cost, labels.n_classes as usize, monitor)?;
    let scaled = if packed.is_none() { data.rows.scaled() } else { None };
    let rows = data.narrowest(scaled.as_ref());
    let all = Classification { rows: &rows, labels, cost, intercept: spec.intercept };
    let solution = match spec.start {
        Some(StartWeights { coef, intercepts }) => {
            multinomial::fit_from(&all, (coef, intercepts), &spec.params, monitor)?
        }
        None => multinomial::fit(&all, packed.as_ref(), &spec.params, monitor)?,
    };
    Ok(Outcome::of_multinomial(solution, data.rows.n_cols(), packed.as_ref()))
}

/// On a store: as a matrix in memory where its rows fit into the budget, else block by block.
fn fit_store(
    store: &Store,
    options: &Blocks<'_>,
    cost: &[f64],
    spec: &Spec,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    if spec.penalty.is_some() {
        return fit_penalised_store(store, options, cost, spec, monitor);
    }
    let tasks = blocks::BinaryTask::one_against_rest(store.classes().len(), cost)?;
    let map = spec.map.map(|map| map.of_store(store)).transpose()?;
    let settings = options.settings(spec, map.as_ref());
    let is_multinomial = spec.is_multinomial(store.classes().len() as u32)?;
    let fits = |copies| match is_multinomial {
        true => budget::fits_multinomial(store, &settings, copies),
        false => budget::fits_in_memory(store, &settings, tasks.len(), copies),
    };
    if options.is_in_memory(fits(1)) {
        let fits_packed = fits(budget::PRESOLVE_COPIES);
        // "auto" stays within the budget; who asks for the presolve gets it.
        let is_off = spec.presolve == PresolveChoice::Auto && !fits_packed;
        let presolve = if is_off { PresolveChoice::Off } else { spec.presolve };
        return fit_whole(store, cost, &Spec { presolve, ..*spec }, map.as_ref(), monitor);
    }
    let on_disk = OnDisk { store, blocks: options, spec, cost };
    match spec.params.solver {
        SolverKind::CrammerSinger => {
            let all = blocks::fit_crammer_singer(store, cost, &settings, options.keep, monitor)?;
            Outcome::of_all_blocks(all, store, None, blocks::trainer::NAME)
        }
        SolverKind::Auto | SolverKind::Newton if is_multinomial => {
            let all = blocks::fit_multinomial(store, cost, &settings, options.keep, monitor)?;
            Outcome::of_all_blocks(all, store, map.as_ref(), blocks::softmax_rows::NAME)
        }
        solver if is_multinomial => {
            let rule = "'auto' or 'newton' for a multinomial fit of a store that is larger than \
                        memory_budget, or with a checkpoint";
            Err(Error::Parameter { name: "solver", value: format!("{:?}", solver.name()), rule })
        }
        SolverKind::Auto if on_disk.prefers_newton(monitor)? => on_disk.fit_by_newton(monitor),
        SolverKind::Auto | SolverKind::DualCd => {
            let found = blocks::fit(store, &tasks, &[], &settings, options.keep, monitor)?;
            let n_weights = map.as_ref().map_or(store.meta().n_cols, StoreMap::n_input);
            Ok(Outcome::of_blocks(found, n_weights, blocks::trainer::NAME))
        }
        SolverKind::Newton if map.is_none() => on_disk.fit_by_newton(monitor),
        solver => {
            let rule = "'auto', 'dual_cd' or, with degree=1, 'newton' for a store that is larger than \
                        memory_budget";
            Err(Error::Parameter { name: "solver", value: format!("{:?}", solver.name()), rule })
        }
    }
}

/// The whole store as one matrix, by the solvers in memory.
fn fit_whole(
    store: &Store,
    cost: &[f64],
    spec: &Spec,
    map: Option<&StoreMap>,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    let whole = Whole::read(store, cost, monitor)?;
    let (data, labels) = (whole.checked()?, whole.labels(cost.len()));
    let outcome = match map {
        Some(map) => fit_mapped(&data, map.inner(), &labels, &whole.costs, spec, monitor)?,
        None => {
            let targets = Targets::Classes(labels);
            fit(&Source::Rows(data), &targets, &whole.costs, spec, monitor)?
        }
    };
    outcome.in_columns_of(store, map)
}

/// A store in memory, with a penalty for each column of its input.
fn fit_penalised_store(
    store: &Store,
    options: &Blocks<'_>,
    cost: &[f64],
    spec: &Spec,
    monitor: &dyn Monitor,
) -> Result<Outcome> {
    let n_classes = store.classes().len();
    check_length("class costs", n_classes, cost.len())?;
    options.check_penalised(store, spec, 1)?;
    let whole = Whole::read(store, cost, monitor)?.in_columns_of_input(store)?;
    let targets = Targets::Classes(whole.labels(n_classes));
    // The budget has room for the copy by columns, not for one of the rows.
    let spec = Spec { presolve: PresolveChoice::Off, ..*spec };
    let outcome = fit(&Source::Rows(whole.checked()?), &targets, &whole.costs, &spec, monitor)?;
    Ok(outcome.of_one_load())
}

impl Spec<'_> {
    /// Refuses another solver than the one that takes a penalty other than the square.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check_penalty(&self) -> Result<()> {
        if self.penalty.is_none() || self.params.solver == SolverKind::Auto {
            return Ok(());
        }
        let rule = "'auto' with a penalty other than 'l2', factors or bounds";
        Err(Error::Parameter { name: "solver", value: format!("{:?}", self.params.solver.name()), rule })
    }

    /// Refuses a start where no solver goes on from it, or of other sizes than the problem.
    ///
    /// # Errors
    /// [`Error::Parameter`] and [`Error::Shape`].
    pub fn check_start(&self, source: &Source<'_>, targets: &Targets<'_>) -> Result<()> {
        let Some(StartWeights { coef, intercepts }) = self.start else {
            return Ok(());
        };
        let goes_on = self.params.solver == SolverKind::Newton || self.penalty.is_some();
        let can_go_on = goes_on && self.map.is_none();
        let (Source::Rows(data), Targets::Classes(labels), true) = (source, targets, can_go_on) else {
            let rule = "left out but on a matrix, with classes and degree 1, and then with \
                        solver=\"newton\" or another penalty than \"l2\"";
            return Err(Error::Parameter { name: "start", value: format!("{} weights", coef.len()), rule });
        };
        let n = labels.n_problems();
        for (what, expected, found) in [
            ("weights of the start", n * data.rows.n_cols(), coef.len()),
            ("intercepts of the start", n, intercepts.len()),
        ] {
            if expected != found {
                return Err(Error::Shape { what, expected, found });
            }
        }
        match coef.iter().chain(intercepts).find(|w| !w.is_finite()) {
            Some(w) => Err(Error::Parameter { name: "start", value: w.to_string(), rule: "finite" }),
            None => Ok(()),
        }
    }

    /// Whether all classes are one problem.
    pub fn is_crammer_singer(&self) -> bool {
        self.params.solver == SolverKind::CrammerSinger
    }

    /// Whether so many classes are one problem with the softmax; two are the same problem either way.
    ///
    /// # Errors
    /// [`Error::Parameter`] for another loss than the logistic one, or a solver that is not one of it.
    pub fn is_multinomial(&self, n_classes: u32) -> Result<bool> {
        if self.multi_class == MultiClass::OneVsRest {
            return Ok(false);
        }
        if self.loss != LossKind::Logistic {
            let rule = "\"ovr\" for any loss but the logistic one";
            return Err(Error::Parameter { name: "multi_class", value: "\"multinomial\"".into(), rule });
        }
        let is_known =
            matches!(self.params.solver, SolverKind::Auto | SolverKind::DualCd | SolverKind::Newton);
        if n_classes > 2 && !is_known {
            let rule = "'auto', 'dual_cd' or 'newton' for multi_class=\"multinomial\"";
            let value = format!("{:?}", self.params.solver.name());
            return Err(Error::Parameter { name: "solver", value, rule });
        }
        Ok(n_classes > 2)
    }
}

impl Default for Spec<'_> {
    /// Squared hinge with a free intercept, to a relative gap of 1e-4.
    fn default() -> Self {
        Self {
            loss: LossKind::SquaredHinge,
            intercept: Intercept::Free,
            params: crate::fit::Params::default(),
            presolve: PresolveChoice::Auto,
            map: None,
            multi_class: MultiClass::OneVsRest,
            penalty: None,
            start: None,
        }
    }
}
