//! Warm-started cross-validated search for `C` (Chu15, algorithm 1).
//!
//! Every fold (and class) keeps its own weights and starts each `C` from its solution at the `C` below. Never
//! one vector for all folds: it has seen the rows held out, and fits that end early then over-estimate the
//! accuracy and the best `C` (Chu15, section 4.5 and table 3). One binary problem of one fold is a *lane*.
//!
//! * [`driver`]: the loop: next value, advance, journal, visit; [`runner`]: moves a route to the next
//!   value from the right state, or replays the step from a journal;
//! * [`plan`]: which values of `C` in which order, and the reasons to end;
//! * [`Route`]: how all lanes move to a value: [`primal`] (Newton to a gradient norm, [`terms`] its
//!   objective), [`dual`] (fits to a duality gap), [`handover`] (these, then Newton), [`penalised`] (as
//!   [`dual`] with another penalty than the square, for all classes in one fit [`penalised_softmax`]),
//!   [`crammer_singer`] or [`multinomial`] (the same with all classes in one fit); over a store,
//!   [`crate::blocks::route`];
//! * [`lane`]: what lanes of all but the first share; [`saturation`]: how a search over separable data ends
//!   exactly;
//! * [`folds`]: the checked splits;
//! * [`journal`], [`fingerprint`]: searches that survive being killed;
//! * [`watch`]: progress of lanes that run as parallel tasks.
//!
//! Memory: what the route says, beside the held-out decision values; `refine` adds up to four copies of the
//! route's state, see [`plan`].

pub mod crammer_singer;
pub mod driver;
pub mod dual;
pub mod fingerprint;
pub mod folds;
pub mod handover;
pub mod journal;
pub mod lane;
pub mod multinomial;
pub mod penalised;
pub mod penalised_softmax;
pub mod plan;
pub mod primal;
pub mod runner;
pub mod saturation;
pub mod terms;
pub mod watch;

use std::sync::Arc;

use crate::Result;
use crate::fit::{Intercept, Params, SolverKind, check_length};
use crate::labels::sparse_weights::SparseWeights;
use crate::labels::{Labels, MultiClass};

#[cfg(doc)]
use crate::fit::auto;
use crate::loss::{Loss, LossKind, with_loss};
use crate::memory;

pub use driver::search;
pub use folds::{Fold, SearchData};
pub use plan::{EndReason, SearchPlan, StopRule, Values};

/// Largest `C` that is tried.
pub const DEFAULT_C_MAX: f64 = 1024.0;
/// Factor between successive values of `C`.
pub const DEFAULT_RATIO: f64 = 2.0;
/// Accuracy of the fits of a search, see [`SearchSettings::params`].
pub const DEFAULT_SEARCH_TOL: f64 = 1e-2;
/// Relative duality gap of fits per unit of `tol`: about the accuracy that the gradient criterion gives in
/// the primal.
pub const GAP_PER_TOL: f64 = 0.1;

/// What to fit at each `C` and how well.
#[derive(Clone, Copy, Debug)]
pub struct SearchSettings {
    /// The loss.
    pub loss: LossKind,
    /// Treatment of the intercept.
    pub intercept: Intercept,
    /// Solver, accuracy, limits and seed.
    ///
    /// [`crate::fit::SolverKind::Auto`] is Newton for a smooth loss with few columns or many entries per
    /// column, else a fit to a duality gap by dual coordinate descent. Tried: Newton everywhere, to which
    /// Chu15 come in section 3.4: [`auto::prefers_lanes`]. The accuracy is, for Newton, the gradient norm
    /// relative to `min(pos, neg) / n` times the norm at zero (Chu15, eq. 28), and with [`StopRule::Exact`]
    /// the height of the objective above its minimum relative to it ([`primal`]); for others ten times the
    /// relative duality gap.
    pub params: Params,
    /// What more than two classes are to the logistic loss.
    pub multi_class: MultiClass,
}

impl SearchSettings {
    /// Whether all of so many classes are one problem, fitted by one lane per fold.
    pub fn is_multinomial(&self, n_classes: u32) -> bool {
        self.multi_class == MultiClass::Multinomial && self.loss == LossKind::Logistic && n_classes > 2
    }

    /// The `C` at which a search begins, [`lower_bound`], for rows of so much weight and such a largest
    /// squared norm.
    pub fn lower_bound(&self, weight: f64, max_squared_norm: f64, n_classes: u32) -> f64 {
        let constant = self.intercept.penalised_height().powi(2);
        // See the description of [`multinomial`] for the 2.
        let factor = if self.is_multinomial(n_classes) { 2.0 } else { 1.0 };
        lower_bound(self.loss, factor * weight, max_squared_norm + constant)
    }

    /// Fits of a fold at each `C`.
    pub fn fits_per_fold(&self, labels: &Labels<'_>) -> usize {
        let is_one = self.params.solver == SolverKind::CrammerSinger || self.is_multinomial(labels.n_classes);
        if is_one { 1 } else { labels.n_problems() }
    }
}

/// What happened at one value of `C`.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchStep {
    /// The value.
    pub c: f64,
    /// Readings of the data, summed over lanes, in units of one whole training part.
    pub passes: f64,
    /// Epochs or Newton steps, summed over lanes.
    pub n_iter: usize,
    /// Conjugate gradient steps, summed over lanes; 0 for dual fits.
    pub inner: usize,
    /// No solution of any lane changed.
    pub is_unchanged: bool,
    /// At the solution of the step before, the gradient of every lane is at most `tol` times that at zero
    /// (Chu15, eq. 24). Newton's routes say so, others never.
    pub starts_near: bool,
    /// Every lane reached the requested accuracy.
    pub is_converged: bool,
    /// Largest `C` up to which every solution, unchanged, would stay accepted; infinite if for ever,
    /// [`Self::c`] if nothing is known. Every `C` in between is a step that changes nothing and reads no
    /// data.
    pub unchanged_until: f64,
    /// Primal value at each lane's solution, all problems of the first fold first; one per fold where all
    /// classes are one problem.
    pub objective: Vec<f64>,
    /// Decision values per fold, row after row of the held-out part, one number per binary problem. Unchanged
    /// steps share those of the step before.
    pub decisions: Arc<Vec<Vec<f64>>>,
    /// The weights of each binary problem or class, all of the first fold first, on routes whose weights are
    /// sparse.
    pub weights: Option<Arc<Vec<SparseWeights>>>,
    /// Wall time by the clock of the monitor; of the original step where it is replayed.
    pub seconds: f64,
    /// The step comes from a journal.
    pub is_replayed: bool,
}

/// All that a route remembers between two values of `C`, as plain arrays.
#[derive(Debug, Default, PartialEq)]
pub struct RouteState(pub Vec<Vec<f64>>);

impl Clone for RouteState {
    fn clone(&self) -> Self {
        Self(self.0.iter().map(|array| memory::copy(array)).collect())
    }
}

/// All lanes of a search on their way through the values of `C`.
pub trait Route {
    /// Moves every solution to `c`, never below the `c` before, and predicts the held-out rows. Lanes that
    /// stay accepted unchanged read no data. [`SearchStep::seconds`] and [`SearchStep::is_replayed`] are
    /// left to the driver.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`], after which only [`Self::restore`] may be called, and
    /// [`crate::Error::Overflow`].
    fn advance(&mut self, c: f64) -> Result<SearchStep>;
    /// All that [`Self::advance`] depends on; before the first step, too.
    fn state(&self) -> RouteState;
    /// Takes over a state: the following steps have the bits they had after it.
    ///
    /// # Errors
    /// [`crate::Error::Shape`] for a state of another search.
    fn restore(&mut self, state: &RouteState) -> Result<()>;
}

/// The lower bound of Chu15 (eqs. 21 and 22), rounded down to a power of two; 1 for a matrix of zeros.
pub fn lower_bound(loss: LossKind, weight: f64, max_squared_norm: f64) -> f64 {
    let bound = with_loss!(loss, loss => loss.smallest_c(weight, max_squared_norm));
    if bound.is_finite() && bound > 0.0 { bound.log2().floor().exp2() } else { 1.0 }
}

impl RouteState {
    /// The arrays, where they are `per_lane` for each lane.
    pub(crate) fn lanes(&self, n_lanes: usize, per_lane: usize) -> Result<&[Vec<f64>]> {
        check_length("arrays of a search state", n_lanes * per_lane, self.0.len())?;
        Ok(&self.0)
    }
}
