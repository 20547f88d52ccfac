//! A file that lets a killed search go on where it was.
//!
//! ```text
//! file    = magic "hinge-CV" | u32 format | frame(0, fingerprint) | frame(1, record) | ...
//! record  = f64 C, passes, seconds, unchanged_until | u64 n_iter, inner, flags
//!           | array objective | arrays decisions (one per fold) | arrays state (of the route, afterwards)
//!           | arrays weights (columns, values and intercept of each lane, where weights are sparse)
//! flags   = 1 unchanged, 2 converged, 4 there is a state, 8 there are weights
//! arrays  = u64 count | array ...
//! array   = u64 length | f64 ...                                        all numbers little-endian
//! ```
//!
//! The file is a [`crate::durable::log`]: created whole, held while a search uses it, refused with what
//! differs where it is of another search. A finished `C` is one write and one sync. A record that is not of
//! the `C` that the plan asks for ends the replay as a damaged one does: the rest of the search is computed.
//! Lengths read from the file are compared with the bytes that are left before anything is allocated.
//!
//! **Size.** A record holds the whole state of the route. Of the states in the file only the last, and with
//! refinement those around the best score, are ever read again; so once the dead ones make up most of the
//! file it is rewritten without them (a draft, renamed over the old file): it stays below about four times
//! the live states. Where damage leaves no state to go on from, the route computes it again.
//!
//! Not covered: the bits of a search depend on the vector instructions of the machine, so a journal carried
//! to another kind of processor goes on, but the steps after it may differ in the last digits.

use std::path::Path;
use std::sync::Arc;

use super::fingerprint::Fingerprint;
use super::{RouteState, SearchStep};
use crate::durable::log::{Log, LogKind};
use crate::durable::target::Kind;
use crate::labels::sparse_weights::SparseWeights;
use crate::memory::CollectLarge;
use crate::{Result, memory};

const MAGIC: &[u8; 8] = b"hinge-CV";
const KIND: LogKind = LogKind {
    kind: Kind { name: "the journal of a search", is_one: |head| head.starts_with(MAGIC) },
    magic: MAGIC,
    format: 1,
    task: "search",
};
/// The file is not rewritten for fewer bytes of unneeded states than this.
const SMALL: u64 = if cfg!(test) { 1 << 10 } else { 1 << 24 };

/// An open journal: first replayed to its end, then appended to.
pub struct Journal {
    log: Log,
    /// Every record's value and size of state.
    records: Vec<Entry>,
}

/// What is known of a record.
#[derive(Clone, Copy)]
struct Entry {
    c: f64,
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

/// Whether a file with these first bytes is the journal of a search that depends on what is called so.
pub fn is_of(head: &[u8], name: &str) -> bool {
    (KIND.kind.is_one)(head) && head.windows(name.len()).any(|part| part == name.as_bytes())
}

impl Journal {
    /// Opens the journal of a search, or creates it where there is none (or an empty file).
    ///
    /// # Errors
    /// [`crate::Error::Journal`] for a journal of another search, a file that is none, and one in use;
    /// [`crate::Error::Occupied`] for a device and the like; [`crate::Error::Io`].
    pub fn open(path: &Path, fingerprint: &Fingerprint) -> Result<Self> {
        let log = Log::open(path, KIND, fingerprint.to_text(), |there| fingerprint.difference(there))?;
        Ok(Self { log, records: Vec::new() })
    }

    /// The next record, if it is whole, of the value `c` and acceptable to `is_fitting`. Else the file is
    /// cut, and everything that follows is appended.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn replay(&mut self, c: f64, is_fitting: impl Fn(&Record) -> bool) -> Result<Option<Record>> {
        let is_asked_for = |record: &Record| record.step.c.to_bits() == c.to_bits() && is_fitting(record);
        let record = self.log.replay(|payload| decode(&payload).filter(is_asked_for))?;
        if let Some(record) = &record {
            self.note(c, record.state.as_ref());
        }
        Ok(record)
    }

    /// The state after the record of `c`, if it is in the file and whole.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn state_at(&mut self, c: f64) -> Result<Option<RouteState>> {
        let Some(k) = self.records.iter().position(|record| record.c == c && record.state > 0) else {
            return Ok(None);
        };
        let payload = self.log.read(k + 1)?;
        Ok(payload.and_then(|payload| decode(&payload)).and_then(|record| record.state))
    }

    /// Writes a record and makes it durable.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn append(&mut self, step: &SearchStep, state: &RouteState) -> Result<()> {
        self.log.append(&encode(step, Some(state)))?;
        self.log.sync()?;
        self.note(step.c, Some(state));
        Ok(())
    }

    fn note(&mut self, c: f64, state: Option<&RouteState>) {
        let state = state.map_or(0, |state| state.0.iter().map(|array| 8 + 8 * array.len() as u64).sum());
        self.records.push(Entry { c, state });
    }

    /// Rewrites the file without the states that are not needed, if they are most of it. The last state
    /// always is.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn tidy(&mut self, needs: impl Fn(f64) -> bool) -> Result<()> {
        if self.log.is_replaying() {
            return Ok(());
        }
        let last = self.records.last().map(|record| record.c);
        let is_dead = |record: &Entry| record.state > 0 && Some(record.c) != last && !needs(record.c);
        let dead: u64 = self.records.iter().filter(|record| is_dead(record)).map(|record| record.state).sum();
        // Of a journal that somebody removed in the meantime nothing is written back: another search may have
        // the name.
        if dead < SMALL || dead < self.log.size() / 4 * 3 || !self.log.is_current() {
            return Ok(());
        }
        let is_dead: Vec<bool> = self.records.iter().map(is_dead).collect();
        self.log.rewrite(|number, payload| {
            let Record { step, state } = decode(payload)?;
            Some(encode(&step, state.as_ref().filter(|_| !is_dead[number - 1])))
        })?;
        let dropped = self.records.iter_mut().zip(is_dead).filter(|(_, is_dead)| *is_dead);
        dropped.for_each(|(record, _)| record.state = 0);
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
    use crate::Error;
    use crate::durable::frames::{FRAME, frame};
    use crate::durable::log::PREFIX;
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
            assert!(journal.log.size() <= 10 * 8 * SMALL, "{} bytes", journal.log.size());
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), journal.log.size());
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
