//! The search for `C` of multinomial fits over a store that is larger than memory: a fold after the other,
//! each by Newton's readings ([`super::multinomial`]) from its weights at the `C` before, and one more
//! reading for the decision values of the rows that it holds out.
//!
//! A fit is judged by Newton's own figures, as in memory; its weights are what a lane keeps.

use super::budget::MemoryPlan;
use super::multinomial::minimise_from;
use super::route::StoreSetup;
use super::settings::{BlockSettings, SoftmaxCut};
use super::softmax_rows::{RowPart, SoftmaxRows};
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::multinomial::start::SoftmaxStart;
use crate::fit::{Intercept, Monitor, Status};
use crate::memory::CollectLarge;
use crate::search::lane::{AcceptedFit, LaneFit, LaneFits, LaneRoute};
use crate::search::multinomial::SoftmaxKept;
use crate::source::fetch::Fetch;
use crate::{Result, memory};

/// Fits of the folds of a store.
pub struct StoreSoftmaxFits<'a> {
    setup: &'a StoreSetup<'a>,
    plan: &'a MemoryPlan,
    cut: SoftmaxCut,
}

/// The route of such fits, before the first value of `C`.
pub fn route<'a>(setup: &'a StoreSetup<'a>, cut: SoftmaxCut) -> LaneRoute<'a, StoreSoftmaxFits<'a>> {
    let decisions = setup.sizes.iter().map(|size| memory::zeros(size * setup.factor.len())).collect_large();
    LaneRoute::with_decisions(StoreSoftmaxFits { setup, plan: setup.plan, cut }, decisions, setup.monitor)
}

impl LaneFits for StoreSoftmaxFits<'_> {
    type Kept = SoftmaxKept;
    const SAVES_DECISIONS: bool = true;
    const SIDE_BY_SIDE: bool = false;

    fn n_lanes(&self) -> usize {
        self.setup.sizes.len()
    }

    fn shape(&self, _: usize) -> [usize; 3] {
        let settings = &self.setup.settings;
        let is_penalised = matches!(settings.intercept, Intercept::Penalised(_));
        let n_columns = settings.n_weights(self.setup.store) + usize::from(is_penalised);
        // Logits are never kept.
        [0, n_columns, self.setup.factor.len()]
    }

    fn fit_at(
        &self,
        fold: usize,
        c: f64,
        last: Option<(AcceptedFit, SoftmaxKept)>,
        monitor: &dyn Monitor,
    ) -> Result<LaneFit<SoftmaxKept>> {
        let Self { setup, plan, cut } = *self;
        let settings: &BlockSettings<'_> = &setup.settings;
        let cost: Vec<f64> = setup.factor.iter().map(|factor| c * factor).collect_large();
        let start = last.and_then(|(_, kept)| kept.into_weights());
        std::thread::scope(|scope| {
            let fetch =
                Fetch::start(scope, setup.store, &plan.blocks, Vec::new(), plan.keeps_stored, monitor)?;
            let mut rows = SoftmaxRows::new(&cost, settings, plan, cut, fetch, monitor)?;
            rows.part = RowPart::Without(&setup.folds, fold as u8);
            let (point, certificate) = minimise_from(&mut rows, start)?;
            let mut decisions = memory::zeros(setup.sizes[fold] * cost.len());
            rows.part = RowPart::Only(&setup.folds, fold as u8);
            let bias = settings.intercept.penalised_height();
            rows.each(bias, |block, positions, [z, _]| {
                block.scores(&point.w, &point.offset, z);
                block.poll()?;
                for (z, &position) in z.chunks_exact(block.lines).zip(positions) {
                    let at = setup.test_positions[position as usize] as usize * cost.len();
                    decisions[at..][..cost.len()].copy_from_slice(&z.as_flattened()[..cost.len()]);
                }
                Ok(())
            })?;
            let is_converged = point.status == Status::Converged;
            let norm = 0.5 * point.w.dot(&point.w, point.w.n_columns());
            let accepted = AcceptedFit::new(c, norm, certificate, is_converged, settings.tol);
            let (passes, n_iter) = (rows.readings as f64, point.n_iter);
            let kept = SoftmaxKept::of(SoftmaxStart::Weights(point.w, point.offset));
            let objective = certificate.primal;
            Ok(LaneFit { accepted, kept, passes, n_iter, is_converged, objective, decisions })
        })
    }

    fn decisions(&self, _: usize, _: &SoftmaxKept) -> Option<Vec<f64>> {
        None
    }

    fn write_decisions(&self, fold: usize, decisions: Vec<f64>, all: &mut [Vec<f64>]) {
        all[fold] = decisions;
    }
}

/// Bytes of what the lanes keep between two values of `C`.
pub fn kept_bytes(n_folds: usize, n_weights: usize, n_classes: usize) -> u64 {
    (n_folds * (n_weights + 1) * n_classes.next_multiple_of(LINE) * 8) as u64
}
