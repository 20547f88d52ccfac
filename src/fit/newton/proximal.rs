//! The sequence of smooth problems in which a Newton method meets a loss with corners: how smooth they are,
//! how well each is solved, and when the sequence is at its end.
//!
//! A proximal point method on the dual (Rockafellar, Augmented Lagrangians and applications of the proximal
//! point algorithm, 1976): each problem smooths the loss around the dual variables of the one before,
//! `sigma` grows from problem to problem, and for a piecewise quadratic the sequence ends after finitely
//! many. [`super::hinge`] and [`crate::fit::crammer_singer::newton`] say what is smoothed.

use crate::fit::problem::Certificate;

/// Growth of sigma per outer step. Tried: 10 takes up to three times the Newton steps and stalls on w8a at
/// C = 16.
const GROWTH: f64 = 3.0;
/// The first sigma at most: the smoothed corner is `1 / sigma` wide on the margin axis. Between 1e-4 and 1
/// the number of Newton steps hardly depends on it (german, a9a, w8a, covtype, C from 2^-8 to 2^8).
const FIRST: f64 = 0.1;
/// The first smooth problem has a Hessian of at most about this mean eigenvalue, or at huge `C` the first
/// steps zigzag between walls instead of following them.
const FIRST_CURVATURE: f64 = 1e3;
/// A smooth problem is solved until its share of the duality gap is this part of the gap before it.
const INNER: f64 = 0.03;
/// Newton steps of one smooth problem before it is given up and sigma falls.
/// Random rows, 12,000 of 30,000 columns, are at a gap of 1e-4 after 220 steps, most of them in problems
/// given up, and 60 s, where dual descent takes 7. Tried there: steps that must fall by a quarter or 0.4 of
/// their promise (257 and 223 steps), conjugate gradients to a tenth (165, no less time), both (158, 72 s).
pub const MAX_INNER: usize = 50;
/// Outer steps without progress after which the limit of double precision is reached.
const MAX_IDLE: usize = 10;
/// A value that moves towards the optimum by this part of the tolerance is progress even where the gap is not
/// smaller. Its weights may be worse than an early lucky point's while the dual variables still approach
/// theirs, three times faster each step; at tiny costs one fit in 30,000 was given up there.
const PROGRESS: f64 = 1e-4;
/// Up to this sigma a problem whose start is its solution is no sign of a limit, only too smooth: fits that
/// start from a solution begin with a few of those. Above it, corners are as narrow as rounding errors.
const SHARP: f64 = 1e16;

/// Where the sequence is.
#[derive(Clone, Copy, Debug)]
pub struct Sequence {
    /// How far dual variables may move in the present problem.
    pub sigma: f64,
    share: f64,
    idle: usize,
    /// The best values so far, which need not be those of one point.
    known: Certificate,
}

impl Sequence {
    /// Starts; `curvature` is `sum_i c_i |x_i|^2` over rows of `n_columns` columns. There may be no column.
    pub fn new(n_columns: usize, curvature: f64) -> Self {
        let n_columns = n_columns.max(1) as f64;
        let sigma = FIRST.min(FIRST_CURVATURE * n_columns / curvature.max(f64::MIN_POSITIVE));
        let known = Certificate { primal: f64::INFINITY, dual: f64::NEG_INFINITY };
        Self { sigma, share: INNER, idle: 0, known }
    }

    /// The part of the duality gap that the solution of the present problem may leave, after the point
    /// `best` and before one of the relative gap `tol`.
    pub fn inner(&self, best: &Certificate, tol: f64) -> f64 {
        (self.share * (best.primal - best.dual)).max(0.1 * tol * best.dual)
    }

    /// Records the values of a point on the way to the relative gap `tol`: whether its gap is smaller than
    /// all before, if not, problems must be solved better; and whether the problem was solved from the start.
    pub fn observe(&mut self, found: &Certificate, is_better: bool, was_trivial: bool, tol: f64) {
        let least = PROGRESS * tol * found.primal;
        let is_nearer =
            found.dual > self.known.dual + least || found.primal < self.known.primal - least || is_better;
        let is_too_smooth = was_trivial && self.sigma < SHARP;
        if is_nearer {
            self.idle = 0;
        } else if !is_too_smooth {
            self.idle += 1;
        }
        if !is_better {
            self.share *= INNER;
        }
        self.known.primal = self.known.primal.min(found.primal);
        self.known.dual = self.known.dual.max(found.dual);
    }

    /// Whether the gap no longer falls.
    pub fn is_stalled(&self) -> bool {
        self.idle >= MAX_IDLE
    }

    /// Goes on to the next problem; one too hard for its budget is followed by an easier one.
    pub fn advance(&mut self, was_solved: bool) {
        self.sigma *= if was_solved { GROWTH } else { 1.0 / GROWTH };
    }
}
