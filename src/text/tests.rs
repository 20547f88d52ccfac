#![allow(clippy::unwrap_used, clippy::type_complexity)]

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;

const PLAIN: &[u8] = b"+1 1:0.5 3:-2e-1\n-1 2:1 # note\n+1\n";

fn parse_with<V: TextValue>(
    text: &[u8],
    options: &ReadOptions,
    chunk_bytes: usize,
) -> error::Result<SvmlightData<V>> {
    let text = Text { bytes: text, path: Path::new("t.svm"), cancelled: &|| false, chunk_bytes };
    text.parse(options)
}

fn parsed(text: &str) -> SvmlightData<f64> {
    parse_with(text.as_bytes(), &ReadOptions::default(), CHUNK_BYTES).unwrap()
}

fn options(base: IndexBase, n_features: Option<usize>) -> ReadOptions {
    ReadOptions { base, n_features }
}

/// Line, column and reason of the error.
fn rejected_with<V: TextValue>(text: &[u8], options: &ReadOptions, chunk_bytes: usize) -> (u64, u64, String) {
    match parse_with::<V>(text, options, chunk_bytes) {
        Err(Error::Text { line, column, reason, path }) => {
            assert_eq!(path, PathBuf::from("t.svm"));
            (line, column, reason)
        }
        Err(other) => panic!("unexpected error: {other}"),
        Ok(_) => panic!("accepted: {:?}", String::from_utf8_lossy(text)),
    }
}

fn rejected(text: &[u8]) -> (u64, u64, String) {
    rejected_with::<f64>(text, &ReadOptions::default(), CHUNK_BYTES)
}

/// Rows as lists of (column, value).
fn rows<V: Copy>(data: &SvmlightData<V>) -> Vec<Vec<(i64, V)>> {
    let columns: Vec<i64> = match &data.indices {
        Indices::Narrow(list) => list.iter().map(|&column| column.into()).collect(),
        Indices::Wide(list) => list.clone(),
    };
    let entries: Vec<_> = columns.into_iter().zip(data.values.iter().copied()).collect();
    let row = |ends: &[i64]| entries[ends[0] as usize..ends[1] as usize].to_vec();
    data.indptr.windows(2).map(row).collect()
}

#[test]
fn accepts_every_spelling_of_a_line() {
    // Text, label, entries with columns from 0.
    let table: &[(&str, f64, &[(i64, f64)])] = &[
        ("1 1:2", 1.0, &[(0, 2.0)]),
        ("1 1:2\n", 1.0, &[(0, 2.0)]),
        ("1 1:2\r\n", 1.0, &[(0, 2.0)]),
        ("1 1:2 \t \r\n", 1.0, &[(0, 2.0)]),
        ("\u{feff}1 1:2", 1.0, &[(0, 2.0)]),
        ("\t +1\t1:+2  2:3", 1.0, &[(0, 2.0), (1, 3.0)]),
        ("-1 1:2#c", -1.0, &[(0, 2.0)]),
        ("-1 1:2.# c 3:x", -1.0, &[(0, 2.0)]),
        ("0.5 # 1:2", 0.5, &[]),
        ("# c\n\n \t\r\n3\n#\n", 3.0, &[]),
        ("-0 1:-0", -0.0, &[(0, -0.0)]),
        ("1e2 1:1e-400 2:.5 3:5.", 100.0, &[(0, 0.0), (1, 0.5), (2, 5.0)]),
        ("1 1:4.9e-324 2:0e999", 1.0, &[(0, 5e-324), (1, 0.0)]),
        ("1 0:2 3:0", 1.0, &[(0, 2.0), (3, 0.0)]),
        ("1 3:1 1:2 3:4", 1.0, &[(2, 1.0), (0, 2.0), (2, 4.0)]),
        ("1 00000000000000000000000012:1", 1.0, &[(11, 1.0)]),
    ];
    for (text, label, entries) in table {
        let data = parsed(text);
        assert_eq!(data.labels[0].to_bits(), label.to_bits(), "{text:?}");
        assert_eq!(rows(&data), [entries.to_vec()], "{text:?}");
        let signs = data.values.iter().map(|value| value.is_sign_negative());
        assert!(signs.eq(entries.iter().map(|entry| entry.1.is_sign_negative())), "{text:?}");
        assert_eq!(data.qid, None);
    }
}

#[test]
fn names_the_first_bad_token() {
    const FINITE: &str = "expected a finite decimal number";
    const QID: &str = "expected qid:N after the label of all rows or none";
    let table: &[(&[u8], u64, u64, &str)] = &[
        (b"", 1, 1, "no rows"),
        (b"\n# 1 1:1\n \r\n", 1, 1, "no rows"),
        (b"x 1:1", 1, 1, "label \"x\" is not a number"),
        (b"1\n\n  x 1:1", 3, 3, FINITE),
        (b"\xef\xbb\xbfx", 1, 4, "label \"x\""),
        (b"1\n\xef\xbb\xbf1", 2, 1, "label \"\\u{feff}1\""),
        (b"nan 1:1", 1, 1, "label \"nan\" is not finite"),
        (b"-inf", 1, 1, "label \"-inf\" is not finite"),
        (b"1e999 1:1", 1, 1, "label \"1e999\" is too large for double precision"),
        (b"1,2 3:1", 1, 1, "multi-label files are not supported"),
        (b"1\n 3:1", 2, 2, "label missing before \"3:1\""),
        (b"qid:1 3:1", 1, 1, "label missing before \"qid:1\""),
        (b"1 1:NaN", 1, 5, "value \"NaN\" is not finite"),
        (b"1 1:-Infinity", 1, 5, "value \"-Infinity\" is not finite"),
        (b"1 1:nanny", 1, 5, "value \"nanny\" is not a number"),
        (b"1 1:1.#INF", 1, 5, "value \"1.#INF\" is not a number"),
        (b"1 1:-1.#IND # c", 1, 5, "value \"-1.#IND\" is not a number"),
        (b"1 1:1e999 2:x", 1, 5, "value \"1e999\" is too large for double precision"),
        (b"1 1:-1e99999999999999999999", 1, 5, "is too large"),
        (b"1 1:1.5abc", 1, 5, "value \"1.5abc\" is not a number"),
        (b"1 1:0x10", 1, 5, "value \"0x10\" is not a number"),
        (b"1 1:1e", 1, 5, "value \"1e\" is not a number"),
        (b"1 1:1,5", 1, 5, FINITE),
        (b"1 1:2:3", 1, 5, "value \"2:3\" is not a number"),
        (b"1 1:--1", 1, 5, "value \"--1\" is not a number"),
        (b"1 2:1 3: 4:1", 1, 7, "\"3:\" has no value; expected index:value"),
        (b"1 3:\r\n", 1, 3, "\"3:\" has no value"),
        (b"1 3 :4", 1, 3, "\"3\" has no colon; expected index:value"),
        (b"1 1:1\n1 5", 2, 3, "\"5\" has no colon"),
        (b"1 1:1\r-1 2:1", 1, 5, "value \"1\\r-1\" is not a number"),
        (b"1 :5", 1, 3, "index of \":5\" is not a non-negative integer"),
        (b"1 -1:5", 1, 3, "index of \"-1:5\" is not a non-negative integer"),
        (b"1 1.5:5", 1, 3, "index of \"1.5:5\" is not"),
        (b"1 1e3:5", 1, 3, "index of \"1e3:5\" is not"),
        (b"1 9223372036854775807:1", 1, 3, "is out of range; expected 0 to 9223372036854775806"),
        (b"1 99999999999999999999:1", 1, 3, "is out of range"),
        (b"1 1:1 qid:3", 1, 7, "\"qid:3\" is out of place"),
        (b"1 qid:3 qid:3", 1, 9, "\"qid:3\" is out of place"),
        (b"1 qid:", 1, 3, "\"qid:\" is not a query"),
        (b"1 qid:1.5 1:1", 1, 3, "\"qid:1.5\" is not a query"),
        (b"1 qid:9223372036854775808", 1, 3, "integer of 64 bits"),
        (b"1 qid:1\n1 1:1", 2, 3, "row without qid"),
        (b"1 qid:1\n1", 2, 2, QID),
        (b"1 1:1\n1 qid:1", 2, 3, "\"qid:1\", but the first row has no qid"),
        (b"1 1:1\0 2:1", 1, 5, "value \"1\\0\" is not a number"),
        (b"\0\x01\xff", 1, 1, "label \"\\0\\u{1}\u{fffd}\" is not a number"),
    ];
    for (text, line, column, reason) in table {
        let found = rejected(text);
        let text = String::from_utf8_lossy(text);
        assert_eq!((found.0, found.1), (*line, *column), "{text:?}: {}", found.2);
        assert!(found.2.contains(reason), "{text:?}: {}", found.2);
    }
}

#[test]
fn shortens_what_it_quotes() {
    let (_, _, reason) = rejected(format!("1 1:{}", "é".repeat(1000)).as_bytes());
    let quoted = format!("value \"{}\"... is not", "é".repeat(40));
    assert!(reason.contains(&quoted), "{reason}");
    assert!(rejected(&[0xff; 100_000]).2.len() < 300);
}

#[test]
fn overflow_depends_on_the_type() {
    assert_eq!(parsed("1 1:1e39").values, [1e39]);
    let (_, column, reason) = rejected_with::<f32>(b"1 1:1e39", &ReadOptions::default(), 1);
    assert_eq!(column, 5);
    assert!(reason.contains("too large for single precision"), "{reason}");
}

#[test]
fn base_and_limit_decide_which_indices_fit() {
    use IndexBase::{Auto, One, Zero};
    // Base, limit, text; then the number of columns and the first column, or the column of the error.
    let table: &[(IndexBase, Option<usize>, &str, Result<(usize, i64), u64>)] = &[
        (Auto, None, "1 4:1", Ok((4, 3))),
        (Auto, None, "1 4:1\n1 0:1", Ok((5, 4))),
        (Auto, Some(4), "1 4:1", Ok((4, 3))),
        (Auto, Some(9), "1 4:1", Ok((9, 3))),
        (Auto, Some(4), "1 4:1 0:1", Err(3)),
        (Auto, Some(4), "1 0:1 5:1", Err(7)),
        (Auto, Some(0), "1 0:1", Err(3)),
        (Zero, None, "1 4:1", Ok((5, 4))),
        (Zero, Some(5), "1 4:1", Ok((5, 4))),
        (Zero, Some(4), "1 4:1", Err(3)),
        (Zero, Some(0), "1 4:1", Err(3)),
        (One, None, "1 4:1", Ok((4, 3))),
        (One, Some(4), "1 4:1", Ok((4, 3))),
        (One, Some(3), "1 4:1", Err(3)),
        (One, None, "1 4:1 0:1", Err(7)),
        (One, None, "1 00:1", Err(3)),
    ];
    for (base, n_features, text, expected) in table {
        let options = options(*base, *n_features);
        match expected {
            Ok((n_cols, first)) => {
                let data = parse_with::<f64>(text.as_bytes(), &options, 1).unwrap();
                assert_eq!((data.n_cols, rows(&data)[0][0].0), (*n_cols, *first), "{options:?} {text}");
            }
            Err(column) => {
                let found = rejected_with::<f64>(text.as_bytes(), &options, 1);
                assert_eq!(found.1, *column, "{options:?} {text}: {}", found.2);
            }
        }
    }
    let reason = |base, n, text: &str| rejected_with::<f64>(text.as_bytes(), &options(base, Some(n)), 1).2;
    let ends = "expected 0 to 4, or 1 to 5 where indices start at 1, with n_features=5";
    assert!(reason(Auto, 5, "1 7:1").ends_with(ends), "{}", reason(Auto, 5, "1 7:1"));
    assert!(reason(One, 5, "1 7:1").ends_with("expected 1 to 5 with n_features=5"));
    assert!(reason(Zero, 5, "1 7:1").ends_with("expected 0 to 4 with n_features=5"));
    assert_eq!(parsed("1\n1").n_cols, 0);
    let huge = parse_with::<f64>(b"1", &options(Auto, Some(usize::MAX)), 1);
    assert!(matches!(huge, Err(Error::Parameter { name: "n_features", .. })));
}

#[test]
fn indices_are_wide_only_when_needed() {
    let last_narrow = parsed("1 1:1 2147483647:1");
    assert_eq!(last_narrow.indices, Indices::Narrow(vec![0, i32::MAX - 1]));
    let first_wide = parsed("1 1:1\n1 2147483648:1");
    assert_eq!(first_wide.indices, Indices::Wide(vec![0, i64::from(i32::MAX)]));
    let widened = parsed("1 5:1 9223372036854775806:1 0:1");
    assert_eq!(widened.indices, Indices::Wide(vec![5, i64::MAX - 1, 0]));
    assert_eq!(widened.n_cols, i64::MAX as usize);
    let many_columns = parse_with::<f64>(b"1 1:1", &options(IndexBase::Auto, Some(1 << 31)), 1);
    assert_eq!(many_columns.unwrap().indices, Indices::Wide(vec![0]));
}

#[test]
fn queries_are_kept() {
    let data = parsed("#\n2 qid:-7 1:1\n1 qid:9 # c\n");
    assert_eq!(data.qid, Some(vec![-7, 9]));
    assert_eq!(rows(&data), [vec![(0, 1.0)], vec![]]);
}

/// Text of a matrix; `{:?}` prints the shortest decimal that reads back as the same number.
fn render(rows: &[(f64, Vec<(u32, f64)>)], line_end: &str) -> String {
    let mut text = String::new();
    for (label, entries) in rows {
        text += &format!("{label:?}");
        for (index, value) in entries {
            text += &format!(" {index}:{value:?}");
        }
        text += line_end;
    }
    text
}

fn finite() -> impl Strategy<Value = f64> {
    let bits = any::<u64>().prop_map(f64::from_bits);
    prop_oneof![bits, any::<f64>(), -9.0..9.0].prop_filter("finite", |value: &f64| value.is_finite())
}

/// Rows with small indices, or with some that need 64 bits.
fn matrix() -> impl Strategy<Value = Vec<(f64, Vec<(u32, f64)>)>> {
    prop_oneof![Just(50), Just(u32::MAX)].prop_flat_map(|largest| {
        let row = (finite(), prop::collection::vec((0..=largest, finite()), 0..8));
        prop::collection::vec(row, 1..20)
    })
}

/// Decimals that are finite in single precision: any, small ones, and ties of two neighbours or just above.
fn decimal() -> impl Strategy<Value = String> {
    let tie = (1e-3_f32..1e30, any::<bool>(), any::<bool>()).prop_map(|(value, negative, above)| {
        let next = f32::from_bits(value.to_bits() + 1);
        let sign = if negative { "-" } else { "" };
        // The digits are exact; rounded to double precision first, the last one would be lost.
        let last = if above { "1" } else { "" };
        format!("{sign}{:.80}{last}", (f64::from(value) + f64::from(next)) / 2.0)
    });
    prop_oneof![
        tie,
        "[+-]?[0-9]{1,8}(\\.[0-9]{0,60})?(e\\+?[0-2]?[0-9])?",
        "[+-]?[0-9]{1,20}(\\.[0-9]{0,20})?(e-[0-9]{1,2})?",
    ]
}

proptest! {
    #[test]
    fn doubles_come_back_bit_by_bit(expected in matrix(), chunk_bytes in 1_usize..64) {
        let text = render(&expected, "\n");
        let data = parse_with::<f64>(text.as_bytes(), &options(IndexBase::Zero, None), chunk_bytes).unwrap();
        let bits = |row: &Vec<(i64, f64)>| row.iter().map(|&(c, v)| (c, v.to_bits())).collect::<Vec<_>>();
        for ((label, entries), (found_label, found)) in
            expected.iter().zip(data.labels.iter().zip(rows(&data)))
        {
            prop_assert_eq!(label.to_bits(), found_label.to_bits());
            let entries = entries.iter().map(|&(c, v)| (i64::from(c), v)).collect();
            prop_assert_eq!(bits(&entries), bits(&found));
        }
        prop_assert_eq!(data.labels.len(), expected.len());
    }

    #[test]
    fn singles_are_rounded_once(decimals in prop::collection::vec(decimal(), 1..20)) {
        let rounded: Vec<f32> = decimals.iter().map(|text| text.parse().unwrap()).collect();
        let text: String = decimals.iter().map(|text| format!("1 1:{text}\n")).collect();
        let data = parse_with::<f32>(text.as_bytes(), &ReadOptions::default(), 16).unwrap();
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        prop_assert_eq!(bits(&data.values), bits(&rounded));
    }

    #[test]
    fn chunks_do_not_show(expected in matrix(), chunk_bytes in 1_usize..64, end in "\r?\n(#:\n)?") {
        let text = render(&expected, &end);
        let options = ReadOptions::default();
        let whole = parse_with::<f64>(text.as_bytes(), &options, text.len()).unwrap();
        prop_assert_eq!(whole, parse_with(text.as_bytes(), &options, chunk_bytes).unwrap());
    }

    #[test]
    fn chunks_do_not_show_in_errors(
        expected in matrix(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        chunk_bytes in 1_usize..64,
    ) {
        let mut text = render(&expected, "\n").into_bytes();
        for (at, byte) in damage {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let options = ReadOptions::default();
        let whole = parse_with::<f64>(&text, &options, text.len()).map_err(|error| error.to_string());
        let cut = parse_with::<f64>(&text, &options, chunk_bytes).map_err(|error| error.to_string());
        prop_assert_eq!(whole, cut);
    }

    #[test]
    fn no_text_makes_it_panic(text in "([0-9]{1,3}|qid:|[-+.:#, \t\r\n]|e|nan|\\PC){0,60}") {
        let _ = parse_with::<f32>(text.as_bytes(), &options(IndexBase::Auto, Some(20)), 8);
    }
}

#[test]
fn number_of_threads_does_not_show() {
    let good: String = (1..2000).map(|row| format!("{} {row}:0.{row} 7:1\n", row % 3)).collect();
    let bad = good.replace(" 1500:", " 1500;").replace(" 1700:", " -1700:");
    let run = |n_threads, text: &str| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(n_threads).build().unwrap();
        let parse = || parse_with::<f64>(text.as_bytes(), &ReadOptions::default(), 50);
        pool.install(parse).map_err(|error| error.to_string())
    };
    assert_eq!(run(1, &good), run(4, &good));
    for _ in 0..20 {
        let message = run(4, &bad).unwrap_err();
        assert!(message.starts_with("t.svm, line 1500, column 3: \"1500;0.1500\" has no colon"), "{message}");
    }
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn bzip2(text: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn zstd(text: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap();
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

const ENCODERS: [fn(&[u8]) -> Vec<u8>; 3] = [gzip, bzip2, zstd];

fn read_bytes(bytes: &[u8]) -> error::Result<SvmlightData<f64>> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let result = read(file.path(), &ReadOptions::default(), &|| false);
    if let Err(Error::Io { path, .. } | Error::Text { path, .. }) = &result {
        assert_eq!(path, file.path());
    }
    result
}

#[test]
fn reads_every_compression_in_one_or_many_members() {
    let expected = parsed(str::from_utf8(PLAIN).unwrap());
    assert_eq!(read_bytes(PLAIN).unwrap(), expected);
    for encode in ENCODERS {
        assert_eq!(read_bytes(&encode(PLAIN)).unwrap(), expected);
        // The cut falls into a line: members are joined before lines are searched for.
        let members = [encode(&PLAIN[..7]), encode(b""), encode(&PLAIN[7..])].concat();
        assert_eq!(read_bytes(&members).unwrap(), expected);
        assert!(matches!(read_bytes(&encode(b"")), Err(Error::Text { line: 1, .. })));
    }
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9], &zstd(PLAIN)[..]].concat();
    assert_eq!(read_bytes(&skippable).unwrap(), expected);
}

#[test]
fn refuses_compressed_files_cut_anywhere() {
    for encode in ENCODERS {
        let first = encode(PLAIN);
        let whole = [first.clone(), encode(PLAIN)].concat();
        for length in (0..whole.len()).filter(|&length| length != first.len()) {
            match read_bytes(&whole[..length]) {
                Err(Error::Io { .. }) => {}
                Err(Error::Text { .. }) if length < 4 => {}
                other => panic!("{:x?} cut to {length} bytes: {other:?}", &whole[..3]),
            }
        }
    }
}

#[test]
fn damage_in_compressed_files_never_changes_the_data() {
    let expected = parsed(str::from_utf8(PLAIN).unwrap());
    for encode in ENCODERS {
        let whole = encode(PLAIN);
        let mut n_refused = 0;
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            match read_bytes(&damaged) {
                Err(Error::Io { .. }) => n_refused += 1,
                Err(Error::Text { .. }) if at < 4 => {}
                // Some bytes mean nothing, like the date in a gzip header.
                Ok(data) => assert_eq!(data, expected, "byte {at} of {whole:x?}"),
                other => panic!("byte {at} of {whole:x?}: {other:?}"),
            }
        }
        assert!(2 * n_refused > whole.len(), "{n_refused} of {whole:x?}");
    }
}

#[test]
fn missing_files_and_folders_are_named() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_path_buf(), folder.path().join("missing")] {
        let result = read::<f64>(&path, &ReadOptions::default(), &|| false);
        assert!(matches!(result, Err(Error::Io { path: named, .. }) if named == path));
    }
}

#[test]
fn stops_when_cancelled() {
    let text = b"1 1:1\n".repeat(1000);
    let after = |calls: usize| {
        let count = AtomicUsize::new(0);
        let cancelled = move || count.fetch_add(1, Ordering::Relaxed) == calls;
        let text = Text { bytes: &text, path: Path::new("t.svm"), cancelled: &cancelled, chunk_bytes: 60 };
        text.parse::<f64>(&ReadOptions::default()).map(|data| data.labels.len())
    };
    for calls in [0, 1, 99, 100, 150, 199] {
        assert!(matches!(after(calls), Err(Error::Cancelled)), "{calls}");
    }
    assert!(matches!(after(200), Ok(1000)));
}

#[test]
fn stops_reading_when_cancelled() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(&gzip(&b"1 1:1\n".repeat(2_000_000))).unwrap();
    let (asked, parsing) = (AtomicUsize::new(0), AtomicBool::new(false));
    let cancelled = || {
        parsing.store(rayon::current_thread_index().is_some(), Ordering::Relaxed);
        asked.fetch_add(1, Ordering::Relaxed) == 1
    };
    let result = read::<f64>(file.path(), &ReadOptions::default(), &cancelled);
    assert!(matches!(result, Err(Error::Cancelled)));
    assert_eq!(asked.into_inner(), 2);
    assert!(!parsing.into_inner());
}
