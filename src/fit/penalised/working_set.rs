//! The columns that a round of Newton steps may move.

use super::PenalisedProblem;
use crate::fit::routes::{GRAM_COLUMNS, WORKING_SET_GROWTH, WORKING_SET_LEAST, WORKING_SET_LEAST_OF_FEW};
use crate::penalty::Term;

/// Column numbers, rising.
pub struct WorkingSet {
    /// The columns.
    pub columns: Vec<u32>,
    /// Columns without penalty and bounds, which always belong to it.
    free: Vec<u32>,
}

impl WorkingSet {
    /// The free columns.
    pub fn new(terms: &[Term]) -> Self {
        let free: Vec<u32> = (0..terms.len() as u32).filter(|&j| terms[j as usize].is_free()).collect();
        Self { columns: free.clone(), free }
    }

    /// The columns without penalty and bounds.
    pub fn free(&self) -> &[u32] {
        &self.free
    }

    /// The columns of nonzero weight, the free ones, and of the others those that miss their optimality
    /// condition by most: as many as to double the set, and no fewer than a least number.
    pub fn choose(&mut self, problem: &PenalisedProblem<'_>, w: &[f64], slope: &[f64]) {
        let terms = problem.terms;
        let is_in = |j: usize| w[j] != 0.0 || terms[j].is_free();
        let mut columns: Vec<u32> = (0..w.len() as u32).filter(|&j| is_in(j as usize)).collect();
        let violation = |j: usize| (terms[j].violation(w[j], slope[j]), j as u32);
        let mut others: Vec<(f64, u32)> =
            (0..w.len()).filter(|&j| !is_in(j)).map(violation).filter(|(v, _)| *v > 0.0).collect();
        let room = (WORKING_SET_GROWTH * columns.len()).max(least(w.len()));
        if others.len() > room {
            let by_violation = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            others.select_nth_unstable_by(room, by_violation);
            others.truncate(room);
        }
        columns.extend(others.into_iter().map(|(_, j)| j));
        columns.sort_unstable();
        self.columns = columns;
    }
}

/// Columns that join at least, of so many in all.
fn least(n_columns: usize) -> usize {
    if n_columns <= GRAM_COLUMNS { WORKING_SET_LEAST_OF_FEW } else { WORKING_SET_LEAST }
}
