//! Loops compiled for the vector registers of this machine.
//!
//! A [`Loop`] is ordinary code; [`run`] executes a copy of it that was compiled for AVX-512 or AVX2 where the
//! machine has them. Without fused multiply-add and without reordering of sums, all copies give the same
//! bits. The code inside must be inlined (`#[inline(always)]` down to the arithmetic), or it is compiled for
//! the least common machine; in particular, parallel iterators go around a [`run`], not into it.
#![allow(unsafe_code)]

use super::rows::{Pass, Rows};

/// A piece of work whose loops are worth wide registers.
pub trait Loop {
    /// What it computes.
    type Output;
    /// Whether wide registers are worth copies of the code: single vectors (one lane) gain nothing, their
    /// time goes into scattered loads.
    const IS_WIDE: bool;
    /// Does the work. Implementations are `#[inline(always)]`.
    fn run(self) -> Self::Output;
}

/// Runs `work` with the widest registers of this machine.
#[inline]
pub fn run<W: Loop>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if W::IS_WIDE {
        if has_avx512() {
            // SAFETY: the features were detected.
            return unsafe { avx512(work) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the feature was detected.
            return unsafe { avx2(work) };
        }
    }
    work.run()
}

/// Work on rows whose loops are worth wide registers.
pub trait WideWork {
    /// What it computes.
    type Output;
    /// As in [`Loop`].
    const IS_WIDE: bool;
    /// Does the work. Implementations are `#[inline(always)]`.
    fn run<R: Rows>(self, rows: &R) -> Self::Output;
}

/// The pass that does such work, compiled for every layout and for the machine.
pub struct Wide<W>(pub W);

impl<W: WideWork> Pass for Wide<W> {
    type Output = W::Output;
    #[inline]
    fn run<R: Rows>(self, rows: &R) -> W::Output {
        run(OnRows { work: self.0, rows })
    }
}

struct OnRows<'a, W, R> {
    work: W,
    rows: &'a R,
}

impl<W: WideWork, R: Rows> Loop for OnRows<'_, W, R> {
    type Output = W::Output;
    // Of dense rows, single vectors gain, too: their entries lie side by side.
    const IS_WIDE: bool = W::IS_WIDE || R::IS_DENSE;
    #[inline(always)]
    fn run(self) -> W::Output {
        self.work.run(self.rows)
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512vl") && has!("avx512dq") && has!("avx512bw")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw")]
fn avx512<W: Loop>(work: W) -> W::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<W: Loop>(work: W) -> W::Output {
    work.run()
}
