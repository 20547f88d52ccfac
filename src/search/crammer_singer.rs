//! The route of Crammer-Singer fits to a duality gap: one lane per fold, all classes in it.
//!
//! Each lane keeps its dual variables and starts the next `C` from a multiple of them: of the factors between
//! 1 and the ratio of the two `C`, all of which keep them feasible, the one with the largest dual value,
//! `sum / |W|^2` without bounds. A solution that stays accepted is kept as it is, see [`super::lane`].
//!
//! Memory per fold: the sparse dual variables, and for each of the fits in flight the weights of all classes.

use super::folds::LaneSetup;
use super::lane::{AcceptedFit, LaneFit, LaneFits, LaneRoute, Saved};
use crate::fit::crammer_singer::{Alpha, ClassSolution, ClassStart};
use crate::fit::{Intercept, Monitor, Status, check_length, crammer_singer};
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::memory::CollectLarge;
use crate::{Result, labels, memory};

/// Fits of all classes at once.
pub struct AllClassesFits<'a> {
    setup: &'a LaneSetup<'a>,
}

/// The route of such fits, before the first value of `C`.
pub fn route<'a>(setup: &'a LaneSetup<'a>) -> LaneRoute<'a, AllClassesFits<'a>> {
    LaneRoute::new(setup, AllClassesFits { setup })
}

/// What a lane keeps of a fit; the weights would be too many.
pub struct AllClassesSolution {
    start: ClassStart,
    /// Factor of the dual variables with the largest dual value, without bounds.
    factor: f64,
}

impl LaneFits for AllClassesFits<'_> {
    type Kept = AllClassesSolution;
    const SAVES_DECISIONS: bool = true;

    fn n_lanes(&self) -> usize {
        self.setup.parts.len()
    }

    /// Training rows of the fold, and classes.
    fn shape(&self, fold: usize) -> [usize; 2] {
        [self.setup.parts[fold].train.len(), self.setup.labels.n_classes as usize]
    }

    fn fit_at(
        &self,
        fold: usize,
        c: f64,
        last: Option<(AcceptedFit, AllClassesSolution)>,
        monitor: &dyn Monitor,
    ) -> Result<LaneFit<AllClassesSolution>> {
        let setup = self.setup;
        let (class, cost) = setup.classes_and_costs(fold, c);
        let (problem, params) = (setup.class_problem(fold, &class, &cost), setup.class_params(fold));
        let start = last.map_or_else(ClassStart::default, |(accepted, kept)| ClassStart {
            factor: Some(kept.factor.clamp(1.0, c / accepted.c)),
            ..kept.start
        });
        let solution = crammer_singer::solve(&problem, &params, &start, 1, monitor)?;
        let is_converged = solution.status == Status::Converged;
        let norm = 0.5 * squared_norm(&solution, setup);
        let accepted = AcceptedFit::new(c, norm, solution.certificate, is_converged, params.tol);
        let factor = if norm > 0.0 { solution.alpha.values.iter().sum::<f64>() / (2.0 * norm) } else { 1.0 };
        let (objective, decisions) = (solution.certificate.primal, self.score(fold, &solution));
        let (passes, n_iter) = (solution.passes, solution.n_iter);
        let start =
            ClassStart { alpha: Some(solution.alpha), intercepts: Some(solution.intercepts), factor: None };
        let kept = AllClassesSolution { start, factor };
        Ok(LaneFit { accepted, kept, passes, n_iter, is_converged, objective, decisions })
    }

    fn decisions(&self, _: usize, _: &AllClassesSolution) -> Option<Vec<f64>> {
        None
    }

    fn write_decisions(&self, fold: usize, decisions: Vec<f64>, all: &mut [Vec<f64>]) {
        all[fold] = decisions;
    }
}

impl AllClassesFits<'_> {
    /// Decision values of the held-out rows: one per class, for two classes that of the second less that of
    /// the first.
    fn score(&self, fold: usize, solution: &ClassSolution) -> Vec<f64> {
        let (rows, b) = (Design { rows: self.setup.rows, ids: None, bias: 0.0 }, &solution.intercepts);
        let mut scores = memory::zeros(solution.weights.padded());
        let n_values = labels::n_problems(b.len());
        let mut decisions = memory::with_capacity(self.setup.parts[fold].test.len() * n_values);
        for &i in self.setup.parts[fold].test {
            solution.weights.scores(&rows, i as usize, &mut scores);
            if b.len() == 2 {
                decisions.push(scores[1] + b[1] - scores[0] - b[0]);
            } else {
                decisions.extend(scores.iter().zip(b).map(|(s, b)| s + b));
            }
        }
        decisions
    }
}

/// `sum_m |w_m|^2`, with the penalised intercepts.
fn squared_norm(solution: &ClassSolution, setup: &LaneSetup<'_>) -> f64 {
    let constant = match setup.settings.intercept {
        Intercept::Penalised(s) => solution.intercepts.iter().map(|b| (b / s).powi(2)).sum(),
        _ => 0.0,
    };
    solution.weights.squared(setup.rows.n_cols()) + constant
}

/// Numbers in the first array of a lane.
const FACTS: usize = 5;

impl Saved for AllClassesSolution {
    type Shape = [usize; 2];
    /// Facts, intercepts, and starts, classes and values of the dual variables.
    const ARRAYS: usize = 5;

    fn arrays(&self, accepted: &AcceptedFit) -> Vec<Vec<f64>> {
        let AcceptedFit { c, norm, loss, until } = *accepted;
        let alpha = self.start.alpha.as_ref().expect("a fit leaves dual variables");
        let b = self.start.intercepts.as_ref().expect("a fit leaves intercepts");
        let starts = alpha.starts.iter().map(|s| *s as f64).collect_large();
        let classes = alpha.classes.iter().map(|c| f64::from(*c)).collect_large();
        let facts = vec![c, norm, loss, self.factor, until];
        vec![facts, memory::copy(b), starts, classes, memory::copy(&alpha.values)]
    }

    fn rebuild(arrays: &[Vec<f64>], [n_rows, n_classes]: [usize; 2]) -> Result<(AcceptedFit, Self)> {
        let [facts, b, starts, classes, values] = arrays else { unreachable!("a lane has five arrays") };
        check_length("facts of a search state", FACTS, facts.len())?;
        check_length("intercepts of a search state", n_classes, b.len())?;
        check_length("rows of a search state", n_rows + 1, starts.len())?;
        let alpha = Alpha {
            starts: starts.iter().map(|s| *s as usize).collect_large(),
            classes: classes.iter().map(|c| *c as u32).collect_large(),
            values: memory::copy(values),
        };
        alpha.check(n_classes)?;
        let [c, norm, loss, factor, until] = facts[..] else {
            unreachable!("the number of facts is checked")
        };
        let start = ClassStart { alpha: Some(alpha), intercepts: Some(memory::copy(b)), factor: None };
        Ok((AcceptedFit { c, norm, loss, until }, Self { start, factor }))
    }
}
