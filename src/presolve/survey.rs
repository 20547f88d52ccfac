//! First reading: how often each column occurs, in which rows, and where first.
//!
//! The set of a column's rows is hashed to the sum, modulo 2^64, of a random number per row. Columns that are
//! proportional occur in the same rows, so they always share a hash, whatever their scale, sign and rounding.
//! Sums and minima of integers do not depend on the order: every thread counts a part of the rows on its own,
//! and the bits are the same for any number.
//!
//! Tried: a random projection of the values instead (a sum of doubles). It needs fixed parts to be
//! reproducible and a tolerance to be compared, and separates what the comparison of the columns themselves
//! separates anyway.

use std::ops::Range;

use super::{Cancelled, Source, poll};
use crate::matrix::{Index, Value, kernels};
use crate::{Result, memory, parallel};

/// Entries between two checks of the cancel flag, roughly.
const POLL_ENTRIES: usize = 1 << 20;
/// A part of the rows must bring this many entries per column, or adding its records costs more than it
/// saves.
const ENTRIES_PER_COLUMN: usize = 2;
/// Records added per task.
const MERGE_CHUNK: usize = 1 << 16;

/// What is known of one column; entries of value zero do not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Hash of the set of its rows.
    pub rows_hash: u64,
    /// Number of its entries.
    pub count: u32,
    /// Its first row, [`u32::MAX`] if it is empty.
    pub first_row: u32,
}

const EMPTY: Column = Column { rows_hash: 0, count: 0, first_row: u32::MAX };

impl Column {
    #[inline(always)]
    fn add(&mut self, other: &Self) {
        self.rows_hash = self.rows_hash.wrapping_add(other.rows_hash);
        self.count += other.count;
        self.first_row = self.first_row.min(other.first_row);
    }
}

/// Reads the matrix once. Memory: 16 bytes per column and part, in all at most 8 bytes per entry beyond the
/// first part.
pub fn survey<I: Index, V: Value>(x: &Source<'_, I, V>, cancelled: &Cancelled<'_>) -> Result<Vec<Column>> {
    let most = x.nnz() / (ENTRIES_PER_COLUMN * x.n_cols).max(1);
    let parts = x.cut(rayon::current_num_threads().min(most).max(1));
    let mut counted: Vec<Vec<Column>> = parallel::try_map(parts, |_, rows| count(x, rows, cancelled))?;
    let mut all = counted.swap_remove(0);
    parallel::each_chunk(&mut all, MERGE_CHUNK, |start, all| {
        for other in &counted {
            for (column, more) in all.iter_mut().zip(&other[start..]) {
                column.add(more);
            }
        }
    });
    Ok(all)
}

fn count<I: Index, V: Value>(
    x: &Source<'_, I, V>,
    rows: Range<usize>,
    cancelled: &Cancelled<'_>,
) -> Result<Vec<Column>> {
    let mut columns = memory::filled(EMPTY, x.n_cols);
    let mut until_poll = 0;
    for row in rows {
        let entries = x.range(row);
        if entries.len() >= until_poll {
            poll(cancelled)?;
            until_poll = POLL_ENTRIES + entries.len();
        }
        until_poll -= entries.len();
        let one = Column { rows_hash: hash_of_row(row), count: 1, first_row: row as u32 };
        for k in entries {
            if let Some(next) = x.indices.get(k + kernels::ENTRIES_AHEAD) {
                kernels::prefetch(&columns, next.to_usize(), 1);
            }
            if x.values[k].to_f64() != 0.0 {
                columns[x.indices[k].to_usize()].add(&one);
            }
        }
    }
    Ok(columns)
}

/// A fixed random number per row (the finaliser of splitmix64).
fn hash_of_row(row: usize) -> u64 {
    let mut z = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
