//! From the name of a feature to its column.
//!
//! ```text
//!     names  spam ham eggs            slots  . | eggs 2 | . | spam 0 | . | . | ham 1 | .
//! ```
//!
//! An open table of twice as many slots as names. A slot holds 96 bits of the hash of its name and the
//! column, not the name: a look-up reads one line of memory instead of three, and can ask for it ahead
//! ([`NameTable::prefetch`]). That two names of a model share a hash of 128 bits is found when the table is
//! made. That an unknown name has the hash of a known one takes as many names as nobody has (of 2^30 known
//! ones, it happens once in 2^60 unknown ones).

use twox_hash::XxHash3_128;

use crate::matrix::kernels;
use crate::{Error, Result, memory};

/// What a name is looked up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NameKey(u128);

impl NameKey {
    /// The key of a name.
    pub fn of(name: &str) -> Self {
        Self(XxHash3_128::oneshot(name.as_bytes()))
    }

    /// The part that chooses the slot.
    fn place(self) -> usize {
        self.0 as u32 as usize
    }

    /// A slot with the rest.
    fn slot(self, column: u32) -> Slot {
        Slot { tag: (self.0 >> 64) as u64, more_tag: (self.0 >> 32) as u32, column }
    }
}

/// The columns of names.
#[derive(Debug)]
pub struct NameTable {
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Slot {
    tag: u64,
    more_tag: u32,
    /// The number of the column and 1, or 0 in an empty slot.
    column: u32,
}

impl NameTable {
    /// The table of some names.
    ///
    /// # Errors
    /// [`Error::Feature`] for a name that stands twice; [`Error::Shape`] for 2^31 names or more.
    pub fn new(names: &[String]) -> Result<Self> {
        let limit = (1 << 31) - 1;
        if names.len() > limit {
            return Err(Error::Shape {
                what: "names of features, at most",
                expected: limit,
                found: names.len(),
            });
        }
        let empty = Slot { tag: 0, more_tag: 0, column: 0 };
        let mut table = Self { slots: memory::filled(empty, (2 * names.len()).next_power_of_two().max(2)) };
        for (column, name) in names.iter().enumerate() {
            let key = NameKey::of(name);
            if let Some(first) = table.column(key) {
                let reason = if names[first as usize] == *name {
                    format!("is the name of the columns {first} and {column}: pass rows by number instead")
                } else {
                    format!("has the hash of {:?}: pass rows by number instead", names[first as usize])
                };
                return Err(Error::Feature { name: name.clone(), reason });
            }
            let mut at = table.start(key);
            while table.slots[at].column != 0 {
                at = table.next(at);
            }
            table.slots[at] = key.slot(column as u32 + 1);
        }
        Ok(table)
    }

    /// Asks for the memory that [`Self::column`] reads.
    pub fn prefetch(&self, key: NameKey) {
        kernels::prefetch(&self.slots, self.start(key), size_of::<Slot>());
    }

    /// The column of a name, if it has one.
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
        key.place() & (self.slots.len() - 1)
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
    fn a_slot_does_not_cross_a_line_of_memory() {
        assert_eq!(size_of::<Slot>(), 16);
    }
}
