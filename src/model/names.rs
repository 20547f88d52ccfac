//! From the name of a feature to its column.
//!
//! ```text
//!     names  spam ham eggs            slots  . | eggs 2 | . | spam 0 | . | . | ham 1 | .
//! ```
//!
//! An open table of twice as many slots as names, each with half of the hash of its name and its column: a look-up
//! reads one line of the table and compares one name.

use twox_hash::XxHash3_64;

use crate::memory;
use crate::{Error, Result};

/// The columns of names; the names themselves stay with the model.
#[derive(Debug)]
pub struct NameTable {
    /// Number of the column and 1, or 0 where there is none; and half of the hash.
    slots: Vec<(u32, u32)>,
}

impl NameTable {
    /// The table of some names.
    ///
    /// # Errors
    /// [`Error::Feature`] for a name that stands twice; [`Error::Shape`] for 2^31 names or more.
    pub fn new(names: &[String]) -> Result<Self> {
        if names.len() >= 1 << 31 {
            return Err(Error::Shape {
                what: "names of features",
                expected: (1 << 31) - 1,
                found: names.len(),
            });
        }
        let mut table = Self { slots: memory::filled((0, 0), (2 * names.len()).next_power_of_two().max(2)) };
        for (column, name) in names.iter().enumerate() {
            let hash = hashed(name);
            if let Some(first) = table.found(hash, name, names) {
                let reason =
                    format!("is the name of the columns {first} and {column}: pass rows by number instead");
                return Err(Error::Feature { name: name.clone(), reason });
            }
            let mut at = table.start(hash);
            while table.slots[at].0 != 0 {
                at = table.next(at);
            }
            table.slots[at] = (column as u32 + 1, half(hash));
        }
        Ok(table)
    }

    /// The column of a name, if it has one.
    pub fn column(&self, name: &str, names: &[String]) -> Option<u32> {
        self.found(hashed(name), name, names)
    }

    fn found(&self, hash: u64, name: &str, names: &[String]) -> Option<u32> {
        let mut at = self.start(hash);
        loop {
            match self.slots[at] {
                (0, _) => return None,
                (column, tag) if tag == half(hash) && names[column as usize - 1] == name => {
                    return Some(column - 1);
                }
                _ => at = self.next(at),
            }
        }
    }

    fn start(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn next(&self, at: usize) -> usize {
        (at + 1) & (self.slots.len() - 1)
    }
}

fn hashed(name: &str) -> u64 {
    XxHash3_64::oneshot(name.as_bytes())
}

/// The half that does not choose the slot.
fn half(hash: u64) -> u32 {
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn names_are_found_as_in_a_map(names in prop::collection::hash_set("[ab]{0,4}", 0..30), asked in "[ab]{0,5}") {
            let names: Vec<String> = names.into_iter().collect();
            let map: HashMap<&str, u32> = names.iter().map(String::as_str).zip(0..).collect();
            let table = NameTable::new(&names).unwrap();
            prop_assert_eq!(table.column(&asked, &names), map.get(asked.as_str()).copied());
            for name in &names {
                prop_assert_eq!(table.column(name, &names), map.get(name.as_str()).copied());
            }
        }
    }

    #[test]
    fn a_name_that_stands_twice_is_refused() {
        let names = ["a", "b", "a"].map(String::from);
        let error = NameTable::new(&names).unwrap_err().to_string();
        assert!(error.contains("feature \"a\" is the name of the columns 0 and 2"), "{error}");
    }
}
