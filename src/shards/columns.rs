//! Columns of wide sparse rows: a shard numbers those that it has in an order of its own, and of columns that
//! are proportional in all rows of all shards one travels.
//!
//! ```text
//! columns of the data      0 1 2 3 4 5 6 7 8 9
//! own columns of a shard     ^   ^ ^     ^          frequent ones first ([`OwnColumns`]): no row has others
//! columns that travel        0   1 0     2          multiples of one column are one ([`super::merge`])
//! ```
//!
//! **Rows** have their own columns and the values that they came with, so that decision values and proofs are
//! those of the data. Only numbers of columns change, in place. Weights that are rare together are in the
//! same cache lines afterwards, and vectors of columns have no more numbers than the shard has columns.
//!
//! **Vectors** change on their way ([`TravellingColumns`]): weights of own columns are those that travel
//! times shares, and sums over rows are added up with the same shares. As in [`crate::presolve`] that is an
//! orthogonal change of variables, up to the rounding by which columns that count as proportional are not.

use std::borrow::Cow;
use std::sync::Arc;

use super::wire::{Reader, ShardAnswer};
use crate::matrix::csr::CsrView;
use crate::matrix::{Matrix, Value, kernels};
use crate::memory::CollectLarge;
use crate::presolve::{self, Cancelled, MergedColumns};
use crate::search::fingerprint;
use crate::{Error, Result, memory};

/// A column that does not travel, or is not a shard's own.
const NOWHERE: u32 = u32::MAX;
/// Bits of the number of a column in a message, its mark as scaled included.
const BITS: u32 = 31;
/// What says there that a column has no entries.
const EMPTY: u64 = (1 << BITS) - 1;

/// The columns of a shard's rows in their own order.
pub struct OwnColumns {
    /// The column of the data of each.
    column: Vec<u32>,
    /// What becomes of the data's columns if those that are proportional in these rows become one.
    merged: MergedColumns,
}

impl OwnColumns {
    /// Checks rows and numbers their columns anew; `None` for rows without a nonzero entry, and for numbers
    /// too large to be merged, which stay as they are.
    ///
    /// # Errors
    /// Those of [`CsrView::new`] and [`presolve::merge`].
    pub fn number<V: Value>(
        (indptr, indices, values): (&[i64], &mut [i32], &[V]),
        n_cols: usize,
        cancelled: &Cancelled<'_>,
    ) -> Result<Option<Self>> {
        let (view, structure) = CsrView::new(indptr, indices, values, n_cols)?;
        let Some(merged) = presolve::merge(&view, &structure, cancelled)? else { return Ok(None) };
        if merged.n_columns() as u64 >= EMPTY >> 1 {
            return Ok(None);
        }
        let column = number(indices, &merged);
        Ok(Some(Self { column, merged }))
    }

    /// Those of a store, which has numbered its columns by frequency: the first of `n_own` are called `names`
    /// in the data, the others have kept their numbers. None is taken for a multiple of another one.
    ///
    /// # Errors
    /// [`Error::Shape`] for names that are none of `n_cols` columns, or are there twice.
    pub fn of_store(names: &[u32], n_own: usize, n_cols: usize) -> Result<Self> {
        let column: Vec<u32> = (0..n_own).map(|l| names.get(l).copied().unwrap_or(l as u32)).collect_large();
        let mut places = memory::filled(None, n_cols);
        for (l, j) in column.iter().enumerate() {
            match places.get_mut(*j as usize) {
                Some(place @ None) => *place = Some((l as u32, 1.0)),
                _ => return Err(Error::Shape { what: "columns of a store", expected: n_cols, found: n_own }),
            }
        }
        let merged = MergedColumns::of_places(n_own, places.into_iter());
        let merged = merged.ok_or(Error::Shape { what: "merged columns", expected: n_own, found: n_cols })?;
        Ok(Self { column, merged })
    }

    /// How many there are.
    pub fn n_columns(&self) -> usize {
        self.column.len()
    }

    /// The hash of rows with these columns as that of the data's.
    pub fn hash_rows(&self, rows: &Matrix<'_>) -> u64 {
        fingerprint::hash_rows_as(rows, |own| self.column[own] as usize)
    }

    /// Appends which columns are proportional in these rows.
    pub fn survey(&self, words: &mut Vec<f64>) {
        put(&self.merged, words);
    }
}

/// Gives columns numbers by falling frequency, columns of the same packed column side by side; the column of
/// each number.
fn number(indices: &mut [i32], merged: &MergedColumns) -> Vec<u32> {
    let (mut column, _) = merged.by_place();
    let mut own = memory::filled(NOWHERE, merged.n_input());
    column.iter().enumerate().for_each(|(l, j)| own[*j as usize] = l as u32);
    for k in 0..indices.len() {
        if let Some(ahead) = indices.get(k + kernels::ENTRIES_AHEAD) {
            kernels::prefetch(&own, *ahead as usize, 1);
        }
        let j = indices[k] as usize;
        if own[j] == NOWHERE {
            // Nothing but stored zeros.
            own[j] = column.len() as u32;
            memory::push(&mut column, j as u32);
        }
        indices[k] = own[j] as i32;
    }
    column
}

/// From the columns of vectors that travel to a shard's own, and back.
#[derive(Clone)]
pub struct TravellingColumns(Option<Arc<Way>>);

struct Way {
    /// Columns that travel, an intercept's aside.
    n: usize,
    /// Of each own column, the one that travels for it, or [`NOWHERE`],
    index: Vec<u32>,
    /// and the share of its weight that is this column's.
    share: Vec<f64>,
}

impl TravellingColumns {
    /// Those of the data travel.
    pub fn of_data(own: Option<&OwnColumns>) -> Self {
        Self(own.map(|own| {
            let (n, index) = (own.merged.n_input(), memory::copy(&own.column));
            Arc::new(Way { n, index, share: memory::filled(1.0, own.n_columns()) })
        }))
    }

    /// Merged ones travel, as a message says.
    ///
    /// # Errors
    /// [`Error::Shape`] for a message that is not of these columns.
    pub fn told(own: Option<&OwnColumns>, reader: &mut Reader<'_>) -> Result<Self> {
        let wrong = || Error::Shape { what: "own columns of a shard", expected: 1, found: 0 };
        let own = own.ok_or_else(wrong)?;
        let merged = take(reader, own.merged.n_input())?;
        let mut way = Way {
            n: merged.n_columns(),
            index: memory::filled(NOWHERE, own.n_columns()),
            share: memory::zeros(own.n_columns()),
        };
        for (l, j) in own.column.iter().enumerate() {
            if let Some((index, share)) = merged.place(*j as usize) {
                (way.index[l], way.share[l]) = (index, share);
            }
        }
        Ok(Self(Some(Arc::new(way))))
    }

    /// How many columns travel, and which of them these rows have, in rising order; `None` where all of the
    /// data's travel to all shards.
    pub fn travelling(&self) -> Option<(usize, Vec<u32>)> {
        let way = self.0.as_ref()?;
        let mut is_there = memory::filled(false, way.n);
        for index in &way.index {
            if let Some(is_there) = is_there.get_mut(*index as usize) {
                *is_there = true;
            }
        }
        Some((way.n, (0..way.n as u32).filter(|j| is_there[*j as usize]).collect_large()))
    }

    /// What each of so many own columns, those of intercepts the last, is called where vectors travel.
    pub fn names(&self, n_own: usize) -> impl Iterator<Item = u32> + '_ {
        let (n, index) = self.0.as_ref().map_or((0, &[][..]), |way| (way.n, &way.index[..]));
        index.iter().copied().chain((n..).map(|j| j as u32)).take(n_own)
    }

    /// Reads a vector of so many own columns, in which those of intercepts are the last.
    ///
    /// # Errors
    /// [`Error::Shape`] for a message that is too short.
    pub fn numbers<'w>(&self, reader: &mut Reader<'w>, n_own: usize) -> Result<Cow<'w, [f64]>> {
        let Some(way) = &self.0 else { return reader.numbers(n_own).map(Cow::Borrowed) };
        let n_more = n_own - way.index.len();
        let (merged, more) = reader.numbers(way.n + n_more)?.split_at(way.n);
        let mut out = memory::with_capacity(n_own);
        let weight = |(index, share): (&u32, &f64)| merged.get(*index as usize).map_or(0.0, |w| w * share);
        out.extend(way.index.iter().zip(&way.share).map(weight));
        out.extend_from_slice(more);
        Ok(Cow::Owned(out))
    }

    /// The same with the lanes of the reader, side by side.
    ///
    /// # Errors
    /// As for [`Self::numbers`].
    pub fn block<const L: usize>(&self, reader: &mut Reader<'_>, out: &mut [[f64; L]]) -> Result<()> {
        let Some(way) = &self.0 else { return reader.block(out) };
        let (lanes, n_more) = (reader.n_lanes(), out.len() - way.index.len());
        let (merged, more) = reader.numbers((way.n + n_more) * lanes)?.split_at(way.n * lanes);
        let (out, last) = out.split_at_mut(way.index.len());
        for ((out, index), share) in out.iter_mut().zip(&way.index).zip(&way.share) {
            *out = [0.0; L];
            let start = *index as usize * lanes;
            let numbers = merged.get(start..start + lanes).unwrap_or_default();
            out.iter_mut().zip(numbers).for_each(|(out, w)| *out = w * share);
        }
        Reader::new(more, lanes).block(last)
    }

    /// Appends sums over rows.
    pub fn answer<const L: usize>(&self, sums: &[[f64; L]], lanes: usize, answer: &mut ShardAnswer) {
        let Some(way) = &self.0 else { return answer.block(sums, lanes) };
        let (own, more) = sums.split_at(way.index.len());
        way.add(answer, lanes, |l, out, share| {
            out.iter_mut().zip(&own[l]).for_each(|(out, x)| *out += share * x);
        });
        answer.block(more, lanes);
    }

    /// The same for one number a column.
    pub fn answer_numbers(&self, sums: &[f64], answer: &mut ShardAnswer) {
        self.answer(sums.as_chunks::<1>().0, 1, answer);
    }

    /// Appends a diagonal: entries of squared columns, whose shares have to be squared, too, and of which
    /// each own column has its share already.
    pub fn answer_diagonal(&self, diagonal: &[f64], answer: &mut ShardAnswer) {
        let Some(way) = &self.0 else { return answer.sums.extend_from_slice(diagonal) };
        let (own, more) = diagonal.split_at(way.index.len());
        way.add(answer, 1, |l, out, _| out[0] += own[l]);
        answer.sums.extend_from_slice(more);
    }
}

impl Way {
    /// Appends a vector that travels, to which each own column adds.
    fn add(&self, answer: &mut ShardAnswer, lanes: usize, mut add: impl FnMut(usize, &mut [f64], f64)) {
        let start = answer.sums.len();
        answer.vectors.push([start, lanes]);
        memory::resize(&mut answer.sums, start + self.n * lanes, 0.0);
        let out = &mut answer.sums[start..];
        for (l, (index, share)) in self.index.iter().zip(&self.share).enumerate() {
            let at = *index as usize * lanes;
            if let Some(out) = out.get_mut(at..at + lanes) {
                add(l, out, *share);
            }
        }
    }
}

/// Appends merged columns: how many there are and how many columns have a share, the places two to a word,
/// and the shares. The bits of a word are those of a finite number, which no transport changes.
pub fn put(merged: &MergedColumns, words: &mut Vec<f64>) {
    let code = |j: usize| match merged.place(j) {
        None => EMPTY,
        Some((packed, share)) => u64::from(packed) << 1 | u64::from(share != 1.0),
    };
    let shares =
        || (0..merged.n_input()).filter_map(|j| Some(merged.place(j)?.1)).filter(|share| *share != 1.0);
    let n = merged.n_input();
    memory::extend(words, [merged.n_columns() as f64, shares().count() as f64]);
    let second = |j: usize| if j < n { code(j) } else { EMPTY };
    memory::extend(words, (0..n).step_by(2).map(|j| f64::from_bits(code(j) | second(j + 1) << BITS)));
    memory::extend(words, shares());
}

/// Reads what [`put`] has written of so many columns.
///
/// # Errors
/// [`Error::Shape`] for anything else.
pub fn take(reader: &mut Reader<'_>, n: usize) -> Result<MergedColumns> {
    let (n_columns, n_shares) = (reader.number()? as usize, reader.number()? as usize);
    let codes = reader.numbers(n.div_ceil(2))?;
    let mut shares = reader.numbers(n_shares)?.iter();
    let code = |j: usize| codes[j / 2].to_bits() >> (BITS * (j % 2) as u32) & EMPTY;
    let place = |j: usize| match code(j) {
        EMPTY => None,
        code => {
            Some(((code >> 1) as u32, if code & 1 == 0 { 1.0 } else { *shares.next().unwrap_or(&f64::NAN) }))
        }
    };
    let merged = MergedColumns::of_places(n_columns, (0..n).map(place));
    merged.ok_or(Error::Shape { what: "merged columns", expected: n_columns, found: n })
}
