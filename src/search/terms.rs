//! The row terms of a group of lanes: one loss, labels by class, costs that say which lanes train on a row.

use std::ops::Range;

use super::folds::LaneSetup;
use crate::fit::objective::Objective;
use crate::loss::Loss;
use crate::matrix::Rows;
use crate::{Error, Result, memory};

/// `f_i(z) = v_i t_il xi(y_il z)` in lane `l`, with the row's weight `v_i`, the number of times `t_il` that
/// the lane's fold trains on the row (0 for a row held out), and `y_il = 1` for rows of the lane's class,
/// else -1.
pub struct FoldTerms<'a, T, const L: usize> {
    loss: T,
    weight: &'a [f64],
    class: &'a [u32],
    times: Vec<[u8; L]>,
    positive: [u32; L],
}

impl<'a, T: Loss, const L: usize> FoldTerms<'a, T, L> {
    /// The terms of the given lanes of a search.
    ///
    /// # Errors
    /// [`Error::Labels`] for a fold that names a row more than 255 times.
    pub fn new(loss: T, setup: &LaneSetup<'a>, lanes: Range<usize>) -> Result<Self> {
        let mut times = memory::filled([0; L], setup.rows.n_rows());
        let mut positive = [0; L];
        for (l, k) in lanes.enumerate() {
            positive[l] = setup.labels.positive_class(k % setup.n_problems());
            for &i in &setup.part(k).train {
                let count: &mut u8 = &mut times[i as usize][l];
                *count = count.checked_add(1).ok_or_else(|| Error::Labels {
                    reason: format!("the training part of a fold names row {i} more than 255 times"),
                })?;
            }
        }
        Ok(Self { loss, weight: setup.weight, class: setup.labels.ids, times, positive })
    }

    /// Cost and label of row `i` per lane.
    #[inline(always)]
    fn costs_and_labels(&self, i: usize) -> ([f64; L], [f64; L]) {
        let (weight, class, times) = (self.weight[i], self.class[i], &self.times[i]);
        let (mut costs, mut labels) = ([0.0; L], [0.0; L]);
        for l in 0..L {
            costs[l] = weight * f64::from(times[l]);
            labels[l] = if class == self.positive[l] { 1.0 } else { -1.0 };
        }
        (costs, labels)
    }
}

impl<T: Loss, const L: usize> Objective<L> for FoldTerms<'_, T, L> {
    #[inline(always)]
    fn value(&self, i: usize, z: &[f64; L]) -> [f64; L] {
        let (cost, y) = self.costs_and_labels(i);
        let mut values = [0.0; L];
        for l in 0..L {
            values[l] = cost[l] * self.loss.value(y[l] * z[l]);
        }
        values
    }

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
