//! Settings of a descent.

use super::step_size::StepSize;
use crate::{Error, Result};

/// Relative duality gap at which a descent stops.
pub const DEFAULT_TOL: f64 = 1e-3;

/// An epoch has as many draws as there are rows, but at least this many: evaluations of the objective should
/// not be all the work, and on small problems the number of draws must not tell a row of weight 2 from the
/// row twice.
pub const LEAST_DRAWS: usize = 1024;

/// How many rows a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// This many, drawn at random, each with the probability of its cost.
    Rows(usize),
    /// A subset of so many, each as likely as any other (SchmidtThieme, slide "Pegasos"); a row counts by its
    /// cost.
    Subset(usize),
    /// Every row once.
    All,
}

/// Which weights are the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// The last iterate.
    None,
    /// The mean of all iterates.
    All,
    /// The mean of the last third to half of the iterates.
    Suffix,
}

/// What is taken for the length of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepLength {
    /// By how much it changes weights and intercept, shrinkage and projection included.
    Whole,
    /// That of its loss part, `eta/k |sum y_i s_i x_i|` (SchmidtThieme, slide "Pegasos").
    Loss,
}

/// Settings of a descent.
#[derive(Clone, Copy)]
pub struct SubgradientOptions<'a> {
    /// Rows per step.
    pub batch: Batch,
    /// Step lengths.
    pub step_size: StepSize<'a>,
    /// Whether weights are kept in the ball that holds the optimum.
    pub projects: bool,
    /// Which weights are the result.
    pub average: Average,
    /// Relative duality gap at which to stop.
    pub tol: f64,
    /// Relative change of the objective between two evaluations at which to stop; 0 for never.
    pub objective_tol: f64,
    /// Number of steps and sum of their lengths at which to stop; a sum of 0 for never.
    pub window: (usize, f64),
    /// Which lengths these are.
    pub step_length: StepLength,
    /// Epochs at most.
    pub max_epochs: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl SubgradientOptions<'_> {
    /// Checks the size of the batch for a problem of `n` rows.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self, n: usize) -> Result<()> {
        match self.batch {
            Batch::Rows(k) if !(1..=n.max(LEAST_DRAWS)).contains(&k) => {
                let rule = "at least 1, and at most the number of rows or 1024";
                Err(Error::Parameter { name: "batch_size", value: k.to_string(), rule })
            }
            Batch::Subset(k) if !(1..=n).contains(&k) => {
                let rule =
                    "at least 1, and at most the number of rows where they are drawn without replacement";
                Err(Error::Parameter { name: "batch_size", value: k.to_string(), rule })
            }
            _ => Ok(()),
        }
    }
}
