//! All classes of a stream in one problem, multinomial logistic regression: the dual descent of
//! [`crate::fit::multinomial`] over the rows in memory, a row with all its classes at a time.
//!
//! Of a row in memory the logits of its dual point are kept; a row that is forgotten leaves
//! `c (e_y - p) x'` in the weights for ever. Every step raises the dual value of all rows seen, which is the
//! sum of what the steps have gained. The rows that stay are those whose decision is closest: every
//! probability of every row moves in each epoch, so no gradient tells rows apart.

use crate::blocks::state::BinaryState;
use crate::blocks::sums::Sums;
use crate::fit::crammer_singer::ClassProblem;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::dual::active;
use crate::fit::multinomial::descent::Descent;
use crate::fit::multinomial::passes::Setup;
use crate::fit::multinomial::softmax::FAR;
use crate::fit::multinomial::strips::Strips;
use crate::fit::{Intercept, Monitor};
use crate::matrix::Matrix;
use crate::memory::CollectLarge;
use crate::source::resident::{Chosen, Resident};
use crate::{Result, memory};

/// All classes, with what is known of the rows in memory.
pub struct SoftmaxLearner {
    /// `C` times the class weight, by class.
    cost: Vec<f64>,
    intercept: Intercept,
    /// Weights, those of the constant column last, if there is one.
    w: Strips,
    /// Multipliers of the constraints of free intercepts.
    offset: Vec<[f64; LINE]>,
    /// Logits by row in memory; NaN first for a row that was never visited.
    logits: Vec<[f64; LINE]>,
    /// Dual value at all rows seen.
    dual: f64,
    visits: u64,
}

/// One training.
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxTraining {
    /// The first of the rows to be trained.
    pub first: usize,
    /// Epochs.
    pub rounds: usize,
    /// What the order of the rows is drawn from.
    pub seed: u64,
    /// Distinguishes the orders of all trainings.
    pub number: u64,
}

impl SoftmaxLearner {
    /// Begins at zero, with so many columns, a constant one included.
    pub fn new(n_columns: usize, cost: &[f64], intercept: Intercept) -> Self {
        let lines = cost.len().div_ceil(LINE);
        let mut offset = vec![[0.0; LINE]; lines];
        offset.as_flattened_mut()[cost.len()..].fill(FAR);
        let (cost, w) = (memory::copy(cost), Strips::zeros(n_columns, lines));
        Self { cost, intercept, w, offset, logits: Vec::new(), dual: 0.0, visits: 0 }
    }

    /// Number of classes.
    pub fn n_classes(&self) -> usize {
        self.cost.len()
    }

    fn lines(&self) -> usize {
        self.offset.len()
    }

    /// Makes room for so many rows; new ones were never visited.
    pub fn grow(&mut self, n_rows: usize) {
        let lines = self.lines();
        memory::resize(&mut self.logits, n_rows * lines, [f64::NAN; LINE]);
    }

    /// Epochs over the rows in memory from number `first` on.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn train(
        &mut self,
        resident: &Resident,
        bias: f64,
        training: SoftmaxTraining,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let SoftmaxTraining { first, rounds, seed, number } = training;
        let chosen = self.chosen(resident, first);
        if chosen.ids.is_empty() {
            return Ok(());
        }
        let rows = &Matrix::from(resident.rows().view);
        let problem = self.problem(rows, &chosen);
        let of_norm = if self.intercept == Intercept::Free { 0.0 } else { bias };
        let setup = Setup::in_parts(&problem, bias, 1, monitor);
        let plain = Setup::in_parts(&problem, of_norm, 1, monitor);
        let mut logits = setup.table();
        let lines = self.lines();
        for (to, &id) in logits.chunks_exact_mut(lines).zip(&chosen.ids) {
            to.copy_from_slice(&self.logits[id as usize * lines..][..lines]);
        }
        let w = std::mem::replace(&mut self.w, Strips::zeros(0, 1));
        let mut descent = Descent::at(setup, plain, w, std::mem::take(&mut self.offset), logits);
        let mut random = active::random(seed, number);
        let (mut gain, mut visits) = (0.0, 0);
        let done = (0..rounds).try_for_each(|_| {
            let epoch = descent.epoch(&mut random)?;
            gain += epoch.gain;
            visits += epoch.visited as u64;
            Ok(())
        });
        let (w, offset, logits) = descent.into_state();
        (self.w, self.offset) = (w, offset);
        self.dual += gain;
        self.visits += visits;
        for (from, &id) in logits.chunks_exact(lines).zip(&chosen.ids) {
            self.logits[id as usize * lines..][..lines].copy_from_slice(from);
        }
        done
    }

    fn chosen(&self, resident: &Resident, first: usize) -> Chosen {
        let mut rows = resident.rows();
        rows.order = &rows.order[first..];
        rows.chosen(|class, weight, _| self.cost[class as usize] * weight)
    }

    fn problem<'s>(&self, rows: &'s Matrix<'s>, chosen: &'s Chosen) -> ClassProblem<'s> {
        ClassProblem {
            rows,
            ids: Some(&chosen.ids),
            class: &chosen.classes,
            n_classes: self.n_classes(),
            cost: &chosen.cost,
            intercept: self.intercept,
        }
    }

    /// By how much each row's own class and the best of the others differ in their scores; rows without a
    /// cost stay as they are.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn closeness(
        &self,
        resident: &Resident,
        bias: f64,
        out: &mut [f32],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let chosen = self.chosen(resident, 0);
        let rows = &Matrix::from(resident.rows().view);
        let setup = Setup::in_parts(&self.problem(rows, &chosen), bias, 1, monitor);
        let mut scores = setup.table();
        setup.scores(&self.w, &self.offset, &mut scores);
        setup.poll()?;
        let k = self.n_classes();
        for ((z, &id), &own) in scores.chunks_exact(self.lines()).zip(&chosen.ids).zip(&chosen.classes) {
            let (z, own) = (&z.as_flattened()[..k], own as usize);
            let others = z[..own].iter().chain(&z[own + 1..]).copied().fold(f64::NEG_INFINITY, f64::max);
            out[id as usize] = (z[own] - others).abs() as f32;
        }
        Ok(())
    }

    /// Keeps the given rows, whose numbers rise.
    pub fn keep(&mut self, rows: &[u32]) {
        let lines = self.lines();
        for (to, &from) in rows.iter().enumerate() {
            self.logits.copy_within(from as usize * lines..(from as usize + 1) * lines, to * lines);
        }
        self.logits.truncate(rows.len() * lines);
    }

    /// Weights of a class, that of the constant column last, and its multiplier.
    pub fn model(&self, class: usize) -> (Vec<f64>, f64) {
        (self.w.class(class), self.offset.as_flattened()[class])
    }

    /// Dual value at all rows seen.
    pub fn dual(&self) -> f64 {
        self.dual
    }

    /// The state, class by class: weights, and the logits of the rows in memory as dual variables.
    pub fn states(&self) -> Vec<BinaryState> {
        let (lines, k) = (self.lines(), self.n_classes());
        let state = |class: usize| {
            let (w, offset) = self.model(class);
            let logits = self.logits.iter().skip(class / LINE).step_by(lines);
            let alpha = logits.map(|line| line[class % LINE]).collect_large();
            let sums = Sums { terms: self.dual, ..Sums::default() };
            BinaryState { w, alpha, offset, sums, losses: 0.0, visits: self.visits }
        };
        (0..k).map(state).collect()
    }

    /// Takes over a state, of which all lengths were checked.
    pub fn take(&mut self, states: &[BinaryState], n_rows: usize) {
        self.grow(0);
        self.grow(n_rows);
        let lines = self.lines();
        for (class, state) in states.iter().enumerate() {
            self.w.set_class(class, &state.w);
            self.offset.as_flattened_mut()[class] = state.offset;
            for (line, &u) in self.logits.iter_mut().skip(class / LINE).step_by(lines).zip(&state.alpha) {
                line[class % LINE] = u;
            }
            (self.dual, self.visits) = (state.sums.terms, state.visits);
        }
        // What is no class has no probability.
        for row in self.logits.chunks_exact_mut(lines).filter(|row| !row[0][0].is_nan()) {
            row.as_flattened_mut()[states.len()..].fill(FAR);
        }
    }
}
