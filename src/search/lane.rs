//! Lanes that solve by themselves: what one did at a `C`, and the step of all of them.

use std::sync::Arc;

use super::SearchStep;

/// What one lane did at one `C`.
pub struct Done {
    /// As in [`SearchStep`], of this lane.
    pub passes: f64,
    /// As in [`SearchStep`], of this lane.
    pub n_iter: usize,
    /// The requested accuracy was reached.
    pub is_converged: bool,
    /// The solution stayed as it was.
    pub is_unchanged: bool,
    /// Primal value of the solution.
    pub objective: f64,
    /// Largest `C` at which the solution is accepted unchanged.
    pub until: f64,
    /// Decision values of the held-out rows, if they are new.
    pub decisions: Option<Vec<f64>>,
}

impl Done {
    /// Nothing was read: the solution is accepted as it is.
    pub fn unchanged(objective: f64, until: f64) -> Self {
        Self {
            passes: 0.0,
            n_iter: 0,
            is_converged: true,
            is_unchanged: true,
            objective,
            until,
            decisions: None,
        }
    }
}

/// The step of all lanes together, with the decision values after it.
pub fn step(c: f64, done: &[Done], decisions: &Arc<Vec<Vec<f64>>>) -> SearchStep {
    SearchStep {
        c,
        passes: done.iter().map(|d| d.passes).sum(),
        n_iter: done.iter().map(|d| d.n_iter).sum(),
        inner: 0,
        is_unchanged: done.iter().all(|d| d.is_unchanged),
        is_converged: done.iter().all(|d| d.is_converged),
        unchanged_until: done.iter().map(|d| d.until).fold(f64::INFINITY, f64::min).max(c),
        objective: done.iter().map(|d| d.objective).collect(),
        decisions: Arc::clone(decisions),
        seconds: 0.0,
        is_replayed: false,
    }
}
