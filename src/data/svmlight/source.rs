//! Bytes of a file, decompressed by what its first bytes say it is.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::error::{self, Error};

/// Bytes read or decompressed between two looks at `cancelled`: about 0.2 s of bzip2, the slowest of the codecs.
const PIECE_BYTES: u64 = 4 << 20;

/// Reads and decompresses a file, piece by piece.
pub(super) fn load(path: &Path, cancelled: &(dyn Fn() -> bool + Sync)) -> error::Result<Vec<u8>> {
    let failed = |source| Error::Io { path: path.to_path_buf(), source };
    let mut reader = File::open(path).and_then(decoder).map_err(failed)?;
    let mut bytes = Vec::new();
    loop {
        if cancelled() {
            return Err(Error::Cancelled);
        }
        let mut piece = reader.by_ref().take(PIECE_BYTES);
        if piece.read_to_end(&mut bytes).map_err(failed)? == 0 {
            return Ok(bytes);
        }
    }
}

/// Opens a file for reading its text in order.
///
/// # Errors
/// [`Error::Io`].
pub fn open(path: &Path) -> error::Result<Box<dyn Read + Send>> {
    File::open(path).and_then(decoder).map_err(|source| Error::Io { path: path.to_path_buf(), source })
}

/// Chooses the decoder by the first four bytes.
fn decoder(mut file: File) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = Vec::new();
    file.by_ref().take(4).read_to_end(&mut magic)?;
    let start: &[u8] = &magic.clone();
    let whole = BufReader::new(io::Cursor::new(magic).chain(file));
    Ok(match start {
        [0x1f, 0x8b, ..] => Box::new(flate2::bufread::MultiGzDecoder::new(whole)),
        [b'B', b'Z', b'h', b'1'..=b'9'] => Box::new(bzip2::bufread::MultiBzDecoder::new(whole)),
        // A frame, or a skippable frame as parallel compressors put in front.
        [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Box::new(zstd::Decoder::with_buffer(whole)?),
        _ => Box::new(whole),
    })
}
