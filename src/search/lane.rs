//! One lane of a search: its last certified solution, the values of `C` at which that stays accepted, and its
//! arrays in a journal. [`LaneRoute`] moves lanes that are fitted one by one.
//!
//! **Steps that cost nothing.** Let a solution at `C` have the primal value `P = R + L`, norm and loss, and
//! dual value `D`. At `C' > C` the dual variables are still feasible and their dual value is no lower (their
//! box grows, and each row's dual term rises with its cost), while the loss grows in proportion: the same
//! weights have a gap of at most `R + L C'/C - D`. So they stay accepted up to
//!
//! ```text
//! C' = C ((1 + tol) D - R) / L
//! ```
//!
//! **Outlook.** The least objective is concave in `C`, as each `R + C L/C` is a straight line: between two
//! values it is no lower than the line between dual values at both. So a fit at `C` and one at the last value
//! prove how far the solution at `C` stays accepted in between ([`AcceptedFit::with_outlook`]), often all the
//! way: where losses cannot vanish, weights cease to depend on `C`. A dual point does not see that, as its
//! multiple would be beyond the penalty. [`looks_settled`] says when the second fit is made.
//!
//! A lane is fitted only where its solution is no longer accepted, and then starts from it. Routes differ in
//! how they fit at a value ([`LaneFits`]) and in what they keep of a solution ([`Saved`]).

use std::sync::Arc;

use super::folds::LaneSetup;
use super::watch::Watch;
use super::{Route, RouteState, SearchStep};
use crate::fit::{Certificate, Monitor, check_length};
use crate::labels::sparse_weights::SparseWeights;
use crate::{Result, memory, parallel};

/// A certified fit, and how long its solution stays accepted unchanged.
#[derive(Clone, Copy, Debug)]
pub struct AcceptedFit {
    /// The value of `C` of the fit.
    pub c: f64,
    /// Norm part of the primal value.
    pub norm: f64,
    /// Loss part of the primal value at `c`.
    pub loss: f64,
    /// Largest `C` at which the solution is accepted.
    pub until: f64,
}

impl AcceptedFit {
    /// That of a fit at `c` to a relative gap of `tol`; one that has not converged is accepted at `c` only.
    pub fn new(c: f64, norm: f64, certificate: Certificate, is_converged: bool, tol: f64) -> Self {
        let loss = (certificate.primal - norm).max(0.0);
        let until = if is_converged { accepted_until(c, norm, loss, certificate.dual, tol) } else { c };
        Self { c, norm, loss, until }
    }

    /// The same where a fit at a larger value has this dual value, and the one at [`Self::c`] that `dual`.
    pub fn with_outlook(self, dual: f64, (far, dual_there): (f64, f64), tol: f64) -> Self {
        // How far the unchanged solution is above what is accepted: a straight line.
        let here = self.objective(self.c) - (1.0 + tol) * dual;
        let there = self.objective(far) - (1.0 + tol) * dual_there;
        let until = if here > 0.0 {
            self.c
        } else if there <= 0.0 {
            far
        } else {
            self.c + (far - self.c) * (-here / (there - here))
        };
        Self { until: self.until.max(until), ..self }
    }

    /// Primal value of the unchanged solution.
    pub fn objective(&self, c: f64) -> f64 {
        self.norm + c / self.c * self.loss
    }
}

/// Largest `C'` with a relative gap of at most `tol`; see the module's description. `c` itself if the dual
/// value is useless.
pub fn accepted_until(c: f64, norm: f64, loss: f64, dual: f64, tol: f64) -> f64 {
    let room = (1.0 + tol) * dual - norm;
    if !(dual > 0.0 && room >= 0.0) {
        c
    } else if loss == 0.0 {
        f64::INFINITY
    } else {
        (c * room / loss).max(c)
    }
}

/// Whether a fit at the last value, `far`, is likely to prove that the solution `now` lasts until there: if
/// what the losses have above their limit falls with the square of `C`, as it does where weights settle, the
/// one before tells how much is left.
pub fn looks_settled(before: &AcceptedFit, now: &AcceptedFit, far: f64, tol: f64) -> bool {
    let fallen = before.loss / before.c - now.loss / now.c;
    let left = fallen / ((now.c / before.c).powi(2) - 1.0);
    before.c < now.c && now.c < far && left * far <= tol * now.objective(far)
}

/// What a lane keeps of a solution, to start from and to predict with.
pub trait Saved: Sized {
    /// What the lengths of the arrays follow from.
    type Shape;
    /// Number of arrays.
    const ARRAYS: usize;

    /// The solution as arrays of a state; the first is not empty.
    fn arrays(&self, accepted: &AcceptedFit) -> Vec<Vec<f64>>;

    /// What [`Self::arrays`] has made arrays of.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] and [`crate::Error::Parameter`] for the arrays of another search.
    fn rebuild(arrays: &[Vec<f64>], shape: Self::Shape) -> Result<(AcceptedFit, Self)>;
}

/// One problem of one fold, between two values of `C`.
#[derive(Clone, Debug)]
pub struct SearchLane<T> {
    /// The last fit, once there is one.
    pub solution: Option<(AcceptedFit, T)>,
    /// The held-out rows are predicted from the present weights.
    pub is_scored: bool,
}

impl<T> Default for SearchLane<T> {
    fn default() -> Self {
        Self { solution: None, is_scored: false }
    }
}

impl<T: Saved> SearchLane<T> {
    /// The solution, if it is accepted at `c`.
    pub fn accepted_at(&self, c: f64) -> Option<&(AcceptedFit, T)> {
        self.solution.as_ref().filter(|(accepted, _)| accepted.c <= c && c <= accepted.until)
    }

    /// The arrays of some lanes, one after the other; those of a lane without a fit are empty.
    pub fn arrays(lanes: &[Self]) -> Vec<Vec<f64>> {
        let arrays = |lane: &Self| match &lane.solution {
            Some((accepted, kept)) => kept.arrays(accepted),
            None => vec![Vec::new(); T::ARRAYS],
        };
        lanes.iter().flat_map(arrays).collect()
    }

    /// The lanes that [`Self::arrays`] has made arrays of.
    ///
    /// # Errors
    /// Those of [`Saved::rebuild`].
    pub fn rebuild(arrays: &[Vec<f64>], shape: impl Fn(usize) -> T::Shape) -> Result<Vec<Self>> {
        let lane = |(number, arrays): (usize, &[Vec<f64>])| {
            let is_empty = arrays[0].is_empty();
            let solution = (!is_empty).then(|| T::rebuild(arrays, shape(number))).transpose()?;
            Ok(Self { solution, is_scored: false })
        };
        arrays.chunks_exact(T::ARRAYS).enumerate().map(lane).collect()
    }
}

/// What one lane did at one `C`.
pub struct Done {
    /// As in [`SearchStep`], of this lane.
    pub passes: f64,
    /// As in [`SearchStep`], of this lane.
    pub n_iter: usize,
    /// The requested accuracy was reached.
    pub is_converged: bool,
    /// The solution stayed as it was.
    pub is_unchanged: bool,
    /// Primal value of the solution.
    pub objective: f64,
    /// Largest `C` at which the solution is accepted unchanged.
    pub until: f64,
}

/// The step of all lanes together, with the decision values after it.
pub fn step(c: f64, done: &[Done], decisions: &Arc<Vec<Vec<f64>>>) -> SearchStep {
    SearchStep {
        c,
        passes: done.iter().map(|d| d.passes).sum(),
        n_iter: done.iter().map(|d| d.n_iter).sum(),
        inner: 0,
        is_unchanged: done.iter().all(|d| d.is_unchanged),
        starts_near: false,
        is_converged: done.iter().all(|d| d.is_converged),
        unchanged_until: done.iter().map(|d| d.until).fold(f64::INFINITY, f64::min).max(c),
        objective: done.iter().map(|d| d.objective).collect(),
        decisions: Arc::clone(decisions),
        weights: None,
        seconds: 0.0,
        is_replayed: false,
    }
}

/// A fit of one lane at one `C`.
pub struct LaneFit<T> {
    /// How long it lasts.
    pub accepted: AcceptedFit,
    /// What is kept of it.
    pub kept: T,
    /// As in [`Done`].
    pub passes: f64,
    /// As in [`Done`].
    pub n_iter: usize,
    /// As in [`Done`].
    pub is_converged: bool,
    /// As in [`Done`].
    pub objective: f64,
    /// Decision values of the held-out rows.
    pub decisions: Vec<f64>,
}

/// How lanes are fitted, each by itself.
pub trait LaneFits: Sync {
    /// What a lane keeps.
    type Kept: Saved + Send;
    /// Whether a state has the decision values too, since what is kept does not tell them.
    const SAVES_DECISIONS: bool;

    /// Whether lanes are fitted side by side; else one after the other, each with all threads and memory.
    const SIDE_BY_SIDE: bool = true;

    /// Number of lanes.
    fn n_lanes(&self) -> usize;

    /// The shape of what a lane keeps.
    fn shape(&self, lane: usize) -> <Self::Kept as Saved>::Shape;

    /// Fits a lane at `c`, from its last solution if there is one.
    ///
    /// # Errors
    /// Those of the solver.
    fn fit_at(
        &self,
        lane: usize,
        c: f64,
        last: Option<(AcceptedFit, Self::Kept)>,
        monitor: &dyn Monitor,
    ) -> Result<LaneFit<Self::Kept>>;

    /// Lanes that are fitted at once at `c`, in groups; all others are moved by themselves.
    fn at_once(&self, _c: f64, _lanes: &[SearchLane<Self::Kept>]) -> Vec<Vec<usize>> {
        Vec::new()
    }

    /// [`Self::fit_at`] for the lanes of such a group.
    ///
    /// # Errors
    /// Those of the solver.
    fn fit_at_once(
        &self,
        lanes: &[usize],
        c: f64,
        last: Vec<Option<(AcceptedFit, Self::Kept)>>,
        monitor: &dyn Monitor,
    ) -> Result<Vec<LaneFit<Self::Kept>>> {
        lanes.iter().zip(last).map(|(lane, last)| self.fit_at(*lane, c, last, monitor)).collect()
    }

    /// The weights of a lane, one problem or class after the other, where they are sparse.
    fn weights(&self, _: &Self::Kept) -> Option<Vec<SparseWeights>> {
        None
    }

    /// Decision values of the held-out rows of a lane, where what is kept tells them.
    fn decisions(&self, lane: usize, kept: &Self::Kept) -> Option<Vec<f64>>;

    /// Writes the decision values of a lane into those of all.
    fn write_decisions(&self, lane: usize, decisions: Vec<f64>, all: &mut [Vec<f64>]);
}

/// The route of lanes that are fitted each by itself, as parallel tasks.
pub struct LaneRoute<'a, F: LaneFits> {
    fits: F,
    monitor: &'a dyn Monitor,
    /// The lanes.
    pub lanes: Vec<SearchLane<F::Kept>>,
    decisions: Arc<Vec<Vec<f64>>>,
}

impl<'a, F: LaneFits> LaneRoute<'a, F> {
    /// Starts before the first value of `C`.
    pub fn new(setup: &'a LaneSetup<'a>, fits: F) -> Self {
        Self::with_decisions(fits, setup.no_decisions(), setup.monitor)
    }

    /// The same, with the decision values of zero weights.
    pub fn with_decisions(fits: F, decisions: Vec<Vec<f64>>, monitor: &'a dyn Monitor) -> Self {
        let lanes = (0..fits.n_lanes()).map(|_| SearchLane::default()).collect();
        Self { fits, monitor, lanes, decisions: Arc::new(decisions) }
    }

    /// How its lanes are fitted.
    #[cfg(test)]
    pub(super) fn fits(&self) -> &F {
        &self.fits
    }

    /// The weights of all lanes, where they are sparse.
    fn weights(&self) -> Option<Arc<Vec<SparseWeights>>> {
        let of_lane = |lane: &SearchLane<F::Kept>| self.fits.weights(&lane.solution.as_ref()?.1);
        let all = self.lanes.iter().map(of_lane).collect::<Option<Vec<_>>>()?;
        Some(Arc::new(all.into_iter().flatten().collect()))
    }
}

/// A lane and its number.
type Numbered<'l, T> = (usize, &'l mut SearchLane<T>);

/// What a lane did, and its decision values, if they are new.
type Moved = (Done, Option<Vec<f64>>);

/// Moves one lane to `c`.
fn advance<F: LaneFits>(
    fits: &F,
    (number, lane): Numbered<'_, F::Kept>,
    c: f64,
    monitor: &dyn Monitor,
) -> Result<Moved> {
    if let Some((accepted, kept)) = lane.accepted_at(c) {
        let decisions = if lane.is_scored { None } else { fits.decisions(number, kept) };
        let (objective, until) = (accepted.objective(c), accepted.until);
        lane.is_scored = true;
        let done = Done { passes: 0.0, n_iter: 0, is_converged: true, is_unchanged: true, objective, until };
        return Ok((done, decisions));
    }
    Ok(settle(fits.fit_at(number, c, lane.solution.take(), monitor)?, lane))
}

/// Moves the lanes of a group to `c`.
fn advance_at_once<F: LaneFits>(
    fits: &F,
    group: &mut [Numbered<'_, F::Kept>],
    c: f64,
    monitor: &dyn Monitor,
) -> Result<Vec<Moved>> {
    let (numbers, last): (Vec<usize>, Vec<_>) =
        group.iter_mut().map(|(number, lane)| (*number, lane.solution.take())).unzip();
    let found = fits.fit_at_once(&numbers, c, last, monitor)?;
    Ok(found.into_iter().zip(group).map(|(fit, (_, lane))| settle(fit, lane)).collect())
}

/// Leaves a new fit with its lane.
fn settle<T>(fit: LaneFit<T>, lane: &mut SearchLane<T>) -> Moved {
    let LaneFit { accepted, kept, passes, n_iter, is_converged, objective, decisions } = fit;
    let done = Done { passes, n_iter, is_converged, is_unchanged: false, objective, until: accepted.until };
    *lane = SearchLane { solution: Some((accepted, kept)), is_scored: true };
    (done, Some(decisions))
}

impl<F: LaneFits> Route for LaneRoute<'_, F> {
    fn advance(&mut self, c: f64) -> Result<SearchStep> {
        let (fits, watch) = (&self.fits, Watch::new(self.monitor, c, self.lanes.len()));
        let groups = fits.at_once(c, &self.lanes);
        let mut task_of: Vec<Option<usize>> = vec![None; self.lanes.len()];
        for (task, group) in groups.iter().enumerate() {
            group.iter().for_each(|&lane| task_of[lane] = Some(task));
        }
        let mut tasks: Vec<Vec<Numbered<'_, F::Kept>>> =
            groups.iter().map(|group| Vec::with_capacity(group.len())).collect();
        for (lane, task) in self.lanes.iter_mut().enumerate().zip(task_of) {
            match task {
                Some(task) => tasks[task].push(lane),
                None => tasks.push(vec![lane]),
            }
        }
        let run = |task: usize, lanes: &mut Vec<Numbered<'_, F::Kept>>| {
            let moved = if task < groups.len() {
                advance_at_once(fits, lanes, c, &watch)?
            } else {
                let alone = lanes.iter_mut().map(|(number, lane)| advance(fits, (*number, lane), c, &watch));
                alone.collect::<Result<_>>()?
            };
            moved.iter().for_each(|(done, _)| watch.finish(done.passes));
            Ok(moved)
        };
        let moved: Vec<Vec<Moved>> = if F::SIDE_BY_SIDE {
            parallel::try_map(&mut tasks, run)?
        } else {
            tasks.iter_mut().enumerate().map(|(task, lanes)| run(task, lanes)).collect::<Result<_>>()?
        };
        let numbers = tasks.iter().flatten().map(|(number, _)| *number);
        let mut moved: Vec<(usize, Moved)> = numbers.zip(moved.into_iter().flatten()).collect();
        moved.sort_unstable_by_key(|(number, _)| *number);
        let (done, decisions): (Vec<Done>, Vec<Option<Vec<f64>>>) =
            moved.into_iter().map(|(_, moved)| moved).unzip();
        for (number, decisions) in decisions.into_iter().enumerate() {
            if let Some(decisions) = decisions {
                self.fits.write_decisions(number, decisions, &mut Arc::make_mut(&mut self.decisions)[..]);
            }
        }
        Ok(SearchStep { weights: self.weights(), ..step(c, &done, &self.decisions) })
    }

    fn state(&self) -> RouteState {
        let mut arrays = SearchLane::arrays(&self.lanes);
        if F::SAVES_DECISIONS {
            arrays.extend(self.decisions.iter().cloned());
        }
        RouteState(arrays)
    }

    fn restore(&mut self, state: &RouteState) -> Result<()> {
        let n_lane_arrays = self.lanes.len() * F::Kept::ARRAYS;
        let n_decisions = if F::SAVES_DECISIONS { self.decisions.len() } else { 0 };
        check_length("arrays of a search state", n_lane_arrays + n_decisions, state.0.len())?;
        let (lanes, decisions) = state.0.split_at(n_lane_arrays);
        let lanes = SearchLane::rebuild(lanes, |lane| self.fits.shape(lane))?;
        for (saved, present) in decisions.iter().zip(self.decisions.iter()) {
            check_length("decision values of a search state", present.len(), saved.len())?;
        }
        self.lanes = lanes;
        if F::SAVES_DECISIONS {
            self.decisions = Arc::new(memory::copy(decisions));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Up to there, and no further, the line between both dual values accepts the solution.
        #[test]
        fn outlooks_are_the_line_between_two_dual_values(
            (norm, loss) in (0.0..10.0f64, 0.1..10.0f64), (c, factor) in (0.01..10.0f64, 1.01..1000.0f64),
            gap in 0.0..2e-3f64, share in 0.9..1.0f64,
        ) {
            let (tol, far) = (1e-3, factor * c);
            let dual = (norm + loss) / (1.0 + gap);
            let certificate = Certificate { primal: norm + loss, dual };
            let alone = AcceptedFit::new(c, norm, certificate, gap <= tol, tol);
            let dual_there = share * alone.objective(far);
            let found = alone.with_outlook(dual, (far, dual_there), tol);
            prop_assert!(found.until >= alone.until);
            let least = |at: f64| dual + (at - c) / (far - c) * (dual_there - dual);
            let excess = |at: f64| found.objective(at) / least(at) - (1.0 + tol);
            if found.until > alone.until {
                prop_assert!(excess(found.until) <= 1e-12, "{}", excess(found.until));
            }
            let beyond = found.until.max(c) * (1.0 + 1e-9);
            if beyond < far {
                prop_assert!(excess(beyond) > -1e-9, "{}", excess(beyond));
            }
        }
    }

    /// Of losses that fall towards a limit with the square of `C`, what is left is known; those that fall to
    /// zero have far to go.
    #[test]
    fn solutions_look_settled_where_losses_are_near_their_limit() {
        let (tol, far) = (1e-3f64, 1024.0f64);
        let at =
            |c: f64, limit: f64| AcceptedFit { c, norm: 10.0, loss: c * (limit + 1.0 / (c * c)), until: c };
        for limit in [1.0, 100.0] {
            let enough = (1.0 / (tol * limit)).sqrt();
            let looks = |c: f64, ratio: f64| looks_settled(&at(c / ratio, limit), &at(c, limit), far, tol);
            for ratio in [1.05, 2.0, 10.0] {
                assert!(looks(1.01 * enough, ratio) && !looks(0.98 * enough, ratio), "{limit} {ratio}");
                assert!(!looks_settled(&at(far / ratio, limit), &at(far, limit), far, tol));
            }
        }
        assert!(!looks_settled(&at(32.0, 0.0), &at(64.0, 0.0), far, tol));
    }
}
