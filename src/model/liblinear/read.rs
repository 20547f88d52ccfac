//! From text to a model.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, json};

use super::{KEYS, METADATA, OTHERS, SOLVERS, SolverType};
use crate::labels::classes::Classes;
use crate::model::answer::ClassRule;
use crate::model::probability::Probability;
use crate::model::weights::{Numbers, WeightVectors};
use crate::model::{Model, ModelRecord};
use crate::{Error, Result, memory, text};

/// Characters of the offending text that an error shows.
const QUOTED_CHARS: usize = 40;

/// How classes are numbered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClassOrder {
    /// By their labels, as in estimators.
    ///
    /// Where the first label of two is the smaller one, weights change their signs, and a decision value of 0
    /// means the second class, as in LIBLINEAR. Of several equally high values the smallest label wins, while
    /// LIBLINEAR takes the one that comes first in the file.
    #[default]
    Sorted,
    /// As the file has them; of two classes the first label is class 1, which positive values stand for.
    /// Every answer is LIBLINEAR's.
    AsInFile,
}

/// Reads a model file; gzip, bzip2 and zstd are recognised, and `-` is standard input.
///
/// # Errors
/// [`Error::Io`], and those of [`parse`].
pub fn read(path: &Path, order: ClassOrder) -> Result<Model> {
    let mut bytes = Vec::new();
    let mut file = text::open(path)?;
    file.read_to_end(&mut bytes).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    parse(&bytes, path, order)
}

/// Makes a model of a text; `path` only names it in errors.
///
/// # Errors
/// [`Error::Text`] where the text is no model of a classifier, with the line and what was expected.
pub fn parse(text: &[u8], path: &Path, order: ClassOrder) -> Result<Model> {
    let mut words = Words { text, at: 0, line: 1, line_start: 0, path };
    let head = Head::read(&mut words)?;
    let weights = head.weights(&mut words)?;
    Ok(head.model(weights, order))
}

/// A word, and where it stands.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a [u8],
    line: u64,
    column: u64,
}

/// What is left of the text.
struct Words<'a> {
    text: &'a [u8],
    at: usize,
    line: u64,
    line_start: usize,
    path: &'a Path,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<Word<'a>> {
        while let Some(byte) = self.text.get(self.at)
            && byte.is_ascii_whitespace()
        {
            self.at += 1;
            if *byte == b'\n' {
                self.line += 1;
                self.line_start = self.at;
            }
        }
        let rest = &self.text[self.at..];
        let length = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        let column = (self.at - self.line_start) as u64 + 1;
        self.at += length;
        (length > 0).then_some(Word { text: &rest[..length], line: self.line, column })
    }

    /// The next word, where one must come.
    fn expect(&mut self, what: &str) -> Result<Word<'a>> {
        match self.next() {
            Some(word) => Ok(word),
            None => Err(self.fail_here(format!("the file ends; expected {what}"))),
        }
    }

    fn fail(&self, word: Word<'_>, reason: String) -> Error {
        Error::Text { path: self.path.to_owned(), line: word.line, column: word.column, reason }
    }

    fn fail_here(&self, reason: String) -> Error {
        let column = (self.at - self.line_start) as u64 + 1;
        Error::Text { path: self.path.to_owned(), line: self.line, column, reason }
    }

    /// The next word as a whole number in a range of C's `int`.
    fn whole(&mut self, key: &str, least: i32) -> Result<i32> {
        let rule = format!("a whole number from {least} to {} after {key}", i32::MAX);
        let word = self.expect(&rule)?;
        let text = str::from_utf8(word.text).ok();
        match text.and_then(|text| text.parse().ok()).filter(|number| *number >= least) {
            Some(number) => Ok(number),
            None => Err(self.fail(word, format!("{}; expected {rule}", quote(word.text)))),
        }
    }

    /// The next word as a finite number.
    fn number(&mut self, what: &str) -> Result<f64> {
        let word = self.expect(what)?;
        match fast_float2::parse::<f64, _>(word.text) {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err(self.fail(word, format!("{}; expected {what}, a finite number", quote(word.text)))),
        }
    }
}

fn quote(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let short: String = text.chars().take(QUOTED_CHARS).collect();
    let dots = if short.len() < text.len() { "..." } else { "" };
    format!("{short:?}{dots}")
}

/// All that stands before the weights.
struct Head {
    solver: SolverType,
    labels: Vec<i64>,
    n_features: usize,
    bias: f64,
}

impl Head {
    fn read(words: &mut Words<'_>) -> Result<Self> {
        let (mut solver, mut labels, mut n_features, mut bias) = (None, None, None, None);
        let mut n_classes = None;
        let mut seen = Vec::new();
        loop {
            let rule = format!("one of the keys {}", KEYS.join(", "));
            let word = words.expect(&rule)?;
            let Some(key) = KEYS.iter().find(|key| key.as_bytes() == word.text) else {
                let reason = format!("{} is no key of a LIBLINEAR model; expected {rule}", quote(word.text));
                return Err(words.fail(word, reason));
            };
            if seen.contains(key) {
                return Err(words.fail(word, format!("{key} comes twice; expected every key once")));
            }
            seen.push(*key);
            match *key {
                "solver_type" => solver = Some(solver_of(words)?),
                "nr_class" => n_classes = Some(words.whole(key, 2)? as usize),
                "nr_feature" => n_features = Some(words.whole(key, 1)? as usize),
                "bias" => bias = Some(words.number("the value of bias")?),
                "rho" => drop(words.number("the value of rho")?), // of one-class models only
                "label" => match n_classes {
                    Some(n) => labels = Some(labels_of(words, n)?),
                    None => return Err(words.fail(word, "label; expected nr_class before it".into())),
                },
                _ => break,
            }
        }
        let missing = |key: &str| words.fail_here(format!("no {key}; expected it before w"));
        Ok(Self {
            solver: solver.ok_or_else(|| missing("solver_type"))?,
            labels: labels.ok_or_else(|| missing("label"))?,
            n_features: n_features.ok_or_else(|| missing("nr_feature"))?,
            bias: bias.ok_or_else(|| missing("bias"))?,
        })
    }

    /// Vectors of weights in the file.
    fn n_columns(&self) -> usize {
        let n = self.labels.len();
        if n == 2 && self.solver != SolverType::McsvmCs { 1 } else { n }
    }

    /// All numbers behind the head: as many as it says, and nothing else.
    fn weights(&self, words: &mut Words<'_>) -> Result<Vec<f64>> {
        let n_lines = self.n_features + usize::from(self.bias >= 0.0);
        let n_columns = self.n_columns();
        let left = words.text.len() - words.at;
        // Two bytes a number: no room is made for what the file cannot hold.
        let n = n_lines.checked_mul(n_columns).filter(|n| *n <= left / 2 + 1);
        let Some(n) = n else {
            let reason = format!(
                "the file ends too early: expected {n_lines} lines of {n_columns} weights, found {left} bytes"
            );
            return Err(words.fail_here(reason));
        };
        let mut weights = memory::with_capacity(n);
        for _ in 0..n {
            weights.push(words.number("a weight")?);
        }
        match words.next() {
            None => Ok(weights),
            Some(word) => {
                let found = quote(word.text);
                let rule =
                    format!("expected the end of the file after {n_lines} lines of {n_columns} weights");
                Err(words.fail(word, format!("{found}; {rule}")))
            }
        }
    }

    fn model(self, mut weights: Vec<f64>, order: ClassOrder) -> Model {
        let n_columns = self.n_columns();
        let is_pair = self.labels.len() == 2;
        let mut answer = if is_pair { ClassRule::Sign } else { ClassRule::Highest };
        let mut labels = self.labels.clone();
        let mut columns: Vec<(usize, f64)> = (0..n_columns).map(|column| (column, 1.0)).collect();
        if is_pair {
            // The second less the first is twice the second where they are opposites; predictions of
            // LIBLINEAR read the first column alone. Twice is exact.
            columns = vec![(0, if n_columns == 2 { 2.0 } else { 1.0 })];
            labels.reverse();
        }
        if order == ClassOrder::Sorted && !labels.is_sorted() {
            if is_pair {
                columns[0].1 = -columns[0].1;
                answer = ClassRule::Threshold(0.0);
            } else {
                columns.sort_by_key(|(column, _)| labels[*column]);
            }
            labels.sort_unstable();
        }
        let is_plain = n_columns == columns.len() && columns.iter().enumerate().all(|(k, c)| *c == (k, 1.0));
        if !is_plain {
            weights = picked(&weights, n_columns, &columns);
        }
        let n_vectors = columns.len();
        let tail = weights.split_off(self.n_features * n_vectors);
        let intercepts =
            if tail.is_empty() { vec![0.0; n_vectors] } else { tail.iter().map(|w| self.bias * w).collect() };
        let numbers = Numbers::F64(Arc::new(weights));
        Model {
            n_features: self.n_features,
            weights: if n_vectors == 1 {
                WeightVectors::ByLabel(numbers)
            } else {
                WeightVectors::ByColumn(numbers)
            },
            intercepts,
            classes: Classes::Int(labels),
            answer,
            probability: self.solver.is_logistic().then_some(Probability::Logistic),
            pairs: None,
            feature_names: None,
            encoder: None,
            record: self.record(),
        }
    }

    /// The estimator that would have such a model, and what the file says beyond it.
    fn record(&self) -> ModelRecord {
        let estimator = if self.solver.is_logistic() { "LogisticRegression" } else { "LinearSVC" };
        let mut parameters = Map::new();
        if !self.solver.is_logistic() {
            parameters.insert("loss".into(), self.solver.loss().into());
        }
        let multi_class = if self.solver == SolverType::McsvmCs { "crammer_singer" } else { "ovr" };
        parameters.insert("multi_class".into(), multi_class.into());
        parameters.insert("fit_intercept".into(), (self.bias > 0.0).into());
        if self.bias > 0.0 {
            parameters.insert("intercept_scaling".into(), self.bias.into());
        }
        let said = json!({"solver_type": self.solver.name(), "bias": self.bias});
        let metadata = Map::from_iter([(METADATA.to_owned(), said)]);
        ModelRecord { estimator: estimator.into(), parameters, metadata, ..ModelRecord::default() }
    }
}

/// Some columns of rows of `n_columns`, each times its factor.
fn picked(weights: &[f64], n_columns: usize, columns: &[(usize, f64)]) -> Vec<f64> {
    let mut out = memory::with_capacity(weights.len() / n_columns * columns.len());
    for row in weights.chunks_exact(n_columns) {
        out.extend(columns.iter().map(|(column, factor)| row[*column] * factor));
    }
    out
}

fn solver_of(words: &mut Words<'_>) -> Result<SolverType> {
    let rule = format!("one of {}", SOLVERS.map(|solver| solver.1).join(", "));
    let word = words.expect(&rule)?;
    let name = String::from_utf8_lossy(word.text);
    if let Some(solver) = SolverType::of_name(&name) {
        return Ok(solver);
    }
    let other = OTHERS.iter().find(|other| other.0 == name);
    let what = other.map_or("no solver of LIBLINEAR 2.50", |other| match other.1 {
        "regression" => "regression, which hinge does not do",
        _ => "a one-class machine, which hinge does not do",
    });
    Err(words.fail(word, format!("{} is {what}; expected {rule}", quote(word.text))))
}

fn labels_of(words: &mut Words<'_>, n: usize) -> Result<Vec<i64>> {
    let mut labels = Vec::new(); // no room ahead for what the file only claims
    for _ in 0..n {
        memory::push(&mut labels, i64::from(words.whole("label", i32::MIN)?));
    }
    let mut sorted = memory::copy(&labels);
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(labels),
        Some(pair) => {
            Err(words.fail_here(format!("label {} comes twice; expected {n} different ones", pair[0])))
        }
    }
}
