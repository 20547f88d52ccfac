//! Column numbers to bytes and back, without branches on the data.
//!
//! Each number becomes 1 to 4 bytes; how many is a code of 2 bits in a stream of its own (the idea of Lemire,
//! Kurz, Rupp: Stream VByte, Information Processing Letters 130, 2018). Decoding four numbers reads one byte
//! of codes and 16 bytes at known offsets, whatever the lengths; with SSSE3 the four numbers take one
//! shuffle, whose pattern is found by their code.
#![allow(unsafe_code)] // 16 bytes to a register and back, and the call of what needs SSSE3

/// Bytes that the decoder may read behind the last number.
pub const PADDING: usize = 16;

const MASKS: [u32; 4] = [0xff, 0xffff, 0x00ff_ffff, 0xffff_ffff];

/// Appends codes and bytes of the numbers.
pub fn encode(numbers: &[u32], codes: &mut Vec<u8>, bytes: &mut Vec<u8>) {
    for group in numbers.chunks(4) {
        let mut code = 0;
        for (k, &x) in group.iter().enumerate() {
            let n = (x > 0xff) as u8 + (x > 0xffff) as u8 + (x > 0x00ff_ffff) as u8;
            code |= n << (2 * k);
            bytes.extend_from_slice(&x.to_le_bytes()[..=n as usize]);
        }
        codes.push(code);
    }
}

/// Decodes as many numbers as `out` holds; `bytes` has [`PADDING`] more bytes than were written. `None` if
/// the streams are not those of so many numbers.
pub fn decode(codes: &[u8], bytes: &[u8], out: &mut [i32]) -> Option<()> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("ssse3") {
        // SAFETY: the feature was detected.
        return decode_by(codes, bytes, out, |codes, bytes, groups| unsafe {
            shuffled(codes, bytes, groups)
        });
    }
    decode_by(codes, bytes, out, plain)
}

/// Decodes with `whole` for whole groups: from the codes and the padded bytes it writes the groups, and
/// returns the bytes used.
#[inline(always)]
fn decode_by(
    codes: &[u8],
    bytes: &[u8],
    out: &mut [i32],
    whole: impl FnOnce(&[u8], &[u8], &mut [[i32; 4]]) -> Option<usize>,
) -> Option<()> {
    if codes.len() != out.len().div_ceil(4) || bytes.len() < PADDING {
        return None;
    }
    let end = bytes.len() - PADDING;
    let (groups, rest) = out.as_chunks_mut::<4>();
    let mut at = whole(&codes[..groups.len()], bytes, groups)?;
    if !rest.is_empty() {
        let code = *codes.last()?;
        if at > end || code >> (2 * rest.len()) != 0 {
            return None;
        }
        let mut group = [0; 4];
        // The missing numbers of the group have code 0 and count one byte each.
        let used = four(code, bytes[at..].first_chunk()?, &mut group);
        at += used - (4 - rest.len());
        rest.copy_from_slice(&group[..rest.len()]);
    }
    (at == end).then_some(())
}

fn plain(codes: &[u8], bytes: &[u8], groups: &mut [[i32; 4]]) -> Option<usize> {
    let mut at = 0;
    for (code, group) in codes.iter().zip(groups) {
        at += four(*code, bytes.get(at..)?.first_chunk()?, group);
    }
    Some(at)
}

/// For each code, where the bytes of its four numbers come from (0x80 for a zero), and how many they are.
const PATTERNS: [([u8; 16], u8); 256] = {
    let mut patterns = [([0x80; 16], 0); 256];
    let mut code = 0;
    while code < 256 {
        let (mut k, mut from) = (0, 0);
        while k < 4 {
            let mut b = 0;
            while b <= (code >> (2 * k)) & 3 {
                patterns[code].0[4 * k + b] = from;
                (from, b) = (from + 1, b + 1);
            }
            k += 1;
        }
        patterns[code].1 = from;
        code += 1;
    }
    patterns
};

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "ssse3")]
fn shuffled(codes: &[u8], bytes: &[u8], groups: &mut [[i32; 4]]) -> Option<usize> {
    use std::arch::x86_64::{__m128i, _mm_shuffle_epi8};
    static LOOKUP: [([u8; 16], u8); 256] = PATTERNS;
    let mut at = 0;
    for (code, group) in codes.iter().zip(groups) {
        let window: &[u8; PADDING] = bytes.get(at..)?.first_chunk()?;
        let (pattern, used) = &LOOKUP[usize::from(*code)];
        // SAFETY: all three types are 16 bytes without invalid patterns.
        *group = unsafe {
            let pattern = std::mem::transmute::<[u8; 16], __m128i>(*pattern);
            let window = std::mem::transmute::<[u8; 16], __m128i>(*window);
            std::mem::transmute::<__m128i, [i32; 4]>(_mm_shuffle_epi8(window, pattern))
        };
        at += usize::from(*used);
    }
    Some(at)
}

/// Decodes four numbers and returns how many bytes they take.
#[inline(always)]
fn four(code: u8, bytes: &[u8; PADDING], out: &mut [i32; 4]) -> usize {
    let n: [usize; 4] = std::array::from_fn(|k| usize::from(code >> (2 * k)) & 3);
    let starts = [0, n[0] + 1, n[0] + n[1] + 2, n[0] + n[1] + n[2] + 3];
    for k in 0..4 {
        // At most 12 anyway, which the compiler cannot know.
        let window = bytes[starts[k].min(12)..].first_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk));
        out[k] = (window & MASKS[n[k]]) as i32;
    }
    starts[3] + n[3] + 1
}

/// Gaps of one row to columns; `None` if they leave `0..=i32::MAX`.
#[inline(always)]
pub fn add_up(gaps: &mut [i32]) -> Option<()> {
    // A column is at most one more than two numbers below 2^31, so the first one that is too large shows as
    // negative, whatever comes of those behind it.
    let (groups, rest) = gaps.as_chunks_mut::<4>();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86_64 has SSE2.
    let (mut next, mut seen) = unsafe { add_up_groups(groups) };
    #[cfg(not(target_arch = "x86_64"))]
    let (mut next, mut seen) = add_up_groups(groups);
    for gap in rest {
        seen |= *gap;
        *gap = next.wrapping_add(*gap);
        seen |= *gap;
        next = gap.wrapping_add(1);
    }
    (seen >= 0).then_some(())
}

/// [`add_up`] for groups of four: the column after the last one, and all bits of gaps and columns. One
/// addition per group waits for the group before.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "sse2")]
fn add_up_groups(groups: &mut [[i32; 4]]) -> (i32, i32) {
    use std::arch::x86_64::{
        __m128i, _mm_add_epi32, _mm_or_si128, _mm_set1_epi32, _mm_setzero_si128, _mm_shuffle_epi32,
        _mm_slli_si128,
    };
    use std::mem::transmute;
    let one = _mm_set1_epi32(1);
    let (mut next, mut seen) = (_mm_setzero_si128(), _mm_setzero_si128());
    for group in groups {
        // SAFETY: both types are 16 bytes without invalid patterns.
        let gaps = unsafe { transmute::<[i32; 4], __m128i>(*group) };
        let pairs = _mm_add_epi32(gaps, _mm_slli_si128::<4>(_mm_add_epi32(gaps, one)));
        let sums = _mm_add_epi32(pairs, _mm_slli_si128::<8>(_mm_add_epi32(pairs, one)));
        let columns = _mm_add_epi32(sums, next);
        seen = _mm_or_si128(seen, _mm_or_si128(gaps, columns));
        next = _mm_add_epi32(_mm_shuffle_epi32::<0xff>(columns), one);
        // SAFETY: as above.
        *group = unsafe { transmute::<__m128i, [i32; 4]>(columns) };
    }
    // SAFETY: as above.
    let [next, seen] = [next, seen].map(|list| unsafe { transmute::<__m128i, [i32; 4]>(list) });
    (next[0], seen[0] | seen[1] | seen[2] | seen[3])
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn add_up_groups(groups: &mut [[i32; 4]]) -> (i32, i32) {
    let (mut next, mut seen) = (0i32, 0);
    for group in groups {
        for gap in group {
            seen |= *gap;
            *gap = next.wrapping_add(*gap);
            seen |= *gap;
            next = gap.wrapping_add(1);
        }
    }
    (next, seen)
}

/// Gaps of the rising columns of one row.
pub fn gaps(columns: &[u32], out: &mut Vec<u32>) {
    let mut next = 0;
    for &column in columns {
        out.push(column - next);
        next = column.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn number() -> impl Strategy<Value = u32> {
        (any::<u32>(), 0..32u32).prop_map(|(x, shift)| x >> shift)
    }

    fn encoded(numbers: &[u32]) -> (Vec<u8>, Vec<u8>) {
        let (mut codes, mut bytes) = (Vec::new(), Vec::new());
        encode(numbers, &mut codes, &mut bytes);
        bytes.extend_from_slice(&[0; PADDING]);
        (codes, bytes)
    }

    proptest! {
        #[test]
        fn numbers_come_back(numbers in prop::collection::vec(number(), 0..100)) {
            let (codes, bytes) = encoded(&numbers);
            let mut out = vec![-1; numbers.len()];
            prop_assert_eq!(decode(&codes, &bytes, &mut out), Some(()));
            prop_assert_eq!(out.iter().map(|&x| x as u32).collect::<Vec<_>>(), &numbers[..]);
            out.fill(-1);
            prop_assert_eq!(decode_by(&codes, &bytes, &mut out, plain), Some(()));
            prop_assert_eq!(out.iter().map(|&x| x as u32).collect::<Vec<_>>(), numbers);
        }

        /// Damage is found or gives other numbers, never a panic; lengths that do not fit are found.
        #[test]
        fn damage_is_harmless(
            numbers in prop::collection::vec(number(), 1..60),
            at in any::<prop::sample::Index>(),
            bit in 0..8u8,
        ) {
            let (mut codes, mut bytes) = encoded(&numbers);
            let mut out = vec![0; numbers.len()];
            prop_assert_eq!(decode(&codes, &bytes, &mut vec![0; numbers.len() + 4]), None);
            prop_assert_eq!(decode(&codes, &bytes[1..], &mut out), None);
            prop_assert_eq!(decode(&codes, &bytes[..PADDING - 1], &mut out), None);
            bytes.push(0);
            prop_assert_eq!(decode(&codes, &bytes, &mut out), None);
            bytes.pop();
            let k = at.index(codes.len());
            codes[k] ^= 1u8 << bit;
            prop_assert_eq!(decode(&codes, &bytes, &mut out), None);
            prop_assert_eq!(decode_by(&codes, &bytes, &mut out, plain), None);
        }

        /// Against sums of wide numbers, also where they leave the range.
        #[test]
        fn sums_are_those_of_wide_numbers(gaps in prop::collection::vec(number(), 0..20)) {
            let mut next = 0u64;
            let columns: Vec<u64> = gaps
                .iter()
                .map(|&gap| {
                    next += u64::from(gap) + 1;
                    next - 1
                })
                .collect();
            let mut found: Vec<i32> = gaps.iter().map(|&gap| gap as i32).collect();
            let is_inside = columns.last().is_none_or(|&last| last < 1 << 31);
            prop_assert_eq!(add_up(&mut found).is_some(), is_inside);
            if is_inside {
                prop_assert_eq!(found.iter().map(|&x| x as u64).collect::<Vec<_>>(), columns);
            }
        }

        #[test]
        fn columns_come_back(columns in prop::collection::btree_set(0..i32::MAX as u32, 0..50)) {
            let columns: Vec<u32> = columns.into_iter().collect();
            let mut list = Vec::new();
            gaps(&columns, &mut list);
            let mut back: Vec<i32> = list.iter().map(|&x| x as i32).collect();
            prop_assert_eq!(add_up(&mut back), Some(()));
            prop_assert_eq!(back.iter().map(|&x| x as u32).collect::<Vec<_>>(), columns);
        }
    }

    #[test]
    fn columns_beyond_the_largest_are_refused() {
        assert_eq!(add_up(&mut [i32::MAX]), Some(()));
        assert_eq!(add_up(&mut [i32::MAX, 0]), None);
        assert_eq!(add_up(&mut [-1]), None);
        assert_eq!(add_up(&mut [-1, -1, -1]), None);
        assert_eq!(add_up(&mut []), Some(()));
    }
}
