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
//! ([`super::balance`]); by how much its weights then differ from `W` is found by a pass of sums.
//!
//! Memory: two blocks of columns x classes during a check that needs the pass of sums, one else; three tables
//! of rows x classes.

use super::Found;
use super::balance::balance;
use super::certificate::at_least_zero;
use super::entropy::RowScratch;
use super::passes::Setup;
use super::point::Point;
use super::softmax::{FAR, Lines, dot, mean_difference};
use super::source::Balance;
use super::strips::{Coefficients, Strips, add};
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::dual::Epoch;
use crate::fit::dual::active::{ActiveSet, Random};
use crate::fit::problem::{Certificate, Intercept, Status};
use crate::fit::sweep::sum;
use crate::loss::elementary::exp_of_negatives;
use crate::matrix::Rows;
use crate::matrix::kernels;
use crate::matrix::lanes::Block;
use crate::matrix::rows::ROWS_AHEAD;
use crate::matrix::simd::{Wide, WideWork};
use crate::{Error, Result, memory};

/// Visits between two polls of the cancel flag.
const POLL_STEPS: usize = 256;

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
    /// Readings of the data.
    pub passes: f64,
}

/// A checked point.
pub struct DescentCheck {
    /// Primal and dual value.
    pub certificate: Certificate,
    /// The best intercepts.
    offset: Vec<[f64; LINE]>,
    /// By which the logits are moved onto the constraint.
    shift: Vec<[f64; LINE]>,
}

impl<'a> Descent<'a> {
    /// From zero weights, every row wholly on its own class.
    pub fn new(setup: Setup<'a>, plain: Setup<'a>) -> Self {
        let mut logits = setup.table();
        setup.each_row(&mut logits, |_, row| row[0][0] = f64::NAN);
        let (w, offset) = (setup.strips(), setup.row(FAR));
        Self::at(setup, plain, w, offset, logits)
    }

    /// From the weights and logits of some rows; others have their part of the weights, too.
    pub fn at(
        setup: Setup<'a>,
        plain: Setup<'a>,
        w: Strips,
        offset: Vec<[f64; LINE]>,
        logits: Block<LINE>,
    ) -> Self {
        let n = setup.n_rows();
        let bias = setup.design.bias;
        let mut squared = memory::zeros(n);
        for (i, squared) in squared.iter_mut().enumerate() {
            *squared = plain.problem.rows.squared_norm(plain.problem.ids.map_or(i, |ids| ids[i] as usize))
                + bias * bias;
        }
        Self { w, logits, offset, squared, order: ActiveSet::all(n), passes: 0.0, setup, plain }
    }

    /// Weights, offsets and logits.
    pub fn into_state(self) -> (Strips, Vec<[f64; LINE]>, Block<LINE>) {
        (self.w, self.offset, self.logits)
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
                kernels::one_at_a_time();
                for l in 0..LINE {
                    offset[l] += bias * column[l];
                }
            }
        }
        self.passes += 1.0;
        Ok(epoch)
    }

    /// The certificate at the present point, by the solver's own figures. How far the weights of the dual
    /// point move where it moves onto the constraint is a pass of sums, and left out while the rest of the
    /// gap is too large anyway.
    ///
    /// # Errors
    /// [`Error::Cancelled`] and [`Error::Overflow`].
    pub fn check(&mut self, tol: f64) -> Result<DescentCheck> {
        let (n, is_free) = (self.n_weights(), self.is_free());
        let Self { plain, w, logits, offset: multipliers, passes, .. } = self;
        let (plain, logits) = (&*plain, &**logits);
        let mut scores = plain.table();
        plain.scores(w, multipliers, &mut scores);
        plain.poll()?;
        let (mut p, mut rest) = (plain.table(), memory::zeros(plain.n_rows()));
        let (mut offset, mut shift) = (plain.row(0.0), plain.row(0.0));
        if is_free {
            (shift, _) = balance(plain, logits, &mut p, &mut rest, Balance::Exact)?;
            (offset, _) = balance(plain, &scores, &mut p, &mut rest, Balance::Exact)?;
            plain.shift(&mut scores, &offset);
            for (offset, multiplier) in offset.as_flattened_mut().iter_mut().zip(multipliers.as_flattened()) {
                *offset += multiplier;
            }
        }
        let here = plain.evaluate(&scores, &plain.row(0.0), &mut p, &mut rest);
        let moved = plain.evaluate(logits, &shift, &mut p, &mut rest);
        plain.poll()?;
        let (lines, cost) = (plain.lines, plain.problem.cost);
        // `loss(z) - loss(u) + sum_k p_k ((u_k - u_y) - (z_k - z_y))`, over all rows.
        let [mixed] = sum(plain.n_rows(), |i| {
            let at = i * lines..(i + 1) * lines;
            let (p, z, u) = (&p[at.clone()], &scores[at.clone()], &logits[at]);
            let own = plain.problem.class[i] as usize;
            let difference = mean_difference(p, u, z) + dot(p, &shift);
            let y = (u.as_flattened()[own] + shift.as_flattened()[own]) - z.as_flattened()[own];
            [cost[i] * (difference - y)]
        });
        let mut gap = at_least_zero(here.loss - moved.loss + mixed);
        let primal = 0.5 * w.dot(w, n) + here.loss;
        if !primal.is_finite() {
            let max_squared_norm = plain.design.max_squared_norm();
            return Err(Error::Overflow { what: "objective", max_squared_norm });
        }
        *passes += 0.5;
        if is_free && gap <= tol * primal {
            let mut change = plain.strips();
            plain.scatter(&Moved { lines, p: &p, logits, cost }, &mut change);
            plain.poll()?;
            gap += 0.5 * change.dot(&change, n);
            *passes += 0.5;
        }
        Ok(DescentCheck { certificate: Certificate { primal, dual: primal - gap }, offset, shift })
    }

    /// The point of a check, with what it has found.
    pub fn into_found(self, check: DescentCheck, status: Status, n_iter: usize) -> Found {
        let Self { plain, mut w, mut logits, passes, .. } = self;
        let mut offset = plain.row(FAR);
        if plain.problem.intercept == Intercept::Free {
            w.drop_last_column();
            plain.shift(&mut logits, &check.shift);
            let k = plain.problem.n_classes;
            offset.as_flattened_mut()[..k].copy_from_slice(&check.offset.as_flattened()[..k]);
        }
        let point = Point { w, offset, logits: Some(logits), status, n_iter, passes, is_of_descent: true };
        Found { point, certificate: check.certificate }
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
    fn write(&self, i: usize, first: usize, out: &mut Lines) {
        let at = i * self.lines + first;
        let (p, u) = (&self.p[at..][..out.len()], &self.logits[at..][..out.len()]);
        for ((out, p), u) in out.iter_mut().zip(p).zip(u) {
            let before = exp_of_negatives(*u);
            kernels::one_at_a_time();
            for l in 0..LINE {
                out[l] = -self.cost[i] * (p[l] - before[l]);
            }
        }
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
            if let Some(next) = order.get(s + ROWS_AHEAD) {
                rows.prefetch(next);
            }
            if let Some(next) = order.get(s + 2 * ROWS_AHEAD) {
                rows.prefetch_header(next);
            }
            s += 1;
            epoch.visited += 1;
            for strip in &w.strips {
                strip.scores(rows, i, &mut scratch.z);
            }
            for (z, offset) in scratch.z.iter_mut().zip(offset) {
                kernels::one_at_a_time();
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
                kernels::one_at_a_time();
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
