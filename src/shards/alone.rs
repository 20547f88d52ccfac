//! Newton on a block store in this process: its pieces are the shards, and nothing travels.

use std::path::Path;

use super::checkpoint::Recorded;
use super::exchange::Exchange;
use super::pieces::{PieceFolds, PieceRows, StoreRows, StoreShard};
use super::search::ShardSearch;
use super::task::ShardTask;
use super::wire::{Request, ShardAnswer};
use crate::fit::newton::hessian::step_bytes;
use crate::fit::routes::{FREQUENT_COLUMNS, MAX_CHOLESKY_COLUMNS, SHARD_MATRIX_COLUMNS};
use crate::fit::{Monitor, Params, Solution};
use crate::labels::{self, Labels};
use crate::search::{EndReason, Fold, SearchPlan, SearchStep};
use crate::store::reader::Store;
use crate::{Error, Result};

/// The name of the solver.
pub const NAME: &str = "block_newton";
/// Vectors of the columns that Newton has beside those of the pieces.
const NEWTON_VECTORS: u64 = 9;
/// Bytes of a row in a search beside its parts of the folds and its decision values: class and weight twice,
/// its piece and its place there, and its piece as that of a held-out row.
const SEARCH_ROW_BYTES: u64 = 2 * 12 + 8 + 4;
/// Those of its part of a fold: a number of the input, and one of its piece.
const FOLD_ROW_BYTES: u64 = 2 * 4;

/// What a fit has found.
pub struct StoreFit {
    /// An entry per binary problem, with weights of the data's columns.
    pub solutions: Vec<Solution>,
    /// Readings of the store.
    pub loads: f64,
}

/// The pieces of a store, asked by a call.
struct Here<'s, 'a>(StoreShard<'s, 'a>);

impl Exchange for Here<'_, '_> {
    fn ask(&mut self, request: &Request, _: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        self.0.answer(request.words())
    }

    fn gather(&mut self, request: &Request, _: &dyn Fn() -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
        Ok(vec![self.0.answer(request.words())?.sums])
    }
}

/// Fits each class against the rest (one problem in all for two classes); with `keep` the answers of the
/// pieces are kept in that file, from which the same fit goes on.
///
/// # Errors
/// Those of [`super::fit()`], of the store, and of [`Recorded::open`].
pub fn fit_store(
    store: &Store,
    rows: StoreRows,
    params: &Params,
    keep: Option<&Path>,
    monitor: &dyn Monitor,
) -> Result<StoreFit> {
    let own = Own::of(store, &rows, 0);
    with_less(rows, own.bytes, |rows| {
        rows.with_pieces(store, monitor, |pieces, loader| {
            let task = task_of(rows, &pieces, own.matrix_columns, params);
            let mut here = Here(StoreShard::new(pieces, None, loader, monitor));
            let solutions = match keep {
                Some(path) => super::fit(&task, &mut Recorded::open(path, &task, &mut here)?, monitor)?,
                None => super::fit(&task, &mut here, monitor)?,
            };
            drop(here);
            Ok(StoreFit { solutions, loads: loader.readings() })
        })
    })
}

/// A search for `C` over a store.
pub struct PieceSearch<'a> {
    /// The splits, in rows of the input.
    pub folds: &'a [Fold],
    /// Which values of `C`.
    pub plan: &'a SearchPlan,
    /// The journal.
    pub resume: Option<&'a Path>,
}

/// Searches as [`super::search::search`] does; the cost of a class is the factor of its rows' weights.
///
/// # Errors
/// Those of [`super::search::search`] and of the store.
pub fn search_store(
    store: &Store,
    rows: StoreRows,
    params: &Params,
    &PieceSearch { folds, plan, resume }: &PieceSearch<'_>,
    monitor: &dyn Monitor,
    visit: &mut dyn FnMut(&SearchStep) -> Result<Option<f64>>,
) -> Result<EndReason> {
    let own = Own::of(store, &rows, folds.len());
    with_less(rows, own.bytes, |rows| {
        let (ids, weight) = rows.by_number(store, monitor)?;
        rows.with_pieces(store, monitor, |pieces, loader| {
            let task = &task_of(rows, &pieces, own.matrix_columns, params);
            let labels = Labels { ids: &ids, n_classes: task.n_classes };
            let (weight, borders) = (&weight[..], &[0, ids.len() as u32]);
            let of_pieces = PieceFolds::cut(folds, loader, pieces.pieces, monitor)?;
            let mut here = Here(StoreShard::new(pieces, Some(&of_pieces), loader, monitor));
            let search = ShardSearch { task, labels, weight, folds, borders, plan, resume };
            super::search::search(&search, &mut here, monitor, visit)
        })
    })
}

/// What a fit has beside the pieces.
pub struct Own {
    /// Columns, that of the intercept included, up to which steps may be factorised.
    pub matrix_columns: usize,
    /// Bytes of vectors, of matrices, and in a search of what it knows of each row.
    bytes: u64,
}

impl Own {
    /// That of a fit, or of a search with so many folds: steps may be factorised as in memory where the
    /// budget has room for it. A matrix saves more readings than the rows that could stay in its place:
    /// mnist, squared hinge, C = 1, 23 instead of 90.
    pub fn of(store: &Store, rows: &StoreRows, n_folds: usize) -> Self {
        let n_problems = labels::n_problems(rows.classes.len()) as u64;
        let of_row = if n_folds == 0 {
            0
        } else {
            SEARCH_ROW_BYTES + FOLD_ROW_BYTES * n_folds as u64 + 8 * n_problems
        };
        let vectors = 8 * NEWTON_VECTORS * (rows.padded_lanes() * rows.n_columns) as u64;
        let others = vectors + of_row * store.meta().n_rows;
        let of =
            |matrix_columns, side: usize| Self { matrix_columns, bytes: others + step_bytes(side as u64) };
        let d = rows.n_columns + 1;
        if d <= MAX_CHOLESKY_COLUMNS {
            let whole = of(MAX_CHOLESKY_COLUMNS, d);
            if whole.has_room(store, rows) {
                return whole;
            }
        }
        of(SHARD_MATRIX_COLUMNS, d.min(FREQUENT_COLUMNS))
    }

    /// Whether the budget has room for it and the pieces.
    pub fn has_room(&self, store: &Store, rows: &StoreRows) -> bool {
        let budget = rows.budget.saturating_sub(self.bytes);
        StoreRows { budget, ..rows.clone() }.cut(store).is_ok()
    }
}

fn task_of(rows: &StoreRows, pieces: &PieceRows<'_>, matrix_columns: usize, params: &Params) -> ShardTask {
    let (sizes, kind) = ((rows.n_columns, rows.classes.len() as u32), (rows.loss, rows.intercept));
    ShardTask { matrix_columns, ..ShardTask::new(pieces.facts, sizes, kind, *params) }
}

/// Calls `f` with so many bytes less; what the budget must be is said with them.
fn with_less<T>(mut rows: StoreRows, bytes: u64, f: impl FnOnce(&StoreRows) -> Result<T>) -> Result<T> {
    let budget = rows.budget;
    rows.budget = budget.saturating_sub(bytes);
    f(&rows).map_err(|error| match error {
        Error::Budget { needed, parts, .. } => {
            let parts = format!("{parts}, {bytes} bytes for Newton's vectors and matrices");
            Error::Budget { budget, needed: needed + bytes, parts }
        }
        other => other,
    })
}
