//! Files with checksums: models, block stores, planes.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use hinge::cost_plane::file::PlaneFile;
use hinge::cost_plane::locate::BoundingBoxTree;
use hinge::cost_plane::{ExplorationOptions, plane_to_file};
use hinge::fit::Silent;
use hinge::labels::classes::Classes;
use hinge::matrix::csr::CsrView;
use hinge::memory;
use hinge::model::Model;
use hinge::model::answer::ClassRule;
use hinge::model::file::{Precision, SaveOptions, Storage};
use hinge::model::liblinear::{ClassOrder, parse};
use hinge::model::probability::Probability;
use hinge::store::codec::Packer;
use hinge::store::columns::Order;
use hinge::store::format::{
    PAGE_HEADER_BYTES, SECTIONS, SEEDS, TRAILER_BYTES, TrailerEntry, checksum, parse_trailer, trailer,
    u32_at, u64_at,
};
use hinge::store::reader::Store;
use hinge::store::writer::{StoreBuilder, StoreOptions};
use twox_hash::XxHash3_64;

use crate::bytes::{Draw, mutate};
use crate::formats::{MODELS, ask};
use crate::harness::{INPUT, Verdict};

/// Writes a case for a reader.
fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).unwrap();
    INPUT.store(bytes.len(), Ordering::Relaxed);
}

// Models.

/// Bytes of data that have a checksum of their own.
const CHUNK: usize = 1 << 12;

fn models(folder: &Path) -> Vec<Vec<u8>> {
    let path = folder.join("m");
    let made = |k: usize| parse(MODELS[k].as_bytes(), Path::new("m"), ClassOrder::Sorted).unwrap();
    let saved = |model: &Model, storage, precision| {
        model.save(&path, &SaveOptions { storage, precision, ..SaveOptions::default() }).unwrap();
        std::fs::read(&path).unwrap()
    };
    let plain = made(0);
    let mut rich = made(1);
    rich.classes = Classes::Text(vec!["a".into(), "naïve".into(), "\0".into()]);
    rich.feature_names = Some(vec!["x".into(), "語".into()]);
    rich.probability = Some(Probability::Sigmoid { slopes: vec![-1.0; 3], offsets: vec![0.5; 3] });
    rich.answer = ClassRule::Cheapest((0..9).map(f64::from).collect());
    let mut high = made(3);
    high.answer = ClassRule::Threshold(0.25);
    vec![
        saved(&plain, Storage::default(), None),
        saved(&rich, Storage::default(), None),
        saved(&rich, Storage::Sparse, Some(Precision::Single)),
        saved(&high, Storage::Sparse, None),
    ]
}

/// Where the data begin and where the checksums do.
fn parts(file: &[u8]) -> Option<(usize, usize)> {
    let begin = 8 + usize::try_from(u64_at(file.get(..8)?, 0)).ok().filter(|n| *n < file.len())?;
    let text = str::from_utf8(file.get(8..begin)?).ok()?;
    let of_head: serde_json::Value = serde_json::from_str(text).ok()?;
    let n_data = usize::try_from(of_head["checksums"]["data_offsets"][0].as_u64()?).ok()?;
    Some((begin, begin.checked_add(n_data).filter(|end| *end <= file.len())?))
}

/// The file with other bytes in its head or its data, and the checksums that belong to them.
fn forged(draw: &mut Draw, file: &[u8], other: &[u8]) -> Vec<u8> {
    let (begin, end) = parts(file).unwrap();
    let (mut head, mut data) = (file[8..begin].to_vec(), file[begin..end].to_vec());
    let keeps_length = draw.chance(70);
    for part in [&mut head, &mut data] {
        if draw.chance(60) {
            let n = part.len();
            mutate(draw, part, other);
            if keeps_length {
                part.resize(n, b' ');
            }
        }
    }
    head.resize((head.len() + 8).next_multiple_of(64) - 8, b' ');
    let mut bytes = (head.len() as u64).to_le_bytes().to_vec();
    bytes.extend(head);
    let mut sums = vec![XxHash3_64::oneshot(&bytes)];
    sums.extend(data.chunks(CHUNK).map(XxHash3_64::oneshot));
    let all: Vec<u8> = sums.iter().flat_map(|sum| sum.to_le_bytes()).collect();
    sums.push(XxHash3_64::oneshot(&all));
    bytes.extend(data);
    bytes.extend(sums.iter().flat_map(|sum| sum.to_le_bytes()));
    bytes
}

/// Model files.
pub fn model(folder: &Path) -> impl FnMut(u64) -> Verdict + use<> {
    let (valid, path) = (models(folder), folder.join("model"));
    move |case| {
        let mut draw = Draw::new(case);
        let (file, other) = (&valid[draw.below(valid.len())], valid[draw.below(valid.len())].clone());
        let is_forged = draw.chance(70);
        let bytes = if is_forged {
            forged(&mut draw, file, &other)
        } else {
            let mut bytes = file.clone();
            mutate(&mut draw, &mut bytes, &other);
            bytes
        };
        write(&path, &bytes);
        match memory::catch(|| Model::load(&path)) {
            Ok(model) => {
                assert!(is_forged || valid.contains(&bytes), "a damaged file is read");
                model.check().unwrap_or_else(|flaw| panic!("{}: {}", flaw.field, flaw.reason));
                ask(model);
                Verdict::Read
            }
            Err(_) => Verdict::Refused,
        }
    }
}

// Block stores.

/// Rows of a small store, and whether they have weights and other numbers for their columns.
pub fn small_store(path: &Path, n_rows: i32, is_rich: bool) {
    let (mut indptr, mut indices, mut values) = (vec![0i64], Vec::new(), Vec::new());
    for i in 0..n_rows {
        for k in 0..i % 6 {
            indices.push((i * 31 + k * 17) % 90);
            values.push(if is_rich { 0.37 * f64::from(k + 1) + f64::from(i) / 7.0 } else { 1.0 });
        }
        indptr.push(indices.len() as i64);
    }
    let (view, _) = CsrView::new(&indptr, &indices, &values, 90).unwrap();
    let counts: Vec<u64> = (0..90).map(|k| k * 37 % 101).collect();
    let order = if is_rich { Order::by_count(&counts) } else { Order::default() };
    let mut writer =
        StoreBuilder::create(path, StoreOptions { n_blocks: 2, order, ..StoreOptions::default() }).unwrap();
    let classes: Vec<u32> = (0..n_rows as u32).map(|i| i * i % 7 % 2).collect();
    let weights: Vec<f64> = (0..n_rows).map(|i| 0.5 + f64::from(i % 3)).collect();
    writer.append(&view.into(), &classes, is_rich.then_some(&weights[..]), &Silent).unwrap();
    writer.finish(Classes::Int(vec![-1, 1]), None).unwrap();
}

/// The valid file in parts that can be changed one by one.
struct Parts {
    bytes: Vec<u8>,
    trailer: [TrailerEntry; 3],
    meta: Vec<u8>,
    /// Offset of each page.
    pages: Vec<usize>,
}

fn parts_of_store(path: &Path) -> Parts {
    let bytes = std::fs::read(path).unwrap();
    let start = bytes.len() - TRAILER_BYTES as usize;
    let trailer = parse_trailer(bytes[start..].first_chunk().unwrap()).unwrap();
    let of = |part: &TrailerEntry| &bytes[part.offset as usize..][..part.stored as usize];
    let meta = zstd::decode_all(of(&trailer[0])).unwrap();
    let pages = Store::open(path).unwrap().pages().iter().map(|page| page.offset as usize).collect();
    Parts { bytes, trailer, meta, pages }
}

/// Changes a page in its header or in a section, which is unpacked for that if it can be packed again to the same
/// length, and puts the checksums right.
fn forge_page(draw: &mut Draw, parts: &Parts, packer: &mut Packer) -> Vec<u8> {
    let mut bytes = parts.bytes.clone();
    let number = draw.below(parts.pages.len());
    let page = &mut bytes[parts.pages[number]..];
    let k = draw.below(SECTIONS + 1);
    if k < SECTIONS {
        let stored = |k: usize| u32_at(page, 16 + 16 * k) as usize;
        let start = PAGE_HEADER_BYTES + (0..k).map(stored).sum::<usize>();
        let (len, full) = (stored(k), u32_at(page, 20 + 16 * k) as usize);
        let mut section = page[start..start + len].to_vec();
        let unpacked = if full > len { zstd::bulk::decompress(&section, full).ok() } else { None };
        let mut changed = unpacked.clone().unwrap_or_else(|| section.clone());
        let n = changed.len();
        mutate(draw, &mut changed, &parts.meta);
        changed.resize(n, 0);
        if unpacked.is_some() {
            changed = packer.pack(&changed).unwrap();
        }
        if changed.len() == len {
            section = changed;
        } else if len > 0 {
            let at = draw.below(len);
            section[at] ^= 1 << draw.below(8);
        }
        let sum = checksum(8 * number as u64 + k as u64, &section);
        page[start..start + len].copy_from_slice(&section);
        page[24 + 16 * k..32 + 16 * k].copy_from_slice(&sum.to_le_bytes());
    } else {
        let mut header = page[..PAGE_HEADER_BYTES - 8].to_vec();
        mutate(draw, &mut header, &parts.meta);
        header.resize(PAGE_HEADER_BYTES - 8, 0);
        page[..PAGE_HEADER_BYTES - 8].copy_from_slice(&header);
    }
    let end = PAGE_HEADER_BYTES - 8;
    let sum = checksum(8 * number as u64 + SECTIONS as u64, &page[..end]);
    page[end..end + 8].copy_from_slice(&sum.to_le_bytes());
    bytes
}

/// Changes what is behind the pages: meta, columns, index, trailer.
fn forge_end(draw: &mut Draw, parts: &Parts, packer: &mut Packer) -> Vec<u8> {
    let of = |part: &TrailerEntry| parts.bytes[part.offset as usize..][..part.stored as usize].to_vec();
    let mut contents = [parts.meta.clone(), of(&parts.trailer[1]), of(&parts.trailer[2])];
    let which = draw.below(4);
    if which < 3 {
        let n = contents[which].len();
        mutate(draw, &mut contents[which], &parts.meta);
        if draw.chance(50) {
            contents[which].resize(n, b' ');
        }
    }
    let mut bytes = parts.bytes[..parts.trailer[0].offset as usize].to_vec();
    let mut entries = parts.trailer;
    for (k, content) in contents.iter().enumerate() {
        let stored = if k == 0 { packer.pack(content).unwrap() } else { content.clone() };
        entries[k] = TrailerEntry {
            offset: bytes.len() as u64,
            stored: stored.len() as u64,
            len: if k == 1 { parts.trailer[1].len } else { content.len() as u64 },
            checksum: checksum(SEEDS[k], &stored),
        };
        bytes.extend(stored);
    }
    let mut end = trailer(&entries).to_vec();
    if which == 3 {
        let n = end.len();
        mutate(draw, &mut end, &parts.meta);
        end.resize(n, 0);
        let sum = checksum(SEEDS[3], &end[..n - 8]);
        end[n - 8..].copy_from_slice(&sum.to_le_bytes());
    }
    bytes.extend(end);
    bytes
}

/// Reads all of a store.
fn read_all(path: &Path) -> hinge::Result<()> {
    let store = Store::open(path)?;
    store.verify(&Silent, &|_| ())?;
    store.old_columns()?;
    let pages: Vec<u32> = (0..store.pages().len() as u32).collect();
    let (_, facts) = store.load(&pages, store.width(), &Silent)?;
    assert_eq!(facts.weights.len() as u64, store.meta().n_rows);
    assert!(facts.weights.iter().all(|v| v.is_finite() && *v >= 0.0));
    assert!(facts.classes.iter().all(|&k| (k as usize) < store.classes().len()));
    Ok(())
}

/// Block stores.
pub fn store(folder: &Path) -> impl FnMut(u64) -> Verdict + use<> {
    let path: PathBuf = folder.join("store");
    let valid: Vec<Parts> = [(12, true), (200, true), (60, false)]
        .map(|(n, is_rich)| {
            let _ = std::fs::remove_file(&path);
            small_store(&path, n, is_rich);
            parts_of_store(&path)
        })
        .into();
    let mut packer = Packer::new().unwrap();
    move |case| {
        let mut draw = Draw::new(case);
        let parts = &valid[draw.below(valid.len())];
        let is_forged = draw.chance(70);
        let bytes = match draw.below(2) {
            _ if !is_forged => {
                let mut bytes = parts.bytes.clone();
                let other = valid[draw.below(valid.len())].bytes.clone();
                mutate(&mut draw, &mut bytes, &other);
                bytes
            }
            0 => forge_page(&mut draw, parts, &mut packer),
            _ => forge_end(&mut draw, parts, &mut packer),
        };
        write(&path, &bytes);
        match memory::catch(|| read_all(&path)) {
            Ok(()) => {
                let is_right = is_forged || valid.iter().any(|parts| parts.bytes == bytes);
                assert!(is_right, "a damaged store is read");
                Verdict::Read
            }
            Err(_) => Verdict::Refused,
        }
    }
}

// Planes.

/// Frames of a file: where each payload is.
pub fn frames(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (mut at, mut found) = (12, Vec::new());
    while let Some(head) = bytes.get(at..at + 16) {
        let end = at + 16 + u64_at(head, 0) as usize;
        found.push(at + 16..end);
        at = end;
    }
    assert_eq!(at, bytes.len());
    found
}

/// Changes the payloads of some frames and puts lengths and checksums right.
pub fn forge_frames(draw: &mut Draw, file: &[u8]) -> Vec<u8> {
    let frames = frames(file);
    let mut bytes = file[..12].to_vec();
    let chosen = draw.below(frames.len());
    for (number, range) in frames.iter().enumerate() {
        let mut payload = file[range.clone()].to_vec();
        if number == chosen || draw.chance(10) {
            let n = payload.len();
            mutate(draw, &mut payload, file);
            if draw.chance(60) {
                payload.resize(n, 0);
            }
        }
        if draw.chance(1) {
            continue; // a frame is missing
        }
        bytes.extend((payload.len() as u64).to_le_bytes());
        bytes.extend(XxHash3_64::oneshot_with_seed(number as u64, &payload).to_le_bytes());
        bytes.extend(payload);
    }
    bytes
}

fn use_plane(path: &Path) -> hinge::Result<()> {
    let file = PlaneFile::open(path)?;
    for k in 0..file.n_layers() {
        file.layer(k)?;
    }
    let complex = file.load()?;
    let _ = complex.check();
    let index = BoundingBoxTree::new(&complex);
    for at in [[0.1, 0.1], [1.5, 0.3], [2.0, 2.0]] {
        if let Some(facet) = index.facet(&complex, at, 1e-9) {
            assert_eq!(complex.sides(facet).len(), complex.n_rows);
        }
    }
    Ok(())
}

/// Plane files.
pub fn plane(folder: &Path) -> impl FnMut(u64) -> Verdict + use<> {
    let path: PathBuf = folder.join("plane");
    let values: Vec<f64> = (0..16).map(|k: i32| f64::from(k * 7 % 11) - 5.0).collect();
    let indptr: Vec<i64> = (0..=8).map(|i| 2 * i).collect();
    let indices: Vec<i64> = (0..16).map(|k| k % 2).collect();
    let (view, _) = CsrView::new(&indptr, &indices, &values, 2).unwrap();
    let y: Vec<f64> = (0..8).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
    let options = ExplorationOptions { limit: [2.0; 2], start: None, max_facets: 10_000, seed: 0 };
    plane_to_file(&view.into(), &y, 1.0, &options, (&path, b"kept"), &Silent).unwrap();
    let valid = std::fs::read(&path).unwrap();
    move |case| {
        let mut draw = Draw::new(case);
        let is_forged = draw.chance(70);
        let bytes = if is_forged {
            forge_frames(&mut draw, &valid)
        } else {
            let mut bytes = valid.clone();
            mutate(&mut draw, &mut bytes, &valid);
            bytes
        };
        write(&path, &bytes);
        match memory::catch(|| use_plane(&path)) {
            Ok(()) => {
                assert!(is_forged || bytes == valid, "a damaged plane is read");
                Verdict::Read
            }
            Err(_) => Verdict::Refused,
        }
    }
}
