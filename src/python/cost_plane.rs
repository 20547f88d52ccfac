//! Binding of [`crate::cost_plane`]: the explored plane as an object, answers at points, walks along lines.
//!
//! One compiled copy serves all layouts ([`crate::matrix::any`]): a step reads whole rows, of which the
//! branch is a small part.

use std::borrow::Cow;
use std::sync::OnceLock;

use numpy::ndarray::ArrayView1;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, ToPyArray};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{PyMatrix, collected, copied, table};
use super::cost_data::{CostData, CostSlices};
use super::run::{run, run_keeping};
use crate::cost_plane::answer::{Answer, answer};
use crate::cost_plane::complex::{Complex, ConsistencyReport, ExplorationEnd};
use crate::cost_plane::explore::Effort;
use crate::cost_plane::keys::{Event, Side};
use crate::cost_plane::locate::BoundingBoxTree;
use crate::cost_plane::start::sides_at;
use crate::cost_plane::surface::{Cells, ErrorSurface};
use crate::cost_plane::{ExplorationOptions, surface};
use crate::fit::{Monitor, check_length};
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::{cost_plane, memory, parallel};

/// Distance outside of a facet that is rounding, relative to the coordinates.
const SLACK: f64 = 1e-9;

/// An explored plane: facets and the tree that finds them.
#[pyclass(frozen, module = "hinge._native")]
pub struct Plane {
    complex: Complex,
    perturbation: Vec<f64>,
    /// Built when the first point is located.
    index: OnceLock<BoundingBoxTree>,
}

pub(super) fn points_array<'py>(py: Python<'py>, vertices: &[[f64; 3]]) -> PyResult<Bound<'py, PyAny>> {
    Ok(copied(py, vertices.as_flattened())?.reshape([vertices.len(), 3])?.into_any())
}

pub(super) fn points(array: &PyReadonlyArray2<'_, f64>) -> PyResult<Vec<[f64; 2]>> {
    let view = array.as_array();
    if view.ncols() != 2 {
        return Err(PyValueError::new_err(format!("points have 2 coordinates, got {}", view.ncols())));
    }
    memory::catch(|| Ok(view.rows().into_iter().map(|row| [row[0], row[1]]).collect_large()))
}

/// Explores the plane; returns it with what was found on the way. A KeyboardInterrupt keeps what is explored.
#[pyfunction]
#[pyo3(signature = (data, limit, start, max_regions, seed, n_threads, progress=None))]
#[allow(clippy::too_many_arguments)] // the Python call
pub fn explore_plane<'py>(
    py: Python<'py>,
    data: CostData<'py>,
    limit: [f64; 2],
    start: Option<[f64; 2]>,
    max_regions: usize,
    seed: u64,
    n_threads: usize,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Plane, Bound<'py, PyDict>)> {
    let data = data.slices()?;
    let options = ExplorationOptions { limit, start, max_facets: max_regions, seed };
    let explored = run_keeping(py, n_threads, progress.as_ref(), |monitor| {
        data.with(&[], |data| cost_plane::plane(data.rows, data.y, data.bias, &options, monitor))
    })?;
    let bytes = explored.complex.bytes();
    let found =
        findings(py, explored.complex.end, explored.attempts, &explored.effort, &explored.report, bytes)?;
    Ok((Plane::new(explored.complex, explored.perturbation), found))
}

/// What an exploration found and did.
pub(super) fn findings<'py>(
    py: Python<'py>,
    end: ExplorationEnd,
    attempts: usize,
    effort: &Effort,
    report: &ConsistencyReport,
    bytes: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("end", end_name(end))?;
    found.set_item("attempts", attempts)?;
    found.set_item("moves", effort.moves)?;
    found.set_item("refreshed", effort.refreshed)?;
    found.set_item("refined", effort.refined)?;
    found.set_item("n_edges", report.edges)?;
    found.set_item("area", report.area)?;
    found.set_item("n_unbounded", report.unbounded)?;
    found.set_item("n_unmatched", report.unmatched)?;
    found.set_item("n_inverted", report.inverted)?;
    found.set_item("empty", copied(py, &report.empty)?)?;
    found.set_item("special", copied(py, &report.special)?)?;
    found.set_item("bytes", bytes)?;
    Ok(found)
}

fn end_name(end: ExplorationEnd) -> &'static str {
    match end {
        ExplorationEnd::Complete => "complete",
        ExplorationEnd::Limit => "max_regions",
        ExplorationEnd::Interrupted => "interrupt",
        ExplorationEnd::Inconsistent => "inconsistent",
    }
}

fn end_of(name: &str) -> PyResult<ExplorationEnd> {
    match name {
        "complete" => Ok(ExplorationEnd::Complete),
        "max_regions" => Ok(ExplorationEnd::Limit),
        "interrupt" => Ok(ExplorationEnd::Interrupted),
        "inconsistent" => Ok(ExplorationEnd::Inconsistent),
        _ => Err(PyValueError::new_err(format!("unknown end {name:?}"))),
    }
}

#[pymethods]
impl Plane {
    /// One array of the plane, a copy.
    fn array<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let c = &self.complex;
        Ok(match name {
            "limit" => c.limit.to_pyarray(py).into_any(),
            "start" => copied(py, &c.start)?.into_any(),
            "parent" => copied(py, &c.parent)?.into_any(),
            "entry" => numbers(py, &c.entry)?,
            "layers" => copied(py, &c.layers)?.into_any(),
            "first" => copied(py, &c.first)?.into_any(),
            "events" => numbers(py, &c.events)?,
            "beyond" => copied(py, &c.beyond)?.into_any(),
            "corner" => copied(py, &c.corner)?.into_any(),
            "vertices" => points_array(py, &c.vertices)?,
            "perturbation" => copied(py, &self.perturbation)?.into_any(),
            _ => return Err(PyValueError::new_err(format!("no array {name:?}"))),
        })
    }

    /// How the exploration ended.
    #[getter]
    fn end(&self) -> &'static str {
        end_name(self.complex.end)
    }

    /// Number of facets.
    fn __len__(&self) -> usize {
        self.complex.len()
    }

    /// The plane of such arrays; refuses arrays that contradict each other.
    #[staticmethod]
    fn from_arrays(arrays: &Bound<'_, PyDict>) -> PyResult<Self> {
        fn list<T: numpy::Element + Clone>(arrays: &Bound<'_, PyDict>, name: &str) -> PyResult<Vec<T>> {
            let missing = || PyValueError::new_err(format!("array {name:?} is missing or of another type"));
            let item = arrays.get_item(name)?.ok_or_else(missing)?;
            let array: PyReadonlyArray1<'_, T> = item.extract().map_err(|_| missing())?;
            memory::catch(|| Ok(memory::copy(array.as_slice()?)))
        }
        let limit: Vec<f64> = list(arrays, "limit")?;
        let vertices: Vec<f64> = list(arrays, "vertices")?;
        let end: String =
            arrays.get_item("end")?.ok_or_else(|| PyValueError::new_err("\"end\" is missing"))?.extract()?;
        let perturbation: Vec<f64> = list(arrays, "perturbation")?;
        if limit.len() != 2 || !vertices.len().is_multiple_of(3) {
            return Err(PyValueError::new_err("arrays of a plane have the wrong length"));
        }
        let complex = Complex {
            n_rows: perturbation.len(),
            limit: [limit[0], limit[1]],
            start: list(arrays, "start")?,
            parent: list(arrays, "parent")?,
            entry: list::<u32>(arrays, "entry")?.into_iter().map(Event).collect::<Vec<_>>(),
            layers: list(arrays, "layers")?,
            first: list(arrays, "first")?,
            events: list::<u32>(arrays, "events")?.into_iter().map(Event).collect::<Vec<_>>(),
            beyond: list(arrays, "beyond")?,
            corner: list(arrays, "corner")?,
            vertices: memory::catch(|| Ok::<_, PyErr>(memory::copy(vertices.as_chunks().0)))?,
            end: end_of(&end)?,
        };
        if let Some(reason) = complex.fault() {
            return Err(PyValueError::new_err(format!("arrays do not describe a plane: {reason}")));
        }
        Ok(Self::new(complex, perturbation))
    }

    /// The facet of each point, -1 outside of the explored part.
    fn locate<'py>(
        &self,
        py: Python<'py>,
        at: PyReadonlyArray2<'py, f64>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let at = points(&at)?;
        self.make_index(py, n_threads)?;
        Ok(collected(py, at.iter().map(|&p| self.facet(p).map_or(-1, |f| f as i64)))?.into_any())
    }

    /// The state of every row in a facet: 0 left, 1 on, 2 right of the margin.
    fn sides<'py>(&self, py: Python<'py>, facet: usize) -> PyResult<Bound<'py, PyAny>> {
        self.check_facet(facet)?;
        memory::catch(|| Ok(codes(py, &self.complex.sides(facet))?.into_any()))
    }

    /// Exact solutions at points of the explored part.
    fn answers<'py>(
        &self,
        py: Python<'py>,
        data: CostData<'py>,
        at: PyReadonlyArray2<'py, f64>,
        n_threads: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (data, at) = (data.slices()?, points(&at)?);
        self.check_rows(data.n_rows())?;
        self.make_index(py, n_threads)?;
        let facet = |&p: &[f64; 2]| self.facet(p).ok_or_else(|| outside(p));
        let facets = memory::catch(|| at.iter().map(facet).try_collect_large())?;
        let sides = |k: usize| Cow::Owned(self.complex.sides(facets[k]));
        let result = answers_at(py, data, &self.perturbation, &at, sides, n_threads)?;
        result.set_item("facet", facets.into_pyarray(py))?;
        Ok(result)
    }

    /// Cells of constant error of held-out rows: (facet, first, corners, false positives, false negatives).
    fn surface<'py>(
        &self,
        py: Python<'py>,
        data: CostData<'py>,
        held: PyMatrix<'py>,
        held_y: PyReadonlyArray1<'py, f64>,
        n_threads: usize,
    ) -> PyResult<Surface> {
        let (data, held, held_y) = (data.slices()?, held.slices()?, held_y.as_slice()?);
        self.check_rows(data.n_rows())?;
        let cells = run(py, n_threads, None, |monitor| {
            let held = Matrix::from(held.checked()?.rows);
            check_length("held-out labels", held.n_rows(), held_y.len())?;
            data.with(&self.perturbation, |data| surface::cells(data, &self.complex, &held, held_y, monitor))
        })?;
        Ok(Surface { cells })
    }

    /// Events on the straight line between two points of the explored part: (t in [0, 1], event code) and the
    /// sets at its beginning.
    fn along<'py>(
        &self,
        py: Python<'py>,
        data: CostData<'py>,
        from_: [f64; 2],
        to: [f64; 2],
        n_threads: usize,
    ) -> PyResult<(Steps<'py>, Bound<'py, PyAny>)> {
        let data = data.slices()?;
        self.check_rows(data.n_rows())?;
        self.make_index(py, n_threads)?;
        let facet = self.facet(from_).ok_or_else(|| outside(from_))?;
        self.facet(to).ok_or_else(|| outside(to))?;
        let sides = memory::catch(|| Ok::<_, PyErr>(self.complex.sides(facet)))?;
        let steps = run(py, 1, None, |monitor| {
            data.with(&self.perturbation, |data| cost_plane::ray(data, &sides, from_, to, monitor))
        })?;
        Ok((steps_arrays(py, &steps)?, codes(py, &sides)?.into_any()))
    }
}

/// The codes of events.
pub(super) fn numbers<'py>(py: Python<'py>, events: &[Event]) -> PyResult<Bound<'py, PyAny>> {
    Ok(collected(py, events.iter().map(|event| event.0))?.into_any())
}

/// The states of rows as Python has them.
pub(super) fn codes<'py>(py: Python<'py>, sides: &[Side]) -> PyResult<Bound<'py, PyArray1<u8>>> {
    collected(py, sides.iter().map(|&side| side as u8))
}

/// The cells of an error surface.
#[pyclass(frozen, module = "hinge._native")]
pub struct Surface {
    cells: Cells,
}

#[pymethods]
impl Surface {
    /// (facet, first, corners, false positives, false negatives).
    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (c, arrays) = (&self.cells, PyDict::new(py));
        arrays.set_item("facet", copied(py, &c.facet)?)?;
        arrays.set_item("first", copied(py, &c.first)?)?;
        arrays.set_item("corners", copied(py, c.corners.as_flattened())?.reshape([c.corners.len(), 2])?)?;
        arrays.set_item("false_positives", copied(py, &c.false_positives)?)?;
        arrays.set_item("false_negatives", copied(py, &c.false_negatives)?)?;
        Ok(arrays)
    }
}

/// Minimum of the sum of several surfaces, each with its costs (false positive, false negative); and up to
/// `max_regions` regions of it.
#[pyfunction]
pub fn surfaces_minimum<'py>(
    py: Python<'py>,
    surfaces: Vec<(PyRef<'py, Surface>, [f64; 2])>,
    max_regions: usize,
) -> PyResult<(f64, Vec<Vec<[f64; 2]>>)> {
    let parts: Vec<(&Cells, [f64; 2])> =
        surfaces.iter().map(|(surface, costs)| (&surface.cells, *costs)).collect();
    let found = run(py, 1, None, |monitor| {
        let layers: Vec<ErrorSurface<'_>> =
            parts.iter().map(|(cells, costs)| ErrorSurface::new(cells, *costs)).collect();
        surface::minimum(&layers, max_regions, monitor)
    })?;
    Ok((found.value, found.regions))
}

/// A certified fit at one pair of costs, from dual variables if given; the dictionary of one answer.
#[pyfunction]
#[pyo3(signature = (data, at, tol, n_threads, start=None))]
pub fn fit_costs<'py>(
    py: Python<'py>,
    data: CostData<'py>,
    at: [f64; 2],
    tol: f64,
    n_threads: usize,
    start: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyDict>> {
    let data = data.slices()?;
    let start =
        memory::catch(|| start.map(|start| PyResult::Ok(memory::copy(start.as_slice()?))).transpose())?;
    let (answer, n_cols) = run(py, n_threads, None, |monitor| {
        data.with(&[], |data| {
            Ok((cost_plane::answer::fit(data, at, tol, start, monitor)?, data.rows.n_cols()))
        })
    })?;
    answers_dict(py, &[answer], n_cols, data.n_rows())
}

/// `t` and event code of each step.
type Steps<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>);

fn steps_arrays<'py>(py: Python<'py>, steps: &[cost_plane::walk::Breakpoint]) -> PyResult<Steps<'py>> {
    let t = collected(py, steps.iter().map(|step| step.t))?;
    Ok((t.into_any(), collected(py, steps.iter().map(|step| step.event.0))?.into_any()))
}

fn outside(p: [f64; 2]) -> PyErr {
    PyValueError::new_err(format!("({}, {}) is outside of the explored part of the plane", p[0], p[1]))
}

impl Plane {
    pub(super) fn new(complex: Complex, perturbation: Vec<f64>) -> Self {
        Self { complex, perturbation, index: OnceLock::new() }
    }

    /// Builds the index with the interpreter released; the rest of a call then finds it.
    fn make_index(&self, py: Python<'_>, n_threads: usize) -> PyResult<()> {
        if self.index.get().is_some() {
            return Ok(());
        }
        run(py, n_threads, None, |_| {
            self.index();
            Ok(())
        })
    }

    fn index(&self) -> &BoundingBoxTree {
        self.index.get_or_init(|| BoundingBoxTree::new(&self.complex))
    }

    fn facet(&self, p: [f64; 2]) -> Option<usize> {
        let is_valid = p.iter().all(|c| *c >= 0.0 && c.is_finite());
        let slack = SLACK * (p[0] + p[1]).max(f64::MIN_POSITIVE);
        if is_valid { self.index().facet(&self.complex, p, slack) } else { None }
    }

    fn check_facet(&self, facet: usize) -> PyResult<()> {
        if facet < self.complex.len() {
            return Ok(());
        }
        Err(PyValueError::new_err(format!("facet must be below {}, got {facet}", self.complex.len())))
    }

    fn check_rows(&self, n: usize) -> PyResult<()> {
        Ok(check_length("rows of the plane", self.perturbation.len(), n)?)
    }
}

/// Walks the line between two pairs of costs: steps, the sets at its begin, and the perturbation.
#[pyfunction]
#[pyo3(signature = (data, begin, to, seed, progress=None))]
pub fn walk_ray<'py>(
    py: Python<'py>,
    data: CostData<'py>,
    begin: [f64; 2],
    to: [f64; 2],
    seed: u64,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<(Steps<'py>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    let data = data.slices()?;
    let perturbation = memory::catch(|| {
        Ok::<_, PyErr>(cost_plane::perturbation(data.n_rows(), cost_plane::RAY_SCALE, seed))
    })?;
    let (sides, steps) = run(py, 1, progress.as_ref(), |monitor| {
        data.with(&perturbation, |data| {
            let sides = sides_at(data, begin, monitor)?;
            let steps = cost_plane::ray(data, &sides, begin, to, monitor)?;
            Ok((sides, steps))
        })
    })?;
    let sides = codes(py, &sides)?.into_any();
    Ok((steps_arrays(py, &steps)?, sides, perturbation.into_pyarray(py).into_any()))
}

/// Exact solutions at points, each from sets of the perturbed problem there (a row of codes per point).
#[pyfunction]
pub fn answers_from<'py>(
    py: Python<'py>,
    data: CostData<'py>,
    perturbation: PyReadonlyArray1<'py, f64>,
    at: PyReadonlyArray2<'py, f64>,
    codes: PyReadonlyArray2<'py, u8>,
    n_threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (data, at) = (data.slices()?, points(&at)?);
    let perturbation = perturbation.as_slice()?;
    check_length("perturbation", data.n_rows(), perturbation.len())?;
    let start = |row: ArrayView1<'_, u8>| row.iter().map(|&code| Side::of(code)).collect_large();
    let starts: Vec<Vec<Side>> =
        memory::catch(|| Ok::<_, PyErr>(codes.as_array().rows().into_iter().map(start).collect()))?;
    check_length("rows of codes", at.len(), starts.len())?;
    for start in &starts {
        check_length("codes of a point", data.n_rows(), start.len())?;
    }
    answers_at(py, data, perturbation, &at, |k| Cow::Borrowed(&starts[k][..]), n_threads)
}

/// Exact solutions at points, from the sets `sides(k)` of the perturbed problem at point `k`; the dictionary
/// of the answers.
fn answers_at<'py, 's>(
    py: Python<'py>,
    data: CostSlices<'_>,
    perturbation: &[f64],
    at: &[[f64; 2]],
    sides: impl Fn(usize) -> Cow<'s, [Side]> + Sync + Send,
    n_threads: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let (answers, n_cols) = run(py, n_threads, None, |monitor| {
        monitor.poll()?;
        data.with(perturbation, |data| {
            let answers = parallel::try_map(at, |k, &p| answer(data, &sides(k), p, monitor))?;
            Ok((answers, data.rows.n_cols()))
        })
    })?;
    answers_dict(py, &answers, n_cols, data.n_rows())
}

fn answers_dict<'py>(
    py: Python<'py>,
    answers: &[Answer],
    n_cols: usize,
    n_rows: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let column = |f: fn(&Answer) -> f64| answers.iter().map(f).collect::<Vec<_>>().into_pyarray(py);
    let result = PyDict::new(py);
    result.set_item("coef", table(py, n_cols, answers.iter().map(|a| &a.w[..]))?)?;
    result.set_item("alpha", table(py, n_rows, answers.iter().map(|a| &a.alpha[..]))?)?;
    result.set_item("intercept", column(|a| a.intercept))?;
    result.set_item("primal", column(|a| a.certificate.primal))?;
    result.set_item("dual", column(|a| a.certificate.dual))?;
    result.set_item("relative_gap", column(|a| a.certificate.relative_gap()))?;
    result.set_item("steps", answers.iter().map(|a| a.steps as u64).collect::<Vec<_>>().into_pyarray(py))?;
    result.set_item("descended", answers.iter().map(|a| a.descended).collect::<Vec<_>>().into_pyarray(py))?;
    Ok(result)
}
