//! Dual descent on the problems of several classes against the rest at once.
//!
//! Such problems have the same rows and costs and differ in their labels. The variables of a row in all of
//! them are visited together: its entries are read once, each brings the weights of all classes with one
//! cache line, and the steps ([`ClassRow`]) fill vector registers. A row is visited as long as one class does
//! not shrink it, and only the variables of such classes move.
//!
//! **The same bits however classes are grouped.** In an epoch all classes follow one random order of all
//! rows; what a class does with a row, when it is checked (`DescentCourse`) and what is counted of it
//! (`Ledger`) depends on nothing of another class. So there may be as many groups as there are threads, and a
//! group of which half the classes are done becomes one of half as many.
//!
//! One thread, C = 1, gap 1e-2, seconds one class after the other and at once: sector (105 classes) squared
//! hinge 0.68 and 0.29, hinge 0.97 and 0.68, logistic 1.23 and 0.39; 20news (20 classes) 0.31 and 0.18, 0.48
//! and 0.39, 0.55 and 0.23. The more rows are shrunk, the less: 20news, hinge, C = 16, 1e-4, 1.94 and 2.09.
//!
//! Tried: a class goes on by itself from where an epoch visits less than 0.3 of its rows, those of the other
//! classes being visited in vain. 20news, hinge, C = 16, 1e-4, 1.95 s instead of 2.15, but sector, hinge,
//! C = 1, 1e-4, 1.7 instead of 1.5, to 1e-2 0.74 instead of 0.58.
//!
//! Memory: for the logistic loss `16 L + 33` bytes a row, else `8 L + 33`, during a check `8 L + 24` more,
//! and `8 L` a column, where the descent of one class takes 44 or 36, 16 and 8; while a group gets narrower,
//! half as much more of the first and the last.

use super::active::{self, ActiveSet, Random};
use super::course::DescentCourse;
use super::ledger::Ledger;
use super::method::{ClassRow, Epoch, Epochs, RowConstants, bounds_after, ones};
use super::{DualLoss, DualOptions, constant_column};
use crate::fit::monitor::{Monitor, Progress};
use crate::fit::params::{Params, SolverKind};
use crate::fit::problem::{Intercept, Problem, Solution, Start};
use crate::fit::routes::CLASS_LANES;
use crate::fit::sweep::{Sweep, sum};
use crate::matrix::Rows;
use crate::matrix::kernels::prefetch;
use crate::matrix::lanes::Block;
use crate::matrix::rows::ROWS_AHEAD;
use crate::matrix::simd::{Wide, WideWork};
use crate::memory::CollectLarge;
use crate::{Result, memory};

/// Visits between two polls of the cancel flag.
const POLL_STEPS: usize = 1024;

/// Solves at most [`CLASS_LANES`] problems of the same rows and costs, each to the relative duality gap
/// `params.tol` and from its own of the `starts`, of which there may be none.
///
/// # Errors
/// [`crate::Error::Cancelled`] and [`crate::Error::Overflow`].
///
/// # Panics
/// For no problem, or too many.
pub fn solve<'a, T: DualLoss>(
    problems: &[Problem<'a>],
    loss: T,
    params: &'a Params,
    options: DualOptions<'a>,
    starts: &[Start],
    monitor: &'a dyn Monitor,
) -> Result<Vec<Solution>> {
    assert!((1..=CLASS_LANES).contains(&problems.len()), "{} problems at once", problems.len());
    match problems.len() {
        ..=2 => in_two_lanes(ClassDescent::new(problems, loss, params, options, starts, monitor)?),
        3..=4 => in_four_lanes(ClassDescent::new(problems, loss, params, options, starts, monitor)?),
        _ => in_eight_lanes(ClassDescent::new(problems, loss, params, options, starts, monitor)?),
    }
}

fn in_eight_lanes<T: DualLoss>(mut descent: ClassDescent<'_, '_, T, CLASS_LANES>) -> Result<Vec<Solution>> {
    match descent.run_to(4)? {
        0 => Ok(descent.answers()),
        _ => in_four_lanes(descent.narrowed()),
    }
}

fn in_four_lanes<T: DualLoss>(mut descent: ClassDescent<'_, '_, T, 4>) -> Result<Vec<Solution>> {
    match descent.run_to(2)? {
        0 => Ok(descent.answers()),
        _ => in_two_lanes(descent.narrowed()),
    }
}

fn in_two_lanes<T: DualLoss>(mut descent: ClassDescent<'_, '_, T, 2>) -> Result<Vec<Solution>> {
    descent.run_to(0)?;
    Ok(descent.answers())
}

/// A class that goes on.
struct Open<'a> {
    /// Its place among the problems.
    class: usize,
    ledger: Ledger<'a>,
    course: DescentCourse<'a>,
    /// Readings of the data.
    passes: f64,
}

/// A running descent.
struct ClassDescent<'a, 'p, T: DualLoss, const L: usize> {
    problems: &'p [Problem<'a>],
    loss: T,
    sweep: Sweep<'a, L>,
    is_proved: bool,
    monitor: &'a dyn Monitor,
    random: Random,
    /// Classes in their lanes; none where a class is done.
    lanes: Vec<Option<Open<'a>>>,
    /// Answers of those that are.
    done: Vec<Option<Solution>>,
    rows: Vec<RowState<T::Row<L>>>,
    /// Classes that do not shrink the row, a bit for each lane.
    active: Vec<u8>,
    /// Gradients beyond which rows are shrunk.
    bounds: [[f64; L]; 2],
    order: ActiveSet,
    w: Block<L>,
}

/// What is known of a row.
#[derive(Clone)]
struct RowState<R> {
    variables: R,
    /// The squared norm is NaN until the first visit, which has the row in cache.
    constants: RowConstants,
    /// The classes whose label of the row is +1, a bit for each.
    positive: u8,
}

impl<R> RowState<R> {
    /// Labels in {-1, +1}.
    #[inline(always)]
    fn labels<const L: usize>(&self) -> [f64; L] {
        ones(self.positive).map(|one: f64| 2.0 * one - 1.0)
    }
}

impl<'a, 'p, T: DualLoss, const L: usize> ClassDescent<'a, 'p, T, L> {
    fn new(
        problems: &'p [Problem<'a>],
        loss: T,
        params: &'a Params,
        options: DualOptions<'a>,
        starts: &[Start],
        monitor: &'a dyn Monitor,
    ) -> Result<Self> {
        let first = &problems[0];
        let bias = constant_column(&first.design(0.0), first.cost, first.intercept);
        let rows = first_rows(problems, loss, starts);
        let mut descent = Self {
            problems,
            loss,
            sweep: Sweep::new(first.design(bias), monitor),
            is_proved: options.is_proved,
            monitor,
            random: active::random(params.seed, 0),
            lanes: Vec::with_capacity(L),
            done: problems.iter().map(|_| None).collect(),
            active: memory::filled(u8::MAX, rows.len()),
            bounds: [[f64::INFINITY; L], [f64::NEG_INFINITY; L]],
            order: ActiveSet::all(rows.len()),
            rows,
            w: Block::zeros(first.rows.n_cols() + usize::from(bias != 0.0)),
        };
        let passes = descent.begin_weights(starts);
        for (class, problem) in problems.iter().enumerate() {
            let start = starts.get(class).filter(|_| problem.intercept == Intercept::Free);
            let offset = start.and_then(|start| start.w.as_ref()).map_or(0.0, |(_, b)| *b);
            let mut ledger = Ledger::new(problem, bias, offset);
            if starts.get(class).is_some_and(|start| start.consistent_weights().is_some()) {
                ledger.drift = None;
            }
            let estimate = ledger.begin(loss, &descent.w.lane(class), &descent.alpha(class));
            let course = DescentCourse::new(params, options, estimate);
            descent.lanes.push(Some(Open { class, ledger, course, passes: passes[class] }));
        }
        monitor.poll()?;
        Ok(descent)
    }

    /// `sum_i y_i a_i x_i` of every class, read off its start where that is consistent; how often each reads
    /// the data for it.
    fn begin_weights(&mut self, starts: &[Start]) -> [f64; L] {
        let mut signed = Block::<L>::zeros(self.rows.len());
        for (signed, row) in signed.iter_mut().zip(&self.rows) {
            *signed = row.labels();
            signed.iter_mut().zip(row.variables.alpha()).for_each(|(signed, a)| *signed *= a);
        }
        let known = |l: usize| starts.get(l).and_then(Start::consistent_weights);
        let is_read: [bool; L] = std::array::from_fn(|l| {
            l < self.problems.len() && known(l).is_none() && signed.iter().any(|signed| signed[l] != 0.0)
        });
        if is_read.contains(&true) {
            self.sweep.weighted_sums(&signed, &mut self.w);
        }
        let n_cols = self.problems[0].rows.n_cols();
        for l in 0..starts.len() {
            let Some(w) = known(l) else { continue };
            self.w.iter_mut().zip(w).for_each(|(here, w)| here[l] = *w);
            for last in &mut self.w[n_cols..] {
                last[l] = self.sweep.design.bias * sum(signed.len(), |i| [signed[i][l]])[0];
            }
        }
        is_read.map(|is_read| f64::from(u8::from(is_read)))
    }

    fn alpha(&self, l: usize) -> Vec<f64> {
        self.rows.iter().map(|row| row.variables.alpha()[l]).collect_large()
    }

    /// Classes that go on, and their lanes.
    fn open(&self) -> impl Iterator<Item = (usize, &Open<'a>)> {
        self.lanes.iter().enumerate().filter_map(|(l, lane)| Some((l, lane.as_ref()?)))
    }

    /// Visits rows until at most so many classes go on; returns how many.
    fn run_to(&mut self, most: usize) -> Result<usize> {
        while self.open().count() > most {
            self.epoch()?;
            if self.open().any(|(_, lane)| lane.course.is_due()) {
                self.check()?;
            }
        }
        Ok(self.open().count())
    }

    fn answers(self) -> Vec<Solution> {
        self.done.into_iter().flatten().collect()
    }

    /// The same in `N` lanes, where no more classes go on.
    fn narrowed<const N: usize>(self) -> ClassDescent<'a, 'p, T, N> {
        let from: Vec<usize> = self.open().map(|(l, _)| l).collect();
        let from: [usize; N] = std::array::from_fn(|l| from.get(l).copied().unwrap_or(0));
        let bits = |bits: u8| (0..N).map(|l| (bits >> from[l] & 1) << l).sum::<u8>();
        let row = |row: &RowState<T::Row<L>>| RowState {
            variables: row.variables.lanes(from),
            constants: row.constants,
            positive: bits(row.positive),
        };
        let mut w = Block::zeros(self.w.len());
        w.iter_mut().zip(self.w.iter()).for_each(|(to, w)| *to = from.map(|l| w[l]));
        ClassDescent {
            rows: self.rows.iter().map(row).collect_large(),
            active: self.active.iter().map(|active| bits(*active)).collect_large(),
            bounds: self.bounds.map(|bounds| from.map(|l| bounds[l])),
            sweep: Sweep::new(self.sweep.design, self.monitor),
            w,
            problems: self.problems,
            loss: self.loss,
            is_proved: self.is_proved,
            monitor: self.monitor,
            random: self.random,
            lanes: self.lanes.into_iter().filter(Option::is_some).collect(),
            done: self.done,
            order: self.order,
        }
    }

    /// Visits every row that not all classes shrink once.
    fn epoch(&mut self) -> Result<()> {
        self.order.shuffle(&mut self.random);
        let (mut offset, mut open) = ([0.0; L], 0);
        for (l, lane) in self.open() {
            offset[l] = lane.ledger.offset;
            open |= 1 << l;
        }
        let Self { loss, sweep, monitor, rows, active, bounds, order, w, .. } = self;
        let mut visited = [0; L];
        let mut list: Vec<u32> = Vec::with_capacity(order.len());
        for &i in order.rows() {
            let active = active[i as usize] & open;
            (0..L).for_each(|l| visited[l] += usize::from(active >> l & 1));
            if active != 0 {
                list.push(i);
            }
        }
        let visits =
            Visits { loss: *loss, rows, active, open, list: &list, w, offset, bounds, monitor: *monitor };
        let epochs = sweep.design.visit(Wide(visits))?;
        let n_rows = self.rows.len();
        for (l, lane) in self.lanes.iter_mut().enumerate() {
            let Some(lane) = lane else { continue };
            let (largest, smallest) = (epochs.largest[l], epochs.smallest[l]);
            let [most, least] = bounds_after(largest, smallest);
            (self.bounds[0][l], self.bounds[1][l]) = (most, least);
            let epoch = Epoch { visited: visited[l], gain: epochs.gain[l], largest, smallest };
            lane.passes += visited[l] as f64 / n_rows.max(1) as f64;
            lane.ledger.after_epoch(visited[l], self.w.last().map_or(0.0, |last| last[l]));
            lane.course.record(&epoch, n_rows);
        }
        Ok(())
    }

    /// The gaps of the classes that are due, and their answers where they end; brings shrunk rows back.
    fn check(&mut self) -> Result<()> {
        let mut z = Block::zeros(self.rows.len());
        self.sweep.decisions(&self.w, &mut z);
        self.monitor.poll()?;
        for l in 0..self.lanes.len() {
            if let Some(lane) = self.lanes[l].take_if(|lane| lane.course.is_due()) {
                self.lanes[l] = self.check_lane(l, lane, &z)?;
            }
        }
        Ok(())
    }

    /// That of one class with these decision values; none is left where it ends.
    fn check_lane(&mut self, l: usize, mut lane: Open<'a>, z: &[[f64; L]]) -> Result<Option<Open<'a>>> {
        lane.passes += 1.0;
        let (y, offset) = (self.problems[lane.class].y, lane.ledger.offset);
        let margins: Vec<f64> = z.iter().zip(y).map(|(z, y)| y * z[l]).collect_large();
        let shifted: Vec<f64> = margins.iter().zip(y).map(|(m, y)| m + y * offset).collect_large();
        let (w, alpha) = (self.w.lane(l), self.alpha(l));
        let check = lane.ledger.check(self.loss, &w, margins, &alpha)?;
        let certificate = check.certificate;
        let (iteration, accuracy) = (lane.course.iterations(), certificate.relative_gap());
        self.monitor.observe(&Progress { solver: "dual_cd", iteration, accuracy, search: None });
        let Some(status) = lane.course.judge(&certificate) else {
            for (active, (row, margin)) in self.active.iter_mut().zip(self.rows.iter().zip(&shifted)) {
                let is_in = row.variables.is_visited(self.loss, row.constants.cost, l, *margin, &self.bounds);
                *active = *active & !(1 << l) | u8::from(is_in) << l;
            }
            return Ok(Some(lane));
        };
        let b = check.intercept;
        let evidence = if self.is_proved { lane.ledger.evidence(check, &w, &alpha) } else { None };
        let (w, intercept, is_consistent) = lane.ledger.answer(w, b);
        let (n_iter, passes, solver) = (iteration, lane.passes, SolverKind::DualCd);
        self.done[lane.class] = Some(Solution {
            w,
            intercept,
            alpha,
            certificate,
            status,
            n_iter,
            passes,
            solver,
            is_consistent,
            evidence,
        });
        Ok(None)
    }
}

/// The rows at the beginning.
fn first_rows<T: DualLoss, const L: usize>(
    problems: &[Problem<'_>],
    loss: T,
    starts: &[Start],
) -> Vec<RowState<T::Row<L>>> {
    // Costs are mostly the same from one row to the next.
    let mut last: Option<RowState<T::Row<L>>> = None;
    let row = |(i, &cost): (usize, &f64)| {
        let new = || {
            let constants = RowConstants { cost, squared_norm: f64::NAN };
            RowState { variables: T::Row::first(loss, cost), constants, positive: 0 }
        };
        let same = last.take().filter(|last| last.constants.cost == cost).unwrap_or_else(new);
        last = Some(same.clone());
        let bit = |(l, problem): (usize, &Problem<'_>)| u8::from(problem.y[i] > 0.0) << l;
        RowState { positive: problems.iter().enumerate().map(bit).sum(), ..same }
    };
    let mut rows: Vec<_> = problems[0].cost.iter().enumerate().map(row).collect_large();
    for (l, alpha) in starts.iter().enumerate().filter_map(|(l, start)| Some((l, start.alpha.as_ref()?))) {
        for (row, alpha) in rows.iter_mut().zip(alpha) {
            row.variables.start_at(loss, row.constants.cost, l, *alpha);
        }
    }
    rows
}

/// The visits of an epoch.
struct Visits<'s, T, R, const L: usize> {
    loss: T,
    rows: &'s mut [RowState<R>],
    active: &'s mut [u8],
    /// Classes that are not done, a bit for each.
    open: u8,
    list: &'s [u32],
    w: &'s mut [[f64; L]],
    /// Added to every decision value of a class.
    offset: [f64; L],
    bounds: &'s [[f64; L]; 2],
    monitor: &'s dyn Monitor,
}

impl<T: DualLoss, R: ClassRow<T, L>, const L: usize> WideWork for Visits<'_, T, R, L> {
    type Output = Result<Epochs<L>>;
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run<M: Rows>(self, data: &M) -> Result<Epochs<L>> {
        let Self { loss, rows, active, open, list, w, offset, bounds, monitor } = self;
        let mut epochs = Epochs::default();
        for (s, &i) in list.iter().enumerate() {
            if s % POLL_STEPS == 0 {
                monitor.poll()?;
            }
            if let Some(next) = list.get(s + ROWS_AHEAD) {
                data.prefetch(*next as usize);
            }
            if let Some(next) = list.get(s + 2 * ROWS_AHEAD) {
                prefetch(rows, *next as usize, size_of::<RowState<R>>());
                data.prefetch_header(*next as usize);
            }
            let i = i as usize;
            let row = &mut rows[i];
            if row.constants.squared_norm.is_nan() {
                row.constants.squared_norm = data.squared_norm(i);
            }
            let mut scale = row.labels();
            let mut margin = data.dot_lanes(i, w);
            for l in 0..L {
                margin[l] = scale[l] * (margin[l] + offset[l]);
            }
            let mut here = active[i] & open;
            let change = row.variables.step(loss, row.constants, &margin, bounds, &mut here, &mut epochs);
            active[i] &= here | !open;
            if change != [0.0; L] {
                for l in 0..L {
                    scale[l] *= change[l];
                }
                data.add_lanes(i, &scale, w);
            }
        }
        Ok(epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::certificate::certify_classes;
    use crate::fit::dual;
    use crate::fit::problem::{Intercept, Start, Status};
    use crate::fit::waves::Waves;
    use crate::fit::{Silent, monitor::Monitor};
    use crate::loss::{Hinge, Logistic, LossKind, ModifiedHuber, SquaredHinge};
    use crate::{Error, parallel};
    use proptest::prelude::*;

    const OPTIONS: DualOptions<'static> =
        DualOptions { order: dual::EpochOrder::Shrinking, is_slow: None, most_growth: None, is_proved: true };

    /// Labels of `k` classes against the rest.
    fn labels(n: usize, k: usize) -> Vec<Vec<f64>> {
        let class = |i: usize| if i < k { i } else { i * i * 7 % 11 % k };
        (0..k).map(|l| (0..n).map(|i| if class(i) == l { 1.0 } else { -1.0 }).collect()).collect()
    }

    fn problems<'a>(like: &Problem<'a>, labels: &'a [Vec<f64>]) -> Vec<Problem<'a>> {
        labels.iter().map(|y| Problem { y, ..*like }).collect()
    }

    fn assert_same(one: &Solution, other: &Solution) {
        assert_eq!((&one.w, &one.alpha), (&other.w, &other.alpha));
        assert_eq!((one.intercept, one.n_iter), (other.intercept, other.n_iter));
        assert_eq!((one.passes, one.is_consistent), (other.passes, other.is_consistent));
    }

    /// Every class is as good as by itself, as a proof says, and has the same bits in groups of any size.
    fn check<T: DualLoss>(like: &Problem<'_>, loss: (T, LossKind), k: usize, params: &Params) {
        let labels = labels(like.y.len(), k);
        let problems = problems(like, &labels);
        let mut found = solve(&problems, loss.0, params, OPTIONS, &[], &Silent).unwrap();
        for (l, solution) in found.iter().enumerate() {
            let alone = solve(&problems[l..=l], loss.0, params, OPTIONS, &[], &Silent).unwrap();
            assert_same(solution, &alone[0]);
        }
        let of_four = solve(&problems[..k.min(4)], loss.0, params, OPTIONS, &[], &Silent).unwrap();
        found.iter().zip(&of_four).for_each(|(a, b)| assert_same(a, b));
        check_starts(&problems, loss.0, &found, params);
        certify_classes(&problems, loss.1, &mut found, params.tol, &Silent).unwrap();
        for (problem, solution) in problems.iter().zip(&found) {
            let method = loss.0.method(problem.y, problem.cost);
            let twin = dual::solve(problem, method, params, OPTIONS, &Start::default(), &Silent).unwrap();
            let (one, other) = (solution.certificate, twin.certificate);
            assert_eq!(solution.status, Status::Converged);
            assert!(one.relative_gap() <= 1.01 * params.tol, "{one:?}");
            assert!(
                (one.primal - other.primal).abs() <= 2.0 * params.tol * other.primal,
                "{one:?} {other:?}"
            );
        }
    }

    /// From starts of every kind, too: none, one whose weights are those of its dual variables, and one whose
    /// weights are not. A start at the end of a fit is an end itself.
    fn check_starts<T: DualLoss>(problems: &[Problem<'_>], loss: T, ends: &[Solution], params: &Params) {
        let early = Params { tol: 1e-1, ..*params };
        let early = solve(problems, loss, &early, OPTIONS, &[], &Silent).unwrap();
        let start = |(l, solution): (usize, &Solution)| match l % 3 {
            0 => Start::default(),
            kind => Start {
                w: Some((solution.w.clone(), solution.intercept)),
                alpha: Some(solution.alpha.clone()),
                is_consistent: solution.is_consistent && kind == 1,
            },
        };
        let starts: Vec<Start> = early.iter().enumerate().map(start).collect();
        let found = solve(problems, loss, params, OPTIONS, &starts, &Silent).unwrap();
        for (l, solution) in found.iter().enumerate() {
            let alone = solve(&problems[l..=l], loss, params, OPTIONS, &starts[l..=l], &Silent).unwrap();
            assert_same(solution, &alone[0]);
            let (value, expected) = (solution.certificate.primal, ends[l].certificate.primal);
            assert_eq!(solution.status, Status::Converged);
            assert!((value - expected).abs() <= 2.0 * params.tol * expected, "{value} {expected}");
        }
        assert_same(&found[0], &ends[0]);
        let again: Vec<Start> = ends.iter().map(|solution| start((1, solution))).collect();
        let again = solve(problems, loss, params, OPTIONS, &again, &Silent).unwrap();
        assert!(again.iter().zip(ends).all(|(again, end)| again.n_iter <= end.n_iter));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn classes_at_once_are_classes_by_themselves(
            n in 12..90usize,
            d in 1..6usize,
            k in 2..9usize,
            log_scale in -3.0..2.0f64,
            intercept in 0..3usize,
            kind in 0..4usize,
            seed in 0..99usize,
        ) {
            let waves = Waves::new(n, d, log_scale.exp(), seed);
            let rows = waves.rows();
            let like = waves.problem(&rows, intercept);
            let params = Params { tol: 1e-6, max_iter: 1_000_000, seed: seed as u64, ..Params::default() };
            match kind {
                0 => check(&like, (Hinge, LossKind::Hinge), k, &params),
                1 => check(&like, (SquaredHinge, LossKind::SquaredHinge), k, &params),
                2 => check(&like, (ModifiedHuber, LossKind::ModifiedHuber), k, &params),
                _ => check(&like, (Logistic, LossKind::Logistic), k, &params),
            }
        }
    }

    /// Rows without entries, repeated rows, and a class that has nearly all of them.
    #[test]
    fn strange_rows_are_classes_by_themselves_too() {
        let (n, d) = (64, 3);
        let values: Vec<f64> =
            (0..n * d).map(|k| if k / d % 5 == 0 { 0.0 } else { ((k % 24) as f64).sin() }).collect();
        let rows =
            crate::matrix::Matrix::from(crate::matrix::dense::DenseView::new(&values, n, d).unwrap().0);
        let (y, cost) = (vec![1.0; n], vec![0.3; n]);
        let params = Params { tol: 1e-5, max_iter: 1_000_000, ..Params::default() };
        for intercept in [Intercept::None, Intercept::Free, Intercept::Penalised(2.0)] {
            let like = Problem { rows: &rows, ids: None, y: &y, cost: &cost, intercept };
            check(&like, (Hinge, LossKind::Hinge), 7, &params);
            check(&like, (Logistic, LossKind::Logistic), 8, &params);
        }
    }

    #[test]
    fn classes_end_as_they_may() {
        let waves = Waves::new(400, 3, 1.0, 5);
        let rows = waves.rows();
        let like = waves.problem(&rows, 0);
        let labels = labels(400, 6);
        let problems = problems(&like, &labels);
        let one = Params { tol: 1e-9, max_iter: 1, ..Params::default() };
        let found = solve(&problems, SquaredHinge, &one, OPTIONS, &[], &Silent).unwrap();
        assert!(found.iter().all(|s| s.status == Status::MaxIter && s.n_iter == 1));
        let is_slow = |_: f64, _: f64| true;
        let options = DualOptions { is_slow: Some(&is_slow), ..OPTIONS };
        let many = Params { tol: 1e-12, max_iter: 1000, ..Params::default() };
        let found = solve(&problems, Hinge, &many, options, &[], &Silent).unwrap();
        assert!(found.iter().all(|s| s.status == Status::Stalled), "{found:?}");
    }

    struct Cancelled;

    impl Monitor for Cancelled {
        fn cancelled(&self) -> bool {
            true
        }
    }

    #[test]
    fn is_cancelled_and_has_the_same_bits_on_any_number_of_threads() {
        let waves = Waves::new(5000, 4, 1.0, 1);
        let rows = waves.rows();
        let like = waves.problem(&rows, 1);
        let labels = labels(5000, 3);
        let problems = problems(&like, &labels);
        let params = Params { tol: 1e-4, ..Params::default() };
        let stopped = solve(&problems, Hinge, &params, OPTIONS, &[], &Cancelled);
        assert!(matches!(stopped, Err(Error::Cancelled)));
        let fit = || solve(&problems, Logistic, &params, OPTIONS, &[], &Silent).unwrap();
        let (one, two) = (parallel::alone(fit), fit());
        assert!(one.iter().zip(&two).all(|(a, b)| a.w == b.w && a.alpha == b.alpha));
    }
}
