//! What it takes to bring a shard that begins anew to where the others are.
//!
//! Everything that a shard knows of its rows is computed from a few vectors: decision values from weights and
//! the steps taken from there, curvatures from those of the last evaluation, the decision values of a step
//! from the step, the dual variables of the hinge from the weights at the end of each smooth problem so far.
//! The client keeps these vectors, and a shard whose worker is lost is loaded again from its source and told
//! them. It then has the same numbers, bit for bit: that is why the decision values of a step are computed
//! anew, where rows in memory have built them up, which costs a reading of the rows a Newton step, and no
//! round; and why those of the weights are after every few steps.

use std::rc::Rc;

use super::wire::{Op, Request};
use crate::matrix::lanes::Block;

/// Steps from the same weights that decision values may be updated by: what a shard that begins anew has to
/// go, and how often they are rounded,
const KEPT_STEPS: usize = 8;
/// and numbers of these steps, of which one is kept in any case: 32 MB of the client's memory.
const KEPT_NUMBERS: usize = 1 << 22;

/// What an operation changes at the shards.
pub(super) enum StateChange<const L: usize> {
    Point(Block<L>),
    Shift([f64; L]),
    Evaluated(f64),
    Finish(Rc<Block<L>>),
    Advance(Rc<Block<L>>, [f64; L]),
    DualPoint(Request),
    TakeSlopes,
    Keep,
    GoBack,
}

/// What was added to decision values.
#[derive(Clone)]
enum Move<const L: usize> {
    Shift([f64; L]),
    Step(Rc<Block<L>>, [f64; L]),
}

/// What decision values were computed from: weights, and what was added afterwards.
#[derive(Clone)]
struct Decided<const L: usize> {
    w: Block<L>,
    moves: Vec<Move<L>>,
}

impl<const L: usize> Decided<L> {
    fn at(w: Block<L>) -> Self {
        Self { w, moves: Vec::new() }
    }

    fn steps(&self) -> usize {
        self.moves.iter().filter(|one| matches!(one, Move::Step(..))).count()
    }

    fn again(&self, request: &mut Request) {
        request.op(Op::Decide).block(&self.w);
        for one in &self.moves {
            match one {
                Move::Shift(shift) => request.op(Op::Shift).lanes(shift),
                Move::Step(step, lengths) => {
                    request.op(Op::Finish).block(step).op(Op::Advance).lanes(lengths)
                }
            };
        }
    }
}

/// The end of a smooth problem.
struct Corner<const L: usize> {
    evaluated: Decided<L>,
    sigma: f64,
    /// Where the margins were kept.
    kept: Option<Decided<L>>,
    is_back: bool,
}

/// What the state of the rows follows from.
pub(super) struct Track<const L: usize> {
    /// The request with which all began.
    pub begin: Request,
    corners: Vec<Corner<L>>,
    /// The last evaluation and its sigma.
    evaluated: Option<(Decided<L>, f64)>,
    /// How a dual point beside its slopes was found.
    dual_point: Vec<Request>,
    /// The step since then, once it is complete and until it is taken.
    step: Option<Rc<Block<L>>>,
    /// The present decision values.
    point: Decided<L>,
}

impl<const L: usize> Track<L> {
    /// Zero weights.
    pub fn new(begin: Request, n_columns: usize) -> Self {
        let point = Decided::at(Block::zeros(n_columns));
        Self { begin, corners: Vec::new(), evaluated: None, dual_point: Vec::new(), step: None, point }
    }

    /// Whether one more step may be kept.
    pub fn may_advance(&self, lanes: usize) -> bool {
        let (kept, numbers) = (self.point.steps(), self.point.w.len() * lanes);
        kept < KEPT_STEPS && (kept == 0 || (kept + 1).saturating_mul(numbers) <= KEPT_NUMBERS)
    }

    /// Takes note of what an operation has changed.
    pub fn note(&mut self, change: StateChange<L>) {
        match change {
            StateChange::Point(w) => self.point = Decided::at(w),
            StateChange::Shift(shift) => self.point.moves.push(Move::Shift(shift)),
            StateChange::Evaluated(sigma) => {
                self.evaluated = Some((self.point.clone(), sigma));
                self.dual_point.clear();
                self.step = None;
            }
            StateChange::Finish(step) => self.step = Some(step),
            StateChange::Advance(step, lengths) => {
                self.point.moves.push(Move::Step(step, lengths));
                self.step = None;
            }
            StateChange::DualPoint(request) => self.dual_point.push(request),
            StateChange::TakeSlopes => {
                if let Some((evaluated, sigma)) = &self.evaluated {
                    let (evaluated, sigma) = (evaluated.clone(), *sigma);
                    self.corners.push(Corner { evaluated, sigma, kept: None, is_back: false });
                }
            }
            StateChange::Keep => {
                if let Some(last) = self.corners.last_mut() {
                    last.kept = Some(self.point.clone());
                }
            }
            StateChange::GoBack => {
                if let Some(last) = self.corners.last_mut() {
                    last.is_back = true;
                }
            }
        }
    }

    /// The request that brings a shard here.
    pub fn restore(&self) -> Vec<f64> {
        let mut request = self.begin.clone();
        for corner in &self.corners {
            corner.evaluated.again(&mut request);
            request.op(Op::EvaluateQuietly).number(corner.sigma).op(Op::TakeSlopes);
            if let Some(kept) = &corner.kept {
                kept.again(&mut request);
                request.op(Op::Keep);
            }
            if corner.is_back {
                request.op(Op::GoBack);
            }
        }
        if let Some((evaluated, sigma)) = &self.evaluated {
            evaluated.again(&mut request);
            request.op(Op::EvaluateQuietly).number(*sigma);
        }
        for found in &self.dual_point {
            request.then(found);
        }
        self.point.again(&mut request);
        if let Some(step) = &self.step {
            request.op(Op::Finish).block(step);
        }
        request.words().to_vec()
    }
}
