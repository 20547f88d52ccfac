//! The step by two products that leaves the least residual in the plain norm, before an epoch of descent.
//!
//! The slopes linearised along a step `s` have the weights `w + s - r` with `r` the residual of `H s = -g`,
//! and `1/2 |r|^2` of their gap is its doing ([`super::dual_step`]). The conjugate gradient makes `r` small
//! in the norm of `H^-1`; its plain norm may rise for long. Here the step is therefore the combination of two
//! directions with the least `|r|`, which never rises: `M^-1` times downhill, and `M^-1` times the residual
//! that the first leaves (GMRES with a right preconditioner, after two steps). It takes away what is large
//! and shared by frequent columns, an epoch what is large beside it: each leaves most of what the other
//! takes. flights, no intercept, gap over distance at the end of a fit: slopes, an epoch, two, four, this
//! step, and an epoch from it:
//!
//! ```text
//! squared hinge, C = 0.25, tol 1e-1     1,674   131   106    77   103    9.7
//! squared hinge, C = 1,    tol 1e-2     1,453    37    30    26   124    8.1
//! squared hinge, C = 16,   tol 1e-2     3,166    53    36    27   337   30
//! logistic,      C = 4,    tol 1e-3       341    20     -     -    29    3.8
//! logistic,      C = 1,    tol 1e-4        90    21    13     6.9  18    4.8
//! ```
//!
//! With a free intercept the block is made anew before: the intercept and all levels of a field nearly
//! cancel, and what an older block leaves of that is large. C = 16, squared hinge, tol 1e-1 and 1e-2: 33 and
//! 80 at the end instead of 100 and 185; without an intercept 44 and 34 instead of 46 and 35, for which it is
//! not worth a reading. Rows far away descend on parts of their own, and an epoch leaves more: without an
//! intercept, tol 1e-2, over 2 shards 46 instead of 192 after a question more, over 8 99 after 60 questions
//! instead of 17 after 160.
//!
//! Tried there: one product instead of two: 13, 8.1, 34, 22 and 8.7; three: 5.9, 6.8, 30, 3.6 and 4.7. Two
//! of the conjugate gradient: without an epoch 5,008, 6,201, 2,564, 51 and 321. After an epoch instead of
//! before it, in the dual, as a conjugate gradient with `D - D X M^-1 X'D` for a preconditioner: nothing.
//! The best combination of the slopes and the points after one, two and three epochs: hardly better than
//! the last. A free intercept as a direction of its own, which takes a product: as good as a third one.

use super::factorisation::Form;
use super::row_state::Passes;
use super::{Newton, add_norm};
use crate::Result;
use crate::fit::sweep::dot;
use crate::matrix::lanes::Block;
use crate::memory::CollectLarge;

/// A step.
pub struct Approach {
    /// The step,
    pub step: Block<1>,
    /// and its lengths along its directions: rows with curvature know the first one's decision values as
    /// those of the step that is being found, the second one's as those of the last product.
    pub lengths: [f64; 2],
    /// The weights of the slopes linearised along it, but for what the borders of the box cut off.
    pub w: Vec<f64>,
    /// Rows read.
    pub read: usize,
}

impl<R: Passes<1>> Newton<'_, R, 1> {
    /// The step from the evaluated point, for `C = 1`; none without a preconditioner. The weights stay where
    /// they are.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`], and those of the place where the rows are.
    pub fn approach(&mut self) -> Result<Option<Approach>> {
        let Some(mut kept) = self.preconditioner.take() else { return Ok(None) };
        if self.form == Form::Frequent && (self.is_free || self.are_far) {
            self.gram = None;
            kept = self.preconditioner(1.0)?;
        }
        let downhill = self.downhill(1.0);
        let mut step = kept.matrix.solve(&downhill);
        let (first, read) = self.times_hessian(&step, None)?;
        let first = first.as_flattened();
        let squared = dot(first, first);
        let alone = share(dot(&downhill, first), squared);
        let residual = minus(&downhill, alone, first);
        let direction = kept.matrix.solve(&residual);
        self.preconditioner = Some(kept);
        let (second, more) = self.times_hessian(&direction, Some(&[1.0]))?;
        let second = second.as_flattened();
        let shared = share(dot(first, second), squared);
        let beyond = minus(second, shared, first);
        let length = share(dot(&residual, &beyond), dot(&beyond, &beyond));
        let lengths = [alone - length * shared, length];
        let mut w = minus(&residual, length, &beyond);
        let n_penalised = self.penalised().end;
        for (j, (s, p)) in step.iter_mut().zip(direction.iter()).enumerate() {
            *s = [lengths[0] * s[0] + lengths[1] * p[0]];
            w[j] += if j < n_penalised { self.w[j][0] + s[0] } else { 0.0 };
        }
        Ok(Some(Approach { step, lengths, w, read: read + more }))
    }

    /// The product of the Hessian and a direction, and how many rows were read; `length` is for
    /// [`Passes::multiply`].
    fn times_hessian(
        &mut self,
        direction: &Block<1>,
        length: Option<&[f64; 1]>,
    ) -> Result<(Block<1>, usize)> {
        let mut product = Block::zeros(direction.len());
        let read = self.rows.multiply(direction, length, &mut product)?;
        self.monitor.poll()?;
        add_norm(direction, self.penalised().end, 1.0, &mut product);
        Ok((product, read))
    }
}

/// `x - length * y`.
fn minus(x: &[f64], length: f64, y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x - length * y).collect_large()
}

/// `part / whole`; nothing of nothing.
fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use crate::fit::Silent;
    use crate::fit::newton::InMemory;
    use crate::fit::objective::Weighted;
    use crate::fit::stop::NewtonStop;
    use crate::fit::waves::Waves;
    use crate::loss::{Logistic, Loss, SquaredHinge};
    use crate::matrix::Rows;

    /// The residual of the step is at right angles to the products of both directions with a Hessian summed
    /// plainly, and shorter than the gradient.
    fn check<T: Loss>(waves: &Waves, loss: T, intercept: usize) {
        let rows = waves.rows();
        let problem = waves.problem(&rows, intercept);
        let mut newton = InMemory::<1>::new(&problem, 1, true, &Silent);
        let objective = Weighted { loss, y: problem.y, cost: problem.cost };
        assert!(newton.approach().unwrap().is_none());
        newton.minimise(&objective, 1.0, &NewtonStop::RelativeGap(1e-12), 1).unwrap();
        newton.evaluate(&objective).unwrap();
        let downhill = newton.downhill(1.0);
        let found = newton.approach().unwrap().unwrap();
        let design = problem.design(newton.bias());
        let (n, penalised) = (problem.y.len(), newton.penalised().end);
        assert_eq!(found.read, 2 * newton.rows.curvature.iter().filter(|bend| **bend != [0.0]).count());
        let hessian_times = |p: &[f64]| {
            let mut out = p.to_vec();
            out[penalised..].fill(0.0);
            for i in 0..n {
                design.add_scaled(i, newton.rows.curvature[i][0] * design.dot(i, p), &mut out);
            }
            out
        };
        let matrix = &newton.preconditioner.as_ref().unwrap().matrix;
        let first = matrix.solve(&downhill);
        let first = first.as_flattened();
        let product = hessian_times(first);
        let plain = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
        let alone = plain(&downhill, &product) / plain(&product, &product);
        let residual: Vec<f64> = downhill.iter().zip(&product).map(|(r, q)| r - alone * q).collect();
        let second = matrix.solve(&residual);
        let second = second.as_flattened();
        let [a, b] = found.lengths;
        let step: Vec<f64> = first.iter().zip(second).map(|(p, q)| a * p + b * q).collect();
        for i in (0..n).filter(|i| newton.rows.curvature[*i] != [0.0]) {
            let moved = a * newton.rows.step_z[i][0] + b * newton.rows.product_z[i][0];
            let expected = design.dot(i, &step);
            assert!((moved - expected).abs() <= 1e-9 * (1.0 + expected.abs()), "{moved} {expected}");
        }
        for (j, product) in hessian_times(&step).iter().enumerate() {
            assert!((found.step[j][0] - step[j]).abs() <= 1e-9 * (1.0 + step[j].abs()));
            let norm = if j < penalised { step[j] } else { 0.0 };
            let expected = -newton.h[j][0] - (product - norm);
            assert!((found.w[j] - expected).abs() <= 1e-9 * (1.0 + expected.abs()), "{j} {expected}");
        }
        let left: Vec<f64> = downhill.iter().zip(hessian_times(&step)).map(|(r, q)| r - q).collect();
        let length = |x: &[f64]| plain(x, x).sqrt();
        for product in [&product, &hessian_times(second)] {
            let cosine = plain(&left, product) / (length(&downhill) * length(product));
            assert!(cosine.abs() < 1e-7, "{cosine}");
        }
        assert!(length(&left) < length(&downhill));
    }

    #[test]
    fn residuals_are_the_least_of_two_directions() {
        let waves = Waves::new(900, 14, 4.0, 3);
        for intercept in 0..3 {
            check(&waves, SquaredHinge, intercept);
            check(&waves, Logistic, intercept);
        }
    }
}
