//! Decoding of a block store into an arena, one thread. `HINGE_STORE=FILE` takes the pages of a file (the
//! first 256), else pages of synthetic documents of equal values are made.
#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hinge::fit::Silent;
use hinge::labels::classes::Classes;
use hinge::matrix::arena::Arena;
use hinge::matrix::csr::CsrView;
use hinge::store::columns::Order;
use hinge::store::page::{Facts, Scratch};
use hinge::store::reader::{Store, reborrow};
use hinge::store::writer::{StoreBuilder, StoreOptions};

const D: usize = 1 << 20;

/// 20,000 documents of 150 words, word `j` about as frequent as `1 / j`.
fn synthetic(path: &Path) {
    let (mut indptr, mut indices, mut values) = (vec![0i64], Vec::new(), Vec::new());
    let mut x = 1u64;
    for _ in 0..20_000 {
        let mut row: Vec<i32> = (0..150)
            .map(|_| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let u = (x >> 11) as f64 / (1u64 << 53) as f64;
                ((D as f64).powf(u) - 1.0) as i32
            })
            .collect();
        row.sort_unstable();
        row.dedup();
        values.extend(std::iter::repeat_n(1.0 / (row.len() as f32).sqrt(), row.len()));
        indices.extend(row);
        indptr.push(indices.len() as i64);
    }
    let mut counts = vec![0; D];
    indices.iter().for_each(|&j| counts[j as usize] += 1);
    let (view, _) = CsrView::new(&indptr, &indices, &values, D).unwrap();
    let options = StoreOptions { n_blocks: 1, order: Order::by_count(&counts), ..StoreOptions::default() };
    let mut writer = StoreBuilder::create(path, options).unwrap();
    writer.append(&view.into(), &vec![0; 20_000], None, &Silent).unwrap();
    writer.finish(Classes::Int(vec![0]), None).unwrap();
}

fn decode(c: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let path = std::env::var_os("HINGE_STORE").map(PathBuf::from).unwrap_or_else(|| {
        let path = folder.path().join("synthetic.blocks");
        synthetic(&path);
        path
    });
    let store = Store::open(&path).unwrap();
    let pages: Vec<u32> = (0..store.pages().len().min(256) as u32).collect();
    let stored: Vec<Vec<u8>> = pages
        .iter()
        .map(|&page| {
            let mut bytes = Vec::new();
            store.read_page(page as usize, &mut bytes).unwrap();
            bytes
        })
        .collect();
    let nnz: u64 = pages.iter().map(|&page| u64::from(store.pages()[page as usize].nnz)).sum();
    let largest = pages.iter().map(|&page| store.pages()[page as usize].nnz as usize).max().unwrap();
    let mut group = c.benchmark_group("store/decode");
    // Two ways to keep a row: 4 bytes per entry where values are one number per row, 8 as plain CSR.
    for width in [store.width(), store.plain_width()] {
        let mut arena = Arena::new(width, store.meta().n_used, 1 << 14, largest).unwrap();
        let mut scratch = Scratch::default();
        group.throughput(Throughput::Bytes(nnz * width.entry_bytes() as u64));
        group.bench_function(format!("{width:?}, nnz={nnz}"), |b| {
            b.iter(|| {
                for (&page, bytes) in pages.iter().zip(&stored) {
                    let entry = &store.pages()[page as usize];
                    arena.keep(&[]);
                    arena
                        .fill(entry.n_rows as usize, entry.nnz as usize, |free| {
                            let room = reborrow(&mut free.room);
                            store.decode(page as usize, bytes, &mut scratch, room, &mut Facts::default())
                        })
                        .unwrap();
                }
                black_box(arena.nnz())
            });
        });
    }
    group.finish();
}

criterion_group! { name = benches; config = Criterion::default().sample_size(10); targets = decode }
criterion_main!(benches);
