//! The quadratic model of a Newton step as a matrix `H_jk = sum_i h_i x_ij x_ik` over the working set: a
//! visit of a column costs as many numbers as the set has columns, whatever its entries.

use super::quadratic::Model;
use crate::fit::newton::cholesky::Symmetric;
use crate::fit::routes::{GRAM_COLUMNS, GRAM_PAIRS, JUMP_COLUMNS};
use crate::matrix::columns::Columns;
use crate::memory;
use crate::penalty::Term;

/// The entries of a working set by rows: local column and value.
pub struct RowsOfSet {
    starts: Vec<usize>,
    entries: Vec<(u32, f64)>,
    n_columns: usize,
}

impl RowsOfSet {
    /// The rows of the columns of `list`, if the matrix of a model on them is cheaper than a descent on
    /// their entries.
    pub fn of(columns: &Columns, list: &[u32]) -> Option<Self> {
        if list.len() > GRAM_COLUMNS {
            return None;
        }
        let mut starts: Vec<usize> = memory::zeros(columns.n_rows() + 1);
        for &j in list {
            columns.rows_of(j as usize).iter().for_each(|&i| starts[i as usize + 1] += 1);
        }
        let entries: usize = starts.iter().sum();
        let pairs: f64 = starts.iter().map(|&n| 0.5 * n as f64 * (n + 1) as f64).sum();
        if pairs > GRAM_PAIRS * entries as f64 {
            return None;
        }
        for i in 0..columns.n_rows() {
            starts[i + 1] += starts[i];
        }
        let mut next = memory::copy(&starts);
        let mut all = memory::filled((0, 0.0), entries);
        for (k, &j) in list.iter().enumerate() {
            columns.for_each(j as usize, |i, x| {
                all[next[i]] = (k as u32, x);
                next[i] += 1;
            });
        }
        Some(Self { starts, entries: all, n_columns: list.len() })
    }

    /// The matrix of the model with curvature `rows[i][1]` along the decision value of row `i`.
    fn matrix(&self, rows: &[[f64; 2]]) -> Vec<f64> {
        let m = self.n_columns;
        let mut matrix = memory::zeros(m * m);
        for (i, row) in rows.iter().enumerate() {
            if row[1] == 0.0 {
                continue;
            }
            let entries = &self.entries[self.starts[i]..self.starts[i + 1]];
            for (at, &(a, x)) in entries.iter().enumerate() {
                let (line, hx) = (&mut matrix[a as usize * m..][..m], row[1] * x);
                for &(b, x) in &entries[..=at] {
                    line[b as usize] += hx * x;
                }
            }
        }
        for a in 0..m {
            for b in 0..a {
                matrix[b * m + a] = matrix[a * m + b];
            }
        }
        matrix
    }
}

/// The model by its matrix.
pub struct Gram {
    matrix: Vec<f64>,
    slope: Vec<f64>,
    bend: Vec<f64>,
}

impl Gram {
    /// The model whose slopes along the columns are `slope`, and whose slopes and curvatures along the
    /// decision values are `rows`. `least` is the smallest curvature of a column.
    pub fn new(set: &RowsOfSet, rows: &[[f64; 2]], slope: Vec<f64>, least: &[f64]) -> Self {
        let matrix = set.matrix(rows);
        let m = slope.len();
        let bend = (0..m).map(|k| matrix[k * m + k].max(least[k])).collect();
        Self { matrix, slope, bend }
    }

    fn line(&self, k: usize) -> &[f64] {
        let m = self.slope.len();
        &self.matrix[k * m..][..m]
    }
}

impl Model for Gram {
    #[inline(always)]
    fn slope(&self, k: usize) -> f64 {
        self.slope[k]
    }
    #[inline(always)]
    fn bend(&self, k: usize) -> f64 {
        self.bend[k]
    }
    #[inline(always)]
    fn shift(&mut self, k: usize, by: f64) {
        let m = self.slope.len();
        let line = &self.matrix[k * m..][..m];
        self.slope.iter_mut().zip(line).for_each(|(slope, h)| *slope += by * h);
    }

    /// The exact minimum over the weights that are neither zero nor on a bound, as far as no sign changes
    /// and no bound is crossed.
    fn jump(&mut self, terms: &[Term], w: &mut [f64]) -> bool {
        let is_inside = |k: usize| {
            let Term { l1, lower, upper, .. } = terms[k];
            (w[k] != 0.0 || l1 == 0.0) && lower < w[k] && w[k] < upper
        };
        let inside: Vec<usize> = (0..w.len()).filter(|&k| is_inside(k)).collect();
        let n = inside.len();
        if n == 0 || n > JUMP_COLUMNS {
            return false;
        }
        let mut part = Symmetric { n, values: memory::zeros(n * n) };
        let mut step: Vec<[f64; 1]> = Vec::with_capacity(n);
        for (a, &k) in inside.iter().enumerate() {
            let line = self.line(k);
            inside.iter().zip(&mut part.values[a * n..]).for_each(|(&l, value)| *value = line[l]);
            part.values[a * n + a] = self.bend[k] + terms[k].l2;
            let pull = if w[k] == 0.0 { 0.0 } else { terms[k].l1 * w[k].signum() };
            step.push([-(self.slope[k] + pull + terms[k].l2 * w[k])]);
        }
        part.factorise();
        part.solve(&mut step);
        // The longest share of the step along which the penalty stays a parabola.
        let mut share = 1.0f64;
        for (&k, [step]) in inside.iter().zip(&step) {
            let Term { l1, lower, upper, .. } = terms[k];
            let end = w[k] + step;
            let wall = match () {
                () if l1 > 0.0 && w[k] > 0.0 && end < lower.max(0.0) => lower.max(0.0),
                () if l1 > 0.0 && w[k] < 0.0 && end > upper.min(0.0) => upper.min(0.0),
                () if end < lower => lower,
                () if end > upper => upper,
                () => continue,
            };
            share = share.min((wall - w[k]) / step);
        }
        if !(share > 0.0 && share.is_finite()) || step.iter().any(|[s]| !s.is_finite()) {
            return false;
        }
        for (&k, [step]) in inside.iter().zip(&step) {
            let before = w[k];
            let crosses = |w: f64| terms[k].l1 > 0.0 && w * before < 0.0;
            let after = terms[k].clip(before + share * step);
            w[k] = if crosses(after) { 0.0 } else { after };
            self.shift(k, w[k] - before);
        }
        true
    }
}
