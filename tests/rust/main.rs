//! Integration tests of the crate, no Python involved: every fast path against a slow, obvious twin.
#![allow(clippy::unwrap_used)] // a panic is how a test fails

mod naive;
mod outofcore;
mod outofcore_crammer_singer;
mod path;
mod presolve;
mod search;
mod solvers;
mod store;
mod store_search;
mod stream;
