//! All solvers against the oracle and against each other, on random and on awkward problems.

use hinge::fit::dual::active::{ActiveSet, random};
use hinge::fit::{Intercept, Monitor, Params, Silent, Solution, SolverKind, Start, Status, auto};
use hinge::labels::{self, Classification, Labels};
use hinge::loss::LossKind;
use hinge::matrix::Rows;
use hinge::{Error, Result};
use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::naive::{Data, dot};

const LOSSES: [LossKind; 4] =
    [LossKind::Hinge, LossKind::SquaredHinge, LossKind::Logistic, LossKind::ModifiedHuber];
const INTERCEPTS: [Intercept; 3] = [Intercept::None, Intercept::Free, Intercept::Penalised(0.7)];
const SOLVERS: [SolverKind; 5] = [
    SolverKind::Auto,
    SolverKind::DualCd,
    SolverKind::DualCdPermuted,
    SolverKind::DualCdOnline,
    SolverKind::Newton,
];

fn solve(data: &Data, loss: LossKind, intercept: Intercept, solver: SolverKind, tol: f64) -> Solution {
    let view = data.view();
    let params = Params { solver, tol, max_iter: 200_000, seed: 7 };
    auto::solve(&data.problem(&view, intercept), loss, &params, &Start::default(), &Silent).unwrap()
}

fn data() -> impl Strategy<Value = Data> {
    (2..14usize, 1..7usize).prop_flat_map(|(n, d)| {
        let entry = prop_oneof![2 => Just(0.0), 3 => -2.0..2.0f64];
        let rows = prop::collection::vec(prop::collection::vec(entry, d), n);
        let y = prop::collection::vec(prop::bool::ANY, n);
        let cost = prop::collection::vec(0.05..5.0f64, n);
        (rows, y, cost).prop_map(|(rows, y, cost)| {
            let mut y: Vec<f64> = y.into_iter().map(|p| if p { 1.0 } else { -1.0 }).collect();
            (y[0], y[1]) = (1.0, -1.0);
            Data::new(rows, y, cost)
        })
    })
}

/// What every solution promises, whoever made it.
fn check_promises(
    data: &Data,
    loss: LossKind,
    intercept: Intercept,
    s: &Solution,
) -> std::result::Result<(), TestCaseError> {
    let primal = data.primal(loss, intercept, &s.w, s.intercept);
    let scale = 1.0 + primal.abs();
    prop_assert!((primal - s.certificate.primal).abs() <= 1e-9 * scale, "primal {primal} {s:?}");
    prop_assert!(s.certificate.primal >= s.certificate.dual - 1e-10 * scale, "{s:?}");
    prop_assert_eq!(s.status, Status::Converged);
    prop_assert!(data.is_minimum(
        loss,
        intercept,
        &s.w,
        s.intercept,
        (primal - s.certificate.dual) + 1e-9 * scale
    ));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn box_losses_reach_the_oracle(data in data(), loss in 0..2usize, penalised in prop::bool::ANY) {
        let (loss, intercept) = (LOSSES[loss], if penalised { INTERCEPTS[2] } else { INTERCEPTS[0] });
        let best = data.optimum(loss, intercept);
        for solver in SOLVERS {
            let s = solve(&data, loss, intercept, solver, 1e-8);
            check_promises(&data, loss, intercept, &s)?;
            let distance = s.certificate.primal - best;
            prop_assert!(distance <= 1.1e-8 * best.abs() + 1e-12, "{solver:?} is {distance} above {best}");
            prop_assert!(
                s.certificate.dual <= best * (1.0 + 1e-10) + 1e-12,
                "{solver:?}: dual above the optimum"
            );
        }
    }

    #[test]
    fn solvers_agree_for_every_loss_and_intercept(
        data in data(),
        loss in 0..LOSSES.len(),
        intercept in 0..3usize,
    ) {
        let (loss, intercept) = (LOSSES[loss], INTERCEPTS[intercept]);
        let solutions: Vec<Solution> =
            SOLVERS.iter().map(|&solver| solve(&data, loss, intercept, solver, 1e-7)).collect();
        for s in &solutions {
            check_promises(&data, loss, intercept, s)?;
            // No certificate may contradict another's objective.
            for other in &solutions {
                let scale = 1.0 + other.certificate.primal;
                prop_assert!(s.certificate.dual <= other.certificate.primal + 1e-10 * scale);
            }
        }
    }

    /// Its twin visits the same permutations of all rows, with the whole of `w` made anew at every step.
    #[test]
    fn permuted_descent_visits_every_row_in_every_epoch(
        data in data(),
        is_squared in prop::bool::ANY,
        epochs in 1..6usize,
    ) {
        let loss = if is_squared { LossKind::SquaredHinge } else { LossKind::Hinge };
        let (n, view) = (data.y.len(), data.view());
        let params = Params { solver: SolverKind::DualCdPermuted, tol: 1e-15, max_iter: epochs, seed: 7 };
        let problem = data.problem(&view, Intercept::None);
        let s = auto::solve(&problem, loss, &params, &Start::default(), &Silent).unwrap();
        prop_assume!(s.status == Status::MaxIter);
        prop_assert_eq!((s.solver, s.n_iter), (SolverKind::DualCdPermuted, epochs));
        let (mut alpha, mut order, mut r) = (vec![0.0f64; n], ActiveSet::all(n), random(7, 0));
        for _ in 0..epochs {
            order.shuffle(&mut r);
            for i in (0..n).map(|s| order.get(s).unwrap()) {
                let (upper, diagonal) =
                    if is_squared { (f64::INFINITY, 0.5 / data.cost[i]) } else { (data.cost[i], 0.0) };
                let product: f64 =
                    (0..n).map(|j| data.y[j] * alpha[j] * dot(&data.rows[i], &data.rows[j])).sum();
                let g = data.y[i] * product - 1.0 + diagonal * alpha[i];
                let curvature = dot(&data.rows[i], &data.rows[i]) + diagonal;
                if !(alpha[i] == 0.0 && g >= 0.0 || alpha[i] == upper && g <= 0.0) {
                    alpha[i] = (alpha[i] - g / curvature).clamp(0.0, upper);
                }
            }
        }
        for i in 0..n {
            let scale = 1.0 + alpha[i].abs();
            prop_assert!((alpha[i] - s.alpha[i]).abs() <= 1e-9 * scale, "row {i}: {alpha:?} {:?}", s.alpha);
        }
    }

    #[test]
    fn dual_variables_make_the_weights(data in data(), loss in 0..LOSSES.len()) {
        let s = solve(&data, LOSSES[loss], Intercept::None, SolverKind::DualCd, 1e-6);
        // A fit of the hinge returns the best primal point on its way: within sqrt(2 gap) of the optimum in
        // two parts of the gap, as the weights of its dual variables are.
        prop_assert_eq!(s.is_consistent, LOSSES[loss] != LossKind::Hinge);
        let gap = (s.certificate.primal - s.certificate.dual).max(0.0);
        let near = if s.is_consistent { 0.0 } else { 2.0 * gap.sqrt() };
        for j in 0..s.w.len() {
            let w: f64 = (0..data.y.len()).map(|i| s.alpha[i] * data.y[i] * data.rows[i][j]).sum();
            prop_assert!(
                (w - s.w[j]).abs() <= near + 1e-9 * (1.0 + w.abs()),
                "column {j}: {w} and {}",
                s.w[j]
            );
        }
    }

    #[test]
    fn a_row_of_cost_two_is_the_row_twice(data in data(), loss in 0..LOSSES.len(), intercept in 0..3usize) {
        let (loss, intercept) = (LOSSES[loss], INTERCEPTS[intercept]);
        let mut heavy = data.clone();
        heavy.cost[0] *= 2.0;
        let double = |v: &[f64]| -> Vec<f64> { [&v[..1], v].concat() };
        let twice =
            Data::new([&data.rows[..1], &data.rows[..]].concat(), double(&data.y), double(&data.cost));
        for solver in [SolverKind::Newton, SolverKind::DualCd] {
            let (a, b) =
                (solve(&heavy, loss, intercept, solver, 1e-9), solve(&twice, loss, intercept, solver, 1e-9));
            let scale = 1.0 + a.certificate.primal;
            prop_assert!((a.certificate.primal - b.certificate.primal).abs() <= 3e-9 * scale, "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_start_from_the_solution_is_accepted(
        data in data(),
        loss in 0..LOSSES.len(),
        intercept in 0..3usize,
    ) {
        let (loss, intercept) = (LOSSES[loss], INTERCEPTS[intercept]);
        let cold = solve(&data, loss, intercept, SolverKind::Newton, 1e-7);
        let view = data.view();
        let problem = data.problem(&view, intercept);
        let start = Start {
            w: Some((cold.w.clone(), cold.intercept)),
            alpha: Some(cold.alpha.clone()),
            is_consistent: false,
        };
        for solver in SOLVERS {
            let params = Params { solver, tol: 1e-7, max_iter: 100_000, seed: 1 };
            let warm = auto::solve(&problem, loss, &params, &start, &Silent).unwrap();
            check_promises(&data, loss, intercept, &warm)?;
        }
    }
}

/// Rows, labels and costs that break careless solvers.
/// Rows of a few columns, some empty, at costs of many orders of magnitude.
fn rough_data() -> impl Strategy<Value = Data> {
    (2..40usize, 1..5usize, -6..7i32).prop_flat_map(|(n, d, power)| {
        let entry = prop_oneof![2 => Just(0.0), 3 => -2.0..2.0f64];
        let row = prop_oneof![1 => Just(vec![0.0; d]), 9 => prop::collection::vec(entry, d)];
        let rows = prop::collection::vec(row, n);
        let cost = prop::collection::vec(0.05..5.0f64, n);
        (rows, prop::collection::vec(prop::bool::ANY, n), cost).prop_map(move |(rows, y, cost)| {
            let mut y: Vec<f64> = y.into_iter().map(|p| if p { 1.0 } else { -1.0 }).collect();
            (y[0], y[1]) = (1.0, -1.0);
            Data::new(rows, y, cost.into_iter().map(|c| c * 10f64.powi(power)).collect())
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Whatever the tolerance, gaps are within it and not below the distance to the optimum, and dual
    /// variables are feasible and prove the dual value.
    #[test]
    fn newtons_gaps_bound_the_distance(
        data in rough_data(),
        loss in 0..LOSSES.len(),
        intercept in 0..3usize,
        tol in prop::sample::select(vec![0.3, 1e-1, 1e-2, 1e-4, 1e-7]),
    ) {
        let (loss, intercept) = (LOSSES[loss], INTERCEPTS[intercept]);
        let tight = solve(&data, loss, intercept, SolverKind::Newton, 1e-11);
        let s = solve(&data, loss, intercept, SolverKind::Newton, tol);
        let gap = s.certificate.relative_gap();
        prop_assert_eq!(s.status, Status::Converged);
        prop_assert!(gap <= tol, "{gap} {tol}");
        let (value, least) = (data.primal(loss, intercept, &s.w, s.intercept), tight.certificate.primal);
        prop_assert!(s.certificate.dual <= least * (1.0 + 1e-12), "{s:?} {tight:?}");
        // A margin near 1 is off by a few roundings, and its row's cost counts them.
        let lengths = data.rows.iter().map(|row| dot(row, row).sqrt().max(1.0));
        let reach: f64 = lengths.zip(&data.cost).map(|(length, c)| c * length).sum();
        let size = dot(&s.w, &s.w).sqrt() + s.intercept.abs();
        let of_value = 16.0 * f64::EPSILON * reach * (1.0 + size) / least;
        prop_assert!(gap >= (value - least) / least - 1e-11 - of_value, "{gap} {value} {least}");

        // What rounding may have added to the dual value is taken off. The weights of a dual point, which
        // differ from the fit's by the root of twice the gap, begin as a sum of slopes as large as the costs,
        // and a logit costs a thousand roundings at the most.
        let apart = (2.0 * (s.certificate.primal - s.certificate.dual)).sqrt();
        let of_weights = 4096.0 * f64::EPSILON * reach * (size + apart);
        // As is what the dual variables miss of the constraint of a free intercept.
        let excess: f64 = s.alpha.iter().zip(&data.y).map(|(a, y)| a * y).sum();
        let is_free = intercept == Intercept::Free;
        let of_excess = if is_free { 8.0 * excess.abs() * (1.0 + s.intercept.abs()) } else { 0.0 };
        let dual = data.dual(loss, intercept, &s.alpha);
        let allowed = 1e-9 * dual.abs() + of_weights + of_excess;
        prop_assert!((dual - s.certificate.dual).abs() <= allowed, "{dual} {s:?}");
    }
}

#[test]
fn a_fit_that_takes_no_step_and_cannot_reach_its_tolerance_ends() {
    // The intercept alone solves every smooth problem; rounding leaves a gap of 1e-13, and sigma once grew
    // until it left the range of double precision.
    let rows = vec![vec![-0.275991291653907], vec![1.7382230702386658]];
    let data = Data::new(rows, vec![1.0, -1.0], vec![6300.303457233609, 5837.935348416131]);
    let s = solve(&data, LossKind::Hinge, Intercept::Free, SolverKind::Newton, 1e-14);
    assert!(s.certificate.relative_gap() <= 1e-9, "{s:?}");
}

fn awkward() -> Vec<(&'static str, Data)> {
    let row = |v: &[f64]| v.to_vec();
    vec![
        (
            "empty row",
            Data::new(
                vec![row(&[1.0, 0.0]), row(&[0.0, 0.0]), row(&[0.0, 1.0])],
                vec![1.0, -1.0, -1.0],
                vec![1.0; 3],
            ),
        ),
        ("all empty", Data::new(vec![row(&[0.0]); 3], vec![1.0, -1.0, 1.0], vec![1.0; 3])),
        (
            "empty column",
            Data::new(vec![row(&[1.0, 0.0, 2.0]), row(&[-1.0, 0.0, 1.0])], vec![1.0, -1.0], vec![1.0; 2]),
        ),
        ("duplicate rows", Data::new(vec![row(&[1.0, 2.0]); 4], vec![1.0, -1.0, 1.0, 1.0], vec![0.5; 4])),
        (
            "huge cost",
            Data::new(
                vec![row(&[1.0, 0.3]), row(&[-0.9, 1.0]), row(&[0.2, -1.0])],
                vec![1.0, -1.0, 1.0],
                vec![1e8; 3],
            ),
        ),
        (
            "tiny cost",
            Data::new(
                vec![row(&[1.0, 0.3]), row(&[-0.9, 1.0]), row(&[0.2, -1.0])],
                vec![1.0, -1.0, 1.0],
                vec![1e-12; 3],
            ),
        ),
        (
            "costs far apart",
            Data::new(
                vec![row(&[1.0, 0.3]), row(&[-0.9, 1.0]), row(&[1.0, 0.2])],
                vec![1.0, -1.0, -1.0],
                vec![1e-6, 1.0, 1e4],
            ),
        ),
        (
            "large values",
            Data::new(
                vec![row(&[40.0, 1.0]), row(&[-30.0, 2.0]), row(&[10.0, 1.0])],
                vec![1.0, -1.0, -1.0],
                vec![1.0; 3],
            ),
        ),
        (
            "small values",
            Data::new(vec![row(&[1e-9, 0.0]), row(&[0.0, 1e-9])], vec![1.0, -1.0], vec![1.0; 2]),
        ),
    ]
}

#[test]
fn awkward_problems_are_solved_by_every_solver() {
    for (name, data) in awkward() {
        for loss in LOSSES {
            for intercept in INTERCEPTS {
                for solver in SOLVERS {
                    let s = solve(&data, loss, intercept, solver, 1e-6);
                    assert_eq!(
                        s.status,
                        Status::Converged,
                        "{name}, {loss:?}, {intercept:?}, {solver:?}: {s:?}"
                    );
                    let primal = data.primal(loss, intercept, &s.w, s.intercept);
                    // A margin has a rounding error of some eps, which the cost multiplies.
                    let rounding = 1e-9 * (1.0 + primal) + 1e-15 * data.cost.iter().sum::<f64>();
                    assert!((primal - s.certificate.primal).abs() <= rounding, "{name}: {primal} {s:?}");
                }
            }
        }
    }
}

fn blobs(n: usize) -> Data {
    let wave = |k: usize| ((k * 7919 % 1009) as f64 / 1009.0 - 0.5) * 3.0;
    let rows: Vec<Vec<f64>> = (0..n).map(|i| (0..6).map(|j| wave(i * 6 + j)).collect()).collect();
    let y = rows
        .iter()
        .enumerate()
        .map(|(i, r)| if r[0] - r[3] + wave(i * 31) > 0.0 { 1.0 } else { -1.0 })
        .collect();
    Data::new(rows, y, vec![1.0; n])
}

#[test]
fn bits_do_not_depend_on_threads() {
    let data = blobs(9000);
    let run = |threads: usize, loss, solver| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let s = pool.install(|| solve(&data, loss, Intercept::Free, solver, 1e-6));
        (s.w, s.intercept.to_bits(), s.certificate.dual.to_bits())
    };
    for loss in LOSSES {
        for solver in [SolverKind::Newton, SolverKind::Auto] {
            assert_eq!(run(1, loss, solver), run(4, loss, solver), "{loss:?} {solver:?}");
        }
    }
}

/// Rows of `width` entries among `d` columns of very different heights that go up and down together.
fn ill_scaled(n: usize, d: usize, width: usize, cost: f64) -> Data {
    let wave = |k: usize| (k * 7919 % 10_007) as f64 / 10_007.0 - 0.5;
    let height = |j: usize| (6.0 * j as f64 / d as f64).exp2() / 8.0;
    let row = |i: usize| {
        let mut row = vec![0.0; d];
        for k in 0..width {
            let j = (i * 31 + k * (d / width)) % d;
            row[j] = height(j) * (wave(i) + wave(i * width + k));
        }
        row
    };
    let rows: Vec<Vec<f64>> = (0..n).map(row).collect();
    let sign = |(i, r): (usize, &Vec<f64>)| {
        if r.iter().sum::<f64>() + 9.0 * wave(i * 17) > 0.0 { 1.0 } else { -1.0 }
    };
    let y = rows.iter().enumerate().map(sign).collect();
    Data::new(rows, y, vec![cost; n])
}

#[test]
fn newton_factorises_where_conjugate_gradient_has_cost_as_much() {
    let data = ill_scaled(1200, 320, 320, 30.0);
    for loss in [LossKind::SquaredHinge, LossKind::Logistic] {
        let s = solve(&data, loss, Intercept::Free, SolverKind::Newton, 1e-9);
        assert!(s.certificate.relative_gap() <= 1e-9);
        assert!(s.passes < 150.0, "{loss:?}: {} passes", s.passes);
    }
}

#[test]
fn small_costs_are_a_case_for_dual_descent() {
    let (easy, hard) = (ill_scaled(2500, 1700, 50, 1e-4), ill_scaled(2500, 1700, 50, 1.0));
    for loss in [LossKind::SquaredHinge, LossKind::Logistic] {
        for (data, expected) in [(&easy, SolverKind::DualCd), (&hard, SolverKind::Newton)] {
            let s = solve(data, loss, Intercept::None, SolverKind::Auto, 1e-4);
            assert_eq!((s.solver, s.status), (expected, Status::Converged), "{loss:?}");
        }
    }
}

#[test]
fn seeds_change_the_path_and_not_the_optimum() {
    let data = blobs(500);
    let view = data.view();
    let run = |seed| {
        let params = Params { solver: SolverKind::DualCd, tol: 1e-7, max_iter: 100_000, seed };
        auto::solve(
            &data.problem(&view, Intercept::None),
            LossKind::Hinge,
            &params,
            &Start::default(),
            &Silent,
        )
        .unwrap()
    };
    let (a, b, c) = (run(1), run(1), run(2));
    assert_eq!(a.w, b.w);
    assert_ne!(a.w, c.w);
    assert!((a.certificate.primal - c.certificate.primal).abs() <= 2e-7 * a.certificate.primal);
}

#[test]
fn subsets_of_rows_equal_copies() {
    let data = blobs(400);
    let ids: Vec<u32> = (0..400).filter(|i| i % 3 != 1).collect();
    let pick = |v: &[f64]| -> Vec<f64> { ids.iter().map(|&i| v[i as usize]).collect() };
    let rows = ids.iter().map(|&i| data.rows[i as usize].clone()).collect();
    let copy = Data::new(rows, pick(&data.y), pick(&data.cost));
    let view = data.view();
    for loss in LOSSES {
        for solver in [SolverKind::Newton, SolverKind::DualCd] {
            let params = Params { solver, tol: 1e-5, max_iter: 10_000, seed: 7 };
            let mut problem = copy.problem(&view, Intercept::Free);
            problem.ids = Some(&ids);
            let a = auto::solve(&problem, loss, &params, &Start::default(), &Silent).unwrap();
            let copied = copy.view();
            let b = auto::solve(
                &copy.problem(&copied, Intercept::Free),
                loss,
                &params,
                &Start::default(),
                &Silent,
            )
            .unwrap();
            assert_eq!((a.w, a.intercept), (b.w, b.intercept), "{loss:?} {solver:?}");
        }
    }
}

/// Says stop at the k-th question.
struct StopAfter(AtomicUsize);

impl Monitor for StopAfter {
    fn cancelled(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |k| Some(k.saturating_sub(1))).unwrap() == 0
    }
}

#[test]
fn every_solver_stops_when_asked() {
    let data = blobs(3000);
    let view = data.view();
    let attempt = |loss, solver, after| -> Result<Solution> {
        let params = Params { solver, tol: 1e-13, max_iter: 1_000_000, seed: 0 };
        let monitor = StopAfter(AtomicUsize::new(after));
        auto::solve(&data.problem(&view, Intercept::Free), loss, &params, &Start::default(), &monitor)
    };
    for loss in LOSSES {
        for solver in SOLVERS {
            for after in [0, 1, 5] {
                assert!(
                    matches!(attempt(loss, solver, after), Err(Error::Cancelled)),
                    "{loss:?} {solver:?} {after}"
                );
            }
        }
    }
}

#[test]
fn numbers_beyond_double_precision_are_refused_not_looped_on() {
    let data = Data::new(
        vec![vec![1e160, 1.0], vec![-1e160, 2.0], vec![1e150, 0.0]],
        vec![1.0, -1.0, -1.0],
        vec![1e10; 3],
    );
    for loss in LOSSES {
        for solver in SOLVERS {
            let view = data.view();
            let params = Params { solver, tol: 1e-6, max_iter: 300, seed: 0 };
            let ended =
                auto::solve(&data.problem(&view, Intercept::Free), loss, &params, &Start::default(), &Silent);
            if let Err(error) = ended {
                assert!(matches!(error, Error::Overflow { .. }), "{error}");
            }
        }
    }
}

#[test]
fn the_design_gives_rows_with_a_constant_column() {
    let data = blobs(10);
    let view = data.view();
    let design = data.problem(&view, Intercept::None).design(3.0);
    let w = vec![1.0; 7];
    assert_eq!((design.n_cols(), design.row_len(2)), (7, 7));
    assert!((design.dot(2, &w) - (dot(&data.rows[2], &w) + 3.0)).abs() < 1e-12);
}

/// Classes are solved in groups that depend on the number of threads, their solutions do not.
#[test]
fn many_classes_have_the_same_bits_on_any_number_of_threads() {
    let (n, d, k) = (300, 400, 13);
    let value = |i: usize, j: usize| {
        if (i * 31 + j * 17).is_multiple_of(29) { ((i + j) % 7) as f64 - 2.5 } else { 0.0 }
    };
    let rows: Vec<Vec<f64>> = (0..n).map(|i| (0..d).map(|j| value(i, j)).collect()).collect();
    let data = Data::new(rows, vec![1.0; n], vec![1.0; n]);
    let view = data.view();
    let ids: Vec<u32> = (0..n).map(|i| if i < k { i as u32 } else { (i * i % k) as u32 }).collect();
    let labels = Labels { ids: &ids, n_classes: k as u32 };
    let weight: Vec<f64> = (0..n).map(|i| if i % 40 == 39 { 0.0 } else { 1.0 + (i % 3) as f64 }).collect();
    for loss in LOSSES {
        for intercept in INTERCEPTS {
            let all = Classification { rows: &view, labels: &labels, cost: &weight, intercept };
            let params = Params { solver: SolverKind::DualCd, tol: 1e-3, max_iter: 100_000, seed: 3 };
            let of = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| labels::fit(&all, loss, &params, &Silent)).unwrap()
            };
            let one = of(1);
            assert!(one.iter().all(|s| s.status == Status::Converged && s.solver == SolverKind::DualCd));
            for threads in [2, 5, 16] {
                for (a, b) in one.iter().zip(of(threads)) {
                    assert_eq!((&a.w, a.intercept, &a.alpha), (&b.w, b.intercept, &b.alpha), "{loss:?}");
                    assert_eq!((a.certificate, a.n_iter, a.passes), (b.certificate, b.n_iter, b.passes));
                }
            }
        }
    }
}
