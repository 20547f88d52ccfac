//! Training on a block store that is larger than the memory given: selective block minimisation (ChangRoth11), whose special
//! case without a cache is block minimisation (Yu10).
//!
//! The dual variables of all rows and the weights `w = sum_i y_i a_i x_i` stay in memory; rows come and go. One step loads a block
//! and runs some epochs of dual coordinate descent over it and the rows cached from before; then the rows that matter most
//! are chosen as the next cache. Every step raises the dual value of the *whole* problem, so the descent ends at its optimum,
//! whatever is cached; the cache decides how fast.
//!
//! ```text
//!   arena   | cached rows | block k             |     epochs over both (dual::epoch, as in memory)
//!           | cached rows | . . . . . . . . . . |     score all rows, keep the best, move them down in place
//!           | cached rows | <- decode block k+1 |     beside one more epoch over the cached rows
//!   thread    reads block k+2 from disk, compressed
//! ```
//!
//! * [`budget`]: what fits into how many bytes: groups of problems, arena, blocks of pages;
//! * [`task`]: one binary problem: its costs, its state, and the steps of a solver on the rows at hand;
//! * [`resident`]: the rows at hand; [`choice`]: which of them stay;
//! * [`fetch`]: stored bytes of blocks, read ahead or kept;
//! * [`scan`]: one reading of all rows: certificates and decision values;
//! * [`descent`]: the loop; [`trainer`]: all problems, group by group; [`checkpoint`]: the state as a file;
//! * [`search`], [`route`]: the search for `C` of [`crate::select`], all folds in one reading;
//! * [`stream`]: learning from rows that are seen once.
//!
//! **Certificate.** Losses gathered while blocks are loaded (each at the weights of that moment) tell when it is worth the
//! while to compute the exact gap by a scan; only a scan ends the descent.
//!
//! **Same bits.** Rows are visited in an order that is drawn from the seed, the pass, the step and the problem, over the rows
//! at hand in the order of the file; sums have fixed pieces. Neither threads nor the speed of the disk change the result, and
//! a descent resumed from a checkpoint ends with the bits of one that was never stopped.
//!
//! Deviation: ChangRoth11 (section 2.2) keep the trainer busy with the cache for as long as the disk is slow, which makes the result
//! depend on the disk; here it is one epoch over the cached rows while the next block is decoded, every time.

pub mod budget;
pub mod checkpoint;
pub mod choice;
pub mod descent;
pub mod fetch;
pub mod resident;
pub mod route;
pub mod scan;
pub mod search;
pub mod stream;
pub mod task;
pub mod trainer;

pub use choice::Policy;
pub use task::Task;
pub use trainer::{Outcome, fit};

use crate::loss::LossKind;
use crate::solver::Intercept;
use crate::{Error, Result};

/// Epochs over the rows at hand per loaded block. ChangRoth11 use 3 and 10.
pub const DEFAULT_ROUNDS: usize = 10;
/// Share of the arena for cached rows, the paper's SBM-1/2.
pub const DEFAULT_CACHE_SHARE: f64 = 0.5;

/// How to train.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
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
    /// Their share of the arena.
    pub cache_share: f64,
    /// Epochs per loaded block.
    pub rounds: usize,
    /// Largest minus smallest projected gradient at which the epochs on a block end early; 0 for never.
    pub round_tol: f64,
    /// Whether the stored bytes stay in memory where they fit.
    pub keeps_stored: bool,
}

impl Settings {
    /// Checks the numbers.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self) -> Result<()> {
        let refuse = |name, value: String, rule| Err(Error::Parameter { name, value, rule });
        if !(0.0..=0.9).contains(&self.cache_share) {
            return refuse("cache_share", self.cache_share.to_string(), "a number from 0 to 0.9");
        }
        if self.rounds == 0 {
            return refuse("rounds", self.rounds.to_string(), "an integer of at least 1");
        }
        if !(self.round_tol >= 0.0 && self.round_tol.is_finite()) {
            return refuse("round_tol", self.round_tol.to_string(), "a finite number of at least 0");
        }
        Ok(())
    }

    /// The share of the arena that cached rows may take.
    pub fn share(&self) -> f64 {
        if self.policy == Policy::None { 0.0 } else { self.cache_share }
    }
}
