//! The primal route of a search: Newton over groups of lanes, to a gradient norm.
//!
//! Every pass over the data serves all lanes of a group (folds, or classes x folds). A row held out of a fold
//! has cost 0 in its lane, so nothing is copied per fold, and its decision values come out of the same sweep.
//! What a step to the next `C` costs:
//!
//! * **Nothing to start.** Weights `w`, decision values and `h = sum_i v_i xi'(m_i) y_i x_i` are kept; the
//!   gradient at any `C` is `w + C h`, and the norm at zero is computed once.
//! * **Nothing where nothing changes.** A lane accepts its weights at `C` when `|w + C h| <= C tau` with
//!   `tau = tol min(pos, neg) / n |h(0)|` (Chu15, eq. 28): a quadratic inequality in `C`, so the interval on
//!   which the weights stay is known exactly, and with it the end of the search.
//!
//! Memory: per group of 8 lanes, six blocks of columns x 8 and four of rows x 8 numbers, a byte for each row
//! and lane, and the private blocks of parallel sums; lanes are grouped by eight.

use std::ops::Range;
use std::sync::Arc;

use super::folds::LaneSetup;
use super::terms::FoldTerms;
use super::{Route, RouteState, SearchStep};
use crate::Result;
use crate::fit::newton::{InMemory, InnerProducts, Work};
use crate::fit::stop::NewtonStop;
use crate::fit::{Problem, Status, check_length};
use crate::loss::{Loss, with_smooth_loss};
use crate::memory::CollectLarge;

/// Lanes of a group: one cache line of numbers. Tried: groups of four and of one for few lanes, which doubled
/// the time to compile the package.
const LANES: usize = 8;

/// Primal solutions of all lanes.
pub struct Primal<'a> {
    setup: &'a LaneSetup<'a>,
    groups: Vec<Box<dyn Group + 'a>>,
    decisions: Arc<Vec<Vec<f64>>>,
}

/// Lanes that move together; hides their number and the loss.
trait Group {
    /// Moves to `c`.
    fn advance(&mut self, c: f64) -> Result<Moved>;
    /// Lanes of the search that are in the group.
    fn lanes(&self) -> Range<usize>;
    /// Decision values of the held-out rows of lane `k` of the search.
    fn decisions(&self, k: usize) -> Vec<f64>;
    /// All that [`Self::advance`] depends on, in [`ARRAYS`] arrays.
    fn state(&self) -> [Vec<f64>; ARRAYS];
    fn restore(&mut self, arrays: &[Vec<f64>]) -> Result<()>;
}

/// What a group did.
struct Moved {
    work: Work,
    is_unchanged: bool,
    starts_near: bool,
    is_converged: bool,
    unchanged_until: f64,
    objective: Vec<f64>,
}

impl<'a> Primal<'a> {
    /// Starts before the first value of `C`.
    ///
    /// # Errors
    /// Those of [`FoldTerms::new`].
    pub fn new(setup: &'a LaneSetup<'a>) -> Result<Self> {
        let mut groups = Vec::new();
        let mut first = 0;
        while first < setup.n_lanes() {
            let lanes = first..(first + LANES).min(setup.n_lanes());
            first = lanes.end;
            groups.push(group(setup, lanes)?);
        }
        Ok(Self { setup, groups, decisions: Arc::new(setup.no_decisions()) })
    }
}

fn group<'a>(setup: &'a LaneSetup<'a>, lanes: Range<usize>) -> Result<Box<dyn Group + 'a>> {
    with_smooth_loss!(
        setup.settings.loss,
        loss => Ok(Box::new(LaneGroup::new(loss, setup, lanes)?)),
        else unreachable!("the driver takes this route for smooth losses only")
    )
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
            objective: Vec::with_capacity(self.setup.n_lanes()),
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
            step.objective.extend(moved.objective);
            if !moved.is_unchanged {
                drop(std::mem::take(&mut step.decisions));
                let all = Arc::make_mut(&mut self.decisions);
                group.lanes().for_each(|k| self.setup.write_decisions(k, &group.decisions(k), all));
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
            group.lanes().for_each(|k| self.setup.write_decisions(k, &group.decisions(k), all));
        }
        Ok(())
    }
}

/// Up to [`LANES`] lanes with the same loss; the rest is padding.
struct LaneGroup<'a, T> {
    newton: InMemory<'a, LANES>,
    terms: FoldTerms<'a, T, LANES>,
    lanes: Range<usize>,
    setup: &'a LaneSetup<'a>,
    /// `tau / |h(0)|` per lane.
    share: [f64; LANES],
    /// `tau` per lane, once it is known.
    tau: Option<[f64; LANES]>,
    /// Largest `C` at which all weights are accepted unchanged.
    until: f64,
}

/// Arrays of a group's state, empty before the first step: `tau` and the last `until`, and those of the
/// solver.
const ARRAYS: usize = 4;

impl<'a, T: Loss> LaneGroup<'a, T> {
    fn new(loss: T, setup: &'a LaneSetup<'a>, lanes: Range<usize>) -> Result<Self> {
        let problem =
            Problem { rows: setup.rows, ids: None, y: &[], cost: &[], intercept: setup.settings.intercept };
        let terms = FoldTerms::new(loss, setup, lanes.clone())?;
        let share = std::array::from_fn(|l| match lanes.clone().nth(l) {
            Some(k) => setup.settings.params.tol * smaller_share(&setup.signs(k), &setup.part(k).weight),
            None => 0.0,
        });
        Ok(Self {
            newton: InMemory::new(&problem, lanes.len(), false, setup.monitor),
            terms,
            lanes,
            setup,
            share,
            tau: None,
            until: 0.0,
        })
    }

    /// Largest `C` at which all lanes accept their weights, accepted at `c`.
    fn accepted_until(&self, c: f64, tau: &[f64; LANES]) -> f64 {
        let products = self.newton.products(c);
        let each = products[..self.lanes.len()].iter().zip(tau);
        each.map(|(p, tau)| accepted_until(p, c, *tau)).fold(f64::INFINITY, f64::min)
    }

    /// Whether the gradient of every lane at the present weights meets Chu15, eq. (24), at `c`.
    fn starts_near(&self, c: f64, tau: &[f64; LANES]) -> bool {
        let (products, tol) = (self.newton.products(c), self.setup.settings.params.tol);
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

impl<T: Loss> Group for LaneGroup<'_, T> {
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
        self.newton.evaluate(&self.terms)?;
        let tau = *self.tau.get_or_insert_with(|| {
            let at_zero = self.newton.products(1.0);
            std::array::from_fn(|l| self.share[l] * (at_zero[l].hh + at_zero[l].intercept).sqrt())
        });
        let starts_near = self.starts_near(c, &tau);
        let stop = NewtonStop::Gradient(tau.map(|tau| c * tau));
        let reports = self.newton.minimise(&self.terms, c, &stop, self.setup.settings.params.max_iter)?;
        let reports = &reports[..self.lanes.len()];
        let is_converged = reports.iter().all(|report| report.status == Status::Converged);
        self.until = if is_converged { self.accepted_until(c, &tau) } else { 0.0 };
        Ok(Moved {
            work: self.newton.work,
            is_unchanged: is_converged && self.newton.work.steps == 0,
            starts_near,
            is_converged,
            unchanged_until: self.until.max(c),
            objective: reports.iter().map(|report| report.certificate.primal).collect(),
        })
    }

    fn lanes(&self) -> Range<usize> {
        self.lanes.clone()
    }

    fn decisions(&self, k: usize) -> Vec<f64> {
        let (z, l) = (&self.newton.rows.z, k - self.lanes.start);
        self.setup.part(k).test.iter().map(|&i| z[i as usize][l]).collect_large()
    }

    fn state(&self) -> [Vec<f64>; ARRAYS] {
        let Some(tau) = self.tau else {
            return Default::default();
        };
        let facts = tau.into_iter().chain([self.until]).collect();
        let [w, z, gram] = self.newton.state();
        [facts, w, z, gram]
    }

    fn restore(&mut self, arrays: &[Vec<f64>]) -> Result<()> {
        let facts = &arrays[0];
        if facts.is_empty() {
            self.newton.reset();
            (self.tau, self.until) = (None, 0.0);
            return Ok(());
        }
        check_length("facts of a search state", LANES + 1, facts.len())?;
        self.tau = Some(std::array::from_fn(|l| facts[l]));
        self.until = facts[LANES];
        self.newton.restore([&arrays[1], &arrays[2], &arrays[3]])?;
        self.newton.evaluate(&self.terms)
    }
}

/// Largest `C'` with `|w + C' h| <= C' tau`, from products at a `c` where this holds.
/// `q(C') = |w|^2 + 2 C' w.h + C'^2 (|h|^2 - tau^2)` is not negative at 0 and not positive at `c`: without a
/// rising end it stays so for ever, with one it does up to its larger root.
fn accepted_until(products: &InnerProducts, c: f64, tau: f64) -> f64 {
    let rise = products.hh + products.intercept - tau * tau;
    if rise <= 0.0 {
        return f64::INFINITY;
    }
    let root = (products.wh * products.wh - rise * products.ww).max(0.0).sqrt();
    ((root - products.wh) / rise).max(c)
}

/// `min(pos, neg) / (pos + neg)`, in weights.
fn smaller_share(y: &[f64], weight: &[f64]) -> f64 {
    let total: f64 = weight.iter().sum();
    let positive: f64 = y.iter().zip(weight).filter(|(y, _)| **y > 0.0).map(|(_, v)| v).sum();
    positive.min(total - positive) / total
}
