//! The coordinates that a round of Newton steps may move.

use super::chosen_columns::ChosenColumns;
use super::coordinates::Coordinates;
use crate::fit::routes::{WORKING_SET_GROWTH, WORKING_SET_LEAST_PER_CLASS};

/// Numbers of coordinates, rising.
pub struct WorkingSet {
    /// The coordinates.
    pub list: Vec<u32>,
    /// Those without penalty and bounds, which always belong to it.
    free: Vec<u32>,
}

impl WorkingSet {
    /// The free coordinates.
    pub fn new(coordinates: Coordinates<'_>) -> Self {
        let free = coordinates.free();
        Self { list: free.clone(), free }
    }

    /// The coordinates without penalty and bounds.
    pub fn free(&self) -> &[u32] {
        &self.free
    }

    /// The coordinates of nonzero weight, the free ones, and of the others those that miss their optimality
    /// condition by most: as many as to double the set, and no fewer than a least number. A set that has a
    /// matrix does not outgrow it by more.
    pub fn choose(&mut self, coordinates: Coordinates<'_>, w: &[f64], slope: &[f64]) {
        let is_in = |j: usize| w[j] != 0.0 || coordinates.term(j).is_free();
        let mut list: Vec<u32> = (0..w.len() as u32).filter(|&j| is_in(j as usize)).collect();
        let violation = |j: usize| (coordinates.term(j).violation(w[j], slope[j]), j as u32);
        let mut others: Vec<(f64, u32)> =
            (0..w.len()).filter(|&j| !is_in(j)).map(violation).filter(|(v, _)| *v > 0.0).collect();
        let left = ChosenColumns::most(coordinates).checked_sub(list.len()).unwrap_or(usize::MAX);
        let least = WORKING_SET_LEAST_PER_CLASS * coordinates.n_blocks.max(2);
        let room = (WORKING_SET_GROWTH * list.len()).min(left).max(least);
        if others.len() > room {
            let by_violation = |a: &(f64, u32), b: &(f64, u32)| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1));
            others.select_nth_unstable_by(room, by_violation);
            others.truncate(room);
        }
        list.extend(others.into_iter().map(|(_, j)| j));
        list.sort_unstable();
        self.list = list;
    }
}
