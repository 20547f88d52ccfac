//! Fits whose rows are somewhere else, in shards: other processes, other machines.
//!
//! ```text
//! client   Newton, line search, certificate: vectors of columns          fit, start, points, proof, remote
//!              |  request: operations for all shards (wire)                ^  sums, added in a fixed order
//!              v                                                           |
//! shards   decision values, slopes, curvatures, duals: vectors of rows   shard, duals, start
//! ```
//!
//! Nothing of Newton is written twice: [`remote::Remote`] answers what [`crate::fit::newton`] asks of rows by
//! asking the shards, and [`shard::Shard`] has the rows' state of a fit in memory and asks that. How requests
//! travel is the caller's affair ([`exchange::Exchange`]). The order in which the answers of the shards are
//! added is his, too: if it depends on the shards alone, so do the bits of the result.
//!
//! A fit of a smooth loss begins with what each shard finds alone ([`start`]) and ends by dual points beside
//! the slopes ([`points`]), for which each shard descends on its own rows.
//!
//! Where columns are many more than rows, such a fit ascends in the dual instead, each shard on its own rows
//! (`ascent`), and Newton is there for what that leaves.
//!
//! Of columns that are proportional in all rows one travels ([`merge`]), where columns are many; shards
//! number theirs in an order of their own ([`columns`]).
//!
//! [`search::search`] is the search for `C` of [`crate::search`] on shards: the lanes of a group are those of
//! the same sums, and the decision values of held-out rows come to the client.
//!
//! A shard is a matrix in memory, or a block store of which pieces take turns there ([`pieces`]). Where the
//! store is this process's own, so that nothing travels, that is Newton's method for a store that is larger
//! than memory ([`alone`]).
//!
//! With [`checkpoint::Recorded`] between the two a fit survives the death of its client.
//!
//! Pieces of a store take turns in memory ([`pieces`]), and so does what is known of their rows ([`spill`]).
//!
//! A request is one round trip with a vector of the columns at most in each direction (times the lanes), and
//! where steps are factorised a triangle of them.

pub mod alone;
mod ascent;
pub mod checkpoint;
pub mod columns;
mod duals;
pub mod exchange;
pub mod fit;
pub mod merge;
pub mod pieces;
pub mod points;
pub mod proof;
pub mod remote;
pub mod search;
pub mod served;
pub mod shard;
pub mod spill;
pub mod start;
pub mod task;
mod track;
pub mod wire;

pub use fit::fit;
pub use search::{ShardSearch, search};
pub use task::ShardTask;

#[cfg(test)]
mod merge_tests;
#[cfg(test)]
mod tests;
