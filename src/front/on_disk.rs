//! Which way `auto` takes where the rows of a store stay on the disk: dual descent by blocks, or Newton on
//! pieces of the store.
//!
//! Newton where its steps may be factorised and the budget has room for what it knows of the rows: a file of
//! few columns. Then it takes some dozen readings whatever `C` is, descent as many as rows contradict each
//! other. Not where rows are long and costs small, so that descent comes there in one or two readings; nor
//! where all is said about the descent: its options, a degree-2 map, or a file that it has begun.
//!
//! Tried: Newton for many columns, too, where rows outnumber them as in [`crate::fit::auto`]. One-hot
//! tables would gain as much (flights, squared hinge, C = 4: 2.6 s instead of 69), but by what a store says
//! of itself they are like hashed text, which loses: 300,000 paths, 16,384 columns of 5-grams, 60 entries a
//! row, squared hinge, C = 1, 16 and 100, gap 1e-2, 6.4, 14 and 77 s instead of 1.3, 4.2 and 8.1.

use std::path::Path;

use super::source::Blocks;
use super::spec::Spec;
use crate::durable::target;
use crate::fit::newton::factorisation;
use crate::fit::routes::{EASY, STORE_LONG_ROWS};
use crate::labels;
use crate::shards::alone::Own;
use crate::shards::shard::CLASSES;
use crate::store::reader::Store;
use crate::{blocks, shards};

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
    pub fn is_fitted_by_newton(&self) -> bool {
        let begun = self.blocks.keep.and_then(|keep| begun_by(keep.path));
        begun.unwrap_or_else(|| self.is_fit_for_newton())
    }

    /// Whether `auto` searches by Newton, with so many folds; `journal` is where the search is kept.
    pub fn is_searched_by_newton(&self, n_folds: usize, journal: Option<&Path>) -> bool {
        let begun = journal.and_then(begun_by);
        begun.unwrap_or_else(|| self.spec.loss.is_smooth() && self.is_for_newton(CLASSES, n_folds))
    }

    /// One problem with the hinge costs Newton a sequence of smooth ones, each class anew.
    fn is_fit_for_newton(&self) -> bool {
        let n_problems = labels::n_problems(self.cost.len());
        let (is_smooth, is_easy) = (self.spec.loss.is_smooth(), self.mean_diagonal() <= EASY);
        let pays = match is_easy {
            true => is_smooth && self.entries_per_row() <= STORE_LONG_ROWS,
            false => is_smooth || n_problems == 1,
        };
        pays && self.is_for_newton(n_problems, 0)
    }

    fn is_for_newton(&self, lanes: usize, n_folds: usize) -> bool {
        let Self { store, blocks, spec, cost } = *self;
        if spec.map.is_some() || !blocks.is_plain() {
            return false;
        }
        let rows = blocks.pieces(store, cost, lanes, spec);
        let own = Own::of(store, &rows, n_folds);
        self.is_factorised(own.matrix_columns) && own.has_room(store, &rows)
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
fn begun_by(path: &Path) -> Option<bool> {
    let head = target::first_bytes(path).ok()??;
    let is = |files: &[fn(&[u8]) -> bool]| files.iter().any(|is_one| is_one(&head));
    if is(&[blocks::checkpoint::is_one, blocks::search::is_one]) {
        Some(false)
    } else if is(&[shards::checkpoint::is_one, shards::search::is_one]) {
        Some(true)
    } else {
        None
    }
}
