//! The steps of a descent, the evaluations of its objective, and its stops.

use std::ops::ControlFlow;

use super::bound::{Bound, Shares, evaluate};
use super::draw::Draw;
use super::options::{Average, Batch, LEAST_DRAWS, SubgradientOptions};
use super::subset::Subset;
use super::trajectory::{Scale, SubgradientState, SubgradientStep, Trajectory};
use crate::fit::dual::active::{Random, random};
use crate::fit::monitor::{Monitor, Progress};
use crate::fit::params::SolverKind;
use crate::fit::problem::{Intercept, Problem, Solution, Status};
use crate::fit::sweep::{Sweep, dot};
use crate::loss::Loss;
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::matrix::kernels::prefetch;
use crate::matrix::rows::ROWS_AHEAD;
use crate::memory::CollectLarge;
use crate::{Result, memory};

/// Steps for which rows and step lengths are drawn ahead of time.
const AHEAD_STEPS: usize = 256;
/// An evaluation of the objective.
#[derive(Clone, Copy, Debug)]
pub struct Evaluation {
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

/// A part of the rows of a problem, to be stepped over.
pub struct PartialProblem<'a> {
    /// These rows.
    pub problem: Problem<'a>,
    /// The scale of the whole problem.
    pub scale: Scale,
    /// Rows to be drawn.
    pub draws: usize,
    /// Which random numbers.
    pub number: u64,
}

/// A running descent.
pub struct SubgradientDescent<'a, L> {
    problem: Problem<'a>,
    loss: L,
    options: SubgradientOptions<'a>,
    monitor: &'a dyn Monitor,
    sweep: Sweep<'a>,
    scale: Scale,
    draw: Draw,
    /// Where rows are drawn without replacement.
    subset: Option<Subset>,
    shares: Shares,
    trajectory: Trajectory,
    random: Random,
}

impl<'a, L: Loss> SubgradientDescent<'a, L> {
    /// A descent from `state`, which is that of no steps at first.
    pub fn new(
        problem: &Problem<'a>,
        loss: L,
        options: &SubgradientOptions<'a>,
        state: &SubgradientState,
        monitor: &'a dyn Monitor,
    ) -> Result<Self> {
        let Problem { y, cost, intercept, .. } = *problem;
        options.check(y.len())?;
        let design = constant_column(problem);
        monitor.poll()?;
        let draw = Draw::new(&design, y, cost);
        monitor.poll()?;
        let total: f64 = cost.iter().sum();
        let largest = draw.squared_norm.iter().copied().fold(0.0, f64::max);
        let mean = draw.squared_norm.iter().zip(cost).map(|(s, c)| s * c).sum::<f64>() / total;
        Ok(Self {
            problem: *problem,
            loss,
            options: *options,
            monitor,
            scale: Scale::new(loss, intercept, total, largest, mean),
            shares: Shares::new(y.len()),
            draw,
            subset: subset(options, cost),
            trajectory: Trajectory::new(design.n_cols(), options, state)?.on(y.len()),
            random: random(options.seed, state.steps),
            sweep: Sweep::new(design, monitor),
        })
    }

    /// A descent on a part of the rows: it goes on from `trajectory`, and notes visits in the `shares` of
    /// these rows. Rows are drawn by their costs from the random numbers of the part's `number`.
    pub fn on_part(
        part: &PartialProblem<'a>,
        loss: L,
        options: &SubgradientOptions<'a>,
        (trajectory, shares): (Trajectory, Shares),
        monitor: &'a dyn Monitor,
    ) -> Self {
        let PartialProblem { problem, scale, number, .. } = part;
        let design = constant_column(problem);
        Self {
            problem: *problem,
            loss,
            options: *options,
            monitor,
            scale: *scale,
            shares,
            draw: Draw::in_order(&design, problem.cost),
            subset: subset(options, problem.cost),
            trajectory: trajectory.on(problem.y.len()),
            random: random(options.seed, *number),
            sweep: Sweep::new(design, monitor),
        }
    }

    /// Steps over so many draws from the part, or one step on all of it; rows without a visit so far then
    /// count as visited once.
    pub fn visit(mut self, draws: usize) -> Result<(Trajectory, Shares)> {
        let _ = match self.options.batch {
            Batch::Rows(k) => self.stochastic(draws.div_ceil(k), k)?,
            Batch::Subset(k) => self.subsets(draws.div_ceil(k), k)?,
            Batch::All => self.full_step()?,
        };
        for i in 0..self.problem.y.len() {
            if self.shares.mean(i).is_none() {
                let product = self.trajectory.iterate.dot(&self.sweep.design, i);
                let slope = -self.loss.derivative(self.problem.y[i] * (product + self.trajectory.b));
                self.shares.visit(i, slope);
            }
        }
        self.trajectory.iterate.settle(&mut self.sweep);
        self.monitor.poll()?;
        Ok((self.trajectory, self.shares))
    }

    /// Descends until a stop.
    pub fn run(mut self) -> Result<(Solution, Vec<Evaluation>)> {
        let mut evaluations = Vec::new();
        let (mut best_dual, mut epoch) = (Bound::default(), 0);
        let (status, w, b, primal) = loop {
            epoch += 1;
            let is_still = self.epoch()?.is_break();
            let is_last = is_still || epoch >= self.options.max_epochs;
            if !is_last && !is_evaluated_after(epoch) {
                continue;
            }
            self.trajectory.iterate.settle(&mut self.sweep);
            let w = self.trajectory.result(self.options.average);
            let (b, primal) = evaluate(
                &mut self.sweep,
                &self.problem,
                self.loss,
                &w,
                &self.shares,
                &self.draw,
                &mut best_dual,
            )?;
            self.monitor.poll()?;
            let evaluation = Evaluation {
                epoch,
                steps: self.trajectory.t,
                seconds: self.monitor.seconds(),
                primal,
                dual: best_dual.value,
                norm: self.trajectory.iterate.squared_norm.sqrt(),
            };
            let gap = best_dual.certificate(primal).relative_gap();
            self.monitor.observe(&Progress {
                solver: "subgradient",
                iteration: epoch,
                accuracy: gap,
                search: None,
            });
            let before = evaluations.last().map(|evaluation: &Evaluation| evaluation.primal);
            evaluations.push(evaluation);
            let is_flat =
                before.is_some_and(|before| (before - primal).abs() <= self.options.objective_tol * primal);
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
            self.trajectory.iterate.renew_norm();
        };
        let (w, b) = self.split(w, b);
        let solution = Solution {
            w,
            intercept: b,
            alpha: memory::copy(&best_dual.alpha),
            certificate: best_dual.certificate(primal),
            status,
            n_iter: epoch,
            passes: epoch as f64 + passes_of_evaluation(&self.options) * evaluations.len() as f64,
            solver: SolverKind::Subgradient,
            is_consistent: false,
            evidence: None,
        };
        Ok((solution, evaluations))
    }

    /// A new suffix begins.
    fn restart(&mut self) {
        self.shares.restart();
        self.trajectory.restart(self.options.average);
    }

    /// One pass over the rows, then the state.
    pub fn pass(mut self) -> Result<SubgradientState> {
        let _ = match self.options.batch {
            Batch::Rows(k) => self.stochastic(self.problem.y.len().div_ceil(k), k)?,
            Batch::Subset(k) => self.subsets(self.problem.y.len().div_ceil(k), k)?,
            Batch::All => self.full_step()?,
        };
        self.trajectory.iterate.settle(&mut self.sweep);
        self.monitor.poll()?;
        Ok(self.trajectory.state())
    }

    fn epoch(&mut self) -> Result<ControlFlow<()>> {
        let draws = self.problem.y.len().max(LEAST_DRAWS);
        match self.options.batch {
            Batch::All => self.full_step(),
            Batch::Rows(k) => self.stochastic(draws.div_ceil(k), k),
            Batch::Subset(k) => self.subsets(draws.div_ceil(k), k),
        }
    }

    fn split(&self, w: Vec<f64>, b: f64) -> (Vec<f64>, f64) {
        let (w, penalised) = self.problem.split(w, self.sweep.design.bias);
        if self.problem.intercept == Intercept::Free { (w, b) } else { (w, penalised) }
    }

    /// `steps` steps over `k` drawn rows each. Breaks when the steps of the window have become short.
    fn stochastic(&mut self, steps: usize, k: usize) -> Result<ControlFlow<()>> {
        let ahead = (AHEAD_STEPS / k).max(1);
        let (mut rows, mut eta) = (memory::zeros::<u32>(ahead * k), memory::zeros(ahead));
        let mut done = 0;
        while done < steps {
            self.monitor.poll()?;
            let count = ahead.min(steps - done);
            self.options.step_size.fill(
                self.trajectory.t + 1,
                self.scale.lambda,
                self.scale.offset,
                &mut eta[..count],
            )?;
            rows[..count * k].iter_mut().for_each(|row| *row = self.draw.next(&mut self.random));
            for step in 0..count {
                let upcoming = &rows[(step * k).min(rows.len())..count * k];
                if k == 1 {
                    self.prefetch(upcoming);
                    self.single(upcoming[0] as usize, eta[step]);
                } else {
                    self.several(&upcoming[..k], eta[step]);
                }
                if self.trajectory.window.is_still() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            done += count;
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The same over subsets of the rows.
    fn subsets(&mut self, steps: usize, k: usize) -> Result<ControlFlow<()>> {
        let (mut rows, mut eta) = (memory::with_capacity::<u32>(k), [0.0]);
        for _ in 0..steps {
            self.monitor.poll()?;
            let (lambda, offset) = (self.scale.lambda, self.scale.offset);
            self.options.step_size.fill(self.trajectory.t + 1, lambda, offset, &mut eta)?;
            let Some(subset) = &mut self.subset else { break };
            rows.clear();
            rows.extend(subset.draw(k, &mut self.random).iter().map(|&p| self.draw.order[p as usize]));
            self.several(&rows, eta[0]);
            if self.trajectory.window.is_still() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    #[inline(always)]
    fn prefetch(&self, upcoming: &[u32]) {
        let design = &self.sweep.design;
        if let Some(&next) = upcoming.get(ROWS_AHEAD) {
            design.prefetch(next as usize);
        }
        if let Some(&next) = upcoming.get(2 * ROWS_AHEAD) {
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
        let before = self.trajectory.iterate.squared_norm;
        let product = self.trajectory.iterate.dot(&design, i);
        let slope = -self.loss.derivative(y * (product + self.trajectory.b));
        self.shares.visit(i, slope);
        let factor = 1.0 - eta * self.scale.lambda;
        self.trajectory.iterate.shrink(factor);
        let delta = eta * slope * y;
        let squared = self.draw.squared_norm[i];
        if slope != 0.0 {
            self.trajectory.iterate.add(&design, i, delta, factor * product, squared);
        }
        self.finish(SubgradientStep {
            before,
            factor,
            product: delta * product,
            added: delta * delta * squared,
            push: delta,
        });
    }

    /// A step on several rows.
    fn several(&mut self, rows: &[u32], eta: f64) {
        let design = self.sweep.design;
        let before = self.trajectory.iterate.squared_norm;
        let share = eta / rows.len() as f64;
        let mut moves = Vec::with_capacity(rows.len());
        let (mut product_sum, mut push) = (0.0, 0.0);
        for &i in rows {
            let (i, y) = (i as usize, self.problem.y[i as usize]);
            let product = self.trajectory.iterate.dot(&design, i);
            let slope = -self.loss.derivative(y * (product + self.trajectory.b));
            self.shares.visit(i, slope);
            if slope != 0.0 {
                let factor = self.subset.as_ref().map_or(1.0, |subset| subset.factor(i));
                let delta = share * slope * y * factor;
                moves.push((i, delta));
                product_sum += delta * product;
                push += delta;
            }
        }
        let (factor, is_empty) = (1.0 - eta * self.scale.lambda, moves.is_empty());
        self.trajectory.iterate.shrink(factor);
        for (i, delta) in moves {
            let product = self.trajectory.iterate.dot(&design, i);
            self.trajectory.iterate.add(&design, i, delta, product, self.draw.squared_norm[i]);
        }
        let added = self.trajectory.iterate.squared_norm - factor * (factor * before + 2.0 * product_sum);
        let added = if is_empty { 0.0 } else { added.max(0.0) };
        self.finish(SubgradientStep { before, factor, product: product_sum, added, push });
    }

    /// A step on all rows.
    fn full_step(&mut self) -> Result<ControlFlow<()>> {
        let Problem { y, cost, .. } = self.problem;
        let w = self.trajectory.iterate.weights();
        let mut margins = memory::zeros(y.len());
        self.sweep.margins(y, &w, &mut margins);
        self.monitor.poll()?;
        let mut eta = [0.0];
        self.options.step_size.fill(self.trajectory.t + 1, self.scale.lambda, self.scale.offset, &mut eta)?;
        let (mut push, total) = (0.0, cost.iter().sum::<f64>());
        let moves: Vec<f64> = (0..y.len())
            .map(|i| {
                let slope = -self.loss.derivative(margins[i] + y[i] * self.trajectory.b);
                self.shares.visit(self.draw.representative[i] as usize, slope);
                let delta = eta[0] * cost[i] / total * slope * y[i];
                push += delta;
                delta
            })
            .collect_large();
        let mut change = memory::zeros(w.len());
        self.sweep.weighted_sum(&moves, &mut change);
        self.monitor.poll()?;
        let before = self.trajectory.iterate.squared_norm;
        let factor = 1.0 - eta[0] * self.scale.lambda;
        self.trajectory.iterate.move_all(factor, &change);
        let (product, added) = (dot(&w, &change), dot(&change, &change));
        self.finish(SubgradientStep { before, factor, product, added, push });
        Ok(if self.trajectory.window.is_still() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// Projection, intercept, average and window.
    #[inline(always)]
    fn finish(&mut self, step: SubgradientStep) {
        let is_free = self.problem.intercept == Intercept::Free;
        self.trajectory.finish(step, &self.scale, &self.options, is_free);
    }
}

/// The rows without replacement, where the settings ask for it.
fn subset(options: &SubgradientOptions<'_>, cost: &[f64]) -> Option<Subset> {
    matches!(options.batch, Batch::Subset(_)).then(|| Subset::new(cost))
}

/// The rows of a problem with the constant column of a penalised intercept.
pub fn constant_column<'a>(problem: &Problem<'a>) -> Design<'a> {
    problem.design(problem.intercept.penalised_height())
}

/// Margins and the dual point; the average, where there is one.
fn passes_of_evaluation(options: &SubgradientOptions<'_>) -> f64 {
    if options.average == Average::None { 2.0 } else { 3.0 }
}

/// 1, 2, 3, 4, 6, 8, 12, 16, ...
pub fn is_evaluated_after(epoch: usize) -> bool {
    epoch.is_power_of_two() || (epoch.is_multiple_of(3) && (epoch / 3).is_power_of_two())
}
