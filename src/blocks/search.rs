//! The search for `C` of [`crate::search`] over a store: in memory where the rows fit, else all folds in one
//! descent.
//!
//! Folds are parts of the rows, each row held out once at most; repeated cross-validation holds rows out
//! several times and is refused for rows that do not fit. Rows are addressed by their numbers in the input.

use std::path::Path;

use super::budget::{Groups, MemoryPlan, Needs};
use super::choice::Policy;
use super::route::{NO_FOLD, StoreRoute, StoreSetup};
use super::settings::{BlockSettings, SoftmaxCut};
use super::trainer::check_row_count;
use super::{budget, multinomial, scan, softmax_search};
use crate::fit::{Monitor, Params, check_length};
use crate::labels::{self, Labels};
use crate::matrix::Rows;
use crate::memory::CollectLarge;
use crate::search::GAP_PER_TOL;
use crate::search::fingerprint::Fingerprint;
use crate::search::journal::{self, Journal};
use crate::search::plan::SearchSchedule;
use crate::search::runner::Runner;
use crate::search::{EndReason, Fold, Route, SearchStep, driver};
use crate::source::mapped::mapped;
use crate::store::format::checksum;
use crate::store::reader::{FromFile, RowFacts, Store};
use crate::{Error, Result, memory};

/// By which a journal is known as one of a search by blocks.
const STORE: &str = "fingerprint of the store";
/// Bytes per row for classes, weights, folds and positions, beside decision values.
const ROW_BYTES: u64 = 4 + 8 + 1 + 4;

/// The data of a search.
pub struct StoreSearchData<'a> {
    /// The rows.
    pub store: &'a Store,
    /// Weight of each class.
    pub factor: &'a [f64],
    /// The splits, by row numbers of the input.
    pub folds: &'a [Fold],
}

/// The search, in memory or over blocks. `settings` say how to fit, `blocks` how to train on blocks (its
/// loss, intercept, tolerance, limit of passes and seed are taken from `settings`).
pub struct StoreSearch<'a> {
    /// The data.
    pub task: StoreSearchData<'a>,
    /// How to fit.
    pub settings: crate::search::SearchSettings,
    /// How to train on blocks.
    pub blocks: BlockSettings<'a>,
    /// Which values of `C`.
    pub plan: &'a crate::search::SearchPlan,
    /// The journal.
    pub resume: Option<&'a Path>,
}

impl StoreSearch<'_> {
    /// Whether all rows and lanes fit into the budget.
    pub fn fits_in_memory(&self) -> bool {
        let n_problems = labels::n_problems(self.task.factor.len());
        if self.is_multinomial() {
            return budget::fits_multinomial_folds(self.task.store, &self.blocks, self.task.folds.len());
        }
        budget::fits_in_memory(self.task.store, &self.blocks, self.task.folds.len() * n_problems, 1)
    }

    /// Runs it; see [`crate::search::search`].
    ///
    /// # Errors
    /// Those of [`crate::search::search`] and of the store; [`Error::Budget`] where not all lanes fit,
    /// [`Error::Labels`] for splits that hold a row out twice.
    pub fn run(
        &self,
        in_memory: bool,
        monitor: &dyn Monitor,
        visit: &mut dyn FnMut(&SearchStep) -> Result<Option<f64>>,
    ) -> Result<EndReason> {
        check_row_count(self.task.store)?;
        if in_memory { self.run_in_memory(monitor, visit) } else { self.run_over_blocks(monitor, visit) }
    }

    /// Whether all classes of a fold are one problem.
    fn is_multinomial(&self) -> bool {
        self.settings.is_multinomial(self.task.factor.len() as u32)
    }

    fn run_in_memory(
        &self,
        monitor: &dyn Monitor,
        visit: &mut dyn FnMut(&SearchStep) -> Result<Option<f64>>,
    ) -> Result<EndReason> {
        let store = self.task.store;
        let pages: Vec<u32> = (0..store.pages().len() as u32).collect();
        let (arena, facts) = store.load(&pages, store.plain_width(), monitor)?;
        let folds = folds_by_place(self.task.folds, &facts.numbers)?;
        let labels = Labels { ids: &facts.classes, n_classes: self.task.factor.len() as u32 };
        let weight: Vec<f64> = facts
            .classes
            .iter()
            .zip(&facts.weights)
            .map(|(&k, w)| self.task.factor[k as usize] * w)
            .collect_large();
        let rows = &mapped(arena.view(), self.blocks.map);
        let task = crate::search::SearchData { rows, labels, weight: &weight, folds: &folds, penalty: None };
        crate::search::search(&task, &self.settings, self.plan, self.resume, monitor, visit)
    }

    fn run_over_blocks(
        &self,
        monitor: &dyn Monitor,
        visit: &mut dyn FnMut(&SearchStep) -> Result<Option<f64>>,
    ) -> Result<EndReason> {
        let store = self.task.store;
        self.plan.stop.check(false)?;
        let schedule = SearchSchedule::new(self.plan, || self.bound(monitor))?;
        let facts = store.facts_by_place(monitor)?;
        let (folds, test_positions) = self.fold_of_rows(&facts)?;
        let n_problems = labels::n_problems(self.task.factor.len());
        let n_lanes = self.task.folds.len() * if self.is_multinomial() { 1 } else { n_problems };
        let (settings, plan, cut) = self.divide(n_lanes, n_problems)?;
        let setup = StoreSetup {
            store,
            settings,
            plan: &plan,
            factor: self.task.factor,
            classes: facts.classes,
            weights: facts.weights,
            folds,
            test_positions,
            sizes: self.task.folds.iter().map(|fold| fold.test.len()).collect(),
            monitor,
        };
        let journal = match self.resume {
            Some(path) => Some(Journal::open(path, &self.fingerprint(&setup))?),
            None => None,
        };
        let fits = |step: &SearchStep| {
            let shape = setup.sizes.iter().map(|size| size * setup.n_problems());
            step.objective.len() == n_lanes && step.decisions.iter().map(Vec::len).eq(shape)
        };
        let route: Box<dyn Route + '_> = match cut {
            Some(cut) => Box::new(softmax_search::route(&setup, cut)),
            None => Box::new(StoreRoute::new(&setup)),
        };
        let runner = Runner::new(route, journal);
        driver::drive(schedule, runner, fits, monitor, visit)
    }

    /// The settings of the fits and the division of the budget; all lanes must fit side by side, but for
    /// multinomial ones, which come one after the other.
    fn divide(
        &self,
        n_lanes: usize,
        n_problems: usize,
    ) -> Result<(BlockSettings<'_>, MemoryPlan, Option<SoftmaxCut>)> {
        let (store, meta) = (self.task.store, self.task.store.meta());
        let mut own = meta.n_rows * (ROW_BYTES + 8 * n_problems as u64);
        if self.is_multinomial() {
            own += softmax_search::kept_bytes(n_lanes, self.blocks.n_weights(store), n_problems);
        }
        let crate::search::SearchSettings { loss, intercept, params, .. } = self.settings;
        let Params { tol, max_iter, seed, .. } = params;
        let tol = GAP_PER_TOL * tol;
        let budget = self.blocks.budget.saturating_sub(own);
        let settings =
            BlockSettings { loss, intercept, tol, max_passes: max_iter, seed, budget, ..self.blocks };
        settings.check()?;
        let planned = if self.is_multinomial() {
            let settings = BlockSettings { policy: Policy::None, ..settings };
            multinomial::plan(store, &settings).map(|(plan, cut)| (settings, plan, Some(cut)))
        } else {
            let groups = Groups::in_memory(store, &settings, n_lanes);
            let plan = MemoryPlan::new(store, &settings, &Needs::binary(store, &settings, groups));
            plan.map(|plan| (settings, plan, None))
        };
        planned.map_err(|error| match error {
            Error::Budget { needed, parts, .. } => {
                let parts = format!("{own} bytes for classes, folds and decision values, {parts}");
                Error::Budget { budget: self.blocks.budget, needed: needed + own, parts }
            }
            error => error,
        })
    }

    fn bound(&self, monitor: &dyn Monitor) -> Result<f64> {
        let store = self.task.store;
        let (weight, n_classes) = (store.total(self.task.factor), self.task.factor.len() as u32);
        Ok(self.settings.lower_bound(weight, self.max_squared_norm(monitor)?, n_classes))
    }

    /// Largest squared norm of the rows as the solvers see them, so that a search starts where one in memory
    /// does. That of mapped rows does not follow from that of the store's: plain factors and hashed pairs
    /// weigh the entries of a row differently.
    fn max_squared_norm(&self, monitor: &dyn Monitor) -> Result<f64> {
        let store = self.task.store;
        if self.blocks.map.is_none() {
            return Ok(store.meta().max_squared_norm);
        }
        let items = vec![(); store.pages().len()];
        let norms = scan::for_pages(store, &FromFile, store.width(), items, monitor, |_, view, _, ()| {
            let rows = &mapped(view, self.blocks.map);
            rows.max_squared_norm()
        })?;
        Ok(norms.into_iter().fold(0.0, f64::max))
    }

    /// The fold of each row and its position in the held-out part.
    fn fold_of_rows(&self, facts: &RowFacts) -> Result<(Vec<u8>, Vec<u32>)> {
        let (folds, n) = (self.task.folds, facts.numbers.len());
        let refuse = |reason: String| Err(Error::Labels { reason });
        if folds.is_empty() || folds.len() >= usize::from(NO_FOLD) {
            return refuse(format!(
                "a search over blocks takes 1 to {} folds, got {}",
                NO_FOLD - 1,
                folds.len()
            ));
        }
        let positions = positions(&facts.numbers)?;
        let (mut parts, mut test_positions) = (memory::filled(NO_FOLD, n), memory::zeros::<u32>(n));
        for (f, fold) in folds.iter().enumerate() {
            for (test_position, &row) in fold.test.iter().enumerate() {
                let Some(&position) = positions.get(row as usize) else { return Err(no_row(row, n)) };
                let part = &mut parts[position as usize];
                if *part != NO_FOLD {
                    return refuse(format!(
                        "row {row} is held out twice: a search over rows that do not fit memory_budget takes \
                         splits that hold each row out once at most"
                    ));
                }
                (*part, test_positions[position as usize]) = (f as u8, test_position as u32);
            }
        }
        for (f, fold) in folds.iter().enumerate() {
            let mut is_trained = memory::zeros(n);
            fold.train.iter().for_each(|&row| {
                if let Some(&position) = positions.get(row as usize) {
                    is_trained[position as usize] = true;
                }
            });
            let held_out = parts.iter().map(|&part| usize::from(part) == f);
            if is_trained.iter().zip(held_out).any(|(&trains, out)| trains == out) {
                return refuse(format!(
                    "fold {f} does not train on exactly the rows that it does not hold out, as a search over \
                     rows that do not fit memory_budget needs it"
                ));
            }
            self.check_classes(f, facts, &parts)?;
        }
        Ok((parts, test_positions))
    }

    fn check_classes(&self, f: usize, facts: &RowFacts, parts: &[u8]) -> Result<()> {
        let mut seen = vec![false; self.task.factor.len()];
        for (position, &part) in parts.iter().enumerate() {
            let class = facts.classes[position] as usize;
            seen[class] |= usize::from(part) != f && facts.weights[position] * self.task.factor[class] > 0.0;
        }
        match seen.iter().position(|seen| !seen) {
            None => Ok(()),
            Some(class) => Err(Error::Labels {
                reason: format!(
                    "class number {class} (classes in sorted order) has no row of positive weight in the \
                     training part of fold {f}"
                ),
            }),
        }
    }

    fn fingerprint(&self, setup: &StoreSetup<'_>) -> Fingerprint {
        let hex = |bytes: &[u8]| format!("{:016x}", checksum(5, bytes));
        let BlockSettings { budget, policy, cache_share, rounds, round_tol, .. } = setup.settings;
        let data = [
            (STORE, self.task.store.meta().fingerprint.clone()),
            ("hash of class_weight", hex(format!("{:?}", self.task.factor).as_bytes())),
            ("hash of cv", hex(&setup.folds)),
            ("memory_budget", budget.to_string()),
            (
                "degree-2 map",
                setup.settings.map.map_or_else(|| "none".to_owned(), |map| map.inner().description()),
            ),
            ("block_options", format!("{policy:?} {cache_share:?} {rounds} {round_tol:?}")),
        ];
        Fingerprint::with(&data, &self.settings, self.plan)
    }
}

/// Whether a file with these first bytes is the journal of a search by blocks.
pub fn is_one(head: &[u8]) -> bool {
    journal::is_of(head, STORE)
}

/// Splits by the places of rows, from those by their numbers in the input. `numbers` are those of the places.
///
/// # Errors
/// [`Error::Labels`] for a row that there is not.
pub fn folds_by_place(folds: &[Fold], numbers: &[u64]) -> Result<Vec<Fold>> {
    let positions = positions(numbers)?;
    let place = |&row: &u32| positions.get(row as usize).copied().ok_or_else(|| no_row(row, positions.len()));
    let moved = |rows: &[u32]| -> Result<Vec<u32>> { rows.iter().map(place).try_collect_large() };
    folds.iter().map(|f| Ok(Fold { train: moved(&f.train)?, test: moved(&f.test)? })).collect()
}

/// Place of each row number.
fn positions(numbers: &[u64]) -> Result<Vec<u32>> {
    let mut positions = memory::zeros(numbers.len());
    for (position, &number) in numbers.iter().enumerate() {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        *positions.get_mut(number).ok_or_else(|| no_row(u32::MAX, numbers.len()))? = position as u32;
    }
    Ok(positions)
}

fn no_row(row: u32, n_rows: usize) -> Error {
    Error::Labels { reason: format!("a fold names row {row}, the store has {n_rows} rows") }
}

/// Checks the number of class weights.
///
/// # Errors
/// [`Error::Shape`].
pub fn check_factor(store: &Store, factor: &[f64]) -> Result<()> {
    check_length("class weights", store.classes().len(), factor.len())
}
