//! The matrix that preconditions the conjugate gradient: the mean of the Hessian's diagonal blocks, one for
//! all classes, or a share of its diagonal.

use super::passes::Setup;
use super::softmax::{Lines, dot};
use super::strips::Strips;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::newton::cholesky::Symmetric;
use crate::fit::newton::factorisation::factorisation;
use crate::fit::newton::hessian::curvature_matrix;
use crate::fit::newton::passes::squares;
use crate::fit::sweep::{Sweep, for_chunks};
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::{Result, memory};

/// Share of the true diagonal, as in [`crate::fit::newton`].
const DIAGONAL_MIX: f64 = 0.01;

enum Inverse {
    None,
    Diagonal(Vec<f64>),
    Factor(Symmetric),
}

/// A preconditioner and how often it is made.
pub struct Preconditioner {
    inverse: Inverse,
    wants_dense: bool,
}

impl Preconditioner {
    /// None yet.
    pub fn new(design: &Design<'_>) -> Self {
        let wants_dense = factorisation(design).is_some_and(|f| f.is_worth_it);
        Self { inverse: Inverse::None, wants_dense }
    }

    /// Whether it approximates the Hessian as a whole.
    pub fn is_dense(&self) -> bool {
        matches!(self.inverse, Inverse::Factor(_))
    }

    /// Makes it anew for these probabilities; returns the passes that took.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn update(&mut self, setup: &Setup<'_>, p: &Lines, rest: &[f64], is_free: bool) -> Result<f64> {
        let (k, n) = (setup.problem.n_classes as f64, setup.n_rows());
        let (class, cost) = (setup.problem.class, setup.problem.cost);
        let mut curvature: Vec<f64> = memory::zeros(n);
        let lines = setup.lines;
        for_chunks(&mut curvature, |start, out| {
            for (out, i) in out.iter_mut().zip(start..) {
                let p = &p[i * lines..][..lines];
                let own = p.as_flattened()[class[i] as usize];
                // `sum_k p_k (1 - p_k)`, the own class's part without cancellation.
                let others = rest[i] - (dot(p, p) - own * own);
                *out = cost[i] * (own * rest[i] + others.max(0.0)) / k;
            }
        });
        let mut sweep = Sweep::<1>::new(setup.design, setup.monitor);
        let penalised = setup.design.n_cols() - usize::from(is_free);
        self.inverse = if self.wants_dense {
            let mut matrix = curvature_matrix(&sweep, &curvature);
            setup.poll()?;
            let order = matrix.n;
            for j in 0..penalised {
                matrix.values[j * order + j] += 1.0;
            }
            matrix.factorise();
            Inverse::Factor(matrix)
        } else {
            let mut diagonal = squares(&mut sweep, &curvature);
            setup.poll()?;
            for (j, d) in diagonal.iter_mut().enumerate() {
                let entry = if j < penalised { 1.0 + DIAGONAL_MIX * *d } else { *d };
                *d = if entry > 0.0 { 1.0 / entry } else { 1.0 };
            }
            Inverse::Diagonal(diagonal)
        };
        Ok(1.0 / (2.0 * lines as f64))
    }

    /// `out = M^-1 r`.
    pub fn apply(&self, r: &Strips, out: &mut Strips) {
        out.copy_from(r);
        match &self.inverse {
            Inverse::None => {}
            Inverse::Diagonal(inverse) => {
                for strip in &mut out.strips {
                    let width = strip.width;
                    for_chunks(&mut strip.numbers, |start, numbers| {
                        for (line, at) in numbers.iter_mut().zip(start..) {
                            for l in 0..LINE {
                                line[l] *= inverse[at / width];
                            }
                        }
                    });
                }
            }
            Inverse::Factor(factor) => {
                for strip in &mut out.strips {
                    let width = strip.width;
                    let numbers = strip.numbers.as_flattened_mut();
                    match width {
                        1 => factor.solve::<LINE>(numbers.as_chunks_mut().0),
                        2 => factor.solve::<{ 2 * LINE }>(numbers.as_chunks_mut().0),
                        3 => factor.solve::<{ 3 * LINE }>(numbers.as_chunks_mut().0),
                        _ => factor.solve::<{ 4 * LINE }>(numbers.as_chunks_mut().0),
                    }
                }
            }
        }
    }
}
