//! Sets as discrete keys: facets, edges and vertices are the same where their sets are the same, never where
//! points are close.
//!
//! The state of a row is one of L (left of the margin, `a_i = c_i`), M (on it) and R (right of it,
//! `a_i = 0`). A facet is the state of every row. An edge is a facet with one row *between* two states, a
//! vertex one with two such rows; on the axis `C_k = 0` a row of class `k` is between all three states at
//! once (`a_i = 0 = c_i`), the apex of a wedge. A key is the exclusive or of one random 128-bit number per
//! row and state (Zobrist), so that a move changes it by two numbers. Two different states of a million
//! facets collide with probability below 1e-26; a collision would also break the match of shared edges, which
//! is checked.

use crate::memory::CollectLarge;

/// State of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Side {
    /// Margin below 1, `a_i = c_i`.
    Left = 0,
    /// Margin 1, `0 <= a_i <= c_i`.
    On = 1,
    /// Margin above 1, `a_i = 0`.
    Right = 2,
}

impl Side {
    /// The side of a code below 3.
    pub fn of(code: u8) -> Self {
        match code {
            0 => Self::Left,
            1 => Self::On,
            _ => Self::Right,
        }
    }
}

/// One event of Wesierski16, eq. (16), or a side of the frame, in 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event(pub u32);

/// What bounds the plane: axes, the box, infinity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Frame {
    /// `C- = 0`.
    Bottom = 0,
    /// `C+` at its limit.
    Right = 1,
    /// `C-` at its limit.
    Top = 2,
    /// `C+ = 0`.
    Left = 3,
    /// The line at infinity.
    Infinity = 4,
}

/// First code of a frame side; rows stay below a quarter of it.
const FRAME_BASE: u32 = u32::MAX - 7;
const BETWEEN_LEFT: usize = 3;
const BETWEEN_RIGHT: usize = 4;
const APEX: usize = 5;
const STATES: usize = 6;

impl Event {
    /// Row `i` changes from one state to a neighbouring one.
    #[inline]
    pub fn new(i: u32, from: Side, to: Side) -> Self {
        let code = match (from, to) {
            (Side::Left, _) => 0,
            (Side::Right, _) => 1,
            (Side::On, Side::Left) => 2,
            (Side::On, _) => 3,
        };
        Self(i * 4 + code)
    }

    /// The events that lead row `i` from one state to another, by way of the margin: none, one or two.
    pub fn changes(i: u32, from: Side, to: Side) -> impl Iterator<Item = Self> {
        let leaves = (from != to && from != Side::On).then(|| Self::new(i, from, Side::On));
        let enters = (from != to && to != Side::On).then(|| Self::new(i, Side::On, to));
        leaves.into_iter().chain(enters)
    }

    /// A side of the frame.
    pub fn frame(side: Frame) -> Self {
        Self(FRAME_BASE + side as u32)
    }

    /// Whether this is a side of the frame.
    #[inline]
    pub fn is_frame(self) -> bool {
        self.0 >= FRAME_BASE
    }

    /// The row; meaningless for the frame.
    #[inline]
    pub fn row(self) -> u32 {
        self.0 / 4
    }

    /// The states before and after; meaningless for the frame.
    #[inline]
    pub fn sides(self) -> (Side, Side) {
        match self.0 % 4 {
            0 => (Side::Left, Side::On),
            1 => (Side::Right, Side::On),
            2 => (Side::On, Side::Left),
            _ => (Side::On, Side::Right),
        }
    }

    /// The event seen from the other facet.
    pub fn reversed(self) -> Self {
        let (from, to) = self.sides();
        Self::new(self.row(), to, from)
    }

    fn between(self) -> usize {
        if matches!(self.0 % 4, 0 | 2) { BETWEEN_LEFT } else { BETWEEN_RIGHT }
    }
}

/// The random numbers of all rows.
pub struct Keys {
    rows: Vec<[u128; STATES]>,
    frame: [u128; 5],
}

impl Keys {
    /// Numbers for `n` rows; the same on every machine.
    pub fn new(n: usize) -> Self {
        let mut state = 0x6A09_E667_F3BC_C908_u64;
        let mut next = || {
            let mut word = || {
                state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                let mut z = state;
                z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                z ^ (z >> 31)
            };
            (u128::from(word()) << 64) | u128::from(word())
        };
        let frame = std::array::from_fn(|_| next());
        let rows = (0..n).map(|_| std::array::from_fn(|_| next())).collect_large();
        Self { rows, frame }
    }

    /// Key of a facet.
    pub fn facet(&self, sides: impl Iterator<Item = Side>) -> u128 {
        self.rows.iter().zip(sides).fold(0, |key, (row, side)| key ^ row[side as usize])
    }

    /// Key of the facet beyond an edge.
    #[inline]
    pub fn across(&self, facet: u128, event: Event) -> u128 {
        let (from, to) = event.sides();
        let row = &self.rows[event.row() as usize];
        facet ^ row[from as usize] ^ row[to as usize]
    }

    /// Key of a vertex between two edges of a facet, the same from every facet around it. `is_apex` says that
    /// the vertex lies on the axis of the class of the row that both edges, or the one that is not the axis,
    /// belong to.
    #[inline]
    pub fn vertex(&self, facet: u128, a: Event, b: Event, is_apex: bool) -> u128 {
        if is_apex {
            let event = if a.is_frame() { b } else { a };
            let row = &self.rows[event.row() as usize];
            return facet ^ row[event.sides().0 as usize] ^ row[APEX];
        }
        let mut key = facet;
        for event in [a, b] {
            if event.is_frame() {
                key ^= self.frame[(event.0 - FRAME_BASE) as usize];
            } else {
                let row = &self.rows[event.row() as usize];
                key ^= row[event.sides().0 as usize] ^ row[event.between()];
            }
        }
        key
    }
}

/// A hasher for keys, which are random already.
#[derive(Clone, Copy, Default)]
pub struct Identity(u64);

impl std::hash::Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }
    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64 ^ (key >> 64) as u64;
    }
}

/// Numbers of facets or vertices by their keys.
pub type KeyMap = std::collections::HashMap<u128, u32, std::hash::BuildHasherDefault<Identity>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_facets_around_a_vertex_agree() {
        let keys = Keys::new(3);
        let sides = [Side::Left, Side::On, Side::Right];
        let first = keys.facet(sides.into_iter());
        let a = Event::new(0, Side::Left, Side::On);
        let b = Event::new(2, Side::Right, Side::On);
        let vertex = keys.vertex(first, a, b, false);
        let second = keys.across(first, a);
        let third = keys.across(second, b);
        let fourth = keys.across(third, a.reversed());
        assert_eq!(keys.across(fourth, b.reversed()), first);
        assert_eq!(keys.vertex(second, b, a.reversed(), false), vertex);
        assert_eq!(keys.vertex(third, a.reversed(), b.reversed(), false), vertex);
        assert_eq!(keys.vertex(fourth, b.reversed(), a, false), vertex);
        assert_ne!(keys.vertex(first, b, Event::frame(Frame::Top), false), vertex);
    }

    #[test]
    fn events_carry_row_and_sides() {
        for (from, to) in
            [(Side::Left, Side::On), (Side::On, Side::Left), (Side::On, Side::Right), (Side::Right, Side::On)]
        {
            let event = Event::new(77, from, to);
            assert_eq!((event.row(), event.sides(), event.is_frame()), (77, (from, to), false));
            assert_eq!(event.reversed().sides(), (to, from));
        }
        assert!(Event::frame(Frame::Infinity).is_frame());
    }
}
