//! The weights of all classes, interleaved: the `k` weights of a column side by side.
//!
//! ```text
//!     column 0              column 1              ...
//!     w_0 w_1 .. w_k-1 0 0  w_0 w_1 .. w_k-1 0 0       padded to whole cache lines of eight
//! ```
//!
//! One row then reads a run of whole cache lines per entry, and its scores of all classes are vector arithmetic. The padding
//! stays zero.

use super::kernels::ClassRows;
use crate::data::block::Block;
pub use crate::data::kernels::LINE;

/// Weights of `n_classes` classes for each column.
#[derive(Clone, Debug)]
pub struct Weights {
    numbers: Block<LINE>,
    n_classes: usize,
    lines: usize,
    /// Zeros between calls of [`Self::add`].
    delta: Vec<[f64; LINE]>,
}

/// The change of one class's dual variable in a row.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The class.
    pub class: u32,
    /// How much is added to it.
    pub delta: f64,
}

impl Weights {
    /// Zeros.
    pub fn zeros(n_columns: usize, n_classes: usize) -> Self {
        let lines = n_classes.div_ceil(LINE);
        Self { numbers: Block::zeros(n_columns * lines), n_classes, lines, delta: Vec::new() }
    }

    /// Cache lines per column.
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// Numbers per column, padding included: the length of a buffer for [`Self::scores`].
    pub fn padded(&self) -> usize {
        self.lines * LINE
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

    /// The weights of one class over the first `n_columns` columns.
    pub fn class(&self, class: usize, n_columns: usize) -> Vec<f64> {
        self.numbers().iter().skip(class).step_by(self.lines * LINE).take(n_columns).copied().collect()
    }

    /// Scores `w_m . x_i` of all classes.
    pub fn scores(&self, rows: &dyn ClassRows, i: usize, out: &mut [f64]) {
        rows.scores(i, &self.numbers, self.lines, &mut out.as_chunks_mut().0[..self.lines]);
    }

    /// Scores of chosen classes, at their positions in `classes`.
    pub fn some_scores(&self, rows: &dyn ClassRows, i: usize, classes: &[u32], out: &mut [f64]) {
        rows.some_scores(i, self.numbers(), self.lines * LINE, classes, out);
    }

    /// `w_m += delta x_i` for every change `(m, delta)`; where most of a column's cache lines change, all of them do, in vector
    /// arithmetic.
    pub fn add(&mut self, rows: &dyn ClassRows, i: usize, changes: &[Change]) {
        if changes.len() < self.lines.max(3) {
            return rows.add(i, changes, self.numbers.as_flattened_mut(), self.lines * LINE);
        }
        let mut delta = std::mem::take(&mut self.delta);
        delta.resize(self.lines, [0.0; LINE]);
        changes.iter().for_each(|change| delta.as_flattened_mut()[change.class as usize] += change.delta);
        rows.add_all(i, &delta, &mut self.numbers);
        changes.iter().for_each(|change| delta.as_flattened_mut()[change.class as usize] = 0.0);
        self.delta = delta;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::dense::DenseView;
    use crate::data::design::Design;

    #[test]
    fn scores_and_updates_match_plain_loops() {
        let (n, d) = (6, 5);
        let values: Vec<f64> = (0..n * d).map(|k| ((k * 37 % 11) as f64 - 5.0) / 3.0).collect();
        let (x, _) = DenseView::new(&values, n, d).unwrap();
        let x = Design { rows: &x, ids: None, bias: 0.0 };
        for k in [2, 3, 8, 9, 17, 31, 33, 70] {
            let (mut w, mut plain) = (Weights::zeros(d, k), vec![vec![0.0; d]; k]);
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
            let classes: Vec<u32> = (0..k as u32).rev().collect();
            let (mut all, mut some) = (vec![0.0; w.lines() * LINE], vec![0.0; k]);
            for i in 0..n {
                w.scores(&x, i, &mut all);
                w.some_scores(&x, i, &classes, &mut some);
                for c in 0..k {
                    let exact: f64 = (0..d).map(|j| plain[c][j] * values[i * d + j]).sum();
                    assert!((all[c] - exact).abs() < 1e-9 && (some[k - 1 - c] - exact).abs() < 1e-9);
                }
                assert!(all[k..].iter().all(|s| *s == 0.0), "the padding is zero");
            }
            assert_eq!(w.class(k - 1, d), plain[k - 1]);
            assert_eq!(w.column(2)[0], plain[0][2]);
        }
    }
}
