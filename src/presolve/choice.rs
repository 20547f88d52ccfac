//! When presolve pays.
//!
//! It costs 8 to 24 ns per entry, once, and two passes over the input for the certificate. It saves, per
//! entry and pass of a solver, what the smaller and denser weight vector saves in cache misses. Dual
//! coordinate descent, hinge, C = 1, one core:
//!
//! | set | columns | left | entries left | ms presolve | ns saved per entry, pass | passes that pay for it |
//! |---|---|---|---|---|---|---|
//! | imdb | 1,513,832 | 450,698 | 88 % | 151 | 1.30 | 13 |
//! | phishing_urls | 832,282 | 259,887 | 80 % | 250 | 0.70 | 34 |
//! | 20news | 130,107 | 56,055 | 95 % | 18 | 0.45 | 25 |
//! | sector | 55,197 | 35,889 | 98 % | 9 | 0.05 | 180 |
//! | flights | 17,699 | 17,659 | 93 % | 83 | 0.13 | 75 |
//! | mnist | 784 | 714 | 100 % | 72 | 0.17 | 47 |
//!
//! Below some 40,000 columns the weights are in the second-level cache anyway. Above, the saving grows with
//! the logarithm of the number of columns. With `p` passes expected of each of `k` binary problems,
//! [`Mode::Auto`] wants `p log2(columns / 40,000) >= 15 + 135 / k`: the first term for the certificate of
//! each problem, the second for the packing. From matrix to model, without and with presolve, seconds,
//! medians on a shared machine, and what the rule says:
//!
//! | fit | without | with | rule |
//! |---|---|---|---|
//! | imdb, hinge, C = 1 and 16 | 0.74, 4.2 | 0.67, 1.7 | yes, yes |
//! | imdb, squared hinge, C = 1 and 16 | 0.34, 0.66 | 0.37, 0.64 | no, no |
//! | imdb, logistic, C = 1 and 16 | 0.30, 0.50 | 0.46, 0.45 | no, no |
//! | phishing_urls, hinge, C = 1 and 16 | 0.89, 3.4 | 0.94, 2.5 | no, yes |
//! | phishing_urls, squared hinge, C = 1 and 16 | 0.25, 0.66 | 0.53, 0.83 | no, no |
//! | 20news, 20 classes, C = 1, squared hinge and hinge | 0.71, 1.59 | 0.66, 1.45 | yes, yes |
//! | sector, 105 classes, C = 1, squared hinge and hinge | 1.68, 4.1 | 1.90, 4.2 | no, no |
//!
//! A search makes many fits of one packing and asks for no certificates on the input: imdb, five folds, 19.7
//! s become 9.5 s (squared hinge) and 18.4 s become 10.2 s (logistic), 20news 1.67 s become 1.45 s and 2.53 s
//! become 2.20 s.
//!
//! Columns that are all equally frequent cannot be brought closer together, and do not merge unless they have
//! few entries each: a sample of rows tells. It is far below a thousandth of a fit.

use super::{Cancelled, Presolved, presolve};
use crate::Result;
use crate::matrix::csr::{CsrView, Structure};
use crate::matrix::layout::Layout;
use crate::matrix::{Index, Rows, Value};

/// Columns whose weights are fast to reach in any order.
const LEAST_COLUMNS: f64 = 40_000.0;
/// Passes times doublings that pay for the certificate of one problem on the input.
const CERTIFICATE: f64 = 15.0;
/// Passes times doublings, of all problems together, that pay for the packing.
const PACKING: f64 = 135.0;
/// Entries of the sample at most.
const SAMPLE: usize = 1 << 13;
/// Rows of the sample at most.
const SAMPLE_ROWS: usize = 64;
/// Share of the sample in columns that occur in it again, from which some columns are more frequent than
/// others. Even columns come to 0.185 at most; phishing_urls to 0.31, imdb 0.33, 20news 0.62, sector 0.71.
const LEAST_REPEATED: f64 = 0.2;
/// Entries per column below which many columns have so few that they merge.
const FEW_ENTRIES: usize = 4;

/// Whether to presolve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Where it pays.
    Auto {
        /// Passes that a solver is expected to take for one binary problem.
        passes: f64,
        /// Number of binary problems.
        n_problems: usize,
    },
    /// Wherever rows are sparse.
    On,
    /// Never.
    Off,
}

/// The packed form of `rows`, `None` if `mode` says no, or where there is none: dense rows have none, nor do
/// packed rows themselves.
///
/// # Errors
/// Those of [`presolve`].
pub fn pack(
    rows: &Layout<'_>,
    structure: &Structure,
    mode: Mode,
    cancelled: &Cancelled<'_>,
) -> Result<Option<Presolved>> {
    match rows {
        Layout::Csr32F32(rows) => pack_csr(rows, structure, mode, cancelled),
        Layout::Csr32F64(rows) => pack_csr(rows, structure, mode, cancelled),
        Layout::Csr64F32(rows) => pack_csr(rows, structure, mode, cancelled),
        Layout::Csr64F64(rows) => pack_csr(rows, structure, mode, cancelled),
        Layout::DenseF32(_) | Layout::DenseF64(_) | Layout::Scaled(_) => Ok(None),
    }
}

fn pack_csr<I: Index, V: Value>(
    rows: &CsrView<'_, I, V>,
    structure: &Structure,
    mode: Mode,
    cancelled: &Cancelled<'_>,
) -> Result<Option<Presolved>> {
    let is_wanted = match mode {
        Mode::On => true,
        Mode::Off => false,
        Mode::Auto { passes, n_problems } => pays(rows, passes, n_problems),
    };
    if is_wanted { presolve(rows, structure, cancelled) } else { Ok(None) }
}

fn pays<I: Index, V: Value>(rows: &CsrView<'_, I, V>, passes: f64, n_problems: usize) -> bool {
    let doublings = (rows.n_cols() as f64 / LEAST_COLUMNS).log2();
    doublings > 0.0 && passes * doublings >= CERTIFICATE + PACKING / n_problems as f64 && {
        let (_, indices, _) = rows.arrays();
        indices.len() / FEW_ENTRIES < rows.n_cols() || repeated_share(rows) >= LEAST_REPEATED
    }
}

/// Share of a sample's entries whose column has another entry in the sample.
fn repeated_share<I: Index, V: Value>(rows: &CsrView<'_, I, V>) -> f64 {
    let (indptr, indices, _) = rows.arrays();
    let mut sample = Vec::with_capacity(SAMPLE);
    for row in (0..rows.n_rows()).step_by(rows.n_rows().div_ceil(SAMPLE_ROWS).max(1)) {
        let entries = &indices[indptr[row] as usize..indptr[row + 1] as usize];
        sample.extend(entries.iter().take(SAMPLE - sample.len()).map(|j| j.to_usize()));
    }
    sample.sort_unstable();
    let repeated: usize = sample.chunk_by(|a, b| a == b).map(<[usize]>::len).filter(|len| *len > 1).sum();
    repeated as f64 / sample.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n` rows of `len` entries in `n_cols` columns; `power` above 1 favours low columns.
    fn decide(n: usize, len: usize, n_cols: usize, power: f64, passes: f64) -> bool {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let (mut indptr, mut indices) = (vec![0i64], Vec::new());
        for _ in 0..n {
            let mut row: Vec<i32> = (0..len).map(|_| (random().powf(power) * n_cols as f64) as i32).collect();
            row.sort_unstable();
            row.dedup();
            indices.extend(row);
            indptr.push(indices.len() as i64);
        }
        let values = vec![1.0f32; indices.len()];
        pays(&CsrView::new(&indptr, &indices, &values, n_cols).unwrap().0, passes, 1)
    }

    #[test]
    fn auto_wants_many_columns_many_passes_and_uneven_columns() {
        assert!(decide(5000, 80, 60_000, 4.0, 1e9));
        assert!(!decide(5000, 80, 39_000, 4.0, 1e9), "few columns");
        assert!(!decide(5000, 80, 60_000, 4.0, 20.0), "few passes");
        assert!(!decide(8000, 80, 90_000, 1.0, 1e9), "even columns");
        assert!(decide(800, 80, 90_000, 1.0, 1e9), "even columns of few entries");
    }
}
