//! One reading of all rows, page by page in parallel.

use std::ops::Range;

use rayon::prelude::*;

use crate::fit::Monitor;
use crate::matrix::Rows;
use crate::matrix::arena::{Arena, View, Width};
use crate::source::mapped::{StoreMap, mapped};
use crate::store::page::{Facts, Scratch};
use crate::store::reader;
use crate::store::reader::{PageBytes, RowFacts, Store};
use crate::{Result, memory};

/// Buffers to decode one page at a time.
#[derive(Default)]
pub struct PageReader {
    arena: Option<Arena>,
    scratch: Scratch,
    buffer: Vec<u8>,
    facts: RowFacts,
}

impl PageReader {
    /// The rows of a page and what belongs to them.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`], [`crate::Error::Io`], [`crate::Error::Memory`].
    pub fn read(
        &mut self,
        store: &Store,
        source: &(impl PageBytes + ?Sized),
        page: usize,
        width: Width,
    ) -> Result<(View<'_>, &RowFacts)> {
        let entry = &store.pages()[page];
        let (n, nnz) = (entry.n_rows as usize, entry.nnz as usize);
        let Self { arena, scratch, buffer, facts } = self;
        let bytes = source.get(store, 0, page, buffer)?;
        if let Some(arena) = arena {
            arena.keep(&[]);
        }
        if arena.as_ref().is_none_or(|arena| !arena.has_room(n, nnz)) {
            *arena = None; // before the new one takes its memory
        }
        let arena = match arena {
            Some(arena) => arena,
            none => none.insert(Arena::new(width, store.meta().n_used, n.max(1024), nnz + nnz / 8)?),
        };
        memory::resize(&mut facts.classes, n, 0);
        memory::resize(&mut facts.weights, n, 1.0);
        memory::resize(&mut facts.numbers, n, 0);
        let mut wanted = Facts {
            classes: Some(&mut facts.classes),
            weights: Some(&mut facts.weights),
            numbers: Some(&mut facts.numbers),
        };
        arena.fill(n, nnz, |free| {
            store.decode(page, bytes, scratch, reader::reborrow(&mut free.room), &mut wanted)
        })?;
        Ok((arena.view(), facts))
    }
}

/// Calls `f` with each page and the item that belongs to it; results in the order of the pages.
///
/// # Errors
/// [`crate::Error::Corrupt`], [`crate::Error::Io`], [`crate::Error::Cancelled`].
pub fn for_pages<I: Send, T: Send>(
    store: &Store,
    source: &(impl PageBytes + ?Sized),
    width: Width,
    items: Vec<I>,
    monitor: &dyn Monitor,
    f: impl Fn(usize, View<'_>, &RowFacts, I) -> T + Sync,
) -> Result<Vec<T>> {
    let work = |reader: &mut PageReader, (page, item): (usize, I)| {
        monitor.poll()?;
        let (view, facts) = reader.read(store, source, page, width)?;
        Ok(f(page, view, facts, item))
    };
    let results: Vec<Result<T>> =
        items.into_par_iter().enumerate().map_init(PageReader::default, work).collect();
    results.into_iter().collect()
}

/// Row numbers and decision values `x_i . w_k + b_k` of some pages: row after row in the order of the file,
/// one value per weight vector, which is in the order of the store's columns, or of the pairs of these where
/// there is a map.
///
/// # Errors
/// [`crate::Error::Corrupt`], [`crate::Error::Io`], [`crate::Error::Cancelled`].
pub fn decisions(
    store: &Store,
    pages: Range<usize>,
    weights: &[Vec<f64>],
    intercepts: &[f64],
    map: Option<&StoreMap>,
    monitor: &dyn Monitor,
) -> Result<(Vec<u64>, Vec<f64>)> {
    let work = |reader: &mut PageReader, page: usize| -> Result<(Vec<u64>, Vec<f64>)> {
        monitor.poll()?;
        let (view, facts) = reader.read(store, &reader::FromFile, page, store.width())?;
        let mut values = memory::with_capacity(facts.numbers.len() * weights.len());
        let rows = &mapped(view, map);
        for i in 0..rows.n_rows() {
            memory::extend(&mut values, weights.iter().zip(intercepts).map(|(w, b)| rows.dot(i, w) + b));
        }
        Ok((memory::copy(&facts.numbers), values))
    };
    let done: Vec<_> = pages.into_par_iter().map_init(PageReader::default, work).collect();
    let (mut all_numbers, mut all_values) = (Vec::new(), Vec::new());
    for page in done {
        let (numbers, values) = page?;
        memory::extend(&mut all_numbers, numbers);
        memory::extend(&mut all_values, values);
    }
    Ok((all_numbers, all_values))
}
