//! A Newton step in the dual, where steps are factorised.
//!
//! Let `s` solve `H s = -g` up to a residual `r`. The slopes linearised along it, `a_i - y_i c_i f_i''
//! s.x_i`, have the weights `w + s - r`: their gap is the distance of `w`, what the model leaves out, what
//! the borders of the box cut off, and `1/2 |r|^2`. Before that `1/2 g'M^-1 g`, with the factor `M` of the
//! Hessian of the step before, tells how far `w` is from the optimum, reading no data: whether a step may
//! end the fit, and whether the gap of the slopes is far from the truth. a9a, squared hinge, C = 16, gap
//! 1e-2: the slopes prove 6.7e-3, the step 5.8e-6, the distance is 5.5e-7.
//!
//! **The matrix.** Near the optimum few curvatures change from step to step, and the matrix of the one
//! before is brought up to date by those rows ([`super::hessian::KeptMatrix`]). Then `s` takes no product,
//! and the whole step a reading of all rows for `s.x_i` and one of those with slopes for the weights. Where
//! the matrix cannot be had like that, as for the first point after a fit on a sample, products with the
//! Hessian make `r` small, preconditioned by the old factor.
//!
//! Rows that are far away have no matrix to bring up to date. A new one is one question to them, of which
//! the slopes take no other, where products are a question each: covtype over 1, 2 and 16 shards, C = 16, 12
//! fits with the squared hinge to 1e-2 and 1e-4, 3 to 7 questions less of 12 to 24, and as close.
//!
//! **Steps further.** Rows that get or lose their curvature along the step are all that a piecewise quadratic
//! loss leaves out: at `w + s` the gradient is `sum_i d_i x_i`, `d_i` what their slopes differ from the
//! model's, and the matrix differs by these rows, too. If that gradient is what keeps the gap far from the
//! distance, the slopes are linearised there along a step of their own: one more reading. So it goes on as
//! long as the gradient that is left falls fast. covtype, C = 16, no intercept, gap over distance after one,
//! two and three steps: some 6,800, 39 and 1.0; over 16 shards, which answer with their part of that gradient
//! and of the matrix, 808, 38 and 3.6.
//!
//! Tried, by products: only one application of the old factor, with or without the best length along it:
//! gaps up to 340 and 1,900 times the distance instead of 1.2 (a9a, squared hinge, C = 16) after two
//! products of the conjugate gradient. The second step by the matrix at the evaluated point: 601 instead of
//! 39, for what the matrix there differs by is little of it, but much of what the step leaves.

use super::cg::CgLimits;
use super::cholesky::Symmetric;
use super::factorisation::Form;
use super::hessian::Updated;
use super::preconditioner::{Gram, Preconditioner};
use super::row_state::{Curvature, Passes, RowState};
use super::{Kept, Newton};
use crate::Result;
use crate::fit::dual::DualLoss;
use crate::fit::objective::{Objective, Weighted};
use crate::fit::routes::{DEAR, HESSIAN_ANEW, HESSIAN_OFF, POLISH_FALL, POLISH_FURTHER};
use crate::fit::sweep::{dot, for_chunks, sum};
use crate::memory::{self, CollectLarge};

/// Products of a step at least: one leaves gaps of hundreds of distances on covtype, where it costs half as
/// much as a factorisation.
const LEAST_PRODUCTS: usize = 2;
/// Half the squared residual at which products are accurate enough, in distances of the point to the optimum
/// as the step knows them.
const RESIDUAL: f64 = 2.0;
/// Share of the rows that may get or lose curvature along a step.
const SWITCHED: f64 = 0.1;
/// Share of the gradient that a step further may leave: rounding alone leaves any.
const ACCURACY: f64 = 1e-3;

/// What a step in the dual may cost, and what for.
#[derive(Clone, Copy, Debug)]
pub struct Affordable {
    /// Readings of all rows.
    pub passes: f64,
    /// Share of the rows with curvature.
    pub curved: f64,
    /// Estimated distance of the point to the optimum.
    pub distance: f64,
}

impl Affordable {
    /// Products with the Hessian, beside the one that the weights of the step take.
    fn products(&self) -> usize {
        ((self.passes / self.curved.max(f64::MIN_POSITIVE)) as usize).saturating_sub(1)
    }

    /// The most that a matrix may take of a new one's work, which are `price` readings, with so many readings
    /// of all rows and one of those with curvature beside it.
    fn matrix(&self, price: f64, readings: f64) -> f64 {
        HESSIAN_ANEW.min((self.passes - readings - self.curved) / price)
    }

    /// Whether so many readings of all rows are, with one of those with curvature.
    fn is_enough(&self, readings: f64) -> bool {
        readings + self.curved <= self.passes
    }
}

impl<R: Passes<1>> Newton<'_, R, 1> {
    /// A step, if it is `affordable`; returns the length along the last direction of the products, none if
    /// there were none, and how many rows were read.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`], and those of the place where the rows are.
    pub fn find_dual_step(&mut self, affordable: &Affordable) -> Result<Option<(Option<f64>, usize)>> {
        if self.step_by_matrix(affordable)? {
            return Ok(Some((None, self.rows.finish(&self.step, None)?)));
        }
        let products = affordable.products();
        if products < LEAST_PRODUCTS {
            return Ok(None);
        }
        let Some(kept) = self.preconditioner.take() else { return Ok(None) };
        let residual_per_fall = 2.0 * RESIDUAL;
        let limits = CgLimits {
            accuracy: [0.0],
            squared_residual: [0.0],
            residual_per_fall,
            products,
            fall: [f64::INFINITY],
        };
        let (outcome, read) = self.solve_for_step(1.0, &kept.matrix, &limits, [true])?;
        self.preconditioner = Some(kept);
        let [length] = outcome.last_length;
        Ok(Some((Some(length), read)))
    }

    /// Readings that a matrix takes, where one is made for each step.
    fn matrix_price(&self) -> Option<f64> {
        let cost = self.closer.filter(|_| self.form == Form::Dense)?.cost;
        (cost < DEAR).then_some(cost)
    }

    /// The step by the matrix, which then serves the next step of the weights, too, if it is exact.
    fn step_by_matrix(&mut self, affordable: &Affordable) -> Result<bool> {
        let Some(price) = self.matrix_price() else { return Ok(false) };
        if !affordable.is_enough(1.0) {
            return Ok(false);
        }
        let most = affordable.matrix(price, 1.0);
        // What the residual adds to the gap is then about the distance.
        let residual = (2.0 * affordable.distance / self.products(1.0)[0].gg).sqrt();
        let off = match self.rows.matrix_nearby(HESSIAN_OFF.min(0.5 * residual), most)? {
            Some(Updated { matrix, read, work, off }) => {
                self.take_matrix(Gram::Dense(matrix), read, work)?;
                off
            }
            None if self.are_far && affordable.products() >= LEAST_PRODUCTS => {
                let Curvature { gram, read, work, .. } = self.rows.curvature(self.n_lanes, self.form)?;
                self.take_matrix(gram, read, work)?;
                0.0
            }
            None => return Ok(false),
        };
        let matrix = self.factor(1.0);
        // Curvatures that are off by a share of `t` leave a residual of at most `t` for the Hessian itself,
        // in the norm of `M^-1`, since `-t M <= H - M <= t M`.
        let is_solved = self.solve_directly(1.0, &self.downhill(1.0), &matrix, residual - off).is_some();
        if off == 0.0 {
            self.preconditioner = Some(Kept { made_for: Some(1.0), is_hessian: true, matrix });
        } else {
            self.keep_factor_only(matrix);
        }
        Ok(is_solved)
    }

    /// Keeps a factor that is not that of the evaluated point's Hessian: a step of the weights makes its own.
    fn keep_factor_only(&mut self, matrix: Preconditioner) {
        self.gram = None;
        self.preconditioner = Some(Kept { made_for: None, is_hessian: false, matrix });
    }
}

/// The end of a step, from which slopes can be linearised, too.
pub struct StepEnd {
    /// Slope and curvature of each row there.
    pub terms: Vec<[f64; 2]>,
    /// By how much the model's slopes are above those, for rows that get or lose curvature on the way; empty
    /// where these are too many.
    pub left_out: Vec<f64>,
    /// How many they are.
    pub switched: f64,
}

impl StepEnd {
    /// From what so many rows have there, and what the model has: its slope there, and the curvature that it
    /// goes by.
    pub fn of(
        n: usize,
        there: impl Fn(usize) -> [f64; 2] + Sync,
        model: impl Fn(usize) -> [f64; 2] + Sync,
    ) -> Self {
        let mut terms = memory::filled([0.0; 2], n);
        for_chunks(&mut terms, |start, terms| {
            terms.iter_mut().enumerate().for_each(|(k, terms)| *terms = there(start + k));
        });
        let has_switched = |i: usize| terms[i][1] != model(i)[1];
        let [switched] = sum(n, |i| [f64::from(u8::from(has_switched(i)))]);
        let mut left_out = Vec::new();
        if switched <= SWITCHED * n as f64 {
            left_out = memory::zeros(n);
            for_chunks(&mut left_out, |start, left_out| {
                for (k, left_out) in left_out.iter_mut().enumerate() {
                    let i = start + k;
                    if has_switched(i) {
                        *left_out = model(i)[0] - terms[i][0];
                    }
                }
            });
        }
        Self { terms, left_out, switched }
    }
}

/// Steps further, each from the end of the one before.
pub struct Further<'a> {
    affordable: &'a Affordable,
    /// Readings of all rows that the next one makes it.
    pub readings: f64,
    /// Squared gradient that the last one left.
    squared: f64,
}

impl<'a> Further<'a> {
    /// After a step that came from a matrix.
    pub fn new(affordable: &'a Affordable) -> Self {
        Self { affordable, readings: 1.0, squared: f64::INFINITY }
    }

    /// Whether one more is affordable.
    pub fn is_affordable(&self) -> bool {
        self.affordable.is_enough(self.readings + 1.0)
    }

    /// Whether one more, which is affordable, would help where rows leave a gradient with this penalised
    /// part.
    pub fn would_help(&mut self, left: &[f64]) -> bool {
        let (squared, before) = (dot(left, left), self.squared);
        (self.squared, self.readings) = (squared, self.readings + 1.0);
        0.5 * squared > POLISH_FURTHER * self.affordable.distance && squared <= POLISH_FALL * before
    }
}

impl<R: Passes<1>> Newton<'_, R, 1> {
    /// A step by the matrix at the end of the last one, where the rows leave `downhill`; it overwrites the
    /// last one. Returns the matrix, none if rounding spoils the step.
    pub fn step_further(&mut self, downhill: &[f64], matrix: Symmetric) -> Option<Symmetric> {
        let here = self.gram.replace(Gram::Dense(matrix));
        let factor = self.factor(1.0);
        let is_solved = self.solve_directly(1.0, downhill, &factor, ACCURACY).is_some();
        match std::mem::replace(&mut self.gram, here) {
            Some(Gram::Dense(there)) if is_solved => Some(there),
            _ => None,
        }
    }

    /// The matrix of the evaluated point, where one is known.
    pub fn matrix(&self) -> Option<&Symmetric> {
        match &self.gram {
            Some(Gram::Dense(matrix)) => Some(matrix),
            _ => None,
        }
    }
}

impl<'a> Newton<'_, RowState<'a, 1>, 1> {
    /// The slopes linearised along a step, if it is `affordable`, and how many rows were read.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn dual_step<T: DualLoss>(
        &mut self,
        objective: &Weighted<'_, T>,
        affordable: &Affordable,
    ) -> Result<Option<(Vec<f64>, usize)>> {
        let Weighted { loss, y, cost } = *objective;
        let Some((length, mut read)) = self.find_dual_step(affordable)? else { return Ok(None) };
        let (mut further, mut last) = (Further::new(affordable), None);
        let may_go_further = length.is_none() && loss.can_be_zero();
        while may_go_further
            && let Some((end, more)) = self.go_further(objective, last.as_ref(), &mut further)?
        {
            read += more;
            last = Some(end);
        }
        let rows = &self.rows;
        if let Some((_, terms)) = last {
            let mut alpha = terms.iter().zip(y).map(|([slope, _], y)| -y * slope).collect_large();
            linearise(loss, (y, cost), &mut alpha, |i| terms[i][1], |i| rows.step_z[i][0]);
            return Ok(Some((alpha, read)));
        }
        let (mut alpha, length) = (self.alpha(y), length.unwrap_or(0.0));
        let moved = |i: usize| rows.step_z[i][0] + length * rows.product_z[i][0];
        linearise(loss, (y, cost), &mut alpha, |i| rows.curvature[i][0], moved);
        Ok(Some((alpha, read)))
    }

    /// The end of the present step, which began at the end of the `last` one or at the evaluated point, if a
    /// step from there is worth it: its decision values replace the present one's. Also how many rows were
    /// read.
    fn go_further<O: Objective<1>>(
        &mut self,
        objective: &O,
        last: Option<&Reached>,
        further: &mut Further<'_>,
    ) -> Result<Option<(Reached, usize)>> {
        let Some(price) = self.matrix_price().filter(|_| further.is_affordable()) else { return Ok(None) };
        let RowState { z, step_z, curvature, slopes: Some(slopes), .. } = &self.rows else { return Ok(None) };
        let at = |i: usize| last.map_or(z[i][0], |(at, _)| at[i]) + step_z[i][0];
        let there = |i: usize| {
            let [_, [slope], [bend]] = objective.all(i, &[at(i)]);
            [slope, bend]
        };
        let model = |i: usize| {
            let [slope, bend] = last.map_or([slopes[i][0], curvature[i][0]], |(_, terms)| terms[i]);
            [slope + bend * step_z[i][0], bend]
        };
        let StepEnd { terms, left_out, switched } = StepEnd::of(z.len(), there, model);
        if switched == 0.0 || left_out.is_empty() {
            return Ok(None);
        }
        let at = (0..z.len()).map(at).collect_large();
        let mut downhill = memory::zeros(self.w.len());
        self.rows.sweep.weighted_sum(&left_out, &mut downhill);
        drop(left_out);
        if !further.would_help(&downhill[self.penalised()]) {
            return Ok(None);
        }
        let most = further.affordable.matrix(price, further.readings);
        let bends = terms.iter().map(|[_, bend]| *bend).collect_large();
        let there = self.rows.matrix_of(&bends, (0.0, most));
        let Some(Updated { matrix, read, work, .. }) = there else { return Ok(None) };
        self.count(read);
        self.work.factorisations += work;
        self.monitor.poll()?;
        if self.step_further(&downhill, matrix).is_none() {
            return Ok(None);
        }
        let read = self.rows.finish(&self.step, None)?;
        Ok(Some(((at, terms), read)))
    }
}

/// Decision values at the end of a step, and slopes and curvatures there.
type Reached = (Vec<f64>, Vec<[f64; 2]>);

/// Linearises the slopes `alpha` of rows with these labels and costs along a step by which decision values
/// have `moved`, and clips them to their box; `bend` are curvatures.
pub fn linearise<T: DualLoss>(
    loss: T,
    (y, cost): (&[f64], &[f64]),
    alpha: &mut [f64],
    bend: impl Fn(usize) -> f64 + Sync,
    moved: impl Fn(usize) -> f64 + Sync,
) {
    for_chunks(alpha, |start, alpha| {
        for (k, a) in alpha.iter_mut().enumerate() {
            let i = start + k;
            let bend = bend(i);
            if bend != 0.0 {
                *a = (*a - y[i] * bend * moved(i)).clamp(0.0, loss.upper(cost[i]));
            }
        }
    });
}
