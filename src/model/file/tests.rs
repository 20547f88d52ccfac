use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::convert::length;
use super::sums::{CHUNK, count, sum, sum_of};
use super::*;
use crate::front::MapSpec;
use crate::labels::classes::Classes;
use crate::labels::inverted_index::InvertedIndex;
use crate::labels::scores::FloatSlice;
use crate::model::ModelRecord;
use crate::model::answer::ClassRule;
use crate::model::probability::{Line, Probability};
use crate::model::weights::{Numbers, WeightVectors};

/// Numbers that look random, a few of them 0, infinite or none.
fn numbers(n: usize, seed: u64) -> Vec<f64> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let odd = [0.0, -0.0, f64::INFINITY, f64::NAN, 5e-324, 1e38];
    let one = |_| match random.next_u64() {
        k if k % 5 == 0 => odd[(k / 5 % 6) as usize],
        k => (k as f64 / 2f64.powi(63) - 1.0) * 3.0,
    };
    (0..n).map(one).collect()
}

/// Which model.
#[derive(Clone, Debug)]
struct Recipe {
    seed: u64,
    n_features: usize,
    n_classes: usize,
    /// By label, by column, sparse.
    layout: usize,
    is_single: bool,
    has_pairs: bool,
    classes: usize,
    answer: usize,
    probability: usize,
    has_names: bool,
    is_long: bool,
}

fn recipes() -> impl Strategy<Value = Recipe> {
    let shape = (any::<u64>(), 1usize..7, 2usize..5);
    let weights = (0usize..3, any::<bool>(), any::<bool>());
    let rest = (0usize..4, 0usize..6, 0usize..5, any::<bool>());
    (shape, weights, rest, proptest::bool::weighted(0.1)).prop_map(|(shape, weights, rest, is_long)| Recipe {
        seed: shape.0,
        n_features: shape.1,
        n_classes: shape.2,
        layout: weights.0,
        is_single: weights.1,
        has_pairs: weights.2 && weights.0 < 2,
        classes: rest.0,
        answer: rest.1,
        probability: rest.2,
        has_names: rest.3,
        is_long,
    })
}

fn made(recipe: &Recipe) -> Model {
    let Recipe { seed, n_features, n_classes, .. } = *recipe;
    // Two truth values there are, no more; two classes share a vector, two labels do not.
    let k = if recipe.classes == 2 { 2 } else { n_classes };
    let is_labels = recipe.answer == 5;
    let m = if k == 2 && !is_labels { 1 } else { k };
    let pairs = recipe.has_pairs.then_some(MapSpec {
        gamma: (seed % 2 == 0).then_some(0.1),
        coef0: 1.0 / 3.0,
        has_constant: seed % 3 == 0,
        bits: 12,
        seed,
    });
    let d = pairs.map_or(n_features, |pairs| pairs.map(n_features).unwrap().n_out());
    let finite = |n, seed| numbers(n, seed).into_iter().map(|x| if x.is_finite() { x } else { 7.0 });
    let probability = match recipe.probability {
        0 => None,
        1 => Some(Probability::Logistic),
        2 => Some(Probability::Sigmoid { slopes: numbers(m, seed + 1), offsets: numbers(m, seed + 2) }),
        3 => Some(Probability::Isotonic(
            (0..m)
                .map(|l| Line { x: (0..=l).map(|x| x as f64 - 0.1).collect(), y: finite(l + 1, 3).collect() })
                .collect(),
        )),
        _ => Some(Probability::Temperature(0.1)),
    };
    let answer = match recipe.answer {
        0 | 1 if k == 2 => [ClassRule::Sign, ClassRule::Threshold(f64::INFINITY)][recipe.answer].clone(),
        2 if probability.is_some() => ClassRule::MostProbable,
        3 if probability.is_some() => ClassRule::Cheapest(finite(k * k, seed + 5).collect()),
        5 => ClassRule::Labels,
        _ if k == 2 => ClassRule::Sign,
        _ => ClassRule::Highest,
    };
    let word = |k: usize| format!("{}{k}", ["", "naïve ", "\0", "語"][k % 4]);
    let mut record = ModelRecord {
        estimator: "LinearSVC".into(),
        version: "1.2.3".into(),
        label_dtype: "<i4".into(),
        ..ModelRecord::default()
    };
    record.parameters.insert("C".into(), json!(0.1 + 0.2));
    record.fitted.insert("n_iter_".into(), json!({"$array": "<i8", "values": [1, 2, null]}));
    if recipe.is_long {
        record.metadata.insert("note".into(), "é".repeat(MAX_TEXT / 2 + 1).into());
        record.data.insert("columns".into(), json!(vec![0; MAX_TEXT / 2 + 1]));
    }
    Model {
        n_features,
        weights: weights(recipe, m, d),
        intercepts: numbers(m, seed + 3),
        classes: match recipe.classes {
            0 => Classes::Int((0..k as i64).map(|k| k * 1000 - 1).collect()),
            1 => Classes::Float((0..k).map(|k| k as f64 / 3.0).collect()),
            2 => Classes::Bool(vec![false, true]),
            _ => Classes::Text((0..k).map(word).collect()),
        },
        answer,
        probability,
        pairs,
        feature_names: recipe.has_names.then(|| (0..n_features).map(word).collect()),
        encoder: None,
        record,
    }
}

fn weights(recipe: &Recipe, m: usize, d: usize) -> WeightVectors {
    let precise = |w: Vec<f64>| match recipe.is_single {
        true => Numbers::F32(Arc::new(w.iter().map(|w| *w as f32).collect())),
        false => Numbers::F64(Arc::new(w)),
    };
    let w = numbers(m * d, recipe.seed);
    match recipe.layout {
        0 => WeightVectors::ByLabel(precise(w)),
        1 => WeightVectors::ByColumn(precise(w)),
        _ => {
            let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in w.chunks(d) {
                indices.extend((0..d as i64).filter(|j| row[*j as usize] != 0.0));
                values.extend(row.iter().filter(|w| **w != 0.0));
                indptr.push(indices.len() as i64);
            }
            let index = InvertedIndex::new(&indptr, &indices, d).unwrap();
            WeightVectors::Sparse { indptr, indices, values: precise(values), index }
        }
    }
}

/// All of a model that can be compared: its parts as texts, NaN and the signs of zeros included.
fn parts(model: &Model) -> Vec<String> {
    let bits = |w: FloatSlice<'_>| match w {
        FloatSlice::F32(w) => format!("single {:?}", w.iter().map(|w| w.to_bits()).collect::<Vec<_>>()),
        FloatSlice::F64(w) => format!("double {:?}", w.iter().map(|w| w.to_bits()).collect::<Vec<_>>()),
    };
    let weights = match &model.weights {
        WeightVectors::ByLabel(w) => format!("labels {}", bits(w.slice())),
        WeightVectors::ByColumn(w) => format!("columns {}", bits(w.slice())),
        WeightVectors::Sparse { indptr, indices, values, index } => {
            format!("{indptr:?} {indices:?} {} {index:?}", bits(values.slice()))
        }
    };
    vec![
        weights,
        format!("{} {}", model.n_features, bits(FloatSlice::F64(&model.intercepts))),
        format!("{:?} {:?}", model.classes, model.feature_names),
        format!("{:?} {:?} {:?}", model.answer, model.probability, model.pairs),
        format!("{:?}", model.record),
    ]
}

fn saved(model: &Model) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    model.save(&path, &SaveOptions::default()).unwrap();
    (folder, path)
}

/// The model in some bytes, all of them proved: of a file that is read, and of one that is mapped.
fn loaded(bytes: &[u8], max_owned: usize) -> Result<Model> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let model = read::load(file.path(), max_owned)?;
    let (WeightVectors::ByLabel(w) | WeightVectors::ByColumn(w) | WeightVectors::Sparse { values: w, .. }) =
        &model.weights;
    w.verify(0..length(w.slice()))?;
    Ok(model)
}

/// Models of all kinds, small ones.
fn shelf() -> Vec<Model> {
    let one = |k: usize| Recipe {
        seed: k as u64,
        n_features: 2 + k % 3,
        n_classes: 2 + k % 3,
        layout: k % 3,
        is_single: k % 2 == 1,
        has_pairs: k.is_multiple_of(7) && k % 3 < 2,
        classes: k % 4,
        answer: k % 6,
        probability: k % 5,
        has_names: k.is_multiple_of(2),
        is_long: false,
    };
    (0..24).map(|k| made(&one(k))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))] // each of them syncs files

    #[test]
    fn what_is_read_is_what_was_written(recipe in recipes()) {
        let model = made(&recipe);
        let (_folder, path) = saved(&model);
        let bytes = std::fs::read(&path).unwrap();
        for max_owned in [0, usize::MAX] {
            let found = loaded(&bytes, max_owned).unwrap();
            prop_assert_eq!(parts(&found), parts(&model));
            // A file that is mapped is replaced by its own model.
            found.save(&path, &SaveOptions::default()).unwrap();
            prop_assert!(std::fs::read(&path).unwrap() == bytes);
        }
    }

    #[test]
    fn weights_are_stored_as_asked(recipe in recipes(), sparse: bool, single: bool) {
        let mut model = made(&recipe);
        if let WeightVectors::ByLabel(w) | WeightVectors::ByColumn(w) = &mut model.weights {
            *w = Numbers::F64(Arc::new((0..length(w.slice())).map(|k| [0.0, 0.1, -2.0][k % 3]).collect()));
        }
        let options = SaveOptions {
            precision: Some(if single { Precision::Single } else { Precision::Double }),
            storage: if sparse { Storage::Sparse } else { Storage::Dense },
            ..SaveOptions::default()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        if sparse && recipe.has_pairs {
            prop_assert!(field_of(model.save(&path, &options)) == "coef");
            return Ok(());
        }
        model.save(&path, &options).unwrap();
        let found = Model::load(&path).unwrap();
        let (m, d) = (model.n_vectors(), model.n_weights().unwrap());
        let (expected, is_single) = dense(&model.weights, m, d);
        let (found_weights, is_found_single) = dense(&found.weights, m, d);
        let rounded = |w: f64| if single || is_single { f64::from(w as f32) } else { w };
        prop_assert!(is_found_single == single);
        // A stored 0 of single precision may have been a tiny number, and -0 is 0.
        let same = |(a, b): (&f64, &f64)| rounded(*a) == *b || a.is_nan() && b.is_nan();
        prop_assert!(expected.iter().zip(&found_weights).all(same));
        let is_sparse = matches!(found.weights, WeightVectors::Sparse { .. });
        prop_assert_eq!(is_sparse, sparse);
        prop_assert_eq!(&parts(&found)[1..], &parts(&model)[1..]);
    }

    #[test]
    fn strings_survive(strings: Vec<String>) {
        let (text, ends) = text::joined(&strings);
        prop_assert_eq!(text::split(&text, &ends).unwrap(), strings);
    }
}

/// All weights, vector after vector, and whether they are of single precision.
fn dense(weights: &WeightVectors, m: usize, d: usize) -> (Vec<f64>, bool) {
    let list = |w: &Numbers| match w.slice() {
        FloatSlice::F32(w) => (w.iter().map(|w| f64::from(*w)).collect(), true),
        FloatSlice::F64(w) => (w.to_vec(), false),
    };
    match weights {
        WeightVectors::ByLabel(w) => list(w),
        WeightVectors::ByColumn(w) => {
            let (w, is_single): (Vec<f64>, bool) = list(w);
            ((0..m * d).map(|k| w[k % d * m + k / d]).collect(), is_single)
        }
        WeightVectors::Sparse { indptr, indices, values, .. } => {
            let ((values, is_single), mut all) = (list(values), vec![0.0; m * d]);
            for l in 0..m {
                for k in indptr[l] as usize..indptr[l + 1] as usize {
                    all[l * d + indices[k] as usize] = values[k];
                }
            }
            (all, is_single)
        }
    }
}

fn field_of<T>(result: Result<T>) -> String {
    match result {
        Err(Error::ModelFile { field, .. }) => field,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("no error"),
    }
}

/// Ten thousand of them: never another model, never anything but the one error.
#[test]
fn changed_and_cut_files_are_refused() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let files: Vec<_> = shelf()
        .iter()
        .map(|model| {
            let (_folder, path) = saved(model);
            std::fs::read(path).unwrap()
        })
        .collect();
    for k in 0..10_000 {
        let whole = &files[k % files.len()];
        let mut bytes = whole.clone();
        let mut below = |n: usize| (random.next_u64() % n as u64) as usize;
        match k % 4 {
            0 => bytes.truncate(below(whole.len())),
            1 => bytes.extend((0..=below(20)).map(|_| 0)),
            _ => {
                for _ in 0..=below(3) {
                    let at = below(whole.len());
                    bytes[at] ^= 1 + below(255) as u8;
                }
            }
        }
        if bytes != *whole {
            let max_owned = if k % 3 == 0 { 0 } else { usize::MAX };
            assert!(!field_of(loaded(&bytes, max_owned)).is_empty());
        }
    }
}

/// A file whose head and data were changed, with the checksums that belong to it.
fn forged(file: &[u8], change: impl FnOnce(&mut String, &mut Vec<u8>)) -> Vec<u8> {
    let begin = 8 + u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
    let mut head = String::from_utf8(file[8..begin].to_vec()).unwrap();
    let of_head: Value = serde_json::from_str(&head).unwrap();
    let n_data = of_head["checksums"]["data_offsets"][0].as_u64().unwrap() as usize;
    let mut data = file[begin..begin + n_data].to_vec();
    change(&mut head, &mut data);
    let mut head = head.trim_end().as_bytes().to_vec();
    head.resize((head.len() + 8).next_multiple_of(ALIGNMENT) - 8, b' ');
    let mut bytes = (head.len() as u64).to_le_bytes().to_vec();
    bytes.extend(head);
    let mut sums = vec![sum(&bytes)];
    sums.extend(data.chunks(CHUNK).map(sum));
    sums.push(sum_of(&sums));
    assert_eq!(sums.len(), count(data.len()));
    bytes.extend(data);
    bytes.extend(sums.iter().flat_map(|sum| sum.to_le_bytes()));
    bytes
}

/// The same with a head that is changed as JSON. Tensors keep their bytes unless `data` changes them.
fn forged_json(file: &[u8], change: impl FnOnce(&mut Value, &mut Vec<u8>)) -> Vec<u8> {
    forged(file, |head, data| {
        let mut parsed: Value = serde_json::from_str(head).unwrap();
        change(&mut parsed, data);
        *head = parsed.to_string();
    })
}

/// Changes the JSON of the model in the head.
fn of_model(head: &mut Value, change: impl FnOnce(&mut Value)) {
    let mut model: Value = serde_json::from_str(head["__metadata__"]["model"].as_str().unwrap()).unwrap();
    change(&mut model);
    head["__metadata__"]["model"] = model.to_string().into();
}

/// Where a tensor is.
fn place(head: &Value, name: &str) -> usize {
    head[name]["data_offsets"][0].as_u64().unwrap() as usize
}

/// Two classes by name, three sparse columns with names, isotonic probabilities, costs.
fn rich() -> Vec<u8> {
    let recipe = Recipe {
        seed: 4,
        n_features: 3,
        n_classes: 3,
        layout: 2,
        is_single: false,
        has_pairs: false,
        classes: 3,
        answer: 3,
        probability: 3,
        has_names: true,
        is_long: false,
    };
    let (_folder, path) = saved(&made(&recipe));
    std::fs::read(path).unwrap()
}

#[test]
fn forged_fields_are_named() {
    type Change = fn(&mut Value, &mut Vec<u8>);
    macro_rules! number {
        ($name:literal, $k:literal, $value:expr) => {
            |head, data| {
                let at = place(head, $name) + 8 * $k;
                data[at..at + 8].copy_from_slice(&i64::to_le_bytes($value));
            }
        };
    }
    let cases: Vec<(&str, Change)> = vec![
        ("model", |head, _| of_model(head, |model| model["answer"] = "guess".into())),
        ("model", |head, _| of_model(head, |model| model["surprise"] = 1.into())),
        ("model", |head, _| of_model(head, |model| model["n_features"] = json!(-1))),
        ("model", |head, _| head["__metadata__"]["model"] = "[".repeat(1000).into()),
        ("model", |head, _| drop(head["__metadata__"].as_object_mut().unwrap().remove("model"))),
        ("metadata", |head, _| head["__metadata__"]["metadata"] = "7".into()),
        ("other", |head, _| head["__metadata__"]["other"] = "7".into()),
        ("n_features", |head, _| of_model(head, |model| model["n_features"] = json!(u64::MAX))),
        ("coef.indices", |head, _| of_model(head, |model| model["n_features"] = 2.into())),
        ("feature_names", |head, _| of_model(head, |model| model["n_features"] = 1_000_000.into())),
        ("coef.indptr", number!("coef.indptr", 1, i64::MAX)),
        ("coef.indptr", number!("coef.indptr", 2, 0)),
        ("coef.indptr", number!("coef.indptr", 0, -1)),
        ("coef.indices", |head, data| {
            let at = place(head, "coef.indices");
            data[at..at + 4].copy_from_slice(&3i32.to_le_bytes());
        }),
        ("classes.ends", number!("classes.ends", 0, -1)),
        ("classes.ends", number!("classes.ends", 1, 0)),
        ("classes.ends", number!("classes.ends", 2, i64::MIN)),
        ("classes.text", |head, data| data[place(head, "classes.text")] = 0xff),
        ("feature_names.ends", number!("feature_names.ends", 2, 1)),
        ("answer", number!("answer.costs", 4, f64::NAN.to_bits() as i64)),
        ("probability", number!("probability.x", 2, f64::NEG_INFINITY.to_bits() as i64)),
        ("probability.ends", number!("probability.ends", 1, 99)),
        ("probability", number!("probability.ends", 0, 0)),
        ("coef.values", |head, _| head["coef.values"]["dtype"] = "I64".into()),
        ("coef.values", |head, _| {
            let n = head["coef.values"]["shape"][0].clone();
            head["coef.values"]["shape"] = json!([1, n]);
        }),
        ("intercept", |head, _| {
            let moved = head.as_object_mut().unwrap().remove("intercept").unwrap();
            head["other"] = moved;
        }),
        ("probability.slopes", |head, _| of_model(head, |model| model["probability"] = "sigmoid".into())),
        ("probability.ends", |head, _| of_model(head, |model| model["probability"] = json!("logistic"))),
        ("answer.costs", |head, _| of_model(head, |model| model["answer"] = "sign".into())),
        ("pairs", |head, _| {
            let pairs = json!({"gamma": 1.0, "coef0": -1.0, "has_constant": true, "bits": 12, "seed": 3});
            of_model(head, |model| model["pairs"] = pairs);
        }),
        ("head", |head, _| head["intercept"]["data_offsets"] = json!([0, 8])),
        ("head", |head, _| head["intercept"]["shape"] = json!([u64::MAX, 8])),
        ("head", |head, _| head["intercept"]["dtype"] = "F12".into()),
        ("head", |head, _| drop(head.as_object_mut().unwrap().remove("checksums"))),
        ("format_version", |head, _| head["__metadata__"]["format_version"] = "3".into()),
        ("format_version", |head, _| head["__metadata__"]["format_version"] = "x".into()),
        ("format", |head, _| head["__metadata__"]["format"] = "onnx".into()),
    ];
    let whole = rich();
    assert!(loaded(&forged_json(&whole, |_, _| ()), 0).is_ok());
    for (k, (expected, change)) in cases.into_iter().enumerate() {
        let result = loaded(&forged_json(&whole, change), [0, usize::MAX][k % 2]);
        let text = result.as_ref().map_or_else(ToString::to_string, |_| "read".into());
        assert_eq!(field_of(result), expected, "{k}: {text}");
    }
}

/// Whoever forges a file finds no way to a crash. Some of the files are valid.
#[test]
fn forged_files_are_models_or_refused() {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut n_models = 0;
    let files: Vec<_> = shelf()
        .iter()
        .map(|model| {
            let (_folder, path) = saved(model);
            std::fs::read(path).unwrap()
        })
        .collect();
    for k in 0..10_000 {
        let mut below = |n: usize| (random.next_u64() % n.max(1) as u64) as usize;
        let bytes = forged(&files[k % files.len()], |head, data| {
            let mut changed = head.clone().into_bytes();
            if k % 3 > 0 {
                // Digits and punctuation are where the meaning is.
                let at = 60 + below(changed.trim_ascii_end().len() - 60);
                changed[at] = *b"0129-.,:\"[]{}en\\".get(below(24)).unwrap_or(&changed[at]);
            }
            if let Ok(changed) = String::from_utf8(changed) {
                *head = changed;
            }
            if k % 3 < 2 && !data.is_empty() {
                let at = below(data.len());
                data[at] = below(256) as u8;
            }
        });
        match loaded(&bytes, [0, usize::MAX][k % 2]) {
            Ok(model) => {
                assert_eq!(model.check(), Ok(()));
                n_models += 1;
            }
            Err(Error::ModelFile { .. }) => {}
            Err(other) => panic!("{other}"),
        }
    }
    assert!(n_models > 1000, "{n_models}");
}

#[test]
fn large_files_are_proved_where_they_are_used() {
    let d = 10 * CHUNK; // bytes: 80 chunks of weights
    let mut model = made(&Recipe { n_features: 1, ..shelf_recipe() });
    model.n_features = d;
    model.weights = WeightVectors::ByLabel(Numbers::F64(Arc::new(numbers(d, 1))));
    let (_folder, path) = saved(&model);
    let mut bytes = std::fs::read(&path).unwrap();
    let begin = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    bytes[begin + 5 * CHUNK + 17] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(field_of(Model::load(&path)), "coef");
    let model = read::load(&path, 0).unwrap();
    let WeightVectors::ByLabel(w) = &model.weights else { panic!() };
    let per_chunk = CHUNK / 8;
    for _ in 0..2 {
        w.verify(0..5 * per_chunk).unwrap();
        w.verify(6 * per_chunk..d).unwrap();
        w.verify(d..d).unwrap();
        assert_eq!(field_of(w.verify(5 * per_chunk..5 * per_chunk + 1)), "coef");
        assert_eq!(field_of(w.verify(0..d)), "coef");
        let message = w.verify(0..d).unwrap_err().to_string();
        assert!(message.contains(&format!("near byte {}", begin + 5 * CHUNK)), "{message}");
    }
}

fn shelf_recipe() -> Recipe {
    Recipe {
        seed: 0,
        n_features: 2,
        n_classes: 2,
        layout: 0,
        is_single: false,
        has_pairs: false,
        classes: 0,
        answer: 0,
        probability: 0,
        has_names: false,
        is_long: false,
    }
}

#[test]
fn only_model_files_are_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let model = made(&shelf_recipe());
    let save = |replace| model.save(&path, &SaveOptions { replace, ..SaveOptions::default() });
    for mine in [&b""[..], &rich()] {
        std::fs::write(&path, mine).unwrap();
        save(Replace::SameKind).unwrap();
    }
    let tensors = br#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}"#;
    let mut other = (tensors.len() as u64).to_le_bytes().to_vec();
    other.extend(tensors);
    other.push(0);
    std::fs::write(&path, &other).unwrap();
    let message = save(Replace::SameKind).unwrap_err().to_string();
    assert!(message.contains("not a model file and is kept"), "{message}");
    let message = Model::load(&path).unwrap_err().to_string();
    assert!(message.contains("a safetensors file, but not a hinge model"), "{message}");
    save(Replace::AnyFile).unwrap();
    assert_eq!(parts(&Model::load(&path).unwrap()), parts(&model));
    for short in [&b""[..], b"{}", &tensors[..]] {
        std::fs::write(&path, short).unwrap();
        assert_eq!(field_of(Model::load(&path)), "format");
    }
    assert!(matches!(Model::load(folder.path()), Err(Error::Io { .. })));
    assert!(matches!(Model::load(&folder.path().join("none")), Err(Error::Io { .. })));
    #[cfg(unix)]
    assert_eq!(field_of(Model::load(Path::new("/dev/null"))), "file");
}

#[test]
fn what_no_reader_would_take_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model");
    let refused = |change: fn(&mut Model), options: SaveOptions| {
        let mut model = made(&shelf_recipe());
        change(&mut model);
        let field = field_of(model.save(&path, &options));
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
        field
    };
    let plain = SaveOptions::default();
    let single = SaveOptions { precision: Some(Precision::Single), ..plain };
    assert_eq!(refused(|model| model.intercepts.push(0.0), plain), "intercept");
    assert_eq!(refused(|model| model.n_features = 3, plain), "coef");
    assert_eq!(refused(|model| model.classes = Classes::Int(vec![1, 1]), plain), "classes");
    let too_large = |model: &mut Model| {
        model.weights = WeightVectors::ByLabel(Numbers::F64(Arc::new(vec![1e39, 0.0])));
    };
    assert_eq!(refused(too_large, single), "coef");
    let nested = |model: &mut Model| {
        let value = (0..200).fold(json!(1), |value, _| json!([value]));
        model.record.metadata.insert("deep".into(), value);
    };
    assert_eq!(refused(nested, plain), "metadata");
}
