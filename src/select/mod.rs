//! Warm-started cross-validated search for `C` (Chu15, algorithm 1).
//!
//! `C` runs upwards from a computed lower bound by a fixed factor. Every fold (and class) keeps its own weights, never one
//! shared vector (Chu15, table 3), and starts each `C` from its solution at the last. The search ends at `C_max`, or when no
//! fold's solution has changed for three successive values of `C` (eq. 24).
//!
//! Memory: one weight vector of the columns and one margin (or dual variable) per training row for each of the
//! folds x classes, beside the vectors of the fits in flight.

mod lane;

use rayon::prelude::*;

use crate::data::Rows;
use crate::loss::{Hinge, Logistic, Loss, LossKind, SquaredHinge};
use crate::multiclass::{Labels, check_row_count, check_weights, weighted_rows};
use crate::solver::{Intercept, Monitor, SolverKind};
use crate::{Error, Result};

use lane::{Done, Lane, Task};

/// Largest `C` that is tried.
pub const DEFAULT_C_MAX: f64 = 1024.0;
/// Factor between successive values of `C`.
pub const DEFAULT_RATIO: f64 = 2.0;
/// Accuracy of the fits of a search, see [`Settings::tol`].
pub const DEFAULT_SEARCH_TOL: f64 = 1e-2;
/// Successive values of `C` without a change that end the search (Chu15, eq. 24).
pub const UNCHANGED_TO_STOP: usize = 3;
/// What to search and how.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The loss.
    pub loss: LossKind,
    /// Treatment of the intercept.
    pub intercept: Intercept,
    /// [`SolverKind::Auto`] is Newton for a smooth loss where its steps are cheap (few columns), else a fit to a duality gap
    /// by dual coordinate descent. Tried: Newton everywhere, as Chu15 has it; imdb, 5 folds, one thread: 48 s for either
    /// smooth loss against 19 s (squared hinge) and 16 s (logistic).
    pub solver: SolverKind,
    /// Newton: gradient norm relative to `min(pos, neg) / n` times the norm at zero (Chu15, eq. 28).
    /// Others: ten times the relative duality gap.
    pub tol: f64,
    /// Limit of epochs or Newton steps per fit.
    pub max_iter: usize,
    /// Seed of the visiting orders.
    pub seed: u64,
    /// First value of `C`; computed by [`lower_bound`] if `None`.
    pub c_min: Option<f64>,
    /// Limit of `C`.
    pub c_max: f64,
    /// Factor between values of `C`.
    pub ratio: f64,
}

/// One split: rows to train on and rows to predict.
pub struct Fold {
    /// Rows of the training part.
    pub train: Vec<u32>,
    /// Rows of the held-out part.
    pub test: Vec<u32>,
}

/// What happened at one value of `C`.
#[derive(Clone, Debug)]
pub struct Step {
    /// The value.
    pub c: f64,
    /// Readings of the data, summed over folds and classes, in units of one whole training part.
    pub passes: f64,
    /// Epochs or Newton steps, summed over folds and classes.
    pub n_iter: usize,
    /// No solution of any fold changed.
    pub is_unchanged: bool,
    /// Every fit reached the requested accuracy.
    pub is_converged: bool,
    /// Decision values per fold, row after row of the held-out part, one number per binary problem.
    pub decisions: Vec<Vec<f64>>,
}

/// The lower bound of Chu15 (eqs. 21 and 22), rounded down to a power of two; 1 for a matrix of zeros.
pub fn lower_bound(loss: LossKind, weight: f64, max_squared_norm: f64) -> f64 {
    let bound = match loss {
        LossKind::Hinge => Hinge.smallest_c(weight, max_squared_norm),
        LossKind::SquaredHinge => SquaredHinge.smallest_c(weight, max_squared_norm),
        LossKind::Logistic => Logistic.smallest_c(weight, max_squared_norm),
    };
    if bound.is_finite() && bound > 0.0 { bound.log2().floor().exp2() } else { 1.0 }
}

/// Training rows and weights of a fold.
struct Part<'a> {
    train: Vec<u32>,
    weight: Vec<f64>,
    test: &'a [u32],
}

/// Runs the search, calling `visit` after each value of `C`; `visit` may end it by returning `false`.
///
/// # Errors
/// Bad settings, folds without a class, those of the solvers, and those of `visit`.
pub fn search<R: Rows>(
    rows: &R,
    labels: &Labels<'_>,
    weight: &[f64],
    folds: &[Fold],
    settings: &Settings,
    monitor: &dyn Monitor,
    mut visit: impl FnMut(Step) -> Result<bool>,
) -> Result<()> {
    check_row_count(rows)?;
    labels.check(rows.n_rows())?;
    check_weights(weight, rows.n_rows())?;
    let mut c = first_c(rows, weight, settings)?;
    let parts =
        folds.iter().enumerate().map(|(f, fold)| part(rows, labels, weight, f, fold)).collect::<Result<Vec<_>>>()?;
    let n_problems = labels.n_problems();
    let mut lanes: Vec<Lane> = (0..parts.len() * n_problems).map(|_| Lane::default()).collect();
    let mut unchanged = 0;
    loop {
        let done: Vec<Done> = lanes
            .par_iter_mut()
            .enumerate()
            .map(|(k, lane)| {
                let part = &parts[k / n_problems];
                let y = labels.signs(k % n_problems, &part.train);
                lane.advance(&Task { rows, part, y: &y, c, settings, number: k as u64, monitor })
            })
            .collect::<Result<_>>()?;
        let step = summarise(c, &done, &parts, n_problems);
        unchanged = if step.is_unchanged { unchanged + 1 } else { 0 };
        let next = c * settings.ratio;
        if !visit(step)? || unchanged >= UNCHANGED_TO_STOP || next > settings.c_max * (1.0 + 1e-12) {
            return Ok(());
        }
        c = next;
    }
}

fn first_c<R: Rows>(rows: &R, weight: &[f64], settings: &Settings) -> Result<f64> {
    let bad = |name, value: f64, rule| Err(Error::Parameter { name, value: value.to_string(), rule });
    if !(settings.ratio > 1.0 && settings.ratio.is_finite()) {
        return bad("ratio", settings.ratio, "a finite number above 1");
    }
    let c = settings.c_min.unwrap_or_else(|| {
        let constant = if let Intercept::Penalised(s) = settings.intercept { s * s } else { 0.0 };
        let largest = (0..rows.n_rows()).map(|i| rows.squared_norm(i)).fold(0.0, f64::max);
        lower_bound(settings.loss, weight.iter().sum(), largest + constant)
    });
    if !(c > 0.0 && c.is_finite()) {
        return bad("C_min", c, "a finite number above 0");
    }
    if !(settings.c_max >= c && settings.c_max.is_finite()) {
        return bad("C_max", settings.c_max, "finite and not below C_min");
    }
    Ok(c)
}

fn part<'a, R: Rows>(rows: &R, labels: &Labels<'_>, weight: &[f64], f: usize, fold: &'a Fold) -> Result<Part<'a>> {
    for (what, ids) in [("training rows of a fold", &fold.train), ("held-out rows of a fold", &fold.test)] {
        if ids.is_empty() {
            return Err(Error::Shape { what, expected: 1, found: 0 });
        }
        if let Some(&i) = ids.iter().find(|&&i| i as usize >= rows.n_rows()) {
            return Err(Error::Labels { reason: format!("fold {f} names row {i}, X has {} rows", rows.n_rows()) });
        }
    }
    let train = weighted_rows(labels, weight, fold.train.iter().copied(), &format!("the training part of fold {f}"))?;
    let weight = train.iter().map(|&i| weight[i as usize]).collect();
    Ok(Part { train, weight, test: &fold.test })
}

fn summarise(c: f64, done: &[Done], parts: &[Part<'_>], n_problems: usize) -> Step {
    let decisions = done.chunks_exact(n_problems).zip(parts).map(|(problems, part)| {
        let mut fold = vec![0.0; part.test.len() * n_problems];
        for (k, problem) in problems.iter().enumerate() {
            for (row, value) in problem.decisions.iter().enumerate() {
                fold[row * n_problems + k] = *value;
            }
        }
        fold
    });
    Step {
        c,
        passes: done.iter().map(|d| d.passes).sum(),
        n_iter: done.iter().map(|d| d.n_iter).sum(),
        is_unchanged: done.iter().all(|d| d.is_unchanged),
        is_converged: done.iter().all(|d| d.is_converged),
        decisions: decisions.collect(),
    }
}
