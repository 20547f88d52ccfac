//! The side of the rows: some rows of the data, what a fit knows of each, and answers to requests.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::columns::{OwnColumns, TravellingColumns};
use super::spill::{KnownPart, RowVector};
use super::wire::{Op, Reader, ShardAnswer, SumsKind};
use crate::fit::certificate::{self, Duals, RowTotals};
use crate::fit::intercept;
use crate::fit::newton::factorisation;
use crate::fit::newton::factorisation::Form;
use crate::fit::newton::frequent::FrequentColumns;
use crate::fit::newton::hinge::{self, SmoothedHinge};
use crate::fit::newton::line_search;
use crate::fit::newton::preconditioner::Gram;
use crate::fit::newton::row_state::{Passes, RowState, TermPasses};
use crate::fit::objective::Objective;
use crate::fit::sweep::sum;
use crate::fit::{Intercept, Monitor};
use crate::loss::{Loss, LossKind, with_loss, with_smooth_loss};
use crate::matrix::design::Design;
use crate::matrix::lanes::Block;
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::search::folds::Fold;
use crate::search::folds::LaneNumbers;
use crate::search::terms::{FoldTerms, GroupLanes};
use crate::search::{fingerprint, primal};
use crate::{Error, Result, memory};

/// Lanes of a problem of several classes, and of a group of a search.
pub const CLASSES: usize = primal::LANES;

/// The rows of a shard.
#[derive(Clone, Copy)]
pub struct ShardRows<'a> {
    /// The rows.
    pub rows: &'a Matrix<'a>,
    /// Those of a cost above 0.
    pub ids: &'a [u32],
    /// What their columns are, if these are not the data's.
    pub own: Option<&'a OwnColumns>,
    /// Their classes.
    pub classes: &'a [u32],
    /// Their costs.
    pub cost: &'a [f64],
    /// The loss.
    pub loss: LossKind,
    /// Treatment of the intercept.
    pub intercept: Intercept,
    /// What a search has to know, where there is one.
    pub folds: Option<ShardFolds<'a>>,
}

/// The rows of a cost above 0, as [`ShardRows`] borrows them.
pub struct CostedRows {
    /// Their numbers.
    pub ids: Vec<u32>,
    /// Their classes.
    pub classes: Vec<u32>,
    /// Their costs.
    pub cost: Vec<f64>,
}

impl CostedRows {
    /// Of so many rows, from the class and the cost of each.
    pub fn of(n_rows: usize, row: impl Fn(usize) -> (u32, f64)) -> Self {
        let ids: Vec<u32> = (0..n_rows as u32).filter(|i| row(*i as usize).1 > 0.0).collect_large();
        let classes = ids.iter().map(|i| row(*i as usize).0).collect_large();
        let cost = ids.iter().map(|i| row(*i as usize).1).collect_large();
        Self { ids, classes, cost }
    }
}

/// All rows of a shard, as a search sees them.
#[derive(Clone, Copy)]
pub struct ShardFolds<'a> {
    /// The splits, as rows of the shard; a part may be empty.
    pub folds: &'a [Fold],
    /// Classes of all rows.
    pub classes: &'a [u32],
    /// Weights of all rows.
    pub weight: &'a [f64],
}

/// What is summed over the shards before a fit begins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ShardFacts {
    /// Shards: those that answer at the same time.
    pub n_shards: usize,
    /// Pieces of shards that answer one by one, whose sums are added.
    pub n_pieces: usize,
    /// Rows of a cost above 0.
    pub n_rows: usize,
    /// Their entries.
    pub n_entries: f64,
    /// Sum of their costs.
    pub cost: f64,
    /// `sum_i c_i |x_i|^2`.
    pub curvature: f64,
    /// Largest squared norm of a row.
    pub max_squared_norm: f64,
    /// That of all rows, those of cost 0 as well.
    pub longest: f64,
    /// What a matrix of all columns takes, [`factorisation::pairs`].
    pub pairs: [f64; 2],
}

impl ShardFacts {
    /// Takes those of another shard in.
    pub fn join(&mut self, other: &Self) {
        self.n_shards += other.n_shards;
        self.n_pieces += other.n_pieces;
        self.n_rows += other.n_rows;
        self.n_entries += other.n_entries;
        self.cost += other.cost;
        self.curvature += other.curvature;
        self.max_squared_norm = self.max_squared_norm.max(other.max_squared_norm);
        self.longest = self.longest.max(other.longest);
        (0..2).for_each(|k| self.pairs[k] += other.pairs[k]);
    }

    /// The same with all costs multiplied.
    #[must_use]
    pub fn scaled(mut self, scale: f64) -> Self {
        self.cost *= scale;
        self.curvature *= scale;
        self
    }
}

impl<'a> ShardRows<'a> {
    pub(super) fn design(&self, bias: f64) -> Design<'a> {
        Design { rows: self.rows, ids: Some(self.ids), bias }
    }

    /// What the client has to know of them.
    pub fn facts(&self) -> ShardFacts {
        let design = self.design(0.0);
        let norms: Vec<f64> = (0..design.n_rows()).map(|i| design.squared_norm(i)).collect_large();
        let [curvature, cost] = sum(self.cost.len(), |i| [self.cost[i] * norms[i], self.cost[i]]);
        let longest = norms.into_iter().fold(0.0, f64::max);
        let is_all = self.ids.len() == self.rows.n_rows();
        ShardFacts {
            n_shards: 1,
            n_pieces: 1,
            n_rows: self.cost.len(),
            n_entries: design.nnz() as f64,
            cost,
            curvature,
            max_squared_norm: longest,
            longest: if is_all { longest } else { self.rows.max_squared_norm() },
            pairs: factorisation::pairs(&self.design(self.intercept.bias())),
        }
    }

    /// That of all rows, and that of what is known of those of a cost.
    fn hashes(&self) -> [u64; 2] {
        let numbers = self.ids.iter().chain(self.classes).flat_map(|number| number.to_le_bytes());
        let costs = self.cost.iter().flat_map(|cost| cost.to_le_bytes());
        let rows = match self.own {
            None => fingerprint::hash_rows(self.rows),
            Some(own) => own.hash_rows(self.rows),
        };
        [rows, fingerprint::hash_bytes(numbers.chain(costs))]
    }

    /// Labels of the problem of a class.
    pub(super) fn signs(&self, class: u32) -> Vec<f64> {
        self.classes.iter().map(|&k| if k == class { 1.0 } else { -1.0 }).collect_large()
    }
}

/// Each class of a lane against the rest.
struct ClassTerms<'a, T, const L: usize> {
    loss: T,
    cost: &'a [f64],
    classes: &'a [u32],
    first: u32,
    lanes: usize,
}

impl<T: Loss, const L: usize> ClassTerms<'_, T, L> {
    #[inline(always)]
    fn sign(&self, i: usize, l: usize) -> f64 {
        if self.classes[i] == self.first + l as u32 { 1.0 } else { -1.0 }
    }
}

impl<T: Loss, const L: usize> Objective<L> for ClassTerms<'_, T, L> {
    #[inline(always)]
    fn all(&self, i: usize, z: &[f64; L]) -> [[f64; L]; 3] {
        let mut terms = [[0.0; L]; 3];
        for l in 0..self.lanes.min(L) {
            let (y, c) = (self.sign(i, l), self.cost[i]);
            let [value, slope, bend] = self.loss.all(y * z[l]);
            (terms[0][l], terms[1][l], terms[2][l]) = (c * value, c * y * slope, c * bend);
        }
        terms
    }
}

/// A shard in the course of a fit.
pub struct Shard<'a> {
    rows: ShardRows<'a>,
    columns: TravellingColumns,
    monitor: &'a dyn Monitor,
    running: Running<'a>,
    relay: Relay,
}

/// Weights that epochs of dual descent hand from piece to piece of a store, whose rows take turns: each piece
/// goes on from where the one before has come to, as the rows of one shard do.
#[derive(Debug, Default)]
pub(super) struct Relay {
    /// Whether there are other pieces.
    is_on: bool,
    /// Those of the piece before; empty at the first.
    w: Vec<f64>,
}

impl Relay {
    /// Where an epoch begins, whose request says `told`.
    pub fn begin(&mut self, told: Cow<'_, [f64]>) -> Vec<f64> {
        match (std::mem::take(&mut self.w), told) {
            (before, _) if !before.is_empty() => before,
            (_, Cow::Owned(told)) => told,
            (_, Cow::Borrowed(told)) => memory::copy(told),
        }
    }

    /// Takes what an epoch has come to.
    pub fn end(&mut self, w: Vec<f64>) {
        if self.is_on {
            self.w = w;
        }
    }
}

enum Running<'a> {
    Nothing,
    One(Box<ShardSide<'a, 1>>),
    Classes(Box<ShardSide<'a, CLASSES>>),
}

impl<'a> Shard<'a> {
    /// Before the first request.
    pub fn new(rows: ShardRows<'a>, monitor: &'a dyn Monitor) -> Self {
        let (columns, relay) = (TravellingColumns::of_data(rows.own), Relay::default());
        Self { rows, columns, monitor, running: Running::Nothing, relay }
    }

    /// As a piece of a store, to which the one before hands the weights of its epoch; nothing to the first.
    pub fn hand(&mut self, w: Vec<f64>) {
        self.relay = Relay { is_on: true, w };
    }

    /// The weights for the next piece; empty where there was no epoch.
    pub fn handed(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.relay).w
    }

    /// What it knows, with these rows: the same ones, come back to memory or gone from it.
    pub fn moved_to<'b>(self, rows: ShardRows<'b>, monitor: &'b dyn Monitor) -> Shard<'b> {
        let running = match self.running {
            Running::Nothing => Running::Nothing,
            Running::One(side) => Running::One(Box::new(side.moved_to(rows, monitor))),
            Running::Classes(side) => Running::Classes(Box::new(side.moved_to(rows, monitor))),
        };
        Shard { rows, columns: self.columns, monitor, running, relay: self.relay }
    }

    /// All that it knows of each row, always in the same order.
    pub fn row_vectors(&mut self) -> Vec<(KnownPart, &mut dyn RowVector)> {
        match &mut self.running {
            Running::Nothing => Vec::new(),
            Running::One(side) => side.row_vectors(),
            Running::Classes(side) => side.row_vectors(),
        }
    }

    /// Knows of columns what the other one does, in the same memory.
    pub fn share_columns(&mut self, other: &Shard<'_>) {
        self.columns = other.columns.clone();
        match &mut self.running {
            Running::Nothing => {}
            Running::One(side) => side.columns = other.columns.clone(),
            Running::Classes(side) => side.columns = other.columns.clone(),
        }
    }

    /// The fold of each lane of a search, in which no problem is of a class alone.
    pub fn folds_of_lanes(&self) -> &[usize] {
        match &self.running {
            Running::Classes(side) => side.group.as_ref().map_or(&[], |group| &group.of_lanes),
            _ => &[],
        }
    }

    /// Does what a request says.
    ///
    /// # Errors
    /// [`Error::Shape`] for a request that is none, [`Error::Cancelled`].
    pub fn answer(&mut self, words: &[f64]) -> Result<ShardAnswer> {
        let (mut reader, mut answer) = (Reader::new(words, 1), ShardAnswer::default());
        while !reader.is_empty() {
            self.answer_one(&mut reader, &mut answer)?;
        }
        Ok(answer)
    }

    /// Does the next operation.
    ///
    /// # Errors
    /// As for [`Self::answer`].
    pub fn answer_one(&mut self, reader: &mut Reader<'_>, answer: &mut ShardAnswer) -> Result<()> {
        let op = reader.op()?;
        match op {
            Op::Begin | Op::BeginFolds => {
                self.running = Running::Nothing; // before as much memory is asked for again
                self.running = self.begin(op, reader)?;
            }
            Op::Hash => {
                answer.kind = SumsKind::Hash;
                for hash in self.rows.hashes() {
                    answer.sums.extend([f64::from((hash >> 32) as u32), f64::from(hash as u32)]);
                }
            }
            Op::Survey => {
                answer.kind = SumsKind::Columns;
                if let Some(own) = self.rows.own {
                    own.survey(&mut answer.sums);
                }
            }
            Op::Travelling => {
                answer.kind = SumsKind::Columns;
                if let Some((n, columns)) = self.columns.travelling() {
                    answer.sums.push(n as f64);
                    answer.sums.extend(columns.into_iter().map(f64::from));
                }
            }
            Op::Columns => {
                self.running = Running::Nothing;
                self.columns = TravellingColumns::told(self.rows.own, reader)?;
            }
            _ => match &mut self.running {
                Running::Nothing => {
                    return Err(Error::Shape { what: "problems of a shard", expected: 1, found: 0 });
                }
                Running::One(side) => side.run(op, reader, &mut self.relay, answer)?,
                Running::Classes(side) => side.run(op, reader, &mut self.relay, answer)?,
            },
        }
        self.monitor.poll()
    }

    fn begin(&self, op: Op, reader: &mut Reader<'_>) -> Result<Running<'a>> {
        let (rows, monitor) = ((self.rows, self.columns.clone()), self.monitor);
        let (first, lanes) = (reader.number()? as usize, reader.number()? as usize);
        let last = reader.number()?;
        Ok(match lanes {
            1..=CLASSES if op == Op::BeginFolds => {
                let side = ShardSide::of_folds(rows, first..first + lanes, last as usize, monitor)?;
                Running::Classes(Box::new(side))
            }
            1 => Running::One(Box::new(ShardSide::new(rows, first as u32, 1, last, monitor))),
            2..=CLASSES => {
                Running::Classes(Box::new(ShardSide::new(rows, first as u32, lanes, last, monitor)))
            }
            _ => return Err(Error::Shape { what: "lanes", expected: CLASSES, found: lanes }),
        })
    }
}

/// The rows in one problem, or in several side by side.
pub(super) struct ShardSide<'a, const L: usize> {
    pub(super) rows: ShardRows<'a>,
    /// How vectors travel.
    pub(super) columns: TravellingColumns,
    pub(super) cost: Vec<f64>,
    /// Of a search.
    group: Option<Group<'a, L>>,
    pub(super) first: u32,
    pub(super) lanes: usize,
    pub(super) monitor: &'a dyn Monitor,
    pub(super) state: RowState<'a, L>,
    corners: CornerRows,
    /// A dual point beside the slopes of the last evaluation.
    pub(super) point: Option<ShardPoint>,
    /// The variables of an ascent in the dual.
    pub(super) ascent: Option<ShardAscent>,
    /// A vector of the columns, when the entries are asked for: pieces that are not in memory have none.
    vector: Block<L>,
}

/// A dual point beside the slopes.
pub(super) struct ShardPoint {
    /// Labels of its lane.
    pub y: Vec<f64>,
    /// Dual variables.
    pub alpha: Vec<f64>,
}

/// Dual variables of a shard before and after its last epochs.
pub(super) struct ShardAscent {
    /// Labels of its lane.
    pub y: Vec<f64>,
    /// Before,
    pub alpha: Vec<f64>,
    /// and after.
    pub next: Vec<f64>,
}

/// A group of lanes of a search.
struct Group<'a, const L: usize> {
    folds: ShardFolds<'a>,
    lanes: GroupLanes<L>,
    /// The fold of each lane.
    of_lanes: Vec<usize>,
}

/// What the sequence of smooth problems for the hinge has of the rows.
struct CornerRows {
    /// Labels of the first lane.
    y: Vec<f64>,
    alpha: Arc<Vec<f64>>,
    /// Dual variables and margins of the point that was kept last, if there is one.
    kept: Option<(Arc<Vec<f64>>, Vec<f64>)>,
}

impl<'a, const L: usize> ShardSide<'a, L> {
    fn new(
        (rows, columns): (ShardRows<'a>, TravellingColumns),
        first: u32,
        lanes: usize,
        scale: f64,
        monitor: &'a dyn Monitor,
    ) -> Self {
        let design = rows.design(rows.intercept.bias());
        let cost = rows.cost.iter().map(|cost| scale * cost).collect_large();
        let n_corners = if rows.loss.is_smooth() { 0 } else { rows.cost.len() };
        let (y, alpha) = (rows.signs(first), Arc::new(memory::zeros(n_corners)));
        let state = RowState::new(design, true, monitor);
        let corners = CornerRows { y, alpha, kept: None };
        Self {
            rows,
            columns,
            cost,
            group: None,
            first,
            lanes,
            monitor,
            state,
            corners,
            point: None,
            ascent: None,
            vector: Block::default(),
        }
    }

    /// The lanes of a search with so many binary problems per fold, in a part of their order.
    fn of_folds(
        (rows, columns): (ShardRows<'a>, TravellingColumns),
        part: Range<usize>,
        n_problems: usize,
        monitor: &'a dyn Monitor,
    ) -> Result<Self> {
        let n_lanes = part.len();
        let wrong = || Error::Shape { what: "lanes of a shard's search", expected: 0, found: part.end };
        let folds = rows.folds.ok_or_else(wrong)?;
        let numbers = LaneNumbers { n_folds: folds.folds.len(), n_problems };
        if n_problems == 0 || part.end > numbers.n_lanes() {
            return Err(wrong());
        }
        let lanes = numbers.in_groups(part);
        let (n_rows, fold) = (rows.rows.n_rows(), |k: usize| &folds.folds[numbers.fold(k)]);
        let of_lanes: Vec<usize> = lanes.iter().map(|k| numbers.fold(*k)).collect();
        if let Some(i) = lanes.iter().flat_map(|k| &fold(*k).test).find(|i| **i as usize >= n_rows) {
            let reason = format!("the held-out part of a fold names row {i}, there are {n_rows}");
            return Err(Error::Labels { reason });
        }
        let group = GroupLanes::new(n_rows, numbers, &lanes, |k| &fold(k).train)?;
        let design = Design { rows: rows.rows, ids: None, bias: rows.intercept.bias() };
        let none = CornerRows { y: Vec::new(), alpha: Arc::new(Vec::new()), kept: None };
        Ok(Self {
            rows,
            columns,
            cost: Vec::new(),
            group: Some(Group { folds, lanes: group, of_lanes }),
            first: 0,
            lanes: n_lanes,
            monitor,
            state: RowState::new(design, false, monitor),
            corners: none,
            point: None,
            ascent: None,
            vector: Block::default(),
        })
    }

    fn moved_to<'b>(self, rows: ShardRows<'b>, monitor: &'b dyn Monitor) -> ShardSide<'b, L> {
        let Self { columns, cost, group, first, lanes, state, corners, point, ascent, .. } = self;
        let group = group.zip(rows.folds);
        let group = group.map(|(Group { lanes, of_lanes, .. }, folds)| Group { folds, lanes, of_lanes });
        let mut design = rows.design(rows.intercept.bias());
        if group.is_some() {
            design.ids = None;
        }
        let (state, vector) = (state.moved_to(design, monitor), Block::default());
        ShardSide { rows, columns, cost, group, first, lanes, monitor, state, corners, point, ascent, vector }
    }

    fn row_vectors(&mut self) -> Vec<(KnownPart, &mut dyn RowVector)> {
        let Self { cost, state, corners: CornerRows { y, alpha, kept }, point, ascent, .. } = self;
        let RowState { z, slopes, curvature, step_z, product_z, .. } = state;
        let mut vectors: Vec<(KnownPart, &mut dyn RowVector)> = vec![
            (KnownPart::Terms, cost),
            (KnownPart::Terms, y),
            (KnownPart::Terms, alpha),
            (KnownPart::Decisions, z),
            (KnownPart::Curvatures, curvature),
            (KnownPart::Steps, step_z),
            (KnownPart::Products, product_z),
        ];
        vectors.extend(slopes.as_mut().map(|slopes| (KnownPart::Slopes, slopes as &mut dyn RowVector)));
        if let Some((alpha, margins)) = kept {
            vectors.extend([(KnownPart::Terms, alpha as &mut dyn RowVector), (KnownPart::Terms, margins)]);
        }
        if let Some(ShardPoint { y, alpha }) = point {
            vectors.extend([(KnownPart::Points, y as &mut dyn RowVector), (KnownPart::Points, alpha)]);
        }
        if let Some(ShardAscent { y, alpha, next }) = ascent {
            vectors.extend([
                (KnownPart::Points, y as &mut dyn RowVector),
                (KnownPart::Points, alpha),
                (KnownPart::Points, next),
            ]);
        }
        vectors
    }

    /// Room for what an operation makes, where a piece has come to memory without it.
    fn make_room(&mut self, op: Op) {
        let design = self.state.sweep.design;
        if self.vector.is_empty() && !op.is_of_numbers() {
            self.vector = Block::zeros(design.n_cols());
        }
        let RowState { z, slopes, curvature, step_z, product_z, .. } = &mut self.state;
        let made = match op {
            Op::Decide => vec![z],
            Op::Evaluate | Op::EvaluateQuietly => slopes.iter_mut().chain([curvature]).collect(),
            Op::Multiply => vec![step_z, product_z],
            Op::Finish => vec![step_z],
            _ => vec![],
        };
        for vector in made.into_iter().filter(|vector| vector.is_empty()) {
            *vector = Block::zeros(design.n_rows());
        }
    }

    fn run(
        &mut self,
        op: Op,
        reader: &mut Reader<'_>,
        relay: &mut Relay,
        answer: &mut ShardAnswer,
    ) -> Result<()> {
        reader.set_lanes(self.lanes);
        self.make_room(op);
        if op == Op::HeldOut || self.group.is_some() && !op.is_of_search() {
            return self.held_out(op, answer);
        }
        match op {
            Op::Decide => {
                self.columns.block(reader, &mut self.vector)?;
                self.state.decide(&self.vector)?;
            }
            Op::Shift => self.state.shift(&reader.lanes()?),
            Op::Advance => {
                self.state.advance(&reader.lanes()?)?;
            }
            Op::Descend => self.descend(reader, relay, answer)?,
            Op::Linearise => self.linearise(reader, answer)?,
            Op::Settle => self.settle(reader, answer)?,
            Op::Ascend => self.ascend(reader, relay, answer)?,
            Op::TakeAscent => self.take_ascent(reader, answer)?,
            Op::FitAlone => self.fit_alone(reader, answer)?,
            Op::Slopes
            | Op::SlopesAhead
            | Op::Evaluate
            | Op::EvaluateQuietly
            | Op::Losses
            | Op::DecideAnew => {
                if matches!(op, Op::Evaluate | Op::EvaluateQuietly) {
                    (self.point, self.ascent) = (None, None);
                }
                self.run_with_terms(op, reader, answer)?;
            }
            Op::Curvature => self.curvature(reader, answer)?,
            Op::Multiply => {
                let mut out = Block::zeros(self.vector.len());
                self.columns.block(reader, &mut self.vector)?;
                let read = self.state.multiply(&self.vector, None, &mut out)?;
                self.columns.answer(&out, self.lanes, answer);
                answer.sums.push(read as f64);
            }
            Op::Finish => {
                self.columns.block(reader, &mut self.vector)?;
                self.state.sweep.decisions(&self.vector, &mut self.state.step_z);
            }
            Op::TakeSlopes => self.corners.alpha = Arc::new(self.state.alpha(&self.corners.y)),
            Op::Corners => {
                let CornerRows { y, alpha, .. } = &self.corners;
                answer.sums.extend(hinge::corner_values(y, &self.cost, alpha, &self.state.z));
            }
            Op::Keep => {
                let margins = self.state.margins(&self.corners.y);
                self.corners.kept = Some((Arc::clone(&self.corners.alpha), margins));
            }
            Op::GoBack => {
                if let Some((alpha, _)) = &self.corners.kept {
                    self.corners.alpha = Arc::clone(alpha);
                } else {
                    self.corners.alpha = Arc::new(memory::zeros(self.cost.len()));
                }
            }
            Op::Weigh => {
                let lane = self.lane(reader)?;
                self.weigh(lane, reader.number()? != 0.0, answer)?;
            }
            Op::Prove => {
                let lane = self.lane(reader)?;
                let is_polished = reader.number()? != 0.0;
                self.prove((lane, is_polished), reader.numbers(4)?, answer)?;
            }
            _ => {} // of the shard, not of a problem
        }
        Ok(())
    }

    /// Decision values of the held-out rows, lane after lane; nothing else that is no step of a search.
    fn held_out(&self, op: Op, answer: &mut ShardAnswer) -> Result<()> {
        let group = self.group.as_ref().filter(|_| op == Op::HeldOut);
        let group =
            group.ok_or(Error::Shape { what: "operations of a search", expected: 0, found: op as usize })?;
        answer.kind = SumsKind::HeldOut;
        for (l, fold) in group.of_lanes.iter().enumerate() {
            let test = &group.folds.folds[*fold].test;
            answer.sums.extend(test.iter().map(|i| self.state.z[*i as usize][l]));
        }
        Ok(())
    }

    /// The matrix of curvatures, or its diagonal.
    fn curvature(&mut self, reader: &mut Reader<'_>, answer: &mut ShardAnswer) -> Result<()> {
        let form = reader.form()?;
        if form == Form::Frequent {
            let (every, order) = (reader.number()? as usize, reader.number()? as usize);
            let columns = reader.numbers(order)?.iter().map(|j| *j as u32).collect_large();
            let names = self.columns.names(self.vector.len());
            self.state.frequent = Some(Arc::new(FrequentColumns::named(columns, every, names)));
        }
        let found = self.state.curvature(self.lanes, form)?;
        answer.maxima.push(found.largest);
        match found.gram {
            Gram::Diagonal(diagonal) => self.columns.answer_diagonal(&diagonal, answer),
            Gram::Frequent { diagonal, block, .. } => {
                self.columns.answer_diagonal(&diagonal, answer);
                answer.sums.extend(block.lower());
            }
            Gram::Dense(matrix) => answer.sums.extend(matrix.lower()),
        }
        answer.sums.push(found.read as f64);
        Ok(())
    }

    fn run_with_terms(&mut self, op: Op, reader: &mut Reader<'_>, answer: &mut ShardAnswer) -> Result<()> {
        let sigma = reader.number()?;
        let mut ask = Ask { op, lanes: self.lanes, columns: &self.columns, reader, answer };
        if sigma > 0.0 {
            let CornerRows { y, alpha, .. } = &self.corners;
            let terms = SmoothedHinge { y, cost: &self.cost, alpha: Arc::clone(alpha), sigma };
            return ask.run(&terms, &mut self.state, &mut self.vector);
        }
        let ShardRows { loss, classes, .. } = self.rows;
        let (first, lanes, cost) = (self.first, self.lanes, &self.cost[..]);
        with_smooth_loss!(
            loss,
            loss => {
                if let Some(Group { folds, lanes, .. }) = &self.group {
                    let terms = FoldTerms { loss, weight: folds.weight, class: folds.classes, lanes };
                    return ask.run(&terms, &mut self.state, &mut self.vector);
                }
                let terms = ClassTerms { loss, cost, classes, first, lanes };
                ask.run(&terms, &mut self.state, &mut self.vector)
            },
            else Err(Error::Shape { what: "smooth losses", expected: 1, found: 0 })
        )
    }

    /// A lane.
    pub(super) fn lane(&self, reader: &mut Reader<'_>) -> Result<usize> {
        let lane = reader.number()? as usize;
        let is_there = lane < self.lanes;
        is_there.then_some(lane).ok_or(Error::Shape { what: "lanes", expected: self.lanes, found: lane })
    }

    /// Labels of a lane, and the dual variables of its slopes.
    pub(super) fn slopes(&self, lane: usize) -> (Vec<f64>, Vec<f64>) {
        let y = self.rows.signs(self.first + lane as u32);
        let slopes = self.state.slopes.as_ref().expect("kept");
        let alpha = y.iter().zip(&**slopes).map(|(y, slope)| -y * slope[lane]).collect_large();
        (y, alpha)
    }

    /// Labels, dual variables and margins of a lane: those that were kept, those of the point beside the
    /// slopes, or the slopes.
    fn dual(&self, lane: usize, is_polished: bool) -> Result<(Vec<f64>, Vec<f64>, Vec<f64>)> {
        if let Some((alpha, margins)) = &self.corners.kept {
            return Ok((memory::copy(&self.corners.y), memory::copy(alpha), memory::copy(margins)));
        }
        let (y, alpha) = match &self.point {
            Some(point) if is_polished => (memory::copy(&point.y), memory::copy(&point.alpha)),
            None if is_polished => {
                return Err(Error::Shape { what: "dual points of a shard", expected: 1, found: 0 });
            }
            _ => self.slopes(lane),
        };
        let margins = y.iter().zip(&*self.state.z).map(|(y, z)| y * z[lane]).collect_large();
        Ok((y, alpha, margins))
    }

    /// The rows with the columns whose weights are part of the norm.
    pub(super) fn certified(&self) -> Design<'a> {
        let bias = if self.rows.intercept == Intercept::Free { 0.0 } else { self.rows.intercept.bias() };
        self.rows.design(bias)
    }

    /// `sum y_i a_i`, `sum a_i`, `sum a_i |x_i|`; how far a last digit moves the weights, the longest row.
    fn weigh(&self, lane: usize, is_polished: bool, answer: &mut ShardAnswer) -> Result<()> {
        let (y, alpha, _) = self.dual(lane, is_polished)?;
        let norms = certificate::row_norms(&self.certified(), self.monitor)?;
        let [reach] = sum(alpha.len(), |i| [alpha[i].abs() * norms[i]]);
        answer.sums.extend(certificate::excess(&y, &alpha));
        answer.sums.push(reach);
        answer.maxima.push(certificate::last_digit(&self.cost, &norms));
        answer.maxima.push(norms.iter().copied().fold(0.0, f64::max));
        Ok(())
    }

    /// The sums of [`RowTotals`]; less the lowest price at which a row can give `delta`.
    fn prove(
        &self,
        (lane, is_polished): (usize, bool),
        arguments: &[f64],
        answer: &mut ShardAnswer,
    ) -> Result<()> {
        let &[length, b, excess, delta] = arguments else { unreachable!("four were read") };
        let (y, alpha, margins) = self.dual(lane, is_polished)?;
        let design = self.certified();
        let norms = certificate::row_norms(&design, self.monitor)?;
        let errors = certificate::margin_errors(&design, norms, length, b);
        let cost = &self.cost[..];
        let duals = Duals { y: &y, cost, alpha: &alpha, margins: &margins, errors: &errors };
        let (totals, cheapest) = with_loss!(self.rows.loss, loss => (
            RowTotals::of(loss, cost, &alpha, &margins, &errors),
            if excess == 0.0 { None } else { duals.cheapest(loss, excess, delta) }
        ));
        let RowTotals { losses, terms, slack, size, alpha } = totals;
        answer.sums.extend([losses, terms, slack, size, alpha]);
        answer.maxima.push(cheapest.map_or(f64::NEG_INFINITY, |(price, _)| -price));
        Ok(())
    }
}

/// An operation on the terms of an objective.
struct Ask<'r, 'w, 's> {
    op: Op,
    lanes: usize,
    columns: &'r TravellingColumns,
    reader: &'r mut Reader<'w>,
    answer: &'s mut ShardAnswer,
}

impl Ask<'_, '_, '_> {
    fn run<O: Objective<L>, const L: usize>(
        &mut self,
        terms: &O,
        state: &mut RowState<'_, L>,
        vector: &mut Block<L>,
    ) -> Result<()> {
        let Self { op, lanes, columns, reader, answer } = self;
        match op {
            Op::Slopes => {
                for sums in intercept::slopes_at(terms, &state.z, &reader.lanes()?) {
                    answer.lanes(&sums, *lanes);
                }
            }
            Op::SlopesAhead => {
                let mut moved = state.z.clone();
                line_search::advance(&mut moved, &state.step_z, &reader.lanes()?);
                for sums in intercept::slopes_at(terms, &moved, &[0.0; L]) {
                    answer.lanes(&sums, *lanes);
                }
            }
            Op::Losses => {
                for _ in 0..reader.number()? as usize {
                    let losses = state.losses(terms, &reader.lanes()?)?;
                    answer.lanes(&losses, *lanes);
                }
            }
            Op::DecideAnew => {
                columns.block(reader, vector)?;
                for sums in state.decide_anew(terms, vector)? {
                    answer.lanes(&sums, *lanes);
                }
            }
            _ => {
                let found = state.evaluate(terms, vector)?;
                if *op == Op::Evaluate {
                    columns.answer(vector, *lanes, answer);
                    answer.lanes(&found.loss, *lanes);
                    answer.sums.push(found.read as f64);
                }
            }
        }
        Ok(())
    }
}
