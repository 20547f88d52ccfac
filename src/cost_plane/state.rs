//! One facet of the plane, and the moves to any other.
//!
//! Within a facet, whose sets are those of Wesierski16, eqs. (7)-(9), everything is affine in the two costs,
//! and so are its constraints, eqs. (10)-(14): with `c = (C+, C-, 1)`
//!
//! ```text
//! a_M = Q_MM^-1 (1 + eps_M - Q_ML c_L)
//! slack_i = y_i w.x_i - 1 - eps_i = Q_iM a_M + Q_iL c_L - 1 - eps_i
//! ```
//!
//! are kept as three coefficients per row, in three vectors. A row that changes its state changes the dual
//! variable of one row by an affine map `delta` and those of `M` in proportion, so all coefficients change by
//! one outer product of a combination of lines of [`GramMatrix`] with `delta`: O(n |M|), with nothing
//! allocated. The decision values of watched rows are kept in the same vectors.
//!
//! Rounding: the slack of every row in `M` is zero in exact arithmetic. The largest of their coefficients
//! times the largest entry of the inverse estimates the error of the dual variables ([`FacetState::error`]).
//! [`FacetState::move_to`] computes everything anew where it exceeds [`PlaneProblem::tolerance`], and where
//! that is not enough, in twice the precision ([`super::refine`]).
//!
//! Tried: cutting a polygon first by the constraints nearest to a point of the edge over which the facet was
//! found, instead of by the rows that bounded the last polygon. Half as many cuts, but the distances cost
//! more: 178,000 against 197,000 facets a second (german, 100 rows).

use super::gram::{BLOCK, GramMatrix};
use super::inverse::Inverse;
use super::keys::{Event, Side};
use super::polygon::{HalfPlane, Polygon};
use super::refine::Double;
use super::sets;
use crate::matrix::simd;
use crate::matrix::simd::Loop;
use crate::memory;
use crate::memory::CollectLarge;

/// Steps of refinement in twice the precision; each gains the digits that the condition leaves.
const MAX_REFINEMENTS: usize = 8;
/// Pivot relative to the diagonal below which a row counts as dependent on the margin set.
pub const DEPENDENT: f64 = 1e-11;
/// Slope of a dual variable in a cost that is rounding; of a slack, relative to the mean squared norm of a
/// row.
pub const FLAT: f64 = 1e-9;

/// What does not change from facet to facet.
#[derive(Clone, Copy)]
pub struct PlaneProblem<'a> {
    /// Inner products.
    pub products: &'a GramMatrix,
    /// Labels in {-1, +1}.
    pub y: &'a [f64],
    /// `1 + eps_i`.
    pub target: &'a [f64],
    /// Upper limits of `C+` and `C-`, infinite for none.
    pub limit: [f64; 2],
    /// Error of the dual variables beyond which a facet is computed anew: well below the perturbation.
    pub tolerance: f64,
    /// Slope of a slack below which it is taken to be constant; 0 for a finite box, where it does not matter.
    pub flat: f64,
}

impl PlaneProblem<'_> {
    /// Number of training rows.
    pub fn n(&self) -> usize {
        self.y.len()
    }

    /// The cost of row `i` as an affine map.
    #[inline(always)]
    fn cost(&self, i: usize) -> [f64; 3] {
        if self.y[i] > 0.0 { [1.0, 0.0, 0.0] } else { [0.0, 1.0, 0.0] }
    }
}

/// Three coefficients per entry: of `C+`, of `C-`, and the constant.
type Maps = [Vec<f64>; 3];

/// A state could not be reached: its margin set is dependent to working precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependent;

/// The sets, the inverse and all affine maps of one facet.
pub struct FacetState<'a> {
    plane: PlaneProblem<'a>,
    sides: Vec<Side>,
    sets: Vec<u64>,
    changed: Vec<(u32, Side)>,
    /// +1 right, -1 left, 0 for members of M and watched rows: what turns a slack into a constraint.
    sign: Vec<f64>,
    inverse: Inverse,
    position: Vec<u32>,
    slack: Maps,
    alpha: Maps,
    upper: [Vec<f64>; 2],
    column: Vec<f64>,
    weights: Vec<f64>,
    hot: Vec<u32>,
    /// Outer-product moves made.
    pub n_moves: u64,
    /// Computations anew after the first.
    pub n_refreshed: u64,
    /// Of all computations from scratch, those in twice the precision.
    pub n_refined: u64,
}

/// `slack += u delta'`, `u` the sum of `coefficients[k]` times line `rows[k]`.
struct Shift<'s> {
    products: &'s GramMatrix,
    rows: &'s [u32],
    coefficients: &'s [f64],
    own: Option<u32>,
    delta: [f64; 3],
    slack: &'s mut Maps,
}

impl Loop for Shift<'_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) {
        let [p, q, k] = self.slack;
        let [dp, dq, dk] = self.delta;
        let blocks = p.chunks_exact_mut(BLOCK).zip(q.chunks_exact_mut(BLOCK)).zip(k.chunks_exact_mut(BLOCK));
        for (b, ((p, q), k)) in blocks.enumerate() {
            let at = b * BLOCK;
            let mut sum = [0.0; BLOCK];
            if let Some(own) = self.own {
                sum.copy_from_slice(&self.products.line(own as usize)[at..at + BLOCK]);
            }
            for (row, scale) in self.rows.iter().zip(self.coefficients) {
                let line = &self.products.line(*row as usize)[at..at + BLOCK];
                for l in 0..BLOCK {
                    sum[l] += scale * line[l];
                }
            }
            for l in 0..BLOCK {
                p[l] += sum[l] * dp;
                q[l] += sum[l] * dq;
                k[l] += sum[l] * dk;
            }
        }
    }
}

/// Entries whose constraint some vertex of the polygon violates, one block at a time.
struct Scan<'s> {
    maps: [&'s [f64]; 3],
    sign: &'s [f64],
    vertices: &'s [[f64; 3]],
}

impl Loop for Scan<'_> {
    type Output = u32;
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) -> u32 {
        let [p, q, k] = self.maps;
        let mut lowest = [f64::INFINITY; BLOCK];
        for v in self.vertices {
            for l in 0..BLOCK {
                let at = self.sign[l] * (p[l] * v[0] + q[l] * v[1] + k[l] * v[2]);
                lowest[l] = if at < lowest[l] { at } else { lowest[l] };
            }
        }
        let mut mask = 0;
        for (l, lowest) in lowest.iter().enumerate() {
            mask |= u32::from(*lowest < 0.0) << l;
        }
        mask
    }
}

impl<'a> FacetState<'a> {
    /// A state of `plane` before its first [`Self::rebuild`].
    pub fn new(plane: PlaneProblem<'a>) -> Self {
        let (n, width) = (plane.n(), plane.products.width());
        Self {
            plane,
            sides: memory::filled(Side::Left, n),
            sets: memory::zeros(sets::words(n)),
            changed: Vec::new(),
            sign: memory::zeros(width),
            inverse: Inverse::default(),
            position: memory::filled(u32::MAX, n),
            slack: std::array::from_fn(|_| memory::zeros(width)),
            alpha: Default::default(),
            upper: Default::default(),
            column: Vec::new(),
            weights: Vec::new(),
            hot: Vec::new(),
            n_moves: 0,
            n_refreshed: 0,
            n_refined: 0,
        }
    }

    /// The state of every row.
    pub fn sides(&self) -> &[Side] {
        &self.sides
    }

    /// The state of every row, packed ([`sets`]).
    pub fn sets(&self) -> &[u64] {
        &self.sets
    }

    /// The rows in `M`.
    pub fn members(&self) -> &[u32] {
        &self.inverse.members
    }

    /// Affine map of an entry of the slacks: a training row, or after them a watched row (its decision
    /// value).
    pub fn slack(&self, entry: usize) -> HalfPlane {
        std::array::from_fn(|c| self.slack[c][entry])
    }

    /// Affine map of the dual variable of row `i`.
    pub fn alpha(&self, i: usize) -> HalfPlane {
        match self.sides[i] {
            Side::Left => self.plane.cost(i),
            Side::Right => [0.0; 3],
            Side::On => std::array::from_fn(|c| self.alpha[c][self.position[i] as usize]),
        }
    }

    /// Estimate of the error of the dual variables: largest coefficient of a slack in `M`, all of which are
    /// zero in exact arithmetic, times the largest entry of the inverse.
    pub fn error(&self) -> f64 {
        let (mut residual, mut inverse) = (0.0_f64, 0.0_f64);
        for (k, &i) in self.members().iter().enumerate() {
            let entries = self.slack.each_ref().map(|map| map[i as usize].abs());
            residual = residual.max(entries[0].max(entries[1]).max(entries[2]));
            inverse = inverse.max(self.inverse.line(k)[k]);
        }
        residual * inverse
    }

    /// Computes everything from the sets.
    ///
    /// # Errors
    /// [`Dependent`] margin rows; the state is then unusable until the next rebuild.
    pub fn rebuild(&mut self, sets: &[u64]) -> Result<(), Dependent> {
        self.hot.clear(); // what follows must not depend on what came before
        self.sets.copy_from_slice(sets);
        for (i, side) in self.sides.iter_mut().enumerate() {
            *side = sets::side(sets, i);
        }
        let sides = std::mem::take(&mut self.sides);
        let outcome = self.rebuild_from(&sides);
        self.sides = sides;
        outcome
    }

    fn rebuild_from(&mut self, sides: &[Side]) -> Result<(), Dependent> {
        let plane = self.plane;
        let n = plane.n();
        let members: Vec<u32> = (0..n as u32).filter(|&i| sides[i as usize] == Side::On).collect_large();
        for (to, &side) in self.sign.iter_mut().zip(sides) {
            *to = sign(side);
        }
        self.position.fill(u32::MAX);
        for (k, &i) in members.iter().enumerate() {
            self.position[i as usize] = k as u32;
        }
        let products = plane.products;
        self.inverse
            .rebuild(&members, DEPENDENT, |i, j| products.line(i as usize)[j as usize])
            .map_err(|_| Dependent)?;
        self.resize();
        for (k, &i) in members.iter().enumerate() {
            let cost = plane.cost(i as usize);
            (self.upper[0][k], self.upper[1][k]) = (cost[0], cost[1]);
        }
        let left: [Vec<u32>; 2] = std::array::from_fn(|class| {
            let is_in =
                |&i: &u32| sides[i as usize] == Side::Left && (plane.y[i as usize] > 0.0) == (class == 0);
            (0..n as u32).filter(is_in).collect()
        });
        self.fill(&members, &left);
        if self.error() > self.plane.tolerance {
            self.refine(&members, &left);
            self.n_refined += 1;
        }
        Ok(())
    }

    /// Slacks of the rows in `left`, dual variables of the members, slacks with them.
    fn fill(&mut self, members: &[u32], left: &[Vec<u32>; 2]) {
        self.fill_left(left);
        for c in 0..3 {
            let rhs: Vec<f64> = members.iter().map(|&i| -self.slack[c][i as usize]).collect_large();
            self.inverse.multiply(&rhs, &mut self.weights);
            self.alpha[c][..members.len()].copy_from_slice(&self.weights[..members.len()]);
        }
        self.fill_members(members);
    }

    fn fill_left(&mut self, left: &[Vec<u32>; 2]) {
        self.slack.iter_mut().for_each(|map| map.fill(0.0));
        for (slack, target) in self.slack[2].iter_mut().zip(self.plane.target) {
            *slack = -target;
        }
        for (class, rows) in left.iter().enumerate() {
            let ones = memory::filled(1.0, rows.len());
            self.shift(rows, &ones, std::array::from_fn(|c| f64::from(u8::from(c == class))));
        }
    }

    fn fill_members(&mut self, members: &[u32]) {
        for c in 0..3 {
            let alpha = memory::copy(&self.alpha[c][..members.len()]);
            self.shift(members, &alpha, std::array::from_fn(|k| f64::from(u8::from(c == k))));
        }
    }

    /// Corrects the dual variables by residuals in twice the precision.
    fn refine(&mut self, members: &[u32], left: &[Vec<u32>; 2]) {
        let (products, target) = (self.plane.products, self.plane.target);
        for c in 0..3 {
            let mut alpha: Vec<Double> =
                self.alpha[c][..members.len()].iter().map(|&high| Double { high, low: 0.0 }).collect_large();
            for _ in 0..MAX_REFINEMENTS {
                let residual = |&i: &u32| {
                    let line = products.line(i as usize);
                    let mut sum = Double::default();
                    match c {
                        2 => sum.add(target[i as usize]),
                        _ => left[c].iter().for_each(|&j| sum.add(-line[j as usize])),
                    }
                    members.iter().zip(&alpha).for_each(|(&j, &a)| sum.add_product(-line[j as usize], a));
                    sum.high
                };
                let rhs: Vec<f64> = members.iter().map(residual).collect_large();
                self.inverse.multiply(&rhs, &mut self.weights);
                let mut is_done = true;
                for (a, &step) in alpha.iter_mut().zip(&self.weights) {
                    is_done &= step.abs() <= f64::EPSILON * a.high.abs();
                    a.add(step);
                }
                if is_done {
                    break;
                }
            }
            for (to, from) in self.alpha[c].iter_mut().zip(&alpha) {
                *to = from.high;
            }
            self.refine_slack(c, members, &alpha, &left[c.min(1)]);
        }
    }

    /// Coefficient `c` of every slack, in twice the precision: a row that depends on the margin set has
    /// slopes that cancel exactly.
    fn refine_slack(&mut self, c: usize, members: &[u32], alpha: &[Double], left: &[u32]) {
        let (plane, watched) = (self.plane, self.plane.products.n_watched());
        for entry in 0..plane.n() + watched {
            let mut sum = Double::default();
            match (c, plane.target.get(entry)) {
                (2, Some(target)) => sum.add(-target),
                (2, None) => {}
                _ => left.iter().for_each(|&j| sum.add(plane.products.line(j as usize)[entry])),
            }
            let terms = members.iter().zip(alpha);
            terms.for_each(|(&j, &a)| sum.add_product(plane.products.line(j as usize)[entry], a));
            self.slack[c][entry] = sum.high;
        }
        for &i in members {
            self.slack[c][i as usize] = 0.0;
        }
    }

    /// Moves to the given sets, by single changes where the margin system stays exact enough: rows leave `M`
    /// first (any subset of independent rows is independent), then rows jump over it, then rows enter.
    ///
    /// # Errors
    /// [`Dependent`] as in [`Self::rebuild`].
    pub fn move_to(&mut self, sets: &[u64]) -> Result<(), Dependent> {
        let mut changed = std::mem::take(&mut self.changed);
        changed.clear();
        sets::differences(&self.sets, sets, &mut changed);
        let is_exact = self.make(&changed) && self.error() <= self.plane.tolerance;
        self.changed = changed;
        if is_exact {
            return Ok(());
        }
        self.n_refreshed += 1;
        self.rebuild(sets)
    }

    /// Makes the changes; whether every entering row was independent.
    fn make(&mut self, changed: &[(u32, Side)]) -> bool {
        for &(i, to) in changed {
            if self.sides[i as usize] == Side::On {
                self.leave(i, to);
            }
        }
        for &(i, to) in changed {
            if self.sides[i as usize] != to && to != Side::On {
                self.jump(i, to);
            }
        }
        changed.iter().all(|&(i, to)| to != Side::On || self.enter(i).is_ok())
    }

    /// Makes a single change.
    ///
    /// # Errors
    /// [`Dependent`] when the entering row depends on the margin set.
    pub fn cross(&mut self, event: Event) -> Result<(), Dependent> {
        match event.sides().1 {
            Side::On => self.enter(event.row()),
            side => {
                self.leave(event.row(), side);
                Ok(())
            }
        }
    }

    /// `M` loses row `i`.
    fn leave(&mut self, i: u32, to: Side) {
        let k = self.position[i as usize] as usize;
        let n = self.inverse.len();
        self.resize();
        let scale = 1.0 / self.inverse.line(k)[k];
        for (weight, value) in self.weights.iter_mut().zip(self.inverse.line(k)) {
            *weight = scale * value;
        }
        let new = if to == Side::Left { self.plane.cost(i as usize) } else { [0.0; 3] };
        let delta: [f64; 3] = std::array::from_fn(|c| new[c] - self.alpha[c][k]);
        self.shift_members(delta);
        self.shift_alpha(delta);
        self.inverse.leave(k, &mut self.column);
        for list in self.alpha.iter_mut().chain(&mut self.upper) {
            list[k] = list[n - 1];
        }
        if k < n - 1 {
            self.position[self.inverse.members[k] as usize] = k as u32;
        }
        self.position[i as usize] = u32::MAX;
        self.set(i, to);
    }

    /// Row `i`, outside of `M`, changes to the other side.
    fn jump(&mut self, i: u32, to: Side) {
        let cost = self.plane.cost(i as usize);
        let delta = if to == Side::Left { cost } else { cost.map(|c| -c) };
        self.respond(i);
        self.shift_own(i, delta);
        self.set(i, to);
    }

    /// `M` gains row `i`.
    fn enter(&mut self, i: u32) -> Result<(), Dependent> {
        let plane = self.plane;
        let line = plane.products.line(i as usize);
        self.respond(i);
        let n = self.inverse.len();
        let drop: f64 =
            self.members().iter().zip(&self.weights).map(|(&m, weight)| weight * line[m as usize]).sum();
        let full = line[i as usize];
        let s = full + drop; // the weights carry the sign
        if s.is_nan() || s <= DEPENDENT * full {
            return Err(Dependent);
        }
        let delta: [f64; 3] = std::array::from_fn(|c| -self.slack[c][i as usize] / s);
        self.shift_own(i, delta);
        let old = if self.sides[i as usize] == Side::Left { plane.cost(i as usize) } else { [0.0; 3] };
        for k in 0..n {
            self.weights[k] = -self.weights[k];
        }
        self.inverse.enter(i, &self.weights, s);
        for c in 0..3 {
            self.alpha[c][n] = old[c] + delta[c];
        }
        let cost = plane.cost(i as usize);
        (self.upper[0][n], self.upper[1][n]) = (cost[0], cost[1]);
        self.position[i as usize] = n as u32;
        self.set(i, Side::On);
        Ok(())
    }

    /// `weights = -Q_MM^-1 Q_Mi`: how the members answer to a unit of row `i`.
    fn respond(&mut self, i: u32) {
        self.resize();
        let line = self.plane.products.line(i as usize);
        self.column.clear();
        self.column.extend(self.inverse.members.iter().map(|&m| -line[m as usize]));
        self.weights.fill(0.0);
        self.inverse.multiply(&self.column, &mut self.weights);
        self.column.resize(self.inverse.padded(), 0.0);
    }

    /// Row `i` changes its dual variable by `delta`, the members answer by `weights * delta`.
    fn shift_own(&mut self, i: u32, delta: [f64; 3]) {
        let n = self.inverse.len();
        simd::run(Shift {
            products: self.plane.products,
            rows: &self.inverse.members,
            coefficients: &self.weights[..n],
            own: Some(i),
            delta,
            slack: &mut self.slack,
        });
        self.shift_alpha(delta);
    }

    /// The dual variables of the members change by `weights * delta`.
    fn shift_alpha(&mut self, delta: [f64; 3]) {
        let weights = &self.weights[..self.inverse.len()];
        for (map, delta) in self.alpha.iter_mut().zip(delta) {
            map.iter_mut().zip(weights).for_each(|(alpha, weight)| *alpha += weight * delta);
        }
    }

    fn shift_members(&mut self, delta: [f64; 3]) {
        let n = self.inverse.len();
        simd::run(Shift {
            products: self.plane.products,
            rows: &self.inverse.members,
            coefficients: &self.weights[..n],
            own: None,
            delta,
            slack: &mut self.slack,
        });
    }

    fn shift(&mut self, rows: &[u32], coefficients: &[f64], delta: [f64; 3]) {
        let products = self.plane.products;
        simd::run(Shift { products, rows, coefficients, own: None, delta, slack: &mut self.slack });
    }

    fn set(&mut self, i: u32, side: Side) {
        self.sides[i as usize] = side;
        sets::put(&mut self.sets, i as usize, side);
        self.sign[i as usize] = sign(side);
        self.n_moves += 1;
    }

    /// Makes room for one member more.
    fn resize(&mut self) {
        let padded = self.inverse.padded();
        self.column.resize(padded, 0.0);
        self.weights.resize(padded, 0.0);
        let room = padded.next_multiple_of(BLOCK);
        if self.alpha[0].len() < room {
            self.alpha.iter_mut().chain(&mut self.upper).for_each(|list| list.resize(room, 0.0));
        }
    }

    /// The polygon of the facet: constraints of Wesierski16, eqs. (10)-(14), within the limits of the plane.
    pub fn polygon(&mut self, polygon: &mut Polygon) {
        let relax = self.relax();
        polygon.frame(self.plane.limit, relax);
        // Rows that bounded the last polygon first: most of them bound this one, and what is left is small.
        let mut hot = std::mem::take(&mut self.hot);
        for &i in &hot {
            self.cut(polygon, i);
        }
        for b in 0..self.plane.n().div_ceil(BLOCK) {
            let at = b * BLOCK..(b + 1) * BLOCK;
            let mut mask = simd::run(Scan {
                maps: std::array::from_fn(|c| &self.slack[c][at.clone()]),
                sign: &self.sign[at.clone()],
                vertices: &polygon.vertices,
            });
            while mask != 0 {
                self.cut(polygon, (at.start + mask.trailing_zeros() as usize) as u32);
                mask &= mask - 1;
            }
        }
        for k in 0..self.inverse.len() {
            if self.is_cut(polygon, k) {
                self.cut(polygon, self.inverse.members[k]);
            }
        }
        hot.clear();
        hot.extend(polygon.events.iter().filter(|event| !event.is_frame()).map(|event| event.row()));
        self.hot = hot;
    }

    /// How far the axes are moved out: an axis is implied by the bounds of the members of its class, and then
    /// left to them.
    fn relax(&self) -> [f64; 2] {
        let mut relax = [0.0; 2];
        for &i in self.members() {
            relax[usize::from(self.plane.y[i as usize] < 0.0)] = 1.0;
        }
        relax
    }

    fn is_cut(&self, polygon: &Polygon, k: usize) -> bool {
        let [p, q, c] = std::array::from_fn(|c| self.alpha[c][k]);
        let (up, uq) = (self.upper[0][k], self.upper[1][k]);
        polygon.vertices.iter().any(|v| {
            let alpha = p * v[0] + q * v[1] + c * v[2];
            alpha < 0.0 || up * v[0] + uq * v[1] < alpha
        })
    }

    fn cut(&self, polygon: &mut Polygon, i: u32) {
        if polygon.is_empty() {
            return;
        }
        let side = self.sides[i as usize];
        if side == Side::On {
            let flat = if self.plane.flat > 0.0 { FLAT } else { 0.0 };
            let alpha = flatten(self.alpha(i as usize), flat);
            let cost = self.plane.cost(i as usize);
            polygon.clip(alpha, Event::new(i, Side::On, Side::Right));
            if !polygon.is_empty() {
                polygon
                    .clip(std::array::from_fn(|c| cost[c] - alpha[c]), Event::new(i, Side::On, Side::Left));
            }
        } else {
            let sign = sign(side);
            let slack = flatten(self.slack(i as usize), self.plane.flat);
            polygon.clip(slack.map(|c| sign * c), Event::new(i, side, Side::On));
        }
    }
}

/// Sets slopes to zero that are rounding.
fn flatten(line: HalfPlane, flat: f64) -> HalfPlane {
    let snap = |slope: f64| if slope.abs() < flat { 0.0 } else { slope };
    [snap(line[0]), snap(line[1]), line[2]]
}

fn sign(side: Side) -> f64 {
    match side {
        Side::Left => -1.0,
        Side::On => 0.0,
        Side::Right => 1.0,
    }
}
