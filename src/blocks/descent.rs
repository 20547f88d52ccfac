//! The loop over blocks: they come in random order, each is trained on together with the cached rows, and the
//! rows for the next cache are chosen; after a pass, certificates.

use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use super::budget;
use super::budget::MemoryPlan;
use super::checkpoint::{DescentState, Position, SavedDescent};
use super::choice::{Policy, choose, lot};
use super::problem::{BlockProblem, BlockStep, CertifyScan, ProblemEnd};
use super::settings::{BlockSettings, Waiting};
use super::task::RowFolds;
use crate::fit::{Monitor, Reading, Status};
use crate::memory::CollectLarge;
use crate::source::fetch::Fetch;
use crate::source::resident::Resident;
use crate::store::format::checksum;
use crate::store::reader::Store;
use crate::{Result, memory};

/// The name of the solver.
pub const NAME: &str = "block_cd";
/// What distinguishes the random orders of epochs while the disk is slow: from this number on.
const FIRST_IDLE: u64 = 16;
/// A scan is due when the gap estimated on the way is below this many times the wanted one.
const PROMISING: f64 = 1.5;

/// One group of problems under way.
pub struct BlockDescent<'a, P> {
    store: &'a Store,
    folds: &'a RowFolds,
    settings: &'a BlockSettings<'a>,
    plan: &'a MemoryPlan,
    fetch: Fetch<'a>,
    monitor: &'a dyn Monitor,
    resident: Resident,
    running: Vec<P>,
    ends: Vec<Option<ProblemEnd>>,
    /// Block of each page.
    block_of: Vec<u32>,
    position: Position,
    loaded_rows: u64,
    scans: u64,
    /// The largest gap, estimated or certified, after the last whole pass: for progress only.
    last_gap: f64,
}

/// Calls `f` for all problems, [`budget::SIDE_BY_SIDE`] at a time, as the budget has counted.
fn side_by_side<P: BlockProblem>(
    running: &mut [P],
    f: &(dyn Fn(usize, &mut P) -> Result<()> + Sync),
) -> Result<()> {
    for (start, some) in (0..).step_by(budget::SIDE_BY_SIDE).zip(running.chunks_mut(budget::SIDE_BY_SIDE)) {
        some.par_iter_mut().enumerate().try_for_each(|(k, running)| f(start + k, running))?;
    }
    Ok(())
}

/// What a descent leaves behind.
pub struct Remains<P> {
    /// The problems.
    pub problems: Vec<P>,
    /// How they ended.
    pub ends: Vec<Option<ProblemEnd>>,
    /// Scans of the whole store.
    pub scans: u64,
    /// Stored bytes that were kept, by page.
    pub kept: Vec<Vec<u8>>,
}

impl<'a, P: BlockProblem> BlockDescent<'a, P> {
    /// Begins where the problems are.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn new(
        running: Vec<P>,
        folds: &'a RowFolds,
        settings: &'a BlockSettings<'a>,
        plan: &'a MemoryPlan,
        fetch: Fetch<'a>,
        monitor: &'a dyn Monitor,
    ) -> Result<Self> {
        let store = fetch.store();
        let resident = Resident::new(plan.width, store.meta().n_used, plan.arena.rows, plan.arena.entries)?;
        let mut block_of = vec![0; store.pages().len()];
        for (block, pages) in (0..).zip(&plan.blocks) {
            pages.iter().for_each(|&page| block_of[page as usize] = block);
        }
        let ends = running.iter().map(|_| None).collect();
        let (loaded_rows, scans) = (0, 0);
        let last_gap = f64::INFINITY;
        Ok(Self {
            store,
            folds,
            settings,
            plan,
            fetch,
            monitor,
            resident,
            running,
            ends,
            block_of,
            position: Position::default(),
            loaded_rows,
            scans,
            last_gap,
        })
    }

    /// Takes over the state of a checkpoint.
    ///
    /// # Errors
    /// Those of the store.
    pub fn resume(&mut self, saved: SavedDescent<P>) -> Result<Position> {
        (self.loaded_rows, self.scans, self.ends) = (saved.loaded_rows, saved.scans, saved.ends);
        self.position = saved.position;
        self.running.iter_mut().zip(saved.states).for_each(|(running, state)| running.take(state));
        self.reload(&saved.cached)?;
        Ok(self.position)
    }

    /// Descends until every problem has ended. `keep` is called after each step.
    ///
    /// # Errors
    /// Those of the store, of the steps and of `keep`; [`crate::Error::Cancelled`].
    pub fn run(&mut self, mut keep: impl FnMut(&Self) -> Result<()>) -> Result<()> {
        let n_blocks = self.plan.blocks.len();
        while self.position.pass < self.settings.max_passes {
            let order = self.plan.order(self.settings.seed, self.position.pass);
            if self.position.step == 0 {
                self.running.iter_mut().for_each(P::begin_pass);
            }
            while self.position.step < n_blocks {
                let (block, next) = order[self.position.step];
                self.step(block, next, self.position)?;
                self.position.step += 1;
                self.report();
                keep(self)?;
            }
            self.position = Position { pass: self.position.pass + 1, step: 0 };
            if self.finish_pass(self.position.pass)? {
                break;
            }
        }
        Ok(())
    }

    fn report(&self) {
        let Position { pass, step } = self.position;
        let passes = pass as f64 + step as f64 / self.plan.blocks.len() as f64;
        let scanned = if self.plan.keeps_stored { 0 } else { self.scans * self.store.file_bytes() };
        let bytes = self.fetch.bytes_read() + scanned;
        let (rows, gap) = (self.loaded_rows, self.last_gap);
        self.monitor.observe_reading(&Reading { solver: NAME, passes, rows, bytes, gap });
    }

    /// The seed of everything that is drawn at a position.
    fn number(&self, position: Position, what: u64, problem: usize) -> u64 {
        let mut bytes = [0; 32];
        let numbers = [position.pass as u64, position.step as u64, what, problem as u64];
        bytes.chunks_exact_mut(8).zip(numbers).for_each(|(bytes, x)| bytes.copy_from_slice(&x.to_le_bytes()));
        checksum(2, &bytes)
    }

    /// Loads a block, works on it and the cached rows, and chooses what stays for the next block.
    fn step(&mut self, block: usize, next: usize, position: Position) -> Result<()> {
        let plan = self.plan;
        let is_whole = plan.blocks.len() == 1 && !self.resident.is_empty();
        let mut n_new = self.resident.len();
        if !is_whole {
            let pages = &plan.blocks[block];
            (n_new, _) = self.store.size(pages);
            if self.settings.waiting == Waiting::Train {
                self.work_until_read(block, position)?;
            }
            self.load(block, position)?;
            self.loaded_rows += n_new as u64;
            self.fetch.ask(next);
        }
        self.work(position, 1, self.settings.rounds, n_new)?;
        if plan.blocks.len() > 1 {
            self.choose(next, position)?;
        }
        Ok(())
    }

    /// Epochs over the cached rows until a block has been read, or nothing changes any more.
    fn work_until_read(&mut self, block: usize, position: Position) -> Result<()> {
        for epoch in FIRST_IDLE.. {
            if self.fetch.is_ready(block)? || !self.work(position, epoch, 1, 0)? {
                break;
            }
        }
        Ok(())
    }

    /// Decodes a block behind the cached rows, beside an epoch over these.
    fn load(&mut self, block: usize, position: Position) -> Result<()> {
        let numbers: Vec<u64> = (0..self.running.len()).map(|k| self.number(position, 0, k)).collect_large();
        let Self { store, folds, settings, plan, monitor, ends, fetch, resident, running, .. } = self;
        let is_open: Vec<bool> = ends.iter().map(Option::is_none).collect();
        let monitor = *monitor;
        fetch.with(block, |bytes| {
            resident.add_beside(store, &plan.blocks[block], bytes, monitor, |rows| {
                if rows.order.is_empty() {
                    return Ok(());
                }
                side_by_side(running, &|k, running| {
                    let step = BlockStep { settings, folds, number: numbers[k], rounds: 1, n_new: 0 };
                    if is_open[k] {
                        running.step(&rows, step, monitor)?;
                    }
                    Ok(())
                })
            })
        })
    }

    /// Epochs over the rows in memory; whether any dual variable has changed.
    fn work(&mut self, position: Position, what: u64, rounds: usize, n_new: usize) -> Result<bool> {
        let numbers: Vec<u64> =
            (0..self.running.len()).map(|k| self.number(position, what, k)).collect_large();
        let Self { resident, running, settings, folds, monitor, ends, .. } = self;
        let (rows, is_open) = (resident.rows(), ends.iter().map(Option::is_none).collect::<Vec<bool>>());
        let has_changed = AtomicBool::new(false);
        side_by_side(running, &|k, running| {
            let step = BlockStep { settings, folds, number: numbers[k], rounds, n_new };
            if is_open[k] && running.step(&rows, step, *monitor)? {
                has_changed.store(true, Ordering::Relaxed);
            }
            Ok(())
        })?;
        Ok(has_changed.into_inner())
    }

    /// Keeps the best rows that are not of the block to come.
    fn choose(&mut self, next: usize, position: Position) -> Result<()> {
        let seed = self.settings.seed ^ self.number(position, 2, 0);
        let mut score = memory::filled(f32::INFINITY, self.resident.len());
        let rows = self.resident.rows();
        match self.settings.policy {
            Policy::None => {}
            Policy::Random => {
                score
                    .iter_mut()
                    .zip(rows.positions)
                    .for_each(|(s, &position)| *s = lot(seed ^ 1, position) as f32);
            }
            Policy::Auto | Policy::Gradient | Policy::Projected | Policy::Steepest => {
                let (settings, folds) = (self.settings, self.folds);
                let step = BlockStep { settings, folds, number: seed, rounds: 0, n_new: 0 };
                for (running, _) in self.running.iter().zip(&self.ends).filter(|(_, end)| end.is_none()) {
                    running.scores(&rows, step, &mut score)?;
                }
            }
        }
        let (starts, mut page) = (self.store.starts(), 0);
        for &i in rows.order {
            while starts[page + 1] <= u64::from(rows.positions[i as usize]) {
                page += 1;
            }
            if self.block_of[page] as usize == next {
                score[i as usize] = f32::INFINITY;
            }
        }
        // Scores, choice and moves of a million rows take a good part of a second each.
        self.monitor.poll()?;
        let chosen = choose(&score, rows.positions, |i| self.resident.row_len(i), self.plan.cache, seed);
        self.monitor.poll()?;
        self.resident.keep(&chosen);
        Ok(())
    }

    /// Puts the cached rows of a checkpoint back, block by block.
    fn reload(&mut self, cached: &[u32]) -> Result<()> {
        for pages in self.plan.blocks.iter() {
            let before = self.resident.len();
            let bytes = crate::store::reader::FromFile;
            self.resident.add_beside(self.store, pages, &bytes, self.monitor, |_| Ok(()))?;
            let positions = self.resident.positions();
            let is_kept =
                |i: &u32| (*i as usize) < before || cached.binary_search(&positions[*i as usize]).is_ok();
            let kept: Vec<u32> = (0..positions.len() as u32).filter(is_kept).collect_large();
            self.resident.keep(&kept);
        }
        Ok(())
    }

    /// The state for a checkpoint.
    pub fn saved(&self) -> DescentState<'_, P> {
        let mut cached = memory::copy(self.resident.positions());
        cached.sort_unstable();
        let problems = self.running.iter().collect();
        let Self { position, loaded_rows, scans, .. } = *self;
        DescentState { position, loaded_rows, scans, cached, problems, ends: &self.ends }
    }

    /// The largest estimated gap of the problems under way.
    fn estimated_gap(&self) -> f64 {
        let open = self.running.iter().zip(&self.ends).filter(|(_, end)| end.is_none());
        open.map(|(running, _)| running.estimate(self.settings.intercept).relative_gap()).fold(0.0, f64::max)
    }

    /// Certifies the problems that promise to be done, all at the last pass; whether all are done.
    fn finish_pass(&mut self, pass: usize) -> Result<bool> {
        let is_last = pass == self.settings.max_passes;
        self.last_gap = self.estimated_gap();
        let gap = |problem: &P| problem.estimate(self.settings.intercept).relative_gap();
        let due: Vec<usize> = (0..self.running.len())
            .filter(|&k| self.ends[k].is_none())
            .filter(|&k| is_last || gap(&self.running[k]) <= PROMISING * self.settings.tol)
            .collect();
        if due.is_empty() {
            return Ok(false);
        }
        let problems: Vec<&P> = due.iter().map(|&k| &self.running[k]).collect();
        let Self { store, settings, folds, monitor, plan, .. } = *self;
        let source = &self.fetch.kept();
        let scan =
            CertifyScan { store, source, settings, folds, has_room: plan.has_room_for_margins, monitor };
        let certified = P::certify(&problems, &scan)?;
        self.scans += 1;
        let loads = self.loaded_rows as f64 / self.store.meta().n_rows as f64 + self.scans as f64;
        self.last_gap = certified.iter().map(|found| found.certificate.relative_gap()).fold(0.0, f64::max);
        self.report();
        for (k, certified) in due.into_iter().zip(certified) {
            let status = match certified.certificate.relative_gap() <= self.settings.tol {
                true => Status::Converged,
                false if is_last => Status::MaxIter,
                false => continue,
            };
            self.ends[k] = Some(ProblemEnd { certified, status, n_iter: pass, loads });
        }
        Ok(self.ends.iter().all(Option::is_some))
    }

    /// What is left of a descent for another one.
    pub fn into_parts(self) -> Remains<P> {
        Remains { problems: self.running, ends: self.ends, scans: self.scans, kept: self.fetch.into_kept() }
    }
}
