//! The terms of a text: words or characters, and n-grams of them, as scikit-learn's vectorizers cut them.
//!
//! The tokens of a text are written one after the other, in lower case, with a blank between them. So a term of
//! several words is a piece of that string, and nothing is copied to join them.

use std::collections::HashSet;
use std::sync::Arc;

use super::alphabet::{Alphabet, is_space};
use super::spec::{Analyzer, TextSpec};

/// Cuts texts into terms.
#[derive(Clone, Debug)]
pub struct Tokenizer {
    spec: TextSpec,
    alphabet: Arc<Alphabet>,
    stop_words: HashSet<Box<[u8]>>,
    /// What an ASCII character becomes in a word; 0 where it ends one.
    ascii: [u8; 128],
}

/// Memory for the tokens of a text, used again for the next one.
#[derive(Debug, Default)]
pub struct TokenBuffer {
    /// The tokens, or the characters.
    text: Vec<u8>,
    /// Where the tokens lie; for characters, where each begins, and the end.
    spans: Vec<(u32, u32)>,
    lowered: String,
}

impl Tokenizer {
    /// A tokenizer.
    pub fn new(spec: &TextSpec, alphabet: Arc<Alphabet>) -> Self {
        let stop_words = spec.stop_words.iter().map(|word| word.as_bytes().into()).collect();
        let mut tokenizer = Self { spec: spec.clone(), alphabet, stop_words, ascii: [0; 128] };
        for c in 0..128_u8 {
            if tokenizer.is_in_word(char::from(c)) {
                tokenizer.ascii[usize::from(c)] = if spec.lowercase { c.to_ascii_lowercase() } else { c };
            }
        }
        tokenizer
    }

    fn is_in_word(&self, c: char) -> bool {
        if self.spec.analyzer == Analyzer::Blanks { !is_space(c) } else { self.alphabet.is_word(c) }
    }

    /// Calls `f` with every term of a text, as often as it occurs.
    #[inline]
    pub fn each(&self, text: &str, buffer: &mut TokenBuffer, f: impl FnMut(&[u8])) {
        // Positions are of 32 bits, and lower case is at most three times as long.
        debug_assert!(text.len() < u32::MAX as usize / 4);
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
        let TokenBuffer { text: out, spans, lowered } = buffer;
        out.clear();
        spans.clear();
        let is_ascii = text.is_ascii();
        let text = if self.spec.lowercase && !is_ascii {
            lowered.clear();
            self.alphabet.lower(text, lowered);
            &**lowered
        } else {
            text
        };
        let mut token = Token { start: 0, chars: 0 };
        if is_ascii {
            for &byte in text.as_bytes() {
                match self.ascii[usize::from(byte)] {
                    0 => self.close(&mut token, out, spans),
                    lower => {
                        out.push(lower);
                        token.chars += 1;
                    }
                }
            }
        } else {
            for c in text.chars() {
                if self.is_in_word(c) {
                    out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                    token.chars += 1;
                } else {
                    self.close(&mut token, out, spans);
                }
            }
        }
        self.close(&mut token, out, spans);
    }

    /// Ends a token: keeps it, or takes it back.
    #[inline]
    fn close(&self, token: &mut Token, out: &mut Vec<u8>, spans: &mut Vec<(u32, u32)>) {
        if token.chars == 0 {
            return;
        }
        let least = if self.spec.analyzer == Analyzer::Words { 2 } else { 1 };
        let is_stopped = || !self.stop_words.is_empty() && self.stop_words.contains(&out[token.start..]);
        if token.chars < least || is_stopped() {
            out.truncate(token.start);
        } else {
            spans.push((token.start as u32, out.len() as u32));
            out.push(b' ');
            token.start = out.len();
        }
        token.chars = 0;
    }

    /// Writes the characters of a text, with white space shortened, and where each begins.
    fn characters(&self, text: &str, buffer: &mut TokenBuffer) {
        let TokenBuffer { text: out, spans, lowered } = buffer;
        lowered.clear();
        if self.spec.lowercase {
            self.alphabet.lower(text, lowered)
        } else {
            lowered.push_str(text)
        }
        out.clear();
        spans.clear();
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

/// The token that is being written.
struct Token {
    start: usize,
    chars: usize,
}

#[cfg(test)]
mod tests {
    use super::super::alphabet::tests::alphabet;
    use super::*;

    fn terms(analyzer: Analyzer, ngrams: (usize, usize), text: &str) -> Vec<String> {
        let stop_words = vec!["stop".into()];
        let spec = TextSpec { analyzer, ngrams, lowercase: true, stop_words };
        let mut terms = Vec::new();
        let mut buffer = TokenBuffer::default();
        let tokenizer = Tokenizer::new(&spec, Arc::new(alphabet()));
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
