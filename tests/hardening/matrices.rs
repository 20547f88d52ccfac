//! CSR arrays whose pointers, columns and values may be anything.

use std::sync::atomic::Ordering;

use hinge::fit::Silent;
use hinge::matrix::csr::{CsrPieces, CsrView};
use hinge::matrix::{Index, Rows};
use hinge::memory;
use hinge::model::liblinear::{ClassOrder, parse};
use hinge::model::predictor::Predictor;

use crate::bytes::{Draw, NUMBERS};
use crate::formats::MODELS;
use crate::harness::{INPUT, Verdict};

/// Whether the arrays are a matrix, by the definition.
fn is_matrix<I: Index>(indptr: &[i64], indices: &[I], values: &[f64], d: usize) -> bool {
    let ends: Option<Vec<usize>> = indptr.iter().map(|p| p.checked()).collect();
    let Some(ends) = ends else { return false };
    let stored = indices.len().min(values.len());
    if ends.first() != Some(&0) || !ends.is_sorted() || ends[ends.len() - 1] > stored {
        return false;
    }
    let used = ends[ends.len() - 1];
    indices[..used].iter().all(|j| j.checked().is_some_and(|j| j < d))
        && values[..used].iter().all(|v| v.is_finite())
}

/// A number that is fine, or just beyond, or absurd.
fn spoil(draw: &mut Draw, number: i64, near: i64) -> i64 {
    match draw.below(5) {
        0 => !number,
        1 => near + draw.below(3) as i64 - 1,
        2 => NUMBERS[draw.below(NUMBERS.len())] as i64,
        3 => number.wrapping_add(draw.below(5) as i64 - 2),
        _ => draw.bits() as i64,
    }
}

struct Arrays {
    indptr: Vec<i64>,
    indices: Vec<i64>,
    values: Vec<f64>,
    n_cols: usize,
}

fn arrays(draw: &mut Draw) -> Arrays {
    let (n_rows, n_cols) = (draw.below(7), 1 + draw.below(12));
    let mut made = Arrays { indptr: vec![0], indices: Vec::new(), values: Vec::new(), n_cols };
    for _ in 0..n_rows {
        for j in 0..n_cols {
            if draw.chance(40) {
                made.indices.push(j as i64);
                made.values.push(draw.below(9) as f64 - 4.0);
            }
        }
        made.indptr.push(made.indices.len() as i64);
    }
    for _ in 0..draw.below(4) {
        let nnz = made.indices.len() as i64;
        match draw.below(6) {
            0 | 1 => {
                let at = draw.below(made.indptr.len());
                made.indptr[at] = spoil(draw, made.indptr[at], nnz);
            }
            2 if nnz > 0 => {
                let at = draw.below(nnz as usize);
                made.indices[at] = spoil(draw, made.indices[at], n_cols as i64);
            }
            3 if nnz > 0 => {
                let at = draw.below(made.values.len());
                if let Some(value) = made.values.get_mut(at) {
                    *value = f64::from_bits(NUMBERS[draw.below(NUMBERS.len())]);
                }
            }
            4 => made.values.truncate(draw.below(made.values.len() + 1)),
            5 => made.indptr.truncate(draw.below(made.indptr.len() + 1).max(1)),
            _ => {}
        }
    }
    if draw.chance(1) {
        made.indptr.clear();
    }
    made
}

/// All ways in: views, pieces, a predictor.
fn check<I: Index + std::fmt::Debug>(arrays: &Arrays, convert: impl Fn(i64) -> I) -> Verdict
where
    for<'a> CsrPieces<'a, I, f64>: hinge::model::rows::ModelRows,
{
    let Arrays { indptr, values, n_cols, .. } = arrays;
    let indices: Vec<I> = arrays.indices.iter().map(|&j| convert(j)).collect();
    let is_right = is_matrix(indptr, &indices, values, *n_cols);
    let view = CsrView::new(indptr, &indices, values, *n_cols);
    assert_eq!(view.is_ok(), is_right, "{indptr:?} {indices:?} {values:?} {n_cols}");
    // A model of three columns, given as many.
    let model = parse(MODELS[0].as_bytes(), std::path::Path::new("m"), ClassOrder::Sorted).unwrap();
    if let Ok(rows) = CsrPieces::new(indptr, &indices, values, 3) {
        let predictor = Predictor::new(model).unwrap();
        let found = memory::catch(|| predictor.decision_values(&rows, &Silent));
        assert_eq!(
            found.is_ok(),
            is_matrix(indptr, &indices, values, 3),
            "{indptr:?} {indices:?} {values:?}"
        );
    }
    let Ok((rows, _)) = view else { return Verdict::Refused };
    let w: Vec<f64> = (0..*n_cols).map(|j| 0.5 + j as f64).collect();
    for i in 0..rows.n_rows() {
        let range = indptr[i] as usize..indptr[i + 1] as usize;
        let slow: f64 = range.map(|k| values[k] * w[indices[k].to_usize()]).sum();
        let fast = rows.dot(i, &w);
        assert!((fast - slow).abs() <= 1e-9 * slow.abs().max(1.0) || !slow.is_finite(), "{fast} {slow}");
    }
    Verdict::Read
}

/// Indices of 4 and of 8 bytes.
pub fn csr() -> impl FnMut(u64) -> Verdict {
    |case| {
        let mut draw = Draw::new(case);
        let arrays = arrays(&mut draw);
        INPUT.store(8 * (arrays.indptr.len() + 2 * arrays.indices.len()), Ordering::Relaxed);
        if draw.chance(50) { check(&arrays, |x| x as i32) } else { check(&arrays, |x| x) }
    }
}
