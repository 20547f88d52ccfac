//! Numbers for each column and class, and the rows that meet them.
//!
//! ```text
//!     strip 0: classes 0 .. 31                 strip 1: classes 32 .. 55
//!     column 0: 4 cache lines                  column 0: 3 cache lines
//!     column 1: 4 cache lines                  column 1: 3 cache lines
//!     ...                                      ...
//! ```
//!
//! One entry of a row meets all classes of a strip in one run of cache lines, whose sums stay in registers.
//! Strips are also what several threads divide among them when rows are added up: no sum runs over two of
//! them. Classes are padded to whole lines; the padding stays zero.

use std::ops::Range;

use crate::fit::crammer_singer::weights::{ClassWeights, LINE};
use crate::fit::multinomial::softmax::Lines;
use crate::fit::sweep::{for_chunks, sum_entries};
use crate::matrix::Rows;
use crate::matrix::lanes::Block;
use crate::memory;

/// Cache lines of a strip at most: their sums stay in registers.
const MAX_WIDTH: usize = 4;
/// Dense rows that meet a strip together: a line that was loaded serves all of them, and their sums wait for
/// themselves only.
const TOGETHER: usize = 4;

/// Numbers of some neighbouring classes for each column.
#[derive(Clone)]
pub struct Strip {
    /// The numbers, class within column.
    pub numbers: Block<LINE>,
    /// Cache lines per column.
    pub width: usize,
    /// The first of them among those of all classes.
    pub first: usize,
}

/// Numbers of all classes for each column.
#[derive(Clone)]
pub struct Strips {
    /// The strips, in the order of their classes.
    pub strips: Vec<Strip>,
    n_columns: usize,
}

impl Strips {
    /// Zeros.
    pub fn zeros(n_columns: usize, lines: usize) -> Self {
        let count = lines.div_ceil(MAX_WIDTH);
        let first = |k: usize| k * lines / count;
        let strips = (0..count)
            .map(|k| {
                let width = first(k + 1) - first(k);
                Strip { numbers: Block::zeros(n_columns * width), width, first: first(k) }
            })
            .collect();
        Self { strips, n_columns }
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Forgets the last column.
    pub fn drop_last_column(&mut self) {
        self.n_columns -= 1;
    }

    /// Sets all to zero.
    pub fn clear(&mut self) {
        self.strips
            .iter_mut()
            .for_each(|strip| for_chunks(&mut strip.numbers, |_, piece| piece.fill([0.0; LINE])));
    }

    /// Takes over numbers of the same shape.
    pub fn copy_from(&mut self, other: &Self) {
        for (mine, other) in self.strips.iter_mut().zip(&other.strips) {
            let n = self.n_columns * mine.width;
            mine.numbers[..n].copy_from_slice(&other.numbers[..n]);
        }
    }

    /// Takes over the columns that both have.
    pub fn copy_columns(&mut self, other: &Self) {
        let n_columns = self.n_columns.min(other.n_columns);
        for (mine, other) in self.strips.iter_mut().zip(&other.strips) {
            let n = n_columns * mine.width;
            mine.numbers[..n].copy_from_slice(&other.numbers[..n]);
        }
    }

    /// Sets one number.
    pub fn set(&mut self, column: usize, class: usize, number: f64) {
        let line = class / LINE;
        if let Some(strip) = self.strips.iter_mut().rfind(|strip| strip.first <= line) {
            strip.numbers[column * strip.width + line - strip.first][class % LINE] = number;
        }
    }

    /// Copies the numbers of one column, line by line.
    pub fn column(&self, column: usize, out: &mut Lines) {
        for strip in &self.strips {
            let numbers = &strip.numbers[column * strip.width..][..strip.width];
            out[strip.first..][..strip.width].copy_from_slice(numbers);
        }
    }

    /// Sets the numbers of one column.
    pub fn set_column(&mut self, column: usize, lines: &Lines) {
        for strip in &mut self.strips {
            let numbers = &mut strip.numbers[column * strip.width..][..strip.width];
            numbers.copy_from_slice(&lines[strip.first..][..strip.width]);
        }
    }

    /// Calls `f(mine, other)` for the numbers of each piece of the first `n_columns` columns, in parallel.
    pub fn zip(
        &mut self,
        other: &Self,
        n_columns: usize,
        f: impl Fn(&mut [[f64; LINE]], &[[f64; LINE]]) + Sync,
    ) {
        for (mine, other) in self.strips.iter_mut().zip(&other.strips) {
            let n = n_columns * mine.width;
            let other = &other.numbers[..n];
            for_chunks(&mut mine.numbers[..n], |start, piece| f(piece, &other[start..][..piece.len()]));
        }
    }

    /// `self += scale * other`.
    pub fn add_scaled(&mut self, scale: f64, other: &Self) {
        self.zip(other, self.n_columns, |mine, other| {
            for (mine, other) in mine.iter_mut().zip(other) {
                for l in 0..LINE {
                    mine[l] += scale * other[l];
                }
            }
        });
    }

    /// The sum of products over the first `n_columns` columns.
    pub fn dot(&self, other: &Self, n_columns: usize) -> f64 {
        let pairs = self.strips.iter().zip(&other.strips);
        pairs
            .map(|(a, b)| {
                let [lanes] = sum_entries(n_columns * a.width, |k| {
                    let (a, b) = (&a.numbers[k], &b.numbers[k]);
                    [std::array::from_fn::<f64, LINE, _>(|l| a[l] * b[l])]
                });
                lanes.iter().sum::<f64>()
            })
            .sum()
    }

    /// The weights of the first `n_columns` columns as a model has them.
    pub fn class_weights(&self, n_columns: usize, n_classes: usize) -> ClassWeights {
        let mut weights = ClassWeights::zeros(n_columns, n_classes);
        let mut lines = vec![[0.0; LINE]; n_classes.div_ceil(LINE)];
        for column in 0..n_columns {
            self.column(column, &mut lines);
            weights.set_column(column, lines.as_flattened()[..n_classes].iter().copied());
        }
        weights
    }

    /// One class's numbers.
    pub fn class(&self, class: usize) -> Vec<f64> {
        let line = class / LINE;
        let strip = self.strips.iter().rfind(|strip| strip.first <= line);
        let mut out = memory::zeros(self.n_columns);
        if let Some(strip) = strip {
            let lines = strip.numbers.iter().skip(line - strip.first).step_by(strip.width);
            out.iter_mut().zip(lines).for_each(|(out, line)| *out = line[class % LINE]);
        }
        out
    }

    /// Sets the first columns of one class.
    pub fn set_class(&mut self, class: usize, numbers: &[f64]) {
        let line = class / LINE;
        if let Some(strip) = self.strips.iter_mut().rfind(|strip| strip.first <= line) {
            let (skip, width) = (line - strip.first, strip.width);
            let lines = strip.numbers.iter_mut().skip(skip).step_by(width);
            lines.zip(numbers).for_each(|(line, x)| line[class % LINE] = *x);
        }
    }

    /// Products with successive rows, from `first` on: row after row of `lines` lines in `out`.
    #[inline(always)]
    pub fn scores<R: Rows>(&self, rows: &R, first: usize, lines: usize, out: &mut Lines) {
        // Loops and no closures, which would be compiled for the least common machine.
        if R::IS_DENSE {
            for strip in &self.strips {
                strip.scores_of_all(rows, first, lines, out);
            }
            return;
        }
        for (out, i) in out.chunks_exact_mut(lines).zip(first..) {
            for strip in &self.strips {
                strip.scores(rows, i, out);
            }
        }
    }
}

impl Strip {
    /// `x_i` times the numbers, into the strip's lines of `out`.
    #[inline(always)]
    pub fn scores<R: Rows>(&self, rows: &R, i: usize, out: &mut Lines) {
        let out = &mut out[self.first..][..self.width];
        match self.width {
            1 => out.copy_from_slice(&rows.dot_lines::<1>(i, &self.numbers, 1, 0)),
            2 => out.copy_from_slice(&rows.dot_lines::<2>(i, &self.numbers, 2, 0)),
            3 => out.copy_from_slice(&rows.dot_lines::<3>(i, &self.numbers, 3, 0)),
            _ => out.copy_from_slice(&rows.dot_lines::<4>(i, &self.numbers, 4, 0)),
        }
    }

    /// The same for all rows of a table, from row `first` on.
    #[inline(always)]
    fn scores_of_all<R: Rows>(&self, rows: &R, first: usize, lines: usize, out: &mut Lines) {
        match self.width {
            1 => self.scores_together::<R, 1, TOGETHER>(rows, first, lines, out),
            2 => self.scores_together::<R, 2, TOGETHER>(rows, first, lines, out),
            3 => self.scores_together::<R, 3, TOGETHER>(rows, first, lines, out),
            _ => self.scores_together::<R, 4, TOGETHER>(rows, first, lines, out),
        }
    }

    #[inline(always)]
    fn scores_together<R: Rows, const G: usize, const N: usize>(
        &self,
        rows: &R,
        first: usize,
        lines: usize,
        out: &mut Lines,
    ) {
        let mut tiles = out.chunks_exact_mut(N * lines);
        let mut i = first;
        for tile in &mut tiles {
            let sums = rows.dot_lines_of::<G, N>(std::array::from_fn(|r| i + r), &self.numbers, G, 0);
            for (row, sums) in tile.chunks_exact_mut(lines).zip(&sums) {
                row[self.first..][..G].copy_from_slice(sums);
            }
            i += N;
        }
        for row in tiles.into_remainder().chunks_exact_mut(lines) {
            self.scores(rows, i, row);
            i += 1;
        }
    }

    /// Adds some rows, each times its coefficients.
    #[inline(always)]
    pub fn scatter<R: Rows, C: Coefficients>(&mut self, rows: &R, range: Range<usize>, coefficients: &C) {
        match self.width {
            1 => self.scatter_together::<R, C, 1, TOGETHER>(rows, range, coefficients),
            2 => self.scatter_together::<R, C, 2, TOGETHER>(rows, range, coefficients),
            3 => self.scatter_together::<R, C, 3, TOGETHER>(rows, range, coefficients),
            _ => self.scatter_together::<R, C, 4, TOGETHER>(rows, range, coefficients),
        }
    }

    #[inline(always)]
    fn scatter_together<R: Rows, C: Coefficients, const G: usize, const N: usize>(
        &mut self,
        rows: &R,
        range: Range<usize>,
        coefficients: &C,
    ) {
        let mut deltas = [[[0.0; LINE]; G]; N];
        let mut i = range.start;
        while R::IS_DENSE && i + N <= range.end {
            for (delta, i) in deltas.iter_mut().zip(i..) {
                coefficients.write(i, self.first, delta);
            }
            rows.add_lines_of(std::array::from_fn(|r| i + r), &deltas, &mut self.numbers);
            i += N;
        }
        for i in i..range.end {
            coefficients.write(i, self.first, &mut deltas[0]);
            rows.add_lines(i, &deltas[0], &mut self.numbers);
        }
    }
}

/// What a row is added up with.
pub trait Coefficients: Sync {
    /// Writes the coefficients of the classes of some lines, from line `first` on, for row `i`.
    /// Implementations are `#[inline(always)]`.
    fn write(&self, i: usize, first: usize, out: &mut Lines);
}

/// Adds `x_i` times the `width` lines of `delta` to `numbers`.
#[inline(always)]
pub fn add<R: Rows>(rows: &R, i: usize, delta: &Lines, numbers: &mut Lines) {
    match delta.len() {
        1 => add_fixed::<R, 1>(rows, i, delta, numbers),
        2 => add_fixed::<R, 2>(rows, i, delta, numbers),
        3 => add_fixed::<R, 3>(rows, i, delta, numbers),
        _ => add_fixed::<R, 4>(rows, i, delta, numbers),
    }
}

#[inline(always)]
fn add_fixed<R: Rows, const G: usize>(rows: &R, i: usize, delta: &Lines, numbers: &mut Lines) {
    let delta: [[f64; LINE]; G] = std::array::from_fn(|g| delta[g]);
    rows.add_lines(i, &delta, numbers);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::csr::CsrView;
    use crate::matrix::dense::DenseView;
    use crate::matrix::design::Design;

    #[test]
    fn rows_meet_all_classes_of_all_strips() {
        let (x, _) = CsrView::new(&[0, 2, 3], &[0, 2, 1], &[2.0f64, -1.0, 3.0], 3).unwrap();
        for n_classes in [1usize, 8, 9, 24, 33, 70, 100] {
            let lines = n_classes.div_ceil(LINE);
            let mut w = Strips::zeros(3, lines);
            assert!(w.strips.iter().all(|strip| (1..=MAX_WIDTH).contains(&strip.width)));
            for class in 0..n_classes {
                w.set_class(class, &[class as f64, 1.0, 0.5 * class as f64]);
            }
            let mut out = vec![[9.0; LINE]; lines];
            w.strips.iter().for_each(|strip| strip.scores(&x, 0, &mut out));
            for (class, z) in out.as_flattened().iter().enumerate() {
                assert_eq!(*z, if class < n_classes { 1.5 * class as f64 } else { 0.0 });
            }
            for strip in &mut w.strips {
                let delta = vec![[2.0; LINE]; strip.width];
                add(&x, 1, &delta, &mut strip.numbers);
            }
            let weights = w.class_weights(3, n_classes);
            for class in 0..n_classes {
                assert_eq!(w.class(class), [class as f64, 7.0, 0.5 * class as f64]);
                assert_eq!(weights.class(class, 3), w.class(class));
            }
        }
    }

    /// Coefficients that depend on row, line and class.
    struct Numbered;

    impl Coefficients for Numbered {
        fn write(&self, i: usize, first: usize, out: &mut Lines) {
            for (k, x) in out.as_flattened_mut().iter_mut().enumerate() {
                *x = ((i * 31 + first * LINE + k) as f64).sin();
            }
        }
    }

    #[test]
    fn dense_rows_together_give_the_bits_of_sparse_rows_one_by_one() {
        let (n, d) = (23, 5);
        let values: Vec<f64> = (0..n * d).map(|k| (k as f64 + 0.3).cos()).collect();
        let indptr: Vec<i64> = (0..=n as i64).map(|i| i * d as i64).collect();
        let indices: Vec<i32> = (0..n).flat_map(|_| 0..d as i32).collect();
        let (dense, _) = DenseView::new(&values, n, d).unwrap();
        let (sparse, _) = CsrView::new(&indptr, &indices, &values, d).unwrap();
        let ids: Vec<u32> = (0..n as u32).rev().step_by(2).collect();
        for (bias, n_classes) in [(0.0, 3), (0.7, 10), (0.7, 20), (0.0, 31), (0.7, 70)] {
            let dense = Design { rows: &dense, ids: Some(&ids), bias };
            let sparse = Design { rows: &sparse, ids: Some(&ids), bias };
            let lines = usize::div_ceil(n_classes, LINE);
            let mut w = Strips::zeros(dense.n_cols(), lines);
            for class in 0..n_classes {
                let numbers: Vec<f64> = (0..dense.n_cols()).map(|j| ((7 * class + j) as f64).sin()).collect();
                w.set_class(class, &numbers);
            }
            let (first, m) = (1, ids.len() - 2);
            let mut scores = [vec![[9.0; LINE]; m * lines], vec![[8.0; LINE]; m * lines]];
            w.scores(&dense, first, lines, &mut scores[0]);
            w.scores(&sparse, first, lines, &mut scores[1]);
            assert_eq!(scores[0], scores[1]);
            let mut of_sparse = w.clone();
            for (ours, twins) in w.strips.iter_mut().zip(&mut of_sparse.strips) {
                ours.scatter(&dense, first..first + m, &Numbered);
                twins.scatter(&sparse, first..first + m, &Numbered);
                assert_eq!(ours.numbers[..], twins.numbers[..]);
            }
        }
    }
}
