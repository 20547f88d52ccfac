//! Strings and numbers of the Python surface to the enums of the crate. The facade has checked them; what
//! arrives wrong here is refused all the same.

use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;

use super::pairs::MapOptions;
use crate::fit::{Intercept, Params, SolverKind};
use crate::front::{MultiClass, PresolveChoice, Spec, StartWeights};
use crate::loss::LossKind;
use crate::memory;
use crate::penalty::{Penalty, PerColumn};
use crate::{Error, Result};

fn unknown<T>(name: &'static str, value: &str, rule: &'static str) -> Result<T> {
    Err(Error::Parameter { name, value: format!("{value:?}"), rule })
}

/// The loss of a name.
pub fn loss(name: &str) -> Result<LossKind> {
    let known = LossKind::NAMES.iter().find(|(known, _)| *known == name);
    known.map_or_else(|| unknown("loss", name, "the name of a loss"), |(_, loss)| Ok(*loss))
}

/// The solver of a name.
pub fn solver(name: &str) -> Result<SolverKind> {
    let known = SolverKind::NAMES.iter().find(|(known, _)| *known == name);
    let rule = "the name of a solver";
    known.map_or_else(|| unknown("solver", name, rule), |(_, solver)| Ok(*solver))
}

/// Whether to presolve, by name.
pub fn presolve(name: &str) -> Result<PresolveChoice> {
    match name {
        "auto" => Ok(PresolveChoice::Auto),
        "on" => Ok(PresolveChoice::On),
        "off" => Ok(PresolveChoice::Off),
        _ => unknown("presolve", name, "'auto', 'on' or 'off'"),
    }
}

/// What more than two classes are, by name.
pub fn multi_class(name: Option<&str>) -> Result<MultiClass> {
    match name {
        None | Some("ovr") => Ok(MultiClass::OneVsRest),
        Some("multinomial") => Ok(MultiClass::Multinomial),
        Some(name) => unknown("multi_class", name, "'ovr' or 'multinomial'"),
    }
}

/// `None`: no intercept; a number above 0: a penalised one of that scale; 0: a free one.
pub fn intercept(scale: Option<f64>) -> Result<Intercept> {
    match scale {
        None => Ok(Intercept::None),
        Some(0.0) => Ok(Intercept::Free),
        Some(s) if s > 0.0 && s.is_finite() => Ok(Intercept::Penalised(s)),
        Some(s) => unknown("intercept_scaling", &s.to_string(), "a finite number above 0, or None"),
    }
}

/// Options of every fit, in the order of the Python call.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct FitOptions {
    pub loss: String,
    pub solver: String,
    pub intercept: Option<f64>,
    pub tol: f64,
    pub max_iter: usize,
    pub seed: u64,
    pub n_threads: usize,
    pub presolve: String,
    /// A missing key is `None`.
    #[pyo3(default)]
    pub map: Option<MapOptions>,
    /// A missing key is one-vs-rest.
    #[pyo3(default)]
    pub multi_class: Option<String>,
    /// A missing key is the square of the weights.
    #[pyo3(default)]
    pub penalty: Option<PenaltyOptions>,
    /// A missing key leaves the start to the solver.
    #[pyo3(default)]
    pub start: Option<StartOptions>,
}

/// Where Newton's method begins, from a pair: weights by problem, shape (n_problems, n_features), and
/// intercepts.
pub struct StartOptions(pub StartWeights);

impl<'py> FromPyObject<'_, 'py> for StartOptions {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let (coef, intercepts) =
            given.extract::<(PyReadonlyArray2<'py, f64>, PyReadonlyArray1<'py, f64>)>()?;
        memory::catch(|| {
            let (coef, intercepts) = (memory::copy(coef.as_slice()?), memory::copy(intercepts.as_slice()?));
            PyResult::Ok(Self(StartWeights { coef, intercepts }))
        })
    }
}

/// A number for all columns, or an array with one for each.
#[derive(FromPyObject)]
enum Numbers<'py> {
    All(f64),
    Each(PyReadonlyArray1<'py, f64>),
}

impl Numbers<'_> {
    fn copied(self) -> PyResult<PerColumn> {
        Ok(match self {
            Self::All(value) => PerColumn::All(value),
            Self::Each(values) => {
                PerColumn::Each(memory::catch(|| PyResult::Ok(memory::copy(values.as_slice()?)))?)
            }
        })
    }
}

/// A penalty, from a dict with `l1_ratio`, `factors`, `lower` and `upper`.
pub struct PenaltyOptions(pub Penalty);

impl<'py> FromPyObject<'_, 'py> for PenaltyOptions {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let numbers = |name: &str| given.get_item(name)?.extract::<Numbers<'_>>()?.copied();
        let l1_ratio = given.get_item("l1_ratio")?.extract()?;
        let (factors, lower, upper) = (numbers("factors")?, numbers("lower")?, numbers("upper")?);
        Ok(Self(Penalty { l1_ratio, factors, lower, upper }))
    }
}

impl FitOptions {
    /// The options as the crate has them.
    pub fn spec(&self) -> Result<Spec<'_>> {
        let Self { tol, max_iter, seed, .. } = *self;
        Ok(Spec {
            loss: loss(&self.loss)?,
            intercept: intercept(self.intercept)?,
            params: Params { solver: solver(&self.solver)?, tol, max_iter, seed },
            presolve: presolve(&self.presolve)?,
            map: self.map.as_ref().map(MapOptions::spec),
            multi_class: multi_class(self.multi_class.as_deref())?,
            penalty: self.penalty.as_ref().map(|given| &given.0),
            start: self.start.as_ref().map(|given| &given.0),
        })
    }
}
