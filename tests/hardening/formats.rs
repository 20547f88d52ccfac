//! Formats of text: svmlight files, plain and compressed, and LIBLINEAR's models.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use hinge::fit::Silent;
use hinge::matrix::csr::CsrPieces;
use hinge::memory;
use hinge::model::liblinear::{ClassOrder, parse};
use hinge::model::predictor::Predictor;
use hinge::text;
use hinge::text::{IndexBase, Indices, ReadOptions, SvmlightData};

use crate::bytes::{Draw, mutate};
use crate::harness::{INPUT, Verdict};

const TEXTS: [&str; 6] = [
    "+1 1:0.5 3:-2e-1\n-1 2:1 # note\n+1\n",
    "1 qid:1 1:1 2:2\n0 qid:1 7:3\n2 qid:2 1:0.25\n",
    "3 0:1 5:2\r\n-3 4:1e-300\r\n# only a comment\r\n\r\n0.5 2:7\r\n",
    "1 10:1 9:2 10:3\n-1 2147483646:1\n1 2147483648:1\n",
    "-1.5e3 1:123456789.123456789 2:.5 3:5. 4:+4\n1\t2:3\t\n",
    "0 1:1 2:1 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1 11:1 12:1 13:1 14:1 15:1 16:1 17:1 18:1 19:1\n",
];

/// Label, query, and entries as written.
type Line = (f64, Option<i64>, Vec<(i64, f64)>);

fn number(word: &str) -> Option<f64> {
    word.parse().ok().filter(|x: &f64| x.is_finite())
}

/// The rows of a text, read as slowly as possible; `None` for a text that is to be refused.
fn slow_rows(text: &[u8]) -> Option<Vec<Line>> {
    let mut rows = Vec::new();
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text); // a byte order mark
    for line in text.split(|&byte| byte == b'\n') {
        let names: [&[u8]; 4] = [b"INF", b"IND", b"QNAN", b"SNAN"];
        let comment = line.iter().position(|&byte| byte == b'#').filter(|&at| {
            !(line[..at].ends_with(b"1.") && names.iter().any(|name| line[at + 1..].starts_with(name)))
        });
        let data = &line[..comment.unwrap_or(line.len())];
        let end = data.iter().rposition(|byte| !b" \t\r".contains(byte)).map_or(0, |at| at + 1);
        let words: Vec<&[u8]> =
            data[..end].split(|byte| b" \t".contains(byte)).filter(|word| !word.is_empty()).collect();
        let Some((label, mut rest)) = words.split_first() else { continue };
        let label = number(str::from_utf8(label).ok()?)?;
        let mut qid = None;
        if let Some(query) = rest.first().and_then(|word| word.strip_prefix(b"qid:")) {
            qid = Some(str::from_utf8(query).ok()?.parse().ok()?);
            rest = &rest[1..];
        }
        let mut entries = Vec::new();
        for word in rest {
            let (index, value) = str::from_utf8(word).ok()?.split_once(':')?;
            if !index.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            entries.push((index.parse().ok()?, number(value)?));
        }
        rows.push((label, qid, entries));
    }
    let has_qid = rows.first()?.1.is_some();
    rows.iter().all(|row| row.1.is_some() == has_qid).then_some(rows)
}

/// What was read, as lines again.
fn lines(data: &SvmlightData<f64>) -> Vec<Line> {
    let first = i64::from(data.base == IndexBase::One);
    let columns: Vec<i64> = match &data.indices {
        Indices::Narrow(list) => list.iter().map(|&j| first + i64::from(j)).collect(),
        Indices::Wide(list) => list.iter().map(|&j| first + j).collect(),
    };
    assert!(columns.iter().all(|&j| j >= first && ((j - first) as usize) < data.n_cols));
    let entries: Vec<(i64, f64)> = columns.into_iter().zip(data.values.iter().copied()).collect();
    (0..data.labels.len())
        .map(|i| {
            let row = data.indptr[i] as usize..data.indptr[i + 1] as usize;
            (data.labels[i], data.qid.as_ref().map(|qid| qid[i]), entries[row].to_vec())
        })
        .collect()
}

/// Compares two lists of rows, signs of zeros as well.
fn assert_same(fast: &[Line], slow: &[Line], text: &[u8]) {
    assert_eq!(format!("{fast:?}"), format!("{slow:?}"), "{:?}", String::from_utf8_lossy(text));
}

/// Compares the reader with [`slow_rows`].
fn check_text(bytes: &[u8], base: IndexBase) -> Verdict {
    let options = ReadOptions { base, n_features: None };
    let slow = slow_rows(bytes);
    // Where columns are numbered from 1, a 0 is refused; the largest number has no column behind it.
    let indices = || slow.iter().flatten().flat_map(|row| row.2.iter().map(|entry| entry.0));
    let is_refused = base == IndexBase::One && indices().any(|j| j == 0);
    let is_extreme = indices().any(|j| j >= i64::MAX - 1);
    match memory::catch(|| text::parse::<f64>(bytes, Path::new("t"), &options, &|| false)) {
        Ok(data) => {
            assert!(!is_refused, "column 0 is accepted: {:?}", String::from_utf8_lossy(bytes));
            let Some(slow) = slow else { panic!("accepted: {:?}", String::from_utf8_lossy(bytes)) };
            assert_same(&lines(&data), &slow, bytes);
            Verdict::Read
        }
        Err(error) => {
            let is_right = slow.is_none() || is_refused || is_extreme;
            assert!(is_right, "refused: {error}: {:?}", String::from_utf8_lossy(bytes));
            Verdict::Refused
        }
    }
}

/// Plain text.
pub fn text() -> impl FnMut(u64) -> Verdict {
    |case| {
        let mut draw = Draw::new(case);
        let mut bytes = draw.one_of(&TEXTS).as_bytes().to_vec();
        let other = draw.one_of(&TEXTS).as_bytes();
        mutate(&mut draw, &mut bytes, other);
        INPUT.store(bytes.len(), Ordering::Relaxed);
        check_text(&bytes, [IndexBase::Auto, IndexBase::Auto, IndexBase::Zero, IndexBase::One][draw.below(4)])
    }
}

fn packed(kind: usize, text: &[u8]) -> Vec<u8> {
    match kind {
        0 => {
            let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
        1 => {
            let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
        _ => {
            // With a checksum, as the command line writes.
            let mut writer = zstd::Encoder::new(Vec::new(), 1).unwrap();
            writer.include_checksum(true).unwrap();
            writer.write_all(text).unwrap();
            writer.finish().unwrap()
        }
    }
}

/// Compressed text, damaged before or after it was compressed.
pub fn compressed_text(folder: &Path) -> impl FnMut(u64) -> Verdict + use<> {
    let path: PathBuf = folder.join("text");
    move |case| {
        let mut draw = Draw::new(case);
        let kind = draw.below(3);
        let valid = draw.one_of(&TEXTS).as_bytes();
        let mut bytes = packed(kind, valid);
        let is_damaged = draw.chance(70);
        if is_damaged {
            let other = packed(draw.below(3), draw.one_of(&TEXTS).as_bytes());
            mutate(&mut draw, &mut bytes, &other);
        }
        std::fs::write(&path, &bytes).unwrap();
        INPUT.store(bytes.len(), Ordering::Relaxed);
        let read = memory::catch(|| text::read::<f64>(&path, &ReadOptions::default(), &|| false));
        match read {
            // Names and times in the head of a member may change, and whole members may come twice.
            Ok(data) => {
                let slow = slow_rows(valid).unwrap();
                let found = lines(&data);
                // A frame of zstd says itself whether it has a checksum; one that denies it may say anything.
                let has_sum = kind != 2 || bytes.get(4).is_some_and(|flags| flags & 4 != 0);
                let is_whole = found.len() >= slow.len() || !has_sum;
                assert!(is_whole || !bytes.starts_with(&packed(kind, valid)[..4]), "rows are missing");
                if !is_damaged {
                    assert_same(&found, &slow, valid);
                }
                Verdict::Read
            }
            Err(error) => {
                assert!(is_damaged, "{error}");
                Verdict::Refused
            }
        }
    }
}

/// Models as LIBLINEAR 2.50 writes them: two classes, three, Crammer and Singer's.
pub const MODELS: [&str; 4] = [
    "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 3\nbias 1\nw\n-0.40849149918888661 \n\
     0.84449140914592358 \n-0.3022390713317411 \n-0.12887166023329866 \n",
    "solver_type L2R_L2LOSS_SVC_DUAL\nnr_class 3\nlabel 3 1 2\nnr_feature 2\nbias -1\nw\n1 2 3 \n-4 5e-3 6 \n",
    "solver_type MCSVM_CS\nnr_class 2\nlabel 7 9\nnr_feature 2\nbias 0.5\nw\n1 -1 \n2 -2 \n0.5 -0.5 \n",
    "solver_type L1R_LR\nnr_class 2\nlabel 0 1\nnr_feature 4\nbias -1\nw\n0 \n0 \n1e300 \n-1e-300 \n",
];

/// Decision values and classes of a row: numbers, of the right count.
pub fn ask(model: hinge::model::Model) {
    let d = model.n_features;
    let Ok(predictor) = Predictor::new(model) else { return };
    let columns: [i64; 2] = [0, d as i64 - 1];
    let n = d.min(2);
    let indptr = [0, n as i64];
    let values = [1.0, -0.5];
    let rows = CsrPieces::new(&indptr, &columns[..n], &values[..n], d).unwrap();
    if let Ok(found) = memory::catch(|| predictor.decision_values(&rows, &Silent)) {
        assert_eq!(found.len(), predictor.outputs().n_values());
    }
}

/// LIBLINEAR's models.
pub fn liblinear() -> impl FnMut(u64) -> Verdict {
    |case| {
        let mut draw = Draw::new(case);
        let mut bytes = draw.one_of(&MODELS).as_bytes().to_vec();
        let other = draw.one_of(&MODELS).as_bytes();
        mutate(&mut draw, &mut bytes, other);
        INPUT.store(bytes.len(), Ordering::Relaxed);
        let order = if draw.chance(50) { ClassOrder::Sorted } else { ClassOrder::AsInFile };
        match memory::catch(|| parse(&bytes, Path::new("m"), order)) {
            Ok(model) => {
                model.check().unwrap_or_else(|flaw| panic!("{}: {}", flaw.field, flaw.reason));
                ask(model);
                Verdict::Read
            }
            Err(_) => Verdict::Refused,
        }
    }
}
