//! The hinge with any penalty and bounds: a sequence of smooth problems around dual variables, as without
//! them ([`crate::fit::newton::hinge`]), each solved on working sets.
//!
//! With absolute values alone that is a linear program, and the sequence a proximal method on its dual:
//! there, too, it ends after finitely many problems (Rockafellar, Augmented Lagrangians and applications of
//! the proximal point algorithm, 1976).

use std::sync::Arc;

use super::binary::BinaryLosses;
use super::newton::NewtonSteps;
use super::rounds::{RoundStart, observe};
use super::smooth_part::Losses;
use super::working_set::WorkingSet;
use super::{PenalisedProblem, PenalisedSolution, dual_point, proof};
use crate::fit::monitor::Monitor;
use crate::fit::newton::hinge::SmoothedHinge;
use crate::fit::newton::proximal::{MAX_INNER, Sequence};
use crate::fit::objective::Weighted;
use crate::fit::params::Params;
use crate::fit::problem::{Certificate, Status};
use crate::loss::Hinge;
use crate::memory::CollectLarge;
use crate::{Result, memory};

/// The best point so far.
struct Point {
    /// Values, proved where they are good enough.
    certificate: Certificate,
    w: Vec<f64>,
    losses: Losses,
}

/// As [`super::solve`].
///
/// # Errors
/// As there.
pub fn solve(
    problem: &PenalisedProblem<'_>,
    params: &Params,
    start: Option<&[f64]>,
    monitor: &dyn Monitor,
) -> Result<PenalisedSolution> {
    let PenalisedProblem { columns, y, cost, .. } = *problem;
    let coordinates = problem.coordinates();
    let corner = BinaryLosses { problem, smooth: &Weighted { loss: Hinge, y, cost } };
    let mut w = coordinates.first_weights(start);
    let mut alpha: Arc<Vec<f64>> = Arc::new(memory::zeros(y.len()));
    let mut sequence = Sequence::new(columns.len(), largest_bend(problem));
    let mut working = WorkingSet::new(coordinates);
    let (mut n_iter, mut passes) = (0, 0.0);
    let mut best: Option<Point> = None;
    let status = loop {
        let known = best
            .as_ref()
            .map_or(Certificate { primal: cost.iter().sum(), dual: 0.0 }, |best| best.certificate);
        let smooth = SmoothedHinge { y, cost, alpha: alpha.clone(), sigma: sequence.sigma };
        let budget = MAX_INNER.min(params.max_iter - n_iter);
        let smooth_part = BinaryLosses { problem, smooth: &smooth };
        let is_near = n_iter > 0 || start.is_some();
        let mut steps = NewtonSteps::new(&smooth_part, budget, monitor).starting_near(is_near);
        let (here, was_solved) =
            minimise(&mut steps, &mut working, &mut w, sequence.inner(&known, params.tol))?;
        n_iter += steps.taken;
        let was_trivial = was_solved && steps.taken == 0;
        passes += steps.passes;
        let losses = Losses { value: Losses::at(&corner, memory::copy(&here.losses.z)).value, ..here.losses };
        let mut certificate =
            dual_point::certificate(&corner, losses.value, (&losses.slope, &here.slope), &w);
        observe(monitor, n_iter, certificate.relative_gap());
        let mut is_proven = false;
        if certificate.relative_gap() <= params.tol {
            let gaps = (certificate.relative_gap(), params.tol);
            let prove = |sums| proof::certificate(problem, Hinge, &losses.slope, &w, sums);
            let (proven, readings) = proof::to_tolerance(prove, gaps);
            passes += readings;
            certificate = proven.certificate;
            is_proven = certificate.relative_gap() <= params.tol;
        }
        let is_better =
            best.as_ref().is_none_or(|best| certificate.relative_gap() < best.certificate.relative_gap());
        sequence.observe(&certificate, is_better, was_trivial, params.tol);
        if is_better || was_solved {
            alpha = Arc::new(losses.slope.iter().zip(cost).map(|(g, c)| g.abs().min(*c)).collect_large());
        }
        if is_better {
            best = Some(Point { certificate, w: memory::copy(&w), losses });
        }
        if is_proven {
            break Status::Converged;
        }
        if sequence.is_stalled() {
            break Status::Stalled;
        }
        if n_iter >= params.max_iter {
            break Status::MaxIter;
        }
        sequence.advance(was_solved, 1);
    };
    let best = best.expect("the first point is better than none");
    let certificate = if status == Status::Converged {
        best.certificate
    } else {
        passes += 1.0;
        proof::certificate(problem, Hinge, &best.losses.slope, &best.w, proof::SlopeSums::Plain).certificate
    };
    let penalty = coordinates.penalty(&best.w);
    let largest_dual = cost.iter().copied().fold(0.0, f64::max);
    Ok(PenalisedSolution { w: best.w, certificate, largest_dual, penalty, status, n_iter, passes })
}

/// Rounds on a smooth problem until its gap is small enough; whether it is.
fn minimise(
    steps: &mut NewtonSteps<'_, BinaryLosses<'_, SmoothedHinge<'_>>>,
    working: &mut WorkingSet,
    w: &mut [f64],
    enough: f64,
) -> Result<(RoundStart, bool)> {
    let (mut best, mut known) = (f64::INFINITY, None);
    loop {
        // The sequence goes on from the slopes at the weights, which must be as good as the gap says.
        drop(steps.take_model_slopes());
        let here = RoundStart::of(steps, working, w, known.take())?;
        steps.poll()?;
        let room = here.rough.primal - here.rough.dual;
        let is_solved = room <= enough;
        if is_solved || steps.is_over() || (steps.is_stuck && room >= best) {
            return Ok((here, is_solved));
        }
        if room > 0.5 * best {
            steps.go_further();
        }
        best = best.min(room);
        known = Some(here.go_on(steps, working, w)?);
    }
}

/// `sum_i c_i |x_i|^2`.
fn largest_bend(problem: &PenalisedProblem<'_>) -> f64 {
    let of_column = |j| -> f64 {
        let [sum] = problem.columns.sum(j, |i, x| [problem.cost[i] * x * x]);
        sum
    };
    (0..problem.columns.len()).map(of_column).sum()
}
