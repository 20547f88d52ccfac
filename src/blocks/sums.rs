//! What the dual value of a binary problem needs of all its rows, kept as sums: a step adds the change of its
//! own rows. They also tell how to move the dual variables onto the constraint of a free intercept.

use crate::loss::Loss;

/// Sums over the rows of a problem, at its dual variables.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sums {
    /// Of the rows' terms `h_i(a_i)` of the dual value.
    pub terms: f64,
    /// Of the dual variables with label -1 and +1.
    pub all: [f64; 2],
    /// Of those well inside their box.
    pub inside: [f64; 2],
}

/// Dual variables above this share of their bound count as at it.
const INSIDE: f64 = 1.0 - 1e-9;

impl Sums {
    /// Adds `times` a row of label `y`, cost `c` and dual variable `a`.
    #[inline(always)]
    pub fn add<L: Loss>(&mut self, loss: L, times: f64, y: f64, c: f64, a: f64) {
        let side = usize::from(y > 0.0);
        self.terms += times * loss.dual_term(c, a);
        self.all[side] += times * a;
        if a < INSIDE * c {
            self.inside[side] += times * a;
        }
    }

    /// Adds those of further rows.
    pub fn join(&mut self, more: &Self) {
        self.terms += more.terms;
        for side in 0..2 {
            self.all[side] += more.all[side];
            self.inside[side] += more.inside[side];
        }
    }

    /// Moves the dual point onto `sum y_i a_i = 0`: which rows are scaled down, and by what factor (eq. by
    /// eq. as in [`crate::fit::certificate::dual_on_constraint`]). `excess` is that sum.
    pub fn shift(&self, excess: f64) -> Shift {
        let side = usize::from(excess > 0.0);
        let inside_only = self.inside[side] > 2.0 * excess.abs();
        let total = if inside_only { self.inside[side] } else { self.all[side] };
        let factor = if excess == 0.0 { 0.0 } else { (excess.abs() / total).min(1.0) };
        Shift { sign: if excess > 0.0 { 1.0 } else { -1.0 }, factor, inside_only }
    }
}

/// How a dual point is moved onto its constraint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    sign: f64,
    factor: f64,
    inside_only: bool,
}

impl Shift {
    /// By how much the dual variable of a row falls.
    #[inline(always)]
    pub fn cut(&self, y: f64, c: f64, a: f64) -> f64 {
        let is_concerned = y == self.sign && (!self.inside_only || a < INSIDE * c);
        if is_concerned { self.factor * a } else { 0.0 }
    }
}
