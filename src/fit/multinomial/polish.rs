//! A better dual point for a Newton iterate: one epoch of the descent from the softmax.
//!
//! At a Newton iterate the gap is half the squared gradient, the price of the softmax as dual point. The
//! objective itself is far closer to its optimum, for Newton's method squares the error. An epoch of
//! coordinate descent from that dual point moves every row to where it is best for the others, which is what
//! a gradient is made of; it costs a pass where a Newton step costs ten and more.

use super::balance::balance;
use super::descent::Descent;
use super::newton::SoftmaxNewton;
use super::passes::Setup;
use super::softmax::FAR;
use super::source::Balance;
use super::start::{DualStart, SoftmaxStart, normalise};
use super::tables::SoftmaxTables;
use super::{certified_setup, descent_bias};
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::dual::active;
use crate::fit::problem::Intercept;
use crate::matrix::lanes::Block;
use crate::{Result, memory};

/// What an epoch has found.
pub struct Polished {
    /// The dual point.
    pub logits: Block<LINE>,
    /// The dual value there.
    pub value: f64,
    /// Readings of the data.
    pub passes: f64,
}

/// The dual point after an epoch from where `newton` is.
///
/// # Errors
/// As for [`super::solve`].
pub fn polish(newton: &SoftmaxNewton<SoftmaxTables<'_>>, seed: u64) -> Result<Polished> {
    let here = newton.rows.setup();
    let (problem, certified) = (here.problem, certified_setup(&here.problem, here.monitor));
    let setup = Setup::new(&problem, descent_bias(&problem), here.monitor);
    let mut descent = Descent::new(setup, certified_setup(&problem, here.monitor));
    let mut logits = newton.rows.z.clone();
    normalise(here, &mut logits);
    let mut offset = here.row(FAR);
    newton.intercepts(&mut offset);
    descent.start_at(&newton.dual_weights(), &offset, logits);
    descent.epoch(&mut active::random(seed, 1))?;
    let passes = descent.passes + 0.5;
    let (_, offset, mut logits) = descent.into_state();
    if problem.intercept == Intercept::Free {
        let (mut p, mut rest) = (certified.table(), memory::zeros(certified.n_rows()));
        let (shift, _) = balance(&certified, &logits, &mut p, &mut rest, Balance::Exact)?;
        certified.shift(&mut logits, &shift);
    }
    let DualStart { logits, value, .. } = SoftmaxStart::Logits(logits, offset).into_dual(&certified)?;
    Ok(Polished { logits, value, passes })
}
