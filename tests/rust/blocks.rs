//! Training on a store: the optimum of the same rows in memory, whatever stays in memory, however it is
//! interrupted.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use hinge::blocks::budget::{Groups, MemoryPlan, Needs, groups};
use hinge::blocks::checkpoint::CheckpointOptions;
use hinge::blocks::duals::RUN;
use hinge::blocks::{BinaryTask, BlockOutcome, BlockSettings, DualsIn, Policy, Waiting};
use hinge::fit::{Intercept, Monitor, Params, Silent, SolverKind, Status};
use hinge::labels::classes::Classes;
use hinge::labels::{Classification, Labels};
use hinge::loss::LossKind;
use hinge::matrix::csr::CsrView;
use hinge::store::columns::Order;
use hinge::store::reader::Store;
use hinge::store::writer::{StoreBuilder, StoreOptions};
use hinge::{Error, blocks, labels};

pub const N: usize = 30_000;
pub const D: usize = 400;

/// Rows sorted by class, as a CSR matrix.
pub struct Data {
    pub indptr: Vec<i64>,
    pub indices: Vec<i32>,
    pub values: Vec<f64>,
    pub classes: Vec<u32>,
    pub weights: Vec<f64>,
}

/// Numbers that look random.
fn noise(k: u64) -> f64 {
    let mut x = k.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^= x >> 31;
    x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x ^= x >> 29;
    (x >> 11) as f64 / (1u64 << 53) as f64
}

pub fn data(n_classes: u32, is_uniform: bool) -> Data {
    let mut data =
        Data { indptr: vec![0], indices: vec![], values: vec![], classes: vec![], weights: vec![] };
    for i in 0..N as u64 {
        let class = (i * u64::from(n_classes) / N as u64) as u32;
        let mut columns: Vec<i32> = (0..12)
            .map(|k| {
                let u = noise(i * 100 + k);
                let base = (u * u * D as f64) as i32;
                if noise(i * 100 + k + 50) < 0.25 { (base / 8 * 8 + class as i32) % D as i32 } else { base }
            })
            .collect();
        columns.sort_unstable();
        columns.dedup();
        let norm = (columns.len() as f64).sqrt();
        for j in columns {
            data.indices.push(j);
            data.values.push(if is_uniform { 1.0 / norm } else { 0.3 + noise(i + j as u64 * 7) });
        }
        data.indptr.push(data.indices.len() as i64);
        data.classes.push(class);
        data.weights.push(1.0 + f64::from((i % 3 == 0) as u8));
    }
    data
}

pub fn build(data: &Data, folder: &Path) -> Store {
    let path = folder.join("x.blocks");
    let (view, _) = CsrView::new(&data.indptr, &data.indices, &data.values, D).unwrap();
    let mut counts = vec![0; D];
    data.indices.iter().for_each(|&j| counts[j as usize] += 1);
    let options = StoreOptions {
        n_blocks: 12,
        n_cols: Some(D),
        order: Order::by_count(&counts),
        ..StoreOptions::default()
    };
    let mut writer = StoreBuilder::create(&path, options).unwrap();
    writer.append(&view.into(), &data.classes, Some(&data.weights), &Silent).unwrap();
    let n_classes = data.classes.iter().max().unwrap() + 1;
    writer.finish(Classes::Int((0..i64::from(n_classes)).collect()), None).unwrap();
    Store::open(&path).unwrap()
}

pub fn settings(loss: LossKind, intercept: Intercept) -> BlockSettings<'static> {
    BlockSettings {
        loss,
        intercept,
        tol: 1e-4,
        max_passes: 200,
        seed: 3,
        // Page buffers, dual variables, and room for about a third of the rows.
        budget: 19_500_000,
        policy: Policy::Gradient,
        cache_share: Some(0.5),
        rounds: 5,
        round_tol: 0.0,
        keeps_stored: false,
        waiting: Waiting::Rest,
        duals: DualsIn::Memory,
        map: None,
    }
}

fn one(store: &Store, settings: &BlockSettings<'_>) -> Needs {
    Needs::binary(store, settings, Groups::in_memory(store, settings, 1))
}

fn tasks(n_classes: u32, c: f64) -> Vec<BinaryTask> {
    let cost: Vec<f64> = (0..n_classes).map(|k| c * (1.0 + 0.5 * f64::from(k))).collect();
    let task = |positive| BinaryTask { positive, cost: cost.clone(), held_out: None };
    if n_classes == 2 { vec![task(1)] } else { (0..n_classes).map(task).collect() }
}

fn fit(store: &Store, tasks: &[BinaryTask], settings: &BlockSettings) -> Vec<BlockOutcome> {
    blocks::fit(store, tasks, &[], settings, None, &Silent).unwrap()
}

/// Objectives of the same problems in memory.
fn optima(data: &Data, tasks: &[BinaryTask], loss: LossKind, intercept: Intercept) -> Vec<f64> {
    let (view, _) = CsrView::new(&data.indptr, &data.indices, &data.values, D).unwrap();
    let n_classes = data.classes.iter().max().unwrap() + 1;
    let labels = Labels { ids: &data.classes, n_classes };
    let cost: Vec<f64> =
        data.classes.iter().zip(&data.weights).map(|(&k, w)| tasks[0].cost[k as usize] * w).collect();
    let params = Params { solver: SolverKind::DualCd, tol: 1e-7, max_iter: 5000, seed: 1 };
    let data = Classification { rows: &view.into(), labels: &labels, cost: &cost, intercept };
    let solutions = labels::fit(&data, loss, &params, &Silent).unwrap();
    solutions.iter().map(|s| s.certificate.primal).collect()
}

/// Objective of a solution, by the definition.
fn objective(
    data: &Data,
    task: &BinaryTask,
    outcome: &BlockOutcome,
    loss: LossKind,
    intercept: Intercept,
) -> f64 {
    let mut total = 0.5 * outcome.w.iter().map(|w| w * w).sum::<f64>();
    if let Intercept::Penalised(scale) = intercept {
        total += 0.5 * (outcome.intercept / scale).powi(2);
    }
    for i in 0..N {
        let range = data.indptr[i] as usize..data.indptr[i + 1] as usize;
        let f: f64 = range.map(|k| data.values[k] * outcome.w[data.indices[k] as usize]).sum();
        let m = task.sign(data.classes[i]) * (f + outcome.intercept);
        let value = crate::naive::value(loss, m);
        total += task.cost(data.classes[i], data.weights[i], None) * value;
    }
    total
}

#[test]
fn the_optimum_is_that_of_the_rows_in_memory() {
    for (is_uniform, loss, intercept) in [
        (true, LossKind::Hinge, Intercept::Free),
        (true, LossKind::SquaredHinge, Intercept::None),
        (false, LossKind::SquaredHinge, Intercept::Free),
        (false, LossKind::Hinge, Intercept::Penalised(2.0)),
        (false, LossKind::Logistic, Intercept::Free),
    ] {
        let (data, folder) = (data(2, is_uniform), tempfile::tempdir().unwrap());
        let (store, tasks) = (build(&data, folder.path()), tasks(2, 0.1));
        let settings = settings(loss, intercept);
        let plan = MemoryPlan::new(&store, &settings, &one(&store, &settings)).unwrap();
        assert!(plan.blocks.len() > 2, "{} blocks", plan.blocks.len());
        let outcome = &fit(&store, &tasks, &settings)[0];
        let name = format!("{loss:?}, {intercept:?}: {:?}", outcome.certificate);
        assert_eq!(outcome.status, Status::Converged, "{name}");
        let optimum = optima(&data, &tasks, loss, intercept)[0];
        let primal = objective(&data, &tasks[0], outcome, loss, intercept);
        assert!(
            (primal - outcome.certificate.primal).abs() <= 1e-9 * primal,
            "{name}, by definition {primal}"
        );
        assert!(outcome.certificate.dual <= optimum * (1.0 + 1e-9), "{name}, optimum {optimum}");
        assert!(
            primal <= optimum * (1.0 + 1e-4) && primal >= optimum * (1.0 - 1e-6),
            "{name}, optimum {optimum}"
        );
    }
}

#[test]
fn several_classes_and_held_out_parts_share_one_reading() {
    let (data, folder) = (data(3, false), tempfile::tempdir().unwrap());
    let (store, mut tasks) = (build(&data, folder.path()), tasks(3, 0.05));
    let (loss, intercept) = (LossKind::SquaredHinge, Intercept::Free);
    let settings = BlockSettings { budget: 24_000_000, ..settings(loss, intercept) };
    let outcomes = fit(&store, &tasks, &settings);
    for ((task, outcome), optimum) in tasks.iter().zip(&outcomes).zip(optima(&data, &tasks, loss, intercept))
    {
        let primal = objective(&data, task, outcome, loss, intercept);
        assert!(primal <= optimum * (1.0 + 1e-4), "{primal} for {optimum}");
    }
    // A held-out part is as if its rows had no weight.
    let parts: Vec<u8> = (0..N).map(|place| (place % 4) as u8).collect();
    tasks.truncate(1);
    tasks[0].held_out = Some(2);
    let outcome = &blocks::fit(&store, &tasks, &parts, &settings, None, &Silent).unwrap()[0];
    assert_eq!(outcome.status, Status::Converged);
    let all = &outcomes[0];
    assert!(outcome.certificate.primal < 0.85 * all.certificate.primal);
}

#[test]
fn bits_do_not_depend_on_threads_or_on_what_is_kept_compressed() {
    let (data, folder) = (data(2, false), tempfile::tempdir().unwrap());
    let (store, tasks) = (build(&data, folder.path()), tasks(2, 0.1));
    let settings = BlockSettings { max_passes: 3, ..settings(LossKind::Hinge, Intercept::Free) };
    let of = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| fit(&store, &tasks, &settings)).remove(0)
    };
    let (one, three) = (of(1), of(3));
    assert_eq!(one.w, three.w);
    assert_eq!((one.intercept, one.certificate), (three.intercept, three.certificate));
}

#[test]
fn every_loss_gets_its_rounds() {
    let (data, folder) = (data(2, false), tempfile::tempdir().unwrap());
    let (store, tasks) = (build(&data, folder.path()), tasks(2, 1.0));
    for loss in [LossKind::Hinge, LossKind::SquaredHinge, LossKind::Logistic] {
        let some = BlockSettings { policy: Policy::None, max_passes: 1, ..settings(loss, Intercept::None) };
        let visits = |rounds| fit(&store, &tasks, &BlockSettings { rounds, ..some })[0].passes - 1.0;
        assert_eq!(visits(1), 1.0, "{loss:?}");
        // Shrinking leaves some rows of the hinge losses out.
        assert!(if loss == LossKind::Logistic { visits(5) == 5.0 } else { visits(5) > 2.0 }, "{loss:?}");
    }
    // A tolerance that any gradient meets ends them.
    let some = BlockSettings {
        policy: Policy::None,
        max_passes: 1,
        ..settings(LossKind::Logistic, Intercept::None)
    };
    assert_eq!(fit(&store, &tasks, &BlockSettings { round_tol: 1e9, ..some })[0].passes, 2.0);
}

/// Counts what is read from the disk.
#[derive(Default)]
struct Readings(std::sync::atomic::AtomicU64);

impl Monitor for Readings {
    fn cancelled(&self) -> bool {
        false
    }
    fn observe_reading(&self, reading: &hinge::fit::Reading) {
        self.0.store(reading.bytes, Ordering::Relaxed);
    }
}

#[test]
fn a_store_whose_bytes_fit_is_read_once() {
    let (data, folder) = (data(2, false), tempfile::tempdir().unwrap());
    let (store, tasks) = (build(&data, folder.path()), tasks(2, 0.1));
    let some =
        BlockSettings { max_passes: 3, budget: 20_500_000, ..settings(LossKind::Hinge, Intercept::None) };
    let bytes: u64 = store.pages().iter().map(|page| u64::from(page.stored)).sum();
    for keeps_stored in [true, false] {
        let settings = BlockSettings { keeps_stored, ..some };
        let plan = MemoryPlan::new(&store, &settings, &one(&store, &settings)).unwrap();
        assert_eq!(
            (plan.keeps_stored, plan.blocks.len() > 1),
            (keeps_stored, true),
            "{} blocks",
            plan.blocks.len()
        );
        let readings = Readings::default();
        blocks::fit(&store, &tasks, &[], &settings, None, &readings).unwrap();
        let read = readings.0.into_inner();
        // Three passes and one scan.
        assert!(if keeps_stored { read == bytes } else { read >= 4 * bytes }, "{read} of {bytes} bytes");
    }
}

#[test]
fn the_cache_is_as_large_as_asked_for() {
    let of = |policy, cache_share, held| {
        BlockSettings { policy, cache_share, ..settings(LossKind::Hinge, Intercept::None) }.share(held)
    };
    assert_eq!(of(Policy::None, Some(0.4), 0.2), 0.0);
    assert_eq!(of(Policy::Random, Some(0.4), 0.2), 0.4);
    assert_eq!(of(Policy::Gradient, None, 0.2), 1.0 / 3.0);
    assert_eq!(of(Policy::Gradient, None, 0.05), 0.5);
}

/// A reader that takes its time for each page; the trainer has all it wants.
struct SlowDisk(std::time::Duration);

impl Monitor for SlowDisk {
    fn cancelled(&self) -> bool {
        if std::thread::current().name() == Some(hinge::source::fetch::THREAD) {
            std::thread::sleep(self.0);
        }
        false
    }
}

#[test]
fn a_slow_disk_changes_no_bit_or_is_put_to_use() {
    let (data, folder) = (data(2, false), tempfile::tempdir().unwrap());
    let (store, tasks) = (build(&data, folder.path()), tasks(2, 1.0));
    let rest = BlockSettings { max_passes: 2, rounds: 1, ..settings(LossKind::Hinge, Intercept::None) };
    let slow = SlowDisk(std::time::Duration::from_millis(30));
    let of = |settings: &BlockSettings, monitor: &dyn Monitor| {
        blocks::fit(&store, &tasks, &[], settings, None, monitor).unwrap().remove(0)
    };
    let (quick, slowly) = (of(&rest, &Silent), of(&rest, &slow));
    assert_eq!((&quick.w, quick.certificate, quick.passes), (&slowly.w, slowly.certificate, slowly.passes));
    // The same two readings, more visits of the cached rows, a better model; still a dual point of the whole
    // problem.
    let train = BlockSettings { waiting: Waiting::Train, ..rest };
    let busy = of(&train, &slow);
    let optimum = optima(&data, &tasks, LossKind::Hinge, Intercept::None)[0];
    let facts = format!(
        "{} and {} passes, {:?} and {:?}",
        slowly.passes, busy.passes, slowly.certificate, busy.certificate
    );
    assert_eq!(busy.loads, slowly.loads);
    assert!(busy.passes > slowly.passes + 1.0, "{facts}");
    assert!(busy.certificate.dual > slowly.certificate.dual && busy.certificate.dual <= optimum, "{facts}");
}

#[test]
fn dual_variables_in_a_file_give_the_same_bits() {
    for (loss, intercept) in [(LossKind::Hinge, Intercept::Free), (LossKind::SquaredHinge, Intercept::None)] {
        let (data, folder) = (data(3, false), tempfile::tempdir().unwrap());
        let (store, tasks) = (build(&data, folder.path()), tasks(3, 0.1));
        for policy in [Policy::Gradient, Policy::Projected, Policy::Steepest] {
            let memory =
                BlockSettings { policy, max_passes: 3, budget: 22_000_000, ..settings(loss, intercept) };
            // Buffers of files are larger than these few variables; the room for rows is to be the same.
            let budget = memory.budget + 3 * 8 * (4 * RUN - N) as u64;
            let file = BlockSettings { duals: DualsIn::File, budget, ..memory };
            let (a, b) = (fit(&store, &tasks, &memory), fit(&store, &tasks, &file));
            for (a, b) in a.iter().zip(&b) {
                assert_eq!(
                    (&a.w, a.intercept, a.certificate),
                    (&b.w, b.intercept, b.certificate),
                    "{loss:?} {policy:?}"
                );
            }
        }
    }
}

/// A store of many short rows.
pub fn long() -> (Store, tempfile::TempDir) {
    let (n, folder) = (200_000, tempfile::tempdir().unwrap());
    let path = folder.path().join("long.blocks");
    let indptr: Vec<i64> = (0..=n).collect();
    let columns: Vec<i32> = (0..n).map(|i| (i % 7) as i32).collect();
    let values = vec![1.0; n as usize];
    let (view, _) = CsrView::new(&indptr, &columns, &values, 7).unwrap();
    let mut writer = StoreBuilder::create(&path, StoreOptions::default()).unwrap();
    writer.append(&view.into(), &(0..n as u32).map(|i| i % 3).collect::<Vec<_>>(), None, &Silent).unwrap();
    writer.finish(Classes::Int(vec![0, 1, 2]), None).unwrap();
    (Store::open(&path).unwrap(), folder)
}

#[test]
fn dual_variables_go_to_files_where_that_saves_readings() {
    let (store, _folder) = long();
    let of = |budget, duals, n_tasks| {
        let settings = BlockSettings { budget, duals, ..settings(LossKind::Hinge, Intercept::None) };
        let Groups { size, on_disk, .. } = groups(&store, &settings, n_tasks);
        (size, on_disk)
    };
    // 1.6 MB of dual variables each.
    assert_eq!(of(20_000_000, DualsIn::Auto, 3), (3, false));
    assert_eq!(of(8_000_000, DualsIn::Auto, 3), (3, true));
    assert_eq!(of(8_000_000, DualsIn::Memory, 3), (2, false));
    assert_eq!(of(3_000_000, DualsIn::Auto, 1), (1, true));
    assert_eq!(of(20_000_000, DualsIn::File, 1), (1, true));
}

#[test]
fn every_cache_finds_the_optimum_and_a_good_one_sooner() {
    let (data, folder) = (data(2, true), tempfile::tempdir().unwrap());
    let (store, tasks) = (build(&data, folder.path()), tasks(2, 1.0));
    let of = |policy| {
        let settings = BlockSettings { policy, tol: 1e-3, ..settings(LossKind::Hinge, Intercept::None) };
        let outcome = fit(&store, &tasks, &settings).remove(0);
        assert_eq!(outcome.status, Status::Converged, "{policy:?}");
        (outcome.n_iter, outcome.certificate.primal)
    };
    let passes =
        [Policy::None, Policy::Random, Policy::Gradient, Policy::Projected, Policy::Steepest].map(of);
    for (_, primal) in passes {
        assert!((primal / passes[0].1 - 1.0).abs() < 2e-3);
    }
    assert!(passes[2].0 < passes[0].0 && passes[3].0 < passes[0].0, "{passes:?}");
}

#[test]
fn too_small_a_budget_is_refused_with_what_would_do() {
    let (data, folder) = (data(2, true), tempfile::tempdir().unwrap());
    let (store, tasks) = (build(&data, folder.path()), tasks(2, 1.0));
    let mut settings = BlockSettings { budget: 1_000_000, ..settings(LossKind::Hinge, Intercept::Free) };
    let error = blocks::fit(&store, &tasks, &[], &settings, None, &Silent).unwrap_err();
    let Error::Budget { needed, .. } = error else { panic!("{error}") };
    settings.budget = needed;
    settings.max_passes = 1;
    assert_eq!(fit(&store, &tasks, &settings)[0].status, Status::MaxIter);
    for wrong in
        [BlockSettings { cache_share: Some(1.5), ..settings }, BlockSettings { rounds: 0, ..settings }]
    {
        let error = blocks::fit(&store, &tasks, &[], &wrong, None, &Silent).unwrap_err();
        assert!(matches!(error, Error::Parameter { .. }), "{error}");
    }
}

/// Cancels after a number of looks.
struct Impatient {
    left: AtomicUsize,
}

impl Monitor for Impatient {
    fn cancelled(&self) -> bool {
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

#[test]
fn an_interrupted_training_goes_on_to_the_same_bits() {
    let (data, folder) = (data(3, false), tempfile::tempdir().unwrap());
    let (store, tasks) = (build(&data, folder.path()), tasks(3, 0.1));
    let settings =
        BlockSettings { budget: 22_000_000, max_passes: 4, ..settings(LossKind::Hinge, Intercept::Free) };
    goes_on(&store, &tasks, &settings, folder.path());
}

#[test]
fn an_interrupted_training_with_dual_variables_in_files_goes_on_to_the_same_bits() {
    let (data, folder) = (data(3, false), tempfile::tempdir().unwrap());
    let (store, tasks) = (build(&data, folder.path()), tasks(3, 0.1));
    let some =
        BlockSettings { budget: 25_000_000, max_passes: 3, ..settings(LossKind::Hinge, Intercept::Free) };
    goes_on(&store, &tasks, &BlockSettings { duals: DualsIn::File, ..some }, folder.path());
}

fn goes_on(store: &Store, tasks: &[BinaryTask], settings: &BlockSettings, folder: &Path) {
    let whole = fit(store, tasks, settings);
    let resumed = interrupted(settings, folder, |settings, keep, monitor| {
        blocks::fit(store, tasks, &[], settings, Some(keep), monitor)
    });
    for resumed in resumed {
        for (a, b) in whole.iter().zip(&resumed) {
            assert_eq!(
                (&a.w, a.intercept, a.certificate, a.n_iter),
                (&b.w, b.intercept, b.certificate, b.n_iter)
            );
        }
    }
}

/// Cancels a training again and again, and damages its checkpoint: what it ends with, and what it ends with
/// from a good checkpoint.
pub fn interrupted<T>(
    settings: &BlockSettings,
    folder: &Path,
    fit: impl Fn(&BlockSettings, CheckpointOptions<'_>, &dyn Monitor) -> hinge::Result<T>,
) -> [T; 2] {
    let path: PathBuf = folder.join("checkpoint");
    let keep = CheckpointOptions { path: &path, seconds: 0.0 };
    let mut interruptions = 0;
    let resumed = loop {
        let monitor = Impatient { left: AtomicUsize::new(100 + 60 * interruptions) };
        match fit(settings, keep, &monitor) {
            Ok(outcomes) => break outcomes,
            Err(Error::Cancelled) => interruptions += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(interruptions < 200);
    };
    assert!(interruptions > 3, "{interruptions} interruptions");
    // Other settings are refused with what differs.
    let other = BlockSettings { seed: 4, ..*settings };
    let Err(error) = fit(&other, keep, &Silent) else { panic!("another training goes on") };
    assert!(error.to_string().contains("seed is 3 there and 4 here"), "{error}");

    // Every cut and every flip that was tried is noticed: all over the head, and in many places behind it.
    let bytes = std::fs::read(&path).unwrap();
    let check = |bytes: &[u8], what: String| {
        std::fs::write(&path, bytes).unwrap();
        // Read before anything else is done; a checkpoint that is taken for good is left alone.
        let result = fit(settings, keep, &Impatient { left: AtomicUsize::new(0) });
        assert!(matches!(result, Err(Error::Journal { .. })), "{what}");
    };
    for k in 0..2_000usize {
        let at = if k < 1_000 { 3 * k + k % 2 } else { k * 1_234_567 } % bytes.len();
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (k % 8);
        check(&damaged, format!("byte {at} of {}", bytes.len()));
        // An empty file is what a kill before the first state leaves: the training begins.
        if k % 50 == 0 && at > 0 {
            check(&bytes[..at], format!("cut at {at}"));
        }
    }
    // Put right again, it still ends with the same model.
    std::fs::write(&path, &bytes).unwrap();
    [resumed, fit(settings, keep, &Silent).unwrap_or_else(|error| panic!("{error}"))]
}

#[test]
fn a_training_that_ran_out_of_passes_goes_on_with_more() {
    let (data, folder) = (data(2, true), tempfile::tempdir().unwrap());
    let (store, tasks) = (build(&data, folder.path()), tasks(2, 0.5));
    let settings = settings(LossKind::Hinge, Intercept::Free);
    let path: PathBuf = folder.path().join("checkpoint");
    let keep = Some(CheckpointOptions { path: &path, seconds: 0.0 });
    let some = BlockSettings { max_passes: 2, ..settings };
    assert_eq!(blocks::fit(&store, &tasks, &[], &some, keep, &Silent).unwrap()[0].status, Status::MaxIter);
    let more = blocks::fit(&store, &tasks, &[], &settings, keep, &Silent).unwrap();
    let whole = fit(&store, &tasks, &settings);
    assert_eq!(
        (&more[0].w, more[0].n_iter, more[0].status),
        (&whole[0].w, whole[0].n_iter, Status::Converged)
    );
}

#[test]
fn a_damaged_store_never_gives_a_model() {
    let (data, folder) = (data(2, true), tempfile::tempdir().unwrap());
    let tasks = tasks(2, 1.0);
    let store = build(&data, folder.path());
    let page = store.pages()[store.pages().len() / 2];
    let path = folder.path().join("x.blocks");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[page.offset as usize + 300] ^= 4;
    std::fs::write(&path, bytes).unwrap();
    let store = Store::open(&path).unwrap();
    let settings = settings(LossKind::Hinge, Intercept::Free);
    let error = blocks::fit(&store, &tasks, &[], &settings, None, &Silent).unwrap_err();
    assert!(matches!(error, Error::Corrupt { offset, .. } if offset == page.offset), "{error}");
}
