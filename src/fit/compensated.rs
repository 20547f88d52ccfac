//! Sums of numbers and products as if in twice the precision (Ogita, Rump, Oishi, Accurate Sum and Dot
//! Product, SIAM J. Sci. Comput. 26, 2005, algorithms 4.1 and 5.3).
//!
//! The rounding error of every addition and multiplication is a double itself; the errors are summed beside
//! the sum. With `u = 2^-53` and `n` terms `t_i` the result is off by at most `u |sum| + (n u)^2 sum |t_i|`.

/// A running sum with the sum of its rounding errors.
#[derive(Clone, Copy, Debug, Default)]
pub struct CompensatedSum {
    sum: f64,
    errors: f64,
}

impl CompensatedSum {
    /// Starts at `x`.
    pub fn new(x: f64) -> Self {
        Self { sum: x, errors: 0.0 }
    }

    /// Adds a number.
    pub fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        let moved = sum - self.sum;
        self.errors += (self.sum - (sum - moved)) + (x - moved);
        self.sum = sum;
    }

    /// Adds a product.
    pub fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.add(product);
        self.errors += a.mul_add(b, -product);
    }

    /// The sum.
    pub fn value(&self) -> f64 {
        self.sum + self.errors
    }

    /// What [`Self::value`] leaves out.
    pub fn rest(&self) -> f64 {
        (self.sum - self.value()) + self.errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_that_cancel_leave_an_exact_rest(
            terms in prop::collection::vec((-(1i64 << 52)..1i64 << 52, -(1i64 << 40)..1i64 << 40), 0..40),
            rest in -(1i64 << 30)..1i64 << 30,
        ) {
            let mut sum = CompensatedSum::new(rest as f64);
            terms.iter().for_each(|&(a, b)| sum.add_product(a as f64, b as f64));
            terms.iter().for_each(|&(a, b)| sum.add_product(-a as f64, b as f64));
            prop_assert_eq!(sum.value(), rest as f64);
        }

        #[test]
        fn sums_agree_with_integer_arithmetic(
            terms in prop::collection::vec(-(1i64 << 53)..1i64 << 53, 0..60),
        ) {
            let mut sum = CompensatedSum::default();
            terms.iter().for_each(|&x| sum.add(x as f64));
            let exact: i128 = terms.iter().map(|&x| i128::from(x)).sum();
            prop_assert_eq!(sum.value(), exact as f64);
        }
    }
}
