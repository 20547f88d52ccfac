//! The certificate of one binary problem, from sums over all its rows.
//!
//! The dual value is computed as in [`crate::fit::certificate`]: it needs only the margins and the
//! distance of `w` from the weights of the dual variables. A bound of the rounding errors is subtracted as
//! there, with the largest norm of a row in place of each row's own ([`Extent`]).

use crate::fit::Certificate;
use crate::fit::certificate::{Extent, UNIT};
use crate::fit::intercept::{hinge_optimum_of, smooth_shift};
use crate::fit::objective::{Objective, Shifted, sum_terms};
use crate::fit::sweep::sum;
use crate::loss::Loss;
use crate::memory;

/// Sums of one page.
#[derive(Clone, Copy, Default)]
pub struct GapSums {
    /// Losses, where the intercept is known.
    pub losses: f64,
    terms: f64,
    /// `sum a_i m_i` of the dual variables as they are lowered, the margins without a free intercept.
    products: f64,
    /// Sum of the sizes of both.
    size: f64,
    /// `sum a_i` and `sum y_i a_i`.
    duals: f64,
    excess: f64,
    /// `sum cut_i |x_i|`.
    pub cut_norms: f64,
    /// Entries of the longest row.
    pub longest: usize,
    /// The largest dual variable of either label.
    most: [Most; 2],
}

/// A dual variable and what lowering it would cost.
#[derive(Clone, Copy, Default)]
struct Most {
    alpha: f64,
    price: f64,
}

impl GapSums {
    /// Adds those of further rows.
    pub fn join(&mut self, other: &Self) {
        self.losses += other.losses;
        self.terms += other.terms;
        self.products += other.products;
        self.size += other.size;
        self.duals += other.duals;
        self.excess += other.excess;
        self.cut_norms += other.cut_norms;
        self.longest = self.longest.max(other.longest);
        for (mine, its) in self.most.iter_mut().zip(other.most) {
            if its.alpha > mine.alpha {
                *mine = its;
            }
        }
    }

    /// Adds a row's part of the dual value, with its margin.
    #[inline(always)]
    pub fn add<L: Loss>(&mut self, loss: L, y: f64, c: f64, a: f64, margin: f64) {
        let (term, product) = (loss.dual_term_closely(c, a), a * margin);
        self.terms += term;
        self.products += product;
        self.size += term.abs() + product.abs();
        self.duals += a;
        self.excess += y * a;
        let most = &mut self.most[usize::from(y > 0.0)];
        if a > most.alpha {
            *most = Most { alpha: a, price: 2.0 * loss.dual_term(c, 0.5 * a).max(0.0) / a + margin.abs() };
        }
    }

    /// What moving the dual variables onto the constraint of a free intercept costs after all, and by how
    /// much it moves their weights: one variable of the heavier sign is lowered by the excess, whatever
    /// rounding has made of it.
    fn repair(&self, n_rows: usize, norm: f64) -> (f64, f64) {
        let delta = self.excess.abs() + UNIT * (n_rows as f64) * self.duals;
        let Most { alpha, price } = self.most[usize::from(self.excess > 0.0)];
        let price = if delta == 0.0 || alpha >= 2.0 * delta { delta * price } else { f64::INFINITY };
        (price, delta * norm)
    }

    /// Primal value at a point and a lower bound of the optimum from the dual variables, whose weights are
    /// within `radius` of the point's, give or take rounding in them.
    pub fn certificate<L: Loss>(&self, loss: L, at: &At, radius: f64) -> Certificate {
        let At { n_rows, n_weights, squared, losses, intercept, norm, total, is_free } = *at;
        let (price, length) = if is_free { self.repair(n_rows, norm) } else { (0.0, 0.0) };
        let extent = Extent {
            n_rows,
            n_weights,
            longest: self.longest,
            reach: norm * squared.sqrt() + intercept.abs(),
            steepness: self.duals + loss.steepness(total, losses),
            size: squared + losses + self.size,
        };
        let radius = radius + self.cut_norms + length;
        let dual =
            0.5 * squared + self.terms - self.products - 0.5 * radius * radius - extent.rounding() - price;
        Certificate::proved(0.5 * squared + losses, dual)
    }

    /// At most this far may a sum of all `a_i y_i x_i` be off.
    pub fn rounding_of_weights(&self, n_rows: usize, norm: f64) -> f64 {
        UNIT * (n_rows + 8) as f64 * norm * self.duals
    }
}

/// Where a certificate is asked for.
#[derive(Clone, Copy)]
pub struct At {
    /// Number of rows.
    pub n_rows: usize,
    /// Number of weights.
    pub n_weights: usize,
    /// Their squared norm.
    pub squared: f64,
    /// Losses of all rows.
    pub losses: f64,
    /// The intercept.
    pub intercept: f64,
    /// At least the norm of every row.
    pub norm: f64,
    /// Sum of the costs.
    pub total: f64,
    /// Whether the intercept is free.
    pub is_free: bool,
}

/// Decision values and signed costs by position, for the exact intercept.
#[derive(Default)]
pub struct Decisions {
    /// Decision values without intercept.
    pub f: Vec<f64>,
    /// Label times cost, 0 for a row that does not belong to the problem.
    pub signed: Vec<f64>,
}

/// The best intercept and the losses with it.
pub fn best<L: Loss>(loss: L, decisions: Decisions) -> (f64, f64) {
    let Decisions { mut f, mut signed } = decisions;
    if loss.is_smooth() {
        let objective = Signed { loss, signed: &signed };
        let [b] = smooth_shift(&objective, f.as_chunks().0);
        let [[losses]] = sum_terms(&objective, Shifted(f.as_chunks().0, [b]), |_, [value, ..]| [value]);
        return (b, losses);
    }
    // The kinks take the place of both lists.
    let positive: f64 = signed.iter().filter(|&&c| c > 0.0).sum();
    let mut kinks: Vec<(f64, f64)> = memory::with_capacity(f.len());
    while let (Some(f), Some(c)) = (f.pop(), signed.pop()) {
        if c != 0.0 {
            kinks.push((c.signum() - f, c));
        }
    }
    kinks.reverse();
    let b = hinge_optimum_of(&mut kinks, positive);
    let [losses] = sum(kinks.len(), |i| {
        let (at, c) = kinks[i];
        // m = y (f + b) = 1 - y (kink - b)
        [c.abs() * loss.value(1.0 - c.signum() * (at - b))]
    });
    (b, losses)
}

/// Row terms by signed cost; a row of cost 0 is no row.
struct Signed<'a, L> {
    loss: L,
    signed: &'a [f64],
}

impl<L: Loss> Objective<1> for Signed<'_, L> {
    #[inline(always)]
    fn all(&self, i: usize, z: &[f64; 1]) -> [[f64; 1]; 3] {
        let (c, y) = (self.signed[i].abs(), self.signed[i].signum());
        let [value, slope, bend] = self.loss.all(y * z[0]);
        [[c * value], [c * y * slope], [c * bend]]
    }
}
