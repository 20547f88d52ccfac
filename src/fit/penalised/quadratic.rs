//! Coordinate descent on the quadratic model of a Newton step plus the penalty.
//!
//! The model of the losses around the present weights is `q(d) = g.d + 1/2 d'Hd`. A visit of a column moves
//! its weight to the minimiser of model and penalty along it ([`Term::minimiser`]), which needs the model's
//! slope and curvature there. [`QuadraticModel`] says how they are kept: [`Entries`] reads the entries of the
//! column, [`super::gram::ModelMatrix`] has the matrix `H`.

use super::directions::{FLAT, Waits, conjugate_gradients};
use super::walls::{Step, is_inside};
use crate::Result;
use crate::fit::baselines::extrapolation::Extrapolation;
use crate::fit::monitor::Monitor;
use crate::matrix::columns::Columns;
use crate::memory::{self, CollectLarge};
use crate::penalty::Term;

/// Differences of epochs that an extrapolation combines.
const DIFFERENCES: usize = 5;
/// Epochs after which conjugate gradients take over from extrapolations.
const PATIENCE: usize = 20;
/// Decreases of an epoch that a jump by conjugate gradients must be worth, which take as long as some fifteen
/// epochs; else the next one waits twice as long.
const WORTH: f64 = 15.0;
/// Epochs between two such jumps at first,
const BETWEEN_DIRECTIONS: usize = 5;
/// and their steps at most.
const MAX_DIRECTIONS: usize = 10;

/// A quadratic model of the losses on the columns of a working set.
pub trait QuadraticModel {
    /// Whether jumps lead to the minimum, so that a descent ends behind one.
    const FINDS_MINIMUM: bool;
    /// Slope along column `k` of the set.
    fn slope(&self, k: usize) -> f64;
    /// Curvature along it.
    fn bend(&self, k: usize) -> f64;
    /// Takes note that its weight has moved.
    fn shift(&mut self, k: usize, by: f64);
    /// Jumps to a better point where the model knows one; by how much model and penalty fall. The last epoch
    /// lowered them by `decrease`.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    fn jump(
        &mut self,
        terms: &[Term],
        w: &mut [f64],
        decrease: f64,
        monitor: &dyn Monitor,
    ) -> Result<(Jump, f64)>;
}

/// What came of a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// There is none, or none after which more is to be had.
    None,
    /// To a better point.
    Better,
    /// To the minimum over the weights that are not zero and not on a bound.
    Minimum,
}

/// When a descent ends.
#[derive(Clone, Copy)]
pub struct InnerStop {
    /// Share of the decrease so far that may be left.
    pub share: f64,
    /// Largest number of epochs.
    pub epochs: usize,
    /// Epochs between two jumps.
    pub between_jumps: usize,
    /// A decrease that may be rounding.
    pub noise: f64,
}

/// What a descent did.
pub struct DescentEnd {
    /// Visits of columns.
    pub visits: usize,
    /// It came to its end before the last epoch.
    pub is_done: bool,
}

/// Descends from `w`, the weights of the working set.
///
/// An epoch visits the columns that are not zero or have moved in the last one; when they are done, one
/// epoch visits all. What is left is guessed from the decrease of two successive epochs of one kind, as if
/// it went on by their ratio. Where jumps lead to the minimum, a descent ends only behind one, unless there
/// is none to be had.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn descend<M: QuadraticModel>(
    model: &mut M,
    terms: &[Term],
    w: &mut [f64],
    stop: InnerStop,
    monitor: &dyn Monitor,
) -> Result<DescentEnd> {
    let all: Vec<u32> = (0..w.len() as u32).collect();
    let mut active = all.clone();
    let (mut total, mut last, mut visits, mut jump) = (0.0f64, f64::INFINITY, 0, Jump::Better);
    for epoch in 1..=stop.epochs {
        monitor.poll()?;
        let mut decrease = 0.0;
        let is_whole = active.len() == all.len();
        let mut moved = Vec::new();
        for &k in &active {
            let fall = visit(model, &terms[k as usize], w, k as usize);
            decrease += fall;
            if is_whole && (fall > 0.0 || w[k as usize] != 0.0) {
                moved.push(k);
            }
        }
        visits += active.len();
        total += decrease;
        let ratio = (decrease / last).min(0.99);
        let left = if last.is_finite() { decrease * ratio / (1.0 - ratio) } else { decrease };
        last = decrease;
        let is_done = decrease.max(left) <= stop.share * total || decrease <= stop.noise;
        if is_done && is_whole && (!M::FINDS_MINIMUM || jump != Jump::Better) {
            return Ok(DescentEnd { visits, is_done: true });
        }
        if is_done || is_whole {
            active = if is_whole { moved } else { all.clone() };
            last = f64::INFINITY;
        }
        if !is_done {
            jump = Jump::Better;
        }
        if (is_done && is_whole) || epoch % stop.between_jumps == 0 {
            let fall;
            (jump, fall) = model.jump(terms, w, decrease, monitor)?;
            total += fall;
            if M::FINDS_MINIMUM {
                active = all.clone();
            }
            if jump != Jump::None || M::FINDS_MINIMUM {
                last = f64::INFINITY;
            }
        }
    }
    Ok(DescentEnd { visits, is_done: false })
}

/// Moves one weight to its minimiser; returns by how much model and penalty fell.
#[inline(always)]
fn visit<M: QuadraticModel>(model: &mut M, term: &Term, w: &mut [f64], k: usize) -> f64 {
    let (slope, bend, before) = (model.slope(k), model.bend(k), w[k]);
    let after = term.minimiser(before, slope, bend);
    let step = after - before;
    if step == 0.0 || !step.is_finite() {
        return 0.0;
    }
    w[k] = after;
    model.shift(k, step);
    let change = step * (slope + 0.5 * bend * step) + term.rise(before, after);
    (-change).max(0.0)
}

/// The model by the entries of the columns.
pub struct Entries<'a> {
    columns: &'a Columns,
    list: &'a [u32],
    /// Slope of the model along each decision value, and its curvature.
    rows: &'a mut [[f64; 2]],
    bend: Vec<f64>,
    /// What the smallest curvature of a column adds to its own, and the slope that comes of it: without that
    /// slope every epoch would go on along a column without curvature.
    added: Vec<[f64; 2]>,
    extrapolation: Extrapolation,
    /// Whether conjugate gradients are worth it.
    is_directed: bool,
    epochs: usize,
    waits: Waits,
}

impl<'a> Entries<'a> {
    /// The model on the columns of `list` whose slopes and curvatures along the decision values are `rows`.
    /// `least` is the smallest curvature of a column.
    ///
    /// Jumps are extrapolations; from some epoch on, where the model `is_directed`, conjugate gradients: of
    /// thousands of columns they save nine of ten epochs.
    pub fn new(
        columns: &'a Columns,
        list: &'a [u32],
        rows: &'a mut [[f64; 2]],
        least: &[f64],
        is_directed: bool,
    ) -> Self {
        let own = |&j: &u32| columns.sum(j as usize, |i, x| [rows[i][1] * x * x])[0];
        let mut bend: Vec<f64> = list.iter().map(own).collect_large();
        let added =
            bend.iter().zip(least).map(|(bend, least)| [(least - bend).max(0.0), 0.0]).collect_large();
        bend.iter_mut().zip(least).for_each(|(bend, least)| *bend = bend.max(*least));
        let extrapolation = Extrapolation::of(DIFFERENCES);
        let waits = Waits::new(BETWEEN_DIRECTIONS);
        Self { columns, list, rows, bend, added, extrapolation, is_directed, epochs: 0, waits }
    }
}

impl QuadraticModel for Entries<'_> {
    const FINDS_MINIMUM: bool = false;

    #[inline(always)]
    fn slope(&self, k: usize) -> f64 {
        let rows = &*self.rows;
        let [slope] = self.columns.sum(self.list[k] as usize, |i, x| [rows[i][0] * x]);
        slope + self.added[k][1]
    }
    #[inline(always)]
    fn bend(&self, k: usize) -> f64 {
        self.bend[k]
    }
    #[inline(always)]
    fn shift(&mut self, k: usize, by: f64) {
        let rows = &mut *self.rows;
        self.columns.for_each(self.list[k] as usize, |i, x| {
            let row = &mut rows[i];
            row[0] += row[1] * (by * x);
        });
        let [bend, slope] = &mut self.added[k];
        *slope += *bend * by;
    }
    /// To the extrapolation of the last epochs, or along conjugate gradients, if model and penalty are lower
    /// there. Zeros stay, and no sign changes.
    fn jump(
        &mut self,
        terms: &[Term],
        w: &mut [f64],
        decrease: f64,
        monitor: &dyn Monitor,
    ) -> Result<(Jump, f64)> {
        self.epochs += 1;
        if self.is_directed && self.epochs > PATIENCE {
            if !self.waits.is_over() {
                return Ok((Jump::None, 0.0));
            }
            let (jump, fall) = self.follow_directions(terms, w, monitor)?;
            self.waits.begin(fall >= WORTH * decrease);
            return Ok((jump, fall));
        }
        let guess = self.extrapolation.push(w);
        Ok(guess.map_or((Jump::None, 0.0), |guess| self.try_guess(terms, w, guess)))
    }
}

impl Entries<'_> {
    /// As far as conjugate gradients lead, else to the first wall on the way.
    fn follow_directions(
        &mut self,
        terms: &[Term],
        w: &mut [f64],
        monitor: &dyn Monitor,
    ) -> Result<(Jump, f64)> {
        let inside: Vec<usize> = (0..w.len()).filter(|&k| is_inside(&terms[k], w[k])).collect_large();
        let diagonal: Vec<f64> = inside.iter().map(|&k| self.bend[k] + terms[k].l2).collect_large();
        let slope = inside.iter().map(|&k| terms[k].slope_inside(w[k], self.slope(k))).collect_large();
        let mut along: Vec<f64> = memory::zeros(self.rows.len());
        let product = |direction: &[f64]| self.product(terms, &inside, direction, &mut along);
        let by = conjugate_gradients(slope, &diagonal, MAX_DIRECTIONS, monitor, product)?;
        let step = Step::new(terms, w, &inside, by);
        let at = |ends: &[f64]| {
            let mut guess = memory::copy(w);
            inside.iter().zip(ends).for_each(|(&k, end)| guess[k] = *end);
            guess
        };
        let (whole, first) = (at(&step.whole), at(&step.to_first_wall(w)));
        Ok(match self.try_guess(terms, w, whole) {
            (Jump::None, _) if !step.is_whole => self.try_guess(terms, w, first),
            found => found,
        })
    }

    /// The curvature of model and penalty times a direction of the weights `inside`.
    fn product(&self, terms: &[Term], inside: &[usize], direction: &[f64], along: &mut [f64]) -> Vec<f64> {
        along.fill(0.0);
        for (&k, p) in inside.iter().zip(direction) {
            self.columns.for_each(self.list[k] as usize, |i, x| along[i] += p * x);
        }
        along.iter_mut().zip(&*self.rows).for_each(|(along, row)| *along *= row[1]);
        let of_column = |(&k, p): (&usize, &f64)| {
            let [sum] = self.columns.sum(self.list[k] as usize, |i, x| [along[i] * x]);
            sum + (self.added[k][0] + terms[k].l2 + FLAT * self.bend[k]) * p
        };
        inside.iter().zip(direction).map(of_column).collect_large()
    }

    /// Moves to a guess if model and penalty are lower there; by how much they are.
    fn try_guess(&mut self, terms: &[Term], w: &mut [f64], mut guess: Vec<f64>) -> (Jump, f64) {
        let mut change = 0.0;
        let mut along: Vec<f64> = memory::zeros(self.rows.len());
        for (k, guess) in guess.iter_mut().enumerate() {
            let (before, term) = (w[k], terms[k]);
            let is_zero = term.l1 > 0.0 && *guess * before <= 0.0;
            *guess = term.clip(if is_zero { 0.0 } else { *guess });
            if *guess != before {
                let ([bend, slope], by) = (self.added[k], *guess - before);
                change += term.rise(before, *guess) + by * (slope + 0.5 * bend * by);
                self.columns.for_each(self.list[k] as usize, |i, x| along[i] += by * x);
            }
        }
        let of_rows = |(row, along): (&[f64; 2], &f64)| along * (row[0] + 0.5 * row[1] * along);
        change += self.rows.iter().zip(&along).map(of_rows).sum::<f64>();
        if change >= 0.0 || change.is_nan() {
            return (Jump::None, 0.0);
        }
        self.rows.iter_mut().zip(&along).for_each(|(row, along)| row[0] += row[1] * along);
        let moved = w.iter().zip(&guess).map(|(before, after)| after - before);
        self.added.iter_mut().zip(moved).for_each(|([bend, slope], by)| *slope += *bend * by);
        w.copy_from_slice(&guess);
        (Jump::Better, -change)
    }
}
