//! A file that lets a killed search go on where it was.
//!
//! ```text
//! file    = magic "hinge-CV" | u32 format | frame(0, fingerprint) | frame(1, record) | ...
//! frame   = u64 length | u64 checksum | payload of that length
//!           checksum: xxh3 of the payload, seeded by the number
//! record  = f64 C, passes, seconds, unchanged_until | u64 n_iter, inner, flags
//!           | array objective | arrays decisions (one per fold) | arrays state (of the route, afterwards)
//!           | arrays weights (columns, values and intercept of each lane, where weights are sparse)
//! flags   = 1 unchanged, 2 converged, 4 there is a state, 8 there are weights
//! arrays  = u64 count | array ...
//! array   = u64 length | f64 ...                                        all numbers little-endian
//! ```
//!
//! **Creation** is atomic: the header is written to a draft beside the path, synced, and renamed.
//! **Appending** is one write and one sync per finished `C`. **Opening** compares the fingerprint, which is
//! text, and refuses the journal of another search with what differs. The records are then replayed in order;
//! the first that is truncated, has a wrong checksum or is not of the `C` that the plan asks for ends the
//! replay, the file is cut there, and the rest of the search is computed. So a kill at any moment costs the
//! `C` in progress, and damage costs time, never a wrong table. Lengths read from the file are compared with
//! the bytes that are left before anything is allocated.
//!
//! The file is held while a search uses it, so that two searches cannot write into one.
//!
//! **Size.** A record holds the whole state of the route. Of the states in the file only the last, and with
//! refinement those around the best score, are ever read again; so once the dead ones make up most of the
//! file it is rewritten without them (a draft, renamed over the old file): it stays below about four times
//! the live states. Where damage leaves no state to go on from, the route computes it again.
//!
//! Not covered: the bits of a search depend on the vector instructions of the machine, so a journal carried
//! to another kind of processor goes on, but the steps after it may differ in the last digits.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use super::fingerprint::Fingerprint;
use super::{RouteState, SearchStep, SparseWeights};
use crate::durable::draft::Draft;
use crate::durable::frames::{FRAME, frame, read_frame_at};
use crate::durable::held::Held;
use crate::durable::target::{Kind, Replace};
use crate::memory::CollectLarge;
use crate::{Error, Result, memory};

const MAGIC: &[u8; 8] = b"hinge-CV";
const KIND: Kind = Kind { name: "the journal of a search", is_one: |head| head.starts_with(MAGIC) };
const FORMAT: u32 = 1;
/// Bytes before the first frame.
const PREFIX: u64 = 12;
/// The file is not rewritten for fewer bytes of unneeded states than this.
const SMALL: u64 = if cfg!(test) { 1 << 10 } else { 1 << 24 };

/// An open journal: first replayed to its end, then appended to.
pub struct Journal {
    held: Held,
    /// Where the valid part ends, as far as it is read.
    end: u64,
    /// Number of the next frame.
    number: u64,
    is_replaying: bool,
    fingerprint: String,
    /// Every record's value, place and state's size.
    records: Vec<Entry>,
}

/// Where a record is.
#[derive(Clone, Copy)]
struct Entry {
    c: f64,
    offset: u64,
    /// Bytes of its state.
    state: u64,
}

/// A finished step with the state after it; no state if it was dropped as never needed again.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The step.
    pub step: SearchStep,
    /// The route's state.
    pub state: Option<RouteState>,
}

impl Journal {
    /// Opens the journal of a search, or creates it where there is none (or an empty file).
    ///
    /// # Errors
    /// [`Error::Journal`] for a journal of another search, a file that is none, and one in use;
    /// [`Error::Occupied`] for a device and the like; [`Error::Io`].
    pub fn open(path: &Path, fingerprint: &Fingerprint) -> Result<Self> {
        let held = Held::open(path)?.ok_or_else(|| Error::Journal {
            path: path.to_owned(),
            reason: "another search is using it; use another path or wait for its end".into(),
        })?;
        let mut journal = Self {
            held,
            end: PREFIX,
            number: 0,
            is_replaying: true,
            fingerprint: fingerprint.to_text(),
            records: Vec::new(),
        };
        if journal.held.is_empty()? {
            journal.create()?;
            return Ok(journal);
        }
        let there = journal.read_header()?;
        match fingerprint.difference(&there) {
            None => Ok(journal),
            Some(difference) => {
                let reason = format!(
                    "it belongs to another search: {difference}; use another path or delete the file"
                );
                Err(journal.refuse(reason))
            }
        }
    }

    /// The bytes before the first record.
    fn header(&self) -> Vec<u8> {
        let frame = frame(0, self.fingerprint.as_bytes());
        [MAGIC.as_slice(), &FORMAT.to_le_bytes(), &frame].concat()
    }

    fn draft(&self) -> Result<Draft> {
        Draft::new(self.held.path(), KIND, Replace::SameKind)
    }

    fn create(&mut self) -> Result<()> {
        let (mut draft, header) = (self.draft()?, self.header());
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
        if !is_read || &prefix[..8] != MAGIC {
            return Err(self.refuse("it is not the journal of a search".into()));
        }
        let format = u32::from_le_bytes(prefix[8..].try_into().expect("four bytes"));
        if format != FORMAT {
            return Err(self.refuse(format!("its format is {format}, this version reads {FORMAT}")));
        }
        let header = self.read_frame()?.and_then(|(_, payload)| String::from_utf8(payload).ok());
        header.ok_or_else(|| self.refuse("its header is damaged; delete the file to start anew".into()))
    }

    /// The next frame, with its offset, if it is whole; moves past it.
    fn read_frame(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        let offset = self.end;
        let payload = self.read_frame_at(offset, self.number)?;
        Ok(payload.map(|payload| {
            self.end += FRAME + payload.len() as u64;
            self.number += 1;
            (offset, payload)
        }))
    }

    fn read_frame_at(&mut self, offset: u64, number: u64) -> Result<Option<Vec<u8>>> {
        read_frame_at(self.held.file(), offset, number).map_err(|e| self.io(e))
    }

    /// The next record, if it is whole, of the value `c` and acceptable to `is_fitting`. Else the file is
    /// cut, and everything that follows is appended.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn replay(&mut self, c: f64, is_fitting: impl Fn(&Record) -> bool) -> Result<Option<Record>> {
        if !self.is_replaying {
            return Ok(None);
        }
        let start = (self.end, self.number);
        if let Some((offset, payload)) = self.read_frame()?
            && let Some(record) = decode(&payload)
            && record.step.c.to_bits() == c.to_bits()
            && is_fitting(&record)
        {
            self.note(c, offset, record.state.as_ref());
            return Ok(Some(record));
        }
        (self.end, self.number) = start;
        self.is_replaying = false;
        let (file, end) = (self.held.file(), self.end);
        file.set_len(end).and_then(|()| file.sync_all()).map_err(|e| self.io(e))?;
        Ok(None)
    }

    /// The state after the record of `c`, if it is in the file and whole.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn state_at(&mut self, c: f64) -> Result<Option<RouteState>> {
        let Some(k) = self.records.iter().position(|record| record.c == c && record.state > 0) else {
            return Ok(None);
        };
        let payload = self.read_frame_at(self.records[k].offset, k as u64 + 1)?;
        Ok(payload.and_then(|payload| decode(&payload)).and_then(|record| record.state))
    }

    /// Writes a record and makes it durable.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn append(&mut self, step: &SearchStep, state: &RouteState) -> Result<()> {
        let payload = encode(step, Some(state));
        let bytes = frame(self.number, &payload);
        let write = |file: &mut File, end| {
            file.seek(SeekFrom::Start(end))?;
            file.write_all(&bytes)?;
            file.sync_data()
        };
        let end = self.end;
        write(self.held.file(), end).map_err(|e| self.io(e))?;
        self.note(step.c, self.end, Some(state));
        self.end += bytes.len() as u64;
        self.number += 1;
        Ok(())
    }

    fn note(&mut self, c: f64, offset: u64, state: Option<&RouteState>) {
        let state = state.map_or(0, |state| state.0.iter().map(|array| 8 + 8 * array.len() as u64).sum());
        self.records.push(Entry { c, offset, state });
    }

    /// Rewrites the file without the states that are not needed, if they are most of it. The last state
    /// always is.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn tidy(&mut self, needs: impl Fn(f64) -> bool) -> Result<()> {
        if self.is_replaying {
            return Ok(());
        }
        let last = self.records.last().map(|record| record.c);
        let is_dead = |record: &Entry| record.state > 0 && Some(record.c) != last && !needs(record.c);
        let dead: u64 = self.records.iter().filter(|record| is_dead(record)).map(|record| record.state).sum();
        // Of a journal that somebody removed in the meantime nothing is written back: another search may have
        // the name.
        if dead < SMALL || dead < self.end / 4 * 3 || !self.held.is_current() {
            return Ok(());
        }
        self.rewrite(&is_dead)
    }

    fn rewrite(&mut self, is_dead: &dyn Fn(&Entry) -> bool) -> Result<()> {
        let (mut draft, mut bytes) = (self.draft()?, self.header());
        let mut records = Vec::with_capacity(self.records.len());
        for k in 0..self.records.len() {
            let (entry, number) = (self.records[k], k as u64 + 1);
            let record = self.read_frame_at(entry.offset, number)?.and_then(|payload| decode(&payload));
            let record =
                record.ok_or_else(|| self.refuse(format!("record {number} has changed while in use")))?;
            let state = record.state.as_ref().filter(|_| !is_dead(&entry));
            let payload = encode(&record.step, state);
            let offset = draft.len() + bytes.len() as u64;
            let state = if state.is_some() { entry.state } else { 0 };
            records.push(Entry { offset, state, ..entry });
            bytes.extend(frame(number, &payload));
            if bytes.len() as u64 > SMALL {
                draft.write(&bytes)?;
                bytes.clear();
            }
        }
        draft.write(&bytes)?;
        let end = draft.len();
        self.held.replace(draft)?;
        (self.end, self.records) = (end, records);
        Ok(())
    }
}

fn encode(step: &SearchStep, state: Option<&RouteState>) -> Vec<u8> {
    let arrays = |arrays: &[Vec<f64>]| arrays.iter().map(|a| 8 + 8 * a.len()).sum::<usize>();
    let size =
        96 + 8 * step.objective.len() + arrays(&step.decisions) + state.map_or(0, |state| arrays(&state.0));
    let mut bytes = memory::with_capacity(size);
    for number in [step.c, step.passes, step.seconds, step.unchanged_until] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let flags = u64::from(step.is_unchanged)
        | u64::from(step.is_converged) << 1
        | u64::from(state.is_some()) << 2
        | u64::from(step.weights.is_some()) << 3
        | u64::from(step.starts_near) << 4;
    for number in [step.n_iter as u64, step.inner as u64, flags] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    put_array(&mut bytes, &step.objective);
    put_arrays(&mut bytes, &step.decisions);
    if let Some(state) = state {
        put_arrays(&mut bytes, &state.0);
    }
    if let Some(weights) = &step.weights {
        bytes.extend_from_slice(&(3 * weights.len() as u64).to_le_bytes());
        for SparseWeights { columns, values, intercept } in weights.iter() {
            put_array(&mut bytes, &columns.iter().map(|&j| f64::from(j)).collect_large());
            put_array(&mut bytes, values);
            put_array(&mut bytes, &[*intercept]);
        }
    }
    bytes
}

fn put_array(bytes: &mut Vec<u8>, array: &[f64]) {
    bytes.extend_from_slice(&(array.len() as u64).to_le_bytes());
    memory::extend(bytes, array.iter().flat_map(|x| x.to_le_bytes()));
}

fn put_arrays(bytes: &mut Vec<u8>, arrays: &[Vec<f64>]) {
    bytes.extend_from_slice(&(arrays.len() as u64).to_le_bytes());
    arrays.iter().for_each(|array| put_array(bytes, array));
}

/// The record of a payload, if the payload is one.
fn decode(payload: &[u8]) -> Option<Record> {
    let mut bytes = Bytes(payload);
    let [c, passes, seconds, unchanged_until] = [bytes.f64()?, bytes.f64()?, bytes.f64()?, bytes.f64()?];
    let [n_iter, inner] = [usize::try_from(bytes.u64()?).ok()?, usize::try_from(bytes.u64()?).ok()?];
    let flags = bytes.u64()?;
    let [is_unchanged, is_converged, has_state, has_weights, starts_near] =
        [1, 2, 4, 8, 16].map(|flag| flags & flag != 0);
    let (objective, decisions) = (bytes.array()?, Arc::new(bytes.arrays()?));
    let state = if has_state { Some(RouteState(bytes.arrays()?)) } else { None };
    let weights = if has_weights { Some(Arc::new(sparse_weights(&bytes.arrays()?)?)) } else { None };
    let step = SearchStep {
        c,
        passes,
        n_iter,
        inner,
        is_unchanged,
        starts_near,
        is_converged,
        unchanged_until,
        objective,
        decisions,
        weights,
        seconds,
        is_replayed: true,
    };
    bytes.0.is_empty().then_some(Record { step, state })
}

/// The weights of all lanes, if the arrays are such.
fn sparse_weights(arrays: &[Vec<f64>]) -> Option<Vec<SparseWeights>> {
    let lane = |lane: &[Vec<f64>]| {
        let [columns, values, intercept] = lane else { return None };
        let column =
            |&j: &f64| (j >= 0.0 && j.fract() == 0.0 && j <= f64::from(u32::MAX)).then_some(j as u32);
        let columns = columns.iter().map(column).collect::<Option<Vec<u32>>>()?;
        let is_whole = columns.len() == values.len() && columns.is_sorted_by(|a, b| a < b);
        let &[intercept] = &intercept[..] else { return None };
        is_whole.then(|| SparseWeights { columns, values: memory::copy(values), intercept })
    };
    arrays.chunks(3).map(lane).collect()
}

/// What is left of a payload.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn u64(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*number))
    }

    fn f64(&mut self) -> Option<f64> {
        self.u64().map(f64::from_bits)
    }

    /// A count of things of at least eight bytes each, if there can be as many.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.u64()?).ok()?;
        (count <= self.0.len() / 8).then_some(count)
    }

    fn array(&mut self) -> Option<Vec<f64>> {
        let count = self.count()?;
        let (numbers, rest) = self.0.split_at(8 * count);
        self.0 = rest;
        Some(
            numbers
                .chunks_exact(8)
                .map(|x| f64::from_le_bytes(x.try_into().expect("eight bytes")))
                .collect_large(),
        )
    }

    fn arrays(&mut self) -> Option<Vec<Vec<f64>>> {
        let count = self.count()?;
        (0..count).map(|_| self.array()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Intercept, SolverKind};
    use crate::labels::{Labels, MultiClass};
    use crate::loss::LossKind;
    use crate::search::{Fold, SearchData, SearchPlan, SearchSettings, StopRule, Values};
    use proptest::prelude::*;
    use std::path::PathBuf;

    fn fingerprint(seed: u64) -> Fingerprint {
        let (view, _) = crate::matrix::dense::DenseView::new(&[1.0, 2.0], 2, 1).unwrap();
        let folds = [Fold { train: vec![0], test: vec![1] }];
        let labels = Labels { ids: &[0, 1], n_classes: 2 };
        let task =
            SearchData { rows: &view.into(), labels, weight: &[1.0, 1.0], folds: &folds, penalty: None };
        let (intercept, solver) = (Intercept::Free, SolverKind::Auto);
        let settings = SearchSettings {
            loss: LossKind::Hinge,
            intercept,
            params: crate::fit::Params { solver, tol: 0.1, max_iter: 9, seed },
            multi_class: MultiClass::OneVsRest,
        };
        let plan = SearchPlan { values: Values::List(vec![1.0, 2.0]), refine: 0, stop: StopRule::Exact };
        Fingerprint::of(&task, &settings, &plan)
    }

    /// The record of the `k`-th value, `2^k`; numbers that a text format would lose among them.
    fn record(k: usize, state_length: usize) -> Record {
        let c = (k as f64).exp2();
        let weights = SparseWeights {
            columns: vec![0, 7, 4_000_000_000],
            values: vec![c, -0.0, 1e-300],
            intercept: 0.5,
        };
        let step = SearchStep {
            c,
            passes: 0.1 * c,
            n_iter: k,
            inner: 3 * k,
            is_unchanged: k % 2 == 1,
            starts_near: k % 5 > 1,
            is_converged: k % 3 == 1,
            unchanged_until: if k == 2 { f64::INFINITY } else { c },
            objective: vec![c / 3.0, -0.0],
            decisions: Arc::new(vec![vec![c; k], vec![f64::MIN_POSITIVE]]),
            weights: k.is_multiple_of(2).then(|| Arc::new(vec![SparseWeights::default(), weights.clone()])),
            seconds: 1.0 / 3.0,
            is_replayed: true,
        };
        Record { step, state: Some(RouteState(vec![vec![c / 7.0; state_length], vec![]])) }
    }

    fn write(path: &Path, count: usize, state_length: usize) {
        let mut journal = Journal::open(path, &fingerprint(0)).unwrap();
        for k in 0..count {
            let Record { step, state } = record(k, state_length);
            journal.append(&step, &state.unwrap()).unwrap();
        }
    }

    /// The records that a journal replays, which must be the true ones, and the journal.
    fn replay(path: &Path) -> (usize, Journal) {
        let mut journal = Journal::open(path, &fingerprint(0)).unwrap();
        let mut count = 0;
        while let Some(found) = journal.replay((count as f64).exp2(), |_| true).unwrap() {
            let true_one = record(count, 2);
            assert_eq!((&found.step, &found.state), (&true_one.step, &true_one.state));
            count += 1;
        }
        (count, journal)
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("search.journal");
        (folder, path)
    }

    #[test]
    fn records_come_back_and_more_can_follow() {
        let (folder, path) = folder();
        write(&path, 3, 2);
        let (count, mut journal) = replay(&path);
        assert_eq!(count, 3);
        assert_eq!(journal.state_at(2.0).unwrap(), record(1, 2).state);
        assert_eq!(journal.state_at(3.0).unwrap(), None);
        let next = record(3, 2);
        journal.append(&next.step, next.state.as_ref().unwrap()).unwrap();
        drop(journal);
        assert_eq!(replay(&path).0, 4);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn an_empty_file_is_a_new_journal() {
        let (_folder, path) = folder();
        std::fs::write(&path, b"").unwrap();
        write(&path, 1, 2);
        assert_eq!(replay(&path).0, 1);
    }

    #[test]
    fn another_value_or_shape_ends_the_replay() {
        let (_folder, path) = folder();
        write(&path, 3, 2);
        let mut journal = Journal::open(&path, &fingerprint(0)).unwrap();
        assert!(journal.replay(1.0, |_| true).unwrap().is_some());
        assert!(journal.replay(3.0, |_| true).unwrap().is_none());
        assert!(journal.replay(2.0, |_| true).unwrap().is_none(), "the rest is cut off");
        drop(journal);
        let mut journal = Journal::open(&path, &fingerprint(0)).unwrap();
        assert!(journal.replay(1.0, |_| false).unwrap().is_none());
    }

    #[test]
    fn other_searches_and_other_files_are_refused() {
        let (_folder, path) = folder();
        write(&path, 1, 2);
        let message = |f: &Fingerprint| Journal::open(&path, f).err().unwrap().to_string();
        assert!(
            message(&fingerprint(5)).contains("seed is 0 there and 5 here"),
            "{}",
            message(&fingerprint(5))
        );
        let held = Journal::open(&path, &fingerprint(0)).unwrap();
        assert!(message(&fingerprint(0)).contains("another search is using it"));
        drop(held);
        std::fs::write(&path, b"C,score\n1,0.5\n").unwrap();
        assert!(message(&fingerprint(0)).contains("not the journal of a search"));
        std::fs::write(&path, b"hinge-CV\x07\0\0\0").unwrap();
        assert!(message(&fingerprint(0)).contains("its format is 7"));
        let folder = path.parent().unwrap();
        assert!(Journal::open(folder, &fingerprint(0)).is_err());
        assert!(Journal::open(&folder.join("no/such"), &fingerprint(0)).is_err());
    }

    #[test]
    fn every_truncation_replays_whole_records_only() {
        let (_folder, path) = folder();
        write(&path, 3, 2);
        let whole = std::fs::read(&path).unwrap();
        let mut ends = vec![PREFIX as usize];
        while *ends.last().unwrap() < whole.len() {
            let at = *ends.last().unwrap();
            let length = u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
            ends.push(at + FRAME as usize + length);
        }
        for length in 1..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            if length < ends[1] {
                assert!(matches!(Journal::open(&path, &fingerprint(0)), Err(Error::Journal { .. })));
                continue;
            }
            let (count, mut journal) = replay(&path);
            assert_eq!(count, ends[2..].iter().filter(|end| **end <= length).count(), "{length} bytes");
            let next = record(count, 2);
            journal.append(&next.step, next.state.as_ref().unwrap()).unwrap();
            drop(journal);
            assert_eq!(std::fs::read(&path).unwrap(), whole[..ends[count + 2]], "cut to {length} and mended");
        }
    }

    #[test]
    fn hostile_lengths_allocate_nothing() {
        for count in [u64::MAX, 1 << 60, 9] {
            let mut payload = vec![0; 56];
            payload.extend_from_slice(&count.to_le_bytes());
            payload.extend_from_slice(&[0; 64]);
            assert_eq!(decode(&payload), None);
        }
        let (_folder, path) = folder();
        write(&path, 1, 2);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.len() - (frame(1, &encode(&record(0, 2).step, record(0, 2).state.as_ref())).len());
        bytes[at..at + 8].copy_from_slice(&(u64::MAX - 20).to_le_bytes());
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(replay(&path).0, 0);
    }

    #[test]
    fn dead_states_are_dropped_from_the_file() {
        let (_folder, path) = folder();
        let length = SMALL as usize;
        let mut journal = Journal::open(&path, &fingerprint(0)).unwrap();
        for k in 0..12 {
            let Record { step, state } = record(k, length);
            journal.append(&step, &state.unwrap()).unwrap();
            journal.tidy(|c| c == 2.0).unwrap();
            assert!(journal.end <= 10 * 8 * SMALL, "{} bytes", journal.end);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), journal.end);
        assert_eq!(journal.state_at(2.0).unwrap(), record(1, length).state);
        drop(journal);
        let mut journal = Journal::open(&path, &fingerprint(0)).unwrap();
        for k in 0..12 {
            let found = journal.replay((k as f64).exp2(), |_| true).unwrap().unwrap();
            assert_eq!(found.step, record(k, 0).step);
        }
        for (c, k) in [(2.0, 1), (2048.0, 11)] {
            assert_eq!(journal.state_at(c).unwrap(), record(k, length).state);
        }
        assert_eq!(journal.state_at(1.0).unwrap(), None);
    }

    proptest! {
        #[test]
        fn flipped_bytes_never_change_what_is_replayed(
            flips in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..4),
        ) {
            let (_folder, path) = folder();
            write(&path, 3, 2);
            let mut bytes = std::fs::read(&path).unwrap();
            let before = bytes.clone();
            for (at, mask) in flips {
                let at = at.index(bytes.len());
                bytes[at] ^= mask;
            }
            std::fs::write(&path, &bytes).unwrap();
            match Journal::open(&path, &fingerprint(0)) {
                Err(error) => prop_assert!(matches!(error, Error::Journal { .. }), "{error}"),
                Ok(journal) => {
                    drop(journal);
                    let (count, _) = replay(&path);
                    prop_assert!(count < 3 || bytes == before);
                }
            }
        }

        #[test]
        fn any_payload_is_a_record_or_none(payload in prop::collection::vec(any::<u8>(), 0..300)) {
            if let Some(record) = decode(&payload) {
                prop_assert_eq!(encode(&record.step, record.state.as_ref()).len(), payload.len());
            }
        }
    }
}
