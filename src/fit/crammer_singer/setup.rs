//! A problem as the solver sees it: free of the layout of its rows.

use super::kernels::ClassRows;
use super::weights::LINE;
use crate::fit::monitor::Monitor;
use crate::fit::problem::Intercept;
use crate::fit::routes::{LEAST_READ, LEAST_SAVED};

/// Steps between two polls of the cancel flag.
pub const POLL_STEPS: usize = 512;

/// A problem, free of the layout of its rows.
#[derive(Clone, Copy)]
pub struct ClassSetup<'a> {
    /// Rows, a constant column included.
    pub rows: &'a dyn ClassRows,
    /// Rows as they are.
    pub plain: &'a dyn ClassRows,
    /// Height of the constant column.
    pub bias: f64,
    /// Class per row.
    pub class: &'a [u32],
    /// Number of classes.
    pub n_classes: usize,
    /// Cost per row.
    pub cost: &'a [f64],
    /// Treatment of the intercepts.
    pub intercept: Intercept,
    /// Progress and cancelling.
    pub monitor: &'a dyn Monitor,
}

impl ClassSetup<'_> {
    /// Number of threads, `threads` at most, among which it pays to divide the classes.
    pub(super) fn worthwhile(&self, threads: usize) -> usize {
        let lines = self.n_classes.div_ceil(LINE);
        let read = self.rows.n_entries() * lines;
        let per_line = self.rows.n_entries() / self.class.len().max(1);
        let pays = |n: &usize| (lines - lines.div_ceil(*n)) * per_line >= LEAST_SAVED && read >= LEAST_READ;
        (2..=threads.min(lines)).rev().find(pays).unwrap_or(1)
    }
}
