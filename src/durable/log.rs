//! A held file that a long task adds records to as it goes, and that lets a later one go on.
//!
//! ```text
//! file    = magic of 8 bytes | u32 format | frame(0, what the task is, as text) | frame(1, record) | ...
//! ```
//!
//! Frames are those of [`super::frames`]; numbers are little-endian. **Creation** is atomic: the header is
//! written to a draft beside the path, synced, and renamed. **Opening** compares what the task is, and
//! refuses the file of another one with what differs. The records are then replayed in order; the first that
//! is truncated, has a wrong checksum or is not what the task asks for ends the replay, the file is cut
//! there, and what follows is appended. So a kill at any moment costs the record in progress, and damage
//! costs time, never a wrong result.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::draft::Draft;
use super::frames::{FRAME, frame, read_frame_at};
use super::held::Held;
use super::target::{Kind, Replace};
use crate::{Error, Result};

/// Bytes before the first frame.
pub const PREFIX: u64 = 12;

/// What such a file is of.
#[derive(Clone, Copy)]
pub struct LogKind {
    /// How it is named and told.
    pub kind: Kind,
    /// Its first bytes.
    pub magic: &'static [u8; 8],
    /// The version that is written, and the only one that is read.
    pub format: u32,
    /// The task in messages, a noun: "search".
    pub task: &'static str,
}

/// An open file: first replayed to its end, then appended to.
pub struct Log {
    held: Held,
    kind: LogKind,
    header: String,
    /// Where each frame begins that is known to be valid, the header's first.
    starts: Vec<u64>,
    /// Where the last of them ends.
    end: u64,
    is_replaying: bool,
}

impl Log {
    /// Opens the file of a task, or creates it where there is none (or an empty file). What the task is,
    /// `header`, is compared with that of the file by `difference`: what differs, `None` if nothing does.
    ///
    /// # Errors
    /// [`Error::Journal`] for the file of another task, a file that is none, and one in use;
    /// [`Error::Occupied`] for a device and the like; [`Error::Io`].
    pub fn open(
        path: &Path,
        kind: LogKind,
        header: String,
        difference: impl FnOnce(&str) -> Option<String>,
    ) -> Result<Self> {
        let held = Held::open(path)?.ok_or_else(|| Error::Journal {
            path: path.to_owned(),
            reason: format!("another {} is using it; use another path or wait for its end", kind.task),
        })?;
        let mut log = Self { held, kind, header, starts: Vec::new(), end: PREFIX, is_replaying: true };
        if log.held.is_empty()? {
            let (draft, starts) = log.begin()?;
            log.take(draft, starts)?;
            log.is_replaying = false;
            return Ok(log);
        }
        match difference(&log.read_header()?) {
            None => Ok(log),
            Some(difference) => Err(log.refuse(format!(
                "it belongs to another {}: {difference}; use another path or delete the file",
                kind.task
            ))),
        }
    }

    fn io(&self, source: std::io::Error) -> Error {
        Error::Io { path: self.held.path().to_owned(), source }
    }

    fn refuse(&self, reason: String) -> Error {
        Error::Journal { path: self.held.path().to_owned(), reason }
    }

    /// A new file up to its first record, and where its frames begin.
    fn begin(&self) -> Result<(Draft, Vec<u64>)> {
        let mut draft = Draft::new(self.held.path(), self.kind.kind, Replace::SameKind)?;
        draft.write(self.kind.magic)?;
        draft.write(&self.kind.format.to_le_bytes())?;
        draft.write(&frame(0, self.header.as_bytes()))?;
        Ok((draft, vec![PREFIX]))
    }

    /// Makes a new file the file.
    fn take(&mut self, draft: Draft, starts: Vec<u64>) -> Result<()> {
        let end = draft.len();
        self.held.replace(draft)?;
        (self.starts, self.end) = (starts, end);
        Ok(())
    }

    fn read_header(&mut self) -> Result<String> {
        let (mut magic, mut format) = ([0; 8], [0; 4]);
        let file = self.held.file();
        let is_read = file.read_exact(&mut magic).and_then(|()| file.read_exact(&mut format)).is_ok();
        if !is_read || magic != *self.kind.magic {
            return Err(self.refuse(format!("it is not {}", self.kind.kind.name)));
        }
        let (found, known) = (u32::from_le_bytes(format), self.kind.format);
        if found != known {
            return Err(self.refuse(format!("its format is {found}, this version reads {known}")));
        }
        let header = self.replay(|payload| String::from_utf8(payload).ok())?;
        header.ok_or_else(|| self.refuse("its header is damaged; delete the file to start anew".into()))
    }

    /// What `accept` makes of the next record, if there is one that is whole and accepted. Else the file is
    /// cut before it, and everything that follows is appended. A damaged header cuts nothing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn replay<T>(&mut self, accept: impl FnOnce(Vec<u8>) -> Option<T>) -> Result<Option<T>> {
        if !self.is_replaying {
            return Ok(None);
        }
        let (start, number) = (self.end, self.starts.len());
        let payload = self.read_at(start, number)?;
        let size = payload.as_ref().map_or(0, |payload| FRAME + payload.len() as u64);
        if let Some(accepted) = payload.and_then(accept) {
            self.starts.push(start);
            self.end += size;
            return Ok(Some(accepted));
        }
        if number > 0 {
            self.is_replaying = false;
            let file = self.held.file();
            file.set_len(start).and_then(|()| file.sync_all()).map_err(|e| self.io(e))?;
        }
        Ok(None)
    }

    fn read_at(&mut self, start: u64, number: usize) -> Result<Option<Vec<u8>>> {
        read_frame_at(self.held.file(), start, number as u64).map_err(|e| self.io(e))
    }

    /// The record of a number, counted from 1, if it is whole.
    ///
    /// # Errors
    /// [`Error::Io`].
    ///
    /// # Panics
    /// If no such record was replayed or appended.
    pub fn read(&mut self, number: usize) -> Result<Option<Vec<u8>>> {
        self.read_at(self.starts[number], number)
    }

    /// Appends a record, after the replay.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn append(&mut self, payload: &[u8]) -> Result<()> {
        let (end, bytes) = (self.end, frame(self.starts.len() as u64, payload));
        let file = self.held.file();
        let written = file.seek(SeekFrom::Start(end)).and_then(|_| file.write_all(&bytes));
        written.map_err(|e| self.io(e))?;
        self.starts.push(end);
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Makes what was appended durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn sync(&mut self) -> Result<()> {
        self.held.file().sync_data().map_err(|e| self.io(e))
    }

    /// Whether records are still to be replayed.
    pub fn is_replaying(&self) -> bool {
        self.is_replaying
    }

    /// Whether the name still leads to the file: somebody may have removed it.
    pub fn is_current(&self) -> bool {
        self.held.is_current()
    }

    /// Bytes of the file, as far as it is valid.
    pub fn size(&self) -> u64 {
        self.end
    }

    /// Writes the file anew with what `replace` makes of each record and its number.
    ///
    /// # Errors
    /// [`Error::Journal`] where a record is not whole any more, or not one to `replace`; those of
    /// [`Held::replace`]. The file is then as it was.
    pub fn rewrite(&mut self, replace: impl Fn(usize, &[u8]) -> Option<Vec<u8>>) -> Result<()> {
        let (mut draft, mut starts) = self.begin()?;
        for number in 1..self.starts.len() {
            let payload = self.read(number)?.and_then(|payload| replace(number, &payload));
            let payload =
                payload.ok_or_else(|| self.refuse(format!("record {number} has changed while in use")))?;
            starts.push(draft.len());
            draft.write(&frame(number as u64, &payload))?;
        }
        self.take(draft, starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTES: LogKind = LogKind {
        kind: Kind { name: "the notes of a walk", is_one: |head| head.starts_with(b"someNote") },
        magic: b"someNote",
        format: 3,
        task: "walk",
    };

    fn open(path: &Path) -> Result<Log> {
        Log::open(path, NOTES, "north".into(), |there| (there != "north").then(|| format!("it went {there}")))
    }

    fn replayed(log: &mut Log) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| log.replay(Some).unwrap()).collect()
    }

    #[test]
    fn records_are_replayed_cut_and_written_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        let mut log = open(&path).unwrap();
        assert!(!log.is_replaying());
        for note in [b"one".as_slice(), b"", b"three"] {
            log.append(note).unwrap();
        }
        log.sync().unwrap();
        assert_eq!(log.read(3).unwrap().unwrap(), b"three");
        assert!(open(&path).err().unwrap().to_string().contains("another walk is using it"));
        drop(log);

        let mut log = open(&path).unwrap();
        assert_eq!(replayed(&mut log), [b"one".as_slice(), b"", b"three"]);
        log.rewrite(|number, note| Some(note.repeat(number))).unwrap();
        log.append(b"four").unwrap();
        assert!(log.rewrite(|number, _| (number < 2).then(Vec::new)).is_err(), "the file stays as it was");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), log.size());
        drop(log);

        let mut log = open(&path).unwrap();
        assert_eq!(log.replay(Some).unwrap().unwrap(), b"one");
        assert_eq!(log.replay(|_| None::<()>).unwrap(), None, "what is not accepted ends the replay");
        assert!(!log.is_replaying());
        log.append(b"two").unwrap();
        drop(log);
        assert_eq!(replayed(&mut open(&path).unwrap()), [b"one", b"two"]);
    }

    #[test]
    fn what_cannot_be_replayed_is_refused_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        drop(open(&path).unwrap());
        let whole = std::fs::read(&path).unwrap();
        let south = Log::open(&path, NOTES, "south".into(), |there| Some(format!("it went {there}")));
        let message = south.err().unwrap().to_string();
        assert!(message.contains("it belongs to another walk: it went north"), "{message}");
        let damaged = [&whole[..whole.len() - 1], b"?"].concat();
        let newer = [b"someNote\x04\0\0\0".as_slice(), &whole[12..]].concat();
        for (bytes, reason) in [
            (damaged, "its header is damaged"),
            (newer, "its format is 4, this version reads 3"),
            (b"shopping list".to_vec(), "it is not the notes of a walk"),
            (b"some".to_vec(), "it is not the notes of a walk"),
        ] {
            std::fs::write(&path, &bytes).unwrap();
            let message = open(&path).err().unwrap().to_string();
            assert!(message.contains(reason), "{message}");
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }
}
