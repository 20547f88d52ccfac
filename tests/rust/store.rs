//! The block store: what is written is read, and what is damaged or contrived is refused, whatever is wrong
//! with it.

use std::path::Path;

use hinge::Error;
use hinge::fit::Silent;
use hinge::labels::classes::Classes;
use hinge::matrix::Rows;
use hinge::matrix::arena::{Arena, View, Width};
use hinge::matrix::csr::CsrView;
use hinge::store::codec::Packer;
use hinge::store::columns::{Order, restore};
use hinge::store::format;
use hinge::store::format::{HEADER_BYTES, PAGE_HEADER_BYTES, TRAILER_BYTES};
use hinge::store::reader::{RowFacts, Store};
use hinge::store::writer::{StoreBuilder, StoreOptions};
use proptest::prelude::*;

/// Rows as lists, and what belongs to them.
#[derive(Clone, Debug, Default)]
struct Data {
    rows: Vec<Vec<(i32, f64)>>,
    classes: Vec<u32>,
    weights: Option<Vec<f64>>,
}

const N_COLS: usize = 300;

fn values(kind: u8) -> BoxedStrategy<f64> {
    match kind {
        0 => Just(1.0).boxed(),
        1 => prop_oneof![Just(0.25), Just(-3.0)].boxed(),
        2 => (-100..100i32).prop_map(|k| f64::from(k) / 8.0).boxed(),
        _ => (-5.0..5.0f64).boxed(),
    }
}

fn data() -> impl Strategy<Value = Data> {
    let row = |kind| prop::collection::vec((0..N_COLS as i32, values(kind)), 0..12);
    let rows = (0..4u8).prop_flat_map(move |kind| prop::collection::vec(row(kind), 1..120));
    let kinds = prop_oneof![Just(false), Just(true)];
    (rows, kinds, any::<u32>()).prop_map(|(mut rows, weighted, seed)| {
        // Half of the cases: rows of equal values.
        if seed % 2 == 0 {
            rows.iter_mut().for_each(|row| {
                let v = row.first().map_or(1.0, |entry| entry.1);
                row.sort_by_key(|entry| entry.0);
                row.dedup_by_key(|entry| entry.0);
                row.iter_mut().for_each(|entry| entry.1 = v);
            });
        }
        let n = rows.len() as u32;
        let classes = (0..n).map(|i| (i * 7 + seed % 5) % (i + 1).min(3)).collect();
        let weights = weighted.then(|| (0..n).map(|i| f64::from(i % 4) / 2.0).collect());
        Data { rows, classes, weights }
    })
}

fn classes(ids: &[u32]) -> Classes {
    let n = ids.iter().max().map_or(0, |&id| id + 1);
    // Falling labels: sorted places differ from ids.
    Classes::Int((0..n).map(|id| 10 - i64::from(id)).collect())
}

fn write(path: &Path, data: &Data, options: StoreOptions) -> hinge::Result<()> {
    let mut indptr = vec![0i64];
    let (mut indices, mut entries) = (Vec::new(), Vec::new());
    for row in &data.rows {
        indices.extend(row.iter().map(|entry| entry.0));
        entries.extend(row.iter().map(|entry| entry.1));
        indptr.push(indices.len() as i64);
    }
    let (view, _) = CsrView::new(&indptr, &indices, &entries, N_COLS)?;
    let mut writer = StoreBuilder::create(path, options)?;
    writer.append(&view.into(), &data.classes, data.weights.as_deref(), &Silent)?;
    writer.finish(classes(&data.classes), None)
}

/// The rows of an arena as lists.
fn lists(arena: &Arena) -> Vec<Vec<(usize, f64)>> {
    fn of<R: Rows>(rows: &R) -> Vec<Vec<(usize, f64)>> {
        let one = |i| {
            let mut row = Vec::new();
            rows.for_each(i, |j, v| row.push((j, v)));
            row
        };
        (0..rows.n_rows()).map(one).collect()
    }
    match arena.view() {
        View::Row(rows) => of(&rows),
        View::F32(rows) => of(&rows),
        View::F64(rows) => of(&rows),
    }
}

/// What a store is expected to hold of a row: sorted, summed, without zeros.
fn normal(row: &[(i32, f64)]) -> Vec<(usize, f64)> {
    let mut sums: Vec<(usize, f64)> = Vec::new();
    let mut row = row.to_vec();
    row.sort_by_key(|entry| entry.0);
    for (j, v) in row {
        match sums.last_mut() {
            Some(last) if last.0 == j as usize => last.1 += v,
            _ => sums.push((j as usize, v)),
        }
    }
    sums.retain(|entry| entry.1 != 0.0);
    sums
}

fn read(store: &Store, width: Width) -> (Arena, RowFacts) {
    let pages: Vec<u32> = (0..store.pages().len() as u32).collect();
    store.load(&pages, width, &Silent).unwrap()
}

fn check(store: &Store, data: &Data, order: &Order) {
    let old = store.old_columns().unwrap();
    assert_eq!(old, order.old_numbers());
    let n_classes = store.classes().len() as u32;
    let plain = store.plain_width();
    for width in [store.width(), plain, Width::F64] {
        let (arena, facts) = read(store, width);
        assert_eq!(facts.numbers.len(), data.rows.len());
        for (k, row) in lists(&arena).into_iter().enumerate() {
            let number = facts.numbers[k] as usize;
            let mut row: Vec<_> =
                row.into_iter().map(|(j, v)| (old.get(j).map_or(j, |&j| j as usize), v)).collect();
            row.sort_by_key(|entry| entry.0);
            assert_eq!(row, normal(&data.rows[number]), "row {number}");
            assert_eq!(facts.classes[k], n_classes - 1 - data.classes[number]);
            assert_eq!(facts.weights[k], data.weights.as_ref().map_or(1.0, |weights| weights[number]));
        }
    }
    let nnz: usize = data.rows.iter().map(|row| normal(row).len()).sum();
    assert_eq!((store.meta().n_rows as usize, store.meta().nnz as usize), (data.rows.len(), nnz));
    store.verify(&Silent, &|_| ()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn what_is_written_is_read(
        data in data(),
        n_blocks in 1..9u32,
        seed in any::<u64>(),
        relabels in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.blocks");
        let mut counts = vec![0; N_COLS];
        data.rows.iter().flatten().for_each(|entry| counts[entry.0 as usize] += 1);
        counts.truncate(N_COLS - 20);
        let order = if relabels { Order::by_count(&counts) } else { Order::default() };
        let options = StoreOptions {
            n_blocks,
            seed,
            n_cols: Some(N_COLS),
            order: order.clone(),
            ..StoreOptions::default()
        };
        write(&path, &data, options).unwrap();
        check(&Store::open(&path).unwrap(), &data, &order);
    }
}

/// A data set whose file has several pages in each block: rows of 1 to 40 entries.
fn large() -> Data {
    let row = |i: i32| {
        (0..1 + (i * 7) % 40).map(|k| ((i * 13 + k * k) % N_COLS as i32, f64::from(k % 5) - 1.5)).collect()
    };
    let rows: Vec<Vec<_>> = (0..40_000).map(row).collect();
    let classes = (0..40_000).map(|i| u32::from(i >= 20_000)).collect();
    Data { rows, classes, weights: Some((0..40_000).map(|i| f64::from(1 + i % 3)).collect()) }
}

#[test]
fn bytes_do_not_depend_on_threads_and_blocks_are_random_samples() {
    let folder = tempfile::tempdir().unwrap();
    let data = large();
    let bytes: Vec<Vec<u8>> = [1, 3]
        .into_iter()
        .map(|threads| {
            let path = folder.path().join(threads.to_string());
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| write(&path, &data, StoreOptions { n_blocks: 4, ..StoreOptions::default() }))
                .unwrap();
            std::fs::read(path).unwrap()
        })
        .collect();
    assert_eq!(bytes[0], bytes[1]);
    let store = Store::open(&folder.path().join("3")).unwrap();
    assert!(store.pages().len() > 4);
    check(&store, &data, &Order::default());
    // The input is sorted by class; each block has about half of each, a quarter of the rows.
    for block in 0..4 {
        let (_, facts) = store.load(&store.pages_of(block), store.width(), &Silent).unwrap();
        let (rows, ones) = (facts.classes.len() as f64, facts.classes.iter().sum::<u32>() as f64);
        assert!((rows - 10_000.0).abs() < 400.0, "{rows} rows");
        assert!((ones / rows - 0.5).abs() < 0.03, "{ones} of {rows}");
    }
}

fn small() -> Data {
    let row =
        |i: i32| (0..i % 7).map(|k| ((i * 31 + k * 17) % N_COLS as i32, 0.5 * f64::from(k + 1))).collect();
    Data {
        rows: (0..200).map(row).collect(),
        classes: (0..200).map(|i| i % 3).collect(),
        weights: Some(vec![0.5; 200]),
    }
}

/// A small store with every kind of section, as bytes.
fn small_bytes() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let order = Order::by_count(&(0..N_COLS as u64).rev().map(|k| k * 37 % 101).collect::<Vec<_>>());
    write(&path, &small(), StoreOptions { n_blocks: 2, order, ..StoreOptions::default() }).unwrap();
    std::fs::read(path).unwrap()
}

/// Opens and reads everything in the bytes; the error, if there is one.
fn verdict(bytes: &[u8]) -> Option<Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, bytes).unwrap();
    Store::open(&path).and_then(|store| store.verify(&Silent, &|_| ())).err()
}

fn reason(bytes: &[u8]) -> String {
    match verdict(bytes) {
        Some(Error::Corrupt { reason, .. }) => reason,
        other => panic!("expected a corrupt store, got {other:?}"),
    }
}

#[test]
fn every_flipped_byte_and_every_cut_is_found() {
    let bytes = small_bytes();
    assert!(verdict(&bytes).is_none());
    // 10,000 random flips in a file of this size would repeat most places; here each place comes.
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(matches!(verdict(&damaged), Some(Error::Corrupt { .. })), "byte {at} of {}", bytes.len());
    }
    for len in 0..bytes.len() {
        assert!(
            matches!(verdict(&bytes[..len]), Some(Error::Corrupt { .. })),
            "cut at {len} of {}",
            bytes.len()
        );
    }
    let mut longer = bytes.clone();
    longer.push(0);
    assert!(matches!(verdict(&longer), Some(Error::Corrupt { .. })));
}

/// Decodes the page that holds a byte; fine if there is none, because opening has looked at the rest.
fn only_page(store: &Store, at: u64) -> hinge::Result<()> {
    let page = store
        .pages()
        .iter()
        .position(|page| (page.offset..page.offset + u64::from(page.stored)).contains(&at));
    if let Some(page) = page {
        store.load(&[page as u32], store.width(), &Silent)?;
    } else {
        store.old_columns()?;
    }
    Ok(())
}

#[test]
#[cfg(unix)]
fn random_damage_of_a_larger_file_is_found() {
    use std::os::unix::fs::FileExt;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    write(&path, &large(), StoreOptions { n_blocks: 3, ..StoreOptions::default() }).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    for k in 0..10_000usize {
        let at = (k * 7_919_993) % bytes.len();
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_at(&[bytes[at] ^ (1 << (k % 8))], at as u64).unwrap();
        let verdict = Store::open(&path).and_then(|store| only_page(&store, at as u64));
        assert!(matches!(verdict, Err(Error::Corrupt { .. })), "byte {at}");
        file.write_at(&bytes[at..=at], at as u64).unwrap();
    }
    // Two pages exchanged, each whole.
    let store = Store::open(&path).unwrap();
    let (a, b) = (store.pages()[0], store.pages()[1]);
    let mut swapped = bytes[..a.offset as usize].to_vec();
    swapped.extend_from_slice(&bytes[b.offset as usize..][..b.stored as usize]);
    swapped.extend_from_slice(&bytes[a.offset as usize..][..a.stored as usize]);
    swapped.extend_from_slice(&bytes[(b.offset + u64::from(b.stored)) as usize..]);
    assert!(reason(&swapped).contains("checksum"));
}

/// Changes the header of page 0 and makes its checksum right again.
fn contrive_page(change: impl Fn(&mut [u8])) -> String {
    let mut bytes = small_bytes();
    let page = &mut bytes[HEADER_BYTES as usize..];
    change(page);
    let end = PAGE_HEADER_BYTES - 8;
    let sum = format::checksum(format::SECTIONS as u64, &page[..end]);
    page[end..end + 8].copy_from_slice(&sum.to_le_bytes());
    reason(&bytes)
}

/// Puts other bytes in a section of page 0, checksum included; the length of the stored bytes stays.
fn contrive_section(k: usize, change: impl Fn(&mut [u8])) -> String {
    contrive_page(|page| {
        let stored = |k: usize| format::u32_at(page, 16 + 16 * k) as usize;
        let start = PAGE_HEADER_BYTES + (0..k).map(stored).sum::<usize>();
        let end = start + stored(k);
        change(&mut page[start..end]);
        let sum = format::checksum(k as u64, &page[start..end]);
        page[24 + 16 * k..32 + 16 * k].copy_from_slice(&sum.to_le_bytes());
    })
}

fn put(bytes: &mut [u8], at: usize, x: u32) {
    bytes[at..at + 4].copy_from_slice(&x.to_le_bytes());
}

#[test]
fn contrived_headers_of_pages_are_refused() {
    assert!(contrive_page(|page| put(page, 0, 7)).contains("the index says"));
    assert!(contrive_page(|page| page[8] = 9).contains("unknown features (kind of values 9"));
    assert!(contrive_page(|page| page[9] = 2).contains("unknown features"));
    assert!(contrive_page(|page| page[12] = 1).contains("unknown features"));
    assert!(
        contrive_page(|page| put(page, 16, u32::MAX))
            .contains("row lengths of page 0 claim 4294967295 bytes")
    );
    assert!(contrive_page(|page| put(page, 20, u32::MAX)).contains("packed in"));
    assert!(contrive_page(|page| put(page, 20, format::u32_at(page, 20) + 4)).contains("expected"));
    assert!(contrive_page(|page| put(page, 52, 1)).contains("column numbers"));
    let shrunk = contrive_page(|page| {
        let (last, len) = (format::u32_at(page, 16 + 96), format::u32_at(page, 20 + 96));
        assert!(last < len);
        put(page, 16 + 96, last - 1);
    });
    assert!(shrunk.contains("1 bytes behind its last section"), "{shrunk}");
    // An unknown layout of values: the kind is changed to one whose length does not fit.
    assert!(contrive_page(|page| page[8] = 3).contains("the values of page 0 have"));
}

#[test]
fn contrived_sections_of_pages_are_refused() {
    // Each section is compressed: zeros are no frame of zstd.
    for k in [0, 3, 4, 5, 6] {
        let text = contrive_section(k, |bytes| bytes.fill(0));
        assert!(text.contains("of page 0"), "section {k}: {text}");
    }
}

/// A store of one uncompressible page, whose sections can be changed in place.
fn plain_page() -> (Vec<u8>, [usize; format::SECTIONS]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    // Numbers whose bytes do not repeat.
    let (a, b, c, d) =
        (0.123_456_789_012_345, 0.739_085_133_215_161, 1.324_717_957_244_746, -2.502_907_875_095_893);
    let rows = vec![vec![(3, a), (250, b)], vec![(9, c)], vec![(270, d)]];
    let weights = Some(vec![0.915_965_594_177_219, 1.202_056_903_159_594, 2.685_452_001_065_306]);
    let data = Data { rows, classes: vec![0, 1, 2], weights };
    write(&path, &data, StoreOptions { n_blocks: 1, ..StoreOptions::default() }).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let mut at = HEADER_BYTES as usize + PAGE_HEADER_BYTES;
    let starts = std::array::from_fn(|k| {
        let start = at;
        let field = HEADER_BYTES as usize + 16 + 16 * k;
        at += format::u32_at(&bytes, field) as usize;
        start
    });
    (bytes, starts)
}

/// Changes a section of [`plain_page`] and makes the checksums right again.
fn contrive_plain(k: usize, change: impl Fn(&mut [u8])) -> String {
    let (mut bytes, starts) = plain_page();
    let header = HEADER_BYTES as usize;
    let stored = format::u32_at(&bytes, header + 16 + 16 * k) as usize;
    assert_eq!(stored, format::u32_at(&bytes, header + 20 + 16 * k) as usize, "section {k} is compressed");
    change(&mut bytes[starts[k]..starts[k] + stored]);
    seal(bytes, &starts, k)
}

/// [`contrive_plain`] for a section that is compressed, and is as long again when it has been changed.
fn contrive_compressed(k: usize, change: impl Fn(&mut [u8])) -> String {
    let (mut bytes, starts) = plain_page();
    let field = HEADER_BYTES as usize + 16 + 16 * k;
    let (stored, len) = (format::u32_at(&bytes, field) as usize, format::u32_at(&bytes, field + 4) as usize);
    let section = &mut bytes[starts[k]..starts[k] + stored];
    let mut content = zstd::bulk::decompress(section, len).unwrap();
    change(&mut content);
    section.copy_from_slice(&Packer::new().unwrap().pack(&content).unwrap());
    seal(bytes, &starts, k)
}

/// Makes the checksums of section `k` and of its page right again; why the file is refused.
fn seal(mut bytes: Vec<u8>, starts: &[usize], k: usize) -> String {
    let header = HEADER_BYTES as usize;
    let stored = format::u32_at(&bytes, header + 16 + 16 * k) as usize;
    let sum = format::checksum(k as u64, &bytes[starts[k]..starts[k] + stored]);
    bytes[header + 24 + 16 * k..header + 32 + 16 * k].copy_from_slice(&sum.to_le_bytes());
    let end = header + PAGE_HEADER_BYTES - 8;
    let sum = format::checksum(format::SECTIONS as u64, &bytes[header..end]);
    bytes[end..end + 8].copy_from_slice(&sum.to_le_bytes());
    reason(&bytes)
}

#[test]
fn contrived_contents_of_pages_are_refused() {
    assert!(contrive_plain(0, |lens| lens[0] = 9).contains("rows of page 0 have 11 entries, 4 are claimed"));
    assert!(contrive_plain(0, |lens| lens[11] = 9).contains("4 are claimed"));
    assert!(contrive_plain(1, |codes| codes[0] |= 1).contains("do not fit their codes"));
    // Gaps: 3, 246, 9, 270 - the last takes two bytes.
    let text = contrive_plain(2, |gaps| gaps[4] = 0xff);
    assert!(text.contains("row 2 of page 0 has a column outside 0..271"), "{text}");
    assert!(contrive_plain(3, |values| values.fill(0xff)).contains("not finite"));
    assert!(
        contrive_plain(4, |classes| classes[0] = 3)
            .contains("row 0 of page 0 has class 3, the file has 3 classes")
    );
    assert!(contrive_plain(5, |weights| weights.fill(0xff)).contains("has the weight NaN"));
    let minus = |weights: &mut [u8]| weights[21..24].fill(0xbf);
    assert!(contrive_plain(5, minus).contains("has the weight -"));
    assert!(contrive_compressed(6, |numbers| numbers[0] = 5).contains("the number 5, outside 0.."));
    assert!(contrive_compressed(6, |numbers| numbers[1] = 0).contains("row 1 of page 0 has the number 0"));
}

/// Rewrites the end of a file: meta, index and trailer.
fn contrive_end(change: impl Fn(&mut String, &mut Vec<u8>, &mut format::Trailer)) -> String {
    let (bytes, _) = plain_page();
    let start = bytes.len() - TRAILER_BYTES as usize;
    let mut parts = format::parse_trailer(bytes[start..].first_chunk().unwrap()).unwrap();
    let of = |part: &format::TrailerEntry| &bytes[part.offset as usize..][..part.stored as usize];
    let mut meta = String::from_utf8(zstd::decode_all(of(&parts[0])).unwrap()).unwrap();
    let mut index = of(&parts[2]).to_vec();
    let kept = &bytes[..parts[0].offset as usize];
    change(&mut meta, &mut index, &mut parts);
    let mut out = kept.to_vec();
    let packed = Packer::new().unwrap().pack(meta.as_bytes()).unwrap();
    for (k, (stored, len)) in
        [(packed.as_slice(), meta.len()), (&[], 0), (&index, index.len())].into_iter().enumerate()
    {
        let changed = std::mem::take(&mut parts[k].checksum);
        let honest = format::checksum(format::SEEDS[k], stored);
        let part = format::TrailerEntry {
            offset: out.len() as u64,
            stored: stored.len() as u64,
            len: len as u64,
            checksum: honest,
        };
        // A change of the parts themselves is told by a length of 1.
        parts[k] = if changed == 1 { format::TrailerEntry { checksum: honest, ..parts[k] } } else { part };
        out.extend_from_slice(stored);
    }
    out.extend_from_slice(&format::trailer(&parts));
    reason(&out)
}

#[test]
fn contrived_ends_are_refused() {
    let meta = |from: &str, to: &str| {
        contrive_end(|meta, _, _| {
            assert!(meta.contains(from), "{meta}");
            *meta = meta.replacen(from, to, 1);
        })
    };
    assert!(meta("{", "[").contains("the metadata"));
    assert!(meta("\"seed\"", "\"sead\"").contains("unknown field"));
    assert!(meta("\"n_rows\":3", "\"n_rows\":4").contains("4 rows are claimed, the pages have 3"));
    assert!(meta("\"nnz\":4", "\"nnz\":5").contains("5 entries are claimed"));
    assert!(meta("\"n_cols\":271", "\"n_cols\":99999999999").contains("99999999999 columns"));
    assert!(meta("\"n_used\":271", "\"n_used\":272").contains("272 of 271 columns are used"));
    assert!(meta("\"n_used\":271", "\"n_used\":9").contains("outside 0..9"));
    assert!(meta("\"n_blocks\":1", "\"n_blocks\":0").contains("belongs to no block"));
    assert!(meta("[10,9,8]", "[10,9,10]").contains("labels repeat"));
    assert!(meta("[10,9,8]", "[10,9]").contains("2 classes have statistics"));
    assert!(meta("\"class_rows\":[1,1,1]", "\"class_rows\":[2,1,1]").contains("do not add up"));
    assert!(meta("\"class_rows\":[1,1,1]", "\"class_rows\":[0,2,1]").contains("rows per class"));
    assert!(meta("\"max_squared_norm\":", "\"max_squared_norm\":-").contains("negative"));
    assert!(meta("\"feature_names\":null", "\"feature_names\":[\"a\"]").contains("feature names"));
    assert!(meta("\"n_relabelled\":0", "\"n_relabelled\":1").contains("relabelling for 1 columns"));
    assert!(meta("\"needs_f64\":true", "\"needs_f64\":false").contains("wider"));
    assert!(meta("\"fingerprint\":\"", "\"fingerprint\":\"x").contains("fingerprint"));

    assert!(contrive_end(|_, index, _| index[0] = 99).contains("page 0 is claimed at 99"));
    assert!(contrive_end(|_, index, _| index[8] ^= 1).contains("the pages end at"));
    assert!(contrive_end(|_, index, _| index[12] = 0).contains("hold 0 rows"));
    assert!(contrive_end(|_, index, _| index[15] = 1).contains("page 0 is claimed to hold"));
    assert!(contrive_end(|_, index, _| index[19] = 255).contains("entries in"));
    assert!(contrive_end(|_, index, _| index.truncate(20)).contains("an index of 20 bytes"));
    assert!(contrive_end(|_, index, _| index.clear()).contains("the pages end at"));
    let part = |k: usize, field: fn(&mut format::TrailerEntry)| {
        contrive_end(|_, _, parts| {
            field(&mut parts[k]);
            parts[k].checksum = 1;
        })
    };
    assert!(part(0, |part| part.len = 1 << 40).contains("claim to hold 1099511627776"));
    assert!(part(0, |part| part.len += 1).contains("do not unpack to"));
    assert!(part(0, |part| part.offset = u64::MAX).contains("are claimed for meta, columns or index"));
    assert!(part(1, |part| part.stored = u64::MAX).contains("are claimed for meta, columns or index"));
    assert!(part(2, |part| part.offset = 3).contains("are claimed for meta, columns or index"));
}

#[test]
fn strange_files_are_refused_with_what_they_are() {
    assert!(reason(b"").contains("0 bytes"));
    assert!(reason(b"PK\x03\x04 some archive, surely longer than a header").contains("first bytes"));
    let mut newer = small_bytes();
    newer[8] = 2;
    assert!(reason(&newer).contains("version 2"));
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(Store::open(folder.path()), Err(Error::Io { .. })));
    assert!(matches!(Store::open(&folder.path().join("none")), Err(Error::Io { .. })));
}

#[test]
fn what_cannot_be_stored_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    let fails = |data: &Data, options: StoreOptions| write(&path, data, options).unwrap_err().to_string();
    let one = |rows: Vec<Vec<(i32, f64)>>| Data { classes: vec![0; rows.len()], rows, weights: None };
    assert!(
        fails(&one(vec![vec![(1, 1e200), (2, 1e200)]]), StoreOptions::default()).contains("squared norm")
    );
    assert!(
        fails(&one(vec![vec![(1, 1e308), (1, 1e308)]]), StoreOptions::default()).contains("row 0, column 1")
    );
    assert!(
        fails(&one(vec![vec![(7, 1.0)]]), StoreOptions { n_cols: Some(7), ..StoreOptions::default() })
            .contains("outside 0..7")
    );
    assert!(fails(&Data::default(), StoreOptions::default()).contains("no rows"));
    assert!(
        fails(&one(vec![vec![]]), StoreOptions { n_blocks: 0, ..StoreOptions::default() })
            .contains("n_blocks")
    );
    let gaps = Data { rows: vec![vec![]], classes: vec![1], weights: None };
    assert!(fails(&gaps, StoreOptions::default()).contains("class id 1 comes before"));
    let negative = Data { weights: Some(vec![-1.0]), ..one(vec![vec![]]) };
    assert!(fails(&negative, StoreOptions::default()).contains("weight of row 0 is -1"));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn weights_return_through_the_stored_order() {
    let bytes = small_bytes();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, bytes).unwrap();
    let old = Store::open(&path).unwrap().old_columns().unwrap();
    let mut w: Vec<f64> = old.iter().map(|&j| f64::from(j)).collect();
    restore(&old, &mut w);
    assert!(w.iter().enumerate().all(|(j, &x)| x == j as f64));
}
