//! Which row a stochastic step reads: drawn with the probability of its cost, with replacement.
//!
//! Rows are put in an order that depends on their contents only, and rows with the same entries and the same
//! label share one position in it. So the row that a random number stands for depends neither on the order of
//! the input nor on whether a row is there twice or has twice the cost: such problems give the same steps.
//!
//! Cost: one pass over the data, a sort of `n` numbers, 20 to 32 bytes per row.

use rand_core::Rng;
use rayon::prelude::*;

use crate::fit::dual::active::{Random, below};
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::memory;
use crate::memory::CollectLarge;

/// Rows per parallel task.
const CHUNK: usize = 1024;

/// Draws rows.
pub struct Draw {
    /// For each position, the row that represents it; equal rows are represented by one of them.
    pub order: Vec<u32>,
    /// Costs added up, where they differ.
    cumulative: Option<Cumulative>,
    /// For each row, the row that represents it.
    pub representative: Vec<u32>,
    /// `|x_i|^2`, the constant column included.
    pub squared_norm: Vec<f64>,
}

struct Cumulative {
    sums: Vec<f64>,
    /// For each of `sums.len()` equal parts of the total, the first position that may lie in it.
    guide: Vec<u32>,
}

/// Mixes the bits of a number (the finaliser of SplitMix64).
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A number for the entries of row `i`, whatever their order, and its squared norm.
fn digest(design: &Design<'_>, i: usize) -> (u64, f64) {
    let (mut key, mut squared) = (0u64, 0.0);
    design.for_each(i, |j, v| {
        if v != 0.0 {
            key = key.wrapping_add(mix(mix(j as u64 + 1) ^ v.to_bits()));
            squared += v * v;
        }
    });
    (key, squared)
}

fn entries(design: &Design<'_>, i: usize) -> Vec<(usize, u64)> {
    let mut found = Vec::with_capacity(design.row_len(i));
    design.for_each(i, |j, v| {
        if v != 0.0 {
            found.push((j, v.to_bits()));
        }
    });
    found.sort_unstable();
    found
}

impl Draw {
    /// Orders the rows of a problem with these labels and costs.
    pub fn new(design: &Design<'_>, y: &[f64], cost: &[f64]) -> Self {
        let n = y.len();
        let digests: Vec<(u64, f64)> =
            memory::collect_parallel((0..n).into_par_iter().with_min_len(CHUNK).map(|i| digest(design, i)));
        let mut order: Vec<u32> = (0..n as u32).collect_large();
        let key = |i: u32| (digests[i as usize].0, y[i as usize] > 0.0);
        order.par_sort_unstable_by_key(|&i| (key(i), i));
        let is_even = cost.iter().all(|&c| c == cost[0]);
        let cumulative = (!is_even).then(|| Cumulative::new(order.iter().map(|&i| cost[i as usize])));
        let mut representative: Vec<u32> = (0..n as u32).collect_large();
        for k in 1..n {
            let (before, i) = (order[k - 1], order[k]);
            if key(before) == key(i) && entries(design, before as usize) == entries(design, i as usize) {
                representative[i as usize] = before;
                order[k] = before;
            }
        }
        Self {
            order,
            cumulative,
            representative,
            squared_norm: digests.into_iter().map(|(_, s)| s).collect_large(),
        }
    }

    /// Each row for itself, in the order of the rows: one pass over the data, no sort.
    pub fn in_order(design: &Design<'_>, cost: &[f64]) -> Self {
        let order: Vec<u32> = (0..cost.len() as u32).collect_large();
        let is_even = cost.iter().all(|&c| c == cost[0]);
        let cumulative = (!is_even).then(|| Cumulative::new(cost.iter().copied()));
        let rows = (0..cost.len()).into_par_iter().with_min_len(CHUNK);
        let squared_norm = memory::collect_parallel(rows.map(|i| design.squared_norm(i)));
        Self { representative: memory::copy(&order), order, cumulative, squared_norm }
    }

    /// A row.
    #[inline(always)]
    pub fn next(&self, random: &mut Random) -> u32 {
        let position = match &self.cumulative {
            None => below(random, self.order.len()),
            Some(cumulative) => cumulative.position(random),
        };
        self.order[position]
    }
}

impl Cumulative {
    fn new(costs: impl Iterator<Item = f64>) -> Self {
        let mut total = 0.0;
        let sums: Vec<f64> = costs
            .map(|c| {
                total += c;
                total
            })
            .collect_large();
        let n = sums.len();
        let mut at = 0;
        let guide = (0..n)
            .map(|part| {
                while at + 1 < n && sums[at] <= total * (part as f64 / n as f64) {
                    at += 1;
                }
                at as u32
            })
            .collect_large();
        Self { sums, guide }
    }

    #[inline(always)]
    fn position(&self, random: &mut Random) -> usize {
        let (n, u) = (self.sums.len(), random.next_u32());
        let x = f64::from(u) / (f64::from(u32::MAX) + 1.0) * self.sums[n - 1];
        let part = ((u64::from(u) * n as u64) >> 32) as usize;
        let mut position = self.guide[part] as usize;
        while position + 1 < n && self.sums[position] <= x {
            position += 1;
        }
        position
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::dual::active::random;
    use crate::matrix::dense::DenseView;

    #[test]
    fn rows_come_as_often_as_they_cost() {
        let values: Vec<f64> = (0..5).map(f64::from).collect();
        let x = crate::matrix::Matrix::from(DenseView::new(&values, 5, 1).unwrap().0);
        let cost = [1.0, 0.5, 4.0, 2.5, 2.0];
        let draw = Draw::new(&Design { rows: &x, ids: None, bias: 0.0 }, &[1.0; 5], &cost);
        let (mut seen, mut r) = ([0.0; 5], random(3, 0));
        for _ in 0..100_000 {
            seen[draw.next(&mut r) as usize] += 1e-4;
        }
        for (seen, cost) in seen.iter().zip(cost) {
            assert!((seen - cost).abs() < 0.05, "{seen} of {cost}");
        }
    }

    #[test]
    fn neither_order_nor_repetition_nor_weight_changes_the_rows_drawn() {
        let contents = [1.0, 7.0, 3.0, 9.0];
        let weights = [2.0, 1.0, 3.0, 1.0];
        let list = |values: &[f64], cost: &[f64]| -> Vec<f64> {
            let x = crate::matrix::Matrix::from(DenseView::new(values, values.len(), 1).unwrap().0);
            let draw = Draw::new(&Design { rows: &x, ids: None, bias: 1.0 }, &vec![1.0; values.len()], cost);
            let mut r = random(5, 0);
            (0..200).map(|_| values[draw.next(&mut r) as usize]).collect()
        };
        let weighted = list(&contents, &weights);
        assert_eq!(weighted, list(&[9.0, 3.0, 7.0, 1.0], &[1.0, 3.0, 1.0, 2.0]));
        assert_eq!(weighted, list(&[3.0, 1.0, 9.0, 3.0, 7.0, 1.0, 3.0], &[0.25; 7]));
    }

    #[test]
    fn equal_rows_share_a_representative_unless_their_labels_differ() {
        let x = crate::matrix::Matrix::from(DenseView::new(&[2.0, 5.0, 2.0, 2.0], 4, 1).unwrap().0);
        let draw = Draw::new(&Design { rows: &x, ids: None, bias: 0.0 }, &[1.0, 1.0, 1.0, -1.0], &[1.0; 4]);
        assert_eq!(draw.representative, [0, 1, 0, 3]);
    }
}
