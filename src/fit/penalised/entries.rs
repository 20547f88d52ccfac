//! The quadratic model of a Newton step by the entries of the columns: a visit of a coordinate reads those of
//! its column, whatever the size of the working set. [`RowModels`] says what the rows add to it.

use super::coordinates::Coordinates;
use super::directions::{FLAT, Waits, conjugate_gradients};
use super::heavy::HeavyBlock;
use super::quadratic::{Jump, QuadraticModel};
use super::walls::{Step, is_inside};
use crate::Result;
use crate::fit::baselines::extrapolation::Extrapolation;
use crate::fit::monitor::Monitor;
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

/// Quadratic models of the rows, with the slopes that moves of the coordinates of a working set have left.
/// Coordinates are counted from the first of the set.
pub trait RowModels {
    /// Slope along a coordinate.
    fn slope(&self, k: usize) -> f64;
    /// Curvature along it.
    fn bend(&self, k: usize) -> f64;
    /// Both, where the curvature was found to be this when the descent began.
    #[inline(always)]
    fn along(&self, k: usize, bend: f64) -> [f64; 2] {
        [self.slope(k), bend]
    }
    /// Takes note that it has moved.
    fn shift(&mut self, k: usize, by: f64);
    /// All coordinates, and which of them the set has.
    fn coordinates(&self) -> (Coordinates<'_>, &[u32]);
    /// Adds what a move of a coordinate adds to the decision values.
    fn spread(&self, k: usize, by: f64, along: &mut [f64]) {
        let (all, list) = self.coordinates();
        all.spread(list[k] as usize, by, along);
    }
    /// `sum_i along_i x_ik`.
    fn gather(&self, k: usize, along: &[f64]) -> f64 {
        let (all, list) = self.coordinates();
        all.slope(list[k] as usize, along)
    }
    /// A number for each decision value.
    fn zeros(&self) -> Vec<f64> {
        memory::zeros(self.coordinates().0.n_decisions())
    }
    /// Multiplies moves of the decision values by the curvature.
    fn bend_times(&self, along: &mut [f64]);
    /// By how much such moves change the models.
    fn change(&self, along: &[f64]) -> f64;
    /// Moves the decision values.
    fn go(&mut self, along: &[f64]);
}

/// The model by the entries of the columns.
pub struct Entries<R> {
    rows: R,
    bend: Vec<f64>,
    /// What damping adds to the curvature of each coordinate, and the slope that comes of it: without that
    /// slope every epoch would go on along a column without curvature.
    added: Vec<[f64; 2]>,
    extrapolation: Extrapolation,
    /// Whether conjugate gradients are worth it.
    is_directed: bool,
    epochs: usize,
    waits: Waits,
    /// Coordinates over which it minimises together.
    pub heavy: Option<HeavyBlock>,
}

impl<R: RowModels> Entries<R> {
    /// The model of these rows, with a curvature of `damping` added along each coordinate.
    ///
    /// Jumps are extrapolations; from some epoch on, where the model `is_directed`, conjugate gradients: of
    /// thousands of columns they save nine of ten epochs.
    pub fn new(rows: R, damping: &[f64], is_directed: bool) -> Self {
        let bend = (0..damping.len()).map(|k| rows.bend(k)).collect_large();
        let added = damping.iter().map(|damping| [*damping, 0.0]).collect_large();
        let extrapolation = Extrapolation::of(DIFFERENCES);
        let waits = Waits::new(BETWEEN_DIRECTIONS);
        Self { rows, bend, added, extrapolation, is_directed, epochs: 0, waits, heavy: None }
    }
}

impl<R: RowModels> QuadraticModel for Entries<R> {
    const FINDS_MINIMUM: bool = false;

    /// Those that are not in a block.
    fn visited(&self) -> Vec<u32> {
        let mut is_visited: Vec<bool> = memory::filled(true, self.bend.len());
        self.heavy.iter().flat_map(|block| &block.places).for_each(|&k| is_visited[k as usize] = false);
        (0..self.bend.len() as u32).filter(|&k| is_visited[k as usize]).collect_large()
    }

    #[inline(always)]
    fn along(&self, k: usize) -> [f64; 2] {
        let [slope, bend] = self.rows.along(k, self.bend[k]);
        let [damping, added] = self.added[k];
        [slope + added, bend + damping]
    }
    #[inline(always)]
    fn shift(&mut self, k: usize, by: f64) {
        self.rows.shift(k, by);
        let [bend, slope] = &mut self.added[k];
        *slope += *bend * by;
    }
    /// At the minimum over the block.
    fn end_epoch(&mut self, terms: &[Term], w: &mut [f64], monitor: &dyn Monitor) -> Result<f64> {
        let Some(mut block) = self.heavy.take() else {
            return Ok(0.0);
        };
        let slope = block.places.iter().map(|&k| self.along(k as usize)[0]).collect_large();
        let (minimum, fall) = block.minimum(slope, terms, w, monitor)?;
        if fall > 0.0 {
            for (&k, weight) in block.places.iter().zip(minimum) {
                let by = weight - std::mem::replace(&mut w[k as usize], weight);
                if by != 0.0 {
                    self.shift(k as usize, by);
                }
            }
        }
        self.heavy = Some(block);
        Ok(fall.max(0.0))
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

impl<R: RowModels> Entries<R> {
    /// Curvature along each coordinate, without damping.
    pub fn bends(&self) -> &[f64] {
        &self.bend
    }

    /// As far as conjugate gradients lead, else to the first wall on the way.
    fn follow_directions(
        &mut self,
        terms: &[Term],
        w: &mut [f64],
        monitor: &dyn Monitor,
    ) -> Result<(Jump, f64)> {
        let inside: Vec<usize> = (0..w.len()).filter(|&k| is_inside(&terms[k], w[k])).collect_large();
        let diagonal: Vec<f64> =
            inside.iter().map(|&k| self.bend[k] + self.added[k][0] + terms[k].l2).collect_large();
        let slope = inside.iter().map(|&k| terms[k].slope_inside(w[k], self.along(k)[0])).collect_large();
        let mut along = self.rows.zeros();
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
        inside.iter().zip(direction).for_each(|(&k, p)| self.rows.spread(k, *p, along));
        self.rows.bend_times(along);
        let of_column = |(&k, p): (&usize, &f64)| {
            let sum = self.rows.gather(k, along);
            sum + (self.added[k][0] + terms[k].l2 + FLAT * self.bend[k]) * p
        };
        inside.iter().zip(direction).map(of_column).collect_large()
    }

    /// Moves to a guess, but no weight off zero or over it, if model and penalty are lower there.
    fn try_guess(&mut self, terms: &[Term], w: &mut [f64], mut guess: Vec<f64>) -> (Jump, f64) {
        for (k, guess) in guess.iter_mut().enumerate() {
            let is_zero = terms[k].l1 > 0.0 && *guess * w[k] <= 0.0;
            *guess = terms[k].clip(if is_zero { 0.0 } else { *guess });
        }
        self.go_if_lower(terms, w, &guess)
    }

    /// Moves to other weights if model and penalty are lower there; by how much they are.
    fn go_if_lower(&mut self, terms: &[Term], w: &mut [f64], there: &[f64]) -> (Jump, f64) {
        let mut change = 0.0;
        let mut along = self.rows.zeros();
        for (k, &there) in there.iter().enumerate() {
            let before = w[k];
            if there != before {
                let ([bend, slope], by) = (self.added[k], there - before);
                change += terms[k].rise(before, there) + by * (slope + 0.5 * bend * by);
                self.rows.spread(k, by, &mut along);
            }
        }
        change += self.rows.change(&along);
        if change >= 0.0 || change.is_nan() {
            return (Jump::None, 0.0);
        }
        self.rows.go(&along);
        let moved = w.iter().zip(there).map(|(before, after)| after - before);
        self.added.iter_mut().zip(moved).for_each(|([bend, slope], by)| *slope += *bend * by);
        w.copy_from_slice(there);
        (Jump::Better, -change)
    }
}
