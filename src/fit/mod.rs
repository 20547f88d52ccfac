//! Solvers: pure functions from a [`Problem`] (and an optional [`Start`]) to a [`Solution`].
//!
//! A solver has no globals, no printing and no hidden randomness; progress, time limits and interrupts pass
//! through the [`Monitor`]. The number of threads never changes a bit of the result, and neither does time.
//! One solver looks at a clock all the same: the threads of [`crammer_singer`] measure how long they wait for
//! each other, and one goes on alone where that is long; every number stays the same, whoever computes it.
//!
//! * [`problem`]: a problem, its start, its solution; [`params`]: what is asked for; [`monitor`]: progress
//!   and interrupts;
//! * [`routes`]: the measured constants that choose between solvers, in one table;
//! * [`auto`]: which solver for which shape and loss, and how a fit is proved;
//! * [`dual`]: dual coordinate descent; [`newton`]: truncated Newton in the primal, the hinge included;
//! * [`baselines`]: solvers for comparison;
//! * [`crammer_singer`]: the multi-class problem of Crammer and Singer, all classes at once;
//! * [`multinomial`]: multinomial logistic regression, all classes at once;
//! * [`penalised`]: absolute values of the weights, bounds, factors for columns;
//! * [`objective`]: the row terms of an objective; [`stop`]: when a Newton fit ends; [`intercept`]: exact
//!   minimisation over the intercept alone;
//! * [`sweep`]: parallel passes over the rows with a fixed order of summation; [`together`]: loops over
//!   several rows at once;
//! * [`certificate`]: what is proved of a solution on given rows, with [`compensated`] sums; [`presolved`]: a
//!   fit by way of packed columns.

pub mod auto;
pub mod baselines;
pub mod certificate;
mod checks;
pub mod compensated;
pub mod crammer_singer;
pub mod dual;
pub mod intercept;
pub mod monitor;
pub mod multinomial;
pub mod newton;
pub mod objective;
pub mod params;
pub mod penalised;
pub mod presolved;
pub mod problem;
pub mod routes;
pub mod stop;
pub mod sweep;
pub mod together;
#[cfg(test)]
pub(crate) mod waves;

pub(crate) use checks::check_length;
pub use monitor::{Monitor, Progress, Reading, SearchProgress, Silent};
pub use params::{DEFAULT_MAX_ITER, DEFAULT_TOL, Params, SolverKind};
pub use problem::{Certificate, Evidence, Intercept, Problem, Solution, Start, Status};
