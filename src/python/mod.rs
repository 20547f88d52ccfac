//! The Python module `hinge._native`: borrow arrays, detach, call, wrap.
//!
//! * [`arrays`]: NumPy arrays to row views, the only place that knows dtypes;
//! * [`options`]: strings and numbers to enums;
//! * [`run`]: threads, interrupts and progress around a long call; [`turns`]: objects that calls use one after the other;
//! * [`durable`], [`fit`], [`labels`], [`multiclass`], [`outofcore`], [`path`], [`path_file`], [`poly2`], [`scores`], [`select`],
//!   [`store`], [`stream`], [`subgradient`], [`svmlight`]: one file per verb;
//! * [`errors`]: [`crate::Error`] to exceptions.

mod arrays;
mod cost_data;
mod durable;
mod errors;
mod fit;
mod labels;
mod multiclass;
mod options;
mod outofcore;
mod path;
mod path_file;
mod poly2;
mod run;
mod scores;
mod select;
mod store;
mod stream;
mod subgradient;
mod svmlight;
mod turns;

/// The compiled part of `hinge`.
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::durable::{Draft, check_target};
    #[pymodule_export]
    use super::errors::{BlockFileError, DuplicateEntriesError};
    #[pymodule_export]
    use super::fit::{check, fit};
    #[pymodule_export]
    use super::labels::fit_labels;
    #[pymodule_export]
    use super::multiclass::fit_crammer_singer;
    #[pymodule_export]
    use super::outofcore::{StoreScorer, fit_store, search_store};
    #[pymodule_export]
    use super::path::{Plane, Surface, answers_from, explore_plane, fit_costs, surfaces_minimum, walk_ray};
    #[pymodule_export]
    use super::path_file::{PlaneFile, estimate_facets, explore_to_file, sides_at_points};
    #[pymodule_export]
    use super::poly2::{map_decisions, map_positions, map_rows, map_shape, map_usage};
    #[pymodule_export]
    use super::scores::{ColumnIndex, decision_values, positive_labels, top_k};
    #[pymodule_export]
    use super::select::search;
    #[pymodule_export]
    use super::store::{StoreReader, StoreWriter, TextReader, sample_columns};
    #[pymodule_export]
    use super::stream::StreamLearner;
    #[pymodule_export]
    use super::subgradient::{descend, descend_on, descend_store};
    #[pymodule_export]
    use super::svmlight::load_svmlight;

    /// Version, defaults and build facts, so that each is written once.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("DEBUG_BUILD", cfg!(debug_assertions))?;
        module.add("DEFAULT_TOL", crate::solver::DEFAULT_TOL)?;
        module.add("DEFAULT_MAX_ITER", crate::solver::DEFAULT_MAX_ITER)?;
        module.add("DEFAULT_DESCENT_TOL", crate::solver::subgradient::DEFAULT_TOL)?;
        module.add("DEFAULT_SEARCH_TOL", crate::select::DEFAULT_SEARCH_TOL)?;
        module.add("DEFAULT_C_MAX", crate::select::DEFAULT_C_MAX)?;
        module.add("DEFAULT_MAX_REGIONS", crate::path::DEFAULT_MAX_REGIONS)?;
        module.add("DEFAULT_RATIO", crate::select::DEFAULT_RATIO)?;
        module.add("MAX_RELABELLED", crate::store::columns::MAX_RELABELLED)?;
        module.add("DEFAULT_BLOCKS", crate::store::writer::DEFAULT_BLOCKS)?;
        module.add("DEFAULT_ROUNDS", crate::outofcore::DEFAULT_ROUNDS)
    }
}
