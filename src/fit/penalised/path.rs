//! The way of a step past walls: a weight that meets one stays there and the others go on, as long as model
//! and penalty fall.

use super::walls;
use crate::memory;
use crate::penalty::Term;

/// A step of the weights of a model, with the walls on its way.
pub struct Path<'a> {
    /// The matrix of the model.
    matrix: &'a [f64],
    terms: &'a [Term],
    /// Direction of each weight, and what the model's slopes gain along it.
    direction: Vec<f64>,
    bend: Vec<f64>,
    /// Share of the step, weight and place of each wall, the next one last.
    walls: Vec<(f64, usize, f64)>,
}

/// Where a path ended.
#[derive(Debug)]
pub struct PathEnd {
    /// By how much model and penalty fell.
    pub fall: f64,
    /// Whether it is their minimum along all weights that moved: the whole step, which met no wall.
    pub is_minimum: bool,
}

impl<'a> Path<'a> {
    /// The step of the weights `inside` by so much from `w`.
    pub fn along(matrix: &'a [f64], terms: &'a [Term], w: &[f64], inside: &[usize], by: Vec<f64>) -> Self {
        let m = w.len();
        let (mut direction, mut bend) = (memory::zeros(m), memory::zeros(m));
        let mut walls = Vec::new();
        // A weight that stays, whatever the sign of its zero, meets no wall.
        for (&k, by) in inside.iter().zip(by).filter(|(_, by)| *by != 0.0) {
            direction[k] = by;
            add(&mut bend, by, &matrix[k * m..][..m]);
            let wall = walls::ahead(&terms[k], w[k], by);
            if wall.is_finite() {
                walls.push(((wall - w[k]) / by, k, wall));
            }
        }
        walls.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        Self { matrix, terms, direction, bend, walls }
    }

    /// Goes as far as model and penalty fall, and moves the model's slopes and the weights along.
    pub fn descend(mut self, slope: &mut [f64], w: &mut [f64]) -> PathEnd {
        let m = w.len();
        let is_whole = self.walls.last().is_none_or(|(share, ..)| *share >= 1.0);
        let (mut fall, mut gone) = (0.0, 0.0);
        loop {
            let [rise, bend] = self.parabola(slope, w);
            let wall = self.walls.last().copied();
            let to_wall = wall.map_or(f64::INFINITY, |(share, ..)| (share - gone).max(0.0));
            let to_lowest = if is_whole { 1.0 } else { -rise / bend };
            let far = to_lowest.min(to_wall);
            let decrease = -far * (rise + 0.5 * far * bend);
            let falls = rise < 0.0 && decrease >= 0.0;
            if !falls {
                return PathEnd { fall, is_minimum: false };
            }
            add(slope, far, &self.bend);
            add(w, far, &self.direction);
            (fall, gone) = (fall + decrease, gone + far);
            let Some((_, k, place)) = wall.filter(|_| to_wall <= to_lowest) else {
                return PathEnd { fall, is_minimum: is_whole };
            };
            w[k] = place;
            add(&mut self.bend, -self.direction[k], &self.matrix[k * m..][..m]);
            self.direction[k] = 0.0;
            self.walls.pop();
        }
    }

    /// Slope and curvature of model and penalty along the direction.
    fn parabola(&self, slope: &[f64], w: &[f64]) -> [f64; 2] {
        let mut sums = [0.0; 2];
        for (k, (&by, term)) in self.direction.iter().zip(self.terms).enumerate() {
            if by != 0.0 {
                sums[0] += by * term.slope_inside(w[k], slope[k]);
                sums[1] += by * (self.bend[k] + term.l2 * by);
            }
        }
        // Along directions without curvature rounding may make it negative.
        [sums[0], sums[1].max(0.0)]
    }
}

/// `sum += by * line`.
fn add(sum: &mut [f64], by: f64, line: &[f64]) {
    sum.iter_mut().zip(line).for_each(|(sum, x)| *sum += by * x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::penalised::tests::{entries, term};
    use crate::fit::penalised::walls::{Step, is_inside};
    use proptest::prelude::*;

    proptest! {
        /// What a path says of its end is true, and it gets at least as low as its first wall.
        #[test]
        fn paths_fall_at_least_to_their_first_wall(n in 1..9usize, kind in 0..16usize, seed in 0..9999u64) {
            let x = entries(n + 1, n, seed);
            let product = |j: usize, k: usize| (0..=n).map(|i| x[i * n + j] * x[i * n + k]).sum::<f64>();
            let matrix: Vec<f64> = (0..n * n).map(|at| product(at / n, at % n)).collect();
            let terms: Vec<Term> = (0..n).map(|k| term(kind, k)).collect();
            let first = entries(1, n, seed + 1);
            let w: Vec<f64> = first.iter().zip(&terms).map(|(w, term)| term.clip(*w)).collect();
            let start = entries(1, n, seed + 2);
            let inside: Vec<usize> = (0..n).filter(|&k| is_inside(&terms[k], w[k])).collect();
            // Against the slope, and not the way to the minimum; every third weight stays.
            let along = |&k: &usize| {
                let share = if (k as u64 + seed).is_multiple_of(3) { 0.0 } else { 3.0 };
                -share * terms[k].slope_inside(w[k], start[k])
            };
            let by: Vec<f64> = inside.iter().map(along).collect();
            let slope_at = |to: &[f64]| -> Vec<f64> {
                let of = |k: usize| (0..n).map(|l| matrix[k * n + l] * (to[l] - w[l])).sum::<f64>();
                (0..n).map(|k| start[k] + of(k)).collect()
            };
            let value = |to: &[f64]| -> f64 {
                let slope = slope_at(to);
                let model = |k: usize| 0.5 * (to[k] - w[k]) * (start[k] + slope[k]);
                (0..n).map(|k| model(k) + terms[k].rise(w[k], to[k])).sum()
            };
            let (mut slope, mut end) = (start.clone(), w.clone());
            let found = Path::along(&matrix, &terms, &w, &inside, by.clone()).descend(&mut slope, &mut end);
            prop_assert!((value(&end) + found.fall).abs() <= 1e-9 * (1.0 + found.fall), "{found:?}");
            for (found, expected) in slope.iter().zip(slope_at(&end)) {
                prop_assert!((found - expected).abs() <= 1e-9 * (1.0 + expected.abs()));
            }
            for (k, term) in terms.iter().enumerate() {
                prop_assert!(term.lower <= end[k] && end[k] <= term.upper);
                prop_assert!(term.l1 == 0.0 || end[k] * w[k] >= 0.0);
            }
            let step = Step::new(&terms, &w, &inside, by);
            if !step.is_whole {
                let mut wall = w.clone();
                inside.iter().zip(step.to_first_wall(&w)).for_each(|(&k, to)| wall[k] = to);
                prop_assert!(value(&end) <= value(&wall) + 1e-9, "{} above {}", value(&end), value(&wall));
            }
        }
    }

    #[test]
    fn whole_steps_to_the_minimum_are_known_as_such() {
        let terms = [Term { l2: 1.0, ..Term::FREE }; 2];
        let (mut slope, mut w) = (vec![2.0, -3.0], vec![1.0, 1.0]);
        // The matrix is the identity, so that half of the slope with the penalty's is the way.
        let end = Path::along(&[1.0, 0.0, 0.0, 1.0], &terms, &w, &[0, 1], vec![-1.5, 1.0])
            .descend(&mut slope, &mut w);
        assert!(end.is_minimum && (end.fall - 3.25).abs() < 1e-15);
        assert_eq!(w, [-0.5, 2.0]);
    }
}
