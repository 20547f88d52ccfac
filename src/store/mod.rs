//! The block store: rows of a data set in one compressed, checksummed file that is read in pieces.
//!
//! Built once from any stream of rows, in bounded memory ([`writer`]); read page by page, as a file of
//! unknown origin ([`reader`]). Every row goes to one of a fixed number of blocks, drawn at random from its
//! number and a seed, so that each block is a random sample of the rows even where the input is sorted by
//! class: what block minimisation needs (Yu10, ChangRoth11).
//!
//! * [`format`](mod@format): the bytes of a file, with a drawing; all constants;
//! * [`codec`]: how they are compressed; [`indices`]: column numbers to bytes and back; [`page`]: a page to
//!   bytes and back;
//! * [`meta`]: what a file says about itself;
//! * [`columns`]: relabelling of columns by frequency;
//! * [`writer`]: building, in a draft ([`crate::durable`]) that gets its name when it is whole;
//! * [`reader`]: opening, checking, decoding;
//! * [`text`]: svmlight text of any length, in pieces.
//!
//! **Why pages.** A page is the unit of compression, checksums and decoding: about [`format::PAGE_ENTRIES`]
//! entries of one block. The writer keeps one open page per block and appends whichever is full, so the
//! number of rows need not be known, nothing is written twice and memory is bounded by the number of blocks.
//! The pages of a block lie apart in the file; each is large enough (60 to 500 kB) that a reader loses little
//! by seeking. Tried on paper: one run of bytes per block, which needs all blocks in memory or a second copy
//! of the data on disk.

pub mod codec;
pub mod columns;
pub mod format;
pub mod indices;
pub mod meta;
pub mod page;
pub mod reader;
pub mod text;
pub mod writer;
