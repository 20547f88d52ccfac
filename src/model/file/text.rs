//! Strings as two tensors: their bytes, and where each one ends.

use crate::memory;
use crate::memory::CollectLarge;

/// All strings in one, and where each ends.
pub fn joined(strings: &[String]) -> (Vec<u8>, Vec<i64>) {
    let length = strings.iter().map(String::len).sum();
    let mut text = memory::with_capacity(length);
    let mut end = |string: &String| {
        text.extend_from_slice(string.as_bytes());
        text.len() as i64
    };
    let ends = strings.iter().map(&mut end).collect_large();
    (text, ends)
}

/// The strings of a text.
///
/// # Errors
/// What is wrong with the text or with its ends, and with which of them.
pub fn split(text: &[u8], ends: &[i64]) -> Result<Vec<String>, (&'static str, String)> {
    let text = std::str::from_utf8(text).map_err(|error| ("text", format!("not UTF-8: {error}")))?;
    let mut begin = 0;
    let one = |end: &i64| {
        let part = usize::try_from(*end).ok().and_then(|end| Some((end, text.get(begin..end)?)));
        let (end, part) = part.ok_or_else(|| {
            let length = text.len();
            ("ends", format!("{end} ends no string that begins at {begin} in a text of {length} bytes"))
        })?;
        begin = end;
        Ok(part.to_owned())
    };
    let strings = ends.iter().map(one).try_collect_large()?;
    if begin < text.len() {
        return Err(("ends", format!("the last string ends at {begin}, the text has {} bytes", text.len())));
    }
    Ok(strings)
}
