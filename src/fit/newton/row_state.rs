//! What Newton asks of the rows, and its answers in memory.
//!
//! Newton keeps what has an entry per column (weights, directions, gradients) and decides; decision values,
//! slopes and curvatures, which have an entry per row, stay where the rows are and are asked for sums only.
//! [`RowState`] is that place in memory; `crate::shards` has rows elsewhere.

use std::sync::Arc;

use super::factorisation::Form;
use super::frequent::FrequentColumns;
use super::hessian::{self, KeptMatrix, Updated};
use super::line_search;
use super::passes::{Finish, Product, Slopes, mean_over_lanes, squares};
use super::preconditioner::Gram;
use crate::Result;
use crate::fit::intercept;
use crate::fit::monitor::Monitor;
use crate::fit::objective::{Along, Objective, TermSum, Unmoved, sum_terms};
use crate::fit::routes::{HESSIAN_ANEW, SPARSE_ROWS};
use crate::fit::sweep::{Sweep, for_chunks, split};
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::matrix::lanes::Block;
use crate::memory::CollectLarge;

/// What an evaluation finds beside the sum of the gradients.
#[derive(Clone, Copy, Debug)]
pub struct LossSums<const L: usize> {
    /// Sums of the terms.
    pub loss: [f64; L],
    /// Rows read.
    pub read: usize,
}

/// `sum_i D_i x_i x_i'`, or its diagonal, for the mean curvatures `D_i` over lanes.
pub struct Curvature {
    /// The sum.
    pub gram: Gram,
    /// Largest of the mean curvatures, and above 0.
    pub largest: f64,
    /// Rows read.
    pub read: usize,
    /// Share of the work of a new matrix.
    pub work: f64,
}

/// Rows with what a minimisation knows of each, somewhere: what is asked of them whatever is minimised. A
/// cancelled pass has meaningless results; the caller polls its monitor.
///
/// # Errors
/// Of all methods: those of the place where the rows are, none in memory.
pub trait Passes<const L: usize> {
    /// Number of rows.
    fn n_rows(&self) -> usize;
    /// Largest squared norm of a row, to explain an overflow.
    fn max_squared_norm(&self) -> f64;
    /// Decision values of the weights.
    #[allow(clippy::missing_errors_doc)] // of the trait
    fn decide(&mut self, w: &Block<L>) -> Result<()>;
    /// The mean curvature over the first `n_lanes` lanes in a form that the place has.
    #[allow(clippy::missing_errors_doc)]
    fn curvature(&mut self, n_lanes: usize, form: Form) -> Result<Curvature>;
    /// The matrix of the first lane's curvatures, off by a share of at most `off`, where it can be made of
    /// the last one by a share of at most `most` of the work of a new one.
    #[allow(clippy::missing_errors_doc)]
    fn matrix_nearby(&mut self, _off: f64, _most: f64) -> Result<Option<Updated>> {
        Ok(None)
    }
    /// Told what will be asked for after the next evaluation: [`Self::curvature`], and in which form, or not.
    fn foresee(&mut self, _: Option<Form>) {}
    /// Writes `sum_i D_i (p.x_i) x_i` and returns the number of rows read. `length` is that of the step along
    /// the direction before, none at first.
    #[allow(clippy::missing_errors_doc)]
    fn multiply(&mut self, p: &[[f64; L]], length: Option<&[f64; L]>, out: &mut Block<L>) -> Result<usize>;
    /// Completes the decision values of the step, whose last part is `length` times the direction before;
    /// without a length there was no product. Returns the number of rows read.
    #[allow(clippy::missing_errors_doc)]
    fn finish(&mut self, step: &Block<L>, length: Option<&[f64; L]>) -> Result<usize>;
    /// Goes so many steps; returns the number of rows read.
    #[allow(clippy::missing_errors_doc)]
    fn advance(&mut self, lengths: &[f64; L]) -> Result<usize>;
}

/// What is asked of rows about the terms `O` of an objective.
///
/// # Errors
/// As for [`Passes`].
pub trait TermPasses<O, const L: usize>: Passes<L> {
    /// Shifts the decision values to the minimum of the terms along the intercept; returns by how much.
    #[allow(clippy::missing_errors_doc)]
    fn shift_to_optimum(&mut self, terms: &O) -> Result<[f64; L]>;
    /// Writes `sum_i f_i'(z_i) x_i`; keeps slopes and curvatures.
    #[allow(clippy::missing_errors_doc)]
    fn evaluate(&mut self, terms: &O, h: &mut Block<L>) -> Result<LossSums<L>>;
    /// Sums of the terms at so many steps from here.
    #[allow(clippy::missing_errors_doc)]
    fn losses(&mut self, terms: &O, lengths: &[f64; L]) -> Result<[f64; L]>;
    /// Computes the decision values anew; returns `sum_i f_i(z_i) - f_i'(z_i) z_i` at the old ones and
    /// `sum_i f_i(z_i)` at the new ones.
    #[allow(clippy::missing_errors_doc)]
    fn decide_anew(&mut self, terms: &O, w: &Block<L>) -> Result<[[f64; L]; 2]>;
}

/// Rows in memory, and what a minimisation knows of each.
pub struct RowState<'a, const L: usize> {
    /// The rows.
    pub sweep: Sweep<'a, L>,
    monitor: &'a dyn Monitor,
    /// Decision values.
    pub z: Block<L>,
    /// `f_i'` at the evaluated point, where they are kept.
    pub slopes: Option<Block<L>>,
    /// `f_i''` there.
    pub curvature: Block<L>,
    /// `s.x_i` for the step `s`, but for its last part while it is being found.
    pub step_z: Block<L>,
    /// `p.x_i` for the last direction.
    pub product_z: Block<L>,
    /// Rows that the last product read.
    read: usize,
    /// Where matrices of curvatures are made of the ones before.
    kept: Option<KeptMatrix>,
    /// The columns of [`Form::Frequent`], where there is that form.
    pub frequent: Option<Arc<FrequentColumns>>,
}

impl<'a, const L: usize> RowState<'a, L> {
    /// Starts at zero.
    pub fn new(design: Design<'a>, keeps_slopes: bool, monitor: &'a dyn Monitor) -> Self {
        let n = design.n_rows();
        Self {
            sweep: Sweep::new(design, monitor),
            monitor,
            z: Block::zeros(n),
            slopes: keeps_slopes.then(|| Block::zeros(n)),
            curvature: Block::zeros(n),
            step_z: Block::zeros(n),
            product_z: Block::zeros(n),
            read: n,
            kept: None,
            frequent: None,
        }
    }

    /// What is known of each row, with these rows, of which there are as many; what was made of their entries
    /// is forgotten.
    pub fn moved_to<'b>(self, design: Design<'b>, monitor: &'b dyn Monitor) -> RowState<'b, L> {
        let Self { z, slopes, curvature, step_z, product_z, .. } = self;
        let sweep = Sweep::new(design, monitor);
        let read = z.len();
        RowState { sweep, monitor, z, slopes, curvature, step_z, product_z, read, kept: None, frequent: None }
    }

    /// Has the form of the most frequent columns, too.
    pub fn with_frequent(self, frequent: Option<Arc<FrequentColumns>>) -> Self {
        Self { frequent, ..self }
    }

    /// Makes matrices of curvatures of the ones before: their last digits depend on the steps that led there.
    pub fn keeping_matrix(self) -> Self {
        Self { kept: Some(KeptMatrix::none()), ..self }
    }

    /// [`Passes::matrix_nearby`] for these curvatures.
    pub fn matrix_of(&mut self, bends: &[f64], (off, most): (f64, f64)) -> Option<Updated> {
        self.kept.as_mut()?.follow(&self.sweep, bends, (off, most))
    }

    /// Adds to the decision values.
    pub fn shift(&mut self, shift: &[f64; L]) {
        for_chunks(&mut self.z, |_, z| {
            for z in z {
                for l in 0..L {
                    z[l] += shift[l];
                }
            }
        });
    }

    /// `y_i z_i` in the first lane.
    pub fn margins(&self, y: &[f64]) -> Vec<f64> {
        self.z.iter().zip(y).map(|(z, y)| z[0] * y).collect_large()
    }

    /// Dual variables `a_i = -y_i f_i'(z_i)` of the first lane at the last evaluated point.
    pub fn alpha(&self, y: &[f64]) -> Vec<f64> {
        let slopes = self.slopes.as_ref().expect("asked for in `new`");
        slopes.iter().zip(y).map(|(slope, y)| -y * slope[0]).collect_large()
    }
}

impl<const L: usize> Passes<L> for RowState<'_, L> {
    fn n_rows(&self) -> usize {
        self.z.len()
    }

    fn max_squared_norm(&self) -> f64 {
        self.sweep.design.max_squared_norm()
    }

    fn decide(&mut self, w: &Block<L>) -> Result<()> {
        self.sweep.decisions(w, &mut self.z);
        Ok(())
    }

    fn curvature(&mut self, n_lanes: usize, form: Form) -> Result<Curvature> {
        let mean = mean_over_lanes(&self.curvature, n_lanes);
        let largest = mean.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        if form == Form::Dense
            && let Some(kept) = &mut self.kept
        {
            let found = kept.follow(&self.sweep, &mean, (0.0, HESSIAN_ANEW));
            let Updated { matrix, read, work, .. } = found.unwrap_or_else(|| kept.anew(&self.sweep, &mean));
            return Ok(Curvature { gram: Gram::Dense(matrix), largest, read, work });
        }
        let read = mean.iter().filter(|m| **m != 0.0).count();
        let diagonal = || squares(&mut Sweep::new(self.sweep.design, self.monitor), &mean);
        let gram = match (form, &self.frequent) {
            (Form::Dense, _) => Gram::Dense(hessian::curvature_matrix(&self.sweep, &mean)),
            (Form::Frequent, Some(columns)) => Gram::Frequent {
                diagonal: diagonal(),
                columns: Arc::clone(columns),
                block: hessian::curvature_block(&self.sweep, &mean, columns),
            },
            _ => Gram::Diagonal(diagonal()),
        };
        Ok(Curvature { gram, largest, read, work: f64::from(u8::from(form != Form::Diagonal)) })
    }

    fn matrix_nearby(&mut self, off: f64, most: f64) -> Result<Option<Updated>> {
        let Self { kept, sweep, curvature, .. } = self;
        Ok(kept.as_mut().and_then(|kept| kept.follow(sweep, &mean_over_lanes(curvature, 1), (off, most))))
    }

    fn multiply(&mut self, p: &[[f64; L]], length: Option<&[f64; L]>, out: &mut Block<L>) -> Result<usize> {
        let is_sparse = length.is_some() && self.read as f64 <= SPARSE_ROWS * self.n_rows() as f64;
        let Self { sweep, curvature, step_z, product_z, .. } = self;
        let parts = sweep.parts().to_vec();
        let blocks = split(&parts, product_z).into_iter().zip(split(&parts, step_z));
        let steps = blocks
            .zip(&parts)
            .map(|((product_z, step_z), part)| Product {
                p,
                length: length.unwrap_or(&[0.0; L]),
                is_first: length.is_none(),
                curvature: &curvature[part.clone()],
                product_z,
                step_z,
                is_sparse,
                read: 0,
            })
            .collect();
        self.read = sweep.scatter(out, steps).iter().map(|s| s.read).sum();
        Ok(self.read)
    }

    fn finish(&mut self, step: &Block<L>, length: Option<&[f64; L]>) -> Result<usize> {
        let Some(length) = length else {
            self.sweep.decisions(step, &mut self.step_z);
            return Ok(self.step_z.len());
        };
        let Self { sweep, curvature, step_z, product_z, .. } = self;
        Ok(Finish { step, length, curvature, product_z }.run(sweep, step_z))
    }

    fn advance(&mut self, lengths: &[f64; L]) -> Result<usize> {
        line_search::advance(&mut self.z, &self.step_z, lengths);
        Ok(0)
    }
}

impl<O: Objective<L>, const L: usize> TermPasses<O, L> for RowState<'_, L> {
    fn shift_to_optimum(&mut self, terms: &O) -> Result<[f64; L]> {
        let shift = intercept::smooth_shift(terms, &self.z);
        if shift != [0.0; L] {
            self.shift(&shift);
        }
        Ok(shift)
    }

    fn evaluate(&mut self, terms: &O, h: &mut Block<L>) -> Result<LossSums<L>> {
        let parts = self.sweep.parts().to_vec();
        let slopes = match &mut self.slopes {
            Some(slopes) => split(&parts, slopes).into_iter().map(Some).collect(),
            None => parts.iter().map(|_| None).collect::<Vec<_>>(),
        };
        let steps = split(&parts, &mut self.curvature).into_iter().zip(slopes);
        let z = &self.z;
        let steps = steps
            .map(|(curvature, slopes)| Slopes {
                objective: terms,
                z,
                curvature,
                slopes,
                loss: TermSum::default(),
                ahead: Vec::new(),
                first: 0,
                read: 0,
            })
            .collect();
        let steps = self.sweep.scatter(h, steps);
        let mut loss = [0.0; L];
        for step in &steps {
            let part = step.loss.total();
            for l in 0..L {
                loss[l] += part[l];
            }
        }
        Ok(LossSums { loss, read: steps.iter().map(|s| s.read).sum() })
    }

    fn losses(&mut self, terms: &O, lengths: &[f64; L]) -> Result<[f64; L]> {
        let at = Along(&self.z, &self.step_z, *lengths);
        let [losses] = sum_terms(terms, at, |_, [value, ..]| [value]);
        Ok(losses)
    }

    fn decide_anew(&mut self, terms: &O, w: &Block<L>) -> Result<[[f64; L]; 2]> {
        let [old] = sum_terms(terms, Unmoved(&self.z), |z, [value, slope, _]| [value - slope * z]);
        self.sweep.decisions(w, &mut self.step_z);
        self.monitor.poll()?;
        let [new] = sum_terms(terms, Unmoved(&self.step_z), |_, [value, ..]| [value]);
        std::mem::swap(&mut self.z, &mut self.step_z);
        Ok([old, new])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::Silent;
    use crate::fit::waves::Waves;
    use proptest::prelude::*;

    proptest! {
        /// A product that passes over rows, which each one but the first of a system may do, is the one that
        /// asks every row, bit for bit, as are the decision values.
        #[test]
        fn products_of_few_rows_are_those_of_all(
            n in 2..700usize,
            d in 1..9usize,
            share in 1..12usize,
            intercept in 0..3usize,
        ) {
            let waves = Waves::new(n, d, 1.0, 3);
            let rows = waves.rows();
            let design = waves.problem(&rows, intercept).design(0.5);
            let mut state = RowState::<1>::new(design, false, &Silent);
            let mut n_curved = 0;
            for (i, bend) in state.curvature.iter_mut().enumerate() {
                let is_curved = (i * i + 7 * i / 3) % share == 0;
                n_curved += usize::from(is_curved);
                bend[0] = if is_curved { 0.5 + (i as f64).sin().abs() } else { 0.0 };
            }
            let p: Vec<[f64; 1]> = (0..design.n_cols()).map(|j| [(j as f64 + 0.3).cos()]).collect();
            let (mut of_all, mut of_few) = (Block::zeros(p.len()), Block::zeros(p.len()));
            prop_assert_eq!(state.multiply(&p, None, &mut of_all).unwrap(), n_curved);
            let of_first = state.product_z.to_vec();
            prop_assert_eq!(state.multiply(&p, Some(&[1.5]), &mut of_few).unwrap(), n_curved);
            prop_assert_eq!(&of_all[..], &of_few[..]);
            prop_assert_eq!(&of_first, &state.product_z.to_vec());
            for (i, (total, last)) in state.step_z.iter().zip(&of_first).enumerate() {
                let is_curved = state.curvature[i][0] != 0.0;
                prop_assert_eq!(total[0], if is_curved { 1.5 * last[0] } else { 0.0 });
            }
        }
    }
}
