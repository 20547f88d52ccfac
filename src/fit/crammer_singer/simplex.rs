//! The sub-problem of one row: the nearest point of a scaled simplex.
//!
//! With the other rows fixed, the dual variables `u_m >= 0`, `sum_m u_m = c` of a row minimise
//! `sum_m q/2 u_m^2 - d_m u_m`, where `q = |x_i|^2` and `d_m = G_m + q u_m` at the present point (Keerthi08,
//! section 3; LIBLINEAR sorts the same numbers). The solution is `u_m = max(0, (d_m - beta) / q)` with the
//! `beta` that makes the sum right.
//!
//! `beta` is found by Michelot's method (J. Optim. Theory Appl. 50, 1986): take all candidates as positive,
//! drop those that come out negative, repeat. The set only shrinks and never loses a positive one, so it ends
//! with the exact solution; each round is linear. Candidates below the largest `d` by `q c` or more cannot be
//! positive and are left out beforehand, which leaves two or three of any number of classes in practice.

/// A class with its `d`; `u` is filled in.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The class.
    pub class: u32,
    /// `G_m + q u_m`.
    pub d: f64,
    /// The new dual variable.
    pub u: f64,
}

/// Fills in `u` for `q > 0`. Candidates that end at zero are removed; the order of the others stays.
pub fn project(candidates: &mut Vec<Candidate>, q: f64, c: f64) {
    let largest = candidates.iter().fold(f64::NEG_INFINITY, |a, b| a.max(b.d));
    let reach = q * c;
    if largest - reach == largest {
        // So short a simplex that rounding hides the others.
        candidates.retain(|candidate| candidate.d == largest);
        candidates.truncate(1);
        candidates[0].u = c;
        return;
    }
    candidates.retain(|candidate| candidate.d > largest - reach);
    // Relative to the largest, so that nothing is lost where all are large.
    loop {
        let count = candidates.len() as f64;
        let sum: f64 = candidates.iter().map(|candidate| candidate.d - largest).sum();
        let beta = (sum - reach) / count;
        let before = candidates.len();
        candidates.retain(|candidate| candidate.d - largest > beta);
        if candidates.len() == before {
            candidates.iter_mut().for_each(|candidate| candidate.u = (candidate.d - largest - beta) / q);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same by sorting, as in Keerthi08.
    fn by_sorting(d: &[f64], q: f64, c: f64) -> Vec<f64> {
        let mut sorted = d.to_vec();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let mut beta = f64::NAN;
        let mut sum = 0.0;
        for (k, value) in sorted.iter().enumerate() {
            sum += value;
            let next = (sum - q * c) / (k + 1) as f64;
            if *value > next {
                beta = next;
            }
        }
        d.iter().map(|d| ((d - beta) / q).max(0.0)).collect()
    }

    proptest! {
        #[test]
        fn projection_matches_sorting(
            d in prop::collection::vec(-3.0..3.0f64, 1..40),
            q in 0.01..9.0f64,
            c in 0.001..50.0f64,
        ) {
            let mut candidates: Vec<Candidate> =
                d.iter().enumerate().map(|(m, d)| Candidate { class: m as u32, d: *d, u: 0.0 }).collect();
            project(&mut candidates, q, c);
            let mut u = vec![0.0; d.len()];
            candidates.iter().for_each(|k| u[k.class as usize] = k.u);
            let expected = by_sorting(&d, q, c);
            prop_assert!((u.iter().sum::<f64>() - c).abs() <= 1e-9 * c);
            for (a, b) in u.iter().zip(&expected) {
                prop_assert!((a - b).abs() <= 1e-9 * c, "{u:?} {expected:?}");
            }
        }
    }

    #[test]
    fn equal_numbers_share() {
        let mut candidates =
            vec![Candidate { class: 0, d: 1e9, u: 0.0 }, Candidate { class: 4, d: 1e9, u: 0.0 }];
        project(&mut candidates, 2.0, 3.0);
        assert!(candidates.iter().all(|k| k.u == 1.5));
    }
}
