//! A fitted model apart from the data and the solver that made it: what is saved, served and converted.
//!
//! * [`weights`]: weights as they lie, in single or double precision, owned or mapped from a file;
//! * [`answer`]: from decision values to classes; [`probability`]: and to probabilities;
//! * [`check`]: whether all of a model fits together;
//! * [`predictor`]: a model that answers, for many rows or one, whose columns may be given by name;
//! * [`rows`]: what it takes as rows;
//! * [`mod@file`]: models in files;
//! * [`liblinear`]: LIBLINEAR's model files, both ways.
//!
//! A [`Model`] never changes once it is made, so that any number of threads may use it.

pub mod answer;
pub mod check;
pub mod file;
pub mod liblinear;
pub mod predictor;
pub mod probability;
pub mod rows;
pub mod weights;

use serde_json::{Map, Value};

use self::answer::ClassRule;
use self::probability::Probability;
use self::weights::WeightVectors;
use crate::encode::record::EncoderRecord;
use crate::front::MapSpec;
use crate::labels::classes::Classes;

/// A linear model; [`Model::check`] says whether its parts fit together.
///
/// The decision value of a row and a vector of weights is `w.x + b`; with `pairs` the row is mapped to its
/// degree-2 features first. Two classes share one vector, positive for the second; else there is a vector per
/// class or label.
#[derive(Debug)]
pub struct Model {
    /// Number of columns of the rows that it takes, before a degree-2 map.
    pub n_features: usize,
    /// One vector of weights per row.
    pub weights: WeightVectors,
    /// One per vector of weights.
    pub intercepts: Vec<f64>,
    /// What the classes or labels are called.
    pub classes: Classes,
    /// How a class follows from decision values.
    pub answer: ClassRule,
    /// How probabilities follow from decision values, if there are any.
    pub probability: Option<Probability>,
    /// The degree-2 map, if there is one.
    pub pairs: Option<MapSpec>,
    /// Names of the columns, if they have any.
    pub feature_names: Option<Vec<String>>,
    /// What makes rows of the columns of a table, if that belongs to the model.
    pub encoder: Option<EncoderRecord>,
    /// What is known of the fit.
    pub record: ModelRecord,
}

/// What is kept with a model for people and programs to read; predictions do not depend on it.
#[derive(Clone, Debug, Default)]
pub struct ModelRecord {
    /// Name of the estimator that was fitted, such as `LinearSVC`.
    pub estimator: String,
    /// Version of the library that fitted it.
    pub version: String,
    /// NumPy's name of the type of its labels, empty where it is not known.
    pub label_dtype: String,
    /// Parameters of the estimator.
    pub parameters: Map<String, Value>,
    /// Attributes of the fit that predictions do not need: certificate, chosen cost, numbers of iterations.
    pub fitted: Map<String, Value>,
    /// Fingerprint and summary of the training data.
    pub data: Map<String, Value>,
    /// The user's own.
    pub metadata: Map<String, Value>,
}
