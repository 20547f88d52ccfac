//! The plane divided into facets: vertices, edges, facets and how they are connected
//! (Wesierski16, eqs. (20)-(22)).
//!
//! Facets are numbered in the order in which they were found, so layer by layer. Each keeps the facet it was
//! reached from and the event on the way: its sets follow by walking back to the start. Edges are stored once
//! per facet, counter-clockwise: event, facet beyond, start vertex. With about four edges and one vertex per
//! facet that is some 90 bytes per facet, whatever the number of rows.

use super::keys::{Event, Side};
use super::polygon::{Vertex, area};
use super::sets;
use crate::memory;
use crate::memory::CollectLarge;
use crate::parallel;

/// No facet: beyond a side of the frame.
pub const OUTSIDE: u32 = u32::MAX;
/// A facet that was seen but not explored: a limit or an interrupt came first.
pub const OPEN: u32 = u32::MAX - 1;

/// Facets that a task of the check takes.
const PIECE: usize = 4096;
/// The check of some facets: findings, edges that may be shared, edges at the border.
type Piece = (ConsistencyReport, usize, usize);

/// How an exploration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExplorationEnd {
    /// Every facet is closed.
    Complete,
    /// The limit of facets was reached.
    Limit,
    /// The caller asked to stop.
    Interrupted,
    /// Facets overlap: the perturbation is too small for the precision.
    Inconsistent,
}

/// Facets, edges and vertices.
#[derive(Clone, Debug)]
pub struct Complex {
    /// Number of training rows.
    pub n_rows: usize,
    /// Limits of `C+` and `C-`.
    pub limit: [f64; 2],
    /// Packed sets of facet 0.
    pub start: Vec<u64>,
    /// Facet from which each facet was reached; facet 0 its own.
    pub parent: Vec<u32>,
    /// The event on the way.
    pub entry: Vec<Event>,
    /// First facet of each layer, and the number of facets.
    pub layers: Vec<u32>,
    /// First edge of each facet, and the number of edges.
    pub first: Vec<u32>,
    /// Event of each edge, seen from its facet.
    pub events: Vec<Event>,
    /// Facet beyond each edge, [`OUTSIDE`] or [`OPEN`].
    pub beyond: Vec<u32>,
    /// Start vertex of each edge.
    pub corner: Vec<u32>,
    /// Homogeneous coordinates of the vertices.
    pub vertices: Vec<Vertex>,
    /// How the exploration ended.
    pub end: ExplorationEnd,
}

/// What a check of the whole complex found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConsistencyReport {
    /// Facets with a polygon.
    pub facets: usize,
    /// Edges, each counted once.
    pub edges: usize,
    /// Vertices.
    pub vertices: usize,
    /// Sum of the areas of the facets; infinite ones left out.
    pub area: f64,
    /// Facets that reach infinity.
    pub unbounded: usize,
    /// Facets that vanish in rounding: seen from a neighbour, empty by their own constraints.
    pub empty: Vec<u32>,
    /// Vertices around which the facets do not close (the loop property of Wesierski16, eq. (19)). The
    /// name is ours: the special cases of the paper are coinciding events.
    pub special: Vec<u32>,
    /// Edges whose facet beyond does not have them.
    pub unmatched: usize,
    /// Facets whose polygon is not counter-clockwise.
    pub inverted: usize,
}

impl Complex {
    /// Number of facets.
    pub fn len(&self) -> usize {
        self.parent.len()
    }

    /// Whether there is no facet.
    pub fn is_empty(&self) -> bool {
        self.parent.is_empty()
    }

    /// The edges of facet `f`.
    pub fn edges(&self, f: usize) -> std::ops::Range<usize> {
        self.first[f] as usize..self.first[f + 1] as usize
    }

    /// The polygon of facet `f`.
    pub fn polygon(&self, f: usize) -> impl Iterator<Item = Vertex> + '_ {
        self.corner[self.edges(f)].iter().map(|&v| self.vertices[v as usize])
    }

    /// The packed sets of facet `f`, by walking back to facet 0. Cost: one step per layer.
    pub fn sets(&self, f: usize) -> Vec<u64> {
        let mut sets = memory::copy(&self.start);
        let mut seen = memory::zeros::<u64>(self.n_rows.div_ceil(64));
        let mut at = f;
        while at != 0 {
            let event = self.entry[at];
            let i = event.row() as usize;
            // The last change of a row counts, and we meet it first.
            if seen[i / 64] >> (i % 64) & 1 == 0 {
                seen[i / 64] |= 1 << (i % 64);
                sets::put(&mut sets, i, event.sides().1);
            }
            at = self.parent[at] as usize;
        }
        sets
    }

    /// The state of every row in facet `f`.
    pub fn sides(&self, f: usize) -> Vec<Side> {
        let sets = self.sets(f);
        (0..self.n_rows).map(|i| sets::side(&sets, i)).collect_large()
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        4 * (2 * self.len() + self.first.len() + self.layers.len() + 3 * self.events.len())
            + size_of::<Vertex>() * self.vertices.len()
            + 8 * self.start.len()
    }

    /// Why these arrays, which may come from outside, are no complex; `None` if every number is in range.
    pub fn fault(&self) -> Option<&'static str> {
        let (n, edges) = (self.len(), self.events.len());
        let rises = |list: &[u32]| list.windows(2).all(|pair| pair[0] <= pair[1]);
        let checks = [
            (n > 0, "no facet"),
            (self.start.len() == sets::words(self.n_rows), "length of start"),
            (self.entry.len() == n && self.first.len() == n + 1, "length of entry or first"),
            (self.beyond.len() == edges && self.corner.len() == edges, "length of beyond or corner"),
            (
                rises(&self.first) && self.first.last() == Some(&(edges as u32)),
                "first does not rise to the number of edges",
            ),
            (rises(&self.layers) && self.layers.last().is_none_or(|&l| l as usize <= n), "layers"),
            (
                self.parent.iter().enumerate().all(|(f, &p)| (p as usize) < f.max(1)),
                "a parent is not found earlier",
            ),
            (self.entry.iter().skip(1).all(|event| (event.row() as usize) < self.n_rows), "row of an entry"),
            (
                self.events.iter().all(|event| event.is_frame() || (event.row() as usize) < self.n_rows),
                "row of an event",
            ),
            (self.beyond.iter().all(|&f| f >= OPEN || (f as usize) < n), "facet beyond an edge"),
            (self.corner.iter().all(|&v| (v as usize) < self.vertices.len()), "vertex of an edge"),
            (self.vertices.as_flattened().iter().all(|x| x.is_finite()), "coordinates"),
        ];
        checks.into_iter().find(|(is_sound, _)| !is_sound).map(|(_, reason)| reason)
    }

    /// Checks what exact arithmetic promises: matched edges, closed loops, orientation, area.
    pub fn check(&self) -> ConsistencyReport {
        let pieces: Vec<Piece> = parallel::map(self.len().div_ceil(PIECE), |k| {
            self.check_piece(k * PIECE..((k + 1) * PIECE).min(self.len()))
        });
        let mut report = ConsistencyReport { vertices: self.vertices.len(), ..ConsistencyReport::default() };
        let mut half_edges = 0;
        let mut boundary = 0;
        for (part, half, border) in pieces {
            report.facets += part.facets;
            report.area += part.area;
            report.unbounded += part.unbounded;
            report.unmatched += part.unmatched;
            report.inverted += part.inverted;
            report.empty.extend(part.empty);
            report.special.extend(part.special);
            half_edges += half;
            boundary += border;
        }
        report.edges = (half_edges + report.unmatched) / 2 + boundary;
        report.special.sort_unstable();
        report.special.dedup();
        report
    }

    /// What the check finds in some facets, the number of their edges that another facet may share, and of
    /// those that none does.
    fn check_piece(&self, facets: std::ops::Range<usize>) -> Piece {
        let mut report = ConsistencyReport::default();
        let (mut half_edges, mut boundary) = (0, 0);
        for f in facets {
            let edges = self.edges(f);
            if edges.is_empty() {
                report.empty.push(f as u32);
                continue;
            }
            report.facets += 1;
            let polygon: Vec<Vertex> = self.polygon(f).collect();
            let area = area(&polygon);
            if area.is_infinite() {
                report.unbounded += 1;
            } else {
                report.area += area;
                report.inverted += usize::from(area < 0.0);
            }
            for e in edges {
                if self.beyond[e] >= OPEN {
                    boundary += 1;
                    continue;
                }
                half_edges += 1;
                if self.partner(f, e).is_none() {
                    report.unmatched += 1;
                    report.special.extend([self.corner[e], self.corner[self.next(f, e)]]);
                }
            }
        }
        (report, half_edges, boundary)
    }

    fn next(&self, f: usize, e: usize) -> usize {
        let edges = self.edges(f);
        if e + 1 == edges.end { edges.start } else { e + 1 }
    }

    /// The same edge in the facet beyond: the reverse event between the same vertices.
    pub fn partner(&self, f: usize, e: usize) -> Option<usize> {
        let other = self.beyond[e];
        if other >= OPEN {
            return None;
        }
        let (start, stop) = (self.corner[e], self.corner[self.next(f, e)]);
        self.edges(other as usize).find(|&k| {
            self.beyond[k] == f as u32
                && self.events[k] == self.events[e].reversed()
                && self.corner[k] == stop
                && self.corner[self.next(other as usize, k)] == start
        })
    }
}
