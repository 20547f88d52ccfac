//! Training on a block store that is larger than the memory given: selective block minimisation
//! (ChangRoth11), whose special case without a cache is block minimisation (Yu10).
//!
//! The dual variables of all rows and the weights `w = sum_i y_i a_i x_i` stay in memory; rows come and
//! go. One step loads a block and runs some epochs of dual coordinate descent over it and the rows cached
//! from before; then the rows whose dual variables are most likely to change are chosen as the next cache.
//! Every step raises the dual value of the *whole* problem, so the descent ends at its optimum, whatever
//! is cached; the cache decides how fast.
//!
//! ```text
//!   arena   | cached rows | block k             |     epochs over both (dual::epoch, as in memory)
//!           | cached rows | . . . . . . . . . . |     score all rows, keep the best, move them down in place
//!           | cached rows | <- decode block k+1 |     beside one more epoch over the cached rows
//!   thread    reads block k+2 from disk, compressed
//! ```
//!
//! From the bottom up; each module uses those above it only:
//!
//! * [`choice`]: which of the rows in memory stay there (the rows themselves are in [`crate::source`]);
//!   [`settings`]: how to train; [`duals`], [`class_duals`]: dual variables in a file, where memory is
//!   short; [`budget`]: how the bytes are divided: groups of problems, rows in memory, blocks of pages;
//! * [`task`]: the costs of one binary problem; [`problem`]: the trait of all that can be trained on blocks;
//! * [`scan`]: one reading of all rows; [`sums`], [`gap`]: dual value and certificate from sums over rows;
//! * [`state`], [`certify`], [`binary`]: binary problems: state, certificates, steps; [`crammer_singer`]: all
//!   classes at once;
//! * [`softmax_rows`], [`softmax`], [`multinomial`]: multinomial logistic regression, by Newton's method in
//!   the primal: readings of all blocks, and no dual variables;
//! * [`outcome`]: what a training returns; [`checkpoint`]: the state of a descent as a file;
//! * [`descent`]: the loop; [`trainer`]: all problems, group by group;
//! * [`route`], [`search`]: the search for `C` of [`crate::search`], all folds in one reading;
//!   [`softmax_search`]: of multinomial fits, fold by fold;
//! * [`subgradient`]: Pegasos block by block, another method for comparison.
//!
//! **Certificate.** Losses gathered while blocks are loaded (each at the weights of that moment) tell when it
//! is worthwhile to compute the exact gap by a scan; only a scan ends the descent.
//!
//! **Same bits.** Rows are visited in an order that is drawn from the seed, the pass, the step and the
//! problem, over the rows in memory in the order of the file; sums have fixed pieces. Neither threads nor the
//! speed of the disk change the result, and a descent resumed from a checkpoint ends with the bits of one
//! that was never stopped.
//!
//! **A slow disk.** The next block is read while the trainer is at the `rounds` epochs over this one, and
//! decoded beside one more epoch over the cached rows. Where the disk is slower than that, [`Waiting::Train`]
//! goes on with epochs over the cached rows until the block is there (not in ChangRoth11, where a block is
//! read between two steps): never idle, but how many epochs these are depends on the disk, and with them the
//! last digits of the result.
//! [`Waiting::Rest`], the default, waits, and keeps the bits.

pub mod binary;
pub mod budget;
pub mod certify;
pub mod checkpoint;
pub mod choice;
pub mod class_duals;
pub mod crammer_singer;
pub mod descent;
pub mod duals;
pub mod gap;
pub mod multinomial;
pub mod outcome;
pub mod problem;
pub mod route;
pub mod scan;
pub mod search;
pub mod settings;
pub mod softmax;
pub mod softmax_rows;
pub mod softmax_search;
pub mod state;
pub mod subgradient;
pub mod sums;
pub mod task;
pub mod trainer;

pub use crate::source::mapped::StoreMap;
pub use choice::Policy;
pub use multinomial::fit_multinomial;
pub use outcome::{AllClassesOutcome, BlockOutcome};
pub use settings::{BlockSettings, DEFAULT_ROUNDS, DualsIn, Waiting};
pub use task::BinaryTask;
pub use trainer::{fit, fit_crammer_singer};
