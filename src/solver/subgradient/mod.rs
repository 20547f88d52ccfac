//! Subgradient descent in the primal: full batch, mini-batch, stochastic; Pegasos (ShalevShwartz07).
//!
//! Minimises `lambda/2 |w|^2 + sum_i p_i xi(y_i (w.x_i + b))` with `p_i = c_i / sum c` and `lambda = 1 / sum c`: the objective of the
//! other solvers divided by `sum c`, whose value and dual value the certificate has. A step reads `k` rows drawn with probability
//! `p_i` (all rows, in the batch form) and moves against the subgradient,
//!
//! ```text
//!     w <- (1 - eta lambda) w + eta/k sum y_i s_i x_i,   s_i = -xi'(m_i),       then |w| <= radius by scaling
//! ```
//!
//! * [`iterate`]: weights as scale times vector, and their running sum;
//! * [`draw`]: which rows; [`step_size`]: the schedules of `eta`;
//! * [`bound`]: the duality gap at any time, from how often each row was short of its margin.
//!
//! **Radius** (optional projection). At the optimum `|w|^2 = sum_i a_i m_i`; for the hinge that is at most `1/lambda` (the paper's), for
//! the squared hinge `1/(2 lambda)`. For the logistic loss `lambda/2 |w|^2 <= f(0) = log 2`.
//!
//! **Intercept.** Not penalised: it moves by `eta s^2/k sum y_i s_i`, as if it were the weight of a constant column of height `s` equal to
//! the root mean square norm of a row, but does not shrink. The first steps of Pegasos are of length `1/lambda` and would throw it
//! anywhere, so it is kept within `1 + max_i |x_i| radius`, outside of which no best intercept lies. Whenever the objective is looked
//! at, and in the result, the intercept is the exact best one for the weights, which costs a sort of `n` numbers.
//!
//! **Averages.** The mean of all iterates, or of those since the last power of two of epochs (a suffix between a third and a
//! half; Rakhlin, Shamir, Sridharan, Making Gradient Descent Optimal, ICML 2012): for a nonsmooth loss the last iterate is
//! worse by a factor of `log t` and a good deal of noise.
//!
//! **Stops.** By the relative duality gap; by the relative change of the objective between two looks; by the sum of the
//! lengths of the last steps. Looks are taken after 1, 2, 3, 4, 6, 8, 12, 16, ... epochs and cost two passes each.

pub mod bound;
pub mod draw;
pub mod iterate;
pub mod step_size;

use std::ops::ControlFlow;

use super::active::{Random, random};
use super::sweep::{Sweep, dot};
use super::{Intercept, Monitor, Problem, Progress, Solution, SolverKind, Status, check_length};
use crate::data::Rows;
use crate::loss::{Hinge, Logistic, Loss, LossKind, SquaredHinge};
use crate::{Error, Result};
use bound::{Bound, Shares};
use draw::Draw;
use iterate::Iterate;
pub use step_size::StepSize;

/// Relative duality gap at which a descent stops.
pub const DEFAULT_TOL: f64 = 1e-3;
/// Steps for which rows and step lengths are drawn ahead of time.
const AHEAD_STEPS: usize = 256;
/// Steps between the request for a row's memory and its use.
const AHEAD: usize = 8;
/// An epoch has as many draws as there are rows, but at least this many: looks at the objective should not be all the work, and
/// on small problems the number of draws must not tell a row of weight 2 from the row twice.
const LEAST_DRAWS: usize = 1024;

/// How many rows a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// This many, drawn at random.
    Rows(usize),
    /// Every row once.
    All,
}

/// Which weights are the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// The last iterate.
    None,
    /// The mean of all iterates.
    All,
    /// The mean of the last third to half of the iterates.
    Suffix,
}

/// Settings of a descent.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Rows per step.
    pub batch: Batch,
    /// Step lengths.
    pub step_size: StepSize<'a>,
    /// Whether weights are kept in the ball that holds the optimum.
    pub projects: bool,
    /// Which weights are the result.
    pub average: Average,
    /// Relative duality gap at which to stop.
    pub tol: f64,
    /// Relative change of the objective between two looks at which to stop; 0 for never.
    pub objective_tol: f64,
    /// Number of steps and sum of their lengths at which to stop; a sum of 0 for never.
    pub window: (usize, f64),
    /// Epochs at most.
    pub max_epochs: usize,
    /// Seed of the draws.
    pub seed: u64,
}

/// A look at the objective.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Epochs so far.
    pub epoch: usize,
    /// Steps so far.
    pub steps: u64,
    /// Seconds by the monitor's clock.
    pub seconds: f64,
    /// Objective, in the units of the certificate.
    pub primal: f64,
    /// Best lower bound so far.
    pub dual: f64,
    /// `|w|` of the last iterate.
    pub norm: f64,
}

/// Where a descent is, to go on from with other rows.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Last weights.
    pub w: Vec<f64>,
    /// Last intercept.
    pub b: f64,
    /// Sum of the weights in the average.
    pub sum: Vec<f64>,
    /// Sum of the intercepts in the average.
    pub b_sum: f64,
    /// Number of iterates in the average.
    pub counted: u64,
    /// Steps so far.
    pub steps: u64,
}

/// Descends until a stop.
///
/// # Errors
/// [`Error::Parameter`], [`Error::Cancelled`], [`Error::Overflow`] and those of the caller's step lengths.
pub fn solve<R: Rows>(
    problem: &Problem<'_, R>,
    loss: LossKind,
    options: &Options<'_>,
    monitor: &dyn Monitor,
) -> Result<(Solution, Vec<Look>)> {
    match loss {
        LossKind::Hinge => solve_loss(problem, Hinge, options, monitor),
        LossKind::SquaredHinge => solve_loss(problem, SquaredHinge, options, monitor),
        LossKind::Logistic => solve_loss(problem, Logistic, options, monitor),
    }
}

fn solve_loss<R: Rows, L: Loss>(
    problem: &Problem<'_, R>,
    loss: L,
    options: &Options<'_>,
    monitor: &dyn Monitor,
) -> Result<(Solution, Vec<Look>)> {
    match options.average {
        Average::None => Descent::<R, L, 1>::new(problem, loss, options, &State::default(), monitor)?.run(),
        _ => Descent::<R, L, 2>::new(problem, loss, options, &State::default(), monitor)?.run(),
    }
}

/// One pass over further rows, drawn at random: as many as there are, rounded up to whole steps. Costs count relatively within
/// the rows; `lambda` is the caller's.
///
/// # Errors
/// As for [`solve`].
pub fn advance<R: Rows>(
    problem: &Problem<'_, R>,
    loss: LossKind,
    options: &Options<'_>,
    state: &State,
    monitor: &dyn Monitor,
) -> Result<State> {
    match loss {
        LossKind::Hinge => Descent::<R, Hinge, 2>::new(problem, Hinge, options, state, monitor)?.pass(),
        LossKind::SquaredHinge => {
            Descent::<R, SquaredHinge, 2>::new(problem, SquaredHinge, options, state, monitor)?.pass()
        }
        LossKind::Logistic => Descent::<R, Logistic, 2>::new(problem, Logistic, options, state, monitor)?.pass(),
    }
}

/// Squared radius of a ball around zero that holds the optimal weights, times `lambda`.
fn squared_radius<L: Loss>(loss: L) -> f64 {
    match (loss.curvature(0.0) == 0.0, loss.conjugate(2.0).is_finite()) {
        (true, _) => 1.0,
        (false, true) => 0.5,
        (false, false) => 2.0 * std::f64::consts::LN_2,
    }
}

/// Largest curvature of the loss.
fn largest_curvature<L: Loss>(loss: L) -> f64 {
    loss.curvature(0.0)
}

/// A running descent; `S` is 2 where a sum of the iterates is kept.
struct Descent<'a, R, L, const S: usize> {
    problem: Problem<'a, R>,
    loss: L,
    options: Options<'a>,
    monitor: &'a dyn Monitor,
    sweep: Sweep<'a, R>,
    lambda: f64,
    radius: f64,
    /// `t_0` of the default steps.
    offset: f64,
    /// Squared height of the constant column that the intercept moves like.
    height: f64,
    /// Largest size of the intercept.
    reach: f64,
    draw: Draw,
    shares: Shares,
    iterate: Iterate<S>,
    b: f64,
    b_sum: f64,
    counted: u64,
    t: u64,
    random: Random,
    window: Window,
}

impl<'a, R: Rows, L: Loss, const S: usize> Descent<'a, R, L, S> {
    fn new(
        problem: &Problem<'a, R>,
        loss: L,
        options: &Options<'a>,
        state: &State,
        monitor: &'a dyn Monitor,
    ) -> Result<Self> {
        let Problem { y, cost, intercept, .. } = *problem;
        if options.batch == Batch::Rows(0) {
            return Err(Error::Parameter { name: "batch_size", value: "0".into(), rule: "at least 1" });
        }
        let design = problem.design(if let Intercept::Penalised(scale) = intercept { scale } else { 0.0 });
        monitor.poll()?;
        let draw = Draw::new(&design, y, cost);
        monitor.poll()?;
        let total: f64 = cost.iter().sum();
        let lambda = 1.0 / total;
        let largest = draw.squared_norm.iter().copied().fold(0.0, f64::max);
        let mean = draw.squared_norm.iter().zip(cost).map(|(s, c)| s * c).sum::<f64>() / total;
        let radius = (squared_radius(loss) / lambda).sqrt();
        let zeros = vec![0.0; design.n_cols()];
        let (w, sum) = if state.steps == 0 { (&zeros, &zeros) } else { (&state.w, &state.sum) };
        check_length("weights of the state", design.n_cols(), w.len())?;
        check_length("sum of the state", design.n_cols(), sum.len())?;
        Ok(Self {
            problem: *problem,
            loss,
            options: *options,
            monitor,
            sweep: Sweep::new(design, monitor),
            lambda,
            radius,
            offset: largest_curvature(loss) * largest / lambda,
            height: if mean > 0.0 { mean } else { 1.0 },
            reach: 1.0 + largest.sqrt() * radius,
            shares: Shares::new(y.len()),
            iterate: Iterate::new(w, Some(sum)),
            draw,
            b: state.b,
            b_sum: state.b_sum,
            counted: state.counted,
            t: state.steps,
            random: random(options.seed, state.steps),
            window: Window::new(options.window),
        })
    }

    fn run(mut self) -> Result<(Solution, Vec<Look>)> {
        let mut looks = Vec::new();
        let (mut best_dual, mut epoch) = (Bound::default(), 0);
        let (status, w, b, primal) = loop {
            epoch += 1;
            let is_still = self.epoch()?.is_break();
            let is_last = is_still || epoch >= self.options.max_epochs;
            if !is_last && !is_look(epoch) {
                continue;
            }
            let w = self.result();
            let (b, primal) =
                bound::look(&mut self.sweep, &self.problem, self.loss, &w, &self.shares, &self.draw, &mut best_dual)?;
            self.monitor.poll()?;
            let look = Look {
                epoch,
                steps: self.t,
                seconds: self.monitor.seconds(),
                primal,
                dual: best_dual.value,
                norm: self.iterate.squared_norm.sqrt(),
            };
            let gap = best_dual.certificate(primal).relative_gap();
            self.monitor.observe(&Progress { solver: "subgradient", iteration: epoch, accuracy: gap, place: None });
            let before = looks.last().map(|look: &Look| look.primal);
            looks.push(look);
            let is_flat = before.is_some_and(|before| (before - primal).abs() <= self.options.objective_tol * primal);
            if gap <= self.options.tol {
                break (Status::Converged, w, b, primal);
            }
            if is_still || (is_flat && self.options.objective_tol > 0.0) {
                break (Status::Stalled, w, b, primal);
            }
            if is_last {
                break (Status::MaxIter, w, b, primal);
            }
            if epoch.is_power_of_two() {
                self.restart();
            }
            self.iterate.renew_norm();
        };
        let (w, b) = self.split(w, b);
        let solution = Solution {
            w,
            intercept: b,
            alpha: best_dual.alpha.clone(),
            certificate: best_dual.certificate(primal),
            status,
            n_iter: epoch,
            passes: epoch as f64 + 2.0 * looks.len() as f64,
            solver: SolverKind::Subgradient,
        };
        Ok((solution, looks))
    }

    /// A new suffix begins.
    fn restart(&mut self) {
        self.shares.restart();
        if self.options.average == Average::Suffix {
            self.iterate.restart_sum();
            (self.b_sum, self.counted) = (0.0, 0);
        }
    }

    /// One pass over the rows, then the state.
    fn pass(mut self) -> Result<State> {
        let n = self.problem.y.len();
        let steps = match self.options.batch {
            Batch::Rows(k) => n.div_ceil(k),
            Batch::All => 1,
        };
        if steps > 1 || self.options.batch != Batch::All {
            let _ = self.stochastic(steps, self.options.batch)?;
        } else {
            let _ = self.full_step()?;
        }
        Ok(State {
            w: self.iterate.weights(),
            b: self.b,
            sum: self.iterate.sum(),
            b_sum: self.b_sum,
            counted: self.counted,
            steps: self.t,
        })
    }

    fn epoch(&mut self) -> Result<ControlFlow<()>> {
        match self.options.batch {
            Batch::All => self.full_step(),
            Batch::Rows(k) => {
                let draws = self.problem.y.len().max(LEAST_DRAWS);
                self.stochastic(draws.div_ceil(k), self.options.batch)
            }
        }
    }

    /// The weights to judge, constant column included.
    fn result(&self) -> Vec<f64> {
        if S == 1 || self.options.average == Average::None || self.counted == 0 {
            return self.iterate.weights();
        }
        let mut sum = self.iterate.sum();
        sum.iter_mut().for_each(|w| *w /= self.counted as f64);
        sum
    }

    fn split(&self, w: Vec<f64>, b: f64) -> (Vec<f64>, f64) {
        let (w, penalised) = self.problem.split(w, self.sweep.design.bias);
        if self.problem.intercept == Intercept::Free { (w, b) } else { (w, penalised) }
    }

    /// `steps` steps over drawn rows. Breaks when the steps of the window have become short.
    fn stochastic(&mut self, steps: usize, batch: Batch) -> Result<ControlFlow<()>> {
        let Batch::Rows(k) = batch else { unreachable!("a full batch has steps of its own") };
        let ahead = (AHEAD_STEPS / k).max(1);
        let (mut rows, mut eta) = (vec![0u32; ahead * k], vec![0.0; ahead]);
        let mut done = 0;
        while done < steps {
            self.monitor.poll()?;
            let count = ahead.min(steps - done);
            self.options.step_size.fill(self.t + 1, self.lambda, self.offset, &mut eta[..count])?;
            rows[..count * k].iter_mut().for_each(|row| *row = self.draw.next(&mut self.random));
            for step in 0..count {
                let upcoming = &rows[(step * k).min(rows.len())..count * k];
                if k == 1 {
                    self.prefetch(upcoming);
                    self.single(upcoming[0] as usize, eta[step]);
                } else {
                    self.several(&upcoming[..k], eta[step]);
                }
                if self.window.is_still() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            done += count;
        }
        Ok(ControlFlow::Continue(()))
    }

    #[inline(always)]
    fn prefetch(&self, upcoming: &[u32]) {
        let design = &self.sweep.design;
        if let Some(&next) = upcoming.get(AHEAD / 2) {
            design.prefetch(next as usize);
        }
        if let Some(&next) = upcoming.get(AHEAD) {
            design.prefetch_header(next as usize);
            self.shares.prefetch(next as usize);
            crate::data::kernels::prefetch(&self.draw.squared_norm, next as usize, 8);
            crate::data::kernels::prefetch(self.problem.y, next as usize, 8);
        }
    }

    /// A step on one row.
    #[inline(always)]
    fn single(&mut self, i: usize, eta: f64) {
        let (design, y) = (self.sweep.design, self.problem.y[i]);
        let before = self.iterate.squared_norm;
        let product = self.iterate.dot(&design, i);
        let slope = -self.loss.derivative(y * (product + self.b));
        self.shares.visit(i, slope);
        let factor = 1.0 - eta * self.lambda;
        self.iterate.shrink(factor);
        let delta = eta * slope * y;
        let squared = self.draw.squared_norm[i];
        if slope != 0.0 {
            self.iterate.add(&design, i, delta, factor * product, squared);
        }
        self.finish(Step { before, factor, product: delta * product, added: delta * delta * squared, push: delta });
    }

    /// A step on several rows.
    fn several(&mut self, rows: &[u32], eta: f64) {
        let design = self.sweep.design;
        let before = self.iterate.squared_norm;
        let share = eta / rows.len() as f64;
        let mut moves = Vec::with_capacity(rows.len());
        let (mut product_sum, mut push) = (0.0, 0.0);
        for &i in rows {
            let (i, y) = (i as usize, self.problem.y[i as usize]);
            let product = self.iterate.dot(&design, i);
            let slope = -self.loss.derivative(y * (product + self.b));
            self.shares.visit(i, slope);
            if slope != 0.0 {
                let delta = share * slope * y;
                moves.push((i, delta));
                product_sum += delta * product;
                push += delta;
            }
        }
        let factor = 1.0 - eta * self.lambda;
        self.iterate.shrink(factor);
        for (i, delta) in moves {
            let product = self.iterate.dot(&design, i);
            self.iterate.add(&design, i, delta, product, self.draw.squared_norm[i]);
        }
        let added = self.iterate.squared_norm - factor * (factor * before + 2.0 * product_sum);
        self.finish(Step { before, factor, product: product_sum, added: added.max(0.0), push });
    }

    /// A step on all rows.
    fn full_step(&mut self) -> Result<ControlFlow<()>> {
        let Problem { y, cost, .. } = self.problem;
        let w = self.iterate.weights();
        let mut margins = vec![0.0; y.len()];
        self.sweep.margins(y, &w, &mut margins);
        self.monitor.poll()?;
        let mut eta = [0.0];
        self.options.step_size.fill(self.t + 1, self.lambda, self.offset, &mut eta)?;
        let mut push = 0.0;
        let moves: Vec<f64> = (0..y.len())
            .map(|i| {
                let slope = -self.loss.derivative(margins[i] + y[i] * self.b);
                self.shares.visit(self.draw.representative[i] as usize, slope);
                let delta = eta[0] * cost[i] * self.lambda * slope * y[i];
                push += delta;
                delta
            })
            .collect();
        let mut change = vec![0.0; w.len()];
        self.sweep.weighted_sum(&moves, &mut change);
        self.monitor.poll()?;
        let before = self.iterate.squared_norm;
        let factor = 1.0 - eta[0] * self.lambda;
        self.iterate.move_all(factor, &change);
        let (product, added) = (dot(&w, &change), dot(&change, &change));
        self.finish(Step { before, factor, product, added, push });
        Ok(if self.window.is_still() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Projection, intercept, average and window.
    #[inline(always)]
    fn finish(&mut self, step: Step) {
        let mut projection = 1.0;
        if self.options.projects && self.iterate.squared_norm > self.radius * self.radius {
            projection = self.radius / self.iterate.squared_norm.sqrt();
            self.iterate.shrink(projection);
        }
        self.t += 1;
        let b = self.b;
        if self.problem.intercept == Intercept::Free {
            self.b = (b + self.height * step.push).clamp(-self.reach, self.reach);
        }
        if S > 1 {
            self.iterate.count();
            self.b_sum += self.b;
            self.counted += 1;
        }
        if self.window.limit > 0.0 {
            let rest = projection * step.factor - 1.0;
            let squared = rest * rest * step.before
                + projection * (2.0 * rest * step.product + projection * step.added)
                + (self.b - b).powi(2);
            self.window.push(squared.max(0.0).sqrt());
        }
    }
}

/// What a step did to the weights: `w <- factor w + p`.
struct Step {
    /// `|w|^2` before.
    before: f64,
    factor: f64,
    /// `w . p`, with `w` as it was before.
    product: f64,
    /// `|p|^2`.
    added: f64,
    /// Sum of the coefficients of the rows in `p`.
    push: f64,
}

/// The lengths of the last steps and their sum.
struct Window {
    lengths: Vec<f64>,
    at: usize,
    seen: usize,
    sum: f64,
    limit: f64,
}

impl Window {
    fn new((steps, limit): (usize, f64)) -> Self {
        let len = if limit > 0.0 { steps.max(1) } else { 0 };
        Self { lengths: vec![0.0; len], at: 0, seen: 0, sum: 0.0, limit }
    }

    fn push(&mut self, length: f64) {
        self.sum += length - self.lengths[self.at];
        self.lengths[self.at] = length;
        self.at += 1;
        self.seen += 1;
        if self.at == self.lengths.len() {
            self.at = 0;
            self.sum = self.lengths.iter().sum(); // free of the rounding of many differences
        }
    }

    #[inline(always)]
    fn is_still(&self) -> bool {
        self.limit > 0.0 && self.seen >= self.lengths.len() && self.sum <= self.limit
    }
}

/// 1, 2, 3, 4, 6, 8, 12, 16, ...
fn is_look(epoch: usize) -> bool {
    epoch.is_power_of_two() || (epoch % 3 == 0 && (epoch / 3).is_power_of_two())
}

#[cfg(test)]
mod tests;
