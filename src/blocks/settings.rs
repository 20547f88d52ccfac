//! How to train on blocks.

use super::choice::Policy;
use crate::fit::Intercept;
use crate::loss::LossKind;
use crate::source::mapped::StoreMap;
use crate::store::columns;
use crate::store::reader::Store;
use crate::{Error, Result, memory};

/// Epochs over the rows in memory per loaded block. ChangRoth11 take 10 (section 7.1), and 3 beside it
/// (section 7.2, figure 5).
pub const DEFAULT_ROUNDS: usize = 10;
/// Usual share of the arena for cached rows: SBM-1/2 of ChangRoth11, section 7.1.
pub const USUAL_CACHE_SHARE: f64 = 0.5;

/// Where memory holds at least this share of the rows, a smaller cache is enough.
pub const LARGE_CACHE_BELOW: f64 = 0.1;

/// What to do while the disk is slower than the trainer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Wait: the same bits whatever the disk.
    Rest,
    /// Train on the cached rows meanwhile: results depend on the speed of the disk, within the tolerance.
    Train,
}

/// Where dual variables are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DualsIn {
    /// In a file where memory for them would double the readings of the data, or leave too little for rows.
    Auto,
    /// In memory.
    Memory,
    /// In a file without a name.
    File,
}

/// How to train.
#[derive(Clone, Copy, Debug)]
pub struct BlockSettings<'a> {
    /// The loss.
    pub loss: LossKind,
    /// Treatment of the intercept.
    pub intercept: Intercept,
    /// Relative duality gap to reach.
    pub tol: f64,
    /// Largest number of passes over the store.
    pub max_passes: usize,
    /// Seed of blocks' and rows' orders.
    pub seed: u64,
    /// Bytes that the call may use.
    pub budget: u64,
    /// Which rows stay in memory.
    pub policy: Policy,
    /// Their share of the arena; `None` chooses, see [`Self::share`].
    pub cache_share: Option<f64>,
    /// Epochs per loaded block.
    pub rounds: usize,
    /// Largest minus smallest projected gradient at which the epochs on a block end early; 0 for never.
    pub round_tol: f64,
    /// Whether the stored bytes stay in memory where they fit.
    pub keeps_stored: bool,
    /// What to do while the disk is slow.
    pub waiting: Waiting,
    /// Where dual variables are.
    pub duals: DualsIn,
    /// Degree-2 features in place of the rows.
    pub map: Option<&'a StoreMap>,
}

/// How a multinomial problem is cut.
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxCut {
    /// Parts of a block that are added up side by side.
    pub parts: usize,
    /// Whether there is room for a matrix of all columns.
    pub has_room_for_matrix: bool,
}

impl BlockSettings<'_> {
    /// Number of weights of a problem, a constant column left out.
    pub fn n_weights(&self, store: &Store) -> usize {
        self.map.map_or(store.meta().n_used, |map| map.inner().n_out())
    }

    /// A squared norm of rows as the solvers see them.
    pub fn squared_norm(&self, squared: f64) -> f64 {
        self.map.map_or(squared, |map| map.inner().usual_squared_norm(squared))
    }

    /// At least the norm of every row as the solvers see it.
    pub fn largest_norm(&self, store: &Store) -> f64 {
        let squared = store.meta().max_squared_norm;
        self.map.map_or(squared, |map| map.inner().squared_norm_limit(squared)).sqrt()
    }

    /// Weights in the order of the input, columns without entries included.
    pub fn to_input(&self, store: &Store, old: &[u32], mut w: Vec<f64>) -> Vec<f64> {
        if let Some(map) = self.map {
            return map.to_input(&w);
        }
        memory::resize(&mut w, store.meta().n_cols, 0.0);
        columns::restore(old, &mut w);
        w
    }

    /// Checks the numbers.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<()> {
        let refuse = |name, value: String, rule| Err(Error::Parameter { name, value, rule });
        if let Some(share) = self.cache_share.filter(|share| !(0.0..=0.9).contains(share)) {
            return refuse("cache_share", share.to_string(), "'auto' or a number from 0 to 0.9");
        }
        if self.rounds == 0 {
            return refuse("rounds", self.rounds.to_string(), "an integer of at least 1");
        }
        if !(self.round_tol >= 0.0 && self.round_tol.is_finite()) {
            return refuse("round_tol", self.round_tol.to_string(), "a finite number of at least 0");
        }
        Ok(())
    }

    /// The share of the arena that cached rows may take, `held` being the part of all entries that fits into
    /// it.
    ///
    /// Where none is asked for, a third if memory holds a tenth of the rows or more, else half:
    /// [`LARGE_CACHE_BELOW`].
    pub fn share(&self, held: f64) -> f64 {
        match (self.policy, self.cache_share) {
            (Policy::None, _) => 0.0,
            (_, Some(share)) => share,
            (_, None) if held >= LARGE_CACHE_BELOW => 1.0 / 3.0,
            (_, None) => USUAL_CACHE_SHARE,
        }
    }
}
