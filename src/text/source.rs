//! Bytes of a file, decompressed by what its first bytes say it is.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

use crate::durable::file_at;
use crate::error::Error;
use crate::{error, memory, parallel};

/// The path that stands for standard input; a file of that name is `./-`.
pub const STDIN: &str = "-";
/// Bytes read or decompressed between two checks of `cancelled`: about 0.2 s of bzip2, the slowest of the
/// codecs.
const PIECE_BYTES: usize = 4 << 20;

/// Reads and decompresses a file; pieces of plain text are read in parallel, a fifth of the time of reading
/// and parsing.
pub(super) fn load(path: &Path, cancelled: &(dyn Fn() -> bool + Sync)) -> error::Result<Vec<u8>> {
    let failed = |source| Error::Io { path: path.to_path_buf(), source };
    let check = || if cancelled() { Err(Error::Cancelled) } else { Ok(()) };
    let mut file = file(path).map_err(failed)?;
    // Of standard input something may have been read already: it goes on from there.
    let length = if path == Path::new(STDIN) { None } else { plain_length(&mut file).map_err(failed)? };
    if let Some(length) = length {
        let mut bytes = memory::zeros(length);
        parallel::try_map(bytes.chunks_mut(PIECE_BYTES), |k, piece| {
            check()?;
            file_at::read(&file, piece, (k * PIECE_BYTES) as u64).map_err(failed)
        })?;
        return Ok(bytes);
    }
    let mut reader = decoder(file).map_err(failed)?;
    let mut bytes = Vec::new();
    loop {
        check()?;
        memory::reserve(&mut bytes, PIECE_BYTES);
        let mut piece = reader.by_ref().take(PIECE_BYTES as u64);
        if piece.read_to_end(&mut bytes).map_err(failed)? == 0 {
            return Ok(bytes);
        }
    }
}

fn file(path: &Path) -> io::Result<File> {
    if path == Path::new(STDIN) { stdin() } else { File::open(path) }
}

#[cfg(unix)]
fn stdin() -> io::Result<File> {
    std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned().map(File::from)
}

#[cfg(windows)]
fn stdin() -> io::Result<File> {
    std::os::windows::io::AsHandle::as_handle(&io::stdin()).try_clone_to_owned().map(File::from)
}

/// The length of a file that is neither compressed nor a pipe or the like, of which only the end tells the
/// length.
fn plain_length(file: &mut File) -> io::Result<Option<usize>> {
    let meta = file.metadata()?;
    let Ok(length) = usize::try_from(meta.len()) else { return Ok(None) };
    if !meta.is_file() || length == 0 {
        return Ok(None);
    }
    let mut magic = [0; 4];
    let magic = &mut magic[..length.min(4)];
    file.read_exact(magic)?;
    file.rewind()?;
    Ok(matches!(Codec::of(magic), Codec::Plain).then_some(length))
}

/// Opens a file for reading its text in order; `-` is standard input.
///
/// # Errors
/// [`Error::Io`].
pub fn open(path: &Path) -> error::Result<Box<dyn Read + Send>> {
    file(path).and_then(decoder).map_err(|source| Error::Io { path: path.to_path_buf(), source })
}

/// How a text is compressed.
enum Codec {
    Plain,
    Gzip,
    Bzip2,
    Zstd,
}

impl Codec {
    /// By the first four bytes.
    fn of(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [b'B', b'Z', b'h', b'1'..=b'9'] => Self::Bzip2,
            // A frame, or a skippable frame as parallel compressors put in front.
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

fn decoder(mut file: File) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = Vec::new();
    file.by_ref().take(4).read_to_end(&mut magic)?;
    let codec = Codec::of(&magic);
    let whole = BufReader::new(io::Cursor::new(magic).chain(file));
    Ok(match codec {
        Codec::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(whole)),
        Codec::Bzip2 => Box::new(bzip2::bufread::MultiBzDecoder::new(whole)),
        Codec::Zstd => Box::new(zstd::Decoder::with_buffer(whole)?),
        Codec::Plain => Box::new(whole),
    })
}
