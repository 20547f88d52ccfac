//! Opening a store, checking it, and decoding its pages.
//!
//! Opening reads the header, the trailer and the parts it points to, and proves that pages and parts fill the
//! file without gaps. Pages are checked when they are decoded: a damaged page is found by whoever needs it,
//! and by [`Store::verify`].

use std::fs::File;

use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::codec::{self, MAX_RATIO};
use super::columns::is_permutation;
use super::format::{
    HEADER_BYTES, INDEX_BYTES, MAX_META_BYTES, MAX_PAGE_ENTRIES, MAX_PAGE_ROWS, PageEntry, Planes, SEEDS,
    TRAILER_BYTES, TrailerEntry,
};
use super::meta::Meta;
use super::page::{Facts, PageLimits, Scratch};
use super::{format, page};
use crate::durable::file_at;
use crate::fit::Monitor;
use crate::labels::classes::Classes;
use crate::matrix::arena::{Arena, Free, Room, Width};
use crate::memory::CollectLarge;
use crate::{Error, Result, memory};

/// Pages that are decoded at a time where all are read: enough for some threads, little memory.
const PIECE_PAGES: usize = 16;

/// An open store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    file: File,
    file_bytes: u64,
    meta: Meta,
    pages: Vec<PageEntry>,
    /// Position of each page's first row among all rows, in the order of the pages.
    starts: Vec<u64>,
    /// Ids in the order of the sorted labels.
    sorted: Vec<u32>,
    /// Rank among the sorted labels, by id.
    ranks: Vec<u32>,
    columns: TrailerEntry,
}

/// The facts about a run of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowFacts {
    /// Rank of each row's class among the sorted classes.
    pub classes: Vec<u32>,
    /// Sample weights.
    pub weights: Vec<f64>,
    /// Row numbers in the input.
    pub numbers: Vec<u64>,
}

impl Store {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] for a file that is no store, is cut short, or contradicts itself.
    pub fn open(path: &Path) -> Result<Self> {
        let io = |source| Error::Io { path: path.to_owned(), source };
        let file = File::open(path).map_err(io)?;
        let facts = file.metadata().map_err(io)?;
        if facts.is_dir() {
            return Err(io(std::io::ErrorKind::IsADirectory.into()));
        }
        let opening = Opening { path, file: &file, len: facts.len() };
        let parts = opening.parts()?;
        let meta = opening.meta(&parts[0])?;
        let pages = opening.pages(&parts)?;
        if let Some(reason) = meta.contradiction(&pages) {
            return Err(opening.corrupt(parts[0].offset, reason));
        }
        if parts[1].len != 4 * meta.n_relabelled as u64 {
            let reason = format!("{} bytes of relabelling for {} columns", parts[1].len, meta.n_relabelled);
            return Err(opening.corrupt(parts[1].offset, reason));
        }
        let sorted = meta.classes.sorted().unwrap_or_default();
        let mut ranks = vec![0; sorted.len()];
        (0..).zip(&sorted).for_each(|(rank, &id)| ranks[id as usize] = rank);
        let mut starts = vec![0];
        starts.extend(pages.iter().scan(0, |sum, page| {
            *sum += u64::from(page.n_rows);
            Some(*sum)
        }));
        let (path, file_bytes) = (path.to_owned(), facts.len());
        Ok(Self { path, file, file_bytes, meta, pages, starts, sorted, ranks, columns: parts[1] })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// What the file says about itself.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The pages, in the order of the file.
    pub fn pages(&self) -> &[PageEntry] {
        &self.pages
    }

    /// Position of each page's first row among all rows, in the order of the pages, and the number of rows.
    pub fn starts(&self) -> &[u64] {
        &self.starts
    }

    /// The labels, sorted: what the class numbers of decoded rows refer to.
    pub fn classes(&self) -> Classes {
        self.meta.classes.in_order(&self.sorted)
    }

    /// Rows per class, in the order of the sorted labels.
    pub fn class_rows(&self) -> Vec<u64> {
        self.sorted.iter().map(|&id| self.meta.class_rows[id as usize]).collect()
    }

    /// Sum of the sample weights per class, in the order of the sorted labels.
    pub fn class_weight(&self) -> Vec<f64> {
        self.sorted.iter().map(|&id| self.meta.class_weight[id as usize]).collect()
    }

    /// The sum of all rows' costs, `cost` being those of weight 1 by class.
    pub fn total(&self, cost: &[f64]) -> f64 {
        self.class_weight().iter().zip(cost).map(|(weight, cost)| weight * cost).sum()
    }

    /// The narrowest way to keep the rows.
    pub fn width(&self) -> Width {
        if self.meta.is_uniform { Width::Row } else { self.plain_width() }
    }

    /// The narrowest way to keep a value per entry.
    pub fn plain_width(&self) -> Width {
        if self.meta.needs_f64 { Width::F64 } else { Width::F32 }
    }

    /// The old number of each relabelled column.
    ///
    /// # Errors
    /// [`Error::Corrupt`] and [`Error::Io`].
    pub fn old_columns(&self) -> Result<Vec<u32>> {
        let opening = Opening { path: &self.path, file: &self.file, len: self.file_bytes };
        let bytes = opening.part(&self.columns, 1, 4 * format::MAX_COLUMNS)?;
        let n = self.meta.n_relabelled;
        let mut old = memory::zeros(n);
        Planes::new(&bytes, n).copy_to(&mut old, u32::from_le_bytes);
        if is_permutation(&old) {
            Ok(old)
        } else {
            Err(opening.corrupt(self.columns.offset, "the relabelling of columns is no permutation".into()))
        }
    }

    /// Reads the stored bytes of a page.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn read_page(&self, page: usize, bytes: &mut Vec<u8>) -> Result<()> {
        let entry = &self.pages[page];
        memory::resize(bytes, entry.stored as usize, 0);
        file_at::read(&self.file, bytes, entry.offset).map_err(|source| self.io(source))
    }

    fn io(&self, source: std::io::Error) -> Error {
        Error::Io { path: self.path.clone(), source }
    }

    /// Decodes the stored bytes of a page.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn decode(
        &self,
        page: usize,
        bytes: &[u8],
        scratch: &mut Scratch,
        room: Room<'_>,
        facts: &mut Facts<'_>,
    ) -> Result<()> {
        let entry = &self.pages[page];
        let limits =
            PageLimits { class_ranks: &self.ranks, n_rows: self.meta.n_rows, n_cols: self.meta.n_used };
        page::decode(bytes, page as u64, entry, &limits, scratch, room, facts)
            .map_err(|reason| Error::Corrupt { path: self.path.clone(), offset: entry.offset, reason })
    }

    /// Reads and decodes pages in parallel, into the room of an arena.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`] and [`Error::Cancelled`].
    pub fn decode_into(
        &self,
        pages: &[u32],
        bytes: &(impl PageBytes + ?Sized),
        free: &mut Free<'_>,
        facts: &mut RowFacts,
        monitor: &dyn Monitor,
    ) -> Result<()> {
        let (n_rows, _) = self.size(pages);
        memory::resize(&mut facts.classes, n_rows, 0);
        memory::resize(&mut facts.weights, n_rows, 1.0);
        memory::resize(&mut facts.numbers, n_rows, 0);
        let mut tasks = Vec::with_capacity(pages.len());
        let mut rest = reborrow(&mut free.room);
        let (mut classes, mut weights, mut numbers) =
            (&mut facts.classes[..], &mut facts.weights[..], &mut facts.numbers[..]);
        for (k, &page) in pages.iter().enumerate() {
            let entry = &self.pages[page as usize];
            let n = entry.n_rows as usize;
            let room;
            (room, rest) = rest.split(n, entry.nnz as usize);
            let (c, w, i);
            (c, classes) = classes.split_at_mut(n);
            (w, weights) = weights.split_at_mut(n);
            (i, numbers) = numbers.split_at_mut(n);
            tasks.push((
                k,
                page as usize,
                room,
                Facts { classes: Some(c), weights: Some(w), numbers: Some(i) },
            ));
        }
        // A few buffers per thread instead of one per page.
        tasks
            .into_par_iter()
            .map_init(<(Scratch, Vec<u8>)>::default, |(scratch, buffer), (k, page, room, mut facts)| {
                monitor.poll()?;
                let bytes = bytes.get(self, k, page, buffer)?;
                self.decode(page, bytes, scratch, room, &mut facts)
            })
            .collect::<Vec<Result<()>>>()
            .into_iter()
            .collect()
    }

    /// Rows and entries of some pages.
    pub fn size(&self, pages: &[u32]) -> (usize, usize) {
        pages
            .iter()
            .map(|&page| &self.pages[page as usize])
            .fold((0, 0), |(rows, entries), page| (rows + page.n_rows as usize, entries + page.nnz as usize))
    }

    /// An arena that holds just some pages, and the facts about its rows.
    ///
    /// # Errors
    /// As for [`Self::decode_into`]; [`Error::Memory`].
    pub fn load(&self, pages: &[u32], width: Width, monitor: &dyn Monitor) -> Result<(Arena, RowFacts)> {
        let (n_rows, nnz) = self.size(pages);
        let mut arena = Arena::new(width, self.meta.n_used, n_rows, nnz)?;
        let mut facts = RowFacts::default();
        arena.fill(n_rows, nnz, |free| self.decode_into(pages, &FromFile, free, &mut facts, monitor))?;
        Ok((arena, facts))
    }

    /// Class numbers and sample weights of all rows, by their numbers in the input.
    ///
    /// # Errors
    /// As for [`Self::decode_into`].
    pub fn facts(&self, monitor: &dyn Monitor) -> Result<(Vec<u32>, Vec<f64>)> {
        let n = self.meta.n_rows as usize;
        let (mut classes, mut weights) = (memory::zeros(n), memory::filled(1.0, n));
        self.for_facts(monitor, |_, facts| {
            for (k, &number) in facts.numbers.iter().enumerate() {
                (classes[number as usize], weights[number as usize]) = (facts.classes[k], facts.weights[k]);
            }
            Ok(())
        })?;
        Ok((classes, weights))
    }

    /// What the store says of all rows, in the order of the file.
    ///
    /// # Errors
    /// As for [`Self::decode_into`].
    pub fn facts_by_place(&self, monitor: &dyn Monitor) -> Result<RowFacts> {
        let n = self.meta.n_rows as usize;
        let mut all = RowFacts {
            classes: memory::with_capacity(n),
            weights: memory::with_capacity(n),
            numbers: memory::with_capacity(n),
        };
        self.for_facts(monitor, |_, facts| {
            memory::extend_from_slice(&mut all.classes, &facts.classes);
            memory::extend_from_slice(&mut all.weights, &facts.weights);
            memory::extend_from_slice(&mut all.numbers, &facts.numbers);
            Ok(())
        })?;
        Ok(all)
    }

    /// Decodes all pages, some at a time in one arena, and calls `f` with their numbers and what is said of
    /// their rows.
    fn for_facts(
        &self,
        monitor: &dyn Monitor,
        mut f: impl FnMut(&[u32], &RowFacts) -> Result<()>,
    ) -> Result<()> {
        let all: Vec<u32> = (0..self.pages.len() as u32).collect();
        let sizes = all.chunks(PIECE_PAGES).map(|pages| self.size(pages));
        let (n_rows, nnz) = sizes.fold((0, 0), |most, size| (most.0.max(size.0), most.1.max(size.1)));
        let mut arena = Arena::new(self.width(), self.meta.n_used, n_rows, nnz)?;
        let mut facts = RowFacts::default();
        for pages in all.chunks(PIECE_PAGES) {
            let (n_rows, nnz) = self.size(pages);
            arena.keep(&[]);
            arena.fill(n_rows, nnz, |free| self.decode_into(pages, &FromFile, free, &mut facts, monitor))?;
            f(pages, &facts)?;
        }
        Ok(())
    }

    /// The pages of a block, in the order of the file.
    pub fn pages_of(&self, block: u32) -> Vec<u32> {
        (0..).zip(&self.pages).filter(|(_, page)| page.block == block).map(|(k, _)| k).collect()
    }

    /// Decodes every page, and compares all with the metadata. Calls `progress` with the number of pages
    /// done.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first page with damage, [`Error::Io`], [`Error::Cancelled`].
    pub fn verify(&self, monitor: &dyn Monitor, progress: &(dyn Fn(usize) + Sync)) -> Result<()> {
        self.old_columns()?;
        let mut class_rows = vec![0u64; self.sorted.len()];
        let mut seen =
            memory::zeros::<u64>(usize::try_from(self.meta.n_rows.div_ceil(64)).unwrap_or(usize::MAX));
        let (mut fingerprint, mut done, mut buffer) = (0, 0, Vec::new());
        self.for_facts(monitor, |pages, facts| {
            facts.classes.iter().for_each(|&class| class_rows[class as usize] += 1);
            for &page in pages {
                self.read_page(page as usize, &mut buffer)?;
                fingerprint = format::checksum(fingerprint, &buffer);
            }
            for &number in &facts.numbers {
                let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
                if seen[word] & bit != 0 {
                    let offset = self.pages[pages[0] as usize].offset;
                    return Err(self.corrupt(offset, format!("row number {number} occurs twice")));
                }
                seen[word] |= bit;
            }
            done += pages.len();
            progress(done);
            Ok(())
        })?;
        if class_rows != self.class_rows() {
            return Err(
                self.corrupt(0, format!("the pages have {class_rows:?} rows per class, not what is claimed"))
            );
        }
        if format!("{fingerprint:016x}") != self.meta.fingerprint {
            return Err(self.corrupt(0, "the fingerprint of the pages is not the one claimed".into()));
        }
        Ok(())
    }

    fn corrupt(&self, offset: u64, reason: String) -> Error {
        Error::Corrupt { path: self.path.clone(), offset, reason }
    }
}

/// Where the stored bytes of pages come from.
pub trait PageBytes: Sync {
    /// The bytes of `page`, which is number `k` of those asked for.
    ///
    /// # Errors
    /// [`Error::Io`].
    fn get<'a>(&'a self, store: &Store, k: usize, page: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]>;
}

/// Straight from the file.
pub struct FromFile;

impl PageBytes for FromFile {
    fn get<'a>(&'a self, store: &Store, _: usize, page: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        store.read_page(page, buffer)?;
        Ok(buffer)
    }
}

/// Read before, in the order asked for.
impl PageBytes for [Vec<u8>] {
    fn get<'a>(&'a self, _: &Store, k: usize, _: usize, _: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        Ok(&self[k])
    }
}

/// The same room, borrowed for a shorter time.
pub fn reborrow<'a>(room: &'a mut Room<'_>) -> Room<'a> {
    use crate::matrix::arena::ValuesMut;
    let values = match &mut room.values {
        ValuesMut::Row(v) => ValuesMut::Row(v),
        ValuesMut::F32(v) => ValuesMut::F32(v),
        ValuesMut::F64(v) => ValuesMut::F64(v),
    };
    Room { lens: room.lens, indices: room.indices, values }
}

/// A file while it is being opened.
struct Opening<'a> {
    path: &'a Path,
    file: &'a File,
    len: u64,
}

impl Opening<'_> {
    fn corrupt(&self, offset: u64, reason: String) -> Error {
        Error::Corrupt { path: self.path.to_owned(), offset, reason }
    }

    fn read<const N: usize>(&self, offset: u64) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        file_at::read(self.file, &mut bytes, offset)
            .map_err(|source| Error::Io { path: self.path.to_owned(), source })?;
        Ok(bytes)
    }

    /// Header and trailer.
    fn parts(&self) -> Result<format::Trailer> {
        if self.len < HEADER_BYTES {
            return Err(self.corrupt(0, format!("no block store: {} bytes", self.len)));
        }
        let header: [u8; HEADER_BYTES as usize] = self.read(0)?;
        if &header[..8] != format::MAGIC {
            return Err(self.corrupt(0, "no block store: its first bytes are other ones".into()));
        }
        let version = format::u32_at(&header, 8);
        if version != format::VERSION {
            let known = format::VERSION;
            return Err(self.corrupt(
                8,
                format!("written in version {version} of the format, this package reads {known}"),
            ));
        }
        if header != format::header() {
            return Err(self.corrupt(12, "the header is damaged".into()));
        }
        if self.len < HEADER_BYTES + TRAILER_BYTES {
            return Err(self.corrupt(self.len, "the file is cut short".into()));
        }
        let start = self.len - TRAILER_BYTES;
        let parts = format::parse_trailer(&self.read(start)?);
        let parts =
            parts.ok_or_else(|| self.corrupt(start, "the file is cut short or its end is damaged".into()))?;
        let mut at = parts[0].offset;
        for part in &parts {
            let end = part.offset.checked_add(part.stored);
            if part.offset != at || part.offset < HEADER_BYTES || end.is_none_or(|end| end > start) {
                let TrailerEntry { offset, stored, .. } = part;
                return Err(self.corrupt(
                    start,
                    format!("{stored} bytes at {offset} are claimed for meta, columns or index"),
                ));
            }
            at += part.stored;
        }
        if at != start {
            return Err(self.corrupt(
                at,
                format!("{} bytes before the trailer belong to no part of the file", start - at),
            ));
        }
        Ok(parts)
    }

    /// The bytes of a part, checked and decompressed.
    fn part(&self, part: &TrailerEntry, k: usize, limit: usize) -> Result<Vec<u8>> {
        let most = part.stored.saturating_mul(MAX_RATIO as u64).min(limit as u64);
        if part.len > most || part.stored > part.len {
            return Err(
                self.corrupt(part.offset, format!("{} bytes claim to hold {}", part.stored, part.len))
            );
        }
        let mut bytes = memory::zeros(part.stored as usize);
        file_at::read(self.file, &mut bytes, part.offset)
            .map_err(|source| Error::Io { path: self.path.to_owned(), source })?;
        if format::checksum(SEEDS[k], &bytes) != part.checksum {
            return Err(self.corrupt(part.offset, "a checksum at the end of the file is wrong".into()));
        }
        if part.stored == part.len {
            return Ok(bytes);
        }
        match codec::unpack_growing(&bytes, part.len) {
            Ok(unpacked) if unpacked.len() as u64 == part.len => Ok(unpacked),
            Ok(_) => {
                Err(self.corrupt(part.offset, format!("{} bytes do not unpack to {}", part.stored, part.len)))
            }
            Err(error) if codec::is_out_of_memory(&error) => Err(Error::Memory { bytes: part.len as usize }),
            Err(error) => Err(self.corrupt(part.offset, error.to_string())),
        }
    }

    fn meta(&self, part: &TrailerEntry) -> Result<Meta> {
        let json = self.part(part, 0, MAX_META_BYTES)?;
        serde_json::from_slice(&json)
            .map_err(|error| self.corrupt(part.offset, format!("the metadata: {error}")))
    }

    /// The index; its pages fill the file from the header to the metadata.
    fn pages(&self, parts: &format::Trailer) -> Result<Vec<PageEntry>> {
        let index = &parts[2];
        if index.stored != index.len || !index.len.is_multiple_of(INDEX_BYTES as u64) {
            return Err(self.corrupt(index.offset, format!("an index of {} bytes", index.len)));
        }
        let bytes = self.part(index, 2, usize::MAX)?;
        let pages: Vec<PageEntry> = bytes.chunks_exact(INDEX_BYTES).map(PageEntry::parse).collect_large();
        if u32::try_from(pages.len()).is_err() {
            return Err(
                self.corrupt(index.offset, format!("{} pages, at most 2^32 are possible", pages.len()))
            );
        }
        let mut at = HEADER_BYTES;
        for (k, page) in pages.iter().enumerate() {
            if page.offset != at {
                return Err(
                    self.corrupt(index.offset, format!("page {k} is claimed at {}, not {at}", page.offset))
                );
            }
            // Buffers are made for what the index says, before a page is seen.
            let most = (page.stored as usize).saturating_mul(MAX_RATIO).min(MAX_PAGE_ENTRIES);
            if page.n_rows == 0 || page.n_rows as usize > MAX_PAGE_ROWS || page.nnz as usize > most {
                let PageEntry { stored, n_rows, nnz, .. } = page;
                let reason =
                    format!("page {k} is claimed to hold {n_rows} rows and {nnz} entries in {stored} bytes");
                return Err(self.corrupt(index.offset, reason));
            }
            at += u64::from(page.stored);
        }
        if at != parts[0].offset {
            return Err(self.corrupt(index.offset, format!("the pages end at {at}, not {}", parts[0].offset)));
        }
        // Sums cannot overflow in 64 bits.
        Ok(pages)
    }
}
