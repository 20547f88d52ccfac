//! Costs in steps, where the way from zero weights is too long.
//!
//! On rows that can be separated, and at large costs, few rows are within the margin at the weights on the
//! way. The model of a Newton step with the squared hinge knows of those alone: its minimum has others come
//! within the margin, a search along the step ends after a fraction of it, and leaves weights behind that
//! belong to neither end. 20news, one group against the rest, squared hinge, C = 100, gap 1e-4: 60 steps and
//! 1,900 weights on the way to 632. The optimum of smaller costs is a better start: nearly the same rows are
//! within the margin there.
//!
//! So a fit that takes several fractions of steps in a row is given up; a fit at [`LADDER_FACTOR`] times
//! smaller costs gives it a start, and gets its own in the same way. From a start at smaller costs the next
//! fit is the asked one, or where that is given up, one at costs between. Easy fits never come here.
//!
//! With steps as they are damped now ([`super::newton`]), to 1e-2, in shares of the time without: another
//! group, C = 1000, 0.6; 3,000 random rows x 2,500 columns, 2 % of them not zero, C = 100, 0.45; 500 x 2,000
//! without zeros, C = 1, 0.5; 20news up to C = 200 and sector, C = 500, the same.
//!
//! Tried: small costs first for every fit whose costs are more than 30 or 100 times those at which all
//! weights are zero. 20news 1.2 s at C = 100 and 10 to 28 at C = 1000, but flights, squared hinge, 2,637
//! weights 3.0 to 4.1 s instead of 2.2, a9a and madelon up to twice as long as from zero. Softened half
//! parabolas instead, by a logarithmic barrier on their dual variables, ten times weaker at a time, each to
//! a loose gap: another group, C = 200, 142 to 250 steps instead of 64. A model that knows of rows that
//! come within the margin, by the slope of the chord to where the search ended, made anew up to three times
//! a step: steps are whole and leave few weights behind (27 of them to C = 25 of a group where every second
//! one is a half), but a fit takes as long at C = 10 (2.5 s) and over 60 s instead of 30 at C = 100.

use std::borrow::Cow;

use super::PenalisedSolution;
use crate::Result;
use crate::fit::params::Params;
use crate::fit::routes::{LADDER_FACTOR, LADDER_LEAST_FACTOR, LADDER_TOL};
use crate::memory::CollectLarge;

/// Costs that are next to nothing, as a share of those asked for.
const NEXT_TO_NOTHING: f64 = 1e-9;

/// One of the fits.
pub struct Rung<'a> {
    /// Its costs, as a share of those asked for.
    pub share: f64,
    /// The weights it begins with, or zero.
    pub start: Option<&'a [f64]>,
    /// Its tolerance and largest number of steps.
    pub params: Params,
    /// Whether it may be given up.
    pub may_give_up: bool,
}

impl Rung<'_> {
    /// The costs of its rows, of those asked for.
    pub fn costs<'c>(&self, asked: &'c [f64]) -> Cow<'c, [f64]> {
        if self.share == 1.0 {
            return Cow::Borrowed(asked);
        }
        Cow::Owned(asked.iter().map(|cost| self.share * cost).collect_large())
    }
}

/// How one of the fits may end.
pub enum End {
    /// With a solution.
    Solution(PenalisedSolution),
    /// After several fractions of steps in a row, far from the optimum.
    GivenUp {
        /// Newton steps.
        n_iter: usize,
        /// Readings of all entries.
        passes: f64,
    },
}

/// The solution at the costs asked for. `fit` fits a rung.
///
/// # Errors
/// Those of `fit`.
pub fn solve(
    params: &Params,
    start: Option<&[f64]>,
    fit: impl Fn(&Rung<'_>) -> Result<End>,
) -> Result<PenalisedSolution> {
    let (mut reached, mut share) = (0.0f64, 1.0f64); // of the costs: solved, and to solve next
    let mut w = start.map(<[f64]>::to_vec);
    let (mut taken, mut passes) = (0, 0.0);
    loop {
        let left = params.max_iter.saturating_sub(taken);
        if left == 0 {
            share = 1.0;
        }
        let tol = if share == 1.0 { params.tol } else { LADDER_TOL };
        let is_near = share < LADDER_LEAST_FACTOR * reached || share < NEXT_TO_NOTHING;
        let rung = Rung {
            share,
            start: w.as_deref(),
            params: Params { tol, max_iter: left, ..*params },
            may_give_up: !is_near && left > 0,
        };
        match fit(&rung)? {
            End::Solution(mut found) => {
                taken += found.n_iter;
                passes += found.passes;
                if share == 1.0 {
                    (found.n_iter, found.passes) = (taken, passes);
                    return Ok(found);
                }
                // A start that is a solution here already would lead no further than it did before.
                let is_start = found.n_iter == 0 && w.is_some() && LADDER_LEAST_FACTOR * share <= 1.0;
                // What stalls on the way is as good a start as any.
                w = Some(found.w);
                (reached, share) = (share, if is_start { share.sqrt() } else { 1.0 });
            }
            End::GivenUp { n_iter, passes: read } => {
                taken += n_iter;
                passes += read;
                share = if reached == 0.0 { share / LADDER_FACTOR } else { (reached * share).sqrt() };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::problem::{Certificate, Status};
    use std::cell::RefCell;

    /// A solution of one weight, by one reading.
    fn reached(weight: f64, n_iter: usize, status: Status) -> End {
        let (certificate, penalty) = (Certificate { primal: 1.0, dual: 1.0 }, 0.0);
        let w = vec![weight];
        let found =
            PenalisedSolution { w, certificate, largest_dual: 0.0, penalty, status, n_iter, passes: 1.0 };
        End::Solution(found)
    }

    /// Fits whose weight is their share of the costs, and that are given up from further than `reach` times
    /// below; the rungs in order.
    fn climb(reach: f64, max_iter: usize) -> (PenalisedSolution, Vec<f64>) {
        let visited = RefCell::new(Vec::new());
        let params = Params { max_iter, ..Params::default() };
        let found = solve(&params, None, |rung| {
            visited.borrow_mut().push(rung.share);
            let is_tight = rung.params.tol == params.tol;
            assert_eq!(is_tight, rung.share == 1.0);
            let from = rung.start.map_or(1e-3, |w| w[0]);
            let n_iter = 10.min(rung.params.max_iter);
            if rung.may_give_up && rung.share > reach * from {
                return Ok(End::GivenUp { n_iter, passes: 1.0 });
            }
            let status = if n_iter == 10 { Status::Converged } else { Status::MaxIter };
            Ok(reached(rung.share, n_iter, status))
        });
        (found.expect("no fit fails"), visited.into_inner())
    }

    #[test]
    fn an_easy_fit_is_the_only_one() {
        let (found, rungs) = climb(1e4, 1000);
        assert_eq!((found.n_iter, rungs), (10, vec![1.0]));
    }

    #[test]
    fn a_hard_one_comes_from_smaller_costs_and_counts_all_steps() {
        for reach in [300.0, 20.0, 3.0, 1.6, 1.0] {
            let (found, rungs) = climb(reach, 1_000_000);
            assert_eq!((found.status, found.w[0], *rungs.last().unwrap()), (Status::Converged, 1.0, 1.0));
            assert_eq!((found.n_iter, found.passes), (10 * rungs.len(), rungs.len() as f64));
            assert!(rungs.len() < 200, "{rungs:?}");
        }
    }

    /// A search starts from the solution at smaller costs: the fit from it that was given up is not made
    /// again.
    #[test]
    fn a_start_that_stays_as_it_is_is_not_started_from_again() {
        let visited = RefCell::new(Vec::new());
        let found = solve(&Params::default(), Some(&[0.4]), |rung| {
            let start = rung.start.map_or(0.0, |w| w[0]);
            visited.borrow_mut().push((rung.share, start, rung.may_give_up));
            if rung.may_give_up && rung.share > 1.5 * start {
                return Ok(End::GivenUp { n_iter: 10, passes: 1.0 });
            }
            // Small costs have the start as a solution.
            let (w, n_iter) = if rung.share <= 2.0 * start { (start, 0) } else { (rung.share, 10) };
            Ok(reached(w, n_iter, Status::Converged))
        });
        assert_eq!(found.expect("no fit fails").w, [1.0]);
        let visited = visited.into_inner();
        let repeated = (1..visited.len()).find(|&k| visited[..k].contains(&visited[k]));
        assert_eq!(repeated, None, "{visited:?}");
    }

    #[test]
    fn steps_on_the_way_are_steps() {
        let (found, rungs) = climb(1.6, 25);
        assert_eq!((found.status, found.n_iter, found.w[0]), (Status::MaxIter, 25, 1.0));
        assert_eq!(*rungs.last().unwrap(), 1.0);
    }
}
