//! Backtracking line searches of several lanes side by side, on decision values only (GalliLin21).

use crate::Result;
use crate::fit::stop::ROUNDING;
use crate::fit::sweep::for_chunks;

/// Armijo's constant.
const SUFFICIENT_DECREASE: f64 = 0.01;
/// Halvings before a search gives up.
pub const MAX_HALVINGS: usize = 40;

/// One lane's objective along its direction, `half_norm + length (linear + length square) + C sum_i f_i`.
#[derive(Clone, Copy)]
pub struct Ray {
    /// Objective at length 0.
    pub value: f64,
    /// Its derivative there.
    pub slope: f64,
    /// `1/2 |w|^2`.
    pub half_norm: f64,
    /// `w.s`.
    pub linear: f64,
    /// `1/2 |s|^2`.
    pub square: f64,
    /// Whether the lane is searched at all.
    pub is_running: bool,
}

impl Ray {
    fn is_descent(&self) -> bool {
        self.is_running && self.slope < 0.0 && self.slope.is_finite()
    }

    /// Armijo's condition; a decrease below the rounding of the objective is taken on trust.
    pub fn accepts(&self, length: f64, loss: f64) -> bool {
        let next = self.half_norm + length * (self.linear + length * self.square) + loss;
        next <= self.value + SUFFICIENT_DECREASE * length * self.slope + ROUNDING * self.value.abs()
    }
}

/// Step length per lane, 0 where none makes progress or the lane is not running. `losses` are those at given
/// lengths.
///
/// # Errors
/// Those of `losses`.
pub fn lengths<const L: usize>(
    c: f64,
    rays: &[Ray; L],
    mut losses: impl FnMut(&[f64; L]) -> Result<[f64; L]>,
) -> Result<[f64; L]> {
    let mut searching = rays.map(|ray| ray.is_descent());
    let mut lengths = searching.map(|is_searching| if is_searching { 1.0 } else { 0.0 });
    for _ in 0..MAX_HALVINGS {
        if searching == [false; L] {
            return Ok(lengths);
        }
        let losses = losses(&lengths)?;
        for l in 0..L {
            if searching[l] {
                searching[l] = !rays[l].accepts(lengths[l], c * losses[l]);
                lengths[l] *= if searching[l] { 0.5 } else { 1.0 };
            }
        }
    }
    for l in 0..L {
        lengths[l] = if searching[l] { 0.0 } else { lengths[l] };
    }
    Ok(lengths)
}

/// Goes so many steps.
pub fn advance<const L: usize>(x: &mut [[f64; L]], step: &[[f64; L]], lengths: &[f64; L]) {
    for_chunks(x, |start, x| {
        for (x, s) in x.iter_mut().zip(&step[start..]) {
            for l in 0..L {
                x[l] += lengths[l] * s[l];
            }
        }
    });
}
