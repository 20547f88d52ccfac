//! From the columns of a table to rows of a sparse matrix, in training and in serving alike.
//!
//! ```text
//!     table   carrier | distance | review              hashed:  murmur("carrier=AA") mod n, with a sign, ...
//!             "AA"    |  733     | "good, not great"   counted: carrier_AA carrier_DL distance good not
//! ```
//!
//! Each column of a table has a **kind**: numbers, categories, lists of tokens, texts, crosses of other
//! columns. Columns of the result get their numbers in one of two ways. *Hashed*: by MurmurHash3 of the
//! name, as scikit-learn's `FeatureHasher` and `HashingVectorizer` do; nothing has to be learned, and the
//! result is as wide as asked for. *Counted*: by the sorted list of what was there in the fit, as
//! `OneHotEncoder` and `CountVectorizer` do; every column of the table has columns of its own, with
//! names.
//!
//! * [`spec`]: what is asked for; [`mod@cell`]: values of a table, from Arrow arrays or one row;
//!   [`batch`]: some rows of a table;
//! * [`alphabet`], [`terms`]: from a text to words, characters and their n-grams; [`murmur`], [`windows`]:
//!   their hash;
//! * [`survey`]: the first reading; [`counts`]: what it counts; [`key`]: categories as bytes;
//! * [`settled`]: what was found; [`mod@column`]: a column that is settled; [`recent`]: what its latest
//!   values have become; [`part`]: the rows it makes; [`encoder`]: all columns together;
//! * [`record`]: an encoder as it is saved.

pub mod alphabet;
pub mod batch;
pub mod cell;
pub mod column;
pub mod counts;
pub mod encoder;
pub mod key;
pub mod murmur;
pub mod part;
pub mod recent;
pub mod record;
pub mod settled;
pub mod spec;
pub mod survey;
pub mod terms;
pub mod windows;
