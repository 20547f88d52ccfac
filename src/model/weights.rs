//! Weights as they lie, in memory or in a file that is mapped into it.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use crate::Result;
use crate::labels::inverted_index::InvertedIndex;
use crate::labels::scores::FloatSlice;

/// Numbers that live elsewhere and are proved whole before they are used, such as a part of a mapped file.
pub trait Lender: Debug + Send + Sync {
    /// The numbers.
    fn numbers(&self) -> FloatSlice<'_>;
    /// Makes sure that the numbers of a range are what was written; cheap where that is known already.
    ///
    /// # Errors
    /// Damage.
    fn verify(&self, range: Range<usize>) -> Result<()>;
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
}

/// Vectors of weights.
#[derive(Debug)]
pub enum Weights {
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
