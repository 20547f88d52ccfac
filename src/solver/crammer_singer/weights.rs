//! The weights of all classes, interleaved: the `k` weights of a column side by side.
//!
//! ```text
//!     column 0              column 1              ...
//!     w_0 w_1 .. w_k-1 0 0  w_0 w_1 .. w_k-1 0 0       padded to whole cache lines of eight
//! ```
//!
//! One row then reads a run of whole cache lines per entry, and its scores of all classes are vector arithmetic. The padding
//! stays zero.

use crate::data::Rows;
use crate::data::block::Block;
pub use crate::data::kernels::LINE;
use crate::data::simd::{self, Loop};

/// Cache lines whose sums stay in registers.
const STRIP: usize = 4;

/// Weights of `n_classes` classes for each column.
#[derive(Clone, Debug)]
pub struct Weights {
    numbers: Block<LINE>,
    n_classes: usize,
    lines: usize,
    /// Zeros between calls of [`Self::add_all`].
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

    /// All numbers for writing; the padding must stay zero.
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
    #[inline]
    pub fn scores<R: Rows>(&self, rows: &R, i: usize, out: &mut [f64]) {
        let out = &mut out.as_chunks_mut().0[..self.lines];
        simd::run(AllClasses { rows, i, numbers: &self.numbers, lines: self.lines, out });
    }

    /// Scores of chosen classes, at their positions in `classes`.
    #[inline]
    pub fn some_scores<R: Rows>(&self, rows: &R, i: usize, classes: &[u32], out: &mut [f64]) {
        let (numbers, stride) = (self.numbers(), self.lines * LINE);
        let (fours, rest) = classes.as_chunks::<4>();
        for (four, out) in fours.iter().zip(out.as_chunks_mut::<4>().0) {
            *out = rows.dot_places(i, numbers, stride, four.map(|c| c as usize));
        }
        let out = &mut out[4 * fours.len()..];
        match *rest {
            [] => {}
            [a] => out.copy_from_slice(&rows.dot_places(i, numbers, stride, [a as usize])),
            [a, b] => out.copy_from_slice(&rows.dot_places(i, numbers, stride, [a, b].map(|c| c as usize))),
            [a, b, c, ..] => out.copy_from_slice(&rows.dot_places(i, numbers, stride, [a, b, c].map(|c| c as usize))),
        }
    }

    /// `w_m += delta x_i` for every change `(m, delta)`.
    #[inline]
    pub fn add<R: Rows>(&mut self, rows: &R, i: usize, changes: &[Change]) {
        if changes.len() >= self.lines.max(3) {
            return self.add_all(rows, i, changes);
        }
        let stride = self.lines * LINE;
        let numbers = self.numbers.as_flattened_mut();
        let (pairs, rest) = changes.as_chunks::<2>();
        for pair in pairs {
            rows.add_places(i, pair.map(|c| c.delta), numbers, stride, pair.map(|c| c.class as usize));
        }
        for change in rest {
            rows.add_places(i, [change.delta], numbers, stride, [change.class as usize]);
        }
    }
}

impl Weights {
    /// [`Self::add`] where most of a column's cache lines change: all of them, in vector arithmetic.
    fn add_all<R: Rows>(&mut self, rows: &R, i: usize, changes: &[Change]) {
        let mut delta = std::mem::take(&mut self.delta);
        delta.resize(self.lines, [0.0; LINE]);
        let flat = delta.as_flattened_mut();
        changes.iter().for_each(|change| flat[change.class as usize] += change.delta);
        simd::run(AddAll { rows, i, delta: &delta, numbers: &mut self.numbers });
        let flat = delta.as_flattened_mut();
        changes.iter().for_each(|change| flat[change.class as usize] = 0.0);
        self.delta = delta;
    }
}

/// A change of all classes, compiled for the machine.
struct AddAll<'s, R> {
    rows: &'s R,
    i: usize,
    delta: &'s [[f64; LINE]],
    numbers: &'s mut [[f64; LINE]],
}

impl<R: Rows> Loop for AddAll<'_, R> {
    type Output = ();
    const IS_WIDE: bool = true;

    #[inline(always)]
    fn run(self) {
        self.rows.add_lines(self.i, self.delta, self.numbers);
    }
}

/// Scores of all classes of a row, compiled for the machine.
struct AllClasses<'s, R> {
    rows: &'s R,
    i: usize,
    numbers: &'s [[f64; LINE]],
    lines: usize,
    out: &'s mut [[f64; LINE]],
}

impl<R: Rows> Loop for AllClasses<'_, R> {
    type Output = ();
    const IS_WIDE: bool = true;

    #[inline(always)]
    fn run(self) {
        let mut first = 0;
        while first < self.lines {
            let (rest, out) = (self.lines - first, &mut self.out[first..]);
            let Self { rows, i, numbers, lines, .. } = self;
            match rest {
                1 => out.copy_from_slice(&rows.dot_lines::<1>(i, numbers, lines, first)),
                2 => out.copy_from_slice(&rows.dot_lines::<2>(i, numbers, lines, first)),
                3 => out.copy_from_slice(&rows.dot_lines::<3>(i, numbers, lines, first)),
                _ => out[..STRIP].copy_from_slice(&rows.dot_lines::<STRIP>(i, numbers, lines, first)),
            }
            first += STRIP;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::dense::DenseView;

    #[test]
    fn scores_and_updates_match_plain_loops() {
        let (n, d) = (6, 5);
        let values: Vec<f64> = (0..n * d).map(|k| ((k * 37 % 11) as f64 - 5.0) / 3.0).collect();
        let (x, _) = DenseView::new(&values, n, d).unwrap();
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
