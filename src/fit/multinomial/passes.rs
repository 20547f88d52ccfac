//! Readings of the rows for all classes at once, and what is computed from tables of rows x classes alone.
//!
//! A table has a row of cache lines per row of the problem. The rows are read either to be multiplied
//! ([`Setup::scores`], parallel over rows) or to be added up ([`Setup::scatter`], parallel over strips of
//! classes and a few parts of the rows with blocks of their own). Where the sum of one strip needs numbers of
//! all classes, as in a product with the Hessian, these are in a table by then. Parts and pieces are cut by
//! the shape of the data alone.

use std::ops::Range;

use super::shape::SoftmaxShape;
use super::softmax::{Lines, dot, loss_at, softmax};
use super::strips::{Coefficients, Strip, Strips};
use crate::fit::crammer_singer::ClassProblem;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::monitor::Monitor;
use crate::fit::sweep::{ROW_CHUNK, Sweep, for_chunks};
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::matrix::kernels;
use crate::matrix::lanes::Block;
use crate::matrix::simd::{self, Loop, Wide, WideWork};
use crate::{Result, memory, parallel};

/// Tasks of a scattering pass, about.
const MAX_TASKS: usize = 8;
/// A part of the rows must bring this many entries per column, or clearing and adding its block costs more
/// than it saves.
const ENTRIES_PER_COLUMN: usize = 16;
/// Rows of a piece at least.
const LEAST_ROWS: usize = 32;

/// A problem with the constant column of its intercept, cut for parallel passes.
pub struct Setup<'a> {
    /// Classes and costs.
    pub problem: ClassProblem<'a>,
    /// The rows with a constant column.
    pub design: Design<'a>,
    /// Cache lines of classes.
    pub lines: usize,
    /// Rows of one piece of a table.
    pub chunk: usize,
    /// Progress and cancelling.
    pub monitor: &'a dyn Monitor,
    parts: Vec<Range<usize>>,
}

/// Rows of one piece of a table of so many lines.
pub fn rows_of_piece(lines: usize) -> usize {
    (ROW_CHUNK / lines).max(LEAST_ROWS)
}

impl<'a> Setup<'a> {
    /// With a constant column of height `bias`, none if 0.
    pub fn new(problem: &ClassProblem<'a>, bias: f64, monitor: &'a dyn Monitor) -> Self {
        Self::in_parts(problem, bias, MAX_TASKS, monitor)
    }

    /// In so many parts at most; each but the first takes a block of columns x classes while rows are added
    /// up.
    pub fn in_parts(problem: &ClassProblem<'a>, bias: f64, most: usize, monitor: &'a dyn Monitor) -> Self {
        let design = Design { rows: problem.rows, ids: problem.ids, bias };
        let lines = problem.n_classes.div_ceil(LINE);
        let fine = Sweep::<1>::new(design, monitor).parts().to_vec();
        let n_strips = Strips::zeros(0, lines).strips.len();
        let dense = design.nnz() / ENTRIES_PER_COLUMN.saturating_mul(design.n_cols()).max(1);
        let count = (MAX_TASKS / n_strips).min(dense).min(most).clamp(1, fine.len());
        let parts = fine
            .chunks(fine.len().div_ceil(count))
            .map(|some| some[0].start..some[some.len() - 1].end)
            .collect();
        Self { problem: *problem, design, lines, chunk: rows_of_piece(lines), monitor, parts }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.problem.class.len()
    }

    /// The sizes.
    pub fn shape(&self) -> SoftmaxShape {
        let ClassProblem { n_classes, intercept, .. } = self.problem;
        let (n_rows, n_columns, bias) = (self.n_rows(), self.design.n_cols(), self.design.bias);
        SoftmaxShape { n_rows, n_columns, n_classes, lines: self.lines, bias, intercept }
    }

    /// Room for numbers of every column and class.
    pub fn strips(&self) -> Strips {
        self.shape().strips()
    }

    /// A table of zeros.
    pub fn table(&self) -> Block<LINE> {
        Block::zeros(self.n_rows() * self.lines)
    }

    /// A row of zeros, `far` beyond the last class.
    pub fn row(&self, far: f64) -> Vec<[f64; LINE]> {
        self.shape().row(far)
    }

    /// `out_i = W x_i + offset`.
    pub fn scores(&self, w: &Strips, offset: &Lines, out: &mut Lines) {
        parallel::each_chunk(out, self.chunk * self.lines, |start, out| {
            if !self.monitor.cancelled() {
                let first = start / self.lines;
                self.design.visit(Wide(Scores { first, w, offset, out }));
            }
        });
    }

    /// `out = sum_i t_i x_i'` with the coefficients `t_i`.
    pub fn scatter<C: Coefficients>(&self, coefficients: &C, out: &mut Strips) {
        out.clear();
        self.scatter_more(coefficients, out);
    }

    /// `out += sum_i t_i x_i'` with the coefficients `t_i`.
    pub fn scatter_more<C: Coefficients>(&self, coefficients: &C, out: &mut Strips) {
        let mut private: Vec<Strips> = self.parts[1..].iter().map(|_| self.strips()).collect();
        let outs = std::iter::once(&mut *out).chain(&mut private);
        let tasks: Vec<(&Range<usize>, &mut Strip)> = (self.parts.iter().zip(outs))
            .flat_map(|(range, out)| out.strips.iter_mut().map(move |strip| (range, strip)))
            .collect();
        parallel::each(tasks, |_, (range, strip)| {
            for start in range.clone().step_by(ROW_CHUNK) {
                if self.monitor.cancelled() {
                    return;
                }
                let end = (start + ROW_CHUNK).min(range.end);
                self.design.visit(Wide(Scatter { rows: start..end, coefficients, strip: &mut *strip }));
            }
        });
        for part in &private {
            out.add_scaled(1.0, part);
        }
    }

    /// `out += sum_i c_i (diag(p_i) - p_i p_i') (D x_i) x_i'`.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn multiply(&self, product: &mut ClassProduct<'_>, out: &mut Strips) -> Result<()> {
        let ClassProduct { d, p, q, before } = product;
        let (lines, chunk) = (self.lines, self.chunk * self.lines);
        let mut mean = memory::zeros(self.n_rows());
        let mut later = before.as_mut().map(|(length, step_z)| (*length, step_z.chunks_mut(chunk)));
        let mut next = || later.as_mut().and_then(|(length, tables)| tables.next().map(|z| (*length, z)));
        let tables = q.chunks_mut(chunk).zip(p.chunks(chunk)).zip(mean.chunks_mut(self.chunk));
        let pieces: Vec<_> = tables.map(|tables| (tables, next())).collect();
        parallel::each(pieces, |k, (((q, p), mean), before)| {
            if !self.monitor.cancelled() {
                let piece = Directed { first: k * self.chunk, lines, d, before, p, q, mean };
                self.design.visit(Wide(piece));
            }
        });
        self.poll()?;
        self.scatter_more(&Curved { lines, p, q, mean: &mean, cost: self.problem.cost }, out);
        self.poll()
    }

    /// Softmax of `z + shift` for every row, with its loss and what it lacks of the constraint.
    pub fn evaluate(&self, z: &Lines, shift: &Lines, p: &mut Lines, rest: &mut [f64]) -> Evaluated {
        let ClassProblem { class, cost, .. } = self.problem;
        let chunk = self.chunk * self.lines;
        let pieces = z.chunks(chunk).zip(p.chunks_mut(chunk)).zip(rest.chunks_mut(self.chunk));
        let found = parallel::map_each(pieces, |k, ((z, p), rest)| {
            let range = k * self.chunk..k * self.chunk + rest.len();
            let (class, cost) = (&class[range.clone()], &cost[range]);
            simd::run(SoftmaxPiece { z, shift, p, rest, class, cost })
        });
        let mut all = Evaluated::zero(self.lines);
        found.into_iter().for_each(|piece| all.add(&piece));
        all
    }

    /// `sum_i c_i loss_i` at `z + length * step`.
    pub fn loss_at(&self, z: &Lines, step: &Lines, length: f64) -> f64 {
        let ClassProblem { class, cost, .. } = self.problem;
        let (chunk, n) = (self.chunk, self.n_rows());
        let piece = |k: usize| {
            let range = k * chunk..((k + 1) * chunk).min(n);
            let (class, cost) = (&class[range.clone()], &cost[range.clone()]);
            let table = range.start * self.lines..range.end * self.lines;
            simd::run(LossPiece { z: &z[table.clone()], step: &step[table], length, class, cost })
        };
        parallel::map(n.div_ceil(chunk), piece).into_iter().sum()
    }

    /// Calls `f(i, row)` for every row of a table, in parallel.
    pub fn each_row(&self, table: &mut Lines, f: impl Fn(usize, &mut Lines) + Sync) {
        let lines = self.lines;
        parallel::each_chunk(table, self.chunk * lines, |start, piece| {
            piece.chunks_mut(lines).zip(start / lines..).for_each(|(row, i)| f(i, row));
        });
    }

    /// Adds `shift` to every row of a table.
    pub fn shift(&self, table: &mut Lines, shift: &Lines) {
        let chunk = self.lines;
        self.each_row(table, |_, row| {
            debug_assert_eq!(row.len(), chunk);
            for (row, shift) in row.iter_mut().zip(shift) {
                kernels::one_at_a_time();
                for l in 0..LINE {
                    row[l] += shift[l];
                }
            }
        });
    }

    /// `table += scale * other`.
    pub fn add_table(&self, table: &mut Lines, scale: f64, other: &Lines) {
        for_chunks(table, |start, table| {
            for (x, y) in table.iter_mut().zip(&other[start..]) {
                kernels::one_at_a_time();
                for l in 0..LINE {
                    x[l] += scale * y[l];
                }
            }
        });
    }

    /// [`crate::Error::Cancelled`] if the caller asked to stop.
    ///
    /// # Errors
    /// That one.
    pub fn poll(&self) -> Result<()> {
        self.monitor.poll()
    }
}

/// What an evaluation of all rows finds.
#[derive(Clone)]
pub struct Evaluated {
    /// `sum_i c_i loss_i`.
    pub loss: f64,
    /// `sum_i c_i (p_i - e_{y_i})` by class.
    pub residual: Vec<[f64; LINE]>,
    /// The sum of the sizes of its terms.
    pub scale: Vec<[f64; LINE]>,
}

impl Evaluated {
    /// Of no rows.
    pub fn zero(lines: usize) -> Self {
        Self { loss: 0.0, residual: vec![[0.0; LINE]; lines], scale: vec![[0.0; LINE]; lines] }
    }

    /// Takes other rows in.
    pub fn add(&mut self, other: &Self) {
        self.loss += other.loss;
        for (mine, other) in [(&mut self.residual, &other.residual), (&mut self.scale, &other.scale)] {
            for (x, y) in mine.as_flattened_mut().iter_mut().zip(other.as_flattened()) {
                *x += y;
            }
        }
    }
}

/// [`Setup::scores`] of a piece.
struct Scores<'s> {
    first: usize,
    w: &'s Strips,
    offset: &'s Lines,
    out: &'s mut Lines,
}

impl WideWork for Scores<'_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run<R: Rows>(self, rows: &R) {
        let lines = self.offset.len();
        self.w.scores(rows, self.first, lines, self.out);
        for out in self.out.chunks_exact_mut(lines) {
            for (out, offset) in out.iter_mut().zip(self.offset) {
                kernels::one_at_a_time();
                for l in 0..LINE {
                    out[l] += offset[l];
                }
            }
        }
    }
}

/// [`Setup::scatter`] of some rows to a strip.
struct Scatter<'s, C> {
    rows: Range<usize>,
    coefficients: &'s C,
    strip: &'s mut Strip,
}

impl<C: Coefficients> WideWork for Scatter<'_, C> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run<R: Rows>(self, rows: &R) {
        let Self { rows: range, coefficients, strip } = self;
        strip.scatter(rows, range, coefficients);
    }
}

/// [`Setup::evaluate`] of a piece.
struct SoftmaxPiece<'s> {
    z: &'s Lines,
    shift: &'s Lines,
    p: &'s mut Lines,
    rest: &'s mut [f64],
    class: &'s [u32],
    cost: &'s [f64],
}

impl Loop for SoftmaxPiece<'_> {
    type Output = Evaluated;
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) -> Evaluated {
        let lines = self.shift.len();
        let mut found = Evaluated::zero(lines);
        let mut moved = self.shift.to_vec();
        let rows = self.z.chunks_exact(lines).zip(self.p.chunks_exact_mut(lines));
        for (k, (z, p)) in rows.enumerate() {
            for ((moved, z), shift) in moved.iter_mut().zip(z).zip(self.shift) {
                kernels::one_at_a_time();
                for l in 0..LINE {
                    moved[l] = z[l] + shift[l];
                }
            }
            let (own, c) = (self.class[k] as usize, self.cost[k]);
            let row = softmax(&moved, own, p);
            found.loss += c * row.loss;
            self.rest[k] = row.rest;
            // The own class adds `p - 1`, without the cancellation.
            let (line, lane) = (own / LINE, own % LINE);
            let mine = std::mem::replace(&mut p[line][lane], -row.rest);
            let sums = found.residual.iter_mut().zip(&mut found.scale);
            for ((residual, scale), p) in sums.zip(p.iter()) {
                kernels::one_at_a_time();
                for l in 0..LINE {
                    let term = c * p[l];
                    residual[l] += term;
                    scale[l] += term.abs();
                }
            }
            p[line][lane] = mine;
        }
        found
    }
}

/// [`Setup::loss_at`] of a piece.
struct LossPiece<'s> {
    z: &'s Lines,
    step: &'s Lines,
    length: f64,
    class: &'s [u32],
    cost: &'s [f64],
}

impl Loop for LossPiece<'_> {
    type Output = f64;
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) -> f64 {
        let lines = self.z.len() / self.class.len().max(1);
        let mut sum = 0.0;
        let rows = self.z.chunks_exact(lines.max(1)).zip(self.step.chunks_exact(lines.max(1)));
        for (k, (z, step)) in rows.enumerate() {
            sum += self.cost[k] * loss_at(z, step, self.length, self.class[k] as usize);
        }
        sum
    }
}

/// A product with the rows' part of the Hessian.
pub struct ClassProduct<'s> {
    /// The direction.
    pub d: &'s Strips,
    /// Probabilities.
    pub p: &'s Lines,
    /// Scores of the direction before; on return those of this one.
    pub q: &'s mut Lines,
    /// Length of the step along the direction before, and the scores of all steps so far, which it is added
    /// to.
    pub before: Option<(f64, &'s mut Lines)>,
}

/// Scores of a direction, and their means under the probabilities.
struct Directed<'s> {
    first: usize,
    lines: usize,
    d: &'s Strips,
    before: Option<(f64, &'s mut Lines)>,
    p: &'s Lines,
    q: &'s mut Lines,
    mean: &'s mut [f64],
}

impl WideWork for Directed<'_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run<R: Rows>(self, rows: &R) {
        if let Some((length, step_z)) = self.before.filter(|(length, _)| *length != 0.0) {
            for (total, q) in step_z.iter_mut().zip(self.q.iter()) {
                kernels::one_at_a_time();
                for l in 0..LINE {
                    total[l] += length * q[l];
                }
            }
        }
        self.d.scores(rows, self.first, self.lines, self.q);
        // A loop of its own: the sums of the scores would be ordered for this one.
        let tables = self.q.chunks_exact(self.lines).zip(self.p.chunks_exact(self.lines));
        for (mean, (q, p)) in self.mean.iter_mut().zip(tables) {
            *mean = dot(p, q);
        }
    }
}

/// `c_i (diag(p_i) - p_i p_i') q_i`.
struct Curved<'s> {
    lines: usize,
    p: &'s Lines,
    q: &'s Lines,
    mean: &'s [f64],
    cost: &'s [f64],
}

impl Coefficients for Curved<'_> {
    #[inline(always)]
    fn write(&self, i: usize, first: usize, out: &mut Lines) {
        let (c, mean, at) = (self.cost[i], self.mean[i], i * self.lines + first);
        let (p, q) = (&self.p[at..][..out.len()], &self.q[at..][..out.len()]);
        for ((out, p), q) in out.iter_mut().zip(p).zip(q) {
            kernels::one_at_a_time();
            for l in 0..LINE {
                out[l] = c * p[l] * (q[l] - mean);
            }
        }
    }
}

/// `c_i (p_i - e_{y_i})`, the slopes of the losses.
pub struct SoftmaxSlopes<'s> {
    /// Lines of a row.
    pub lines: usize,
    /// Probabilities.
    pub p: &'s Lines,
    /// `1 - p_y` by row.
    pub rest: &'s [f64],
    /// The problem.
    pub problem: ClassProblem<'s>,
}

impl Coefficients for SoftmaxSlopes<'_> {
    #[inline(always)]
    fn write(&self, i: usize, first: usize, out: &mut Lines) {
        let (c, own) = (self.problem.cost[i], self.problem.class[i] as usize);
        let p = &self.p[i * self.lines + first..][..out.len()];
        for (out, p) in out.iter_mut().zip(p) {
            kernels::one_at_a_time();
            for l in 0..LINE {
                out[l] = c * p[l];
            }
        }
        if (first..first + out.len()).contains(&(own / LINE)) {
            out[own / LINE - first][own % LINE] = -c * self.rest[i];
        }
    }
}
