//! The way from columns to packed ones, and back.

use super::layout::{NOWHERE, SCALED, starts};
use super::pack::ColumnPlaces;
use super::proportional::Class;
use crate::{memory, parallel};

/// Weights mapped per task.
const MAP_CHUNK: usize = 1 << 15;

/// Where each column of a matrix goes if proportional columns become one. Weights of the columns are those of
/// the packed ones times shares, whose squares add up to 1 over the columns that become one.
#[derive(Clone, Debug, PartialEq)]
pub struct MergedColumns {
    /// The packed column, marked as [`SCALED`] if its weight is a multiple of the packed one, or [`NOWHERE`].
    packed_column: Vec<u32>,
    /// Weight of a column marked as scaled, in units of the packed weight.
    share: Vec<f64>,
    n_columns: usize,
}

impl MergedColumns {
    pub(super) fn new(places: ColumnPlaces, n_columns: usize, classes: &[Class]) -> Self {
        let ColumnPlaces { mut packed_column, mut share } = places;
        for class in classes {
            let (target, factor) = (packed_column[class.representative() as usize], class.factor());
            for (column, scale) in &class.members {
                packed_column[*column as usize] = target;
                share[*column as usize] = scale / factor;
            }
        }
        Self { packed_column, share, n_columns }
    }

    /// Those of so many packed columns, from the packed column of each and its share where there is one.
    /// `None` for a packed column that there is not.
    pub fn of_places(
        n_columns: usize,
        places: impl ExactSizeIterator<Item = Option<(u32, f64)>>,
    ) -> Option<Self> {
        let (mut packed_column, mut share) =
            (memory::with_capacity(places.len()), memory::with_capacity(places.len()));
        for place in places {
            let (packed, part) = place.unwrap_or((NOWHERE, 0.0));
            if place.is_some() && (packed as usize >= n_columns || packed >= SCALED) {
                return None;
            }
            let is_scaled = place.is_some() && part != 1.0;
            packed_column.push(if is_scaled { packed | SCALED } else { packed });
            share.push(if is_scaled { part } else { 0.0 });
        }
        Some(Self { packed_column, share, n_columns })
    }

    /// Columns of the input.
    pub fn n_input(&self) -> usize {
        self.packed_column.len()
    }

    /// Packed columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// The packed column of a column of the input, and the share of its weight; `None` for an empty one.
    #[inline(always)]
    pub fn place(&self, column: usize) -> Option<(u32, f64)> {
        let packed = self.packed_column[column];
        if packed < SCALED {
            Some((packed, 1.0))
        } else if packed == NOWHERE {
            None
        } else {
            Some((packed & !SCALED, self.share[column]))
        }
    }

    /// How many columns of the input each packed one stands for.
    pub fn members(&self) -> Vec<u32> {
        let mut members = memory::zeros(self.n_columns);
        for (packed, _) in (0..self.n_input()).filter_map(|column| self.place(column)) {
            members[packed as usize] += 1;
        }
        members
    }

    /// The columns that have a place in the order of their packed ones, and where those of each begin.
    pub fn by_place(&self) -> (Vec<u32>, Vec<u32>) {
        let mut next = self.members();
        let mut columns = memory::zeros(starts(&mut next));
        let begins = memory::copy(&next);
        for column in 0..self.n_input() {
            if let Some((packed, _)) = self.place(column) {
                let at = &mut next[packed as usize];
                columns[*at as usize] = column as u32;
                *at += 1;
            }
        }
        (columns, begins)
    }

    /// Weights of the input's columns from those of the packed ones.
    pub fn expand(&self, packed: &[f64]) -> Vec<f64> {
        assert_eq!(packed.len(), self.n_columns, "one weight per packed column");
        let mut full = memory::zeros(self.packed_column.len());
        parallel::each_chunk(&mut full, MAP_CHUNK, |start, full| {
            for (k, w) in full.iter_mut().enumerate() {
                *w = self.place(start + k).map_or(0.0, |(column, share)| packed[column as usize] * share);
            }
        });
        full
    }

    /// Weights of the packed columns with the same decision values, if `full` could have come from
    /// [`Self::expand`]; else the nearest ones that could.
    pub fn contract(&self, full: &[f64]) -> Vec<f64> {
        assert_eq!(full.len(), self.packed_column.len(), "one weight per column of the input");
        let mut packed = memory::zeros(self.n_columns);
        for (j, w) in full.iter().enumerate() {
            if let Some((column, share)) = self.place(j) {
                packed[column as usize] += share * w;
            }
        }
        packed
    }
}
