//! Rows in memory, with scores and probabilities in tables of rows x classes.

use super::balance::balance;
use super::passes::{ClassProduct, Evaluated, Setup, SoftmaxSlopes};
use super::precondition::gram;
use super::shape::{SoftmaxShape, SoftmaxSizes};
use super::softmax::{FAR, Lines};
use super::source::{Balance, SoftmaxPasses};
use super::strips::Strips;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::monitor::Progress;
use crate::fit::newton::factorisation::{Factorisation, factorisation};
use crate::fit::newton::preconditioner::Gram;
use crate::matrix::Rows;
use crate::matrix::lanes::Block;
use crate::{Result, memory};

/// The rows, and what a minimisation knows of each.
pub struct SoftmaxTables<'a> {
    setup: Setup<'a>,
    /// Logits with intercept.
    pub z: Block<LINE>,
    p: Block<LINE>,
    rest: Vec<f64>,
    q: Block<LINE>,
    step_z: Block<LINE>,
    readings: f64,
}

impl<'a> SoftmaxTables<'a> {
    /// At zero weights.
    pub fn new(setup: Setup<'a>) -> Self {
        let mut z = setup.table();
        let far = setup.row(FAR);
        setup.shift(&mut z, &far);
        Self {
            z,
            p: setup.table(),
            rest: memory::zeros(setup.n_rows()),
            q: setup.table(),
            step_z: setup.table(),
            readings: 0.0,
            setup,
        }
    }

    /// The problem.
    pub fn setup(&self) -> &Setup<'a> {
        &self.setup
    }
}

impl SoftmaxSizes for SoftmaxTables<'_> {
    fn shape(&self) -> SoftmaxShape {
        self.setup.shape()
    }

    fn max_squared_norm(&self) -> f64 {
        self.setup.design.max_squared_norm()
    }
}

impl SoftmaxPasses for SoftmaxTables<'_> {
    fn observe(&mut self, steps: usize, gap: f64) {
        let (solver, iteration) = ("multinomial", steps);
        self.setup.monitor.observe(&Progress { solver, iteration, accuracy: gap, search: None });
    }

    fn factorisation(&self) -> Option<Factorisation> {
        factorisation(&self.setup.design)
    }

    fn readings(&self) -> f64 {
        self.readings
    }

    fn add_readings(&mut self, more: f64) {
        self.readings += more;
    }

    fn decide(&mut self, w: &Strips) -> Result<()> {
        let far = self.setup.row(FAR);
        self.setup.scores(w, &far, &mut self.z);
        self.readings += 0.5;
        Ok(())
    }

    fn evaluate(&mut self, _: &Strips) -> Result<Evaluated> {
        let Self { setup, z, p, rest, .. } = self;
        let found = setup.evaluate(z, &setup.row(0.0), p, rest);
        setup.poll()?;
        Ok(found)
    }

    fn balance(&mut self, _: &Strips, how: Balance) -> Result<(Vec<[f64; LINE]>, Evaluated)> {
        let Self { setup, z, p, rest, .. } = self;
        balance(setup, z, p, rest, how)
    }

    fn shift(&mut self, shift: &Lines) {
        self.setup.shift(&mut self.z, shift);
    }

    fn slopes(&mut self, h: &mut Strips) -> Result<()> {
        let Self { setup, p, rest, .. } = self;
        setup.poll()?;
        let slopes = SoftmaxSlopes { lines: setup.lines, p, rest, problem: setup.problem };
        setup.scatter(&slopes, h);
        setup.poll()?;
        self.readings += 0.5;
        Ok(())
    }

    fn curvature(&mut self, _: &Strips, class: Option<usize>, is_dense: bool) -> Result<Gram> {
        gram(&self.setup, &self.p, &self.rest, class, is_dense)
    }

    fn begin_direction(&mut self) {
        self.step_z.fill([0.0; LINE]);
    }

    fn multiply(&mut self, _: &Strips, d: &Strips, length: f64, out: &mut Strips) -> Result<()> {
        let Self { setup, p, q, step_z, .. } = self;
        out.clear();
        setup.multiply(&mut ClassProduct { d, p, q, before: Some((length, step_z)) }, out)?;
        self.readings += 1.0;
        Ok(())
    }

    fn end_direction(&mut self, length: f64) {
        let Self { setup, q, step_z, .. } = self;
        setup.add_table(step_z, length, q);
    }

    fn loss_at(&mut self, _: &Strips, _: &Strips, length: f64) -> Result<f64> {
        self.setup.poll()?;
        Ok(self.setup.loss_at(&self.z, &self.step_z, length))
    }

    fn advance(&mut self, length: f64) {
        self.setup.add_table(&mut self.z, length, &self.step_z);
    }
}
