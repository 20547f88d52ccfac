//! The quadratic model of a Newton step as a matrix `H_jk = sum_i h_i x_ij x_ik` over the working set: a
//! visit of a column costs as many numbers as the set has columns, whatever its entries.

use std::ops::Range;

use super::coordinates::Coordinates;
use super::directions::{FLAT, Waits, conjugate_gradients};
use super::quadratic::{Jump, QuadraticModel};
use super::walls::{Step, is_inside};
use crate::Result;
use crate::fit::monitor::Monitor;
use crate::fit::newton::cholesky::Symmetric;
use crate::fit::routes::{GRAM_COLUMNS, GRAM_ENTRIES, JUMP_COLUMNS};
use crate::fit::sweep::dot;
use crate::matrix::columns::Columns;
use crate::memory::{self, CollectLarge};
use crate::penalty::Term;

/// Added to the diagonal of the matrix, as a share of it: along columns that add up to others the model is
/// flat and the penalty alone says how far to go, up to the next wall.
const RIDGE: f64 = 1e-10;
/// Newton steps of a jump at most.
const MAX_STEPS: usize = 20;
/// Steps of conjugate gradients at most. Tried: 200 down to a share of 1e-12; imdb, 1,733 weights, takes 55
/// a jump and no less time, and phishing_urls, 1,050 weights that are nearly dependent, is nowhere near after
/// 200.
const MAX_DIRECTIONS: usize = 30;
/// Decreases of an epoch that they must be worth.
const WORTH: f64 = 30.0;

/// Rows that are turned at a time: their entries stay in the second cache.
const ROWS_AT_A_TIME: usize = 1024;

/// The columns of a working set, few enough for the matrix of a model.
pub struct ChosenColumns<'a> {
    columns: &'a Columns,
    list: Vec<u32>,
    /// Products of the matrix per entry.
    pub price: f64,
}

impl<'a> ChosenColumns<'a> {
    /// The columns of the coordinates `list`, if they are few enough; those of several blocks are repeated.
    pub fn of(coordinates: Coordinates<'a>, list: &[u32]) -> Option<Self> {
        let (columns, m) = (coordinates.columns, list.len());
        if m > GRAM_COLUMNS && m * m > columns.n_entries() / GRAM_ENTRIES {
            return None;
        }
        let list: Vec<u32> = list.iter().map(|&j| coordinates.column(j as usize) as u32).collect();
        let mut counts: Vec<u32> = memory::zeros(columns.n_rows());
        let mut entries = 0;
        for &j in &list {
            let places = columns.places(j as usize);
            entries += places.len();
            columns.rows_at(places).iter().for_each(|&i| counts[i as usize] += 1);
        }
        let pairs: f64 = counts.iter().map(|&n| 0.5 * f64::from(n) * (f64::from(n) + 1.0)).sum();
        Some(Self { columns, list, price: pairs / entries.max(1) as f64 })
    }

    /// The matrix of the model with curvature `bend[i]` along the decision value of row `i`.
    pub fn matrix(&self, bend: &[f64]) -> Vec<f64> {
        let m = self.list.len();
        self.sum_of_rows(bend, |i, columns, values, matrix| {
            for (at, (&a, x)) in columns.iter().zip(values).enumerate() {
                add_to_line(&mut matrix[a as usize * m..][..m], bend[i] * x, &columns[..=at], &values[..=at]);
            }
        })
    }

    /// The symmetric matrix whose lower triangle `add` adds to for each row that has a weight: row, columns
    /// by their places in the list, which rise, and values.
    pub fn sum_of_rows(
        &self,
        weight: &[f64],
        mut add: impl FnMut(usize, &[u32], &[f64], &mut [f64]),
    ) -> Vec<f64> {
        let m = self.list.len();
        let mut matrix = memory::zeros(m * m);
        let mut turned = TurnedRows::of(self);
        for first in (0..weight.len()).step_by(ROWS_AT_A_TIME) {
            let weight = &weight[first..weight.len().min(first + ROWS_AT_A_TIME)];
            turned.turn(first, weight);
            for (i, _) in weight.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                let (columns, values) = turned.row(i);
                add(first + i, columns, values, &mut matrix);
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

/// Adds `by` times the values at some places to a line of a matrix.
#[inline(always)]
pub fn add_to_line(line: &mut [f64], by: f64, places: &[u32], values: &[f64]) {
    let Some(&last) = places.last() else { return };
    // Rising places without a gap.
    if last as usize + 1 == places.len() {
        line.iter_mut().zip(values).for_each(|(sum, x)| *sum += by * x);
    } else {
        places.iter().zip(values).for_each(|(&b, x)| line[b as usize] += by * x);
    }
}

/// The entries of chosen columns by rows, some successive rows at a time: local column and value.
struct TurnedRows<'a> {
    columns: &'a Columns,
    /// Of each chosen column, the places of its entries that are not turned yet.
    left: Vec<Range<usize>>,
    /// Where each of the rows ends.
    ends: Vec<usize>,
    locals: Vec<u32>,
    values: Vec<f64>,
}

impl<'a> TurnedRows<'a> {
    fn of(chosen: &ChosenColumns<'a>) -> Self {
        let left = chosen.list.iter().map(|&j| chosen.columns.places(j as usize)).collect();
        let ends = vec![0; ROWS_AT_A_TIME + 1];
        Self { columns: chosen.columns, left, ends, locals: Vec::new(), values: Vec::new() }
    }

    /// Turns the next rows, the first of which is `first`; those without curvature are left out.
    fn turn(&mut self, first: usize, bend: &[f64]) {
        let Self { columns, left, ends, locals, values } = self;
        let behind = (first + bend.len()) as u32;
        ends.fill(0);
        let count = |left: &Range<usize>| {
            let rows = columns.rows_at(left.clone());
            let n = rows.iter().position(|&i| i >= behind).unwrap_or(rows.len());
            for &i in &rows[..n] {
                let i = i as usize - first;
                ends[i + 1] += usize::from(bend[i] != 0.0);
            }
            left.start + n
        };
        let stops: Vec<usize> = left.iter().map(count).collect();
        for i in 0..bend.len() {
            ends[i + 1] += ends[i];
        }
        locals.resize(ends[bend.len()], 0);
        values.resize(ends[bend.len()], 0.0);
        // Filling a row moves its place from the end of the row before to its own.
        for ((k, left), stop) in left.iter_mut().enumerate().zip(stops) {
            columns.for_each_at(left.start..stop, |i, x| {
                let i = i - first;
                if bend[i] != 0.0 {
                    let at = ends[i];
                    (locals[at], values[at]) = (k as u32, x);
                    ends[i] += 1;
                }
            });
            left.start = stop;
        }
    }

    /// Columns and values of the `i`-th of the rows.
    fn row(&self, i: usize) -> (&[u32], &[f64]) {
        let range = if i == 0 { 0 } else { self.ends[i - 1] }..self.ends[i];
        (&self.locals[range.clone()], &self.values[range])
    }
}

/// The model by its matrix.
pub struct ModelMatrix {
    matrix: Vec<f64>,
    slope: Vec<f64>,
    bend: Vec<f64>,
    waits: Waits,
}

impl ModelMatrix {
    /// The model of a matrix whose slopes along the columns are `slope`. `least` is the smallest curvature of
    /// a column.
    pub fn new(mut matrix: Vec<f64>, slope: Vec<f64>, least: &[f64]) -> Self {
        let m = slope.len();
        (0..m).for_each(|k| matrix[k * m + k] = matrix[k * m + k].max(least[k]));
        let bend = (0..m).map(|k| matrix[k * m + k]).collect();
        Self { matrix, slope, bend, waits: Waits::new(1) }
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

    /// Over the weights that are neither zero nor on a bound: to the exact minimum, or, where they are too
    /// many for a factorisation, along conjugate gradients.
    fn jump(
        &mut self,
        terms: &[Term],
        w: &mut [f64],
        decrease: f64,
        monitor: &dyn Monitor,
    ) -> Result<(Jump, f64)> {
        let inside = inside(terms, w);
        if inside.len() <= JUMP_COLUMNS {
            return Ok(self.jump_to_minimum(terms, w));
        }
        if !self.waits.is_over() {
            return Ok((Jump::None, 0.0));
        }
        let fall = self.follow_directions(terms, w, &inside, monitor)?;
        self.waits.begin(fall >= WORTH * decrease);
        Ok((Jump::None, fall))
    }
}

/// The weights that are neither zero nor on a bound.
fn inside(terms: &[Term], w: &[f64]) -> Vec<usize> {
    (0..w.len()).filter(|&k| is_inside(&terms[k], w[k])).collect_large()
}

impl ModelMatrix {
    /// Newton steps. A weight whose sign would change becomes zero, one that would leave its bounds stays on
    /// them, and the next step is without it.
    fn jump_to_minimum(&mut self, terms: &[Term], w: &mut [f64]) -> (Jump, f64) {
        let (mut found, mut fall) = (Jump::None, 0.0);
        for _ in 0..MAX_STEPS {
            let inside = inside(terms, w);
            let Some(by) = self.step(terms, w, &inside) else {
                return (found, fall);
            };
            let (decrease, is_whole) = self.go(terms, w, &inside, by);
            let Some(decrease) = decrease else {
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

    /// As far as conjugate gradients lead; by how much model and penalty fall.
    fn follow_directions(
        &mut self,
        terms: &[Term],
        w: &mut [f64],
        inside: &[usize],
        monitor: &dyn Monitor,
    ) -> Result<f64> {
        let own = |k: usize| FLAT * self.bend[k] + terms[k].l2;
        let diagonal: Vec<f64> = inside.iter().map(|&k| self.bend[k] + own(k)).collect_large();
        let slope = inside.iter().map(|&k| terms[k].slope_inside(w[k], self.slope[k])).collect_large();
        let mut full: Vec<f64> = memory::zeros(w.len());
        let product = |direction: &[f64]| -> Vec<f64> {
            inside.iter().zip(direction).for_each(|(&k, p)| full[k] = *p);
            let of_column = |(&k, p): (&usize, &f64)| dot(self.line(k), &full) + own(k) * p;
            inside.iter().zip(direction).map(of_column).collect_large()
        };
        let by = conjugate_gradients(slope, &diagonal, MAX_DIRECTIONS, monitor, product)?;
        Ok(self.go(terms, w, inside, by).0.unwrap_or(0.0))
    }

    /// Takes a step, or if nothing comes of it, its part up to the first wall on the way. By how much model
    /// and penalty fall, if they do, and whether no wall is on the way.
    fn go(&mut self, terms: &[Term], w: &mut [f64], inside: &[usize], by: Vec<f64>) -> (Option<f64>, bool) {
        let step = Step::new(terms, w, inside, by);
        let mut moved = self.try_move(terms, w, inside, &step.whole);
        if moved.is_none() && !step.is_whole {
            moved = self.try_move(terms, w, inside, &step.to_first_wall(w));
        }
        (moved, step.is_whole)
    }

    /// The step to the minimum over the weights `inside`, if it can be had.
    fn step(&self, terms: &[Term], w: &[f64], inside: &[usize]) -> Option<Vec<f64>> {
        let n = inside.len();
        if n == 0 {
            return None;
        }
        let mut part = Symmetric { n, values: memory::zeros(n * n) };
        let mut step: Vec<[f64; 1]> = Vec::with_capacity(n);
        for (a, &k) in inside.iter().enumerate() {
            let line = self.line(k);
            inside.iter().zip(&mut part.values[a * n..]).for_each(|(&l, value)| *value = line[l]);
            part.values[a * n + a] = self.bend[k] * (1.0 + RIDGE) + terms[k].l2;
            step.push([-terms[k].slope_inside(w[k], self.slope[k])]);
        }
        part.factorise();
        part.solve(&mut step);
        step.iter().all(|[s]| s.is_finite()).then(|| step.into_iter().map(|[s]| s).collect_large())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::csr::CsrView;
    use crate::matrix::design::Design;

    #[test]
    fn matrices_are_sums_over_rows_in_any_number_of_pieces() {
        let n_columns = 5;
        for n in [1, ROWS_AT_A_TIME - 1, ROWS_AT_A_TIME, ROWS_AT_A_TIME + 1, 2 * ROWS_AT_A_TIME + 7] {
            // Rows of no, some and all columns; every third without curvature.
            let is_there = |i: usize, j: usize| (i * 7 + j * j) % 5 <= i % 6;
            let value = |i: usize, j: usize| ((i * 31 + j * 17) % 11) as f64 - 4.5;
            let (mut starts, mut list, mut values) = (vec![0i64], Vec::new(), Vec::new());
            for i in 0..n {
                (0..n_columns).filter(|&j| is_there(i, j)).for_each(|j| {
                    list.push(j as i32);
                    values.push(value(i, j));
                });
                starts.push(list.len() as i64);
            }
            let (rows, _) = CsrView::new(&starts, &list, &values, n_columns).unwrap();
            let columns = Columns::of(&Design { rows: &rows, ids: None, bias: 0.0 });
            let bend: Vec<f64> =
                (0..n).map(|i| if i % 3 == 0 { 0.0 } else { 0.25 * (i % 4) as f64 }).collect();
            let chosen = [0, 2, 3];
            let x = |i: usize, k: usize| {
                let j = chosen[k] as usize;
                if is_there(i, j) { value(i, j) } else { 0.0 }
            };
            let coordinates = Coordinates { columns: &columns, terms: &[], n_blocks: 1 };
            let matrix = ChosenColumns::of(coordinates, &chosen).unwrap().matrix(&bend);
            for (at, found) in matrix.iter().enumerate() {
                let (a, b) = (at / 3, at % 3);
                let expected: f64 = (0..n).map(|i| bend[i] * x(i, a) * x(i, b)).sum();
                assert!((found - expected).abs() <= 1e-9 * (1.0 + expected.abs()), "{n} rows, {a}, {b}");
            }
        }
    }
}
