//! Training of all problems on a store, in groups that fit the budget, with a checkpoint if one is wanted.

use std::path::{Path, PathBuf};

use super::budget::{Groups, Needs, Plan};
use super::checkpoint::{Checkpoint, Training};
use super::crammer_singer::AllClasses;
use super::descent::{Descent, End, Remains};
use super::problem::Problem;
use super::task::{Parts, Running, Task};
use super::{Settings, budget};
use crate::fit::crammer_singer::weights::ClassWeights;
use crate::fit::{Certificate, Intercept, Monitor, Status};
use crate::source::fetch::Fetch;
use crate::store::reader::Store;
use crate::{Error, Result};

/// The name of the solver.
pub const NAME: &str = "block_cd";

/// What became of one problem.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Weights by column of the input, or by pair of them.
    pub w: Vec<f64>,
    /// Intercept.
    pub intercept: f64,
    /// Proof of quality.
    pub certificate: Certificate,
    /// How the descent ended.
    pub status: Status,
    /// Passes over the store in which the problem took part, scans not counted.
    pub n_iter: usize,
    /// Readings of the whole data: visits of rows and scans.
    pub passes: f64,
    /// Readings of the store: the blocks loaded, and the scans.
    pub loads: f64,
}

/// Where a descent writes its state, and how often.
#[derive(Clone, Copy, Debug)]
pub struct Keep<'a> {
    /// The file.
    pub path: &'a Path,
    /// Least seconds between two writings.
    pub seconds: f64,
}

/// Trains all problems, as many side by side as the budget allows.
///
/// `parts` gives each row's part by place, for [`Task::held_out`]; empty without parts.
///
/// # Errors
/// [`Error::Parameter`], [`Error::Budget`], [`Error::Corrupt`], [`Error::Io`], [`Error::Journal`] for a
/// checkpoint of another training, [`Error::Overflow`], [`Error::Cancelled`].
pub fn fit(
    store: &Store,
    tasks: &[Task],
    parts: &Parts,
    settings: &Settings<'_>,
    keep: Option<Keep<'_>>,
    monitor: &dyn Monitor,
) -> Result<Vec<Outcome>> {
    settings.check()?;
    check_row_count(store)?;
    let groups = budget::groups(store, settings, tasks.len());
    let folder = scratch(keep, groups);
    let training = || Training {
        store,
        problems: format!("{tasks:?}"),
        sizes: [tasks.len(), groups.size],
        parts,
        settings,
        folder: folder.clone(),
    };
    let mut checkpoint = keep.map(|keep| Checkpoint::open(keep, training())).transpose()?;
    let mut done: Vec<Outcome> = checkpoint.as_mut().map(Checkpoint::take_outcomes).unwrap_or_default();
    while done.len() < tasks.len() {
        let group = &tasks[done.len()..(done.len() + groups.size).min(tasks.len())];
        let plan = Plan::new(
            store,
            settings,
            &Needs::binary(store, settings, Groups { size: group.len(), ..groups }),
        )?;
        let problems = group.iter().map(|task| Running::new(store, task, settings, folder.as_deref()));
        let problems = problems.collect::<Result<_>>()?;
        let remains = descend(store, problems, parts, settings, &plan, &mut checkpoint, &done, monitor)?;
        let scans = remains.scans as f64;
        let ends = remains.ends.into_iter().flatten();
        done.extend(
            remains
                .problems
                .into_iter()
                .zip(ends)
                .map(|(problem, end)| outcome(store, settings, problem, end, scans)),
        );
    }
    let old = store.old_columns()?;
    for outcome in &mut done {
        outcome.w = settings.to_input(store, &old, std::mem::take(&mut outcome.w));
    }
    Ok(done)
}

/// What became of all classes at once.
#[derive(Clone, Debug)]
pub struct AllOutcome {
    /// Weights by column of the store: [`Store::old_columns`] tells those of the input.
    pub weights: ClassWeights,
    /// Intercepts.
    pub intercepts: Vec<f64>,
    /// As of [`Outcome`].
    pub certificate: Certificate,
    /// As of [`Outcome`].
    pub status: Status,
    /// As of [`Outcome`].
    pub n_iter: usize,
    /// As of [`Outcome`].
    pub passes: f64,
    /// As of [`Outcome`].
    pub loads: f64,
}

/// Trains the machine of Crammer and Singer; `cost` is `C` times the class weight by class, the loss of
/// `settings` is not looked at.
///
/// # Errors
/// As for [`fit`].
pub fn fit_crammer_singer(
    store: &Store,
    cost: &[f64],
    settings: &Settings<'_>,
    keep: Option<Keep<'_>>,
    monitor: &dyn Monitor,
) -> Result<AllOutcome> {
    settings.check()?;
    check_row_count(store)?;
    let problems = format!("crammer_singer {cost:?}");
    let training = || Training { store, problems, sizes: [1, 1], parts: &[], settings, folder: None };
    let mut checkpoint = keep.map(|keep| Checkpoint::open(keep, training())).transpose()?;
    let plan = Plan::new(store, settings, &Needs::crammer_singer(store, settings))?;
    let problem = AllClasses::new(store, cost, settings, monitor)?;
    let mut remains = descend(store, vec![problem], &[], settings, &plan, &mut checkpoint, &[], monitor)?;
    let (problem, end) =
        (remains.problems.remove(0), remains.ends.remove(0).expect("a descent ends with its problems"));
    let passes = problem.visits() as f64 / store.meta().n_rows as f64 + remains.scans as f64;
    let End { certified, status, n_iter, loads } = end;
    let (weights, intercepts) = problem.into_model();
    Ok(AllOutcome { weights, intercepts, certificate: certified.certificate, status, n_iter, passes, loads })
}

/// What became of a problem, its weights by column of the store.
fn outcome(store: &Store, settings: &Settings<'_>, problem: Running<'_>, end: End, scans: f64) -> Outcome {
    let d = settings.n_weights(store);
    let passes = problem.visits() as f64 / store.meta().n_rows as f64 + scans;
    let End { certified, status, n_iter, loads } = end;
    let intercept =
        if settings.intercept == Intercept::Free { certified.intercept } else { problem.intercept(d) };
    let mut w = problem.state.w;
    w.truncate(d);
    Outcome { w, intercept, certificate: certified.certificate, status, n_iter, passes, loads }
}

/// Descends with a group of problems until all have ended.
#[allow(clippy::too_many_arguments)] // what a descent is made of, and where its state is kept
fn descend<P: Problem>(
    store: &Store,
    problems: Vec<P>,
    parts: &Parts,
    settings: &Settings<'_>,
    plan: &Plan,
    checkpoint: &mut Option<Checkpoint<'_, P>>,
    done: &[Outcome],
    monitor: &dyn Monitor,
) -> Result<Remains<P>> {
    std::thread::scope(|scope| {
        let fetch = Fetch::start(scope, store, &plan.blocks, Vec::new(), plan.keeps_stored, monitor)?;
        let mut descent = Descent::new(problems, parts, settings, plan, fetch, monitor)?;
        if let Some(saved) = checkpoint.as_mut().and_then(Checkpoint::take_state) {
            descent.go_on(saved)?;
        }
        descent.run(|descent| match checkpoint {
            Some(checkpoint) => checkpoint.save_if_due(monitor.seconds(), done, || descent.saved()),
            None => Ok(()),
        })?;
        Ok(descent.into_parts())
    })
}

/// The folder of files with dual variables: that of the checkpoint, else the system's for temporary files.
pub fn scratch(keep: Option<Keep<'_>>, groups: Groups) -> Option<PathBuf> {
    let beside = |keep: Keep<'_>| {
        keep.path.parent().filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned)
    };
    groups.on_disk.then(|| match keep {
        Some(keep) => beside(keep).unwrap_or_else(|| PathBuf::from(".")),
        None => std::env::temp_dir(),
    })
}

/// Places of rows are numbers of 4 bytes.
///
/// # Errors
/// [`Error::Parameter`].
pub fn check_row_count(store: &Store) -> Result<()> {
    let n_rows = store.meta().n_rows;
    match u32::try_from(n_rows) {
        Ok(_) => Ok(()),
        Err(_) => {
            Err(Error::Parameter { name: "number of rows", value: n_rows.to_string(), rule: "below 2^32" })
        }
    }
}
