//! The second derivatives of the losses with respect to the intercepts of all classes.
//!
//! ```text
//! sum_i c_i (diag(p_i) - p_i p_i')
//! ```
//!
//! Half of a row's part is that of another by symmetry, and computed all the same: a row of the matrix is a
//! run of whole lines then.

use super::passes::Setup;
use super::softmax::{Lines, dot};
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::sweep::ROW_CHUNK;
use crate::matrix::kernels;
use crate::matrix::simd::{self, Loop};
use crate::{memory, parallel};

/// Matrices that are added up side by side.
const MATRICES: usize = 4;

/// The matrix, a row of lines for each class.
pub struct InterceptCurvature {
    rows: Vec<[f64; LINE]>,
    lines: usize,
}

impl InterceptCurvature {
    /// Of no rows of the problem.
    pub fn zero(n_classes: usize) -> Self {
        let lines = n_classes.div_ceil(LINE);
        let mut rows = memory::with_capacity(n_classes * lines);
        rows.resize(n_classes * lines, [0.0; LINE]);
        Self { rows, lines }
    }

    /// Takes in rows with probabilities `p`.
    pub fn add(&mut self, setup: &Setup<'_>, p: &Lines) {
        let (n_classes, lines) = (setup.problem.n_classes, self.lines);
        let per_piece = setup.n_rows().div_ceil(MATRICES).max(ROW_CHUNK);
        let pieces = p.chunks(per_piece * lines).zip(setup.problem.cost.chunks(per_piece));
        let found = parallel::map_each(pieces, |_, (p, cost)| simd::run(Piece { p, cost, n_classes, lines }));
        for piece in found {
            for (sum, line) in self.rows.iter_mut().zip(&piece) {
                for l in 0..LINE {
                    sum[l] += line[l];
                }
            }
        }
    }

    /// The matrix times a vector.
    pub fn times(&self, v: &Lines) -> Vec<[f64; LINE]> {
        let mut out = vec![[0.0; LINE]; self.lines];
        let numbers = out.as_flattened_mut().iter_mut();
        numbers.zip(self.rows.chunks_exact(self.lines)).for_each(|(out, row)| *out = dot(row, v));
        out
    }
}

/// Some rows of the problem.
struct Piece<'s> {
    p: &'s Lines,
    cost: &'s [f64],
    n_classes: usize,
    lines: usize,
}

impl Loop for Piece<'_> {
    type Output = Vec<[f64; LINE]>;
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) -> Vec<[f64; LINE]> {
        let Self { p, cost, n_classes, lines } = self;
        let mut matrix = InterceptCurvature::zero(n_classes).rows;
        for (p, c) in p.chunks_exact(lines).zip(cost) {
            for (class, row) in matrix.chunks_exact_mut(lines).enumerate() {
                let (line, lane) = (class / LINE, class % LINE);
                let scale = c * p[line][lane];
                if scale == 0.0 {
                    continue;
                }
                for (sum, p) in row.iter_mut().zip(p) {
                    kernels::one_at_a_time();
                    for l in 0..LINE {
                        sum[l] -= scale * p[l];
                    }
                }
                row[line][lane] += scale;
            }
        }
        matrix
    }
}
