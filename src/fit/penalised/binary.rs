//! The smooth part of binary problems: a decision value for each row.

use super::PenalisedProblem;
use super::chosen_columns::ChosenColumns;
use super::coordinates::Coordinates;
use super::entries::RowModels;
use super::free_columns::onto_free_columns;
use super::half_parabolas::HalfParabolas;
use super::matrix_of_rows::add_products;
use super::smooth::SmoothTerms;
use super::smooth_part::{Losses, SmoothPart};
use crate::fit::monitor::Monitor;
use crate::fit::sweep::ROW_CHUNK;
use crate::fit::together::{OfRows, Together, entries, sum_rows};
use crate::matrix::simd;
use crate::memory::CollectLarge;
use crate::parallel;
use crate::{Result, memory};

/// Smooth terms of the decision values of a binary problem.
#[derive(Clone, Copy)]
pub struct BinaryLosses<'a, S> {
    /// The problem.
    pub problem: &'a PenalisedProblem<'a>,
    /// The terms of its rows.
    pub smooth: &'a S,
}

impl<S: SmoothTerms> SmoothPart for BinaryLosses<'_, S> {
    type Rows<'s>
        = BinaryRows<'s>
    where
        Self: 's;

    fn coordinates(&self) -> Coordinates<'_> {
        self.problem.coordinates()
    }

    fn evaluate(&self, losses: &mut Losses) {
        let Losses { z, value, slope, bend } = losses;
        let mut sums: Vec<f64> = vec![0.0; z.len().div_ceil(ROW_CHUNK)];
        let pieces = slope.chunks_mut(ROW_CHUNK).zip(bend.chunks_mut(ROW_CHUNK)).zip(&mut sums);
        parallel::each(pieces, |chunk, ((slope, bend), sum)| {
            let first = chunk * ROW_CHUNK;
            let rows = first..first + slope.len();
            let terms = TermsOfRows { smooth: self.smooth, cost: self.problem.cost, z, first, slope, bend };
            [*sum] = simd::run(Together(terms, rows));
        });
        *value = sums.iter().sum();
    }

    fn largest_bend(&self, column: usize) -> f64 {
        let [bend] = self.problem.columns.sum(column, |i, x| [self.smooth.largest_bend(i) * x * x]);
        bend
    }

    fn is_curved(&self, losses: &Losses) -> bool {
        losses.bend.iter().zip(self.problem.cost).all(|(bend, cost)| *bend > 0.0 || *cost == 0.0)
    }

    fn row_models<'s>(&'s self, list: &'s [u32], losses: &'s Losses, _: &'s [f64]) -> BinaryRows<'s> {
        let rows = losses.slope.iter().zip(&losses.bend).map(|(g, h)| [*g, *h]).collect_large();
        BinaryRows { coordinates: self.coordinates(), list, rows }
    }

    fn half_parabolas<'s>(&'s self, list: &'s [u32], losses: &Losses) -> Option<HalfParabolas<'s>> {
        let of_row =
            |(i, z): (usize, &f64)| self.smooth.half_parabola(i).map(|[kink, bend]| [z - kink, bend]);
        let rows: Option<Vec<[f64; 2]>> = losses.z.iter().enumerate().map(of_row).collect();
        Some(HalfParabolas::new(self.coordinates(), list, rows?))
    }

    fn matrix(
        &self,
        chosen: &ChosenColumns<'_>,
        _: &[u32],
        losses: &Losses,
        monitor: &dyn Monitor,
    ) -> Result<Vec<f64>> {
        let mut matrix = memory::zeros(chosen.n_columns().pow(2));
        add_products(chosen, &losses.bend, &mut matrix, monitor)?;
        Ok(matrix)
    }

    fn row_weights<'l>(&self, losses: &'l Losses) -> Option<&'l [f64]> {
        self.smooth.is_piecewise().then_some(&losses.bend[..])
    }

    fn dual_terms(&self, slope: &[f64], scale: f64) -> [f64; 2] {
        let (smooth, cost) = (self.smooth, self.problem.cost);
        sum_rows(slope.len(), || DualTerms { smooth, cost, a: slope, scale })
    }

    fn model_slopes(&self, losses: &Losses, along: &[f64]) -> Option<Vec<f64>> {
        let y = self.problem.y;
        let upper = |i: usize| self.smooth.upper(i);
        let of_row =
            |(i, by): (usize, &f64)| (-y[i] * (losses.slope[i] + losses.bend[i] * by)).clamp(0.0, upper(i));
        let mut alpha: Vec<f64> = along.iter().enumerate().map(of_row).collect_large();
        let is_free = onto_free_columns(self.problem, upper, &mut alpha);
        alpha.iter_mut().zip(y).for_each(|(a, y)| *a *= -y);
        is_free.then_some(alpha)
    }
}

/// Evaluates the terms of the rows from `first` on; their sum.
struct TermsOfRows<'s, S> {
    smooth: &'s S,
    cost: &'s [f64],
    z: &'s [f64],
    first: usize,
    slope: &'s mut [f64],
    bend: &'s mut [f64],
}

impl<S: SmoothTerms> OfRows<1> for TermsOfRows<'_, S> {
    /// A row that is absent has no terms.
    #[inline(always)]
    fn add<const N: usize>(&mut self, i: usize, [sum]: &mut [f64; 1]) {
        let mut terms = self.smooth.all_of::<N>(i, &entries(self.z.as_chunks().0, i));
        let cost = &self.cost[i..i + N];
        for term in &mut terms {
            for r in 0..N {
                term[r] = if cost[r] > 0.0 { term[r] } else { [0.0] };
            }
        }
        let ([value, slope, bend], k) = (terms, i - self.first);
        self.slope[k..k + N].copy_from_slice(slope.as_flattened());
        self.bend[k..k + N].copy_from_slice(bend.as_flattened());
        for [value] in value {
            *sum += value;
        }
    }
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
        let mut a: [f64; N] = entries(self.a, i);
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

/// Parabolas, one for each row.
pub struct BinaryRows<'s> {
    coordinates: Coordinates<'s>,
    list: &'s [u32],
    /// Slope of the model along each decision value, and its curvature.
    rows: Vec<[f64; 2]>,
}

impl BinaryRows<'_> {
    #[inline(always)]
    fn column(&self, k: usize) -> usize {
        self.list[k] as usize
    }
}

impl RowModels for BinaryRows<'_> {
    #[inline(always)]
    fn slope(&self, k: usize) -> f64 {
        let [slope] = self.coordinates.columns.sum(self.column(k), |i, x| [self.rows[i][0] * x]);
        slope
    }
    fn bend(&self, k: usize) -> f64 {
        let [bend] = self.coordinates.columns.sum(self.column(k), |i, x| [self.rows[i][1] * x * x]);
        bend
    }
    #[inline(always)]
    fn shift(&mut self, k: usize, by: f64) {
        let (column, rows) = (self.column(k), &mut self.rows[..]);
        self.coordinates.columns.for_each(column, |i, x| {
            let row = &mut rows[i];
            row[0] += row[1] * (by * x);
        });
    }
    fn coordinates(&self) -> (Coordinates<'_>, &[u32]) {
        (self.coordinates, self.list)
    }
    fn bend_times(&self, along: &mut [f64]) {
        along.iter_mut().zip(&self.rows).for_each(|(along, row)| *along *= row[1]);
    }
    fn change(&self, along: &[f64]) -> f64 {
        let of_row = |(row, along): (&[f64; 2], &f64)| along * (row[0] + 0.5 * row[1] * along);
        self.rows.iter().zip(along).map(of_row).sum()
    }
    fn go(&mut self, along: &[f64]) {
        self.rows.iter_mut().zip(along).for_each(|(row, along)| row[0] += row[1] * along);
    }
}
