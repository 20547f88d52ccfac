use super::draw::Draw;
use super::options::LEAST_DRAWS;
use super::*;
use crate::fit::dual::active::random;
use crate::fit::sweep::dot;
use crate::fit::{Intercept, Params, Silent, SolverKind, Start, Status, auto};
use crate::loss::Loss;
use crate::loss::{Hinge, Logistic, ModifiedHuber, SquaredHinge};
use crate::matrix::dense::DenseView;
use crate::matrix::{Matrix, Rows};
use proptest::prelude::*;

const LOSSES: [LossKind; 4] =
    [LossKind::Hinge, LossKind::SquaredHinge, LossKind::Logistic, LossKind::ModifiedHuber];

fn options<'a>() -> SubgradientOptions<'a> {
    SubgradientOptions {
        batch: Batch::Rows(1),
        step_size: StepSize::Pegasos,
        projects: true,
        average: Average::Suffix,
        tol: 1e-3,
        objective_tol: 0.0,
        window: (1, 0.0),
        step_length: StepLength::Whole,
        max_epochs: 2000,
        seed: 3,
    }
}

struct Data {
    values: Vec<f64>,
    y: Vec<f64>,
    cost: Vec<f64>,
    d: usize,
}

/// Rows in a fixed disorder, labels from a plane and noise, costs that add up to `total`.
fn blobs(n: usize, d: usize, total: f64) -> Data {
    let wave = |k: usize| ((k * 7919 % 1009) as f64 / 1009.0 - 0.5) * 3.0;
    let values: Vec<f64> = (0..n * d).map(wave).collect();
    let y = (0..n)
        .map(|i| if values[i * d] - values[i * d + 1] + wave(i * 31) > 0.3 { 1.0 } else { -1.0 })
        .collect();
    let cost: Vec<f64> = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
    let sum: f64 = cost.iter().sum();
    Data { values, y, cost: cost.iter().map(|c| c * total / sum).collect(), d }
}

impl Data {
    fn view(&self) -> Matrix<'_> {
        DenseView::new(&self.values, self.y.len(), self.d).unwrap().0.into()
    }

    fn problem<'a>(&'a self, rows: &'a Matrix<'a>, intercept: Intercept) -> Problem<'a> {
        Problem { rows, ids: None, y: &self.y, cost: &self.cost, intercept }
    }

    fn solve(
        &self,
        loss: LossKind,
        intercept: Intercept,
        options: &SubgradientOptions<'_>,
    ) -> (Solution, Vec<Evaluation>) {
        let view = self.view();
        solve(&self.problem(&view, intercept), loss, options, &Silent).unwrap()
    }

    fn optimum(&self, loss: LossKind, intercept: Intercept) -> f64 {
        let view = self.view();
        let params = Params { solver: SolverKind::Newton, tol: 1e-9, ..Params::default() };
        let problem = self.problem(&view, intercept);
        auto::solve(&problem, loss, &params, &Start::default(), &Silent).unwrap().certificate.primal
    }
}

#[test]
fn every_form_reaches_the_exact_optimum() {
    let data = blobs(300, 4, 60.0);
    for loss in LOSSES {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised(2.0)] {
            let best = data.optimum(loss, intercept);
            for batch in [Batch::Rows(1), Batch::Rows(7), Batch::All] {
                let max_epochs = if batch == Batch::All { 20_000 } else { 2000 };
                let (s, evaluations) =
                    data.solve(loss, intercept, &SubgradientOptions { batch, max_epochs, ..options() });
                let distance = s.certificate.primal / best - 1.0;
                assert!(
                    (-1e-9..1e-3).contains(&distance),
                    "{loss:?} {intercept:?} {batch:?}: {distance} {evaluations:?}"
                );
                assert!(s.certificate.dual <= best * (1.0 + 1e-9), "{loss:?} {intercept:?} {batch:?}");
                assert_eq!(
                    s.status,
                    Status::Converged,
                    "{loss:?} {intercept:?} {batch:?} {:?}",
                    evaluations.last()
                );
            }
        }
    }
}

#[test]
fn the_certificate_is_that_of_the_result() {
    let data = blobs(200, 3, 20.0);
    let view = data.view();
    for loss in LOSSES {
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised(0.5)] {
            let problem = data.problem(&view, intercept);
            let (s, _) =
                solve(&problem, loss, &SubgradientOptions { max_epochs: 16, ..options() }, &Silent).unwrap();
            let mut anew = s.clone();
            crate::fit::certificate::certify(&problem, loss, &mut anew, options().tol, &Silent).unwrap();
            let anew = anew.certificate;
            assert!(
                (anew.primal - s.certificate.primal).abs() <= 1e-10 * anew.primal,
                "{loss:?} {intercept:?}"
            );
            assert!((anew.dual - s.certificate.dual).abs() <= 1e-10 * anew.primal, "{loss:?} {intercept:?}");
        }
    }
}

/// Pegasos word for word: dense vectors, the norm computed anew, the mean of a list.
fn plain(data: &Data, loss: LossKind, k: usize, steps: usize) -> (Vec<f64>, Vec<f64>) {
    let view = data.view();
    let design = data.problem(&view, Intercept::None).design(0.0);
    let draw = Draw::new(&design, &data.y, &data.cost);
    let lambda = 1.0 / data.cost.iter().sum::<f64>();
    let derivative = |m: f64| match loss {
        LossKind::Hinge => Hinge.derivative(m),
        LossKind::SquaredHinge => SquaredHinge.derivative(m),
        LossKind::ModifiedHuber => ModifiedHuber.derivative(m),
        LossKind::Logistic => Logistic.derivative(m),
    };
    let (bend, radius) = match loss {
        LossKind::Hinge => (0.0, (1.0 / lambda).sqrt()),
        LossKind::SquaredHinge | LossKind::ModifiedHuber => (2.0, (0.5 / lambda).sqrt()),
        LossKind::Logistic => (0.25, (2.0 * 2f64.ln() / lambda).sqrt()),
    };
    let largest = (0..data.y.len()).map(|i| design.squared_norm(i)).fold(0.0, f64::max);
    let (mut r, mut w, mut all) = (random(3, 0), vec![0.0; data.d], Vec::new());
    for t in 1..=steps {
        let eta = 1.0 / (lambda * (t as f64 + bend * largest / lambda));
        let rows: Vec<usize> = (0..k).map(|_| draw.next(&mut r) as usize).collect();
        let row = |i: usize| &data.values[i * data.d..(i + 1) * data.d];
        let slopes: Vec<f64> = rows
            .iter()
            .map(|&i| -derivative(data.y[i] * row(i).iter().zip(&w).map(|(x, w)| x * w).sum::<f64>()))
            .collect();
        w.iter_mut().for_each(|w| *w *= 1.0 - eta * lambda);
        for (&i, slope) in rows.iter().zip(slopes) {
            w.iter_mut().zip(row(i)).for_each(|(w, x)| *w += eta / k as f64 * slope * data.y[i] * x);
        }
        let norm = w.iter().map(|w| w * w).sum::<f64>().sqrt();
        if norm > radius {
            w.iter_mut().for_each(|w| *w *= radius / norm);
        }
        all.push(w.clone());
    }
    let mean = (0..data.d).map(|j| all.iter().map(|w| w[j]).sum::<f64>() / steps as f64).collect();
    (w, mean)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn steps_are_those_of_the_paper(
        n in 2..40usize,
        d in 2..6usize,
        total in 0.1..100.0f64,
        k in 1..5usize,
        loss in 0..4usize,
    ) {
        let data = blobs(n, d, total);
        let steps = LEAST_DRAWS.div_ceil(k);
        let (last, mean) = plain(&data, LOSSES[loss], k, steps);
        for (average, expected) in [(Average::None, last), (Average::All, mean)] {
            let batch = Batch::Rows(k);
            let options = SubgradientOptions { batch, average, max_epochs: 1, tol: 1e-12, ..options() };
            let (s, _) = data.solve(LOSSES[loss], Intercept::None, &options);
            let scale = 1e-8 * (1.0 + dot(&expected, &expected).sqrt());
            for (w, e) in s.w.iter().zip(&expected) {
                prop_assert!((w - e).abs() <= scale, "{average:?}: {:?} and {expected:?}", s.w);
            }
        }
    }
}

#[test]
fn batch_descent_matches_a_plain_loop() {
    let data = blobs(60, 3, 5.0);
    let lambda = 1.0 / data.cost.iter().sum::<f64>();
    let mut w = vec![0.0; 3];
    for t in 1..=8 {
        let eta = 0.3 / f64::from(t).sqrt();
        let mut gradient: Vec<f64> = w.iter().map(|w| lambda * w).collect();
        for (i, row) in data.values.chunks_exact(3).enumerate() {
            if data.y[i] * dot(row, &w) < 1.0 {
                gradient.iter_mut().zip(row).for_each(|(g, x)| *g -= lambda * data.cost[i] * data.y[i] * x);
            }
        }
        w.iter_mut().zip(gradient).for_each(|(w, g)| *w -= eta * g);
    }
    let step_size = StepSize::Root(0.3);
    let form = SubgradientOptions {
        batch: Batch::All,
        average: Average::None,
        step_size,
        projects: false,
        tol: 1e-12,
        max_epochs: 8,
        ..options()
    };
    let (s, _) = data.solve(LossKind::Hinge, Intercept::None, &form);
    assert!(s.w.iter().zip(&w).all(|(a, b)| (a - b).abs() < 1e-12), "{:?} {w:?}", s.w);
}

#[test]
fn projection_keeps_the_norm_within_the_papers_bound() {
    let data = blobs(300, 4, 3000.0);
    let (_, evaluations) =
        data.solve(LossKind::Hinge, Intercept::Free, &SubgradientOptions { max_epochs: 64, ..options() });
    let (_, free) = data.solve(
        LossKind::Hinge,
        Intercept::Free,
        &SubgradientOptions { max_epochs: 1, projects: false, ..options() },
    );
    assert!(evaluations.iter().all(|evaluation| evaluation.norm <= 3000f64.sqrt() * (1.0 + 1e-9)));
    assert!(
        free[0].norm > 1.05 * evaluations[0].norm,
        "the projection does nothing here: {} {}",
        free[0].norm,
        evaluations[0].norm
    );
}

#[test]
fn weight_two_is_the_row_twice_in_any_order() {
    let data = blobs(40, 3, 40.0);
    let mut twice = Data { values: Vec::new(), y: Vec::new(), cost: Vec::new(), d: 3 };
    let mut heavy = blobs(40, 3, 40.0);
    for i in (0..40).rev() {
        for _ in 0..1 + i % 2 {
            twice.values.extend(&data.values[3 * i..3 * i + 3]);
            twice.y.push(data.y[i]);
            twice.cost.push(1.0);
        }
        heavy.cost[i] = 1.0 + (i % 2) as f64;
    }
    for loss in LOSSES {
        for intercept in [Intercept::None, Intercept::Free] {
            let (a, _) = heavy.solve(loss, intercept, &options());
            let (b, _) = twice.solve(loss, intercept, &options());
            assert_eq!(a.n_iter, b.n_iter);
            assert!(a.w.iter().zip(&b.w).all(|(a, b)| (a - b).abs() < 1e-9), "{loss:?} {:?} {:?}", a.w, b.w);
            assert!((a.intercept - b.intercept).abs() < 1e-9);
        }
    }
}

#[test]
fn same_seed_same_bits_on_any_number_of_threads() {
    let data = blobs(3000, 5, 300.0);
    let run = |threads: usize, seed: u64, batch: Batch| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            data.solve(
                LossKind::Hinge,
                Intercept::Free,
                &SubgradientOptions { seed, batch, max_epochs: 6, ..options() },
            )
            .0
            .w
        })
    };
    for batch in [Batch::Rows(1), Batch::Rows(5), Batch::All] {
        assert_eq!(run(1, 1, batch), run(3, 1, batch));
    }
    assert_ne!(run(1, 1, Batch::Rows(1)), run(1, 2, Batch::Rows(1)));
}

#[test]
fn short_steps_flat_objectives_and_bad_functions_end_a_descent() {
    let data = blobs(300, 4, 30.0);
    let short = SubgradientOptions {
        step_size: StepSize::Constant(1e-9),
        window: (50, 1e-6),
        tol: 1e-9,
        ..options()
    };
    let (s, evaluations) = data.solve(LossKind::Hinge, Intercept::Free, &short);
    assert_eq!((s.status, evaluations[0].steps), (Status::Stalled, 50));
    let flat = SubgradientOptions { objective_tol: 0.05, tol: 1e-12, ..options() };
    let (s, evaluations) = data.solve(LossKind::Hinge, Intercept::Free, &flat);
    assert_eq!(s.status, Status::Stalled);
    let [.., a, b] = evaluations[..] else { panic!("{evaluations:?}") };
    assert!((a.primal - b.primal).abs() <= 0.05 * b.primal);

    let own = |first: u64, eta: &mut [f64]| {
        eta.iter_mut().enumerate().for_each(|(k, eta)| *eta = 30.0 / (first + k as u64) as f64);
        Ok(())
    };
    let by_function = SubgradientOptions { step_size: StepSize::Function(&own), max_epochs: 2, ..options() };
    let by_name = SubgradientOptions { max_epochs: 2, ..options() };
    let (a, b) = (
        data.solve(LossKind::Hinge, Intercept::None, &by_function).0.w,
        data.solve(LossKind::Hinge, Intercept::None, &by_name).0.w,
    );
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-9), "{a:?} {b:?}");
    let bad = |_: u64, eta: &mut [f64]| {
        eta.fill(f64::NAN);
        Ok(())
    };
    let view = data.view();
    let error = solve(
        &data.problem(&view, Intercept::None),
        LossKind::Hinge,
        &SubgradientOptions { step_size: StepSize::Function(&bad), ..options() },
        &Silent,
    );
    assert!(error.unwrap_err().to_string().contains("NaN at step 1"));
}

#[test]
fn passes_over_parts_of_the_rows_learn_what_the_whole_does() {
    let data = blobs(400, 4, 40.0);
    let view = data.view();
    let mut state = SubgradientState::default();
    for round in 0..60 {
        let ids: Vec<u32> = (0..400).filter(|i| i % 4 == round % 4).collect();
        let pick = |v: &[f64]| -> Vec<f64> { ids.iter().map(|&i| v[i as usize]).collect() };
        let (y, cost) = (pick(&data.y), pick(&data.cost));
        // `lambda` is one over the sum of the costs.
        let total: f64 = cost.iter().sum();
        let cost: Vec<f64> = cost.iter().map(|c| c * 40.0 / total).collect();
        let problem =
            Problem { rows: &view, ids: Some(&ids), y: &y, cost: &cost, intercept: Intercept::Free };
        state = advance(
            &problem,
            LossKind::Hinge,
            &SubgradientOptions { average: Average::All, ..options() },
            &state,
            &Silent,
        )
        .unwrap();
    }
    assert_eq!((state.steps, state.counted), (6000, 6000));
    let w: Vec<f64> = state.sum.iter().map(|s| s / 6000.0).collect();
    let b = state.b_sum / 6000.0;
    let primal: f64 = 0.5 * dot(&w, &w)
        + (0..400)
            .map(|i| data.cost[i] * Hinge.value(data.y[i] * (dot(&data.values[4 * i..4 * i + 4], &w) + b)))
            .sum::<f64>();
    let best = data.optimum(LossKind::Hinge, Intercept::Free);
    assert!(primal < 1.05 * best, "{primal} {best}");
}
