//! Dual variables of one problem in a file, by position, where the budget has no room for them (ChangRoth11,
//! section 5.2).
//!
//! A step reads the variables of the rows in memory and writes them back, both in the order of the
//! positions, so the file is read and written in runs. The file has no name: it is gone with the process,
//! however that ends; a checkpoint has a copy.
//!
//! Deviation: one file of all variables per problem instead of one of the nonzero ones per block. Rows of a
//! block lie together anyway, and cached rows come from all blocks. Those of all classes at once are sparse
//! ([`super::class_duals`]; sizes: `benches/record/changroth11.md`).
//! Tried on paper: their other way, a hash map of the variables that are not 0.
//! How many these are is known only after the fit, so no budget can promise to hold it; with more than a
//! third of the rows it is larger than the list.

use std::ops::Range;
use std::path::Path;

use crate::durable::nameless::NamelessFile;
use crate::memory::CollectLarge;
use crate::{Result, memory};

/// Variables read or written at a time at most.
pub const RUN: usize = 1 << 15;

/// The file.
pub struct DualFile {
    file: NamelessFile,
    len: usize,
}

impl DualFile {
    /// A file of so many zeros in a folder.
    ///
    /// # Errors
    /// [`crate::Error::Io`], which names the folder.
    pub fn zeros(folder: &Path, len: usize) -> Result<Self> {
        let file = NamelessFile::empty(folder)?;
        file.set_len(8 * len as u64)?;
        Ok(Self { file, len })
    }

    /// Number of variables.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The variables of a range of positions.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn read(&self, range: Range<usize>) -> Result<Vec<f64>> {
        let mut bytes = memory::zeros(8 * range.len());
        self.file.read(&mut bytes, 8 * range.start as u64)?;
        Ok(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect_large())
    }

    /// Writes the variables from a position on.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn write(&mut self, start: usize, values: &[f64]) -> Result<()> {
        debug_assert!(start + values.len() <= self.len);
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect_large();
        self.file.write(&bytes, 8 * start as u64)
    }

    /// The variables of rising positions.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn gather(&self, positions: &[u32]) -> Result<Vec<f64>> {
        let mut values = memory::with_capacity(positions.len());
        for run in runs(positions) {
            let (start, end) = ends(run);
            let list = self.read(start..end)?;
            values.extend(run.iter().map(|&position| list[position as usize - start]));
        }
        Ok(values)
    }

    /// Sets the variables of rising positions.
    ///
    /// # Errors
    /// [`crate::Error::Io`]; some are then set.
    pub fn scatter(&mut self, positions: &[u32], mut values: &[f64]) -> Result<()> {
        for run in runs(positions) {
            let (start, end) = ends(run);
            let mut list =
                if run.len() == end - start { memory::zeros(run.len()) } else { self.read(start..end)? };
            let here;
            (here, values) = values.split_at(run.len());
            run.iter().zip(here).for_each(|(&position, &value)| list[position as usize - start] = value);
            self.write(start, &list)?;
        }
        Ok(())
    }
}

/// Rising positions in runs that lie within the same [`RUN`] positions.
fn runs(positions: &[u32]) -> impl Iterator<Item = &[u32]> {
    positions.chunk_by(|a, b| *a as usize / RUN == *b as usize / RUN)
}

fn ends(run: &[u32]) -> (usize, usize) {
    (run[0] as usize, run[run.len() - 1] as usize + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Error;
    use proptest::prelude::*;

    proptest! {
        /// Against a list, with positions from both ends of several runs.
        #[test]
        fn keeps_what_a_list_would(
            sets in prop::collection::vec(prop::collection::btree_set(0..3 * RUN as u32 + 7, 0..200), 1..6),
        ) {
            let n = 3 * RUN + 7;
            let mut file = DualFile::zeros(&std::env::temp_dir(), n).unwrap();
            let mut list = vec![0.0; n];
            for (k, positions) in sets.iter().enumerate() {
                let last = n as u32 - (k as u32 + 1)..n as u32;
                let positions: BTreeSet<u32> = positions.iter().copied().chain(last).collect();
                let positions: Vec<u32> = positions.into_iter().collect();
                let values: Vec<f64> = positions.iter().map(|&i| f64::from(i).sin() + k as f64).collect();
                let expected: Vec<f64> = positions.iter().map(|&p| list[p as usize]).collect();
                prop_assert_eq!(file.gather(&positions).unwrap(), expected);
                file.scatter(&positions, &values).unwrap();
                positions.iter().zip(&values).for_each(|(&position, &value)| list[position as usize] = value);
            }
            prop_assert_eq!(file.read(0..n).unwrap(), list);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let Err(Error::Io { path, .. }) = DualFile::zeros(Path::new("no/such/folder"), 1) else {
            panic!("no error")
        };
        assert_eq!(path, Path::new("no/such/folder"));
    }
}
