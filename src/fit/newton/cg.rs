//! Preconditioned conjugate gradient for the Newton directions of several lanes side by side.
//!
//! Approximates in each lane the minimiser of the model `q(s) = g.s + 1/2 s'Hs`. With the diagonal
//! preconditioner a lane is done when its model hardly falls any more, after step `j` when
//! `j (q_j - q_{j-1}) / q_j <= accuracy` (GalliLin21, section 5: a residual-based stop is misled by the scale
//! of ill-conditioned problems). With a dense preconditioner the residual in its norm is close to the error,
//! and a lane is done as soon as that has fallen by `accuracy`: one product less. Either way a lane is done
//! where the residual, which is the gradient after a full step if the model holds, is small enough for the
//! caller. A lane that is done stays where it is until all are.

use super::preconditioner::Preconditioner;
use crate::fit::sweep::{for_chunks, sum_entries};
use crate::matrix::lanes::Block;

/// Past this many steps rounding has destroyed the conjugacy; the outer method does better with a new model.
const MAX_STEPS: usize = 1000;

/// When a solution is good enough.
pub struct CgLimits<const L: usize> {
    /// See the module's description.
    pub accuracy: [f64; L],
    /// Squared norm of the residual,
    pub squared_residual: [f64; L],
    /// or that in units of how far the model has fallen, which is about the distance to its minimum at the
    /// start; 0 if it is not to count.
    pub residual_per_fall: f64,
    /// Number of products, at least one.
    pub products: usize,
    /// How far each model may fall; beyond, no lane is followed any further.
    pub fall: [f64; L],
}

/// Vectors of the systems, kept from one Newton step to the next.
pub struct ConjugateGradient<const L: usize> {
    residual: Block<L>,
    direction: Block<L>,
    product: Block<L>,
}

/// How a solution ended.
pub struct CgOutcome<const L: usize> {
    /// Products with the matrix.
    pub products: usize,
    /// Length of the last step per lane.
    pub last_length: [f64; L],
    /// How far the models have fallen.
    pub fall: [f64; L],
}

impl<const L: usize> ConjugateGradient<L> {
    /// Room for systems of `n` unknowns.
    pub fn new(n: usize) -> Self {
        Self { residual: Block::zeros(n), direction: Block::zeros(n), product: Block::zeros(n) }
    }

    /// Overwrites `step` with approximate solutions of `H s = -g`; lanes that are not `running` get zeros.
    ///
    /// `multiply(p, length, out)` writes `H p` and is given the length of the step before, if there was one,
    /// by which the caller can build up products with the solution; it returns errors that are passed on.
    ///
    /// # Errors
    /// Those of `multiply`.
    pub fn solve<E>(
        &mut self,
        gradient: impl Fn(usize) -> [f64; L] + Sync,
        preconditioner: &Preconditioner,
        limits: &CgLimits<L>,
        mut running: [bool; L],
        step: &mut Block<L>,
        mut multiply: impl FnMut(&[[f64; L]], Option<&[f64; L]>, &mut Block<L>) -> Result<(), E>,
    ) -> Result<CgOutcome<L>, E> {
        let n = step.len();
        let Self { residual, direction, product } = self;
        step.fill([0.0; L]);
        for_chunks(residual, |start, r| {
            for (k, r) in r.iter_mut().enumerate() {
                let g = gradient(start + k);
                for l in 0..L {
                    r[l] = if running[l] { -g[l] } else { 0.0 };
                }
            }
        });
        preconditioner.apply(residual, direction);
        let [mut rz] = sum_entries(n, |k| [times(&residual[k], &direction[k])]);
        let first = rz;
        let (mut model, mut length) = ([0.0; L], [0.0; L]);
        let limit = MAX_STEPS.min(2 * n.max(1)).min(limits.products.max(1));
        for j in 1..=limit {
            multiply(direction, (j > 1).then_some(&length), product)?;
            let [curvature] = sum_entries(n, |k| [times(&direction[k], &product[k])]);
            for l in 0..L {
                running[l] &= curvature[l] > 0.0 && rz[l] > 0.0;
                length[l] = if running[l] { rz[l] / curvature[l] } else { 0.0 };
            }
            for_chunks(step, |start, s| add_scaled(s, &length, &direction[start..]));
            let back = length.map(|a| -a);
            for_chunks(residual, |start, r| add_scaled(r, &back, &product[start..]));
            // `product` now holds the preconditioned residual.
            preconditioner.apply(residual, product);
            let [next, squared] =
                sum_entries(n, |k| [times(&residual[k], &product[k]), times(&residual[k], &residual[k])]);
            let mut beta = [0.0; L];
            for l in 0..L {
                let fall = -0.5 * length[l] * rz[l];
                model[l] += fall;
                let accuracy = limits.accuracy[l];
                let is_done = if preconditioner.is_dense() {
                    next[l] <= accuracy * accuracy * first[l]
                } else {
                    j as f64 * fall >= accuracy * model[l]
                };
                let enough = limits.squared_residual[l].max(-limits.residual_per_fall * model[l]);
                running[l] &= !is_done && squared[l] > enough;
                beta[l] = if running[l] { next[l] / rz[l] } else { 0.0 };
            }
            rz = next;
            let fall = model.map(|model| -model);
            let is_too_far = (0..L).any(|l| fall[l] > limits.fall[l]);
            if j == limit || running == [false; L] || is_too_far {
                return Ok(CgOutcome { products: j, last_length: length, fall });
            }
            for_chunks(direction, |start, p| {
                for (p, z) in p.iter_mut().zip(&product[start..]) {
                    for l in 0..L {
                        p[l] = z[l] + beta[l] * p[l];
                    }
                }
            });
        }
        Ok(CgOutcome { products: 0, last_length: length, fall: [0.0; L] })
    }
}

#[inline(always)]
fn times<const L: usize>(a: &[f64; L], b: &[f64; L]) -> [f64; L] {
    std::array::from_fn(|l| a[l] * b[l])
}

fn add_scaled<const L: usize>(x: &mut [[f64; L]], scale: &[f64; L], y: &[[f64; L]]) {
    for (x, y) in x.iter_mut().zip(y) {
        for l in 0..L {
            x[l] += scale[l] * y[l];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::newton::cholesky::Symmetric;
    use crate::fit::newton::preconditioner::Gram;

    const H: [[f64; 3]; 3] = [[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1000.0]];

    fn solve(preconditioner: &Preconditioner) -> (Block<2>, CgOutcome<2>) {
        let gradient = [[1.0, 0.5], [-2.0, 3.0], [50.0, 7.0]];
        let (mut step, mut tracked) = (Block::zeros(3), [[0.0; 2]; 3]);
        let mut last = [[0.0; 2]; 3];
        let mut cg = ConjugateGradient::new(3);
        let limits = CgLimits {
            accuracy: [1e-14, 0.0],
            squared_residual: [0.0; 2],
            residual_per_fall: 0.0,
            products: usize::MAX,
            fall: [f64::INFINITY; 2],
        };
        let outcome = cg
            .solve(
                |k| gradient[k],
                preconditioner,
                &limits,
                [true, false],
                &mut step,
                |p, length, out| {
                    for (i, row) in H.iter().enumerate() {
                        out[i] = std::array::from_fn(|l| (0..3).map(|j| row[j] * p[j][l]).sum());
                        for l in 0..2 {
                            tracked[i][l] += length.map_or(0.0, |length| length[l]) * last[i][l];
                        }
                        last[i] = p[i];
                    }
                    Ok::<(), ()>(())
                },
            )
            .unwrap();
        for i in 0..3 {
            let residual: f64 = (0..3).map(|j| H[i][j] * step[j][0]).sum::<f64>() + gradient[i][0];
            assert!(residual.abs() < 1e-9);
            assert!((tracked[i][0] + outcome.last_length[0] * last[i][0] - step[i][0]).abs() < 1e-12);
            assert_eq!(step[i][1], 0.0);
        }
        (step, outcome)
    }

    #[test]
    fn solves_running_lanes_and_leaves_the_others() {
        let (_, outcome) = solve(&Preconditioner::new(&Gram::Diagonal(vec![3.0, 2.0, 999.0]), 3, 1.0));
        assert!(outcome.products <= 6);
    }

    #[test]
    fn exact_preconditioner_takes_one_product() {
        let mut values: Vec<f64> = H.concat();
        for j in 0..3 {
            values[j * 3 + j] -= 1.0;
        }
        let (_, outcome) = solve(&Preconditioner::new(&Gram::Dense(Symmetric { n: 3, values }), 3, 1.0));
        assert_eq!(outcome.products, 1);
    }
}
