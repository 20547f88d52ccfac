//! Exponential and logarithm without branches and calls, so that a loop over lanes becomes vector
//! instructions.
//!
//! The library functions are scalar calls: at five folds they cost more than reading a row of twenty entries.
//! Both functions here are polynomials on a reduced argument, within two units in the last place; the same
//! bits on every machine. Choices are made between values that exist already: a choice between computations
//! becomes a branch, and eight lanes at once then take 40 ns each instead of 4.

use std::f64::consts::{LN_2, LOG2_E};

/// Adding and subtracting it rounds a small number to an integer, which then stands in the lowest bits.
const ROUND: f64 = 6_755_399_441_055_744.0;
/// `ln 2` cut after 32 bits, so that its product with an exponent is exact, and the rest.
const LN_2_HIGH: f64 = 0.693_147_180_369_123_8;
const LN_2_LOW: f64 = 1.908_214_929_270_587_7e-10;
/// Below this argument the exponential is taken for 0; it would be below `4e-308`.
const LEAST: f64 = -708.0;
/// `sqrt(2) - 1`: the argument of the logarithm's series is at most this in size.
const HALVE_ABOVE: f64 = 0.414_213_562_373_095;

/// `1 / k!`, falling `k`.
const EXP: [f64; 14] = [
    1.0 / 6_227_020_800.0,
    1.0 / 479_001_600.0,
    1.0 / 39_916_800.0,
    1.0 / 3_628_800.0,
    1.0 / 362_880.0,
    1.0 / 40_320.0,
    1.0 / 5_040.0,
    1.0 / 720.0,
    1.0 / 120.0,
    1.0 / 24.0,
    1.0 / 6.0,
    0.5,
    1.0,
    1.0,
];
/// `2 / k` for odd `k`, falling to 3.
const ARTANH: [f64; 10] = [
    2.0 / 21.0,
    2.0 / 19.0,
    2.0 / 17.0,
    2.0 / 15.0,
    2.0 / 13.0,
    2.0 / 11.0,
    2.0 / 9.0,
    2.0 / 7.0,
    0.4,
    2.0 / 3.0,
];

/// `exp(x)` for `x <= 0`.
#[inline(always)]
pub fn exp_of_negative(x: f64) -> f64 {
    let clamped = if x < LEAST { LEAST } else { x };
    let shifted = clamped * LOG2_E + ROUND;
    let exponent = shifted - ROUND;
    let r = (clamped - exponent * LN_2_HIGH) - exponent * LN_2_LOW;
    let mut p = EXP[0];
    let mut k = 1;
    while k < EXP.len() {
        p = p * r + EXP[k];
        k += 1;
    }
    let power = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let keep = if x < LEAST { 0.0 } else { 1.0 };
    p * power * keep
}

/// `log(1 + e)` for `0 <= e <= 1`: `2 artanh(s)`, `s = f / (2 + f)`, with `1 + f` the number `1 + e` or its
/// half.
///
/// The series' first term `2 s` is `f - s f`: `f` is exact, so that the rounding of `s` counts in the
/// correction only. With `2 s` itself the result is up to 2.5 units in the last place off where `f` and
/// `ln 2` nearly cancel.
#[inline(always)]
pub fn ln_1p_of_fraction(e: f64) -> f64 {
    let half = 0.5 * (e - 1.0);
    let f = if e > HALVE_ABOVE { half } else { e };
    let rest = if e > HALVE_ABOVE { LN_2 } else { 0.0 };
    let s = f / (2.0 + f);
    let z = s * s;
    let mut p = ARTANH[0];
    let mut k = 1;
    while k < ARTANH.len() {
        p = p * z + ARTANH[k];
        k += 1;
    }
    (f - s * (f - z * p)) + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn is_close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 2.0 * f64::EPSILON * b.abs()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn exponential_is_exact(x in prop_oneof![-708.0..0.0f64, -2.0..0.0f64]) {
            prop_assert!(is_close(exp_of_negative(x), x.exp()), "exp({x})");
        }
        #[test]
        fn logarithm_is_exact(e in prop_oneof![0.0..1.0f64, 0.0..1e-6f64]) {
            prop_assert!(is_close(ln_1p_of_fraction(e), e.ln_1p()), "ln_1p({e})");
        }
    }

    #[test]
    fn ends_are_right() {
        assert_eq!(
            (exp_of_negative(0.0), exp_of_negative(-1e300), exp_of_negative(f64::NEG_INFINITY)),
            (1.0, 0.0, 0.0)
        );
        assert_eq!((ln_1p_of_fraction(0.0), ln_1p_of_fraction(1.0)), (0.0, LN_2));
        assert!(ln_1p_of_fraction(f64::MIN_POSITIVE) > 0.0);
        assert!(exp_of_negative(f64::NAN).is_nan() && ln_1p_of_fraction(f64::NAN).is_nan());
    }
}
