//! Weights for a file: as they lie, or those that were asked for.

use std::sync::Arc;

use super::Checked;
use crate::labels::scores::FloatSlice;
use crate::matrix::csr::check_pointers;
use crate::memory;
use crate::memory::Zero;
use crate::model::check::Flaw;
use crate::model::weights::{Numbers, WeightVectors};

/// Precision of the weights in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Four bytes a number.
    Single,
    /// Eight bytes a number.
    Double,
}

/// Which weights a file has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// Dense or sparse ones, as the model has them.
    #[default]
    AsIs,
    /// Those that are not 0. Predictions agree with those of dense ones up to rounding.
    Sparse,
    /// All, vector after vector.
    Dense,
}

/// Borrowed weights; see [`WeightVectors`].
#[derive(Clone, Copy)]
pub enum WeightSlices<'a> {
    /// Vector after vector.
    ByLabel(FloatSlice<'a>),
    /// Column after column.
    ByColumn(FloatSlice<'a>),
    /// A CSR matrix.
    Sparse {
        /// Where each vector begins.
        indptr: &'a [i64],
        /// Columns.
        indices: &'a [i64],
        /// Values.
        values: FloatSlice<'a>,
    },
}

impl<'a> WeightSlices<'a> {
    /// The weights of a model.
    pub fn of(weights: &'a WeightVectors) -> Self {
        match weights {
            WeightVectors::ByLabel(w) => Self::ByLabel(w.slice()),
            WeightVectors::ByColumn(w) => Self::ByColumn(w.slice()),
            WeightVectors::Sparse { indptr, indices, values, .. } => {
                Self::Sparse { indptr, indices, values: values.slice() }
            }
        }
    }

    /// Whether these are `m` vectors of `d` weights.
    ///
    /// # Errors
    /// They are not.
    pub fn check(&self, m: usize, d: usize) -> Checked<()> {
        match self {
            Self::ByLabel(w) | Self::ByColumn(w) if m.checked_mul(d) == Some(length(*w)) => Ok(()),
            Self::ByLabel(w) | Self::ByColumn(w) => {
                Err(Flaw::new("coef", format!("{} weights, expected {m} vectors of {d}", length(*w))))
            }
            Self::Sparse { indptr, indices, values } => check_csr(indptr, indices, length(*values), m, d),
        }
    }

    /// The weights of `m` vectors as a file is to have them; `None` where they already lie so.
    pub fn stored(&self, storage: Storage, m: usize, d: usize) -> Option<Stored> {
        match (storage, self) {
            (Storage::AsIs, _)
            | (Storage::Sparse, Self::Sparse { .. })
            | (Storage::Dense, Self::ByLabel(_) | Self::ByColumn(_)) => None,
            (Storage::Sparse, Self::ByLabel(w)) => Some(sparse(*w, m, d, (d, 1))),
            (Storage::Sparse, Self::ByColumn(w)) => Some(sparse(*w, m, d, (1, m))),
            (Storage::Dense, Self::Sparse { indptr, indices, values }) => {
                Some(dense(indptr, indices, *values, m, d))
            }
        }
    }
}

/// Weights that were made for a file.
pub enum Stored {
    /// Vector after vector.
    Dense(Numbers),
    /// A CSR matrix: pointers, columns, values.
    Sparse(Vec<i64>, Vec<i64>, Numbers),
}

impl Stored {
    /// The weights.
    pub fn slices(&self) -> WeightSlices<'_> {
        match self {
            Self::Dense(w) => WeightSlices::ByLabel(w.slice()),
            Self::Sparse(indptr, indices, values) => {
                WeightSlices::Sparse { indptr, indices, values: values.slice() }
            }
        }
    }
}

/// How many numbers there are.
pub fn length(numbers: FloatSlice<'_>) -> usize {
    match numbers {
        FloatSlice::F32(w) => w.len(),
        FloatSlice::F64(w) => w.len(),
    }
}

/// Whether three arrays are a CSR matrix of `m` rows and `d` columns that rise within each row.
///
/// # Errors
/// They are not.
pub fn check_csr(indptr: &[i64], indices: &[i64], n_values: usize, m: usize, d: usize) -> Checked<()> {
    let broken = |field: &str, reason: String| Err(Flaw::new(field, reason));
    if indptr.len() != m + 1 {
        return broken("coef.indptr", format!("{} pointers, expected {}", indptr.len(), m + 1));
    }
    let nnz =
        check_pointers(indptr, indices.len()).map_err(|error| Flaw::new("coef.indptr", error.to_string()))?;
    if nnz != indices.len() || nnz != n_values {
        let found = indices.len();
        return broken(
            "coef.values",
            format!("{n_values} values of {found} columns, the pointers end at {nnz}"),
        );
    }
    for (row, range) in indptr.windows(2).enumerate() {
        let mut least = 0;
        for &column in &indices[range[0] as usize..range[1] as usize] {
            if column < least || column >= d as i64 {
                let rule = format!("columns must rise within a vector, from 0 to {}", d as i64 - 1);
                return broken("coef.indices", format!("column {column} in vector {row}: {rule}"));
            }
            least = column + 1;
        }
    }
    Ok(())
}

/// Those of `m` vectors of `d` weights that are not 0; weight `j` of vector `l` is at
/// `l * step.0 + j * step.1`.
fn sparse(w: FloatSlice<'_>, m: usize, d: usize, step: (usize, usize)) -> Stored {
    fn split<T: Copy + PartialEq + Zero>(
        w: &[T],
        m: usize,
        d: usize,
        step: (usize, usize),
    ) -> (Vec<i64>, Vec<i64>, Vec<T>) {
        let at = |l: usize, j: usize| w[l * step.0 + j * step.1];
        let n_stored = w.iter().filter(|w| **w != T::ZERO).count();
        let mut indptr = memory::with_capacity(m + 1);
        let (mut indices, mut values) = (memory::with_capacity(n_stored), memory::with_capacity(n_stored));
        indptr.push(0);
        for l in 0..m {
            for j in (0..d).filter(|&j| at(l, j) != T::ZERO) {
                indices.push(j as i64);
                values.push(at(l, j));
            }
            indptr.push(indices.len() as i64);
        }
        (indptr, indices, values)
    }
    match w {
        FloatSlice::F32(w) => {
            let (indptr, indices, values) = split(w, m, d, step);
            Stored::Sparse(indptr, indices, Numbers::F32(Arc::new(values)))
        }
        FloatSlice::F64(w) => {
            let (indptr, indices, values) = split(w, m, d, step);
            Stored::Sparse(indptr, indices, Numbers::F64(Arc::new(values)))
        }
    }
}

/// All weights of a CSR matrix that was checked.
fn dense(indptr: &[i64], indices: &[i64], values: FloatSlice<'_>, m: usize, d: usize) -> Stored {
    fn filled<T: Zero>(indptr: &[i64], indices: &[i64], values: &[T], m: usize, d: usize) -> Vec<T> {
        let mut w = memory::zeros(m.saturating_mul(d));
        for (l, range) in indptr.windows(2).enumerate() {
            for k in range[0] as usize..range[1] as usize {
                w[l * d + indices[k] as usize] = values[k];
            }
        }
        w
    }
    Stored::Dense(match values {
        FloatSlice::F32(values) => Numbers::F32(Arc::new(filled(indptr, indices, values, m, d))),
        FloatSlice::F64(values) => Numbers::F64(Arc::new(filled(indptr, indices, values, m, d))),
    })
}
