//! Parallel passes over the rows, and sums over long vectors, with the same bits for any number of threads.
//!
//! Every sum is cut into pieces whose borders depend on the shape of the data only, each piece is summed in order, and the
//! pieces are added in order. Sums over rows that end in a vector of `d` numbers are cut into few parts (each part needs a
//! vector of its own), sums that end in one number into many.

use std::ops::Range;

use rayon::prelude::*;

use super::Monitor;
use crate::data::Rows;
use crate::data::design::Design;

/// Rows per task where each row yields one number.
pub const ROW_CHUNK: usize = 2048;
/// Entries per task of an elementwise vector operation.
const VECTOR_CHUNK: usize = 32_768;
/// Upper limit for the number of private vectors in a scattering pass.
const MAX_PARTS: usize = 8;
/// A part with fewer entries than this is done before another thread has woken up.
const PART_ENTRIES: usize = 16_384;
/// A part must bring this many entries per column, or clearing and adding its vector costs more than it saves.
const ENTRIES_PER_COLUMN: usize = 3;

/// A design matrix cut for parallel passes, with the private vectors of its parts.
///
/// A pass ends early, with a meaningless result, when the monitor is cancelled: poll the monitor after a pass.
pub struct Sweep<'a, R> {
    /// The matrix.
    pub design: Design<'a, R>,
    monitor: &'a dyn Monitor,
    parts: Vec<Range<usize>>,
    private: Vec<Vec<f64>>,
}

impl<'a, R: Rows> Sweep<'a, R> {
    /// Cuts the rows into parts with about equally many entries.
    pub fn new(design: Design<'a, R>, monitor: &'a dyn Monitor) -> Self {
        let parts = cut(&design);
        let private = vec![Vec::new(); parts.len() - 1];
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

    /// `out[i] = y[i] * (x_i . w)`.
    pub fn margins(&self, y: &[f64], w: &[f64], out: &mut [f64]) {
        out.par_chunks_mut(ROW_CHUNK).enumerate().for_each(|(chunk, out)| {
            if self.monitor.cancelled() {
                return;
            }
            for (k, m) in out.iter_mut().enumerate() {
                let i = chunk * ROW_CHUNK + k;
                *m = y[i] * self.design.dot(i, w);
            }
        });
    }

    /// `out = sum_i coefficient[i] * x_i`; rows with coefficient 0 are not read.
    pub fn weighted_sum(&mut self, coefficient: &[f64], out: &mut [f64]) {
        let design = self.design;
        self.scatter(out, |i, out| {
            if coefficient[i] != 0.0 {
                design.add_scaled(i, coefficient[i], out);
            }
        });
    }

    /// `out = sum_i curvature[i] * (x_i . p) * x_i`; rows with curvature 0 are not read.
    pub fn curvature_product(&mut self, curvature: &[f64], p: &[f64], out: &mut [f64]) {
        let design = self.design;
        self.scatter(out, |i, out| {
            if curvature[i] != 0.0 {
                let t = curvature[i] * design.dot(i, p);
                design.add_scaled(i, t, out);
            }
        });
    }

    /// `out = sum_i curvature[i] * x_i^2`, squares taken entry by entry; rows with curvature 0 are not read.
    pub fn curvature_diagonal(&mut self, curvature: &[f64], out: &mut [f64]) {
        let design = self.design;
        self.scatter(out, |i, out| {
            if curvature[i] != 0.0 {
                design.for_each(i, |j, v| out[j] += curvature[i] * v * v);
            }
        });
    }

    /// Clears `out` and calls `add(i, vector)` for every row, `vector` being `out` or the private vector of the row's part;
    /// in the end `out` is the sum of all vectors.
    pub fn scatter(&mut self, out: &mut [f64], add: impl Fn(usize, &mut [f64]) + Sync) {
        let monitor = self.monitor;
        let run = |range: &Range<usize>, out: &mut [f64]| {
            out.fill(0.0);
            for i in range.clone() {
                if i % ROW_CHUNK == 0 && monitor.cancelled() {
                    return;
                }
                add(i, out);
            }
        };
        let (first, rest) = (&self.parts[0], &self.parts[1..]);
        let len = out.len();
        if rest.is_empty() {
            return run(first, out);
        }
        rayon::join(
            || run(first, out),
            || {
                self.private.par_iter_mut().zip(rest).for_each(|(private, range)| {
                    private.resize(len, 0.0);
                    run(range, private);
                });
            },
        );
        let private = &self.private;
        for_chunks(out, |start, out| {
            for other in private {
                for (sum, v) in out.iter_mut().zip(&other[start..]) {
                    *sum += v;
                }
            }
        });
    }
}

fn cut<R: Rows>(design: &Design<'_, R>) -> Vec<Range<usize>> {
    let (n, nnz) = (design.n_rows(), design.nnz());
    let least = (ENTRIES_PER_COLUMN * design.n_cols()).max(PART_ENTRIES);
    let count = (nnz / least).clamp(1, MAX_PARTS).min(n.max(1));
    let mut parts = Vec::with_capacity(count);
    let (mut start, mut seen) = (0, 0);
    for i in 0..n {
        seen += design.row_len(i);
        if parts.len() + 1 < count && seen * count >= nnz * (parts.len() + 1) {
            parts.push(start..i + 1);
            start = i + 1;
        }
    }
    parts.push(start..n);
    parts
}

/// Calls `f(start, piece)` for fixed pieces of `out`, in parallel where it is long.
pub fn for_chunks<T: Send>(out: &mut [T], f: impl Fn(usize, &mut [T]) + Sync) {
    if out.len() <= VECTOR_CHUNK {
        f(0, out);
    } else {
        out.par_chunks_mut(VECTOR_CHUNK).enumerate().for_each(|(c, piece)| f(c * VECTOR_CHUNK, piece));
    }
}

/// `sum_{i < n} f(i)` for several sums at once.
pub fn sum<const K: usize>(n: usize, f: impl Fn(usize) -> [f64; K] + Sync) -> [f64; K] {
    let piece = |chunk: usize| {
        let mut total = [0.0; K];
        for i in chunk * ROW_CHUNK..((chunk + 1) * ROW_CHUNK).min(n) {
            add(&mut total, f(i));
        }
        total
    };
    let chunks = n.div_ceil(ROW_CHUNK);
    let mut total = [0.0; K];
    if chunks <= 2 {
        (0..chunks).for_each(|c| add(&mut total, piece(c)));
    } else {
        let pieces: Vec<[f64; K]> = (0..chunks).into_par_iter().map(piece).collect();
        pieces.into_iter().for_each(|p| add(&mut total, p));
    }
    total
}

#[inline(always)]
fn add<const K: usize>(total: &mut [f64; K], other: [f64; K]) {
    for (t, o) in total.iter_mut().zip(other) {
        *t += o;
    }
}

/// Scalar product of two vectors.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    if a.len() <= VECTOR_CHUNK {
        return dot_piece(a, b);
    }
    let pieces: Vec<f64> =
        a.par_chunks(VECTOR_CHUNK).zip(b.par_chunks(VECTOR_CHUNK)).map(|(a, b)| dot_piece(a, b)).collect();
    pieces.into_iter().sum()
}

fn dot_piece(a: &[f64], b: &[f64]) -> f64 {
    crate::data::kernels::dot_dense(a, &b[..a.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::dense::DenseView;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    #[test]
    fn passes_match_loops_and_do_not_depend_on_threads() {
        let (n, d) = (5000, 7);
        let values: Vec<f64> = (0..n * d).map(|k| ((k * 37 % 101) as f64 - 50.0) / 10.0).collect();
        let (x, _) = DenseView::new(&values, n, d).unwrap();
        let weights: Vec<f64> = (0..n).map(|i| (i as f64).sin()).collect();
        let p: Vec<f64> = (0..=d).map(|j| j as f64 - 3.0).collect();
        let run = |threads| {
            pool(threads).install(|| {
                let mut sweep = Sweep::new(Design { rows: &x, ids: None, bias: 2.0 }, &crate::solver::Silent);
                let (mut a, mut b, mut c, mut m) = (vec![0.0; d + 1], vec![0.0; d + 1], vec![0.0; d + 1], vec![0.0; n]);
                sweep.weighted_sum(&weights, &mut a);
                sweep.curvature_product(&weights, &p, &mut b);
                sweep.curvature_diagonal(&weights, &mut c);
                sweep.margins(&weights, &p, &mut m);
                let [s] = sum(n, |i| [weights[i]]);
                (a, b, c, m, s, dot(&values, &values))
            })
        };
        let one = run(1);
        assert_eq!(one, run(3));
        let (mut a, mut b) = (vec![0.0; d + 1], vec![0.0; d + 1]);
        for i in 0..n {
            let row: Vec<f64> = values[i * d..(i + 1) * d].iter().copied().chain([2.0]).collect();
            let t: f64 = row.iter().zip(&p).map(|(v, p)| v * p).sum();
            for j in 0..=d {
                a[j] += weights[i] * row[j];
                b[j] += weights[i] * t * row[j];
            }
            assert!((one.3[i] - weights[i] * t).abs() < 1e-10);
        }
        for j in 0..=d {
            assert!((one.0[j] - a[j]).abs() < 1e-8 && (one.1[j] - b[j]).abs() < 1e-7);
        }
        assert!((one.4 - weights.iter().sum::<f64>()).abs() < 1e-9);
    }

    #[test]
    fn parts_tile_the_rows() {
        let values = vec![1.0f32; 2000 * 100];
        let (x, _) = DenseView::new(&values, 2000, 100).unwrap();
        let ids: Vec<u32> = (0..2000).collect();
        let parts = cut(&Design { rows: &x, ids: Some(&ids), bias: 0.0 });
        assert_eq!(parts.len(), MAX_PARTS);
        assert_eq!((parts[0].start, parts[MAX_PARTS - 1].end), (0, 2000));
        assert!(parts.windows(2).all(|p| p[0].end == p[1].start));
    }
}
