//! One-vs-rest for thousands of labels: sparse weights, label by label, memory independent of labels times
//! columns.
//!
//! A label is a task. Each thread works on one label at a time, in vectors of its own (signs, dual variables,
//! weights), and keeps of it only the weights that are not zero. Matrix, costs and the start are shared.
//! Threads are plain ones with a pool of one each: with nested parallel iterators a thread that waits takes
//! up a further label meanwhile, and the labels in flight pile up.
//!
//! **Start.** Most rows are negative for most labels, so every label starts from the solution of the problem
//! whose rows are all negative, its positive rows taken out: with a free intercept that is `w = 0, b = -1`
//! for the hinge and the squared hinge, at which no negative row has a loss until positive rows have changed
//! its weights.
//!
//! **Small weights.** With `drop > 0`, weights are rounded to single precision and set to zero in the order
//! of `w_j^2 (1/2 + sum_i c_i x_ij^2)`, about the change of the objective that each makes alone at the
//! optimum, as many as the objective allows: the change is measured, not estimated, by a reading of the data
//! for each attempt, and is at most `drop` times the objective. The certificate is that of the weights that
//! are returned. Where rounding alone raises the objective by more (numbers beyond single precision), all
//! stay as they are.
//!
//! A label without a positive row (or without a negative one) and with a free intercept has the constant
//! decision value -1 (1); for the logistic loss, which has no minimum then, minus (plus) infinity.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::sparse_weights::SparseWeights;
use super::{check_row_count, check_weights};
use crate::fit::{
    Certificate, Intercept, Monitor, Params, Problem, Solution, SolverKind, Start, Status, auto, certificate,
    presolved,
};
use crate::loss::LossKind;
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::presolve::Presolved;
use crate::{Error, Result, memory, parallel};

/// A label is rare if this many times its positive rows are still less than all. eurlex4k, squared hinge,
/// processor time per label: 34 ms by dual descent, 45 ms by Newton, which the shape of the data would ask
/// for.
const RARE: usize = 16;
/// Attempts to drop weights, each a reading of the data.
const ATTEMPTS: usize = 5;
/// Factor between the budgets of attempts.
const BUDGET_STEP: f64 = 4.0;

/// Positive rows of every label: the columns of an indicator matrix.
#[derive(Clone, Copy)]
pub struct Indicator<'a> {
    /// Label `l` owns the rows `starts[l] .. starts[l + 1]`.
    pub starts: &'a [i64],
    /// Row numbers, each once per label.
    pub rows: &'a [u32],
}

impl Indicator<'_> {
    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Rows of a label.
    pub fn positive(&self, label: usize) -> &[u32] {
        &self.rows[self.starts[label] as usize..self.starts[label + 1] as usize]
    }

    fn check(&self, n_rows: usize) -> Result<()> {
        let ends = (self.starts.first(), self.starts.last());
        let is_rising = self.starts.windows(2).all(|pair| pair[0] <= pair[1]);
        if ends != (Some(&0), Some(&(self.rows.len() as i64))) || !is_rising {
            return Err(Error::Labels {
                reason: "the starts of the labels' rows must rise from 0 to their number".into(),
            });
        }
        match self.rows.iter().find(|row| **row as usize >= n_rows) {
            Some(row) => {
                Err(Error::Labels { reason: format!("a label names row {row}, X has {n_rows} rows") })
            }
            None => Ok(()),
        }
    }
}

/// The answer for one label.
#[derive(Clone, Debug)]
pub struct SparseSolution {
    /// Weights and intercept.
    pub weights: SparseWeights,
    /// How good these weights are.
    pub certificate: Certificate,
    /// How the fit ended, small weights not yet dropped.
    pub status: Status,
    /// Epochs or Newton steps.
    pub n_iter: usize,
    /// Readings of the whole data.
    pub passes: f64,
    /// The solver.
    pub solver: SolverKind,
}

/// What all labels share.
pub struct LabelTask<'a> {
    /// The caller's matrix.
    pub rows: &'a Matrix<'a>,
    /// `C * sample weight` per row.
    pub cost: &'a [f64],
    /// Treatment of the intercept.
    pub intercept: Intercept,
    /// The loss.
    pub loss: LossKind,
    /// Accuracy and limits.
    pub params: Params,
}

impl LabelTask<'_> {
    /// Checks rows, costs and labels; the rows of positive cost.
    ///
    /// # Errors
    /// Input that does not fit together.
    pub fn rows_that_count(&self, labels: &Indicator<'_>) -> Result<Vec<u32>> {
        let n_rows = check_row_count(self.rows)?;
        labels.check(self.rows.n_rows())?;
        check_weights(self.cost, self.rows.n_rows())?;
        let ids: Vec<u32> = (0..n_rows).filter(|&i| self.cost[i as usize] > 0.0).collect_large();
        if ids.is_empty() {
            return Err(Error::Labels { reason: "no row has a positive weight".into() });
        }
        Ok(ids)
    }
}

/// Fits every label, on the packed form of the matrix where there is one; calls `keep(label, solution)` in no
/// particular order, from one thread at a time. `drop` is the change of the objective, relatively, up to
/// which small weights are dropped; 0 for none.
///
/// # Errors
/// Input that does not fit together, and those of [`auto::solve`].
pub fn fit(
    task: &LabelTask<'_>,
    labels: &Indicator<'_>,
    packed: Option<&Presolved>,
    drop: f64,
    monitor: &dyn Monitor,
    keep: &mut (dyn FnMut(usize, SparseSolution) + Send),
) -> Result<()> {
    let ids = task.rows_that_count(labels)?;
    let cost: Vec<f64> = ids.iter().map(|&i| task.cost[i as usize]).collect_large();
    let mut place = memory::filled(u32::MAX, task.rows.n_rows());
    ids.iter().enumerate().for_each(|(at, &i)| place[i as usize] = at as u32);
    let column_cost = if drop > 0.0 { column_costs(task) } else { Vec::new() };
    let shared = Shared {
        task,
        packed,
        drop,
        ids: &ids,
        cost: &cost,
        place: &place,
        column_cost: &column_cost,
        base: None,
        monitor,
    };
    let base = shared.base()?;
    let shared = Shared { base: base.as_ref(), ..shared };
    each_alone(labels.n_labels(), |label| shared.solve(label, labels.positive(label)), keep)
}

/// Solves label by label, each on one thread; calls `keep` from one thread at a time.
///
/// # Errors
/// The first one of `solve`; labels that are under way end first.
pub fn each_alone(
    n_labels: usize,
    solve: impl Fn(usize) -> Result<SparseSolution> + Sync,
    keep: &mut (dyn FnMut(usize, SparseSolution) + Send),
) -> Result<()> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let keep = Mutex::new(keep);
    let work = || -> Result<()> {
        while !failed.load(Ordering::Relaxed) {
            let label = next.fetch_add(1, Ordering::Relaxed);
            if label >= n_labels {
                break;
            }
            let solution =
                memory::catch(|| solve(label)).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
            keep.lock().unwrap_or_else(std::sync::PoisonError::into_inner)(label, solution);
        }
        Ok(())
    };
    let count = rayon::current_num_threads().min(n_labels);
    if count <= 1 {
        return parallel::alone(work);
    }
    std::thread::scope(|scope| {
        let start = |_| {
            let started = std::thread::Builder::new().spawn_scoped(scope, || parallel::alone(work));
            started.inspect_err(|_| failed.store(true, Ordering::Relaxed)).map_err(Error::Thread)
        };
        let threads = (0..count).map(start).collect::<Result<Vec<_>>>()?;
        let ends = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ends.collect::<Vec<_>>().into_iter().collect()
    })
}

/// `1/2 + sum_i c_i x_ij^2` per column.
fn column_costs(task: &LabelTask<'_>) -> Vec<f64> {
    let mut sums = memory::filled(0.5, task.rows.n_cols());
    for (i, c) in task.cost.iter().enumerate().filter(|(_, c)| **c > 0.0) {
        task.rows.for_each(i, |j, v| sums[j] += c * v * v);
    }
    sums
}

/// What a label's task reads.
struct Shared<'a> {
    task: &'a LabelTask<'a>,
    packed: Option<&'a Presolved>,
    drop: f64,
    /// Rows of positive cost, and their costs.
    ids: &'a [u32],
    cost: &'a [f64],
    /// Position of each row among them.
    place: &'a [u32],
    column_cost: &'a [f64],
    /// The solution without positive rows, on packed columns where there are any.
    base: Option<&'a Start>,
    monitor: &'a dyn Monitor,
}

impl Shared<'_> {
    fn problem<'b>(&'b self, y: &'b [f64]) -> Problem<'b> {
        let rows = self.task.rows;
        let ids = (self.ids.len() < rows.n_rows()).then_some(self.ids);
        Problem { rows, ids, y, cost: self.cost, intercept: self.task.intercept }
    }

    /// See the module's description; on the packed columns where there are any.
    fn base(&self) -> Result<Option<Start>> {
        let LabelTask { loss, ref params, .. } = *self.task;
        let packed = self.packed;
        let n_cols = packed.map_or(self.task.rows.n_cols(), |packed| packed.report().columns_out);
        if self.task.intercept == Intercept::Free {
            let start = Start { w: Some((memory::zeros(n_cols), -1.0)), ..Start::default() };
            return Ok(loss.can_be_zero().then_some(start));
        }
        let y = memory::filled(-1.0, self.ids.len());
        let problem = self.problem(&y);
        let solution = match packed {
            Some(packed) => {
                let view = packed.view();
                let Problem { ids, y, cost, intercept, .. } = problem;
                let packed = Problem { rows: &view, ids, y, cost, intercept };
                auto::solve_unproved(&packed, loss, params, &Start::default(), self.monitor)?
            }
            None => auto::solve_unproved(&problem, loss, params, &Start::default(), self.monitor)?,
        };
        let w = Some((solution.w, solution.intercept));
        Ok(Some(Start { w, alpha: Some(solution.alpha), is_consistent: false }))
    }

    fn solve(&self, label: usize, positive: &[u32]) -> Result<SparseSolution> {
        let mut y = memory::filled(-1.0, self.ids.len());
        let mut start = self.base.cloned().unwrap_or_default();
        let mut count = 0;
        for &i in positive.iter().filter(|i| self.place[**i as usize] != u32::MAX) {
            let at = self.place[i as usize] as usize;
            y[at] = 1.0;
            count += 1;
            if let Some(alpha) = &mut start.alpha {
                alpha[at] = 0.0;
            }
        }
        let LabelTask { loss, ref params, intercept, .. } = *self.task;
        if intercept == Intercept::Free && (count == 0 || count == y.len()) {
            return Ok(constant(loss, y[0]));
        }
        let params = params.of_task(label);
        let problem = self.problem(&y);
        let solve = |solver: SolverKind| match self.packed {
            Some(packed) => presolved::solve_from(
                &problem,
                packed,
                loss,
                &Params { solver, ..params },
                &start,
                self.monitor,
            ),
            None => auto::solve(&problem, loss, &Params { solver, ..params }, &start, self.monitor),
        };
        let is_rare = RARE * count < y.len() && loss.can_be_zero();
        let mut solution = solve(if is_rare { descent_for(params.solver) } else { params.solver })?;
        if solution.status != Status::Converged && params.solver == SolverKind::Auto && is_rare {
            solution = solve(SolverKind::Auto)?;
        }
        if self.drop > 0.0 {
            self.simplify(&problem, &mut solution)?;
        }
        Ok(SparseSolution::of(solution))
    }

    /// Rounds weights and sets small ones to zero; see the module's description.
    fn simplify(&self, problem: &Problem<'_>, solution: &mut Solution) -> Result<()> {
        let price = |j: usize| solution.w[j] * solution.w[j] * self.column_cost[j];
        let mut order: Vec<(f64, u32)> = (0..solution.w.len())
            .filter(|&j| solution.w[j] != 0.0)
            .map(|j| (price(j), j as u32))
            .collect_large();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let full = solution.certificate.primal;
        let limit = full * (1.0 + self.drop);
        let mut budget = full * self.drop;
        let mut accepted: Option<(usize, f64)> = None;
        let rounded: Vec<f64> = solution.w.iter().map(|&w| f64::from(w as f32)).collect_large();
        let mut w = memory::copy(&rounded);
        for _ in 0..ATTEMPTS {
            let mut sum = 0.0;
            let count = order.iter().take_while(|(price, _)| {
                sum += price;
                sum <= budget
            });
            let count = count.count();
            if accepted.is_some_and(|(before, _)| count <= before) {
                break;
            }
            w.copy_from_slice(&rounded);
            order[..count].iter().for_each(|(_, j)| w[*j as usize] = 0.0);
            let value = certificate::primal(problem, self.task.loss, &w, solution.intercept, self.monitor)?;
            solution.passes += 1.0;
            if value <= limit {
                accepted = Some((count, value));
                budget *= BUDGET_STEP;
            } else if accepted.is_some() || count == 0 {
                break;
            } else {
                budget /= BUDGET_STEP * BUDGET_STEP;
            }
        }
        if let Some((count, value)) = accepted {
            solution.w = rounded;
            order[..count].iter().for_each(|(_, j)| solution.w[*j as usize] = 0.0);
            solution.certificate.primal = value;
        }
        Ok(())
    }
}

/// The solver of a label with few positive rows: next to all negative ones rest after an epoch, which suits
/// dual descent whatever the shape of the data.
fn descent_for(solver: SolverKind) -> SolverKind {
    if solver == SolverKind::Auto { SolverKind::DualCd } else { solver }
}

/// The solution of a label whose rows are all of one sign.
pub fn constant(loss: LossKind, sign: f64) -> SparseSolution {
    let intercept = if loss.can_be_zero() { sign } else { sign * f64::INFINITY };
    SparseSolution {
        weights: SparseWeights { intercept, ..SparseWeights::default() },
        certificate: Certificate { primal: 0.0, dual: 0.0 },
        status: Status::Converged,
        n_iter: 0,
        passes: 0.0,
        solver: SolverKind::DualCd,
    }
}

impl SparseSolution {
    /// The nonzero weights of a solution.
    pub fn of(solution: Solution) -> Self {
        let Solution { w, intercept, certificate, status, n_iter, passes, solver, .. } = solution;
        Self { weights: SparseWeights::of(&w, intercept), certificate, status, n_iter, passes, solver }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Silent;
    use crate::fit::dual::active;
    use crate::matrix::dense::DenseView;

    fn problem() -> (Vec<f64>, Vec<i64>, Vec<u32>) {
        let (n, d) = (150, 12);
        let mut random = active::random(9, 0);
        let x: Vec<f64> = (0..n * d).map(|_| active::below(&mut random, 1000) as f64 / 500.0 - 1.0).collect();
        let (mut starts, mut rows) = (vec![0], Vec::new());
        for label in 0..8 {
            // Label 3 has no row, label 4 all.
            rows.extend((0..n as u32).filter(|i| match label {
                3 => false,
                4 => true,
                _ => x[*i as usize * d + label] + 0.3 * x[*i as usize * d + 9] > 0.1 * label as f64,
            }));
            starts.push(rows.len() as i64);
        }
        (x, starts, rows)
    }

    fn fit_all(loss: LossKind, intercept: Intercept, drop: f64, threads: usize) -> Vec<SparseSolution> {
        let (x, starts, rows) = problem();
        let view = crate::matrix::Matrix::from(DenseView::new(&x, 150, 12).unwrap().0);
        let cost: Vec<f64> = (0..150).map(|i| if i % 10 == 7 { 0.0 } else { 0.5 + (i % 4) as f64 }).collect();
        let params = Params { tol: 1e-6, solver: SolverKind::DualCd, max_iter: 100_000, seed: 3 };
        let task = LabelTask { rows: &view, cost: &cost, intercept, loss, params };
        let mut found: Vec<Option<SparseSolution>> = vec![None; 8];
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let labels = Indicator { starts: &starts, rows: &rows };
        pool.install(|| fit(&task, &labels, None, drop, &Silent, &mut |l, s| found[l] = Some(s))).unwrap();
        found.into_iter().map(|s| s.unwrap()).collect()
    }

    /// Against plain binary fits; drops stay within their bound, threads change nothing.
    #[test]
    fn labels_match_binary_fits() {
        let (x, starts, rows) = problem();
        let view = crate::matrix::Matrix::from(DenseView::new(&x, 150, 12).unwrap().0);
        let ids: Vec<u32> = (0..150).filter(|i| i % 10 != 7).collect();
        let cost: Vec<f64> = ids.iter().map(|i| 0.5 + f64::from(i % 4)).collect();
        for loss in [LossKind::Hinge, LossKind::SquaredHinge, LossKind::Logistic] {
            for intercept in [Intercept::Free, Intercept::None, Intercept::Penalised(2.0)] {
                let exact = fit_all(loss, intercept, 0.0, 1);
                let sparse = fit_all(loss, intercept, 0.02, 3);
                let mut dropped = 0;
                for label in 0..8 {
                    let (e, s) = (&exact[label], &sparse[label]);
                    if intercept == Intercept::Free && (label == 3 || label == 4) {
                        assert!(
                            e.weights.columns.is_empty()
                                && e.weights.intercept * if label == 3 { -1.0 } else { 1.0 } >= 1.0
                        );
                        continue;
                    }
                    let positive = &rows[starts[label] as usize..starts[label + 1] as usize];
                    let y: Vec<f64> =
                        ids.iter().map(|i| if positive.contains(i) { 1.0 } else { -1.0 }).collect();
                    let plain = Problem { rows: &view, ids: Some(&ids), y: &y, cost: &cost, intercept };
                    let params = Params { tol: 1e-6, solver: SolverKind::Newton, max_iter: 100_000, seed: 0 };
                    let twin = auto::solve(&plain, loss, &params, &Start::default(), &Silent).unwrap();
                    assert!(e.status == Status::Converged, "{loss:?} {intercept:?} {label}");
                    let best = twin.certificate.primal;
                    assert!(
                        (e.certificate.primal / best - 1.0).abs() < 3e-6,
                        "{loss:?} {intercept:?} {label}: {e:?} {:?} {:?}",
                        twin.certificate,
                        twin.status
                    );
                    let mut w = vec![0.0; 12];
                    s.weights.columns.iter().zip(&s.weights.values).for_each(|(j, v)| w[*j as usize] = *v);
                    let value = certificate::primal(&plain, loss, &w, s.weights.intercept, &Silent).unwrap();
                    assert!((value - s.certificate.primal).abs() < 1e-9 * value);
                    assert!(value <= e.certificate.primal * (1.02 + 1e-9));
                    assert!(
                        s.weights.values.iter().all(|v| f64::from(*v as f32) == *v)
                            && s.weights.values.iter().all(|v| *v != 0.0)
                    );
                    dropped += e.weights.columns.len() - s.weights.columns.len();
                }
                assert!(dropped > 0, "{loss:?} {intercept:?}");
            }
        }
    }
}
