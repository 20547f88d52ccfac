//! Binding of [`crate::pairs`].

use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{PyMatrix, collected};
use super::run::run;
use crate::fit::Monitor;
use crate::fit::sweep::Sweep;
use crate::front::{Checked, MapSpec};
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::memory::CollectLarge;
use crate::model::rows::RisingRows;
use crate::pairs::Poly2;
use crate::pairs::map::Map;
use crate::{Error, Result, memory};

/// A degree-2 map, as a dict. `gamma` is None for the plain products.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct MapOptions {
    gamma: Option<f64>,
    coef0: f64,
    has_constant: bool,
    bits: u32,
    seed: u64,
}

impl MapOptions {
    /// The options of a map.
    pub fn of(spec: MapSpec) -> Self {
        let MapSpec { gamma, coef0, has_constant, bits, seed } = spec;
        Self { gamma, coef0, has_constant, bits, seed }
    }

    /// The dict that these options came from.
    pub fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("gamma", self.gamma)?;
        dict.set_item("coef0", self.coef0)?;
        dict.set_item("has_constant", self.has_constant)?;
        dict.set_item("bits", self.bits)?;
        dict.set_item("seed", self.seed)?;
        Ok(dict)
    }

    /// The map for any number of features.
    pub fn spec(&self) -> MapSpec {
        let Self { gamma, coef0, has_constant, bits, seed } = *self;
        MapSpec { gamma, coef0, has_constant, bits, seed }
    }

    /// The map of `n` features.
    pub fn map(&self, n: usize) -> Result<Map> {
        self.spec().map(n)
    }
}

/// Number of weights, and whether each pair has one for itself, of a map of `n` features.
#[pyfunction]
pub fn map_shape(n: usize, map: MapOptions) -> PyResult<(usize, bool)> {
    let map = map.map(n)?;
    Ok((map.n_out(), map.is_exact()))
}

/// Positions and factors.
type Positions<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

/// Position and factor of the product of each pair of columns `(first, second)`.
#[pyfunction]
pub fn map_positions<'py>(
    py: Python<'py>,
    n: usize,
    map: MapOptions,
    first: PyReadonlyArray1<'py, i64>,
    second: PyReadonlyArray1<'py, i64>,
) -> PyResult<Positions<'py>> {
    let map = map.map(n)?;
    let (first, second) = (first.as_slice()?, second.as_slice()?);
    if first.len() != second.len() {
        return Err(Error::Shape {
            what: "second columns of the pairs",
            expected: first.len(),
            found: second.len(),
        }
        .into());
    }
    let column = |j: i64| {
        let rule = "a column number of X";
        let known = usize::try_from(j).ok().filter(|&j| j < n);
        known.ok_or_else(|| Error::Parameter { name: "pairs", value: j.to_string(), rule })
    };
    let positions = first.iter().zip(second).map(|(&j, &k)| {
        let (j, k) = (column(j)?, column(k)?);
        Ok::<_, Error>(map.position(j.min(k), j.max(k)))
    });
    let positions: Vec<(usize, f64)> = memory::catch(|| positions.try_collect_large())?;
    Ok((collected(py, positions.iter().map(|p| p.0 as i64))?, collected(py, positions.iter().map(|p| p.1))?))
}

/// `phi(x_i) . w` for each row of X, its columns in any order, and each row of `weights`.
#[pyfunction]
pub fn map_decisions<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    map: MapOptions,
    weights: PyReadonlyArray2<'py, f64>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let slices = matrix.slices()?;
    let weights = weights.as_array();
    let values = run(py, n_threads, None, |monitor| {
        let checked = slices.checked()?;
        let rising = RisingRows::of(&checked.rows);
        let Checked { rows, structure } = rising.as_ref().map_or(Ok(checked), RisingRows::checked)?;
        structure.check_solvable()?;
        let map = map.map(rows.n_cols())?;
        let poly = Poly2::new(rows, &map)?;
        let rows = poly.into();
        let sweep: Sweep<'_> = Sweep::new(Design { rows: &rows, ids: None, bias: 0.0 }, monitor);
        let (n, k) = (poly.n_rows(), weights.nrows());
        let mut values = memory::zeros(n * k);
        let mut column = memory::zeros::<[f64; 1]>(n);
        for (c, w) in weights.rows().into_iter().enumerate() {
            let w: Vec<f64> = w.iter().copied().collect_large();
            if w.len() != map.n_out() {
                return Err(Error::Shape {
                    what: "weights of the map",
                    expected: map.n_out(),
                    found: w.len(),
                });
            }
            sweep.decisions(w.as_chunks().0, &mut column);
            monitor.poll()?;
            column.iter().enumerate().for_each(|(i, [v])| values[i * k + c] = *v);
        }
        Ok(values)
    })?;
    let k = weights.nrows();
    values.into_pyarray(py).reshape([slices_len(&matrix)?, k])
}

fn slices_len(matrix: &PyMatrix<'_>) -> PyResult<usize> {
    Ok(matrix.slices()?.n_rows())
}

/// Row pointers, columns and values.
type CsrArrays<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>);

/// The mapped rows, written out: row pointers, columns (twice in a row where hashed pairs collide), values.
#[pyfunction]
pub fn map_rows<'py>(py: Python<'py>, matrix: PyMatrix<'py>, map: MapOptions) -> PyResult<CsrArrays<'py>> {
    let slices = matrix.slices()?;
    let (indptr, indices, values) = run(py, 1, None, |monitor| {
        let Checked { rows, structure } = slices.checked()?;
        structure.check_solvable()?;
        let map = map.map(rows.n_cols())?;
        let poly = Poly2::new(rows, &map)?;
        let total: usize = (0..poly.n_rows()).map(|i| poly.row_len(i)).sum();
        let mut indptr = memory::with_capacity(poly.n_rows() + 1);
        indptr.push(0i64);
        let (mut indices, mut values) = (memory::with_capacity(total), memory::with_capacity(total));
        for i in 0..poly.n_rows() {
            if i % 1024 == 0 {
                monitor.poll()?;
            }
            poly.for_each(i, |j, v| {
                indices.push(j as i64);
                values.push(v);
            });
            indptr.push(indices.len() as i64);
        }
        Ok((indptr, indices, values))
    })?;
    Ok((indptr.into_pyarray(py), indices.into_pyarray(py), values.into_pyarray(py)))
}

/// Weights of products, those in use, different products in X (estimated where hashed), share of these
/// without a weight of their own.
#[pyfunction]
pub fn map_usage(
    py: Python<'_>,
    matrix: PyMatrix<'_>,
    map: MapOptions,
    n_threads: usize,
) -> PyResult<(usize, usize, f64, f64)> {
    let slices = matrix.slices()?;
    run(py, n_threads, None, |monitor| {
        let Checked { rows, structure } = slices.checked()?;
        structure.check_solvable()?;
        let map = map.map(rows.n_cols())?;
        let usage = Poly2::new(rows, &map)?.usage(&|| monitor.cancelled())?;
        Ok((usage.weights, usage.used, usage.pairs, usage.collision_rate))
    })
}
