//! The step of dual coordinate descent for hinge and squared hinge (Hsieh08, slide "Algorithm").
//!
//! Solves `min_a 1/2 a'(Q + D)a - 1'a` subject to `0 <= a_i <= u_i`, `Q_ij = y_i y_j x_i.x_j`, keeping
//! `w = sum y_i a_i x_i`, so that one step costs O(nnz of the row). Hinge: `u_i = c_i, D = 0`. Squared hinge:
//! `u_i = inf, D_ii = 1/(2 c_i)`. The step of row `i` is `a_i <- clip(a_i - g / (Q_ii + D_ii), 0, u_i)` with
//! `g = y_i (w.x_i + offset) - 1 + D_ii a_i`.
//!
//! Shrinking (Hsieh08, slide "Shrinking: Much Easier than Nonlinear", without the details) is LIBLINEAR's: a
//! row at its bound whose gradient points outwards by more than the largest violation of the epoch before is
//! left out. Deviation: rows come back not when the active rows have
//! converged but whenever the duality gap is checked, which computes all gradients anyway
//! ([`Method::recheck`]); the solver never stops without that check.
//!
//! **Limit.** Rows of a few entries wait for each other: the dot product of a row needs the weights that the
//! row before has just changed. That chain of loads, sums, division and store is 25 to 60 ns a row, two
//! thirds of an epoch on covtype (12 entries a row) and flights (19); long rows come to 1.1 to 2 times the
//! time of their random accesses alone (`benches/limits.rs`).
//! Tried: to keep the inverse of the diagonal instead of dividing: no difference.

use super::active::ActiveSet;
use super::method::{ClassRow, Epoch, Epochs, Fate, Method, RowConstants, Visit, bounds_after, ones};
use crate::fit::problem::Problem;
use crate::loss::BoxLoss;
use crate::matrix::Rows;
use crate::matrix::kernels::prefetch;
use crate::memory::CollectLarge;

/// A projected gradient below this changes nothing in double precision.
const NEGLIGIBLE: f64 = 1e-14;
/// Everything a step needs of a row beside its entries: half a cache line.
#[derive(Clone, Copy)]
struct Row {
    alpha: f64,
    cost: f64,
    /// `Q_ii + D_ii`, the first as often as changes count; NaN until the first visit, which has the row in
    /// cache.
    diagonal: f64,
    y: f64,
}

/// State of the descent.
pub struct BoxCd<L> {
    loss: L,
    rows: Vec<Row>,
    active: ActiveSet,
    /// Largest and smallest projected gradient of the epoch before, beyond which rows are shrunk.
    bounds: [f64; 2],
}

impl<L: BoxLoss> BoxCd<L> {
    /// Starts at zero.
    pub fn new(problem: &Problem<'_>, loss: L) -> Self {
        Self::of(problem.y, problem.cost, loss)
    }

    /// Starts at zero for rows of which only labels and costs are known.
    pub fn of(y: &[f64], cost: &[f64], loss: L) -> Self {
        let rows = y.iter().zip(cost).map(|(&y, &cost)| Row { alpha: 0.0, cost, diagonal: f64::NAN, y });
        Self {
            loss,
            rows: rows.collect_large(),
            active: ActiveSet::all(y.len()),
            bounds: [f64::INFINITY, f64::NEG_INFINITY],
        }
    }
}

impl<L: BoxLoss> Method for BoxCd<L> {
    type Loss = L;

    fn loss(&self) -> L {
        self.loss
    }

    fn start_at(&mut self, alpha: &[f64]) {
        let loss = self.loss;
        for (row, a) in self.rows.iter_mut().zip(alpha) {
            row.alpha = a.clamp(0.0, loss.upper(row.cost));
        }
    }

    fn alpha(&self, i: usize) -> f64 {
        self.rows[i].alpha
    }

    fn active(&mut self) -> &mut ActiveSet {
        &mut self.active
    }

    #[inline(always)]
    fn step<R: Rows>(&mut self, rows: &R, i: usize, visit: &mut Visit<'_>, epoch: &mut Epoch) -> Fate {
        let (loss, row) = (self.loss, &mut self.rows[i]);
        let g = row.y * (rows.dot(i, visit.w) + visit.offset) - 1.0 + loss.diagonal(row.cost) * row.alpha;
        let upper = loss.upper(row.cost);
        let pg = if row.alpha == 0.0 {
            if g > self.bounds[0] {
                return Fate::Shrinks;
            }
            g.min(0.0)
        } else if row.alpha == upper {
            if g < self.bounds[1] {
                return Fate::Shrinks;
            }
            g.max(0.0)
        } else {
            g
        };
        epoch.largest = epoch.largest.max(pg);
        epoch.smallest = epoch.smallest.min(pg);
        if pg.abs() > NEGLIGIBLE {
            if row.diagonal.is_nan() {
                row.diagonal = visit.stretch * rows.squared_norm(i) + loss.diagonal(row.cost);
            }
            let next = (row.alpha - g / row.diagonal).clamp(0.0, upper);
            let change = next - row.alpha;
            row.alpha = next;
            epoch.gain -= change * (g + 0.5 * row.diagonal * change);
            rows.add_scaled(i, change * row.y * visit.stretch, visit.w);
        }
        Fate::Stays
    }

    #[inline(always)]
    fn prefetch(&self, i: usize) {
        prefetch(&self.rows, i, size_of::<Row>());
    }

    fn finish(&mut self, epoch: &Epoch) {
        self.bounds = bounds_after(epoch.largest, epoch.smallest);
    }

    fn recheck(&mut self, margins: &[f64]) {
        let (loss, rows, bounds) = (self.loss, &self.rows, self.bounds);
        self.active.restore(|i| {
            let row = &rows[i];
            is_visited(loss, row.cost, row.alpha, margins[i], bounds)
        });
    }
}

/// Whether a row with this variable and margin is not beyond the bounds.
fn is_visited<L: BoxLoss>(loss: L, cost: f64, alpha: f64, margin: f64, bounds: [f64; 2]) -> bool {
    let g = margin - 1.0 + loss.diagonal(cost) * alpha;
    !(alpha == 0.0 && g > bounds[0] || alpha == loss.upper(cost) && g < bounds[1])
}

/// The variables of a row in several problems.
#[derive(Clone)]
pub struct BoxRow<const L: usize> {
    alpha: [f64; L],
}

impl<T: BoxLoss, const L: usize> ClassRow<T, L> for BoxRow<L> {
    fn first(_: T, _: f64) -> Self {
        Self { alpha: [0.0; L] }
    }

    fn start_at(&mut self, loss: T, cost: f64, l: usize, alpha: f64) {
        self.alpha[l] = alpha.clamp(0.0, loss.upper(cost));
    }

    fn lanes<const N: usize>(&self, from: [usize; N]) -> BoxRow<N> {
        BoxRow { alpha: from.map(|l| self.alpha[l]) }
    }

    fn alpha(&self) -> &[f64; L] {
        &self.alpha
    }

    /// The same as [`BoxCd::step`] in each problem.
    #[inline(always)]
    fn step(
        &mut self,
        loss: T,
        row: RowConstants,
        margin: &[f64; L],
        [most, least]: &[[f64; L]; 2],
        active: &mut u8,
        epochs: &mut Epochs<L>,
    ) -> [f64; L] {
        let (addend, upper) = (loss.diagonal(row.cost), loss.upper(row.cost));
        let diagonal = row.squared_norm + addend;
        let here = ones::<L>(*active);
        let (mut change, mut shrunk) = ([0.0; L], [0.0; L]);
        for l in 0..L {
            let old = self.alpha[l];
            let g = margin[l] - 1.0 + addend * old;
            let (is_low, is_high) = (old == 0.0, old == upper);
            let is_beyond = (is_low & (g > most[l])) | (!is_low & is_high & (g < least[l]));
            let below = if is_low { g.min(0.0) } else { g };
            let pg = if !is_low & is_high { g.max(0.0) } else { below };
            let is_shrunk = is_beyond & (here[l] != 0.0);
            let counts = !is_beyond & (here[l] != 0.0);
            let (large, small) = (epochs.largest[l].max(pg), epochs.smallest[l].min(pg));
            epochs.largest[l] = if counts { large } else { epochs.largest[l] };
            epochs.smallest[l] = if counts { small } else { epochs.smallest[l] };
            let next = (old - g / diagonal).max(0.0).min(upper);
            let by = if counts & (pg.abs() > NEGLIGIBLE) { next - old } else { 0.0 };
            epochs.gain[l] -= by * (g + 0.5 * diagonal * by);
            self.alpha[l] = if by == 0.0 { old } else { next };
            change[l] = by;
            shrunk[l] = if is_shrunk { 1.0 } else { 0.0 };
        }
        for (l, shrunk) in shrunk.iter().enumerate() {
            *active &= !(u8::from(*shrunk != 0.0) << l);
        }
        change
    }

    fn is_visited(&self, loss: T, cost: f64, l: usize, margin: f64, [most, least]: &[[f64; L]; 2]) -> bool {
        is_visited(loss, cost, self.alpha[l], margin, [most[l], least[l]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::dual::DualLoss;
    use crate::loss::{Hinge, ModifiedHuber, SquaredHinge};
    use crate::matrix::Matrix;
    use crate::matrix::dense::DenseView;
    use proptest::prelude::*;

    /// A row as a step finds it: where its variable is between the ends of its box, its margin, and bounds.
    #[derive(Clone, Copy, Debug)]
    struct Case {
        share: f64,
        margin: f64,
        bounds: [f64; 2],
    }

    fn cases() -> impl Strategy<Value = [Case; 2]> {
        let share = prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64];
        let bound = prop_oneof![Just(f64::INFINITY), 0.0..1.0f64];
        let margin = prop_oneof![Just(1.0), -3.0..3.0f64];
        let case = (share, margin, bound.clone(), bound);
        let case =
            case.prop_map(|(share, margin, most, least)| Case { share, margin, bounds: [most, -least] });
        prop::array::uniform2(case)
    }

    /// Two problems in one step are two steps, to the last bit.
    fn check<L: DualLoss + BoxLoss>(loss: L, cost: f64, x: f64, cases: [Case; 2], active: u8) {
        let value = [x];
        let rows = Matrix::from(DenseView::new(&value, 1, 1).unwrap().0);
        let upper = loss.upper(cost);
        let end = if upper.is_finite() { upper } else { 4.0 * cost };
        let mut together = BoxRow { alpha: cases.map(|case| case.share * end) };
        let bounds = [0, 1].map(|k| cases.map(|case| case.bounds[k]));
        let (mut here, mut epochs) = (active, Epochs::default());
        let constants = RowConstants { cost, squared_norm: rows.squared_norm(0) };
        let changes =
            together.step(loss, constants, &cases.map(|case| case.margin), &bounds, &mut here, &mut epochs);
        for (l, case) in cases.into_iter().enumerate() {
            let before = case.share * end;
            let mut alone = BoxCd::of(&[1.0], &[cost], loss);
            alone.start_at(&[before]);
            alone.bounds = case.bounds;
            let (mut w, mut epoch) = ([0.0], Epoch::default());
            let mut is_left = false;
            if active >> l & 1 == 1 {
                let mut visit = Visit { w: &mut w, offset: case.margin, stretch: 1.0 };
                is_left = alone.step(&rows, 0, &mut visit, &mut epoch) == Fate::Shrinks;
            }
            assert_eq!((together.alpha[l], changes[l]), (alone.alpha(0), alone.alpha(0) - before));
            assert_eq!(here >> l & 1 == 1, active >> l & 1 == 1 && !is_left);
            assert_eq!((epochs.gain[l], epochs.largest[l]), (epoch.gain, epoch.largest));
            assert_eq!(epochs.smallest[l], epoch.smallest);
        }
    }

    proptest! {
        #[test]
        fn two_problems_in_one_step_are_two_steps(
            cost in 0.01..10.0f64,
            x in -2.0..2.0f64,
            cases in cases(),
            active in 0..4u8,
        ) {
            check(Hinge, cost, x, cases, active);
            check(SquaredHinge, cost, x, cases, active);
            check(ModifiedHuber, cost, x, cases, active);
        }
    }
}
