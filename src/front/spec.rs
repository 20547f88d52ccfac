//! What is asked for.

use crate::Result;
use crate::fit::{Intercept, Params};
use crate::labels::MultiClass;
use crate::loss::LossKind;
use crate::pairs::map::{Factors, Map};
use crate::penalty::Penalty;
use crate::source::mapped::StoreMap;
use crate::store::reader::Store;

/// What a fit is asked for, whatever the data.
#[derive(Clone, Copy, Debug)]
pub struct Spec<'a> {
    /// The loss.
    pub loss: LossKind,
    /// Treatment of the intercept.
    pub intercept: Intercept,
    /// Solver, tolerance, limit and seed.
    pub params: Params,
    /// Whether columns are merged, dropped and ordered first.
    pub presolve: PresolveChoice,
    /// Degree-2 features in place of the columns.
    pub map: Option<MapSpec>,
    /// What more than two classes are to the logistic loss.
    pub multi_class: MultiClass,
    /// The penalty, where it is not the square of all weights.
    pub penalty: Option<&'a Penalty>,
    /// Where Newton's method, or the fit with another penalty, begins; `None` leaves that to the solver.
    pub start: Option<&'a StartWeights>,
}

/// Weights to go on from, for one problem after the other.
#[derive(Clone, Debug)]
pub struct StartWeights {
    /// A weight for every column of the first problem or class, then of the second.
    pub coef: Vec<f64>,
    /// An intercept for each.
    pub intercepts: Vec<f64>,
}

impl StartWeights {
    /// Weights and intercept of each problem.
    pub fn problems(&self) -> Vec<(&[f64], f64)> {
        (0..self.intercepts.len()).map(|k| self.problem(k)).collect()
    }

    /// Those of problem `k`.
    pub fn problem(&self, k: usize) -> (&[f64], f64) {
        let n = self.coef.len() / self.intercepts.len();
        (&self.coef[k * n..(k + 1) * n], self.intercepts[k])
    }
}

/// Whether to presolve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PresolveChoice {
    /// Where it pays.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// A degree-2 map, for any number of columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapSpec {
    /// That of the kernel `(gamma x.z + coef0)^2`; `None` for the plain products.
    pub gamma: Option<f64>,
    /// See `gamma`.
    pub coef0: f64,
    /// Whether there is a constant feature.
    pub has_constant: bool,
    /// Hash pairs into `2^bits` weights where there are more of them.
    pub bits: u32,
    /// Seed of the hash.
    pub seed: u64,
}

impl MapSpec {
    /// The map of `n` columns.
    ///
    /// # Errors
    /// Those of [`Map::new`].
    pub fn map(&self, n: usize) -> Result<Map> {
        let mut factors = self.gamma.map_or_else(Factors::plain, |gamma| Factors::kernel(gamma, self.coef0));
        if !self.has_constant {
            factors.constant = 0.0;
        }
        Map::new(n, factors, self.bits, self.seed)
    }

    /// The map of the rows of a store.
    ///
    /// # Errors
    /// Those of [`StoreMap::new`].
    pub fn of_store(&self, store: &Store) -> Result<StoreMap> {
        StoreMap::new(store, self.map(store.meta().n_cols)?)
    }
}
