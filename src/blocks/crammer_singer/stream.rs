//! All classes over the rows of a stream ([`crate::online`]), which come and go.
//!
//! A row is known by its number among those in memory. A row that is forgotten leaves its part of the weights
//! and of the dual value for ever; its dual variables are dropped.

use super::AllClasses;
use crate::blocks::state::BinaryState;
use crate::blocks::sums::Sums;
use crate::fit::Intercept;
use crate::fit::crammer_singer::rows::{Entry, Lists};
use crate::memory;
use crate::memory::CollectLarge;

impl AllClasses {
    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.cost.len()
    }

    /// Columns with weights, that of the constant among them.
    fn n_columns(&self) -> usize {
        self.weights.len() / self.weights.padded()
    }

    /// Sets the height of the constant column.
    pub fn set_bias(&mut self, bias: f64) {
        self.bias = bias;
    }

    /// Makes room for so many rows; new ones have all their cost on their own class.
    pub fn grow(&mut self, n_rows: usize) {
        self.duals.grow(n_rows);
    }

    /// Keeps the given rows, whose numbers rise.
    pub fn keep(&mut self, rows: &[u32]) {
        let mut kept = Lists::empty(rows.len());
        (0..).zip(rows).for_each(|(to, &from)| kept.set(to, self.duals.get(from as usize)));
        self.duals = kept;
    }

    /// Dual value at all rows seen.
    pub fn dual(&self, intercept: Intercept) -> f64 {
        self.sum - self.half_squared(intercept)
    }

    /// Weights of a class, that of the constant column last, and its multiplier.
    pub fn class(&self, class: usize) -> (Vec<f64>, f64) {
        (self.weights.class(class, self.n_columns()), self.offsets[class])
    }

    /// The state, class by class: weights, and the dual variables of the rows in memory.
    pub fn states(&self) -> Vec<BinaryState> {
        let n_rows = self.duals.n_rows();
        let mut alphas: Vec<Vec<f64>> = (0..self.n_classes()).map(|_| memory::zeros(n_rows)).collect_large();
        for row in 0..n_rows {
            self.duals.get(row).iter().for_each(|entry| alphas[entry.class as usize][row] = entry.u);
        }
        let state = |(class, alpha): (usize, Vec<f64>)| {
            let ((w, offset), sums) = (self.class(class), Sums { terms: self.sum, ..Sums::default() });
            BinaryState { w, alpha, offset, sums, losses: 0.0, visits: self.visits }
        };
        alphas.into_iter().enumerate().map(state).collect()
    }

    /// Takes over a state, of which all lengths were checked, with the classes of the rows in memory.
    pub fn resume(&mut self, states: &[BinaryState], own: &[u32]) {
        for column in 0..self.n_columns() {
            self.weights.set_column(column, states.iter().map(|state| state.w[column]));
        }
        self.duals = Lists::empty(own.len());
        let mut list: Vec<Entry> = Vec::new();
        for (row, own) in own.iter().enumerate() {
            list.clear();
            let entries = (0..).zip(states).map(|(class, state)| Entry { u: state.alpha[row], class });
            list.extend(entries.filter(|entry| entry.u > 0.0 && entry.class != *own));
            self.duals.set(row, &list);
        }
        self.offsets = states.iter().map(|state| state.offset).collect();
        (self.sum, self.visits) = states.first().map_or((0.0, 0), |state| (state.sums.terms, state.visits));
    }
}
