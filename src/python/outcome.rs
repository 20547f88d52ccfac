//! A model as Python has it: one dict, whatever was fitted.

use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::arrays::{collected, table};
use crate::fit::Status;
use crate::fit::crammer_singer::weights::ClassWeights;
use crate::front::{Outcome, ProblemFacts, Weights};
use crate::memory;
use crate::presolve::PresolveReport;

/// Weights, intercepts, and what is known of each problem.
pub fn as_dict(py: Python<'_>, outcome: Outcome, is_rounded: bool) -> PyResult<Bound<'_, PyDict>> {
    let Outcome { weights, mut intercepts, facts, n_weights, presolve, loads } = outcome;
    let result = facts_dict(py, &facts)?;
    let coef = match weights {
        Weights::Dense(vectors) => match <[Vec<f64>; 1]>::try_from(vectors) {
            // One problem: its vector is the result, without a copy.
            Ok([only]) => only.into_pyarray(py).reshape([1, n_weights])?.into_any(),
            Err(vectors) => table(py, n_weights, vectors.into_iter())?.into_any(),
        },
        Weights::Classes { weights, n_used, columns } => {
            let is_one = intercepts.len() == 2;
            if is_one {
                intercepts = vec![intercepts[1] - intercepts[0]];
            }
            let coef = memory::catch(|| {
                Ok::<_, PyErr>(by_class(&weights, n_used, &columns, intercepts.len(), n_weights, is_one))
            })?;
            coef.into_pyarray(py).reshape([intercepts.len(), n_weights])?.into_any()
        }
        Weights::Sparse(labels) => sparse(py, &labels, is_rounded)?,
    };
    result.set_item("coef", coef)?;
    result.set_item("intercept", intercepts.into_pyarray(py))?;
    if !loads.is_empty() {
        result.set_item("loads", loads.into_pyarray(py))?;
    }
    result.set_item("presolve", presolve.map(|report| report_dict(py, &report)).transpose()?)?;
    Ok(result)
}

/// A row of weights per class; for two classes one in all, the second less the first.
fn by_class(
    weights: &ClassWeights,
    n_used: usize,
    columns: &[u32],
    n_vectors: usize,
    n_weights: usize,
    is_one: bool,
) -> Vec<f64> {
    let mut coef = memory::zeros(n_vectors * n_weights);
    for column in 0..n_used {
        let to = columns.get(column).map_or(column, |&to| to as usize);
        if is_one {
            coef[to] = weights.column(column).fold(0.0, |first, second| second - first);
        } else {
            weights.column(column).enumerate().for_each(|(class, w)| coef[class * n_weights + to] = w);
        }
    }
    coef
}

/// Arrays of a CSR matrix; where `may_round` and all weights are numbers of single precision, as such.
fn sparse<'py>(
    py: Python<'py>,
    labels: &[(Vec<u32>, Vec<f64>)],
    may_round: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let is_rounded = may_round && labels.iter().flat_map(|(_, v)| v).all(|v| f64::from(*v as f32) == *v);
    let ends = labels.iter().scan(0, |end, (columns, _)| {
        *end += columns.len() as i64;
        Some(*end)
    });
    let indptr = collected(py, std::iter::once(0).chain(ends))?;
    let indices = collected(py, labels.iter().flat_map(|(columns, _)| columns).map(|j| *j as i32))?;
    let values = labels.iter().flat_map(|(_, values)| values).copied();
    let values = if is_rounded {
        collected(py, values.map(|v| v as f32))?.into_any()
    } else {
        collected(py, values)?.into_any()
    };
    Ok((indptr, indices, values).into_pyobject(py)?.into_any())
}

/// What was done to the columns.
pub fn report_dict<'py>(py: Python<'py>, report: &PresolveReport) -> PyResult<Bound<'py, PyDict>> {
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

/// A number or a name per problem under each key.
fn facts_dict<'py>(py: Python<'py>, facts: &[ProblemFacts]) -> PyResult<Bound<'py, PyDict>> {
    let column = |f: fn(&ProblemFacts) -> f64| facts.iter().map(f).collect::<Vec<_>>().into_pyarray(py);
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
