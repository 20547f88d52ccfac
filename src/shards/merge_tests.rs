//! Columns that travel in place of others, against the definition, and fits and searches with them against
//! those without.

use super::ShardTask;
use super::columns::{OwnColumns, put, take};
use super::exchange::Link;
use super::fit::fit_with;
use super::merge::Merging;
use super::remote::{Lanes, Remote, ShardTerms};
use super::search::{ShardSearch, search_with};
use super::shard::{ShardFolds, ShardRows};
use super::tests::{Here, INTERCEPTS, LOSSES, Split, alone, classes_of, close, plan, score};
use super::wire::Reader;
use crate::fit::newton::factorisation::Form;
use crate::fit::newton::preconditioner::Gram;
use crate::fit::newton::row_state::{Passes as _, RowState, TermPasses as _};
use crate::fit::objective::Weighted;
use crate::fit::routes::{FREQUENT_COLUMNS, SHARD_MATRIX_COLUMNS};
use crate::fit::waves::Waves;
use crate::fit::{Intercept, Params, Problem, Silent, Solution};
use crate::loss::{LossKind, SquaredHinge};
use crate::matrix::csr::CsrView;
use crate::matrix::design::Design;
use crate::matrix::lanes::Block;
use crate::matrix::{Matrix, Rows as _};
use crate::presolve::{self, MergedColumns};
use crate::search::SearchStep;
use proptest::prelude::*;

/// Sparse rows.
#[derive(Clone)]
struct Sparse {
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Vec<f64>,
    n_cols: usize,
}

impl Sparse {
    fn view(&self) -> CsrView<'_, i32, f64> {
        CsrView::new(&self.indptr, &self.indices, &self.values, self.n_cols).unwrap().0
    }

    /// The rows between two borders.
    fn part(&self, border: &[u32]) -> Self {
        let ends = &self.indptr[border[0] as usize..=border[1] as usize];
        let (start, end) = (ends[0] as usize, ends[ends.len() - 1] as usize);
        let indptr = ends.iter().map(|p| p - ends[0]).collect();
        let (indices, values) = (self.indices[start..end].to_vec(), self.values[start..end].to_vec());
        Self { indptr, indices, values, n_cols: self.n_cols }
    }

    /// Its columns in an order of their own.
    fn number(&mut self) -> Option<OwnColumns> {
        let arrays = (&self.indptr[..], &mut self.indices[..], &self.values[..]);
        let own = OwnColumns::number(arrays, self.n_cols, &|| false).unwrap()?;
        self.n_cols = own.n_columns();
        Some(own)
    }

    fn column(&self, j: usize) -> Vec<f64> {
        let mut column = vec![0.0; self.indptr.len() - 1];
        for (i, ends) in self.indptr.windows(2).enumerate() {
            let entries = ends[0] as usize..ends[1] as usize;
            entries.filter(|k| self.indices[*k] as usize == j).for_each(|k| column[i] = self.values[k]);
        }
        column
    }
}

/// Of the columns of `base` some; copies and multiples of them; multiples in the upper half of the rows
/// alone; columns of one row; empty ones and stored zeros. Entries of a row in any order.
fn planted(base: &Matrix<'_>, seed: u64) -> Sparse {
    use crate::matrix::Rows;
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let (n, d) = (base.n_rows(), base.n_cols());
    let dense: Vec<Vec<f64>> = (0..d)
        .map(|j| {
            let mut column = vec![0.0; n];
            (0..n).for_each(|i| {
                base.for_each(i, |k, v| {
                    if k == j {
                        column[i] = v
                    }
                })
            });
            column.iter().map(|v| if random(3) == 0 { *v } else { 0.0 }).collect()
        })
        .collect();
    let mut columns = dense.clone();
    for _ in 0..2 * d {
        let (of, scale) = (random(d), [1.0, -1.0, 2.0, 0.3, -1.7][random(5)]);
        let (half, other) = (random(3) == 0, [2.0, 0.0][random(2)]);
        let at = |i: usize, v: f64| v * if half && i >= n / 2 { other } else { scale };
        columns.push(dense[of].iter().enumerate().map(|(i, v)| at(i, *v)).collect());
    }
    for _ in 0..3 * d {
        let mut column = vec![0.0; n];
        column[random(n / 3)] = 1.0 + random(7) as f64;
        columns.push(column);
    }
    columns.extend([vec![0.0; n], vec![0.0; n]]);
    for k in (1..columns.len()).rev() {
        columns.swap(k, random(k + 1));
    }
    let mut rows = Sparse { indptr: vec![0], indices: vec![], values: vec![], n_cols: columns.len() };
    for i in 0..n {
        let stored: Vec<usize> =
            (0..columns.len()).filter(|j| columns[*j][i] != 0.0 || random(40) == 0).collect();
        let turn = random(stored.len().max(1));
        for j in stored[turn..].iter().chain(&stored[..turn]) {
            rows.indices.push(*j as i32);
            rows.values.push(columns[*j][i]);
        }
        rows.indptr.push(rows.indices.len() as i64);
    }
    rows
}

/// Shards of numbered rows, and what belongs to them.
struct Wide {
    parts: Vec<Sparse>,
    own: Vec<Option<OwnColumns>>,
    borders: Vec<u32>,
    n_columns: usize,
}

impl Wide {
    fn new(rows: &Sparse, inner: &[u32]) -> Self {
        let n = rows.indptr.len() as u32 - 1;
        let borders: Vec<u32> = [0].iter().chain(inner).copied().chain([n]).collect();
        let mut parts: Vec<Sparse> = borders.windows(2).map(|border| rows.part(border)).collect();
        let own = parts.iter_mut().map(Sparse::number).collect();
        Self { parts, own, borders, n_columns: rows.n_cols }
    }

    /// With the columns of the data in all shards.
    fn plain(rows: &Sparse, inner: &[u32]) -> Self {
        let numbered = Self::new(rows, inner);
        let parts: Vec<Sparse> = numbered.borders.windows(2).map(|border| rows.part(border)).collect();
        Self { own: parts.iter().map(|_| None).collect(), parts, ..numbered }
    }

    fn matrices(&self) -> Vec<Matrix<'_>> {
        self.parts.iter().map(|part| part.view().into()).collect()
    }
}

/// What a shard has beside its rows.
struct Beside<'a> {
    ids: Vec<Vec<u32>>,
    classes: &'a [u32],
    cost: &'a [f64],
}

fn shards<'a>(
    wide: &'a Wide,
    matrices: &'a [Matrix<'a>],
    beside: &'a Beside<'a>,
    (loss, intercept): (LossKind, Intercept),
    split: Option<&'a Split>,
) -> Vec<ShardRows<'a>> {
    let of = |k: usize| wide.borders[k] as usize..wide.borders[k + 1] as usize;
    let shard = |k: usize| ShardRows {
        rows: &matrices[k],
        ids: &beside.ids[k],
        own: wide.own[k].as_ref(),
        classes: &beside.classes[of(k)],
        cost: &beside.cost[of(k)],
        loss,
        intercept,
        folds: split.map(|split| ShardFolds {
            folds: &split.local[k],
            classes: &split.classes[of(k)],
            weight: &split.weight[of(k)],
        }),
    };
    (0..matrices.len()).map(shard).collect()
}

fn task_of(here: &Here<'_>, wide: &Wide, rows: &ShardRows<'_>, tol: f64) -> ShardTask {
    let params = Params { tol, ..Params::default() };
    ShardTask::new(here.facts(), (wide.n_columns, 2), (rows.loss, rows.intercept), params)
}

fn are_proportional(a: &[f64], b: &[f64]) -> bool {
    let Some(k) = a.iter().position(|v| *v != 0.0) else { return false };
    let scale = b[k] / a[k];
    scale != 0.0 && a.iter().zip(b).all(|(a, b)| (b - scale * a).abs() <= 1e-14 * b.abs())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn columns_travel_as_one_if_they_are_proportional(seed in any::<u64>(), cut in 1u32..39) {
        let waves = Waves::new(40, 6, 1.0, seed as usize % 1000);
        let rows = planted(&waves.rows(), seed);
        let wide = Wide::new(&rows, &[cut]);
        let matrices = wide.matrices();
        let (classes, cost) = ([vec![0; 20], vec![1; 20]].concat(), vec![1.0; 40]);
        let ids = wide.borders.windows(2).map(|b| (0..b[1] - b[0]).collect()).collect();
        let beside = Beside { ids, classes: &classes, cost: &cost };
        let kind = (LossKind::Logistic, Intercept::Free);
        let here_rows = shards(&wide, &matrices, &beside, kind, None);
        let mut here = Here::new(here_rows.clone(), usize::MAX);
        let task = task_of(&here, &wide, &here_rows[0], 1e-3);
        let Some(merging) = Merging::ask(&task, &mut here, &Silent).unwrap() else {
            // One of the shards has no entry.
            prop_assert!(wide.own.iter().any(Option::is_none));
            return Ok(());
        };
        let columns: Vec<Vec<f64>> = (0..rows.n_cols).map(|j| rows.column(j)).collect();
        let found = merging.columns();
        let mut squares = vec![0.0; merging.n_columns()];
        for (j, a) in columns.iter().enumerate() {
            prop_assert_eq!(found.place(j).is_none(), a.iter().all(|v| *v == 0.0));
            let Some((of, share)) = found.place(j) else { continue };
            squares[of as usize] += share * share;
            for (k, b) in columns.iter().enumerate() {
                let Some((other, part)) = found.place(k) else { continue };
                prop_assert_eq!(of == other, are_proportional(a, b), "{} {}", j, k);
                let scale = part / share;
                let is_near = |(a, b): (&f64, &f64)| (b - scale * a).abs() <= 1e-14 * b.abs();
                prop_assert!(of != other || a.iter().zip(b).all(is_near), "{} {} {}", j, k, scale);
            }
        }
        prop_assert!(squares.iter().all(|square| (square - 1.0).abs() < 1e-14));
    }

    #[test]
    fn merged_columns_are_read_as_they_were_written(
        places in prop::collection::vec(prop::option::of((0u32..9, prop::option::of(-1.0..1.0f64))), 0..30)
    ) {
        let whole = |place: Option<(u32, Option<f64>)>| place.map(|(k, share)| (k, share.unwrap_or(1.0)));
        let places: Vec<_> = places.into_iter().map(whole).collect();
        let merged = MergedColumns::of_places(9, places.iter().copied()).unwrap();
        prop_assert!(places.iter().enumerate().all(|(j, place)| merged.place(j) == *place));
        let mut words = Vec::new();
        put(&merged, &mut words);
        prop_assert!(words.iter().all(|word| word.is_finite()));
        let mut reader = Reader::new(&words, 1);
        prop_assert_eq!(take(&mut reader, places.len()).unwrap(), merged);
        prop_assert!(reader.is_empty());
        words.pop();
        prop_assert!(take(&mut Reader::new(&words, 1), places.len()).is_err());
        prop_assert!(MergedColumns::of_places(8, [Some((8, 1.0))].into_iter()).is_none());
    }
}

#[test]
fn own_columns_are_the_columns_of_the_rows() {
    let waves = Waves::new(50, 5, 1.0, 2);
    let rows = planted(&waves.rows(), 9);
    let mut numbered = rows.clone();
    let own = numbered.number().unwrap();
    let stored: std::collections::BTreeSet<i32> = rows.indices.iter().copied().collect();
    assert_eq!(own.n_columns(), stored.len());
    let back: std::collections::BTreeMap<i32, i32> =
        numbered.indices.iter().copied().zip(rows.indices.iter().copied()).collect();
    assert!(numbered.indices.iter().zip(&rows.indices).all(|(own, j)| back[own] == *j));
    assert_eq!(back.values().copied().collect::<std::collections::BTreeSet<_>>(), stored);
    let hash = |rows: &Sparse| crate::search::fingerprint::hash_rows(&rows.view().into());
    assert_eq!(own.hash_rows(&numbered.view().into()), hash(&rows));
    assert_ne!(hash(&numbered), hash(&rows));
    // More of the rows in frequent columns, nothing in none.
    let counts = |rows: &Sparse, j: i32| rows.indices.iter().filter(|k| **k == j).count();
    assert!(counts(&numbered, 0) >= counts(&numbered, own.n_columns() as i32 - 4));
    let empty = Sparse { indptr: vec![0, 1], indices: vec![2], values: vec![0.0], n_cols: 4 };
    assert!(empty.clone().number().is_none());
}

/// What a fit came to.
fn outcome_of(mut found: Vec<Solution>) -> (Vec<f64>, f64, crate::fit::Certificate, usize) {
    let Solution { w, intercept, certificate, n_iter, .. } = found.swap_remove(0);
    (w, intercept, certificate, n_iter)
}

#[test]
fn fits_are_those_without_merging_and_proved() {
    for (n, d, scale) in [(160, 9, 0.5), (60, 14, 8.0)] {
        let waves = Waves::new(n, d, scale, n);
        let base = waves.rows();
        let rows = planted(&base, n as u64);
        let (borders, whole) = ([n as u32 / 3, n as u32 / 2], Matrix::from(rows.view()));
        let both = [Wide::plain(&rows, &borders), Wide::new(&rows, &borders)];
        let matrices = [both[0].matrices(), both[1].matrices()];
        for (k, loss) in (0..3).flat_map(|k| LOSSES.map(|loss| (k, loss))) {
            let problem = Problem { rows: &whole, ..waves.problem(&base, k) };
            let classes = classes_of(&problem);
            let ids = both[0].borders.windows(2).map(|b| (0..b[1] - b[0]).collect()).collect();
            let beside = Beside { ids, classes: &classes, cost: problem.cost };
            let fit = |every: usize, merges: bool| {
                let (wide, matrices) = (&both[usize::from(merges)], &matrices[usize::from(merges)]);
                let here_rows = shards(wide, matrices, &beside, (loss, problem.intercept), None);
                let mut here = Here::new(here_rows.clone(), every);
                let task = task_of(&here, wide, &here_rows[0], 1e-6);
                let merging = Merging::ask(&task, &mut here, &Silent).unwrap();
                assert_eq!(merging.as_ref().is_some_and(|m| m.n_columns() < wide.n_columns), merges);
                outcome_of(fit_with(merging.as_ref(), &task, &mut here, &Silent).unwrap())
            };
            let (merged, plain) = (fit(usize::MAX, true), fit(usize::MAX, false));
            let best = alone(&problem, loss, 1e-9).certificate;
            for (w, b, certificate, _) in [&merged, &plain] {
                assert_eq!(w.len(), rows.n_cols);
                assert!(certificate.relative_gap() <= 1e-6, "{loss:?} {k} {n} {certificate:?}");
                // Neither value is on the wrong side of the optimum.
                assert!(certificate.primal >= best.dual && certificate.dual <= best.primal);
                let value = crate::fit::certificate::primal(&problem, loss, w, *b, &Silent).unwrap();
                assert!((value / certificate.primal - 1.0).abs() < 1e-11);
            }
            for every in [1, 2, 5] {
                assert_eq!(fit(every, true), merged, "{loss:?} {k} {n} {every}");
            }
        }
    }
}

#[test]
fn shards_with_columns_of_their_own_of_which_all_travel_fit_the_same() {
    let waves = Waves::new(90, 90, 1.0, 7);
    let base = waves.rows();
    let rows = planted(&base, 3);
    // So many that no matrix of them is asked for.
    assert!(rows.n_cols > SHARD_MATRIX_COLUMNS);
    let (wide, whole) = (Wide::new(&rows, &[30, 45]), Matrix::from(rows.view()));
    let matrices = wide.matrices();
    for (k, loss) in (0..3).flat_map(|k| LOSSES.map(|loss| (k, loss))) {
        let problem = Problem { rows: &whole, ..waves.problem(&base, k) };
        let classes = classes_of(&problem);
        let ids = wide.borders.windows(2).map(|b| (0..b[1] - b[0]).collect()).collect();
        let beside = Beside { ids, classes: &classes, cost: problem.cost };
        let here_rows = shards(&wide, &matrices, &beside, (loss, problem.intercept), None);
        let best = alone(&problem, loss, 1e-9).certificate;
        let mut here = Here::new(here_rows.clone(), 3);
        let task = task_of(&here, &wide, &here_rows[0], 1e-6);
        let (w, b, certificate, _) = outcome_of(fit_with(None, &task, &mut here, &Silent).unwrap());
        assert!(certificate.relative_gap() <= 1e-6, "{loss:?} {k} {certificate:?}");
        assert!(certificate.primal >= best.dual && certificate.dual <= best.primal);
        let value = crate::fit::certificate::primal(&problem, loss, &w, b, &Silent).unwrap();
        assert!((value / certificate.primal - 1.0).abs() < 1e-11);
    }
}

#[test]
fn searches_are_those_without_merging() {
    let waves = Waves::new(240, 9, 1.0, 4);
    let base = waves.rows();
    let rows = planted(&base, 5);
    let split = Split::new(classes_of(&waves.problem(&base, 0)), 2, 3, &[70, 150]);
    let both = [Wide::plain(&rows, &[70, 150]), Wide::new(&rows, &[70, 150])];
    let matrices = [both[0].matrices(), both[1].matrices()];
    let ids = both[0].borders.windows(2).map(|b| (0..b[1] - b[0]).collect()).collect();
    let beside = Beside { ids, classes: &split.classes, cost: &split.weight };
    let folder = tempfile::tempdir().unwrap();
    for (loss, intercept) in LOSSES[..3].iter().flat_map(|loss| INTERCEPTS.map(|b| (*loss, b))) {
        let run =
            |(merges, tol): (bool, f64), every: usize, resume: Option<&std::path::Path>, stop: usize| {
                let (wide, matrices) = (&both[usize::from(merges)], &matrices[usize::from(merges)]);
                let here_rows = shards(wide, matrices, &beside, (loss, intercept), Some(&split));
                let mut here = Here::new(here_rows.clone(), every);
                let task = &task_of(&here, wide, &here_rows[0], tol);
                let merging = Merging::ask(task, &mut here, &Silent).unwrap();
                let (labels, weight, plan) =
                    (split.labels(), &split.weight[..], &plan(usize::from(tol > 1e-3)));
                let (folds, borders) = (&split.folds[..], &split.borders[..]);
                let search = ShardSearch { task, labels, weight, folds, borders, plan, resume };
                let mut steps = Vec::new();
                let visit = &mut |step: &SearchStep| {
                    steps.push(SearchStep { seconds: 0.0, is_replayed: false, ..step.clone() });
                    Ok((steps.len() < stop).then(|| score(step)))
                };
                let ended = search_with(merging.as_ref(), &search, &mut here, &Silent, visit);
                ended.map(|_| steps)
            };
        let tight = run((true, 1e-6), usize::MAX, None, 9).unwrap();
        let plain = run((false, 1e-6), usize::MAX, None, 9).unwrap();
        for (merged, plain) in tight.iter().zip(&plain) {
            // By other steps, without the matrix of all columns.
            assert!(close(merged, plain, 1e-4), "{loss:?} {intercept:?} {merged:?} {plain:?}");
        }
        let how = (true, 1e-2);
        let merged = run(how, usize::MAX, None, usize::MAX).unwrap();
        assert_eq!(run(how, 3, None, usize::MAX).unwrap(), merged);
        let path = folder.path().join(format!("{loss:?} {intercept:?}"));
        run(how, usize::MAX, Some(&path), 3).unwrap();
        assert_eq!(run(how, usize::MAX, Some(&path), usize::MAX).unwrap(), merged);
        // Weights of other columns.
        let other = run((false, 1e-2), usize::MAX, Some(&path), usize::MAX).unwrap_err().to_string();
        assert!(other.contains("columns that travel is"), "{other}");
    }
}

#[test]
fn all_columns_travel_where_few_are_proportional_or_a_shard_does_not_say() {
    let waves = Waves::new(40, 6, 1.0, 3);
    let base = waves.rows();
    let (classes, cost) = ([vec![0; 20], vec![1; 20]].concat(), vec![1.0; 40]);
    let kind = (LossKind::Logistic, Intercept::Free);
    let dense = {
        let mut rows = Sparse { indptr: vec![0], indices: vec![], values: vec![], n_cols: 6 };
        for i in 0..40 {
            (0..6).for_each(|j| {
                rows.indices.push(j);
                rows.values.push(f64::from(i * j) + 1.5);
            });
            rows.indptr.push(rows.indices.len() as i64);
        }
        rows
    };
    for (rows, is_silent) in [(dense, false), (planted(&base, 1), true)] {
        let mut wide = Wide::new(&rows, &[20]);
        if is_silent {
            wide.own[1] = None;
        }
        let matrices = wide.matrices();
        let ids = wide.borders.windows(2).map(|b| (0..b[1] - b[0]).collect()).collect();
        let beside = Beside { ids, classes: &classes, cost: &cost };
        let here_rows = shards(&wide, &matrices, &beside, kind, None);
        let mut here = Here::new(here_rows.clone(), usize::MAX);
        let task = task_of(&here, &wide, &here_rows[0], 1e-3);
        assert!(Merging::ask(&task, &mut here, &Silent).unwrap().is_none());
        // Columns this few are not even asked for.
        let rounds = here.rounds();
        assert!(Merging::find(&task, &mut here, &Silent).unwrap().is_none());
        assert_eq!(here.rounds(), rounds);
    }
    let (view, structure) = (planted(&base, 1), crate::matrix::csr::Structure::default());
    assert!(presolve::merge(&view.view(), &structure, &|| true).is_err());
}

/// Once the first diagonal has told which columns are frequent, shards, with columns of their own and with
/// those of the data, answer with the block that the matrix of all rows has.
#[test]
fn blocks_of_frequent_columns_are_those_of_all_rows() {
    let waves = Waves::new(120, 100, 2.0, 5);
    let base = waves.rows();
    let all = planted(&base, 3);
    for (intercept, is_own) in [(0, true), (1, true), (2, true), (1, false)] {
        let problem = waves.problem(&base, intercept);
        let (classes, ids) = (classes_of(&problem), (0..120).collect::<Vec<u32>>());
        let mut parts = [[0, 50], [50, 120]].map(|border| all.part(&border));
        let own = parts.each_mut().map(|part| if is_own { part.number() } else { None });
        assert_eq!(own.iter().all(Option::is_some), is_own);
        let matrices = parts.each_ref().map(|part| Matrix::from(part.view()));
        let shard = |k: usize| {
            let (start, end) = [(0, 50), (50, 120)][k];
            let (classes, cost) = (&classes[start..end], &problem.cost[start..end]);
            let (rows, ids, own) = (&matrices[k], &ids[..end - start], own[k].as_ref());
            let (loss, intercept) = (LossKind::SquaredHinge, problem.intercept);
            ShardRows { rows, ids, own, classes, cost, loss, intercept, folds: None }
        };
        let mut here = Here::new(vec![shard(0), shard(1)], 2);
        let matrix = Matrix::from(all.view());
        let design = Design { rows: &matrix, ids: None, bias: problem.intercept.bias() };
        let d = design.n_cols();
        let link = Link::new(&mut here);
        let mut there =
            Remote::<1>::begin(&link, (120, 1.0), Lanes::Classes(1, 1, 1.0), d, problem.intercept.bias());
        let mut w = Block::<1>::zeros(d);
        w.iter_mut().enumerate().for_each(|(j, w)| w[0] = 0.1 * (j as f64).sin());
        let mut rows = RowState::<1>::new(design, true, &Silent);
        let objective = Weighted { loss: SquaredHinge, y: problem.y, cost: problem.cost };
        let mut h = Block::zeros(d);
        rows.decide(&w).unwrap();
        rows.evaluate(&objective, &mut h).unwrap();
        let Gram::Dense(expected) = rows.curvature(1, Form::Dense).unwrap().gram else { unreachable!() };
        there.decide(&w).unwrap();
        there.evaluate(&ShardTerms::Smooth, &mut h).unwrap();
        let first = there.curvature(1, Form::Frequent).unwrap();
        assert_eq!(first.gram.form(), Form::Diagonal);
        let found = there.curvature(1, Form::Frequent).unwrap();
        assert_eq!((found.largest, found.read, found.work), (first.largest, first.read, 1.0));
        let Gram::Frequent { diagonal, columns, block } = found.gram else { panic!("no block") };
        assert_eq!(columns.order(), FREQUENT_COLUMNS);
        let least = columns.columns().iter().map(|j| diagonal[*j as usize]).fold(f64::INFINITY, f64::min);
        assert!((0..d).all(|j| columns.position(j).is_some() || diagonal[j] <= least));
        for (a, i) in columns.columns().iter().map(|i| *i as usize).enumerate() {
            assert_eq!(diagonal[i], first.gram.values()[i]);
            for (b, j) in columns.columns()[..=a].iter().map(|j| *j as usize).enumerate() {
                let (found, expected) = (block.values[a * block.n + b], expected.values[i * d + j]);
                assert!((found - expected).abs() <= 1e-12 * (1.0 + expected.abs()), "{found} {expected}");
            }
        }
    }
}
