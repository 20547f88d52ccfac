//! A fingerprint of training data.
//!
//! It is made in every fit, so it must cost next to nothing: an array of up to `BLOCKS * ITEMS` numbers is
//! read as a whole, of longer ones `BLOCKS` blocks of `ITEMS` that lie evenly from the first to the last.
//! Numbers are widened to eight bytes before, so that single and double precision, 32-bit and 64-bit indices
//! of the same values are the same. Models keep it: another way to compute it is another fingerprint.

use std::ops::Range;

use numpy::{Element, PyReadonlyArray1};
use pyo3::prelude::*;
use twox_hash::XxHash3_64;

use super::arrays::array_of_any;

const ITEMS: usize = 1 << 11;
const BLOCKS: usize = 64;

array_of_any!(
    /// An array of data.
    DataArray { F32: f32, F64: f64, I32: i32, I64: i64, U32: u32 }
);

/// The fingerprint of arrays that belong to data of such a shape.
#[pyfunction]
pub fn fingerprint(shape: Vec<u64>, arrays: Vec<DataArray<'_>>) -> PyResult<u64> {
    let (mut lengths, mut sums) = (shape, Vec::new());
    for array in &arrays {
        let (length, of_blocks) = match array {
            DataArray::F32(numbers) => block_sums(numbers, |v| f64::from(v).to_le_bytes()),
            DataArray::F64(numbers) => block_sums(numbers, f64::to_le_bytes),
            DataArray::I32(numbers) => block_sums(numbers, |v| i64::from(v).to_le_bytes()),
            DataArray::I64(numbers) => block_sums(numbers, i64::to_le_bytes),
            DataArray::U32(numbers) => block_sums(numbers, |v| i64::from(v).to_le_bytes()),
        }?;
        lengths.push(length);
        sums.extend(of_blocks);
    }
    lengths.append(&mut sums);
    let bytes: Vec<u8> = lengths.into_iter().flat_map(u64::to_le_bytes).collect();
    Ok(XxHash3_64::oneshot(&bytes))
}

/// The length of an array and the checksums of its blocks.
fn block_sums<T: Element + Copy>(
    array: &PyReadonlyArray1<'_, T>,
    widened: impl Fn(T) -> [u8; 8],
) -> PyResult<(u64, Vec<u64>)> {
    let numbers = array.as_slice()?;
    let mut bytes: Vec<[u8; 8]> = Vec::new();
    let sums = blocks(numbers.len()).into_iter().map(|block| {
        bytes.clear();
        bytes.extend(numbers[block].iter().map(|v| widened(*v)));
        XxHash3_64::oneshot(bytes.as_flattened())
    });
    Ok((numbers.len() as u64, sums.collect()))
}

/// What is read of `n` numbers.
fn blocks(n: usize) -> Vec<Range<usize>> {
    if n <= BLOCKS * ITEMS {
        return std::iter::once(0..n).collect();
    }
    let last = n - ITEMS;
    let step = last as f64 / (BLOCKS - 1) as f64;
    let start = |k: usize| if k + 1 == BLOCKS { last } else { (k as f64 * step) as usize };
    (0..BLOCKS).map(|k| start(k)..start(k) + ITEMS).collect()
}
