//! The weights of all classes, interleaved: the weights of a column side by side.
//!
//! ```text
//!     column 0              column 1              ...
//!     w_0 w_1 .. w_k-1 0 0  w_0 w_1 .. w_k-1 0 0       padded to whole cache lines of eight
//! ```
//!
//! One row then reads a run of whole cache lines per entry, and its scores of all classes are vector
//! arithmetic. The padding stays zero. The classes may be divided into parts, each such a block of its own,
//! so that several threads can have their own: no sum runs over classes of two parts, and so no number
//! depends on the division.

use super::kernels::{Change, ClassRows};
pub use crate::matrix::kernels::LINE;
use crate::matrix::lanes::Block;
use crate::memory::CollectLarge;

/// Weights of `n_classes` classes for each column.
#[derive(Clone, Debug)]
pub struct ClassWeights {
    parts: Vec<WeightsPart>,
    n_classes: usize,
}

/// Weights of neighbouring classes for each column.
#[derive(Clone, Debug)]
pub struct WeightsPart {
    numbers: Block<LINE>,
    first: usize,
    n_classes: usize,
    lines: usize,
    scratch: Scratch,
}

#[derive(Clone, Debug, Default)]
struct Scratch {
    /// Zeros between calls of [`WeightsPart::add`].
    delta: Vec<[f64; LINE]>,
    changes: Vec<Change>,
}

impl ClassWeights {
    /// Zeros, in one part.
    pub fn zeros(n_columns: usize, n_classes: usize) -> Self {
        Self::divided(n_columns, n_classes, 1)
    }

    /// Zeros, in `n_parts` parts of about equally many cache lines, or in as many as there are lines.
    pub fn divided(n_columns: usize, n_classes: usize, n_parts: usize) -> Self {
        let lines = n_classes.div_ceil(LINE);
        let n_parts = n_parts.clamp(1, lines.max(1));
        let first = |part: usize| (part * lines / n_parts * LINE).min(n_classes);
        let parts =
            (0..n_parts).map(|part| WeightsPart::zeros(n_columns, first(part), first(part + 1))).collect();
        Self { parts, n_classes }
    }

    /// The parts, in the order of their classes.
    pub fn parts(&self) -> &[WeightsPart] {
        &self.parts
    }

    /// The same, to be changed.
    pub fn parts_mut(&mut self) -> &mut [WeightsPart] {
        &mut self.parts
    }

    /// All numbers, padding included.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.numbers().len()).sum()
    }

    /// Whether there is no column or no class.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cache lines per column.
    pub fn lines(&self) -> usize {
        self.n_classes.div_ceil(LINE)
    }

    /// Numbers per column, padding included: the length of a buffer for [`Self::scores`].
    pub fn padded(&self) -> usize {
        self.lines() * LINE
    }

    /// The weights of one column, by class.
    pub fn column(&self, column: usize) -> impl Iterator<Item = f64> {
        self.parts.iter().flat_map(move |part| part.column(column)).copied()
    }

    /// Sets the weights of one column, by class.
    pub fn set_column(&mut self, column: usize, weights: impl IntoIterator<Item = f64>) {
        let places = self.parts.iter_mut().flat_map(|part| part.column_mut(column));
        places.zip(weights).for_each(|(place, w)| *place = w);
    }

    /// Adds `scale` times weights that are divided in the same way.
    pub fn add_scaled(&mut self, scale: f64, other: &Self) {
        for (part, other) in self.parts.iter_mut().zip(&other.parts) {
            part.numbers_mut().iter_mut().zip(other.numbers()).for_each(|(w, o)| *w += scale * o);
        }
    }

    /// The weights of one class over the first `n_columns` columns.
    pub fn class(&self, class: usize, n_columns: usize) -> Vec<f64> {
        let part = self.parts.iter().find(|part| part.classes().contains(&class));
        let numbers =
            part.map(|part| part.numbers().iter().skip(class - part.first).step_by(part.lines * LINE));
        numbers.into_iter().flatten().take(n_columns).copied().collect_large()
    }

    /// `sum_m |w_m|^2` over the first `n_columns` columns.
    pub fn squared(&self, n_columns: usize) -> f64 {
        self.parts.iter().flat_map(|part| part.squares(n_columns)).sum()
    }

    /// Scores `w_m . x_i` of all classes.
    pub fn scores(&self, rows: &dyn ClassRows, i: usize, out: &mut [f64]) {
        self.parts.iter().for_each(|part| part.scores(rows, i, &mut out[part.first..]));
    }

    /// `w_m += delta x_i` for every change `(m, delta)`.
    pub fn add(&mut self, rows: &dyn ClassRows, i: usize, changes: &[Change]) {
        self.parts.iter_mut().for_each(|part| part.add(rows, i, changes));
    }
}

impl WeightsPart {
    fn zeros(n_columns: usize, first: usize, end: usize) -> Self {
        let lines = (end - first).div_ceil(LINE);
        let numbers = Block::zeros(n_columns * lines);
        Self { numbers, first, n_classes: end - first, lines, scratch: Scratch::default() }
    }

    /// The classes.
    pub fn classes(&self) -> std::ops::Range<usize> {
        self.first..self.first + self.n_classes
    }

    /// All numbers, padding included.
    pub fn numbers(&self) -> &[f64] {
        self.numbers.as_flattened()
    }

    /// All numbers, padding included, which must stay zero.
    pub fn numbers_mut(&mut self) -> &mut [f64] {
        self.numbers.as_flattened_mut()
    }

    /// The weights of one column.
    pub fn column(&self, column: usize) -> &[f64] {
        &self.numbers()[column * self.lines * LINE..][..self.n_classes]
    }

    fn column_mut(&mut self, column: usize) -> &mut [f64] {
        let (start, end) = (column * self.lines * LINE, self.n_classes);
        &mut self.numbers_mut()[start..][..end]
    }

    /// `|w_m|^2` over the first `n_columns` columns, by class.
    fn squares(&self, n_columns: usize) -> Vec<f64> {
        let mut sums = vec![[0.0; LINE]; self.lines];
        for column in self.numbers.chunks_exact(self.lines.max(1)).take(n_columns) {
            for (sum, line) in sums.iter_mut().zip(column) {
                (0..LINE).for_each(|l| sum[l] += line[l] * line[l]);
            }
        }
        sums.as_flattened()[..self.n_classes].to_vec()
    }

    /// Scores of all classes of the part, padding included, into the beginning of `out`.
    pub fn scores(&self, rows: &dyn ClassRows, i: usize, out: &mut [f64]) {
        rows.scores(i, &self.numbers, self.lines, &mut out.as_chunks_mut().0[..self.lines]);
    }

    /// Scores of chosen classes, counted from the part's first, at their positions in `classes`.
    pub fn some_scores(&self, rows: &dyn ClassRows, i: usize, classes: &[u32], out: &mut [f64]) {
        rows.some_scores(i, self.numbers(), self.lines * LINE, classes, out);
    }

    /// `w_m += delta x_i` for every change `(m, delta)` of a class of the part; where most of a column's
    /// cache lines change, all of them do, in vector arithmetic.
    pub fn add(&mut self, rows: &dyn ClassRows, i: usize, changes: &[Change]) {
        let Scratch { mut delta, changes: mut mine } = std::mem::take(&mut self.scratch);
        let (first, end) = (self.first as u32, (self.first + self.n_classes) as u32);
        mine.clear();
        mine.extend(changes.iter().filter(|change| (first..end).contains(&change.class)));
        mine.iter_mut().for_each(|change| change.class -= first);
        if mine.len() < self.lines.max(3) {
            rows.add(i, &mine, self.numbers.as_flattened_mut(), self.lines * LINE);
        } else {
            delta.resize(self.lines, [0.0; LINE]);
            mine.iter().for_each(|change| delta.as_flattened_mut()[change.class as usize] += change.delta);
            rows.add_all(i, &delta, &mut self.numbers);
            mine.iter().for_each(|change| delta.as_flattened_mut()[change.class as usize] = 0.0);
        }
        self.scratch = Scratch { delta, changes: mine };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::dense::DenseView;
    use crate::matrix::design::Design;

    #[test]
    fn scores_and_updates_match_plain_loops() {
        let (n, d) = (6, 5);
        let values: Vec<f64> = (0..n * d).map(|k| ((k * 37 % 11) as f64 - 5.0) / 3.0).collect();
        let x = crate::matrix::Matrix::from(DenseView::new(&values, n, d).unwrap().0);
        let x = Design { rows: &x, ids: None, bias: 0.0 };
        for (k, parts) in [(2, 1), (3, 2), (8, 1), (9, 2), (17, 2), (31, 1), (33, 3), (70, 4)] {
            let (mut w, mut plain) = (ClassWeights::divided(d, k, parts), vec![vec![0.0; d]; k]);
            for step in 0..3 * n {
                let (i, a, b) = (step % n, step * 5 % k, (step * 3 + 1) % k);
                let mut changes = vec![Change { class: a as u32, delta: 0.5 + step as f64 }];
                if a != b {
                    changes.push(Change { class: b as u32, delta: -0.25 });
                }
                if step % 4 == 0 {
                    let c = (0..k).rev().find(|c| *c != a && *c != b);
                    changes.extend(c.map(|c| Change { class: c as u32, delta: 0.125 }));
                }
                w.add(&x, i, &changes);
                for change in &changes {
                    for j in 0..d {
                        plain[change.class as usize][j] += change.delta * values[i * d + j];
                    }
                }
            }
            let (mut all, mut some) = (vec![0.0; w.lines() * LINE], vec![0.0; k]);
            for i in 0..n {
                w.scores(&x, i, &mut all);
                for part in w.parts() {
                    let first = part.classes().start;
                    let mine: Vec<u32> = part.classes().rev().map(|c| (c - first) as u32).collect();
                    part.some_scores(&x, i, &mine, &mut some[k - part.classes().end..k - first]);
                }
                for c in 0..k {
                    let exact: f64 = (0..d).map(|j| plain[c][j] * values[i * d + j]).sum();
                    assert!((all[c] - exact).abs() < 1e-9 && (some[k - 1 - c] - exact).abs() < 1e-9);
                }
                assert!(all[k..].iter().all(|s| *s == 0.0), "the padding is zero");
            }
            assert_eq!(w.class(k - 1, d), plain[k - 1]);
            assert!(w.column(2).eq((0..k).map(|c| plain[c][2])));
            let squared: f64 = plain.iter().flat_map(|w| &w[..3]).map(|w| w * w).sum();
            assert!((w.squared(3) - squared).abs() <= 1e-12 * squared);
        }
    }
}
