//! From decision values to probabilities: the one implementation, for estimators and models that were loaded
//! alike.
//!
//! The functions are our own ([`crate::loss::elementary`]): the same bits on every machine, and the same for
//! a row alone and in any batch.

use crate::loss::elementary::{exp_to_the_end, ln, ln_logistic, logistic};

/// Sums of probabilities of one class against the rest below this are divided by as logarithms: their terms
/// may be rounded to 0.
const LEAST_SUM: f64 = 1e-30;

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
        each_row(outputs, values, out, |values, out| self.row(outputs, values, out));
    }

    /// Logarithms of [`Self::fill`]; those of 0 are minus infinity, and without rounding to 0 before where
    /// probabilities are logistic or softmax.
    ///
    /// # Panics
    /// As [`Self::fill`].
    pub fn fill_logarithms(&self, outputs: Outputs, values: &[f64], out: &mut [f64]) {
        each_row(outputs, values, out, |values, out| self.row_of_logarithms(outputs, values, out));
    }

    /// Probabilities of one row.
    ///
    /// # Panics
    /// As [`Self::fill`].
    pub fn row(&self, outputs: Outputs, values: &[f64], out: &mut [f64]) {
        match (outputs, self) {
            (Outputs::Pair, Self::Logistic) => (out[0], out[1]) = (logistic(-values[0]), logistic(values[0])),
            (Outputs::Pair, _) => {
                let second = self.alone(0, values[0]);
                (out[0], out[1]) = (1.0 - second, second);
            }
            (Outputs::Classes(_), Self::Temperature(_)) => {
                self.row_of_logarithms(outputs, values, out);
                out.iter_mut().for_each(|p| *p = exp_to_the_end(*p));
            }
            _ => out.iter_mut().zip(values).enumerate().for_each(|(l, (p, v))| *p = self.alone(l, *v)),
        }
        if let (Outputs::Classes(n), Self::Logistic | Self::Sigmoid { .. } | Self::Isotonic(_)) =
            (outputs, self)
        {
            let sum: f64 = out.iter().sum();
            if *self == Self::Logistic && sum < LEAST_SUM {
                logarithms_of_shares(values, out);
                out.iter_mut().for_each(|p| *p = exp_to_the_end(*p));
            } else if sum == 0.0 {
                out.fill(1.0 / n as f64);
            } else {
                out.iter_mut().for_each(|p| *p /= sum);
            }
        }
    }

    fn row_of_logarithms(&self, outputs: Outputs, values: &[f64], out: &mut [f64]) {
        match (outputs, self) {
            (Outputs::Pair, Self::Logistic | Self::Temperature(_)) => {
                let value = self.scale() * values[0];
                (out[0], out[1]) = (ln_logistic(-value), ln_logistic(value));
            }
            (Outputs::Classes(_), Self::Logistic) => logarithms_of_shares(values, out),
            (Outputs::Classes(_), Self::Temperature(factor)) => {
                out.iter_mut().zip(values).for_each(|(out, value)| *out = factor * value);
                normalise(out);
            }
            (Outputs::Labels(_), Self::Logistic) => {
                out.iter_mut().zip(values).for_each(|(out, value)| *out = ln_logistic(*value));
            }
            _ => {
                self.row(outputs, values, out);
                out.iter_mut().for_each(|p| *p = ln(*p));
            }
        }
    }

    /// The factor of decision values.
    fn scale(&self) -> f64 {
        if let Self::Temperature(factor) = self { *factor } else { 1.0 }
    }

    /// Probability of class or label `l` against the rest.
    #[inline]
    fn alone(&self, l: usize, value: f64) -> f64 {
        match self {
            Self::Logistic => logistic(value),
            Self::Temperature(factor) => logistic(factor * value),
            Self::Sigmoid { slopes, offsets } => logistic(-(slopes[l] * value + offsets[l])),
            Self::Isotonic(lines) => lines[l].at(value),
        }
    }
}

/// Calls `row` for the values of each row and its piece of `out`.
fn each_row(outputs: Outputs, values: &[f64], out: &mut [f64], row: impl Fn(&[f64], &mut [f64])) {
    let (n, k) = (outputs.n_values(), outputs.n_probabilities());
    assert_eq!(values.len() / n * k, out.len(), "a row of probabilities for each row of values");
    out.chunks_exact_mut(k).zip(values.chunks_exact(n)).for_each(|(out, values)| row(values, out));
}

/// Logarithms of logistic probabilities divided by their sum.
fn logarithms_of_shares(values: &[f64], out: &mut [f64]) {
    out.iter_mut().zip(values).for_each(|(out, value)| *out = ln_logistic(*value));
    normalise(out);
}

/// Subtracts the logarithm of the sum of the exponentials, around the largest, so that numbers far below 0 do
/// not make 0 of it.
fn normalise(logarithms: &mut [f64]) {
    let largest = logarithms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for logarithm in logarithms.iter_mut() {
        *logarithm -= largest;
        sum += exp_to_the_end(*logarithm);
    }
    let sum = ln(sum);
    logarithms.iter_mut().for_each(|logarithm| *logarithm -= sum);
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
