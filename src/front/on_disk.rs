//! Newton where the rows of a store stay on the disk, pieces of which take turns in memory; and whether
//! `auto` takes it or dual descent by blocks.
//!
//! Newton where its steps may be factorised and the budget has room for its matrices: a file of few columns.
//! Then it takes some dozen readings whatever `C` is, descent as many as rows contradict each other. Not
//! where rows are long and costs small, so that descent comes there in one or two readings; nor where all is
//! said about the descent: its options, a degree-2 map, or a file that it has begun.
//!
//! With more columns, but many entries of each: for a search as in memory, for one fit by the trial of memory
//! on a sample of the rows ([`trial`]), which tells one-hot tables (flights, squared hinge, C = 4: 1.9 s by
//! Newton, 55 by descent) from hashed text (300,000 paths, 16,384 columns of 5-grams, 60 entries a row, C =
//! 1, 16 and 100: 4.6, 12 and 53 s by Newton, 1.3, 3.0 and 5.3 by descent; no link-time optimisation).

use std::path::Path;

use super::outcome::Outcome;
use super::source::Blocks;
use super::spec::Spec;
use super::trial;
use crate::blocks::BinaryTask;
use crate::blocks::trainer::check_row_count;
use crate::durable::nameless::folder_beside;
use crate::durable::target;
use crate::fit::newton::factorisation;
use crate::fit::routes::{EASY, STORE_LONG_ROWS, TRIAL_LEFT};
use crate::fit::{Monitor, auto};
use crate::labels;
use crate::search::{EndReason, SearchStep};
use crate::shards::alone::{self, Own, PieceSearch, StoreFit};
use crate::shards::pieces::StoreRows;
use crate::shards::shard::CLASSES;
use crate::store::reader::Store;
use crate::{Result, blocks, shards};

/// A store that stays on the disk, and what is asked of it; an entry of `cost` for each class.
#[derive(Clone, Copy)]
pub struct OnDisk<'a> {
    /// The rows.
    pub store: &'a Store,
    /// How to train on them.
    pub blocks: &'a Blocks<'a>,
    /// What is asked for.
    pub spec: &'a Spec<'a>,
    /// Costs of the classes.
    pub cost: &'a [f64],
}

impl OnDisk<'_> {
    /// Whether `auto` fits by Newton.
    ///
    /// # Errors
    /// Those of [`trial::remaining_gain`].
    pub fn prefers_newton(&self, monitor: &dyn Monitor) -> Result<bool> {
        if let Some(begun) = self.blocks.keep.and_then(|keep| begun_by_newton(keep.path)) {
            return Ok(begun);
        }
        let Some(most) = self.matrix_columns(self.n_problems(), 0) else { return Ok(false) };
        if self.is_factorised(most) {
            return Ok(self.pays_in_a_fit());
        }
        let is_hard = self.spec.loss.is_smooth() && self.mean_diagonal() > EASY;
        let tasks = BinaryTask::one_against_rest(self.cost.len(), self.cost)?;
        match &tasks[..] {
            [task] if is_hard && self.has_many_per_column() => {
                let (budget, spec) = (self.blocks.budget, self.spec);
                Ok(trial::remaining_gain(self.store, budget, task, spec, monitor)? > TRIAL_LEFT)
            }
            _ => Ok(false),
        }
    }

    /// Whether `auto` searches by Newton.
    pub fn prefers_newton_to_search(&self, search: &PieceSearch<'_>) -> bool {
        let begun = search.resume.and_then(begun_by_newton);
        begun.unwrap_or_else(|| {
            let suits = |most| self.is_factorised(most) || self.has_many_per_column();
            self.spec.loss.is_smooth() && self.matrix_columns(CLASSES, search.folds.len()).is_some_and(suits)
        })
    }

    /// Fits each class against the rest by Newton, pieces of the store taking turns in memory.
    ///
    /// # Errors
    /// Those of [`alone::fit_store`]; [`crate::Error::Parameter`] for too many rows.
    pub fn fit_by_newton(&self, monitor: &dyn Monitor) -> Result<Outcome> {
        check_row_count(self.store)?;
        let keep = self.blocks.keep.map(|keep| keep.path);
        let rows = self.pieces(self.n_problems(), keep);
        let StoreFit { solutions, loads } =
            alone::fit_store(self.store, rows, &self.spec.params, keep, monitor)?;
        let outcome = Outcome::of_solutions(solutions, self.store.meta().n_cols, None);
        Ok(outcome.of_loads(alone::NAME, loads))
    }

    /// Searches so, the costs being the factors of the classes' weights.
    ///
    /// # Errors
    /// Those of [`alone::search_store`]; [`crate::Error::Parameter`] for too many rows.
    pub fn search_by_newton(
        &self,
        search: &PieceSearch<'_>,
        monitor: &dyn Monitor,
        visit: &mut dyn FnMut(&SearchStep) -> Result<Option<f64>>,
    ) -> Result<EndReason> {
        check_row_count(self.store)?;
        let rows = self.pieces(CLASSES, search.resume);
        alone::search_store(self.store, rows, &self.spec.params, search, monitor, visit)
    }

    fn n_problems(&self) -> usize {
        labels::n_problems(self.cost.len())
    }

    /// The store in pieces, for so many lanes side by side; beside the file that keeps what is found, if any,
    /// is that of the pieces.
    fn pieces(&self, lanes: usize, keep: Option<&Path>) -> StoreRows {
        StoreRows {
            n_columns: self.store.meta().n_cols,
            classes: (0..).zip(self.cost.iter().copied()).collect(),
            lanes,
            budget: self.blocks.budget,
            loss: self.spec.loss,
            intercept: self.spec.intercept,
            folder: folder_beside(keep),
        }
    }

    /// Whether Newton is faster in a fit where its steps may be factorised. One problem with the hinge costs
    /// it a sequence of smooth ones, each class anew.
    fn pays_in_a_fit(&self) -> bool {
        let is_smooth = self.spec.loss.is_smooth();
        if self.mean_diagonal() <= EASY {
            is_smooth && self.entries_per_row() <= STORE_LONG_ROWS
        } else {
            is_smooth || self.n_problems() == 1
        }
    }

    /// Columns up to which Newton's steps may be factorised; `None` where something speaks for the descent,
    /// or there is no room.
    fn matrix_columns(&self, lanes: usize, n_folds: usize) -> Option<usize> {
        if self.spec.map.is_some() || !self.blocks.is_plain() {
            return None;
        }
        let rows = self.pieces(lanes, None);
        let own = Own::of(self.store, &rows, n_folds);
        own.has_room(self.store, &rows).then_some(own.matrix_columns)
    }

    /// Whether passes outweigh vectors of the columns, as in memory.
    fn has_many_per_column(&self) -> bool {
        let meta = self.store.meta();
        auto::has_many_per_column(meta.n_rows as usize, meta.n_used, meta.nnz as usize)
    }

    /// Whether a step by factorisation is worth it, as far as the mean length of the rows tells.
    fn is_factorised(&self, most: usize) -> bool {
        let (meta, len) = (self.store.meta(), self.entries_per_row());
        let d = meta.n_cols + 1;
        let pairs = meta.n_rows as f64 * factorisation::pairs_of_row(len.ceil() as usize, d);
        d <= most && factorisation::of_sums(d, [meta.nnz as f64, pairs], false).is_worth_it
    }

    fn entries_per_row(&self) -> f64 {
        let meta = self.store.meta();
        meta.nnz as f64 / meta.n_rows as f64
    }

    /// The mean of `c_i |x_i|^2`, as if costs and norms were independent.
    fn mean_diagonal(&self) -> f64 {
        let n = self.store.meta().n_rows as f64;
        self.store.total(self.cost) / n * (self.store.meta().sum_squared_norm / n)
    }
}

/// Whether Newton has begun the file of a fit or a search; `None` where nobody has, or it is not to be read:
/// whoever opens it then says what is wrong.
fn begun_by_newton(path: &Path) -> Option<bool> {
    let head = &target::first_bytes(path).ok()??;
    let is_newtons = shards::checkpoint::is_one(head) || shards::search::is_one(head);
    let is_descents = blocks::checkpoint::is_one(head) || blocks::search::is_one(head);
    (is_newtons || is_descents).then_some(is_newtons)
}
