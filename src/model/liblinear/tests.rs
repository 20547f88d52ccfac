//! Files of LIBLINEAR 2.50, by hand and drawn at random.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::durable::target::Replace;
use crate::labels::classes::Classes;
use crate::labels::inverted_index::InvertedIndex;
use crate::labels::scores::FloatSlice;
use crate::model::Model;
use crate::model::answer::ClassRule;
use crate::model::probability::{Line, Probability};
use crate::model::weights::{Numbers, WeightVectors};
use crate::{Error, Result};

/// `train -s 0 -B 1` of LIBLINEAR 2.50 on four rows.
const EXAMPLE: &str = "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias 1\nw\n\
                       -0.40849149918888661 \n0.84449140914592358 \n-0.3022390713317411 \n\
                       -0.12887166023329866 \n";

fn parsed(text: &str, order: ClassOrder) -> Result<Model> {
    parse(text.as_bytes(), Path::new("m"), order)
}

fn text_of(model: &Model, options: &WriteOptions) -> Result<String> {
    let mut text = Vec::new();
    write(model, options, &mut |bytes| {
        text.extend_from_slice(bytes);
        Ok(())
    })?;
    Ok(String::from_utf8(text).unwrap())
}

/// Weights column after column, one per vector.
fn weights(model: &Model) -> Vec<f64> {
    let (WeightVectors::ByLabel(numbers) | WeightVectors::ByColumn(numbers)) = &model.weights else {
        panic!("dense")
    };
    match numbers.slice() {
        FloatSlice::F64(list) => list.to_vec(),
        FloatSlice::F32(_) => panic!("double precision"),
    }
}

/// The class of a row by LIBLINEAR's rules, from the text alone.
fn liblinear_class(text: &str, row: &[f64]) -> i64 {
    let value = |key: &str| text.split(key).nth(1).unwrap().split_whitespace().next().unwrap();
    let n: usize = value("nr_class ").parse().unwrap();
    let bias: f64 = value("bias ").parse().unwrap();
    let after_label = text.split("label ").nth(1).unwrap();
    let labels: Vec<i64> =
        after_label.split_whitespace().take(n).map(|label| label.parse().unwrap()).collect();
    let n_columns = if n == 2 && value("solver_type ") != "MCSVM_CS" { 1 } else { n };
    let w: Vec<f64> =
        text.split("\nw\n").nth(1).unwrap().split_whitespace().map(|w| w.parse().unwrap()).collect();
    let row: Vec<f64> = row.iter().copied().chain((bias >= 0.0).then_some(bias)).collect();
    let values: Vec<f64> =
        (0..n_columns).map(|k| row.iter().enumerate().map(|(j, x)| x * w[j * n_columns + k]).sum()).collect();
    if n == 2 {
        return labels[usize::from(values[0] <= 0.0)];
    }
    labels[(0..n).fold(0, |best, k| if values[k] > values[best] { k } else { best })]
}

/// The class of a row by the rules of [`ClassRule`].
fn class(model: &Model, row: &[f64]) -> i64 {
    let (w, n) = (weights(model), model.intercepts.len());
    let values: Vec<f64> = (0..n)
        .map(|k| row.iter().enumerate().map(|(j, x)| x * w[j * n + k]).sum::<f64>() + model.intercepts[k])
        .collect();
    let id = match &model.answer {
        ClassRule::Sign => usize::from(values[0] > 0.0),
        ClassRule::Threshold(least) => usize::from(values[0] >= *least),
        ClassRule::Highest => (0..n).fold(0, |best, k| if values[k] > values[best] { k } else { best }),
        other => panic!("{other:?}"),
    };
    let Classes::Int(classes) = &model.classes else { panic!("integers") };
    classes[id]
}

#[test]
fn the_example_is_read_and_written_back() {
    let model = parsed(EXAMPLE, ClassOrder::Sorted).unwrap();
    assert_eq!(
        weights(&model),
        [-0.408_491_499_188_886_6, 0.844_491_409_145_923_6, -0.302_239_071_331_741_1]
    );
    assert_eq!(model.intercepts, [-0.128_871_660_233_298_66]);
    assert_eq!(model.classes, Classes::Int(vec![-1, 1]));
    assert_eq!((&model.answer, &model.probability), (&ClassRule::Sign, &Some(Probability::Logistic)));
    assert_eq!((model.n_features, model.record.estimator.as_str()), (3, "LogisticRegression"));
    assert_eq!(text_of(&model, &WriteOptions::default()).unwrap(), EXAMPLE);
}

#[test]
fn keys_come_in_any_order_and_blanks_do_not_matter() {
    let text =
        "bias -1\tnr_class 3\r\n label 4 -2\n7 rho 0.5 solver_type\n\nL2R_L2LOSS_SVC nr_feature 1 w 1 2\n.5";
    let model = parsed(text, ClassOrder::Sorted).unwrap();
    assert_eq!((&model.classes, weights(&model)), (&Classes::Int(vec![-2, 4, 7]), vec![2.0, 1.0, 0.5]));
    let model = parsed(text, ClassOrder::AsInFile).unwrap();
    assert_eq!((&model.classes, weights(&model)), (&Classes::Int(vec![4, -2, 7]), vec![1.0, 2.0, 0.5]));
    assert_eq!(model.record.parameters["loss"], "squared_hinge");
}

#[test]
fn the_sign_of_two_classes_is_that_of_the_second() {
    let text = EXAMPLE.replace("label 1 -1", "label 3 8");
    let model = parsed(&text, ClassOrder::Sorted).unwrap();
    assert_eq!(
        (model.classes.clone(), model.answer.clone()),
        (Classes::Int(vec![3, 8]), ClassRule::Threshold(0.0))
    );
    assert_eq!(
        (weights(&model)[0], model.intercepts[0]),
        (0.408_491_499_188_886_6, 0.128_871_660_233_298_66)
    );
    assert_eq!(text_of(&model, &WriteOptions::default()).unwrap(), text);
    let model = parsed(&text, ClassOrder::AsInFile).unwrap();
    assert_eq!((&model.classes, &model.answer), (&Classes::Int(vec![8, 3]), &ClassRule::Sign));
    assert_eq!(text_of(&model, &WriteOptions::default()).unwrap(), text);
}

#[test]
fn crammer_and_singer_have_two_columns_for_two_classes() {
    let text =
        "solver_type MCSVM_CS\nnr_class 2\nlabel 3 5\nnr_feature 2\nbias -1\nw\n1.25 -1.25 \n-0.5 0.5 \n";
    let model = parsed(text, ClassOrder::Sorted).unwrap();
    assert_eq!((weights(&model), model.intercepts.len()), (vec![-2.5, 1.0], 1));
    assert_eq!(model.record.parameters["multi_class"], "crammer_singer");
    assert_eq!(text_of(&model, &WriteOptions::default()).unwrap(), text);
}

#[test]
fn the_height_of_the_bias_is_kept_where_nothing_is_lost() {
    let with = |bias: f64, weight: f64| {
        EXAMPLE
            .replace("bias 1", &format!("bias {bias}"))
            .replace("-0.12887166023329866", &weight.to_string())
    };
    let text = with(2.5, -0.5);
    let model = parsed(&text, ClassOrder::Sorted).unwrap();
    assert_eq!(model.intercepts, [-1.25]);
    assert_eq!(text_of(&model, &WriteOptions::default()).unwrap(), text);
    // A feature that is always 0 says nothing.
    let model = parsed(&with(0.0, 7.5), ClassOrder::Sorted).unwrap();
    assert_eq!(model.intercepts, [0.0]);
    assert!(text_of(&model, &WriteOptions::default()).unwrap().contains("bias -1\n"));
}

#[test]
fn damage_is_named_with_its_line() {
    for (from, to, expected) in [
        ("L2R_LR", "L2R_L1LOSS_SVR_DUAL", "m, line 1, column 13: \"L2R_L1LOSS_SVR_DUAL\" is regression"),
        ("L2R_LR", "ONECLASS_SVM", "line 1, column 13: \"ONECLASS_SVM\" is a one-class machine"),
        (
            "L2R_LR",
            "L9",
            "\"L9\" is no solver of LIBLINEAR 2.50; expected one of L2R_LR, L2R_L2LOSS_SVC_DUAL",
        ),
        (
            "nr_class 2",
            "nr_class 1",
            "line 2, column 10: \"1\"; expected a whole number from 2 to 2147483647",
        ),
        ("nr_class 2", "nr_classes 2", "line 2, column 1: \"nr_classes\" is no key of a LIBLINEAR model"),
        ("nr_class 2\n", "", "line 2, column 1: label; expected nr_class before it"),
        ("label 1 -1", "label 1 x", "line 3, column 9: \"x\"; expected a whole number"),
        ("label 1 -1", "label 1 1", "line 3, column 10: label 1 comes twice; expected 2 different ones"),
        ("label 1 -1", "label 1 1.5", "\"1.5\"; expected a whole number"),
        ("label 1 -1\n", "", "no label; expected it before w"),
        ("bias 1\n", "", "no bias; expected it before w"),
        ("bias 1", "bias inf", "line 5, column 6: \"inf\"; expected the value of bias, a finite number"),
        ("bias 1", "bias 1 bias 1", "line 5, column 8: bias comes twice"),
        (
            "nr_feature 3",
            "nr_feature 2",
            "line 10, column 1: \"-0.12887166023329866\"; expected the end of the file",
        ),
        ("nr_feature 3", "nr_feature 4", "line 11, column 1: the file ends; expected a weight"),
        (
            "nr_feature 3",
            "nr_feature 2000000000",
            "the file ends too early: expected 2000000001 lines of 1 weights",
        ),
        ("nr_feature 3", "nr_feature 0", "\"0\"; expected a whole number from 1"),
        ("0.84", "0.84z", "line 8, column 1: \"0.84z449140914592358\"; expected a weight, a finite number"),
        ("0.84", "1e999", "expected a weight, a finite number"),
        ("w\n", "v\n", "line 6, column 1: \"v\" is no key"),
    ] {
        let message = parsed(&EXAMPLE.replacen(from, to, 1), ClassOrder::Sorted).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}\n{expected}");
    }
    assert!(
        parsed("", ClassOrder::Sorted).unwrap_err().to_string().contains("line 1, column 1: the file ends")
    );
    for end in 0..EXAMPLE.len() - 2 {
        assert!(matches!(parsed(&EXAMPLE[..end], ClassOrder::Sorted), Err(Error::Text { .. })) || end > 115);
    }
}

/// A change of a model, and what is said of it.
type Case<'a> = (&'a dyn Fn(&mut Model), &'a str);

#[test]
fn what_liblinear_cannot_answer_is_refused() {
    let line = Line { x: vec![0.0], y: vec![0.5] };
    let refused = |change: &dyn Fn(&mut Model)| {
        let mut model = parsed(EXAMPLE, ClassOrder::Sorted).unwrap();
        change(&mut model);
        text_of(&model, &WriteOptions::default()).unwrap_err().to_string()
    };
    let sigmoid = Probability::Sigmoid { slopes: vec![1.0], offsets: vec![0.0] };
    let cases: [Case<'_>; 10] = [
        (&|model| model.answer = ClassRule::Threshold(0.5), "it has the threshold 0.5, LIBLINEAR's is 0"),
        (&|model| model.answer = ClassRule::Labels, "several labels per row"),
        (&|model| model.answer = ClassRule::Cheapest(vec![0.0; 4]), "the least expected cost"),
        (&|model| model.answer = ClassRule::MostProbable, "the most probable class"),
        (&|model| model.probability = Some(sigmoid.clone()), "its probabilities are calibrated"),
        (&|model| model.probability = Some(Probability::Isotonic(vec![line.clone()])), "calibrated"),
        (&|model| model.classes = Classes::Float(vec![0.0, 0.5]), "one of its classes is 0.5"),
        (&|model| model.classes = Classes::Int(vec![0, 1 << 40]), "one of its classes is 1099511627776"),
        (&|model| model.classes = Classes::Text(vec!["a".into(), "b".into()]), "one of its classes is \"a\""),
        (
            &|model| model.classes = Classes::Bool(vec![false, true]),
            "one of its classes is the truth value false",
        ),
    ];
    for (change, expected) in cases {
        let message = refused(change);
        assert!(message.starts_with("the model cannot be written as a LIBLINEAR model: "), "{message}");
        assert!(message.contains(expected), "{message}");
    }
    let model = parsed(EXAMPLE, ClassOrder::Sorted).unwrap();
    let options = WriteOptions { solver: Some(SolverType::L2rL2lossSvc), ..WriteOptions::default() };
    assert!(text_of(&model, &options).unwrap_err().to_string().contains("it has probabilities"));
    let options = WriteOptions { labels: Some(vec![1, 2]), ..WriteOptions::default() };
    assert!(text_of(&model, &options).unwrap_err().to_string().contains("the 2 classes in some order"));
}

#[test]
fn every_layout_is_written_alike() {
    let model = |weights| Model {
        n_features: 2,
        weights,
        intercepts: vec![0.5, 0.0, -1.0],
        classes: Classes::Float(vec![0.0, 1.0, 2.0]),
        answer: ClassRule::Highest,
        probability: None,
        pairs: None,
        feature_names: None,
        encoder: None,
        record: crate::model::ModelRecord::default(),
    };
    let (by_label, by_column) = (vec![1.0, 0.0, 0.0, 0.25, 3.0, 4.0], vec![1.0, 0.0, 3.0, 0.0, 0.25, 4.0]);
    let (indptr, indices) = (vec![0, 1, 2, 4], vec![0, 1, 0, 1]);
    let index = InvertedIndex::new(&indptr, &indices, 2).unwrap();
    let values = Numbers::F32(Arc::new(vec![1.0, 0.25, 3.0, 4.0]));
    let expected = "solver_type L2R_L2LOSS_SVC_DUAL\nnr_class 3\nlabel 0 1 2\nnr_feature 2\nbias 1\nw\n\
                    1 0 3 \n\
                    0 0.25 4 \n0.5 0 -1 \n";
    for weights in [
        WeightVectors::ByLabel(Numbers::F64(Arc::new(by_label))),
        WeightVectors::ByColumn(Numbers::F64(Arc::new(by_column))),
        WeightVectors::Sparse { indptr, indices, values, index },
    ] {
        let model = model(weights);
        assert_eq!(text_of(&model, &WriteOptions::default()).unwrap(), expected);
        let options = WriteOptions { labels: Some(vec![2, 0, 1]), ..WriteOptions::default() };
        let text = text_of(&model, &options).unwrap();
        assert!(
            text.contains("label 2 0 1") && text.ends_with("w\n3 1 0 \n4 0 0.25 \n-1 0.5 0 \n"),
            "{text}"
        );
    }
    let short = model(WeightVectors::ByLabel(Numbers::F64(Arc::new(vec![1.0]))));
    assert!(matches!(text_of(&short, &WriteOptions::default()), Err(Error::Shape { .. })));
}

#[test]
fn only_models_of_the_kind_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m");
    let model = parsed(EXAMPLE, ClassOrder::Sorted).unwrap();
    let mut options = WriteOptions::default();
    save(&model, &path, &options).unwrap();
    save(&model, &path, &options).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), EXAMPLE);
    assert_eq!(text_of(&read(&path, ClassOrder::AsInFile).unwrap(), &options).unwrap(), EXAMPLE);
    std::fs::write(&path, "1 1:2\n").unwrap();
    assert!(matches!(save(&model, &path, &options), Err(Error::Occupied { .. })));
    options.replace = Replace::AnyFile;
    save(&model, &path, &options).unwrap();
    assert!(matches!(read(&folder.path().join("n"), ClassOrder::Sorted), Err(Error::Io { .. })));
}

fn numbers(n: usize) -> impl Strategy<Value = Vec<f64>> {
    let number = prop_oneof![
        4 => any::<u64>().prop_map(f64::from_bits).prop_filter("range", |w| w.abs() < 1e150),
        1 => Just(0.0),
        1 => Just(-0.0),
    ];
    prop::collection::vec(number, n)
}

fn files() -> impl Strategy<Value = (String, usize)> {
    let shape = (0usize..8, 2usize..5, 1usize..5, any::<bool>(), any::<bool>());
    shape.prop_flat_map(|(solver, n, d, has_bias, is_turned)| {
        let solver = SOLVERS[solver].0;
        let is_cs_pair = n == 2 && solver == SolverType::McsvmCs;
        let n_columns = if n == 2 { 1 } else { n };
        let n_lines = d + usize::from(has_bias);
        numbers(n_lines * n_columns).prop_map(move |w| {
            let mut labels: Vec<i64> = (0..n as i64).map(|k| 3 * k - 2).collect();
            if is_turned {
                labels.rotate_left(1);
            }
            let labels: Vec<String> = labels.iter().map(i64::to_string).collect();
            let mut text = Vec::new();
            for row in w.chunks(n_columns) {
                for w in row {
                    decimal::push(&mut text, *w, 17);
                    text.push(b' ');
                    if is_cs_pair {
                        decimal::push(&mut text, -w, 17);
                        text.push(b' ');
                    }
                }
                text.push(b'\n');
            }
            let (name, bias) = (solver.name(), if has_bias { 1 } else { -1 });
            let head = format!(
                "solver_type {name}\nnr_class {n}\nlabel {}\nnr_feature {d}\nbias {bias}\nw\n",
                labels.join(" ")
            );
            (head + str::from_utf8(&text).unwrap(), d)
        })
    })
}

proptest! {
    #[test]
    fn files_come_back_to_the_byte_in_their_own_order((text, _) in files()) {
        let model = parsed(&text, ClassOrder::AsInFile).unwrap();
        prop_assert_eq!(text_of(&model, &WriteOptions::default()).unwrap(), text.clone());
        let sorted = parsed(&text, ClassOrder::Sorted).unwrap();
        let Classes::Int(labels) = &model.classes else { panic!() };
        let labels = if labels.len() == 2 { labels.iter().rev().copied().collect() } else { labels.clone() };
        let options = WriteOptions { labels: Some(labels), ..WriteOptions::default() };
        prop_assert_eq!(text_of(&sorted, &options).unwrap(), text);
    }

    #[test]
    fn answers_are_those_of_liblinear((text, d) in files(), row in prop::collection::vec(-2i8..3, 4)) {
        let row: Vec<f64> = row[..d].iter().map(|x| f64::from(*x)).collect();
        for row in [row.clone(), vec![0.0; d]] {
            let expected = liblinear_class(&text, &row);
            prop_assert_eq!(class(&parsed(&text, ClassOrder::AsInFile).unwrap(), &row), expected);
            let sorted = parsed(&text, ClassOrder::Sorted).unwrap();
            if sorted.intercepts.len() == 1 {
                prop_assert_eq!(class(&sorted, &row), expected);
            }
        }
    }

    #[test]
    fn damage_never_panics((text, _) in files(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = parse(&bytes, Path::new("m"), ClassOrder::Sorted);
        let _ = parse(&bytes[..at], Path::new("m"), ClassOrder::Sorted);
    }
}
