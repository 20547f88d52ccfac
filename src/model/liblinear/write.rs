//! From a model to text.

use std::path::Path;

use super::{KIND, METADATA, SolverType, decimal};
use crate::durable::draft::Draft;
use crate::durable::target::Replace;
use crate::labels::classes::Classes;
use crate::labels::scores::FloatSlice;
use crate::model::Model;
use crate::model::answer::ClassRule;
use crate::model::probability::Probability;
use crate::model::weights::{Numbers, WeightVectors};
use crate::{Error, Result, labels};

/// Bytes that are collected before they are written.
const CHUNK_BYTES: usize = 1 << 20;
/// The name of the format in errors.
const FORMAT: &str = "a LIBLINEAR model";
/// Digits that give every number back.
const PRECISION: usize = 17;

/// What a file says beyond the model.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// The solver that the file names; `None` chooses by loss. LIBLINEAR reads from it whether there are
    /// probabilities, and the number of columns for two classes.
    pub solver: Option<SolverType>,
    /// The order of the labels; `None` is the one that gives every row the model's answer: of two classes the
    /// second first, of several their own.
    ///
    /// Another order changes the answer only where decision values are exactly equal, for two classes 0.
    pub labels: Option<Vec<i64>>,
    /// Which files may be replaced.
    pub replace: Replace,
}

/// Writes a file, whole or not at all.
///
/// # Errors
/// Those of [`write()`] and of [`Draft`].
pub fn save(model: &Model, path: &Path, options: &WriteOptions) -> Result<()> {
    let plan = Plan::new(model, options)?;
    let mut draft = Draft::new(path, KIND, options.replace)?;
    plan.write(&mut |bytes| draft.write(bytes))?;
    draft.publish()?;
    Ok(())
}

/// Hands the text of a file to `out` in pieces.
///
/// # Errors
/// [`Error::Inexpressible`] for a model that LIBLINEAR's format cannot hold; what `out` gives.
pub fn write(model: &Model, options: &WriteOptions, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
    Plan::new(model, options)?.write(out)
}

/// A column of the file: a vector of the model times a factor.
type Column = (usize, f64);

/// What is written.
struct Plan<'a> {
    model: &'a Model,
    solver: SolverType,
    labels: Vec<i64>,
    columns: Vec<Column>,
    bias: Option<f64>,
}

impl<'a> Plan<'a> {
    fn new(model: &'a Model, options: &WriteOptions) -> Result<Self> {
        check_answers(model)?;
        let classes = whole_classes(&model.classes)?;
        check_shapes(model, classes.len())?;
        let solver = solver_for(model, options.solver)?;
        let labels = match &options.labels {
            Some(labels) => permuted(labels, &classes)?,
            None if model.answer == ClassRule::Sign => classes.iter().rev().copied().collect(),
            None => classes.clone(),
        };
        let columns = columns(&classes, &labels, solver);
        let bias = bias_of(model, &columns);
        Ok(Self { model, solver, labels, columns, bias })
    }

    fn write(&self, out: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let mut text = Vec::with_capacity(CHUNK_BYTES + CHUNK_BYTES / 8);
        self.push_head(&mut text);
        let rows = WeightRows::of(&self.model.weights, self.model.n_features, self.model.intercepts.len())?;
        let mut row = vec![0.0; self.model.intercepts.len()];
        for j in 0..self.model.n_features {
            rows.read(j, &mut row);
            self.push_row(&mut text, &row, 1.0, j)?;
            if text.len() >= CHUNK_BYTES {
                out(&text)?;
                text.clear();
            }
        }
        if let Some(bias) = self.bias {
            self.push_row(&mut text, &self.model.intercepts, bias, self.model.n_features)?;
        }
        out(&text)
    }

    fn push_head(&self, text: &mut Vec<u8>) {
        let labels: Vec<String> = self.labels.iter().map(i64::to_string).collect();
        let head = format!(
            "solver_type {}\nnr_class {}\nlabel {}\nnr_feature {}\nbias ",
            self.solver.name(),
            labels.len(),
            labels.join(" "),
            self.model.n_features
        );
        text.extend_from_slice(head.as_bytes());
        decimal::push(text, self.bias.unwrap_or(-1.0), PRECISION);
        text.extend_from_slice(b"\nw\n");
    }

    fn push_row(&self, text: &mut Vec<u8>, row: &[f64], divisor: f64, j: usize) -> Result<()> {
        for (vector, factor) in &self.columns {
            let value = row[*vector] * factor / divisor;
            if !value.is_finite() {
                return Err(refused(format!(
                    "weight {j} of vector {vector} is {value}, expected a finite one"
                )));
            }
            decimal::push(text, value, PRECISION);
            text.push(b' ');
        }
        text.push(b'\n');
        Ok(())
    }
}

fn refused(reason: String) -> Error {
    Error::Inexpressible { format: FORMAT, reason }
}

/// Refuses what LIBLINEAR's `predict` could not answer.
fn check_answers(model: &Model) -> Result<()> {
    let reason = match (&model.answer, &model.probability) {
        _ if model.pairs.is_some() => "it has features of degree 2, LIBLINEAR takes rows as they are".into(),
        (ClassRule::Labels, _) => "it answers with several labels per row, LIBLINEAR with one class".into(),
        (ClassRule::Cheapest(_), _) => {
            "it chooses the class of the least expected cost, LIBLINEAR by the decision values alone".into()
        }
        (_, Some(Probability::Sigmoid { .. } | Probability::Isotonic(_) | Probability::Temperature(_))) => {
            "its probabilities are calibrated or multinomial, LIBLINEAR knows those of one-vs-rest only"
                .into()
        }
        (ClassRule::MostProbable, _) => {
            "it chooses the most probable class, LIBLINEAR that of the highest decision value".into()
        }
        (ClassRule::Threshold(threshold), _) if *threshold != 0.0 => {
            format!("it has the threshold {threshold}, LIBLINEAR's is 0")
        }
        _ => return Ok(()),
    };
    Err(refused(reason))
}

/// The classes as LIBLINEAR's labels.
fn whole_classes(classes: &Classes) -> Result<Vec<i64>> {
    let whole = |class: i64| i32::try_from(class).is_ok().then_some(class);
    let (found, example): (Option<Vec<i64>>, String) = match classes {
        Classes::Int(list) => {
            let bad = list.iter().find(|class| whole(**class).is_none());
            (list.iter().map(|class| whole(*class)).collect(), bad.map(i64::to_string).unwrap_or_default())
        }
        Classes::Float(list) => {
            let whole = |class: f64| (f64::from(class as i32) == class).then_some(class as i64);
            let bad = list.iter().find(|class| whole(**class).is_none());
            (list.iter().map(|class| whole(*class)).collect(), bad.map(f64::to_string).unwrap_or_default())
        }
        Classes::Bool(list) => (None, format!("the truth value {}", list.first().is_some_and(|b| *b))),
        Classes::Text(list) => (None, format!("{:?}", list.first().map_or("", String::as_str))),
    };
    found.ok_or_else(|| {
        refused(format!(
            "labels must be whole numbers from {} to {}, one of its classes is {example}",
            i32::MIN,
            i32::MAX
        ))
    })
}

fn check_shapes(model: &Model, n_classes: usize) -> Result<()> {
    if n_classes < 2 {
        return Err(refused(format!("it has {n_classes} class, expected at least 2")));
    }
    let expected = labels::n_problems(n_classes);
    if model.intercepts.len() != expected {
        let what = "vectors of weights";
        return Err(Error::Shape { what, expected, found: model.intercepts.len() });
    }
    if i32::try_from(model.n_features).is_err() {
        return Err(refused(format!("it has {} features, at most {} fit", model.n_features, i32::MAX)));
    }
    Ok(())
}

/// The solver that the file names.
fn solver_for(model: &Model, asked: Option<SolverType>) -> Result<SolverType> {
    let text = |key: &str| model.record.parameters.get(key).and_then(serde_json::Value::as_str);
    let of_file = model.record.metadata.get(METADATA).and_then(|said| said["solver_type"].as_str());
    let is_logistic = model.probability.is_some();
    let solver = match (asked, of_file.and_then(SolverType::of_name), text("multi_class"), text("loss")) {
        (Some(solver), ..) => solver,
        (None, Some(solver), ..) if solver.is_logistic() == is_logistic => solver,
        _ if is_logistic => SolverType::L2rLr,
        (.., Some("crammer_singer"), _) => SolverType::McsvmCs,
        (.., Some("hinge")) => SolverType::L2rL1lossSvcDual,
        // Huber's modification of the squared hinge has no solver there: the name has no bearing on answers.
        _ => SolverType::L2rL2lossSvcDual,
    };
    if solver.is_logistic() != is_logistic {
        let (has, name) = (if is_logistic { "has" } else { "has no" }, solver.name());
        return Err(refused(format!("it {has} probabilities, and the solver type {name} says otherwise")));
    }
    Ok(solver)
}

/// The labels of a caller, if they are the classes in some order.
fn permuted(labels: &[i64], classes: &[i64]) -> Result<Vec<i64>> {
    let sorted = |list: &[i64]| {
        let mut list = list.to_vec();
        list.sort_unstable();
        list
    };
    if sorted(labels) == sorted(classes) {
        return Ok(labels.to_vec());
    }
    Err(Error::Labels { reason: format!("labels must be the {} classes in some order", classes.len()) })
}

/// Which vectors go into which columns.
fn columns(classes: &[i64], labels: &[i64], solver: SolverType) -> Vec<Column> {
    if classes.len() == 2 {
        let sign = if labels[0] == classes[1] { 1.0 } else { -1.0 };
        return match solver {
            SolverType::McsvmCs => vec![(0, sign / 2.0), (0, -sign / 2.0)],
            _ => vec![(0, sign)],
        };
    }
    let mut numbers: Vec<(i64, usize)> = classes.iter().enumerate().map(|(k, class)| (*class, k)).collect();
    numbers.sort_unstable();
    let number = |label: &i64| numbers.binary_search_by_key(label, |entry| entry.0).map(|at| numbers[at].1);
    labels.iter().filter_map(|label| number(label).ok()).map(|vector| (vector, 1.0)).collect()
}

/// The value of the last feature, whose weight is the intercept divided by it; `None` without one.
///
/// That of the fit is kept if the division can be undone without an error, else it is 1.
fn bias_of(model: &Model, columns: &[Column]) -> Option<f64> {
    let parameters = &model.record.parameters;
    let is_fitted = parameters.get("fit_intercept").and_then(serde_json::Value::as_bool) == Some(true);
    if !is_fitted && model.intercepts.iter().all(|b| *b == 0.0) {
        return None;
    }
    let scaling = parameters.get("intercept_scaling").and_then(serde_json::Value::as_f64);
    let gives_back = |bias: &f64| {
        columns.iter().all(|(vector, factor)| {
            let intercept = model.intercepts[*vector] * factor;
            bias * (intercept / bias) == intercept
        })
    };
    Some(scaling.filter(|bias| *bias > 0.0).filter(gives_back).unwrap_or(1.0))
}

/// Weights by feature, wherever they lie.
struct WeightRows<'a> {
    weights: &'a WeightVectors,
    numbers: FloatSlice<'a>,
    n_features: usize,
}

impl<'a> WeightRows<'a> {
    fn of(weights: &'a WeightVectors, n_features: usize, n_vectors: usize) -> Result<Self> {
        let (numbers, expected): (&Numbers, usize) = match weights {
            WeightVectors::ByLabel(numbers) | WeightVectors::ByColumn(numbers) => {
                (numbers, n_features * n_vectors)
            }
            WeightVectors::Sparse { values, index, .. } => {
                let found = index.n_cols();
                if found != n_features {
                    return Err(Error::Shape { what: "columns of the weights", expected: n_features, found });
                }
                (values, index.nnz())
            }
        };
        let slice = numbers.slice();
        let found = match slice {
            FloatSlice::F32(list) => list.len(),
            FloatSlice::F64(list) => list.len(),
        };
        if found != expected {
            return Err(Error::Shape { what: "weights", expected, found });
        }
        numbers.verify(0..found)?;
        Ok(Self { weights, numbers: slice, n_features })
    }

    fn number(&self, at: usize) -> f64 {
        match self.numbers {
            FloatSlice::F32(list) => f64::from(list[at]),
            FloatSlice::F64(list) => list[at],
        }
    }

    /// The weights of feature `j`, one per vector.
    fn read(&self, j: usize, row: &mut [f64]) {
        let n = row.len();
        match self.weights {
            WeightVectors::ByLabel(_) => (0..n).for_each(|l| row[l] = self.number(l * self.n_features + j)),
            WeightVectors::ByColumn(_) => (0..n).for_each(|l| row[l] = self.number(j * n + l)),
            WeightVectors::Sparse { index, .. } => {
                row.fill(0.0);
                let (_, labels, positions) = index.column(j);
                labels.iter().zip(positions).for_each(|(l, at)| row[*l as usize] = self.number(*at));
            }
        }
    }
}
