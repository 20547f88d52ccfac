//! Which solver for which shape and loss.

use std::cell::LazyCell;

use super::baselines::{cutting_plane, primal_cd};
use super::dual::{DualLoss, DualOptions, EpochOrder, classes, trial};
use super::monitor::Monitor;
use super::newton::factorisation::{Factorisation, factorisation, is_small};
use super::newton::frequent::FrequentColumns;
use super::newton::hinge;
use super::params::{Params, SolverKind};
use super::problem::{Intercept, Problem, Solution, Start, Status};
use super::routes::{
    CLASS_EIGHT, CLASS_FOUR, CLASS_LANES, CLASS_PAIR, CLASSES_FROM, CLASSES_FROM_LOGISTIC, DEAR, EASY,
    EASY_CHEAP, EASY_CHEAP_FREE, EASY_FREQUENT, EASY_FREQUENT_LOGISTIC, EASY_FROM, EASY_LOGISTIC,
    EASY_SAMPLE, GROWTH, GROWTH_LOGISTIC, HARD_HINGE, HARD_HINGE_FREE, LANE_ENTRIES, PATIENCE,
    PATIENCE_DIRECT, SLOW_LANE, TRIAL_LEFT,
};
use super::{certificate, dual, newton};
use crate::loss::{Loss, LossKind, with_loss, with_smooth_loss};
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::{Error, Result};

/// How often [`solve`] tries again, and the share of the tolerance that it then aims at.
const FURTHER_ATTEMPTS: usize = 2;
const SHARPER: f64 = 0.1;

/// Whether Newton, over lanes or for one fit, is the better way for a smooth loss although a factorisation is
/// too dear: many entries per column ([`LANE_ENTRIES`]), but not more columns than rows, where the dual is
/// the smaller problem: madelon in degree 2 (1,814 dense rows, 125,750 columns), squared hinge, C = 2^-10,
/// gap 1e-3, 5 s by dual descent, more than 57 s by Newton; searches over 5 folds of 1,500 dense rows of
/// noise, 6,000 and 20,000 columns: 1.2 times as fast by dual fits with the squared hinge, 1.6 and 1.7 times
/// with the logistic loss.
pub fn prefers_lanes(design: &Design<'_>) -> bool {
    has_many_per_column(design.n_rows(), design.n_cols(), design.nnz())
}

/// [`prefers_lanes`] for so many rows, columns and entries.
pub fn has_many_per_column(n_rows: usize, n_cols: usize, nnz: usize) -> bool {
    nnz >= LANE_ENTRIES.saturating_mul(n_cols) && n_rows >= n_cols
}

/// Mean of `c_i |x_i|^2` over the rows, of `plain` without a constant column: up to [`EASY`] a smooth loss
/// takes dual descent few epochs.
pub(super) fn mean_diagonal(plain: &Design<'_>, cost: &[f64]) -> f64 {
    let total: f64 = (0..plain.n_rows()).map(|i| cost[i] * plain.squared_norm(i)).sum();
    total / plain.n_rows().max(1) as f64
}

/// Whether such a mean is that small for one fit, in which Newton has the block of the most frequent columns
/// where there is one. Whether there is, is asked only where it decides: the answer takes a sample of the
/// rows.
fn is_easy_for_fit(problem: &Problem<'_>, loss: LossKind, mean: f64) -> bool {
    let beside_block = match loss {
        LossKind::Logistic if problem.intercept != Intercept::Free => EASY,
        LossKind::Logistic => EASY_FREQUENT_LOGISTIC,
        _ => EASY_FREQUENT,
    };
    mean <= beside_block || (mean <= EASY && FrequentColumns::of(&problem.design(1.0)).is_none())
}

/// [`mean_diagonal`] about, from [`EASY_SAMPLE`] rows, as norms of all of them take a tenth of a fit where a
/// factorisation is cheap; and that times the entries per column.
fn sampled_diagonal(problem: &Problem<'_>) -> [f64; 2] {
    let plain = problem.design(0.0);
    let sample = (0..plain.n_rows()).step_by(plain.n_rows().div_ceil(EASY_SAMPLE).max(1));
    let n_sampled = sample.len() as f64;
    let mean = sample.map(|i| problem.cost[i] * plain.squared_norm(i)).sum::<f64>() / n_sampled;
    [mean, mean * plain.nnz() as f64 / plain.n_cols().max(1) as f64]
}

/// The solver that a search goes on with at larger values of `C`, after a fit from a solution that ended with
/// `solver` and took so many visits of all rows.
pub fn choose_next(problem: &Problem<'_>, loss: LossKind, solver: SolverKind, visits: f64) -> SolverKind {
    let may_be_slow = solver != SolverKind::Newton && !loss.is_smooth() && visits > SLOW_LANE;
    if may_be_slow && is_hard_hinge(problem) { SolverKind::Newton } else { solver }
}

/// Whether a descent of the hinge would take longer than smooth problems whose steps are factorised.
fn is_hard_hinge(problem: &Problem<'_>) -> bool {
    if !factorisation(&problem.design(1.0)).is_some_and(|f| f.is_worth_it && f.passes < DEAR) {
        return false;
    }
    let least = if problem.intercept == Intercept::Free { HARD_HINGE_FREE } else { HARD_HINGE };
    let [mean, times] = sampled_diagonal(problem);
    mean >= 1.0 && mean * times >= least
}

/// Up to where a loss is easier by dual descent, to a gap of `tol`; none where it never is.
fn easy_up_to(loss: LossKind, intercept: Intercept, tol: f64) -> Option<f64> {
    match loss {
        LossKind::SquaredHinge if intercept == Intercept::Free => Some(EASY_CHEAP_FREE),
        LossKind::SquaredHinge => Some(EASY_CHEAP),
        LossKind::Logistic if tol >= EASY_LOGISTIC => Some(EASY_CHEAP),
        _ => None,
    }
}

/// Whether Newton is the better way for most problems of this shape.
pub(super) fn is_newtons(design: &Design<'_>, factorisation: Option<Factorisation>, loss: LossKind) -> bool {
    factorisation.is_some_and(|f| f.is_worth_it) || (loss.is_smooth() && prefers_lanes(design))
}

/// The solver that [`SolverKind::Auto`] begins with in a search, for values of `C` around that of `problem`.
pub fn choose(problem: &Problem<'_>, loss: LossKind) -> SolverKind {
    choose_by(problem, loss, |mean| mean <= EASY)
}

/// The same where `is_easy` says what [`mean_diagonal`] makes dual descent the better way.
fn choose_by(problem: &Problem<'_>, loss: LossKind, is_easy: impl Fn(f64) -> bool) -> SolverKind {
    let design = problem.design(1.0);
    if is_small(&design) {
        return SolverKind::Newton;
    }
    if !loss.is_smooth() {
        return SolverKind::DualCd;
    }
    let factorisation = factorisation(&design);
    let is_cheap = factorisation.is_some_and(|f| f.passes < DEAR);
    // Tried: Newton for the logistic loss with many columns, 3.5 (imdb, C = 1) to 6 times (C = 16) slower.
    let is_easy = || is_easy(mean_diagonal(&problem.design(0.0), problem.cost));
    if is_newtons(&design, factorisation, loss) && (is_cheap || !is_easy()) {
        SolverKind::Newton
    } else {
        SolverKind::DualCd
    }
}

/// The same for a fit at this `C` only, to a gap of `tol`.
fn choose_for_fit(problem: &Problem<'_>, loss: LossKind, tol: f64) -> SolverKind {
    if !loss.is_smooth() && is_hard_hinge(problem) {
        return SolverKind::Newton;
    }
    let design = problem.design(1.0);
    let solver = choose_by(problem, loss, |mean| is_easy_for_fit(problem, loss, mean));
    let Some(most) = easy_up_to(loss, problem.intercept, tol) else { return solver };
    if solver != SolverKind::Newton || is_small(&design) {
        return solver;
    }
    let is_between = factorisation(&design).is_some_and(|f| (EASY_FROM..DEAR).contains(&f.passes));
    let is_easier = || {
        let [_, times] = sampled_diagonal(problem);
        times <= most
    };
    if is_between && is_easier() { SolverKind::DualCd } else { SolverKind::Newton }
}

/// Where Newton is chosen but its steps would be products, and the first visits of a descent ([`trial`]) say
/// that the fit better begins with one: how much more its second epoch may gain than the first.
fn most_growth(
    problem: &Problem<'_>,
    loss: LossKind,
    seed: u64,
    monitor: &dyn Monitor,
) -> Result<Option<f64>> {
    let design = problem.design(1.0);
    let has_matrix = is_small(&design) || factorisation(&design).is_some_and(|f| f.is_worth_it);
    if has_matrix || !loss.is_smooth() {
        return Ok(None);
    }
    let left = trial::remaining_gain(problem, trial::ONE_IN, seed, monitor)?;
    let most = if loss == LossKind::Logistic { GROWTH_LOGISTIC } else { GROWTH };
    Ok((left <= TRIAL_LEFT).then_some(most))
}

/// Whether the patience with a descent of [`SolverKind::Auto`] is the short one, [`PATIENCE_DIRECT`].
fn is_impatient(problem: &Problem<'_>, loss: LossKind) -> bool {
    let design = problem.design(1.0);
    is_newtons(&design, factorisation(&design), loss) || FrequentColumns::of(&design).is_some()
}

/// A guess of the passes that dual coordinate descent takes to a gap of `tol`, from a row's mean cost and
/// largest squared norm. Measured at C = 1 and C = 16 with rows of norm 1 to a gap of 1e-4: hinge 23 to 42
/// and 139 to 165, squared hinge 12 to 13 and 25 to 31, logistic 8 to 10 and 14 to 15 (imdb, phishing_urls,
/// 20news); convergence is about linear.
pub fn expected_passes(loss: LossKind, mean_cost: f64, max_squared_norm: f64, tol: f64) -> f64 {
    let scale = mean_cost * max_squared_norm;
    let [at_one, power] = with_loss!(loss, loss => loss.expected_passes());
    let digits = (-tol.log10()).clamp(1.0, 16.0);
    at_one * scale.powf(power).clamp(0.5, 20.0) * digits / 4.0
}

/// Solves one binary problem with the solver of `params` and proves the answer ([`certificate`]). Where
/// rounding has made the solver believe in an accuracy that cannot be proved, it goes on to a tenth of it; a
/// fit that cannot be proved after all is [`Status::Stalled`], with the gap that can.
///
/// # Errors
/// [`Error::Cancelled`], [`Error::Overflow`], and [`Error::Parameter`] for a solver that is not one of the
/// loss.
pub fn solve<'a>(
    problem: &Problem<'a>,
    loss: LossKind,
    params: &Params,
    start: &Start,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    let mut solution = attempt(problem, loss, params, start, Aim::Proof, monitor)?;
    certificate::certify(problem, loss, &mut solution, params.tol, monitor)?;
    go_on(problem, loss, params, solution, monitor)
}

/// [`solve`] for problems of the same rows and costs, at most [`classes_at_once`] of them.
///
/// # Errors
/// As for [`solve`].
pub fn solve_classes<'a>(
    problems: &[Problem<'a>],
    loss: LossKind,
    params: &Params,
    monitor: &'a dyn Monitor,
) -> Result<Vec<Solution>> {
    let mut solutions = attempt_classes(problems, loss, params, &[], Aim::Proof, monitor)?;
    certificate::certify_classes(problems, loss, &mut solutions, params.tol, monitor)?;
    let all = problems.iter().zip(solutions);
    all.map(|(problem, solution)| go_on(problem, loss, params, solution, monitor)).collect()
}

/// [`solve_unproved`] for such problems.
///
/// # Errors
/// As for [`solve`].
pub fn solve_classes_unproved<'a>(
    problems: &[Problem<'a>],
    loss: LossKind,
    params: &Params,
    monitor: &'a dyn Monitor,
) -> Result<Vec<Solution>> {
    attempt_classes(problems, loss, params, &[], Aim::Gap, monitor)
}

/// [`solve_in_search`] for such problems, by dual descent, each from its own of the `starts`.
///
/// # Errors
/// As for [`solve`].
pub fn solve_classes_in_search<'a>(
    problems: &[Problem<'a>],
    loss: LossKind,
    params: &Params,
    starts: &[Start],
    monitor: &'a dyn Monitor,
) -> Result<Vec<Solution>> {
    attempt_classes(problems, loss, params, starts, Aim::Weights, monitor)
}

/// Whether so many problems of the same rows and costs are solved at once where dual descent does it
/// ([`dual::classes`]).
pub fn may_be_at_once(n_problems: usize, loss: LossKind) -> bool {
    n_problems >= if loss == LossKind::Logistic { CLASSES_FROM_LOGISTIC } else { CLASSES_FROM }
}

/// How many of so many such problems are solved at once; 1 where each is solved by itself.
pub fn classes_at_once(problem: &Problem<'_>, n_problems: usize, loss: LossKind, params: &Params) -> usize {
    let is_by_descent = || match params.solver {
        SolverKind::Auto => choose_for_fit(problem, loss, params.tol) == SolverKind::DualCd,
        solver => solver == SolverKind::DualCd,
    };
    let is_at_once = may_be_at_once(n_problems, loss) && is_by_descent();
    if is_at_once { lanes_at_once(&[n_problems]) } else { 1 }
}

/// By how many at once all threads are done soonest with problems of which so many each have the same rows
/// and costs. The answers do not depend on it.
pub fn lanes_at_once(counts: &[usize]) -> usize {
    let time = |problems: usize| match problems {
        ..=2 => CLASS_PAIR,
        3..=4 => CLASS_FOUR,
        _ => CLASS_EIGHT,
    };
    let longest = |lanes: usize| {
        let mut busy = vec![0.0; rayon::current_num_threads()];
        let mut begin = |problems: usize| {
            if let Some(first) = busy.iter_mut().min_by(|a, b| f64::total_cmp(a, b)) {
                *first += time(problems);
            }
        };
        counts.iter().flat_map(|n| std::iter::repeat_n(lanes, n / lanes)).for_each(&mut begin);
        counts.iter().map(|n| n % lanes).filter(|rest| *rest > 0).for_each(&mut begin);
        busy.into_iter().fold(0.0, f64::max)
    };
    let all = [2, 4, CLASS_LANES].map(|lanes| (lanes, longest(lanes)));
    all.into_iter().reduce(|a, b| if b.1 <= a.1 { b } else { a }).map_or(1, |(lanes, _)| lanes)
}

/// Goes on until a solution's accuracy is proved or cannot be.
fn go_on<'a>(
    problem: &Problem<'a>,
    loss: LossKind,
    params: &Params,
    mut solution: Solution,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    let mut tol = params.tol;
    for _ in 0..FURTHER_ATTEMPTS {
        if is_settled(&mut solution, params.tol) {
            return Ok(solution);
        }
        let max_iter = params.max_iter.saturating_sub(solution.n_iter);
        if max_iter == 0 {
            solution.status = Status::MaxIter;
            return Ok(solution);
        }
        tol *= SHARPER;
        let params = Params { tol, max_iter, ..*params };
        let start = Start {
            w: Some((solution.w.clone(), solution.intercept)),
            alpha: Some(solution.alpha.clone()),
            is_consistent: false,
        };
        let mut next = attempt(problem, loss, &params, &start, Aim::Proof, monitor)?;
        next.n_iter += solution.n_iter;
        next.passes += solution.passes;
        certificate::certify(problem, loss, &mut next, params.tol, monitor)?;
        solution = next;
    }
    if !is_settled(&mut solution, params.tol) {
        solution.status = Status::Stalled;
    }
    Ok(solution)
}

/// Whether nothing is left to do: the accuracy is proved, or the solver has given up by itself.
fn is_settled(solution: &mut Solution, tol: f64) -> bool {
    let is_proved = solution.certificate.relative_gap() <= tol;
    if is_proved {
        solution.status = Status::Converged;
    }
    is_proved || solution.status != Status::Converged
}

/// [`solve`] without the proof: the certificate is what the solver computed, off by whatever rounding has
/// done. For solutions that are proved elsewhere.
///
/// # Errors
/// As for [`solve`].
pub fn solve_unproved<'a>(
    problem: &Problem<'a>,
    loss: LossKind,
    params: &Params,
    start: &Start,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    attempt(problem, loss, params, start, Aim::Gap, monitor)
}

/// [`solve_unproved`] for the lanes of a search, which go on from one `C` to the next: the better the
/// weights, the sooner the next ones, so that a dual point that would end a fit sooner saves nothing.
///
/// # Errors
/// As for [`solve`].
pub fn solve_in_search<'a>(
    problem: &Problem<'a>,
    loss: LossKind,
    params: &Params,
    start: &Start,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    attempt(problem, loss, params, start, Aim::Weights, monitor)
}

/// What a solution is wanted for.
#[derive(Clone, Copy, PartialEq)]
enum Aim {
    /// It is proved: it comes with evidence.
    Proof,
    /// Its gap.
    Gap,
    /// Its weights, from which others start.
    Weights,
}

fn attempt<'a>(
    problem: &Problem<'a>,
    loss: LossKind,
    params: &Params,
    start: &Start,
    aim: Aim,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    let is_auto = params.solver == SolverKind::Auto;
    let mut solver = match params.solver {
        SolverKind::Auto if aim == Aim::Weights => choose(problem, loss),
        SolverKind::Auto => choose_for_fit(problem, loss, params.tol),
        solver => solver,
    };
    let is_tried = is_auto && solver == SolverKind::Newton && start.w.is_none();
    let most_growth = if is_tried { most_growth(problem, loss, params.seed, monitor)? } else { None };
    if most_growth.is_some() {
        solver = SolverKind::DualCd;
    }
    match (solver, loss) {
        (SolverKind::Newton, _) => return solve_by_newton(problem, loss, params, start, aim, monitor),
        (SolverKind::PrimalCd, LossKind::SquaredHinge) => {
            return primal_cd::solve(problem, params, start, monitor);
        }
        (SolverKind::CuttingPlane, LossKind::Hinge) => {
            return cutting_plane::solve(problem, params, start, monitor);
        }
        (
            SolverKind::PrimalCd
            | SolverKind::CuttingPlane
            | SolverKind::Subgradient
            | SolverKind::CrammerSinger,
            _,
        ) => {
            let rule = "a solver of a binary problem with the loss: 'primal_cd' is for 'squared_hinge', \
                        'cutting_plane' for 'hinge'";
            return Err(Error::Parameter { name: "solver", value: format!("{solver:?} for {loss:?}"), rule });
        }
        _ => {}
    }
    // Most descents end before anybody has to know.
    let is_impatient = LazyCell::new(|| is_impatient(problem, loss));
    let is_slow =
        |done, left| is_out_of_patience(problem, done, left, || most_growth.is_none() && *is_impatient);
    let is_slow = is_auto.then_some(&is_slow as &dyn Fn(f64, f64) -> bool);
    let order = EpochOrder::of(solver);
    let options = DualOptions { order, is_slow, most_growth, is_proved: aim == Aim::Proof };
    let solution = with_loss!(loss, loss => {
        dual::solve(problem, loss.method(problem.y, problem.cost), params, options, start, monitor)?
    });
    finish_descent(problem, loss, params, solution, aim, monitor)
}

/// [`attempt`] for problems that are solved at once, with or without starts.
fn attempt_classes<'a>(
    problems: &[Problem<'a>],
    loss: LossKind,
    params: &Params,
    starts: &[Start],
    aim: Aim,
    monitor: &'a dyn Monitor,
) -> Result<Vec<Solution>> {
    let is_impatient = LazyCell::new(|| is_impatient(&problems[0], loss));
    let is_slow = |done: f64, left: f64| is_out_of_patience(&problems[0], done, left, || *is_impatient);
    let is_slow = (params.solver == SolverKind::Auto).then_some(&is_slow as &dyn Fn(f64, f64) -> bool);
    let is_proved = aim == Aim::Proof;
    let options = DualOptions { order: EpochOrder::Shrinking, is_slow, most_growth: None, is_proved };
    let solutions =
        with_loss!(loss, loss => classes::solve(problems, loss, params, options, starts, monitor)?);
    let all = problems.iter().zip(solutions);
    all.map(|(problem, solution)| finish_descent(problem, loss, params, solution, aim, monitor)).collect()
}

/// Whether [`SolverKind::Auto`] gives a descent up after so many visits of all rows, if the gap may need so
/// many more. Not where columns are more than rows, unless Newton suits the shape: the dual is the smaller
/// problem, and descent ends. Three classes of 20news and the others as one, squared hinge, free intercept,
/// two threads, C = 1024, 1e-2 and 1e-4: 17.6 and 31 s by Newton after [`PATIENCE`], 2.2 and 3.0 by descent
/// to the end, 490 visits at most.
fn is_out_of_patience(problem: &Problem<'_>, done: f64, left: f64, is_impatient: impl Fn() -> bool) -> bool {
    let is_wide = || {
        let design = problem.design(0.0);
        design.n_cols() > design.n_rows()
    };
    PATIENCE_DIRECT.is_over(done, left) && (is_impatient() || (PATIENCE.is_over(done, left) && !is_wide()))
}

/// The solution of a descent, or, where it was given up, Newton's from there.
fn finish_descent<'a>(
    problem: &Problem<'a>,
    loss: LossKind,
    params: &Params,
    solution: Solution,
    aim: Aim,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    if solution.status != Status::Stalled {
        return Ok(solution);
    }
    let is_consistent = solution.is_consistent;
    let start =
        Start { w: Some((solution.w, solution.intercept)), alpha: Some(solution.alpha), is_consistent };
    let mut finished = solve_by_newton(problem, loss, params, &start, aim, monitor)?;
    finished.passes += solution.passes;
    Ok(finished)
}

fn solve_by_newton<'a>(
    problem: &Problem<'a>,
    loss: LossKind,
    params: &Params,
    start: &Start,
    aim: Aim,
    monitor: &'a dyn Monitor,
) -> Result<Solution> {
    with_smooth_loss!(
        loss,
        loss => newton::solve(problem, loss, params, start, aim != Aim::Weights, monitor),
        else hinge::solve(problem, params, start, monitor)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Silent;
    use crate::matrix::Matrix;
    use crate::matrix::csr::CsrView;
    use crate::matrix::dense::DenseView;

    /// What a fit and a search begin with where every row has ten ones in 2,000 columns, at this cost.
    fn chosen(n: usize, loss: LossKind, intercept: Intercept, cost: f64) -> [SolverKind; 2] {
        let starts: Vec<i64> = (0..=n as i64).map(|i| 10 * i).collect();
        let list: Vec<i32> =
            (0..n).flat_map(|i| (0..10).map(move |k| 200 * k + (i * 7 + 1) as i32 % 200)).collect();
        let values = vec![1.0; list.len()];
        let rows: Matrix<'_> = CsrView::new(&starts, &list, &values, 2000).unwrap().0.into();
        let y: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let cost = vec![cost; n];
        let problem = Problem { rows: &rows, ids: None, y: &y, cost: &cost, intercept };
        [choose_for_fit(&problem, loss, 1e-4), choose(&problem, loss)]
    }

    /// What says which class a row has.
    #[derive(Clone, Copy, Debug)]
    enum Teacher {
        Lot,
        FirstColumn,
        Weights,
    }

    /// Whether a fit of 20,000 rows of ten ones in 2,000 columns is tried by descent, and the solver it ends
    /// with.
    fn course(loss: LossKind, teacher: Teacher, intercept: Intercept) -> (bool, SolverKind) {
        let mut random = dual::active::random(3, 0);
        let mut below = |n: usize| dual::active::below(&mut random, n);
        let (n, d) = (20_000, 2000);
        let hidden: Vec<usize> = (0..d).map(|_| below(1001)).collect();
        let starts: Vec<i64> = (0..=n as i64).map(|i| 10 * i).collect();
        let list: Vec<i32> = (0..10 * n).map(|e| ((e % 10) * 200 + below(200)) as i32).collect();
        let is_positive = |row: &[i32]| match teacher {
            Teacher::Lot => below(2) == 0,
            Teacher::FirstColumn => row[0] % 2 == 0,
            Teacher::Weights => row.iter().map(|&j| hidden[j as usize]).sum::<usize>() + below(1000) > 5500,
        };
        let y: Vec<f64> = list
            .chunks(10)
            .map(is_positive)
            .map(|is_positive| if is_positive { 1.0 } else { -1.0 })
            .collect();
        let values = vec![1.0; list.len()];
        let rows: Matrix<'_> = CsrView::new(&starts, &list, &values, d).unwrap().0.into();
        let cost = vec![4.0; n];
        let problem = Problem { rows: &rows, ids: None, y: &y, cost: &cost, intercept };
        let params = Params { tol: 1e-2, ..Params::default() };
        let is_tried = most_growth(&problem, loss, params.seed, &Silent).unwrap().is_some();
        let solution = solve(&problem, loss, &params, &Start::default(), &Silent).unwrap();
        assert!(solution.certificate.relative_gap() <= params.tol);
        (is_tried, solution.solver)
    }

    #[test]
    fn what_newton_would_do_by_products_begins_with_descent_where_rows_agree() {
        use SolverKind::{DualCd, Newton};
        let courses = [
            (Teacher::Lot, (false, Newton)),
            (Teacher::FirstColumn, (true, DualCd)),
            (Teacher::Weights, (true, Newton)),
        ];
        for loss in [LossKind::SquaredHinge, LossKind::ModifiedHuber, LossKind::Logistic] {
            for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised(1.0)] {
                for (teacher, expected) in courses {
                    let found = course(loss, teacher, intercept);
                    assert_eq!(found, expected, "{loss:?} {teacher:?} {intercept:?}");
                }
            }
        }
    }

    #[test]
    fn a_hinge_that_is_hard_for_a_descent_begins_with_smooth_problems() {
        use SolverKind::{DualCd, Newton};
        let (n, d) = (20_000, 20);
        let values: Vec<f64> = (0..n * d).map(|k| ((k * 37 % 101) as f64 - 50.0) / 50.0).collect();
        let rows: Matrix<'_> = DenseView::new(&values, n, d).unwrap().0.into();
        let y: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
        let of_mean = |loss, intercept, mean: f64| {
            let plain = Design { rows: &rows, ids: None, bias: 0.0 };
            let cost = vec![mean * n as f64 / (0..n).map(|i| plain.squared_norm(i)).sum::<f64>(); n];
            let problem = Problem { rows: &rows, ids: None, y: &y, cost: &cost, intercept };
            let next = |visits| choose_next(&problem, loss, DualCd, visits);
            let first = [choose_for_fit(&problem, loss, 1e-4), choose(&problem, loss)];
            (first, [next(SLOW_LANE), next(SLOW_LANE + 1.0)])
        };
        let per_column = n as f64;
        for (intercept, least) in [
            (Intercept::None, HARD_HINGE),
            (Intercept::Penalised(1.0), HARD_HINGE),
            (Intercept::Free, HARD_HINGE_FREE),
        ] {
            let least = (least / per_column).sqrt().max(1.0);
            let hard = of_mean(LossKind::Hinge, intercept, 1.1 * least);
            assert_eq!(hard, ([Newton, DualCd], [DualCd, Newton]));
            let easy = of_mean(LossKind::Hinge, intercept, 0.9 * least);
            assert_eq!(easy, ([DualCd, DualCd], [DualCd, DualCd]));
            let [_, smooth] = of_mean(LossKind::SquaredHinge, intercept, 1.1 * least).1;
            assert_eq!(smooth, DualCd);
        }
        // Steps that cannot be factorised.
        assert_eq!(chosen(20_000, LossKind::Hinge, Intercept::Free, 1e4), [DualCd, DualCd]);
    }

    #[test]
    fn a_block_of_frequent_columns_makes_newton_the_better_way_sooner() {
        use SolverKind::{DualCd, Newton};
        let of_mean = |loss, intercept, mean: f64| chosen(250_000, loss, intercept, mean / 10.0);
        let losses = [LossKind::SquaredHinge, LossKind::ModifiedHuber, LossKind::Logistic];
        for (loss, free) in losses.into_iter().zip([EASY_FREQUENT, EASY_FREQUENT, EASY_FREQUENT_LOGISTIC]) {
            let none = if loss == LossKind::Logistic { EASY } else { EASY_FREQUENT };
            for (intercept, most) in [(Intercept::None, none), (Intercept::Free, free)] {
                assert_eq!(of_mean(loss, intercept, 0.9 * most), [DualCd, DualCd]);
                let search = if most == EASY { Newton } else { DualCd };
                assert_eq!(of_mean(loss, intercept, 1.1 * most), [Newton, search]);
            }
        }
        // Too few rows for a block.
        let few = chosen(20_000, LossKind::SquaredHinge, Intercept::None, 1.1 * EASY_FREQUENT / 10.0);
        assert_eq!(few, [DualCd, DualCd]);
    }
}
