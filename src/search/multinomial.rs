//! The route of multinomial fits to a duality gap: one lane per fold, all classes in it.
//!
//! A lane starts the next `C` from the end of its last fit: Newton from the weights, the descent from the
//! best multiple of the dual point ([`crate::fit::multinomial::start`]). A solution that stays accepted is
//! kept as it is: its dual point at a larger `C` is the one of the same weights, whose entropies, each times
//! its cost, are no smaller, so that what [`super::lane`] says of one class against another holds.
//!
//! **Lower bound of C.** As for two classes (Chu15, section 3.3.1): below it no margin comes near 1, and the
//! data are underfitted. Of `w_y - w_k = sum_i c_i ([y_i = y] - p_iy - [y_i = k] + p_ik) x_i` each
//! coefficient is at most `2 c_i`, so that `(w_y - w_k).x <= 2 C sum_i v_i max_i |x_i|^2`: half the bound
//! for two classes, whose softmax is the logistic loss with twice the `C`.
//!
//! Memory per fold, kept between steps: the logits of its rows, or the weights of all classes where Newton
//! has ended; for each of the fits in flight what [`crate::fit::multinomial`] says.

use super::folds::LaneSetup;
use super::lane::{AcceptedFit, LaneFit, LaneFits, LaneRoute, Saved};
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::multinomial::point::Point;
use crate::fit::multinomial::softmax::FAR;
use crate::fit::multinomial::start::SoftmaxStart;
use crate::fit::multinomial::strips::Strips;
use crate::fit::{Monitor, Status, check_length, multinomial};
use crate::matrix::Rows;
use crate::matrix::design::Design;
use crate::matrix::lanes::Block;
use crate::matrix::simd::{Wide, WideWork};
use crate::memory::CollectLarge;
use crate::{Error, Result, memory};

/// Fits of the softmax of all classes.
pub struct MultinomialFits<'a> {
    setup: &'a LaneSetup<'a>,
}

/// The route of such fits, before the first value of `C`.
pub fn route<'a>(setup: &'a LaneSetup<'a>) -> LaneRoute<'a, MultinomialFits<'a>> {
    LaneRoute::new(setup, MultinomialFits { setup })
}

/// What a lane keeps of a fit.
pub struct SoftmaxKept(SoftmaxStart);

impl SoftmaxKept {
    /// Keeps a start.
    pub fn of(start: SoftmaxStart) -> Self {
        Self(start)
    }

    /// The weights and intercepts, where these were kept.
    pub fn into_weights(self) -> Option<(Strips, Vec<[f64; LINE]>)> {
        match self.0 {
            SoftmaxStart::Weights(w, offset) => Some((w, offset)),
            SoftmaxStart::Logits(..) => None,
        }
    }
}

impl LaneFits for MultinomialFits<'_> {
    type Kept = SoftmaxKept;
    const SAVES_DECISIONS: bool = true;

    fn n_lanes(&self) -> usize {
        self.setup.parts.len()
    }

    /// Training rows of the fold, columns with a penalised intercept's, and classes.
    fn shape(&self, fold: usize) -> [usize; 3] {
        let setup = self.setup;
        let n_columns = setup.rows.n_cols() + usize::from(setup.settings.intercept.penalised_height() != 0.0);
        [setup.parts[fold].train.len(), n_columns, setup.labels.n_classes as usize]
    }

    fn fit_at(
        &self,
        fold: usize,
        c: f64,
        last: Option<(AcceptedFit, SoftmaxKept)>,
        monitor: &dyn Monitor,
    ) -> Result<LaneFit<SoftmaxKept>> {
        let setup = self.setup;
        let (class, cost) = setup.classes_and_costs(fold, c);
        let (problem, params) = (setup.class_problem(fold, &class, &cost), setup.class_params(fold));
        let start = last.map(|(_, SoftmaxKept(start))| start);
        let found = multinomial::solve_from(&problem, start, &params, monitor)?;
        let (point, certificate) = (found.point, found.certificate);
        let is_converged = point.status == Status::Converged;
        let norm = 0.5 * point.w.dot(&point.w, point.w.n_columns());
        let accepted = AcceptedFit::new(c, norm, certificate, is_converged, params.tol);
        let decisions = self.score(fold, &point);
        let (passes, n_iter, objective) = (point.passes, point.n_iter, certificate.primal);
        let kept = SoftmaxKept(SoftmaxStart::of(point));
        Ok(LaneFit { accepted, kept, passes, n_iter, is_converged, objective, decisions })
    }

    fn decisions(&self, _: usize, _: &SoftmaxKept) -> Option<Vec<f64>> {
        None
    }

    fn write_decisions(&self, fold: usize, decisions: Vec<f64>, all: &mut [Vec<f64>]) {
        all[fold] = decisions;
    }
}

impl MultinomialFits<'_> {
    /// Decision values of the held-out rows, one per class.
    fn score(&self, fold: usize, point: &Point) -> Vec<f64> {
        let setup = self.setup;
        let bias = setup.settings.intercept.penalised_height();
        let (test, n_classes) = (self.setup.parts[fold].test, setup.labels.n_classes as usize);
        Design { rows: setup.rows, ids: Some(test), bias }.visit(Wide(HeldOut { point, n_classes }))
    }
}

struct HeldOut<'s> {
    point: &'s Point,
    n_classes: usize,
}

impl WideWork for HeldOut<'_> {
    type Output = Vec<f64>;
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run<R: Rows>(self, rows: &R) -> Vec<f64> {
        let Self { point, n_classes } = self;
        let lines = point.offset.len();
        let mut z = Block::<LINE>::zeros(rows.n_rows() * lines);
        point.w.scores(rows, 0, lines, &mut z);
        let mut out = memory::with_capacity(rows.n_rows() * n_classes);
        for z in z.chunks_exact(lines) {
            let values = z.as_flattened().iter().zip(point.offset.as_flattened());
            out.extend(values.take(n_classes).map(|(z, b)| z + b));
        }
        out
    }
}

/// Numbers in the first array of a lane.
const FACTS: usize = 5;
/// What the last of them says of the last array.
const WEIGHTS: f64 = 0.0;
const LOGITS: f64 = 1.0;

impl Saved for SoftmaxKept {
    type Shape = [usize; 3];
    /// Facts, intercepts, and the weights or logits class by class.
    const ARRAYS: usize = 3;

    fn arrays(&self, accepted: &AcceptedFit) -> Vec<Vec<f64>> {
        let AcceptedFit { c, norm, loss, until } = *accepted;
        let (kind, offset, numbers) = match &self.0 {
            SoftmaxStart::Weights(w, offset) => {
                let lines = w.strips.iter().flat_map(|strip| {
                    strip.numbers[..w.n_columns() * strip.width].as_flattened().iter().copied()
                });
                (WEIGHTS, offset, lines.collect_large())
            }
            SoftmaxStart::Logits(logits, offset) => (LOGITS, offset, memory::copy(logits.as_flattened())),
        };
        vec![vec![c, norm, loss, until, kind], memory::copy(offset.as_flattened()), numbers]
    }

    fn rebuild(arrays: &[Vec<f64>], shape: [usize; 3]) -> Result<(AcceptedFit, Self)> {
        let ([facts, b, numbers], [n_rows, n_columns, n_classes]) = (arrays, shape) else {
            unreachable!("a lane has three arrays")
        };
        let lines = n_classes.div_ceil(LINE);
        check_length("facts of a search state", FACTS, facts.len())?;
        check_length("intercepts of a search state", lines * LINE, b.len())?;
        let [c, norm, loss, until, kind] = facts[..] else { unreachable!("the number of facts is checked") };
        let mut offset = vec![[0.0; LINE]; lines];
        offset.as_flattened_mut().copy_from_slice(b);
        offset.as_flattened_mut()[n_classes..].fill(FAR);
        let start = if kind == LOGITS {
            check_length("logits of a search state", n_rows * lines * LINE, numbers.len())?;
            let mut logits = Block::zeros(n_rows * lines);
            logits.as_flattened_mut().copy_from_slice(numbers);
            SoftmaxStart::Logits(logits, offset)
        } else if kind == WEIGHTS {
            check_length("weights of a search state", n_columns * lines * LINE, numbers.len())?;
            SoftmaxStart::Weights(weights(n_columns, lines, numbers), offset)
        } else {
            let rule = "0 for weights or 1 for logits";
            return Err(Error::Parameter { name: "kind of a search state", value: kind.to_string(), rule });
        };
        Ok((AcceptedFit { c, norm, loss, until }, Self(start)))
    }
}

/// Weights from their numbers, strip by strip.
fn weights(n_columns: usize, lines: usize, mut numbers: &[f64]) -> Strips {
    let mut w = Strips::zeros(n_columns, lines);
    for strip in &mut w.strips {
        let (of_strip, rest) = numbers.split_at(n_columns * strip.width * LINE);
        strip.numbers[..n_columns * strip.width].as_flattened_mut().copy_from_slice(of_strip);
        numbers = rest;
    }
    w
}
