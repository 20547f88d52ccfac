//! Certificates of binary problems by one reading of all rows.
//!
//! With a free intercept the certified dual point is a copy of the dual variables, moved onto
//! `sum y_i a_i = 0` by lowering some by `cut_i` ([`super::sums::Sums::shift`]). Its weights are `w - v`,
//! `v = sum cut_i y_i x_i`, whose norm is not computed but bounded: `|w - v| <= sum cut_i |x_i|`. This keeps
//! the scan at one reading without a second vector, and costs nothing once the constraint is nearly met.
//!
//! The distance of `w` from the weights of the dual variables that the updates of so many visits can have
//! made is bounded as in [`crate::fit::dual`], twice over since the level of the dual objective is not kept.

use super::gap::{At, Decisions, GapSums, best};
use super::problem::{Certified, CertifyScan};
use super::scan::for_pages;
use super::state::BinaryProblem;
use super::sums::Shift;
use crate::fit::Intercept;
use crate::fit::sweep::dot;
use crate::loss::{Loss, with_loss};
use crate::matrix::Rows;
use crate::matrix::arena::View;
use crate::memory::CollectLarge;
use crate::source::mapped::mapped;
use crate::store::reader::{RowFacts, Store};
use crate::{Error, Result, memory};

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
        let rows = &mapped(view, settings.map);
        for i in 0..rows.n_rows() {
            let (class, position) = (facts.classes[i], first + i);
            let fold = folds.get(position).copied();
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
