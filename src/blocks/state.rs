//! A binary problem with its state: weights, dual variables in memory or in a file, and sums.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use super::duals::DualFile;
use super::settings::BlockSettings;
use super::sums::Sums;
use super::task;
use super::task::BinaryTask;
use crate::fit::certificate;
use crate::memory::CollectLarge;
use crate::store::reader::Store;
use crate::{Result, memory};

/// The running state of a problem.
#[derive(Debug, PartialEq)]
pub struct BinaryState {
    /// Weights in the order of the store's columns, that of a constant column last, if there is one.
    pub w: Vec<f64>,
    /// Dual variables by position; empty where they are in a file.
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
        let bias = task::bias(store, &task.cost, settings);
        let w = memory::zeros(settings.n_weights(store) + usize::from(bias != 0.0));
        let n = meta.n_rows as usize;
        let alpha = memory::zeros(if folder.is_some() { 0 } else { n });
        let state = BinaryState { w, alpha, offset: 0.0, sums: Sums::default(), losses: 0.0, visits: 0 };
        let disk = folder.map(|folder| DualFile::zeros(folder, n)).transpose()?;
        Ok(Self { task, state, bias, disk })
    }

    /// The dual variables of rising positions.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn duals(&self, positions: &[u32]) -> Result<Vec<f64>> {
        match &self.disk {
            Some(file) => file.gather(positions),
            None => Ok(positions.iter().map(|&position| self.state.alpha[position as usize]).collect_large()),
        }
    }

    /// Stores the dual variables of rising positions.
    ///
    /// # Errors
    /// [`crate::Error::Io`].
    pub fn set_duals(&mut self, positions: &[u32], values: &[f64]) -> Result<()> {
        match &mut self.disk {
            Some(file) => file.scatter(positions, values)?,
            None => positions
                .iter()
                .zip(values)
                .for_each(|(&position, &a)| self.state.alpha[position as usize] = a),
        }
        Ok(())
    }

    /// The dual variables of a range of positions.
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
}
