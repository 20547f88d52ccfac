//! What the head of a file says of a model, in JSON.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Checked;
use crate::front::MapSpec;
use crate::model::answer::ClassRule;
use crate::model::check::Flaw;
use crate::model::probability::Probability;
use crate::model::{Model, ModelRecord};

/// Deepest nesting of a record, below the 128 that a reader of JSON takes.
const MAX_DEPTH: usize = 100;

/// All of a model but its tensors.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    pub estimator: String,
    pub version: String,
    pub label_dtype: String,
    pub n_features: usize,
    pub answer: AnswerKind,
    pub probability: Option<ProbabilityKind>,
    pub pairs: Option<Pairs>,
    pub parameters: Map<String, Value>,
    pub fitted: Map<String, Value>,
    pub data: Map<String, Value>,
}

/// [`ClassRule`] without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerKind {
    Sign,
    Threshold,
    Highest,
    MostProbable,
    Cheapest,
    Labels,
}

/// [`Probability`] without its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbabilityKind {
    Logistic,
    Sigmoid,
    Isotonic,
    Temperature,
}

/// [`MapSpec`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pairs {
    gamma: Option<f64>,
    coef0: f64,
    has_constant: bool,
    bits: u32,
    seed: u64,
}

impl Pairs {
    /// The map.
    pub fn spec(&self) -> MapSpec {
        let Self { gamma, coef0, has_constant, bits, seed } = *self;
        MapSpec { gamma, coef0, has_constant, bits, seed }
    }
}

impl About {
    /// The description of a model, if it and the metadata are not nested too deep for a reader.
    pub fn of(model: &Model, metadata: &Map<String, Value>) -> Checked<Self> {
        let ModelRecord { estimator, version, label_dtype, parameters, fitted, data, .. } = &model.record;
        for (field, part) in
            [("parameters", parameters), ("fitted", fitted), ("data", data), ("metadata", metadata)]
        {
            if part.values().any(|value| is_deeper(value, MAX_DEPTH)) {
                return Err(Flaw::new(field, format!("at most {MAX_DEPTH} lists or maps may be nested")));
            }
        }
        Ok(Self {
            estimator: estimator.clone(),
            version: version.clone(),
            label_dtype: label_dtype.clone(),
            n_features: model.n_features,
            answer: match model.answer {
                ClassRule::Sign => AnswerKind::Sign,
                ClassRule::Threshold(_) => AnswerKind::Threshold,
                ClassRule::Highest => AnswerKind::Highest,
                ClassRule::MostProbable => AnswerKind::MostProbable,
                ClassRule::Cheapest(_) => AnswerKind::Cheapest,
                ClassRule::Labels => AnswerKind::Labels,
            },
            probability: model.probability.as_ref().map(|probability| match probability {
                Probability::Logistic => ProbabilityKind::Logistic,
                Probability::Sigmoid { .. } => ProbabilityKind::Sigmoid,
                Probability::Isotonic(_) => ProbabilityKind::Isotonic,
                Probability::Temperature(_) => ProbabilityKind::Temperature,
            }),
            pairs: model.pairs.as_ref().map(|map| {
                let MapSpec { gamma, coef0, has_constant, bits, seed } = *map;
                Pairs { gamma, coef0, has_constant, bits, seed }
            }),
            parameters: parameters.clone(),
            fitted: fitted.clone(),
            data: data.clone(),
        })
    }

    /// What people and programs read.
    pub fn record(self, metadata: Map<String, Value>) -> ModelRecord {
        let Self { estimator, version, label_dtype, parameters, fitted, data, .. } = self;
        ModelRecord { estimator, version, label_dtype, parameters, fitted, data, metadata }
    }
}

/// Whether more than `depth` lists or maps are nested.
fn is_deeper(value: &Value, depth: usize) -> bool {
    match value {
        Value::Array(_) | Value::Object(_) if depth == 0 => true,
        Value::Array(list) => list.iter().any(|value| is_deeper(value, depth - 1)),
        Value::Object(map) => map.values().any(|value| is_deeper(value, depth - 1)),
        _ => false,
    }
}
