//! The rows at hand: an arena, and beside it what the store says of each row.

use crate::Result;
use crate::data::arena::{Arena, View, Width};
use crate::solver::Monitor;
use crate::store::reader::{PageBytes, RowFacts, Store};

/// Rows with their places in the store.
pub struct Resident {
    arena: Arena,
    /// Place of each row among all rows of the store.
    places: Vec<u32>,
    classes: Vec<u32>,
    weights: Vec<f64>,
    /// Rows in the order of their places: what makes results independent of where rows lie.
    order: Vec<u32>,
}

/// The rows at hand, to be read.
pub struct Rows<'a> {
    /// Their entries.
    pub view: View<'a>,
    /// Their places among all rows of the store.
    pub places: &'a [u32],
    /// Their classes.
    pub classes: &'a [u32],
    /// Their sample weights.
    pub weights: &'a [f64],
    /// Their numbers in the order of the places.
    pub order: &'a [u32],
}

impl Resident {
    /// An empty set with room for `rows` rows of `entries` entries in all.
    ///
    /// # Errors
    /// [`crate::Error::Memory`].
    pub fn new(width: Width, n_cols: usize, rows: usize, entries: usize) -> Result<Self> {
        let arena = Arena::new(width, n_cols, rows, entries)?;
        Ok(Self { arena, places: Vec::new(), classes: Vec::new(), weights: Vec::new(), order: Vec::new() })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Number of entries of row `i`.
    pub fn row_len(&self, i: usize) -> usize {
        self.arena.row_len(i)
    }

    /// Places of the rows, in no order.
    pub fn places(&self) -> &[u32] {
        &self.places
    }

    /// Whether so many more rows and entries fit.
    pub fn has_room(&self, rows: usize, entries: usize) -> bool {
        self.arena.has_room(rows, entries)
    }

    /// The rows.
    pub fn rows(&self) -> Rows<'_> {
        self.rows_in(self.arena.view())
    }

    fn rows_in<'a>(&'a self, view: View<'a>) -> Rows<'a> {
        let Self { places, classes, weights, order, .. } = self;
        Rows { view, places, classes, weights, order }
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
        pick(&mut self.places, rows);
        pick(&mut self.classes, rows);
        pick(&mut self.weights, rows);
        self.sort();
    }

    fn sort(&mut self) {
        self.order.clear();
        self.order.extend(0..self.places.len() as u32);
        let places = &self.places;
        self.order.sort_unstable_by_key(|&i| places[i as usize]);
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
        work: impl FnOnce(Rows<'_>) -> Result<T> + Send,
    ) -> Result<T> {
        let (n_rows, nnz) = store.size(pages);
        let mut facts = RowFacts::default();
        let Self { arena, places, classes, weights, order } = self;
        let result = arena.fill_beside(
            n_rows,
            nnz,
            |free| store.decode_into(pages, bytes, free, &mut facts, monitor),
            |view| work(Rows { view, places, classes, weights, order }),
        )?;
        for &page in pages {
            let (start, end) = (store.starts()[page as usize], store.starts()[page as usize + 1]);
            places.extend(start as u32..end as u32);
        }
        classes.extend_from_slice(&facts.classes);
        weights.extend_from_slice(&facts.weights);
        self.sort();
        Ok(result)
    }
}
