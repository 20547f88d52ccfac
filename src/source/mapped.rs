//! Degree-2 features of a store's rows: pairs are generated in the row kernels, neither on disk nor in
//! memory.
//!
//! A store numbers its columns by frequency, so positions of pairs are those of a map with permuted columns;
//! weights move between the two orders before and after. Columns that no row uses have no weights meanwhile.

use crate::matrix::Matrix;
use crate::matrix::arena::View;
use crate::matrix::csr::Structure;
use crate::memory::CollectLarge;
use crate::pairs::Poly2;
use crate::pairs::map::Map;
use crate::store::reader::Store;
use crate::{Result, memory};

/// Rows of a store as a matrix, or their degree-2 features.
pub fn mapped<'a>(rows: View<'a>, map: Option<&'a StoreMap>) -> Matrix<'a> {
    match map {
        None => rows.into(),
        Some(map) => Poly2::of_rising(rows.into(), map.inner()).into(),
    }
}

/// A degree-2 map for the rows of a store.
#[derive(Debug)]
pub struct StoreMap {
    /// In the columns of the input.
    outer: Map,
    /// In the columns of the store.
    inner: Map,
    /// Column of the input, by column of the store.
    old: Vec<u32>,
}

impl StoreMap {
    /// That of the columns of the input.
    ///
    /// # Errors
    /// [`crate::Error::Scale`] where mapped rows are too large to compute with; those of the store.
    pub fn new(store: &Store, outer: Map) -> Result<Self> {
        let meta = store.meta();
        let max_squared_norm = outer.squared_norm_limit(meta.max_squared_norm);
        Structure { has_duplicates: false, max_squared_norm }.check_solvable()?;
        let known = store.old_columns()?;
        let old: Vec<u32> =
            (0..meta.n_used).map(|j| known.get(j).copied().unwrap_or(j as u32)).collect_large();
        let inner = outer.of_columns(&old);
        Ok(Self { outer, inner, old })
    }

    /// The map of the store's rows.
    pub fn inner(&self) -> &Map {
        &self.inner
    }

    /// Number of weights in the columns of the input.
    pub fn n_input(&self) -> usize {
        self.outer.n_out()
    }

    /// Weights in the order of the input.
    pub fn to_input(&self, w: &[f64]) -> Vec<f64> {
        let mut moved = memory::zeros(self.outer.n_out());
        self.outer.pair_positions(&self.inner, &self.old, |outer, inner| moved[outer] = w[inner]);
        moved
    }

    /// Weights in the order of the store.
    pub fn to_store(&self, w: &[f64]) -> Vec<f64> {
        let mut moved = memory::zeros(self.inner.n_out());
        self.outer.pair_positions(&self.inner, &self.old, |outer, inner| moved[inner] = w[outer]);
        moved
    }
}
