//! What a fit has found of a column, and an encoder is made of, in training and from a record.

use super::cell::ValueType;
use super::counts::TermList;
use super::spec::ColumnSpec;

/// A column with all that its encoding needs.
#[derive(Debug)]
pub struct SettledColumn {
    /// What was asked for.
    pub spec: ColumnSpec,
    /// What its values were.
    pub value_type: Option<ValueType>,
    /// Whether some were missing.
    pub has_missing: bool,
    /// What was found in them.
    pub found: Settled,
}

/// What was found in the values of a column.
#[derive(Debug)]
pub struct Settled {
    /// Terms that are kept, sorted; none where names are hashed.
    pub terms: TermList,
    /// What the values of terms are multiplied by.
    pub factors: Option<Vec<f64>>,
    /// What numbers are divided by.
    pub scale: f64,
    /// Where inner bins begin.
    pub edges: Vec<f64>,
}

impl Default for Settled {
    /// Numbers stay as they are.
    fn default() -> Self {
        Self { terms: TermList::default(), factors: None, scale: 1.0, edges: vec![] }
    }
}
