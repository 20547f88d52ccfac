//! What the latest short strings of a column have become.
//!
//! A categorical column has few values that come again and again. A string of up to 16 bytes is two
//! numbers and a length, so to compare one with what stands in a small table costs less than its hash and
//! a look-up among all categories.

use super::column::Coded;
use crate::memory;

/// Slots of the table, a power of two: 128 kB, of which only the slots that are used are ever touched.
const SLOTS: usize = 4096;

/// A table of codes by string; a string takes the place of the one that was there. A slot is the string's two
/// numbers, its length above the kind of its code, and what goes with the code. Zeros are an empty slot.
#[derive(Debug)]
pub struct RecentCodes {
    slots: Vec<[u64; 4]>,
}

/// A string of up to 16 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShortText {
    first: u64,
    last: u64,
    len: u8,
}

impl ShortText {
    /// The string, if it is short.
    #[inline(always)]
    pub fn of(text: &[u8]) -> Option<Self> {
        let len = text.len();
        let (first, last) = match len {
            0 => (0, 0),
            1..4 => (u64::from(text[0]), u64::from(text[len / 2]) << 8 | u64::from(text[len - 1])),
            4..8 => (u64::from(word(&text[..4])), u64::from(word(&text[len - 4..]))),
            8..=16 => (
                u64::from(word(&text[..4])) << 32 | u64::from(word(&text[4..8])),
                u64::from(word(&text[len - 8..len - 4])) << 32 | u64::from(word(&text[len - 4..])),
            ),
            _ => return None,
        };
        Some(Self { first, last, len: len as u8 })
    }

    #[inline(always)]
    fn slot(self) -> usize {
        let mixed = (self.first ^ self.last.rotate_left(29) ^ u64::from(self.len))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 52) as usize & (SLOTS - 1)
    }
}

#[inline(always)]
fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

impl Default for RecentCodes {
    /// A table that knows nothing.
    fn default() -> Self {
        Self { slots: memory::zeros(SLOTS) }
    }
}

impl RecentCodes {
    /// The code of a string: what the table says, or else `make`, which the table then says.
    ///
    /// # Errors
    /// Those of `make`.
    #[inline(always)]
    pub fn get<E>(&mut self, text: &str, make: impl FnOnce() -> Result<Coded, E>) -> Result<Coded, E> {
        let Some(short) = ShortText::of(text.as_bytes()) else { return make() };
        let slot = &mut self.slots[short.slot()];
        let [first, last, tag, content] = *slot;
        if first == short.first && last == short.last && tag >> 8 == u64::from(short.len) && tag as u8 != 0 {
            return Ok(match tag as u8 {
                IS_ENTRY => Coded::Entry(content as u32, f32::from_bits((content >> 32) as u32)),
                IS_MISSING => Coded::Missing,
                _ => Coded::Unseen,
            });
        }
        let coded = make()?;
        let (kind, content) = match coded {
            Coded::Entry(column, value) => (IS_ENTRY, u64::from(column) | u64::from(value.to_bits()) << 32),
            Coded::Missing => (IS_MISSING, 0),
            Coded::Unseen => (IS_UNSEEN, 0),
        };
        *slot = [short.first, short.last, u64::from(short.len) << 8 | u64::from(kind), content];
        Ok(coded)
    }
}

/// Kinds of codes in a slot; 0 is none.
const IS_ENTRY: u8 = 1;
const IS_MISSING: u8 = 2;
const IS_UNSEEN: u8 = 3;

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn different_strings_are_different(a in "[ab\0]{0,17}", b in "[ab\0]{0,17}") {
            match (ShortText::of(a.as_bytes()), ShortText::of(b.as_bytes())) {
                (Some(short), Some(other)) => prop_assert_eq!(short == other, a == b),
                _ => prop_assert!(a.len() > 16 || b.len() > 16),
            }
        }

        #[test]
        fn codes_are_those_that_were_made(texts in prop::collection::vec("[a-c]{0,18}", 0..400)) {
            let (mut recent, mut numbers) = (RecentCodes::default(), HashMap::new());
            for text in &texts {
                let next = numbers.len() as u32;
                let number = *numbers.entry(text.clone()).or_insert(next);
                let found = recent.get(text, || Ok::<_, ()>(Coded::Entry(number, 1.0)));
                prop_assert_eq!(found, Ok(Coded::Entry(number, 1.0)));
            }
        }
    }
}
