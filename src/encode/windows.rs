//! The hashes of all windows of a text, several at a time.
//!
//! Character n-grams of ASCII are windows of n bytes, one at every place. Their hashes are the same few steps
//! on neighbouring bytes, which vector registers do for 8 or 16 places at once.
//!
//! N-grams of words begin at every word. The hash of one goes through its bytes from the first, so that on
//! the way to the hash of the longest those of the shorter ones are passed by. 16 words begin side by side:
//! how long each of them is is no branch, which nobody could predict.

use super::murmur::{finished, murmur3, stirred};
use super::part::Hasher;
use crate::matrix::simd::{self, Loop};
use crate::memory;

/// Longest window that is compiled.
pub const LONGEST: usize = 8;

/// Appends what [`Hasher::packed`] makes of every window of `n` bytes, for `n` up to [`LONGEST`].
pub fn hash_windows(hasher: &Hasher, text: &[u8], n: usize, out: &mut Vec<u32>) {
    let Some(count) = (text.len() + 1).checked_sub(n).filter(|_| n > 0) else { return };
    let start = out.len();
    memory::resize(out, start + count, 0);
    let out = &mut out[start..];
    simd::run(Windows { text, n, out });
    for hash in out {
        *hash = hasher.pack(*hash as i32);
    }
}

/// Words that are hashed side by side.
const LANES: usize = 16;
/// Most words of an n-gram that is compiled.
pub const MOST_WORDS: usize = 3;
/// Bytes behind the last word that may be read.
pub const BEHIND: usize = 4;

/// Appends what [`Hasher::packed`] makes of every n-gram of the words that lie in `text` at `spans` with a
/// byte between them, for `n` from `least` to `most`, at most [`MOST_WORDS`]. The text goes on for
/// [`BEHIND`] bytes.
pub fn hash_ngrams(
    hasher: &Hasher,
    text: &[u8],
    spans: &[(u32, u32)],
    [least, most]: [usize; 2],
    out: &mut Vec<u32>,
) {
    let start = out.len();
    let count = |n: usize| (spans.len() + 1).saturating_sub(n);
    memory::resize(out, start + (least..=most).map(count).sum::<usize>(), 0);
    let mut rest = &mut out[start..];
    let mut found: [&mut [u32]; MOST_WORDS] = Default::default();
    for n in least..=most {
        let of_n;
        (of_n, rest) = rest.split_at_mut(count(n));
        found[n - 1] = of_n;
    }
    simd::run(WordWindows { text, spans, most, found });
    for hash in &mut out[start..] {
        *hash = hasher.pack(*hash as i32);
    }
}

struct WordWindows<'a> {
    text: &'a [u8],
    spans: &'a [(u32, u32)],
    most: usize,
    /// Room for the hashes of 1, 2, ... words; none where they are not asked for.
    found: [&'a mut [u32]; MOST_WORDS],
}

impl Loop for WordWindows<'_> {
    type Output = ();
    const IS_WIDE: bool = true;

    #[inline(always)]
    fn run(self) {
        match self.most {
            1 => self.of::<1>(),
            2 => self.of::<2>(),
            _ => self.of::<MOST_WORDS>(),
        }
    }
}

impl WordWindows<'_> {
    #[inline(always)]
    fn of<const N: usize>(self) {
        for first in (0..self.spans.len()).step_by(LANES) {
            let lanes = LANES.min(self.spans.len() - first);
            let mut starts = [0; LANES];
            let mut lengths = [[0; LANES]; N];
            for l in 0..lanes {
                starts[l] = self.spans[first + l].0;
                for (n, lengths) in lengths.iter_mut().enumerate() {
                    // An n-gram that is not there has the length 0.
                    lengths[l] = self.spans.get(first + l + n).map_or(0, |span| span.1 - starts[l]);
                }
            }
            let hashes = hashes(self.text, &starts, &lengths);
            for n in 0..N {
                if let Some(out) = self.found[n].get_mut(first..) {
                    out.iter_mut().zip(&hashes[n][..lanes]).for_each(|(out, hash)| *out = *hash);
                }
            }
        }
    }
}

/// The hashes of so many bytes from each start.
#[inline(always)]
fn hashes<const N: usize>(
    text: &[u8],
    starts: &[u32; LANES],
    lengths: &[[u32; LANES]; N],
) -> [[u32; LANES]; N] {
    // Where the last four bytes begin.
    let last = text.len() - 4;
    let longest = lengths.iter().flatten().fold(0, |most, len| most.max(*len));
    let mut state = [0; LANES];
    let (mut at_end, mut rests) = ([[0; LANES]; N], [[0; LANES]; N]);
    for k in 0..=longest / 4 {
        let mut words = [0; LANES];
        for l in 0..LANES {
            let at = ((starts[l] + 4 * k) as usize).min(last);
            words[l] = text[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word));
        }
        for n in 0..N {
            for l in 0..LANES {
                let len = lengths[n][l];
                let is_end = len / 4 == k;
                let rest = words[l] & !(u32::MAX << (8 * (len % 4)));
                at_end[n][l] = if is_end { state[l] } else { at_end[n][l] };
                rests[n][l] = if is_end { rest } else { rests[n][l] };
            }
        }
        for l in 0..LANES {
            state[l] = stirred(state[l], words[l]);
        }
    }
    for n in 0..N {
        for l in 0..LANES {
            at_end[n][l] = finished(at_end[n][l], rests[n][l], lengths[n][l]);
        }
    }
    at_end
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
        fn ngrams_are_hashed_as_names(
            lengths in prop::collection::vec(0..19_usize, 0..70),
            least in 1..=MOST_WORDS,
            more in 0..MOST_WORDS,
            bytes in prop::collection::vec(any::<u8>(), 1..200),
        ) {
            let most = (least + more).min(MOST_WORDS);
            let (mut text, mut spans) = (Vec::new(), Vec::new());
            for len in lengths {
                let start = text.len();
                text.extend((0..len).map(|k| bytes[(start + k) % bytes.len()]));
                spans.push((start as u32, text.len() as u32));
                text.push(b' ');
            }
            text.resize(text.len() + BEHIND, b'x');
            let hasher = Hasher::new(1 << 20, true);
            let mut found = vec![7];
            hash_ngrams(&hasher, &text, &spans, [least, most], &mut found);
            let mut expected = vec![7];
            for n in least..=most {
                let term = |spans: &[(u32, u32)]| spans[0].0 as usize..spans[n - 1].1 as usize;
                expected.extend(spans.windows(n).map(|spans| hasher.packed(&text[term(spans)])));
            }
            prop_assert_eq!(found, expected);
        }

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
