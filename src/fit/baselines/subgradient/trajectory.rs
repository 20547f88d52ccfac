//! The moving part of a descent, and the scale of its problem: what stays when the rows in memory change.

use super::iterate::Iterate;
use super::options::{Average, StepLength, SubgradientOptions};
use super::window::Window;

use crate::fit::checks::check_length;
use crate::fit::problem::Intercept;
use crate::loss::Loss;
use crate::{Result, memory};

/// What steps need to know of all rows of a problem, whichever are in memory.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// `1 / sum c`.
    pub lambda: f64,
    /// Radius of a ball that holds the optimal weights.
    radius: f64,
    /// `t_0` of the default steps.
    pub offset: f64,
    /// Squared height of the constant column that the intercept moves like.
    height: f64,
    /// Largest size of the intercept.
    reach: f64,
}

impl Scale {
    /// That of rows whose costs add up to `total`, with the largest and the mean of their squared norms.
    pub fn new<L: Loss>(loss: L, intercept: Intercept, total: f64, largest: f64, mean: f64) -> Self {
        let lambda = 1.0 / total;
        let height = if mean > 0.0 { mean } else { 1.0 };
        let radius = (loss.squared_radius() / lambda).sqrt();
        let free_height = if intercept == Intercept::Free { height } else { 0.0 };
        let offset = loss.largest_curvature() * (largest + free_height) / lambda;
        Self { lambda, radius, offset, height, reach: 1.0 + largest.sqrt() * radius }
    }
}

/// The state of a descent, to go on from with other rows.
#[derive(Clone, Debug, Default)]
pub struct SubgradientState {
    /// Last weights.
    pub w: Vec<f64>,
    /// Last intercept.
    pub b: f64,
    /// Sum of the weights in the average.
    pub sum: Vec<f64>,
    /// Sum of the intercepts in the average.
    pub b_sum: f64,
    /// Number of iterates in the average.
    pub counted: u64,
    /// Steps so far.
    pub steps: u64,
}

/// The moving part of a descent: its weights, intercept and sums.
pub struct Trajectory {
    /// Weights, with their sum where the result is an average.
    pub iterate: Iterate,
    /// Intercept.
    pub b: f64,
    b_sum: f64,
    counted: u64,
    /// Steps so far.
    pub t: u64,
    /// Lengths of the last steps.
    pub window: Window,
}

impl Trajectory {
    /// At `state`, which is that of no steps at first.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for a state of another number of columns.
    pub fn new(n_cols: usize, options: &SubgradientOptions<'_>, state: &SubgradientState) -> Result<Self> {
        let zeros = || memory::zeros(n_cols);
        let (w, sum) = if state.steps == 0 {
            (zeros(), zeros())
        } else {
            (memory::copy(&state.w), memory::copy(&state.sum))
        };
        check_length("weights of the state", n_cols, w.len())?;
        check_length("sum of the state", n_cols, sum.len())?;
        Ok(Self {
            iterate: Iterate::new(w, (options.average != Average::None).then_some(sum)),
            b: state.b,
            b_sum: state.b_sum,
            counted: state.counted,
            t: state.steps,
            window: Window::new(options.window),
        })
    }

    /// The same, about to step on `n` rows.
    pub fn on(mut self, n: usize) -> Self {
        self.iterate.begin(n);
        self
    }

    /// The state at which another descent can begin.
    pub fn state(&self) -> SubgradientState {
        SubgradientState {
            w: self.iterate.weights(),
            b: self.b,
            sum: self.iterate.sum(),
            b_sum: self.b_sum,
            counted: self.counted,
            steps: self.t,
        }
    }

    /// The weights to judge, constant column included.
    pub fn result(&self, average: Average) -> Vec<f64> {
        if average == Average::None || self.counted == 0 {
            return self.iterate.weights();
        }
        let mut sum = self.iterate.sum();
        sum.iter_mut().for_each(|w| *w /= self.counted as f64);
        sum
    }

    /// A new suffix begins.
    pub fn restart(&mut self, average: Average) {
        if average == Average::Suffix {
            self.iterate.restart_sum();
            (self.b_sum, self.counted) = (0.0, 0);
        }
    }

    /// Projection, intercept, average and window.
    #[inline(always)]
    pub fn finish(
        &mut self,
        step: SubgradientStep,
        scale: &Scale,
        options: &SubgradientOptions<'_>,
        is_free: bool,
    ) {
        let mut projection = 1.0;
        if options.projects && self.iterate.squared_norm > scale.radius * scale.radius {
            projection = scale.radius / self.iterate.squared_norm.sqrt();
            self.iterate.shrink(projection);
        }
        self.t += 1;
        let b = self.b;
        if is_free {
            self.b = (b + scale.height * step.push).clamp(-scale.reach, scale.reach);
        }
        self.iterate.count();
        self.b_sum += self.b;
        self.counted += 1;
        if self.window.limit > 0.0 && options.step_length == StepLength::Loss {
            self.window.push(step.added.sqrt());
        } else if self.window.limit > 0.0 {
            let rest = projection * step.factor - 1.0;
            let squared = rest * rest * step.before
                + projection * (2.0 * rest * step.product + projection * step.added)
                + (self.b - b).powi(2);
            self.window.push(squared.max(0.0).sqrt());
        }
    }
}

/// What a step did to the weights: `w <- factor w + p`.
pub struct SubgradientStep {
    /// `|w|^2` before.
    pub before: f64,
    /// Of the shrinking.
    pub factor: f64,
    /// `w . p`, with `w` as it was before.
    pub product: f64,
    /// `|p|^2`.
    pub added: f64,
    /// Sum of the coefficients of the rows in `p`.
    pub push: f64,
}
