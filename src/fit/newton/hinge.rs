//! Newton for the hinge: a proximal (augmented Lagrangian) sequence of smooth problems.
//!
//! Around dual variables `a` the hinge of row `i` is replaced by
//!
//! ```text
//! f_i(m) = max_{0 <= t <= c_i}  t (1 - m) - (t - a_i)^2 / (2 sigma c_i)
//! ```
//!
//! which has the derivative `-t(m)`, `t(m) = clip(a_i + sigma c_i (1 - m), 0, c_i)`, and curvature
//! `sigma c_i` strictly inside the box. With the factor `c_i` a row of cost 2 and two rows of cost 1 take the
//! same path. [`crate::fit::newton`] minimises the sum, `a <- t(m)` follows, and `sigma` grows
//! ([`super::proximal`]; the Newton matrix `I + sigma X_J'C_J X_J` needs the rows `J` inside the box only).
//! The gap of a point of the sequence is about twice the distance to the optimum (a9a and w8a, C = 1 and 16,
//! gaps of 1e-1 to 1e-4: 1.1 to 8.7 times, 1.9 in the median): both values are off alike, and an epoch of
//! descent for the dual one, as with the smooth losses, could not bring fits to an end much sooner.
//! Tried: that epoch after problems solved 3 and 10 times less well, its dual variables to go on from.
//! flights and 300,000 one-hot rows, C = 1, without and with a free intercept, processor seconds of a build
//! without link-time optimisation, without epochs and with them: gap 1e-2 9.6, 4.0, 3.3, 1.6 and 7.0, 3.3,
//! 3.7, 1.7; gap 1e-6 34, 48, 16, 26 and 41, 55, 19, 24.
//!
//! Where rows outnumber columns this beats coordinate descent by far at large `C`; where columns outnumber
//! rows it does not.

use std::sync::Arc;

use super::proximal::{MAX_INNER, Sequence};
use super::row_state::{RowState, TermPasses};
use super::single::Spread;
use super::{InMemory, Newton};
use crate::fit::monitor::{Monitor, Progress};
use crate::fit::objective::Objective;
use crate::fit::params::Params;
use crate::fit::problem::{Certificate, Evidence, Problem, Solution, Start, Status};
use crate::fit::stop::NewtonStop;
use crate::fit::sweep::sum;
use crate::matrix::Rows;
use crate::matrix::lanes::Block;
use crate::memory::CollectLarge;
use crate::{Result, memory};

/// The smoothed hinge around `alpha`.
pub struct SmoothedHinge<'a> {
    /// Labels in {-1, +1}.
    pub y: &'a [f64],
    /// Cost per row.
    pub cost: &'a [f64],
    /// Dual variables.
    pub alpha: Arc<Vec<f64>>,
    /// How far they may move.
    pub sigma: f64,
}

impl<const L: usize> Objective<L> for SmoothedHinge<'_> {
    /// Of the first lane; the others are 0.
    #[inline(always)]
    fn all(&self, i: usize, z: &[f64; L]) -> [[f64; L]; 3] {
        let terms = self.all_of(i, &[*z]);
        terms.map(|[term]| term)
    }
    #[inline(always)]
    fn all_of<const N: usize>(&self, i: usize, z: &[[f64; L]; N]) -> [[[f64; L]; N]; 3] {
        let (y, cost, alpha) = (&self.y[i..i + N], &self.cost[i..i + N], &self.alpha[i..i + N]);
        let mut terms = [[[0.0; L]; N]; 3];
        for n in 0..N {
            let (c, short, width) = (cost[n], 1.0 - y[n] * z[n][0], self.sigma * cost[n]);
            let unclipped = alpha[n] + width * short;
            let t = unclipped.max(0.0).min(c);
            let moved = t - alpha[n];
            terms[0][n][0] = t * short - moved * moved / (2.0 * width);
            terms[1][n][0] = -y[n] * t;
            terms[2][n][0] = if 0.0 < unclipped && unclipped < c { width } else { 0.0 };
        }
        terms
    }
}

/// The sum of the hinges at the decision values, and that of the dual variables.
pub fn corner_values<const L: usize>(y: &[f64], cost: &[f64], alpha: &[f64], z: &[[f64; L]]) -> [f64; 2] {
    sum(cost.len(), |i| [cost[i] * (1.0 - y[i] * z[i][0]).max(0.0), alpha[i]])
}

/// The dual variables of the rows, wherever those are, and what the sequence asks about them.
///
/// # Errors
/// Of all methods: those of the place where the rows are, none in memory.
pub trait Corners<R> {
    /// The terms of a smooth problem.
    type Terms;
    /// Those around the present dual variables.
    fn terms(&self, sigma: f64) -> Self::Terms;
    /// Dual variables become those of the slopes of the evaluated point.
    #[allow(clippy::missing_errors_doc)] // of the trait
    fn take_slopes(&mut self, rows: &mut R) -> Result<()>;
    /// The sum of the hinges at the decision values, and that of the dual variables.
    #[allow(clippy::missing_errors_doc)]
    fn values(&mut self, rows: &mut R) -> Result<[f64; 2]>;
    /// Remembers the present point.
    #[allow(clippy::missing_errors_doc)]
    fn keep(&mut self, rows: &mut R) -> Result<()>;
    /// Takes the dual variables of the point that was kept last.
    #[allow(clippy::missing_errors_doc)]
    fn go_back(&mut self, rows: &mut R) -> Result<()>;
}

/// How a sequence ended; the point is the one kept last.
pub struct Ended {
    /// How.
    pub status: Status,
    /// Newton steps.
    pub steps: usize,
    /// Values of the point,
    pub certificate: Certificate,
    /// its weights,
    pub w: Block<1>,
    /// and how far those of its dual variables are.
    pub spread: Spread,
}

/// Solves smooth problems until the gap of a point is small enough. `total` is the sum of the costs.
///
/// # Errors
/// Those of [`Newton::minimise`].
pub fn follow<R, C>(
    newton: &mut Newton<'_, R, 1>,
    corners: &mut C,
    mut sequence: Sequence,
    total: f64,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<Ended>
where
    C: Corners<R>,
    R: TermPasses<C::Terms, 1>,
{
    let nothing = Certificate { primal: total, dual: 0.0 };
    let mut best = Point { certificate: nothing, w: newton.w.clone(), spread: None };
    let mut steps = 0;
    let status = loop {
        let inner = sequence.inner(&best.certificate, params.tol);
        let smoothed = corners.terms(sequence.sigma);
        let budget = MAX_INNER.min(params.max_iter - steps);
        newton.objective_changed();
        let stop = NewtonStop::Gradient { norm: [(2.0 * inner).sqrt()], excess: None };
        let [report] = newton.minimise(&smoothed, 1.0, &stop, budget)?;
        steps += report.steps;
        newton.settle_intercept(&smoothed)?;
        drop(smoothed);
        corners.take_slopes(&mut newton.rows)?;
        newton.refresh()?;
        let [loss, linear] = corners.values(&mut newton.rows)?;
        let [products] = newton.products(1.0);
        let certificate = Certificate { primal: 0.5 * products.ww + loss, dual: linear - 0.5 * products.hh };
        let accuracy = certificate.relative_gap();
        monitor.observe(&Progress { solver: "newton", iteration: steps, accuracy, search: None });
        let is_better = best.spread.is_none() || certificate.relative_gap() < best.certificate.relative_gap();
        if is_better {
            corners.keep(&mut newton.rows)?;
            best = Point { certificate, w: newton.w.clone(), spread: Some(newton.spread(0)) };
        }
        let was_solved = report.status == Status::Converged;
        if !is_better && !was_solved {
            // Slopes far from the solution of their problem are no place to go on from.
            corners.go_back(&mut newton.rows)?;
        }
        let was_trivial = was_solved && report.steps == 0;
        sequence.observe(&certificate, is_better, was_trivial, params.tol);
        if best.certificate.relative_gap() <= params.tol {
            break Status::Converged;
        }
        if sequence.is_stalled() {
            break Status::Stalled;
        }
        if steps >= params.max_iter {
            break Status::MaxIter;
        }
        sequence.advance(was_solved, report.steps);
    };
    let spread = best.spread.expect("the first point is better than none");
    Ok(Ended { status, steps, certificate: best.certificate, w: best.w, spread })
}

/// The best point so far.
struct Point {
    certificate: Certificate,
    w: Block<1>,
    /// None before the first.
    spread: Option<Spread>,
}

/// Dual variables in memory.
pub struct DualRows<'a> {
    y: &'a [f64],
    cost: &'a [f64],
    alpha: Arc<Vec<f64>>,
    /// Those of the kept point, and its margins.
    pub kept: (Arc<Vec<f64>>, Vec<f64>),
}

impl<'a> DualRows<'a> {
    /// Starts at `alpha`, which is in the box.
    pub fn new(y: &'a [f64], cost: &'a [f64], alpha: Vec<f64>) -> Self {
        let alpha = Arc::new(alpha);
        Self { y, cost, kept: (Arc::clone(&alpha), Vec::new()), alpha }
    }
}

impl<'a> Corners<RowState<'a, 1>> for DualRows<'a> {
    type Terms = SmoothedHinge<'a>;

    fn terms(&self, sigma: f64) -> SmoothedHinge<'a> {
        SmoothedHinge { y: self.y, cost: self.cost, alpha: Arc::clone(&self.alpha), sigma }
    }

    fn take_slopes(&mut self, rows: &mut RowState<'a, 1>) -> Result<()> {
        self.alpha = Arc::new(rows.alpha(self.y));
        Ok(())
    }

    fn values(&mut self, rows: &mut RowState<'a, 1>) -> Result<[f64; 2]> {
        Ok(corner_values(self.y, self.cost, &self.alpha, &rows.z))
    }

    fn keep(&mut self, rows: &mut RowState<'a, 1>) -> Result<()> {
        self.kept = (Arc::clone(&self.alpha), rows.margins(self.y));
        Ok(())
    }

    fn go_back(&mut self, _: &mut RowState<'a, 1>) -> Result<()> {
        self.alpha = Arc::clone(&self.kept.0);
        Ok(())
    }
}

/// Fits the hinge loss to the relative duality gap `params.tol`. `max_iter` limits the Newton steps of all
/// smooth problems together.
///
/// # Errors
/// Those of [`Newton::minimise`].
pub fn solve<'a>(
    problem: &Problem<'a>,
    params: &Params,
    start: &Start,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    let cost = problem.cost;
    let mut newton = InMemory::<1>::new(problem, 1, true, monitor);
    let alpha: Vec<f64> = match &start.alpha {
        Some(alpha) => alpha.iter().zip(cost).map(|(a, c)| a.clamp(0.0, *c)).collect_large(),
        None => memory::zeros(cost.len()),
    };
    newton.start_at(start)?;
    let mut corners = DualRows::new(problem.y, cost, alpha);
    let total = cost.iter().sum();
    let ended = follow(&mut newton, &mut corners, start_sequence(problem), total, params, monitor)?;
    newton.w = ended.w;
    let mut solution = newton.into_solution(problem, ended.certificate, ended.status, ended.steps);
    let Spread { distance, drift, additions } = ended.spread;
    let (alpha, margins) = corners.kept;
    solution.alpha = Arc::unwrap_or_clone(alpha);
    solution.evidence = Some(Evidence { margins, distance, drift, additions, alpha: None });
    Ok(solution)
}

fn start_sequence(problem: &Problem<'_>) -> Sequence {
    let design = problem.design(0.0);
    let [curvature] = sum(problem.cost.len(), |i| [problem.cost[i] * design.squared_norm(i)]);
    Sequence::new(design.n_cols(), curvature)
}
