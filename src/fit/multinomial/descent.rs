//! Coordinate descent in the dual, a row with all its classes at a time.
//!
//! A visit reads the scores `z = W x_i` of all classes, finds the row's best probabilities with all others
//! fixed ([`super::entropy`]) and adds their change to the weights, `W <- W - c_i (q - p) x_i'`. Rows come in
//! a fresh random order in each epoch. All rows move in every epoch: no probability is ever 0, so nothing is
//! shrunk.
//!
//! **Gap.** With `W = W(p)` primal minus dual is `sum_i c_i KL(p_i | softmax(z_i))`: a check is a pass of
//! products and no more. A free intercept is met by the method of multipliers as in [`crate::fit::dual`], a
//! constant column of height `sqrt(sigma)` and an offset per class. A check takes the best intercepts for the
//! primal value and moves the dual point onto the constraint by a common shift of all logits
//! ([`super::balance`]); its weights are then `W` up to `sum_i c_i |p'_i - p_i| |x_i|`, or up to what a pass
//! of sums finds where that is too coarse.
//!
//! **Drift.** The dual value never falls, and no term of it is above `c_i log K`; hence `|W|^2` is at most
//! twice the sum of them, and the updates of so many visits are off by `3 u |W|` each.
//!
//! Memory: two blocks of columns x classes during a check that needs the pass of sums, one else; three tables
//! of rows x classes.

use super::balance::balance;
use super::entropy::RowScratch;
use super::passes::{Coefficients, Setup};
use super::point::{ClassEvidence, Point};
use super::softmax::{FAR, Lines, mean_difference};
use super::strips::{Strips, add};
use crate::fit::certificate;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::dual::Epoch;
use crate::fit::dual::active::{ActiveSet, Random};
use crate::fit::problem::{Certificate, Intercept, Status};
use crate::fit::sweep::sum;
use crate::matrix::Rows;
use crate::matrix::lanes::Block;
use crate::matrix::simd::{Wide, WideWork};
use crate::{Error, Result, memory};

/// Visits between two polls of the cancel flag.
const POLL_STEPS: usize = 256;
/// Rows between the request for a row's memory and its use.
const AHEAD: usize = 4;
/// Share of the wanted gap that a bound of the dual point's move may make up before it is computed.
const COARSE: f64 = 0.1;

/// A descent.
pub struct Descent<'a> {
    /// The rows with the constant column of the intercept, penalised or of the multipliers.
    setup: Setup<'a>,
    /// The rows as the certificate sees them.
    plain: Setup<'a>,
    w: Strips,
    /// Logits by row; NaN first for a row that was never visited.
    logits: Block<LINE>,
    offset: Vec<[f64; LINE]>,
    squared: Vec<f64>,
    order: ActiveSet,
    /// Visits of rows so far.
    pub visits: f64,
    /// Readings of the data.
    pub passes: f64,
}

/// A checked point.
pub struct DescentCheck {
    /// Primal and dual value.
    pub certificate: Certificate,
    /// Scores at the weights with the best intercepts.
    scores: Block<LINE>,
    /// The best intercepts.
    offset: Vec<[f64; LINE]>,
    /// By which the logits are moved onto the constraint.
    shift: Vec<[f64; LINE]>,
    /// At least the distance by which that moves the weights.
    radius: f64,
}

impl<'a> Descent<'a> {
    /// From zero weights, every row wholly on its own class.
    pub fn new(setup: Setup<'a>, plain: Setup<'a>) -> Self {
        let n = setup.n_rows();
        let mut logits = setup.table();
        setup.each_row(&mut logits, |_, row| row[0][0] = f64::NAN);
        let bias = setup.design.bias;
        let mut squared = memory::zeros(n);
        for (i, squared) in squared.iter_mut().enumerate() {
            *squared = plain.problem.rows.squared_norm(plain.problem.ids.map_or(i, |ids| ids[i] as usize))
                + bias * bias;
        }
        Self {
            w: setup.strips(),
            logits,
            offset: setup.row(FAR),
            squared,
            order: ActiveSet::all(n),
            visits: 0.0,
            passes: 0.0,
            setup,
            plain,
        }
    }

    /// The dual point of a check, on the constraint of free intercepts.
    pub fn balanced_logits(self, check: &DescentCheck) -> Block<LINE> {
        let Self { plain, mut logits, .. } = self;
        if plain.problem.intercept == Intercept::Free {
            plain.shift(&mut logits, &check.shift);
        }
        logits
    }

    /// Starts at other weights that belong to these logits, as after a fit by another way.
    pub fn start_at(&mut self, w: &Strips, offset: &Lines, logits: Block<LINE>) {
        self.w.copy_columns(w);
        self.offset.copy_from_slice(offset);
        self.logits = logits;
    }

    fn is_free(&self) -> bool {
        self.setup.problem.intercept == Intercept::Free
    }

    /// Columns that are part of the norm.
    fn n_weights(&self) -> usize {
        self.plain.design.n_cols()
    }

    /// Visits every row once.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn epoch(&mut self, random: &mut Random) -> Result<Epoch> {
        self.order.shuffle(random);
        let bias = self.setup.design.bias;
        let is_free = self.is_free();
        let Self { setup, w, logits, offset, squared, order, .. } = self;
        let visits = Visits { setup, w, logits, offset, squared, order };
        let epoch = setup.design.visit(Wide(visits))?;
        if is_free {
            let mut column = setup.row(0.0);
            w.column(w.n_columns() - 1, &mut column);
            for (offset, column) in offset.iter_mut().zip(&column) {
                for l in 0..LINE {
                    offset[l] += bias * column[l];
                }
            }
        }
        self.visits += self.setup.n_rows() as f64;
        self.passes += 1.0;
        Ok(epoch)
    }

    /// The certificate at the present point, by the solver's own figures. The dual point's move onto the
    /// constraint is bounded without reading the data, unless that makes up too much of a gap of `tol`.
    ///
    /// # Errors
    /// [`Error::Cancelled`] and [`Error::Overflow`].
    pub fn check(&mut self, tol: f64) -> Result<DescentCheck> {
        let (n, is_free) = (self.n_weights(), self.is_free());
        let Self { plain, w, logits, squared, .. } = &*self;
        let mut scores = plain.table();
        plain.scores(w, &plain.row(FAR), &mut scores);
        plain.poll()?;
        let (mut p, mut rest) = (plain.table(), memory::zeros(plain.n_rows()));
        let (mut offset, mut shift) = (plain.row(0.0), plain.row(0.0));
        if is_free {
            (shift, _) = balance(plain, logits, &mut p, &mut rest);
            (offset, _) = balance(plain, &scores, &mut p, &mut rest);
            plain.shift(&mut scores, &offset);
        }
        let here = plain.evaluate(&scores, &plain.row(0.0), &mut p, &mut rest);
        let moved = plain.evaluate(logits, &shift, &mut p, &mut rest);
        plain.poll()?;
        let (lines, cost) = (plain.lines, plain.problem.cost);
        let bias = self.setup.design.bias;
        // `loss(z) - loss(u) + sum_k p_k ((u_k - u_y) - (z_k - z_y))`, over all rows.
        let [mixed, reach] = sum(plain.n_rows(), |i| {
            let at = i * lines..(i + 1) * lines;
            let (p, z, u) = (&p[at.clone()], &scores[at.clone()], &logits[at]);
            let own = plain.problem.class[i] as usize;
            let difference = mean_difference(p, u, z) + crate::fit::multinomial::softmax::dot(p, &shift);
            let y = (u.as_flattened()[own] + shift.as_flattened()[own]) - z.as_flattened()[own];
            let mut change = 0.0;
            if is_free {
                for ((p, u), _) in p.iter().zip(u).zip(&shift) {
                    for l in 0..LINE {
                        let before = crate::loss::elementary::exp_of_negative(u[l].min(0.0));
                        change += (p[l] - before) * (p[l] - before);
                    }
                }
            }
            let norm = (squared[i] - bias * bias).max(0.0).sqrt();
            [cost[i] * (difference - y), cost[i] * change.sqrt() * norm]
        });
        let gap = (here.loss - moved.loss + mixed).max(0.0);
        let primal = 0.5 * w.dot(w, n) + here.loss;
        if !primal.is_finite() {
            let max_squared_norm = plain.design.max_squared_norm();
            return Err(Error::Overflow { what: "objective", max_squared_norm });
        }
        self.passes += 0.5;
        let mut radius = if is_free { reach } else { 0.0 };
        let wanted = tol * primal;
        if gap <= wanted && 0.5 * radius * radius > (COARSE * wanted).min((wanted - gap).max(0.0)) {
            let mut change = self.plain.strips();
            let plain = &self.plain;
            let change_of = Moved { lines, p: &p, logits: &self.logits, cost };
            plain.scatter(&change_of, &mut change);
            plain.poll()?;
            radius = radius.min(change.dot(&change, n).sqrt());
            self.passes += 0.5;
        }
        let certificate = Certificate { primal, dual: primal - gap - 0.5 * radius * radius };
        Ok(DescentCheck { certificate, scores, offset, shift, radius })
    }

    /// The point of a check as a solution to be proved.
    pub fn into_point(self, check: DescentCheck, status: Status, n_iter: usize) -> Point {
        let Self { plain, mut w, mut logits, visits, passes, setup, .. } = self;
        let is_free = setup.problem.intercept == Intercept::Free;
        let total: f64 = plain.problem.cost.iter().sum();
        let multiplier = if is_free {
            let mut column = setup.row(0.0);
            w.column(w.n_columns() - 1, &mut column);
            column.as_flattened().iter().map(|x| x * x).sum::<f64>().sqrt()
                + self.offset.as_flattened()[..plain.problem.n_classes]
                    .iter()
                    .map(|x| x * x)
                    .sum::<f64>()
                    .sqrt()
                    / setup.design.bias
        } else {
            0.0
        };
        let bound = total * (plain.problem.n_classes as f64).ln();
        let drift = certificate::drift(visits + plain.n_rows() as f64, bound, multiplier);
        let offset = if is_free {
            w.drop_last_column();
            plain.shift(&mut logits, &check.shift);
            let mut offset = plain.row(FAR);
            let k = plain.problem.n_classes;
            offset.as_flattened_mut()[..k].copy_from_slice(&check.offset.as_flattened()[..k]);
            offset
        } else {
            plain.row(FAR)
        };
        let evidence = ClassEvidence { scores: check.scores, distance: check.radius, drift, additions: 2.0 };
        Point { w, offset, logits: Some(logits), evidence: Some(evidence), status, n_iter, passes }
    }
}

/// How the weights move where the dual point moves from `exp(logits)` to `p`: `-c_i (p_i - before_i)`.
struct Moved<'s> {
    lines: usize,
    p: &'s Lines,
    logits: &'s Lines,
    cost: &'s [f64],
}

impl Coefficients for Moved<'_> {
    #[inline(always)]
    fn write(&self, i: usize, first: usize, out: &mut Lines) -> bool {
        let at = i * self.lines + first;
        let (p, u) = (&self.p[at..][..out.len()], &self.logits[at..][..out.len()]);
        for ((out, p), u) in out.iter_mut().zip(p).zip(u) {
            for l in 0..LINE {
                let before = crate::loss::elementary::exp_of_negative(u[l]);
                out[l] = -self.cost[i] * (p[l] - before);
            }
        }
        true
    }
}

/// The visits of an epoch.
struct Visits<'s, 'a> {
    setup: &'s Setup<'a>,
    w: &'s mut Strips,
    logits: &'s mut Lines,
    offset: &'s Lines,
    squared: &'s [f64],
    order: &'s ActiveSet,
}

impl WideWork for Visits<'_, '_> {
    type Output = Result<Epoch>;
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run<R: Rows>(self, rows: &R) -> Result<Epoch> {
        let Self { setup, w, logits, offset, squared, order } = self;
        let (lines, k) = (setup.lines, setup.problem.n_classes);
        let mut scratch = RowScratch::new(lines);
        let (mut epoch, mut s) = (Epoch::default(), 0);
        while let Some(i) = order.get(s) {
            if s % POLL_STEPS == 0 {
                setup.poll()?;
            }
            if let Some(next) = order.get(s + AHEAD) {
                rows.prefetch(next);
            }
            if let Some(next) = order.get(s + 2 * AHEAD) {
                rows.prefetch_header(next);
            }
            s += 1;
            epoch.visited += 1;
            for strip in &w.strips {
                strip.scores(rows, i, &mut scratch.z);
            }
            for (z, offset) in scratch.z.iter_mut().zip(offset) {
                for l in 0..LINE {
                    z[l] += offset[l];
                }
            }
            let c = setup.problem.cost[i];
            let own = setup.problem.class[i] as usize;
            let u = &mut logits[i * lines..][..lines];
            let Some(gain) = scratch.solve(u, own, k, c * squared[i]) else { continue };
            epoch.gain += c * gain;
            let RowScratch { p, q, .. } = &mut scratch;
            for (q, p) in q.iter_mut().zip(p.iter()) {
                for l in 0..LINE {
                    q[l] = c * (p[l] - q[l]);
                }
            }
            for strip in &mut w.strips {
                add(rows, i, &q[strip.first..][..strip.width], &mut strip.numbers);
            }
        }
        Ok(epoch)
    }
}
