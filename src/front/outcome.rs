//! What comes back.

use crate::blocks::{self, AllClassesOutcome};
use crate::fit::crammer_singer::{ClassSolution, weights::ClassWeights};
use crate::fit::multinomial::MultinomialSolution;
use crate::fit::{Certificate, Solution, SolverKind, Status};
use crate::labels::penalised::PenalisedSoftmax;
use crate::labels::sparse::SparseSolution;
use crate::presolve::{PresolveReport, Presolved};
use crate::source::mapped::StoreMap;
use crate::store::columns;
use crate::store::reader::Store;
use crate::{Result, memory};

/// A model, how good it is and what it cost.
pub struct Outcome {
    /// Weights, one vector per problem or per class.
    pub weights: Weights,
    /// Intercepts on the scale of the decision value, as many as vectors.
    pub intercepts: Vec<f64>,
    /// One entry per problem; a single one for all classes at once.
    pub facts: Vec<ProblemFacts>,
    /// Length of each vector.
    pub n_weights: usize,
    /// What was done to the columns, if anything.
    pub presolve: Option<PresolveReport>,
    /// Readings of a store's blocks, per problem; empty for rows in memory.
    pub loads: Vec<f64>,
}

/// The weights of a model.
pub enum Weights {
    /// A vector per problem.
    Dense(Vec<Vec<f64>>),
    /// Weights of all classes by column; columns `0..columns.len()` are the caller's `columns`, the others
    /// are where they are.
    Classes {
        /// The weights.
        weights: ClassWeights,
        /// Columns of `weights`.
        n_used: usize,
        /// The caller's columns.
        columns: Vec<u32>,
    },
    /// Nonzero weights of each label: columns and values.
    Sparse(Vec<(Vec<u32>, Vec<f64>)>),
}

/// What is known of a problem's solution besides its weights.
#[derive(Clone, Copy, Debug)]
pub struct ProblemFacts {
    /// Primal and dual value.
    pub certificate: Certificate,
    /// How the fit ended.
    pub status: Status,
    /// Epochs or steps.
    pub n_iter: usize,
    /// Readings of the whole data.
    pub passes: f64,
    /// Name of the solver.
    pub solver: &'static str,
}

/// The solver's name for a store that was read into memory.
const IN_MEMORY: &str = "in_memory";

impl From<&Solution> for ProblemFacts {
    fn from(solution: &Solution) -> Self {
        let Solution { certificate, passes, n_iter, status, solver, .. } = *solution;
        Self { certificate, status, n_iter, passes, solver: solver.name() }
    }
}

impl Outcome {
    /// Of binary problems.
    pub fn of_solutions(solutions: Vec<Solution>, n_weights: usize, packed: Option<&Presolved>) -> Self {
        Self {
            facts: solutions.iter().map(ProblemFacts::from).collect(),
            intercepts: solutions.iter().map(|solution| solution.intercept).collect(),
            weights: Weights::Dense(solutions.into_iter().map(|solution| solution.w).collect()),
            n_weights,
            presolve: packed.map(|packed| *packed.report()),
            loads: Vec::new(),
        }
    }

    /// Of labels with sparse weights, in order; a label without a solution has none.
    pub fn of_sets(found: Vec<Option<SparseSolution>>, n_weights: usize, packed: Option<&Presolved>) -> Self {
        let found: Vec<SparseSolution> = found.into_iter().flatten().collect();
        let facts = |s: &SparseSolution| {
            let SparseSolution { certificate, passes, n_iter, status, solver, .. } = *s;
            ProblemFacts { certificate, status, n_iter, passes, solver: solver.name() }
        };
        Self {
            facts: found.iter().map(facts).collect(),
            intercepts: found.iter().map(|solution| solution.weights.intercept).collect(),
            weights: Weights::Sparse(
                found.into_iter().map(|s| (s.weights.columns, s.weights.values)).collect(),
            ),
            n_weights,
            presolve: packed.map(|packed| *packed.report()),
            loads: Vec::new(),
        }
    }

    /// Of all classes at once.
    pub fn of_all_classes(solution: ClassSolution, n_weights: usize, packed: Option<&Presolved>) -> Self {
        let ClassSolution { weights, intercepts, certificate, status, n_iter, passes, .. } = solution;
        let solver = SolverKind::CrammerSinger.name();
        Self {
            facts: vec![ProblemFacts { certificate, status, n_iter, passes, solver }],
            intercepts,
            weights: Weights::Classes { weights, n_used: n_weights, columns: Vec::new() },
            n_weights,
            presolve: packed.map(|packed| *packed.report()),
            loads: Vec::new(),
        }
    }

    /// Of all classes of a multinomial problem.
    pub fn of_multinomial(
        solution: MultinomialSolution,
        n_weights: usize,
        packed: Option<&Presolved>,
    ) -> Self {
        let MultinomialSolution { weights, intercepts, certificate, status, n_iter, passes } = solution;
        let solver = "multinomial";
        Self {
            facts: vec![ProblemFacts { certificate, status, n_iter, passes, solver }],
            intercepts,
            weights: Weights::Classes { weights, n_used: n_weights, columns: Vec::new() },
            n_weights,
            presolve: packed.map(|packed| *packed.report()),
            loads: Vec::new(),
        }
    }

    /// Of all classes of a multinomial problem with another penalty than the square.
    pub fn of_penalised_softmax(solution: PenalisedSoftmax, n_weights: usize) -> Self {
        let PenalisedSoftmax { weights, intercepts, certificate, status, n_iter, passes } = solution;
        let solver = SolverKind::WorkingSet.name();
        Self {
            facts: vec![ProblemFacts { certificate, status, n_iter, passes, solver }],
            intercepts,
            weights: Weights::Dense(weights),
            n_weights,
            presolve: None,
            loads: Vec::new(),
        }
    }

    /// Of binary problems on the blocks of a store.
    pub fn of_blocks(found: Vec<blocks::BlockOutcome>, n_weights: usize, solver: &'static str) -> Self {
        let facts = |o: &blocks::BlockOutcome| {
            let blocks::BlockOutcome { certificate, passes, n_iter, status, .. } = *o;
            ProblemFacts { certificate, status, n_iter, passes, solver }
        };
        Self {
            facts: found.iter().map(facts).collect(),
            intercepts: found.iter().map(|outcome| outcome.intercept).collect(),
            loads: found.iter().map(|outcome| outcome.loads).collect(),
            weights: Weights::Dense(found.into_iter().map(|outcome| outcome.w).collect()),
            n_weights,
            presolve: None,
        }
    }

    /// Of all classes at once on the blocks of a store, or on their degree-2 features.
    ///
    /// # Errors
    /// Those of the store.
    pub fn of_all_blocks(
        found: AllClassesOutcome,
        store: &Store,
        map: Option<&StoreMap>,
        solver: &'static str,
    ) -> Result<Self> {
        let AllClassesOutcome { weights, intercepts, certificate, passes, n_iter, status, loads } = found;
        let (n_used, n_weights) = (store.meta().n_used, store.meta().n_cols);
        let (weights, n_weights) = match map {
            Some(map) => (mapped_classes(&weights, map, intercepts.len()), map.n_input()),
            None => (Weights::Classes { weights, n_used, columns: store.old_columns()? }, n_weights),
        };
        Ok(Self {
            facts: vec![ProblemFacts { certificate, status, n_iter, passes, solver }],
            intercepts,
            weights,
            n_weights,
            presolve: None,
            loads: vec![loads],
        })
    }

    /// Weights on the columns of a store that was read into memory become those of the store's input.
    ///
    /// # Errors
    /// Those of the store.
    pub fn in_columns_of(mut self, store: &Store, map: Option<&StoreMap>) -> Result<Self> {
        let old = store.old_columns()?;
        self.n_weights = map.map_or(store.meta().n_cols, StoreMap::n_input);
        let n_cols = store.meta().n_cols;
        let moved = |mut w: Vec<f64>| match map {
            Some(map) => map.to_input(&w),
            None => {
                memory::resize(&mut w, n_cols, 0.0);
                columns::restore(&old, &mut w);
                w
            }
        };
        self.weights = match self.weights {
            Weights::Dense(vectors) => Weights::Dense(vectors.into_iter().map(moved).collect()),
            Weights::Classes { weights, n_used, .. } => match map {
                Some(map) => mapped_classes(&weights, map, self.intercepts.len()),
                None => Weights::Classes { weights, n_used, columns: memory::copy(&old) },
            },
            sparse @ Weights::Sparse(_) => sparse,
        };
        Ok(self.of_one_load())
    }

    /// Says that a store was read once, into memory.
    pub fn of_one_load(self) -> Self {
        self.of_loads(IN_MEMORY, 1.0)
    }

    /// Says by which solver a store was read how often, for all problems.
    pub fn of_loads(mut self, solver: &'static str, loads: f64) -> Self {
        self.facts.iter_mut().for_each(|facts| facts.solver = solver);
        self.loads = vec![loads; self.facts.len()];
        self
    }
}

/// Weights of all classes, a vector for each, in the degree-2 features of a store's input.
fn mapped_classes(weights: &ClassWeights, map: &StoreMap, n_classes: usize) -> Weights {
    let n = map.inner().n_out();
    Weights::Dense((0..n_classes).map(|class| map.to_input(&weights.class(class, n))).collect())
}
