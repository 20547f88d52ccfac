//! From decision values to probabilities.

/// How the probabilities of a row follow from its decision values.
#[derive(Clone, Debug, PartialEq)]
pub enum Probability {
    /// The logistic function of each decision value; for several classes divided by their sum, unless the
    /// model answers with labels.
    Logistic,
    /// The softmax of the decision values of several classes: multinomial logistic regression.
    Softmax,
    /// The logistic function of `-(slope * value + offset)`, one pair per vector of weights, divided by the
    /// sum where there are several (Platt).
    Sigmoid {
        /// One per vector of weights.
        slopes: Vec<f64>,
        /// One per vector of weights.
        offsets: Vec<f64>,
    },
    /// A rising broken line per vector of weights, level beyond its ends, divided by the sum where there are
    /// several.
    Isotonic(Vec<Line>),
    /// A softmax of the decision values times this factor; for two classes its logistic function.
    Temperature(f64),
}

/// A broken line through points with rising abscissas.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Decision values.
    pub x: Vec<f64>,
    /// Probabilities.
    pub y: Vec<f64>,
}
