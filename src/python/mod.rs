//! The Python module `hinge._native`: borrow arrays, detach, call, wrap.
//!
//! * [`arrays`]: NumPy arrays to row views, the only module that knows dtypes;
//! * [`options`]: strings and numbers to a [`crate::Spec`]; [`outcome`]: a model to a dict;
//! * [`table`]: tables to Arrow arrays;
//! * [`run`]: threads, interrupts and progress around a long call; [`turns`]: objects that calls use one
//!   after the other;
//! * [`blocks`], [`cost_plane`], [`cost_plane_file`], [`durable`], [`encode`], [`fit`], [`liblinear`],
//!   [`model_file`], [`model_parts`], [`online`], [`pairs`], [`predictor`], [`scores`], [`search`],
//!   [`shards`], [`store`], [`subgradient`], [`text`]: one file per verb;
//! * [`errors`]: [`crate::Error`] to exceptions.

mod arrays;
pub mod blocks;
mod cost_data;
pub mod cost_plane;
pub mod cost_plane_file;
mod durable;
mod encode;
mod errors;
mod fingerprint;
mod fit;
mod liblinear;
pub mod model_file;
pub mod model_parts;
pub mod online;
mod options;
mod outcome;
pub mod pairs;
pub mod predictor;
mod run;
mod scores;
pub mod search;
pub mod shards;
mod store;
mod subgradient;
mod table;
pub mod text;
mod turns;

/// The compiled part of `hinge`. It needs no lock of the interpreter: every class is frozen, and what changes
/// in one takes turns ([`turns`]).
#[pyo3::pymodule(gil_used = false)]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::blocks::StoreScorer;
    #[pymodule_export]
    use super::cost_plane::{
        Plane, Surface, answers_from, explore_plane, fit_costs, surfaces_minimum, walk_ray,
    };
    #[pymodule_export]
    use super::cost_plane_file::{PyPlaneFile, estimate_facets, explore_to_file, sides_at_points};
    #[pymodule_export]
    use super::durable::{PyDraft, check_target};
    #[pymodule_export]
    use super::encode::{PyDriftCounts, PyEncodedRows, PyEncoder, PySurvey};
    #[pymodule_export]
    use super::errors::{BlockFileError, DuplicateEntriesError, ModelFileError};
    #[pymodule_export]
    use super::fingerprint::fingerprint;
    #[pymodule_export]
    use super::fit::{check, fit, fit_labels, fit_store};
    #[pymodule_export]
    use super::liblinear::{load_liblinear, print_numbers, save_liblinear};
    #[pymodule_export]
    use super::model_file::{load_model, save_model, save_parts};
    #[pymodule_export]
    use super::online::StreamLearner;
    #[pymodule_export]
    use super::pairs::{map_decisions, map_positions, map_rows, map_shape, map_usage};
    #[pymodule_export]
    use super::predictor::{NativeModel, probabilities_of};
    #[pymodule_export]
    use super::scores::{PyColumnIndex, decision_values, positive_labels, top_k};
    #[pymodule_export]
    use super::search::{search, search_store};
    #[pymodule_export]
    use super::shards::{RowShard, fit_shards, search_shards};
    #[pymodule_export]
    use super::store::{StoreReader, StoreWriter, TextReader, sample_columns};
    #[pymodule_export]
    use super::subgradient::{descend, descend_on, descend_store};
    #[pymodule_export]
    use super::table::{PyTableBatch, PyTableReader};
    #[pymodule_export]
    use super::text::load_svmlight;

    /// Version, defaults and build facts, so that each is written once.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("DEBUG_BUILD", cfg!(debug_assertions))?;
        module.add("DEFAULT_TOL", crate::fit::DEFAULT_TOL)?;
        module.add("DEFAULT_MAX_ITER", crate::fit::DEFAULT_MAX_ITER)?;
        module.add("DEFAULT_DESCENT_TOL", crate::fit::baselines::subgradient::DEFAULT_TOL)?;
        module.add("DEFAULT_SEARCH_TOL", crate::search::DEFAULT_SEARCH_TOL)?;
        module.add("DEFAULT_C_MAX", crate::search::DEFAULT_C_MAX)?;
        module.add("DEFAULT_MAX_REGIONS", crate::cost_plane::DEFAULT_MAX_REGIONS)?;
        module.add("DEFAULT_RATIO", crate::search::DEFAULT_RATIO)?;
        module.add("MAX_RELABELLED", crate::store::columns::MAX_RELABELLED)?;
        module.add("DEFAULT_BLOCKS", crate::store::writer::DEFAULT_BLOCKS)?;
        module.add("SHARD_LANES", crate::shards::shard::CLASSES)?;
        module.add("DEFAULT_ROUNDS", crate::blocks::DEFAULT_ROUNDS)
    }
}
