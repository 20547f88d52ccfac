//! Steps of weights that meet walls: a weight whose sign would change stops at zero, one that would leave its
//! bounds stays on them.

use crate::memory::CollectLarge;
use crate::penalty::Term;

/// Whether the penalty is a parabola around a weight.
pub fn is_inside(term: &Term, w: f64) -> bool {
    (w != 0.0 || term.l1 == 0.0) && term.lower < w && w < term.upper
}

/// A step of the weights `inside` of a working set.
pub struct Step<'s> {
    inside: &'s [usize],
    by: Vec<f64>,
    /// Where the weights end with all walls in their way.
    pub whole: Vec<f64>,
    /// Whether no wall is.
    pub is_whole: bool,
}

impl<'s> Step<'s> {
    /// A step by so much.
    pub fn new(terms: &[Term], w: &[f64], inside: &'s [usize], by: Vec<f64>) -> Self {
        let ends = inside.iter().zip(&by).map(|(&k, by)| end(&terms[k], w[k], *by));
        let whole: Vec<f64> = ends.collect_large();
        let is_whole = inside.iter().zip(&by).zip(&whole).all(|((&k, by), end)| *end == w[k] + by);
        Self { inside, by, whole, is_whole }
    }

    /// Where a step ends that goes as far as to the first wall. So far model and penalty are a parabola that
    /// falls.
    pub fn to_first_wall(&self, w: &[f64]) -> Vec<f64> {
        let Self { inside, by, whole, .. } = self;
        let share = |at: usize| {
            let (w, by) = (w[inside[at]], by[at]);
            if whole[at] == w + by { 1.0 } else { (whole[at] - w) / by }
        };
        let first = (0..inside.len()).map(share).fold(1.0, f64::min);
        let end = |at: usize| if share(at) <= first { whole[at] } else { w[inside[at]] + first * by[at] };
        (0..inside.len()).map(end).collect_large()
    }
}

/// Where a step from `w` ends.
fn end(term: &Term, w: f64, step: f64) -> f64 {
    let wall = ahead(term, w, step);
    if step > 0.0 { (w + step).min(wall) } else { (w + step).max(wall) }
}

/// The next wall in the direction of a step from `w`; infinite where there is none.
pub fn ahead(term: &Term, w: f64, by: f64) -> f64 {
    let bound = if by > 0.0 { term.upper } else { term.lower };
    if term.l1 > 0.0 && w * by < 0.0 { if by > 0.0 { bound.min(0.0) } else { bound.max(0.0) } } else { bound }
}
