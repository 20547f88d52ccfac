//! An encoder as it is saved: a head in JSON, and its long lists.
//!
//! ```text
//! head      {"version": 1, "numbering": ..., "alphabet": ..., "parameters": ...,
//!            "columns": [{"spec": ..., "value_type": ..., "n_terms": ..., "has_factors": ..., "scale": ...,
//!                         "n_edges": ..., "has_missing": ...}, ...]}
//! terms     of all columns, one after the other, each column's in the order of their numbers
//! numbers   of all columns: factors, then edges
//! ```
//!
//! What comes from a file is checked here, whatever its checksum says: a damaged encoder is an error, never
//! wrong columns.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::alphabet::{Alphabet, AlphabetRecord};
use super::cell::ValueType;
use super::counts::TermList;
use super::encoder::Encoder;
use super::settled::{Settled, SettledColumn};
use super::spec::{ColumnKind, ColumnSpec, Missing, NumberScale, Numbering, check};
use crate::{Error, Result};

/// The version that is written, the newest that is read.
pub const VERSION: u32 = 1;

/// Largest inverse document frequency, 1 + ln n for a term in one row of n: that of 2^63 rows, rounded up.
const MAX_FACTOR: f64 = 64.0;

/// An encoder as it is saved.
#[derive(Clone, Debug, PartialEq)]
pub struct EncoderRecord {
    /// JSON.
    pub head: String,
    /// Terms of all columns.
    pub terms: TermList,
    /// Factors and edges of all columns.
    pub numbers: Vec<f64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EncoderHead {
    version: u32,
    numbering: Numbering,
    alphabet: Option<AlphabetRecord>,
    columns: Vec<ColumnRecord>,
    /// Those of the facade, for people and to make it again.
    parameters: Map<String, Value>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnRecord {
    spec: ColumnSpec,
    value_type: Option<ValueType>,
    n_terms: usize,
    has_factors: bool,
    scale: f64,
    n_edges: usize,
    has_missing: bool,
}

impl Encoder {
    /// What is saved.
    pub fn record(&self, parameters: &Map<String, Value>) -> EncoderRecord {
        let (mut terms, mut numbers) = (TermList::default(), Vec::new());
        for column in &self.columns {
            (0..column.terms.len()).for_each(|k| terms.push(column.terms.get(k)));
            numbers.extend(column.factors.iter().flatten());
            numbers.extend(&column.edges);
        }
        let columns = self.columns.iter().map(|column| ColumnRecord {
            spec: column.spec.clone(),
            value_type: column.value_type,
            n_terms: column.terms.len(),
            has_factors: column.factors.is_some(),
            scale: column.scale,
            n_edges: column.edges.len(),
            has_missing: column.missing.is_some(),
        });
        let head = EncoderHead {
            version: VERSION,
            numbering: self.numbering,
            alphabet: self.alphabet.as_ref().map(|alphabet| alphabet.record().clone()),
            columns: columns.collect(),
            parameters: parameters.clone(),
        };
        // Maps of strings and finite numbers always become JSON.
        EncoderRecord { head: serde_json::to_string(&head).unwrap_or_default(), terms, numbers }
    }
}

impl EncoderRecord {
    /// The encoder, and the parameters of the facade.
    ///
    /// # Errors
    /// [`Error::Encoder`] for a record that is not whole, contradicts itself or is of a newer version.
    pub fn encoder(&self) -> Result<(Encoder, Map<String, Value>)> {
        #[derive(Deserialize)]
        struct VersionOnly {
            version: u32,
        }
        let json = |error: serde_json::Error| bad(format!("the head of the encoder cannot be read: {error}"));
        let VersionOnly { version } = serde_json::from_str(&self.head).map_err(json)?;
        if version > VERSION {
            return Err(bad(format!(
                "the encoder is of version {version}, this hinge reads up to {VERSION}"
            )));
        }
        let head: EncoderHead = serde_json::from_str(&self.head).map_err(json)?;
        let specs: Vec<ColumnSpec> = head.columns.iter().map(|column| column.spec.clone()).collect();
        check(head.numbering, &specs)?;
        let alphabet = head.alphabet.map(Alphabet::new).transpose()?.map(Arc::new);
        let mut reading = Reading { record: self, term: 0, number: 0 };
        let columns = head
            .columns
            .into_iter()
            .map(|column| reading.column(column, head.numbering, alphabet.is_some()))
            .collect::<Result<Vec<_>>>()?;
        if reading.term != self.terms.len() || reading.number != self.numbers.len() {
            return Err(bad("the encoder has more terms or numbers than its columns".into()));
        }
        Ok((Encoder::new(head.numbering, columns, alphabet)?, head.parameters))
    }
}

/// How far a record has been read.
struct Reading<'a> {
    record: &'a EncoderRecord,
    term: usize,
    number: usize,
}

impl Reading<'_> {
    fn column(
        &mut self,
        column: ColumnRecord,
        numbering: Numbering,
        has_alphabet: bool,
    ) -> Result<SettledColumn> {
        let ColumnRecord { spec, value_type, n_terms, has_factors, scale, n_edges, has_missing } = column;
        let name = spec.name.clone();
        let broken = |what: &str| bad(format!("column {name:?} of the encoder: {what}"));
        let is_counted = numbering == Numbering::Counted;
        if matches!(spec.kind, ColumnKind::Text(..)) && !has_alphabet {
            return Err(broken("texts need an alphabet"));
        }
        if n_terms > 0 && !(is_counted && spec.kind.has_names())
            || has_factors && spec.kind.weighting().is_none()
        {
            return Err(broken("there are terms or factors where none belong"));
        }
        if n_edges > 0 && spec.kind != ColumnKind::Numeric(NumberScale::Bins)
            || !(scale.is_finite() && scale > 0.0)
        {
            return Err(broken("its scale or its bins cannot be"));
        }
        if has_missing && is_counted && spec.missing == Missing::Zero {
            return Err(broken("missing values have a column and have none"));
        }
        let terms = self
            .terms(n_terms, spec.kind.weighting().map_or(value_type, |_| Some(ValueType::Text)))
            .ok_or_else(|| broken("its terms are damaged"))?;
        let is_factor = |factor: &f64| (0.0..=MAX_FACTOR).contains(factor);
        let factors = has_factors.then(|| {
            let factors = self.numbers(n_terms).filter(|factors| factors.iter().all(is_factor));
            factors.ok_or_else(|| broken("its factors are damaged"))
        });
        let edges = self
            .numbers(n_edges)
            .filter(|edges| edges.is_sorted())
            .ok_or_else(|| broken("its bins are damaged"))?;
        let found = Settled { terms, factors: factors.transpose()?, scale, edges };
        Ok(SettledColumn { spec, value_type, has_missing, found })
    }

    /// The next terms, if they are there and what they should be.
    fn terms(&mut self, n: usize, of: Option<ValueType>) -> Option<TermList> {
        let all = &self.record.terms;
        let end = self.term.checked_add(n).filter(|end| *end <= all.len())?;
        let mut terms = TermList::default();
        let mut start = if self.term == 0 { 0 } else { all.ends[self.term - 1] };
        for &stop in &all.ends[self.term..end] {
            let term = all.text.get(usize::try_from(start).ok()?..usize::try_from(stop).ok()?)?;
            super::key::read_key(term, of?)?;
            terms.push(term);
            start = stop;
        }
        self.term = end;
        Some(terms)
    }

    fn numbers(&mut self, n: usize) -> Option<Vec<f64>> {
        let end = self.number.checked_add(n)?;
        let numbers = self.record.numbers.get(self.number..end)?;
        self.number = end;
        numbers.iter().all(|number| number.is_finite()).then(|| numbers.to_vec())
    }
}

fn bad(reason: String) -> Error {
    Error::Encoder { reason }
}
