//! How sections of the file are packed: the one file that knows the codec.
//!
//! Another codec is another version of the format: the reader would choose by the version in the header
//! between this [`Unpacker`] and the new one. The figures that chose this one are in [`super::format`].

use std::io::{Error, ErrorKind, Read, Result};

use zstd::bulk::{Compressor, Decompressor};

/// A run of equal bytes is packed at most this well: 128 kB in 4 bytes.
pub const MAX_RATIO: usize = 1 << 15;
/// Level of zstd.
const LEVEL: i32 = -1;

/// Packs many sections.
pub struct Packer(Compressor<'static>);

impl Packer {
    /// Makes its tables.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn new() -> Result<Self> {
        Compressor::new(LEVEL).map(Self)
    }

    /// The packed bytes, which may be longer than `bytes`.
    ///
    /// # Errors
    /// Those of the codec.
    pub fn pack(&mut self, bytes: &[u8]) -> Result<Vec<u8>> {
        self.0.compress(bytes)
    }
}

/// Unpacks many sections; its tables are made for the first.
#[derive(Default)]
pub struct Unpacker(Option<Decompressor<'static>>);

impl Unpacker {
    /// Unpacks `stored` into `room`, and tells how many bytes there were.
    ///
    /// # Errors
    /// Those of the codec, among them bytes that need more room.
    pub fn unpack(&mut self, stored: &[u8], room: &mut [u8]) -> Result<usize> {
        let decompressor = match &mut self.0 {
            Some(decompressor) => decompressor,
            none => none.insert(Decompressor::new()?),
        };
        decompressor.decompress_to_buffer(stored, room)
    }
}

/// Whether there was no memory to unpack in, which says nothing about the bytes.
pub fn is_out_of_memory(error: &Error) -> bool {
    // The second is the codec's own, of which its binding keeps only the text.
    error.kind() == ErrorKind::OutOfMemory || error.to_string().contains("not enough memory")
}

/// Unpacks `stored`, of which `len` bytes are claimed; stops one byte later.
///
/// # Errors
/// Those of the codec.
pub fn unpack_growing(stored: &[u8], len: u64) -> Result<Vec<u8>> {
    let mut unpacked = Vec::new();
    zstd::stream::Decoder::with_buffer(stored)?.take(len + 1).read_to_end(&mut unpacked)?;
    Ok(unpacked)
}
