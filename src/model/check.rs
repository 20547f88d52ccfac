//! Whether the parts of a model fit together: asked of every model that comes from outside, an estimator's or
//! a file's, before anything is computed from it.

use super::Model;
use super::answer::ClassRule;
use super::probability::{Line, Probability};
use super::weights::{Numbers, WeightVectors};
use crate::labels::scores::FloatSlice;

/// A part of a model that does not fit the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Flaw {
    /// The part, by its name in a model file.
    pub field: String,
    /// What is wrong, with the offending number, and what would be accepted.
    pub reason: String,
}

impl Flaw {
    /// A flaw of a part.
    pub fn new(field: &str, reason: impl Into<String>) -> Self {
        Self { field: field.to_owned(), reason: reason.into() }
    }
}

fn flaw<T>(field: &str, reason: String) -> Result<T, Flaw> {
    Err(Flaw::new(field, reason))
}

fn expect(field: &str, what: &str, expected: usize, found: usize) -> Result<(), Flaw> {
    if found == expected { Ok(()) } else { flaw(field, format!("{found} {what}, expected {expected}")) }
}

impl Model {
    /// Number of vectors of weights.
    pub fn n_vectors(&self) -> usize {
        self.intercepts.len()
    }

    /// Number of weights of a vector: columns of the rows after a degree-2 map, if there is one.
    ///
    /// # Errors
    /// A map that cannot be.
    pub fn n_weights(&self) -> Result<usize, Flaw> {
        let Some(pairs) = &self.pairs else { return Ok(self.n_features) };
        match pairs.map(self.n_features) {
            Ok(map) => Ok(map.n_out()),
            Err(error) => flaw("pairs", error.to_string()),
        }
    }

    /// Whether all parts fit together.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), Flaw> {
        self.check_weights()?;
        self.check_rest()
    }

    /// Whether all parts but the weights fit together.
    ///
    /// # Errors
    /// The first that does not.
    pub(crate) fn check_rest(&self) -> Result<(), Flaw> {
        self.check_classes()?;
        self.check_answer()?;
        self.check_probability()?;
        if let Some(names) = &self.feature_names {
            expect("feature_names", "names", self.n_features, names.len())?;
        }
        Ok(())
    }

    /// Classes are distinct, and as many as there are vectors of weights for.
    fn check_classes(&self) -> Result<(), Flaw> {
        let (k, m) = (self.classes.len(), self.n_vectors());
        if m == 0 {
            return flaw("intercept", "no vector of weights".to_owned());
        }
        if self.classes.sorted().is_none() {
            return flaw("classes", "a class comes twice or is not finite".to_owned());
        }
        match self.answer {
            ClassRule::Labels => expect("classes", "labels", m, k),
            _ if k == 2 => expect("intercept", "vectors of weights for 2 classes", 1, m),
            _ if k < 2 => flaw("classes", format!("{k} classes, a model has at least 2")),
            _ => expect("classes", "classes", m, k),
        }
    }

    fn check_weights(&self) -> Result<(), Flaw> {
        let (m, d) = (self.n_vectors(), self.n_weights()?);
        match &self.weights {
            WeightVectors::ByLabel(numbers) | WeightVectors::ByColumn(numbers) => {
                let Some(size) = m.checked_mul(d) else {
                    return flaw("coef", format!("{m} vectors of {d} weights"));
                };
                expect("coef", "weights", size, count(numbers))
            }
            WeightVectors::Sparse { indptr, indices, values, index } => {
                if self.pairs.is_some() {
                    return flaw("coef", "sparse weights of a degree-2 map, they must be dense".to_owned());
                }
                expect("coef.indptr", "pointers", m + 1, indptr.len())?;
                expect("coef.indices", "labels in the index", m, index.n_labels())?;
                expect("coef.indices", "columns in the index", d, index.n_cols())?;
                expect("coef.indices", "columns", index.nnz(), indices.len())?;
                expect("coef.values", "weights", index.nnz(), count(values))
            }
        }
    }

    fn check_answer(&self) -> Result<(), Flaw> {
        let k = self.classes.len();
        match &self.answer {
            ClassRule::Sign if k != 2 => {
                flaw("answer", format!("the sign tells 2 classes apart, there are {k}"))
            }
            ClassRule::Threshold(_) if k != 2 => {
                flaw("answer", format!("a threshold tells 2 classes apart, there are {k}"))
            }
            ClassRule::Threshold(threshold) if threshold.is_nan() => {
                flaw("answer", "the threshold is NaN, it must be a number".to_owned())
            }
            ClassRule::Highest if self.n_vectors() == 1 => {
                flaw("answer", "the highest of one decision value, 2 classes need the sign".to_owned())
            }
            ClassRule::MostProbable | ClassRule::Cheapest(_) if self.probability.is_none() => {
                flaw("answer", "needs probabilities, the model has none".to_owned())
            }
            ClassRule::Cheapest(costs) => {
                if costs.iter().any(|cost| !cost.is_finite()) {
                    return flaw("answer", "a cost is not finite".to_owned());
                }
                expect("answer", "costs", k * k, costs.len())
            }
            _ => Ok(()),
        }
    }

    fn check_probability(&self) -> Result<(), Flaw> {
        self.probability.as_ref().map_or(Ok(()), |probability| probability.check(self.n_vectors()))
    }
}

impl Probability {
    /// Whether it can be asked for the decision values of so many vectors of weights.
    ///
    /// # Errors
    /// The first number that it cannot be.
    pub fn check(&self, m: usize) -> Result<(), Flaw> {
        match self {
            Self::Sigmoid { slopes, offsets } => {
                expect("probability", "slopes", m, slopes.len())?;
                expect("probability", "offsets", m, offsets.len())
            }
            Self::Isotonic(lines) => {
                expect("probability", "lines", m, lines.len())?;
                lines.iter().try_for_each(check_line)
            }
            Self::Temperature(factor) if !factor.is_finite() => {
                flaw("probability", format!("the factor is {factor}, it must be finite"))
            }
            _ => Ok(()),
        }
    }
}

/// A line has points, and its abscissas rise.
fn check_line(line: &Line) -> Result<(), Flaw> {
    if line.x.is_empty() {
        return flaw("probability", "a line without points".to_owned());
    }
    expect("probability", "ordinates of a line", line.x.len(), line.y.len())?;
    let rises = line.x.windows(2).all(|pair| pair[0] < pair[1]);
    let is_finite = line.x.iter().chain(&line.y).all(|v| v.is_finite());
    if rises && is_finite {
        return Ok(());
    }
    flaw("probability", "the abscissas of a line must be finite and rise".to_owned())
}

fn count(numbers: &Numbers) -> usize {
    match numbers.slice() {
        FloatSlice::F32(w) => w.len(),
        FloatSlice::F64(w) => w.len(),
    }
}
