//! One sparse row, and batches, of a model of 1,000,000 features.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hinge::labels::classes::Classes;
use hinge::model::answer::ClassRule;
use hinge::model::predictor::Predictor;
use hinge::model::probability::Probability;
use hinge::model::rows::SparseRow;
use hinge::model::weights::{Numbers, WeightVectors};
use hinge::model::{Model, ModelRecord};

const N_FEATURES: usize = 1_000_000;
const LENGTH: usize = 50;
const N_ROWS: usize = 1000;

fn predictor() -> Predictor {
    let weights = (0..N_FEATURES).map(|j| (j as f64).sin()).collect();
    let model = Model {
        n_features: N_FEATURES,
        weights: WeightVectors::ByLabel(Numbers::F64(Arc::new(weights))),
        intercepts: vec![0.5],
        classes: Classes::Int(vec![0, 1]),
        answer: ClassRule::Sign,
        probability: Some(Probability::Logistic),
        pairs: None,
        feature_names: Some((0..N_FEATURES).map(|j| format!("word{j}")).collect()),
        encoder: None,
        record: ModelRecord::default(),
    };
    Predictor::new(model).expect("the parts fit together")
}

/// Repeatable columns.
fn columns() -> Vec<i32> {
    let mut state = 1u32;
    let step = |_| {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        ((u64::from(state) * N_FEATURES as u64) >> 32) as i32
    };
    (0..N_ROWS * LENGTH).map(step).collect()
}

fn one_row(c: &mut Criterion) {
    let (predictor, indices, values) = (predictor(), columns(), vec![0.5; LENGTH]);
    let mut group = c.benchmark_group("predictor");
    group.throughput(Throughput::Elements(1));
    group.bench_function(BenchmarkId::new("row", LENGTH), |b| {
        let mut rows = indices.chunks_exact(LENGTH).cycle();
        b.iter(|| {
            let mut out = [0.0];
            let indices = rows.next().expect("rows never end");
            predictor.decide_row(SparseRow { indices, values: &values }, &mut out).expect("a sound row");
            black_box(out)
        });
    });
    group.finish();
}

criterion_group!(benches, one_row);
criterion_main!(benches);
