//! The step of dual coordinate descent for logistic regression (Yu11, algorithm 3).
//!
//! Solves `min_a 1/2 a'Qa + sum_i [a_i log a_i + (c_i - a_i) log(c_i - a_i)]` over `0 < a_i <
//! c_i`. The step of row `i` finds the root of the derivative along its coordinate. Deviation: the state of a
//! row is the logit `t = log(a / (c - a))` instead of `a`, in which the derivative
//!
//! ```text
//! F(t) = t + m + q (c sigmoid(t) - a_old),     m = y_i (w.x_i + offset),  q = x_i.x_i
//! ```
//!
//! rises with slope between 1 and `1 + q c / 4`, is exact up to both ends of the box (no second variable
//! `c - a` is needed), and has its root between `-m - q (c - a_old)` and `-m + q a_old`: Halley's method
//! inside this bracket always ends. The first step needs no exponential, since `a` is kept, nor does the new
//! `a` after the last, which is short: nine of ten visits take one or two (a9a, flights, 20news).

use super::active::ActiveSet;
use super::method::{ClassRow, Epoch, Epochs, Fate, Method, RowConstants, Visit, ones};
use crate::fit::problem::Problem;
use crate::loss::{Logistic, sigmoid, sigmoids};
use crate::matrix::Rows;
use crate::matrix::kernels::prefetch;
use crate::memory::CollectLarge;

/// Steps on one coordinate; two or three are usual, the bracket alone needs about 60.
const MAX_INNER: usize = 100;
/// Halley's method converges cubically, and the ratios of the derivatives of `F` are at most 1: after a step
/// of this size, the logit is exact to about 1e-12.
const INNER_ACCURACY: f64 = 1e-4;
/// Largest logit taken over from a start point; `sigmoid` is 1 to double precision beyond.
const MAX_LOGIT: f64 = 36.0;

#[derive(Clone, Copy)]
struct Row {
    logit: f64,
    /// `cost * sigmoid(logit)`, kept because an exponential costs as much as ten entries.
    alpha: f64,
    cost: f64,
    /// As often as changes count; NaN until the first visit, which has the row in cache.
    squared_norm: f64,
    y: f64,
}

impl Row {
    fn set_logit(&mut self, logit: f64) {
        self.logit = logit;
        self.alpha = self.cost * sigmoid(logit);
    }

    /// Moves to the root of `F` of the module's description.
    #[inline(always)]
    fn move_to_root(&mut self, margin: f64) {
        let Self { logit, alpha, cost, squared_norm, .. } = *self;
        let mut point = [[logit], [alpha]];
        move_to_roots(&mut point, cost, squared_norm, [margin]);
        let [[logit], [alpha]] = point;
        (self.logit, self.alpha) = (logit, alpha);
    }
}

/// Moves logits and dual variables of a row in several problems to the roots of `F` of the module's
/// description, each step for all of them before the next.
#[inline(always)]
fn move_to_roots<const L: usize>([logit, alpha]: &mut [[f64; L]; 2], cost: f64, q: f64, margin: [f64; L]) {
    let old = *alpha;
    let (mut low, mut high, mut t, mut s) = ([0.0; L], [0.0; L], [0.0; L], [0.0; L]);
    let mut stay = true;
    for l in 0..L {
        (low[l], high[l]) = (-margin[l] - q * (cost - old[l]), -margin[l] + q * old[l]);
        t[l] = logit[l].max(low[l]).min(high[l]);
        stay &= t[l] == logit[l];
    }
    if !stay {
        s = sigmoids(t);
    }
    for l in 0..L {
        let here = old[l] / cost;
        s[l] = if t[l] == logit[l] { here } else { s[l] };
    }
    let mut is_open = [true; L];
    for _ in 0..MAX_INNER {
        for l in 0..L {
            let value = t[l] + margin[l] + q * (cost * s[l] - old[l]);
            high[l] = if value > 0.0 { t[l] } else { high[l] };
            low[l] = if value > 0.0 { low[l] } else { t[l] };
            let bend = s[l] * (1.0 - s[l]);
            let slope = 1.0 + q * cost * bend;
            // Half of the second derivative times the value, as a share of the squared slope at most a half:
            // a step then is two thirds to twice Newton's, and short only near the root. No `clamp`: it
            // panics at NaN, which the fit refuses later.
            let limit = 0.5 * slope * slope;
            let turn = (0.5 * value * (slope - 1.0) * (1.0 - 2.0 * s[l])).max(-limit).min(limit);
            let step = value * slope / (slope * slope - turn);
            let next = t[l] - step;
            let is_short = step.abs() <= INNER_ACCURACY.max(4.0 * f64::EPSILON * t[l].abs());
            let is_found = is_open[l] & is_short;
            let found = cost * (s[l] - step * bend * third_order(s[l], bend, step));
            logit[l] = if is_found { next } else { logit[l] };
            alpha[l] = if is_found { found } else { alpha[l] };
            is_open[l] &= !is_short;
            // Strictly inside, or two ends of the bracket could alternate for ever.
            let middle = 0.5 * (low[l] + high[l]);
            t[l] = if (low[l] < next) & (next < high[l]) { next } else { middle };
        }
        if is_open == [false; L] {
            return;
        }
        s = sigmoids(t);
    }
    for l in 0..L {
        logit[l] = if is_open[l] { t[l] } else { logit[l] };
        alpha[l] = if is_open[l] { cost * s[l] } else { alpha[l] };
    }
}

/// `[sigmoid(t) - sigmoid(t - step)] / (step sigmoid'(t))` up to the third power of a short step, with the
/// value `s` and the slope `bend` of the sigmoid at `t`.
#[inline(always)]
fn third_order(s: f64, bend: f64, step: f64) -> f64 {
    1.0 - 0.5 * step * ((1.0 - 2.0 * s) - step / 3.0 * (1.0 - 6.0 * bend))
}

/// That of a dual variable close to zero, `a = min(c / 1000, 1e-8)` (Yu11, section 3.4).
fn first_logit(cost: f64) -> f64 {
    let a = (1e-3 * cost).min(1e-8);
    (a / (cost - a)).ln()
}

/// The logit of a start. NaN (outside the box) and infinities (on its border) go to the nearest that is
/// representable inside.
fn logit_at(a: f64, cost: f64) -> f64 {
    let logit = (a / (cost - a)).ln();
    if logit.is_nan() { MAX_LOGIT } else { logit.clamp(-20.0 * MAX_LOGIT, MAX_LOGIT) }
}

/// State of the descent.
pub struct LogisticCd {
    rows: Vec<Row>,
    order: ActiveSet,
}

impl LogisticCd {
    /// Starts close to zero: at `a_i = min(c_i / 1000, 1e-8)` (Yu11, section 3.4).
    pub fn new(problem: &Problem<'_>) -> Self {
        Self::of(problem.y, problem.cost)
    }

    /// The same for rows of which only labels and costs are known.
    pub fn of(y: &[f64], cost: &[f64]) -> Self {
        // Costs are mostly the same from one row to the next, and so are logits.
        let mut last =
            Row { logit: f64::NAN, alpha: f64::NAN, cost: f64::NAN, squared_norm: f64::NAN, y: 0.0 };
        let row = |(&y, &cost): (&f64, &f64)| {
            if cost != last.cost {
                last.cost = cost;
                last.set_logit(first_logit(cost));
            }
            Row { y, ..last }
        };
        Self { rows: y.iter().zip(cost).map(row).collect_large(), order: ActiveSet::all(y.len()) }
    }
}

impl Method for LogisticCd {
    type Loss = Logistic;

    fn loss(&self) -> Logistic {
        Logistic
    }

    fn start_at(&mut self, alpha: &[f64]) {
        for (row, a) in self.rows.iter_mut().zip(alpha) {
            row.set_logit(logit_at(*a, row.cost));
        }
    }

    fn alpha(&self, i: usize) -> f64 {
        self.rows[i].alpha
    }

    fn active(&mut self) -> &mut ActiveSet {
        &mut self.order
    }

    #[inline(always)]
    fn step<R: Rows>(&mut self, rows: &R, i: usize, visit: &mut Visit<'_>, epoch: &mut Epoch) -> Fate {
        let row = &mut self.rows[i];
        let margin = row.y * (rows.dot(i, visit.w) + visit.offset);
        if row.squared_norm.is_nan() {
            row.squared_norm = visit.stretch * rows.squared_norm(i);
        }
        let old = row.alpha;
        let gradient = row.logit + margin;
        epoch.largest = epoch.largest.max(gradient);
        epoch.smallest = epoch.smallest.min(gradient);
        row.move_to_root(margin);
        let change = row.alpha - old;
        // The gain of an exact step along a coordinate with curvature at least q, to first order.
        epoch.gain -= 0.5 * change * gradient;
        rows.add_scaled(i, change * row.y * visit.stretch, visit.w);
        Fate::Stays
    }

    #[inline(always)]
    fn prefetch(&self, i: usize) {
        prefetch(&self.rows, i, size_of::<Row>());
    }
}

/// The variables of a row in several problems.
#[derive(Clone)]
pub struct LogisticRow<const L: usize> {
    /// Logits, and the dual variables of them.
    point: [[f64; L]; 2],
}

impl<const L: usize> ClassRow<Logistic, L> for LogisticRow<L> {
    fn first(_: Logistic, cost: f64) -> Self {
        let logit = first_logit(cost);
        Self { point: [[logit; L], [cost * sigmoid(logit); L]] }
    }

    fn start_at(&mut self, _: Logistic, cost: f64, l: usize, alpha: f64) {
        let logit = logit_at(alpha, cost);
        (self.point[0][l], self.point[1][l]) = (logit, cost * sigmoid(logit));
    }

    fn lanes<const N: usize>(&self, from: [usize; N]) -> LogisticRow<N> {
        LogisticRow { point: self.point.map(|lanes| from.map(|l| lanes[l])) }
    }

    fn alpha(&self) -> &[f64; L] {
        &self.point[1]
    }

    /// The same as [`LogisticCd::step`] in each problem.
    #[inline(always)]
    fn step(
        &mut self,
        _: Logistic,
        row: RowConstants,
        margin: &[f64; L],
        _: &[[f64; L]; 2],
        active: &mut u8,
        epochs: &mut Epochs<L>,
    ) -> [f64; L] {
        let ([logit, old], mut next) = (self.point, self.point);
        move_to_roots(&mut next, row.cost, row.squared_norm, *margin);
        let here = ones::<L>(*active);
        let mut change = [0.0; L];
        for l in 0..L {
            let by = if here[l] == 0.0 { 0.0 } else { next[1][l] - old[l] };
            // The gain of an exact step along a coordinate with curvature at least q, to first order.
            epochs.gain[l] -= 0.5 * by * (logit[l] + margin[l]);
            change[l] = by;
            self.point[0][l] = if here[l] == 0.0 { logit[l] } else { next[0][l] };
            self.point[1][l] = if here[l] == 0.0 { old[l] } else { next[1][l] };
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn root_is_a_root(
            margin in -700.0..700.0f64,
            q in 0.0..1e6f64,
            log_cost in -20.0..20.0f64,
            t in -40.0..40.0f64,
        ) {
            let cost = log_cost.exp();
            let old = cost * sigmoid(t);
            let mut row = Row { logit: t, alpha: old, cost, squared_norm: q, y: 1.0 };
            row.move_to_root(margin);
            let found = row.logit;
            let value = found + margin + q * (cost * sigmoid(found) - old);
            let scale = 1.0 + margin.abs() + q * cost;
            prop_assert!(value.abs() <= 1e-10 * scale, "F({found}) = {value}");
            let expected = cost * sigmoid(found);
            prop_assert!((row.alpha - expected).abs() <= 1e-13 * expected, "{} not {expected}", row.alpha);
        }

        /// Dual variables follow their logits through many short steps.
        #[test]
        fn short_steps_do_not_add_up(t in -40.0..30.0f64, q in 0.0..100.0f64, seed in 0..99u32) {
            let mut row = Row { logit: t, alpha: 3.0 * sigmoid(t), cost: 3.0, squared_norm: q, y: 1.0 };
            for k in 0..1000 {
                let nudge = f64::from((k * 37 + seed) % 19) - 9.0;
                row.move_to_root(1e-5 * nudge - row.logit);
            }
            let expected = 3.0 * sigmoid(row.logit);
            prop_assert!((row.alpha - expected).abs() <= 1e-12 * expected, "{} not {expected}", row.alpha);
        }
    }
}
