//! Checks of numbers that come from outside or leave the range of double precision.

use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::{Error, Result};

/// Compares the length of an array with what its reader needs.
pub(crate) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Shape { what, expected, found }) }
}

/// Passes a number on if it is finite.
pub(crate) fn finite(what: &'static str, x: f64, design: &Design<'_>) -> Result<f64> {
    finite_or(what, x, || design.max_squared_norm())
}

/// Passes a number on if it is finite; an error has the largest squared norm of a row in it.
pub(crate) fn finite_or(what: &'static str, x: f64, max_squared_norm: impl FnOnce() -> f64) -> Result<f64> {
    if x.is_finite() { Ok(x) } else { Err(Error::Overflow { what, max_squared_norm: max_squared_norm() }) }
}
