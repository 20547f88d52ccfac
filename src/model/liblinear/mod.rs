//! LIBLINEAR's text models (version 2.50), both ways.
//!
//! ```text
//! solver_type L2R_LR        keys in any order; `w` ends them, `label` comes after `nr_class`
//! nr_class 2
//! label 1 -1                a positive decision value means the first of two labels, 0 the second
//! nr_feature 2
//! bias 1                    -1 without an intercept; else the value of one more feature, the last line
//! w
//! -0.40849149918888661␣     a line per feature, a number and a blank per vector of weights
//! 0.84449140914592358␣
//! -0.12887166023329866␣     the feature of the value `bias`
//! ```
//!
//! Two classes have one vector of weights, with Crammer and Singer's machine two, of which predictions use
//! the first only; several classes have one each, and the first of several equally high values wins.
//! Numbers are C's `%.17g`.
//!
//! Here two classes always share one vector, positive for the second class; of Crammer and Singer's machine
//! it is the second class's less the first's. An intercept is a number of its own: `bias * weight`.
//!
//! * [`SolverType`]: the solvers, of which a model says by which it was made;
//! * [`read()`], [`ClassOrder`]: files into models;
//! * [`save`], [`write()`], [`WriteOptions`]: models into files;
//! * [`decimal`]: numbers as C prints them.

pub mod decimal;
mod read;
mod write;

pub use read::{ClassOrder, parse, read};
pub use write::{WriteOptions, save, write};

use crate::durable::target::Kind;

/// A model file of LIBLINEAR: it begins with a key.
pub const KIND: Kind = Kind { name: "a LIBLINEAR model", is_one: is_model };

/// What may stand before the weights.
const KEYS: [&str; 7] = ["solver_type", "nr_class", "label", "nr_feature", "bias", "rho", "w"];

fn is_model(head: &[u8]) -> bool {
    let mut words = head.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.next().is_some_and(|word| KEYS.iter().any(|key| key.as_bytes() == word))
}

/// The solvers of classification, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolverType {
    /// Logistic regression, primal.
    L2rLr = 0,
    /// Squared hinge, dual.
    L2rL2lossSvcDual = 1,
    /// Squared hinge, primal.
    L2rL2lossSvc = 2,
    /// Hinge, dual.
    L2rL1lossSvcDual = 3,
    /// Crammer and Singer.
    McsvmCs = 4,
    /// Squared hinge, L1 penalty.
    L1rL2lossSvc = 5,
    /// Logistic regression, L1 penalty.
    L1rLr = 6,
    /// Logistic regression, dual.
    L2rLrDual = 7,
}

/// All of them with their names.
const SOLVERS: [(SolverType, &str); 8] = [
    (SolverType::L2rLr, "L2R_LR"),
    (SolverType::L2rL2lossSvcDual, "L2R_L2LOSS_SVC_DUAL"),
    (SolverType::L2rL2lossSvc, "L2R_L2LOSS_SVC"),
    (SolverType::L2rL1lossSvcDual, "L2R_L1LOSS_SVC_DUAL"),
    (SolverType::McsvmCs, "MCSVM_CS"),
    (SolverType::L1rL2lossSvc, "L1R_L2LOSS_SVC"),
    (SolverType::L1rLr, "L1R_LR"),
    (SolverType::L2rLrDual, "L2R_LR_DUAL"),
];

/// Names of what does not classify, and what it does.
const OTHERS: [(&str, &str); 4] = [
    ("L2R_L2LOSS_SVR", "regression"),
    ("L2R_L2LOSS_SVR_DUAL", "regression"),
    ("L2R_L1LOSS_SVR_DUAL", "regression"),
    ("ONECLASS_SVM", "one-class"),
];

impl SolverType {
    /// The name in files.
    pub fn name(self) -> &'static str {
        SOLVERS[self as usize].1
    }

    /// The solver of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        SOLVERS.iter().find(|solver| solver.1 == name).map(|solver| solver.0)
    }

    /// Whether LIBLINEAR has probabilities for its models.
    pub fn is_logistic(self) -> bool {
        matches!(self, Self::L2rLr | Self::L1rLr | Self::L2rLrDual)
    }

    /// The loss that it minimises, as estimators call it.
    pub fn loss(self) -> &'static str {
        match self {
            Self::L2rLr | Self::L1rLr | Self::L2rLrDual => "logistic",
            Self::L2rL1lossSvcDual | Self::McsvmCs => "hinge",
            Self::L2rL2lossSvcDual | Self::L2rL2lossSvc | Self::L1rL2lossSvc => "squared_hinge",
        }
    }
}

/// Where a model that came from a file keeps what the file said, in its metadata.
const METADATA: &str = "liblinear";

#[cfg(test)]
mod tests;
