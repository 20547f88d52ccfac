//! Binding of [`crate::cost_plane::file`] and of the estimate of a plane's size.

use std::path::{Path, PathBuf};

use numpy::{PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use super::arrays::copied;
use super::cost_data::CostData;
use super::cost_plane::{Plane, codes, findings, numbers, points, points_array};
use super::run::{run, run_keeping};
use crate::cost_plane::ExplorationOptions;
use crate::cost_plane::file::PlaneFile;
use crate::cost_plane::start::sides_at;
use crate::{Error, cost_plane, memory, parallel};

/// Explores the plane into a file. A KeyboardInterrupt keeps what is explored.
#[pyfunction]
#[pyo3(signature = (data, limit, start, max_regions, seed, n_threads, target, header, progress=None))]
#[allow(clippy::too_many_arguments)] // the Python call
pub fn explore_to_file<'py>(
    py: Python<'py>,
    data: CostData<'py>,
    limit: [f64; 2],
    start: Option<[f64; 2]>,
    max_regions: usize,
    seed: u64,
    n_threads: usize,
    target: PathBuf,
    header: &[u8],
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<()> {
    let data = data.slices()?;
    let options = ExplorationOptions { limit, start, max_facets: max_regions, seed };
    run_keeping(py, n_threads, progress.as_ref(), |monitor| {
        let target = (Path::new(&target), header);
        data.with(&[], |data| {
            cost_plane::plane_to_file(data.rows, data.y, data.bias, &options, target, monitor)
        })
    })
}

/// Estimates the number of facets of a plane.
#[pyfunction]
pub fn estimate_facets<'py>(
    py: Python<'py>,
    data: CostData<'py>,
    limit: [f64; 2],
    seed: u64,
) -> PyResult<f64> {
    let data = data.slices()?;
    run(py, 1, None, |monitor| {
        data.with(&[], |data| {
            cost_plane::estimate::estimate(data.rows, data.y, data.bias, limit, seed, monitor)
        })
    })
}

/// The sets of the perturbed problem at points, a row of codes per point, each from a certified fit.
#[pyfunction]
#[pyo3(name = "sides_at")]
pub fn sides_at_points<'py>(
    py: Python<'py>,
    data: CostData<'py>,
    perturbation: PyReadonlyArray1<'py, f64>,
    at: PyReadonlyArray2<'py, f64>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyAny>> {
    let (data, at) = (data.slices()?, points(&at)?);
    let perturbation = perturbation.as_slice()?;
    crate::fit::check_length("perturbation", data.n_rows(), perturbation.len())?;
    let sides = run(py, n_threads, None, |monitor| {
        data.with(perturbation, |data| {
            Ok(parallel::try_map(&at, |_, &at| sides_at(data, at, monitor))?.concat())
        })
    })?;
    Ok(codes(py, &sides)?.reshape([at.len(), data.n_rows()])?.into_any())
}

/// A file that [`explore_to_file`] wrote.
#[pyclass(name = "PlaneFile", frozen, module = "hinge._native")]
pub struct PyPlaneFile {
    file: PlaneFile,
}

#[pymethods]
impl PyPlaneFile {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(Self { file: py.detach(|| memory::catch(|| PlaneFile::open(&path)))? })
    }

    /// The bytes that were given to [`explore_to_file`].
    fn header<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.file.header)
    }

    /// Limits of the costs.
    #[getter]
    fn limit(&self) -> [f64; 2] {
        self.file.limit
    }

    /// The perturbation of the margins.
    fn perturbation<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(copied(py, &self.file.perturbation)?.into_any())
    }

    /// Number of layers.
    fn __len__(&self) -> usize {
        self.file.n_layers()
    }

    /// What the exploration found and did.
    fn findings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let f = &self.file;
        let found = findings(py, f.end, f.attempts, &f.effort, &f.report, 0)?;
        found.set_item("n_facets", f.report.facets + f.report.empty.len())?;
        found.set_item("n_vertices", f.report.vertices)?;
        Ok(found)
    }

    /// The arrays of one layer.
    fn layer<'py>(&self, py: Python<'py>, k: usize) -> PyResult<Bound<'py, PyDict>> {
        if k >= self.file.n_layers() {
            return Err(PyValueError::new_err(format!(
                "layer must be below {}, got {k}",
                self.file.n_layers()
            )));
        }
        let layer = py.detach(|| memory::catch(|| self.file.layer(k)))?;
        let arrays = PyDict::new(py);
        arrays.set_item("first_facet", layer.first_facet)?;
        arrays.set_item("first_vertex", layer.first_vertex)?;
        arrays.set_item("parent", copied(py, &layer.parent)?)?;
        arrays.set_item("entry", numbers(py, &layer.entry)?)?;
        arrays.set_item("lengths", copied(py, &layer.lengths)?)?;
        arrays.set_item("events", numbers(py, &layer.events)?)?;
        arrays.set_item("beyond", copied(py, &layer.beyond)?)?;
        arrays.set_item("corner", copied(py, &layer.corner)?)?;
        arrays.set_item("vertices", points_array(py, &layer.vertices)?)?;
        Ok(arrays)
    }

    /// The whole plane in memory, with what was found.
    fn load<'py>(&self, py: Python<'py>) -> PyResult<(Plane, Bound<'py, PyDict>)> {
        let f = &self.file;
        let (complex, perturbation) =
            py.detach(|| memory::catch(|| Ok::<_, Error>((f.load()?, memory::copy(&f.perturbation)))))?;
        let found = findings(py, f.end, f.attempts, &f.effort, &f.report, complex.bytes())?;
        Ok((Plane::new(complex, perturbation), found))
    }
}
