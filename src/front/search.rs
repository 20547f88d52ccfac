//! The choice of `C`: from a question to a search in memory or over blocks.

use std::path::Path;

use super::on_disk::OnDisk;
use super::source::{Blocks, Checked, Source, Targets, Whole};
use super::spec::{PresolveChoice, Spec};
use crate::blocks::search::{StoreSearch, StoreSearchData, check_factor, folds_by_place};
use crate::fit::{Monitor, SolverKind};
use crate::labels::{Labels, MultiClass};
use crate::matrix::Rows;
use crate::search::{self, EndReason, Fold, SearchData, SearchPlan, SearchSettings, SearchStep};
use crate::shards::alone::PieceSearch;
use crate::store::reader::Store;
use crate::{Error, Result};

/// A search for `C`.
pub struct Search<'a> {
    /// How to fit.
    pub spec: &'a Spec<'a>,
    /// The splits: row numbers of the matrix, or of the store's input.
    pub folds: &'a [Fold],
    /// Which values of `C`, and when to end.
    pub plan: &'a SearchPlan,
    /// Where finished values are kept, and read again.
    pub resume: Option<&'a Path>,
}

/// Called after each value of `C`; returns the score, which refinement maximises, or `None` to end.
pub type StepVisitor<'a> = dyn FnMut(&SearchStep) -> Result<Option<f64>> + 'a;

impl Search<'_> {
    /// Runs the search. `weight` has an entry per row, class weight times sample weight; for a store an entry
    /// per class. Returns why it ended.
    ///
    /// # Errors
    /// Those of the checks of the input, of the solvers, the journal, the store and of `visit`;
    /// [`Error::Parameter`] for a solver or a [`crate::labels::MultiClass`] that does not go with the loss or
    /// the source.
    pub fn run(
        &self,
        source: &Source<'_>,
        targets: &Targets<'_>,
        weight: &[f64],
        monitor: &dyn Monitor,
        visit: &mut StepVisitor<'_>,
    ) -> Result<EndReason> {
        self.spec.check_penalty()?;
        let ended = match (source, targets) {
            (Source::Rows(data), Targets::Classes(labels)) => {
                self.run_on_rows(data, *labels, weight, monitor, visit)
            }
            (Source::Store(store, blocks), Targets::Stored) => {
                self.run_on_store(store, blocks, weight, monitor, visit)
            }
            _ => Err(Error::Labels { reason: "a search is over the classes of rows or of a store".into() }),
        };
        match ended {
            // While the data are read, filled up or packed, before there is a value in progress.
            Err(Error::Cancelled) if monitor.is_overdue() => Ok(EndReason::TimeLimit),
            ended => ended,
        }
    }

    fn run_on_rows(
        &self,
        data: &Checked<'_>,
        labels: Labels<'_>,
        weight: &[f64],
        monitor: &dyn Monitor,
        visit: &mut StepVisitor<'_>,
    ) -> Result<EndReason> {
        let filled = data.filled(self.spec.presolve, monitor)?;
        let data = &filled.as_ref().map_or(*data, |filled| data.with_rows(filled.rows()));
        let (settings, folds) = (self.settings(labels.n_classes)?, self.folds);
        let map = self.spec.map.map(|map| map.map(data.rows.n_cols())).transpose()?;
        if let Some(penalty) = self.spec.penalty {
            let rows = data.by_columns(map.as_ref())?;
            let task = SearchData { rows: &rows, labels, weight, folds, penalty: Some(penalty) };
            return search::search(&task, &settings, self.plan, self.resume, monitor, visit);
        }
        if let Some(map) = &map {
            let task = SearchData { rows: &data.mapped(None, map)?, labels, weight, folds, penalty: None };
            return search::search(&task, &settings, self.plan, self.resume, monitor, visit);
        }
        // A search reads its data so often that it always pays.
        let packed = data.pack(self.spec.presolve, f64::INFINITY, labels.n_problems(), monitor)?;
        let scaled = if packed.is_none() { data.rows.scaled() } else { None };
        let rows = match &packed {
            Some(packed) => packed.view(),
            None => data.narrowest(scaled.as_ref()),
        };
        let task = SearchData { rows: &rows, labels, weight, folds, penalty: None };
        search::search(&task, &settings, self.plan, self.resume, monitor, visit)
    }

    fn run_on_store(
        &self,
        store: &Store,
        blocks: &Blocks<'_>,
        factor: &[f64],
        monitor: &dyn Monitor,
        visit: &mut StepVisitor<'_>,
    ) -> Result<EndReason> {
        check_factor(store, factor)?;
        if self.spec.penalty.is_some() {
            return self.run_on_penalised_store(store, blocks, factor, monitor, visit);
        }
        let map = self.spec.map.map(|map| map.of_store(store)).transpose()?;
        let settings = self.settings(store.classes().len() as u32)?;
        let search = StoreSearch {
            task: StoreSearchData { store, factor, folds: self.folds },
            settings,
            blocks: blocks.settings(self.spec, map.as_ref()),
            plan: self.plan,
            resume: self.resume,
        };
        let in_memory = blocks.in_memory.unwrap_or_else(|| search.fits_in_memory());
        let is_multinomial = settings.multi_class == MultiClass::Multinomial;
        let on_disk = OnDisk { store, blocks, spec: self.spec, cost: factor };
        let of_pieces = PieceSearch { folds: self.folds, plan: self.plan, resume: self.resume };
        match self.spec.params.solver {
            SolverKind::Auto
                if !in_memory && !is_multinomial && on_disk.prefers_newton_to_search(&of_pieces) =>
            {
                return on_disk.search_by_newton(&of_pieces, monitor, visit);
            }
            SolverKind::Auto => {}
            SolverKind::DualCd if !is_multinomial => {}
            SolverKind::Newton if is_multinomial => {}
            _ if in_memory => {}
            SolverKind::Newton if map.is_none() && self.spec.loss.is_smooth() => {
                return on_disk.search_by_newton(&of_pieces, monitor, visit);
            }
            solver if is_multinomial => {
                let rule = "'auto' or 'newton' for a multinomial search over a store that is larger than \
                            memory_budget";
                return Err(Error::Parameter { name: "solver", value: format!("{:?}", solver.name()), rule });
            }
            solver => return Err(needs_memory(solver)),
        }
        search.run(in_memory, monitor, visit)
    }

    /// Over a store in memory, in the columns of its input, for each of which there is a penalty.
    fn run_on_penalised_store(
        &self,
        store: &Store,
        blocks: &Blocks<'_>,
        factor: &[f64],
        monitor: &dyn Monitor,
        visit: &mut StepVisitor<'_>,
    ) -> Result<EndReason> {
        blocks.check_penalised(store, self.spec, self.folds.len())?;
        let whole = Whole::read(store, factor, monitor)?.in_columns_of_input(store)?;
        let folds = folds_by_place(self.folds, &whole.numbers)?;
        let labels = whole.labels(factor.len());
        // The budget has room for the copy by columns, not for one of the rows.
        let spec = &Spec { presolve: PresolveChoice::Off, ..*self.spec };
        let search = Search { spec, folds: &folds, ..*self };
        search.run_on_rows(&whole.checked()?, labels, &whole.costs, monitor, visit)
    }

    /// Two classes are one against the rest, whatever is asked for: their journals say no more.
    fn settings(&self, n_classes: u32) -> Result<SearchSettings> {
        let Spec { loss, intercept, params, .. } = *self.spec;
        let is_multinomial = self.spec.is_multinomial(n_classes)?;
        let multi_class = if is_multinomial { MultiClass::Multinomial } else { MultiClass::OneVsRest };
        Ok(SearchSettings { loss, intercept, params, multi_class })
    }
}

fn needs_memory(solver: SolverKind) -> Error {
    let (name, rule) = match solver {
        SolverKind::CrammerSinger => {
            ("multi_class", "'ovr' for a search over a store that is larger than memory_budget")
        }
        _ => {
            let rule = "'auto', 'dual_cd' or, for a smooth loss with degree=1, 'newton' for a store that is \
                        larger than memory_budget";
            ("solver", rule)
        }
    };
    Error::Parameter { name, value: format!("{:?}", solver.name()), rule }
}
