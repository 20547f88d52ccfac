//! Building a store from batches of rows, in bounded memory.
//!
//! A row's block is drawn from its number and the seed alone, so the blocks are random samples whatever the
//! order of the input, and the length of the input need not be known. Each block has one open page; rows go
//! to their pages, and full pages are compressed in parallel and appended. Memory: the open pages (at most 12
//! bytes per entry, [`super::format::PAGE_ENTRIES`] entries per block) and one batch of rows.
//!
//! The bytes of a file depend on the rows, the options and the borders of the batches, not on the number of
//! threads.
//!
//! Rows are normalised on the way: entries sorted by (new) column, entries of one column summed, zeros
//! dropped. Values are stored in the narrowest of four forms that is exact, page by page.

use std::path::Path;

use super::codec::Packer;
use super::columns::Order;
use super::format;
use super::format::{MAX_COLUMNS, MAX_ROW_ENTRIES, PageEntry, SEEDS, TrailerEntry};
use super::meta::Meta;
use super::page::{OpenPage, Row, RowValues};
use crate::durable::draft::Draft;
use crate::durable::target::Replace;
use crate::fit::{Monitor, check_length};
use crate::labels::classes::Classes;
use crate::matrix::csr::{MAX_SQUARED_NORM, not_finite};
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::{Error, Result, memory, parallel};

/// Blocks of a store, where nothing is asked for: with open pages of 1 MB at most 64 MB, and a trainer that
/// holds a thirtieth of the rows at a time can work with whole blocks.
pub const DEFAULT_BLOCKS: u32 = 64;
/// Most blocks; each has an open page while building.
pub const MAX_BLOCKS: u32 = 4096;
/// Entries prepared at a time.
const BATCH_ENTRIES: usize = 1 << 20;
/// Rows prepared by one task.
const TASK_ROWS: usize = 512;

/// How a store is built.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Number of blocks, 1 to [`MAX_BLOCKS`].
    pub n_blocks: u32,
    /// Seed of the assignment of rows to blocks.
    pub seed: u64,
    /// Number of columns; `None` takes one more than the largest that occurs.
    pub n_cols: Option<usize>,
    /// Relabelling of columns; empty for none.
    pub order: Order,
    /// Where the rows come from, as text for the metadata.
    pub source: String,
    /// Which files may be replaced besides block stores.
    pub replace: Replace,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            n_blocks: DEFAULT_BLOCKS,
            seed: 0,
            n_cols: None,
            order: Order::default(),
            source: String::new(),
            replace: Replace::SameKind,
        }
    }
}

/// A store that is being written. Dropped before [`Self::finish`], it leaves no file.
pub struct StoreBuilder {
    draft: Draft,
    options: StoreOptions,
    open: Vec<OpenPage>,
    pages: Vec<PageEntry>,
    /// Checksum over the pages so far.
    fingerprint: u64,
    facts: Statistics,
}

/// Sums over the rows so far.
#[derive(Default)]
struct Statistics {
    n_rows: u64,
    nnz: u64,
    n_cols: usize,
    n_used: usize,
    class_rows: Vec<u64>,
    class_weight: Vec<f64>,
    has_weights: bool,
    max_squared_norm: f64,
    sum_squared_norm: f64,
    needs_f64: bool,
    is_not_uniform: bool,
}

/// The block of a row: a hash of its number, scaled to the number of blocks.
fn block_of(seed: u64, row: u64, n_blocks: u32) -> u32 {
    let hash = format::checksum(seed, &row.to_le_bytes());
    ((u128::from(hash) * u128::from(n_blocks)) >> 64) as u32
}

/// Rows made ready for their pages.
struct Prepared {
    columns: Vec<u32>,
    values: Vec<f64>,
    rows: Vec<Ready>,
    largest: Option<u32>,
    max_squared_norm: f64,
    sum_squared_norm: f64,
}

/// The entries of a row as they come, and a buffer to sort them.
#[derive(Default)]
struct Entries {
    columns: Vec<u32>,
    values: Vec<f64>,
    keys: Vec<u64>,
}

impl Entries {
    fn clear(&mut self) {
        self.columns.clear();
        self.values.clear();
    }

    /// Makes keys of the new columns (upper half) and the positions among the values (lower half): sorted by
    /// column, equal columns in their order.
    fn sort(&mut self, order: &Order) {
        self.keys.clear();
        let columns = self.columns.iter().zip(0u64..);
        self.keys.extend(columns.map(|(&column, k)| u64::from(order.new_number(column)) << 32 | k));
        if !self.keys.is_sorted() {
            self.keys.sort_unstable();
        }
    }
}

/// One row of [`Prepared`].
struct Ready {
    start: usize,
    end: usize,
    /// Row in the batch.
    row: usize,
    block: u32,
    form: Form,
}

enum Form {
    Same(f64),
    F32,
    F64,
}

impl StoreBuilder {
    /// Begins the file that will be called `path`.
    ///
    /// # Errors
    /// [`Error::Parameter`]; [`Error::Occupied`] for a path at which something else is; [`Error::Io`].
    pub fn create(path: &Path, options: StoreOptions) -> Result<Self> {
        if options.n_blocks == 0 || options.n_blocks > MAX_BLOCKS {
            let rule = "an integer from 1 to 4096";
            return Err(Error::Parameter { name: "n_blocks", value: options.n_blocks.to_string(), rule });
        }
        if let Some(n_cols) = options.n_cols.filter(|&n| n > MAX_COLUMNS || n < options.order.len()) {
            let rule = "at most 2147483647 and no less than the number of relabelled columns";
            return Err(Error::Parameter { name: "n_features", value: n_cols.to_string(), rule });
        }
        let mut draft = Draft::new(path, format::KIND, options.replace)?;
        draft.write(&format::header())?;
        let open = (0..options.n_blocks).map(|_| OpenPage::default()).collect();
        Ok(Self { draft, options, open, pages: Vec::new(), fingerprint: 0, facts: Statistics::default() })
    }

    /// Number of rows so far.
    pub fn n_rows(&self) -> u64 {
        self.facts.n_rows
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.draft.len()
    }

    /// Appends rows with their class ids and sample weights, in the current rayon pool.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Labels`], [`Error::Entry`] and [`Error::NotFinite`] for what is no row;
    /// [`Error::Io`]; [`Error::Cancelled`]. The writer is of no use afterwards.
    pub fn append(
        &mut self,
        rows: &Matrix<'_>,
        classes: &[u32],
        weights: Option<&[f64]>,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        check_length("labels", rows.n_rows(), classes.len())?;
        if let Some(weights) = weights {
            crate::labels::check_weights(weights, rows.n_rows())?;
        }
        let (mut start, mut end, mut entries) = (0, 0, 0);
        while end < rows.n_rows() {
            entries += rows.row_len(end);
            end += 1;
            if entries >= BATCH_ENTRIES || end == rows.n_rows() {
                monitor.poll()?;
                self.append_batch(rows, start..end, classes, weights)?;
                (start, entries) = (end, 0);
            }
        }
        Ok(())
    }

    fn append_batch(
        &mut self,
        rows: &Matrix<'_>,
        range: std::ops::Range<usize>,
        classes: &[u32],
        weights: Option<&[f64]>,
    ) -> Result<()> {
        let first = self.facts.n_rows;
        let tasks: Vec<_> = range.clone().step_by(TASK_ROWS).collect();
        let prepared = parallel::try_map(tasks, |_, start| {
            let part = start..(start + TASK_ROWS).min(range.end);
            self.prepare(rows, part, first - range.start as u64)
        })?;
        self.count(&prepared, range.clone(), classes, weights)?;
        let number = first - range.start as u64;
        let full = parallel::map_each(&mut self.open, |block, page| {
            let mut full = Vec::new();
            for part in &prepared {
                for ready in part.of_block(block as u32) {
                    push(page, part, ready, classes, weights, number);
                    if page.is_full() {
                        full.push((block as u32, std::mem::take(page)));
                    }
                }
            }
            full
        });
        self.write_pages(full.into_iter().flatten().collect())
    }

    /// Sorts, sums and looks at the rows of a task; `number` is that of the input's row 0.
    fn prepare(&self, rows: &Matrix<'_>, range: std::ops::Range<usize>, number: u64) -> Result<Prepared> {
        let room = range.clone().map(|i| rows.row_len(i)).sum();
        let mut out = Prepared {
            columns: memory::with_capacity(room),
            values: memory::with_capacity(room),
            rows: memory::with_capacity(range.len()),
            largest: None,
            max_squared_norm: 0.0,
            sum_squared_norm: 0.0,
        };
        let limit = self.options.n_cols.unwrap_or(MAX_COLUMNS);
        let mut row_entries = Entries::default();
        for row in range {
            row_entries.clear();
            let mut largest = 0;
            rows.for_each(row, |column, value| {
                largest = largest.max(column);
                row_entries.columns.push(column as u32);
                row_entries.values.push(value);
            });
            if largest >= limit && !row_entries.columns.is_empty() {
                let reason = format!("the column is outside 0..{limit}");
                return Err(Error::Entry { row: (number + row as u64) as usize, column: largest, reason });
            }
            out.largest = out.largest.max((!row_entries.columns.is_empty()).then_some(largest as u32));
            out.push(row, &mut row_entries, &self.options, number)?;
        }
        out.rows.sort_by_key(|ready| ready.block);
        Ok(out)
    }

    /// Updates the statistics.
    fn count(
        &mut self,
        prepared: &[Prepared],
        range: std::ops::Range<usize>,
        classes: &[u32],
        weights: Option<&[f64]>,
    ) -> Result<()> {
        let facts = &mut self.facts;
        for part in prepared {
            facts.nnz += part.columns.len() as u64;
            facts.n_cols = facts.n_cols.max(part.largest.map_or(0, |j| j as usize + 1));
            facts.n_used = facts.n_used.max(part.columns.iter().max().map_or(0, |&j| j as usize + 1));
            facts.max_squared_norm = facts.max_squared_norm.max(part.max_squared_norm);
            facts.sum_squared_norm += part.sum_squared_norm;
            for ready in &part.rows {
                match ready.form {
                    Form::Same(v) => facts.needs_f64 |= f64::from(v as f32) != v,
                    Form::F32 => facts.is_not_uniform = true,
                    Form::F64 => (facts.is_not_uniform, facts.needs_f64) = (true, true),
                }
            }
        }
        if facts.max_squared_norm > MAX_SQUARED_NORM {
            return Err(Error::Scale { squared_norm: facts.max_squared_norm, limit: MAX_SQUARED_NORM });
        }
        for row in range.clone() {
            let class = classes[row] as usize;
            if class >= facts.class_rows.len() {
                if class > facts.n_rows as usize + (row - range.start) {
                    let reason = format!(
                        "class id {class} comes before smaller ones: ids are to follow first appearances"
                    );
                    return Err(Error::Labels { reason });
                }
                facts.class_rows.resize(class + 1, 0);
                facts.class_weight.resize(class + 1, 0.0);
            }
            let weight = weights.map_or(1.0, |weights| weights[row]);
            facts.class_rows[class] += 1;
            facts.class_weight[class] += weight;
            facts.has_weights |= weight != 1.0;
        }
        facts.n_rows += range.len() as u64;
        Ok(())
    }

    fn write_pages(&mut self, pages: Vec<(u32, OpenPage)>) -> Result<()> {
        let first = self.pages.len() as u64;
        let encoded: Vec<_> = parallel::map_each(&pages, |k, (_, page)| page.encode(first + k as u64));
        for ((block, page), bytes) in pages.iter().zip(encoded) {
            // Packing in memory fails for want of it only.
            let bytes = bytes.map_err(|_| Error::Memory { bytes: size_of::<f64>() * page.nnz() })?;
            let stored = u32::try_from(bytes.len()).map_err(|_| Error::Shape {
                what: "bytes of a page",
                expected: u32::MAX as usize,
                found: bytes.len(),
            })?;
            let (n_rows, nnz) = (page.n_rows() as u32, page.nnz() as u32);
            self.pages.push(PageEntry { offset: self.draft.len(), stored, n_rows, nnz, block: *block });
            self.fingerprint = format::checksum(self.fingerprint, &bytes);
            self.draft.write(&bytes)?;
        }
        Ok(())
    }

    /// Writes what is left, makes the file durable and gives it its name.
    ///
    /// # Errors
    /// [`Error::Labels`] for a store without rows and labels that do not fit the ids; [`Error::Io`].
    pub fn finish(mut self, classes: Classes, feature_names: Option<Vec<String>>) -> Result<()> {
        let open = std::mem::take(&mut self.open);
        let rest = (0..).zip(open).filter(|(_, page)| page.n_rows() > 0).collect();
        self.write_pages(rest)?;
        let meta = self.meta(classes, feature_names)?;
        let json = serde_json::to_vec(&meta).map_err(|error| Error::Labels { reason: error.to_string() })?;
        let mut old = Vec::new();
        format::to_planes(self.options.order.old_numbers().iter().map(|x| x.to_le_bytes()), &mut old);
        let mut index = Vec::new();
        self.pages.iter().for_each(|page| page.write(&mut index));
        let parts = [self.write_part(&json, 0)?, self.write_part(&old, 1)?, self.write_plain(&index, 2)?];
        self.draft.write(&format::trailer(&parts))?;
        self.draft.publish().map(drop)
    }

    fn meta(&self, classes: Classes, feature_names: Option<Vec<String>>) -> Result<Meta> {
        let facts = &self.facts;
        let refuse = |reason: String| Err(Error::Labels { reason });
        if facts.n_rows == 0 {
            return refuse("the source has no rows".into());
        }
        if classes.len() != facts.class_rows.len() {
            return refuse(format!("{} classes have {} labels", facts.class_rows.len(), classes.len()));
        }
        let seen = facts.n_cols.max(self.options.order.len());
        let n_cols = self.options.n_cols.unwrap_or(seen);
        if let Some(names) = feature_names.as_ref().filter(|names| names.len() != n_cols) {
            return refuse(format!("{} feature names for {n_cols} columns", names.len()));
        }
        let meta = Meta {
            written_by: env!("CARGO_PKG_VERSION").to_owned(),
            n_rows: facts.n_rows,
            n_cols,
            n_used: facts.n_used,
            nnz: facts.nnz,
            n_blocks: self.options.n_blocks,
            seed: self.options.seed,
            is_uniform: !facts.is_not_uniform,
            needs_f64: facts.needs_f64,
            has_weights: facts.has_weights,
            classes,
            class_rows: facts.class_rows.clone(),
            class_weight: facts.class_weight.clone(),
            feature_names,
            max_squared_norm: facts.max_squared_norm,
            sum_squared_norm: facts.sum_squared_norm,
            n_relabelled: self.options.order.len(),
            source: self.options.source.clone(),
            fingerprint: format!("{:016x}", self.fingerprint),
        };
        // The reader would refuse what this refuses.
        match meta.contradiction(&self.pages) {
            None => Ok(meta),
            Some(reason) => refuse(reason),
        }
    }

    fn write_part(&mut self, bytes: &[u8], k: usize) -> Result<TrailerEntry> {
        let packed = Packer::new().and_then(|mut packer| packer.pack(bytes));
        let packed = packed.map_err(|_| Error::Memory { bytes: bytes.len() })?;
        let stored = if packed.len() < bytes.len() { &packed } else { bytes };
        self.write_plain(stored, k).map(|part| TrailerEntry { len: bytes.len() as u64, ..part })
    }

    fn write_plain(&mut self, bytes: &[u8], k: usize) -> Result<TrailerEntry> {
        let (offset, len) = (self.draft.len(), bytes.len() as u64);
        self.draft.write(bytes)?;
        Ok(TrailerEntry { offset, stored: len, len, checksum: format::checksum(SEEDS[k], bytes) })
    }
}

impl Prepared {
    /// The rows of a block, in order.
    fn of_block(&self, block: u32) -> &[Ready] {
        let start = self.rows.partition_point(|ready| ready.block < block);
        let end = self.rows.partition_point(|ready| ready.block <= block);
        &self.rows[start..end]
    }

    fn push(&mut self, row: usize, entries: &mut Entries, options: &StoreOptions, number: u64) -> Result<()> {
        let row_number = (number + row as u64) as usize;
        let start = self.columns.len();
        entries.sort(&options.order);
        for &key in &entries.keys {
            let (column, value) = ((key >> 32) as u32, entries.values[key as u32 as usize]);
            if self.columns.len() > start && self.columns.last() == Some(&column) {
                *self.values.last_mut().expect("as long as the columns") += value;
            } else {
                self.columns.push(column);
                self.values.push(value);
            }
        }
        if self.values[start..].contains(&0.0) {
            let mut end = start;
            for k in start..self.values.len() {
                if self.values[k] != 0.0 {
                    (self.columns[end], self.values[end]) = (self.columns[k], self.values[k]);
                    end += 1;
                }
            }
            self.columns.truncate(end);
            self.values.truncate(end);
        }
        let len = self.columns.len() - start;
        if len > MAX_ROW_ENTRIES {
            let reason = format!("{len} entries, a store takes at most {MAX_ROW_ENTRIES} in a row");
            return Err(Error::Structure { row: row_number, reason });
        }
        let mut squared = 0.0;
        for (&column, &value) in self.columns[start..].iter().zip(&self.values[start..]) {
            if !value.is_finite() {
                return Err(not_finite(row_number, column as usize, value));
            }
            squared += value * value;
        }
        let values = &self.values[start..];
        let form = match values.first() {
            None => Form::Same(1.0),
            Some(&v) if values.iter().all(|&x| x == v) => Form::Same(v),
            _ if values.iter().all(|&v| f64::from(v as f32) == v) => Form::F32,
            _ => Form::F64,
        };
        self.max_squared_norm = self.max_squared_norm.max(squared);
        self.sum_squared_norm += squared;
        let block = block_of(options.seed, row_number as u64, options.n_blocks);
        self.rows.push(Ready { start, end: self.columns.len(), row, block, form });
        Ok(())
    }
}

/// Puts a row into the page of its block.
fn push(
    page: &mut OpenPage,
    part: &Prepared,
    ready: &Ready,
    classes: &[u32],
    weights: Option<&[f64]>,
    number: u64,
) {
    let (columns, values) = (&part.columns[ready.start..ready.end], &part.values[ready.start..ready.end]);
    let narrow: Vec<f32>;
    let values = match ready.form {
        Form::Same(v) => RowValues::Same(v),
        Form::F64 => RowValues::F64(values),
        Form::F32 => {
            narrow = values.iter().map(|&v| v as f32).collect_large();
            RowValues::F32(&narrow)
        }
    };
    let weight = weights.map_or(1.0, |weights| weights[ready.row]);
    page.push(&Row { columns, values, class: classes[ready.row], weight, number: number + ready.row as u64 });
}
