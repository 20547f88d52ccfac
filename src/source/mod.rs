//! Rows of a block store on their way into memory.
//!
//! * [`fetch`]: stored bytes of blocks, read ahead or kept;
//! * [`resident`]: the rows at hand;
//! * [`mapped`]: their degree-2 features.

pub mod fetch;
pub mod mapped;
pub mod resident;
