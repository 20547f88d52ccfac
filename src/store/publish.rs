//! A file that appears under its name only when it is whole.
//!
//! It is written beside its name, synced, renamed, and its folder synced: after a crash there is the old file or the new one.
//! What is left of a killed build is the file with the suffix; the next build takes it over.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Added to the name while a file is written.
const SUFFIX: &str = ".partial";

/// A file in the making; removed when dropped before [`Self::publish`].
pub struct Draft {
    file: File,
    draft: PathBuf,
    target: PathBuf,
    at: u64,
}

impl Draft {
    /// Begins a file that will be called `target`.
    ///
    /// # Errors
    /// [`Error::Io`], also where another process is writing the same file.
    pub fn new(target: &Path) -> Result<Self> {
        let io = |source| Error::Io { path: target.to_owned(), source };
        if target.is_dir() {
            return Err(io(ErrorKind::IsADirectory.into()));
        }
        let mut name = target.file_name().ok_or_else(|| io(ErrorKind::InvalidInput.into()))?.to_owned();
        name.push(SUFFIX);
        let draft = target.with_file_name(name);
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&draft).map_err(io)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => {
                let reason = "another process is writing this file";
                return Err(io(std::io::Error::new(ErrorKind::ResourceBusy, reason)));
            }
            // File systems without locks exist; the lock only guards against a mistake.
            Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => return Err(io(error)),
            _ => {}
        }
        file.set_len(0).map_err(io)?;
        Ok(Self { file, draft, target: target.to_owned(), at: 0 })
    }

    /// Bytes written so far.
    pub fn len(&self) -> u64 {
        self.at
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.at == 0
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|source| self.io(source))?;
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn io(&self, source: std::io::Error) -> Error {
        Error::Io { path: self.target.clone(), source }
    }

    /// Makes the bytes durable and gives the file its name.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn publish(self) -> Result<()> {
        let named = self.file.sync_all().and_then(|()| std::fs::rename(&self.draft, &self.target));
        named.and_then(|()| sync_folder(&self.target)).map_err(|source| self.io(source))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.draft); // gone already, if published
    }
}

/// Makes a rename durable, where folders can be synced.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    if cfg!(not(unix)) {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_old_file_stays_until_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "old").unwrap();
        let mut draft = Draft::new(&path).unwrap();
        draft.write(b"ne").unwrap();
        let message = Draft::new(&path).err().unwrap().to_string();
        assert!(message.contains("another process"), "{message}");
        drop(draft);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        let mut draft = Draft::new(&path).unwrap();
        draft.write(b"new").unwrap();
        assert_eq!(draft.len(), 3);
        draft.publish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn what_a_kill_left_is_taken_over() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.partial"), "garbage of a killed process").unwrap();
        let mut draft = Draft::new(&folder.path().join("x")).unwrap();
        draft.write(b"new").unwrap();
        draft.publish().unwrap();
        assert_eq!(std::fs::read(folder.path().join("x")).unwrap(), b"new");
        assert!(matches!(Draft::new(folder.path()), Err(Error::Io { .. })));
        assert!(matches!(Draft::new(&folder.path().join("no/such")), Err(Error::Io { .. })));
    }
}
