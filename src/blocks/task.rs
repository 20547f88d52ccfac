//! What one binary problem asks for: its classes' costs, and the fold whose rows it leaves out.

use super::settings::BlockSettings;
use crate::fit::{Intercept, check_length, dual};
use crate::memory::CollectLarge;
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

/// The fold that holds each row out, by its position in the store; empty where there are no folds.
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

    /// The rows in memory that belong to the problem, and their labels.
    pub fn choose(&self, rows: &ResidentRows<'_>, folds: &RowFolds) -> (Chosen, Vec<f64>) {
        let chosen =
            rows.chosen(|class, weight, position| self.cost(class, weight, folds.get(position).copied()));
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
