//! Some rows of a table, as Arrow arrays by the names of their columns.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::cell::{Cell, RowResult, Said, ValueType, each_cell, value_type};
use super::column::{SEPARATOR, not};
use super::key::{as_type, write_text};
use super::spec::{ColumnKind, ColumnSpec};
use crate::{Error, Result};

/// Some rows of a table.
#[derive(Clone, Debug)]
pub struct TableBatch {
    /// Names and values, all of one length.
    pub columns: Vec<(String, ArrayRef)>,
    /// How many rows.
    pub n_rows: usize,
    /// The number of the first row, for messages.
    pub first_row: usize,
}

/// The arrays that a column of an encoder reads.
#[derive(Clone, Debug)]
pub enum ColumnData<'a> {
    /// One.
    One(&'a ArrayRef),
    /// Those of a cross.
    Several(Vec<&'a ArrayRef>),
}

impl TableBatch {
    /// The values of a column.
    pub fn column(&self, name: &str) -> Option<&ArrayRef> {
        self.columns.iter().find(|(column, _)| column == name).map(|(_, array)| array)
    }

    /// The values of a column that must be there, once.
    ///
    /// # Errors
    /// [`Error::Encoder`] if it is not.
    pub fn only(&self, name: &str) -> Result<&ArrayRef> {
        let mut all = self.columns.iter().filter(|(column, _)| column == name);
        match (all.next(), all.next()) {
            (Some((_, array)), None) => Ok(array),
            (None, _) => Err(Error::Encoder {
                reason: format!("the table has no column {name:?}, it has {}", self.names()),
            }),
            _ => Err(Error::Encoder { reason: format!("the table has more than one column {name:?}") }),
        }
    }

    /// What a column of an encoder reads.
    ///
    /// # Errors
    /// [`Error::Encoder`] for a column that is not there, or more than once.
    pub fn data(&self, spec: &ColumnSpec) -> Result<ColumnData<'_>> {
        let get = |name: &str| self.only(name);
        Ok(match &spec.kind {
            ColumnKind::Cross { columns } => {
                ColumnData::Several(columns.iter().map(|name| get(name)).collect::<Result<_>>()?)
            }
            _ => ColumnData::One(get(&spec.name)?),
        })
    }

    fn names(&self) -> String {
        let mut names: Vec<String> =
            self.columns.iter().take(20).map(|(name, _)| format!("{name:?}")).collect();
        if self.columns.len() > names.len() {
            names.push(format!("and {} more", self.columns.len() - names.len()));
        }
        if names.is_empty() { "none".into() } else { names.join(", ") }
    }

    /// An error at a row of this batch.
    pub fn error(&self, column: &str, (row, reason): (usize, String)) -> Error {
        Error::Cell { column: column.into(), row: self.first_row + row, reason }
    }

    /// The type of the values of a column of an encoder.
    ///
    /// # Errors
    /// [`Error::Cell`] for a type that cannot be encoded; [`Error::Encoder`] for a column that is not there.
    pub fn value_type(&self, spec: &ColumnSpec) -> Result<Option<ValueType>> {
        match self.data(spec)? {
            ColumnData::One(array) => {
                value_type(array.data_type()).map_err(|reason| self.error(&spec.name, (0, reason)))
            }
            ColumnData::Several(_) => Ok(Some(ValueType::Text)),
        }
    }
}

impl ColumnData<'_> {
    /// Calls `visit` with every value of some rows.
    ///
    /// # Errors
    /// The row of the first failure, and what it was.
    pub fn each(&self, rows: Range<usize>, visit: &mut dyn FnMut(Cell<'_>) -> Said<()>) -> RowResult<()> {
        match self {
            Self::One(array) => each_cell(array, rows, visit),
            Self::Several(arrays) => each_combination(arrays, rows, visit),
        }
    }
}

/// The values of a dictionary and which of them each row has, if there are not many more values than rows.
pub fn dictionary(array: &ArrayRef) -> Option<(ArrayRef, Vec<usize>)> {
    let is_dictionary = matches!(array.data_type(), DataType::Dictionary(_, _));
    let dictionary = array.as_any_dictionary_opt().filter(|_| is_dictionary)?;
    let values = dictionary.values();
    (!values.is_empty() && values.len() <= array.len() + 1024)
        .then(|| (values.clone(), dictionary.normalized_keys()))
}

/// The values of several columns of a row in one string; missing where one of them is.
#[derive(Clone, Debug, Default)]
pub struct CrossKey {
    text: Vec<u8>,
    n_values: usize,
    is_missing: bool,
}

impl CrossKey {
    /// Adds the value of the next column.
    ///
    /// # Errors
    /// For a list, in words.
    pub fn push(&mut self, cell: Cell<'_>) -> Said<()> {
        if self.n_values > 0 {
            self.text.push(SEPARATOR);
        }
        self.n_values += 1;
        self.is_missing |= cell == Cell::Missing;
        // Of the columns of a cross no types are kept: 1.0 and 1 are the same.
        let is_written = write_text(as_type(cell, ValueType::Whole), &mut self.text);
        if is_written { Ok(()) } else { Err(not("a single value", cell)) }
    }

    /// All of them as one value.
    pub fn cell(&self) -> Cell<'_> {
        // Made of strings, and of what stands between them.
        let text = str::from_utf8(&self.text).ok().filter(|_| !self.is_missing);
        text.map_or(Cell::Missing, Cell::Text)
    }
}

/// Calls `visit` with the combination of the values of several columns, row after row.
fn each_combination(
    arrays: &[&ArrayRef],
    rows: Range<usize>,
    visit: &mut dyn FnMut(Cell<'_>) -> Said<()>,
) -> RowResult<()> {
    let mut keys = vec![CrossKey::default(); rows.len()];
    for array in arrays {
        let mut slots = keys.iter_mut();
        each_cell(array, rows.clone(), &mut |cell| slots.next().map_or(Ok(()), |slot| slot.push(cell)))?;
    }
    for (row, key) in rows.zip(&keys) {
        visit(key.cell()).map_err(|reason| (row, reason))?;
    }
    Ok(())
}
