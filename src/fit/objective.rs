//! The row terms of a primal objective, as functions of the decision value, for several lanes at once.

use std::ops::Range;

use super::sweep::{ROW_CHUNK, sum_pieces};
use super::together::{OfRows, TOGETHER, Together, entries};
use crate::loss::Loss;
use crate::matrix::simd;

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
pub trait DecisionValues<const L: usize>: Copy + Sync {
    /// Number of rows.
    fn n_rows(&self) -> usize;
    /// Those of `N` rows from `i` on.
    fn rows<const N: usize>(&self, i: usize) -> [[f64; L]; N];
}

/// These.
#[derive(Clone, Copy)]
pub struct Unmoved<'a, const L: usize>(pub &'a [[f64; L]]);

/// These, moved by so much.
#[derive(Clone, Copy)]
pub struct Shifted<'a, const L: usize>(pub &'a [[f64; L]], pub [f64; L]);

/// These, so many steps away.
#[derive(Clone, Copy)]
pub struct Along<'a, const L: usize>(pub &'a [[f64; L]], pub &'a [[f64; L]], pub [f64; L]);

impl<const L: usize> DecisionValues<L> for Unmoved<'_, L> {
    fn n_rows(&self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn rows<const N: usize>(&self, i: usize) -> [[f64; L]; N] {
        entries(self.0, i)
    }
}

impl<const L: usize> DecisionValues<L> for Shifted<'_, L> {
    fn n_rows(&self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn rows<const N: usize>(&self, i: usize) -> [[f64; L]; N] {
        let mut z: [[f64; L]; N] = entries(self.0, i);
        for n in 0..N {
            for l in 0..L {
                z[n][l] += self.1[l];
            }
        }
        z
    }
}

impl<const L: usize> DecisionValues<L> for Along<'_, L> {
    fn n_rows(&self) -> usize {
        self.0.len()
    }
    #[inline(always)]
    fn rows<const N: usize>(&self, i: usize) -> [[f64; L]; N] {
        let (mut z, step): ([[f64; L]; N], _) = (entries(self.0, i), &self.1[i..i + N]);
        for n in 0..N {
            for l in 0..L {
                z[n][l] += self.2[l] * step[n][l];
            }
        }
        z
    }
}

/// What is done with the terms of successive rows, in one lane several at once.
pub trait OfTerms<const L: usize> {
    /// Does it for `N` rows from the `i`-th on, at their decision values `z`.
    fn take<const N: usize>(&mut self, i: usize, z: &[[f64; L]; N], terms: &[[[f64; L]; N]; 3]);
}

/// Gives a piece of work the terms of some rows.
pub fn each_terms<O: Objective<L>, const L: usize>(
    objective: &O,
    at: impl DecisionValues<L>,
    rows: Range<usize>,
    work: &mut impl OfTerms<L>,
) {
    let [] = simd::run(Together(Terms { objective, at, work }, rows));
}

/// [`each_terms`] of some rows.
struct Terms<'s, O, A, W, const L: usize> {
    objective: &'s O,
    at: A,
    work: &'s mut W,
}

impl<O, A, W, const L: usize> OfRows<0> for Terms<'_, O, A, W, L>
where
    O: Objective<L>,
    A: DecisionValues<L>,
    W: OfTerms<L>,
{
    const GAINS: bool = L == 1;
    #[inline(always)]
    fn add<const N: usize>(&mut self, i: usize, _: &mut [f64; 0]) {
        let z = self.at.rows::<N>(i);
        self.work.take(i, &z, &self.objective.all_of(i, &z));
    }
}

/// Sums over all rows of what `f` makes of a decision value and its terms in a lane.
pub fn sum_terms<O: Objective<L>, const K: usize, const L: usize>(
    objective: &O,
    at: impl DecisionValues<L>,
    f: impl Fn(f64, [f64; 3]) -> [f64; K] + Sync,
) -> [[f64; L]; K] {
    sum_pieces(at.n_rows(), ROW_CHUNK, |rows| {
        let mut work = TermSums { f: &f, sums: [TermSum::default(); K] };
        each_terms(objective, at, rows, &mut work);
        work.sums.map(TermSum::total)
    })
}

/// [`sum_terms`] of some rows.
struct TermSums<'s, F, const K: usize, const L: usize> {
    f: &'s F,
    sums: [TermSum<L>; K],
}

impl<F: Fn(f64, [f64; 3]) -> [f64; K], const K: usize, const L: usize> OfTerms<L> for TermSums<'_, F, K, L> {
    #[inline(always)]
    fn take<const N: usize>(&mut self, i: usize, z: &[[f64; L]; N], terms: &[[[f64; L]; N]; 3]) {
        let [value, slope, bend] = terms;
        let mut parts = [[[0.0; L]; N]; K];
        for n in 0..N {
            for l in 0..L {
                let found = (self.f)(z[n][l], [value[n][l], slope[n][l], bend[n][l]]);
                for k in 0..K {
                    parts[k][n][l] = found[k];
                }
            }
        }
        for (sum, parts) in self.sums.iter_mut().zip(&parts) {
            sum.add(i, parts);
        }
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
    /// Adds those of the rows from `i` on, one or all that come together.
    #[inline(always)]
    pub fn add<const N: usize>(&mut self, i: usize, terms: &[[f64; L]; N]) {
        // Those that come alone take turns: each sum would have to wait for the one before.
        let turn = if N == 1 { i % TOGETHER } else { 0 };
        for n in 0..N {
            for l in 0..L {
                self.0[turn + n][l] += terms[n][l];
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

    /// Takes rows that follow each other and have the terms of each alone.
    struct Plain<'s, O, const L: usize> {
        terms: &'s O,
        z: &'s [[f64; L]],
        rows: usize,
        sums: [[f64; L]; 2],
    }

    impl<O: Objective<L>, const L: usize> OfTerms<L> for Plain<'_, O, L> {
        fn take<const N: usize>(&mut self, i: usize, z: &[[f64; L]; N], terms: &[[[f64; L]; N]; 3]) {
            assert_eq!((i, &z[..]), (self.rows, &self.z[i..i + N]));
            for n in 0..N {
                let one = self.terms.all(i + n, &z[n]);
                assert_eq!(terms.map(|term| term[n]), one);
                for l in 0..L {
                    let found = summands(z[n][l], one.map(|part| part[l]));
                    (0..2).for_each(|s| self.sums[s][l] += found[s]);
                }
            }
            self.rows += N;
        }
    }

    fn summands(z: f64, [value, slope, bend]: [f64; 3]) -> [f64; 2] {
        [value - slope * z, bend]
    }

    /// Sums and terms by a plain loop, and whether they are those found several rows at once.
    fn check<O: Objective<L>, const L: usize>(terms: &O, at: impl DecisionValues<L>, z: &[[f64; L]]) {
        let mut plain = Plain { terms, z, rows: 0, sums: [[0.0; L]; 2] };
        each_terms(terms, at, 0..z.len(), &mut plain);
        let Plain { rows, sums: expected, .. } = plain;
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
            check(&logistic(), Unmoved(&z), &z);
            check(&logistic(), Shifted(&z, [length]), &moved);
            check(&Weighted { loss: SquaredHinge, y, cost }, Along(&z, &step, [length]), &along);
            check(&Weighted { loss: ModifiedHuber, y, cost }, Unmoved(&z), &z);
            let corner_cost: Vec<f64> = cost.iter().map(|c| c + 0.5).collect();
            let corners = SmoothedHinge { y, cost: &corner_cost, alpha, sigma: 0.7 };
            check(&corners, Unmoved(&z), &z);
            let two: Vec<[f64; 2]> = z.iter().zip(&along).map(|(z, a)| [z[0], a[0]]).collect();
            let both = Both(logistic(), Weighted { loss: SquaredHinge, y, cost });
            check(&both, Unmoved(&two), &two);
        }
    }
}
