//! The loss of every row, smoothed around dual variables.
//!
//! ```text
//! f_i(z) = max_u  sum_m u_m (e_im + z_m - z_{y_i}) - |u - a_i|^2 / (2 sigma c_i),  u_m >= 0, sum_m u_m = c_i
//! ```
//!
//! for the scores `z` of the row (intercepts included) and the dual variables `a_i` around which it is
//! smoothed. The maximum is at the nearest point of the scaled simplex to `a_i + sigma c_i (e_i + z)`,
//! which [`super::simplex`] finds. `f_i` has the derivative `u_m - c_i [m = y_i]` and, with `J` the classes
//! where `u_m > 0`, the second derivative `sigma c_i (I_J - 1_J 1_J' / |J|)`. As `sigma` grows, and as
//! `a_i` nears the solution, it becomes the loss `c_i (max_m (e_im + z_m) - z_{y_i})`.

use super::check::PIECE;
use super::setup::ClassSetup;
use super::simplex::{Candidate, project};
use crate::fit::sweep::sum;
use crate::{Result, parallel};

/// The terms of all rows. Tables have one row of `n_classes` numbers for each row of the problem.
#[derive(Clone, Copy)]
pub struct Smoothed<'a> {
    /// The problem.
    pub setup: &'a ClassSetup<'a>,
    /// Dual variables around which it is smoothed, a table.
    pub around: &'a [f64],
    /// How far a cost of 1 lets them move for a difference of scores of 1.
    pub sigma: f64,
}

impl Smoothed<'_> {
    /// The sum of all terms at the table of scores `z`; writes the dual variables that belong to it into
    /// `u`.
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn evaluate(&self, z: &[f64], u: &mut [f64]) -> Result<f64> {
        let k = self.setup.n_classes;
        let values = parallel::try_map(u.chunks_mut(PIECE * k), |piece, u| {
            self.setup.monitor.poll()?;
            let mut candidates = Vec::with_capacity(k);
            let rows = u.chunks_mut(k).zip(z[piece * PIECE * k..].chunks(k)).zip(piece * PIECE..);
            Ok(rows.map(|((u, z), i)| self.row(i, z, &mut candidates, u)).sum::<f64>())
        })?;
        Ok(values.into_iter().sum())
    }

    /// The term of row `i`.
    fn row(&self, i: usize, z: &[f64], candidates: &mut Vec<Candidate>, u: &mut [f64]) -> f64 {
        let (own, c) = (self.setup.class[i] as usize, self.setup.cost[i]);
        let around = &self.around[i * z.len()..][..z.len()];
        let q = 1.0 / (self.sigma * c);
        let margin = |m: usize| z[m] - z[own] + if m == own { 0.0 } else { 1.0 };
        candidates.clear();
        candidates.extend((0..z.len()).map(|m| Candidate {
            class: m as u32,
            d: margin(m) + q * around[m],
            u: 0.0,
        }));
        project(candidates, q, c);
        u.fill(0.0);
        candidates.iter().for_each(|candidate| u[candidate.class as usize] = candidate.u);
        let moved: f64 = u.iter().zip(around).map(|(u, a)| (u - a) * (u - a)).sum();
        candidates.iter().map(|candidate| candidate.u * margin(candidate.class as usize)).sum::<f64>()
            - 0.5 * q * moved
    }

    /// `sigma c_i / |J|` by row at the dual variables `u`, 0 where `J` is a single class and there is no
    /// curvature.
    pub fn shares(&self, u: &[f64]) -> Vec<f64> {
        let rows = u.chunks(self.setup.n_classes).zip(self.setup.cost);
        rows.map(|(u, c)| match u.iter().filter(|u| **u > 0.0).count() {
            0 | 1 => 0.0,
            count => self.sigma * c / count as f64,
        })
        .collect()
    }
}

/// The second derivatives of all terms by the scores of classes `a` and `b`, from the `shares` at the dual
/// variables `u`.
pub fn curvature(u: &[f64], shares: &[f64], [a, b]: [usize; 2]) -> Vec<f64> {
    let rows = u.chunks(u.len() / shares.len().max(1)).zip(shares);
    rows.map(|(u, share)| {
        let others = || u.iter().filter(|u| **u > 0.0).count() as f64 - 1.0;
        if *share == 0.0 || u[a] == 0.0 || u[b] == 0.0 {
            0.0
        } else {
            share * if a == b { others() } else { -1.0 }
        }
    })
    .collect()
}

/// The sum of the losses that are smoothed, at the table of scores `z`.
pub fn loss(setup: &ClassSetup<'_>, z: &[f64]) -> f64 {
    let k = setup.n_classes;
    let [total] = sum(setup.class.len(), |i| {
        let (own, z) = (setup.class[i] as usize, &z[i * k..][..k]);
        let others = z.iter().enumerate().filter(|(m, _)| *m != own);
        let largest = others.fold(f64::NEG_INFINITY, |largest, (_, z)| largest.max(*z));
        [setup.cost[i] * (largest - z[own] + 1.0).max(0.0)]
    });
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::dual::active::{below, random};
    use crate::fit::{Intercept, Silent};
    use crate::matrix::dense::DenseView;
    use crate::matrix::design::Design;
    use proptest::prelude::*;

    const K: usize = 4;

    /// Calls `f` with two rows whose terms are smoothed, and with scores.
    fn with_terms(seed: u64, sigma: f64, f: impl Fn(&Smoothed<'_>, &[f64])) {
        let mut random = random(seed, 0);
        let mut uniform = || below(&mut random, 1 << 20) as f64 / f64::from(1 << 20);
        let (class, cost) = ([0, 2], [0.5, 3.0]);
        let shares: Vec<f64> = (0..2 * K).map(|_| uniform()).collect();
        let around: Vec<f64> = shares
            .chunks(K)
            .zip(cost)
            .flat_map(|(row, c)| row.iter().map(|u| c * u / row.iter().sum::<f64>()).collect::<Vec<_>>())
            .collect();
        let z: Vec<f64> = (0..2 * K).map(|_| 4.0 * uniform() - 2.0).collect();
        let x = crate::matrix::Matrix::from(DenseView::new(&[1.0, 2.0], 2, 1).unwrap().0);
        let rows = Design { rows: &x, ids: None, bias: 0.0 };
        let (intercept, monitor) = (Intercept::None, &Silent);
        let (class, cost) = (&class[..], &cost[..]);
        let setup = ClassSetup {
            rows: &rows,
            plain: &rows,
            bias: 0.0,
            class,
            n_classes: K,
            cost,
            intercept,
            monitor,
        };
        f(&Smoothed { setup: &setup, around: &around, sigma }, &z);
    }

    fn evaluate(terms: &Smoothed<'_>, z: &[f64]) -> (f64, Vec<f64>) {
        let mut u = vec![0.0; z.len()];
        (terms.evaluate(z, &mut u).unwrap(), u)
    }

    proptest! {
        #[test]
        fn derivatives_match_differences(seed in any::<u64>(), sigma in 0.05..5.0f64) {
            with_terms(seed, sigma, |terms, z| {
                let ClassSetup { class, cost, .. } = *terms.setup;
                let (_, u) = evaluate(terms, z);
                let shares = terms.shares(&u);
                let step = 1e-6;
                for p in 0..z.len() {
                    let moved = |by: f64| {
                        let mut z = z.to_vec();
                        z[p] += by;
                        evaluate(terms, &z)
                    };
                    let ((above, u_above), (below, u_below)) = (moved(step), moved(-step));
                    let (i, m) = (p / K, p % K);
                    let slope = u[p] - if m == class[i] as usize { cost[i] } else { 0.0 };
                    assert!(((above - below) / (2.0 * step) - slope).abs() <= 1e-5, "{p}");
                    let support = |u: &[f64]| u.iter().map(|u| *u > 0.0).collect::<Vec<_>>();
                    if support(&u_above) == support(&u_below) {
                        for other in 0..K {
                            let second = curvature(&u, &shares, [other, m])[i];
                            let difference = (u_above[i * K + other] - u_below[i * K + other]) / (2.0 * step);
                            assert!((second - difference).abs() <= 1e-4, "{p} {other}");
                        }
                    }
                }
            });
        }

        #[test]
        fn no_other_dual_variables_give_more(seed in any::<u64>(), sigma in 0.05..5.0f64) {
            with_terms(seed, sigma, |terms, z| {
                let ClassSetup { class, cost, .. } = *terms.setup;
                let (total, u) = evaluate(terms, z);
                let value = |u: &[f64]| -> f64 {
                    (0..u.len()).map(|p| {
                        let (i, m) = (p / K, p % K);
                        let own = class[i] as usize;
                        let margin = z[p] - z[i * K + own] + if m == own { 0.0 } else { 1.0 };
                        u[p] * margin - (u[p] - terms.around[p]).powi(2) / (2.0 * terms.sigma * cost[i])
                    }).sum()
                };
                assert!((value(&u) - total).abs() <= 1e-9);
                let towards = |i: usize, m: usize, t: f64| {
                    let mut u = u.clone();
                    u[i * K..(i + 1) * K].iter_mut().for_each(|u| *u *= 1.0 - t);
                    u[i * K + m] += t * cost[i];
                    u
                };
                for (i, m) in (0..2).flat_map(|i| (0..K).map(move |m| (i, m))) {
                    assert!([1e-3, 0.1, 1.0].iter().all(|t| value(&towards(i, m, *t)) <= total + 1e-12));
                }
                let exact = loss(terms.setup, z);
                assert!(total <= exact && evaluate(&Smoothed { sigma: 1e9, ..*terms }, z).0 >= exact - 1e-6);
            });
        }
    }
}
