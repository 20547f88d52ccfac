//! An open file: its bytes, which of them are proved, and weights that stay in it.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::SafeTensors;
use safetensors::tensor::Metadata;

use super::bytes::Bytes;
use super::convert::Precision;
use super::sums::Checksums;
use super::{ALIGNMENT, BEGINNING, Checked, FORMAT, MAX_HEAD, at};
use crate::Result;
use crate::labels::scores::FloatSlice;
use crate::model::check::Flaw;
use crate::model::weights::Lender;

/// A file whose head and checksums are proved.
#[derive(Debug)]
pub struct Opened {
    path: PathBuf,
    bytes: Bytes,
    /// Where the data begin.
    begin: usize,
    sums: Checksums,
    /// Where each tensor ends, with its name, in order.
    names: Vec<(usize, String)>,
}

impl Opened {
    /// Takes the bytes of a file, and parses the head.
    ///
    /// # Errors
    /// Another file; one of a newer format; a damaged head.
    pub fn new(path: &Path, bytes: Bytes) -> Checked<(Self, Metadata)> {
        let all = bytes.slice();
        check_version(all)?;
        let begin = data_begin(all)?;
        let sums = Checksums::new(&all[..begin], &all[begin..])?;
        // Only a head that is what somebody wrote is parsed: of the damaged ones none.
        let parsed = SafeTensors::read_metadata(all);
        let (_, metadata) = parsed.map_err(|error| Flaw::new("head", error.to_string()))?;
        let info = metadata.info("checksums").ok_or_else(|| Flaw::new("checksums", "there are none"))?;
        if info.data_offsets != (sums.n_bytes(), all.len() - begin) {
            return Err(Flaw::new("checksums", "they are not at the end of the data"));
        }
        let mut names: Vec<_> =
            metadata.tensors().into_iter().map(|(name, info)| (info.data_offsets.1, name)).collect();
        names.sort_unstable();
        Ok((Self { path: path.to_owned(), bytes, begin, sums, names }, metadata))
    }

    /// The data.
    pub fn data(&self) -> &[u8] {
        &self.bytes.slice()[self.begin..]
    }

    /// Whether the file was read whole, rather than mapped.
    pub fn is_owned(&self) -> bool {
        matches!(self.bytes, Bytes::Owned(..))
    }

    /// Proves a range of the data.
    ///
    /// # Errors
    /// Damage, with the tensor that has it.
    #[inline]
    pub fn prove(&self, range: Range<usize>) -> Checked<()> {
        self.sums.prove(self.data(), range).map_err(|offset| self.damage(offset))
    }

    /// Whether all data are proved.
    pub fn is_proved(&self) -> bool {
        self.sums.is_whole()
    }

    /// Proves all data.
    ///
    /// # Errors
    /// As of [`Self::prove`].
    pub fn prove_all(&self) -> Checked<()> {
        self.prove(0..self.sums.n_bytes())
    }

    #[cold]
    fn damage(&self, offset: usize) -> Flaw {
        let tensor = self.names.iter().find(|(end, _)| offset < *end);
        let name = tensor.map_or("data", |(_, name)| name);
        Flaw::new(name, format!("the data are damaged near byte {} of the file", self.begin + offset))
    }
}

/// Refuses what no model file begins with, and files of a newer format.
fn check_version(bytes: &[u8]) -> Checked<()> {
    let rest = bytes.get(8..).and_then(|head| head.strip_prefix(BEGINNING));
    let rest = rest.ok_or_else(|| {
        let has_head =
            bytes.first_chunk().is_some_and(|length| u64::from_le_bytes(*length) <= MAX_HEAD as u64);
        let is_other = has_head && SafeTensors::read_metadata(bytes).is_ok();
        let what = if is_other { "a safetensors file, but " } else { "" };
        Flaw::new("format", format!("it is {what}not a hinge model"))
    })?;
    let digits = rest.iter().take(10).take_while(|byte| byte.is_ascii_digit()).count();
    let version = std::str::from_utf8(&rest[..digits]).ok().and_then(|digits| digits.parse::<u64>().ok());
    match version {
        Some(version) if version > u64::from(FORMAT) => Err(Flaw::new(
            "format_version",
            format!(
                "{version}: written by a newer version of hinge, this one reads up to {FORMAT}: update hinge"
            ),
        )),
        Some(1..) if rest.get(digits) == Some(&b'"') => Ok(()),
        _ => Err(Flaw::new("format_version", "it is damaged")),
    }
}

/// Where the data begin.
fn data_begin(bytes: &[u8]) -> Checked<usize> {
    let length = bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    let begin = usize::try_from(length).ok().filter(|length| *length <= MAX_HEAD).map(|length| length + 8);
    begin.filter(|begin| *begin <= bytes.len() && begin % ALIGNMENT == 0).ok_or_else(|| {
        let n_bytes = bytes.len();
        Flaw::new(
            "head",
            format!("its length, {length} bytes, is damaged, or the file of {n_bytes} is cut off"),
        )
    })
}

/// Weights in a file.
#[derive(Debug)]
pub struct Lent {
    file: Arc<Opened>,
    range: Range<usize>,
    precision: Precision,
}

impl Lent {
    /// The numbers in a range of the data, which must begin where numbers may lie.
    ///
    /// # Errors
    /// They do not lie so.
    pub fn new(file: &Arc<Opened>, name: &str, range: Range<usize>, precision: Precision) -> Checked<Self> {
        let bytes = &file.data()[range.clone()];
        let fits = match precision {
            Precision::Single => bytemuck::try_cast_slice::<u8, f32>(bytes).is_ok(),
            Precision::Double => bytemuck::try_cast_slice::<u8, f64>(bytes).is_ok(),
        };
        if !fits {
            return Err(Flaw::new(name, format!("it begins at byte {} of the data, unaligned", range.start)));
        }
        Ok(Self { file: file.clone(), range, precision })
    }
}

impl Lender for Lent {
    fn numbers(&self) -> FloatSlice<'_> {
        let bytes = &self.file.data()[self.range.clone()];
        match self.precision {
            Precision::Single => FloatSlice::F32(bytemuck::cast_slice(bytes)),
            Precision::Double => FloatSlice::F64(bytemuck::cast_slice(bytes)),
        }
    }

    fn verify(&self, range: Range<usize>) -> Result<()> {
        let size = match self.precision {
            Precision::Single => 4,
            Precision::Double => 8,
        };
        let place = |k: usize| (self.range.start + size * k).min(self.range.end);
        self.file.prove(place(range.start)..place(range.end)).map_err(at(&self.file.path))
    }
    fn is_verified(&self) -> bool {
        self.file.is_proved()
    }
}
