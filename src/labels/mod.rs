//! One-vs-rest: the binary problems of a classification task, as parallel tasks over one matrix.
//! [`crammer_singer`], [`multinomial`]: all classes as one problem. [`penalised`]: with a penalty other than
//! the square. [`sparse`]: thousands of labels with sparse weights ([`sparse_weights`]). [`classes`]: what
//! classes are called. [`scores`]: predictions of many labels, with
//! [`inverted_index`] for sparse weights.
//!
//! Two classes make one problem, whose positive class is the second; `k > 2` classes make `k` problems, class
//! `k` against the rest. Problems share the matrix and the costs; each makes its own labels (one number per
//! row) while it runs.

pub mod classes;
pub mod crammer_singer;
pub mod inverted_index;
pub mod multinomial;
pub mod penalised;
pub mod scores;
pub mod sparse;
pub mod sparse_weights;

use crate::fit::crammer_singer::ClassProblem;
use crate::fit::{Intercept, Monitor, Params, Problem, Solution, Start, auto, presolved};
use crate::loss::LossKind;
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::presolve::Presolved;
use crate::{Error, Result, parallel};

/// How more than two classes become problems, for a solver that does not decide that by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MultiClass {
    /// Each class against the rest.
    OneVsRest,
    /// One problem with the softmax of all scores, see [`crate::fit::multinomial`]; the logistic loss only.
    Multinomial,
}

/// Class ids of all rows of a matrix.
#[derive(Clone, Copy)]
pub struct Labels<'a> {
    /// One id per row, below `n_classes`.
    pub ids: &'a [u32],
    /// Number of classes, at least 2.
    pub n_classes: u32,
}

/// Number of binary problems that so many classes make: two are one.
pub fn n_problems(n_classes: usize) -> usize {
    if n_classes == 2 { 1 } else { n_classes }
}

impl Labels<'_> {
    /// Number of binary problems.
    pub fn n_problems(&self) -> usize {
        n_problems(self.n_classes as usize)
    }

    /// The class with label +1 in one binary problem.
    pub fn positive_class(&self, problem: usize) -> u32 {
        positive_class(self.n_problems(), problem)
    }

    /// Labels in {-1, +1} of the chosen rows in one binary problem.
    pub fn signs(&self, problem: usize, rows: &[u32]) -> Vec<f64> {
        let positive = self.positive_class(problem);
        rows.iter().map(|&i| if self.ids[i as usize] == positive { 1.0 } else { -1.0 }).collect_large()
    }

    /// Checks the ids against the number of rows and classes.
    ///
    /// # Errors
    /// [`Error::Shape`] and [`Error::Labels`].
    pub fn check(&self, n_rows: usize) -> Result<()> {
        if self.ids.len() != n_rows {
            return Err(Error::Shape { what: "labels", expected: n_rows, found: self.ids.len() });
        }
        if self.n_classes < 2 {
            let reason = format!("y has {} class, at least 2 classes are needed", self.n_classes);
            return Err(Error::Labels { reason });
        }
        match self.ids.iter().position(|&id| id >= self.n_classes) {
            Some(i) => {
                Err(Error::Labels { reason: format!("class id {} of row {i} is out of range", self.ids[i]) })
            }
            None => Ok(()),
        }
    }
}

/// The class with label +1 in one of so many binary problems.
pub fn positive_class(n_problems: usize, problem: usize) -> u32 {
    if n_problems == 1 { 1 } else { problem as u32 }
}

/// What to fit on the rows of a matrix, whatever the loss.
#[derive(Clone, Copy)]
pub struct Classification<'a> {
    /// The matrix.
    pub rows: &'a Matrix<'a>,
    /// Class ids of its rows.
    pub labels: &'a Labels<'a>,
    /// `C * class weight * sample weight` per row.
    pub cost: &'a [f64],
    /// Treatment of the intercept.
    pub intercept: Intercept,
}

/// Rows among `candidates` with a weight above zero: a row of weight 0 is the row absent.
///
/// # Errors
/// [`Error::Labels`] when a class has no such row, naming the class id and `place`.
pub fn weighted_rows(
    labels: &Labels<'_>,
    weight: &[f64],
    candidates: impl Iterator<Item = u32>,
    place: &str,
) -> Result<Vec<u32>> {
    let rows: Vec<u32> = candidates.filter(|&i| weight[i as usize] > 0.0).collect_large();
    let mut seen = vec![false; labels.n_classes as usize];
    rows.iter().for_each(|&i| seen[labels.ids[i as usize] as usize] = true);
    match seen.iter().position(|seen| !seen) {
        Some(class) => {
            let reason = format!(
                "class number {class} (classes in sorted order) has no row of positive weight in {place}"
            );
            Err(Error::Labels { reason })
        }
        None => Ok(rows),
    }
}

/// Checks that there is one finite weight of at least zero per row.
///
/// # Errors
/// [`Error::Shape`] and [`Error::Labels`].
pub fn check_weights(weight: &[f64], n_rows: usize) -> Result<()> {
    if weight.len() != n_rows {
        return Err(Error::Shape { what: "sample weights", expected: n_rows, found: weight.len() });
    }
    match weight.iter().position(|&c| !(c >= 0.0 && c.is_finite())) {
        Some(i) => {
            let reason =
                format!("the weight of row {i} is {}, weights must be finite and at least 0", weight[i]);
            Err(Error::Labels { reason })
        }
        None => Ok(()),
    }
}

/// Fits every binary problem.
///
/// # Errors
/// Those of the checks above and of [`auto::solve`].
pub fn fit(
    data: &Classification<'_>,
    loss: LossKind,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<Vec<Solution>> {
    let at_once =
        |problem: &Problem<'_>, n_problems| auto::classes_at_once(problem, n_problems, loss, params);
    fit_groups(
        data,
        at_once,
        |problem, k| auto::solve(problem, loss, &params.of_task(k), &Start::default(), monitor),
        |problems| auto::solve_classes(problems, loss, params, monitor),
    )
}

/// [`fit`] from a start for each problem.
///
/// # Errors
/// As for [`fit`].
pub fn fit_from(
    data: &Classification<'_>,
    loss: LossKind,
    params: &Params,
    start: &(dyn Fn(usize) -> Start + Sync),
    monitor: &dyn Monitor,
) -> Result<Vec<Solution>> {
    fit_each(data, params.seed, |problem, k, seed| {
        auto::solve(problem, loss, &Params { seed, ..*params }, &start(k), monitor)
    })
}

/// [`fit`] by way of `packed`, the presolved rows; weights and certificates are those of the rows themselves.
///
/// # Errors
/// As for [`fit`].
pub fn fit_presolved(
    data: &Classification<'_>,
    packed: &Presolved,
    loss: LossKind,
    params: &Params,
    monitor: &dyn Monitor,
) -> Result<Vec<Solution>> {
    let at_once = |problem: &Problem<'_>, n_problems| {
        presolved::classes_at_once(problem, packed, n_problems, loss, params)
    };
    fit_groups(
        data,
        at_once,
        |problem, k| presolved::solve(problem, packed, loss, &params.of_task(k), monitor),
        |problems| presolved::solve_classes(problems, packed, loss, params, monitor),
    )
}

/// Checks the input and calls `solve` with each binary problem, its number and the seed of its own that
/// follows from `seed`, in parallel.
///
/// # Errors
/// Those of the checks above and of `solve`.
pub fn fit_each<T: Send>(
    data: &Classification<'_>,
    seed: u64,
    solve: impl Fn(&Problem<'_>, usize, u64) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let one = |problem: &Problem<'_>, k: usize| solve(problem, k, seed.wrapping_add(k as u64));
    fit_groups(data, |_, _| 1, one, |_| unreachable!("each problem is solved by itself"))
}

/// Checks the input and solves the binary problems in parallel: as many successive ones at once as `at_once`
/// says, told the first one and how many there are, or each by itself, told its number.
///
/// # Errors
/// As for [`fit_each`].
fn fit_groups<T: Send>(
    data: &Classification<'_>,
    at_once: impl FnOnce(&Problem<'_>, usize) -> usize,
    solve_one: impl Fn(&Problem<'_>, usize) -> Result<T> + Sync,
    solve_some: impl Fn(&[Problem<'_>]) -> Result<Vec<T>> + Sync,
) -> Result<Vec<T>> {
    let Classification { rows, labels, cost, intercept } = *data;
    let n_rows = check_row_count(rows)?;
    labels.check(rows.n_rows())?;
    check_weights(cost, rows.n_rows())?;
    let ids = weighted_rows(labels, cost, 0..n_rows, "the training data")?;
    let cost: Vec<f64> = ids.iter().map(|&i| cost[i as usize]).collect_large();
    let ids_if_subset = (ids.len() < rows.n_rows()).then_some(ids.as_slice());
    let n_problems = labels.n_problems();
    let size = if n_problems == 1 {
        1
    } else {
        let y = labels.signs(0, &ids);
        at_once(&Problem { rows, ids: ids_if_subset, y: &y, cost: &cost, intercept }, n_problems)
    };
    let groups = parallel::try_map(0..n_problems.div_ceil(size), |_, group| {
        let numbers = group * size..n_problems.min((group + 1) * size);
        let signs: Vec<_> = numbers.map(|k| labels.signs(k, &ids)).collect();
        let problem = |y| Problem { rows, ids: ids_if_subset, y, cost: &cost, intercept };
        let problems: Vec<Problem<'_>> = signs.iter().map(|y| problem(y)).collect();
        if size == 1 { Ok(vec![solve_one(&problems[0], group)?]) } else { solve_some(&problems) }
    })?;
    Ok(groups.into_iter().flatten().collect())
}

/// Checks the input and calls `solve` with the rows of a weight above zero as one problem of all classes.
///
/// # Errors
/// Those of the checks above and of `solve`.
pub fn with_weighted_rows<T>(
    data: &Classification<'_>,
    solve: impl FnOnce(&ClassProblem<'_>) -> Result<T>,
) -> Result<T> {
    let Classification { rows, labels, cost, intercept } = *data;
    let n_rows = check_row_count(rows)?;
    labels.check(rows.n_rows())?;
    check_weights(cost, rows.n_rows())?;
    let chosen = weighted_rows(labels, cost, 0..n_rows, "the training data")?;
    let cost: Vec<f64> = chosen.iter().map(|&i| cost[i as usize]).collect_large();
    let class: Vec<u32> = chosen.iter().map(|&i| labels.ids[i as usize]).collect_large();
    let ids = (chosen.len() < rows.n_rows()).then_some(chosen.as_slice());
    let n_classes = labels.n_classes as usize;
    solve(&ClassProblem { rows, ids, class: &class, n_classes, cost: &cost, intercept })
}

/// Number of rows as the 4-byte number by which rows are chosen.
///
/// # Errors
/// [`Error::Parameter`] beyond 2^32 rows.
pub fn check_row_count(rows: &Matrix<'_>) -> Result<u32> {
    u32::try_from(rows.n_rows()).map_err(|_| Error::Parameter {
        name: "number of rows",
        value: rows.n_rows().to_string(),
        rule: "below 2^32",
    })
}
