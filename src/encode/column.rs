//! A column of a table whose encoding is settled, and what it makes of a value.

use std::ops::AddAssign;
use std::sync::Arc;

use super::alphabet::Alphabet;
use super::cell::{Cell, Said, ValueType};
use super::counts::TermList;
use super::key::{as_type, write_key, write_text};
use super::part::{Hasher, SparseRows, sort};
use super::settled::{Settled, SettledColumn};
use super::spec::{ColumnKind, ColumnSpec, Missing, Norm, NumberScale, Numbering, Weighting};
use super::terms::{TokenBuffer, Tokenizer};
use super::windows::{hash_ngrams, hash_windows};
use crate::matrix::simd::{self, Loop};
use crate::names::{NameKey, NameTable};
use crate::{Error, Result, memory};

/// Stands between the values of a cross: no text has it but by accident, so that ("a b", "c") and ("a",
/// "b c") are two combinations.
pub const SEPARATOR: u8 = 0x1f;
/// What follows the name of a column when a missing value is hashed.
const IS_MISSING: &[u8] = b" is missing";
/// Longest text: its places, in lower case up to three times as many, fit 32 bits.
const LONGEST_TEXT: usize = 1 << 30;
/// Terms whose slots are asked for before the first one is read: the latency of memory over the time of a
/// hash.
const AHEAD: usize = 16;

/// Where the names of a column go.
#[derive(Clone, Debug)]
pub enum Places {
    /// Into columns by their hash.
    Hashed(Hasher),
    /// To what was there in the fit.
    Counted {
        /// Number within the column of the table.
        table: NameTable,
        /// The first column of the result.
        first: u32,
    },
}

/// A column whose encoding is settled.
#[derive(Clone, Debug)]
pub struct FittedColumn {
    /// What was asked for.
    pub spec: ColumnSpec,
    /// What its values were in the fit.
    pub value_type: Option<ValueType>,
    /// Where names go.
    pub places: Places,
    /// The column of missing values, if there is one (for hashed names, any).
    pub missing: Option<(u32, f32)>,
    /// What numbers are divided by.
    pub scale: f64,
    /// Where inner bins begin.
    pub edges: Vec<f64>,
    /// What the values of terms are multiplied by, in the order of their numbers.
    pub factors: Option<Vec<f64>>,
    /// What was there in the fit, sorted; nothing where names are hashed.
    pub terms: TermList,
    /// Cuts texts into terms.
    pub tokenizer: Option<Tokenizer>,
    /// `name=`, and so on: what stands in front of a name when it is hashed.
    prefix: Vec<u8>,
}

/// What one value of a category becomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coded {
    /// An entry.
    Entry(u32, f32),
    /// A missing value.
    Missing,
    /// A value that was not there in the fit.
    Unseen,
}

/// How often values were not as in the fit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Drift {
    /// Categories and terms that were not there.
    pub unseen: u64,
    /// Values that are missing.
    pub missing: u64,
}

impl AddAssign for Drift {
    fn add_assign(&mut self, more: Self) {
        self.unseen += more.unseen;
        self.missing += more.missing;
    }
}

/// Memory that is used again for the next value.
#[derive(Debug, Default)]
pub struct Buffers {
    tokens: TokenBuffer,
    numbers: Vec<u32>,
    spare: Vec<u32>,
    counts: Vec<i32>,
    values: Vec<f64>,
    keys: Vec<NameKey>,
    name: Vec<u8>,
    /// Of the column at hand; whoever reads it sets it back.
    pub drift: Drift,
}

impl FittedColumn {
    /// A column whose first column of the result is `first`, where they are counted.
    ///
    /// # Errors
    /// [`Error::Encoder`] for a term that is there twice, [`Error::Shape`] for 2^31 terms or more.
    pub fn new(
        column: SettledColumn,
        numbering: Numbering,
        alphabet: Option<&Arc<Alphabet>>,
        first: u32,
    ) -> Result<Self> {
        let SettledColumn { spec, value_type, has_missing, found } = column;
        let Settled { terms, factors, scale, edges } = found;
        let places = match numbering {
            Numbering::Hashed { n_features, alternate_sign } => {
                Places::Hashed(Hasher::new(n_features, alternate_sign))
            }
            Numbering::Counted => Places::Counted { table: terms.table()?, first },
        };
        if matches!(&places, Places::Counted { table, .. } if table.len() != terms.len()) {
            let reason = format!("column {:?} of the encoder: a term is there twice", spec.name);
            return Err(Error::Encoder { reason });
        }
        let prefix = match spec.kind.weighting() {
            Some(weighting) => weighting.prefix.clone().into_bytes(),
            None => [spec.name.as_bytes(), b"="].concat(),
        };
        let tokenizer = Tokenizer::of(&spec.kind, alphabet);
        let mut fitted =
            Self { spec, value_type, places, missing: None, scale, edges, factors, terms, tokenizer, prefix };
        fitted.missing = match (&fitted.places, fitted.spec.missing) {
            (_, Missing::Zero) => None,
            (Places::Hashed(hasher), Missing::Own) => {
                Some(hasher.entry(&[fitted.spec.name.as_bytes(), IS_MISSING].concat()))
            }
            (Places::Counted { .. }, Missing::Own) => has_missing.then(|| (first + fitted.width(), 1.0)),
        };
        Ok(fitted)
    }

    /// Columns of the result that a counted column takes up.
    pub fn width(&self) -> u32 {
        let own = match (&self.spec.kind, &self.places) {
            (ColumnKind::Numeric(NumberScale::Bins), _) => self.edges.len() as u32 + 1,
            (ColumnKind::Numeric(_), _) => 1,
            (_, Places::Counted { table, .. }) => table.len() as u32,
            (_, Places::Hashed(_)) => 0,
        };
        own + u32::from(self.missing.is_some())
    }

    /// Appends what a value becomes to the last row of `out`, whose entries stay in order.
    ///
    /// # Errors
    /// A value that the column cannot have, in words.
    pub fn encode(&self, cell: Cell<'_>, scratch: &mut Buffers, out: &mut SparseRows) -> Said<()> {
        if cell == Cell::Missing {
            if let Some((column, value)) = self.entry(Coded::Missing, scratch) {
                out.push(column, value);
            }
            return Ok(());
        }
        match &self.spec.kind {
            ColumnKind::Numeric(NumberScale::Bins) => self.bin(cell, out),
            ColumnKind::Numeric(_) => self.number(cell, out),
            ColumnKind::Categorical { .. } | ColumnKind::Cross { .. } => {
                let coded = self.code(cell, scratch)?;
                if let Some((column, value)) = self.entry(coded, scratch) {
                    out.push(column, value);
                }
                Ok(())
            }
            ColumnKind::Text(_, weighting) | ColumnKind::Tokens(weighting) => {
                self.terms(Terms::of(&self.spec.kind, cell)?, weighting, scratch, out);
                Ok(())
            }
        }
    }

    /// The entry of a category, if it has one; counts what was not as in the fit.
    #[inline]
    pub fn entry(&self, coded: Coded, scratch: &mut Buffers) -> Option<(u32, f32)> {
        match coded {
            Coded::Entry(column, value) => Some((column, value)),
            Coded::Missing => {
                scratch.drift.missing += 1;
                self.missing
            }
            Coded::Unseen => {
                scratch.drift.unseen += 1;
                None
            }
        }
    }

    /// What a category becomes.
    ///
    /// # Errors
    /// A value that was not there in the fit, where that is an error.
    pub fn code(&self, cell: Cell<'_>, scratch: &mut Buffers) -> Said<Coded> {
        if cell == Cell::Missing {
            return Ok(Coded::Missing);
        }
        let name = &mut scratch.name;
        name.clear();
        match &self.places {
            Places::Hashed(hasher) => {
                name.extend_from_slice(&self.prefix);
                if !write_text(self.as_in_fit(cell), name) {
                    return Err(not("a single value", cell));
                }
                let (column, sign) = hasher.entry(name);
                Ok(Coded::Entry(column, sign))
            }
            Places::Counted { table, first } => {
                if matches!(cell, Cell::Strings(_)) {
                    return Err(not("a single value", cell));
                }
                let is_of_type = self.value_type.is_some_and(|of| write_key(cell, of, name));
                match is_of_type.then(|| table.column(NameKey::of_bytes(name))).flatten() {
                    Some(column) => Ok(Coded::Entry(first + column, 1.0)),
                    None if matches!(self.spec.kind, ColumnKind::Categorical { refuses_unknown: true }) => {
                        Err(format!("{} was not there in the fit", shown(cell)))
                    }
                    None => Ok(Coded::Unseen),
                }
            }
        }
    }

    fn as_in_fit<'a>(&self, cell: Cell<'a>) -> Cell<'a> {
        self.value_type.map_or(cell, |of| as_type(cell, of))
    }

    /// Calls `note` with each name that a value stands for, and the entry it becomes: every term once;
    /// those that share a hashed column have its value each.
    ///
    /// # Errors
    /// As for [`Self::encode`].
    pub fn explain(&self, cell: Cell<'_>, note: &mut dyn FnMut(String, u32, f32)) -> Said<()> {
        let (mut scratch, mut part) = (Buffers::default(), SparseRows::default());
        self.encode(cell, &mut scratch, &mut part)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut entry = |name: String, column: u32| {
            if let Ok(at) = part.indices.binary_search(&(column as i32)) {
                note(name, column, part.values[at]);
            }
        };
        if cell == Cell::Missing || self.spec.kind.weighting().is_none() {
            let mut name = Vec::new();
            write_text(self.as_in_fit(cell), &mut name);
            part.indices.iter().for_each(|column| entry(text(&name), *column as u32));
            return Ok(());
        }
        let terms = Terms::of(&self.spec.kind, cell)?;
        let mut names = Vec::new();
        terms.each(self.tokenizer.as_ref(), &mut scratch.tokens, |term| names.push(term.to_vec()));
        names.sort_unstable();
        names.dedup();
        for name in names {
            match &self.places {
                Places::Hashed(hasher) => {
                    entry(text(&name), hasher.entry(&[&self.prefix, &*name].concat()).0)
                }
                Places::Counted { table, first } => {
                    if let Some(number) = table.column(NameKey::of_bytes(&name)) {
                        entry(text(&name), first + number);
                    }
                }
            }
        }
        Ok(())
    }

    fn number(&self, cell: Cell<'_>, out: &mut SparseRows) -> Said<()> {
        let value = number(cell)?;
        let scaled = (value / self.scale) as f32;
        if !scaled.is_finite() {
            return Err(format!("{value} is too large for single precision"));
        }
        if scaled != 0.0 {
            let (column, sign) = match &self.places {
                Places::Hashed(hasher) => hasher.entry(self.spec.name.as_bytes()),
                Places::Counted { first, .. } => (*first, 1.0),
            };
            out.push(column, sign * scaled);
        }
        Ok(())
    }

    fn bin(&self, cell: Cell<'_>, out: &mut SparseRows) -> Said<()> {
        let value = number(cell)?;
        let bin = self.edges.partition_point(|edge| *edge <= value);
        let (column, sign) = match &self.places {
            Places::Hashed(hasher) => hasher.entry(format!("{}=bin {bin}", self.spec.name).as_bytes()),
            Places::Counted { first, .. } => (first + bin as u32, 1.0),
        };
        out.push(column, sign);
        Ok(())
    }

    fn terms(&self, terms: Terms<'_>, weighting: &Weighting, scratch: &mut Buffers, out: &mut SparseRows) {
        scratch.numbers.clear();
        let shift = match &self.places {
            Places::Hashed(hasher) => {
                self.hash_terms(terms, hasher, scratch);
                1
            }
            Places::Counted { table, .. } => {
                self.find_terms(terms, table, scratch);
                0
            }
        };
        sort(&mut scratch.numbers, &mut scratch.spare);
        let first = if let Places::Counted { first, .. } = &self.places { *first } else { 0 };
        let start = out.indices.len();
        count_runs(&scratch.numbers, shift, &mut out.indices, &mut scratch.counts);
        let columns = &mut out.indices[start..];
        let values = &mut scratch.values;
        values.clear();
        if weighting.binary || weighting.sublinear || self.factors.is_some() {
            let weight =
                |(count, number): (&i32, &i32)| self.weight(f64::from(*count), *number as u32, weighting);
            memory::extend(values, scratch.counts.iter().zip(&*columns).map(weight));
            let divisor = norm(values, weighting.norm);
            memory::extend(&mut out.values, values.iter().map(|value| (value / divisor) as f32));
        } else {
            let divisor = norm_of_counts(&scratch.counts, weighting.norm);
            simd::run(Divided { counts: &scratch.counts, divisor, out: &mut out.values });
        }
        columns.iter_mut().for_each(|column| *column += first as i32);
    }

    /// The value of a term, before the norm.
    #[inline]
    fn weight(&self, count: f64, number: u32, weighting: &Weighting) -> f64 {
        let mut value = if weighting.binary { 1.0 } else { count };
        if weighting.sublinear {
            value = value.ln() + 1.0;
        }
        self.factors.as_ref().map_or(value, |factors| value * factors[number as usize])
    }

    fn hash_terms(&self, terms: Terms<'_>, hasher: &Hasher, scratch: &mut Buffers) {
        let Buffers { tokens, numbers, name, .. } = scratch;
        if self.prefix.is_empty() {
            if let (Terms::Text(text), Some(tokenizer)) = (terms, &self.tokenizer) {
                if let Some((text, [least, most])) = tokenizer.windows(text, tokens) {
                    (least..=most).for_each(|n| hash_windows(hasher, text, n, numbers));
                    return;
                }
                if let Some((text, spans, sizes)) = tokenizer.ngrams(text, tokens) {
                    hash_ngrams(hasher, text, spans, sizes, numbers);
                    return;
                }
            }
            terms.each(self.tokenizer.as_ref(), tokens, |term| memory::push(numbers, hasher.packed(term)));
        } else {
            terms.each(self.tokenizer.as_ref(), tokens, |term| {
                name.clear();
                name.extend_from_slice(&self.prefix);
                name.extend_from_slice(term);
                memory::push(numbers, hasher.packed(name));
            });
        }
    }

    /// The numbers of the terms that were there in the fit. Slots are asked for some terms ahead.
    fn find_terms(&self, terms: Terms<'_>, table: &NameTable, scratch: &mut Buffers) {
        let Buffers { tokens, numbers, keys, drift, .. } = scratch;
        keys.clear();
        terms.each(self.tokenizer.as_ref(), tokens, |term| memory::push(keys, NameKey::of_bytes(term)));
        keys.iter().take(AHEAD).for_each(|key| table.prefetch(*key));
        for (k, key) in keys.iter().enumerate() {
            if let Some(ahead) = keys.get(k + AHEAD) {
                table.prefetch(*ahead);
            }
            match table.column(*key) {
                Some(number) => memory::push(numbers, number),
                None => drift.unseen += 1,
            }
        }
    }
}

/// Appends the different numbers of a sorted list to `found`, without the `shift` lowest bits, and counts
/// how often each is there; with a bit that is shifted out, those without it count negative. Whether the
/// next number is another one is no branch: nobody could predict it.
fn count_runs(numbers: &[u32], shift: u32, found: &mut Vec<i32>, counts: &mut Vec<i32>) {
    counts.clear();
    let Some(first) = numbers.first() else { return };
    let start = found.len();
    memory::resize(found, start + numbers.len(), 0);
    memory::resize(counts, numbers.len(), 0);
    let (list, sums) = (&mut found[start..], &mut counts[..]);
    let (mut at, mut last) = (0, first >> shift);
    for packed in numbers {
        let number = packed >> shift;
        at += usize::from(number != last);
        last = number;
        list[at] = number as i32;
        sums[at] += if shift == 0 || packed & 1 == 1 { 1 } else { -1 };
    }
    found.truncate(start + at + 1);
    counts.truncate(at + 1);
}

/// What terms come from.
#[derive(Clone, Copy)]
pub enum Terms<'a> {
    /// A text that is cut.
    Text(&'a str),
    /// A list, none of which is missing.
    List(&'a [Option<&'a str>]),
}

impl<'a> Terms<'a> {
    /// The terms of a value of a column that has some.
    ///
    /// # Errors
    /// A value that such a column cannot have, in words.
    pub fn of(kind: &ColumnKind, cell: Cell<'a>) -> Said<Self> {
        match (kind, cell) {
            (ColumnKind::Tokens(_), Cell::Strings(list)) => match list.iter().position(Option::is_none) {
                Some(k) => Err(format!("entry {k} of the list is missing: leave it out, or name it")),
                None => Ok(Self::List(list)),
            },
            (ColumnKind::Tokens(_), other) => Err(not("a list of strings", other)),
            (_, Cell::Text(text)) if text.len() <= LONGEST_TEXT => Ok(Self::Text(text)),
            (_, Cell::Text(text)) => {
                Err(format!("the text has {} bytes, at most {LONGEST_TEXT} are cut into terms", text.len()))
            }
            (_, other) => Err(not("a string", other)),
        }
    }

    /// Calls `f` with every term.
    #[inline]
    pub fn each(self, tokenizer: Option<&Tokenizer>, buffer: &mut TokenBuffer, mut f: impl FnMut(&[u8])) {
        match (self, tokenizer) {
            (Self::Text(text), Some(tokenizer)) => tokenizer.each(text, buffer, f),
            (Self::Text(text), None) => f(text.as_bytes()),
            (Self::List(list), _) => list.iter().flatten().for_each(|term| f(term.as_bytes())),
        }
    }
}

/// The number of a cell.
///
/// # Errors
/// For what is no finite number.
pub fn number(cell: Cell<'_>) -> Said<f64> {
    match cell {
        Cell::Whole(value) => Ok(value as f64),
        Cell::Truth(value) => Ok(f64::from(u8::from(value))),
        Cell::Real(value) if value.is_finite() => Ok(value),
        Cell::Real(value) => Err(format!("{value} is not finite")),
        other => Err(not("a number", other)),
    }
}

fn norm(values: &[f64], norm: Norm) -> f64 {
    let norm = match norm {
        Norm::None => 1.0,
        Norm::L1 => values.iter().map(|value| value.abs()).sum(),
        Norm::L2 => values.iter().map(|value| value * value).sum::<f64>().sqrt(),
    };
    if norm == 0.0 { 1.0 } else { norm }
}

/// [`norm`] of whole numbers whose sum is below 2^31, as those of a text are.
fn norm_of_counts(counts: &[i32], norm: Norm) -> f64 {
    let norm = match norm {
        Norm::None => 1.0,
        Norm::L1 => counts.iter().map(|count| i64::from(count.abs())).sum::<i64>() as f64,
        Norm::L2 => (counts.iter().map(|count| i64::from(*count).pow(2)).sum::<i64>() as f64).sqrt(),
    };
    if norm == 0.0 { 1.0 } else { norm }
}

/// Appends counts divided by a norm.
struct Divided<'a> {
    counts: &'a [i32],
    divisor: f64,
    out: &'a mut Vec<f32>,
}

impl Loop for Divided<'_> {
    type Output = ();
    const IS_WIDE: bool = true;

    #[inline(always)]
    fn run(self) {
        let Self { counts, divisor, out } = self;
        memory::reserve(out, counts.len());
        out.extend(counts.iter().map(|count| (f64::from(*count) / divisor) as f32));
    }
}

/// "expected a number, got 'abc'".
pub fn not(expected: &str, cell: Cell<'_>) -> String {
    format!("{expected} was expected, got {}", shown(cell))
}

/// A value for a message, cut short.
pub fn shown(cell: Cell<'_>) -> String {
    const LONGEST: usize = 60;
    match cell {
        Cell::Text(text) if text.chars().count() > LONGEST => {
            format!("{:?} and so on", text.chars().take(LONGEST).collect::<String>())
        }
        Cell::Text(text) => format!("{text:?}"),
        Cell::Whole(value) => value.to_string(),
        Cell::Real(value) => value.to_string(),
        Cell::Truth(value) => value.to_string(),
        Cell::Missing => "a missing value".into(),
        Cell::Strings(list) => format!("a list of {} strings", list.len()),
    }
}
