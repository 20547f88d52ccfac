//! Where a fit begins that follows another at smaller costs: a step of a search for `C`.
//!
//! Newton goes on from the weights. The descent goes on from the dual point: with probabilities `p` at the
//! costs before, `e_y - t (e_y - p)` is a dual point of every row for each `t` in `[0, 1]`, whatever the
//! costs, and its weights at the new costs are `t W(p)`. The factor is the one of the largest dual value,
//!
//! ```text
//! D(t) = sum_i c_i H(e_y - t (e_y - p_i)) - t^2/2 |W(p)|^2,
//! D'(t) = sum_i c_i [r_i log((1 - t r_i) / t) - sum_{k != y} p_ik log p_ik] - t |W(p)|^2,    r_i = 1 - p_iy
//! ```
//!
//! which is concave in `t`; the constraint of free intercepts holds for all `t` if it does for 1.

use super::passes::{Setup, SoftmaxSlopes};
use super::point::Point;
use super::softmax::{Lines, dot, loss_at};
use super::strips::Strips;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::problem::Status;
use crate::fit::sweep::{for_chunks, sum};
use crate::matrix::lanes::Block;
use crate::{Result, memory};

/// Halvings of the interval of `log t`, and its lower end: costs that rise by more have forgotten the start.
const HALVINGS: usize = 12;
const LEAST_LOG_FACTOR: f64 = -16.0;

/// What a fit leaves to the next.
#[derive(Clone)]
pub enum SoftmaxStart {
    /// Of Newton: weights and intercepts.
    Weights(Strips, Vec<[f64; LINE]>),
    /// Of the descent: logits by row, from which weights follow, and intercepts.
    Logits(Block<LINE>, Vec<[f64; LINE]>),
}

/// A dual point with its weights.
pub struct DualStart {
    /// Logits by row; their exponentials add up to 1.
    pub logits: Block<LINE>,
    /// Its weights.
    pub w: Strips,
    /// Intercepts.
    pub offset: Vec<[f64; LINE]>,
    /// The dual value.
    pub value: f64,
    /// The factor `t`.
    pub factor: f64,
}

impl SoftmaxStart {
    /// The start that a fit's end makes.
    pub fn of(point: Point) -> Self {
        match point.logits {
            Some(logits) if point.is_of_descent => Self::Logits(logits, point.offset),
            _ => Self::Weights(point.w, point.offset),
        }
    }

    /// A point to go on from by Newton; `setup` has the rows as the certificate sees them.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn into_point(self, setup: &Setup<'_>) -> Result<Point> {
        let (w, offset, passes) = match self {
            Self::Weights(w, offset) => (w, offset, 0.0),
            Self::Logits(..) => {
                let DualStart { w, offset, .. } = self.into_dual(setup)?;
                (w, offset, 0.5)
            }
        };
        let status = Status::Stalled;
        Ok(Point { w, offset, logits: None, status, n_iter: 0, passes, is_of_descent: false })
    }

    /// A dual point to go on from by the descent; `setup` as above.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn into_dual(self, setup: &Setup<'_>) -> Result<DualStart> {
        let (mut logits, offset) = match self {
            Self::Logits(logits, offset) => (logits, offset),
            Self::Weights(w, offset) => {
                let mut scores = setup.table();
                setup.scores(&w, &offset, &mut scores);
                (scores, offset)
            }
        };
        normalise(setup, &mut logits);
        let (mut p, mut rest) = (setup.table(), memory::zeros(setup.n_rows()));
        setup.evaluate(&logits, &setup.row(0.0), &mut p, &mut rest);
        setup.poll()?;
        let mut w = setup.strips();
        let slopes = SoftmaxSlopes { lines: setup.lines, p: &p, rest: &rest, problem: setup.problem };
        setup.scatter(&slopes, &mut w);
        setup.poll()?;
        let squared = w.dot(&w, w.n_columns());
        let mut entropy: Vec<f64> = memory::zeros(setup.n_rows());
        for_chunks(&mut entropy, |start, entropy| {
            entropy.iter_mut().zip(start..).for_each(|(sum, i)| *sum = of_others(setup, i, &p, &logits));
        });
        let line = DualLine { cost: setup.problem.cost, rest: &rest, entropy: &entropy, squared };
        let factor = line.best();
        setup.each_row(&mut logits, |i, row| scale(row, factor, rest[i], setup.problem.class[i] as usize));
        let value = line.value(factor);
        for strip in &mut w.strips {
            strip.numbers.iter_mut().for_each(|line| *line = line.map(|x| -factor * x));
        }
        Ok(DualStart { logits, w, offset, value, factor })
    }
}

/// Shifts the logits of every row so that their exponentials add up to 1.
pub fn normalise(setup: &Setup<'_>, logits: &mut Lines) {
    let (zero, k) = (setup.row(0.0), setup.problem.n_classes);
    setup.each_row(logits, |i, row| {
        let own = setup.problem.class[i] as usize;
        let level = row.as_flattened()[own] + loss_at(row, &zero, 0.0, own);
        row.as_flattened_mut()[..k].iter_mut().for_each(|z| *z = (*z - level).min(0.0));
    });
}

/// `- sum_{k != y} p_k log p_k` of a row.
fn of_others(setup: &Setup<'_>, i: usize, p: &Lines, logits: &Lines) -> f64 {
    let (at, own) = (i * setup.lines..(i + 1) * setup.lines, setup.problem.class[i] as usize);
    let mut others = p[at.clone()].to_vec();
    others.as_flattened_mut()[own] = 0.0;
    -dot(&others, &logits[at])
}

/// The logits of `e_y - factor (e_y - p)`.
fn scale(row: &mut Lines, factor: f64, rest: f64, own: usize) {
    if factor == 1.0 {
        return;
    }
    let log = factor.ln();
    row.iter_mut().for_each(|line| *line = line.map(|z| z + log));
    row.as_flattened_mut()[own] = (-factor * rest).ln_1p();
}

/// The dual objective along the factor.
struct DualLine<'s> {
    cost: &'s [f64],
    rest: &'s [f64],
    entropy: &'s [f64],
    squared: f64,
}

impl DualLine<'_> {
    fn slope(&self, t: f64) -> f64 {
        let log = t.ln();
        let [sum] = sum(self.cost.len(), |i| {
            let r = self.rest[i];
            [self.cost[i] * (self.entropy[i] + r * ((-t * r).ln_1p() - log))]
        });
        sum - t * self.squared
    }

    fn value(&self, t: f64) -> f64 {
        let log = t.ln();
        let [sum] = sum(self.cost.len(), |i| {
            let (r, own) = (self.rest[i], 1.0 - t * self.rest[i]);
            let of_own = if own > 0.0 { own * (-t * r).ln_1p() } else { 0.0 };
            [self.cost[i] * (t * (self.entropy[i] - r * log) - of_own)]
        });
        sum - 0.5 * t * t * self.squared
    }

    /// The best factor up to 1.
    fn best(&self) -> f64 {
        if self.slope(1.0) >= 0.0 {
            return 1.0;
        }
        let (mut low, mut high) = (LEAST_LOG_FACTOR, 0.0);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            if self.slope(middle.exp()) >= 0.0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        low.exp()
    }
}
