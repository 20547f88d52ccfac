//! A check of all rows and classes: the certificate, the rows that have something left, and their candidates.
//!
//! The dual value is lowered by what rounding can have done, by the terms of [`crate::fit::certificate`] for
//! the largest row in place of each.

use std::ops::Range;

use rayon::prelude::*;

use super::descent::{Check, ClassDescent};
use super::largest::{largest, largest_size};
use crate::fit::certificate;
use crate::fit::certificate::Extent;
use crate::fit::problem::{Certificate, Intercept};
use crate::memory::CollectLarge;
use crate::{Result, memory, parallel};

/// Rows of one parallel piece: all classes of a row are much work.
pub const PIECE: usize = 256;
/// Candidates that a check adds to a row at most. Tried: 4, 8, 16 and 32, passes to 1e-3: sector 37, 36, 32
/// and 34.
const MAX_CANDIDATES: usize = 16;
/// Rows whose part of the gap is below this share of the tolerated one, and of the mean, rest until the next
/// check. Tried: 0.01, 0.1, 0.3 and 1 for the latter, passes (checks included) to 1e-3: 20news, C = 16, 77,
/// 61, 82 and 105; sector 164, 110, 98 and 143. Visiting all rows again instead of checking them, those
/// with little left resting from then on: 78 and 168.
pub const IDLE: [f64; 2] = [0.1, 0.2];

/// The same with a free intercept: its multipliers move with every epoch, and where rows with something left
/// do not follow, the two chase each other for ever (6 rows: a gap of 0.05 after 20,000 epochs instead of
/// 4e-5 after 22).
const IDLE_FREE: [f64; 2] = [0.0, 0.0];

/// An error of the scores counts twice in a row's loss, and once more in what the constraint of the
/// intercepts is missed by.
pub const STEEPNESS: f64 = 3.0;
/// Both values and the squared weights, in primal values.
pub const SIZE: f64 = 5.0;

/// What a check finds in some rows.
#[derive(Default)]
struct Piece {
    loss: f64,
    gap: f64,
    gaps: Vec<f32>,
    candidates: Vec<(u32, u32)>,
}

impl ClassDescent<'_> {
    /// The certificate at the present point; decides anew which rows are active and which classes are their
    /// candidates.
    pub(super) fn check(&mut self, tol: f64) -> Result<Check> {
        let intercepts = self.intercepts();
        let pieces = self.pieces(&intercepts)?;
        self.readings += 1;
        let squares = self.squared_weights();
        let primal = self.finite(0.5 * squares + pieces.iter().map(|piece| piece.loss).sum::<f64>())?;
        let dual = match self.intercept {
            Intercept::Free => self.repaired_dual()?,
            _ => self.lists().sum_of_others(self.class) - 0.5 * squares,
        };
        self.rest(&pieces, tol * dual);
        let dual = dual - self.rounding(primal, squares, &intercepts);
        Ok(Check { certificate: Certificate::proved(primal, dual), intercepts })
    }

    /// What rounding can have done to both values.
    fn rounding(&self, primal: f64, squares: f64, intercepts: &[f64]) -> f64 {
        let total: f64 = self.cost.iter().sum();
        let norm = self.squared.iter().copied().fold(0.0, f64::max).sqrt();
        let extent = Extent {
            n_rows: self.n_rows(),
            n_weights: self.rows.n_columns() * self.n_classes,
            longest: self.plain.longest(),
            reach: norm * squares.sqrt() + largest_size(intercepts),
            steepness: STEEPNESS * total,
            size: SIZE * primal,
        };
        let multiplier = if self.bias == 0.0 { 0.0 } else { largest_size(&self.offsets) / self.bias };
        let visits = (self.visits + self.n_rows()) as f64;
        let highest = self.cost.iter().copied().fold(0.0, f64::max);
        if certificate::leaps(&[highest], &[norm], total) {
            return f64::INFINITY;
        }
        let drift = certificate::drift(visits, total, multiplier * (self.n_classes as f64).sqrt());
        extent.rounding() + drift * (squares.sqrt() + 0.5 * drift)
    }

    /// Checks all rows, piece by piece.
    fn pieces(&self, intercepts: &[f64]) -> Result<Vec<Piece>> {
        let n = self.n_rows();
        let rows = |piece: usize| piece * PIECE..((piece + 1) * PIECE).min(n);
        let check = |piece| {
            if self.monitor.cancelled() { Piece::default() } else { self.check_rows(rows(piece), intercepts) }
        };
        let pieces = (0..n.div_ceil(PIECE)).into_par_iter().map(check).collect();
        self.monitor.poll()?;
        Ok(pieces)
    }

    /// Adds the candidates; lets rows with little of the gap rest, all others be active.
    fn rest(&mut self, pieces: &[Piece], tolerated: f64) {
        let gaps: Vec<f32> = pieces.iter().flat_map(|piece| &piece.gaps).copied().collect_large();
        let total: f64 = pieces.iter().map(|piece| piece.gap).sum();
        let [of_tolerated, of_mean] = if self.intercept == Intercept::Free { IDLE_FREE } else { IDLE };
        self.idle = (of_tolerated * tolerated).max(of_mean * total) / self.n_rows().max(1) as f64;
        let idle = self.idle;
        parallel::each(self.states(), |_, state| {
            for (row, class) in pieces.iter().flat_map(|piece| &piece.candidates) {
                state.lists.push(*row as usize, *class);
            }
            state.active.restore(|i| f64::from(gaps[i]) > idle);
        });
    }

    /// All classes of some rows.
    fn check_rows(&self, range: Range<usize>, intercepts: &[f64]) -> Piece {
        let k = self.n_classes;
        let mut scores = vec![0.0; self.w.padded()];
        let mut piece = Piece::default();
        let wants_candidates = !self.sees_all();
        let mut found: Vec<(f64, u32)> = Vec::new();
        for i in range {
            let (own, c) = (self.class[i] as usize, self.cost[i]);
            self.w.scores(self.plain, i, &mut scores);
            scores.iter_mut().zip(intercepts).for_each(|(g, b)| *g += b + 1.0);
            scores[own] -= 1.0;
            let largest = largest(&scores[..k]);
            piece.loss += c * (largest - scores[own]);
            let (mut gap, mut smallest) = (0.0, f64::INFINITY);
            for entry in self.lists().get(i) {
                let g = scores[entry.class as usize];
                gap += entry.u * (largest - g);
                if entry.u > 0.0 {
                    smallest = smallest.min(g);
                }
            }
            piece.gap += gap;
            piece.gaps.push(gap as f32);
            if wants_candidates && gap > 0.0 {
                for entry in self.lists().get(i) {
                    scores[entry.class as usize] = f64::NEG_INFINITY;
                }
                found.clear();
                found.extend((0..k).filter(|m| scores[*m] > smallest).map(|m| (scores[m], m as u32)));
                if found.len() > MAX_CANDIDATES {
                    found.select_nth_unstable_by(MAX_CANDIDATES, |a, b| b.0.total_cmp(&a.0));
                    found.truncate(MAX_CANDIDATES);
                }
                memory::extend(&mut piece.candidates, found.iter().map(|(_, class)| (i as u32, *class)));
            }
        }
        piece
    }
}
