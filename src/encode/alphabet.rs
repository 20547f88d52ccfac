//! What counts as part of a word, and what has a lower case.
//!
//! Both depend on the version of Unicode, and so on the interpreter or compiler at hand. A model must see
//! the same words wherever it serves, so the sets are part of the encoder: they are taken from the
//! interpreter that fits it (`\w` of Python's `re`, `str.lower`) and saved with it, as ranges.
//!
//! White space is the same in all versions that matter here: [`is_space`].

use serde::{Deserialize, Serialize};

use crate::{Error, Result, memory};

/// One more than the largest code point.
const END: u32 = char::MAX as u32 + 1;

/// A set of code points: lengths of the gaps in front of its ranges and of the ranges, in turns.
pub type Ranges = Vec<u32>;

/// The sets, as they are saved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AlphabetRecord {
    /// The version of Unicode, for people to read.
    pub unicode: String,
    /// What belongs to a word.
    pub words: Ranges,
    /// What changes in lower case.
    pub capitals: Ranges,
}

/// The sets, for look-ups.
#[derive(Clone, Debug)]
pub struct Alphabet {
    words: CodePoints,
    capitals: CodePoints,
    record: AlphabetRecord,
}

/// A set with a bit per code point.
#[derive(Clone, Debug)]
struct CodePoints(Vec<u64>);

impl CodePoints {
    fn new(name: &str, ranges: &[u32]) -> Result<Self> {
        let mut bits = vec![0; END as usize / 64];
        let mut end = 0_u32;
        for (k, &length) in ranges.iter().enumerate() {
            let start = end;
            end = start.checked_add(length).filter(|end| *end <= END).ok_or_else(|| Error::Encoder {
                reason: format!("the ranges of {name} end behind the last code point, {:#x}", END - 1),
            })?;
            if k % 2 == 1 {
                (start..end).for_each(|c| bits[c as usize / 64] |= 1 << (c % 64));
            }
        }
        Ok(Self(bits))
    }

    #[inline]
    fn has(&self, c: char) -> bool {
        self.0[c as usize / 64] >> (c as u32 % 64) & 1 == 1
    }
}

impl Alphabet {
    /// The sets of a record.
    ///
    /// # Errors
    /// [`Error::Encoder`] for ranges that end behind the last code point.
    pub fn new(record: AlphabetRecord) -> Result<Self> {
        Ok(Self {
            words: CodePoints::new("words", &record.words)?,
            capitals: CodePoints::new("capitals", &record.capitals)?,
            record,
        })
    }

    /// What is saved.
    pub fn record(&self) -> &AlphabetRecord {
        &self.record
    }

    /// Whether a character is part of a word.
    #[inline]
    pub fn is_word(&self, c: char) -> bool {
        self.words.has(c)
    }

    /// Appends a text in lower case, as Python's `str.lower` gives it.
    pub fn lower(&self, text: &str, out: &mut String) {
        memory::reserve_text(out, text.len());
        if text.is_ascii() {
            let start = out.len();
            out.push_str(text);
            out[start..].make_ascii_lowercase();
        } else if text.contains('Σ') {
            // The one letter whose lower case depends on its neighbours: the standard library knows the rule.
            out.push_str(&text.to_lowercase());
        } else {
            for c in text.chars() {
                if self.capitals.has(c) { out.extend(c.to_lowercase()) } else { out.push(c) }
            }
        }
    }
}

/// Python's `str.isspace`.
#[inline]
pub fn is_space(c: char) -> bool {
    match c {
        '\t'..='\r' | '\u{1c}'..=' ' => true,
        _ if c.is_ascii() => false,
        _ => matches!(
            c,
            '\u{85}' | '\u{a0}' | '\u{1680}' | '\u{2000}'
                ..='\u{200a}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}' | '\u{3000}'
        ),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The sets that the standard library has, near enough for tests within the crate.
    pub fn alphabet() -> Alphabet {
        let ranges = |has: fn(char) -> bool| {
            let (mut ranges, mut state) = (vec![0], false);
            for c in 0..END {
                if char::from_u32(c).is_some_and(has) != state {
                    state = !state;
                    ranges.push(0);
                }
                *ranges.last_mut().unwrap() += 1;
            }
            ranges
        };
        Alphabet::new(AlphabetRecord {
            unicode: "std".into(),
            words: ranges(|c| c.is_alphanumeric() || c == '_'),
            capitals: ranges(|c| !c.to_lowercase().eq([c])),
        })
        .unwrap()
    }

    #[test]
    fn sets_are_their_ranges() {
        let set = CodePoints::new("words", &[65, 26, 6, 26]).unwrap();
        let members: String = (0..END).filter_map(char::from_u32).filter(|c| set.has(*c)).collect();
        assert_eq!(members, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz");
        assert!(CodePoints::new("words", &[END, 0]).is_ok());
        assert!(CodePoints::new("words", &[END, 1]).is_err());
        assert!(CodePoints::new("words", &[5, u32::MAX]).is_err());
    }

    #[test]
    fn lower_case_is_that_of_the_standard_library() {
        let alphabet = alphabet();
        for text in ["", "ABC d", "ÄÖ ß", "ΟΔΥΣΣΕΥΣ", "İstanbul", "ǅ"] {
            let mut out = String::from("x");
            alphabet.lower(text, &mut out);
            assert_eq!(out[1..], text.to_lowercase(), "{text}");
        }
    }
}
