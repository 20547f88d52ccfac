//! What a file says about itself, as JSON.
//!
//! Statistics are exact sums over the rows as stored; a reader compares what it can with the index and never
//! allocates by them.

use serde::{Deserialize, Serialize};

use super::format::{MAX_COLUMNS, PageEntry};
use crate::labels::classes::Classes;

/// The metadata of a store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// Version of the package that wrote the file.
    pub written_by: String,
    /// Number of rows.
    pub n_rows: u64,
    /// Number of columns.
    pub n_cols: usize,
    /// Columns after relabelling up to the last one that occurs: solvers need weights for these only.
    pub n_used: usize,
    /// Number of stored entries, all nonzero.
    pub nnz: u64,
    /// Number of blocks.
    pub n_blocks: u32,
    /// Seed by which rows were assigned to blocks.
    pub seed: u64,
    /// All values of each row are equal.
    pub is_uniform: bool,
    /// Some value is no float32.
    pub needs_f64: bool,
    /// Some row has a sample weight other than 1.
    pub has_weights: bool,
    /// The classes, in the order of their ids.
    pub classes: Classes,
    /// Rows of each class, by id.
    pub class_rows: Vec<u64>,
    /// Sum of the sample weights of each class, by id.
    pub class_weight: Vec<f64>,
    /// Names of the columns.
    pub feature_names: Option<Vec<String>>,
    /// Largest squared norm of a row.
    pub max_squared_norm: f64,
    /// Sum of the squared norms of all rows.
    pub sum_squared_norm: f64,
    /// Columns in the relabelling table; columns beyond it have kept their numbers.
    pub n_relabelled: usize,
    /// Where the rows came from.
    pub source: String,
    /// Checksum over all pages, in hexadecimal: two stores with equal ones hold the same rows.
    pub fingerprint: String,
}

impl Meta {
    /// The first contradiction within the metadata and to the index.
    pub fn contradiction(&self, pages: &[PageEntry]) -> Option<String> {
        let rows: u64 = pages.iter().map(|page| u64::from(page.n_rows)).sum();
        let nnz: u64 = pages.iter().map(|page| u64::from(page.nnz)).sum();
        let n_classes = self.classes.len();
        let lists = [self.class_rows.len(), self.class_weight.len()];
        let checks = [
            (rows == self.n_rows, format!("{} rows are claimed, the pages have {rows}", self.n_rows)),
            (nnz == self.nnz, format!("{} entries are claimed, the pages have {nnz}", self.nnz)),
            (self.n_rows > 0, "there are no rows".into()),
            (
                self.n_cols <= MAX_COLUMNS,
                format!("{} columns are claimed, {MAX_COLUMNS} are possible", self.n_cols),
            ),
            (self.n_used <= self.n_cols, format!("{} of {} columns are used", self.n_used, self.n_cols)),
            (self.n_relabelled <= self.n_cols, format!("{} columns are relabelled", self.n_relabelled)),
            (pages.iter().all(|page| page.block < self.n_blocks), "a page belongs to no block".into()),
            (lists == [n_classes; 2], format!("{n_classes} classes have statistics of {lists:?}")),
            (self.classes.sorted().is_some(), "the class labels repeat or are not finite".into()),
            (
                self.class_rows.iter().try_fold(0u64, |a, &b| a.checked_add(b)) == Some(self.n_rows),
                "class counts do not add up".into(),
            ),
            (
                self.feature_names.as_ref().is_none_or(|names| names.len() == self.n_cols),
                "feature names do not fit the number of columns".into(),
            ),
            (
                [self.max_squared_norm, self.sum_squared_norm]
                    .iter()
                    .chain(&self.class_weight)
                    .all(|x| x.is_finite() && *x >= 0.0),
                "a statistic is negative or not finite".into(),
            ),
        ];
        checks.into_iter().find(|(is_right, _)| !is_right).map(|(_, reason)| reason)
    }
}
