//! Presolve against the obvious: all pairs of columns compared, and fits with and without it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use hinge::fit::{Intercept, Params, Silent, Solution, SolverKind, Status};
use hinge::labels::{Classification, Labels, MultiClass, fit, fit_presolved};
use hinge::loss::LossKind;
use hinge::matrix::csr::{CsrView, Structure};
use hinge::matrix::{Matrix, Rows, Value};
use hinge::presolve::{Mode, Presolved, pack, presolve};
use hinge::search::{Fold, SearchSettings, StopRule, Values, search};
use hinge::{Error, search};
use proptest::prelude::*;

use crate::naive::dot;

/// A column and how it comes from the ones before.
#[derive(Clone, Debug)]
enum Plan {
    /// Values per row, 0 for none.
    Fresh(Vec<f64>),
    /// A multiple of an earlier column.
    Multiple(usize, f64),
    /// A copy with one entry off by a relative amount well above rounding.
    Near(usize),
    /// One entry.
    Alone(usize, f64),
    Empty,
}

/// A matrix as columns, stored as CSR in the order of the columns or against it, zeros stored here and there.
#[derive(Clone, Debug)]
struct Table<V> {
    columns: Vec<Vec<f64>>,
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Vec<V>,
}

impl<V: Value> Table<V> {
    fn new(n_rows: usize, plans: &[Plan], near: f64, zeros: &[bool]) -> Self {
        // Below the normal numbers digits are lost, and whether columns are multiples is for rounding to say.
        let normal = if size_of::<V>() == 4 { f64::from(f32::MIN_POSITIVE) } else { f64::MIN_POSITIVE };
        let round = |x: f64| if x.abs() < normal { 0.0 } else { V::from_f64(x).to_f64() };
        let mut columns: Vec<Vec<f64>> = Vec::new();
        for plan in plans {
            let column = match plan {
                Plan::Fresh(values) => values.clone(),
                Plan::Multiple(k, s) if *k < columns.len() => columns[*k].iter().map(|x| s * x).collect(),
                Plan::Near(k) if *k < columns.len() => {
                    let mut copy = columns[*k].clone();
                    if let Some(x) = copy.iter_mut().rfind(|x| **x != 0.0) {
                        *x *= 1.0 + near;
                    }
                    copy
                }
                Plan::Alone(row, x) => {
                    (0..n_rows).map(|i| if i == *row % n_rows { *x } else { 0.0 }).collect()
                }
                _ => vec![0.0; n_rows],
            };
            columns.push(column.into_iter().map(round).collect());
        }
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for i in 0..n_rows {
            let order: Vec<usize> =
                if i % 2 == 0 { (0..columns.len()).collect() } else { (0..columns.len()).rev().collect() };
            for j in order {
                if columns[j][i] != 0.0 || zeros[(i * 31 + j * 7) % zeros.len()] {
                    indices.push(j as i32);
                    values.push(V::from_f64(columns[j][i]));
                }
            }
            indptr.push(indices.len() as i64);
        }
        Self { columns, indptr, indices, values }
    }

    fn view(&self) -> (CsrView<'_, i32, V>, Structure) {
        CsrView::new(&self.indptr, &self.indices, &self.values, self.columns.len()).unwrap()
    }

    /// `None` for a matrix of zeros.
    fn presolved(&self) -> Option<Presolved> {
        let (view, structure) = self.view();
        presolve(&view, &structure, &|| false).unwrap()
    }

    fn row(&self, i: usize) -> Vec<f64> {
        self.columns.iter().map(|c| c[i]).collect()
    }

    /// Classes of proportional columns, each pair compared entry by entry.
    fn classes(&self) -> Vec<Vec<usize>> {
        let mut classes: Vec<Vec<usize>> = Vec::new();
        for j in (0..self.columns.len()).filter(|&j| self.columns[j].iter().any(|x| *x != 0.0)) {
            match classes.iter_mut().find(|class| self.are_proportional(class[0], j)) {
                Some(class) => class.push(j),
                None => classes.push(vec![j]),
            }
        }
        classes
    }

    fn are_proportional(&self, a: usize, b: usize) -> bool {
        let pairs = || self.columns[a].iter().zip(&self.columns[b]);
        let Some((first_a, first_b)) = pairs().find(|(x, y)| **x != 0.0 && **y != 0.0) else { return false };
        pairs().all(|(x, y)| (x * first_b - y * first_a).abs() <= 8.0 * V::EPSILON * (x * first_b).abs())
    }
}

/// `extreme` is a scale that occurs now and then.
fn plans(n_rows: usize, extreme: f64) -> impl Strategy<Value = Vec<Plan>> {
    let entry = prop_oneof![1 => Just(0.0), 1 => prop_oneof![-3.0..-0.1f64, 0.1..3.0f64]];
    let values = prop::collection::vec(entry, n_rows);
    let binary = prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), Just(-1.0)], n_rows);
    let scale = prop_oneof![Just(1.0), Just(-1.0), Just(2.0), -5.0..-0.01f64, 0.01..5.0f64, Just(extreme)];
    let plan = prop_oneof![
        4 => values.prop_map(Plan::Fresh),
        2 => binary.prop_map(Plan::Fresh),
        5 => (0..12usize, scale).prop_map(|(k, s)| Plan::Multiple(k, s)),
        2 => (0..12usize).prop_map(Plan::Near),
        3 => (0..n_rows, prop_oneof![-2.0..-0.1f64, 0.1..2.0f64]).prop_map(|(i, x)| Plan::Alone(i, x)),
        1 => Just(Plan::Empty),
    ];
    prop::collection::vec(plan, 1..16)
}

fn matrix<V: Value>(
    n_rows: std::ops::Range<usize>,
    near: f64,
    extreme: f64,
) -> impl Strategy<Value = Table<V>>
where
    Table<V>: std::fmt::Debug,
{
    let zeros = prop::collection::vec(prop::bool::weighted(0.1), 1..40);
    n_rows
        .prop_flat_map(move |n| (Just(n), plans(n, extreme)))
        .prop_flat_map(move |(n, plans)| (Just(n), Just(plans), zeros.clone()))
        .prop_map(move |(n, plans, zeros)| Table::new(n, &plans, near, &zeros))
}

/// Everything that a packed matrix promises, for values rounded by at most `rounding`.
fn check<V: Value>(matrix: &Table<V>, rounding: f64) -> Result<(), TestCaseError> {
    let (n, classes) = (matrix.indptr.len() - 1, matrix.classes());
    let Some(presolved) = matrix.presolved() else {
        prop_assert!(classes.is_empty());
        return Ok(());
    };
    let (view, report) = (presolved.view(), *presolved.report());
    let count = |j: usize| matrix.columns[j].iter().filter(|x| **x != 0.0).count();
    let surplus = |alone: bool| -> usize {
        classes.iter().filter(|c| (count(c[0]) == 1) == alone).map(|c| c.len() - 1).sum()
    };
    prop_assert_eq!(report.columns_in, matrix.columns.len());
    prop_assert_eq!(report.columns_out, classes.len());
    prop_assert_eq!((report.merged, report.merged_alone), (surplus(false), surplus(true)));
    prop_assert_eq!(report.dropped, matrix.columns.len() - classes.iter().map(Vec::len).sum::<usize>());
    prop_assert_eq!(report.nonzeros_in, matrix.values.len());
    prop_assert_eq!(report.nonzeros_out, classes.iter().map(|c| count(c[0])).sum::<usize>());

    // The rows have the same inner products: an orthogonal change of variables.
    let mut rows = vec![vec![0.0; view.n_cols()]; n];
    for (i, row) in rows.iter_mut().enumerate() {
        view.for_each(i, |j, v| {
            assert!(row[j] == 0.0 && v != 0.0, "no column twice, no zeros");
            row[j] = v;
        });
    }
    for i in 0..n {
        for k in 0..n {
            let (a, b) = (matrix.row(i), matrix.row(k));
            let size: f64 = (dot(&a, &a) * dot(&b, &b)).sqrt();
            prop_assert!((dot(&rows[i], &rows[k]) - dot(&a, &b)).abs() <= rounding * size);
        }
    }

    // Weights there and back; decisions are the same on either side.
    let packed: Vec<f64> = (0..view.n_cols()).map(|j| (j as f64 + 0.3).sin()).collect();
    let full = presolved.map_weights_back(&packed);
    prop_assert!((dot(&full, &full) - dot(&packed, &packed)).abs() <= 1e-12 * dot(&packed, &packed));
    for (a, b) in presolved.map_weights_in(&full).iter().zip(&packed) {
        prop_assert!((a - b).abs() <= 1e-12);
    }
    for (i, row) in rows.iter().enumerate() {
        let size = dot(row, row).sqrt() * dot(&packed, &packed).sqrt();
        prop_assert!((dot(row, &packed) - dot(&matrix.row(i), &full)).abs() <= rounding * size);
    }

    // Frequent columns first.
    let mut counts = vec![0usize; view.n_cols()];
    rows.iter()
        .flat_map(|r| r.iter().enumerate())
        .filter(|(_, v)| **v != 0.0)
        .for_each(|(j, _)| counts[j] += 1);
    prop_assert!(counts.windows(2).all(|c| c[0].ilog2() >= c[1].ilog2()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn double_precision_matches_the_definition(matrix in matrix::<f64>(1..9, 1e-13, 1e9)) {
        check(&matrix, 1e-14)?;
    }

    #[test]
    fn single_precision_matches_the_definition(matrix in matrix::<f32>(1..9, 3e-6, 1e-20)) {
        check(&matrix, 1e-6)?;
    }
}

const LOSSES: [LossKind; 4] =
    [LossKind::Hinge, LossKind::SquaredHinge, LossKind::Logistic, LossKind::ModifiedHuber];
const INTERCEPTS: [Intercept; 3] = [Intercept::None, Intercept::Free, Intercept::Penalised(0.7)];

/// A matrix with class ids and costs; a row of cost 0 is left out of every fit.
#[derive(Clone, Debug)]
struct Task {
    matrix: Table<f64>,
    ids: Vec<u32>,
    n_classes: u32,
    cost: Vec<f64>,
}

fn task() -> impl Strategy<Value = Task> {
    (matrix::<f64>(6..14, 1e-13, 0.5), 2..4u32).prop_flat_map(|(matrix, n_classes)| {
        let n = matrix.indptr.len() - 1;
        let ids = prop::collection::vec(0..n_classes, n);
        let cost = prop::collection::vec(prop_oneof![1 => Just(0.0), 6 => 0.05..5.0f64], n);
        (Just(matrix), ids, cost).prop_map(move |(matrix, mut ids, mut cost)| {
            for k in 0..n_classes {
                (ids[k as usize], cost[k as usize]) = (k, 1.0);
            }
            Task { matrix, ids, n_classes, cost }
        })
    })
}

impl Task {
    fn labels(&self) -> Labels<'_> {
        Labels { ids: &self.ids, n_classes: self.n_classes }
    }

    /// The binary problem of class `k`, without the rows of cost 0.
    fn data(&self, k: usize) -> crate::naive::Data {
        let kept: Vec<u32> = (0..self.ids.len() as u32).filter(|i| self.cost[*i as usize] > 0.0).collect();
        let rows: Vec<Vec<f64>> = kept.iter().map(|i| self.matrix.row(*i as usize)).collect();
        let cost = kept.iter().map(|i| self.cost[*i as usize]).collect();
        crate::naive::Data::new(rows, self.labels().signs(k, &kept), cost)
    }

    fn fits(
        &self,
        packed: &Presolved,
        loss: LossKind,
        intercept: Intercept,
        params: &Params,
    ) -> [Vec<Solution>; 2] {
        let (view, _) = self.matrix.view();
        let data = Classification { rows: &view.into(), labels: &self.labels(), cost: &self.cost, intercept };
        [
            fit(&data, loss, params, &Silent).unwrap(),
            fit_presolved(&data, packed, loss, params, &Silent).unwrap(),
        ]
    }

    /// Decision values of a search with three folds, at every `C`.
    fn decisions(&self, rows: &Matrix<'_>, loss: LossKind, intercept: Intercept) -> Vec<Vec<f64>> {
        let all = 0..self.ids.len() as u32;
        let is_kept = |i: &u32| *i < self.n_classes; // every training part has every class
        let folds: Vec<Fold> = (0..3)
            .map(|f| Fold {
                train: all.clone().filter(|i| i % 3 != f || is_kept(i)).collect(),
                test: all.clone().filter(|i| i % 3 == f).collect(),
            })
            .collect();
        let settings = SearchSettings {
            loss,
            intercept,
            params: Params { solver: SolverKind::Newton, tol: 1e-14, max_iter: 2000, seed: 1 },
            multi_class: MultiClass::OneVsRest,
        };
        let plan = search::SearchPlan {
            values: Values::List(vec![0.25, 1.0, 4.0]),
            refine: 0,
            stop: StopRule::Unchanged,
        };
        let task = search::SearchData {
            rows,
            labels: self.labels(),
            weight: &self.cost,
            folds: &folds,
            penalty: None,
        };
        let mut found = Vec::new();
        search(&task, &settings, &plan, None, &Silent, &mut |step| {
            found.extend(step.decisions.iter().cloned());
            Ok(Some(0.0))
        })
        .unwrap();
        found
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// The same objective, weights and decision values as without presolve. A gap leaves the weights open by
    /// the root of twice its size, so smooth losses are fitted until rounding ends the progress; the hinge,
    /// whose best point is chosen by its gap, is held to that root.
    #[test]
    fn fits_are_the_same(task in task()) {
        let Some(packed) = task.matrix.presolved() else { return Ok(()) };
        for loss in LOSSES {
            let tol = if loss == LossKind::Hinge { 1e-12 } else { 1e-30 };
            let params = Params { solver: SolverKind::Newton, tol, max_iter: 2000, seed: 3 };
            for intercept in INTERCEPTS {
                let [plain, mapped] = task.fits(&packed, loss, intercept, &params);
                for (k, (a, b)) in plain.iter().zip(&mapped).enumerate() {
                    let size = 1.0 + dot(&a.w, &a.w).sqrt();
                    let open = if loss == LossKind::Hinge {
                        2.0 * (2.0 * tol * a.certificate.primal).sqrt()
                    } else {
                        1e-10 * size
                    };
                    prop_assert!(
                        (a.certificate.primal - b.certificate.primal).abs()
                            <= 1e-10 * (1.0 + a.certificate.primal)
                    );
                    for (x, y) in a.w.iter().zip(&b.w) {
                        prop_assert!((x - y).abs() <= open, "{loss:?} {intercept:?}: weights {x} {y}");
                    }
                    let data = task.data(k);
                    let primal = data.primal(loss, intercept, &b.w, b.intercept);
                    prop_assert!((primal - b.certificate.primal).abs() <= 1e-12 * (1.0 + primal));
                    // The hinge is straight between its kinks: a free intercept may have an interval of best
                    // values, and the two fits need not choose the same. The objective above holds both.
                    let is_unique = loss != LossKind::Hinge || intercept != Intercept::Free;
                    for i in 0..task.ids.len() {
                        let row = task.matrix.row(i);
                        let (mut x, mut y) = (dot(&row, &a.w), dot(&row, &b.w));
                        if is_unique {
                            (x, y) = (x + a.intercept, y + b.intercept);
                        }
                        let open = open * (1.0 + dot(&row, &row).sqrt());
                        prop_assert!((x - y).abs() <= open, "{loss:?} {intercept:?}: decisions {x} {y}");
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Folds of a search need no weights back and decide the same.
    #[test]
    fn searches_decide_the_same(task in task()) {
        let Some(packed) = task.matrix.presolved() else { return Ok(()) };
        let (view, _) = task.matrix.view();
        for loss in [LossKind::SquaredHinge, LossKind::Logistic] {
            for intercept in INTERCEPTS {
                let plain = task.decisions(&view.into(), loss, intercept);
                let other = task.decisions(&packed.view(), loss, intercept);
                prop_assert_eq!(plain.len(), other.len());
                for (x, y) in plain.iter().flatten().zip(other.iter().flatten()) {
                    prop_assert!(
                        (x - y).abs() <= 1e-10 * (1.0 + x.abs()) * 10.0,
                        "{loss:?} {intercept:?}: {x} {y}"
                    );
                }
            }
        }
    }

    /// Coordinate descent, which does not end at the same point: both certificates hold on the caller's data.
    #[test]
    fn certificates_are_those_of_the_input(task in task()) {
        let Some(packed) = task.matrix.presolved() else { return Ok(()) };
        let params = Params { solver: SolverKind::DualCd, tol: 1e-6, max_iter: 200_000, seed: 3 };
        for loss in LOSSES {
            for intercept in INTERCEPTS {
                let [plain, mapped] = task.fits(&packed, loss, intercept, &params);
                for (k, (a, b)) in plain.iter().zip(&mapped).enumerate() {
                    prop_assert_eq!(b.status, Status::Converged);
                    prop_assert!(b.certificate.relative_gap() <= params.tol);
                    prop_assert!(b.certificate.dual <= a.certificate.primal * (1.0 + 1e-12));
                    prop_assert!(a.certificate.dual <= b.certificate.primal * (1.0 + 1e-12));
                    let primal = task.data(k).primal(loss, intercept, &b.w, b.intercept);
                    prop_assert!((primal - b.certificate.primal).abs() <= 1e-12 * primal);
                }
            }
        }
    }
}

/// A long matrix with columns of all kinds, more than one task for every pass.
fn large(n_rows: usize, n_cols: usize) -> (Vec<i64>, Vec<i64>, Vec<f32>) {
    let mut state = 7u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (mut indptr, mut indices, mut values) = (vec![0i64], Vec::new(), Vec::new());
    for _ in 0..n_rows {
        let mut row: Vec<i64> = (0..40).map(|_| (random().powi(5) * n_cols as f64 / 2.0) as i64).collect();
        row.sort_unstable();
        row.dedup();
        for j in row {
            // Column 2j + 1 is a multiple of column 2j.
            indices.extend([2 * j, 2 * j + 1]);
            let value = (random() as f32 + 0.5) * 0.125;
            values.extend([value, -4.0 * value]);
        }
        indptr.push(indices.len() as i64);
    }
    (indptr, indices, values)
}

#[test]
fn bits_do_not_depend_on_threads() {
    let (indptr, indices, values) = large(20_000, 1_000_000);
    let (view, structure) = CsrView::new(&indptr, &indices, &values, 1_000_000).unwrap();
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let packed = presolve(&view, &structure, &|| false).unwrap().unwrap();
            let mut entries = Vec::new();
            let view = packed.view();
            (0..view.n_rows()).for_each(|i| view.for_each(i, |j, v| entries.push((i, j, v.to_bits()))));
            let w: Vec<f64> = (0..view.n_cols()).map(|j| (j as f64).cos()).collect();
            (*packed.report(), entries, packed.map_weights_back(&w))
        })
    };
    let one = run(1);
    assert!(one == run(2) && one == run(5));
    assert!(one.0.merged > 1000 && one.0.merged_alone > 100 && one.0.dropped > 100, "{:?}", one.0);
    assert!(one.0.nonzeros_out * 2 <= one.0.nonzeros_in);
}

#[test]
fn a_cancelled_presolve_stops_wherever_it_is() {
    let (indptr, indices, values) = large(20_000, 30_000);
    let (view, structure) = CsrView::new(&indptr, &indices, &values, 30_000).unwrap();
    let looks = AtomicUsize::new(0);
    presolve(&view, &structure, &|| looks.fetch_add(1, Ordering::Relaxed) > 1_000_000).unwrap().unwrap();
    let total = looks.into_inner();
    assert!(total > 20, "{total} looks at the flag");
    for limit in (0..total).step_by(7) {
        let looks = AtomicUsize::new(0);
        let cancelled = || looks.fetch_add(1, Ordering::Relaxed) >= limit;
        assert!(matches!(presolve(&view, &structure, &cancelled), Err(Error::Cancelled)), "look {limit}");
    }
}

/// Many columns of the same rows that are not proportional are told apart without comparing all pairs, and
/// signs are seen.
#[test]
fn columns_of_the_same_rows_are_told_apart() {
    let (n, d) = (24, 3000);
    let sign =
        |i: usize, j: usize| if (j.wrapping_mul(2_654_435_761) >> (i % 24)) & 1 == 1 { 1.0 } else { -1.0 };
    let values: Vec<f64> = (0..n * d).map(|k| sign(k / d, k % d)).collect();
    let indices: Vec<i32> = (0..n * d).map(|k| (k % d) as i32).collect();
    let indptr: Vec<i64> = (0..=n).map(|i| (i * d) as i64).collect();
    let (view, structure) = CsrView::new(&indptr, &indices, &values, d).unwrap();
    let packed = presolve(&view, &structure, &|| false).unwrap().unwrap();
    let patterns: BTreeMap<Vec<bool>, ()> =
        (0..d).map(|j| ((0..n).map(|i| sign(i, j) == sign(0, j)).collect(), ())).collect();
    assert_eq!(packed.report().columns_out, patterns.len());
}

#[test]
fn what_cannot_be_packed_is_left_alone() {
    let huge = [2e38f32, 3e38];
    let (view, structure) = CsrView::new(&[0i64, 2], &[0, 1], &huge, 2).unwrap();
    assert!(presolve(&view, &structure, &|| false).unwrap().is_none(), "the merged value would be infinite");
    let (view, structure) = CsrView::new(&[0i64, 2], &[0, 0], &[1.0f64, 2.0], 2).unwrap();
    assert!(matches!(presolve(&view, &structure, &|| false), Err(Error::Duplicates)));
    let (view, structure) = CsrView::new(&[0i64, 2], &[0, 1], &[1.0f64, 2.0], 2).unwrap();
    assert!(pack(&view.into(), &structure, Mode::Off, &|| false).unwrap().is_none());
    assert!(
        pack(&view.into(), &structure, Mode::Auto { passes: 1e9, n_problems: 5 }, &|| false)
            .unwrap()
            .is_none()
    );
    assert_eq!(pack(&view.into(), &structure, Mode::On, &|| false).unwrap().unwrap().report().columns_out, 1);
}
