//! A model in a file that any reader of safetensors can read.
//!
//! ```text
//! file      = u64 length of the head | head | data                               all numbers little-endian
//! head      = {"__metadata__": {"format": "hinge-model", "format_version": "1", "metadata": ...,
//!              "model": ...},
//!              "<tensor>": {"dtype": ..., "shape": ..., "data_offsets": [begin, end]}, ...}, then spaces up
//!              to a multiple of 64 bytes of the file
//! data      = tensors, one after the other, those of 8 bytes a number first; the last one is `checksums`
//! model     = JSON: estimator, version, n_features, answer, probability, pairs, parameters, fitted, data
//! metadata  = JSON: the user's own
//!
//! coef              [n_vectors, n_weights] F32 or F64, or instead
//! coef_by_feature   [n_weights, n_vectors] F32 or F64 (a Fortran-ordered `coef_`), or instead
//! coef.indptr       [n_vectors + 1] I64, coef.indices [n_stored] I32 or I64,
//! coef.values       [n_stored] F32 or F64
//! intercept         [n_vectors] F64
//! classes           [n_classes] I64, F64 or BOOL, or instead classes.text, classes.ends
//! answer.threshold  [1] F64, answer.costs [n_classes, n_classes] F64
//! probability.slopes, probability.offsets [n_vectors] F64
//! probability.x, probability.y [points of all lines] F64, probability.ends [n_vectors] I64
//! probability.factor [1] F64
//! feature_names.text, feature_names.ends
//! encoder           [bytes] U8: JSON, what makes rows of a table, see `crate::encode::record`
//! encoder.text, encoder.ends: the terms it knows, as bytes; encoder.numbers [n] F64
//! checksums         [n_chunks + 2] U64
//! ```
//!
//! **Strings** are two tensors: `<name>.text`, U8, all of them in UTF-8 one after the other, and
//! `<name>.ends`, I64, where in bytes each one ends.
//!
//! **Long records.** A `model` or `metadata` of more than `MAX_TEXT` bytes is a tensor of bytes by that
//! name instead, so that a reader may refuse long heads before it parses one.
//!
//! **Checksums** are xxh3: of the head and its length, of each `CHUNK` bytes of the data in front of
//! `checksums`, and of all those sums. So no byte can change unnoticed, and a part of a large file is
//! proved without reading the rest: small files are read and proved whole when they are opened; of larger
//! ones, which are mapped, the weights are proved piece by piece when they are first used
//! ([`super::weights::Lender`]). Checksums tell damage, not forgery: whoever forges a file can compute
//! them, so that everything is checked apart from them, too, and nothing is allocated for a number that was
//! not compared with the bytes there are.
//!
//! **Versions.** A later version reads every older file. `format_version` rises when an older reader would
//! get a file wrong; it stands at the same place in every version, in front of all that a version may
//! change. Version 2 has an encoder; without one version 1 is written.
//!
//! [`Model::save`] and [`Model::load`] are the two ways in.

mod about;
mod bytes;
mod convert;
mod opened;
mod read;
mod sums;
#[cfg(test)]
mod tests;
mod text;
mod write;

use std::path::Path;

pub(crate) use self::convert::WeightSlices;
pub use self::convert::{Precision, Storage};
pub(crate) use self::write::save;
use super::Model;
use super::check::Flaw;
use crate::durable::target::{Kind, Replace};
use crate::{Error, Result};

/// How the head of every version begins; the version follows.
const BEGINNING: &[u8] = br#"{"__metadata__":{"format":"hinge-model","format_version":""#;
/// The newest version that is read; written for what older readers do not know, the encoder of a table.
const FORMAT: u32 = 2;
/// The version that is written otherwise.
const PLAIN_FORMAT: u32 = 1;
/// Longest head. Parsing takes up to 16 times as much memory.
const MAX_HEAD: usize = 8 << 20;
/// Longest JSON that is kept in the head.
const MAX_TEXT: usize = 1 << 20;
/// The data begin at a multiple of this, so that numbers lie where their type demands it.
const ALIGNMENT: usize = 64;

/// Model files, damaged ones too.
pub const KIND: Kind = Kind {
    name: "a model file",
    is_one: |head| head.get(8..).is_some_and(|head| head.starts_with(BEGINNING)),
};

/// How a model is saved.
#[derive(Clone, Copy, Debug, Default)]
pub struct SaveOptions {
    /// Of the weights; `None` keeps it.
    pub precision: Option<Precision>,
    /// Dense or sparse weights.
    pub storage: Storage,
    /// What the file may replace.
    pub replace: Replace,
}

impl Model {
    /// Writes the model to a file, which gets its name when it is whole. Weights that stay as they are, and
    /// those that change their precision only, are not copied.
    ///
    /// # Errors
    /// [`Error::Occupied`] for a path that must not be replaced; [`Error::ModelFile`] for a model whose parts
    /// contradict each other or that cannot be written as the options ask for; [`Error::Io`].
    pub fn save(&self, path: &Path, options: &SaveOptions) -> Result<()> {
        self.weights.verify()?;
        save(self, WeightSlices::of(&self.weights), &self.record.metadata, path, options)
    }

    /// Opens a file that [`Self::save`] wrote. Weights of a large file stay there.
    ///
    /// A file that is open must not be written to in place; to save over it is safe.
    ///
    /// # Errors
    /// [`Error::ModelFile`] for anything else than such a file, and for a damaged one; [`Error::Io`].
    pub fn load(path: &Path) -> Result<Self> {
        read::load(path, bytes::MAX_OWNED)
    }
}

/// A result that does not know the file.
type Checked<T> = std::result::Result<T, Flaw>;

/// A flaw in a file.
fn at(path: &Path) -> impl Fn(Flaw) -> Error {
    move |Flaw { field, reason }| Error::ModelFile { path: path.to_owned(), field, reason }
}
