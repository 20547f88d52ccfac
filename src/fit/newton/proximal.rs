//! The sequence of smooth problems in which a Newton method meets a loss with corners: how smooth they are,
//! how well each is solved, and when the sequence is at its end.
//!
//! A proximal point method on the dual (Rockafellar, Augmented Lagrangians and applications of the proximal
//! point algorithm, 1976): each problem smooths the loss around the dual variables of the one before,
//! `sigma` grows from problem to problem, and for a piecewise quadratic the sequence ends after finitely
//! many. [`super::hinge`] and [`crate::fit::crammer_singer::newton`] say what is smoothed.

use crate::fit::problem::Certificate;

/// Growth of sigma after a problem that took one Newton step; after one of `k` steps it is the `k`-th root of
/// this. Problems that take many steps are those in which sigma has grown too fast for the dual variables to
/// follow. Newton steps of whole fits, hinge, gaps of 1e-2, 1e-4 and 1e-6, by a growth of 3 after each
/// problem, and by this (with [`INNER`] at 0.03 and 0.1):
///
/// ```text
///                                          3             root
/// a9a, C = 1                      10  30  53      10  21  39
/// a9a, C = 16, free intercept     19  48  81      16  35  80
/// w8a, C = 1                      20  44  73      11  27  42
/// w8a, C = 16, free intercept     41  80 129      29  66 101
/// covtype, C = 1                  19  22  31      13  17  27
/// covtype, C = 16                 23  30  45      15  22  39
/// 300,000 one-hot rows, C = 1     21  77 530      13  41 336
/// flights, C = 1                  22  84          13  45
/// ```
///
/// Tried: the root of half, a quarter and a sixth of the steps: up to 60 % more steps on w8a, covtype and
/// flights; a growth of 1.5 after each problem, 56 steps on flights, and more where steps are few; 10, up to
/// three times the Newton steps of 3, and w8a stalls at C = 16.
const GROWTH: f64 = 3.0;
/// The first sigma at most: the smoothed corner is `1 / sigma` wide on the margin axis. Between 1e-4 and 1
/// the number of Newton steps hardly depends on it (german, a9a, w8a, covtype, C from 2^-8 to 2^8).
const FIRST: f64 = 0.1;
/// The first smooth problem has a Hessian of at most about this mean eigenvalue, or at huge `C` the first
/// steps zigzag between walls instead of following them.
const FIRST_CURVATURE: f64 = 1e3;
/// A smooth problem is solved until its share of the duality gap is this part of the gap before it. Tried:
/// 0.03 and 0.2, up to a fifth more passes on flights.
const INNER: f64 = 0.1;
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

    /// Goes on from a problem that took so many steps to the next; one too hard for its budget is followed by
    /// an easier one. Where steps do not tell how hard a problem is they count as 1: those of a working set
    /// are taken for the set's sake (a9a, penalty on absolute values, C = 0.1, gap 1e-4: 43 steps instead of
    /// 21), those of Crammer-Singer after a descent (283 instead of 262).
    pub fn advance(&mut self, was_solved: bool, steps: usize) {
        self.sigma *= if was_solved { GROWTH.powf(1.0 / steps.max(1) as f64) } else { 1.0 / GROWTH };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sigma_grows_less_after_many_steps_and_falls_after_a_problem_given_up() {
        let after = |was_solved, steps| {
            let mut sequence = Sequence::new(10, 1.0);
            let before = sequence.sigma;
            sequence.advance(was_solved, steps);
            sequence.sigma / before
        };
        let is_close = |growth: f64, expected: f64| (growth / expected - 1.0).abs() < 1e-12;
        assert!(is_close(after(true, 0), GROWTH));
        assert!(is_close(after(true, 1), GROWTH));
        assert!(is_close(after(true, 4).powi(4), GROWTH));
        assert!(is_close(after(false, MAX_INNER), 1.0 / GROWTH));
    }
}
