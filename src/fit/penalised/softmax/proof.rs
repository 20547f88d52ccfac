//! The certificate of the weights of all classes: a proof, in spite of rounding, as
//! [`crate::fit::penalised::proof`].
//!
//! **The dual point** is a table of numbers `a_ik >= 0` for the classes that are not the row's own; its own
//! has the exact sum of them, which is kept as a number and what that leaves out. Times a scale `t` that
//! leaves no sum above `c_i`, `q_i` is a distribution whatever rounding has done to the softmax.
//!
//! **What is added and subtracted** beside what is said there, with `u = 2^-53` twice over:
//!
//! * the decision values of a row are off by at most `e_i`, the largest over its classes. Its loss moves by
//!   at most `2 (1 - s_iy) e_i` with the softmax `s_i` somewhere between, at most a factor `exp(2 e_i)` away;
//! * exponentials are off by `u` times their argument, no more than the width of the widest row and 708;
//! * an own class's sum has `K` terms, and the logarithm of what it leaves of 1 may be as large as 37.
//!
//! **Free columns** ask for `v_jk = 0`. The softmax is moved towards it by `p_ik (s_ik - sum_l p_il s_il)`
//! with `s = X_F q`, which leaves its sum 1.

use super::PenalisedClasses;
use crate::fit::certificate::{DUAL_TERM, UNIT, chain};
use crate::fit::compensated::CompensatedSum;
use crate::fit::penalised::coordinates::Coordinates;
use crate::fit::penalised::dual_point::{conjugates, scale};
use crate::fit::penalised::free_columns::{STEPS_PER_FREE, conjugate_gradient};
use crate::fit::penalised::proof::{
    Proof, SlopeSums, decisions_in_doubt, free_reach, price_of_free, slopes_in_doubt,
};
use crate::fit::penalised::smooth_part::{Losses, SmoothPart};
use crate::fit::problem::Certificate;
use crate::fit::sweep::sum;
use crate::memory::{self, CollectLarge};

/// Below the negative of this an exponential is 0.
const DEEPEST: f64 = 709.0;
/// An error of a decision value up to which the softmax moves by less than a quarter.
const SMALL: f64 = 0.1;
/// Shifts of logits along free columns up to which a probability stays one.
const INSIDE: f64 = 0.25;

/// The proof of weights by the dual point of their losses.
pub fn certificate(problem: &PenalisedClasses<'_>, losses: &Losses, w: &[f64], sums: SlopeSums) -> Proof {
    let (n, d, coordinates) = (problem.cost.len(), w.len(), problem.coordinates());
    let n_classes = problem.n_classes as f64;
    let (z, errors) = decisions_and_errors(coordinates, w);
    let reach = free_reach(&z);
    let here = Losses::at(problem, z);
    let width = widest(&here.z, n).min(DEEPEST);

    let mut table = DualTable::of(problem, losses);
    table.move_onto_free_columns();
    let (v, blurs) = slopes_in_doubt(coordinates, sums, |j, sums| table.slope_and_blur(j, sums));
    let blur = |j: usize| blurs[j];
    let scale = scale(coordinates, &v, blur).min(1.0 / table.excess()) * (1.0 - 8.0 * UNIT);
    let [dual_terms, dual_size] = problem.dual_terms(&table.a, scale);
    let [conjugates, conjugate_size] = conjugates(coordinates, &v, scale, blur);
    let free = price_of_free(coordinates, &v, scale, blur, reach);

    let [slack, total] = sum(n, |i| {
        let (c, e) = (problem.cost[i], errors[i]);
        if c == 0.0 {
            return [0.0; 2];
        }
        let own = problem.class[i] as usize * n + i;
        let rest = -here.slope[own] / c;
        let between = if e < SMALL { (1.3 * rest).min(1.0) } else { 1.0 };
        [2.0 * c * e * between, scale * table.a[own]]
    });
    let penalty = coordinates.penalty(w);
    let of_losses = (chain(n) + width + 4.0 * n_classes + 32.0) * here.value;
    let of_dual = (chain(n) + 4.0 * n_classes + 16.0) * dual_size;
    let of_weights = (2.0 * chain(d) + 16.0) * (penalty + conjugate_size);
    let rounding = slack + UNIT * (of_losses + of_dual + of_weights + DUAL_TERM * n_classes * total);
    let dual = dual_terms - conjugates - free - rounding;
    let certificate = Certificate::proved(here.value + penalty, dual);
    Proof { certificate, largest_dual: scale * table.largest() }
}

/// Decision values, and by how much those of a row may be off.
fn decisions_and_errors(coordinates: Coordinates<'_>, w: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let (n, d) = (coordinates.columns.n_rows(), coordinates.columns.len());
    let (mut z, mut errors) = (memory::zeros::<f64>(coordinates.n_decisions()), memory::zeros::<f64>(n));
    for (w, z) in w.chunks(d.max(1)).zip(z.chunks_mut(n.max(1))) {
        let (of_class, doubt) = decisions_in_doubt(coordinates.columns, w);
        z.copy_from_slice(&of_class);
        errors.iter_mut().zip(doubt).for_each(|(error, doubt)| *error = error.max(doubt));
    }
    (z, errors)
}

/// The largest distance between two decision values of a row.
fn widest(z: &[f64], n: usize) -> f64 {
    let mut ends = memory::filled([f64::INFINITY, f64::NEG_INFINITY], n);
    for of_class in z.chunks(n.max(1)) {
        for ([low, high], z) in ends.iter_mut().zip(of_class) {
            (*low, *high) = (low.min(*z), high.max(*z));
        }
    }
    ends.iter().map(|[low, high]| high - low).fold(0.0, f64::max)
}

/// A dual point, and the softmax that it comes from.
struct DualTable<'a> {
    problem: &'a PenalisedClasses<'a>,
    /// Cost times probability, one class after the other; for the own class of a row the sum of the others.
    a: Vec<f64>,
    /// What that number leaves out of the sum.
    rest: Vec<f64>,
    /// Cost times probability of the own class.
    mine: Vec<f64>,
}

impl<'a> DualTable<'a> {
    fn of(problem: &'a PenalisedClasses<'a>, losses: &Losses) -> Self {
        let n = problem.cost.len();
        let mine = (0..n).map(|i| losses.bend[problem.class[i] as usize * n + i]).collect_large();
        let a = memory::copy(&losses.bend);
        let mut table = Self { problem, a, rest: memory::zeros(n), mine };
        table.sum_up();
        table
    }

    /// Where the number of a row's own class is.
    fn own(&self, i: usize) -> usize {
        self.problem.class[i] as usize * self.rest.len() + i
    }

    /// Sums the others for the own classes.
    fn sum_up(&mut self) {
        let n = self.rest.len();
        for i in 0..n {
            let (mut sum, own) = (CompensatedSum::default(), self.own(i));
            (i..self.a.len()).step_by(n).filter(|at| *at != own).for_each(|at| sum.add(self.a[at]));
            (self.a[own], self.rest[i]) = (sum.value(), sum.rest());
        }
    }

    /// The largest share that the other classes of a row have of its cost, or 1.
    fn excess(&self) -> f64 {
        let share = |(i, c): (usize, &f64)| if *c > 0.0 { self.a[self.own(i)] / c } else { 0.0 };
        self.problem.cost.iter().enumerate().map(share).fold(1.0, f64::max)
    }

    /// The largest number.
    fn largest(&self) -> f64 {
        self.a.iter().copied().fold(0.0, f64::max)
    }

    /// The slope of the dual point along a coordinate, and by how much it may be off.
    fn slope_and_blur(&self, j: usize, sums: SlopeSums) -> [f64; 2] {
        let PenalisedClasses { columns, class, n_classes, .. } = *self.problem;
        let all = self.problem.coordinates();
        let (column, k) = (all.column(j), all.block(j) as u32);
        let a = &self.a[all.decisions_of(j)];
        let [v, size] = match sums {
            SlopeSums::Plain => columns.sum(column, |i, x| {
                let term = a[i] * x;
                [if class[i] == k { term } else { -term }, term.abs()]
            }),
            SlopeSums::Close => self.close_slope(j).into(),
        };
        [v, sums.blur(columns.column_len(column) + n_classes, v, size)]
    }

    /// That slope as if in twice the precision, and the sum of the sizes.
    fn close_slope(&self, j: usize) -> (f64, f64) {
        let all = self.problem.coordinates();
        let (k, a) = (all.block(j) as u32, &self.a[all.decisions_of(j)]);
        let (mut sum, mut size) = (CompensatedSum::default(), 0.0);
        self.problem.columns.for_each(all.column(j), |i, x| {
            if self.problem.class[i] == k {
                sum.add_product(a[i], x);
                sum.add_product(self.rest[i], x);
            } else {
                sum.add_product(-a[i], x);
            }
            size += (a[i] * x).abs();
        });
        (sum.value(), size)
    }

    /// Moves the point towards slopes of 0 along the free columns.
    fn move_onto_free_columns(&mut self) {
        let free = self.problem.coordinates().free();
        if free.is_empty() {
            return;
        }
        // Twice: the second time takes off what rounding has left of the first.
        for _ in 0..2 {
            let pull = free.iter().map(|&j| self.close_slope(j as usize).0).collect_large();
            let product = |q: &[f64]| -> Vec<f64> {
                let mut along = self.moves(&free, q);
                for (at, along) in along.iter_mut().enumerate() {
                    *along *= self.probable(at);
                }
                self.problem.coordinates().slopes(&free, &along)
            };
            let q = conjugate_gradient(product, pull, STEPS_PER_FREE * free.len());
            let moves = self.moves(&free, &q);
            if q.iter().all(|q| q.is_finite()) && moves.iter().all(|s| s.abs() < INSIDE) {
                self.go(&moves);
            }
        }
    }

    /// Cost times probability at a place of the table.
    fn probable(&self, at: usize) -> f64 {
        let i = at % self.rest.len();
        if at == self.own(i) { self.mine[i] } else { self.a[at] }
    }

    /// `s_ik - sum_l p_il s_il` for `s = X_F q`.
    fn moves(&self, free: &[u32], q: &[f64]) -> Vec<f64> {
        let (n, all) = (self.rest.len(), self.problem.coordinates());
        let mut s = memory::zeros(all.n_decisions());
        free.iter().zip(q).for_each(|(&j, q)| all.spread(j as usize, *q, &mut s));
        let mut means: Vec<f64> = memory::zeros(n);
        for (at, s) in s.iter().enumerate() {
            means[at % n] += self.probable(at) * s;
        }
        for (mean, c) in means.iter_mut().zip(self.problem.cost) {
            *mean = if *c > 0.0 { *mean / c } else { 0.0 };
        }
        s.iter_mut().enumerate().for_each(|(at, s)| *s -= means[at % n]);
        s
    }

    /// Moves every probability by its share.
    fn go(&mut self, moves: &[f64]) {
        for i in 0..self.rest.len() {
            self.mine[i] *= 1.0 + moves[self.own(i)];
        }
        self.a.iter_mut().zip(moves).for_each(|(a, s)| *a *= 1.0 + s);
        self.sum_up();
    }
}
