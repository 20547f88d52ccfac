//! The values of a table, one at a time: from Arrow arrays, or from one row.

use std::fmt;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowDictionaryKeyType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type,
    UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, DictionaryArray};
use arrow_schema::DataType;
use serde::{Deserialize, Serialize};

/// What is wrong with a value, in words.
pub type Said<T> = std::result::Result<T, String>;
/// The row of a value, and what is wrong with it.
pub type RowResult<T> = std::result::Result<T, (usize, String)>;

/// A value of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// Null, None or NaN.
    Missing,
    /// A string.
    Text(&'a str),
    /// A whole number.
    Whole(i64),
    /// Any other number.
    Real(f64),
    /// A truth value.
    Truth(bool),
    /// A list of strings, some of which may be missing.
    Strings(&'a [Option<&'a str>]),
}

/// What the values of a column of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ValueType {
    /// Strings.
    Text,
    /// Whole numbers.
    Whole,
    /// Numbers.
    Real,
    /// Truth values.
    Truth,
    /// Lists of strings.
    Strings,
}

impl ValueType {
    /// The type in a word, as it is saved.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Whole => "whole",
            Self::Real => "real",
            Self::Truth => "truth",
            Self::Strings => "strings",
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "a string",
            Self::Whole => "a whole number",
            Self::Real => "a number",
            Self::Truth => "a truth value",
            Self::Strings => "a list of strings",
        })
    }
}

impl Cell<'_> {
    /// The type of the value, if it is not missing.
    pub fn value_type(&self) -> Option<ValueType> {
        Some(match self {
            Self::Missing => return None,
            Self::Text(_) => ValueType::Text,
            Self::Whole(_) => ValueType::Whole,
            Self::Real(_) => ValueType::Real,
            Self::Truth(_) => ValueType::Truth,
            Self::Strings(_) => ValueType::Strings,
        })
    }

    /// The type in words.
    pub fn type_name(&self) -> String {
        self.value_type().map_or_else(|| "missing".into(), |kind| kind.to_string())
    }
}

/// The type of the values of an Arrow array; None for one that has only nulls.
///
/// # Errors
/// A type that is none of those, in words.
pub fn value_type(data_type: &DataType) -> Said<Option<ValueType>> {
    use DataType as T;
    Ok(Some(match data_type {
        T::Null => return Ok(None),
        T::Boolean => ValueType::Truth,
        T::Int8 | T::Int16 | T::Int32 | T::Int64 => ValueType::Whole,
        T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 => ValueType::Whole,
        T::Float32 | T::Float64 => ValueType::Real,
        T::Utf8 | T::LargeUtf8 | T::Utf8View => ValueType::Text,
        T::Binary | T::LargeBinary | T::BinaryView => ValueType::Text,
        T::Dictionary(_, values) => return value_type(values),
        T::List(item) | T::LargeList(item) | T::FixedSizeList(item, _) => {
            match value_type(item.data_type())? {
                None | Some(ValueType::Text) => ValueType::Strings,
                Some(other) => return Err(format!("lists hold strings here, these hold {other} each")),
            }
        }
        other => {
            return Err(format!(
                "values of type {other} are neither numbers, strings, truth values nor lists of strings: \
                 convert the column to one of these"
            ));
        }
    }))
}

/// What is done with a cell.
type Visit<'f> = &'f mut dyn FnMut(Cell<'_>) -> Said<()>;

/// Calls `visit` with every value of some rows. An error comes with its row.
///
/// # Errors
/// Those of `visit`, values of a type that [`value_type`] does not know, bytes that are no UTF-8, and whole
/// numbers of more than 63 bits.
pub fn each_cell(array: &dyn Array, rows: Range<usize>, visit: Visit<'_>) -> RowResult<()> {
    use DataType as T;
    value_type(array.data_type()).map_err(|reason| (rows.start, reason))?;
    macro_rules! visit_with {
        ($array:expr, $value:expr) => {{
            let (array, value) = ($array, $value);
            each_valid(array, rows, visit, |k| value(array.value(k)))
        }};
    }
    macro_rules! whole {
        ($kind:ty) => {
            visit_with!(array.as_primitive::<$kind>(), |value| Ok(Cell::Whole(i64::from(value))))
        };
    }
    macro_rules! dictionary {
        ($($key:ident: $kind:ty),*) => {
            match array.data_type() {
                $(T::Dictionary(key, _) if **key == T::$key => {
                    each_of_dictionary(array.as_dictionary::<$kind>(), rows, visit)
                })*
                other => Err((rows.start, format!("values of type {other} are not known"))),
            }
        };
    }
    match array.data_type() {
        T::Null => each_valid(array, rows, visit, |_| Ok(Cell::Missing)),
        T::Boolean => visit_with!(array.as_boolean(), |value| Ok(Cell::Truth(value))),
        T::Int8 => whole!(Int8Type),
        T::Int16 => whole!(Int16Type),
        T::Int32 => whole!(Int32Type),
        T::Int64 => whole!(Int64Type),
        T::UInt8 => whole!(UInt8Type),
        T::UInt16 => whole!(UInt16Type),
        T::UInt32 => whole!(UInt32Type),
        T::UInt64 => visit_with!(array.as_primitive::<UInt64Type>(), |value: u64| i64::try_from(value)
            .map(Cell::Whole)
            .map_err(|_| format!("{value} is too large, whole numbers are below 2^63"))),
        T::Float32 => {
            visit_with!(array.as_primitive::<Float32Type>(), |value| Ok(real(f64::from(value))))
        }
        T::Float64 => visit_with!(array.as_primitive::<Float64Type>(), |value| Ok(real(value))),
        T::Utf8 | T::LargeUtf8 | T::Utf8View => {
            each_text(array, rows, |text| visit(text.map_or(Cell::Missing, Cell::Text)))
        }
        T::Binary => visit_with!(array.as_binary::<i32>(), text),
        T::LargeBinary => visit_with!(array.as_binary::<i64>(), text),
        T::BinaryView => visit_with!(array.as_binary_view(), text),
        T::List(_) => {
            let array = array.as_list::<i32>();
            each_list(array, rows, visit, |k| (array.values(), span(array.value_offsets(), k)))
        }
        T::LargeList(_) => {
            let array = array.as_list::<i64>();
            each_list(array, rows, visit, |k| (array.values(), span(array.value_offsets(), k)))
        }
        T::FixedSizeList(_, _) => {
            let array = array.as_fixed_size_list();
            each_list(array, rows, visit, |k| {
                let start = array.value_offset_at(k);
                (array.values(), start..start + array.value_length() as usize)
            })
        }
        T::Dictionary(_, _) => dictionary!(
            Int8: Int8Type, Int16: Int16Type, Int32: Int32Type, Int64: Int64Type,
            UInt8: UInt8Type, UInt16: UInt16Type, UInt32: UInt32Type, UInt64: UInt64Type
        ),
        other => Err((rows.start, format!("values of type {other} are not known"))),
    }
}

/// Whether the values of an array are strings, and lie one after the other or in views.
pub fn is_text(array: &dyn Array) -> bool {
    matches!(array.data_type(), DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// [`each_cell`] for strings, without a call through a pointer for each: None where they are missing.
///
/// # Errors
/// Those of `visit`, with their row.
pub fn each_text<'a>(
    array: &'a dyn Array,
    rows: Range<usize>,
    mut visit: impl FnMut(Option<&'a str>) -> Said<()>,
) -> RowResult<()> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    macro_rules! visit_all {
        ($array:expr) => {{
            let array = $array;
            for k in rows {
                let is_null = nulls.is_some_and(|nulls| nulls.is_null(k));
                visit((!is_null).then(|| array.value(k))).map_err(|reason| (k, reason))?;
            }
        }};
    }
    match array.data_type() {
        DataType::Utf8 => visit_all!(array.as_string::<i32>()),
        DataType::LargeUtf8 => visit_all!(array.as_string::<i64>()),
        DataType::Utf8View => visit_all!(array.as_string_view()),
        _ => {}
    }
    Ok(())
}

fn span<O: arrow_array::OffsetSizeTrait>(offsets: &[O], k: usize) -> Range<usize> {
    offsets[k].as_usize()..offsets[k + 1].as_usize()
}

/// A number; NaN is a missing one.
fn real<'a>(value: f64) -> Cell<'a> {
    if value.is_nan() { Cell::Missing } else { Cell::Real(value) }
}

fn text(bytes: &[u8]) -> Said<Cell<'_>> {
    str::from_utf8(bytes)
        .map(Cell::Text)
        .map_err(|error| format!("these bytes are no UTF-8 from byte {} on", error.valid_up_to()))
}

/// Visits the values at the rows that are not null.
fn each_valid<'a>(
    array: &dyn Array,
    rows: Range<usize>,
    visit: Visit<'_>,
    cell: impl Fn(usize) -> Said<Cell<'a>>,
) -> RowResult<()> {
    let nulls = array.nulls().filter(|nulls| nulls.null_count() > 0);
    for k in rows {
        let cell = match nulls {
            Some(nulls) if nulls.is_null(k) => Ok(Cell::Missing),
            _ => cell(k),
        };
        cell.and_then(&mut *visit).map_err(|reason| (k, reason))?;
    }
    Ok(())
}

/// Visits the entries of the dictionary that the rows ask for.
fn each_of_dictionary<K: ArrowDictionaryKeyType>(
    array: &DictionaryArray<K>,
    rows: Range<usize>,
    visit: Visit<'_>,
) -> RowResult<()> {
    for k in rows {
        match array.key(k) {
            None => visit(Cell::Missing).map_err(|reason| (k, reason))?,
            Some(key) => each_cell(array.values(), key..key + 1, visit).map_err(|(_, reason)| (k, reason))?,
        }
    }
    Ok(())
}

/// Visits lists of strings, which lie in `values` where `span` says.
fn each_list<'a>(
    array: &dyn Array,
    rows: Range<usize>,
    visit: Visit<'_>,
    span: impl Fn(usize) -> (&'a arrow_array::ArrayRef, Range<usize>),
) -> RowResult<()> {
    for k in rows {
        if array.is_null(k) {
            visit(Cell::Missing).map_err(|reason| (k, reason))?;
            continue;
        }
        let (values, span) = span(k);
        let (mut texts, mut ends) = (String::new(), Vec::with_capacity(span.len()));
        each_cell(values, span, &mut |cell| {
            if let Cell::Text(text) = cell {
                texts.push_str(text);
            }
            ends.push((texts.len(), matches!(cell, Cell::Text(_))));
            Ok(())
        })
        .map_err(|(_, reason)| (k, reason))?;
        let mut start = 0;
        let strings: Vec<Option<&str>> = ends
            .iter()
            .map(|&(end, is_there)| {
                let text = &texts[start..end];
                start = end;
                is_there.then_some(text)
            })
            .collect();
        visit(Cell::Strings(&strings)).map_err(|reason| (k, reason))?;
    }
    Ok(())
}
