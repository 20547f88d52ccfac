//! Fits over shards in this process, against fits in memory.

use super::ShardTask;
use super::checkpoint::Recorded;
use super::exchange::{Exchange, Link};
use super::fit::newton_of;
use super::points::RemotePoints;
use super::proof::{Claimed, prove};
use super::remote::{Lanes, Remote, RemoteCorners, ShardTerms};
use super::search::{ShardSearch, search};
use super::shard::{Shard, ShardFacts, ShardFolds, ShardRows};
use super::wire::{Op, Request, ShardAnswer};
use crate::fit::dual::DualLoss;
use crate::fit::newton::InMemory;
use crate::fit::newton::dual_step::Affordable;
use crate::fit::newton::hinge::Corners as _;
use crate::fit::newton::polish::{DualPoint, DualPoints};
use crate::fit::newton::row_state::{Passes as _, TermPasses as _};
use crate::fit::objective::Weighted;
use crate::fit::stop::NewtonStop;
use crate::fit::waves::Waves;
use crate::fit::{Intercept, Monitor, Params, Problem, Silent, Solution, SolverKind, Start, Status, auto};
use crate::front::{Outcome, Weights};
use crate::labels::{Labels, MultiClass};
use crate::loss::{LossKind, ModifiedHuber, SquaredHinge};
use crate::matrix::lanes::Block;
use crate::matrix::{Matrix, Rows};
use crate::search::{
    self as plain, Fold, SearchData, SearchPlan, SearchSettings, SearchStep, StopRule, Values,
};
use crate::{Error, Result, labels};
use proptest::prelude::*;

pub(super) const LOSSES: [LossKind; 4] =
    [LossKind::SquaredHinge, LossKind::Logistic, LossKind::ModifiedHuber, LossKind::Hinge];

/// [`super::fit`] as callers see it.
fn fit(task: &ShardTask, exchange: &mut dyn Exchange, monitor: &dyn Monitor) -> Result<Outcome> {
    let solutions = super::fit(task, exchange, monitor)?;
    Ok(Outcome::of_solutions(solutions, task.n_columns, None))
}

/// Shards in this process; in some rounds one begins anew.
pub(super) struct Here<'a> {
    rows: Vec<ShardRows<'a>>,
    shards: Vec<Shard<'a>>,
    rounds: usize,
    /// A shard is lost in every so-manieth round.
    loses_every: usize,
}

impl<'a> Here<'a> {
    pub(super) fn new(rows: Vec<ShardRows<'a>>, loses_every: usize) -> Self {
        let shards = rows.iter().map(|rows| Shard::new(*rows, &Silent)).collect();
        Self { rows, shards, rounds: 0, loses_every }
    }

    pub(super) fn rounds(&self) -> usize {
        self.rounds
    }

    pub(super) fn facts(&self) -> ShardFacts {
        let mut all = ShardFacts::default();
        self.rows.iter().for_each(|rows| all.join(&rows.facts()));
        all
    }
}

impl Exchange for Here<'_> {
    fn ask(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        let mut sum: Option<ShardAnswer> = None;
        for answer in self.answers(request.words(), restore)? {
            match &mut sum {
                None => sum = Some(answer),
                Some(sum) => sum.join(&answer)?,
            }
        }
        Ok(sum.unwrap_or_default())
    }

    fn gather(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
        Ok(self.answers(request.words(), restore)?.into_iter().map(|answer| answer.sums).collect())
    }
}

impl Here<'_> {
    fn answers(&mut self, request: &[f64], restore: &dyn Fn() -> Vec<f64>) -> Result<Vec<ShardAnswer>> {
        self.rounds += 1;
        if self.rounds.is_multiple_of(self.loses_every) {
            let lost = self.rounds / self.loses_every % self.shards.len();
            self.shards[lost] = Shard::new(self.rows[lost], &Silent);
            self.shards[lost].answer(&restore())?;
        }
        self.shards.iter_mut().map(|shard| shard.answer(request)).collect()
    }
}

/// The rows of a problem with their classes, cut into shards.
struct Cut {
    ids: Vec<u32>,
    classes: Vec<u32>,
    borders: Vec<usize>,
}

impl Cut {
    fn new(classes: Vec<u32>, borders: &[usize]) -> Self {
        let n = classes.len();
        let borders = [0].iter().chain(borders).copied().chain([n]).collect();
        Self { ids: (0..n as u32).collect(), classes, borders }
    }

    fn rows<'a>(&'a self, rows: &'a Matrix<'a>, problem: &Problem<'a>, loss: LossKind) -> Vec<ShardRows<'a>> {
        let shard = |b: &[usize]| ShardRows {
            rows,
            ids: &self.ids[b[0]..b[1]],
            own: None,
            classes: &self.classes[b[0]..b[1]],
            cost: &problem.cost[b[0]..b[1]],
            loss,
            intercept: problem.intercept,
            folds: None,
        };
        self.borders.windows(2).map(shard).collect()
    }
}

pub(super) fn classes_of(problem: &Problem<'_>) -> Vec<u32> {
    problem.y.iter().map(|y| u32::from(*y > 0.0)).collect()
}

fn fit_over(
    rows: &[ShardRows<'_>],
    n_columns: usize,
    n_classes: u32,
    tol: f64,
    loses_every: usize,
) -> (Outcome, usize) {
    let mut here = Here::new(rows.to_vec(), loses_every);
    let params = Params { tol, ..Params::default() };
    let ShardRows { loss, intercept, .. } = rows[0];
    let facts = here.facts();
    let task = ShardTask::new(facts, (n_columns, n_classes), (loss, intercept), params);
    let outcome = fit(&task, &mut here, &Silent).unwrap();
    (outcome, here.rounds)
}

fn weights(outcome: &Outcome) -> &[Vec<f64>] {
    match &outcome.weights {
        Weights::Dense(weights) => weights,
        _ => unreachable!("binary problems"),
    }
}

pub(super) fn alone(problem: &Problem<'_>, loss: LossKind, tol: f64) -> Solution {
    let params = Params { tol, ..Params::default() };
    auto::solve(problem, loss, &params, &Start::default(), &Silent).unwrap()
}

#[test]
fn fits_are_those_of_one_machine_and_proved() {
    for (n, d, scale) in [(700, 9, 0.5), (60, 30, 8.0), (300, 40, 300.0)] {
        let waves = Waves::new(n, d, scale, n);
        let matrix = waves.rows();
        for (intercept, loss) in (0..3).flat_map(|i| LOSSES.map(|loss| (i, loss))) {
            let problem = waves.problem(&matrix, intercept);
            let cut = Cut::new(classes_of(&problem), &[n / 7, n / 2]);
            let rows = cut.rows(&matrix, &problem, loss);
            let (outcome, _) = fit_over(&rows, d, 2, 1e-6, usize::MAX);
            let (facts, best) = (outcome.facts[0], alone(&problem, loss, 1e-9).certificate);
            assert_eq!(facts.status, Status::Converged, "{loss:?} {intercept} {n}");
            assert!(facts.certificate.relative_gap() <= 1e-6);
            // Neither value is on the wrong side of the optimum.
            assert!(facts.certificate.primal >= best.dual && facts.certificate.dual <= best.primal);
            let value = crate::fit::certificate::primal(
                &problem,
                loss,
                &weights(&outcome)[0],
                outcome.intercepts[0],
                &Silent,
            );
            assert!((value.unwrap() / facts.certificate.primal - 1.0).abs() < 1e-11);
        }
    }
}

#[test]
fn fits_with_a_block_of_frequent_columns_are_proved_and_lost_shards_cost_no_bit() {
    let (n, d) = (700, 520);
    let waves = Waves::new(n, d, 4.0, 2);
    let matrix = waves.rows();
    for (intercept, loss) in [(0, LossKind::SquaredHinge), (1, LossKind::Logistic), (1, LossKind::Hinge)] {
        let problem = waves.problem(&matrix, intercept);
        let cut = Cut::new(classes_of(&problem), &[300]);
        let rows = cut.rows(&matrix, &problem, loss);
        let run = |loses_every| {
            let mut here = Here::new(rows.clone(), loses_every);
            // As if there were so many entries that a block is cheap beside a reading.
            let facts = ShardFacts { pairs: [1e9, 1e9], ..here.facts() };
            let (intercept, params) = (problem.intercept, Params { tol: 1e-4, ..Params::default() });
            let task = ShardTask::new(facts, (d, 2), (loss, intercept), params);
            assert!(task.factorisation().is_none() && task.block().is_some());
            fit(&task, &mut here, &Silent).unwrap()
        };
        let (quiet, lossy) = (run(usize::MAX), run(2));
        let (found, best) = (quiet.facts[0].certificate, alone(&problem, loss, 1e-8).certificate);
        assert!(found.relative_gap() <= 1e-4, "{loss:?} {found:?}");
        assert!(found.primal >= best.dual && found.dual <= best.primal, "{loss:?} {found:?} {best:?}");
        assert_eq!((weights(&quiet), quiet.intercepts[0]), (weights(&lossy), lossy.intercepts[0]));
    }
}

#[test]
fn lost_shards_come_back() {
    let (n, d) = (500, 12);
    let waves = Waves::new(n, d, 4.0, 3);
    let matrix = waves.rows();
    for (intercept, loss) in (0..3).flat_map(|i| LOSSES.map(|loss| (i, loss))) {
        let problem = waves.problem(&matrix, intercept);
        let cut = Cut::new(classes_of(&problem), &[100, 250]);
        let rows = cut.rows(&matrix, &problem, loss);
        let (quiet, rounds) = fit_over(&rows, d, 2, 1e-9, usize::MAX);
        for every in [1, 2, 3, 7] {
            let (lossy, _) = fit_over(&rows, d, 2, 1e-9, every);
            let [quiet, lossy] = [&quiet, &lossy].map(|found| {
                let facts = &found.facts[0];
                (weights(found), found.intercepts[0], facts.certificate, facts.n_iter, facts.status)
            });
            assert_eq!(lossy, quiet, "{loss:?} {intercept} {every} {rounds}");
        }
    }
}

#[test]
fn wide_fits_ascend_to_the_optimum_and_lost_shards_cost_no_bit() {
    let (n, d) = (90, 300);
    for (scale, k) in [(0.3, 1), (30.0, 2)] {
        let waves = Waves::new(n, d, scale, k);
        let matrix = waves.rows();
        for (intercept, loss) in (0..3).flat_map(|i| LOSSES.map(|loss| (i, loss))) {
            let problem = waves.problem(&matrix, intercept);
            let best = alone(&problem, loss, 1e-10).certificate;
            for borders in [&[][..], &[40], &[0, 20, 50]] {
                let cut = Cut::new(classes_of(&problem), borders);
                let rows = cut.rows(&matrix, &problem, loss);
                for tol in [1e-3, 1e-8] {
                    let (quiet, _) = fit_over(&rows, d, 2, tol, usize::MAX);
                    let found = quiet.facts[0].certificate;
                    // Neither value is on the wrong side of the optimum.
                    assert!(found.primal >= best.dual && found.dual <= best.primal);
                    assert!(found.relative_gap() <= tol, "{loss:?} {intercept} {borders:?} {found:?}");
                    for every in [1, 3] {
                        let (lossy, _) = fit_over(&rows, d, 2, tol, every);
                        let facts = |found: &Outcome| (found.facts[0].certificate, found.facts[0].n_iter);
                        assert_eq!((weights(&lossy), facts(&lossy)), (weights(&quiet), facts(&quiet)));
                    }
                }
            }
        }
    }
}

#[test]
fn only_wide_fits_of_smooth_losses_ascend() {
    let waves = Waves::new(60, 130, 1.0, 1);
    let matrix = waves.rows();
    let problem = waves.problem(&matrix, 1);
    for (loss, take) in LOSSES.iter().flat_map(|loss| [60, 100].map(|take| (*loss, take))) {
        let cut = Cut::new(classes_of(&problem), &[30]);
        let rows = cut.rows(&matrix, &problem, loss);
        let mut here = Here::new(rows, usize::MAX);
        let (facts, intercept, params) = (here.facts(), problem.intercept, Params::default());
        let n_columns = 130;
        let facts = ShardFacts { n_rows: take, ..facts };
        let task = ShardTask::new(facts, (n_columns, 2), (loss, intercept), params);
        let mut listens = Asked(&mut here, Vec::new());
        fit(&task, &mut listens, &Silent).unwrap();
        let has_ascended = listens.1.contains(&(Op::Ascend as usize));
        assert_eq!(has_ascended, loss.is_smooth() && take == 60, "{loss:?} {take}");
    }
}

/// The operation that follows the beginning of a problem, and the first of each request.
struct Asked<'a, 'b>(&'a mut Here<'b>, Vec<usize>);

impl Exchange for Asked<'_, '_> {
    fn ask(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        let words = request.words();
        let begins = words[0] as usize == Op::Begin as usize;
        self.1.push(words[if begins { 4 } else { 0 }] as usize);
        self.0.ask(request, restore)
    }

    fn gather(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
        self.0.gather(request, restore)
    }
}

#[test]
fn bits_depend_on_the_cut_and_an_even_one_of_one_shard_is_one_machine() {
    let waves = Waves::new(400, 600, 1.0, 5);
    let matrix = waves.rows();
    let problem = waves.problem(&matrix, 1);
    for loss in LOSSES {
        let cut = Cut::new(classes_of(&problem), &[150]);
        let rows = cut.rows(&matrix, &problem, loss);
        let (one, two) =
            (fit_over(&rows, 600, 2, 1e-6, usize::MAX), fit_over(&rows, 600, 2, 1e-6, usize::MAX));
        assert_eq!((weights(&one.0), one.1), (weights(&two.0), two.1));
    }
}

#[test]
fn classes_are_fitted_side_by_side() {
    let (n, d) = (600, 10);
    let waves = Waves::new(n, d, 1.0, 2);
    let matrix = waves.rows();
    for (intercept, loss) in (0..3).flat_map(|i| LOSSES.map(|loss| (i, loss))) {
        let problem = waves.problem(&matrix, intercept);
        for k in [3u32, 9, 10] {
            let classes: Vec<u32> = (0..n as u32).map(|i| (i * i / 7 + i) % k).collect();
            let cut = Cut::new(classes.clone(), &[200, 450]);
            let (outcome, _) = fit_over(&cut.rows(&matrix, &problem, loss), d, k, 1e-5, 11);
            let labels = labels::Labels { ids: &classes, n_classes: k };
            assert_eq!(outcome.facts.len(), k as usize);
            for class in [0, k as usize - 1] {
                let y = labels.signs(class, &cut.ids);
                let binary = Problem { y: &y, ..problem };
                let (facts, best) = (outcome.facts[class], alone(&binary, loss, 1e-8).certificate);
                assert!(facts.certificate.relative_gap() <= 1e-5, "{loss:?} {intercept} {class} of {k}");
                assert!(facts.certificate.primal >= best.dual && facts.certificate.dual <= best.primal);
            }
        }
    }
}

#[test]
fn one_class_and_no_row_in_a_shard_are_nothing_special() {
    let waves = Waves::new(200, 5, 1.0, 9);
    let matrix = waves.rows();
    let problem = waves.problem(&matrix, 1);
    let mut cut = Cut::new(classes_of(&problem), &[0, 120, 120]);
    cut.ids.sort_by_key(|i| cut.classes[*i as usize]);
    cut.classes.sort_unstable();
    let (y, cost): (Vec<f64>, Vec<f64>) =
        cut.ids.iter().map(|i| (problem.y[*i as usize], problem.cost[*i as usize])).unzip();
    let sorted = Problem { y: &y, cost: &cost, ids: Some(&cut.ids), intercept: Intercept::Free, ..problem };
    for loss in LOSSES {
        let (outcome, _) = fit_over(&cut.rows(&matrix, &sorted, loss), 5, 2, 1e-6, 5);
        let best = alone(&sorted, loss, 1e-9).certificate;
        let found = outcome.facts[0].certificate;
        assert!(found.relative_gap() <= 1e-6 && found.primal >= best.dual && found.dual <= best.primal);
    }
}

#[test]
fn slopes_ahead_are_those_after_the_step() {
    let waves = Waves::new(300, 7, 4.0, 3);
    let matrix = waves.rows();
    let problem = waves.problem(&matrix, 1);
    let cut = Cut::new(classes_of(&problem), &[]);
    for (loss, sigma) in [(LossKind::SquaredHinge, 0.0), (LossKind::Logistic, 0.0), (LossKind::Hinge, 0.5)] {
        let rows = cut.rows(&matrix, &problem, loss)[0];
        let mut step = Block::<1>::zeros(8);
        (0..8).for_each(|k| step[k] = [0.1 * k as f64 - 0.3]);
        let answer = |ops: &dyn Fn(&mut Request)| {
            let mut request = Request::new(1);
            request.op(Op::Begin).numbers(&[0.0, 1.0, 1.0]).op(Op::Decide).block(&step);
            request.op(Op::Finish).block(&step);
            ops(&mut request);
            Shard::new(rows, &Silent).answer(request.words()).unwrap().sums
        };
        let here = |request: &mut Request| {
            request.op(Op::Slopes).numbers(&[sigma, 0.0]);
        };
        let ahead = answer(&|request| {
            request.op(Op::SlopesAhead).numbers(&[sigma, 0.5]);
            here(request);
        });
        let gone = answer(&|request| {
            here(request.op(Op::Advance).number(0.5));
        });
        assert_eq!((ahead.len(), &ahead[..3]), (6, &gone[..]));
        // Nobody has moved.
        assert_eq!(ahead[3..], answer(&here));
        assert_ne!(ahead[3..], gone);
    }
}

#[test]
fn what_is_weighed_are_the_dual_variables_that_were_kept_last() {
    let waves = Waves::new(300, 7, 4.0, 3);
    let matrix = waves.rows();
    let problem = waves.problem(&matrix, 1);
    let cut = Cut::new(classes_of(&problem), &[100]);
    let mut here = Here::new(cut.rows(&matrix, &problem, LossKind::SquaredHinge), 0);
    let facts = here.facts();
    let begun = Lanes::Classes(1, 1, 1.0);
    let size = (facts.n_rows, facts.max_squared_norm);
    let mut rows = Remote::<1>::begin(&Link::new(&mut here), size, begun, 8, problem.intercept.bias());
    let (mut w, mut h) = (Block::<1>::zeros(8), Block::<1>::zeros(8));
    let mut weighed = Vec::new();
    for step in 1..3 {
        (0..8).for_each(|k| w[k] = [f64::from(step) * (0.1 * k as f64 - 0.3)]);
        rows.decide(&w).unwrap();
        rows.evaluate(&ShardTerms::Smooth, &mut h).unwrap();
        rows.decide_anew(&ShardTerms::Smooth, &w).unwrap();
        RemoteCorners.take_slopes(&mut rows).unwrap();
        RemoteCorners.keep(&mut rows).unwrap();
        weighed.push(rows.weigh(0, false).unwrap());
        // The first answer may have come ahead, the second has not.
        assert_eq!(weighed.last().unwrap(), &rows.weigh(0, false).unwrap());
    }
    assert_ne!(weighed[0], weighed[1]);
}

/// The first operation of each request.
struct Listens<'a, 'b>(&'a mut Here<'b>, Vec<usize>);

impl Exchange for Listens<'_, '_> {
    fn ask(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        self.1.push(request.words()[0] as usize);
        self.0.ask(request, restore)
    }

    fn gather(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
        self.0.gather(request, restore)
    }
}

#[test]
fn what_is_foreseen_takes_no_round() {
    for (n, d) in [(500, 12), (120, 700)] {
        let waves = Waves::new(n, d, 4.0, 3);
        let matrix = waves.rows();
        for (intercept, loss) in (0..3).flat_map(|i| LOSSES.map(|loss| (i, loss))) {
            let problem = waves.problem(&matrix, intercept);
            let cut = Cut::new(classes_of(&problem), &[n / 3]);
            let rows = cut.rows(&matrix, &problem, loss);
            let mut here = Here::new(rows.clone(), usize::MAX);
            let (facts, intercept) = (here.facts(), problem.intercept);
            let params = Params { tol: 1e-5, ..Params::default() };
            let task = ShardTask::new(facts, (d, 2), (loss, intercept), params);
            let mut listens = Listens(&mut here, Vec::new());
            let outcome = fit(&task, &mut listens, &Silent).unwrap();
            let alone = |op: Op| listens.1.iter().filter(|first| **first == op as usize).count();
            let about = format!("{loss:?} {intercept:?} {n}: {:?}", listens.1);
            assert_eq!(alone(Op::Curvature), 0, "{about}");
            if loss.is_smooth() {
                assert_eq!(alone(Op::Weigh), 0, "{about}");
                // At most one before a step, at its end or at zero, and where the fit ends.
                assert!(alone(Op::Slopes) <= outcome.facts[0].n_iter + 2, "{about}");
            }
        }
    }
}

/// An exchange that ends after so many rounds, the hashes not counted.
struct Dies<'a, 'b>(&'a mut Here<'b>, usize);

impl Exchange for Dies<'_, '_> {
    fn ask(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        if self.1 == 0 {
            return Err(Error::Cancelled);
        }
        self.1 -= 1;
        self.0.ask(request, restore)
    }

    fn gather(&mut self, request: &Request, restore: &dyn Fn() -> Vec<f64>) -> Result<Vec<Vec<f64>>> {
        self.0.gather(request, restore)
    }
}

#[test]
fn fits_go_on_from_their_checkpoints_to_the_same_bits() {
    let (n, d) = (150, 6);
    let waves = Waves::new(n, d, 4.0, 3);
    let matrix = waves.rows();
    let folder = tempfile::tempdir().unwrap();
    let cases = [(LossKind::Logistic, 1, 2), (LossKind::Hinge, 1, 2), (LossKind::SquaredHinge, 2, 4)];
    for (case, (loss, intercept, n_classes)) in cases.into_iter().enumerate() {
        let problem = waves.problem(&matrix, intercept);
        let classes = if n_classes == 2 {
            classes_of(&problem)
        } else {
            (0..n as u32).map(|i| (i * i / 7 + i) % n_classes).collect()
        };
        let cut = Cut::new(classes, &[50, 90]);
        let rows = cut.rows(&matrix, &problem, loss);
        let (quiet, rounds) = fit_over(&rows, d, n_classes, 1e-9, usize::MAX);
        let (intercept, params) = (problem.intercept, Params { tol: 1e-9, ..Params::default() });
        let facts = Here::new(rows.clone(), usize::MAX).facts();
        let task = ShardTask::new(facts, (d, n_classes), (loss, intercept), params);
        for ends in [1, rounds / 2, rounds] {
            let path = folder.path().join(format!("{case} {ends}"));
            let attempt = |rounds: usize, loses_every: usize| {
                // Shards that are made anew each time, as after the death of a client.
                let mut here = Here::new(rows.clone(), loses_every);
                let mut dies = Dies(&mut here, rounds);
                Recorded::open(&path, &task, &mut dies).and_then(|mut all| fit(&task, &mut all, &Silent))
            };
            assert_eq!(attempt(ends, usize::MAX).is_ok(), ends == rounds);
            // The restoring round is one more, and a lost shard in it is nothing special.
            let resumed = attempt(rounds - ends + usize::from(ends < rounds), 11).unwrap();
            assert_eq!((weights(&resumed), &resumed.intercepts), (weights(&quiet), &quiet.intercepts));
            assert_eq!(resumed.facts[0].certificate, quiet.facts[0].certificate, "{loss:?} {ends}");
            // Damage costs rounds, never bits.
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            let mended = attempt(rounds, usize::MAX);
            assert!(mended.is_err() || weights(&mended.unwrap()) == weights(&quiet));
        }
        let other = ShardTask { n_classes: n_classes + 1, ..task };
        let path = folder.path().join(format!("{case} 1"));
        let mut here = Here::new(rows.clone(), usize::MAX);
        let opened = Recorded::open(&path, &other, &mut here);
        assert!(matches!(opened, Err(Error::Journal { .. })));
    }
}

/// The data of a search, whole and cut.
pub(super) struct Split {
    pub(super) classes: Vec<u32>,
    n_classes: u32,
    pub(super) weight: Vec<f64>,
    pub(super) folds: Vec<Fold>,
    pub(super) borders: Vec<u32>,
    /// The folds of each shard.
    pub(super) local: Vec<Vec<Fold>>,
}

impl Split {
    /// Row `i` is held out by fold `i % n_folds`, some rows by none, some have no weight.
    pub(super) fn new(classes: Vec<u32>, n_classes: u32, n_folds: u32, borders: &[u32]) -> Self {
        let n = classes.len() as u32;
        let borders: Vec<u32> = [0].iter().chain(borders).copied().chain([n]).collect();
        let is_out = |i: u32, f: u32| i % n_folds == f && i % 17 != 3;
        let fold = |f, rows: std::ops::Range<u32>| {
            let start = rows.start;
            let (test, train) = rows.partition::<Vec<u32>, _>(|i| is_out(*i, f));
            let moved = |rows: Vec<u32>| rows.into_iter().map(|i| i - start).collect();
            Fold { train: moved(train), test: moved(test) }
        };
        let folds = (0..n_folds).map(|f| fold(f, 0..n)).collect();
        let cut = |b: &[u32]| (0..n_folds).map(|f| fold(f, b[0]..b[1])).collect();
        let local = borders.windows(2).map(cut).collect();
        let weight = (0..n).map(|i| f64::from(i % 5) * 0.5).collect();
        Self { classes, n_classes, weight, folds, borders, local }
    }

    pub(super) fn labels(&self) -> Labels<'_> {
        Labels { ids: &self.classes, n_classes: self.n_classes }
    }
}

pub(super) fn plan(refine: usize) -> SearchPlan {
    let values = Values::Range { c_min: None, c_max: 64.0, ratio: 2.0 };
    SearchPlan { values, refine, stop: StopRule::Exact }
}

/// A score with a maximum somewhere, to refine by.
pub(super) fn score(step: &SearchStep) -> f64 {
    -(step.c.log2() - 0.7).abs()
}

/// The steps of a search over shards, and the rounds; `stop` ends it after so many steps.
fn search_over(
    split: &Split,
    blocks: &[DenseRows],
    (loss, intercept): (LossKind, Intercept),
    how: (&SearchPlan, Option<&std::path::Path>, usize, usize),
) -> (Vec<SearchStep>, usize) {
    let (plan, resume, loses_every, stop) = how;
    let views: Vec<Matrix<'_>> = blocks.iter().map(DenseRows::view).collect();
    let of = |k: usize| split.borders[k] as usize..split.borders[k + 1] as usize;
    let ids: Vec<Vec<u32>> = (0..views.len())
        .map(|k| of(k).filter(|i| split.weight[*i] > 0.0).map(|i| (i - of(k).start) as u32).collect())
        .collect();
    let take = |k: usize, i: &u32| of(k).start + *i as usize;
    let classes: Vec<Vec<u32>> =
        (0..views.len()).map(|k| ids[k].iter().map(|i| split.classes[take(k, i)]).collect()).collect();
    let cost: Vec<Vec<f64>> =
        (0..views.len()).map(|k| ids[k].iter().map(|i| split.weight[take(k, i)]).collect()).collect();
    let shard = |k: usize| ShardRows {
        rows: &views[k],
        ids: &ids[k],
        own: None,
        classes: &classes[k],
        cost: &cost[k],
        loss,
        intercept,
        folds: Some(ShardFolds {
            folds: &split.local[k],
            classes: &split.classes[of(k)],
            weight: &split.weight[of(k)],
        }),
    };
    let mut here = Here::new((0..views.len()).map(shard).collect(), loses_every);
    let params = Params { tol: 1e-2, ..Params::default() };
    let (facts, n_columns) = (here.facts(), views[0].n_cols());
    let n_classes = split.n_classes;
    let task = &ShardTask::new(facts, (n_columns, n_classes), (loss, intercept), params);
    let (labels, weight) = (split.labels(), &split.weight[..]);
    let data =
        ShardSearch { task, labels, weight, folds: &split.folds, borders: &split.borders, plan, resume };
    let mut steps = Vec::new();
    let visit = &mut |step: &SearchStep| {
        steps.push(SearchStep { seconds: 0.0, is_replayed: false, ..step.clone() });
        Ok((steps.len() < stop).then(|| score(step)))
    };
    search(&data, &mut here, &Silent, visit).unwrap();
    (steps, here.rounds)
}

/// Dense rows of a shard.
struct DenseRows {
    values: Vec<f64>,
    d: usize,
}

impl DenseRows {
    /// Those of a matrix between the borders.
    fn cut(matrix: &Matrix<'_>, borders: &[u32]) -> Vec<Self> {
        let d = matrix.n_cols();
        let rows = |b: &[u32]| {
            let mut values = vec![0.0; (b[1] - b[0]) as usize * d];
            for i in b[0]..b[1] {
                let row = &mut values[(i - b[0]) as usize * d..][..d];
                matrix.for_each(i as usize, |j, x| row[j] = x);
            }
            Self { values, d }
        };
        borders.windows(2).map(rows).collect()
    }

    fn view(&self) -> Matrix<'_> {
        let n = self.values.len() / self.d;
        crate::matrix::dense::DenseView::new(&self.values, n, self.d).unwrap().0.into()
    }
}

pub(super) const INTERCEPTS: [Intercept; 3] = [Intercept::None, Intercept::Free, Intercept::Penalised(0.7)];

pub(super) fn close(a: &SearchStep, b: &SearchStep, tol: f64) -> bool {
    let pairs = a.decisions.iter().flatten().zip(b.decisions.iter().flatten());
    a.c == b.c
        && a.is_converged == b.is_converged
        && a.objective.len() == b.objective.len()
        && a.objective.iter().zip(&b.objective).all(|(a, b)| (a / b - 1.0).abs() < tol)
        && a.decisions.iter().map(Vec::len).eq(b.decisions.iter().map(Vec::len))
        && pairs.into_iter().all(|(a, b)| (a - b).abs() < tol.sqrt() * (1.0 + b.abs()))
}

#[test]
fn searches_are_those_of_one_machine() {
    let waves = Waves::new(520, 11, 1.0, 4);
    let matrix = waves.rows();
    let two = classes_of(&waves.problem(&matrix, 0));
    let four: Vec<u32> = (0..520u32).map(|i| (i * i / 7 + two[i as usize]) % 4).collect();
    for (k, (classes, n_classes)) in [(two, 2), (four, 4)].into_iter().enumerate() {
        // Four classes and three folds are lanes of two groups, which take turns.
        let split = Split::new(classes, n_classes, 3, &[0, 130, 390]);
        let blocks = DenseRows::cut(&matrix, &split.borders);
        for (loss, intercept) in LOSSES[..3].iter().flat_map(|loss| INTERCEPTS.map(|b| (*loss, b))) {
            let params = Params { tol: 1e-2, solver: SolverKind::Newton, ..Params::default() };
            let settings = SearchSettings { loss, intercept, params, multi_class: MultiClass::OneVsRest };
            let labels = split.labels();
            let task = SearchData {
                rows: &matrix,
                labels,
                weight: &split.weight,
                folds: &split.folds,
                penalty: None,
            };
            let mut expected = Vec::new();
            let mut visit = |step: &SearchStep| {
                expected.push(step.clone());
                Ok(Some(score(step)))
            };
            plain::search(&task, &settings, &plan(2), None, &Silent, &mut visit).unwrap();
            let (found, _) =
                search_over(&split, &blocks, (loss, intercept), (&plan(2), None, usize::MAX, usize::MAX));
            assert_eq!(found.len(), expected.len(), "{loss:?} {intercept:?} {k}");
            for (found, expected) in found.iter().zip(&expected) {
                // Sums in another order, and preconditioners of them: the same steps up to what these change.
                assert!(close(found, expected, 1e-4), "{loss:?} {intercept:?} {k} {found:?} {expected:?}");
            }
        }
    }
}

#[test]
fn searches_with_lost_shards_and_journals_have_the_same_bits() {
    let waves = Waves::new(400, 7, 1.0, 8);
    let matrix = waves.rows();
    let classes: Vec<u32> = (0..400u32).map(|i| (i * i / 7 + i) % 3).collect();
    let split = Split::new(classes, 3, 4, &[100, 250]);
    let blocks = DenseRows::cut(&matrix, &split.borders);
    for loss in [LossKind::SquaredHinge, LossKind::Logistic] {
        let kind = (loss, Intercept::Free);
        let (quiet, rounds) = search_over(&split, &blocks, kind, (&plan(2), None, usize::MAX, usize::MAX));
        for every in [1, 3, 7] {
            let (lossy, _) = search_over(&split, &blocks, kind, (&plan(2), None, every, usize::MAX));
            assert_eq!(lossy, quiet, "{loss:?} {every}");
        }
        let folder = tempfile::tempdir().unwrap();
        for stop in [1, 4, quiet.len() - 1] {
            let path = folder.path().join(stop.to_string());
            search_over(&split, &blocks, kind, (&plan(2), Some(&path), usize::MAX, stop));
            let (resumed, again) =
                search_over(&split, &blocks, kind, (&plan(2), Some(&path), usize::MAX, usize::MAX));
            assert_eq!(resumed, quiet, "{loss:?} {stop}");
            assert!(again < rounds);
        }
    }
}

#[test]
fn shards_refuse_what_is_no_step_of_a_search() {
    use super::wire::{Op, Request};
    let waves = Waves::new(30, 3, 1.0, 1);
    let matrix = waves.rows();
    let problem = waves.problem(&matrix, 0);
    let cut = Cut::new(classes_of(&problem), &[]);
    let plain = cut.rows(&matrix, &problem, LossKind::Logistic)[0];
    let folds = [Fold { train: vec![0, 1, 2], test: vec![3, 4] }];
    let with = ShardRows {
        folds: Some(ShardFolds { folds: &folds, classes: &cut.classes, weight: problem.cost }),
        ..plain
    };
    let begun = |lanes: f64| {
        let mut request = Request::new(1);
        request.op(Op::BeginFolds).number(0.0).number(lanes).number(1.0);
        request
    };
    assert!(Shard::new(plain, &Silent).answer(begun(1.0).words()).is_err());
    assert!(Shard::new(with, &Silent).answer(begun(2.0).words()).is_err());
    let mut shard = Shard::new(with, &Silent);
    let mut request = begun(1.0);
    assert_eq!(shard.answer(request.op(Op::HeldOut).words()).unwrap().sums, [0.0, 0.0]);
    for op in [Op::Weigh, Op::Prove, Op::Corners, Op::TakeSlopes] {
        assert!(shard.answer(begun(1.0).op(op).words()).is_err());
    }
    let outside = [Fold { train: vec![30], test: vec![] }, Fold { train: vec![], test: vec![30] }];
    for fold in outside.chunks(1) {
        let folds = Some(ShardFolds { folds: fold, classes: &cut.classes, weight: problem.cost });
        assert!(Shard::new(ShardRows { folds, ..plain }, &Silent).answer(begun(1.0).words()).is_err());
    }
}

/// Newton over shards, some steps from zero, and what is asked of it.
fn points_over(
    task: &ShardTask,
    here: &mut Here<'_>,
    steps: usize,
) -> std::result::Result<(), TestCaseError> {
    let mut newton = newton_of::<1>((task, None), here, (1, 1), &Silent);
    let stop = NewtonStop::RelativeGap(1e-12);
    newton.minimise(&ShardTerms::Smooth, 1.0, &stop, steps).unwrap();
    newton.evaluate(&ShardTerms::Smooth).unwrap();
    let mut points = RemotePoints::new(task, &Silent);
    let affordable = Affordable { passes: 4.0, curved: 1.0, distance: 1.0 };
    for is_step in [false, true] {
        let found = if is_step { points.polish_step(&mut newton, &affordable).unwrap() } else { None };
        let found = match found {
            Some(found) => found,
            None if is_step => return Ok(()),
            None => points.polish_slopes(&mut newton).unwrap(),
        };
        // No fit ends by a point that is no better than zeros.
        if found.value <= 0.0 {
            return Ok(());
        }
        let primal = points.fresh_value(&mut newton).unwrap();
        let w = newton.w.lane(0);
        let claimed = Claimed { w: &w, spread: points.last.unwrap(), lane: 0, is_polished: true };
        let proved = prove(task, &mut newton.rows, &claimed).unwrap();
        // By other sums, from margins: what rounding may have done is below.
        let scale = primal + found.value.abs();
        prop_assert!((proved.primal - primal).abs() <= 1e-10 * scale, "{proved:?} {primal}");
        prop_assert!(proved.dual <= found.value + 1e-10 * scale, "{proved:?} {found:?}");
        prop_assert!(proved.dual >= found.value - 1e-7 * scale, "{proved:?} {found:?}");
        newton.evaluate(&ShardTerms::Smooth).unwrap();
    }
    Ok(())
}

proptest! {
    #[test]
    fn dual_points_of_shards_are_true(
        n in 3..60usize,
        d in 1..8usize,
        power in -3..4i32,
        seed in 0..10_000usize,
        intercept in 0..3usize,
        steps in 0..4usize,
        cut in 1..5usize,
    ) {
        let waves = Waves::new(n, d, 10f64.powi(power), seed);
        let matrix = waves.rows();
        let problem = waves.problem(&matrix, intercept);
        let params = Params { tol: 1e-11, max_iter: 10_000, ..Params::default() };
        for loss in &LOSSES[..3] {
            // The same border twice is a shard without rows.
            let borders: Vec<usize> = (1..cut).map(|k| (k * n / 3).min(n)).collect();
            let parts = Cut::new(classes_of(&problem), &borders);
            let mut here = Here::new(parts.rows(&matrix, &problem, *loss), 3);
            let (facts, intercept) = (here.facts(), problem.intercept);
            let task = ShardTask::new(facts, (d, 2), (*loss, intercept), params);
            points_over(&task, &mut here, steps)?;
        }
    }
}

/// The gap after a step in the dual and those further, in memory and over shards of which some are lost on
/// the way, and that after the step alone.
fn steps_in_the_dual<T: DualLoss>(problem: &Problem<'_>, (kind, loss): (LossKind, T), d: usize) -> [f64; 3] {
    let (objective, stop) =
        (Weighted { loss, y: problem.y, cost: problem.cost }, NewtonStop::RelativeGap(1e-12));
    let mut newton = InMemory::<1>::new(problem, 1, true, &Silent);
    let [report] = newton.minimise(&objective, 1.0, &stop, 1).unwrap();
    newton.evaluate(&objective).unwrap();
    let primal = report.certificate.primal;
    let affordable = Affordable { passes: 20.0, curved: 0.9, distance: 1e-9 * primal };
    let alone = Affordable { passes: 2.8, ..affordable };
    let [there, step] = [affordable, alone].map(|affordable| {
        DualPoint::from_step(problem, loss, &mut newton, &affordable).unwrap().unwrap().value
    });
    let parts = Cut::new(classes_of(problem), &[1000, 1000, 2200]);
    let mut here = Here::new(parts.rows(problem.rows, problem, kind), 3);
    let task = ShardTask::new(here.facts(), (d, 2), (kind, problem.intercept), Params::default());
    let mut newton = newton_of::<1>((&task, None), &mut here, (1, 1), &Silent);
    newton.minimise(&ShardTerms::Smooth, 1.0, &stop, 1).unwrap();
    newton.evaluate(&ShardTerms::Smooth).unwrap();
    let found = RemotePoints::new(&task, &Silent).polish_step(&mut newton, &affordable).unwrap().unwrap();
    [there, found.value, step].map(|value| primal - value)
}

#[test]
fn steps_in_the_dual_over_shards_go_as_far_as_those_in_memory() {
    let waves = Waves::new(3000, 40, 400.0, 5);
    let matrix = waves.rows();
    for intercept in 0..3 {
        let problem = waves.problem(&matrix, intercept);
        for found in [
            steps_in_the_dual(&problem, (LossKind::SquaredHinge, SquaredHinge), 40),
            steps_in_the_dual(&problem, (LossKind::ModifiedHuber, ModifiedHuber), 40),
        ] {
            let [there, here, step] = found;
            assert!((here - there).abs() <= 1e-4 * there && here < 0.02 * step, "{found:?}");
        }
    }
}

#[test]
fn gaps_of_fits_are_never_below_the_truth_and_rounds_are_few() {
    let (n, d) = (6000, 30);
    let waves = Waves::new(n, d, 8.0, 1);
    let matrix = waves.rows();
    for (intercept, loss) in (0..3).flat_map(|i| LOSSES.map(|loss| (i, loss))) {
        let problem = waves.problem(&matrix, intercept);
        let best = alone(&problem, loss, 1e-12).certificate;
        for borders in [&[][..], &[3000], &[0, 100, 1000, 6000]] {
            let cut = Cut::new(classes_of(&problem), borders);
            for tol in [1e-2, 1e-4, 1e-6] {
                let (outcome, rounds) = fit_over(&cut.rows(&matrix, &problem, loss), d, 2, tol, usize::MAX);
                let found = outcome.facts[0].certificate;
                let distance = found.primal / best.dual - 1.0;
                let gap = found.relative_gap();
                assert!(distance - 1e-11 <= gap && gap <= tol, "{loss:?} {intercept} {distance} {gap}");
                let most = if loss.is_smooth() { 50 } else { 250 };
                assert!(rounds <= most, "{loss:?} {intercept} {borders:?} {tol}: {rounds} rounds");
            }
        }
    }
}

/// A piece goes on from the weights of the one before, as it would if the request said them; and the epochs
/// of pieces in turn raise the dual value more than those of shards that each begin from the same weights.
#[test]
fn epochs_go_from_piece_to_piece() {
    let waves = Waves::new(90, 8, 4.0, 1);
    let matrix = waves.rows();
    let problem = waves.problem(&matrix, 0);
    let cut = Cut::new(classes_of(&problem), &[30, 60]);
    let rows = cut.rows(&matrix, &problem, LossKind::SquaredHinge);
    let pieces = || -> Vec<Shard<'_>> {
        let mut shards: Vec<Shard<'_>> = rows.iter().map(|rows| Shard::new(*rows, &Silent)).collect();
        let mut begin = Request::new(1);
        begin.op(Op::Begin).number(1.0).number(1.0).number(1.0).op(Op::Decide).vector(&[0.0; 8]);
        begin.op(Op::EvaluateQuietly).number(0.0);
        shards.iter_mut().for_each(|shard| assert!(shard.answer(begin.words()).unwrap().sums.is_empty()));
        shards
    };
    let descend = |w: &[f64]| {
        let mut request = Request::new(1);
        request.op(Op::Descend).numbers(&[0.0, 0.0, 1.0, 0.0, 0.0, 5.0]).vector(w);
        request
    };
    let gradient = evaluated(&mut pieces());
    let start: Vec<f64> = gradient.iter().map(|h| -h).collect();
    let (mut relayed, mut told, mut w) = (pieces(), pieces(), start.clone());
    let mut handed = Vec::new();
    for (one, other) in relayed.iter_mut().zip(&mut told) {
        one.hand(handed);
        other.hand(Vec::new());
        let answer = one.answer(descend(&start).words()).unwrap();
        assert_eq!(answer, other.answer(descend(&w).words()).unwrap());
        (handed, w) = (one.handed(), other.handed());
        assert!(handed == w && w != start);
    }
    let mut alone = pieces();
    for shard in &mut alone {
        shard.answer(descend(&start).words()).unwrap();
        assert!(shard.handed().is_empty());
    }
    let [relayed, alone] = [relayed, alone].map(dual_value);
    assert!(relayed > alone, "{relayed} {alone}");
}

/// The gradient of the losses of some shards.
fn evaluated(shards: &mut [Shard<'_>]) -> Vec<f64> {
    let mut request = Request::new(1);
    request.op(Op::Evaluate).number(0.0);
    let mut sum = ShardAnswer::default();
    for shard in shards {
        let answer = shard.answer(request.words()).unwrap();
        if sum.sums.is_empty() { sum = answer } else { sum.join(&answer).unwrap() }
    }
    sum.sums[..sum.sums.len() - 2].to_vec()
}

/// That of the points which some shards have found.
fn dual_value(mut shards: Vec<Shard<'_>>) -> f64 {
    let mut request = Request::new(1);
    request.op(Op::Settle).numbers(&[0.0, 0.0, 0.0]);
    let answers: Vec<ShardAnswer> =
        shards.iter_mut().map(|shard| shard.answer(request.words()).unwrap()).collect();
    let mut sum = answers[0].clone();
    answers[1..].iter().for_each(|answer| sum.join(answer).unwrap());
    let (w, rest) = sum.sums.split_at(sum.sums.len() - 2);
    rest[0] - 0.5 * w.iter().map(|w| w * w).sum::<f64>()
}
