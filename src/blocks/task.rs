//! One binary problem: its costs, its state, and the steps of a solver on the rows at hand.
//!
//! The steps are those of [`crate::fit::dual`]: an epoch visits rows of a [`crate::fit::Problem`] and changes
//! `w` and the dual variables. Here the problem is made of the rows at hand, and begins where the whole
//! problem stands: `w` and the dual variables of these rows. All other dual variables are constants
//! meanwhile; their part of `w` stays in `w`.
//!
//! What the dual value needs of all rows is kept as sums ([`Sums`]), to which each step adds the change of
//! its own rows.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::checkpoint::{StateInput, StateOutput, StateShape};
use super::choice::Policy;
use super::duals::{DualFile, RUN};
use super::problem::{BlockProblem, BlockStep, Certified, CertifyScan};
use super::{BlockSettings, scan};
use crate::fit::dual::active::Random;
use crate::fit::dual::{DualLoss, Epoch, Method, Visit, active};
use crate::fit::sweep::{dot, sum};
use crate::fit::{Certificate, Intercept, Monitor, certificate, check_length, dual};
use crate::loss::{Loss, with_loss};
use crate::matrix::Rows as _;
use crate::matrix::design::Design;
use crate::memory::CollectLarge;
use crate::source::mapped::mapped;
use crate::source::resident::{Chosen, ResidentRows};
use crate::store::reader::Store;
use crate::{Result, memory};

/// What one binary problem asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct BinaryTask {
    /// The class with label +1; with two classes the second.
    pub positive: u32,
    /// `C` times the class weight, by class.
    pub cost: Vec<f64>,
    /// The fold whose rows are left out: see [`RowFolds`].
    pub held_out: Option<u8>,
}

/// The fold that holds each row out, by its place in the store; empty where there are no folds.
pub type RowFolds = [u8];

impl BinaryTask {
    /// Each class of a store against the rest, by the costs of the classes; with two classes, the second
    /// against the first.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for another number of costs than classes.
    pub fn one_against_rest(n_classes: usize, cost: &[f64]) -> Result<Vec<Self>> {
        check_length("costs of the classes", n_classes, cost.len())?;
        let task = |positive| Self { positive, cost: memory::copy(cost), held_out: None };
        Ok(if n_classes == 2 { vec![task(1)] } else { (0..n_classes as u32).map(task).collect() })
    }

    /// The rows at hand that belong to the problem, and their labels.
    pub fn choose(&self, rows: &ResidentRows<'_>, folds: &RowFolds) -> (Chosen, Vec<f64>) {
        let chosen = rows.chosen(|class, weight, place| self.cost(class, weight, folds.get(place).copied()));
        let y = chosen.classes.iter().map(|&class| self.sign(class)).collect_large();
        (chosen, y)
    }

    /// Cost of a row, 0 if it does not belong to the problem.
    #[inline(always)]
    pub fn cost(&self, class: u32, weight: f64, fold: Option<u8>) -> f64 {
        if self.held_out.is_some() && self.held_out == fold {
            0.0
        } else {
            self.cost[class as usize] * weight
        }
    }

    /// Label of a class.
    #[inline(always)]
    pub fn sign(&self, class: u32) -> f64 {
        if class == self.positive { 1.0 } else { -1.0 }
    }
}

/// Sums over the rows of a problem, at its dual variables.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Of the rows' terms `h_i(a_i)` of the dual value.
    pub terms: f64,
    /// Of the dual variables with label -1 and +1.
    pub all: [f64; 2],
    /// Of those well inside their box.
    pub inside: [f64; 2],
}

/// Numbers of a state beside weights and dual variables.
const FACTS: usize = 7;

/// Dual variables above this share of their bound count as at it.
const INSIDE: f64 = 1.0 - 1e-9;

impl Sums {
    /// Adds `times` a row of label `y`, cost `c` and dual variable `a`.
    #[inline(always)]
    pub fn add<L: Loss>(&mut self, loss: L, times: f64, y: f64, c: f64, a: f64) {
        let side = usize::from(y > 0.0);
        self.terms += times * loss.dual_term(c, a);
        self.all[side] += times * a;
        if a < INSIDE * c {
            self.inside[side] += times * a;
        }
    }

    /// Adds those of further rows.
    pub fn join(&mut self, more: &Self) {
        self.terms += more.terms;
        for side in 0..2 {
            self.all[side] += more.all[side];
            self.inside[side] += more.inside[side];
        }
    }

    /// Moves the dual point onto `sum y_i a_i = 0`: which rows are scaled down, and by what factor (eq. by
    /// eq. as in [`crate::fit::certificate::dual_on_constraint`]). `excess` is that sum.
    pub fn shift(&self, excess: f64) -> Shift {
        let side = usize::from(excess > 0.0);
        let inside_only = self.inside[side] > 2.0 * excess.abs();
        let total = if inside_only { self.inside[side] } else { self.all[side] };
        let factor = if excess == 0.0 { 0.0 } else { (excess.abs() / total).min(1.0) };
        Shift { sign: if excess > 0.0 { 1.0 } else { -1.0 }, factor, inside_only }
    }
}

/// How a dual point is moved onto its constraint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    sign: f64,
    factor: f64,
    inside_only: bool,
}

impl Shift {
    /// By how much the dual variable of a row falls.
    #[inline(always)]
    pub fn cut(&self, y: f64, c: f64, a: f64) -> f64 {
        let is_concerned = y == self.sign && (!self.inside_only || a < INSIDE * c);
        if is_concerned { self.factor * a } else { 0.0 }
    }
}

/// The running state of a problem.
#[derive(Debug, PartialEq)]
pub struct BinaryState {
    /// Weights in the order of the store's columns, that of a constant column last, if there is one.
    pub w: Vec<f64>,
    /// Dual variables by place; empty where they are in a file.
    pub alpha: Vec<f64>,
    /// Multiplier of the equality constraint, the intercept outside of `w`.
    pub offset: f64,
    /// Sums at `alpha`.
    pub sums: Sums,
    /// Losses of the rows loaded in this pass, each at the weights of its moment.
    pub losses: f64,
    /// Visits of rows so far.
    pub visits: u64,
}

impl Clone for BinaryState {
    fn clone(&self) -> Self {
        Self { w: memory::copy(&self.w), alpha: memory::copy(&self.alpha), ..*self }
    }
}

/// A problem with its state.
pub struct BinaryProblem<'a> {
    /// The problem.
    pub task: &'a BinaryTask,
    /// Its state.
    pub state: BinaryState,
    /// Height of the constant column, 0 for none.
    pub bias: f64,
    /// The dual variables, where they are not in the state.
    pub disk: Option<DualFile>,
}

/// Height of the constant column of a problem whose classes have these costs, 0 for none.
pub fn bias(store: &Store, cost: &[f64], settings: &BlockSettings<'_>) -> f64 {
    match settings.intercept {
        Intercept::None => 0.0,
        Intercept::Penalised(scale) => scale,
        Intercept::Free => {
            let mean = store.meta().sum_squared_norm / store.meta().n_rows as f64;
            free_bias(settings.squared_norm(mean), store.total(cost))
        }
    }
}

/// Height of the constant column of a free intercept, by the mean squared norm of the rows and the sum of
/// their costs.
pub fn free_bias(mean: f64, total: f64) -> f64 {
    dual::penalty_for(if mean > 0.0 { mean } else { 1.0 }, total).sqrt()
}

impl<'a> BinaryProblem<'a> {
    /// Begins at zero. The constant column of a free intercept is as in [`crate::fit::dual`], with the
    /// store's statistics. With a folder, the dual variables are in a file there.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn new(
        store: &Store,
        task: &'a BinaryTask,
        settings: &BlockSettings<'_>,
        folder: Option<&Path>,
    ) -> Result<Self> {
        let meta = store.meta();
        let bias = bias(store, &task.cost, settings);
        let w = memory::zeros(settings.n_weights(store) + usize::from(bias != 0.0));
        let n = meta.n_rows as usize;
        let alpha = memory::zeros(if folder.is_some() { 0 } else { n });
        let state = BinaryState { w, alpha, offset: 0.0, sums: Sums::default(), losses: 0.0, visits: 0 };
        let disk = folder.map(|folder| DualFile::zeros(folder, n)).transpose()?;
        Ok(Self { task, state, bias, disk })
    }

    /// The dual variables of rising places.
    fn duals(&self, places: &[u32]) -> Result<Vec<f64>> {
        match &self.disk {
            Some(file) => file.gather(places),
            None => Ok(places.iter().map(|&place| self.state.alpha[place as usize]).collect_large()),
        }
    }

    fn set_duals(&mut self, places: &[u32], values: &[f64]) -> Result<()> {
        match &mut self.disk {
            Some(file) => file.scatter(places, values)?,
            None => places.iter().zip(values).for_each(|(&place, &a)| self.state.alpha[place as usize] = a),
        }
        Ok(())
    }

    /// The dual variables of a range of places.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn duals_in(&self, range: Range<usize>) -> Result<Cow<'_, [f64]>> {
        match &self.disk {
            Some(file) => file.read(range).map(Cow::Owned),
            None => Ok(Cow::Borrowed(&self.state.alpha[range])),
        }
    }

    /// What is added to `w.x` of the store's columns for a decision value.
    pub fn intercept(&self, n_weights: usize) -> f64 {
        let constant = if self.bias == 0.0 { 0.0 } else { self.bias * self.state.w[n_weights] };
        self.state.offset + constant
    }

    /// The sum of `y_i a_i`: the weight of a constant column of height 1.
    pub fn excess(&self, n_weights: usize) -> f64 {
        if self.bias == 0.0 { 0.0 } else { self.state.w[n_weights] / self.bias }
    }

    /// At most so far is `w` from the weights of the dual variables by the rounding of its updates.
    pub fn drift(&self, total_cost: f64) -> f64 {
        let multiplier = if self.bias == 0.0 { 0.0 } else { self.state.offset / self.bias };
        certificate::drift(self.state.visits as f64, total_cost, multiplier)
    }

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
        let alpha = self.duals(&chosen.places)?;
        let mut random = active::random(step.settings.seed, step.number);
        let mut method = loss.method(&y, &chosen.cost);
        method.start_at(&alpha);
        {
            let view = &mapped(rows.view, step.settings.map);
            let design = Design { rows: view, ids: Some(&chosen.ids), bias: self.bias };
            if step.n_new > 0 {
                self.gather(&design, &y, &chosen, loss, rows.places.len() - step.n_new);
            }
            self.descend(&mut method, &design, step, &mut random, monitor)?;
        };
        let (mut after, mut has_changed) = (alpha, false);
        for (k, a) in after.iter_mut().enumerate() {
            let new = method.alpha(k);
            if *a != new {
                self.state.sums.add(loss, -1.0, y[k], chosen.cost[k], *a);
                self.state.sums.add(loss, 1.0, y[k], chosen.cost[k], new);
                (*a, has_changed) = (new, true);
            }
        }
        self.set_duals(&chosen.places, &after)?;
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
            let mut visit = Visit { w: &mut self.state.w, offset: self.state.offset };
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

impl BlockProblem for BinaryProblem<'_> {
    type Saved = (BinaryState, Option<DualFile>);

    fn step(&mut self, rows: &ResidentRows<'_>, step: BlockStep<'_>, monitor: &dyn Monitor) -> Result<bool> {
        with_loss!(step.settings.loss, loss => self.step_by(rows, step, monitor, loss))
    }

    fn scores(&self, rows: &ResidentRows<'_>, step: BlockStep<'_>, out: &mut [f32]) -> Result<()> {
        let (settings, folds) = (step.settings, step.folds);
        let projected = settings.policy == Policy::Projected;
        let offset = self.state.offset;
        // Only the projected score asks for them.
        let mut alpha = Vec::new();
        if projected && settings.loss.can_be_zero() {
            let places: Vec<u32> = rows.order.iter().map(|&i| rows.places[i as usize]).collect_large();
            memory::resize(&mut alpha, rows.places.len(), 0.0);
            rows.order.iter().zip(self.duals(&places)?).for_each(|(&i, a)| alpha[i as usize] = a);
        }
        let score = |i: usize, decision: f64| {
            let (class, place) = (rows.classes[i], rows.places[i] as usize);
            let cost = self.task.cost(class, rows.weights[i], folds.get(place).copied());
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
            let distance = match a {
                0.0 => g.max(0.0),
                a if a == upper => (-g).max(0.0),
                _ => 0.0,
            };
            distance as f32
        };
        {
            let view = &mapped(rows.view, settings.map);
            let design = Design { rows: view, ids: None, bias: self.bias };
            out.par_iter_mut().enumerate().with_min_len(1024).for_each(|(i, out)| {
                *out = out.min(score(i, design.dot(i, &self.state.w)));
            });
        };
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
        scan::certify(problems, scan)
    }

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

    fn take(&mut self, (state, disk): Self::Saved) {
        (self.state, self.disk) = (state, disk);
    }
}

/// Labels and costs of the rows of a problem.
pub struct Costs<'a> {
    /// Labels in {-1, +1}.
    pub y: &'a [f64],
    /// Costs.
    pub cost: &'a [f64],
}
