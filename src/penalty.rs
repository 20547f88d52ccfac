//! What the weights of a model cost besides the losses, and where they may be:
//!
//! ```text
//! sum_j f_j [ r |w_j| + (1 - r)/2 w_j^2 ],      lo_j <= w_j <= hi_j
//! ```
//!
//! with the share `r` of the absolute values (`l1_ratio`), a factor `f_j >= 0` for each column (0: not
//! penalised; infinite: the column is left out) and bounds. `r = 0` without factors and bounds is the
//! penalty `1/2 |w|^2` of all other solvers.

use crate::{Error, Result};

/// A number for each column, or the same for all.
#[derive(Clone, Debug, PartialEq)]
pub enum PerColumn {
    /// The same for all.
    All(f64),
    /// One for each.
    Each(Vec<f64>),
}

impl PerColumn {
    /// The number of column `j`.
    pub fn at(&self, j: usize) -> f64 {
        match self {
            Self::All(value) => *value,
            Self::Each(values) => values[j],
        }
    }

    /// All numbers, one if they are the same.
    pub fn values(&self) -> &[f64] {
        match self {
            Self::All(value) => std::slice::from_ref(value),
            Self::Each(values) => values,
        }
    }

    /// The numbers with their columns, where they are one for each.
    fn check(&self, name: &'static str, rule: &'static str, is_good: impl Fn(f64) -> bool) -> Result<()> {
        let Some(j) = self.values().iter().position(|v| !is_good(*v)) else {
            return Ok(());
        };
        let value = match self {
            Self::All(value) => value.to_string(),
            Self::Each(values) => format!("{} for column {j}", values[j]),
        };
        Err(Error::Parameter { name, value, rule })
    }
}

/// The penalty and the bounds of all columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Penalty {
    /// Share of the absolute values, from 0 to 1.
    pub l1_ratio: f64,
    /// Factor of each column.
    pub factors: PerColumn,
    /// Smallest weight of each column.
    pub lower: PerColumn,
    /// Largest weight of each column.
    pub upper: PerColumn,
}

impl Default for Penalty {
    /// `sum_j |w_j|`.
    fn default() -> Self {
        Self {
            l1_ratio: 1.0,
            factors: PerColumn::All(1.0),
            lower: PerColumn::All(f64::NEG_INFINITY),
            upper: PerColumn::All(f64::INFINITY),
        }
    }
}

impl Penalty {
    /// Checks the numbers for so many columns.
    ///
    /// # Errors
    /// [`Error::Parameter`] and [`Error::Shape`].
    pub fn check(&self, n_cols: usize) -> Result<()> {
        if !(0.0..=1.0).contains(&self.l1_ratio) {
            let (value, rule) = (self.l1_ratio.to_string(), "a number from 0 to 1");
            return Err(Error::Parameter { name: "l1_ratio", value, rule });
        }
        for (what, numbers) in [
            ("penalty_factors, one for each column", &self.factors),
            ("lower bounds, one for each column", &self.lower),
            ("upper bounds, one for each column", &self.upper),
        ] {
            if let PerColumn::Each(values) = numbers
                && values.len() != n_cols
            {
                return Err(Error::Shape { what, expected: n_cols, found: values.len() });
            }
        }
        self.factors.check("penalty_factors", "at least 0", |f| f >= 0.0)?;
        let rule = "a number or -infinity, and not above the upper bound";
        self.lower.check("bounds", rule, |lo| lo < f64::INFINITY)?;
        self.upper.check("bounds", "a number or infinity", |hi| hi > f64::NEG_INFINITY)?;
        let is_empty = |j: &usize| self.lower.at(*j) > self.upper.at(*j);
        let excludes = |j: &usize| {
            self.factors.at(*j) == f64::INFINITY && (self.lower.at(*j) > 0.0 || self.upper.at(*j) < 0.0)
        };
        if let Some(j) = (0..n_cols).find(is_empty) {
            let value = format!("{} to {} for column {j}", self.lower.at(j), self.upper.at(j));
            return Err(Error::Parameter { name: "bounds", value, rule });
        }
        if let Some(j) = (0..n_cols).find(excludes) {
            let value = format!("{} to {} for column {j}", self.lower.at(j), self.upper.at(j));
            let rule = "around 0 for a column whose penalty factor is infinite";
            return Err(Error::Parameter { name: "bounds", value, rule });
        }
        Ok(())
    }

    /// The term of column `j`.
    pub fn term(&self, j: usize) -> Term {
        let factor = self.factors.at(j);
        if factor == f64::INFINITY {
            return Term { l1: 0.0, l2: 0.0, lower: 0.0, upper: 0.0 };
        }
        let (l1, l2) = (factor * self.l1_ratio, factor * (1.0 - self.l1_ratio));
        Term { l1, l2, lower: self.lower.at(j), upper: self.upper.at(j) }
    }

    /// The term of an intercept that is the weight of a penalised constant column: without factor or bounds.
    pub fn plain_term(&self) -> Term {
        let (lower, upper) = (f64::NEG_INFINITY, f64::INFINITY);
        Term { l1: self.l1_ratio, l2: 1.0 - self.l1_ratio, lower, upper }
    }
}

/// The penalty of one weight: `l1 |w| + l2/2 w^2` from `lower` to `upper`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// Slope of the absolute value.
    pub l1: f64,
    /// Curvature of the square.
    pub l2: f64,
    /// Smallest weight.
    pub lower: f64,
    /// Largest weight.
    pub upper: f64,
}

impl Term {
    /// No penalty and no bounds.
    pub const FREE: Self = Self { l1: 0.0, l2: 0.0, lower: f64::NEG_INFINITY, upper: f64::INFINITY };

    /// The penalty of `w`, which is within the bounds.
    #[inline(always)]
    pub fn value(&self, w: f64) -> f64 {
        self.l1 * w.abs() + 0.5 * self.l2 * w * w
    }

    /// The slope of losses and penalty at `w`, where it is `slope` for the losses. At zero the absolute value
    /// counts as without slope.
    pub fn slope_inside(&self, w: f64, slope: f64) -> f64 {
        let pull = if w == 0.0 { 0.0 } else { self.l1 * w.signum() };
        slope + pull + self.l2 * w
    }

    /// The penalty of `to` less that of `from`, without cancellation where the sign stays.
    #[inline(always)]
    pub fn rise(&self, from: f64, to: f64) -> f64 {
        if from * to < 0.0 {
            return self.value(to) - self.value(from);
        }
        let sign = (from + to).signum();
        (to - from) * (self.l1 * sign + 0.5 * self.l2 * (from + to))
    }

    /// The nearest weight within the bounds.
    #[inline(always)]
    pub fn clip(&self, w: f64) -> f64 {
        w.max(self.lower).min(self.upper)
    }

    /// Whether neither penalty nor bounds hold the weight.
    pub fn is_free(&self) -> bool {
        *self == Self::FREE
    }

    /// The weight `x` that minimises `slope (x - w) + bend/2 (x - w)^2` and the penalty. Without curvature it
    /// is where the slope has the penalty's size at most, or `w`.
    #[inline(always)]
    pub fn minimiser(&self, w: f64, slope: f64, bend: f64) -> f64 {
        let whole = bend + self.l2;
        if whole <= 0.0 {
            return if slope.abs() <= self.l1 { self.clip(if self.l1 > 0.0 { 0.0 } else { w }) } else { w };
        }
        let pull = bend * w - slope;
        // The 0 makes a negative zero positive.
        self.clip(pull.signum() * (pull.abs() - self.l1).max(0.0) / whole + 0.0)
    }

    /// By how much the optimality condition `slope + d penalty(w) = 0` is missed.
    #[inline(always)]
    pub fn violation(&self, w: f64, slope: f64) -> f64 {
        let rest = slope + self.l2 * w;
        let (down, up) = (rest + self.l1, rest - self.l1);
        // The objective falls upwards at a rate of `-down` where w >= 0, of `-up` where w < 0.
        let rise = if w >= self.upper { 0.0 } else { -(if w < 0.0 { up } else { down }) };
        let fall = if w <= self.lower { 0.0 } else { if w > 0.0 { down } else { up } };
        rise.max(fall).max(0.0)
    }

    /// The largest multiple `t >= 0` at which `t v` is the slope of a penalty that is finite: the conjugate
    /// of the term is infinite beyond it.
    #[inline(always)]
    pub fn reach(&self, v: f64) -> f64 {
        let is_open = if v > 0.0 { self.upper == f64::INFINITY } else { self.lower == f64::NEG_INFINITY };
        if v == 0.0 || self.l2 > 0.0 || !is_open { f64::INFINITY } else { self.l1 / v.abs() }
    }

    /// The conjugate: the largest `v w - value(w)` within the bounds.
    #[inline(always)]
    pub fn conjugate(&self, v: f64) -> f64 {
        let excess = v.abs() - self.l1;
        if self.l2 > 0.0 {
            let w = self.clip(v.signum() * excess.max(0.0) / self.l2);
            return v * w - self.value(w);
        }
        let w = if excess <= 0.0 {
            self.clip(0.0)
        } else if v > 0.0 {
            self.upper
        } else {
            self.lower
        };
        if w.is_infinite() { f64::INFINITY } else { v * w - self.l1 * w.abs() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn terms() -> impl Strategy<Value = Term> {
        let bound = prop_oneof![Just(f64::INFINITY), 0.0..3.0f64, Just(0.0)];
        (prop_oneof![Just(0.0), 0.0..2.0f64], prop_oneof![Just(0.0), 0.0..2.0f64], bound.clone(), bound)
            .prop_map(|(l1, l2, lo, hi)| Term { l1, l2, lower: -lo, upper: hi })
    }

    proptest! {
        #[test]
        fn minimisers_have_no_better_neighbour(
            term in terms(), w in -4.0..4.0f64, slope in -3.0..3.0f64, bend in 0.01..3.0f64,
        ) {
            let w = term.clip(w);
            let value = |x: f64| slope * (x - w) + 0.5 * bend * (x - w).powi(2) + term.value(x);
            let best = term.minimiser(w, slope, bend);
            for step in [-1.0, -1e-4, 1e-4, 1.0] {
                prop_assert!(value(best) <= value(term.clip(best + step)) + 1e-12);
            }
            let slope_there = slope + bend * (best - w);
            prop_assert!(term.violation(best, slope_there) <= 1e-12);
            if term.violation(w, slope) > 1e-9 {
                prop_assert!(value(best) < value(w));
            } else {
                prop_assert!((best - w).abs() <= 1e-6, "{best} {w}");
            }
        }

        #[test]
        fn conjugates_are_the_largest_value(term in terms(), v in -4.0..4.0f64, w in -50.0..50.0f64) {
            let w = term.clip(w);
            let conjugate = term.conjugate(v);
            prop_assert!(v * w - term.value(w) <= conjugate + 1e-12);
            let t = term.reach(v);
            if t.is_finite() {
                prop_assert!(term.conjugate(t * v * (1.0 - 1e-12)).is_finite());
                prop_assert!(term.conjugate(t * v * 1.001 + v * 1e-9) == f64::INFINITY || v == 0.0);
            } else {
                prop_assert!(conjugate.is_finite());
            }
        }
    }

    #[test]
    fn bad_numbers_are_refused_by_column() {
        let bad = Penalty { factors: PerColumn::Each(vec![1.0, -2.0]), ..Penalty::default() };
        assert_eq!(
            bad.check(2).unwrap_err().to_string(),
            "penalty_factors must be at least 0, got -2 for column 1"
        );
        assert!(bad.check(3).is_err());
        let empty = Penalty { lower: PerColumn::All(1.0), upper: PerColumn::All(0.0), ..Penalty::default() };
        assert!(empty.check(1).unwrap_err().to_string().contains("1 to 0 for column 0"));
        let nan = Penalty { l1_ratio: f64::NAN, ..Penalty::default() };
        assert!(nan.check(0).is_err());
    }
}
