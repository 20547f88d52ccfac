//! The quadratic model of a Newton step: the curvature of a row over its decision values is
//! `c (diag(p) - p p')`.

use std::ops::Range;

use super::PenalisedClasses;
use crate::Result;
use crate::fit::monitor::Monitor;
use crate::fit::penalised::chosen_columns::{ChosenColumns, add_to_line};
use crate::fit::penalised::coordinates::Coordinates;
use crate::fit::penalised::entries::RowModels;
use crate::fit::penalised::smooth_part::{Losses, SmoothPart};
use crate::fit::penalised::tiles::{self, WeightedBlocks};
use crate::memory::{self, CollectLarge};

/// Probability from which what the other classes have is summed by itself.
const MOST: f64 = 0.5;

/// The model by the entries of the columns.
pub struct ClassRowModels<'s> {
    coordinates: Coordinates<'s>,
    list: &'s [u32],
    /// Column of each coordinate of the set, and where the decision values of its class begin.
    places: Vec<(usize, usize)>,
    /// Slopes of the losses along the coordinates of the set,
    slope: &'s [f64],
    /// and along the decision values.
    slope_of_rows: &'s [f64],
    /// Cost times probability of each decision value, and its move.
    decisions: Vec<[f64; 2]>,
    /// Of each row the mean move, and what makes a probability of cost times probability.
    rows: Vec<[f64; 2]>,
}

impl<'s> ClassRowModels<'s> {
    /// The model around `losses` on the coordinates of `list`, along which they have the slopes `slope`.
    pub fn new(
        problem: &'s PenalisedClasses<'s>,
        list: &'s [u32],
        losses: &'s Losses,
        slope: &'s [f64],
    ) -> Self {
        let all = problem.coordinates();
        let place = |&j: &u32| (all.column(j as usize), all.decisions_of(j as usize).start);
        Self {
            coordinates: all,
            list,
            places: list.iter().map(place).collect_large(),
            slope,
            slope_of_rows: &losses.slope,
            decisions: losses.bend.iter().map(|mass| [*mass, 0.0]).collect_large(),
            rows: problem.cost.iter().map(|c| [0.0, inverse(*c)]).collect_large(),
        }
    }

    /// The mean over the classes of moves of the decision values.
    fn means(&self, along: &[f64]) -> Vec<f64> {
        let n = self.rows.len();
        let mut means: Vec<f64> = memory::zeros(n);
        for (of_class, along) in self.decisions.chunks(n).zip(along.chunks(n)) {
            for ((mean, [mass, _]), along) in means.iter_mut().zip(of_class).zip(along) {
                *mean += mass * along;
            }
        }
        means.iter_mut().zip(&self.rows).for_each(|(mean, [_, inverse])| *mean *= inverse);
        means
    }
}

/// What makes a probability of cost times probability; of a row that is absent 0.
fn inverse(cost: f64) -> f64 {
    if cost > 0.0 { 1.0 / cost } else { 0.0 }
}

impl RowModels for ClassRowModels<'_> {
    #[inline(always)]
    fn slope(&self, k: usize) -> f64 {
        let (column, first) = self.places[k];
        let (decisions, rows) = (&self.decisions[first..][..self.rows.len()], &self.rows[..]);
        let [moved] = self.coordinates.columns.sum(column, |i, x| {
            let [mass, q] = decisions[i];
            [mass * (q - rows[i][0]) * x]
        });
        self.slope[k] + moved
    }
    fn bend(&self, k: usize) -> f64 {
        let (column, first) = self.places[k];
        let [bend] = self.coordinates.columns.sum(column, |i, x| {
            let mass = self.decisions[first + i][0];
            [mass * (1.0 - mass * self.rows[i][1]).max(0.0) * (x * x)]
        });
        bend
    }
    #[inline(always)]
    fn shift(&mut self, k: usize, by: f64) {
        let (column, first) = self.places[k];
        let rows = &mut self.rows[..];
        let decisions = &mut self.decisions[first..][..rows.len()];
        self.coordinates.columns.for_each(column, |i, x| {
            let (row, [mass, q]) = (&mut rows[i], &mut decisions[i]);
            let moved = by * x;
            *q += moved;
            row[0] += *mass * row[1] * moved;
        });
    }
    fn coordinates(&self) -> (Coordinates<'_>, &[u32]) {
        (self.coordinates, self.list)
    }
    fn bend_times(&self, along: &mut [f64]) {
        let (n, means) = (self.rows.len(), self.means(along));
        for (of_class, along) in self.decisions.chunks(n).zip(along.chunks_mut(n)) {
            for ((along, [mass, _]), mean) in along.iter_mut().zip(of_class).zip(&means) {
                *along = mass * (*along - mean);
            }
        }
    }
    fn change(&self, along: &[f64]) -> f64 {
        let (n, means) = (self.rows.len(), self.means(along));
        let mut change = 0.0;
        let slopes = self.slope_of_rows.chunks(n);
        for ((of_class, along), slopes) in self.decisions.chunks(n).zip(along.chunks(n)).zip(slopes) {
            for (i, [mass, q]) in of_class.iter().enumerate() {
                let bent = mass * ((q - self.rows[i][0]) + 0.5 * (along[i] - means[i]));
                change += along[i] * (slopes[i] + bent);
            }
        }
        change
    }
    fn go(&mut self, along: &[f64]) {
        let means = self.means(along);
        self.rows.iter_mut().zip(&means).for_each(|(row, mean)| row[0] += mean);
        self.decisions.iter_mut().zip(along).for_each(|([_, q], along)| *q += along);
    }
}

/// The model as a matrix over the coordinates of `list`, whose columns are the chosen ones. No number of it
/// is a difference of larger ones, so that directions without curvature have none.
///
/// # Errors
/// [`crate::Error::Cancelled`].
pub fn matrix(
    problem: &PenalisedClasses<'_>,
    chosen: &ChosenColumns<'_>,
    list: &[u32],
    losses: &Losses,
    monitor: &dyn Monitor,
) -> Result<Vec<f64>> {
    let (n, m, all) = (problem.cost.len(), list.len(), problem.coordinates());
    let class: Vec<usize> = list.iter().map(|&j| all.block(j as usize)).collect();
    if chosen.is_dense {
        return matrix_of_tiles(problem, chosen, &class, losses, monitor);
    }
    let mut shares: Vec<f64> = Vec::with_capacity(m);
    let mut p = vec![0.0; problem.n_classes];
    let mut matrix = memory::zeros(m * m);
    chosen.add_rows(problem.cost, &mut matrix, monitor, |i, places, values, matrix| {
        let c = problem.cost[i];
        p.iter_mut().enumerate().for_each(|(k, p)| *p = losses.bend[k * n + i] / c);
        shares.clear();
        shares.extend(places.iter().zip(values).map(|(&a, x)| x * p[class[a as usize]]));
        let mut first = 0;
        for (at, &a) in places.iter().enumerate() {
            let (line, k) = (&mut matrix[a as usize * m..][..m], class[a as usize]);
            if at > 0 && class[places[at - 1] as usize] != k {
                first = at;
            }
            add_to_line(line, -c * shares[at], &places[..first], &shares[..first]);
            let own = c * shares[at] * rest(|k| p[k], p.len(), k);
            let mine = (&places[first..=at], &values[first..=at]);
            mine.0.iter().zip(mine.1).for_each(|(&b, x)| line[b as usize] += own * x);
        }
    })?;
    Ok(matrix)
}

/// The same where columns have nearly all rows. `class` is that of each coordinate.
fn matrix_of_tiles(
    problem: &PenalisedClasses<'_>,
    chosen: &ChosenColumns<'_>,
    class: &[usize],
    losses: &Losses,
    monitor: &dyn Monitor,
) -> Result<Vec<f64>> {
    let (n, cost) = (problem.cost.len(), problem.cost);
    let mut ranges = Vec::new();
    for block in class.chunk_by(|a, b| a == b) {
        let first = ranges.last().map_or(0, |range: &Range<usize>| range.end);
        ranges.push(first..first + block.len());
    }
    let classes: Vec<usize> = ranges.iter().map(|range| class[range.start]).collect();
    let mass = |k: usize, i: usize| losses.bend[classes[k] * n + i];
    let weight = |[k, l]: [usize; 2], i: usize| {
        if k != l {
            return -mass(k, i) * (mass(l, i) / cost[i]);
        }
        mass(k, i) * rest(|k| losses.bend[k * n + i] / cost[i], problem.n_classes, classes[k])
    };
    let (m, blocks) = (class.len(), WeightedBlocks { ranges: &ranges, weight });
    let mut matrix = memory::zeros(m * m);
    tiles::add_weighted(chosen, &tiles::rows_with(cost), &blocks, &mut matrix, monitor)?;
    Ok(matrix)
}

/// `1 - p_k` of so many probabilities.
fn rest(p: impl Fn(usize) -> f64, n: usize, k: usize) -> f64 {
    if p(k) < MOST {
        return 1.0 - p(k);
    }
    (0..k).map(&p).sum::<f64>() + (k + 1..n).map(&p).sum::<f64>()
}
