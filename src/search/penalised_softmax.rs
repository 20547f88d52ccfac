//! The route of multinomial fits with a penalty other than the square ([`crate::fit::penalised::softmax`]):
//! one lane per fold, all classes in it.
//!
//! All else is as in [`super::penalised`]: each lane starts the next `C` from its weights, and the first `C`
//! is the largest at which all penalised weights of all lanes are zero.
//!
//! Memory: one copy of the data by columns, and for each fold the weights of all classes.

use super::folds::LaneSetup;
use super::lane::{AcceptedFit, LaneFit, LaneFits, LaneRoute};
use super::penalised::{PenalisedWeights, fit_with_outlook, least_of_lanes};
use crate::fit::penalised::softmax;
use crate::fit::{Monitor, Params};
use crate::labels::penalised::PenalisedColumns;
use crate::labels::sparse_weights::SparseWeights;
use crate::matrix::Rows;
use crate::{Result, memory};

/// Fits of all classes.
pub struct PenalisedSoftmaxFits<'a> {
    setup: &'a LaneSetup<'a>,
    all: PenalisedColumns,
}

/// The route of such fits, before the first value of `C`.
pub fn route<'a>(setup: &'a LaneSetup<'a>, all: PenalisedColumns) -> LaneRoute<'a, PenalisedSoftmaxFits<'a>> {
    LaneRoute::new(setup, PenalisedSoftmaxFits { setup, all })
}

/// The largest `C` at which all folds have penalised weights of zero only; `None` where there is no such.
///
/// # Errors
/// Those of [`softmax::largest_null_cost`].
pub fn lower_bound(setup: &LaneSetup<'_>, all: &PenalisedColumns) -> Result<Option<f64>> {
    least_of_lanes(setup.parts.len(), |fold| {
        let cost = costs(setup, fold, 1.0);
        let problem = all.classes(setup.labels.ids, setup.labels.n_classes as usize, &cost);
        softmax::largest_null_cost(&problem, setup.monitor)
    })
}

/// Costs of all rows at `c`; those held out have none.
fn costs(setup: &LaneSetup<'_>, fold: usize, c: f64) -> Vec<f64> {
    let mut cost = memory::zeros(setup.rows.n_rows());
    let part = &setup.parts[fold];
    part.train.iter().zip(&part.weight).for_each(|(&i, weight)| cost[i as usize] += c * weight);
    cost
}

impl LaneFits for PenalisedSoftmaxFits<'_> {
    type Kept = PenalisedWeights;
    const SAVES_DECISIONS: bool = false;

    fn n_lanes(&self) -> usize {
        self.setup.parts.len()
    }

    fn shape(&self, _: usize) -> usize {
        self.all.columns.len() * self.n_classes()
    }

    fn fit_at(
        &self,
        fold: usize,
        c: f64,
        last: Option<(AcceptedFit, PenalisedWeights)>,
        monitor: &dyn Monitor,
    ) -> Result<LaneFit<PenalisedWeights>> {
        let params = self.setup.class_params(fold);
        let fit = |c: f64, start: Option<&[f64]>, max_iter: usize| {
            let (params, cost) = (Params { max_iter, ..params }, costs(self.setup, fold, c));
            let problem = self.all.classes(self.setup.labels.ids, self.n_classes(), &cost);
            softmax::solve(&problem, &params, start, monitor)
        };
        let (found, accepted) = fit_with_outlook(self.setup, c, last, params.tol, fit)?;
        let decisions = self.of_held_out(fold, &found.w);
        Ok(PenalisedWeights::of_fit(found, accepted, decisions))
    }

    fn weights(&self, kept: &PenalisedWeights) -> Option<Vec<SparseWeights>> {
        let classes = self.all.split_classes(&kept.0, self.n_classes());
        Some(classes.into_iter().map(|(w, intercept)| SparseWeights::of(w, intercept)).collect())
    }

    fn decisions(&self, fold: usize, kept: &PenalisedWeights) -> Option<Vec<f64>> {
        Some(self.of_held_out(fold, &kept.0))
    }

    fn write_decisions(&self, fold: usize, decisions: Vec<f64>, all: &mut [Vec<f64>]) {
        all[fold] = decisions;
    }
}

impl PenalisedSoftmaxFits<'_> {
    fn n_classes(&self) -> usize {
        self.setup.labels.n_classes as usize
    }

    /// Scores of the held-out rows, row after row.
    fn of_held_out(&self, fold: usize, w: &[f64]) -> Vec<f64> {
        let (test, k) = (self.setup.parts[fold].test, self.n_classes());
        let mut scores = memory::zeros(test.len() * k);
        for (class, (w, b)) in self.all.split_classes(w, k).into_iter().enumerate() {
            for (scores, &i) in scores.chunks_exact_mut(k).zip(test) {
                scores[class] = self.setup.rows.dot(i as usize, w) + b;
            }
        }
        scores
    }
}
