//! Which columns travel: of those that are proportional in all rows of all shards one, [`crate::presolve`]
//! without the rows.
//!
//! Every shard says which columns are proportional in its own rows, and to which shares. A column of the data
//! is then a list of these columns of shards with its shares in them, and columns of the data are
//! proportional if their lists are: the same question, asked of a matrix with a row for each column that a
//! shard has found, and answered by the same code.
//!
//! ```text
//!                   columns 0   1   2   3              shard 0 says: 1 is twice 0, 2 is thrice 0
//! shard 0, rows a, b        x  2x  3x   .              shard 1 says: 1 is twice 0, 3 is none of them
//! shard 1, rows c, d        y  2y  7y   z     ->       1 is twice 0; 2 and 3 travel alone
//! ```
//!
//! **What it costs** once: about a word of the wire for each column and shard to the client, and as much
//! back. **What it saves**: numbers of every vector from then on. Two shards of imdb, 1.5 million columns,
//! send 450,791, of phishing_urls 260,100 of 832,282 (`benches/record/2026-11-25-cluster-columns.txt`).
//!
//! Columns count as proportional by the spacing of double precision, whatever the type of the values, so that
//! what merging does to a proof is of the order of its other roundings. Single precision's would merge 93
//! columns more of imdb's, 213 of phishing_urls', 637 of 20news' 56,692.

use super::columns::{put, take};
use super::exchange::Exchange;
use super::task::ShardTask;
use super::wire::{Op, Reader, Request, ShardAnswer};
use crate::fit::Monitor;
use crate::fit::certificate::UNIT;
use crate::fit::newton::single::Spread;
use crate::fit::routes::{SHARD_MERGED_MOST, SHARD_MERGED_SHARE, SHARD_OWN_COLUMNS};
use crate::matrix::csr::CsrView;
use crate::presolve::{self, MergedColumns};
use crate::{Error, Result, memory};

/// Rounding errors of columns that count as proportional, and of their shares, in units of [`UNIT`]:
/// quotients may be four spacings off at a shard, and between shards.
const ROUNDING: f64 = 32.0;

/// The columns that travel in place of the data's.
pub struct Merging {
    columns: MergedColumns,
    /// By how much norms may be off, relatively.
    error: f64,
}

impl Merging {
    /// Asks the shards, where that can pay; `None` where it does not.
    ///
    /// # Errors
    /// Those of the exchange, [`Error::Cancelled`].
    pub fn find(
        task: &ShardTask,
        exchange: &mut dyn Exchange,
        monitor: &dyn Monitor,
    ) -> Result<Option<Self>> {
        let numbers = task.n_columns.saturating_mul(task.facts.n_shards);
        if task.n_columns < SHARD_OWN_COLUMNS || numbers > SHARD_MERGED_MOST {
            return Ok(None);
        }
        Self::ask(task, exchange, monitor)
    }

    pub(super) fn ask(
        task: &ShardTask,
        exchange: &mut dyn Exchange,
        monitor: &dyn Monitor,
    ) -> Result<Option<Self>> {
        let mut request = Request::new(1);
        request.op(Op::Survey);
        let surveys = exchange.gather(&request, &Vec::new)?;
        if surveys.iter().any(Vec::is_empty) {
            return Ok(None); // dense rows, or none
        }
        let lists = Lists::of(task.n_columns, surveys)?;
        let (view, structure) = CsrView::new(&lists.indptr, &lists.indices, &lists.values, task.n_columns)?;
        let columns = presolve::merge(&view, &structure, &|| monitor.cancelled())?;
        let most = SHARD_MERGED_SHARE * task.n_columns as f64;
        Ok(columns.filter(|columns| columns.n_columns() as f64 <= most).map(Self::of))
    }

    fn of(columns: MergedColumns) -> Self {
        // Shares are quotients by the root of a sum of so many squares.
        let error = ROUNDING + columns.members().into_iter().max().map_or(0.0, f64::from);
        Self { columns, error }
    }

    /// What becomes of the data's columns.
    pub fn columns(&self) -> &MergedColumns {
        &self.columns
    }

    /// How many columns travel.
    pub fn n_columns(&self) -> usize {
        self.columns.n_columns()
    }

    /// The task with these columns.
    pub fn task(&self, task: &ShardTask) -> ShardTask {
        ShardTask { n_columns: self.n_columns(), ..*task }
    }

    /// Weights of the data's columns, from those that travel; what follows, an intercept's, stays.
    pub fn expand(&self, w: &[f64]) -> Vec<f64> {
        let (merged, more) = w.split_at(self.n_columns());
        let mut full = self.columns.expand(merged);
        memory::extend_from_slice(&mut full, more);
        full
    }

    /// How far the weights of dual variables are from weights, with what merging hides of it: columns that
    /// count as proportional are so up to rounding, and shares are rounded.
    pub fn widened(&self, spread: Spread) -> Spread {
        let Spread { distance, drift, additions } = spread;
        Spread { distance: distance * (1.0 + UNIT * self.error), drift, additions: additions + self.error }
    }
}

/// The columns of the data as lists of what they are multiples of in each shard: a matrix in CSR.
struct Lists {
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Vec<f64>,
}

impl Lists {
    fn of(n_columns: usize, surveys: Vec<Vec<f64>>) -> Result<Self> {
        let mut lists = Self { indptr: vec![0], indices: Vec::new(), values: Vec::new() };
        for survey in surveys {
            let mut reader = Reader::new(&survey, 1);
            let merged = take(&mut reader, n_columns)?;
            if !reader.is_empty() {
                return Err(Error::Shape { what: "a survey of columns", expected: n_columns, found: 0 });
            }
            drop(survey);
            lists.append(&merged);
        }
        Ok(lists)
    }

    /// Appends a row for each column that a shard has found.
    fn append(&mut self, merged: &MergedColumns) {
        let (columns, begins) = merged.by_place();
        let start = self.indices.len();
        let ends = begins.into_iter().skip(1).chain([columns.len() as u32]);
        memory::extend(&mut self.indptr, ends.map(|end| (start + end as usize) as i64));
        let share = |j: &u32| merged.place(*j as usize).map_or(0.0, |(_, share)| share);
        memory::extend(&mut self.values, columns.iter().map(share));
        memory::extend(&mut self.indices, columns.into_iter().map(|j| j as i32));
    }
}

/// An exchange with shards that are told which columns travel before anything else.
pub struct Told<'a> {
    exchange: &'a mut dyn Exchange,
    columns: Request,
    is_told: bool,
}

/// A request after that of the columns.
fn after(columns: &Request, request: &Request) -> Request {
    let mut all = columns.clone();
    all.then(request);
    all
}

impl<'a> Told<'a> {
    /// To be told with the first request.
    pub fn new(exchange: &'a mut dyn Exchange, merging: &Merging) -> Self {
        let (mut columns, mut words) = (Request::new(1), Vec::new());
        put(merging.columns(), &mut words);
        columns.op(Op::Columns).numbers(&words);
        Self { exchange, columns, is_told: false }
    }

    /// Hands a request on, with that of the columns if it is the first.
    fn with<T>(
        &mut self,
        request: &Request,
        restore: &dyn Fn() -> Vec<f64>,
        ask: impl FnOnce(&mut dyn Exchange, &Request, &dyn Fn() -> Vec<f64>) -> Result<T>,
    ) -> Result<T> {
        let columns = &self.columns;
        let first = (!self.is_told).then(|| after(columns, request));
        let restore = || memory::copy(after(columns, &Request::of_words(restore())).words());
        let answer = ask(self.exchange, first.as_ref().unwrap_or(request), &restore)?;
        self.is_told = true;
        Ok(answer)
    }
}

impl Exchange for Told<'_> {
    fn ask(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        self.with(request, restore, |exchange, request, restore| exchange.ask(request, restore))
    }

    fn gather(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
        self.with(request, restore, |exchange, request, restore| exchange.gather(request, restore))
    }
}
