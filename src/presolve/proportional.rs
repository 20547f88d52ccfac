//! Which columns are proportional: candidates by their rows, then a comparison entry by entry.
//!
//! 1. Columns of two entries or more that share the hash of their rows are candidates. A bit table of the
//!    hashes seen once and twice keeps the many others out of the sort.
//! 2. The entries of the candidates are collected column by column, in batches of limited memory.
//! 3. Within a group the quotients `x_j[k] / x_j[0]` are compared for `k = 1, 2, ...`; a group splits where
//!    they differ. A column is compared only as long as others agree with it, so many columns of the same
//!    rows cost no more than their entries (times a sort), not the square of their number.
//! 4. What is left together is compared with one representative: the rows must be the same and all quotients
//!    of the two columns equal up to [`super::ROUNDING`].
//!
//! The representative is the column with the largest first entry (the lowest number among equals): scales are
//! at most one and factors between one and the root of the size of the group, so nothing overflows.

use std::cmp::Ordering;
use std::ops::Range;

use rayon::prelude::*;

use super::survey::Column;
use super::{CHUNK_ENTRIES, Cancelled, ROUNDING, Source, poll};
use crate::matrix::{Index, Value};
use crate::memory::CollectLarge;
use crate::{Result, memory, parallel};

/// Share of the entries that one batch of candidates may hold.
const BATCH_SHARE: usize = 2;
/// Least number of entries of a full batch.
const BATCH_ENTRIES: usize = 1 << 20;
/// Bits of the table per column, as a power of two.
const TABLE_BITS: u32 = 2;

/// Proportional columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// `(column, x_column / x_representative)`, the representative first.
    pub members: Vec<(u32, f64)>,
}

impl Class {
    /// The column whose entries are kept.
    pub fn representative(&self) -> u32 {
        self.members[0].0
    }

    /// Norm of all members together in units of the representative's.
    pub fn factor(&self) -> f64 {
        self.members.iter().map(|(_, scale)| scale * scale).sum::<f64>().sqrt()
    }
}

/// Groups of columns with the same rows, as far as hashes tell: ranges of `columns`.
struct Groups {
    columns: Vec<u32>,
    ranges: Vec<Range<usize>>,
}

/// All classes of two columns or more, and by how many entries each row shrinks if only representatives are
/// kept.
pub fn find<I: Index, V: Value>(
    x: &Source<'_, I, V>,
    columns: &[Column],
    cancelled: &Cancelled<'_>,
) -> Result<(Vec<Class>, Vec<u32>)> {
    let groups = group(columns);
    let mut removed = memory::zeros::<u32>(x.n_rows);
    let mut classes = Vec::new();
    let mut slots = Slots::new(if groups.ranges.is_empty() { 0 } else { x.n_cols });
    for batch in batches(&groups, columns, (x.nnz() / BATCH_SHARE).max(BATCH_ENTRIES)) {
        poll(cancelled)?;
        let members = &groups.columns[batch[0].start..batch[batch.len() - 1].end];
        let entries = Entries::collect(x, members, columns, &mut slots, cancelled)?;
        let origin = batch[0].start;
        let found: Vec<Vec<Class>> = parallel::map_each(batch, |_, range| {
            entries.classes(range.start - origin..range.end - origin, members)
        });
        for class in found.into_iter().flatten() {
            for (column, _) in &class.members[1..] {
                for row in entries.rows(slots.of(*column)) {
                    removed[*row as usize] += 1;
                }
            }
            memory::push(&mut classes, class);
        }
        slots.clear(members);
    }
    Ok((classes, removed))
}

fn group(columns: &[Column]) -> Groups {
    let bits = (columns.len().max(64) as u64).next_power_of_two() << TABLE_BITS;
    let (mut once, mut twice) =
        (memory::zeros::<u64>((bits / 64) as usize), memory::zeros::<u64>((bits / 64) as usize));
    let word_and_bit = |c: &Column| {
        let bit = c.rows_hash & (bits - 1);
        ((bit / 64) as usize, 1u64 << (bit % 64))
    };
    let repeated = columns.iter().filter(|c| c.count >= 2);
    repeated.for_each(|c| {
        let (word, bit) = word_and_bit(c);
        twice[word] |= once[word] & bit;
        once[word] |= bit;
    });
    let mut keyed: Vec<(u64, u32)> = (0..columns.len() as u32)
        .filter_map(|j| {
            let c = &columns[j as usize];
            let (word, bit) = word_and_bit(c);
            (c.count >= 2 && twice[word] & bit != 0).then_some((c.rows_hash, j))
        })
        .collect_large();
    keyed.par_sort_unstable();
    let mut groups = Groups { columns: Vec::new(), ranges: Vec::new() };
    for run in keyed.chunk_by(|a, b| a.0 == b.0 && columns[a.1 as usize].count == columns[b.1 as usize].count)
    {
        if run.len() > 1 {
            let start = groups.columns.len();
            memory::extend(&mut groups.columns, run.iter().map(|(_, j)| *j));
            memory::push(&mut groups.ranges, start..groups.columns.len());
        }
    }
    groups
}

/// Cuts the groups into runs of at most `limit` entries, or of one group.
fn batches<'g>(groups: &'g Groups, columns: &[Column], limit: usize) -> Vec<&'g [Range<usize>]> {
    let size =
        |range: &Range<usize>| range.len() * columns[groups.columns[range.start] as usize].count as usize;
    let (mut cut, mut start, mut entries) = (Vec::new(), 0, 0);
    for (g, range) in groups.ranges.iter().enumerate() {
        if g > start && entries + size(range) > limit {
            cut.push(&groups.ranges[start..g]);
            (start, entries) = (g, 0);
        }
        entries += size(range);
    }
    if start < groups.ranges.len() {
        cut.push(&groups.ranges[start..]);
    }
    cut
}

/// Positions of columns in a batch: a bit per column, which stays in cache while all entries pass, and the
/// position itself.
struct Slots {
    bits: Vec<u64>,
    slot: Vec<u32>,
}

impl Slots {
    fn new(n_cols: usize) -> Self {
        Self { bits: memory::zeros(n_cols.div_ceil(64)), slot: memory::zeros(n_cols) }
    }

    fn set(&mut self, members: &[u32]) {
        for (slot, j) in members.iter().enumerate() {
            self.bits[*j as usize / 64] |= 1 << (j % 64);
            self.slot[*j as usize] = slot as u32;
        }
    }

    fn clear(&mut self, members: &[u32]) {
        members.iter().for_each(|j| self.bits[*j as usize / 64] = 0);
    }

    #[inline(always)]
    fn has(&self, column: usize) -> bool {
        self.bits[column / 64] >> (column % 64) & 1 != 0
    }

    fn of(&self, column: u32) -> usize {
        self.slot[column as usize] as usize
    }
}

/// Entries of a batch, column by column in the order of rows.
struct Entries<V> {
    /// Of the quotients.
    spacing: f64,
    start: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<V>,
}

impl<V: Value> Entries<V> {
    /// Reads all indices once, and the values of the batch.
    fn collect<I: Index>(
        x: &Source<'_, I, V>,
        members: &[u32],
        columns: &[Column],
        slots: &mut Slots,
        cancelled: &Cancelled<'_>,
    ) -> Result<Self> {
        slots.set(members);
        let mut start = memory::with_capacity(members.len() + 1);
        start.push(0);
        for j in members {
            start.push(start[start.len() - 1] + columns[*j as usize].count as usize);
        }
        let total = start[members.len()];
        let (rows, values) = (memory::zeros(total), memory::zeros(total));
        let mut entries = Self { spacing: x.spacing, rows, values, start };
        let mut next = memory::copy(&entries.start);
        let slots = &*slots;
        let picked = parallel::try_map(x.cut(x.nnz() / CHUNK_ENTRIES + 1), |_, rows| {
            poll(cancelled)?;
            Ok(pick(x, rows, slots))
        })?;
        for (slot, row, value) in picked.into_iter().flatten() {
            let at = next[slot as usize];
            (entries.rows[at], entries.values[at]) = (row, value);
            next[slot as usize] += 1;
        }
        Ok(entries)
    }

    fn rows(&self, slot: usize) -> &[u32] {
        &self.rows[self.start[slot]..self.start[slot + 1]]
    }

    fn values(&self, slot: usize) -> &[V] {
        &self.values[self.start[slot]..self.start[slot + 1]]
    }

    /// The classes of one group of slots.
    fn classes(&self, group: Range<usize>, members: &[u32]) -> Vec<Class> {
        let mut classes = Vec::new();
        let mut work = vec![(group.collect::<Vec<usize>>(), 1)];
        while let Some((together, depth)) = work.pop() {
            if together.len() < 2 {
                continue;
            }
            match self.split(together, depth) {
                Ok(pieces) => work.extend(pieces),
                Err(together) => self.confirm(together, members, &mut classes),
            }
        }
        classes
    }

    /// Follows columns from entry `depth` on until they part; gives them back if they never do.
    fn split(
        &self,
        mut together: Vec<usize>,
        depth: usize,
    ) -> std::result::Result<Vec<(Vec<usize>, usize)>, Vec<usize>> {
        let len = together.iter().map(|s| self.values(*s).len()).min().unwrap_or(0);
        for k in depth..len {
            let first = self.quotient(together[0], k);
            if together.iter().all(|s| is_near(self.quotient(*s, k), first, self.apart() / 2.0)) {
                continue;
            }
            together.sort_by(|a, b| self.quotient(*a, k).total_cmp(&self.quotient(*b, k)).then(a.cmp(b)));
            let pieces = together
                .chunk_by(|a, b| is_near(self.quotient(*a, k), self.quotient(*b, k), self.apart()))
                .map(|piece| (piece.to_vec(), k + 1));
            return Ok(pieces.collect());
        }
        Err(together)
    }

    /// Quotients closer than this may belong to columns that [`Self::scale`] accepts: each has up to three
    /// roundings of its own.
    fn apart(&self) -> f64 {
        ROUNDING * self.spacing + 4.0 * f64::EPSILON
    }

    fn quotient(&self, slot: usize, k: usize) -> f64 {
        let values = self.values(slot);
        values[k].to_f64() / values[0].to_f64()
    }

    /// Compares columns that went together to the end with a representative, until all have one.
    fn confirm(&self, mut together: Vec<usize>, members: &[u32], classes: &mut Vec<Class>) {
        let size = |slot: usize| self.values(slot)[0].to_f64().abs();
        together.sort_by(|a, b| match size(*b).total_cmp(&size(*a)) {
            Ordering::Equal => members[*a].cmp(&members[*b]),
            unequal => unequal,
        });
        while together.len() > 1 {
            let representative = together[0];
            let mut class = vec![(members[representative], 1.0)];
            together.retain(|slot| {
                let scale = (*slot != representative).then(|| self.scale(*slot, representative)).flatten();
                class.extend(scale.map(|scale| (members[*slot], scale)));
                scale.is_none() && *slot != representative
            });
            if class.len() > 1 {
                classes.push(Class { members: class });
            }
        }
    }

    /// `s` with `x_slot = s x_representative` up to rounding, if there is one.
    fn scale(&self, slot: usize, representative: usize) -> Option<f64> {
        if self.rows(slot) != self.rows(representative) {
            return None;
        }
        let (a, b) = (self.values(slot), self.values(representative));
        let first = a[0].to_f64() / b[0].to_f64();
        let mut sum = 0.0;
        for (a, b) in a.iter().zip(b) {
            let quotient = a.to_f64() / b.to_f64();
            if !is_near(quotient, first, ROUNDING * self.spacing) {
                return None;
            }
            sum += quotient - first;
        }
        let scale = first + sum / a.len() as f64;
        (scale.is_finite() && scale != 0.0).then_some(scale)
    }
}

fn is_near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs()
}

fn pick<I: Index, V: Value>(x: &Source<'_, I, V>, rows: Range<usize>, slots: &Slots) -> Vec<(u32, u32, V)> {
    let mut picked = Vec::new();
    for row in rows {
        for k in x.range(row) {
            let j = x.indices[k].to_usize();
            if slots.has(j) && x.values[k].to_f64() != 0.0 {
                memory::push(&mut picked, (slots.slot[j], row as u32, x.values[k]));
            }
        }
    }
    picked
}
