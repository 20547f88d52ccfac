//! Matrices of the kind `X'DX` over columns that have nearly all rows: some rows are written out with their
//! zeros, and tiles of lines take what they add. Places of entries are not asked for.
//!
//! Tried: products of two columns, 4 x 4 at a time, whose sums the compiler keeps in single numbers where
//! registers are those of AVX2; 2,000 rows x 478 columns 0.12 s. Eight rows at a time added to a line: whole
//! fits take 1.1 to 1.2 times as long (a9a, 20,000 rows x 60 columns, 2,000 x 200 and 478), of 1,500 and
//! 2,000 columns with the squared hinge 1.3 times.

use std::ops::Range;

use super::chosen_columns::{ChosenColumns, mirror};
use crate::Result;
use crate::fit::monitor::Monitor;
use crate::matrix::kernels::LINE;
use crate::matrix::outer::{HEIGHT, add_up, products};
use crate::matrix::simd::{self, Loop};
use crate::memory::{self, CollectLarge};
use crate::parallel;

/// Rows whose entries are written out at a time.
const ROWS: usize = 128;

/// Columns of the matrix that share their weights of rows: `D` depends on the blocks of row and column.
pub struct WeightedBlocks<'a, W> {
    /// The columns of each block, which follow each other.
    pub ranges: &'a [Range<usize>],
    /// Weight of a row in the rows and columns of two blocks, in any order.
    pub weight: W,
}

/// Adds `weight[i]` times the products of chosen columns in row `i` to a symmetric matrix.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn add_products(
    chosen: &ChosenColumns<'_>,
    weight: &[f64],
    matrix: &mut [f64],
    monitor: &dyn Monitor,
) -> Result<()> {
    let all = 0..chosen.n_columns();
    let blocks = WeightedBlocks { ranges: std::slice::from_ref(&all), weight: |_, i: usize| weight[i] };
    add_weighted(chosen, &rows_with(weight), &blocks, matrix, monitor)
}

/// The same where weights differ from block to block, over chosen columns and the given rows.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn add_weighted(
    chosen: &ChosenColumns<'_>,
    rows: &[u32],
    blocks: &WeightedBlocks<'_, impl Fn([usize; 2], usize) -> f64 + Sync>,
    matrix: &mut [f64],
    monitor: &dyn Monitor,
) -> Result<()> {
    let m = chosen.n_columns();
    let mut left = chosen.all_places();
    let mut slots: Vec<u32> = memory::filled(u32::MAX, chosen.n_rows());
    let mut x: Vec<[f64; LINE]> = memory::filled([0.0; LINE], m.div_ceil(LINE) * ROWS);
    for rows in rows.chunks(ROWS) {
        monitor.poll()?;
        rows.iter().zip(0..).for_each(|(&i, slot)| slots[i as usize] = slot);
        let behind = rows.last().map_or(0, |i| i + 1);
        x.fill([0.0; LINE]);
        for (j, left) in left.iter_mut().enumerate() {
            let x = &mut x[j / LINE * ROWS..][..ROWS];
            chosen.take_until(left, behind, |i, value| {
                // Rows between those of the list are not asked for.
                if slots[i] != u32::MAX {
                    x[slots[i] as usize][j % LINE] = value;
                }
            });
        }
        rows.iter().for_each(|&i| slots[i as usize] = u32::MAX);
        let weights = blocks.weights(rows);
        let mut lines = &mut matrix[..];
        let tiles = blocks.tiles().map(|(k, columns)| {
            let (own, rest) = std::mem::take(&mut lines).split_at_mut(columns.len() * m);
            lines = rest;
            (k, columns, own)
        });
        parallel::each(tiles.collect::<Vec<_>>(), |_, (k, columns, lines)| {
            simd::run(Tile { x: &x, weights: &weights[k], ranges: blocks.ranges, columns, lines, m });
        });
    }
    mirror(matrix, m);
    Ok(())
}

impl<W: Fn([usize; 2], usize) -> f64> WeightedBlocks<'_, W> {
    /// Of each block and every one up to it, the weights of some rows.
    fn weights(&self, rows: &[u32]) -> Vec<Vec<[f64; ROWS]>> {
        let of_pair = |k: usize, l: usize| {
            let mut weight = [0.0; ROWS];
            rows.iter().zip(&mut weight).for_each(|(&i, d)| *d = (self.weight)([k, l], i as usize));
            weight
        };
        (0..self.ranges.len()).map(|k| (0..=k).map(|l| of_pair(k, l)).collect()).collect()
    }

    /// All columns by tiles, with their blocks.
    fn tiles(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        self.ranges
            .iter()
            .enumerate()
            .flat_map(|(k, range)| range.clone().step_by(LINE).map(move |a| (k, a..range.end.min(a + LINE))))
    }
}

/// Adds the products of some rows to the lines of a tile, up to the diagonal.
struct Tile<'a> {
    /// Eight columns after the other, of each all rows; those that are missing are zero.
    x: &'a [[f64; LINE]],
    /// Their weights with each block up to the own one.
    weights: &'a [[f64; ROWS]],
    ranges: &'a [Range<usize>],
    columns: Range<usize>,
    /// The lines of the matrix of these columns.
    lines: &'a mut [f64],
    m: usize,
}

impl Loop for Tile<'_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) {
        let Self { x, weights, ranges, columns, lines, m } = self;
        for (range, weight) in ranges.iter().zip(weights) {
            let mut scaled = [[0.0; LINE]; ROWS];
            for (h, a) in columns.clone().enumerate() {
                let x = &x[a / LINE * ROWS..][..ROWS];
                scaled.iter_mut().zip(x).zip(weight).for_each(|((to, x), d)| to[h] = d * x[a % LINE]);
            }
            for first in (range.start / LINE * LINE..range.end.min(columns.end)).step_by(LINE) {
                let x = &x[first * ROWS / LINE..][..ROWS];
                for from in (0..columns.len()).step_by(HEIGHT) {
                    let sums = products(&scaled, x, from);
                    let below = columns.clone().zip(lines.chunks_exact_mut(m)).skip(from);
                    for ((a, line), sums) in below.zip(&sums) {
                        let (start, end) = (first.max(range.start), (first + LINE).min(range.end).min(a + 1));
                        if start < end {
                            add_up(&mut line[start..end], &sums[start - first..end - first]);
                        }
                    }
                }
            }
        }
    }
}

/// The rows that have a weight.
pub fn rows_with(weight: &[f64]) -> Vec<u32> {
    (0..weight.len() as u32).filter(|&i| weight[i as usize] != 0.0).collect_large()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::monitor::Silent;
    use crate::fit::penalised::coordinates::Coordinates;
    use crate::matrix::columns::Columns;
    use crate::matrix::csr::CsrView;
    use crate::matrix::design::Design;

    /// Rows that the sum by places turns at a time.
    const SOME: usize = 1024;

    #[test]
    fn both_ways_are_sums_over_rows_in_any_number_of_pieces() {
        let n_columns = 5;
        for n in [1, ROWS, ROWS + 1, SOME - 1, SOME, SOME + 1, 2 * SOME + 7] {
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
            let columns = ChosenColumns::of(coordinates, &chosen).unwrap();
            let mut sums = [vec![0.0; 9], vec![0.0; 9]];
            columns.add_products(&bend, &mut sums[0], &Silent).unwrap();
            add_products(&columns, &bend, &mut sums[1], &Silent).unwrap();
            for matrix in sums {
                for (at, found) in matrix.iter().enumerate() {
                    let (a, b) = (at / 3, at % 3);
                    let expected: f64 = (0..n).map(|i| bend[i] * x(i, a) * x(i, b)).sum();
                    assert!((found - expected).abs() <= 1e-9 * (1.0 + expected.abs()), "{n} rows, {a}, {b}");
                }
            }
        }
    }
}
