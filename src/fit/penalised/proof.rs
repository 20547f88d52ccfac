//! The certificate of penalised weights: a proof, in spite of rounding, as in [`crate::fit::certificate`].
//!
//! **What is added and subtracted**, with `u = 2^-53` (a factor 2 in all terms makes up for `gamma_n`):
//!
//! * a decision value of `k` products is off by at most `e_i = u (k + 4) sum_j |x_ij w_j|`, which moves the
//!   primal value by at most `-c_i xi'(m_i - e_i) e_i`; that is charged to the dual value;
//! * a slope `v_j` of `k` products is off by at most `u (k + 10) sum_i |x_ij| a_i`. The dual point is scaled
//!   so that `v_j` with this blur keeps the conjugate finite, and the conjugate is the larger one of both
//!   ends;
//! * sums of `n` terms as there.
//!
//! Where a column is far longer than others the blur of its slope may be all that keeps a gap above the
//! tolerance; slopes are then summed as if in twice the precision ([`SlopeSums::Close`]), which leaves the
//! last rounding of `v_j` and the square of the blur.
//!
//! **Free columns**, without penalty and bounds, ask for `v_j = 0`, which no computed point meets. The point
//! is moved towards it ([`super::free_columns`]), and what is left, summed as if in twice the precision,
//! counts as if the weight were bounded: by what moves some decision value by a thousand times (1 + the
//! largest decision value at the solution). The certificate is true among such weights.

use super::PenalisedProblem;
use super::binary::BinaryLosses;
use super::coordinates::{COORDINATE_CHUNK, Coordinates};
use super::dual_point::{conjugates, scale};
use super::free_columns::{close_sum, onto_free_columns};
use super::smooth_part::SmoothPart;
use crate::fit::certificate::{DUAL_TERM, UNIT, chain, least_margin};
use crate::fit::objective::Weighted;
use crate::fit::problem::Certificate;
use crate::fit::sweep::sum;
use crate::fit::together::{OfRows, sum_rows};
use crate::loss::Loss;
use crate::matrix::columns::Columns;
use crate::memory;
use crate::memory::CollectLarge;
use crate::parallel;

/// Bound of a free column's weight, in decision values.
const FREE_ROOM: f64 = 1e3;

/// How slopes are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlopeSums {
    /// In double precision.
    Plain,
    /// As if in twice that.
    Close,
}

impl SlopeSums {
    /// By how much a slope `v` of `n` products may be off whose sizes add up to `size`, with something in
    /// reserve for its multiples.
    pub fn blur(self, n: usize, v: f64, size: f64) -> f64 {
        let n = n as f64;
        match self {
            Self::Plain => UNIT * (n + 10.0) * size + f64::MIN_POSITIVE,
            // Scaled dual variables are rounded once more.
            Self::Close => {
                UNIT * (4.0 * v.abs() + size) + (UNIT * (n + 2.0)).powi(2) * size + f64::MIN_POSITIVE
            }
        }
    }
}

/// Decision values of one block, summed anew (those of the losses carry what steps have added to them), and
/// by how much each may be off.
pub fn decisions_in_doubt(columns: &Columns, w: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let n = columns.n_rows();
    let mut z: Vec<f64> = memory::zeros(n);
    let (mut size, mut count): (Vec<f64>, Vec<u32>) = (memory::zeros(n), memory::zeros(n));
    for (j, w) in w.iter().enumerate().filter(|(_, w)| **w != 0.0) {
        columns.for_each(j, |i, x| {
            z[i] += w * x;
            size[i] += (w * x).abs();
            count[i] += 1;
        });
    }
    size.iter_mut().zip(count).for_each(|(size, count)| *size *= UNIT * f64::from(count + 4));
    (z, size)
}

/// The slopes of a dual point along all coordinates, and by how much they may be off. `slope` computes one
/// of them; those of free coordinates are always summed closely.
pub fn slopes_in_doubt(
    coordinates: Coordinates<'_>,
    sums: SlopeSums,
    slope: impl Fn(usize, SlopeSums) -> [f64; 2] + Sync,
) -> (Vec<f64>, Vec<f64>) {
    let mut v = memory::filled([0.0; 2], coordinates.len());
    parallel::each_chunk(&mut v, COORDINATE_CHUNK, |first, v| {
        v.iter_mut().enumerate().for_each(|(k, v)| {
            let is_free = coordinates.term(first + k).is_free();
            *v = slope(first + k, if is_free { SlopeSums::Close } else { sums });
        });
    });
    v.iter().map(|[v, blur]| (*v, *blur)).unzip()
}

/// A certificate, and what it says of columns that are not looked at ([`super::reach`]).
#[derive(Clone, Copy)]
pub struct Proof {
    /// Primal value, and dual value less all that rounding can have done.
    pub certificate: Certificate,
    /// The largest dual variable of its point.
    pub largest_dual: f64,
}

/// The proof of weights. `slopes` are those of a dual point along the decision values.
pub fn certificate<L: Loss>(
    problem: &PenalisedProblem<'_>,
    loss: L,
    slopes: &[f64],
    w: &[f64],
    sums: SlopeSums,
) -> Proof {
    let PenalisedProblem { columns, y, cost, .. } = *problem;
    let (n, d, coordinates) = (y.len(), w.len(), problem.coordinates());
    let (z, doubt) = decisions_in_doubt(columns, w);
    let mut alpha: Vec<f64> =
        slopes.iter().zip(cost).map(|(g, c)| g.abs().min(loss.upper(*c))).collect_large();
    onto_free_columns(problem, |i| loss.upper(cost[i]), &mut alpha);
    let signed: Vec<f64> = y.iter().zip(&alpha).map(|(y, a)| y * a).collect_large();
    let (v, blurs) = slopes_in_doubt(coordinates, sums, |j, sums| slope_and_blur(problem, &signed, j, sums));
    let blur = |j: usize| blurs[j];
    let scale = scale(coordinates, &v, blur) * (1.0 - 8.0 * UNIT);
    let [values, slack] = sum_rows(n, || LossesInDoubt { problem, loss, z: &z, doubt: &doubt });
    let smooth_part = BinaryLosses { problem, smooth: &Weighted { loss, y, cost } };
    let [dual_terms, dual_size] = smooth_part.dual_terms(&alpha, scale);
    let [total] = sum(n, |i| [scale * alpha[i]]);
    let [conjugates, conjugate_size] = conjugates(coordinates, &v, scale, blur);
    let penalty = coordinates.penalty(w);
    let reach = free_reach(&z);
    let free = price_of_free(coordinates, &v, scale, blur, reach);
    let of_sums =
        (chain(n) + 16.0) * (values + dual_size) + (2.0 * chain(d) + 16.0) * (penalty + conjugate_size);
    let rounding = slack + UNIT * (of_sums + DUAL_TERM * total);
    let dual = dual_terms - conjugates - free - rounding;
    let largest_dual = scale * alpha.iter().copied().fold(0.0, f64::max);
    Proof { certificate: Certificate { primal: values + penalty, dual }, largest_dual }
}

/// The losses, and how much larger they may be for what rounding may have done to the decision values.
struct LossesInDoubt<'a, L> {
    problem: &'a PenalisedProblem<'a>,
    loss: L,
    z: &'a [f64],
    /// By how much each decision value may be off.
    doubt: &'a [f64],
}

impl<L: Loss> OfRows<2> for LossesInDoubt<'_, L> {
    #[inline(always)]
    fn add<const N: usize>(&mut self, i: usize, sums: &mut [f64; 2]) {
        let (y, cost) = (&self.problem.y[i..i + N], &self.problem.cost[i..i + N]);
        let (z, doubt) = (&self.z[i..i + N], &self.doubt[i..i + N]);
        let (mut m, mut least) = ([0.0; N], [0.0; N]);
        for k in 0..N {
            m[k] = y[k] * z[k];
            least[k] = least_margin(m[k], doubt[k]);
        }
        let [value, ..] = self.loss.all_of(m);
        let [_, slope, _] = self.loss.all_of(least);
        for k in 0..N {
            let c = cost[k];
            sums[0] += if c > 0.0 { c * value[k] } else { 0.0 };
            sums[1] += if c > 0.0 { -c * slope[k] * doubt[k] } else { 0.0 };
        }
    }
}

/// The proof of a rough gap, with closer sums where those alone are in the way of the tolerance; and how many
/// readings of all entries it took.
pub fn to_tolerance(proof: impl Fn(SlopeSums) -> Proof, (rough, tol): (f64, f64)) -> (Proof, f64) {
    let plain = proof(SlopeSums::Plain);
    if rough > tol || plain.certificate.relative_gap() <= tol {
        return (plain, 1.0);
    }
    (proof(SlopeSums::Close), 3.0)
}

/// What the free coordinates are charged for slopes `v`, at `scale` times the dual point, if none of them
/// moves a decision value by more than `reach`.
pub fn price_of_free(
    coordinates: Coordinates<'_>,
    v: &[f64],
    scale: f64,
    blur: impl Fn(usize) -> f64 + Sync,
    reach: f64,
) -> f64 {
    let [price] = sum(v.len(), |j| {
        let is_free = coordinates.term(j).is_free();
        [if is_free { scale * (v[j].abs() + blur(j)) * reach_of(coordinates, j, reach) } else { 0.0 }]
    });
    price
}

/// `sum_i s_i x_ij` of `s_i = y_i a_i`, and by how much it may be off, with something in reserve for its
/// multiples.
fn slope_and_blur(problem: &PenalisedProblem<'_>, signed: &[f64], j: usize, sums: SlopeSums) -> [f64; 2] {
    let [v, size] = match sums {
        SlopeSums::Plain => problem.columns.sum(j, |i, x| [signed[i] * x, (signed[i] * x).abs()]),
        SlopeSums::Close => close_sum(problem.columns, signed, j).into(),
    };
    [v, sums.blur(problem.columns.column_len(j), v, size)]
}

/// By how much a free weight may move a decision value where these are the decision values.
pub fn free_reach(z: &[f64]) -> f64 {
    FREE_ROOM * (1.0 + z.iter().fold(0.0, |largest, z| f64::max(largest, z.abs())))
}

/// The weight of coordinate `j` that moves a decision value by `reach`.
fn reach_of(coordinates: Coordinates<'_>, j: usize, reach: f64) -> f64 {
    let mut largest = 0.0f64;
    coordinates.columns.for_each(coordinates.column(j), |_, x| largest = largest.max(x.abs()));
    if largest > 0.0 { reach / largest } else { 0.0 }
}
