//! The trial of dual descent ([`crate::fit::dual::trial`]) on a sample of the rows of a store.

use super::spec::Spec;
use crate::blocks::{BinaryTask, scan};
use crate::fit::dual::trial;
use crate::fit::newton::sample::is_sampled;
use crate::fit::{Monitor, Problem};
use crate::matrix::csr::CsrView;
use crate::matrix::{Matrix, Rows};
use crate::memory::CollectLarge;
use crate::source::resident::Plain;
use crate::store::reader::{FromFile, Store};
use crate::{Result, memory};

/// Bytes of an entry of the sample while its pages are put together.
const ENTRY_BYTES: u64 = 2 * 12;

/// Rows of a store as one problem.
#[derive(Default)]
struct Sample {
    rows: Plain,
    y: Vec<f64>,
    cost: Vec<f64>,
}

impl Sample {
    fn append(&mut self, page: Self) {
        memory::extend(&mut self.rows.lens, page.rows.lens);
        memory::extend(&mut self.rows.columns, page.rows.columns);
        memory::extend(&mut self.rows.values, page.rows.values);
        memory::extend(&mut self.y, page.y);
        memory::extend(&mut self.cost, page.cost);
    }
}

/// What [`trial::remaining_gain`] says of one row in [`trial::ONE_IN`], of fewer where these do not fit half
/// the budget. One reading of the store.
///
/// # Errors
/// Those of the store.
pub fn remaining_gain(
    store: &Store,
    budget: u64,
    task: &BinaryTask,
    spec: &Spec,
    monitor: &dyn Monitor,
) -> Result<f64> {
    let meta = store.meta();
    let one_in = (2 * ENTRY_BYTES * meta.nnz).div_ceil(budget.max(1)).max(trial::ONE_IN as u64) as usize;
    let (_, starts) = store.starts().split_last().expect("an end, too");
    let starts = starts.iter().map(|&start| start as usize).collect_large();
    let pages =
        scan::for_pages(store, &FromFile, store.width(), starts, monitor, |_, view, facts, start| {
            let (rows, mut page, mut buffer) = (Matrix::from(view), Sample::default(), Vec::new());
            for i in (0..rows.n_rows()).filter(|i| is_sampled(start + i, one_in)) {
                page.rows.push(&rows, i, &mut buffer);
                memory::push(&mut page.y, task.sign(facts.classes[i]));
                memory::push(&mut page.cost, task.cost(facts.classes[i], facts.weights[i], None));
            }
            page
        })?;
    let mut sample = Sample::default();
    pages.into_iter().for_each(|page| sample.append(page));
    let Sample { rows: Plain { lens, columns, values }, y, cost } = &sample;
    let ends = lens.iter().scan(0, |end, len| {
        *end += len;
        Some(*end)
    });
    let starts = std::iter::once(0).chain(ends).collect_large();
    let rows: Matrix<'_> = CsrView::of_distinct(&starts, columns, values, meta.n_used)?.into();
    let problem = Problem { rows: &rows, ids: None, y, cost, intercept: spec.intercept };
    trial::remaining_gain(&problem, 1, spec.params.seed, monitor)
}
