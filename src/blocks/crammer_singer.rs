//! All classes at once: the Crammer-Singer multi-class SVM over blocks (ChangRoth11, section 3).
//!
//! A step is the descent of [`crate::fit::crammer_singer`] over the rows in memory, from the weights of all
//! rows. Between two steps a row has only its positive dual variables off its own class, sorted by class:
//! most rows have none. The candidates of a row are found anew in the first epochs over it.
//!
//! **What stays.** A variable is shrunk where it is 0 and its gradient is below that of all positive ones of
//! its row: it would stay 0. Rows with a small share of shrunk variables stay ([`Policy::Projected`],
//! ChangRoth11, section 3). Deviation: of equal shares, and most rows are equal, the row whose decision is
//! nearest its margin stays; with [`Policy::Gradient`] that alone counts. Neither is always the better one:
//! 20news in 46 MB, C = 1, gap 1e-3, 11 readings by shares, 8 by nearness; sections, 58 classes, 2 and 3, and
//! after two readings a distance of 4.7e-4 against 1.5e-3; mnist 5.6e-3 against 8.2e-3
//! (`benches/record/changroth11.md`). The default is the rule of the paper.
//!
//! **Certificate.** A scan computes the losses of all rows. With a free intercept the dual point must be
//! moved onto its constraint: the moves follow from the dual variables alone ([`moves`]), and what they do to
//! the weights is bounded as in [`super::scan`]: `|W + V|^2 <= |W|^2 + 2 <W, V> + (sum_i |v_i| |x_i|)^2`,
//! `v_i` being the moves of row `i`.
//!
//! Memory: the weights of all classes, which cannot be less, and of each row 64 bytes as the budget counts
//! them, for up to three positive variables in the mean; rows that need more take more. In a file
//! ([`super::class_duals`]) they take none between the steps, unless the intercept is free: its certificate
//! needs them all at once.

pub mod stream;

use std::path::Path;

use rayon::prelude::*;

use super::choice::Policy;
use super::class_duals::{ClassDualFile, PIECE as FILE_PIECE};
use super::problem::{
    BlockProblem, BlockState, BlockStep, Certified, CertifyScan, StateInput, StateOutput, StateShape,
};
use super::scan::for_pages;
use super::settings::BlockSettings;
use super::task;
use crate::fit::certificate::Extent;
use crate::fit::crammer_singer::check::{IDLE, SIZE, STEEPNESS};
use crate::fit::crammer_singer::descent::{ClassDescent, ClassPoint};
use crate::fit::crammer_singer::intercept::{Move, moves};
use crate::fit::crammer_singer::kernels::ClassRows;
use crate::fit::crammer_singer::largest::{largest, largest_size};
use crate::fit::crammer_singer::rows::{Entry, Lists};
use crate::fit::crammer_singer::setup::ClassSetup;
use crate::fit::crammer_singer::weights::ClassWeights;
use crate::fit::dual::active;
use crate::fit::{Certificate, Intercept, Monitor, certificate};
use crate::matrix::arena::View;
use crate::matrix::design::Design;
use crate::matrix::{Matrix, Rows as _};
use crate::memory::CollectLarge;
use crate::source::resident::ResidentRows;
use crate::store::reader::{RowFacts, Store};
use crate::{Error, Result, memory};

/// Rows of one parallel piece.
const PIECE: usize = 256;
/// Numbers of a state beside weights, multipliers and dual variables.
const FACTS: usize = 2;

/// All classes with their state.
pub struct AllClasses {
    /// `C` times the class weight, by class.
    cost: Vec<f64>,
    /// Height of the constant column, 0 for none.
    bias: f64,
    /// Columns of the store in use.
    n_used: usize,
    weights: ClassWeights,
    /// By position: positive dual variables off the row's own class; empty where they are in a file.
    duals: Lists,
    disk: Option<ClassDualFile>,
    /// Multipliers of the free intercept's constraints.
    offsets: Vec<f64>,
    /// The sum of all dual variables off their row's own class.
    sum: f64,
    /// Losses of the rows loaded in this pass, each at the weights of its moment.
    losses: f64,
    visits: u64,
    /// Class and sample weight of each row by position; of a free intercept only.
    facts: Option<(Vec<u32>, Vec<f64>)>,
}

impl AllClasses {
    /// Begins at zero. With a folder, the dual variables are in a file there.
    ///
    /// # Errors
    /// Those of the store; [`Error::Cancelled`].
    pub fn new(
        store: &Store,
        cost: &[f64],
        settings: &BlockSettings<'_>,
        folder: Option<&Path>,
        monitor: &dyn Monitor,
    ) -> Result<Self> {
        let (meta, is_free) = (store.meta(), settings.intercept == Intercept::Free);
        let bias = task::bias(store, cost, settings);
        let facts = is_free.then(|| store.facts_by_place(monitor)).transpose()?;
        Ok(Self {
            bias,
            duals: Lists::empty(if folder.is_some() { 0 } else { meta.n_rows as usize }),
            disk: folder.map(|folder| ClassDualFile::empty(folder, meta.n_rows as usize)).transpose()?,
            facts: facts.map(|f| (f.classes, f.weights)),
            ..Self::of_stream(meta.n_used, cost, bias != 0.0)
        })
    }

    /// Begins at zero without rows, and with a constant column that has no height yet, or with none.
    pub fn of_stream(n_used: usize, cost: &[f64], has_constant: bool) -> Self {
        Self {
            cost: memory::copy(cost),
            bias: 0.0,
            n_used,
            weights: ClassWeights::zeros(n_used + usize::from(has_constant), cost.len()),
            duals: Lists::empty(0),
            disk: None,
            offsets: vec![0.0; cost.len()],
            sum: 0.0,
            losses: 0.0,
            visits: 0,
            facts: None,
        }
    }

    /// Weights and intercepts.
    pub fn into_model(self) -> (ClassWeights, Vec<f64>) {
        let intercepts = self.intercepts();
        (self.weights, intercepts)
    }

    fn intercepts(&self) -> Vec<f64> {
        if self.bias == 0.0 {
            return vec![0.0; self.cost.len()];
        }
        let constant = self.weights.column(self.n_used);
        self.offsets.iter().zip(constant).map(|(b, w)| b + self.bias * w).collect()
    }

    /// `1/2 sum_m |w_m|^2`, without the constant column of a free intercept.
    fn half_squared(&self, intercept: Intercept) -> f64 {
        let columns = self.n_used + usize::from(matches!(intercept, Intercept::Penalised(_)));
        0.5 * self.weights.squared(columns)
    }

    fn n_rows(&self) -> usize {
        self.disk.as_ref().map_or(self.duals.n_rows(), ClassDualFile::n_rows)
    }

    /// The dual variables of some rows; `order` visits them by rising position.
    fn gather<'a>(
        &'a self,
        positions: &'a [u32],
        order: impl Iterator<Item = usize>,
    ) -> Result<Gathered<'a>> {
        match &self.disk {
            Some(file) => file.gather(positions, order).map(Gathered::Own),
            None => Ok(Gathered::InPlace(&self.duals, positions)),
        }
    }

    /// Hands the list of each row to `take`, in the order of the positions.
    fn for_each_list(&self, mut take: impl FnMut(&[Entry]) -> Result<()>) -> Result<()> {
        let mut all = |lists: &Lists| (0..lists.n_rows()).try_for_each(|i| take(lists.get(i)));
        match &self.disk {
            Some(file) => (0..file.n_pieces()).try_for_each(|piece| all(&file.piece(piece)?)),
            None => all(&self.duals),
        }
    }

    /// Takes over the dual variables of some rows, whose positions rise; whether any has changed.
    fn set_duals(&mut self, positions: &[u32], classes: &[u32], lists: &Lists) -> Result<bool> {
        let mut list: Vec<Entry> = Vec::new();
        let sum = |list: &[Entry]| list.iter().map(|entry| entry.u).sum::<f64>();
        let total = &mut self.sum;
        let mut set = |k: usize, into: &mut Lists, at: usize| {
            list.clear();
            list.extend(lists.get(k).iter().filter(|entry| entry.u > 0.0 && entry.class != classes[k]));
            list.sort_unstable_by_key(|entry| entry.class);
            let before = into.get(at);
            if list == before {
                return false;
            }
            *total += sum(&list) - sum(before);
            into.set(at, &list);
            true
        };
        let Some(file) = &mut self.disk else {
            let mut has_changed = false;
            for (k, &position) in positions.iter().enumerate() {
                has_changed |= set(k, &mut self.duals, position as usize);
            }
            self.duals.tidy();
            return Ok(has_changed);
        };
        file.update(positions, set)
    }

    /// Gradients `e_im + w_m.x_i + b_m` of all classes of a row.
    fn gradients(&self, rows: &dyn ClassRows, i: usize, own: u32, intercepts: &[f64], out: &mut [f64]) {
        self.weights.scores(rows, i, out);
        out.iter_mut().zip(intercepts).for_each(|(g, b)| *g += b + 1.0);
        out[own as usize] -= 1.0;
    }

    /// Losses of rows at the present point.
    fn losses(&self, rows: &dyn ClassRows, classes: &[u32], cost: &[f64], intercepts: &[f64]) -> f64 {
        let n = classes.len();
        let piece = |piece: usize| -> f64 {
            let mut g = vec![0.0; self.weights.padded()];
            let loss = |i: usize| {
                self.gradients(rows, i, classes[i], intercepts, &mut g);
                cost[i] * (largest(&g[..intercepts.len()]) - g[classes[i] as usize])
            };
            (piece * PIECE..((piece + 1) * PIECE).min(n)).map(loss).sum()
        };
        // In the order of the pieces, whatever the threads.
        (0..n.div_ceil(PIECE)).into_par_iter().map(piece).collect::<Vec<f64>>().iter().sum()
    }

    fn descend(
        &mut self,
        rows: &dyn ClassRows,
        chosen: &crate::source::resident::Chosen,
        step: BlockStep<'_>,
        monitor: &dyn Monitor,
    ) -> Result<bool> {
        let BlockStep { settings, number, rounds, .. } = step;
        let (class, cost) = (&chosen.classes[..], &chosen.cost[..]);
        let (n_classes, intercept, bias) = (self.cost.len(), settings.intercept, self.bias);
        let lists = {
            let duals = self.gather(&chosen.positions, 0..class.len())?;
            Lists::completed(1.0, class, cost, true, |k, list| list.extend_from_slice(duals.get(k)))
        };
        let is_free = intercept == Intercept::Free;
        // What is less than this in the mean of all rows is within the tolerance.
        let dual = (self.sum - self.half_squared(intercept)).max(0.0);
        let idle = if is_free { 0.0 } else { IDLE[0] * settings.tol * dual / self.n_rows() as f64 };
        let (w, offsets) =
            (std::mem::replace(&mut self.weights, ClassWeights::zeros(0, n_classes)), &mut self.offsets);
        let setup = ClassSetup { rows, plain: rows, bias, class, n_classes, cost, intercept, monitor };
        let mut descent = ClassDescent::at(setup, ClassPoint { w, lists, offsets: std::mem::take(offsets) });
        descent.set_idle(idle);
        let mut random = active::random(settings.seed, number);
        let mut round = 0;
        let done = descent.epochs(&mut random, |epoch| {
            self.visits += epoch.visited as u64;
            round += 1;
            round < rounds && epoch.visited > 0 && epoch.largest > settings.round_tol
        });
        let ClassPoint { w, lists, offsets } = descent.into_point();
        (self.weights, self.offsets) = (w, offsets);
        let has_changed = self.set_duals(&chosen.positions, class, &lists)?;
        done.map(|()| has_changed)
    }

    /// The moves of all dual variables onto the constraint of a free intercept, and the sum of those off
    /// their row's class after them.
    fn repair(&self, monitor: &dyn Monitor) -> Result<(Vec<Move>, f64)> {
        let Some((classes, weights)) = &self.facts else { return Ok((Vec::new(), self.sum)) };
        let cost = |position: usize| self.cost[classes[position] as usize] * weights[position];
        let cost: Vec<f64> = (0..classes.len()).map(cost).collect_large();
        let lists = match &self.disk {
            Some(file) => file.completed(classes, &cost)?,
            None => Lists::completed(1.0, classes, &cost, false, |i, list| {
                list.extend_from_slice(self.duals.get(i));
            }),
        };
        let (mut moves, sum) = moves(lists, classes, &cost, self.cost.len(), monitor)?;
        moves.sort_by_key(|step| step.row); // stable
        Ok((moves, sum))
    }
}

/// Dual variables of some rows.
enum Gathered<'a> {
    /// Among those of all rows, by position.
    InPlace(&'a Lists, &'a [u32]),
    /// From a file.
    Own(Lists),
}

impl Gathered<'_> {
    fn get(&self, k: usize) -> &[Entry] {
        match self {
            Self::InPlace(lists, positions) => lists.get(positions[k] as usize),
            Self::Own(lists) => lists.get(k),
        }
    }
}

/// Writes numbers once they are many.
fn write_full(numbers: &mut Vec<f64>, out: &mut dyn StateOutput) -> Result<()> {
    if numbers.len() >= 1 << 14 {
        out.numbers(numbers)?;
        numbers.clear();
    }
    Ok(())
}

/// Sums of one page.
#[derive(Clone, Copy, Default)]
struct PageSums {
    losses: f64,
    /// `<W, V>`.
    moved: f64,
    /// `sum |v_i| |x_i|`.
    norms: f64,
    /// Entries of the longest row.
    longest: usize,
}

impl BlockState for AllClasses {
    type Saved = AllClassesState;

    fn visits(&self) -> u64 {
        self.visits
    }

    fn size(&self) -> u64 {
        let in_memory = || (0..self.duals.n_rows()).map(|position| self.duals.get(position).len()).sum();
        let n_entries: usize = self.disk.as_ref().map_or_else(in_memory, ClassDualFile::n_entries);
        (self.weights.len() + self.offsets.len() + FACTS + self.n_rows() + 2 * n_entries) as u64
    }

    fn can_have(shape: &StateShape, size: u64) -> bool {
        let (rows, classes) = (shape.n_rows as u64, shape.n_classes as u64);
        let fixed = (fixed(shape) + shape.n_rows) as u64;
        size >= fixed && (size - fixed).is_multiple_of(2) && (size - fixed) / 2 <= rows * classes
    }

    fn write(&self, out: &mut dyn StateOutput) -> Result<()> {
        self.weights.parts().iter().try_for_each(|part| out.numbers(part.numbers()))?;
        out.numbers(&self.offsets)?;
        out.numbers(&[self.sum, self.losses])?;
        let mut numbers = Vec::new();
        self.for_each_list(|list| {
            numbers.push(list.len() as f64);
            write_full(&mut numbers, out)
        })?;
        self.for_each_list(|list| {
            numbers.extend(list.iter().flat_map(|entry| [f64::from(entry.class), entry.u]));
            write_full(&mut numbers, out)
        })?;
        out.numbers(&numbers)
    }

    fn read(
        shape: &StateShape,
        size: u64,
        visits: u64,
        input: &mut dyn StateInput,
    ) -> Result<Option<AllClassesState>> {
        let k = shape.n_classes;
        let mut weights = ClassWeights::zeros(shape.n_columns(), k);
        for line in weights.parts_mut().iter_mut().flat_map(|part| part.numbers_mut().chunks_mut(1 << 16)) {
            line.copy_from_slice(&input.numbers(line.len())?);
        }
        let offsets = input.numbers(k)?;
        let [sum, losses] = *input.numbers(FACTS)?.first_chunk().expect("as many as asked for");
        let lens: Vec<usize> =
            input.numbers(shape.n_rows)?.into_iter().map(|len| len as usize).collect_large();
        let n_entries = (size as usize - fixed(shape) - shape.n_rows) / 2;
        if lens.iter().any(|&len| len > k) || lens.iter().sum::<usize>() != n_entries {
            return Ok(None);
        }
        let folder = shape.folder.as_deref();
        let mut disk = folder.map(|folder| ClassDualFile::empty(folder, shape.n_rows)).transpose()?;
        let mut duals = Lists::empty(if disk.is_some() { 0 } else { shape.n_rows });
        for (piece, lens) in lens.chunks(FILE_PIECE).enumerate() {
            let mut lists = Lists::empty(lens.len());
            for (row, len) in lens.iter().enumerate() {
                let entries = input.numbers(2 * len)?;
                let entry = |&[class, u]: &[f64; 2]| Entry { u, class: class as u32 };
                let list: Vec<Entry> = entries.as_chunks().0.iter().map(entry).collect();
                if list.iter().any(|entry| entry.class as usize >= k) {
                    return Ok(None);
                }
                lists.set(row, &list);
            }
            match &mut disk {
                Some(file) => file.set_piece(piece, &lists)?,
                None => (0..lens.len()).for_each(|row| duals.set(piece * FILE_PIECE + row, lists.get(row))),
            }
        }
        Ok(Some(AllClassesState { weights, offsets, sum, losses, duals, disk, visits }))
    }
}

impl BlockProblem for AllClasses {
    fn step(&mut self, rows: &ResidentRows<'_>, step: BlockStep<'_>, monitor: &dyn Monitor) -> Result<bool> {
        let chosen = rows.chosen(|class, weight, _| self.cost[class as usize] * weight);
        if chosen.ids.is_empty() {
            return Ok(false);
        }
        let view = &Matrix::from(rows.view);
        let design = Design { rows: view, ids: Some(&chosen.ids), bias: self.bias };
        if step.n_new > 0 {
            // A row that is not new costs nothing here.
            let old = (rows.positions.len() - step.n_new) as u32;
            let cost = |(&id, &cost): (&u32, &f64)| if id < old { 0.0 } else { cost };
            let cost: Vec<f64> = chosen.ids.iter().zip(&chosen.cost).map(cost).collect_large();
            self.losses += self.losses(&design, &chosen.classes, &cost, &self.offsets);
        }
        self.descend(&design, &chosen, step, monitor)
    }

    fn scores(&self, rows: &ResidentRows<'_>, step: BlockStep<'_>, out: &mut [f32]) -> Result<()> {
        let k = self.cost.len();
        let counts_shrunk = matches!(step.settings.policy, Policy::Auto | Policy::Projected);
        // Only the score by shares asks for them.
        let read = if counts_shrunk { rows.order } else { &[] };
        let duals = self.gather(rows.positions, read.iter().map(|&i| i as usize))?;
        let score = |design: &dyn ClassRows, i: usize, g: &mut [f64]| -> f32 {
            let own = rows.classes[i];
            let cost = self.cost[own as usize] * rows.weights[i];
            if cost == 0.0 {
                return f32::INFINITY;
            }
            self.gradients(design, i, own, &self.offsets, g);
            let own_gradient = std::mem::replace(&mut g[own as usize], f64::NEG_INFINITY);
            let distance = (own_gradient - largest(&g[..k])).abs();
            if !counts_shrunk {
                return distance as f32;
            }
            g[own as usize] = own_gradient;
            let list = duals.get(i);
            let others: f64 = list.iter().map(|entry| entry.u).sum();
            let start = if others < cost { own_gradient } else { f64::INFINITY };
            let smallest = list.iter().map(|entry| g[entry.class as usize]).fold(start, f64::min);
            let shrunk = g[..k].iter().filter(|g| **g < smallest).count() as f64;
            // The distance decides between equal counts: less than one.
            ((shrunk + distance / (1.0 + distance)) / k as f64) as f32
        };
        let view = &Matrix::from(rows.view);
        let design = Design { rows: view, ids: None, bias: self.bias };
        out.par_chunks_mut(PIECE).enumerate().for_each(|(piece, out)| {
            let mut g = vec![0.0; self.weights.padded()];
            for (at, out) in out.iter_mut().enumerate() {
                *out = out.min(score(&design, piece * PIECE + at, &mut g));
            }
        });
        Ok(())
    }

    fn begin_pass(&mut self) {
        self.losses = 0.0;
    }

    fn estimate(&self, intercept: Intercept) -> Certificate {
        let half = self.half_squared(intercept);
        Certificate { primal: half + self.losses, dual: self.sum - half }
    }

    fn certify(problems: &[&Self], scan: &CertifyScan<'_>) -> Result<Vec<Certified>> {
        problems.iter().map(|problem| problem.certify_one(scan)).collect()
    }

    fn take(&mut self, saved: AllClassesState) {
        let AllClassesState { weights, offsets, sum, losses, duals, disk, visits } = saved;
        (self.weights, self.offsets, self.duals, self.disk) = (weights, offsets, duals, disk);
        (self.sum, self.losses, self.visits) = (sum, losses, visits);
    }
}

/// What a checkpoint has of the state.
pub struct AllClassesState {
    weights: ClassWeights,
    offsets: Vec<f64>,
    sum: f64,
    losses: f64,
    duals: Lists,
    disk: Option<ClassDualFile>,
    visits: u64,
}

/// Numbers of a state whatever the dual variables.
fn fixed(shape: &StateShape) -> usize {
    let k = shape.n_classes;
    shape.n_columns() * ClassWeights::zeros(0, k).padded() + k + FACTS
}

impl AllClasses {
    /// As in [`crate::fit::crammer_singer::check`].
    fn rounding(&self, store: &Store, longest: usize, half: f64, primal: f64, intercepts: &[f64]) -> f64 {
        let (k, length, costs) = (self.cost.len(), (2.0 * half).sqrt(), store.total(&self.cost));
        let extent = Extent {
            n_rows: store.meta().n_rows as usize,
            n_weights: store.meta().n_used * k,
            longest,
            reach: store.meta().max_squared_norm.sqrt() * length + largest_size(intercepts),
            steepness: STEEPNESS * costs,
            size: SIZE * primal,
        };
        let multiplier = if self.bias == 0.0 { 0.0 } else { largest_size(&self.offsets) / self.bias };
        let drift = certificate::drift(self.visits as f64, costs, multiplier * (k as f64).sqrt());
        extent.rounding() + drift * (length + 0.5 * drift)
    }

    fn certify_one(&self, scan: &CertifyScan<'_>) -> Result<Certified> {
        let CertifyScan { store, source, settings, monitor, .. } = *scan;
        let intercepts = self.intercepts();
        let (moves, sum) = self.repair(monitor)?;
        let page = |page: usize, view: View<'_>, facts: &RowFacts, (): ()| {
            let (first, end) = (store.starts()[page] as u32, store.starts()[page + 1] as u32);
            let from = moves.partition_point(|step| step.row < first);
            let moves = &moves[from..moves.partition_point(|step| step.row < end)];
            let rows = &Matrix::from(view);
            let design = Design { rows, ids: None, bias: 0.0 };
            let cost = |i: usize| self.cost[facts.classes[i] as usize] * facts.weights[i];
            let cost: Vec<f64> = (0..rows.n_rows()).map(cost).collect_large();
            let losses = self.losses(&design, &facts.classes, &cost, &intercepts);
            let mut part = PageSums { losses, longest: design.longest(), ..PageSums::default() };
            let (mut scores, mut v) = (vec![0.0; self.weights.padded()], vec![0.0; self.cost.len()]);
            for same in moves.chunk_by(|a, b| a.row == b.row) {
                let i = (same[0].row - first) as usize;
                self.weights.scores(&design, i, &mut scores);
                v.fill(0.0);
                same.iter().for_each(|step| v[step.change.class as usize] += step.change.delta);
                part.moved += v.iter().zip(&scores).map(|(v, s)| v * s).sum::<f64>();
                part.norms += (v.iter().map(|v| v * v).sum::<f64>() * rows.squared_norm(i)).sqrt();
            }
            part
        };
        let items = vec![(); store.pages().len()];
        let mut total = PageSums::default();
        for part in for_pages(store, source, store.width(), items, monitor, page)? {
            total.losses += part.losses;
            total.moved += part.moved;
            total.norms += part.norms;
            total.longest = total.longest.max(part.longest);
        }
        let half = self.half_squared(settings.intercept);
        let primal = half + total.losses;
        if !primal.is_finite() {
            return Err(Error::Overflow {
                what: "objective",
                max_squared_norm: store.meta().max_squared_norm,
            });
        }
        let dual = sum
            - half
            - total.moved
            - 0.5 * total.norms * total.norms
            - self.rounding(store, total.longest, half, primal, &intercepts);
        Ok(Certified { certificate: Certificate::proved(primal, dual), intercept: 0.0 })
    }
}
