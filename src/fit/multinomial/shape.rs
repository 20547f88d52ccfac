//! The sizes of a multinomial problem, wherever its rows are.

use super::strips::Strips;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::problem::Intercept;

/// The sizes of a problem.
#[derive(Clone, Copy, Debug)]
pub struct SoftmaxShape {
    /// Rows.
    pub n_rows: usize,
    /// Columns, the constant one included.
    pub n_columns: usize,
    /// Classes.
    pub n_classes: usize,
    /// Cache lines of classes.
    pub lines: usize,
    /// Height of the constant column, 0 for none.
    pub bias: f64,
    /// Treatment of the intercepts.
    pub intercept: Intercept,
}

impl SoftmaxShape {
    /// Whether intercepts are free.
    pub fn is_free(&self) -> bool {
        self.intercept == Intercept::Free
    }

    /// Columns that are part of the norm, where the constant column is that of the intercepts.
    pub fn penalised(&self) -> usize {
        self.n_columns - usize::from(self.is_free())
    }

    /// Room for numbers of every column and class.
    pub fn strips(&self) -> Strips {
        Strips::zeros(self.n_columns, self.lines)
    }

    /// A row of zeros, `far` beyond the last class.
    pub fn row(&self, far: f64) -> Vec<[f64; LINE]> {
        let mut row = vec![[0.0; LINE]; self.lines];
        row.as_flattened_mut()[self.n_classes..].fill(far);
        row
    }
}

/// What is known of the rows of a problem without reading them.
pub trait SoftmaxSizes {
    /// The sizes.
    fn shape(&self) -> SoftmaxShape;
    /// Largest squared norm of a row, to explain an overflow.
    fn max_squared_norm(&self) -> f64;
}
