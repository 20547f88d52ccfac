//! Which facet holds a point: a balanced tree of bounding boxes, O(log) on average.

use super::complex::Complex;
use super::polygon::Vertex;
use crate::memory;
use crate::memory::CollectLarge;
use crate::parallel;

/// Facets in a leaf.
const LEAF: usize = 4;

/// Entries from which on both halves of a tree are built side by side.
const PARALLEL: usize = 1 << 14;

/// A box in the plane.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Smallest coordinates.
    pub low: [f64; 2],
    /// Largest coordinates.
    pub high: [f64; 2],
}

impl Bounds {
    const NONE: Self = Self { low: [f64::INFINITY; 2], high: [f64::NEG_INFINITY; 2] };

    /// The box around points, some of which may lie at infinity.
    pub fn of(points: impl Iterator<Item = Vertex>) -> Self {
        let mut bounds = Self::NONE;
        for point in points {
            for k in 0..2 {
                if point[2] > 0.0 {
                    bounds.low[k] = bounds.low[k].min(point[k]);
                    bounds.high[k] = bounds.high[k].max(point[k]);
                } else if point[k] > 0.0 {
                    bounds.high[k] = f64::INFINITY;
                } else if point[k] < 0.0 {
                    bounds.low[k] = f64::NEG_INFINITY;
                }
            }
        }
        bounds
    }

    fn join(&mut self, other: &Self) {
        for k in 0..2 {
            self.low[k] = self.low[k].min(other.low[k]);
            self.high[k] = self.high[k].max(other.high[k]);
        }
    }

    fn touches(&self, other: &Self) -> bool {
        (0..2).all(|k| self.low[k] <= other.high[k] && other.low[k] <= self.high[k])
    }

    fn distance(&self, at: [f64; 2]) -> f64 {
        (0..2).map(|k| (self.low[k] - at[k]).max(at[k] - self.high[k])).fold(0.0, f64::max)
    }
}

/// A balanced tree of bounding boxes over the facets of a complex, or over any boxes.
#[derive(Clone, Debug, Default)]
pub struct BoundingBoxTree {
    order: Vec<u32>,
    /// Heap order: node `k` has the children `2k + 1` and `2k + 2`.
    nodes: Vec<Bounds>,
    levels: u32,
}

impl BoundingBoxTree {
    /// The tree over the facets of a complex, O(n log n).
    pub fn new(complex: &Complex) -> Self {
        let mut order: Vec<u32> =
            (0..complex.len() as u32).filter(|&f| !complex.edges(f as usize).is_empty()).collect_large();
        let bounds: Vec<Bounds> = parallel::map(complex.len(), |f| Bounds::of(complex.polygon(f)));
        let (nodes, levels) = tree(&mut order, &bounds);
        Self { order, nodes, levels }
    }

    /// A tree over any boxes.
    pub fn over(bounds: &[Bounds]) -> Self {
        let mut order: Vec<u32> = (0..bounds.len() as u32).collect_large();
        let (nodes, levels) = tree(&mut order, bounds);
        Self { order, nodes, levels }
    }

    /// Visits the leaf entries whose node boxes touch `at`, except below nodes that `skip` says to leave out.
    /// Entries come in a fixed order; their own boxes are not tested.
    pub fn visit(&self, at: &Bounds, mut skip: impl FnMut(usize) -> bool, mut f: impl FnMut(u32)) {
        let mut stack = vec![(0_usize, 0_usize, self.order.len(), 0_u32)];
        while let Some((node, from, to, level)) = stack.pop() {
            if from == to || !self.nodes[node].touches(at) || skip(node) {
                continue;
            }
            if level < self.levels {
                let middle = from + (to - from) / 2;
                stack.push((2 * node + 2, middle, to, level + 1));
                stack.push((2 * node + 1, from, middle, level + 1));
            } else {
                self.order[from..to].iter().for_each(|&id| f(id));
            }
        }
    }

    /// Smallest value below each node.
    pub fn minima(&self, values: &[f64]) -> Vec<f64> {
        let mut minima = memory::filled(f64::INFINITY, self.nodes.len());
        self.fill_minima(0, 0, self.order.len(), 0, values, &mut minima);
        minima
    }

    fn fill_minima(
        &self,
        node: usize,
        from: usize,
        to: usize,
        level: u32,
        values: &[f64],
        minima: &mut [f64],
    ) -> f64 {
        let lowest = if level < self.levels {
            let middle = from + (to - from) / 2;
            let left = self.fill_minima(2 * node + 1, from, middle, level + 1, values, minima);
            left.min(self.fill_minima(2 * node + 2, middle, to, level + 1, values, minima))
        } else {
            self.order[from..to].iter().map(|&id| values[id as usize]).fold(f64::INFINITY, f64::min)
        };
        minima[node] = lowest;
        lowest
    }

    /// The facet that holds a point; on a shared edge the first that does. `None` outside of all (beyond
    /// `slack`).
    pub fn facet(&self, complex: &Complex, at: [f64; 2], slack: f64) -> Option<usize> {
        let mut best: Option<(f64, u32)> = None;
        let mut stack = vec![(0_usize, 0_usize, self.order.len(), 0_u32)];
        while let Some((node, from, to, level)) = stack.pop() {
            if from == to || self.nodes[node].distance(at) > slack {
                continue;
            }
            if level < self.levels {
                let middle = from + (to - from) / 2;
                stack.push((2 * node + 2, middle, to, level + 1));
                stack.push((2 * node + 1, from, middle, level + 1));
                continue;
            }
            for &f in &self.order[from..to] {
                let outside = distance(complex, f as usize, at);
                if best.is_none_or(|(d, g)| outside < d || outside == d && f < g) {
                    best = Some((outside, f));
                }
            }
        }
        best.filter(|(outside, _)| *outside <= slack).map(|(_, f)| f as usize)
    }
}

/// The boxes of a tree over `order`, which it sorts, and its depth.
fn tree(order: &mut [u32], bounds: &[Bounds]) -> (Vec<Bounds>, u32) {
    let levels = order.len().div_ceil(LEAF).max(1).next_power_of_two().trailing_zeros();
    arrange(order, bounds, levels);
    let mut nodes = memory::filled(Bounds::NONE, (2 << levels) - 1);
    join(&mut nodes, 0, order, bounds, levels);
    (nodes, levels)
}

/// Sorts halves apart along the wider axis, level by level.
fn arrange(order: &mut [u32], bounds: &[Bounds], levels: u32) {
    if levels == 0 || order.is_empty() {
        return;
    }
    let middle_of =
        |f: u32, k: usize| bounds[f as usize].low[k] + bounds[f as usize].high[k].min(f64::MAX / 4.0);
    let spread = |k: usize| {
        let values = order.iter().map(|&f| middle_of(f, k));
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        high - low
    };
    let axis = usize::from(spread(1) > spread(0));
    let middle = order.len() / 2;
    order.select_nth_unstable_by(middle, |&a, &b| {
        middle_of(a, axis).total_cmp(&middle_of(b, axis)).then(a.cmp(&b))
    });
    let (left, right) = order.split_at_mut(middle);
    if left.len() > PARALLEL {
        rayon::join(|| arrange(left, bounds, levels - 1), || arrange(right, bounds, levels - 1));
    } else {
        arrange(left, bounds, levels - 1);
        arrange(right, bounds, levels - 1);
    }
}

/// Boxes of all nodes, from the leaves up.
fn join(nodes: &mut [Bounds], node: usize, order: &[u32], bounds: &[Bounds], levels: u32) {
    let mut all = Bounds::NONE;
    if levels == 0 {
        order.iter().for_each(|&f| all.join(&bounds[f as usize]));
    } else {
        let (left, right) = order.split_at(order.len() / 2);
        join(nodes, 2 * node + 1, left, bounds, levels - 1);
        join(nodes, 2 * node + 2, right, bounds, levels - 1);
        all = nodes[2 * node + 1];
        all.join(&nodes[2 * node + 2]);
    }
    nodes[node] = all;
}

/// How far a point is outside of a facet's edges, 0 inside.
fn distance(complex: &Complex, f: usize, at: [f64; 2]) -> f64 {
    let polygon: Vec<Vertex> = complex.polygon(f).collect();
    let m = polygon.len();
    (0..m).map(|k| outside(&polygon[k], &polygon[(k + 1) % m], at)).fold(0.0, f64::max)
}

/// Distance of a point to the right of the edge from `a` to `b`.
fn outside(a: &Vertex, b: &Vertex, at: [f64; 2]) -> f64 {
    let (base, direction) = match (a[2] > 0.0, b[2] > 0.0) {
        (true, true) => (a, [b[0] - a[0], b[1] - a[1]]),
        (true, false) => (a, [b[0], b[1]]),
        (false, true) => (b, [-a[0], -a[1]]),
        (false, false) => return 0.0,
    };
    let length = direction[0].hypot(direction[1]);
    if length == 0.0 {
        return 0.0;
    }
    ((at[0] - base[0]) * direction[1] - (at[1] - base[1]) * direction[0]) / length
}
