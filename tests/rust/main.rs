//! Integration tests of the crate, no Python involved: every fast path against a slow, obvious twin.

mod naive;
mod search;
mod solvers;
