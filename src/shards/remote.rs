//! The side of the client: the passes of Newton as requests to all shards.
//!
//! Operations that ask for nothing wait for the next one that does: a round trip is taken where a number is
//! needed, and for nothing else. What shards know of their rows is kept track of, so that one that begins
//! anew can be brought to where the others are (`track`).
//!
//! **Fewer rounds.** What will be asked for next is asked for at once. The curvatures come with the gradient
//! where Newton foresees that the next step takes them; the slopes along a free intercept with the losses at
//! the end of a step; an evaluation with the slopes where they most likely are the last ones of a search for
//! the intercept; what dual variables weigh with fresh decision values. An intercept is brought to its
//! optimum no closer than a proof can tell, and where steps are factorised it is one of the columns of a
//! step ([`crate::fit::newton::Shape::are_far`]). What was asked for in vain costs a vector or a reading, no
//! round. Two shards, C = 1, gap 1e-4, squared hinge, logistic, hinge: imdb 45, 38 and 350 rounds instead of
//! 60, 53 and 428; flights 110 and 98 instead of 128 and 117; covtype 13, 13 and 109 instead of 16, 17 and
//! 132. With evaluations ahead for smooth losses only the hinge takes 133 rounds on a9a, 116 on covtype and
//! 392 on imdb.
//!
//! **Frequent columns.** As in memory ([`crate::fit::newton::frequent`]) a block of them preconditions where
//! rows outnumber columns, and the diagonal that is asked for before shows which they are. Flights, as above:
//! 57 and 564 rounds instead of 88 and 849 with the logistic loss and the hinge, 59 instead of 91 with the
//! squared hinge, and 1.6 times the speed with the hinge on two workers.
//!
//! Tried: decision values of a step of a search from those of its directions, as rows in memory have them,
//! which a shard that begins anew is told again. Readings of covtype's search fall from 142 to 108 (logistic
//! loss), of flights' from 325 to 284, but not the time: a direction takes two more vectors of the rows,
//! eight numbers a row each, as much as the reading of a sparse row.
//!
//! Tried: half and twice the accuracy of the conjugate gradient, where imdb takes 25 and 17 products:
//! squared hinge 55 and 90 rounds instead of 45, logistic 24 and 30 instead of 38; flights 104 and 109
//! instead of 110, 110 and 103 instead of 98. Evaluations with any step along an intercept (`NEAR` of 0.03,
//! 0.1 and 1): not a round less, up to three more on flights, and more vectors.

use std::rc::Rc;
use std::sync::Arc;

use super::exchange::Link;
use super::track::{StateChange, Track};
use super::wire::{Op, Reader, Request, ShardAnswer};
use crate::fit::certificate::{Cut, Imbalance};
use crate::fit::intercept;
use crate::fit::newton::cholesky::Symmetric;
use crate::fit::newton::factorisation::Form;
use crate::fit::newton::frequent::FrequentColumns;
use crate::fit::newton::hinge::Corners;
use crate::fit::newton::line_search;
use crate::fit::newton::preconditioner::Gram;
use crate::fit::newton::row_state::{Curvature, LossSums, Passes, TermPasses};
use crate::fit::routes::FREQUENT_COLUMNS;
use crate::matrix::lanes::Block;
use crate::{Error, Result, memory};

/// Lengths of a step after the first that are tried in one round.
const TRIALS: usize = 4;
/// Relative derivative along the intercept from which the next step along it is made, and the evaluation that
/// follows where it is the last one asked for with it.
const NEAR: f64 = 1e-2;

/// Lengths at which dual terms are asked for: so many, at equal distances up to 1.
pub const LENGTHS: usize = 8;

/// Dual variables of the first lane from which an epoch begins.
pub enum EpochFrom<const L: usize> {
    /// The slopes.
    Slopes,
    /// The slopes linearised along a step.
    Step(Block<L>),
    /// The point that was found last.
    Point,
}

/// The slopes linearised along a step.
pub struct Linearised {
    /// Their balance.
    pub imbalance: Imbalance,
    /// Rows read.
    pub read: usize,
    /// What they leave out at the end of the step, where few rows get or lose curvature on the way.
    pub left_out: Option<LeftOut>,
}

/// What the model of a step leaves out at its end.
pub struct LeftOut {
    /// Of the gradient, downhill.
    pub gradient: Vec<f64>,
    /// Of the matrix of curvatures, its lower triangle.
    pub matrix: Vec<f64>,
    /// How many rows get or lose curvature.
    pub switched: usize,
}

/// What shards answer in a round.
pub struct Ascended {
    /// Losses and their derivatives along the intercept.
    pub losses: [f64; 3],
    /// By how much the weights change.
    pub change: Vec<f64>,
    /// Dual terms at the lengths.
    pub terms: [f64; LENGTHS],
    /// Rows read.
    pub read: usize,
}

/// The problems that are side by side in the lanes.
#[derive(Clone, Copy, Debug)]
pub enum Lanes {
    /// Classes against the rest: the first, how many, and by what the shards' costs are multiplied.
    Classes(usize, usize, f64),
    /// A part of the order of a search's lanes: the first, how many, and how many binary problems a fold has.
    Folds(usize, usize, usize),
}

impl Lanes {
    fn count(self) -> usize {
        let (Self::Classes(_, lanes, _) | Self::Folds(_, lanes, _)) = self;
        lanes
    }

    fn begin(self) -> Request {
        let mut begin = Request::new(self.count());
        let (op, first, last) = match self {
            Self::Classes(first, _, scale) => (Op::Begin, first, scale),
            Self::Folds(first, _, n_problems) => (Op::BeginFolds, first, n_problems as f64),
        };
        begin.op(op).number(first as f64).number(self.count() as f64).number(last);
        begin
    }
}

/// The terms of an objective that shards have: the loss of the fit, or the smoothed hinge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ShardTerms {
    /// The loss.
    Smooth,
    /// The hinge around the present dual variables, smoothed by a sigma above 0.
    Around(f64),
}

impl ShardTerms {
    fn sigma(self) -> f64 {
        match self {
            Self::Smooth => 0.0,
            Self::Around(sigma) => sigma,
        }
    }
}

/// What dual variables weigh: `sum y_i a_i`, `sum a_i`, `sum a_i |x_i|`; how far a last digit moves the
/// weights, and the longest row.
type Weighed = ([f64; 3], [f64; 2]);

/// The rows of a problem, at the shards.
pub struct Remote<'a, const L: usize> {
    link: Rc<Link<'a>>,
    /// Its number among the users of the link.
    user: usize,
    n_rows: usize,
    max_squared_norm: f64,
    lanes: usize,
    /// Operations that nothing has waited for yet, and what they change.
    pending: Request,
    changes: Vec<StateChange<L>>,
    track: Track<L>,
    /// Losses at lengths along the step.
    tried: Vec<(f64, [f64; L])>,
    /// Whether a free intercept is brought to its optimum before evaluations.
    settles: bool,
    /// Relative derivative along it that is nothing.
    exact: f64,
    /// Slopes at the end of the step, and once it has been gone, here.
    ahead: Option<[[f64; L]; 3]>,
    here: Option<[[f64; L]; 3]>,
    /// What the next evaluation will find.
    ready: Option<(Block<L>, LossSums<L>)>,
    /// What the dual variables of the first lane weigh, where that came with fresh decision values, and
    /// whether they are those of the point beside the slopes.
    weighed: Option<(bool, Weighed)>,
    /// Whether that point is the one to be weighed.
    weighs_point: bool,
    /// A search goes on from its journal with weights alone, so that decision values must follow from these.
    is_search: bool,
    /// Whether curvatures will be asked for after the next evaluation, and if so, in which form.
    asks: Option<Form>,
    /// Those of the last evaluation, where they came with it.
    foreseen: Option<Curvature>,
    /// The columns of the largest sums in the first diagonal.
    frequent: Option<Arc<FrequentColumns>>,
    curved: usize,
    /// Weights, with what is pending, and the last step.
    w: Block<L>,
    step: Rc<Block<L>>,
    bias: f64,
}

impl<'a, const L: usize> Remote<'a, L> {
    /// Begins problems at zero weights.
    pub fn begin(
        link: &Rc<Link<'a>>,
        (n_rows, max_squared_norm): (usize, f64),
        lanes: Lanes,
        n_columns: usize,
        bias: f64,
    ) -> Self {
        let begin = lanes.begin();
        let pending = begin.clone();
        Self {
            link: Rc::clone(link),
            user: link.enlist(),
            n_rows,
            max_squared_norm,
            lanes: lanes.count(),
            pending,
            changes: Vec::new(),
            track: Track::new(begin, n_columns),
            tried: Vec::new(),
            settles: false,
            exact: intercept::EXACT,
            ahead: None,
            here: None,
            ready: None,
            weighed: None,
            weighs_point: false,
            is_search: matches!(lanes, Lanes::Folds(..)),
            asks: None,
            foreseen: None,
            frequent: None,
            curved: n_rows,
            w: Block::zeros(n_columns),
            step: Rc::new(Block::zeros(n_columns)),
            bias,
        }
    }

    /// Sends what is pending and returns the answer.
    fn ask(&mut self) -> Result<ShardAnswer> {
        let track = &self.track;
        let answer = self.link.ask(self.user, &self.pending, &|| track.restore())?;
        self.sent();
        Ok(answer)
    }

    /// The same for answers that are not added.
    fn gather(&mut self) -> Result<Vec<Vec<f64>>> {
        let track = &self.track;
        let answers = self.link.gather_for(self.user, &self.pending, &|| track.restore())?;
        self.sent();
        Ok(answers)
    }

    fn sent(&mut self) {
        self.pending.clear();
        for change in self.changes.drain(..) {
            self.track.note(change);
        }
    }

    /// Whether another user has asked meanwhile, so that the shards know nothing of these problems: they then
    /// begin anew.
    pub fn wake(&mut self) -> bool {
        let is_lost = !self.link.is_of(self.user) && !self.is_new();
        if is_lost {
            self.begin_anew();
        }
        is_lost
    }

    /// Whether nothing has been asked yet.
    fn is_new(&self) -> bool {
        self.pending.words().starts_with(self.track.begin.words())
    }

    /// Goes back to zero weights.
    pub fn begin_anew(&mut self) {
        self.pending = self.track.begin.clone();
        self.changes.clear();
        self.track = Track::new(self.pending.clone(), self.w.len());
        self.w.fill([0.0; L]);
        self.tried.clear();
        self.foreseen = None;
        (self.ahead, self.here, self.ready, self.weighed) = (None, None, None, None);
    }

    /// Decision values of the rows held out of each lane, by shard.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn held_out(&mut self) -> Result<Vec<Vec<f64>>> {
        self.pending.op(Op::HeldOut);
        self.gather()
    }

    /// What a lane's dual variables weigh.
    ///
    /// # Errors
    /// Those of the exchange, as of all methods.
    pub fn weigh(&mut self, lane: usize, is_polished: bool) -> Result<Weighed> {
        if let Some((_, found)) = self.weighed.take().filter(|(of, _)| lane == 0 && *of == is_polished) {
            return Ok(found);
        }
        self.pending.op(Op::Weigh).number(lane as f64).number(f64::from(u8::from(is_polished)));
        let answer = self.ask()?;
        Ok((array(&answer.sums)?, array(&answer.maxima)?))
    }

    /// Sums for the proof of a lane, and the price of giving `delta` of the excess.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn prove(
        &mut self,
        (lane, is_polished): (usize, bool),
        arguments: [f64; 4],
    ) -> Result<([f64; 5], f64)> {
        self.pending.op(Op::Prove).number(lane as f64).number(f64::from(u8::from(is_polished)));
        self.pending.numbers(&arguments);
        let answer = self.ask()?;
        let [price]: [f64; 1] = array(&answer.maxima)?;
        Ok((array(&answer.sums)?, -price))
    }

    /// Has the point beside the slopes weighed with the decision values that are computed anew next.
    pub fn weigh_point(&mut self) {
        self.weighs_point = true;
    }

    /// Takes an intercept as exact where its relative derivative is so small.
    pub fn settle_to(&mut self, exact: f64) {
        self.exact = exact.max(intercept::EXACT);
    }

    /// Takes note of a change at the shards, after which what was asked for ahead no longer holds.
    fn change(&mut self, change: StateChange<L>) {
        if matches!(change, StateChange::Point(_) | StateChange::Shift(_) | StateChange::Advance(..)) {
            (self.here, self.ready) = (None, None);
        }
        self.weighed = None;
        self.changes.push(change);
    }

    /// Rows with curvature when curvatures were asked for last.
    pub fn curved(&self) -> usize {
        self.curved
    }

    /// An epoch of dual descent at each shard: how often a change counts, height of the constant column,
    /// offset and seed, and the weights of the dual variables from which it begins.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn descend(
        &mut self,
        arguments: [f64; 4],
        w: &[f64],
        from: &EpochFrom<L>,
    ) -> Result<(Imbalance, usize)> {
        let mut request = Request::new(self.lanes);
        if let EpochFrom::Step(step) = from {
            request.op(Op::Linearise).numbers(&[0.0; 3]).block(step);
        }
        let is_there = f64::from(u8::from(!matches!(from, EpochFrom::Slopes)));
        request.op(Op::Descend).number(0.0).number(is_there).numbers(&arguments).vector(w);
        self.find_point(request)
    }

    /// The slopes of the first lane linearised along a step, from the end of the one `before` if there is
    /// one; and what that leaves out at the end, if it is asked for.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn linearise(
        &mut self,
        before: Option<&Block<L>>,
        step: &Block<L>,
        asks: bool,
    ) -> Result<Linearised> {
        let mut request = Request::new(self.lanes);
        let [is_further, is_asked] = [before.is_some(), asks].map(|is| f64::from(u8::from(is)));
        request.op(Op::Linearise).numbers(&[0.0, is_further, is_asked]);
        before.into_iter().chain([step]).for_each(|step| _ = request.block(step));
        let sums = self.find(request)?;
        let n = step.len();
        let (gradient, matrix) = if asks { (n, triangle(n)) } else { (0, 0) };
        let n_more = gradient + matrix + usize::from(asks);
        let wrong = || Error::Shape { what: "the end of a step", expected: n_more, found: sums.len() };
        let (more, point) = sums.split_at_checked(n_more).ok_or_else(wrong)?;
        let (imbalance, read) = point_of(point)?;
        let left_out = more.split_last().filter(|(switched, _)| **switched > 0.0 && switched.is_finite());
        let left_out = left_out.map(|(switched, more)| LeftOut {
            gradient: memory::copy(&more[..gradient]),
            matrix: memory::copy(&more[gradient..]),
            switched: *switched as usize,
        });
        Ok(Linearised { imbalance, read, left_out })
    }

    /// The mean of the weights that the shards find in fits on their own rows, zero where none does; and how
    /// many rows they have read. Where shards are not small they fit nothing but samples.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn fit_alone(&mut self, total_cost: f64, tol: f64, is_small: bool) -> Result<(Block<L>, f64)> {
        let is_small = f64::from(u8::from(is_small));
        self.pending.op(Op::FitAlone).number(total_cost).number(tol).number(is_small);
        let answer = self.ask()?;
        let mut reader = Reader::new(&answer.sums, self.lanes);
        let mut mean = Block::zeros(self.w.len());
        reader.block(&mut mean)?;
        let weight: [f64; L] = reader.lanes()?;
        for mean in mean.iter_mut() {
            (0..L).for_each(|l| mean[l] = if weight[l] > 0.0 { mean[l] / weight[l] } else { 0.0 });
        }
        Ok((mean, reader.number()?))
    }

    /// Asks for the losses at some lengths along the step.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn try_lengths(&mut self, terms: ShardTerms, lengths: &[f64]) -> Result<()> {
        self.pending.op(Op::Losses).number(terms.sigma()).number(lengths.len() as f64);
        for &length in lengths {
            self.pending.lanes(&[length; L]);
        }
        let asks_ahead = self.settles && lengths == [1.0];
        if asks_ahead {
            self.pending.op(Op::SlopesAhead).number(terms.sigma()).lanes(&[1.0; L]);
        }
        let answer = self.ask()?;
        let mut reader = Reader::new(&answer.sums, self.lanes);
        for &length in lengths {
            self.tried.push((length, reader.lanes()?));
        }
        if asks_ahead {
            self.ahead = Some([reader.lanes()?, reader.lanes()?, reader.lanes()?]);
        }
        Ok(())
    }

    /// A round of ascent in the dual from weights `w`: length along the last change, stretch, height of the
    /// constant column, offset, intercept and seed.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn ascend(&mut self, arguments: [f64; 6], w: &[f64]) -> Result<Ascended> {
        let mut request = Request::new(self.lanes);
        request.op(Op::Ascend).number(0.0).numbers(&arguments).vector(w);
        self.pending.then(&request);
        self.change(StateChange::DualPoint(request));
        let sums = self.ask()?.sums;
        let mut reader = Reader::new(&sums, 1);
        let losses = array(reader.numbers(3)?)?;
        let change = memory::copy(reader.numbers(w.len())?);
        let (read, terms) = reader.rest().split_last().unwrap_or((&0.0, &[]));
        Ok(Ascended { losses, change, terms: array(terms)?, read: *read as usize })
    }

    /// Has the variables so far along their last change as the dual point.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn take_ascent(&mut self, length: f64) -> Result<Imbalance> {
        let mut request = Request::new(self.lanes);
        request.op(Op::TakeAscent).number(length);
        Ok(self.find_point(request)?.0)
    }

    fn find_point(&mut self, request: Request) -> Result<(Imbalance, usize)> {
        point_of(&self.find(request)?)
    }

    /// Has the shards find a dual point; what they answer.
    fn find(&mut self, request: Request) -> Result<Vec<f64>> {
        self.pending.then(&request);
        self.change(StateChange::DualPoint(request));
        Ok(self.ask()?.sums)
    }

    /// Moves the dual variables that were found last; returns their weights, so many, the terms of the dual
    /// value, and the rows that were read.
    ///
    /// # Errors
    /// Those of the exchange.
    pub fn settle(&mut self, n_weights: usize, cut: Cut) -> Result<(Vec<f64>, f64, usize)> {
        let Cut { sign, share, spares_bounds } = cut;
        let mut request = Request::new(self.lanes);
        request.op(Op::Settle).numbers(&[sign, share, f64::from(u8::from(spares_bounds))]);
        self.pending.then(&request);
        self.change(StateChange::DualPoint(request));
        let sums = self.ask()?.sums;
        let (w, rest) = sums.split_at_checked(n_weights).unwrap_or_default();
        let [terms, read] = array(rest)?;
        Ok((memory::copy(w), terms, read as usize))
    }
}

/// Numbers of a lower triangle.
fn triangle(order: usize) -> usize {
    order * (order + 1) / 2
}

/// The balance of the last of some dual points, and the rows that were read for all of them.
fn point_of(sums: &[f64]) -> Result<(Imbalance, usize)> {
    let (before, last) = sums.split_at(sums.len().saturating_sub(6));
    let [mut read, excess, above, below, all_above, all_below] = array(last)?;
    for numbers in before.chunks(6) {
        let [more, ..] = array::<6>(numbers)?;
        read += more;
    }
    let (inside, all) = ([above, below], [all_above, all_below]);
    Ok((Imbalance { excess, inside, all }, read as usize))
}

fn array<const N: usize>(numbers: &[f64]) -> Result<[f64; N]> {
    let wrong = |_| Error::Shape { what: "the answer of the shards", expected: N, found: numbers.len() };
    numbers.try_into().map_err(wrong)
}

impl<const L: usize> Passes<L> for Remote<'_, L> {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn max_squared_norm(&self) -> f64 {
        self.max_squared_norm
    }

    fn decide(&mut self, w: &Block<L>) -> Result<()> {
        self.w = w.clone();
        self.pending.op(Op::Decide).block(w);
        self.change(StateChange::Point(w.clone()));
        Ok(())
    }

    fn foresee(&mut self, what: Option<Form>) {
        self.asks = what;
    }

    fn curvature(&mut self, _: usize, form: Form) -> Result<Curvature> {
        self.asks = None;
        if let Some(found) = self.foreseen.take().filter(|found| found.gram.form() == form) {
            return Ok(found);
        }
        let form = self.ask_for_curvature(form);
        let ShardAnswer { sums, maxima, .. } = self.ask()?;
        self.curvature_of(form, (sums, maxima))
    }

    fn multiply(&mut self, p: &[[f64; L]], _: Option<&[f64; L]>, out: &mut Block<L>) -> Result<usize> {
        self.pending.op(Op::Multiply).block(p);
        let answer = self.ask()?;
        let mut reader = Reader::new(&answer.sums, self.lanes);
        reader.block(out)?;
        Ok(reader.number()? as usize)
    }

    fn finish(&mut self, step: &Block<L>, _: Option<&[f64; L]>) -> Result<usize> {
        self.step = Rc::new(step.clone());
        self.pending.op(Op::Finish).block(step);
        self.change(StateChange::Finish(Rc::clone(&self.step)));
        self.tried.clear();
        self.ahead = None;
        Ok(self.n_rows)
    }

    fn advance(&mut self, lengths: &[f64; L]) -> Result<usize> {
        line_search::advance(&mut self.w, &self.step, lengths);
        let read = if !self.is_search && self.track.may_advance(self.lanes) {
            self.pending.op(Op::Advance).lanes(lengths);
            self.change(StateChange::Advance(Rc::clone(&self.step), *lengths));
            0
        } else {
            self.pending.op(Op::Decide).block(&self.w);
            self.change(StateChange::Point(self.w.clone()));
            self.n_rows
        };
        let is_whole = lengths[..self.lanes].iter().all(|length| *length == 1.0);
        self.here = self.ahead.take().filter(|_| is_whole);
        Ok(read)
    }
}

impl<const L: usize> Remote<'_, L> {
    /// Moves the decision values.
    fn shift(&mut self, shift: &[f64; L]) {
        self.pending.op(Op::Shift).lanes(shift);
        self.change(StateChange::Shift(*shift));
    }

    /// The slopes at decision values so far from here; with no distance those here, and an evaluation.
    fn slopes(&mut self, terms: ShardTerms, shifts: Option<&[f64; L]>) -> Result<[[f64; L]; 3]> {
        self.pending.op(Op::Slopes).number(terms.sigma()).lanes(shifts.unwrap_or(&[0.0; L]));
        if shifts.is_none() {
            self.ask_for_evaluation(terms);
        }
        let answer = self.ask()?;
        let mut reader = Reader::new(&answer.sums, self.lanes);
        let slopes = [reader.lanes()?, reader.lanes()?, reader.lanes()?];
        if shifts.is_none() {
            let mut h = Block::zeros(self.w.len());
            let found = self.evaluation_of(&mut reader, &answer.maxima, &mut h)?;
            self.ready = Some((h, found));
        }
        Ok(slopes)
    }

    fn ask_for_evaluation(&mut self, terms: ShardTerms) {
        self.pending.op(Op::Evaluate).number(terms.sigma());
        self.change(StateChange::Evaluated(terms.sigma()));
        self.asks = self.asks.map(|form| self.ask_for_curvature(form));
    }

    fn evaluation_of(
        &mut self,
        reader: &mut Reader<'_>,
        maxima: &[f64],
        h: &mut Block<L>,
    ) -> Result<LossSums<L>> {
        reader.block(h)?;
        let loss = reader.lanes()?;
        let mut read = reader.number()? as usize;
        self.foreseen = None;
        if let Some(form) = self.asks {
            let (sums, maxima) = (memory::copy(reader.rest()), memory::copy(maxima));
            let found = self.curvature_of(form, (sums, maxima))?;
            read += found.read;
            self.foreseen = Some(Curvature { read: 0, ..found });
        }
        Ok(LossSums { loss, read })
    }

    /// Asks for curvatures in this form, or in the closest to it that there is; returns which.
    fn ask_for_curvature(&mut self, form: Form) -> Form {
        let block = self.frequent.as_ref().filter(|_| form == Form::Frequent);
        let form = if form == Form::Frequent && block.is_none() { Form::Diagonal } else { form };
        self.pending.op(Op::Curvature).form(form);
        if let Some(columns) = block {
            self.pending.number(columns.every() as f64).number(columns.order() as f64);
            columns.columns().iter().for_each(|j| _ = self.pending.number(f64::from(*j)));
        }
        form
    }

    /// Curvatures of that form from an answer; the first diagonal shows which columns are frequent.
    fn curvature_of(&mut self, form: Form, (mut sums, maxima): (Vec<f64>, Vec<f64>)) -> Result<Curvature> {
        let read = sums.pop().unwrap_or(0.0) as usize;
        self.curved = read;
        let n = self.w.len();
        let block = self.frequent.as_ref().filter(|_| form == Form::Frequent);
        let expected = match (form, block) {
            (Form::Dense, _) => triangle(n),
            (_, Some(columns)) => n + triangle(columns.order()),
            _ => n,
        };
        if sums.len() != expected {
            return Err(Error::Shape { what: "curvatures of the shards", expected, found: sums.len() });
        }
        let gram = match (form, block) {
            (Form::Dense, _) => Gram::Dense(Symmetric::from_lower(n, &sums)),
            (_, Some(columns)) => {
                let block = Symmetric::from_lower(columns.order(), &sums[n..]);
                sums.truncate(n);
                Gram::Frequent { diagonal: sums, columns: Arc::clone(columns), block }
            }
            _ => {
                if self.frequent.is_none() && n > FREQUENT_COLUMNS {
                    let columns = FrequentColumns::largest(FREQUENT_COLUMNS, &sums, self.n_rows);
                    self.frequent = Some(Arc::new(columns));
                }
                Gram::Diagonal(sums)
            }
        };
        let largest = maxima.into_iter().fold(f64::MIN_POSITIVE, f64::max);
        Ok(Curvature { gram, largest, read, work: f64::from(u8::from(form != Form::Diagonal)) })
    }
}

impl<const L: usize> TermPasses<ShardTerms, L> for Remote<'_, L> {
    fn shift_to_optimum(&mut self, terms: &ShardTerms) -> Result<[f64; L]> {
        let (mut here, mut gone) = (self.here.take(), [0.0; L]);
        self.settles = true;
        let shift = intercept::find_shift(self.exact, |shifts, relative| {
            if let Some(slopes) = here.take() {
                return Ok(slopes);
            }
            let left = std::array::from_fn(|l| shifts[l] - gone[l]);
            let is_tried = relative <= NEAR;
            if is_tried {
                self.shift(&left);
                gone = *shifts;
            }
            self.slopes(*terms, if is_tried { None } else { Some(&left) })
        })?;
        if shift != gone {
            self.shift(&std::array::from_fn(|l| shift[l] - gone[l]));
        }
        if let Some(last) = self.w.last_mut() {
            (0..L).for_each(|l| last[l] += shift[l] / self.bias);
        }
        Ok(shift)
    }

    fn evaluate(&mut self, terms: &ShardTerms, h: &mut Block<L>) -> Result<LossSums<L>> {
        if let Some((found, sums)) = self.ready.take() {
            *h = found;
            return Ok(sums);
        }
        self.ask_for_evaluation(*terms);
        let answer = self.ask()?;
        let mut reader = Reader::new(&answer.sums, self.lanes);
        self.evaluation_of(&mut reader, &answer.maxima, h)
    }

    /// Asks for several halvings at once where a whole step was too long.
    fn losses(&mut self, terms: &ShardTerms, lengths: &[f64; L]) -> Result<[f64; L]> {
        loop {
            let known = |l: usize| {
                let found = self.tried.iter().find(|(length, _)| *length == lengths[l]);
                if lengths[l] == 0.0 { Some(0.0) } else { found.map(|(_, losses)| losses[l]) }
            };
            let found: Option<Vec<f64>> = (0..L).map(known).collect();
            if let Some(found) = found {
                return array(&found);
            }
            let last = self.tried.last().map(|(length, _)| *length);
            let trials: Vec<f64> = match last {
                None => vec![1.0],
                Some(last) => (1..=TRIALS as i32).map(|k| last * 0.5f64.powi(k)).collect(),
            };
            self.try_lengths(*terms, &trials)?;
        }
    }

    fn decide_anew(&mut self, terms: &ShardTerms, w: &Block<L>) -> Result<[[f64; L]; 2]> {
        self.w = w.clone();
        self.pending.op(Op::DecideAnew).number(terms.sigma()).block(w);
        self.change(StateChange::Point(w.clone()));
        // A proof most likely comes next, but not for the hinge, which has yet to keep its dual variables.
        let is_last = matches!(terms, ShardTerms::Smooth);
        let (weighs, is_polished) = (is_last && self.lanes == 1 && !self.is_search, self.weighs_point);
        self.weighs_point = false;
        if weighs {
            self.pending.op(Op::Weigh).number(0.0).number(f64::from(u8::from(is_polished)));
        }
        let answer = self.ask()?;
        let mut reader = Reader::new(&answer.sums, self.lanes);
        let values = [reader.lanes()?, reader.lanes()?];
        if weighs {
            self.weighed = Some((is_polished, (array(reader.rest())?, array(&answer.maxima)?)));
        }
        Ok(values)
    }
}

/// The dual variables of the hinge, at the shards.
pub struct RemoteCorners;

impl Corners<Remote<'_, 1>> for RemoteCorners {
    type Terms = ShardTerms;

    fn terms(&self, sigma: f64) -> ShardTerms {
        ShardTerms::Around(sigma)
    }

    fn take_slopes(&mut self, rows: &mut Remote<'_, 1>) -> Result<()> {
        rows.pending.op(Op::TakeSlopes);
        rows.change(StateChange::TakeSlopes);
        Ok(())
    }

    fn values(&mut self, rows: &mut Remote<'_, 1>) -> Result<[f64; 2]> {
        rows.pending.op(Op::Corners);
        array(&rows.ask()?.sums)
    }

    fn keep(&mut self, rows: &mut Remote<'_, 1>) -> Result<()> {
        rows.pending.op(Op::Keep);
        rows.change(StateChange::Keep);
        Ok(())
    }

    fn go_back(&mut self, rows: &mut Remote<'_, 1>) -> Result<()> {
        rows.pending.op(Op::GoBack);
        rows.change(StateChange::GoBack);
        Ok(())
    }
}
