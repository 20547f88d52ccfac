//! A model that answers: decision values, classes, probabilities, the best of many classes.
//!
//! A [`Predictor`] never changes, and any number of threads may ask it at once. A row has the same bits
//! alone, in any batch and with any number of threads. The calls for one row ([`Predictor::decide_row`] and
//! what is like it) work on the calling thread and allocate nothing for models of degree 1; they read, and of
//! a mapped file verify, no more than the weights of the row's entries. Batches are shared among the threads
//! of the pool that the caller is in.

use std::ops::Range;
use std::sync::OnceLock;

use super::Model;
use super::check::Flaw;
use super::probability::{Outputs, Probability};
use super::rows::{ModelRows, RisingRows, SparseRow, whole};
use crate::fit::sweep::Sweep;
use crate::fit::{Monitor, Silent, check_length};
use crate::front::Checked;
use crate::labels::scores::{self, FloatSlice, ModelWeights, Scorer};
use crate::matrix::design::Design;
use crate::matrix::pieces::Finite;
use crate::matrix::{Index, Rows, Value};
use crate::memory::CollectLarge;
use crate::names::{NameKey, NameTable};
use crate::pairs::Poly2;
use crate::pairs::map::Map;
use crate::{Error, Result, memory, parallel};

/// Products per parallel task.
const PART_PRODUCTS: usize = 1 << 18;
/// Decision values that are held per thread where something else is wanted.
const HELD_VALUES: usize = 1 << 14;

/// A model that is ready to answer.
#[derive(Debug)]
pub struct Predictor {
    model: Model,
    outputs: Outputs,
    pairs: Option<Pairs>,
    names: OnceLock<std::result::Result<NameTable, (String, String)>>,
}

/// The degree-2 map of a model.
#[derive(Debug)]
struct Pairs {
    map: Map,
    /// The weights, vector after vector, where they do not lie so in double precision.
    weights: Option<Vec<f64>>,
}

/// What to do with a feature that the model does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownNames {
    /// It is an error: a name that is spelled otherwise would change the answer without a word.
    #[default]
    Error,
    /// It counts nothing, as a word that was not in the training data.
    Ignore,
}

impl Predictor {
    /// Makes a model ready.
    ///
    /// # Errors
    /// Parts that do not fit each other; a file of damaged weights, for degree 2 where they do not lie vector
    /// after vector in double precision.
    pub fn new(model: Model) -> std::result::Result<Self, Flaw> {
        model.check()?;
        let outputs = model.answer.outputs(model.n_vectors());
        let pairs = match model.pairs {
            None => None,
            Some(spec) => {
                let map = spec.map(model.n_features);
                let map =
                    map.map_err(|error| Flaw { field: "pairs".to_owned(), reason: error.to_string() })?;
                let weights = by_vector(&model, map.n_out());
                let weights =
                    weights.map_err(|error| Flaw { field: "coef".to_owned(), reason: error.to_string() })?;
                Some(Pairs { map, weights })
            }
        };
        Ok(Self { model, outputs, pairs, names: OnceLock::new() })
    }

    /// The model.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// What the decision values of a row stand for.
    pub fn outputs(&self) -> Outputs {
        self.outputs
    }

    /// Makes sure that all weights are what was written; only those of a mapped file may not be.
    ///
    /// # Errors
    /// Damage.
    pub fn verify(&self) -> Result<()> {
        self.model.weights.verify()
    }

    fn scorer(&self) -> Scorer<'_> {
        Scorer { weights: self.model.weights.borrowed(), intercept: &self.model.intercepts }
    }

    fn probability(&self) -> Result<&Probability> {
        let (name, rule) = ("model", "one that has probabilities");
        let none =
            || Error::Parameter { name, value: format!("a {} without", self.model.record.estimator), rule };
        self.model.probability.as_ref().ok_or_else(none)
    }

    /// Products and sums that predictions of these rows take, about; for degree 2 as if rows were equally
    /// long.
    pub fn products<P: ModelRows>(&self, x: &P) -> usize {
        let products = self.scorer().products(x);
        let length = x.n_entries() / x.n_rows().max(1);
        if self.pairs.is_some() { products.saturating_mul(length / 2 + 1) } else { products }
    }

    /// Whether [`Self::fill_part`] takes parts of a batch of several rows.
    pub fn has_parts(&self) -> bool {
        self.pairs.is_none()
    }

    /// Decision values of all rows, a number per vector of weights, row after row.
    ///
    /// # Errors
    /// Those of [`Scorer::decisions`]; damage of a mapped file; for degree 2 also [`Error::Scale`].
    pub fn decision_values<P: ModelRows>(&self, x: &P, monitor: &dyn Monitor) -> Result<Vec<f64>> {
        let mut out = memory::zeros(x.n_rows() * self.outputs.n_values());
        self.decide(x, monitor, &mut out)?;
        Ok(out)
    }

    /// [`Self::decision_values`] into a slice of theirs.
    ///
    /// # Errors
    /// Those of [`Self::decision_values`]; `out` may then be written in part.
    pub fn decide<P: ModelRows>(&self, x: &P, monitor: &dyn Monitor, out: &mut [f64]) -> Result<()> {
        self.check_rows(x)?;
        check_length("decision values", x.n_rows() * self.outputs.n_values(), out.len())?;
        if let Some(pairs) = &self.pairs {
            return self.decide_pairs(pairs, x.checked()?, monitor, out);
        }
        self.verify_for(x)?;
        self.scorer().decisions_into(x, Finite::Required, monitor, out)
    }

    fn check_rows<P: ModelRows>(&self, x: &P) -> Result<()> {
        check_length("columns of X", self.model.n_features, x.n_cols())
    }

    /// Makes sure of the weights that a batch needs: all of them, unless it is small.
    ///
    /// # Errors
    /// Damage, unusable rows.
    pub fn verify_for<P: ModelRows>(&self, x: &P) -> Result<()> {
        self.check_rows(x)?;
        if self.model.weights.numbers().is_verified() {
            return Ok(());
        }
        if self.pairs.is_none() && self.scorer().is_small(x) {
            return self.model.weights.verify_for(&whole(x)?, self.outputs.n_values());
        }
        self.verify()
    }

    /// Answers for some of the rows on this thread; [`Self::verify_for`] comes first.
    ///
    /// # Errors
    /// Those of [`crate::matrix::pieces::CheckedRows::piece`].
    ///
    /// # Panics
    /// If the slice is not as long as the rows need, for a model without [`Self::has_parts`], and where
    /// classes are asked of a model of labels.
    pub fn fill_part<P: ModelRows>(&self, x: &P, rows: Range<usize>, out: Part<'_>) -> Result<()> {
        assert!(self.has_parts(), "features of degree 2 are made for all rows");
        let (scorer, k) = (self.scorer(), self.outputs.n_values());
        let out = match out {
            Part::Decisions(out) => return scorer.fill(x, rows, Finite::Required, out),
            out => out,
        };
        let block = (HELD_VALUES / k).clamp(1, rows.len().max(1));
        let mut values = memory::zeros(block * k);
        let mut out = out;
        for start in rows.clone().step_by(block) {
            let piece = start..(start + block).min(rows.end);
            let values = &mut values[..piece.len() * k];
            scorer.fill(x, piece.clone(), Finite::Required, values)?;
            let at = piece.start - rows.start..piece.end - rows.start;
            self.answer(values, out.part(at, self.outputs.n_probabilities()))?;
        }
        Ok(())
    }

    /// Answers for rows of decision values, on this thread.
    ///
    /// # Errors
    /// [`Error::Parameter`] for what the model does not have, [`Error::Shape`] for lengths that do not fit.
    pub fn answer(&self, values: &[f64], out: Part<'_>) -> Result<()> {
        let k = self.outputs.n_values();
        let n = values.len() / k;
        check_length("decision values, in whole rows", n * k, values.len())?;
        let n_probabilities = n * self.outputs.n_probabilities();
        match out {
            Part::Decisions(out) => {
                check_length("decision values", values.len(), out.len())?;
                out.copy_from_slice(values);
            }
            Part::Classes(out) => {
                check_length("classes", n, out.len())?;
                self.check_single()?;
                let rows = values.chunks_exact(k);
                out.iter_mut().zip(rows).for_each(|(out, values)| *out = self.class_of(values));
            }
            Part::Probabilities(out) => {
                check_length("probabilities", n_probabilities, out.len())?;
                self.probability()?.fill(self.outputs, values, out);
            }
            Part::Logarithms(out) => {
                check_length("logarithms of probabilities", n_probabilities, out.len())?;
                self.probability()?.fill_logarithms(self.outputs, values, out);
            }
        }
        Ok(())
    }

    /// Answers for all rows, shared among the threads of the pool that the caller is in.
    ///
    /// # Errors
    /// Those of [`Self::decision_values`] and [`Self::answer`].
    pub fn fill<P: ModelRows>(&self, x: &P, monitor: &dyn Monitor, out: Part<'_>) -> Result<()> {
        let mut out = match out {
            Part::Decisions(out) => return self.decide(x, monitor, out),
            out => out,
        };
        let (n, k) = (x.n_rows(), self.outputs.n_values());
        if !self.has_parts() {
            return self.answer(&self.decision_values(x, monitor)?, out);
        }
        self.verify_for(x)?;
        let rows = (PART_PRODUCTS / (self.products(x) / n.max(1)).max(1)).clamp(1, n.max(1));
        let mut parts = Vec::with_capacity(n.div_ceil(rows));
        let width = self.outputs.n_probabilities();
        for start in (0..n).step_by(rows) {
            let count = rows.min(n - start);
            let (part, rest) = out.split(count, width);
            parts.push((start..start + count, part));
            out = rest;
        }
        debug_assert!(k > 0);
        let task = |_, (rows, part)| monitor.poll().and_then(|()| self.fill_part(x, rows, part));
        parallel::try_map(parts, task).map(|_| ())
    }

    /// Decision values of the degree-2 features of the rows.
    fn decide_pairs(
        &self,
        pairs: &Pairs,
        checked: Checked<'_>,
        monitor: &dyn Monitor,
        out: &mut [f64],
    ) -> Result<()> {
        self.verify()?;
        let rising = RisingRows::of(&checked.rows);
        let Checked { rows, structure } = rising.as_ref().map_or(Ok(checked), RisingRows::checked)?;
        structure.check_solvable()?;
        let poly = Poly2::new(rows, &pairs.map)?;
        let weights = match (&pairs.weights, self.model.weights.borrowed()) {
            (Some(weights), _) => weights,
            (None, ModelWeights::ByLabel(FloatSlice::F64(weights))) => weights,
            (None, _) => unreachable!("other weights were copied when the predictor was made"),
        };
        let (n, k) = (poly.n_rows(), self.model.n_vectors());
        let vectors = weights.chunks_exact(pairs.map.n_out()).zip(&self.model.intercepts).enumerate();
        if n == 1 {
            vectors.for_each(|(l, (w, b))| out[l] = poly.dot(0, w) + b);
            return Ok(());
        }
        let rows = poly.into();
        let sweep: Sweep<'_> = Sweep::new(Design { rows: &rows, ids: None, bias: 0.0 }, monitor);
        let mut column = memory::zeros::<[f64; 1]>(n);
        for (l, (w, b)) in vectors {
            sweep.decisions(w.as_chunks().0, &mut column);
            monitor.poll()?;
            column.iter().enumerate().for_each(|(i, [v])| out[i * k + l] = *v + b);
        }
        Ok(())
    }

    /// Decision values of one row into `out`, one per vector of weights.
    ///
    /// # Errors
    /// Those of [`Self::decision_values`], and [`Error::Shape`] for another number of values than of indices.
    pub fn decide_row<I: Index, V: Value>(&self, row: SparseRow<'_, I, V>, out: &mut [f64]) -> Result<()>
    where
        for<'a> crate::matrix::csr::CsrPieces<'a, I, V>: ModelRows,
    {
        check_length("decision values", self.outputs.n_values(), out.len())?;
        row.with(self.model.n_features, |x| {
            if let Some(pairs) = &self.pairs {
                return self.decide_pairs(pairs, x.checked()?, &Silent, out);
            }
            let rows = whole(x)?;
            self.model.weights.verify_for(&rows, out.len())?;
            self.scorer().fill_checked(&rows, out);
            Ok(())
        })
    }

    /// The columns of the features by their names; made when it is first asked for.
    ///
    /// # Errors
    /// [`Error::Feature`] for a model in which a name stands twice; [`Error::Parameter`] for one without
    /// names.
    pub fn names(&self) -> Result<&NameTable> {
        let Some(names) = &self.model.feature_names else {
            let value = "one without, pass column numbers".to_owned();
            return Err(Error::Parameter {
                name: "the model",
                value,
                rule: "one that has names of features",
            });
        };
        let made = self.names.get_or_init(|| {
            NameTable::new(names).map_err(|error| match error {
                Error::Feature { name, reason } => (name, reason),
                error => (names.first().cloned().unwrap_or_default(), error.to_string()),
            })
        });
        made.as_ref().map_err(|(name, reason)| Error::Feature { name: name.clone(), reason: reason.clone() })
    }

    /// The column of a feature; `None` for one that is to be ignored.
    ///
    /// # Errors
    /// Those of [`Self::names`], and [`Error::Feature`] for a name that the model does not have.
    pub fn column(&self, name: &str, unknown: UnknownNames) -> Result<Option<u32>> {
        match (self.names()?.column(NameKey::of(name)), unknown) {
            (None, UnknownNames::Error) => {
                let n = self.model.n_features;
                let reason = format!(
                    "is not among the {n} features of the model: check its spelling, or have unknown names \
                     ignored"
                );
                Err(Error::Feature { name: name.into(), reason })
            }
            (found, _) => Ok(found),
        }
    }

    /// Number of the class of one row of decision values.
    fn class_of(&self, values: &[f64]) -> u32 {
        let probability = self.model.probability.as_ref();
        self.model.answer.class(self.outputs, probability, values) as u32
    }

    fn check_single(&self) -> Result<()> {
        if let Outputs::Labels(_) = self.outputs {
            let value = "one of labels, of which a row may have any number".to_owned();
            return Err(Error::Parameter { name: "model", value, rule: "one of classes" });
        }
        Ok(())
    }

    /// Number of rows of some decision values.
    fn check_values(&self, values: &[f64]) -> Result<usize> {
        let k = self.outputs.n_values();
        check_length("decision values, in whole rows", values.len() / k * k, values.len())?;
        Ok(values.len() / k)
    }

    /// The labels with a positive decision value: where those of each row begin, one number more than there
    /// are rows, and the labels.
    ///
    /// # Errors
    /// Those of [`Self::decision_values`].
    pub fn positive_labels<P: ModelRows>(
        &self,
        x: &P,
        monitor: &dyn Monitor,
    ) -> Result<(Vec<i64>, Vec<i32>)> {
        self.check_rows(x)?;
        if self.pairs.is_some() {
            let (counts, labels) =
                scores::positive(&self.decision_values(x, monitor)?, self.outputs.n_values());
            let mut starts = memory::zeros(counts.len() + 1);
            counts.iter().enumerate().for_each(|(i, count)| starts[i + 1] = starts[i] + *count as i64);
            return Ok((starts, labels));
        }
        self.verify_for(x)?;
        self.scorer().positive(x, Finite::Required, monitor)
    }

    /// Labels and decision values of the `k` highest of each row, highest first, equal ones by label.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a `k` that is 0 or above the number of classes, or a model of one vector;
    /// those of [`Self::decision_values`].
    pub fn top_k<P: ModelRows>(
        &self,
        x: &P,
        k: usize,
        monitor: &dyn Monitor,
    ) -> Result<(Vec<u32>, Vec<f64>)> {
        self.check_k(k)?;
        self.check_rows(x)?;
        if self.pairs.is_some() {
            return Ok(best(&self.decision_values(x, monitor)?, self.outputs.n_values(), k));
        }
        self.verify_for(x)?;
        self.scorer().top_k(x, k, Finite::Required, monitor)
    }

    /// [`Self::top_k`] of rows whose decision values are known.
    ///
    /// # Errors
    /// [`Error::Parameter`] and [`Error::Shape`].
    pub fn top_k_of(&self, values: &[f64], k: usize) -> Result<(Vec<u32>, Vec<f64>)> {
        self.check_k(k)?;
        self.check_values(values)?;
        Ok(best(values, self.outputs.n_values(), k))
    }

    fn check_k(&self, k: usize) -> Result<()> {
        let n = self.outputs.n_values();
        if self.outputs == Outputs::Pair || n == 1 {
            let value = "one of one vector of weights".to_owned();
            let rule = "one of more than 2 classes, or of labels";
            return Err(Error::Parameter { name: "model", value, rule });
        }
        if k == 0 || k > n {
            let rule = "at least 1 and at most the number of classes";
            return Err(Error::Parameter { name: "k", value: k.to_string(), rule });
        }
        Ok(())
    }
}

/// Where answers for rows go, row after row.
pub enum Part<'a> {
    /// Decision values, a number per vector of weights.
    Decisions(&'a mut [f64]),
    /// Numbers of the classes.
    Classes(&'a mut [u32]),
    /// Probabilities, a number per class or label.
    Probabilities(&'a mut [f64]),
    /// Logarithms of the probabilities.
    Logarithms(&'a mut [f64]),
}

impl<'a> Part<'a> {
    /// The places of some rows, where a row has so many numbers (one, for classes).
    fn part(&mut self, rows: Range<usize>, width: usize) -> Part<'_> {
        let numbers = rows.start * width..rows.end * width;
        match self {
            Self::Decisions(out) => Part::Decisions(&mut out[numbers]),
            Self::Classes(out) => Part::Classes(&mut out[rows]),
            Self::Probabilities(out) => Part::Probabilities(&mut out[numbers]),
            Self::Logarithms(out) => Part::Logarithms(&mut out[numbers]),
        }
    }

    /// The places of the first rows, and of the others.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub fn split(self, rows: usize, width: usize) -> (Part<'a>, Part<'a>) {
        let pair = |kind: fn(&'a mut [f64]) -> Part<'a>, out: &'a mut [f64]| {
            let (first, rest) = out.split_at_mut(rows * width);
            (kind(first), kind(rest))
        };
        match self {
            Self::Decisions(out) => pair(Part::Decisions, out),
            Self::Probabilities(out) => pair(Part::Probabilities, out),
            Self::Logarithms(out) => pair(Part::Logarithms, out),
            Self::Classes(out) => {
                let (first, rest) = out.split_at_mut(rows);
                (Part::Classes(first), Part::Classes(rest))
            }
        }
    }
}

fn best(values: &[f64], n: usize, k: usize) -> (Vec<u32>, Vec<f64>) {
    let found = scores::highest(values, n, k);
    (found.iter().map(|f| f.0).collect_large(), found.iter().map(|f| f.1).collect_large())
}

/// The weights of a degree-2 model, vector after vector in double precision; none where they lie so already.
fn by_vector(model: &Model, n_weights: usize) -> Result<Option<Vec<f64>>> {
    let k = model.intercepts.len();
    let at = |w: FloatSlice<'_>, at: usize| match w {
        FloatSlice::F32(w) => f64::from(w[at]),
        FloatSlice::F64(w) => w[at],
    };
    Ok(match model.weights.borrowed() {
        ModelWeights::ByLabel(FloatSlice::F64(_)) | ModelWeights::Sparse { .. } => None,
        ModelWeights::ByLabel(w) => {
            model.weights.verify()?;
            Some((0..k * n_weights).map(|n| at(w, n)).collect_large())
        }
        ModelWeights::ByColumn(w) => {
            model.weights.verify()?;
            Some((0..k * n_weights).map(|n| at(w, n % n_weights * k + n / n_weights)).collect_large())
        }
    })
}

#[cfg(test)]
mod tests;
