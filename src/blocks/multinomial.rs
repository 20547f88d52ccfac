//! Multinomial logistic regression over blocks: Newton of [`crate::fit::multinomial`] by readings of the
//! store.
//!
//! A step is a reading for the gradient (two or three where intercepts are free), one for the preconditioner,
//! one for each product with the Hessian, and one for the line search. All classes share a reading. In the
//! end the certificate is proved, as in memory, by a reading or two more.
//!
//! **Memory** is that of the weights, the gradient, the direction and what the conjugate gradient needs: six
//! blocks of columns x classes, whatever the number of rows; and the rows of a block with two numbers for
//! each class.
//!
//! **Same bits.** Blocks come in the order of the plan, which follows from the store and the budget; a block
//! is added up in fixed parts. What a step does follows from the weights and the [`Course`] alone: a fit that
//! is resumed from a checkpoint, which is written between two steps, ends with the bits of one that was never
//! stopped. For that the preconditioner is made anew for each step: a reading, where a step takes ten.
//!
//! **Not here.** In memory an epoch of the dual descent makes a better dual point for a Newton iterate
//! ([`crate::fit::multinomial::polish`]); it needs the logits of all rows.

use super::budget::{MemoryPlan, Needs};
use super::checkpoint::{Checkpoint, CheckpointOptions, DescentState, Position, SavedDescent, Training};
use super::choice::Policy;
use super::outcome::AllClassesOutcome;
use super::problem::{BlockState, StateInput, StateOutput, StateShape};
use super::settings::{BlockSettings, SoftmaxCut};
use super::softmax::SoftmaxBlocks;
use super::softmax_rows::SoftmaxRows;
use super::trainer::check_row_count;
use crate::Result;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::multinomial::certificate::certify;
use crate::fit::multinomial::newton::{Course, SoftmaxNewton};
use crate::fit::multinomial::point::Point;
use crate::fit::multinomial::precondition::ClassPreconditioner;
use crate::fit::multinomial::shape::SoftmaxSizes;
use crate::fit::multinomial::softmax::FAR;
use crate::fit::multinomial::source::SoftmaxPasses;
use crate::fit::multinomial::strips::Strips;
use crate::fit::multinomial::{FURTHER_ATTEMPTS, SHARPER};
use crate::fit::{Certificate, Monitor, Status};
use crate::source::fetch::Fetch;
use crate::store::reader::Store;

/// Numbers of a state beside the weights.
const FACTS: usize = 6;

/// Between two steps.
pub struct SoftmaxState {
    w: Strips,
    course: Course,
    /// The accuracy that is aimed at.
    tol: f64,
}

/// Fits; `cost` is `C` times the class weight, by class. The loss of `settings` is ignored, and so is what
/// they say of rows that stay in memory; `max_passes` are Newton steps.
///
/// # Errors
/// As for [`super::fit`].
pub fn fit_multinomial(
    store: &Store,
    cost: &[f64],
    settings: &BlockSettings<'_>,
    keep: Option<CheckpointOptions<'_>>,
    monitor: &dyn Monitor,
) -> Result<AllClassesOutcome> {
    settings.check()?;
    check_row_count(store)?;
    let settings = &BlockSettings { policy: Policy::None, ..*settings };
    let problems = format!("multinomial {cost:?}");
    let training = || Training { store, problems, sizes: [1, 1], folds: &[], settings, folder: None };
    let mut checkpoint: Option<Checkpoint<'_, SoftmaxState>> =
        keep.map(|keep| Checkpoint::open(keep, training())).transpose()?;
    let (plan, cut) = &plan(store, settings)?;
    std::thread::scope(|scope| {
        let fetch = Fetch::start(scope, store, &plan.blocks, Vec::new(), plan.keeps_stored, monitor)?;
        let mut rows = SoftmaxRows::new(cost, settings, plan, *cut, fetch, monitor)?;
        let resumed = checkpoint.as_mut().and_then(Checkpoint::take_state);
        minimise(&mut rows, resumed, &mut checkpoint)
    })
}

/// The division of the budget: with what makes a fit faster where there is room for it.
///
/// # Errors
/// As for [`MemoryPlan::new`].
pub fn plan(store: &Store, settings: &BlockSettings<'_>) -> Result<(MemoryPlan, SoftmaxCut)> {
    let planned = |has_extras| {
        let (needs, cut) = Needs::multinomial(store, settings, has_extras);
        MemoryPlan::new(store, settings, &needs).map(|plan| (plan, cut))
    };
    planned(true).or_else(|_| planned(false))
}

/// Newton steps until the gap is proved.
fn minimise(
    rows: &mut SoftmaxRows<'_>,
    resumed: Option<SavedDescent<SoftmaxState>>,
    checkpoint: &mut Option<Checkpoint<'_, SoftmaxState>>,
) -> Result<AllClassesOutcome> {
    let settings = rows.settings();
    let bias = settings.intercept.bias();
    let mut tol = settings.tol;
    let blocks = SoftmaxBlocks::new(rows, bias);
    let preconditioner = ClassPreconditioner::fresh(&blocks);
    let mut newton = SoftmaxNewton::new(blocks, preconditioner, false);
    if let Some(mut saved) = resumed {
        newton.rows.rows.resume(saved.scans, saved.loaded_rows);
        if let Some(state) = saved.states.pop() {
            (newton.w, newton.course, tol) = (state.w, state.course, state.tol);
        }
    }
    loop {
        let keep = &mut |newton: &mut SoftmaxNewton<_>| save_if_due(newton, tol, checkpoint);
        let status = newton.go_on(tol, settings.max_passes, keep)?;
        let (mut point, bias) = (point_of(&newton, status), settings.intercept.penalised_height());
        let mut proof = SoftmaxBlocks::new(newton.rows.rows, bias);
        let certificate = certify(&mut proof, &mut point)?;
        let is_proved = certificate.relative_gap() <= settings.tol;
        let has_tried = tol <= settings.tol * SHARPER.powi(FURTHER_ATTEMPTS as i32) * 1.5;
        let is_over = status != Status::Converged || newton.course.steps >= settings.max_passes;
        if !(is_proved || has_tried || is_over) {
            tol *= SHARPER;
            continue;
        }
        let status = match status {
            _ if is_proved => Status::Converged,
            Status::Converged => Status::Stalled,
            other => other,
        };
        let (rows, shape) = (&newton.rows.rows, newton.rows.shape());
        let loads = rows.loaded_rows as f64 / shape.n_rows.max(1) as f64;
        let n_columns = settings.n_weights(rows.fetch().store());
        return Ok(AllClassesOutcome {
            weights: point.w.class_weights(n_columns, shape.n_classes),
            intercepts: point.intercepts_of(settings.intercept, shape.n_classes),
            certificate,
            status,
            n_iter: newton.course.steps,
            passes: newton.rows.readings(),
            loads,
        });
    }
}

/// Newton steps from weights, by Newton's own figures; [`Point::passes`] are the readings of all blocks.
///
/// # Errors
/// As for [`fit_multinomial`].
pub fn minimise_from(
    rows: &mut SoftmaxRows<'_>,
    start: Option<(Strips, Vec<[f64; LINE]>)>,
) -> Result<(Point, Certificate)> {
    let settings = rows.settings();
    let blocks = SoftmaxBlocks::new(rows, settings.intercept.bias());
    let preconditioner = ClassPreconditioner::fresh(&blocks);
    let mut newton = SoftmaxNewton::new(blocks, preconditioner, false);
    if let Some((w, offset)) = start {
        newton.start_at(&w, &offset);
    }
    let status = newton.minimise(settings.tol, settings.max_passes)?;
    Ok((point_of(&newton, status), newton.certificate()))
}

fn point_of(newton: &SoftmaxNewton<SoftmaxBlocks<'_, '_>>, status: Status) -> Point {
    let shape = newton.rows.shape();
    let mut offset = shape.row(FAR);
    newton.intercepts(&mut offset);
    let mut w = newton.w.clone();
    if shape.is_free() {
        w.drop_last_column();
    }
    let (n_iter, passes) = (newton.course.steps, newton.rows.readings());
    Point { w, offset, logits: None, status, n_iter, passes, is_of_descent: false }
}

fn save_if_due(
    newton: &mut SoftmaxNewton<SoftmaxBlocks<'_, '_>>,
    tol: f64,
    checkpoint: &mut Option<Checkpoint<'_, SoftmaxState>>,
) -> Result<()> {
    let Some(checkpoint) = checkpoint else { return Ok(()) };
    let rows = &newton.rows.rows;
    let (scans, loaded_rows, now) = (rows.readings as u64, rows.loaded_rows, rows.monitor().seconds());
    let position = Position { pass: newton.course.steps, step: 0 };
    let w = std::mem::replace(&mut newton.w, Strips::zeros(0, 1));
    let state = SoftmaxState { w, course: newton.course, tol };
    let (cached, problems) = (Vec::new(), vec![&state]);
    let present = || DescentState { position, loaded_rows, scans, cached, problems, ends: &[None] };
    let saved = checkpoint.save_if_due(now, &[], present);
    newton.w = state.w;
    saved
}

impl BlockState for SoftmaxState {
    type Saved = Self;

    fn visits(&self) -> u64 {
        0
    }

    fn size(&self) -> u64 {
        let lines: usize = self.w.strips.iter().map(|strip| strip.numbers.len()).sum();
        (lines * LINE + FACTS) as u64
    }

    fn can_have(shape: &StateShape, size: u64) -> bool {
        size == (shape.n_columns() * shape.n_classes.next_multiple_of(LINE) + FACTS) as u64
    }

    fn write(&self, out: &mut dyn StateOutput) -> Result<()> {
        self.w.strips.iter().try_for_each(|strip| out.numbers(strip.numbers.as_flattened()))?;
        let Course { steps, first, lowest, smallest, idle } = self.course;
        out.numbers(&[steps as f64, first, lowest, smallest, idle as f64, self.tol])
    }

    fn read(shape: &StateShape, _: u64, _: u64, input: &mut dyn StateInput) -> Result<Option<Self>> {
        let mut w = Strips::zeros(shape.n_columns(), shape.n_classes.div_ceil(LINE));
        for strip in &mut w.strips {
            for piece in strip.numbers.as_flattened_mut().chunks_mut(1 << 16) {
                piece.copy_from_slice(&input.numbers(piece.len())?);
            }
        }
        let numbers = input.numbers(FACTS)?;
        let [steps, first, lowest, smallest, idle, tol] =
            *numbers.first_chunk().expect("as many as asked for");
        let course = Course { steps: steps as usize, first, lowest, smallest, idle: idle as usize };
        Ok((tol > 0.0).then_some(Self { w, course, tol }))
    }
}
