//! Row access to data matrices: what every solver is generic over.
//!
//! * [`rows`]: the trait [`Rows`] and its visitors; [`number`]: indices and values as NumPy stores them;
//! * [`csr`]: [`csr::CsrView`], compressed sparse rows borrowed from the caller, checked once;
//! * [`arena`]: a buffer of rows with a fixed capacity, filled and compacted in place;
//! * [`dense`]: [`dense::DenseView`], C-ordered dense rows;
//! * [`filled`]: nearly full CSR rows as dense ones;
//! * [`layout`]: [`layout::Layout`], any of them behind one type; [`Matrix`]: that, or its degree-2 features;
//! * [`columns`]: a copy by columns;
//! * [`design`]: [`design::Design`], a choice of rows and an optional constant column over either of them;
//! * [`lanes`]: [`lanes::Block`], vectors of several lanes interleaved;
//! * [`simd`]: loops compiled for the machine's vector registers;
//! * [`outer`]: sums of outer products of nearly dense rows;
//! * [`kernels`]: dot, scaled addition, prefetch: the only file with unchecked indexing;
//! * [`scaled`]: [`scaled::ScaledView`], rows of equal values: columns and one number;
//! * [`pieces`]: rows that are checked piece by piece, for predictions.

pub mod any;
pub mod arena;
pub mod columns;
pub mod csr;
pub mod dense;
pub mod design;
pub mod filled;
pub mod kernels;
pub mod lanes;
pub mod layout;
pub mod number;
pub mod outer;
pub mod pieces;
pub mod rows;
pub mod scaled;
pub mod simd;

pub use any::Matrix;
pub use number::{CsrValues, Index, Value};
pub use rows::{Pass, Rows};
