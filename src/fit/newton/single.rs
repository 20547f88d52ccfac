//! A single fit of a smooth loss: from a start to a gap that is proved.
//!
//! A fit is judged by two dual points. That of the slopes costs nothing, and its gap follows each step; that
//! of [`super::polish`] has a gap 5 to 1,000 times smaller and costs as much as a few products. By conjugate
//! gradient steps are therefore taken until the gap of the slopes is at a goal above the tolerance; then an
//! epoch of dual descent decides whether the fit is done, a second one where it nearly is. If it is not, by
//! how much the gap came down says at which gap of the slopes the next one will be enough. The conjugate
//! gradient, too, is content with the accuracy that the goal takes ([`NewtonStop::squared_residual`]).
//! flights, squared hinge, C = 16, gap 1e-4: 234 passes instead of 732. Where steps are factorised each point
//! is asked how far it is from the optimum, and if that is near enough, a step in the dual decides. The last
//! step of such a fit ends far below the tolerance, and its slopes do not show how far: a step in the dual,
//! if cheap beside the fit, brings the reported gap close to the truth.

use super::dual_step::Affordable;
use super::factorisation::Form;
use super::polish::{DualFound, DualPoint, DualPoints};
use super::row_state::{Passes, RowState, TermPasses};
use super::sample::{self, Sample};
use super::{InMemory, Kept, Newton};
use crate::Result;
use crate::fit::dual::DualLoss;
use crate::fit::monitor::Monitor;
use crate::fit::objective::{Unmoved, Weighted, sum_terms};
use crate::fit::params::{Params, SolverKind};
use crate::fit::problem::{Certificate, Evidence, Problem, Solution, Start, Status};
use crate::fit::routes::{
    EPOCH_PASSES, FAR_PASSES, POLISH_AGAIN, POLISH_AT, POLISH_CLOSER, POLISH_FAR, POLISH_LATE, POLISH_LOOSE,
    POLISH_NEAR, POLISH_SHARE, POLISH_SHARE_ENOUGH, SAMPLED_ONE_IN,
};
use crate::fit::stop::{LaneReport, NewtonStop};
use crate::loss::Loss;
use crate::memory;

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
    let polish = if polishes { Polish::Closely } else { Polish::Never };
    let (solution, _) = solve_with(problem, loss, params, start, polish, monitor)?;
    Ok(solution)
}

/// What beside the slopes is tried as a dual point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Polish {
    /// Nothing.
    Never,
    /// What may bring a fit to an end; of a sample nothing but its weights counts.
    ToEnd,
    /// Whatever brings the gap closer to the truth at a small price, too.
    Closely,
}

/// [`solve`], and the preconditioner that it ended with.
fn solve_with<'a, T: DualLoss>(
    problem: &Problem<'a>,
    loss: T,
    params: &Params,
    start: &Start,
    polish: Polish,
    monitor: &'a dyn Monitor,
) -> Result<(Solution, Option<Kept>)> {
    let sample = if start.w.is_none() { Sample::of(problem) } else { None };
    let rough = sample.map(|sample| {
        let params = Params { tol: params.tol.max(sample::TOL), ..*params };
        let polish = if polish == Polish::Never { Polish::Never } else { Polish::ToEnd };
        solve_with(&sample.problem(problem), loss, &params, &Start::default(), polish, monitor)
    });
    let mut newton = InMemory::<1>::new(problem, 1, true, monitor);
    if let Some((found, kept)) = rough.transpose()? {
        newton.work.passes += found.passes / SAMPLED_ONE_IN as f64;
        // The sample was as hard as all rows will be.
        if newton.closer.is_some_and(|closer| found.passes > closer.cost) {
            newton.come_closer();
        }
        newton.preconditioner = kept.map(|kept| Kept { made_for: None, is_hessian: false, ..kept });
        newton.start_at(&Start { w: Some((found.w, found.intercept)), ..Start::default() })?;
    } else {
        newton.start_at(start)?;
    }
    let objective = Weighted { loss, y: problem.y, cost: problem.cost };
    let mut points = PointsHere { problem, objective: &objective, seed: params.seed, monitor, last: None };
    let (report, is_polished) = if polish != Polish::Never {
        minimise_polished(&mut newton, &mut points, params, polish)?
    } else {
        let stop = NewtonStop::RelativeGap(params.tol);
        let [report] = newton.minimise(&objective, 1.0, &stop, params.max_iter)?;
        (report, false)
    };
    let point = points.last.filter(|_| is_polished);
    let evidence = match &point {
        Some(point) => point.evidence(&newton, problem.y),
        None => newton.evidence(problem.y),
    };
    let kept = newton.preconditioner.take();
    let mut solution = newton.into_solution(problem, report.certificate, report.status, report.steps);
    solution.evidence = Some(evidence);
    if let Some(point) = point {
        solution.alpha = point.alpha;
    }
    Ok((solution, kept))
}

/// [`Newton::minimise`] to a gap by the better of two dual points; says whether that is not the one of the
/// slopes, but the last of `points`.
///
/// # Errors
/// Those of [`Newton::minimise`].
pub fn minimise_polished<R, D>(
    newton: &mut Newton<'_, R, 1>,
    points: &mut D,
    params: &Params,
    polish: Polish,
) -> Result<(LaneReport, bool)>
where
    D: DualPoints<R>,
    R: TermPasses<D::Terms, 1>,
{
    let Params { tol, max_iter, .. } = *params;
    let (mut lanes, mut goals) = (newton.lanes(), Goals::new(tol, points.largest_curvature()));
    let mut next = 0;
    loop {
        // Where steps are factorised, each point is asked.
        let (goal, steps) =
            if newton.form == Form::Dense { (tol, next) } else { (goals.slopes.max(tol), max_iter) };
        let stop = NewtonStop::RelativeGap(goal);
        newton.descend(points.terms(), 1.0, &stop, steps.min(max_iter), &mut lanes)?;
        let report = lanes[0].report;
        next = report.steps + 1;
        let is_end = match report.status {
            Status::Converged => false,
            Status::MaxIter => report.steps >= max_iter,
            _ => true,
        };
        let distance = newton.distance_estimate().map(|distance| distance / report.certificate.primal);
        let gap = report.relative_gap();
        let may_polish = report.certificate.dual > 0.0 && (gap > tol || polish == Polish::Closely);
        let is_late = distance.is_none() && newton.work.passes >= POLISH_LATE;
        let is_epoch_due = may_polish && (is_end || goals.is_epoch_due(gap, is_late));
        let point = match distance {
            Some(distance) if may_polish && goals.is_step_due(gap, distance) => {
                let share = if gap <= tol { POLISH_SHARE_ENOUGH } else { POLISH_SHARE };
                let is_far = gap > POLISH_FAR * distance;
                let instead = if is_far {
                    FAR_PASSES
                } else if is_epoch_due {
                    EPOCH_PASSES
                } else {
                    0.0
                };
                let affordable = Affordable {
                    passes: instead.max(share * newton.price()),
                    curved: points.curved(&newton.rows) as f64 / newton.rows.n_rows().max(1) as f64,
                    distance: distance * report.certificate.primal,
                };
                points.polish_step(newton, &affordable)?
            }
            _ => None,
        };
        let point = match point {
            // Far from the optimum, or where a step is too dear, an epoch is better.
            None if is_epoch_due => Some(descend_from_slopes(newton, points, &report, tol)?),
            point => point,
        };
        if let Some(point) = point {
            newton.count(point.visited);
            let polished = Certificate { dual: point.value, ..report.certificate }.relative_gap();
            if polished < gap && (polished <= tol || is_end) {
                let certificate = Certificate { primal: points.fresh_value(newton)?, dual: point.value };
                let is_proved = certificate.relative_gap() <= tol;
                if is_proved || is_end {
                    let status = if is_proved { Status::Converged } else { report.status };
                    return Ok((LaneReport { status, certificate, ..report }, true));
                }
            }
            goals.missed(gap, polished);
        }
        if gap > tol && !is_end {
            goals.slopes = goals.slopes.min(0.5 * gap);
            lanes[0].is_running = true;
        } else if newton.confirm(points.terms(), 1.0, &NewtonStop::RelativeGap(tol), &mut lanes)? {
            return Ok((lanes[0].report, false));
        } else {
            goals.slopes = tol;
        }
    }
}

/// A dual point by an epoch, or two where the first one leaves little more than the gap `tol`.
fn descend_from_slopes<R, D: DualPoints<R>>(
    newton: &mut Newton<'_, R, 1>,
    points: &mut D,
    report: &LaneReport,
    tol: f64,
) -> Result<DualFound> {
    let found = points.polish_slopes(newton)?;
    let gap = Certificate { dual: found.value, ..report.certificate }.relative_gap();
    if gap <= tol || gap > POLISH_AGAIN * tol {
        return Ok(found);
    }
    let again = points.polish_again(newton)?;
    Ok(DualFound { visited: found.visited + again.visited, ..again })
}

/// Those in memory.
struct PointsHere<'p, 'a, T> {
    problem: &'p Problem<'a>,
    objective: &'p Weighted<'a, T>,
    seed: u64,
    monitor: &'p dyn Monitor,
    last: Option<DualPoint>,
}

impl<T> PointsHere<'_, '_, T> {
    fn keep(&mut self, point: DualPoint) -> DualFound {
        let DualPoint { value, visited, .. } = point;
        self.last = Some(point);
        DualFound { value, visited }
    }
}

impl<'a, T: DualLoss> DualPoints<RowState<'a, 1>> for PointsHere<'_, 'a, T> {
    type Terms = Weighted<'a, T>;

    fn terms(&self) -> &Weighted<'a, T> {
        self.objective
    }

    fn largest_curvature(&self) -> f64 {
        self.objective.loss.largest_curvature()
    }

    fn curved(&self, rows: &RowState<'a, 1>) -> usize {
        rows.curvature.iter().filter(|bend| **bend != [0.0]).count()
    }

    fn polish_slopes(&mut self, newton: &mut Newton<'_, RowState<'a, 1>, 1>) -> Result<DualFound> {
        let loss = self.objective.loss;
        let point = DualPoint::from_slopes(self.problem, loss, newton, self.seed, self.monitor)?;
        Ok(self.keep(point))
    }

    fn polish_again(&mut self, newton: &mut Newton<'_, RowState<'a, 1>, 1>) -> Result<DualFound> {
        let last = self.last.take().expect("there is one");
        // Another order.
        let seed = self.seed.wrapping_add(1);
        let point = last.further(self.problem, self.objective.loss, newton, seed, self.monitor)?;
        Ok(self.keep(point))
    }

    fn polish_step(
        &mut self,
        newton: &mut Newton<'_, RowState<'a, 1>, 1>,
        affordable: &Affordable,
    ) -> Result<Option<DualFound>> {
        let point = DualPoint::from_step(self.problem, self.objective.loss, newton, affordable)?;
        Ok(point.map(|point| self.keep(point)))
    }

    fn fresh_value(&mut self, newton: &mut Newton<'_, RowState<'a, 1>, 1>) -> Result<f64> {
        newton.fresh_value(self.objective)
    }
}

/// When a better dual point than the slopes is worth its price.
struct Goals {
    tol: f64,
    /// Relative gap of the slopes from which an epoch may be enough.
    slopes: f64,
    /// Relative distance to the optimum from which a step in the dual may be.
    distance: f64,
}

impl Goals {
    fn new(tol: f64, curvature: f64) -> Self {
        Self { tol, slopes: POLISH_AT * curvature.sqrt() * tol, distance: POLISH_NEAR * tol }
    }

    /// Whether a step in the dual is, at an estimated relative `distance` to the optimum.
    fn is_step_due(&self, gap: f64, distance: f64) -> bool {
        if gap <= self.tol { gap > POLISH_LOOSE * distance } else { distance <= self.distance }
    }

    /// Whether an epoch is; where steps are conjugate gradients, and it `is_late`, also for its own sake.
    fn is_epoch_due(&self, gap: f64, is_late: bool) -> bool {
        if gap <= self.tol { is_late } else { gap <= self.slopes }
    }

    /// Records that where the slopes had the relative gap `gap`, a better point had one of `polished`, and
    /// that was not enough.
    fn missed(&mut self, gap: f64, polished: f64) {
        let share = if polished > self.tol { POLISH_CLOSER * self.tol / polished } else { 0.0 };
        (self.slopes, self.distance) = (share * gap, share.min(1.0) * self.distance);
    }
}

/// How far the weights `w(a)` of the slopes are from those of a point.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// `|w(a) - w|`,
    pub distance: f64,
    /// give or take this,
    pub drift: f64,
    /// and for that of so many additions behind each entry of `w(a)`.
    pub additions: f64,
}

impl<R: Passes<L>, const L: usize> Newton<'_, R, L> {
    /// Of the slopes of a lane, for `C = 1`: `w(a)` is `-h`, and `w - w(a)` the gradient.
    pub fn spread(&self, lane: usize) -> Spread {
        let products = &self.products(1.0)[lane];
        let (n, d) = (self.rows.n_rows() as f64, self.w.len() as f64);
        let distance = products.gg.sqrt() * (1.0 + f64::EPSILON * d);
        // A weight's part of the difference is rounded once more.
        let drift = f64::EPSILON * (products.ww.sqrt() + products.hh.sqrt());
        Spread { distance, drift, additions: n }
    }
}

/// What only a single fit has.
impl<R: Passes<1>> Newton<'_, R, 1> {
    /// Moves to the weights of `start`, if it has any; one pass.
    ///
    /// # Errors
    /// Those of [`Newton::refresh`].
    pub fn start_at(&mut self, start: &Start) -> Result<()> {
        if let Some((w, b)) = &start.w {
            self.start_lane(0, w, *b);
            self.refresh()?;
        }
        Ok(())
    }
}

/// What only one in memory has.
impl Newton<'_, RowState<'_, 1>, 1> {
    /// The objective at decision values computed anew, for `C = 1`; one pass.
    fn fresh_value<T: Loss>(&mut self, objective: &Weighted<'_, T>) -> Result<f64> {
        self.refresh()?;
        let products = self.products(1.0);
        let [[losses]] = sum_terms(objective, Unmoved(&self.rows.z), |_, [value, ..]| [value]);
        Ok(0.5 * products[0].ww + losses)
    }

    /// Dual variables `a_i = -y_i f_i'(z_i)` of the last evaluated point, for `C = 1`.
    pub fn alpha(&self, y: &[f64]) -> Vec<f64> {
        self.rows.alpha(y)
    }

    /// What is known at decision values computed anew, for `C = 1`.
    pub(super) fn evidence(&self, y: &[f64]) -> Evidence {
        let Spread { distance, drift, additions } = self.spread(0);
        Evidence { margins: self.rows.margins(y), distance, drift, additions, alpha: None }
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
