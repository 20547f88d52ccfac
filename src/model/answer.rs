//! From decision values to classes.

use super::probability::{Outputs, Probability};

/// Classes up to which probabilities of a row need no memory of their own.
const FEW_CLASSES: usize = 16;

/// How the class of a row follows from its decision values.
#[derive(Clone, Debug, PartialEq)]
pub enum ClassRule {
    /// Of two classes the second, where the decision value is above 0.
    Sign,
    /// Of two classes the second, where the decision value is at least this.
    Threshold(f64),
    /// The class of the highest decision value, the first of equal ones.
    Highest,
    /// The class of the highest probability, the first of equal ones.
    MostProbable,
    /// The class of the least expected cost: entry `(i, j)`, row after row, is the cost of a row of class `i`
    /// that is taken for class `j`.
    Cheapest(Vec<f64>),
    /// Every label of a positive decision value.
    Labels,
}

impl ClassRule {
    /// What so many vectors of weights give.
    pub fn outputs(&self, n_vectors: usize) -> Outputs {
        match (self, n_vectors) {
            (Self::Labels, n) => Outputs::Labels(n),
            (_, 1) => Outputs::Pair,
            (_, n) => Outputs::Classes(n),
        }
    }

    /// Number of the class of a row with these decision values.
    ///
    /// # Panics
    /// If the values are not as many as the outputs say, or a part of the answer is missing; for
    /// [`Self::Labels`].
    pub fn class(&self, outputs: Outputs, probability: Option<&Probability>, values: &[f64]) -> usize {
        match self {
            Self::Sign => usize::from(values[0] > 0.0),
            Self::Threshold(threshold) => usize::from(values[0] >= *threshold),
            Self::Highest => first_of_best(values, |one, other| one > other),
            Self::MostProbable => with_probabilities(outputs, probability, values, |p| {
                first_of_best(p, |one, other| one > other)
            }),
            Self::Cheapest(costs) => with_probabilities(outputs, probability, values, |p| cheapest(p, costs)),
            Self::Labels => panic!("a row may have any number of labels"),
        }
    }
}

/// Calls `f` with the probabilities of a row.
fn with_probabilities<T>(
    outputs: Outputs,
    probability: Option<&Probability>,
    values: &[f64],
    f: impl FnOnce(&[f64]) -> T,
) -> T {
    let probability = probability.expect("a check has found probabilities");
    let k = outputs.n_probabilities();
    if k <= FEW_CLASSES {
        let mut few = [0.0; FEW_CLASSES];
        probability.fill(outputs, values, &mut few[..k]);
        return f(&few[..k]);
    }
    let mut many = vec![0.0; k];
    probability.fill(outputs, values, &mut many);
    f(&many)
}

/// The number of the first class of least expected cost.
fn cheapest(probabilities: &[f64], costs: &[f64]) -> usize {
    let k = probabilities.len();
    let (mut best, mut least) = (0, f64::NAN);
    for j in 0..k {
        let cost: f64 = probabilities.iter().enumerate().map(|(i, p)| p * costs[i * k + j]).sum();
        if cost.is_nan() {
            return j;
        }
        if j == 0 || cost < least {
            (best, least) = (j, cost);
        }
    }
    best
}

/// The place of the first number than which none is better; of the first NaN, if there is one, as NumPy has
/// it.
pub fn first_of_best(numbers: &[f64], is_better: impl Fn(f64, f64) -> bool) -> usize {
    let mut best = 0;
    for (k, number) in numbers.iter().enumerate() {
        if number.is_nan() {
            return k;
        }
        if is_better(*number, numbers[best]) {
            best = k;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_follow_from_values() {
        let class = |answer: &ClassRule, values: &[f64]| {
            answer.class(Outputs::Pair, Some(&Probability::Logistic), values)
        };
        for (value, sign, threshold) in [(0.0, 0, 0), (1e-300, 1, 0), (0.5, 1, 1), (-1.0, 0, 0)] {
            assert_eq!(class(&ClassRule::Sign, &[value]), sign);
            assert_eq!(class(&ClassRule::Threshold(0.5), &[value]), threshold);
            assert_eq!(class(&ClassRule::MostProbable, &[value]), usize::from(value > 1e-200));
        }
        // A false alarm costs 1, a miss 9: the second class from a tenth on.
        let costs = ClassRule::Cheapest(vec![0.0, 1.0, 9.0, 0.0]);
        assert_eq!((class(&costs, &[-2.1]), class(&costs, &[-2.3])), (1, 0));
        let highest = |values: &[f64]| ClassRule::Highest.class(Outputs::Classes(values.len()), None, values);
        assert_eq!(
            (highest(&[1.0, 3.0, 3.0]), highest(&[1.0, f64::NAN, 3.0]), highest(&[-1.0; 4])),
            (1, 1, 0)
        );
        let many: Vec<f64> = (0..40).map(f64::from).collect();
        let outputs = Outputs::Classes(40);
        assert_eq!(ClassRule::MostProbable.class(outputs, Some(&Probability::Temperature(1.0)), &many), 39);
    }
}
