//! A file without a name, for numbers for which there is no room in memory: it is gone with the process,
//! however that ends. Errors name its folder.

use std::fs::File;
use std::io::Error as IoError;
use std::path::{Path, PathBuf};

use super::file_at;
use crate::{Error, Result};

/// The file.
pub struct NamelessFile {
    file: File,
    folder: PathBuf,
}

impl NamelessFile {
    /// An empty one in a folder.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn empty(folder: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(folder).map_err(in_folder(folder))?;
        Ok(Self { file, folder: folder.to_owned() })
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// So many bytes; new ones are zero.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn set_len(&self, bytes: u64) -> Result<()> {
        self.file.set_len(bytes).map_err(in_folder(&self.folder))
    }

    /// Fills `bytes` with what there is from `offset` on.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn read(&self, bytes: &mut [u8], offset: u64) -> Result<()> {
        file_at::read(&self.file, bytes, offset).map_err(in_folder(&self.folder))
    }

    /// Writes all of `bytes` from `offset` on.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&mut self, bytes: &[u8], offset: u64) -> Result<()> {
        file_at::write(&self.file, bytes, offset).map_err(in_folder(&self.folder))
    }
}

fn in_folder(folder: &Path) -> impl Fn(IoError) -> Error {
    |source| Error::Io { path: folder.to_owned(), source }
}

/// The folder of such files: that of a checkpoint or a journal, else the system's for temporary files.
pub fn folder_beside(keep: Option<&Path>) -> PathBuf {
    let Some(keep) = keep else { return std::env::temp_dir() };
    let beside = keep.parent().filter(|folder| !folder.as_os_str().is_empty());
    beside.unwrap_or(Path::new(".")).to_owned()
}
