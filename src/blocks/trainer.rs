//! Training of all problems on a store, in groups that fit the budget, with a checkpoint if one is wanted.

use super::budget;
use super::budget::{Groups, MemoryPlan, Needs};
use super::checkpoint::{Checkpoint, CheckpointOptions, Training};
use super::choice::Policy;
use super::crammer_singer::AllClasses;
pub use super::descent::NAME;
use super::descent::{BlockDescent, Remains};
use super::outcome::{AllClassesOutcome, BlockOutcome};
use super::problem::{BlockProblem, BlockState, ProblemEnd};
use super::settings::{BlockSettings, DualsIn};
use super::state::BinaryProblem;
use super::task::{BinaryTask, RowFolds};
use crate::durable::nameless::folder_beside;
use crate::fit::{Intercept, Monitor};
use crate::source::fetch::Fetch;
use crate::store::reader::Store;
use crate::{Error, Result};

/// Trains all problems, as many side by side as the budget allows.
///
/// `folds` gives each row's fold by position, for [`BinaryTask::held_out`]; empty without folds.
///
/// # Errors
/// [`Error::Parameter`], [`Error::Budget`], [`Error::Corrupt`], [`Error::Io`], [`Error::Journal`] for a
/// checkpoint of another training, [`Error::Overflow`], [`Error::Cancelled`].
pub fn fit(
    store: &Store,
    tasks: &[BinaryTask],
    folds: &RowFolds,
    settings: &BlockSettings<'_>,
    keep: Option<CheckpointOptions<'_>>,
    monitor: &dyn Monitor,
) -> Result<Vec<BlockOutcome>> {
    settings.check()?;
    check_row_count(store)?;
    let groups = groups(store, settings, tasks.len());
    let folder = groups.on_disk.then(|| folder_beside(keep.map(|keep| keep.path)));
    let training = || Training {
        store,
        problems: description(tasks),
        sizes: [tasks.len(), groups.size],
        folds,
        settings,
        folder: folder.clone(),
    };
    let mut checkpoint = keep.map(|keep| Checkpoint::open(keep, training())).transpose()?;
    let mut done: Vec<BlockOutcome> = checkpoint.as_mut().map(Checkpoint::take_outcomes).unwrap_or_default();
    let trainer = Trainer { store, folds, settings, monitor };
    while done.len() < tasks.len() {
        let group = &tasks[done.len()..(done.len() + groups.size).min(tasks.len())];
        let plan = plan(store, settings, Groups { size: group.len(), ..groups }, tasks.len())?;
        let problems = group.iter().map(|task| BinaryProblem::new(store, task, settings, folder.as_deref()));
        let problems = problems.collect::<Result<_>>()?;
        let remains = trainer.descend(problems, &plan, &mut checkpoint, &done)?;
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

/// The plan of a group, beside the weights of all other problems.
fn plan(store: &Store, settings: &BlockSettings<'_>, group: Groups, n_tasks: usize) -> Result<MemoryPlan> {
    let needs = Needs::binary(store, settings, group);
    MemoryPlan::new(store, settings, &needs.beside(n_tasks - group.size, settings.n_weights(store)))
}

/// Groups as the states of problems suggest, smaller ones where no room would be left for rows.
fn groups(store: &Store, settings: &BlockSettings<'_>, n_tasks: usize) -> Groups {
    let largest = budget::groups(store, settings, n_tasks);
    let of = |size: usize| Groups { size, ..largest };
    let fits = |size: &usize| plan(store, settings, of(*size), n_tasks).is_ok();
    of((2..=largest.size).rev().find(fits).unwrap_or(1))
}

/// Trains the Crammer-Singer multi-class SVM; `cost` is `C` times the class weight by class, the loss of
/// `settings` is ignored.
///
/// # Errors
/// As for [`fit`].
pub fn fit_crammer_singer(
    store: &Store,
    cost: &[f64],
    settings: &BlockSettings<'_>,
    keep: Option<CheckpointOptions<'_>>,
    monitor: &dyn Monitor,
) -> Result<AllClassesOutcome> {
    settings.check()?;
    if settings.policy == Policy::Steepest {
        let rule = "'auto', 'gradient', 'projected', 'random' or 'none' with 'crammer_singer'";
        return Err(Error::Parameter { name: "cache", value: "'steepest'".to_owned(), rule });
    }
    check_row_count(store)?;
    let (plan, on_disk) = all_classes_plan(store, settings)?;
    let folder = on_disk.then(|| folder_beside(keep.map(|keep| keep.path)));
    // Blocks differ, so a fit with a file does not go on from a checkpoint of one without.
    let place = if on_disk { " in a file" } else { "" };
    let problems = format!("crammer_singer {cost:?}{place}");
    let training =
        || Training { store, problems, sizes: [1, 1], folds: &[], settings, folder: folder.clone() };
    let mut checkpoint = keep.map(|keep| Checkpoint::open(keep, training())).transpose()?;
    let problem = AllClasses::new(store, cost, settings, folder.as_deref(), monitor)?;
    let mut remains = Trainer { store, folds: &[], settings, monitor }.descend(
        vec![problem],
        &plan,
        &mut checkpoint,
        &[],
    )?;
    let (problem, end) =
        (remains.problems.remove(0), remains.ends.remove(0).expect("a descent ends with its problems"));
    let passes = problem.visits() as f64 / store.meta().n_rows as f64 + remains.scans as f64;
    let ProblemEnd { certified, status, n_iter, loads } = end;
    let (weights, intercepts) = problem.into_model();
    Ok(AllClassesOutcome {
        weights,
        intercepts,
        certificate: certified.certificate,
        status,
        n_iter,
        passes,
        loads,
    })
}

/// The plan for all classes at once, and whether their dual variables are in a file: unless that is said,
/// where the budget is too small otherwise.
fn all_classes_plan(store: &Store, settings: &BlockSettings<'_>) -> Result<(MemoryPlan, bool)> {
    let of = |on_disk: bool| {
        let needs = Needs::crammer_singer(store, settings, on_disk);
        MemoryPlan::new(store, settings, &needs).map(|plan| (plan, on_disk))
    };
    match settings.duals {
        DualsIn::Memory => of(false),
        DualsIn::File => of(true),
        DualsIn::Auto => of(false).or_else(|_| of(true)),
    }
}

/// What became of a problem, its weights by column of the store.
fn outcome(
    store: &Store,
    settings: &BlockSettings<'_>,
    problem: BinaryProblem<'_>,
    end: ProblemEnd,
    scans: f64,
) -> BlockOutcome {
    let d = settings.n_weights(store);
    let passes = problem.visits() as f64 / store.meta().n_rows as f64 + scans;
    let ProblemEnd { certified, status, n_iter, loads } = end;
    let intercept =
        if settings.intercept == Intercept::Free { certified.intercept } else { problem.intercept(d) };
    let mut w = problem.state.w;
    w.truncate(d);
    BlockOutcome { w, intercept, certificate: certified.certificate, status, n_iter, passes, loads }
}

/// What all descents of a training share.
struct Trainer<'a> {
    store: &'a Store,
    folds: &'a RowFolds,
    settings: &'a BlockSettings<'a>,
    monitor: &'a dyn Monitor,
}

impl Trainer<'_> {
    /// Descends with a group of problems until all have ended; `done` are those that ended before.
    fn descend<P: BlockProblem>(
        &self,
        problems: Vec<P>,
        plan: &MemoryPlan,
        checkpoint: &mut Option<Checkpoint<'_, P>>,
        done: &[BlockOutcome],
    ) -> Result<Remains<P>> {
        let Self { store, folds, settings, monitor } = *self;
        std::thread::scope(|scope| {
            let fetch = Fetch::start(scope, store, &plan.blocks, Vec::new(), plan.keeps_stored, monitor)?;
            let mut descent = BlockDescent::new(problems, folds, settings, plan, fetch, monitor)?;
            if let Some(saved) = checkpoint.as_mut().and_then(Checkpoint::take_state) {
                descent.resume(saved)?;
            }
            descent.run(|descent| match checkpoint {
                Some(checkpoint) => checkpoint.save_if_due(monitor.seconds(), done, || descent.saved()),
                None => Ok(()),
            })?;
            Ok(descent.into_parts())
        })
    }
}

/// The problems as a checkpoint names them: the words are part of its format.
fn description(tasks: &[BinaryTask]) -> String {
    let one = |task: &BinaryTask| {
        let BinaryTask { positive, cost, held_out } = task;
        format!("Task {{ positive: {positive:?}, cost: {cost:?}, held_out: {held_out:?} }}")
    };
    format!("[{}]", tasks.iter().map(one).collect::<Vec<_>>().join(", "))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_name_problems_by_the_same_words_for_ever() {
        let task = |positive, held_out| BinaryTask { positive, cost: vec![1.0, 0.25], held_out };
        assert_eq!(
            description(&[task(0, None), task(1, Some(2))]),
            "[Task { positive: 0, cost: [1.0, 0.25], held_out: None }, \
             Task { positive: 1, cost: [1.0, 0.25], held_out: Some(2) }]"
        );
    }
}
