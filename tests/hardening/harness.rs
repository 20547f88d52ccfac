//! Runs cases with limits of time and memory, and says what was found.

#![allow(unsafe_code, clippy::print_stdout)] // an allocator that counts; a report

use std::alloc::{GlobalAlloc, Layout, System};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::Format;

/// Seconds that a case may take on a busy machine; they take microseconds to milliseconds.
const SECONDS: f64 = 5.0;
/// Seconds after which a case hangs.
const HANG: u64 = 60;
/// Bytes that a case may hold beside those in proportion to its input.
const BYTES: usize = 64 << 20;
/// Bytes held per byte of input. The decoder of a block holds the most: the codec's ratio is bounded by the format.
const PER_BYTE: usize = 1 << 10;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// The allocator of the system, with the bytes that are held and the most of them.
pub struct Memory;

fn add(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    MOST.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: all is left to the allocator of the system.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let start = unsafe { System.alloc(layout) };
        add(if start.is_null() { 0 } else { layout.size() });
        start
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let start = unsafe { System.alloc_zeroed(layout) };
        add(if start.is_null() { 0 } else { layout.size() });
        start
    }
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(start, layout) }
    }
}

/// What became of a case.
pub enum Verdict {
    /// It was refused.
    Refused,
    /// It was read, and what was read is right as far as can be told.
    Read,
}

/// A folder for files that are written ten thousands of times: in memory where the system has one there.
pub fn folder() -> tempfile::TempDir {
    let shared = std::path::Path::new("/dev/shm");
    let parent = if shared.is_dir() { shared.to_owned() } else { std::env::temp_dir() };
    tempfile::tempdir_in(parent).unwrap()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// The case at hand since when, for the thread that looks for hangs.
static CASE: AtomicU64 = AtomicU64::new(0);
static SINCE: AtomicU64 = AtomicU64::new(0);

fn watch(start: Instant) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let since = SINCE.load(Ordering::Relaxed);
            if since > 0 && start.elapsed().as_secs() > since + HANG {
                println!("case {} hangs", CASE.load(Ordering::Relaxed));
                std::process::abort();
            }
        }
    });
}

/// What has been found so far.
#[derive(Default)]
struct Found {
    refused: u64,
    read: u64,
    slowest: f64,
    most: usize,
    failures: Vec<(u64, String)>,
}

/// Bytes of the input of the case at hand; the cases say so.
pub static INPUT: AtomicUsize = AtomicUsize::new(0);

fn run_one(case: u64, format: &mut dyn FnMut(u64) -> Verdict, found: &mut Found, start: Instant) {
    CASE.store(case, Ordering::Relaxed);
    SINCE.store(start.elapsed().as_secs() + 1, Ordering::Relaxed);
    let before = HELD.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let begun = Instant::now();
    let verdict = catch_unwind(AssertUnwindSafe(|| format(case)));
    let seconds = begun.elapsed().as_secs_f64();
    let held = MOST.load(Ordering::Relaxed).saturating_sub(before);
    SINCE.store(0, Ordering::Relaxed);
    (found.slowest, found.most) = (found.slowest.max(seconds), found.most.max(held));
    match verdict {
        Ok(Verdict::Refused) => found.refused += 1,
        Ok(Verdict::Read) => found.read += 1,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            found.failures.push((case, text.unwrap_or_else(|| "a panic without text".to_owned())));
        }
    }
    if seconds > SECONDS {
        found.failures.push((case, format!("took {seconds:.1} s")));
    }
    if held > BYTES + PER_BYTE * INPUT.load(Ordering::Relaxed) {
        found.failures.push((case, format!("held {held} bytes")));
    }
}

/// Runs all formats; a line on each, and a panic at the end if anything was found.
pub fn run(formats: Vec<Format>) {
    let total = number("HINGE_CASES").unwrap_or(20_000);
    let seed = number("HINGE_SEED").unwrap_or(0);
    let only = std::env::var("HINGE_ONLY").ok();
    let one = number("HINGE_CASE");
    let start = Instant::now();
    watch(start);
    std::panic::set_hook(Box::new(|_| ()));
    let mut failures = Vec::new();
    for (name, share, mut format) in formats {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let (mut found, begun) = (Found::default(), Instant::now());
        let count = (total * share / 1000).max(20);
        let first = one.unwrap_or(seed << 32);
        for case in first..first + if one.is_some() { 1 } else { count } {
            run_one(case, &mut *format, &mut found, start);
            if found.failures.len() >= 20 {
                break;
            }
        }
        let Found { refused, read, slowest, most, failures: some } = found;
        println!(
            "{name}: {} cases in {:.0} s, {refused} refused, {read} read; the slowest took {:.1} ms, the most \
             memory was {:.1} MB; {} failures",
            refused + read + some.len() as u64,
            begun.elapsed().as_secs_f64(),
            1e3 * slowest,
            most as f64 / 1e6,
            some.len()
        );
        failures.extend(some.into_iter().map(|(case, text)| format!("{name}, HINGE_CASE={case}: {text}")));
    }
    drop(std::panic::take_hook());
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
