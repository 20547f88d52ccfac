//! The hashes of all windows of a text, several at a time.
//!
//! Character n-grams of ASCII are windows of n bytes, one at every place. Their hashes are the same few steps
//! on neighbouring bytes, which vector registers do for 8 or 16 places at once.

use super::murmur::murmur3;
use super::part::Hasher;
use crate::matrix::simd::{self, Loop};

/// Longest window that is compiled.
pub const LONGEST: usize = 8;

/// Appends what [`Hasher::packed`] makes of every window of `n` bytes, for `n` up to [`LONGEST`].
pub fn hash_windows(hasher: &Hasher, text: &[u8], n: usize, out: &mut Vec<u32>) {
    let Some(count) = (text.len() + 1).checked_sub(n).filter(|_| n > 0) else { return };
    let start = out.len();
    out.resize(start + count, 0);
    let out = &mut out[start..];
    simd::run(Windows { text, n, out });
    for hash in out {
        *hash = hasher.pack(*hash as i32);
    }
}

struct Windows<'a> {
    text: &'a [u8],
    n: usize,
    out: &'a mut [u32],
}

impl Loop for Windows<'_> {
    type Output = ();
    const IS_WIDE: bool = true;

    #[inline(always)]
    fn run(self) {
        match self.n {
            1 => self.of::<1>(),
            2 => self.of::<2>(),
            3 => self.of::<3>(),
            4 => self.of::<4>(),
            5 => self.of::<5>(),
            6 => self.of::<6>(),
            7 => self.of::<7>(),
            _ => self.of::<8>(),
        }
    }
}

impl Windows<'_> {
    #[inline(always)]
    fn of<const N: usize>(self) {
        let len = self.out.len();
        // The k-th bytes of all windows lie one behind the other.
        let bytes: [&[u8]; N] = std::array::from_fn(|k| &self.text[k..k + len]);
        for (i, out) in self.out.iter_mut().enumerate() {
            *out = murmur3(&std::array::from_fn::<u8, N, _>(|k| bytes[k][i]), 0) as u32;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn windows_are_hashed_as_names(text in prop::collection::vec(any::<u8>(), 0..90), n in 1..=LONGEST) {
            for columns in [1 << 20, 1000] {
                let hasher = Hasher::new(columns, true);
                let mut found = vec![7];
                hash_windows(&hasher, &text, n, &mut found);
                let expected: Vec<u32> = text.windows(n).map(|window| hasher.packed(window)).collect();
                prop_assert_eq!(&found[1..], &expected[..]);
            }
        }
    }
}
