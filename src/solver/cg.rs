//! Preconditioned conjugate gradient for the Newton direction.
//!
//! Approximates the minimiser of the model `q(s) = g.s + 1/2 s'Hs` and stops when the model hardly falls any more (GalliLin21,
//! section 5: a residual-based stop is misled by the scale of ill-conditioned problems): after step `j`,
//! `j (q_j - q_{j-1}) / q_j <= accuracy`.

use super::sweep::{dot, for_chunks};

/// Past this many steps rounding has destroyed the conjugacy; the outer method does better with a new model.
const MAX_STEPS: usize = 1000;

/// Vectors of one system, kept between systems of the same size.
#[derive(Default)]
pub struct ConjugateGradient {
    residual: Vec<f64>,
    direction: Vec<f64>,
    product: Vec<f64>,
}

/// Step `s`, `H s` follows by recurrence and is not needed by callers.
impl ConjugateGradient {
    /// Overwrites `step` with an approximate solution of `H s = -g` and returns the number of products with `H`.
    ///
    /// `multiply(p, out)` writes `H p`, or returns an error that is passed on; `preconditioner` is a positive diagonal.
    ///
    /// # Errors
    /// Those of `multiply`.
    pub fn solve<E>(
        &mut self,
        gradient: &[f64],
        preconditioner: &[f64],
        accuracy: f64,
        step: &mut [f64],
        mut multiply: impl FnMut(&[f64], &mut [f64]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let n = gradient.len();
        step.fill(0.0);
        for v in [&mut self.residual, &mut self.direction, &mut self.product] {
            v.resize(n, 0.0);
        }
        let (residual, direction, product) = (&mut self.residual, &mut self.direction, &mut self.product);
        for_chunks(residual, |start, r| {
            for (k, r) in r.iter_mut().enumerate() {
                *r = -gradient[start + k];
            }
        });
        for_chunks(direction, |start, p| {
            for (k, p) in p.iter_mut().enumerate() {
                *p = -gradient[start + k] / preconditioner[start + k];
            }
        });
        let mut rz = dot(residual, direction);
        let mut model = 0.0;
        for j in 1..=MAX_STEPS.min(n.max(1) * 2) {
            multiply(direction, product)?;
            let curvature = dot(direction, product);
            if !(curvature > 0.0 && rz > 0.0) {
                return Ok(j);
            }
            let alpha = rz / curvature;
            for_chunks(step, |start, s| {
                for (k, s) in s.iter_mut().enumerate() {
                    *s += alpha * direction[start + k];
                }
            });
            for_chunks(residual, |start, r| {
                for (k, r) in r.iter_mut().enumerate() {
                    *r -= alpha * product[start + k];
                }
            });
            let fall = -0.5 * alpha * rz;
            model += fall;
            if j as f64 * fall >= accuracy * model {
                return Ok(j);
            }
            // `product` now holds the preconditioned residual.
            for_chunks(product, |start, z| {
                for (k, z) in z.iter_mut().enumerate() {
                    *z = residual[start + k] / preconditioner[start + k];
                }
            });
            let rz_new = dot(residual, product);
            let beta = rz_new / rz;
            rz = rz_new;
            for_chunks(direction, |start, p| {
                for (k, p) in p.iter_mut().enumerate() {
                    *p = product[start + k] + beta * *p;
                }
            });
        }
        Ok(MAX_STEPS.min(n.max(1) * 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solves_a_small_system_exactly() {
        let h = [[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 1000.0]];
        let gradient = [1.0, -2.0, 50.0];
        let preconditioner = [4.0, 3.0, 1000.0];
        let mut step = [0.0; 3];
        let products = ConjugateGradient::default()
            .solve(&gradient, &preconditioner, 1e-16, &mut step, |p, out| {
                for (o, row) in out.iter_mut().zip(&h) {
                    *o = dot(row, p);
                }
                Ok::<(), ()>(())
            })
            .unwrap();
        assert!(products <= 6);
        for (row, g) in h.iter().zip(gradient) {
            assert!((dot(row, &step) + g).abs() < 1e-9);
        }
    }
}
