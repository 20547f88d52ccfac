//! A shard whose rows stay in a block store: pieces of it take turns in memory.
//!
//! As many pieces as there is room for stay in memory, with what a fit knows of each of their rows, 14
//! numbers or so. The entries of the others come from the disk once a request, and not at all where it asks
//! for none; what is known of their rows is in a file meanwhile ([`SpillFile`]). Each piece answers as if it
//! were a shard ([`Shard`]), and the answers of all of them are added in the order of the store: how it is
//! cut into pieces decides the last digits of a fit, not where they are. Epochs of dual descent alone go from
//! piece to piece: a piece begins with the weights to which the one before has come, and the store has done
//! what one shard of all its rows would do.
//!
//! The store has numbered its columns by frequency. Where vectors of columns are short the rows get back the
//! numbers that the data's columns have; else these are the shard's own ([`OwnColumns`]).

use std::path::PathBuf;

use super::columns::OwnColumns;
use super::shard::{CLASSES, CostedRows, Shard, ShardFacts, ShardFolds, ShardRows};
use super::spill::SpillFile;
use super::wire::{Reader, ShardAnswer, SumsKind};
use crate::blocks::budget;
use crate::fit::routes::{SHARD_OWN_COLUMNS, SHARD_PIECE_COLUMNS, SHARD_PIECE_ENTRIES, SHARD_PIECE_SHARE};
use crate::fit::{Intercept, Monitor};
use crate::loss::LossKind;
use crate::matrix::Matrix;
use crate::matrix::arena::Arena;
use crate::matrix::csr::{CsrView, Structure};
use crate::memory::CollectLarge;
use crate::search::fingerprint;
use crate::search::folds::Fold;
use crate::source::fetch::Fetch;
use crate::store::format::PageEntry;
use crate::store::reader::{RowFacts, Store};
use crate::{Error, Result, memory};

/// Bytes of a row beside its entries: number, class and cost.
const ROW_BYTES: u64 = 16;
/// What a fit knows of it with its first lane (costs, dual variables, labels, margins) and with each.
const STATE_BYTES: u64 = 56;
const LANE_BYTES: u64 = 40;
/// Vectors of the columns that rows have: those of a pass and of its parts; and of those that travel: a
/// request and its answer on their way.
const VECTORS: u64 = 10;
const TRAVELLING: u64 = 5;

/// The rows of a store as a shard.
#[derive(Clone)]
pub struct StoreRows {
    /// Columns of the data, at least as many as the store has.
    pub n_columns: usize,
    /// The class of each of the store's, and the cost of a row of weight 1.
    pub classes: Vec<(u32, f64)>,
    /// Lanes of a problem at most.
    pub lanes: usize,
    /// Bytes that it may take.
    pub budget: u64,
    /// The loss.
    pub loss: LossKind,
    /// Treatment of the intercept.
    pub intercept: Intercept,
    /// Where there is a file of what does not fit the budget.
    pub folder: PathBuf,
}

/// How a store is cut.
pub struct PieceCut {
    /// Pages of each piece, in the order of the file.
    pub blocks: Vec<Vec<u32>>,
    /// How many of them, the first ones, stay in memory; the others take turns.
    pub n_held: usize,
}

impl StoreRows {
    /// Refuses a store of other columns or classes, and one whose rows no solver takes.
    fn check(&self, store: &Store) -> Result<()> {
        let (meta, n_classes) = (store.meta(), self.classes.len());
        if meta.n_cols > self.n_columns {
            let what = "columns of the store of a shard";
            return Err(Error::Shape { what, expected: self.n_columns, found: meta.n_cols });
        }
        if store.classes().len() != n_classes {
            let found = store.classes().len();
            return Err(Error::Shape { what: "classes of the store of a shard", expected: n_classes, found });
        }
        Structure { has_duplicates: false, max_squared_norm: meta.max_squared_norm }.check_solvable()
    }

    /// Class and cost of a row.
    fn row(&self, facts: &RowFacts, i: usize) -> (u32, f64) {
        let (class, cost) = self.classes[facts.classes[i] as usize];
        (class, cost * facts.weights[i])
    }

    /// The pieces that fit the budget.
    ///
    /// # Errors
    /// [`Error::Budget`].
    pub fn cut(&self, store: &Store) -> Result<PieceCut> {
        let (meta, pages) = (store.meta(), store.pages());
        let columns = if self.has_own_columns() { meta.n_used } else { self.n_columns } as u64;
        let (lanes, travelling) = (self.padded_lanes() as u64, self.n_columns as u64);
        let vectors = 8 * lanes * (VECTORS * columns + TRAVELLING * travelling);
        let (always, of_piece) = (ROW_BYTES + lanes, STATE_BYTES + LANE_BYTES * lanes);
        let largest = pages.iter().map(|page| u64::from(page.nnz)).max().unwrap_or(0).max(1);
        let entry = store.width().entry_bytes() as u64;
        // Of the piece that is read: its entries, and its stored bytes with those of the next one.
        let turning = entry + 2 * store.file_bytes().div_ceil(meta.nnz.max(1));
        let bytes =
            |page: &PageEntry, entry: u64| u64::from(page.nnz) * entry + u64::from(page.n_rows) * of_piece;
        let least = pages.iter().map(|page| bytes(page, turning)).max().unwrap_or(0).max(turning);
        let needed = meta.n_rows * always + vectors + budget::page_bytes_of(largest);
        if needed + least > self.budget {
            let (rows, columns) = (meta.n_rows, self.n_columns);
            let parts = format!("what is known of {rows} rows, vectors of {columns} columns, a page of rows");
            return Err(Error::Budget { budget: self.budget, needed: needed + least, parts });
        }
        let left = self.budget - needed;
        // Small pieces leave more room for those that stay, but vectors of the columns begin anew with each.
        let floor = (SHARD_PIECE_COLUMNS * self.n_columns) as u64 * turning;
        let ceiling = (SHARD_PIECE_ENTRIES as u64 * turning).max(floor);
        let most = (left / SHARD_PIECE_SHARE as u64).max(floor.min(left / 2)).min(ceiling).max(least);
        let (mut blocks, mut held, mut size) = (vec![Vec::new()], vec![0], 0);
        for (k, page) in (0..).zip(pages) {
            if size + bytes(page, turning) > most && size > 0 {
                blocks.push(Vec::new());
                held.push(0);
                size = 0;
            }
            size += bytes(page, turning);
            *held.last_mut().expect("one at least") += bytes(page, entry);
            blocks.last_mut().expect("one at least").push(k);
        }
        Ok(PieceCut { blocks, n_held: n_held(&held, left, most) })
    }

    /// Reads the store, and calls `f` with its pieces.
    ///
    /// # Errors
    /// [`Error::Shape`] for a store of other columns or classes; those of [`Self::cut`], of the store and of
    /// `f`.
    pub fn with_pieces<T>(
        &self,
        store: &Store,
        monitor: &dyn Monitor,
        f: impl FnOnce(PieceRows<'_>, &mut Loader<'_>) -> Result<T>,
    ) -> Result<T> {
        self.check(store)?;
        let cut = &self.cut(store)?;
        std::thread::scope(|scope| {
            let fetch = Fetch::start(scope, store, &cut.blocks, Vec::new(), false, monitor)?;
            let (mut loader, own) = Loader::new(self, cut, fetch, monitor)?;
            let own = own.as_ref();
            let (pieces, facts) = loader.survey(own)?;
            let n_cols = own.map_or(self.n_columns, OwnColumns::n_columns);
            let pointers: Vec<Vec<i64>> =
                pieces.iter().map(|piece| memory::zeros(piece.n_rows + 1)).collect();
            let empty = CsrView::<i32, f32>::of_distinct;
            let absent = pointers.iter().map(|pointers| Ok(empty(pointers, &[], &[], n_cols)?.into()));
            let absent: Vec<Matrix<'_>> = absent.collect::<Result<_>>()?;
            f(PieceRows { pieces: &pieces, absent: &absent, own, facts }, &mut loader)
        })
    }

    /// Class and cost of each row of the input.
    ///
    /// # Errors
    /// Those of the store.
    pub fn by_number(&self, store: &Store, monitor: &dyn Monitor) -> Result<(Vec<u32>, Vec<f64>)> {
        self.check(store)?;
        let facts = store.facts_by_place(monitor)?;
        let n = facts.numbers.len();
        let (mut classes, mut costs) = (memory::zeros(n), memory::zeros(n));
        for (at, &number) in facts.numbers.iter().enumerate() {
            (classes[number as usize], costs[number as usize]) = self.row(&facts, at);
        }
        Ok((classes, costs))
    }

    /// Lanes with those that fill them up, where there are several.
    pub fn padded_lanes(&self) -> usize {
        if self.lanes == 1 { 1 } else { CLASSES }
    }

    fn has_own_columns(&self) -> bool {
        self.n_columns >= SHARD_OWN_COLUMNS
    }
}

/// How many of pieces of so many bytes, the first ones, may stay in memory; where that is not all of them,
/// the others need `turning` bytes.
fn n_held(pieces: &[u64], room: u64, turning: u64) -> usize {
    let room = if pieces.iter().sum::<u64>() <= room { room } else { room - turning };
    let sums = pieces.iter().scan(0, |sum, bytes| {
        *sum += bytes;
        Some(*sum)
    });
    sums.take_while(|sum| *sum <= room).count()
}

/// The rows of a piece, but for their entries.
pub struct StorePiece {
    n_rows: usize,
    costed: CostedRows,
}

/// Puts pieces into memory.
pub struct Loader<'a> {
    data: &'a StoreRows,
    blocks: &'a [Vec<u32>],
    fetch: Fetch<'a>,
    /// Those of the pieces that stay, and the one for which the others take turns.
    arenas: Vec<Arena>,
    /// What is in each.
    loaded: Vec<Option<usize>>,
    facts: RowFacts,
    /// What the columns are called in the data, where rows are to have these numbers.
    names: Vec<u32>,
    loaded_rows: u64,
    monitor: &'a dyn Monitor,
}

impl<'a> Loader<'a> {
    /// No piece is in memory yet; also the store's columns, where these are the shard's own.
    ///
    /// # Errors
    /// Those of the store; [`Error::Memory`].
    pub fn new(
        data: &'a StoreRows,
        PieceCut { blocks, n_held }: &'a PieceCut,
        fetch: Fetch<'a>,
        monitor: &'a dyn Monitor,
    ) -> Result<(Self, Option<OwnColumns>)> {
        let store = fetch.store();
        let (n_used, names) = (store.meta().n_used, store.old_columns()?);
        let own = data.has_own_columns().then(|| OwnColumns::of_store(&names, n_used, data.n_columns));
        let own = own.transpose()?;
        let (n_cols, names) = if own.is_some() { (n_used, Vec::new()) } else { (data.n_columns, names) };
        let (held, others) = blocks.split_at(*n_held);
        let sizes = others.iter().map(|pages| store.size(pages));
        let largest = sizes.reduce(|most, size| (most.0.max(size.0), most.1.max(size.1)));
        let sizes = held.iter().map(|pages| store.size(pages)).chain(largest);
        let arenas = sizes.map(|(rows, entries)| Arena::new(store.width(), n_cols, rows, entries));
        let (arenas, facts) = (arenas.collect::<Result<Vec<_>>>()?, RowFacts::default());
        let loaded = arenas.iter().map(|_| None).collect();
        let loaded_rows = 0;
        Ok((Self { data, blocks, fetch, arenas, loaded, facts, names, loaded_rows, monitor }, own))
    }

    /// Reads all pieces, and says what is in them.
    ///
    /// # Errors
    /// Those of the store.
    pub fn survey(&mut self, own: Option<&OwnColumns>) -> Result<(Vec<StorePiece>, ShardFacts)> {
        let (mut pieces, mut all) = (Vec::with_capacity(self.blocks.len()), ShardFacts::default());
        for k in 0..self.blocks.len() {
            self.load(k)?;
            let n_rows = self.facts.classes.len();
            let costed = CostedRows::of(n_rows, |i| self.data.row(&self.facts, i));
            let piece = StorePiece { n_rows, costed };
            let rows = self.rows(k);
            all.join(&piece.rows(&rows, self.data, own, None).facts());
            pieces.push(piece);
        }
        all.n_shards = 1;
        Ok((pieces, all))
    }

    /// Readings of the whole store so far.
    pub fn readings(&self) -> f64 {
        self.loaded_rows as f64 / self.fetch.store().meta().n_rows.max(1) as f64
    }

    /// Whether a piece stays in memory.
    fn is_held(&self, k: usize) -> bool {
        k + 1 < self.arenas.len() || self.arenas.len() == self.blocks.len()
    }

    fn arena_of(&self, k: usize) -> usize {
        k.min(self.arenas.len() - 1)
    }

    fn load(&mut self, k: usize) -> Result<()> {
        let place = self.arena_of(k);
        if self.loaded[place].replace(k) == Some(k) {
            return Ok(());
        }
        let Self { blocks, fetch, arenas, loaded, facts, names, monitor, loaded_rows, .. } = self;
        let (store, pages, arena) = (fetch.store(), &blocks[k], &mut arenas[place]);
        let (n_rows, nnz) = store.size(pages);
        *loaded_rows += n_rows as u64;
        arena.keep(&[]);
        let filled = fetch.with(k, |bytes| {
            arena.fill(n_rows, nnz, |free| store.decode_into(pages, bytes, free, facts, *monitor))
        });
        let filled = filled.and_then(|()| arena.rename_columns(names));
        if filled.is_err() {
            loaded[place] = None;
        } else if k + 1 < blocks.len() {
            fetch.ask(k + 1);
        } else if arenas.len() < blocks.len() {
            fetch.ask(arenas.len() - 1);
        }
        filled
    }

    fn rows(&self, k: usize) -> Matrix<'_> {
        self.arenas[self.arena_of(k)].view().into()
    }
}

impl StorePiece {
    fn rows<'b>(
        &'b self,
        rows: &'b Matrix<'b>,
        data: &StoreRows,
        own: Option<&'b OwnColumns>,
        folds: Option<ShardFolds<'b>>,
    ) -> ShardRows<'b> {
        let (StoreRows { loss, intercept, .. }, CostedRows { ids, classes, cost }) = (data, &self.costed);
        ShardRows { rows, ids, own, classes, cost, loss: *loss, intercept: *intercept, folds }
    }
}

/// The pieces of a store that was read once.
#[derive(Clone, Copy)]
pub struct PieceRows<'s> {
    /// The pieces.
    pub pieces: &'s [StorePiece],
    /// Their rows without entries.
    absent: &'s [Matrix<'s>],
    own: Option<&'s OwnColumns>,
    /// What a client has to know of all of them.
    pub facts: ShardFacts,
}

/// The splits of a search.
pub struct PieceFolds {
    /// Those of each piece, in its rows.
    folds: Vec<Vec<Fold>>,
    /// Classes and weights of all its rows.
    facts: Vec<(Vec<u32>, Vec<f64>)>,
    /// The piece of each held-out row, fold by fold.
    owners: Vec<Vec<u32>>,
}

impl PieceFolds {
    /// Cuts splits in rows of the input.
    ///
    /// # Errors
    /// Those of the store; [`Error::Labels`] for rows that there are not.
    pub fn cut(
        splits: &[Fold],
        loader: &Loader<'_>,
        pieces: &[StorePiece],
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        let data = loader.data;
        let found = loader.fetch.store().facts_by_place(monitor)?;
        let n = found.numbers.len();
        let mut places: Vec<[u32; 2]> = memory::filled([0; 2], n);
        let (mut facts, mut first) = (Vec::with_capacity(pieces.len()), 0);
        for (k, piece) in (0..).zip(pieces) {
            let rows = first..first + piece.n_rows;
            rows.clone().zip(0..).for_each(|(at, i)| places[found.numbers[at] as usize] = [k, i]);
            facts.push((
                rows.clone().map(|at| data.row(&found, at).0).collect_large(),
                rows.map(|at| data.row(&found, at).1).collect_large(),
            ));
            first += piece.n_rows;
        }
        let empty = || pieces.iter().map(|_| Vec::new()).collect::<Vec<Vec<u32>>>();
        let mut folds: Vec<Vec<Fold>> = pieces.iter().map(|_| Vec::with_capacity(splits.len())).collect();
        let mut owners = Vec::with_capacity(splits.len());
        for split in splits {
            let mut parts = [empty(), empty()];
            for (part, rows) in parts.iter_mut().zip([&split.train, &split.test]) {
                for row in rows {
                    let &[k, i] = places.get(*row as usize).ok_or_else(|| Error::Labels {
                        reason: format!("a fold names row {row}, there are {n}"),
                    })?;
                    memory::push(&mut part[k as usize], i);
                }
            }
            owners.push(split.test.iter().map(|row| places[*row as usize][0]).collect_large());
            let [train, test] = parts;
            let both = train.into_iter().zip(test);
            folds.iter_mut().zip(both).for_each(|(folds, (train, test))| folds.push(Fold { train, test }));
        }
        Ok(Self { folds, facts, owners })
    }

    fn of_piece(&self, k: usize) -> ShardFolds<'_> {
        let (classes, weight) = &self.facts[k];
        ShardFolds { folds: &self.folds[k], classes, weight }
    }

    /// Decision values of held-out rows, from those of each piece.
    fn woven(&self, of_lanes: &[usize], answers: &[ShardAnswer]) -> Result<Vec<f64>> {
        let mut left: Vec<_> = answers.iter().map(|answer| answer.sums.iter().copied()).collect();
        let owners = of_lanes.iter().flat_map(|fold| &self.owners[*fold]);
        let mut values = memory::with_capacity(answers.iter().map(|answer| answer.sums.len()).sum());
        for owner in owners {
            let (expected, found) = (values.len() + 1, values.len());
            let wrong = Error::Shape { what: "held-out rows of a store", expected, found };
            values.push(left[*owner as usize].next().ok_or(wrong)?);
        }
        Ok(values)
    }
}

/// A store in the course of a fit, or of a search.
pub struct StoreShard<'s, 'a> {
    rows: PieceRows<'s>,
    folds: Option<&'s PieceFolds>,
    loader: &'s mut Loader<'a>,
    shards: Vec<Shard<'s>>,
    /// What is known of the rows of those that are not awake.
    spilled: SpillFile,
    monitor: &'s dyn Monitor,
}

impl<'s, 'a> StoreShard<'s, 'a> {
    /// Before the first request.
    pub fn new(
        rows: PieceRows<'s>,
        folds: Option<&'s PieceFolds>,
        loader: &'s mut Loader<'a>,
        monitor: &'s dyn Monitor,
    ) -> Self {
        let n_pieces = rows.pieces.len();
        let spilled = SpillFile::new(loader.data.folder.clone(), n_pieces);
        let mut found = Self { rows, folds, loader, shards: Vec::new(), spilled, monitor };
        found.shards = (0..n_pieces).map(|k| Shard::new(found.absent(k), monitor)).collect();
        found
    }

    /// A piece whose entries are not in memory.
    fn absent(&self, k: usize) -> ShardRows<'s> {
        let folds = self.folds.map(|folds| folds.of_piece(k));
        let PieceRows { pieces, absent, own, .. } = self.rows;
        pieces[k].rows(&absent[k], self.loader.data, own, folds)
    }

    /// Does what a request says.
    ///
    /// # Errors
    /// Those of [`Shard::answer`] and of the store.
    pub fn answer(&mut self, words: &[f64]) -> Result<ShardAnswer> {
        let (mut answer, mut left) = self.answer_some(words)?;
        while !left.is_empty() {
            let (more, rest) = self.answer_some(left)?;
            answer.then(&more);
            left = rest;
        }
        Ok(answer)
    }

    /// The same up to the first relayed operation, and what is left of the request: every piece has to end it
    /// before the first one goes on.
    fn answer_some<'w>(&mut self, words: &'w [f64]) -> Result<(ShardAnswer, &'w [f64])> {
        let (mut answers, mut relay, mut left) = (Vec::<ShardAnswer>::new(), Vec::new(), words);
        for k in 0..self.shards.len() {
            self.shards[k].hand(relay);
            let answer;
            (answer, left) = self.ask(k, words)?;
            relay = self.shards[k].handed();
            let (first, others) = self.shards.split_at_mut(1);
            if let Some(shard) = k.checked_sub(1).map(|k| &mut others[k]) {
                shard.share_columns(&first[0]);
            }
            match answers.first_mut() {
                Some(sum) if answer.kind == SumsKind::Sums => sum.join(&answer)?,
                Some(_) if answer.kind == SumsKind::Columns => {}
                _ => answers.push(answer),
            }
        }
        let of_all = match (answers[0].kind, self.folds) {
            (SumsKind::HeldOut, Some(folds)) => Some(folds.woven(self.shards[0].folds_of_lanes(), &answers)?),
            (SumsKind::Hash, _) => Some(joined_hashes(&answers)),
            _ => None,
        };
        let first = answers.swap_remove(0);
        let answer = match of_all {
            Some(sums) => ShardAnswer { sums, ..first },
            None => first,
        };
        Ok((answer, left))
    }

    /// What a piece answers up to the first relayed operation. After an error it knows nothing.
    fn ask<'w>(&mut self, k: usize, words: &'w [f64]) -> Result<(ShardAnswer, &'w [f64])> {
        let (absent, monitor) = (self.absent(k), self.monitor);
        let mut shard = std::mem::replace(&mut self.shards[k], Shard::new(absent, monitor));
        let (mut reader, mut answer) = (Reader::new(words, 1), ShardAnswer::default());
        let (is_held, spilled) = (self.loader.is_held(k), &mut self.spilled);
        while !reader.is_empty() && reader.next_op()?.is_of_numbers() {
            spilled.bring(k, reader.next_op()?, shard.row_vectors())?;
            shard.answer_one(&mut reader, &mut answer)?;
        }
        if !reader.is_empty() {
            self.loader.load(k)?;
            let rows = self.loader.rows(k);
            let here = self.rows.pieces[k].rows(&rows, self.loader.data, self.rows.own, absent.folds);
            let (mut awake, mut is_over) = (shard.moved_to(here, monitor), false);
            while !reader.is_empty() && !is_over {
                is_over = reader.next_op()?.is_relayed();
                spilled.bring(k, reader.next_op()?, awake.row_vectors())?;
                awake.answer_one(&mut reader, &mut answer)?;
            }
            shard = awake.moved_to(absent, monitor);
        }
        if !is_held {
            spilled.put(k, shard.row_vectors())?;
        }
        self.shards[k] = shard;
        Ok((answer, reader.rest()))
    }
}

/// Hashes of all pieces from those of each.
fn joined_hashes(answers: &[ShardAnswer]) -> Vec<f64> {
    let numbers = (0..2).flat_map(|which| {
        let bytes = answers.iter().flat_map(|answer| &answer.sums[2 * which..2 * which + 2]);
        let hash = fingerprint::hash_bytes(bytes.flat_map(|word| (*word as u32).to_le_bytes()));
        [f64::from((hash >> 32) as u32), f64::from(hash as u32)]
    });
    numbers.collect()
}
