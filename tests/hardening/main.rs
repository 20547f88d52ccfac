//! Hostile bytes for every reader, by mutation of valid files: no panic, no hang, no memory beyond the size of
//! the file, no wrong answer.
//!
//! Each case is drawn from a number, so that a failure names the one that draws it again. Half of the cases of a
//! format with checksums get them put right ([`formats`]), or the checksums were all that is tested. A case that
//! is read although its checksums were not put right must be the valid file; what is read otherwise is used, and
//! text and matrices are compared with slow, obvious readers.
//!
//! `cargo test` takes some thousands of cases; `HINGE_CASES=10000000 cargo test --profile checked --test hardening`
//! (`make hardening`) that many in all. `HINGE_SEED` draws others, `HINGE_ONLY=text` takes one format.
#![allow(clippy::unwrap_used)] // a panic is how a test fails

mod bytes;
mod files;
mod formats;
mod harness;
mod matrices;
mod trainings;

use harness::{Memory, Verdict};

#[global_allocator]
static MEMORY: Memory = Memory;

/// A format: its name, its share of all cases in thousandths, and its cases by number.
type Format = (&'static str, u64, Box<dyn FnMut(u64) -> Verdict>);

#[test]
fn no_bytes_are_too_hostile() {
    let folder = harness::folder();
    let formats: Vec<Format> = vec![
        ("text", 350, Box::new(formats::text())),
        ("compressed text", 20, Box::new(formats::compressed_text(folder.path()))),
        ("LIBLINEAR model", 200, Box::new(formats::liblinear())),
        ("CSR arrays", 300, Box::new(matrices::csr())),
        ("model file", 60, Box::new(files::model(folder.path()))),
        ("block store", 40, Box::new(files::store(folder.path()))),
        ("plane file", 24, Box::new(files::plane(folder.path()))),
        ("journal", 5, Box::new(trainings::journal(folder.path()))),
        ("checkpoint", 1, Box::new(trainings::checkpoint(folder.path()))),
    ];
    harness::run(formats);
}
