//! The visits of rows, by one thread or by several in step, each with the weights of its own classes
//! ([`super::team`]).

use std::time::Instant;

use super::kernels::Change;
use super::largest::largest;
use super::rows::{Entry, Lists};
use super::setup::{ClassSetup, POLL_STEPS};
use super::simplex::{Candidate, project};
use super::team::Member;
use super::weights::{LINE, WeightsPart};
use crate::fit::dual::active::{ActiveSet, Random};
use crate::fit::dual::method::Epoch;
use crate::fit::monitor::Monitor;
use crate::fit::problem::Intercept;
use crate::fit::routes::{FULL_EPOCHS, MAX_LOST};
use crate::matrix::rows::ROWS_AHEAD;
use crate::{Error, Result};

/// A spread of gradients below this, relatively, is rounding.
const NEGLIGIBLE: f64 = 1e-14;

/// The state of a descent but for its weights: every thread has its own copy, and all copies are equal.
#[derive(Clone)]
pub struct DualState {
    /// Dual variables.
    pub lists: Lists,
    /// Rows to visit.
    pub active: ActiveSet,
    /// Epochs so far.
    pub n_epochs: usize,
}

/// What all threads read and none changes.
#[derive(Clone, Copy)]
pub struct SharedState<'w> {
    /// The problem.
    pub setup: &'w ClassSetup<'w>,
    /// `|x_i|^2`, constant column included.
    pub squared: &'w [f64],
    /// Rows with less of the gap than this rest.
    pub idle: f64,
    /// Whether every visit computes the scores of all classes.
    pub sees_all: bool,
    /// Which thread has a class, if there are several.
    pub owner: &'w [u16],
}

/// One thread with the classes that are its own.
pub struct Worker<'w> {
    shared: SharedState<'w>,
    member: Member<'w>,
    state: &'w mut DualState,
    /// The weights of its classes, which are neighbours.
    parts: &'w mut [WeightsPart],
    /// Multipliers of the free intercept's constraints, of its own classes.
    offsets: &'w mut [f64],
    scratch: Scratch,
}

/// Scratch of a step.
#[derive(Default)]
struct Scratch {
    /// Gradients: of all classes, or of the list's at the same positions.
    gradients: Vec<f64>,
    /// Of the classes in the list that are in a part: their positions, numbers in the part, and scores.
    positions: Vec<u32>,
    classes: Vec<u32>,
    scores: Vec<f64>,
    candidates: Vec<Candidate>,
    list: Vec<Entry>,
    changes: Vec<Change>,
}

/// Why threads have stopped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EpochsEnd {
    /// The leader has decided so.
    Done,
    /// One thread alone is faster at present.
    Slow,
}

/// What a row's visit did.
enum Visit {
    /// The row has nothing left.
    Idle,
    /// Increase of the dual value, and how far the row was from its optimum: the highest gradient less the
    /// lowest of a positive variable.
    Gain { gain: f64, spread: f64 },
}

impl<'w> Worker<'w> {
    /// Ready to begin.
    pub fn new(
        shared: SharedState<'w>,
        member: Member<'w>,
        state: &'w mut DualState,
        parts: &'w mut [WeightsPart],
        offsets: &'w mut [f64],
    ) -> Self {
        let n_padded = shared.setup.n_classes.next_multiple_of(LINE);
        let scratch = Scratch { gradients: vec![0.0; n_padded], ..Scratch::default() };
        Self { shared, member, state, parts, offsets, scratch }
    }

    /// Epochs until `goes_on`, which is asked after each, says no, or the others have no cores to go on with;
    /// which of the two.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn lead(mut self, random: &mut Random, goes_on: &mut dyn FnMut(&Epoch) -> bool) -> Result<EpochsEnd> {
        let (monitor, begun) = (self.shared.setup.monitor, Instant::now());
        loop {
            let epoch = self.epoch(random, Some(monitor))?;
            let is_done = !goes_on(&epoch);
            let is_slow = self.member.lost().as_secs_f64() > MAX_LOST * begun.elapsed().as_secs_f64();
            self.tell(&mut [f64::from(u8::from(!is_done && !is_slow))])?;
            if is_done || is_slow {
                return Ok(if is_done { EpochsEnd::Done } else { EpochsEnd::Slow });
            }
        }
    }

    /// The same epochs in another thread.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if the leader has ended early.
    pub fn follow(mut self, mut random: Random) -> Result<()> {
        let mut goes_on = [1.0];
        while goes_on == [1.0] {
            self.epoch(&mut random, None)?;
            self.tell(&mut goes_on)?;
        }
        Ok(())
    }

    /// The leader's decision.
    fn tell(&mut self, decision: &mut [f64; 1]) -> Result<()> {
        if self.member.complete(decision, |_| 0) { Ok(()) } else { Err(Error::Cancelled) }
    }

    /// Visits every active row once, in a fresh random order.
    fn epoch(&mut self, random: &mut Random, monitor: Option<&dyn Monitor>) -> Result<Epoch> {
        let rows = self.shared.setup.rows;
        self.state.active.shuffle(random);
        let is_full = self.shared.sees_all || self.state.n_epochs < FULL_EPOCHS;
        let (mut epoch, mut s) = (Epoch::default(), 0);
        while let Some(i) = self.state.active.get(s) {
            if let Some(monitor) = monitor.filter(|_| epoch.visited % POLL_STEPS == 0) {
                monitor.poll()?;
            }
            epoch.visited += 1;
            if let Some(next) = self.state.active.get(s + ROWS_AHEAD) {
                rows.ask(next);
                self.state.lists.prefetch_list(next);
            }
            if let Some(next) = self.state.active.get(s + 2 * ROWS_AHEAD) {
                rows.ask_header(next);
                self.state.lists.prefetch(next);
            }
            match self.step(i, is_full)? {
                Visit::Idle => self.state.active.shrink(s),
                Visit::Gain { gain, spread } => {
                    epoch.gain += gain;
                    epoch.largest = epoch.largest.max(spread);
                    epoch.smallest = 0.0;
                    s += 1;
                }
            }
        }
        self.state.lists.tidy();
        self.state.n_epochs += 1;
        if self.shared.setup.intercept == Intercept::Free {
            let bias = self.shared.setup.bias;
            let constant = self.parts.iter().flat_map(|part| part.column(rows.n_columns() - 1));
            self.offsets.iter_mut().zip(constant).for_each(|(b, w)| *b += bias * w);
        }
        Ok(epoch)
    }

    /// Gradients of row `i`, of all classes or of those in its list.
    fn gradients(&mut self, i: usize, is_full: bool) -> Result<()> {
        let SharedState { setup, owner, .. } = self.shared;
        let (rows, own) = (setup.rows, setup.class[i] as usize);
        let first = self.parts[0].classes().start;
        let Scratch { gradients, positions, classes, scores, list, .. } = &mut self.scratch;
        let is_complete = if is_full {
            self.parts.iter().for_each(|part| part.scores(rows, i, &mut gradients[part.classes().start..]));
            let mine = first..first + self.offsets.len();
            gradients[mine.clone()].iter_mut().zip(&*self.offsets).for_each(|(g, b)| *g += b + 1.0);
            if mine.contains(&own) {
                gradients[own] -= 1.0;
            }
            self.member.complete(&mut gradients[..setup.n_classes], |class| owner[class].into())
        } else {
            for part in &*self.parts {
                let mine = part.classes();
                positions.clear();
                classes.clear();
                for (position, entry) in list.iter().enumerate() {
                    if mine.contains(&(entry.class as usize)) {
                        positions.push(position as u32);
                        classes.push(entry.class - mine.start as u32);
                    }
                }
                scores.resize(classes.len(), 0.0);
                part.some_scores(rows, i, classes, scores);
                for ((&position, &class), score) in positions.iter().zip(&*classes).zip(&*scores) {
                    let class = class as usize + mine.start;
                    gradients[position as usize] =
                        score + (self.offsets[class - first] + f64::from(u8::from(class != own)));
                }
            }
            self.member.complete(&mut gradients[..list.len()], |position| {
                owner[list[position].class as usize].into()
            })
        };
        if is_complete { Ok(()) } else { Err(Error::Cancelled) }
    }

    /// Solves for the variables of row `i`; all classes are candidates, or those in its list.
    fn step(&mut self, i: usize, is_full: bool) -> Result<Visit> {
        self.scratch.list.clear();
        self.scratch.list.extend_from_slice(self.state.lists.get(i));
        self.gradients(i, is_full)?;
        let SharedState { setup, squared, idle, .. } = self.shared;
        let (c, q) = (setup.cost[i], squared[i]);
        let Scratch { gradients, candidates, list, changes, .. } = &mut self.scratch;
        candidates.clear();
        let at = |position: usize, entry: &Entry| if is_full { entry.class as usize } else { position };
        let n_gradients = if is_full { setup.n_classes } else { list.len() };
        let highest = largest(&gradients[..n_gradients]);
        let (mut gap, mut smallest) = (0.0, f64::INFINITY);
        for (position, entry) in list.iter().enumerate() {
            let g = gradients[at(position, entry)];
            gap += entry.u * (highest - g);
            if entry.u > 0.0 {
                smallest = smallest.min(g);
            }
        }
        if gap <= idle || highest - smallest <= NEGLIGIBLE * highest.abs().max(1.0) {
            return Ok(Visit::Idle);
        }
        // Candidates with their d, in `gradients` from here on; the list keeps its gradients in `changes`.
        changes.clear();
        for (position, entry) in list.iter().enumerate() {
            let g = &mut gradients[at(position, entry)];
            changes.push(Change { class: entry.class, delta: *g });
            *g += q * entry.u;
        }
        let top = largest(&gradients[..n_gradients]);
        let least = top - q * c;
        for (position, &d) in gradients[..n_gradients].iter().enumerate() {
            if d >= least {
                let class = if is_full { position as u32 } else { list[position].class };
                candidates.push(Candidate { class, d, u: 0.0 });
            }
        }
        project(candidates, q, c);
        // Changes and the new list.
        let mut gain = 0.0;
        let mut count = 0;
        for position in 0..list.len() {
            let Entry { u, class } = list[position];
            let g = changes[position].delta;
            let found = candidates.iter().position(|candidate| candidate.class == class);
            let next = found.map_or(0.0, |at| candidates.swap_remove(at).u);
            let delta = u - next;
            gain -= delta * (g + 0.5 * q * delta);
            let is_dropped = next == 0.0 && (is_full || (u == 0.0 && g < smallest));
            if !is_dropped {
                list[count] = Entry { u: next, class };
                count += 1;
            }
            changes[position] = Change { class, delta };
        }
        list.truncate(count);
        for candidate in candidates.iter() {
            // Only where all classes were candidates: d is the gradient of a class without a variable.
            let delta = -candidate.u;
            gain -= delta * (candidate.d + 0.5 * q * delta);
            changes.push(Change { class: candidate.class, delta });
            list.push(Entry { u: candidate.u, class: candidate.class });
        }
        changes.retain(|change| change.delta != 0.0);
        self.state.lists.set(i, list);
        if !changes.is_empty() {
            self.parts.iter_mut().for_each(|part| part.add(setup.rows, i, changes));
        }
        Ok(Visit::Gain { gain, spread: highest - smallest })
    }
}
