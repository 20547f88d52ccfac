//! Dual points beside the slopes, on the side of the client: [`crate::fit::newton::single`] asks for them as
//! it asks rows in memory.

use super::remote::{EpochFrom, LeftOut, Remote, ShardTerms};
use super::task::ShardTask;
use crate::Result;
use crate::fit::certificate::{self, Cut, Imbalance};
use crate::fit::dual::penalty_for;
use crate::fit::newton::Newton;
use crate::fit::newton::approach::Approach;
use crate::fit::newton::dual_step::{Affordable, Further};
use crate::fit::newton::polish::{DualFound, DualPoints};
use crate::fit::newton::single::Spread;
use crate::fit::sweep::dot;
use crate::fit::{Intercept, Monitor};
use crate::loss::{Loss, with_loss};
use crate::matrix::lanes::Block;

/// The points of a fit of two classes, or of one against the rest.
pub struct RemotePoints<'a> {
    task: &'a ShardTask,
    monitor: &'a dyn Monitor,
    /// How far the weights of the last one are.
    pub last: Option<Spread>,
    /// Its weights.
    w: Vec<f64>,
}

impl<'a> RemotePoints<'a> {
    /// Before the first one.
    pub fn new(task: &'a ShardTask, monitor: &'a dyn Monitor) -> Self {
        Self { task, monitor, last: None, w: Vec::new() }
    }

    /// An epoch at each shard from variables with the weights `w`.
    fn descend(
        &mut self,
        newton: &mut Newton<'_, Remote<'_, 1>, 1>,
        mut w: Vec<f64>,
        from: &EpochFrom<1>,
    ) -> Result<DualFound> {
        let ShardTask { facts, params, .. } = *self.task;
        let penalty = || penalty_for(facts.curvature / facts.cost, facts.cost);
        let (height, offset) = newton.augment(&mut w, penalty);
        // A number of the wire has 53 bits; another epoch has another order.
        let seed = (params.seed as u32).wrapping_add(u32::from(matches!(from, EpochFrom::Point)));
        let arguments = [facts.n_shards as f64, height, offset, f64::from(seed)];
        let (imbalance, read) = newton.rows.descend(arguments, &w, from)?;
        self.monitor.poll()?;
        let found = self.settle(newton, imbalance)?;
        Ok(DualFound { visited: found.visited + read, ..found })
    }

    /// Moves a point that the shards have found onto the constraint.
    fn settle(&mut self, newton: &mut Newton<'_, Remote<'_, 1>, 1>, found: Imbalance) -> Result<DualFound> {
        let is_free = self.task.intercept == Intercept::Free;
        let cut = if is_free { Cut::of(found) } else { Cut::default() };
        let (w, terms, visited) = newton.rows.settle(newton.penalised().end, cut)?;
        self.monitor.poll()?;
        let distance = certificate::distance(&w, &newton.w.as_flattened()[..w.len()]);
        self.last = Some(Spread { distance, drift: 0.0, additions: self.task.facts.n_rows as f64 });
        let value = terms - 0.5 * dot(&w, &w);
        self.w = w;
        Ok(DualFound { value, visited })
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
        match newton.approach()? {
            None => self.descend(newton, newton.slope_weights(), &EpochFrom::Slopes),
            Some(Approach { step, w, read, .. }) => {
                let found = self.descend(newton, w, &EpochFrom::Step(step))?;
                Ok(DualFound { visited: found.visited + read, ..found })
            }
        }
    }

    fn polish_again(&mut self, newton: &mut Newton<'_, Remote<'r, 1>, 1>) -> Result<DualFound> {
        let mut w = std::mem::take(&mut self.w);
        w.resize(newton.w.len(), 0.0); // on the constraint
        self.descend(newton, w, &EpochFrom::Point)
    }

    fn polish_step(
        &mut self,
        newton: &mut Newton<'_, Remote<'r, 1>, 1>,
        affordable: &Affordable,
    ) -> Result<Option<DualFound>> {
        let Some((length, mut read)) = newton.find_dual_step(affordable)? else { return Ok(None) };
        let (mut before, mut matrix, mut further) = (None::<Block<1>>, None, Further::new(affordable));
        let may_go_further = length.is_none() && self.task.loss.can_be_zero();
        let imbalance = loop {
            let step = newton.step().clone();
            let asks = may_go_further && further.is_affordable();
            let found = newton.rows.linearise(before.as_ref(), &step, asks)?;
            read += found.read;
            let Some(LeftOut { gradient, matrix: change, switched }) = found.left_out else {
                break found.imbalance;
            };
            read += switched;
            let would_help = further.would_help(&gradient[newton.penalised()]);
            let Some(here) = matrix.as_ref().or(newton.matrix()).filter(|_| would_help) else {
                break found.imbalance;
            };
            let there = here.plus(&change);
            let Some(there) = newton.step_further(&gradient, there) else { break found.imbalance };
            matrix = Some(there);
            let so_far = before.get_or_insert_with(|| Block::zeros(step.len()));
            so_far.iter_mut().zip(&*step).for_each(|([sum], [step])| *sum += step);
        };
        let found = self.settle(newton, imbalance)?;
        Ok(Some(DualFound { visited: found.visited + read, ..found }))
    }

    fn fresh_value(&mut self, newton: &mut Newton<'_, Remote<'r, 1>, 1>) -> Result<f64> {
        newton.rows.weigh_point();
        let [loss] = newton.fresh_loss(&ShardTerms::Smooth)?;
        Ok(0.5 * newton.products(1.0)[0].ww + loss)
    }
}
