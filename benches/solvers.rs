//! Whole fits of one binary problem, each loss and solver, to a relative duality gap of 1e-4.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hinge::fit::{Intercept, Params, Problem, Silent, SolverKind, Start, auto};
use hinge::loss::LossKind;
use hinge::matrix::csr::CsrView;

const N_ROWS: usize = 10_000;
const ROW: usize = 40;
const N_COLS: usize = 20_000;

struct Documents {
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Vec<f32>,
    y: Vec<f64>,
}

/// Documents over a vocabulary with falling frequencies; the label is the sign of a fixed random weighting of
/// their words.
fn documents() -> Documents {
    let mut state = 12_345u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (mut indices, mut y) = (Vec::new(), Vec::new());
    for _ in 0..N_ROWS {
        let mut row: Vec<i32> = (0..ROW).map(|_| (N_COLS as f64).powf(uniform()) as i32).collect();
        row.sort_unstable();
        row.dedup();
        row.extend((0..ROW - row.len()).map(|k| (N_COLS + k) as i32));
        let score: f64 = row.iter().map(|&j| (f64::from(j) * 1.7).sin()).sum();
        y.push(if score + uniform() > 0.5 { 1.0 } else { -1.0 });
        indices.extend(row);
    }
    let values = vec![(1.0 / (ROW as f32)).sqrt(); indices.len()];
    Documents { indptr: (0..=N_ROWS).map(|i| (i * ROW) as i64).collect(), indices, values, y }
}

fn fits(c: &mut Criterion) {
    let data = documents();
    let (x, _) = CsrView::new(&data.indptr, &data.indices, &data.values, N_COLS + ROW)
        .expect("the arrays are a matrix");
    let mut group = c.benchmark_group("fit");
    group.sample_size(10).throughput(Throughput::Elements((N_ROWS * ROW) as u64));
    for loss in [LossKind::Hinge, LossKind::SquaredHinge, LossKind::Logistic] {
        for solver in [SolverKind::DualCd, SolverKind::Newton] {
            for cost in [0.1, 10.0] {
                let cost = vec![cost; N_ROWS];
                let problem = Problem {
                    rows: &x.into(),
                    ids: None,
                    y: &data.y,
                    cost: &cost,
                    intercept: Intercept::None,
                };
                let params = Params { solver, ..Params::default() };
                let id =
                    BenchmarkId::new(format!("{loss:?}/{solver:?}"), format!("n=1e4,nnz=4e5,C={}", cost[0]));
                group.bench_function(id, |b| {
                    b.iter(|| {
                        auto::solve(&problem, loss, &params, &Start::default(), &Silent)
                            .expect("it converges")
                    });
                });
            }
        }
    }
}

criterion_group!(benches, fits);
criterion_main!(benches);
