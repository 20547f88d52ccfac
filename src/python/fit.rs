//! Binding of [`crate::labels::fit`].

use numpy::{IntoPyArray, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{PyMatrix, Slices, table};
use super::options;
use super::options::FitOptions;
use super::pairs::check_mapped;
use super::run::run;
use crate::fit::{Certificate, Intercept, Monitor, Params, Solution, Status, auto};
use crate::labels;
use crate::labels::{Classification, Labels};
use crate::loss::LossKind;
use crate::matrix::Rows;
use crate::matrix::csr::Structure;
use crate::matrix::layout::Layout;
use crate::pairs::Poly2;
use crate::pairs::map::Map;
use crate::presolve::{Presolved, Report, pack};

/// Checks a matrix; returns (some row holds a column twice, largest squared norm of a row).
#[pyfunction]
pub fn check(py: Python<'_>, matrix: PyMatrix<'_>) -> PyResult<(bool, f64)> {
    let slices = matrix.slices()?;
    run(py, 1, None, |_| {
        let (_, structure) = slices.checked()?;
        Ok((structure.has_duplicates, structure.max_squared_norm))
    })
}

/// Fits one binary problem per class (one in all for two classes).
#[pyfunction]
#[pyo3(signature = (matrix, class_ids, n_classes, cost, options, progress=None))]
pub fn fit<'py>(
    py: Python<'py>,
    matrix: PyMatrix<'py>,
    class_ids: PyReadonlyArray1<'py, u32>,
    n_classes: u32,
    cost: PyReadonlyArray1<'py, f64>,
    options: FitOptions,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let labels = Labels { ids: class_ids.as_slice()?, n_classes };
    let cost = cost.as_slice()?;
    let ask = Ask::of(&options)?;
    let slices = matrix.slices()?;
    let (solutions, n_cols, report) = run(py, options.n_threads, progress.as_ref(), |monitor| {
        if let Some(map) = &options.map {
            let rows = slices.checked()?;
            let map = map.map(rows.0.n_cols())?;
            return Ok((fit_mapped(rows, &map, &labels, cost, &ask, monitor)?, map.n_out(), None));
        }
        fit_slices(slices, &labels, cost, &ask, monitor)
    })?;
    let result = as_dict(py, &solutions, n_cols)?;
    result.set_item("presolve", report.map(|report| report_dict(py, &report)).transpose()?)?;
    Ok(result)
}

/// What a fit in memory is asked for.
pub struct Ask<'a> {
    /// The loss.
    pub loss: LossKind,
    /// Treatment of the intercept.
    pub intercept: Intercept,
    /// Solver, tolerance, limit and seed.
    pub params: Params,
    /// "on", "off" or "auto".
    pub presolve: &'a str,
}

impl<'a> Ask<'a> {
    /// The options as enums.
    pub fn of(options: &'a FitOptions) -> crate::Result<Self> {
        let FitOptions { tol, max_iter, seed, .. } = *options;
        let params = Params { solver: options::solver(&options.solver)?, tol, max_iter, seed };
        let (loss, intercept) = (options::loss(&options.loss)?, options::intercept(options.intercept)?);
        Ok(Self { loss, intercept, params, presolve: &options.presolve })
    }
}

impl Ask<'_> {
    /// The packed form of rows for `n_problems` problems, where it pays; refuses rows that no solver takes.
    pub fn pack(
        &self,
        rows: &Layout<'_>,
        structure: &Structure,
        cost: &[f64],
        n_problems: usize,
        monitor: &dyn Monitor,
    ) -> crate::Result<Option<Presolved>> {
        structure.check_solvable()?;
        let mean_cost = cost.iter().sum::<f64>() / cost.len().max(1) as f64;
        let passes = auto::expected_passes(self.loss, mean_cost, structure.max_squared_norm, self.params.tol);
        let mode = options::presolve(self.presolve, passes, n_problems)?;
        pack(rows, structure, mode, &|| monitor.cancelled())
    }
}

/// Fits all problems on the degree-2 features of a matrix.
pub fn fit_mapped(
    (rows, structure): (Layout<'_>, Structure),
    map: &Map,
    labels: &Labels<'_>,
    cost: &[f64],
    ask: &Ask<'_>,
    monitor: &dyn Monitor,
) -> crate::Result<Vec<Solution>> {
    check_mapped(&structure, map)?;
    let scaled = rows.scaled();
    let rows = Poly2::new(scaled.as_ref().map_or(rows, |scaled| Layout::Scaled(scaled.view())), map)?;
    let data = Classification { rows: &rows.into(), labels, cost, intercept: ask.intercept };
    labels::fit(&data, ask.loss, &ask.params, monitor)
}

/// Fits all problems on a matrix, by way of the packed one where that pays.
pub fn fit_slices(
    slices: Slices<'_>,
    labels: &Labels<'_>,
    cost: &[f64],
    ask: &Ask<'_>,
    monitor: &dyn Monitor,
) -> crate::Result<(Vec<Solution>, usize, Option<Report>)> {
    let Ask { loss, intercept, params, .. } = ask;
    let (rows, structure) = slices.checked()?;
    let packed = ask.pack(&rows, &structure, cost, labels.n_problems(), monitor)?;
    let solutions = match &packed {
        Some(packed) => {
            let data = Classification { rows: &rows.into(), labels, cost, intercept: *intercept };
            labels::fit_presolved(&data, packed, *loss, params, monitor)?
        }
        None => {
            let scaled = rows.scaled();
            let narrow = scaled.as_ref().map_or(rows, |scaled| Layout::Scaled(scaled.view()));
            let data = Classification { rows: &narrow.into(), labels, cost, intercept: *intercept };
            labels::fit(&data, *loss, params, monitor)?
        }
    };
    Ok((solutions, rows.n_cols(), packed.map(|packed| *packed.report())))
}

pub fn report_dict<'py>(py: Python<'py>, report: &Report) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    for (name, count) in [
        ("n_features_in", report.columns_in),
        ("n_columns", report.columns_out),
        ("nnz_in", report.nonzeros_in),
        ("nnz_out", report.nonzeros_out),
        ("n_merged", report.merged),
        ("n_merged_alone", report.merged_alone),
        ("n_dropped", report.dropped),
    ] {
        result.set_item(name, count)?;
    }
    Ok(result)
}

pub fn as_dict<'py>(py: Python<'py>, solutions: &[Solution], n_cols: usize) -> PyResult<Bound<'py, PyDict>> {
    let coef = table(py, n_cols, solutions.iter().map(|solution| &solution.w[..]))?;
    let facts: Vec<Facts> = solutions.iter().map(Facts::from).collect();
    let result = facts_dict(py, &facts)?;
    result.set_item("coef", coef)?;
    let intercepts: Vec<f64> = solutions.iter().map(|s| s.intercept).collect();
    result.set_item("intercept", intercepts.into_pyarray(py))?;
    Ok(result)
}

/// What every fit tells of a problem besides its weights.
pub struct Facts {
    pub certificate: Certificate,
    pub passes: f64,
    pub n_iter: usize,
    pub status: Status,
    pub solver: &'static str,
}

impl From<&Solution> for Facts {
    fn from(solution: &Solution) -> Self {
        let Solution { certificate, passes, n_iter, status, solver, .. } = *solution;
        Self { certificate, passes, n_iter, status, solver: options::solver_name(solver) }
    }
}

/// The facts as Python has them: a number or a name per problem under each key.
pub fn facts_dict<'py>(py: Python<'py>, facts: &[Facts]) -> PyResult<Bound<'py, PyDict>> {
    let column = |f: fn(&Facts) -> f64| facts.iter().map(f).collect::<Vec<_>>().into_pyarray(py);
    let result = PyDict::new(py);
    result.set_item("primal", column(|f| f.certificate.primal))?;
    result.set_item("dual", column(|f| f.certificate.dual))?;
    result.set_item("relative_gap", column(|f| f.certificate.relative_gap()))?;
    result.set_item("passes", column(|f| f.passes))?;
    result.set_item("n_iter", facts.iter().map(|f| f.n_iter).collect::<Vec<_>>())?;
    result.set_item("status", facts.iter().map(|f| status_name(f.status)).collect::<Vec<_>>())?;
    result.set_item("solver", facts.iter().map(|f| f.solver).collect::<Vec<_>>())?;
    Ok(result)
}

fn status_name(status: Status) -> &'static str {
    match status {
        Status::Converged => "converged",
        Status::MaxIter => "max_iter",
        Status::Stalled => "stalled",
    }
}
