//! The states of all rows packed into words, two bits per row: all that an open facet stores.

use super::keys::Side;
use crate::memory;

const PER_WORD: usize = 32;

/// Words for `n` rows.
pub fn words(n: usize) -> usize {
    n.div_ceil(PER_WORD)
}

/// The state of row `i`.
#[inline]
pub fn side(sets: &[u64], i: usize) -> Side {
    Side::of((sets[i / PER_WORD] >> (2 * (i % PER_WORD)) & 3) as u8)
}

/// Sets the state of row `i`.
#[inline]
pub fn put(sets: &mut [u64], i: usize, side: Side) {
    let shift = 2 * (i % PER_WORD);
    let word = &mut sets[i / PER_WORD];
    *word = *word & !(3 << shift) | (side as u64) << shift;
}

/// Packs the states of `n` rows.
pub fn pack(sides: &[Side]) -> Vec<u64> {
    let mut sets = memory::zeros(words(sides.len()));
    sides.iter().enumerate().for_each(|(i, &side)| put(&mut sets, i, side));
    sets
}

/// Appends the rows whose state differs, with their state in `to`.
pub fn differences(from: &[u64], to: &[u64], out: &mut Vec<(u32, Side)>) {
    for (w, (a, b)) in from.iter().zip(to).enumerate() {
        let mut bits = a ^ b;
        bits = (bits | bits >> 1) & 0x5555_5555_5555_5555;
        while bits != 0 {
            let i = w * PER_WORD + bits.trailing_zeros() as usize / 2;
            out.push((i as u32, side(to, i)));
            bits &= bits - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_is_an_identity_and_differences_lead_from_one_to_the_other() {
        let sides =
            |seed: usize| (0..75).map(|i| Side::of(((i * i + seed * i) % 3) as u8)).collect::<Vec<_>>();
        let (a, b) = (sides(1), sides(5));
        let (mut packed, other) = (pack(&a), pack(&b));
        assert!((0..75).all(|i| side(&packed, i) == a[i]));
        let mut changed = Vec::new();
        differences(&packed, &other, &mut changed);
        assert_eq!(changed.len(), (0..75).filter(|&i| a[i] != b[i]).count());
        for (i, side) in changed {
            put(&mut packed, i as usize, side);
        }
        assert_eq!(packed, other);
    }
}
