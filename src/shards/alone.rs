//! Newton on a block store in this process: its pieces are the shards, and nothing travels.

use std::path::Path;

use super::checkpoint::Recorded;
use super::pieces::{StoreRows, StoreShard};
use super::remote::Exchange;
use super::task::ShardTask;
use super::wire::{Request, ShardAnswer};
use crate::fit::{Monitor, Params, Solution};
use crate::store::reader::Store;
use crate::{Error, Result};

/// The name of the solver.
pub const NAME: &str = "block_newton";
/// Vectors of the columns that Newton has beside those of the pieces.
const NEWTON_VECTORS: u64 = 9;

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
    mut rows: StoreRows,
    params: &Params,
    keep: Option<&Path>,
    monitor: &dyn Monitor,
) -> Result<StoreFit> {
    let of_newton = (8 * NEWTON_VECTORS * (rows.lanes * rows.n_columns) as u64).min(rows.budget);
    rows.budget -= of_newton;
    rows.with_pieces(store, monitor, |pieces, loader| {
        let StoreRows { n_columns, loss, intercept, .. } = rows;
        let (facts, n_classes) = (pieces.facts, rows.classes.len() as u32);
        let (scale, n_shards, params) = (1.0, facts.n_shards, *params);
        let task = ShardTask { facts, scale, n_shards, n_columns, n_classes, loss, intercept, params };
        let mut here = Here(StoreShard::new(pieces, None, loader, monitor));
        let solutions = match keep {
            Some(path) => super::fit(&task, &mut Recorded::open(path, &task, &mut here)?, monitor)?,
            None => super::fit(&task, &mut here, monitor)?,
        };
        drop(here);
        Ok(StoreFit { solutions, loads: loader.readings() })
    })
    .map_err(|error| match error {
        Error::Budget { budget, needed, parts } => {
            Error::Budget { budget: budget + of_newton, needed: needed + of_newton, parts }
        }
        other => other,
    })
}
