//! Reader of svmlight / LIBSVM text, plain or compressed.
//!
//! ```text
//! file  = line *( "\n" line )           "\r" before "\n" and a byte-order mark at the start are skipped
//! line  = [ row ] [ "#" comment ]       lines without a row are skipped
//! row   = label [ "qid:" integer ] *( index ":" value )          separated by blanks and tabs
//! ```
//!
//! The text is cut at line ends into chunks of about `CHUNK_BYTES`, the chunks are parsed in the current rayon pool, each
//! into its own part of the result. Where the cuts lie depends on the text alone and nothing is summed, so the result
//! does not depend on the number of threads. Neither does an error: the first bad token of the file is the one reported.
//!
//! Every decimal is rounded once, directly to its target type. What cannot be a finite number is refused, never turned into
//! infinity or cut short. Entries stay as written: explicit zeros, unsorted and repeated indices are left to the caller.
//! Lines with several labels (multi-label files) are refused.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::ops::{Range, Sub};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::{memchr, memchr_iter, memrchr};
use rayon::prelude::*;

use crate::error::{self, Error};

#[cfg(test)]
mod tests;

/// Bytes of text that one task parses: some milliseconds of work, so that a pool stays busy and a cancel is seen soon.
const CHUNK_BYTES: usize = 1 << 20;

/// Bytes read or decompressed between two looks at `cancelled`: about 0.2 s of bzip2, the slowest of the codecs.
const PIECE_BYTES: u64 = 4 << 20;

/// One above the largest index: the number of columns fits both `i64` and `usize`.
const INDEX_LIMIT: i64 = isize::MAX as i64;

/// Digits that an `i64` always holds.
const SAFE_DIGITS: usize = 18;

/// Characters of the offending text that an error shows.
const QUOTED_CHARS: usize = 40;

/// What the error about a missing or unexpected query asks for.
const QID_RULE: &str = "expected qid:N after the label of all rows or none";

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

/// A floating-point type that values are read into.
pub trait TextValue: Copy + Default + From<u8> + Send + Sync + 'static {
    /// What error messages call the type.
    const PRECISION: &'static str;

    /// Parses the longest number at the start of `text`, rounded once to this type, and returns its length in bytes.
    ///
    /// `nan`, `inf` and numbers out of range come back as what they are: the reader refuses them by [`Self::is_finite`].
    fn parse_prefix(text: &[u8]) -> Option<(Self, usize)>;

    /// Tells whether the value is neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! text_value {
    ($type:ty, $precision:literal) => {
        impl TextValue for $type {
            const PRECISION: &'static str = $precision;

            #[inline]
            fn parse_prefix(text: &[u8]) -> Option<(Self, usize)> {
                fast_float2::parse_partial(text).ok()
            }

            #[inline]
            fn is_finite(self) -> bool {
                <$type>::is_finite(self)
            }
        }
    };
}

text_value!(f32, "single precision");
text_value!(f64, "double precision");

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
    /// Label of each row.
    pub labels: Vec<f64>,
    /// Query of each row, `None` if the file has no queries.
    pub qid: Option<Vec<i64>>,
}

/// Reads a file; gzip, bzip2 and zstd are recognised by their first bytes, whatever the name.
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
/// [`Error::Text`] at the first bad token, and for a text without rows. If [`IndexBase::Auto`] turns out to mean 0, an index
/// equal to `n_features` is reported only after all else was found good. [`Error::Parameter`] for an `n_features` that no
/// index type can count. [`Error::Cancelled`] if `cancelled` says so; it is asked once per chunk, never within a line.
pub fn parse<V: TextValue>(
    bytes: &[u8],
    path: &Path,
    options: &ReadOptions,
    cancelled: &(dyn Fn() -> bool + Sync),
) -> error::Result<SvmlightData<V>> {
    let text = Text { bytes, path, cancelled, chunk_bytes: CHUNK_BYTES };
    text.parse(options)
}

/// Reads and decompresses a file, piece by piece.
fn load(path: &Path, cancelled: &(dyn Fn() -> bool + Sync)) -> error::Result<Vec<u8>> {
    let failed = |source| Error::Io { path: path.to_path_buf(), source };
    let mut reader = File::open(path).and_then(decoder).map_err(failed)?;
    let mut bytes = Vec::new();
    loop {
        if cancelled() {
            return Err(Error::Cancelled);
        }
        let mut piece = reader.by_ref().take(PIECE_BYTES);
        if piece.read_to_end(&mut bytes).map_err(failed)? == 0 {
            return Ok(bytes);
        }
    }
}

/// Chooses the decoder by the first four bytes.
fn decoder(mut file: File) -> io::Result<Box<dyn Read>> {
    let mut magic = Vec::new();
    file.by_ref().take(4).read_to_end(&mut magic)?;
    let start: &[u8] = &magic.clone();
    let whole = BufReader::new(io::Cursor::new(magic).chain(file));
    Ok(match start {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(whole)),
        [b'B', b'Z', b'h', b'1'..=b'9'] => Box::new(bzip2::bufread::MultiBzDecoder::new(whole)),
        // A frame, or a skippable frame as parallel compressors put in front.
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Box::new(zstd::Decoder::with_buffer(whole)?),
        _ => Box::new(whole),
    })
}

/// What one call of [`parse`] works on.
struct Text<'a> {
    bytes: &'a [u8],
    path: &'a Path,
    cancelled: &'a (dyn Fn() -> bool + Sync),
    /// Least length of a chunk but the last.
    chunk_bytes: usize,
}

/// What all rows have in common.
struct Layout<'a> {
    options: &'a ReadOptions,
    /// Indices as written in the file that are accepted.
    indices: Range<i64>,
    /// Whether rows have a query.
    qid: bool,
}

/// The first bad token of a chunk.
struct Failure {
    /// Position of the token in the text.
    offset: usize,
    reason: String,
}

/// Why a text or a chunk was not parsed to its end.
enum Stop {
    Failed(Failure),
    Cancelled,
    /// An earlier chunk has stopped, so that this one no longer matters.
    Skipped,
    /// An index does not fit the integer type.
    TooNarrow,
    /// The base was to be found out, is 0, and makes the largest index too large.
    BaseIsZero,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Text<'_> {
    fn parse<V: TextValue>(&self, options: &ReadOptions) -> error::Result<SvmlightData<V>> {
        let layout = Layout {
            options,
            indices: accepted_indices(options)?,
            qid: first_row_has_qid(&self.bytes[self.start()..]),
        };
        let mut data = self.parse_as::<V, i32>(&layout);
        if let Err(Stop::TooNarrow) = data {
            data = self.parse_as::<V, i64>(&layout);
        }
        match data {
            Ok(data) => Ok(data),
            Err(Stop::Cancelled) => Err(Error::Cancelled),
            Err(Stop::Failed(failure)) => Err(self.error(failure)),
            // With the base given, the index that is too large is found in its place.
            Err(Stop::BaseIsZero) => self.parse(&ReadOptions { base: IndexBase::Zero, ..*options }),
            Err(Stop::Skipped | Stop::TooNarrow) => {
                unreachable!("what made a chunk skipped comes first, and all indices fit in 64 bits")
            }
        }
    }

    fn parse_as<V: TextValue, I: Index>(&self, layout: &Layout) -> Result<SvmlightData<V>, Stop> {
        let ranges = self.ranges();
        let rooms = self.count_colons(&ranges)?;
        let mut indices = vec![I::default(); rooms.iter().sum()];
        let mut values = vec![V::default(); indices.len()];
        let places = cut(&mut indices, &rooms).into_iter().zip(cut(&mut values, &rooms));
        let chunks = ranges.into_iter().zip(places).map(|(range, (indices, values))| Chunk { range, indices, values });
        let rows = self.parse_chunks(chunks.collect(), layout)?;
        close_gaps(&mut indices, &rooms, &rows);
        close_gaps(&mut values, &rooms, &rows);
        finish(indices, values, rows, layout.options)
    }

    /// Parses all chunks, or finds out why the first that stopped did so.
    fn parse_chunks<V: TextValue, I: Index>(
        &self,
        chunks: Vec<Chunk<V, I>>,
        layout: &Layout,
    ) -> Result<Vec<Rows>, Stop> {
        let stop_after = AtomicUsize::new(usize::MAX);
        let task = |(number, chunk): (usize, Chunk<V, I>)| {
            if number > stop_after.load(Ordering::Relaxed) {
                return Err(Stop::Skipped);
            }
            let rows = self.parse_chunk(chunk, layout);
            if let Err(stop) = &rows {
                let last = if matches!(stop, Stop::Cancelled) { 0 } else { number };
                stop_after.fetch_min(last, Ordering::Relaxed);
            }
            rows
        };
        // Chunks before the first bad one are never skipped: which token is the first does not depend on timing.
        let results: Vec<_> = chunks.into_par_iter().enumerate().map(task).collect();
        if results.iter().any(|rows| matches!(rows, Err(Stop::Cancelled))) {
            return Err(Stop::Cancelled);
        }
        results.into_iter().collect()
    }

    fn parse_chunk<V: TextValue, I: Index>(&self, mut chunk: Chunk<V, I>, layout: &Layout) -> Result<Rows, Stop> {
        if (self.cancelled)() {
            return Err(Stop::Cancelled);
        }
        let mut text = &self.bytes[chunk.range.clone()];
        let mut rows = Rows::default();
        while !text.is_empty() {
            let (line, rest) = split_line(text);
            let data = data_of(line);
            let cursor = Cursor { rest: data, end: chunk.range.end - text.len() + data.len() };
            chunk.push_line(cursor, &mut rows, layout)?;
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
    fn count_colons(&self, ranges: &[Range<usize>]) -> Result<Vec<usize>, Stop> {
        let count = |range: &Range<usize>| match (self.cancelled)() {
            true => Err(Stop::Cancelled),
            false => Ok(memchr_iter(b':', &self.bytes[range.clone()]).count()),
        };
        ranges.par_iter().map(count).collect()
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
fn accepted_indices(options: &ReadOptions) -> error::Result<Range<i64>> {
    let first = i64::from(options.base == IndexBase::One);
    let Some(n_features) = options.n_features else {
        return Ok(first..INDEX_LIMIT);
    };
    let last_base = i64::from(options.base != IndexBase::Zero);
    match i64::try_from(n_features) {
        Ok(n) if n < INDEX_LIMIT => Ok(first..n + last_base),
        _ => Err(Error::Parameter {
            name: "n_features",
            value: n_features.to_string(),
            rule: "less than the largest signed integer",
        }),
    }
}

/// The number of the first column, given the smallest and the largest index.
fn resolve(base: IndexBase, bounds: Option<(i64, i64)>) -> u8 {
    match (base, bounds) {
        (IndexBase::Zero, _) | (IndexBase::Auto, Some((0, _))) => 0,
        (IndexBase::One | IndexBase::Auto, _) => 1,
    }
}

/// Tells whether the first row has a query; all others have to do the same.
fn first_row_has_qid(mut text: &[u8]) -> bool {
    while !text.is_empty() {
        let (line, rest) = split_line(text);
        let mut words = data_of(line).split(|&byte| is_blank(byte)).filter(|word| !word.is_empty());
        if words.next().is_some() {
            return words.next().is_some_and(|word| word.starts_with(b"qid:"));
        }
        text = rest;
    }
    false
}

/// Splits after the first line end, which belongs to neither part.
fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b'\n', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[]),
    }
}

/// The part of a line before its comment, without trailing blanks.
fn data_of(line: &[u8]) -> &[u8] {
    let comment = memchr(b'#', line).filter(|&at| !is_special_number(line, at));
    let mut data = &line[..comment.unwrap_or(line.len())];
    while let [front @ .., b' ' | b'\t' | b'\r'] = data {
        data = front;
    }
    data
}

/// Tells whether the `#` is part of an infinity or NaN as old C libraries print it, `1.#INF`.
///
/// Taken for a comment, it would leave the harmless-looking value 1.
fn is_special_number(line: &[u8], at: usize) -> bool {
    let names: [&[u8]; 4] = [b"INF", b"IND", b"QNAN", b"SNAN"];
    line[..at].ends_with(b"1.") && names.iter().any(|name| line[at + 1..].starts_with(name))
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Integers that indices are stored in.
trait Index: Copy + Default + Ord + Send + From<u8> + Into<i64> + TryFrom<i64> + Sub<Output = Self> {
    fn wrap(list: Vec<Self>) -> Indices;
}

impl Index for i32 {
    fn wrap(list: Vec<Self>) -> Indices {
        Indices::Narrow(list)
    }
}

impl Index for i64 {
    fn wrap(list: Vec<Self>) -> Indices {
        Indices::Wide(list)
    }
}

/// A part of the text, and its part of the result: room for as many entries as there are colons.
struct Chunk<'a, V, I> {
    range: Range<usize>,
    indices: &'a mut [I],
    values: &'a mut [V],
}

/// What is known of the rows of a chunk besides their entries.
#[derive(Default)]
struct Rows {
    labels: Vec<f64>,
    qids: Vec<i64>,
    /// Number of entries of the chunk up to the end of each row.
    ends: Vec<usize>,
    /// Smallest and largest index.
    bounds: Option<(i64, i64)>,
}

impl Rows {
    fn n_entries(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }
}

impl<V: TextValue, I: Index> Chunk<'_, V, I> {
    fn push_line(&mut self, mut line: Cursor, rows: &mut Rows, layout: &Layout) -> Result<(), Stop> {
        if !line.skip_blanks() {
            return Ok(());
        }
        rows.labels.push(line.label()?);
        rows.qids.extend(line.qid(layout.qid)?);
        let mut end = rows.n_entries();
        while line.skip_blanks() {
            let (index, value) = line.entry(&layout.indices)?;
            // There is room: each entry took a colon.
            self.indices[end] = I::try_from(index).map_err(|_| Stop::TooNarrow)?;
            self.values[end] = value;
            end += 1;
        }
        rows.ends.push(end);
        Ok(())
    }
}

fn bounds<I: Index>(indices: &[I]) -> Option<(i64, i64)> {
    let (smallest, largest) = (indices.iter().min()?, indices.iter().max()?);
    Some(((*smallest).into(), (*largest).into()))
}

/// What is left of one line's data.
#[derive(Clone, Copy)]
struct Cursor<'a> {
    rest: &'a [u8],
    /// Position in the text where `rest` ends.
    end: usize,
}

impl<'a> Cursor<'a> {
    /// Goes to the next token; false if there is none.
    #[inline]
    fn skip_blanks(&mut self) -> bool {
        while let [byte, rest @ ..] = self.rest
            && is_blank(*byte)
        {
            self.rest = rest;
        }
        !self.rest.is_empty()
    }

    /// Tells whether a token ends `length` bytes from here.
    #[inline]
    fn ends_after(&self, length: usize) -> bool {
        self.rest.get(length).is_none_or(|&byte| is_blank(byte))
    }

    /// Everything up to the next blank.
    fn token(&self) -> &'a [u8] {
        let length = self.rest.iter().position(|&byte| is_blank(byte));
        &self.rest[..length.unwrap_or(self.rest.len())]
    }

    fn fail(&self, reason: String) -> Failure {
        Failure { offset: self.end - self.rest.len(), reason }
    }

    fn label(&mut self) -> Result<f64, Failure> {
        let start = *self;
        self.number("label").map_err(|failure| start.bad_label().unwrap_or(failure))
    }

    /// Names the two usual reasons why a label is no number.
    #[cold]
    fn bad_label(&self) -> Option<Failure> {
        let token = self.token();
        if token.contains(&b':') {
            let found = quote(token);
            Some(self.fail(format!("label missing before {found}; expected a finite decimal number")))
        } else if token.contains(&b',') {
            let found = quote(token);
            let reason = format!("several labels {found}; multi-label files are not supported, expected one label");
            Some(self.fail(reason))
        } else {
            None
        }
    }

    /// Reads `qid:N` if the file has queries, and makes sure that there is none if it has not.
    fn qid(&mut self, expected: bool) -> Result<Option<i64>, Failure> {
        self.skip_blanks();
        match (self.rest.strip_prefix(b"qid:"), expected) {
            (None, false) => Ok(None),
            (Some(_), true) => self.qid_number().map(Some),
            (None, true) => {
                let found = "row without qid, but the first row has one";
                Err(self.fail(format!("{found}; {QID_RULE}")))
            }
            (Some(_), false) => {
                let found = quote(self.token());
                let reason = format!("{found}, but the first row has no qid; {QID_RULE}");
                Err(self.fail(reason))
            }
        }
    }

    fn qid_number(&mut self) -> Result<i64, Failure> {
        let token = self.token();
        let number = str::from_utf8(&token[4..]).ok().and_then(|digits| digits.parse().ok());
        let Some(number) = number else {
            let found = quote(token);
            return Err(self.fail(format!("{found} is not a query; expected qid: and an integer of 64 bits")));
        };
        self.rest = &self.rest[token.len()..];
        Ok(number)
    }

    /// Reads `index:value`.
    #[inline]
    fn entry<V: TextValue>(&mut self, accepted: &Range<i64>) -> Result<(i64, V), Failure> {
        let start = *self;
        let (index, length) = match self.short_index() {
            Some((index, length)) if accepted.contains(&index) => (index, length),
            _ => self.long_index(accepted)?,
        };
        self.rest = &self.rest[length + 1..];
        if self.ends_after(0) {
            let found = quote(start.token());
            return Err(start.fail(format!("{found} has no value; expected index:value")));
        }
        Ok((index, self.number("value")?))
    }

    /// Reads the digits before a colon, if they are so few that they cannot overflow.
    #[inline]
    fn short_index(&self) -> Option<(i64, usize)> {
        let mut index = 0_i64;
        for (length, &byte) in self.rest.iter().enumerate().take(SAFE_DIGITS + 1) {
            match byte {
                b'0'..=b'9' if length < SAFE_DIGITS => index = index * 10 + i64::from(byte - b'0'),
                b':' if length > 0 => return Some((index, length)),
                _ => return None,
            }
        }
        None
    }

    /// Reads any index, with an error for all that is none.
    #[cold]
    fn long_index(&self, accepted: &Range<i64>) -> Result<(i64, usize), Failure> {
        let token = self.token();
        let found = quote(token);
        let Some(length) = memchr(b':', token) else {
            return Err(self.fail(format!("{found} has no colon; expected index:value")));
        };
        let digits = &token[..length];
        if digits == b"qid" {
            return Err(self.fail(format!("{found} is out of place; expected qid directly after the label, once")));
        }
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            let reason = format!("index of {found} is not a non-negative integer; expected index:value");
            return Err(self.fail(reason));
        }
        let index = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        match index {
            Some(index) if accepted.contains(&index) => Ok((index, length)),
            _ if accepted.is_empty() => Err(self.fail(format!("entry {found}; expected none in 0 columns"))),
            _ => {
                let (first, last) = (accepted.start, accepted.end - 1);
                let reason = format!("index of {found} is out of range; expected {first} to {last}");
                Err(self.fail(reason))
            }
        }
    }

    /// Reads a finite number that ends with its token.
    #[inline]
    fn number<V: TextValue>(&mut self, what: &str) -> Result<V, Failure> {
        // Most values of binary data and of counts are one digit.
        if let [digit @ b'0'..=b'9', rest @ ..] = self.rest
            && rest.first().is_none_or(|&byte| is_blank(byte))
        {
            self.rest = rest;
            return Ok(V::from(digit - b'0'));
        }
        match V::parse_prefix(self.rest) {
            Some((value, length)) if value.is_finite() && self.ends_after(length) => {
                self.rest = &self.rest[length..];
                Ok(value)
            }
            _ => Err(self.bad_number::<V>(what)),
        }
    }

    #[cold]
    fn bad_number<V: TextValue>(&self, what: &str) -> Failure {
        let token = self.token();
        let is_whole = V::parse_prefix(token).is_some_and(|(_, length)| length == token.len());
        let problem = match token.iter().any(u8::is_ascii_digit) {
            _ if !is_whole => "not a number".into(),
            true => format!("too large for {}", V::PRECISION),
            false => "not finite".into(),
        };
        let found = quote(token);
        self.fail(format!("{what} {found} is {problem}; expected a finite decimal number"))
    }
}

/// Shows a token in an error: shortened, with control characters escaped.
fn quote(token: &[u8]) -> String {
    // A character takes at most four bytes, so that the cut below decides.
    let start = &token[..token.len().min(4 * QUOTED_CHARS + 4)];
    let text = String::from_utf8_lossy(start);
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((cut, _)) => format!("{:?}...", &text[..cut]),
        None => format!("{text:?}"),
    }
}

/// Cuts a slice into neighbours of the given lengths.
fn cut<'a, T>(mut whole: &'a mut [T], lengths: &[usize]) -> Vec<&'a mut [T]> {
    let mut places = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let (place, rest) = whole.split_at_mut(length);
        places.push(place);
        whole = rest;
    }
    places
}

/// Moves the entries of all chunks together: colons of comments and queries have left room behind them.
fn close_gaps<T: Copy>(list: &mut Vec<T>, rooms: &[usize], rows: &[Rows]) {
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
fn finish<V: TextValue, I: Index>(
    mut indices: Vec<I>,
    values: Vec<V>,
    rows: Vec<Rows>,
    options: &ReadOptions,
) -> Result<SvmlightData<V>, Stop> {
    let bounds = rows.iter().filter_map(|rows| rows.bounds);
    let bounds = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let base = resolve(options.base, bounds);
    let needed = bounds.map_or(0, |(_, largest)| (largest + 1 - i64::from(base)) as usize);
    let n_cols = options.n_features.unwrap_or(needed);
    if needed > n_cols {
        return Err(Stop::BaseIsZero);
    }
    if base > 0 {
        let count_from_0 = |index: &mut I| *index = *index - I::from(base);
        indices.par_iter_mut().with_min_len(1 << 16).for_each(count_from_0);
    }
    let labels: Vec<f64> = rows.iter().flat_map(|rows| &rows.labels).copied().collect();
    if labels.is_empty() {
        let reason = "no rows; expected lines of label index:value ...".into();
        return Err(Stop::Failed(Failure { offset: 0, reason }));
    }
    let qid: Vec<i64> = rows.iter().flat_map(|rows| &rows.qids).copied().collect();
    Ok(SvmlightData {
        indptr: join_ends(&rows),
        indices: widen_for(I::wrap(indices), n_cols),
        values,
        n_cols,
        labels,
        qid: (!qid.is_empty()).then_some(qid),
    })
}

fn join_ends(rows: &[Rows]) -> Vec<i64> {
    let mut indptr = vec![0];
    let mut before = 0;
    for rows in rows {
        indptr.extend(rows.ends.iter().map(|end| (before + end) as i64));
        before += rows.n_entries();
    }
    indptr
}

/// Uses 64 bits if the counts of columns and entries ask for it, though all indices fit in 32.
fn widen_for(indices: Indices, n_cols: usize) -> Indices {
    match indices {
        Indices::Narrow(list) if n_cols.max(list.len()) > i32::MAX as usize => {
            Indices::Wide(list.into_iter().map(i64::from).collect())
        }
        fitting => fitting,
    }
}
