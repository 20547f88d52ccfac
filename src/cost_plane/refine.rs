//! Sums of products in twice the working precision, for margin systems that are nearly singular.
//!
//! Rows that are dependent to five digits make `Q_MM^-1` of size 1e10, and a residual rounded at 1e-16 moves
//! a vertex by 1e-6: neighbouring facets then disagree. Iterative refinement with residuals in twice the
//! precision gives dual variables exact to working precision for the stored `Q`. It costs some 20 times the
//! plain residual and is needed for few facets.

/// A number as the sum of two.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Double {
    /// The number rounded.
    pub high: f64,
    /// What rounding lost.
    pub low: f64,
}

/// Sum and its rounding error (Knuth).
#[inline]
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// Halves of a number with 26 bits each (Veltkamp).
#[inline]
fn split(a: f64) -> (f64, f64) {
    let scaled = 134_217_729.0 * a;
    let high = scaled - (scaled - a);
    (high, a - high)
}

/// Product and its rounding error (Dekker).
#[inline]
fn two_product(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let ((ah, al), (bh, bl)) = (split(a), split(b));
    (product, ((ah * bh - product) + ah * bl + al * bh) + al * bl)
}

impl Double {
    /// Adds a number.
    #[inline]
    pub fn add(&mut self, x: f64) {
        let (high, error) = two_sum(self.high, x);
        let low = self.low + error;
        (self.high, self.low) = two_sum(high, low);
    }

    /// Adds the product of a number and a double.
    #[inline]
    pub fn add_product(&mut self, a: f64, b: Self) {
        let (product, error) = two_product(a, b.high);
        let (high, lost) = two_sum(self.high, product);
        let low = self.low + (lost + error + a * b.low);
        (self.high, self.low) = two_sum(high, low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_plain_sums_lose() {
        let mut sum = Double::default();
        sum.add(1e16);
        sum.add(1.0);
        sum.add(-1e16);
        assert_eq!((sum.high, sum.low), (1.0, 0.0));
        let mut product = Double::default();
        product.add_product(1.0 + f64::EPSILON, Double { high: 1.0 - f64::EPSILON, low: 0.0 });
        product.add(-1.0);
        assert_eq!(product.high, -f64::EPSILON * f64::EPSILON);
    }
}
