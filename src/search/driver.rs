//! The loop of a search: the schedule gives the next value of `C`, the route fits all lanes there, and the
//! caller is called with each step and returns its score.

use std::path::Path;

use super::fingerprint::Fingerprint;
use super::folds::{FoldRows, LaneSetup, SearchData};
use super::handover::Handover;
use super::journal::Journal;
use super::plan::{EndReason, SearchPlan, SearchSchedule, StopRule, Visited};
use super::primal::Primal;
use super::runner::Runner;
use super::{Route, SearchSettings, SearchStep};
use super::{crammer_singer, dual, folds, multinomial, penalised, penalised_softmax};
use crate::fit::{Monitor, SolverKind, auto};
use crate::labels::penalised::PenalisedColumns;
use crate::labels::sparse_weights::SparseWeights;
use crate::labels::{check_row_count, check_weights};
use crate::matrix::Rows;
use crate::{Error, Result};

/// Runs a search. `visit` is called after each value of `C`; it returns the score, which refinement
/// maximises, or `None` to end the search.
///
/// When [`Monitor::is_overdue`], the search ends with [`EndReason::TimeLimit`] and the value in progress is
/// dropped. With a path to `resume`, every finished value is kept in a [`super::journal`] there; those that
/// it holds already are only visited.
///
/// # Errors
/// Bad settings, folds without a class, those of the solvers, of the journal, and of `visit`.
pub fn search(
    task: &SearchData<'_>,
    settings: &SearchSettings,
    plan: &SearchPlan,
    resume: Option<&Path>,
    monitor: &dyn Monitor,
    visit: &mut dyn FnMut(&SearchStep) -> Result<Option<f64>>,
) -> Result<EndReason> {
    check_row_count(task.rows)?;
    task.labels.check(task.rows.n_rows())?;
    check_weights(task.weight, task.rows.n_rows())?;
    let parts = folds::parts(task.rows.n_rows(), &task.labels, task.weight, task.folds)?;
    let SearchData { rows, labels, weight, penalty, .. } = task;
    let (last, stop) = (0.0, plan.stop);
    let mut setup = LaneSetup { rows, labels, weight, parts: &parts, settings, last, stop, monitor };
    let by_columns = |penalty| PenalisedColumns::of(rows, settings.intercept, penalty, monitor);
    let columns = penalty.map(by_columns).transpose()?;
    let schedule = SearchSchedule::new(plan, || bound(task, &setup, columns.as_ref()))?;
    setup.last = schedule.last();
    let journal =
        resume.map(|path| Journal::open(path, &Fingerprint::of(task, settings, plan))).transpose()?;
    let route: Box<dyn Route + '_> = match columns {
        None => route(&setup)?,
        Some(columns) => {
            plan.stop.check(false)?;
            match settings.is_multinomial(labels.n_classes) {
                true => Box::new(penalised_softmax::route(&setup, columns)),
                false => Box::new(penalised::route(&setup, columns)),
            }
        }
    };
    drive(schedule, Runner::new(route, journal), |step| fits(&setup, step), monitor, visit)
}

/// Goes through the values of a schedule. `fits` tells whether a step from a journal has the shape of the
/// search.
///
/// # Errors
/// Those of the route, of the journal, and of `visit`.
pub fn drive(
    mut schedule: SearchSchedule,
    mut runner: Runner<'_>,
    fits: impl Fn(&SearchStep) -> bool,
    monitor: &dyn Monitor,
    visit: &mut dyn FnMut(&SearchStep) -> Result<Option<f64>>,
) -> Result<EndReason> {
    while let Some(target) = schedule.next() {
        let step = match runner.go(target, monitor, &fits) {
            Err(Error::Cancelled) if monitor.is_overdue() => return Ok(EndReason::TimeLimit),
            step => step?,
        };
        let Some(score) = visit(&step)? else {
            return Ok(EndReason::Visit);
        };
        schedule.record(visited(&step, score));
        runner.keep(&schedule)?;
    }
    Ok(schedule.reason())
}

/// Whether a step from a journal has the shape of this search.
fn fits(setup: &LaneSetup<'_>, step: &SearchStep) -> bool {
    let shape = |part: &FoldRows<'_>| part.test.len() * setup.n_problems();
    let per_fold = setup.settings.fits_per_fold(setup.labels);
    let fits = |w: &SparseWeights| w.columns.last().is_none_or(|&j| (j as usize) < setup.rows.n_cols());
    if let Some(weights) = &step.weights
        && !(weights.len() == setup.n_lanes() && weights.iter().all(fits))
    {
        return false;
    }
    step.objective.len() == setup.parts.len() * per_fold
        && step.decisions.iter().map(Vec::len).eq(setup.parts.iter().map(shape))
}

fn visited(step: &SearchStep, score: f64) -> Visited {
    let SearchStep { c, is_unchanged, starts_near, unchanged_until, .. } = *step;
    Visited { c, score, is_unchanged, starts_near, unchanged_until }
}

/// Newton where one fold's problem asks for it or entries are so many that the lanes' vectors do not count,
/// fits to a gap otherwise; the same for all lanes and all values of `C`. A rule by gradients asks for it.
fn route<'a>(setup: &'a LaneSetup<'a>) -> Result<Box<dyn Route + 'a>> {
    let stop = setup.stop;
    if setup.settings.is_multinomial(setup.labels.n_classes) {
        stop.check(false)?;
        return Ok(Box::new(multinomial::route(setup)));
    }
    let (is_smooth, is_auto) =
        (setup.settings.loss.is_smooth(), setup.settings.params.solver == SolverKind::Auto);
    let solver = match setup.settings.params.solver {
        SolverKind::Auto if stop == StopRule::Gradient && is_smooth => SolverKind::Newton,
        SolverKind::Auto => {
            let largest = (0..setup.parts.len()).max_by_key(|&f| setup.parts[f].train.len()).unwrap_or(0);
            let FoldRows { weight, .. } = &setup.parts[largest];
            let lane = setup.numbers().of_fold(largest).start;
            let y = setup.signs(lane);
            let problem = setup.problem(lane, &y, weight);
            if auto::prefers_lanes(&problem.design(1.0)) {
                SolverKind::Newton
            } else {
                auto::choose(&problem, setup.settings.loss)
            }
        }
        solver => solver,
    };
    stop.check(solver == SolverKind::Newton && is_smooth)?;
    if solver == SolverKind::CrammerSinger {
        Ok(Box::new(crammer_singer::route(setup)))
    } else if solver == SolverKind::Newton && is_smooth {
        Ok(Box::new(Primal::new(setup)?))
    } else if is_auto && is_smooth {
        Ok(Box::new(Handover::new(setup)))
    } else {
        Ok(Box::new(dual::route(setup)))
    }
}

fn bound(task: &SearchData<'_>, setup: &LaneSetup<'_>, columns: Option<&PenalisedColumns>) -> Result<f64> {
    let settings = setup.settings;
    let of_null = |columns| match settings.is_multinomial(task.labels.n_classes) {
        true => penalised_softmax::lower_bound(setup, columns),
        false => penalised::lower_bound(setup, columns),
    };
    if let Some(bound) = columns.map(of_null).transpose()?.flatten() {
        return Ok(bound);
    }
    let weight: f64 = task.weight.iter().sum();
    Ok(settings.lower_bound(weight, task.rows.max_squared_norm(), task.labels.n_classes))
}
