//! Fits on shards that survive the death of their client: a file of all answers.
//!
//! A fit is a function of what the shards answer. A resumed one gets the answers of the file until it comes
//! to the round in which it ended; then all shards are told what they would know ([`super::remote`] has that
//! for a lost one), and it goes on to the same bits.
//!
//! ```text
//! file   = magic "hingeSHA" | u32 format | frame(0, fingerprint) | frame(1, round) | ...
//! round  = u64 hash of the request | u64 number of sums | f64 sums ... | f64 maxima ...
//! ```
//!
//! Frames are those of [`crate::durable::frames`]. A round that is not whole, or was asked something else,
//! ends the replay, and the file is cut there. Writing waits for no disk: what a crash of the machine takes
//! away is asked for again. The file is held while a fit uses it.
//!
//! **Size.** What travels from all shards together in one direction, added: rounds times columns times 8
//! bytes, for several classes times up to eight.

use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::ShardTask;
use super::remote::Exchange;
use super::search::hashes;
use super::wire::ShardAnswer;
use crate::durable::draft::Draft;
use crate::durable::frames::{FRAME, frame, read_frame_at};
use crate::durable::held::Held;
use crate::durable::target::{Kind, Replace};
use crate::memory::CollectLarge;
use crate::search::fingerprint::{Fingerprint, hash_bytes};
use crate::{Error, Result, memory};

const MAGIC: &[u8; 8] = b"hingeSHA";
const KIND: Kind = Kind { name: "a checkpoint of shards", is_one: |head| head.starts_with(MAGIC) };
const FORMAT: u32 = 1;
/// Bytes before the first frame.
const PREFIX: u64 = 12;

/// An exchange whose answers are kept in a file, or come from it.
pub struct Recorded<'a> {
    exchange: &'a mut dyn Exchange,
    held: Held,
    /// Where the valid part ends, as far as it is read.
    end: u64,
    /// Number of the next frame.
    number: u64,
    is_replaying: bool,
    /// Whether the shards do not know yet what was replayed.
    is_behind: bool,
}

impl<'a> Recorded<'a> {
    /// Opens the file of a fit, or creates it where there is none (or an empty one).
    ///
    /// # Errors
    /// [`Error::Journal`] for that of another fit, a file that is none, and one in use; [`Error::Io`]; those
    /// of the exchange.
    pub fn open(path: &Path, task: &ShardTask, exchange: &'a mut dyn Exchange) -> Result<Self> {
        let held = Held::open(path)?.ok_or_else(|| Error::Journal {
            path: path.to_owned(),
            reason: "another fit is using it; use another path or wait for its end".into(),
        })?;
        let fingerprint = fingerprint(task, exchange)?;
        let mut file = Self { exchange, held, end: PREFIX, number: 0, is_replaying: true, is_behind: false };
        if file.held.is_empty()? {
            file.create(&fingerprint)?;
            return Ok(file);
        }
        let there = file.read_header()?;
        match fingerprint.difference(&there) {
            None => Ok(file),
            Some(difference) => Err(file.refuse(format!(
                "it belongs to another fit: {difference}; use another path or delete the file"
            ))),
        }
    }

    fn create(&mut self, fingerprint: &Fingerprint) -> Result<()> {
        let first = frame(0, fingerprint.to_text().as_bytes());
        let header = [MAGIC.as_slice(), &FORMAT.to_le_bytes(), &first].concat();
        let mut draft = Draft::new(self.held.path(), KIND, Replace::SameKind)?;
        draft.write(&header)?;
        self.held.replace(draft)?;
        (self.end, self.number, self.is_replaying) = (header.len() as u64, 1, false);
        Ok(())
    }

    fn io(&self, source: std::io::Error) -> Error {
        Error::Io { path: self.held.path().to_owned(), source }
    }

    fn refuse(&self, reason: String) -> Error {
        Error::Journal { path: self.held.path().to_owned(), reason }
    }

    fn read_header(&mut self) -> Result<String> {
        let mut prefix = [0; PREFIX as usize];
        let is_read = self.held.file().read_exact(&mut prefix).is_ok();
        if !is_read || !prefix.starts_with(MAGIC) {
            return Err(self.refuse("it is not the checkpoint of a fit on shards".into()));
        }
        let format = prefix[8..].iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte));
        if format != FORMAT {
            return Err(self.refuse(format!("its format is {format}, this version reads {FORMAT}")));
        }
        let header = self.next_frame()?.and_then(|payload| String::from_utf8(payload).ok());
        header.ok_or_else(|| self.refuse("its header is damaged; delete the file to start anew".into()))
    }

    /// The next frame, if it is whole; moves past it.
    fn next_frame(&mut self) -> Result<Option<Vec<u8>>> {
        let (end, number) = (self.end, self.number);
        let payload = read_frame_at(self.held.file(), end, number).map_err(|e| self.io(e))?;
        if let Some(payload) = &payload {
            self.end += FRAME + payload.len() as u64;
            self.number += 1;
        }
        Ok(payload)
    }

    /// The answer of the file to a request; else the file is cut.
    fn replay(&mut self, request: u64) -> Result<Option<ShardAnswer>> {
        if !self.is_replaying {
            return Ok(None);
        }
        let start = (self.end, self.number);
        let answer = self.next_frame()?.and_then(|payload| decode(&payload, request));
        if answer.is_some() {
            return Ok(answer);
        }
        (self.end, self.number) = start;
        self.is_replaying = false;
        let end = self.end;
        self.held.file().set_len(end).map_err(|e| self.io(e))?;
        Ok(None)
    }

    fn append(&mut self, request: u64, answer: &ShardAnswer) -> Result<()> {
        let bytes = frame(self.number, &encode(request, answer));
        let (file, end) = (self.held.file(), self.end);
        let written = file.seek(SeekFrom::Start(end)).and_then(|_| file.write_all(&bytes));
        written.map_err(|e| self.io(e))?;
        self.end += bytes.len() as u64;
        self.number += 1;
        Ok(())
    }
}

impl Exchange for Recorded<'_> {
    fn ask(&mut self, request: &[f64], restore: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        let hash = hash_bytes(request.iter().flat_map(|x| x.to_le_bytes()));
        if let Some(answer) = self.replay(hash)? {
            self.is_behind = true;
            return Ok(answer);
        }
        if self.is_behind {
            self.exchange.ask(&restore(), &Vec::new)?;
            self.is_behind = false;
        }
        let answer = self.exchange.ask(request, restore)?;
        self.append(hash, &answer)?;
        Ok(answer)
    }

    fn gather(&mut self, request: &[f64], restore: &dyn Fn() -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
        self.exchange.gather(request, restore)
    }
}

/// What the answers depend on.
fn fingerprint(task: &ShardTask, exchange: &mut dyn Exchange) -> Result<Fingerprint> {
    let [rows, labels] = hashes(|request| exchange.gather(request.words(), &Vec::new))?;
    let ShardTask { facts, scale, n_shards, n_columns, n_classes, loss, intercept, params } = task;
    Ok(Fingerprint::of_entries(&[
        ("shape of X", format!("{} x {n_columns}", facts.n_rows)),
        ("number of shards", n_shards.to_string()),
        ("hash of X", rows),
        ("number of classes", n_classes.to_string()),
        ("hash of y, C and weights", labels),
        ("scale of costs", format!("{scale:?}")),
        ("loss", format!("{loss:?}")),
        ("intercept", format!("{intercept:?}")),
        ("tol", format!("{:?}", params.tol)),
        ("max_iter", params.max_iter.to_string()),
    ]))
}

fn encode(request: u64, answer: &ShardAnswer) -> Vec<u8> {
    let mut bytes = memory::with_capacity(16 + 8 * (answer.sums.len() + answer.maxima.len()));
    bytes.extend_from_slice(&request.to_le_bytes());
    bytes.extend_from_slice(&(answer.sums.len() as u64).to_le_bytes());
    memory::extend(&mut bytes, answer.sums.iter().chain(&answer.maxima).flat_map(|x| x.to_le_bytes()));
    bytes
}

/// The answer of a payload, if it is one to this request.
fn decode(payload: &[u8], request: u64) -> Option<ShardAnswer> {
    let (asked, rest) = payload.split_first_chunk()?;
    let (n_sums, rest) = rest.split_first_chunk()?;
    let n_sums = usize::try_from(u64::from_le_bytes(*n_sums)).ok()?;
    if u64::from_le_bytes(*asked) != request || rest.len() % 8 != 0 || n_sums > rest.len() / 8 {
        return None;
    }
    let numbers =
        |bytes: &[u8]| bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect_large();
    let (sums, maxima) = rest.split_at(8 * n_sums);
    Some(ShardAnswer { sums: numbers(sums), maxima: numbers(maxima) })
}
