//! Errors on held-out rows as exact functions over the plane, and the minimum of their sum over several
//! planes.
//!
//! Inside a facet the decision value of a held-out row is affine in the costs, so the row cuts the facet by a
//! line. The pieces (cells) have constant numbers of false positives and false negatives. A sweep over the
//! facets with the held-out rows as watched rows of [`super::state`] yields all cells. A decision value of
//! exactly 0 counts as negative.
//!
//! The minimum of a sum over several planes (cross-validation) is found by intersecting cells plane after
//! plane, depth first: a piece is given up as soon as its value so far plus the smallest values that the
//! other planes have in its bounding box exceeds the best known sum.

use super::answer::Data;
use super::complex::Complex;
use super::gram::{GramMatrix, Signed};
use super::locate::{BoundingBoxTree, Bounds};
use super::polygon::{Vertex, value};
use super::state::{FacetState, PlaneProblem};
use crate::fit::Monitor;
use crate::matrix::Matrix;
use crate::matrix::design::Design;
use crate::memory::CollectLarge;
use crate::{Error, Result, memory, parallel};

/// Facets of a task.
const PIECE: usize = 256;
/// A line closer than this to a vertex, relative to its terms there, passes through it.
const TOUCH: f64 = 1e-12;
/// Pieces with less than this share of the area of their bounding box's square are rounding.
const SLIVER: f64 = 1e-14;

/// The cells of one plane.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// Facet of each cell.
    pub facet: Vec<u32>,
    /// First corner of each cell, and the number of corners.
    pub first: Vec<u32>,
    /// Corners, counter-clockwise.
    pub corners: Vec<[f64; 2]>,
    /// Negative rows with a positive decision value.
    pub false_positives: Vec<u32>,
    /// Positive rows with a decision value that is not positive.
    pub false_negatives: Vec<u32>,
}

impl Cells {
    /// Number of cells.
    pub fn len(&self) -> usize {
        self.facet.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.facet.is_empty()
    }

    /// Corners of cell `k`.
    pub fn corners(&self, k: usize) -> &[[f64; 2]] {
        &self.corners[self.first[k] as usize..self.first[k + 1] as usize]
    }

    fn push(&mut self, facet: u32, piece: &Piece) {
        memory::push(&mut self.facet, facet);
        memory::extend_from_slice(&mut self.corners, &piece.corners);
        memory::push(&mut self.first, self.corners.len() as u32);
        memory::push(&mut self.false_positives, piece.errors[0]);
        memory::push(&mut self.false_negatives, piece.errors[1]);
    }

    fn append(&mut self, other: &Self) {
        let base = self.corners.len() as u32;
        memory::extend_from_slice(&mut self.facet, &other.facet);
        memory::extend_from_slice(&mut self.corners, &other.corners);
        memory::extend(&mut self.first, other.first[1..].iter().map(|first| base + first));
        memory::extend_from_slice(&mut self.false_positives, &other.false_positives);
        memory::extend_from_slice(&mut self.false_negatives, &other.false_negatives);
    }
}

#[derive(Clone)]
struct Piece {
    corners: Vec<[f64; 2]>,
    errors: [u32; 2],
}

/// The cells of held-out rows over a plane with finite limits.
///
/// # Errors
/// [`Error::Cancelled`]; [`Error::Parameter`] for an infinite box.
pub fn cells(
    data: &Data<'_>,
    complex: &Complex,
    held: &Matrix<'_>,
    held_y: &[f64],
    monitor: &dyn Monitor,
) -> Result<Cells> {
    if complex.limit.iter().any(|limit| limit.is_infinite()) {
        return Err(Error::Parameter {
            name: "box",
            value: "inf".into(),
            rule: "finite for an error surface",
        });
    }
    let Data { rows, y, bias, perturbation } = *data;
    let design = Design { rows, ids: None, bias };
    let watched = Design { rows: held, ids: None, bias };
    let products = GramMatrix::new(&Signed { rows: &design, y }, Some(&watched), monitor)?;
    let target: Vec<f64> = perturbation.iter().map(|eps| 1.0 + eps).collect_large();
    let scale = perturbation.iter().fold(0.0, |a: f64, &b| a.max(b));
    let plane = PlaneProblem {
        products: &products,
        y,
        target: &target,
        limit: complex.limit,
        tolerance: scale,
        flat: 0.0,
    };
    let facets: Vec<u32> = (0..complex.len() as u32).collect_large();
    let pieces: Vec<&[u32]> = facets.chunks(PIECE).collect();
    let parts = parallel::try_map(pieces, |_, facets| {
        let mut out = Cells { first: vec![0], ..Cells::default() };
        let mut state = FacetState::new(plane);
        let mut is_usable = false;
        for &f in facets {
            monitor.poll()?;
            let sets = complex.sets(f as usize);
            is_usable = is_usable && state.move_to(&sets).is_ok() || state.rebuild(&sets).is_ok();
            if is_usable {
                split_facet(complex, &state, f, held_y, &mut out);
            } else if complex.polygon(f as usize).count() >= 3 {
                return Err(Error::Stalled {
                    what: "the error surface, at a facet whose margin rows depend on each other,",
                    steps: 1,
                });
            }
        }
        Ok(out)
    })?;
    monitor.poll()?;
    let mut all = Cells { first: vec![0], ..Cells::default() };
    parts.iter().for_each(|part| all.append(part));
    Ok(all)
}

fn split_facet(complex: &Complex, state: &FacetState<'_>, f: u32, held_y: &[f64], out: &mut Cells) {
    let polygon: Vec<Vertex> = complex.polygon(f as usize).collect();
    if polygon.len() < 3 {
        return;
    }
    let n = complex.n_rows;
    let mut whole = Piece { corners: polygon.iter().map(|v| [v[0], v[1]]).collect(), errors: [0; 2] };
    let mut cuts = Vec::new();
    for (j, &y) in held_y.iter().enumerate() {
        let line = state.slack(n + j);
        match side(&line, &whole.corners) {
            Some(is_positive) => count(&mut whole.errors, y, is_positive),
            None => cuts.push((line, y)),
        }
    }
    let mut pieces = vec![whole];
    for (line, y) in cuts {
        let mut next = Vec::with_capacity(pieces.len() + 1);
        for mut piece in pieces {
            if let Some(is_positive) = side(&line, &piece.corners) {
                count(&mut piece.errors, y, is_positive);
                next.push(piece);
                continue;
            }
            for is_positive in [true, false] {
                let signed = if is_positive { line } else { line.map(|c| -c) };
                let mut part = Piece { corners: keep(&piece.corners, &signed), errors: piece.errors };
                count(&mut part.errors, y, is_positive);
                if part.corners.len() > 2 {
                    next.push(part);
                }
            }
        }
        pieces = next;
    }
    pieces.iter().for_each(|piece| out.push(f, piece));
}

fn count(errors: &mut [u32; 2], y: f64, is_positive: bool) {
    errors[0] += u32::from(y < 0.0 && is_positive);
    errors[1] += u32::from(y > 0.0 && !is_positive);
}

fn at(line: &[f64; 3], p: &[f64; 2]) -> f64 {
    let point = [p[0], p[1], 1.0];
    let x = value(line, &point);
    let size = (line[0] * p[0]).abs() + (line[1] * p[1]).abs() + line[2].abs();
    if x.abs() <= TOUCH * size { 0.0 } else { x }
}

/// Whether all of a polygon is on the positive side of a line, or none; `None` if the line cuts it.
fn side(line: &[f64; 3], corners: &[[f64; 2]]) -> Option<bool> {
    let (mut above, mut below) = (false, false);
    for p in corners {
        let x = at(line, p);
        above |= x > 0.0;
        below |= x < 0.0;
    }
    match (above, below) {
        (true, true) => None,
        (above, _) => Some(above),
    }
}

/// The part of a convex polygon where a line is not negative.
fn keep(corners: &[[f64; 2]], line: &[f64; 3]) -> Vec<[f64; 2]> {
    let m = corners.len();
    let values: Vec<f64> = corners.iter().map(|p| at(line, p)).collect();
    let mut out = Vec::with_capacity(m + 1);
    for k in 0..m {
        let (a, b) = (k, (k + 1) % m);
        if values[a] >= 0.0 {
            out.push(corners[a]);
        }
        if values[a] * values[b] < 0.0 {
            let t = values[a] / (values[a] - values[b]);
            out.push(std::array::from_fn(|c| corners[a][c] + t * (corners[b][c] - corners[a][c])));
        }
    }
    out
}

/// Twice the area of a polygon.
fn double_area(corners: &[[f64; 2]]) -> f64 {
    let o = corners[0];
    let cross = |a: &[f64; 2], b: &[f64; 2]| (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
    corners.windows(2).map(|pair| cross(&pair[0], &pair[1])).sum()
}

fn bounds(corners: &[[f64; 2]]) -> Bounds {
    Bounds::of(corners.iter().map(|p| [p[0], p[1], 1.0]))
}

/// The error surface of one plane: cells with a value for each.
pub struct ErrorSurface<'a> {
    cells: &'a Cells,
    values: Vec<f64>,
    index: BoundingBoxTree,
    minima: Vec<f64>,
}

impl<'a> ErrorSurface<'a> {
    /// A surface whose cells have the value `costs[0] * false positives + costs[1] * false negatives`.
    pub fn new(cells: &'a Cells, costs: [f64; 2]) -> Self {
        let errors = cells.false_positives.iter().zip(&cells.false_negatives);
        let values: Vec<f64> =
            errors.map(|(&p, &n)| costs[0] * f64::from(p) + costs[1] * f64::from(n)).collect_large();
        let boxes: Vec<Bounds> = (0..cells.len()).map(|k| bounds(cells.corners(k))).collect_large();
        let index = BoundingBoxTree::over(&boxes);
        let minima = index.minima(&values);
        Self { cells, values, index, minima }
    }

    /// Smallest value of a cell near a box, looked for only while it may stay below `enough`.
    fn lowest(&self, at: &Bounds, enough: f64) -> f64 {
        let lowest = std::cell::Cell::new(f64::INFINITY);
        let skip = |node: usize| self.minima[node] >= lowest.get() || lowest.get() <= enough;
        self.index.visit(at, skip, |id| lowest.set(lowest.get().min(self.values[id as usize])));
        lowest.get()
    }
}

/// The minimum of a sum of surfaces.
#[derive(Clone, Debug)]
pub struct Minimum {
    /// The sum.
    pub value: f64,
    /// Regions where it is attained; all, up to the limit that the caller gave.
    pub regions: Vec<Vec<[f64; 2]>>,
}

/// Finds the minimum of the sum of `surfaces` over the plane, exactly, with at most `max_regions` of its
/// regions.
///
/// # Errors
/// [`Error::Cancelled`].
pub fn minimum(surfaces: &[ErrorSurface<'_>], max_regions: usize, monitor: &dyn Monitor) -> Result<Minimum> {
    let mut best = Minimum { value: f64::INFINITY, regions: Vec::new() };
    let Some(first) = surfaces.first() else { return Ok(best) };
    let mut order: Vec<u32> = (0..first.cells.len() as u32).collect_large();
    order.sort_by(|&a, &b| first.values[a as usize].total_cmp(&first.values[b as usize]).then(a.cmp(&b)));
    for (count, &id) in order.iter().enumerate() {
        if count % 64 == 0 {
            monitor.poll()?;
        }
        descend(
            surfaces,
            1,
            first.cells.corners(id as usize).to_vec(),
            first.values[id as usize],
            max_regions,
            &mut best,
        );
    }
    Ok(best)
}

fn descend(
    surfaces: &[ErrorSurface<'_>],
    depth: usize,
    piece: Vec<[f64; 2]>,
    sum: f64,
    max_regions: usize,
    best: &mut Minimum,
) {
    let around = bounds(&piece);
    let tie = 1e-12 * best.value.abs().min(1e300);
    let mut bound = sum;
    for surface in &surfaces[depth..] {
        if bound > best.value + tie {
            return;
        }
        bound += surface.lowest(&around, f64::NEG_INFINITY);
    }
    if bound > best.value + tie {
        return;
    }
    let Some(surface) = surfaces.get(depth) else {
        if sum < best.value - tie || best.regions.is_empty() {
            *best = Minimum { value: sum, regions: Vec::new() };
        }
        if best.regions.len() < max_regions {
            best.regions.push(piece);
        }
        return;
    };
    let mut near = Vec::new();
    surface.index.visit(&around, |_| false, |id| near.push(id));
    near.sort_by(|&a, &b| surface.values[a as usize].total_cmp(&surface.values[b as usize]).then(a.cmp(&b)));
    let extent = (around.high[0] - around.low[0]).max(around.high[1] - around.low[1]);
    for id in near {
        let mut part = piece.clone();
        let cell = surface.cells.corners(id as usize);
        for k in 0..cell.len() {
            let (a, b) = (cell[k], cell[(k + 1) % cell.len()]);
            let line = [a[1] - b[1], b[0] - a[0], a[0] * b[1] - a[1] * b[0]];
            part = keep(&part, &line);
            if part.len() < 3 {
                break;
            }
        }
        if part.len() > 2 && double_area(&part) > SLIVER * extent * extent {
            descend(surfaces, depth + 1, part, sum + surface.values[id as usize], max_regions, best);
        }
    }
}
