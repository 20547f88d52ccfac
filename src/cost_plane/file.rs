//! A plane in a file, written layer by layer while it is explored.
//!
//! ```text
//! file    = magic "hinge-PL" | u32 format | frame 0 (header) | frame 1 (problem) | frame 2 (layer 0) | ...
//!           | last frame (end)
//! frame   = u64 length | u64 checksum | payload of that length
//!           checksum: xxh3 of the payload, seeded by the frame's number
//! payload = u32 kind | fields in the order written below; a list is a u64 count and its numbers
//! header  = the caller's bytes
//! problem = f64 limits (2), list u64 packed sets of facet 0, list f64 perturbation
//! layer   = u32 first facet, u32 first vertex, lists u32 parent, entry, lengths, events, beyond, corner,
//!           list f64 vertices (3 each)
//! end     = u32 how, u64 attempts, moves, refreshed, refined, facets, edges, vertices, unbounded, unmatched,
//!           inverted, f64 area, lists u32 empty, special
//!                                                                                all numbers little-endian
//! ```
//!
//! Layers go to a draft ([`crate::durable::draft`]) beside the target, which gets its name when the
//! exploration has ended (also by a limit or an interrupt): a kill leaves no half-written plane under that
//! name. Some 85 bytes per facet. Lengths read from a file are compared with the bytes that are left before
//! anything is allocated.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use twox_hash::XxHash3_64;

use super::complex::{Complex, ConsistencyReport, ExplorationEnd};
use super::explore::{Effort, Passed};
use super::keys::Event;
use super::layers::{Layer, Sink, settle};
use super::polygon::Vertex;
use crate::durable::draft::Draft;
use crate::durable::target::Kind;
use crate::memory::CollectLarge;
use crate::{Error, Result, memory};

const MAGIC: &[u8; 8] = b"hinge-PL";
/// Cost-plane files, damaged ones too.
pub const KIND: Kind = Kind { name: "a cost-plane file", is_one: |head| head.starts_with(MAGIC) };
const FORMAT: u32 = 1;
const HEADER: u32 = 0;
const PROBLEM: u32 = 1;
const LAYER: u32 = 2;
const END: u32 = 3;
const ENDS: [ExplorationEnd; 4] = [
    ExplorationEnd::Complete,
    ExplorationEnd::Limit,
    ExplorationEnd::Interrupted,
    ExplorationEnd::Inconsistent,
];

/// Writes a plane.
pub struct PlaneWriter {
    draft: Draft,
    n_frames: u64,
    payload: Vec<u8>,
}

impl PlaneWriter {
    /// Begins the draft of attempt `number` beside `target`.
    ///
    /// # Errors
    /// As of [`Draft::new`].
    pub fn new(target: &Path, number: usize) -> Result<Self> {
        let mut draft = Draft::numbered(target, number, KIND)?;
        draft.write(&[MAGIC.as_slice(), &FORMAT.to_le_bytes()].concat())?;
        Ok(Self { draft, n_frames: 0, payload: Vec::new() })
    }

    /// Writes what precedes the layers.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn begin(
        &mut self,
        header: &[u8],
        perturbation: &[f64],
        limit: [f64; 2],
        start: &[u64],
    ) -> Result<()> {
        self.kind(HEADER);
        memory::extend_from_slice(&mut self.payload, header);
        self.frame()?;
        self.kind(PROBLEM);
        limit.iter().for_each(|x| self.payload.extend_from_slice(&x.to_le_bytes()));
        self.list(start, |x| x.to_le_bytes());
        self.list(perturbation, |x| x.to_le_bytes());
        self.frame()
    }

    /// Writes how it ended, makes all durable and gives the file its name.
    ///
    /// # Errors
    /// As of [`Draft::publish`].
    pub fn publish(mut self, passed: &Passed, attempts: usize) -> Result<()> {
        let Passed { end, report, effort, .. } = passed;
        self.kind(END);
        let code = ENDS.iter().position(|e| e == end).unwrap_or_default() as u32;
        self.payload.extend_from_slice(&code.to_le_bytes());
        let counts = [attempts, report.facets, report.edges, report.vertices, report.unbounded];
        let numbers = [counts[0] as u64, effort.moves, effort.refreshed, effort.refined];
        let rest = [report.unmatched, report.inverted];
        for x in numbers.into_iter().chain(counts[1..].iter().chain(&rest).map(|&x| x as u64)) {
            self.payload.extend_from_slice(&x.to_le_bytes());
        }
        self.payload.extend_from_slice(&report.area.to_le_bytes());
        self.list(&report.empty, |x| x.to_le_bytes());
        self.list(&report.special, |x| x.to_le_bytes());
        self.frame()?;
        self.draft.publish().map(drop)
    }

    fn kind(&mut self, kind: u32) {
        self.payload.clear();
        self.payload.extend_from_slice(&kind.to_le_bytes());
    }

    fn list<T: Copy, const N: usize>(&mut self, list: &[T], bytes: impl Fn(T) -> [u8; N]) {
        memory::reserve(&mut self.payload, 8 + N * list.len());
        self.payload.extend_from_slice(&(list.len() as u64).to_le_bytes());
        list.iter().for_each(|&x| self.payload.extend_from_slice(&bytes(x)));
    }

    fn frame(&mut self) -> Result<()> {
        let sum = XxHash3_64::oneshot_with_seed(self.n_frames, &self.payload);
        let head = [(self.payload.len() as u64).to_le_bytes(), sum.to_le_bytes()].concat();
        self.n_frames += 1;
        self.draft.write(&head)?;
        self.draft.write(&self.payload)
    }
}

impl Sink for PlaneWriter {
    fn layer(&mut self, layer: &Layer) -> Result<()> {
        self.kind(LAYER);
        for x in [layer.first_facet, layer.first_vertex] {
            self.payload.extend_from_slice(&x.to_le_bytes());
        }
        self.list(&layer.parent, |x| x.to_le_bytes());
        self.list(&layer.entry, |x| x.0.to_le_bytes());
        self.list(&layer.lengths, |x| x.to_le_bytes());
        self.list(&layer.events, |x| x.0.to_le_bytes());
        self.list(&layer.beyond, |x| x.to_le_bytes());
        self.list(&layer.corner, |x| x.to_le_bytes());
        self.list(layer.vertices.as_flattened(), |x| x.to_le_bytes());
        self.frame()
    }
}

/// An open cost-plane file: all but the layers is in memory.
#[derive(Clone, Debug)]
pub struct PlaneFile {
    path: PathBuf,
    /// The bytes that the writer's caller stored in it.
    pub header: Vec<u8>,
    /// Limits of `C+` and `C-`.
    pub limit: [f64; 2],
    /// Packed sets of facet 0.
    pub start: Vec<u64>,
    /// `eps_i`.
    pub perturbation: Vec<f64>,
    /// How the exploration ended.
    pub end: ExplorationEnd,
    /// Perturbations tried.
    pub attempts: usize,
    /// Work of the last attempt.
    pub effort: Effort,
    /// What the check found.
    pub report: ConsistencyReport,
    /// Offsets of the frames of the layers.
    layers: Vec<u64>,
}

impl PlaneFile {
    /// Opens a file. Cost: one seek per layer.
    ///
    /// # Errors
    /// [`Error::PlaneFile`]; [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let mut frames = Frames::open(path)?;
        let (mut header, mut problem) = (frames.next(HEADER)?, frames.next(PROBLEM)?);
        let (limit, start, perturbation) = (
            [problem.f64()?, problem.f64()?],
            problem.list(u64::from_le_bytes)?,
            problem.list(f64::from_le_bytes)?,
        );
        let mut layers = Vec::new();
        while !frames.is_last()? {
            layers.push(frames.at);
            frames.skip()?;
        }
        let mut end = frames.next(END)?;
        let code = end.u32()? as usize;
        let how = *ENDS.get(code).ok_or_else(|| end.corrupt("how it ended"))?;
        let mut count = || end.u64();
        let attempts = count()? as usize;
        let effort = Effort { moves: count()?, refreshed: count()?, refined: count()? };
        let mut report = ConsistencyReport {
            facets: count()? as usize,
            edges: count()? as usize,
            vertices: count()? as usize,
            unbounded: count()? as usize,
            unmatched: count()? as usize,
            inverted: count()? as usize,
            ..ConsistencyReport::default()
        };
        report.area = end.f64()?;
        report.empty = end.list(u32::from_le_bytes)?;
        report.special = end.list(u32::from_le_bytes)?;
        let header = std::mem::take(&mut header.bytes).split_off(4);
        let path = path.to_owned();
        Ok(Self { path, header, limit, start, perturbation, end: how, attempts, effort, report, layers })
    }

    /// Number of layers.
    pub fn n_layers(&self) -> usize {
        self.layers.len()
    }

    /// Reads layer `k`, below [`Self::n_layers`]. Facets beyond that were never closed are
    /// [`super::complex::OPEN`].
    ///
    /// # Errors
    /// [`Error::PlaneFile`]; [`Error::Io`].
    pub fn layer(&self, k: usize) -> Result<Layer> {
        let mut frames = Frames::open(&self.path)?;
        self.read(&mut frames, k)
    }

    fn read(&self, frames: &mut Frames, k: usize) -> Result<Layer> {
        (frames.at, frames.number) = (self.layers[k], k as u64 + 2);
        let mut payload = frames.next(LAYER)?;
        let events = |list: Vec<u32>| list.into_iter().map(Event).collect_large();
        let mut layer = Layer {
            first_facet: payload.u32()?,
            first_vertex: payload.u32()?,
            parent: payload.list(u32::from_le_bytes)?,
            entry: events(payload.list(u32::from_le_bytes)?),
            lengths: payload.list(u32::from_le_bytes)?,
            events: events(payload.list(u32::from_le_bytes)?),
            beyond: payload.list(u32::from_le_bytes)?,
            corner: payload.list(u32::from_le_bytes)?,
            vertices: Vec::new(),
        };
        let flat = payload.list(f64::from_le_bytes)?;
        layer.vertices = flat.chunks_exact(3).map(|v| -> Vertex { [v[0], v[1], v[2]] }).collect_large();
        settle(&mut layer.beyond, self.report.facets + self.report.empty.len());
        Ok(layer)
    }

    /// Reads the whole plane into memory.
    ///
    /// # Errors
    /// [`Error::PlaneFile`], also for layers that contradict each other; [`Error::Io`].
    pub fn load(&self) -> Result<Complex> {
        let mut frames = Frames::open(&self.path)?;
        let mut complex = Complex {
            n_rows: self.perturbation.len(),
            limit: self.limit,
            start: memory::copy(&self.start),
            parent: Vec::new(),
            entry: Vec::new(),
            layers: vec![0],
            first: vec![0],
            events: Vec::new(),
            beyond: Vec::new(),
            corner: Vec::new(),
            vertices: Vec::new(),
            end: self.end,
        };
        let mut n_edges = 0_u32;
        for k in 0..self.layers.len() {
            let layer = self.read(&mut frames, k)?;
            if layer.first_facet as usize != complex.len()
                || layer.first_vertex as usize != complex.vertices.len()
            {
                return Err(frames.corrupt(format!("layer {k} does not begin where the one before ends")));
            }
            for length in layer.lengths {
                let sum = n_edges.checked_add(length);
                n_edges = sum.ok_or_else(|| {
                    frames.corrupt("it has more edges than 32-bit numbers can count".into())
                })?;
                complex.first.push(n_edges);
            }
            memory::extend(&mut complex.parent, layer.parent);
            memory::extend(&mut complex.entry, layer.entry);
            memory::extend(&mut complex.events, layer.events);
            memory::extend(&mut complex.beyond, layer.beyond);
            memory::extend(&mut complex.corner, layer.corner);
            memory::extend(&mut complex.vertices, layer.vertices);
            complex.layers.push(complex.parent.len() as u32);
        }
        match complex.fault() {
            Some(reason) => Err(frames.corrupt(format!("its arrays do not describe a plane: {reason}"))),
            None => Ok(complex),
        }
    }
}

/// The frames of a file, one after the other.
struct Frames {
    path: PathBuf,
    file: BufReader<File>,
    length: u64,
    at: u64,
    number: u64,
}

impl Frames {
    fn open(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let mut frames = Self {
            path: path.to_owned(),
            file: BufReader::with_capacity(1 << 16, file),
            length,
            at: 12,
            number: 0,
        };
        let mut prefix = [0; 12];
        if frames.file.read_exact(&mut prefix).is_err() || &prefix[..8] != MAGIC {
            return Err(frames.corrupt("it does not begin like one".into()));
        }
        match u32::from_le_bytes([prefix[8], prefix[9], prefix[10], prefix[11]]) {
            FORMAT => Ok(frames),
            other => Err(frames.corrupt(format!("its format is {other}, this version reads {FORMAT}"))),
        }
    }

    fn corrupt(&self, reason: String) -> Error {
        Error::PlaneFile { path: self.path.clone(), reason }
    }

    /// Length and checksum of the frame here.
    fn head(&mut self) -> Result<(u64, u64)> {
        let mut head = [0; 16];
        let read = self.file.seek(SeekFrom::Start(self.at)).and_then(|_| self.file.read_exact(&mut head));
        let word = |k: usize| u64::from_le_bytes(std::array::from_fn(|b| head[8 * k + b]));
        let length = word(0);
        if read.is_err() || length < 4 || length > self.length - self.at - 16 {
            return Err(self.corrupt(format!("frame {} is cut off", self.number)));
        }
        Ok((length, word(1)))
    }

    fn is_last(&mut self) -> Result<bool> {
        Ok(self.at + 16 + self.head()?.0 == self.length)
    }

    fn skip(&mut self) -> Result<()> {
        self.at += 16 + self.head()?.0;
        self.number += 1;
        Ok(())
    }

    /// The payload of the frame here, which must be of the given kind.
    fn next(&mut self, kind: u32) -> Result<Payload> {
        let (length, sum) = self.head()?;
        let mut bytes = memory::zeros(length as usize);
        let is_read = self.file.read_exact(&mut bytes).is_ok();
        if !is_read || XxHash3_64::oneshot_with_seed(self.number, &bytes) != sum {
            return Err(self.corrupt(format!("frame {} is damaged", self.number)));
        }
        self.at += 16 + length;
        self.number += 1;
        let mut payload = Payload { path: self.path.clone(), bytes, at: 0 };
        if payload.u32()? == kind { Ok(payload) } else { Err(payload.corrupt("a frame of another kind")) }
    }
}

/// A payload being read.
struct Payload {
    path: PathBuf,
    bytes: Vec<u8>,
    at: usize,
}

impl Payload {
    fn corrupt(&self, what: &str) -> Error {
        Error::PlaneFile { path: self.path.clone(), reason: format!("unexpected: {what}") }
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N]> {
        let bytes = self.bytes.get(self.at..self.at + N).and_then(|bytes| bytes.try_into().ok());
        self.at += N;
        bytes.ok_or_else(|| self.corrupt("the end of a frame"))
    }

    fn u32(&mut self) -> Result<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64> {
        self.take().map(u64::from_le_bytes)
    }

    fn f64(&mut self) -> Result<f64> {
        self.take().map(f64::from_le_bytes)
    }

    fn list<T, const N: usize>(&mut self, number: impl Fn([u8; N]) -> T) -> Result<Vec<T>> {
        let count = self.u64()?;
        if count > ((self.bytes.len() - self.at) / N) as u64 {
            return Err(self.corrupt("a list longer than its frame"));
        }
        (0..count).map(|_| self.take().map(&number)).try_collect_large()
    }
}
