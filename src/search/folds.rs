//! The checked splits of a search, and the data that all its lanes share.

use super::{GAP_PER_TOL, SearchSettings, StopRule};
use crate::fit::crammer_singer::ClassProblem;
use crate::fit::{Monitor, Params, Problem};
use crate::labels::{Labels, weighted_rows};
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::penalty::Penalty;
use crate::{Error, Result, memory};

/// One split: rows to train on and rows to predict.
pub struct Fold {
    /// Rows of the training part.
    pub train: Vec<u32>,
    /// Rows of the held-out part.
    pub test: Vec<u32>,
}

/// The data of a search.
pub struct SearchData<'a> {
    /// The full matrix.
    pub rows: &'a Matrix<'a>,
    /// Class ids of its rows.
    pub labels: Labels<'a>,
    /// Weights of its rows.
    pub weight: &'a [f64],
    /// The splits.
    pub folds: &'a [Fold],
    /// The penalty, where it is not the square.
    pub penalty: Option<&'a Penalty>,
}

/// Rows of positive weight in the training part of a fold, their weights, and the held-out rows.
pub struct FoldRows<'a> {
    /// Rows to train on.
    pub train: Vec<u32>,
    /// Their weights.
    pub weight: Vec<f64>,
    /// Rows to predict.
    pub test: &'a [u32],
}

/// What every lane of a search shares. Lane `k` is problem `k % n_problems` of fold `k / n_problems`.
pub struct LaneSetup<'a> {
    /// The full matrix.
    pub rows: &'a Matrix<'a>,
    /// Class ids of all its rows.
    pub labels: &'a Labels<'a>,
    /// Weights of all its rows.
    pub weight: &'a [f64],
    /// The folds.
    pub parts: &'a [FoldRows<'a>],
    /// Loss, accuracy, limits.
    pub settings: &'a SearchSettings,
    /// Largest `C` that the search may visit.
    pub last: f64,
    /// How it may end before.
    pub stop: StopRule,
    /// Progress and cancelling.
    pub monitor: &'a dyn Monitor,
}

impl<'a> LaneSetup<'a> {
    /// Binary problems per fold.
    pub fn n_problems(&self) -> usize {
        self.labels.n_problems()
    }

    /// Folds times problems.
    pub fn n_lanes(&self) -> usize {
        self.parts.len() * self.n_problems()
    }

    /// The fold of lane `k`.
    pub fn part(&self, k: usize) -> &'a FoldRows<'a> {
        &self.parts[k / self.n_problems()]
    }

    /// Labels in {-1, +1} of the training rows of lane `k`.
    pub fn signs(&self, k: usize) -> Vec<f64> {
        self.labels.signs(k % self.n_problems(), &self.part(k).train)
    }

    /// The binary problem of lane `k`.
    pub fn problem<'b>(&'b self, k: usize, y: &'b [f64], cost: &'b [f64]) -> Problem<'b> {
        Problem {
            rows: self.rows,
            ids: Some(&self.part(k).train),
            y,
            cost,
            intercept: self.settings.intercept,
        }
    }

    /// Classes of the training rows of a fold, and their costs at `c`.
    pub fn classes_and_costs(&self, fold: usize, c: f64) -> (Vec<u32>, Vec<f64>) {
        let part = &self.parts[fold];
        let class = part.train.iter().map(|&i| self.labels.ids[i as usize]).collect_large();
        (class, part.weight.iter().map(|v| c * v).collect_large())
    }

    /// The problem of all classes of a fold.
    pub fn class_problem<'b>(&'b self, fold: usize, class: &'b [u32], cost: &'b [f64]) -> ClassProblem<'b> {
        ClassProblem {
            rows: self.rows,
            ids: Some(&self.parts[fold].train),
            class,
            n_classes: self.labels.n_classes as usize,
            cost,
            intercept: self.settings.intercept,
        }
    }

    /// How a fold's fit of all classes to a duality gap goes about it.
    pub fn class_params(&self, fold: usize) -> Params {
        let params = self.settings.params;
        Params { tol: GAP_PER_TOL * params.tol, ..params.of_task(fold) }
    }

    /// Decision values of the held-out rows of lane `k`.
    pub fn decisions(&self, k: usize, w: &[f64], b: f64) -> Vec<f64> {
        self.part(k).test.iter().map(|&i| self.rows.dot(i as usize, w) + b).collect_large()
    }

    /// Decision values of zero weights, in the shape of [`super::SearchStep::decisions`].
    pub fn no_decisions(&self) -> Vec<Vec<f64>> {
        no_decisions(self.parts, self.n_problems())
    }

    /// Writes the decision values of lane `k` into those of all lanes.
    pub fn write_decisions(&self, k: usize, decisions: &[f64], all: &mut [Vec<f64>]) {
        write_decisions(self.n_problems(), k, decisions, all);
    }
}

/// Decision values of zero weights in `n_problems` binary problems per fold, in the shape of
/// [`super::SearchStep::decisions`].
pub fn no_decisions(parts: &[FoldRows<'_>], n_problems: usize) -> Vec<Vec<f64>> {
    parts.iter().map(|part| memory::zeros(part.test.len() * n_problems)).collect_large()
}

/// Writes the decision values of lane `k` into those of all lanes.
pub fn write_decisions(n_problems: usize, k: usize, decisions: &[f64], all: &mut [Vec<f64>]) {
    for (row, value) in decisions.iter().enumerate() {
        all[k / n_problems][row * n_problems + k % n_problems] = *value;
    }
}

/// Checks the splits against the data.
///
/// # Errors
/// [`Error::Shape`] for an empty part, [`Error::Labels`] for a row that does not exist and a training part
/// without some class.
pub fn parts<'a>(
    n_rows: usize,
    labels: &Labels<'_>,
    weight: &[f64],
    folds: &'a [Fold],
) -> Result<Vec<FoldRows<'a>>> {
    if folds.is_empty() {
        return Err(Error::Shape { what: "folds", expected: 1, found: 0 });
    }
    folds.iter().enumerate().map(|(f, fold)| part(n_rows, labels, weight, f, fold)).collect()
}

fn part<'a>(
    n_rows: usize,
    labels: &Labels<'_>,
    weight: &[f64],
    f: usize,
    fold: &'a Fold,
) -> Result<FoldRows<'a>> {
    for (what, ids) in [("training rows of a fold", &fold.train), ("held-out rows of a fold", &fold.test)] {
        if ids.is_empty() {
            return Err(Error::Shape { what, expected: 1, found: 0 });
        }
        if let Some(&i) = ids.iter().find(|&&i| i as usize >= n_rows) {
            return Err(Error::Labels { reason: format!("fold {f} names row {i}, X has {n_rows} rows") });
        }
    }
    let train =
        weighted_rows(labels, weight, fold.train.iter().copied(), &format!("the training part of fold {f}"))?;
    let weight = train.iter().map(|&i| weight[i as usize]).collect_large();
    Ok(FoldRows { train, weight, test: &fold.test })
}
