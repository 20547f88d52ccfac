//! svmlight text of any length in pieces: plain or compressed, one file after another.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::{memchr_iter, memrchr};

use crate::text::{IndexBase, ReadOptions, SvmlightData, TextValue};
use crate::{Error, Result, memory, text};

/// Bytes of text in a piece: enough work for all threads.
pub const PIECE_BYTES: usize = 8 << 20;
/// Bytes read or decompressed between two checks of the cancel flag.
const STEP_BYTES: u64 = 1 << 20;

/// One text file, read in pieces.
pub struct TextPieces {
    path: PathBuf,
    reader: Box<dyn Read + Send>,
    /// Text that was read but not yet parsed.
    text: Vec<u8>,
    /// Lines before `text`.
    lines: u64,
    is_at_end: bool,
    options: ReadOptions,
    piece_bytes: usize,
}

impl TextPieces {
    /// Opens a file. With [`IndexBase::Auto`] the first piece decides.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(path: &Path, options: ReadOptions) -> Result<Self> {
        let reader = text::open(path)?;
        let (path, piece_bytes) = (path.to_owned(), PIECE_BYTES);
        Ok(Self { path, reader, text: Vec::new(), lines: 0, is_at_end: false, options, piece_bytes })
    }

    /// The base of the indices, decided by then.
    pub fn base(&self) -> IndexBase {
        self.options.base
    }

    /// The rows of the next piece, `None` at the end of the file. A piece without rows has none.
    ///
    /// # Errors
    /// As for [`text::read`]; lines are counted from the start of the file.
    pub fn next<V: TextValue>(
        &mut self,
        cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<SvmlightData<V>>> {
        loop {
            let end = self.fill(cancelled)?;
            if end == 0 {
                return Ok(None);
            }
            let piece = &self.text[..end];
            let parsed = text::parse_piece(piece, &self.path, &self.options, cancelled);
            let lines = memchr_iter(b'\n', piece).count() as u64;
            let parsed = parsed.map_err(|error| self.moved(error))?;
            self.lines += lines;
            self.text.drain(..end);
            if let Some(data) = parsed {
                self.options.base = data.base;
                return Ok(Some(data));
            }
        }
    }

    /// Reads until there is a whole piece, and returns its end: behind the last line end, or the end of the
    /// file.
    fn fill(&mut self, cancelled: &(dyn Fn() -> bool + Sync)) -> Result<usize> {
        loop {
            if self.is_at_end {
                return Ok(self.text.len());
            }
            if self.text.len() >= self.piece_bytes
                && let Some(at) = memrchr(b'\n', &self.text)
            {
                return Ok(at + 1);
            }
            if cancelled() {
                return Err(Error::Cancelled);
            }
            let step = STEP_BYTES.min(self.piece_bytes as u64);
            memory::reserve(&mut self.text, step as usize);
            let read = self.reader.by_ref().take(step).read_to_end(&mut self.text);
            self.is_at_end = read.map_err(|source| Error::Io { path: self.path.clone(), source })? == 0;
        }
    }

    fn moved(&self, error: Error) -> Error {
        match error {
            Error::Text { path, line, column, reason } => {
                Error::Text { path, line: line + self.lines, column, reason }
            }
            other => other,
        }
    }
}

/// Counts how often columns occur in `bytes` bytes of plain text from an offset on, for the order of the
/// columns: whatever stands between a blank and a colon counts if it is a number up to `limit`, so the offset
/// may be in the middle of a line. `first` is the number of the first column.
///
/// # Errors
/// [`Error::Io`].
pub fn count_columns(
    path: &Path,
    offset: u64,
    bytes: usize,
    first: usize,
    limit: usize,
    counts: &mut Vec<u64>,
) -> Result<()> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let mut file = File::open(path).map_err(io)?;
    file.seek(SeekFrom::Start(offset)).map_err(io)?;
    let mut text = memory::with_capacity(bytes);
    file.take(bytes as u64).read_to_end(&mut text).map_err(io)?;
    for colon in memchr_iter(b':', &text) {
        let start = text[..colon].iter().rposition(|byte| !byte.is_ascii_digit());
        // Nine digits at most, so that numbers fit; names like `qid` have a letter in the way.
        let Some(digits) =
            start.filter(|&at| text[at] == b' ' || text[at] == b'\t').map(|at| &text[at + 1..colon])
        else {
            continue;
        };
        if digits.is_empty() || digits.len() > 9 {
            continue;
        }
        let number = digits.iter().fold(0, |number, digit| 10 * number + usize::from(digit - b'0'));
        let Some(column) = number.checked_sub(first).filter(|&column| column < limit) else { continue };
        if column >= counts.len() {
            let n = (column + 1).max(2 * counts.len()).min(limit);
            memory::resize(counts, n, 0);
        }
        counts[column] += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn text() -> String {
        let mut text = String::from("# a comment\n\n");
        for i in 0..500 {
            let _ = writeln!(text, "{} {}:{}.5 {}:1", i % 3, 1 + i % 7, i, 20 + i % 11);
        }
        text
    }

    fn rows(data: &SvmlightData<f64>) -> Labelled {
        let indices: Vec<i64> = match &data.indices {
            text::Indices::Narrow(list) => list.iter().map(|&j| i64::from(j)).collect(),
            text::Indices::Wide(list) => list.clone(),
        };
        (0..data.labels.len())
            .map(|i| {
                let range = data.indptr[i] as usize..data.indptr[i + 1] as usize;
                (data.labels[i], range.map(|k| (indices[k], data.values[k])).collect())
            })
            .collect()
    }

    /// Labels with the entries of their rows.
    type Labelled = Vec<(f64, Vec<(i64, f64)>)>;

    fn pieces(path: &Path, size: usize) -> Result<Labelled> {
        let mut pieces = TextPieces::open(path, ReadOptions::default())?;
        pieces.piece_bytes = size;
        let mut all = Vec::new();
        while let Some(data) = pieces.next::<f64>(&|| false)? {
            all.extend(rows(&data));
        }
        Ok(all)
    }

    #[test]
    fn pieces_are_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.svm");
        std::fs::write(&path, text()).unwrap();
        let whole = rows(&text::read::<f64>(&path, &ReadOptions::default(), &|| false).unwrap());
        for size in [1, 10, 100, 1000, 1 << 20] {
            assert_eq!(pieces(&path, size).unwrap(), whole, "pieces of {size} bytes");
        }
    }

    #[test]
    fn errors_name_the_line_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.svm");
        std::fs::write(&path, text() + "1 x:1\n").unwrap();
        let message = pieces(&path, 200).unwrap_err().to_string();
        assert!(message.contains("line 503, column 3"), "{message}");
        // The base was decided by the first piece.
        std::fs::write(&path, text() + "1 0:1\n").unwrap();
        let message = pieces(&path, 200).unwrap_err().to_string();
        assert!(message.contains("line 503"), "{message}");
        std::fs::write(&path, "").unwrap();
        assert!(pieces(&path, 200).unwrap().is_empty());
    }

    #[test]
    fn columns_are_counted_from_any_offset() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.svm");
        std::fs::write(&path, "1 qid:7 1:2 3:1\n-1\t3:4.5 9:0 99:1 1234567890:1 x12:3 :4\n").unwrap();
        let of = |offset, bytes, first, limit| {
            let mut counts = Vec::new();
            count_columns(&path, offset, bytes, first, limit, &mut counts).unwrap();
            counts.truncate(counts.iter().rposition(|&count| count > 0).map_or(0, |at| at + 1));
            counts
        };
        assert_eq!(of(0, 1000, 1, 50), [1, 0, 2, 0, 0, 0, 0, 0, 1]);
        assert_eq!(of(0, 1000, 0, 4), [0, 1, 0, 2]);
        // From the middle of a number, and up to the middle of another.
        assert_eq!(of(12, 12, 0, 50), [0, 0, 0, 1]);
        assert!(of(1000, 10, 0, 50).is_empty());
    }
}
