//! The data of a fit: a matrix in memory, or a block store.

use super::spec::{PresolveChoice, Spec};
use crate::blocks::checkpoint::CheckpointOptions;
use crate::blocks::{BlockSettings, DEFAULT_ROUNDS, DualsIn, Policy, Waiting, budget};
use crate::fit::Monitor;
use crate::labels::sparse::Indicator;
use crate::labels::{self, Labels};
use crate::matrix::arena::OwnedCsr;
use crate::matrix::csr::{CsrView, Structure};
use crate::matrix::filled::Filled;
use crate::matrix::layout::Layout;
use crate::matrix::scaled::Scaled;
use crate::matrix::{CsrValues, Matrix};
use crate::memory::CollectLarge;
use crate::pairs::Poly2;
use crate::pairs::map::Map;
use crate::presolve::{self, Mode, Presolved};
use crate::source::mapped::StoreMap;
use crate::store::reader::{RowFacts, Store};
use crate::{Error, Result};

/// Where the rows of a store are for a penalty other than the square of the weights.
const PENALISED_IN_MEMORY: &str =
    "left out with a penalty other than 'l2', factors or bounds: its solver has all rows in memory";

/// Where rows come from.
pub enum Source<'a> {
    /// Rows in memory.
    Rows(Checked<'a>),
    /// A block store, and how to train on it.
    Store(&'a Store, Blocks<'a>),
}

/// What is to be predicted.
pub enum Targets<'a> {
    /// A class for each row.
    Classes(Labels<'a>),
    /// The rows of each label; weights whose loss changes the objective by less than `drop` (relatively) are
    /// left out of the model.
    Sets {
        /// The positive rows of each label.
        indicator: Indicator<'a>,
        /// Largest relative change of the objective; 0 for none.
        drop: f64,
    },
    /// The classes that a store holds.
    Stored,
}

/// Rows in memory, and what a check of them found: the constructor of each layout gives both.
#[derive(Clone, Copy)]
pub struct Checked<'a> {
    /// The rows.
    pub rows: Layout<'a>,
    /// What the check found.
    pub structure: Structure,
}

impl<'a> Checked<'a> {
    /// The same rows as dense ones, where `choice` leaves it to us and they have few gaps.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn filled(&self, choice: PresolveChoice, monitor: &dyn Monitor) -> Result<Option<Filled>> {
        let may_copy = choice == PresolveChoice::Auto && !self.structure.has_duplicates;
        if may_copy { Filled::of(&self.rows, &|| monitor.cancelled()) } else { Ok(None) }
    }

    /// With what the check found, these rows of the same entries.
    pub fn with_rows<'b>(&self, rows: Layout<'b>) -> Checked<'b> {
        Checked { rows, structure: self.structure }
    }

    /// The packed form, where `choice` says so or it pays for `n_problems` problems of so many passes each;
    /// refuses rows that no solver takes.
    ///
    /// # Errors
    /// Those of [`presolve::pack`].
    pub fn pack(
        &self,
        choice: PresolveChoice,
        passes: f64,
        n_problems: usize,
        monitor: &dyn Monitor,
    ) -> Result<Option<Presolved>> {
        self.structure.check_solvable()?;
        let mode = match choice {
            PresolveChoice::Auto => Mode::Auto { passes, n_problems },
            PresolveChoice::On => Mode::On,
            PresolveChoice::Off => Mode::Off,
        };
        presolve::pack(&self.rows, &self.structure, mode, &|| monitor.cancelled())
    }

    /// The rows as `scaled` where they have such a form.
    pub fn narrowest<'b>(&'b self, scaled: Option<&'b Scaled<'a>>) -> Matrix<'b> {
        self.rows.or_scaled(scaled).into()
    }

    /// The rows, or their degree-2 features, for a solver that copies them by columns.
    ///
    /// # Errors
    /// [`Error::Scale`] and [`Error::Duplicates`]; those of [`Self::mapped`].
    pub fn by_columns<'b>(&'b self, map: Option<&'b Map>) -> Result<Matrix<'b>> {
        match map {
            Some(map) => self.mapped(None, map),
            None => {
                self.structure.check_solvable()?;
                Ok(self.rows.into())
            }
        }
    }

    /// Their degree-2 features.
    ///
    /// # Errors
    /// [`Error::Scale`] where mapped rows are too large to compute with; those of [`Poly2::new`].
    pub fn mapped<'b>(&'b self, scaled: Option<&'b Scaled<'a>>, map: &'b Map) -> Result<Matrix<'b>> {
        check_mapped(&self.structure, map)?;
        Ok(Poly2::new(self.rows.or_scaled(scaled), map)?.into())
    }
}

/// Refuses mapped rows that are too large to compute with.
///
/// # Errors
/// [`Error::Scale`] and [`Error::Duplicates`].
pub fn check_mapped(structure: &Structure, map: &Map) -> Result<()> {
    structure.check_solvable()?;
    let max_squared_norm = map.squared_norm_limit(structure.max_squared_norm);
    Structure { has_duplicates: false, max_squared_norm }.check_solvable()
}

/// How to train on a store.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Blocks<'a> {
    /// Bytes that the call may use.
    pub budget: u64,
    /// Which rows stay in memory.
    pub policy: Policy,
    /// Their share of the memory for rows; `None` chooses.
    pub cache_share: Option<f64>,
    /// Epochs per loaded block.
    pub rounds: usize,
    /// Largest minus smallest projected gradient at which the epochs on a block end early; 0 for never.
    pub round_tol: f64,
    /// Whether the stored bytes stay in memory where they fit.
    pub keeps_stored: bool,
    /// What to do while the disk is slow.
    pub waiting: Waiting,
    /// Where dual variables are.
    pub duals: DualsIn,
    /// Read the whole store into memory; `None` decides by the budget.
    pub in_memory: Option<bool>,
    /// Where the state is kept, so that a killed fit can go on.
    pub keep: Option<CheckpointOptions<'a>>,
}

impl<'a> Blocks<'a> {
    /// Training within so many bytes, by the defaults.
    pub fn within(budget: u64) -> Self {
        Self {
            budget,
            policy: Policy::Auto,
            cache_share: None,
            rounds: DEFAULT_ROUNDS,
            round_tol: 0.0,
            keeps_stored: true,
            waiting: Waiting::Rest,
            duals: DualsIn::Auto,
            in_memory: None,
            keep: None,
        }
    }

    /// Whether nothing is said about the descent alone.
    pub fn is_plain(&self) -> bool {
        let Self { budget, in_memory, keep, .. } = *self;
        *self == Self { in_memory, keep, ..Self::within(budget) }
    }

    /// The settings of a descent.
    pub fn settings<'m>(&self, spec: &Spec, map: Option<&'m StoreMap>) -> BlockSettings<'m> {
        BlockSettings {
            loss: spec.loss,
            intercept: spec.intercept,
            tol: spec.params.tol,
            max_passes: spec.params.max_iter,
            seed: spec.params.seed,
            budget: self.budget,
            policy: self.policy,
            cache_share: self.cache_share,
            rounds: self.rounds,
            round_tol: self.round_tol,
            keeps_stored: self.keeps_stored,
            waiting: self.waiting,
            duals: self.duals,
            map,
        }
    }

    /// Whether the store is read into memory: as asked for, else if it fits and nothing is to be resumed.
    pub fn is_in_memory(&self, fits: bool) -> bool {
        self.in_memory.unwrap_or(fits && self.keep.is_none())
    }

    /// Refuses a store that has no room in memory for so many folds with a penalty other than the square, or
    /// is not to be there.
    ///
    /// # Errors
    /// [`Error::Parameter`] and [`Error::Budget`].
    pub fn check_penalised(&self, store: &Store, spec: &Spec, n_folds: usize) -> Result<()> {
        if spec.map.is_some() {
            let rule = "1 for a store with a penalty other than 'l2', factors or bounds";
            return Err(Error::Parameter { name: "degree", value: "2".into(), rule });
        }
        let n_classes = store.classes().len();
        let (lanes, blocks) = match spec.is_multinomial(n_classes as u32)? {
            true => (n_folds, n_classes),
            false => (n_folds * labels::n_problems(n_classes), 1),
        };
        let needed = budget::penalised_bytes(store, lanes, blocks);
        let refuse = |name: &'static str, value: &str| {
            Err(Error::Parameter { name, value: value.into(), rule: PENALISED_IN_MEMORY })
        };
        match self.in_memory {
            _ if self.keep.is_some() => refuse("checkpoint", "a file"),
            Some(false) => refuse("block_options", "in_memory=False"),
            None if needed > self.budget => {
                let parts = "with a penalty other than 'l2', factors or bounds all rows are in memory, by \
                             rows and by columns";
                Err(Error::Budget { budget: self.budget, needed, parts: parts.into() })
            }
            _ => Ok(()),
        }
    }
}

/// The whole store as one matrix, for the solvers in memory.
pub struct Whole {
    matrix: OwnedCsr,
    n_cols: usize,
    classes: Vec<u32>,
    /// Costs of the rows.
    pub costs: Vec<f64>,
    /// Their numbers in the input.
    pub numbers: Vec<u64>,
}

impl Whole {
    /// Reads all rows; `cost` is that of each class.
    ///
    /// # Errors
    /// Those of the store; [`Error::Parameter`] beyond 2^31 entries.
    pub fn read(store: &Store, cost: &[f64], monitor: &dyn Monitor) -> Result<Self> {
        let pages: Vec<u32> = (0..store.pages().len() as u32).collect();
        let (arena, facts) = store.load(&pages, store.plain_width(), monitor)?;
        let costs =
            facts.classes.iter().zip(&facts.weights).map(|(&k, w)| cost[k as usize] * w).collect_large();
        let Ok(matrix) = arena.into_csr() else {
            let rule = "below 2^31 entries for in_memory=True";
            let value = store.meta().nnz.to_string();
            return Err(Error::Parameter { name: "entries of the store", value, rule });
        };
        let RowFacts { classes, numbers, .. } = facts;
        Ok(Self { matrix, n_cols: store.meta().n_used, classes, costs, numbers })
    }

    /// The same in the columns of the input, for what is given for each of them.
    ///
    /// # Errors
    /// Those of [`Store::old_columns`].
    pub fn in_columns_of_input(mut self, store: &Store) -> Result<Self> {
        self.matrix.rename_columns(&store.old_columns()?);
        self.n_cols = store.meta().n_cols;
        Ok(self)
    }

    /// The rows.
    ///
    /// # Errors
    /// Those of [`CsrView::new`].
    pub fn checked(&self) -> Result<Checked<'_>> {
        let (OwnedCsr { indptr, indices, values }, n_cols) = (&self.matrix, self.n_cols);
        let (rows, structure) = match values {
            CsrValues::F32(values) => {
                let (rows, structure) = CsrView::new(indptr, indices, values, n_cols)?;
                (rows.into(), structure)
            }
            CsrValues::F64(values) => {
                let (rows, structure) = CsrView::new(indptr, indices, values, n_cols)?;
                (rows.into(), structure)
            }
        };
        Ok(Checked { rows, structure })
    }

    /// The classes of the rows.
    pub fn labels(&self, n_classes: usize) -> Labels<'_> {
        Labels { ids: &self.classes, n_classes: n_classes as u32 }
    }
}
