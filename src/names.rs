//! From a name to its number: of features, of categories, of terms.
//!
//! ```text
//!     names  spam ham eggs            slots  . | eggs 2 | . | spam 0 | . | . | ham 1 | .
//! ```
//!
//! An open table of at least twice as many slots as names. A slot holds 96 bits of the hash of its name and
//! the number, not the name: a look-up reads one line of memory instead of three, and can ask for it ahead
//! ([`NameTable::prefetch`]), and a table grows without its names. That two names of a list share 96 bits is
//! found when a table is made of the list. That an unknown name has the hash of a known one takes as many
//! names as nobody has (of 2^30 known ones, it happens once in 2^66 unknown ones).

use twox_hash::XxHash3_128;

use crate::matrix::kernels;
use crate::{Error, Result, memory};

/// What a name is looked up by: 96 bits of its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameKey {
    tag: u64,
    more_tag: u32,
}

impl NameKey {
    /// The key of a name.
    pub fn of(name: &str) -> Self {
        Self::of_bytes(name.as_bytes())
    }

    /// The key of some bytes.
    #[inline]
    pub fn of_bytes(name: &[u8]) -> Self {
        let hash = XxHash3_128::oneshot(name);
        Self { tag: hash as u64, more_tag: (hash >> 64) as u32 }
    }

    /// A slot with the key.
    fn slot(self, column: u32) -> Slot {
        Slot { tag: self.tag, more_tag: self.more_tag, column }
    }
}

/// Most numbers that a table gives.
const LIMIT: usize = (1 << 31) - 1;

/// The numbers of names.
#[derive(Clone, Debug)]
pub struct NameTable {
    slots: Vec<Slot>,
    len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot {
    tag: u64,
    more_tag: u32,
    /// The number of the column and 1, or 0 in an empty slot.
    column: u32,
}

impl NameTable {
    /// A table without names, with room for some.
    pub fn with_capacity(n: usize) -> Self {
        let empty = Slot { tag: 0, more_tag: 0, column: 0 };
        Self { slots: memory::filled(empty, (2 * n).next_power_of_two().max(2)), len: 0 }
    }

    /// The table of some names, numbered in their order.
    ///
    /// # Errors
    /// [`Error::Feature`] for a name that stands twice; [`Error::Shape`] for 2^31 names or more.
    pub fn new(names: &[String]) -> Result<Self> {
        let mut table = Self::with_capacity(names.len());
        for (column, name) in names.iter().enumerate() {
            let (first, is_new) = table.insert(NameKey::of(name))?;
            if !is_new {
                let first = first as usize;
                let reason = if names[first] == *name {
                    format!("is the name of the columns {first} and {column}: pass rows by number instead")
                } else {
                    format!("has the hash of {:?}: pass rows by number instead", names[first])
                };
                return Err(Error::Feature { name: name.clone(), reason });
            }
        }
        Ok(table)
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The number of a name, the next one if it is new, and whether it is.
    ///
    /// # Errors
    /// [`Error::Shape`] for more than 2^31 - 1 names.
    #[inline]
    pub fn insert(&mut self, key: NameKey) -> Result<(u32, bool)> {
        let mut at = self.start(key);
        loop {
            let slot = self.slots[at];
            if slot.column == 0 {
                break;
            }
            if slot == key.slot(slot.column) {
                return Ok((slot.column - 1, false));
            }
            at = self.next(at);
        }
        self.append(at, key)
    }

    /// Enters a new name into the free slot at `at`.
    fn append(&mut self, at: usize, key: NameKey) -> Result<(u32, bool)> {
        if self.len == LIMIT {
            return Err(Error::Shape { what: "names, at most", expected: LIMIT, found: LIMIT + 1 });
        }
        self.len += 1;
        self.slots[at] = key.slot(self.len as u32);
        if 2 * self.len > self.slots.len() {
            self.grow();
        }
        Ok((self.len as u32 - 1, true))
    }

    /// Doubles the number of slots.
    #[cold]
    fn grow(&mut self) {
        let larger = Self::with_capacity(self.slots.len());
        let slots = std::mem::replace(&mut self.slots, larger.slots);
        for slot in slots.into_iter().filter(|slot| slot.column != 0) {
            let mut at = self.start(NameKey { tag: slot.tag, more_tag: slot.more_tag });
            while self.slots[at].column != 0 {
                at = self.next(at);
            }
            self.slots[at] = slot;
        }
    }

    /// Asks for the memory that [`Self::column`] reads.
    #[inline]
    pub fn prefetch(&self, key: NameKey) {
        kernels::prefetch(&self.slots, self.start(key), size_of::<Slot>());
    }

    /// The column of a name, if it has one.
    #[inline]
    pub fn column(&self, key: NameKey) -> Option<u32> {
        let mut at = self.start(key);
        loop {
            let slot = self.slots[at];
            if slot.column == 0 || slot == key.slot(slot.column) {
                return slot.column.checked_sub(1);
            }
            at = self.next(at);
        }
    }

    fn start(&self, key: NameKey) -> usize {
        key.tag as usize & (self.slots.len() - 1)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_are_found_as_in_a_map(
            names in prop::collection::hash_set("[ab]{0,4}", 0..30),
            asked in "[ab]{0,5}",
        ) {
            let names: Vec<String> = names.into_iter().collect();
            let map: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
            let table = NameTable::new(&names).unwrap();
            let column = |name: &str| {
                table.prefetch(NameKey::of(name));
                table.column(NameKey::of(name))
            };
            prop_assert_eq!(column(&asked), map.get(asked.as_str()).copied());
            for name in &names {
                prop_assert_eq!(column(name), map.get(name.as_str()).copied());
            }
        }
    }

    #[test]
    fn a_name_that_stands_twice_is_refused() {
        let names = ["a", "b", "a"].map(String::from);
        let error = NameTable::new(&names).unwrap_err().to_string();
        assert!(error.contains("feature \"a\" is the name of the columns 0 and 2"), "{error}");
    }

    #[test]
    fn a_table_grows_as_a_map_does() {
        let (mut table, mut map) = (NameTable::with_capacity(0), HashMap::new());
        for k in (0..5000_u64).map(|k| k * k % 3001) {
            let next = map.len() as u32;
            let expected = *map.entry(k).or_insert(next);
            let found = table.insert(NameKey::of_bytes(&k.to_le_bytes())).unwrap();
            assert_eq!(found, (expected, expected == next && map.len() as u32 == next + 1));
        }
        assert_eq!(table.len(), map.len());
    }

    #[test]
    fn a_slot_does_not_cross_a_line_of_memory() {
        assert_eq!(size_of::<Slot>(), 16);
    }
}
