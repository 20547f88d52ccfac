//! A first phase in the dual, where columns are many more than rows: every shard descends on its own dual
//! variables, and the client adds up what has become of the weights (CoCoA+: Ma and others, Adding vs.
//! averaging in distributed primal-dual optimization, 2015).
//!
//! ```text
//! client   w, b, how far along the last change, stretch     -> shards
//! shards   go there; losses at (w, b); some epochs from w, in which a change counts `stretch` times
//! client   <- sum of all changes of w, losses, dual terms at some lengths along the changes
//! ```
//!
//! **Length and stretch.** The dual value along the sum of all changes is concave, and the client knows it
//! from scalars, so that it goes as far as pays. Counting every change as often as there are shards is safe,
//! and too careful where rows of different shards have little to do with each other: the stretch falls as
//! long as whole steps pay and grows where they do not.
//!
//! **Free intercept.** As in [`crate::fit::dual`], a constant column and a multiplier, but both are the
//! client's: shards begin from the imbalance of all rows and do not touch the multiplier. Where each shard
//! moved its own, it swung, and 4 and 8 shards took 91 and 63 rounds on imdb (squared hinge).
//!
//! **End.** The gap of each round is that of its weights and of the variables after it; the constraint's
//! price is the multiplier times the imbalance. Where that is small enough, the variables are moved onto the
//! constraint, their weights are summed anew and are the answer. Where the gap has not halved for some
//! rounds, Newton goes on from the weights.
//!
//! **Rounds.** imdb, C = 1, gap 1e-4, squared hinge and logistic: 15 and 8 with 2 shards, 26 and 9 with 4, 51
//! and 12 with 8 (`benches/cluster_rounds.py`); Newton alone takes 45 and 38 with 2.
//!
//! Tried, in a simulation of imdb, C = 1, gap 1e-4, one and three epochs a round with a stretch that follows
//! the lengths: squared hinge 15 and 11 rounds with 2 shards, 27 and 17 with 4; three epochs with a fixed
//! stretch 15 and 26; logistic 6 and 3, 8 and 5, with 8 shards 13 and 6. With 8 shards the squared hinge
//! comes to 2e-4 after some thirty rounds and no further. A first stretch of half the shards: 18 instead of
//! 17 with 4.

use super::remote::{Ascended, LENGTHS, Remote, ShardTerms};
use super::shard::{Relay, ShardAscent, ShardPoint, ShardSide};
use super::task::ShardTask;
use super::wire::{Reader, ShardAnswer};
use crate::fit::certificate::Cut;
use crate::fit::dual::{DualLoss, Method as _, Visit, active, epoch, penalty_for};
use crate::fit::newton::Newton;
use crate::fit::newton::single::Spread;
use crate::fit::routes::SHARD_ASCENT_COLUMNS;
use crate::fit::stop::LaneReport;
use crate::fit::sweep::{Sweep, dot, sum};
use crate::fit::{Certificate, Intercept, Monitor, Status};
use crate::loss::{Loss as _, with_smooth_loss};
use crate::matrix::Rows as _;
use crate::memory::CollectLarge;
use crate::{Error, Result, memory};

/// Epochs of a shard in a round.
pub(super) const EPOCHS: usize = 3;
/// Rounds in which the gap has to halve.
const PATIENCE: usize = 8;
/// Ends that may turn out to be too early, and the share of the gap that is aimed at after one.
const ENDS: usize = 3;
const CLOSER: f64 = 0.5;
/// Numbers of the vectors that a shard which begins anew is told: half a gigabyte of the client's memory.
const KEPT_NUMBERS: usize = 1 << 26;
/// What the stretch is multiplied by after a whole step, and after one of less than `SHORT`.
const BOLDER: f64 = 0.7;
const SHIER: f64 = 1.3;
const SHORT: f64 = 0.8;

fn no_ascent() -> Error {
    Error::Shape { what: "dual variables of a shard", expected: 1, found: 0 }
}

impl ShardAscent {
    /// Variable `i`, so far along its change; rounding does not leave the box.
    fn along(&self, i: usize, length: f64) -> f64 {
        let (a, next) = (self.alpha[i], self.next[i]);
        (a + length * (next - a)).clamp(a.min(next), a.max(next))
    }

    fn at(&self, length: f64) -> Vec<f64> {
        (0..self.y.len()).map(|i| self.along(i, length)).collect_large()
    }
}

impl<const L: usize> ShardSide<'_, L> {
    /// Goes along the change of the round before and descends; [`super::ascent`].
    pub(super) fn ascend(
        &mut self,
        reader: &mut Reader<'_>,
        relay: &mut Relay,
        answer: &mut ShardAnswer,
    ) -> Result<()> {
        let lane = self.lane(reader)?;
        let &[length, stretch, height, offset, b, seed] = reader.numbers(6)? else { return Err(no_ascent()) };
        let w = self.columns.numbers(reader, self.rows.design(height).n_cols())?;
        with_smooth_loss!(
            self.rows.loss,
            loss => {
                let mut ascent = match self.ascent.take() {
                    Some(ascent) => ascent,
                    None => self.at_start(loss, lane),
                };
                ascent.alpha = ascent.at(length);
                self.losses_at(loss, &ascent.y, (&w, b), answer);
                let from = (relay.begin(w), (stretch, height, offset), seed as u64);
                let (moved, read) = self.descend_alone(loss, &mut ascent, from, answer)?;
                relay.end(moved);
                let terms = sum(self.cost.len(), |i| {
                    let term = |k| loss.dual_term(self.cost[i], ascent.along(i, length_of(k)));
                    std::array::from_fn::<f64, LENGTHS, _>(term)
                });
                answer.sums.extend(terms);
                answer.sums.push((self.cost.len() + read) as f64);
                self.ascent = Some(ascent);
                Ok(())
            },
            else Err(no_ascent())
        )
    }

    fn at_start<T: DualLoss>(&self, loss: T, lane: usize) -> ShardAscent {
        let y = self.rows.signs(self.first + lane as u32);
        let method = loss.method(&y, &self.cost);
        let alpha: Vec<f64> = (0..y.len()).map(|i| method.alpha(i)).collect_large();
        ShardAscent { y, next: memory::copy(&alpha), alpha }
    }

    /// Losses, and their first two derivatives along the intercept.
    fn losses_at<T: DualLoss>(&self, loss: T, y: &[f64], (w, b): (&[f64], f64), answer: &mut ShardAnswer) {
        let design = self.certified();
        let mut margins = memory::zeros(y.len());
        Sweep::<1>::new(design, self.monitor).margins(y, &w[..design.n_cols()], &mut margins);
        answer.sums.extend(sum(y.len(), |i| {
            let ([value, slope, bend], c) = (loss.all(margins[i] + y[i] * b), self.cost[i]);
            [c * value, c * y[i] * slope, c * bend]
        }));
    }

    /// Epochs from the weights `begun`, by which the variables of these rows alone change; answers with their
    /// change of the weights. What these have become, and the rows read.
    fn descend_alone<T: DualLoss>(
        &self,
        loss: T,
        ascent: &mut ShardAscent,
        (mut begun, (stretch, height, offset), seed): (Vec<f64>, (f64, f64, f64), u64),
        answer: &mut ShardAnswer,
    ) -> Result<(Vec<f64>, usize)> {
        let (design, mut moved, mut read) = (self.rows.design(height), memory::copy(&begun), 0);
        let (mut method, mut random) = (loss.method(&ascent.y, &self.cost), active::random(seed, 0));
        method.start_at(&ascent.alpha);
        for _ in 0..EPOCHS {
            let mut visit = Visit { w: &mut moved, offset, stretch };
            read += epoch(&mut method, &design, &mut visit, &mut random, self.monitor)?.visited;
        }
        ascent.next = (0..ascent.y.len()).map(|i| method.alpha(i)).collect_large();
        begun.iter_mut().zip(&moved).for_each(|(w, moved)| *w = (moved - *w) / stretch);
        self.columns.answer_numbers(&begun, answer);
        Ok((moved, read))
    }

    /// Makes the variables so far along their change the dual point.
    pub(super) fn take_ascent(&mut self, reader: &mut Reader<'_>, answer: &mut ShardAnswer) -> Result<()> {
        let length = reader.number()?;
        let ascent = self.ascent.as_ref().ok_or_else(no_ascent)?;
        let point = ShardPoint { y: memory::copy(&ascent.y), alpha: ascent.at(length) };
        self.take_point(point, 0, answer);
        Ok(())
    }
}

fn length_of(k: usize) -> f64 {
    (k + 1) as f64 / LENGTHS as f64
}

/// Where the client is.
struct Ascent {
    /// Weights, and for a free intercept the height times the imbalance.
    w: Vec<f64>,
    is_free: bool,
    /// Height of the constant column.
    height: f64,
    /// The multiplier.
    offset: f64,
    /// The intercept of the primal point.
    b: f64,
    /// How far the shards have to go along their changes.
    length: f64,
    stretch: f64,
}

impl Ascent {
    fn new(task: &ShardTask) -> Self {
        let is_free = task.intercept == Intercept::Free;
        let facts = task.facts;
        let height = match task.intercept {
            Intercept::Free => penalty_for(facts.curvature / facts.cost, facts.cost).sqrt(),
            _ => task.intercept.bias(),
        };
        let (offset, b, length, stretch) = (0.0, 0.0, 1.0, task.facts.n_shards as f64);
        Self { w: memory::zeros(task.n_weights()), is_free, height, offset, b, length, stretch }
    }

    fn n_penalised(&self) -> usize {
        self.w.len() - usize::from(self.is_free)
    }

    /// Asks for a round and goes as far as pays; returns primal and dual value.
    fn round(&mut self, rows: &mut Remote<'_, 1>, seed: f64) -> Result<(Certificate, usize)> {
        let Self { length, stretch, height, offset, b, .. } = *self;
        let found = rows.ascend([length, stretch, height, offset, b, seed], &self.w)?;
        let [loss, slope, bend] = found.losses;
        let w = &self.w[..self.n_penalised()];
        let primal = 0.5 * dot(w, w) + loss;
        let dual = self.go(&found);
        if self.is_free && bend > 0.0 {
            self.b -= slope / bend;
        }
        Ok((Certificate { primal, dual }, found.read))
    }

    /// Moves the weights, the multiplier and the stretch; returns the dual value, the price of the imbalance
    /// taken off.
    fn go(&mut self, found: &Ascended) -> f64 {
        let (w, change) = (&self.w, &found.change);
        let (ww, wd, dd) = (dot(w, w), dot(w, change), dot(change, change));
        let last = w.len() - 1;
        let price = if self.is_free { self.offset / self.height } else { 0.0 };
        let value = |k: usize| {
            let length = length_of(k);
            let squares = ww + length * (2.0 * wd + length * dd);
            found.terms[k] - 0.5 * squares - price * (w[last] + length * change[last])
        };
        let values: [f64; LENGTHS] = std::array::from_fn(value);
        let (length, dual) = highest(&values);
        self.length = length;
        for (w, change) in self.w.iter_mut().zip(change) {
            *w += length * change;
        }
        if self.is_free {
            self.offset += self.height * self.w[last];
        }
        dual
    }

    /// Follows the length of the last step.
    fn adapt(&mut self, n_shards: usize) {
        if self.length == 1.0 {
            self.stretch = (BOLDER * self.stretch).max(1.0);
        } else if self.length < SHORT {
            self.stretch = (SHIER * self.stretch / self.length.sqrt()).min(n_shards as f64);
        }
    }
}

/// The highest point of the parabola through the highest of some values of a concave function and its
/// neighbours; at an end, that end.
fn highest(values: &[f64; LENGTHS]) -> (f64, f64) {
    let k = (1..LENGTHS).fold(0, |best, k| if values[k] >= values[best] { k } else { best });
    if k == 0 || k + 1 == LENGTHS {
        return (length_of(k), values[k]);
    }
    let (rise, bend) =
        (0.5 * (values[k + 1] - values[k - 1]), values[k + 1] - 2.0 * values[k] + values[k - 1]);
    if bend >= 0.0 {
        return (length_of(k), values[k]);
    }
    let way = (-rise / bend).clamp(-0.5, 0.5);
    (length_of(k) + way / LENGTHS as f64, values[k] + way * (rise + 0.5 * way * bend))
}

/// Whether the dual may be the better way.
pub fn is_worth_it(task: &ShardTask) -> bool {
    let n_rows = task.facts.n_rows;
    task.loss.is_smooth() && n_rows > 0 && task.n_columns >= SHARD_ASCENT_COLUMNS.saturating_mul(n_rows)
}

/// Ascends from zero to the gap of `task`, or leaves `newton` at the weights it came to. How the fit ended,
/// if it did, and how far the weights of the dual variables are.
///
/// # Errors
/// [`crate::Error::Cancelled`], and those of the exchange.
pub fn ascend(
    task: &ShardTask,
    newton: &mut Newton<'_, Remote<'_, 1>, 1>,
    monitor: &dyn Monitor,
) -> Result<Option<(LaneReport, Spread)>> {
    let (mut ascent, tol) = (Ascent::new(task), task.params.tol);
    let (mut aim, mut ends, mut gaps) = (tol, 0, Vec::new());
    let most = task.params.max_iter.min(KEPT_NUMBERS / task.n_weights().max(1));
    while gaps.len() < most && ends < ENDS && !is_stuck(&gaps) {
        let seed = f64::from((task.params.seed as u32).wrapping_add(gaps.len() as u32));
        let (values, read) = ascent.round(&mut newton.rows, seed)?;
        newton.count(read);
        monitor.poll()?;
        gaps.push(values.relative_gap());
        if values.relative_gap() <= aim {
            let certificate = end(newton, &ascent)?;
            if certificate.relative_gap() <= tol {
                let squared_gradient = 2.0 * (certificate.primal - certificate.dual);
                let (status, steps) = (Status::Converged, gaps.len());
                let report = LaneReport { status, steps, certificate, squared_gradient };
                let spread = Spread { distance: 0.0, drift: 0.0, additions: task.facts.n_rows as f64 };
                return Ok(Some((report, spread)));
            }
            (aim, ends) = (CLOSER * aim, ends + 1);
        }
        ascent.adapt(task.facts.n_shards);
    }
    stand_at(newton, &ascent.w[..ascent.n_penalised()], ascent.b);
    newton.refresh()?;
    Ok(None)
}

/// Whether the gap has not halved for some rounds.
fn is_stuck(gaps: &[f64]) -> bool {
    let (before, last) = gaps.split_at(gaps.len().saturating_sub(PATIENCE));
    let least = |gaps: &[f64]| gaps.iter().copied().fold(f64::INFINITY, f64::min);
    !before.is_empty() && least(last) > 0.5 * least(before)
}

fn stand_at(newton: &mut Newton<'_, Remote<'_, 1>, 1>, w: &[f64], b: f64) {
    let height = newton.bias();
    let flat = newton.w.as_flattened_mut();
    flat[..w.len()].copy_from_slice(w);
    if w.len() < flat.len() {
        flat[w.len()] = b / height;
    }
}

/// Moves the variables onto the constraint and `newton` to their weights; what is then known of both.
fn end(newton: &mut Newton<'_, Remote<'_, 1>, 1>, ascent: &Ascent) -> Result<Certificate> {
    let found = newton.rows.take_ascent(ascent.length)?;
    let cut = if ascent.is_free { Cut::of(found) } else { Cut::default() };
    let (w, terms, read) = newton.rows.settle(ascent.n_penalised(), cut)?;
    newton.count(read);
    let half = 0.5 * dot(&w, &w);
    stand_at(newton, &w, ascent.b);
    newton.rows.weigh_point();
    let [losses] = newton.fresh_loss(&ShardTerms::Smooth)?;
    Ok(Certificate { primal: half + losses, dual: terms - half })
}
