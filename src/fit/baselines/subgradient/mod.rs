//! Subgradient descent in the primal: full batch, mini-batch, stochastic; Pegasos (ShalevShwartz07).
//!
//! Minimises `lambda/2 |w|^2 + sum_i p_i xi(y_i (w.x_i + b))` with `p_i = c_i / sum c` and
//! `lambda = 1 / sum c`: the objective of the other solvers divided by `sum c`, whose value and dual value
//! the certificate has. A step reads `k` rows drawn with probability `p_i` (all rows, in the batch form) and
//! moves against the subgradient,
//!
//! ```text
//!     w <- (1 - eta lambda) w + eta/k sum y_i s_i x_i,   s_i = -xi'(m_i),       then |w| <= radius by scaling
//! ```
//!
//! * `descent`: the steps, the looks and the stops; [`walk`]: what stays when the rows change, for
//!   [`crate::blocks::subgradient`];
//! * [`iterate`]: weights as scale times vector, and their running sum;
//! * [`draw`]: which rows; [`step_size`]: the schedules of `eta`;
//! * [`bound`]: the duality gap at any time, from how often each row was short of its margin.
//!
//! **Radius** (optional projection). At the optimum `|w|^2 = sum_i a_i m_i`; for the hinge that is at most
//! `1/lambda` (the paper's), for the squared hinge `1/(2 lambda)`. For the logistic loss
//! `lambda/2 |w|^2 <= f(0) = log 2`.
//!
//! **Intercept.** Not penalised: it moves by `eta s^2/k sum y_i s_i`, as if it were the weight of a constant
//! column of height `s` equal to the root mean square norm of a row, but does not shrink. The first steps of
//! Pegasos are of length `1/lambda` and would throw it anywhere, so it is kept within
//! `1 + max_i |x_i| radius`, outside of which no best intercept lies. Whenever the objective is looked at,
//! and in the result, the intercept is the exact best one for the weights, which costs a sort of `n` numbers.
//!
//! **Averages.** The mean of all iterates, or of those since the last power of two of epochs (a suffix
//! between a third and a half; Rakhlin, Shamir, Sridharan, Making Gradient Descent Optimal, ICML 2012): for a
//! nonsmooth loss the last iterate is worse by a factor of `log t` and a good deal of noise.
//!
//! **Stops.** By the relative duality gap; by the relative change of the objective between two looks; by the
//! sum of the lengths of the last steps. Looks are taken after 1, 2, 3, 4, 6, 8, 12, 16, ... epochs and cost
//! two passes each, a third with an average.

pub mod bound;
mod descent;
pub mod draw;
pub mod iterate;
pub mod step_size;
pub mod walk;
pub mod window;

use crate::fit::monitor::Monitor;
use crate::fit::problem::{Problem, Solution};
use crate::loss::{LossKind, with_loss};
use crate::{Error, Result};
use bound::Shares;
use descent::Descent;
pub use descent::{LEAST_DRAWS, constant_column, is_look};
pub use step_size::StepSize;
use walk::{Scale, Walk};

/// Relative duality gap at which a descent stops.
pub const DEFAULT_TOL: f64 = 1e-3;
/// How many rows a step reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// This many, drawn at random.
    Rows(usize),
    /// Every row once.
    All,
}

/// Which weights are the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Average {
    /// The last iterate.
    None,
    /// The mean of all iterates.
    All,
    /// The mean of the last third to half of the iterates.
    Suffix,
}

/// Settings of a descent.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Rows per step.
    pub batch: Batch,
    /// Step lengths.
    pub step_size: StepSize<'a>,
    /// Whether weights are kept in the ball that holds the optimum.
    pub projects: bool,
    /// Which weights are the result.
    pub average: Average,
    /// Relative duality gap at which to stop.
    pub tol: f64,
    /// Relative change of the objective between two looks at which to stop; 0 for never.
    pub objective_tol: f64,
    /// Number of steps and sum of their lengths at which to stop; a sum of 0 for never.
    pub window: (usize, f64),
    /// Epochs at most.
    pub max_epochs: usize,
    /// Seed of the draws.
    pub seed: u64,
}

impl Options<'_> {
    /// Checks the size of the batch for a problem of `n` rows.
    ///
    /// # Errors
    /// [`Error::Parameter`].
    pub fn check(&self, n: usize) -> Result<()> {
        match self.batch {
            Batch::Rows(k) if !(1..=n.max(LEAST_DRAWS)).contains(&k) => {
                let rule = "at least 1, and at most the number of rows or 1024";
                Err(Error::Parameter { name: "batch_size", value: k.to_string(), rule })
            }
            _ => Ok(()),
        }
    }
}

/// A look at the objective.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Epochs so far.
    pub epoch: usize,
    /// Steps so far.
    pub steps: u64,
    /// Seconds by the monitor's clock.
    pub seconds: f64,
    /// Objective, in the units of the certificate.
    pub primal: f64,
    /// Best lower bound so far.
    pub dual: f64,
    /// `|w|` of the last iterate.
    pub norm: f64,
}

/// Where a descent is, to go on from with other rows.
#[derive(Clone, Debug, Default)]
pub struct State {
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

/// Descends until a stop. The certificate is what was computed on the way;
/// [`crate::fit::certificate::certify`] proves one.
///
/// # Errors
/// [`crate::Error::Parameter`], [`crate::Error::Cancelled`], [`crate::Error::Overflow`] and those of the
/// caller's step lengths.
pub fn solve(
    problem: &Problem<'_>,
    loss: LossKind,
    options: &Options<'_>,
    monitor: &dyn Monitor,
) -> Result<(Solution, Vec<Look>)> {
    with_loss!(loss, loss => Descent::new(problem, loss, options, &State::default(), monitor)?.run())
}

/// One pass over further rows, drawn at random: as many as there are, rounded up to whole steps. Costs count
/// relatively within the rows; `lambda` is the caller's.
///
/// # Errors
/// As for [`solve`].
pub fn advance(
    problem: &Problem<'_>,
    loss: LossKind,
    options: &Options<'_>,
    state: &State,
    monitor: &dyn Monitor,
) -> Result<State> {
    with_loss!(loss, loss => Descent::new(problem, loss, options, state, monitor)?.pass())
}

/// A part of the rows of a problem, to be stepped over.
pub struct Part<'a> {
    /// These rows.
    pub problem: Problem<'a>,
    /// The scale of the whole problem.
    pub scale: Scale,
    /// Rows to be drawn.
    pub draws: usize,
    /// Which random numbers.
    pub number: u64,
}

/// Steps over a part of the rows, from where `walk` is; notes visits in the `shares` of these rows, which
/// then all have one.
///
/// # Errors
/// As for [`solve`].
pub fn visit(
    part: &Part<'_>,
    loss: LossKind,
    options: &Options<'_>,
    at: (Walk, Shares),
    monitor: &dyn Monitor,
) -> Result<(Walk, Shares)> {
    with_loss!(loss, loss => Descent::on_part(part, loss, options, at, monitor).visit(part.draws))
}

#[cfg(test)]
mod tests;
