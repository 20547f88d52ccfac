//! Exact minimisation over the intercept alone, at fixed weights.
//!
//! Both the best primal point for given weights and a dual point with `sum y_i a_i = 0` need it. With margins
//! `m_i = y_i (w.x_i + b)` known, no data are read.

use std::convert::Infallible;

use super::objective::{Objective, Shifted, Weighted, sum_terms};
use crate::loss::Loss;
use crate::memory::CollectLarge;

/// Relative size of the derivative at which the intercept counts as exact; a few rounding errors of a sum
/// over rows.
pub const EXACT: f64 = 1e-13;
/// Bisection alone needs about 60 halvings for a double.
const MAX_STEPS: usize = 120;

/// Shift of the intercept that minimises `sum_i f_i(z_i + shift)` in each lane, by Newton's method kept
/// inside a bracket. Needs a row of each sign, otherwise there is no minimum and the shift is meaningless.
pub fn smooth_shift<O: Objective<L>, const L: usize>(objective: &O, z: &[[f64; L]]) -> [f64; L] {
    let found = find_shift(EXACT, |shifts, _| Ok::<_, Infallible>(slopes_at(objective, z, shifts)));
    found.unwrap_or_else(|never| match never {})
}

/// Sums over the rows of the slope, of the curvature and of the size of the slope at shifted decision values.
pub fn slopes_at<O: Objective<L>, const L: usize>(
    objective: &O,
    z: &[[f64; L]],
    shifts: &[f64; L],
) -> [[f64; L]; 3] {
    sum_terms(objective, Shifted(z, *shifts), |_, [_, slope, bend]| [slope, bend, slope.abs()])
}

/// [`smooth_shift`] where somebody else has the rows, to the relative derivative `exact`; `sums` gives
/// [`slopes_at`] and is told the largest relative derivative where it was asked last, infinite at first.
///
/// # Errors
/// Those of `sums`.
pub fn find_shift<E, const L: usize>(
    exact: f64,
    mut sums: impl FnMut(&[f64; L], f64) -> Result<[[f64; L]; 3], E>,
) -> Result<[f64; L], E> {
    let (mut searches, mut relative) = ([Search::default(); L], f64::INFINITY);
    for _ in 0..MAX_STEPS {
        let [slope, curvature, scale] = sums(&searches.map(|search| search.shift), relative)?;
        relative = 0.0;
        for (l, search) in searches.iter_mut().enumerate() {
            search.advance(slope[l], curvature[l], (scale[l], exact));
            if !search.is_done {
                relative = relative.max(slope[l].abs() / scale[l]);
            }
        }
        if searches.iter().all(|search| search.is_done) {
            break;
        }
    }
    Ok(searches.map(|search| search.shift))
}

/// The search for one lane's shift.
#[derive(Clone, Copy)]
struct Search {
    shift: f64,
    low: f64,
    high: f64,
    reach: f64,
    is_done: bool,
}

impl Default for Search {
    fn default() -> Self {
        Self { shift: 0.0, low: f64::NEG_INFINITY, high: f64::INFINITY, reach: 1.0, is_done: false }
    }
}

impl Search {
    /// One step from the derivatives at the current shift; `scale` is the sum of the sizes of the slope's
    /// terms, `exact` the share of it that counts as nothing.
    fn advance(&mut self, slope: f64, curvature: f64, (scale, exact): (f64, f64)) {
        if self.is_done || slope.abs() <= exact * scale || !slope.is_finite() {
            self.is_done = true;
            return;
        }
        if slope > 0.0 {
            self.high = self.shift;
        } else {
            self.low = self.shift;
        }
        let mut next = self.shift - slope / curvature;
        if !(self.low < next && next < self.high) {
            next = if self.low.is_finite() && self.high.is_finite() {
                0.5 * (self.low + self.high)
            } else {
                self.reach *= 2.0;
                self.shift - self.reach * slope.signum()
            };
        }
        self.is_done = next == self.shift;
        self.shift = next;
    }
}

/// Intercept that minimises `sum_i c_i max(0, 1 - y_i (f_i + b))` for decision values `f_i` without
/// intercept.
///
/// The sum is convex and piecewise linear with a kink at `y_i - f_i` for each row; its slope starts at minus
/// the cost of the positive rows and rises by `c_i` at each kink. Where the minimum is an interval, its
/// middle is returned.
pub fn hinge_optimum(y: &[f64], cost: &[f64], decision: &[f64]) -> f64 {
    let mut kinks: Vec<(f64, f64)> = (0..y.len()).map(|i| (y[i] - decision[i], cost[i])).collect_large();
    hinge_optimum_of(&mut kinks, (0..y.len()).filter(|&i| y[i] > 0.0).map(|i| cost[i]).sum())
}

/// [`hinge_optimum`] from the kinks with their costs (of any sign, only the size counts), which it sorts, and
/// the cost of the positive rows.
pub fn hinge_optimum_of(kinks: &mut [(f64, f64)], positive: f64) -> f64 {
    kinks.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let total: f64 = kinks.iter().map(|kink| kink.1.abs()).sum();
    let mut slope = -positive;
    for (k, &(at, c)) in kinks.iter().enumerate() {
        slope += c.abs();
        if slope >= -EXACT * total {
            let flat = slope <= EXACT * total && k + 1 < kinks.len();
            return if flat { 0.5 * (at + kinks[k + 1].0) } else { at };
        }
    }
    kinks.last().map_or(0.0, |&(at, _)| at)
}

/// Exact best intercept for margins without one, of any loss.
pub fn best_intercept<L: Loss>(loss: L, y: &[f64], cost: &[f64], margins: &[f64]) -> f64 {
    let decision: Vec<f64> = margins.iter().zip(y).map(|(m, y)| m * y).collect_large();
    if loss.is_smooth() {
        let [shift] = smooth_shift(&Weighted { loss, y, cost }, decision.as_chunks().0);
        shift
    } else {
        hinge_optimum(y, cost, &decision)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{Hinge, Logistic, SquaredHinge};
    use proptest::prelude::*;

    fn rows() -> impl Strategy<Value = Vec<(bool, f64, f64)>> {
        prop::collection::vec((any::<bool>(), -5.0..5.0f64, 0.01..4.0f64), 2..40)
            .prop_filter("both signs", |rows| rows.iter().any(|r| r.0) && rows.iter().any(|r| !r.0))
    }

    fn columns(rows: &[(bool, f64, f64)]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let y = rows.iter().map(|r| if r.0 { 1.0 } else { -1.0 }).collect();
        (y, rows.iter().map(|r| r.1).collect(), rows.iter().map(|r| r.2).collect())
    }

    fn objective<L: Loss>(loss: L, y: &[f64], f: &[f64], cost: &[f64], b: f64) -> f64 {
        (0..y.len()).map(|i| cost[i] * loss.value(y[i] * (f[i] + b))).sum()
    }

    fn check_minimum(value: impl Fn(f64) -> f64, b: f64) -> Result<(), TestCaseError> {
        for step in [-1.0, -1e-3, 1e-3, 1.0] {
            prop_assert!(value(b) <= value(b + step) + 1e-10, "b {b} is worse than a step of {step}");
        }
        Ok(())
    }

    #[test]
    fn a_search_ends_where_it_is_exact_and_says_how_near_it_is() {
        let (y, cost, z) = ([1.0, 1.0, -1.0], [1.0; 3], [[0.3], [-2.0], [1.5]]);
        let objective = Weighted { loss: Logistic, y: &y, cost: &cost };
        let search = |exact: f64| {
            let mut told = Vec::new();
            let found = find_shift(exact, |shifts, relative| {
                let [slope, curvature, scale] = slopes_at(&objective, &z, shifts);
                told.push((relative, slope[0].abs() / scale[0]));
                Ok::<_, Infallible>([slope, curvature, scale])
            });
            (found.unwrap_or_else(|never| match never {}), told)
        };
        let ((close, exact), (rough, told)) = (search(EXACT), search(1e-2));
        assert_eq!(close, smooth_shift(&objective, &z));
        assert!((rough[0] - close[0]).abs() < 0.1 && rough != close && told.len() < exact.len());
        // Each is told what the one before has found.
        assert_eq!(told[0].0, f64::INFINITY);
        assert!(told.windows(2).all(|pair| pair[1].0 == pair[0].1));
        assert!(told.last().unwrap().1 <= 1e-2);
    }

    proptest! {
        #[test]
        fn hinge_minimum_is_found(rows in rows()) {
            let (y, f, cost) = columns(&rows);
            check_minimum(|b| objective(Hinge, &y, &f, &cost, b), hinge_optimum(&y, &cost, &f))?;
        }

        #[test]
        fn smooth_minimum_is_found(rows in rows()) {
            let (y, f, cost) = columns(&rows);
            let z: Vec<[f64; 1]> = f.iter().map(|f| [*f]).collect();
            let [b] = smooth_shift(&Weighted { loss: Logistic, y: &y, cost: &cost }, &z);
            check_minimum(|b| objective(Logistic, &y, &f, &cost, b), b)?;
            let [b] = smooth_shift(&Weighted { loss: SquaredHinge, y: &y, cost: &cost }, &z);
            check_minimum(|b| objective(SquaredHinge, &y, &f, &cost, b), b)?;
        }
    }
}
