//! How often each term occurs, and in how many rows.

use std::mem;

use rayon::prelude::*;

use super::part::sort;
use crate::names::{NameKey, NameTable};
use crate::{Result, memory};

/// Terms with their counts, numbered in the order in which they came.
#[derive(Clone, Debug)]
pub struct TermCounts {
    table: NameTable,
    list: TermList,
    /// How often each term occurs.
    pub occurrences: Vec<i64>,
    /// In how many rows.
    pub rows: Vec<i64>,
    /// Of the row at hand: its terms, and their keys. The slots of all of them are asked for before one
    /// is read.
    row: TermList,
    keys: Vec<NameKey>,
    numbers: Vec<u32>,
    spare: Vec<u32>,
}

/// Strings of bytes, one after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TermList {
    /// All of them.
    pub text: Vec<u8>,
    /// Where each ends.
    pub ends: Vec<i64>,
}

impl TermList {
    /// A term by its number.
    pub fn get(&self, k: usize) -> &[u8] {
        let start = if k == 0 { 0 } else { self.ends[k - 1] as usize };
        &self.text[start..self.ends[k] as usize]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Forgets all terms.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    /// Appends a term.
    pub fn push(&mut self, term: &[u8]) {
        memory::extend_from_slice(&mut self.text, term);
        memory::push(&mut self.ends, self.text.len() as i64);
    }

    /// The table of these terms.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for 2^31 terms or more.
    pub fn table(&self) -> Result<NameTable> {
        let mut table = NameTable::with_capacity(self.len());
        for k in 0..self.len() {
            table.insert(NameKey::of_bytes(self.get(k)))?;
        }
        Ok(table)
    }
}

impl Default for TermCounts {
    /// No terms.
    fn default() -> Self {
        Self {
            table: NameTable::with_capacity(0),
            list: TermList::default(),
            occurrences: vec![],
            rows: vec![],
            row: TermList::default(),
            keys: vec![],
            numbers: vec![],
            spare: vec![],
        }
    }
}

impl TermCounts {
    /// The terms.
    pub fn list(&self) -> &TermList {
        &self.list
    }

    /// Notes that the row at hand has a term.
    #[inline]
    pub fn note(&mut self, term: &[u8]) {
        let key = NameKey::of_bytes(term);
        self.table.prefetch(key);
        memory::push(&mut self.keys, key);
        self.row.push(term);
    }

    /// Counts the terms that were noted.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for 2^31 terms or more.
    pub fn end_row(&mut self) -> Result<()> {
        let (row, keys) = (mem::take(&mut self.row), mem::take(&mut self.keys));
        self.numbers.clear();
        for (k, key) in keys.iter().enumerate() {
            let number = self.number(*key, || row.get(k))?;
            memory::push(&mut self.numbers, number);
        }
        (self.row, self.keys) = (row, keys);
        self.row.clear();
        self.keys.clear();
        sort(&mut self.numbers, &mut self.spare);
        for run in self.numbers.chunk_by(|a, b| a == b) {
            self.occurrences[run[0] as usize] += run.len() as i64;
            self.rows[run[0] as usize] += 1;
        }
        Ok(())
    }

    #[inline]
    fn number<'a>(&mut self, key: NameKey, term: impl FnOnce() -> &'a [u8]) -> Result<u32> {
        let (number, is_new) = self.table.insert(key)?;
        if is_new {
            self.list.push(term());
            memory::push(&mut self.occurrences, 0);
            memory::push(&mut self.rows, 0);
        }
        Ok(number)
    }

    /// Adds the counts of others.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for 2^31 terms or more.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        for k in 0..other.list.len() {
            let term = other.list.get(k);
            let number = self.number(NameKey::of_bytes(term), || term)? as usize;
            self.occurrences[number] += other.occurrences[k];
            self.rows[number] += other.rows[k];
        }
        Ok(())
    }

    /// The numbers of the terms whose rows are within the bounds, sorted by their bytes.
    pub fn sorted(&self, least: f64, most: f64) -> Vec<u32> {
        let mut keyed: Vec<(u128, u32)> = memory::with_capacity(self.list.len());
        for k in 0..self.list.len() {
            if (least..=most).contains(&(self.rows[k] as f64)) {
                keyed.push((beginning(self.list.get(k)), k as u32));
            }
        }
        keyed.par_sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| self.list.get(a.1 as usize).cmp(self.list.get(b.1 as usize)))
        });
        keyed.into_iter().map(|(_, number)| number).collect()
    }
}

/// The first 16 bytes, as a number that sorts as they do.
fn beginning(term: &[u8]) -> u128 {
    let mut bytes = [0; 16];
    let n = term.len().min(16);
    bytes[..n].copy_from_slice(&term[..n]);
    u128::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Rows = Vec<Vec<String>>;

    fn counted(rows: &[Vec<String>]) -> TermCounts {
        let mut counts = TermCounts::default();
        for row in rows {
            row.iter().for_each(|term| counts.note(term.as_bytes()));
            counts.end_row().unwrap();
        }
        counts
    }

    fn rows() -> impl Strategy<Value = Rows> {
        let term = prop_oneof!["[ab]{0,3}", "the same beginning[ab\0]{0,2}"];
        prop::collection::vec(prop::collection::vec(term, 0..9), 0..9)
    }

    proptest! {
        #[test]
        fn counts_are_those_of_a_map(rows in rows(), more in rows()) {
            let mut map: BTreeMap<&[u8], (i64, i64)> = BTreeMap::new();
            for row in rows.iter().chain(&more) {
                let mut seen = std::collections::BTreeSet::new();
                for term in row {
                    let entry = map.entry(term.as_bytes()).or_default();
                    entry.0 += 1;
                    entry.1 += i64::from(seen.insert(term));
                }
            }
            let mut counts = counted(&rows);
            counts.merge(&counted(&more)).unwrap();
            let sorted = counts.sorted(0.0, f64::INFINITY);
            let found: Vec<_> = sorted.iter().map(|k| {
                let k = *k as usize;
                (counts.list().get(k), (counts.occurrences[k], counts.rows[k]))
            }).collect();
            prop_assert_eq!(found, map.clone().into_iter().collect::<Vec<_>>());
            let frequent = counts.sorted(2.0, 3.0).len();
            prop_assert_eq!(frequent, map.values().filter(|(_, rows)| (2..=3).contains(rows)).count());
        }
    }
}
