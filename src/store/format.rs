//! The bytes of a block store, version 1. All numbers are little-endian; this file owns every constant.
//!
//! ```text
//! file     +--------+--------+--------+-- ... --+--------+------+---------+-------+---------+
//!          | header | page 0 | page 1 |         | page P | meta | columns | index | trailer |
//!          +--------+--------+--------+-- ... --+--------+------+---------+-------+---------+
//!           16 bytes                             no gaps between any of these        104 bytes
//!
//! header   0  magic "hingeBLK"             8 bytes
//!          8  version                      u32
//!         12  zero                         u32
//!
//! page     0  number of rows               u32      1 ..= MAX_PAGE_ROWS
//!          4  number of entries            u32      0 ..= MAX_PAGE_ENTRIES
//!          8  kind of values               u8       0 all one, 1 one number per row, 2 float32, 3 float64
//!          9  flags                        u8       1: sample weights
//!         10  zero                         6 bytes
//!         16  sections                     7 times { stored length u32, length u32,
//!                                                    checksum u64 of the stored bytes }
//!        128  checksum of bytes 0..128     u64
//!        136  the stored bytes of the sections, in order
//!
//! sections of a page
//!          0  row lengths                  u32 each
//!          1  column codes                 2 bits per entry: bytes of its number less one; first entry in
//!                                          the lowest bits
//!          2  column numbers               1 to 4 bytes per entry: the column less the one before it in
//!                                          the row less 1 (the first of a row: the column itself)
//!          3  values                       kind 0: nothing; 1: f64 per row; 2: f32, 3: f64 per entry
//!          4  class ids                    u32 each, in order of first appearance
//!          5  sample weights               f64 each, or nothing
//!          6  row numbers                  u64 each, counted from 0 in the order of the input, rising
//!
//! A section whose stored length equals its length is stored as it is, any other is a zstd frame. Bytes of
//! wider numbers are stored by planes (all first bytes, then all second bytes, ...), which compress better
//! than the numbers one by one.
//!
//! meta     JSON text (see meta.rs), a zstd frame
//! columns  u32 per relabelled column: its number in the input, by planes, a zstd frame; nothing if columns
//!          were not relabelled
//! index    per page { offset u64, stored bytes u32, rows u32, entries u32, block u32 }, as it is
//!
//! trailer  0  meta, columns, index         3 times { offset u64, stored length u64, length u64,
//!                                                    checksum u64 of the stored bytes }
//!         96  checksum of bytes 0..96      u64
//! ```
//!
//! **Checksums** are xxh3 of 64 bits, seeded: pages by `8 * page number + section` (7 for the page's header),
//! the rest by the constants below, so that a part at the wrong offset is found as well as a changed one.
//! They find damage, not malice: every length and number is checked against what it must fit before it is
//! used, also where the checksum is right.
//!
//! **Limits.** A page claims at most [`MAX_PAGE_ENTRIES`] entries, a section at most
//! [`super::codec::MAX_RATIO`] times its
//! stored bytes, and stored bytes are bounded by the file: a reader allocates in proportion to the file,
//! whatever is written in it.
//!
//! **Compression.** Measured on 120,000 rows of file paths as hashed 3-5-grams (23 M entries, one core of a
//! Xeon of 2023), bytes per entry for the column numbers, columns relabelled by frequency / as hashed, and
//! speed of decompression and decoding in millions of entries a second:
//!
//! ```text
//! coding            codec     relabelled   hashed    decompress   decode
//! codes + bytes     zstd -1        0.943    2.013          1455      677      chosen
//! codes + bytes     zstd 1         0.818    1.964           633      677
//! codes + bytes     LZ4            0.983    2.116          1169      677
//! codes + planes    zstd -1        0.905    2.080          1174        -
//! LEB128            zstd -1        0.920    2.261          1965      312
//! LEB128            LZ4            0.951    2.335          2249      312
//! LEB128            zstd 1         0.822    2.084           741      312
//! bytes + escapes   zstd -1        0.952    2.629           821      406
//! ```
//!
//! The codes make decoding free of branches. With the numbers read by a shuffle and summed four at a time
//! ([`super::indices`]), a page of such rows is checked, decompressed and decoded at 500 to 530 million
//! entries a second, of which decompression takes two fifths (`benches/store.rs`): 2 GB a second of rows with
//! one value each. zstd at level 1 would save a seventh of the bytes at a third less speed; LZ4 is larger and
//! slower.

use crate::memory;
use twox_hash::XxHash3_64;

use crate::durable::target::Kind;

/// First bytes of a file.
pub const MAGIC: &[u8; 8] = b"hingeBLK";
/// The version that is written and read.
pub const VERSION: u32 = 1;
/// Bytes before the first page.
pub const HEADER_BYTES: u64 = 16;
/// Bytes at the end of a file.
pub const TRAILER_BYTES: u64 = 104;
/// Sections of a page.
pub const SECTIONS: usize = 7;
/// Bytes of a page before its sections.
pub const PAGE_HEADER_BYTES: usize = 16 + 16 * SECTIONS + 8;
/// Bytes of the index per page.
pub const INDEX_BYTES: usize = 24;
/// Entries at which the writer closes a page: its decoder's buffers stay in the second-level cache, and its
/// compressed bytes are enough for one read.
pub const PAGE_ENTRIES: usize = 1 << 17;
/// Rows at which the writer closes a page.
pub const PAGE_ROWS: usize = 1 << 14;
/// Rows of a page that a reader believes.
pub const MAX_PAGE_ROWS: usize = PAGE_ROWS;
/// Entries of a page that a reader believes: a full page and one very long row.
pub const MAX_PAGE_ENTRIES: usize = 1 << 27;
/// Entries of the longest row.
pub const MAX_ROW_ENTRIES: usize = MAX_PAGE_ENTRIES - PAGE_ENTRIES;
/// One more than the largest column, as in CSR with 4-byte indices.
pub const MAX_COLUMNS: usize = i32::MAX as usize;
/// Bytes of JSON that a reader believes: 20 million feature names of 50 letters.
pub const MAX_META_BYTES: usize = 1 << 30;
/// Seeds of the checksums of meta, columns, index and trailer.
pub const SEEDS: [u64; 4] = [u64::MAX, u64::MAX - 1, u64::MAX - 2, u64::MAX - 3];

/// The checksum of the format.
pub fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// A block store, damaged ones too.
pub const KIND: Kind = Kind { name: "a block store", is_one: |head| head.starts_with(MAGIC) };

/// The first bytes of a file.
pub fn header() -> [u8; HEADER_BYTES as usize] {
    let mut bytes = [0; HEADER_BYTES as usize];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// Reads a `u32`; the caller has checked that it is there.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Reads a `u64`; the caller has checked that it is there.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Where one of the three parts at the end of a file lies, as the trailer has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrailerEntry {
    /// Where it starts.
    pub offset: u64,
    /// Its bytes in the file.
    pub stored: u64,
    /// Its bytes when decompressed.
    pub len: u64,
    /// Of the stored bytes.
    pub checksum: u64,
}

/// The parts before the trailer: meta, columns and index.
pub type Trailer = [TrailerEntry; 3];

/// The last bytes of a file.
pub fn trailer(parts: &Trailer) -> [u8; TRAILER_BYTES as usize] {
    let mut bytes = [0; TRAILER_BYTES as usize];
    for (part, bytes) in parts.iter().zip(bytes.chunks_exact_mut(32)) {
        let numbers = [part.offset, part.stored, part.len, part.checksum];
        bytes.chunks_exact_mut(8).zip(numbers).for_each(|(bytes, x)| bytes.copy_from_slice(&x.to_le_bytes()));
    }
    let sum = checksum(SEEDS[3], &bytes[..96]);
    bytes[96..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Reads a trailer; `None` if its checksum is wrong.
pub fn parse_trailer(bytes: &[u8; TRAILER_BYTES as usize]) -> Option<Trailer> {
    if u64_at(bytes, 96) != checksum(SEEDS[3], &bytes[..96]) {
        return None;
    }
    Some(std::array::from_fn(|k| {
        let at = |field: usize| u64_at(bytes, 32 * k + 8 * field);
        TrailerEntry { offset: at(0), stored: at(1), len: at(2), checksum: at(3) }
    }))
}

/// A page as the index knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageEntry {
    /// Where it starts.
    pub offset: u64,
    /// Its bytes in the file.
    pub stored: u32,
    /// Its rows.
    pub n_rows: u32,
    /// Its entries.
    pub nnz: u32,
    /// Its block.
    pub block: u32,
}

impl PageEntry {
    /// Appends the entry to an index.
    pub fn write(&self, index: &mut Vec<u8>) {
        index.extend_from_slice(&self.offset.to_le_bytes());
        for x in [self.stored, self.n_rows, self.nnz, self.block] {
            index.extend_from_slice(&x.to_le_bytes());
        }
    }

    /// Reads the entry from its [`INDEX_BYTES`] bytes.
    pub fn parse(bytes: &[u8]) -> Self {
        let at = |k| u32_at(bytes, k);
        Self { offset: u64_at(bytes, 0), stored: at(8), n_rows: at(12), nnz: at(16), block: at(20) }
    }
}

/// Writes the bytes of numbers by planes: all first bytes, then all second bytes.
pub fn to_planes<const B: usize>(numbers: impl ExactSizeIterator<Item = [u8; B]>, out: &mut Vec<u8>) {
    let (n, start) = (numbers.len(), out.len());
    memory::resize(out, start + n * B, 0);
    let planes = &mut out[start..];
    for (i, bytes) in numbers.enumerate() {
        for (b, byte) in bytes.into_iter().enumerate() {
            planes[b * n + i] = byte;
        }
    }
}

/// Numbers of `B` bytes stored by planes.
#[derive(Clone, Copy)]
pub struct Planes<'a, const B: usize>([&'a [u8]; B]);

impl<'a, const B: usize> Planes<'a, B> {
    /// The planes of `n` numbers; the caller has checked that there are `n * B` bytes.
    pub fn new(bytes: &'a [u8], n: usize) -> Self {
        Self(std::array::from_fn(|b| &bytes[b * n..][..n]))
    }

    /// Makes all of `out` from the bytes of their numbers: a plain loop over slices, for which there are
    /// vector instructions. mnist: 0.3 ns a number in single precision, 4 by an iterator of `[u8; B]`.
    #[inline(always)]
    pub fn copy_to<T>(self, out: &mut [T], of: impl Fn([u8; B]) -> T) {
        let planes = self.0.map(|plane| &plane[..out.len()]);
        for (i, out) in out.iter_mut().enumerate() {
            let mut bytes = [0; B];
            for b in 0..B {
                bytes[b] = planes[b][i];
            }
            *out = of(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_and_entries_are_read_as_written() {
        let part = |k: u64| TrailerEntry { offset: k, stored: 2 * k, len: 3 * k, checksum: u64::MAX - k };
        let parts = [part(1), part(1 << 40), part(77)];
        let mut bytes = trailer(&parts);
        assert_eq!(parse_trailer(&bytes), Some(parts));
        for at in 0..bytes.len() {
            bytes[at] ^= 16;
            assert_eq!(parse_trailer(&bytes), None, "byte {at}");
            bytes[at] ^= 16;
        }
        let entry = PageEntry { offset: 1 << 35, stored: 5, n_rows: 6, nnz: 7, block: 8 };
        let mut index = Vec::new();
        entry.write(&mut index);
        assert_eq!((index.len(), PageEntry::parse(&index)), (INDEX_BYTES, entry));
    }

    #[test]
    fn planes_are_read_as_written() {
        let numbers = [1u32, 0xdead_beef, 7];
        let mut bytes = vec![9];
        to_planes(numbers.iter().map(|x| x.to_le_bytes()), &mut bytes);
        let mut read = [0; 3];
        Planes::new(&bytes[1..], 3).copy_to(&mut read, u32::from_le_bytes);
        assert_eq!(read, numbers);
    }
}
