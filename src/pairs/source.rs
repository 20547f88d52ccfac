//! The pairs of a row's entries, generated while they are used.
//!
//! In the exact layout the weights of all products with column `j` lie in one segment of `n` numbers, so the
//! products of the `a`-th entry with those after it are a sparse row (the rest of this one) times that
//! segment: the ordinary kernels compute it, and their promise (every index below the length of the weights)
//! is the same. Needs columns in rising order.

use super::map::{Map, PairLayout, hashed};
use crate::matrix::csr::CsrView;
use crate::matrix::dense::DenseView;
use crate::matrix::scaled::ScaledView;
use crate::matrix::{Index, Rows, Value, kernels};

/// Rows whose pairs of entries can be read.
pub trait PairSource: Rows {
    /// `phi(x_i) . w` in each lane, without the constant feature.
    fn pair_dot<const L: usize>(&self, i: usize, map: &Map, w: &[[f64; L]]) -> [f64; L];
    /// `w += scale * phi(x_i)` in each lane, without the constant feature.
    fn pair_add<const L: usize>(&self, i: usize, map: &Map, scale: &[f64; L], w: &mut [[f64; L]]);
}

#[inline(always)]
fn add<const L: usize>(sum: &mut [f64; L], scale: f64, other: &[f64; L]) {
    for l in 0..L {
        sum[l] += scale * other[l];
    }
}

#[inline(always)]
fn times<const L: usize>(scale: &[f64; L], factor: f64) -> [f64; L] {
    std::array::from_fn(|l| scale[l] * factor)
}

impl<I: Index, V: Value> PairSource for CsrView<'_, I, V> {
    #[inline(always)]
    #[allow(unsafe_code)]
    fn pair_dot<const L: usize>(&self, i: usize, map: &Map, w: &[[f64; L]]) -> [f64; L] {
        let (n, factors) = (self.n_cols(), map.factors);
        assert!(map.n_in() == n && w.len() >= map.n_pairs());
        let (indices, values) = self.row(i);
        let mut sum = times(&self.dot_lanes(i, &w[..n]), factors.linear);
        match &map.layout {
            PairLayout::Exact => {
                for (a, (j, v)) in indices.iter().zip(values).enumerate() {
                    let (j, v) = (j.to_usize(), v.to_f64());
                    let segment = &w[map.start(j)..][..n];
                    let (rest, rest_values) = (&indices[a + 1..], &values[a + 1..]);
                    // SAFETY: `CsrView::new` proved every index below `n`, the length of the segment.
                    let products = unsafe { dot_one_or_more(rest, rest_values, segment) };
                    add(&mut sum, factors.product * v, &products);
                    add(&mut sum, factors.square * v * v, &segment[j]);
                }
            }
            PairLayout::Hashed { keys, bits } => {
                let (squares, table) = (&w[n..2 * n], &w[2 * n..]);
                for (a, (j, v)) in indices.iter().zip(values).enumerate() {
                    let (j, v) = (j.to_usize(), v.to_f64());
                    let (mut even, mut odd) = ([0.0; L], [0.0; L]);
                    for (k, u) in indices[a + 1..].iter().zip(&values[a + 1..]) {
                        let (at, sign) = hashed(keys[j], keys[k.to_usize()], *bits);
                        add(&mut even, sign * u.to_f64(), &table[at]);
                        std::mem::swap(&mut even, &mut odd);
                    }
                    add(&mut even, 1.0, &odd);
                    add(&mut sum, factors.product * v, &even);
                    add(&mut sum, factors.square * v * v, &squares[j]);
                }
            }
        }
        sum
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn pair_add<const L: usize>(&self, i: usize, map: &Map, scale: &[f64; L], w: &mut [[f64; L]]) {
        let (n, factors) = (self.n_cols(), map.factors);
        assert!(map.n_in() == n && w.len() >= map.n_pairs());
        let (indices, values) = self.row(i);
        self.add_lanes(i, &times(scale, factors.linear), &mut w[..n]);
        match &map.layout {
            PairLayout::Exact => {
                for (a, (j, v)) in indices.iter().zip(values).enumerate() {
                    let (j, v) = (j.to_usize(), v.to_f64());
                    let segment = &mut w[map.start(j)..][..n];
                    add(&mut segment[j], factors.square * v * v, scale);
                    let scale = times(scale, factors.product * v);
                    // SAFETY: `CsrView::new` proved every index below `n`, the length of the segment.
                    unsafe { kernels::add_lanes(&indices[a + 1..], &values[a + 1..], &scale, segment) };
                }
            }
            PairLayout::Hashed { keys, bits } => {
                let (squares, table) = w[n..].split_at_mut(n);
                for (a, (j, v)) in indices.iter().zip(values).enumerate() {
                    let (j, v) = (j.to_usize(), v.to_f64());
                    add(&mut squares[j], factors.square * v * v, scale);
                    for (k, u) in indices[a + 1..].iter().zip(&values[a + 1..]) {
                        let (at, sign) = hashed(keys[j], keys[k.to_usize()], *bits);
                        add(&mut table[at], sign * factors.product * v * u.to_f64(), scale);
                    }
                }
            }
        }
    }
}

/// The kernel for one lane, or for several.
///
/// # Safety
/// As for [`kernels::dot`].
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn dot_one_or_more<I: Index, V: Value, const L: usize>(
    indices: &[I],
    values: &[V],
    w: &[[f64; L]],
) -> [f64; L] {
    // SAFETY: the caller's promise.
    unsafe {
        if L == 1 {
            [kernels::dot(indices, values, w.as_flattened()); L]
        } else {
            kernels::dot_lanes(indices, values, w)
        }
    }
}

impl PairSource for ScaledView<'_> {
    #[inline(always)]
    #[allow(unsafe_code)]
    fn pair_dot<const L: usize>(&self, i: usize, map: &Map, w: &[[f64; L]]) -> [f64; L] {
        let (n, factors) = (self.n_cols(), map.factors);
        assert!(map.n_in() == n && w.len() >= map.n_pairs());
        let (indices, v) = self.parts(i);
        let (mut squares, mut products) = ([0.0; L], [0.0; L]);
        match &map.layout {
            PairLayout::Exact => {
                for (a, j) in indices.iter().enumerate() {
                    let j = j.to_usize();
                    let segment = &w[map.start(j)..][..n];
                    // SAFETY: every index of a view is below `n`, the length of the segment.
                    let rest = unsafe { sum_one_or_more(&indices[a + 1..], segment) };
                    add(&mut products, 1.0, &rest);
                    add(&mut squares, 1.0, &segment[j]);
                }
            }
            PairLayout::Hashed { keys, bits } => {
                for (a, j) in indices.iter().enumerate() {
                    let j = j.to_usize();
                    for k in &indices[a + 1..] {
                        let (at, sign) = hashed(keys[j], keys[k.to_usize()], *bits);
                        add(&mut products, sign, &w[2 * n + at]);
                    }
                    add(&mut squares, 1.0, &w[n + j]);
                }
            }
        }
        let mut sum = times(&self.dot_lanes(i, &w[..n]), factors.linear);
        add(&mut sum, factors.square * v * v, &squares);
        add(&mut sum, factors.product * v * v, &products);
        sum
    }

    #[inline(always)]
    #[allow(unsafe_code)]
    fn pair_add<const L: usize>(&self, i: usize, map: &Map, scale: &[f64; L], w: &mut [[f64; L]]) {
        let (n, factors) = (self.n_cols(), map.factors);
        assert!(map.n_in() == n && w.len() >= map.n_pairs());
        let (indices, v) = self.parts(i);
        self.add_lanes(i, &times(scale, factors.linear), &mut w[..n]);
        let (square, product) = (times(scale, factors.square * v * v), times(scale, factors.product * v * v));
        for (a, j) in indices.iter().enumerate() {
            let j = j.to_usize();
            match &map.layout {
                PairLayout::Exact => {
                    let segment = &mut w[map.start(j)..][..n];
                    add(&mut segment[j], 1.0, &square);
                    // SAFETY: as in `pair_dot`.
                    unsafe { kernels::add_lanes_at(&indices[a + 1..], &product, segment) };
                }
                PairLayout::Hashed { keys, bits } => {
                    add(&mut w[n + j], 1.0, &square);
                    for k in &indices[a + 1..] {
                        let (at, sign) = hashed(keys[j], keys[k.to_usize()], *bits);
                        add(&mut w[2 * n + at], sign, &product);
                    }
                }
            }
        }
    }
}

/// The kernel for one lane, or for several.
///
/// # Safety
/// As for [`kernels::sum_at`].
#[inline(always)]
#[allow(unsafe_code)]
unsafe fn sum_one_or_more<const L: usize>(indices: &[i32], w: &[[f64; L]]) -> [f64; L] {
    // SAFETY: the caller's promise.
    unsafe {
        if L == 1 {
            [kernels::sum_at(indices, w.as_flattened()); L]
        } else {
            kernels::sum_lanes_at(indices, w)
        }
    }
}

impl<V: Value> PairSource for DenseView<'_, V> {
    #[inline(always)]
    fn pair_dot<const L: usize>(&self, i: usize, map: &Map, w: &[[f64; L]]) -> [f64; L] {
        let (n, factors) = (self.n_cols(), map.factors);
        assert!(map.n_in() == n && w.len() >= map.n_pairs());
        let row = self.row(i);
        let mut sum = times(&self.dot_lanes(i, &w[..n]), factors.linear);
        for (j, v) in row.iter().map(|v| v.to_f64()).enumerate().filter(|&(_, v)| v != 0.0) {
            let rest = &row[j + 1..];
            let mut products = [0.0; L];
            match &map.layout {
                PairLayout::Exact => {
                    let segment = &w[map.start(j)..][..n];
                    let after = &segment[j + 1..];
                    products = if L == 1 {
                        [kernels::dot_dense(rest, after.as_flattened()); L]
                    } else {
                        kernels::dot_dense_lanes(rest, after)
                    };
                    add(&mut sum, factors.square * v * v, &segment[j]);
                }
                PairLayout::Hashed { keys, bits } => {
                    let table = &w[2 * n..];
                    for (k, u) in rest.iter().enumerate().filter(|(_, u)| u.to_f64() != 0.0) {
                        let (at, sign) = hashed(keys[j], keys[j + 1 + k], *bits);
                        add(&mut products, sign * u.to_f64(), &table[at]);
                    }
                    add(&mut sum, factors.square * v * v, &w[n + j]);
                }
            }
            add(&mut sum, factors.product * v, &products);
        }
        sum
    }

    #[inline(always)]
    fn pair_add<const L: usize>(&self, i: usize, map: &Map, scale: &[f64; L], w: &mut [[f64; L]]) {
        let (n, factors) = (self.n_cols(), map.factors);
        assert!(map.n_in() == n && w.len() >= map.n_pairs());
        let row = self.row(i);
        self.add_lanes(i, &times(scale, factors.linear), &mut w[..n]);
        for (j, v) in row.iter().map(|v| v.to_f64()).enumerate().filter(|&(_, v)| v != 0.0) {
            let rest = &row[j + 1..];
            let square = factors.square * v * v;
            match &map.layout {
                PairLayout::Exact => {
                    let segment = &mut w[map.start(j)..][..n];
                    add(&mut segment[j], square, scale);
                    let scale = times(scale, factors.product * v);
                    for (entry, u) in segment[j + 1..].iter_mut().zip(rest) {
                        add(entry, u.to_f64(), &scale);
                    }
                }
                PairLayout::Hashed { keys, bits } => {
                    add(&mut w[n + j], square, scale);
                    for (k, u) in rest.iter().enumerate().filter(|(_, u)| u.to_f64() != 0.0) {
                        let (at, sign) = hashed(keys[j], keys[j + 1 + k], *bits);
                        add(&mut w[2 * n + at], sign * factors.product * v * u.to_f64(), scale);
                    }
                }
            }
        }
    }
}
