//! Checksums of a file, in chunks that are proved one by one.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use rayon::prelude::*;
use twox_hash::XxHash3_64;

use super::Checked;
use crate::memory;
use crate::memory::CollectLarge;
use crate::model::check::Flaw;

/// Bytes per checksum of the data: a page, the least that is read from a disk. The first row of 50 entries
/// proves 6250 chunks where 125 classes lie one after the other in a gigabyte; with chunks of four pages that
/// took 90 ms on a busy machine.
pub const CHUNK: usize = 1 << 12;
/// Chunks from which on several threads prove them: 16 MiB, a few milliseconds.
const MANY: usize = 1 << 12;
/// Checksums besides those of the chunks: of the head and of all the others.
const OTHERS: usize = 2;

/// The checksum of some bytes.
pub fn sum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// The sum of a list of sums.
pub fn sum_of(sums: &[u64]) -> u64 {
    sum(bytemuck::cast_slice(sums))
}

/// Number of sums for so many bytes of data.
pub fn count(n_bytes: usize) -> usize {
    n_bytes.div_ceil(CHUNK) + OTHERS
}

/// The checksums of a file, and which of its data are proved. The data end where the sums begin.
#[derive(Debug)]
pub struct Checksums {
    /// Of the chunks.
    sums: Vec<u64>,
    /// A bit per chunk.
    proved: Vec<AtomicU64>,
    n_left: AtomicUsize,
    is_whole: AtomicBool,
    /// Bytes of the data.
    n_bytes: usize,
}

impl Checksums {
    /// The sums at the end of `data`; `head` are the bytes in front of it. Both are proved here.
    ///
    /// # Errors
    /// A head or sums that are not what was written.
    pub fn new(head: &[u8], data: &[u8]) -> Checked<Self> {
        let cut =
            || Flaw::new("checksums", format!("the {} bytes of data have no room for them", data.len()));
        // The data and a sum per chunk, `n_chunks * CHUNK` and `n_chunks * 8` bytes or a little less.
        let rest = data.len().checked_sub(8 * OTHERS).ok_or_else(cut)?;
        let n_chunks = rest.div_ceil(CHUNK + 8);
        let n_bytes = rest.checked_sub(8 * n_chunks).filter(|n| n.div_ceil(CHUNK) == n_chunks);
        let n_bytes = n_bytes.ok_or_else(cut)?;
        let mut sums = words(&data[n_bytes..]);
        let of_sums = sums.pop().unwrap_or_default();
        if sum_of(&sums) != of_sums {
            return Err(Flaw::new("checksums", "they are damaged, or the file is cut off"));
        }
        if sums.remove(0) != sum(head) {
            return Err(Flaw::new("head", "it is damaged, its checksum is another one"));
        }
        let proved = (0..n_chunks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect_large();
        Ok(Self {
            sums,
            proved,
            n_left: AtomicUsize::new(n_chunks),
            is_whole: AtomicBool::new(n_chunks == 0),
            n_bytes,
        })
    }

    /// Bytes of the data.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Whether all data are proved.
    pub fn is_whole(&self) -> bool {
        self.is_whole.load(Ordering::Relaxed)
    }

    /// Proves a range of the data that is not proved yet.
    ///
    /// # Errors
    /// The offset of the first chunk that is damaged.
    #[inline]
    pub fn prove(&self, data: &[u8], range: Range<usize>) -> Result<(), usize> {
        // The bytes do not change: a bit says all there is to know, and needs no order with other memory.
        if self.is_whole() || range.is_empty() {
            return Ok(());
        }
        let chunks = range.start / CHUNK..(range.end - 1) / CHUNK + 1;
        if chunks.len() < MANY {
            return chunks.into_iter().try_for_each(|k| self.prove_chunk(data, k));
        }
        let damaged = |k: usize| self.prove_chunk(data, k).err();
        chunks.into_par_iter().with_min_len(MANY / 4).find_map_first(damaged).map_or(Ok(()), Err)
    }

    #[inline]
    fn prove_chunk(&self, data: &[u8], k: usize) -> Result<(), usize> {
        let (word, bit) = (&self.proved[k / 64], 1 << (k % 64));
        if word.load(Ordering::Relaxed) & bit != 0 { Ok(()) } else { self.prove_new(data, k) }
    }

    #[cold]
    fn prove_new(&self, data: &[u8], k: usize) -> Result<(), usize> {
        let begin = k * CHUNK;
        if sum(&data[begin..(begin + CHUNK).min(self.n_bytes)]) != self.sums[k] {
            return Err(begin);
        }
        let bit = 1 << (k % 64);
        let is_first = self.proved[k / 64].fetch_or(bit, Ordering::Relaxed) & bit == 0;
        if is_first && self.n_left.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.is_whole.store(true, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// 8-byte numbers that may lie anywhere.
fn words(bytes: &[u8]) -> Vec<u64> {
    let mut words = memory::with_capacity(bytes.len() / 8);
    words.extend(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)));
    words
}
