//! Rows on their way into a CSR matrix, and what sorts and sums the entries of one.

use super::murmur::murmur3;
use crate::{Result, memory};

/// Rows of single-precision entries, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseRows {
    /// Where each row ends.
    pub ends: Vec<i64>,
    /// Columns, ascending within a row.
    pub indices: Vec<i32>,
    /// Their values.
    pub values: Vec<f32>,
}

impl SparseRows {
    /// Appends an entry to the last row.
    #[inline]
    pub fn push(&mut self, column: u32, value: f32) {
        self.indices.push(column as i32);
        self.values.push(value);
    }

    /// Appends what stands for an entry that is not there, in a [`Piece::Single`].
    #[inline]
    pub fn push_nothing(&mut self) {
        self.indices.push(NOTHING);
        self.values.push(0.0);
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
}

/// The entries of one column of a table in some rows.
#[derive(Clone, Debug)]
pub enum Piece {
    /// At most one in each row: columns and values, as [`SparseRows::push_nothing`] leaves them where there
    /// is none.
    Single(Vec<i32>, Vec<f32>),
    /// Any number.
    Many(SparseRows),
}

/// Stands for the column of an entry that is not there.
const NOTHING: i32 = -1;

impl Piece {
    /// The entries of a row.
    #[inline]
    fn row(&self, k: usize) -> (&[i32], &[f32]) {
        match self {
            Self::Single(indices, values) => {
                let span = k..k + usize::from(indices[k] != NOTHING);
                (&indices[span.clone()], &values[span])
            }
            Self::Many(part) => part.row(k),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Single(indices, _) => indices.len(),
            Self::Many(part) => part.indices.len(),
        }
    }
}

impl SparseRows {
    /// A part with room for the entries of some pieces.
    fn for_pieces(pieces: &[Piece], n_rows: usize) -> Self {
        let n = pieces.iter().map(Piece::len).sum();
        Self {
            ends: memory::with_capacity(n_rows),
            indices: memory::with_capacity(n),
            values: memory::with_capacity(n),
        }
    }

    /// The rows of several pieces side by side, whose columns follow each other.
    pub fn beside(pieces: &[Piece], n_rows: usize) -> Self {
        let mut all = Self::for_pieces(pieces, n_rows);
        for k in 0..n_rows {
            for piece in pieces {
                let (indices, values) = piece.row(k);
                indices.iter().zip(values).for_each(|(column, value)| all.push(*column as u32, *value));
            }
            all.end_row();
        }
        all
    }

    /// The sums of the rows of several pieces, whose columns are the same.
    pub fn summed(pieces: &[Piece], n_rows: usize) -> Self {
        let (mut all, mut entries) = (Self::for_pieces(pieces, n_rows), Vec::<u64>::new());
        for k in 0..n_rows {
            entries.clear();
            for piece in pieces {
                let (indices, values) = piece.row(k);
                let packed =
                    |(column, value): (&i32, &f32)| (*column as u64) << 32 | u64::from(value.to_bits());
                entries.extend(indices.iter().zip(values).map(packed));
            }
            // A number that begins with the column sorts faster than a pair.
            entries.sort_unstable();
            let mut last = NOTHING;
            for entry in &entries {
                let (column, value) = ((entry >> 32) as i32, f32::from_bits(*entry as u32));
                if column == last {
                    *all.values.last_mut().expect("an entry was pushed") += value;
                } else {
                    all.push(column as u32, value);
                    last = column;
                }
            }
            all.end_row();
        }
        all
    }
}

/// Hashes names into columns, by `FeatureHasher`'s rule: the column is `|h|` modulo `n`, where -2^31
/// counts as 2^31, and the sign is that of `h`.
#[derive(Clone, Copy, Debug)]
pub struct Hasher {
    n: u32,
    /// `n - 1` where `n` is a power of two: a division costs as much as the hash of a short word.
    mask: Option<u32>,
    /// Set where every sign is positive.
    positive: u32,
}

impl Hasher {
    /// A hasher into `n` columns, half of which count negative if it alternates.
    pub fn new(n: u32, alternates: bool) -> Self {
        Self { n, mask: n.is_power_of_two().then(|| n - 1), positive: u32::from(!alternates) }
    }

    /// The column of a name and the sign that it counts with.
    #[inline]
    pub fn entry(&self, name: &[u8]) -> (u32, f32) {
        let packed = self.packed(name);
        (packed >> 1, if packed & 1 == 1 { 1.0 } else { -1.0 })
    }

    /// The column and, as the lowest bit, whether the sign is positive: what is sorted and counted.
    #[inline(always)]
    pub fn packed(&self, name: &[u8]) -> u32 {
        self.pack(murmur3(name, 0))
    }

    /// [`Self::packed`] of a hash.
    #[inline(always)]
    pub fn pack(&self, hash: i32) -> u32 {
        let size = hash.unsigned_abs();
        let column = self.mask.map_or_else(|| size % self.n, |mask| size & mask);
        column << 1 | u32::from(hash >= 0) | self.positive
    }
}

/// Shortest list that is sorted digit by digit. Below it the counters of the digits cost more than they save.
const RADIX: usize = 128;

/// Sorts numbers; `spare` is memory that is used again.
pub fn sort(numbers: &mut Vec<u32>, spare: &mut Vec<u32>) {
    if numbers.len() < RADIX {
        numbers.sort_unstable();
        return;
    }
    let bits = u32::BITS - numbers.iter().fold(0, |bits, number| bits | number).leading_zeros();
    spare.resize(numbers.len(), 0);
    for shift in (0..bits).step_by(8) {
        let digit = |number: u32| usize::from((number >> shift) as u8);
        let mut starts = [0_u32; 256];
        for number in numbers.iter() {
            starts[digit(*number)] += 1;
        }
        let mut start = 0;
        for count in &mut starts {
            start += std::mem::replace(count, start);
        }
        for number in numbers.iter() {
            let next = &mut starts[digit(*number)];
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
    fn the_smallest_hash_has_a_column_too() {
        let pack = |n, hash| {
            let packed = Hasher::new(n, true).pack(hash);
            (packed >> 1, packed & 1 == 1)
        };
        assert_eq!(pack(1000, i32::MIN), (648, false));
        assert_eq!(pack(1 << 20, -1), (1, false));
        assert_eq!(pack(i32::MAX as u32, i32::MAX), (0, true));
        assert_eq!(Hasher::new(1 << 20, false).pack(-1), 3);
    }

    #[test]
    fn parts_are_put_beside_each_other_or_added() {
        let part = |rows: &[&[(u32, f32)]]| {
            let mut part = SparseRows::default();
            for row in rows {
                row.iter().for_each(|&(column, value)| part.push(column, value));
                part.end_row();
            }
            part
        };
        let (a, b) = (part(&[&[(1, 1.0), (3, 2.0)], &[]]), part(&[&[(3, -2.0), (4, 1.0)], &[(0, 5.0)]]));
        let single = Piece::Single(vec![NOTHING, 7], vec![0.0, 1.0]);
        let pieces = [Piece::Many(a.clone()), Piece::Many(b.clone()), single];
        let summed = part(&[&[(1, 1.0), (3, 0.0), (4, 1.0)], &[(0, 5.0), (7, 1.0)]]);
        assert_eq!(SparseRows::summed(&pieces, 2), summed);
        let beside = part(&[&[(1, 1.0), (3, 2.0), (3, -2.0), (4, 1.0)], &[(0, 5.0), (7, 1.0)]]);
        assert_eq!(SparseRows::beside(&pieces, 2), beside);
        let mut both = a;
        both.append(&b).unwrap();
        assert_eq!(both, part(&[&[(1, 1.0), (3, 2.0)], &[], &[(3, -2.0), (4, 1.0)], &[(0, 5.0)]]));
    }
}
