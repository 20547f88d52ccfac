//! The rows that an epoch visits: a permutation with a cut; shrinking moves rows behind the cut.

use crate::memory;
use crate::memory::CollectLarge;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator of visiting orders, part of the solver's state.
pub type Random = Xoshiro256PlusPlus;

/// A generator for one task of several: equal `(seed, task)` give equal numbers.
pub fn random(seed: u64, task: u64) -> Random {
    Random::seed_from_u64(seed ^ task.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// A number in `0..n`; the bias of the multiplication, below `n / 2^32`, does not matter for a visiting
/// order.
#[inline(always)]
pub fn below(random: &mut Random, n: usize) -> usize {
    ((u64::from(random.next_u32()) * n as u64) >> 32) as usize
}

/// Puts rows, or blocks of them, in a fresh random order.
pub fn shuffle<T>(order: &mut [T], random: &mut Random) {
    for s in (1..order.len()).rev() {
        order.swap(s, below(random, s + 1));
    }
}

/// Rows in visiting order; those from `len` on are shrunk.
pub struct ActiveSet {
    order: Vec<u32>,
    len: usize,
}

impl Clone for ActiveSet {
    fn clone(&self) -> Self {
        Self { order: memory::copy(&self.order), len: self.len }
    }
}

impl ActiveSet {
    /// All of `0..n`, in order.
    pub fn all(n: usize) -> Self {
        Self { order: (0..n as u32).collect_large(), len: n }
    }

    /// These rows, in this order.
    pub fn of(order: Vec<u32>) -> Self {
        Self { len: order.len(), order }
    }

    /// Those that are not shrunk.
    pub fn rows(&self) -> &[u32] {
        &self.order[..self.len]
    }

    /// Number of rows that are not shrunk.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether every row is shrunk.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Row at position `s`, or `None` behind the cut.
    #[inline(always)]
    pub fn get(&self, s: usize) -> Option<usize> {
        self.order[..self.len].get(s).map(|&i| i as usize)
    }

    /// Puts the active rows in a fresh random order.
    pub fn shuffle(&mut self, random: &mut Random) {
        shuffle(&mut self.order[..self.len], random);
    }

    /// Moves the row at position `s` behind the cut; another active row takes its place.
    #[inline(always)]
    pub fn shrink(&mut self, s: usize) {
        self.len -= 1;
        self.order.swap(s, self.len);
    }

    /// Makes exactly the rows with `keep(row)` active.
    pub fn restore(&mut self, keep: impl Fn(usize) -> bool) {
        self.len = self.order.len();
        let mut s = 0;
        while s < self.len {
            if keep(self.order[s] as usize) {
                s += 1;
            } else {
                self.shrink(s);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(set: &ActiveSet) -> Vec<usize> {
        let mut rows: Vec<usize> = (0..set.len()).filter_map(|s| set.get(s)).collect();
        rows.sort_unstable();
        rows
    }

    #[test]
    fn shrinks_and_restores_without_losing_rows() {
        let (mut set, mut r) = (ActiveSet::all(10), random(1, 0));
        set.shuffle(&mut r);
        let gone = set.get(3).unwrap();
        set.shrink(3);
        assert_eq!(set.len(), 9);
        assert!(!sorted(&set).contains(&gone));
        set.shuffle(&mut r);
        set.restore(|i| i % 2 == 0);
        assert_eq!(sorted(&set), [0, 2, 4, 6, 8]);
        set.restore(|_| true);
        assert_eq!(sorted(&set), (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn orders_depend_on_seed_and_task_only() {
        let order = |seed, task| {
            let mut set = ActiveSet::all(50);
            set.shuffle(&mut random(seed, task));
            set.order
        };
        assert_eq!(order(1, 2), order(1, 2));
        assert_ne!(order(1, 2), order(1, 3));
        assert_ne!(order(1, 2), order(2, 2));
    }
}
