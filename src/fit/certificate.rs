//! The certificate of a solution on given rows, whoever found it: a proof, in spite of rounding.
//!
//! **The bound.** For weights `w`, an intercept `b` with margins `m_i = y_i (w.x_i + b)` and dual variables
//! `a` in their box, on the constraint `sum_i y_i a_i = 0` where the intercept is free, the dual value is
//!
//! ```text
//! D(a) = sum_i h_i(a_i) - 1/2 |w(a)|^2,                                      w(a) = sum_i y_i a_i x_i
//!      = 1/2 |w|^2 + sum_i (h_i(a_i) - a_i m_i) - 1/2 |w(a) - w|^2,
//! ```
//!
//! since `sum_i a_i m_i = w(a).w`. The right side is what is computed: an error in `w(a)` counts by its
//! square only, while in `1/2 |w(a)|^2` it counts times `|w(a)|`. A solver that keeps `w(a)` by millions of
//! updates, or a Newton point whose `w(a)` is the weights less the gradient, is thus certified by margins
//! that it has computed anyway.
//!
//! **What is subtracted.** With `u = 2^-53`, and `n u` for Higham's `gamma_n` (a factor 2 in all terms below
//! makes up for the difference), the dual value is lowered by bounds of all that rounding can have done:
//!
//! * a margin is off by at most `e_i = u (n_i + 4) (|x_i||w| + |b|)`, `n_i` entries in the row. That moves
//!   `a_i m_i` by `a_i e_i` and, the loss being convex and falling, `c_i xi(m_i)` by at most
//!   `-c_i xi'(m_i - e_i) e_i`. The error of the *primal* value is charged to the dual one, too, so that
//!   `primal - dual` is never below the true distance to the optimum;
//! * `|w(a) - w|` is raised by `u k sum_i a_i |x_i|` for the `k` additions behind an entry of `w(a)`, and by
//!   what a solver says of its own updates ([`super::Evidence`]);
//! * a sum of `n` terms `t_i` in pieces of `p` is off by at most `u (p + n / p) sum_i |t_i|`, terms
//!   themselves by a few `u`; those of the logistic dual by `40 a_i u`, as `log(1 - a_i / c_i)` may be as
//!   large as 37;
//! * the excess `delta = sum_i y_i a_i`, summed as if in twice the precision ([`super::compensated`]), is
//!   taken off one variable `a_k` of the heavier sign. `h_k` is concave and 0 at 0, hence this costs at most
//!   `|delta| (2 h_k(a_k / 2) / a_k + |m_k|)` and lengthens `|w(a) - w|` by `|delta| |x_k|`.
//!
//! On data of ordinary scale all this is 1e-13 to 1e-11 of the objective. Where columns differ by many orders
//! of magnitude `|x_i||w|` is far above `sum_j |x_ij w_j|`; if the rounding terms are what keeps the gap
//! above the tolerance, margins and `w(a)` are therefore computed again as if in twice the precision (two
//! slow passes), which leaves of `e_i` what the last rounding takes off, at most `u |m_i|`. What cannot be
//! certified after that is not certified.
//!
//! Tried: to bound the error of `1/2 |w(a)|^2` itself: 6e-10 of the objective on covtype (581,012 rows), and
//! 2e-7 for the updates of a thousand epochs.

use std::borrow::Cow;

use super::checks::finite;
use super::compensated::CompensatedSum;
use super::monitor::Monitor;
use super::problem::{Certificate, Evidence, Intercept, Problem, Solution};
use super::routes::CLASS_LANES;
use super::sweep::{ROW_CHUNK, Sweep, dot, sum};
use super::together::{OfRows, entries, sum_rows};
use crate::loss::{Loss, LossKind, with_loss};
use crate::matrix::design::Design;
use crate::matrix::lanes::Block;
use crate::matrix::{Pass, Rows};
use crate::memory::CollectLarge;
use crate::{Result, memory, parallel};

/// Number of readings of the data that [`certify`] takes without evidence, that of the row norms left out: it
/// does not depend on the weights.
pub const PASSES: f64 = 2.0;
/// `2 u`.
pub const UNIT: f64 = f64::EPSILON;
/// Rounding errors of a term of the dual, in units of `u a_i`.
pub const DUAL_TERM: f64 = 160.0;
/// Sums are computed again in twice the precision if rounding makes up more than this share of a gap above
/// the tolerance.
const NOTABLE: f64 = 0.1;
/// Above what is lost of a square below the range of double precision, per term.
const UNDERFLOW: f64 = 2e-154;

/// Gives `solution` the certificate that can be proved for it on the rows of `problem`; its own is ignored.
/// Its evidence, which must be of these rows, is used up. A gap that is above `tol` by rounding alone is
/// computed again in twice the precision.
///
/// # Errors
/// [`crate::Error::Cancelled`] and [`crate::Error::Overflow`].
pub fn certify(
    problem: &Problem<'_>,
    loss: LossKind,
    solution: &mut Solution,
    tol: f64,
    monitor: &dyn Monitor,
) -> Result<()> {
    with_loss!(loss, loss => certify_loss(problem, loss, solution, None, tol, monitor))
}

/// [`certify`] for problems of the same rows and intercept, at most [`CLASS_LANES`] of them: what is read of
/// the data is read for all at once.
///
/// # Errors
/// As for [`certify`].
pub fn certify_classes(
    problems: &[Problem<'_>],
    loss: LossKind,
    solutions: &mut [Solution],
    tol: f64,
    monitor: &dyn Monitor,
) -> Result<()> {
    gather_classes(problems, solutions, monitor)?;
    let norms = row_norms(&problems[0].design(problems[0].intercept.penalised_height()), monitor)?;
    for (problem, solution) in problems.iter().zip(solutions) {
        with_loss!(loss, loss => certify_loss(problem, loss, solution, Some(&norms), tol, monitor))?;
    }
    Ok(())
}

/// `norms` are those of the rows, if they are known.
fn certify_loss<L: Loss>(
    problem: &Problem<'_>,
    loss: L,
    solution: &mut Solution,
    norms: Option<&[f64]>,
    tol: f64,
    monitor: &dyn Monitor,
) -> Result<()> {
    let point = Point::of(problem, solution);
    let evidence = match solution.evidence.take() {
        Some(evidence) => evidence,
        None => {
            solution.passes += PASSES;
            gather(problem, solution, &point, monitor)?
        }
    };
    let alpha = evidence.alpha.as_ref().unwrap_or(&solution.alpha);
    let norms = match norms {
        Some(norms) => memory::copy(norms),
        None => row_norms(&problem.design(point.bias), monitor)?,
    };
    let claim = roughly(problem, &point, &solution.alpha, &evidence, norms);
    let mut proven = bound(problem, loss, alpha, &claim)?;
    let gap = proven.certificate.relative_gap();
    if gap > tol && proven.rounding >= NOTABLE * (proven.certificate.primal - proven.certificate.dual) {
        let claim = closely(problem, &point, alpha, monitor)?;
        let close = bound(problem, loss, alpha, &claim)?;
        solution.passes += PASSES;
        if close.certificate.relative_gap() < gap {
            proven = close;
        }
    }
    solution.certificate = proven.certificate;
    Ok(())
}

/// Weights and intercept.
struct Point {
    /// The weight of a penalised intercept's column last, if there is one.
    w: Vec<f64>,
    /// Height of that column.
    bias: f64,
    /// The intercept that is not in `w`.
    free: f64,
    /// By how much the height times that column's weight misses the intercept: the weight is rounded.
    shift: f64,
}

impl Point {
    fn of(problem: &Problem<'_>, solution: &Solution) -> Self {
        let (mut w, b) = (memory::copy(&solution.w), solution.intercept);
        match problem.intercept {
            Intercept::Penalised(bias) => {
                let weight = b / bias;
                w.push(weight);
                Self { w, bias, free: 0.0, shift: weight.mul_add(-bias, b).abs() }
            }
            _ => Self { w, bias: 0.0, free: b, shift: 0.0 },
        }
    }
}

/// Evidence from the data: margins, and the weights of the dual variables.
fn gather(
    problem: &Problem<'_>,
    solution: &Solution,
    point: &Point,
    monitor: &dyn Monitor,
) -> Result<Evidence> {
    let (y, n) = (problem.y, problem.y.len());
    let mut sweep = Sweep::new(problem.design(point.bias), monitor);
    let mut margins = memory::zeros(n);
    sweep.margins(y, &point.w, &mut margins);
    margins.iter_mut().zip(y).for_each(|(m, y)| *m += y * point.free);
    let signed: Vec<f64> = solution.alpha.iter().zip(y).map(|(a, y)| a * y).collect_large();
    let mut w = memory::zeros(sweep.design.n_cols());
    sweep.weighted_sum(&signed, &mut w);
    monitor.poll()?;
    Ok(evidence_of(problem, solution, point, margins, w))
}

/// Evidence from margins and the weights `w` of the dual variables.
fn evidence_of(
    problem: &Problem<'_>,
    solution: &Solution,
    point: &Point,
    margins: Vec<f64>,
    mut w: Vec<f64>,
) -> Evidence {
    let mut alpha = None;
    if problem.intercept == Intercept::Free {
        let mut moved = memory::copy(&solution.alpha);
        move_onto_constraint(problem, &mut moved, &mut w);
        alpha = Some(moved);
    }
    let additions = 2.0 * problem.y.len() as f64;
    Evidence { margins, distance: distance(&w, &point.w), drift: 0.0, additions, alpha }
}

/// [`gather`] for all solutions without evidence.
fn gather_classes(problems: &[Problem<'_>], solutions: &mut [Solution], monitor: &dyn Monitor) -> Result<()> {
    if solutions.iter().all(|solution| solution.evidence.is_some()) {
        return Ok(());
    }
    let points: Vec<Point> = problems.iter().zip(&*solutions).map(|(p, s)| Point::of(p, s)).collect();
    let n = problems[0].y.len();
    let mut sweep = Sweep::<CLASS_LANES>::new(problems[0].design(points[0].bias), monitor);
    let (mut w, mut z) = (Block::zeros(sweep.design.n_cols()), Block::zeros(n));
    for (l, point) in points.iter().enumerate() {
        w.iter_mut().zip(&point.w).for_each(|(w, v)| w[l] = *v);
    }
    sweep.decisions(&w, &mut z);
    let margins = |l: usize| -> Vec<f64> {
        let free = points[l].free;
        z.iter().zip(problems[l].y).map(|(z, y)| y * (z[l] + free)).collect_large()
    };
    let margins: Vec<Vec<f64>> = (0..points.len()).map(margins).collect();
    for (l, (problem, solution)) in problems.iter().zip(&*solutions).enumerate() {
        let signed = solution.alpha.iter().zip(problem.y).map(|(a, y)| a * y);
        z.iter_mut().zip(signed).for_each(|(z, signed)| z[l] = signed);
    }
    sweep.weighted_sums(&z, &mut w);
    monitor.poll()?;
    for (l, margins) in margins.into_iter().enumerate() {
        let (solution, point) = (&mut solutions[l], &points[l]);
        if solution.evidence.is_some() {
            continue;
        }
        solution.passes += PASSES;
        let evidence = evidence_of(&problems[l], solution, point, margins, w.lane(l));
        solution.evidence = Some(evidence);
    }
    Ok(())
}

/// `|a - b|`.
pub fn distance(a: &[f64], b: &[f64]) -> f64 {
    let [squares] = sum(a.len(), |j| [(a[j] - b[j]).powi(2)]);
    squares.sqrt() * (1.0 + UNIT * (chain(a.len()) + 4.0)) + UNDERFLOW * (a.len() as f64).sqrt()
}

/// What [`bound`] is computed from beside the dual variables.
struct Claim<'a> {
    /// `|w|^2`.
    squared: f64,
    /// Number of its terms.
    n_weights: usize,
    margins: Cow<'a, [f64]>,
    /// By how much each margin may be off.
    errors: Vec<f64>,
    /// At least `|w(a) - w|`,
    radius: f64,
    /// of which this much is there in case of rounding.
    blur: f64,
}

/// A claim from what a solver computed, and the norms of the rows.
fn roughly<'a>(
    problem: &Problem<'_>,
    point: &Point,
    alpha: &[f64],
    evidence: &'a Evidence,
    norms: Vec<f64>,
) -> Claim<'a> {
    let design = problem.design(point.bias);
    let squared = dot(&point.w, &point.w);
    let (length, b) = (length_of(squared, point.w.len()), point.free.abs());
    let [reach] = sum(alpha.len(), |i| [alpha[i].abs() * norms[i]]);
    let has_leapt = evidence.drift > 0.0 && leaps(problem.cost, &norms, problem.cost.iter().sum());
    let drift = if has_leapt { f64::INFINITY } else { evidence.drift };
    let blur = blur(drift, length, evidence.additions, reach);
    let radius = evidence.distance + blur;
    let errors = margin_errors(&design, norms, length, b);
    let margins = Cow::Borrowed(&evidence.margins[..]);
    Claim { squared, n_weights: point.w.len(), margins, errors, radius, blur }
}

/// The norm of so many weights from its square, raised by what may be lost below the range of double
/// precision.
pub fn length_of(squared: f64, n_weights: usize) -> f64 {
    squared.sqrt() + UNDERFLOW * (n_weights as f64).sqrt()
}

/// By how much `|w(a) - w|` is raised in case of rounding: what a solver says of its updates, and what
/// `additions` behind each entry can have done to variables of the `reach` `sum_i a_i |x_i|`.
pub fn blur(drift: f64, length: f64, additions: f64, reach: f64) -> f64 {
    drift + UNIT * (length + (additions + 8.0) * reach)
}

/// Norms of all rows; one reading of the data.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn row_norms(design: &Design<'_>, monitor: &dyn Monitor) -> Result<Vec<f64>> {
    let mut norms = memory::zeros::<f64>(design.n_rows());
    parallel::each_chunk(&mut norms, ROW_CHUNK, |first, norms| {
        if !monitor.cancelled() {
            design.visit(Norms { first, norms });
        }
    });
    monitor.poll()?;
    Ok(norms)
}

/// By how much margins may be off, from the norms of their rows, that of the weights, and the intercept.
pub fn margin_errors(design: &Design<'_>, norms: Vec<f64>, length: f64, b: f64) -> Vec<f64> {
    let mut errors = norms;
    for (i, norm) in errors.iter_mut().enumerate() {
        *norm = UNIT * (design.row_len(i) + 4) as f64 * (*norm * length + b);
    }
    errors
}

/// Whether the last digit of a dual variable may move the weights further than any step that raises the dual
/// value does, `sqrt(2 sum c_i)`: then updates have taken the weights anywhere, and [`drift`] is no bound.
pub fn leaps(cost: &[f64], norms: &[f64], total_cost: f64) -> bool {
    is_leap(last_digit(cost, norms), total_cost)
}

/// How far the last digit of a dual variable may move the weights.
pub fn last_digit(cost: &[f64], norms: &[f64]) -> f64 {
    cost.iter().zip(norms).map(|(c, norm)| UNIT * c * norm).fold(0.0, f64::max)
}

/// [`leaps`] from [`last_digit`].
pub fn is_leap(digit: f64, total_cost: f64) -> bool {
    digit > (2.0 * total_cost).sqrt()
}

/// Norms of successive rows.
struct Norms<'s> {
    first: usize,
    norms: &'s mut [f64],
}

impl Pass for Norms<'_> {
    type Output = ();
    fn run<R: Rows>(self, rows: &R) {
        self.norms.iter_mut().enumerate().for_each(|(k, norm)| *norm = row_norm(rows, self.first + k));
    }
}

/// `|x_i|`, in four sums that need not wait for each other; raised by what may be lost below the range of
/// double precision.
fn row_norm<R: Rows>(rows: &R, i: usize) -> f64 {
    let (mut sums, mut k) = ([0.0; 4], 0);
    rows.for_each(i, |_, v| {
        sums[k & 3] += v * v;
        k += 1;
    });
    sums.iter().sum::<f64>().sqrt() + UNDERFLOW * (k as f64).sqrt()
}

/// A claim from margins and weights computed as if in twice the precision.
fn closely(
    problem: &Problem<'_>,
    point: &Point,
    alpha: &[f64],
    monitor: &dyn Monitor,
) -> Result<Claim<'static>> {
    let (y, design) = (problem.y, problem.design(point.bias));
    let mut checked = memory::filled((0.0, 0.0), y.len());
    parallel::each_chunk(&mut checked, ROW_CHUNK, |first, checked| {
        if !monitor.cancelled() {
            checked
                .iter_mut()
                .enumerate()
                .for_each(|(k, out)| *out = close_margin(&design, y, first + k, point));
        }
    });
    monitor.poll()?;
    let (margins, errors): (Vec<f64>, Vec<f64>) = checked.into_iter().unzip();
    let mut rest: Vec<CompensatedSum> = point.w.iter().map(|w| CompensatedSum::new(-w)).collect_large();
    let mut reach = 0.0;
    for (i, &a) in alpha.iter().enumerate() {
        if i % ROW_CHUNK == 0 {
            monitor.poll()?;
        }
        if a == 0.0 {
            continue;
        }
        design.for_each(i, |j, v| rest[j].add_product(a * y[i], v));
        reach += a.abs() * row_norm(&design, i);
    }
    let rest: Vec<f64> = rest.iter().map(CompensatedSum::value).collect_large();
    let squared = dot(&point.w, &point.w);
    let blur = (UNIT * (alpha.len() + 1) as f64).powi(2) * (reach + squared.sqrt());
    let radius = distance(&rest, &memory::zeros(rest.len())) * (1.0 + UNIT) + blur;
    Ok(Claim { squared, n_weights: point.w.len(), margins: Cow::Owned(margins), errors, radius, blur })
}

/// The margin of row `i` and by how much it may be off.
fn close_margin(design: &Design<'_>, y: &[f64], i: usize, point: &Point) -> (f64, f64) {
    let (mut sum, mut size) = (CompensatedSum::new(point.free), point.free.abs());
    design.for_each(i, |j, v| {
        sum.add_product(v, point.w[j]);
        size += (v * point.w[j]).abs();
    });
    let rounding = sum.rest().abs() + (UNIT * (design.row_len(i) + 2) as f64).powi(2) * size;
    (y[i] * sum.value(), rounding + point.shift)
}

/// A certificate and by how much rounding has lowered its dual value.
#[derive(Clone, Copy, Debug)]
pub struct Proven {
    /// The certificate.
    pub certificate: Certificate,
    /// By how much.
    pub rounding: f64,
}

/// The bound of the module's description.
fn bound<L: Loss>(problem: &Problem<'_>, loss: L, alpha: &[f64], claim: &Claim<'_>) -> Result<Proven> {
    let n = alpha.len();
    let repair = match problem.intercept {
        Intercept::Free => Repair::of(problem, loss, alpha, claim),
        _ => Repair::default(),
    };
    let totals = RowTotals::of(loss, problem.cost, alpha, &claim.margins, &claim.errors);
    finite("objective", 0.5 * claim.squared + totals.losses, &problem.design(0.0))?;
    let Claim { squared, n_weights, radius, blur, .. } = *claim;
    Ok(totals.conclude(&repair, &Ball { squared, n_weights, radius, blur }, n, chain(n)))
}

/// Sums over rows: what the bound takes of them.
#[derive(Clone, Copy, Debug)]
pub struct RowTotals {
    /// `c_i xi(m_i)`.
    pub losses: f64,
    /// `h_i(a_i) - a_i m_i`.
    pub terms: f64,
    /// What errors of the margins can have done to both.
    pub slack: f64,
    /// All terms without their signs.
    pub size: f64,
    /// `a_i`.
    pub alpha: f64,
}

/// The weights of a point, and how far those of its dual variables are.
#[derive(Clone, Copy, Debug)]
pub struct Ball {
    /// `|w|^2`.
    pub squared: f64,
    /// Number of its terms.
    pub n_weights: usize,
    /// At least `|w(a) - w|`,
    pub radius: f64,
    /// of which this much is there in case of rounding.
    pub blur: f64,
}

impl RowTotals {
    /// Of rows with these costs, dual variables, margins and errors of the margins.
    pub fn of<L: Loss>(loss: L, cost: &[f64], alpha: &[f64], margins: &[f64], errors: &[f64]) -> Self {
        let work = || TotalsOfRows { loss, cost, alpha, margins, errors };
        let [losses, terms, slack, size, alpha] = sum_rows(alpha.len(), work);
        Self { losses, terms, slack, size, alpha }
    }

    /// The certificate of `n` rows, each sum being of `additions` successive additions.
    pub fn conclude(&self, repair: &Repair, ball: &Ball, n: usize, additions: f64) -> Proven {
        let half = 0.5 * ball.squared;
        let primal = half + self.losses;
        let of_rows = (additions + 16.0) * self.size + DUAL_TERM * self.alpha;
        let of_weights = 2.0 * (chain(ball.n_weights) + 16.0) * half;
        let radius = ball.radius + repair.length;
        let lost = f64::MIN_POSITIVE * UNIT * 16.0 * (n + ball.n_weights) as f64;
        let rounding = self.slack + repair.price + UNIT * (of_rows + of_weights) + lost;
        let certificate = Certificate::proved(primal, half + self.terms - 0.5 * radius * radius - rounding);
        Proven { certificate, rounding: rounding + radius * (ball.blur + repair.length) }
    }
}

/// [`RowTotals::of`] of some rows.
struct TotalsOfRows<'s, L> {
    loss: L,
    cost: &'s [f64],
    alpha: &'s [f64],
    margins: &'s [f64],
    errors: &'s [f64],
}

impl<L: Loss> OfRows<5> for TotalsOfRows<'_, L> {
    #[inline(always)]
    fn add<const N: usize>(&mut self, i: usize, sums: &mut [f64; 5]) {
        let (c, a): ([f64; N], [f64; N]) = (entries(self.cost, i), entries(self.alpha, i));
        let (m, e): ([f64; N], [f64; N]) = (entries(self.margins, i), entries(self.errors, i));
        let mut least = [0.0; N];
        for k in 0..N {
            least[k] = least_margin(m[k], e[k]);
        }
        let [value, ..] = self.loss.all_of(m);
        let [_, steepest, _] = self.loss.all_of(least);
        let term = self.loss.dual_terms_closely(&c, &a);
        for k in 0..N {
            let (value, product) = (c[k] * value[k], a[k] * m[k]);
            sums[0] += value;
            sums[1] += term[k] - product;
            sums[2] += (a[k] - c[k] * steepest[k]) * e[k];
            sums[3] += value + term[k].abs() + product.abs();
            sums[4] += a[k].abs();
        }
    }
}

/// `sum_i c_i xi(m_i)` of the margins `at`.
pub fn losses<L: Loss>(loss: L, cost: &[f64], at: impl Fn(usize) -> f64 + Sync) -> f64 {
    let [total] = sum_rows(cost.len(), || LossesOfRows { loss, cost, at: &at });
    total
}

/// [`losses`] of some rows.
struct LossesOfRows<'s, L, F> {
    loss: L,
    cost: &'s [f64],
    at: &'s F,
}

impl<L: Loss, F: Fn(usize) -> f64> OfRows<1> for LossesOfRows<'_, L, F> {
    #[inline(always)]
    fn add<const N: usize>(&mut self, i: usize, [sum]: &mut [f64; 1]) {
        let cost: [f64; N] = entries(self.cost, i);
        let mut m = [0.0; N];
        for k in 0..N {
            m[k] = (self.at)(i + k);
        }
        let [value, ..] = self.loss.all_of(m);
        for k in 0..N {
            *sum += cost[k] * value[k];
        }
    }
}

/// `sum_i h_i(a_i)`.
pub fn dual_terms<L: Loss>(loss: L, cost: &[f64], alpha: &[f64]) -> f64 {
    let [total] = sum_rows(alpha.len(), || DualTerms { loss, cost, alpha });
    total
}

/// [`dual_terms`] of some rows.
struct DualTerms<'s, L> {
    loss: L,
    cost: &'s [f64],
    alpha: &'s [f64],
}

impl<L: Loss> OfRows<1> for DualTerms<'_, L> {
    #[inline(always)]
    fn add<const N: usize>(&mut self, i: usize, [sum]: &mut [f64; 1]) {
        let terms: [f64; N] = self.loss.dual_terms_closely(&entries(self.cost, i), &entries(self.alpha, i));
        for term in terms {
            *sum += term;
        }
    }
}

/// A margin that may be off by so much is above this, whatever the rounding of the difference: just below a
/// kink it would be rounded onto it.
#[inline(always)]
pub fn least_margin(margin: f64, error: f64) -> f64 {
    margin - (error + UNIT * (margin.abs() + error))
}

/// How far `visits` updates of `w` can have taken it from the weights of the dual variables, as in
/// [`super::dual`] but twice over, for solvers that do not keep the level of the dual objective. `multiplier`
/// is that of the constraint over the height of its column.
pub fn drift(visits: f64, total_cost: f64, multiplier: f64) -> f64 {
    4.0 * UNIT * visits * (2.0 * total_cost + multiplier * multiplier).sqrt()
}

/// Sums over the rows from which follows what rounding can have done where rows are not judged one by one.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Number of rows,
    pub n_rows: usize,
    /// of weights,
    pub n_weights: usize,
    /// and of entries of the longest row.
    pub longest: usize,
    /// Largest decision value that rows and weights of their norms could have: `max |x_i| |w| + |b|`.
    pub reach: f64,
    /// `sum (a_i - c_i xi'(m_i))`, what an error of the margins counts.
    pub steepness: f64,
    /// Sum of all terms of both values, each without its sign.
    pub size: f64,
}

impl Extent {
    /// The bound of `bound`'s terms.
    pub fn rounding(&self) -> f64 {
        let margins = (self.longest + 4) as f64 * self.reach * self.steepness;
        UNIT * (margins
            + (chain(self.n_rows) + 2.0 * chain(self.n_weights) + 48.0) * self.size
            + DUAL_TERM * self.steepness)
    }
}

/// Additions behind a sum over `n` rows; at most twice as many are behind one over `n` weights.
pub fn chain(n: usize) -> f64 {
    (n.min(ROW_CHUNK) + n / ROW_CHUNK) as f64
}

/// What it takes to move a dual point onto `sum y_i a_i = 0` that misses it by rounding.
#[derive(Clone, Copy, Debug, Default)]
pub struct Repair {
    /// At most by this much does the dual value fall,
    pub price: f64,
    /// and by this much do its weights move.
    pub length: f64,
}

impl Repair {
    fn of<L: Loss>(problem: &Problem<'_>, loss: L, alpha: &[f64], claim: &Claim<'_>) -> Self {
        let (y, n) = (problem.y, alpha.len() as f64);
        let [excess, total] = excess(y, alpha);
        if excess == 0.0 {
            return Self::default();
        }
        let delta = excess_bound(excess, total, n);
        let dual = Duals { y, cost: problem.cost, alpha, margins: &claim.margins, errors: &claim.errors };
        match dual.cheapest(loss, excess, delta) {
            Some((price, i)) => {
                Self { price: delta * price, length: delta * row_norm(&problem.design(0.0), i) }
            }
            None => Self { price: f64::INFINITY, length: 0.0 },
        }
    }
}

/// `sum y_i a_i`, as if in twice the precision, and `sum a_i`.
pub fn excess(y: &[f64], alpha: &[f64]) -> [f64; 2] {
    let (mut excess, mut total) = (CompensatedSum::default(), 0.0);
    for (a, y) in alpha.iter().zip(y) {
        excess.add(y * a);
        total += a;
    }
    [excess.value(), total]
}

/// What the excess of `n` variables is at most.
pub fn excess_bound(excess: f64, total: f64, n: f64) -> f64 {
    excess.abs() * (1.0 + UNIT) + (UNIT * n).powi(2) * total
}

/// Rows as a dual point sees them.
pub struct Duals<'a> {
    /// Labels in {-1, +1}.
    pub y: &'a [f64],
    /// Costs.
    pub cost: &'a [f64],
    /// Dual variables.
    pub alpha: &'a [f64],
    /// Margins,
    pub margins: &'a [f64],
    /// and by how much they may be off.
    pub errors: &'a [f64],
}

impl Duals<'_> {
    /// The row that can give `delta` of its variable, of the sign of `excess`, at the lowest price per unit.
    pub fn cheapest<L: Loss>(&self, loss: L, excess: f64, delta: f64) -> Option<(f64, usize)> {
        let Self { y, cost, alpha, margins, errors } = *self;
        let mut cheapest: Option<(f64, usize)> = None;
        for i in (0..alpha.len()).filter(|&i| y[i] * excess > 0.0 && alpha[i] >= 2.0 * delta) {
            let of_margin = margins[i].abs() + errors[i];
            if cheapest.is_none_or(|(least, _)| of_margin < least) {
                let a = alpha[i];
                let price = 2.0 * loss.dual_term(cost[i], 0.5 * a).max(0.0) / a + of_margin;
                if cheapest.is_none_or(|(least, _)| price < least) {
                    cheapest = Some((price, i));
                }
            }
        }
        cheapest
    }
}

/// Primal value of any weights and intercept for the rows of `problem`: one reading of the data.
///
/// # Errors
/// As for [`certify`].
pub fn primal(
    problem: &Problem<'_>,
    loss: LossKind,
    w: &[f64],
    intercept: f64,
    monitor: &dyn Monitor,
) -> Result<f64> {
    let sweep = Sweep::new(problem.design(0.0), monitor);
    with_loss!(loss, loss => primal_of(problem, loss, &sweep, w, intercept, monitor))
}

fn primal_of<L: Loss>(
    problem: &Problem<'_>,
    loss: L,
    sweep: &Sweep<'_>,
    w: &[f64],
    intercept: f64,
    monitor: &dyn Monitor,
) -> Result<f64> {
    let Problem { y, cost, .. } = *problem;
    let penalised = if let Intercept::Penalised(scale) = problem.intercept { intercept / scale } else { 0.0 };
    let mut margins = memory::zeros(y.len());
    sweep.margins(y, w, &mut margins);
    monitor.poll()?;
    let losses = losses(loss, cost, |i| margins[i] + y[i] * intercept);
    finite("objective", 0.5 * (dot(w, w) + penalised * penalised) + losses, &sweep.design)
}

/// Dual value of a copy of `alpha` moved onto `sum y_i a_i = 0`, up to rounding. `w` is `sum_i y_i a_i x_i`.
pub fn dual_on_constraint<L: Loss>(problem: &Problem<'_>, loss: L, alpha: &[f64], mut w: Vec<f64>) -> f64 {
    let mut moved = alpha.to_vec();
    move_onto_constraint(problem, &mut moved, &mut w);
    let mut dual = 0.0;
    for (a, cost) in moved.iter().zip(problem.cost) {
        dual += loss.dual_term(*cost, *a);
    }
    dual - 0.5 * dot(&w, &w)
}

/// Moves `alpha` onto `sum y_i a_i = 0` by scaling down variables of the heavier sign: those well inside the
/// box if they suffice (their gradient is small, so the value hardly falls), else all. `w` is
/// `sum_i y_i a_i x_i` before and after.
pub fn move_onto_constraint(problem: &Problem<'_>, alpha: &mut [f64], w: &mut [f64]) {
    let rows = problem.design(0.0);
    scale_onto_constraint(problem, alpha, |i, cut| rows.add_scaled(i, -cut * problem.y[i], w));
}

/// [`move_onto_constraint`] without the weights; calls `cut` with each row that is scaled down and by how
/// much.
pub fn scale_onto_constraint(problem: &Problem<'_>, alpha: &mut [f64], mut cut: impl FnMut(usize, f64)) {
    let Problem { y, cost, .. } = *problem;
    let found = Cut::of(Imbalance::of(y, cost, alpha));
    for (i, a) in alpha.iter_mut().enumerate() {
        if let Some(change) = found.change(y[i], cost[i], *a) {
            *a -= change;
            cut(i, change);
        }
    }
}

/// Sums of dual variables that say how to move them onto `sum y_i a_i = 0`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Imbalance {
    /// `sum y_i a_i`.
    pub excess: f64,
    /// Of the variables well inside the box, those of positive rows first,
    pub inside: [f64; 2],
    /// and of all.
    pub all: [f64; 2],
}

impl Imbalance {
    /// That of some rows.
    pub fn of(y: &[f64], cost: &[f64], alpha: &[f64]) -> Self {
        let [excess] = sum(y.len(), |i| [y[i] * alpha[i]]);
        let [inside, inside_below, all, all_below] = sum(y.len(), |i| {
            let a = alpha[i];
            let inner = if is_inside(cost[i], a) { a } else { 0.0 };
            if y[i] > 0.0 { [inner, 0.0, a, 0.0] } else { [0.0, inner, 0.0, a] }
        });
        Self { excess, inside: [inside, inside_below], all: [all, all_below] }
    }
}

/// Which dual variables are scaled down, and by which share.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cut {
    /// Sign of the rows; 0 for none.
    pub sign: f64,
    /// The share that they lose.
    pub share: f64,
    /// Only those well inside the box.
    pub spares_bounds: bool,
}

impl Cut {
    /// What takes an imbalance away.
    pub fn of(found: Imbalance) -> Self {
        let Imbalance { excess, inside, all } = found;
        if excess == 0.0 {
            return Self::default();
        }
        let heavier = usize::from(excess < 0.0);
        let spares_bounds = inside[heavier] > 2.0 * excess.abs();
        let whole = if spares_bounds { inside[heavier] } else { all[heavier] };
        Self { sign: excess.signum(), share: (excess.abs() / whole).min(1.0), spares_bounds }
    }

    /// What a variable loses, if anything.
    #[inline(always)]
    pub fn change(&self, y: f64, cost: f64, a: f64) -> Option<f64> {
        let is_cut = self.share > 0.0 && y * self.sign > 0.0 && a > 0.0;
        (is_cut && (!self.spares_bounds || is_inside(cost, a))).then_some(self.share * a)
    }
}

#[inline(always)]
fn is_inside(cost: f64, a: f64) -> bool {
    a < (1.0 - 1e-9) * cost
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss::{Hinge, Logistic, ModifiedHuber, SquaredHinge};
    use proptest::prelude::*;

    /// The definitions, row by row.
    fn check_totals<L: Loss>(loss: L, rows: &Rows4) {
        let Rows4 { cost, share, margins, errors } = rows;
        let alpha: Vec<f64> = share.iter().zip(cost).map(|(s, c)| s * c).collect();
        let found = RowTotals::of(loss, cost, &alpha, margins, errors);
        let mut expected = [0.0; 6];
        for i in 0..cost.len() {
            let (c, a, m, e) = (cost[i], alpha[i], margins[i], errors[i]);
            let (value, term) = (c * loss.value(m), loss.dual_term_closely(c, a));
            let slack = |margin: f64| (a - c * loss.derivative(margin)) * e;
            // At least what the error alone can do, and what it can do with some units more at most.
            let least = slack((m - e).next_down());
            let most = slack(m - e - 1e-12 * (m.abs() + e));
            let size = value + term.abs() + (a * m).abs();
            for (sum, part) in expected.iter_mut().zip([value, term - a * m, least, most, size, a.abs()]) {
                *sum += part;
            }
        }
        let [losses, terms, least, most, size, alpha] = expected;
        let rounding = 1e-12 * (1.0 + size);
        for (found, expected) in
            [(found.losses, losses), (found.terms, terms), (found.size, size), (found.alpha, alpha)]
        {
            assert!((found - expected).abs() <= rounding, "{found} {expected}");
        }
        assert!(
            least - rounding <= found.slack && found.slack <= most + rounding,
            "{found:?} {least} {most}"
        );
    }

    /// Costs, dual variables as shares of them, margins and their errors.
    #[derive(Debug)]
    struct Rows4 {
        cost: Vec<f64>,
        share: Vec<f64>,
        margins: Vec<f64>,
        errors: Vec<f64>,
    }

    fn rows() -> impl Strategy<Value = Rows4> {
        let row = (
            0.01..4.0f64,
            prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64],
            prop_oneof![Just(1.0), Just(-1.0), Just(0.0), -9.0..9.0f64],
            prop_oneof![Just(0.0), 0.0..1e-12f64],
        );
        prop::collection::vec(row, 1..100).prop_map(|rows| Rows4 {
            cost: rows.iter().map(|row| row.0).collect(),
            share: rows.iter().map(|row| row.1).collect(),
            margins: rows.iter().map(|row| row.2).collect(),
            errors: rows.iter().map(|row| row.3).collect(),
        })
    }

    proptest! {
        #[test]
        fn totals_are_the_sums_of_their_definitions(rows in rows()) {
            check_totals(Hinge, &rows);
            check_totals(SquaredHinge, &rows);
            check_totals(ModifiedHuber, &rows);
            check_totals(Logistic, &rows);
        }

        /// The definition: the first of the rows with the least price.
        #[test]
        fn the_cheapest_row_is_found(rows in rows(), excess in -1.0..1.0f64, delta in 0.0..0.5f64) {
            let Rows4 { cost, share, margins, errors } = &rows;
            let alpha: Vec<f64> = share.iter().zip(cost).map(|(s, c)| s * c).collect();
            let y: Vec<f64> = share.iter().map(|s| if *s > 0.4 { 1.0 } else { -1.0 }).collect();
            let price = |i: usize| {
                let a = alpha[i];
                2.0 * Logistic.dual_term(cost[i], 0.5 * a).max(0.0) / a + (margins[i].abs() + errors[i])
            };
            let able = (0..alpha.len()).filter(|&i| y[i] * excess > 0.0 && alpha[i] >= 2.0 * delta);
            // A variable of 0 has no price.
            let able = able.filter(|&i| alpha[i] > 0.0);
            let expected = able.map(|i| (price(i), i)).min_by(|a, b| a.0.total_cmp(&b.0));
            let duals = Duals { y: &y, cost, alpha: &alpha, margins, errors };
            prop_assert_eq!(duals.cheapest(Logistic, excess, delta.max(1e-300)), expected);
        }
    }
}
