//! Interleaved vectors: the numbers of `L` lanes side by side, so that one access brings all lanes of an
//! entry.
//!
//! ```text
//!     entry 0          entry 1          entry 2
//!     l0 l1 l2 l3      l0 l1 l2 l3      ...            L = 4, one vector per lane, read downwards
//! ```
//!
//! The first entry is aligned to a cache line, so that an entry of 4 or 8 lanes never straddles two. Without
//! it each random access touches two lines.

use crate::memory;
use crate::memory::CollectLarge;
use std::ops::{Deref, DerefMut};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Numbers in a cache line.
const PADDING: usize = LINE / size_of::<f64>();

/// A vector of `len` entries of `L` lanes.
#[derive(Debug, Default)]
pub struct Block<const L: usize> {
    numbers: Vec<f64>,
    start: usize,
    len: usize,
}

impl<const L: usize> Block<L> {
    /// `len` entries of zeros.
    pub fn zeros(len: usize) -> Self {
        let numbers: Vec<f64> = memory::zeros(len * L + PADDING);
        let start = numbers.as_ptr().align_offset(LINE).min(PADDING);
        Self { numbers, start, len }
    }

    /// A copy of `numbers`, lanes within entries.
    pub fn from_numbers(numbers: &[f64]) -> Self {
        let mut block = Self::zeros(numbers.len() / L);
        block.as_flattened_mut().copy_from_slice(numbers);
        block
    }

    /// One lane, copied.
    pub fn lane(&self, lane: usize) -> Vec<f64> {
        self.iter().map(|entry| entry[lane]).collect_large()
    }
}

impl<const L: usize> Clone for Block<L> {
    fn clone(&self) -> Self {
        Self::from_numbers(self.as_flattened())
    }
}

impl<const L: usize> Deref for Block<L> {
    type Target = [[f64; L]];
    fn deref(&self) -> &[[f64; L]] {
        self.numbers[self.start..self.start + self.len * L].as_chunks().0
    }
}

impl<const L: usize> DerefMut for Block<L> {
    fn deref_mut(&mut self) -> &mut [[f64; L]] {
        self.numbers[self.start..self.start + self.len * L].as_chunks_mut().0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_lanes_are_columns() {
        let mut block = Block::<8>::zeros(3);
        assert_eq!(block.as_ptr() as usize % LINE, 0);
        block[2][5] = 7.0;
        let copy = block.clone();
        assert_eq!(copy.as_ptr() as usize % LINE, 0);
        assert_eq!((copy.len(), copy.lane(5)), (3, vec![0.0, 0.0, 7.0]));
        assert_eq!(Block::<2>::from_numbers(&[1.0, 2.0, 3.0, 4.0])[1], [3.0, 4.0]);
        assert!(Block::<4>::zeros(0).is_empty());
    }
}
