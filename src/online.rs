//! Learning from rows that are seen once (ChangRoth11, section 4): bounded memory, however long the stream.
//!
//! New rows get two epochs when they arrive, so the model knows them at once. Whenever they have a quarter
//! of the entries of the rows before them, all rows in memory get some epochs (`epochs`); when the room is
//! full, the rows most likely to change the model become the new cache, and the others are forgotten. So a
//! row costs two visits on arrival and about `2 rounds` more, whatever the size of the pieces in which the
//! stream comes. Deviation: ChangRoth11 gather a block and train it once beside the cached rows.
//!
//! More than two classes are learned each against the rest, all at once by the method of Crammer and Singer
//! ([`AllClasses`]), or all in one multinomial problem ([`softmax`]).
//!
//! Tried: `rounds` epochs at each doubling, the same number of visits. Up to half of the rows then have seen
//! their one epoch only, in which their dual variables overshoot: those of the squared hinge have no upper
//! bound, and what a row is forgotten with stays. After one pass its objective was half above the optimum; it
//! is a quarter now, a hinge's 3 %, a logistic's less.
//!
//! **What is kept of a forgotten row.** Its dual variable `a_i` is dropped, its part `a_i y_i x_i` of the
//! weights stays for ever: the weights are `w = sum_i a_i y_i x_i` over *all* rows seen, a feasible point of
//! the dual of the problem of all of them. Each step raises that dual value; a forgotten row's variable moves
//! no more. A row that comes again is a new row, as if it had come twice. Nothing fades: a stream whose law
//! changes should be learned anew from time to time.
//!
//! **Intercept.** A penalised one suits a stream. Tried: a free one by the method of multipliers, as in a
//! fit; its multiplier runs after the imbalance of the last rows (random rows of two equal classes, a cache
//! of a tenth: 0.77 of test rows right, 0.92 with a penalised one).
//!
//! **More than two classes** of the logistic loss are one problem by default. Held-out log loss and accuracy
//! after a stream of pieces, against each class against the rest with the same C, and (last) of a fit of all
//! rows: digits, C = 1, 0.174 and 0.956, 0.213 and 0.962, 0.138 and 0.978; 20news, C = 1, 1.179 and 0.843,
//! 1.246 and 0.842, 1.179 and 0.843, within 30 MB 0.981 and 0.837, 1.088 and 0.837; sector, C = 1, 2.671 and
//! 0.880, 2.821 and 0.891, 2.677 and 0.877. At large costs the other way round, as for fits: 20news, C = 16,
//! 0.650 and 0.855, 0.598 and 0.858, 0.650 and 0.855. On small dense data at large costs a stream is further
//! from its optimum by one problem of all classes: digits, C = 10, within 3 MB, 0.137, 0.130, 0.073.
//!
//! There is no certificate, since the rows that it would need are gone; [`Stream::duals`] are lower bounds of
//! the optimum of all rows seen.

pub mod softmax;

use std::borrow::Cow;

use rayon::prelude::*;

use self::softmax::{SoftmaxLearner, SoftmaxTraining};
use crate::blocks::budget;
use crate::blocks::choice::{Capacity, Policy, choose, lot};
use crate::blocks::crammer_singer::AllClasses;
use crate::blocks::problem::{BlockProblem, BlockStep};
use crate::blocks::settings::BlockSettings;
use crate::blocks::state::{BinaryProblem, BinaryState};
use crate::blocks::task::{BinaryTask, free_bias};
use crate::fit::sweep::dot;
use crate::fit::{Intercept, Monitor, check_length};
use crate::matrix::arena::{ROW_BYTES, Width};
use crate::matrix::csr::MAX_SQUARED_NORM;
use crate::matrix::kernels::LINE;
use crate::matrix::{Matrix, Rows};
use crate::source::resident::{Plain, Resident};
use crate::store::format::checksum;
use crate::{Error, Result, memory};

/// Rows taken in at a time, so that a large piece meets a full room in the middle.
const PIECE_ROWS: usize = 4096;
/// Smallest room for rows, of so many entries each; a smaller budget is refused.
const LEAST_ROWS: u64 = 1024;
const LEAST_LENGTH: f64 = 16.0;
/// Epochs over new rows: dual variables overshoot in the first.
const ARRIVAL: usize = 2;
/// All rows are trained when they have so many times the entries of the last time.
const PROGRESS: f64 = 1.25;
/// Room grows by half, and while it does the old room is still there.
const GROWTH: f64 = 2.5;

/// What several classes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamProblem {
    /// Each class against the rest.
    Each,
    /// One problem of Crammer and Singer.
    CrammerSinger,
    /// One multinomial problem.
    Softmax,
}

/// What is learned.
#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Loss, intercept, seed, budget, cache and rounds; tolerance and limit of passes have no meaning here.
    pub settings: BlockSettings<'static>,
    /// Number of columns.
    pub n_cols: usize,
    /// `C` times the class weight, by class.
    pub cost: Vec<f64>,
    /// How values are kept.
    pub width: Width,
    /// What the classes are.
    pub problem: StreamProblem,
}

/// What learns.
enum Learner {
    /// Each class against the rest.
    Each(Vec<BinaryTask>, Vec<BinaryState>),
    /// All classes in one problem.
    Classes(AllClasses),
    /// All classes in one problem with the softmax.
    Softmax(SoftmaxLearner),
}

/// A model that learns.
pub struct Stream {
    options: StreamOptions,
    learner: Learner,
    resident: Resident,
    /// Height of the constant column; found at the first rows.
    bias: Option<f64>,
    counts: Counts,
}

/// Where a stream is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows seen.
    pub seen: u64,
    /// Rows that all took part in the last training; those behind them are new.
    pub cached: usize,
    /// Trainings so far: what random orders are drawn from.
    pub steps: u64,
}

/// All that a stream is made of, to be kept and taken up again.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The rows in memory.
    pub rows: Plain,
    /// Their classes.
    pub classes: Vec<u32>,
    /// Their sample weights.
    pub weights: Vec<f64>,
    /// States of the problems; dual variables of the rows in memory only. Where all classes are one problem,
    /// one for each class, of a multinomial one with logits as dual variables.
    pub states: Vec<BinaryState>,
    /// Height of the constant column.
    pub bias: Option<f64>,
    /// Where the stream is.
    pub counts: Counts,
}

/// Epochs over all rows each time: in all as many visits as `rounds` epochs at each doubling, since the times
/// are `1 / (1 - 1 / PROGRESS) = 5` for a row that stays, instead of 2.
fn epochs(rounds: usize) -> usize {
    (2 * rounds).div_ceil(5)
}

impl Stream {
    /// Begins at zero.
    ///
    /// # Errors
    /// [`Error::Parameter`]; [`Error::Budget`] where the weights leave no room for rows.
    pub fn new(options: StreamOptions) -> Result<Self> {
        options.settings.check()?;
        if options.problem != StreamProblem::Each && options.settings.policy == Policy::Steepest {
            let rule = match options.problem {
                StreamProblem::Softmax => {
                    "'auto', 'gradient', 'projected', 'random' or 'none' with multi_class=\"multinomial\""
                }
                _ => "'auto', 'gradient', 'projected', 'random' or 'none' with 'crammer_singer'",
            };
            return Err(Error::Parameter { name: "cache", value: "'steepest'".to_owned(), rule });
        }
        let d = options.n_cols + usize::from(options.settings.intercept != Intercept::None);
        let state = || BinaryState {
            w: memory::zeros(d),
            alpha: Vec::new(),
            offset: 0.0,
            sums: Default::default(),
            losses: 0.0,
            visits: 0,
        };
        let (cost, intercept) = (&options.cost, options.settings.intercept);
        let learner = match options.problem {
            StreamProblem::Softmax => Learner::Softmax(SoftmaxLearner::new(d, cost, intercept)),
            StreamProblem::CrammerSinger => {
                Learner::Classes(AllClasses::of_stream(options.n_cols, cost, d > options.n_cols))
            }
            StreamProblem::Each => {
                let tasks = BinaryTask::one_against_rest(cost.len(), cost)?;
                let states = tasks.iter().map(|_| state()).collect();
                Learner::Each(tasks, states)
            }
        };
        let resident = Resident::new(options.width, options.n_cols, 0, 0)?;
        let stream = Self { options, learner, resident, bias: None, counts: Counts::default() };
        stream.check_budget()?;
        Ok(stream)
    }

    /// Where the stream is.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of rows in memory.
    pub fn n_resident(&self) -> usize {
        self.resident.len()
    }

    /// Bytes of the weights, and of a row of so many entries.
    fn needs(&self, length: f64) -> (u64, f64) {
        let (n, of_problems) = match &self.learner {
            Learner::Each(tasks, _) => {
                let n = tasks.len();
                (n, n.min(budget::SIDE_BY_SIDE) * budget::STATE + 8 * n)
            }
            Learner::Classes(all) => {
                (all.n_classes().next_multiple_of(LINE), budget::CLASSES_ROW + budget::LISTS)
            }
            // Logits, a copy of those in work, and the rows that have a cost.
            Learner::Softmax(learner) => {
                let n = learner.n_classes().next_multiple_of(LINE);
                (n, budget::SOFTMAX_ROW + 16 * n)
            }
        };
        let beside = ROW_BYTES + budget::BOOKKEEPING + of_problems;
        let row = GROWTH * (beside as f64 + length * self.options.width.entry_bytes() as f64);
        (n as u64 * 8 * (self.options.n_cols as u64 + 1), row)
    }

    /// Checks that the budget has room for some rows.
    fn check_budget(&self) -> Result<()> {
        let ((states, row), budget) = (self.needs(LEAST_LENGTH), self.options.settings.budget);
        let needed = states + LEAST_ROWS * row as u64;
        if budget >= needed {
            return Ok(());
        }
        let parts =
            format!("{states} bytes for the weights of {} problem(s), the rest for rows", self.n_problems());
        Err(Error::Budget { budget, needed, parts })
    }

    /// Room for rows of a mean length, within the budget.
    fn capacity(&self, mean: f64) -> Capacity {
        let (states, row) = self.needs(mean);
        let rows = self.options.settings.budget.saturating_sub(states) as f64 / row;
        Capacity { rows: u32::MAX as usize, entries: (rows * mean) as usize }
    }

    /// Learns from rows with their class ids and sample weights.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Labels`], [`Error::Scale`] for invalid rows, before anything is learned;
    /// [`Error::Cancelled`], after which the stream is that of a part of the rows.
    pub fn learn(
        &mut self,
        rows: &Matrix<'_>,
        classes: &[u32],
        weights: Option<&[f64]>,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        self.check(rows, classes, weights)?;
        let mut buffer = Vec::new();
        for start in (0..rows.n_rows()).step_by(PIECE_ROWS) {
            let range = start..(start + PIECE_ROWS).min(rows.n_rows());
            let mut plain = Plain::default();
            range.clone().for_each(|i| plain.push(rows, i, &mut buffer));
            let ones;
            let weights = match weights {
                Some(weights) => &weights[range.clone()],
                None => {
                    ones = memory::filled(1.0, range.len());
                    &ones
                }
            };
            self.take_in(&plain, &classes[range], weights, monitor)?;
        }
        Ok(())
    }

    fn check(&self, rows: &Matrix<'_>, classes: &[u32], weights: Option<&[f64]>) -> Result<()> {
        check_length("columns", self.options.n_cols, rows.n_cols())?;
        check_length("labels", rows.n_rows(), classes.len())?;
        if let Some(&class) = classes.iter().find(|&&class| class as usize >= self.options.cost.len()) {
            return Err(Error::Labels { reason: format!("class id {class} is out of range") });
        }
        if let Some(weights) = weights {
            crate::labels::check_weights(weights, rows.n_rows())?;
        }
        let squared_norm = rows.max_squared_norm();
        if squared_norm > MAX_SQUARED_NORM {
            return Err(Error::Scale { squared_norm, limit: MAX_SQUARED_NORM });
        }
        Ok(())
    }

    fn take_in(
        &mut self,
        plain: &Plain,
        classes: &[u32],
        weights: &[f64],
        monitor: &dyn Monitor,
    ) -> Result<()> {
        if self.bias.is_none() {
            self.bias = Some(self.first_bias(plain, classes, weights));
        }
        // From here on the stream is another one, also if memory runs out before all of it has been learned.
        self.counts.seen += classes.len() as u64;
        let old = self.resident.len();
        self.resident.push(plain, classes, weights)?;
        let n = self.resident.len();
        match &mut self.learner {
            Learner::Each(_, states) => {
                states.iter_mut().for_each(|state| memory::resize(&mut state.alpha, n, 0.0));
            }
            Learner::Classes(all) => all.grow(n),
            Learner::Softmax(learner) => learner.grow(n),
        }
        self.train(old, ARRIVAL, monitor)?;
        let mean = (self.resident.nnz() as f64 / n.max(1) as f64).max(1.0);
        let capacity = self.capacity(mean);
        let (all, cached) = (self.resident.nnz(), self.entries_of(self.counts.cached));
        if all as f64 >= PROGRESS * cached as f64 || all >= capacity.entries {
            self.train(0, epochs(self.options.settings.rounds), monitor)?;
            self.forget(capacity, monitor)?;
        }
        Ok(())
    }

    fn entries_of(&self, rows: usize) -> usize {
        (0..rows).map(|i| self.resident.row_len(i)).sum()
    }

    fn first_bias(&self, plain: &Plain, classes: &[u32], weights: &[f64]) -> f64 {
        match self.options.settings.intercept {
            Intercept::None => 0.0,
            Intercept::Penalised(scale) => scale,
            Intercept::Free => {
                let squared: f64 = plain.values.iter().map(|v| v * v).sum();
                let total =
                    classes.iter().zip(weights).map(|(&k, w)| self.options.cost[k as usize] * w).sum();
                free_bias(squared / plain.lens.len().max(1) as f64, total)
            }
        }
    }

    /// Epochs over the rows from number `first` on.
    fn train(&mut self, first: usize, rounds: usize, monitor: &dyn Monitor) -> Result<()> {
        self.counts.steps += 1;
        let (settings, steps) = (self.options.settings, self.counts.steps);
        let (resident, bias) = (&self.resident, self.bias.unwrap_or(0.0));
        let number = |k: usize| checksum(6, &[steps.to_le_bytes(), (k as u64).to_le_bytes()].concat());
        match &mut self.learner {
            Learner::Each(tasks, states) => each(tasks, states, bias, |k, running| {
                let mut rows = resident.rows();
                rows.order = &rows.order[first..];
                let step = BlockStep { settings: &settings, folds: &[], number: number(k), rounds, n_new: 0 };
                running.step(&rows, step, monitor)?;
                Ok(())
            }),
            Learner::Classes(all) => {
                all.set_bias(bias);
                let mut rows = resident.rows();
                rows.order = &rows.order[first..];
                let step = BlockStep { settings: &settings, folds: &[], number: number(0), rounds, n_new: 0 };
                all.step(&rows, step, monitor)?;
                Ok(())
            }
            Learner::Softmax(learner) => {
                let training = SoftmaxTraining { first, rounds, seed: settings.seed, number: number(0) };
                learner.train(resident, bias, training, monitor)
            }
        }
    }

    /// Keeps the best rows that fit the cache, if the room is full.
    fn forget(&mut self, capacity: Capacity, monitor: &dyn Monitor) -> Result<()> {
        let settings = self.options.settings;
        let share = settings.share(0.0);
        let cache = Capacity { rows: capacity.rows, entries: (share * capacity.entries as f64) as usize };
        if self.resident.nnz() < capacity.entries {
            self.counts.cached = self.resident.len();
            return Ok(());
        }
        let seed = checksum(settings.seed, &self.counts.steps.to_le_bytes());
        let mut score = memory::filled(f32::INFINITY, self.resident.len());
        match settings.policy {
            Policy::None => {}
            Policy::Random => (0..).zip(&mut score).for_each(|(i, s)| *s = lot(seed ^ 1, i) as f32),
            Policy::Auto | Policy::Gradient | Policy::Projected | Policy::Steepest => {
                let (resident, bias) = (&self.resident, self.bias.unwrap_or(0.0));
                match &mut self.learner {
                    Learner::Each(tasks, states) => {
                        let step =
                            BlockStep { settings: &settings, folds: &[], number: seed, rounds: 0, n_new: 0 };
                        let scores = std::sync::Mutex::new(&mut score);
                        each(tasks, states, bias, |_, running| {
                            let mut own = memory::filled(f32::INFINITY, resident.len());
                            running.scores(&resident.rows(), step, &mut own)?;
                            // The smallest of all problems: no order of theirs changes it.
                            let mut all = scores.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                            all.iter_mut().zip(own).for_each(|(all, own)| *all = all.min(own));
                            Ok(())
                        })?;
                    }
                    Learner::Classes(all) => {
                        let step =
                            BlockStep { settings: &settings, folds: &[], number: seed, rounds: 0, n_new: 0 };
                        all.scores(&resident.rows(), step, &mut score)?;
                    }
                    Learner::Softmax(learner) => learner.closeness(resident, bias, &mut score, monitor)?,
                }
            }
        }
        let chosen =
            choose(&score, self.resident.rows().positions, |i| self.resident.row_len(i), cache, seed);
        self.resident.keep(&chosen);
        self.resident.renumber();
        match &mut self.learner {
            Learner::Each(_, states) => {
                for state in states {
                    for (to, &from) in chosen.iter().enumerate() {
                        state.alpha[to] = state.alpha[from as usize];
                    }
                    state.alpha.truncate(chosen.len());
                }
            }
            Learner::Classes(all) => all.keep(&chosen),
            Learner::Softmax(learner) => learner.keep(&chosen),
        }
        self.counts.cached = chosen.len();
        Ok(())
    }

    /// Weights and intercept of a problem, or of a class where all are one.
    pub fn model(&self, problem: usize) -> (Cow<'_, [f64]>, f64) {
        let (d, bias) = (self.options.n_cols, self.bias.unwrap_or(0.0));
        let of_constant = |w: &[f64]| if bias == 0.0 { 0.0 } else { bias * w[d] };
        let (mut w, offset) = match &self.learner {
            Learner::Each(_, states) => {
                let state = &states[problem];
                return (Cow::Borrowed(&state.w[..d]), state.offset + of_constant(&state.w));
            }
            Learner::Classes(all) => all.class(problem),
            Learner::Softmax(learner) => learner.model(problem),
        };
        let intercept = offset + of_constant(&w);
        w.truncate(d);
        (Cow::Owned(w), intercept)
    }

    /// Number of binary problems, or of classes where all are one problem: of vectors of weights.
    pub fn n_problems(&self) -> usize {
        match &self.learner {
            Learner::Each(tasks, _) => tasks.len(),
            Learner::Classes(all) => all.n_classes(),
            Learner::Softmax(learner) => learner.n_classes(),
        }
    }

    /// Dual values at all rows seen, one for each problem; with a free intercept its constraint is met in the
    /// limit only.
    pub fn duals(&self) -> Vec<f64> {
        let d = self.options.n_cols;
        let is_free = self.options.settings.intercept == Intercept::Free;
        let dual = |state: &BinaryState| {
            let w = if is_free { &state.w[..d] } else { &state.w[..] };
            state.sums.terms - 0.5 * dot(w, w)
        };
        match &self.learner {
            Learner::Each(_, states) => states.iter().map(dual).collect(),
            Learner::Classes(all) => vec![all.dual(self.options.settings.intercept)],
            Learner::Softmax(learner) => vec![learner.dual()],
        }
    }

    /// All that the stream is made of.
    pub fn snapshot(&self) -> Snapshot {
        let mut rows = Plain::default();
        let mut buffer = Vec::new();
        let view = &Matrix::from(self.resident.rows().view);
        (0..view.n_rows()).for_each(|i| rows.push(view, i, &mut buffer));
        let (classes, weights) = self.resident.facts();
        let (classes, weights) = (memory::copy(classes), memory::copy(weights));
        let states = match &self.learner {
            Learner::Each(_, states) => states.clone(),
            Learner::Classes(all) => all.states(),
            Learner::Softmax(learner) => learner.states(),
        };
        Snapshot { rows, classes, weights, states, bias: self.bias, counts: self.counts }
    }

    /// Goes on from a snapshot, to the same bits.
    ///
    /// # Errors
    /// As for [`Self::new`]; [`Error::Shape`] and [`Error::Structure`] for a snapshot of another stream.
    pub fn restore(options: StreamOptions, snapshot: Snapshot) -> Result<Self> {
        let mut stream = Self::new(options)?;
        let n = snapshot.classes.len();
        check_length("problems of a stream", stream.n_problems(), snapshot.states.len())?;
        check_length("weights of rows of a stream", n, snapshot.weights.len())?;
        check_length("rows of a stream", n, snapshot.rows.lens.len())?;
        check_length("cached rows of a stream", snapshot.counts.cached.min(n), snapshot.counts.cached)?;
        let options = &stream.options;
        let n_columns = options.n_cols + usize::from(options.settings.intercept != Intercept::None);
        for given in &snapshot.states {
            check_length("weights of a stream", n_columns, given.w.len())?;
            check_length("dual variables of a stream", n, given.alpha.len())?;
        }
        if let Some(&class) =
            snapshot.classes.iter().find(|&&class| class as usize >= stream.options.cost.len())
        {
            return Err(Error::Labels { reason: format!("class id {class} is out of range") });
        }
        stream.resident.push(&snapshot.rows, &snapshot.classes, &snapshot.weights)?;
        match &mut stream.learner {
            Learner::Each(_, states) => *states = snapshot.states,
            Learner::Classes(all) => all.resume(&snapshot.states, &snapshot.classes),
            Learner::Softmax(learner) => learner.take(&snapshot.states, n),
        }
        (stream.bias, stream.counts) = (snapshot.bias, snapshot.counts);
        Ok(stream)
    }
}

/// Calls `f` for each problem with its state.
fn each(
    tasks: &[BinaryTask],
    states: &mut [BinaryState],
    bias: f64,
    f: impl Fn(usize, &mut BinaryProblem<'_>) -> Result<()> + Sync,
) -> Result<()> {
    states.par_iter_mut().enumerate().try_for_each(|(k, state)| {
        let empty = BinaryState { w: vec![], alpha: vec![], ..*state };
        let state_now = std::mem::replace(state, empty);
        let mut running = BinaryProblem { task: &tasks[k], state: state_now, bias, disk: None };
        let done = f(k, &mut running);
        *state = running.state;
        done
    })
}
