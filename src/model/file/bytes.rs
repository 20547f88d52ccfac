//! The bytes of a file: read where there are few, mapped where there are many.
//!
//! Files that are read are the owner's own whatever happens to them later, such as `cp` over a file that a
//! server has open. Mapped ones are shared by all processes that open them, and only what is used is read.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use memmap2::Mmap;

use super::at;
use crate::model::check::Flaw;
use crate::{Error, Result, memory};

/// Largest file that is read: 16 MiB take 5 ms.
pub const MAX_OWNED: usize = 16 << 20;

/// All bytes of a file; they begin where an 8-byte number may.
#[derive(Debug)]
pub enum Bytes {
    /// Read.
    Owned(Vec<u64>, usize),
    /// Mapped.
    Mapped(Mmap),
}

impl Bytes {
    /// Opens a file, and reads it if it has at most `max_owned` bytes.
    ///
    /// # Errors
    /// [`Error::ModelFile`] for a device, a pipe and the like; [`Error::Io`], also for a folder.
    pub fn open(path: &Path, max_owned: usize) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let facts = std::fs::metadata(path).map_err(io)?; // a pipe would be waited for if it was opened
        if facts.is_dir() {
            return Err(io(ErrorKind::IsADirectory.into()));
        }
        if !facts.is_file() {
            return Err(at(path)(Flaw::new("file", "expected a file, found a device, a pipe or a socket")));
        }
        let mut file = File::open(path).map_err(io)?;
        let length = file.metadata().map_err(io)?.len();
        let too_large = || Error::Memory { bytes: usize::MAX };
        let length = usize::try_from(length).map_err(|_| too_large())?;
        if length > max_owned {
            return map(&file).map(Self::Mapped).map_err(io);
        }
        let mut words = memory::zeros::<u64>(length.div_ceil(8));
        file.read_exact(&mut bytemuck::cast_slice_mut(&mut words)[..length]).map_err(io)?;
        Ok(Self::Owned(words, length))
    }

    /// The bytes.
    pub fn slice(&self) -> &[u8] {
        match self {
            Self::Owned(words, length) => &bytemuck::cast_slice(words)[..*length],
            Self::Mapped(map) => map,
        }
    }
}

/// Maps a file.
fn map(file: &File) -> std::io::Result<Mmap> {
    // SAFETY: nobody may change the mapped bytes. The package itself never writes to a file that has its
    // name: a new one takes over the name, and what is mapped stays as it was. Against others no program can
    // defend itself; `Model::load` says so. What is mapped for good are weights, of which every bit pattern
    // is a number; all else is copied, then checked and used.
    #[allow(unsafe_code)]
    unsafe {
        Mmap::map(file)
    }
}
