//! Divides the memory budget among states of problems, buffers, and rows in memory.
//!
//! ```text
//!   budget = per problem { w, dual variables unless in a file }
//!          + scan { decision values and costs, if the intercept is free }
//!          + threads * page buffers
//!          + stored bytes (all of them, or those of one block) + arena { cache | block } + rows' bookkeeping
//! ```
//!
//! Not counted: the interpreter with its libraries, and page buffers (3 MB each) of more threads than four. A
//! plan is the same for any number of threads.

use super::choice::Capacity;
use super::class_duals::PIECE;
use super::duals::RUN;
use super::settings::{BlockSettings, DualsIn, SoftmaxCut};
use crate::fit::dual::active::{random, shuffle};
use crate::fit::newton::hessian::step_bytes;
use crate::fit::routes::MAX_CHOLESKY_COLUMNS;
use crate::fit::{Intercept, penalised};
use crate::matrix::arena::{ROW_BYTES, Width};
use crate::matrix::kernels::LINE;
use crate::store::format::{PAGE_ENTRIES, checksum};
use crate::store::reader::Store;
use crate::{Error, Result};

/// Bytes per row in memory beside the arena: position, class, weight, order, score, choice.
pub const BOOKKEEPING: usize = 4 + 4 + 8 + 4 + 4 + 12;
/// Bytes per row in memory of a problem in work: the solver's state, label, cost, dual variable, visiting
/// order, ids, margin.
pub const STATE: usize = 40 + 8 + 8 + 8 + 4 + 4 + 8;
/// Rows may be shorter than the average by this factor before rows instead of entries limit the arena.
const SLACK: f64 = 1.2;
/// Stored bytes are kept in memory where they take no more than this share of what is left.
const STORED_SHARE: f64 = 0.7;
/// Shares of the budget that the states of problems may take.
const STATES_SHARE: f64 = 0.5;
/// Problems that are worked on at the same time.
pub const SIDE_BY_SIDE: usize = 8;
/// Threads whose page buffers are counted: a plan must not depend on the number of threads, or results would.
const BUFFERS: u64 = 4;
/// Bytes of an open page per entry: columns, values, the packed and unpacked sections.
const PAGE_ENTRY_BYTES: u64 = 26;

/// The sizes of one descent.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    /// Layout of the arena.
    pub width: Width,
    /// Room of the arena.
    pub arena: Capacity,
    /// Room for cached rows within it.
    pub cache: Capacity,
    /// Pages of each block.
    pub blocks: Vec<Vec<u32>>,
    /// All stored bytes stay in memory.
    pub keeps_stored: bool,
    /// Exact best intercepts can be computed.
    pub has_room_for_margins: bool,
}

/// Bytes of a problem's state.
fn state_bytes(store: &Store, settings: &BlockSettings<'_>, on_disk: bool) -> u64 {
    let duals = if on_disk { 4 * RUN as u64 } else { store.meta().n_rows };
    8 * (settings.n_weights(store) as u64 + 1) + 8 * duals
}

/// Bytes of page buffers.
fn page_bytes() -> u64 {
    page_bytes_of(PAGE_ENTRIES as u64)
}

/// The same where no page has more entries than that.
pub fn page_bytes_of(entries: u64) -> u64 {
    BUFFERS * entries * PAGE_ENTRY_BYTES
}

/// How problems are trained: so many side by side, with their dual variables in files or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Problems of a group.
    pub size: usize,
    /// Whether dual variables are in files.
    pub on_disk: bool,
    /// Bytes of the state of one problem.
    pub state_bytes: u64,
}

impl Groups {
    /// One group of problems with their dual variables in memory.
    pub fn in_memory(store: &Store, settings: &BlockSettings<'_>, size: usize) -> Self {
        Self { size, on_disk: false, state_bytes: state_bytes(store, settings, false) }
    }
}

/// Groups that fit the budget. Dual variables go to files where that makes fewer groups, each of which reads
/// the data anew, or where one problem alone would take more than half of the budget.
pub fn groups(store: &Store, settings: &BlockSettings<'_>, n_tasks: usize) -> Groups {
    let of = |on_disk: bool| {
        let share = settings.budget as f64 * STATES_SHARE;
        let state_bytes = state_bytes(store, settings, on_disk);
        let fit = (share / state_bytes as f64) as usize;
        (fit >= 1, Groups { size: fit.clamp(1, n_tasks.max(1)), on_disk, state_bytes })
    };
    let ((fits, memory), (_, file)) = (of(false), of(true));
    let helps = || {
        file.state_bytes < memory.state_bytes
            && (!fits || n_tasks.div_ceil(file.size) < n_tasks.div_ceil(memory.size))
    };
    match settings.duals {
        DualsIn::Memory => memory,
        DualsIn::File => file,
        DualsIn::Auto => {
            if helps() {
                file
            } else {
                memory
            }
        }
    }
}

/// Copies of the rows where columns are presolved: theirs, the packed one, and what is needed to find it.
pub const PRESOLVE_COPIES: u64 = 3;

/// Whether the rows can be fitted in memory as a plain matrix of so many copies: all of them, the solvers'
/// states, and the weights. A matrix of more than 2^31 entries is not made.
pub fn fits_in_memory(store: &Store, settings: &BlockSettings<'_>, n_tasks: usize, copies: u64) -> bool {
    let meta = store.meta();
    let at_once = n_tasks.min(SIDE_BY_SIDE) as u64;
    let rows = copies * meta.nnz * store.plain_width().entry_bytes() as u64 + meta.n_rows * 40;
    let states =
        at_once * meta.n_rows * 120 + (n_tasks as u64 + 8 * at_once) * 8 * settings.n_weights(store) as u64;
    meta.nnz <= i32::MAX as u64 && rows + states + page_bytes() <= settings.budget
}

/// Bytes of fits with a penalty other than the square, so many lanes of so many blocks of decision values
/// ([`crate::fit::penalised`]): the rows by rows and by columns, the penalty of each column, eighteen vectors
/// of rows and six of columns for each block, and the matrix of a model. The vectors of [`SIDE_BY_SIDE`]
/// lanes are there at a time.
///
/// Measured beside it, l1, gap 1e-4, two threads: imdb, logistic loss, 6,945 weights 540 and 422 MB, squared
/// hinge, 7,217 weights 540 and 301; covtype 184 and 161; a9a 27 and 12; mnist, squared hinge, 654 weights
/// 366 and 162, softmax, 770 weights 498 and 211; 3,000 x 1,200 ones and zeros, 1,004 weights 84 and 56.
pub fn penalised_bytes(store: &Store, lanes: usize, blocks: usize) -> u64 {
    let (n_rows, n_cols, nnz) = (store.meta().n_rows, store.meta().n_cols as u64, store.meta().nnz);
    let (copy, blocks) = (nnz * store.plain_width().entry_bytes() as u64, blocks as u64);
    let (at_once, lanes) = (lanes.min(SIDE_BY_SIDE) as u64, lanes as u64);
    let (of_rows, of_columns) = (8 * blocks * n_rows, 8 * blocks * n_cols);
    // With the constant column of an intercept.
    let model = penalised::model_bytes((nnz + n_rows) as usize, (blocks * (n_cols + 1)) as usize);
    let states = at_once * (18 * of_rows + 6 * of_columns + model);
    let whole = 2 * copy + 40 * n_rows + PENALISED_COLUMN * n_cols;
    whole + states + lanes * (of_rows + of_columns) + page_bytes()
}

/// Where the entries of a column begin and end, its penalty, and what it needs to leave zero. Fits of some
/// columns copy this of them, at most half, and have shorter vectors by as much.
const PENALISED_COLUMN: u64 = 16 + 32 + 8;

/// Whether a multinomial fit of all classes has room in memory, with so many copies of the rows: tables of
/// rows x classes, of both its solvers, and blocks of columns x classes.
pub fn fits_multinomial(store: &Store, settings: &BlockSettings<'_>, copies: u64) -> bool {
    let meta = store.meta();
    let line = (8 * store.classes().len().next_multiple_of(LINE)) as u64;
    let rows = copies * meta.nnz * store.plain_width().entry_bytes() as u64 + meta.n_rows * 120;
    let tables = TABLES * meta.n_rows * line + BLOCKS * (settings.n_weights(store) as u64 + 1) * line;
    meta.nnz <= i32::MAX as u64 && rows + tables + page_bytes() <= settings.budget
}

/// The same of so many folds side by side.
pub fn fits_multinomial_folds(store: &Store, settings: &BlockSettings<'_>, n_folds: usize) -> bool {
    let rows = store.meta().nnz * store.plain_width().entry_bytes() as u64 + page_bytes();
    let budget = settings.budget.saturating_sub(rows) / n_folds.max(1) as u64 + rows;
    fits_multinomial(store, &BlockSettings { budget, ..*settings }, 1)
}

/// Tables of rows x classes of a fit in memory, those of a certificate or an epoch beside Newton's included.
const TABLES: u64 = 7;
/// Blocks of columns x classes that a multinomial fit has at a time.
const BLOCKS: u64 = 7;
/// Blocks of Newton over a store.
const NEWTON_BLOCKS: u64 = 6;
/// Parts of a block that are added up side by side at most, each in a block of columns x classes.
const MOST_PARTS: u64 = 8;
/// Share of the budget that these may take,
const EXTRAS_SHARE: u64 = 8;
/// and a matrix of all columns, by which a fit of mnist takes an eighth of the readings.
const MATRIX_SHARE: u64 = 2;
/// Matrices of classes that free intercepts take.
const MATRICES: u64 = 7;
/// Bytes of a row beside its entries and tables: lists of those that have a cost, sums and norms.
pub const SOFTMAX_ROW: usize = 24 + 40;

/// Bytes that the problems of a descent need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// From beginning to end.
    pub states: u64,
    /// For each row in memory, beside the arena.
    pub per_row: usize,
    /// During a scan, where there is room for them.
    pub margins: u64,
    /// What `states` are, for a message.
    pub what: String,
}

impl Needs {
    /// Of a group of binary problems.
    pub fn binary(store: &Store, settings: &BlockSettings<'_>, group: Groups) -> Self {
        let Groups { size, state_bytes, .. } = group;
        // Decision values and costs of all problems, and a sorted copy for one.
        let margins = 16 * store.meta().n_rows * (size as u64 + 1);
        Self {
            states: size as u64 * state_bytes,
            per_row: BOOKKEEPING + size.min(SIDE_BY_SIDE) * STATE,
            margins: if settings.intercept == Intercept::Free { margins } else { 0 },
            what: format!("weights and dual variables of {size} problem(s)"),
        }
    }

    /// These, and the weights of so many other problems, those of earlier groups or of later ones: the plan
    /// of a group must not depend on when its turn is, and a budget that is too small is refused at once.
    pub fn beside(self, others: usize, n_weights: usize) -> Self {
        if others == 0 {
            return self;
        }
        let what = format!("{} and the weights of {others} more", self.what);
        Self { states: self.states + 8 * (others * n_weights) as u64, what, ..self }
    }

    /// Of Newton's method for the softmax of all classes, and how it is cut; `has_extras` says whether it may
    /// take a share of the budget for what makes it faster.
    pub fn multinomial(store: &Store, settings: &BlockSettings<'_>, has_extras: bool) -> (Self, SoftmaxCut) {
        let n_classes = store.classes().len();
        let [extras, for_matrix] =
            [EXTRAS_SHARE, MATRIX_SHARE].map(|share| if has_extras { settings.budget / share } else { 0 });
        let d = settings.n_weights(store) as u64 + 1;
        let line = 8 * n_classes.next_multiple_of(LINE);
        let block = d * line as u64;
        let parts = (1 + extras / block.max(1)).min(MOST_PARTS);
        let matrix = step_bytes(d);
        let is_free = settings.intercept == Intercept::Free;
        let of_intercepts = if is_free { 8 * MATRICES * (n_classes * n_classes) as u64 } else { 0 };
        let has_room_for_matrix =
            settings.map.is_none() && d <= MAX_CHOLESKY_COLUMNS as u64 && matrix <= for_matrix;
        let matrices = of_intercepts + if has_room_for_matrix { matrix } else { 0 };
        let needs = Self {
            states: (NEWTON_BLOCKS + parts - 1) * block + matrices,
            per_row: BOOKKEEPING + SOFTMAX_ROW + 2 * line,
            margins: 0,
            what: format!("weights, gradient and directions of {n_classes} classes"),
        };
        (needs, SoftmaxCut { parts: parts as usize, has_room_for_matrix })
    }

    /// Of all classes at once, their dual variables in a file or not. How many of these are positive is known
    /// only after the fit: `PER_ROW` are counted.
    pub fn crammer_singer(store: &Store, settings: &BlockSettings<'_>, on_disk: bool) -> Self {
        let (n_rows, n_classes) = (store.meta().n_rows, store.classes().len());
        let weights = 8 * (store.meta().n_used as u64 + 1) * n_classes.next_multiple_of(LINE) as u64;
        let lists = LISTS as u64;
        // Class and cost of each row, and a second copy of the lists.
        let free = if settings.intercept == Intercept::Free { 12 + lists } else { 0 };
        // Of a file a piece, in bytes and as lists.
        let duals = lists * if on_disk { 3 * PIECE as u64 } else { n_rows };
        Self {
            states: weights + duals + n_rows * free,
            per_row: BOOKKEEPING + CLASSES_ROW,
            margins: 0,
            what: format!("weights and dual variables of {n_classes} classes"),
        }
    }
}

/// Positive dual variables of a row that a budget counts.
const PER_ROW: usize = 3;
/// Bytes of one of them.
const ENTRY: usize = 16;
/// Bytes of the place of a row's list.
const PLACE: usize = 16;
/// Bytes of the dual variables of a row.
pub const LISTS: usize = PLACE + PER_ROW * ENTRY;
/// Bytes of a row in a step with all classes: its number, position, class, cost, norm and order; its list,
/// packed and in work.
pub const CLASSES_ROW: usize = 36 + 2 * LISTS;

impl MemoryPlan {
    /// Divides the budget for problems side by side.
    ///
    /// # Errors
    /// [`Error::Budget`] where it is too small for any progress.
    pub fn new(store: &Store, settings: &BlockSettings<'_>, needs: &Needs) -> Result<Self> {
        let meta = store.meta();
        let budget = settings.budget;
        let Needs { states, per_row, margins, .. } = *needs;
        let bare = states + page_bytes();
        let width = store.width();
        let row_bytes = (ROW_BYTES + per_row) as f64;
        let mean = (meta.nnz as f64 / meta.n_rows as f64).max(1.0);
        let kept_entry = width.entry_bytes() as f64 + SLACK * row_bytes / mean;
        let (stored, whole) = (store.file_bytes() as f64, meta.nnz.max(1) as f64);
        let share = settings.share(budget.saturating_sub(bare) as f64 / (kept_entry * whole));
        // An entry with its part of the block that is read ahead.
        let fetched_entry = kept_entry + (1.0 - share) * stored / whole;
        // Two pages: one is loaded, as much is cached.
        let largest = store.pages().iter().map(|page| page.nnz as usize).max().unwrap_or(0);
        let least = 2 * largest;
        let least_bytes = least as f64 * fetched_entry;
        let needed = bare + least_bytes.ceil() as u64 + 1;
        if needed > budget {
            let buffers = page_bytes();
            let parts =
                format!("{states} bytes for {}, {buffers} for buffers, the rest for rows", needs.what);
            return Err(Error::Budget { budget, needed, parts });
        }
        let has_room_for_margins = margins <= (budget - needed) / 2;
        let left = (budget - bare - if has_room_for_margins { margins } else { 0 }) as f64;
        let keeps_stored =
            settings.keeps_stored && stored <= STORED_SHARE * left && left - stored >= least_bytes;
        let (left, per_entry) =
            if keeps_stored { (left - stored, kept_entry) } else { (left, fetched_entry) };
        let entries = (left / per_entry).min(1.02 * whole + PAGE_ENTRIES as f64) as usize;
        let rows = (SLACK * entries as f64 / mean) as usize + 1024;
        let arena = Capacity { rows, entries };
        let room = |x: usize| ((1.0 - share) * x as f64) as usize;
        let block = Capacity { rows: room(rows), entries: room(entries).max(largest) };
        let blocks = blocks(store, block);
        let sizes = blocks.iter().map(|pages| store.size(pages));
        let (most_rows, most_entries) =
            sizes.fold((0, 0), |most, size| (most.0.max(size.0), most.1.max(size.1)));
        let rows = rows.max(most_rows);
        let cache = Capacity { rows: rows - most_rows, entries: entries.saturating_sub(most_entries) };
        let arena = Capacity { rows, ..arena };
        Ok(Self { width, arena, cache, blocks, keeps_stored, has_room_for_margins })
    }

    /// Blocks in the random order of a pass, each with the one that comes after it; after the last, the first
    /// of the next pass.
    pub fn order(&self, seed: u64, pass: usize) -> Vec<(usize, usize)> {
        let order = self.shuffled(seed, pass);
        let first_of_next = self.shuffled(seed, pass + 1).first().copied();
        let after = order.iter().skip(1).copied().chain(first_of_next);
        order.iter().copied().zip(after).collect()
    }

    fn shuffled(&self, seed: u64, pass: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.blocks.len()).collect();
        shuffle(&mut order, &mut random(seed ^ checksum(1, b"blocks"), pass as u64));
        order
    }
}

/// Groups pages into blocks of at most the given size (one page at least).
///
/// Whole blocks of the store are put together where they are small. A block of the store that is too large is
/// cut into stripes, every so many pages, so that each stripe has rows from the whole length of the input.
fn blocks(store: &Store, capacity: Capacity) -> Vec<Vec<u32>> {
    let fits = |(rows, entries): (usize, usize)| rows <= capacity.rows && entries <= capacity.entries;
    let mut units: Vec<Vec<u32>> = Vec::new();
    for pages in pages_by_block(store) {
        let stripes = (1..=pages.len().max(1)).find_map(|count| {
            let stripes: Vec<Vec<u32>> =
                (0..count).map(|k| pages.iter().skip(k).step_by(count).copied().collect()).collect();
            let is_enough = count == pages.len() || stripes.iter().all(|stripe| fits(store.size(stripe)));
            is_enough.then_some(stripes)
        });
        units.extend(stripes.unwrap_or_default());
    }
    let mut blocks: Vec<Vec<u32>> = Vec::new();
    let mut size = (0, 0);
    for unit in units.into_iter().filter(|unit| !unit.is_empty()) {
        let (rows, entries) = store.size(&unit);
        let joined = (size.0 + rows, size.1 + entries);
        match blocks.last_mut() {
            Some(last) if fits(joined) => {
                last.extend(unit);
                size = joined;
            }
            _ => {
                blocks.push(unit);
                size = (rows, entries);
            }
        }
    }
    balance(store, blocks, fits)
}

/// Spreads the pages over as many blocks as before but of about equal size, where that fits.
fn balance(store: &Store, blocks: Vec<Vec<u32>>, fits: impl Fn((usize, usize)) -> bool) -> Vec<Vec<u32>> {
    let count = blocks.len();
    let all: Vec<u32> = blocks.concat();
    let total: usize = store.size(&all).1;
    let mut even: Vec<Vec<u32>> = vec![Vec::new(); count];
    let mut seen = 0usize;
    for page in all {
        let target = (seen as u128 * count as u128 / total.max(1) as u128) as usize;
        even[target.min(count - 1)].push(page);
        seen += store.size(&[page]).1;
    }
    let is_better = even.iter().all(|pages| !pages.is_empty() && fits(store.size(pages)));
    let mut blocks = if is_better { even } else { blocks };
    blocks.iter_mut().for_each(|pages| pages.sort_unstable());
    blocks
}

fn pages_by_block(store: &Store) -> Vec<Vec<u32>> {
    let mut by_block: Vec<Vec<u32>> = vec![Vec::new(); store.meta().n_blocks as usize];
    (0..).zip(store.pages()).for_each(|(k, page)| by_block[page.block as usize].push(k));
    by_block
}
