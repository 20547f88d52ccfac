//! The search for `C` of [`crate::search`] over rows that are at shards: its route in the primal, with all
//! lanes of a group (folds, or classes x folds) in the same sums.
//!
//! Shards know the folds of their rows; classes, weights and folds of all rows are at the client as well, who
//! gets the decision values of held-out rows and scores them. A shard has the state of one group at a time:
//! where there are several, each begins anew from its weights when its turn comes, which costs a reading.

use std::ops::Range;
use std::path::Path;
use std::rc::Rc;

use super::ShardTask;
use super::exchange::{Exchange, Link};
use super::merge::{Merging, Told};
use super::remote::{Lanes, Remote, ShardTerms};
use super::shard::ShardFacts;
use super::wire::{Op, Request};
use crate::fit::newton::{Newton, Shape};
use crate::fit::{Monitor, check_length};
use crate::labels::{Labels, MultiClass, check_weights};
use crate::search::fingerprint::{Fingerprint, hash_bytes, hash_folds, hex};
use crate::search::folds::{self, Fold, FoldRows, LaneNumbers};
use crate::search::journal::{self, Journal};
use crate::search::plan::SearchSchedule;
use crate::search::primal::{Group, LANES, LaneFacts, LaneGroup, Place, Primal};
use crate::search::runner::Runner;
use crate::search::{EndReason, SearchPlan, SearchSettings, SearchStep, driver};
use crate::{Error, Result, memory};

/// By which a journal is known as one of a search over shards.
const CUT: &str = "hash of the cut into shards";

/// Whether a file with these first bytes is the journal of a search over shards.
pub fn is_one(head: &[u8]) -> bool {
    journal::is_of(head, CUT)
}

/// A search over shards.
pub struct ShardSearch<'a> {
    /// How to fit; its facts are those of all rows with their weights as costs.
    pub task: &'a ShardTask,
    /// Class ids of all rows, shard after shard.
    pub labels: Labels<'a>,
    /// Their weights.
    pub weight: &'a [f64],
    /// The splits, as numbers of these rows.
    pub folds: &'a [Fold],
    /// First row of each shard, and the number of rows.
    pub borders: &'a [u32],
    /// Which values of `C`.
    pub plan: &'a SearchPlan,
    /// The journal.
    pub resume: Option<&'a Path>,
}

impl ShardSearch<'_> {
    fn check(&self) -> Result<()> {
        let (n, borders) = (self.weight.len(), self.borders);
        self.labels.check(n)?;
        check_weights(self.weight, n)?;
        check_length("borders of shards", self.task.facts.n_shards + 1, borders.len())?;
        if !borders.is_sorted() || borders[0] != 0 || borders[borders.len() - 1] as usize != n {
            return Err(Error::Shape { what: "rows of shards", expected: n, found: 0 });
        }
        if self.task.loss.is_smooth() {
            return Ok(());
        }
        let rule = "a smooth loss for a search on shards";
        Err(Error::Parameter { name: "loss", value: format!("{:?}", self.task.loss), rule })
    }

    /// What a journal depends on; the cut into shards too, since the bits do.
    fn fingerprint(
        &self,
        link: &Link<'_>,
        settings: &SearchSettings,
        merging: Option<&Merging>,
    ) -> Result<Fingerprint> {
        let [rows, _] = hashes(|request| link.gather(request))?;
        let Self { task, labels, weight, folds, borders, .. } = self;
        let data = [
            ("shape of X", format!("{} x {}", weight.len(), task.n_columns)),
            (CUT, hex(hash_bytes(borders.iter().flat_map(|b| b.to_le_bytes())))),
            ("hash of X", rows),
            ("number of classes", labels.n_classes.to_string()),
            ("hash of y", hex(hash_bytes(labels.ids.iter().flat_map(|id| id.to_le_bytes())))),
            ("hash of sample_weight", hex(hash_bytes(weight.iter().flat_map(|v| v.to_le_bytes())))),
            ("number of folds", folds.len().to_string()),
            ("hash of cv", hex(hash_folds(folds))),
        ];
        let merged = merging.map(|found| ("columns that travel", found.n_columns().to_string()));
        let data: Vec<_> = data.into_iter().chain(merged).collect();
        Ok(Fingerprint::with(&data, settings, self.plan))
    }

    /// The shard of each held-out row, fold by fold.
    fn owners(&self, parts: &[FoldRows<'_>]) -> Vec<Vec<u32>> {
        let owner = |row: &u32| self.borders.partition_point(|first| first <= row) as u32 - 1;
        let of_part = |part: &FoldRows<'_>| {
            let mut owners = memory::with_capacity(part.test.len());
            owners.extend(part.test.iter().map(owner));
            owners
        };
        parts.iter().map(of_part).collect()
    }
}

/// A hash of the rows of all shards, and one of their classes and costs.
///
/// # Errors
/// Those of `gather`.
pub fn hashes(gather: impl FnOnce(&Request) -> Result<Vec<Vec<f64>>>) -> Result<[String; 2]> {
    let mut request = Request::new(1);
    request.op(Op::Hash);
    let found = gather(&request)?;
    let part = |halves: Range<usize>| {
        let numbers = found.iter().flat_map(|shard| shard.get(halves.clone()).unwrap_or_default());
        hex(hash_bytes(numbers.flat_map(|half| half.to_le_bytes())))
    };
    Ok([part(0..2), part(2..4)])
}

/// Runs a search as [`crate::search::search`] does, each class against the rest.
///
/// # Errors
/// Those of the checks, of the exchange, of Newton, of the journal, and of `visit`.
pub fn search(
    search: &ShardSearch<'_>,
    exchange: &mut dyn Exchange,
    monitor: &dyn Monitor,
    visit: &mut dyn FnMut(&SearchStep) -> Result<Option<f64>>,
) -> Result<EndReason> {
    search.check()?;
    let merging = Merging::find(search.task, exchange, monitor)?;
    search_with(merging.as_ref(), search, exchange, monitor, visit)
}

/// [`search`] with the columns that travel in place of the data's.
pub(super) fn search_with(
    merging: Option<&Merging>,
    search: &ShardSearch<'_>,
    exchange: &mut dyn Exchange,
    monitor: &dyn Monitor,
    visit: &mut dyn FnMut(&SearchStep) -> Result<Option<f64>>,
) -> Result<EndReason> {
    let Some(found) = merging else {
        return run(search, search.task, None, exchange, monitor, visit);
    };
    run(search, &found.task(search.task), merging, &mut Told::new(exchange, found), monitor, visit)
}

/// Runs a search; the columns of `task` are those that travel.
fn run(
    search: &ShardSearch<'_>,
    task: &ShardTask,
    merging: Option<&Merging>,
    exchange: &mut dyn Exchange,
    monitor: &dyn Monitor,
    visit: &mut dyn FnMut(&SearchStep) -> Result<Option<f64>>,
) -> Result<EndReason> {
    let ShardSearch { labels, weight, plan, .. } = *search;
    let ShardTask { loss, intercept, params, facts, .. } = *task;
    let settings = SearchSettings { loss, intercept, params, multi_class: MultiClass::OneVsRest };
    let parts = folds::parts(weight.len(), &labels, weight, search.folds)?;
    let total = weight.iter().sum();
    let schedule =
        SearchSchedule::new(plan, || Ok(settings.lower_bound(total, facts.longest, labels.n_classes)))?;
    let (link, owners) = (Link::new(exchange), search.owners(&parts));
    let numbers = LaneNumbers { n_folds: parts.len(), n_problems: labels.n_problems() };
    let journal = match search.resume {
        Some(path) => Some(Journal::open(path, &search.fingerprint(&link, &settings, merging)?)?),
        None => None,
    };
    let lanes = LaneFacts::new(labels, &parts, &settings, schedule.last(), plan.stop);
    let of_part = |part: Range<usize>| -> Result<Box<dyn Group + '_>> {
        let there = There { owners: &owners, numbers, n_shards: facts.n_shards };
        let newton = newton_of((task, merging), &link, (&part, numbers.n_problems), monitor);
        Ok(Box::new(LaneGroup::new(newton, there, &lanes, part)))
    };
    let route = Primal::over(&lanes, of_part)?;
    let fits = |step: &SearchStep| {
        let shape = parts.iter().map(|part| part.test.len() * numbers.n_problems);
        step.objective.len() == numbers.n_lanes() && step.decisions.iter().map(Vec::len).eq(shape)
    };
    driver::drive(schedule, Runner::new(Box::new(route), journal), fits, monitor, visit)
}

/// Newton on the lanes of a part of their order, at zero.
fn newton_of<'a>(
    (task, merging): (&ShardTask, Option<&Merging>),
    link: &Rc<Link<'a>>,
    (part, n_problems): (&Range<usize>, usize),
    monitor: &'a dyn Monitor,
) -> Newton<'a, Remote<'a, LANES>, LANES> {
    let (n_columns, intercept, n_lanes) = (task.n_weights(), task.intercept, part.len());
    let ShardFacts { n_rows, max_squared_norm, .. } = task.facts;
    let lanes = Lanes::Folds(part.start, n_lanes, n_problems);
    let rows = Remote::begin(link, (n_rows, max_squared_norm), lanes, n_columns, intercept.bias());
    let factorisation = task.factorisation().filter(|_| merging.is_none());
    let shape = Shape { n_columns, intercept, n_lanes, keeps_dual: false, factorisation, are_far: true };
    Newton::over(rows, &shape, monitor)
}

/// Rows at shards.
struct There<'a> {
    /// Shards of the held-out rows, fold by fold.
    owners: &'a [Vec<u32>],
    numbers: LaneNumbers,
    n_shards: usize,
}

impl<'a> Place for There<'a> {
    type Rows = Remote<'a, LANES>;
    type Terms = ShardTerms;

    fn terms(&self) -> &ShardTerms {
        &ShardTerms::Smooth
    }

    fn wake(&self, newton: &mut Newton<'_, Self::Rows, LANES>) -> Result<()> {
        if newton.rows.wake() { newton.refresh() } else { Ok(()) }
    }

    fn held_out(&self, newton: &mut Newton<'_, Self::Rows, LANES>, lanes: &[usize]) -> Result<Vec<Vec<f64>>> {
        let answers = newton.rows.held_out()?;
        check_length("answers of shards", self.n_shards, answers.len())?;
        let mut left: Vec<_> = answers.iter().map(|values| values.iter().copied()).collect();
        let mut of_lane = |k: &usize| -> Option<Vec<f64>> {
            let owners = &self.owners[self.numbers.fold(*k)];
            let mut values = memory::with_capacity(owners.len());
            for owner in owners {
                values.push(left[*owner as usize].next()?);
            }
            Some(values)
        };
        let found: Option<Vec<_>> = lanes.iter().map(&mut of_lane).collect();
        let n_found = answers.iter().map(Vec::len).sum();
        let is_all = left.iter().all(|left| left.len() == 0);
        found.filter(|_| is_all).ok_or(Error::Shape {
            what: "held-out rows of shards",
            expected: self.owners.iter().map(Vec::len).sum(),
            found: n_found,
        })
    }

    fn decided(_: &Newton<'_, Self::Rows, LANES>) -> Vec<f64> {
        Vec::new()
    }

    fn restore(&self, newton: &mut Newton<'_, Self::Rows, LANES>, decided: Option<&[f64]>) -> Result<()> {
        newton.rows.begin_anew();
        if decided.is_some() { newton.refresh() } else { Ok(()) }
    }
}
