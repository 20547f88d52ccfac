//! The row terms of a group of lanes: one loss, labels by class, costs that say which lanes train on a row.

use std::borrow::Borrow;
use std::ops::Range;

use super::folds::LaneSetup;
use crate::fit::objective::Objective;
use crate::labels::positive_class;
use crate::loss::Loss;
use crate::matrix::Rows;
use crate::{Error, Result, memory};

/// The order in which groups take the lanes of a search: the folds of a class side by side.
///
/// These share most of their rows with curvature, so a product reads few others, and a preconditioner from
/// the mean of their curvatures is close to each.
#[derive(Clone, Copy, Debug)]
pub struct LaneOrder {
    /// Folds of the search.
    pub n_folds: usize,
    /// Binary problems per fold.
    pub n_problems: usize,
}

impl LaneOrder {
    /// The lanes, problem `k % n_problems` of fold `k / n_problems`, in a part of the order.
    pub fn lanes(self, part: Range<usize>) -> Vec<usize> {
        let n_folds = self.n_folds.max(1);
        part.map(|at| at % n_folds * self.n_problems + at / n_folds).collect()
    }
}

/// Which rows the lanes of a group train on, and their classes.
pub struct GroupLanes<const L: usize> {
    times: Vec<[u8; L]>,
    positive: [u32; L],
}

impl<const L: usize> GroupLanes<L> {
    /// The given lanes of a search of `n_problems` binary problems per fold; `train` are the rows of a lane,
    /// of `n_rows` in all.
    ///
    /// # Errors
    /// [`Error::Labels`] for a fold that names a row more than 255 times, or one that does not exist.
    pub fn new<'f>(
        n_rows: usize,
        n_problems: usize,
        lanes: &[usize],
        train: impl Fn(usize) -> &'f [u32],
    ) -> Result<Self> {
        let mut times = memory::filled([0; L], n_rows);
        let mut positive = [0; L];
        for (l, &k) in lanes.iter().enumerate() {
            positive[l] = positive_class(n_problems, k % n_problems);
            for &i in train(k) {
                let count = times.get_mut(i as usize).map(|times: &mut [u8; L]| &mut times[l]);
                let count = count.ok_or_else(|| Error::Labels {
                    reason: format!("the training part of a fold names row {i}, there are {n_rows}"),
                })?;
                *count = count.checked_add(1).ok_or_else(|| Error::Labels {
                    reason: format!("the training part of a fold names row {i} more than 255 times"),
                })?;
            }
        }
        Ok(Self { times, positive })
    }
}

/// `f_i(z) = v_i t_il xi(y_il z)` in lane `l`, with the row's weight `v_i`, the number of times `t_il` that
/// the lane's fold trains on the row (0 for a row held out), and `y_il = 1` for rows of the lane's class,
/// else -1. `G` has the [`GroupLanes`], or borrows them.
pub struct FoldTerms<'a, T, G> {
    /// The loss.
    pub loss: T,
    /// Weights of all rows.
    pub weight: &'a [f64],
    /// Classes of all rows.
    pub class: &'a [u32],
    /// The lanes.
    pub lanes: G,
}

impl<'a, T: Loss, const L: usize> FoldTerms<'a, T, GroupLanes<L>> {
    /// The terms of the given lanes of a search.
    ///
    /// # Errors
    /// Those of [`GroupLanes::new`].
    pub fn new(loss: T, setup: &LaneSetup<'a>, lanes: &[usize]) -> Result<Self> {
        let n_rows = setup.rows.n_rows();
        let lanes = GroupLanes::new(n_rows, setup.n_problems(), lanes, |k| &setup.part(k).train)?;
        Ok(Self { loss, weight: setup.weight, class: setup.labels.ids, lanes })
    }
}

impl<T: Loss, G> FoldTerms<'_, T, G> {
    /// Cost and label of row `i` per lane.
    #[inline(always)]
    fn costs_and_labels<const L: usize>(&self, i: usize) -> ([f64; L], [f64; L])
    where
        G: Borrow<GroupLanes<L>>,
    {
        let lanes = self.lanes.borrow();
        let (weight, class, times) = (self.weight[i], self.class[i], &lanes.times[i]);
        let (mut costs, mut labels) = ([0.0; L], [0.0; L]);
        for l in 0..L {
            costs[l] = weight * f64::from(times[l]);
            labels[l] = if class == lanes.positive[l] { 1.0 } else { -1.0 };
        }
        (costs, labels)
    }
}

impl<T: Loss, G: Borrow<GroupLanes<L>> + Sync, const L: usize> Objective<L> for FoldTerms<'_, T, G> {
    #[inline(always)]
    fn all(&self, i: usize, z: &[f64; L]) -> [[f64; L]; 3] {
        let (cost, y) = self.costs_and_labels(i);
        let mut terms = [[0.0; L]; 3];
        for l in 0..L {
            let [value, slope, bend] = self.loss.all(y[l] * z[l]);
            terms[0][l] = cost[l] * value;
            terms[1][l] = cost[l] * y[l] * slope;
            terms[2][l] = cost[l] * bend;
        }
        terms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lane_is_in_the_order_once_and_folds_of_a_class_are_side_by_side() {
        for (n_folds, n_problems) in [(1, 1), (5, 1), (1, 4), (3, 7), (10, 2)] {
            let order = LaneOrder { n_folds, n_problems };
            let lanes = order.lanes(0..n_folds * n_problems);
            let mut sorted = lanes.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..n_folds * n_problems));
            for class in lanes.chunks(n_folds) {
                assert!(class.iter().all(|k| k % n_problems == class[0] % n_problems), "{lanes:?}");
                assert!(class.iter().map(|k| k / n_problems).eq(0..n_folds), "{lanes:?}");
            }
            let parts = [order.lanes(0..1), order.lanes(1..n_folds * n_problems)];
            assert_eq!(parts.concat(), lanes);
        }
        assert_eq!(LaneOrder { n_folds: 2, n_problems: 3 }.lanes(0..6), [0, 3, 1, 4, 2, 5]);
    }
}
