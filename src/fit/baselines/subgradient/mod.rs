//! Subgradient descent in the primal: full batch, mini-batch, stochastic; Pegasos (ShalevShwartz07;
//! SchmidtThieme, slides "Subgradient Descent", "Stochastic Subgradient Descent", "Pegasos").
//!
//! Minimises `lambda/2 |w|^2 + sum_i p_i xi(y_i (w.x_i + b))` with `p_i = c_i / sum c` and
//! `lambda = 1 / sum c`: the objective of the other solvers divided by `sum c`, whose value and dual value
//! the certificate has. A step reads `k` rows drawn with probability `p_i` (all rows, in the batch form) and
//! moves against the subgradient,
//!
//! ```text
//!     w <- (1 - eta lambda) w + eta/k sum y_i s_i x_i,   s_i = -xi'(m_i),   then |w| <= radius by scaling
//! ```
//!
//! * `descent`: the steps, the evaluations and the stops; [`trajectory`]: what stays when the rows change,
//!   for [`crate::blocks::subgradient`];
//! * [`options`]: the settings; [`iterate`]: weights as scale times vector, and their running sum;
//! * [`draw`]: which rows, [`subset`] without replacement; [`step_size`]: the schedules of `eta`;
//! * [`bound`]: the duality gap at any time, from how often each row was short of its margin.
//!
//! **Radius** (optional projection). At the optimum `|w|^2 = sum_i a_i m_i`; for the hinge that is at most
//! `1/lambda` (SchmidtThieme, slide "Maintaining Small Parameters"), for the squared hinge `1/(2 lambda)`.
//! For the logistic loss `lambda/2 |w|^2 <= f(0) = log 2`.
//!
//! **Intercept.** Not penalised: it moves by `eta s^2/k sum y_i s_i`, as if it were the weight of a constant
//! column of height `s` equal to the root mean square norm of a row, but does not shrink. The first steps of
//! Pegasos are of length `1/lambda` and would throw it anywhere, so it is kept within
//! `1 + max_i |x_i| radius`, outside of which no best intercept lies. Whenever the objective is evaluated,
//! and in the result, the intercept is the exact best one for the weights, which costs a sort of `n` numbers.
//!
//! **Averages.** The mean of all iterates, or of those since the last power of two of epochs (a suffix
//! between a third and a half; Rakhlin, Shamir, Sridharan, Making Gradient Descent Optimal, ICML 2012): for a
//! nonsmooth loss the last iterate is worse by a factor of `log t` and a good deal of noise.
//!
//! **Stops.** By the relative duality gap; by the relative change of the objective between two evaluations;
//! by the sum of the lengths of the last steps. A length is that of the whole step, shrinkage and projection
//! included, or that of its loss part, `eta/k |sum y_i s_i x_i|`, as SchmidtThieme, slide "Pegasos", has it
//! ([`StepLength`]). Deviation: the rule counts once there are as many steps as it adds up.
//!
//! **Draws.** With replacement ([`Batch::Rows`]); or a subset of the rows ([`Batch::Subset`]), as
//! SchmidtThieme, slide "Pegasos". Deviation: rows with costs of their own are drawn alike all the same, and
//! slopes are multiplied by `n p_i`, so that the mean of a step stays the subgradient; a row of twice the
//! cost is then not the row twice.
//!
//! **Evaluations** come after 1, 2, 3, 4, 6, 8, 12, 16, ... epochs and cost two passes each, a third with an
//! average.

pub mod bound;
mod descent;
pub mod draw;
pub mod iterate;
pub mod options;
pub mod step_size;
pub mod subset;
pub mod trajectory;
pub mod window;

pub use descent::{Evaluation, PartialProblem, constant_column, is_evaluated_after};
pub use options::{Average, Batch, DEFAULT_TOL, LEAST_DRAWS, StepLength, SubgradientOptions};
pub use step_size::StepSize;
pub use trajectory::SubgradientState;

use crate::Result;
use crate::fit::monitor::Monitor;
use crate::fit::problem::{Problem, Solution};
use crate::loss::{LossKind, with_loss};
use bound::Shares;
use descent::SubgradientDescent;
use trajectory::Trajectory;

/// Descends until a stop. The certificate is what was computed on the way;
/// [`crate::fit::certificate::certify`] proves one.
///
/// # Errors
/// [`crate::Error::Parameter`], [`crate::Error::Cancelled`], [`crate::Error::Overflow`] and those of the
/// caller's step lengths.
pub fn solve(
    problem: &Problem<'_>,
    loss: LossKind,
    options: &SubgradientOptions<'_>,
    monitor: &dyn Monitor,
) -> Result<(Solution, Vec<Evaluation>)> {
    let state = SubgradientState::default();
    with_loss!(loss, loss => SubgradientDescent::new(problem, loss, options, &state, monitor)?.run())
}

/// One pass over further rows, drawn at random: as many as there are, rounded up to whole steps. Costs count
/// relatively within the rows; `lambda` is the caller's.
///
/// # Errors
/// As for [`solve`].
pub fn advance(
    problem: &Problem<'_>,
    loss: LossKind,
    options: &SubgradientOptions<'_>,
    state: &SubgradientState,
    monitor: &dyn Monitor,
) -> Result<SubgradientState> {
    with_loss!(loss, loss => SubgradientDescent::new(problem, loss, options, state, monitor)?.pass())
}

/// Steps over a part of the rows, from a trajectory on; notes visits in the `shares` of these rows, which
/// then all have one.
///
/// # Errors
/// As for [`solve`].
pub fn visit(
    part: &PartialProblem<'_>,
    loss: LossKind,
    options: &SubgradientOptions<'_>,
    at: (Trajectory, Shares),
    monitor: &dyn Monitor,
) -> Result<(Trajectory, Shares)> {
    with_loss!(loss, loss => SubgradientDescent::on_part(part, loss, options, at, monitor).visit(part.draws))
}

#[cfg(test)]
mod tests;
