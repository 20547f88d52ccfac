//! Fits over shards in this process, against fits in memory.

use super::remote::Exchange;
use super::shard::{Shard, ShardFacts, ShardRows};
use super::wire::ShardAnswer;
use super::{ShardTask, fit};
use crate::fit::waves::Waves;
use crate::fit::{Intercept, Params, Problem, Silent, Solution, Start, Status, auto};
use crate::front::{Outcome, Weights};
use crate::loss::LossKind;
use crate::matrix::Matrix;
use crate::{Result, labels};

const LOSSES: [LossKind; 4] =
    [LossKind::SquaredHinge, LossKind::Logistic, LossKind::ModifiedHuber, LossKind::Hinge];

/// Shards in this process; in some rounds one begins anew.
struct Here<'a> {
    rows: Vec<ShardRows<'a>>,
    shards: Vec<Shard<'a>>,
    rounds: usize,
    /// A shard is lost in every so-manieth round.
    loses_every: usize,
}

impl<'a> Here<'a> {
    fn new(rows: Vec<ShardRows<'a>>, loses_every: usize) -> Self {
        let shards = rows.iter().map(|rows| Shard::new(*rows, &Silent)).collect();
        Self { rows, shards, rounds: 0, loses_every }
    }

    fn facts(&self) -> ShardFacts {
        let mut all = ShardFacts::default();
        self.rows.iter().for_each(|rows| all.join(&rows.facts()));
        all
    }
}

impl Exchange for Here<'_> {
    fn ask(&mut self, request: &[f64], restore: &dyn Fn() -> Vec<f64>) -> Result<ShardAnswer> {
        self.rounds += 1;
        if self.rounds.is_multiple_of(self.loses_every) {
            let lost = self.rounds / self.loses_every % self.shards.len();
            self.shards[lost] = Shard::new(self.rows[lost], &Silent);
            self.shards[lost].answer(&restore())?;
        }
        let mut sum: Option<ShardAnswer> = None;
        for shard in &mut self.shards {
            let answer = shard.answer(request)?;
            match &mut sum {
                None => sum = Some(answer),
                Some(sum) => sum.join(&answer)?,
            }
        }
        Ok(sum.unwrap_or_default())
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
            classes: &self.classes[b[0]..b[1]],
            cost: &problem.cost[b[0]..b[1]],
            loss,
            intercept: problem.intercept,
        };
        self.borders.windows(2).map(shard).collect()
    }
}

fn classes_of(problem: &Problem<'_>) -> Vec<u32> {
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
    let (facts, n_shards) = (here.facts(), rows.len());
    let task = ShardTask { facts, n_shards, n_columns, n_classes, loss, intercept, params };
    let outcome = fit(&task, &mut here, &Silent).unwrap();
    (outcome, here.rounds)
}

fn weights(outcome: &Outcome) -> &[Vec<f64>] {
    match &outcome.weights {
        Weights::Dense(weights) => weights,
        _ => unreachable!("binary problems"),
    }
}

fn alone(problem: &Problem<'_>, loss: LossKind, tol: f64) -> Solution {
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
