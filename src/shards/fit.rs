//! A fit whose rows are at shards: Newton here, rows there, and a proof over all of them.

use super::ascent;
use super::exchange::{Exchange, Link};
use super::merge::{Merging, Told};
use super::points::RemotePoints;
use super::proof::{self, Claimed};
use super::remote::{Lanes, Remote, RemoteCorners, ShardTerms};
use super::shard::{CLASSES, ShardFacts};
use super::start;
use super::task::ShardTask;
use crate::fit::newton::hinge;
use crate::fit::newton::proximal::Sequence;
use crate::fit::newton::single::{Polish, Spread, minimise_polished};
use crate::fit::newton::{Newton, Shape};
use crate::fit::stop::{LaneReport, NewtonStop};
use crate::fit::{Certificate, Intercept, Monitor, Params, Solution, SolverKind, Status};
use crate::{Result, labels};

/// How often a fit whose gap rounding keeps above the tolerance goes on, and the share of the tolerance that
/// it then aims at.
const FURTHER_ATTEMPTS: usize = 2;
const SHARPER: f64 = 0.1;
/// Relative derivative along a free intercept that is nothing, as a share of the tolerance: dual points pay
/// for what is left of it.
const SETTLED: f64 = 1e-4;

/// Newton at zero, on the problems of some classes: the first, and how many.
pub(super) fn newton_of<'a, const L: usize>(
    (task, merging): (&ShardTask, Option<&Merging>),
    exchange: &'a mut dyn Exchange,
    classes: (usize, usize),
    monitor: &'a dyn Monitor,
) -> Newton<'a, Remote<'a, L>, L> {
    let ShardFacts { n_rows, max_squared_norm, .. } = task.facts;
    let (n_columns, intercept) = (task.n_weights(), task.intercept);
    let lanes = Lanes::Classes(classes.0, classes.1, task.scale);
    let rows =
        Remote::begin(&Link::new(exchange), (n_rows, max_squared_norm), lanes, n_columns, intercept.bias());
    let factorisation = task.factorisation().or(task.block()).filter(|_| merging.is_none());
    let (n_lanes, keeps_dual, are_far) = (classes.1, true, true);
    let shape = Shape { n_columns, intercept, n_lanes, keeps_dual, factorisation, are_far };
    let mut newton = Newton::over(rows, &shape, monitor);
    newton.rows.settle_to(SETTLED * task.params.tol);
    newton
}

/// Fits each class against the rest (one problem in all for two classes).
///
/// # Errors
/// Those of the exchange, [`crate::Error::Cancelled`], and [`crate::Error::Overflow`].
pub fn fit(task: &ShardTask, exchange: &mut dyn Exchange, monitor: &dyn Monitor) -> Result<Vec<Solution>> {
    let merging = Merging::find(task, exchange, monitor)?;
    fit_with(merging.as_ref(), task, exchange, monitor)
}

/// [`fit`] with the columns that travel in place of the data's.
pub(super) fn fit_with(
    merging: Option<&Merging>,
    task: &ShardTask,
    exchange: &mut dyn Exchange,
    monitor: &dyn Monitor,
) -> Result<Vec<Solution>> {
    match merging {
        None => fit_all(task, None, exchange, monitor),
        Some(found) => fit_all(&found.task(task), merging, &mut Told::new(exchange, found), monitor),
    }
}

/// Fits all problems of a task whose columns are those that travel.
fn fit_all(
    task: &ShardTask,
    merging: Option<&Merging>,
    exchange: &mut dyn Exchange,
    monitor: &dyn Monitor,
) -> Result<Vec<Solution>> {
    let n_problems = labels::n_problems(task.n_classes as usize);
    let mut solutions = Vec::with_capacity(n_problems);
    if n_problems == 1 {
        solutions.push(fit_one(task, merging, exchange, 1, monitor)?);
    } else if task.loss.is_smooth() {
        for first in (0..n_problems).step_by(CLASSES) {
            let classes = (first, CLASSES.min(n_problems - first));
            if classes.1 == 1 {
                solutions.push(fit_one(task, merging, exchange, first, monitor)?);
            } else {
                let mut newton = newton_of::<CLASSES>((task, merging), exchange, classes, monitor);
                start::begin(task, &mut newton)?;
                solutions.extend(fit_smooth((task, merging), newton, classes.1, by_slopes)?);
            }
        }
    } else {
        for class in 0..n_problems {
            solutions.push(fit_one(task, merging, exchange, class, monitor)?);
        }
    }
    Ok(solutions)
}

fn fit_one(
    task: &ShardTask,
    merging: Option<&Merging>,
    exchange: &mut dyn Exchange,
    class: usize,
    monitor: &dyn Monitor,
) -> Result<Solution> {
    if !task.loss.is_smooth() {
        return fit_hinge((task, merging), exchange, class, monitor);
    }
    let mut points = RemotePoints::new(task, monitor);
    let mut newton = newton_of::<1>((task, merging), exchange, (class, 1), monitor);
    // An ascent begins at zero.
    let mut ascends = ascent::is_worth_it(task);
    if !ascends {
        start::begin(task, &mut newton)?;
    }
    let minimise = |newton: &mut Newton<'_, Remote<'_, 1>, 1>, params: &Params| {
        if std::mem::take(&mut ascends)
            && let Some((report, spread)) = ascent::ascend(task, newton, monitor)?
        {
            return Ok(([report], Some(spread)));
        }
        let (report, is_polished) = minimise_polished(newton, &mut points, params, Polish::Closely)?;
        Ok(([report], points.last.filter(|_| is_polished)))
    };
    let mut found = fit_smooth((task, merging), newton, 1, minimise)?;
    Ok(found.remove(0))
}

/// How lanes ended, and how far the weights of dual variables beside the slopes are.
type Minimised<const L: usize> = ([LaneReport; L], Option<Spread>);

/// [`Newton::minimise`] by the slopes alone.
fn by_slopes<const L: usize>(
    newton: &mut Newton<'_, Remote<'_, L>, L>,
    params: &Params,
) -> Result<Minimised<L>> {
    let stop = NewtonStop::RelativeGap(params.tol);
    Ok((newton.minimise(&ShardTerms::Smooth, 1.0, &stop, params.max_iter)?, None))
}

/// Goes on from where `newton` stands with its first `n_lanes` lanes, each a class.
fn fit_smooth<const L: usize>(
    (task, merging): (&ShardTask, Option<&Merging>),
    mut newton: Newton<'_, Remote<'_, L>, L>,
    n_lanes: usize,
    mut minimise: impl FnMut(&mut Newton<'_, Remote<'_, L>, L>, &Params) -> Result<Minimised<L>>,
) -> Result<Vec<Solution>> {
    let params = &task.params;
    let (mut tol, mut steps) = (params.tol, [0; L]);
    for attempt in 0.. {
        let max_iter = params.max_iter - steps.iter().copied().max().unwrap_or(0).min(params.max_iter);
        let (reports, polished) = minimise(&mut newton, &Params { tol, max_iter, ..*params })?;
        let mut solutions = Vec::with_capacity(n_lanes);
        for lane in 0..n_lanes {
            steps[lane] += reports[lane].steps;
            let (spread, is_polished) = (polished.unwrap_or_else(|| newton.spread(lane)), polished.is_some());
            let (w, spread) = of_data(merging, newton.w.lane(lane), spread);
            let claimed = Claimed { w: &w, spread, lane, is_polished };
            let certificate = proof::prove(task, &mut newton.rows, &claimed)?;
            solutions.push(solution_of(task, w, certificate, (reports[lane].status, steps[lane])));
        }
        let is_proved =
            |s: &Solution| s.status != Status::Converged || s.certificate.relative_gap() <= params.tol;
        if attempt == FURTHER_ATTEMPTS || solutions.iter().all(is_proved) {
            return Ok(finished(task, solutions, newton.work.passes));
        }
        tol *= SHARPER;
    }
    unreachable!("the last attempt returns")
}

fn fit_hinge(
    (task, merging): (&ShardTask, Option<&Merging>),
    exchange: &mut dyn Exchange,
    class: usize,
    monitor: &dyn Monitor,
) -> Result<Solution> {
    let mut newton = newton_of::<1>((task, merging), exchange, (class, 1), monitor);
    let (mut params, mut steps) = (task.params, 0);
    let sequence = Sequence::new(task.n_columns, task.facts.curvature);
    for attempt in 0.. {
        let ended =
            hinge::follow(&mut newton, &mut RemoteCorners, sequence, task.facts.cost, &params, monitor)?;
        steps += ended.steps;
        let (w, spread) = of_data(merging, ended.w.lane(0), ended.spread);
        let claimed = Claimed { w: &w, spread, lane: 0, is_polished: false };
        let certificate = proof::prove(task, &mut newton.rows, &claimed)?;
        let solution = solution_of(task, w, certificate, (ended.status, steps));
        let is_proved = certificate.relative_gap() <= task.params.tol;
        if is_proved || solution.status != Status::Converged || attempt == FURTHER_ATTEMPTS {
            let mut found = finished(task, vec![solution], newton.work.passes);
            return Ok(found.remove(0));
        }
        params.tol *= SHARPER;
        params.max_iter = task.params.max_iter.saturating_sub(steps);
    }
    unreachable!("the last attempt returns")
}

/// Weights of the data's columns from those that travel, and how far those of the dual variables are.
fn of_data(merging: Option<&Merging>, w: Vec<f64>, spread: Spread) -> (Vec<f64>, Spread) {
    match merging {
        None => (w, spread),
        Some(merging) => (merging.expand(&w), merging.widened(spread)),
    }
}

fn solution_of(
    task: &ShardTask,
    mut w: Vec<f64>,
    certificate: Certificate,
    (status, n_iter): (Status, usize),
) -> Solution {
    let weight = if task.intercept == Intercept::None { None } else { w.pop() };
    let intercept = weight.map_or(0.0, |weight| task.intercept.bias() * weight);
    Solution {
        w,
        intercept,
        alpha: Vec::new(),
        certificate,
        status,
        n_iter,
        passes: 0.0,
        solver: SolverKind::Newton,
        is_consistent: false,
        evidence: None,
    }
}

/// Statuses by what was proved.
fn finished(task: &ShardTask, mut solutions: Vec<Solution>, passes: f64) -> Vec<Solution> {
    for solution in &mut solutions {
        solution.passes = passes;
        if solution.certificate.relative_gap() <= task.params.tol {
            solution.status = Status::Converged;
        } else if solution.status == Status::Converged {
            solution.status = Status::Stalled;
        }
    }
    solutions
}
