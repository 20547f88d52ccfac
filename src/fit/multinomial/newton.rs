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
//! classes, which reads no data. The products leave the scores of the direction behind. Free intercepts are
//! near their optimum before each step, and at it where a fit may end ([`super::balance`]), so that the gap
//! there is half the squared gradient.
//!
//! The preconditioner is the same for all classes: of the Hessian's blocks it has the mean,
//! `I + sum_i c_i g_i x_i x_i'` with `g_i` the mean of `p_ik (1 - p_ik)`, factorised where columns are few,
//! else its diagonal.
//!
//! Where the rows are is not Newton's affair: it asks [`SoftmaxPasses`].
//!
//! Memory: seven blocks of columns x classes, and in memory four tables of rows x classes.

use super::precondition::ClassPreconditioner;
use super::softmax::{Lines, total};
use super::source::{Balance, SoftmaxPasses};
use super::strips::Strips;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::newton::line_search::{MAX_HALVINGS, Ray};
use crate::fit::problem::{Certificate, Status};
use crate::fit::stop::ROUNDING;
use crate::{Error, Result};

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
/// Gap, in tolerances, by a rough balance of the intercepts from which an exact one may end the fit.
const NEAR: f64 = 3.0;
/// Steps in which neither gradient nor objective fell, after which double precision is exhausted.
const MAX_IDLE: usize = 6;

/// How a minimisation has gone so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// Newton steps.
    pub steps: usize,
    /// Norm of the first gradient, NaN before it is known.
    pub first: f64,
    /// The least objective.
    pub lowest: f64,
    /// The least squared gradient.
    pub smallest: f64,
    /// Steps since one of these fell.
    pub idle: usize,
}

impl Course {
    fn begin() -> Self {
        Self { steps: 0, first: f64::NAN, lowest: f64::INFINITY, smallest: f64::INFINITY, idle: 0 }
    }
}

/// A point and all that steps from it need.
pub struct SoftmaxNewton<S> {
    /// The rows.
    pub rows: S,
    /// Weights, those of the constant column last.
    pub w: Strips,
    /// The way here.
    pub course: Course,
    h: Strips,
    value: f64,
    squared: f64,
    preconditioner: ClassPreconditioner,
    /// Whether directions are exact, which small problems may afford.
    pub is_exact: bool,
}

impl<S: SoftmaxPasses> SoftmaxNewton<S> {
    /// At zero weights; the constant column of a free intercept has height 1.
    pub fn new(rows: S, preconditioner: ClassPreconditioner, is_exact: bool) -> Self {
        let shape = rows.shape();
        let (w, h, course) = (shape.strips(), shape.strips(), Course::begin());
        Self { rows, w, course, h, value: 0.0, squared: 0.0, preconditioner, is_exact }
    }

    /// Begins at the weights of the columns, and at free intercepts. The rows must be told
    /// ([`Self::refresh`]).
    pub fn start_at(&mut self, w: &Strips, offset: &Lines) {
        let shape = self.rows.shape();
        self.w.copy_columns(w);
        if shape.is_free() {
            let (mut column, k) = (shape.row(0.0), shape.n_classes);
            column.as_flattened_mut()[..k].copy_from_slice(&offset.as_flattened()[..k]);
            self.w.set_column(self.w.n_columns() - 1, &column);
        }
    }

    /// Tells the rows the weights.
    ///
    /// # Errors
    /// Those of the rows.
    pub fn refresh(&mut self) -> Result<()> {
        self.rows.decide(&self.w)
    }

    /// Primal and dual value at the evaluated point.
    pub fn certificate(&self) -> Certificate {
        Certificate { primal: self.value, dual: self.value - 0.5 * self.squared }
    }

    /// The weights of the softmax as dual point, a free intercept's column left out.
    pub fn dual_weights(&self) -> Strips {
        let shape = self.rows.shape();
        let mut w = shape.strips();
        w.add_scaled(-1.0, &self.h);
        if shape.is_free() {
            w.drop_last_column();
        }
        w
    }

    /// Sets free intercepts in a row of all classes.
    pub fn intercepts(&self, offset: &mut Lines) {
        let shape = self.rows.shape();
        if shape.is_free() {
            let mut column = shape.row(0.0);
            self.w.column(self.w.n_columns() - 1, &mut column);
            let (k, bias) = (shape.n_classes, shape.bias);
            let pairs = offset.as_flattened_mut()[..k].iter_mut().zip(column.as_flattened());
            pairs.for_each(|(offset, w)| *offset = bias * w);
        }
    }

    /// Steps until the relative gap is at most `tol` by the solver's own figures.
    ///
    /// # Errors
    /// Those of the rows; [`Error::Cancelled`] and [`Error::Overflow`].
    pub fn minimise(&mut self, tol: f64, max_steps: usize) -> Result<Status> {
        let Course { steps, first, .. } = self.course;
        self.course = Course { steps, first, ..Course::begin() };
        self.go_on(tol, max_steps, &mut |_| Ok(()))
    }

    /// The same, as if what went before was of the same call. `keep` is called before each step: from the
    /// weights and the course the rest follows.
    ///
    /// # Errors
    /// As for [`Self::minimise`], and those of `keep`.
    pub fn go_on(
        &mut self,
        tol: f64,
        max_steps: usize,
        keep: &mut dyn FnMut(&mut Self) -> Result<()>,
    ) -> Result<Status> {
        loop {
            keep(self)?;
            self.evaluate(if self.is_rough() { Balance::Rough } else { Balance::Exact })?;
            if self.is_rough() && self.gap() <= NEAR * tol {
                self.evaluate(Balance::Exact)?;
            }
            self.rows.observe(self.course.steps, self.gap());
            if self.gap() <= tol {
                return Ok(Status::Converged);
            }
            let (value, squared, course) = (self.value, self.squared, &mut self.course);
            let is_better = squared < course.smallest || value < course.lowest * (1.0 - ROUNDING);
            course.idle = if is_better { 0 } else { course.idle + 1 };
            (course.smallest, course.lowest) = (course.smallest.min(squared), course.lowest.min(value));
            if course.idle >= MAX_IDLE {
                return self.end(Status::Stalled);
            }
            if course.steps >= max_steps {
                return self.end(Status::MaxIter);
            }
            let direction = self.direction(tol)?;
            if !self.search_line(&direction)? {
                return self.end(Status::Stalled);
            }
            self.course.steps += 1;
        }
    }

    /// Whether steps are made with free intercepts that are not balanced exactly.
    fn is_rough(&self) -> bool {
        self.rows.shape().is_free() && !self.is_exact
    }

    /// Ends short of the tolerance, with a certificate all the same.
    fn end(&mut self, status: Status) -> Result<Status> {
        if self.is_rough() {
            self.evaluate(Balance::Exact)?;
        }
        Ok(status)
    }

    /// The relative gap, once free intercepts are balanced exactly.
    fn gap(&self) -> f64 {
        let dual = self.value - 0.5 * self.squared;
        match self.squared {
            0.0 => 0.0,
            squared if dual > 0.0 => 0.5 * squared / dual,
            _ => f64::INFINITY,
        }
    }

    /// Objective and gradient at the present point, to which free intercepts move.
    fn evaluate(&mut self, how: Balance) -> Result<()> {
        let Self { rows, w, h, .. } = self;
        let shape = rows.shape();
        let found = if shape.is_free() {
            let (mut shift, found) = rows.balance(w, how)?;
            let (last, bias, k) = (w.n_columns() - 1, shape.bias, shape.n_classes);
            let mut column = shape.row(0.0);
            w.column(last, &mut column);
            // A direction from blocks of single classes moves all intercepts, too, which changes nothing:
            // their sum goes back to 0.
            let sum: f64 = column.as_flattened().iter().map(|w| bias * w).sum::<f64>() + total(&shift);
            let numbers = column.as_flattened_mut()[..k].iter_mut().zip(shift.as_flattened_mut());
            for (column, shift) in numbers {
                *shift -= sum / k as f64;
                *column += *shift / bias;
            }
            rows.shift(&shift);
            w.set_column(last, &column);
            found
        } else {
            rows.evaluate(w)?
        };
        rows.slopes(h)?;
        let n = shape.penalised();
        self.value = self.finite("objective", 0.5 * self.w.dot(&self.w, n) + found.loss)?;
        let mut gradient = self.h.clone();
        gradient.add_scaled(1.0, &self.w);
        self.squared = self.finite("gradient", gradient.dot(&gradient, n))?;
        if self.course.first.is_nan() {
            self.course.first = self.squared.sqrt();
        }
        Ok(())
    }

    fn finite(&self, what: &'static str, x: f64) -> Result<f64> {
        if x.is_finite() {
            return Ok(x);
        }
        let max_squared_norm = self.rows.max_squared_norm();
        Err(Error::Overflow { what, max_squared_norm })
    }

    /// The direction, which the rows know as well.
    fn direction(&mut self, tol: f64) -> Result<Strips> {
        let shape = self.rows.shape();
        let n = shape.penalised();
        self.preconditioner.update(&mut self.rows, &self.w)?;
        let first = self.course.first;
        let relative = if first > 0.0 { self.squared.sqrt() / first } else { 1.0 };
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
        let mut step = shape.strips();
        self.rows.begin_direction();
        let mut preconditioned = shape.strips();
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
        self.rows.end_direction(length);
        Ok(step)
    }

    /// `out = H d`, after a step of so much along the direction before.
    fn multiply(&mut self, d: &Strips, length: f64, out: &mut Strips) -> Result<()> {
        let n = self.rows.shape().penalised();
        self.rows.multiply(&self.w, d, length, out)?;
        out.zip(d, n, |out, d| {
            for (out, d) in out.iter_mut().zip(d) {
                for l in 0..LINE {
                    out[l] += d[l];
                }
            }
        });
        Ok(())
    }

    /// Moves along the direction as far as the objective falls; `false` where it does not.
    fn search_line(&mut self, step: &Strips) -> Result<bool> {
        let (n, all) = (self.rows.shape().penalised(), step.n_columns());
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
            if ray.accepts(length, self.rows.loss_at(&self.w, step, length)?) {
                self.w.add_scaled(length, step);
                self.rows.advance(length);
                return Ok(true);
            }
            length *= 0.5;
        }
        Ok(false)
    }
}
