//! The row terms of a primal objective, as functions of the decision value, for several lanes at once.

use crate::loss::Loss;

/// The convex terms `f_i` of `1/2 |w|^2 + C sum_i f_i(z_i)`, `z_i = w.x_i + b`, one function per row and
/// lane. The derivative must be Lipschitz.
pub trait Objective<const L: usize>: Sync {
    /// `f_i(z)`.
    fn value(&self, i: usize, z: &[f64; L]) -> [f64; L];
    /// `f_i(z)`, `f_i'(z)` and `f_i''(z)`, the last generalised where the derivative has a kink.
    fn all(&self, i: usize, z: &[f64; L]) -> [[f64; L]; 3];
}

/// `f_i(z) = cost[i] * xi(y[i] z)`: one binary problem.
pub struct Weighted<'a, T> {
    /// The loss.
    pub loss: T,
    /// Labels in {-1, +1}.
    pub y: &'a [f64],
    /// Cost per row.
    pub cost: &'a [f64],
}

impl<T: Loss> Objective<1> for Weighted<'_, T> {
    #[inline(always)]
    fn value(&self, i: usize, z: &[f64; 1]) -> [f64; 1] {
        [self.cost[i] * self.loss.value(self.y[i] * z[0])]
    }
    #[inline(always)]
    fn all(&self, i: usize, z: &[f64; 1]) -> [[f64; 1]; 3] {
        let (y, c) = (self.y[i], self.cost[i]);
        let [value, slope, bend] = self.loss.all(y * z[0]);
        [[c * value], [c * y * slope], [c * bend]]
    }
}
