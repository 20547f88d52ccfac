//! A file that is locked by the one task that works on it.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use super::draft::Draft;
use super::{is_at, lock, target};
use crate::{Error, Result};

/// A locked file, and its name; where there was none, an empty one, which is removed if nothing is written.
///
/// While this lives, no other can be opened by the same name.
pub struct Held {
    file: File,
    path: PathBuf,
}

impl Held {
    /// Opens the file at a path, or makes an empty one; `None` if another holds it.
    ///
    /// # Errors
    /// [`Error::Occupied`] for a device and the like; [`Error::Io`].
    pub fn open(path: &Path) -> Result<Option<Self>> {
        target::regular(path)?;
        let mut options = OpenOptions::new();
        let locked = lock(path, options.read(true).write(true).create(true));
        let locked = locked.map_err(|source| Error::Io { path: path.to_owned(), source })?;
        Ok(locked.map(|file| Self { file, path: path.to_owned() }))
    }

    /// The file.
    pub fn file(&mut self) -> &mut File {
        &mut self.file
    }

    /// Its name.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether nothing is in it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.file.metadata().map_err(|source| self.io(source))?.len() == 0)
    }

    /// Whether the name still leads to the file: somebody may have removed it.
    pub fn is_current(&self) -> bool {
        is_at(&self.file, &self.path).unwrap_or(false)
    }

    /// Gives the name to a draft of the same name, which is held from now on.
    ///
    /// # Errors
    /// [`Error::Occupied`] where the file was removed and another has got its name; as of [`Draft::publish`].
    /// The old file is then as it was.
    pub fn replace(&mut self, draft: Draft) -> Result<()> {
        if !self.is_current() && self.path.exists() {
            let reason = "another file has got the name while this one was in use".into();
            return Err(Error::Occupied { path: self.path.clone(), reason });
        }
        self.file = draft.publish()?;
        Ok(())
    }

    fn io(&self, source: std::io::Error) -> Error {
        Error::Io { path: self.path.clone(), source }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_empty().unwrap_or(false) && self.is_current() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::durable::target::{Kind, Replace};

    #[test]
    fn one_holds_a_file_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let mut held = Held::open(&path).unwrap().unwrap();
        assert!(held.is_empty().unwrap() && Held::open(&path).unwrap().is_none());
        let text = Kind { name: "a text", is_one: |_| true };
        let mut draft = Draft::new(&path, text, Replace::SameKind).unwrap();
        draft.write(b"first").unwrap();
        held.replace(draft).unwrap();
        assert!(
            held.is_current() && Held::open(&path).unwrap().is_none(),
            "the new file is held as the old one was"
        );
        drop(held);
        assert_eq!(std::fs::read(&path).unwrap(), b"first");
        let mut held = Held::open(&path).unwrap().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!held.is_current());
        drop(Held::open(&path).unwrap().unwrap());
        assert!(!path.exists(), "an empty file is not left");
        std::fs::write(&path, "another's").unwrap();
        let draft = Draft::new(&path, text, Replace::SameKind).unwrap();
        assert!(matches!(held.replace(draft), Err(Error::Occupied { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"another's");
        drop(held);
        assert!(matches!(Held::open(folder.path()), Err(Error::Io { .. })));
    }
}
