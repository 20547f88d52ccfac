//! What the loop over blocks and its checkpoint ask of a problem: [`super::binary`] answers for a binary one,
//! [`super::crammer_singer`] for all classes at once.

use std::path::PathBuf;

use super::settings::BlockSettings;
use super::task::RowFolds;
use crate::Result;
use crate::fit::{Certificate, Intercept, Monitor, Status};
use crate::source::fetch::Kept;
use crate::source::resident::ResidentRows;
use crate::store::reader::Store;

/// What the steps on one set of rows need beside the rows.
#[derive(Clone, Copy)]
pub struct BlockStep<'a> {
    /// Settings of the descent.
    pub settings: &'a BlockSettings<'a>,
    /// The fold of each row, by its position in the store.
    pub folds: &'a RowFolds,
    /// Distinguishes the random orders of all steps.
    pub number: u64,
    /// Epochs.
    pub rounds: usize,
    /// Number of rows, the last ones in the arena, whose losses are to be gathered.
    pub n_new: usize,
}

/// What a certifying reading of all rows needs beside the problems.
#[derive(Clone, Copy)]
pub struct CertifyScan<'a> {
    /// The rows.
    pub store: &'a Store,
    /// Their stored bytes, where these are kept.
    pub source: &'a Kept<'a>,
    /// Settings of the descent.
    pub settings: &'a BlockSettings<'a>,
    /// The fold of each row, by its position in the store.
    pub folds: &'a RowFolds,
    /// Whether the decision values of all rows fit into the budget.
    pub has_room: bool,
    /// Cancelling.
    pub monitor: &'a dyn Monitor,
}

/// What a scan proves about one problem.
#[derive(Clone, Copy, Debug)]
pub struct Certified {
    /// Primal and dual value.
    pub certificate: Certificate,
    /// Intercept that belongs to the primal value, of a binary problem.
    pub intercept: f64,
}

/// How a problem ended.
#[derive(Clone, Copy, Debug)]
pub struct ProblemEnd {
    /// The proof.
    pub certified: Certified,
    /// How it ended.
    pub status: Status,
    /// Passes over the store.
    pub n_iter: usize,
    /// Readings of the store.
    pub loads: f64,
}

/// What the sizes of states follow from.
pub struct StateShape {
    /// Columns in use, or pairs of them.
    pub n_weights: usize,
    /// Whether there is a constant column.
    pub has_constant: bool,
    /// Rows.
    pub n_rows: usize,
    /// Classes.
    pub n_classes: usize,
    /// Where dual variables are in files.
    pub folder: Option<PathBuf>,
}

impl StateShape {
    /// Columns, a constant one included.
    pub fn n_columns(&self) -> usize {
        self.n_weights + usize::from(self.has_constant)
    }
}

/// Where a state is written.
pub trait StateOutput {
    /// Writes numbers.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    fn numbers(&mut self, numbers: &[f64]) -> Result<()>;
}

/// Where a state is read.
pub trait StateInput {
    /// The next `n` numbers.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    fn numbers(&mut self, n: usize) -> Result<Vec<f64>>;
}

/// A state that a checkpoint can have.
pub trait BlockState: Sized {
    /// What a checkpoint has of it.
    type Saved;

    /// Visits of rows so far.
    fn visits(&self) -> u64;

    /// Numbers that [`Self::write`] writes.
    fn size(&self) -> u64;

    /// Whether a state can have so many numbers.
    fn can_have(shape: &StateShape, size: u64) -> bool;

    /// Writes the state, visits not included.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    fn write(&self, out: &mut dyn StateOutput) -> Result<()>;

    /// Reads what [`Self::write`] has written; `None` where it makes no sense.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    fn read(
        shape: &StateShape,
        size: u64,
        visits: u64,
        input: &mut dyn StateInput,
    ) -> Result<Option<Self::Saved>>;
}

/// A problem with its state.
pub trait BlockProblem: BlockState + Send + Sync {
    /// Epochs over the rows in memory; whether any dual variable has changed.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`]; [`crate::Error::Io`] where dual variables are in a file.
    fn step(&mut self, rows: &ResidentRows<'_>, step: BlockStep<'_>, monitor: &dyn Monitor) -> Result<bool>;

    /// Lowers `out` to the score of each row in memory, which is small where the dual variable is likely to
    /// change ([`super::choice`]); rows that do not belong to the problem stay as they are.
    ///
    /// # Errors
    /// As for [`Self::step`].
    fn scores(&self, rows: &ResidentRows<'_>, step: BlockStep<'_>, out: &mut [f32]) -> Result<()>;

    /// Forgets the losses that were gathered in the pass before.
    fn begin_pass(&mut self);

    /// Value of the dual and estimate of the primal, from what was gathered in this pass.
    fn estimate(&self, intercept: Intercept) -> Certificate;

    /// Certifies several problems by one reading.
    ///
    /// # Errors
    /// Those of the store; [`crate::Error::Cancelled`] and [`crate::Error::Overflow`].
    fn certify(problems: &[&Self], scan: &CertifyScan<'_>) -> Result<Vec<Certified>>;

    /// Takes over a state.
    fn take(&mut self, saved: Self::Saved);
}
