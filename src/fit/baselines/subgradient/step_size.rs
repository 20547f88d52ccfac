//! Step lengths `eta_t` of subgradient methods.

use crate::{Error, Result};

/// Fills `eta[k]` with the step length at `t = first + k`, counted from 1.
pub type StepFunction<'a> = dyn Fn(u64, &mut [f64]) -> Result<()> + Sync + 'a;

/// How step lengths follow from the number of the step.
#[derive(Clone, Copy)]
pub enum StepSize<'a> {
    /// `1 / (lambda (t + t_0))` (ShalevShwartz07). Deviation: `t_0` is 0 for the hinge as there; a
    /// loss of curvature `k` at most has `t_0 = k max_i |x_i|^2 / lambda` (a free intercept counts as a
    /// column), without which the first steps overshoot by orders of magnitude.
    Pegasos,
    /// `eta_0 / sqrt(t)`, the step of a convex problem that is not strongly convex.
    Root(f64),
    /// `eta_0` always.
    Constant(f64),
    /// The caller's own.
    Function(&'a StepFunction<'a>),
}

impl StepSize<'_> {
    /// Step lengths from step `first` on. `offset` is the `t_0` of [`StepSize::Pegasos`].
    ///
    /// # Errors
    /// [`Error::Parameter`] for a caller's step that is not a finite number above 0, and the caller's own
    /// errors.
    pub fn fill(&self, first: u64, lambda: f64, offset: f64, eta: &mut [f64]) -> Result<()> {
        let step = |f: &dyn Fn(f64) -> f64, eta: &mut [f64]| {
            eta.iter_mut().enumerate().for_each(|(k, eta)| *eta = f((first + k as u64) as f64));
        };
        match self {
            Self::Pegasos => step(&|t| 1.0 / (lambda * (t + offset)), eta),
            Self::Root(start) => step(&|t| start / t.sqrt(), eta),
            Self::Constant(start) => eta.fill(*start),
            Self::Function(function) => {
                function(first, eta)?;
                if let Some(k) = eta.iter().position(|e| !(e.is_finite() && *e > 0.0)) {
                    let value = format!("{} at step {}", eta[k], first + k as u64);
                    return Err(Error::Parameter {
                        name: "eta",
                        value,
                        rule: "a finite number above 0 at every step",
                    });
                }
            }
        }
        Ok(())
    }
}
