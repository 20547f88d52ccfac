//! When presolve pays.

use super::{Cancelled, Presolved, presolve};
use crate::Result;
use crate::data::csr::{CsrView, Structure};
use crate::data::dense::DenseView;
use crate::data::{Index, Rows, Value};

/// Columns from which presolve pays.
const LEAST_COLUMNS: usize = 20_000;

/// Whether to presolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Where it pays.
    Auto,
    /// Wherever there are sparse rows.
    On,
    /// Never.
    Off,
}

/// A matrix that may have a packed form.
pub trait Packable: Rows {
    /// The type of its values, and of those of its packed form.
    type Value: Value;

    /// The packed form, `None` if `mode` says no, or where there is none.
    ///
    /// # Errors
    /// Those of [`presolve`].
    fn pack(
        &self,
        structure: &Structure,
        mode: Mode,
        cancelled: &Cancelled<'_>,
    ) -> Result<Option<Presolved<Self::Value>>>;
}

impl<I: Index, V: Value> Packable for CsrView<'_, I, V> {
    type Value = V;

    fn pack(&self, structure: &Structure, mode: Mode, cancelled: &Cancelled<'_>) -> Result<Option<Presolved<V>>> {
        let is_wanted = match mode {
            Mode::On => true,
            Mode::Off => false,
            Mode::Auto => self.n_cols() >= LEAST_COLUMNS,
        };
        if is_wanted { presolve(self, structure, cancelled) } else { Ok(None) }
    }
}

impl<V: Value> Packable for DenseView<'_, V> {
    type Value = V;

    fn pack(&self, _: &Structure, _: Mode, _: &Cancelled<'_>) -> Result<Option<Presolved<V>>> {
        Ok(None)
    }
}
