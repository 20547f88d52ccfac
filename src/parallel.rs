//! Parallel loops that are compiled once.
//!
//! A parallel iterator is compiled anew for every closure, a dozen functions each time; with passes over rows
//! that is every type of rows times every solver, and was half of the functions of the extension. Here only
//! the closure itself is: the tasks are counted, handed out by one compiled loop, and few (thousands of rows
//! each), so that a call through a pointer does not show.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::{Result, memory};

/// Calls `task(k, item)` for every item, in parallel; `k` counts from 0.
pub fn each<T: Send>(items: impl IntoIterator<Item = T>, task: impl Fn(usize, T) + Sync) {
    each_item(items.into_iter().map(|item| Mutex::new(Some(item))).collect(), &task);
}

fn each_item<T: Send>(items: Vec<Mutex<Option<T>>>, task: &(dyn Fn(usize, T) + Sync)) {
    each_number(items.len(), &|k| {
        // Nobody else takes item `k`: the lock is free and not poisoned.
        if let Some(item) = items[k].lock().ok().and_then(|mut item| item.take()) {
            task(k, item);
        }
    });
}

/// Calls `task(start, piece)` for the pieces of `chunk` entries (the last may be shorter) into which `out`
/// falls, in parallel.
pub fn each_chunk<T: Send>(out: &mut [T], chunk: usize, task: impl Fn(usize, &mut [T]) + Sync) {
    each_piece(out, chunk, &task);
}

fn each_piece<T: Send>(out: &mut [T], chunk: usize, task: &(dyn Fn(usize, &mut [T]) + Sync)) {
    each(out.chunks_mut(chunk), |k, piece| task(k * chunk, piece));
}

/// `f(0), .., f(count - 1)`, computed in parallel.
pub fn map<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    map_numbers(count, &f)
}

fn map_numbers<T: Send>(count: usize, f: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    let mut out: Vec<Option<T>> = (0..count).map(|_| None).collect();
    each(&mut out, |k, slot| *slot = Some(f(k)));
    out.into_iter().flatten().collect()
}

/// `f(k, item)` of every item, computed in parallel.
pub fn map_each<T: Send, U: Send>(
    items: impl IntoIterator<Item = T>,
    f: impl Fn(usize, T) -> U + Sync,
) -> Vec<U> {
    map_items(items.into_iter().collect(), &f)
}

fn map_items<T: Send, U: Send>(items: Vec<T>, f: &(dyn Fn(usize, T) -> U + Sync)) -> Vec<U> {
    let mut out: Vec<Option<U>> = items.iter().map(|_| None).collect();
    each(items.into_iter().zip(&mut out), |k, (item, slot)| *slot = Some(f(k, item)));
    out.into_iter().flatten().collect()
}

/// `f(0), .., f(count - 1)` as numbers, computed in parallel by `chunk` of them a task.
pub fn numbers<T: memory::Zero + Send>(count: usize, chunk: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut out = memory::zeros(count);
    each_chunk(&mut out, chunk, |start, out| out.iter_mut().zip(start..).for_each(|(out, k)| *out = f(k)));
    out
}

/// `f(k, item)` of every item, computed in parallel. After a failure no further task begins; the first
/// failure in order is returned.
///
/// # Errors
/// Those of `f`.
pub fn try_map<T: Send, U: Send>(
    items: impl IntoIterator<Item = T>,
    f: impl Fn(usize, T) -> Result<U> + Sync,
) -> Result<Vec<U>> {
    try_map_items(items.into_iter().collect(), &f)
}

fn try_map_items<T: Send, U: Send>(
    items: Vec<T>,
    f: &(dyn Fn(usize, T) -> Result<U> + Sync),
) -> Result<Vec<U>> {
    let has_failed = AtomicBool::new(false);
    let mut out: Vec<Option<Result<U>>> = items.iter().map(|_| None).collect();
    each(items.into_iter().zip(&mut out), |k, (item, slot)| {
        if !has_failed.load(Ordering::Relaxed) {
            *slot =
                Some(memory::catch(|| f(k, item)).inspect_err(|_| has_failed.store(true, Ordering::Relaxed)));
        }
    });
    out.into_iter().flatten().collect()
}

/// Appends copies of all pieces, in parallel: also the pages of the new entries are then made in parallel.
///
/// # Errors
/// [`crate::Error::Memory`].
#[allow(unsafe_code)]
pub fn append<T: Copy + Send + Sync>(out: &mut Vec<T>, pieces: &[&[T]]) -> Result<()> {
    let total = pieces.iter().map(|piece| piece.len()).sum();
    memory::try_reserve(out, total)?;
    let mut room = out.spare_capacity_mut();
    let mut slots = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let (slot, rest) = room.split_at_mut(piece.len());
        slots.push((slot, *piece));
        room = rest;
    }
    each(slots, |_, (slot, piece)| {
        slot.iter_mut().zip(piece).for_each(|(to, from)| {
            to.write(*from);
        });
    });
    // SAFETY: `total` entries behind the length have room, and each of them was written: slots are as long
    // as their pieces, and `each` ends when all tasks have, by a panic if one of them did.
    unsafe { out.set_len(out.len() + total) };
    Ok(())
}

/// Runs `work` on this thread, where parallel iterators are then plain loops. No thread is started, also none
/// of rayon's global pool.
///
/// This thread is the only one of a pool that ends with the work. (`use_current_thread` of rayon would leak
/// the pool, some 5 kB in every thread that ever fits.) A thread that is in a pool already stays in that one.
pub fn alone<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if rayon::current_thread_index().is_some() {
        return work();
    }
    let mut outcome = None;
    in_a_pool_of_one(Box::new(|| outcome = Some(catch_unwind(AssertUnwindSafe(work)))));
    outcome.expect("the task has run").unwrap_or_else(|panic| resume_unwind(panic))
}

#[allow(unsafe_code)]
fn in_a_pool_of_one(task: Box<dyn FnOnce() + Send + '_>) {
    let mut seat = None;
    let take = |thread| {
        seat = Some(thread);
        Ok(())
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).spawn_handler(take).build();
    let (pool, seat) = pool.ok().zip(seat).expect("taking a seat does not fail");
    // SAFETY: the task is gone before what it borrows: `seat.run` returns when the pool ends, and a pool
    // whose handle is dropped ends when every task that was spawned in it has run.
    let task: Box<dyn FnOnce() + Send> = unsafe { std::mem::transmute(task) };
    pool.spawn(task);
    drop(pool);
    seat.run();
}

fn each_number(count: usize, task: &(dyn Fn(usize) + Sync)) {
    match count {
        0 => {}
        1 => task(0),
        _ => (0..count).into_par_iter().for_each(task),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[test]
    fn pieces_are_appended_in_their_order() {
        let numbers: Vec<u32> = (0..10_000).collect();
        let mut out = vec![7, 8];
        append(&mut out, &[&numbers[..10], &[], &numbers[10..]]).unwrap();
        append(&mut out, &[]).unwrap();
        assert_eq!(out[..2], [7, 8]);
        assert_eq!(out[2..], numbers);
    }

    #[test]
    fn every_item_is_taken_once_and_results_keep_their_order() {
        for count in [0, 1, 2, 1000] {
            assert_eq!(map(count, |k| 3 * k), (0..count).map(|k| 3 * k).collect::<Vec<_>>());
            let mut out = vec![0; count];
            each_chunk(&mut out, 7, |start, piece| {
                piece.iter_mut().zip(start..).for_each(|(out, k)| *out += k)
            });
            assert_eq!(out, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn work_alone_stays_on_its_thread() {
        for _ in 0..3 {
            let me = std::thread::current().id();
            let mut places = vec![None; 1000];
            let threads = alone(|| {
                each(&mut places, |_, place| *place = Some(std::thread::current().id()));
                assert_eq!(alone(rayon::current_num_threads), 1);
                rayon::current_num_threads()
            });
            assert_eq!(threads, 1);
            assert!(places.iter().all(|place| *place == Some(me)));
            assert_eq!(rayon::current_thread_index(), None);
        }
        let panic = catch_unwind(|| alone(|| map(10, |k| assert!(k < 5, "at {k}")))).unwrap_err();
        assert_eq!(panic.downcast_ref::<String>().map(String::as_str), Some("at 5"));
        assert_eq!(alone(|| 7), 7);
    }

    #[test]
    fn no_task_begins_after_a_failure() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let begun = AtomicUsize::new(0);
        let failed = pool.install(|| {
            try_map(0..1000, |_, k| {
                begun.fetch_add(1, Ordering::Relaxed);
                std::thread::sleep(std::time::Duration::from_millis(1));
                if k == 0 { Err(crate::Error::Cancelled) } else { Ok(k) }
            })
        });
        assert!(matches!(failed, Err(crate::Error::Cancelled)));
        assert!(begun.into_inner() < 500);
        assert_eq!(try_map(5..8, |k, item| Ok((k, item))).unwrap(), [(0, 5), (1, 6), (2, 7)]);
    }
}
