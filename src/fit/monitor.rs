//! What a caller sees of running work, and how it stops it.

use crate::{Error, Result};

/// How far a fit or a search has come: one line of progress.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Name of the running solver.
    pub solver: &'static str,
    /// Epochs or steps so far.
    pub iteration: usize,
    /// Accuracy so far: relative duality gap (fits) or gradient norm relative to its limit (search).
    pub accuracy: f64,
    /// How far the search around it is; `None` outside of one.
    pub search: Option<SearchProgress>,
}

/// How far a search has come at one value of `C`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchProgress {
    /// The value.
    pub c: f64,
    /// Binary problems of folds that are not solved yet.
    pub lanes_left: usize,
    /// Readings of the training parts so far.
    pub passes: f64,
}

/// How far a descent over a store has come: what [`Progress`] is for a fit in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Name of the running solver.
    pub solver: &'static str,
    /// Passes over the store, with the finished share of the one under way.
    pub passes: f64,
    /// Rows loaded so far.
    pub rows: u64,
    /// Bytes read from the file so far.
    pub bytes: u64,
    /// Relative duality gap after the last whole pass, an estimate between scans; infinite before.
    pub gap: f64,
}

/// The caller's side of running work: asks it to stop, sees its progress, has the clock. Shared by parallel
/// tasks.
pub trait Monitor: Sync {
    /// Whether to stop; polled several times a second.
    fn cancelled(&self) -> bool;
    /// Whether the reason to stop is a time limit, so that what is finished counts.
    fn is_overdue(&self) -> bool {
        false
    }
    /// Seconds since the caller's work began; 0 for a caller without a clock. Only reported, no result
    /// depends on it.
    fn seconds(&self) -> f64 {
        0.0
    }
    /// Receives progress.
    fn observe(&self, _: &Progress) {}
    /// Receives the progress of a descent over a store.
    fn observe_reading(&self, _: &Reading) {}

    /// [`Error::Cancelled`] if the caller asked to stop.
    fn poll(&self) -> Result<()> {
        if self.cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// A monitor that never stops anything.
pub struct Silent;

impl Monitor for Silent {
    fn cancelled(&self) -> bool {
        false
    }
}
