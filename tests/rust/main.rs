//! Integration tests of the crate, no Python involved: every fast path against a slow, obvious twin.
#![allow(clippy::unwrap_used)] // a panic is how a test fails

mod blocks;
mod blocks_crammer_singer;
mod cost_plane;
mod naive;
mod online;
mod presolve;
mod search;
mod solvers;
mod store;
mod store_search;
mod store_shards;
