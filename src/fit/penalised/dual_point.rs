//! A dual point from the losses at the present weights, and the gap it proves up to rounding.
//!
//! The dual problem is
//!
//! ```text
//! max over a      sum_i h_i(a_i) - sum_j p_j*(v_j),       v_j = sum_i y_i a_i x_ij,      0 <= a_i <= u_i
//! ```
//!
//! with the conjugates `p_j*` of the penalties ([`crate::penalty::Term::conjugate`]): of `l1 |w|` it is 0 up
//! to `|v| = l1` and infinite beyond. The point is `a_i = -c_i xi'(m_i)`, which at the optimum is the dual
//! solution, times the largest factor up to 1 that keeps all conjugates finite.

use super::PenalisedProblem;
use super::newton::Losses;
use super::smooth::{OfRows, SmoothTerms, Together};
use crate::fit::problem::Certificate;
use crate::fit::sweep::{ROW_CHUNK, sum, sum_pieces};
use crate::matrix::simd;

/// What rounding may have done to the slope along a column.
pub type Blur<'a> = &'a (dyn Fn(usize) -> f64 + Sync);

/// The largest multiple, at most 1, of a dual point with slopes `v` at which no conjugate is infinite.
pub fn scale(problem: &PenalisedProblem<'_>, v: &[f64], blur: Blur<'_>) -> f64 {
    let mut scale = 1.0f64;
    for (j, term) in problem.terms.iter().enumerate() {
        if !term.is_free() {
            let (v, blur) = (v[j], blur(j));
            scale = scale.min(term.reach(v + blur)).min(term.reach(v - blur));
        }
    }
    scale
}

/// The conjugates of `scale` times the slopes `v`, in sum, and the sum of their sizes; free columns are
/// left out.
pub fn conjugates(problem: &PenalisedProblem<'_>, v: &[f64], scale: f64, blur: Blur<'_>) -> [f64; 2] {
    sum(v.len(), |j| {
        let term = problem.terms[j];
        if term.is_free() {
            return [0.0; 2];
        }
        let (v, blur) = (scale * v[j], scale * blur(j));
        let largest = term.conjugate(v + blur).max(term.conjugate(v - blur));
        [largest, largest.abs()]
    })
}

/// Primal and dual value of the present weights, up to rounding. `slope` has the slopes of the losses along
/// all columns, which on free columns must be as good as zero.
pub fn certificate<S: SmoothTerms>(
    problem: &PenalisedProblem<'_>,
    smooth: &S,
    losses: &Losses,
    slope: &[f64],
    w: &[f64],
) -> Certificate {
    let v: Vec<f64> = slope.iter().map(|s| -s).collect();
    let scale = scale(problem, &v, &|_| 0.0) * (1.0 - 4.0 * f64::EPSILON);
    let [terms, _] = terms(problem, smooth, &losses.slope, scale);
    let [conjugates, _] = conjugates(problem, &v, scale, &|_| 0.0);
    Certificate { primal: losses.value + super::penalty(problem.terms, w), dual: terms - conjugates }
}

/// The terms of the rows in the dual at `scale` times the sizes of `a`, in sum, and the sum of their sizes.
pub fn terms<S: SmoothTerms>(problem: &PenalisedProblem<'_>, smooth: &S, a: &[f64], scale: f64) -> [f64; 2] {
    let cost = problem.cost;
    let [terms, sizes] = sum_pieces(a.len(), ROW_CHUNK, |rows| {
        simd::run(Together(DualTerms { smooth, cost, a, scale }, rows)).map(|sum| [sum])
    });
    [terms[0], sizes[0]]
}

struct DualTerms<'s, S> {
    smooth: &'s S,
    cost: &'s [f64],
    a: &'s [f64],
    scale: f64,
}

impl<S: SmoothTerms> OfRows<2> for DualTerms<'_, S> {
    /// A row that is absent has no terms.
    #[inline(always)]
    fn add<const N: usize>(&mut self, i: usize, sums: &mut [f64; 2]) {
        let mut a = [0.0; N];
        a.copy_from_slice(&self.a[i..i + N]);
        for a in &mut a {
            *a = self.scale * a.abs();
        }
        let mut terms = self.smooth.dual_terms(i, &a);
        let cost = &self.cost[i..i + N];
        for k in 0..N {
            terms[k] = if cost[k] > 0.0 { terms[k] } else { 0.0 };
        }
        for term in terms {
            sums[0] += term;
            sums[1] += term.abs();
        }
    }
}
