//! The route of fits with a penalty other than the square ([`crate::fit::penalised`]), to a duality gap.
//!
//! Lanes are independent tasks ([`LaneRoute`]); each starts the next `C` from its weights. The first `C` is
//! the largest at which all penalised weights of all lanes are zero ([`lower_bound`]); a solution that stays
//! accepted at the next `C` is kept as it is, if need be on the evidence of a fit at the last value, see
//! [`super::lane`].
//!
//! Memory: one copy of the data by columns for all lanes, and for each lane the weights.

use super::folds::{FoldRows, LaneSetup};
use super::lane::{AcceptedFit, LaneFit, LaneFits, LaneRoute, Saved, looks_settled};
use super::{GAP_PER_TOL, StopRule};
use crate::fit::penalised::{PenalisedSolution, solve, start};
use crate::fit::{Monitor, Params, Status, check_length};
use crate::labels::penalised::PenalisedColumns;
use crate::labels::sparse_weights::SparseWeights;
use crate::matrix::Rows;
use crate::memory::CollectLarge;
use crate::{Result, memory, parallel};

/// Fits of binary problems.
pub struct PenalisedFits<'a> {
    setup: &'a LaneSetup<'a>,
    all: PenalisedColumns,
}

/// The route of such fits, before the first value of `C`.
pub fn route<'a>(setup: &'a LaneSetup<'a>, all: PenalisedColumns) -> LaneRoute<'a, PenalisedFits<'a>> {
    LaneRoute::new(setup, PenalisedFits { setup, all })
}

/// The largest `C` at which all lanes have penalised weights of zero only; `None` where there is no such.
///
/// # Errors
/// Those of [`start::largest_null_cost`].
pub fn lower_bound(setup: &LaneSetup<'_>, all: &PenalisedColumns) -> Result<Option<f64>> {
    least_of_lanes(setup.n_lanes(), |lane| {
        let (y, cost) = labels_and_costs(setup, lane, 1.0);
        start::largest_null_cost(&all.problem(&y, &cost), setup.settings.loss, setup.monitor)
    })
}

/// The least of the values of `C` that there are.
///
/// # Errors
/// Those of `of_lane`.
pub fn least_of_lanes(
    n_lanes: usize,
    of_lane: impl Fn(usize) -> Result<Option<f64>> + Sync,
) -> Result<Option<f64>> {
    let bounds: Vec<Option<f64>> = parallel::try_map(0..n_lanes, |_, lane: usize| of_lane(lane))?;
    Ok(bounds.into_iter().flatten().reduce(f64::min))
}

/// Labels and costs of all rows at `c`; those held out have none.
fn labels_and_costs(setup: &LaneSetup<'_>, lane: usize, c: f64) -> (Vec<f64>, Vec<f64>) {
    let n = setup.rows.n_rows();
    let FoldRows { train, weight, .. } = setup.part(lane);
    let (mut y, mut cost) = (memory::filled(1.0, n), memory::zeros(n));
    for ((&i, weight), sign) in train.iter().zip(weight).zip(setup.signs(lane)) {
        y[i as usize] = sign;
        cost[i as usize] += c * weight;
    }
    (y, cost)
}

/// Newton steps of a fit at the last value at most, as a multiple of those of the fit before it, of which at
/// least two count: from a solution that lasts until there it takes about as many.
const OUTLOOK_STEPS: usize = 5;

/// The fit at `c` from the last one, and how long it lasts, if need be by a fit at the last value. `fit`
/// takes a value, weights to start from and the largest number of steps.
///
/// # Errors
/// Those of `fit`.
pub fn fit_with_outlook(
    setup: &LaneSetup<'_>,
    c: f64,
    last: Option<(AcceptedFit, PenalisedWeights)>,
    tol: f64,
    fit: impl Fn(f64, Option<&[f64]>, usize) -> Result<PenalisedSolution>,
) -> Result<(PenalisedSolution, AcceptedFit)> {
    let (max_iter, far) = (setup.settings.params.max_iter, setup.last);
    let mut found = fit(c, last.as_ref().map(|(_, kept)| &kept.0[..]), max_iter)?;
    let is_converged = found.status == Status::Converged;
    let accepted = AcceptedFit::new(c, found.penalty, found.certificate, is_converged, tol);
    let is_asked = setup.stop == StopRule::Exact && is_converged && accepted.until < far;
    let is_settled = |before: AcceptedFit| looks_settled(&before, &accepted, far, tol);
    if !(is_asked && last.is_some_and(|(before, _)| is_settled(before))) {
        return Ok((found, accepted));
    }
    let enough = OUTLOOK_STEPS * found.n_iter.max(2);
    let there = fit(far, Some(&found.w), max_iter.min(enough))?;
    found.passes += there.passes;
    found.n_iter += there.n_iter;
    let accepted = accepted.with_outlook(found.certificate.dual, (far, there.certificate.dual), tol);
    Ok((found, accepted))
}

/// What a lane keeps of a fit: the weights of all columns, that of the intercept's last; of several classes
/// one class after the other.
pub struct PenalisedWeights(pub Vec<f64>);

impl PenalisedWeights {
    /// A fit with the decision values of the held-out rows.
    pub fn of_fit(found: PenalisedSolution, accepted: AcceptedFit, decisions: Vec<f64>) -> LaneFit<Self> {
        LaneFit {
            accepted,
            passes: found.passes,
            n_iter: found.n_iter,
            is_converged: found.status == Status::Converged,
            objective: accepted.objective(accepted.c),
            decisions,
            kept: Self(found.w),
        }
    }
}

impl LaneFits for PenalisedFits<'_> {
    type Kept = PenalisedWeights;
    const SAVES_DECISIONS: bool = false;

    fn n_lanes(&self) -> usize {
        self.setup.n_lanes()
    }

    fn shape(&self, _: usize) -> usize {
        self.all.columns.len()
    }

    fn fit_at(
        &self,
        lane: usize,
        c: f64,
        last: Option<(AcceptedFit, PenalisedWeights)>,
        monitor: &dyn Monitor,
    ) -> Result<LaneFit<PenalisedWeights>> {
        let settings = self.setup.settings;
        let tol = GAP_PER_TOL * settings.params.tol;
        let fit = |c: f64, start: Option<&[f64]>, max_iter: usize| {
            let params = Params { tol, max_iter, ..settings.params };
            let (y, cost) = labels_and_costs(self.setup, lane, c);
            solve(&self.all.problem(&y, &cost), settings.loss, &params, start, monitor)
        };
        let (found, accepted) = fit_with_outlook(self.setup, c, last, tol, fit)?;
        let decisions = self.of_held_out(lane, &found.w);
        Ok(PenalisedWeights::of_fit(found, accepted, decisions))
    }

    fn weights(&self, kept: &PenalisedWeights) -> Option<Vec<SparseWeights>> {
        let (w, intercept) = self.all.split(&kept.0);
        Some(vec![SparseWeights::of(w, intercept)])
    }

    fn decisions(&self, lane: usize, kept: &PenalisedWeights) -> Option<Vec<f64>> {
        Some(self.of_held_out(lane, &kept.0))
    }

    fn write_decisions(&self, lane: usize, decisions: Vec<f64>, all: &mut [Vec<f64>]) {
        self.setup.write_decisions(lane, &decisions, all);
    }
}

impl PenalisedFits<'_> {
    fn of_held_out(&self, lane: usize, w: &[f64]) -> Vec<f64> {
        let (w, intercept) = self.all.split(w);
        self.setup.decisions(lane, w, intercept)
    }
}

impl Saved for PenalisedWeights {
    type Shape = usize;
    /// Facts and nonzero weights: column numbers, weights.
    const ARRAYS: usize = 3;

    fn arrays(&self, accepted: &AcceptedFit) -> Vec<Vec<f64>> {
        let AcceptedFit { c, norm, loss, until } = *accepted;
        let nonzero: Vec<usize> = (0..self.0.len()).filter(|&j| self.0[j] != 0.0).collect_large();
        let columns = nonzero.iter().map(|&j| j as f64).collect_large();
        let weights = nonzero.iter().map(|&j| self.0[j]).collect_large();
        vec![vec![c, norm, loss, until], columns, weights]
    }

    fn rebuild(arrays: &[Vec<f64>], n_weights: usize) -> Result<(AcceptedFit, Self)> {
        let [facts, columns, weights] = arrays else { unreachable!("a lane has three arrays") };
        check_length("facts of a search state", 4, facts.len())?;
        check_length("weights of a search state", columns.len(), weights.len())?;
        let mut w = memory::zeros(n_weights);
        for (&j, weight) in columns.iter().zip(weights) {
            let largest = n_weights.saturating_sub(1);
            let column = if j >= 0.0 && j.fract() == 0.0 { j as usize } else { usize::MAX };
            let place = w.get_mut(column).ok_or(crate::Error::Shape {
                what: "column of a search state",
                expected: largest,
                found: column,
            })?;
            *place = *weight;
        }
        let [c, norm, loss, until] = facts[..] else { unreachable!("the number of facts is checked") };
        Ok((AcceptedFit { c, norm, loss, until }, Self(w)))
    }
}
