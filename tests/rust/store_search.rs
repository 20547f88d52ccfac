//! The search for C over blocks against the same search in memory.

use std::path::Path;

use hinge::Error;
use hinge::blocks::BlockSettings as Blocks;
use hinge::blocks::search::{StoreSearch, StoreSearchData};
use hinge::fit::{Intercept, Params, Silent, SolverKind};
use hinge::labels::MultiClass;
use hinge::loss::LossKind;
use hinge::search::{EndReason, Fold, SearchPlan, SearchSettings, SearchStep, StopRule, Values};
use hinge::store::reader::Store;

use crate::blocks::{N, build, data, settings};

const FACTOR: [f64; 3] = [1.0, 2.0, 1.5];

fn folds(k: usize) -> Vec<Fold> {
    let rows = 0..N as u32;
    (0..k as u32)
        .map(|f| Fold {
            train: rows.clone().filter(|i| i % k as u32 != f).collect(),
            test: rows.clone().rev().filter(|i| i % k as u32 == f).collect(),
        })
        .collect()
}

fn run(
    store: &Store,
    folds: &[Fold],
    loss: LossKind,
    intercept: Intercept,
    values: Values,
    resume: Option<&Path>,
    (in_memory, n_classes): (bool, usize),
) -> hinge::Result<(EndReason, Vec<SearchStep>)> {
    let budget = 19_500_000 + (n_classes * folds.len()) as u64 * 700_000;
    let blocks = Blocks { budget, ..settings(loss, intercept) };
    let settings = SearchSettings {
        loss,
        intercept,
        params: Params { solver: SolverKind::DualCd, tol: 1e-2, max_iter: 500, seed: 3 },
        multi_class: MultiClass::OneVsRest,
    };
    let plan = SearchPlan { values, refine: 0, stop: StopRule::Exact };
    let task = StoreSearchData { store, factor: &FACTOR[..n_classes], folds };
    let search = StoreSearch { task, settings, blocks, plan: &plan, resume };
    let mut steps = Vec::new();
    let reason = search.run(in_memory, &Silent, &mut |step| {
        steps.push(step.clone());
        Ok(Some(0.0))
    })?;
    Ok((reason, steps))
}

#[test]
fn blocks_find_what_memory_finds() {
    for (n_classes, loss, intercept) in [
        (2, LossKind::Hinge, Intercept::Free),
        (2, LossKind::Logistic, Intercept::None),
        (3, LossKind::SquaredHinge, Intercept::Penalised(1.0)),
    ] {
        let (data, folder) = (data(n_classes as u32, false), tempfile::tempdir().unwrap());
        let (store, folds) = (build(&data, folder.path()), folds(3));
        let values = || Values::List(vec![0.01, 0.02, 0.08]);
        let of =
            |in_memory| run(&store, &folds, loss, intercept, values(), None, (in_memory, n_classes)).unwrap();
        let ((reason, blocks), (_, memory)) = (of(false), of(true));
        assert_eq!(reason, EndReason::List);
        assert_eq!(blocks.len(), 3);
        for (a, b) in blocks.iter().zip(&memory) {
            assert!(a.is_converged, "{loss:?} C = {}", a.c);
            assert_eq!(a.objective.len(), folds.len() * if n_classes == 2 { 1 } else { 3 });
            for (x, y) in a.objective.iter().zip(&b.objective) {
                assert!((x / y - 1.0).abs() < 1.1e-3, "{loss:?} C = {}: {x} and {y}", a.c);
            }
            // The same sides but for rows near the border.
            let (mut rows, mut differ) = (0, 0);
            for (x, y) in a.decisions.iter().flatten().zip(b.decisions.iter().flatten()) {
                rows += 1;
                differ += usize::from((*x > 0.0) != (*y > 0.0));
            }
            assert_eq!(rows, if n_classes == 2 { N } else { 3 * N });
            assert!(differ * 50 < rows, "{loss:?} C = {}: {differ} of {rows} decisions differ", a.c);
        }
    }
}

#[test]
fn a_search_over_blocks_goes_on_to_the_same_bits_and_finds_its_end() {
    let (data, folder) = (data(2, false), tempfile::tempdir().unwrap());
    let (store, folds) = (build(&data, folder.path()), folds(3));
    let path = folder.path().join("journal");
    let range = |c_max| Values::Range { c_min: None, c_max, ratio: 2.0 };
    let search = |values: Values, resume: Option<&Path>| {
        run(&store, &folds, LossKind::SquaredHinge, Intercept::Free, values, resume, (false, 2)).unwrap()
    };
    let (reason, whole) = search(range(2e-4), None);
    assert_eq!(reason, EndReason::CMax);
    assert!(whole.len() >= 3, "{} values of C", whole.len());
    search(range(2e-4), Some(&path));
    // Without its last third the journal ends in the middle of a record.
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() * 2 / 3]).unwrap();
    let (_, again) = search(range(2e-4), Some(&path));
    assert!(again[0].is_replayed && !again[again.len() - 1].is_replayed);
    for (a, b) in whole.iter().zip(&again) {
        assert_eq!((a.c, &a.objective, &a.decisions), (b.c, &b.objective, &b.decisions));
    }
    // A value of C within reach of the solution before reads nothing.
    let until = whole[0].unchanged_until;
    assert!(until > whole[0].c);
    let (_, near) = search(Values::List(vec![whole[0].c, 0.5 * (whole[0].c + until), 2.0 * until]), None);
    assert!(near[1].is_unchanged && near[1].passes == 0.0);
}

#[test]
fn splits_that_are_no_partition_and_small_budgets_are_refused() {
    let (data, folder) = (data(2, false), tempfile::tempdir().unwrap());
    let store = build(&data, folder.path());
    let message = |folds: &[Fold]| {
        let values = Values::List(vec![1.0]);
        run(&store, folds, LossKind::Hinge, Intercept::None, values, None, (false, 2))
            .unwrap_err()
            .to_string()
    };
    let mut twice = folds(3);
    twice[1].test.push(0);
    assert!(message(&twice).contains("row 0 is held out twice"));
    let mut less = folds(3);
    less[2].train.pop();
    assert!(message(&less).contains("fold 2 does not train on exactly"));
    let mut beyond = folds(3);
    beyond[0].test[0] = N as u32;
    assert!(message(&beyond).contains("row 30000"));
    let n = N as u32;
    let one_class = [Fold { train: (0..n / 2).collect(), test: (n / 2..n).collect() }];
    assert!(message(&one_class).contains("no row of positive weight"));
    assert!(message(&[]).contains("folds"));

    let plan = SearchPlan { values: Values::List(vec![1.0]), refine: 0, stop: StopRule::Exact };
    let blocks = Blocks { budget: 2_000_000, ..settings(LossKind::Hinge, Intercept::None) };
    let (loss, intercept) = (LossKind::Hinge, Intercept::None);
    let settings = SearchSettings {
        loss,
        intercept,
        params: Params { solver: SolverKind::DualCd, tol: 1e-2, max_iter: 5, seed: 3 },
        multi_class: MultiClass::OneVsRest,
    };
    let folds = folds(3);
    let task = StoreSearchData { store: &store, factor: &FACTOR[..2], folds: &folds };
    let search = StoreSearch { task, settings, blocks, plan: &plan, resume: None };
    let error = search.run(false, &Silent, &mut |_| Ok(None)).unwrap_err();
    assert!(matches!(error, Error::Budget { budget: 2_000_000, .. }), "{error}");
}
