//! What penalised fits look for: a weight for each column and *block* of decision values. A binary problem
//! has one block; the softmax of several classes has one for each class.
//!
//! Coordinates are numbered block by block: `j + d k` is column `j` of `d` in block `k`. It moves the
//! decision values of that block, which are numbered `i + n k` for row `i` of `n`.

use std::ops::Range;

use crate::fit::sweep::sum;
use crate::matrix::columns::Columns;
use crate::memory::{self, CollectLarge};
use crate::parallel;
use crate::penalty::Term;

/// Coordinates whose slopes one task computes.
pub const COORDINATE_CHUNK: usize = 256;

/// The coordinates of a problem.
#[derive(Clone, Copy)]
pub struct Coordinates<'a> {
    /// The data, the constant column of an intercept last.
    pub columns: &'a Columns,
    /// Penalty and bounds, one per column, the same in all blocks.
    pub terms: &'a [Term],
    /// Blocks of decision values.
    pub n_blocks: usize,
}

impl Coordinates<'_> {
    /// Number of coordinates.
    pub fn len(&self) -> usize {
        self.columns.len() * self.n_blocks
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of decision values.
    pub fn n_decisions(&self) -> usize {
        self.columns.n_rows() * self.n_blocks
    }

    /// Entries of all coordinates.
    pub fn n_entries(&self) -> usize {
        self.columns.n_entries() * self.n_blocks
    }

    /// Entries of the coordinates `list`.
    pub fn count_entries(&self, list: &[u32]) -> usize {
        list.iter().map(|&j| self.columns.column_len(self.column(j as usize))).sum()
    }

    /// The column of a coordinate.
    #[inline(always)]
    pub fn column(&self, j: usize) -> usize {
        if self.n_blocks == 1 { j } else { j % self.columns.len() }
    }

    /// Its block.
    #[inline(always)]
    pub fn block(&self, j: usize) -> usize {
        if self.n_blocks == 1 { 0 } else { j / self.columns.len() }
    }

    /// Its penalty and bounds.
    #[inline(always)]
    pub fn term(&self, j: usize) -> Term {
        self.terms[self.column(j)]
    }

    /// The decision values that it moves.
    #[inline(always)]
    pub fn decisions_of(&self, j: usize) -> Range<usize> {
        let n = self.columns.n_rows();
        let first = self.block(j) * n;
        first..first + n
    }

    /// The coordinates without penalty and bounds.
    pub fn free(&self) -> Vec<u32> {
        (0..self.len() as u32).filter(|&j| self.term(j as usize).is_free()).collect()
    }

    /// Adds what a move of a coordinate adds to the decision values.
    #[inline(always)]
    pub fn spread(&self, j: usize, by: f64, decisions: &mut [f64]) {
        let decisions = &mut decisions[self.decisions_of(j)];
        self.columns.for_each(self.column(j), |i, x| decisions[i] += by * x);
    }

    /// `sum_i g_i x_ij` over the decision values of a coordinate.
    #[inline(always)]
    pub fn slope(&self, j: usize, g: &[f64]) -> f64 {
        let g = &g[self.decisions_of(j)];
        let [sum] = self.columns.sum(self.column(j), |i, x| [g[i] * x]);
        sum
    }

    /// That of the coordinates `list`.
    pub fn slopes(&self, list: &[u32], g: &[f64]) -> Vec<f64> {
        parallel::numbers(list.len(), COORDINATE_CHUNK, |k| self.slope(list[k] as usize, g))
    }

    /// That of all coordinates.
    pub fn all_slopes(&self, g: &[f64]) -> Vec<f64> {
        parallel::numbers(self.len(), COORDINATE_CHUNK, |j| self.slope(j, g))
    }

    /// `z = X w`, from the coordinates of nonzero weight.
    pub fn decisions(&self, w: &[f64]) -> Vec<f64> {
        let mut z = memory::zeros(self.n_decisions());
        for (j, &w) in w.iter().enumerate().filter(|(_, w)| **w != 0.0) {
            self.spread(j, w, &mut z);
        }
        z
    }

    /// The penalty of all weights.
    pub fn penalty(&self, w: &[f64]) -> f64 {
        penalty(|j| self.term(j), w)
    }

    /// The weights of `start` within their bounds, or those nearest to zero.
    pub fn first_weights(&self, start: Option<&[f64]>) -> Vec<f64> {
        let at = |j: usize| self.term(j).clip(start.map_or(0.0, |start| start[j]));
        (0..self.len()).map(at).collect_large()
    }

    /// The largest squared norm of a row.
    pub fn max_squared_norm(&self) -> f64 {
        let mut squared = memory::zeros::<f64>(self.columns.n_rows());
        for j in 0..self.columns.len() {
            self.columns.for_each(j, |i, x| squared[i] += x * x);
        }
        squared.into_iter().fold(0.0, f64::max)
    }
}

/// The penalty of some weights.
pub fn penalty(term: impl Fn(usize) -> Term + Sync, w: &[f64]) -> f64 {
    let [total] = sum(w.len(), |j| [if w[j] == 0.0 { 0.0 } else { term(j).value(w[j]) }]);
    total
}
