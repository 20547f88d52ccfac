//! The route by Newton to a gradient norm (Chu15, eq. 28).
//!
//! Lanes are independent tasks that keep weights and margins between two values of `C`, so that a start reads no data.
//!
//! **Steps that cost nothing.** At the solution for `C` the gradient is `g = w + C h`; at `C'` the same weights have the gradient
//! `w + C' h`, accepted while its norm is at most `C' t`: a quadratic inequality in `C'`, solved once per step.
//!
//! Memory per lane: a weight vector of the columns and a margin per training row, beside the vectors of the Newton steps
//! in flight.

use std::sync::Arc;

use rayon::prelude::*;

use super::folds::Setup;
use super::watch::Watch;
use super::{Route, State, Step, check_length};
use crate::Result;
use crate::data::Rows;
use crate::loss::{Logistic, Loss, LossKind, SquaredHinge};
use crate::solver::newton::{Newton, Stop, Weighted};
use crate::solver::sweep::dot;
use crate::solver::{Monitor, Status};

/// All lanes.
pub struct Primal<'a, R> {
    setup: &'a Setup<'a, R>,
    lanes: Vec<Lane>,
    decisions: Arc<Vec<Vec<f64>>>,
}

/// One binary problem of one fold, between two values of `C`.
#[derive(Clone, Default)]
struct Lane {
    /// Empty before the first step.
    w: Vec<f64>,
    b: f64,
    margins: Vec<f64>,
    /// Gradient norm at zero weights for `C = 1`.
    norm_at_zero: f64,
    /// The last `C` with Newton steps, norm and loss parts of the objective there.
    c: f64,
    norm: f64,
    loss: f64,
    /// Largest `C` at which the solution is accepted unchanged.
    until: f64,
    is_scored: bool,
}

#[derive(Default)]
struct Done {
    passes: f64,
    n_iter: usize,
    inner: usize,
    is_converged: bool,
    is_unchanged: bool,
    decisions: Option<Vec<f64>>,
}

impl<'a, R: Rows> Primal<'a, R> {
    /// Starts before the first value of `C`.
    pub fn new(setup: &'a Setup<'a, R>) -> Self {
        let lanes = vec![Lane::default(); setup.n_lanes()];
        Self { setup, lanes, decisions: Arc::new(setup.no_decisions()) }
    }
}

impl<R: Rows> Route for Primal<'_, R> {
    fn advance(&mut self, c: f64) -> Result<Step> {
        let setup = self.setup;
        let watch = Watch::new(setup.monitor, c, self.lanes.len());
        let done: Vec<Done> = self
            .lanes
            .par_iter_mut()
            .enumerate()
            .map(|(k, lane)| {
                let done = match setup.settings.loss {
                    LossKind::Logistic => lane.advance(Logistic, setup, k, c, &watch)?,
                    _ => lane.advance(SquaredHinge, setup, k, c, &watch)?,
                };
                watch.finish(done.passes);
                Ok(done)
            })
            .collect::<Result<_>>()?;
        for (k, done) in done.iter().enumerate() {
            if let Some(decisions) = &done.decisions {
                setup.place(k, decisions, &mut Arc::make_mut(&mut self.decisions)[..]);
            }
        }
        Ok(Step {
            c,
            passes: done.iter().map(|d| d.passes).sum(),
            n_iter: done.iter().map(|d| d.n_iter).sum(),
            inner: done.iter().map(|d| d.inner).sum(),
            is_unchanged: done.iter().all(|d| d.is_unchanged),
            is_converged: done.iter().all(|d| d.is_converged),
            unchanged_until: self.lanes.iter().map(|lane| lane.until).fold(f64::INFINITY, f64::min).max(c),
            objective: self.lanes.iter().map(|lane| lane.norm + c / lane.c * lane.loss).collect(),
            decisions: Arc::clone(&self.decisions),
            seconds: 0.0,
            is_replayed: false,
        })
    }

    fn state(&self) -> State {
        let arrays = |lane: &Lane| {
            let facts = [lane.b, lane.norm_at_zero, lane.c, lane.norm, lane.loss, lane.until];
            [facts.to_vec(), lane.w.clone(), lane.margins.clone()]
        };
        State(self.lanes.iter().flat_map(arrays).collect())
    }

    fn restore(&mut self, state: &State) -> Result<()> {
        let (setup, n_lanes) = (self.setup, self.lanes.len());
        let rebuild = |(k, arrays): (usize, &[Vec<f64>])| {
            if arrays[1].is_empty() {
                return Ok(Lane::default());
            }
            check_length("facts of a search state", 6, arrays[0].len())?;
            check_length("weights of a search state", setup.rows.n_cols(), arrays[1].len())?;
            check_length("margins of a search state", setup.part(k).train.len(), arrays[2].len())?;
            let (f, w, margins) = (&arrays[0], arrays[1].clone(), arrays[2].clone());
            let (b, norm_at_zero, c, norm, loss, until) = (f[0], f[1], f[2], f[3], f[4], f[5]);
            Ok(Lane { w, b, margins, norm_at_zero, c, norm, loss, until, is_scored: false })
        };
        self.lanes = state.lanes(n_lanes, 3)?.enumerate().map(rebuild).collect::<Result<_>>()?;
        Ok(())
    }
}

impl Lane {
    fn advance<R: Rows, L: Loss>(
        &mut self,
        loss: L,
        setup: &Setup<'_, R>,
        k: usize,
        c: f64,
        monitor: &dyn Monitor,
    ) -> Result<Done> {
        let mut done = if !self.w.is_empty() && c <= self.until {
            Done { is_unchanged: true, is_converged: true, ..Done::default() }
        } else {
            self.newton(loss, setup, k, c, monitor)?
        };
        if !(done.is_unchanged && self.is_scored) {
            done.decisions = Some(setup.decisions(k, &self.w, self.b));
            self.is_scored = true;
        }
        Ok(done)
    }

    fn newton<R: Rows, L: Loss>(
        &mut self,
        loss: L,
        setup: &Setup<'_, R>,
        k: usize,
        c: f64,
        monitor: &dyn Monitor,
    ) -> Result<Done> {
        let (y, weight) = (setup.signs(k), &setup.part(k).weight);
        let problem = setup.problem(k, &y, weight);
        let mut newton = Newton::new(&problem, monitor);
        let weighted = |scale| Weighted { loss, cost: weight, scale };
        if self.w.is_empty() {
            self.norm_at_zero = newton.gradient_norm_at_zero(&weighted(1.0));
        } else {
            newton.resume(std::mem::take(&mut self.w), self.b, std::mem::take(&mut self.margins));
        }
        let limit = setup.settings.tol * smaller_share(&y, weight) * self.norm_at_zero;
        let report = newton.minimise(&weighted(c), Stop::Gradient(c * limit), setup.settings.max_iter)?;
        let is_converged = report.status == Status::Converged;
        let penalised = newton.penalised();
        self.norm = 0.5 * dot(&newton.w[penalised.clone()], &newton.w[penalised]);
        self.loss = (report.certificate.primal - self.norm).max(0.0);
        self.c = c;
        self.until = if is_converged { accepted_until(&newton, c, limit) } else { c };
        let (passes, inner) = (newton.passes, newton.products);
        (self.w, self.b, self.margins) = newton.suspend(&problem);
        self.is_scored = false;
        Ok(Done { passes, n_iter: report.steps, inner, is_converged, is_unchanged: false, decisions: None })
    }
}

/// Largest `C'` with `|w + C' h| <= C' limit`, for `h = (g - w) / c`.
fn accepted_until<R: Rows>(newton: &Newton<'_, R>, c: f64, limit: f64) -> f64 {
    let penalised = newton.penalised();
    let (w, g) = (&newton.w[penalised.clone()], &newton.gradient[penalised]);
    let (ww, wg, gg) = (dot(w, w), dot(w, g), dot(g, g));
    // (hh - limit^2) C'^2 + 2 wh C' + ww <= 0
    let (a, half) = ((gg - 2.0 * wg + ww) / (c * c) - limit * limit, (wg - ww) / c);
    if ww == 0.0 || a < 0.0 {
        return if a <= 0.0 { f64::INFINITY } else { c };
    }
    let root = (half * half - a * ww).max(0.0).sqrt();
    // The larger root; half is negative where the weights are near the optimum.
    ((root - half) / a).max(c)
}

/// `min(pos, neg) / (pos + neg)`, in weights.
fn smaller_share(y: &[f64], weight: &[f64]) -> f64 {
    let total: f64 = weight.iter().sum();
    let positive: f64 = y.iter().zip(weight).filter(|(y, _)| **y > 0.0).map(|(_, v)| v).sum();
    positive.min(total - positive) / total
}
