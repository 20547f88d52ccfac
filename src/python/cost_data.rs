//! What every query of a path in two costs works on.

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use super::arrays::{PyMatrix, Slices};
use crate::Result;
use crate::cost_plane::answer::Data;
use crate::fit::check_length;
use crate::front::Checked;
use crate::matrix::{Matrix, Rows};

/// Rows, labels in {-1, +1} and the height of the constant column (0 for none): `CostProblem.native` of
/// Python.
#[derive(FromPyObject)]
pub struct CostData<'py>(PyMatrix<'py>, PyReadonlyArray1<'py, f64>, f64);

impl CostData<'_> {
    /// The arrays, borrowed.
    pub fn slices(&self) -> PyResult<CostSlices<'_>> {
        Ok(CostSlices { rows: self.0.slices()?, y: self.1.as_slice()?, bias: self.2 })
    }
}

/// The arrays of a [`CostData`].
#[derive(Clone, Copy)]
pub struct CostSlices<'a> {
    rows: Slices<'a>,
    y: &'a [f64],
    bias: f64,
}

impl CostSlices<'_> {
    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.y.len()
    }

    /// Calls `job` with the data, once they are checked.
    pub fn with<T>(&self, perturbation: &[f64], job: impl FnOnce(&Data<'_>) -> Result<T>) -> Result<T> {
        let Checked { rows, structure } = self.rows.checked()?;
        let rows = Matrix::from(rows);
        structure.check_solvable()?;
        check_length("labels", rows.n_rows(), self.y.len())?;
        job(&Data { rows: &rows, y: self.y, bias: self.bias, perturbation })
    }
}
