//! The matrix `X'DX` for Newton steps by factorisation, when columns are few; a single fit makes each of the
//! one before ([`KeptMatrix`]).
//!
//! Tried, for a single fit with far more rows than columns: the matrix of a sample of the rows, with the
//! diagonal of all, as a preconditioner. Good for small `C` only. Passes and milliseconds, w8a, squared
//! hinge, C = 16: 18 and 86 with all rows, 41 and 191 with eight sampled rows per column, as columns that the
//! sample nearly misses have large eigenvalues; a9a, C = 1: 14 and 28 against 42 and 60.

use std::ops::Range;

use super::cholesky::Symmetric;
use super::frequent::FrequentColumns;
use super::sample::is_sampled;
use crate::fit::routes::DENSE_SHARE;
use crate::fit::sweep::{Sweep, for_chunks, sum};
use crate::matrix::Rows;
use crate::matrix::outer::OuterSum;
use crate::matrix::simd::{Wide, WideWork};
use crate::{memory, parallel};

/// Matrices summed in parallel; each costs `d^2` numbers to clear and add.
const MAX_PIECES: usize = 4;
/// Rows between two polls of the cancel flag.
const POLL_ROWS: usize = 1 << 12;

/// Matrices that a step by factorisation has where rows come in pieces: of the curvatures and its factor,
/// their sum over pieces and that of a piece, half of each, and those that threads add up.
const MATRICES: u64 = 7;

/// Memory of such a step with `d` columns: its matrices, and the nearly dense rows that wait to be added.
pub const fn step_bytes(d: u64) -> u64 {
    8 * MATRICES * d * d + (MAX_PIECES * OuterSum::bytes(d as usize)) as u64
}

/// Lower triangle of `sum_i curvature[i] x_i x_i'`, summed over the parts of the sweep in order; rows of
/// curvature 0 are not read. Meaningless if the sweep's monitor is cancelled: poll it afterwards.
pub fn curvature_matrix<const L: usize>(sweep: &Sweep<'_, L>, curvature: &[f64]) -> Symmetric {
    let n = sweep.design.n_cols();
    let mut matrix = Symmetric { n, values: memory::zeros(n * n) };
    add_rows(sweep, curvature, None, MAX_PIECES, &mut matrix);
    matrix
}

/// The block of some columns of [`curvature_matrix`], from every so many-th row
/// ([`FrequentColumns::every`]).
pub fn curvature_block<const L: usize>(
    sweep: &Sweep<'_, L>,
    curvature: &[f64],
    columns: &FrequentColumns,
) -> Symmetric {
    let (n, every) = (columns.order(), columns.every());
    let mut block = Symmetric { n, values: memory::zeros(n * n) };
    let mut sampled = memory::zeros(curvature.len());
    for_chunks(&mut sampled, |start, sampled| {
        for (k, sampled) in sampled.iter_mut().enumerate() {
            let is_in = is_sampled(start + k, every);
            *sampled = if is_in { every as f64 * curvature[start + k] } else { 0.0 };
        }
    });
    add_rows(sweep, &sampled, Some(columns), MAX_PIECES, &mut block);
    block
}

/// Adds `curvature[i] x_i x_i'` of all rows, all columns or some of them, in at most so many pieces at once.
fn add_rows<const L: usize>(
    sweep: &Sweep<'_, L>,
    curvature: &[f64],
    columns: Option<&FrequentColumns>,
    pieces: usize,
    matrix: &mut Symmetric,
) {
    let (design, d) = (&sweep.design, matrix.n);
    let parts = sweep.parts();
    let groups: Vec<_> = parts.chunks(parts.len().div_ceil(pieces)).collect();
    let mut others: Vec<Vec<f64>> = groups[1..].iter().map(|_| memory::zeros(d * d)).collect();
    let sums = std::iter::once(&mut matrix.values).chain(&mut others);
    parallel::each(groups.iter().zip(sums), |_, (group, lower)| {
        let mut triangle = Triangle::new(d, lower);
        for range in *group {
            for start in range.clone().step_by(POLL_ROWS) {
                if sweep.is_cancelled() {
                    break;
                }
                let rows = start..(start + POLL_ROWS).min(range.end);
                design.visit(Wide(Outer { triangle: &mut triangle, curvature, columns, rows }));
            }
        }
        triangle.finish();
    });
    for other in others {
        for (sum, v) in matrix.values.iter_mut().zip(other) {
            *sum += v;
        }
    }
}

/// [`curvature_matrix`] of the changes of a few curvatures.
pub fn change_of_matrix<const L: usize>(sweep: &Sweep<'_, L>, changes: &[f64]) -> Symmetric {
    let n = sweep.design.n_cols();
    let mut matrix = Symmetric { n, values: memory::zeros(n * n) };
    let entries = |i: usize| if changes[i] != 0.0 { sweep.design.row_len(i) as f64 } else { 0.0 };
    let [changed] = sum(changes.len(), |i| [entries(i)]);
    add_changes(sweep, changes, changed, &mut matrix);
    matrix
}

/// Adds changes of rows of so many entries: few in few pieces, each of which takes a matrix of its own.
fn add_changes<const L: usize>(sweep: &Sweep<'_, L>, changes: &[f64], changed: f64, matrix: &mut Symmetric) {
    let pieces = (changed / (matrix.n * matrix.n).max(1) as f64) as usize;
    add_rows(sweep, changes, None, pieces.clamp(1, MAX_PIECES), matrix);
}

/// The matrix of the Newton step before, of which the next one is made where few curvatures have changed:
/// those of the squared hinge are 0 or `2 c_i`, and more and more rows keep theirs.
pub struct KeptMatrix {
    /// Of order 0 before the first one.
    matrix: Symmetric,
    /// The curvatures that it is made of.
    made_of: Vec<f64>,
}

/// A matrix, and what it took.
pub struct Updated {
    /// The matrix.
    pub matrix: Symmetric,
    /// Rows read.
    pub read: usize,
    /// Share of the work of a new one.
    pub work: f64,
    /// Share by which its curvatures are off at most.
    pub off: f64,
}

impl KeptMatrix {
    /// None yet.
    pub fn none() -> Self {
        Self { matrix: Symmetric { n: 0, values: Vec::new() }, made_of: Vec::new() }
    }

    /// [`curvature_matrix`], kept for later ones.
    pub fn anew<const L: usize>(&mut self, sweep: &Sweep<'_, L>, curvature: &[f64]) -> Updated {
        let read = curvature.iter().filter(|bend| **bend != 0.0).count();
        self.matrix = curvature_matrix(sweep, curvature);
        if self.made_of.len() == curvature.len() {
            self.made_of.copy_from_slice(curvature);
        } else {
            self.made_of = memory::copy(curvature);
        }
        Updated { matrix: self.matrix.clone(), read, work: 1.0, off: 0.0 }
    }

    /// Adds the rows whose curvature has changed by more than a share of `off`; none without a matrix, or
    /// where that takes more than a share of `most` of the work of a new one. If cancelled, it is no more
    /// than what [`curvature_matrix`] is then.
    pub fn follow<const L: usize>(
        &mut self,
        sweep: &Sweep<'_, L>,
        curvature: &[f64],
        (off, most): (f64, f64),
    ) -> Option<Updated> {
        let Self { matrix, made_of } = self;
        if matrix.n != sweep.design.n_cols() {
            return None;
        }
        let change = |i: usize| {
            let (now, then) = (curvature[i], made_of[i]);
            if (now - then).abs() > off * then { now - then } else { 0.0 }
        };
        let entries = |is_in: bool, i: usize| if is_in { sweep.design.row_len(i) as f64 } else { 0.0 };
        let [changed, curved, read] = sum(curvature.len(), |i| {
            let has_changed = change(i) != 0.0;
            [entries(has_changed, i), entries(curvature[i] != 0.0, i), f64::from(u8::from(has_changed))]
        });
        if changed > most * curved {
            return None;
        }
        let mut changes = memory::zeros(curvature.len());
        for_chunks(&mut changes, |start, changes| {
            changes.iter_mut().enumerate().for_each(|(k, c)| *c = change(start + k));
        });
        add_changes(sweep, &changes, changed, matrix);
        let mut left = 0.0f64;
        for ((then, now), change) in made_of.iter_mut().zip(curvature).zip(changes) {
            if change != 0.0 {
                *then = *now;
            } else if now != then {
                left = left.max((now - *then).abs() / *then);
            }
        }
        let work = changed / curved.max(1.0);
        Some(Updated { matrix: matrix.clone(), read: read as usize, work, off: left })
    }
}

/// Adds the products of some rows to a triangle.
struct Outer<'s, 't> {
    triangle: &'s mut Triangle<'t>,
    curvature: &'s [f64],
    columns: Option<&'s FrequentColumns>,
    rows: Range<usize>,
}

impl WideWork for Outer<'_, '_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run<R: Rows>(self, rows: &R) {
        for i in self.rows {
            match (self.curvature[i], self.columns) {
                (0.0, _) => (),
                (scale, None) => self.triangle.add(rows, i, scale),
                (scale, Some(columns)) => self.triangle.add_some(rows, i, columns, scale),
            }
        }
    }
}

/// A lower triangle to which rows are added.
struct Triangle<'s> {
    d: usize,
    lower: &'s mut [f64],
    /// Entries of the present row.
    row: Vec<(usize, f64)>,
    /// Dense rows on their way.
    dense: OuterSum,
}

impl<'s> Triangle<'s> {
    fn new(d: usize, lower: &'s mut [f64]) -> Self {
        Self { d, lower, row: Vec::new(), dense: OuterSum::new(d) }
    }

    #[inline(always)]
    fn add<R: Rows>(&mut self, rows: &R, i: usize, scale: f64) {
        if rows.row_len(i) * DENSE_SHARE >= self.d {
            self.dense.add(self.lower, scale, |row| rows.add_scaled(i, 1.0, row));
        } else {
            self.row.clear();
            rows.for_each(i, |j, v| self.row.push((j, v)));
            self.add_pairs(scale);
        }
    }

    /// The same with some of the columns.
    #[inline(always)]
    fn add_some<R: Rows>(&mut self, rows: &R, i: usize, columns: &FrequentColumns, scale: f64) {
        self.row.clear();
        rows.for_each(i, |j, v| {
            if let Some(k) = columns.position(j) {
                self.row.push((k, v));
            }
        });
        if self.row.len() * DENSE_SHARE >= self.d {
            self.dense.add(self.lower, scale, |row| self.row.iter().for_each(|&(j, v)| row[j] = v));
        } else {
            self.add_pairs(scale);
        }
    }

    /// Adds the present row entry by entry; with columns in rising order, each lands left of the diagonal by
    /// itself.
    ///
    /// Tried: columns in 32 bits beside their values, four entries loaded before any is stored, one product a
    /// line where all values are equal. By itself 0.5 to 0.6 ns an entry instead of 0.7 to 0.85; in fits no
    /// gain (logistic, C = 1, 1e-4, milliseconds before and then: a9a 25 and 29, covtype 290 and 315).
    fn add_pairs(&mut self, scale: f64) {
        if !self.row.is_sorted_by_key(|&(j, _)| j) {
            self.row.sort_unstable_by_key(|&(j, _)| j);
        }
        for (k, &(i, v)) in self.row.iter().enumerate() {
            let (target, t) = (&mut self.lower[i * self.d..(i + 1) * self.d], scale * v);
            for &(j, u) in &self.row[..=k] {
                target[j] += t * u;
            }
        }
    }

    fn finish(mut self) {
        self.dense.flush(self.lower);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::newton::row_state::RowState;
    use crate::fit::newton::{InMemory, Newton, Shape, factorisation::factorisation};
    use crate::fit::objective::Weighted;
    use crate::fit::stop::NewtonStop;
    use crate::fit::waves::Waves;
    use crate::fit::{Intercept, Silent};
    use crate::loss::{Logistic, ModifiedHuber, SquaredHinge};
    use proptest::prelude::*;

    /// Curvatures as of the squared hinge (`is_flat`), or any; those of one step in `share` rows differ from
    /// those of the step before.
    fn curvatures(n: usize, seed: u64, is_flat: bool, share: u64) -> Vec<f64> {
        let hash = |i: usize, salt: u64| (i as u64 ^ salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let salt = |i: usize| if hash(i, 17).is_multiple_of(share) { seed } else { 3 };
        let number = |i: usize| (hash(i, salt(i)) % 1000) as f64 / 999.0;
        (0..n).map(|i| if is_flat { 2.0 * number(i).round() } else { number(i) }).collect()
    }

    proptest! {
        /// The definition: `x'Mx` for the kept matrix is between those of all curvatures less and more by the
        /// share that it says.
        #[test]
        fn matrices_that_are_followed_are_as_close_as_they_say(
            n in 2..300usize,
            d in 1..9usize,
            is_flat: bool,
            share in 1..12u64,
            off in 0.0..0.5f64,
            seeds in proptest::collection::vec(0..1000u64, 1..5),
        ) {
            let waves = Waves::new(n, d, 1.0, 7);
            let rows = waves.rows();
            let design = waves.problem(&rows, 0).design(0.0);
            let sweep = Sweep::<1>::new(design, &Silent);
            let mut kept = KeptMatrix::none();
            for (k, seed) in seeds.into_iter().enumerate() {
                let bends = curvatures(n, seed, is_flat, share);
                let last = kept.follow(&sweep, &bends, (off, 0.6));
                let is_new = last.is_none();
                prop_assert!(k > 0 || is_new);
                let found = last.unwrap_or_else(|| kept.anew(&sweep, &bends));
                prop_assert!(found.off <= off && (!is_new && found.work <= 0.6 || found.work == 1.0));
                prop_assert!(found.off == 0.0 || !is_flat);
                let x: Vec<f64> = (0..d).map(|j| ((j * 37 + k) as f64).sin()).collect();
                let form = |product: &[f64]| product.iter().zip(&x).map(|(p, x)| p * x).sum::<f64>();
                let (approximate, mut exact) = (form(&found.matrix.times(&x)), 0.0);
                for (i, bend) in bends.iter().enumerate() {
                    let mut dot = 0.0;
                    design.for_each(i, |j, v| dot += v * x[j]);
                    exact += bend * dot * dot;
                }
                let rounding = 1e-12 * (1.0 + exact);
                prop_assert!((exact - approximate).abs() <= found.off * approximate + rounding);
            }
        }
    }

    /// Steps with new matrices and products only, and with kept ones: the same optimum.
    fn check_steps<T: crate::fit::dual::DualLoss>(waves: &Waves, intercept: usize, loss: T) {
        let rows = waves.rows();
        let problem = waves.problem(&rows, intercept);
        let design = problem.design(problem.intercept.bias());
        let objective = Weighted { loss, y: problem.y, cost: problem.cost };
        let shape = Shape {
            n_columns: design.n_cols(),
            intercept: problem.intercept,
            n_lanes: 1,
            keeps_dual: true,
            factorisation: factorisation(&design),
            are_far: false,
        };
        let stop = NewtonStop::RelativeGap(1e-11);
        let mut plain = Newton::<_, 1>::over(RowState::new(design, true, &Silent), &shape, &Silent);
        let mut keeping = InMemory::<1>::new(&problem, 1, true, &Silent);
        let [one] = plain.minimise(&objective, 1.0, &stop, 100).unwrap();
        let [two] = keeping.minimise(&objective, 1.0, &stop, 100).unwrap();
        assert!(one.relative_gap() <= 1e-11 && two.relative_gap() <= 1e-11, "{one:?} {two:?}");
        let apart = (one.certificate.primal - two.certificate.primal).abs();
        assert!(apart <= 2e-11 * one.certificate.primal, "{one:?} {two:?}");
        assert!(two.steps <= one.steps + 2, "{} {}", one.steps, two.steps);
        // The curvatures of the logistic loss change everywhere.
        let is_flat = loss.curvature(0.9) == loss.curvature(0.8);
        let share = if is_flat { 0.9 } else { 1.0 };
        let work = (keeping.work.factorisations, plain.work.factorisations);
        assert!(work.0 <= share * work.1, "{work:?}");
        assert!(problem.intercept == Intercept::Free || keeping.work.products == 0, "{:?}", keeping.work);
    }

    #[test]
    fn steps_by_kept_matrices_find_the_same_optimum() {
        let waves = Waves::new(4000, 20, 4.0, 3);
        for intercept in 0..3 {
            check_steps(&waves, intercept, SquaredHinge);
            check_steps(&waves, intercept, ModifiedHuber);
            check_steps(&waves, intercept, Logistic);
        }
    }
}
