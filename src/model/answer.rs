//! From decision values to classes.

/// How the class of a row follows from its decision values.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Of two classes the second, where the decision value is above 0.
    Sign,
    /// Of two classes the second, where the decision value is at least this.
    Threshold(f64),
    /// The class of the highest decision value, the first of equal ones.
    Highest,
    /// The class of the highest probability, the first of equal ones.
    MostProbable,
    /// The class of the least expected cost: entry `(i, j)`, row after row, is the cost of a row of class `i`
    /// that is taken for class `j`.
    Cheapest(Vec<f64>),
    /// Every label of a positive decision value.
    Labels,
}
