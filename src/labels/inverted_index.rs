//! Where the entries of each column of a CSR matrix of weights lie.
//!
//! A prediction with sparse weights needs them by column of the data, and fits make them by label. Only the
//! order is turned round and kept, the values stay where they are: the index remains right when they are
//! changed in place.
//!
//! ```text
//!     . 5 .      indptr  0 1 3      starts     0 1 2 3
//!     7 . 8      indices 1 | 0 2    labels     1 | 0 | 1
//!                                   positions  1 | 0 | 2
//! ```

use crate::matrix::Index;
use crate::matrix::csr::check_pointers;
use crate::{Error, Result, memory, parallel};

/// Values copied per parallel task.
const CHUNK: usize = 1 << 16;

/// Labels and positions of the entries of each column.
#[derive(Debug, PartialEq)]
pub struct InvertedIndex {
    starts: Vec<usize>,
    labels: Vec<u32>,
    positions: Vec<usize>,
    n_labels: usize,
}

impl InvertedIndex {
    /// Turns a matrix of `n_cols` columns with one row per label round. Two passes over its entries.
    ///
    /// # Errors
    /// [`Error::Labels`] for arrays that do not describe such a matrix.
    pub fn new<I: Index>(indptr: &[i64], indices: &[I], n_cols: usize) -> Result<Self> {
        let broken =
            |reason: String| Error::Labels { reason: format!("coef_ is not a CSR matrix: {reason}") };
        let nnz = check_pointers(indptr, indices.len()).map_err(|error| broken(error.to_string()))?;
        let mut starts = memory::zeros::<usize>(n_cols + 1);
        for j in &indices[..nnz] {
            match j.checked() {
                Some(column) if column < n_cols => starts[column + 1] += 1,
                _ => return Err(broken(format!("column index {j} is outside 0..{n_cols}"))),
            }
        }
        for j in 0..n_cols {
            starts[j + 1] += starts[j];
        }
        let (mut next, mut labels, mut positions) =
            (memory::copy(&starts), memory::zeros(nnz), memory::zeros(nnz));
        for (label, range) in indptr.windows(2).enumerate() {
            for position in range[0] as usize..range[1] as usize {
                let at = &mut next[indices[position].to_usize()];
                (labels[*at], positions[*at]) = (label as u32, position);
                *at += 1;
            }
        }
        Ok(Self { starts, labels, positions, n_labels: indptr.len() - 1 })
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.n_labels
    }

    /// Number of entries.
    pub fn nnz(&self) -> usize {
        self.labels.len()
    }

    /// Where in [`Self::gather`] the entries of column `j` begin, with their labels and their positions in
    /// the matrix.
    #[inline(always)]
    pub fn column(&self, j: usize) -> (usize, &[u32], &[usize]) {
        let range = self.starts[j]..self.starts[j + 1];
        (range.start, &self.labels[range.clone()], &self.positions[range])
    }

    /// The values of the matrix, column after column.
    pub fn gather(&self, value: impl Fn(usize) -> f64 + Sync) -> Vec<f64> {
        let mut out = memory::zeros(self.nnz());
        parallel::each_chunk(&mut out, CHUNK, |start, out| {
            out.iter_mut().zip(&self.positions[start..]).for_each(|(out, position)| *out = value(*position));
        });
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_the_matrix_of_the_module_doc_round() {
        let index = InvertedIndex::new(&[0i64, 1, 3], &[1, 0, 2], 3).unwrap();
        let columns: Vec<_> = (0..3).map(|j| index.column(j)).collect();
        let expected: [(usize, &[u32], &[usize]); 3] = [(0, &[1], &[1]), (1, &[0], &[0]), (2, &[1], &[2])];
        assert_eq!(columns, expected);
        assert_eq!(index.gather(|position| [5.0, 7.0, 8.0][position]), [7.0, 5.0, 8.0]);
        assert_eq!((index.n_cols(), index.n_labels(), index.nnz()), (3, 2, 3));
    }

    #[test]
    fn names_what_is_broken() {
        let error =
            |indptr: &[i64], indices: &[i32]| InvertedIndex::new(indptr, indices, 3).unwrap_err().to_string();
        assert!(error(&[0, 1], &[3]).contains("coef_ is not a CSR matrix: column index 3 is outside 0..3"));
        assert!(error(&[0, 1], &[-1]).contains("column index -1"));
        assert!(error(&[0, 2], &[0]).contains("reaches 2, only 1"));
        assert!(error(&[], &[]).contains("indptr is empty"));
    }
}
