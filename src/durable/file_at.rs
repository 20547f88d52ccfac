//! Reading and writing at an offset of a file, from several threads at a time.

use std::fs::File;
use std::io::Result;

/// Fills `bytes` with what the file has from `offset` on.
///
/// # Errors
/// [`std::io::ErrorKind::UnexpectedEof`] where the file ends before, and those of the system.
#[cfg(unix)]
pub fn read(file: &File, bytes: &mut [u8], offset: u64) -> Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

/// Fills `bytes` with what the file has from `offset` on.
///
/// # Errors
/// [`std::io::ErrorKind::UnexpectedEof`] where the file ends before, and those of the system.
#[cfg(windows)]
pub fn read(file: &File, mut bytes: &mut [u8], mut offset: u64) -> Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            n => (bytes, offset) = (&mut bytes[n..], offset + n as u64),
        }
    }
    Ok(())
}

/// Writes all of `bytes` to the file from `offset` on.
///
/// # Errors
/// Those of the system.
#[cfg(unix)]
pub fn write(file: &File, bytes: &[u8], offset: u64) -> Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

/// Writes all of `bytes` to the file from `offset` on.
///
/// # Errors
/// Those of the system.
#[cfg(windows)]
pub fn write(file: &File, mut bytes: &[u8], mut offset: u64) -> Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_write(file, bytes, offset)? {
            0 => return Err(std::io::ErrorKind::WriteZero.into()),
            n => (bytes, offset) = (&bytes[n..], offset + n as u64),
        }
    }
    Ok(())
}
