//! How far an epoch of coordinate descent is from what the machine can do.
//!
//! Prints one line of CSV per matrix, as it comes, with one number per row where its values allow it, and
//! presolved; one thread, squared hinge, C = 1, no shrinking. Times are the best of several repetitions, in
//! nanoseconds per stored entry:
//!
//! * `gather`: adding up the weights of all entries in storage order: the limit of random access to the
//!   weights, with the processor free to overlap every access with every other;
//! * `scatter`: changing the weights of a row just read, which are in cache;
//! * `limit`: `gather` and, for the share of rows whose variable moves, `scatter`: an epoch without its
//!   dependences, without its random order of rows and without its arithmetic;
//! * `epoch`: the real one.
//!
//! `bytes` are those streamed per entry (row state included), `lines` the cache lines of weights that a row
//! touches, per entry, `misses` those of them that are not in a second-level cache of 2 MiB with 16 ways,
//! counted by simulation in the epoch's order.
//!
//! The folder named by the environment variable `HINGE_LIMITS` holds matrices as raw arrays
//! (`benches/compare/limits.py` writes them); without it, one made-up matrix is measured.
#![allow(clippy::print_stdout)]

use std::hint::black_box;
use std::path::Path;
use std::time::Instant;

use hinge::fit::dual::box_cd::BoxCd;
use hinge::fit::dual::{Epoch, Fate, Method, Visit, active};
use hinge::fit::{Intercept, Problem, Silent, dual};
use hinge::loss::{Loss, SquaredHinge};
use hinge::matrix::Rows;
use hinge::matrix::csr::CsrView;
use hinge::matrix::layout::Layout;
use hinge::presolve::{Mode, pack};

const REPEAT: usize = 5;
/// Epochs before the first that is timed: later ones move fewer variables, as most of a fit does.
const WARM_UP: usize = 3;
const LINE_WEIGHTS: usize = 8;

struct Matrix {
    name: String,
    indptr: Vec<i64>,
    indices: Vec<i32>,
    values: Vec<f32>,
    n_cols: usize,
    y: Vec<f64>,
}

fn main() {
    println!("set,columns,rows,entries,width,bytes,lines,misses,gather,scatter,moved,limit,epoch,ratio");
    let matrices = match std::env::var("HINGE_LIMITS") {
        Ok(folder) => read_all(Path::new(&folder)),
        Err(_) => vec![zipf(100_000, 80, 50_000)],
    };
    for matrix in &matrices {
        measure_both(matrix);
    }
}

fn measure_both(matrix: &Matrix) {
    let Matrix { name, indptr, indices, values, n_cols, y } = matrix;
    let (rows, structure) = CsrView::new(indptr, indices, values, *n_cols).expect("a sound matrix");
    let rows = Layout::from(rows);
    measure(name, "as it comes", &rows.into(), y, size_of::<f32>() + size_of::<i32>());
    if let Some(scaled) = rows.scaled() {
        measure(name, "a number per row", &Layout::Scaled(scaled.view()).into(), y, size_of::<i32>());
    }
    if let Some(packed) = pack(&rows, &structure, Mode::On, &|| false).expect("nothing cancels") {
        measure(name, "presolved", &packed.view(), y, size_of::<f32>() + size_of::<i32>());
    }
}

/// A step that tells what it did to its row.
struct Counted<M> {
    method: M,
    moved: usize,
}

impl<M: Method> Method for Counted<M> {
    type Loss = M::Loss;
    fn loss(&self) -> M::Loss {
        self.method.loss()
    }
    fn start_at(&mut self, alpha: &[f64]) {
        self.method.start_at(alpha);
    }
    fn alpha(&self, i: usize) -> f64 {
        self.method.alpha(i)
    }
    fn active(&mut self) -> &mut active::ActiveSet {
        self.method.active()
    }
    #[inline(always)]
    fn step<R: Rows>(&mut self, rows: &R, i: usize, visit: &mut Visit<'_>, epoch: &mut Epoch) -> Fate {
        let before = self.method.alpha(i);
        self.method.step(rows, i, visit, epoch);
        self.moved += usize::from(self.method.alpha(i) != before) * rows.row_len(i);
        Fate::Stays
    }
    fn prefetch(&self, i: usize) {
        self.method.prefetch(i);
    }
}

fn measure(name: &str, columns: &str, rows: &hinge::matrix::Matrix<'_>, y: &[f64], entry_bytes: usize) {
    let (n, d) = (rows.n_rows(), rows.n_cols());
    let nnz: usize = (0..n).map(|i| rows.row_len(i)).sum();
    let cost = vec![1.0; n];
    let problem = Problem { rows, ids: None, y, cost: &cost, intercept: Intercept::None };
    let design = problem.design(0.0);
    let mut method = Counted { method: BoxCd::new(&problem, SquaredHinge), moved: 0 };
    debug_assert!(method.loss().value(2.0) == 0.0);
    let mut w = vec![0.0; d];
    let mut random = active::random(0, 0);
    let mut epoch = || {
        let (start, before) = (Instant::now(), method.moved);
        let mut visit = Visit { w: &mut w, offset: 0.0, stretch: 1.0 };
        dual::epoch(&mut method, &design, &mut visit, &mut random, &Silent).expect("nothing cancels");
        (start.elapsed().as_secs_f64(), (method.moved - before) as f64)
    };
    for _ in 0..WARM_UP {
        epoch();
    }
    let timed: Vec<(f64, f64)> = (0..REPEAT).map(|_| epoch()).collect();
    let per_entry = |seconds: f64| seconds * 1e9 / nnz as f64;
    let epoch_time = per_entry(timed.iter().map(|t| t.0).fold(f64::INFINITY, f64::min));
    let moved = timed.iter().map(|t| t.1).sum::<f64>() / (REPEAT * nnz) as f64;
    let gather = per_entry(best(|| (0..n).map(|i| rows.dot(i, &w)).sum::<f64>()));
    let both = per_entry(best(|| {
        (0..n).for_each(|i| {
            black_box(rows.dot(i, &w));
            rows.add_scaled(i, 0.0, &mut w);
        });
        w[0]
    }));
    let scatter = (both - gather).max(0.0);
    let limit = gather + moved * scatter;
    let bytes = entry_bytes as f64 + (n * ROW_STATE) as f64 / nnz as f64;
    let (lines, misses) = lines(rows, &mut random);
    println!(
        "{name},{columns},{n},{nnz},{d},{bytes:.2},{:.3},{:.3},{gather:.3},{scatter:.3},\
         {moved:.3},{limit:.3},{epoch_time:.3},{:.2}",
        lines / nnz as f64,
        misses / nnz as f64,
        epoch_time / limit
    );
}

/// Bytes of a row's pointer, position in the order and state in the solver.
const ROW_STATE: usize = 8 + 4 + 32;

fn best(mut run: impl FnMut() -> f64) -> f64 {
    let timed = (0..REPEAT).map(|_| {
        let start = Instant::now();
        black_box(run());
        start.elapsed().as_secs_f64()
    });
    timed.fold(f64::INFINITY, f64::min)
}

/// Cache lines of weights touched by the rows, and misses in a second-level cache, over one epoch in random
/// order.
fn lines<R: Rows>(rows: &R, random: &mut active::Random) -> (f64, f64) {
    const SETS: usize = 2048;
    const WAYS: usize = 16;
    let mut cache = vec![[usize::MAX; WAYS]; SETS];
    let mut order: Vec<usize> = (0..rows.n_rows()).collect();
    for s in (1..order.len()).rev() {
        order.swap(s, active::below(random, s + 1));
    }
    let (mut touched, mut misses) = (0usize, 0usize);
    let mut of_row = Vec::new();
    for i in order {
        of_row.clear();
        rows.for_each(i, |j, _| of_row.push(j / LINE_WEIGHTS));
        of_row.sort_unstable();
        of_row.dedup();
        touched += of_row.len();
        for line in &of_row {
            let set = &mut cache[line % SETS];
            let at = set.iter().position(|x| x == line).unwrap_or_else(|| {
                misses += 1;
                WAYS - 1
            });
            set[..=at].rotate_right(1);
            set[0] = *line;
        }
    }
    (touched as f64, misses as f64)
}

fn read_all(folder: &Path) -> Vec<Matrix> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("HINGE_LIMITS names a folder")
        .filter_map(|entry| {
            Some(entry.ok()?.path().file_name()?.to_str()?.strip_suffix(".indptr")?.to_owned())
        })
        .collect();
    names.sort();
    names.into_iter().map(|name| read_matrix(folder, name)).collect()
}

fn read_matrix(folder: &Path, name: String) -> Matrix {
    let bytes = |kind: &str| std::fs::read(folder.join(format!("{name}.{kind}"))).expect("a readable array");
    let indptr = bytes("indptr").as_chunks().0.iter().map(|b| i64::from(i32::from_le_bytes(*b))).collect();
    let indices: Vec<i32> = bytes("indices").as_chunks().0.iter().map(|b| i32::from_le_bytes(*b)).collect();
    let values = bytes("values").as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    let y = bytes("y").as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect();
    let n_cols = indices.iter().max().map_or(0, |&j| j as usize + 1);
    Matrix { name, indptr, indices, values, n_cols, y }
}

/// Documents of `len` words over a vocabulary with falling frequencies.
fn zipf(n: usize, len: usize, n_cols: usize) -> Matrix {
    let mut random = active::random(1, 0);
    let mut uniform = || active::below(&mut random, 1 << 30) as f64 / f64::from(1 << 30);
    let (mut indptr, mut indices, mut y) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..n {
        let mut row: Vec<i32> = (0..len).map(|_| (n_cols as f64).powf(uniform()) as i32).collect();
        row.sort_unstable();
        row.dedup();
        let score: f64 = row.iter().map(|&j| (f64::from(j) * 1.7).sin()).sum();
        y.push(if score > 0.0 { 1.0 } else { -1.0 });
        indices.extend(row);
        indptr.push(indices.len() as i64);
    }
    let values = vec![0.125; indices.len()];
    Matrix { name: "zipf".into(), indptr, indices, values, n_cols, y }
}
