//! The best common shift of a column's weights in all classes, which changes no loss: what it costs is the
//! penalty alone.
//!
//! A step of Newton's method sees that direction only by the penalty, next to curvatures of the losses that
//! may be ten orders of magnitude larger, and coordinate descent goes along it in small steps to and fro. In
//! one variable its minimum is exact.

use crate::penalty::Term;

/// Share of the sizes of its terms below which a slope is rounding.
const NOISE: f64 = 1e-14;

/// By how much to shift the weights `w` of a column with this penalty; 0 where no shift is better.
pub fn best_shift(term: &Term, w: &[f64]) -> f64 {
    let count = w.len() as f64;
    if term.is_free() {
        return -w.iter().sum::<f64>() / count;
    }
    let whole = Sides { term, w };
    let size = term.l1 * count + term.l2 * w.iter().map(|w| w.abs()).sum::<f64>();
    let [below, above] = whole.slopes(0.0);
    if below <= NOISE * size && above >= -NOISE * size {
        return 0.0;
    }
    let (lowest, highest) = w.iter().fold((f64::NEG_INFINITY, f64::INFINITY), |(low, high), w| {
        (low.max(term.lower - w), high.min(term.upper - w))
    });
    whole.minimum().max(lowest).min(highest)
}

/// The penalty of shifted weights as a function of the shift.
struct Sides<'s> {
    term: &'s Term,
    w: &'s [f64],
}

impl Sides<'_> {
    /// The slopes on the two sides of a shift.
    fn slopes(&self, shift: f64) -> [f64; 2] {
        let Self { term, w } = self;
        let of_squares = term.l2 * w.iter().map(|w| w + shift).sum::<f64>();
        let count = |is_in: fn(f64) -> bool| w.iter().filter(|w| is_in(*w + shift)).count() as f64;
        let (positive, negative) = (count(|w| w > 0.0), count(|w| w < 0.0));
        let zero = w.len() as f64 - positive - negative;
        [positive - negative - zero, positive - negative + zero].map(|sum| term.l1 * sum + of_squares)
    }

    /// Where the slope changes its sign: at a corner, or between two.
    fn minimum(&self) -> f64 {
        let Self { term, w } = self;
        let mut corners: Vec<f64> = w.iter().map(|w| -w).collect();
        corners.sort_unstable_by(f64::total_cmp);
        let rank = corners.partition_point(|corner| self.slopes(*corner)[1] < 0.0);
        if let Some(corner) = corners.get(rank)
            && (term.l2 == 0.0 || self.slopes(*corner)[0] <= 0.0)
        {
            return *corner;
        }
        // As many weights are positive there as corners lie below.
        let (positive, count) = (rank as f64, w.len() as f64);
        let of_sizes = term.l1 * (2.0 * positive - count);
        -(of_sizes / term.l2 + w.iter().sum::<f64>()) / count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_other_shift_is_better(
            w in prop::collection::vec(prop_oneof![Just(0.0), -3.0..3.0f64], 3..8),
            l1 in prop_oneof![Just(0.0), 0.01..2.0f64],
            l2 in prop_oneof![Just(0.0), 0.01..2.0f64],
            room in prop_oneof![Just(f64::INFINITY), 3.0..4.0f64],
        ) {
            let term = Term { l1, l2, lower: -room, upper: room };
            let by = best_shift(&term, &w);
            let value = |by: f64| w.iter().map(|w| term.value(term.clip(w + by))).sum::<f64>();
            let is_within = |by: f64| w.iter().all(|w| term.lower <= w + by && w + by <= term.upper);
            prop_assert!(w.iter().all(|w| (term.clip(w + by) - (w + by)).abs() <= 1e-15 * room.min(9.0)));
            for other in (-60..60).map(|k| f64::from(k) / 10.0).chain([by - 1e-6, by + 1e-6, 0.0]) {
                if is_within(other) {
                    prop_assert!(value(by) <= value(other) + 1e-12, "{} is worse than {}", by, other);
                }
            }
            let there: Vec<f64> = w.iter().map(|w| term.clip(w + by)).collect();
            prop_assert!(best_shift(&term, &there).abs() <= 1e-9);
            // Of absolute values alone the best shift makes a weight 0, so that models stay sparse.
            if by != 0.0 && l1 > 0.0 && l2 == 0.0 && room == f64::INFINITY {
                prop_assert!(there.contains(&0.0));
            }
        }
    }
}
