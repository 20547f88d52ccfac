//! Dual points beside the slopes, on the side of the rows: [`crate::fit::newton::polish`] where nobody has
//! all rows.
//!
//! A shard descends on its own variables from the slopes, linearised before along a step that the client has
//! found by two products ([`crate::fit::newton::approach`]), while the others descend on theirs. What is
//! large in the Hessian is shared by all of them, and each would take the whole of an error away that needs
//! taking away once. In the local copy of the weights a change therefore counts as often as there are
//! shards (Ma and others, Adding vs. averaging in distributed primal-dual optimization, 2015): the sum of
//! all changes then raises the dual value at least by the sum of what the shards believe they have gained.
//! Three epochs take no more rounds than one. flights, 2 and 8 shards, C = 16, 16 fits to 1e-2 and 1e-4: the
//! gap is 8.1 times the distance in the median and 94 at worst instead of 15 and 142; with two 10 and 111.
//!
//! Where steps are factorised a shard linearises its slopes along a step in the dual, and says what the model
//! leaves out at the end of it, from where the client may go a step further
//! ([`crate::fit::newton::dual_step`]).
//!
//! What takes all rows is left to the client: the share by which variables move onto the constraint of a free
//! intercept, from sums of each shard. The weights of the variables that come out are summed anew, so that
//! what they miss is the rounding of a sum.

use super::ascent::EPOCHS;
use super::shard::{Relay, ShardPoint, ShardSide};
use super::wire::{Reader, ShardAnswer};
use crate::fit::certificate::{Cut, Imbalance};
use crate::fit::dual::{DualLoss, Visit};
use crate::fit::newton::dual_step::{StepEnd, linearise};
use crate::fit::newton::hessian;
use crate::fit::newton::polish::SlopeRows;
use crate::fit::newton::row_state::RowState;
use crate::fit::sweep::{Sweep, sum};
use crate::loss::{Loss, with_smooth_loss};
use crate::matrix::Rows;
use crate::memory::CollectLarge;
use crate::{Error, Result, memory};

fn no_slopes() -> Error {
    Error::Shape { what: "smooth losses", expected: 1, found: 0 }
}

impl<const L: usize> ShardSide<'_, L> {
    /// Some epochs from the slopes of a lane or, if the number after it says so, from the point that is
    /// there: how often a change counts, height of the constant column, offset, seed, and the weights of all
    /// variables.
    pub(super) fn descend(
        &mut self,
        reader: &mut Reader<'_>,
        relay: &mut Relay,
        answer: &mut ShardAnswer,
    ) -> Result<()> {
        let lane = self.lane(reader)?;
        let &[is_there, stretch, height, offset, seed] = reader.numbers(5)? else {
            return Err(no_slopes());
        };
        let point = self.point.take().filter(|_| is_there != 0.0);
        let (y, alpha) = point.map_or_else(|| self.slopes(lane), |point| (point.y, point.alpha));
        let design = self.rows.design(height);
        let mut w = relay.begin(self.columns.numbers(reader, design.n_cols())?);
        let mut visit = Visit { w: &mut w, offset, stretch };
        let (cost, epochs, seed) = (&self.cost[..], if stretch > 1.0 { EPOCHS } else { 1 }, seed as u64);
        let slopes = SlopeRows { y: &y, cost, alpha: &alpha, design, epochs, seed };
        let bends = |i: usize| self.state.curvature[i][lane] != 0.0;
        let (alpha, visited) = with_smooth_loss!(
            self.rows.loss,
            loss => slopes.descend(loss, bends, &mut visit, self.monitor)?,
            else return Err(no_slopes())
        );
        relay.end(w);
        self.take_point(ShardPoint { y, alpha }, visited, answer);
        Ok(())
    }

    /// The slopes of a lane linearised along a step, from the evaluated point or, if the first number after
    /// it says so, from the end of another step; what the model leaves out there, if the second one does.
    pub(super) fn linearise(&mut self, reader: &mut Reader<'_>, answer: &mut ShardAnswer) -> Result<()> {
        let lane = self.lane(reader)?;
        let &[is_further, asks] = reader.numbers(2)? else { return Err(no_slopes()) };
        let (y, mut alpha) = self.slopes(lane);
        let before = if is_further == 0.0 { None } else { Some(self.moved(&y, reader)?) };
        let moved = self.moved(&y, reader)?;
        with_smooth_loss!(
            self.rows.loss,
            loss => {
                let steps = (before.as_deref(), &moved[..], asks != 0.0);
                self.linearise_along(loss, (&y, lane), &mut alpha, steps, answer);
            },
            else return Err(no_slopes())
        );
        let read = y.len() * (1 + usize::from(before.is_some()));
        self.take_point(ShardPoint { y, alpha }, read, answer);
        Ok(())
    }

    /// By how much a step moves the margins.
    fn moved(&self, y: &[f64], reader: &mut Reader<'_>) -> Result<Vec<f64>> {
        let design = self.rows.design(self.rows.intercept.bias());
        let step = self.columns.numbers(reader, design.n_cols())?;
        let mut moved = memory::zeros(y.len());
        Sweep::<1>::new(design, self.monitor).margins(y, &step, &mut moved);
        Ok(moved)
    }

    /// [`Self::linearise`] of the dual variables `alpha` of the slopes, by how far steps move the margins.
    fn linearise_along<T: DualLoss>(
        &self,
        loss: T,
        (y, lane): (&[f64], usize),
        alpha: &mut [f64],
        (before, moved, asks): (Option<&[f64]>, &[f64], bool),
        answer: &mut ShardAnswer,
    ) {
        let RowState { z, curvature, .. } = &self.state;
        let terms = |i: usize, margin: f64| {
            let [_, slope, bend] = loss.all(margin);
            [self.cost[i] * slope, self.cost[i] * bend]
        };
        let at = |i: usize| y[i] * z[i][lane] + before.map_or(0.0, |before| before[i]);
        // Slopes and curvatures along the margin.
        let here: Vec<[f64; 2]> = match before {
            None => alpha.iter().zip(&**curvature).map(|(a, bend)| [-a, bend[lane]]).collect_large(),
            Some(_) => (0..y.len()).map(|i| terms(i, at(i))).collect_large(),
        };
        if asks {
            let there = |i: usize| terms(i, at(i) + moved[i]);
            let model = |i: usize| [here[i][0] + here[i][1] * moved[i], here[i][1]];
            self.leave_out(y, &here, StepEnd::of(y.len(), there, model), answer);
        }
        alpha.iter_mut().zip(&here).for_each(|(a, [slope, _])| *a = -slope);
        linearise(loss, (y, &self.cost), alpha, |i| here[i][1], |i| y[i] * moved[i]);
    }

    /// Answers with what the model from `here` leaves out at the end of a step: of the gradient, of the
    /// matrix, and how many rows get or lose curvature, infinitely many where they are too many to be of use.
    fn leave_out(&self, y: &[f64], here: &[[f64; 2]], end: StepEnd, answer: &mut ShardAnswer) {
        let StepEnd { terms, mut left_out, switched } = end;
        let mut sweep = Sweep::<1>::new(self.rows.design(self.rows.intercept.bias()), self.monitor);
        let n_columns = sweep.design.n_cols();
        let mut gradient = memory::zeros(n_columns);
        let mut changes = memory::zeros(y.len());
        let is_of_use = !left_out.is_empty() || y.is_empty();
        if is_of_use {
            left_out.iter_mut().zip(y).for_each(|(d, y)| *d *= y);
            sweep.weighted_sum(&left_out, &mut gradient);
            let bends = terms.iter().zip(here).map(|([_, there], [_, here])| there - here);
            changes.iter_mut().zip(bends).for_each(|(change, bend)| *change = bend);
        }
        self.columns.answer_numbers(&gradient, answer);
        answer.sums.extend(hessian::change_of_matrix(&sweep, &changes).lower());
        answer.sums.push(if is_of_use { switched } else { f64::INFINITY });
    }

    pub(super) fn take_point(&mut self, point: ShardPoint, read: usize, answer: &mut ShardAnswer) {
        let Imbalance { excess, inside, all } = Imbalance::of(&point.y, &self.cost, &point.alpha);
        answer.sums.extend([read as f64, excess, inside[0], inside[1], all[0], all[1]]);
        self.point = Some(point);
    }

    /// Takes its share off the variables of the point; answers with their weights and terms of the dual
    /// value.
    pub(super) fn settle(&mut self, reader: &mut Reader<'_>, answer: &mut ShardAnswer) -> Result<()> {
        let &[sign, share, spares_bounds] = reader.numbers(3)? else { return Err(no_slopes()) };
        let cut = Cut { sign, share, spares_bounds: spares_bounds != 0.0 };
        let design = self.certified();
        let ShardPoint { y, alpha } = self.point.as_mut().ok_or_else(no_slopes)?;
        let cost = &self.cost[..];
        for (i, a) in alpha.iter_mut().enumerate() {
            *a -= cut.change(y[i], cost[i], *a).unwrap_or(0.0);
        }
        let signed: Vec<f64> = alpha.iter().zip(&*y).map(|(a, y)| a * y).collect_large();
        let mut w = memory::zeros(design.n_cols());
        Sweep::<1>::new(design, self.monitor).weighted_sum(&signed, &mut w);
        let [terms, read] = with_smooth_loss!(
            self.rows.loss,
            loss => sum(alpha.len(), |i| {
                [loss.dual_term(cost[i], alpha[i]), f64::from(u8::from(alpha[i] != 0.0))]
            }),
            else return Err(no_slopes())
        );
        self.columns.answer_numbers(&w, answer);
        answer.sums.extend([terms, read]);
        Ok(())
    }
}
