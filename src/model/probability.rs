//! From decision values to probabilities: the one implementation, for estimators and models that were loaded
//! alike.
//!
//! The functions are our own ([`crate::loss::elementary`]): the same bits on every machine, and the same for
//! a row alone and in any batch.

use crate::loss::elementary::{
    exp_to_the_end, exps_to_the_end, ln, ln_logistics, ln_logistics_of_both, logistics, logistics_of_both,
};
use crate::matrix::kernels;
use crate::matrix::simd::{self, Loop};

/// Sums of probabilities of one class against the rest below this are divided by as logarithms: their terms
/// may be rounded to 0.
const LEAST_SUM: f64 = 1e-30;
/// Numbers that a function is computed of at once.
const LANES: usize = 8;
/// Probabilities that are computed step by step together: they stay in the first-level cache.
const PIECE: usize = 1024;

/// What the decision values of a row stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outputs {
    /// One value for two classes, positive for the second.
    Pair,
    /// A value for each of so many classes.
    Classes(usize),
    /// A value for each of so many labels, which a row has or has not whatever the others.
    Labels(usize),
}

impl Outputs {
    /// Decision values of a row.
    pub fn n_values(self) -> usize {
        match self {
            Self::Pair => 1,
            Self::Classes(n) | Self::Labels(n) => n,
        }
    }

    /// Probabilities of a row.
    pub fn n_probabilities(self) -> usize {
        if self == Self::Pair { 2 } else { self.n_values() }
    }
}

/// How the probabilities of a row follow from its decision values.
#[derive(Clone, Debug, PartialEq)]
pub enum Probability {
    /// The logistic function of each decision value; for several classes divided by their sum, unless the
    /// model answers with labels.
    Logistic,
    /// The logistic function of `-(slope * value + offset)`, one pair per vector of weights, divided by the
    /// sum where there are several (Platt).
    Sigmoid {
        /// One per vector of weights.
        slopes: Vec<f64>,
        /// One per vector of weights.
        offsets: Vec<f64>,
    },
    /// A rising broken line per vector of weights, level beyond its ends, divided by the sum where there are
    /// several.
    Isotonic(Vec<Line>),
    /// A softmax of the decision values times this factor, which is 1 for multinomial logistic regression;
    /// for two classes the logistic function.
    Temperature(f64),
}

/// A broken line through points with rising abscissas.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Decision values.
    pub x: Vec<f64>,
    /// Probabilities.
    pub y: Vec<f64>,
}

impl Line {
    /// The height at `x`: the first or last one beyond the ends, NaN for NaN.
    fn at(&self, x: f64) -> f64 {
        let last = self.x.len() - 1;
        let next = self.x.partition_point(|known| *known <= x);
        match next {
            _ if x.is_nan() => x,
            0 => self.y[0],
            next if next > last || self.x[next - 1] == x => self.y[next - 1],
            next => {
                let slope = (self.y[next] - self.y[next - 1]) / (self.x[next] - self.x[next - 1]);
                slope * (x - self.x[next - 1]) + self.y[next - 1]
            }
        }
    }
}

impl Probability {
    /// Probabilities of rows of decision values, row after row.
    ///
    /// # Panics
    /// If the lengths do not fit the outputs and each other.
    pub fn fill(&self, outputs: Outputs, values: &[f64], out: &mut [f64]) {
        simd::run(Fill { way: self, outputs, values, out, are_logarithms: false });
    }

    /// Logarithms of [`Self::fill`]; those of 0 are minus infinity, and without rounding to 0 before where
    /// probabilities are logistic or softmax.
    ///
    /// # Panics
    /// As [`Self::fill`].
    pub fn fill_logarithms(&self, outputs: Outputs, values: &[f64], out: &mut [f64]) {
        simd::run(Fill { way: self, outputs, values, out, are_logarithms: true });
    }

    /// Probabilities of some rows.
    #[inline(always)]
    fn probabilities(&self, outputs: Outputs, values: &[f64], out: &mut [f64]) {
        let n = outputs.n_values();
        match (outputs, self) {
            (Outputs::Pair, Self::Isotonic(lines)) => {
                for (out, value) in out.as_chunks_mut::<2>().0.iter_mut().zip(values) {
                    let second = lines[0].at(*value);
                    *out = [1.0 - second, second];
                }
            }
            (Outputs::Pair, Self::Logistic) => in_pairs(values, out, logistics_of_both),
            (Outputs::Pair, _) => in_pairs(values, out, |values| {
                let second = logistics(values.map(|value| self.argument(0, value)));
                [second.map(|p| 1.0 - p), second]
            }),
            (Outputs::Classes(_), Self::Temperature(_)) => {
                self.arguments(n, values, out);
                out.chunks_exact_mut(n).for_each(around_largest);
                in_lanes(out, exps_to_the_end);
                out.chunks_exact_mut(n).for_each(|row| divide(row, row.iter().sum()));
            }
            (_, Self::Isotonic(lines)) => {
                for (out, values) in out.chunks_exact_mut(n).zip(values.chunks_exact(n)) {
                    out.iter_mut().zip(values).zip(lines).for_each(|((p, v), line)| *p = line.at(*v));
                }
            }
            _ => {
                self.arguments(n, values, out);
                in_lanes(out, logistics);
            }
        }
        if matches!(outputs, Outputs::Classes(_)) && !matches!(self, Self::Temperature(_)) {
            out.chunks_exact_mut(n)
                .zip(values.chunks_exact(n))
                .for_each(|(row, values)| self.share(values, row));
        }
    }

    /// Logarithms of the probabilities of some rows.
    #[inline(always)]
    fn logarithms(&self, outputs: Outputs, values: &[f64], out: &mut [f64]) {
        let n = outputs.n_values();
        match (outputs, self) {
            (Outputs::Pair, Self::Logistic | Self::Temperature(_)) => in_pairs(values, out, |values| {
                ln_logistics_of_both(values.map(|value| self.argument(0, value)))
            }),
            (Outputs::Labels(_), Self::Logistic) => {
                out.copy_from_slice(values);
                in_lanes(out, ln_logistics);
            }
            (Outputs::Classes(_), Self::Logistic) => logarithms_of_shares(n, values, out),
            (Outputs::Classes(_), Self::Temperature(_)) => {
                self.arguments(n, values, out);
                normalise(n, out);
            }
            _ => {
                self.probabilities(outputs, values, out);
                out.iter_mut().for_each(|p| *p = ln(*p));
            }
        }
    }

    /// Of what the probability of class or label `l` is the logistic function, or the softmax the
    /// exponential.
    #[inline(always)]
    fn argument(&self, l: usize, value: f64) -> f64 {
        match self {
            Self::Logistic | Self::Isotonic(_) => value,
            Self::Temperature(factor) => factor * value,
            Self::Sigmoid { slopes, offsets } => -(slopes[l] * value + offsets[l]),
        }
    }

    /// Those of rows of `n` values.
    #[inline(always)]
    fn arguments(&self, n: usize, values: &[f64], out: &mut [f64]) {
        for (out, values) in out.chunks_exact_mut(n).zip(values.chunks_exact(n)) {
            out.iter_mut().zip(values).enumerate().for_each(|(l, (out, v))| *out = self.argument(l, *v));
        }
    }

    /// Divides the probabilities of each class against the rest by their sum.
    #[inline(always)]
    fn share(&self, values: &[f64], row: &mut [f64]) {
        let sum: f64 = row.iter().sum();
        if *self == Self::Logistic && sum < LEAST_SUM {
            logarithms_of_shares(row.len(), values, row);
            row.iter_mut().for_each(|p| *p = exp_to_the_end(*p));
        } else if sum == 0.0 {
            row.fill(1.0 / row.len() as f64);
        } else {
            divide(row, sum);
        }
    }
}

/// Probabilities of rows, a piece of them at a time.
struct Fill<'a> {
    way: &'a Probability,
    outputs: Outputs,
    values: &'a [f64],
    out: &'a mut [f64],
    are_logarithms: bool,
}

impl Loop for Fill<'_> {
    type Output = ();
    const IS_WIDE: bool = true;
    #[inline(always)]
    fn run(self) {
        let Self { way, outputs, values, out, are_logarithms } = self;
        let (n, k) = (outputs.n_values(), outputs.n_probabilities());
        assert_eq!(values.len() / n * k, out.len(), "a row of probabilities for each row of values");
        let rows = (PIECE / k).max(1);
        for (values, out) in values.chunks(rows * n).zip(out.chunks_mut(rows * k)) {
            if are_logarithms {
                way.logarithms(outputs, values, out);
            } else {
                way.probabilities(outputs, values, out);
            }
        }
    }
}

/// Replaces numbers by a function of them, [`LANES`] at a time.
#[inline(always)]
fn in_lanes(numbers: &mut [f64], f: impl Fn([f64; LANES]) -> [f64; LANES]) {
    let (lines, rest) = numbers.as_chunks_mut();
    for line in lines {
        kernels::one_at_a_time();
        *line = f(*line);
    }
    if !rest.is_empty() {
        let mut line = [0.0; LANES];
        line[..rest.len()].copy_from_slice(rest);
        rest.copy_from_slice(&f(line)[..rest.len()]);
    }
}

/// Writes two numbers for each value, [`LANES`] values at a time.
#[inline(always)]
fn in_pairs(values: &[f64], out: &mut [f64], f: impl Fn([f64; LANES]) -> [[f64; LANES]; 2]) {
    let pairs = out.as_chunks_mut::<2>().0;
    for (values, pairs) in values.chunks(LANES).zip(pairs.chunks_mut(LANES)) {
        kernels::one_at_a_time();
        let mut line = [0.0; LANES];
        line[..values.len()].copy_from_slice(values);
        let [first, second] = f(line);
        pairs.iter_mut().zip(first).zip(second).for_each(|((pair, a), b)| *pair = [a, b]);
    }
}

#[inline(always)]
fn divide(row: &mut [f64], by: f64) {
    row.iter_mut().for_each(|p| *p /= by);
}

/// Subtracts the largest number of a row.
#[inline(always)]
fn around_largest(row: &mut [f64]) {
    let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    row.iter_mut().for_each(|x| *x -= largest);
}

/// Logarithms of logistic probabilities divided by their sum, in rows of `n`.
#[inline(always)]
fn logarithms_of_shares(n: usize, values: &[f64], out: &mut [f64]) {
    out.copy_from_slice(values);
    in_lanes(out, ln_logistics);
    normalise(n, out);
}

/// Subtracts the logarithm of the sum of the exponentials of each row of `n`, around the largest, so that
/// numbers far below 0 do not make 0 of it.
#[inline(always)]
fn normalise(n: usize, logarithms: &mut [f64]) {
    logarithms.chunks_exact_mut(n).for_each(around_largest);
    let mut exponentials = logarithms.to_vec();
    in_lanes(&mut exponentials, exps_to_the_end);
    for (row, exponentials) in logarithms.chunks_exact_mut(n).zip(exponentials.chunks_exact(n)) {
        let sum = ln(exponentials.iter().sum());
        row.iter_mut().for_each(|logarithm| *logarithm -= sum);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn probabilities(way: &Probability, outputs: Outputs, values: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let n = values.len() / outputs.n_values() * outputs.n_probabilities();
        let (mut p, mut logs) = (vec![f64::NAN; n], vec![f64::NAN; n]);
        way.fill(outputs, values, &mut p);
        way.fill_logarithms(outputs, values, &mut logs);
        (p, logs)
    }

    /// With the system's functions, and no thought of rows that are far from every class.
    fn plain(way: &Probability, outputs: Outputs, values: &[f64]) -> Vec<f64> {
        let sigma = |v: f64| 1.0 / (1.0 + (-v).exp());
        let alone: Vec<f64> = values
            .iter()
            .enumerate()
            .map(|(l, v)| match way {
                Probability::Logistic => sigma(*v),
                Probability::Temperature(f) if !matches!(outputs, Outputs::Classes(_)) => sigma(f * v),
                Probability::Temperature(f) => (f * v).exp(),
                Probability::Sigmoid { slopes, offsets } => sigma(-slopes[l] * v - offsets[l]),
                Probability::Isotonic(lines) => {
                    let line = &lines[l];
                    match line.x.iter().rposition(|x| x <= v) {
                        None => line.y[0],
                        Some(k) if k + 1 == line.x.len() => line.y[k],
                        Some(k) => {
                            let share = (v - line.x[k]) / (line.x[k + 1] - line.x[k]);
                            (1.0 - share) * line.y[k] + share * line.y[k + 1]
                        }
                    }
                }
            })
            .collect();
        match outputs {
            Outputs::Pair => vec![1.0 - alone[0], alone[0]],
            Outputs::Labels(_) => alone,
            Outputs::Classes(_) => alone.iter().map(|p| p / alone.iter().sum::<f64>()).collect(),
        }
    }

    fn ways(n: usize) -> Vec<Probability> {
        let line = |l: usize| Line { x: vec![-1.5, -0.5, 0.25 + l as f64], y: vec![0.125, 0.25, 1.0] };
        let numbers = |first: f64| (0..n).map(|l| first + 0.3 * l as f64).collect();
        vec![
            Probability::Logistic,
            Probability::Sigmoid { slopes: numbers(-2.0), offsets: numbers(0.1) },
            Probability::Isotonic((0..n).map(line).collect()),
            Probability::Temperature(0.7),
        ]
    }

    proptest! {
        #[test]
        fn every_way_is_its_plain_twin(
            values in prop::collection::vec(-20.0..20.0f64, 4 * 5),
            scale in 0.01..2.0f64,
        ) {
            for outputs in [Outputs::Pair, Outputs::Classes(4), Outputs::Classes(5), Outputs::Labels(1)] {
                let n = outputs.n_values();
                let values: Vec<f64> = values.iter().map(|v| v * scale).collect();
                for way in ways(n) {
                    let (found, logs) = probabilities(&way, outputs, &values);
                    let k = outputs.n_probabilities();
                    for (i, row) in values.chunks(n).enumerate() {
                        let expected = plain(&way, outputs, row);
                        let (alone, _) = probabilities(&way, outputs, row);
                        for (l, p) in expected.iter().enumerate() {
                            let (q, log) = (found[i * k + l], logs[i * k + l]);
                            prop_assert!((q - p).abs() < 1e-13, "{way:?} {outputs:?}: {q} {p}");
                            prop_assert!((log.exp() - q).abs() < 1e-13 || q == 0.0);
                            prop_assert_eq!(q.to_bits(), alone[l].to_bits());
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_row_of_many_is_as_a_row_alone() {
        let values: Vec<f64> = (0..3 * PIECE + 7).map(|i| 40.0 * (0.37 * i as f64).sin()).collect();
        for outputs in [Outputs::Pair, Outputs::Classes(7), Outputs::Classes(PIECE + 3), Outputs::Labels(3)] {
            let (n, k) = (outputs.n_values(), outputs.n_probabilities());
            let values = &values[..values.len() / n * n];
            for way in ways(n) {
                let (found, logs) = probabilities(&way, outputs, values);
                for (i, row) in values.chunks(n).enumerate() {
                    let (p, logarithms) = probabilities(&way, outputs, row);
                    assert_eq!((&p[..], &logarithms[..]), (&found[i * k..][..k], &logs[i * k..][..k]));
                }
            }
        }
    }

    #[test]
    fn rows_far_from_every_class_have_probabilities() {
        let (p, logs) =
            probabilities(&Probability::Logistic, Outputs::Classes(3), &[-900.0, -901.0, -2000.0]);
        let e = (-1f64).exp();
        for (found, expected) in p.iter().zip([1.0 / (1.0 + e), e / (1.0 + e), 0.0]) {
            assert!((found - expected).abs() < 1e-13);
        }
        assert!((logs[2] + 1100.0 + (1.0 + e).ln()).abs() < 1e-9);
        let flat = Line { x: vec![0.0], y: vec![0.0] };
        let none = Probability::Isotonic(vec![flat; 4]);
        assert_eq!(probabilities(&none, Outputs::Classes(4), &[1.0; 4]).0, [0.25; 4]);
        let (p, logs) = probabilities(&Probability::Temperature(2.0), Outputs::Pair, &[-1e6]);
        assert_eq!((p, logs), (vec![1.0, 0.0], vec![0.0, -2e6]));
    }

    #[test]
    fn lines_are_level_beyond_their_ends_and_go_through_their_points() {
        let line = Line { x: vec![-1.0, 0.5, 2.0], y: vec![0.1, 0.4, 0.9] };
        let at: Vec<f64> = [-9.0, -1.0, 0.5, 2.0, 9.0].iter().map(|x| line.at(*x)).collect();
        assert_eq!(at, [0.1, 0.1, 0.4, 0.9, 0.9]);
        assert!(line.at(f64::NAN).is_nan() && (line.at(1.25) - 0.65).abs() < 1e-15);
    }
}
