//! Bindings of the multi-class fits: [`crate::multiclass::crammer_singer::fit`].

use numpy::{PyArray2, PyArrayMethods, PyReadonlyArray1, ToPyArray};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{Matrix, with_rows};
use super::fit::{Ask, Facts, facts_dict, report_dict};
use super::options::{self, FitOptions};
use super::run::run;
use crate::data::Rows;
use crate::loss::LossKind;
use crate::multiclass::{Labels, crammer_singer};
use crate::solver::SolverKind;
use crate::solver::crammer_singer::Solution;

/// Fits the machine of Crammer and Singer; two classes come back as one weight vector, the second less the first.
#[pyfunction]
#[pyo3(signature = (matrix, class_ids, n_classes, cost, options, progress=None))]
pub fn fit_crammer_singer<'py>(
    py: Python<'py>,
    matrix: Matrix<'py>,
    class_ids: PyReadonlyArray1<'py, u32>,
    n_classes: u32,
    cost: PyReadonlyArray1<'py, f64>,
    options: FitOptions,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let labels = Labels { ids: class_ids.as_slice()?, n_classes };
    let cost = cost.as_slice()?;
    let ask = Ask { loss: LossKind::Hinge, ..Ask::of(&options)? };
    let slices = matrix.slices()?;
    let (solution, n_cols, report) = run(py, options.n_threads, progress.as_ref(), |monitor| {
        with_rows!(slices, |rows, structure| {
            let packed = ask.pack(&rows, &structure, cost, n_classes as usize, monitor)?;
            let packed_rows = packed.as_ref();
            let solution = crammer_singer::fit(&rows, packed_rows, &labels, cost, ask.intercept, &ask.params, monitor)?;
            Ok((solution, rows.n_cols(), packed.map(|packed| *packed.report())))
        })
    })?;
    let result = as_dict(py, &solution, n_cols)?;
    result.set_item("presolve", report.map(|report| report_dict(py, &report)).transpose()?)?;
    Ok(result)
}

fn as_dict<'py>(py: Python<'py>, solution: &Solution, n_cols: usize) -> PyResult<Bound<'py, PyDict>> {
    let b = &solution.intercepts;
    let (n_vectors, intercepts) = if b.len() == 2 { (1, vec![b[1] - b[0]]) } else { (b.len(), b.clone()) };
    let coef = PyArray2::<f64>::zeros(py, (n_vectors, n_cols), false);
    {
        let mut writable = coef.try_readwrite()?;
        let target = writable.as_slice_mut()?;
        for column in 0..n_cols {
            let weights = solution.weights.column(column);
            if n_vectors == 1 {
                target[column] = weights[1] - weights[0];
            } else {
                weights.iter().enumerate().for_each(|(class, w)| target[class * n_cols + column] = *w);
            }
        }
    }
    let Solution { certificate, passes, n_iter, status, .. } = *solution;
    let solver = options::solver_name(SolverKind::CrammerSinger);
    let result = facts_dict(py, &[Facts { certificate, passes, n_iter, status, solver }])?;
    result.set_item("coef", coef)?;
    result.set_item("intercept", intercepts.to_pyarray(py))?;
    Ok(result)
}
