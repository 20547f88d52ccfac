//! Truncated Newton in the primal, for several lanes side by side.
//!
//! Minimises `1/2 |w|^2 + C sum_i f_i(z_i)`, `z_i = w.x_i`, for convex `f_i` with a Lipschitz derivative, in
//! `L` lanes that differ in their `f_i` only: folds (rows held out have `f_i = 0`) or classes. A single fit
//! is `L = 1`. Weights are interleaved, so that each entry of the data is read once for all lanes and each
//! access to the weights brings all of them. A constant last column of the design is the intercept; if it is
//! *free* its weight is left out of the norm. One step:
//!
//! 1. for a dual point with a free intercept, minimise over it alone (reads no data), so that
//!    `sum_i f_i'(z_i) = 0` below;
//! 2. the sum `h = sum_i f_i'(z_i) x_i`, one pass over the rows with `f_i' != 0`. The gradient is `w + C h`,
//!    at this or **any other** `C`. At `a_i = -C y_i f_i'(z_i)` the dual point has `w(a) = -C h`, and by
//!    Fenchel's equality the duality gap is half the squared gradient: the certificate is free;
//! 3. directions `s` from `(I + C X'DX) s = -g`, `D = diag(f_i'')`, by conjugate gradient ([`cg`]) with a
//!    preconditioner shared by the lanes ([`preconditioner`]). A product reads only rows with curvature in
//!    some lane, and sums up `s.x_i` for them on the way; the other rows are read once at the end. A single
//!    lane whose matrix is factorised needs no product: only `s.x_i`, one pass;
//! 4. a backtracking line search per lane, which reads no data (GalliLin21).
//!
//! A single fit ([`single`]) need not wait for that gap: an epoch of dual descent from the slopes
//! ([`polish`]), or a step in the dual ([`dual_step`]), certifies one some 5 to 1,000 times smaller.
//!
//! [`passes`] is what is done with a row, [`cg`] the directions, [`preconditioner`] (by [`hessian`] and
//! [`cholesky`] when columns are few, [`frequent`] when they are not) what speeds them up,
//! [`line_search`] the step lengths, [`sample`] a start from a part of the rows. The hinge, which has no
//! curvature, is a sequence ([`proximal`]) of smooth problems: [`hinge`].
//!
//! A lane that is done takes steps of zero until all are.
//!
//! Memory: six blocks of columns x lanes and four of rows x lanes (five with dual variables kept), up to
//! seven private blocks of columns x lanes for parallel sums ([`super::sweep`]), and two `d x d` matrices
//! where steps are factorised (of order 500 where a block of columns is), a single fit three and a number a
//! row; for an epoch of dual descent, ten numbers a row at most, for a step in the dual nine.

pub mod approach;
pub mod cg;
pub mod cholesky;
pub mod dual_step;
pub mod factorisation;
pub mod frequent;
pub mod hessian;
pub mod hinge;
pub mod line_search;
pub mod passes;
pub mod polish;
pub mod preconditioner;
pub mod proximal;
pub mod row_state;
pub mod sample;
pub mod single;

pub use self::single::solve;

use std::ops::Range;
use std::sync::Arc;

use self::cg::{CgLimits, CgOutcome, ConjugateGradient};
use self::factorisation::{Factorisation, Form, factorisation};
use self::frequent::FrequentColumns;
use self::line_search::Ray;
use self::preconditioner::{Gram, Preconditioner};
use self::row_state::{Curvature, Passes, RowState, TermPasses};

use super::checks::{check_length, finite_or};
use super::monitor::{Monitor, Progress, SearchProgress};
use super::problem::{Certificate, Intercept, Problem, Status};
use super::routes::{DEAR, STALE_BLOCK, STALE_DIAGONAL};
use super::stop::{LaneProgress, LaneReport, NewtonStop};
use super::sweep::{for_chunks, sum, sum_entries};
use crate::matrix::Rows;
use crate::matrix::lanes::Block;
use crate::memory::CollectLarge;
use crate::{Result, memory};

/// Loosest accuracy of the conjugate gradient (GalliLin21).
const CG_ACCURACY: f64 = 0.5;
/// And where the gradient is small enough already, so that the question is how far below the minimum is. With
/// 0.5 there, searches on 30,000 rows of hashed text (16,384 columns, logistic loss) took as many products
/// and came within 1.9 % of the minima instead of 0.6 %.
const NEAR_ACCURACY: f64 = 0.1;
/// Products of a step there; [`super::stop`] has how many are taken. Without an end, `select_C` on ten
/// classes of mnist (10,000 rows, squared hinge) takes 117 s instead of 77, nearly all of them at `C` far
/// above the best.
const NEAR_PRODUCTS: usize = 24;

/// Counts of work, all lanes together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Readings of the whole data.
    pub passes: f64,
    /// Newton steps.
    pub steps: usize,
    /// Products of the conjugate gradient.
    pub products: usize,
    /// Dense matrices of curvature, and shares of one.
    pub factorisations: f64,
}

/// Newton on rows in memory.
pub type InMemory<'a, const L: usize> = Newton<'a, RowState<'a, L>, L>;

/// A point with all that a minimisation from it needs; kept between minimisations that differ in `C`.
pub struct Newton<'a, R, const L: usize> {
    /// The rows, here or elsewhere.
    pub rows: R,
    monitor: &'a dyn Monitor,
    /// Height of the constant column.
    bias: f64,
    is_free: bool,
    /// Every evaluated point has a feasible dual point.
    keeps_dual: bool,
    /// As in [`Shape`].
    are_far: bool,
    /// A closer form of preconditioner than the diagonal, where there may be one.
    closer: Option<Closer>,
    /// The form of those that are made.
    form: Form,
    /// Number of lanes in use; the rest is padding.
    n_lanes: usize,
    /// Weights, the constant column's last.
    pub w: Block<L>,
    /// `sum_i f_i'(z_i) x_i`, after a minimisation.
    pub h: Block<L>,
    /// Work so far.
    pub work: Work,
    loss: [f64; L],
    /// `h`, `loss` and curvatures belong to `z` and the objective.
    is_evaluated: bool,
    /// Kept from one `C` to the next.
    gram: Option<Gram>,
    preconditioner: Option<Kept>,
    step: Block<L>,
    cg: ConjugateGradient<L>,
}

/// What else than a diagonal preconditions.
#[derive(Clone, Copy)]
struct Closer {
    form: Form,
    /// Its cost in passes.
    cost: f64,
}

/// The last preconditioner.
struct Kept {
    /// The `C` it is to be used for again; none if it belongs to points too far back for a step.
    made_for: Option<f64>,
    /// Whether it is the factor of the Hessian there, of a single lane.
    is_hessian: bool,
    matrix: Preconditioner,
}

/// Inner products at the current point; the free intercept's part of `h` stands apart.
#[derive(Clone, Copy, Debug)]
pub struct InnerProducts {
    /// `|w|^2`.
    pub ww: f64,
    /// `w.h`.
    pub wh: f64,
    /// `|h|^2`.
    pub hh: f64,
    /// `h_b^2`.
    pub intercept: f64,
    /// `|w + C h|^2` at the `C` of the question.
    pub gg: f64,
}

/// What Newton has to know of the rows and of the columns before it starts.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Columns with the constant one.
    pub n_columns: usize,
    /// Treatment of the intercept.
    pub intercept: Intercept,
    /// Lanes in use; the rest is padding.
    pub n_lanes: usize,
    /// Slopes are kept, one more block of rows, and a free intercept is at its optimum, so that every
    /// evaluated point has a feasible dual point.
    pub keeps_dual: bool,
    /// What a dense factorisation costs, where one is possible.
    pub factorisation: Option<Factorisation>,
    /// A question to the rows may cost more than a reading of them: where steps are factorised, a free
    /// intercept is then brought to its optimum only where a dual point depends on it.
    pub are_far: bool,
}

impl<'a, const L: usize> InMemory<'a, L> {
    /// Starts at zero. Of the `L` lanes the first `n_lanes` are used; `keeps_dual` as in [`Shape`].
    pub fn new(problem: &Problem<'a>, n_lanes: usize, keeps_dual: bool, monitor: &'a dyn Monitor) -> Self {
        let design = problem.design(problem.intercept.bias());
        let (intercept, n_columns) = (problem.intercept, design.n_cols());
        let frequent = if keeps_dual { FrequentColumns::of(&design).map(Arc::new) } else { None };
        let factorisation = factorisation(&design).or(frequent.as_ref().map(|f| f.factorisation()));
        let shape = Shape { n_columns, intercept, n_lanes, keeps_dual, factorisation, are_far: false };
        let rows = RowState::new(design, keeps_dual, monitor).with_frequent(frequent);
        // A search, which may go on from a journal, has the same bits however it came where it is.
        let rows = if keeps_dual { rows.keeping_matrix() } else { rows };
        Self::over(rows, &shape, monitor)
    }
}

impl<'a, R: Passes<L>, const L: usize> Newton<'a, R, L> {
    /// Starts at zero, where the decision values of `rows` are.
    pub fn over(mut rows: R, shape: &Shape, monitor: &'a dyn Monitor) -> Self {
        let Shape { n_columns: d, intercept, n_lanes, keeps_dual, factorisation, are_far } = *shape;
        let factorisation = factorisation.filter(|f| keeps_dual || f.is_worth_it);
        let closer = factorisation.map(|f| Closer { form: f.form, cost: f.passes });
        let is_at_once = |c: &Closer| !keeps_dual || (c.form == Form::Dense && c.cost < DEAR);
        let form = closer.filter(is_at_once).map_or(Form::Diagonal, |c| c.form);
        rows.foresee(Some(form));
        Self {
            rows,
            closer,
            form,
            monitor,
            bias: intercept.bias(),
            is_free: intercept == Intercept::Free,
            keeps_dual,
            are_far,
            n_lanes,
            w: Block::zeros(d),
            h: Block::zeros(d),
            work: Work::default(),
            loss: [0.0; L],
            is_evaluated: false,
            gram: None,
            preconditioner: None,
            step: Block::zeros(d),
            cg: ConjugateGradient::new(d),
        }
    }

    /// Weights and what preconditioners are made of: all that later minimisations depend on, but for the
    /// decision values, which the rows have.
    pub fn state(&self) -> [Vec<f64>; 2] {
        let gram = self.gram.as_ref().map_or(&[][..], Gram::values);
        [memory::copy(self.w.as_flattened()), memory::copy(gram)]
    }

    /// Goes back to zero; the decision values are the caller's affair.
    pub fn reset(&mut self) {
        self.w.fill([0.0; L]);
        self.objective_changed();
    }

    /// Takes over a state of a solver of the same shape; the decision values are the caller's affair.
    ///
    /// # Errors
    /// [`crate::Error::Shape`].
    pub fn restore(&mut self, [w, gram]: [&[f64]; 2]) -> Result<()> {
        let d = self.w.len();
        check_length("weights of a solver state", d * L, w.len())?;
        self.gram =
            if gram.is_empty() { None } else { Some(Gram::of_values(self.form == Form::Dense, d, gram)?) };
        self.rows.foresee(self.gram.is_none().then_some(self.form));
        self.preconditioner = None;
        self.is_evaluated = false;
        self.w.as_flattened_mut().copy_from_slice(w);
        Ok(())
    }

    /// Takes over weights and the intercept of a lane; the decision values are the caller's affair.
    pub fn start_lane(&mut self, l: usize, w: &[f64], b: f64) {
        self.w.iter_mut().zip(w).for_each(|(here, w)| here[l] = *w);
        if self.bias != 0.0 {
            self.w[w.len()][l] = b / self.bias;
        }
    }

    /// Height of the constant column.
    pub fn bias(&self) -> f64 {
        self.bias
    }

    /// The columns whose weights are part of the norm.
    pub fn penalised(&self) -> Range<usize> {
        0..self.w.len() - usize::from(self.is_free)
    }

    /// Declares that the terms `f_i` are others than before.
    pub fn objective_changed(&mut self) {
        self.is_evaluated = false;
        (self.gram, self.preconditioner) = (None, None);
        self.rows.foresee(Some(self.form));
    }

    /// Computes the decision values from the weights; one pass.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`], and those of the place where the rows are.
    pub fn refresh(&mut self) -> Result<()> {
        self.rows.decide(&self.w)?;
        self.work.passes += 1.0;
        self.is_evaluated = false;
        self.monitor.poll()
    }

    /// `h`, losses and curvatures at the current point, unless they are known.
    ///
    /// # Errors
    /// As for [`Self::refresh`].
    pub fn evaluate<O>(&mut self, objective: &O) -> Result<()>
    where
        R: TermPasses<O, L>,
    {
        if self.is_evaluated {
            return Ok(());
        }
        let found = self.rows.evaluate(objective, &mut self.h)?;
        self.monitor.poll()?;
        self.loss = found.loss;
        self.count(found.read);
        self.is_evaluated = true;
        Ok(())
    }

    /// Work so far as passes, factorisations included.
    fn price(&self) -> f64 {
        self.work.passes + self.work.factorisations * self.closer.map_or(0.0, |c| c.cost)
    }

    /// Takes note of rows that were read.
    pub fn count(&mut self, rows: usize) {
        self.work.passes += rows as f64 / self.rows.n_rows().max(1) as f64;
    }

    /// Sums of the terms `f_i` at the evaluated point.
    pub fn loss(&self) -> &[f64; L] {
        &self.loss
    }

    /// Inner products of weights and `h` per lane.
    pub fn products(&self, c: f64) -> [InnerProducts; L] {
        let (w, h, penalised) = (&self.w, &self.h, self.penalised());
        let [ww, wh, hh, gg] = sum_entries(penalised.len(), |j| {
            let mut terms = [[0.0; L]; 4];
            for l in 0..L {
                let (w, h) = (w[j][l], h[j][l]);
                let g = w + c * h;
                (terms[0][l], terms[1][l], terms[2][l], terms[3][l]) = (w * w, w * h, h * h, g * g);
            }
            terms
        });
        std::array::from_fn(|l| {
            let intercept = if self.is_free { h[penalised.len()][l].powi(2) } else { 0.0 };
            InnerProducts { ww: ww[l], wh: wh[l], hh: hh[l], intercept, gg: gg[l] }
        })
    }

    /// Minimises from the current point.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`], and [`crate::Error::Overflow`] when the objective leaves the range of
    /// double precision.
    pub fn minimise<O>(
        &mut self,
        objective: &O,
        c: f64,
        stop: &NewtonStop<L>,
        max_steps: usize,
    ) -> Result<[LaneReport; L]>
    where
        R: TermPasses<O, L>,
    {
        let mut lanes = self.lanes();
        let is_gap = matches!(stop, NewtonStop::RelativeGap(_));
        loop {
            self.descend(objective, c, stop, max_steps, &mut lanes)?;
            if !is_gap || self.confirm(objective, c, stop, &mut lanes)? {
                return Ok(lanes.map(|lane| lane.report));
            }
        }
    }

    /// Progress before a minimisation.
    fn lanes(&self) -> [LaneProgress; L] {
        let certificate = Certificate { primal: 0.0, dual: 0.0 };
        let report = LaneReport { status: Status::Converged, steps: 0, certificate, squared_gradient: 0.0 };
        let mut lanes = [LaneProgress::new(report); L];
        lanes[self.n_lanes..].iter_mut().for_each(|lane| lane.is_running = false);
        lanes
    }

    /// Takes steps until no lane is running; the last point is evaluated.
    fn descend<O>(
        &mut self,
        objective: &O,
        c: f64,
        stop: &NewtonStop<L>,
        max_steps: usize,
        lanes: &mut [LaneProgress; L],
    ) -> Result<()>
    where
        R: TermPasses<O, L>,
    {
        loop {
            if self.keeps_dual && self.is_free && !self.is_lazy() {
                self.minimise_over_intercept(objective)?;
            }
            self.evaluate(objective)?;
            let values = self.judge(c, stop, max_steps, lanes)?;
            if lanes.iter().all(|lane| !lane.is_running) {
                return Ok(());
            }
            let enough =
                std::array::from_fn(|l| stop.squared_residual(values[l], lanes[l].report.squared_gradient));
            let are_near = lanes.iter().all(|lane| lane.is_near || !lane.is_running);
            let foretold = self.find_direction(c, lanes, enough, are_near)?;
            lanes.iter_mut().zip(foretold).for_each(|(lane, gain)| lane.foresee(stop, gain, are_near));
            let moved = self.search_line(objective, c, &values, lanes)?;
            for (lane, moved) in lanes.iter_mut().zip(moved) {
                if lane.is_running && !moved {
                    lane.is_running = false;
                    lane.report.status = if lane.is_last { Status::Converged } else { Status::Stalled };
                }
                lane.report.steps += usize::from(lane.is_running);
            }
            self.work.steps += 1;
        }
    }

    /// Brings the reports up to date and ends lanes that are done; returns the objective per lane.
    fn judge(
        &mut self,
        c: f64,
        stop: &NewtonStop<L>,
        max_steps: usize,
        lanes: &mut [LaneProgress; L],
    ) -> Result<[f64; L]> {
        let products = self.products(c);
        let mut values = [0.0; L];
        let (mut worst, mut left, mut steps) = (0.0f64, 0, 0);
        for l in 0..self.n_lanes {
            let (p, lane) = (&products[l], &mut lanes[l]);
            values[l] =
                finite_or("objective", 0.5 * p.ww + c * self.loss[l], || self.rows.max_squared_norm())?;
            if !lane.is_running {
                continue;
            }
            let squared = match stop {
                NewtonStop::RelativeGap(_) => p.gg,
                NewtonStop::Gradient { .. } => p.gg + c * c * p.intercept,
            };
            let squared = finite_or("gradient", squared, || self.rows.max_squared_norm())?;
            lane.observe(values[l], squared, p.gg);
            worst = worst.max(stop.accuracy(&lane.report));
            (left, steps) = (left + 1, steps.max(lane.report.steps));
            lane.settle(stop, l, max_steps);
        }
        self.monitor.poll()?;
        if left > 0 {
            let search = (!self.keeps_dual).then_some(SearchProgress {
                c,
                lanes_left: left,
                passes: self.work.passes,
            });
            self.monitor.observe(&Progress { solver: "newton", iteration: steps, accuracy: worst, search });
        }
        Ok(values)
    }

    /// Whether a free intercept is left to the steps: far away, where steps are few products. Where they take
    /// many, its own questions count for little, and gaps that are true at every point end fits sooner:
    /// flights, four shards, squared hinge, C = 1, gap 1e-4: 123 rounds and 96 passes instead of 183 and 168;
    /// a9a, where steps are factorised, 41 rounds instead of 23.
    fn is_lazy(&self) -> bool {
        self.are_far && self.form == Form::Dense
    }

    /// Evaluates the current point with a free intercept at its optimum, where it is not already.
    ///
    /// # Errors
    /// As for [`Self::refresh`].
    pub fn settle_intercept<O>(&mut self, objective: &O) -> Result<()>
    where
        R: TermPasses<O, L>,
    {
        if self.keeps_dual && self.is_free && self.is_lazy() {
            self.minimise_over_intercept(objective)?;
            self.evaluate(objective)?;
        }
        Ok(())
    }

    /// Sums of the terms at decision values computed anew; one pass.
    ///
    /// # Errors
    /// As for [`Self::refresh`].
    pub fn fresh_loss<O>(&mut self, objective: &O) -> Result<[f64; L]>
    where
        R: TermPasses<O, L>,
    {
        let [_, losses] = self.rows.decide_anew(objective, &self.w)?;
        self.work.passes += 1.0;
        self.is_evaluated = false;
        self.monitor.poll()?;
        Ok(losses)
    }

    /// The last step.
    pub fn step(&self) -> &Block<L> {
        &self.step
    }

    fn minimise_over_intercept<O>(&mut self, objective: &O) -> Result<()>
    where
        R: TermPasses<O, L>,
    {
        let shift = self.rows.shift_to_optimum(objective)?;
        if shift != [0.0; L] {
            let (bias, last) = (self.bias, self.w.len() - 1);
            for l in 0..L {
                self.w[last][l] += shift[l] / bias;
            }
            self.is_evaluated = false;
        }
        Ok(())
    }

    /// Replaces the certificates of finished lanes by ones that owe nothing to updated decision values: the
    /// dual value is that of `a` at `w(a) = -C h`, the primal value comes from decision values computed anew
    /// (one pass), since updates over many steps leave rounding errors that a huge cost multiplies. Lanes
    /// that are not good enough after all run again, the first time from the fresh values, the second time
    /// with a step whatever the gradient says; then the answer is false.
    fn confirm<O>(
        &mut self,
        objective: &O,
        c: f64,
        stop: &NewtonStop<L>,
        lanes: &mut [LaneProgress; L],
    ) -> Result<bool>
    where
        R: TermPasses<O, L>,
    {
        self.settle_intercept(objective)?;
        let products = self.products(c);
        let [terms, losses] = self.rows.decide_anew(objective, &self.w)?;
        self.work.passes += 1.0;
        self.monitor.poll()?;
        let mut is_good = true;
        for l in 0..self.n_lanes {
            let (p, lane) = (&products[l], &mut lanes[l]);
            let certificate =
                Certificate { primal: 0.5 * p.ww + c * losses[l], dual: c * terms[l] - 0.5 * c * c * p.hh };
            if lane.report.status == Status::Converged
                && lane.report.squared_gradient != 0.0
                && certificate.relative_gap() > stop.limit(l)
            {
                is_good = false;
                lane.is_running = true;
                (lane.is_fresh, lane.must_step) = (!lane.is_fresh, lane.is_fresh);
            }
            if !lane.is_running {
                lane.report.certificate = certificate;
            }
        }
        self.is_evaluated = is_good;
        Ok(is_good)
    }

    /// Overwrites the step, and its decision values; returns what it is to gain in each lane. `are_near`:
    /// the gradients of all running lanes are small enough.
    fn find_direction(
        &mut self,
        c: f64,
        lanes: &[LaneProgress; L],
        squared_residual: [f64; L],
        are_near: bool,
    ) -> Result<[f64; L]> {
        let running = lanes.map(|lane| lane.is_running);
        let loosest = if are_near { NEAR_ACCURACY } else { CG_ACCURACY };
        let accuracy = lanes.map(|lane| loosest.min(lane.relative_gradient().sqrt()));
        let kept = self.preconditioner(c)?;
        let (mut steps, mut gain) = (1, [0.0; L]);
        let direct = if kept.is_hessian {
            self.solve_directly(c, &self.downhill(c), &kept.matrix, accuracy[0])
        } else {
            None
        };
        if let Some(fall) = direct {
            gain[0] = fall;
            let read = self.rows.finish(&self.step, None)?;
            self.count(read);
        } else {
            let most = if are_near { NEAR_PRODUCTS } else { usize::MAX };
            let products = self.products_left().min(most);
            let fall = [f64::INFINITY; L];
            let limits = CgLimits { accuracy, squared_residual, residual_per_fall: 0.0, products, fall };
            let (outcome, mut read) = self.solve_for_step(c, &kept.matrix, &limits, running)?;
            read += self.rows.finish(&self.step, Some(&outcome.last_length))?;
            self.count(read);
            self.work.products += outcome.products;
            (steps, gain) = (outcome.products, outcome.fall);
        }
        self.monitor.poll()?;
        let is_spent = self.products_left() == 0;
        if is_spent {
            self.come_closer();
            gain = [f64::INFINITY; L]; // the step is not what it was to be
        }
        let is_stale = is_spent || steps > self.allowance();
        if is_stale {
            self.gram = None;
        }
        self.rows.foresee(is_stale.then_some(self.form));
        self.preconditioner = Some(Kept { made_for: (!is_stale).then_some(c), is_hessian: false, ..kept });
        Ok(gain)
    }

    /// Whether a minimisation at another `C` would gain at most so much in each lane, by the model at the
    /// evaluated point; where it would not, a few products tell.
    ///
    /// # Errors
    /// As for [`Self::refresh`].
    pub fn gains_little(&mut self, c: f64, most: [f64; L]) -> Result<bool> {
        let before = self.preconditioner.take();
        let kept = self.preconditioner(c)?;
        let running = std::array::from_fn(|l| l < self.n_lanes);
        let limits = CgLimits {
            accuracy: [NEAR_ACCURACY; L],
            squared_residual: [0.0; L],
            residual_per_fall: 0.0,
            products: self.products_left(),
            fall: most,
        };
        let (outcome, read) = self.solve_for_step(c, &kept.matrix, &limits, running)?;
        self.preconditioner = before;
        self.count(read);
        self.work.products += outcome.products;
        let is_low = (0..L).all(|l| outcome.fall[l] <= most[l]);
        Ok(is_low && self.products_left() > 0)
    }

    /// The negative gradient of the first lane.
    fn downhill(&self, c: f64) -> Vec<f64> {
        let Self { w, h, .. } = self;
        let n_penalised = self.penalised().end;
        (0..w.len()).map(|j| -c * h[j][0] - if j < n_penalised { w[j][0] } else { 0.0 }).collect_large()
    }

    /// Overwrites the step of the first lane by `-M^-1 g` with the factor of `M = I + C G`, `G` the matrix
    /// that is there and `-g` being `downhill`. Returns how far the model falls, if the residual of
    /// `M s = -g` is below a share of `accuracy`, both in the norm of `M^-1`, which is at most the plain one,
    /// as no eigenvalue is below 1 (but one that a free intercept may have). Reads no data.
    fn solve_directly(
        &mut self,
        c: f64,
        downhill: &[f64],
        factor: &Preconditioner,
        accuracy: f64,
    ) -> Option<f64> {
        let n_penalised = self.penalised().end;
        let Self { step, gram: Some(Gram::Dense(gram)), .. } = self else { return None };
        let lane = |r: &f64| std::array::from_fn(|l| if l == 0 { *r } else { 0.0 });
        factor.apply(&downhill.iter().map(lane).collect_large(), step);
        let s = step.iter().map(|s| s[0]).collect_large();
        let product = gram.times(&s);
        let [fall, squared] = sum(s.len(), |j| {
            let residual = downhill[j] - c * product[j] - if j < n_penalised { s[j] } else { 0.0 };
            [downhill[j] * s[j], residual * residual]
        });
        (accuracy > 0.0 && squared <= accuracy * accuracy * fall).then_some(0.5 * fall)
    }

    /// Overwrites the step by the conjugate gradient; its decision values, too, but for the last step of the
    /// conjugate gradient and for rows without curvature. Also returns how many rows were read.
    fn solve_for_step(
        &mut self,
        c: f64,
        matrix: &Preconditioner,
        limits: &CgLimits<L>,
        running: [bool; L],
    ) -> Result<(CgOutcome<L>, usize)> {
        let Self { rows, monitor, w, h, step, cg, .. } = self;
        let n_penalised = w.len() - usize::from(self.is_free);
        let gradient = |j: usize| -> [f64; L] {
            let inside = if j < n_penalised { 1.0 } else { 0.0 };
            std::array::from_fn(|l| inside * w[j][l] + c * h[j][l])
        };
        let mut read = 0;
        let outcome = cg.solve(gradient, matrix, limits, running, step, |p, length, out| {
            read += rows.multiply(p, length, out)?;
            monitor.poll()?;
            add_norm(p, n_penalised, c, out);
            Ok::<(), crate::Error>(())
        })?;
        Ok((outcome, read))
    }

    /// Products until the conjugate gradient with a diagonal preconditioner has cost as much as a
    /// factorisation, which is then made: how hard a problem is shows only on the way, and so the price is at
    /// most twice that of knowing. covtype in degree 2 (1,540 columns), squared hinge, C = 2, gap 1e-3: its
    /// sample took 2,645 products of 1/8 pass with the diagonal alone. mnist (781 columns), one digit against
    /// the rest, needs some 40 products in all and factorisations of 40 passes never.
    fn products_left(&self) -> usize {
        match self.closer {
            Some(closer) if self.form != closer.form => {
                (closer.cost.ceil() as usize).saturating_sub(self.work.products)
            }
            _ => usize::MAX,
        }
    }

    /// Preconditioners are of the closer form from now on, where there is one.
    fn come_closer(&mut self) {
        if let Some(closer) = self.closer {
            self.form = closer.form;
        }
    }

    /// Products after which the preconditioner is made anew. A dense one is, for a fit, in every step, unless
    /// it is dear: Newton's method then converges quadratically and ends well below its tolerance; a search
    /// is content with fewer matrices. Tried: as few for every fit. w8a, logistic, gap 1e-4: C = 1, 27 passes
    /// instead of 18 and a fifth less time; C = 16, 83 instead of 25 and 1.4 times the time.
    fn allowance(&self) -> usize {
        let Some(Closer { form, cost: passes }) = self.closer.filter(|c| self.form == c.form) else {
            return STALE_DIAGONAL;
        };
        match form {
            Form::Frequent => STALE_BLOCK,
            _ if self.keeps_dual && passes < DEAR => 0,
            _ if self.keeps_dual => (passes / 2.0) as usize,
            _ => 1 + (passes / self.n_lanes as f64) as usize,
        }
    }

    /// The preconditioner for this `C`: the last one, or one from the matrix that is there or a new one.
    fn preconditioner(&mut self, c: f64) -> Result<Kept> {
        if let Some(kept) = self.preconditioner.take()
            && kept.made_for == Some(c)
        {
            return Ok(kept);
        }
        let is_new = self.gram.is_none();
        if is_new {
            let found = self.rows.curvature(self.n_lanes, self.form)?;
            let Curvature { mut gram, largest, read, work } = found;
            if let Gram::Diagonal(diagonal) | Gram::Frequent { diagonal, .. } = &mut gram {
                // A free intercept without curvature would make a singular matrix.
                let free = self.w.len() - usize::from(self.is_free);
                diagonal[free..].iter_mut().for_each(|d| *d = d.max(largest));
            }
            self.take_matrix(gram, read, work)?;
        }
        let matrix = self.factor(c);
        Ok(Kept {
            made_for: Some(c),
            is_hessian: is_new && self.form == Form::Dense && self.n_lanes == 1,
            matrix,
        })
    }

    /// Takes a matrix, or its diagonal, for which so many rows were read at this share of a new one's work.
    fn take_matrix(&mut self, gram: Gram, read: usize, work: f64) -> Result<()> {
        self.count(read);
        self.work.factorisations += work;
        self.gram = Some(gram);
        self.monitor.poll()
    }

    /// The preconditioner from the matrix that is there.
    fn factor(&self, c: f64) -> Preconditioner {
        let gram = self.gram.as_ref().expect("taken before");
        Preconditioner::new(gram, self.penalised().end, c)
    }

    /// Moves each running lane along its step; false for lanes in which no step length makes progress.
    fn search_line<O>(
        &mut self,
        objective: &O,
        c: f64,
        values: &[f64; L],
        lanes: &[LaneProgress; L],
    ) -> Result<[bool; L]>
    where
        R: TermPasses<O, L>,
    {
        let (w, s, h) = (&self.w, &self.step, &self.h);
        let n_penalised = self.penalised().end;
        let [ww, ws, ss, hs] = sum_entries(w.len(), |j| {
            let inside = if j < n_penalised { 1.0 } else { 0.0 };
            let mut terms = [[0.0; L]; 4];
            for l in 0..L {
                let (w, s, h) = (w[j][l], s[j][l], h[j][l]);
                (terms[0][l], terms[1][l]) = (inside * w * w, inside * w * s);
                (terms[2][l], terms[3][l]) = (inside * s * s, h * s);
            }
            terms
        });
        let rays = std::array::from_fn(|l| Ray {
            value: values[l],
            slope: ws[l] + c * hs[l],
            half_norm: 0.5 * ww[l],
            linear: ws[l],
            square: 0.5 * ss[l],
            is_running: lanes[l].is_running,
        });
        let rows = &mut self.rows;
        let lengths = line_search::lengths(c, &rays, |lengths| rows.losses(objective, lengths))?;
        line_search::advance(&mut self.w, &self.step, &lengths);
        let read = self.rows.advance(&lengths)?;
        self.count(read);
        self.is_evaluated = false;
        Ok(lengths.map(|length| length > 0.0))
    }
}

/// Makes of `X'DXp` the product `(P + C X'DX) p`, `P` being 1 on the columns that are part of the norm.
fn add_norm<const L: usize>(p: &[[f64; L]], n_penalised: usize, c: f64, out: &mut [[f64; L]]) {
    for_chunks(&mut out[..n_penalised], |start, out| {
        for (out, p) in out.iter_mut().zip(&p[start..]) {
            for l in 0..L {
                out[l] = p[l] + c * out[l];
            }
        }
    });
    for out in &mut out[n_penalised..] {
        *out = out.map(|q| c * q);
    }
}
