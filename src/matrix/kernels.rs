//! Dot product, scaled addition and prefetch for one row: the only file with unchecked indexing.
//!
//! Every sum is kept in eight lanes that are added pairwise at the end, without fused multiply-add, in the
//! portable version and in the vector versions alike: the result has the same bits on every machine, and the
//! tests compare the versions for equality. Vector versions of the dense kernels (AVX-512, AVX2) are chosen
//! at run time.
//!
//! Tried: AVX-512 and AVX2 gathers for the sparse dot product (rows of 100 entries, one core of a Xeon of
//! 2023). In billions of entries a second: weights in the first-level cache 3.2 against 3.0 for the portable
//! loop, in the second-level cache 1.8 against 1.8, from memory 0.115 against 0.125. The loads bind, not the
//! instructions.
#![allow(unsafe_code)]

use super::number::{Index, Value};

/// Dense rows shorter than this go through the portable loop: the call of a vector version costs more than it
/// saves.
const DENSE_MIN_LEN: usize = 48;
const LANES: usize = 8;

#[inline(always)]
fn sum_lanes(s: [f64; LANES]) -> f64 {
    ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
}

/// `sum_k values[k] * w[indices[k]]`.
///
/// # Safety
/// `indices` and `values` have equal length, and every index is below `w.len()`.
#[inline(always)]
pub unsafe fn dot<I: Index, V: Value, W: Value>(indices: &[I], values: &[V], w: &[W]) -> f64 {
    debug_assert_eq!(indices.len(), values.len());
    let mut s = [0.0; LANES];
    let mut at = 0;
    while at + LANES <= indices.len() {
        for (lane, sum) in s.iter_mut().enumerate() {
            // SAFETY: `at + lane < len`, and the caller promised every index to be in range.
            *sum += unsafe { term(indices, values, w, at + lane) };
        }
        at += LANES;
    }
    // SAFETY: `at <= len`, and the caller promised every index to be in range.
    unsafe { add_tail(&mut s, indices, values, w, at) };
    sum_lanes(s)
}

/// Adds the terms from position `at` on, fewer than there are lanes, one to a lane.
///
/// # Safety
/// As for [`dot`], and `at` is at most the length.
#[inline(always)]
unsafe fn add_tail<I: Index, V: Value, W: Value>(
    s: &mut [f64; LANES],
    indices: &[I],
    values: &[V],
    w: &[W],
    at: usize,
) {
    for (k, sum) in (at..indices.len()).zip(s) {
        // SAFETY: `k < len`, the rest is the caller's promise.
        *sum += unsafe { term(indices, values, w, k) };
    }
}

/// # Safety
/// `k` is below the length of both slices and the index at `k` below `w.len()`.
#[inline(always)]
unsafe fn term<I: Index, V: Value, W: Value>(indices: &[I], values: &[V], w: &[W], k: usize) -> f64 {
    // SAFETY: the caller's promise.
    unsafe {
        values.get_unchecked(k).to_f64() * w.get_unchecked(indices.get_unchecked(k).to_usize()).to_f64()
    }
}

/// `w[indices[k]] += scale * values[k]` for every `k`, in order.
///
/// # Safety
/// As for [`dot`].
#[inline(always)]
pub unsafe fn add_scaled<I: Index, V: Value>(indices: &[I], values: &[V], scale: f64, w: &mut [f64]) {
    debug_assert_eq!(indices.len(), values.len());
    for (j, v) in indices.iter().zip(values) {
        // SAFETY: the caller promised every index to be in range.
        unsafe { *w.get_unchecked_mut(j.to_usize()) += scale * v.to_f64() };
    }
}

/// `sum_k w[indices[k]]`, with the sums of [`dot`].
///
/// # Safety
/// Every index is below `w.len()`.
#[inline(always)]
pub unsafe fn sum_at<I: Index>(indices: &[I], w: &[f64]) -> f64 {
    let mut s = [0.0; LANES];
    let (groups, rest) = indices.as_chunks::<LANES>();
    for group in groups {
        for (sum, j) in s.iter_mut().zip(group) {
            // SAFETY: the caller's promise.
            *sum += unsafe { *w.get_unchecked(j.to_usize()) };
        }
    }
    for (sum, j) in s.iter_mut().zip(rest) {
        // SAFETY: the caller's promise.
        *sum += unsafe { *w.get_unchecked(j.to_usize()) };
    }
    sum_lanes(s)
}

/// `w[indices[k]] += scale` for every `k`, in order.
///
/// # Safety
/// As for [`sum_at`].
#[inline(always)]
pub unsafe fn add_at<I: Index>(indices: &[I], scale: f64, w: &mut [f64]) {
    for j in indices {
        // SAFETY: the caller's promise.
        unsafe { *w.get_unchecked_mut(j.to_usize()) += scale };
    }
}

/// `sum_k w[indices[k]]` in each lane, with the sums of [`dot_lanes`].
///
/// # Safety
/// As for [`sum_at`].
#[inline(always)]
pub unsafe fn sum_lanes_at<I: Index, const L: usize>(indices: &[I], w: &[[f64; L]]) -> [f64; L] {
    let (mut even, mut odd) = ([0.0; L], [0.0; L]);
    let (pairs, rest) = indices.as_chunks::<2>();
    // SAFETY: the caller's promise.
    let entry = |j: &I| unsafe { w.get_unchecked(j.to_usize()) };
    for [i, j] in pairs {
        let (first, second) = (entry(i), entry(j));
        for l in 0..L {
            even[l] += first[l];
            odd[l] += second[l];
        }
    }
    for j in rest {
        let last = entry(j);
        for l in 0..L {
            even[l] += last[l];
        }
    }
    for l in 0..L {
        even[l] += odd[l];
    }
    even
}

/// `w[indices[k]] += scale` in each lane for every `k`, in order.
///
/// # Safety
/// As for [`sum_at`].
#[inline(always)]
pub unsafe fn add_lanes_at<I: Index, const L: usize>(indices: &[I], scale: &[f64; L], w: &mut [[f64; L]]) {
    for j in indices {
        // SAFETY: the caller's promise.
        let entry = unsafe { w.get_unchecked_mut(j.to_usize()) };
        for l in 0..L {
            entry[l] += scale[l];
        }
    }
}

/// `sum_k values[k] * w[indices[k]]` in each lane, in two sums (even and odd `k`) that are added at the end.
///
/// # Safety
/// As for [`dot`].
#[inline(always)]
pub unsafe fn dot_lanes<I: Index, V: Value, const L: usize>(
    indices: &[I],
    values: &[V],
    w: &[[f64; L]],
) -> [f64; L] {
    debug_assert_eq!(indices.len(), values.len());
    let (mut even, mut odd) = ([0.0; L], [0.0; L]);
    let mut k = 0;
    while k + 1 < indices.len() {
        // SAFETY: `k + 1 < len`, and the caller promised every index to be in range.
        unsafe {
            add_term(&mut even, indices, values, w, k);
            add_term(&mut odd, indices, values, w, k + 1);
        }
        k += 2;
    }
    if k < indices.len() {
        // SAFETY: `k < len`, the rest as above.
        unsafe { add_term(&mut even, indices, values, w, k) };
    }
    for l in 0..L {
        even[l] += odd[l];
    }
    even
}

/// # Safety
/// As for [`term`].
#[inline(always)]
unsafe fn add_term<I: Index, V: Value, const L: usize>(
    sum: &mut [f64; L],
    indices: &[I],
    values: &[V],
    w: &[[f64; L]],
    k: usize,
) {
    // SAFETY: the caller's promise.
    unsafe {
        add_entry(sum, values.get_unchecked(k).to_f64(), w.get_unchecked(indices.get_unchecked(k).to_usize()))
    }
}

/// `sum += scale * entry` in each lane.
#[inline(always)]
pub fn add_entry<const L: usize>(sum: &mut [f64; L], scale: f64, entry: &[f64; L]) {
    for l in 0..L {
        sum[l] += scale * entry[l];
    }
}

/// `w[indices[k]] += scale * values[k]` in each lane for every `k`, in order.
///
/// # Safety
/// As for [`dot`].
#[inline(always)]
pub unsafe fn add_lanes<I: Index, V: Value, const L: usize>(
    indices: &[I],
    values: &[V],
    scale: &[f64; L],
    w: &mut [[f64; L]],
) {
    debug_assert_eq!(indices.len(), values.len());
    let mut k = 0;
    while k < indices.len() {
        // SAFETY: `k < len`, and the caller promised every index to be in range.
        unsafe {
            let entry = w.get_unchecked_mut(indices.get_unchecked(k).to_usize());
            add_entry(entry, values.get_unchecked(k).to_f64(), scale);
        }
        k += 1;
    }
}

/// To stand in a loop over lines of numbers, each of which fills a register. Without it the compiler takes
/// number after number of eight lines at once, by gathers and scatters, which takes up to ten times as long.
#[inline(always)]
pub fn one_at_a_time() {
    std::hint::black_box(());
}

/// Numbers in a line of [`dot_lines`].
pub const LINE: usize = 8;

/// `sum_k values[k] * w[indices[k] * stride + first + g]` for `G` successive lines of numbers, all sums in
/// registers.
///
/// # Safety
/// `indices` and `values` have equal length, and `index * stride + first + G <= w.len()` for every index.
#[inline(always)]
pub unsafe fn dot_lines<I: Index, V: Value, const G: usize>(
    indices: &[I],
    values: &[V],
    w: &[[f64; LINE]],
    stride: usize,
    first: usize,
) -> [[f64; LINE]; G] {
    debug_assert_eq!(indices.len(), values.len());
    let mut sums = [[0.0; LINE]; G];
    for (j, v) in indices.iter().zip(values) {
        let (at, v) = (j.to_usize() * stride + first, v.to_f64());
        for g in 0..G {
            // SAFETY: the caller's promise.
            add_entry(&mut sums[g], v, unsafe { w.get_unchecked(at + g) });
        }
    }
    sums
}

/// `w[indices[k] * delta.len() + g] += values[k] * delta[g]` for all lines of numbers `g`.
///
/// # Safety
/// `indices` and `values` have equal length, and `(index + 1) * delta.len() <= w.len()` for every index.
#[inline(always)]
pub unsafe fn add_lines<I: Index, V: Value>(
    indices: &[I],
    values: &[V],
    delta: &[[f64; LINE]],
    w: &mut [[f64; LINE]],
) {
    debug_assert_eq!(indices.len(), values.len());
    for (j, v) in indices.iter().zip(values) {
        let (at, v) = (j.to_usize() * delta.len(), v.to_f64());
        for (g, delta) in delta.iter().enumerate() {
            // SAFETY: the caller's promise.
            add_entry(unsafe { w.get_unchecked_mut(at + g) }, v, delta);
        }
    }
}

/// `sum_k values[k] * w[indices[k] * stride + places[n]]` for `N` positions.
///
/// # Safety
/// `indices` and `values` have equal length, and `index * stride + place < w.len()` for every index and
/// every `place` in `places`.
#[inline(always)]
pub unsafe fn dot_places<I: Index, V: Value, const N: usize>(
    indices: &[I],
    values: &[V],
    w: &[f64],
    stride: usize,
    places: [usize; N],
) -> [f64; N] {
    debug_assert_eq!(indices.len(), values.len());
    let mut sums = [0.0; N];
    for (j, v) in indices.iter().zip(values) {
        let (at, v) = (j.to_usize() * stride, v.to_f64());
        for n in 0..N {
            // SAFETY: the caller's promise.
            sums[n] += v * unsafe { w.get_unchecked(at + places[n]) };
        }
    }
    sums
}

/// `w[indices[k] * stride + places[n]] += scale[n] * values[k]` for `N` positions.
///
/// # Safety
/// As for [`dot_places`].
#[inline(always)]
pub unsafe fn add_places<I: Index, V: Value, const N: usize>(
    indices: &[I],
    values: &[V],
    scale: [f64; N],
    w: &mut [f64],
    stride: usize,
    places: [usize; N],
) {
    debug_assert_eq!(indices.len(), values.len());
    for (j, v) in indices.iter().zip(values) {
        let (at, v) = (j.to_usize() * stride, v.to_f64());
        for n in 0..N {
            // SAFETY: the caller's promise.
            unsafe { *w.get_unchecked_mut(at + places[n]) += scale[n] * v };
        }
    }
}

/// `sum_k values[k] * w[k]` in each lane for a dense row.
#[inline(always)]
pub fn dot_dense_lanes<V: Value, const L: usize>(values: &[V], w: &[[f64; L]]) -> [f64; L] {
    let w = &w[..values.len()];
    let (mut even, mut odd) = ([0.0; L], [0.0; L]);
    let mut k = 0;
    while k + 1 < values.len() {
        one_at_a_time();
        add_entry(&mut even, values[k].to_f64(), &w[k]);
        add_entry(&mut odd, values[k + 1].to_f64(), &w[k + 1]);
        k += 2;
    }
    if k < values.len() {
        add_entry(&mut even, values[k].to_f64(), &w[k]);
    }
    for l in 0..L {
        even[l] += odd[l];
    }
    even
}

/// `sum_k values[k] * w[k]` for a dense row; `w` has at least as many numbers as `values`.
#[inline(always)]
pub fn dot_dense<V: Value>(values: &[V], w: &[f64]) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if values.len() >= DENSE_MIN_LEN {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature was detected.
            return unsafe { x86::dot_dense_avx512(values, w) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the feature was detected.
            return unsafe { x86::dot_dense_avx2(values, w) };
        }
    }
    dot_dense_portable(values, w)
}

/// The loop of [`dot_dense`]; the vector versions are this very code compiled for wider registers.
#[inline(always)]
pub(super) fn dot_dense_portable<V: Value, W: Value>(values: &[V], w: &[W]) -> f64 {
    let mut s = [0.0; LANES];
    let (vs, ws) = (values.chunks_exact(LANES), w[..values.len()].chunks_exact(LANES));
    for (lane, (v, x)) in vs.remainder().iter().zip(ws.remainder()).enumerate() {
        s[lane] = v.to_f64() * x.to_f64();
    }
    for (v, x) in vs.zip(ws) {
        for lane in 0..LANES {
            s[lane] += v[lane].to_f64() * x[lane].to_f64();
        }
    }
    sum_lanes(s)
}

/// Products of a dense row with two vectors, each the number of [`dot_dense`]: what is loaded of the row is
/// used twice.
///
/// Tried: two rows with four vectors, as they are and widened to double precision beforehand. The compiler
/// leaves vector registers there on AVX2 (the sums no longer fit into them): 3 to 4 billion products and
/// additions a second of single with double precision where pairs make 11.
#[inline(always)]
pub(super) fn dot_dense_pair<V: Value, W: Value>(values: &[V], w: [&[W]; 2]) -> [f64; 2] {
    let w = w.map(|w| &w[..values.len()]);
    let mut s = [[0.0; LANES]; 2];
    let whole = values.len() - values.len() % LANES;
    for (lane, k) in (whole..values.len()).enumerate() {
        for l in 0..2 {
            s[l][lane] = values[k].to_f64() * w[l][k].to_f64();
        }
    }
    for at in (0..whole).step_by(LANES) {
        let v = widened(&values[at..at + LANES]);
        for l in 0..2 {
            let x = widened(&w[l][at..at + LANES]);
            for lane in 0..LANES {
                s[l][lane] += v[lane] * x[lane];
            }
        }
    }
    s.map(sum_lanes)
}

#[inline(always)]
fn widened<V: Value>(numbers: &[V]) -> [f64; LANES] {
    std::array::from_fn(|lane| numbers[lane].to_f64())
}

/// Entries between the request for what is known of an entry's column and its use.
pub const ENTRIES_AHEAD: usize = 24;
/// Bytes that are asked for at once, at most; the hardware follows a longer stream by itself.
const PREFETCH_BYTES: usize = 512;

/// Prefetches the first `bytes` bytes of `slice` from position `at` on, but no more than are asked for at
/// once; out-of-range positions are harmless.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], at: usize, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = slice.as_ptr().wrapping_add(at).cast::<i8>();
        for line in (0..bytes.min(PREFETCH_BYTES)).step_by(64) {
            // SAFETY: a prefetch never faults, whatever the address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at, bytes, PREFETCH_BYTES);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::Value;

    #[target_feature(enable = "avx512f")]
    pub fn dot_dense_avx512<V: Value>(values: &[V], w: &[f64]) -> f64 {
        super::dot_dense_portable(values, w)
    }

    #[target_feature(enable = "avx2")]
    pub fn dot_dense_avx2<V: Value>(values: &[V], w: &[f64]) -> f64 {
        super::dot_dense_portable(values, w)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sparse_dot_matches_the_definition(
            row in prop::collection::vec((0..50i32, -1e3..1e3f64), 0..70),
            seed in 0..9u32,
        ) {
            let w: Vec<f64> = (0..50).map(|k| f64::from(k * 7 + seed).sin()).collect();
            let (indices, values): (Vec<i32>, Vec<f64>) = row.into_iter().unzip();
            let wide: Vec<i64> = indices.iter().map(|&j| i64::from(j)).collect();
            let exact: f64 = indices.iter().zip(&values).map(|(&j, v)| v * w[j as usize]).sum();
            // SAFETY: all indices are below 50.
            let (narrow, wide) = unsafe { (dot(&indices, &values, &w), dot(&wide, &values, &w)) };
            prop_assert!((narrow - exact).abs() <= 1e-9);
            prop_assert_eq!(narrow.to_bits(), wide.to_bits());
        }

        #[test]
        fn sums_of_ones_match_rows_of_ones(
            row in prop::collection::vec(0..50i32, 0..70),
            scale in -3.0..3.0f64,
        ) {
            let w: Vec<f64> = (0..50).map(|k| f64::from(k * 3).cos()).collect();
            let ones = vec![1.0f64; row.len()];
            let (mut moved, mut expected) = (w.clone(), w.clone());
            // SAFETY: all indices are below 50.
            unsafe {
                prop_assert_eq!(sum_at(&row, &w).to_bits(), dot(&row, &ones, &w).to_bits());
                add_at(&row, scale, &mut moved);
                add_scaled(&row, &ones, scale, &mut expected);
            }
            prop_assert_eq!(moved, expected);
        }

        #[test]
        fn add_scaled_matches_the_definition(
            row in prop::collection::vec((0..20i32, -9.0..9.0f32), 0..40),
            scale in -3.0..3.0f64,
        ) {
            let (indices, values): (Vec<i32>, Vec<f32>) = row.into_iter().unzip();
            let mut w = vec![1.0; 20];
            let mut expected = w.clone();
            for (&j, &v) in indices.iter().zip(&values) {
                expected[j as usize] += scale * f64::from(v);
            }
            // SAFETY: all indices are below 20.
            unsafe { add_scaled(&indices, &values, scale, &mut w) };
            prop_assert_eq!(w, expected);
        }

        #[test]
        fn lanes_match_single_vectors(
            row in prop::collection::vec((0..30i32, -9.0..9.0f64), 0..30),
            scale in -3.0..3.0f64,
        ) {
            let (indices, values): (Vec<i32>, Vec<f64>) = row.into_iter().unzip();
            let w: Vec<[f64; 4]> =
                (0..30).map(|j| std::array::from_fn(|l| f64::from(j * 5 + l as i32).sin())).collect();
            let scales = [scale, 1.0, 0.0, -2.0];
            let mut moved = w.clone();
            // SAFETY: all indices are below 30.
            let dots = unsafe {
                add_lanes(&indices, &values, &scales, &mut moved);
                dot_lanes(&indices, &values, &w)
            };
            for l in 0..4 {
                let mut lane: Vec<f64> = w.iter().map(|x| x[l]).collect();
                let exact: f64 = indices.iter().zip(&values).map(|(&j, v)| v * lane[j as usize]).sum();
                prop_assert!((dots[l] - exact).abs() <= 1e-11);
                // SAFETY: as above.
                unsafe { add_scaled(&indices, &values, scales[l], &mut lane) };
                prop_assert_eq!(lane, moved.iter().map(|x| x[l]).collect::<Vec<_>>());
            }
            let dense = dot_dense_lanes(&values, &w);
            for l in 0..4 {
                let exact: f64 = values.iter().zip(&w).map(|(v, x)| v * x[l]).sum();
                prop_assert!((dense[l] - exact).abs() <= 1e-11);
            }
        }

        #[test]
        fn dense_dot_matches_the_definition(values in prop::collection::vec(-9.0..9.0f32, 0..150)) {
            let w: Vec<f64> = (0..values.len()).map(|k| (k as f64).cos()).collect();
            let exact: f64 = values.iter().zip(&w).map(|(&v, x)| f64::from(v) * x).sum();
            prop_assert!((dot_dense(&values, &w) - exact).abs() <= 1e-10);
            prop_assert_eq!(dot_dense(&values, &w).to_bits(), dot_dense_portable(&values, &w).to_bits());
        }
    }
}
