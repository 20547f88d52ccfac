//! The row terms of a primal objective, as functions of the decision value, for several lanes at once.

use std::ops::Range;

use super::sweep::{ROW_CHUNK, sum_pieces};
use super::together::TOGETHER;
use crate::loss::Loss;
use crate::matrix::simd::{self, Loop};

/// The convex terms `f_i` of `1/2 |w|^2 + C sum_i f_i(z_i)`, `z_i = w.x_i + b`, one function per row and
/// lane. The derivative must be Lipschitz.
pub trait Objective<const L: usize>: Sync {
    /// `f_i(z)`, `f_i'(z)` and `f_i''(z)`, the last generalised where the derivative has a kink.
    fn all(&self, i: usize, z: &[f64; L]) -> [[f64; L]; 3];
    /// The same of rows from `i` on, with the same bits.
    #[inline(always)]
    fn all_of<const N: usize>(&self, i: usize, z: &[[f64; L]; N]) -> [[[f64; L]; N]; 3] {
        let mut terms = [[[0.0; L]; N]; 3];
        for n in 0..N {
            [terms[0][n], terms[1][n], terms[2][n]] = self.all(i + n, &z[n]);
        }
        terms
    }
}

/// `f_i(z) = cost[i] * xi(y[i] z)`: one binary problem.
pub struct Weighted<'a, T> {
    /// The loss.
    pub loss: T,
    /// Labels in {-1, +1}.
    pub y: &'a [f64],
    /// Cost per row.
    pub cost: &'a [f64],
}

impl<T: Loss> Objective<1> for Weighted<'_, T> {
    #[inline(always)]
    fn all(&self, i: usize, z: &[f64; 1]) -> [[f64; 1]; 3] {
        let terms = self.all_of(i, &[*z]);
        terms.map(|[term]| term)
    }
    #[inline(always)]
    fn all_of<const N: usize>(&self, i: usize, z: &[[f64; 1]; N]) -> [[[f64; 1]; N]; 3] {
        let (y, c) = (&self.y[i..i + N], &self.cost[i..i + N]);
        let mut margins = [0.0; N];
        for n in 0..N {
            margins[n] = y[n] * z[n][0];
        }
        let [value, slope, bend] = self.loss.all_of(margins);
        let mut terms = [[[0.0; 1]; N]; 3];
        for n in 0..N {
            terms[0][n] = [c[n] * value[n]];
            terms[1][n] = [c[n] * y[n] * slope[n]];
            terms[2][n] = [c[n] * bend[n]];
        }
        terms
    }
}

/// The decision values of all rows at which terms are asked for.
#[derive(Clone, Copy)]
pub enum DecisionValues<'a, const L: usize> {
    /// These.
    Here(&'a [[f64; L]]),
    /// These, moved by so much.
    Moved(&'a [[f64; L]], [f64; L]),
    /// These, so many steps away.
    Along(&'a [[f64; L]], &'a [[f64; L]], [f64; L]),
}

impl<const L: usize> DecisionValues<'_, L> {
    fn n_rows(&self) -> usize {
        let (Self::Here(z) | Self::Moved(z, _) | Self::Along(z, ..)) = self;
        z.len()
    }

    /// Of `N` rows from `i` on.
    #[inline(always)]
    fn rows<const N: usize>(&self, i: usize) -> [[f64; L]; N] {
        let (Self::Here(all) | Self::Moved(all, _) | Self::Along(all, ..)) = self;
        let (mut z, all) = ([[0.0; L]; N], &all[i..i + N]);
        z.copy_from_slice(all);
        match self {
            Self::Here(_) => (),
            Self::Moved(_, shift) => {
                for n in 0..N {
                    for l in 0..L {
                        z[n][l] += shift[l];
                    }
                }
            }
            Self::Along(_, step, length) => {
                let step = &step[i..i + N];
                for n in 0..N {
                    for l in 0..L {
                        z[n][l] += length[l] * step[n][l];
                    }
                }
            }
        }
        z
    }
}

/// Calls `f(i, z, terms)` for all of some rows, one or several from `i` on at a time, with their decision
/// values and their terms. Goes into [`simd::run`].
#[inline(always)]
pub fn each_terms<O: Objective<L>, const L: usize>(
    objective: &O,
    at: DecisionValues<'_, L>,
    rows: Range<usize>,
    mut f: impl FnMut(usize, &[[f64; L]], [&[[f64; L]]; 3]),
) {
    let mut i = rows.start;
    while L == 1 && i + TOGETHER <= rows.end {
        let z = at.rows::<TOGETHER>(i);
        let [value, slope, bend] = objective.all_of(i, &z);
        f(i, &z, [&value, &slope, &bend]);
        i += TOGETHER;
    }
    while i < rows.end {
        let z = at.rows::<1>(i);
        let [value, slope, bend] = objective.all_of(i, &z);
        f(i, &z, [&value, &slope, &bend]);
        i += 1;
    }
}

/// Sums over all rows of what `f` makes of a decision value and its terms in a lane.
pub fn sum_terms<O: Objective<L>, const K: usize, const L: usize>(
    objective: &O,
    at: DecisionValues<'_, L>,
    f: impl Fn(f64, [f64; 3]) -> [f64; K] + Sync,
) -> [[f64; L]; K] {
    sum_pieces(at.n_rows(), ROW_CHUNK, |rows| simd::run(TermSums { objective, at, rows, f: &f }))
}

/// [`sum_terms`] over some rows.
struct TermSums<'s, O, F, const K: usize, const L: usize> {
    objective: &'s O,
    at: DecisionValues<'s, L>,
    rows: Range<usize>,
    f: &'s F,
}

impl<O, F, const K: usize, const L: usize> Loop for TermSums<'_, O, F, K, L>
where
    O: Objective<L>,
    F: Fn(f64, [f64; 3]) -> [f64; K],
{
    type Output = [[f64; L]; K];
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) -> [[f64; L]; K] {
        let Self { objective, at, rows, f } = self;
        let mut sums = [TermSum::default(); K];
        each_terms(objective, at, rows, |_, z, [value, slope, bend]| {
            let mut parts = [[[0.0; L]; TOGETHER]; K];
            for n in 0..z.len() {
                for l in 0..L {
                    let found = f(z[n][l], [value[n][l], slope[n][l], bend[n][l]]);
                    for k in 0..K {
                        parts[k][n][l] = found[k];
                    }
                }
            }
            for k in 0..K {
                sums[k].add(&parts[k][..z.len()]);
            }
        });
        sums.map(|sum| sum.total())
    }
}

/// A sum over rows in as many parts as rows come together.
#[derive(Clone, Copy)]
pub struct TermSum<const L: usize>([[f64; L]; TOGETHER]);

impl<const L: usize> Default for TermSum<L> {
    fn default() -> Self {
        Self([[0.0; L]; TOGETHER])
    }
}

impl<const L: usize> TermSum<L> {
    /// Adds those of some rows that come together.
    #[inline(always)]
    pub fn add(&mut self, terms: &[[f64; L]]) {
        for (sum, term) in self.0.iter_mut().zip(terms) {
            for l in 0..L {
                sum[l] += term[l];
            }
        }
    }

    /// The sum of the parts.
    #[inline(always)]
    pub fn total(self) -> [f64; L] {
        let Self(mut sums) = self;
        let mut half = TOGETHER / 2;
        while half > 0 {
            for k in 0..half {
                for l in 0..L {
                    sums[k][l] += sums[k + half][l];
                }
            }
            half /= 2;
        }
        sums[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::newton::hinge::SmoothedHinge;
    use crate::loss::{Logistic, ModifiedHuber, SquaredHinge};
    use proptest::prelude::*;
    use std::sync::Arc;

    /// Terms of two lanes.
    struct Both<A, B>(A, B);

    impl<A: Objective<1>, B: Objective<1>> Objective<2> for Both<A, B> {
        fn all(&self, i: usize, z: &[f64; 2]) -> [[f64; 2]; 3] {
            let (a, b) = (self.0.all(i, &[z[0]]), self.1.all(i, &[z[1]]));
            std::array::from_fn(|k| [a[k][0], b[k][0]])
        }
    }

    fn summands(z: f64, [value, slope, bend]: [f64; 3]) -> [f64; 2] {
        [value - slope * z, bend]
    }

    /// Sums and terms by a plain loop, and whether they are those found several rows at once.
    fn check<O: Objective<L>, const L: usize>(terms: &O, at: DecisionValues<'_, L>, z: &[[f64; L]]) {
        let mut expected = [[0.0; L]; 2];
        let mut rows = 0;
        each_terms(terms, at, 0..z.len(), |i, found, parts| {
            assert_eq!(i, rows);
            for (k, found) in found.iter().enumerate() {
                assert_eq!(found, &z[i + k]);
                let one = terms.all(i + k, &z[i + k]);
                assert_eq!(parts.map(|part| part[k]), one);
                for l in 0..L {
                    let found = summands(z[i + k][l], one.map(|part| part[l]));
                    (0..2).for_each(|s| expected[s][l] += found[s]);
                }
            }
            rows += found.len();
        });
        assert_eq!(rows, z.len());
        let found = sum_terms(terms, at, summands);
        let size = 1e-11 * (1.0 + z.len() as f64) * z.iter().flatten().fold(1.0, |m: f64, z| m.max(z * z));
        for (found, expected) in found.as_flattened().iter().zip(expected.as_flattened()) {
            assert!((found - expected).abs() <= size, "{found} {expected}");
        }
    }

    proptest! {
        #[test]
        fn terms_of_several_rows_are_those_of_each(
            n in prop_oneof![0..40usize, ROW_CHUNK - 2..2 * ROW_CHUNK + 40],
            seed in 0..99usize,
            length in -2.0..2.0f64,
        ) {
            let wave = |k: usize| ((k * 13 + seed) as f64).sin() * 4.0;
            let y: Vec<f64> = (0..n).map(|i| if wave(i) > 0.5 { 1.0 } else { -1.0 }).collect();
            let cost: Vec<f64> = (0..n).map(|i| (i % 4) as f64).collect();
            let alpha = Arc::new(cost.iter().map(|c| 0.3 * c).collect());
            let z: Vec<[f64; 1]> = (0..n).map(|i| [wave(i + 7)]).collect();
            let step: Vec<[f64; 1]> = (0..n).map(|i| [wave(3 * i)]).collect();
            let along: Vec<[f64; 1]> = (0..n).map(|i| [z[i][0] + length * step[i][0]]).collect();
            let moved: Vec<[f64; 1]> = z.iter().map(|z| [z[0] + length]).collect();
            let (y, cost) = (&y[..], &cost[..]);
            let logistic = || Weighted { loss: Logistic, y, cost };
            check(&logistic(), DecisionValues::Here(&z), &z);
            check(&logistic(), DecisionValues::Moved(&z, [length]), &moved);
            check(&Weighted { loss: SquaredHinge, y, cost }, DecisionValues::Along(&z, &step, [length]), &along);
            check(&Weighted { loss: ModifiedHuber, y, cost }, DecisionValues::Here(&z), &z);
            let corner_cost: Vec<f64> = cost.iter().map(|c| c + 0.5).collect();
            let corners = SmoothedHinge { y, cost: &corner_cost, alpha, sigma: 0.7 };
            check(&corners, DecisionValues::Here(&z), &z);
            let two: Vec<[f64; 2]> = z.iter().zip(&along).map(|(z, a)| [z[0], a[0]]).collect();
            let both = Both(logistic(), Weighted { loss: SquaredHinge, y, cost });
            check(&both, DecisionValues::Here(&two), &two);
        }
    }
}
