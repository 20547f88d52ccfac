//! Chunks of the text, each with its own part of the result, and how the parts become one matrix.
//!
//! A chunk has room for as many entries as it has colons. Colons of comments and queries leave room unused,
//! which is closed at the end by moving each chunk's entries to the left.

use std::ops::{Range, Sub};

use super::line::{Accepted, Cursor, Failure, TextValue};
use super::{IndexBase, Indices, ReadOptions, SvmlightData};
use crate::memory;
use crate::memory::{CollectLarge, Zero};
use crate::parallel;

/// What the lines of all rows have in common.
pub(super) struct LineFormat<'a> {
    pub(super) options: &'a ReadOptions,
    pub(super) accepted: Accepted,
    /// Whether rows have a query.
    pub(super) qid: bool,
}

/// Why a text or a chunk was not parsed to its end.
pub(super) enum ParseStop {
    Failed(Failure),
    Cancelled,
    /// An earlier chunk has stopped, so that this one no longer matters.
    Skipped,
    /// An index does not fit the integer type.
    TooNarrow,
    /// The base was to be found out, is 0, and makes the largest index too large.
    BaseIsZero,
}

impl From<Failure> for ParseStop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The integer types that indices are stored in.
pub(super) trait TextIndex:
    Zero + Ord + Send + From<u8> + Into<i64> + TryFrom<i64> + Sub<Output = Self>
{
    fn wrap(list: Vec<Self>) -> Indices;
}

impl TextIndex for i32 {
    fn wrap(list: Vec<Self>) -> Indices {
        Indices::Narrow(list)
    }
}

impl TextIndex for i64 {
    fn wrap(list: Vec<Self>) -> Indices {
        Indices::Wide(list)
    }
}

/// A part of the text, and its part of the result: room for as many entries as there are colons.
pub(super) struct Chunk<'a, V, I> {
    pub(super) range: Range<usize>,
    pub(super) indices: &'a mut [I],
    pub(super) values: &'a mut [V],
}

/// What is known of the rows of a chunk besides their entries.
#[derive(Default)]
pub(super) struct ChunkRows {
    labels: Vec<f64>,
    qids: Vec<i64>,
    /// Number of entries of the chunk up to the end of each row.
    ends: Vec<usize>,
    /// Smallest and largest index.
    pub(super) bounds: Option<(i64, i64)>,
}

impl ChunkRows {
    pub(super) fn n_entries(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }
}

impl<V: TextValue, I: TextIndex> Chunk<'_, V, I> {
    pub(super) fn push_line(
        &mut self,
        mut line: Cursor,
        rows: &mut ChunkRows,
        format: &LineFormat,
    ) -> Result<(), ParseStop> {
        if !line.skip_blanks() {
            return Ok(());
        }
        memory::push(&mut rows.labels, line.label()?);
        rows.qids.extend(line.qid(format.qid)?);
        let mut end = rows.n_entries();
        while line.skip_blanks() {
            let (index, value) = line.entry(&format.accepted)?;
            // There is room: each entry took a colon.
            self.indices[end] = I::try_from(index).map_err(|_| ParseStop::TooNarrow)?;
            self.values[end] = value;
            end += 1;
        }
        memory::push(&mut rows.ends, end);
        Ok(())
    }
}

pub(super) fn bounds<I: TextIndex>(indices: &[I]) -> Option<(i64, i64)> {
    let (smallest, largest) = (indices.iter().min()?, indices.iter().max()?);
    Some(((*smallest).into(), (*largest).into()))
}

/// Cuts a slice into neighbours of the given lengths.
pub(super) fn cut<'a, T>(mut whole: &'a mut [T], lengths: &[usize]) -> Vec<&'a mut [T]> {
    let mut parts = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (part, rest) = whole.split_at_mut(length);
        parts.push(part);
        whole = rest;
    }
    parts
}

/// Moves the entries of all chunks together: colons of comments and queries have left room behind them.
pub(super) fn close_gaps<T: Copy>(list: &mut Vec<T>, rooms: &[usize], rows: &[ChunkRows]) {
    let (mut from, mut to) = (0, 0);
    for (room, rows) in rooms.iter().zip(rows) {
        let used = rows.n_entries();
        if from != to {
            list.copy_within(from..from + used, to);
        }
        from += room;
        to += used;
    }
    list.truncate(to);
}

/// Puts everything together, with indices counted from 0.
pub(super) fn finish<V: TextValue, I: TextIndex>(
    mut indices: Vec<I>,
    values: Vec<V>,
    rows: Vec<ChunkRows>,
    options: &ReadOptions,
) -> Result<SvmlightData<V>, ParseStop> {
    let bounds = rows.iter().filter_map(|rows| rows.bounds);
    let bounds = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let base = resolve(options.base, bounds);
    let needed = bounds.map_or(0, |(_, largest)| (largest + 1 - i64::from(base)) as usize);
    let n_cols = options.n_features.unwrap_or(needed);
    if needed > n_cols {
        return Err(ParseStop::BaseIsZero);
    }
    if base > 0 {
        let count_from_0 = |index: &mut I| *index = *index - I::from(base);
        parallel::each_chunk(&mut indices, 1 << 16, |_, indices| indices.iter_mut().for_each(count_from_0));
    }
    let labels: Vec<f64> = rows.iter().flat_map(|rows| &rows.labels).copied().collect_large();
    if labels.is_empty() {
        let reason = "no rows; expected lines of label index:value ...".into();
        return Err(ParseStop::Failed(Failure { offset: 0, reason }));
    }
    let qid: Vec<i64> = rows.iter().flat_map(|rows| &rows.qids).copied().collect_large();
    Ok(SvmlightData {
        indptr: join_ends(&rows),
        indices: widen_for(I::wrap(indices), n_cols),
        values,
        n_cols,
        base: if base == 0 { IndexBase::Zero } else { IndexBase::One },
        labels,
        qid: (!qid.is_empty()).then_some(qid),
    })
}

/// The number of the first column, given the smallest and the largest index.
fn resolve(base: IndexBase, bounds: Option<(i64, i64)>) -> u8 {
    match (base, bounds) {
        (IndexBase::Zero, _) | (IndexBase::Auto, Some((0, _))) => 0,
        (IndexBase::One | IndexBase::Auto, _) => 1,
    }
}

fn join_ends(rows: &[ChunkRows]) -> Vec<i64> {
    let mut indptr = vec![0];
    let mut before = 0;
    for rows in rows {
        memory::extend(&mut indptr, rows.ends.iter().map(|end| (before + end) as i64));
        before += rows.n_entries();
    }
    indptr
}

/// Uses 64 bits if the counts of columns and entries ask for it, though all indices fit in 32.
fn widen_for(indices: Indices, n_cols: usize) -> Indices {
    match indices {
        Indices::Narrow(list) if n_cols.max(list.len()) > i32::MAX as usize => {
            Indices::Wide(list.into_iter().map(i64::from).collect_large())
        }
        fitting => fitting,
    }
}
