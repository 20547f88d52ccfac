//! Solutions that need not change any more: the exact end of a search over separable data.
//!
//! On data that a hyperplane separates, the hinge and the squared hinge can be brought to zero, and from some
//! `C` on the solution hardly depends on `C`. A duality gap does not show it: the loss `L` that an
//! approximate solution has left counts `C'/C` times as much at `C'`. Here a solution `(w, b)` at `C` is
//! changed a little, so that it has a gap of at most `tol` at the largest `C` of the search too. The dual
//! value `D` at `C` bounds the optimum at every larger `C`, so it is enough to find a `(w', b')` with
//! `P(w', b') <= (1 + tol) D` at the largest `C`; then it is accepted at every `C` in between.
//!
//! 1. `(s w, s b)` with the best factor `s >= 1`: rows with a margin a little below 1 lose their loss. One
//!    pass for the margins, given up at the first row by which the loss is too large for any factor; then a
//!    convex problem in one variable over the rows of margin below 1.
//! 2. If that fails, every such row is first moved to its margin by itself,
//!    `w += (1 - m_i) / |x_i|^2 y_i x_i`, a step that is the right one for rows without common columns; then
//!    the best factor again. Two more passes at most.
//!
//! Measured (imdb, hinge, no intercept, all rows, fit at `C` = 8 to a gap of 1e-4): gap at `C` = 1024 of the
//! solution as it is 1.4e-2, scaled to no loss at all 1.4e-2, best factor 1.5e-3, after the move 5e-4. Tried:
//! a second move, which overshoots (gap 5e-2).

use crate::fit::{Intercept, Problem};
use crate::loss::Loss;
use crate::matrix::Rows;

/// Halvings of the interval of the factor.
const HALVINGS: usize = 60;

/// A point and the value by which it is judged.
pub struct PrimalPoint {
    /// Weights.
    pub w: Vec<f64>,
    /// Intercept.
    pub b: f64,
    /// `1/2 |w|^2`, with the constant column's weight where it is penalised.
    pub norm: f64,
}

/// An attempt; the problem's costs are those of the largest `C`.
pub struct Extension<'a, L> {
    /// The lane's problem at the largest `C`.
    pub problem: Problem<'a>,
    /// Its loss.
    pub loss: L,
    /// `(1 + tol) D`.
    pub limit: f64,
    /// Readings of the data so far.
    pub passes: f64,
}

/// A row of margin below 1.
struct Short {
    row: usize,
    margin: f64,
}

/// `1/2 |w|^2` with the weight of a penalised intercept `b`.
pub fn norm(intercept: Intercept, w: &[f64], b: f64) -> f64 {
    let constant = if let Intercept::Penalised(s) = intercept { b / s } else { 0.0 };
    0.5 * (w.iter().map(|w| w * w).sum::<f64>() + constant * constant)
}

impl<L: Loss> Extension<'_, L> {
    /// Changes the point to one that is accepted at the largest `C`, and returns its loss there; `None` if
    /// there is none near, the point then being of no use.
    pub fn run(&mut self, point: &mut PrimalPoint) -> Option<f64> {
        if !(point.norm > 0.0 && point.norm <= self.limit) {
            return None;
        }
        let short = self.short_rows(point)?;
        if let Some(loss) = self.scale(point, &short) {
            return Some(loss);
        }
        self.move_rows(point, &short);
        let short = self.short_rows(point)?;
        self.scale(point, &short)
    }

    fn id(&self, row: usize) -> usize {
        self.problem.ids.map_or(row, |ids| ids[row] as usize)
    }

    /// The rows of margin below 1; `None` as soon as their loss is too large whatever the factor.
    fn short_rows(&mut self, point: &PrimalPoint) -> Option<Vec<Short>> {
        let Problem { rows, y, cost, .. } = self.problem;
        let (largest, mut least_loss) = (self.largest_factor(point), 0.0);
        let mut short = Vec::new();
        for row in 0..y.len() {
            let margin = y[row] * (rows.dot(self.id(row), &point.w) + point.b);
            if margin >= 1.0 {
                continue;
            }
            least_loss += cost[row] * self.loss.value(largest * margin.max(0.0));
            if point.norm + least_loss > self.limit {
                self.passes += (row + 1) as f64 / y.len() as f64;
                return None;
            }
            short.push(Short { row, margin });
        }
        self.passes += 1.0;
        Some(short)
    }

    /// The factor at which the norm alone reaches the limit.
    fn largest_factor(&self, point: &PrimalPoint) -> f64 {
        (self.limit / point.norm).sqrt().max(1.0)
    }

    /// Multiplies the point by the best factor, if that makes it acceptable; returns the loss.
    fn scale(&self, point: &mut PrimalPoint, short: &[Short]) -> Option<f64> {
        let cost = self.problem.cost;
        let slope = |s: f64| {
            let row = |r: &Short| cost[r.row] * r.margin * self.loss.derivative(s * r.margin);
            2.0 * s * point.norm + short.iter().map(row).sum::<f64>()
        };
        let (mut low, mut high) = (1.0, self.largest_factor(point));
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if slope(middle) < 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        let loss = |s: f64| short.iter().map(|r| cost[r.row] * self.loss.value(s * r.margin)).sum::<f64>();
        let candidates = [1.0, low, high].map(|s| (s, loss(s)));
        let value = |(s, loss): (f64, f64)| point.norm * s * s + loss;
        let (s, loss) = candidates.into_iter().min_by(|a, b| value(*a).total_cmp(&value(*b)))?;
        if value((s, loss)) > self.limit {
            return None;
        }
        point.w.iter_mut().for_each(|w| *w *= s);
        point.b *= s;
        point.norm *= s * s;
        Some(loss)
    }

    fn move_rows(&mut self, point: &mut PrimalPoint, short: &[Short]) {
        let Problem { rows, y, intercept, .. } = self.problem;
        let constant = intercept.penalised_height().powi(2);
        for r in short {
            let squared = rows.squared_norm(self.id(r.row)) + constant;
            if squared > 0.0 {
                let step = y[r.row] * (1.0 - r.margin) / squared;
                rows.add_scaled(self.id(r.row), step, &mut point.w);
                point.b += step * constant;
            }
        }
        point.norm = norm(intercept, &point.w, point.b);
        self.passes += short.len() as f64 / y.len() as f64;
    }
}
