//! The row terms of a group of lanes: one loss, labels by class, costs that say which lanes train on a row.

use std::borrow::Borrow;

use super::folds::{LaneNumbers, LaneSetup};
use crate::fit::objective::Objective;
use crate::labels::positive_class;
use crate::loss::Loss;
use crate::matrix::Rows;
use crate::{Error, Result, memory};

/// Which rows the lanes of a group train on, and their classes.
pub struct GroupLanes<const L: usize> {
    times: Vec<[u8; L]>,
    positive: [u32; L],
}

impl<const L: usize> GroupLanes<L> {
    /// The given lanes of a search; `train` are the rows of a lane, of `n_rows` in all.
    ///
    /// # Errors
    /// [`Error::Labels`] for a fold that names a row more than 255 times, or one that does not exist.
    pub fn new<'f>(
        n_rows: usize,
        numbers: LaneNumbers,
        lanes: &[usize],
        train: impl Fn(usize) -> &'f [u32],
    ) -> Result<Self> {
        let mut times = memory::filled([0; L], n_rows);
        let mut positive = [0; L];
        for (l, &k) in lanes.iter().enumerate() {
            positive[l] = positive_class(numbers.n_problems, numbers.problem(k));
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
        let lanes = GroupLanes::new(n_rows, setup.numbers(), lanes, |k| &setup.part(k).train)?;
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
