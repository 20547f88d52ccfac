//! Journals of searches and checkpoints of trainings, used by a search and a training.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use hinge::blocks::checkpoint::CheckpointOptions;
use hinge::blocks::{BinaryTask, BlockOutcome, BlockSettings, DualsIn, Policy, Waiting};
use hinge::fit::{Intercept, Monitor, Params, Silent, SolverKind, Status};
use hinge::labels::{Labels, MultiClass};
use hinge::loss::LossKind;
use hinge::matrix::Matrix;
use hinge::matrix::csr::CsrView;
use hinge::search::{Fold, SearchData, SearchPlan, SearchSettings, StopRule, Values, search};
use hinge::store::reader::Store;
use hinge::{Error, blocks, memory};
use twox_hash::XxHash3_64;

use crate::bytes::{Draw, mutate};
use crate::files::{forge_frames, small_store};
use crate::harness::{INPUT, Verdict};

/// What is compared of a step.
type Step = (u64, Vec<Vec<u64>>, bool);

const N: usize = 24;

fn steps(settings: &SearchSettings, path: Option<&Path>) -> hinge::Result<Vec<Step>> {
    let values: Vec<f64> = (0..3 * N).map(|k| ((k * 7919 % 1009) as f64 / 1009.0 - 0.5) * 2.0).collect();
    let indptr: Vec<i64> = (0..=N).map(|i| 3 * i as i64).collect();
    let indices: Vec<i32> = (0..3 * N).map(|k| k as i32 % 3).collect();
    let view: Matrix<'_> = CsrView::new(&indptr, &indices, &values, 3).unwrap().0.into();
    let ids: Vec<u32> = (0..N).map(|i| u32::from(values[3 * i] + 0.3 * values[3 * i + 1] > 0.0)).collect();
    let rows = 0..N as u32;
    let fold = |f: u32| Fold {
        train: rows.clone().filter(|i| i % 2 != f).collect(),
        test: rows.clone().filter(|i| i % 2 == f).collect(),
    };
    let folds = [fold(0), fold(1)];
    let labels = Labels { ids: &ids, n_classes: 2 };
    let task = SearchData { rows: &view, labels, weight: &[1.0; N], folds: &folds, penalty: None };
    let list = Values::List(vec![0.01, 0.1, 1.0]);
    let plan = SearchPlan { values: list, refine: 0, stop: StopRule::Exact };
    let mut steps = Vec::new();
    search(&task, settings, &plan, path, &Silent, &mut |step| {
        let decisions =
            step.decisions.iter().map(|fold| fold.iter().map(|x| x.to_bits()).collect()).collect();
        let is_finite = step.decisions.iter().flatten().all(|x| x.is_finite());
        steps.push((step.c.to_bits(), decisions, is_finite));
        Ok(Some(0.0))
    })?;
    Ok(steps)
}

/// Journals, which a search goes on from.
pub fn journal(folder: &Path) -> impl FnMut(u64) -> Verdict + use<> {
    let path: PathBuf = folder.join("journal");
    let routes = [(LossKind::Logistic, SolverKind::Newton), (LossKind::Hinge, SolverKind::DualCd)];
    let valid = routes.map(|(loss, solver)| {
        let params = Params { solver, tol: 1e-3, max_iter: 1000, seed: 0 };
        let intercept = if loss == LossKind::Hinge { Intercept::None } else { Intercept::Free };
        let settings = SearchSettings { loss, intercept, params, multi_class: MultiClass::OneVsRest };
        let _ = std::fs::remove_file(&path);
        let expected = steps(&settings, Some(&path)).unwrap();
        (settings, std::fs::read(&path).unwrap(), expected)
    });
    move |case| {
        let mut draw = Draw::new(case);
        let (settings, file, expected) = &valid[draw.below(2)];
        let is_forged = draw.chance(60);
        let bytes = if is_forged {
            forge_frames(&mut draw, file)
        } else {
            let mut bytes = file.clone();
            mutate(&mut draw, &mut bytes, file);
            bytes
        };
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, &bytes).unwrap();
        INPUT.store(bytes.len(), Ordering::Relaxed);
        match memory::catch(|| steps(settings, Some(&path))) {
            Ok(found) => {
                assert_eq!(found.len(), expected.len());
                assert!(is_forged || found == *expected, "a damaged journal changes the search");
                Verdict::Read
            }
            Err(Error::Journal { .. }) => Verdict::Refused,
            // Numbers that nobody computed may lead beyond double precision.
            Err(_) if is_forged => Verdict::Refused,
            Err(error) => panic!("{error}"),
        }
    }
}

/// Cancels a training after some looks, so that a checkpoint of the middle stays.
struct Impatient(std::sync::atomic::AtomicUsize);

impl Monitor for Impatient {
    fn cancelled(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

fn settings() -> BlockSettings<'static> {
    BlockSettings {
        loss: LossKind::Hinge,
        intercept: Intercept::Free,
        tol: 1e-5,
        max_passes: 60,
        seed: 3,
        budget: 30_000_000,
        policy: Policy::Gradient,
        cache_share: Some(0.5),
        rounds: 2,
        round_tol: 0.0,
        keeps_stored: false,
        waiting: Waiting::Rest,
        duals: DualsIn::Memory,
        map: None,
    }
}

fn train(store: &Store, path: &Path, monitor: &dyn Monitor) -> hinge::Result<Vec<BlockOutcome>> {
    let task = BinaryTask { positive: 1, cost: vec![1.0, 2.0], held_out: None };
    let keep = CheckpointOptions { path, seconds: 0.0 };
    blocks::fit(store, &[task], &[], &settings(), Some(keep), monitor)
}

fn bits(outcomes: &[BlockOutcome]) -> Vec<Vec<u64>> {
    outcomes.iter().map(|o| o.w.iter().chain([&o.intercept]).map(|x| x.to_bits()).collect()).collect()
}

/// The file with other numbers or another head, and its checksum.
fn forged(draw: &mut Draw, file: &[u8]) -> Vec<u8> {
    let mut bytes = file[..file.len() - 8].to_vec();
    let n = bytes.len();
    mutate(draw, &mut bytes, file);
    if draw.chance(80) {
        bytes.resize(n, 0);
    }
    let sum = XxHash3_64::oneshot_with_seed(0, &bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// Checkpoints, which a training goes on from.
pub fn checkpoint(folder: &Path) -> impl FnMut(u64) -> Verdict + use<> {
    let (path, rows): (PathBuf, PathBuf) = (folder.join("checkpoint"), folder.join("rows"));
    small_store(&rows, 300, true);
    let store = Store::open(&rows).unwrap();
    let mut valid = Vec::new();
    for looks in [30, 60, 120, 240, 480] {
        let _ = std::fs::remove_file(&path);
        let monitor = Impatient(looks.into());
        let ended = train(&store, &path, &monitor);
        assert!(ended.is_ok() || matches!(ended, Err(Error::Cancelled)));
        let bytes = std::fs::read(&path).unwrap_or_default();
        if bytes.len() > 8 && !valid.contains(&bytes) {
            valid.push(bytes);
        }
    }
    assert!(valid.len() > 1, "{} checkpoints", valid.len());
    let _ = std::fs::remove_file(&path);
    let expected = bits(&train(&store, &path, &Silent).unwrap());
    move |case| {
        let mut draw = Draw::new(case);
        let file = &valid[draw.below(valid.len())];
        let is_forged = draw.chance(60);
        let bytes = if is_forged {
            forged(&mut draw, file)
        } else {
            let mut bytes = file.clone();
            mutate(&mut draw, &mut bytes, file);
            bytes
        };
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, &bytes).unwrap();
        INPUT.store(bytes.len(), Ordering::Relaxed);
        match memory::catch(|| train(&store, &path, &Silent)) {
            Ok(outcomes) => {
                let is_whole = valid.contains(&bytes) || bytes.is_empty();
                assert!(is_forged || is_whole, "a damaged checkpoint is read");
                assert!(is_forged || bits(&outcomes) == expected);
                for outcome in &outcomes {
                    let is_finite = outcome.w.iter().chain([&outcome.intercept]).all(|x| x.is_finite());
                    assert!(is_finite || outcome.status != Status::Converged, "weights are not finite");
                }
                Verdict::Read
            }
            Err(_) => Verdict::Refused,
        }
    }
}
