//! Parallel passes over the rows, and sums over long vectors, with the same bits for any number of threads.
//!
//! Every sum is cut into pieces whose borders depend on the shape of the data only, each piece is summed in
//! order, and the pieces are added in order. Sums over rows that end in a vector of `d` entries are cut into
//! few parts (each part needs a vector of its own), sums that end in one number into many.
//!
//! Vectors are interleaved over `L` lanes ([`crate::matrix::lanes`]); a single vector is `L = 1`.

use std::ops::Range;

use super::monitor::Monitor;
use crate::matrix::design::Design;
use crate::matrix::lanes::Block;
use crate::matrix::rows::ROWS_AHEAD;
use crate::matrix::simd::{Wide, WideWork};
use crate::matrix::{Pass, Rows};
use crate::parallel;

/// Rows per task where each row yields one entry.
pub const ROW_CHUNK: usize = 2048;
/// Rows of which a step is told at once: what it computes of them stays in the first-level cache.
pub const ROWS_TOLD: usize = 128;
/// Numbers per task of an elementwise vector operation.
const VECTOR_CHUNK: usize = 32_768;
/// Upper limit for the number of private vectors in a scattering pass.
const MAX_PARTS: usize = 8;
/// A part with fewer entries than this is done before another thread has woken up.
const PART_ENTRIES: usize = 16_384;
/// A part must bring this many entries per column, or clearing and adding its vector costs more than it
/// saves.
const ENTRIES_PER_COLUMN: usize = 3;

/// A design matrix cut for parallel passes, with the private vectors of its parts.
///
/// A pass ends early, with a meaningless result, when the monitor is cancelled: poll the monitor after a
/// pass.
pub struct Sweep<'a, const L: usize = 1> {
    /// The matrix.
    pub design: Design<'a>,
    monitor: &'a dyn Monitor,
    parts: Vec<Range<usize>>,
    private: Vec<Block<L>>,
}

/// What a scattering pass does with the rows of one part. Its methods are `#[inline(always)]`.
pub trait RowStep<const L: usize>: Send {
    /// Reads row `i`, which is row `k` of the part, and adds to `out`.
    fn step<R: Rows>(&mut self, rows: &R, i: usize, k: usize, out: &mut [[f64; L]]);
    /// Called before some rows, at most [`ROWS_TOLD`], of which the first is row `k` of the part.
    #[inline(always)]
    fn begin(&mut self, _rows: Range<usize>, _k: usize) {}
    /// Whether it has nothing to do with most rows ([`super::routes::SPARSE_ROWS`]).
    #[inline(always)]
    fn is_sparse(&self) -> bool {
        false
    }
    /// Whether there is anything to do with row `k` of the part; asked where it [`Self::is_sparse`].
    #[inline(always)]
    fn reads(&self, _k: usize) -> bool {
        true
    }
}

/// [`Sweep::scatter`] on a piece of a part.
struct Piece<'s, S, const L: usize> {
    range: Range<usize>,
    first: usize,
    step: &'s mut S,
    out: &'s mut [[f64; L]],
}

impl<S: RowStep<L>, const L: usize> WideWork for Piece<'_, S, L> {
    type Output = ();
    const IS_WIDE: bool = L > 1;
    #[inline(always)]
    fn run<R: Rows>(self, rows: &R) {
        for start in self.range.clone().step_by(ROWS_TOLD) {
            let some = start..(start + ROWS_TOLD).min(self.range.end);
            self.step.begin(some.clone(), start - self.first);
            if !self.step.is_sparse() {
                // No `for_each`: its closure would not be compiled for wide registers.
                for i in some {
                    self.step.step(rows, i, i - self.first, self.out);
                }
                continue;
            }
            let (mut list, mut count) = ([0; ROWS_TOLD], 0);
            for i in some {
                list[count] = i;
                count += usize::from(self.step.reads(i - self.first));
            }
            let list = &list[..count];
            for (n, i) in list.iter().enumerate() {
                if let Some(next) = list.get(n + ROWS_AHEAD) {
                    rows.prefetch(*next);
                }
                self.step.step(rows, *i, i - self.first, self.out);
            }
        }
    }
}

/// [`Sweep::decisions`] on a piece.
struct Dots<'s, const L: usize> {
    first: usize,
    w: &'s [[f64; L]],
    out: &'s mut [[f64; L]],
}

impl<const L: usize> WideWork for Dots<'_, L> {
    type Output = ();
    const IS_WIDE: bool = L > 1;
    #[inline(always)]
    fn run<R: Rows>(self, rows: &R) {
        for k in 0..self.out.len() {
            self.out[k] = rows.dot_lanes(self.first + k, self.w);
        }
    }
}

impl<'a, const L: usize> Sweep<'a, L> {
    /// Cuts the rows into parts with about equally many entries.
    pub fn new(design: Design<'a>, monitor: &'a dyn Monitor) -> Self {
        let parts = cut(&design);
        let private = parts[1..].iter().map(|_| Block::zeros(0)).collect();
        Self { design, monitor, parts, private }
    }

    /// The parts into which scattering passes are cut.
    pub fn parts(&self) -> &[Range<usize>] {
        &self.parts
    }

    /// Whether the caller asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.monitor.cancelled()
    }

    /// `out[i] = x_i . w`.
    pub fn decisions(&self, w: &[[f64; L]], out: &mut [[f64; L]]) {
        let design = &self.design;
        parallel::each_chunk(out, ROW_CHUNK, |first, out| {
            if !self.monitor.cancelled() {
                design.visit(Wide(Dots { first, w, out }));
            }
        });
    }

    /// Clears `out` and lets `steps`, one per part, add their rows to it, each part to a private vector; in
    /// the end `out` is the sum of all vectors. Returns the steps for what they have gathered.
    pub fn scatter<S: RowStep<L>>(&mut self, out: &mut [[f64; L]], mut steps: Vec<S>) -> Vec<S> {
        let (design, monitor) = (&self.design, self.monitor);
        let len = out.len();
        self.private
            .iter_mut()
            .filter(|private| private.len() != len)
            .for_each(|private| *private = Block::zeros(len));
        let outs = std::iter::once(&mut *out).chain(self.private.iter_mut().map(|private| &mut private[..]));
        parallel::each(self.parts.iter().zip(&mut steps).zip(outs), |_, ((range, step), out)| {
            out.fill([0.0; L]);
            for start in range.clone().step_by(ROW_CHUNK) {
                if monitor.cancelled() {
                    return;
                }
                let end = (start + ROW_CHUNK).min(range.end);
                let piece = Piece { range: start..end, first: range.start, step: &mut *step, out: &mut *out };
                design.visit(Wide(piece));
            }
        });
        if self.private.is_empty() {
            return steps;
        }
        let private = &self.private;
        for_chunks(out, |start, out| {
            for other in private {
                for (sum, v) in out.iter_mut().zip(&other[start..]) {
                    for l in 0..L {
                        sum[l] += v[l];
                    }
                }
            }
        });
        steps
    }
}

impl<const L: usize> Sweep<'_, L> {
    /// `out = sum_i coefficient[i] * x_i` in each lane.
    pub fn weighted_sums(&mut self, coefficient: &[[f64; L]], out: &mut [[f64; L]]) {
        let scale = |range: &Range<usize>| Scale { coefficient: &coefficient[range.clone()] };
        let steps = self.parts.iter().map(scale).collect();
        self.scatter(out, steps);
    }
}

/// Cuts a vector over rows where a sweep cuts the rows.
pub fn split<'s, T>(parts: &[Range<usize>], mut rows: &'s mut [T]) -> Vec<&'s mut [T]> {
    let mut pieces = Vec::with_capacity(parts.len());
    for range in parts {
        let (piece, rest) = rows.split_at_mut(range.len());
        pieces.push(piece);
        rows = rest;
    }
    pieces
}

/// Adds `coefficient * x_i` in each lane for the rows of a part; rows of coefficients 0 are not read.
struct Scale<'s, const L: usize> {
    coefficient: &'s [[f64; L]],
}

impl<const L: usize> RowStep<L> for Scale<'_, L> {
    #[inline(always)]
    fn step<R: Rows>(&mut self, rows: &R, i: usize, k: usize, out: &mut [[f64; L]]) {
        let coefficient = &self.coefficient[k];
        if *coefficient == [0.0; L] {
            return;
        }
        if L == 1 {
            rows.add_scaled(i, coefficient[0], out.as_flattened_mut());
        } else {
            rows.add_lanes(i, coefficient, out);
        }
    }
}

impl Sweep<'_> {
    /// `out[i] = y[i] * (x_i . w)`.
    pub fn margins(&self, y: &[f64], w: &[f64], out: &mut [f64]) {
        self.decisions(w.as_chunks().0, out.as_chunks_mut().0);
        for_chunks(out, |start, out| out.iter_mut().zip(&y[start..]).for_each(|(m, y)| *m *= y));
    }

    /// `out = sum_i coefficient[i] * x_i`.
    pub fn weighted_sum(&mut self, coefficient: &[f64], out: &mut [f64]) {
        self.weighted_sums(coefficient.as_chunks().0, out.as_chunks_mut().0);
    }
}

fn cut(design: &Design<'_>) -> Vec<Range<usize>> {
    let (n, nnz) = (design.n_rows(), design.nnz());
    let least = ENTRIES_PER_COLUMN.saturating_mul(design.n_cols()).max(PART_ENTRIES);
    let count = (nnz / least).clamp(1, MAX_PARTS).min(n.max(1));
    design.visit(Cuts { count, nnz })
}

/// Cuts rows of so many entries into so many parts.
struct Cuts {
    count: usize,
    nnz: usize,
}

impl Pass for Cuts {
    type Output = Vec<Range<usize>>;
    fn run<R: Rows>(self, rows: &R) -> Vec<Range<usize>> {
        let Self { count, nnz } = self;
        let mut parts = Vec::with_capacity(count);
        let (n, mut start, mut seen) = (rows.n_rows(), 0, 0);
        for i in 0..n {
            seen += rows.row_len(i);
            if parts.len() + 1 < count && seen * count >= nnz * (parts.len() + 1) {
                parts.push(start..i + 1);
                start = i + 1;
            }
        }
        parts.push(start..n);
        parts
    }
}

/// Calls `f(start, piece)` for fixed pieces of `out`, in parallel where it is long.
pub fn for_chunks<T: Send>(out: &mut [T], f: impl Fn(usize, &mut [T]) + Sync) {
    let chunk = (VECTOR_CHUNK * size_of::<f64>() / size_of::<T>().max(1)).max(1);
    if out.len() <= chunk {
        f(0, out);
    } else {
        parallel::each_chunk(out, chunk, f);
    }
}

/// `sum_{i < n} f(i)` for several sums at once.
pub fn sum<const K: usize>(n: usize, f: impl Fn(usize) -> [f64; K] + Sync) -> [f64; K] {
    let [total] = sum_pieces(n, ROW_CHUNK, |rows| {
        let mut total = [0.0; K];
        rows.for_each(|i| add(&mut total, f(i)));
        [total]
    });
    total
}

/// `sum_{k < n} f(k)` over the entries of long vectors, for `K` sums of `L` lanes in four partial sums each.
pub fn sum_entries<const K: usize, const L: usize>(
    n: usize,
    f: impl Fn(usize) -> [[f64; L]; K] + Sync,
) -> [[f64; L]; K] {
    const WAYS: usize = 4;
    sum_pieces(n, VECTOR_CHUNK / L, |entries| {
        let mut ways = [[[0.0; L]; K]; WAYS];
        let whole = entries.start + entries.len() / WAYS * WAYS;
        for group in (entries.start..whole).step_by(WAYS) {
            for (way, sums) in ways.iter_mut().enumerate() {
                add_all(sums, f(group + way));
            }
        }
        for k in whole..entries.end {
            add_all(&mut ways[0], f(k));
        }
        let [mut a, b, mut c, d] = ways;
        add_all(&mut a, b);
        add_all(&mut c, d);
        add_all(&mut a, c);
        a
    })
}

/// The sum of `piece(range)` over the pieces of `chunk` numbers into which `0..n` falls, added in order.
pub fn sum_pieces<const K: usize, const L: usize>(
    n: usize,
    chunk: usize,
    piece: impl Fn(Range<usize>) -> [[f64; L]; K] + Sync,
) -> [[f64; L]; K] {
    add_pieces(n, chunk, &piece)
}

fn add_pieces<const K: usize, const L: usize>(
    n: usize,
    chunk: usize,
    piece: &(dyn Fn(Range<usize>) -> [[f64; L]; K] + Sync),
) -> [[f64; L]; K] {
    let range = |k: usize| k * chunk..((k + 1) * chunk).min(n);
    let count = n.div_ceil(chunk);
    let mut total = [[0.0; L]; K];
    if count <= 2 {
        (0..count).for_each(|k| add_all(&mut total, piece(range(k))));
    } else {
        parallel::map(count, |k| piece(range(k))).into_iter().for_each(|p| add_all(&mut total, p));
    }
    total
}

#[inline(always)]
fn add<const K: usize>(total: &mut [f64; K], other: [f64; K]) {
    for (t, o) in total.iter_mut().zip(other) {
        *t += o;
    }
}

#[inline(always)]
fn add_all<const K: usize, const L: usize>(total: &mut [[f64; L]; K], other: [[f64; L]; K]) {
    for (t, o) in total.iter_mut().zip(other) {
        add(t, o);
    }
}

/// Scalar product of two vectors.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    if a.len() <= VECTOR_CHUNK {
        return dot_piece(a, b);
    }
    let count = a.len().div_ceil(VECTOR_CHUNK);
    let range = |k: usize| k * VECTOR_CHUNK..((k + 1) * VECTOR_CHUNK).min(a.len());
    parallel::map(count, |k| dot_piece(&a[range(k)], &b[range(k)])).into_iter().sum()
}

fn dot_piece(a: &[f64], b: &[f64]) -> f64 {
    crate::matrix::kernels::dot_dense(a, &b[..a.len()])
}
#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::csr::CsrView;
    use crate::matrix::dense::DenseView;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    #[test]
    fn passes_match_loops_and_do_not_depend_on_threads() {
        let (n, d) = (5000, 7);
        let values: Vec<f64> = (0..n * d).map(|k| ((k * 37 % 101) as f64 - 50.0) / 10.0).collect();
        let x = crate::matrix::Matrix::from(DenseView::new(&values, n, d).unwrap().0);
        let weights: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
        let p: Vec<f64> = (0..=d).map(|j| j as f64 - 3.0).collect();
        let run = |threads| {
            pool(threads).install(|| {
                let mut sweep = Sweep::new(Design { rows: &x, ids: None, bias: 2.0 }, &crate::fit::Silent);
                let (mut a, mut m) = (vec![0.0; d + 1], vec![0.0; n]);
                sweep.weighted_sum(&weights, &mut a);
                sweep.margins(&weights, &p, &mut m);
                let [s] = sum(n, |i| [weights[i]]);
                let [pairs, squares] =
                    sum_entries(n, |i| [[weights[i], 1.0], [weights[i] * weights[i], 0.0]]);
                (a, m, s, pairs, squares, dot(&values, &values))
            })
        };
        let one = run(1);
        assert_eq!(one, run(3));
        let mut a = vec![0.0; d + 1];
        for i in 0..n {
            let row: Vec<f64> = values[i * d..(i + 1) * d].iter().copied().chain([2.0]).collect();
            let t: f64 = row.iter().zip(&p).map(|(v, p)| v * p).sum();
            row.iter().zip(&mut a).for_each(|(v, a)| *a += weights[i] * v);
            assert!((one.1[i] - weights[i] * t).abs() < 1e-10);
        }
        assert!(one.0.iter().zip(&a).all(|(x, y)| (x - y).abs() < 1e-8));
        assert!((one.2 - weights.iter().sum::<f64>()).abs() < 1e-9);
        let squares: f64 = weights.iter().map(|v| v * v).sum();
        assert!((one.3[0] - one.2).abs() < 1e-9 && one.3[1] == n as f64);
        assert!((one.4[0] - squares).abs() < 1e-9 && one.4[1] == 0.0);
    }

    #[test]
    fn parts_tile_the_rows() {
        let values = vec![1.0f32; 2000 * 100];
        let x = crate::matrix::Matrix::from(DenseView::new(&values, 2000, 100).unwrap().0);
        let ids: Vec<u32> = (0..2000).collect();
        let parts = cut(&Design { rows: &x, ids: Some(&ids), bias: 0.0 });
        assert_eq!(parts.len(), MAX_PARTS);
        assert_eq!((parts[0].start, parts[MAX_PARTS - 1].end), (0, 2000));
        assert!(parts.windows(2).all(|p| p[0].end == p[1].start));
    }

    #[test]
    fn a_matrix_may_have_any_number_of_columns() {
        let (indptr, indices, values) = ([0, 2], [0i64, (1 << 62) - 1], [1.0f64, 2.0]);
        let (wide, _) = CsrView::new(&indptr, &indices, &values, 1 << 62).unwrap();
        let x = crate::matrix::Matrix::from(wide);
        let design = Design { rows: &x, ids: None, bias: 0.0 };
        assert_eq!(cut(&design).len(), 1);
        assert!(!crate::fit::auto::prefers_lanes(&design));
    }
}
