//! The matrix that preconditions the conjugate gradient: the mean of the Hessian's diagonal blocks, one for
//! all classes, or a share of its diagonal.

use super::passes::Setup;
use super::softmax::{Lines, dot};
use super::source::SoftmaxPasses;
use super::strips::Strips;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::newton::cholesky::Symmetric;
use crate::fit::newton::hessian::curvature_matrix;
use crate::fit::newton::passes::squares;
use crate::fit::newton::preconditioner::Gram;
use crate::fit::sweep::{Sweep, for_chunks};
use crate::{Result, memory};

/// Share of the true diagonal, as in [`crate::fit::newton`].
const DIAGONAL_MIX: f64 = 0.01;

/// Price of the blocks of all classes, in products with the Hessian, up to which each class gets its own.
const CHEAP: f64 = 12.0;

enum Inverse {
    None,
    Diagonal(Vec<f64>),
    /// One for all classes.
    Shared(Symmetric),
    /// One for each class.
    Blocks(Vec<Symmetric>),
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Diagonal,
    Shared,
    Blocks,
}

/// A preconditioner and how often it is made.
pub struct ClassPreconditioner {
    inverse: Inverse,
    kind: Kind,
    /// Products with the Hessian that making it takes the time of.
    price: f64,
    /// Products since it was made.
    products: f64,
}

impl ClassPreconditioner {
    /// None yet.
    pub fn new(rows: &impl SoftmaxPasses) -> Self {
        let n_classes = rows.shape().n_classes;
        let lines = n_classes.div_ceil(LINE) as f64;
        let dense = rows.factorisation().filter(|f| f.is_worth_it).map(|f| f.passes / lines);
        let (kind, price) = match dense {
            Some(price) if n_classes as f64 * price <= CHEAP => (Kind::Blocks, n_classes as f64 * price),
            Some(price) => (Kind::Shared, price),
            None => (Kind::Diagonal, 1.0),
        };
        Self { inverse: Inverse::None, kind, price, products: 0.0 }
    }

    /// None yet, to be made anew for each step, one for all classes: where all that a fit knows between two
    /// steps must be its weights, as in a checkpoint.
    pub fn fresh(rows: &impl SoftmaxPasses) -> Self {
        let is_dense = rows.factorisation().is_some_and(|f| f.is_worth_it);
        let kind = if is_dense { Kind::Shared } else { Kind::Diagonal };
        Self { inverse: Inverse::None, kind, price: 0.0, products: 0.0 }
    }

    /// Whether it approximates the Hessian as a whole.
    pub fn is_dense(&self) -> bool {
        matches!(self.inverse, Inverse::Shared(_) | Inverse::Blocks(_))
    }

    /// Notes the products of a direction.
    pub fn used(&mut self, products: usize) {
        self.products += products as f64;
    }

    /// Makes it anew for the probabilities at the present weights, unless the last one has not paid yet.
    ///
    /// # Errors
    /// Those of the rows.
    pub fn update(&mut self, rows: &mut impl SoftmaxPasses, w: &Strips) -> Result<()> {
        if !matches!(self.inverse, Inverse::None) && self.products < self.price {
            return Ok(());
        }
        self.products = 0.0;
        // The room of the old one is needed for the new one.
        self.inverse = Inverse::None;
        let (n_classes, penalised) = (rows.shape().n_classes, rows.shape().penalised());
        self.inverse = match self.kind {
            Kind::Blocks => {
                let mut blocks = Vec::with_capacity(n_classes);
                for class in 0..n_classes {
                    if let Gram::Dense(matrix) = rows.curvature(w, Some(class), true)? {
                        blocks.push(factor(matrix, penalised));
                    }
                }
                Inverse::Blocks(blocks)
            }
            Kind::Shared | Kind::Diagonal => match rows.curvature(w, None, self.kind == Kind::Shared)? {
                Gram::Dense(matrix) => Inverse::Shared(factor(matrix, penalised)),
                Gram::Diagonal(mut diagonal) | Gram::Frequent { mut diagonal, .. } => {
                    for (j, d) in diagonal.iter_mut().enumerate() {
                        let entry = if j < penalised { 1.0 + DIAGONAL_MIX * *d } else { *d };
                        *d = if entry > 0.0 { 1.0 / entry } else { 1.0 };
                    }
                    Inverse::Diagonal(diagonal)
                }
            },
        };
        Ok(())
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
            Inverse::Shared(factor) => {
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
            Inverse::Blocks(blocks) => {
                for (class, factor) in blocks.iter().enumerate() {
                    let mut numbers = r.class(class);
                    factor.solve::<1>(numbers.as_chunks_mut().0);
                    out.set_class(class, &numbers);
                }
            }
        }
    }
}

/// The factor of `I + G`, the identity for so many columns.
fn factor(mut matrix: Symmetric, penalised: usize) -> Symmetric {
    let order = matrix.n;
    for j in 0..penalised {
        matrix.values[j * order + j] += 1.0;
    }
    matrix.factorise();
    matrix
}

/// `sum_i c_i g_i x_i x_i'` or its diagonal, with `g_i = p_ik (1 - p_ik)` of a class or their mean.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn gram(
    setup: &Setup<'_>,
    p: &Lines,
    rest: &[f64],
    class: Option<usize>,
    is_dense: bool,
) -> Result<Gram> {
    let curvature = match class {
        Some(class) => curvature_of(setup, p, rest, class),
        None => mean_curvature(setup, p, rest),
    };
    let mut sweep = Sweep::<1>::new(setup.design, setup.monitor);
    let gram = if is_dense {
        Gram::Dense(curvature_matrix(&sweep, &curvature))
    } else {
        Gram::Diagonal(squares(&mut sweep, &curvature))
    };
    setup.poll()?;
    Ok(gram)
}

/// `c_i` times the mean over the classes of `p_ik (1 - p_ik)`.
fn mean_curvature(setup: &Setup<'_>, p: &Lines, rest: &[f64]) -> Vec<f64> {
    let (lines, k) = (setup.lines, setup.problem.n_classes as f64);
    let mut curvature: Vec<f64> = memory::zeros(setup.n_rows());
    for_chunks(&mut curvature, |start, out| {
        for (out, i) in out.iter_mut().zip(start..) {
            let p = &p[i * lines..][..lines];
            let own = p.as_flattened()[setup.problem.class[i] as usize];
            // The own class's part without cancellation.
            let others = rest[i] - (dot(p, p) - own * own);
            *out = setup.problem.cost[i] * (own * rest[i] + others.max(0.0)) / k;
        }
    });
    curvature
}

/// `c_i p_ik (1 - p_ik)` of one class.
fn curvature_of(setup: &Setup<'_>, p: &Lines, rest: &[f64], class: usize) -> Vec<f64> {
    let lines = setup.lines;
    let mut curvature: Vec<f64> = memory::zeros(setup.n_rows());
    for_chunks(&mut curvature, |start, out| {
        for (out, i) in out.iter_mut().zip(start..) {
            let p = p[i * lines..][..lines].as_flattened()[class];
            let other = if setup.problem.class[i] as usize == class { rest[i] } else { 1.0 - p };
            *out = setup.problem.cost[i] * p * other;
        }
    });
    curvature
}
