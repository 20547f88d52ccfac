//! Truncated Newton for all classes side by side.
//!
//! A step: the softmax of every row and its slopes (a pass, and none before it: the scores are known); a
//! direction from `H s = -g` by conjugate gradient, with
//!
//! ```text
//! H s = s + sum_i c_i (diag(p_i) - p_i p_i')(S x_i) x_i'
//! ```
//!
//! so that one reading of an entry serves all classes; a backtracking line search on tables of rows x
//! classes, which reads no data. The products leave the scores of the direction behind. A free intercept is
//! at its optimum before each step ([`super::balance`]), so that the gap is half the squared gradient.
//!
//! The preconditioner is the same for all classes: of the Hessian's blocks it has the mean,
//! `I + sum_i c_i g_i x_i x_i'` with `g_i` the mean of `p_ik (1 - p_ik)`, factorised where columns are few,
//! else its diagonal.
//!
//! Memory: seven blocks of columns x classes and four tables of rows x classes.

use super::balance::balance;
use super::passes::{Coefficients, Setup, SoftmaxSlopes};
use super::precondition::ClassPreconditioner;
use super::softmax::{Lines, dot, total};
use super::strips::Strips;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::monitor::Progress;
use crate::fit::newton::line_search::{MAX_HALVINGS, Ray};
use crate::fit::problem::{Certificate, Intercept, Status};
use crate::fit::stop::ROUNDING;
use crate::matrix::Rows;
use crate::matrix::lanes::Block;
use crate::matrix::simd::{Wide, WideWork};
use crate::{Error, Result, memory, parallel};

/// Loosest accuracy of the conjugate gradient.
const CG_ACCURACY: f64 = 0.5;
/// Products of a direction at most.
const MAX_PRODUCTS: usize = 500;
/// Share of the squared gradient that would end the fit at which a direction is accurate enough, and the
/// share of the squared gradient before the step that it must not exceed.
const ENOUGH: f64 = 0.5;
const LEAST_FALL: f64 = 0.1;
/// Accuracy of directions of small problems. Their steps then depend on the objective alone, so that a row of
/// weight 2 ends where the row twice does.
const EXACT: f64 = 1e-9;
/// Steps in which neither gradient nor objective fell, after which double precision is exhausted.
const MAX_IDLE: usize = 6;

/// A point and all that steps from it need.
pub struct SoftmaxNewton<'a> {
    setup: Setup<'a>,
    /// Weights, those of the constant column last.
    pub w: Strips,
    /// Logits with intercept.
    pub z: Block<LINE>,
    /// Readings of the data.
    pub passes: f64,
    /// Newton steps.
    pub steps: usize,
    h: Strips,
    p: Block<LINE>,
    rest: Vec<f64>,
    value: f64,
    squared: f64,
    first: Option<f64>,
    q: Block<LINE>,
    step_z: Block<LINE>,
    preconditioner: ClassPreconditioner,
    /// Whether directions are exact, which small problems may afford.
    pub is_exact: bool,
}

impl<'a> SoftmaxNewton<'a> {
    /// At zero weights; the constant column of a free intercept has height 1.
    pub fn new(setup: Setup<'a>, is_exact: bool) -> Self {
        let mut z = setup.table();
        let far = setup.row(super::softmax::FAR);
        setup.shift(&mut z, &far);
        Self {
            w: setup.strips(),
            z,
            passes: 0.0,
            steps: 0,
            h: setup.strips(),
            p: setup.table(),
            rest: memory::zeros(setup.n_rows()),
            value: 0.0,
            squared: 0.0,
            first: None,
            q: setup.table(),
            step_z: setup.table(),
            preconditioner: ClassPreconditioner::new(&setup.design, setup.problem.n_classes),
            is_exact,
            setup,
        }
    }

    /// Computes the logits from the weights.
    pub fn refresh(&mut self) {
        let far = self.setup.row(super::softmax::FAR);
        self.setup.scores(&self.w, &far, &mut self.z);
        self.passes += 0.5;
    }

    /// The problem.
    pub fn setup(&self) -> &Setup<'a> {
        &self.setup
    }

    /// Primal and dual value at the evaluated point.
    pub fn certificate(&self) -> Certificate {
        Certificate { primal: self.value, dual: self.value - 0.5 * self.squared }
    }

    /// The weights of the softmax as dual point, a free intercept's column left out.
    pub fn dual_weights(&self) -> Strips {
        let mut w = self.setup.strips();
        w.add_scaled(-1.0, &self.h);
        if self.is_free() {
            w.drop_last_column();
        }
        w
    }

    /// Sets free intercepts in a row of all classes.
    pub fn intercepts(&self, offset: &mut Lines) {
        if self.is_free() {
            let mut column = self.setup.row(0.0);
            self.w.column(self.w.n_columns() - 1, &mut column);
            let (k, bias) = (self.setup.problem.n_classes, self.setup.design.bias);
            let pairs = offset.as_flattened_mut()[..k].iter_mut().zip(column.as_flattened());
            pairs.for_each(|(offset, w)| *offset = bias * w);
        }
    }

    /// Columns that are part of the norm.
    fn penalised(&self) -> usize {
        self.w.n_columns() - usize::from(self.is_free())
    }

    fn is_free(&self) -> bool {
        self.setup.problem.intercept == Intercept::Free
    }

    /// Steps until the relative gap is at most `tol` by the solver's own figures.
    ///
    /// # Errors
    /// [`Error::Cancelled`] and [`Error::Overflow`].
    pub fn minimise(&mut self, tol: f64, max_steps: usize) -> Result<Status> {
        let (mut lowest, mut smallest, mut idle) = (f64::INFINITY, f64::INFINITY, 0);
        loop {
            self.evaluate()?;
            let dual = self.value - 0.5 * self.squared;
            let gap = if dual > 0.0 { 0.5 * self.squared / dual } else { f64::INFINITY };
            self.setup.monitor.observe(&Progress {
                solver: "multinomial",
                iteration: self.steps,
                accuracy: gap,
                search: None,
            });
            if gap <= tol || self.squared == 0.0 {
                return Ok(Status::Converged);
            }
            let is_better = self.squared < smallest || self.value < lowest * (1.0 - ROUNDING);
            idle = if is_better { 0 } else { idle + 1 };
            (smallest, lowest) = (smallest.min(self.squared), lowest.min(self.value));
            if idle >= MAX_IDLE {
                return Ok(Status::Stalled);
            }
            if self.steps >= max_steps {
                return Ok(Status::MaxIter);
            }
            let direction = self.direction(tol)?;
            if !self.search_line(&direction)? {
                return Ok(Status::Stalled);
            }
            self.steps += 1;
        }
    }

    /// Probabilities, objective and gradient at the present point; a free intercept moves to its optimum.
    fn evaluate(&mut self) -> Result<()> {
        let Self { setup, w, z, p, rest, h, .. } = self;
        let found = if setup.problem.intercept == Intercept::Free {
            let (mut shift, found) = balance(setup, z, p, rest);
            let (last, bias, k) = (w.n_columns() - 1, setup.design.bias, setup.problem.n_classes);
            let mut column = setup.row(0.0);
            w.column(last, &mut column);
            // A direction from blocks of single classes moves all intercepts, too, which changes nothing:
            // their sum goes back to 0.
            let sum: f64 = column.as_flattened().iter().map(|w| bias * w).sum::<f64>() + total(&shift);
            let numbers = column.as_flattened_mut()[..k].iter_mut().zip(shift.as_flattened_mut());
            for (column, shift) in numbers {
                *shift -= sum / k as f64;
                *column += *shift / bias;
            }
            setup.shift(z, &shift);
            w.set_column(last, &column);
            found
        } else {
            setup.evaluate(z, &setup.row(0.0), p, rest)
        };
        setup.poll()?;
        let slopes = SoftmaxSlopes { lines: setup.lines, p, rest, problem: setup.problem };
        setup.scatter(&slopes, h);
        setup.poll()?;
        self.passes += 0.5;
        let n = self.penalised();
        self.value = self.finite("objective", 0.5 * self.w.dot(&self.w, n) + found.loss)?;
        let mut gradient = self.h.clone();
        gradient.add_scaled(1.0, &self.w);
        self.squared = self.finite("gradient", gradient.dot(&gradient, n))?;
        self.first.get_or_insert(self.squared.sqrt());
        Ok(())
    }

    fn finite(&self, what: &'static str, x: f64) -> Result<f64> {
        if x.is_finite() {
            return Ok(x);
        }
        let max_squared_norm = self.setup.design.max_squared_norm();
        Err(Error::Overflow { what, max_squared_norm })
    }

    /// The direction, its scores left in `step_z`.
    fn direction(&mut self, tol: f64) -> Result<Strips> {
        let n = self.penalised();
        let is_free = self.is_free();
        self.preconditioner.update(&self.setup, &self.p, &self.rest, is_free)?;
        let relative = match self.first {
            Some(first) if first > 0.0 => self.squared.sqrt() / first,
            _ => 1.0,
        };
        let (accuracy, enough) = if self.is_exact {
            (EXACT, 0.0)
        } else {
            let enough = (ENOUGH * 2.0 * tol * self.value).min(LEAST_FALL * self.squared);
            (CG_ACCURACY.min(relative.sqrt()), enough)
        };
        let mut residual = self.h.clone();
        residual.zip(&self.w, n, |r, w| {
            for (r, w) in r.iter_mut().zip(w) {
                for l in 0..LINE {
                    r[l] += w[l];
                }
            }
        });
        for strip in &mut residual.strips {
            strip.numbers.iter_mut().for_each(|line| *line = line.map(|x| -x));
        }
        let mut step = self.setup.strips();
        self.step_z.fill([0.0; LINE]);
        let mut preconditioned = self.setup.strips();
        self.preconditioner.apply(&residual, &mut preconditioned);
        let mut d = preconditioned.clone();
        let all = d.n_columns();
        let mut rz = residual.dot(&preconditioned, all);
        let (first, mut model, mut length) = (rz, 0.0, 0.0);
        let mut products = 0;
        for j in 1..=MAX_PRODUCTS {
            products = j;
            // The block of the preconditioned residual holds the product until it is needed again.
            self.multiply(&d, length, &mut preconditioned)?;
            let curvature = d.dot(&preconditioned, all);
            if !(curvature > 0.0 && rz > 0.0) {
                length = 0.0;
                break;
            }
            length = rz / curvature;
            step.add_scaled(length, &d);
            residual.add_scaled(-length, &preconditioned);
            self.preconditioner.apply(&residual, &mut preconditioned);
            let next = residual.dot(&preconditioned, all);
            let fall = 0.5 * length * rz;
            model += fall;
            let is_done = if self.is_exact || self.preconditioner.is_dense() {
                next <= accuracy * accuracy * first
            } else {
                j as f64 * fall <= accuracy * model
            };
            if is_done || residual.dot(&residual, all) <= enough {
                break;
            }
            let beta = next / rz;
            rz = next;
            d.zip(&preconditioned, all, |d, z| {
                for (d, z) in d.iter_mut().zip(z) {
                    for l in 0..LINE {
                        d[l] = z[l] + beta * d[l];
                    }
                }
            });
        }
        self.preconditioner.used(products);
        let Self { setup, q, step_z, .. } = self;
        setup.add_table(step_z, length, q);
        Ok(step)
    }

    /// `out = H d`; before that, the scores of the last direction times `length` are added to those of the
    /// step.
    fn multiply(&mut self, d: &Strips, length: f64, out: &mut Strips) -> Result<()> {
        let n = self.penalised();
        let Self { setup, p, q, step_z, .. } = self;
        let (lines, chunk) = (setup.lines, setup.chunk * setup.lines);
        let mut mean = memory::zeros(setup.n_rows());
        let tables = q.chunks_mut(chunk).zip(step_z.chunks_mut(chunk)).zip(p.chunks(chunk));
        parallel::each(tables.zip(mean.chunks_mut(setup.chunk)), |k, (((q, step_z), p), mean)| {
            if !setup.monitor.cancelled() {
                let piece = Directed { first: k * setup.chunk, lines, d, length, p, q, step_z, mean };
                setup.design.visit(Wide(piece));
            }
        });
        setup.poll()?;
        setup.scatter(&Curved { lines, p, q, mean: &mean, cost: setup.problem.cost }, out);
        setup.poll()?;
        out.zip(d, n, |out, d| {
            for (out, d) in out.iter_mut().zip(d) {
                for l in 0..LINE {
                    out[l] += d[l];
                }
            }
        });
        self.passes += 1.0;
        Ok(())
    }

    /// Moves along the direction as far as the objective falls; `false` where it does not.
    fn search_line(&mut self, step: &Strips) -> Result<bool> {
        let (n, all) = (self.penalised(), step.n_columns());
        let mut gradient = self.h.clone();
        gradient.zip(&self.w, n, |g, w| {
            for (g, w) in g.iter_mut().zip(w) {
                for l in 0..LINE {
                    g[l] += w[l];
                }
            }
        });
        let ray = Ray {
            value: self.value,
            slope: gradient.dot(step, all),
            half_norm: 0.5 * self.w.dot(&self.w, n),
            linear: self.w.dot(step, n),
            square: 0.5 * step.dot(step, n),
            is_running: true,
        };
        if !(ray.slope < 0.0 && ray.slope.is_finite()) {
            return Ok(false);
        }
        let mut length = 1.0;
        for _ in 0..MAX_HALVINGS {
            if ray.accepts(length, self.setup.loss_at(&self.z, &self.step_z, length)) {
                self.w.add_scaled(length, step);
                self.setup.add_table(&mut self.z, length, &self.step_z);
                return Ok(true);
            }
            self.setup.poll()?;
            length *= 0.5;
        }
        Ok(false)
    }
}

/// The rows' part of a product with the Hessian.
struct Directed<'s> {
    first: usize,
    lines: usize,
    d: &'s Strips,
    length: f64,
    p: &'s Lines,
    q: &'s mut Lines,
    step_z: &'s mut Lines,
    mean: &'s mut [f64],
}

impl WideWork for Directed<'_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run<R: Rows>(self, rows: &R) {
        let lines = self.lines;
        let tables = self.q.chunks_exact_mut(lines).zip(self.step_z.chunks_exact_mut(lines));
        for (k, ((q, total), p)) in tables.zip(self.p.chunks_exact(lines)).enumerate() {
            if self.length != 0.0 {
                for (total, q) in total.iter_mut().zip(q.iter()) {
                    for l in 0..LINE {
                        total[l] += self.length * q[l];
                    }
                }
            }
            for strip in &self.d.strips {
                strip.scores(rows, self.first + k, q);
            }
            self.mean[k] = dot(p, q);
        }
    }
}

/// `c_i (diag(p_i) - p_i p_i') q_i`.
struct Curved<'s> {
    lines: usize,
    p: &'s Lines,
    q: &'s Lines,
    mean: &'s [f64],
    cost: &'s [f64],
}

impl Coefficients for Curved<'_> {
    #[inline(always)]
    fn write(&self, i: usize, first: usize, out: &mut Lines) -> bool {
        let (c, mean, at) = (self.cost[i], self.mean[i], i * self.lines + first);
        let (p, q) = (&self.p[at..][..out.len()], &self.q[at..][..out.len()]);
        for ((out, p), q) in out.iter_mut().zip(p).zip(q) {
            for l in 0..LINE {
                out[l] = c * p[l] * (q[l] - mean);
            }
        }
        true
    }
}
