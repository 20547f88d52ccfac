//! What may be replaced by a file that is to be written.

use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// Bytes by which a file is recognised.
pub const HEAD_BYTES: u64 = 1024;

/// A kind of file that the package writes.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name in messages, with an article.
    pub name: &'static str,
    /// Tells it by its first [`HEAD_BYTES`] bytes, or all if there are fewer.
    pub is_one: fn(&[u8]) -> bool,
}

/// Which files may be replaced, besides empty ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replace {
    /// Those of the kind that is written.
    #[default]
    SameKind,
    /// All.
    AnyFile,
}

/// Refuses a target where there is a file that must not be replaced.
///
/// # Errors
/// [`Error::Occupied`]; [`Error::Io`], also for a folder.
pub fn check(target: &Path, kind: &Kind, replace: Replace) -> Result<()> {
    let Some(facts) = regular(target)? else { return Ok(()) };
    if facts.len() == 0 || replace == Replace::AnyFile || (kind.is_one)(&head(target)?) {
        return Ok(());
    }
    Err(occupied(
        target,
        format!("the file there is not {} and is kept: give another path or delete it", kind.name),
    ))
}

/// Refuses a target that is one of the sources, under whatever name or link.
///
/// # Errors
/// [`Error::Occupied`].
pub fn check_sources(target: &Path, sources: &[PathBuf]) -> Result<()> {
    // Only files are compared: to open a pipe would disturb it.
    let is_file = |path: &Path| std::fs::metadata(path).is_ok_and(|facts| facts.is_file());
    let is_target =
        |source: &&PathBuf| is_file(source) && same_file::is_same_file(source, target).unwrap_or(false);
    let found = if is_file(target) { sources.iter().find(is_target) } else { None };
    match found {
        Some(source) => {
            Err(occupied(target, format!("the file to be written is a source, {}", source.display())))
        }
        None => Ok(()),
    }
}

/// The metadata of the file at a path, `None` if there is none.
///
/// # Errors
/// [`Error::Occupied`] for a device, a pipe and the like; [`Error::Io`], also for a folder.
pub(super) fn regular(path: &Path) -> Result<Option<Metadata>> {
    let io = |source| Err(Error::Io { path: path.to_owned(), source });
    match std::fs::metadata(path) {
        Ok(facts) if facts.is_dir() => io(ErrorKind::IsADirectory.into()),
        Ok(facts) if facts.is_file() => Ok(Some(facts)),
        Ok(_) => Err(occupied(path, "expected a file, found a device, a pipe or a socket".into())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => io(error),
    }
}

/// The first [`HEAD_BYTES`] bytes of the file at a path, `None` if there is none.
///
/// # Errors
/// [`Error::Occupied`] for a device, a pipe and the like, which are not opened; [`Error::Io`].
pub fn first_bytes(path: &Path) -> Result<Option<Vec<u8>>> {
    regular(path)?.map(|_| head(path)).transpose()
}

fn head(path: &Path) -> Result<Vec<u8>> {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.map(|_| head).map_err(|source| Error::Io { path: path.to_owned(), source })
}

fn occupied(path: &Path, reason: String) -> Error {
    Error::Occupied { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: Kind = Kind { name: "a note", is_one: |head| head.starts_with(b"note") };

    #[test]
    fn only_files_of_the_kind_and_empty_ones_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let is_free = |replace| check(&path, &NOTE, replace);
        is_free(Replace::SameKind).unwrap();
        for mine in ["", "note 7"] {
            std::fs::write(&path, mine).unwrap();
            is_free(Replace::SameKind).unwrap();
        }
        std::fs::write(&path, "letter").unwrap();
        let message = is_free(Replace::SameKind).unwrap_err().to_string();
        assert!(message.contains("x: the file there is not a note and is kept"), "{message}");
        is_free(Replace::AnyFile).unwrap();
        assert!(matches!(check(folder.path(), &NOTE, Replace::AnyFile), Err(Error::Io { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn devices_and_files_under_other_names_are_told() {
        let device = check(Path::new("/dev/null"), &NOTE, Replace::AnyFile);
        assert!(matches!(device, Err(Error::Occupied { .. })));
        let folder = tempfile::tempdir().unwrap();
        let [path, soft, hard, other] = ["x", "soft", "hard", "other"].map(|name| folder.path().join(name));
        std::fs::write(&path, "1 1:1\n").unwrap();
        std::fs::write(&other, "1 1:1\n").unwrap();
        std::os::unix::fs::symlink(&path, &soft).unwrap();
        std::fs::hard_link(&path, &hard).unwrap();
        for target in [&path, &soft, &hard] {
            assert!(matches!(
                check_sources(target, &[other.clone(), path.clone()]),
                Err(Error::Occupied { .. })
            ));
            check_sources(target, std::slice::from_ref(&other)).unwrap();
        }
        check_sources(&folder.path().join("new"), &[path, PathBuf::from("/dev/null")]).unwrap();
    }
}
