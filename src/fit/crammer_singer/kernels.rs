//! The row operations of the method, behind one object: the solver is compiled once, these loops once per
//! layout of the rows.

use crate::fit::monitor::Monitor;
use crate::fit::newton::cholesky::Symmetric;
use crate::fit::newton::hessian;
use crate::fit::sweep::Sweep;
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::matrix::kernels::LINE;
use crate::matrix::simd::{Wide, WideWork};

/// Cache lines whose sums stay in registers.
const STRIP: usize = 4;

/// The change of one class's dual variable in a row.
#[derive(Clone, Copy, Debug)]
pub struct Change {
    /// The class.
    pub class: u32,
    /// How much is added to it.
    pub delta: f64,
}

/// Rows times weights of several classes: `numbers` holds `lines` cache lines for each column, class within
/// column.
pub trait ClassRows: Sync {
    /// Number of columns, a constant one included.
    fn n_columns(&self) -> usize;
    /// Number of entries.
    fn n_entries(&self) -> usize;
    /// Number of entries of the longest row.
    fn longest(&self) -> usize;
    /// Scores of all classes of row `i`, padding included.
    fn scores(&self, i: usize, numbers: &[[f64; LINE]], lines: usize, out: &mut [[f64; LINE]]);
    /// Scores of chosen classes of row `i`, at their positions in `classes`.
    fn some_scores(&self, i: usize, numbers: &[f64], stride: usize, classes: &[u32], out: &mut [f64]);
    /// `w_m += delta x_i` for every change `(m, delta)`.
    fn add(&self, i: usize, changes: &[Change], numbers: &mut [f64], stride: usize);
    /// Adds `delta x_i` to the weights of all classes.
    fn add_all(&self, i: usize, delta: &[[f64; LINE]], numbers: &mut [[f64; LINE]]);
    /// `|x_i|^2`.
    fn squared(&self, i: usize) -> f64;
    /// Lower triangle of `sum_i curvature[i] x_i x_i'`, meaningless if the monitor is cancelled.
    fn curvature_matrix(&self, curvature: &[f64], monitor: &dyn Monitor) -> Symmetric;
    /// Prefetches the entries of row `i`.
    fn ask(&self, i: usize);
    /// Prefetches what [`Self::ask`] itself must read of row `i`.
    fn ask_header(&self, i: usize);
}

impl ClassRows for Design<'_> {
    fn n_columns(&self) -> usize {
        self.n_cols()
    }

    fn n_entries(&self) -> usize {
        self.nnz()
    }

    fn longest(&self) -> usize {
        (0..self.n_rows()).map(|i| self.row_len(i)).max().unwrap_or(0)
    }

    fn scores(&self, i: usize, numbers: &[[f64; LINE]], lines: usize, out: &mut [[f64; LINE]]) {
        self.visit(Wide(AllClasses { i, numbers, lines, out }));
    }

    fn some_scores(&self, i: usize, numbers: &[f64], stride: usize, classes: &[u32], out: &mut [f64]) {
        let (fours, rest) = classes.as_chunks::<4>();
        for (four, out) in fours.iter().zip(out.as_chunks_mut::<4>().0) {
            *out = self.dot_places(i, numbers, stride, four.map(|c| c as usize));
        }
        let out = &mut out[4 * fours.len()..];
        match *rest {
            [] => {}
            [a] => out.copy_from_slice(&self.dot_places(i, numbers, stride, [a as usize])),
            [a, b] => out.copy_from_slice(&self.dot_places(i, numbers, stride, [a, b].map(|c| c as usize))),
            [a, b, c, ..] => {
                out.copy_from_slice(&self.dot_places(i, numbers, stride, [a, b, c].map(|c| c as usize)))
            }
        }
    }

    fn add(&self, i: usize, changes: &[Change], numbers: &mut [f64], stride: usize) {
        let (pairs, rest) = changes.as_chunks::<2>();
        for pair in pairs {
            self.add_places(i, pair.map(|c| c.delta), numbers, stride, pair.map(|c| c.class as usize));
        }
        for change in rest {
            self.add_places(i, [change.delta], numbers, stride, [change.class as usize]);
        }
    }

    fn add_all(&self, i: usize, delta: &[[f64; LINE]], numbers: &mut [[f64; LINE]]) {
        self.visit(Wide(AddAll { i, delta, numbers }));
    }

    fn squared(&self, i: usize) -> f64 {
        self.squared_norm(i)
    }

    fn curvature_matrix(&self, curvature: &[f64], monitor: &dyn Monitor) -> Symmetric {
        hessian::curvature_matrix(&Sweep::<1>::new(*self, monitor), curvature)
    }

    fn ask(&self, i: usize) {
        self.prefetch(i);
    }

    fn ask_header(&self, i: usize) {
        self.prefetch_header(i);
    }
}

/// A change of all classes.
struct AddAll<'s> {
    i: usize,
    delta: &'s [[f64; LINE]],
    numbers: &'s mut [[f64; LINE]],
}

impl WideWork for AddAll<'_> {
    type Output = ();
    const IS_WIDE: bool = true;

    #[inline(always)]
    fn run<R: Rows>(self, rows: &R) {
        rows.add_lines(self.i, self.delta, self.numbers);
    }
}

/// Scores of all classes of a row.
struct AllClasses<'s> {
    i: usize,
    numbers: &'s [[f64; LINE]],
    lines: usize,
    out: &'s mut [[f64; LINE]],
}

impl WideWork for AllClasses<'_> {
    type Output = ();
    const IS_WIDE: bool = true;

    #[inline(always)]
    fn run<R: Rows>(self, rows: &R) {
        let mut first = 0;
        while first < self.lines {
            let (rest, out) = (self.lines - first, &mut self.out[first..]);
            let Self { i, numbers, lines, .. } = self;
            match rest {
                1 => out.copy_from_slice(&rows.dot_lines::<1>(i, numbers, lines, first)),
                2 => out.copy_from_slice(&rows.dot_lines::<2>(i, numbers, lines, first)),
                3 => out.copy_from_slice(&rows.dot_lines::<3>(i, numbers, lines, first)),
                _ => out[..STRIP].copy_from_slice(&rows.dot_lines::<STRIP>(i, numbers, lines, first)),
            }
            first += STRIP;
        }
    }
}
