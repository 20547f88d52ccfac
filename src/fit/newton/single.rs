//! A single fit of a smooth loss: from a start to a gap that is proved.
//!
//! A fit is judged by two dual points. That of the slopes costs nothing, and its gap follows each step; that
//! of an epoch of dual descent ([`super::polish`]) has a gap 5 to 100 times smaller and costs as much as a
//! few products. Steps are therefore taken until the gap of the slopes is at `goal`, above the tolerance;
//! then the epoch decides whether the fit is done, and if not, by how much it has brought the gap down says
//! at which gap of the slopes the next one will be enough. The conjugate gradient, too, is content with the
//! accuracy that the goal takes ([`NewtonStop::squared_residual`]). flights, squared hinge, C = 16, gap
//! 1e-4: 234 passes instead of 732.

use super::Newton;
use super::polish::DualPoint;
use super::sample::{self, Sample};
use crate::Result;
use crate::fit::dual::DualLoss;
use crate::fit::monitor::Monitor;
use crate::fit::objective::{Objective, Weighted};
use crate::fit::params::{Params, SolverKind};
use crate::fit::problem::{Certificate, Evidence, Problem, Solution, Start, Status};
use crate::fit::routes::{POLISH_AT, POLISH_CLOSER, POLISH_LATE, SAMPLED_ONE_IN};
use crate::fit::stop::{LaneReport, NewtonStop};
use crate::fit::sweep::sum;
use crate::loss::Loss;
use crate::memory;
use crate::memory::CollectLarge;

/// Fits a smooth loss to the relative duality gap `params.tol`; without a start point from one on a sample of
/// the rows, if rows are many ([`sample`]). Without `polishes` the slopes are the only dual point.
///
/// # Errors
/// Those of [`Newton::minimise`].
pub fn solve<'a, T: DualLoss>(
    problem: &Problem<'a>,
    loss: T,
    params: &Params,
    start: &Start,
    polishes: bool,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    let sample = if start.w.is_none() { Sample::of(problem) } else { None };
    let rough = sample.map(|sample| {
        let params = Params { tol: params.tol.max(sample::TOL), ..*params };
        let found = solve(&sample.problem(problem), loss, &params, &Start::default(), polishes, monitor)?;
        Ok::<_, crate::Error>((
            Start { w: Some((found.w, found.intercept)), ..Start::default() },
            found.passes,
        ))
    });
    let rough = rough.transpose()?;
    let mut newton = Newton::<1>::new(problem, 1, true, monitor);
    if let Some((_, passes)) = &rough {
        newton.work.passes += passes / SAMPLED_ONE_IN as f64;
        // The sample was as hard as all rows will be.
        newton.is_dense |= newton.dense_cost.is_some_and(|cost| *passes > cost);
    }
    newton.start_at(rough.as_ref().map_or(start, |(start, _)| start));
    let objective = Weighted { loss, y: problem.y, cost: problem.cost };
    let (report, point) = if polishes {
        minimise_polished(&mut newton, problem, &objective, params, monitor)?
    } else {
        let stop = NewtonStop::RelativeGap(params.tol);
        let [report] = newton.minimise(&objective, 1.0, &stop, params.max_iter)?;
        (report, None)
    };
    let evidence = match &point {
        Some(point) => point.evidence(&newton, problem.y),
        None => newton.evidence(problem.y),
    };
    let mut solution = newton.into_solution(problem, report.certificate, report.status, report.steps);
    solution.evidence = Some(evidence);
    if let Some(point) = point {
        solution.alpha = point.alpha;
    }
    Ok(solution)
}

/// [`Newton::minimise`] to a gap by the better of two dual points, which is returned if it is not that of the
/// slopes.
fn minimise_polished<T: DualLoss>(
    newton: &mut Newton<'_, 1>,
    problem: &Problem<'_>,
    objective: &Weighted<'_, T>,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<(LaneReport, Option<DualPoint>)> {
    let tol = params.tol;
    let mut lanes = newton.lanes();
    let mut goal = POLISH_AT * objective.loss.largest_curvature().sqrt() * tol;
    loop {
        let stop = NewtonStop::RelativeGap(goal.max(tol));
        newton.descend(objective, 1.0, &stop, params.max_iter, &mut lanes)?;
        let report = lanes[0].report;
        let gap = report.relative_gap();
        let is_needed = gap > tol && goal > tol || report.status != Status::Converged;
        if report.certificate.dual > 0.0 && (is_needed || newton.work.passes >= POLISH_LATE) {
            let point = DualPoint::from_slopes(problem, objective.loss, newton, params.seed, monitor)?;
            newton.count(point.visited);
            let polished = Certificate { dual: point.value, ..report.certificate }.relative_gap();
            let is_end = report.status != Status::Converged;
            if polished <= tol || is_end && polished < gap {
                let certificate = Certificate { primal: newton.fresh_value(objective)?, dual: point.value };
                let is_proved = certificate.relative_gap() <= tol;
                if is_proved || is_end {
                    let status = if is_proved { Status::Converged } else { report.status };
                    return Ok((LaneReport { status, certificate, ..report }, Some(point)));
                }
            }
            if is_needed && !is_end {
                let next = POLISH_CLOSER * tol * gap / polished;
                goal = if polished > tol && next > tol { next.min(0.5 * gap) } else { tol };
                lanes[0].is_running = true;
                continue;
            }
        }
        if newton.confirm(objective, 1.0, &NewtonStop::RelativeGap(tol), &mut lanes)? {
            return Ok((lanes[0].report, None));
        }
        goal = tol;
    }
}

/// What only a single fit has.
impl Newton<'_, 1> {
    /// Moves to the weights of `start`, if it has any; one pass.
    pub fn start_at(&mut self, start: &Start) {
        if let Some((w, b)) = &start.w {
            self.w.as_flattened_mut()[..w.len()].copy_from_slice(w);
            if self.bias() != 0.0 {
                self.w[w.len()] = [b / self.bias()];
            }
            self.refresh();
        }
    }

    /// The objective at decision values computed anew, for `C = 1`; one pass.
    fn fresh_value<T: Loss>(&mut self, objective: &Weighted<'_, T>) -> Result<f64> {
        self.refresh();
        self.monitor.poll()?;
        let (z, products) = (&self.z, self.products(1.0));
        let [losses] = sum(z.len(), |i| objective.value(i, &z[i]));
        Ok(0.5 * products[0].ww + losses)
    }

    /// Dual variables `a_i = -y_i f_i'(z_i)` of the last evaluated point, for `C = 1`.
    pub fn alpha(&self, y: &[f64]) -> Vec<f64> {
        let slopes = self.slopes.as_ref().expect("asked for in `new`");
        slopes.iter().zip(y).map(|([slope], y)| -y * slope).collect_large()
    }

    /// What is known at decision values computed anew, for `C = 1`: `w(a)` is `-h`, and `w - w(a)` the
    /// gradient.
    pub(super) fn evidence(&self, y: &[f64]) -> Evidence {
        let margins = self.z.iter().zip(y).map(|([z], y)| z * y).collect_large();
        let [products] = self.products(1.0);
        let (n, d) = (self.z.len() as f64, self.w.len() as f64);
        let distance = products.gg.sqrt() * (1.0 + f64::EPSILON * d);
        // A weight's part of the difference is rounded once more.
        let drift = f64::EPSILON * (products.ww.sqrt() + products.hh.sqrt());
        Evidence { margins, distance, drift, additions: n, alpha: None }
    }

    /// Wraps a finished point.
    pub(super) fn into_solution(
        self,
        problem: &Problem<'_>,
        certificate: Certificate,
        status: Status,
        n_iter: usize,
    ) -> Solution {
        let (alpha, passes) = (self.alpha(problem.y), self.work.passes);
        let (w, intercept) = problem.split(memory::copy(self.w.as_flattened()), self.bias());
        let (solver, is_consistent, evidence) = (SolverKind::Newton, false, None);
        Solution { w, intercept, alpha, certificate, status, n_iter, passes, solver, is_consistent, evidence }
    }
}
