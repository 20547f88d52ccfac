//! Rows of a step, drawn without replacement.
//!
//! The first `k` places of a list of all positions are filled by swaps with places at random from there on (a
//! shuffle that is broken off), which makes every subset as likely as any other, whatever the order before:
//! a step costs `k` swaps, and the list is never put back.

use crate::fit::dual::active::{Random, below};
use crate::memory::CollectLarge;

/// The list, and what a row counts when it is drawn.
pub struct Subset {
    positions: Vec<u32>,
    /// `n p_i`, where costs differ.
    factor: Option<Vec<f64>>,
}

impl Subset {
    /// All rows of these costs.
    pub fn new(cost: &[f64]) -> Self {
        let is_even = cost.iter().all(|&c| c == cost[0]);
        let mean = cost.iter().sum::<f64>() / cost.len() as f64;
        Self {
            positions: (0..cost.len() as u32).collect_large(),
            factor: (!is_even).then(|| cost.iter().map(|c| c / mean).collect_large()),
        }
    }

    /// What row `i` counts.
    #[inline(always)]
    pub fn factor(&self, i: usize) -> f64 {
        self.factor.as_ref().map_or(1.0, |factor| factor[i])
    }

    /// So many different positions, or all there are.
    pub fn draw(&mut self, k: usize, random: &mut Random) -> &[u32] {
        let n = self.positions.len();
        let k = k.min(n);
        for place in 0..k {
            self.positions.swap(place, place + below(random, n - place));
        }
        &self.positions[..k]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::dual::active::random;

    #[test]
    fn every_subset_is_as_likely() {
        let (mut subset, mut r) = (Subset::new(&[1.0; 4]), random(1, 0));
        let mut seen = [0.0; 16];
        for _ in 0..60_000 {
            let drawn = subset.draw(2, &mut r);
            assert_ne!(drawn[0], drawn[1]);
            seen[drawn.iter().map(|p| 1usize << p).sum::<usize>()] += 1.0;
        }
        // Six pairs, each 10,000 times with a standard deviation of 91.
        let pairs: Vec<f64> = seen.into_iter().filter(|&count| count > 0.0).collect();
        assert_eq!(pairs.len(), 6);
        assert!(pairs.iter().all(|count| (count - 10_000.0).abs() < 500.0), "{pairs:?}");
        assert_eq!(subset.draw(9, &mut r).len(), 4);
    }

    #[test]
    fn costs_become_factors_of_mean_one() {
        let subset = Subset::new(&[1.0, 3.0, 4.0, 0.0]);
        assert_eq!([0, 1, 2, 3].map(|i| subset.factor(i)), [0.5, 1.5, 2.0, 0.0]);
        assert_eq!(Subset::new(&[7.0; 3]).factor(1), 1.0);
    }
}
