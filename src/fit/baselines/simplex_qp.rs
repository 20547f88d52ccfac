//! Small dense quadratic programs over a simplex, for cutting planes.
//!
//! Maximises `o'b - 1/2 b'Kb` subject to `b >= 0`, `sum b <= 1`: with a zero-th variable of no effect the sum
//! is 1, and each step moves weight from one variable to another, exactly and by second-order choice of the
//! pair. At any point the duality gap is `max_k q_k - sum_k b_k q_k` with `q = o - Kb`.

/// A program that grows and shrinks by a variable at a time, with its current point.
#[derive(Default)]
pub struct SimplexQp {
    /// Rows of K.
    gram: Vec<Vec<f64>>,
    linear: Vec<f64>,
    /// The variables.
    pub beta: Vec<f64>,
    /// `o - K beta`.
    slope: Vec<f64>,
}

impl SimplexQp {
    /// Number of variables.
    pub fn len(&self) -> usize {
        self.beta.len()
    }

    /// Whether there is no variable.
    pub fn is_empty(&self) -> bool {
        self.beta.is_empty()
    }

    /// Adds a variable with its row of K (the new diagonal entry last), at 0.
    pub fn push(&mut self, row: Vec<f64>, linear: f64) {
        for (old, &k) in self.gram.iter_mut().zip(&row) {
            old.push(k);
        }
        self.gram.push(row);
        self.linear.push(linear);
        self.beta.push(0.0);
        self.slope.push(0.0);
    }

    /// Removes variable `k`, the last one takes its number.
    pub fn swap_remove(&mut self, k: usize) {
        self.gram.swap_remove(k);
        self.gram.iter_mut().for_each(|row| {
            row.swap_remove(k);
        });
        self.linear.swap_remove(k);
        self.beta.swap_remove(k);
        self.slope.swap_remove(k);
    }

    /// Changes the linear terms.
    pub fn set_linear(&mut self, linear: impl Iterator<Item = f64>) {
        self.linear = linear.collect();
    }

    /// Improves the point until the gap is at most `gap`, or lost in the rounding of the linear terms, or
    /// after `steps` steps; returns the value reached.
    pub fn solve(&mut self, gap: f64, steps: usize) -> f64 {
        let n = self.len();
        for k in 0..n {
            let product: f64 = self.gram[k].iter().zip(&self.beta).map(|(a, b)| a * b).sum();
            self.slope[k] = self.linear[k] - product;
        }
        let scale = self.linear.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
        let gap = gap.max(f64::EPSILON * scale);
        let mut rest = (1.0 - self.beta.iter().sum::<f64>()).max(0.0);
        for _ in 0..steps {
            let (up, best) = self
                .slope
                .iter()
                .enumerate()
                .fold((n, 0.0), |(at, best), (k, &q)| if q > best { (k, q) } else { (at, best) });
            let mean: f64 = self.slope.iter().zip(&self.beta).map(|(q, b)| q * b).sum();
            if best - mean <= gap {
                break;
            }
            let diagonal = |k: usize| if k == n { 0.0 } else { self.gram[k][k] };
            let between = |j: usize, k: usize| if j == n || k == n { 0.0 } else { self.gram[j][k] };
            let bend = |j: usize| (diagonal(up) + diagonal(j) - 2.0 * between(up, j)).max(1e-300);
            // The variable to take from: the largest gain of an unlimited step.
            let (mut down, mut gain) = (None, 0.0);
            for j in (0..=n).filter(|&j| j != up) {
                let (held, q) = if j == n { (rest, 0.0) } else { (self.beta[j], self.slope[j]) };
                if held > 0.0 && best > q {
                    let g = (best - q) * (best - q) / bend(j);
                    if g > gain {
                        (down, gain) = (Some((j, held, q)), g);
                    }
                }
            }
            let Some((j, held, q)) = down else { break };
            let t = ((best - q) / bend(j)).min(held);
            for k in 0..n {
                self.slope[k] -= t * (between(k, up) - between(k, j));
            }
            if up == n {
                rest += t
            } else {
                self.beta[up] += t
            }
            if j == n {
                rest = if t == held { 0.0 } else { rest - t };
            } else {
                self.beta[j] = if t == held { 0.0 } else { self.beta[j] - t };
            }
        }
        // 1/2 (o'b + (o - Kb)'b) = o'b - 1/2 b'Kb
        0.5 * (0..n).map(|k| self.beta[k] * (self.linear[k] + self.slope[k])).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_feasible_point_is_better(
            vectors in prop::collection::vec((prop::collection::vec(-1.0..1.0f64, 3), -0.5..2.0f64), 1..8),
            others in prop::collection::vec(prop::collection::vec(0.0..1.0f64, 8), 50),
            removed in 0..8usize,
        ) {
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let mut kept = vectors.clone();
            let mut qp = SimplexQp::default();
            for (k, (v, o)) in vectors.iter().enumerate() {
                qp.push(vectors[..=k].iter().map(|(u, _)| dot(u, v)).collect(), *o);
                qp.solve(1e-12, 10_000);
            }
            if vectors.len() > 1 && removed < vectors.len() {
                qp.swap_remove(removed);
                kept.swap_remove(removed);
            }
            let value = |beta: &[f64]| {
                let w: Vec<f64> =
                    (0..3).map(|j| kept.iter().zip(beta).map(|((v, _), b)| b * v[j]).sum()).collect();
                kept.iter().zip(beta).map(|((_, o), b)| o * b).sum::<f64>() - 0.5 * dot(&w, &w)
            };
            let best = qp.solve(1e-12, 100_000);
            prop_assert!((best - value(&qp.beta)).abs() < 1e-9);
            prop_assert!(qp.beta.iter().all(|&b| b >= 0.0) && qp.beta.iter().sum::<f64>() <= 1.0 + 1e-12);
            for other in others {
                let scale = other[..kept.len()].iter().sum::<f64>().max(1.0);
                let beta: Vec<f64> = other[..kept.len()].iter().map(|b| b / scale).collect();
                prop_assert!(value(&beta) <= best + 1e-9);
            }
        }
    }
}
