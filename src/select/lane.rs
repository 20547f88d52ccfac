//! One binary problem of one fold on its way through the values of `C`.
//!
//! Two routes: Newton to a gradient norm, keeping weights and margins (a start reads no data), and a fit to a duality gap,
//! keeping dual variables and their weights, both stretched with `C` (after Chu15, eq. 14).

use super::{Part, Settings};
use crate::Result;
use crate::data::Rows;
use crate::loss::{Hinge, Logistic, Loss, LossKind, SquaredHinge};
use crate::solver::{Certificate, Monitor, Params, Problem, SolverKind, Start, Status, auto};

/// Relative duality gap of dual fits per unit of `tol`: about the accuracy that the gradient criterion gives in the primal.
const GAP_PER_TOL: f64 = 0.1;

/// Where the dual variables no longer grow with `C`, a fit goes to this part of the gap: the loss that is left grows with `C`,
/// and the solution can then stay as it is for the three doublings that end a search.
const SATURATED: f64 = 0.125;

/// One binary problem of one fold, between two values of `C`.
#[derive(Default)]
pub struct Lane {
    start: Start,
    /// Newton: margins of the training rows at the start.
    margins: Vec<f64>,
    /// Newton: gradient norm at zero weights for `C = 1`.
    norm_at_zero: f64,
    /// Fits: where the last one ended.
    fitted: Option<Fitted>,
}

/// The last certified fit of a lane.
#[derive(Clone, Copy)]
struct Fitted {
    c: f64,
    certificate: Certificate,
    half_squared_norm: f64,
    solver: SolverKind,
}

/// What one lane did at one `C`.
pub struct Done {
    pub passes: f64,
    pub n_iter: usize,
    pub is_converged: bool,
    pub is_unchanged: bool,
    pub decisions: Vec<f64>,
}

/// One step of one lane.
pub struct Task<'a, R> {
    /// The full matrix.
    pub rows: &'a R,
    /// The fold.
    pub part: &'a Part<'a>,
    /// Labels in {-1, +1} of the training rows.
    pub y: &'a [f64],
    /// The value to move to.
    pub c: f64,
    /// Options of the search.
    pub settings: &'a Settings,
    /// Number of the lane, for its seed.
    pub number: u64,
    /// The caller's brake.
    pub monitor: &'a dyn Monitor,
}

impl<'a, R: Rows> Task<'a, R> {
    fn problem(&self, cost: &'a [f64]) -> Problem<'a, R> {
        let Task { rows, part, y, settings, .. } = *self;
        Problem { rows, ids: Some(&part.train), y, cost, intercept: settings.intercept }
    }
}

impl Lane {
    /// Moves the lane's solution to `c` and predicts the held-out rows.
    pub fn advance<R: Rows>(&mut self, task: &Task<'_, R>) -> Result<Done> {
        let by_newton = match task.settings.solver {
            SolverKind::Auto => {
                auto::choose(&task.problem(&task.part.weight), task.settings.loss) == SolverKind::Newton
            }
            solver => solver == SolverKind::Newton,
        };
        let mut done = match task.settings.loss {
            _ => self.fit(task)?,
        };
        let (w, b) = self.start.w.as_ref().expect("both routes leave weights");
        done.decisions = task.part.test.iter().map(|&i| task.rows.dot(i as usize, w) + b).collect();
        Ok(done)
    }

    /// Multiplies the dual variables and their weights for the step from `last` to `c`.
    ///
    /// Chu15, eq. (14), takes the ratio of the two. Deviation: of 1, the ratio and its square root the one with the largest
    /// dual value is taken; on separable data the dual variables hardly grow any more at large `C`, and the ratio would throw
    /// the start far off. Reads no data; returns the factor.
    fn stretch<R: Rows>(&mut self, task: &Task<'_, R>, last: f64) -> f64 {
        let (Some(alpha), Some((w, _))) = (&mut self.start.alpha, &mut self.start.w) else {
            return task.c / last;
        };
        let (ratio, half) = (task.c / last, 0.5 * w.iter().map(|w| w * w).sum::<f64>());
        let dual = |t: f64| {
            let terms = alpha.iter().zip(&task.part.weight).map(|(&a, v)| match task.settings.loss {
                LossKind::Hinge => Hinge.dual_term(task.c * v, (t * a).min(task.c * v)),
                LossKind::SquaredHinge => SquaredHinge.dual_term(task.c * v, t * a),
                LossKind::Logistic => Logistic.dual_term(task.c * v, (t * a).min(task.c * v)),
            });
            terms.sum::<f64>() - t * t * half
        };
        let best = [1.0, ratio.sqrt(), ratio].map(|t| (dual(t), t)).into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        let factor = best.map_or(ratio, |(_, t)| t);
        alpha.iter_mut().for_each(|a| *a *= factor);
        w.iter_mut().for_each(|w| *w *= factor);
        factor
    }

    fn fit<R: Rows>(&mut self, task: &Task<'_, R>) -> Result<Done> {
        let Task { c, settings, .. } = *task;
        let tol = GAP_PER_TOL * settings.tol;
        let mut accuracy = tol;
        let mut solver = settings.solver;
        if let Some(last) = self.fitted {
            if last.still_accurate(c, tol) {
                return Ok(Done {
                    passes: 0.0,
                    n_iter: 0,
                    is_converged: true,
                    is_unchanged: true,
                    decisions: Vec::new(),
                });
            }
            if self.stretch(task, last.c) == 1.0 {
                accuracy *= SATURATED;
            }
            if solver == SolverKind::Auto {
                solver = last.solver;
            }
        }
        let cost: Vec<f64> = task.part.weight.iter().map(|v| c * v).collect();
        let params = Params {
            solver,
            tol: accuracy,
            max_iter: settings.max_iter,
            seed: settings.seed.wrapping_add(task.number),
        };
        let solution = auto::solve(&task.problem(&cost), settings.loss, &params, &self.start, task.monitor)?;
        let half_squared_norm = 0.5 * solution.w.iter().map(|w| w * w).sum::<f64>();
        self.fitted = Some(Fitted { c, certificate: solution.certificate, half_squared_norm, solver: solution.solver });
        let is_converged = solution.status == Status::Converged;
        let (passes, n_iter) = (solution.passes, solution.n_iter);
        let is_consistent = solution.solver != SolverKind::Newton;
        self.start = Start { w: Some((solution.w, solution.intercept)), alpha: Some(solution.alpha), is_consistent };
        Ok(Done { passes, n_iter, is_converged, is_unchanged: false, decisions: Vec::new() })
    }
}

impl Fitted {
    /// Whether the solution, unchanged, is within `tol` at the larger `c`: its dual variables stay feasible with no lower
    /// dual value, and the loss part of the primal value grows in proportion. Reads no data. With a penalised
    /// intercept the norm lacks the intercept's share, which then counts as loss: the answer errs on the side of a new fit.
    fn still_accurate(&self, c: f64, tol: f64) -> bool {
        let loss = self.certificate.primal - self.half_squared_norm;
        let primal = self.half_squared_norm + c / self.c * loss;
        (Certificate { primal, ..self.certificate }).relative_gap() <= tol
    }
}

/// `min(pos, neg) / (pos + neg)`, in weights.
fn smaller_share(y: &[f64], weight: &[f64]) -> f64 {
    let total: f64 = weight.iter().sum();
    let positive: f64 = y.iter().zip(weight).filter(|(y, _)| **y > 0.0).map(|(_, v)| v).sum();
    positive.min(total - positive) / total
}
