//! The factor of a model's matrix over the weights that are inside their walls, which follows them: a weight
//! that meets a wall leaves it and one that comes off a wall joins it for a pass over the factor each, where
//! a new factorisation costs as much as hundreds of passes.
//!
//! Tried: the factor of the step before as a preconditioner of conjugate gradients. Of the 2,620 weights of
//! flights some twenty have left or joined since then, columns that nearly depend on the others, and after
//! twelve steps, which cost as much as two thirds of a factorisation, the way to the minimum was not done.

use crate::Result;
use crate::fit::monitor::Monitor;
use crate::fit::newton::cholesky::Symmetric;
use crate::memory::{self, CollectLarge};

/// No weight.
const NONE: u32 = u32::MAX;
/// Places for weights that join later, as a share of those that are there,
const ROOM: usize = 8;
/// and at least.
const LEAST_ROOM: usize = 16;
/// Weights that leave at once, as a share, from which a new factorisation is cheaper.
const MANY: usize = 8;

/// Places of a new factor over so many weights.
pub fn places(n_weights: usize) -> usize {
    n_weights + (n_weights / ROOM).max(LEAST_ROOM)
}

/// A factor of the rows and columns of some weights of a matrix. Places without a weight are as in the
/// identity.
pub struct Factor {
    factor: Symmetric,
    /// The weight at each place.
    weights: Vec<u32>,
    /// Places in use, the last of which are the last that joined.
    used: usize,
    /// The place of each weight.
    places: Vec<u32>,
}

impl Factor {
    /// Over none of `n_weights`, without room.
    pub fn new(n_weights: usize) -> Self {
        let factor = Symmetric { n: 0, values: Vec::new() };
        Self { factor, weights: Vec::new(), used: 0, places: memory::filled(NONE, n_weights) }
    }

    /// Makes it the factor over the weights `inside`, which rise, of a matrix with these entries.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn follow(
        &mut self,
        inside: &[usize],
        entry: impl Fn(usize, usize) -> f64,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let mut is_inside: Vec<bool> = memory::filled(false, self.places.len());
        inside.iter().for_each(|&k| is_inside[k] = true);
        let leaves = |at: &usize| self.weights[*at] != NONE && !is_inside[self.weights[*at] as usize];
        // Behind the last first: fewer rows are left to change.
        let leaving: Vec<usize> = (0..self.used).rev().filter(leaves).collect_large();
        let joining: Vec<usize> = inside.iter().copied().filter(|&k| self.places[k] == NONE).collect_large();
        if leaving.len() > inside.len() / MANY || self.used + joining.len() > self.factor.n {
            return self.begin(inside, entry, monitor);
        }
        for at in leaving {
            self.factor.isolate(at);
            self.places[self.weights[at] as usize] = NONE;
            self.weights[at] = NONE;
        }
        for k in joining {
            self.place(k, &entry);
            self.factor.add_row(self.used - 1);
        }
        Ok(())
    }

    /// A new factorisation.
    fn begin(
        &mut self,
        inside: &[usize],
        entry: impl Fn(usize, usize) -> f64,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let n = places(inside.len());
        self.factor = Symmetric { n, values: zeros_in(std::mem::take(&mut self.factor.values), n * n) };
        self.weights = memory::filled(NONE, n);
        self.places.fill(NONE);
        self.used = 0;
        inside.iter().for_each(|&k| self.place(k, &entry));
        (self.used..n).for_each(|at| self.factor.values[at * n + at] = 1.0);
        self.factor.factorise_watched(self.used, monitor)
    }

    /// Writes the row of a weight at the next place.
    fn place(&mut self, k: usize, entry: &impl Fn(usize, usize) -> f64) {
        let (n, at) = (self.factor.n, self.used);
        (self.weights[at], self.places[k]) = (k as u32, at as u32);
        let row = &mut self.factor.values[at * n..][..=at];
        for (value, &l) in row.iter_mut().zip(&self.weights) {
            *value = if l == NONE { 0.0 } else { entry(k, l as usize) };
        }
        self.used += 1;
    }

    /// The solution for the weights `inside`, over which the factor is, in their order.
    pub fn solve(&self, inside: &[usize], right: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut solution: Vec<[f64; 1]> = memory::filled([0.0], self.factor.n);
        inside.iter().for_each(|&k| solution[self.places[k] as usize] = [right(k)]);
        self.factor.solve(&mut solution);
        inside.iter().map(|&k| solution[self.places[k] as usize][0]).collect_large()
    }
}

/// `n` zeros, in the memory of `old` where it is enough: what is given back is not always put to use again.
fn zeros_in(mut old: Vec<f64>, n: usize) -> Vec<f64> {
    if old.capacity() < n {
        drop(old);
        return memory::zeros(n);
    }
    old.clear();
    old.resize(n, 0.0);
    old
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::monitor::Silent;
    use proptest::prelude::*;

    proptest! {
        /// Whatever leaves and joins, one by one or many at once, solutions are those of a new factorisation.
        #[test]
        fn follows_sets_of_weights(sets in prop::collection::vec(any::<u64>(), 1..12), n in 1..60usize) {
            let x = |i: usize, k: usize| ((i * 31 + k * 17 + i * k) % 23) as f64 / 11.0 - 1.0;
            let entry = |k: usize, l: usize| {
                (0..n).map(|i| x(i, k) * x(i, l)).sum::<f64>() + if k == l { 1.0 } else { 0.0 }
            };
            let right = |k: usize| k as f64 - 7.0;
            let mut factor = Factor::new(n);
            let mut bits = u64::MAX;
            for (turn, set) in sets.into_iter().enumerate() {
                // By turns a few weights and half of them.
                let few = set & (set >> 1) & (set << 2) & (set >> 3) & (set << 1);
                bits ^= if turn % 3 == 0 { set } else { few };
                let inside: Vec<usize> = (0..n).filter(|k| bits >> k & 1 == 1).collect();
                factor.follow(&inside, entry, &Silent).unwrap();
                let found = factor.solve(&inside, right);
                for (at, &k) in inside.iter().enumerate() {
                    let product: f64 = inside.iter().zip(&found).map(|(&l, s)| entry(k, l) * s).sum();
                    prop_assert!((product - right(k)).abs() < 1e-7, "{product} at {at} of {inside:?}");
                }
            }
        }
    }
}
