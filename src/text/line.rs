//! Tokens of one line: label, query, `index:value`, and what to say about those that are none of these.
//!
//! A [`Cursor`] goes through the data of a line once, from left to right. Whatever it refuses comes back as a
//! [`Failure`] that points at the token in the text; the fast path of each token is short, and everything
//! that only makes messages is cold.

use std::fmt;
use std::ops::Range;

use memchr::memchr;

use crate::memory::Zero;

/// Digits that an `i64` always holds.
const SAFE_DIGITS: usize = 18;

/// Characters of the offending text that an error shows.
const QUOTED_CHARS: usize = 40;

/// What the error about a missing or unexpected query asks for.
const QID_RULE: &str = "expected qid:N after the label of all rows or none";

/// A floating-point type that values are read into.
pub trait TextValue: Zero + Default + From<u8> + Send + Sync + 'static {
    /// What error messages call the type.
    const PRECISION: &'static str;

    /// Parses the longest number at the start of `text`, rounded once to this type, and returns its length in
    /// bytes.
    ///
    /// `nan`, `inf` and numbers out of range come back as what they are: the reader refuses them by
    /// [`Self::is_finite`].
    fn parse_prefix(text: &[u8]) -> Option<(Self, usize)>;

    /// Tells whether the value is neither infinite nor NaN.
    fn is_finite(self) -> bool;
}

macro_rules! text_value {
    ($type:ty, $precision:literal) => {
        impl TextValue for $type {
            const PRECISION: &'static str = $precision;

            #[inline]
            fn parse_prefix(text: &[u8]) -> Option<(Self, usize)> {
                fast_float2::parse_partial(text).ok()
            }

            #[inline]
            fn is_finite(self) -> bool {
                <$type>::is_finite(self)
            }
        }
    };
}

text_value!(f32, "single precision");
text_value!(f64, "double precision");

/// Indices as written in a file that are accepted, and the number of columns if it was asked for.
pub(super) struct Accepted {
    pub(super) indices: Range<i64>,
    pub(super) n_features: Option<i64>,
}

impl fmt::Display for Accepted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.indices.start, self.indices.end - 1);
        match self.n_features {
            None => write!(f, "{first} to {last}"),
            Some(n) if self.indices.end - first > n => {
                write!(f, "0 to {}, or 1 to {n} where indices start at 1, with n_features={n}", n - 1)
            }
            Some(n) => write!(f, "{first} to {last} with n_features={n}"),
        }
    }
}

/// The first bad token of a chunk.
pub(super) struct Failure {
    /// Position of the token in the text.
    pub(super) offset: usize,
    pub(super) reason: String,
}

/// Tells whether the first row has a query; all others have to do the same.
pub(super) fn first_row_has_qid(mut text: &[u8]) -> bool {
    while !text.is_empty() {
        let (line, rest) = split_line(text);
        let mut words = data_of(line).split(|&byte| is_blank(byte)).filter(|word| !word.is_empty());
        if words.next().is_some() {
            return words.next().is_some_and(|word| word.starts_with(b"qid:"));
        }
        text = rest;
    }
    false
}

/// Splits after the first line end, which belongs to neither part.
pub(super) fn split_line(text: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b'\n', text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[]),
    }
}

/// The part of a line before its comment, without trailing blanks.
pub(super) fn data_of(line: &[u8]) -> &[u8] {
    let comment = memchr(b'#', line).filter(|&at| !is_special_number(line, at));
    let mut data = &line[..comment.unwrap_or(line.len())];
    while let [front @ .., b' ' | b'\t' | b'\r'] = data {
        data = front;
    }
    data
}

/// Tells whether the `#` is part of an infinity or NaN as old C libraries print it, `1.#INF`.
///
/// Taken for a comment, it would leave the harmless-looking value 1.
fn is_special_number(line: &[u8], at: usize) -> bool {
    let names: [&[u8]; 4] = [b"INF", b"IND", b"QNAN", b"SNAN"];
    line[..at].ends_with(b"1.") && names.iter().any(|name| line[at + 1..].starts_with(name))
}

fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// What is left of one line's data.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub(super) rest: &'a [u8],
    /// Position in the text where `rest` ends.
    pub(super) end: usize,
}

impl<'a> Cursor<'a> {
    /// Goes to the next token; false if there is none.
    #[inline]
    pub(super) fn skip_blanks(&mut self) -> bool {
        while let [byte, rest @ ..] = self.rest
            && is_blank(*byte)
        {
            self.rest = rest;
        }
        !self.rest.is_empty()
    }

    /// Tells whether a token ends `length` bytes from here.
    #[inline]
    fn ends_after(&self, length: usize) -> bool {
        self.rest.get(length).is_none_or(|&byte| is_blank(byte))
    }

    /// Everything up to the next blank.
    fn token(&self) -> &'a [u8] {
        let length = self.rest.iter().position(|&byte| is_blank(byte));
        &self.rest[..length.unwrap_or(self.rest.len())]
    }

    fn fail(&self, reason: String) -> Failure {
        Failure { offset: self.end - self.rest.len(), reason }
    }

    pub(super) fn label(&mut self) -> Result<f64, Failure> {
        let start = *self;
        self.number("label").map_err(|failure| start.bad_label().unwrap_or(failure))
    }

    /// Names the two usual reasons why a label is no number.
    #[cold]
    fn bad_label(&self) -> Option<Failure> {
        let token = self.token();
        if token.contains(&b':') {
            let found = quote(token);
            Some(self.fail(format!("label missing before {found}; expected a finite decimal number")))
        } else if token.contains(&b',') {
            let found = quote(token);
            let reason =
                format!("several labels {found}; multi-label files are not supported, expected one label");
            Some(self.fail(reason))
        } else {
            None
        }
    }

    /// Reads `qid:N` if the file has queries, and makes sure that there is none if it has not.
    pub(super) fn qid(&mut self, expected: bool) -> Result<Option<i64>, Failure> {
        self.skip_blanks();
        match (self.rest.strip_prefix(b"qid:"), expected) {
            (None, false) => Ok(None),
            (Some(_), true) => self.qid_number().map(Some),
            (None, true) => {
                let found = "row without qid, but the first row has one";
                Err(self.fail(format!("{found}; {QID_RULE}")))
            }
            (Some(_), false) => {
                let found = quote(self.token());
                let reason = format!("{found}, but the first row has no qid; {QID_RULE}");
                Err(self.fail(reason))
            }
        }
    }

    fn qid_number(&mut self) -> Result<i64, Failure> {
        let token = self.token();
        let number = str::from_utf8(&token[4..]).ok().and_then(|digits| digits.parse().ok());
        let Some(number) = number else {
            let found = quote(token);
            return Err(self.fail(format!("{found} is not a query; expected qid: and an integer of 64 bits")));
        };
        self.rest = &self.rest[token.len()..];
        Ok(number)
    }

    /// Reads `index:value`.
    #[inline]
    pub(super) fn entry<V: TextValue>(&mut self, accepted: &Accepted) -> Result<(i64, V), Failure> {
        let start = *self;
        let (index, length) = match self.short_index() {
            Some((index, length)) if accepted.indices.contains(&index) => (index, length),
            _ => self.long_index(accepted)?,
        };
        self.rest = &self.rest[length + 1..];
        if self.ends_after(0) {
            let found = quote(start.token());
            return Err(start.fail(format!("{found} has no value; expected index:value")));
        }
        Ok((index, self.number("value")?))
    }

    /// Reads the digits before a colon, if they are so few that they cannot overflow.
    #[inline]
    fn short_index(&self) -> Option<(i64, usize)> {
        let mut index = 0_i64;
        for (length, &byte) in self.rest.iter().enumerate().take(SAFE_DIGITS + 1) {
            match byte {
                b'0'..=b'9' if length < SAFE_DIGITS => index = index * 10 + i64::from(byte - b'0'),
                b':' if length > 0 => return Some((index, length)),
                _ => return None,
            }
        }
        None
    }

    /// Reads any index, with an error for all that is none.
    #[cold]
    fn long_index(&self, accepted: &Accepted) -> Result<(i64, usize), Failure> {
        let token = self.token();
        let found = quote(token);
        let Some(length) = memchr(b':', token) else {
            return Err(self.fail(format!("{found} has no colon; expected index:value")));
        };
        let digits = &token[..length];
        if digits == b"qid" {
            return Err(
                self.fail(format!("{found} is out of place; expected qid directly after the label, once"))
            );
        }
        if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
            let reason = format!("index of {found} is not a non-negative integer; expected index:value");
            return Err(self.fail(reason));
        }
        let index = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        match index {
            Some(index) if accepted.indices.contains(&index) => Ok((index, length)),
            _ if accepted.indices.is_empty() => {
                Err(self.fail(format!("entry {found}; expected none in 0 columns")))
            }
            _ => Err(self.fail(format!("index of {found} is out of range; expected {accepted}"))),
        }
    }

    /// Reads a finite number that ends with its token.
    #[inline]
    fn number<V: TextValue>(&mut self, what: &str) -> Result<V, Failure> {
        // Most values of binary data and of counts are one digit.
        if let [digit @ b'0'..=b'9', rest @ ..] = self.rest
            && rest.first().is_none_or(|&byte| is_blank(byte))
        {
            self.rest = rest;
            return Ok(V::from(digit - b'0'));
        }
        match V::parse_prefix(self.rest) {
            Some((value, length)) if value.is_finite() && self.ends_after(length) => {
                self.rest = &self.rest[length..];
                Ok(value)
            }
            _ => Err(self.bad_number::<V>(what)),
        }
    }

    #[cold]
    fn bad_number<V: TextValue>(&self, what: &str) -> Failure {
        let token = self.token();
        let is_whole = V::parse_prefix(token).is_some_and(|(_, length)| length == token.len());
        let problem = match token.iter().any(u8::is_ascii_digit) {
            _ if !is_whole => "not a number".into(),
            true => format!("too large for {}", V::PRECISION),
            false => "not finite".into(),
        };
        let found = quote(token);
        self.fail(format!("{what} {found} is {problem}; expected a finite decimal number"))
    }
}

/// Shows a token in an error: shortened, with control characters escaped.
fn quote(token: &[u8]) -> String {
    // A character takes at most four bytes, so that the cut below decides.
    let start = &token[..token.len().min(4 * QUOTED_CHARS + 4)];
    let text = String::from_utf8_lossy(start);
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((cut, _)) => format!("{:?}...", &text[..cut]),
        None => format!("{text:?}"),
    }
}
