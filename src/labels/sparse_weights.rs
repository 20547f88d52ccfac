//! The weights of a problem or class without their zeros.

use crate::memory::CollectLarge;

/// The nonzero weights of a problem or class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SparseWeights {
    /// Columns, rising.
    pub columns: Vec<u32>,
    /// Their weights.
    pub values: Vec<f64>,
    /// Intercept on the scale of the decision value.
    pub intercept: f64,
}

impl SparseWeights {
    /// The nonzero ones of some weights, of fewer columns than 32 bits can count.
    pub fn of(w: &[f64], intercept: f64) -> Self {
        let columns: Vec<u32> = (0..w.len() as u32).filter(|&j| w[j as usize] != 0.0).collect_large();
        let values = columns.iter().map(|&j| w[j as usize]).collect_large();
        Self { columns, values, intercept }
    }
}
