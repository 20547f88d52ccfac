//! How many facets a plane will have, from a few straight lines through it.
//!
//! Almost every vertex of a plane is the crossing of two event paths, with four facets around it: there are
//! as many facets as crossings. The diagonal and the antidiagonal of a part of the plane count the paths that
//! run either way, and the number of crossings goes with the product of both counts. The plane is not uniform
//! (most of it happens at small costs), so it is taken in shells whose outer side is four times the inner
//! one, the antidiagonal of each crossing its middle.
//!
//! The factor is measured, not derived. On planes that are known (see the tests) the estimate is within a
//! factor of four either way for data with several features; where all rows lie on one line it is several
//! times too large.

use super::answer::Data;
use super::keys::Side;
use super::start::sides_at;
use super::{SCALES, perturbation, ray};
use crate::fit::Monitor;
use crate::matrix::{Matrix, Rows};
use crate::{Error, Result};

/// Facets per product of crossings of both diagonals.
const DENSITY: f64 = 0.45;
/// Outer side of a shell over the inner one.
const RATIO: f64 = 4.0;
/// Shells; what lies within the last has a millionth of a millionth of the area.
const SHELLS: i32 = 10;
/// Distance of the ends of an antidiagonal from the axes, relative to its length: on the axes all events of a
/// class coincide.
const MARGIN: f64 = 1e-3;

/// Estimates the number of facets in the box up to `limit`.
///
/// # Errors
/// [`Error::Parameter`] for an infinite or empty box; [`Error::Cancelled`]; [`Error::Stalled`].
pub fn estimate(
    rows: &Matrix<'_>,
    y: &[f64],
    bias: f64,
    limit: [f64; 2],
    seed: u64,
    monitor: &dyn Monitor,
) -> Result<f64> {
    crate::fit::check_length("labels", rows.n_rows(), y.len())?;
    if limit.iter().any(|c| !(*c > 0.0 && c.is_finite())) {
        let value = format!("({}, {})", limit[0], limit[1]);
        return Err(Error::Parameter { name: "box", value, rule: "two finite numbers above 0" });
    }
    let perturbation = perturbation(y.len(), SCALES[0], seed);
    let data = Data { rows, y, bias, perturbation: &perturbation };
    let diagonal = events(&data, &vec![Side::Left; y.len()], [0.0; 2], limit, monitor)?;
    let mut total = 1.0;
    for shell in 0..SHELLS {
        let outer = RATIO.powi(-shell);
        let inner = if shell + 1 < SHELLS { outer / RATIO } else { 0.0 };
        let radial = diagonal.iter().filter(|&&t| t > inner && t <= outer).count();
        if radial > 0 {
            let (from, to) = (
                [limit[0] * outer, limit[1] * outer * MARGIN],
                [limit[0] * outer * MARGIN, limit[1] * outer],
            );
            let sides = sides_at(&data, from, monitor)?;
            let across = events(&data, &sides, from, to, monitor)?.len();
            total += DENSITY * radial as f64 * across as f64;
        }
    }
    Ok(total)
}

/// Where the events on a straight line are, in [0, 1].
fn events(
    data: &Data<'_>,
    sides: &[Side],
    from: [f64; 2],
    to: [f64; 2],
    monitor: &dyn Monitor,
) -> Result<Vec<f64>> {
    Ok(ray(data, sides, from, to, monitor)?.iter().map(|step| step.t).collect())
}
