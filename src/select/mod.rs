//! Warm-started cross-validated search for `C` (Chu15, algorithm 1).
//!
//! `C` runs upwards from a computed lower bound by a fixed factor. Every fold (and class) keeps its own weights, never one
//! shared vector (Chu15, table 3), and starts each `C` from its solution at the last. The search ends at `C_max`, or when no
//! fold's solution has changed for three successive values of `C` (eq. 24).
//!
//! Memory: one weight vector of the columns and one margin (or dual variable) per training row for each of the
//! folds x classes, beside the vectors of the fits in flight.

use rayon::prelude::*;

use crate::data::Rows;
use crate::loss::{Hinge, Logistic, Loss, LossKind, SquaredHinge};
use crate::multiclass::{Labels, check_row_count, check_weights, weighted_rows};
use crate::solver::newton::{Newton, Stop, Weighted};
use crate::solver::{Certificate, Intercept, Monitor, Params, Problem, SolverKind, Start, Status, auto};
use crate::{Error, Result};

/// Largest `C` that is tried.
pub const DEFAULT_C_MAX: f64 = 1024.0;
/// Factor between successive values of `C`.
pub const DEFAULT_RATIO: f64 = 2.0;
/// Accuracy of the fits of a search, see [`Settings::tol`].
pub const DEFAULT_SEARCH_TOL: f64 = 1e-2;
/// Successive values of `C` without a change that end the search (Chu15, eq. 24).
pub const UNCHANGED_TO_STOP: usize = 3;
/// Relative duality gap of dual fits per unit of `tol`: about the accuracy that the gradient criterion gives in the primal.
const GAP_PER_TOL: f64 = 0.1;

/// What to search and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The loss.
    pub loss: LossKind,
    /// Treatment of the intercept.
    pub intercept: Intercept,
    /// [`SolverKind::Auto`] is Newton for a smooth loss where its steps are cheap (few columns), else a fit to a duality gap
    /// by dual coordinate descent. Tried: Newton everywhere, as Chu15 has it; imdb, 5 folds, one thread: 48 s for either
    /// smooth loss against 19 s (squared hinge) and 16 s (logistic).
    pub solver: SolverKind,
    /// Newton: gradient norm relative to `min(pos, neg) / n` times the norm at zero (Chu15, eq. 28).
    /// Others: ten times the relative duality gap.
    pub tol: f64,
    /// Limit of epochs or Newton steps per fit.
    pub max_iter: usize,
    /// Seed of the visiting orders.
    pub seed: u64,
    /// First value of `C`; computed by [`lower_bound`] if `None`.
    pub c_min: Option<f64>,
    /// Limit of `C`.
    pub c_max: f64,
    /// Factor between values of `C`.
    pub ratio: f64,
}

/// One split: rows to train on and rows to predict.
pub struct Fold {
    /// Rows of the training part.
    pub train: Vec<u32>,
    /// Rows of the held-out part.
    pub test: Vec<u32>,
}

/// What happened at one value of `C`.
#[derive(Clone, Debug)]
pub struct Step {
    /// The value.
    pub c: f64,
    /// Readings of the data, summed over folds and classes, in units of one whole training part.
    pub passes: f64,
    /// Epochs or Newton steps, summed over folds and classes.
    pub n_iter: usize,
    /// No solution of any fold changed.
    pub is_unchanged: bool,
    /// Every fit reached the requested accuracy.
    pub is_converged: bool,
    /// Decision values per fold, row after row of the held-out part, one number per binary problem.
    pub decisions: Vec<Vec<f64>>,
}

/// The lower bound of Chu15 (eqs. 21 and 22), rounded down to a power of two; 1 for a matrix of zeros.
pub fn lower_bound(loss: LossKind, weight: f64, max_squared_norm: f64) -> f64 {
    let bound = match loss {
        LossKind::Hinge => Hinge.smallest_c(weight, max_squared_norm),
        LossKind::SquaredHinge => SquaredHinge.smallest_c(weight, max_squared_norm),
        LossKind::Logistic => Logistic.smallest_c(weight, max_squared_norm),
    };
    if bound.is_finite() && bound > 0.0 { bound.log2().floor().exp2() } else { 1.0 }
}

/// One binary problem of one fold, between two values of `C`.
#[derive(Default)]
struct Lane {
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
struct Done {
    passes: f64,
    n_iter: usize,
    is_converged: bool,
    is_unchanged: bool,
    decisions: Vec<f64>,
}

/// Training rows and weights of a fold.
struct Part<'a> {
    train: Vec<u32>,
    weight: Vec<f64>,
    test: &'a [u32],
}

/// Runs the search, calling `visit` after each value of `C`; `visit` may end it by returning `false`.
///
/// # Errors
/// Bad settings, folds without a class, those of the solvers, and those of `visit`.
pub fn search<R: Rows>(
    rows: &R,
    labels: &Labels<'_>,
    weight: &[f64],
    folds: &[Fold],
    settings: &Settings,
    monitor: &dyn Monitor,
    mut visit: impl FnMut(Step) -> Result<bool>,
) -> Result<()> {
    check_row_count(rows)?;
    labels.check(rows.n_rows())?;
    check_weights(weight, rows.n_rows())?;
    let mut c = first_c(rows, weight, settings)?;
    let parts =
        folds.iter().enumerate().map(|(f, fold)| part(rows, labels, weight, f, fold)).collect::<Result<Vec<_>>>()?;
    let n_problems = labels.n_problems();
    let mut lanes: Vec<Lane> = (0..parts.len() * n_problems).map(|_| Lane::default()).collect();
    let mut unchanged = 0;
    loop {
        let done: Vec<Done> = lanes
            .par_iter_mut()
            .enumerate()
            .map(|(k, lane)| {
                let part = &parts[k / n_problems];
                let y = labels.signs(k % n_problems, &part.train);
                lane.advance(rows, part, &y, c, settings, k as u64, monitor)
            })
            .collect::<Result<_>>()?;
        let step = summarise(c, &done, &parts, n_problems);
        unchanged = if step.is_unchanged { unchanged + 1 } else { 0 };
        let next = c * settings.ratio;
        if !visit(step)? || unchanged >= UNCHANGED_TO_STOP || next > settings.c_max * (1.0 + 1e-12) {
            return Ok(());
        }
        c = next;
    }
}

fn first_c<R: Rows>(rows: &R, weight: &[f64], settings: &Settings) -> Result<f64> {
    let bad = |name, value: f64, rule| Err(Error::Parameter { name, value: value.to_string(), rule });
    if !(settings.ratio > 1.0 && settings.ratio.is_finite()) {
        return bad("ratio", settings.ratio, "a finite number above 1");
    }
    let c = settings.c_min.unwrap_or_else(|| {
        let constant = if let Intercept::Penalised(s) = settings.intercept { s * s } else { 0.0 };
        let largest = (0..rows.n_rows()).map(|i| rows.squared_norm(i)).fold(0.0, f64::max);
        lower_bound(settings.loss, weight.iter().sum(), largest + constant)
    });
    if !(c > 0.0 && c.is_finite()) {
        return bad("C_min", c, "a finite number above 0");
    }
    if !(settings.c_max >= c && settings.c_max.is_finite()) {
        return bad("C_max", settings.c_max, "finite and not below C_min");
    }
    Ok(c)
}

fn part<'a, R: Rows>(rows: &R, labels: &Labels<'_>, weight: &[f64], f: usize, fold: &'a Fold) -> Result<Part<'a>> {
    for (what, ids) in [("training rows of a fold", &fold.train), ("held-out rows of a fold", &fold.test)] {
        if ids.is_empty() {
            return Err(Error::Shape { what, expected: 1, found: 0 });
        }
        if let Some(&i) = ids.iter().find(|&&i| i as usize >= rows.n_rows()) {
            return Err(Error::Labels { reason: format!("fold {f} names row {i}, X has {} rows", rows.n_rows()) });
        }
    }
    let train = weighted_rows(labels, weight, fold.train.iter().copied(), &format!("the training part of fold {f}"))?;
    let weight = train.iter().map(|&i| weight[i as usize]).collect();
    Ok(Part { train, weight, test: &fold.test })
}

fn summarise(c: f64, done: &[Done], parts: &[Part<'_>], n_problems: usize) -> Step {
    let decisions = done.chunks_exact(n_problems).zip(parts).map(|(problems, part)| {
        let mut fold = vec![0.0; part.test.len() * n_problems];
        for (k, problem) in problems.iter().enumerate() {
            for (row, value) in problem.decisions.iter().enumerate() {
                fold[row * n_problems + k] = *value;
            }
        }
        fold
    });
    Step {
        c,
        passes: done.iter().map(|d| d.passes).sum(),
        n_iter: done.iter().map(|d| d.n_iter).sum(),
        is_unchanged: done.iter().all(|d| d.is_unchanged),
        is_converged: done.iter().all(|d| d.is_converged),
        decisions: decisions.collect(),
    }
}

impl Lane {
    /// Moves the lane's solution to `c` and predicts the held-out rows.
    #[allow(clippy::too_many_arguments)] // the loop variables of `search`, all distinct types
    fn advance<R: Rows>(
        &mut self,
        rows: &R,
        part: &Part<'_>,
        y: &[f64],
        c: f64,
        settings: &Settings,
        task: u64,
        monitor: &dyn Monitor,
    ) -> Result<Done> {
        let problem = Problem { rows, ids: Some(&part.train), y, cost: &part.weight, intercept: settings.intercept };
        let by_newton = match settings.solver {
            SolverKind::Auto => auto::choose(&problem, settings.loss) == SolverKind::Newton,
            solver => solver == SolverKind::Newton,
        };
        let mut done = match settings.loss {
            LossKind::Logistic if by_newton => self.newton(Logistic, rows, part, y, c, settings, monitor)?,
            LossKind::SquaredHinge if by_newton => self.newton(SquaredHinge, rows, part, y, c, settings, monitor)?,
            _ => self.fit(rows, part, y, c, settings, task, monitor)?,
        };
        let (w, b) = self.start.w.as_ref().expect("both routes leave weights");
        done.decisions = part.test.iter().map(|&i| rows.dot(i as usize, w) + b).collect();
        Ok(done)
    }

    #[allow(clippy::too_many_arguments)]
    fn newton<R: Rows, L: Loss>(
        &mut self,
        loss: L,
        rows: &R,
        part: &Part<'_>,
        y: &[f64],
        c: f64,
        settings: &Settings,
        monitor: &dyn Monitor,
    ) -> Result<Done> {
        let problem = Problem { rows, ids: Some(&part.train), y, cost: &part.weight, intercept: settings.intercept };
        let mut newton = Newton::new(&problem, monitor);
        let weighted = |scale| Weighted { loss, cost: &part.weight, scale };
        match self.start.w.take() {
            None => self.norm_at_zero = newton.gradient_norm_at_zero(&weighted(1.0)),
            Some((w, b)) => newton.resume(w, b, std::mem::take(&mut self.margins)),
        }
        let limit = settings.tol * smaller_share(y, &part.weight) * c * self.norm_at_zero;
        let report = newton.minimise(&weighted(c), Stop::Gradient(limit), settings.max_iter)?;
        let passes = newton.passes;
        let (w, b, margins) = newton.suspend(&problem);
        (self.start.w, self.margins) = (Some((w, b)), margins);
        let is_converged = report.status == Status::Converged;
        let is_unchanged = is_converged && report.steps == 0;
        Ok(Done { passes, n_iter: report.steps, is_converged, is_unchanged, decisions: Vec::new() })
    }

    #[allow(clippy::too_many_arguments)]
    fn fit<R: Rows>(
        &mut self,
        rows: &R,
        part: &Part<'_>,
        y: &[f64],
        c: f64,
        settings: &Settings,
        task: u64,
        monitor: &dyn Monitor,
    ) -> Result<Done> {
        let tol = GAP_PER_TOL * settings.tol;
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
            // Chu15, eq. (14): the dual variables grow with C.
            let ratio = c / last.c;
            self.start.alpha.iter_mut().flatten().for_each(|a| *a *= ratio);
            if let Some((w, _)) = &mut self.start.w {
                w.iter_mut().for_each(|w| *w *= ratio);
            }
            if solver == SolverKind::Auto {
                solver = last.solver;
            }
        }
        let cost: Vec<f64> = part.weight.iter().map(|v| c * v).collect();
        let problem = Problem { rows, ids: Some(&part.train), y, cost: &cost, intercept: settings.intercept };
        let params = Params { solver, tol, max_iter: settings.max_iter, seed: settings.seed.wrapping_add(task) };
        let solution = auto::solve(&problem, settings.loss, &params, &self.start, monitor)?;
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
