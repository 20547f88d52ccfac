//! The certificate of [`crate::fit::certificate`] over rows that are at shards: their sums are made there, by
//! the same code, and the conclusion here. What sums over several shards add is one rounding for each.

use super::remote::Remote;
use super::task::ShardTask;
use crate::Result;
use crate::fit::certificate::{self, Ball, Repair, RowTotals, UNIT};
use crate::fit::newton::single::Spread;
use crate::fit::sweep::dot;
use crate::fit::{Certificate, Intercept};

/// A point whose decision values at the shards are fresh.
pub struct Claimed<'a> {
    /// Weights, the intercept's last.
    pub w: &'a [f64],
    /// How far those of the dual variables are.
    pub spread: Spread,
    /// Its lane.
    pub lane: usize,
    /// Whether its dual variables are those beside the slopes.
    pub is_polished: bool,
}

/// What can be proved of a point.
///
/// # Errors
/// Those of the exchange.
pub fn prove<const L: usize>(
    task: &ShardTask,
    rows: &mut Remote<'_, L>,
    claimed: &Claimed<'_>,
) -> Result<Certificate> {
    let is_free = task.intercept == Intercept::Free;
    let n_weights = claimed.w.len() - usize::from(is_free);
    let (w, n) = (&claimed.w[..n_weights], task.facts.n_rows);
    let b = if is_free { claimed.w[n_weights].abs() } else { 0.0 };
    let squared = dot(w, w);
    let length = certificate::length_of(squared, n_weights);
    let pieces = task.facts.n_pieces as f64;
    let ([excess, total, reach], [digit, longest]) = rows.weigh(claimed.lane, claimed.is_polished)?;
    let Spread { distance, drift, additions } = claimed.spread;
    let has_leapt = drift > 0.0 && certificate::is_leap(digit, task.facts.cost);
    let drift = if has_leapt { f64::INFINITY } else { drift };
    let blur = certificate::blur(drift, length, additions + pieces, reach);
    let ball = Ball { squared, n_weights, radius: distance + blur, blur };
    let excess = if is_free { excess } else { 0.0 };
    // The excess of each piece is rounded to a double, and their sum once for each.
    let delta = if is_free {
        certificate::excess_bound(excess, total, n as f64) + UNIT * (pieces + 1.0) * total
    } else {
        0.0
    };
    // An excess that happens to sum to zero is known no better than one that does not.
    let sign = if is_free && excess == 0.0 { f64::MIN_POSITIVE } else { excess };
    let (sums, price) = rows.prove((claimed.lane, claimed.is_polished), [length, b, sign, delta])?;
    let repair =
        if is_free { Repair { price: delta * price, length: delta * longest } } else { Repair::default() };
    let [losses, terms, slack, size, alpha] = sums;
    let totals = RowTotals { losses, terms, slack, size, alpha };
    Ok(totals.conclude(&repair, &ball, n, certificate::chain(n) + pieces).certificate)
}
