//! Conjugate gradients on a quadratic model, and how often they are tried.

use crate::Result;
use crate::fit::monitor::Monitor;
use crate::fit::sweep::dot;
use crate::memory::{self, CollectLarge};

/// Added to the curvature of each column, as a share of it: along columns that add up to others the model
/// says little of how far to go.
pub const FLAT: f64 = 1e-3;
/// By which factor the squared slope is to fall.
const ENOUGH: f64 = 1e-4;

/// Steps towards the minimum of a model whose slopes are `slope`, `most` at most. `product` multiplies by its
/// curvature, the diagonal of which is the preconditioner.
///
/// # Errors
/// [`crate::Error::Cancelled`]; a product may read a hundred million numbers, so each step asks.
pub fn conjugate_gradients(
    slope: Vec<f64>,
    diagonal: &[f64],
    most: usize,
    monitor: &dyn Monitor,
    mut product: impl FnMut(&[f64]) -> Vec<f64>,
) -> Result<Vec<f64>> {
    let scale = |rest: &[f64]| -> Vec<f64> { rest.iter().zip(diagonal).map(|(r, d)| r / d).collect_large() };
    let mut rest = slope;
    rest.iter_mut().for_each(|r| *r = -*r);
    let mut direction = scale(&rest);
    let mut squared = dot(&rest, &direction);
    let enough = ENOUGH * squared;
    let mut by: Vec<f64> = memory::zeros(rest.len());
    for _ in 0..most {
        monitor.poll()?;
        let product = product(&direction);
        let length = squared / dot(&direction, &product);
        if !length.is_finite() {
            break;
        }
        by.iter_mut().zip(&direction).for_each(|(by, p)| *by += length * p);
        rest.iter_mut().zip(&product).for_each(|(rest, p)| *rest -= length * p);
        let scaled = scale(&rest);
        let next = dot(&rest, &scaled);
        if next <= enough {
            break;
        }
        direction.iter_mut().zip(&scaled).for_each(|(p, s)| *p = s + next / squared * *p);
        squared = next;
    }
    Ok(by)
}

/// When the next jump is due: one that was not worth its price makes the wait for the next twice as long.
pub struct Waits {
    between: usize,
    left: usize,
}

impl Waits {
    /// The first at once, the others after `between` questions.
    pub fn new(between: usize) -> Self {
        Self { between, left: 0 }
    }

    /// Whether it is due now.
    pub fn is_over(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    /// Waits for the next.
    pub fn begin(&mut self, was_worth_it: bool) {
        self.between *= if was_worth_it { 1 } else { 2 };
        self.left = self.between;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::monitor::Silent;

    #[test]
    fn conjugate_gradients_come_to_the_minimum_of_a_small_model() {
        let matrix = [[4.0, 1.0, 0.5], [1.0, 3.0, -1.0], [0.5, -1.0, 5.0]];
        let slope = vec![1.0, -2.0, 3.0];
        let times =
            |p: &[f64]| matrix.iter().map(|line| line.iter().zip(p).map(|(h, p)| h * p).sum()).collect();
        let by = conjugate_gradients(slope.clone(), &[4.0, 3.0, 5.0], 3, &Silent, times).unwrap();
        let products: Vec<f64> = times(&by);
        for (product, slope) in products.iter().zip(&slope) {
            assert!((product + slope).abs() < 1e-12, "{product} and {slope}");
        }
        // One step is the minimum along the scaled slope.
        let first = conjugate_gradients(slope.clone(), &[4.0, 3.0, 5.0], 1, &Silent, times).unwrap();
        let along: f64 = times(&first).iter().zip(&slope).zip(&first).map(|((h, g), p)| (h + g) * p).sum();
        assert!(along.abs() < 1e-12);
    }

    #[test]
    fn conjugate_gradients_stop_when_asked_to() {
        struct Asked;
        impl Monitor for Asked {
            fn cancelled(&self) -> bool {
                true
            }
        }
        let product = |_: &[f64]| unreachable!();
        let found = conjugate_gradients(vec![1.0, -2.0], &[1.0, 1.0], 3, &Asked, product);
        assert!(matches!(found, Err(crate::Error::Cancelled)));
    }

    #[test]
    fn waits_double_after_what_was_not_worth_it() {
        let mut waits = Waits::new(2);
        let until_due = |waits: &mut Waits| (1..100).find(|_| waits.is_over()).unwrap();
        assert_eq!(until_due(&mut waits), 1);
        waits.begin(true);
        assert_eq!(until_due(&mut waits), 2);
        waits.begin(false);
        assert_eq!(until_due(&mut waits), 4);
    }
}
