//! Coordinate descent on the quadratic model of a Newton step plus the penalty.
//!
//! The model of the losses around the present weights is `q(d) = g.d + 1/2 d'Hd`. A visit of a column moves
//! its weight to the minimiser of model and penalty along it ([`Term::minimiser`]), which needs the model's
//! slope and curvature there. [`QuadraticModel`] says how they are kept: [`super::entries::Entries`] reads
//! the entries of the column, [`super::gram::ModelMatrix`] has the matrix `H`.

use crate::Result;
use crate::fit::monitor::Monitor;
use crate::penalty::Term;

/// A quadratic model of the losses on the columns of a working set.
pub trait QuadraticModel {
    /// Whether jumps lead to the minimum, so that a descent ends behind one.
    const FINDS_MINIMUM: bool;
    /// Slope and curvature along column `k` of the set.
    fn along(&self, k: usize) -> [f64; 2];
    /// Takes note that its weight has moved.
    fn shift(&mut self, k: usize, by: f64);
    /// The coordinates that epochs visit.
    fn visited(&self) -> Vec<u32>;
    /// Ends an epoch; by how much model and penalty fall.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    fn end_epoch(&mut self, _terms: &[Term], _w: &mut [f64], _monitor: &dyn Monitor) -> Result<f64> {
        Ok(0.0)
    }
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
    /// Epochs, of which each visit of a column counts as its share of those that are visited.
    pub visited: f64,
    /// Epochs begun.
    pub epochs: usize,
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
    let all = model.visited();
    let end = |visits: usize, epochs, is_done| {
        let visited = visits as f64 / all.len().max(1) as f64;
        DescentEnd { visited, epochs, is_done }
    };
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
        decrease += model.end_epoch(terms, w, monitor)?;
        visits += active.len();
        total += decrease;
        let ratio = (decrease / last).min(0.99);
        let left = if last.is_finite() { decrease * ratio / (1.0 - ratio) } else { decrease };
        last = decrease;
        let is_done = decrease.max(left) <= stop.share * total || decrease <= stop.noise;
        if is_done && is_whole && (!M::FINDS_MINIMUM || jump != Jump::Better) {
            return Ok(end(visits, epoch, true));
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
    Ok(end(visits, stop.epochs, false))
}

/// Moves one weight to its minimiser; returns by how much model and penalty fell.
#[inline(always)]
fn visit<M: QuadraticModel>(model: &mut M, term: &Term, w: &mut [f64], k: usize) -> f64 {
    let ([slope, bend], before) = (model.along(k), w[k]);
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
