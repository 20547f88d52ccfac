//! Row kernels and the rank update.
//!
//! Rows of 100 entries over weight vectors that fit in the first-level cache (1e3), the second (1e5) and
//! neither (1e7).

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use hinge::matrix::Rows;
use hinge::matrix::csr::CsrView;
use hinge::matrix::outer::{DEPTH, OuterSum};

const ROW: usize = 100;
const N_ROWS: usize = 2000;

/// A repeatable scatter of columns: a multiplicative generator modulo 2^32.
fn columns(n_cols: usize) -> Vec<i32> {
    let mut state = 1u32;
    let step = |_| {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        ((u64::from(state) * n_cols as u64) >> 32) as i32
    };
    (0..N_ROWS * ROW).map(step).collect()
}

fn dot_and_add(c: &mut Criterion) {
    for n_cols in [1_000, 100_000, 10_000_000] {
        let (indices, values) = (columns(n_cols), vec![0.5f32; N_ROWS * ROW]);
        let indptr: Vec<i64> = (0..=N_ROWS).map(|i| (i * ROW) as i64).collect();
        let (x, _) = CsrView::new(&indptr, &indices, &values, n_cols).expect("the arrays are a matrix");
        let mut w = vec![1.0; n_cols];
        let mut group = c.benchmark_group("row");
        group.throughput(Throughput::Elements((N_ROWS * ROW) as u64));
        group.bench_function(BenchmarkId::new("dot", n_cols), |b| {
            b.iter(|| (0..N_ROWS).map(|i| x.dot(i, &w)).sum::<f64>());
        });
        group.bench_function(BenchmarkId::new("add_scaled", n_cols), |b| {
            b.iter(|| (0..N_ROWS).for_each(|i| x.add_scaled(i, 1e-9, black_box(&mut w))));
        });
    }
}

fn outer(c: &mut Criterion) {
    let mut group = c.benchmark_group("outer_sum");
    for d in [29, 55, 500] {
        let (mut lower, row, mut sum) = (vec![0.0; d * d], vec![0.5f64; d], OuterSum::new(d));
        group.throughput(Throughput::Elements((DEPTH * d * (d + 1) / 2) as u64));
        group.bench_function(BenchmarkId::from_parameter(d), |b| {
            b.iter(|| {
                (0..DEPTH).for_each(|_| sum.add(black_box(&mut lower), 0.5, |to| to.copy_from_slice(&row)))
            });
        });
    }
}

criterion_group!(benches, dot_and_add, outer);
criterion_main!(benches);
