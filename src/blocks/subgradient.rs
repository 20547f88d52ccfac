//! Subgradient descent over a store, block by block: Pegasos on blocks, with which ChangRoth11 compare
//! (BM-Pegasos, section 7.1).
//!
//! The steps are those of [`crate::fit::baselines::subgradient`]. An epoch loads every block once, in random
//! order, and steps over its rows: one step on the whole block ([`Batch::All`]: the block is the mini-batch),
//! or as many draws from it as its share of all costs asks for ([`Batch::Rows`]). Weights, their sum and the
//! visits of all rows stay in memory; of the data one block does.
//!
//! **Gap.** As in memory, the dual point is made of the mean slopes of the rows at their visits
//! ([`Shares`]). A row that no draw has chosen is visited while its block is there, so that every dual
//! variable is known when an evaluation begins, with it the cut that moves the point onto
//! `sum y_i a_i = 0`, and one scan is enough for the margins and for `sum a_i y_i x_i`.
//!
//! Departures from the fit in memory: a row drawn from its block, not from all rows; rows that are equal are
//! not told from each other, so results depend on the order of the rows, and weight 2 draws a row twice as
//! often without being the row twice.
//!
//! [`Batch::All`]: crate::fit::baselines::subgradient::Batch::All
//! [`Batch::Rows`]: crate::fit::baselines::subgradient::Batch::Rows

use rayon::prelude::*;

use super::budget::{Groups, MemoryPlan, Needs};
use super::choice::Policy;
use super::gap::{At, Decisions, GapSums, best};
use super::outcome::BlockOutcome;
use super::settings::{BlockSettings, DualsIn, Waiting};
use super::sums::{Shift, Sums};
use super::task::BinaryTask;
use super::trainer::check_row_count;
use crate::fit::baselines::subgradient;
use crate::fit::baselines::subgradient::bound::Shares;
use crate::fit::baselines::subgradient::trajectory::{Scale, Trajectory};
use crate::fit::baselines::subgradient::{
    Evaluation, LEAST_DRAWS, PartialProblem, SubgradientOptions, SubgradientState, constant_column,
    is_evaluated_after,
};
use crate::fit::sweep::dot;
use crate::fit::{Certificate, Intercept, Monitor, Problem, Reading, Status, certificate};
use crate::loss::{Loss, LossKind, with_loss};
use crate::matrix::{Matrix, Rows as _};
use crate::source::fetch::Fetch;
use crate::source::resident::{Chosen, Resident, ResidentRows};
use crate::store::columns;
use crate::store::format::checksum;
use crate::store::reader::Store;
use crate::{Error, Result, memory};

/// Rows between two calls of the monitor in a scan.
const POLL_ROWS: usize = 256;

/// What became of one problem.
pub struct Descended {
    /// Weights, certificate and counts.
    pub outcome: BlockOutcome,
    /// Its objective and bound at each evaluation.
    pub looks: Vec<Evaluation>,
}

/// Bytes of the state of a problem: weights and their sum, those to judge and those of the dual point; visits
/// of the rows, decision values with a sorted copy.
fn state_bytes(store: &Store) -> u64 {
    let (n, d) = (store.meta().n_rows, store.meta().n_used as u64 + 1);
    32 * d + 48 * n
}

/// Descends on all problems within so many bytes, as many side by side as fit into half of them.
///
/// # Errors
/// [`crate::Error::Parameter`], [`crate::Error::Budget`], [`crate::Error::Corrupt`], [`crate::Error::Io`],
/// [`crate::Error::Overflow`], [`crate::Error::Cancelled`], and those of the caller's step lengths.
pub fn fit(
    store: &Store,
    tasks: &[BinaryTask],
    loss: LossKind,
    intercept: Intercept,
    options: &SubgradientOptions<'_>,
    budget: u64,
    monitor: &dyn Monitor,
) -> Result<Vec<Descended>> {
    check_row_count(store)?;
    options.check(store.meta().n_rows as usize)?;
    let state_bytes = state_bytes(store);
    let size = ((budget / 2 / state_bytes) as usize).clamp(1, tasks.len().max(1));
    let mut done = Vec::new();
    for tasks in tasks.chunks(size) {
        let settings = no_cache(loss, options, budget);
        let needs =
            Needs::binary(store, &settings, Groups { size: tasks.len(), on_disk: false, state_bytes });
        let plan = MemoryPlan::new(store, &settings, &needs)?;
        let group = std::thread::scope(|scope| {
            let fetch = Fetch::start(scope, store, &plan.blocks, Vec::new(), plan.keeps_stored, monitor)?;
            let method = Method { loss, intercept, options: *options };
            let mut group = Group::new(store, &plan, fetch, tasks, method, monitor)?;
            group.run()?;
            group.finish()
        })?;
        done.extend(group);
    }
    Ok(done)
}

/// Settings by which the budget is divided: all of it for the block.
fn no_cache(loss: LossKind, options: &SubgradientOptions<'_>, budget: u64) -> BlockSettings<'static> {
    BlockSettings {
        loss,
        // What a free intercept needs of memory is part of the states.
        intercept: Intercept::None,
        tol: options.tol,
        max_passes: options.max_epochs,
        seed: options.seed,
        budget,
        policy: Policy::None,
        cache_share: None,
        rounds: 1,
        round_tol: 0.0,
        keeps_stored: true,
        waiting: Waiting::Rest,
        duals: DualsIn::Memory,
        map: None,
    }
}

/// One problem under way.
struct Running<'a> {
    task: &'a BinaryTask,
    scale: Scale,
    /// Sum of the costs.
    total: f64,
    /// Where the descent is and how often rows were short of their margins; nothing after a failed step.
    at: Option<(Trajectory, Shares)>,
    /// Of each block, at its rows' mean slopes when it was last there.
    sums: Vec<Sums>,
    /// Best lower bound.
    dual: f64,
    looks: Vec<Evaluation>,
    visits: u64,
    end: Option<End>,
}

/// How a problem ended.
struct End {
    w: Vec<f64>,
    b: f64,
    certificate: Certificate,
    status: Status,
    n_iter: usize,
    loads: f64,
}

/// What is minimised, and how.
#[derive(Clone, Copy)]
struct Method<'a> {
    loss: LossKind,
    intercept: Intercept,
    options: SubgradientOptions<'a>,
}

/// The problems that descend side by side.
struct Group<'a> {
    store: &'a Store,
    plan: &'a MemoryPlan,
    fetch: Fetch<'a>,
    resident: Resident,
    /// The block in memory.
    loaded_block: Option<usize>,
    running: Vec<Running<'a>>,
    method: Method<'a>,
    monitor: &'a dyn Monitor,
    loaded_rows: u64,
    last_gap: f64,
}

impl<'a> Group<'a> {
    fn new(
        store: &'a Store,
        plan: &'a MemoryPlan,
        fetch: Fetch<'a>,
        tasks: &'a [BinaryTask],
        method: Method<'a>,
        monitor: &'a dyn Monitor,
    ) -> Result<Self> {
        let Method { loss, intercept, options } = method;
        let meta = store.meta();
        let constant = intercept.penalised_height().powi(2);
        let n_cols = meta.n_used + usize::from(constant != 0.0);
        let (largest, mean) =
            (meta.max_squared_norm + constant, meta.sum_squared_norm / meta.n_rows as f64 + constant);
        let running = tasks.iter().map(|task| {
            let total = store.total(&task.cost);
            let scale = with_loss!(loss, loss => Scale::new(loss, intercept, total, largest, mean));
            let walk = Trajectory::new(n_cols, &options, &SubgradientState::default())?;
            let at = Some((walk, Shares::new(meta.n_rows as usize)));
            let sums = vec![Sums::default(); plan.blocks.len()];
            let (dual, looks) = (f64::NEG_INFINITY, Vec::new());
            Ok(Running { task, scale, total, at, sums, dual, looks, visits: 0, end: None })
        });
        let running = running.collect::<Result<Vec<_>>>()?;
        let resident = Resident::new(plan.width, meta.n_used, plan.arena.rows, plan.arena.entries)?;
        let last_gap = f64::INFINITY;
        Ok(Self {
            store,
            plan,
            fetch,
            resident,
            loaded_block: None,
            running,
            method,
            monitor,
            loaded_rows: 0,
            last_gap,
        })
    }

    /// Descends until every problem has ended.
    fn run(&mut self) -> Result<()> {
        for epoch in 1..=self.method.options.max_epochs {
            let order = self.plan.order(self.method.options.seed, epoch);
            for (step, &(block, next)) in order.iter().enumerate() {
                self.load(block, next)?;
                self.visit(block, epoch)?;
                self.report(epoch - 1, step + 1);
            }
            let is_last = epoch == self.method.options.max_epochs;
            if is_last || is_evaluated_after(epoch) || self.running.iter().any(|running| running.is_still()) {
                self.evaluate(epoch, is_last)?;
            }
            if self.running.iter().all(|running| running.end.is_some()) {
                break;
            }
            if epoch.is_power_of_two() {
                for (walk, shares) in self.running.iter_mut().filter_map(|running| running.at.as_mut()) {
                    shares.restart();
                    walk.restart(self.method.options.average);
                }
            }
            for (walk, _) in self.running.iter_mut().filter_map(|running| running.at.as_mut()) {
                walk.iterate.renew_norm();
            }
        }
        Ok(())
    }

    fn report(&self, epoch: usize, step: usize) {
        let passes = epoch as f64 + step as f64 / self.plan.blocks.len() as f64;
        let bytes = self.fetch.bytes_read();
        let (rows, gap) = (self.loaded_rows, self.last_gap);
        self.monitor.observe_reading(&Reading { solver: "subgradient", passes, rows, bytes, gap });
    }

    /// Puts a block in the place of the one in memory, and asks for the next.
    fn load(&mut self, block: usize, next: usize) -> Result<()> {
        let Self { store, plan, fetch, resident, monitor, .. } = self;
        let pages = &plan.blocks[block];
        if self.loaded_block != Some(block) {
            self.loaded_block = None;
            resident.keep(&[]);
            fetch.with(block, |bytes| resident.add_beside(store, pages, bytes, *monitor, |_| Ok(())))?;
            self.loaded_block = Some(block);
            self.loaded_rows += store.size(pages).0 as u64;
        }
        if next != block {
            fetch.ask(next);
        }
        Ok(())
    }

    /// Calls `f` with each open problem and its number.
    fn each(
        &mut self,
        f: impl Fn(usize, &mut Running<'a>, &ResidentRows<'_>) -> Result<()> + Sync,
    ) -> Result<()> {
        let rows = self.resident.rows();
        self.running
            .par_iter_mut()
            .enumerate()
            .filter(|(_, running)| running.end.is_none())
            .try_for_each(|(k, running)| f(k, running, &rows))
    }

    /// Steps over the block in memory.
    fn visit(&mut self, block: usize, epoch: usize) -> Result<()> {
        let (Method { loss, intercept, options }, monitor) = (self.method, self.monitor);
        let all_draws = (self.store.meta().n_rows as usize).max(LEAST_DRAWS) as f64;
        self.each(|k, running, rows| {
            let (chosen, y) = running.task.choose(rows, &[]);
            if chosen.ids.is_empty() {
                return Ok(());
            }
            let cost: f64 = chosen.cost.iter().sum();
            let draws = ((all_draws * cost / running.total).round() as usize).max(1);
            let rows = Matrix::from(rows.view);
            let problem =
                Problem { rows: &rows, ids: Some(&chosen.ids), y: &y, cost: &chosen.cost, intercept };
            let number = checksum(7, &[epoch, block, k].map(|x| (x as u64).to_le_bytes()).concat());
            let part = PartialProblem { problem, scale: running.scale, draws, number };
            let Some((walk, mut all)) = running.at.take() else { return Ok(()) };
            let (walk, shares) =
                subgradient::visit(&part, loss, &options, (walk, all.gather(&chosen.positions)), monitor)?;
            running.sums[block] = with_loss!(loss, loss => sums(loss, &y, &chosen.cost, &shares));
            all.scatter(&chosen.positions, &shares);
            running.visits += draws as u64;
            running.at = Some((walk, all));
            Ok(())
        })
    }

    /// Objective and bound of the open problems by one scan; ends those that are done.
    fn evaluate(&mut self, epoch: usize, is_last: bool) -> Result<()> {
        with_loss!(self.method.loss, loss => self.evaluate_by(loss, epoch, is_last))
    }

    fn evaluate_by<L: Loss>(&mut self, loss: L, epoch: usize, is_last: bool) -> Result<()> {
        let (Method { intercept, options, .. }, n) = (self.method, self.store.meta().n_rows as usize);
        let mut scans: Vec<Scan> =
            self.running.iter().map(|running| Scan::new(running, &options, intercept, n)).collect();
        // The block in memory first: it need not be loaded.
        let mut order: Vec<usize> = (0..self.plan.blocks.len()).collect();
        order.sort_by_key(|&block| self.loaded_block != Some(block));
        for (step, &block) in order.iter().enumerate() {
            self.load(block, order.get(step + 1).copied().unwrap_or(block))?;
            let (rows, monitor) = (self.resident.rows(), self.monitor);
            scans.par_iter_mut().zip(&self.running).try_for_each(|(scan, running)| {
                if running.end.is_some() {
                    Ok(())
                } else {
                    scan.read(loss, running, &rows, intercept, monitor)
                }
            })?;
        }
        let (seconds, max_squared_norm) = (self.monitor.seconds(), self.store.meta().max_squared_norm);
        let loads = self.loaded_rows as f64 / n as f64;
        self.last_gap = 0.0;
        for (scan, running) in scans.into_iter().zip(&mut self.running) {
            let (None, Some((walk, _))) = (&running.end, &running.at) else { continue };
            let Scan { w, dual_w, decisions, sums, .. } = scan;
            let is_free = intercept == Intercept::Free;
            let (b, losses) = if is_free { best(loss, decisions) } else { (0.0, sums.losses) };
            let (norm, total, squared) =
                (max_squared_norm.sqrt() + intercept.penalised_height(), running.total, dot(&w, &w));
            let at =
                At { n_rows: n, n_weights: w.len(), squared, losses, intercept: b, norm, total, is_free };
            let radius = certificate::distance(&dual_w, &w) + sums.rounding_of_weights(n, norm);
            let Certificate { primal, dual } = sums.certificate(loss, &at, radius);
            if !primal.is_finite() {
                return Err(Error::Overflow { what: "objective", max_squared_norm });
            }
            running.dual = running.dual.max(dual);
            let certificate = Certificate { primal, dual: running.dual };
            let before = running.looks.last().map(|look| look.primal);
            let (steps, norm) = (walk.t, walk.iterate.squared_norm.sqrt());
            running.looks.push(Evaluation { epoch, steps, seconds, primal, dual: running.dual, norm });
            let gap = certificate.relative_gap();
            self.last_gap = self.last_gap.max(gap);
            let is_flat = options.objective_tol > 0.0
                && before.is_some_and(|before| (before - primal).abs() <= options.objective_tol * primal);
            let status = match () {
                () if gap <= options.tol => Status::Converged,
                () if is_flat || walk.window.is_still() => Status::Stalled,
                () if is_last => Status::MaxIter,
                () => continue,
            };
            running.end = Some(End { w, b, certificate, status, n_iter: epoch, loads });
        }
        self.report(epoch, 0);
        Ok(())
    }

    /// What became of the problems, in the columns of the input.
    fn finish(self) -> Result<Vec<Descended>> {
        let (store, intercept, d) = (self.store, self.method.intercept, self.store.meta().n_used);
        let old = store.old_columns()?;
        let n_rows = store.meta().n_rows as f64;
        let ended = self
            .running
            .into_iter()
            .filter_map(|running| Some((running.end?, running.looks, running.visits)));
        let descended = |(end, looks, visits): (End, Vec<Evaluation>, u64)| {
            let End { mut w, b, certificate, status, n_iter, loads } = end;
            let b = if let Intercept::Penalised(scale) = intercept { scale * w[d] } else { b };
            w.truncate(d);
            memory::resize(&mut w, store.meta().n_cols, 0.0);
            columns::restore(&old, &mut w);
            let passes = visits as f64 / n_rows + looks.len() as f64;
            Descended {
                outcome: BlockOutcome { w, intercept: b, certificate, status, n_iter, passes, loads },
                looks,
            }
        };
        Ok(ended.map(descended).collect())
    }
}

impl Running<'_> {
    /// Whether the steps of the window have become short.
    fn is_still(&self) -> bool {
        self.end.is_none() && self.at.as_ref().is_some_and(|(walk, _)| walk.window.is_still())
    }
}

/// Sums of rows at their mean slopes.
fn sums<L: Loss>(loss: L, y: &[f64], cost: &[f64], shares: &Shares) -> Sums {
    let mut sums = Sums::default();
    for (k, (&y, &c)) in y.iter().zip(cost).enumerate() {
        sums.add(loss, 1.0, y, c, c * shares.mean(k).unwrap_or(0.0));
    }
    sums
}

/// What a scan gathers of one problem.
struct Scan {
    /// The weights to judge.
    w: Vec<f64>,
    /// `sum a_i y_i x_i` of the dual point on its constraint.
    dual_w: Vec<f64>,
    /// The move onto it.
    shift: Shift,
    decisions: Decisions,
    sums: GapSums,
}

impl Scan {
    fn new(running: &Running<'_>, options: &SubgradientOptions<'_>, intercept: Intercept, n: usize) -> Self {
        let w = running.at.as_ref().map_or_else(Vec::new, |(walk, _)| walk.result(options.average));
        let mut sums = Sums::default();
        running.sums.iter().for_each(|block| sums.join(block));
        let is_free = intercept == Intercept::Free;
        let shift = sums.shift(if is_free { sums.all[1] - sums.all[0] } else { 0.0 });
        let room = if is_free { n } else { 0 };
        let decisions = Decisions { f: memory::zeros(room), signed: memory::zeros(room) };
        Self { dual_w: memory::zeros(w.len()), w, shift, decisions, sums: GapSums::default() }
    }

    /// Reads the rows in memory.
    fn read<L: Loss>(
        &mut self,
        loss: L,
        running: &Running<'_>,
        rows: &ResidentRows<'_>,
        intercept: Intercept,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let Some((_, shares)) = &running.at else { return Ok(()) };
        let (chosen, y) = running.task.choose(rows, &[]);
        let any = Matrix::from(rows.view);
        let Chosen { ids, positions, cost, .. } = &chosen;
        let problem = Problem { rows: &any, ids: Some(ids), y: &y, cost, intercept };
        let design = constant_column(&problem);
        for i in 0..ids.len() {
            if i % POLL_ROWS == 0 {
                monitor.poll()?;
            }
            let (y, c, position) = (y[i], cost[i], positions[i] as usize);
            let f = design.dot(i, &self.w);
            let a = c * shares.mean(position).unwrap_or(0.0);
            let a = a - self.shift.cut(y, c, a);
            self.sums.add(loss, y, c, a, y * f);
            self.sums.longest = self.sums.longest.max(design.row_len(i));
            if a != 0.0 {
                design.add_scaled(i, a * y, &mut self.dual_w);
            }
            if intercept == Intercept::Free {
                (self.decisions.f[position], self.decisions.signed[position]) = (f, y * c);
            } else {
                self.sums.losses += c * loss.value(y * f);
            }
        }
        Ok(())
    }
}
