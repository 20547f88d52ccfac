//! One reading of all rows, page by page in parallel: certificates and decision values.
//!
//! With a free intercept the certified dual point is a copy of the dual variables, moved onto
//! `sum y_i a_i = 0` by lowering some by `cut_i` ([`super::task::Sums::shift`]). Its weights are `w - v`,
//! `v = sum cut_i y_i x_i`, whose norm is not computed but bounded: `|w - v| <= sum cut_i |x_i|`. This keeps
//! the scan at one reading without a second vector, and costs nothing once the constraint is nearly met.
//!
//! The dual value is the one of [`crate::fit::certificate`], which needs margins and the distance of `w` from
//! the weights of the dual variables only, and rounding is subtracted as there, by the largest row in place
//! of each ([`Extent`]). The distance that the updates of so many visits can have made is bounded as in
//! [`crate::fit::dual`], twice over since the level of the dual objective is not kept.

use std::ops::Range;

use rayon::prelude::*;

use super::problem::{Certified, CertifyScan};
use super::task::{BinaryProblem, Shift};
use crate::fit::certificate::{Extent, UNIT};
use crate::fit::intercept::{hinge_optimum_of, smooth_shift};
use crate::fit::objective::Objective;
use crate::fit::sweep::{dot, sum};
use crate::fit::{Certificate, Intercept, Monitor};
use crate::loss::{Loss, with_loss};
use crate::matrix::Rows;
use crate::matrix::arena::{Arena, View, Width};
use crate::memory::CollectLarge;
use crate::source::mapped::{StoreMap, mapped};
use crate::store::page::{Facts, Scratch};
use crate::store::reader;
use crate::store::reader::{PageBytes, RowFacts, Store};
use crate::{Error, Result, memory};

/// Buffers to decode one page at a time.
#[derive(Default)]
pub struct PageReader {
    arena: Option<Arena>,
    scratch: Scratch,
    buffer: Vec<u8>,
    facts: RowFacts,
}

impl PageReader {
    /// The rows of a page and what belongs to them.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`], [`Error::Memory`].
    pub fn read(
        &mut self,
        store: &Store,
        source: &(impl PageBytes + ?Sized),
        page: usize,
        width: Width,
    ) -> Result<(View<'_>, &RowFacts)> {
        let entry = &store.pages()[page];
        let (n, nnz) = (entry.n_rows as usize, entry.nnz as usize);
        let Self { arena, scratch, buffer, facts } = self;
        let bytes = source.get(store, 0, page, buffer)?;
        if let Some(arena) = arena {
            arena.keep(&[]);
        }
        if arena.as_ref().is_none_or(|arena| !arena.has_room(n, nnz)) {
            *arena = None; // before the new one takes its memory
        }
        let arena = match arena {
            Some(arena) => arena,
            none => none.insert(Arena::new(width, store.meta().n_used, n.max(1024), nnz + nnz / 8)?),
        };
        memory::resize(&mut facts.classes, n, 0);
        memory::resize(&mut facts.weights, n, 1.0);
        memory::resize(&mut facts.numbers, n, 0);
        let mut wanted = Facts {
            classes: Some(&mut facts.classes),
            weights: Some(&mut facts.weights),
            numbers: Some(&mut facts.numbers),
        };
        arena.fill(n, nnz, |free| {
            store.decode(page, bytes, scratch, reader::reborrow(&mut free.room), &mut wanted)
        })?;
        Ok((arena.view(), facts))
    }
}

/// Calls `f` with each page and the item that belongs to it; results in the order of the pages.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::Io`], [`Error::Cancelled`].
pub fn for_pages<I: Send, T: Send>(
    store: &Store,
    source: &(impl PageBytes + ?Sized),
    width: Width,
    items: Vec<I>,
    monitor: &dyn Monitor,
    f: impl Fn(usize, View<'_>, &RowFacts, I) -> T + Sync,
) -> Result<Vec<T>> {
    let work = |reader: &mut PageReader, (page, item): (usize, I)| {
        monitor.poll()?;
        let (view, facts) = reader.read(store, source, page, width)?;
        Ok(f(page, view, facts, item))
    };
    let results: Vec<Result<T>> =
        items.into_par_iter().enumerate().map_init(PageReader::default, work).collect();
    results.into_iter().collect()
}

/// Sums of one page.
#[derive(Clone, Copy, Default)]
pub struct GapSums {
    /// Losses, where the intercept is known.
    pub losses: f64,
    terms: f64,
    /// `sum a_i m_i` of the dual variables as they are lowered, the margins without a free intercept.
    products: f64,
    /// Sum of the sizes of both.
    size: f64,
    /// `sum a_i` and `sum y_i a_i`.
    duals: f64,
    excess: f64,
    /// `sum cut_i |x_i|`.
    cut_norms: f64,
    /// Entries of the longest row.
    pub longest: usize,
    /// The largest dual variable of either label.
    most: [Most; 2],
}

/// A dual variable and what lowering it would cost.
#[derive(Clone, Copy, Default)]
struct Most {
    alpha: f64,
    price: f64,
}

impl GapSums {
    fn join(&mut self, other: &Self) {
        self.losses += other.losses;
        self.terms += other.terms;
        self.products += other.products;
        self.size += other.size;
        self.duals += other.duals;
        self.excess += other.excess;
        self.cut_norms += other.cut_norms;
        self.longest = self.longest.max(other.longest);
        for (mine, its) in self.most.iter_mut().zip(other.most) {
            if its.alpha > mine.alpha {
                *mine = its;
            }
        }
    }

    /// Adds a row's part of the dual value, with its margin.
    #[inline(always)]
    pub fn add<L: Loss>(&mut self, loss: L, y: f64, c: f64, a: f64, margin: f64) {
        let (term, product) = (loss.dual_term_closely(c, a), a * margin);
        self.terms += term;
        self.products += product;
        self.size += term.abs() + product.abs();
        self.duals += a;
        self.excess += y * a;
        let most = &mut self.most[usize::from(y > 0.0)];
        if a > most.alpha {
            *most = Most { alpha: a, price: 2.0 * loss.dual_term(c, 0.5 * a).max(0.0) / a + margin.abs() };
        }
    }

    /// What moving the dual variables onto the constraint of a free intercept costs after all, and by how
    /// much it moves their weights: one variable of the heavier sign is lowered by the excess, whatever
    /// rounding has made of it.
    fn repair(&self, n_rows: usize, norm: f64) -> (f64, f64) {
        let delta = self.excess.abs() + UNIT * (n_rows as f64) * self.duals;
        let Most { alpha, price } = self.most[usize::from(self.excess > 0.0)];
        let price = if delta == 0.0 || alpha >= 2.0 * delta { delta * price } else { f64::INFINITY };
        (price, delta * norm)
    }

    /// Primal value at a point and a lower bound of the optimum from the dual variables, whose weights are
    /// within `radius` of the point's, give or take rounding in them.
    pub fn certificate<L: Loss>(&self, loss: L, at: &At, radius: f64) -> Certificate {
        let At { n_rows, n_weights, squared, losses, intercept, norm, total, is_free } = *at;
        let (price, length) = if is_free { self.repair(n_rows, norm) } else { (0.0, 0.0) };
        let extent = Extent {
            n_rows,
            n_weights,
            longest: self.longest,
            reach: norm * squared.sqrt() + intercept.abs(),
            steepness: self.duals + loss.steepness(total, losses),
            size: squared + losses + self.size,
        };
        let radius = radius + self.cut_norms + length;
        let dual =
            0.5 * squared + self.terms - self.products - 0.5 * radius * radius - extent.rounding() - price;
        Certificate { primal: 0.5 * squared + losses, dual }
    }

    /// At most this far may a sum of all `a_i y_i x_i` be off.
    pub fn rounding_of_weights(&self, n_rows: usize, norm: f64) -> f64 {
        UNIT * (n_rows + 8) as f64 * norm * self.duals
    }
}

/// Where a certificate is asked for.
#[derive(Clone, Copy)]
pub struct At {
    /// Number of rows.
    pub n_rows: usize,
    /// Number of weights.
    pub n_weights: usize,
    /// Their squared norm.
    pub squared: f64,
    /// Losses of all rows.
    pub losses: f64,
    /// The intercept.
    pub intercept: f64,
    /// At least the norm of every row.
    pub norm: f64,
    /// Sum of the costs.
    pub total: f64,
    /// Whether the intercept is free.
    pub is_free: bool,
}

/// Decision values and signed costs by place, for the exact intercept.
#[derive(Default)]
pub struct Decisions {
    /// Decision values without intercept.
    pub f: Vec<f64>,
    /// Label times cost, 0 for a row that does not belong to the problem.
    pub signed: Vec<f64>,
}

/// Certifies binary problems by one scan.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::Io`], [`Error::Cancelled`], [`Error::Overflow`].
pub fn certify(problems: &[&BinaryProblem<'_>], scan: &CertifyScan<'_>) -> Result<Vec<Certified>> {
    with_loss!(scan.settings.loss, loss => certify_by(loss, problems, scan))
}

fn certify_by<L: Loss>(
    loss: L,
    problems: &[&BinaryProblem<'_>],
    scan: &CertifyScan<'_>,
) -> Result<Vec<Certified>> {
    let CertifyScan { store, source, settings, folds, has_room, monitor } = *scan;
    let (n, d) = (store.meta().n_rows as usize, settings.n_weights(store));
    let is_free = settings.intercept == Intercept::Free;
    let keeps = is_free && has_room;
    let shifts: Vec<Shift> =
        problems.iter().map(|p| p.state.sums.shift(if is_free { p.excess(d) } else { 0.0 })).collect();
    let intercepts: Vec<f64> = problems.iter().map(|p| p.intercept(d)).collect();
    let room = if keeps { n } else { 0 };
    let mut decisions: Vec<Decisions> = problems
        .iter()
        .map(|_| Decisions { f: memory::zeros(room), signed: memory::zeros(room) })
        .collect_large();
    let items = cut(store, &mut decisions, keeps);

    let page = |page: usize, view: View<'_>, facts: &RowFacts, mut items: Vec<(&mut [f64], &mut [f64])>| {
        let (first, end) = (store.starts()[page] as usize, store.starts()[page + 1] as usize);
        let mut sums = vec![GapSums::default(); problems.len()];
        let alpha = problems.iter().map(|p| p.duals_in(first..end)).collect::<Result<Vec<_>>>()?;
        {
            let rows = &mapped(view, settings.map);
            for i in 0..rows.n_rows() {
                let (class, place) = (facts.classes[i], first + i);
                let fold = folds.get(place).copied();
                for (k, p) in problems.iter().enumerate() {
                    let c = p.task.cost(class, facts.weights[i], fold);
                    if c == 0.0 {
                        continue;
                    }
                    let (y, a) = (p.task.sign(class), alpha[k][i]);
                    let f = rows.dot(i, &p.state.w[..d]);
                    let cut = shifts[k].cut(y, c, a);
                    let sums = &mut sums[k];
                    sums.add(loss, y, c, a - cut, y * if is_free { f } else { f + intercepts[k] });
                    sums.longest = sums.longest.max(rows.row_len(i));
                    if cut != 0.0 {
                        sums.cut_norms += cut * rows.squared_norm(i).sqrt();
                    }
                    if keeps {
                        (items[k].0[i], items[k].1[i]) = (f, y * c);
                    } else {
                        sums.losses += c * loss.value(y * (f + intercepts[k]));
                    }
                }
            }
        };
        Ok(sums)
    };
    let pages: Vec<Result<Vec<GapSums>>> = for_pages(store, source, store.width(), items, monitor, page)?;
    let pages = pages.into_iter().collect::<Result<Vec<_>>>()?;

    let mut results = Vec::with_capacity(problems.len());
    for (k, (p, decisions)) in problems.iter().zip(decisions).enumerate() {
        let mut sums = GapSums::default();
        pages.iter().for_each(|page| sums.join(&page[k]));
        let w = if is_free { &p.state.w[..d] } else { &p.state.w[..] };
        let squared = dot(w, w);
        let (intercept, losses) = if keeps { best(loss, decisions) } else { (intercepts[k], sums.losses) };
        let (norm, total) = (settings.largest_norm(store), store.total(&p.task.cost));
        let at = At { n_rows: n, n_weights: w.len(), squared, losses, intercept, norm, total, is_free };
        let certificate = sums.certificate(loss, &at, p.drift(total));
        if !certificate.primal.is_finite() {
            return Err(Error::Overflow {
                what: "objective",
                max_squared_norm: store.meta().max_squared_norm,
            });
        }
        results.push(Certified { certificate, intercept });
    }
    Ok(results)
}

/// The pieces of all decisions by page and problem.
fn cut<'a>(
    store: &Store,
    decisions: &'a mut [Decisions],
    keeps: bool,
) -> Vec<Vec<(&'a mut [f64], &'a mut [f64])>> {
    let mut rest: Vec<(&mut [f64], &mut [f64])> =
        decisions.iter_mut().map(|d| (&mut d.f[..], &mut d.signed[..])).collect();
    let mut items = Vec::with_capacity(store.pages().len());
    for page in store.pages() {
        let n = if keeps { page.n_rows as usize } else { 0 };
        let mut pieces = Vec::with_capacity(rest.len());
        for (f, signed) in &mut rest {
            let (f_here, f_later) = std::mem::take(f).split_at_mut(n);
            let (signed_here, signed_later) = std::mem::take(signed).split_at_mut(n);
            (*f, *signed) = (f_later, signed_later);
            pieces.push((f_here, signed_here));
        }
        items.push(pieces);
    }
    items
}

/// The best intercept and the losses with it.
pub fn best<L: Loss>(loss: L, decisions: Decisions) -> (f64, f64) {
    let Decisions { mut f, mut signed } = decisions;
    if loss.is_smooth() {
        let objective = Signed { loss, signed: &signed };
        let [b] = smooth_shift(&objective, f.as_chunks().0);
        let [losses] = sum(f.len(), |i| objective.value(i, &[f[i] + b]));
        return (b, losses);
    }
    // The kinks take the place of both lists.
    let positive: f64 = signed.iter().filter(|&&c| c > 0.0).sum();
    let mut kinks: Vec<(f64, f64)> = memory::with_capacity(f.len());
    while let (Some(f), Some(c)) = (f.pop(), signed.pop()) {
        if c != 0.0 {
            kinks.push((c.signum() - f, c));
        }
    }
    kinks.reverse();
    let b = hinge_optimum_of(&mut kinks, positive);
    let [losses] = sum(kinks.len(), |i| {
        let (at, c) = kinks[i];
        // m = y (f + b) = 1 - y (kink - b)
        [c.abs() * loss.value(1.0 - c.signum() * (at - b))]
    });
    (b, losses)
}

/// Row terms by signed cost; a row of cost 0 is no row.
struct Signed<'a, L> {
    loss: L,
    signed: &'a [f64],
}

impl<L: Loss> Objective<1> for Signed<'_, L> {
    #[inline(always)]
    fn value(&self, i: usize, z: &[f64; 1]) -> [f64; 1] {
        let c = self.signed[i];
        [c.abs() * self.loss.value(c.signum() * z[0])]
    }
    #[inline(always)]
    fn all(&self, i: usize, z: &[f64; 1]) -> [[f64; 1]; 3] {
        let (c, y) = (self.signed[i].abs(), self.signed[i].signum());
        let [value, slope, bend] = self.loss.all(y * z[0]);
        [[c * value], [c * y * slope], [c * bend]]
    }
}

/// Row numbers and decision values `x_i . w_k + b_k` of some pages: row after row in the order of the file,
/// one value per weight vector, which is in the order of the store's columns, or of the pairs of these where
/// there is a map.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::Io`], [`Error::Cancelled`].
pub fn decisions(
    store: &Store,
    pages: Range<usize>,
    weights: &[Vec<f64>],
    intercepts: &[f64],
    map: Option<&StoreMap>,
    monitor: &dyn Monitor,
) -> Result<(Vec<u64>, Vec<f64>)> {
    let work = |reader: &mut PageReader, page: usize| -> Result<(Vec<u64>, Vec<f64>)> {
        monitor.poll()?;
        let (view, facts) = reader.read(store, &reader::FromFile, page, store.width())?;
        let mut values = memory::with_capacity(facts.numbers.len() * weights.len());
        {
            let rows = &mapped(view, map);
            for i in 0..rows.n_rows() {
                memory::extend(&mut values, weights.iter().zip(intercepts).map(|(w, b)| rows.dot(i, w) + b));
            }
        };
        Ok((memory::copy(&facts.numbers), values))
    };
    let done: Vec<_> = pages.into_par_iter().map_init(PageReader::default, work).collect();
    let (mut all_numbers, mut all_values) = (Vec::new(), Vec::new());
    for page in done {
        let (numbers, values) = page?;
        memory::extend(&mut all_numbers, numbers);
        memory::extend(&mut all_values, values);
    }
    Ok((all_numbers, all_values))
}
