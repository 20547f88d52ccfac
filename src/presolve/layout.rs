//! Where each column goes: frequent columns first, columns of one row last.
//!
//! ```text
//!     packed column   0 .. n_shared                      n_shared .. n_columns
//!                     columns of two rows or more        one column for each row that has columns of its own
//! ```
//!
//! Shared columns are ordered by falling frequency in steps of powers of two, and within a step by their
//! first row: columns that are rare together are met together, so that the weights of a row's rare columns
//! share cache lines too. Ties end with the column's number.

use super::proportional::Class;
use super::survey::Column;
use crate::memory;

/// A column without entries, or merged into another.
pub const NOWHERE: u32 = u32::MAX;
/// A column of one row.
pub const ALONE: u32 = u32::MAX - 1;
/// Marks the representative of a class, whose values are scaled.
pub const SCALED: u32 = 1 << 31;
/// Largest number of packed columns.
pub const MAX_COLUMNS: usize = i32::MAX as usize - 1;

/// Where the entries of every column and row go.
pub struct PackedLayout {
    /// Per column: its packed column, possibly with [`SCALED`], or [`ALONE`], or [`NOWHERE`].
    pub packed_column: Vec<u32>,
    /// Factor of packed columns that are marked as scaled.
    pub factor: Vec<f64>,
    /// Per row, the packed column of its own columns; [`NOWHERE`] if it has none.
    pub own: Vec<u32>,
    /// Number of packed columns.
    pub n_columns: usize,
    /// Columns of one row that share their packed column with others of that row.
    pub merged_alone: usize,
    /// Entries per packed row.
    pub row_len: Vec<u32>,
}

/// Makes the layout; `None` if there are more packed columns than a 4-byte index can name.
///
/// `row_len` are the entries per row without zeros, `removed` the entries per row of merged columns of more
/// than one row.
pub fn lay_out(
    columns: &[Column],
    classes: &[Class],
    mut row_len: Vec<u32>,
    removed: &[u32],
) -> Option<PackedLayout> {
    let mut packed_column = memory::filled(NOWHERE, columns.len());
    let mut is_merged = memory::zeros(if classes.is_empty() { 0 } else { columns.len() });
    for (column, _) in classes.iter().flat_map(|class| &class.members[1..]) {
        is_merged[*column as usize] = true;
    }
    let keeps = |j: usize| !is_merged.get(j).copied().unwrap_or(false);
    let order = order(columns, row_len.len(), keeps);
    let n_shared = order.len();
    if n_shared + row_len.len() > MAX_COLUMNS {
        return None;
    }
    for (packed, j) in order.iter().enumerate() {
        packed_column[*j as usize] = packed as u32;
    }
    let mut factor = memory::zeros(if classes.is_empty() { 0 } else { n_shared });
    for class in classes {
        let packed = &mut packed_column[class.representative() as usize];
        factor[*packed as usize] = class.factor();
        *packed |= SCALED;
    }
    let mut alone = memory::zeros::<u32>(row_len.len());
    for (j, column) in columns.iter().enumerate().filter(|(_, c)| c.count == 1) {
        packed_column[j] = ALONE;
        alone[column.first_row as usize] += 1;
    }
    let (mut own, mut n_columns, mut merged_alone) = (memory::filled(NOWHERE, row_len.len()), n_shared, 0);
    for (row, count) in alone.iter().enumerate() {
        row_len[row] -= removed[row];
        if *count > 0 {
            own[row] = n_columns as u32;
            n_columns += 1;
            merged_alone += *count as usize - 1;
            row_len[row] -= count - 1;
        }
    }
    Some(PackedLayout { packed_column, factor, own, n_columns, merged_alone, row_len })
}

/// The kept columns of two rows or more in their new order: a sort by counting, first by row, then by power
/// of two.
fn order(columns: &[Column], n_rows: usize, keeps: impl Fn(usize) -> bool) -> Vec<u32> {
    let shared = || columns.iter().enumerate().filter(|(j, c)| c.count > 1 && keeps(*j));
    let (mut in_row, mut in_step) = (memory::zeros::<u32>(n_rows), [0u32; STEPS]);
    for (_, column) in shared() {
        in_row[column.first_row as usize] += 1;
        in_step[step(column)] += 1;
    }
    let n_shared = starts(&mut in_row);
    starts(&mut in_step);
    let mut by_row = memory::filled((0u32, 0u8), n_shared);
    for (j, column) in shared() {
        let at = &mut in_row[column.first_row as usize];
        by_row[*at as usize] = (j as u32, step(column) as u8);
        *at += 1;
    }
    let mut order = memory::zeros(n_shared);
    for (j, step) in by_row {
        let at = &mut in_step[step as usize];
        order[*at as usize] = j;
        *at += 1;
    }
    order
}

/// Number of the powers of two that a count can have.
const STEPS: usize = 32;

/// Rises as the power of two of the count falls.
fn step(column: &Column) -> usize {
    column.count.leading_zeros() as usize
}

/// Turns counts into the positions where each begins; returns their sum.
pub fn starts(counts: &mut [u32]) -> usize {
    let mut sum = 0;
    for count in counts {
        sum += std::mem::replace(count, sum);
    }
    sum as usize
}
