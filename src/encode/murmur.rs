//! MurmurHash3 of 32 bits (Austin Appleby's public-domain `MurmurHash3_x86_32`), the hash by which
//! scikit-learn's `FeatureHasher` and Vowpal Wabbit number features.
//!
//! ```text
//!     h = seed
//!     for each word of 4 bytes, little-endian:   h = 5 rotl13(h ^ c2 rotl15(c1 word)) + 0xe6546b64
//!     what is left, up to 3 bytes:               h = h ^ c2 rotl15(c1 rest)
//!     h = mix(h ^ length)
//! ```
//!
//! Ours because the kept crates read from a stream or make 128 bits: for names of some ten bytes that costs
//! several times the hash itself.

const C1: u32 = 0xcc9e_2d51;
const C2: u32 = 0x1b87_3593;

/// The hash of some bytes, as a signed number of 32 bits.
#[inline(always)]
pub fn murmur3(bytes: &[u8], seed: u32) -> i32 {
    let (words, rest) = bytes.as_chunks::<4>();
    let state = words.iter().fold(seed, |state, word| stirred(state, u32::from_le_bytes(*word)));
    // The rest is the end of the last four bytes, where there are four: no branch on how long it is, which
    // nobody could predict.
    let rest = match *bytes {
        [.., a, b, c, d] => (u64::from(u32::from_le_bytes([a, b, c, d])) >> (32 - 8 * rest.len())) as u32,
        [a, b, c] => u32::from_le_bytes([a, b, c, 0]),
        [a, b] => u32::from_le_bytes([a, b, 0, 0]),
        [a] => u32::from(a),
        [] => 0,
    };
    finished(state, rest, bytes.len() as u32) as i32
}

/// The state after another word of four bytes.
#[inline(always)]
pub fn stirred(state: u32, word: u32) -> u32 {
    (state ^ scrambled(word)).rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64)
}

/// The hash, from the state after all words of four bytes, the rest of up to three, and the length.
#[inline(always)]
pub fn finished(state: u32, rest: u32, len: u32) -> u32 {
    let mut hash = state ^ scrambled(rest) ^ len;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[inline(always)]
fn scrambled(word: u32) -> u32 {
    word.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_scikit_learn() {
        for (text, hash) in [
            ("a", 1_009_084_850),
            ("dog", -1_312_749_093),
            ("naïve", 992_511_445),
            ("cat=black", 1_218_447_447),
            ("", 0),
        ] {
            assert_eq!(murmur3(text.as_bytes(), 0), hash, "{text:?}");
        }
    }
}
