//! Sums of outer products of nearly dense rows: the matrix `sum_k s_k x_k x_k'` of few columns.
//!
//! Rows wait until there are [`DEPTH`] of them. Then their columns are packed by lines of eight, and each
//! tile of eight lines and eight columns of the matrix is summed over all those rows in registers and added
//! to the matrix once.

use super::kernels::{LINE, add_entry, one_at_a_time};
use super::simd::{self, Loop};
use crate::memory;

/// Rows that are summed in registers: packed, 800 columns of them fit into a second-level cache of 1 MB.
pub const DEPTH: usize = 64;

/// Lines of the matrix whose sums, of eight columns, are in registers at a time. Billions of products a
/// second of one core (EPYC, 29, 55 and 501 columns) with two 8.2, 10, 15 by AVX2, with four 9.7, 12, 20 by
/// AVX2 and 10, 13, 18 by AVX-512, with eight 2.6, 3.2, 3.9 and 0.9, 1.1, 1.3, as the compiler leaves
/// registers there.
pub const HEIGHT: usize = 4;

/// Rows that wait to be added to the lower triangle of a matrix.
pub struct OuterSum {
    d: usize,
    /// Lines of columns in a row, the last one filled up by zeros.
    n_lines: usize,
    /// Row after row.
    rows: Vec<[f64; LINE]>,
    scale: [f64; DEPTH],
    waiting: usize,
    /// Line after line of columns, of each all rows.
    packed: Vec<[f64; LINE]>,
    /// The same, times the scales of rows.
    scaled: Vec<[f64; LINE]>,
}

impl OuterSum {
    /// The memory of one, from its first row on.
    pub const fn bytes(d: usize) -> usize {
        3 * d.div_ceil(LINE) * DEPTH * size_of::<[f64; LINE]>()
    }

    /// For rows of `d` columns; has no memory before the first one.
    pub fn new(d: usize) -> Self {
        let n_lines = d.div_ceil(LINE).max(1);
        let (rows, packed, scaled) = (Vec::new(), Vec::new(), Vec::new());
        Self { d, n_lines, rows, scale: [0.0; DEPTH], waiting: 0, packed, scaled }
    }

    #[cold]
    fn make_room(&mut self) {
        for lines in [&mut self.rows, &mut self.packed, &mut self.scaled] {
            *lines = memory::filled([0.0; LINE], self.n_lines * DEPTH);
        }
    }

    /// Adds `scale` times the product of a row with itself, now or later; `write` adds the row to the zeros
    /// that it is given. `lower` has full rows of as many numbers as there are columns.
    #[inline(always)]
    pub fn add(&mut self, lower: &mut [f64], scale: f64, write: impl FnOnce(&mut [f64])) {
        if self.rows.is_empty() {
            self.make_room();
        }
        let row = &mut self.rows[self.waiting * self.n_lines..][..self.n_lines];
        write(&mut row.as_flattened_mut()[..self.d]);
        self.scale[self.waiting] = scale;
        self.waiting += 1;
        if self.waiting == DEPTH {
            self.flush(lower);
        }
    }

    /// Adds the rows that wait.
    pub fn flush(&mut self, lower: &mut [f64]) {
        assert!(lower.len() == self.d * self.d);
        if self.waiting > 0 {
            simd::run(Flush { sum: self, lower });
        }
    }

    /// Packs the rows that wait and leaves zeros in their place.
    #[inline(always)]
    fn pack(&mut self) {
        let Self { n_lines, rows, scale, waiting, packed, scaled, .. } = self;
        for (k, row) in rows.chunks_exact_mut(*n_lines).take(*waiting).enumerate() {
            for (line, x) in row.iter_mut().enumerate() {
                (packed[line * DEPTH + k], scaled[line * DEPTH + k]) = (*x, x.map(|x| scale[k] * x));
                *x = [0.0; LINE];
            }
        }
    }
}

/// [`OuterSum::flush`].
struct Flush<'s> {
    sum: &'s mut OuterSum,
    lower: &'s mut [f64],
}

impl Loop for Flush<'_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) {
        let Self { sum, lower } = self;
        sum.pack();
        let (d, count) = (sum.d, sum.waiting);
        for (a, (lines, scaled)) in
            lower.chunks_mut((LINE * d).max(1)).zip(sum.scaled.chunks_exact(DEPTH)).enumerate()
        {
            for (b, packed) in sum.packed.chunks_exact(DEPTH).take(a + 1).enumerate() {
                for from in (0..LINE).step_by(HEIGHT) {
                    let sums = products(&scaled[..count], &packed[..count], from);
                    let below = lines.chunks_exact_mut(d).enumerate().skip(from);
                    for ((h, line), sums) in below.zip(&sums) {
                        let end = (a * LINE + h + 1).min((b + 1) * LINE);
                        add_up(&mut line[b * LINE..end], &sums[..end - b * LINE]);
                    }
                }
            }
        }
        sum.waiting = 0;
    }
}

/// Sums over rows of the products of [`HEIGHT`] of eight columns with eight others.
#[inline(always)]
pub fn products(scaled: &[[f64; LINE]], packed: &[[f64; LINE]], from: usize) -> [[f64; LINE]; HEIGHT] {
    let mut sums = [[0.0; LINE]; HEIGHT];
    for (scaled, x) in scaled.iter().zip(packed) {
        one_at_a_time();
        for h in 0..HEIGHT {
            add_entry(&mut sums[h], scaled[from + h], x);
        }
    }
    sums
}

/// Adds up to eight sums to as many numbers.
#[inline(always)]
pub fn add_up(numbers: &mut [f64], sums: &[f64]) {
    if let (Ok(line), Ok(sums)) = (<&mut [f64; LINE]>::try_from(&mut *numbers), sums.try_into()) {
        add_entry(line, 1.0, sums);
    } else {
        numbers.iter_mut().zip(sums).for_each(|(number, sum)| *number += sum);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_lower_triangle_is_the_sum_of_all_products(
            d in 1..40usize,
            n in 0..3 * DEPTH,
            pause in 1..2 * DEPTH,
            seed in 0..99usize,
        ) {
            let x: Vec<f64> = (0..n * d).map(|k| ((k * 7 + seed) as f64).sin()).collect();
            let scale: Vec<f64> = (0..n).map(|k| [1.0, 0.0, 2.5, -1.0][k % 4]).collect();
            let (mut lower, mut sum) = (vec![0.5; d * d], OuterSum::new(d));
            for (k, row) in x.chunks(d).enumerate() {
                sum.add(&mut lower, scale[k], |to| to.iter_mut().zip(row).for_each(|(to, x)| *to += x));
                if k % pause == 0 {
                    sum.flush(&mut lower);
                }
            }
            sum.flush(&mut lower);
            let taken = [&sum.rows, &sum.packed, &sum.scaled].map(|lines| size_of_val(&lines[..]));
            prop_assert_eq!(taken.iter().sum::<usize>(), if n > 0 { OuterSum::bytes(d) } else { 0 });
            for i in 0..d {
                for j in 0..d {
                    let sum: f64 = (0..n).map(|k| scale[k] * x[k * d + i] * x[k * d + j]).sum();
                    let expected = if j <= i { 0.5 + sum } else { 0.5 };
                    prop_assert!((lower[i * d + j] - expected).abs() < 1e-11);
                }
            }
        }
    }
}
