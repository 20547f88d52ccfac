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
//! The file is a [`crate::durable::log`]. A round that is not whole, or was asked something else,
//! ends the replay, and the file is cut there. Writing waits for no disk: what a crash of the machine takes
//! away is asked for again. The file is held while a fit uses it.
//!
//! **Size.** What travels from all shards together in one direction, added: rounds times columns times 8
//! bytes, for several classes times up to eight.

use std::path::Path;

use super::ShardTask;
use super::exchange::Exchange;
use super::search::hashes;
use super::wire::{Request, ShardAnswer};
use crate::durable::log::{Log, LogKind};
use crate::durable::target::Kind;
use crate::memory::CollectLarge;
use crate::search::fingerprint::{Fingerprint, hash_bytes};
use crate::{Result, memory};

const MAGIC: &[u8; 8] = b"hingeSHA";
const KIND: LogKind = LogKind {
    kind: Kind { name: "a checkpoint of shards", is_one: |head| head.starts_with(MAGIC) },
    magic: MAGIC,
    format: 1,
    task: "fit",
};

/// Whether a file with these first bytes is a checkpoint of a fit on shards.
pub fn is_one(head: &[u8]) -> bool {
    (KIND.kind.is_one)(head)
}

/// An exchange whose answers are kept in a file, or come from it.
pub struct Recorded<'a> {
    exchange: &'a mut dyn Exchange,
    log: Log,
    /// Whether the shards do not know yet what was replayed.
    is_behind: bool,
}

impl<'a> Recorded<'a> {
    /// Opens the file of a fit, or creates it where there is none (or an empty one).
    ///
    /// # Errors
    /// [`crate::Error::Journal`] for that of another fit, a file that is none, and one in use;
    /// [`crate::Error::Io`]; those of the exchange.
    pub fn open(path: &Path, task: &ShardTask, exchange: &'a mut dyn Exchange) -> Result<Self> {
        let fingerprint = fingerprint(task, exchange)?;
        let log = Log::open(path, KIND, fingerprint.to_text(), |there| fingerprint.difference(there))?;
        Ok(Self { exchange, log, is_behind: false })
    }
}

impl Exchange for Recorded<'_> {
    fn ask(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        let hash = hash_bytes(request.words().iter().flat_map(|x| x.to_le_bytes()));
        if let Some(answer) = self.log.replay(|payload| decode(&payload, hash))? {
            self.is_behind = true;
            return Ok(answer);
        }
        if self.is_behind {
            self.exchange.ask(&Request::of_words(restore()), &Vec::new)?;
            self.is_behind = false;
        }
        let answer = self.exchange.ask(request, restore)?;
        self.log.append(&encode(hash, &answer))?;
        Ok(answer)
    }

    fn gather(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
        self.exchange.gather(request, restore)
    }
}

/// What the answers depend on.
fn fingerprint(task: &ShardTask, exchange: &mut dyn Exchange) -> Result<Fingerprint> {
    let [rows, labels] = hashes(|request| exchange.gather(request, &Vec::new))?;
    let ShardTask { facts, scale, n_columns, n_classes, loss, intercept, params, .. } = task;
    Ok(Fingerprint::of_entries([
        ("shape of X", format!("{} x {n_columns}", facts.n_rows)),
        ("number of shards", facts.n_pieces.to_string()),
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
    Some(ShardAnswer { sums: numbers(sums), maxima: numbers(maxima), ..ShardAnswer::default() })
}
