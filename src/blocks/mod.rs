//! Training on a block store that is larger than the memory given: selective block minimisation
//! (ChangRoth11), whose special case without a cache is block minimisation (Yu10).
//!
//! The dual variables of all rows and the weights `w = sum_i y_i a_i x_i` stay in memory; rows come and go.
//! One step loads a block and runs some epochs of dual coordinate descent over it and the rows cached from
//! before; then the rows that matter most are chosen as the next cache. Every step raises the dual value of
//! the *whole* problem, so the descent ends at its optimum, whatever is cached; the cache decides how fast.
//!
//! ```text
//!   arena   | cached rows | block k             |     epochs over both (dual::epoch, as in memory)
//!           | cached rows | . . . . . . . . . . |     score all rows, keep the best, move them down in place
//!           | cached rows | <- decode block k+1 |     beside one more epoch over the cached rows
//!   thread    reads block k+2 from disk, compressed
//! ```
//!
//! * [`budget`]: what fits into how many bytes: groups of problems, arena, blocks of pages;
//! * [`problem`]: what the loop asks of a problem; [`task`]: a binary one: its costs, its state, and the
//!   steps of a solver on the rows at hand; [`duals`]: its dual variables as a file, where memory is short;
//!   [`crammer_singer`]: all classes at once;
//! * [`choice`]: which of the rows at hand stay; those rows and their way into memory are [`crate::source`];
//! * [`scan`]: one reading of all rows: certificates and decision values;
//! * [`descent`]: the loop; [`trainer`]: all problems, group by group; [`checkpoint`]: the state as a file;
//! * [`search`], [`route`]: the search for `C` of [`crate::search`], all folds in one reading;
//! * [`subgradient`]: Pegasos block by block, another method for comparison.
//!
//! **Certificate.** Losses gathered while blocks are loaded (each at the weights of that moment) tell when it
//! is worth the while to compute the exact gap by a scan; only a scan ends the descent.
//!
//! **Same bits.** Rows are visited in an order that is drawn from the seed, the pass, the step and the
//! problem, over the rows at hand in the order of the file; sums have fixed pieces. Neither threads nor the
//! speed of the disk change the result, and a descent resumed from a checkpoint ends with the bits of one
//! that was never stopped.
//!
//! **A slow disk.** The next block is read while the trainer is at the `rounds` epochs over this one, and
//! decoded beside one more epoch over the cached rows. Where the disk is slower than that, [`Waiting::Train`]
//! goes on with epochs over the cached rows until the block is there, as ChangRoth11 do (section 2.2): never
//! idle, but how many epochs these are depends on the disk, and with them the last digits of the result.
//! [`Waiting::Rest`], the default, waits, and keeps the bits.

pub mod budget;
pub mod checkpoint;
pub mod choice;
pub mod crammer_singer;
pub mod descent;
pub mod duals;
pub mod problem;
pub mod route;
pub mod scan;
pub mod search;
pub mod subgradient;
pub mod task;
pub mod trainer;

pub use crate::source::mapped::StoreMap;
pub use choice::Policy;
pub use task::BinaryTask;
pub use trainer::{AllClassesOutcome, BlockOutcome, fit, fit_crammer_singer};

use crate::fit::Intercept;
use crate::loss::LossKind;
use crate::store::columns;
use crate::store::reader::Store;
use crate::{Error, Result, memory};

/// Epochs over the rows at hand per loaded block. ChangRoth11 use 3 and 10.
pub const DEFAULT_ROUNDS: usize = 10;
/// Share of the arena for cached rows where nothing is known of the rows, the paper's SBM-1/2.
pub const USUAL_CACHE_SHARE: f64 = 0.5;

/// Part of the rows in memory from which a smaller cache does.
pub const LARGE_CACHE_BELOW: f64 = 0.1;

/// What to do while the disk is slower than the trainer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Wait: the same bits whatever the disk.
    Rest,
    /// Epochs over the cached rows: never idle, results depend on the disk within the tolerance.
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
