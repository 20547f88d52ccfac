//! The primal point of a dual method: the best one met, moved to the minimum of segments.
//!
//! The dual point of coordinate descent on the hinge improves with every step, the primal value of its `w(a)`
//! does not: near the end it jumps up and down while the rows around the corner of the hinge take turns. The
//! primal objective is convex, so the best point of the segment from the best one so far to `w(a)` is at
//! least as good as both ends. Margins move linearly: the segment costs no reading of the data, only a few
//! sums over the rows. imdb, hinge, C = 1, to a gap of 1e-6: 171 passes without.

use crate::fit::certificate;
use crate::fit::sweep::{dot, for_chunks, sum};
use crate::loss::Loss;

/// Bisections of the segment: the minimum along it is worth no more.
const BISECTIONS: usize = 6;

/// A point with its margins and objective.
pub struct Best {
    /// Weights.
    pub w: Vec<f64>,
    margins: Vec<f64>,
    /// Primal objective.
    pub value: f64,
}

impl Best {
    /// The point `w` with these margins and this objective.
    pub fn new(w: Vec<f64>, margins: Vec<f64>, value: f64) -> Self {
        Self { w, margins, value }
    }

    /// Moves to about the best point of the segment to `w` with `margins`, and returns the objective there,
    /// never above the one before.
    pub fn approach<L: Loss>(&mut self, loss: L, cost: &[f64], w: &[f64], margins: &[f64]) -> f64 {
        let (here, there) = (&self.margins, margins);
        let (bb, bw, ww) = (dot(&self.w, &self.w), dot(&self.w, w), dot(w, w));
        let at = |t: f64, i: usize| here[i] + t * (there[i] - here[i]);
        let value = |t: f64| {
            let losses = certificate::losses(loss, cost, |i| at(t, i));
            0.5 * ((1.0 - t).powi(2) * bb + 2.0 * t * (1.0 - t) * bw + t * t * ww) + losses
        };
        let slope = |t: f64| {
            let [losses] = sum(cost.len(), |i| [cost[i] * loss.derivative(at(t, i)) * (there[i] - here[i])]);
            t * ww + (1.0 - 2.0 * t) * bw - (1.0 - t) * bb + losses
        };
        let (mut low, mut high) = (0.0, 1.0);
        if slope(1.0) <= 0.0 {
            low = 1.0;
        }
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            if slope(middle) > 0.0 { high = middle } else { low = middle }
        }
        // Both ends of the last interval: at a corner the slope jumps over 0.
        let (best, reached) = [low, high]
            .map(|t| (t, value(t)))
            .into_iter()
            .fold((0.0, self.value), |a, b| if b.1 < a.1 { b } else { a });
        for (mine, its) in [(&mut self.w, w), (&mut self.margins, margins)] {
            for_chunks(mine, |start, mine| {
                for (a, b) in mine.iter_mut().zip(&its[start..]) {
                    *a += best * (b - *a);
                }
            });
        }
        self.value = reached;
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::Hinge;
    use proptest::prelude::*;

    const ROWS: [[f64; 3]; 6] = [
        [1.0, 0.5, 0.0],
        [-0.3, 1.0, 2.0],
        [0.0, -1.0, 1.0],
        [0.7, 0.7, -0.7],
        [2.0, 0.0, 1.0],
        [0.1, 0.2, 0.3],
    ];
    const COST: [f64; 6] = [1.0, 2.0, 0.5, 3.0, 1.0, 10.0];

    fn margins(w: &[f64]) -> Vec<f64> {
        ROWS.iter().map(|x| x.iter().zip(w).map(|(x, w)| x * w).sum()).collect()
    }

    fn objective(w: &[f64]) -> f64 {
        0.5 * dot(w, w) + margins(w).iter().zip(COST).map(|(m, c)| c * (1.0 - m).max(0.0)).sum::<f64>()
    }

    proptest! {
        #[test]
        fn the_end_is_on_the_segment_and_no_worse_than_a_grid(
            a in prop::array::uniform3(-2.0..2.0f64),
            b in prop::array::uniform3(-2.0..2.0f64),
        ) {
            let mut best = Best::new(a.to_vec(), margins(&a), objective(&a));
            let value = best.approach(Hinge, &COST, &b, &margins(&b));
            prop_assert!((value - objective(&best.w)).abs() < 1e-9 * value);
            prop_assert!(margins(&best.w).iter().zip(&best.margins).all(|(x, y)| (x - y).abs() < 1e-12));
            let at = |t: f64| objective(&[0, 1, 2].map(|j| a[j] + t * (b[j] - a[j])));
            let grid = (0..=32).map(|k| at(f64::from(k) / 32.0)).fold(f64::INFINITY, f64::min);
            prop_assert!(value <= at(0.0).min(at(1.0)) + 1e-9);
            prop_assert!(value <= grid + 1e-9, "{} {}", value, grid);
        }
    }
}
