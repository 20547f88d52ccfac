//! Shards whose rows stay in a store: what the same rows in memory answer, bit for bit.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use hinge::blocks::checkpoint::CheckpointOptions;
use hinge::fit::{Intercept, Monitor, Params, Silent, SolverKind, Status};
use hinge::front::{Blocks, Outcome, Source, Spec, Targets, Weights};
use hinge::loss::LossKind;
use hinge::matrix::Matrix;
use hinge::matrix::arena::OwnedCsr;
use hinge::matrix::csr::CsrView;
use hinge::matrix::number::CsrValues;
use hinge::shards::exchange::Exchange;
use hinge::shards::pieces::StoreRows;
use hinge::shards::served::{Served, StoreData};
use hinge::shards::shard::{CostedRows, Shard, ShardFacts, ShardRows};
use hinge::shards::wire::{Request, ShardAnswer};
use hinge::shards::{self, ShardTask};
use hinge::store::reader::Store;
use hinge::{Error, Result};

use super::blocks::{D, N, build, data};

/// Factor of each class's costs.
const FACTORS: [f64; 3] = [1.0, 1.5, 0.5];

/// Shards on threads of this process.
struct Threads(Vec<Served>);

impl Threads {
    fn facts(&self) -> ShardFacts {
        let mut all = ShardFacts::default();
        self.0.iter().for_each(|shard| all.join(&shard.facts()));
        all
    }

    fn fit(
        &mut self,
        n_columns: usize,
        n_classes: u32,
        loss: LossKind,
        intercept: Intercept,
    ) -> Result<Outcome> {
        let facts = self.facts();
        fit_over(self, facts, n_columns, n_classes, (loss, intercept))
    }
}

fn fit_over(
    shards: &mut dyn Exchange,
    facts: ShardFacts,
    n_columns: usize,
    n_classes: u32,
    (loss, intercept): (LossKind, Intercept),
) -> Result<Outcome> {
    let params = Params { tol: 1e-4, ..Params::default() };
    let task = ShardTask::new(facts, (n_columns, n_classes), (loss, intercept), params);
    Ok(Outcome::of_solutions(shards::fit(&task, shards, &Silent)?, n_columns, None))
}

impl Exchange for Threads {
    fn ask(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        let _ = restore;
        let mut answers = Vec::new();
        for shard in &mut self.0 {
            answers.push(shard.answer(request.words().to_vec())?);
        }
        let mut sum = answers.remove(0);
        answers.iter().try_for_each(|answer| sum.join(answer))?;
        Ok(sum)
    }

    fn gather(&mut self, request: &Request, _: &dyn Fn() -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
        self.0.iter_mut().map(|shard| Ok(shard.answer(request.words().to_vec())?.sums)).collect()
    }
}

fn in_store(store: &Store, n_columns: usize, loss: LossKind, intercept: Intercept, budget: u64) -> StoreRows {
    let classes = (0..store.classes().len() as u32).map(|k| (k, FACTORS[k as usize])).collect::<Vec<_>>();
    let lanes = if classes.len() == 2 { 1 } else { classes.len() };
    StoreRows { n_columns, classes, lanes, budget, loss, intercept, folder: std::env::temp_dir() }
}

/// A shard of the whole store.
fn served(store: &Store, rows: StoreRows) -> Served {
    Served::start(StoreData { path: store.path().to_owned(), rows, n_threads: 1 }).unwrap()
}

/// A piece of a store in memory.
struct Piece {
    csr: OwnedCsr,
    costed: CostedRows,
}

impl Piece {
    fn matrix(&self, n_columns: usize) -> Matrix<'_> {
        let OwnedCsr { indptr, indices, values } = &self.csr;
        match values {
            CsrValues::F32(values) => CsrView::new(indptr, indices, values, n_columns).unwrap().0.into(),
            CsrValues::F64(values) => CsrView::new(indptr, indices, values, n_columns).unwrap().0.into(),
        }
    }
}

/// All of them.
fn in_memory(store: &Store, rows: &StoreRows) -> Vec<Piece> {
    let names = store.old_columns().unwrap();
    let piece = |pages: &Vec<u32>| {
        let (arena, facts) = store.load(pages, store.plain_width(), &Silent).unwrap();
        let Ok(mut csr) = arena.into_csr() else { unreachable!("a value per entry") };
        csr.rename_columns(&names);
        let row = |i: usize| (facts.classes[i], FACTORS[facts.classes[i] as usize] * facts.weights[i]);
        Piece { costed: CostedRows::of(facts.classes.len(), row), csr }
    };
    rows.cut(store).unwrap().blocks.iter().map(piece).collect()
}

/// Pieces that answer in turn, as one shard: each hands the weights of an epoch to the next.
struct Pieces<'a>(Vec<Shard<'a>>);

impl Exchange for Pieces<'_> {
    fn ask(&mut self, request: &Request, _: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        let (mut w, mut answers) = (Vec::new(), Vec::new());
        for shard in &mut self.0 {
            shard.hand(w);
            answers.push(shard.answer(request.words())?);
            w = shard.handed();
        }
        let mut sum = answers.remove(0);
        answers.iter().try_for_each(|answer| sum.join(answer))?;
        Ok(sum)
    }

    fn gather(&mut self, request: &Request, _: &dyn Fn() -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
        self.0.iter_mut().map(|shard| Ok(shard.answer(request.words())?.sums)).collect()
    }
}

/// A fit over pieces in memory, and what is known of all of them.
fn fit_in_memory(pieces: &[Piece], n_classes: u32, rows: &StoreRows) -> (Outcome, ShardFacts) {
    let matrices: Vec<Matrix<'_>> = pieces.iter().map(|piece| piece.matrix(rows.n_columns)).collect();
    let shard_rows = pieces.iter().zip(&matrices).map(|(piece, matrix)| ShardRows {
        rows: matrix,
        ids: &piece.costed.ids,
        own: None,
        classes: &piece.costed.classes,
        cost: &piece.costed.cost,
        loss: rows.loss,
        intercept: rows.intercept,
        folds: None,
    });
    let shard_rows: Vec<ShardRows<'_>> = shard_rows.collect();
    let mut facts = ShardFacts::default();
    shard_rows.iter().for_each(|rows| facts.join(&rows.facts()));
    facts.n_shards = 1;
    let mut shards = Pieces(shard_rows.iter().map(|rows| Shard::new(*rows, &Silent)).collect());
    let outcome = fit_over(&mut shards, facts, rows.n_columns, n_classes, (rows.loss, rows.intercept));
    (outcome.unwrap(), facts)
}

fn bits(outcome: &Outcome) -> Vec<u64> {
    let Weights::Dense(weights) = &outcome.weights else { unreachable!("dense weights") };
    let numbers = weights.iter().flatten().chain(&outcome.intercepts).copied();
    let proofs = outcome.facts.iter().flat_map(|facts| [facts.certificate.primal, facts.certificate.dual]);
    numbers.chain(proofs).map(f64::to_bits).collect()
}

/// Some pieces of rows of so many lanes.
const SMALL: u64 = 6_000_000;
/// Bytes of Newton's own vectors and matrices of these columns beside it.
const OWN: u64 = 12_000_000;
const SMALL_LANES: u64 = 9_000_000;

#[test]
fn a_store_answers_as_its_pieces_in_memory_would() {
    let folder = tempfile::tempdir().unwrap();
    let losses = [LossKind::SquaredHinge, LossKind::Logistic, LossKind::ModifiedHuber, LossKind::Hinge];
    for (n_classes, budget) in [(2, SMALL), (3, SMALL_LANES)] {
        let store = build(&data(n_classes, false), folder.path());
        for (k, loss) in losses.into_iter().enumerate() {
            let intercept = [Intercept::Free, Intercept::None][k % 2];
            let rows = in_store(&store, D, loss, intercept, budget);
            let cut = rows.cut(&store).unwrap();
            let n_pieces = cut.blocks.len();
            assert!((3..14).contains(&n_pieces) && cut.n_held + 1 < n_pieces, "{} of {n_pieces}", cut.n_held);
            let (twin, facts) = fit_in_memory(&in_memory(&store, &rows), n_classes, &rows);
            assert_eq!(facts.n_pieces, n_pieces);
            let mut found = Threads(vec![served(&store, rows)]);
            assert_eq!(found.facts(), facts);
            let outcome = found.fit(D, n_classes, loss, intercept).unwrap();
            assert!(outcome.facts.iter().all(|facts| facts.status == Status::Converged));
            assert_eq!(bits(&outcome), bits(&twin), "{loss:?}");
        }
    }
}

#[test]
fn rows_of_equal_values_and_many_columns_end_at_the_same_optimum() {
    let folder = tempfile::tempdir().unwrap();
    let (loss, intercept) = (LossKind::Logistic, Intercept::Free);
    let store = build(&data(2, true), folder.path());
    let mut all = Vec::new();
    for n_columns in [D, 50_000] {
        for budget in [SMALL, 1 << 40] {
            let rows = in_store(&store, n_columns, loss, intercept, budget + 40 * n_columns as u64);
            assert_eq!(rows.cut(&store).unwrap().blocks.len() == 1, budget > SMALL);
            let mut shards = Threads(vec![served(&store, rows)]);
            assert_eq!(shards.facts().n_rows, N);
            let outcome = shards.fit(n_columns, 2, loss, intercept).unwrap();
            let Weights::Dense(weights) = &outcome.weights else { unreachable!("dense weights") };
            assert!(weights[0].len() == n_columns && weights[0][D..].iter().all(|w| *w == 0.0));
            all.push(outcome.facts[0].certificate);
        }
    }
    for (one, other) in all.iter().flat_map(|one| all.iter().map(move |other| (one, other))) {
        assert!(one.relative_gap() <= 1e-4 && one.primal >= other.dual, "{one:?} {other:?}");
    }
}

#[test]
fn newton_on_a_store_is_a_shard_alone_and_goes_on_from_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("fit.hinge");
    for (n_classes, loss, budget) in [(2, LossKind::Hinge, SMALL), (3, LossKind::Logistic, SMALL_LANES)] {
        let store = build(&data(n_classes, false), folder.path());
        let params = Params { tol: 1e-4, solver: SolverKind::Newton, ..Params::default() };
        let spec = Spec { loss, params, ..Spec::default() };
        let fit = |keep: bool, monitor: &dyn Monitor| {
            let keep = keep.then_some(CheckpointOptions { path: &file, seconds: 0.0 });
            let blocks = Blocks { in_memory: Some(false), keep, ..Blocks::within(budget + OWN) };
            let source = Source::Store(&store, blocks);
            hinge::fit(&source, &Targets::Stored, &FACTORS[..n_classes as usize], &spec, monitor)
        };
        let quiet = fit(false, &Silent).unwrap();
        assert!(quiet.facts.iter().all(|facts| facts.status == Status::Converged));
        assert!(quiet.facts.iter().all(|facts| facts.solver == "block_newton") && quiet.loads[0] > 3.0);
        let mut shards = Threads(vec![served(&store, in_store(&store, D, loss, Intercept::Free, budget))]);
        let twin = shards.fit(D, n_classes, loss, Intercept::Free).unwrap();
        for (one, other) in quiet.facts.iter().zip(&twin.facts) {
            let (one, other) = (one.certificate, other.certificate);
            assert!(one.primal >= other.dual && other.primal >= one.dual);
        }
        let stops = StopsAfter(AtomicUsize::new(40));
        assert!(matches!(fit(true, &stops), Err(Error::Cancelled)));
        assert_eq!(bits(&fit(true, &Silent).unwrap()), bits(&quiet));
        fs::remove_file(&file).unwrap();
    }
}

/// Cancels after so many polls.
struct StopsAfter(AtomicUsize);

impl Monitor for StopsAfter {
    fn cancelled(&self) -> bool {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_sub(1)));
        left == Ok(0)
    }
}

#[test]
fn what_does_not_fit_or_is_damaged_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = build(&data(2, false), folder.path());
    let start = |change: fn(&mut StoreData)| {
        let rows = in_store(&store, D, LossKind::Logistic, Intercept::Free, SMALL);
        let mut data = StoreData { path: store.path().to_owned(), rows, n_threads: 1 };
        change(&mut data);
        Served::start(data)
    };
    let refused = |change: fn(&mut StoreData)| start(change).err().expect("refused");
    assert!(matches!(refused(|data| data.rows.budget = 500_000), Error::Budget { .. }));
    assert!(matches!(refused(|data| data.rows.n_columns = D - 1), Error::Shape { .. }));
    assert!(matches!(refused(|data| data.rows.classes.truncate(1)), Error::Shape { .. }));
    assert!(matches!(refused(|data| data.path = "none.blocks".into()), Error::Io { .. }));
    let mut shards = Threads(vec![start(|_| {}).unwrap()]);
    damage(store.path());
    let error = shards.fit(D, 2, LossKind::Logistic, Intercept::Free).err().expect("refused");
    assert!(matches!(error, Error::Corrupt { .. } | Error::Io { .. }), "{error}");
}

/// Changes a byte in the middle of the file.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(path, bytes).unwrap();
}
