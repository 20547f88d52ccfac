//! The writing pass: every row once, from the caller's matrix to the packed one.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::layout::{ALONE, NOWHERE, PackedLayout, SCALED};
use super::{CHUNK_ENTRIES, Cancelled, Source, poll};
use crate::matrix::{Index, Value, kernels};
use crate::{Result, memory, parallel};

/// The arrays of the packed matrix, and where each column went.
pub struct Packed<V> {
    pub indptr: Vec<i64>,
    pub indices: Vec<i32>,
    pub values: Vec<V>,
    pub places: ColumnPlaces,
}

/// Where each column went, those aside that were merged into one of the same rows.
pub struct ColumnPlaces {
    /// The packed column, [`SCALED`] if its weight is a multiple of the packed one, or [`NOWHERE`].
    pub packed_column: Vec<u32>,
    /// Weight of a column marked as scaled, in units of the packed weight.
    pub share: Vec<f64>,
}

/// A run of rows and where its entries go.
struct Task<'a, V> {
    rows: Range<usize>,
    indices: &'a mut [i32],
    values: &'a mut [V],
}

/// Writes the packed matrix, rows sorted by packed column.
pub fn pack<I: Index, V: Value>(
    x: &Source<'_, I, V>,
    layout: PackedLayout,
    cancelled: &Cancelled<'_>,
) -> Result<Packed<V>> {
    let mut indptr = memory::zeros::<i64>(x.n_rows + 1);
    for (row, len) in layout.row_len.iter().enumerate() {
        indptr[row + 1] = indptr[row] + i64::from(*len);
    }
    let nnz = indptr[x.n_rows] as usize;
    let (mut indices, mut values) = (memory::zeros::<i32>(nnz), memory::zeros::<V>(nnz));
    let writer = Writer::new(x, layout);
    parallel::try_map(tasks(x, &indptr, &mut indices, &mut values), |_, task| {
        poll(cancelled)?;
        let mut out = Out { indices: task.indices, values: task.values, at: 0 };
        writer.run(task.rows, |packed, value| out.push(packed, value));
        debug_assert_eq!(out.at, out.indices.len());
        Ok(())
    })?;
    Ok(Packed { indptr, indices, values, places: writer.places() })
}

/// What [`pack`] finds of the columns, without writing the matrix.
pub fn places<I: Index, V: Value>(
    x: &Source<'_, I, V>,
    layout: PackedLayout,
    cancelled: &Cancelled<'_>,
) -> Result<ColumnPlaces> {
    let writer = Writer::new(x, layout);
    parallel::try_map(x.cut(x.nnz() / CHUNK_ENTRIES + 1), |_, rows| {
        poll(cancelled)?;
        writer.run(rows, |_, _| ());
        Ok(())
    })?;
    Ok(writer.places())
}

fn tasks<'a, I: Index, V: Value>(
    x: &Source<'_, I, V>,
    indptr: &[i64],
    mut indices: &'a mut [i32],
    mut values: &'a mut [V],
) -> Vec<Task<'a, V>> {
    let mut tasks = Vec::new();
    for rows in x.cut(x.nnz() / CHUNK_ENTRIES + 1) {
        let len = (indptr[rows.end] - indptr[rows.start]) as usize;
        let (i, v);
        (i, indices) = indices.split_at_mut(len);
        (v, values) = values.split_at_mut(len);
        tasks.push(Task { rows, indices: i, values: v });
    }
    tasks
}

/// Where the next entry goes.
struct Out<'a, V> {
    indices: &'a mut [i32],
    values: &'a mut [V],
    at: usize,
}

impl<V> Out<'_, V> {
    #[inline(always)]
    fn push(&mut self, packed: u32, value: V) {
        self.indices[self.at] = packed as i32;
        self.values[self.at] = value;
        self.at += 1;
    }
}

/// What all tasks share. A column of one row is met by one task only, which leaves there what becomes of its
/// weight.
struct Writer<'a, I, V> {
    x: &'a Source<'a, I, V>,
    factor: Vec<f64>,
    own: Vec<u32>,
    packed_column: Vec<AtomicU32>,
    share: Vec<AtomicU64>,
}

impl<'a, I: Index, V: Value> Writer<'a, I, V> {
    fn new(x: &'a Source<'a, I, V>, layout: PackedLayout) -> Self {
        let PackedLayout { packed_column, factor, own, .. } = layout;
        let packed_column = packed_column.into_iter().map(AtomicU32::new).collect();
        let share = memory::zeros::<u64>(x.n_cols).into_iter().map(AtomicU64::new).collect();
        Self { x, factor, own, packed_column, share }
    }

    fn places(self) -> ColumnPlaces {
        let packed_column = self.packed_column.into_iter().map(AtomicU32::into_inner).collect();
        let share = self.share.into_iter().map(|bits| f64::from_bits(bits.into_inner())).collect();
        ColumnPlaces { packed_column, share }
    }

    /// Hands the entries of the packed rows to `push`.
    fn run(&self, rows: Range<usize>, mut push: impl FnMut(u32, V)) {
        let mut alone = Vec::new();
        for row in rows {
            for k in self.x.range(row) {
                if let Some(next) = self.x.indices.get(k + kernels::ENTRIES_AHEAD) {
                    kernels::prefetch(&self.packed_column, next.to_usize(), 1);
                }
                let (j, value) = (self.x.indices[k].to_usize(), self.x.values[k]);
                let packed_column = self.packed_column[j].load(Ordering::Relaxed);
                if value.to_f64() == 0.0 {
                    continue;
                }
                if packed_column < SCALED {
                    push(packed_column, value);
                } else if packed_column == ALONE {
                    alone.push((j, value));
                } else if packed_column != NOWHERE {
                    let packed = packed_column & !SCALED;
                    push(packed, V::from_f64(value.to_f64() * self.factor[packed as usize]));
                }
            }
            if !alone.is_empty() {
                push(self.own[row], self.merge(row, &alone));
                alone.clear();
            }
        }
    }

    /// The value of the row's own column, and the shares of those that it stands for.
    fn merge(&self, row: usize, alone: &[(usize, V)]) -> V {
        if let [(j, value)] = alone {
            self.packed_column[*j].store(self.own[row], Ordering::Relaxed);
            return *value;
        }
        let largest = alone.iter().map(|(_, v)| v.to_f64().abs()).fold(0.0, f64::max);
        let squares: f64 = alone.iter().map(|(_, v)| (v.to_f64() / largest).powi(2)).sum();
        let norm = squares.sqrt();
        for (j, value) in alone {
            self.packed_column[*j].store(self.own[row] | SCALED, Ordering::Relaxed);
            self.share[*j].store((value.to_f64() / largest / norm).to_bits(), Ordering::Relaxed);
        }
        V::from_f64(largest * norm)
    }
}
