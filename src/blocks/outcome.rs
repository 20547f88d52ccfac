//! The results of a training: one per binary problem, or one of all classes.

use crate::fit::crammer_singer::weights::ClassWeights;
use crate::fit::{Certificate, Status};

/// What became of one problem.
#[derive(Clone, Debug)]
pub struct BlockOutcome {
    /// Weights by column of the input, or by pair of them.
    pub w: Vec<f64>,
    /// Intercept.
    pub intercept: f64,
    /// Proof of quality.
    pub certificate: Certificate,
    /// How the descent ended.
    pub status: Status,
    /// Passes over the store in which the problem took part, scans not counted.
    pub n_iter: usize,
    /// Readings of the whole data: visits of rows and scans.
    pub passes: f64,
    /// Readings of the store: the blocks loaded, and the scans.
    pub loads: f64,
}

/// What became of all classes at once.
#[derive(Clone, Debug)]
pub struct AllClassesOutcome {
    /// Weights by column of the store: [`crate::store::reader::Store::old_columns`] tells those of the input.
    pub weights: ClassWeights,
    /// Intercepts.
    pub intercepts: Vec<f64>,
    /// As of [`BlockOutcome`].
    pub certificate: Certificate,
    /// As of [`BlockOutcome`].
    pub status: Status,
    /// As of [`BlockOutcome`].
    pub n_iter: usize,
    /// As of [`BlockOutcome`].
    pub passes: f64,
    /// As of [`BlockOutcome`].
    pub loads: f64,
}
