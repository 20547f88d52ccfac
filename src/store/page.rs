//! A page to bytes and back; the layout is drawn in [`super::format`].
//!
//! Decoding writes straight into an arena. Whatever is wrong with a page comes back as one
//! sentence; the reader adds the file and the offset. Values, columns, classes, weights and row numbers are
//! checked here, so that a solver never meets what a file should not contain.

use super::codec::{MAX_RATIO, Packer, Unpacker};
use super::format::{
    MAX_PAGE_ENTRIES, MAX_PAGE_ROWS, PAGE_HEADER_BYTES, PageEntry, Planes, SECTIONS, u32_at, u64_at,
};
use super::{format, indices};
use crate::matrix::arena::{Room, ValuesMut};
use crate::memory;
use crate::memory::CollectLarge;

/// What is wrong with a page.
pub type PageError = String;

const LENGTHS: usize = 0;
const CODES: usize = 1;
const COLUMNS: usize = 2;
const VALUES: usize = 3;
const CLASSES: usize = 4;
const WEIGHTS: usize = 5;
const NUMBERS: usize = 6;
const NAMES: [&str; SECTIONS] =
    ["row lengths", "column codes", "column numbers", "values", "class ids", "sample weights", "row numbers"];

const KIND_ONES: u8 = 0;
const KIND_ROW: u8 = 1;
const KIND_F32: u8 = 2;
const KIND_F64: u8 = 3;

/// The values of one row.
#[derive(Clone, Copy, Debug)]
pub enum RowValues<'a> {
    /// All equal.
    Same(f64),
    /// Each exactly a float32.
    F32(&'a [f32]),
    /// Any.
    F64(&'a [f64]),
}

/// One row for a page.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Rising columns.
    pub columns: &'a [u32],
    /// Values.
    pub values: RowValues<'a>,
    /// Class id.
    pub class: u32,
    /// Sample weight.
    pub weight: f64,
    /// Number of the row in the input.
    pub number: u64,
}

enum Values {
    Row(Vec<f64>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

/// A page that is being filled.
pub struct OpenPage {
    lens: Vec<u32>,
    gaps: Vec<u32>,
    values: Values,
    classes: Vec<u32>,
    weights: Vec<f64>,
    numbers: Vec<u64>,
}

impl Default for OpenPage {
    fn default() -> Self {
        let values = Values::Row(Vec::new());
        Self { lens: vec![], gaps: vec![], values, classes: vec![], weights: vec![], numbers: vec![] }
    }
}

impl OpenPage {
    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.lens.len()
    }

    /// Number of entries.
    pub fn nnz(&self) -> usize {
        self.gaps.len()
    }

    /// Whether the page should be closed.
    pub fn is_full(&self) -> bool {
        self.n_rows() >= format::PAGE_ROWS || self.nnz() >= format::PAGE_ENTRIES
    }

    /// Whether all values of each row are equal.
    pub fn is_uniform(&self) -> bool {
        matches!(self.values, Values::Row(_))
    }

    /// Whether some value is no float32.
    pub fn needs_f64(&self) -> bool {
        match &self.values {
            Values::Row(scale) => scale.iter().any(|&v| f64::from(v as f32) != v),
            Values::F32(_) => false,
            Values::F64(_) => true,
        }
    }

    /// Appends a row.
    pub fn push(&mut self, row: &Row<'_>) {
        self.push_values(row.values, row.columns.len());
        indices::gaps(row.columns, &mut self.gaps);
        memory::push(&mut self.lens, row.columns.len() as u32);
        memory::push(&mut self.classes, row.class);
        memory::push(&mut self.weights, row.weight);
        memory::push(&mut self.numbers, row.number);
    }

    fn push_values(&mut self, values: RowValues<'_>, len: usize) {
        self.widen_for(&values);
        match (&mut self.values, values) {
            (Values::Row(all), RowValues::Same(v)) => memory::push(all, v),
            (Values::F32(all), RowValues::Same(v)) => memory::extend(all, std::iter::repeat_n(v as f32, len)),
            (Values::F64(all), RowValues::Same(v)) => memory::extend(all, std::iter::repeat_n(v, len)),
            (Values::F32(all), RowValues::F32(v)) => memory::extend_from_slice(all, v),
            (Values::F64(all), RowValues::F32(v)) => memory::extend(all, v.iter().map(|&v| f64::from(v))),
            (Values::F64(all), RowValues::F64(v)) => memory::extend_from_slice(all, v),
            (Values::Row(_), _) | (Values::F32(_), RowValues::F64(_)) => unreachable!("widened before"),
        }
    }

    /// Makes the page's values wide enough for a row.
    fn widen_for(&mut self, values: &RowValues<'_>) {
        let is_single = |v: f64| f64::from(v as f32) == v;
        let to_f64 = match (&self.values, values) {
            (Values::Row(_), RowValues::Same(_))
            | (Values::F64(_), _)
            | (Values::F32(_), RowValues::F32(_)) => return,
            (Values::F32(_), RowValues::Same(v)) if is_single(*v) => return,
            (Values::Row(scale), RowValues::F32(_)) => !scale.iter().all(|&v| is_single(v)),
            (_, RowValues::F64(_)) | (Values::F32(_), RowValues::Same(_)) => true,
        };
        let old = std::mem::replace(&mut self.values, Values::Row(Vec::new()));
        let lens = self.lens.iter().map(|&len| len as usize);
        self.values = match (old, to_f64) {
            (Values::Row(scale), true) => Values::F64(
                scale.iter().zip(lens).flat_map(|(&v, len)| std::iter::repeat_n(v, len)).collect_large(),
            ),
            (Values::Row(scale), false) => Values::F32(
                scale
                    .iter()
                    .zip(lens)
                    .flat_map(|(&v, len)| std::iter::repeat_n(v as f32, len))
                    .collect_large(),
            ),
            (Values::F32(v), _) => Values::F64(v.into_iter().map(f64::from).collect_large()),
            (all @ Values::F64(_), _) => all,
        };
    }

    /// The bytes of the page, its number in the file being `page`.
    ///
    /// # Errors
    /// Those of the compressor.
    pub fn encode(&self, page: u64) -> std::io::Result<Vec<u8>> {
        let has_weights = self.weights.iter().any(|&w| w != 1.0);
        let (kind, sections) = self.sections(has_weights);
        let mut bytes = memory::zeros(PAGE_HEADER_BYTES);
        bytes[0..4].copy_from_slice(&(self.n_rows() as u32).to_le_bytes());
        bytes[4..8].copy_from_slice(&(self.nnz() as u32).to_le_bytes());
        (bytes[8], bytes[9]) = (kind, u8::from(has_weights));
        let mut packer = Packer::new()?;
        for (k, section) in sections.iter().enumerate() {
            let packed = packer.pack(section)?;
            let stored = if packed.len() < section.len() { &packed } else { section };
            let at = 16 + 16 * k;
            bytes[at..at + 4].copy_from_slice(&(stored.len() as u32).to_le_bytes());
            bytes[at + 4..at + 8].copy_from_slice(&(section.len() as u32).to_le_bytes());
            let sum = format::checksum(8 * page + k as u64, stored);
            bytes[at + 8..at + 16].copy_from_slice(&sum.to_le_bytes());
            memory::extend_from_slice(&mut bytes, stored);
        }
        let end = PAGE_HEADER_BYTES - 8;
        let sum = format::checksum(8 * page + SECTIONS as u64, &bytes[..end]);
        bytes[end..PAGE_HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    fn sections(&self, has_weights: bool) -> (u8, [Vec<u8>; SECTIONS]) {
        let mut sections: [Vec<u8>; SECTIONS] = Default::default();
        format::to_planes(self.lens.iter().map(|x| x.to_le_bytes()), &mut sections[LENGTHS]);
        let [_, codes, columns, ..] = &mut sections;
        indices::encode(&self.gaps, codes, columns);
        let out = &mut sections[VALUES];
        let kind = match &self.values {
            Values::Row(scale) if scale.iter().all(|&v| v == 1.0) => KIND_ONES,
            Values::Row(v) => {
                format::to_planes(v.iter().map(|x| x.to_le_bytes()), out);
                KIND_ROW
            }
            Values::F32(v) => {
                format::to_planes(v.iter().map(|x| x.to_le_bytes()), out);
                KIND_F32
            }
            Values::F64(v) => {
                format::to_planes(v.iter().map(|x| x.to_le_bytes()), out);
                KIND_F64
            }
        };
        format::to_planes(self.classes.iter().map(|x| x.to_le_bytes()), &mut sections[CLASSES]);
        if has_weights {
            format::to_planes(self.weights.iter().map(|x| x.to_le_bytes()), &mut sections[WEIGHTS]);
        }
        format::to_planes(self.numbers.iter().map(|x| x.to_le_bytes()), &mut sections[NUMBERS]);
        (kind, sections)
    }
}

/// Buffers of a decoder, used again for every page.
#[derive(Default)]
pub struct Scratch {
    sections: [Vec<u8>; 2],
    unpacker: Unpacker,
}

/// What a page may contain.
#[derive(Clone, Copy, Debug)]
pub struct PageLimits<'a> {
    /// The rank of each class among the sorted classes, by the id in the file.
    pub class_ranks: &'a [u32],
    /// Rows of the whole file.
    pub n_rows: u64,
    /// One more than the largest column.
    pub n_cols: usize,
}

/// Where the facts about rows go; what is `None` is not decoded.
#[derive(Default)]
pub struct Facts<'a> {
    /// Rank of each row's class among the sorted classes.
    pub classes: Option<&'a mut [u32]>,
    /// Sample weights, 1 where the file has none.
    pub weights: Option<&'a mut [f64]>,
    /// Row numbers in the input.
    pub numbers: Option<&'a mut [u64]>,
}

/// The parts of a page's header.
struct Head<'a> {
    bytes: &'a [u8],
    page: u64,
    n_rows: usize,
    nnz: usize,
    kind: u8,
    has_weights: bool,
    sections: [(&'a [u8], usize); SECTIONS],
}

impl<'a> Head<'a> {
    fn parse(bytes: &'a [u8], page: u64, entry: &PageEntry) -> Result<Self, PageError> {
        let end = PAGE_HEADER_BYTES - 8;
        if bytes.len() < PAGE_HEADER_BYTES {
            return Err(format!(
                "page {page} has {} bytes, its header alone has {PAGE_HEADER_BYTES}",
                bytes.len()
            ));
        }
        if u64_at(bytes, end) != format::checksum(8 * page + SECTIONS as u64, &bytes[..end]) {
            return Err(format!("the checksum of the header of page {page} is wrong"));
        }
        let (n_rows, nnz) = (u32_at(bytes, 0), u32_at(bytes, 4));
        if (n_rows, nnz) != (entry.n_rows, entry.nnz) {
            let (rows, entries) = (entry.n_rows, entry.nnz);
            return Err(format!(
                "page {page} has {n_rows} rows and {nnz} entries, the index says {rows} and {entries}"
            ));
        }
        let (n_rows, nnz) = (n_rows as usize, nnz as usize);
        if n_rows == 0 || n_rows > MAX_PAGE_ROWS || nnz > MAX_PAGE_ENTRIES {
            return Err(format!(
                "page {page} claims {n_rows} rows and {nnz} entries, possible are 1 to {MAX_PAGE_ROWS} and \
                 0 to {MAX_PAGE_ENTRIES}"
            ));
        }
        let (kind, flags) = (bytes[8], bytes[9]);
        if kind > KIND_F64 || flags > 1 || bytes[10..16] != [0; 6] {
            return Err(format!("page {page} has unknown features (kind of values {kind}, flags {flags})"));
        }
        let mut rest = &bytes[PAGE_HEADER_BYTES..];
        let mut sections = [(rest, 0); SECTIONS];
        for (k, section) in sections.iter_mut().enumerate() {
            let (stored, len) = (u32_at(bytes, 16 + 16 * k) as usize, u32_at(bytes, 20 + 16 * k) as usize);
            let name = NAMES[k];
            if stored > rest.len() {
                return Err(format!(
                    "the {name} of page {page} claim {stored} bytes, {} are left",
                    rest.len()
                ));
            }
            if stored > len || len > stored.saturating_mul(MAX_RATIO) {
                return Err(format!("the {name} of page {page} claim {len} bytes packed in {stored}"));
            }
            let (here, later) = rest.split_at(stored);
            (*section, rest) = ((here, len), later);
        }
        if !rest.is_empty() {
            return Err(format!("page {page} has {} bytes behind its last section", rest.len()));
        }
        let head = Self { bytes, page, n_rows, nnz, kind, has_weights: flags == 1, sections };
        head.check_lengths()?;
        Ok(head)
    }

    fn check_lengths(&self) -> Result<(), PageError> {
        let Self { n_rows, nnz, .. } = *self;
        let values = match self.kind {
            KIND_ONES => 0,
            KIND_ROW => 8 * n_rows,
            KIND_F32 => 4 * nnz,
            _ => 8 * nnz,
        };
        let weights = if self.has_weights { 8 * n_rows } else { 0 };
        let columns = self.sections[COLUMNS].1;
        if columns < nnz || columns > 4 * nnz {
            return Err(format!("{nnz} column numbers of page {} claim {columns} bytes", self.page));
        }
        let expected = [4 * n_rows, nnz.div_ceil(4), columns, values, 4 * n_rows, weights, 8 * n_rows];
        for (k, expected) in expected.into_iter().enumerate() {
            let len = self.sections[k].1;
            if len != expected {
                let name = NAMES[k];
                return Err(format!(
                    "the {name} of page {} have {len} bytes, expected {expected}",
                    self.page
                ));
            }
        }
        Ok(())
    }

    fn check(&self, k: usize) -> Result<(), PageError> {
        let sum = u64_at(self.bytes, 24 + 16 * k);
        if sum == format::checksum(8 * self.page + k as u64, self.sections[k].0) {
            Ok(())
        } else {
            Err(format!("the checksum of the {} of page {} is wrong", NAMES[k], self.page))
        }
    }

    /// The bytes of section `k`, checked and decompressed, with `padding` more bytes behind them.
    fn section<'s>(
        &self,
        k: usize,
        padding: usize,
        buffer: &'s mut Vec<u8>,
        unpacker: &mut Unpacker,
    ) -> Result<&'s [u8], PageError> {
        self.check(k)?;
        let (stored, len) = self.sections[k];
        buffer.clear();
        if stored.len() == len {
            memory::extend_from_slice(buffer, stored);
        } else {
            memory::resize(buffer, len, 0);
            let damaged = |error: std::io::Error| format!("the {} of page {}: {error}", NAMES[k], self.page);
            let n = unpacker.unpack(stored, &mut buffer[..]).map_err(damaged)?;
            if n != len {
                return Err(format!(
                    "the {} of page {} have {n} bytes, {len} are claimed",
                    NAMES[k], self.page
                ));
            }
        }
        memory::resize(buffer, len + padding, 0);
        Ok(buffer)
    }
}

/// Decodes the entries of a page into the room that an arena has for it, and the facts about its rows.
///
/// # Errors
/// What is wrong with the page.
pub fn decode(
    bytes: &[u8],
    page: u64,
    entry: &PageEntry,
    limits: &PageLimits<'_>,
    scratch: &mut Scratch,
    room: Room<'_>,
    facts: &mut Facts<'_>,
) -> Result<(), PageError> {
    let head = Head::parse(bytes, page, entry)?;
    let Scratch { sections: [first, second], unpacker } = scratch;

    let lens = head.section(LENGTHS, 0, first, unpacker)?;
    Planes::new(lens, head.n_rows).copy_to(room.lens, |len| i64::from(u32::from_le_bytes(len)));
    let total: i64 = room.lens.iter().sum();
    if total != head.nnz as i64 {
        return Err(format!("the rows of page {page} have {total} entries, {} are claimed", head.nnz));
    }

    let codes = head.section(CODES, 0, first, unpacker)?;
    let numbers = head.section(COLUMNS, indices::PADDING, second, unpacker)?;
    if indices::decode(codes, numbers, room.indices).is_none() {
        return Err(format!("the column numbers of page {page} do not fit their codes"));
    }
    let mut rest = &mut room.indices[..];
    for (i, &len) in room.lens.iter().enumerate() {
        let row;
        (row, rest) = rest.split_at_mut(len as usize);
        let is_inside =
            indices::add_up(row).is_some() && row.last().is_none_or(|&j| (j as usize) < limits.n_cols);
        if !is_inside {
            return Err(format!("row {i} of page {page} has a column outside 0..{}", limits.n_cols));
        }
    }

    let values = head.section(VALUES, 0, first, unpacker)?;
    decode_values(&head, values, room.lens, room.values)?;
    decode_facts(&head, limits, first, unpacker, facts)
}

fn decode_values(head: &Head<'_>, bytes: &[u8], lens: &[i64], out: ValuesMut<'_>) -> Result<(), PageError> {
    let page = head.page;
    let too_wide =
        || Err(format!("the values of page {page} have a wider type than the metadata of the file say"));
    let scale = || -> Vec<f64> {
        match head.kind {
            KIND_ONES => memory::filled(1.0, head.n_rows),
            _ => {
                let mut scale = memory::zeros(head.n_rows);
                Planes::new(bytes, head.n_rows).copy_to(&mut scale, f64::from_le_bytes);
                scale
            }
        }
    };
    let is_finite = match (out, head.kind) {
        (ValuesMut::Row(out), KIND_ONES | KIND_ROW) => {
            out.copy_from_slice(&scale());
            out.iter().all(|v| v.is_finite())
        }
        (ValuesMut::F32(out), KIND_ONES | KIND_ROW) => {
            let scale = scale();
            if scale.iter().any(|&v| f64::from(v as f32) != v && v.is_finite()) {
                return too_wide();
            }
            spread(scale.iter().map(|&v| v as f32), lens, out);
            scale.iter().all(|v| v.is_finite())
        }
        (ValuesMut::F64(out), KIND_ONES | KIND_ROW) => {
            let scale = scale();
            spread(scale.iter().copied(), lens, out);
            scale.iter().all(|v| v.is_finite())
        }
        (ValuesMut::F32(out), KIND_F32) => {
            Planes::new(bytes, head.nnz).copy_to(out, f32::from_le_bytes);
            out.iter().fold(true, |is_finite, v| is_finite & v.is_finite())
        }
        (ValuesMut::F64(out), KIND_F32) => {
            Planes::new(bytes, head.nnz).copy_to(out, |bytes| f64::from(f32::from_le_bytes(bytes)));
            out.iter().fold(true, |is_finite, v| is_finite & v.is_finite())
        }
        (ValuesMut::F64(out), KIND_F64) => {
            Planes::new(bytes, head.nnz).copy_to(out, f64::from_le_bytes);
            out.iter().fold(true, |is_finite, v| is_finite & v.is_finite())
        }
        _ => return too_wide(),
    };
    if is_finite { Ok(()) } else { Err(format!("page {page} holds a value that is not finite")) }
}

/// Gives each entry the number of its row.
fn spread<T: Copy>(numbers: impl Iterator<Item = T>, lens: &[i64], mut out: &mut [T]) {
    for (v, &len) in numbers.zip(lens) {
        let row;
        (row, out) = out.split_at_mut(len as usize);
        row.fill(v);
    }
}

fn decode_facts(
    head: &Head<'_>,
    limits: &PageLimits<'_>,
    buffer: &mut Vec<u8>,
    unpacker: &mut Unpacker,
    facts: &mut Facts<'_>,
) -> Result<(), PageError> {
    let (page, n) = (head.page, head.n_rows);
    if let Some(classes) = &mut facts.classes {
        let bytes = head.section(CLASSES, 0, buffer, unpacker)?;
        Planes::new(bytes, n).copy_to(classes, u32::from_le_bytes);
        for (i, class) in classes.iter_mut().enumerate() {
            let id = *class;
            let Some(rank) = limits.class_ranks.get(id as usize) else {
                let count = limits.class_ranks.len();
                return Err(format!("row {i} of page {page} has class {id}, the file has {count} classes"));
            };
            *class = *rank;
        }
    }
    if let Some(weights) = &mut facts.weights {
        weights.fill(1.0);
        if head.has_weights {
            let bytes = head.section(WEIGHTS, 0, buffer, unpacker)?;
            Planes::new(bytes, n).copy_to(weights, f64::from_le_bytes);
            for (i, weight) in weights.iter().enumerate() {
                if !(weight.is_finite() && *weight >= 0.0) {
                    return Err(format!("row {i} of page {page} has the weight {weight}"));
                }
            }
        }
    }
    if let Some(numbers) = &mut facts.numbers {
        let bytes = head.section(NUMBERS, 0, buffer, unpacker)?;
        Planes::new(bytes, n).copy_to(numbers, u64::from_le_bytes);
        let mut least = 0;
        for (i, number) in numbers.iter().enumerate() {
            if *number < least || *number >= limits.n_rows {
                return Err(format!(
                    "row {i} of page {page} has the number {number}, outside {least}..{}",
                    limits.n_rows
                ));
            }
            least = *number + 1;
        }
    }
    Ok(())
}
