//! The one error type of the crate.
//!
//! Every variant carries data, the sentence is made in `Display`: lower case, the offending value in it, and
//! what would be accepted. Not converging is a [`crate::fit::Status`], never an error.

use std::path::PathBuf;

/// What every fallible function of the crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside its allowed range.
    #[error("{name} must be {rule}, got {value}")]
    Parameter {
        /// Name as the caller knows it.
        name: &'static str,
        /// The value that was given.
        value: String,
        /// What would be accepted.
        rule: &'static str,
    },
    /// Two lengths that must agree do not.
    #[error("{what}: expected {expected}, got {found}")]
    Shape {
        /// Which length.
        what: &'static str,
        /// Length that would be accepted.
        expected: usize,
        /// Length that was given.
        found: usize,
    },
    /// One value of the input matrix is no finite number.
    #[error("Input X contains {name} in row {row}, column {column}: only finite numbers are accepted")]
    NotFinite {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// NaN or infinity.
        name: &'static str,
    },
    /// One entry of the input matrix is unusable.
    #[error("input X, row {row}, column {column}: {reason}")]
    Entry {
        /// Row, counted from 0.
        row: usize,
        /// Column, counted from 0.
        column: usize,
        /// What is wrong with the value, value included.
        reason: String,
    },
    /// The arrays of a sparse matrix do not describe a matrix.
    #[error("input X, row {row}: {reason}")]
    Structure {
        /// Row, counted from 0.
        row: usize,
        /// What is wrong, with the offending number.
        reason: String,
    },
    /// Labels or weights cannot make a classification problem.
    #[error("{reason}")]
    Labels {
        /// What is wrong, and what would be accepted.
        reason: String,
    },
    /// A feature that is given by its name has no column, or more than one.
    #[error("feature {name:?} {reason}")]
    Feature {
        /// The name.
        name: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A value of a table cannot be encoded.
    #[error("column {column:?}, row {row}: {reason}")]
    Cell {
        /// The column of the table.
        column: String,
        /// Row, counted from 0.
        row: usize,
        /// What is wrong with the value, value included.
        reason: String,
    },
    /// An encoder of tables cannot be made, or not used with a table.
    #[error("{reason}")]
    Encoder {
        /// What is wrong, and what would be accepted.
        reason: String,
    },
    /// A text file is malformed.
    #[error("{path}, line {line}, column {column}: {reason}")]
    Text {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: u64,
        /// Byte position in the line, counted from 1.
        column: u64,
        /// What is wrong, with the offending text.
        reason: String,
    },
    /// A file that is to be written would replace another one.
    #[error("{path}: {reason}")]
    Occupied {
        /// The file.
        path: PathBuf,
        /// What is there, and what would be accepted.
        reason: String,
    },
    /// A model cannot be said in a format.
    #[error("the model cannot be written as {format}: {reason}")]
    Inexpressible {
        /// The format, with an article.
        format: &'static str,
        /// What of the model, and what the format has instead.
        reason: String,
    },
    /// A search cannot go on from its journal.
    #[error("{path} cannot be resumed: {reason}")]
    Journal {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A file is no cost-plane file, or a damaged one.
    #[error("{path} is not an intact cost-plane file: {reason}")]
    PlaneFile {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file is no model file, a damaged one, or one of a newer format; or a model cannot be written as one.
    #[error("{path}, {field}: {reason}")]
    ModelFile {
        /// The file.
        path: PathBuf,
        /// The tensor or the part of the head that is wrong.
        field: String,
        /// What is wrong, with the offending number.
        reason: String,
    },
    /// A block store is damaged, cut short, or no block store.
    #[error("{path}: {reason} (at byte {offset})")]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where the damage was noticed.
        offset: u64,
        /// What is wrong, with the offending number.
        reason: String,
    },
    /// The system has no such amount of memory.
    #[error("cannot allocate {bytes} bytes")]
    Memory {
        /// The amount.
        bytes: usize,
    },
    /// A memory budget is too small for the task.
    #[error("memory_budget must be at least {needed} bytes for this task, got {budget}: {parts}")]
    Budget {
        /// The budget.
        budget: u64,
        /// The least that would be accepted.
        needed: u64,
        /// What needs it.
        parts: String,
    },
    /// The operating system refused, or a compressed file is damaged.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The operating system has no thread left.
    #[error("no thread could be started ({0}): ask for fewer")]
    Thread(std::io::Error),
    /// Some row holds a column twice; the caller sums such entries.
    #[error("input X holds a column twice in one row, such entries must be summed first")]
    Duplicates,
    /// The features are too large to compute with.
    #[error(
        "input X has a row of squared norm {squared_norm:.3e}, at most {limit:e} is accepted: \
         scale the features"
    )]
    Scale {
        /// Largest squared norm of a row.
        squared_norm: f64,
        /// What would be accepted.
        limit: f64,
    },
    /// The arithmetic left the range of double precision.
    #[error(
        "{what} is not finite: C times the weights of all rows is accepted up to about {limit:.0e} for rows \
         of a squared norm up to {max_squared_norm:.3e}; lower C or scale the features",
        limit = accepted_cost(*max_squared_norm)
    )]
    Overflow {
        /// Which quantity.
        what: &'static str,
        /// Largest squared norm of a row, the usual cause.
        max_squared_norm: f64,
    },
    /// A callback of the caller failed; the binding knows the original error.
    #[error("a callback failed: {reason}")]
    Callback {
        /// The callback's own message.
        reason: String,
    },
    /// A bound on the number of steps was reached, which exact arithmetic would not.
    #[error(
        "{what} did not end within {steps} steps: the data are degenerate beyond double precision, \
         scale the features"
    )]
    Stalled {
        /// Which procedure.
        what: &'static str,
        /// The bound.
        steps: usize,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

/// Sum of all costs up to which squares of gradients, each at most that sum times the longest row, stay far
/// inside double precision.
fn accepted_cost(max_squared_norm: f64) -> f64 {
    1e140 / max_squared_norm.sqrt().max(1.0)
}
