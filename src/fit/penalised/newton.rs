//! Newton steps on a working set: the quadratic model of the losses plus the penalty, minimised, and a search
//! along the line to its minimum.

use super::chosen_columns::ChosenColumns;
use super::coordinates::penalty;
use super::entries::Entries;
use super::gram::ModelMatrix;
use super::heavy::{self, HeavyBlock};
use super::matrix_of_rows::MatrixOfRows;
use super::quadratic::{DescentEnd, InnerStop, QuadraticModel, descend};
use super::smooth_part::{Losses, SmoothPart};
use super::working_set::WorkingSet;
use crate::fit::monitor::Monitor;
use crate::fit::routes::{
    DIRECTED_COLUMNS, ENTRIES_STOP, GRAM_PRICE, GRAM_PRICE_OF_STARTS, GRAM_STOP, HEAVY_EPOCHS,
    LADDER_FRACTION, LOSSES_PRICE, LOSSES_STOP, LOSSES_TURN, MODEL_DUAL_PRICE,
};
use crate::fit::sweep::sum;
use crate::memory::CollectLarge;
use crate::penalty::Term;
use crate::{Result, memory};

/// Demanded share of the decrease that the slope promises.
const SUFFICIENT: f64 = 1e-4;
/// Share of the promised decrease below which half of the step is tried too: beyond a kink of the curvature a
/// whole one may be far too long, and steps then go to and fro.
const GOOD: f64 = 0.25;
/// Halvings of a step at most.
const MAX_HALVINGS: usize = 40;
/// Curvature that is added along each column at least, as a share of its largest, the damping of Levenberg
/// and Marquardt: rows that are flat now may not be so further on. Steps that prove much too long raise it,
/// whole ones lower it again.
///
/// Added, as a least curvature would not do: of fewer rows within the margin than columns, the model is flat
/// along sums of columns that are curved each. 20news, one group against the rest, squared hinge, L1, gap
/// 1e-2, C = 200 and 1,000: 64 and 127 steps, 160 and 517 with a least curvature (6.4 and 12.8 s, 18.7 and
/// 189).
const LEAST_DAMPING: f64 = 1e-10;
/// Share of a step below which it was much too long (tried: 0.3 and 0.6, with raises by 2, 4 and 10 to at
/// least 1e-5 to 1e-3; 57 to 79 steps there at C = 200),
const TOO_LONG: f64 = 0.1;
/// which raises the damping by this factor, to at least [`RAISED`].
const RAISE: f64 = 10.0;
/// See [`RAISE`]. By 100 and to 1e-4: softmax, mnist, 5,000 rows, standardised, 907 weights, gap 1e-2, sets
/// of at least 50, 100 and 200 weights: 23, 18 and 21 steps instead of 22, 18 and 17. flights, imdb,
/// phishing_urls: the same steps.
const RAISED: f64 = 1e-3;
/// By how much, as a share of the losses, their sums may be off.
pub const NOISE: f64 = 1e-14;
/// The same for the decrease of an epoch, which is summed step by step.
const INNER_NOISE: f64 = 1e-24;
/// Promised decreases below this share of the objective lead nowhere: a gap, which falls with the root of the
/// distance, would be below 1e-10.
const NOTHING: f64 = 1e-22;
/// Epochs on entries at least before they count as too slow.
const LEAST_EPOCHS: usize = 3;
/// How many times as dear as the dearest matrix so far one may be that is made without a descent on entries.
const AGAIN: f64 = 4.0;
/// By how much descents on entries go further where rounds do too little,
const FURTHER: f64 = 0.1;
/// down to this share of the decrease.
const LEAST_SHARE: f64 = 1e-6;
/// By how much, as a share, the objective may fall more or less than a model says that is right. Tried: 0.2,
/// 0.4; 1,000 random rows x 2,000 columns, logistic, C = 100, gap 1e-2 0.16 and 0.5 s instead of 0.03,
/// 3,000 x 2,500, C = 10 0.23 instead of 0.06, others as before.
const RIGHT: f64 = 0.1;
/// Share of the objective that steps on the free columns may leave.
const FREE_SHARE: f64 = 1e-13;

/// Newton steps, counted.
pub struct NewtonSteps<'a, T> {
    /// What is minimised.
    pub smooth_part: &'a T,
    monitor: &'a dyn Monitor,
    max_steps: usize,
    /// Steps taken.
    pub taken: usize,
    /// Readings of all entries that the steps were worth.
    pub passes: f64,
    /// The last step could not lower the objective any more.
    pub is_stuck: bool,
    /// Steps in a row of which no more than [`LADDER_FRACTION`] was taken.
    pub fractions: usize,
    /// Whether the next descent that may be on the losses themselves is,
    is_losses_turn: bool,
    /// and the epochs on them since the last matrix.
    epochs_on_losses: usize,
    /// Curvature that is added along a column, as a share of its largest.
    damping: f64,
    /// The price up to which a matrix is formed at once: [`GRAM_PRICE`] or [`GRAM_PRICE_OF_STARTS`], and
    /// [`AGAIN`] times that of the dearest matrix so far.
    gram_price: f64,
    /// Share of the decrease that a descent on entries may leave; one on a matrix a part of it.
    share: f64,
    /// Curvature of the losses along each column at most, the same in all blocks; NaN where nobody has asked.
    largest: Vec<f64>,
    /// How far from the model the objective was at the end of the last step: 1 from [`RIGHT`] on.
    wrong: f64,
    /// The dual point of that model,
    model_slopes: Option<Vec<f64>>,
    /// and what [`Self::passes`] were when such a one was last asked for.
    passes_then: f64,
    /// The matrix of the last model, where the next one may follow from it.
    kept: Option<MatrixOfRows>,
    /// Vectors of rows that are not in use: new memory is slow to touch.
    spare: Vec<Losses>,
    direction: Vec<f64>,
}

impl<'a, T: SmoothPart> NewtonSteps<'a, T> {
    /// Counts from zero.
    pub fn new(smooth_part: &'a T, max_steps: usize, monitor: &'a dyn Monitor) -> Self {
        Self {
            smooth_part,
            monitor,
            max_steps,
            taken: 0,
            passes: 0.0,
            is_stuck: false,
            fractions: 0,
            is_losses_turn: true,
            epochs_on_losses: 0,
            damping: LEAST_DAMPING,
            gram_price: GRAM_PRICE,
            share: ENTRIES_STOP.share,
            largest: memory::filled(f64::NAN, smooth_part.coordinates().columns.len()),
            wrong: 1.0,
            model_slopes: None,
            passes_then: 0.0,
            kept: None,
            spare: Vec::new(),
            direction: memory::zeros(smooth_part.coordinates().n_decisions()),
        }
    }

    /// The same where it `is_near`, at the solution of a problem nearby, that they begin: the matrix may be
    /// dearer then.
    pub fn starting_near(self, is_near: bool) -> Self {
        Self { gram_price: if is_near { GRAM_PRICE_OF_STARTS } else { GRAM_PRICE }, ..self }
    }

    /// The losses at the decision values that `at` gives for each row, in spare vectors.
    fn losses_at(&mut self, at: impl Fn(usize) -> f64) -> Losses {
        let n = self.smooth_part.coordinates().n_decisions();
        let mut losses = self.spare.pop().unwrap_or_else(|| Losses::unknown(memory::zeros(n)));
        losses.z.iter_mut().enumerate().for_each(|(i, z)| *z = at(i));
        self.smooth_part.evaluate(&mut losses);
        losses
    }

    /// Whether no more steps may be taken.
    pub fn is_over(&self) -> bool {
        self.taken >= self.max_steps
    }

    /// As [`Monitor::poll`].
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn poll(&self) -> Result<()> {
        self.monitor.poll()
    }

    /// Lets descents go further from now on, unless the last model was wrong: its minimum is then none of
    /// the objective, however close a descent comes to it. Tried: always; 20news, logistic, C = 100 5.5 s
    /// instead of 0.96 to a gap of 1e-2, 1,000 random rows x 2,000 columns 0.62 s instead of 0.03.
    pub fn go_further(&mut self) {
        if self.wrong < 1.0 {
            self.share = (self.share * FURTHER).max(LEAST_SHARE);
        }
    }

    /// Lets descents go as far as they ever do.
    #[cfg(test)]
    pub fn go_far(&mut self) {
        self.share = LEAST_SHARE;
    }

    /// Share of the decrease that the next descent on a matrix or with a block may leave: the less, the
    /// better the last model was, as in the forcing terms of Eisenstat and Walker. Tried: without a limit
    /// to that; flights, squared hinge 2.9 s instead of 1.3 to a gap of 1e-2. On entries alone, too;
    /// 2,000 dense rows x 500 columns, logistic 0.2 s instead of 0.11, as descents are not done and go on
    /// with a matrix.
    pub fn share(&self) -> f64 {
        (self.share * self.wrong.max(FURTHER)).max(LEAST_SHARE)
    }

    /// The dual point of the last step's model, where the steps since the last one was asked for took so long
    /// that a reading of all entries for its sake is little.
    pub fn take_model_slopes(&mut self) -> Option<Vec<f64>> {
        let price = self.passes - std::mem::replace(&mut self.passes_then, self.passes);
        self.model_slopes.take().filter(|_| price >= MODEL_DUAL_PRICE)
    }

    /// Minimises over the coordinates without penalty and bounds, where there are any; returns the losses
    /// there.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn settle_free(&mut self, working: &WorkingSet, w: &mut [f64], losses: Losses) -> Result<Losses> {
        if working.free().is_empty() {
            return Ok(losses);
        }
        let target = FREE_SHARE * losses.value;
        // What steps of the others have learnt of the models is theirs.
        let Self { taken, fractions, damping, wrong, .. } = *self;
        let (model_slopes, kept) = (self.model_slopes.take(), self.kept.take());
        self.damping = LEAST_DAMPING;
        let losses = self.minimise(w, losses, working.free(), None, target)?;
        (self.taken, self.fractions, self.damping, self.is_stuck) = (taken, fractions, damping, false);
        (self.wrong, self.model_slopes, self.kept) = (wrong, model_slopes, kept);
        Ok(losses)
    }

    /// Steps on the coordinates of `list` until one lowers the objective by `target` at most; returns the
    /// losses there. `known` are their slopes, if they are.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn minimise(
        &mut self,
        w: &mut [f64],
        mut losses: Losses,
        list: &[u32],
        mut known: Option<Vec<f64>>,
        target: f64,
    ) -> Result<Losses> {
        let smooth_part = self.smooth_part;
        let all = smooth_part.coordinates();
        let set = ChosenColumns::of(all, list);
        let terms: Vec<Term> = list.iter().map(|&j| all.term(j as usize)).collect();
        let largest: Vec<f64> = list.iter().map(|&j| self.largest_bend(j as usize)).collect_large();
        let entries = all.count_entries(list);
        let share = entries as f64 / all.n_entries().max(1) as f64;
        self.passes += share;
        loop {
            self.monitor.poll()?;
            let slope = known.take().unwrap_or_else(|| all.slopes(list, &losses.slope));
            let damping: Vec<f64> = largest.iter().map(|bend| self.damping * bend).collect_large();
            let before: Vec<f64> = list.iter().map(|&j| w[j as usize]).collect_large();
            let subset =
                Subset { list, terms: &terms, damping: &damping, chosen: set.as_ref(), entries, share };
            let by_losses = self.minimum_of_losses(&subset, &losses, &before)?;
            let was_by_losses = by_losses.is_some();
            let after = match by_losses {
                Some(after) => after,
                None => self.model_minimum(&subset, &losses, &slope, &before)?,
            };
            self.taken += 1;
            self.passes += 2.0 * share;
            let step = LineStep { list, terms: &terms, before: &before, after: &after, slope: &slope };
            let (there, decrease, share) = self.search(&step, losses, w);
            losses = there;
            smooth_part.normalise(w);
            // Where nearly all rows are flat or straight a step may be too long for all halvings.
            let can_be_shorter = share == 0.0 && self.damping < 1.0;
            self.adapt(share);
            let is_nothing = decrease <= NOTHING * losses.value;
            // A descent on the losses that went too far leaves the next one to the model.
            let can_be_better = can_be_shorter || (was_by_losses && is_nothing);
            self.take_turns(&subset, was_by_losses, share == 1.0 && !is_nothing);
            self.is_stuck = is_nothing && !can_be_better;
            let is_over = decrease <= target && !can_be_better;
            if is_over || self.is_stuck || self.taken >= self.max_steps {
                return Ok(losses);
            }
        }
    }

    /// The minimum of the losses themselves and the penalty from the weights `before`, about: where it is the
    /// turn of descents on them ([`Self::take_turns`]) and they are half parabolas. Rows that come within the
    /// margin make a visit too long, so that weights may go to and fro: [`Self::search`] sees to it that the
    /// objective falls.
    fn minimum_of_losses(
        &mut self,
        subset: &Subset<'_>,
        losses: &Losses,
        before: &[f64],
    ) -> Result<Option<Vec<f64>>> {
        let Subset { list, terms, damping, .. } = *subset;
        if !(self.is_losses_turn && subset.is_wide()) {
            return Ok(None);
        }
        let Some(rows) = self.smooth_part.half_parabolas(list, losses) else {
            return Ok(None);
        };
        let mut after = memory::copy(before);
        let mut model = Entries::new(rows, damping, false);
        let stop = InnerStop { noise: INNER_NOISE * losses.value, ..LOSSES_STOP };
        let found = descend(&mut model, terms, &mut after, stop, self.monitor)?;
        self.epochs_on_losses += found.epochs;
        self.count_descent(subset, 0, &found);
        Ok(Some(after))
    }

    /// Of sets whose matrix is very dear, descents on the losses come first: the model does not know the rows
    /// that come within the margin, and its minimum may be far beyond that of the losses. When they have
    /// taken [`LOSSES_TURN`] times as long as the matrix, or have led nowhere, it is the model's turn, and
    /// stays it while its steps are whole.
    fn take_turns(&mut self, subset: &Subset<'_>, was_by_losses: bool, is_whole: bool) {
        if was_by_losses {
            let most = subset.chosen.map_or(f64::INFINITY, |set| LOSSES_TURN * set.price);
            self.is_losses_turn = is_whole && (self.epochs_on_losses as f64) < most;
        } else if subset.is_wide() {
            self.epochs_on_losses = 0;
            self.is_losses_turn = !is_whole;
        }
    }

    /// The minimum of model and penalty from the weights `before`: by the entries of the columns, or by the
    /// matrix of the model where that is cheaper. A descent on the entries that has cost as much as the
    /// matrix and is not at its end would have been better off with it, and so will be those that follow,
    /// unless theirs is much dearer.
    fn model_minimum(
        &mut self,
        subset: &Subset<'_>,
        losses: &Losses,
        slope: &[f64],
        before: &[f64],
    ) -> Result<Vec<f64>> {
        let Subset { list, terms, damping, chosen: set, share, .. } = *subset;
        let price = set.map_or(f64::INFINITY, |set| set.price);
        let noise = INNER_NOISE * losses.value;
        let mut after = memory::copy(before);
        let is_dear = price > self.gram_price;
        if is_dear && self.descend_on_entries(subset, losses, slope, &mut after)? {
            return Ok(after);
        }
        let Some(set) = set else {
            return Ok(after);
        };
        if price > GRAM_PRICE {
            self.gram_price = self.gram_price.max(AGAIN * price);
        }
        let weights = self.smooth_part.row_weights(losses);
        let (matrix, part) = self.matrix(set, list, losses, weights)?;
        self.passes += part * price * share;
        let mut model = ModelMatrix::new(matrix, memory::copy(slope), damping);
        for (k, (after, before)) in after.iter().zip(before).enumerate().filter(|(_, (a, b))| a != b) {
            model.shift(k, after - before);
        }
        let stop = InnerStop { share: GRAM_STOP.share * self.share(), noise, ..GRAM_STOP };
        descend(&mut model, terms, &mut after, stop, self.monitor)?;
        self.kept = weights.map(|weights| MatrixOfRows::new(list, weights, model.into_matrix()));
        Ok(after)
    }

    /// The matrix of the model on a set, and what part of its price it takes. `weights` are those of
    /// [`SmoothPart::row_weights`].
    fn matrix(
        &mut self,
        set: &ChosenColumns<'_>,
        list: &[u32],
        losses: &Losses,
        weights: Option<&[f64]>,
    ) -> Result<(Vec<f64>, f64)> {
        if let (Some(kept), Some(weights)) = (self.kept.take(), weights)
            && let Some(found) = kept.follow(set, list, weights, self.monitor)?
        {
            return Ok(found);
        }
        Ok((self.smooth_part.matrix(set, list, losses, self.monitor)?, 1.0))
    }

    /// Descends from the weights `after` on the entries of the columns, for about as many epochs as take the
    /// time of the matrix; whether to its end.
    fn descend_on_entries(
        &mut self,
        subset: &Subset<'_>,
        losses: &Losses,
        slope: &[f64],
        after: &mut [f64],
    ) -> Result<bool> {
        let Subset { list, terms, damping, chosen: set, .. } = *subset;
        // Tried: conjugate gradients where rows are flat, too; phishing_urls with the squared hinge and 1,040
        // weights takes 8 to 10 s to 1e-4 instead of 4 to 5, imdb 2.4 instead of 4.8.
        let is_directed = list.len() > DIRECTED_COLUMNS && self.smooth_part.is_curved(losses);
        let mut model = Entries::new(self.smooth_part.row_models(list, losses, slope), damping, is_directed);
        let block = self.heaviest(subset, losses, &model)?;
        let together = block.as_ref().map_or(0, |block| block.entries);
        let price = |set: &ChosenColumns<'_>| match block {
            Some(_) => HEAVY_EPOCHS * set.whole_price,
            None => set.price,
        };
        let as_dear = |set| (price(set) as usize).clamp(LEAST_EPOCHS, GRAM_STOP.epochs);
        let epochs = set.map_or(ENTRIES_STOP.epochs, as_dear);
        model.heavy = block;
        let share_left = if together > 0 { self.share() } else { self.share };
        let noise = INNER_NOISE * losses.value;
        let stop = InnerStop { epochs, share: share_left, noise, ..ENTRIES_STOP };
        let found = descend(&mut model, terms, after, stop, self.monitor)?;
        self.count_descent(subset, together, &found);
        Ok(found.is_done)
    }

    /// Counts the readings of a descent on entries, `together` of which each epoch reads whatever it visits.
    fn count_descent(&mut self, subset: &Subset<'_>, together: usize, found: &DescentEnd) {
        let Subset { entries, share, .. } = *subset;
        let read = found.visited * (entries - together) as f64 + (found.epochs * together) as f64;
        self.passes += share * (1.0 + 2.0 * read / entries.max(1) as f64);
    }

    /// The block of the heaviest columns of a descent, where it is worth its price.
    fn heaviest(
        &mut self,
        subset: &Subset<'_>,
        losses: &Losses,
        model: &Entries<T::Rows<'_>>,
    ) -> Result<Option<HeavyBlock>> {
        let Subset { list, damping, entries, share, .. } = *subset;
        if !heavy::is_worth_it(list.len(), entries) {
            return Ok(None);
        }
        let places = heavy::places(model.bends());
        let block: Vec<u32> = places.iter().map(|&k| list[k as usize]).collect_large();
        let all = self.smooth_part.coordinates();
        let together = all.count_entries(&block);
        let Some(chosen) = ChosenColumns::of(all, &block) else {
            return Ok(None);
        };
        let matrix = self.smooth_part.matrix(&chosen, &block, losses, self.monitor)?;
        self.passes += chosen.price * share * together as f64 / entries as f64;
        Ok(Some(HeavyBlock::new(places, together, matrix, damping)))
    }

    /// [`SmoothPart::largest_bend`], computed once.
    fn largest_bend(&mut self, j: usize) -> f64 {
        let column = self.smooth_part.coordinates().column(j);
        if self.largest[column].is_nan() {
            self.largest[column] = self.smooth_part.largest_bend(column);
        }
        self.largest[column]
    }

    /// Chooses the damping of the next model by the share of the last step that was taken.
    fn adapt(&mut self, share: f64) {
        self.fractions = if share <= LADDER_FRACTION { self.fractions + 1 } else { 0 };
        if share < TOO_LONG {
            self.damping = (self.damping * RAISE).clamp(RAISED, 1.0);
        } else if share == 1.0 {
            self.damping = (self.damping / RAISE).max(LEAST_DAMPING);
        }
    }

    /// Goes as far along a step as the objective falls, as far as rounding lets this be seen; returns the
    /// losses there, half of the decrease that the slope promised, and the share of the step.
    ///
    /// Tried: three bisections around the best share; 20news, squared hinge, L1, gap 1e-2, C = 18, 61, 200
    /// and 1,000 23, 41, 60 and 170 steps instead of 25, 42, 64 and 127.
    fn search(&mut self, step: &LineStep<'_>, losses: Losses, w: &mut [f64]) -> (Losses, f64, f64) {
        let LineStep { list, terms, before, after, slope } = *step;
        let mut direction = std::mem::take(&mut self.direction);
        direction.fill(0.0);
        let mut promise = 0.0;
        for (k, &j) in list.iter().enumerate() {
            let by = after[k] - before[k];
            if by != 0.0 {
                promise += slope[k] * by + terms[k].rise(before[k], after[k]);
                self.smooth_part.coordinates().spread(j as usize, by, &mut direction);
            }
        }
        let here = penalty(|k| terms[k], before);
        let leads_up = promise >= 0.0 || promise.is_nan();
        let [square] = sum(direction.len(), |i| [losses.bend[i] * direction[i] * direction[i]]);
        let modelled = -(promise + 0.5 * square);
        self.model_slopes = self.smooth_part.model_slopes(&losses, &direction);
        self.wrong = 1.0;
        let (mut share, mut best) = (1.0, None::<(Losses, f64, f64, Vec<f64>)>);
        let tries = if leads_up { 0 } else { MAX_HALVINGS };
        for _ in 0..tries {
            let at =
                |k: usize| if share == 1.0 { after[k] } else { before[k] + share * (after[k] - before[k]) };
            let there = self.losses_at(|i| losses.z[i] + share * direction[i]);
            let moved: Vec<f64> = (0..list.len()).map(at).collect_large();
            let decrease = (losses.value - there.value) + (here - penalty(|k| terms[k], &moved));
            if best.as_ref().is_some_and(|(_, lower, ..)| decrease <= *lower) {
                self.spare.push(there);
                break;
            }
            let noise = NOISE * losses.value;
            if share == 1.0 {
                let off = ((decrease - modelled).abs() - noise).max(0.0);
                self.wrong = if off < RIGHT * modelled { off / (RIGHT * modelled) } else { 1.0 };
            }
            if decrease >= -SUFFICIENT * share * promise - noise {
                let passed = best.replace((there, decrease, share, moved));
                self.spare.extend(passed.map(|(passed, ..)| passed));
            } else {
                self.spare.push(there);
            }
            // Of a parabola it is half of the promise.
            if decrease >= -GOOD * share * promise - noise {
                break;
            }
            share *= 0.5;
        }
        self.direction = direction;
        let Some((there, _, share, moved)) = best else {
            return (losses, 0.0, if leads_up { 1.0 } else { 0.0 });
        };
        list.iter().zip(&moved).for_each(|(&j, moved)| w[j as usize] = *moved);
        self.spare.push(losses);
        (there, -0.5 * share * promise, share)
    }
}

/// The coordinates that a step may move.
#[derive(Clone, Copy)]
struct Subset<'a> {
    list: &'a [u32],
    terms: &'a [Term],
    /// Curvature that is added to the model's along each.
    damping: &'a [f64],
    /// What makes the matrix of a model, if they are few.
    chosen: Option<&'a ChosenColumns<'a>>,
    /// Their entries,
    entries: usize,
    /// and the share of all.
    share: f64,
}

impl Subset<'_> {
    /// Whether the matrix is so dear that descents on the losses themselves come first.
    fn is_wide(&self) -> bool {
        self.chosen.is_none_or(|set| set.price > LOSSES_PRICE)
            && !heavy::is_worth_it(self.list.len(), self.entries)
    }
}

/// A step of the coordinates of `list`, with the slopes of the losses before it.
#[derive(Clone, Copy)]
struct LineStep<'a> {
    list: &'a [u32],
    terms: &'a [Term],
    before: &'a [f64],
    after: &'a [f64],
    slope: &'a [f64],
}
