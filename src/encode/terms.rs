//! The terms of a text: words or characters, and n-grams of them, as scikit-learn's vectorizers cut them.
//!
//! The tokens of a text are written one after the other, in lower case, with a blank between them. So a
//! term of several words is a piece of that string, and nothing is copied to join them.

use std::collections::HashSet;
use std::sync::Arc;

use super::alphabet::{Alphabet, is_space};
use super::spec::{Analyzer, ColumnKind, TextSpec};
use super::windows::{BEHIND, LONGEST, MOST_WORDS};
use crate::matrix::simd::{self, Loop};
use crate::memory;

/// Cuts texts into terms.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    spec: TextSpec,
    alphabet: Arc<Alphabet>,
    stop_words: HashSet<Box<[u8]>>,
    /// What an ASCII character becomes in a word; 0 where it ends one.
    ascii: [u8; 128],
    /// Whether that is [`plain`], which needs no table.
    is_plain: bool,
}

/// Memory for the tokens of a text, used again for the next one.
#[derive(Debug, Default)]
pub struct TokenBuffer {
    /// The tokens, or the characters.
    text: Vec<u8>,
    /// Where the tokens lie; for characters, where each begins, and the end.
    spans: Vec<(u32, u32)>,
    lowered: String,
    /// What the characters of an ASCII text become in a word.
    mapped: Vec<u8>,
}

/// A text, where its words lie, and the least and largest number of words of a term.
pub type WordNgrams<'a> = (&'a [u8], &'a [(u32, u32)], [usize; 2]);

/// Bytes that are copied at once: most words are shorter.
const STEP: usize = 16;

impl Tokenizer {
    /// A tokenizer.
    pub fn new(spec: &TextSpec, alphabet: Arc<Alphabet>) -> Self {
        let stop_words = spec.stop_words.iter().map(|word| word.as_bytes().into()).collect();
        let (spec, ascii) = (spec.clone(), [0; 128]);
        let mut tokenizer = Self { spec, alphabet, stop_words, ascii, is_plain: false };
        for c in 0..128_u8 {
            if tokenizer.is_in_word(char::from(c)) {
                let lower = c.to_ascii_lowercase();
                tokenizer.ascii[usize::from(c)] = if tokenizer.spec.lowercase { lower } else { c };
            }
        }
        let is_plain = |c: u8| tokenizer.ascii[usize::from(c)] == plain(c, tokenizer.spec.lowercase);
        tokenizer.is_plain = (0..128).all(is_plain);
        tokenizer
    }

    /// That of a column, if it has texts.
    pub fn of(kind: &ColumnKind, alphabet: Option<&Arc<Alphabet>>) -> Option<Self> {
        match (kind, alphabet) {
            (ColumnKind::Text(text, _), Some(alphabet)) => Some(Self::new(text, alphabet.clone())),
            _ => None,
        }
    }

    fn is_in_word(&self, c: char) -> bool {
        if self.spec.analyzer == Analyzer::Blanks { !is_space(c) } else { self.alphabet.is_word(c) }
    }

    /// Calls `f` with every term of a text, as often as it occurs.
    #[inline]
    pub fn each(&self, text: &str, buffer: &mut TokenBuffer, f: impl FnMut(&[u8])) {
        // Positions are of 32 bits, lower case is at most three times as long: `column::LONGEST_TEXT`.
        debug_assert!(text.len() < u32::MAX as usize / 3);
        match self.spec.analyzer {
            Analyzer::Words | Analyzer::ShortWords | Analyzer::Blanks => {
                self.words(text, buffer);
                self.word_ngrams(buffer, f);
            }
            Analyzer::Chars => {
                self.characters(text, buffer);
                self.char_ngrams(buffer, f);
            }
            Analyzer::CharsInWords => self.chars_in_words(text, buffer, f),
        }
    }

    /// The characters of an ASCII text and the lengths of its terms, where these are windows of its
    /// characters, of [`LONGEST`] at most: what [`Self::each`] would give, one length after the other.
    pub fn windows<'a>(&self, text: &str, buffer: &'a mut TokenBuffer) -> Option<(&'a [u8], [usize; 2])> {
        let is_short = self.spec.ngrams.1 <= LONGEST;
        if self.spec.analyzer != Analyzer::Chars || !is_short || !text.is_ascii() {
            return None;
        }
        self.ascii_characters(text.as_bytes(), &mut buffer.text);
        Some((&buffer.text, [self.spec.ngrams.0, self.spec.ngrams.1]))
    }

    /// The words of a text, where they lie in it, and how many of them a term has, where terms are words, of
    /// [`MOST_WORDS`] at most: what [`Self::each`] would give, one number of words after the other. Behind
    /// the last word are [`BEHIND`] bytes.
    pub fn ngrams<'a>(&self, text: &str, buffer: &'a mut TokenBuffer) -> Option<WordNgrams<'a>> {
        let has_words = !matches!(self.spec.analyzer, Analyzer::Chars | Analyzer::CharsInWords);
        if !has_words || self.spec.ngrams.1 > MOST_WORDS {
            return None;
        }
        self.words(text, buffer);
        Some((&buffer.text, &buffer.spans, [self.spec.ngrams.0, self.spec.ngrams.1]))
    }

    fn word_ngrams(&self, buffer: &TokenBuffer, mut f: impl FnMut(&[u8])) {
        let (least, most) = self.spec.ngrams;
        let TokenBuffer { text, spans, .. } = buffer;
        for n in least..=most.min(spans.len()) {
            for window in spans.windows(n) {
                f(&text[window[0].0 as usize..window[n - 1].1 as usize]);
            }
        }
    }

    fn char_ngrams(&self, buffer: &TokenBuffer, mut f: impl FnMut(&[u8])) {
        let (least, most) = self.spec.ngrams;
        let TokenBuffer { text, spans, .. } = buffer;
        for n in least..=most.min(spans.len() - 1) {
            for (first, behind) in spans.iter().zip(&spans[n..]) {
                f(&text[first.0 as usize..behind.0 as usize]);
            }
        }
    }

    /// Writes the tokens of a text.
    fn words(&self, text: &str, buffer: &mut TokenBuffer) {
        buffer.text.clear();
        buffer.spans.clear();
        if text.is_ascii() {
            return self.ascii_words(text.as_bytes(), buffer);
        }
        let TokenBuffer { text: out, spans, lowered, .. } = buffer;
        let text = if self.spec.lowercase {
            lowered.clear();
            self.alphabet.lower(text, lowered);
            &**lowered
        } else {
            text
        };
        // A blank behind each word, and at most two words for four bytes.
        memory::reserve(out, text.len() + 1 + BEHIND);
        memory::reserve(spans, text.len() / 2 + 1);
        let (mut start, mut chars) = (0, 0);
        for c in text.chars().chain([' ']) {
            if c.is_ascii() && self.ascii[c as usize] != 0 {
                out.push(self.ascii[c as usize]);
                chars += 1;
            } else if !c.is_ascii() && self.is_in_word(c) {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                chars += 1;
            } else if chars > 0 {
                if self.keeps(&out[start..], chars) {
                    spans.push((start as u32, out.len() as u32));
                    out.push(b' ');
                } else {
                    out.truncate(start);
                }
                (start, chars) = (out.len(), 0);
            }
        }
        out.resize(out.len() + BEHIND, 0);
    }

    /// The words of an ASCII text, hardly with a branch on what a character is: nobody could predict where
    /// words end. All characters are looked up first; a bit for each says whether it is in a word; the edges
    /// between zeros and ones are where words begin and end.
    fn ascii_words(&self, text: &[u8], buffer: &mut TokenBuffer) {
        let TokenBuffer { text: out, spans, mapped, .. } = buffer;
        let least = self.least_chars();
        // Room for the last word to be copied in steps of STEP, which is more than BEHIND, and a character
        // behind it that ends it.
        mapped.clear();
        memory::resize(mapped, (text.len() + 1).next_multiple_of(64) + STEP, 0);
        if self.is_plain {
            simd::run(PlainBytes { text, lowercase: self.spec.lowercase, out: mapped });
        } else {
            let look_up = |(to, byte): (&mut u8, &u8)| *to = self.ascii[usize::from(byte & 127)];
            mapped.iter_mut().zip(text).for_each(look_up);
        }
        memory::resize(out, text.len() + 1 + STEP, 0);
        memory::resize(spans, text.len() / 2 + 2, (0, 0));
        let (mut start, mut to, mut n) = (0, 0, 0);
        let (mut last, mut is_inside) = (0, false);
        for (block, bytes) in mapped[..mapped.len() - STEP].chunks_exact(64).enumerate() {
            let bits = in_words(bytes);
            let mut edges = bits ^ (bits << 1 | last);
            last = bits >> 63;
            while edges != 0 {
                let at = 64 * block + edges.trailing_zeros() as usize;
                edges &= edges - 1;
                is_inside = !is_inside;
                if is_inside {
                    start = at;
                    continue;
                }
                let len = at - start;
                copy_word(mapped, start, out, to, len);
                out[to + len] = b' ';
                spans[n] = (to as u32, (to + len) as u32);
                let stays = usize::from(len >= least);
                n += stays;
                to += stays * (len + 1);
            }
        }
        spans.truncate(n);
        if !self.stop_words.is_empty() {
            self.without_stop_words(out, spans);
        }
    }

    /// Moves the words together that are no stop words.
    fn without_stop_words(&self, out: &mut [u8], spans: &mut Vec<(u32, u32)>) {
        let mut to = 0;
        spans.retain_mut(|span| {
            let word = span.0 as usize..span.1 as usize;
            let stays = !self.stop_words.contains(&out[word.clone()]);
            if stays {
                let len = word.len();
                out.copy_within(word.start..=word.end, to);
                *span = (to as u32, (to + len) as u32);
                to += len + 1;
            }
            stays
        });
    }

    /// Characters of the shortest word.
    fn least_chars(&self) -> usize {
        if self.spec.analyzer == Analyzer::Words { 2 } else { 1 }
    }

    /// Whether a word counts.
    #[inline]
    fn keeps(&self, word: &[u8], chars: usize) -> bool {
        chars >= self.least_chars() && (self.stop_words.is_empty() || !self.stop_words.contains(word))
    }

    /// Writes the characters of a text, with white space shortened, and where each begins.
    fn characters(&self, text: &str, buffer: &mut TokenBuffer) {
        let TokenBuffer { text: out, spans, lowered, .. } = buffer;
        lowered.clear();
        if self.spec.lowercase {
            self.alphabet.lower(text, lowered)
        } else {
            memory::reserve_text(lowered, text.len());
            lowered.push_str(text)
        }
        out.clear();
        spans.clear();
        memory::reserve(out, lowered.len());
        memory::reserve(spans, lowered.len() + 1);
        let mut chars = lowered.chars().peekable();
        while let Some(mut c) = chars.next() {
            if is_space(c) && chars.next_if(|next| is_space(*next)).is_some() {
                while chars.next_if(|next| is_space(*next)).is_some() {}
                c = ' ';
            }
            spans.push((out.len() as u32, 0));
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        spans.push((out.len() as u32, 0));
    }

    /// What [`Self::characters`] writes of an ASCII text, without where each begins.
    fn ascii_characters(&self, text: &[u8], out: &mut Vec<u8>) {
        out.clear();
        memory::resize(out, text.len(), 0);
        let (mut n, mut run) = (0, 0);
        for (k, &byte) in text.iter().enumerate() {
            let is_blank = is_space(char::from(byte));
            run = if is_blank { run + 1 } else { 0 };
            // The second character of white space takes the place of the first, the next ones that of this.
            n -= usize::from(run > 1);
            out[n] = if run > 1 { b' ' } else { text[k] };
            n += 1;
        }
        out.truncate(n);
        if self.spec.lowercase {
            out.make_ascii_lowercase();
        }
    }

    /// The n-grams of each word with a blank in front and behind. A word that is no longer than n is a term
    /// itself, once.
    fn chars_in_words(&self, text: &str, buffer: &mut TokenBuffer, mut f: impl FnMut(&[u8])) {
        let mut lowered = std::mem::take(&mut buffer.lowered);
        lowered.clear();
        if self.spec.lowercase {
            self.alphabet.lower(text, &mut lowered)
        } else {
            lowered.push_str(text)
        }
        let (least, most) = self.spec.ngrams;
        let TokenBuffer { text: out, spans, .. } = buffer;
        for word in lowered.split(is_space).filter(|word| !word.is_empty()) {
            out.clear();
            spans.clear();
            memory::reserve(out, word.len() + 2);
            memory::reserve(spans, word.len() + 3);
            for c in [' '].into_iter().chain(word.chars()).chain([' ']) {
                spans.push((out.len() as u32, 0));
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
            spans.push((out.len() as u32, 0));
            for n in least..=most {
                if n >= spans.len() - 1 {
                    f(out);
                    break;
                }
                for (first, behind) in spans.iter().zip(&spans[n..]) {
                    f(&out[first.0 as usize..behind.0 as usize]);
                }
            }
        }
        buffer.lowered = lowered;
    }
}

/// What an ASCII character becomes in a word of letters, digits and underscores; 0 where it ends one.
#[inline(always)]
fn plain(c: u8, lowercase: bool) -> u8 {
    let lower = c | 0x20;
    let is_letter = lower.wrapping_sub(b'a') < 26;
    let is_in_word = is_letter | (c.wrapping_sub(b'0') < 10) | (c == b'_');
    let c = if lowercase & is_letter { lower } else { c };
    if is_in_word { c } else { 0 }
}

/// [`plain`] of all bytes, many at a time.
struct PlainBytes<'a> {
    text: &'a [u8],
    lowercase: bool,
    out: &'a mut [u8],
}

impl Loop for PlainBytes<'_> {
    type Output = ();
    const IS_WIDE: bool = true;

    #[inline(always)]
    fn run(self) {
        let Self { text, lowercase, out } = self;
        out.iter_mut().zip(text).for_each(|(to, byte)| *to = plain(*byte, lowercase));
    }
}

/// A bit for each of 64 bytes below 128: whether it is not 0.
#[inline(always)]
fn in_words(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().enumerate().fold(0, |bits, (k, word)| {
        let high = (u64::from_le_bytes(*word) + 0x7f7f_7f7f_7f7f_7f7f) & 0x8080_8080_8080_8080;
        bits | ((high >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * k)
    })
}

/// Copies a word; what stands behind its end may be written over, by up to `STEP` bytes.
#[inline(always)]
fn copy_word(from: &[u8], start: usize, out: &mut [u8], to: usize, len: usize) {
    if len <= STEP {
        out[to..to + STEP].copy_from_slice(&from[start..start + STEP]);
    } else {
        out[to..to + len].copy_from_slice(&from[start..start + len]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::prelude::*;

    use super::super::alphabet::tests::alphabet;
    use super::*;

    static ALPHABET: LazyLock<Arc<Alphabet>> = LazyLock::new(|| Arc::new(alphabet()));

    fn terms(analyzer: Analyzer, ngrams: (usize, usize), text: &str) -> Vec<String> {
        let stop_words = vec!["stop".into()];
        let spec = TextSpec { analyzer, ngrams, lowercase: true, stop_words };
        let mut terms = Vec::new();
        let mut buffer = TokenBuffer::default();
        let tokenizer = Tokenizer::new(&spec, ALPHABET.clone());
        for _ in 0..2 {
            terms.clear();
            tokenizer.each(text, &mut buffer, |term| terms.push(String::from_utf8(term.to_vec()).unwrap()));
        }
        terms
    }

    #[test]
    fn words_are_joined_by_blanks() {
        let found = terms(Analyzer::Words, (1, 2), "The CAT, a stop sign; naïve-é!");
        let words = ["the", "cat", "sign", "naïve", "the cat", "cat sign", "sign naïve"];
        assert_eq!(found, words);
        assert_eq!(terms(Analyzer::ShortWords, (2, 2), "a bc\u{301}d"), ["a bc", "bc d"]);
        assert_eq!(terms(Analyzer::Blanks, (1, 1), " A-b\u{a0}c "), ["a-b", "c"]);
        assert!(terms(Analyzer::Words, (1, 3), "").is_empty());
        assert!(terms(Analyzer::Words, (3, 3), "ab cd").is_empty());
    }

    proptest! {
        #[test]
        fn words_of_ascii_are_those_of_any_text(text in "[aB_9 .\n\0]{0,200}", least in 1..3_usize) {
            let analyzer = if least == 2 { Analyzer::Words } else { Analyzer::ShortWords };
            let lower = text.to_lowercase();
            let words = lower.split(|c: char| !c.is_alphanumeric() && c != '_');
            let expected: Vec<&str> = words.filter(|word| word.len() >= least).collect();
            prop_assert_eq!(terms(analyzer, (1, 1), &text), expected);
        }

        #[test]
        fn characters_of_ascii_are_those_of_any_text(text in "[aB \t\n\x1c]{0,40}") {
            let analyzer = Analyzer::Chars;
            let spec = TextSpec { analyzer, ngrams: (1, 1), lowercase: true, stop_words: vec![] };
            let tokenizer = Tokenizer::new(&spec, ALPHABET.clone());
            let (mut found, mut buffer) = (Vec::new(), TokenBuffer::default());
            tokenizer.ascii_characters(text.as_bytes(), &mut found);
            tokenizer.characters(&text, &mut buffer);
            prop_assert_eq!(found, buffer.text);
        }

        #[test]
        fn bits_say_which_bytes_are_not_zero(bytes in prop::collection::vec(0..128_u8, 64)) {
            let expected = (0..64).fold(0, |bits, k| bits | u64::from(bytes[k] != 0) << k);
            prop_assert_eq!(in_words(&bytes), expected);
        }
    }

    #[test]
    fn characters_keep_a_single_blank() {
        assert_eq!(terms(Analyzer::Chars, (2, 2), "aé\t b\n"), ["aé", "é ", " b", "b\n"]);
        assert_eq!(terms(Analyzer::Chars, (1, 5), "ab"), ["a", "b", "ab"]);
        assert!(terms(Analyzer::Chars, (1, 5), "").is_empty());
    }

    #[test]
    fn short_words_count_once() {
        assert_eq!(
            terms(Analyzer::CharsInWords, (2, 4), "Ab x"),
            [" a", "ab", "b ", " ab", "ab ", " ab ", " x", "x ", " x "]
        );
        assert_eq!(terms(Analyzer::CharsInWords, (5, 6), "ab"), [" ab "]);
    }
}
