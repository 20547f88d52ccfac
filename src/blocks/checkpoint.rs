//! The state of a descent as a file. A descent that is resumed from it ends with the same bits.
//!
//! ```text
//! file   = magic "hingeSBM" | u32 version | u32 zero | u64 length of the head | head (JSON) | numbers
//!          | u64 checksum of all before
//! numbers (f64, little-endian), per finished problem: w (weights), intercept, primal, dual, passes, loads
//!          per problem under way: its state, as many numbers as the head says ([`BlockState::write`])
//!          per problem under way that has ended: intercept, primal, dual, loads
//!          cached rows: u32 each, rising
//! ```
//!
//! A file is written beside its name, synced and renamed, after a step of the descent: a kill leaves the one
//! before. It names what the descent depends on; another training is refused with what differs. The length of
//! the file must be exactly what its head, the store and the problems ask for before anything is allocated,
//! and the checksum must be right.
//!
//! The file is held from the start of a training to its end, so that two trainings cannot write into one; an
//! empty one is there until the first state is written.

use std::hash::Hasher;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use twox_hash::XxHash3_64;

use super::outcome::BlockOutcome;
use super::problem::{BlockState, Certified, ProblemEnd, StateInput, StateOutput, StateShape};
use super::settings::BlockSettings;
use super::task::RowFolds;
use crate::durable::draft::Draft;
use crate::durable::held::Held;
use crate::durable::target::{Kind, Replace};
use crate::fit::{Certificate, Intercept, Status};
use crate::memory::CollectLarge;
use crate::store::format::checksum;
use crate::store::reader::Store;
use crate::{Error, Result, memory};

const MAGIC: &[u8; 8] = b"hingeSBM";
const KIND: Kind = Kind { name: "a checkpoint", is_one: |head| head.starts_with(MAGIC) };
const VERSION: u32 = 2;
const PREFIX: u64 = 24;
/// A head names files and options; more than this is none.
const MAX_HEAD: u64 = 1 << 24;
/// Bytes converted at a time.
const PIECE: usize = 1 << 20;

/// Whether a file with these first bytes is a checkpoint of a descent.
pub fn is_one(head: &[u8]) -> bool {
    (KIND.is_one)(head)
}

/// Where a descent writes its state, and how often.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CheckpointOptions<'a> {
    /// The file.
    pub path: &'a Path,
    /// Least seconds between two writings.
    pub seconds: f64,
}

/// How far a descent has come: passes and steps that are finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    /// Whole passes.
    pub pass: usize,
    /// Steps of the pass under way.
    pub step: usize,
}

/// The state of a group of problems, borrowed.
pub struct DescentState<'a, P> {
    /// Where the descent is.
    pub position: Position,
    /// Rows loaded so far.
    pub loaded_rows: u64,
    /// Scans so far.
    pub scans: u64,
    /// Places of the cached rows, rising.
    pub cached: Vec<u32>,
    /// The problems with their states.
    pub problems: Vec<&'a P>,
    /// Ends of those that have ended.
    pub ends: &'a [Option<ProblemEnd>],
}

/// The same, owned.
pub struct SavedDescent<P: BlockState> {
    /// Where the descent is.
    pub position: Position,
    /// Rows loaded so far.
    pub loaded_rows: u64,
    /// Scans so far.
    pub scans: u64,
    /// Places of the cached rows, rising.
    pub cached: Vec<u32>,
    /// States of the problems.
    pub states: Vec<P::Saved>,
    /// Ends of those that have ended.
    pub ends: Vec<Option<ProblemEnd>>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    depends_on: Vec<(String, String)>,
    position: Position,
    loaded_rows: u64,
    scans: u64,
    n_cached: u64,
    /// Status and passes of the finished problems.
    finished: Vec<(String, usize)>,
    under_way: Vec<UnderWay>,
}

/// A problem under way.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnderWay {
    visits: u64,
    /// How many numbers its state is.
    size: u64,
    /// Status and passes if it has ended.
    end: Option<(String, usize)>,
}

/// What a training is, as far as its checkpoint must know.
pub struct Training<'a> {
    /// The rows.
    pub store: &'a Store,
    /// The problems, in words that differ where the problems do.
    pub problems: String,
    /// How many they are, and how many descend at a time.
    pub sizes: [usize; 2],
    /// The fold of each row, by its position in the store.
    pub folds: &'a RowFolds,
    /// How they are trained.
    pub settings: &'a BlockSettings<'a>,
    /// Where dual variables are in files.
    pub folder: Option<PathBuf>,
}

/// The file of a training.
pub struct Checkpoint<'a, P: BlockState> {
    keep: CheckpointOptions<'a>,
    held: Held,
    depends_on: Vec<(String, String)>,
    shape: StateShape,
    outcomes: Vec<BlockOutcome>,
    state: Option<SavedDescent<P>>,
    last: f64,
}

fn name(status: Status) -> &'static str {
    match status {
        Status::Converged => "converged",
        Status::MaxIter => "max_iter",
        Status::Stalled => "stalled",
    }
}

fn status(name: &str) -> Option<Status> {
    [Status::Converged, Status::MaxIter, Status::Stalled]
        .into_iter()
        .find(|&status| self::name(status) == name)
}

fn dependencies(training: &Training<'_>) -> Vec<(String, String)> {
    let hex = |bytes: &[u8]| format!("{:016x}", checksum(3, bytes));
    let Training { store, problems, sizes: [n_problems, group], folds, settings, .. } = training;
    let is_one_group = group >= n_problems;
    let BlockSettings {
        loss,
        intercept,
        tol,
        max_passes,
        seed,
        budget,
        policy,
        cache_share,
        rounds,
        round_tol,
        ..
    } = settings;
    [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("fingerprint of the store", store.meta().fingerprint.clone()),
        ("number of rows", store.meta().n_rows.to_string()),
        ("number of columns", store.meta().n_cols.to_string()),
        ("labels", hex(format!("{:?}", store.meta().classes).as_bytes())),
        ("number of problems", n_problems.to_string()),
        ("C and weights", hex(problems.as_bytes())),
        ("folds", hex(folds)),
        ("loss", format!("{loss:?}")),
        ("intercept", format!("{intercept:?}")),
        ("tol", format!("{tol:?}")),
        // Of one group only the last pass depends on it: more passes are a good reason to go on.
        ("max_iter", if is_one_group { "any".to_owned() } else { max_passes.to_string() }),
        ("seed", seed.to_string()),
        ("memory_budget", budget.to_string()),
        ("cache", format!("{policy:?}, {cache_share:?}")),
        ("rounds", format!("{rounds}, {round_tol:?}")),
        ("while the disk is slow", format!("{:?}", settings.waiting)),
        ("keeps stored", settings.keeps_stored.to_string()),
        ("degree-2 map", settings.map.map_or_else(|| "none".to_owned(), |map| map.inner().description())),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

impl<'a, P: BlockState> Checkpoint<'a, P> {
    /// Reads the file, if there is one, and holds it.
    ///
    /// # Errors
    /// [`Error::Journal`] for the checkpoint of another training, a damaged one, and one in use;
    /// [`Error::Occupied`]; [`Error::Io`].
    pub fn open(keep: CheckpointOptions<'a>, training: Training<'_>) -> Result<Self> {
        let Training { store, settings, sizes, .. } = training;
        let held = Held::open(keep.path)?.ok_or_else(|| Error::Journal {
            path: keep.path.to_owned(),
            reason: "another training is using it; use another path or wait for its end".into(),
        })?;
        let mut checkpoint = Self {
            keep,
            held,
            depends_on: dependencies(&training),
            shape: StateShape {
                n_weights: settings.n_weights(store),
                has_constant: settings.intercept != Intercept::None,
                n_rows: store.meta().n_rows as usize,
                n_classes: store.classes().len(),
                folder: training.folder,
            },
            outcomes: Vec::new(),
            state: None,
            last: f64::NEG_INFINITY,
        };
        if !checkpoint.held.is_empty()? {
            let file = checkpoint.held.file().try_clone().map_err(|source| checkpoint.io(source))?;
            checkpoint.read(file, sizes)?;
        }
        Ok(checkpoint)
    }

    fn path(&self) -> PathBuf {
        self.keep.path.to_owned()
    }

    fn io(&self, source: std::io::Error) -> Error {
        Error::Io { path: self.path(), source }
    }

    fn refuse(&self, reason: impl Into<String>) -> Error {
        Error::Journal { path: self.path(), reason: reason.into() }
    }

    /// Problems that were finished.
    pub fn take_outcomes(&mut self) -> Vec<BlockOutcome> {
        std::mem::take(&mut self.outcomes)
    }

    /// The problems that were under way.
    pub fn take_state(&mut self) -> Option<SavedDescent<P>> {
        self.state.take()
    }

    /// Writes the state if enough seconds have passed since the last time.
    ///
    /// # Errors
    /// [`Error::Io`]; the old file is then as it was.
    pub fn save_if_due<'s>(
        &mut self,
        now: f64,
        done: &[BlockOutcome],
        present: impl FnOnce() -> DescentState<'s, P>,
    ) -> Result<()>
    where
        P: 's,
    {
        if now - self.last < self.keep.seconds {
            return Ok(());
        }
        self.last = now;
        self.write(done, &present())
    }

    fn write(&mut self, done: &[BlockOutcome], present: &DescentState<'_, P>) -> Result<()> {
        let end =
            |end: &Option<ProblemEnd>| end.as_ref().map(|end| (name(end.status).to_owned(), end.n_iter));
        let head = Head {
            depends_on: self.depends_on.clone(),
            position: present.position,
            loaded_rows: present.loaded_rows,
            scans: present.scans,
            n_cached: present.cached.len() as u64,
            finished: done.iter().map(|o| (name(o.status).to_owned(), o.n_iter)).collect(),
            under_way: present
                .problems
                .iter()
                .zip(present.ends)
                .map(|(p, e)| UnderWay { visits: p.visits(), size: p.size(), end: end(e) })
                .collect(),
        };
        let head = serde_json::to_vec(&head).map_err(|error| self.refuse(error.to_string()))?;
        let draft = Draft::new(self.keep.path, KIND, Replace::SameKind)?;
        let mut out = Hashed { draft, hash: XxHash3_64::with_seed(0) };
        let length = (head.len() as u64).to_le_bytes();
        out.write(&[MAGIC.as_slice(), &VERSION.to_le_bytes(), &[0; 4], &length, &head].concat())?;
        for o in done {
            out.numbers(&o.w[..self.shape.n_weights])?;
            let Certificate { primal, dual } = o.certificate;
            out.numbers(&[o.intercept, primal, dual, o.passes, o.loads])?;
        }
        for problem in &present.problems {
            problem.write(&mut out)?;
        }
        for end in present.ends.iter().flatten() {
            let Certified { intercept, certificate: Certificate { primal, dual } } = end.certified;
            out.numbers(&[intercept, primal, dual, end.loads])?;
        }
        for positions in present.cached.chunks(PIECE / 4) {
            out.write(&positions.iter().flat_map(|position| position.to_le_bytes()).collect_large())?;
        }
        let sum = out.hash.finish();
        out.draft.write(&sum.to_le_bytes())?;
        self.held.replace(out.draft)
    }

    fn read(&mut self, file: std::fs::File, [n_problems, group]: [usize; 2]) -> Result<()> {
        let length = file.metadata().map_err(|e| self.io(e))?.len();
        let mut file = std::io::BufReader::with_capacity(PIECE, file);
        if length < PREFIX + 8 {
            return Err(self.refuse("it is no checkpoint, or cut short"));
        }
        let mut input = Unhashed { file: &mut file, hash: XxHash3_64::with_seed(0), path: self.keep.path };
        let prefix = input.read(PREFIX as usize)?;
        if &prefix[..8] != MAGIC {
            return Err(self.refuse("it is no checkpoint"));
        }
        let version = u32::from_le_bytes(prefix[8..12].try_into().expect("four bytes"));
        if version != VERSION {
            return Err(self.refuse(format!("its version is {version}, this package reads {VERSION}")));
        }
        let head_length = u64::from_le_bytes(prefix[16..].try_into().expect("eight bytes"));
        if head_length > MAX_HEAD.min(length - PREFIX - 8) {
            return Err(self.refuse("it is damaged or cut short"));
        }
        let head = input.read(head_length as usize)?;
        let head: Head = serde_json::from_slice(&head).map_err(|_| self.refuse("its head is damaged"))?;
        self.compare(&head.depends_on)?;
        if self.expected(&head) != Some(length - PREFIX - 8 - head_length)
            || n_problems
                .checked_sub(head.finished.len())
                .is_none_or(|left| head.under_way.len() != left.min(group))
        {
            return Err(self.refuse("it is damaged or cut short"));
        }
        let (outcomes, saved) = self.read_numbers(&head, &mut input)?;
        let sum = input.hash.finish();
        let mut stored = [0; 8];
        file.read_exact(&mut stored).map_err(|e| self.io(e))?;
        if u64::from_le_bytes(stored) != sum {
            return Err(self.refuse("its checksum is wrong: it is damaged"));
        }
        (self.outcomes, self.state) = (outcomes, Some(saved));
        Ok(())
    }

    /// Refuses the checkpoint of another training.
    fn compare(&self, there: &[(String, String)]) -> Result<()> {
        for (k, (name, here)) in self.depends_on.iter().enumerate() {
            match there.get(k) {
                Some((n, value)) if n == name && value == here => {}
                Some((n, value)) if n == name => {
                    let reason =
                        format!("it belongs to another training: {name} is {value} there and {here} here");
                    return Err(self.refuse(reason + "; use another path or delete the file"));
                }
                _ => return Err(self.refuse("it belongs to another version")),
            }
        }
        Ok(())
    }

    /// Bytes of the numbers; `None` for a head that no training of this shape writes.
    fn expected(&self, head: &Head) -> Option<u64> {
        let n = self.shape.n_rows as u64;
        let ended = head.under_way.iter().filter(|p| p.end.is_some()).count() as u64;
        let mut numbers = (head.finished.len() as u64).checked_mul(self.shape.n_weights as u64 + 5)?;
        for UnderWay { size, .. } in &head.under_way {
            numbers = numbers.checked_add(P::can_have(&self.shape, *size).then_some(*size)?)?;
        }
        if head.n_cached > n {
            return None;
        }
        numbers.checked_add(4 * ended)?.checked_mul(8)?.checked_add(4 * head.n_cached)
    }

    fn read_numbers(
        &self,
        head: &Head,
        input: &mut Unhashed<'_>,
    ) -> Result<(Vec<BlockOutcome>, SavedDescent<P>)> {
        let damaged = || self.refuse("its head is damaged");
        let d = self.shape.n_weights;
        let mut outcomes = Vec::with_capacity(head.finished.len());
        for (name, n_iter) in &head.finished {
            let w = input.numbers(d)?;
            let rest = input.numbers(5)?;
            let certificate = Certificate { primal: rest[1], dual: rest[2] };
            let (status, n_iter) = (status(name).ok_or_else(damaged)?, *n_iter);
            let (intercept, passes, loads) = (rest[0], rest[3], rest[4]);
            outcomes.push(BlockOutcome { w, intercept, certificate, status, n_iter, passes, loads });
        }
        let mut states = Vec::with_capacity(head.under_way.len());
        for UnderWay { visits, size, .. } in &head.under_way {
            states.push(P::read(&self.shape, *size, *visits, input)?.ok_or_else(damaged)?);
        }
        let mut ends = Vec::with_capacity(head.under_way.len());
        for UnderWay { end, .. } in &head.under_way {
            let Some((name, n_iter)) = end else {
                ends.push(None);
                continue;
            };
            let rest = input.numbers(4)?;
            let certificate = Certificate { primal: rest[1], dual: rest[2] };
            let certified = Certified { certificate, intercept: rest[0] };
            let status = status(name).ok_or_else(damaged)?;
            ends.push(Some(ProblemEnd { certified, status, n_iter: *n_iter, loads: rest[3] }));
        }
        let bytes = input.read(4 * head.n_cached as usize)?;
        let cached: Vec<u32> =
            bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect_large();
        if !cached.is_sorted()
            || cached.last().is_some_and(|&position| position as usize >= self.shape.n_rows)
        {
            return Err(damaged());
        }
        let Head { position, loaded_rows, scans, .. } = *head;
        Ok((outcomes, SavedDescent { position, loaded_rows, scans, cached, states, ends }))
    }
}

/// A draft that keeps a checksum.
struct Hashed {
    draft: Draft,
    hash: XxHash3_64,
}

impl Hashed {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.hash.write(bytes);
        self.draft.write(bytes)
    }
}

impl StateOutput for Hashed {
    fn numbers(&mut self, numbers: &[f64]) -> Result<()> {
        for piece in numbers.chunks(PIECE / 8) {
            self.write(&piece.iter().flat_map(|x| x.to_le_bytes()).collect_large())?;
        }
        Ok(())
    }
}

/// A reader that keeps a checksum. The caller has compared all lengths with that of the file.
struct Unhashed<'a> {
    file: &'a mut dyn Read,
    hash: XxHash3_64,
    path: &'a Path,
}

impl Unhashed<'_> {
    fn read(&mut self, n: usize) -> Result<Vec<u8>> {
        let mut bytes = memory::zeros(n);
        self.file
            .read_exact(&mut bytes)
            .map_err(|source| Error::Io { path: self.path.to_owned(), source })?;
        self.hash.write(&bytes);
        Ok(bytes)
    }
}

impl StateInput for Unhashed<'_> {
    fn numbers(&mut self, n: usize) -> Result<Vec<f64>> {
        let mut numbers = memory::with_capacity(n);
        while numbers.len() < n {
            let bytes = self.read(8 * (n - numbers.len()).min(PIECE / 8))?;
            numbers.extend(bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)));
        }
        Ok(numbers)
    }
}
