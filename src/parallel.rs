//! Parallel loops that are compiled once.
//!
//! A parallel iterator is compiled anew for every closure, a dozen functions each time; with passes over rows that is every type of rows times
//! every solver, and was half of the functions of the extension. Here only the closure itself is: the tasks are counted, handed out by one
//! compiled loop, and few (thousands of rows each), so that a call through a pointer does not show.

use std::sync::Mutex;

use rayon::prelude::*;

/// Calls `task(k, item)` for every item, in parallel; `k` counts from 0.
pub fn each<T: Send>(items: impl IntoIterator<Item = T>, task: impl Fn(usize, T) + Sync) {
    let items: Vec<Mutex<Option<T>>> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    each_number(items.len(), &|k| {
        // Nobody else takes item `k`: the lock is free and not poisoned.
        if let Some(item) = items[k].lock().ok().and_then(|mut item| item.take()) {
            task(k, item);
        }
    });
}

/// Calls `task(start, piece)` for the pieces of `chunk` entries (the last may be shorter) into which `out` falls, in parallel.
pub fn each_chunk<T: Send>(out: &mut [T], chunk: usize, task: impl Fn(usize, &mut [T]) + Sync) {
    each(out.chunks_mut(chunk), |k, piece| task(k * chunk, piece));
}

/// `f(0), .., f(count - 1)`, computed in parallel.
pub fn map<T: Send>(count: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let mut out: Vec<Option<T>> = (0..count).map(|_| None).collect();
    each(&mut out, |k, slot| *slot = Some(f(k)));
    out.into_iter().flatten().collect()
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
    use super::*;

    #[test]
    fn every_item_is_taken_once_and_results_keep_their_order() {
        for count in [0, 1, 2, 1000] {
            assert_eq!(map(count, |k| 3 * k), (0..count).map(|k| 3 * k).collect::<Vec<_>>());
            let mut out = vec![0; count];
            each_chunk(&mut out, 7, |start, piece| piece.iter_mut().zip(start..).for_each(|(out, k)| *out += k));
            assert_eq!(out, (0..count).collect::<Vec<_>>());
        }
    }
}
