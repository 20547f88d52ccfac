//! Rows on their way into a CSR matrix, and what sorts and sums the entries of one.

use super::murmur::{murmur3, place};
use crate::{Result, memory};

/// Rows of single-precision entries, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Part {
    /// Where each row ends.
    pub ends: Vec<i64>,
    /// Columns, ascending within a row.
    pub indices: Vec<i32>,
    /// Their values.
    pub values: Vec<f32>,
}

impl Part {
    /// Appends an entry to the last row.
    #[inline]
    pub fn push(&mut self, column: u32, value: f32) {
        self.indices.push(column as i32);
        self.values.push(value);
    }

    /// Ends a row.
    #[inline]
    pub fn end_row(&mut self) {
        self.ends.push(self.indices.len() as i64);
    }

    /// The entries of a row.
    pub fn row(&self, k: usize) -> (&[i32], &[f32]) {
        let start = if k == 0 { 0 } else { self.ends[k - 1] as usize };
        let span = start..self.ends[k] as usize;
        (&self.indices[span.clone()], &self.values[span])
    }

    /// Appends rows. Vectors this large grow without being copied, by moving pages.
    pub fn append(&mut self, other: &Self) -> Result<()> {
        let before = self.indices.len() as i64;
        memory::try_reserve(&mut self.ends, other.ends.len())?;
        memory::try_reserve(&mut self.indices, other.indices.len())?;
        memory::try_reserve(&mut self.values, other.values.len())?;
        self.ends.extend(other.ends.iter().map(|end| before + end));
        self.indices.extend_from_slice(&other.indices);
        self.values.extend_from_slice(&other.values);
        Ok(())
    }

    /// The rows of several parts side by side, whose columns follow each other.
    pub fn beside(parts: &[Self], n_rows: usize) -> Self {
        let mut all = Self::default();
        for k in 0..n_rows {
            for part in parts {
                let (indices, values) = part.row(k);
                all.indices.extend_from_slice(indices);
                all.values.extend_from_slice(values);
            }
            all.end_row();
        }
        all
    }

    /// The sums of the rows of several parts, whose columns are the same.
    pub fn summed(parts: &[Self], n_rows: usize) -> Self {
        let (mut all, mut entries) = (Self::default(), Vec::<(i32, f32)>::new());
        for k in 0..n_rows {
            entries.clear();
            for part in parts {
                let (indices, values) = part.row(k);
                entries.extend(indices.iter().copied().zip(values.iter().copied()));
            }
            entries.sort_by_key(|entry| entry.0);
            for group in entries.chunk_by(|a, b| a.0 == b.0) {
                all.push(group[0].0 as u32, group.iter().map(|entry| entry.1).sum());
            }
            all.end_row();
        }
        all
    }
}

/// Hashes names into columns.
#[derive(Clone, Copy, Debug)]
pub struct Hasher {
    n: u32,
    alternates: bool,
}

impl Hasher {
    /// A hasher into `n` columns, half of which count negative if it alternates.
    pub fn new(n: u32, alternates: bool) -> Self {
        Self { n, alternates }
    }

    /// The column of a name and the sign that it counts with.
    #[inline]
    pub fn entry(&self, name: &[u8]) -> (u32, f32) {
        let (column, is_positive) = place(murmur3(name, 0), self.n);
        (column, if is_positive || !self.alternates { 1.0 } else { -1.0 })
    }

    /// The column and, as the lowest bit, whether the sign is positive: what is sorted and counted.
    #[inline(always)]
    pub fn packed(&self, name: &[u8]) -> u32 {
        let (column, is_positive) = place(murmur3(name, 0), self.n);
        column << 1 | u32::from(is_positive || !self.alternates)
    }
}

/// Shortest list that is sorted digit by digit. Below it the counters of the digits cost more than they save.
const RADIX: usize = 192;

/// Sorts numbers; `spare` is memory that is used again.
pub fn sort(numbers: &mut Vec<u32>, spare: &mut Vec<u32>) {
    if numbers.len() < RADIX {
        numbers.sort_unstable();
        return;
    }
    let mut counts = [[0_u32; 256]; 4];
    for number in numbers.iter() {
        for (digit, counts) in number.to_le_bytes().into_iter().zip(&mut counts) {
            counts[usize::from(digit)] += 1;
        }
    }
    spare.clear();
    spare.resize(numbers.len(), 0);
    for (k, counts) in counts.iter_mut().enumerate() {
        if counts.iter().any(|count| *count as usize == numbers.len()) {
            continue;
        }
        let mut start = 0;
        for count in counts.iter_mut() {
            start += std::mem::replace(count, start);
        }
        for number in numbers.iter() {
            let next = &mut counts[usize::from(number.to_le_bytes()[k])];
            spare[*next as usize] = *number;
            *next += 1;
        }
        std::mem::swap(numbers, spare);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_sorted(mut numbers in prop::collection::vec(any::<u32>(), 0..600), shift in 0..32) {
            numbers.iter_mut().for_each(|number| *number >>= shift);
            let mut expected = numbers.clone();
            expected.sort_unstable();
            sort(&mut numbers, &mut Vec::new());
            prop_assert_eq!(numbers, expected);
        }
    }

    #[test]
    fn parts_are_put_beside_each_other_or_added() {
        let part = |rows: &[&[(u32, f32)]]| {
            let mut part = Part::default();
            for row in rows {
                row.iter().for_each(|&(column, value)| part.push(column, value));
                part.end_row();
            }
            part
        };
        let (a, b) = (part(&[&[(1, 1.0), (3, 2.0)], &[]]), part(&[&[(3, -2.0), (4, 1.0)], &[(0, 5.0)]]));
        let parts = [a.clone(), b.clone()];
        assert_eq!(Part::summed(&parts, 2), part(&[&[(1, 1.0), (3, 0.0), (4, 1.0)], &[(0, 5.0)]]));
        assert_eq!(Part::beside(&parts, 2), part(&[&[(1, 1.0), (3, 2.0), (3, -2.0), (4, 1.0)], &[(0, 5.0)]]));
        let mut both = a;
        both.append(&b).unwrap();
        assert_eq!(both, part(&[&[(1, 1.0), (3, 2.0)], &[], &[(3, -2.0), (4, 1.0)], &[(0, 5.0)]]));
    }
}
