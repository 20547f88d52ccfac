//! The heaviest columns of a working set, over which a descent on the entries minimises together.
//!
//! Where a few hundred columns have most of the entries, as the frequent values of categories do, they add up
//! to nearly the same: descent on one weight at a time moves along them by little steps, and a slope along a
//! column of 50,000 rows must be right to 1e-5 of what its rows add to it before it proves anything. So the
//! matrix of the model over them alone is formed, each epoch visits the others, and ends at the minimum over
//! these. Between the others little is left that an epoch does not do.

use super::gram::ModelMatrix;
use super::quadratic::{QuadraticModel, descend};
use super::working_set::largest_first;
use crate::Result;
use crate::fit::monitor::Monitor;
use crate::fit::routes::{HEAVY_COLUMNS, HEAVY_ENTRIES, HEAVY_SETS, HEAVY_STOP};
use crate::memory::{self, CollectLarge};
use crate::penalty::Term;

/// Whether a block is worth its price in a descent on so many columns and entries: an epoch without it must
/// take longer than the minimum over the block.
pub fn is_worth_it(n_columns: usize, n_entries: usize) -> bool {
    n_columns >= HEAVY_SETS * HEAVY_COLUMNS && n_entries >= HEAVY_ENTRIES * HEAVY_COLUMNS.pow(2)
}

/// The places of the [`HEAVY_COLUMNS`] largest curvatures, rising.
pub fn places(bend: &[f64]) -> Vec<u32> {
    let mut sizes: Vec<(f64, u32)> = bend.iter().copied().zip(0..).collect();
    largest_first(&mut sizes, HEAVY_COLUMNS);
    let mut places: Vec<u32> = sizes.into_iter().take(HEAVY_COLUMNS).map(|(_, k)| k).collect();
    places.sort_unstable();
    places
}

/// Columns of a working set with the matrix of the model over them.
pub struct HeavyBlock {
    /// Their places in the set, rising.
    pub places: Vec<u32>,
    /// Their entries.
    pub entries: usize,
    model: ModelMatrix,
}

impl HeavyBlock {
    /// The block of these places with so many entries, whose model has this matrix, with a curvature
    /// of `damping` added along each coordinate of the set.
    pub fn new(places: Vec<u32>, entries: usize, matrix: Vec<f64>, damping: &[f64]) -> Self {
        let damping: Vec<f64> = places.iter().map(|&k| damping[k as usize]).collect_large();
        let model = ModelMatrix::new(matrix, memory::zeros(places.len()), &damping);
        Self { places, entries, model }
    }

    /// The weights of the block at the minimum over it, where the model has these slopes at `w`, the weights
    /// of the set, and by how much model and penalty fall on the way.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn minimum(
        &mut self,
        slope: Vec<f64>,
        terms: &[Term],
        w: &[f64],
        monitor: &dyn Monitor,
    ) -> Result<(Vec<f64>, f64)> {
        self.model.restart(memory::copy(&slope));
        let terms: Vec<Term> = self.places.iter().map(|&k| terms[k as usize]).collect_large();
        let before: Vec<f64> = self.places.iter().map(|&k| w[k as usize]).collect_large();
        let mut after = memory::copy(&before);
        descend(&mut self.model, &terms, &mut after, HEAVY_STOP, monitor)?;
        // The mean of its slopes at both ends is that of a parabola between them.
        let rise_of = |k: usize| {
            let [end, _] = self.model.along(k);
            terms[k].rise(before[k], after[k]) + 0.5 * (after[k] - before[k]) * (slope[k] + end)
        };
        let fall = -(0..before.len()).map(rise_of).sum::<f64>();
        Ok((after, fall))
    }
}

#[cfg(test)]
mod tests {
    use super::super::PenalisedProblem;
    use super::super::binary::BinaryLosses;
    use super::super::chosen_columns::ChosenColumns;
    use super::super::entries::Entries;
    use super::super::quadratic::InnerStop;
    use super::super::smooth_part::{Losses, SmoothPart};
    use super::super::tests::{entries, term};
    use super::*;
    use crate::fit::monitor::Silent;
    use crate::fit::objective::Weighted;
    use crate::fit::routes::ENTRIES_STOP;
    use crate::loss::Logistic;
    use crate::matrix::Matrix;
    use crate::matrix::columns::Columns;
    use crate::matrix::dense::DenseView;
    use crate::matrix::design::Design;
    use proptest::prelude::*;

    #[test]
    fn places_are_those_of_the_largest_curvatures() {
        let bend: Vec<f64> = (0..2 * HEAVY_COLUMNS).map(|k| if k % 2 == 0 { 1.0 } else { 2.0 }).collect();
        let odd: Vec<u32> = (0..HEAVY_COLUMNS as u32).map(|k| 2 * k + 1).collect();
        assert_eq!(places(&bend), odd);
        assert_eq!(places(&[3.0, 1.0]), [0, 1]);
    }

    proptest! {
        /// Whatever is kept together, a descent on the entries ends where the model's matrix, with the
        /// damping on its diagonal, has its minimum.
        #[test]
        fn descents_end_at_the_minimum_of_the_matrix(
            kind in 0..16usize, together in prop::collection::vec(any::<bool>(), 8),
            damping in prop::collection::vec(prop_oneof![Just(0.0), 0.0..100.0f64], 8), seed in 0..9999u64,
        ) {
            let (n, d) = (40, 8);
            let values = entries(n, d, seed);
            let rows: Matrix<'_> = DenseView::new(&values, n, d).unwrap().0.into();
            let columns = Columns::of(&Design { rows: &rows, ids: None, bias: 0.0 });
            let y: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
            let cost = vec![2.0; n];
            let terms: Vec<Term> = (0..d).map(|j| term(kind, j)).collect();
            let columns = &columns;
            let problem = PenalisedProblem { columns, y: &y, cost: &cost, terms: &terms, reach: None };
            let smooth = &Weighted { loss: Logistic, y: &y, cost: &cost };
            let part = BinaryLosses { problem: &problem, smooth };
            let losses = Losses::at(&part, vec![0.0; n]);
            let all: Vec<u32> = (0..d as u32).collect();
            let matrix_of = |list: &[u32]| {
                let chosen = ChosenColumns::of(part.coordinates(), list).unwrap();
                part.matrix(&chosen, list, &losses, &Silent).unwrap()
            };
            let slope = part.coordinates().slopes(&all, &losses.slope);
            let start: Vec<f64> = terms.iter().map(|term| term.clip(0.0)).collect();

            let mut expected = start.clone();
            let exact = InnerStop { share: 1e-15, epochs: 2000, ..ENTRIES_STOP };
            let mut damped = matrix_of(&all);
            (0..d).for_each(|k| damped[k * d + k] += damping[k]);
            let mut whole = ModelMatrix::new(damped.clone(), slope.clone(), &[0.0; 8]);
            descend(&mut whole, &terms, &mut expected, exact, &Silent).unwrap();

            // What a block says that it falls, by the definition.
            let mut block = HeavyBlock::new(all.clone(), 0, matrix_of(&all), &damping);
            let (minimum, fall) = block.minimum(slope.clone(), &terms, &start, &Silent).unwrap();
            let by: Vec<f64> = minimum.iter().zip(&start).map(|(after, before)| after - before).collect();
            let along = |k: usize| (0..d).map(|l| damped[k * d + l] * by[l]).sum::<f64>();
            let of_model = |k: usize| by[k] * (slope[k] + 0.5 * along(k));
            let rise: f64 = (0..d).map(|k| terms[k].rise(start[k], minimum[k]) + of_model(k)).sum();
            prop_assert!((fall + rise).abs() <= 1e-9 * fall.abs().max(1e-3), "{fall}, not {}", -rise);

            let block: Vec<u32> = all.iter().copied().filter(|&k| together[k as usize]).collect();
            let mut model = Entries::new(part.row_models(&all, &losses, &slope), &damping, false);
            model.heavy = (!block.is_empty()).then(|| {
                let entries = part.coordinates().count_entries(&block);
                HeavyBlock::new(block.clone(), entries, matrix_of(&block), &damping)
            });
            let mut found = start;
            descend(&mut model, &terms, &mut found, exact, &Silent).unwrap();
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!((found - expected).abs() < 1e-6, "{found}, not {expected}");
            }
        }
    }
}
