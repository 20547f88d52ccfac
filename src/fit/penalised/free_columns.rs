//! Dual points that meet the constraints of free columns: those without penalty and bounds ask for
//! `sum_i y_i a_i x_ij = 0`.

use super::PenalisedProblem;
use crate::fit::certificate::UNIT;
use crate::fit::compensated::CompensatedSum;
use crate::matrix::columns::Columns;
use crate::memory;
use crate::memory::CollectLarge;

/// Steps of conjugate gradient towards the constraints of the free columns, per column.
pub const STEPS_PER_FREE: usize = 4;

/// Moves a dual point towards that, whose box ends at `upper`: `a_i (1 - k_i s_i)` with `s = y X_F q`, `k_i =
/// 1 - a_i / u_i`, which stays in the box, `q` by conjugate gradient; whether it could be moved.
pub fn onto_free_columns(
    problem: &PenalisedProblem<'_>,
    upper: impl Fn(usize) -> f64,
    alpha: &mut [f64],
) -> bool {
    let PenalisedProblem { columns, y, cost, terms, .. } = *problem;
    let free: Vec<usize> = (0..terms.len()).filter(|&j| terms[j].is_free()).collect();
    if free.is_empty() {
        return true;
    }
    let n = alpha.len();
    let pull = |alpha: &[f64]| -> Vec<f64> {
        let signed: Vec<f64> = y.iter().zip(alpha).map(|(y, a)| y * a).collect_large();
        free.iter().map(|&j| close_sum(columns, &signed, j).0).collect_large()
    };
    let weight: Vec<f64> = (0..n)
        .map(|i| if cost[i] > 0.0 { alpha[i] * (1.0 - alpha[i] / upper(i)) } else { 0.0 })
        .collect_large();
    let spread = |q: &[f64]| -> Vec<f64> {
        let mut s = memory::zeros(n);
        free.iter().zip(q).for_each(|(&j, q)| columns.for_each(j, |i, x| s[i] += q * x));
        s
    };
    let product = |q: &[f64]| -> Vec<f64> {
        let s = spread(q);
        free.iter().map(|&j| columns.sum(j, |i, x| [weight[i] * s[i] * x])[0]).collect_large()
    };
    let mut is_moved = true;
    // Twice: the second time takes off what rounding has left of the first.
    for _ in 0..2 {
        let q = conjugate_gradient(product, pull(alpha), STEPS_PER_FREE * free.len());
        let s = spread(&q);
        let is_inside = |i: usize| (y[i] * s[i]).abs() < 0.5;
        is_moved = q.iter().all(|q| q.is_finite()) && (0..n).all(is_inside);
        if is_moved {
            alpha.iter_mut().enumerate().for_each(|(i, a)| *a -= weight[i] * y[i] * s[i]);
        }
    }
    is_moved
}

/// `sum_i s_i x_ij` as if in twice the precision, and the sum of the sizes.
pub fn close_sum(columns: &Columns, signed: &[f64], j: usize) -> (f64, f64) {
    let (mut sum, mut size) = (CompensatedSum::default(), 0.0);
    columns.for_each(j, |i, x| {
        sum.add_product(signed[i], x);
        size += (signed[i] * x).abs();
    });
    (sum.value(), size)
}

/// Solves `A q = b` for a positive semidefinite product `A`, in at most so many steps.
pub fn conjugate_gradient(product: impl Fn(&[f64]) -> Vec<f64>, b: Vec<f64>, steps: usize) -> Vec<f64> {
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let (mut q, mut rest) = (vec![0.0; b.len()], b.clone());
    let (mut direction, mut squared) = (b, dot(&rest, &rest));
    let enough = squared * UNIT * UNIT;
    for _ in 0..steps {
        if squared <= enough {
            break;
        }
        let along = product(&direction);
        let step = squared / dot(&direction, &along);
        if !step.is_finite() {
            break;
        }
        q.iter_mut().zip(&direction).for_each(|(q, p)| *q += step * p);
        rest.iter_mut().zip(&along).for_each(|(r, a)| *r -= step * a);
        let next = dot(&rest, &rest);
        direction.iter_mut().zip(&rest).for_each(|(p, r)| *p = r + next / squared * *p);
        squared = next;
    }
    q
}
