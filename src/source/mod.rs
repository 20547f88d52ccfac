//! Reading a block store into memory.
//!
//! * [`fetch`]: stored bytes of blocks, read ahead or kept;
//! * [`resident`]: the rows in memory, decoded;
//! * [`mapped`]: their degree-2 features.

pub mod fetch;
pub mod mapped;
pub mod resident;
