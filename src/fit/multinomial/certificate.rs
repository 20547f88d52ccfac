//! The certificate of weights, intercepts and a dual point on given rows: a proof, in spite of rounding,
//! after the pattern of [`crate::fit::certificate`].
//!
//! **The bound.** Let `z` be the computed scores with intercepts, `d_ik = z_ik - z_{i,y_i}`, and `p` the
//! exact softmax of the table of logits `u`, or of `z` itself. Since `sum_i c_i (z_{i,y_i} - p_i.z_i)` is
//! `<W, W(p)>` where the intercepts are not free or `p` is on their constraint,
//!
//! ```text
//! F(W, b) = 1/2 |W|^2 + sum_i c_i log sum_k exp(d_ik)
//! D(p)    = 1/2 |W|^2 + sum_i c_i (H(p_i) + p_i.d_i) - 1/2 |W(p) - W|^2
//! F - D   = sum_i c_i KL(p_i | softmax(z_i)) + 1/2 |W(p) - W|^2
//! ```
//!
//! with no KL at all for the softmax of `z`: then the gap is half the squared gradient. It is computed from
//! this difference, and lowers the dual value.
//!
//! **What is subtracted** beside the gap, with `u = 2^-53` twice over as there:
//!
//! * a score is off by at most `e_i = u (n_i + 4) (|x_i| max_k |w_k| + max_k |b_k|)`. That moves `p_i.d_i` by
//!   `2 (1 - p_iy) e_i`, and the row's loss by `2 (1 - s_iy) e_i` with the softmax `s` somewhere between, at
//!   most a factor `exp(2 e_i)` away;
//! * `|W(p) - W|` is raised for the additions behind an entry of `W(p)`, and for the exponentials: those of
//!   floating-point numbers are off by `u` times their argument, no more than the widest row of logits (and
//!   708), and a few `u` more;
//! * sums of terms as there; terms by a few `u` and by the errors of exponentials;
//! * with free intercepts a rest `r_k = sum_i c_i ([y_i = k] - p_ik)` remains, and the dual point is moved
//!   onto the constraint in the cheapest of three ways.
//!   Between each class and one of them, `h`, in rows that both have a share of: with
//!   `H_k = sum_i c_i p_ik p_ih` and `e_k = r_k / H_k`, the point `p_ik (1 + e_k p_ih)` for `k != h`, and
//!   what is left for `h`. All change by a share of at most `e = max_k |e_k|`, so that `KL(p_i | s_i)`, `s`
//!   the softmax of the scores, grows by at most `2 e^2 (1 - p_iy)`, as chi-square does, and by
//!   `e sum_k p_ik p_ih |log(p_ik / s_ik) - log(p_ih / s_ih)|`, 0 for `p = s`; `W(p)` moves by
//!   `e sqrt(2) sum_i c_i (1 - p_iy) |x_i|`.
//!   Or, with weights `s_i` of the rows, `A_k = sum_i c_i s_i p_ik`, `A` their sum and
//!   `t = max_k |r_k| / A_k`, the point `(1 - t s_i) p_i + t s_i q` with the same `q_k = (A_k + r_k / t) / A`
//!   in each row. The entropy is concave and at least 0, so this costs at most
//!   `t sum_i c_i s_i (loss_i + max_k (-d_ik))`, and moves `W(p)` by `t sqrt(2) sum_i c_i s_i |x_i|`. The
//!   weights are `s_i = 1 - p_iy`, or all 1, with the costs `N_k` of a class in place of `A_k`: then
//!   `q_k = N_k / N + (1 - t) r_k / (t N)`.

use super::balance::balance;
use super::passes::{Evaluated, Setup, SoftmaxSlopes};
use super::point::Point;
use super::shape::{SoftmaxShape, SoftmaxSizes};
use super::softmax::{Lines, dot, largest, mean_difference};
use super::source::Balance;
use super::strips::Strips;
use crate::fit::certificate::UNIT;
use crate::fit::crammer_singer::largest::largest_size;
use crate::fit::crammer_singer::weights::LINE;
use crate::fit::problem::Certificate;
use crate::fit::sweep::{ROW_CHUNK, sum};
use crate::matrix::lanes::Block;
use crate::matrix::{Pass, Rows};
use crate::{Error, Result, memory, parallel};

/// Rounding of an exponential beside that of its argument, and of what makes a probability of it, in units of
/// `UNIT`; a line of classes adds [`OF_A_LINE`].
const EXPONENTIAL: f64 = 32.0;
const OF_A_LINE: f64 = 2.0;
/// Share of the dual point that may be replaced on the way onto the constraint.
const LARGEST_SHARE: f64 = 0.5;
/// Blocks of columns x classes that a piece of the rows is added up in, at most.
const PARTS: usize = 8;
/// Below the negative of this an exponential is 0.
const DEEPEST: f64 = 709.0;
/// An error of a score up to which the softmax moves by less than a quarter.
const SMALL: f64 = 0.1;
/// Additions behind a sum over `n` rows.
fn chain(n: usize) -> f64 {
    (n.min(ROW_CHUNK) + n / ROW_CHUNK) as f64
}

/// What a proof asks of the rows, whose constant column is that of a penalised intercept.
///
/// # Errors
/// Of all methods: those of the place where the rows are; [`Error::Cancelled`].
pub trait ProofRows: SoftmaxSizes {
    /// Rows of a piece, and pieces beyond those that it makes: how sums were added up.
    fn pieces(&self) -> [usize; 2];
    /// Evaluates a point and its dual point, free intercepts and dual point balanced before.
    #[allow(clippy::missing_errors_doc)] // of the trait
    fn gather(&mut self, point: &mut Point) -> Result<Gathered>;
    /// Sums over the rows of the point gathered last.
    #[allow(clippy::missing_errors_doc)]
    fn totals(&mut self, point: &Point, bounds: &ProofBounds) -> Result<ClassTotals>;
}

/// What the data say of a point.
pub struct Gathered {
    /// The softmax at the scores.
    pub here: Evaluated,
    /// That of the dual point.
    pub there: Evaluated,
    /// `-W(p)`.
    pub slopes: Strips,
    /// The largest distance between two logits of a row.
    pub widest: f64,
}

/// What sums over the rows need to know of all of them.
#[derive(Clone, Copy, Debug)]
pub struct ProofBounds {
    /// At least the largest `|w_k|`.
    pub length: f64,
    /// The largest free `|b_k|`.
    pub intercept: f64,
    /// The class by which the dual point is moved onto the constraint of free intercepts.
    pub hub: Option<usize>,
}

/// Sums over the rows.
pub struct ClassTotals {
    /// Those of every problem.
    pub sums: RowSums,
    /// Those of free intercepts.
    pub masses: Option<Masses>,
}

impl ClassTotals {
    /// Of no rows.
    pub fn zero(n_classes: usize, is_free: bool) -> Self {
        Self { sums: RowSums::default(), masses: is_free.then(|| Masses::zero(n_classes)) }
    }

    /// Takes those of further rows in.
    pub fn join(&mut self, other: &Self) {
        self.sums.join(&other.sums);
        if let (Some(mine), Some(its)) = (&mut self.masses, &other.masses) {
            mine.join(its);
        }
    }
}

/// The certificate that can be proved for a point. Nothing that a solver has computed is believed.
///
/// # Errors
/// Those of the rows; [`Error::Overflow`].
pub fn certify(rows: &mut impl ProofRows, point: &mut Point) -> Result<Certificate> {
    let SoftmaxShape { n_rows, n_classes: k, lines, .. } = rows.shape();
    let is_free = rows.shape().is_free();
    let Gathered { here, there, mut slopes, widest } = rows.gather(point)?;
    slopes.add_scaled(1.0, &point.w);
    let distance = slopes.dot(&slopes, slopes.n_columns()).sqrt();
    drop(slopes);
    let of_p = EXPONENTIAL + OF_A_LINE * lines as f64 + widest.min(DEEPEST);
    let (length, intercept) = longest_class(&rows.shape(), point);
    let scale = there.scale.as_flattened();
    let hub = is_free.then(|| (0..k).fold(0, |best, m| if scale[m] > scale[best] { m } else { best }));
    let totals = rows.totals(point, &ProofBounds { length, intercept, hub })?;
    let found = &totals.sums;
    let n_weights = point.w.n_columns() * k;
    let half = 0.5 * point.w.dot(&point.w, point.w.n_columns());
    let primal = half + here.loss;
    if !primal.is_finite() {
        return Err(Error::Overflow { what: "objective", max_squared_norm: rows.max_squared_norm() });
    }
    let [piece, more] = rows.pieces();
    let additions = (n_rows + PARTS * more) as f64 + 16.0;
    // Of few rows there is one piece, which is shorter.
    let in_pieces = piece.min(n_rows) + n_rows / piece.max(1) + more;
    let chain_of_rows = chain(n_rows).max(in_pieces as f64);
    let mut radius = distance
        + UNIT * ((2.0 * half).sqrt() + (additions + of_p + 8.0) * found.reach)
        + 2e-154 * (n_weights as f64).sqrt();
    let mut price = 0.0;
    if let (Some(masses), Some(hub)) = (&totals.masses, hub) {
        let errors = UNIT * (chain_of_rows + of_p + 32.0);
        let [cost, move_of_w] = onto_constraint(n_rows, [k, hub], &there, errors, found, masses);
        (price, radius) = (cost, radius + move_of_w);
    }
    radius *= 1.0 + UNIT * (chain(n_weights) + 8.0);
    let divergence = match &point.logits {
        // Below 0 by rounding alone; NaN stays NaN, and proves nothing.
        Some(_) => at_least_zero(here.loss - there.loss + found.mixed),
        None => 0.0,
    };
    let size = here.loss + there.loss + found.size;
    let rounding = found.slack
        + price
        + UNIT * ((chain_of_rows + of_p + 64.0) * size + 2.0 * (chain(n_weights) + 24.0) * half)
        + f64::MIN_POSITIVE * (n_rows + n_weights) as f64;
    Ok(Certificate::proved(primal, primal - divergence - 0.5 * radius * radius - rounding))
}

/// Rows in memory.
pub struct RowsToProve<'s, 'a> {
    setup: &'s Setup<'a>,
    scores: Block<LINE>,
    /// `1 - s_y` at the scores, by row.
    rest_here: Vec<f64>,
    /// Probabilities of the dual point, and their `1 - p_y`.
    p: Block<LINE>,
    rest: Vec<f64>,
}

impl<'s, 'a> RowsToProve<'s, 'a> {
    /// The rows of `setup`.
    pub fn new(setup: &'s Setup<'a>) -> Self {
        let (scores, p) = (setup.table(), setup.table());
        let n = setup.n_rows();
        Self { setup, scores, p, rest_here: Vec::new(), rest: memory::zeros(n) }
    }
}

impl SoftmaxSizes for RowsToProve<'_, '_> {
    fn shape(&self) -> SoftmaxShape {
        self.setup.shape()
    }

    fn max_squared_norm(&self) -> f64 {
        self.setup.design.max_squared_norm()
    }
}

impl ProofRows for RowsToProve<'_, '_> {
    fn pieces(&self) -> [usize; 2] {
        [self.setup.chunk, 0]
    }

    /// Reads the data.
    fn gather(&mut self, point: &mut Point) -> Result<Gathered> {
        let Self { setup, scores, p, rest, .. } = self;
        let (zero, is_free) = (setup.row(0.0), setup.shape().is_free());
        setup.scores(&point.w, &point.offset, scores);
        setup.poll()?;
        if is_free {
            // The intercepts of other rows, or of other roundings of them, are not quite the best here.
            let (mut shift, _) = balance(setup, scores, p, rest, Balance::Exact)?;
            point.shift(&mut shift, setup.problem.n_classes);
            setup.shift(scores, &shift);
        }
        let here = setup.evaluate(scores, &zero, p, rest);
        self.rest_here = memory::copy(rest);
        let there = match &mut point.logits {
            Some(logits) => {
                if is_free {
                    let (shift, _) = balance(setup, logits, p, rest, Balance::Exact)?;
                    setup.shift(logits, &shift);
                }
                setup.evaluate(logits, &zero, p, rest)
            }
            None => here.clone(),
        };
        setup.poll()?;
        let mut slopes = setup.strips();
        let all = SoftmaxSlopes { lines: setup.lines, p, rest, problem: setup.problem };
        setup.scatter(&all, &mut slopes);
        setup.poll()?;
        point.passes += 1.0;
        let of_logits = point.logits.as_ref().map_or(0.0, |u| widest(setup, u));
        Ok(Gathered { here, there, slopes, widest: widest(setup, scores).max(of_logits) })
    }

    fn totals(&mut self, point: &Point, bounds: &ProofBounds) -> Result<ClassTotals> {
        let Self { setup, scores, p, rest, rest_here } = self;
        totals(setup, &ProofTables { scores, rest_here, logits: point.logits.as_deref(), p, rest }, bounds)
    }
}

/// What is known of some rows.
pub struct ProofTables<'s> {
    /// Logits of the primal point.
    pub scores: &'s Lines,
    /// Its `1 - s_y`.
    pub rest_here: &'s [f64],
    /// Of the dual point, if they are not the scores.
    pub logits: Option<&'s Lines>,
    /// Probabilities of the dual point.
    pub p: &'s Lines,
    /// Theirs of the other classes.
    pub rest: &'s [f64],
}

/// Sums over the rows of `setup`.
///
/// # Errors
/// [`Error::Cancelled`].
pub fn totals(setup: &Setup<'_>, tables: &ProofTables<'_>, bounds: &ProofBounds) -> Result<ClassTotals> {
    let norms = row_norms(setup);
    setup.poll()?;
    let sums = RowSums::of(setup, tables, &norms, bounds);
    Ok(ClassTotals { sums, masses: bounds.hub.map(|hub| Masses::of(setup, tables, hub)) })
}

/// As `max(0.0)`, but NaN for NaN.
pub fn at_least_zero(x: f64) -> f64 {
    if x < 0.0 { 0.0 } else { x }
}

/// `|x_i|` of every row, a penalised constant included.
fn row_norms(setup: &Setup<'_>) -> Vec<f64> {
    struct Norms<'s>(usize, &'s mut [f64]);
    impl Pass for Norms<'_> {
        type Output = ();
        fn run<R: Rows>(self, rows: &R) {
            for (k, norm) in self.1.iter_mut().enumerate() {
                // Raised by what may be lost below the range of double precision.
                *norm = rows.squared_norm(self.0 + k).sqrt() * (1.0 + UNIT * 64.0) + 1e-150;
            }
        }
    }
    let mut norms = memory::zeros(setup.n_rows());
    parallel::each_chunk(&mut norms, ROW_CHUNK, |first, norms| {
        if !setup.monitor.cancelled() {
            setup.design.visit(Norms(first, norms));
        }
    });
    norms
}

/// The largest `|w_k|` and `|b_k|`.
fn longest_class(shape: &SoftmaxShape, point: &Point) -> (f64, f64) {
    let mut squares = shape.row(0.0);
    for strip in &point.w.strips {
        for column in strip.numbers[..point.w.n_columns() * strip.width].chunks_exact(strip.width) {
            for (sum, line) in squares[strip.first..].iter_mut().zip(column) {
                for l in 0..LINE {
                    sum[l] += line[l] * line[l];
                }
            }
        }
    }
    let longest = squares.as_flattened().iter().copied().fold(0.0, f64::max).sqrt();
    let raised = longest * (1.0 + UNIT * point.w.n_columns() as f64) + 1e-150;
    let b = if shape.is_free() { largest_size(&point.offset.as_flattened()[..shape.n_classes]) } else { 0.0 };
    (raised, b)
}

/// The largest distance between the logits of a row.
pub fn widest(setup: &Setup<'_>, table: &Lines) -> f64 {
    let pieces = table.chunks(setup.chunk * setup.lines);
    let of_row = |row: &Lines| {
        let classes = &row.as_flattened()[..setup.problem.n_classes];
        largest(row) - classes.iter().copied().fold(f64::INFINITY, f64::min)
    };
    let of_piece = |_, piece: &Lines| piece.chunks(setup.lines).map(of_row).fold(0.0, f64::max);
    parallel::map_each(pieces, of_piece).into_iter().fold(0.0, f64::max)
}

/// What the way onto the constraint costs at most, and by how much it moves `W(p)`.
fn onto_constraint(
    n: usize,
    [k, hub]: [usize; 2],
    there: &Evaluated,
    errors: f64,
    found: &RowSums,
    masses: &Masses,
) -> [f64; 2] {
    let (residual, scale) = (there.residual.as_flattened(), there.scale.as_flattened());
    let share = |of_class: &[f64], left_out: Option<usize>| {
        let lack = |m: usize| residual[m].abs() + errors * scale[m] + f64::MIN_POSITIVE * n as f64;
        let classes = (0..k).filter(|m| Some(*m) != left_out);
        classes.map(|m| lack(m) / (of_class[m] * (1.0 - 1e-9))).fold(0.0, f64::max)
    };
    let Masses { uncertain, links, strain, cost } = masses;
    let of_rest = 0.5 * scale.iter().sum::<f64>() * (1.0 + 1e-9);
    let by_hub = share(links, Some(hub));
    let first_order = strain + 2.0 * found.slack + 8.0 * UNIT * found.size;
    let by_mass = share(uncertain, None);
    let by_cost = share(cost, None);
    let ways = [
        (by_hub, by_hub * (first_order + 2.0 * by_hub * of_rest), by_hub * found.reach),
        (by_mass, by_mass * found.uncertain_depth, by_mass * found.reach),
        (by_cost, by_cost * found.depth, by_cost * std::f64::consts::SQRT_2 * found.width),
    ];
    let possible = ways.into_iter().filter(|(share, ..)| *share < LARGEST_SHARE);
    let cheapest = possible.min_by(|a, b| (a.1 + 0.5 * a.2 * a.2).total_cmp(&(b.1 + 0.5 * b.2 * b.2)));
    cheapest.map_or([f64::INFINITY; 2], |(_, price, radius)| [price, radius])
}

/// What the ways onto the constraint lean on.
pub struct Masses {
    /// `sum_i c_i (1 - p_iy) p_ik` by class.
    uncertain: Vec<f64>,
    /// `sum_i c_i p_ik p_ih` by class.
    links: Vec<f64>,
    /// `sum_i c_i sum_k p_ik p_ih |log(p_ik / s_ik) - log(p_ih / s_ih)|`.
    strain: f64,
    /// `sum_i c_i [y_i = k]` by class.
    cost: Vec<f64>,
}

impl Masses {
    fn zero(k: usize) -> Self {
        Self { uncertain: vec![0.0; k], links: vec![0.0; k], strain: 0.0, cost: vec![0.0; k] }
    }

    fn join(&mut self, other: &Self) {
        let mine = [&mut self.uncertain, &mut self.links, &mut self.cost];
        for (mine, its) in mine.into_iter().zip([&other.uncertain, &other.links, &other.cost]) {
            mine.iter_mut().zip(its).for_each(|(sum, x)| *sum += x);
        }
        self.strain += other.strain;
    }

    fn of(setup: &Setup<'_>, tables: &ProofTables<'_>, hub: usize) -> Self {
        let (k, lines, chunk, n) = (setup.problem.n_classes, setup.lines, setup.chunk, setup.n_rows());
        let mut all = Self::zero(k);
        let found = parallel::map(n.div_ceil(chunk), |piece| {
            let mut sums = Self::zero(k);
            for i in piece * chunk..((piece + 1) * chunk).min(n) {
                let at = i * lines..(i + 1) * lines;
                let (p, z) = (tables.p[at.clone()].as_flattened(), tables.scores[at.clone()].as_flattened());
                let (c, rest) = (setup.problem.cost[i], tables.rest[i]);
                let u = tables.logits.map(|u| u[at].as_flattened());
                for m in 0..k {
                    sums.uncertain[m] += c * rest * p[m];
                    let link = c * p[m] * p[hub];
                    sums.links[m] += link;
                    if let Some(u) = u {
                        sums.strain += link * ((u[m] - z[m]) - (u[hub] - z[hub])).abs();
                    }
                }
            }
            sums
        });
        found.iter().for_each(|piece| all.join(piece));
        for (class, cost) in setup.problem.class.iter().zip(setup.problem.cost) {
            all.cost[*class as usize] += cost;
        }
        all
    }
}

/// Sums over the rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct RowSums {
    /// `sum c_i (sum_k p_ik (u_ik - u_iy - d_ik))`.
    mixed: f64,
    /// What errors of the scores can do.
    slack: f64,
    /// At least `sum c_i |p_i - e_y| |x_i|`.
    reach: f64,
    /// The sum of the sizes of the terms.
    size: f64,
    /// `sum c_i |x_i|`.
    width: f64,
    /// `sum c_i (loss_i + max_k (-d_ik))`, at most the spread of the scores and `log K` by row.
    depth: f64,
    /// The same, each row times its `1 - p_y`.
    uncertain_depth: f64,
}

impl RowSums {
    fn join(&mut self, other: &Self) {
        self.mixed += other.mixed;
        self.slack += other.slack;
        self.reach += other.reach;
        self.size += other.size;
        self.width += other.width;
        self.depth += other.depth;
        self.uncertain_depth += other.uncertain_depth;
    }

    fn of(setup: &Setup<'_>, tables: &ProofTables<'_>, norms: &[f64], bounds: &ProofBounds) -> Self {
        let (lines, k) = (setup.lines, setup.problem.n_classes);
        let (class, cost) = (setup.problem.class, setup.problem.cost);
        let ProofTables { scores, p, .. } = *tables;
        let ProofBounds { length, intercept: b, .. } = *bounds;
        let [mixed, slack, reach, size, width, depth, uncertain_depth] = sum(setup.n_rows(), |i| {
            let at = i * lines..(i + 1) * lines;
            let (z, p, own, c) = (&scores[at.clone()], &p[at.clone()], class[i] as usize, cost[i]);
            let (rest_here, rest) = (tables.rest_here[i], tables.rest[i]);
            let z_own = z.as_flattened()[own];
            let error = UNIT * (setup.design.row_len(i) + 4) as f64 * (norms[i] * length + b);
            let between = if error < SMALL { (1.3 * rest_here).min(1.0) } else { 1.0 };
            let slack = c * 2.0 * error * (rest + between);
            let top = largest(z);
            let lowest = z.as_flattened()[..k].iter().copied().fold(f64::INFINITY, f64::min);
            let depth = c * (top - lowest + (k as f64).ln()) * (1.0 + 1e-9);
            let (mut mixed, mut size) = (0.0, 0.0);
            if let Some(logits) = tables.logits {
                let u = &logits[at];
                let y = u.as_flattened()[own] - z_own;
                // The own class's term is zero, however certain the row: all that is left is as small as the
                // probability of the others.
                let mut others = p.to_vec();
                others.as_flattened_mut()[own] = 0.0;
                mixed = mean_difference(&others, u, z) - rest * y;
                let sizes = |x: &Lines| -> f64 {
                    let of_others = dot(&others, &x.iter().map(|x| x.map(f64::abs)).collect::<Vec<_>>());
                    of_others + rest * x.as_flattened()[own].abs()
                };
                size = (sizes(u) + sizes(z)).min(1e300);
            } else {
                size += rest * (top.abs() + z_own.abs());
            }
            let reach = c * std::f64::consts::SQRT_2 * rest * norms[i];
            [c * mixed, slack, reach, c * size, c * norms[i], depth, rest * depth]
        });
        Self { mixed, slack, reach, size, width, depth, uncertain_depth }
    }
}
