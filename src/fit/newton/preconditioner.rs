//! The matrix that preconditions the conjugate gradient of all lanes: `I + C G`, or its mixed diagonal.
//!
//! `G = sum_i D_i x_i x_i'` with `D_i` the mean curvature over lanes is made once for all of them and kept
//! from one `C` to the next: folds share most rows and successive solutions are close, so a stale or average
//! matrix costs a few products more where a fresh one for each lane would cost as much as dozens. With a
//! single lane and a fresh `G` the dense form is the Hessian itself: Newton's step by Cholesky.

use super::cholesky::Symmetric;
use crate::fit::sweep::for_chunks;
use crate::memory::CollectLarge;

/// Share of the true diagonal, LIBLINEAR's value: the plain diagonal is worse than none on some sets.
const DIAGONAL_MIX: f64 = 0.01;

/// `G`, or its diagonal.
#[derive(Clone)]
pub enum Gram {
    /// The diagonal, positive for a free intercept.
    Diagonal(Vec<f64>),
    /// All of it.
    Dense(Symmetric),
}

impl Gram {
    /// Its numbers.
    pub fn values(&self) -> &[f64] {
        match self {
            Self::Diagonal(values) => values,
            Self::Dense(matrix) => &matrix.values,
        }
    }
}

/// An approximation of `(I + C G)^-1`; the identity has zeros past the penalised columns.
pub enum Preconditioner {
    /// The inverse of a diagonal.
    Diagonal(Vec<f64>),
    /// Cholesky factor.
    Dense(Symmetric),
}

impl Preconditioner {
    /// From `G`, the first `penalised` columns of which are part of the norm.
    pub fn new(gram: &Gram, penalised: usize, c: f64) -> Self {
        match gram {
            Gram::Diagonal(diagonal) => {
                let entry =
                    |(j, d): (usize, &f64)| if j < penalised { 1.0 + DIAGONAL_MIX * c * d } else { c * d };
                Self::Diagonal(diagonal.iter().enumerate().map(entry).map(|d| 1.0 / d).collect_large())
            }
            Gram::Dense(gram) => {
                let n = gram.n;
                let mut matrix = Symmetric { n, values: gram.values.iter().map(|v| c * v).collect_large() };
                for j in 0..penalised {
                    matrix.values[j * n + j] += 1.0;
                }
                matrix.factorise();
                Self::Dense(matrix)
            }
        }
    }

    /// Whether it approximates the Hessian as a whole.
    pub fn is_dense(&self) -> bool {
        matches!(self, Self::Dense(_))
    }

    /// Writes `M^-1 r` in each lane.
    pub fn apply<const L: usize>(&self, r: &[[f64; L]], out: &mut [[f64; L]]) {
        match self {
            Self::Diagonal(inverse) => for_chunks(out, |start, out| {
                for ((z, r), d) in out.iter_mut().zip(&r[start..]).zip(&inverse[start..]) {
                    for l in 0..L {
                        z[l] = d * r[l];
                    }
                }
            }),
            Self::Dense(factor) => {
                out.copy_from_slice(r);
                factor.solve(out);
            }
        }
    }
}
