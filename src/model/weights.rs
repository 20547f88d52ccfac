//! Weights as they lie, in memory or in a file that is mapped into it.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::Result;
use crate::labels::inverted_index::InvertedIndex;
use crate::labels::scores::{FloatSlice, ModelWeights};
use crate::matrix::Rows;

/// Numbers that live elsewhere and are proved whole before they are used, such as a part of a mapped file.
pub trait Lender: Debug + Send + Sync {
    /// The numbers.
    fn numbers(&self) -> FloatSlice<'_>;
    /// Makes sure that the numbers of a range are what was written; cheap where that is known already.
    ///
    /// # Errors
    /// Damage.
    fn verify(&self, range: Range<usize>) -> Result<()>;
    /// Whether all numbers are known to be what was written, so that nobody needs to ask.
    fn is_verified(&self) -> bool {
        false
    }
}

/// Numbers of single or double precision.
#[derive(Clone, Debug)]
pub enum Numbers {
    /// Single precision.
    F32(Arc<Vec<f32>>),
    /// Double precision.
    F64(Arc<Vec<f64>>),
    /// Borrowed for as long as the model lives.
    Lent(Arc<dyn Lender>),
}

impl Numbers {
    /// The numbers.
    pub fn slice(&self) -> FloatSlice<'_> {
        match self {
            Self::F32(numbers) => FloatSlice::F32(numbers),
            Self::F64(numbers) => FloatSlice::F64(numbers),
            Self::Lent(lender) => lender.numbers(),
        }
    }

    /// Makes sure that the numbers of a range are what was written.
    ///
    /// # Errors
    /// Damage.
    pub fn verify(&self, range: Range<usize>) -> Result<()> {
        match self {
            Self::Lent(lender) => lender.verify(range),
            _ => Ok(()),
        }
    }

    /// Whether [`Self::verify`] has nothing to do, whatever the range.
    pub fn is_verified(&self) -> bool {
        match self {
            Self::Lent(lender) => lender.is_verified(),
            _ => true,
        }
    }
}

/// Vectors of weights.
#[derive(Debug)]
pub enum WeightVectors {
    /// Vector `l` has the weights `l * n_cols ..` of all columns: a C-ordered `coef_`.
    ByLabel(Numbers),
    /// Column `j` has the weights `j * n_labels ..` of all vectors: a Fortran-ordered `coef_`.
    ByColumn(Numbers),
    /// A CSR matrix with a row per vector; columns rise within a row.
    Sparse {
        /// Where each vector begins, one number more than there are vectors.
        indptr: Vec<i64>,
        /// Columns.
        indices: Vec<i64>,
        /// Values.
        values: Numbers,
        /// Where the entries of each column are.
        index: InvertedIndex,
    },
}

impl WeightVectors {
    /// The numbers, in whatever order.
    pub fn numbers(&self) -> &Numbers {
        match self {
            Self::ByLabel(numbers) | Self::ByColumn(numbers) | Self::Sparse { values: numbers, .. } => {
                numbers
            }
        }
    }

    /// The weights as predictions take them.
    pub fn borrowed(&self) -> ModelWeights<'_> {
        match self {
            Self::ByLabel(numbers) => ModelWeights::ByLabel(numbers.slice()),
            Self::ByColumn(numbers) => ModelWeights::ByColumn(numbers.slice()),
            Self::Sparse { values, index, .. } => {
                ModelWeights::Sparse { index, values: values.slice(), gathered: None }
            }
        }
    }

    /// Makes sure that all weights are what was written.
    ///
    /// # Errors
    /// Damage.
    pub fn verify(&self) -> Result<()> {
        let numbers = self.numbers();
        if numbers.is_verified() { Ok(()) } else { numbers.verify(0..numbers.slice().len()) }
    }

    /// Makes sure that the weights that so many vectors have for the entries of some rows are what was
    /// written.
    ///
    /// # Errors
    /// Damage.
    pub fn verify_for<R: Rows>(&self, rows: &R, n_vectors: usize) -> Result<()> {
        let numbers = self.numbers();
        if numbers.is_verified() {
            return Ok(());
        }
        let (mut damage, n_cols) = (Ok(()), rows.n_cols());
        let mut verify = |range: Range<usize>| {
            if damage.is_ok() {
                damage = numbers.verify(range);
            }
        };
        for i in 0..rows.n_rows() {
            rows.for_each(i, |j, _| match self {
                Self::ByLabel(_) => (0..n_vectors).for_each(|l| verify(l * n_cols + j..l * n_cols + j + 1)),
                Self::ByColumn(_) => verify(j * n_vectors..(j + 1) * n_vectors),
                Self::Sparse { index, .. } => index.column(j).2.iter().for_each(|at| verify(*at..at + 1)),
            });
        }
        damage
    }
}
