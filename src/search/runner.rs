//! Moves a route to the next value of `C`: from the state that this value starts from, which is kept in
//! memory or in a journal, or by replaying the step from the journal.

use super::journal::Journal;
use super::plan::{SearchSchedule, Target};
use super::{Route, RouteState, SearchStep};
use crate::fit::Monitor;
use crate::{Error, Result};

/// A route with the states to which it may have to return.
pub struct Runner<'a> {
    route: Box<dyn Route + 'a>,
    /// The state before the first value.
    fresh: RouteState,
    /// The value whose solutions the route holds; `None` before the first.
    at: Option<f64>,
    /// The targets reached so far.
    reached: Vec<Target>,
    /// States in memory, where there is no journal.
    kept: Vec<(f64, RouteState)>,
    journal: Option<Journal>,
}

impl<'a> Runner<'a> {
    /// Begins before the first value.
    pub fn new(route: Box<dyn Route + 'a>, journal: Option<Journal>) -> Self {
        Self { fresh: route.state(), route, at: None, reached: Vec::new(), kept: Vec::new(), journal }
    }

    /// Reaches a target: by the journal, if it holds it in a shape that `fits`, else by the route.
    ///
    /// # Errors
    /// Those of [`Route::advance`] and of the journal.
    pub fn go(
        &mut self,
        target: Target,
        monitor: &dyn Monitor,
        fits: impl Fn(&SearchStep) -> bool,
    ) -> Result<SearchStep> {
        if monitor.cancelled() && !monitor.is_overdue() {
            return Err(Error::Cancelled);
        }
        let replayed = match &mut self.journal {
            Some(journal) => journal.replay(target.c, |record| fits(&record.step))?,
            None => None,
        };
        let step = match replayed {
            Some(record) => record.step,
            None => self.advance(target, monitor)?,
        };
        self.reached.push(target);
        Ok(step)
    }

    fn advance(&mut self, target: Target, monitor: &dyn Monitor) -> Result<SearchStep> {
        monitor.poll()?;
        self.reach(target.from)?;
        let started = monitor.seconds();
        let step = self.route.advance(target.c)?;
        let step = SearchStep { seconds: monitor.seconds() - started, ..step };
        self.at = Some(target.c);
        if let Some(journal) = &mut self.journal {
            journal.append(&step, &self.route.state())?;
        }
        Ok(step)
    }

    /// Puts the route into its state after `from`. A state that is lost (a damaged journal) is computed again
    /// from the one that it started from.
    fn reach(&mut self, from: Option<f64>) -> Result<()> {
        if self.at == from {
            return Ok(());
        }
        match from {
            None => self.route.restore(&self.fresh)?,
            Some(c) => match self.state_at(c)? {
                Some(state) => self.route.restore(&state)?,
                None => {
                    let before =
                        self.reached.iter().find(|target| target.c == c).and_then(|target| target.from);
                    self.reach(before)?;
                    self.route.advance(c)?;
                }
            },
        }
        self.at = from;
        Ok(())
    }

    fn state_at(&mut self, c: f64) -> Result<Option<RouteState>> {
        match &mut self.journal {
            Some(journal) => journal.state_at(c),
            None => Ok(self.kept.iter().find(|(at, _)| *at == c).map(|(_, state)| state.clone())),
        }
    }

    /// Keeps the present state if a later target may start from it after others, and drops states that none
    /// does.
    ///
    /// # Errors
    /// Those of the journal.
    pub fn keep(&mut self, schedule: &SearchSchedule) -> Result<()> {
        if let Some(journal) = &mut self.journal {
            return journal.tidy(|c| schedule.needs(c));
        }
        if schedule.returns() {
            let present = self.at.filter(|c| schedule.needs(*c));
            self.kept.extend(present.map(|c| (c, self.route.state())));
            self.kept.retain(|(c, _)| schedule.needs(*c));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::fit::Silent;
    use crate::search::fingerprint::Fingerprint;
    use crate::search::plan::{SearchPlan, SearchSchedule, StopRule, Values, Visited};

    /// A route whose solution is a digest of the way it came, with a state of some kilobytes.
    struct Walker(Vec<f64>);

    impl Route for Walker {
        fn advance(&mut self, c: f64) -> Result<SearchStep> {
            let digest = (self.0[0] * 1.7 + c).sin();
            self.0.fill(digest);
            Ok(SearchStep {
                c,
                passes: 1.0,
                n_iter: 1,
                inner: 0,
                is_unchanged: false,
                starts_near: false,
                is_converged: true,
                unchanged_until: c,
                objective: vec![digest],
                decisions: Arc::new(vec![vec![digest]]),
                weights: None,
                seconds: 0.0,
                is_replayed: false,
            })
        }
        fn state(&self) -> RouteState {
            RouteState(vec![self.0.clone()])
        }
        fn restore(&mut self, state: &RouteState) -> Result<()> {
            self.0.clone_from(&state.0[0]);
            Ok(())
        }
    }

    fn plan() -> SearchPlan {
        SearchPlan {
            values: Values::Range { c_min: Some(1.0), c_max: 64.0, ratio: 2.0 },
            refine: 3,
            stop: StopRule::Exact,
        }
    }

    /// Walks until `count` steps are done or the plan ends.
    fn walk(path: Option<&Path>, count: usize) -> Vec<(u64, u64)> {
        let journal = path.map(|path| Journal::open(path, &Fingerprint::default()).unwrap());
        let mut runner = Runner::new(Box::new(Walker(vec![0.0; 500])), journal);
        let mut schedule = SearchSchedule::new(&plan(), || Ok(1.0)).unwrap();
        let mut steps = Vec::new();
        while let Some(target) = schedule.next().filter(|_| steps.len() < count) {
            let step = runner.go(target, &Silent, |_| true).unwrap();
            let score = -(step.c.log2() - 2.3).abs();
            schedule.record(Visited {
                c: step.c,
                score,
                is_unchanged: false,
                starts_near: false,
                unchanged_until: step.c,
            });
            runner.keep(&schedule).unwrap();
            steps.push((step.c.to_bits(), step.objective[0].to_bits()));
        }
        steps
    }

    #[test]
    fn interrupted_walks_end_like_whole_ones() {
        let whole = walk(None, usize::MAX);
        let folder = tempfile::tempdir().unwrap();
        for first in 0..whole.len() {
            let path = folder.path().join(format!("{first}"));
            assert_eq!(walk(Some(&path), first), whole[..first]);
            assert_eq!(walk(Some(&path), first + 2), whole[..(first + 2).min(whole.len())]);
            assert_eq!(walk(Some(&path), usize::MAX), whole);
            assert_eq!(walk(Some(&path), usize::MAX), whole);
        }
    }

    #[test]
    fn lost_states_are_computed_again() {
        let whole = walk(None, usize::MAX);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        walk(Some(&path), usize::MAX);
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.len() < 10 * 4000, "most states were dropped: {} bytes", bytes.len());
        for length in (bytes.len() / 4..bytes.len()).step_by(97) {
            std::fs::write(&path, &bytes[..length]).unwrap();
            if let Ok(journal) = Journal::open(&path, &Fingerprint::default()) {
                drop(journal);
                assert_eq!(walk(Some(&path), usize::MAX), whole, "cut to {length}");
            }
        }
    }
}
