//! A convex polygon in the plane of the two costs, cut by half-planes.
//!
//! A half-plane is `(p, q, k)`: `p C+ + q C- + k >= 0` inside. A vertex is homogeneous, `(C+, C-, 1)` or a
//! direction `(C+, C-, 0)` at infinity, so that the unbounded plane needs no second code path. Edges run
//! counter-clockwise, edge `e` from vertex `e` to vertex `e + 1`.

use super::keys::{Event, Frame};

/// A vertex in homogeneous coordinates.
pub type Vertex = [f64; 3];
/// A half-plane, or the line that bounds it.
pub type HalfPlane = [f64; 3];

/// A cut closer than this to a vertex, relative to the terms of the line there, is taken to pass through the
/// vertex.
const TOUCH: f64 = 1e-13;
/// The same for directions: lines that are parallel but for rounding meet at infinity.
const TOUCH_INFINITE: f64 = 1e-9;

/// The value of a line at a point.
#[inline(always)]
pub fn value(line: &HalfPlane, point: &Vertex) -> f64 {
    line[0] * point[0] + line[1] * point[1] + line[2] * point[2]
}

fn magnitude(line: &HalfPlane, point: &Vertex) -> f64 {
    (line[0] * point[0]).abs() + (line[1] * point[1]).abs() + (line[2] * point[2]).abs()
}

/// A convex polygon with the event that made each edge.
#[derive(Clone, Debug, Default)]
pub struct Polygon {
    /// Line of each edge.
    pub lines: Vec<HalfPlane>,
    /// Event of each edge.
    pub events: Vec<Event>,
    /// Start of each edge.
    pub vertices: Vec<Vertex>,
    values: Vec<f64>,
    spare: Vec<(HalfPlane, Event, Vertex)>,
}

impl Polygon {
    /// Becomes the box from the origin to `limit` (either side may be infinite). The axes are moved out by
    /// `relax` where it is above 0, for facets whose own constraints imply them.
    pub fn frame(&mut self, limit: [f64; 2], relax: [f64; 2]) {
        self.lines.clear();
        self.events.clear();
        let mut push = |line, side| {
            self.lines.push(line);
            self.events.push(Event::frame(side));
        };
        push([0.0, 1.0, relax[1]], Frame::Bottom);
        if limit[0].is_finite() {
            push([-1.0, 0.0, limit[0]], Frame::Right);
        }
        if limit.iter().any(|limit| limit.is_infinite()) {
            push([0.0, 0.0, 1.0], Frame::Infinity);
        }
        if limit[1].is_finite() {
            push([0.0, -1.0, limit[1]], Frame::Top);
        }
        push([1.0, 0.0, relax[0]], Frame::Left);
        let m = self.lines.len();
        self.vertices.clear();
        self.vertices.extend((0..m).map(|e| cross(&self.lines[(e + m - 1) % m], &self.lines[e])));
        self.vertices.iter_mut().for_each(normalise);
    }

    /// Number of edges; 0 for an empty polygon.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Keeps the part where `line` is not negative.
    pub fn clip(&mut self, line: HalfPlane, event: Event) {
        let m = self.len();
        self.values.clear();
        self.values.extend(self.vertices.iter().map(|v| {
            let at = value(&line, v);
            let touch = if v[2] > 0.0 { TOUCH } else { TOUCH_INFINITE };
            if at.abs() <= touch * magnitude(&line, v) { 0.0 } else { at }
        }));
        let Some(first) = (0..m).find(|&e| self.values[e] < 0.0 && self.values[(e + m - 1) % m] >= 0.0)
        else {
            if self.values.iter().any(|&at| at < 0.0) {
                self.lines.clear();
                self.events.clear();
                self.vertices.clear();
            }
            return;
        };
        let mut count = 1;
        while count < m && self.values[(first + count) % m] < 0.0 {
            count += 1;
        }
        self.cut(first, count, line, event);
    }

    /// Replaces the vertices `first .. first + count` (cyclic) by the two points where `line` meets the edges
    /// around them.
    fn cut(&mut self, first: usize, count: usize, line: HalfPlane, event: Event) {
        let m = self.len();
        let (entering, leaving) = ((first + m - 1) % m, (first + count - 1) % m);
        let (before, after) = (entering, (first + count) % m);
        let start = self.meet(entering, before, first, &line);
        let end = self.meet(leaving, after, leaving, &line);
        let leave = (self.lines[leaving], self.events[leaving]);
        let mut next = std::mem::take(&mut self.spare);
        next.clear();
        for k in (after..m).chain(0..after).take(m - count) {
            next.push((self.lines[k], self.events[k], self.vertices[k]));
        }
        let inner = next.len() - 1;
        let infinity = Event::frame(Frame::Infinity);
        if next[inner].2 == start && next[inner].1 != infinity {
            next.pop(); // the edge ends where the line passes through its start
        }
        next.push((line, event, start));
        // The edge at infinity stays, even without length: parallel edges on both sides of it are told apart
        // by it.
        if self.vertices[after] != end || leave.1 == infinity {
            next.push((leave.0, leave.1, end));
        }
        self.lines.clear();
        self.events.clear();
        self.vertices.clear();
        for &(line, event, vertex) in &next {
            self.lines.push(line);
            self.events.push(event);
            self.vertices.push(vertex);
        }
        self.spare = next;
    }

    /// Where `line` meets edge `edge`, between vertex `inner` (not negative) and vertex `outer` (negative).
    fn meet(&self, edge: usize, inner: usize, outer: usize, line: &HalfPlane) -> Vertex {
        let (vi, vo) = (self.values[inner], self.values[outer]);
        if vi == 0.0 {
            return self.vertices[inner];
        }
        let sign = if inner == edge { 1.0 } else { -1.0 };
        let mut point = cross(&self.lines[edge], line).map(|x| sign * x);
        let size = (self.lines[edge][0].abs() + self.lines[edge][1].abs()) * (line[0].abs() + line[1].abs());
        if point[2] <= 1e-9 * size {
            let (a, b) = (&self.vertices[inner], &self.vertices[outer]);
            point = std::array::from_fn(|k| vi * b[k] - vo * a[k]);
        }
        normalise(&mut point);
        point
    }

    /// Area; infinite for an unbounded polygon.
    pub fn area(&self) -> f64 {
        area(&self.vertices)
    }
}

/// Area of a counter-clockwise polygon, computed relative to its first vertex; infinite if it reaches
/// infinity.
pub fn area(vertices: &[Vertex]) -> f64 {
    if vertices.iter().any(|v| v[2] == 0.0) {
        return f64::INFINITY;
    }
    let Some(origin) = vertices.first() else { return 0.0 };
    let at = |k: usize| (vertices[k][0] - origin[0], vertices[k][1] - origin[1]);
    (1..vertices.len().saturating_sub(1)).map(|k| 0.5 * (at(k).0 * at(k + 1).1 - at(k).1 * at(k + 1).0)).sum()
}

fn cross(a: &HalfPlane, b: &HalfPlane) -> Vertex {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// Scales a point to weight 1, or a direction to length 1.
fn normalise(point: &mut Vertex) {
    let [x, y, w] = *point;
    *point = if w > 0.0 {
        [x / w, y / w, 1.0]
    } else {
        let length = x.hypot(y);
        if length > 0.0 { [x / length, y / length, 0.0] } else { [0.0, 0.0, 0.0] }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn square() -> Polygon {
        let mut polygon = Polygon::default();
        polygon.frame([2.0, 3.0], [0.0; 2]);
        polygon
    }

    #[test]
    fn a_frame_is_a_box_or_a_quadrant() {
        assert_eq!(square().area(), 6.0);
        let mut quadrant = Polygon::default();
        quadrant.frame([f64::INFINITY; 2], [0.0; 2]);
        assert_eq!(quadrant.vertices, [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]);
        quadrant.clip([-1.0, -1.0, 5.0], Event(0));
        assert_eq!(quadrant.area(), 12.5);
    }

    #[test]
    fn a_cut_away_polygon_is_empty() {
        let mut polygon = square();
        polygon.clip([-1.0, -1.0, -1.0], Event(0));
        assert!(polygon.is_empty());
        polygon.clip([1.0, 0.0, 0.0], Event(4));
        assert!(polygon.is_empty());
    }

    proptest! {
        /// Areas of the two sides of every cut add up, and the kept vertices obey every line.
        #[test]
        fn cuts_split_areas(
            lines in prop::collection::vec((-1.0..1.0f64, -1.0..1.0f64, -1.0..2.0f64), 1..20),
        ) {
            let mut polygon = square();
            for (k, (p, q, c)) in lines.iter().enumerate() {
                let mut other = polygon.clone();
                let whole = polygon.area();
                polygon.clip([*p, *q, *c], Event(k as u32 * 4));
                other.clip([-p, -q, -c], Event(k as u32 * 4));
                prop_assert!(
                    (polygon.area() + other.area() - whole).abs() < 1e-10,
                    "{} {} {whole}",
                    polygon.area(),
                    other.area()
                );
                for v in &polygon.vertices {
                    prop_assert!(value(&[*p, *q, *c], v) >= -1e-9);
                }
            }
        }
    }
}
