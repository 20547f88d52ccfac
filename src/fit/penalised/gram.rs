//! The quadratic model of a Newton step as a matrix `H_jk = sum_i h_i x_ij x_ik` over the working set: a
//! visit of a column costs as many numbers as the set has columns, whatever its entries.

use super::quadratic::{Jump, QuadraticModel};
use crate::fit::newton::cholesky::Symmetric;
use crate::fit::routes::{GRAM_COLUMNS, JUMP_COLUMNS};
use crate::matrix::columns::Columns;
use crate::memory;
use crate::penalty::Term;

/// Added to the diagonal of the matrix, as a share of it: along columns that add up to others the model is
/// flat and the penalty alone says how far to go, up to the next wall.
const RIDGE: f64 = 1e-10;
/// Newton steps of a jump at most.
const MAX_STEPS: usize = 20;

/// The entries of a working set by rows: local column and value.
pub struct RowsOfSet {
    starts: Vec<usize>,
    columns: Vec<u32>,
    values: Vec<f64>,
    n_columns: usize,
    /// Products of the matrix of a model per entry.
    pub price: f64,
}

impl RowsOfSet {
    /// The rows of the columns of `list`, if they are few enough for the matrix of a model.
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
        for i in 0..columns.n_rows() {
            starts[i + 1] += starts[i];
        }
        let mut next = memory::copy(&starts);
        let (mut locals, mut values) = (memory::zeros(entries), memory::zeros(entries));
        for (k, &j) in list.iter().enumerate() {
            columns.for_each(j as usize, |i, x| {
                (locals[next[i]], values[next[i]]) = (k as u32, x);
                next[i] += 1;
            });
        }
        Some(Self {
            starts,
            columns: locals,
            values,
            n_columns: list.len(),
            price: pairs / entries.max(1) as f64,
        })
    }

    /// The matrix of the model with curvature `bend[i]` along the decision value of row `i`.
    fn matrix(&self, bend: &[f64]) -> Vec<f64> {
        let m = self.n_columns;
        let mut matrix = memory::zeros(m * m);
        for (i, &bend) in bend.iter().enumerate() {
            if bend == 0.0 {
                continue;
            }
            let range = self.starts[i]..self.starts[i + 1];
            let (columns, values) = (&self.columns[range.clone()], &self.values[range]);
            let is_full = columns.len() == m;
            for (at, (&a, x)) in columns.iter().zip(values).enumerate() {
                let (line, hx) = (&mut matrix[a as usize * m..][..m], bend * x);
                if is_full {
                    line.iter_mut().zip(&values[..=at]).for_each(|(sum, x)| *sum += hx * x);
                } else {
                    columns[..=at].iter().zip(values).for_each(|(&b, x)| line[b as usize] += hx * x);
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
pub struct ModelMatrix {
    matrix: Vec<f64>,
    slope: Vec<f64>,
    bend: Vec<f64>,
}

impl ModelMatrix {
    /// The model whose slopes along the columns are `slope`, and whose curvatures along the decision values
    /// are `bend`. `least` is the smallest curvature of a column.
    pub fn new(set: &RowsOfSet, bend: &[f64], slope: Vec<f64>, least: &[f64]) -> Self {
        let mut matrix = set.matrix(bend);
        let m = slope.len();
        (0..m).for_each(|k| matrix[k * m + k] = matrix[k * m + k].max(least[k]));
        let bend = (0..m).map(|k| matrix[k * m + k]).collect();
        Self { matrix, slope, bend }
    }

    fn line(&self, k: usize) -> &[f64] {
        let m = self.slope.len();
        &self.matrix[k * m..][..m]
    }
}

impl QuadraticModel for ModelMatrix {
    const FINDS_MINIMUM: bool = true;

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

    /// Newton steps to the exact minimum over the weights that are neither zero nor on a bound. A weight
    /// whose sign would change becomes zero, one that would leave its bounds stays on them, and the next step
    /// is without it.
    fn jump(&mut self, terms: &[Term], w: &mut [f64]) -> (Jump, f64) {
        let (mut found, mut fall) = (Jump::None, 0.0);
        for _ in 0..MAX_STEPS {
            let inside: Vec<usize> = (0..w.len()).filter(|&k| is_inside(&terms[k], w[k])).collect();
            let Some(step) = self.step(terms, w, &inside) else {
                return (found, fall);
            };
            let whole: Vec<f64> =
                inside.iter().zip(&step).map(|(&k, s)| end(&terms[k], w[k], s[0])).collect();
            let is_whole = inside.iter().zip(&step).zip(&whole).all(|((&k, s), end)| *end == w[k] + s[0]);
            let mut moved = self.try_move(terms, w, &inside, &whole);
            if moved.is_none() && !is_whole {
                let ends = to_first_wall(w, &inside, &step, &whole);
                moved = self.try_move(terms, w, &inside, &ends);
            }
            let Some(decrease) = moved else {
                return (if is_whole { Jump::Minimum } else { found }, fall);
            };
            fall += decrease;
            if is_whole {
                return (Jump::Minimum, fall);
            }
            found = Jump::Better;
        }
        (found, fall)
    }
}

/// Whether the penalty is a parabola around a weight.
fn is_inside(term: &Term, w: f64) -> bool {
    (w != 0.0 || term.l1 == 0.0) && term.lower < w && w < term.upper
}

/// Where a step from `w` ends.
fn end(term: &Term, w: f64, step: f64) -> f64 {
    let end = w + step;
    let crosses = term.l1 > 0.0 && end * w < 0.0;
    term.clip(if crosses { 0.0 } else { end })
}

/// Where a step ends that goes as far as to the first wall; `walled` is where the whole one would with all
/// walls in its way. So far model and penalty are a parabola that falls.
fn to_first_wall(w: &[f64], inside: &[usize], step: &[[f64; 1]], walled: &[f64]) -> Vec<f64> {
    let share = |at: usize| {
        let (w, s) = (w[inside[at]], step[at][0]);
        if walled[at] == w + s { 1.0 } else { (walled[at] - w) / s }
    };
    let first = (0..inside.len()).map(share).fold(1.0, f64::min);
    let end = |at: usize| if share(at) <= first { walled[at] } else { w[inside[at]] + first * step[at][0] };
    (0..inside.len()).map(end).collect()
}

impl ModelMatrix {
    /// The step to the minimum over the weights `inside`, if it can be had.
    fn step(&self, terms: &[Term], w: &[f64], inside: &[usize]) -> Option<Vec<[f64; 1]>> {
        let n = inside.len();
        if n == 0 || n > JUMP_COLUMNS {
            return None;
        }
        let mut part = Symmetric { n, values: memory::zeros(n * n) };
        let mut step: Vec<[f64; 1]> = Vec::with_capacity(n);
        for (a, &k) in inside.iter().enumerate() {
            let line = self.line(k);
            inside.iter().zip(&mut part.values[a * n..]).for_each(|(&l, value)| *value = line[l]);
            part.values[a * n + a] = self.bend[k] * (1.0 + RIDGE) + terms[k].l2;
            let pull = if w[k] == 0.0 { 0.0 } else { terms[k].l1 * w[k].signum() };
            step.push([-(self.slope[k] + pull + terms[k].l2 * w[k])]);
        }
        part.factorise();
        part.solve(&mut step);
        step.iter().all(|[s]| s.is_finite()).then_some(step)
    }

    /// Moves the weights `inside` to `ends` if model and penalty fall; by how much they do.
    fn try_move(&mut self, terms: &[Term], w: &mut [f64], inside: &[usize], ends: &[f64]) -> Option<f64> {
        let mut slope = memory::copy(&self.slope);
        for (&k, end) in inside.iter().zip(ends) {
            let by = end - w[k];
            if by != 0.0 {
                slope.iter_mut().zip(self.line(k)).for_each(|(slope, h)| *slope += by * h);
            }
        }
        let mut change = 0.0;
        for (&k, &end) in inside.iter().zip(ends) {
            change += 0.5 * (end - w[k]) * (self.slope[k] + slope[k]);
            change += terms[k].rise(w[k], end);
        }
        if change >= 0.0 || change.is_nan() {
            return None;
        }
        self.slope = slope;
        inside.iter().zip(ends).for_each(|(&k, end)| w[k] = *end);
        Some(-change)
    }
}
