//! Mutations of bytes.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Draws of a case.
pub struct Draw(Xoshiro256PlusPlus);

impl Draw {
    pub fn new(case: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(case))
    }

    pub fn below(&mut self, n: usize) -> usize {
        if n == 0 { 0 } else { (self.0.next_u64() % n as u64) as usize }
    }

    pub fn one_of<'a, T: ?Sized>(&mut self, list: &[&'a T]) -> &'a T {
        list[self.below(list.len())]
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Numbers at which lengths and indices go wrong.
pub const NUMBERS: [u64; 18] = [
    0,
    1,
    2,
    7,
    0x7f,
    0x80,
    0xff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX - 1,
    u64::MAX,
    0x7ff0_0000_0000_0000, // infinity
    0x7ff8_0000_0000_0000, // NaN
];

/// Pieces of text at which readers go wrong.
pub const WORDS: [&str; 42] = [
    "nan",
    "inf",
    "-inf",
    "1e400",
    "-1e400",
    "1e-400",
    "5e-324",
    "1.7976931348623157e308",
    "-0",
    "+",
    "-",
    ".",
    "e",
    "0x1p3",
    "1.#INF",
    "1.#QNAN",
    "99999999999999999999",
    "9223372036854775807",
    "-9223372036854775808",
    "2147483647",
    "2147483648",
    "4294967296",
    "18446744073709551615",
    "1_000",
    "1,5",
    "qid:",
    "qid:1",
    "#",
    ":",
    "::",
    " ",
    "\t",
    "\r",
    "\n",
    "\0",
    "\u{feff}",
    "\u{2028}",
    "é",
    "\"",
    "{",
    "[",
    "null",
];

/// Changes `bytes` in one to eight ways; `other` lends pieces.
pub fn mutate(draw: &mut Draw, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..1 + draw.below(8).min(draw.below(8)) {
        mutate_once(draw, bytes, other);
    }
}

fn mutate_once(draw: &mut Draw, bytes: &mut Vec<u8>, other: &[u8]) {
    let n = bytes.len();
    let at = draw.below(n);
    match draw.below(12) {
        0 | 1 if n > 0 => bytes[at] ^= 1 << draw.below(8),
        2 if n > 0 => bytes[at] = draw.bits() as u8,
        3 | 4 => put_number(draw, bytes, at),
        5 => {
            let end = (at + 1 + draw.below(16)).min(n);
            bytes.drain(at..end);
        }
        6 => {
            let count = 1 + draw.below(8);
            let piece: Vec<u8> = (0..count).map(|_| draw.bits() as u8).collect();
            bytes.splice(at..at, piece);
        }
        7 => {
            let (from, count) = (draw.below(other.len()), 1 + draw.below(40));
            let piece = other[from..(from + count).min(other.len())].to_vec();
            let end = if draw.chance(50) { (at + piece.len()).min(n) } else { at };
            bytes.splice(at..end, piece);
        }
        8 if draw.chance(30) => bytes.truncate(at),
        9 | 10 => {
            let word = draw.one_of(&WORDS).as_bytes().to_vec();
            let end = if draw.chance(50) { (at + word.len()).min(n) } else { at };
            bytes.splice(at..end, word);
        }
        11 if n > 0 => {
            let end = (at + 1 + draw.below(32)).min(n);
            let value = draw.one_of(&[&0u8, &0xff, &b' ', &b'0', &b'9', &b'\n']);
            bytes[at..end].fill(*value);
        }
        _ => {}
    }
}

/// Puts a number of 1, 2, 4 or 8 bytes over others, at a multiple of its size or anywhere.
fn put_number(draw: &mut Draw, bytes: &mut [u8], at: usize) {
    let size = 1 << draw.below(4);
    let at = if draw.chance(70) { at / size * size } else { at };
    let number = match draw.below(4) {
        0 => draw.bits(),
        1 => (bytes.len() as u64 + draw.below(3) as u64).wrapping_sub(1),
        2 => draw.below(64) as u64,
        _ => NUMBERS[draw.below(NUMBERS.len())],
    };
    if let Some(place) = bytes.get_mut(at..at + size) {
        place.copy_from_slice(&number.to_le_bytes()[..size]);
    }
}
