//! Exploration of the plane by layers, breadth first.
//!
//! Layer 0 is the facet of the start. Closing a layer computes the polygon of each of its facets, in
//! parallel; then, in order, the facet beyond each edge of each polygon is looked up by its key, and what is
//! new is the next layer. Neighbours of layer `k` lie in the layers `k - 1` to `k + 1` and facets around a
//! vertex in `k` to `k + 2`, so that only three layers of keys are held.
//!
//! Deviation: a layer of Wesierski16, section 3.1, takes four steps: close edges and facets (CEF), merge them
//! (MEV), close vertices (CV), merge again (MEF). The first two are those above. CV also takes the facet
//! across a vertex, found by a joint event, into the next layer; here it comes one layer later, over an edge.
//! So a facet may have another layer number than in the paper; the facets are the same.
//!
//! The facets of a layer are cut into pieces of fixed length. A piece begins with one factorisation of its
//! first facet's margin system and then *walks*: consecutive facets of a layer are neighbours or nearly so
//! (siblings, then cousins), a move costs two to three single changes, and the only state is one
//! [`FacetState`] per thread. The pieces depend on nothing but the layer, so every number of threads gives
//! the same bits.
//!
//! Tried: a state per open facet, inherited from its parent. For 1,000 rows and wide margin sets the open
//! layer alone would hold gigabytes.

use std::sync::Mutex;

use super::complex::{Complex, ConsistencyReport, ExplorationEnd, OUTSIDE};
use super::keys::{Event, KeyMap, Keys, Side};
use super::layers::{Checker, Layer, Sink};
use super::polygon::{Polygon, Vertex};
use super::state::{FacetState, PlaneProblem};
use super::{layers, sets};
use crate::fit::{Monitor, Progress};
use crate::{Result, memory, parallel};

/// Facets of a piece: enough to make the factorisation at its beginning cheap, few enough to feed several
/// threads. Large margin sets take as many facets as they have rows, for then the factorisation costs one
/// single change per facet.
const PIECE: usize = 48;
/// Facets between two calls of the monitor within a layer.
const POLL: usize = 16_384;
/// Share of the box by which the closed area may exceed it. Where it exceeds it by more, facets overlap, and
/// the exploration might never end.
const OVERLAP: f64 = 1e-6;

/// Limits of an exploration.
#[derive(Clone, Copy, Debug)]
pub struct ExplorationLimits {
    /// Largest number of facets to close.
    pub max_facets: usize,
}

/// What an exploration did, beside the complex.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Effort {
    /// Single changes of margin sets.
    pub moves: u64,
    /// Systems computed anew because of their error estimate.
    pub refreshed: u64,
    /// Systems computed in twice the precision.
    pub refined: u64,
}

/// The closed polygons of one piece, one after the other.
#[derive(Default)]
struct Piece {
    lengths: Vec<u32>,
    events: Vec<Event>,
    points: Vec<Vertex>,
    effort: Effort,
}

/// The open layer.
#[derive(Default)]
struct Open {
    keys: Vec<u128>,
    sets: Vec<u64>,
    numbers: KeyMap,
}

/// Explores from the facet with the given sets.
///
/// # Errors
/// Only those of the monitor's callers; an interrupt is an [`ExplorationEnd`].
pub fn explore(
    plane: PlaneProblem<'_>,
    start: &[u64],
    limits: ExplorationLimits,
    monitor: &dyn Monitor,
) -> Result<(Complex, Effort)> {
    let keys = Keys::new(plane.n());
    let mut explorer = Explorer::new(plane, &keys, start, None);
    explorer.run(limits, monitor)?;
    Ok(explorer.finish())
}

/// What is left in memory of an exploration whose layers were handed on.
#[derive(Clone, Debug)]
pub struct Passed {
    /// How it ended.
    pub end: ExplorationEnd,
    /// What the check found.
    pub report: ConsistencyReport,
    /// Work.
    pub effort: Effort,
    /// Layers closed.
    pub n_layers: usize,
}

/// Explores as [`explore`], but hands every layer to `sink` when it is closed and keeps only the last one of
/// them (for the check) beside the open one and three layers of keys.
///
/// # Errors
/// Those of `sink`.
pub fn explore_into(
    plane: PlaneProblem<'_>,
    start: &[u64],
    limits: ExplorationLimits,
    sink: &mut dyn Sink,
    monitor: &dyn Monitor,
) -> Result<Passed> {
    let keys = Keys::new(plane.n());
    let mut explorer = Explorer::new(plane, &keys, start, Some(sink));
    explorer.run(limits, monitor)?;
    let n_layers = explorer.complex.layers.len() - 1;
    let report = explorer.checker.finish(explorer.n_vertices);
    Ok(Passed { end: explorer.complex.end, report, effort: explorer.effort, n_layers })
}

struct Explorer<'a> {
    plane: PlaneProblem<'a>,
    keys: &'a Keys,
    words: usize,
    /// All that is explored; with a sink the open layer only.
    complex: Complex,
    /// Facets numbered so far.
    n_facets: usize,
    n_vertices: usize,
    sink: Option<&'a mut dyn Sink>,
    checker: Checker,
    open: Open,
    current: KeyMap,
    previous: KeyMap,
    corners: [KeyMap; 3],
    area: f64,
    effort: Effort,
}

impl<'a> Explorer<'a> {
    fn new(plane: PlaneProblem<'a>, keys: &'a Keys, start: &[u64], sink: Option<&'a mut dyn Sink>) -> Self {
        let n = plane.n();
        let key = keys.facet((0..n).map(|i| sets::side(start, i)));
        let complex = Complex {
            n_rows: n,
            limit: plane.limit,
            start: memory::copy(start),
            parent: vec![0],
            entry: vec![Event(0)],
            layers: vec![0],
            first: vec![0],
            events: Vec::new(),
            beyond: Vec::new(),
            corner: Vec::new(),
            vertices: Vec::new(),
            end: ExplorationEnd::Complete,
        };
        let open =
            Open { keys: vec![key], sets: memory::copy(start), numbers: KeyMap::from_iter([(key, 0)]) };
        Self {
            plane,
            keys,
            words: sets::words(n),
            complex,
            n_facets: 1,
            n_vertices: 0,
            sink,
            checker: Checker::default(),
            open,
            current: KeyMap::default(),
            previous: KeyMap::default(),
            corners: Default::default(),
            area: 0.0,
            effort: Effort::default(),
        }
    }

    fn run(&mut self, limits: ExplorationLimits, monitor: &dyn Monitor) -> Result<()> {
        let states = Mutex::new(Vec::new());
        while !self.open.keys.is_empty() {
            let closed = self.n_facets - self.open.keys.len();
            if self.n_facets > limits.max_facets {
                self.complex.end = ExplorationEnd::Limit;
                break;
            }
            let Some(pieces) = self.close(&states, monitor) else {
                self.complex.end = ExplorationEnd::Interrupted;
                break;
            };
            self.merge(&pieces)?;
            let share = self.area / (self.plane.limit[0] * self.plane.limit[1]);
            let accuracy = if share.is_finite() { 1.0 - share } else { 0.0 };
            if share > 1.0 + OVERLAP {
                self.complex.end = ExplorationEnd::Inconsistent;
                break;
            }
            monitor.observe(&Progress { solver: "cost path", iteration: closed, accuracy, search: None });
        }
        Ok(())
    }

    /// Computes the polygons of the open layer; `None` after an interrupt.
    fn close(&self, states: &Mutex<Vec<FacetState<'a>>>, monitor: &dyn Monitor) -> Option<Vec<Piece>> {
        let layer = self.open.sets.chunks(self.words.max(1) * self.piece_length());
        let pieces: Vec<&[u64]> = layer.collect();
        let mut done = Vec::with_capacity(pieces.len());
        for group in pieces.chunks((POLL / PIECE).max(1)) {
            if monitor.cancelled() {
                return None;
            }
            done.extend(parallel::map_each(group, |_, sets| self.close_piece(sets, states, monitor)));
        }
        (!monitor.cancelled()).then_some(done)
    }

    fn piece_length(&self) -> usize {
        let members = (0..self.plane.n()).filter(|&i| sets::side(&self.open.sets, i) == Side::On).count();
        PIECE.max(members)
    }

    fn close_piece(
        &self,
        piece: &[u64],
        states: &Mutex<Vec<FacetState<'a>>>,
        monitor: &dyn Monitor,
    ) -> Piece {
        let spare = states.lock().ok().and_then(|mut states| states.pop());
        let mut state = spare.unwrap_or_else(|| FacetState::new(self.plane));
        let mut polygon = Polygon::default();
        let mut out = Piece::default();
        let (moves, refreshed, refined) = (state.n_moves, state.n_refreshed, state.n_refined);
        let mut is_usable = false;
        for sets in piece.chunks_exact(self.words.max(1)) {
            if self.plane.n() > 512 && monitor.cancelled() {
                break;
            }
            is_usable = if is_usable { state.move_to(sets) } else { state.rebuild(sets) }.is_ok();
            if !is_usable {
                memory::push(&mut out.lengths, 0);
                continue;
            }
            state.polygon(&mut polygon);
            let is_closed = polygon.len() > 2;
            memory::push(&mut out.lengths, if is_closed { polygon.len() as u32 } else { 0 });
            if is_closed {
                self.snap(&mut polygon);
                memory::extend_from_slice(&mut out.events, &polygon.events);
                memory::extend_from_slice(&mut out.points, &polygon.vertices);
            }
        }
        out.effort = Effort {
            moves: state.n_moves - moves,
            refreshed: state.n_refreshed - refreshed,
            refined: state.n_refined - refined,
        };
        if let Ok(mut states) = states.lock() {
            states.push(state);
        }
        out
    }

    /// Puts the apexes of wedges exactly onto their axis.
    fn snap(&self, polygon: &mut Polygon) {
        let m = polygon.len();
        for e in 0..m {
            let (a, b) = (polygon.events[(e + m - 1) % m], polygon.events[e]);
            if self.is_apex(a, b) {
                let row = if a.is_frame() { b.row() } else { a.row() };
                polygon.vertices[e][usize::from(self.plane.y[row as usize] < 0.0)] = 0.0;
            }
        }
    }

    /// Whether the vertex between two edges is the apex of a wedge: both bounds of one dual variable, or the
    /// axis of the row's own class.
    fn is_apex(&self, a: Event, b: Event) -> bool {
        let own_axis = |frame: Event, event: Event| {
            let positive = self.plane.y[event.row() as usize] > 0.0;
            frame
                == Event::frame(if positive { super::keys::Frame::Left } else { super::keys::Frame::Bottom })
        };
        match (a.is_frame(), b.is_frame()) {
            (false, false) => a.row() == b.row(),
            (true, false) => own_axis(a, b),
            (false, true) => own_axis(b, a),
            (true, true) => false,
        }
    }

    /// Numbers what a layer's polygons touch, in order.
    fn merge(&mut self, pieces: &[Piece]) -> Result<()> {
        let first = self.n_facets - self.open.keys.len();
        let Open { keys, sets, numbers } = std::mem::take(&mut self.open);
        self.previous = std::mem::replace(&mut self.current, numbers);
        self.corners.rotate_right(1);
        self.corners[0].clear();
        let mut facet = 0;
        for piece in pieces {
            let mut at = 0;
            for &length in &piece.lengths {
                let range = at..at + length as usize;
                let own = &sets[facet * self.words..(facet + 1) * self.words];
                self.add(
                    first + facet,
                    keys[facet],
                    own,
                    &piece.events[range.clone()],
                    &piece.points[range.clone()],
                );
                at = range.end;
                facet += 1;
            }
            self.effort.moves += piece.effort.moves;
            self.effort.refreshed += piece.effort.refreshed;
            self.effort.refined += piece.effort.refined;
        }
        memory::push(&mut self.complex.layers, (first + facet) as u32);
        self.hand_over(first, facet)
    }

    /// Gives the layer just closed, `count` facets from number `first` on, to the sink.
    fn hand_over(&mut self, first: usize, count: usize) -> Result<()> {
        let Some(sink) = &mut self.sink else { return Ok(()) };
        let c = &mut self.complex;
        let vertices = std::mem::take(&mut c.vertices);
        let layer = Layer {
            first_facet: first as u32,
            first_vertex: (self.n_vertices - vertices.len()) as u32,
            parent: c.parent.drain(..count).collect(),
            entry: c.entry.drain(..count).collect(),
            lengths: c.first.windows(2).map(|pair| pair[1] - pair[0]).collect(),
            events: std::mem::take(&mut c.events),
            beyond: std::mem::take(&mut c.beyond),
            corner: std::mem::take(&mut c.corner),
            vertices,
        };
        c.first.truncate(1);
        sink.layer(&layer)?;
        self.checker.add(layer);
        Ok(())
    }

    fn add(&mut self, facet: usize, key: u128, sets: &[u64], events: &[Event], points: &[Vertex]) {
        let m = events.len();
        for e in 0..m {
            let (before, event) = (events[(e + m - 1) % m], events[e]);
            let vertex = self.keys.vertex(key, before, event, self.is_apex(before, event));
            let corner = self.corner(vertex, points[e]);
            let beyond = if event.is_frame() { OUTSIDE } else { self.number(facet, key, event, sets) };
            memory::push(&mut self.complex.events, event);
            memory::push(&mut self.complex.corner, corner);
            memory::push(&mut self.complex.beyond, beyond);
        }
        let area = super::polygon::area(points);
        if area.is_finite() {
            self.area += area;
        }
        memory::push(&mut self.complex.first, self.complex.events.len() as u32);
    }

    fn corner(&mut self, key: u128, point: Vertex) -> u32 {
        if let Some(&v) = self.corners.iter().find_map(|layer| layer.get(&key)) {
            return v;
        }
        let v = self.n_vertices as u32;
        self.n_vertices += 1;
        memory::push(&mut self.complex.vertices, point);
        memory::insert(&mut self.corners[0], key, v);
        v
    }

    /// The number of the facet beyond an edge, new or known.
    fn number(&mut self, facet: usize, key: u128, event: Event, sets: &[u64]) -> u32 {
        let across = self.keys.across(key, event);
        if let Some(&f) = self
            .open
            .numbers
            .get(&across)
            .or_else(|| self.current.get(&across))
            .or_else(|| self.previous.get(&across))
        {
            return f;
        }
        let f = self.n_facets as u32;
        self.n_facets += 1;
        memory::push(&mut self.complex.parent, facet as u32);
        memory::push(&mut self.complex.entry, event);
        let at = self.open.sets.len();
        memory::extend_from_slice(&mut self.open.sets, sets);
        sets::put(&mut self.open.sets[at..], event.row() as usize, event.sides().1);
        memory::push(&mut self.open.keys, across);
        memory::insert(&mut self.open.numbers, across, f);
        f
    }

    /// Drops facets that were never closed.
    fn finish(mut self) -> (Complex, Effort) {
        let closed = self.complex.first.len() - 1;
        self.complex.parent.truncate(closed);
        self.complex.entry.truncate(closed);
        layers::settle(&mut self.complex.beyond, closed);
        (self.complex, self.effort)
    }
}
