//! Files that are never lost.
//!
//! Every file that the package writes under a name of the user's goes through here, whatever its format:
//!
//! * [`target`]: what may be replaced: an empty file, or one of the same kind, told by its first bytes; never
//!   a device or a folder, never another file unless the caller asks for it, never a file that is read for
//!   the new one;
//! * [`draft`]: a file that appears under its name only when it is whole;
//! * [`held`]: a file that is locked by the one task that works on it: a journal, a checkpoint;
//! * [`frames`]: records one after the other, each with a checksum;
//! * [`log`]: a held file of such records, which a later task replays and goes on from.
//!
//! [`nameless`] files are the others: they may be lost.
//!
//! **Locks.** Drafts and held files are locked. A lock belongs to the file, not to its name, and files are
//! renamed: a draft may have another name by the time it is locked. So whether the name still leads to the
//! locked file is tested after locking, and where it does not the file is opened again; nothing is written,
//! truncated or removed before. File systems without locks exist: there two writers of one name are not told
//! from each other.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Result};
use std::path::Path;

use same_file::Handle;

pub mod draft;
pub mod file_at;
pub mod frames;
pub mod held;
pub mod log;
pub mod nameless;
pub mod target;

/// Opens and locks the file of a name, `None` if another holds it.
fn lock(path: &Path, options: &OpenOptions) -> Result<Option<File>> {
    loop {
        let file = options.open(path)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => return Err(error),
            _ => {}
        }
        if is_at(&file, path)? {
            return Ok(Some(file));
        }
    }
}

/// Whether a name leads to a file.
fn is_at(file: &File, path: &Path) -> Result<bool> {
    match Handle::from_path(path) {
        Ok(there) => Ok(there == Handle::from_file(file.try_clone()?)?),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
