//! The Python module `hinge._native`: borrow arrays, detach, call, wrap.
//!
//! * [`arrays`]: NumPy arrays to row views, the only place that knows dtypes;
//! * [`options`]: strings and numbers to enums;
//! * [`run`]: threads, interrupts and progress around a long call;
//! * [`fit`], [`labels`], [`multiclass`], [`select`], [`svmlight`]: one file per verb;
//! * [`errors`]: [`crate::Error`] to exceptions.

mod arrays;
mod errors;
mod fit;
mod labels;
mod multiclass;
mod options;
mod run;
mod select;
mod svmlight;

/// The compiled part of `hinge`.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::errors::DuplicateEntriesError;
    #[pymodule_export]
    use super::fit::{check, fit};
    #[pymodule_export]
    use super::labels::{decision_values, fit_labels, top_k};
    #[pymodule_export]
    use super::multiclass::fit_crammer_singer;
    #[pymodule_export]
    use super::select::search;
    #[pymodule_export]
    use super::svmlight::load_svmlight;

    /// Version, defaults and build facts, so that each is written once.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("DEBUG_BUILD", cfg!(debug_assertions))?;
        module.add("DEFAULT_TOL", crate::solver::DEFAULT_TOL)?;
        module.add("DEFAULT_MAX_ITER", crate::solver::DEFAULT_MAX_ITER)?;
        module.add("DEFAULT_SEARCH_TOL", crate::select::DEFAULT_SEARCH_TOL)?;
        module.add("DEFAULT_C_MAX", crate::select::DEFAULT_C_MAX)?;
        module.add("DEFAULT_RATIO", crate::select::DEFAULT_RATIO)
    }
}
