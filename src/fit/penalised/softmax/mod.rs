//! The softmax of three or more classes with any penalty and bounds: all classes in one problem.
//!
//! ```text
//! min over W      sum_jk p_j(W_jk) + sum_i c_i [log sum_k exp(z_ik) - z_{i,y_i}],      z_i = W'x_i
//! ```
//!
//! within `lo_j <= W_jk <= hi_j`, with the intercepts as weights of a constant column.
//!
//! **Method.** The rounds and Newton steps of [`super`], over a weight for each column and class
//! ([`super::coordinates`], a block for each class), so that a step moves all classes at once. The curvature
//! of a row over its decision values is `c_i (diag(p_i) - p_i p_i')` with the softmax `p_i` ([`losses`]).
//! Coordinate descent keeps `q_ik = (X dW)_ik` and `s_i = sum_k p_ik q_ik`; the slope along a coordinate is
//! then `G_jk + sum_i x_ij c_i p_ik (q_ik - s_i)` ([`model`]).
//! Tried: turns of the classes, each a binary problem; with many classes and large `C` hardly anything came
//! of a turn.
//!
//! **Dual.** With `a_ik = c_i p_ik` for the classes that are not the row's own, and the sum of these for its
//! own, the dual value is
//!
//! ```text
//! sum_i c_i H(q_i) - sum_jk p_j*(v_jk),       v_jk = sum_{y_i = k} a_i,y_i x_ij - sum_{y_i != k} a_ik x_ij
//! ```
//!
//! with the entropy `H` of `q_i = e_{y_i} - t (e_{y_i} - p_i)`, where `t <= 1` is the factor that keeps the
//! conjugates finite: `q_i` stays a distribution ([`dual`]). [`proof`] is that of [`super::proof`].
//!
//! The same shift of a column's weights in all classes changes no loss. So the best shift for the penalty
//! follows every step ([`shift`]); that of free columns, which cost nothing, leaves the mean 0 over the
//! classes.
//!
//! Memory: the copy of the data by columns, four vectors of columns times classes and sixteen of rows times
//! classes, and the matrix of a model as there.

pub mod dual;
pub mod losses;
pub mod model;
pub mod proof;
pub mod shift;

use super::chosen_columns::ChosenColumns;
use super::coordinates::Coordinates;
use super::reach::{self, DualBound, Reach};
use super::rounds::RoundStart;
use super::smooth_part::{Losses, SmoothPart};
use super::{PenalisedSolution, ladder, rounds, start};
use crate::fit::monitor::Monitor;
use crate::fit::params::Params;
use crate::matrix::columns::Columns;
use crate::penalty::Term;
use crate::{Error, Result};
use model::ClassRowModels;

/// Curvature of the softmax along the decision value of a class at most.
const LARGEST_BEND: f64 = 0.25;

/// One problem of all classes by columns.
#[derive(Clone, Copy)]
pub struct PenalisedClasses<'a> {
    /// The data, the constant column of the intercepts last.
    pub columns: &'a Columns,
    /// The class of each row.
    pub class: &'a [u32],
    /// Number of classes.
    pub n_classes: usize,
    /// Costs, one per row; a row of cost 0 is absent.
    pub cost: &'a [f64],
    /// Penalty and bounds, one per column, the same for all classes.
    pub terms: &'a [Term],
    /// As in [`super::PenalisedProblem`].
    pub reach: Option<&'a Reach>,
}

/// Fits to the relative duality gap `params.tol`, from the weights of `start`, one class after the other, or
/// from zero.
///
/// # Errors
/// [`Error::Cancelled`] and [`Error::Overflow`]; [`Error::Parameter`] for more than 2^32 weights.
pub fn solve(
    problem: &PenalisedClasses<'_>,
    params: &Params,
    start: Option<&[f64]>,
    monitor: &dyn Monitor,
) -> Result<PenalisedSolution> {
    problem.check_size()?;
    let bound = || DualBound::of_costs(problem.cost);
    reach::solve(problem.reach, problem.coordinates(), bound, (params, start), |part| {
        let some = PenalisedClasses { columns: part.columns, terms: part.terms, reach: None, ..*problem };
        ladder::solve(&part.params, part.start, |rung| {
            let problem = PenalisedClasses { cost: &rung.costs(some.cost), ..some };
            let prove =
                |here: &RoundStart, w: &[f64], sums| proof::certificate(&problem, &here.losses, w, sums);
            rounds::solve(&problem, &prove, rung, monitor)
        })
    })
}

/// As [`start::largest_null_cost`], for all classes.
///
/// # Errors
/// As there, and [`Error::Parameter`] for more than 2^32 weights.
pub fn largest_null_cost(problem: &PenalisedClasses<'_>, monitor: &dyn Monitor) -> Result<Option<f64>> {
    problem.check_size()?;
    start::of_smooth(problem, monitor)
}

impl PenalisedClasses<'_> {
    fn check_size(&self) -> Result<()> {
        let n = self.columns.len().checked_mul(self.n_classes);
        if n.is_some_and(|n| u32::try_from(n).is_ok()) {
            return Ok(());
        }
        let value = format!("{} times {}", self.columns.len(), self.n_classes);
        Err(Error::Parameter { name: "columns times classes", value, rule: "below 2^32" })
    }
}

impl SmoothPart for PenalisedClasses<'_> {
    type Rows<'s>
        = ClassRowModels<'s>
    where
        Self: 's;

    fn coordinates(&self) -> Coordinates<'_> {
        Coordinates { columns: self.columns, terms: self.terms, n_blocks: self.n_classes }
    }

    fn evaluate(&self, losses: &mut Losses) {
        losses::evaluate(self, losses);
    }

    fn largest_bend(&self, column: usize) -> f64 {
        let [bend] = self.columns.sum(column, |i, x| [LARGEST_BEND * self.cost[i] * x * x]);
        bend
    }

    fn is_curved(&self, losses: &Losses) -> bool {
        let mut bends = losses.bend.chunks(self.cost.len().max(1));
        bends.all(|of_class| of_class.iter().zip(self.cost).all(|(bend, c)| *bend > 0.0 || *c == 0.0))
    }

    fn row_models<'s>(&'s self, list: &'s [u32], losses: &'s Losses, slope: &'s [f64]) -> ClassRowModels<'s> {
        ClassRowModels::new(self, list, losses, slope)
    }

    fn matrix(
        &self,
        chosen: &ChosenColumns<'_>,
        list: &[u32],
        losses: &Losses,
        monitor: &dyn Monitor,
    ) -> Result<Vec<f64>> {
        model::matrix(self, chosen, list, losses, monitor)
    }

    fn dual_terms(&self, slope: &[f64], scale: f64) -> [f64; 2] {
        dual::terms(self, slope, scale)
    }

    /// The weights of each column have the best common shift ([`shift`]).
    fn normalise(&self, w: &mut [f64]) {
        let (d, mut of_column) = (self.columns.len(), vec![0.0; self.n_classes]);
        for (j, term) in self.terms.iter().enumerate() {
            let places = (j..w.len()).step_by(d);
            places.clone().zip(&mut of_column).for_each(|(at, of_class)| *of_class = w[at]);
            let by = shift::best_shift(term, &of_column);
            if by != 0.0 {
                places.for_each(|at| w[at] = term.clip(w[at] + by));
            }
        }
    }
}

#[cfg(test)]
mod tests;
