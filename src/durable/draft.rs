//! A file that appears under its name only when it is whole.
//!
//! It is written beside its name, synced, renamed, and its folder synced: after a crash there is the old file
//! or the new one. What is left of a killed process is the file with the suffix; the next draft of the same
//! name takes it over.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::target::{Kind, Replace};
use super::{is_at, lock, target};
use crate::{Error, Result};

/// Added to the name while a file is written.
const SUFFIX: &str = ".partial";

/// A file that is being written; removed when dropped before [`Self::publish`].
pub struct Draft {
    file: File,
    draft: PathBuf,
    target: PathBuf,
    kind: Kind,
    replace: Replace,
    at: u64,
    is_published: bool,
}

impl Draft {
    /// Begins a file that will be called `target`.
    ///
    /// # Errors
    /// [`Error::Occupied`] for a target that must not be replaced; [`Error::Io`], also where another writes
    /// the same file.
    pub fn new(target: &Path, kind: Kind, replace: Replace) -> Result<Self> {
        Self::with_suffix(target, SUFFIX, kind, replace)
    }

    /// Begins one of several files of which one will be called `target`; `number` tells them from each other.
    ///
    /// # Errors
    /// As of [`Self::new`].
    pub fn numbered(target: &Path, number: usize, kind: Kind) -> Result<Self> {
        Self::with_suffix(target, &format!(".{number}{SUFFIX}"), kind, Replace::SameKind)
    }

    fn with_suffix(target: &Path, suffix: &str, kind: Kind, replace: Replace) -> Result<Self> {
        let io = |source| Error::Io { path: target.to_owned(), source };
        target::check(target, &kind, replace)?;
        let mut name = target.file_name().ok_or_else(|| io(ErrorKind::InvalidInput.into()))?.to_owned();
        name.push(suffix);
        let draft = target.with_file_name(name);
        let mut options = OpenOptions::new();
        let locked = lock(&draft, options.read(true).write(true).create(true)).map_err(io)?;
        let file = locked.ok_or_else(|| {
            let reason = "another process is writing this file";
            io(std::io::Error::new(ErrorKind::ResourceBusy, reason))
        })?;
        let draft =
            Self { file, draft, target: target.to_owned(), kind, replace, at: 0, is_published: false };
        draft.file.set_len(0).map_err(io)?; // what a kill left there
        Ok(draft)
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

    /// Makes the bytes durable and gives the file its name; returns it, still locked.
    ///
    /// # Errors
    /// [`Error::Occupied`] where something else has got the name since; [`Error::Io`].
    pub fn publish(mut self) -> Result<File> {
        target::check(&self.target, &self.kind, self.replace)?;
        let renamed = self.file.sync_all().and_then(|()| std::fs::rename(&self.draft, &self.target));
        self.is_published = renamed.is_ok();
        let named = renamed.and_then(|()| sync_folder(&self.target)).and_then(|()| self.file.try_clone());
        named.map_err(|source| self.io(source))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // Another's draft may have the name by now, if this one has lost it.
        if !self.is_published && is_at(&self.file, &self.draft).unwrap_or(false) {
            let _ = std::fs::remove_file(&self.draft);
        }
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    const TEXT: Kind = Kind { name: "a text", is_one: |_| true };

    fn begin(path: &Path) -> Result<Draft> {
        Draft::new(path, TEXT, Replace::SameKind)
    }

    #[test]
    fn the_old_file_stays_until_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "old").unwrap();
        let mut draft = begin(&path).unwrap();
        draft.write(b"ne").unwrap();
        let message = begin(&path).err().unwrap().to_string();
        assert!(message.contains("another process"), "{message}");
        drop(draft);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        let mut draft = begin(&path).unwrap();
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
        let mut draft = begin(&folder.path().join("x")).unwrap();
        draft.write(b"new").unwrap();
        draft.publish().unwrap();
        assert_eq!(std::fs::read(folder.path().join("x")).unwrap(), b"new");
        assert!(matches!(begin(folder.path()), Err(Error::Io { .. })));
        assert!(matches!(begin(&folder.path().join("no/such")), Err(Error::Io { .. })));
    }

    #[test]
    fn a_file_that_came_in_the_meantime_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let note = Kind { name: "a note", is_one: |head| head.starts_with(b"note") };
        let mut draft = Draft::new(&path, note, Replace::SameKind).unwrap();
        draft.write(b"note").unwrap();
        std::fs::write(&path, "letter").unwrap();
        assert!(matches!(draft.publish(), Err(Error::Occupied { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), b"letter");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1, "no draft is left");
    }

    /// Without the test after locking, most of the published files are cut short or vanish.
    #[test]
    fn rivals_never_touch_a_published_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let whole = [7; 5000];
        std::fs::write(&path, whole).unwrap();
        let published = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        if let Ok(mut draft) = begin(&path) {
                            whole.chunks(1000).for_each(|piece| draft.write(piece).unwrap());
                            draft.publish().unwrap();
                            published.fetch_add(1, Ordering::Relaxed);
                        }
                        assert_eq!(std::fs::read(&path).unwrap(), whole);
                    }
                });
            }
        });
        assert!(published.into_inner() > 0);
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }
}
