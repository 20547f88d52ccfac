//! The checked splits of a search, and the data that all its lanes share.

use std::ops::Range;

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

/// The lanes of a search by their numbers: the problems of the first fold first.
#[derive(Clone, Copy, Debug)]
pub struct LaneNumbers {
    /// Folds of the search.
    pub n_folds: usize,
    /// Binary problems per fold.
    pub n_problems: usize,
}

impl LaneNumbers {
    /// How many there are.
    pub fn n_lanes(self) -> usize {
        self.n_folds * self.n_problems
    }

    /// The fold of a lane.
    pub fn fold(self, lane: usize) -> usize {
        lane / self.n_problems
    }

    /// The problem of a lane.
    pub fn problem(self, lane: usize) -> usize {
        lane % self.n_problems
    }

    /// The lanes of a fold.
    pub fn of_fold(self, fold: usize) -> Range<usize> {
        fold * self.n_problems..(fold + 1) * self.n_problems
    }

    /// A part of the order in which groups take lanes: the folds of a class side by side.
    ///
    /// These share most of their rows with curvature, so a product reads few others, and a preconditioner
    /// from the mean of their curvatures is close to each.
    pub fn in_groups(self, part: Range<usize>) -> Vec<usize> {
        let n_folds = self.n_folds.max(1);
        part.map(|at| at % n_folds * self.n_problems + at / n_folds).collect()
    }

    /// Decision values of zero weights, in the shape of [`super::SearchStep::decisions`].
    pub fn no_decisions(self, parts: &[FoldRows<'_>]) -> Vec<Vec<f64>> {
        parts.iter().map(|part| memory::zeros(part.test.len() * self.n_problems)).collect_large()
    }

    /// Writes the decision values of a lane into those of all.
    pub fn write_decisions(self, lane: usize, decisions: &[f64], all: &mut [Vec<f64>]) {
        let (fold, problem) = (self.fold(lane), self.problem(lane));
        for (row, value) in decisions.iter().enumerate() {
            all[fold][row * self.n_problems + problem] = *value;
        }
    }
}

/// What every lane of a search shares.
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

    /// The numbers of the lanes.
    pub fn numbers(&self) -> LaneNumbers {
        LaneNumbers { n_folds: self.parts.len(), n_problems: self.n_problems() }
    }

    /// Folds times problems.
    pub fn n_lanes(&self) -> usize {
        self.numbers().n_lanes()
    }

    /// The fold of lane `k`.
    pub fn part(&self, k: usize) -> &'a FoldRows<'a> {
        &self.parts[self.numbers().fold(k)]
    }

    /// Labels in {-1, +1} of the training rows of lane `k`.
    pub fn signs(&self, k: usize) -> Vec<f64> {
        self.labels.signs(self.numbers().problem(k), &self.part(k).train)
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

    /// The values of the held-out rows of each lane of a group; `value` takes a row and the place of the lane
    /// in the group.
    pub fn of_held_out(&self, lanes: &[usize], value: impl Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
        let of_lane = |(l, k): (usize, &usize)| {
            self.part(*k).test.iter().map(|&i| value(i as usize, l)).collect_large()
        };
        lanes.iter().enumerate().map(of_lane).collect()
    }

    /// Decision values of zero weights, in the shape of [`super::SearchStep::decisions`].
    pub fn no_decisions(&self) -> Vec<Vec<f64>> {
        self.numbers().no_decisions(self.parts)
    }

    /// Writes the decision values of lane `k` into those of all lanes.
    pub fn write_decisions(&self, k: usize, decisions: &[f64], all: &mut [Vec<f64>]) {
        self.numbers().write_decisions(k, decisions, all);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_take_every_lane_once_and_folds_of_a_class_are_side_by_side() {
        for (n_folds, n_problems) in [(1, 1), (5, 1), (1, 4), (3, 7), (10, 2)] {
            let numbers = LaneNumbers { n_folds, n_problems };
            let lanes = numbers.in_groups(0..n_folds * n_problems);
            let mut sorted = lanes.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..n_folds * n_problems));
            for class in lanes.chunks(n_folds) {
                assert!(class.iter().all(|k| k % n_problems == class[0] % n_problems), "{lanes:?}");
                assert!(class.iter().map(|k| k / n_problems).eq(0..n_folds), "{lanes:?}");
            }
            let parts = [numbers.in_groups(0..1), numbers.in_groups(1..n_folds * n_problems)];
            assert_eq!(parts.concat(), lanes);
        }
        assert_eq!(LaneNumbers { n_folds: 2, n_problems: 3 }.in_groups(0..6), [0, 3, 1, 4, 2, 5]);
    }
}
