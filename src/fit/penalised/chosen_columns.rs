//! Columns of a working set that are few enough for the matrix of a quadratic model, and sums over rows.

use std::ops::Range;

use super::coordinates::Coordinates;
use crate::fit::monitor::Monitor;
use crate::fit::routes::{
    FACTOR_PRICE, GRAM_COLUMNS, GRAM_COLUMNS_AT_MOST, GRAM_ENTRIES, TILE_PRODUCTS, VECTORISED,
};
use crate::matrix::columns::Columns;
use crate::{Result, memory};

/// Rows that are turned at a time: their entries stay in the second cache.
const ROWS_AT_A_TIME: usize = 1024;

/// The columns of a working set, few enough for the matrix of a model.
pub struct ChosenColumns<'a> {
    columns: &'a Columns,
    list: Vec<u32>,
    /// Products of the matrix per entry, and those of a factorisation where they are many.
    pub price: f64,
    /// The same with those of a factorisation however few.
    pub whole_price: f64,
    /// Whether the columns have so many of the rows that tiles are cheaper than places.
    pub is_dense: bool,
}

/// Columns at most, of data of so many entries.
pub fn most_of(n_entries: usize) -> usize {
    (n_entries / GRAM_ENTRIES).isqrt().clamp(GRAM_COLUMNS, GRAM_COLUMNS_AT_MOST)
}

impl<'a> ChosenColumns<'a> {
    /// Columns at most.
    pub fn most(coordinates: Coordinates<'_>) -> usize {
        most_of(coordinates.columns.n_entries())
    }

    /// The columns of the coordinates `list`, if they are few enough; those of several blocks are repeated.
    pub fn of(coordinates: Coordinates<'a>, list: &[u32]) -> Option<Self> {
        let (columns, m) = (coordinates.columns, list.len());
        if m > Self::most(coordinates) {
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
        let tiles = 0.5 * m as f64 * m as f64 * columns.n_rows() as f64 / TILE_PRODUCTS;
        let entries = entries.max(1) as f64;
        let matrix = tiles.min(pairs) / entries;
        let factor = (m as f64).powi(3) / 6.0 / VECTORISED / entries;
        let whole_price = matrix + factor;
        let price = if factor > FACTOR_PRICE { whole_price } else { matrix };
        Some(Self { columns, list, price, whole_price, is_dense: tiles < pairs })
    }

    /// Number of columns.
    pub fn n_columns(&self) -> usize {
        self.list.len()
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.columns.n_rows()
    }

    /// Of each column the places of its entries.
    pub fn all_places(&self) -> Vec<Range<usize>> {
        self.list.iter().map(|&j| self.columns.places(j as usize)).collect()
    }

    /// Takes the entries before row `behind` off the front of some places.
    #[inline(always)]
    pub fn take_until(&self, left: &mut Range<usize>, behind: u32, f: impl FnMut(usize, f64)) {
        let taken = self.columns.places_before(left.clone(), behind);
        left.start = taken.end;
        self.columns.for_each_at(taken, f);
    }

    /// Adds `weight[i]` times the products of the columns in row `i` to a symmetric matrix.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn add_products(&self, weight: &[f64], matrix: &mut [f64], monitor: &dyn Monitor) -> Result<()> {
        let m = self.list.len();
        self.add_rows(weight, matrix, monitor, |i, columns, values, matrix| {
            for (at, (&a, x)) in columns.iter().zip(values).enumerate() {
                let line = &mut matrix[a as usize * m..][..m];
                add_to_line(line, weight[i] * x, &columns[..=at], &values[..=at]);
            }
        })
    }

    /// Adds to a symmetric matrix whatever `add` adds to its lower triangle for each row that has a weight:
    /// row, columns by their places in the list, which rise, and values.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn add_rows(
        &self,
        weight: &[f64],
        matrix: &mut [f64],
        monitor: &dyn Monitor,
        mut add: impl FnMut(usize, &[u32], &[f64], &mut [f64]),
    ) -> Result<()> {
        let mut turned = TurnedRows::of(self);
        for first in (0..weight.len()).step_by(ROWS_AT_A_TIME) {
            let weight = &weight[first..weight.len().min(first + ROWS_AT_A_TIME)];
            monitor.poll()?;
            turned.turn(first, weight);
            for (i, _) in weight.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                let (columns, values) = turned.row(i);
                add(first + i, columns, values, matrix);
            }
        }
        mirror(matrix, self.list.len());
        Ok(())
    }
}

/// Copies the lower triangle of a matrix of `m` columns to the upper one.
pub fn mirror(matrix: &mut [f64], m: usize) {
    for a in 0..m {
        for b in 0..a {
            matrix[b * m + a] = matrix[a * m + b];
        }
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
        let left = chosen.all_places();
        let ends = vec![0; ROWS_AT_A_TIME + 1];
        Self { columns: chosen.columns, left, ends, locals: Vec::new(), values: Vec::new() }
    }

    /// Turns the next rows, the first of which is `first`; those without curvature are left out.
    fn turn(&mut self, first: usize, bend: &[f64]) {
        let Self { columns, left, ends, locals, values } = self;
        let behind = (first + bend.len()) as u32;
        ends.fill(0);
        let count = |left: &Range<usize>| {
            let places = columns.places_before(left.clone(), behind);
            for &i in columns.rows_at(places.clone()) {
                let i = i as usize - first;
                ends[i + 1] += usize::from(bend[i] != 0.0);
            }
            places.end
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
