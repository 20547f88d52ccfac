//! A copy of the rows by columns, for methods that change one weight at a time.

use super::design::Design;
use super::rows::Rows;
use crate::memory;

/// The entries of each column, times a factor per row: 12 bytes each.
pub struct Columns {
    starts: Vec<usize>,
    rows: Vec<u32>,
    values: Vec<f64>,
}

impl Columns {
    /// Copies a design matrix, row `i` multiplied by `factor[i]`; rows rise within a column. Two passes over
    /// the data.
    pub fn of<R: Rows>(design: &Design<'_, R>, factor: &[f64]) -> Self {
        let mut starts = memory::zeros(design.n_cols() + 1);
        for i in 0..design.n_rows() {
            design.for_each(i, |j, _| starts[j + 1] += 1);
        }
        for j in 0..design.n_cols() {
            starts[j + 1] += starts[j];
        }
        let nnz = starts[design.n_cols()];
        let (mut at, mut rows, mut values) = (memory::copy(&starts), memory::zeros(nnz), memory::zeros(nnz));
        for i in 0..design.n_rows() {
            design.for_each(i, |j, v| {
                rows[at[j]] = i as u32;
                values[at[j]] = factor[i] * v;
                at[j] += 1;
            });
        }
        Self { starts, rows, values }
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no columns.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row and value of each entry of column `j`.
    #[inline(always)]
    pub fn entries(&self, j: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let range = self.starts[j]..self.starts[j + 1];
        self.rows[range.clone()].iter().zip(&self.values[range]).map(|(&i, &v)| (i as usize, v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::csr::CsrView;

    #[test]
    fn transposes() {
        let (x, _) = CsrView::new(&[0, 2, 2, 4], &[2, 0, 0, 1], &[5.0f64, 1.0, 7.0, 8.0], 4).unwrap();
        let columns = Columns::of(&Design { rows: &x, ids: Some(&[2, 0]), bias: 3.0 }, &[1.0, -1.0]);
        let all: Vec<Vec<(usize, f64)>> = (0..columns.len()).map(|j| columns.entries(j).collect()).collect();
        let expected = vec![
            vec![(0, 7.0), (1, -1.0)],
            vec![(0, 8.0)],
            vec![(1, -5.0)],
            vec![],
            vec![(0, 3.0), (1, -3.0)],
        ];
        assert_eq!(all, expected);
    }
}
