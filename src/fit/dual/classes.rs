//! Dual descent on the problems of several classes against the rest at once.
//!
//! Such problems have the same rows and costs and differ in their labels. The variables of a row in all of
//! them are visited together: its entries are read once, and bring with a cache line each the weights of all
//! classes, and the steps ([`ClassRow`]) fill vector registers. A row is visited as long as one class does
//! not shrink it, and moves the variables of those classes alone.
//!
//! **The same bits however classes are grouped.** In an epoch all classes follow one random order of all
//! rows; what a class does with a row, when it is checked ([`Course`]) and what is counted of it ([`Ledger`])
//! depends on nothing of another class. So there may be as many groups as there are threads.
//!
//! Memory: for the logistic loss `16 L + 25` bytes a row, else `8 L + 25`, and `8 L` a column, where the
//! descent of one class takes 40 or 32, and 8.

use super::active::{self, ActiveSet, Random};
use super::course::Course;
use super::ledger::Ledger;
use super::method::{ClassRow, Epoch, Epochs, RowFacts, bounds_after, ones};
use super::{DualLoss, DualOptions, constant_column};

use crate::fit::monitor::{Monitor, Progress};
use crate::fit::params::{Params, SolverKind};
use crate::fit::problem::{Problem, Solution};
use crate::fit::sweep::Sweep;
use crate::matrix::Rows;
use crate::matrix::kernels::prefetch;
use crate::matrix::lanes::Block;
use crate::matrix::rows::ROWS_AHEAD;
use crate::matrix::simd::{Wide, WideWork};
use crate::memory::CollectLarge;
use crate::{Result, memory};

/// Visits between two polls of the cancel flag.
const POLL_STEPS: usize = 1024;

/// Solves problems of the same rows and costs, at most `L`, to the relative duality gap `params.tol` each.
///
/// # Errors
/// [`crate::Error::Cancelled`] and [`crate::Error::Overflow`].
pub fn solve<'a, T: DualLoss, const L: usize>(
    problems: &[Problem<'a>],
    loss: T,
    params: &'a Params,
    options: DualOptions<'a>,
    monitor: &'a dyn Monitor,
) -> Result<Vec<Solution>> {
    let mut descent = ClassDescent::<T, L>::new(problems, loss, monitor)?;
    let mut lanes: Vec<Lane<'_>> = (0..problems.len()).map(|l| descent.lane(l, params, options)).collect();
    let mut random = active::random(params.seed, 0);
    while lanes.iter().any(Lane::is_open) {
        descent.epoch(&mut lanes, &mut random)?;
        if lanes.iter().any(Lane::is_due) {
            descent.check(&mut lanes, options.is_proved)?;
        }
    }
    Ok(lanes.into_iter().filter_map(|lane| lane.solution).collect())
}

/// A class.
struct Lane<'a> {
    ledger: Ledger<'a>,
    course: Course<'a>,
    /// Readings of the data.
    passes: f64,
    /// Once it is done.
    solution: Option<Solution>,
}

impl Lane<'_> {
    fn is_open(&self) -> bool {
        self.solution.is_none()
    }

    fn is_due(&self) -> bool {
        self.is_open() && self.course.is_due()
    }
}

/// A running descent.
struct ClassDescent<'a, 'p, T: DualLoss, const L: usize> {
    problems: &'p [Problem<'a>],
    loss: T,
    sweep: Sweep<'a, L>,
    monitor: &'a dyn Monitor,
    rows: Vec<RowState<T::Row<L>>>,
    /// Classes that do not shrink the row, a bit for each.
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
    facts: RowFacts,
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
    fn new(problems: &'p [Problem<'a>], loss: T, monitor: &'a dyn Monitor) -> Result<Self> {
        let first = &problems[0];
        let bias = constant_column(&first.design(0.0), first.cost, first.intercept);
        let mut sweep = Sweep::new(first.design(bias), monitor);
        // Costs are mostly the same from one row to the next.
        let mut last: Option<RowState<T::Row<L>>> = None;
        let row = |(i, &cost): (usize, &f64)| {
            let new = || {
                let facts = RowFacts { cost, squared_norm: f64::NAN };
                RowState { variables: T::Row::first(loss, cost), facts, positive: 0 }
            };
            let same = last.take().filter(|last| last.facts.cost == cost).unwrap_or_else(new);
            last = Some(same.clone());
            let bit = |(l, problem): (usize, &Problem<'_>)| u8::from(problem.y[i] > 0.0) << l;
            RowState { positive: problems.iter().enumerate().map(bit).sum(), ..same }
        };
        let rows: Vec<RowState<T::Row<L>>> = first.cost.iter().enumerate().map(row).collect_large();
        let (mut w, mut signed) = (Block::zeros(sweep.design.n_cols()), Block::zeros(rows.len()));
        for (signed, row) in signed.iter_mut().zip(&rows) {
            *signed = row.labels();
            signed.iter_mut().zip(row.variables.alpha()).for_each(|(signed, a)| *signed *= a);
        }
        sweep.weighted_sums(&signed, &mut w);
        monitor.poll()?;
        let (active, order) = (memory::filled(u8::MAX, rows.len()), ActiveSet::all(rows.len()));
        let bounds = [[f64::INFINITY; L], [f64::NEG_INFINITY; L]];
        Ok(Self { problems, loss, sweep, monitor, rows, active, bounds, order, w })
    }

    /// The beginning of one class.
    fn lane(&self, l: usize, params: &'a Params, options: DualOptions<'a>) -> Lane<'a> {
        let mut ledger = Ledger::new(&self.problems[l], self.sweep.design.bias, 0.0);
        let estimate = ledger.begin(self.loss, &self.w.lane(l), &self.alpha(l));
        Lane { ledger, course: Course::new(params, options, estimate), passes: 1.0, solution: None }
    }

    fn alpha(&self, l: usize) -> Vec<f64> {
        self.rows.iter().map(|row| row.variables.alpha()[l]).collect_large()
    }

    /// Visits every row that not all classes shrink once.
    fn epoch(&mut self, lanes: &mut [Lane<'_>], random: &mut Random) -> Result<()> {
        self.order.shuffle(random);
        let (mut offset, mut open) = ([0.0; L], 0);
        for (l, lane) in lanes.iter().enumerate() {
            offset[l] = lane.ledger.offset;
            open |= u8::from(lane.is_open()) << l;
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
        for (l, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.is_open()) {
            let (largest, smallest) = (epochs.largest[l], epochs.smallest[l]);
            let [most, least] = bounds_after(largest, smallest);
            (self.bounds[0][l], self.bounds[1][l]) = (most, least);
            lane.passes += visited[l] as f64 / n_rows.max(1) as f64;
            lane.ledger.after_epoch(visited[l], self.w.last().map_or(0.0, |last| last[l]));
            lane.course
                .record(&Epoch { visited: visited[l], gain: epochs.gain[l], largest, smallest }, n_rows);
        }
        Ok(())
    }

    /// The gaps of the classes that are due, and their answers where they end; brings shrunk rows back.
    fn check(&mut self, lanes: &mut [Lane<'a>], is_proved: bool) -> Result<()> {
        let mut z = Block::zeros(self.rows.len());
        self.sweep.decisions(&self.w, &mut z);
        self.monitor.poll()?;
        let (mut iteration, mut accuracy) = (0, 0.0f64);
        for (l, lane) in lanes.iter_mut().enumerate().filter(|(_, lane)| lane.is_due()) {
            lane.passes += 1.0;
            let (y, offset) = (self.problems[l].y, lane.ledger.offset);
            for (i, active) in self.active.iter_mut().enumerate() {
                let (row, margin) = (&self.rows[i], y[i] * (z[i][l] + offset));
                let is_in = row.variables.is_visited(self.loss, row.facts.cost, l, margin, &self.bounds);
                *active = *active & !(1 << l) | u8::from(is_in) << l;
            }
            let margins = z.iter().zip(y).map(|(z, y)| y * z[l]).collect_large();
            let (w, alpha) = (self.w.lane(l), self.alpha(l));
            let check = lane.ledger.check(self.loss, &w, margins, &alpha)?;
            let certificate = check.certificate;
            accuracy = accuracy.max(certificate.relative_gap());
            iteration = lane.course.iterations();
            let Some(status) = lane.course.judge(&certificate) else { continue };
            let b = check.intercept;
            let evidence = if is_proved { lane.ledger.evidence(check, &w, &alpha) } else { None };
            let (w, intercept, is_consistent) = lane.ledger.answer(w, b);
            let (n_iter, passes, solver) = (iteration, lane.passes, SolverKind::DualCd);
            lane.solution = Some(Solution {
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
        }
        self.monitor.observe(&Progress { solver: "dual_cd", iteration, accuracy, search: None });
        Ok(())
    }
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
            if row.facts.squared_norm.is_nan() {
                row.facts.squared_norm = data.squared_norm(i);
            }
            let mut scale = row.labels();
            let mut margin = data.dot_lanes(i, w);
            for l in 0..L {
                margin[l] = scale[l] * (margin[l] + offset[l]);
            }
            let mut here = active[i] & open;
            let gone = here;
            let change = row.variables.step(loss, row.facts, &margin, bounds, &mut here, &mut epochs);
            active[i] &= !(gone & !here);
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
