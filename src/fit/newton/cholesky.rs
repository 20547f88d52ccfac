//! Cholesky factorisation of a small dense symmetric matrix, for Newton steps when columns are few.

use std::ops::Range;

use crate::fit::monitor::Monitor;
use crate::fit::sweep::dot;
use crate::matrix::kernels::dot_dense_lanes;
use crate::matrix::simd;
use crate::matrix::simd::Loop;
use crate::{Result, memory, parallel};

/// A symmetric matrix of order `n`, of which only the lower triangle (row after row, full rows) is read.
pub struct Symmetric {
    /// Order.
    pub n: usize,
    /// `n * n` numbers; the factor overwrites the lower triangle.
    pub values: Vec<f64>,
}

impl Clone for Symmetric {
    fn clone(&self) -> Self {
        Self { n: self.n, values: memory::copy(&self.values) }
    }
}

impl Symmetric {
    /// The lower triangle, row after row.
    pub fn lower(&self) -> impl Iterator<Item = f64> {
        (0..self.n).flat_map(|i| self.values[i * self.n..][..=i].iter().copied())
    }

    /// The product with a vector.
    pub fn times(&self, x: &[f64]) -> Vec<f64> {
        let n = self.n;
        let mut out = memory::zeros(n);
        for i in 0..n {
            let row = &self.values[i * n..][..i];
            out[i] = dot(row, &x[..i]) + self.values[i * n + i] * x[i];
            for (out, v) in out[..i].iter_mut().zip(row) {
                *out += v * x[i];
            }
        }
        out
    }

    /// The matrix of order `n` with a lower triangle of so many numbers.
    pub fn from_lower(n: usize, lower: &[f64]) -> Self {
        let mut values = memory::zeros(n * n);
        let mut rest = lower;
        for i in 0..n {
            let (row, later) = rest.split_at(i + 1);
            values[i * n..][..=i].copy_from_slice(row);
            rest = later;
        }
        Self { n, values }
    }

    /// The sum with a lower triangle of as many numbers.
    #[must_use]
    pub fn plus(&self, lower: &[f64]) -> Self {
        let mut sum = Self::from_lower(self.n, lower);
        sum.values.iter_mut().zip(&self.values).for_each(|(sum, v)| *sum += v);
        sum
    }

    /// Overwrites the lower triangle with `L`, `L L' = A`.
    ///
    /// A pivot not above `n * eps` times its diagonal entry is a direction without curvature (the free
    /// intercept when no row is active): it gets a huge pivot, so that the solution has no component along
    /// it.
    pub fn factorise(&mut self) {
        let panel = if self.n < PANELS_FROM { self.n.max(1) } else { PANEL };
        self.factorise_by(panel);
    }

    /// The same for a large matrix whose rows from `order` on are those of the identity, where somebody may
    /// ask for a stop.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn factorise_watched(&mut self, order: usize, monitor: &dyn Monitor) -> Result<()> {
        for first in (0..order).step_by(PANEL) {
            monitor.poll()?;
            self.factorise_panel(first..order.min(first + PANEL), order);
        }
        Ok(())
    }

    /// Factorises so many columns at a time.
    fn factorise_by(&mut self, panel: usize) {
        let n = self.n;
        (0..n).step_by(panel).for_each(|first| self.factorise_panel(first..n.min(first + panel), n));
    }

    /// The columns of a panel of the factor in the rows before `order`, the columns before them being done.
    fn factorise_panel(&mut self, panel: Range<usize>, order: usize) {
        let (n, Range { start: first, end }) = (self.n, panel.clone());
        if first > 0 {
            let turned = Turned::of(&self.values[first * n..end * n], n, first);
            let rows = &mut self.values[first * n..order * n];
            parallel::each(rows.chunks_mut(ROWS * n), |_, rows| {
                simd::run(Update { turned: &turned, rows, n, panel: panel.clone() });
            });
        }
        panel.clone().for_each(|i| self.factorise_row(i, first));
        let (done, below) = self.values[..order * n].split_at_mut(end * n);
        let done = &done[first * n..];
        parallel::each(below.chunks_mut(ROWS * n), |_, rows| {
            simd::run(BelowPanel { done, rows, n, panel: panel.clone() });
        });
    }

    /// Row `i` of the factor from column `from` on, the rows before it being done and the products of the
    /// columns before `from` taken off.
    fn factorise_row(&mut self, i: usize, from: usize) {
        let n = self.n;
        let (done, rest) = self.values.split_at_mut(i * n);
        let row = &mut rest[..n];
        below_panel(&done[from * n..], row, n, from..i);
        let products = &row[from..i];
        let full = row[i] + dot(&row[..from], &row[..from]);
        let pivot = row[i] - dot(products, products);
        row[i] = if pivot > n as f64 * f64::EPSILON * full { pivot.sqrt() } else { f64::MAX.sqrt() };
    }

    /// Row `i` of the factor, the rows before it being done and those behind it without entries in its
    /// column.
    pub fn add_row(&mut self, i: usize) {
        self.factorise_row(i, 0);
    }

    /// Makes of the factor that of the matrix whose row and column `p` are those of the identity.
    pub fn isolate(&mut self, p: usize) {
        simd::run(Isolation { factor: self, p });
    }

    /// Solves `L L' x = b` in place in each lane, after [`Self::factorise`].
    pub fn solve<const LANES: usize>(&self, b: &mut [[f64; LANES]]) {
        simd::run(Substitution { factor: self, b });
    }
}

/// Order from which a factorisation goes by panels. Below, on one thread, with panels of 16, 32 and 64
/// columns and as one: order 123 0.10, 0.11, 0.12 and 0.11 ms, order 267 0.60, 0.65, 0.69 and 0.72, order 500
/// 2.6, 2.8, 3.0 and 4.1.
const PANELS_FROM: usize = 512;
/// Columns of a panel.
const PANEL: usize = 64;
/// Rows of a panel, side by side, whose products with other rows are computed at once.
const STRIP: usize = 16;
/// Rows that are multiplied by a strip at once,
const TOGETHER_DOWN: usize = 8;
/// in a task,
const ROWS: usize = 32;
/// and columns of the factor at a time: a piece of the turned panel, 128 KB, stays in the second cache.
const DEPTH: usize = 256;

/// The rows of a panel turned, strip by strip for each [`DEPTH`] columns: the numbers of a column side by
/// side.
struct Turned {
    values: Vec<[f64; STRIP]>,
    /// Columns.
    n: usize,
    strips: usize,
}

impl Turned {
    /// Of rows of `width` numbers the first `n`.
    fn of(rows: &[f64], width: usize, n: usize) -> Self {
        let strips = (rows.len() / width).div_ceil(STRIP);
        let mut values = memory::filled([0.0; STRIP], strips * n);
        let mut left = &mut values[..];
        for from in (0..n).step_by(DEPTH) {
            let columns = from..n.min(from + DEPTH);
            for strip in rows.chunks(STRIP * width) {
                let (turned, rest) = left.split_at_mut(columns.len());
                left = rest;
                for (lane, row) in strip.chunks(width).enumerate() {
                    turned.iter_mut().zip(&row[columns.clone()]).for_each(|(turned, x)| turned[lane] = *x);
                }
            }
        }
        Self { values, n, strips }
    }

    /// Some columns, and their numbers in each strip.
    #[inline(always)]
    fn pieces(&self) -> impl Iterator<Item = (Range<usize>, std::slice::ChunksExact<'_, [f64; STRIP]>)> {
        (0..self.n).step_by(DEPTH).map(|from| {
            let columns = from..self.n.min(from + DEPTH);
            let piece = &self.values[from * self.strips..][..columns.len() * self.strips];
            (columns.clone(), piece.chunks_exact(columns.len()))
        })
    }
}

/// Takes the products of some rows with those of a panel, as far as the factor is done, off the columns of
/// the panel. To be compiled for the machine.
struct Update<'a> {
    turned: &'a Turned,
    rows: &'a mut [f64],
    n: usize,
    panel: Range<usize>,
}

impl Loop for Update<'_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) {
        let Self { turned, rows, n, panel } = self;
        for (columns, strips) in turned.pieces() {
            for rows in rows.chunks_mut(TOGETHER_DOWN * n) {
                let count = rows.len() / n;
                for (strip, at) in strips.clone().zip(panel.clone().step_by(STRIP)) {
                    // Past the last row it takes part again.
                    let row = |r: usize| &rows[r.min(count - 1) * n..][columns.clone()];
                    let products = products(std::array::from_fn(row), strip);
                    for (row, products) in rows.chunks_mut(n).zip(products) {
                        let row = &mut row[at..panel.end.min(at + STRIP)];
                        row.iter_mut().zip(products).for_each(|(entry, product)| *entry -= product);
                    }
                }
            }
        }
    }
}

/// Products of rows with those of a strip.
#[inline(always)]
fn products(rows: [&[f64]; TOGETHER_DOWN], strip: &[[f64; STRIP]]) -> [[f64; STRIP]; TOGETHER_DOWN] {
    let mut sums = [[0.0; STRIP]; TOGETHER_DOWN];
    let rows = rows.map(|row| &row[..strip.len()]);
    for (k, column) in strip.iter().enumerate() {
        for r in 0..TOGETHER_DOWN {
            let x = rows[r][k];
            for lane in 0..STRIP {
                sums[r][lane] += x * column[lane];
            }
        }
    }
    sums
}

/// The columns of a panel in some rows below it, to be compiled for the machine.
struct BelowPanel<'a> {
    /// The rows of the panel.
    done: &'a [f64],
    rows: &'a mut [f64],
    n: usize,
    panel: Range<usize>,
}

impl Loop for BelowPanel<'_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) {
        let Self { done, rows, n, panel } = self;
        rows.chunks_mut(n).for_each(|row| below_panel(done, row, n, panel.clone()));
    }
}

/// The columns of a panel in a row below it.
#[inline(always)]
fn below_panel(done: &[f64], row: &mut [f64], n: usize, panel: Range<usize>) {
    let first = panel.start;
    for j in panel {
        let above = &done[(j - first) * n..][..n];
        row[j] = (row[j] - dot(&row[first..j], &above[first..j])) / above[j];
    }
}

/// Rows of a factor that take up a column together.
const TOGETHER: usize = 8;

/// The first [`TOGETHER`] rows of `n` numbers, if there are so many.
#[inline(always)]
fn rows_together(values: &mut [f64], n: usize) -> Option<[&mut [f64]; TOGETHER]> {
    let mut rows = values.chunks_exact_mut(n);
    let rows: [_; TOGETHER] = std::array::from_fn(|_| rows.next());
    rows.iter().all(Option::is_some).then(|| rows.map(Option::unwrap_or_default))
}

/// [`Symmetric::isolate`], to be compiled for the machine: rotations of the columns behind `p` take up what
/// the column has, which is a change of rank one.
struct Isolation<'a> {
    factor: &'a mut Symmetric,
    p: usize,
}

impl Loop for Isolation<'_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) {
        let (n, p) = (self.factor.n, self.p);
        self.factor.values[p * n..][..p].fill(0.0);
        self.factor.values[p * n + p] = 1.0;
        let mut rotations: Vec<[f64; 2]> = Vec::with_capacity(n - p);
        for first in (p + 1..n).step_by(TOGETHER) {
            let rest = &mut self.factor.values[first * n..];
            let mut turned = 0;
            let mut left = [0.0; TOGETHER];
            (0..TOGETHER.min(n - first)).for_each(|r| left[r] = std::mem::take(&mut rest[r * n + p]));
            if let Some(rows) = rows_together(rest, n) {
                let rows = rows.map(|row| &mut row[p + 1..first]);
                for (k, rotation) in rotations.iter().enumerate() {
                    for r in 0..TOGETHER {
                        turn(*rotation, &mut rows[r][k], &mut left[r]);
                    }
                }
                turned = rotations.len();
            }
            for r in 0..TOGETHER.min(n - first) {
                let (row, i) = (&mut rest[r * n..][..n], first + r);
                for (k, rotation) in rotations.iter().enumerate().skip(turned) {
                    turn(*rotation, &mut row[p + 1 + k], &mut left[r]);
                }
                let length = row[i].hypot(left[r]);
                rotations.push([row[i] / length, left[r] / length]);
                row[i] = length;
            }
        }
    }
}

#[inline(always)]
fn turn([c, s]: [f64; 2], entry: &mut f64, left: &mut f64) {
    (*entry, *left) = (c * *entry + s * *left, c * *left - s * *entry);
}

/// [`Symmetric::solve`], to be compiled for the machine.
struct Substitution<'a, const LANES: usize> {
    factor: &'a Symmetric,
    b: &'a mut [[f64; LANES]],
}

impl<const LANES: usize> Loop for Substitution<'_, LANES> {
    type Output = ();
    const IS_WIDE: bool = LANES > 1;
    #[inline(always)]
    fn run(self) {
        let (n, b) = (self.factor.n, self.b);
        for i in 0..n {
            let row = &self.factor.values[i * n..i * n + i + 1];
            let (done, rest) = b.split_at_mut(i);
            let sum = dot_dense_lanes(&row[..i], done);
            for l in 0..LANES {
                rest[0][l] = (rest[0][l] - sum[l]) / row[i];
            }
        }
        for i in (0..n).rev() {
            let row = &self.factor.values[i * n..i * n + i + 1];
            let (before, rest) = b.split_at_mut(i);
            let x = &mut rest[0];
            for l in 0..LANES {
                x[l] /= row[i];
            }
            for (b, v) in before.iter_mut().zip(row) {
                for l in 0..LANES {
                    b[l] -= v * x[l];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn solves_positive_definite_systems(n in 1..12usize, seed in 0..1000u32) {
            let entry = |i: usize, j: usize| f64::from(((i * 31 + j * 17) as u32 + seed * 7) % 23) - 11.0;
            let mut a = Symmetric { n, values: vec![0.0; n * n] };
            for i in 0..n {
                for j in 0..n {
                    let product: f64 = (0..n).map(|k| entry(i, k) * entry(j, k)).sum();
                    a.values[i * n + j] = product + if i == j { 1.0 } else { 0.0 };
                }
            }
            let x: Vec<f64> = (0..n).map(|i| i as f64 - 2.5).collect();
            let mut b: Vec<[f64; 2]> = (0..n)
                .map(|i| (0..n).map(|j| a.values[i * n + j] * x[j]).sum())
                .map(|b: f64| [b, 2.0 * b])
                .collect();
            a.factorise();
            a.solve(&mut b);
            for i in 0..n {
                prop_assert!((b[i][0] - x[i]).abs() < 1e-6 && (b[i][1] - 2.0 * x[i]).abs() < 1e-6, "{b:?}");
            }
        }
    }

    /// A positive definite matrix that repeats no pattern.
    fn some_matrix(n: usize, seed: usize) -> Symmetric {
        let entry = |i: usize, j: usize| ((i * 37 + j * 101 + seed * 7) % 53) as f64 / 26.0 - 1.0;
        let product = |i: usize, j: usize| (0..n).map(|k| entry(i, k) * entry(j, k)).sum::<f64>();
        let at = |k: usize| product(k / n, k % n) + if k / n == k % n { 1.0 } else { 0.0 };
        Symmetric { n, values: (0..n * n).map(at).collect() }
    }

    fn assert_same_factor(found: &Symmetric, expected: &Symmetric) {
        for (found, expected) in found.lower().zip(expected.lower()) {
            assert!((found - expected).abs() <= 1e-9 * (1.0 + expected.abs()), "{found}, not {expected}");
        }
    }

    #[test]
    fn panels_of_any_width_give_the_same_factor() {
        for n in [1, 5, 8, 31, 70] {
            let mut plain = some_matrix(n, n);
            plain.factorise();
            for panel in [1, 3, 4, 8, 17, 32, 100] {
                let mut by_panels = some_matrix(n, n);
                by_panels.factorise_by(panel);
                assert_same_factor(&by_panels, &plain);
            }
        }
        // More columns than are taken at a time, and a last panel and strip that are not whole.
        let n = DEPTH + PANEL + STRIP + 3;
        let (mut plain, mut by_panels) = (some_matrix(n, n), some_matrix(n, n));
        plain.factorise();
        by_panels.factorise_by(PANEL);
        assert_same_factor(&by_panels, &plain);
    }

    #[test]
    fn rows_of_the_identity_at_the_end_stay_what_they_are() {
        let (order, n) = (2 * PANEL + 5, 3 * PANEL);
        let whole = some_matrix(n, 3);
        let is_there = |k: usize| k / n < order && k % n < order;
        let of_identity = |k: usize| if k / n == k % n { 1.0 } else { 0.0 };
        let at = |k: usize| if is_there(k) { whole.values[k] } else { of_identity(k) };
        let mut plain = Symmetric { n, values: (0..n * n).map(at).collect() };
        let mut watched = plain.clone();
        plain.factorise();
        watched.factorise_watched(order, &crate::fit::monitor::Silent).unwrap();
        assert_same_factor(&watched, &plain);
    }

    #[test]
    fn isolated_rows_leave_the_factor_of_the_others_and_can_be_added_again() {
        let n = 37;
        for p in [0, 1, 20, 35, 36] {
            let (mut whole, mut without) = (some_matrix(n, p), some_matrix(n, p));
            for k in 0..n {
                let entry = if k == p { 1.0 } else { 0.0 };
                (without.values[p * n + k], without.values[k * n + p]) = (entry, entry);
            }
            without.factorise();
            whole.factorise();
            whole.isolate(p);
            assert_same_factor(&whole, &without);
        }
        let (mut whole, mut last) = (some_matrix(n, 1), some_matrix(n, 1));
        let row = last.values[(n - 1) * n..].to_vec();
        whole.factorise();
        last.factorise();
        last.isolate(n - 1);
        last.values[(n - 1) * n..].copy_from_slice(&row);
        last.add_row(n - 1);
        assert_same_factor(&last, &whole);
    }

    #[test]
    fn ignores_a_direction_without_curvature() {
        let mut a = Symmetric { n: 2, values: vec![4.0, 0.0, 0.0, 0.0] };
        a.factorise();
        let mut b = [[8.0], [0.0]];
        a.solve(&mut b);
        assert_eq!(b, [[2.0], [0.0]]);
    }
}
