//! The blocks of a store, one after the other, as rows of a multinomial problem.

use super::budget::MemoryPlan;
use super::settings::{BlockSettings, SoftmaxCut};
use super::task::RowFolds;
use crate::Result;
use crate::fit::crammer_singer::ClassProblem;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::multinomial::passes::Setup;
use crate::fit::{Monitor, Reading};
use crate::matrix::lanes::Block;
use crate::source::fetch::Fetch;
use crate::source::mapped::mapped;
use crate::source::resident::Resident;

/// The name of the solver.
pub const NAME: &str = "block_newton";

/// Which rows of a store are read.
#[derive(Clone, Copy)]
pub enum RowPart<'a> {
    /// Those that have a cost.
    All,
    /// Those that have a cost and are not held out by this fold.
    Without(&'a RowFolds, u8),
    /// Those that are held out by this fold, each with cost 1.
    Only(&'a RowFolds, u8),
}

/// The rows of a store, block by block in a fixed order.
pub struct SoftmaxRows<'a> {
    /// `C` times the class weight, by class.
    cost: &'a [f64],
    settings: &'a BlockSettings<'a>,
    plan: &'a MemoryPlan,
    cut: SoftmaxCut,
    fetch: Fetch<'a>,
    monitor: &'a dyn Monitor,
    resident: Resident,
    /// The block in memory.
    loaded: Option<usize>,
    /// Tables of rows x classes, which live as long as a block is looked at.
    tables: [Block<LINE>; 2],
    /// Which rows are read.
    pub part: RowPart<'a>,
    /// Readings of all blocks so far.
    pub readings: usize,
    /// Rows loaded so far.
    pub loaded_rows: u64,
    /// The gap at the last step, for progress only.
    pub gap: f64,
}

impl<'a> SoftmaxRows<'a> {
    /// No block is in memory yet.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn new(
        cost: &'a [f64],
        settings: &'a BlockSettings<'a>,
        plan: &'a MemoryPlan,
        cut: SoftmaxCut,
        fetch: Fetch<'a>,
        monitor: &'a dyn Monitor,
    ) -> Result<Self> {
        let n_used = fetch.store().meta().n_used;
        let resident = Resident::new(plan.width, n_used, plan.arena.rows, plan.arena.entries)?;
        let tables = [Block::zeros(0), Block::zeros(0)];
        Ok(Self {
            cost,
            settings,
            plan,
            cut,
            fetch,
            monitor,
            resident,
            loaded: None,
            tables,
            part: RowPart::All,
            readings: 0,
            loaded_rows: 0,
            gap: f64::INFINITY,
        })
    }

    /// `C` times the class weight, by class.
    pub fn cost(&self) -> &'a [f64] {
        self.cost
    }

    /// The settings.
    pub fn settings(&self) -> &'a BlockSettings<'a> {
        self.settings
    }

    /// How the problem is cut.
    pub fn cut(&self) -> SoftmaxCut {
        self.cut
    }

    /// The reader of the blocks.
    pub fn fetch(&self) -> &Fetch<'a> {
        &self.fetch
    }

    /// Progress and cancelling.
    pub fn monitor(&self) -> &'a dyn Monitor {
        self.monitor
    }

    /// Number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.plan.blocks.len()
    }

    /// Goes on after so many readings and rows.
    pub fn resume(&mut self, readings: u64, loaded_rows: u64) {
        (self.readings, self.loaded_rows) = (readings as usize, loaded_rows);
    }

    /// Calls `f` with the rows of each block that are read, next to a constant column of height `bias`, with
    /// their positions, and two tables of rows x classes with anything in them.
    ///
    /// # Errors
    /// Those of the store and of `f`; [`crate::Error::Cancelled`].
    pub fn each(
        &mut self,
        bias: f64,
        mut f: impl FnMut(&Setup<'_>, &[u32], [&mut [[f64; LINE]]; 2]) -> Result<()>,
    ) -> Result<()> {
        for block in 0..self.plan.blocks.len() {
            self.load(block)?;
            self.monitor.poll()?;
            let Self { cost, settings, resident, tables, part, .. } = self;
            let chosen = resident.rows().chosen(|class, weight, position| match *part {
                RowPart::Without(folds, fold) if folds[position] == fold => 0.0,
                RowPart::Only(folds, fold) => f64::from(u8::from(folds[position] == fold)),
                _ => cost[class as usize] * weight,
            });
            if !chosen.ids.is_empty() {
                let rows = &mapped(resident.rows().view, settings.map);
                let problem = ClassProblem {
                    rows,
                    ids: Some(&chosen.ids),
                    class: &chosen.classes,
                    n_classes: cost.len(),
                    cost: &chosen.cost,
                    intercept: settings.intercept,
                };
                let setup = Setup::in_parts(&problem, bias, self.cut.parts, self.monitor);
                let len = setup.n_rows() * setup.lines;
                for table in tables.iter_mut().filter(|table| table.len() < len) {
                    *table = Block::zeros(0); // before the new one takes its memory
                    *table = Block::zeros(len);
                }
                let [first, second] = tables;
                f(&setup, &chosen.positions, [&mut first[..len], &mut second[..len]])?;
            }
            self.report(block + 1);
        }
        self.readings += 1;
        Ok(())
    }

    /// Puts a block into memory, and asks for the one that comes after it.
    fn load(&mut self, block: usize) -> Result<()> {
        if self.loaded == Some(block) {
            return Ok(());
        }
        let Self { plan, resident, fetch, monitor, .. } = self;
        self.loaded = None;
        resident.keep(&[]);
        let (store, pages) = (fetch.store(), &plan.blocks[block]);
        fetch.with(block, |bytes| resident.add_beside(store, pages, bytes, *monitor, |_| Ok(())))?;
        if plan.blocks.len() > 1 {
            fetch.ask((block + 1) % plan.blocks.len());
        }
        self.loaded = Some(block);
        self.loaded_rows += resident.len() as u64;
        Ok(())
    }

    fn report(&self, blocks: usize) {
        self.monitor.observe_reading(&Reading {
            solver: NAME,
            passes: self.readings as f64 + blocks as f64 / self.n_blocks() as f64,
            rows: self.loaded_rows,
            bytes: self.fetch.bytes_read(),
            gap: self.gap,
        });
    }
}
