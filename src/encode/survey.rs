//! What a fit has to know of a table: names and how often they occur, spreads of numbers, types.

use std::mem;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};

use super::alphabet::Alphabet;
use super::batch::{ColumnData, TableBatch, dictionary};
use super::cell::{Cell, Said, ValueType, each_cell, each_text, is_text};
use super::column::{Coded, Terms, not, number};
use super::counts::TermCounts;
use super::encoder::{CHUNK, Encoder};
use super::key::{write_key, write_text};
use super::recent::RecentCodes;
use super::settled::{Settled, SettledColumn};
use super::spec::{ColumnKind, ColumnSpec, NumberScale, Numbering, check};
use super::terms::{TokenBuffer, Tokenizer};
use crate::fit::Monitor;
use crate::{Error, Result, memory, parallel};

/// The first reading of a table.
#[derive(Debug)]
pub struct Survey {
    numbering: Numbering,
    alphabet: Option<Arc<Alphabet>>,
    columns: Vec<Surveyed>,
    /// Rows that were read.
    pub n_rows: usize,
}

/// What is known of a column.
#[derive(Debug)]
pub struct Surveyed {
    /// What was asked for.
    pub spec: ColumnSpec,
    /// What its values are; None before there was one.
    pub value_type: Option<ValueType>,
    /// Values that are missing.
    pub n_missing: u64,
    /// Names, after [`Survey::close`].
    pub counts: TermCounts,
    /// Numbers.
    pub spread: Moments,
    /// All numbers, where bins are made of them.
    pub values: Vec<f64>,
    tokenizer: Option<Tokenizer>,
    lanes: Vec<Lane>,
    settled: Settled,
}

/// The names that one thread has seen.
#[derive(Debug)]
struct Lane {
    counts: TermCounts,
    tokens: TokenBuffer,
    key: Vec<u8>,
    recent: RecentCodes,
    n_missing: u64,
}

/// Count, mean and sum of squared deviations of some numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// How many.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Sum of squares of their distances from the mean.
    pub squares: f64,
    /// Largest absolute value.
    pub largest: f64,
}

impl Moments {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as u64;
        let mean = if count == 0 { 0.0 } else { values.iter().sum::<f64>() / count as f64 };
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        Self { count, mean, squares, largest: values.iter().fold(0.0, |most, value| most.max(value.abs())) }
    }

    /// Those of both (Chan, Golub and LeVeque's rule).
    fn merge(&mut self, other: Self) {
        let count = self.count + other.count;
        if other.count == 0 {
            return;
        }
        let (difference, share) = (other.mean - self.mean, other.count as f64 / count as f64);
        self.squares += other.squares + difference * difference * share * self.count as f64;
        self.mean += difference * share;
        self.count = count;
        self.largest = self.largest.max(other.largest);
    }
}

impl Survey {
    /// A survey of nothing yet.
    ///
    /// # Errors
    /// [`Error::Encoder`] for columns that contradict each other.
    pub fn new(
        numbering: Numbering,
        columns: Vec<ColumnSpec>,
        alphabet: Option<Arc<Alphabet>>,
    ) -> Result<Self> {
        check(numbering, &columns)?;
        let columns = columns
            .into_iter()
            .map(|spec| Surveyed {
                tokenizer: Tokenizer::of(&spec.kind, alphabet.as_ref()),
                spec,
                value_type: None,
                n_missing: 0,
                counts: TermCounts::default(),
                spread: Moments::default(),
                values: vec![],
                lanes: vec![],
                settled: Settled::default(),
            })
            .collect();
        Ok(Self { numbering, alphabet, columns, n_rows: 0 })
    }

    /// What is known of the columns.
    pub fn columns(&self) -> &[Surveyed] {
        &self.columns
    }

    /// Whether rows have to be read, or types are enough.
    pub fn needs_rows(&self) -> bool {
        let is_counted = self.numbering == Numbering::Counted;
        is_counted
            || self.columns.iter().any(
                |column| matches!(column.spec.kind, ColumnKind::Numeric(scale) if scale != NumberScale::None),
            )
    }

    /// Notes the types of a batch.
    ///
    /// # Errors
    /// [`Error::Cell`] for types that do not go with the kinds of columns, or with those of earlier batches;
    /// [`Error::Encoder`] for a column that is not there.
    pub fn add_types(&mut self, batch: &TableBatch) -> Result<()> {
        for column in &mut self.columns {
            let Some(found) = batch.value_type(&column.spec)? else { continue };
            let reason = match (&column.spec.kind, found, column.value_type) {
                (ColumnKind::Numeric(_), ValueType::Text | ValueType::Strings, _) => {
                    format!("a numeric column has numbers, this one has {found} in each row")
                }
                (ColumnKind::Text(..), other, _) if other != ValueType::Text => {
                    format!("a column of texts has strings, this one has {other} in each row")
                }
                (ColumnKind::Tokens(_), other, _) if other != ValueType::Strings => {
                    format!("a column of tokens has lists of strings, this one has {other} in each row")
                }
                (ColumnKind::Categorical { .. }, ValueType::Strings, _) => {
                    format!("a categorical column has single values, this one has {found} in each row")
                }
                (ColumnKind::Categorical { .. }, _, Some(before)) if before != found => {
                    format!("the values of this batch are each {found}, those before were each {before}")
                }
                _ => {
                    column.value_type = Some(found);
                    continue;
                }
            };
            return Err(batch.error(&column.spec.name, (0, reason)));
        }
        Ok(())
    }

    /// Reads a batch.
    ///
    /// # Errors
    /// As for [`Self::add_types`]; [`Error::Cell`] for a value that the column cannot have.
    pub fn add(&mut self, batch: &TableBatch, monitor: &dyn Monitor) -> Result<()> {
        self.add_types(batch)?;
        let is_counted = self.numbering == Numbering::Counted;
        for column in &mut self.columns {
            let data = batch.data(&column.spec)?;
            let added = match column.spec.kind {
                ColumnKind::Numeric(scale) => column.add_numbers(&data, batch.n_rows, scale, is_counted),
                _ if is_counted => column.add_names(&data, batch.n_rows, monitor),
                _ => Ok(()),
            };
            added.map_err(|error| match error {
                Failure::At(row, reason) => batch.error(&column.spec.name, (row, reason)),
                Failure::Other(error) => error,
            })?;
        }
        self.n_rows += batch.n_rows;
        Ok(())
    }

    /// Ends the reading: what threads have seen becomes one.
    ///
    /// # Errors
    /// [`Error::Shape`] for 2^31 names or more.
    pub fn close(&mut self) -> Result<()> {
        for column in &mut self.columns {
            for lane in mem::take(&mut column.lanes) {
                column.n_missing += lane.n_missing;
                if column.counts.list().is_empty() {
                    column.counts = lane.counts;
                } else {
                    column.counts.merge(&lane.counts)?;
                }
            }
        }
        Ok(())
    }

    /// Settles a column.
    pub fn settle(&mut self, k: usize, settled: Settled) {
        self.columns[k].settled = settled;
    }

    /// The encoder.
    ///
    /// # Errors
    /// [`Error::Encoder`] for more columns than a result may have.
    pub fn encoder(&mut self) -> Result<Encoder> {
        let settled = |column: &mut Surveyed| SettledColumn {
            spec: column.spec.clone(),
            value_type: column.value_type,
            has_missing: column.n_missing > 0,
            found: mem::take(&mut column.settled),
        };
        let columns = self.columns.iter_mut().map(settled).collect();
        Encoder::new(self.numbering, columns, self.alphabet.clone())
    }
}

/// A value that cannot be, with its row; or another error.
enum Failure {
    At(usize, String),
    Other(Error),
}

impl From<(usize, String)> for Failure {
    fn from((row, reason): (usize, String)) -> Self {
        Self::At(row, reason)
    }
}

impl Surveyed {
    fn add_numbers(
        &mut self,
        data: &ColumnData<'_>,
        n_rows: usize,
        scale: NumberScale,
        is_counted: bool,
    ) -> std::result::Result<(), Failure> {
        if scale == NumberScale::None && !is_counted {
            return Ok(());
        }
        let starts = (0..n_rows).step_by(CHUNK);
        let pieces = parallel::map_each(starts, |_, start| {
            let (mut values, mut n_missing) = (Vec::new(), 0);
            data.each(start..(start + CHUNK).min(n_rows), &mut |cell| {
                if cell == Cell::Missing {
                    n_missing += 1
                } else {
                    values.push(number(cell)?)
                }
                Ok(())
            })?;
            Ok((values, n_missing))
        });
        for piece in pieces {
            let (values, n_missing) = piece.map_err(|(row, reason)| Failure::At(row, reason))?;
            self.n_missing += n_missing;
            self.spread.merge(Moments::of(&values));
            if scale == NumberScale::Bins {
                memory::try_reserve(&mut self.values, values.len()).map_err(Failure::Other)?;
                self.values.extend_from_slice(&values);
            }
        }
        Ok(())
    }

    fn add_names(
        &mut self,
        data: &ColumnData<'_>,
        n_rows: usize,
        monitor: &dyn Monitor,
    ) -> std::result::Result<(), Failure> {
        let n_lanes = rayon::current_num_threads().min(n_rows.div_ceil(CHUNK)).max(1);
        while self.lanes.len() < n_lanes {
            self.lanes.push(Lane {
                counts: TermCounts::default(),
                tokens: TokenBuffer::default(),
                key: vec![],
                n_missing: 0,
                recent: RecentCodes::default(),
            });
        }
        let (kind, of, tokenizer) = (&self.spec.kind, self.value_type, self.tokenizer.as_ref());
        if let (ColumnKind::Categorical { .. }, ColumnData::One(array)) = (kind, data)
            && let Some((values, keys)) = dictionary(array)
        {
            let used = used_values(array, &keys, values.len());
            let lane = &mut self.lanes[0];
            lane.n_missing += array.null_count() as u64;
            let mut counts = used.iter();
            each_cell(&values, 0..values.len(), &mut |cell| match counts.next() {
                Some(0) | None => Ok(()),
                Some(n) if cell == Cell::Missing => {
                    lane.n_missing += n;
                    Ok(())
                }
                Some(_) => lane.note(cell, kind, of, tokenizer),
            })?;
            return Ok(());
        }
        let step = n_rows.div_ceil(n_lanes).max(1);
        let texts = match data {
            ColumnData::One(array) if matches!(kind, ColumnKind::Categorical { .. }) && is_text(array) => {
                Some(array)
            }
            _ => None,
        };
        let done = parallel::try_map(self.lanes.iter_mut().take(n_lanes), |k, lane| {
            let rows = (k * step).min(n_rows)..((k + 1) * step).min(n_rows);
            for start in rows.clone().step_by(CHUNK) {
                if monitor.cancelled() {
                    return Err(Error::Cancelled);
                }
                let piece = start..(start + CHUNK).min(rows.end);
                if let Some(array) = texts {
                    if let Err(at) = each_text(array, piece, |text| lane.note_category(text)) {
                        return Ok(Err(at));
                    }
                    continue;
                }
                if let Err(at) = data.each(piece, &mut |cell| lane.note(cell, kind, of, tokenizer)) {
                    return Ok(Err(at));
                }
            }
            Ok(Ok(()))
        });
        for lane in done.map_err(Failure::Other)? {
            lane?;
        }
        Ok(())
    }
}

impl Lane {
    /// Notes a category. That it was there is all that matters, so the latest ones are not counted again.
    fn note_category(&mut self, text: Option<&str>) -> Said<()> {
        let Self { counts, recent, n_missing, .. } = self;
        let Some(text) = text else {
            *n_missing += 1;
            return Ok(());
        };
        let note = || {
            counts.note(text.as_bytes());
            counts.end_row().map(|()| Coded::Missing).map_err(|error| error.to_string())
        };
        recent.get(text, note).map(drop)
    }

    fn note(
        &mut self,
        cell: Cell<'_>,
        kind: &ColumnKind,
        of: Option<ValueType>,
        tokenizer: Option<&Tokenizer>,
    ) -> Said<()> {
        let Self { counts, tokens, key, n_missing, .. } = self;
        if cell == Cell::Missing {
            *n_missing += 1;
            return Ok(());
        }
        if kind.weighting().is_some() {
            Terms::of(kind, cell)?.each(tokenizer, tokens, |term| counts.note(term));
        } else {
            key.clear();
            let of = of.or(cell.value_type());
            if !of.is_some_and(|of| write_key(cell, of, key)) {
                return Err(not(&of.map_or_else(String::new, |of| of.to_string()), cell));
            }
            counts.note(key);
        }
        counts.end_row().map_err(|error| error.to_string())
    }
}

/// How many rows have each value of a dictionary.
fn used_values(array: &ArrayRef, keys: &[usize], n: usize) -> Vec<u64> {
    let mut used = vec![0; n];
    for (row, key) in keys.iter().enumerate() {
        if array.is_valid(row) {
            used[*key] += 1;
        }
    }
    used
}

/// A key as Python writes it, for names of columns.
pub fn key_text(key: &[u8], of: ValueType) -> Option<String> {
    let mut out = Vec::new();
    write_text(super::key::read_key(key, of)?, &mut out);
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_of_parts_are_those_of_the_whole() {
        let values: Vec<f64> = (0..100).map(|k| f64::from(k * k % 17) - 3.0).collect();
        let whole = Moments::of(&values);
        let mut sum = Moments::default();
        for part in [&values[..1], &values[1..1], &values[1..40], &values[40..]] {
            sum.merge(Moments::of(part));
        }
        assert_eq!((sum.count, sum.largest), (whole.count, whole.largest));
        assert!((sum.mean - whole.mean).abs() < 1e-12 && (sum.squares - whole.squares).abs() < 1e-9);
    }
}
