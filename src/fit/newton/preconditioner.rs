//! The matrix that preconditions the conjugate gradient of all lanes: `I + C G`, or its mixed diagonal.
//!
//! `G = sum_i D_i x_i x_i'` with `D_i` the mean curvature over lanes is made once for all of them and kept
//! from one `C` to the next: folds share most rows and successive solutions are close, so a stale or average
//! matrix costs a few products more where a fresh one for each lane would cost as much as dozens. With a
//! single lane and a fresh `G` the dense form is the Hessian itself: Newton's step by Cholesky.

use std::sync::Arc;

use super::cholesky::Symmetric;
use super::factorisation::Form;
use super::frequent::FrequentColumns;
use crate::Result;
use crate::fit::checks::check_length;
use crate::fit::sweep::for_chunks;
use crate::matrix::lanes::Block;
use crate::memory::{self, CollectLarge};

/// Share of the true diagonal, LIBLINEAR's value: the plain diagonal is worse than none on some sets.
const DIAGONAL_MIX: f64 = 0.01;

/// `G`, or a part of it.
#[derive(Clone)]
pub enum Gram {
    /// The diagonal, positive for a free intercept.
    Diagonal(Vec<f64>),
    /// The diagonal, and the block of some columns.
    Frequent {
        /// All of the diagonal.
        diagonal: Vec<f64>,
        /// Which columns.
        columns: Arc<FrequentColumns>,
        /// Their block.
        block: Symmetric,
    },
    /// All of it.
    Dense(Symmetric),
}

impl Gram {
    /// That of these [`Self::values`], over `n` columns; all of `G` where it `is_dense`.
    ///
    /// # Errors
    /// [`crate::Error::Shape`].
    pub fn of_values(is_dense: bool, n: usize, values: &[f64]) -> Result<Self> {
        if is_dense {
            check_length("matrix of a solver state", n * n, values.len())?;
            return Ok(Self::Dense(Symmetric { n, values: memory::copy(values) }));
        }
        check_length("diagonal of a solver state", n, values.len())?;
        Ok(Self::Diagonal(memory::copy(values)))
    }

    /// Its form.
    pub fn form(&self) -> Form {
        match self {
            Self::Diagonal(_) => Form::Diagonal,
            Self::Frequent { .. } => Form::Frequent,
            Self::Dense(_) => Form::Dense,
        }
    }

    /// Its numbers, of a block the diagonal beside it: what is kept of a search, which has no block.
    pub fn values(&self) -> &[f64] {
        match self {
            Self::Diagonal(values) | Self::Dense(Symmetric { values, .. }) => values,
            Self::Frequent { diagonal, .. } => diagonal,
        }
    }
}

/// An approximation of `(I + C G)^-1`; the identity has zeros past the penalised columns.
pub enum Preconditioner {
    /// The inverse of a diagonal.
    Diagonal(Vec<f64>),
    /// The same, but for some columns the factor of their block.
    Frequent {
        /// Of all columns.
        inverse: Vec<f64>,
        /// Which columns.
        columns: Arc<FrequentColumns>,
        /// Of their block.
        factor: Symmetric,
    },
    /// Cholesky factor.
    Dense(Symmetric),
}

impl Preconditioner {
    /// From `G`, the first `penalised` columns of which are part of the norm.
    pub fn new(gram: &Gram, penalised: usize, c: f64) -> Self {
        match gram {
            Gram::Diagonal(diagonal) => Self::Diagonal(inverse(diagonal, penalised, c, DIAGONAL_MIX)),
            Gram::Frequent { diagonal, columns, block } => Self::Frequent {
                inverse: inverse(diagonal, penalised, c, 1.0),
                factor: factor(block, columns.before(penalised), c),
                columns: Arc::clone(columns),
            },
            Gram::Dense(gram) => Self::Dense(factor(gram, penalised, c)),
        }
    }

    /// Whether it approximates the Hessian as a whole.
    pub fn is_dense(&self) -> bool {
        matches!(self, Self::Dense(_))
    }

    /// `M^-1 r`.
    pub fn solve(&self, r: &[f64]) -> Block<1> {
        let mut out = Block::zeros(r.len());
        self.apply::<1>(r.as_chunks().0, &mut out);
        out
    }

    /// Writes `M^-1 r` in each lane.
    pub fn apply<const L: usize>(&self, r: &[[f64; L]], out: &mut [[f64; L]]) {
        match self {
            Self::Diagonal(inverse) => scale(inverse, r, out),
            Self::Frequent { inverse, columns, factor } => {
                scale(inverse, r, out);
                let mut block = columns.gather(r);
                factor.solve(&mut block);
                columns.scatter(&block, out);
            }
            Self::Dense(factor) => {
                out.copy_from_slice(r);
                factor.solve(out);
            }
        }
    }
}

/// The inverse of `I + C D`, of which the diagonal `D` counts with a share of `mix`, but for the columns past
/// the penalised ones: there `C D`.
fn inverse(diagonal: &[f64], penalised: usize, c: f64, mix: f64) -> Vec<f64> {
    let entry = |(j, d): (usize, &f64)| if j < penalised { 1.0 + mix * c * d } else { c * d };
    diagonal.iter().enumerate().map(entry).map(|d| 1.0 / d).collect_large()
}

/// The factor of `I + C G`, without `I` past the penalised columns.
fn factor(gram: &Symmetric, penalised: usize, c: f64) -> Symmetric {
    let n = gram.n;
    let mut matrix = Symmetric { n, values: gram.values.iter().map(|v| c * v).collect_large() };
    for j in 0..penalised {
        matrix.values[j * n + j] += 1.0;
    }
    matrix.factorise();
    matrix
}

/// Writes the products of the lanes with a diagonal.
fn scale<const L: usize>(diagonal: &[f64], r: &[[f64; L]], out: &mut [[f64; L]]) {
    for_chunks(out, |start, out| {
        for ((z, r), d) in out.iter_mut().zip(&r[start..]).zip(&diagonal[start..]) {
            for l in 0..L {
                z[l] = d * r[l];
            }
        }
    });
}
