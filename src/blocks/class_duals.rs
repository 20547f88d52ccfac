//! Positive dual variables off the rows' own classes in a file, by position, where the budget has no room for
//! them (ChangRoth11, section 5.2): for all classes at once, what [`super::duals`] is for two.
//!
//! The lists of so many successive rows are one piece of the file. A piece that outgrows its room goes to the
//! end, and the file is written anew when half of it is holes. It has no name: it is gone with the process,
//! however that ends; a checkpoint has a copy.
//!
//! A step reads the pieces of the rows in memory before and after its epochs, and writes those that have
//! changed; the choice of the cache may read them once more. Cached rows come from all pieces, so each time
//! it is the whole file at most, some 50 bytes a row: as much as a reading of 25 entries.

use std::path::Path;

use crate::durable::nameless::NamelessFile;
use crate::fit::crammer_singer::rows::{Entry, Lists};
use crate::memory::CollectLarge;
use crate::{Result, memory};

/// Rows of a piece.
pub const PIECE: usize = 1 << 12;
/// Bytes of a variable in the file: class and value.
const ENTRY_BYTES: usize = 4 + 8;
/// Holes of a file that may stay whatever its size.
const FEW_HOLES: u64 = 1 << 20;

/// Where a piece is.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: u64,
    len: usize,
    room: usize,
}

/// The file.
pub struct ClassDualFile {
    file: NamelessFile,
    places: Vec<Place>,
    n_rows: usize,
    n_entries: usize,
    end: u64,
    holes: u64,
}

impl ClassDualFile {
    /// A file of so many empty lists in a folder.
    ///
    /// # Errors
    /// [`crate::Error::Io`], which names the folder.
    pub fn empty(folder: &Path, n_rows: usize) -> Result<Self> {
        let file = NamelessFile::empty(folder)?;
        let places = vec![Place::default(); n_rows.div_ceil(PIECE)];
        Ok(Self { file, places, n_rows, n_entries: 0, end: 0, holes: 0 })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of variables in all lists.
    pub fn n_entries(&self) -> usize {
        self.n_entries
    }

    /// Number of pieces.
    pub fn n_pieces(&self) -> usize {
        self.places.len()
    }

    /// The lists of the rows of a piece.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn piece(&self, piece: usize) -> Result<Lists> {
        let n_rows = PIECE.min(self.n_rows - piece * PIECE);
        let mut lists = Lists::empty(n_rows);
        let place = self.places[piece];
        if place.len == 0 {
            return Ok(lists);
        }
        let mut bytes = memory::zeros(place.len);
        self.file.read(&mut bytes, place.start)?;
        let (lens, entries) = bytes.split_at(4 * n_rows);
        let mut entries = entries.as_chunks::<ENTRY_BYTES>().0;
        let mut list = Vec::new();
        for (k, len) in lens.as_chunks().0.iter().enumerate() {
            let own;
            (own, entries) = entries.split_at(u32::from_le_bytes(*len) as usize);
            list.clear();
            list.extend(own.iter().map(decode));
            lists.set(k, &list);
        }
        Ok(lists)
    }

    /// Sets the lists of the rows of a piece.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn set_piece(&mut self, piece: usize, lists: &Lists) -> Result<()> {
        let lens = (0..lists.n_rows()).flat_map(|k| (lists.get(k).len() as u32).to_le_bytes());
        let entries = (0..lists.n_rows()).flat_map(|k| lists.get(k)).flat_map(encode);
        let bytes: Vec<u8> = lens.chain(entries).collect_large();
        let n_entries = |len: usize| len.saturating_sub(4 * lists.n_rows()) / ENTRY_BYTES;
        let mut place = self.places[piece];
        self.n_entries = self.n_entries + n_entries(bytes.len()) - n_entries(place.len);
        if bytes.len() > place.room {
            self.holes += place.room as u64;
            // It is likely to grow once more.
            place = Place { start: self.end, len: 0, room: bytes.len() + bytes.len() / 4 };
            self.end += place.room as u64;
        }
        place.len = bytes.len();
        self.file.write(&bytes, place.start)?;
        self.places[piece] = place;
        self.pack()
    }

    /// Writes the file anew where half of it is holes.
    fn pack(&mut self) -> Result<()> {
        if 2 * self.holes <= self.end || self.holes <= FEW_HOLES {
            return Ok(());
        }
        let mut packed = Self::empty(self.file.folder(), self.n_rows)?;
        for piece in 0..self.places.len() {
            packed.set_piece(piece, &self.piece(piece)?)?;
        }
        *self = packed;
        Ok(())
    }

    /// The lists of chosen rows, `positions[k]` at `k`; `order` visits these by rising position.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn gather(&self, positions: &[u32], order: impl Iterator<Item = usize>) -> Result<Lists> {
        let mut lists = Lists::empty(positions.len());
        let mut open: Option<(usize, Lists)> = None;
        for k in order {
            let (piece, row) = (positions[k] as usize / PIECE, positions[k] as usize % PIECE);
            let here = match open.take() {
                Some((number, here)) if number == piece => here,
                _ => self.piece(piece)?,
            };
            lists.set(k, here.get(row));
            open = Some((piece, here));
        }
        Ok(lists)
    }

    /// All lists, the rest of each row's cost on its own class.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn completed(&self, classes: &[u32], cost: &[f64]) -> Result<Lists> {
        let (mut here, mut failure) = (Lists::empty(PIECE), None);
        let lists = Lists::completed(1.0, classes, cost, false, |i, list| {
            if i % PIECE == 0 && failure.is_none() {
                match self.piece(i / PIECE) {
                    Ok(piece) => here = piece,
                    Err(error) => (here, failure) = (Lists::empty(PIECE), Some(error)),
                }
            }
            list.extend_from_slice(here.get(i % PIECE));
        });
        failure.map_or(Ok(lists), Err)
    }

    /// Changes the lists of rows of rising positions: `set(k, lists, row)` may set the list of the `k`-th of
    /// them, which is `row` of `lists`, and says whether it has. Whether any was set.
    ///
    /// # Errors
    /// [`crate::Error::Io`]; some are then set.
    pub fn update(
        &mut self,
        positions: &[u32],
        mut set: impl FnMut(usize, &mut Lists, usize) -> bool,
    ) -> Result<bool> {
        let (mut k, mut has_changed) = (0, false);
        for run in positions.chunk_by(|a, b| *a as usize / PIECE == *b as usize / PIECE) {
            let piece = run[0] as usize / PIECE;
            let mut lists = self.piece(piece)?;
            let mut is_new = false;
            for position in run {
                is_new |= set(k, &mut lists, *position as usize % PIECE);
                k += 1;
            }
            if is_new {
                self.set_piece(piece, &lists)?;
            }
            has_changed |= is_new;
        }
        Ok(has_changed)
    }
}

fn encode(entry: &Entry) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    bytes[..4].copy_from_slice(&entry.class.to_le_bytes());
    bytes[4..].copy_from_slice(&entry.u.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; ENTRY_BYTES]) -> Entry {
    let (class, u) = bytes.split_first_chunk().expect("longer than a class");
    Entry { u: f64::from_le_bytes(u.try_into().expect("eight bytes")), class: u32::from_le_bytes(*class) }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::Error;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Against lists in memory, rows of several pieces, lists that grow and shrink.
        #[test]
        fn keeps_what_lists_would(
            sets in prop::collection::vec(
                (prop::collection::btree_set(0..2 * PIECE as u32 + 9, 1..300), 0usize..40), 1..12),
        ) {
            let n = 2 * PIECE + 9;
            let mut file = ClassDualFile::empty(&std::env::temp_dir(), n).unwrap();
            let mut plain: Vec<Vec<Entry>> = vec![Vec::new(); n];
            for (step, (positions, len)) in sets.iter().enumerate() {
                let positions: BTreeSet<u32> = positions.iter().copied().chain([n as u32 - 1]).collect();
                let positions: Vec<u32> = positions.into_iter().collect();
                let list = |k: usize| -> Vec<Entry> {
                    let entry = |class| Entry { u: (step * 1000 + k) as f64, class };
                    (0..((len + k) % 40) as u32).map(entry).collect()
                };
                let set = |k: usize, lists: &mut Lists, row: usize| {
                    assert_eq!(lists.get(row), plain[positions[k] as usize]);
                    lists.set(row, &list(k));
                    true
                };
                prop_assert!(file.update(&positions, set).unwrap());
                positions.iter().enumerate().for_each(|(k, &position)| plain[position as usize] = list(k));
                // In any order of the rows.
                let turned: Vec<u32> = positions.iter().rev().copied().collect();
                let found = file.gather(&turned, (0..turned.len()).rev()).unwrap();
                for (k, &position) in turned.iter().enumerate() {
                    prop_assert_eq!(found.get(k), &plain[position as usize][..]);
                }
            }
            prop_assert_eq!(file.n_entries(), plain.iter().map(Vec::len).sum::<usize>());
            let unchanged = file.update(&[0, 7], |_, _, _| false);
            prop_assert!(!unchanged.unwrap());
        }
    }

    #[test]
    fn is_written_anew_when_half_of_it_is_holes() {
        let n = 3 * PIECE;
        let mut file = ClassDualFile::empty(&std::env::temp_dir(), n).unwrap();
        let list = |len: u32| -> Vec<Entry> { (0..len).map(|class| Entry { u: 0.5, class }).collect() };
        let mut packed = 0;
        for len in 1..60 {
            for piece in 0..3 {
                let mut lists = Lists::empty(PIECE);
                (0..PIECE).for_each(|k| lists.set(k, &list(len)));
                let before = file.end;
                file.set_piece(piece, &lists).unwrap();
                packed += u32::from(file.end < before);
            }
            assert!(file.holes <= FEW_HOLES.max(file.end / 2));
        }
        assert!(packed > 0);
        assert!((0..3).all(|piece| file.piece(piece).unwrap().get(17) == list(59)));
        assert_eq!(file.n_entries(), 59 * n);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let Err(Error::Io { path, .. }) = ClassDualFile::empty(Path::new("no/such/folder"), 1) else {
            panic!("no error")
        };
        assert_eq!(path, Path::new("no/such/folder"));
    }
}
