//! From a value to the bytes by which a category is known, and back.
//!
//! Bytes sort as the values do: strings as they are, whole numbers and others most significant byte first,
//! with the sign turned round. When names are hashed a number stands as Python writes it.

use std::io::Write;

use super::cell::{Cell, ValueType};

const SIGN: u64 = 1 << 63;

/// Appends the bytes of a value, as a category of a column with this type of values. False if the value
/// cannot be one.
pub fn write_key(cell: Cell<'_>, of: ValueType, out: &mut Vec<u8>) -> bool {
    match (of, as_type(cell, of)) {
        (ValueType::Text, Cell::Text(text)) => out.extend_from_slice(text.as_bytes()),
        (ValueType::Whole, Cell::Whole(value)) => out.extend((value as u64 ^ SIGN).to_be_bytes()),
        (ValueType::Real, Cell::Real(value)) => {
            let bits = (value + 0.0).to_bits(); // no -0
            out.extend((if bits & SIGN == 0 { bits ^ SIGN } else { !bits }).to_be_bytes());
        }
        (ValueType::Truth, Cell::Truth(value)) => out.push(u8::from(value)),
        _ => return false,
    }
    true
}

/// A number as a column with this type of values has it: data frames turn whole numbers into others where one
/// is missing, and where a batch has only whole numbers those of other batches may be others.
#[inline]
pub fn as_type(cell: Cell<'_>, of: ValueType) -> Cell<'_> {
    match (of, cell) {
        (ValueType::Whole, Cell::Real(value))
            if value as i64 as f64 == value && value.abs() < 2f64.powi(63) =>
        {
            Cell::Whole(value as i64)
        }
        (ValueType::Real, Cell::Whole(value)) => Cell::Real(value as f64),
        _ => cell,
    }
}

/// The value of a key that [`write_key`] made.
pub fn read_key(key: &[u8], of: ValueType) -> Option<Cell<'_>> {
    let number = || key.try_into().ok().map(u64::from_be_bytes);
    match of {
        ValueType::Text => str::from_utf8(key).ok().map(Cell::Text),
        ValueType::Whole => number().map(|bits| Cell::Whole((bits ^ SIGN) as i64)),
        ValueType::Real => number()
            .map(|bits| Cell::Real(f64::from_bits(if bits & SIGN == 0 { !bits } else { bits ^ SIGN }))),
        ValueType::Truth => (key.len() == 1).then(|| Cell::Truth(key[0] == 1)),
        ValueType::Strings => None,
    }
}

/// Appends a value as Python's `str` writes it. False for a list.
pub fn write_text(cell: Cell<'_>, out: &mut Vec<u8>) -> bool {
    // Writing to memory does not fail.
    let _ = match cell {
        Cell::Text(text) => {
            return {
                out.extend_from_slice(text.as_bytes());
                true
            };
        }
        Cell::Whole(value) => write!(out, "{value}"),
        Cell::Truth(value) => out.write_all(if value { b"True" } else { b"False" }),
        Cell::Real(value) => {
            return {
                write_real(value, out);
                true
            };
        }
        Cell::Missing => out.write_all(b"None"),
        Cell::Strings(_) => return false,
    };
    true
}

/// Python's `repr` of a finite number: the shortest digits that give it back; with an exponent below 1e-4 and
/// from 1e16 on.
fn write_real(value: f64, out: &mut Vec<u8>) {
    let magnitude = value.abs();
    let _ = if value == 0.0 || (1e-4..1e16).contains(&magnitude) {
        write!(out, "{value:?}")
    } else {
        let text = format!("{value:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
        write!(out, "{digits}e{sign}{exponent:0>2}")
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(cell: Cell<'_>, of: ValueType) -> Vec<u8> {
        let mut key = Vec::new();
        assert!(write_key(cell, of, &mut key), "{cell:?}");
        key
    }

    proptest! {
        #[test]
        fn keys_sort_as_values_do(
            (a, b) in any::<(i64, i64)>(),
            (x, y) in (-1e300..1e300, -1e300..1e300),
        ) {
            let whole = |value| key(Cell::Whole(value), ValueType::Whole);
            prop_assert_eq!(whole(a).cmp(&whole(b)), a.cmp(&b));
            let bytes = whole(a);
            prop_assert_eq!(read_key(&bytes, ValueType::Whole), Some(Cell::Whole(a)));
            let real = |value| key(Cell::Real(value), ValueType::Real);
            prop_assert_eq!(real(x).partial_cmp(&real(y)), x.partial_cmp(&y));
            let bytes = real(x);
            prop_assert_eq!(read_key(&bytes, ValueType::Real), Some(Cell::Real(x)));
        }
    }

    #[test]
    fn a_number_is_the_same_category_however_it_is_stored() {
        assert_eq!(key(Cell::Real(3.0), ValueType::Whole), key(Cell::Whole(3), ValueType::Whole));
        assert_eq!(key(Cell::Whole(3), ValueType::Real), key(Cell::Real(3.0), ValueType::Real));
        assert_eq!(key(Cell::Real(-0.0), ValueType::Real), key(Cell::Real(0.0), ValueType::Real));
        assert!(!write_key(Cell::Real(2.5), ValueType::Whole, &mut Vec::new()));
        assert!(!write_key(Cell::Text("3"), ValueType::Whole, &mut Vec::new()));
    }

    #[test]
    fn numbers_are_written_as_python_does() {
        for (value, text) in [
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e16, "1e+16"),
            (1.5e-5, "1.5e-05"),
            (1e-4, "0.0001"),
            (-2.5e300, "-2.5e+300"),
            (123456789012345680.0, "1.2345678901234568e+17"),
            (9007199254740993.0, "9007199254740992.0"),
            (0.0, "0.0"),
        ] {
            let mut out = Vec::new();
            write_text(Cell::Real(value), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
