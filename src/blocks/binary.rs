//! The steps of a binary problem on the rows in memory.
//!
//! They are those of [`crate::fit::dual`]: an epoch visits rows of a [`crate::fit::Problem`] and changes
//! `w` and the dual variables. Here the problem is made of the rows in memory, and begins where the whole
//! problem stands: `w` and the dual variables of these rows. All other dual variables are constants
//! meanwhile; their part of `w` stays in `w`.

use super::certify::certify;
use super::choice::Policy;
use super::duals::{DualFile, RUN};
use super::problem::{
    BlockProblem, BlockState, BlockStep, Certified, CertifyScan, StateInput, StateOutput, StateShape,
};
use super::state::{BinaryProblem, BinaryState};
use super::sums::Sums;
use crate::fit::dual::active::Random;
use crate::fit::dual::{DualLoss, Epoch, Method, Visit, active};
use crate::fit::sweep::{dot, sum};
use crate::fit::{Certificate, Intercept, Monitor, dual};
use crate::loss::{Loss, with_loss};
use crate::matrix::Rows as _;
use crate::matrix::design::Design;
use crate::memory::CollectLarge;
use crate::source::mapped::mapped;
use crate::source::resident::{Chosen, ResidentRows};
use crate::{Result, memory, parallel};

/// Numbers of a state beside weights and dual variables.
const FACTS: usize = 7;
/// Rows per task where all are scored.
const SCORED_ROWS: usize = 1024;

impl BinaryProblem<'_> {
    fn step_by<L: DualLoss>(
        &mut self,
        rows: &ResidentRows<'_>,
        step: BlockStep<'_>,
        monitor: &dyn Monitor,
        loss: L,
    ) -> Result<bool> {
        let (chosen, y) = self.task.choose(rows, step.folds);
        if chosen.ids.is_empty() {
            return Ok(false);
        }
        let alpha = self.duals(&chosen.positions)?;
        let mut random = active::random(step.settings.seed, step.number);
        let mut method = loss.method(&y, &chosen.cost);
        method.start_at(&alpha);
        let view = &mapped(rows.view, step.settings.map);
        let design = Design { rows: view, ids: Some(&chosen.ids), bias: self.bias };
        if step.n_new > 0 {
            self.gather(&design, &y, &chosen, loss, rows.positions.len() - step.n_new);
        }
        self.descend(&mut method, &design, step, &mut random, monitor)?;
        let (mut after, mut has_changed) = (alpha, false);
        for (k, a) in after.iter_mut().enumerate() {
            let new = method.alpha(k);
            if *a != new {
                self.state.sums.add(loss, -1.0, y[k], chosen.cost[k], *a);
                self.state.sums.add(loss, 1.0, y[k], chosen.cost[k], new);
                (*a, has_changed) = (new, true);
            }
        }
        self.set_duals(&chosen.positions, &after)?;
        Ok(has_changed)
    }

    /// Adds the losses of new rows.
    fn gather<L: Loss>(&mut self, design: &Design<'_>, y: &[f64], chosen: &Chosen, loss: L, old: usize) {
        let (w, offset) = (&self.state.w, self.state.offset);
        let [losses] = sum(chosen.ids.len(), |k| {
            if (chosen.ids[k] as usize) < old {
                return [0.0];
            }
            [chosen.cost[k] * loss.value(y[k] * (design.dot(k, w) + offset))]
        });
        self.state.losses += losses;
    }

    fn descend<M: Method>(
        &mut self,
        method: &mut M,
        design: &Design<'_>,
        step: BlockStep<'_>,
        random: &mut Random,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        for _ in 0..step.rounds {
            let mut visit = Visit { w: &mut self.state.w, offset: self.state.offset, stretch: 1.0 };
            let Epoch { visited, largest, smallest, .. } =
                dual::epoch(method, design, &mut visit, random, monitor)?;
            self.state.visits += visited as u64;
            if step.settings.intercept == Intercept::Free {
                self.state.offset += self.bias * self.state.w[design.n_cols() - 1];
            }
            if visited == 0 || largest - smallest <= step.settings.round_tol {
                break;
            }
        }
        Ok(())
    }
}

impl BlockState for BinaryProblem<'_> {
    type Saved = (BinaryState, Option<DualFile>);

    fn visits(&self) -> u64 {
        self.state.visits
    }

    fn size(&self) -> u64 {
        let n_duals = self.disk.as_ref().map_or(self.state.alpha.len(), DualFile::len);
        (self.state.w.len() + n_duals + FACTS) as u64
    }

    fn can_have(shape: &StateShape, size: u64) -> bool {
        size == (shape.n_columns() + shape.n_rows + FACTS) as u64
    }

    fn write(&self, out: &mut dyn StateOutput) -> Result<()> {
        let state = &self.state;
        out.numbers(&state.w)?;
        match &self.disk {
            None => out.numbers(&state.alpha)?,
            Some(file) => {
                for start in (0..file.len()).step_by(RUN) {
                    out.numbers(&file.read(start..(start + RUN).min(file.len()))?)?;
                }
            }
        }
        let Sums { terms, all, inside } = state.sums;
        out.numbers(&[state.offset, terms, all[0], all[1], inside[0], inside[1], state.losses])
    }

    fn read(
        shape: &StateShape,
        _: u64,
        visits: u64,
        input: &mut dyn StateInput,
    ) -> Result<Option<Self::Saved>> {
        let w = input.numbers(shape.n_columns())?;
        let n = shape.n_rows;
        let mut disk = shape.folder.as_deref().map(|folder| DualFile::zeros(folder, n)).transpose()?;
        let alpha = match &mut disk {
            None => input.numbers(n)?,
            Some(disk) => {
                for start in (0..n).step_by(RUN) {
                    disk.write(start, &input.numbers(RUN.min(n - start))?)?;
                }
                Vec::new()
            }
        };
        let rest = input.numbers(FACTS)?;
        let sums = Sums { terms: rest[1], all: [rest[2], rest[3]], inside: [rest[4], rest[5]] };
        Ok(Some((BinaryState { w, alpha, offset: rest[0], sums, losses: rest[6], visits }, disk)))
    }
}

impl BlockProblem for BinaryProblem<'_> {
    fn step(&mut self, rows: &ResidentRows<'_>, step: BlockStep<'_>, monitor: &dyn Monitor) -> Result<bool> {
        with_loss!(step.settings.loss, loss => self.step_by(rows, step, monitor, loss))
    }

    fn scores(&self, rows: &ResidentRows<'_>, step: BlockStep<'_>, out: &mut [f32]) -> Result<()> {
        let (settings, folds) = (step.settings, step.folds);
        let policy = settings.policy;
        let offset = self.state.offset;
        // Only the scores by gradients in the box ask for them.
        let mut alpha = Vec::new();
        let is_by_pull = matches!(policy, Policy::Auto | Policy::Steepest);
        if is_by_pull || policy == Policy::Projected && settings.loss.can_be_zero() {
            let positions: Vec<u32> = rows.order.iter().map(|&i| rows.positions[i as usize]).collect_large();
            memory::resize(&mut alpha, rows.positions.len(), 0.0);
            rows.order.iter().zip(self.duals(&positions)?).for_each(|(&i, a)| alpha[i as usize] = a);
        }
        let score = |i: usize, decision: f64| {
            let (class, position) = (rows.classes[i], rows.positions[i] as usize);
            let cost = self.task.cost(class, rows.weights[i], folds.get(position).copied());
            if cost == 0.0 {
                return f32::INFINITY;
            }
            let m = self.task.sign(class) * (decision + offset);
            // Every dual variable of the logistic loss is inside its box: what counts is how close the
            // decision is.
            let Some(&a) = alpha.get(i) else {
                return if settings.loss.can_be_zero() { (m - 1.0).abs() } else { m.abs() } as f32;
            };
            let (g, upper) =
                with_loss!(settings.loss, loss => (loss.dual_slope(m, cost, a), loss.upper(cost)));
            policy.score(g, a, upper) as f32
        };
        let view = &mapped(rows.view, settings.map);
        let design = Design { rows: view, ids: None, bias: self.bias };
        parallel::each_chunk(out, SCORED_ROWS, |first, out| {
            design.each_dot(first, out.len(), &self.state.w, &mut |k, dot| {
                out[k] = out[k].min(score(first + k, dot));
            });
        });
        Ok(())
    }

    fn begin_pass(&mut self) {
        self.state.losses = 0.0;
    }

    fn estimate(&self, intercept: Intercept) -> Certificate {
        let w = &self.state.w;
        let w = if intercept == Intercept::Free { &w[..w.len() - 1] } else { &w[..] };
        let half = 0.5 * dot(w, w);
        Certificate { primal: half + self.state.losses, dual: self.state.sums.terms - half }
    }

    fn certify(problems: &[&Self], scan: &CertifyScan<'_>) -> Result<Vec<Certified>> {
        certify(problems, scan)
    }

    fn take(&mut self, (state, disk): Self::Saved) {
        (self.state, self.disk) = (state, disk);
    }
}
