//! What a fit is asked for: the solver and its limits.

/// Relative duality gap at which a fit stops.
pub const DEFAULT_TOL: f64 = 1e-4;
/// Largest number of epochs over all rows (dual; visits of active rows add up to epochs) or Newton steps
/// (primal).
pub const DEFAULT_MAX_ITER: usize = 1000;

/// The name of [`SolverKind::WorkingSet`], which cannot be asked for.
pub const WORKING_SET: &str = "working_set";

/// Names of the solvers, as users write them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SolverKind {
    /// Chosen by shape and loss; a stalled dual fit moves over to Newton.
    Auto,
    /// Dual coordinate descent, a fresh permutation in each epoch, with shrinking.
    DualCd,
    /// Dual coordinate descent, a fresh permutation of all rows in each epoch: without shrinking, DCDL1 and
    /// DCDL2 of Hsieh08, slide "Comparisons (Latest Version Used)".
    DualCdPermuted,
    /// Dual coordinate descent, one random row at a time, without shrinking: the online setting of
    /// Hsieh08, slide "Order of Sub-problems".
    DualCdOnline,
    /// Truncated Newton in the primal.
    Newton,
    /// Primal coordinate descent, squared hinge only.
    PrimalCd,
    /// Cutting planes, hinge only.
    CuttingPlane,
    /// Subgradient descent in the primal; called by [`super::baselines::subgradient::solve`] only.
    Subgradient,
    /// Newton steps on working sets of columns, [`super::penalised`]; for penalties other than the square
    /// only, which no other solver takes.
    WorkingSet,
    /// The sequential dual method of [`super::crammer_singer`], for all classes at once; no solver of binary
    /// problems.
    CrammerSinger,
}

impl SolverKind {
    /// All that can be asked for, by the names that users write.
    pub const NAMES: [(&str, Self); 8] = [
        ("auto", Self::Auto),
        ("dual_cd", Self::DualCd),
        ("dual_cd_permuted", Self::DualCdPermuted),
        ("dual_cd_online", Self::DualCdOnline),
        ("newton", Self::Newton),
        ("primal_cd", Self::PrimalCd),
        ("cutting_plane", Self::CuttingPlane),
        ("crammer_singer", Self::CrammerSinger),
    ];

    /// The name of the solver.
    pub fn name(self) -> &'static str {
        match Self::NAMES.iter().find(|(_, solver)| *solver == self) {
            Some((name, _)) => name,
            None if self == Self::WorkingSet => WORKING_SET,
            None => "subgradient",
        }
    }
}

/// Limits of a fit.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// Which solver.
    pub solver: SolverKind,
    /// Relative duality gap to reach.
    pub tol: f64,
    /// Largest number of epochs or Newton steps.
    pub max_iter: usize,
    /// Seed of the visiting order.
    pub seed: u64,
}

impl Params {
    /// With the seed of one task of several.
    pub fn of_task(&self, task: usize) -> Self {
        Self { seed: self.seed.wrapping_add(task as u64), ..*self }
    }
}

impl Default for Params {
    fn default() -> Self {
        Self { solver: SolverKind::Auto, tol: DEFAULT_TOL, max_iter: DEFAULT_MAX_ITER, seed: 0 }
    }
}
