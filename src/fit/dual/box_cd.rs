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
    bounds: (f64, f64),
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
            bounds: (f64::INFINITY, f64::NEG_INFINITY),
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
            if g > self.bounds.0 {
                return Fate::Shrinks;
            }
            g.min(0.0)
        } else if row.alpha == upper {
            if g < self.bounds.1 {
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
        let [largest, smallest] = bounds_after(epoch.largest, epoch.smallest);
        self.bounds = (largest, smallest);
    }

    fn recheck(&mut self, margins: &[f64]) {
        let (loss, rows, bounds) = (self.loss, &self.rows, self.bounds);
        self.active.restore(|i| {
            let row = &rows[i];
            is_visited(loss, row.cost, row.alpha, margins[i], [bounds.0, bounds.1])
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
