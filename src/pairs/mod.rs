//! Degree-2 polynomial features of rows, generated inside the row kernels and never stored (Chang10).
//!
//! A row `x` with `l` entries becomes `phi(x)` with a constant, `l` linear terms, `l` squares and `l(l-1)/2`
//! products. [`Poly2`] is a matrix of such rows for every solver; its memory is that of the input. Two
//! scalings ([`map::Factors`]): that of the kernel `(gamma x.z + r)^2`, or the plain products. Two layouts of
//! the weights ([`map::PairLayout`]): the exact triangle, or a signed hash of the pair; where two pairs of a
//! row share a hashed weight, their values add up, and [`Rows::squared_norm`] counts them so.
//!
//! Columns within a row must rise: then the smaller number of a pair comes first without comparing.
//!
//! No presolve: columns merged before the map would keep inner products, and with them the model of the
//! kernel scaling, but not the positions of pairs, by which weights are read back.

pub mod map;
pub mod source;

use crate::matrix::{Rows, layout};
use crate::memory::CollectLarge;
use crate::{Error, Result, parallel};
use map::{Factors, Map, PairLayout};

/// Rows per parallel task.
const CHUNK: usize = 4096;

/// Mapped rows.
#[derive(Clone, Copy)]
pub struct Poly2<'a> {
    rows: layout::Layout<'a>,
    map: &'a Map,
}

/// How full the hashed weights are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usage {
    /// Weights of products.
    pub weights: usize,
    /// Weights that some product of the rows falls on.
    pub used: usize,
    /// Different products in the rows; estimated from `used` where they are hashed.
    pub pairs: f64,
    /// Share of the products that have their weight not for themselves.
    pub collision_rate: f64,
}

impl<'a> Poly2<'a> {
    /// The rows under the map.
    ///
    /// # Errors
    /// [`Error::Shape`] for another number of columns than the map's, [`Error::Structure`] for a row whose
    /// columns do not rise.
    pub fn new(rows: layout::Layout<'a>, map: &'a Map) -> Result<Self> {
        if rows.n_cols() != map.n_in() {
            return Err(Error::Shape {
                what: "columns of X for the map",
                expected: map.n_in(),
                found: rows.n_cols(),
            });
        }
        let is_rising = |i: usize| {
            let (mut last, mut rises) = (None, true);
            rows.for_each(i, |j, _| {
                rises &= last < Some(j);
                last = Some(j);
            });
            rises
        };
        let broken = parallel::map(rows.n_rows().div_ceil(CHUNK), |chunk| {
            (chunk * CHUNK..((chunk + 1) * CHUNK).min(rows.n_rows())).find(|&i| !is_rising(i))
        });
        match broken.into_iter().flatten().next() {
            Some(row) => {
                let reason = "its columns do not rise, pairs need them sorted and without duplicates".into();
                Err(Error::Structure { row, reason })
            }
            None => Ok(Self { rows, map }),
        }
    }

    /// How full the weights of products are. One pass over the pairs, one bit of memory per weight.
    pub fn usage(&self, is_cancelled: &(dyn Fn() -> bool + Sync)) -> Result<Usage> {
        use std::sync::atomic::{AtomicU64, Ordering};
        let (first, weights) = match self.map.layout {
            PairLayout::Exact => (0, self.map.n_pairs()),
            PairLayout::Hashed { bits, .. } => (2 * self.map.n_in(), 1 << bits),
        };
        let bits: Vec<AtomicU64> = (0..weights.div_ceil(64)).map(|_| AtomicU64::new(0)).collect_large();
        parallel::each(0..self.n_rows().div_ceil(CHUNK), |_, chunk| {
            for i in chunk * CHUNK..((chunk + 1) * CHUNK).min(self.n_rows()) {
                if i % 256 == 0 && is_cancelled() {
                    return;
                }
                self.for_each(i, |at, _| {
                    if (first..first + weights).contains(&at) {
                        let at = at - first;
                        bits[at / 64].fetch_or(1 << (at % 64), Ordering::Relaxed);
                    }
                });
            }
        });
        if is_cancelled() {
            return Err(Error::Cancelled);
        }
        let used: usize = bits.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum();
        if self.map.is_exact() {
            return Ok(Usage { weights, used, pairs: used as f64, collision_rate: 0.0 });
        }
        // Linear counting: k balls thrown into m urns leave m exp(-k/m) of them empty.
        let m = weights as f64;
        let pairs = -m * ((weights - used).max(1) as f64 / m).ln();
        let collision_rate = 1.0 - (-(pairs - 1.0).max(0.0) / m).exp();
        Ok(Usage { weights, used, pairs, collision_rate })
    }

    /// Rows of a store under the map: columns rise by the format.
    ///
    /// # Panics
    /// If their number is not the map's.
    pub fn of_rising(rows: layout::Layout<'a>, map: &'a Map) -> Self {
        assert_eq!(rows.n_cols(), map.n_in(), "a map of as many columns");
        Self { rows, map }
    }
}

impl Rows for Poly2<'_> {
    fn n_rows(&self) -> usize {
        self.rows.n_rows()
    }
    #[inline]
    fn n_cols(&self) -> usize {
        self.map.n_out()
    }
    #[inline]
    fn row_len(&self, i: usize) -> usize {
        let len = self.rows.row_len(i);
        len * (len + 3) / 2 + usize::from(self.map.factors.constant != 0.0)
    }
    #[inline]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        let [sum] = self.dot_lanes(i, w.as_chunks().0);
        sum
    }
    #[inline]
    fn add_scaled(&self, i: usize, scale: f64, w: &mut [f64]) {
        self.add_lanes(i, &[scale], w.as_chunks_mut().0);
    }
    #[inline]
    fn dot_lanes<const L: usize>(&self, i: usize, w: &[[f64; L]]) -> [f64; L] {
        let mut sum = self.rows.pair_dot(i, self.map, w);
        let constant = self.map.factors.constant;
        if constant != 0.0 {
            let last = &w[self.map.n_pairs()];
            for l in 0..L {
                sum[l] += constant * last[l];
            }
        }
        sum
    }
    #[inline]
    fn add_lanes<const L: usize>(&self, i: usize, scale: &[f64; L], w: &mut [[f64; L]]) {
        self.rows.pair_add(i, self.map, scale, w);
        let constant = self.map.factors.constant;
        if constant != 0.0 {
            let last = &mut w[self.map.n_pairs()];
            for l in 0..L {
                last[l] += constant * scale[l];
            }
        }
    }
    /// In the exact layout with rising columns; a hashed column may come twice.
    fn for_each(&self, i: usize, mut f: impl FnMut(usize, f64)) {
        let Factors { constant, linear, .. } = self.map.factors;
        let mut entries = Vec::with_capacity(self.rows.row_len(i));
        self.rows.for_each(i, |j, v| entries.push((j, v)));
        entries.iter().for_each(|&(j, v)| f(j, linear * v));
        for (a, &(j, v)) in entries.iter().enumerate() {
            for &(k, u) in &entries[a..] {
                let (at, factor) = self.map.position(j, k);
                f(at, factor * v * u);
            }
        }
        if constant != 0.0 {
            f(self.map.n_pairs(), constant);
        }
    }
    #[inline]
    fn prefetch(&self, i: usize) {
        self.rows.prefetch(i);
    }
    #[inline]
    fn prefetch_header(&self, i: usize) {
        self.rows.prefetch_header(i);
    }
    fn squared_norm(&self, i: usize) -> f64 {
        let Factors { constant, linear, square, product } = self.map.factors;
        let (mut squares, mut fourths) = (0.0, 0.0);
        self.rows.for_each(i, |_, v| {
            squares += v * v;
            fourths += (v * v) * (v * v);
        });
        let outside = constant * constant + linear * linear * squares + square * square * fourths;
        match &self.map.layout {
            PairLayout::Exact => outside + 0.5 * product * product * (squares * squares - fourths).max(0.0),
            PairLayout::Hashed { .. } => outside + self.hashed_squares(i),
        }
    }
}

impl Poly2<'_> {
    /// Sum of the squares of the hashed part of row `i`, values on one weight added up first.
    fn hashed_squares(&self, i: usize) -> f64 {
        let (first, last) = (2 * self.map.n_in(), self.map.n_pairs());
        let mut entries = Vec::new();
        self.for_each(i, |at, v| {
            if (first..last).contains(&at) {
                entries.push(((at - first) as u32, v));
            }
        });
        entries.sort_unstable_by_key(|&(at, _)| at);
        entries.chunk_by(|a, b| a.0 == b.0).map(|same| same.iter().map(|(_, v)| v).sum::<f64>().powi(2)).sum()
    }
}

#[cfg(test)]
mod tests;
