//! Streams: bounded memory, the model of the whole where nothing is forgotten, the same bits after a
//! snapshot.

use hinge::blocks::{BlockSettings, Policy};
use hinge::fit::{Intercept, Params, Silent, SolverKind};
use hinge::labels::{Classification, Labels};
use hinge::loss::LossKind;
use hinge::matrix::arena::Width;
use hinge::matrix::csr::CsrView;
use hinge::online::{Stream, StreamOptions, StreamProblem};
use hinge::{Error, labels};

use crate::blocks::{Data, data, settings};

const D: usize = 400;

fn options(loss: LossKind, intercept: Intercept, budget: u64, c: f64, n_classes: usize) -> StreamOptions {
    let settings = BlockSettings { budget, ..settings(loss, intercept) };
    StreamOptions {
        settings,
        n_cols: D,
        cost: vec![c; n_classes],
        width: Width::F64,
        problem: StreamProblem::Each,
    }
}

/// The rows of every `step`-th number, shuffled, as a matrix.
fn shuffled(data: &Data, n: usize) -> Data {
    let all = data.classes.len();
    let mut out = Data { indptr: vec![0], indices: vec![], values: vec![], classes: vec![], weights: vec![] };
    for k in 0..n {
        let i = (k * 7919) % all;
        let range = data.indptr[i] as usize..data.indptr[i + 1] as usize;
        out.indices.extend_from_slice(&data.indices[range.clone()]);
        out.values.extend_from_slice(&data.values[range]);
        out.indptr.push(out.indices.len() as i64);
        out.classes.push(data.classes[i]);
        out.weights.push(data.weights[i]);
    }
    out
}

fn learn(stream: &mut Stream, data: &Data, pieces: usize) {
    let n = data.classes.len();
    for k in 0..pieces {
        let rows = k * n / pieces..(k + 1) * n / pieces;
        let (start, end) = (data.indptr[rows.start] as usize, data.indptr[rows.end] as usize);
        let indptr: Vec<i64> = data.indptr[rows.start..=rows.end].iter().map(|p| p - start as i64).collect();
        let (view, _) =
            CsrView::new(&indptr, &data.indices[start..end], &data.values[start..end], D).unwrap();
        stream.learn(&view.into(), &data.classes[rows.clone()], Some(&data.weights[rows]), &Silent).unwrap();
    }
}

fn objective(data: &Data, stream: &Stream, c: f64, loss: LossKind) -> f64 {
    let (w, b) = stream.model(0);
    let mut total = 0.5 * w.iter().map(|w| w * w).sum::<f64>();
    for i in 0..data.classes.len() {
        let range = data.indptr[i] as usize..data.indptr[i + 1] as usize;
        let f: f64 = range.map(|k| data.values[k] * w[data.indices[k] as usize]).sum::<f64>() + b;
        let m = if data.classes[i] == 1 { f } else { -f };
        let value = crate::naive::value(loss, m);
        total += c * data.weights[i] * value;
    }
    total
}

fn optimum(data: &Data, c: f64, loss: LossKind, intercept: Intercept) -> f64 {
    let (view, _) = CsrView::new(&data.indptr, &data.indices, &data.values, D).unwrap();
    let labels = Labels { ids: &data.classes, n_classes: 2 };
    let cost: Vec<f64> = data.weights.iter().map(|w| c * w).collect();
    let params = Params { solver: SolverKind::DualCd, tol: 1e-6, max_iter: 3000, seed: 1 };
    let data = Classification { rows: &view.into(), labels: &labels, cost: &cost, intercept };
    labels::fit(&data, loss, &params, &Silent).unwrap()[0].certificate.primal
}

#[test]
fn a_stream_comes_near_the_optimum_of_all_its_rows() {
    let data = shuffled(&data(2, false), 20_000);
    for (loss, intercept) in [
        (LossKind::Hinge, Intercept::None),
        (LossKind::SquaredHinge, Intercept::Penalised(0.5)),
        (LossKind::Logistic, Intercept::Penalised(1.0)),
    ] {
        let best = optimum(&data, 0.1, loss, intercept);
        // The dual variables of a squared hinge have no upper bound: those of rows seen early, beside few
        // others, are too large, and a forgotten row keeps its part. The last sixth of the rows has seen two
        // epochs only.
        let slack = match loss {
            LossKind::Hinge => 0.2,
            LossKind::SquaredHinge | LossKind::ModifiedHuber => 0.4,
            LossKind::Logistic => 0.1,
        };
        // Room for all rows, and for about a tenth.
        for budget in [60_000_000, 1_500_000] {
            let mut stream = Stream::new(options(loss, intercept, budget, 0.1, 2)).unwrap();
            learn(&mut stream, &data, 50);
            assert_eq!(stream.counts().seen, 20_000);
            let found = objective(&data, &stream, 0.1, loss);
            let name =
                format!("{loss:?} {intercept:?} {budget}: {found} for {best}, {} rows", stream.n_resident());
            assert_eq!(stream.n_resident() == 20_000, budget == 60_000_000, "{name}");
            assert!(found >= best * (1.0 - 1e-6) || matches!(intercept, Intercept::Penalised(_)), "{name}");
            assert!(found <= best * (1.0 + slack), "{name}");
            if intercept == Intercept::None {
                assert!(
                    stream.duals()[0] <= best && stream.duals()[0] > 0.5 * best,
                    "{name}, dual {}",
                    stream.duals()[0]
                );
            }
        }
    }
}

#[test]
fn memory_is_bounded_however_long_the_stream() {
    let data = shuffled(&data(2, true), 5_000);
    let mut stream =
        Stream::new(options(LossKind::Hinge, Intercept::Penalised(1.0), 1_200_000, 1.0, 2)).unwrap();
    let mut most = 0;
    for _ in 0..6 {
        learn(&mut stream, &data, 5);
        most = most.max(stream.n_resident());
    }
    assert_eq!(stream.counts().seen, 30_000);
    assert!(most > 100 && most < 5_000, "{most} rows at hand");
}

#[test]
fn a_snapshot_goes_on_to_the_same_bits_with_any_number_of_threads() {
    let data = shuffled(&data(3, false), 6_000);
    let of = |problem: StreamProblem, threads: usize, stops: bool| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let options = options(LossKind::Hinge, Intercept::Penalised(1.0), 2_000_000, 0.5, 3);
            let options = StreamOptions { problem, ..options };
            let mut stream = Stream::new(options.clone()).unwrap();
            learn(&mut stream, &data, 7);
            if stops {
                stream = Stream::restore(options, stream.snapshot()).unwrap();
            }
            learn(&mut stream, &data, 3);
            (0..3).map(|k| (stream.model(k).0.to_vec(), stream.model(k).1)).collect::<Vec<_>>()
        })
    };
    for problem in [StreamProblem::Each, StreamProblem::CrammerSinger] {
        let whole = of(problem, 1, false);
        assert_eq!(whole, of(problem, 3, false));
        assert_eq!(whole, of(problem, 2, true));
    }
}

#[test]
fn every_cache_learns_and_what_is_no_stream_is_refused() {
    let data = shuffled(&data(2, true), 4_000);
    for policy in [Policy::None, Policy::Random, Policy::Gradient, Policy::Projected, Policy::Steepest] {
        let mut options = options(LossKind::Hinge, Intercept::None, 1_200_000, 1.0, 2);
        options.settings.policy = policy;
        let mut stream = Stream::new(options.clone()).unwrap();
        learn(&mut stream, &data, 4);
        assert!(stream.duals()[0] > 0.0, "{policy:?}");
        let mut broken = stream.snapshot();
        broken.states.pop();
        assert!(matches!(Stream::restore(options, broken), Err(Error::Shape { .. })));
    }
    let small = options(LossKind::Hinge, Intercept::None, 10_000, 1.0, 2);
    let Err(Error::Budget { needed, .. }) = Stream::new(small.clone()) else { panic!("no budget") };
    assert!(
        Stream::new(StreamOptions { settings: BlockSettings { budget: needed, ..small.settings }, ..small })
            .is_ok()
    );
    let mut stream = Stream::new(options(LossKind::Hinge, Intercept::None, 1_200_000, 1.0, 2)).unwrap();
    let (view, _) = CsrView::new(&[0i64, 1], &[0i64], &[1.0], D + 1).unwrap();
    assert!(matches!(stream.learn(&view.into(), &[0], None, &Silent), Err(Error::Shape { .. })));
    let (view, _) = CsrView::new(&[0i64, 1], &[0i64], &[1.0], D).unwrap();
    assert!(matches!(stream.learn(&view.into(), &[2], None, &Silent), Err(Error::Labels { .. })));
    assert!(matches!(stream.learn(&view.into(), &[0], Some(&[-1.0]), &Silent), Err(Error::Labels { .. })));
    assert_eq!(stream.counts().seen, 0);
}
