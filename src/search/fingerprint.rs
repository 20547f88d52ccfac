//! What a search depends on, by name, so that a journal of another search is refused with a reason.
//!
//! Numbers of threads, verbosity, time limits and the path of the journal change no result and are not part
//! of it. The order of entries is that in which differences are reported: first the data.
//!
//! The matrix is hashed as row lengths, columns and values in double precision, in fixed chunks of rows in
//! parallel, so that the same entries have the same hash in any index and value type.

use rayon::prelude::*;
use twox_hash::XxHash3_64;

use super::{Fold, SearchData, SearchPlan, SearchSettings};
use crate::fit::Params;
use crate::labels::MultiClass;
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::penalty::{Penalty, PerColumn};

/// Rows per parallel chunk.
const CHUNK: usize = 2048;

/// Names and values, as text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fingerprint(Vec<(String, String)>);

impl Fingerprint {
    /// The fingerprint of a search; one pass over the data.
    pub fn of(task: &SearchData<'_>, settings: &SearchSettings, plan: &SearchPlan) -> Self {
        let data = [
            ("shape of X", format!("{} x {}", task.rows.n_rows(), task.rows.n_cols())),
            ("hash of X", hex(hash_rows(task.rows))),
            ("number of classes", task.labels.n_classes.to_string()),
            ("hash of y", hex(hash_bytes(task.labels.ids.iter().flat_map(|id| id.to_le_bytes())))),
            ("hash of sample_weight", hex(hash_bytes(task.weight.iter().flat_map(|v| v.to_le_bytes())))),
            ("number of folds", task.folds.len().to_string()),
            ("hash of cv", hex(hash_folds(task.folds))),
        ];
        let mut fingerprint = Self::with(&data, settings, plan);
        // Older journals are of the squared weights, and do not name it.
        fingerprint.0.extend(task.penalty.map(|penalty| ("penalty".to_owned(), describe(penalty))));
        fingerprint
    }

    /// The fingerprint of a search over data that are described by the entries.
    pub fn with(data: &[(&str, String)], settings: &SearchSettings, plan: &SearchPlan) -> Self {
        let SearchSettings { loss, intercept, params, multi_class } = settings;
        let Params { solver, tol, max_iter, seed } = params;
        let SearchPlan { values, refine, stop } = plan;
        let options = [
            ("loss", format!("{loss:?}")),
            ("intercept", format!("{intercept:?}")),
            ("solver", format!("{solver:?}")),
            ("tol", format!("{tol:?}")),
            ("max_iter", max_iter.to_string()),
            ("seed", seed.to_string()),
            ("the range of C", format!("{values:?}")),
            ("refine", refine.to_string()),
            ("stop", format!("{stop:?}")),
        ];
        // Journals that are older than the choice are of one class against the rest, and do not name it.
        let is_named = *multi_class != MultiClass::OneVsRest;
        let multi_class = is_named.then(|| ("multi_class", format!("{multi_class:?}")));
        Self::of_entries(data.iter().cloned().chain(options).chain(multi_class))
    }

    /// The entries, and the version.
    pub fn of_entries<'n>(data: impl IntoIterator<Item = (&'n str, String)>) -> Self {
        let version = ("version", env!("CARGO_PKG_VERSION").to_owned());
        let entries = std::iter::once(version).chain(data);
        Self(entries.map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// One `name = value` per line.
    pub fn to_text(&self) -> String {
        self.0.iter().map(|(name, value)| format!("{name} = {value}\n")).collect()
    }

    /// The first difference to the text of another fingerprint, as a sentence; `None` if there is none.
    pub fn difference(&self, text: &str) -> Option<String> {
        let there: Vec<_> = text.lines().map(|line| line.split_once(" = ").unwrap_or((line, ""))).collect();
        let differs = |(name, value): &&(String, String)| !there.contains(&(name.as_str(), value.as_str()));
        let Some((name, here)) = self.0.iter().find(differs) else {
            let is_known = |name: &str| self.0.iter().any(|(known, _)| known == name);
            return match there.iter().find(|(name, _)| !is_known(name)) {
                Some((name, value)) => Some(format!("{name} is {value} there and not given here")),
                None => (self.to_text() != text).then(|| "its entries are in another order".to_owned()),
            };
        };
        let there = there.iter().find(|(n, _)| n == name).map_or("missing", |(_, value)| value);
        Some(match name.strip_prefix("hash of ") {
            Some(what) => format!("{what} differs"),
            None => format!("{name} is {there} there and {here} here"),
        })
    }
}

fn describe(penalty: &Penalty) -> String {
    let Penalty { l1_ratio, factors, lower, upper } = penalty;
    let hash = |numbers: &PerColumn| match numbers {
        PerColumn::All(value) => format!("{value:?}"),
        PerColumn::Each(values) => hex(hash_bytes(values.iter().flat_map(|v| v.to_le_bytes()))),
    };
    format!("l1_ratio {l1_ratio:?}, factors {}, bounds {} {}", hash(factors), hash(lower), hash(upper))
}

/// A hash as text.
pub fn hex(hash: u64) -> String {
    format!("{hash:016x}")
}

/// A hash of bytes.
pub fn hash_bytes(bytes: impl Iterator<Item = u8>) -> u64 {
    XxHash3_64::oneshot(&bytes.collect_large())
}

/// A hash of the rows.
pub fn hash_rows(rows: &Matrix<'_>) -> u64 {
    hash_rows_as(rows, |column| column)
}

/// A hash of the rows with their columns under other numbers.
pub fn hash_rows_as(rows: &Matrix<'_>, number: impl Fn(usize) -> usize + Sync) -> u64 {
    let chunks = rows.n_rows().div_ceil(CHUNK);
    let hashes: Vec<u64> = (0..chunks)
        .into_par_iter()
        .map(|chunk| {
            let mut bytes = Vec::new();
            for i in chunk * CHUNK..((chunk + 1) * CHUNK).min(rows.n_rows()) {
                bytes.extend_from_slice(&(rows.row_len(i) as u64).to_le_bytes());
                rows.for_each(i, |column, value| {
                    bytes.extend_from_slice(&(number(column) as u64).to_le_bytes());
                    bytes.extend_from_slice(&value.to_le_bytes());
                });
            }
            XxHash3_64::oneshot(&bytes)
        })
        .collect();
    hash_bytes(hashes.into_iter().flat_map(u64::to_le_bytes))
}

/// A hash of the splits.
pub fn hash_folds(folds: &[Fold]) -> u64 {
    let parts = folds.iter().flat_map(|fold| [&fold.train, &fold.test]);
    let numbers =
        parts.flat_map(|rows| std::iter::once(rows.len() as u64).chain(rows.iter().map(|&i| u64::from(i))));
    hash_bytes(numbers.flat_map(u64::to_le_bytes))
}
