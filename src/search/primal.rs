//! The primal route of a search: Newton over groups of lanes, to a gradient norm and a height of the
//! objective.
//!
//! Every pass over the data serves all lanes of a group (folds, or classes x folds). A row held out of a fold
//! has cost 0 in its lane, so nothing is copied per fold, and its decision values come out of the same sweep.
//! What a step to the next `C` costs:
//!
//! * **Nothing to start.** Weights `w`, decision values and `h = sum_i v_i xi'(m_i) y_i x_i` are kept; the
//!   gradient at any `C` is `w + C h`, and the norm at zero is computed once.
//! * **Nothing where nothing changes.** A lane accepts its weights at `C` when `|w + C h| <= C tau` with `tau
//!   = tol min(pos, neg) / n |h(0)|` (Chu15, eq. 28) and, in a search to the exact end, its objective is at
//!   most `tol` of itself above the minimum, by the bound `1/2 |w + C h|^2` or by what the last step was to
//!   gain. Gradient and bound are quadratic inequalities in `C`, so the interval on which they hold is known
//!   exactly.
//! * **A few products to end.** Where the gradient is small enough at every further `C` and the bound is not,
//!   the model at the largest `C` tells whether a minimisation there would gain more than `tol`. If not, the
//!   weights hold at all `C` between as well: the objective at fixed weights is linear in `C`, and its
//!   minimum is concave.
//!
//! Deviation: Chu15, eq. (28), alone accepts weights far from the minimum where the gradient at zero is large
//! beside those later on. Hashed text (30,000 rows, 16,384 columns, three labels, two losses, `tol` 0.01):
//! objectives of up to 2.3 times their minimum, accuracies 0.25 points off and searches that ended before the
//! best; now 1.019 and 0.09 points, for 1.04 to 1.4 times the passes. For the height alone up to three
//! steps of few products are taken at each `C`, so objectives may stay above it where steps take many: mnist
//! and 20news, far beyond the best `C`. a9a, w8a, covtype, ijcnn1, madelon: as many passes as before, within
//! a tenth.
//!
//! Lanes are grouped class by class ([`LaneNumbers::in_groups`]), so that the folds of a class are side by
//! side. Ten classes of mnist (10,000 rows, to `C` = 1024): 51 and 32 s with the squared hinge, whose passes
//! fall from 3,609 to 1,998, 38 and 36 with the logistic loss; 20 of 20news, squared hinge, 36 and 32 s.
//!
//! Memory: per group of 8 lanes, six blocks of columns x 8 and four of rows x 8 numbers, a byte for each row
//! and lane, and the private blocks of parallel sums; lanes are grouped by eight.

use std::ops::Range;
use std::sync::Arc;

use super::folds::{FoldRows, LaneNumbers, LaneSetup};
use super::terms::{FoldTerms, GroupLanes};
use super::{Route, RouteState, SearchSettings, SearchStep, StopRule};
use crate::fit::newton::row_state::{RowState, TermPasses};
use crate::fit::newton::{InMemory, InnerProducts, Newton, Work};
use crate::fit::stop::NewtonStop;
use crate::fit::{Params, Problem, Status, check_length};
use crate::labels::Labels;
use crate::loss::{Loss, with_smooth_loss};
use crate::{Result, memory};

/// Lanes of a group: one cache line of numbers. Tried: groups of four and of one for few lanes, which doubled
/// the time to compile the package.
pub const LANES: usize = 8;

/// Where the rows of a group of lanes are, and what is asked of them beyond the steps of Newton.
///
/// # Errors
/// Of all methods: those of the place, none in memory.
pub trait Place {
    /// The rows.
    type Rows: TermPasses<Self::Terms, LANES>;
    /// The objective, as the rows are told of it.
    type Terms;

    /// The objective.
    fn terms(&self) -> &Self::Terms;

    /// Before a step: brings back what the rows have forgotten of the group, if anything.
    #[allow(clippy::missing_errors_doc)] // of the trait
    fn wake(&self, _: &mut Newton<'_, Self::Rows, LANES>) -> Result<()> {
        Ok(())
    }

    /// Decision values of the rows held out of each lane.
    #[allow(clippy::missing_errors_doc)]
    fn held_out(&self, newton: &mut Newton<'_, Self::Rows, LANES>, lanes: &[usize]) -> Result<Vec<Vec<f64>>>;

    /// The decision values of all rows for a state; none where they follow from the weights.
    fn decided(newton: &Newton<'_, Self::Rows, LANES>) -> Vec<f64>;

    /// Takes over decision values from a state, those of zero weights for `None`.
    #[allow(clippy::missing_errors_doc)]
    fn restore(&self, newton: &mut Newton<'_, Self::Rows, LANES>, decided: Option<&[f64]>) -> Result<()>;
}

/// What the route has to know of the lanes, wherever the rows are.
#[derive(Clone)]
pub struct LaneFacts<'a> {
    labels: Labels<'a>,
    parts: &'a [FoldRows<'a>],
    tol: f64,
    max_iter: usize,
    exact_to: Option<f64>,
}

impl<'a> LaneFacts<'a> {
    /// Those of a search that may go to `last`, unless `stop` ends it before.
    pub fn new(
        labels: Labels<'a>,
        parts: &'a [FoldRows<'a>],
        settings: &SearchSettings,
        last: f64,
        stop: StopRule,
    ) -> Self {
        let Params { tol, max_iter, .. } = settings.params;
        Self { labels, parts, tol, max_iter, exact_to: (stop == StopRule::Exact).then_some(last) }
    }

    /// Those of a search in memory.
    pub fn of(setup: &LaneSetup<'a>) -> Self {
        Self::new(*setup.labels, setup.parts, setup.settings, setup.last, setup.stop)
    }

    fn numbers(&self) -> LaneNumbers {
        LaneNumbers { n_folds: self.parts.len(), n_problems: self.labels.n_problems() }
    }

    /// The lanes in a part of the order of groups.
    pub fn lanes(&self, part: Range<usize>) -> Vec<usize> {
        self.numbers().in_groups(part)
    }

    /// `tau / |h(0)|` of a lane.
    fn share(&self, lane: usize) -> f64 {
        let (numbers, labels) = (self.numbers(), &self.labels);
        let part = &self.parts[numbers.fold(lane)];
        self.tol * smaller_share(&labels.signs(numbers.problem(lane), &part.train), &part.weight)
    }
}

/// Primal solutions of all lanes.
pub struct Primal<'a> {
    numbers: LaneNumbers,
    groups: Vec<Box<dyn Group + 'a>>,
    decisions: Arc<Vec<Vec<f64>>>,
}

/// Lanes that move together; hides the loss and where the rows are.
pub trait Group {
    /// Moves to `c`.
    ///
    /// # Errors
    /// Those of Newton, and of the place where the rows are.
    fn advance(&mut self, c: f64) -> Result<Moved>;
    /// Lanes of the search that are in the group.
    fn lanes(&self) -> &[usize];
    /// Decision values of the rows held out of each lane.
    ///
    /// # Errors
    /// Those of the place where the rows are.
    fn held_out(&mut self) -> Result<Vec<Vec<f64>>>;
    /// All that [`Self::advance`] depends on, in a fixed number of arrays.
    fn state(&self) -> [Vec<f64>; ARRAYS];
    /// Takes over a state.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for that of another search, and those of the place where the rows are.
    fn restore(&mut self, arrays: &[Vec<f64>]) -> Result<()>;
    /// Takes over weights and intercepts of all lanes from fits that have gone before.
    ///
    /// # Errors
    /// Those of Newton, and of the place where the rows are.
    fn start_at(&mut self, weights: &[(&[f64], f64)]) -> Result<()>;
}

/// What a group did.
pub struct Moved {
    work: Work,
    is_unchanged: bool,
    starts_near: bool,
    is_converged: bool,
    unchanged_until: f64,
    objective: Vec<f64>,
}

impl<'a> Primal<'a> {
    /// Starts before the first value of `C`, on rows in memory.
    ///
    /// # Errors
    /// Those of [`FoldTerms::new`].
    pub fn new(setup: &'a LaneSetup<'a>) -> Result<Self> {
        let facts = LaneFacts::of(setup);
        Self::over(&facts, |lanes| group(setup, &facts, lanes))
    }

    /// The same, with groups that `group` makes of parts of their order ([`LaneFacts::lanes`]).
    ///
    /// # Errors
    /// Those of `group`.
    pub fn over(
        facts: &LaneFacts<'_>,
        group: impl Fn(Range<usize>) -> Result<Box<dyn Group + 'a>>,
    ) -> Result<Self> {
        let n_lanes = facts.numbers().n_lanes();
        let groups = (0..n_lanes).step_by(LANES).map(|first| group(first..(first + LANES).min(n_lanes)));
        let groups = groups.collect::<Result<_>>()?;
        Ok(Self {
            numbers: facts.numbers(),
            groups,
            decisions: Arc::new(facts.numbers().no_decisions(facts.parts)),
        })
    }
}

/// The lanes of a search in memory that are a part of their order, at zero.
///
/// # Errors
/// Those of [`FoldTerms::new`].
pub fn group<'a>(
    setup: &'a LaneSetup<'a>,
    facts: &LaneFacts<'_>,
    part: Range<usize>,
) -> Result<Box<dyn Group + 'a>> {
    let problem =
        Problem { rows: setup.rows, ids: None, y: &[], cost: &[], intercept: setup.settings.intercept };
    let newton = InMemory::new(&problem, part.len(), false, setup.monitor);
    with_smooth_loss!(
        setup.settings.loss,
        loss => {
            let here = Here { setup, terms: FoldTerms::new(loss, setup, &facts.lanes(part.clone()))? };
            Ok(Box::new(LaneGroup::new(newton, here, facts, part)))
        },
        else unreachable!("the driver takes this route for smooth losses only")
    )
}

/// Writes the held-out decision values of a group into those of all.
fn write(numbers: LaneNumbers, group: &mut dyn Group, all: &mut [Vec<f64>]) -> Result<()> {
    let found = group.held_out()?;
    for (k, values) in group.lanes().iter().zip(found) {
        numbers.write_decisions(*k, &values, all);
    }
    Ok(())
}

impl Route for Primal<'_> {
    fn advance(&mut self, c: f64) -> Result<SearchStep> {
        let mut step = SearchStep {
            c,
            passes: 0.0,
            n_iter: 0,
            inner: 0,
            is_unchanged: true,
            starts_near: true,
            is_converged: true,
            unchanged_until: f64::INFINITY,
            objective: memory::zeros(self.numbers.n_lanes()),
            decisions: Arc::clone(&self.decisions),
            weights: None,
            seconds: 0.0,
            is_replayed: false,
        };
        for group in &mut self.groups {
            let moved = group.advance(c)?;
            step.passes += moved.work.passes;
            step.n_iter += moved.work.steps;
            step.inner += moved.work.products;
            step.is_unchanged &= moved.is_unchanged;
            step.starts_near &= moved.starts_near;
            step.is_converged &= moved.is_converged;
            step.unchanged_until = step.unchanged_until.min(moved.unchanged_until);
            for (k, value) in group.lanes().iter().zip(moved.objective) {
                step.objective[*k] = value;
            }
            if !moved.is_unchanged {
                drop(std::mem::take(&mut step.decisions));
                let all = Arc::make_mut(&mut self.decisions);
                write(self.numbers, group.as_mut(), all)?;
                step.decisions = Arc::clone(&self.decisions);
            }
        }
        Ok(step)
    }

    fn state(&self) -> RouteState {
        RouteState(self.groups.iter().flat_map(|group| group.state()).collect())
    }

    fn restore(&mut self, state: &RouteState) -> Result<()> {
        let arrays = state.lanes(self.groups.len(), ARRAYS)?;
        for (group, arrays) in self.groups.iter_mut().zip(arrays.chunks_exact(ARRAYS)) {
            group.restore(arrays)?;
            let all = Arc::make_mut(&mut self.decisions);
            write(self.numbers, group.as_mut(), all)?;
        }
        Ok(())
    }
}

/// Rows in memory.
struct Here<'a, T> {
    setup: &'a LaneSetup<'a>,
    terms: FoldTerms<'a, T, GroupLanes<LANES>>,
}

impl<'a, T: Loss> Place for Here<'a, T> {
    type Rows = RowState<'a, LANES>;
    type Terms = FoldTerms<'a, T, GroupLanes<LANES>>;

    fn terms(&self) -> &Self::Terms {
        &self.terms
    }

    fn held_out(&self, newton: &mut Newton<'_, Self::Rows, LANES>, lanes: &[usize]) -> Result<Vec<Vec<f64>>> {
        let z = &newton.rows.z;
        Ok(self.setup.of_held_out(lanes, |i, l| z[i][l]))
    }

    fn decided(newton: &Newton<'_, Self::Rows, LANES>) -> Vec<f64> {
        memory::copy(newton.rows.z.as_flattened())
    }

    fn restore(&self, newton: &mut Newton<'_, Self::Rows, LANES>, decided: Option<&[f64]>) -> Result<()> {
        let z = newton.rows.z.as_flattened_mut();
        match decided {
            None => z.fill(0.0),
            Some(decided) => {
                check_length("decision values of a solver state", z.len(), decided.len())?;
                z.copy_from_slice(decided);
            }
        }
        Ok(())
    }
}

/// Up to [`LANES`] lanes with the same loss; the rest is padding.
pub struct LaneGroup<'a, P: Place> {
    newton: Newton<'a, P::Rows, LANES>,
    place: P,
    lanes: Vec<usize>,
    /// Where their part of the order begins: named in a state where earlier versions had another order.
    first: Option<usize>,
    tol: f64,
    max_iter: usize,
    /// Largest `C` that the search may visit, if objectives are to be low up to there.
    exact_to: Option<f64>,
    /// `tau / |h(0)|` per lane.
    share: [f64; LANES],
    /// `tau` per lane, once it is known.
    tau: Option<[f64; LANES]>,
    /// Largest `C` at which all weights are accepted unchanged.
    until: f64,
}

/// Arrays of a group's state, empty before the first step: `tau`, the last `until` and where its lanes
/// begin, and those of the solver.
pub const ARRAYS: usize = 4;

impl<'a, P: Place> LaneGroup<'a, P> {
    /// Begins at zero, where `newton` and its rows are.
    pub fn new(
        newton: Newton<'a, P::Rows, LANES>,
        place: P,
        facts: &LaneFacts<'_>,
        part: Range<usize>,
    ) -> Self {
        let first = (facts.numbers().n_problems > 1).then_some(part.start);
        let lanes = facts.lanes(part);
        let share = std::array::from_fn(|l| lanes.get(l).map_or(0.0, |k| facts.share(*k)));
        let LaneFacts { tol, max_iter, exact_to, .. } = *facts;
        Self { newton, place, lanes, first, tol, max_iter, exact_to, share, tau: None, until: 0.0 }
    }

    /// Evaluates where the lanes are; `tau`, which the first of these points, zero, decides.
    fn tau(&mut self) -> Result<[f64; LANES]> {
        self.place.wake(&mut self.newton)?;
        self.newton.evaluate(self.place.terms())?;
        Ok(*self.tau.get_or_insert_with(|| {
            let at_zero = self.newton.products(1.0);
            std::array::from_fn(|l| self.share[l] * (at_zero[l].hh + at_zero[l].intercept).sqrt())
        }))
    }

    /// Largest `C` at which all lanes accept their weights, accepted at `c`.
    fn accepted_until(&mut self, c: f64, tau: &[f64; LANES]) -> Result<f64> {
        let (products, loss, tol) = (self.newton.products(c), *self.newton.loss(), self.tol);
        let lanes = 0..self.lanes.len();
        let least = |until: &dyn Fn(usize) -> f64| lanes.clone().map(until).fold(f64::INFINITY, f64::min);
        let by_gradient = least(&|l| products[l].near_until(c, tau[l]));
        let Some(last) = self.exact_to else { return Ok(by_gradient) };
        let by_bound = least(&|l| products[l].low_until(c, loss[l], tol));
        if by_bound < last && by_gradient >= last && self.is_low(last)? {
            return Ok(by_gradient);
        }
        Ok(by_gradient.min(by_bound))
    }

    /// Whether the objectives of all lanes at another `C` are low enough, by their models.
    fn is_low(&mut self, c: f64) -> Result<bool> {
        let objective = self.objective(c);
        let most = |l| objective.get(l).map_or(f64::INFINITY, |value| self.tol * value);
        self.newton.gains_little(c, std::array::from_fn(most))
    }

    /// Whether the gradient of every lane at the present weights meets Chu15, eq. (24), at `c`.
    fn starts_near(&self, c: f64, tau: &[f64; LANES]) -> bool {
        let (products, tol) = (self.newton.products(c), self.tol);
        let at_zero = tau.iter().zip(&self.share).map(|(tau, share)| c * tau / share);
        let mut lanes = products[..self.lanes.len()].iter().zip(at_zero);
        lanes.all(|(p, at_zero)| (p.gg + c * c * p.intercept).sqrt() <= tol * at_zero)
    }

    /// Objectives at the present weights.
    fn objective(&self, c: f64) -> Vec<f64> {
        let products = self.newton.products(c);
        (0..self.lanes.len()).map(|l| 0.5 * products[l].ww + c * self.newton.loss()[l]).collect()
    }
}

impl<P: Place> Group for LaneGroup<'_, P> {
    fn advance(&mut self, c: f64) -> Result<Moved> {
        if c <= self.until {
            let (work, objective) = (Work::default(), self.objective(c));
            return Ok(Moved {
                work,
                is_unchanged: true,
                starts_near: true, // its bound is the larger one
                is_converged: true,
                unchanged_until: self.until,
                objective,
            });
        }
        self.newton.work = Work::default();
        let tau = self.tau()?;
        let starts_near = self.starts_near(c, &tau);
        let excess = self.exact_to.map(|_| self.tol);
        let stop = NewtonStop::Gradient { norm: tau.map(|tau| c * tau), excess };
        let reports = self.newton.minimise(self.place.terms(), c, &stop, self.max_iter)?;
        let reports = &reports[..self.lanes.len()];
        let is_converged = reports.iter().all(|report| report.status == Status::Converged);
        self.until = if is_converged { self.accepted_until(c, &tau)? } else { 0.0 };
        Ok(Moved {
            work: self.newton.work,
            is_unchanged: is_converged && self.newton.work.steps == 0,
            starts_near,
            is_converged,
            unchanged_until: self.until.max(c),
            objective: reports.iter().map(|report| report.certificate.primal).collect(),
        })
    }

    fn lanes(&self) -> &[usize] {
        &self.lanes
    }

    fn held_out(&mut self) -> Result<Vec<Vec<f64>>> {
        self.place.held_out(&mut self.newton, &self.lanes)
    }

    fn state(&self) -> [Vec<f64>; ARRAYS] {
        let Some(tau) = self.tau else {
            return Default::default();
        };
        let first = self.first.map(|first| first as f64);
        let facts = tau.into_iter().chain([self.until]).chain(first).collect();
        let [w, gram] = self.newton.state();
        [facts, w, P::decided(&self.newton), gram]
    }

    fn restore(&mut self, arrays: &[Vec<f64>]) -> Result<()> {
        let facts = &arrays[0];
        if facts.is_empty() {
            self.newton.reset();
            (self.tau, self.until) = (None, 0.0);
            return self.place.restore(&mut self.newton, None);
        }
        let what = "facts of a search state (those of several classes by an earlier version cannot be used)";
        check_length(what, LANES + 1 + usize::from(self.first.is_some()), facts.len())?;
        if let (Some(expected), Some(first)) = (self.first, facts.get(LANES + 1)) {
            check_length("first lane of a group of a search state", expected, *first as usize)?;
        }
        self.tau = Some(std::array::from_fn(|l| facts[l]));
        self.until = facts[LANES];
        self.newton.restore([&arrays[1], &arrays[3]])?;
        self.place.restore(&mut self.newton, Some(&arrays[2]))?;
        self.newton.evaluate(self.place.terms())
    }

    fn start_at(&mut self, weights: &[(&[f64], f64)]) -> Result<()> {
        self.tau()?;
        self.newton.reset();
        for (l, (w, b)) in weights.iter().enumerate() {
            self.newton.start_lane(l, w, *b);
        }
        self.newton.refresh()
    }
}

impl InnerProducts {
    /// Largest `C'` with `|w + C' h| <= C' tau`, where this holds at `c`.
    fn near_until(&self, c: f64, tau: f64) -> f64 {
        holds_until(c, [self.ww, self.wh, self.hh + self.intercept - tau * tau])
    }

    /// Largest `C'` with `1/2 |w + C' h|^2 <= tol (1/2 |w|^2 + C' loss)`, or `c`.
    fn low_until(&self, c: f64, loss: f64, tol: f64) -> f64 {
        holds_until(c, [(1.0 - tol) * self.ww, self.wh - tol * loss, self.hh + self.intercept])
    }
}

/// Largest `C'` with `q(C') = constant + 2 slope C' + rise C'^2 <= 0`; `c` if that does not hold there. For a
/// `q` that is not negative at 0: without a rising end it then stays so for ever, with one it does up to its
/// larger root.
fn holds_until(c: f64, [constant, slope, rise]: [f64; 3]) -> f64 {
    if constant + c * (2.0 * slope + c * rise) > 0.0 {
        return c;
    }
    if rise <= 0.0 {
        return f64::INFINITY;
    }
    let root = (slope * slope - rise * constant).max(0.0).sqrt();
    ((root - slope) / rise).max(c)
}

/// `min(pos, neg) / (pos + neg)`, in weights.
fn smaller_share(y: &[f64], weight: &[f64]) -> f64 {
    let total: f64 = weight.iter().sum();
    let positive: f64 = y.iter().zip(weight).filter(|(y, _)| **y > 0.0).map(|(_, v)| v).sum();
    positive.min(total - positive) / total
}
