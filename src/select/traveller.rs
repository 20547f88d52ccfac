//! A route with the states to which it may have to return, in memory or in a journal.

use super::journal::Journal;
use super::plan::{Course, Target};
use super::{Route, State, Step};
use crate::solver::Monitor;
use crate::{Error, Result};

/// Goes from target to target.
pub struct Traveller<'a> {
    route: Box<dyn Route + 'a>,
    /// The state before the first value.
    fresh: State,
    /// The value whose solutions the route holds; `None` before the first.
    at: Option<f64>,
    /// The targets reached so far.
    reached: Vec<Target>,
    /// States in memory, where there is no journal.
    kept: Vec<(f64, State)>,
    journal: Option<Journal>,
}

impl<'a> Traveller<'a> {
    /// Begins before the first value.
    pub fn new(route: Box<dyn Route + 'a>, journal: Option<Journal>) -> Self {
        Self { fresh: route.state(), route, at: None, reached: Vec::new(), kept: Vec::new(), journal }
    }

    /// Reaches a target: by the journal, if it holds it in a shape that `fits`, else by the route.
    ///
    /// # Errors
    /// Those of [`Route::advance`] and of the journal.
    pub fn go(&mut self, target: Target, monitor: &dyn Monitor, fits: impl Fn(&Step) -> bool) -> Result<Step> {
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

    fn advance(&mut self, target: Target, monitor: &dyn Monitor) -> Result<Step> {
        monitor.poll()?;
        self.reach(target.from)?;
        let started = monitor.seconds();
        let step = self.route.advance(target.c)?;
        let step = Step { seconds: monitor.seconds() - started, ..step };
        self.at = Some(target.c);
        if let Some(journal) = &mut self.journal {
            journal.append(&step, &self.route.state())?;
        }
        Ok(step)
    }

    /// Puts the route into its state after `from`. A state that is lost (a damaged journal) is computed again from the one
    /// that it started from.
    fn reach(&mut self, from: Option<f64>) -> Result<()> {
        if self.at == from {
            return Ok(());
        }
        match from {
            None => self.route.restore(&self.fresh)?,
            Some(c) => match self.state_at(c)? {
                Some(state) => self.route.restore(&state)?,
                None => {
                    let before = self.reached.iter().find(|target| target.c == c).and_then(|target| target.from);
                    self.reach(before)?;
                    self.route.advance(c)?;
                }
            },
        }
        self.at = from;
        Ok(())
    }

    fn state_at(&mut self, c: f64) -> Result<Option<State>> {
        match &mut self.journal {
            Some(journal) => journal.state_at(c),
            None => Ok(self.kept.iter().find(|(at, _)| *at == c).map(|(_, state)| state.clone())),
        }
    }

    /// Keeps the present state if a later target may start from it after others, and drops states that none does.
    ///
    /// # Errors
    /// Those of the journal.
    pub fn keep(&mut self, course: &Course) -> Result<()> {
        if let Some(journal) = &mut self.journal {
            return journal.tidy(|c| course.needs(c));
        }
        if course.returns() {
            let present = self.at.filter(|c| course.needs(*c));
            self.kept.extend(present.map(|c| (c, self.route.state())));
            self.kept.retain(|(c, _)| course.needs(*c));
        }
        Ok(())
    }
}
