//! What Newton does with a row when it reads it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fit::objective::{Objective, OfTerms, TermSum, Unmoved, each_terms};
use crate::fit::sweep::{ROW_CHUNK, RowStep, Sweep, for_chunks};
use crate::matrix::Rows;
use crate::matrix::simd::{Wide, WideWork};
use crate::{memory, parallel};

/// Adds `f_i'(z_i) x_i`, keeps curvatures and losses. Rows of slope 0 in all lanes are not read.
pub struct Slopes<'s, O, const L: usize> {
    /// The row terms.
    pub objective: &'s O,
    /// Decision values of all rows.
    pub z: &'s [[f64; L]],
    /// Curvatures of the part, to be written.
    pub curvature: &'s mut [[f64; L]],
    /// Slopes of the part, to be written.
    pub slopes: Option<&'s mut [[f64; L]]>,
    /// Losses of the rows so far.
    pub loss: TermSum<L>,
    /// Slopes of the rows that come next, in a single lane,
    pub ahead: Vec<[f64; L]>,
    /// and where these begin in the part.
    pub first: usize,
    /// Rows read.
    pub read: usize,
}

impl<O: Objective<L>, const L: usize> RowStep<L> for Slopes<'_, O, L> {
    /// Several lanes fill a register by themselves: their terms are computed as the row is read.
    #[inline(always)]
    fn step<R: Rows>(&mut self, rows: &R, i: usize, k: usize, out: &mut [[f64; L]]) {
        let slope = if L == 1 {
            self.ahead[k - self.first]
        } else {
            let [value, slope, bend] = self.objective.all(i, &self.z[i]);
            self.loss.add(i, &[value]);
            self.curvature[k] = bend;
            if let Some(slopes) = &mut self.slopes {
                slopes[k] = slope;
            }
            slope
        };
        if !is_zero(&slope) {
            self.read += 1;
            rows.add_lanes(i, &slope, out);
        }
    }

    #[inline(always)]
    fn begin(&mut self, rows: Range<usize>, k: usize) {
        if L > 1 {
            return;
        }
        let (first, here) = (rows.start, k..k + rows.len());
        self.first = k;
        self.ahead.resize(rows.len(), [0.0; L]);
        let (curvature, slopes) = (&mut self.curvature[here.clone()], &mut self.ahead[..]);
        let mut ahead = TermsAhead { first, curvature, slopes, loss: &mut self.loss };
        each_terms(self.objective, Unmoved(self.z), rows, &mut ahead);
        if let Some(slopes) = &mut self.slopes {
            slopes[here].copy_from_slice(&self.ahead);
        }
    }
}

/// Slopes and curvatures of the rows from `first` on, and their losses.
struct TermsAhead<'s, const L: usize> {
    first: usize,
    curvature: &'s mut [[f64; L]],
    slopes: &'s mut [[f64; L]],
    loss: &'s mut TermSum<L>,
}

impl<const L: usize> OfTerms<L> for TermsAhead<'_, L> {
    #[inline(always)]
    fn take<const N: usize>(&mut self, i: usize, _: &[[f64; L]; N], terms: &[[[f64; L]; N]; 3]) {
        let ([value, slope, bend], k) = (terms, i - self.first);
        let (slopes, curvature) = (&mut self.slopes[k..k + N], &mut self.curvature[k..k + N]);
        for n in 0..N {
            (slopes[n], curvature[n]) = (slope[n], bend[n]);
        }
        self.loss.add(i, value);
    }
}

/// Adds `D_i (p.x_i) x_i` and, on the way, the step of the conjugate gradient before to the decision values
/// of the direction. Rows without curvature in any lane are not read.
pub struct Product<'s, const L: usize> {
    /// Direction.
    pub p: &'s [[f64; L]],
    /// Length of the step before.
    pub length: &'s [f64; L],
    /// There was no step before.
    pub is_first: bool,
    /// Curvatures of the part.
    pub curvature: &'s [[f64; L]],
    /// `p.x_i` of the part: the last direction's, replaced by this one's.
    pub product_z: &'s mut [[f64; L]],
    /// `s.x_i` of the part, for the sum `s` of steps so far.
    pub step_z: &'s mut [[f64; L]],
    /// Few rows have curvature.
    pub is_sparse: bool,
    /// Rows read.
    pub read: usize,
}

impl<const L: usize> RowStep<L> for Product<'_, L> {
    #[inline(always)]
    fn is_sparse(&self) -> bool {
        self.is_sparse
    }
    #[inline(always)]
    fn reads(&self, k: usize) -> bool {
        !is_zero(&self.curvature[k])
    }
    #[inline(always)]
    fn step<R: Rows>(&mut self, rows: &R, i: usize, k: usize, out: &mut [[f64; L]]) {
        if !self.reads(k) {
            return;
        }
        let bend = &self.curvature[k];
        self.read += 1;
        let q = rows.dot_lanes(i, self.p);
        let (total, last) = (&mut self.step_z[k], &mut self.product_z[k]);
        for l in 0..L {
            total[l] = if self.is_first { 0.0 } else { total[l] + self.length[l] * last[l] };
        }
        *last = q;
        let mut scale = [0.0; L];
        for l in 0..L {
            scale[l] = bend[l] * q[l];
        }
        rows.add_lanes(i, &scale, out);
    }
}

/// Completes the decision values of a direction: the last step for rows that the products read, the whole for
/// the others.
pub struct Finish<'s, const L: usize> {
    /// The direction.
    pub step: &'s [[f64; L]],
    /// Length of the last step of the conjugate gradient.
    pub length: &'s [f64; L],
    /// Curvatures of all rows.
    pub curvature: &'s [[f64; L]],
    /// `p.x_i` of all rows, for the last direction.
    pub product_z: &'s [[f64; L]],
}

impl<const L: usize> Finish<'_, L> {
    /// Writes `s.x_i` of all rows and returns how many rows were read.
    pub fn run(&self, sweep: &Sweep<'_, L>, step_z: &mut [[f64; L]]) -> usize {
        let read = AtomicUsize::new(0);
        parallel::each_chunk(step_z, ROW_CHUNK, |first, step_z| {
            if !sweep.is_cancelled() {
                let piece = FinishPiece { task: self, first, step_z };
                read.fetch_add(sweep.design.visit(Wide(piece)), Ordering::Relaxed);
            }
        });
        read.into_inner()
    }
}

/// [`Finish`] on a piece.
struct FinishPiece<'s, const L: usize> {
    task: &'s Finish<'s, L>,
    first: usize,
    step_z: &'s mut [[f64; L]],
}

impl<const L: usize> WideWork for FinishPiece<'_, L> {
    type Output = usize;
    const IS_WIDE: bool = L > 1;
    #[inline(always)]
    fn run<R: Rows>(self, rows: &R) -> usize {
        let Finish { step, length, curvature, product_z } = *self.task;
        let mut read = 0;
        for k in 0..self.step_z.len() {
            let (i, z) = (self.first + k, &mut self.step_z[k]);
            if is_zero(&curvature[i]) {
                *z = rows.dot_lanes(i, step);
                read += 1;
            } else {
                for l in 0..L {
                    z[l] += length[l] * product_z[i][l];
                }
            }
        }
        read
    }
}

#[inline(always)]
fn is_zero<const L: usize>(x: &[f64; L]) -> bool {
    let mut any = false;
    for l in 0..L {
        any |= x[l] != 0.0;
    }
    !any
}

/// Adds the squares of a row's entries.
struct Squares<'s> {
    coefficient: &'s [f64],
}

impl RowStep<1> for Squares<'_> {
    #[inline(always)]
    fn step<R: Rows>(&mut self, rows: &R, i: usize, k: usize, out: &mut [[f64; 1]]) {
        let scale = self.coefficient[k];
        if scale != 0.0 {
            rows.for_each(i, |j, v| out[j][0] += scale * v * v);
        }
    }
}

/// `sum_i coefficient[i] x_ij^2` for every column; rows of coefficient 0 are not read.
pub fn squares(sweep: &mut Sweep<'_, 1>, coefficient: &[f64]) -> Vec<f64> {
    let mut out = memory::zeros(sweep.design.n_cols());
    let steps =
        sweep.parts().iter().map(|part| Squares { coefficient: &coefficient[part.clone()] }).collect();
    sweep.scatter(out.as_chunks_mut().0, steps);
    out
}

/// Mean over the first `n_lanes` lanes of every entry.
pub fn mean_over_lanes<const L: usize>(x: &[[f64; L]], n_lanes: usize) -> Cow<'_, [f64]> {
    if L == 1 {
        return Cow::Borrowed(x.as_flattened());
    }
    let mut mean = memory::zeros(x.len());
    for_chunks(&mut mean, |start, mean| {
        for (m, x) in mean.iter_mut().zip(&x[start..]) {
            *m = x[..n_lanes].iter().sum::<f64>() / n_lanes as f64;
        }
    });
    Cow::Owned(mean)
}
