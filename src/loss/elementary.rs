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
    let [e] = exp_of_negatives([x]);
    e
}

/// `exp(x)` of several `x <= 0`, each step for all of them before the next. A loop that calls
/// [`exp_of_negative`] is left as eight scalar computations by the compiler where more surrounds it.
#[inline(always)]
pub fn exp_of_negatives<const L: usize>(x: [f64; L]) -> [f64; L] {
    let (mut r, mut power, mut keep) = ([0.0; L], [0.0; L], [0.0; L]);
    for l in 0..L {
        let clamped = if x[l] < LEAST { LEAST } else { x[l] };
        let shifted = clamped * LOG2_E + ROUND;
        let exponent = shifted - ROUND;
        r[l] = (clamped - exponent * LN_2_HIGH) - exponent * LN_2_LOW;
        power[l] = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
        keep[l] = if x[l] < LEAST { 0.0 } else { 1.0 };
    }
    let mut p = [EXP[0]; L];
    let mut k = 1;
    while k < EXP.len() {
        for l in 0..L {
            p[l] = p[l] * r[l] + EXP[k];
        }
        k += 1;
    }
    for l in 0..L {
        p[l] = p[l] * power[l] * keep[l];
    }
    p
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

/// `exp(x)` of several `x <= 0`, down to the least number that is not 0: where [`exp_of_negatives`] ends it
/// is the square of the root.
#[inline(always)]
pub fn exps_to_the_end<const L: usize>(x: [f64; L]) -> [f64; L] {
    let e = exp_of_negatives(x.map(|x| if x < LEAST { 0.5 * x } else { x }));
    std::array::from_fn(|l| if x[l] < LEAST { e[l] * e[l] } else { e[l] })
}

/// One of [`exps_to_the_end`].
#[inline(always)]
pub fn exp_to_the_end(x: f64) -> f64 {
    let [e] = exps_to_the_end([x]);
    e
}

/// The logistic function `1 / (1 + exp(-x))` of several numbers with the other sign, and of the numbers; its
/// value at `-x` is as exact as that at `x`.
#[inline(always)]
pub fn logistics_of_both<const L: usize>(x: [f64; L]) -> [[f64; L]; 2] {
    let e = exps_to_the_end(x.map(|x| -x.abs()));
    [
        std::array::from_fn(|l| (if x[l] <= 0.0 { 1.0 } else { e[l] }) / (1.0 + e[l])),
        std::array::from_fn(|l| (if x[l] < 0.0 { e[l] } else { 1.0 }) / (1.0 + e[l])),
    ]
}

/// The logarithms of [`logistics_of_both`], exact at both ends.
#[inline(always)]
pub fn ln_logistics_of_both<const L: usize>(x: [f64; L]) -> [[f64; L]; 2] {
    let above = exps_to_the_end(x.map(|x| -x.abs())).map(ln_1p_of_fraction);
    [
        std::array::from_fn(|l| (if x[l] > 0.0 { -x[l] } else { 0.0 }) - above[l]),
        std::array::from_fn(|l| (if x[l] < 0.0 { x[l] } else { 0.0 }) - above[l]),
    ]
}

/// The second half of [`logistics_of_both`].
#[inline(always)]
pub fn logistics<const L: usize>(x: [f64; L]) -> [f64; L] {
    let [_, second] = logistics_of_both(x);
    second
}

/// The second half of [`ln_logistics_of_both`].
#[inline(always)]
pub fn ln_logistics<const L: usize>(x: [f64; L]) -> [f64; L] {
    let [_, second] = ln_logistics_of_both(x);
    second
}

/// `ln(x)` for `x >= 0`: minus infinity at 0, infinity at infinity, NaN for anything else.
#[inline]
pub fn ln(x: f64) -> f64 {
    if !(x > 0.0 && x < f64::INFINITY) {
        return if x == 0.0 {
            f64::NEG_INFINITY
        } else if x == f64::INFINITY {
            x
        } else {
            f64::NAN
        };
    }
    let (x, shift) = if x < f64::MIN_POSITIVE { (x * TWO_TO_54, -54) } else { (x, 0) };
    let exponent = (x.to_bits() >> 52) as i64 - 1023;
    let fraction = f64::from_bits((x.to_bits() & MANTISSA) | ONE);
    let is_high = fraction > 1.0 + HALVE_ABOVE;
    let f = if is_high { 0.5 * fraction } else { fraction } - 1.0;
    let exponent = (exponent + shift + i64::from(is_high)) as f64;
    let (s, half) = (f / (2.0 + f), 0.5 * f * f);
    let z = s * s;
    let mut p = ARTANH[0];
    let mut k = 1;
    while k < ARTANH.len() {
        p = p * z + ARTANH[k];
        k += 1;
    }
    // `2 s = f - f^2 / 2 + s f^2 / 2`: the first two are nearly exact, the rest is small.
    let small = s * (half + z * p) + exponent * LN_2_LOW;
    exponent * LN_2_HIGH - ((half - small) - f)
}

/// `log x` for a normal `x > 0`, off by a rounding error of `log 2`; without a branch, other than [`ln`].
#[inline(always)]
pub fn ln_of_normal(x: f64) -> f64 {
    let bits = x.to_bits();
    let exponent = (bits >> 52) as i64 - 1023;
    let fraction = f64::from_bits((bits & MANTISSA) | ONE);
    exponent as f64 * LN_2 + ln_1p_of_fraction(fraction - 1.0)
}

const TWO_TO_54: f64 = 18_014_398_509_481_984.0;
const MANTISSA: u64 = (1 << 52) - 1;
/// The bits of 1.
const ONE: u64 = 1023 << 52;

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

    /// Units in the last place between two numbers of one sign.
    fn ulps(a: f64, b: f64) -> u64 {
        a.to_bits().abs_diff(b.to_bits())
    }

    fn logistic(x: f64) -> f64 {
        logistics([x])[0]
    }

    fn ln_logistic(x: f64) -> f64 {
        ln_logistics([x])[0]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn logistic_is_its_definition(x in prop_oneof![-745.0..745.0f64, -4.0..4.0f64, -1e-9..1e-9f64]) {
            // The same formula with the system's exponential, which is right to a unit.
            let e = (-x.abs()).exp();
            let plain = if x < 0.0 { e } else { 1.0 } / (1.0 + e);
            prop_assert!(ulps(logistic(x), plain) <= 3, "{x}: {} {plain}", logistic(x));
            let plain = if x < 0.0 { x - e.ln_1p() } else { -e.ln_1p() };
            prop_assert!(ulps(ln_logistic(x), plain) <= 3, "{x}: {} {plain}", ln_logistic(x));
            let (both, logarithms) = (logistics_of_both([x, 0.0]), ln_logistics_of_both([x, 0.0]));
            prop_assert_eq!([both[0][0], both[1][0]], [logistic(-x), logistic(x)]);
            prop_assert_eq!([logarithms[0][0], logarithms[1][0]], [ln_logistic(-x), ln_logistic(x)]);
        }
        #[test]
        fn ln_is_exact(x in prop_oneof![0.0..1.0f64, 0.9..1.1f64, 1.0..1e9f64, 0.0..1e-300f64]) {
            prop_assert!(ulps(ln(x), x.ln()) <= 1, "ln({x}): {} {}", ln(x), x.ln());
        }
    }

    #[test]
    fn ends_of_probabilities_are_right() {
        assert_eq!((logistic(0.0), logistic(-0.0), ln_logistic(0.0)), (0.5, 0.5, -LN_2));
        assert_eq!((logistic(f64::INFINITY), logistic(f64::NEG_INFINITY)), (1.0, 0.0));
        assert_eq!((ln_logistic(f64::INFINITY), ln_logistic(f64::NEG_INFINITY)), (0.0, f64::NEG_INFINITY));
        assert!(logistic(-745.0) > 0.0 && logistic(-746.0) == 0.0 && ln_logistic(1e300) == 0.0);
        assert!(logistic(f64::NAN).is_nan() && ln_logistic(f64::NAN).is_nan() && ln(f64::NAN).is_nan());
        assert!(ln(-1.0).is_nan() && ln(0.0) == f64::NEG_INFINITY && ln(1.0) == 0.0);
        assert_eq!((ln(5e-324), ln(f64::INFINITY)), (5e-324f64.ln(), f64::INFINITY));
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
