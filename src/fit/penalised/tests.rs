use super::coordinates::penalty;
use super::entries::RowModels;
use super::newton::NewtonSteps;
use super::smooth_part::{Losses, SmoothPart};
use super::*;
use crate::fit::problem::{Problem, Start};
use crate::fit::{Intercept, Silent, auto};
use crate::matrix::Matrix;
use crate::matrix::dense::DenseView;
use crate::matrix::design::Design;
use proptest::prelude::*;

const SMOOTH: [LossKind; 3] = [LossKind::SquaredHinge, LossKind::Logistic, LossKind::ModifiedHuber];

/// Entries that repeat no pattern, some of them zero.
pub fn entries(n: usize, d: usize, seed: u64) -> Vec<f64> {
    let mut random = crate::fit::dual::active::random(seed, 3);
    let mut next = || crate::fit::dual::active::below(&mut random, 2001) as f64 / 1000.0 - 1.0;
    (0..n * d).map(|_| next()).map(|v| if v.abs() < 0.3 { 0.0 } else { v }).collect()
}

/// The slow, obvious twin: proximal gradient steps of a certain length, as many as it takes.
fn twin<L: Loss>(x: &[f64], d: usize, problem: &PenalisedProblem<'_>, loss: L) -> (Vec<f64>, f64) {
    let n = problem.y.len();
    let squares: f64 =
        (0..n).map(|i| problem.cost[i] * x[i * d..][..d].iter().map(|v| v * v).sum::<f64>()).sum();
    let bend = (loss.largest_curvature() * squares).max(1e-9);
    let value = |w: &[f64]| {
        let of_row = |i: usize| {
            let z: f64 = x[i * d..][..d].iter().zip(w).map(|(x, w)| x * w).sum();
            problem.cost[i] * loss.value(problem.y[i] * z)
        };
        (0..n).map(of_row).sum::<f64>() + penalty(|j| problem.terms[j], w)
    };
    let mut w: Vec<f64> = problem.terms.iter().map(|term| term.clip(0.0)).collect();
    for _ in 0..60_000 {
        let mut slope = vec![0.0; d];
        for i in 0..n {
            let row = &x[i * d..][..d];
            let z: f64 = row.iter().zip(&w).map(|(x, w)| x * w).sum();
            let g = problem.cost[i] * problem.y[i] * loss.derivative(problem.y[i] * z);
            slope.iter_mut().zip(row).for_each(|(s, x)| *s += g * x);
        }
        let mut moved = 0.0f64;
        for j in 0..d {
            let next = problem.terms[j].minimiser(w[j], slope[j], bend);
            moved = moved.max((next - w[j]).abs());
            w[j] = next;
        }
        if moved == 0.0 {
            break;
        }
    }
    let best = value(&w);
    (w, best)
}

/// Labels of both signs as a rule, and costs, of which every fifth is 0.
fn labels_and_costs(n: usize, cost: f64, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let is_positive = |i: usize| (seed as usize + i * i).is_multiple_of(3);
    let cost_of = |i: usize| if i % 5 == 4 { 0.0 } else { cost * (1.0 + (i % 3) as f64) };
    ((0..n).map(|i| if is_positive(i) { 1.0 } else { -1.0 }).collect(), (0..n).map(cost_of).collect())
}

pub fn term(kind: usize, j: usize) -> Term {
    let [l1, l2] = [[1.0, 0.0], [0.4, 0.6], [0.0, 1.0], [1.5, 0.0]][kind % 4];
    let (lower, upper) = match (kind / 4 + j) % 4 {
        0 => (f64::NEG_INFINITY, f64::INFINITY),
        1 => (0.0, f64::INFINITY),
        2 => (-0.2, 0.1),
        _ => (f64::NEG_INFINITY, 0.3),
    };
    Term { l1, l2, lower, upper }
}

/// A random problem with what it borrows.
pub struct Table {
    values: Vec<f64>,
    columns: Columns,
    y: Vec<f64>,
    cost: Vec<f64>,
    terms: Vec<Term>,
}

impl Table {
    /// Of `n` rows and `d` columns with penalties of a kind, and the free one of an intercept.
    pub fn random((n, d): (usize, usize), kind: usize, has_intercept: bool, cost: f64, seed: u64) -> Self {
        let values = entries(n, d, seed);
        let rows: Matrix<'_> = DenseView::new(&values, n, d).unwrap().0.into();
        let bias = if has_intercept { 1.0 } else { 0.0 };
        let columns = Columns::of(&Design { rows: &rows, ids: None, bias });
        let (y, cost) = labels_and_costs(n, cost, seed);
        let mut terms: Vec<Term> = (0..d).map(|j| term(kind, j)).collect();
        terms.extend(has_intercept.then_some(Term::FREE));
        Self { values, columns, y, cost, terms }
    }

    /// The signs of a column's entries.
    pub fn signs(&self, j: usize) -> Vec<f64> {
        let d = self.values.len() / self.y.len();
        self.values.iter().skip(j).step_by(d).map(|x| x.signum()).collect()
    }

    /// Whether rows of both labels have costs.
    pub fn has_both_signs(&self) -> bool {
        let seen = |sign: f64| self.y.iter().zip(&self.cost).any(|(y, cost)| *y == sign && *cost > 0.0);
        seen(1.0) && seen(-1.0)
    }

    pub fn problem(&self) -> PenalisedProblem<'_> {
        let Self { columns, y, cost, terms, .. } = self;
        PenalisedProblem { columns, y, cost, terms, reach: None }
    }
}

/// The factor by which descents go further behind a step on one row, from zero weight. Its slope falls off
/// with the logistic loss, and on a straight line with the squared hinge.
fn share_after<L: Loss>(loss: L, cost: f64) -> f64 {
    let columns = Columns::of(&Design {
        rows: &Matrix::from(DenseView::new(&[1.0], 1, 1).unwrap().0),
        ids: None,
        bias: 0.0,
    });
    let (y, cost) = ([1.0], [cost]);
    let terms = [Term { l1: 0.1, l2: 0.0, lower: f64::NEG_INFINITY, upper: f64::INFINITY }];
    let problem = PenalisedProblem { columns: &columns, y: &y, cost: &cost, terms: &terms, reach: None };
    let part = BinaryLosses { problem: &problem, smooth: &Weighted { loss, y: &y, cost: &cost } };
    let mut steps = NewtonSteps::new(&part, 1, &Silent);
    let losses = Losses::at(&part, vec![0.0]);
    let before = steps.share();
    steps.minimise(&mut [0.0], losses, &[0], None, 0.0).unwrap();
    steps.go_further();
    steps.share() / before
}

#[test]
fn descents_go_further_behind_a_model_that_was_right() {
    assert!(share_after(crate::loss::SquaredHinge, 0.3) < 1.0);
    assert_eq!(share_after(crate::loss::Logistic, 100.0), 1.0);
}

proptest! {
    /// Half parabolas are the squared hinge, wherever weights move.
    #[test]
    fn half_parabolas_are_the_squared_hinge(
        n in 2..24usize,
        d in 1..8usize,
        kind in 0..16usize,
        cost in 0.02..8.0f64,
        seed in 0..9999u64,
        (column, by) in (0..8usize, -2.0..2.0f64),
    ) {
        let table = Table::random((n, d), kind, false, cost, seed);
        let problem = table.problem();
        let PenalisedProblem { y, cost, .. } = problem;
        let loss = crate::loss::SquaredHinge;
        let part = BinaryLosses { problem: &problem, smooth: &Weighted { loss, y, cost } };
        let (coordinates, all) = (part.coordinates(), (0..d as u32).collect::<Vec<u32>>());
        let w = coordinates.first_weights(None);
        let here = Losses::at(&part, coordinates.decisions(&w));
        let mut rows = part.half_parabolas(&all, &here).unwrap();
        let k = column % d;
        let mut along = rows.zeros();
        rows.spread(k, by, &mut along);
        let there = Losses::at(&part, here.z.iter().zip(&along).map(|(z, by)| z + by).collect());
        let (change, size) = (rows.change(&along), 1.0 + here.value + there.value);
        prop_assert!((change - (there.value - here.value)).abs() <= 1e-12 * size);
        rows.shift(k, by);
        let model = part.row_models(&all, &there, &there.slope);
        for j in 0..d {
            let size = 1.0 + model.bend(j);
            prop_assert!((rows.slope(j) - model.slope(j)).abs() <= 1e-11 * size * (1.0 + by.abs()));
            prop_assert!((rows.bend(j) - model.bend(j)).abs() <= 1e-12 * size);
        }
        along.iter_mut().for_each(|by| *by = -*by);
        rows.go(&along);
        let model = part.row_models(&all, &here, &here.slope);
        for j in 0..d {
            let size = 1.0 + model.bend(j);
            prop_assert!((rows.slope(j) - model.slope(j)).abs() <= 1e-11 * size * (1.0 + by.abs()));
        }
    }
}

#[test]
fn only_the_squared_hinge_is_made_of_half_parabolas() {
    let table = Table::random((9, 3), 0, false, 1.0, 1);
    let problem = table.problem();
    let (y, cost) = (problem.y, problem.cost);
    let part = BinaryLosses { problem: &problem, smooth: &Weighted { loss: crate::loss::Logistic, y, cost } };
    let losses = Losses::at(&part, vec![0.0; 9]);
    assert!(part.half_parabolas(&[0, 1, 2], &losses).is_none());
    assert!(part.row_weights(&losses).is_none());
}

proptest! {
    /// The slopes of a step's model are a dual point: within the box and not above the optimum, which they
    /// reach where steps end.
    #[test]
    fn slopes_of_models_prove(
        n in 2..24usize,
        d in 1..8usize,
        kind in 0..16usize,
        has_intercept in any::<bool>(),
        cost in 0.02..8.0f64,
        n_steps in prop::sample::select(vec![1usize, 2, 60]),
        seed in 0..9999u64,
    ) {
        let table = Table::random((n, d), kind, has_intercept, cost, seed);
        prop_assume!(!has_intercept || table.has_both_signs());
        let problem = table.problem();
        let PenalisedProblem { y, cost, terms, .. } = problem;
        let params = Params { tol: 1e-9, ..Params::default() };
        let optimum = solve(&problem, LossKind::Logistic, &params, None, &Silent).unwrap().certificate;

        let part = BinaryLosses {
            problem: &problem,
            smooth: &Weighted { loss: crate::loss::Logistic, y, cost },
        };
        let coordinates = part.coordinates();
        let mut w = coordinates.first_weights(None);
        let losses = Losses::at(&part, coordinates.decisions(&w));
        let all: Vec<u32> = (0..terms.len() as u32).collect();
        let mut steps = NewtonSteps::new(&part, n_steps, &Silent);
        steps.go_far();
        let losses = steps.minimise(&mut w, losses, &all, None, 0.0).unwrap();
        steps.passes += 1e3;
        let Some(slopes) = steps.take_model_slopes() else {
            prop_assert!(has_intercept);
            return Ok(());
        };
        for ((slope, y), cost) in slopes.iter().zip(y).zip(cost) {
            prop_assert!((0.0..=*cost).contains(&(-y * slope)), "{slope} of {cost}");
        }
        let known = (&slopes[..], &coordinates.all_slopes(&slopes)[..]);
        let found = dual_point::certificate(&part, losses.value, known, &w);
        let size = optimum.primal.abs();
        prop_assert!(found.dual <= optimum.primal + 1e-9 * size, "{found:?}, {optimum:?}");
        prop_assert!(n_steps < 60 || found.dual >= optimum.dual - 1e-4 * size, "{found:?}, {optimum:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn finds_the_twins_optimum(
        n in 2..24usize,
        d in 1..8usize,
        kind in 0..16usize,
        has_intercept in any::<bool>(),
        cost in 0.02..8.0f64,
        loss in prop::sample::select(SMOOTH.to_vec()),
        seed in 0..9999u64,
    ) {
        let table = Table::random((n, d), kind, has_intercept, cost, seed);
        prop_assume!(!has_intercept || table.has_both_signs());
        let (problem, Table { values, columns, terms, .. }) = (table.problem(), &table);
        let params = Params { tol: 1e-9, ..Params::default() };
        let found = solve(&problem, loss, &params, None, &Silent).unwrap();
        prop_assert_eq!(found.status, Status::Converged, "{:?}", found);
        let width = columns.len();
        let one = has_intercept.then_some(1.0);
        let wide: Vec<f64> = values.chunks(d).flat_map(|row| row.iter().copied().chain(one)).collect();
        let run = || with_smooth_loss!(loss, loss => twin(&wide, width, &problem, loss), else unreachable!());
        let (_, best) = run();
        let Certificate { primal, dual } = found.certificate;
        prop_assert!(dual <= best * (1.0 + 1e-14), "dual {dual} above {best}");
        prop_assert!(primal <= best * (1.0 + 1e-8) , "primal {primal} above {best}");
        for (w, term) in found.w.iter().zip(terms) {
            prop_assert!(term.lower <= *w && *w <= term.upper);
        }
        // From its own answer nothing is left to do; from nonsense the same answer.
        let again = solve(&problem, loss, &params, Some(&found.w), &Silent).unwrap();
        prop_assert!(again.n_iter <= 1 && again.certificate.relative_gap() <= 1e-9);
        let nonsense: Vec<f64> = (0..width).map(|j| j as f64 - 2.0).collect();
        let other = solve(&problem, loss, &params, Some(&nonsense), &Silent).unwrap();
        prop_assert!((other.certificate.primal - primal).abs() <= 1e-8 * primal, "{other:?}, not {found:?}");
    }

    #[test]
    fn weights_leave_zero_at_the_largest_null_cost(n in 4..30usize, d in 1..8usize, seed in 0..9999u64) {
        let values = entries(n, d, seed);
        let rows: Matrix<'_> = DenseView::new(&values, n, d).unwrap().0.into();
        let columns = Columns::of(&Design { rows: &rows, ids: None, bias: 1.0 });
        let y: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let mut terms = vec![Term { l1: 0.7, ..Term::FREE }; d];
        terms.push(Term::FREE);
        for loss in [LossKind::SquaredHinge, LossKind::Logistic] {
            let ones = vec![1.0; n];
            let (columns, terms) = (&columns, &terms[..]);
            let problem = PenalisedProblem { columns, y: &y, cost: &ones, terms, reach: None };
            let Some(c) = start::largest_null_cost(&problem, loss, &Silent).unwrap() else { continue };
            let nonzero = |c: f64| {
                let costs = vec![c; n];
                let params = Params { tol: 1e-10, ..Params::default() };
                let problem = PenalisedProblem { cost: &costs, ..problem };
                let found = solve(&problem, loss, &params, None, &Silent);
                found.unwrap().w[..d].iter().filter(|w| **w != 0.0).count()
            };
            prop_assert_eq!(nonzero(c * 0.999), 0);
            prop_assert!(nonzero(c * 1.01) > 0);
        }
    }

    /// The certificate is the proof; where the penalty is the plain square the hinge's own solver has the
    /// same optimum.
    #[test]
    fn the_hinge_is_solved_and_proved(
        n in 2..24usize,
        d in 1..8usize,
        kind in 0..17usize,
        has_intercept in any::<bool>(),
        cost in 0.02..8.0f64,
        seed in 0..9999u64,
    ) {
        let values = entries(n, d, seed);
        let rows: Matrix<'_> = DenseView::new(&values, n, d).unwrap().0.into();
        let bias = if has_intercept { 1.0 } else { 0.0 };
        let columns = Columns::of(&Design { rows: &rows, ids: None, bias });
        let (y, costs) = labels_and_costs(n, cost, seed);
        let seen = |sign: f64| (0..n).any(|i| y[i] == sign && costs[i] > 0.0);
        prop_assume!(!has_intercept || (seen(1.0) && seen(-1.0)));
        let is_plain = kind == 16;
        let of = |j| if is_plain { Term { l1: 0.0, l2: 1.0, ..Term::FREE } } else { term(kind, j) };
        let mut terms: Vec<Term> = (0..d).map(of).collect();
        terms.extend(has_intercept.then_some(Term::FREE));
        let problem = PenalisedProblem { columns: &columns, y: &y, cost: &costs, terms: &terms, reach: None };
        let params = Params { tol: 1e-7, ..Params::default() };
        let found = solve(&problem, LossKind::Hinge, &params, None, &Silent).unwrap();
        prop_assert_eq!(found.status, Status::Converged, "{:?}", found);
        let z = problem.coordinates().decisions(&found.w);
        let losses: f64 = (0..n).map(|i| costs[i] * (1.0 - y[i] * z[i]).max(0.0)).sum();
        let primal = losses + problem.coordinates().penalty(&found.w);
        prop_assert!((found.certificate.primal - primal).abs() <= 1e-12 * primal.max(1e-300));
        for (w, term) in found.w.iter().zip(&terms) {
            prop_assert!(term.lower <= *w && *w <= term.upper);
        }
        let nonsense: Vec<f64> = (0..columns.len()).map(|j| j as f64 - 2.0).collect();
        let other = solve(&problem, LossKind::Hinge, &params, Some(&nonsense), &Silent).unwrap();
        prop_assert!(other.certificate.dual <= primal && found.certificate.dual <= other.certificate.primal);
        if is_plain {
            let ids: Vec<u32> = (0..n as u32).filter(|&i| costs[i as usize] > 0.0).collect();
            let of = |all: &[f64]| -> Vec<f64> { ids.iter().map(|&i| all[i as usize]).collect() };
            let (y, cost) = (of(&y), of(&costs));
            let intercept = if has_intercept { Intercept::Free } else { Intercept::None };
            let plain = Problem { rows: &rows, ids: Some(&ids), y: &y, cost: &cost, intercept };
            let best = auto::solve(&plain, LossKind::Hinge, &params, &Start::default(), &Silent);
            let best = best.unwrap().certificate;
            prop_assert!(found.certificate.dual <= best.primal && best.dual <= found.certificate.primal);
        }
    }
}
