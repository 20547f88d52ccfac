//! The rows in memory: their entries in an arena, and the class, weight and position in the store of each.

use crate::fit::Monitor;
use crate::matrix::arena::{Arena, ValuesMut, View, Width};
use crate::matrix::{Matrix, Rows as _};
use crate::store::reader::{PageBytes, RowFacts, Store};
use crate::{Result, memory};

/// Rows with their positions in the store.
pub struct Resident {
    arena: Arena,
    /// Place of each row among all rows of the store.
    positions: Vec<u32>,
    classes: Vec<u32>,
    weights: Vec<f64>,
    /// Rows in the order of their positions: what makes results independent of where rows lie.
    order: Vec<u32>,
}

/// Rows as lists: what a caller hands over.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plain {
    /// Entries of each row.
    pub lens: Vec<i64>,
    /// Rising columns, row after row.
    pub columns: Vec<i32>,
    /// Values.
    pub values: Vec<f64>,
}

impl Plain {
    /// Appends a row in canonical form: columns rising, entries of one column summed, zeros dropped.
    pub fn push(&mut self, rows: &Matrix<'_>, i: usize, buffer: &mut Vec<(i32, f64)>) {
        buffer.clear();
        rows.for_each(i, |column, value| buffer.push((column as i32, value)));
        if !buffer.is_sorted_by_key(|entry| entry.0) {
            buffer.sort_by_key(|entry| entry.0); // stable: sums of repeated columns in the order of the input
        }
        let start = self.columns.len();
        for &(column, value) in buffer.iter() {
            if self.columns.len() > start && self.columns.last() == Some(&column) {
                *self.values.last_mut().expect("as long as the columns") += value;
            } else {
                memory::push(&mut self.columns, column);
                memory::push(&mut self.values, value);
            }
        }
        let mut end = start;
        for k in start..self.columns.len() {
            if self.values[k] != 0.0 {
                (self.columns[end], self.values[end]) = (self.columns[k], self.values[k]);
                end += 1;
            }
        }
        self.columns.truncate(end);
        self.values.truncate(end);
        memory::push(&mut self.lens, (end - start) as i64);
    }
}

/// A view of the rows in memory.
pub struct ResidentRows<'a> {
    /// Their entries.
    pub view: View<'a>,
    /// Their positions among all rows of the store.
    pub positions: &'a [u32],
    /// Their classes.
    pub classes: &'a [u32],
    /// Their sample weights.
    pub weights: &'a [f64],
    /// Their numbers in the order of the positions.
    pub order: &'a [u32],
}

/// The rows in memory that belong to a problem, in the order of their positions.
pub struct Chosen {
    /// Their numbers in the arena.
    pub ids: Vec<u32>,
    /// Their positions.
    pub positions: Vec<u32>,
    /// Their classes.
    pub classes: Vec<u32>,
    /// Their costs, above 0.
    pub cost: Vec<f64>,
}

impl ResidentRows<'_> {
    /// The rows of positive cost; `cost` takes class, weight and position.
    pub fn chosen(&self, cost: impl Fn(u32, f64, usize) -> f64) -> Chosen {
        let n = self.order.len();
        let list = || memory::with_capacity(n);
        let mut chosen =
            Chosen { ids: list(), positions: list(), classes: list(), cost: memory::with_capacity(n) };
        for &i in self.order {
            let (class, position) = (self.classes[i as usize], self.positions[i as usize]);
            let cost = cost(class, self.weights[i as usize], position as usize);
            if cost > 0.0 {
                chosen.ids.push(i);
                chosen.positions.push(position);
                chosen.classes.push(class);
                chosen.cost.push(cost);
            }
        }
        chosen
    }
}

impl Resident {
    /// An empty set with room for `rows` rows of `entries` entries in all.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn new(width: Width, n_cols: usize, rows: usize, entries: usize) -> Result<Self> {
        let arena = Arena::new(width, n_cols, rows, entries)?;
        Ok(Self { arena, positions: Vec::new(), classes: Vec::new(), weights: Vec::new(), order: Vec::new() })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }

    /// Number of entries of row `i`.
    pub fn row_len(&self, i: usize) -> usize {
        self.arena.row_len(i)
    }

    /// Places of the rows, in no order.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }

    /// Whether so many more rows and entries fit.
    pub fn has_room(&self, rows: usize, entries: usize) -> bool {
        self.arena.has_room(rows, entries)
    }

    /// The rows.
    pub fn rows(&self) -> ResidentRows<'_> {
        self.rows_in(self.arena.view())
    }

    fn rows_in<'a>(&'a self, view: View<'a>) -> ResidentRows<'a> {
        let Self { positions, classes, weights, order, .. } = self;
        ResidentRows { view, positions, classes, weights, order }
    }

    /// Keeps the given rows, whose numbers rise, and moves them down.
    pub fn keep(&mut self, rows: &[u32]) {
        self.arena.keep(rows);
        fn pick<T: Copy>(list: &mut Vec<T>, rows: &[u32]) {
            for (to, &from) in rows.iter().enumerate() {
                list[to] = list[from as usize];
            }
            list.truncate(rows.len());
        }
        pick(&mut self.positions, rows);
        pick(&mut self.classes, rows);
        pick(&mut self.weights, rows);
        self.sort();
    }

    /// Appends rows that a caller gives; their positions are their numbers.
    ///
    /// # Errors
    /// [`crate::Error::Memory`] and [`crate::Error::Structure`].
    pub fn push(&mut self, more: &Plain, classes: &[u32], weights: &[f64]) -> Result<()> {
        let (rows, entries) = (more.lens.len(), more.columns.len());
        if !self.arena.has_room(rows, entries) {
            let (n, nnz) = (self.len() + rows, self.arena.nnz() + entries);
            self.arena.grow(n + n / 2, nnz + nnz / 2)?;
        }
        self.arena.fill(rows, entries, |free| {
            free.room.lens.copy_from_slice(&more.lens);
            free.room.indices.copy_from_slice(&more.columns);
            match &mut free.room.values {
                ValuesMut::F32(v) => v.iter_mut().zip(&more.values).for_each(|(v, x)| *v = *x as f32),
                ValuesMut::F64(v) => v.copy_from_slice(&more.values),
                ValuesMut::Row(_) => unreachable!("rows of a caller have a value per entry"),
            }
            Ok(())
        })?;
        memory::extend_from_slice(&mut self.classes, classes);
        memory::extend_from_slice(&mut self.weights, weights);
        self.renumber();
        Ok(())
    }

    /// Makes each row's number its position.
    pub fn renumber(&mut self) {
        self.positions.clear();
        memory::extend(&mut self.positions, 0..self.classes.len() as u32);
        self.sort();
    }

    /// Number of entries of all rows.
    pub fn nnz(&self) -> usize {
        self.arena.nnz()
    }

    /// Classes and sample weights of the rows.
    pub fn facts(&self) -> (&[u32], &[f64]) {
        (&self.classes, &self.weights)
    }

    fn sort(&mut self) {
        self.order.clear();
        memory::extend(&mut self.order, 0..self.positions.len() as u32);
        let positions = &self.positions;
        self.order.sort_unstable_by_key(|&i| positions[i as usize]);
    }

    /// Decodes pages behind the rows, beside `work` on the rows that are there.
    ///
    /// # Errors
    /// Those of the store and of `work`; the rows are then as before.
    pub fn add_beside<T: Send>(
        &mut self,
        store: &Store,
        pages: &[u32],
        bytes: &(impl PageBytes + ?Sized),
        monitor: &dyn Monitor,
        work: impl FnOnce(ResidentRows<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        let (n_rows, nnz) = store.size(pages);
        let mut facts = RowFacts::default();
        let Self { arena, positions, classes, weights, order } = self;
        let result = arena.fill_beside(
            n_rows,
            nnz,
            |free| store.decode_into(pages, bytes, free, &mut facts, monitor),
            |view| work(ResidentRows { view, positions, classes, weights, order }),
        )?;
        for &page in pages {
            let (start, end) = (store.starts()[page as usize], store.starts()[page as usize + 1]);
            memory::extend(positions, start as u32..end as u32);
        }
        memory::extend_from_slice(classes, &facts.classes);
        memory::extend_from_slice(weights, &facts.weights);
        self.sort();
        Ok(result)
    }
}
