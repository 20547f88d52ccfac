//! The matrix of a step's model, kept for the next step on the same columns.
//!
//! Of half parabolas only the rows that have come within the margin or left it have another curvature then:
//! a few, whose products are all that must be added.
//!
//! What rows leave behind by rounding is a few units in the last place of the largest curvature that a column
//! can have, of which the model's damping adds 1e-10 and more: nothing that was there becomes flat or bent
//! the other way.

use super::chosen_columns::ChosenColumns;
use super::tiles;
use crate::Result;
use crate::fit::monitor::Monitor;
use crate::memory::{self, CollectLarge};

/// Rows whose weights have changed at most, as a share of those that have one: rounding stays that of a few
/// sums.
const CHANGED: f64 = 0.5;

/// `H_jk = sum_i d_i x_ij x_ik` over the columns of a list.
pub struct MatrixOfRows {
    list: Vec<u32>,
    weight: Vec<f64>,
    matrix: Vec<f64>,
}

impl MatrixOfRows {
    /// That of the columns `list` and the weights `d`, which `matrix` was made of.
    pub fn new(list: &[u32], weight: &[f64], matrix: Vec<f64>) -> Self {
        Self { list: memory::copy(list), weight: memory::copy(weight), matrix }
    }

    /// Adds the rows whose weights have changed; the matrix, and how many these are as a share of those that
    /// have a weight. None where they are too many, or the columns others.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn follow(
        mut self,
        chosen: &ChosenColumns<'_>,
        list: &[u32],
        weight: &[f64],
        monitor: &dyn Monitor,
    ) -> Result<Option<(Vec<f64>, f64)>> {
        if self.list != list {
            return Ok(None);
        }
        let count = |weight: &[f64]| weight.iter().filter(|weight| **weight != 0.0).count() as f64;
        let change: Vec<f64> = weight.iter().zip(&self.weight).map(|(new, old)| new - old).collect_large();
        let share = count(&change) / count(weight).max(1.0);
        if share > CHANGED {
            return Ok(None);
        }
        add_products(chosen, &change, &mut self.matrix, monitor)?;
        Ok(Some((self.matrix, share)))
    }
}

/// Adds `weight[i]` times the products of the columns in row `i` to a symmetric matrix, by whichever way is
/// cheaper.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn add_products(
    chosen: &ChosenColumns<'_>,
    weight: &[f64],
    matrix: &mut [f64],
    monitor: &dyn Monitor,
) -> Result<()> {
    if chosen.is_dense {
        tiles::add_products(chosen, weight, matrix, monitor)
    } else {
        chosen.add_products(weight, matrix, monitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::monitor::Silent;
    use crate::fit::penalised::coordinates::Coordinates;
    use crate::fit::penalised::tests::entries;
    use crate::matrix::Matrix;
    use crate::matrix::columns::Columns;
    use crate::matrix::dense::DenseView;
    use crate::matrix::design::Design;
    use proptest::prelude::*;

    proptest! {
        /// A matrix that follows the weights of rows, some of which change, is that of the new weights, for
        /// as long as these are no more than half of the rows.
        #[test]
        fn matrices_follow_the_weights_of_rows(
            n in 1..60usize, is_dense in any::<bool>(), seed in 0..999u64,
            steps in prop::collection::vec((0..60usize, 0..60usize), 1..8),
        ) {
            let (d, list) = (5, [0, 2, 3]);
            let values = entries(n, d, seed);
            let rows: Matrix<'_> = DenseView::new(&values, n, d).unwrap().0.into();
            let columns = Columns::of(&Design { rows: &rows, ids: None, bias: 0.0 });
            let coordinates = Coordinates { columns: &columns, terms: &[], n_blocks: 1 };
            let mut chosen = ChosenColumns::of(coordinates, &list).unwrap();
            chosen.is_dense = is_dense;
            let exact = |weight: &[f64]| -> Vec<f64> {
                let x = |i: usize, k: usize| values[i * d + list[k] as usize];
                let entry = |a, b| (0..n).map(|i| weight[i] * x(i, a) * x(i, b)).sum();
                (0..9).map(|at| entry(at / 3, at % 3)).collect()
            };
            let mut weight: Vec<f64> = (0..n).map(|i| (i % 3) as f64).collect();
            let mut matrix = exact(&weight);
            for (from, to) in steps {
                let kept = MatrixOfRows::new(&list, &weight, matrix);
                let before = weight.clone();
                for i in from.min(to).min(n)..from.max(to).min(n) {
                    weight[i] = if weight[i] == 0.0 { 2.0 } else { 0.0 };
                }
                let changed = (0..n).filter(|&i| weight[i] != before[i]).count() as f64;
                let positive = weight.iter().filter(|w| **w > 0.0).count() as f64;
                let found = kept.follow(&chosen, &list, &weight, &Silent).unwrap();
                prop_assert_eq!(found.is_some(), changed <= CHANGED * positive.max(1.0));
                let expected = exact(&weight);
                if let Some((found, share)) = found {
                    prop_assert_eq!(share, changed / positive.max(1.0));
                    for (found, expected) in found.iter().zip(&expected) {
                        prop_assert!((found - expected).abs() <= 1e-9, "{found}, not {expected}");
                    }
                }
                matrix = expected;
            }
            let other = MatrixOfRows::new(&[0, 2, 4], &weight, matrix);
            prop_assert!(other.follow(&chosen, &list, &weight, &Silent).unwrap().is_none());
        }
    }
}
