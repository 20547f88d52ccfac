//! Reader of svmlight / LIBSVM text, plain or compressed.
//!
//! ```text
//! file  = line *( "\n" line )           "\r" before "\n" and a byte-order mark at the start are skipped
//! line  = [ row ] [ "#" comment ]       lines without a row are skipped
//! row   = label [ "qid:" integer ] *( index ":" value )          separated by blanks and tabs
//! ```
//!
//! The text is cut at line ends into chunks of about `CHUNK_BYTES`, the chunks are parsed in the current
//! rayon pool, each into its own part of the result. Where the cuts lie depends on the text alone and nothing
//! is summed, so the result does not depend on the number of threads. Neither does an error: the first bad
//! token of the file is the one reported.
//!
//! Every decimal is rounded once, directly to its target type. What cannot be a finite number is refused,
//! never turned into infinity or cut short. Entries stay as written: explicit zeros, unsorted and repeated
//! indices are left to the caller. Lines with several labels (multi-label files) are refused.
//!
//! * `source`: the bytes of a file, decompressed;
//! * `line`: the tokens of one line, and messages about bad ones;
//! * `chunk`: the parts of the result, and how they become one.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::Error;
use crate::{error, memory, parallel};
use chunk::{Chunk, ChunkRows, LineFormat, ParseStop, TextIndex, bounds, close_gaps, cut, finish};
pub use line::TextValue;
use line::{Accepted, Cursor, Failure, data_of, first_row_has_qid, split_line};
use memchr::{memchr, memchr_iter, memrchr};
use source::load;
pub use source::open;

mod chunk;
mod line;
mod source;
#[cfg(test)]
mod tests;

/// Bytes of text that one task parses: some milliseconds of work, so that a pool stays busy and a cancel is
/// seen soon.
const CHUNK_BYTES: usize = 1 << 20;

/// One above the largest index: the number of columns fits both `i64` and `usize`.
const INDEX_LIMIT: i64 = isize::MAX as i64;

/// The number that a file gives to its first column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexBase {
    /// 0 if the index 0 occurs anywhere in the file, otherwise 1.
    #[default]
    Auto,
    /// The first column is 0.
    Zero,
    /// The first column is 1; the index 0 is refused.
    One,
}

/// How a file is to be understood.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// The number of the first column.
    pub base: IndexBase,
    /// Number of columns; larger indices are refused. `None` takes the largest index of the file.
    pub n_features: Option<usize>,
}

/// Column numbers of the entries, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indices {
    /// 32 bits, whenever the number of columns and the number of entries fit.
    Narrow(Vec<i32>),
    /// 64 bits.
    Wide(Vec<i64>),
}

/// A file as a compressed sparse row matrix with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct SvmlightData<V> {
    /// Row `i` owns the entries `indptr[i]..indptr[i + 1]`; length is the number of rows plus one.
    pub indptr: Vec<i64>,
    /// Column of each entry, in the order of the text.
    pub indices: Indices,
    /// Value of each entry.
    pub values: Vec<V>,
    /// Number of columns.
    pub n_cols: usize,
    /// The number that the file gives to its first column, found out if it was not given.
    pub base: IndexBase,
    /// Label of each row.
    pub labels: Vec<f64>,
    /// Query of each row, `None` if the file has no queries.
    pub qid: Option<Vec<i64>>,
}

/// Reads a file, or standard input for `-`; gzip, bzip2 and zstd are recognised by their first bytes,
/// whatever the name.
///
/// Members, streams or frames that follow each other are joined. Memory: the text and the result.
/// `cancelled` is called now and then, by any thread of the current pool.
///
/// # Errors
/// [`Error::Io`] for a file that is missing, damaged or cut short; otherwise those of [`parse`].
pub fn read<V: TextValue>(
    path: &Path,
    options: &ReadOptions,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> error::Result<SvmlightData<V>> {
    let bytes = load(path, cancelled)?;
    parse(&bytes, path, options, cancelled)
}

/// Parses text that is not compressed; `path` only names it in errors.
///
/// # Errors
/// [`Error::Text`] at the first bad token, and for a text without rows. If [`IndexBase::Auto`] turns out to
/// mean 0, an index equal to `n_features` is reported only after all else was found good.
/// [`Error::Parameter`] for an `n_features` that no index type can count. [`Error::Cancelled`] if `cancelled`
/// says so; it is asked once per chunk, never within a line.
pub fn parse<V: TextValue>(
    bytes: &[u8],
    path: &Path,
    options: &ReadOptions,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> error::Result<SvmlightData<V>> {
    let text = Text { bytes, path, cancelled, chunk_bytes: CHUNK_BYTES };
    text.parse(options)
}

/// Parses a piece of a text, cut at line ends; `None` if it has no row.
///
/// # Errors
/// As for [`parse`], with lines counted from the start of the piece.
pub fn parse_piece<V: TextValue>(
    bytes: &[u8],
    path: &Path,
    options: &ReadOptions,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> error::Result<Option<SvmlightData<V>>> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let (line, later) = split_line(rest);
        if data_of(line).iter().any(|&byte| byte != b' ' && byte != b'\t') {
            return parse(bytes, path, options, cancelled).map(Some);
        }
        rest = later;
    }
    Ok(None)
}

/// What one call of [`parse`] works on.
struct Text<'a> {
    bytes: &'a [u8],
    path: &'a Path,
    cancelled: &'a (dyn Fn() -> bool + Sync),
    /// Least length of a chunk but the last.
    chunk_bytes: usize,
}

impl Text<'_> {
    fn parse<V: TextValue>(&self, options: &ReadOptions) -> error::Result<SvmlightData<V>> {
        let format = LineFormat {
            options,
            accepted: accepted_indices(options)?,
            qid: first_row_has_qid(&self.bytes[self.start()..]),
        };
        let mut data = self.parse_as::<V, i32>(&format);
        if let Err(ParseStop::TooNarrow) = data {
            data = self.parse_as::<V, i64>(&format);
        }
        match data {
            Ok(data) => Ok(data),
            Err(ParseStop::Cancelled) => Err(Error::Cancelled),
            Err(ParseStop::Failed(failure)) => Err(self.error(failure)),
            // With the base given, the index that is too large is reported where it stands.
            Err(ParseStop::BaseIsZero) => self.parse(&ReadOptions { base: IndexBase::Zero, ..*options }),
            Err(ParseStop::Skipped | ParseStop::TooNarrow) => {
                unreachable!("what made a chunk skipped comes first, and all indices fit in 64 bits")
            }
        }
    }

    fn parse_as<V: TextValue, I: TextIndex>(
        &self,
        format: &LineFormat,
    ) -> Result<SvmlightData<V>, ParseStop> {
        let ranges = self.ranges();
        let rooms = self.count_colons(&ranges)?;
        let mut indices = memory::zeros::<I>(rooms.iter().sum());
        let mut values = memory::zeros::<V>(indices.len());
        let parts = cut(&mut indices, &rooms).into_iter().zip(cut(&mut values, &rooms));
        let chunks =
            ranges.into_iter().zip(parts).map(|(range, (indices, values))| Chunk { range, indices, values });
        let rows = self.parse_chunks(chunks.collect(), format)?;
        close_gaps(&mut indices, &rooms, &rows);
        close_gaps(&mut values, &rooms, &rows);
        finish(indices, values, rows, format.options)
    }

    /// Parses all chunks, or finds out why the first that stopped did so.
    fn parse_chunks<V: TextValue, I: TextIndex>(
        &self,
        chunks: Vec<Chunk<V, I>>,
        format: &LineFormat,
    ) -> Result<Vec<ChunkRows>, ParseStop> {
        let stop_after = AtomicUsize::new(usize::MAX);
        let task = |number: usize, chunk: Chunk<V, I>| {
            if number > stop_after.load(Ordering::Relaxed) {
                return Err(ParseStop::Skipped);
            }
            let rows = self.parse_chunk(chunk, format);
            if let Err(stop) = &rows {
                let last = if matches!(stop, ParseStop::Cancelled) { 0 } else { number };
                stop_after.fetch_min(last, Ordering::Relaxed);
            }
            rows
        };
        // Chunks before the first bad one are never skipped: which token is the first does not depend on
        // timing.
        let results = parallel::map_each(chunks, task);
        if results.iter().any(|rows| matches!(rows, Err(ParseStop::Cancelled))) {
            return Err(ParseStop::Cancelled);
        }
        results.into_iter().collect()
    }

    fn parse_chunk<V: TextValue, I: TextIndex>(
        &self,
        mut chunk: Chunk<V, I>,
        format: &LineFormat,
    ) -> Result<ChunkRows, ParseStop> {
        if (self.cancelled)() {
            return Err(ParseStop::Cancelled);
        }
        let mut text = &self.bytes[chunk.range.clone()];
        let mut rows = ChunkRows::default();
        while !text.is_empty() {
            let (line, rest) = split_line(text);
            let data = data_of(line);
            let cursor = Cursor { rest: data, end: chunk.range.end - text.len() + data.len() };
            chunk.push_line(cursor, &mut rows, format)?;
            text = rest;
        }
        rows.bounds = bounds(&chunk.indices[..rows.n_entries()]);
        Ok(rows)
    }

    /// Where the text starts, behind a byte-order mark.
    fn start(&self) -> usize {
        if self.bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 }
    }

    /// Cuts the text at line ends.
    fn ranges(&self) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let mut start = self.start();
        while start < self.bytes.len() {
            let least = self.bytes.len().min(start + self.chunk_bytes);
            let rest = &self.bytes[least - 1..];
            let end = memchr(b'\n', rest).map_or(self.bytes.len(), |at| least + at);
            ranges.push(start..end);
            start = end;
        }
        ranges
    }

    /// Counts the colons of each chunk: as many entries as it can hold at most.
    fn count_colons(&self, ranges: &[Range<usize>]) -> Result<Vec<usize>, ParseStop> {
        let count = |_: usize, range: &Range<usize>| match (self.cancelled)() {
            true => Err(ParseStop::Cancelled),
            false => Ok(memchr_iter(b':', &self.bytes[range.clone()]).count()),
        };
        parallel::map_each(ranges, count).into_iter().collect()
    }

    /// Makes the error of a position in the text.
    fn error(&self, failure: Failure) -> Error {
        let before = &self.bytes[..failure.offset];
        let line_start = memrchr(b'\n', before).map_or(0, |at| at + 1);
        Error::Text {
            path: self.path.to_path_buf(),
            line: memchr_iter(b'\n', before).count() as u64 + 1,
            column: (failure.offset - line_start) as u64 + 1,
            reason: failure.reason,
        }
    }
}

/// Indices that the options accept, as written in the file.
fn accepted_indices(options: &ReadOptions) -> error::Result<Accepted> {
    let first = i64::from(options.base == IndexBase::One);
    let Some(n_features) = options.n_features else {
        return Ok(Accepted { indices: first..INDEX_LIMIT, n_features: None });
    };
    let last_base = i64::from(options.base != IndexBase::Zero);
    match i64::try_from(n_features) {
        Ok(n) if n < INDEX_LIMIT => Ok(Accepted { indices: first..n + last_base, n_features: Some(n) }),
        _ => Err(Error::Parameter {
            name: "n_features",
            value: n_features.to_string(),
            rule: "less than the largest signed integer",
        }),
    }
}
