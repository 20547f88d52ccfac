//! Truncated Newton in the primal.
//!
//! Minimises `f(w) = 1/2 |w|^2 + sum_i f_i(m_i)`, `m_i = y_i w.x_i`, for convex `f_i` with a Lipschitz derivative. A constant
//! last column of the design is the intercept; if it is *free* its weight is left out of the norm. One step:
//!
//! 1. with a free intercept, minimise over it alone (reads no data), so that `sum_i y_i a_i = 0` below;
//! 2. gradient `g = w + sum_i y_i f_i'(m_i) x_i`. At `a_i = -f_i'(m_i)` the dual point has `w(a) = w - g`, and by Fenchel's
//!    equality the duality gap is `1/2 |g|^2`: the certificate is free;
//! 3. direction `s` from `(I + X'DX) s = -g`, `D = diag(f_i'')`: by Cholesky when columns are few and the product `X'DX` is
//!    cheap, else by conjugate gradient with the diagonal preconditioner `(1 - mix) I + mix diag(H)`, stopped on the
//!    quadratic model, tighter as the gradient falls;
//! 4. margins of the direction in one pass, then a backtracking line search that reads no data (GalliLin21).
//!
//! Memory: seven vectors of the columns and four of the rows, plus up to seven private vectors of the columns for
//! parallel sums (see [`super::sweep`]), plus up to four `d x d` matrices where Cholesky is used.

use std::ops::Range;

use rayon::prelude::*;

use super::cg::ConjugateGradient;
use super::sweep::{ROW_CHUNK, Sweep, dot, for_chunks, sum};
use super::{Certificate, Intercept, Monitor, Params, Problem, Progress, Solution, SolverKind, Start, Status, finite};
use super::{auto, hessian, intercept};
use crate::data::Rows;
use crate::loss::Loss;
use crate::{Error, Result};

/// Share of the true diagonal in the preconditioner, LIBLINEAR's value: the plain diagonal is worse than none on some sets.
const DIAGONAL_MIX: f64 = 0.01;
/// Loosest accuracy of the conjugate gradient (GalliLin21).
const CG_ACCURACY: f64 = 0.5;
/// Armijo's constant.
const SUFFICIENT_DECREASE: f64 = 0.01;
/// Halvings before the line search gives up.
const MAX_HALVINGS: usize = 40;
/// Below this decrease relative to `f`, rounding of `f` decides and the Newton step is taken on trust.
const ROUNDING: f64 = 1e-13;
/// Steps in which neither the gradient nor the objective fell, after which the limit of double precision is reached.
const MAX_IDLE: usize = 8;

/// The row terms `f_i` of the objective.
pub trait Objective: Sync {
    /// `f_i(m)`.
    fn value(&self, i: usize, m: f64) -> f64;
    /// `f_i'(m)`.
    fn slope(&self, i: usize, m: f64) -> f64;
    /// `f_i''(m)`, generalised where the derivative has a kink.
    fn curvature(&self, i: usize, m: f64) -> f64;
    /// `f_i(m)`, `f_i'(m)` and `f_i''(m)` at once.
    #[inline(always)]
    fn all(&self, i: usize, m: f64) -> [f64; 3] {
        [self.value(i, m), self.slope(i, m), self.curvature(i, m)]
    }
}

/// `f_i(m) = scale * cost[i] * xi(m)`.
pub struct Weighted<'a, L> {
    /// The loss.
    pub loss: L,
    /// Cost per row.
    pub cost: &'a [f64],
    /// Common factor, `C` where `cost` holds plain weights.
    pub scale: f64,
}

impl<L: Loss> Objective for Weighted<'_, L> {
    #[inline(always)]
    fn value(&self, i: usize, m: f64) -> f64 {
        self.scale * self.cost[i] * self.loss.value(m)
    }
    #[inline(always)]
    fn slope(&self, i: usize, m: f64) -> f64 {
        self.scale * self.cost[i] * self.loss.derivative(m)
    }
    #[inline(always)]
    fn curvature(&self, i: usize, m: f64) -> f64 {
        self.scale * self.cost[i] * self.loss.curvature(m)
    }
    #[inline(always)]
    fn all(&self, i: usize, m: f64) -> [f64; 3] {
        let c = self.scale * self.cost[i];
        self.loss.all(m).map(|x| c * x)
    }
}

/// When a minimisation is done.
#[derive(Clone, Copy, Debug)]
pub enum Stop {
    /// Relative duality gap.
    RelativeGap(f64),
    /// Norm of the gradient.
    Gradient(f64),
}

/// How a minimisation went.
#[derive(Clone, Copy, Debug)]
pub struct Report {
    /// How it ended.
    pub status: Status,
    /// Newton steps taken; 0 means that the start was good enough.
    pub steps: usize,
    /// Primal and dual value; step 2 of the module's description, confirmed on fresh margins at the end of a fit.
    pub certificate: Certificate,
    /// Squared norm of the gradient.
    pub squared_gradient: f64,
}

/// A point with all that a minimisation from it needs; kept between problems that differ in their costs.
pub struct Newton<'a, R> {
    sweep: Sweep<'a, R>,
    monitor: &'a dyn Monitor,
    y: &'a [f64],
    is_free: bool,
    is_direct: bool,
    /// Weights, the constant column's last.
    pub w: Vec<f64>,
    /// Margins `m_i` at `w`.
    pub margins: Vec<f64>,
    /// Gradient at `w`, once a minimisation has run.
    pub gradient: Vec<f64>,
    /// Readings of the whole data so far.
    pub passes: f64,
    /// Conjugate gradient steps so far.
    pub products: usize,
    coefficient: Vec<f64>,
    curvature: Vec<f64>,
    diagonal: Vec<f64>,
    step: Vec<f64>,
    step_margins: Vec<f64>,
    cg: ConjugateGradient,
}

impl<'a, R: Rows> Newton<'a, R> {
    /// Starts at zero.
    pub fn new(problem: &Problem<'a, R>, monitor: &'a dyn Monitor) -> Self {
        let bias = match problem.intercept {
            Intercept::None => 0.0,
            Intercept::Free => 1.0,
            Intercept::Penalised(scale) => scale,
        };
        let design = problem.design(bias);
        let (n, d) = (design.n_rows(), design.n_cols());
        Self {
            is_direct: auto::prefers_cholesky(&design),
            sweep: Sweep::new(design, monitor),
            monitor,
            y: problem.y,
            is_free: problem.intercept == Intercept::Free,
            w: vec![0.0; d],
            margins: vec![0.0; n],
            gradient: vec![0.0; d],
            passes: 0.0,
            products: 0,
            coefficient: vec![0.0; n],
            curvature: vec![0.0; n],
            diagonal: Vec::new(),
            step: vec![0.0; d],
            step_margins: vec![0.0; n],
            cg: ConjugateGradient::default(),
        }
    }

    /// Height of the constant column.
    pub fn bias(&self) -> f64 {
        self.sweep.design.bias
    }

    /// Moves to the weights `w` and intercept `b`.
    pub fn move_to(&mut self, w: &[f64], b: f64) {
        self.w[..w.len()].copy_from_slice(w);
        if self.bias() != 0.0 {
            self.w[w.len()] = b / self.bias();
        }
        self.refresh_margins();
    }

    /// Computes the margins from the weights; one pass.
    pub fn refresh_margins(&mut self) {
        self.sweep.margins(self.y, &self.w, &mut self.margins);
        self.passes += 1.0;
    }

    /// Moves to weights `w` and intercept `b` whose margins are known.
    pub fn resume(&mut self, mut w: Vec<f64>, b: f64, margins: Vec<f64>) {
        if self.bias() != 0.0 {
            w.push(b / self.bias());
        }
        (self.w, self.margins) = (w, margins);
    }

    /// Weights, intercept and margins, for [`Self::resume`].
    pub fn suspend(self, problem: &Problem<'_, R>) -> (Vec<f64>, f64, Vec<f64>) {
        let bias = self.bias();
        let (w, b) = problem.split(self.w, bias);
        (w, b, self.margins)
    }

    /// The columns whose weights are part of the norm.
    pub fn penalised(&self) -> Range<usize> {
        0..self.w.len() - usize::from(self.is_free)
    }

    /// Dual variables `a_i = -f_i'(m_i)` of the current point.
    pub fn alpha(&self) -> Vec<f64> {
        self.coefficient.iter().zip(self.y).map(|(c, y)| -c * y).collect()
    }

    /// Norm of the gradient at zero weights; reads the data once and moves the solver to zero.
    pub fn gradient_norm_at_zero<O: Objective>(&mut self, objective: &O) -> f64 {
        self.w.fill(0.0);
        self.margins.fill(0.0);
        self.evaluate(objective);
        let squared = dot(&self.gradient, &self.gradient);
        squared.sqrt()
    }

    /// Minimises from the current point.
    ///
    /// # Errors
    /// [`Error::Cancelled`], and [`Error::Overflow`] when the objective leaves the range of double precision.
    pub fn minimise<O: Objective>(&mut self, objective: &O, stop: Stop, max_steps: usize) -> Result<Report> {
        let (mut best, mut lowest, mut idle) = (f64::INFINITY, f64::INFINITY, 0);
        let (mut first_norm, mut is_fresh) = (None, false);
        let mut steps = 0;
        loop {
            if self.is_free {
                self.minimise_over_intercept(objective);
            }
            let value = self.evaluate(objective);
            self.monitor.poll()?;
            let value = finite("objective", value, &self.sweep.design)?;
            let squared_gradient = finite("gradient", self.squared_gradient(stop), &self.sweep.design)?;
            let certificate = Certificate { primal: value, dual: value - 0.5 * squared_gradient };
            let mut report = Report { status: Status::Converged, steps, certificate, squared_gradient };
            self.monitor.observe(&progress(&report, stop, steps));
            if is_done(&report, stop) {
                if let Some(confirmed) = self.confirm(objective, &report, stop) {
                    return Ok(confirmed);
                }
                // Once more on fresh margins; if even they promise too much, step on.
                is_fresh = !is_fresh;
                if is_fresh {
                    continue;
                }
            }
            idle = if squared_gradient < best || value < lowest * (1.0 - ROUNDING) { 0 } else { idle + 1 };
            best = best.min(squared_gradient);
            lowest = lowest.min(value);
            report.status = Status::Stalled;
            if idle >= MAX_IDLE {
                return Ok(report);
            }
            if steps >= max_steps {
                return Ok(Report { status: Status::MaxIter, ..report });
            }
            let norm = squared_gradient.sqrt();
            let relative = norm / *first_norm.get_or_insert(norm);
            self.find_direction(relative)?;
            if !self.search_line(objective, value) {
                return Ok(report);
            }
            steps += 1;
        }
    }

    fn minimise_over_intercept<O: Objective>(&mut self, objective: &O) {
        let shift = intercept::smooth_shift(objective, self.y, &self.margins);
        if shift != 0.0 {
            *self.w.last_mut().expect("a free intercept is a column") += shift / self.bias();
            let y = self.y;
            for_chunks(&mut self.margins, |start, margins| {
                for (k, m) in margins.iter_mut().enumerate() {
                    *m += y[start + k] * shift;
                }
            });
        }
    }

    /// Objective, gradient, row coefficients and curvatures at the current point.
    fn evaluate<O: Objective>(&mut self, objective: &O) -> f64 {
        let (y, margins) = (self.y, &self.margins);
        let losses: Vec<f64> = self
            .coefficient
            .par_chunks_mut(ROW_CHUNK)
            .zip(self.curvature.par_chunks_mut(ROW_CHUNK))
            .enumerate()
            .map(|(chunk, (coefficient, curvature))| {
                let mut loss = 0.0;
                for (k, (c, h)) in coefficient.iter_mut().zip(curvature).enumerate() {
                    let i = chunk * ROW_CHUNK + k;
                    let [value, slope, bend] = objective.all(i, margins[i]);
                    loss += value;
                    (*c, *h) = (y[i] * slope, bend);
                }
                loss
            })
            .collect();
        let loss: f64 = losses.into_iter().sum();
        self.sweep.weighted_sum(&self.coefficient, &mut self.gradient);
        self.passes += 1.0;
        let penalised = self.penalised();
        let w = &self.w;
        for_chunks(&mut self.gradient[penalised.clone()], |start, g| {
            for (k, g) in g.iter_mut().enumerate() {
                *g += w[start + k];
            }
        });
        0.5 * dot(&w[penalised.clone()], &w[penalised]) + loss
    }

    /// Replaces the certificate of a finished report by one that owes nothing to updated margins: the dual value is that of
    /// `a` at `w(a) = w - g`, the primal value comes from margins computed anew (one pass), since updates over many steps
    /// leave rounding errors that a huge cost multiplies. `None` if the fresh margins are not good enough after all.
    fn confirm<O: Objective>(&mut self, objective: &O, report: &Report, stop: Stop) -> Option<Report> {
        let Stop::RelativeGap(tol) = stop else {
            return Some(*report);
        };
        let (y, penalised) = (self.y, self.penalised());
        let (w, g) = (&self.w[penalised.clone()], &self.gradient[penalised]);
        let (ww, wg, gg) = (dot(w, w), dot(w, g), dot(g, g));
        let [dual_terms] = sum(y.len(), |i| {
            let m = self.margins[i];
            [objective.value(i, m) - self.coefficient[i] * y[i] * m]
        });
        self.sweep.margins(y, &self.w, &mut self.step_margins);
        self.passes += 1.0;
        std::mem::swap(&mut self.margins, &mut self.step_margins);
        let [losses] = sum(y.len(), |i| [objective.value(i, self.margins[i])]);
        let certificate = Certificate { primal: 0.5 * ww + losses, dual: dual_terms - 0.5 * (ww - 2.0 * wg + gg) };
        let is_good = certificate.relative_gap() <= tol || report.squared_gradient == 0.0;
        is_good.then_some(Report { certificate, ..*report })
    }

    /// For a gap, the free intercept's derivative is left out: it is zero but for rounding.
    fn squared_gradient(&self, stop: Stop) -> f64 {
        match stop {
            Stop::RelativeGap(_) => {
                let g = &self.gradient[self.penalised()];
                dot(g, g)
            }
            Stop::Gradient(_) => dot(&self.gradient, &self.gradient),
        }
    }

    fn find_direction(&mut self, relative_gradient: f64) -> Result<()> {
        if self.is_direct { self.direction_by_cholesky() } else { self.direction_by_cg(relative_gradient) }
    }

    fn direction_by_cg(&mut self, relative_gradient: f64) -> Result<()> {
        self.diagonal.resize(self.w.len(), 0.0);
        self.sweep.curvature_diagonal(&self.curvature, &mut self.diagonal);
        let free = self.is_free.then_some(self.w.len() - 1);
        let largest = self.curvature.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        for (j, d) in self.diagonal.iter_mut().enumerate() {
            *d = if Some(j) == free { d.max(largest) } else { 1.0 + DIAGONAL_MIX * *d };
        }
        let Self { sweep, monitor, curvature, gradient, diagonal, step, cg, .. } = self;
        let accuracy = CG_ACCURACY.min(relative_gradient.sqrt());
        let products = cg.solve(gradient, diagonal, accuracy, step, |p, out| {
            monitor.poll()?;
            sweep.curvature_product(curvature, p, out);
            let penalised = out.len() - usize::from(free.is_some());
            for_chunks(&mut out[..penalised], |start, out| {
                for (k, o) in out.iter_mut().enumerate() {
                    *o += p[start + k];
                }
            });
            Ok::<(), Error>(())
        })?;
        self.passes += 1.0 + products as f64;
        self.products += products;
        Ok(())
    }

    fn direction_by_cholesky(&mut self) -> Result<()> {
        let d = self.w.len();
        let mut hessian = hessian::curvature_matrix(&self.sweep, &self.curvature);
        self.monitor.poll()?;
        for j in self.penalised() {
            hessian.values[j * d + j] += 1.0;
        }
        hessian.factorise();
        for (s, g) in self.step.iter_mut().zip(&self.gradient) {
            *s = -g;
        }
        hessian.solve(&mut self.step);
        self.passes += 1.0;
        Ok(())
    }

    /// Moves along the step; false if no step length makes progress.
    fn search_line<O: Objective>(&mut self, objective: &O, value: f64) -> bool {
        self.sweep.margins(self.y, &self.step, &mut self.step_margins);
        self.passes += 1.0;
        let penalised = self.penalised();
        let (w, s) = (&self.w[penalised.clone()], &self.step[penalised]);
        let (ww, ws, ss) = (dot(w, w), dot(w, s), dot(s, s));
        let slope = dot(&self.gradient, &self.step);
        if slope >= 0.0 || !slope.is_finite() {
            return false;
        }
        let (margins, moves) = (&self.margins, &self.step_margins);
        let mut length = 1.0;
        for _ in 0..MAX_HALVINGS {
            let [loss] = sum(margins.len(), |i| [objective.value(i, margins[i] + length * moves[i])]);
            let next = 0.5 * (ww + length * (2.0 * ws + length * ss)) + loss;
            if next <= value + SUFFICIENT_DECREASE * length * slope + ROUNDING * value.abs() {
                self.walk(length);
                return true;
            }
            length *= 0.5;
        }
        false
    }

    fn walk(&mut self, length: f64) {
        for (x, moves) in [(&mut self.w, &self.step), (&mut self.margins, &self.step_margins)] {
            for_chunks(x, |start, x| {
                for (k, x) in x.iter_mut().enumerate() {
                    *x += length * moves[start + k];
                }
            });
        }
    }
}

fn is_done(report: &Report, stop: Stop) -> bool {
    match stop {
        Stop::RelativeGap(tol) => report.certificate.relative_gap() <= tol,
        Stop::Gradient(limit) => report.squared_gradient <= limit * limit,
    }
}

fn progress(report: &Report, stop: Stop, iteration: usize) -> Progress {
    let accuracy = match stop {
        Stop::RelativeGap(_) => report.certificate.relative_gap(),
        Stop::Gradient(limit) => report.squared_gradient.sqrt() / limit,
    };
    Progress { solver: "newton", iteration, accuracy, place: None }
}

/// Fits a smooth loss to the relative duality gap `params.tol`.
///
/// # Errors
/// Those of [`Newton::minimise`].
pub fn solve<'a, R: Rows, L: Loss>(
    problem: &Problem<'a, R>,
    loss: L,
    params: &Params,
    start: &Start,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    let mut newton = Newton::new(problem, monitor);
    if let Some((w, b)) = &start.w {
        newton.move_to(w, *b);
    }
    let objective = Weighted { loss, cost: problem.cost, scale: 1.0 };
    let report = newton.minimise(&objective, Stop::RelativeGap(params.tol), params.max_iter)?;
    Ok(solution(problem, newton, report.certificate, report.status, report.steps))
}

/// Wraps a finished point.
pub(super) fn solution<R: Rows>(
    problem: &Problem<'_, R>,
    newton: Newton<'_, R>,
    certificate: Certificate,
    status: Status,
    n_iter: usize,
) -> Solution {
    let (alpha, passes, bias) = (newton.alpha(), newton.passes, newton.bias());
    let (w, intercept) = problem.split(newton.w, bias);
    Solution { w, intercept, alpha, certificate, status, n_iter, passes, solver: SolverKind::Newton }
}
