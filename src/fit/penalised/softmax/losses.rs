//! The losses of the rows: decision values, probabilities and slopes are tables of a class after the other.

use super::PenalisedClasses;
use crate::fit::multinomial::softmax::ln_1p_positive;
use crate::fit::penalised::smooth_part::Losses;
use crate::fit::sweep::ROW_CHUNK;
use crate::fit::together::{OfRows, Together, entries};
use crate::loss::elementary::{exp_of_negatives, ln_of_normal};
use crate::matrix::{kernels, simd};
use crate::parallel;

/// Evaluates the losses at their decision values. Their `bend` becomes cost times probability.
pub fn evaluate(problem: &PenalisedClasses<'_>, losses: &mut Losses) {
    let n = problem.cost.len();
    let Losses { z, value, slope, bend } = losses;
    let mut sums: Vec<f64> = vec![0.0; n.div_ceil(ROW_CHUNK)];
    let pieces = by_rows(slope, n).into_iter().zip(by_rows(bend, n)).zip(&mut sums);
    parallel::each(pieces, |chunk, ((slope, bend), sum)| {
        let first = chunk * ROW_CHUNK;
        let rows = first..(first + ROW_CHUNK).min(n);
        [*sum] = simd::run(Together(ClassTermsOfRows { problem, z, first, slope, bend }, rows));
    });
    *value = sums.iter().sum();
}

/// Cuts a table into pieces of rows; each has a slice for every class.
fn by_rows(table: &mut [f64], n: usize) -> Vec<Vec<&mut [f64]>> {
    let mut pieces: Vec<Vec<&mut [f64]>> = (0..n.div_ceil(ROW_CHUNK)).map(|_| Vec::new()).collect();
    for of_class in table.chunks_mut(n.max(1)) {
        of_class.chunks_mut(ROW_CHUNK).zip(&mut pieces).for_each(|(part, piece)| piece.push(part));
    }
    pieces
}

/// Evaluates the rows from `first` on; their sum.
struct ClassTermsOfRows<'s> {
    problem: &'s PenalisedClasses<'s>,
    z: &'s [f64],
    first: usize,
    slope: Vec<&'s mut [f64]>,
    bend: Vec<&'s mut [f64]>,
}

impl OfRows<1> for ClassTermsOfRows<'_> {
    /// A row that is absent has no terms.
    #[inline(always)]
    fn add<const N: usize>(&mut self, i: usize, [sum]: &mut [f64; 1]) {
        let Self { problem, z, first, slope, bend } = self;
        let PenalisedClasses { class, n_classes, cost, .. } = **problem;
        let (n, at) = (cost.len(), i - *first);
        let c: [f64; N] = entries(cost, i);
        let class = &class[i..i + N];
        let decisions = |k: usize| -> &[f64] { &z[k * n + i..k * n + i + N] };
        let (mut top, mut own) = ([f64::NEG_INFINITY; N], [0.0; N]);
        for k in 0..n_classes {
            let z = decisions(k);
            for r in 0..N {
                top[r] = if z[r] > top[r] { z[r] } else { top[r] };
                own[r] = if class[r] as usize == k { z[r] } else { own[r] };
            }
        }
        let (mut others, mut mine) = ([0.0; N], [0.0; N]);
        for k in 0..n_classes {
            let (z, e) = (decisions(k), &mut bend[k][at..at + N]);
            let mut below = [0.0; N];
            kernels::one_at_a_time();
            for r in 0..N {
                below[r] = z[r] - top[r];
            }
            e.copy_from_slice(&exp_of_negatives(below));
            for r in 0..N {
                let is_own = class[r] as usize == k;
                others[r] += if is_own { 0.0 } else { e[r] };
                mine[r] += if is_own { e[r] } else { 0.0 };
            }
        }
        let mut factor = [0.0; N];
        for r in 0..N {
            factor[r] = if c[r] > 0.0 { c[r] / (others[r] + mine[r]) } else { 0.0 };
        }
        for k in 0..n_classes {
            let (slope, bend) = (&mut slope[k][at..at + N], &mut bend[k][at..at + N]);
            for r in 0..N {
                let mass = if c[r] > 0.0 { factor[r] * bend[r] } else { 0.0 };
                bend[r] = mass;
                slope[r] = if class[r] as usize == k { -factor[r] * others[r] } else { mass };
            }
        }
        for r in 0..N {
            let loss = if own[r] >= top[r] {
                ln_1p_positive(others[r])
            } else {
                (top[r] - own[r]) + ln_of_normal(others[r] + mine[r])
            };
            *sum += if c[r] > 0.0 { c[r] * loss } else { 0.0 };
        }
    }
}
