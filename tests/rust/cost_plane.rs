//! The plane of two costs against slow, obvious twins: the dual solved by projected coordinate descent at
//! points, sets recomputed from the answer.

use hinge::cost_plane::answer::{Data as PathData, answer};
use hinge::cost_plane::complex::{ExplorationEnd, OPEN};
use hinge::cost_plane::estimate::estimate;
use hinge::cost_plane::file::PlaneFile;
use hinge::cost_plane::keys::Side;
use hinge::cost_plane::locate::BoundingBoxTree;
use hinge::cost_plane::start::sides_at;
use hinge::cost_plane::{ExplorationOptions, Explored, RAY_SCALE, plane, plane_to_file, ray};
use hinge::fit::{Monitor, Silent};
use hinge::matrix::Matrix;
use proptest::prelude::*;

use crate::naive::{Data, dot};

const BIAS: f64 = 1.0;

fn options(limit: [f64; 2]) -> ExplorationOptions {
    ExplorationOptions { limit, start: None, max_facets: 1_000_000, seed: 0 }
}

/// Optimal dual value by coordinate descent over explicit vectors, until the gap is below 1e-10.
fn optimum(rows: &[Vec<f64>], y: &[f64], cost: [f64; 2]) -> f64 {
    let z: Vec<Vec<f64>> = rows
        .iter()
        .zip(y)
        .map(|(row, y)| row.iter().copied().chain([BIAS]).map(|v| v * y).collect())
        .collect();
    let limit = |i: usize| cost[usize::from(y[i] < 0.0)];
    let (mut a, mut w) = (vec![0.0; y.len()], vec![0.0; z[0].len()]);
    for _ in 0..1_000_000 {
        for i in 0..y.len() {
            let q = dot(&z[i], &z[i]);
            let new = (a[i] + (1.0 - dot(&z[i], &w)) / q).clamp(0.0, limit(i));
            w.iter_mut().zip(&z[i]).for_each(|(w, z)| *w += (new - a[i]) * z);
            a[i] = new;
        }
        let half = 0.5 * dot(&w, &w);
        let primal = half + (0..y.len()).map(|i| limit(i) * (1.0 - dot(&z[i], &w)).max(0.0)).sum::<f64>();
        let dual = a.iter().sum::<f64>() - half;
        if primal - dual <= 1e-10 * primal {
            return primal;
        }
    }
    panic!("the oracle did not converge");
}

fn explore(data: &Data, view: &Matrix<'_>, limit: [f64; 2]) -> Explored {
    plane(view, &data.y, BIAS, &options(limit), &Silent).unwrap()
}

fn assert_tiles(explored: &Explored, limit: [f64; 2]) {
    let report = &explored.report;
    assert_eq!(explored.complex.end, ExplorationEnd::Complete);
    assert_eq!((report.unmatched, report.inverted, report.empty.len(), report.special.len()), (0, 0, 0, 0));
    assert_eq!(report.vertices + report.facets, report.edges + 1, "Euler's formula");
    assert!((report.area / (limit[0] * limit[1]) - 1.0).abs() < 1e-9, "{}", report.area);
    assert!(explored.complex.beyond.iter().all(|&f| f != OPEN));
}

/// Rows of small integers with both labels: ties, duplicates and contradictions are the rule.
fn degenerate() -> impl Strategy<Value = Data> {
    (1..4usize, 2..12usize).prop_flat_map(|(d, n)| {
        let row = prop::collection::vec(-2..3i32, d);
        (prop::collection::vec(row, n), prop::collection::vec(any::<bool>(), n)).prop_map(
            move |(rows, labels)| {
                let rows = rows.into_iter().map(|row| row.into_iter().map(f64::from).collect()).collect();
                let mut y: Vec<f64> = labels.into_iter().map(|b| if b { 1.0 } else { -1.0 }).collect();
                (y[0], y[1]) = (1.0, -1.0);
                Data::new(rows, y, vec![1.0; n])
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn planes_of_degenerate_data_tile_the_box_and_answer_exactly(
        data in degenerate(),
        points in prop::collection::vec((0.01..1.0f64, 0.01..1.0f64), 3),
        size in prop::sample::select(vec![0.3, 2.0, 8.0]),
    ) {
        let (view, limit) = (data.view(), [size, 0.7 * size]);
        let explored = explore(&data, &view, limit);
        assert_tiles(&explored, limit);
        let index = BoundingBoxTree::new(&explored.complex);
        let path = PathData { rows: &view, y: &data.y, bias: BIAS, perturbation: &explored.perturbation };
        for (p, q) in points {
            let at = [p * limit[0], q * limit[1]];
            let facet = index.facet(&explored.complex, at, 1e-9).unwrap();
            let found = answer(&path, &explored.complex.sides(facet), at, &Silent).unwrap();
            prop_assert!(found.certificate.relative_gap() < 1e-9, "{:?}", found.certificate);
            let best = optimum(&data.rows, &data.y, at);
            prop_assert!((found.certificate.primal / best - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_ray_ends_in_the_sets_of_the_plane(data in degenerate(), p in 0.1..3.0f64, q in 0.1..3.0f64) {
        let (view, limit) = (data.view(), [3.0, 3.0]);
        let explored = explore(&data, &view, limit);
        let path = PathData { rows: &view, y: &data.y, bias: BIAS, perturbation: &explored.perturbation };
        let mut sides = vec![Side::Left; data.y.len()];
        let steps = ray(&path, &sides, [0.0; 2], [p, q], &Silent).unwrap();
        prop_assert!(steps.windows(2).all(|pair| pair[0].t <= pair[1].t));
        for step in &steps {
            let (from, to) = step.event.sides();
            prop_assert_eq!(sides[step.event.row() as usize], from);
            sides[step.event.row() as usize] = to;
        }
        let facet = BoundingBoxTree::new(&explored.complex).facet(&explored.complex, [p, q], 1e-9).unwrap();
        prop_assert_eq!(&sides, &explored.complex.sides(facet));
        prop_assert_eq!(sides_at(&path, [p, q], &Silent).unwrap(), sides, "from a fit");
    }
}

/// Gaussian rows, enough for pieces and layers of several tasks.
fn gaussian(n: usize, d: usize) -> Data {
    let mut seed = 7_u64;
    let mut uniform = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 33) as f64 + 0.5) / f64::from(1_u32 << 31)
    };
    let mut normal = || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    let y: Vec<f64> = (0..n).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
    let rows = (0..n).map(|i| (0..d).map(|_| normal() + 0.4 * y[i]).collect()).collect();
    Data::new(rows, y, vec![1.0; n])
}

#[test]
fn threads_do_not_change_a_bit() {
    let data = gaussian(50, 5);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| explore(&data, &data.view(), [10.0; 2])).complex
    };
    let (one, three) = (run(1), run(3));
    assert!(one.len() > 2000);
    assert_eq!(one.vertices, three.vertices);
    assert_eq!((one.events, one.beyond, one.corner), (three.events, three.beyond, three.corner));
}

/// Facets' sets are all different: merging by sets found every replica.
#[test]
fn no_facet_comes_twice() {
    let data = gaussian(30, 4);
    let complex = explore(&data, &data.view(), [10.0; 2]).complex;
    let distinct: std::collections::HashSet<Vec<u64>> = (0..complex.len()).map(|f| complex.sets(f)).collect();
    assert_eq!(distinct.len(), complex.len());
}

#[test]
fn a_limit_and_an_interrupt_keep_what_is_closed() {
    struct After(std::sync::atomic::AtomicUsize);
    impl Monitor for After {
        fn cancelled(&self) -> bool {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed) > 90
        }
    }
    let data = gaussian(40, 4);
    let few = ExplorationOptions { max_facets: 100, ..options([10.0; 2]) };
    let limited = plane(&data.view(), &data.y, BIAS, &few, &Silent).unwrap().complex;
    assert_eq!(limited.end, ExplorationEnd::Limit);
    assert!(!limited.is_empty() && limited.len() <= 100);
    assert!(limited.beyond.contains(&OPEN));
    let stop = After(std::sync::atomic::AtomicUsize::new(0));
    let stopped = plane(&data.view(), &data.y, BIAS, &options([10.0; 2]), &stop).unwrap().complex;
    assert_eq!(stopped.end, ExplorationEnd::Interrupted);
    assert!(!stopped.is_empty());
    assert!(stopped.fault().is_none() && limited.fault().is_none());
}

/// All rows equal but for their labels: the worst ties there are; the walk and the plane end.
#[test]
fn adversarial_ties_end() {
    for labels in [[1.0, -1.0].repeat(6), [vec![1.0; 11], vec![-1.0]].concat()] {
        let data = Data::new(vec![vec![1.0, 2.0]; 12], labels, vec![1.0; 12]);
        assert_tiles(&explore(&data, &data.view(), [5.0; 2]), [5.0; 2]);
        let eps = hinge::cost_plane::perturbation(12, 1e-6, 3);
        for perturbation in [&eps[..], &[0.0; 12]] {
            let view = data.view();
            let path = PathData { rows: &view, y: &data.y, bias: BIAS, perturbation };
            if let Ok(steps) = ray(&path, &[Side::Left; 12], [0.0; 2], [5.0, 4.0], &Silent) {
                assert!(steps.len() < 1000);
            }
        }
    }
}

/// A place of its own for a file, removed with what is in it.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hinge-path-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The layers in a file are those of the plane in memory, and the check as they go by finds what the check of
/// the whole finds.
#[test]
fn a_plane_in_a_file_is_the_plane_in_memory() {
    let folder = Folder::new("same");
    let target = folder.0.join("plane");
    let data = gaussian(40, 4);
    for (limit, max_facets, start) in [
        ([10.0; 2], 1_000_000, None),
        ([10.0; 2], 500, None),
        ([10.0; 2], 1_000_000, Some([3.0, 1.0])),
        ([f64::INFINITY; 2], 1_000_000, None),
    ] {
        let options = ExplorationOptions { max_facets, start, ..options(limit) };
        let memory = plane(&data.view(), &data.y, BIAS, &options, &Silent).unwrap();
        plane_to_file(&data.view(), &data.y, BIAS, &options, (&target, b"kept"), &Silent).unwrap();
        let file = PlaneFile::open(&target).unwrap();
        assert_eq!(file.header, b"kept");
        assert_eq!(file.perturbation, memory.perturbation);
        assert_eq!(
            (file.end, file.attempts, file.effort),
            (memory.complex.end, memory.attempts, memory.effort)
        );
        let (found, known) = (&file.report, &memory.report);
        assert!((found.area - known.area).abs() <= 1e-12 * known.area.abs());
        assert_eq!(
            *found,
            hinge::cost_plane::complex::ConsistencyReport { area: found.area, ..known.clone() }
        );
        let loaded = file.load().unwrap();
        assert_eq!(loaded.vertices, memory.complex.vertices);
        assert_eq!((&loaded.parent, &loaded.entry), (&memory.complex.parent, &memory.complex.entry));
        assert_eq!((&loaded.first, &loaded.layers), (&memory.complex.first, &memory.complex.layers));
        assert_eq!((&loaded.events, &loaded.beyond), (&memory.complex.events, &memory.complex.beyond));
        assert_eq!((&loaded.corner, &loaded.start), (&memory.complex.corner, &memory.complex.start));
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1, "no temporary file stays");
    }
}

/// Every damaged byte and every length is noticed: an error, never a panic, a large allocation or a wrong
/// plane.
#[test]
fn damaged_planes_are_refused() {
    let folder = Folder::new("damaged");
    let (target, broken) = (folder.0.join("plane"), folder.0.join("broken"));
    let data = gaussian(8, 2);
    plane_to_file(&data.view(), &data.y, BIAS, &options([2.0; 2]), (&target, b"kept"), &Silent).unwrap();
    let bytes = std::fs::read(&target).unwrap();
    let read = |bytes: &[u8]| {
        std::fs::write(&broken, bytes).unwrap();
        PlaneFile::open(&broken).and_then(|file| file.load())
    };
    assert!(read(&bytes).is_ok());
    for at in (0..bytes.len()).step_by(7) {
        let mut bad = bytes.clone();
        bad[at] ^= 0x5A;
        let message = read(&bad).unwrap_err().to_string();
        assert!(message.contains("is not an intact cost-plane file"), "byte {at}: {message}");
        assert!(read(&bytes[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn a_plane_that_cannot_be_written_leaves_no_file() {
    let folder = Folder::new("stopped");
    let data = gaussian(30, 4);
    let nowhere = folder.0.join("missing").join("plane");
    let error =
        plane_to_file(&data.view(), &data.y, BIAS, &options([1.0; 2]), (&nowhere, b""), &Silent).unwrap_err();
    assert!(matches!(error, hinge::Error::Io { .. }), "{error}");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
}

/// The estimate of the number of facets holds what its documentation says.
#[test]
fn estimates_are_within_a_factor_of_four() {
    for (n, d, size) in [(30, 4, 10.0), (50, 5, 10.0), (50, 5, 0.1), (40, 12, 1.0), (60, 3, 5.0)] {
        let data = gaussian(n, d);
        let known = explore(&data, &data.view(), [size; 2]).complex.len() as f64;
        let found = estimate(&data.view(), &data.y, BIAS, [size; 2], 0, &Silent).unwrap();
        assert!((0.25..4.0).contains(&(found / known)), "{n} x {d}, box {size}: {found} for {known}");
    }
    let data = gaussian(10, 2);
    let refused =
        estimate(&data.view(), &data.y, BIAS, [f64::INFINITY, 1.0], 0, &Silent).unwrap_err().to_string();
    assert!(refused.starts_with("box must be two finite numbers"), "{refused}");
}

/// Gaussian rows with two columns more that are combinations of others but for `noise`: rows nearly depend on
/// each other, whatever the set.
fn nearly_dependent(n: usize, d: usize, noise: f64) -> Data {
    let (plain, errors) = (gaussian(n, d), gaussian(n, 2 * d));
    let combine = |(row, error): (&Vec<f64>, &Vec<f64>)| {
        let more = [row[0] + row[1] + noise * error[2], row[2] - row[0] + noise * error[3]];
        row.iter().copied().chain(more).collect()
    };
    Data::new(plain.rows.iter().zip(&errors.rows).map(combine).collect(), plain.y, vec![1.0; n])
}

/// Two lines, one from the origin, one across the plane, end in an optimum, and so does a start from a fit;
/// with `noise` between 1e-3 and 1e-5 the second line used to run in a circle.
#[test]
fn walks_end_where_rows_nearly_depend_on_each_other() {
    for noise in [1e-3, 1e-4, 1e-5, 1e-6, 1e-8] {
        for (n, d) in [(60, 4), (200, 6)] {
            let data = nearly_dependent(n, d, noise);
            let (view, goal) = (data.view(), [0.01, 10.0]);
            let perturbation = hinge::cost_plane::perturbation(n, RAY_SCALE, 0);
            let path = PathData { rows: &view, y: &data.y, bias: BIAS, perturbation: &perturbation };
            let mut sides = vec![Side::Left; n];
            for (from, to) in [([0.0; 2], [10.0, 0.01]), ([10.0, 0.01], goal)] {
                for step in ray(&path, &sides, from, to, &Silent).unwrap() {
                    let (before, after) = step.event.sides();
                    assert_eq!(sides[step.event.row() as usize], before);
                    sides[step.event.row() as usize] = after;
                }
            }
            for sides in [sides, sides_at(&path, goal, &Silent).unwrap()] {
                let found = answer(&path, &sides, goal, &Silent).unwrap().certificate;
                assert!(found.relative_gap() < 1e-9, "{n} rows, noise {noise}: {found:?}");
            }
            let facets = estimate(&view, &data.y, BIAS, [10.0; 2], 0, &Silent).unwrap();
            assert!(facets > n as f64, "{facets}");
        }
    }
}

#[test]
fn bad_options_are_refused_by_name() {
    let data = gaussian(10, 2);
    let view = data.view();
    let message = |options: &ExplorationOptions, y: &[f64]| {
        plane(&view, y, BIAS, options, &Silent).unwrap_err().to_string()
    };
    assert!(message(&options([0.0, 1.0]), &data.y).starts_with("box must be"));
    assert!(message(&options([f64::NAN, 1.0]), &data.y).starts_with("box must be"));
    assert!(
        message(&ExplorationOptions { start: Some([2.0, 0.5]), ..options([1.0; 2]) }, &data.y)
            .starts_with("start must be")
    );
    assert!(
        message(&ExplorationOptions { max_facets: 0, ..options([1.0; 2]) }, &data.y)
            .starts_with("max_regions must be")
    );
    assert!(message(&options([1.0; 2]), &[1.0; 10]).contains("one class only"));
}
