//! Rows on their way into a CSR matrix, and what sorts and sums the entries of one.

use super::murmur::murmur3;
use crate::{Result, memory, parallel};

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
        memory::push(&mut self.indices, column as i32);
        memory::push(&mut self.values, value);
    }

    /// Appends what stands for an entry that is not there, in a [`Piece::Single`].
    #[inline]
    pub fn push_nothing(&mut self) {
        memory::push(&mut self.indices, NOTHING);
        memory::push(&mut self.values, 0.0);
    }

    /// Ends a row.
    #[inline]
    pub fn end_row(&mut self) {
        memory::push(&mut self.ends, self.indices.len() as i64);
    }

    /// The entries of a row.
    pub fn row(&self, k: usize) -> (&[i32], &[f32]) {
        let start = if k == 0 { 0 } else { self.ends[k - 1] as usize };
        let span = start..self.ends[k] as usize;
        (&self.indices[span.clone()], &self.values[span])
    }

    /// Makes room for what may come: a vector that grows later may be copied. This is a guess, so that what
    /// cannot be had is no failure yet.
    pub fn expect(&mut self, n_rows: usize, n_entries: usize) {
        let _ = memory::try_reserve(&mut self.ends, n_rows)
            .and_then(|()| memory::try_reserve(&mut self.indices, n_entries))
            .and_then(|()| memory::try_reserve(&mut self.values, n_entries));
    }

    /// Appends rows of several parts.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn append_all(&mut self, parts: &[Self]) -> Result<()> {
        let mut before = self.indices.len() as i64;
        memory::try_reserve(&mut self.ends, parts.iter().map(|part| part.ends.len()).sum())?;
        for part in parts {
            self.ends.extend(part.ends.iter().map(|end| before + end));
            before += part.indices.len() as i64;
        }
        let indices: Vec<&[i32]> = parts.iter().map(|part| &part.indices[..]).collect();
        let values: Vec<&[f32]> = parts.iter().map(|part| &part.values[..]).collect();
        parallel::append(&mut self.indices, &indices)?;
        parallel::append(&mut self.values, &values)
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

    /// Columns and values, if every row has exactly one.
    fn one_in_each_row(&self) -> Option<(&[i32], &[f32])> {
        match self {
            Self::Single(indices, values) if !indices.contains(&NOTHING) => Some((indices, values)),
            _ => None,
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
        let full: Vec<_> = pieces.iter().filter_map(Piece::one_in_each_row).collect();
        if full.len() == pieces.len() {
            return Self::woven(&full, n_rows);
        }
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

    /// The rows of several columns with an entry in each row.
    fn woven(full: &[(&[i32], &[f32])], n_rows: usize) -> Self {
        let m = full.len();
        let mut all = Self {
            ends: (1..=n_rows).map(|k| (k * m) as i64).collect(),
            indices: memory::zeros(n_rows * m),
            values: memory::zeros(n_rows * m),
        };
        for (at, (indices, values)) in full.iter().enumerate() {
            all.indices.iter_mut().skip(at).step_by(m).zip(*indices).for_each(|(to, from)| *to = *from);
            all.values.iter_mut().skip(at).step_by(m).zip(*values).for_each(|(to, from)| *to = *from);
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
    memory::resize(spare, numbers.len(), 0);
    match bits {
        0..=8 => sort_digits::<1>(bits, numbers, spare),
        9..=16 => sort_digits::<2>(bits, numbers, spare),
        17..=24 => sort_digits::<3>(bits, numbers, spare),
        _ => sort_digits::<4>(bits, numbers, spare),
    }
}

/// Sorts by so many digits, as short as they can be: counters are what a short list pays for.
fn sort_digits<const N: usize>(bits: u32, numbers: &mut Vec<u32>, spare: &mut Vec<u32>) {
    let width = bits.div_ceil(N as u32);
    let digit = |number: u32, k: usize| (number >> (width * k as u32) & ((1 << width) - 1)) as usize & 255;
    // How often each digit is there, of all places at once.
    let mut starts = [[0_u32; 256]; N];
    for number in numbers.iter() {
        for (k, starts) in starts.iter_mut().enumerate() {
            starts[digit(*number, k)] += 1;
        }
    }
    for (k, starts) in starts.iter_mut().enumerate() {
        let mut start = 0;
        for count in &mut starts[..1 << width] {
            start += std::mem::replace(count, start);
        }
        for number in numbers.iter() {
            let next = &mut starts[digit(*number, k)];
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
        both.append_all(&[b]).unwrap();
        assert_eq!(both, part(&[&[(1, 1.0), (3, 2.0)], &[], &[(3, -2.0), (4, 1.0)], &[(0, 5.0)]]));
    }
}
