//! What Newton and the certificate of a multinomial problem ask of the rows, answered by readings of a
//! store's blocks.
//!
//! Each answer is one reading of all blocks, and for each block what [`crate::fit::multinomial`] computes of
//! rows in memory. Nothing is kept of a row between two readings: its scores come from the weights whenever
//! they are needed, a third of the work of a product with the Hessian. What grows with the number of rows
//! would be four tables of rows x classes; written to a file and read again, they are several times the
//! entries of a sparse row.
//!
//! **Free intercepts** are at their optimum before each step, as in memory, by Newton's method in `K`
//! unknowns. A reading at given intercepts brings the losses, the gradient of the weights and the `K x K`
//! matrix of second derivatives of the intercepts,
//! `sum_i c_i (diag(p_i) - p_i p_i')`: so it takes two or three readings, for the step before has moved them
//! close to where they are best. They need not be exact to the last bit: what is left of the constraint is
//! paid for in the certificate.

use super::softmax_rows::SoftmaxRows;
use crate::Result;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::multinomial::balance::best_shift;
use crate::fit::multinomial::certificate::{
    ClassTotals, Gathered, ProofBounds, ProofRows, ProofTables, totals, widest,
};
use crate::fit::multinomial::intercepts::InterceptCurvature;
use crate::fit::multinomial::passes::{ClassProduct, Evaluated, Setup, SoftmaxSlopes, rows_of_piece};
use crate::fit::multinomial::point::Point;
use crate::fit::multinomial::precondition::gram;
use crate::fit::multinomial::shape::{SoftmaxShape, SoftmaxSizes};
use crate::fit::multinomial::softmax::{FAR, Lines};
use crate::fit::multinomial::source::{Balance, ShiftedLogits, SoftmaxPasses};
use crate::fit::multinomial::strips::Strips;
use crate::fit::newton::cholesky::Symmetric;
use crate::fit::newton::factorisation::{Factorisation, of_sums};
use crate::fit::newton::preconditioner::Gram;
use crate::fit::routes::{DENSE_SHARE, VECTORISED};
use crate::memory;

/// Share of the sizes of its terms at which a class's sum counts as 0: what is left moves the weights of the
/// dual point by that share of all rows' lengths.
const EXACT: f64 = 1e-11;

/// The rows as Newton sees them.
pub struct SoftmaxBlocks<'r, 'a> {
    /// The rows.
    pub rows: &'r mut SoftmaxRows<'a>,
    bias: f64,
    /// `sum_i c_i (p_i - e_{y_i}) x_i'` where the losses were last evaluated.
    slopes: Option<Strips>,
    /// The second derivatives of the intercepts there, where they were asked for.
    of_intercepts: Option<InterceptCurvature>,
    widest: f64,
}

/// The softmax of the rows of a block, with a table to spare.
struct BlockTables<'s> {
    z: &'s mut Lines,
    p: &'s mut Lines,
    rest: Vec<f64>,
}

impl<'r, 'a> SoftmaxBlocks<'r, 'a> {
    /// With a constant column of height `bias`, none if 0.
    pub fn new(rows: &'r mut SoftmaxRows<'a>, bias: f64) -> Self {
        Self { rows, bias, slopes: None, of_intercepts: None, widest: 0.0 }
    }

    /// Calls `f` with the softmax of each block's rows at `W x + offset + shift`, and the losses.
    fn each(
        &mut self,
        w: &Strips,
        [offset, shift]: [&Lines; 2],
        mut f: impl FnMut(&Setup<'_>, BlockTables<'_>, Evaluated) -> Result<()>,
    ) -> Result<()> {
        self.rows.each(self.bias, |setup, _, [z, p]| {
            let mut rest = memory::zeros(setup.n_rows());
            setup.scores(w, offset, z);
            let found = setup.evaluate(z, shift, p, &mut rest);
            setup.poll()?;
            f(setup, BlockTables { z, p, rest }, found)
        })
    }

    /// The losses at `W x + offset + shift`, with the slopes and what else an evaluation leaves.
    fn read_at(
        &mut self,
        w: &Strips,
        [offset, shift]: [&Lines; 2],
        with_curvature: bool,
    ) -> Result<Evaluated> {
        let shape = self.shape();
        (self.slopes, self.of_intercepts) = (None, None); // before the new ones take their memory
        let mut slopes = Strips::zeros(w.n_columns(), shape.lines);
        let mut of_intercepts = with_curvature.then(|| InterceptCurvature::zero(shape.n_classes));
        let (mut all, mut largest) = (Evaluated::zero(shape.lines), 0.0f64);
        self.each(w, [offset, shift], |setup, tables, found| {
            all.add(&found);
            let BlockTables { z, p, rest } = tables;
            largest = largest.max(widest(setup, z));
            let coefficients = SoftmaxSlopes { lines: setup.lines, p, rest: &rest, problem: setup.problem };
            setup.scatter_more(&coefficients, &mut slopes);
            if let Some(matrix) = &mut of_intercepts {
                matrix.add(setup, p);
            }
            setup.poll()
        })?;
        (self.slopes, self.of_intercepts, self.widest) = (Some(slopes), of_intercepts, largest);
        Ok(all)
    }

    fn take_slopes(&mut self) -> Strips {
        self.slopes.take().unwrap_or_else(|| self.shape().strips())
    }
}

/// The rows at given weights, as free intercepts see them.
struct BlockLogits<'s, 'r, 'a> {
    blocks: &'s mut SoftmaxBlocks<'r, 'a>,
    w: &'s Strips,
    offset: &'s Lines,
    /// Where the losses were evaluated last.
    shift: Vec<[f64; LINE]>,
    how: Balance,
}

impl<'s, 'r, 'a> BlockLogits<'s, 'r, 'a> {
    fn new(blocks: &'s mut SoftmaxBlocks<'r, 'a>, w: &'s Strips, offset: &'s Lines, how: Balance) -> Self {
        Self { blocks, w, offset, shift: Vec::new(), how }
    }

    fn best_shift(&mut self) -> Result<(Vec<[f64; LINE]>, Evaluated)> {
        let share = self.how.share(EXACT);
        best_shift(self, share)
    }

    fn read(&mut self, with_curvature: bool) -> Result<Evaluated> {
        self.blocks.read_at(self.w, [self.offset, &self.shift], with_curvature)
    }
}

impl ShiftedLogits for BlockLogits<'_, '_, '_> {
    fn shape(&self) -> SoftmaxShape {
        self.blocks.shape()
    }

    fn is_cancelled(&self) -> bool {
        self.blocks.rows.monitor().cancelled()
    }

    /// A rough balance is mostly there already: the second derivatives are left for when they are needed.
    fn evaluate_at(&mut self, shift: &Lines) -> Result<Evaluated> {
        self.shift = shift.to_vec();
        self.read(self.how == Balance::Exact)
    }

    fn curve(&mut self, v: &Lines) -> Result<Vec<[f64; LINE]>> {
        if self.blocks.of_intercepts.is_none() {
            self.read(true)?;
        }
        let matrix = self.blocks.of_intercepts.as_ref().expect("was read just now");
        Ok(matrix.times(v))
    }
}

impl SoftmaxSizes for SoftmaxBlocks<'_, '_> {
    fn shape(&self) -> SoftmaxShape {
        let (settings, store) = (self.rows.settings(), self.rows.fetch().store());
        let n_columns = settings.n_weights(store) + usize::from(self.bias != 0.0);
        let (n_classes, n_rows) = (self.rows.cost().len(), store.meta().n_rows as usize);
        let (lines, intercept) = (n_classes.div_ceil(LINE), settings.intercept);
        SoftmaxShape { n_rows, n_columns, n_classes, lines, bias: self.bias, intercept }
    }

    fn max_squared_norm(&self) -> f64 {
        let norm = self.rows.settings().largest_norm(self.rows.fetch().store());
        norm * norm + self.bias * self.bias
    }
}

impl SoftmaxPasses for SoftmaxBlocks<'_, '_> {
    fn observe(&mut self, _: usize, gap: f64) {
        self.rows.gap = gap;
    }

    /// Taken as if all rows were of the mean length: their own lengths would be a reading.
    fn factorisation(&self) -> Option<Factorisation> {
        if !self.rows.cut().has_room_for_matrix {
            return None;
        }
        let (meta, d) = (self.rows.fetch().store().meta(), self.shape().n_columns);
        let n_rows = meta.n_rows as f64;
        let len = meta.nnz as f64 / n_rows.max(1.0) + f64::from(self.bias != 0.0);
        let width = if len * (DENSE_SHARE as f64) < d as f64 { len } else { d as f64 / VECTORISED };
        Some(of_sums(d, [len * n_rows, len * width / 2.0 * n_rows], false))
    }

    fn readings(&self) -> f64 {
        self.rows.readings as f64
    }

    fn add_readings(&mut self, more: f64) {
        self.rows.readings += more as usize;
    }

    fn decide(&mut self, _: &Strips) -> Result<()> {
        Ok(())
    }

    fn evaluate(&mut self, w: &Strips) -> Result<Evaluated> {
        let (far, zero) = (self.shape().row(FAR), self.shape().row(0.0));
        self.read_at(w, [&far, &zero], false)
    }

    fn balance(&mut self, w: &Strips, how: Balance) -> Result<(Vec<[f64; LINE]>, Evaluated)> {
        let far = self.shape().row(FAR);
        BlockLogits::new(self, w, &far, how).best_shift()
    }

    fn shift(&mut self, _: &Lines) {}

    fn slopes(&mut self, h: &mut Strips) -> Result<()> {
        *h = self.take_slopes();
        Ok(())
    }

    fn curvature(&mut self, w: &Strips, class: Option<usize>, is_dense: bool) -> Result<Gram> {
        let (far, zero, d) = (self.shape().row(FAR), self.shape().row(0.0), self.shape().n_columns);
        let mut sum: Vec<f64> = memory::zeros(if is_dense { d * d } else { d });
        self.each(w, [&far, &zero], |setup, tables, _| {
            let more = gram(setup, tables.p, &tables.rest, class, is_dense)?;
            sum.iter_mut().zip(more.values()).for_each(|(sum, x)| *sum += x);
            Ok(())
        })?;
        Ok(if is_dense { Gram::Dense(Symmetric { n: d, values: sum }) } else { Gram::Diagonal(sum) })
    }

    fn begin_direction(&mut self) {}

    fn multiply(&mut self, w: &Strips, d: &Strips, _: f64, out: &mut Strips) -> Result<()> {
        let (far, zero) = (self.shape().row(FAR), self.shape().row(0.0));
        out.clear();
        self.each(w, [&far, &zero], |setup, tables, _| {
            let BlockTables { z, p, .. } = tables;
            setup.multiply(&mut ClassProduct { d, p, q: z, before: None }, out)
        })
    }

    fn end_direction(&mut self, _: f64) {}

    fn loss_at(&mut self, w: &Strips, step: &Strips, length: f64) -> Result<f64> {
        let (far, zero, mut loss) = (self.shape().row(FAR), self.shape().row(0.0), 0.0);
        self.rows.each(self.bias, |setup, _, [z, step_z]| {
            setup.scores(w, &far, z);
            setup.scores(step, &zero, step_z);
            setup.poll()?;
            loss += setup.loss_at(z, step_z, length);
            Ok(())
        })?;
        Ok(loss)
    }

    fn advance(&mut self, _: f64) {}
}

impl ProofRows for SoftmaxBlocks<'_, '_> {
    fn pieces(&self) -> [usize; 2] {
        // Rows of a piece of a block, and the last piece of each block.
        let lines = self.shape().lines;
        [rows_of_piece(lines), 2 * self.rows.n_blocks()]
    }

    fn gather(&mut self, point: &mut Point) -> Result<Gathered> {
        let shape = self.shape();
        let (offset, zero) = (point.offset.clone(), shape.row(0.0));
        let mut here = None;
        if shape.is_free() {
            let (mut shift, found) =
                BlockLogits::new(self, &point.w, &offset, Balance::Exact).best_shift()?;
            if shift == zero {
                here = Some(found);
            } else {
                point.shift(&mut shift, shape.n_classes);
            }
        }
        let here = match here {
            Some(here) => here,
            None => self.read_at(&point.w, [&point.offset, &zero], false)?,
        };
        Ok(Gathered { there: here.clone(), here, slopes: self.take_slopes(), widest: self.widest })
    }

    fn totals(&mut self, point: &Point, bounds: &ProofBounds) -> Result<ClassTotals> {
        let shape = self.shape();
        let mut all = ClassTotals::zero(shape.n_classes, shape.is_free());
        self.each(&point.w, [&point.offset, &shape.row(0.0)], |setup, tables, _| {
            let BlockTables { z, p, rest } = tables;
            let tables = ProofTables { scores: z, rest_here: &rest, logits: None, p, rest: &rest };
            all.join(&totals(setup, &tables, bounds)?);
            Ok(())
        })?;
        Ok(all)
    }
}
