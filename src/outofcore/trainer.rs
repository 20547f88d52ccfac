//! Training of all problems on a store, in groups that fit the budget, with a checkpoint if one is wanted.

use std::path::{Path, PathBuf};

use super::Settings;
use super::budget::{self, Groups, Plan};
use super::checkpoint::Checkpoint;
use super::descent::Descent;
use super::fetch::Fetch;
use super::task::{Parts, Task};
use crate::solver::{Certificate, Monitor, Status};
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
/// [`Error::Parameter`], [`Error::Budget`], [`Error::Corrupt`], [`Error::Io`], [`Error::Journal`] for a checkpoint of another
/// training, [`Error::Overflow`], [`Error::Cancelled`].
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
    let mut checkpoint = keep.map(|keep| Checkpoint::open(keep, store, tasks, parts, settings)).transpose()?;
    let mut done: Vec<Outcome> = checkpoint.as_mut().map(Checkpoint::take_outcomes).unwrap_or_default();
    while done.len() < tasks.len() {
        let group = &tasks[done.len()..(done.len() + groups.size).min(tasks.len())];
        let plan = Plan::new(store, settings, Groups { size: group.len(), ..groups })?;
        let group = std::thread::scope(|scope| {
            let fetch = Fetch::start(scope, store, &plan.blocks, Vec::new(), plan.keeps_stored, monitor)?;
            let mut descent = Descent::new(store, group, parts, settings, &plan, fetch, folder.as_deref(), monitor)?;
            if let Some(saved) = checkpoint.as_mut().and_then(Checkpoint::take_state) {
                descent.go_on(saved)?;
            }
            descent.run(|descent| match &mut checkpoint {
                Some(checkpoint) => checkpoint.save_if_due(monitor.seconds(), &done, || descent.saved()),
                None => Ok(()),
            })?;
            Ok(descent.into_outcomes())
        })?;
        done.extend(group);
    }
    let old = store.old_columns()?;
    for outcome in &mut done {
        outcome.w = settings.to_input(store, &old, std::mem::take(&mut outcome.w));
    }
    Ok(done)
}

/// The folder of files with dual variables: that of the checkpoint, else the system's for temporary files.
pub fn scratch(keep: Option<Keep<'_>>, groups: Groups) -> Option<PathBuf> {
    let beside =
        |keep: Keep<'_>| keep.path.parent().filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned);
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
        Err(_) => Err(Error::Parameter { name: "number of rows", value: n_rows.to_string(), rule: "below 2^32" }),
    }
}
