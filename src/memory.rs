//! Large vectors, whose allocation may fail without ending the process.
//!
//! A `Vec` for which there is no memory aborts. Vectors that grow with the data (rows, columns, entries,
//! classes times columns) are therefore made here. Where the system refuses one, the job unwinds with the
//! number of bytes, and [`catch`] around the job returns that as [`Error::Memory`]. No panic hook runs; rayon
//! and threads that are joined hand the unwinding on, everything on the way is dropped.
//!
//! The many small vectors in between are ordinary ones. So that they find room, each request of at least
//! `LARGE` bytes here fails already when fewer than `RESERVE` bytes are left after it. Asking for those costs
//! 0.02 microseconds where malloc has them at hand, a call of the system where not: nothing is written there.
//!
//! Vectors of `HUGE` bytes and more are marked for large pages, as NumPy marks its arrays. A page of 2 MB
//! instead of 512 of 4 kB is one fault instead of 512, and one entry of the processor's table of pages.

use std::alloc::{Layout, alloc_zeroed};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use rayon::iter::IndexedParallelIterator;

use crate::Error;

/// Bytes from which on a request makes sure that something is left.
const LARGE: usize = 1 << 13;
/// Bytes that are left for small vectors, and for those of others: Python, the threads' stacks.
const RESERVE: usize = 4 << 20;
/// Bytes from which on a vector may have large pages: two of them, so that at least one is whole.
const HUGE: usize = 4 << 20;
/// Bytes of the block of [`keep_freed`]: the largest that the C library of Linux learns from, and room for
/// its header.
const LARGEST_LEARNT_FROM: usize = (32 << 20) - (64 << 10);

/// What a job unwinds with: the bytes that were refused.
struct OutOfMemory(usize);

/// Runs `job`; memory that is refused somewhere within is an error like any other.
///
/// What `job` was changing may be left half done, as after a panic.
///
/// # Errors
/// [`Error::Memory`], and those of `job`.
pub fn catch<T, E: From<Error>>(job: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    keep_freed();
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|payload| match payload.downcast::<OutOfMemory>() {
        Ok(refused) => Err(Error::Memory { bytes: refused.0 }.into()),
        Err(panic) => resume_unwind(panic),
    })
}

/// Lets freed memory stay with the process, up to twice 32 MB. The C library of Linux gives the end of its
/// heap back to the system beyond twice the largest block of at most 32 MB that was ever unmapped; this makes
/// and frees one of that size, once. NumPy's arrays do the same to it; elsewhere nothing happens.
///
/// A fit of 50 ms whose vectors of 4 MB are new memory each time spends a third of it on page faults: a path
/// of 30 values of `C` with absolute values in the penalty, flights (448,662 rows), 1.57 s without this, of
/// which 0.6 within the system, and 1.21 with it.
fn keep_freed() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let mut block = Vec::<u8>::new();
        // Where there is no room for it, nothing is learnt.
        let _ = block.try_reserve_exact(LARGEST_LEARNT_FROM);
        drop(black_box(block));
    });
}

/// `n` zeros. Pages are taken from the system when they are first written.
pub fn zeros<T: Zero>(n: usize) -> Vec<T> {
    if size_of::<T>().saturating_mul(n) < LARGE {
        return vec![T::ZERO; n];
    }
    zeroed(n).unwrap_or_else(|| unwind(bytes::<T>(n)))
}

/// `n` times `value`.
pub fn filled<T: Clone>(value: T, n: usize) -> Vec<T> {
    let mut list = with_capacity(n);
    list.resize(n, value);
    list
}

/// An empty vector with room for `n` items.
pub fn with_capacity<T>(n: usize) -> Vec<T> {
    let mut list = Vec::new();
    reserve(&mut list, n);
    list
}

/// A copy.
pub fn copy<T: Clone>(list: &[T]) -> Vec<T> {
    let mut copy = with_capacity(list.len());
    copy.extend_from_slice(list);
    copy
}

/// Makes room for `more` items, no more than asked for where the vector is empty.
pub fn reserve<T>(list: &mut Vec<T>, more: usize) {
    try_reserve(list, more).unwrap_or_else(|_| unwind(bytes::<T>(list.len().saturating_add(more))));
}

/// [`reserve`] for functions that return a [`Result`].
///
/// # Errors
/// [`Error::Memory`]; the items that are there stay.
pub fn try_reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), Error> {
    if more <= list.capacity() - list.len() {
        return Ok(());
    }
    let bytes = bytes::<T>(list.len().saturating_add(more));
    let done = if list.is_empty() { list.try_reserve_exact(more) } else { list.try_reserve(more) };
    if done.is_ok() && has_reserve(bytes) {
        ask_for_large_pages(list);
        Ok(())
    } else {
        Err(Error::Memory { bytes })
    }
}

/// Marks the memory of a vector for large pages, where the system has them to give. It is a request: what
/// comes of it does not matter.
#[cfg(target_os = "linux")]
fn ask_for_large_pages<T>(list: &mut Vec<T>) {
    use rustix::mm::{Advice, madvise};
    let (start, bytes) = (list.as_mut_ptr().cast::<u8>(), list.capacity().saturating_mul(size_of::<T>()));
    if bytes < HUGE {
        return;
    }
    // With the pages at both ends: a mapping of which only a part is marked counts as several, and the
    // allocator then copies what it would else move.
    let skipped = start.addr() % rustix::param::page_size();
    // SAFETY: the pages are mapped, as the vector is, and the advice changes nothing that is stored in them.
    #[allow(unsafe_code)]
    let _ = unsafe { madvise(start.wrapping_sub(skipped).cast(), bytes + skipped, Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages<T>(_: &mut Vec<T>) {}

/// Changes the length to `n`; new items are copies of `value`.
pub fn resize<T: Clone>(list: &mut Vec<T>, n: usize, value: T) {
    reserve(list, n.saturating_sub(list.len()));
    list.resize(n, value);
}

/// Appends copies.
pub fn extend_from_slice<T: Clone>(list: &mut Vec<T>, items: &[T]) {
    reserve(list, items.len());
    list.extend_from_slice(items);
}

/// [`reserve`] for a text.
pub fn reserve_text(text: &mut String, more: usize) {
    let bytes = text.len().saturating_add(more);
    let is_there = more <= text.capacity() - text.len();
    if !is_there && (text.try_reserve(more).is_err() || !has_reserve(bytes)) {
        unwind(bytes);
    }
}

/// Appends an item.
#[inline]
pub fn push<T>(list: &mut Vec<T>, item: T) {
    if list.len() == list.capacity() {
        reserve(list, 1);
    }
    list.push(item);
}

/// Enters `value` under `key`.
pub fn insert<K: Eq + Hash, V, S: BuildHasher>(map: &mut HashMap<K, V, S>, key: K, value: V) {
    let bytes = bytes::<(K, V)>(2 * map.capacity());
    if map.len() == map.capacity() && (map.try_reserve(1).is_err() || !has_reserve(bytes)) {
        unwind(bytes);
    }
    map.insert(key, value);
}

/// Appends items.
pub fn extend<T>(list: &mut Vec<T>, items: impl IntoIterator<Item = T>) {
    let items = items.into_iter();
    let (least, most) = items.size_hint();
    reserve(list, least);
    if most == Some(least) {
        list.extend(items);
    } else {
        items.for_each(|item| push(list, item));
    }
}

/// Large vectors of the items of an iterator.
pub trait CollectLarge: Iterator + Sized {
    /// The items, as `collect` gives them.
    fn collect_large(self) -> Vec<Self::Item> {
        let mut list = Vec::new();
        extend(&mut list, self);
        list
    }

    /// The items, or the first error.
    fn try_collect_large<T, E>(mut self) -> Result<Vec<T>, E>
    where
        Self: Iterator<Item = Result<T, E>>,
    {
        let mut list = with_capacity(self.size_hint().0);
        self.try_for_each(|item| item.map(|item| push(&mut list, item))).map(|()| list)
    }
}

impl<I: Iterator> CollectLarge for I {}

/// The items of a parallel iterator, in order.
pub fn collect_parallel<T: Send>(items: impl IndexedParallelIterator<Item = T>) -> Vec<T> {
    let mut list = with_capacity(items.len());
    items.collect_into_vec(&mut list);
    list
}

/// Numbers that are zero where all their bytes are.
///
/// # Safety
/// The value whose bytes are all 0 is [`Self::ZERO`], and the type takes up bytes.
#[allow(unsafe_code)]
pub unsafe trait Zero: Copy {
    /// The number 0.
    const ZERO: Self;
}

macro_rules! zero {
    ($($number:ty: $zero:expr),*) => {
        $(
            // SAFETY: a primitive type whose 0 has no bit set.
            #[allow(unsafe_code)]
            unsafe impl Zero for $number {
                const ZERO: Self = $zero;
            }
        )*
    };
}
zero!(f64: 0.0, f32: 0.0, i64: 0, i32: 0, u64: 0, u32: 0, u16: 0, u8: 0, usize: 0, bool: false);

// SAFETY: an array is its elements, one after the other, and here there is at least one.
#[allow(unsafe_code)]
unsafe impl<T: Zero, const N: usize> Zero for [T; N] {
    const ZERO: Self = {
        assert!(N > 0);
        [T::ZERO; N]
    };
}

/// `n` zeros, at least one, where there is memory for them.
fn zeroed<T: Zero>(n: usize) -> Option<Vec<T>> {
    let layout = Layout::array::<T>(n).ok()?;
    assert!(layout.size() > 0);
    // SAFETY: the layout has a size.
    #[allow(unsafe_code)]
    let start = unsafe { alloc_zeroed(layout) };
    if start.is_null() {
        return None;
    }
    // SAFETY: `start` was just allocated by the global allocator with the layout of `n` items, all of them
    // zero.
    #[allow(unsafe_code)]
    let mut list = unsafe { Vec::from_raw_parts(start.cast(), n, n) };
    ask_for_large_pages(&mut list);
    has_reserve(layout.size()).then_some(list)
}

/// Whether there is room for the small vectors that follow a request of so many bytes.
fn has_reserve(bytes: usize) -> bool {
    let mut probe = Vec::<u8>::new();
    let has_room = bytes < LARGE || probe.try_reserve_exact(RESERVE).is_ok();
    // Otherwise the compiler may leave the allocation out.
    black_box(&mut probe);
    has_room
}

fn bytes<T>(n: usize) -> usize {
    n.saturating_mul(size_of::<T>())
}

#[cold]
fn unwind(bytes: usize) -> ! {
    resume_unwind(Box::new(OutOfMemory(bytes)))
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::*;

    /// More than any machine has.
    const ABSURD: usize = 1 << 46;

    #[test]
    fn vectors_are_those_of_the_standard_library() {
        for n in [0, 1, 100, LARGE] {
            assert_eq!(zeros::<f64>(n), vec![0.0; n]);
            assert_eq!(zeros::<[u32; 3]>(n), vec![[0; 3]; n]);
            assert_eq!(filled('x', n), vec!['x'; n]);
            let numbers: Vec<usize> = (0..n).collect();
            assert_eq!((0..n).collect_large(), numbers);
            assert_eq!(copy(&numbers), numbers);
            assert_eq!(collect_parallel((0..n).into_par_iter()), numbers);
            let odd = |i: &usize| i % 2 == 1;
            assert_eq!((0..n).filter(odd).collect_large(), (0..n).filter(odd).collect::<Vec<_>>());
            let mut longer = numbers.clone();
            resize(&mut longer, n + 2, 7);
            extend(&mut longer, [8, 9]);
            assert_eq!((&longer[..n], &longer[n..]), (&numbers[..], &[7, 7, 8, 9][..]));
            resize(&mut longer, n, 0);
            assert_eq!(longer, numbers);
        }
    }

    #[test]
    fn what_no_machine_has_is_an_error_with_the_number_of_bytes() {
        let expected = 8 * ABSURD;
        let requests: [fn() -> Vec<u64>; 6] = [
            || zeros(ABSURD),
            || filled(1, ABSURD),
            || with_capacity(ABSURD),
            || std::iter::repeat_n(1, ABSURD).collect_large(),
            || collect_parallel((0..ABSURD).into_par_iter().map(|i| i as u64)),
            || {
                let mut list = Vec::new();
                resize(&mut list, ABSURD, 1);
                list
            },
        ];
        for request in requests {
            let refused = catch(|| Ok::<_, Error>(request()));
            assert!(matches!(refused, Err(Error::Memory { bytes }) if bytes == expected));
        }
        assert!(matches!(
            catch(|| Ok::<_, Error>(zeros::<u64>(usize::MAX))),
            Err(Error::Memory { bytes: usize::MAX })
        ));
        let mut list = vec![5u64];
        assert!(matches!(try_reserve(&mut list, ABSURD), Err(Error::Memory { .. })));
        assert_eq!(list, [5]);
    }

    #[test]
    fn it_is_caught_beyond_a_pool_and_threads_and_nothing_else_is() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let in_tasks = || (0..100).into_par_iter().map(|i| zeros::<u64>(i * ABSURD).len()).sum::<usize>();
        assert!(matches!(catch(|| Ok::<_, Error>(pool.install(in_tasks))), Err(Error::Memory { .. })));
        assert_eq!(pool.install(|| (0..100).into_par_iter().sum::<usize>()), 4950);
        assert!(matches!(catch::<(), _>(|| Err(Error::Cancelled)), Err(Error::Cancelled)));
        let panic = catch_unwind(|| catch::<(), Error>(|| resume_unwind(Box::new("a mistake")))).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"a mistake"));
    }
}
