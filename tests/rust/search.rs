//! The search for C against cold fits.

use hinge::fit::crammer_singer::ClassProblem;
use hinge::fit::{Intercept, Monitor, Params, Problem, Silent, SolverKind, Start, auto, multinomial};
use hinge::labels::{Labels, MultiClass};
use hinge::loss::LossKind;
use hinge::matrix::Matrix;
use hinge::matrix::csr::CsrView;
use hinge::search::folds::{self, LaneSetup};
use hinge::search::primal::Primal;
use hinge::search::{
    EndReason, Fold, Route, SearchData, SearchPlan, SearchSettings, SearchStep, StopRule, Values,
    lower_bound, search,
};

struct Set {
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Vec<f32>,
    ids: Vec<u32>,
    n_classes: u32,
}

fn set(n: usize, n_classes: u32) -> Set {
    let wave = |k: usize| ((k * 7919 % 1009) as f32 / 1009.0 - 0.5) * 2.0;
    let d = 8;
    let values: Vec<f32> = (0..n * d).map(wave).collect();
    let ids = (0..n)
        .map(|i| {
            let row = &values[i * d..(i + 1) * d];
            if n_classes == 2 {
                u32::from(row[0] + 0.7 * row[1] + wave(i * 13) > 0.0)
            } else {
                (0..n_classes).max_by(|&a, &b| row[a as usize].total_cmp(&row[b as usize])).unwrap()
            }
        })
        .collect();
    Set::of_dense(values, d, ids, n_classes)
}

/// Rows of unit norm with a large value in common and few others, all positive, so that the gradient at zero
/// is large beside those later on; two classes of equal size that a plane parts but for a share of the rows.
fn crowd(n: usize, d: usize, wrong: f64) -> Set {
    let mut state = 1u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    let plane: Vec<f64> = (0..d).map(|_| uniform() - 0.5).collect();
    let mut values = Vec::new();
    let mut heights = Vec::new();
    for _ in 0..n {
        let entry = |j: usize| if j == 0 { 1.0 } else { f64::from(uniform() < 0.1) * uniform() };
        let row: Vec<f64> = (0..d).map(entry).collect();
        let norm = row.iter().map(|x| x * x).sum::<f64>().sqrt();
        heights.push((1..d).map(|j| plane[j] * row[j] / norm).sum::<f64>());
        values.extend(row.iter().map(|x| (x / norm) as f32));
    }
    let mut sorted = heights.clone();
    sorted.sort_by(f64::total_cmp);
    let ids = heights.iter().map(|z| u32::from((*z > sorted[n / 2]) != (uniform() < wrong))).collect();
    Set::of_dense(values, d, ids, 2)
}

impl Set {
    fn of_dense(values: Vec<f32>, d: usize, ids: Vec<u32>, n_classes: u32) -> Self {
        let indptr = (0..=ids.len()).map(|i| (i * d) as i64).collect();
        let indices = (0..values.len()).map(|k| (k % d) as i32).collect();
        Self { indptr, indices, values, ids, n_classes }
    }

    fn view(&self) -> Matrix<'_> {
        CsrView::new(&self.indptr, &self.indices, &self.values, self.indptr[1] as usize).unwrap().0.into()
    }

    fn folds(&self, k: usize) -> Vec<Fold> {
        let rows = 0..self.ids.len() as u32;
        (0..k as u32)
            .map(|f| Fold {
                train: rows.clone().filter(|i| i % k as u32 != f).collect(),
                test: rows.clone().filter(|i| i % k as u32 == f).collect(),
            })
            .collect()
    }
}

/// The best free intercept of a hinge is an interval, so decision values could not be compared.
fn intercept(loss: LossKind) -> Intercept {
    if loss == LossKind::Hinge { Intercept::None } else { Intercept::Free }
}

fn settings(loss: LossKind, solver: SolverKind, tol: f64) -> SearchSettings {
    let intercept = intercept(loss);
    let params = Params { solver, tol, max_iter: 100_000, seed: 0 };
    SearchSettings { loss, intercept, params, multi_class: MultiClass::OneVsRest }
}

fn doubling(c_max: f64, stop: StopRule) -> SearchPlan {
    SearchPlan { values: Values::Range { c_min: None, c_max, ratio: 2.0 }, refine: 0, stop }
}

/// The steps of a search with the shares of correct held-out rows as scores.
fn run(set: &Set, settings: &SearchSettings, plan: &SearchPlan) -> (Vec<SearchStep>, EndReason) {
    let (view, folds) = (set.view(), set.folds(3));
    let weight = vec![1.0; set.ids.len()];
    let labels = Labels { ids: &set.ids, n_classes: set.n_classes };
    let task = SearchData { rows: &view, labels, weight: &weight, folds: &folds, penalty: None };
    let mut steps = Vec::new();
    let reason = search(&task, settings, plan, None, &Silent, &mut |step| {
        steps.push(step.clone());
        Ok(Some(score(set, &folds, step)))
    })
    .unwrap();
    (steps, reason)
}

/// Mean share of held-out rows on the right side; of the first problem, if there are several.
fn score(set: &Set, folds: &[Fold], step: &SearchStep) -> f64 {
    let positive = if set.n_classes == 2 { 1 } else { 0 };
    let problems = if set.n_classes == 2 { 1 } else { set.n_classes as usize };
    let share = |(fold, decisions): (&Fold, &Vec<f64>)| {
        let right = fold.test.iter().zip(decisions.chunks(problems));
        let right = right.filter(|(i, d)| (d[0] > 0.0) == (set.ids[**i as usize] == positive));
        right.count() as f64 / fold.test.len() as f64
    };
    folds.iter().zip(step.decisions.iter()).map(share).sum::<f64>() / folds.len() as f64
}

/// Decision values of a cold, tight fit on one fold.
fn cold(set: &Set, loss: LossKind, problem: usize, fold: &Fold, c: f64) -> Vec<f64> {
    let view = set.view();
    let labels = Labels { ids: &set.ids, n_classes: set.n_classes };
    let y = labels.signs(problem, &fold.train);
    let cost = vec![c; fold.train.len()];
    let task =
        Problem { rows: &view, ids: Some(&fold.train), y: &y, cost: &cost, intercept: intercept(loss) };
    let params = Params { solver: SolverKind::Newton, tol: 1e-10, max_iter: 10_000, seed: 0 };
    let s = auto::solve(&task, loss, &params, &Start::default(), &Silent).unwrap();
    let w: Vec<f64> = s.w.clone();
    fold.test.iter().map(|&i| hinge::matrix::Rows::dot(&view, i as usize, &w) + s.intercept).collect()
}

#[test]
fn warm_steps_agree_with_cold_fits() {
    for (n_classes, loss, solver) in [
        (2, LossKind::Logistic, SolverKind::Auto),
        (2, LossKind::SquaredHinge, SolverKind::DualCd),
        (2, LossKind::Hinge, SolverKind::Auto),
        (3, LossKind::SquaredHinge, SolverKind::Auto),
        (3, LossKind::Logistic, SolverKind::DualCd),
    ] {
        let set = set(240, n_classes);
        let (steps, _) = run(&set, &settings(loss, solver, 1e-9), &doubling(64.0, StopRule::Exact));
        let problems = if n_classes == 2 { 1 } else { n_classes as usize };
        for step in steps.iter().step_by(3) {
            for (fold, decisions) in set.folds(3).iter().zip(step.decisions.iter()) {
                for k in 0..problems {
                    let exact = cold(&set, loss, k, fold, step.c);
                    for (row, expected) in exact.iter().enumerate() {
                        let found = decisions[row * problems + k];
                        assert!(
                            (found - expected).abs() < 2e-3,
                            "{loss:?} {solver:?} C={} {found} {expected}",
                            step.c
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn steps_double_from_the_bound_and_end_for_a_reason() {
    let set = set(120, 2);
    for loss in [LossKind::Logistic, LossKind::SquaredHinge, LossKind::Hinge] {
        let (steps, reason) =
            run(&set, &settings(loss, SolverKind::Auto, 1e-2), &doubling(1e9, StopRule::Unchanged));
        assert!(steps.windows(2).all(|s| s[1].c == 2.0 * s[0].c));
        assert_eq!(steps[0].c.log2().fract(), 0.0);
        let last = &steps[steps.len() - 3..];
        let expected =
            if last.iter().all(|s| s.is_unchanged) { EndReason::Unchanged } else { EndReason::CMax };
        assert_eq!(reason, expected, "{loss:?}");
        assert!(reason == EndReason::Unchanged || steps.last().unwrap().c * 2.0 > 1e9);
        assert!(steps.iter().all(|s| s.is_converged));
    }
}

#[test]
fn the_lower_bound_is_the_papers() {
    assert_eq!(lower_bound(LossKind::Logistic, 100.0, 2.0), (1.0f64 / 256.0));
    assert_eq!(lower_bound(LossKind::SquaredHinge, 100.0, 2.0), 1.0 / 512.0);
    assert_eq!(lower_bound(LossKind::Hinge, 64.0, 1.0), 1.0 / 64.0);
    assert_eq!(lower_bound(LossKind::Hinge, 64.0, 0.0), 1.0);
}

#[test]
fn the_exact_end_loses_no_better_value() {
    // Separable by the first column, so that the hinges end; the logistic loss never does.
    let mut easy = set(240, 2);
    for (row, id) in easy.values.chunks_mut(8).zip(&mut easy.ids) {
        row[0] += if row[0] > 0.0 { 0.3 } else { -0.3 };
        *id = u32::from(row[0] > 0.0);
    }
    let hard = set(240, 2);
    for loss in [LossKind::Logistic, LossKind::SquaredHinge, LossKind::Hinge] {
        for (set, is_easy) in [(&easy, true), (&hard, false)] {
            for solver in [SolverKind::Newton, SolverKind::DualCd] {
                let options = settings(loss, solver, 1e-2);
                let (steps, reason) = run(set, &options, &doubling(2f64.powi(20), StopRule::Exact));
                let end = steps.last().unwrap();
                if is_easy && loss != LossKind::Logistic {
                    assert_eq!(reason, EndReason::Unchanged, "{loss:?} {solver:?}");
                }
                assert_eq!(reason == EndReason::Unchanged, end.c < 2f64.powi(20));
                let folds = set.folds(3);
                let mut c = 2.0 * end.c;
                while c <= 2f64.powi(20) {
                    let cold: Vec<Vec<f64>> = folds.iter().map(|fold| cold(set, loss, 0, fold, c)).collect();
                    let later = SearchStep { decisions: std::sync::Arc::new(cold), ..end.clone() };
                    let missed = score(set, &folds, &later) - score(set, &folds, end);
                    assert!(
                        missed <= 0.0,
                        "{loss:?} {solver:?}: ended at {}, {c} is better by {missed}",
                        end.c
                    );
                    c *= 4.0;
                }
            }
        }
    }
}

#[test]
fn lists_and_refinement_visit_what_they_say() {
    let set = set(240, 2);
    let options = settings(LossKind::Logistic, SolverKind::Auto, 1e-6);
    let plan = SearchPlan { values: Values::List(vec![0.01, 0.3, 5.0]), refine: 2, stop: StopRule::Exact };
    let (steps, reason) = run(&set, &options, &plan);
    assert_eq!(reason, EndReason::List);
    assert_eq!(steps[..3].iter().map(|s| s.c).collect::<Vec<_>>(), [0.01, 0.3, 5.0]);
    assert!(steps.len() > 4);
    // A refined step is that of a search which goes straight there.
    for step in &steps[3..] {
        let before = steps.iter().map(|s| s.c).filter(|c| *c < step.c).fold(0.0, f64::max);
        let plan =
            SearchPlan { values: Values::List(vec![before, step.c]), refine: 0, stop: StopRule::Exact };
        let (straight, _) = run(&set, &options, &plan);
        for (a, b) in straight.last().unwrap().decisions.iter().flatten().zip(step.decisions.iter().flatten())
        {
            assert!((a - b).abs() < 1e-3);
        }
    }
}

/// The minimum of the objective on one fold.
fn least(set: &Set, loss: LossKind, problem: usize, fold: &Fold, c: f64) -> f64 {
    let view = set.view();
    let labels = Labels { ids: &set.ids, n_classes: set.n_classes };
    let (y, cost) = (labels.signs(problem, &fold.train), vec![c; fold.train.len()]);
    let task =
        Problem { rows: &view, ids: Some(&fold.train), y: &y, cost: &cost, intercept: intercept(loss) };
    let params = Params { solver: SolverKind::Newton, tol: 1e-10, max_iter: 10_000, seed: 0 };
    auto::solve(&task, loss, &params, &Start::default(), &Silent).unwrap().certificate.primal
}

#[test]
fn the_objective_is_that_of_a_cold_fit() {
    let set = set(240, 3);
    for (loss, solver) in [(LossKind::Logistic, SolverKind::Newton), (LossKind::Hinge, SolverKind::Auto)] {
        let (steps, _) = run(&set, &settings(loss, solver, 1e-8), &doubling(64.0, StopRule::Exact));
        for step in steps.iter().step_by(4) {
            assert_eq!(step.objective.len(), 9);
            for (k, value) in step.objective.iter().enumerate() {
                let best = least(&set, loss, k % 3, &set.folds(3)[k / 3], step.c);
                assert!((value / best - 1.0).abs() < 1e-6, "{loss:?} C={} lane {k}: {value} {best}", step.c);
            }
        }
    }
}

/// By the model of the last step, hence the factor of 2. A gradient of a hundredth of that at zero alone
/// leaves objectives of up to 1.08 times the minimum.
#[test]
fn objectives_of_newton_are_near_the_minimum_at_every_cost() {
    let (tol, last) = (1e-2, 1024.0);
    let mut ends = Vec::new();
    for wrong in [0.0, 0.1, 0.3] {
        let set = crowd(300, 40, wrong);
        let (view, folds, weight) = (set.view(), set.folds(3), vec![1.0; 300]);
        let labels = Labels { ids: &set.ids, n_classes: 2 };
        let parts = folds::parts(300, &labels, &weight, &folds).unwrap();
        for loss in [LossKind::SquaredHinge, LossKind::Logistic] {
            let settings = &settings(loss, SolverKind::Newton, tol);
            let (rows, labels, weight, parts) = (&view, &labels, &weight[..], &parts[..]);
            let (stop, monitor) = (StopRule::Exact, &Silent);
            let setup = LaneSetup { rows, labels, weight, parts, settings, last, stop, monitor };
            let mut route = Primal::new(&setup).unwrap();
            let (mut c, mut end) = (settings.lower_bound(300.0, 1.0, 2), None);
            while c <= last {
                let step = route.advance(c).unwrap();
                assert!(end.is_none() || step.is_unchanged);
                for (value, fold) in step.objective.iter().zip(&folds) {
                    let excess = value / least(&set, loss, 0, fold, c) - 1.0;
                    assert!(excess <= 2.0 * tol, "{loss:?}, {wrong} wrong, C = {c}: {excess}");
                }
                end = end.or((step.unchanged_until >= last).then_some(c));
                c *= 2.0;
            }
            ends.push(end.unwrap());
        }
    }
    assert!(ends.iter().any(|&c| c < 256.0) && ends.contains(&last), "{ends:?}");
}

#[test]
fn bits_do_not_depend_on_threads() {
    let set = set(300, 3);
    for (loss, solver) in [
        (LossKind::SquaredHinge, SolverKind::Newton),
        (LossKind::Logistic, SolverKind::DualCd),
        (LossKind::Hinge, SolverKind::DualCd),
    ] {
        let steps = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let plan = SearchPlan { refine: 2, ..doubling(64.0, StopRule::Exact) };
            pool.install(|| run(&set, &settings(loss, solver, 1e-3), &plan))
        };
        let one = steps(1);
        assert_eq!(one, steps(2));
        assert_eq!(one, steps(16));
    }
}

#[test]
fn a_visit_can_end_the_search() {
    let set = set(60, 2);
    let (view, folds, weight) = (set.view(), set.folds(3), vec![1.0; 60]);
    let task = SearchData {
        rows: &view,
        labels: Labels { ids: &set.ids, n_classes: 2 },
        weight: &weight,
        folds: &folds,
        penalty: None,
    };
    let options = settings(LossKind::Logistic, SolverKind::Auto, 1e-2);
    let mut count = 0;
    let reason = search(&task, &options, &doubling(64.0, StopRule::Exact), None, &Silent, &mut |_| {
        count += 1;
        Ok((count < 3).then_some(0.0))
    });
    assert_eq!((reason.unwrap(), count), (EndReason::Visit, 3));
}

/// A monitor whose time is over after some polls.
struct Deadline(std::sync::atomic::AtomicUsize);

impl Monitor for Deadline {
    fn cancelled(&self) -> bool {
        self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed) < usize::MAX / 2 + 1
    }
    fn is_overdue(&self) -> bool {
        true
    }
}

#[test]
fn a_time_limit_keeps_what_is_finished() {
    let set = set(240, 2);
    let options = settings(LossKind::Logistic, SolverKind::Newton, 1e-6);
    let (whole, _) = run(&set, &options, &doubling(64.0, StopRule::Exact));
    let (view, folds, weight) = (set.view(), set.folds(3), vec![1.0; 240]);
    let task = SearchData {
        rows: &view,
        labels: Labels { ids: &set.ids, n_classes: 2 },
        weight: &weight,
        folds: &folds,
        penalty: None,
    };
    let mut counts = Vec::new();
    for polls in [1, 20, 60, 150] {
        let monitor = Deadline((usize::MAX / 2 + polls).into());
        let mut steps = Vec::new();
        let reason = search(&task, &options, &doubling(64.0, StopRule::Exact), None, &monitor, &mut |step| {
            steps.push(step.clone());
            Ok(Some(0.0))
        });
        assert_eq!(reason.unwrap(), EndReason::TimeLimit);
        assert_eq!(steps, whole[..steps.len()]);
        counts.push(steps.len());
    }
    assert!(counts[0] == 0 && counts[3] > counts[1], "{counts:?}");
}

#[test]
fn bad_folds_and_settings_are_refused() {
    let set = set(30, 2);
    let (view, labels) = (set.view(), Labels { ids: &set.ids, n_classes: 2 });
    let weight = vec![1.0; 30];
    let options = settings(LossKind::Logistic, SolverKind::Auto, 1e-2);
    let good = doubling(64.0, StopRule::Exact);
    let attempt = |folds: &[Fold], plan: &SearchPlan, weight: &[f64]| {
        let task = SearchData { rows: &view, labels, weight, folds, penalty: None };
        search(&task, &options, plan, None, &Silent, &mut |_| Ok(Some(0.0))).unwrap_err().to_string()
    };
    let plan =
        |c_min, c_max, ratio| SearchPlan { values: Values::Range { c_min, c_max, ratio }, ..good.clone() };
    let positive: Vec<u32> = (0..30).filter(|&i| set.ids[i as usize] == 1).collect();
    let one_class = [Fold { train: positive, test: vec![0] }];
    assert!(attempt(&one_class, &good, &weight).contains("class number 0"));
    assert!(attempt(&[Fold { train: vec![0, 1], test: vec![77] }], &good, &weight).contains("names row 77"));
    let folds = set.folds(3);
    assert!(attempt(&folds, &plan(None, 64.0, 1.0), &weight).contains("ratio"));
    assert!(attempt(&folds, &plan(Some(-1.0), 64.0, 2.0), &weight).contains("C_min"));
    assert!(attempt(&folds, &plan(None, 1e-99, 2.0), &weight).contains("C_max"));
    assert!(attempt(&folds, &good, &[f64::NAN; 30]).contains("weight of row 0"));
}

fn softmax(intercept: Intercept, solver: SolverKind, tol: f64) -> SearchSettings {
    let params = Params { solver, tol, max_iter: 100_000, seed: 0 };
    SearchSettings { loss: LossKind::Logistic, intercept, params, multi_class: MultiClass::Multinomial }
}

#[test]
fn multinomial_steps_agree_with_cold_fits() {
    let (set, k) = (set(240, 4), 4);
    let view = set.view();
    for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised(2.0)] {
        for solver in [SolverKind::Auto, SolverKind::Newton, SolverKind::DualCd] {
            let settings = softmax(intercept, solver, 1e-8);
            let (steps, _) = run(&set, &settings, &doubling(64.0, StopRule::Exact));
            assert!(steps.iter().all(|step| step.is_converged));
            for step in steps.iter().step_by(4) {
                assert_eq!(step.objective.len(), 3);
                for (f, fold) in set.folds(3).iter().enumerate() {
                    let class: Vec<u32> = fold.train.iter().map(|i| set.ids[*i as usize]).collect();
                    let cost = vec![step.c; class.len()];
                    let problem = ClassProblem {
                        rows: &view,
                        ids: Some(&fold.train),
                        class: &class,
                        n_classes: k,
                        cost: &cost,
                        intercept,
                    };
                    let params = Params { tol: 1e-11, ..settings.params };
                    let cold = multinomial::solve(&problem, &params, &Silent).unwrap();
                    assert!((step.objective[f] / cold.certificate.primal - 1.0).abs() < 1e-8);
                    for (row, found) in fold.test.iter().zip(step.decisions[f].chunks(k)) {
                        for (m, found) in found.iter().enumerate() {
                            let w = cold.weights.class(m, 8);
                            let exact =
                                hinge::matrix::Rows::dot(&view, *row as usize, &w) + cold.intercepts[m];
                            let (c, tol) = (step.c, 2e-3 * (1.0 + exact.abs()));
                            assert!((found - exact).abs() < tol, "{solver:?} C = {c}: {found} {exact}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn multinomial_searches_begin_where_no_margin_comes_near_one() {
    let set = set(120, 3);
    let settings = softmax(Intercept::None, SolverKind::Auto, 1e-4);
    let (steps, _) = run(&set, &settings, &doubling(1.0, StopRule::Exact));
    let norm = set.values.chunks(8).map(|x| x.iter().map(|x| x * x).sum::<f32>()).fold(0.0, f32::max);
    let bound = 0.5 / (120.0 * f64::from(norm));
    assert!(steps[0].c <= bound && bound < 2.0 * steps[0].c);
    for values in steps[0].decisions.iter().flat_map(|fold| fold.chunks(3)) {
        let largest = values.iter().copied().fold(f64::MIN, f64::max);
        let lowest = values.iter().copied().fold(f64::MAX, f64::min);
        assert!(largest - lowest < 1.0);
    }
}

#[test]
fn multinomial_searches_go_on_from_a_journal_with_the_same_bits() {
    let set = set(240, 5);
    let (view, folds, weight) = (set.view(), set.folds(3), vec![1.0; 240]);
    let labels = Labels { ids: &set.ids, n_classes: 5 };
    let task = SearchData { rows: &view, labels, weight: &weight, folds: &folds, penalty: None };
    let plan =
        SearchPlan { values: Values::List(vec![0.01, 0.1, 1.0, 10.0]), refine: 2, stop: StopRule::Exact };
    for solver in [SolverKind::Newton, SolverKind::DualCd] {
        let settings = softmax(Intercept::Free, solver, 1e-4);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let steps = |path: Option<&std::path::Path>, count: usize| {
            let mut steps = Vec::new();
            search(&task, &settings, &plan, path, &Silent, &mut |step| {
                steps.push((step.c, step.decisions.clone(), step.objective.clone()));
                let score = -(step.c.log2() - 1.0).abs();
                Ok((steps.len() < count).then_some(score))
            })
            .unwrap();
            steps
        };
        let whole = steps(None, usize::MAX);
        assert!(whole.len() > 4);
        assert!(steps(Some(&path), 2)[..2] == whole[..2]);
        assert!(steps(Some(&path), 5)[..5] == whole[..5]);
        assert!(steps(Some(&path), usize::MAX) == whole);
        let other = softmax(Intercept::Free, solver, 1e-3);
        assert!(search(&task, &other, &plan, Some(&path), &Silent, &mut |_| Ok(None)).is_err());
        let other = SearchSettings { multi_class: MultiClass::OneVsRest, ..settings };
        assert!(search(&task, &other, &plan, Some(&path), &Silent, &mut |_| Ok(None)).is_err());
    }
}
