//! Column numbers to bytes and back, without branches on the data.
//!
//! Each number becomes 1 to 4 bytes; how many is a code of 2 bits in a stream of its own (the idea of Lemire, Kurz, Rupp: Stream
//! VByte, Information Processing Letters 130, 2018). Decoding four numbers reads one byte of codes and 16 bytes at known
//! offsets, whatever the lengths.

/// Bytes that the decoder may look at behind the last number.
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

/// Decodes as many numbers as `out` holds; `bytes` has [`PADDING`] more bytes than were written. `None` if the streams are not
/// those of so many numbers.
pub fn decode(codes: &[u8], bytes: &[u8], out: &mut [i32]) -> Option<()> {
    if codes.len() != out.len().div_ceil(4) || bytes.len() < PADDING {
        return None;
    }
    let end = bytes.len() - PADDING;
    let (groups, rest) = out.as_chunks_mut::<4>();
    let mut at = 0;
    for (code, group) in codes.iter().zip(groups) {
        if at > end {
            return None;
        }
        at += four(*code, bytes[at..at + PADDING].first_chunk()?, group);
    }
    if !rest.is_empty() {
        let code = *codes.last()?;
        if at > end || code >> (2 * rest.len()) != 0 {
            return None;
        }
        let mut group = [0; 4];
        // The missing numbers of the group have code 0 and count one byte each.
        let used = four(code, bytes[at..at + PADDING].first_chunk()?, &mut group);
        at += used - (4 - rest.len());
        rest.copy_from_slice(&group[..rest.len()]);
    }
    (at == end).then_some(())
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
    let mut next = 0u64;
    for gap in gaps.iter_mut() {
        let column = next + u64::from(*gap as u32);
        *gap = column as i32;
        next = column + 1;
    }
    // Columns rise, so the last one vouches for all.
    (next <= 1 << 31).then_some(())
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
            prop_assert_eq!(out.iter().map(|&x| x as u32).collect::<Vec<_>>(), numbers);
        }

        /// Damage is found or gives other numbers, never a panic; lengths that do not fit are found.
        #[test]
        fn damage_is_harmless(numbers in prop::collection::vec(number(), 1..60), at in any::<prop::sample::Index>(), bit in 0..8u8) {
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
