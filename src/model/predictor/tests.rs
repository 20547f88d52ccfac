//! Predictions against plain loops over a dense copy of everything.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;

use super::*;
use crate::front::MapSpec;
use crate::labels::classes::Classes;
use crate::labels::inverted_index::InvertedIndex;
use crate::matrix::csr::CsrPieces;
use crate::matrix::dense::DensePieces;
use crate::model::ModelRecord;
use crate::model::answer::ClassRule;
use crate::model::weights::{Lender, Numbers, WeightVectors};

const D: usize = 7;

/// Weights of `k` vectors of `d` numbers, zeros among them.
fn numbers(k: usize, d: usize) -> Vec<f64> {
    let number = |n: usize| ((n * 37 + 11) as f64).sin();
    (0..k * d).map(|n| if n % 3 == 0 { 0.0 } else { f64::from(number(n) as f32) }).collect()
}

/// A model of `k` vectors that lie as `layout` says.
fn model(layout: &str, k: usize, answer: ClassRule, pairs: Option<MapSpec>) -> Model {
    let d = pairs.map_or(D, |pairs| pairs.map(D).unwrap().n_out());
    let w = numbers(k, d);
    let by_column = (0..k * d).map(|n| w[n % k * d + n / k]).collect();
    let weights = match layout {
        "by label" => WeightVectors::ByLabel(Numbers::F64(Arc::new(w))),
        "narrow" => WeightVectors::ByLabel(Numbers::F32(Arc::new(w.iter().map(|w| *w as f32).collect()))),
        "by column" => WeightVectors::ByColumn(Numbers::F64(Arc::new(by_column))),
        "sparse" => sparse(&w, d),
        "lent" => WeightVectors::ByLabel(Numbers::Lent(Arc::new(Lent::of(w)))),
        other => panic!("{other}"),
    };
    let n_classes = if k == 1 && answer != ClassRule::Labels { 2 } else { k };
    Model {
        n_features: D,
        weights,
        intercepts: (0..k).map(|l| 0.25 - l as f64 / 8.0).collect(),
        classes: Classes::Int((0..n_classes as i64).collect()),
        answer,
        probability: Some(Probability::Logistic),
        pairs,
        feature_names: Some((0..D).map(|j| format!("word {j}")).collect()),
        encoder: None,
        record: ModelRecord::default(),
    }
}

fn sparse(w: &[f64], d: usize) -> WeightVectors {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for w in w.chunks(d) {
        indices.extend((0..d as i64).filter(|j| w[*j as usize] != 0.0));
        values.extend(w.iter().filter(|w| **w != 0.0));
        indptr.push(indices.len() as i64);
    }
    let index = InvertedIndex::new(&indptr, &indices, d).unwrap();
    WeightVectors::Sparse { indptr, indices, values: Numbers::F64(Arc::new(values)), index }
}

/// Numbers of which number 5 is damaged.
#[derive(Debug)]
struct Lent {
    numbers: Vec<f64>,
    asked: AtomicUsize,
}

impl Lent {
    fn of(numbers: Vec<f64>) -> Self {
        Self { numbers, asked: AtomicUsize::new(0) }
    }
}

impl Lender for Lent {
    fn numbers(&self) -> FloatSlice<'_> {
        FloatSlice::F64(&self.numbers)
    }
    fn verify(&self, range: Range<usize>) -> Result<()> {
        self.asked.fetch_add(range.len(), Ordering::Relaxed);
        if range.contains(&5) { Err(Error::Labels { reason: "number 5 is damaged".into() }) } else { Ok(()) }
    }
}

/// Rows in CSR form, columns in any order and more than once.
#[derive(Clone, Debug)]
struct Made {
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Vec<f64>,
}

impl Made {
    fn pieces(&self) -> CsrPieces<'_, i32, f64> {
        CsrPieces::new(&self.indptr, &self.indices, &self.values, D).unwrap()
    }
    fn n_rows(&self) -> usize {
        self.indptr.len() - 1
    }
    fn row(&self, i: usize) -> SparseRow<'_, i32, f64> {
        let range = self.indptr[i] as usize..self.indptr[i + 1] as usize;
        SparseRow { indices: &self.indices[range.clone()], values: &self.values[range] }
    }
    fn dense(&self, i: usize) -> [f64; D] {
        let (row, mut dense) = (self.row(i), [0.0; D]);
        row.indices.iter().zip(row.values).for_each(|(j, v)| dense[*j as usize] += v);
        dense
    }
}

fn made() -> impl Strategy<Value = Made> {
    let entry = (0..D as i32, -3.0..3.0f64);
    prop::collection::vec(prop::collection::vec(entry, 0..12), 1..6).prop_map(|rows| {
        let mut made = Made { indptr: vec![0], indices: Vec::new(), values: Vec::new() };
        for row in rows {
            row.iter().for_each(|(j, v)| {
                made.indices.push(*j);
                made.values.push(*v);
            });
            made.indptr.push(made.indices.len() as i64);
        }
        made
    })
}

const PLAIN: MapSpec = MapSpec { gamma: None, coef0: 1.0, has_constant: false, bits: 12, seed: 0 };

/// The features of a row: itself, or by the plain degree-2 map.
fn features(x: &[f64; D], pairs: bool) -> Vec<f64> {
    let mut features = x.to_vec();
    for j in 0..if pairs { D } else { 0 } {
        features.extend((j..D).map(|k| x[j] * x[k]));
    }
    features
}

fn all(predictor: &Predictor, x: &impl ModelRows) -> (Vec<f64>, Vec<u32>, Vec<f64>) {
    let (n, width) = (x.n_rows(), predictor.outputs().n_probabilities());
    let (mut classes, mut p) = (vec![0; n], vec![0.0; n * width]);
    predictor.fill(x, &Silent, Part::Classes(&mut classes)).unwrap();
    predictor.fill(x, &Silent, Part::Probabilities(&mut p)).unwrap();
    (predictor.decision_values(x, &Silent).unwrap(), classes, p)
}

proptest! {
    #[test]
    fn predictions_are_those_of_plain_loops(rows in made()) {
        for (layout, pairs) in [
            ("by label", None), ("narrow", None), ("by column", None), ("sparse", None),
            ("by label", Some(PLAIN)), ("narrow", Some(PLAIN)), ("by column", Some(PLAIN)),
        ] {
            for k in [1, 3] {
                let answer = if k == 1 { ClassRule::Sign } else { ClassRule::Highest };
                let predictor = Predictor::new(model(layout, k, answer, pairs)).unwrap();
                let x = rows.pieces();
                let (values, classes, p) = all(&predictor, &x);
                let width = predictor.outputs().n_probabilities();
                for i in 0..rows.n_rows() {
                    let features = features(&rows.dense(i), pairs.is_some());
                    let w = numbers(k, features.len());
                    for l in 0..k {
                        let w = &w[l * features.len()..];
                        let plain: f64 = features.iter().zip(w).map(|(x, w)| x * w).sum::<f64>();
                        let plain = plain + predictor.model().intercepts[l];
                        prop_assert!((values[i * k + l] - plain).abs() < 1e-11, "{layout}");
                    }
                    // A row alone: the same bits.
                    let mut alone = vec![f64::NAN; k];
                    predictor.decide_row(rows.row(i), &mut alone).unwrap();
                    prop_assert_eq!(&alone, &values[i * k..(i + 1) * k]);
                    let (mut class, mut shares) = ([0], vec![0.0; width]);
                    predictor.answer(&alone, Part::Classes(&mut class)).unwrap();
                    predictor.answer(&alone, Part::Probabilities(&mut shares)).unwrap();
                    prop_assert_eq!(class[0], classes[i]);
                    prop_assert_eq!(&shares, &p[i * width..(i + 1) * width]);
                    let best = if k == 1 { u32::from(alone[0] > 0.0) } else {
                        (0..3).rev().max_by(|a, b| alone[*a].total_cmp(&alone[*b])).unwrap() as u32
                    };
                    prop_assert_eq!(classes[i], best);
                }
                if predictor.has_parts() {
                    let n = rows.n_rows();
                    let mut parts = vec![f64::NAN; n * k];
                    for i in 0..n {
                        let out = Part::Decisions(&mut parts[i * k..(i + 1) * k]);
                        predictor.fill_part(&x, i..i + 1, out).unwrap();
                    }
                    prop_assert_eq!(parts, values);
                }
            }
        }
    }

    #[test]
    fn labels_and_best_classes_are_those_of_the_values(rows in made()) {
        for (layout, pairs) in [("by label", None), ("sparse", None), ("by label", Some(PLAIN))] {
            let predictor = Predictor::new(model(layout, 4, ClassRule::Labels, pairs)).unwrap();
            let x = rows.pieces();
            let values = predictor.decision_values(&x, &Silent).unwrap();
            let (starts, labels) = predictor.positive_labels(&x, &Silent).unwrap();
            let (top, best) = predictor.top_k(&x, 2, &Silent).unwrap();
            prop_assert_eq!(predictor.top_k_of(&values, 2).unwrap(), (top.clone(), best.clone()));
            for (i, values) in values.chunks(4).enumerate() {
                let positive: Vec<i32> = (0..4).filter(|l| values[*l as usize] > 0.0).collect();
                prop_assert_eq!(&labels[starts[i] as usize..starts[i + 1] as usize], positive);
                let mut sorted = values.to_vec();
                sorted.sort_by(|a, b| b.total_cmp(a));
                prop_assert_eq!(&best[2 * i..2 * i + 2], &sorted[..2]);
                prop_assert!((0..2).all(|r| values[top[2 * i + r] as usize] == best[2 * i + r]));
            }
            prop_assert!(predictor.fill(&x, &Silent, Part::Classes(&mut vec![0; rows.n_rows()])).is_err());
        }
    }
}

/// Any number of threads may ask.
#[test]
fn a_predictor_is_shared() {
    fn shared<T: Send + Sync>() {}
    shared::<Predictor>();
}

#[test]
fn a_row_verifies_what_it_reads_and_a_batch_everything() {
    let predictor = Predictor::new(model("lent", 1, ClassRule::Sign, None)).unwrap();
    let mut out = [0.0];
    predictor.decide_row(SparseRow { indices: &[0i32, 4, 6], values: &[1.0f64; 3] }, &mut out).unwrap();
    let row = SparseRow { indices: &[1i32, 5], values: &[1.0f64; 2] };
    assert!(predictor.decide_row(row, &mut out).unwrap_err().to_string().contains("number 5 is damaged"));
    assert!(predictor.verify().is_err());
    // Rows that are not in the matrix are refused before anything is looked up.
    let outside = SparseRow { indices: &[5i32, 7], values: &[1.0f64; 2] };
    assert!(predictor.decide_row(outside, &mut out).unwrap_err().to_string().contains("column index 7"));
    let x = DensePieces::new(&[0.5; 2 * D], 2, D).unwrap();
    assert!(predictor.decision_values(&x, &Silent).is_err());
    assert!(Predictor::new(model("lent", 1, ClassRule::Sign, Some(PLAIN))).is_ok());
    let many = Made { indptr: vec![0, 2, 3], indices: vec![0, 1, 2], values: vec![1.0; 3] };
    assert!(predictor.decision_values(&many.pieces(), &Silent).is_ok());
}

#[test]
fn unusable_rows_are_refused() {
    for pairs in [None, Some(PLAIN)] {
        let predictor = Predictor::new(model("by label", 1, ClassRule::Sign, pairs)).unwrap();
        let error = |indices: &[i64], values: &[f32]| {
            predictor.decide_row(SparseRow { indices, values }, &mut [0.0]).unwrap_err().to_string()
        };
        assert!(error(&[7], &[1.0]).contains("column index 7 is outside 0..7"));
        assert!(error(&[-1], &[1.0]).contains("column index -1 is outside 0..7"));
        assert!(error(&[2], &[f32::NAN]).contains("contains NaN in row 0, column 2"));
        assert!(error(&[2, 3], &[1.0]).contains("expected 2, got 1"));
        let narrow = DensePieces::new(&[1.0; 3], 1, 3).unwrap();
        let error = predictor.decision_values(&narrow, &Silent).unwrap_err().to_string();
        assert!(error.contains("columns of X: expected 7, got 3"), "{error}");
        let sum = SparseRow { indices: &[1i32, 1], values: &[f64::MAX; 2] };
        assert!(predictor.decide_row(sum, &mut [0.0]).unwrap_err().to_string().contains("infinity"));
    }
}

#[test]
fn names_lead_to_columns() {
    let predictor = Predictor::new(model("by label", 1, ClassRule::Sign, None)).unwrap();
    assert_eq!(predictor.column("word 3", UnknownNames::Error).unwrap(), Some(3));
    assert_eq!(predictor.column("word 7", UnknownNames::Ignore).unwrap(), None);
    let error = predictor.column("word 7", UnknownNames::default()).unwrap_err().to_string();
    assert!(error.contains("feature \"word 7\" is not among the 7 features"), "{error}");
    let mut nameless = model("by label", 1, ClassRule::Sign, None);
    nameless.feature_names = None;
    let error = Predictor::new(nameless).unwrap().column("word", UnknownNames::Ignore).unwrap_err();
    assert!(error.to_string().contains("one that has names of features"), "{error}");
    let mut twice = model("by label", 1, ClassRule::Sign, None);
    twice.feature_names = Some(vec!["same".into(); D]);
    let error = Predictor::new(twice).unwrap().column("other", UnknownNames::Ignore).unwrap_err();
    assert!(error.to_string().contains("feature \"same\" is the name of the columns 0 and 1"), "{error}");
}

#[test]
fn what_a_model_does_not_have_is_said() {
    let mut without = model("by label", 1, ClassRule::Sign, None);
    without.probability = None;
    without.record.estimator = "LinearSVC".into();
    let predictor = Predictor::new(without).unwrap();
    let error = predictor.answer(&[0.0], Part::Probabilities(&mut [0.0; 2])).unwrap_err().to_string();
    assert!(error.contains("one that has probabilities, got a LinearSVC without"), "{error}");
    assert!(predictor.top_k_of(&[0.0], 1).is_err());
    assert!(predictor.answer(&[0.0], Part::Classes(&mut [0; 2])).is_err());
    let mut misfit = model("by label", 3, ClassRule::Highest, None);
    misfit.intercepts.pop();
    assert!(Predictor::new(misfit).is_err());
}
