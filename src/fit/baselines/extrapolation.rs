//! Anderson extrapolation of a descent's iterates.
//!
//! Near the solution an epoch of coordinate descent in a fixed order is an affine map, and its slow
//! directions shrink by a constant factor. From `K + 1` iterates `w_0, ..., w_K` with differences
//! `u_k = w_k - w_{k-1}`, the combination `sum c_k w_k`, `sum c_k = 1`, of the smallest `|sum c_k u_k|`
//! cancels `K` of them: `c` is proportional to the solution of `U'U z = 1` (Bertrand, Massias, Anderson
//! acceleration of coordinate descent, AISTATS 2021). It is a guess: the caller takes it where the objective
//! falls.

use crate::fit::newton::cholesky::Symmetric;
use crate::fit::sweep::dot;
use crate::memory;
use crate::memory::CollectLarge;

/// Differences that are combined at least and at most; between, as many as keep the points below [`NUMBERS`]
/// numbers. Each cancels one slow direction more, but waits for an epoch more in which no row joins or leaves
/// the active ones.
const LEAST: usize = 5;
const MOST: usize = 20;
const NUMBERS: usize = 1 << 20;
/// Added to the diagonal of `U'U`, relative to its trace: differences may be parallel.
const REGULAR: f64 = 1e-14;

/// The last iterates.
pub struct Extrapolation {
    points: Vec<Vec<f64>>,
    differences: usize,
}

impl Extrapolation {
    /// That of iterates of so many numbers.
    pub fn new(d: usize) -> Self {
        Self { points: Vec::new(), differences: (NUMBERS / d.max(1)).clamp(LEAST, MOST) }
    }

    /// One that combines so many differences.
    pub fn of(differences: usize) -> Self {
        Self { points: Vec::new(), differences }
    }

    /// Records an iterate; after every few of them, returns the extrapolation.
    pub fn push(&mut self, w: &[f64]) -> Option<Vec<f64>> {
        self.points.push(memory::copy(w));
        let n = self.differences;
        if self.points.len() <= n {
            return None;
        }
        let points = std::mem::take(&mut self.points);
        let differences: Vec<Vec<f64>> = points
            .windows(2)
            .map(|pair| pair[1].iter().zip(&pair[0]).map(|(b, a)| b - a).collect_large())
            .collect();
        let mut gram = Symmetric { n, values: vec![0.0; n * n] };
        for (i, a) in differences.iter().enumerate() {
            for (j, b) in differences.iter().enumerate() {
                gram.values[i * n + j] = dot(a, b);
            }
        }
        let trace: f64 = (0..n).map(|i| gram.values[i * n + i]).sum();
        (0..n).for_each(|i| gram.values[i * n + i] += REGULAR * trace);
        let mut c = vec![[1.0]; n];
        gram.factorise();
        gram.solve(&mut c);
        let total: f64 = c.iter().map(|[c]| c).sum();
        let mut combined: Vec<f64> = memory::zeros(w.len());
        for ([c], point) in c.iter().zip(&points[1..]) {
            combined.iter_mut().zip(point).for_each(|(sum, w)| *sum += c / total * w);
        }
        combined.iter().all(|w| w.is_finite()).then_some(combined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_fixed_point_of_an_affine_map_of_few_directions() {
        let rates = [0.99, 0.8, -0.5, 0.3];
        let goal = [1.0, -2.0, 3.0, 0.5];
        let (mut w, mut extrapolation) = (vec![0.0; 4], Extrapolation { points: Vec::new(), differences: 5 });
        for _ in 0..5 {
            assert!(extrapolation.push(&w).is_none());
            for j in 0..4 {
                w[j] = goal[j] + rates[j] * (w[j] - goal[j]);
            }
        }
        let found = extrapolation.push(&w).unwrap();
        let distance = |w: &[f64]| w.iter().zip(&goal).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(distance(&found) < 0.05 * distance(&w), "{found:?} after {w:?}");
        assert!(extrapolation.push(&w).is_none()); // begins anew
    }

    #[test]
    fn says_nothing_where_nothing_moves() {
        let mut extrapolation = Extrapolation::new(2);
        let found: Vec<_> = (0..=MOST).filter_map(|_| extrapolation.push(&[1.0, 2.0])).collect();
        assert!(
            found.iter().all(|w| w.iter().zip([1.0, 2.0]).all(|(a, b)| (a - b).abs() < 1e-9)),
            "{found:?}"
        );
    }
}
