//! All classes at once on a store: the optimum of the same rows in memory.

use hinge::Error;
use hinge::blocks::budget::{LISTS, MemoryPlan, Needs};
use hinge::blocks::class_duals::PIECE;
use hinge::blocks::{self, AllClassesOutcome, BlockSettings, DualsIn, Policy};
use hinge::fit::{Intercept, Params, Silent, SolverKind, Status};
use hinge::labels::{Classification, Labels, crammer_singer};
use hinge::loss::LossKind;
use hinge::matrix::csr::CsrView;
use hinge::store::columns;
use hinge::store::reader::Store;

use super::blocks::{D, Data, N, build, data, interrupted, long, settings};

const INTERCEPTS: [Intercept; 3] = [Intercept::None, Intercept::Penalised(2.0), Intercept::Free];

fn costs(n_classes: u32) -> Vec<f64> {
    (0..n_classes).map(|k| 0.1 * (1.0 + 0.1 * f64::from(k))).collect()
}

fn some(intercept: Intercept) -> BlockSettings<'static> {
    BlockSettings { tol: 1e-3, budget: 22_500_000, ..settings(LossKind::Hinge, intercept) }
}

/// Objective by the definition, from weights by column of the input.
fn objective(
    data: &Data,
    store: &Store,
    cost: &[f64],
    outcome: &AllClassesOutcome,
    intercept: Intercept,
) -> f64 {
    let (old, b) = (store.old_columns().unwrap(), &outcome.intercepts);
    let w = |class| {
        let mut w = outcome.weights.class(class, store.meta().n_used);
        w.resize(D, 0.0);
        columns::restore(&old, &mut w);
        w
    };
    let w: Vec<Vec<f64>> = (0..cost.len()).map(w).collect();
    let mut total: f64 = w.iter().flatten().map(|w| 0.5 * w * w).sum();
    if let Intercept::Penalised(scale) = intercept {
        total += b.iter().map(|b| 0.5 * (b / scale).powi(2)).sum::<f64>();
    }
    for i in 0..N {
        let range = data.indptr[i] as usize..data.indptr[i + 1] as usize;
        let own = data.classes[i] as usize;
        let score = |m: usize| -> f64 {
            let dot: f64 = range.clone().map(|k| data.values[k] * w[m][data.indices[k] as usize]).sum();
            dot + b[m] + f64::from(u8::from(m != own))
        };
        let highest = (0..cost.len()).map(score).fold(f64::NEG_INFINITY, f64::max);
        total += cost[own] * data.weights[i] * (highest - score(own));
    }
    total
}

#[test]
fn blocks_reach_the_optimum_of_memory() {
    // 40 classes take more cache lines than are looked at as a whole.
    for n_classes in [2, 3, 40] {
        let (data, folder, cost) = (data(n_classes, false), tempfile::tempdir().unwrap(), costs(n_classes));
        let store = build(&data, folder.path());
        let (view, _) = CsrView::new(&data.indptr, &data.indices, &data.values, D).unwrap();
        let labels = Labels { ids: &data.classes, n_classes };
        let by_row: Vec<f64> =
            data.classes.iter().zip(&data.weights).map(|(&k, w)| cost[k as usize] * w).collect();
        for (intercept, policy) in
            INTERCEPTS.into_iter().zip([Policy::Projected, Policy::None, Policy::Gradient])
        {
            // Without a cache the descent crawls: 200 readings to 1.3e-3 where 8 do with one.
            let tol = if policy == Policy::None { 1e-2 } else { 1e-3 };
            let settings = BlockSettings { policy, tol, ..some(intercept) };
            let plan =
                MemoryPlan::new(&store, &settings, &Needs::crammer_singer(&store, &settings, false)).unwrap();
            assert!(plan.blocks.len() >= 3, "{} blocks", plan.blocks.len());
            let found = blocks::fit_crammer_singer(&store, &cost, &settings, None, &Silent).unwrap();
            assert_eq!(found.status, Status::Converged, "{n_classes} {intercept:?} {:?}", found.certificate);
            let plain = objective(&data, &store, &cost, &found, intercept);
            let claimed = found.certificate;
            assert!((plain - claimed.primal).abs() <= 1e-9 * plain, "{plain} {claimed:?}");
            let params = Params { solver: SolverKind::CrammerSinger, tol: 1e-3, max_iter: 1000, seed: 1 };
            let all = Classification { rows: &view.into(), labels: &labels, cost: &by_row, intercept };
            let memory = crammer_singer::fit(&all, None, &params, &Silent);
            let memory = memory.unwrap().certificate;
            // Both enclose the optimum.
            assert!(claimed.dual <= memory.primal && memory.dual <= claimed.primal, "{claimed:?} {memory:?}");
            assert!(claimed.relative_gap() <= tol && memory.relative_gap() <= 1e-3);
        }
    }
}

#[test]
fn threads_change_no_bit() {
    let (data, folder, cost) = (data(3, true), tempfile::tempdir().unwrap(), costs(3));
    let store = build(&data, folder.path());
    let settings = BlockSettings { policy: Policy::Projected, max_passes: 3, ..some(Intercept::Free) };
    let fit = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| blocks::fit_crammer_singer(&store, &cost, &settings, None, &Silent).unwrap())
    };
    let (one, three) = (fit(1), fit(3));
    assert_eq!(
        (one.weights.parts()[0].numbers(), &one.intercepts),
        (three.weights.parts()[0].numbers(), &three.intercepts)
    );
    assert_eq!(one.certificate, three.certificate);
}

/// The same with dual variables in a file, in a budget with as much room for rows.
fn in_a_file<'a>(settings: &BlockSettings<'a>) -> BlockSettings<'a> {
    let budget = settings.budget - (LISTS * (N - 3 * PIECE)) as u64;
    BlockSettings { duals: DualsIn::File, budget, ..*settings }
}

#[test]
fn dual_variables_in_a_file_give_the_same_bits() {
    for (intercept, policy) in INTERCEPTS.into_iter().zip([Policy::Projected, Policy::Gradient, Policy::Auto])
    {
        let (data, folder, cost) = (data(40, false), tempfile::tempdir().unwrap(), costs(40));
        let store = build(&data, folder.path());
        let memory = BlockSettings { policy, max_passes: 3, ..some(intercept) };
        let fit = |settings| blocks::fit_crammer_singer(&store, &cost, settings, None, &Silent).unwrap();
        let (a, b) = (fit(&memory), fit(&in_a_file(&memory)));
        for (a, b) in a.weights.parts().iter().zip(b.weights.parts()) {
            assert_eq!(a.numbers(), b.numbers());
        }
        assert_eq!((a.intercepts, a.certificate, a.passes), (b.intercepts, b.certificate, b.passes));
    }
}

#[test]
fn a_file_takes_the_dual_variables_that_the_budget_has_no_room_for() {
    let (store, _folder) = long();
    for intercept in INTERCEPTS {
        let fit = |budget, duals| {
            let settings = BlockSettings { duals, budget, max_passes: 1, ..some(intercept) };
            blocks::fit_crammer_singer(&store, &costs(3), &settings, None, &Silent)
        };
        let needed = |duals| match fit(1_000_000, duals) {
            Err(Error::Budget { needed, .. }) => needed,
            _ => panic!("no room"),
        };
        let (memory, file) = (needed(DualsIn::Memory), needed(DualsIn::Auto));
        assert!(file + 10_000_000 < memory, "{file} and {memory}");
        assert!(matches!(fit(memory - 1, DualsIn::Memory), Err(Error::Budget { .. })));
        let (plain, saved) = (fit(memory, DualsIn::Auto).unwrap(), fit(file, DualsIn::Auto).unwrap());
        let (plain, saved) = (plain.certificate, saved.certificate);
        assert!(saved.dual <= plain.primal && plain.dual <= saved.primal);
    }
}

#[test]
fn an_interrupted_training_goes_on_to_the_same_bits() {
    let settings = BlockSettings { policy: Policy::Projected, max_passes: 3, ..some(Intercept::Free) };
    goes_on(&settings);
    goes_on(&in_a_file(&BlockSettings { max_passes: 2, ..settings }));
}

fn goes_on(settings: &BlockSettings) {
    let (data, folder, cost) = (data(3, false), tempfile::tempdir().unwrap(), costs(3));
    let store = build(&data, folder.path());
    let settings = *settings;
    let whole = blocks::fit_crammer_singer(&store, &cost, &settings, None, &Silent).unwrap();
    let resumed = interrupted(&settings, folder.path(), |settings, keep, monitor| {
        blocks::fit_crammer_singer(&store, &cost, settings, Some(keep), monitor)
    });
    for resumed in resumed {
        assert_eq!(
            (whole.weights.parts()[0].numbers(), &whole.intercepts),
            (resumed.weights.parts()[0].numbers(), &resumed.intercepts)
        );
        assert_eq!((whole.certificate, whole.n_iter), (resumed.certificate, resumed.n_iter));
    }
}
