//! What an encoder shall do with each column of a table: the part of it that people write and read.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Most columns that an encoder gives: SciPy's 32-bit indices.
pub const MAX_FEATURES: u32 = i32::MAX as u32;

/// How the columns of the result get their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Numbering {
    /// By a hash of the name, all columns of the table in one space of `n_features`.
    Hashed {
        /// Columns of the result.
        n_features: u32,
        /// Whether half of the names count negative, so that collisions cancel on average.
        alternate_sign: bool,
    },
    /// By what was there in the fit: a range of columns for each column of the table.
    Counted,
}

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnSpec {
    /// Its name; for a cross the name of the cross.
    pub name: String,
    /// What a missing value becomes.
    pub missing: Missing,
    /// What its values are.
    pub kind: ColumnKind,
}

/// What a missing value becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// A 1 in a column of its own.
    Own,
    /// Nothing.
    Zero,
}

/// What the values of a column are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ColumnKind {
    /// Numbers.
    Numeric(NumberScale),
    /// One of many values.
    Categorical {
        /// Whether a value that was not there in the fit is an error.
        refuses_unknown: bool,
    },
    /// Lists of strings.
    Tokens(Weighting),
    /// Strings of words.
    Text(TextSpec, Weighting),
    /// One of many combinations of the values of other columns.
    Cross {
        /// The columns of the table.
        columns: Vec<String>,
    },
}

/// What becomes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NumberScale {
    /// It stays as it is.
    None,
    /// It is divided by the standard deviation.
    Standard,
    /// It is divided by the largest absolute value.
    Maxabs,
    /// It becomes a 1 in the column of its bin.
    Bins,
}

/// What counts as one token of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Analyzer {
    /// Runs of at least two characters of words: `(?u)\b\w\w+\b`.
    Words,
    /// Runs of characters of words: `(?u)\b\w+\b`.
    ShortWords,
    /// What stands between white space: `\S+`.
    Blanks,
    /// Characters; white space of two characters or more counts as one blank.
    Chars,
    /// Characters within what stands between white space, with a blank in front and behind.
    CharsInWords,
}

/// How a text falls into terms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextSpec {
    /// Its tokens.
    pub analyzer: Analyzer,
    /// Least and largest number of tokens in a term.
    pub ngrams: (usize, usize),
    /// Whether the text is first written in lower case.
    pub lowercase: bool,
    /// Words that are left out, as they stand after that.
    pub stop_words: Vec<String>,
}

/// From counts of terms to values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weighting {
    /// Every count is 1.
    pub binary: bool,
    /// A count becomes 1 plus its logarithm.
    pub sublinear: bool,
    /// What the values of a row, of this column of the table, are divided by.
    pub norm: Norm,
    /// What stands in front of a term when it is hashed.
    pub prefix: String,
}

/// A norm of the values of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Norm {
    /// They stay as they are.
    None,
    /// The sum of absolute values.
    L1,
    /// The root of the sum of squares.
    L2,
}

impl ColumnKind {
    /// How values of a term column become numbers.
    pub fn weighting(&self) -> Option<&Weighting> {
        match self {
            Self::Tokens(weighting) | Self::Text(_, weighting) => Some(weighting),
            _ => None,
        }
    }

    /// Whether its values are looked up in a vocabulary, or hashed.
    pub fn has_names(&self) -> bool {
        !matches!(self, Self::Numeric(_))
    }
}

/// Checks what the types leave open.
///
/// # Errors
/// [`Error::Encoder`] with the name of the column.
pub fn check(numbering: Numbering, columns: &[ColumnSpec]) -> Result<()> {
    let refused = |reason: String| Err(Error::Encoder { reason });
    if let Numbering::Hashed { n_features, .. } = numbering
        && !(1..=MAX_FEATURES).contains(&n_features)
    {
        return refused(format!("n_features must be from 1 to {MAX_FEATURES}, got {n_features}"));
    }
    let mut names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return refused(format!("the column {:?} is there twice", twice[0]));
    }
    for ColumnSpec { name, kind, .. } in columns {
        match kind {
            ColumnKind::Text(TextSpec { ngrams: (least, most), .. }, _) if *least < 1 || least > most => {
                return refused(format!(
                    "column {name:?}: ngrams must be (least, most), 1 <= least <= most, got ({least}, {most})"
                ));
            }
            ColumnKind::Cross { columns } if columns.len() < 2 => {
                return refused(format!(
                    "column {name:?}: a cross needs two columns or more, got {columns:?}"
                ));
            }
            _ => {}
        }
    }
    Ok(())
}
