//! The squared hinge by the entries of the columns, as it is and not as its model.
//!
//! The model of a Newton step does not know the rows that are flat now and come within the margin on the way.
//! Where a set has as many columns as there are rows that are not flat, its minimum is far beyond that of the
//! losses, and a quarter of a step is all that can be taken. A half parabola takes no longer to read than a
//! parabola, so descents may be on the losses as well.

use super::coordinates::Coordinates;
use super::entries::RowModels;

/// Curvature along a coordinate at least, as a share of what it was before: where all its rows are flat there
/// is none.
const LEAST_BEND: f64 = 1e-3;

/// Half parabolas, one for each row.
pub struct HalfParabolas<'s> {
    coordinates: Coordinates<'s>,
    list: &'s [u32],
    /// How far each decision value is beyond the kink, and the curvature on its other side, whose sign is
    /// the side that is flat.
    rows: Vec<[f64; 2]>,
}

impl<'s> HalfParabolas<'s> {
    /// Of these rows.
    pub fn new(coordinates: Coordinates<'s>, list: &'s [u32], rows: Vec<[f64; 2]>) -> Self {
        Self { coordinates, list, rows }
    }

    #[inline(always)]
    fn column(&self, k: usize) -> usize {
        self.list[k] as usize
    }
}

/// The curvature of a row.
#[inline(always)]
fn bend([beyond, bend]: [f64; 2]) -> f64 {
    if beyond * bend < 0.0 { bend.abs() } else { 0.0 }
}

impl RowModels for HalfParabolas<'_> {
    #[inline(always)]
    fn slope(&self, k: usize) -> f64 {
        self.along(k, 0.0)[0]
    }
    fn bend(&self, k: usize) -> f64 {
        self.along(k, 0.0)[1]
    }
    #[inline(always)]
    fn along(&self, k: usize, before: f64) -> [f64; 2] {
        let [slope, bend] = self.coordinates.columns.sum(self.column(k), |i, x| {
            let row = self.rows[i];
            let by = bend(row) * x;
            [row[0] * by, by * x]
        });
        [slope, bend.max(LEAST_BEND * before)]
    }
    #[inline(always)]
    fn shift(&mut self, k: usize, by: f64) {
        let (column, rows) = (self.column(k), &mut self.rows[..]);
        self.coordinates.columns.for_each(column, |i, x| rows[i][0] += by * x);
    }
    fn coordinates(&self) -> (Coordinates<'_>, &[u32]) {
        (self.coordinates, self.list)
    }
    fn bend_times(&self, along: &mut [f64]) {
        along.iter_mut().zip(&self.rows).for_each(|(along, row)| *along *= bend(*row));
    }
    fn change(&self, along: &[f64]) -> f64 {
        let value = |row: [f64; 2]| 0.5 * bend(row) * row[0] * row[0];
        let of_row = |(row, along): (&[f64; 2], &f64)| value([row[0] + along, row[1]]) - value(*row);
        self.rows.iter().zip(along).map(of_row).sum()
    }
    fn go(&mut self, along: &[f64]) {
        self.rows.iter_mut().zip(along).for_each(|(row, along)| row[0] += along);
    }
}
