//! The route of smooth losses with many columns: dual descent of lane by lane, then Newton over groups of
//! lanes.
//!
//! From solution to solution descent takes one or two epochs at small `C` and the more the larger it is,
//! while Newton's steps grow hardly dearer. So all lanes go over, once and for all, after a value at which
//! they read their rows [`SLOW_DESCENTS`] times on average. Newton starts from the weights they have, and
//! ends by its own rule ([`super::primal`]), which is Chu15's and asks for less at the largest `C`.
//!
//! One of Newton's groups is in memory at a time: for each lane weights and decision values are kept between
//! steps, as many numbers as in the descent, and what else a group consists of is made anew, by one reading
//! of the rows. For 100 lanes of 20news (130,000 columns) that is 0.1 GB instead of 0.7.

use std::ops::Range;

use super::dual::{self, DualFits};
use super::folds::LaneSetup;
use super::lane::LaneRoute;
use super::primal::{self, ARRAYS, Group, LANES, LaneFacts, Moved, Primal};
use super::{Route, RouteState, SearchStep};
use crate::Result;
use crate::fit::routes::SLOW_DESCENTS;

/// The lanes of such a search.
pub struct Handover<'a> {
    setup: &'a LaneSetup<'a>,
    way: Way<'a>,
}

/// How they move.
enum Way<'a> {
    Descent(LaneRoute<'a, DualFits<'a>>),
    Newton(Primal<'a>),
}

impl<'a> Handover<'a> {
    /// Starts before the first value of `C`.
    pub fn new(setup: &'a LaneSetup<'a>) -> Self {
        Self { setup, way: Way::Descent(dual::route(setup)) }
    }

    fn route(&mut self) -> &mut dyn Route {
        match &mut self.way {
            Way::Descent(route) => route,
            Way::Newton(route) => route,
        }
    }

    /// Newton at these weights of all lanes, or at zero.
    fn newton(&self, weights: &[(&[f64], f64)]) -> Result<Way<'a>> {
        let setup = self.setup;
        let facts = LaneFacts::of(setup);
        let group = |part: Range<usize>| {
            Ok(Box::new(Asleep::new(setup, facts.clone(), part, weights)?) as Box<dyn Group + 'a>)
        };
        Ok(Way::Newton(Primal::over(&facts, group)?))
    }
}

impl Route for Handover<'_> {
    fn advance(&mut self, c: f64) -> Result<SearchStep> {
        let step = self.route().advance(c)?;
        if let Way::Descent(route) = &self.way
            && step.passes > SLOW_DESCENTS * route.lanes.len() as f64
            && c < self.setup.last
        {
            let weights = route.lanes.iter().map_while(|lane| lane.solution.as_ref()?.1.weights());
            self.way = self.newton(&weights.collect::<Vec<_>>())?;
        }
        Ok(step)
    }

    fn state(&self) -> RouteState {
        match &self.way {
            Way::Descent(route) => route.state(),
            Way::Newton(route) => route.state(),
        }
    }

    fn restore(&mut self, state: &RouteState) -> Result<()> {
        // Descents have three arrays a lane, Newton four for eight of them.
        self.way = if state.0.len() == self.setup.n_lanes().div_ceil(LANES) * ARRAYS {
            self.newton(&[])?
        } else {
            Way::Descent(dual::route(self.setup))
        };
        self.route().restore(state)
    }
}

/// A group of lanes of which only the state is kept between steps.
struct Asleep<'a> {
    setup: &'a LaneSetup<'a>,
    facts: LaneFacts<'a>,
    part: Range<usize>,
    lanes: Vec<usize>,
    state: [Vec<f64>; ARRAYS],
}

impl<'a> Asleep<'a> {
    fn new(
        setup: &'a LaneSetup<'a>,
        facts: LaneFacts<'a>,
        part: Range<usize>,
        weights: &[(&[f64], f64)],
    ) -> Result<Self> {
        let lanes = facts.lanes(part.clone());
        let mut group = Self { setup, facts, part, lanes, state: Default::default() };
        let of_lanes: Option<Vec<_>> = group.lanes.iter().map(|k| weights.get(*k).copied()).collect();
        if let Some(weights) = of_lanes {
            group.start_at(&weights)?;
        }
        Ok(group)
    }

    fn wake(&self) -> Result<Box<dyn Group + 'a>> {
        primal::group(self.setup, &self.facts, self.part.clone())
    }
}

impl Group for Asleep<'_> {
    fn advance(&mut self, c: f64) -> Result<Moved> {
        let mut awake = self.wake()?;
        awake.restore(&std::mem::take(&mut self.state))?;
        let moved = awake.advance(c)?;
        self.state = awake.state();
        Ok(moved)
    }

    fn lanes(&self) -> &[usize] {
        &self.lanes
    }

    fn held_out(&mut self) -> Result<Vec<Vec<f64>>> {
        let decided: &[[f64; LANES]] = self.state[2].as_chunks().0;
        Ok(self.setup.of_held_out(&self.lanes, |i, l| decided.get(i).map_or(0.0, |z| z[l])))
    }

    fn state(&self) -> [Vec<f64>; ARRAYS] {
        self.state.clone()
    }

    fn restore(&mut self, arrays: &[Vec<f64>]) -> Result<()> {
        let mut awake = self.wake()?;
        awake.restore(arrays)?;
        self.state = awake.state();
        Ok(())
    }

    fn start_at(&mut self, weights: &[(&[f64], f64)]) -> Result<()> {
        let mut awake = self.wake()?;
        awake.start_at(weights)?;
        self.state = awake.state();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::{Intercept, Params, Problem, Silent, SolverKind, Start, auto};
    use crate::labels::{Labels, MultiClass};
    use crate::loss::LossKind;
    use crate::matrix::Matrix;
    use crate::matrix::csr::CsrView;
    use crate::search::folds::{Fold, parts};
    use crate::search::{SearchSettings, StopRule};

    const TOL: f64 = 1e-3;

    /// Calls `f` with a search on rows of 3 of 400 columns, some labels wrong.
    fn with_setup<T>(
        loss: LossKind,
        intercept: Intercept,
        n_classes: u32,
        f: impl FnOnce(&LaneSetup<'_>) -> T,
    ) -> T {
        let n = 240;
        let starts: Vec<i64> = (0..=n as i64).map(|i| 3 * i).collect();
        let list: Vec<i32> =
            (0..n as i32).flat_map(|i| [i * 7 % 40, 40 + i * 11 % 60, 100 + i * i % 300]).collect();
        let values: Vec<f64> = (0..3 * n).map(|k| 1.0 + (k as f64).sin()).collect();
        let rows: Matrix<'_> = CsrView::new(&starts, &list, &values, 400).unwrap().0.into();
        let ids: Vec<u32> =
            (0..n as u32).map(|i| if i % 9 == 4 { i } else { i * 7 % 40 } % n_classes).collect();
        let all: Vec<u32> = (0..n as u32).collect();
        let folds = [
            Fold { train: all[..180].to_vec(), test: all[180..].to_vec() },
            Fold { train: all[50..].to_vec(), test: all[..50].to_vec() },
        ];
        let weight: Vec<f64> = (0..n).map(|i| 0.5 + (i % 3) as f64).collect();
        let labels = Labels { ids: &ids, n_classes };
        let parts = parts(n, &labels, &weight, &folds).unwrap();
        let params = Params { solver: SolverKind::Auto, tol: TOL, max_iter: 1000, seed: 0 };
        let settings = SearchSettings { loss, intercept, params, multi_class: MultiClass::OneVsRest };
        let (rows, labels, parts, settings) = (&rows, &labels, &parts, &settings);
        let stop = StopRule::Exact;
        f(&LaneSetup { rows, labels, weight: &weight, parts, settings, last: 4096.0, stop, monitor: &Silent })
    }

    /// Lanes begin by descent and end with Newton. At every value their objectives are close to those of fits
    /// that are nearly exact (beyond C = 128 Newton's rule asks for less), and they go on with the same bits
    /// from the state there.
    fn check(loss: LossKind, intercept: Intercept, n_classes: u32) {
        with_setup(loss, intercept, n_classes, |setup| {
            let mut route = Handover::new(setup);
            let mut ways = Vec::new();
            for c in (-6..=7).map(|k| 2f64.powi(k)) {
                ways.push(matches!(route.way, Way::Newton(_)));
                let mut twin = Handover::new(setup);
                twin.restore(&route.state()).unwrap();
                let step = route.advance(c).unwrap();
                assert_eq!(step, twin.advance(c).unwrap());
                assert_eq!(route.state(), twin.state());
                assert!(step.is_converged);
                for (k, found) in step.objective.iter().enumerate() {
                    let cost: Vec<f64> = setup.part(k).weight.iter().map(|v| c * v).collect();
                    let y = setup.signs(k);
                    let problem: Problem<'_> = setup.problem(k, &y, &cost);
                    let params = Params { solver: SolverKind::Newton, tol: 1e-9, max_iter: 10_000, seed: 0 };
                    let best = auto::solve(&problem, loss, &params, &Start::default(), &Silent).unwrap();
                    let best = best.certificate.primal;
                    assert!(*found >= best * (1.0 - 1e-7) && *found <= best * 1.02, "{c}: {found} {best}");
                }
            }
            assert!(!ways[0] && ways[ways.len() - 1], "{loss:?} {ways:?}");
            assert!(ways.is_sorted());
        });
    }

    #[test]
    fn lanes_go_from_descent_to_newton_and_back_to_any_state() {
        check(LossKind::SquaredHinge, Intercept::None, 2);
        check(LossKind::SquaredHinge, Intercept::Free, 3);
        check(LossKind::Logistic, Intercept::Penalised(2.0), 2);
        check(LossKind::ModifiedHuber, Intercept::Free, 13);
    }

    #[test]
    fn states_of_another_search_are_refused() {
        let others =
            with_setup(LossKind::SquaredHinge, Intercept::None, 3, |setup| Handover::new(setup).state());
        with_setup(LossKind::SquaredHinge, Intercept::None, 2, |setup| {
            let mut route = Handover::new(setup);
            assert!(route.restore(&others).is_err());
            let descents = route.state();
            route.way = route.newton(&[(&[0.5; 400][..], 0.0); 2]).unwrap();
            route.advance(1.0).unwrap();
            let newtons = route.state();
            let mut cut = newtons.clone();
            cut.0[1].pop();
            assert!(route.restore(&cut).is_err());
            assert!(route.restore(&descents).is_ok() && route.restore(&newtons).is_ok());
        });
    }
    #[test]
    fn states_of_groups_in_another_order_are_refused() {
        with_setup(LossKind::SquaredHinge, Intercept::None, 13, |setup| {
            let mut route = primal::Primal::new(setup).unwrap();
            route.advance(1.0).unwrap();
            let mut state = route.state();
            assert!(route.restore(&state).is_ok());
            let (first, others) = state.0.split_at_mut(ARRAYS);
            first.swap_with_slice(&mut others[..ARRAYS]);
            assert!(route.restore(&state).is_err());
        });
    }
}
