//! A binary problem, where its fit begins, and the answer with its certificate.

use super::params::SolverKind;
use crate::matrix::design::Design;
use crate::matrix::{Matrix, Rows};

/// What happens to the intercept `b`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Intercept {
    /// `b = 0`.
    None,
    /// `b` is free and not part of the norm.
    Free,
    /// `b = s v`, with `v` part of the norm: LIBLINEAR's constant column of height `s`.
    Penalised(f64),
}

impl Intercept {
    /// Height of the constant column of a primal method, to which a free intercept is a column that costs
    /// nothing; 0 for none.
    pub fn bias(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Free => 1.0,
            Self::Penalised(scale) => scale,
        }
    }

    /// Height of the constant column that is part of the norm, 0 for none.
    pub fn penalised_height(self) -> f64 {
        if let Self::Penalised(scale) = self { scale } else { 0.0 }
    }
}

/// One binary problem over borrowed rows.
pub struct Problem<'a> {
    /// The full matrix.
    pub rows: &'a Matrix<'a>,
    /// The rows that belong to the problem, all if `None`.
    pub ids: Option<&'a [u32]>,
    /// Labels in {-1, +1}, one per row of the problem.
    pub y: &'a [f64],
    /// Costs `c_i > 0`, one per row of the problem.
    pub cost: &'a [f64],
    /// Treatment of the intercept.
    pub intercept: Intercept,
}

impl Clone for Problem<'_> {
    fn clone(&self) -> Self {
        *self
    }
}
impl Copy for Problem<'_> {}

impl<'a> Problem<'a> {
    /// The problem's rows with a constant column of height `bias`.
    pub fn design(&self, bias: f64) -> Design<'a> {
        Design { rows: self.rows, ids: self.ids, bias }
    }

    /// Splits solver weights (the last one belonging to a constant column of height `bias`, if any) into `w`
    /// and `b`.
    pub(super) fn split(&self, mut w: Vec<f64>, bias: f64) -> (Vec<f64>, f64) {
        let b = if bias == 0.0 { 0.0 } else { bias * w[self.rows.n_cols()] };
        w.truncate(self.rows.n_cols());
        (w, b)
    }
}

/// Where a solver begins; every part is optional and shapes are those of the [`Solution`].
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Weights and intercept, used by primal solvers.
    pub w: Option<(Vec<f64>, f64)>,
    /// Dual variables, used by dual solvers; values outside the box are moved to its border.
    pub alpha: Option<Vec<f64>>,
    /// `w` is `sum_i y_i alpha_i x_i` already, which saves dual solvers a pass.
    pub is_consistent: bool,
}

impl Start {
    /// The weights, where a dual solver may begin with them.
    pub(super) fn consistent_weights(&self) -> Option<&[f64]> {
        self.w.as_ref().filter(|_| self.is_consistent).map(|(w, _)| &w[..])
    }
}

/// How a fit ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The requested accuracy is certified.
    Converged,
    /// `max_iter` epochs or steps were not enough.
    MaxIter,
    /// No further progress: in a dual solver at a useful rate, in a primal one within double precision; or
    /// rounding keeps the accuracy that was asked for from being proved.
    Stalled,
}

/// Primal and dual value of a solution; their difference bounds the distance to the optimum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Certificate {
    /// Objective at the returned weights and intercept.
    pub primal: f64,
    /// Lower bound on the optimal objective.
    pub dual: f64,
}

impl Certificate {
    /// A lower bound that overflow has left as no number proves nothing.
    pub fn proved(primal: f64, dual: f64) -> Self {
        Self { primal, dual: if dual.is_nan() { f64::NEG_INFINITY } else { dual } }
    }

    /// `(primal - dual) / dual`; infinite unless `dual > 0`, but 0 at a primal value of 0. Never below the
    /// true relative distance to the optimum for values that [`super::certificate::certify`] has proved; of a
    /// solver's own it may be negative by rounding.
    pub fn relative_gap(&self) -> f64 {
        if self.dual > 0.0 {
            (self.primal - self.dual) / self.dual
        } else if self.primal == 0.0 {
            0.0
        } else {
            f64::INFINITY
        }
    }
}

/// What a solver has computed on the way to its solution and [`super::certificate::certify`] would otherwise
/// read the data for.
#[derive(Clone, Debug)]
pub struct Evidence {
    /// Margins with intercept, each from one product of the row with the weights.
    pub margins: Vec<f64>,
    /// `|w(a) - w|`, the weight of a penalised intercept's column included,
    pub distance: f64,
    /// give or take this for the rounding of updates,
    pub drift: f64,
    /// and for that of so many additions behind each entry of `w(a)`.
    pub additions: f64,
    /// The dual variables `a` if they are not those of the solution: moved onto the constraint of a free
    /// intercept.
    pub alpha: Option<Vec<f64>>,
}

/// The answer of a solver.
#[derive(Clone, Debug)]
pub struct Solution {
    /// Weights, one per column.
    pub w: Vec<f64>,
    /// Intercept on the scale of the decision value.
    pub intercept: f64,
    /// Dual variables, one per row of the problem.
    pub alpha: Vec<f64>,
    /// How good the weights are.
    pub certificate: Certificate,
    /// How the fit ended.
    pub status: Status,
    /// Epochs (dual) or Newton steps (primal).
    pub n_iter: usize,
    /// Readings of the whole data, the cost of the fit on any machine.
    pub passes: f64,
    /// The solver that returned the solution; never [`SolverKind::Auto`].
    pub solver: SolverKind,
    /// `w` is `sum_i y_i alpha_i x_i`, up to rounding.
    pub is_consistent: bool,
    /// What a proof of the certificate can build on.
    pub evidence: Option<Evidence>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_that_is_no_number_proves_nothing() {
        let beyond = Certificate::proved(1e308, f64::INFINITY - f64::INFINITY);
        assert_eq!((beyond.dual, beyond.relative_gap()), (f64::NEG_INFINITY, f64::INFINITY));
        assert_eq!(Certificate::proved(2.0, 1.0), Certificate { primal: 2.0, dual: 1.0 });
    }
}
