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
//! solution, times the largest factor up to 1 that keeps all conjugates finite. For several decision values a
//! row, see [`super::softmax`].
//!
//! A second one are the slopes of the last Newton step's model at its minimum, within the box
//! ([`SmoothPart::model_slopes`]): `a_i = -c_i (xi'(m_i) + xi''(m_i) y_i x_i.d)` behind a step `d` from
//! margins `m`. There the *model* meets its conditions along the working set, as far as the descent went,
//! and those of the objective are the same ones, as `v` is linear in `a`. The losses' own slopes miss
//! them by what the model leaves out, times the length of the column. 1,000 random rows x 2,000 columns,
//! logistic, C = 100, gaps by the first and the second after three successive steps: 0.37 and 9e-3, 0.085
//! and 4e-3, 8e-3 and 7e-8; flights, logistic 2.9 and 0.5, 0.07 and 0.04, where the descents end too
//! early for more.
//!
//! Tried, outside: the first one with the rows of columns that miss their condition scaled down, six times
//! over, two readings of all entries each; there 2.9 and 0.3, 0.078 and 0.008, with the squared hinge 0.24
//! and 0.16. Between, every second time, it is worse than at first, as rows share columns.

use super::coordinates::{COORDINATE_CHUNK, Coordinates};
use super::smooth_part::SmoothPart;
use crate::fit::problem::Certificate;
use crate::fit::sweep::sum;
use crate::parallel;

/// The largest multiple, at most 1, of a dual point with slopes `v` at which no conjugate is infinite. `blur`
/// is what rounding may have done to the slope along a coordinate.
pub fn scale(coordinates: Coordinates<'_>, v: &[f64], blur: impl Fn(usize) -> f64 + Sync) -> f64 {
    let of_coordinate = |j: usize| {
        let (term, v, blur) = (coordinates.term(j), v[j], blur(j));
        // Nearly all of them, and the quotients would be above 1.
        let is_within = v.abs() + blur <= term.l1;
        if is_within || term.is_free() { 1.0 } else { term.reach(v + blur).min(term.reach(v - blur)) }
    };
    let of_chunk = |chunk: usize| {
        let first = chunk * COORDINATE_CHUNK;
        (first..v.len().min(first + COORDINATE_CHUNK)).map(of_coordinate).fold(1.0, f64::min)
    };
    parallel::map(v.len().div_ceil(COORDINATE_CHUNK), of_chunk).into_iter().fold(1.0, f64::min)
}

/// The conjugates of `scale` times the slopes `v`, in sum, and the sum of their sizes; free coordinates are
/// left out.
pub fn conjugates(
    coordinates: Coordinates<'_>,
    v: &[f64],
    scale: f64,
    blur: impl Fn(usize) -> f64 + Sync,
) -> [f64; 2] {
    sum(v.len(), |j| {
        let term = coordinates.term(j);
        if term.is_free() {
            return [0.0; 2];
        }
        let (v, blur) = (scale * v[j], scale * blur(j));
        let largest = term.conjugate(v + blur).max(term.conjugate(v - blur));
        [largest, largest.abs()]
    })
}

/// Primal and dual value of the present weights, up to rounding, where the losses have this value. The dual
/// point has these slopes along the decision values, and `slope` along all coordinates, which on free ones
/// must be as good as zero.
pub fn certificate<T: SmoothPart>(
    smooth_part: &T,
    value: f64,
    (slopes, slope): (&[f64], &[f64]),
    w: &[f64],
) -> Certificate {
    let v: Vec<f64> = slope.iter().map(|s| -s).collect();
    let coordinates = smooth_part.coordinates();
    let scale = scale(coordinates, &v, |_| 0.0) * (1.0 - 4.0 * f64::EPSILON);
    let [terms, _] = smooth_part.dual_terms(slopes, scale);
    let [conjugates, _] = conjugates(coordinates, &v, scale, |_| 0.0);
    Certificate { primal: value + coordinates.penalty(w), dual: terms - conjugates }
}
