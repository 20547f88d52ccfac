//! A fitted encoder: rows of a table in, rows of a sparse matrix out.
//!
//! A batch falls into chunks of rows, which threads encode on their own, column after column of the
//! table, and which are appended in their order: the result does not depend on the number of threads.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{Array, ArrayRef};

use super::alphabet::Alphabet;
use super::batch::{ColumnData, TableBatch, dictionary};
use super::cell::{Cell, RowResult, Said, each_cell, each_text, is_text};
use super::column::{Buffers, Coded, Drift, FittedColumn, Places};
use super::part::{Piece, SparseRows};
use super::recent::RecentCodes;
use super::settled::SettledColumn;
use super::spec::{ColumnKind, MAX_FEATURES, Numbering};
use crate::fit::Monitor;
use crate::{Error, Result, memory, parallel};

/// Rows that one thread encodes at a time. Rows of texts have hundreds of entries: those of a chunk stay
/// in the processor's second cache until they are appended.
pub const CHUNK: usize = 2048;
/// The same where there are texts.
pub const TEXT_CHUNK: usize = 128;
/// Chunks of each thread whose results are held until they are appended.
const HELD: usize = 16;

/// A fitted encoder.
#[derive(Clone, Debug)]
pub struct Encoder {
    /// How columns of the result are numbered.
    pub numbering: Numbering,
    /// The columns of the table.
    pub columns: Vec<FittedColumn>,
    /// What words are made of, if there are texts.
    pub alphabet: Option<Arc<Alphabet>>,
    /// Columns of the result.
    pub n_features: u32,
}

/// What a thread keeps from one chunk to the next.
#[derive(Default)]
struct Lane {
    scratch: Buffers,
    /// Of each column, where there was use for it.
    recent: Vec<Option<RecentCodes>>,
}

/// A lane that nobody uses.
fn taken(idle: &Mutex<Vec<Lane>>) -> Lane {
    idle.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
}

/// What one column of the encoder reads in a batch.
enum Input<'a> {
    Values(ColumnData<'a>),
    /// What each value of a dictionary becomes, and which of them each row has.
    Codes {
        codes: Vec<Said<Coded>>,
        keys: Vec<usize>,
        array: &'a ArrayRef,
    },
}

impl Encoder {
    /// An encoder of settled columns.
    ///
    /// # Errors
    /// [`Error::Encoder`] for more columns than a result may have, and those of [`FittedColumn::new`].
    pub fn new(
        numbering: Numbering,
        settled: Vec<SettledColumn>,
        alphabet: Option<Arc<Alphabet>>,
    ) -> Result<Self> {
        let mut columns = Vec::with_capacity(settled.len());
        let mut width = 0;
        for column in settled {
            let column = FittedColumn::new(column, numbering, alphabet.as_ref(), width)?;
            // Neither summand is above 2^31.
            width += column.width();
            if numbering == Numbering::Counted && width > MAX_FEATURES {
                let reason = format!(
                    "the columns up to {:?} have {width} values and terms in all, at most {MAX_FEATURES} fit",
                    column.spec.name
                );
                return Err(Error::Encoder { reason });
            }
            columns.push(column);
        }
        let n_features = match numbering {
            Numbering::Hashed { n_features, .. } => n_features,
            Numbering::Counted => width,
        };
        Ok(Self { numbering, columns, alphabet, n_features })
    }

    /// Appends the rows of a batch to `out`, and to `drift` how often each column was not as in the fit.
    ///
    /// # Errors
    /// [`Error::Cell`] for the first value, in the order of chunks and columns, that cannot be encoded;
    /// [`Error::Encoder`] for a column that is not there; [`Error::Memory`]; [`Error::Cancelled`].
    pub fn encode(
        &self,
        batch: &TableBatch,
        monitor: &dyn Monitor,
        out: &mut SparseRows,
        drift: &mut [Drift],
    ) -> Result<()> {
        let inputs: Vec<Input<'_>> =
            self.columns.iter().map(|column| self.input(column, batch)).collect::<Result<_>>()?;
        let has_terms = self.columns.iter().any(|column| column.spec.kind.weighting().is_some());
        let chunk = if has_terms { TEXT_CHUNK } else { CHUNK };
        let starts: Vec<usize> = (0..batch.n_rows).step_by(chunk).collect();
        let idle: Mutex<Vec<Lane>> = Mutex::default();
        for window in starts.chunks(HELD * rayon::current_num_threads()) {
            if monitor.cancelled() {
                return Err(Error::Cancelled);
            }
            let (parts, found): (Vec<_>, Vec<_>) = parallel::try_map(window.iter().copied(), |_, start| {
                let mut lane = taken(&idle);
                let rows = start..(start + chunk).min(batch.n_rows);
                let done = self.encode_chunk(batch, &inputs, rows, &mut lane);
                idle.lock().unwrap_or_else(PoisonError::into_inner).push(lane);
                done
            })?
            .into_iter()
            .unzip();
            let n_left = batch.n_rows - window[0];
            let n_done = (chunk * parts.len()).min(n_left);
            let n_entries: usize = parts.iter().map(|part| part.indices.len()).sum();
            out.expect(n_left, n_entries * n_left / n_done);
            out.append_all(&parts)?;
            for found in found {
                drift.iter_mut().zip(found).for_each(|(sum, more)| *sum += more);
            }
        }
        Ok(())
    }

    fn input<'a>(&self, column: &FittedColumn, batch: &'a TableBatch) -> Result<Input<'a>> {
        let data = batch.data(&column.spec)?;
        let (ColumnKind::Categorical { .. }, ColumnData::One(array)) = (&column.spec.kind, &data) else {
            return Ok(Input::Values(data));
        };
        let Some((values, keys)) = dictionary(array) else { return Ok(Input::Values(data)) };
        let mut codes = Vec::with_capacity(values.len());
        let mut scratch = Buffers::default();
        // A value that cannot be encoded is an error only where a row has it.
        each_cell(&values, 0..values.len(), &mut |cell| {
            codes.push(column.code(cell, &mut scratch));
            Ok(())
        })
        .map_err(|error| batch.error(&column.spec.name, error))?;
        Ok(Input::Codes { codes, keys, array })
    }

    fn encode_chunk(
        &self,
        batch: &TableBatch,
        inputs: &[Input<'_>],
        rows: Range<usize>,
        lane: &mut Lane,
    ) -> Result<(SparseRows, Vec<Drift>)> {
        let n = rows.len();
        let mut drift = Vec::with_capacity(inputs.len());
        let mut pieces = Vec::with_capacity(inputs.len());
        lane.recent.resize_with(inputs.len(), || None);
        for ((column, input), recent) in self.columns.iter().zip(inputs).zip(&mut lane.recent) {
            let piece = encode_rows(column, input, rows.clone(), &mut lane.scratch, recent)
                .map_err(|error| batch.error(&column.spec.name, error))?;
            pieces.push(piece);
            drift.push(std::mem::take(&mut lane.scratch.drift));
        }
        Ok((self.joined(pieces, n), drift))
    }

    fn joined(&self, mut pieces: Vec<Piece>, n_rows: usize) -> SparseRows {
        match (self.numbering, &mut pieces[..]) {
            (_, [Piece::Many(part)]) => std::mem::take(part),
            (Numbering::Counted, pieces) => SparseRows::beside(pieces, n_rows),
            (Numbering::Hashed { .. }, pieces) => SparseRows::summed(pieces, n_rows),
        }
    }

    /// Appends one row, whose values `cell` hands over: `cell(name, visit)` calls `visit` with the value of a
    /// column of the table, once.
    ///
    /// # Errors
    /// As for [`Self::encode`], and those of `cell`.
    pub fn encode_row<E: From<Error>>(
        &self,
        scratch: &mut Buffers,
        drift: &mut [Drift],
        mut cell: impl FnMut(
            &FittedColumn,
            &mut dyn FnMut(Cell<'_>) -> Said<()>,
        ) -> std::result::Result<Said<()>, E>,
    ) -> std::result::Result<SparseRows, E> {
        let mut pieces = Vec::with_capacity(self.columns.len());
        for (k, column) in self.columns.iter().enumerate() {
            let mut part = SparseRows::default();
            cell(column, &mut |cell| column.encode(cell, scratch, &mut part))?
                .map_err(|reason| Error::Cell { column: column.spec.name.clone(), row: 0, reason })?;
            part.end_row();
            pieces.push(Piece::Many(part));
            let found = std::mem::take(&mut scratch.drift);
            if let Some(sum) = drift.get_mut(k) {
                *sum += found;
            }
        }
        Ok(self.joined(pieces, 1))
    }

    /// The first columns of the result, of each column of the table, and their number: for counted names.
    pub fn widths(&self) -> Vec<(u32, u32)> {
        self.columns
            .iter()
            .map(|column| match &column.places {
                Places::Hashed(_) => (0, self.n_features),
                Places::Counted { first, .. } => (*first, column.width()),
            })
            .collect()
    }
}

/// Encodes some rows of a column.
fn encode_rows(
    column: &FittedColumn,
    input: &Input<'_>,
    rows: Range<usize>,
    scratch: &mut Buffers,
    recent: &mut Option<RecentCodes>,
) -> RowResult<Piece> {
    let mut part = SparseRows::default();
    if column.spec.kind.weighting().is_some() {
        let Input::Values(data) = input else { return Ok(Piece::Many(part)) };
        data.each(rows, &mut |cell| {
            column.encode(cell, scratch, &mut part)?;
            part.end_row();
            Ok(())
        })?;
        return Ok(Piece::Many(part));
    }
    memory::reserve(&mut part.indices, rows.len());
    memory::reserve(&mut part.values, rows.len());
    match input {
        Input::Codes { codes, keys, array } => {
            let nulls = array.nulls();
            for row in rows {
                let coded = match nulls {
                    Some(nulls) if nulls.is_null(row) => Coded::Missing,
                    _ => codes[keys[row]].clone().map_err(|reason| (row, reason))?,
                };
                column.push_single(coded, scratch, &mut part);
            }
        }
        Input::Values(ColumnData::One(array))
            if matches!(column.spec.kind, ColumnKind::Categorical { .. }) && is_text(array) =>
        {
            let recent = recent.get_or_insert_default();
            each_text(array, rows, |text| {
                let coded = match text {
                    None => Coded::Missing,
                    Some(text) => recent.get(text, || column.code(Cell::Text(text), scratch))?,
                };
                column.push_single(coded, scratch, &mut part);
                Ok(())
            })?;
        }
        Input::Values(data) => data.each(rows, &mut |cell| {
            let before = part.indices.len();
            column.encode(cell, scratch, &mut part)?;
            if part.indices.len() == before {
                part.push_nothing();
            }
            Ok(())
        })?,
    }
    Ok(Piece::Single(part.indices, part.values))
}

impl FittedColumn {
    /// Appends an entry, or nothing, and counts what was not as in the fit.
    #[inline(always)]
    fn push_single(&self, coded: Coded, scratch: &mut Buffers, part: &mut SparseRows) {
        match self.entry(coded, scratch) {
            Some((column, value)) => part.push(column, value),
            None => part.push_nothing(),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::{Float64Array, Int64Array, StringArray};
    use proptest::prelude::*;
    use serde_json::Map;

    use super::super::alphabet::tests::alphabet;
    use super::super::settled::Settled;
    use super::super::spec::{Analyzer, ColumnSpec, Missing, Norm, NumberScale, TextSpec, Weighting};
    use super::super::survey::Survey;
    use super::*;
    use crate::fit::Silent;

    type Row = (Option<&'static str>, Option<f64>, i64, String);

    fn batch(rows: &[Row]) -> TableBatch {
        let columns: Vec<(String, ArrayRef)> = vec![
            ("s".into(), Arc::new(StringArray::from_iter(rows.iter().map(|row| row.0)))),
            ("x".into(), Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.1)))),
            ("k".into(), Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| row.2)))),
            ("t".into(), Arc::new(StringArray::from_iter_values(rows.iter().map(|row| &row.3)))),
        ];
        TableBatch { columns, n_rows: rows.len(), first_row: 0 }
    }

    fn specs() -> Vec<ColumnSpec> {
        let weighting = Weighting { binary: false, sublinear: false, norm: Norm::L2, prefix: String::new() };
        let text =
            TextSpec { analyzer: Analyzer::Words, ngrams: (1, 2), lowercase: true, stop_words: vec![] };
        let spec = |name: &str, kind| ColumnSpec { name: name.into(), missing: Missing::Own, kind };
        vec![
            spec("s", ColumnKind::Categorical { refuses_unknown: false }),
            spec("x", ColumnKind::Numeric(NumberScale::None)),
            spec("k", ColumnKind::Categorical { refuses_unknown: false }),
            spec("s and k", ColumnKind::Cross { columns: vec!["s".into(), "k".into()] }),
            spec("t", ColumnKind::Text(text, weighting)),
        ]
    }

    fn fitted(numbering: Numbering, table: &TableBatch) -> Encoder {
        let mut survey = Survey::new(numbering, specs(), Some(Arc::new(alphabet()))).unwrap();
        survey.add(table, &Silent).unwrap();
        survey.close().unwrap();
        for k in 0..survey.columns().len() {
            let mut settled = Settled::default();
            let counts = &survey.columns()[k].counts;
            counts
                .sorted(0.0, f64::INFINITY)
                .iter()
                .for_each(|term| settled.terms.push(counts.list().get(*term as usize)));
            survey.settle(k, settled);
        }
        survey.encoder().unwrap()
    }

    fn encoded(encoder: &Encoder, table: &TableBatch, n_threads: usize) -> SparseRows {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let mut out = SparseRows::default();
        pool.install(|| encoder.encode(table, &Silent, &mut out, &mut [])).unwrap();
        out
    }

    fn one_by_one(encoder: &Encoder, rows: &[Row]) -> SparseRows {
        let (mut out, mut buffers) = (SparseRows::default(), Buffers::default());
        for (s, x, k, t) in rows {
            let both = s.map(|s| format!("{s}\u{1f}{k}"));
            let row = encoder.encode_row::<Error>(&mut buffers, &mut [], |column, visit| {
                Ok(visit(match &*column.spec.name {
                    "s" => s.map_or(Cell::Missing, Cell::Text),
                    "x" => x.map_or(Cell::Missing, Cell::Real),
                    "k" => Cell::Whole(*k),
                    "t" => Cell::Text(t),
                    _ => both.as_deref().map_or(Cell::Missing, Cell::Text),
                }))
            });
            out.append_all(&[row.unwrap()]).unwrap();
        }
        out
    }

    fn rows() -> impl Strategy<Value = Vec<Row>> {
        let s = prop::sample::select(vec![Some("a"), Some("b"), Some("longer than sixteen bytes"), None]);
        let x = prop::option::of(prop::sample::select(vec![0.0, 1.5, -3.0]));
        prop::collection::vec((s, x, 0..3_i64, "[ab é]{0,12}"), 1..300)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_batch_is_its_rows_and_a_record_is_its_encoder(rows in rows()) {
            let table = batch(&rows);
            for numbering in
                [Numbering::Counted, Numbering::Hashed { n_features: 97, alternate_sign: true }]
            {
                let encoder = fitted(numbering, &table);
                let expected = one_by_one(&encoder, &rows);
                prop_assert_eq!(&encoded(&encoder, &table, 1), &expected);
                prop_assert_eq!(&encoded(&encoder, &table, 3), &expected);
                let (again, _) = encoder.record(&Map::new()).encoder().unwrap();
                prop_assert_eq!(&encoded(&again, &table, 2), &expected);
                prop_assert_eq!(again.n_features, encoder.n_features);
            }
        }
    }
}
