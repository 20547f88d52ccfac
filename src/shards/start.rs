//! A start for Newton that takes two round trips: each shard fits its own rows, as if they stood for all, and
//! the client goes along the mean of what they have found.
//!
//! A shard has everything that a fit in memory takes. It fits a sample of its rows where they are many, all
//! of them where all shards together have few, and nothing otherwise: it would be busy for longer than the
//! rounds take. The mean of the minimisers over `k` parts of the rows is closer to that over all of them than
//! each is (Zhang and others, Communication-efficient algorithms for statistical optimization, 2013), unless
//! the parts are of different kinds; the line search from zero says how much it is worth. A shard of one
//! class knows of no minimiser and has no say.

use super::remote::{Remote, ShardTerms};
use super::shard::{ShardFacts, ShardSide};
use super::task::ShardTask;
use super::wire::{Reader, ShardAnswer};
use crate::Result;
use crate::fit::newton::row_state::{Passes, TermPasses};
use crate::fit::newton::sample::{self, Sample};
use crate::fit::newton::{Newton, line_search};
use crate::fit::routes::{SAMPLED_ONE_IN, SAMPLED_PER_COLUMN, SHARD_START_ENTRIES};
use crate::fit::sweep::sum_entries;
use crate::fit::{Intercept, Params, Problem, Start, auto};
use crate::loss::{Loss, with_loss};
use crate::matrix::Rows;
use crate::matrix::lanes::Block;
use crate::memory::CollectLarge;

/// Lengths along the mean that are tried, all in one round.
const LENGTHS: [f64; 4] = [1.0, 0.5, 0.25, 0.125];

impl<const L: usize> ShardSide<'_, L> {
    /// For each lane the weights of a fit on these rows, times the cost of the rows, and that cost; then the
    /// rows read. The arguments are the total cost of all shards, the tolerance, and whether all rows are few
    /// enough to be fitted.
    pub(super) fn fit_alone(&mut self, reader: &mut Reader<'_>, answer: &mut ShardAnswer) -> Result<()> {
        let (total, tol, is_small) = (reader.number()?, reader.number()?, reader.number()? != 0.0);
        let cost: f64 = self.cost.iter().sum();
        let design = self.rows.design(self.rows.intercept.bias());
        let (d, bias) = (design.n_cols(), design.bias);
        let (mut found, mut weight, mut read) = (Block::<L>::zeros(d), [0.0; L], 0.0);
        let raised: Vec<f64> = self.cost.iter().map(|c| c * (total / cost)).collect_large();
        for lane in 0..self.lanes {
            let y = self.rows.signs(self.first + lane as u32);
            if !(y.contains(&1.0) && y.contains(&-1.0)) {
                continue;
            }
            let problem = Problem {
                rows: self.rows.rows,
                ids: Some(self.rows.ids),
                y: &y,
                cost: &raised,
                intercept: self.rows.intercept,
            };
            let sample = Sample::of(&problem);
            if sample.is_none() && !is_small {
                continue;
            }
            let problem = sample.as_ref().map_or(problem, |sample| sample.problem(&problem));
            let params = Params { tol, ..Params::default() };
            let start = Start::default();
            let Ok(solution) = auto::solve_unproved(&problem, self.rows.loss, &params, &start, self.monitor)
            else {
                self.monitor.poll()?;
                continue; // what the rows cannot do alone they may do with others
            };
            weight[lane] = cost;
            read += solution.passes * problem.y.len() as f64;
            for (found, w) in found.iter_mut().zip(&solution.w) {
                found[lane] = cost * w;
            }
            if bias != 0.0 {
                found[d - 1][lane] = cost * solution.intercept / bias;
            }
        }
        self.columns.answer(&found, self.lanes, answer);
        answer.lanes(&weight, self.lanes);
        answer.sums.push(read);
        Ok(())
    }
}

/// Whether rows are few enough for shards to fit all of theirs.
fn is_small(task: &ShardTask) -> bool {
    task.facts.n_entries <= SHARD_START_ENTRIES
}

/// Whether there may be pieces that fit a sample of their rows: all are like the mean.
fn are_many(task: &ShardTask) -> bool {
    let ShardFacts { n_rows, n_pieces, .. } = task.facts;
    n_rows >= n_pieces * SAMPLED_ONE_IN * SAMPLED_PER_COLUMN * task.n_weights()
}

/// Moves `newton` from zero towards the mean of what the shards find alone.
///
/// # Errors
/// [`crate::Error::Cancelled`], and those of the exchange.
pub fn begin<const L: usize>(task: &ShardTask, newton: &mut Newton<'_, Remote<'_, L>, L>) -> Result<()> {
    let is_small = is_small(task);
    if task.facts.n_rows == 0 || !(is_small || are_many(task)) {
        return Ok(());
    }
    let tol = task.params.tol.max(sample::TOL);
    let (mean, read) = newton.rows.fit_alone(task.facts.cost, tol, is_small)?;
    newton.work.passes += read / task.facts.n_rows as f64;
    let Newton { rows, w, work, .. } = newton;
    let at_zero = with_loss!(task.loss, loss => task.facts.cost * loss.value(0.0));
    let n_penalised = mean.len() - usize::from(task.intercept == Intercept::Free);
    let [squares] = sum_entries(n_penalised, |j| [mean[j].map(|w| w * w)]);
    rows.finish(&mean, None)?;
    rows.try_lengths(ShardTerms::Smooth, &LENGTHS)?;
    let (mut chosen, mut least) = ([0.0; L], [at_zero; L]);
    for length in LENGTHS {
        let losses = rows.losses(&ShardTerms::Smooth, &[length; L])?;
        for l in 0..L {
            let value = 0.5 * length * length * squares[l] + losses[l];
            if value < least[l] {
                (chosen[l], least[l]) = (length, value);
            }
        }
    }
    line_search::advance(w, &mean, &chosen);
    rows.advance(&chosen)?;
    work.passes += 1.0;
    Ok(())
}
