//! One contiguous buffer of rows with a fixed capacity, filled at its end and compacted in place.
//!
//! ```text
//!     indptr   0        3     5           9 .              capacity in rows and in entries is allocated once
//!     indices  a a a    b b   c c c c     . . . .
//!     values   per entry (f32 or f64), or one number per row
//!                       keep([0, 2]):   a a a c c c c . . . . . .     rows move down, nothing is allocated
//! ```
//!
//! Soundness of the unchecked kernels rests on this file: an entry becomes part of a row only in
//! [`Free::commit`], which has checked every column number.

use super::csr::CsrView;
use super::number::CsrValues;
use super::scaled::ScaledView;
use crate::{Error, Result, memory};

/// How values are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// One number per row: all its values are equal.
    Row,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Width {
    /// Bytes per entry, its column number included.
    pub fn entry_bytes(self) -> usize {
        match self {
            Self::Row => 4,
            Self::F32 => 8,
            Self::F64 => 12,
        }
    }
}

/// Bytes per row beside its entries: its pointer, and its number where values are kept per row.
pub const ROW_BYTES: usize = 16;

enum Values {
    Row(Vec<f64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// The buffer.
pub struct Arena {
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Values,
    n_cols: usize,
    n_rows: usize,
}

/// The arrays of a CSR matrix.
pub struct OwnedCsr {
    /// Row pointers.
    pub indptr: Vec<i64>,
    /// Column numbers.
    pub indices: Vec<i32>,
    /// Values.
    pub values: CsrValues,
}

impl OwnedCsr {
    /// Gives the first columns the numbers `names`; the others keep theirs.
    pub fn rename_columns(&mut self, names: &[u32]) {
        rename(&mut self.indices, names);
    }
}

fn rename(columns: &mut [i32], names: &[u32]) {
    for column in columns {
        if let Some(&name) = names.get(*column as usize) {
            *column = name as i32;
        }
    }
}

/// The rows of an arena in one of three layouts.
#[derive(Clone, Copy)]
pub enum View<'a> {
    /// One number per row.
    Row(ScaledView<'a>),
    /// Single precision.
    F32(CsrView<'a, i32, f32>),
    /// Double precision.
    F64(CsrView<'a, i32, f64>),
}

/// Values to be written.
pub enum ValuesMut<'a> {
    /// One number per row.
    Row(&'a mut [f64]),
    /// One per entry.
    F32(&'a mut [f32]),
    /// One per entry.
    F64(&'a mut [f64]),
}

/// Room for a run of rows at the end of an arena.
pub struct Room<'a> {
    /// Length of each row, to be written.
    pub lens: &'a mut [i64],
    /// Column numbers of all rows, to be written.
    pub indices: &'a mut [i32],
    /// Values of all rows, to be written.
    pub values: ValuesMut<'a>,
}

impl<'a> Room<'a> {
    /// Takes the room of the first `n_rows` rows with `nnz` entries.
    pub fn split(self, n_rows: usize, nnz: usize) -> (Room<'a>, Room<'a>) {
        let (lens, later_lens) = self.lens.split_at_mut(n_rows);
        let (indices, later_indices) = self.indices.split_at_mut(nnz);
        let (values, later_values) = match self.values {
            ValuesMut::Row(v) => {
                let (a, b) = v.split_at_mut(n_rows);
                (ValuesMut::Row(a), ValuesMut::Row(b))
            }
            ValuesMut::F32(v) => {
                let (a, b) = v.split_at_mut(nnz);
                (ValuesMut::F32(a), ValuesMut::F32(b))
            }
            ValuesMut::F64(v) => {
                let (a, b) = v.split_at_mut(nnz);
                (ValuesMut::F64(a), ValuesMut::F64(b))
            }
        };
        let later = Room { lens: later_lens, indices: later_indices, values: later_values };
        (Room { lens, indices, values }, later)
    }
}

/// The unused end of an arena, to be filled while its rows are in use.
pub struct Free<'a> {
    /// Room for the rows to come.
    pub room: Room<'a>,
    n_cols: usize,
}

impl Free<'_> {
    /// Checks that what was written are rows: lengths that make up all entries, columns below `n_cols` that
    /// rise within a row.
    ///
    /// # Errors
    /// [`Error::Structure`], the row counted from the start of the room.
    pub fn commit(&self) -> Result<()> {
        let broken = |row: usize, reason: String| Err(Error::Structure { row, reason });
        let mut start = 0usize;
        for (row, &len) in self.room.lens.iter().enumerate() {
            let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len));
            let Some(columns) = end.and_then(|end| self.room.indices.get(start..end)) else {
                return broken(row, format!("a length of {len} does not fit the number of entries"));
            };
            // Without an early end, so that it becomes vector instructions.
            let rises = columns
                .iter()
                .zip(columns.get(1..).unwrap_or(&[]))
                .fold(true, |rises, (a, b)| rises & (a < b));
            let is_inside = columns.first().is_none_or(|&first| first >= 0)
                && columns
                    .last()
                    .is_none_or(|&last| usize::try_from(last).is_ok_and(|last| last < self.n_cols));
            if !(rises && is_inside) {
                return broken(row, format!("its columns must rise and be below {}", self.n_cols));
            }
            start += columns.len();
        }
        if start != self.room.indices.len() {
            return broken(
                self.room.lens.len(),
                format!("{start} of {} entries belong to rows", self.room.indices.len()),
            );
        }
        Ok(())
    }
}

impl Arena {
    /// Allocates room for `rows` rows with `entries` entries in all.
    ///
    /// # Errors
    /// [`Error::Memory`] where the system has no such amount.
    pub fn new(width: Width, n_cols: usize, rows: usize, entries: usize) -> Result<Self> {
        let values = match width {
            Width::Row => Values::Row(Vec::new()),
            Width::F32 => Values::F32(Vec::new()),
            Width::F64 => Values::F64(Vec::new()),
        };
        let mut arena = Self { indptr: Vec::new(), indices: Vec::new(), values, n_cols, n_rows: 0 };
        arena.grow(rows, entries)?;
        Ok(arena)
    }

    /// Makes room for `rows` rows with `entries` entries in all, where there is less.
    ///
    /// # Errors
    /// [`Error::Memory`]; what is there stays.
    pub fn grow(&mut self, rows: usize, entries: usize) -> Result<()> {
        fn to<T: Copy + Default>(list: &mut Vec<T>, n: usize) -> Result<()> {
            let more = n.saturating_sub(list.len());
            memory::try_reserve(list, more)?;
            list.resize(n.max(list.len()), T::default());
            Ok(())
        }
        to(&mut self.indptr, rows + 1)?;
        to(&mut self.indices, entries)?;
        match &mut self.values {
            Values::Row(v) => to(v, rows),
            Values::F32(v) => to(v, entries),
            Values::F64(v) => to(v, entries),
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of entries.
    pub fn nnz(&self) -> usize {
        self.indptr[self.n_rows] as usize
    }

    /// Number of entries of row `i`.
    pub fn row_len(&self, i: usize) -> usize {
        (self.indptr[i + 1] - self.indptr[i]) as usize
    }

    /// Whether so many more rows and entries fit.
    pub fn has_room(&self, rows: usize, entries: usize) -> bool {
        self.n_rows + rows < self.indptr.len() && self.nnz() + entries <= self.indices.len()
    }

    /// Gives the first columns the numbers `names`, in which none is there twice; the others keep theirs.
    /// Columns need not rise within a row any longer.
    ///
    /// # Errors
    /// [`Error::Structure`] for a name that is no column; nothing has changed then.
    pub fn rename_columns(&mut self, names: &[u32]) -> Result<()> {
        if let Some(name) = names.iter().find(|name| **name as usize >= self.n_cols) {
            let reason = format!("a column is to be number {name} of {}", self.n_cols);
            return Err(Error::Structure { row: 0, reason });
        }
        let nnz = self.nnz();
        rename(&mut self.indices[..nnz], names);
        Ok(())
    }

    /// The rows as the three arrays of a CSR matrix; gives the arena back where its values are one per row.
    pub fn into_csr(mut self) -> std::result::Result<OwnedCsr, Self> {
        let nnz = self.nnz();
        if matches!(self.values, Values::Row(_)) {
            return Err(self);
        }
        self.indptr.truncate(self.n_rows + 1);
        self.indices.truncate(nnz);
        let values = match self.values {
            Values::F32(mut v) => {
                v.truncate(nnz);
                CsrValues::F32(v)
            }
            Values::F64(mut v) => {
                v.truncate(nnz);
                CsrValues::F64(v)
            }
            Values::Row(_) => unreachable!("seen above"),
        };
        Ok(OwnedCsr { indptr: self.indptr, indices: self.indices, values })
    }

    /// The rows.
    pub fn view(&self) -> View<'_> {
        let (indptr, indices) = (&self.indptr[..=self.n_rows], &self.indices[..self.nnz()]);
        view(indptr, indices, &self.values, self.n_cols)
    }

    /// Fills the room of `rows` rows with `entries` entries by `fill`, beside `work` on the rows that are
    /// there; with one thread one after the other. The new rows belong to the arena only if all went well.
    ///
    /// # Errors
    /// Those of `fill` and `work`; [`Error::Structure`] for what cannot be rows.
    ///
    /// # Panics
    /// If the room is not there; see [`Self::has_room`].
    pub fn fill_beside<T: Send>(
        &mut self,
        rows: usize,
        entries: usize,
        fill: impl FnOnce(&mut Free<'_>) -> Result<()> + Send,
        work: impl FnOnce(View<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        let (n, nnz) = (self.n_rows, self.nnz());
        let (indptr, lens) = self.indptr.split_at_mut(n + 1);
        let (indices, new_indices) = self.indices.split_at_mut(nnz);
        let (old_view, values) = match &mut self.values {
            Values::Row(v) => {
                let (old, new) = v.split_at_mut(n);
                (Borrowed::Row(old), ValuesMut::Row(&mut new[..rows]))
            }
            Values::F32(v) => {
                let (old, new) = v.split_at_mut(nnz);
                (Borrowed::F32(old), ValuesMut::F32(&mut new[..entries]))
            }
            Values::F64(v) => {
                let (old, new) = v.split_at_mut(nnz);
                (Borrowed::F64(old), ValuesMut::F64(&mut new[..entries]))
            }
        };
        let room = Room { lens: &mut lens[..rows], indices: &mut new_indices[..entries], values };
        let mut free = Free { room, n_cols: self.n_cols };
        let old = old_view.view(indptr, indices, self.n_cols);
        let (filled, worked) = rayon::join(|| fill(&mut free).and_then(|()| free.commit()), || work(old));
        filled?;
        let result = worked?;
        let mut end = nnz as i64;
        for len in &mut self.indptr[n + 1..=n + rows] {
            end += *len;
            *len = end;
        }
        self.n_rows += rows;
        Ok(result)
    }

    /// Fills the room of `rows` rows with `entries` entries.
    ///
    /// # Errors
    /// As for [`Self::fill_beside`].
    pub fn fill(
        &mut self,
        rows: usize,
        entries: usize,
        fill: impl FnOnce(&mut Free<'_>) -> Result<()> + Send,
    ) -> Result<()> {
        self.fill_beside(rows, entries, fill, |_| Ok(()))
    }

    /// Keeps the given rows, in order, and moves them down over the others (in-place compaction).
    ///
    /// # Panics
    /// If the numbers do not rise or a row is not there.
    pub fn keep(&mut self, rows: &[u32]) {
        let mut end = 0;
        for (to, &from) in rows.iter().enumerate() {
            let from = from as usize;
            assert!(to <= from && from < self.n_rows, "rows to keep must rise");
            let range = self.indptr[from] as usize..self.indptr[from + 1] as usize;
            let len = range.len();
            match &mut self.values {
                Values::Row(v) => v[to] = v[from],
                Values::F32(v) => v.copy_within(range.clone(), end),
                Values::F64(v) => v.copy_within(range.clone(), end),
            }
            self.indices.copy_within(range, end);
            // The pointer of row `to` is read by no later row: those start at `from + 1 > to` or further.
            self.indptr[to] = end as i64;
            end += len;
        }
        // Rows rise strictly, so this entry is at most that of the last row's end, which is no longer needed.
        self.indptr[rows.len()] = end as i64;
        self.n_rows = rows.len();
    }
}

/// The values of the rows in use.
enum Borrowed<'a> {
    Row(&'a [f64]),
    F32(&'a [f32]),
    F64(&'a [f64]),
}

impl<'a> Borrowed<'a> {
    #[allow(unsafe_code)]
    fn view(self, indptr: &'a [i64], indices: &'a [i32], n_cols: usize) -> View<'a> {
        // SAFETY: `Free::commit` has seen every row of an arena: pointers rise within the entries, columns
        // are below `n_cols` and rise within a row; `keep` moves whole rows.
        unsafe {
            match self {
                Self::Row(scale) => View::Row(ScaledView::from_sound(indptr, indices, scale, n_cols)),
                Self::F32(values) => View::F32(CsrView::from_sound(indptr, indices, values, n_cols)),
                Self::F64(values) => View::F64(CsrView::from_sound(indptr, indices, values, n_cols)),
            }
        }
    }
}

fn view<'a>(indptr: &'a [i64], indices: &'a [i32], values: &'a Values, n_cols: usize) -> View<'a> {
    let borrowed = match values {
        Values::Row(v) => Borrowed::Row(&v[..indptr.len() - 1]),
        Values::F32(v) => Borrowed::F32(&v[..indices.len()]),
        Values::F64(v) => Borrowed::F64(&v[..indices.len()]),
    };
    borrowed.view(indptr, indices, n_cols)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::any::Matrix;
    use crate::matrix::rows::Rows;
    use proptest::prelude::*;

    /// A row: its columns and one value.
    type Row = (Vec<i32>, f64);

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        prop::collection::vec((prop::collection::btree_set(0..30i32, 0..9), 0.5..2.0f64), 0..20).prop_map(
            |rows| rows.into_iter().map(|(columns, v)| (columns.into_iter().collect(), v)).collect(),
        )
    }

    fn write(free: &mut Free<'_>, rows: &[Row]) {
        let mut at = 0;
        for (i, (columns, value)) in rows.iter().enumerate() {
            free.room.lens[i] = columns.len() as i64;
            free.room.indices[at..at + columns.len()].copy_from_slice(columns);
            match &mut free.room.values {
                ValuesMut::Row(v) => v[i] = *value,
                ValuesMut::F32(v) => v[at..at + columns.len()].fill(*value as f32),
                ValuesMut::F64(v) => v[at..at + columns.len()].fill(*value),
            }
            at += columns.len();
        }
    }

    fn add(arena: &mut Arena, rows: &[Row]) {
        let nnz = rows.iter().map(|row| row.0.len()).sum();
        assert!(arena.has_room(rows.len(), nnz));
        arena
            .fill(rows.len(), nnz, |free| {
                write(free, rows);
                Ok(())
            })
            .unwrap();
    }

    fn read(arena: &Arena) -> Vec<Row> {
        let rows = Matrix::from(arena.view());
        (0..rows.n_rows())
            .map(|i| {
                let (mut columns, mut value) = (Vec::new(), 0.0);
                rows.for_each(i, |j, v| {
                    columns.push(j as i32);
                    value = v;
                });
                (columns, value)
            })
            .collect()
    }

    proptest! {
        /// Against lists of rows: filling, compacting and filling again, in all three layouts.
        #[test]
        fn keeps_what_a_list_would(
            first in rows(),
            second in rows(),
            mask in prop::collection::vec(any::<bool>(), 20),
        ) {
            for width in [Width::Row, Width::F32, Width::F64] {
                let mut arena = Arena::new(width, 30, 40, 400).unwrap();
                add(&mut arena, &first);
                let kept: Vec<u32> = (0..first.len() as u32).filter(|&i| mask[i as usize]).collect();
                arena.keep(&kept);
                add(&mut arena, &second);
                let expected: Vec<Row> =
                    kept.iter().map(|&i| first[i as usize].clone()).chain(second.clone()).collect();
                let found = read(&arena);
                prop_assert_eq!(found.len(), expected.len());
                for (found, expected) in found.iter().zip(&expected) {
                    prop_assert_eq!(&found.0, &expected.0);
                    prop_assert!(found.0.is_empty() || (found.1 - expected.1).abs() < 1e-6);
                }
            }
        }

        #[test]
        fn scaled_rows_compute_what_plain_rows_do(rows in rows()) {
            let mut arenas = [Width::Row, Width::F64].map(|width| Arena::new(width, 30, 20, 400).unwrap());
            arenas.iter_mut().for_each(|arena| add(arena, &rows));
            let w: Vec<f64> = (0..30).map(|j| f64::from(j).sin()).collect();
            let lane = |j: i32| std::array::from_fn(|l| f64::from(j * 4 + l as i32).cos());
            let lanes: Vec<[f64; 4]> = (0..30).map(lane).collect();
            let results = arenas.each_ref().map(|arena| {
                let x = Matrix::from(arena.view());
                let mut numbers = Vec::new();
                for i in 0..x.n_rows() {
                    let (mut sum, mut sums) = (w.clone(), lanes.clone());
                    x.add_scaled(i, 0.7, &mut sum);
                    x.add_lanes(i, &[1.0, 2.0, -1.0, 0.5], &mut sums);
                    numbers.extend([x.dot(i, &w), x.squared_norm(i), x.row_len(i) as f64]);
                    numbers.extend(x.dot_lanes(i, &lanes).iter().chain(&sum).chain(sums.as_flattened()));
                }
                numbers
            });
            for (a, b) in results[0].iter().zip(&results[1]) {
                prop_assert!((a - b).abs() < 1e-12 * (1.0 + a.abs()));
            }
        }
    }

    #[test]
    fn becomes_a_csr_matrix() {
        for width in [Width::F32, Width::F64] {
            let mut arena = Arena::new(width, 30, 40, 400).unwrap();
            add(&mut arena, &[(vec![1, 4], 0.5), (vec![], 1.0), (vec![0], 2.0)]);
            let csr = arena.into_csr().unwrap_or_else(|_| panic!("not one value per row"));
            assert_eq!((csr.indptr, csr.indices), (vec![0, 2, 2, 3], vec![1, 4, 0]));
            match csr.values {
                CsrValues::F32(v) => assert_eq!((v, width), (vec![0.5, 0.5, 2.0], Width::F32)),
                CsrValues::F64(v) => assert_eq!((v, width), (vec![0.5, 0.5, 2.0], Width::F64)),
            }
        }
        assert!(Arena::new(Width::Row, 30, 40, 400).unwrap().into_csr().is_err());
    }

    #[test]
    fn refuses_what_is_no_row_and_stays_as_it_was() {
        let mut arena = Arena::new(Width::F32, 5, 10, 20).unwrap();
        add(&mut arena, &[(vec![1, 4], 1.0)]);
        for (lens, columns) in [
            ([1, 1], [0, 5]),
            ([1, 1], [-1, 0]),
            ([2, 0], [3, 3]),
            ([3, 0], [0, 1]),
            ([-1, 3], [0, 1]),
            ([1, 0], [0, 1]),
        ] {
            let result = arena.fill(2, 2, |free| {
                free.room.lens.copy_from_slice(&lens);
                free.room.indices.copy_from_slice(&columns);
                Ok(())
            });
            assert!(matches!(result, Err(Error::Structure { .. })), "{lens:?} {columns:?}");
            assert_eq!(read(&arena), [(vec![1, 4], 1.0)]);
        }
        assert!(!arena.has_room(10, 0) && arena.has_room(9, 18) && !arena.has_room(1, 19));
    }
}
