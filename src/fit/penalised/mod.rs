//! Fits with a penalty on the absolute values of the weights, with bounds, or with a factor for each column
//! ([`crate::penalty`]):
//!
//! ```text
//! min over w      sum_j p_j(w_j) + sum_i c_i xi(y_i z_i),     z = X w,    p_j(w) = l1_j |w| + l2_j/2 w^2
//! ```
//!
//! within `lo_j <= w_j <= hi_j`. An intercept is the weight of a constant column, free or with the plain
//! penalty.
//!
//! **Method.** Few weights differ from zero, so the solver works on few columns. A round computes the slope
//! of the losses along all columns, from it or from the model of the last step a dual point and the gap
//! ([`dual_point`]); chooses the *working set*, the columns that are not zero and those that miss their
//! optimality condition by most ([`working_set`]); and takes Newton steps on it ([`newton`]). A step
//! minimises the quadratic model of the losses plus the penalty by coordinate descent ([`quadratic`]), on the
//! entries of the columns or, where they are few, on the matrix of the model ([`gram`]), of entries with the
//! heaviest columns together ([`heavy`]), and searches along the line to that minimum. Those are the proximal
//! Newton steps of Yuan, Ho, Lin: An Improved GLMNET for L1-regularized Logistic Regression (JMLR 13, 2012),
//! on the working sets of Massias, Gramfort, Salmon: Celer (ICML 2018).
//!
//! The hinge, which has a corner, is met by a sequence of smooth terms ([`hinge`]).
//!
//! Columns that cannot reach their penalty at such costs are left out from the start ([`reach`]).
//!
//! The answer is proved in spite of rounding ([`proof`]), as that of every other solver.
//!
//! Memory: the copy of the data by columns, five vectors of columns and seventeen of rows (the softmax has
//! them for each class), and the matrix of the model with its factor ([`model_bytes`]).

pub mod binary;
pub mod chosen_columns;
pub mod coordinates;
pub mod directions;
pub mod dual_point;
pub mod entries;
pub mod factor;
pub mod free_columns;
pub mod gram;
mod half_parabolas;
pub mod heavy;
pub mod hinge;
pub mod ladder;
mod matrix_of_rows;
pub mod newton;
pub mod path;
pub mod proof;
pub mod quadratic;
pub mod reach;
pub mod rounds;
pub mod smooth;
pub mod smooth_part;
pub mod softmax;
pub mod start;
pub mod tiles;
pub mod walls;
pub mod working_set;

use super::monitor::Monitor;
use super::objective::Weighted;
use super::params::Params;
use super::problem::{Certificate, Status};
use super::routes;
use crate::Result;
use crate::loss::{Loss, LossKind, with_smooth_loss};
use crate::matrix::columns::Columns;
use crate::penalty::Term;
use binary::BinaryLosses;
use coordinates::Coordinates;
use reach::{DualBound, PartialFit, Reach};
use rounds::RoundStart;
use smooth_part::Losses;

/// Bytes that the matrix of a model and its factor take at most, and those of its heaviest columns, for data
/// of so many entries and a problem of so many coordinates; the factors twice, as memory that one of the step
/// before gave back may lie idle (of matrices of 1,850 to 2,048 columns the allocator kept 45 MB).
pub fn model_bytes(n_entries: usize, n_coordinates: usize) -> u64 {
    let most = chosen_columns::most_of(n_entries).min(n_coordinates);
    let of_order = |n: usize| 8 * (n as u64).pow(2);
    let heaviest = routes::HEAVY_COLUMNS.min(n_coordinates);
    let of_matrices = |n: usize| of_order(n) + 2 * of_order(factor::places(n));
    of_matrices(most) + of_matrices(heaviest)
}

/// One binary problem by columns.
#[derive(Clone, Copy)]
pub struct PenalisedProblem<'a> {
    /// The data, the constant column of an intercept last.
    pub columns: &'a Columns,
    /// Labels in {-1, +1}, one per row.
    pub y: &'a [f64],
    /// Costs, one per row; a row of cost 0 is absent.
    pub cost: &'a [f64],
    /// Penalty and bounds, one per column.
    pub terms: &'a [Term],
    /// What the columns need, where fits may leave out those that are out of reach.
    pub reach: Option<&'a Reach>,
}

impl PenalisedProblem<'_> {
    /// What there is to move: the weights of the columns.
    pub fn coordinates(&self) -> Coordinates<'_> {
        Coordinates { columns: self.columns, terms: self.terms, n_blocks: 1 }
    }
}

/// Weights of all columns with their certificate.
#[derive(Clone, Debug)]
pub struct PenalisedSolution {
    /// Weights, that of the constant column last; of several classes one class after the other.
    pub w: Vec<f64>,
    /// How good they are.
    pub certificate: Certificate,
    /// The largest dual variable of its point.
    pub largest_dual: f64,
    /// The penalty's part of the primal value.
    pub penalty: f64,
    /// How the fit ended.
    pub status: Status,
    /// Newton steps.
    pub n_iter: usize,
    /// Readings of all entries.
    pub passes: f64,
}

/// Fits to the relative duality gap `params.tol`, from the weights of `start` or from zero.
///
/// # Errors
/// [`crate::Error::Cancelled`] and [`crate::Error::Overflow`].
pub fn solve(
    problem: &PenalisedProblem<'_>,
    loss: LossKind,
    params: &Params,
    start: Option<&[f64]>,
    monitor: &dyn Monitor,
) -> Result<PenalisedSolution> {
    let bound = || {
        let of_costs = DualBound::of_costs(problem.cost);
        with_smooth_loss!(loss, loss => largest_duals(problem, loss, of_costs.most, start), else { of_costs })
    };
    reach::solve(problem.reach, problem.coordinates(), bound, (params, start), |part| {
        let PartialFit { columns, terms, start, ref params } = *part;
        let some = &PenalisedProblem { columns, terms, reach: None, ..*problem };
        with_smooth_loss!(loss, loss => solve_smooth(some, loss, params, start, monitor), else {
            hinge::solve(some, params, start, monitor)
        })
    })
}

/// The largest dual variables at the weights of `start`, or at zero, and at any.
fn largest_duals<L: Loss>(
    problem: &PenalisedProblem<'_>,
    loss: L,
    largest_cost: f64,
    start: Option<&[f64]>,
) -> DualBound {
    let PenalisedProblem { y, cost, .. } = *problem;
    let at_start = match start {
        None => {
            let [_, [slope], _] = loss.all_of([0.0]);
            -slope * largest_cost
        }
        Some(w) => {
            let smooth_part = BinaryLosses { problem, smooth: &Weighted { loss, y, cost } };
            let losses = Losses::at(&smooth_part, problem.coordinates().decisions(w));
            losses.slope.iter().fold(0.0, |largest, g| f64::max(largest, g.abs()))
        }
    };
    DualBound { at_start, most: loss.upper(largest_cost) }
}

fn solve_smooth<L: Loss>(
    problem: &PenalisedProblem<'_>,
    loss: L,
    params: &Params,
    start: Option<&[f64]>,
    monitor: &dyn Monitor,
) -> Result<PenalisedSolution> {
    ladder::solve(params, start, |rung| {
        let cost = &rung.costs(problem.cost);
        let problem = PenalisedProblem { cost, ..*problem };
        let smooth_part = BinaryLosses { problem: &problem, smooth: &Weighted { loss, y: problem.y, cost } };
        let prove =
            |here: &RoundStart, w: &[f64], sums| proof::certificate(&problem, loss, here.dual(), w, sums);
        rounds::solve(&smooth_part, &prove, rung, monitor)
    })
}

#[cfg(test)]
mod tests;
