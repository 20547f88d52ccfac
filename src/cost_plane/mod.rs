//! The entire regularisation path of the hinge in two costs.
//!
//! For costs `C+` of the positive and `C-` of the negative rows, and a penalised intercept (or none), the
//! dual variables of
//!
//! ```text
//! min_w  1/2 |w|^2 + sum_i c_i max(0, 1 - y_i w.x_i),      c_i = C+ or C-
//! ```
//!
//! are piecewise affine in `(C+, C-)`: the plane is divided into convex polygons (facets) in which the sets
//! left of the margin (L), on it (M) and right of it (R) do not change. [`plane`] explores all of them in a
//! box, [`ray`] walks along one line.
//!
//! | symbol | meaning |
//! |---|---|
//! | L, M, R | rows with margin below 1, 1, above 1 |
//! | `a_i` (`alpha`) | dual variable, `c_i` in L, 0 in R, between in M |
//! | `eps_i` | perturbation of the right-hand sides: `y_i w.x_i = 1 + eps_i` in M |
//! | event | one row changes between L and M or M and R, Wesierski16, eq. (16) |
//!
//! **Degenerate data.** Duplicates, contradictions and dependent rows make several events coincide. With
//! distinct `eps_i` rows in M are always independent and events come one at a time, in exact arithmetic; so
//! the complex of the *perturbed* problem is explored, and every answer is taken back to `eps = 0` and
//! certified ([`answer`]). Rounding can still spoil a complex. That is not guessed but checked: facets must
//! share every edge with the same two vertices, loops around vertices must close, the areas must fill the box
//! ([`complex::Complex::check`]). Where a check fails, the plane is explored again with another perturbation
//! ([`SCALES`]); what remains after the last is reported as special.
//!
//! Measured: at 1e-6 german (100 and 150 rows), Gaussian, duplicated and contradictory, binary, integer,
//! collinear, one-feature and all-but-one-class data close at once. At 1e-8 and below binary and duplicated
//! data do not.
//!
//! Map: [`gram`] inner products; [`inverse`] the margin system; [`refine`] twice the precision; [`state`]
//! one facet; [`polygon`] its polygon; [`sets`], [`keys`] discrete names; [`explore`] layers; [`complex`] the
//! result; [`layers`], [`mod@file`] planes too large for memory; [`estimate`] how large; [`locate`] points;
//! [`walk`] lines; [`answer`] exact solutions; [`surface`] errors on held-out rows.
//!
//! Reference: Wesierski16, Exploring the Entire Regularization Path for the Asymmetric Cost Linear Support
//! Vector Machine; its formulas are derived anew here, in the symbols above. Deviation: where events coincide
//! (the special cases of section 3.1: duplicates, and rows that reach the margin together), the paper goes
//! around the facet and leaves it unexplored; here the perturbation takes the events apart. A *special*
//! vertex, one around which facets do not close, is a term of ours.

pub mod answer;
pub mod complex;
pub mod estimate;
pub mod explore;
pub mod file;
pub mod gram;
pub mod inverse;
pub mod keys;
pub mod layers;
pub mod locate;
pub mod margins;
pub mod polygon;
pub mod refine;
pub mod sets;
pub mod start;
pub mod state;
pub mod surface;
pub mod walk;

use complex::{Complex, ConsistencyReport, ExplorationEnd};
use explore::{Effort, ExplorationLimits};
use gram::{GramMatrix, Signed};
use keys::{Event, Side};
use margins::PerturbedProblem;
use walk::{Breakpoint, CostLine, PathWalk};

use crate::durable::target;
use crate::durable::target::Replace;
use crate::fit::Monitor;
use crate::matrix::design::Design;
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::{Error, Result, memory};

/// Sizes of the perturbation, in the order in which they are tried.
pub const SCALES: [f64; 5] = [1e-6, 1e-5, 1e-4, 3e-4, 1e-3];
/// Size of the perturbation on a ray.
pub const RAY_SCALE: f64 = 1e-6;
/// Part of a ray that is skipped where the walk cycles: less than the perturbation moves its events.
const LEAP: f64 = 1e-8;
/// How often that may happen on a ray.
const MAX_LEAPS: usize = 100;
/// Facets after which an exploration stops by default: some 90 bytes each.
pub const DEFAULT_MAX_REGIONS: usize = 5_000_000;
/// Error of the dual variables at which they are computed anew, relative to the perturbation and their own
/// scale.
const TOLERANCE: f64 = 0.1;
/// Facets whose edges 32 bits can number.
const MAX_IN_MEMORY: usize = 900_000_000;
/// Facets that 32 bits can number, with room for an open layer.
const MAX_IN_FILE: usize = 4_000_000_000;
/// Largest table of inner products.
const MAX_TABLE: usize = 8 << 30;
/// Changes of sets per row after which a walk is taken to be cycling.
const STEPS_PER_ROW: usize = 200;

/// What to explore.
#[derive(Clone, Copy, Debug)]
pub struct ExplorationOptions {
    /// Largest `C+` and `C-`; infinite for no limit.
    pub limit: [f64; 2],
    /// Costs at which to start; `None` is the origin.
    pub start: Option<[f64; 2]>,
    /// Largest number of facets.
    pub max_facets: usize,
    /// Seed of the perturbation.
    pub seed: u64,
}

/// An explored plane.
#[derive(Clone, Debug)]
pub struct Explored {
    /// The facets.
    pub complex: Complex,
    /// `eps_i`.
    pub perturbation: Vec<f64>,
    /// What the check of the complex found.
    pub report: ConsistencyReport,
    /// How many perturbations were tried.
    pub attempts: usize,
    /// Work of the last attempt.
    pub effort: Effort,
}

/// `eps_i`, uniform in `(0, scale)`.
pub fn perturbation(n: usize, scale: f64, seed: u64) -> Vec<f64> {
    use rand_core::{Rng, SeedableRng};
    let mut random = rand_xoshiro::Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..n).map(|_| scale * ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64).collect_large()
}

/// Explores the plane.
///
/// # Errors
/// [`Error::Parameter`] for limits and starts out of range and too many rows, [`Error::Labels`] for one
/// class, [`Error::Stalled`].
pub fn plane(
    rows: &Matrix<'_>,
    y: &[f64],
    bias: f64,
    options: &ExplorationOptions,
    monitor: &dyn Monitor,
) -> Result<Explored> {
    check(rows, y, options)?;
    let max_facets = options.max_facets.min(MAX_IN_MEMORY);
    attempts(rows, y, bias, options, monitor, |attempt, perturbation| {
        let (complex, effort) =
            explore::explore(attempt.plane, &attempt.start, ExplorationLimits { max_facets }, monitor)?;
        let report = complex.check();
        let faults = faults(complex.end, &report);
        Ok((
            Explored { complex, perturbation: memory::copy(perturbation), report, attempts: 1, effort },
            faults,
        ))
    })
    .map(|(explored, attempts)| Explored { attempts, ..explored })
}

/// Explores the plane into a file, which gets its name when the exploration has ended, completely or not.
/// `header` is kept in it as it is.
///
/// # Errors
/// As [`plane`]; [`Error::Occupied`] for a target at which something else is; [`Error::Io`].
pub fn plane_to_file(
    rows: &Matrix<'_>,
    y: &[f64],
    bias: f64,
    options: &ExplorationOptions,
    (path, header): (&std::path::Path, &[u8]),
    monitor: &dyn Monitor,
) -> Result<()> {
    check(rows, y, options)?;
    target::check(path, &file::KIND, Replace::SameKind)?;
    let max_facets = options.max_facets.min(MAX_IN_FILE);
    let mut count = 0;
    let (writer, attempts) = attempts(rows, y, bias, options, monitor, |attempt, perturbation| {
        count += 1;
        let mut writer = file::PlaneWriter::new(path, count)?;
        writer.begin(header, perturbation, options.limit, &attempt.start)?;
        let passed = explore::explore_into(
            attempt.plane,
            &attempt.start,
            ExplorationLimits { max_facets },
            &mut writer,
            monitor,
        )?;
        let faults = faults(passed.end, &passed.report);
        Ok(((writer, passed), faults))
    })?;
    let (writer, passed) = writer;
    writer.publish(&passed, attempts)
}

/// What one attempt explores, and from where.
struct Attempt<'a> {
    plane: state::PlaneProblem<'a>,
    start: Vec<u64>,
}

/// Explores with one perturbation after the other until nothing is wrong with the result; the best of them,
/// and how many were tried.
fn attempts<T>(
    rows: &Matrix<'_>,
    y: &[f64],
    bias: f64,
    options: &ExplorationOptions,
    monitor: &dyn Monitor,
    mut attempt: impl FnMut(&Attempt<'_>, &[f64]) -> Result<(T, Option<usize>)>,
) -> Result<(T, usize)> {
    let n = y.len();
    let design = Design { rows, ids: None, bias };
    let products = GramMatrix::new(&Signed { rows: &design, y }, None, monitor)?;
    let mut best: Option<(T, usize)> = None;
    let mut tried = 0;
    for (k, &scale) in SCALES.iter().enumerate() {
        let perturbation = perturbation(n, scale, options.seed.wrapping_add(k as u64));
        let target: Vec<f64> = perturbation.iter().map(|eps| 1.0 + eps).collect_large();
        let mean = (0..n).map(|i| products.line(i)[i]).sum::<f64>() / n as f64;
        let tolerance = TOLERANCE * scale / mean.max(f64::MIN_POSITIVE);
        let flat =
            if options.limit.iter().any(|limit| limit.is_infinite()) { state::FLAT * mean } else { 0.0 };
        let plane = state::PlaneProblem {
            products: &products,
            y,
            target: &target,
            limit: options.limit,
            tolerance,
            flat,
        };
        let data = answer::Data { rows, y, bias, perturbation: &perturbation };
        let start = sets::pack(&start::sides_at(&data, options.start.unwrap_or_default(), monitor)?);
        let (result, faults) = attempt(&Attempt { plane, start }, &perturbation)?;
        tried = k + 1;
        let is_done = faults.is_none_or(|faults| faults == 0);
        let faults = faults.unwrap_or(0);
        if best.as_ref().is_none_or(|(_, least)| faults < *least) {
            best = Some((result, faults));
        }
        if is_done {
            break;
        }
    }
    best.map(|(result, _)| (result, tried)).ok_or(Error::Cancelled)
}

/// What is wrong with a complex, counted; an overlap outweighs everything. `None` after an interrupt, which
/// ends all attempts.
fn faults(end: ExplorationEnd, report: &ConsistencyReport) -> Option<usize> {
    let ConsistencyReport { empty, special, unmatched, inverted, .. } = report;
    let overlap = if end == ExplorationEnd::Inconsistent { usize::MAX / 2 } else { 0 };
    (end != ExplorationEnd::Interrupted).then(|| overlap + empty.len() + special.len() + unmatched + inverted)
}

/// Walks from the costs `from` with the given sets (all left at the origin) to `to`.
///
/// Where rows depend on each other exactly, rounding can decide an order of events that repeats for ever. The
/// walk then begins again a little further on, with the sets of a fit there; what changed in between is
/// recorded as events at that point.
///
/// # Errors
/// As [`plane`].
pub fn ray(
    data: &answer::Data<'_>,
    sides: &[Side],
    from: [f64; 2],
    to: [f64; 2],
    monitor: &dyn Monitor,
) -> Result<Vec<Breakpoint>> {
    let design = data.design();
    let problem = PerturbedProblem { rows: &design, y: data.y, perturbation: [data.perturbation; 2] };
    let line = CostLine { cost: std::array::from_fn(|k| [from[k], to[k] - from[k]]) };
    let (mut begin, mut sides, mut steps) = (0.0, memory::copy(sides), Vec::new());
    for leap in 0.. {
        let mut walk = PathWalk::new(problem, line, begin, &sides);
        let ended = walk.run(1000 + STEPS_PER_ROW * data.y.len(), monitor);
        steps.append(&mut walk.breakpoints);
        match ended {
            Err(Error::Stalled { .. }) if leap < MAX_LEAPS => {}
            Err(error) => return Err(error),
            Ok(()) => break,
        }
        begin = (walk.t() + LEAP).min(1.0);
        sides = start::sides_at(data, line.cost.map(|[at, rate]| at + rate * begin), monitor)?;
        let rows = walk.sides().iter().zip(&sides).enumerate();
        let events = rows.flat_map(|(i, (&was, &is))| Event::changes(i as u32, was, is));
        steps.extend(events.map(|event| Breakpoint { t: begin, event }));
    }
    Ok(steps)
}

fn check(rows: &Matrix<'_>, y: &[f64], options: &ExplorationOptions) -> Result<()> {
    let n = rows.n_rows();
    crate::fit::check_length("labels", n, y.len())?;
    if options.limit.iter().any(|&limit| limit.is_nan() || limit <= 0.0) {
        return parameter("box", options.limit, "two numbers above 0 (infinity for no limit)");
    }
    if let Some(start) = options.start
        && (0..2).any(|k| !(start[k] > 0.0 && start[k] <= options.limit[k] && start[k].is_finite()))
    {
        return parameter("start", start, "a point of the box off the axes");
    }
    if options.max_facets == 0 {
        return Err(Error::Parameter { name: "max_regions", value: "0".into(), rule: "at least 1" });
    }
    if !(y.contains(&1.0) && y.contains(&-1.0)) {
        return Err(Error::Labels {
            reason: "y holds one class only, the plane of two costs needs both".into(),
        });
    }
    if GramMatrix::bytes(n, 0) > MAX_TABLE || n > (u32::MAX / 8) as usize {
        return Err(Error::Parameter {
            name: "X",
            value: format!("{n} rows"),
            rule: "at most 32,768 rows for the whole plane (walk one ray instead)",
        });
    }
    Ok(())
}

fn parameter(name: &'static str, value: [f64; 2], rule: &'static str) -> Result<()> {
    Err(Error::Parameter { name, value: format!("({}, {})", value[0], value[1]), rule })
}
