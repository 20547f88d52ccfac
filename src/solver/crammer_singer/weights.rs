//! The weights of all classes, class after class.
//!
//! A visit of a row reads the weights of a few classes. Columns that many rows have lie side by side in the packed form of the data
//! ([`crate::data::presolve`]), so the part of a class's weights that is read all the time is short, and those of all classes stay
//! in the cache.

use rayon::prelude::*;

use super::kernels::ClassRows;
use crate::solver::sweep::dot;

/// Numbers in a cache line.
const LINE: usize = 8;
/// A distance between classes that is a multiple of this many lines puts all of them into the same places of a cache;
const CLASH: usize = 256;
/// so many lines more do not.
const APART: usize = 77;

/// Weights of `n_classes` classes for each column.
#[derive(Clone, Debug)]
pub struct Weights {
    numbers: Vec<f64>,
    n_classes: usize,
    n_columns: usize,
    /// From one class to the next.
    stride: usize,
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
        let lines = n_columns.div_ceil(LINE);
        let stride = LINE * if lines.is_multiple_of(CLASH) { lines + APART } else { lines };
        Self { numbers: vec![0.0; stride * n_classes], n_classes, n_columns, stride }
    }

    /// The weights of one class.
    pub fn class(&self, class: usize) -> &[f64] {
        &self.numbers[class * self.stride..][..self.n_columns]
    }

    /// The weights of one class, to be changed.
    pub fn class_mut(&mut self, class: usize) -> &mut [f64] {
        &mut self.numbers[class * self.stride..][..self.n_columns]
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.n_classes
    }

    /// The weights of all classes for one column.
    pub fn column(&self, column: usize) -> impl Iterator<Item = f64> {
        (0..self.n_classes).map(move |class| self.class(class)[column])
    }

    /// `sum_m |w_m|^2` over the first `n_columns` columns.
    pub fn squared(&self, n_columns: usize) -> f64 {
        let one = |class: usize| {
            let w = &self.class(class)[..n_columns];
            dot(w, w)
        };
        (0..self.n_classes).into_par_iter().map(one).collect::<Vec<f64>>().iter().sum()
    }

    /// Scores `w_m . x_i` of all classes.
    pub fn scores(&self, rows: &dyn ClassRows, i: usize, out: &mut [f64]) {
        out.iter_mut().enumerate().for_each(|(class, out)| *out = rows.dot(i, self.class(class)));
    }

    /// Scores of all classes of some rows, row after row: class by class, so that the weights of one class stay in the cache.
    pub fn scores_of(&self, rows: &dyn ClassRows, ids: &[u32], out: &mut [f64]) {
        for class in 0..self.n_classes {
            let w = self.class(class);
            let out = out.iter_mut().skip(class).step_by(self.n_classes);
            ids.iter().zip(out).for_each(|(&i, out)| *out = rows.dot(i as usize, w));
        }
    }

    /// Scores of chosen classes, at their positions in `classes`.
    pub fn some_scores(&self, rows: &dyn ClassRows, i: usize, classes: &[u32], out: &mut [f64]) {
        rows.some_scores(i, &self.numbers, self.stride, classes, out);
    }

    /// `w_m += delta x_i` for every change `(m, delta)`.
    pub fn add(&mut self, rows: &dyn ClassRows, i: usize, changes: &[Change]) {
        rows.add(i, changes, &mut self.numbers, self.stride);
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
            let (mut all, mut some) = (vec![0.0; k], vec![0.0; k]);
            let mut block = vec![0.0; n * k];
            let ids: Vec<u32> = (0..n as u32).collect();
            w.scores_of(&x, &ids, &mut block);
            for i in 0..n {
                w.scores(&x, i, &mut all);
                w.some_scores(&x, i, &classes, &mut some);
                for c in 0..k {
                    let exact: f64 = (0..d).map(|j| plain[c][j] * values[i * d + j]).sum();
                    for found in [all[c], some[k - 1 - c], block[i * k + c]] {
                        assert!((found - exact).abs() < 1e-9);
                    }
                }
            }
            assert_eq!(w.class(k - 1), plain[k - 1]);
            assert_eq!(w.column(2).next(), Some(plain[0][2]));
        }
    }
}
