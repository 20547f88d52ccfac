//! Solvers: pure functions from a [`Problem`] (and an optional [`Start`]) to a [`Solution`].
//!
//! A solver has no globals, no clock, no printing and no hidden randomness; progress, time limits and
//! interrupts pass through the [`Monitor`]. The number of threads of the surrounding rayon pool never changes
//! a bit of the result.
//!
//! * [`dual`]: dual coordinate descent; [`newton`]: truncated Newton in the primal, the hinge included;
//! * [`baselines`]: solvers for comparison;
//! * [`crammer_singer`]: the multi-class problem of Crammer and Singer, all classes at once;
//! * [`objective`]: the row terms of an objective; [`stop`]: when a Newton fit ends; [`intercept`]: exact
//!   minimisation over the intercept alone;
//! * [`sweep`]: parallel passes over the rows with a fixed order of summation;
//! * [`certificate`]: what is proved of a solution on given rows, with [`compensated`] sums; [`presolved`]: a
//!   fit by way of packed columns;
//! * [`auto`]: which solver for which shape and loss, and how a fit is proved.

pub mod auto;
pub mod baselines;
pub mod certificate;
pub mod compensated;
pub mod crammer_singer;
pub mod dual;
pub mod intercept;
pub mod newton;
pub mod objective;
pub mod presolved;
pub mod stop;
pub mod sweep;

use crate::matrix::design::Design;
use crate::matrix::{Matrix, Rows};
use crate::{Error, Result};

#[cfg(test)]
mod waves;

/// Relative duality gap at which a fit stops.
pub const DEFAULT_TOL: f64 = 1e-4;
/// Largest number of epochs over all rows (dual; visits of active rows add up to epochs) or Newton steps
/// (primal).
pub const DEFAULT_MAX_ITER: usize = 1000;

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
    fn split(&self, mut w: Vec<f64>, bias: f64) -> (Vec<f64>, f64) {
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

/// Names of the solvers, as users write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolverKind {
    /// Chosen by shape and loss; a stalled dual fit moves over to Newton.
    Auto,
    /// Dual coordinate descent, a fresh permutation in each epoch.
    DualCd,
    /// Dual coordinate descent, one random row at a time, without shrinking (Hsieh08, algorithm 2).
    DualCdOnline,
    /// Truncated Newton in the primal.
    Newton,
    /// Primal coordinate descent, squared hinge only.
    PrimalCd,
    /// Cutting planes, hinge only.
    CuttingPlane,
    /// Subgradient descent in the primal; called by [`baselines::subgradient::solve`] only.
    Subgradient,
    /// The sequential dual method of [`crammer_singer`], for all classes at once; no solver of binary
    /// problems.
    CrammerSinger,
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
    /// `(primal - dual) / dual`; infinite unless `dual > 0`, but 0 at a primal value of 0. Never below the
    /// true relative distance to the optimum for values that [`certificate::certify`] has proved; of a
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

/// What a solver has computed on the way to its solution and [`certificate::certify`] would otherwise read
/// the data for.
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

/// Limits of a fit.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Which solver.
    pub solver: SolverKind,
    /// Relative duality gap to reach.
    pub tol: f64,
    /// Largest number of epochs or Newton steps.
    pub max_iter: usize,
    /// Seed of the visiting order.
    pub seed: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self { solver: SolverKind::Auto, tol: DEFAULT_TOL, max_iter: DEFAULT_MAX_ITER, seed: 0 }
    }
}

/// A state worth telling: one line of progress.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Name of the running solver.
    pub solver: &'static str,
    /// Epochs or steps so far.
    pub iteration: usize,
    /// Accuracy so far: relative duality gap (fits) or gradient norm relative to its limit (search).
    pub accuracy: f64,
    /// Where a search is; `None` outside of one.
    pub place: Option<Place>,
}

/// How far a search has come at one value of `C`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The value.
    pub c: f64,
    /// Binary problems of folds that are not solved yet.
    pub lanes_left: usize,
    /// Readings of the training parts so far.
    pub passes: f64,
}

/// How far a descent over a store has come: what [`Progress`] is for a fit in memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Passes over the store, with the finished share of the one under way.
    pub passes: f64,
    /// Rows loaded so far.
    pub rows: u64,
    /// Bytes read from the file so far.
    pub bytes: u64,
    /// Relative duality gap after the last whole pass, an estimate between scans; infinite before.
    pub gap: f64,
}

/// The caller's eyes, brake and clock. Shared by parallel tasks.
pub trait Monitor: Sync {
    /// Whether to stop; polled several times a second.
    fn cancelled(&self) -> bool;
    /// Whether the reason to stop is a time limit, so that what is finished counts.
    fn is_overdue(&self) -> bool {
        false
    }
    /// Seconds since the caller's work began; 0 for a caller without a clock. Only reported, no result
    /// depends on it.
    fn seconds(&self) -> f64 {
        0.0
    }
    /// Takes note of progress.
    fn observe(&self, _: &Progress) {}
    /// Takes note of the progress of a descent over a store.
    fn observe_reading(&self, _: &Reading) {}

    /// [`Error::Cancelled`] if the caller asked to stop.
    fn poll(&self) -> Result<()> {
        if self.cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

/// A monitor that never stops anything.
pub struct Silent;

impl Monitor for Silent {
    fn cancelled(&self) -> bool {
        false
    }
}

/// Compares the length of an array with what its reader needs.
pub(crate) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Shape { what, expected, found }) }
}

/// Passes a number on if it is finite.
pub(crate) fn finite(what: &'static str, x: f64, design: &Design<'_>) -> Result<f64> {
    if x.is_finite() {
        return Ok(x);
    }
    let max_squared_norm = design.max_squared_norm();
    Err(Error::Overflow { what, max_squared_norm })
}
