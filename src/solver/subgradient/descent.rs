//! The steps of a descent, the looks at its objective, and its stops.

use std::ops::ControlFlow;

use super::bound::{self, Bound, Shares};
use super::draw::Draw;
use super::iterate::Iterate;
use super::window::Window;
use super::{Average, Batch, Look, Options, State};
use crate::data::Rows;
use crate::data::kernels::prefetch;
use crate::loss::Loss;
use crate::solver::active::{Random, random};
use crate::solver::sweep::{Sweep, dot};
use crate::solver::{Intercept, Monitor, Problem, Progress, Solution, SolverKind, Status, check_length};
use crate::{Error, Result};

/// Steps for which rows and step lengths are drawn ahead of time.
const AHEAD_STEPS: usize = 256;
/// Steps between the request for a row's memory and its use.
const AHEAD: usize = 8;
/// An epoch has as many draws as there are rows, but at least this many: looks at the objective should not be all the work, and
/// on small problems the number of draws must not tell a row of weight 2 from the row twice.
pub const LEAST_DRAWS: usize = 1024;

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
pub struct Descent<'a, R, L, const S: usize> {
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
    /// A descent from `state`, which is that of no steps at first.
    pub fn new(
        problem: &Problem<'a, R>,
        loss: L,
        options: &Options<'a>,
        state: &State,
        monitor: &'a dyn Monitor,
    ) -> Result<Self> {
        let Problem { y, cost, intercept, .. } = *problem;
        if let Batch::Rows(k) = options.batch
            && !(1..=y.len().max(LEAST_DRAWS)).contains(&k)
        {
            let rule = "at least 1, and at most the number of rows or 1024";
            return Err(Error::Parameter { name: "batch_size", value: k.to_string(), rule });
        }
        let design = problem.design(if let Intercept::Penalised(scale) = intercept { scale } else { 0.0 });
        monitor.poll()?;
        let draw = Draw::new(&design, y, cost);
        monitor.poll()?;
        let total: f64 = cost.iter().sum();
        let lambda = 1.0 / total;
        let largest = draw.squared_norm.iter().copied().fold(0.0, f64::max);
        let mean = draw.squared_norm.iter().zip(cost).map(|(s, c)| s * c).sum::<f64>() / total;
        let height = if mean > 0.0 { mean } else { 1.0 };
        let radius = (squared_radius(loss) / lambda).sqrt();
        let free_height = if intercept == Intercept::Free { height } else { 0.0 };
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
            offset: largest_curvature(loss) * (largest + free_height) / lambda,
            height,
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

    /// Descends until a stop.
    pub fn run(mut self) -> Result<(Solution, Vec<Look>)> {
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
            is_consistent: false,
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
    pub fn pass(mut self) -> Result<State> {
        let _ = match self.options.batch {
            Batch::Rows(k) => self.stochastic(self.problem.y.len().div_ceil(k), k)?,
            Batch::All => self.full_step()?,
        };
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
                self.stochastic(draws.div_ceil(k), k)
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

    /// `steps` steps over `k` drawn rows each. Breaks when the steps of the window have become short.
    fn stochastic(&mut self, steps: usize, k: usize) -> Result<ControlFlow<()>> {
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
            prefetch(&self.draw.squared_norm, next as usize, 8);
            prefetch(self.problem.y, next as usize, 8);
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

/// 1, 2, 3, 4, 6, 8, 12, 16, ...
fn is_look(epoch: usize) -> bool {
    epoch.is_power_of_two() || (epoch.is_multiple_of(3) && (epoch / 3).is_power_of_two())
}
