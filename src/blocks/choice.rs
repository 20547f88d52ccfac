//! Which rows stay in memory.
//!
//! A row far from the margin whose dual variable rests at a bound will hardly move again; a row near the
//! margin will. Rows are scored by how far they are from a change, the smallest scores stay:
//!
//! * [`Policy::Gradient`]: the distance to the margin, `|m_i - 1|` (hinge losses) or `|m_i|` (logistic),
//!   `m_i` being the margin;
//! * [`Policy::Projected`]: how far the gradient points out of the box, 0 for rows inside it and for rows
//!   that still violate their condition: what shrinking goes by. This is the first score of ChangRoth11,
//!   section 2.2, with the sign turned; equal scores are ordered by lot;
//! * [`Policy::Steepest`]: the second score of that section, with the sign turned: as the first, but of the
//!   rows inside the box and of those that violate their condition the largest gradients come first.
//!
//! The default is the second score of that section. [`Policy::Gradient`] is neither of the two and was the
//! default before: it takes rows near the margin for the informative ones, much as figure 1 of ChangRoth11
//! does. In their second score `|g_i|`, which for the hinge is `|m_i - 1|` as well, counts *for* a row inside
//! its box where this rule counts it against.
//!
//! Distance of the dual value to the optimum after two and four readings, `C` by cross-validation for the
//! hinge, memory for a twelfth of the rows, half of it cache (`benches/record/changroth11.md`). Where
//! all rows inside their box fit, as on a9a, both scores of the paper choose the same rows; where they do
//! not, the largest gradients are the better choice. The hinge on covtype, C = 64, is far from its end. What
//! speaks for nearness is the hinge on imdb after two readings, and the logistic loss on rows that can be
//! separated, at large `C`. (Rows of phishing_urls for the squared hinge and the logistic loss are of an
//! earlier run of the same measurement and not on that page.)
//!
//! ```text
//!                               Gradient         Projected        Steepest         Random
//! a9a            hinge          2.5e-4  4.9e-7   8.0e-5  8.3e-7   8.0e-5  8.3e-7   9.0e-3  2.0e-3
//! phishing_urls  hinge          2.2e-2  1.7e-3   1.5e-2  7.7e-4   1.3e-2  6.9e-4   3.4e-2  3.4e-3
//! imdb           hinge          1.0e-2  8.4e-5   1.0e-2  8.1e-5   1.1e-2  8.1e-5   1.1e-2  9.4e-5
//! contents       hinge          3.5e-2  9.4e-3   8.8e-3  7.0e-4   6.6e-3  8.8e-5   1.0e-1  2.7e-2
//! covtype        hinge          9.0e-1  7.9e-1   7.9e-1  5.9e-1   7.9e-1  5.9e-1   8.0e-1  6.0e-1
//! a9a            squared, 1     2.2e-1  5.7e-2   6.3e-2  4.4e-3   3.2e-2  1.1e-3   9.7e-2  1.1e-2
//! phishing_urls  squared, 0.1   6.8e-3  3.5e-5   5.3e-3  1.6e-5   5.3e-3  1.6e-5   7.1e-3  3.1e-5
//! a9a            logistic, 1    5.1e-3  1.2e-3   -                3.1e-3  5.2e-5   3.5e-3  6.7e-5
//! phishing_urls  logistic, 1    7.1e-3  3.9e-5   -                5.8e-3  2.2e-5   5.7e-3  2.1e-5
//! phishing_urls  logistic, 16   7.2e-3  4.2e-5   -                1.1e-2  1.3e-4   1.1e-2  1.5e-4
//! ```
//!
//! In a stream (a9a, hinge, C = 1, memory for a tenth of the rows, two orders of them; same page) the dual
//! value at the end is 0.81 and 0.82 of the optimum, 0.87 and 0.88, 0.87 and 0.88, 0.83 and 0.83.
//!
//! With several problems the smallest score of any problem counts: one cache serves all. Deviation: for one
//! class against the rest ChangRoth11 (section 3) keep a cache per class. Tried, each with its part of the
//! same memory: after two and four readings 2.2e-2 and 1.5e-3 instead of 9.2e-3 and 3.3e-4 (4,000 rows of
//! 20news, 20 classes), 6.1e-3 and 2.4e-4 instead of 6.2e-3 and 3.3e-4 (mnist, 10 classes).
//!
//! **How much stays.** A larger cache loads smaller blocks: `1 / (1 - share)` visits of all rows per epoch
//! and reading. Distance of the dual value to the optimum after two readings and CPU seconds for them
//! (292,733 rows of file paths, 50 M entries, hinge, C = 1, 10 rounds, by the part of the rows that memory
//! holds):
//!
//! ```text
//! share     0.2             1/3             1/2             2/3
//! 1/12      3.3e-3  3.7 s   2.7e-3  4.0 s   4.5e-4  5.6 s   7.6e-5  12.5 s
//! 1/6       5.1e-4  4.1 s   1.3e-4  4.8 s   2.0e-5  6.6 s   3.5e-6   8.6 s
//! ```
//!
//! Digits per second are alike up to a half, and fall beyond; a half needs fewer readings where memory is
//! short, a third less work where it is not: the rule of [`super::settings::BlockSettings::share`]. Tried
//! on paper: a first block that tells how many rows matter. They are always more than fit.
//!
//! Equal scores are ordered by a hash of the row's position, so that no part of the input is preferred.

use crate::store::format::checksum;

/// The rule for the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The best by what was measured: as [`Policy::Steepest`] for one class against another or the rest, as
    /// [`Policy::Projected`] where all classes are one problem.
    Auto,
    /// Nothing stays: block minimisation.
    None,
    /// A random choice.
    Random,
    /// Nearest to the margin; the rule is ours.
    Gradient,
    /// Least certain to stay at their bound (ChangRoth11, section 2.2, the first score).
    Projected,
    /// The same, and of those that are not certain at all the largest gradients (the second score).
    Steepest,
}

/// What fits into the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Rows.
    pub rows: usize,
    /// Entries.
    pub entries: usize,
}

impl Policy {
    /// The score of a row whose dual variable `a`, in `[0, upper]`, has the gradient `g`, for the two
    /// policies that go by it.
    pub fn score(self, g: f64, a: f64, upper: f64) -> f64 {
        let outwards = match a {
            0.0 => g,
            a if a == upper => -g,
            _ => -g.abs(),
        };
        if self == Self::Projected { outwards.max(0.0) } else { outwards }
    }
}

/// A number that orders rows of equal score.
pub fn lot(seed: u64, position: u32) -> u32 {
    checksum(seed, &position.to_le_bytes()) as u32
}

/// Numbers of the rows with the smallest scores that fit, rising. A row that no longer fits ends the choice.
///
/// `score[i]`, `positions[i]` and `len(i)` belong to row `i`; a score of infinity never stays.
pub fn choose(
    score: &[f32],
    positions: &[u32],
    len: impl Fn(usize) -> usize,
    capacity: Capacity,
    seed: u64,
) -> Vec<u32> {
    let mut order: Vec<(f32, u32, u32)> = (0..score.len())
        .filter(|&i| score[i].is_finite())
        .map(|i| (score[i], lot(seed, positions[i]), i as u32))
        .collect();
    // Places differ, so the last comparison decides the rest: the choice does not depend on where rows lie.
    order.sort_unstable_by(|a, b| {
        let by_position = || positions[a.2 as usize].cmp(&positions[b.2 as usize]);
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)).then_with(by_position)
    });
    let (mut chosen, mut entries) = (Vec::new(), 0);
    for (_, _, i) in order {
        entries += len(i as usize);
        if chosen.len() == capacity.rows || entries > capacity.entries {
            break;
        }
        chosen.push(i);
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_scores_of_the_paper_differ_in_rows_that_may_move() {
        // Gradient, dual variable, and the scores by hand; the box is [0, 2].
        let rows = [
            (3.0, 0.0, 3.0, 3.0),
            (-3.0, 0.0, 0.0, -3.0),
            (-3.0, 2.0, 3.0, 3.0),
            (3.0, 2.0, 0.0, -3.0),
            (1.0, 0.5, 0.0, -1.0),
            (-1.0, 0.5, 0.0, -1.0),
        ];
        for (g, a, projected, steepest) in rows {
            assert_eq!(Policy::Projected.score(g, a, 2.0), projected, "{g} {a}");
            assert_eq!(Policy::Steepest.score(g, a, 2.0), steepest, "{g} {a}");
            assert!(Policy::Steepest.score(g, a, f64::INFINITY) <= g.abs());
        }
    }

    #[test]
    fn the_smallest_scores_that_fit_stay() {
        let score = [0.5, 0.1, f32::INFINITY, 0.0, 2.0, 0.1];
        let positions = [9, 8, 7, 6, 5, 4];
        let chosen = |rows, entries| choose(&score, &positions, |_| 3, Capacity { rows, entries }, 1);
        assert_eq!(chosen(9, 100), [0, 1, 3, 4, 5]);
        assert_eq!(chosen(9, 9), [1, 3, 5]);
        assert_eq!(chosen(3, 100), [1, 3, 5]);
        assert_eq!(chosen(1, 100), [3]);
        assert!(chosen(9, 2).is_empty() && chosen(0, 100).is_empty());
    }

    #[test]
    fn equal_scores_are_drawn_by_lot_whatever_the_order_in_memory() {
        let positions: Vec<u32> = (0..1000).collect();
        let backwards: Vec<u32> = (0..1000).rev().collect();
        let score = vec![0.0; 1000];
        let capacity = Capacity { rows: 300, entries: usize::MAX };
        let of = |positions: &[u32], seed| {
            let mut chosen: Vec<u32> = choose(&score, positions, |_| 1, capacity, seed)
                .iter()
                .map(|&i| positions[i as usize])
                .collect();
            chosen.sort_unstable();
            chosen
        };
        assert_eq!(of(&positions, 5), of(&backwards, 5));
        assert_ne!(of(&positions, 5), of(&positions, 6));
        let early = of(&positions, 5).iter().filter(|&&position| position < 500).count();
        assert!((120..180).contains(&early), "{early} of 300 from the first half");
    }
}
