//! One layer at a time: a plane too large for memory is passed on and checked layer by layer.
//!
//! Every edge of layer `k` leads to the layers `k - 1` to `k + 1`, so two layers side by side are enough to
//! see whether facets share their edges with the same two vertices. The result is that of
//! [`super::complex::Complex::check`] on the whole plane.

use std::collections::{BTreeSet, VecDeque};

use super::complex::{ConsistencyReport, OPEN, OUTSIDE};
use super::keys::Event;
use super::polygon::{Vertex, area};
use crate::{Result, memory};

/// A closed layer; facets and vertices are numbered over the whole plane as in [`super::complex::Complex`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    /// Number of its first facet.
    pub first_facet: u32,
    /// Number of the first of its new vertices.
    pub first_vertex: u32,
    /// Facet from which each facet was reached.
    pub parent: Vec<u32>,
    /// The event on the way.
    pub entry: Vec<Event>,
    /// Number of edges of each facet.
    pub lengths: Vec<u32>,
    /// Event of each edge.
    pub events: Vec<Event>,
    /// Facet beyond each edge, which may be one that is never closed.
    pub beyond: Vec<u32>,
    /// Start vertex of each edge.
    pub corner: Vec<u32>,
    /// The vertices that no earlier layer has.
    pub vertices: Vec<Vertex>,
}

/// Takes closed layers, in order.
pub trait Sink: Sync {
    /// Takes the next layer.
    ///
    /// # Errors
    /// Why the layer could not be taken; the exploration ends with this error.
    fn layer(&mut self, layer: &Layer) -> Result<()>;
}

/// A layer whose edges the next one may share.
#[derive(Default)]
struct Held {
    layer: Layer,
    /// First edge of each facet in the layer, and the number of edges.
    first: Vec<usize>,
}

impl Held {
    fn new(layer: Layer) -> Self {
        let mut first = vec![0];
        first.extend(layer.lengths.iter().scan(0, |sum, &length| {
            *sum += length as usize;
            Some(*sum)
        }));
        Self { layer, first }
    }

    /// The edges of a facet, if it is one of this layer.
    fn edges(&self, facet: u32) -> Option<std::ops::Range<usize>> {
        let k = facet.checked_sub(self.layer.first_facet)? as usize;
        (k < self.layer.lengths.len()).then(|| self.first[k]..self.first[k + 1])
    }
}

/// The check of a plane, layer by layer.
#[derive(Default)]
pub struct Checker {
    report: ConsistencyReport,
    previous: Held,
    /// Vertices of the last three layers, each with the number of its first: a vertex belongs to facets of
    /// three layers.
    recent: VecDeque<(u32, Vec<Vertex>)>,
    half_edges: usize,
    boundary: usize,
    /// Edges to facets that are not closed yet.
    pending: usize,
    special: BTreeSet<u32>,
}

impl Checker {
    /// Measures the polygons of a closed layer and matches its edges with each other and with those of the
    /// layer before.
    pub fn add(&mut self, layer: Layer) {
        if self.recent.len() == 3 {
            self.recent.pop_front();
        }
        self.recent.push_back((layer.first_vertex, memory::copy(&layer.vertices)));
        let current = Held::new(layer);
        for k in 0..current.layer.lengths.len() {
            self.measure(
                current.layer.first_facet + k as u32,
                &current.layer.corner[current.first[k]..current.first[k + 1]],
            );
        }
        let previous = std::mem::take(&mut self.previous);
        self.compare(&previous, &current, false);
        self.compare(&current, &previous, true);
        self.previous = current;
    }

    fn measure(&mut self, facet: u32, corners: &[u32]) {
        if corners.is_empty() {
            return self.report.empty.push(facet);
        }
        self.report.facets += 1;
        let find = |&v: &u32| {
            let (first, vertices) = self.recent.iter().rev().find(|(first, _)| *first <= v)?;
            vertices.get((v - first) as usize).copied()
        };
        let polygon: Option<Vec<Vertex>> = corners.iter().map(find).collect();
        let area = polygon.map_or(f64::NAN, |polygon| area(&polygon));
        if area.is_infinite() {
            self.report.unbounded += 1;
        } else {
            self.report.area += area;
            self.report.inverted += usize::from(area < 0.0);
        }
    }

    /// Matches the edges of `own`: all of them, or only those towards `other`.
    fn compare(&mut self, own: &Held, other: &Held, all: bool) {
        for k in 0..own.layer.lengths.len() {
            let f = own.layer.first_facet + k as u32;
            let edges = own.first[k]..own.first[k + 1];
            for e in edges.clone() {
                let beyond = own.layer.beyond[e];
                let there = other.edges(beyond).map(|range| (other, range));
                let here = own.edges(beyond).filter(|_| all).map(|range| (own, range));
                let next = if e + 1 == edges.end { edges.start } else { e + 1 };
                if let Some((home, range)) = there.or(here) {
                    self.pending -= usize::from(!all);
                    self.half_edges += 1;
                    if !is_shared(own, f, e, next, home, range) {
                        self.report.unmatched += 1;
                        self.special.extend([own.layer.corner[e], own.layer.corner[next]]);
                    }
                } else if all && beyond >= OPEN {
                    self.boundary += 1;
                } else if all {
                    self.pending += 1;
                }
            }
        }
    }

    /// The result, when the last layer is closed.
    pub fn finish(self, n_vertices: usize) -> ConsistencyReport {
        let mut report = self.report;
        report.vertices = n_vertices;
        report.edges = (self.half_edges + report.unmatched) / 2 + self.boundary + self.pending;
        report.special = self.special.into_iter().collect();
        report
    }
}

/// Whether edge `e` of facet `f` is among the `range` of edges of the facet beyond: the reverse event between
/// the same vertices.
fn is_shared(own: &Held, f: u32, e: usize, next: usize, home: &Held, range: std::ops::Range<usize>) -> bool {
    let (start, stop) = (own.layer.corner[e], own.layer.corner[next]);
    let event = own.layer.events[e].reversed();
    range.clone().any(|k| {
        let after = if k + 1 == range.end { range.start } else { k + 1 };
        home.layer.beyond[k] == f
            && home.layer.events[k] == event
            && home.layer.corner[k] == stop
            && home.layer.corner[after] == start
    })
}

/// Facets beyond edges as they are in a plane of `n_facets` closed ones.
pub fn settle(beyond: &mut [u32], n_facets: usize) {
    for f in beyond {
        if *f != OUTSIDE && *f as usize >= n_facets {
            *f = OPEN;
        }
    }
}
