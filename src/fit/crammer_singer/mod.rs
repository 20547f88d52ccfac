//! The multi-class machine of Crammer and Singer, by the sequential dual method.
//!
//! ```text
//! primal   min_{W,b}  1/2 sum_m |w_m|^2 + sum_i c_i (max_m (e_im + w_m.x_i + b_m) - w_{y_i}.x_i - b_{y_i})
//! dual     max_u      sum_i (c_i - u_{i,y_i}) - 1/2 sum_m |w_m(u)|^2,     u_im >= 0,  sum_m u_im = c_i
//!          w_m(u) = sum_{i: y_i = m} c_i x_i - sum_i u_im x_i,            e_im = 0 if m = y_i, else 1
//! ```
//!
//! (Crammer and Singer, JMLR 2, 2001; Keerthi, Sundararajan, Chang, Hsieh, Lin: A Sequential Dual Method for
//! Large Scale Multi-class Linear SVMs, KDD 2008 = **Keerthi08**, whose `alpha_im` is `c_i [m = y_i] - u_im`;
//! LIBLINEAR `-s 4` is the same method.) A step takes one row and solves for its `k` variables exactly
//! ([`simplex`]), with the gradient `G_im = e_im + w_m.x_i + b_m`. With a free intercept the dual has the
//! constraint `sum_i u_im = sum_{i: y_i = m} c_i` for each class, met by the method of multipliers as in
//! [`super::dual`]; see [`intercept`].
//!
//! **The gap falls apart into rows.** With `w = w(u)`, primal minus dual is
//! `sum_i sum_m u_im (max_p G_ip - G_im)`, each term at least zero. So a check of all rows, which the
//! certificate needs anyway, tells how much every row has left, and rows with little left rest until the next
//! check ([`check`]). This takes the place of LIBLINEAR's adaptive tolerance.
//!
//! Tried: the best point on the segments between the points of the checks as primal point, as in
//! [`super::dual::segment`]: 14 epochs instead of 15 to a gap of 1e-3 and 103 instead of 128 to 1e-5 (20news,
//! C = 1), not worth two arrays of rows times classes.
//!
//! **Newton.** Where large costs meet few columns, coordinate descent crawls, as it does for two classes: 8
//! rows of 2 columns with costs of 50 take more than 20,000 epochs to a gap of 1e-6. Where three checks in a
//! row find that it has taken, and will still take, longer than Newton steps for all classes
//! ([`newton::patience`]: their price, or half of `max_iter`), these take over. They factorise a matrix of
//! order classes x columns, so with many of both, text above all, the descent goes on however long it takes.
//!
//! **What is read of a row.** Weights are interleaved by class ([`weights`]). Up to four cache lines of
//! classes per column, all scores of a row are computed in each visit, in vector arithmetic: it costs no more
//! than picking a few. With more classes, a visit reads only the classes in the row's list ([`rows`]): those
//! with a positive variable and the candidates that the last check of all classes found, shrunk as in
//! Keerthi08, section 3.3. A row of sector (105 classes, C = 1) has some 15 classes with a positive variable
//! or near it, so a visit reads most of a column's cache lines either way, and that is what a fit costs.
//!
//! Tried: weights class after class on packed columns, so that the hot part of each class is short: a gather
//! per class and entry costs more than whole lines of all classes. To a gap of 1e-3, C = 1, in turns on a
//! busy machine: sector 6.5 to 8.0 s against 5.1 to 7.5 s, 20news 2.3 to 3.9 s against 1.2 to 2.0 s. Up to
//! three checks of the lists alone between two checks of all classes: more epochs on stale candidates, sector
//! 3.5 s against 2.9 s without. Rows of one class side by side in an epoch: 23 epochs instead of 25, not
//! faster. One full epoch at the beginning instead of two: 26 epochs instead of 25.
//!
//! **Several threads** divide the classes of every row among them ([`worker`], [`team`]): each has the
//! weights of its own classes, takes the same steps, and gets the gradients of the others'. No sum runs over
//! classes of two threads, so no bit depends on their number. Two threads, C = 1 and 16, gap 1e-3: sector
//! (105 classes, 163 entries a row) 1.5 to 1.8 times as fast as one. Where a visit is short, the exchange in
//! each takes what is gained: 20news (20 classes are three cache lines, 158 entries, 1.4 microseconds a
//! visit) comes out between 0.9 and 1.0 and is left to one thread, but for its checks, which makes it 1.1 to
//! 1.2. Where others keep the cores busy, threads in step wait for each other's turn; they measure that by a
//! clock, the only one of the solvers, and after an epoch with much of it one thread goes on alone for a
//! while: sector beside work for three cores on two took 4.3 s on one thread and 3.8 s on two (means of 4),
//! without this 7 to 15 s. Tried: waiting without giving up the core, 8 s.
//!
//! Not tried for short visits: a batch of rows solved against the same weights; it needs the products of its
//! rows with each other. Tried: prefetching the weights of the next row, all classes: 20news 0.58 s
//! against 0.52 s. Huge pages for the weights: within noise.
//!
//! Memory: `(d + 1) k` weights and, for each thread, the sparse dual variables, 40 bytes or more per row; a
//! free intercept takes a second copy of the weights during a check.

pub mod check;
pub mod descent;
pub mod intercept;
pub mod kernels;
pub mod largest;
pub mod newton;
pub mod presolved;
pub mod problem;
pub mod rows;
pub mod setup;
pub mod simplex;
pub mod smoothed;
pub mod team;
pub mod weights;
pub mod worker;

pub use problem::{ClassProblem, ClassSolution, ClassStart};
pub use rows::Alpha;

use super::dual;
use super::dual::active;
use super::dual::schedule::Schedule;
use super::monitor::{Monitor, Progress};
use super::params::Params;
use super::problem::Status;
use super::routes::CLASS_SLOW_CHECKS;
use crate::Result;
use crate::matrix::design::Design;
use descent::ClassDescent;
use setup::ClassSetup;

/// Epochs over few active rows are cheap; this many of them count as one whole epoch at most, so that a fit
/// always ends.
const MAX_EPOCHS_PER_ITER: usize = 50;
/// Runs to the relative duality gap `params.tol` on up to `threads` threads; `params.solver` is ignored.
///
/// # Errors
/// [`crate::Error::Cancelled`] and [`crate::Error::Overflow`]; [`crate::Error::Thread`] where no thread can
/// be had.
pub fn solve(
    problem: &ClassProblem<'_>,
    params: &Params,
    start: &ClassStart,
    threads: usize,
    monitor: &dyn Monitor,
) -> Result<ClassSolution> {
    with_setup(problem, monitor, |setup| {
        run(ClassDescent::new(setup, start, threads)?, params, start, monitor)
    })
}

/// The certificate of `start` for `problem`, as the solution of a fit that has ended elsewhere with this
/// status.
///
/// # Errors
/// As for [`solve`].
pub fn certify(
    problem: &ClassProblem<'_>,
    start: &ClassStart,
    status: Status,
    monitor: &dyn Monitor,
) -> Result<ClassSolution> {
    with_setup(problem, monitor, |setup| {
        let mut descent = ClassDescent::new(setup, start, 1)?;
        let check = descent.check(0.0)?;
        Ok(descent.into_solution(check, status, 0))
    })
}

fn with_setup(
    problem: &ClassProblem<'_>,
    monitor: &dyn Monitor,
    f: impl FnOnce(ClassSetup<'_>) -> Result<ClassSolution>,
) -> Result<ClassSolution> {
    let ClassProblem { rows, ids, class, n_classes, cost, intercept } = *problem;
    let plain = Design { rows, ids, bias: 0.0 };
    let bias = dual::constant_column(&plain, cost, intercept);
    let design = Design { bias, ..plain };
    f(ClassSetup { rows: &design, plain: &plain, bias, class, n_classes, cost, intercept, monitor })
}

fn run(
    mut descent: ClassDescent<'_>,
    params: &Params,
    start: &ClassStart,
    monitor: &dyn Monitor,
) -> Result<ClassSolution> {
    let mut schedule = Schedule::new(descent.dual_estimate());
    let (patience, mut slow) = (newton::patience(&descent, params), 0);
    if start.alpha.is_some() {
        let check = descent.check(params.tol)?;
        if check.certificate.relative_gap() <= params.tol {
            return Ok(descent.into_solution(check, Status::Converged, 0));
        }
    }
    let mut random = active::random(params.seed, 0);
    let limit = params.max_iter as f64;
    let n_rows = descent.n_rows();
    let (check, status) = loop {
        let mut is_last = false;
        descent.epochs(&mut random, |epoch| {
            schedule.record(epoch, n_rows);
            is_last = schedule.work >= limit || schedule.epochs >= MAX_EPOCHS_PER_ITER * params.max_iter;
            !schedule.is_due(params.tol) && !is_last
        })?;
        let check = descent.check(params.tol)?;
        let gap = check.certificate.relative_gap();
        monitor.observe(&Progress {
            solver: "crammer_singer",
            iteration: schedule.iterations(),
            accuracy: gap,
            search: None,
        });
        if gap <= params.tol {
            break (check, Status::Converged);
        }
        if is_last {
            break (check, Status::MaxIter);
        }
        let remaining = schedule.checked(&check.certificate, params.tol);
        let is_slow = patience.is_some_and(|patience| patience.is_over(schedule.work, remaining));
        slow = if is_slow { slow + 1 } else { 0 };
        if slow >= CLASS_SLOW_CHECKS {
            return newton::finish(descent, check, params, schedule.iterations());
        }
    };
    Ok(descent.into_solution(check, status, schedule.iterations()))
}

#[cfg(test)]
mod tests;
