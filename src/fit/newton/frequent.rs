//! The most frequent columns, whose block of `X'DX` preconditions the conjugate gradient where columns are
//! too many for all of it and rows outnumber them: the one-hot table.
//!
//! A few columns of such a table have most of its entries, and what they have in common with each other is
//! what makes its Hessian hard. Products of the conjugate gradient until the residual is at 0.3, 0.1, 0.01
//! and 0.001 of a random combination of rows (flights, 17,699 columns, at the solution; by LIBLINEAR's
//! share of 0.01 of the diagonal, all of the diagonal, and besides it the block of 500 and 1,000 columns):
//!
//! ```text
//!                          0.01               all                  500                1,000
//! squared hinge, C = 1     11  23  37  190     8  14  29  170      7   8  25   97      8  10  21  70
//! logistic, C = 16         20  24  49  222     8  16  41  203      6  11  33  111      8  11  29  84
//! ```
//!
//! Of all rows the block takes 2.5 and 2.9 products there, of a sample ([`FREQUENT_ROWS`]) a third of one.
//! Where columns outnumber rows (20news, imdb, phishing_urls) it saves nothing: 4, 7, 17 and 35 products of
//! 20news (C = 16) become 4, 6, 29 and 77.
//!
//! Tried: directions with the least residual in the plain norm (generalised conjugate residuals) instead of
//! the conjugate gradient, since the gap of the slopes is half of that norm squared. After 10 to 60 products
//! on flights it is 3 to 30 times smaller, the fall of the model hardly less (squared hinge, C = 1, 30
//! products: 0.042 instead of 1.35 of the gradient, 0.079 instead of 0.069 of the fall missing). But what
//! ends a fit late is then the distance of the weights: eight fits (C = 1 and 16, both smooth losses, 1e-2
//! and 1e-4) take 0.96 of the time in the mean, one 91 passes instead of 161, four more than before; the
//! hinge by Newton alone 2.9, 12.1 and 32 s instead of 5.4, 10.6 and 25 to 1e-2, 1e-4 and 1e-6. On imdb, by
//! the diagonal, they take half as long again.
//!
//! Tried: in searches, too, whose lanes end at a norm of the gradient. They take half the time (flights,
//! squared hinge and logistic, 3.5 instead of 7 s and 8.2 instead of 14 s), but partly because that norm
//! falls sooner than the error: most of it is in the frequent columns. With the squared hinge weights were
//! kept from C = 2^-9 to 2^-5 at an accuracy of 0.7789, where closer fits have up to 0.7796. With the norm of
//! the other columns to fall by the same share as well, no weights are kept too long, and the searches take
//! 0.8 (squared hinge) and 1.05 times (logistic) as long as without a block.
//!
//! Tried: a tenth or all of the diagonal instead of LIBLINEAR's hundredth where there is no block (20news,
//! imdb, C = 1 and 16, gaps of 1e-1 to 1e-4): the same steps, and times within the noise.

use super::factorisation::{Factorisation, Form, of_sums, pairs_of_row};
use super::sample::is_sampled;
use crate::fit::routes::{
    EASY_SAMPLE, FREQUENT_COLUMNS, FREQUENT_PASSES, FREQUENT_ROWS, MAX_CHOLESKY_COLUMNS,
};
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::memory::{self, CollectLarge};

/// Position of a column that is not frequent.
const NONE: u32 = u32::MAX;

/// Rows of which columns are chosen and what they cost is estimated.
fn sample(design: &Design<'_>) -> impl Iterator<Item = usize> {
    let every = design.n_rows().div_ceil(EASY_SAMPLE).max(1);
    (0..design.n_rows()).filter(move |i| is_sampled(*i, every))
}

/// What the block of so many columns and its factor cost, of rows with so many entries and products
/// ([`pairs_of_row`]) for all of them together.
pub fn block_passes(order: usize, n_rows: usize, [entries, pairs]: [f64; 2]) -> f64 {
    let share = ((FREQUENT_ROWS * order) as f64 / n_rows as f64).min(1.0);
    of_sums(order, [entries, share * pairs], false).passes
}

/// Which columns.
pub struct FrequentColumns {
    /// In rising order.
    columns: Vec<u32>,
    /// Where each column is among them.
    position: Vec<u32>,
    /// Every how many-th row their block is made of.
    every: usize,
    cost: f64,
}

impl FrequentColumns {
    /// Those with the largest sums of squares; none where all columns are few enough for a matrix of them, or
    /// more than rows, or where the block is too dear.
    pub fn of(design: &Design<'_>) -> Option<Self> {
        let (n, d) = (design.n_rows(), design.n_cols());
        let found = (d > MAX_CHOLESKY_COLUMNS && n >= d).then(|| Self::most(FREQUENT_COLUMNS, design));
        found.filter(|found| found.cost <= FREQUENT_PASSES)
    }

    /// So many of those with the largest sums of squares over a sample of the rows: most fits are done before
    /// a block is made, and a reading of all rows is a tenth of a quick one.
    pub fn most(most: usize, design: &Design<'_>) -> Self {
        let mut sums = memory::zeros::<f64>(design.n_cols());
        sample(design).for_each(|i| design.for_each(i, |j, v| sums[j] += v * v));
        let mut found = Self::largest(most, &sums, design.n_rows());
        found.cost = found.passes(design);
        found
    }

    /// So many of those with the largest of these numbers, for so many rows.
    pub fn largest(most: usize, sums: &[f64], n_rows: usize) -> Self {
        let mut columns = (0..sums.len() as u32).collect_large();
        let larger = |a: &u32, b: &u32| sums[*b as usize].total_cmp(&sums[*a as usize]).then(a.cmp(b));
        columns.select_nth_unstable_by(most - 1, larger);
        columns.truncate(most);
        columns.sort_unstable();
        let mut position = memory::filled(NONE, sums.len());
        for (k, j) in columns.iter().enumerate() {
            position[*j as usize] = k as u32;
        }
        Self { columns, position, every: (n_rows / (FREQUENT_ROWS * most)).max(1), cost: 0.0 }
    }

    /// These, in rising order, for a block of every so many-th row; `names` are what each of the rows' own
    /// columns is called there.
    pub fn named(columns: Vec<u32>, every: usize, names: impl Iterator<Item = u32>) -> Self {
        let position = names.map(|j| columns.binary_search(&j).map_or(NONE, |k| k as u32)).collect_large();
        Self { columns, position, every, cost: 0.0 }
    }

    /// What the block and its factor cost, from the same sample.
    fn passes(&self, design: &Design<'_>) -> f64 {
        let (mut entries, mut pairs, mut sampled) = (0.0, 0.0, 0.0);
        for i in sample(design) {
            let mut frequent = 0;
            design.for_each(i, |j, _| frequent += usize::from(self.position(j).is_some()));
            entries += design.row_len(i) as f64;
            pairs += pairs_of_row(frequent, self.order());
            sampled += 1.0;
        }
        let all = design.n_rows() as f64 / f64::max(sampled, 1.0);
        block_passes(self.order(), design.n_rows(), [all * entries, all * pairs])
    }

    /// What its block costs.
    pub fn factorisation(&self) -> Factorisation {
        Factorisation { passes: self.cost, is_worth_it: true, form: Form::Frequent }
    }

    /// Every how many-th row their block is made of.
    pub fn every(&self) -> usize {
        self.every
    }

    /// Which they are, in rising order.
    pub fn columns(&self) -> &[u32] {
        &self.columns
    }

    /// How many they are, the order of the block.
    pub fn order(&self) -> usize {
        self.columns.len()
    }

    /// Where a column is among them.
    #[inline(always)]
    pub fn position(&self, column: usize) -> Option<usize> {
        let position = self.position[column];
        (position != NONE).then_some(position as usize)
    }

    /// How many come before a column.
    pub fn before(&self, column: usize) -> usize {
        self.columns.partition_point(|j| (*j as usize) < column)
    }

    /// Their entries of a vector.
    pub fn gather<const L: usize>(&self, all: &[[f64; L]]) -> Vec<[f64; L]> {
        self.columns.iter().map(|j| all[*j as usize]).collect_large()
    }

    /// Overwrites their entries of a vector.
    pub fn scatter<const L: usize>(&self, block: &[[f64; L]], all: &mut [[f64; L]]) {
        for (j, value) in self.columns.iter().zip(block) {
            all[*j as usize] = *value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Silent;
    use crate::fit::newton::cg::{CgLimits, ConjugateGradient};
    use crate::fit::newton::hessian::{curvature_block, curvature_matrix};
    use crate::fit::newton::passes::squares;
    use crate::fit::newton::preconditioner::{Gram, Preconditioner};
    use crate::fit::sweep::Sweep;
    use crate::fit::waves::Waves;
    use crate::matrix::lanes::Block;
    use proptest::prelude::*;
    use std::sync::Arc;

    /// Columns by hand: those of the largest sums of squares over the rows in the sample.
    fn largest(design: &Design<'_>, most: usize) -> Vec<usize> {
        let mut sums = vec![(0.0, 0); design.n_cols()];
        sums.iter_mut().enumerate().for_each(|(j, sum)| sum.1 = j);
        let every = design.n_rows().div_ceil(EASY_SAMPLE);
        for i in (0..design.n_rows()).filter(|i| is_sampled(*i, every)) {
            design.for_each(i, |j, v| sums[j].0 -= v * v);
        }
        sums.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let mut columns: Vec<usize> = sums[..most].iter().map(|(_, j)| *j).collect();
        columns.sort_unstable();
        columns
    }

    proptest! {
        /// The block is that of the whole matrix.
        #[test]
        fn blocks_are_those_of_the_whole_matrix(
            n in 2..10_000usize,
            d in 1..12usize,
            share in 0.0..1.0f64,
            intercept in 0..3usize,
            seed in 0..100usize,
        ) {
            let waves = Waves::new(n, d, 1.0, seed);
            let rows = waves.rows();
            let problem = waves.problem(&rows, intercept);
            let sweep = Sweep::<1>::new(problem.design(problem.intercept.bias()), &Silent);
            let d = sweep.design.n_cols();
            let most = 1 + (share * d as f64) as usize;
            let columns = Arc::new(FrequentColumns::most(most, &sweep.design));
            let expected = largest(&sweep.design, most);
            prop_assert_eq!(columns.order(), most);
            for (k, j) in expected.iter().enumerate() {
                prop_assert_eq!(columns.position(*j), Some(k));
                prop_assert_eq!(columns.before(*j), k);
            }
            prop_assert_eq!((0..d).filter_map(|j| columns.position(j)).count(), most);
            let bends: Vec<f64> = (0..n).map(|i| ((i * 31 + seed) % 7) as f64 / 3.0).collect();
            let every = columns.every();
            prop_assert_eq!(every, (n / (FREQUENT_ROWS * most)).max(1));
            let weight = |i: usize| if is_sampled(i, every) { every as f64 } else { 0.0 };
            let whole = curvature_matrix(&sweep, &(0..n).map(|i| weight(i) * bends[i]).collect::<Vec<_>>());
            let block = curvature_block(&sweep, &bends, &columns);
            for (a, i) in expected.iter().enumerate() {
                for (b, j) in expected[..=a].iter().enumerate() {
                    let (found, expected) = (block.values[a * most + b], whole.values[i * d + j]);
                    prop_assert!((found - expected).abs() <= 1e-11 * (1.0 + expected.abs()));
                }
            }
        }
    }

    /// Solutions of `(I + 2 G) s = -g` in two lanes, and the products that they took, with all columns but
    /// the last two in the block, with all of them, and by the diagonal.
    #[test]
    fn steps_are_the_same_and_take_fewer_products() {
        let waves = Waves::new(300, 30, 1.0, 5);
        let rows = waves.rows();
        let mut sweep = Sweep::<1>::new(waves.problem(&rows, 0).design(0.0), &Silent);
        let (d, bends) = (30, vec![1.5; 300]);
        let whole = curvature_matrix(&sweep, &bends);
        let diagonal = squares(&mut sweep, &bends);
        let frequent = |most| {
            let columns = Arc::new(FrequentColumns::most(most, &sweep.design));
            let block = curvature_block(&sweep, &bends, &columns);
            Gram::Frequent { diagonal: diagonal.clone(), columns, block }
        };
        let grams = [Gram::Diagonal(diagonal.clone()), frequent(28), frequent(d)];
        let solve = |gram: &Gram| {
            let (mut step, mut cg) = (Block::<2>::zeros(d), ConjugateGradient::new(d));
            let limits = CgLimits {
                accuracy: [1e-13; 2],
                squared_residual: [1e-24; 2],
                residual_per_fall: 0.0,
                products: usize::MAX,
                fall: [f64::INFINITY; 2],
            };
            let gradient = |k: usize| [(k as f64).sin(), (k as f64).cos()];
            let matrix = Preconditioner::new(gram, d, 2.0);
            let outcome = cg.solve(gradient, &matrix, &limits, [true; 2], &mut step, |p, _, out| {
                for l in 0..2 {
                    let x: Vec<f64> = p.iter().map(|p| p[l]).collect();
                    let product = whole.times(&x);
                    (0..d).for_each(|j| out[j][l] = x[j] + 2.0 * product[j]);
                }
                Ok::<(), ()>(())
            });
            (outcome.unwrap().products, step)
        };
        let [(by_diagonal, exact), (by_block, one), (by_all, two)] = grams.each_ref().map(solve);
        for (exact, found) in exact.iter().zip(one.iter()).chain(exact.iter().zip(two.iter())) {
            assert!((0..2).all(|l| (exact[l] - found[l]).abs() < 1e-9), "{exact:?} {found:?}");
        }
        assert!(by_all <= 2 && by_block < by_diagonal, "{by_all} {by_block} {by_diagonal}");
    }
}
