//! Dual points beside the slopes, on the side of the client: [`crate::fit::newton::single`] asks for them as
//! it asks rows in memory.

use super::remote::{Remote, ShardTerms};
use super::task::ShardTask;
use crate::Result;
use crate::fit::certificate::{self, Cut, Imbalance};
use crate::fit::dual::penalty_for;
use crate::fit::newton::Newton;
use crate::fit::newton::dual_step::Affordable;
use crate::fit::newton::polish::{DualFound, DualPoints};
use crate::fit::newton::single::Spread;
use crate::fit::sweep::dot;
use crate::fit::{Intercept, Monitor};
use crate::loss::{Loss, with_loss};

/// The points of a fit of two classes, or of one against the rest.
pub struct RemotePoints<'a> {
    task: &'a ShardTask,
    monitor: &'a dyn Monitor,
    /// How far the weights of the last one are.
    pub last: Option<Spread>,
}

impl<'a> RemotePoints<'a> {
    /// Before the first one.
    pub fn new(task: &'a ShardTask, monitor: &'a dyn Monitor) -> Self {
        Self { task, monitor, last: None }
    }

    /// Moves a point that the shards have found onto the constraint.
    fn settle(
        &mut self,
        newton: &mut Newton<'_, Remote<'_, 1>, 1>,
        (found, visited): (Imbalance, usize),
    ) -> Result<DualFound> {
        let is_free = self.task.intercept == Intercept::Free;
        let cut = if is_free { Cut::of(found) } else { Cut::default() };
        let (w, terms, read) = newton.rows.settle(newton.penalised().end, cut)?;
        self.monitor.poll()?;
        let distance = certificate::distance(&w, &newton.w.as_flattened()[..w.len()]);
        self.last = Some(Spread { distance, drift: 0.0, additions: self.task.facts.n_rows as f64 });
        Ok(DualFound { value: terms - 0.5 * dot(&w, &w), visited: visited + read })
    }
}

impl<'r> DualPoints<Remote<'r, 1>> for RemotePoints<'_> {
    type Terms = ShardTerms;

    fn terms(&self) -> &ShardTerms {
        &ShardTerms::Smooth
    }

    fn largest_curvature(&self) -> f64 {
        with_loss!(self.task.loss, loss => loss.largest_curvature())
    }

    fn curved(&self, rows: &Remote<'r, 1>) -> usize {
        rows.curved()
    }

    fn polish_slopes(&mut self, newton: &mut Newton<'_, Remote<'r, 1>, 1>) -> Result<DualFound> {
        let ShardTask { facts, n_shards, params, .. } = *self.task;
        let (mut w, mut step, mut read) = (newton.slope_weights(), None, 0);
        if let Some(found) = newton.approach()? {
            (w, step, read) = (found.w, Some(found.step), found.read);
        }
        let penalty = || penalty_for(facts.curvature / facts.cost, facts.cost);
        let (height, offset) = newton.augment(&mut w, penalty);
        // A number of the wire has 53 bits.
        let seed = f64::from(params.seed as u32);
        let (found, visited) =
            newton.rows.descend([n_shards as f64, height, offset, seed], &w, step.as_ref())?;
        self.monitor.poll()?;
        self.settle(newton, (found, visited + read))
    }

    fn polish_step(
        &mut self,
        newton: &mut Newton<'_, Remote<'r, 1>, 1>,
        affordable: &Affordable,
    ) -> Result<Option<DualFound>> {
        let Some((_, read)) = newton.find_dual_step(affordable)? else { return Ok(None) };
        let step = newton.step().clone();
        let (found, visited) = newton.rows.linearise(&step)?;
        self.settle(newton, (found, visited + read)).map(Some)
    }

    fn fresh_value(&mut self, newton: &mut Newton<'_, Remote<'r, 1>, 1>) -> Result<f64> {
        newton.rows.weigh_point();
        let [loss] = newton.fresh_loss(&ShardTerms::Smooth)?;
        Ok(0.5 * newton.products(1.0)[0].ww + loss)
    }
}
