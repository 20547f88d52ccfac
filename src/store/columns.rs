//! Relabelling of columns by frequency: frequent columns get small numbers, so that most gaps between the
//! columns of a row fit in one byte, and solvers find the hot part of their weights together.
//!
//! The order comes from counts of the whole input or of a sample of it; it is only a matter of size and
//! speed, any order is right. Columns beyond the counted ones keep their numbers, and those beyond
//! [`MAX_RELABELLED`]: the table is in memory and in the file.

/// Columns that can be relabelled: more than any hashed space in use, at 4 bytes each.
pub const MAX_RELABELLED: usize = 1 << 26;

use crate::memory;
use crate::memory::CollectLarge;

/// A permutation of the first columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// New number by old one.
    new: Vec<u32>,
}

impl Order {
    /// Most frequent column first; columns of equal count in the order of their numbers.
    pub fn by_count(counts: &[u64]) -> Self {
        let counts = &counts[..counts.len().min(MAX_RELABELLED)];
        // Most columns of a hashed space never occur: only the others are sorted.
        let occurs = |&column: &u32| counts[column as usize] > 0;
        let all = 0..counts.len() as u32;
        // Column and count in one number: half the memory of a pair. Counts above 2^32 are as good as equal.
        let key =
            |j: u32| (u64::MAX << 32) - (counts[j as usize].min(u64::from(u32::MAX)) << 32) + u64::from(j);
        let mut keys: Vec<u64> = all.clone().filter(occurs).map(key).collect_large();
        keys.sort_unstable();
        let mut old: Vec<u32> = keys.into_iter().map(|key| key as u32).collect_large();
        memory::extend(&mut old, all.filter(|column| !occurs(column)));
        Self { new: inverse(&old) }
    }

    /// Number of columns that may move.
    pub fn len(&self) -> usize {
        self.new.len()
    }

    /// Whether no column moves.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty()
    }

    /// The new number of a column.
    #[inline(always)]
    pub fn new_number(&self, column: u32) -> u32 {
        self.new.get(column as usize).copied().unwrap_or(column)
    }

    /// The old number of each relabelled column.
    pub fn old_numbers(&self) -> Vec<u32> {
        inverse(&self.new)
    }
}

fn inverse(numbers: &[u32]) -> Vec<u32> {
    let mut inverse = memory::zeros(numbers.len());
    for (k, &x) in numbers.iter().enumerate() {
        inverse[x as usize] = k as u32;
    }
    inverse
}

/// Whether the numbers are those of a permutation.
pub fn is_permutation(numbers: &[u32]) -> bool {
    let mut seen = memory::zeros(numbers.len());
    numbers.iter().all(|&x| seen.get_mut(x as usize).is_some_and(|seen| !std::mem::replace(seen, true)))
}

/// Puts numbers by new columns back in the order of the old ones, within the vector.
///
/// # Panics
/// If `old` is no permutation of the first columns.
pub fn restore(old: &[u32], w: &mut [f64]) {
    let (w, mut done) = (&mut w[..old.len()], memory::zeros(old.len()));
    for start in 0..old.len() {
        if done[start] {
            continue;
        }
        let (mut at, mut held) = (start, w[start]);
        while !done[at] {
            done[at] = true;
            let to = old[at] as usize;
            std::mem::swap(&mut held, &mut w[to]);
            at = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn weights_return_to_their_columns(counts in prop::collection::vec(0..5u64, 0..40)) {
            let order = Order::by_count(&counts);
            let old = order.old_numbers();
            prop_assert!(is_permutation(&old));
            prop_assert!(old.windows(2).all(|pair| counts[pair[0] as usize] >= counts[pair[1] as usize]));
            let mut w: Vec<f64> = old.iter().map(|&j| f64::from(j)).chain([-1.0]).collect();
            restore(&old, &mut w);
            let expected: Vec<f64> = (0..counts.len()).map(|j| j as f64).chain([-1.0]).collect();
            prop_assert_eq!(w, expected);
            for j in 0..counts.len() as u32 {
                prop_assert_eq!(old[order.new_number(j) as usize], j);
            }
            prop_assert_eq!(order.new_number(1000), 1000);
        }
    }

    #[test]
    fn columns_beyond_the_limit_keep_their_numbers() {
        let mut counts = vec![0; MAX_RELABELLED + 2];
        (counts[5], counts[MAX_RELABELLED + 1]) = (1, 9);
        let order = Order::by_count(&counts);
        assert_eq!(order.len(), MAX_RELABELLED);
        assert_eq!((order.new_number(5), order.new_number(0)), (0, 1));
        assert_eq!(order.new_number(MAX_RELABELLED as u32 + 1), MAX_RELABELLED as u32 + 1);
    }

    #[test]
    fn permutations_are_told_from_other_lists() {
        assert!(is_permutation(&[2, 0, 1]) && is_permutation(&[]));
        assert!(!is_permutation(&[0, 0]) && !is_permutation(&[1, 2]));
    }
}
