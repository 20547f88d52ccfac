//! What is to be fitted on shards.

use super::shard::ShardFacts;
use crate::fit::newton::factorisation::{self, Factorisation, Form};
use crate::fit::newton::frequent::block_passes;
use crate::fit::routes::{FREQUENT_COLUMNS, FREQUENT_PASSES, SHARD_BLOCK, SHARD_MATRIX_COLUMNS, SMALL};
use crate::fit::{Intercept, Params};
use crate::loss::LossKind;

/// What is to be fitted.
#[derive(Clone, Copy, Debug)]
pub struct ShardTask {
    /// Of all shards together, at the costs of the fit.
    pub facts: ShardFacts,
    /// What the costs that the shards have are multiplied by.
    pub scale: f64,
    /// Columns of the data, or those that travel in their place.
    pub n_columns: usize,
    /// Number of classes, at least 2.
    pub n_classes: u32,
    /// Columns, that of the intercept included, up to which a matrix of them may travel.
    pub matrix_columns: usize,
    /// The loss.
    pub loss: LossKind,
    /// Treatment of the intercept.
    pub intercept: Intercept,
    /// Tolerance and limits.
    pub params: Params,
}

impl ShardTask {
    /// For shards elsewhere, at the costs that they have.
    pub fn new(
        facts: ShardFacts,
        (n_columns, n_classes): (usize, u32),
        (loss, intercept): (LossKind, Intercept),
        params: Params,
    ) -> Self {
        let (scale, matrix_columns) = (1.0, SHARD_MATRIX_COLUMNS);
        Self { facts, scale, n_columns, n_classes, matrix_columns, loss, intercept, params }
    }

    /// Columns with that of the intercept.
    pub fn n_weights(&self) -> usize {
        self.n_columns + usize::from(self.intercept != Intercept::None)
    }

    /// What a factorisation costs, where its matrix may travel.
    pub fn factorisation(&self) -> Option<Factorisation> {
        let d = self.n_weights();
        let is_small = self.facts.n_rows.saturating_mul(d) <= SMALL;
        (d <= self.matrix_columns).then(|| factorisation::of_sums(d, self.facts.pairs, is_small))
    }

    /// What the block of the most frequent columns costs, where those of the data travel, rows outnumber them
    /// and it is cheap even if all entries are in such columns.
    pub fn block(&self) -> Option<Factorisation> {
        let (d, n) = (self.n_weights(), self.facts.n_rows);
        if d <= self.matrix_columns || n < d {
            return None;
        }
        let passes = block_passes(FREQUENT_COLUMNS, n, self.facts.pairs);
        let found = Factorisation { passes: passes + SHARD_BLOCK, is_worth_it: true, form: Form::Frequent };
        (passes <= FREQUENT_PASSES).then_some(found)
    }
}
