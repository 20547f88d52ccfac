//! Newton's method on the weights of all classes at once, for problems on which the descent crawls.
//!
//! Where rows outnumber columns and costs are large, coordinate descent takes thousands of epochs, a free
//! intercept not the least of the reasons. Here the loss is smoothed around the dual variables
//! ([`super::smoothed`]), and
//!
//! ```text
//! min_{W,b}  1/2 sum_m |w_m|^2 + sum_i f_i(W x_i + b)
//! ```
//!
//! is minimised by Newton steps with a backtracking line search; the intercepts are weights like the
//! others, but for the norm. The gradient is `w_m - w_m(u)`, the Hessian the identity and, for each pair of
//! classes, `sum_i sigma c_i ([a = b] - 1 / |J_i|) x_i x_i'` over the rows whose `J_i` has both
//! ([`crate::fit::newton::hessian`]); it is factorised. Then `u` takes the place of the dual variables around
//! which the loss is smoothed, `sigma` grows, and so on ([`crate::fit::newton::proximal`]): the method of
//! [`crate::fit::newton::hinge`], for the loss of Crammer and Singer.
//!
//! What is found are dual variables and intercepts; the certificate, the weights `w(u)` and all else are
//! those of a [`ClassDescent`] there. A piecewise quadratic ends with a whole step onto its minimum, where
//! `w(u) = w`, so that this costs little: make_classification, 1,500 rows, 50 columns, 5 classes, C = 1,
//! takes 94 steps to a gap of 1e-6, and 88 with the certificate of `w`.
//!
//! With a free intercept the same shift of all classes changes nothing: the Hessian gets the missing
//! curvature there, which a gradient without a part in that direction does not notice.
//!
//! Memory: a matrix and half of order classes x (columns + 1), at most [`MAX_CHOLESKY_COLUMNS`], and six
//! tables of rows x classes.

use super::check::PIECE;
use super::descent::{Check, ClassDescent};
use super::kernels::Change;
use super::problem::{ClassSolution, ClassStart};
use super::rows::Alpha;
use super::setup::ClassSetup;
use super::smoothed::{Smoothed, curvature, loss};
use super::weights::{ClassWeights, LINE};
use crate::fit::monitor::Progress;
use crate::fit::newton::cholesky::Symmetric;
use crate::fit::newton::line_search::{MAX_HALVINGS, Ray};
use crate::fit::newton::proximal::{MAX_INNER, Sequence};
use crate::fit::params::Params;
use crate::fit::problem::{Intercept, Status};
use crate::fit::routes::{
    CLASS_CURVED, CLASS_LEAST_BEFORE, CLASS_STEPS, CLASS_VECTORISED, MAX_CHOLESKY_COLUMNS, Patience,
};
use crate::fit::stop::ROUNDING;
use crate::fit::sweep::{ROW_CHUNK, dot};
use crate::{Result, memory, parallel};

/// Private weights in a sum over rows at most.
const MAX_PIECES: usize = 64;
/// Steps in a row that win nothing but rounding, after which a smooth problem is solved.
const MAX_IDLE: usize = 2;

/// When the method takes over from the descent; `None` where its matrix would be too large.
pub fn patience(setup: &ClassSetup<'_>, params: &Params) -> Option<Patience> {
    let (n, d, k) = (setup.class.len() as f64, setup.rows.n_columns(), setup.n_classes);
    let order = d.checked_mul(k).filter(|order| *order <= MAX_CHOLESKY_COLUMNS)? as f64;
    let entries = setup.rows.n_entries() as f64;
    let pairs = (k * (k + 1) / 2) as f64;
    let step = CLASS_CURVED * pairs * entries * entries / n.max(1.0) / 2.0 + order.powi(3) / 6.0;
    let pass = entries * k.next_multiple_of(LINE) as f64;
    let price = CLASS_STEPS * (step / CLASS_VECTORISED / pass.max(1.0));
    let limit = params.max_iter as f64;
    Some(Patience { before: price.min(0.5 * limit).max(CLASS_LEAST_BEFORE), further: price.min(0.5 * limit) })
}

/// [`solve`] from where a descent is after `epochs` epochs, with what is left of `params.max_iter`.
///
/// # Errors
/// As for [`solve`].
pub fn finish(
    descent: ClassDescent<'_>,
    check: Check,
    params: &Params,
    epochs: usize,
) -> Result<ClassSolution> {
    let passes = descent.passes();
    let left = Params { max_iter: params.max_iter.saturating_sub(epochs), ..*params };
    let NewtonEnd { descent, check, status, steps, passes: further } = solve(descent, check, &left)?;
    let solution = descent.into_solution(check, status, epochs + steps);
    Ok(ClassSolution { n_steps: steps, passes: passes + further, ..solution })
}

/// Where the method ended.
pub struct NewtonEnd<'a> {
    /// At the best point.
    pub descent: ClassDescent<'a>,
    /// Its certificate.
    pub check: Check,
    /// Why.
    pub status: Status,
    /// Newton steps.
    pub steps: usize,
    /// Readings of the data.
    pub passes: f64,
}

/// Goes on from a checked point of a descent to the relative duality gap `params.tol`, in `params.max_iter`
/// steps at most.
///
/// # Errors
/// [`crate::Error::Cancelled`] and [`crate::Error::Overflow`].
pub fn solve<'a>(descent: ClassDescent<'a>, check: Check, params: &Params) -> Result<NewtonEnd<'a>> {
    let setup = descent.setup;
    let mut point = Point::of(&descent)?;
    let mut around = memory::copy(&point.u);
    let mut sequence = start_sequence(&setup);
    let (mut best, mut lowest) = ((descent, check), f64::INFINITY);
    let status = loop {
        let inner = sequence.inner(&best.1.certificate, params.tol);
        let smoothed = Smoothed { setup: &setup, around: &around, sigma: sequence.sigma };
        let before = point.steps;
        let budget = MAX_INNER.min(params.max_iter - before);
        let (was_solved, found) = point.minimise(&smoothed, inner, params.tol, budget)?;
        let accuracy = found.1.certificate.relative_gap();
        setup.monitor.observe(&Progress { solver: "newton", iteration: point.steps, accuracy, search: None });
        let was_trivial = was_solved && point.steps == before;
        sequence.observe(&found.1.certificate, accuracy < lowest, was_trivial, params.tol);
        lowest = lowest.min(accuracy);
        if accuracy < best.1.certificate.relative_gap() {
            best = found;
        }
        if best.1.certificate.relative_gap() <= params.tol {
            break Status::Converged;
        }
        if sequence.is_stalled() {
            break Status::Stalled;
        }
        if point.steps >= params.max_iter {
            break Status::MaxIter;
        }
        around.copy_from_slice(&point.u);
        sequence.advance(was_solved, 1);
    };
    let (descent, check) = best;
    Ok(NewtonEnd { descent, check, status, steps: point.steps, passes: point.passes })
}

fn start_sequence(setup: &ClassSetup<'_>) -> Sequence {
    let ClassSetup { plain, cost, .. } = *setup;
    Sequence::new(plain.n_columns(), cost.iter().enumerate().map(|(i, c)| c * plain.squared(i)).sum())
}

/// Weights with all that a step from them needs.
struct Point<'a> {
    setup: ClassSetup<'a>,
    w: ClassWeights,
    /// Scores, a table.
    z: Vec<f64>,
    /// Dual variables, a table, and their weights.
    u: Vec<f64>,
    of_u: ClassWeights,
    steps: usize,
    passes: f64,
}

impl<'a> Point<'a> {
    /// The weights, intercepts and dual variables of a descent.
    fn of(descent: &ClassDescent<'a>) -> Result<Self> {
        let (setup, k, n_columns) = (descent.setup, descent.n_classes, descent.rows.n_columns());
        let mut u = memory::zeros(descent.n_rows() * k);
        for (i, u) in u.chunks_mut(k).enumerate() {
            descent.lists().get(i).iter().for_each(|entry| u[entry.class as usize] = entry.u);
        }
        let mut w = ClassWeights::zeros(n_columns, k);
        for column in 0..n_columns {
            w.set_column(column, descent.w.column(column));
        }
        if setup.intercept == Intercept::Free {
            w.set_column(n_columns - 1, descent.intercepts().iter().map(|b| b / setup.bias));
        }
        let z = memory::zeros(u.len());
        let mut point = Self { setup, of_u: w.clone(), w, z, u, steps: 0, passes: 0.0 };
        point.z = point.scores(&point.w)?;
        point.passes += 1.0;
        Ok(point)
    }

    /// Minimises a smoothed problem until the certificate of the dual variables is by at most `inner` worse
    /// than the primal value of the weights makes it, or for `budget` steps; whether it is solved, and the
    /// descent at these dual variables.
    fn minimise(
        &mut self,
        smoothed: &Smoothed<'_>,
        inner: f64,
        tol: f64,
        budget: usize,
    ) -> Result<(bool, (ClassDescent<'a>, Check))> {
        let mut terms = smoothed.evaluate(&self.z, &mut self.u)?;
        let (end, mut idle) = (self.steps + budget, 0);
        loop {
            self.of_u = self.weights_of_u()?;
            self.passes += 1.0;
            let gradient = self.gradient();
            let is_near = 0.5 * dot(self.penalised(&gradient), self.penalised(&gradient)) <= inner;
            let is_over = idle >= MAX_IDLE || self.steps >= end;
            if is_near || is_over {
                let found = self.certify(tol)?;
                let primal = 0.5 * self.squared_norm(&self.w) + loss(&self.setup, &self.z);
                let certificate = found.1.certificate;
                let is_solved =
                    certificate.primal - primal <= inner && self.dual() - certificate.dual <= inner;
                if is_solved || is_over {
                    return Ok((is_solved || idle >= MAX_IDLE, found));
                }
            }
            let before = self.objective(terms);
            terms = self.step(smoothed, &gradient, terms)?;
            self.steps += 1;
            idle = if self.objective(terms) < before - ROUNDING * before.abs() { 0 } else { idle + 1 };
        }
    }

    /// A Newton step; the sum of the terms after it.
    fn step(&mut self, smoothed: &Smoothed<'_>, gradient: &[f64], terms: f64) -> Result<f64> {
        let direction = self.direction(smoothed, gradient)?;
        let (w, s) = (self.w.parts()[0].numbers(), direction.parts()[0].numbers());
        let ray = Ray {
            value: self.objective(terms),
            slope: dot(gradient, s),
            half_norm: 0.5 * self.squared_norm(&self.w),
            linear: dot(self.penalised(w), self.penalised(s)),
            square: 0.5 * self.squared_norm(&direction),
            is_running: true,
        };
        let step_z = self.scores(&direction)?;
        self.passes += 1.0;
        let (mut length, mut trial, mut u) = (1.0, memory::copy(&self.z), memory::copy(&self.u));
        for _ in 0..MAX_HALVINGS {
            trial.iter_mut().zip(&self.z).zip(&step_z).for_each(|((t, z), s)| *t = z + length * s);
            let terms = smoothed.evaluate(&trial, &mut u)?;
            if ray.accepts(length, terms) {
                (self.z, self.u) = (trial, u);
                self.w.add_scaled(length, &direction);
                return Ok(terms);
            }
            length *= 0.5;
        }
        Ok(terms)
    }

    /// Minus the inverse Hessian times the gradient.
    fn direction(&mut self, smoothed: &Smoothed<'_>, gradient: &[f64]) -> Result<ClassWeights> {
        let (d, k) = (self.setup.rows.n_columns(), self.setup.n_classes);
        let mut hessian = self.hessian(smoothed)?;
        hessian.factorise();
        let stride = k.next_multiple_of(LINE);
        let mut s: Vec<[f64; 1]> = (0..k * d).map(|p| [-gradient[p % d * stride + p / d]]).collect();
        hessian.solve(&mut s);
        let mut direction = ClassWeights::zeros(d, k);
        for column in 0..d {
            direction.set_column(column, (0..k).map(|m| s[m * d + column][0]));
        }
        Ok(direction)
    }

    /// The Hessian, column within class.
    fn hessian(&mut self, smoothed: &Smoothed<'_>) -> Result<Symmetric> {
        let ClassSetup { rows, n_classes: k, monitor, .. } = self.setup;
        let (d, n_penalised) = (rows.n_columns(), self.n_penalised());
        let shares = smoothed.shares(&self.u);
        self.passes +=
            shares.iter().filter(|share| **share > 0.0).count() as f64 / shares.len().max(1) as f64;
        let pairs: Vec<[usize; 2]> = (0..k).flat_map(|a| (0..=a).map(move |b| [a, b])).collect();
        let blocks = parallel::try_map(&pairs, |_, pair| {
            monitor.poll()?;
            Ok(rows.curvature_matrix(&curvature(&self.u, &shares, *pair), monitor))
        })?;
        monitor.poll()?;
        let n = k * d;
        let mut hessian = Symmetric { n, values: memory::zeros(n * n) };
        for ([a, b], block) in pairs.iter().zip(&blocks) {
            place(&mut hessian, [a * d, b * d], block);
        }
        for p in (0..n).filter(|p| p % d < n_penalised) {
            hessian.values[p * n + p] += 1.0;
        }
        if n_penalised < d {
            let constant = |m: usize| m * d + d - 1;
            let mean = (0..k).map(|m| hessian.values[constant(m) * (n + 1)]).sum::<f64>() / k as f64;
            for [a, b] in pairs {
                hessian.values[constant(a) * n + constant(b)] += mean / k as f64;
            }
        }
        Ok(hessian)
    }

    /// The descent at the dual variables and the intercepts of the weights, with its certificate.
    fn certify(&mut self, tol: f64) -> Result<(ClassDescent<'a>, Check)> {
        let intercepts =
            self.w.column(self.setup.rows.n_columns() - 1).map(|w| self.setup.bias * w).collect();
        let alpha = Some(Alpha::of_table(&self.u, self.setup.class, self.setup.n_classes));
        let start = ClassStart { alpha, intercepts: Some(intercepts), factor: None };
        let mut descent = ClassDescent::new(self.setup, &start, 1)?;
        let check = descent.check(tol)?;
        self.passes += 2.0;
        Ok((descent, check))
    }

    /// Value of the smoothed problem where its terms sum up to `terms`.
    fn objective(&self, terms: f64) -> f64 {
        0.5 * self.squared_norm(&self.w) + terms
    }

    /// Dual value of the dual variables without regard to the constraints of a free intercept.
    fn dual(&self) -> f64 {
        let ClassSetup { class, cost, n_classes: k, .. } = self.setup;
        let rows = self.u.chunks(k).zip(class).zip(cost);
        rows.map(|((u, own), c)| c - u[*own as usize]).sum::<f64>() - 0.5 * self.squared_norm(&self.of_u)
    }

    /// Columns whose weights are part of the norm.
    fn n_penalised(&self) -> usize {
        self.setup.rows.n_columns() - usize::from(self.setup.intercept == Intercept::Free)
    }

    /// The part of interleaved numbers that belongs to these columns.
    fn penalised<'n>(&self, numbers: &'n [f64]) -> &'n [f64] {
        &numbers[..self.n_penalised() * self.w.padded()]
    }

    fn squared_norm(&self, w: &ClassWeights) -> f64 {
        w.squared(self.n_penalised())
    }

    /// The gradient of the smoothed problem, interleaved as the weights are.
    fn gradient(&self) -> Vec<f64> {
        let (w, of_u) = (self.w.parts()[0].numbers(), self.of_u.parts()[0].numbers());
        let end = self.penalised(w).len();
        (0..w.len()).map(|p| if p < end { w[p] } else { 0.0 } - of_u[p]).collect()
    }

    /// The table of scores.
    fn scores(&self, w: &ClassWeights) -> Result<Vec<f64>> {
        let ClassSetup { rows, n_classes: k, monitor, .. } = self.setup;
        let mut z = memory::zeros(self.u.len());
        parallel::try_map(z.chunks_mut(PIECE * k), |piece, z| {
            monitor.poll()?;
            let mut scores = vec![0.0; w.padded()];
            for (i, z) in (piece * PIECE..).zip(z.chunks_mut(k)) {
                w.scores(rows, i, &mut scores);
                z.copy_from_slice(&scores[..k]);
            }
            Ok(())
        })?;
        Ok(z)
    }

    /// The weights `w(u)`, the constant column's included.
    fn weights_of_u(&self) -> Result<ClassWeights> {
        let ClassSetup { rows, class, n_classes: k, monitor, .. } = self.setup;
        let piece = class.len().div_ceil(MAX_PIECES).max(ROW_CHUNK);
        let sums = parallel::try_map(self.u.chunks(piece * k), |number, u| {
            let (mut w, mut changes) = (ClassWeights::zeros(rows.n_columns(), k), Vec::new());
            for (i, u) in (number * piece..).zip(u.chunks(k)) {
                if i % PIECE == 0 {
                    monitor.poll()?;
                }
                self.changes(i, u, &mut changes);
                w.add(rows, i, &changes);
            }
            Ok(w)
        })?;
        let mut total = ClassWeights::zeros(rows.n_columns(), k);
        sums.iter().for_each(|sum| total.add_scaled(1.0, sum));
        Ok(total)
    }

    /// What row `i` with the dual variables `u` adds to the weights.
    fn changes(&self, i: usize, u: &[f64], changes: &mut Vec<Change>) {
        let (own, c) = (self.setup.class[i], self.setup.cost[i]);
        changes.clear();
        let all =
            (0..).zip(u).map(|(class, u)| Change { class, delta: if class == own { c - u } else { -u } });
        changes.extend(all.filter(|change| change.delta != 0.0));
    }
}

/// Puts a symmetric block and, off the diagonal, its upper triangle where `[row, column]` says.
fn place(matrix: &mut Symmetric, [row, column]: [usize; 2], block: &Symmetric) {
    let (n, d) = (matrix.n, block.n);
    for i in 0..d {
        for j in 0..=i {
            let value = block.values[i * d + j];
            matrix.values[(row + i) * n + column + j] = value;
            if row != column {
                matrix.values[(row + j) * n + column + i] = value;
            }
        }
    }
}
