//! Rows in any of the supported layouts behind one type.
//!
//! A pass over them ([`Layout::visit`]) distinguishes the layouts once, and is compiled for each. A single
//! row does so for itself, by a branch and a call: cheap where a row is much work (pairs of its entries) or
//! is read for comparison only.

use super::arena::View;
use super::csr::CsrView;
use super::dense::DenseView;
use super::kernels::LINE;
use super::rows::{Pass, Rows};
use super::scaled::{Scaled, ScaledView};
use crate::pairs::map::Map;
use crate::pairs::source::PairSource;

/// Rows in one of the layouts.
#[derive(Clone, Copy)]
pub enum Layout<'a> {
    /// Narrow indices, single precision.
    Csr32F32(CsrView<'a, i32, f32>),
    /// Narrow indices, double precision.
    Csr32F64(CsrView<'a, i32, f64>),
    /// Wide indices, single precision.
    Csr64F32(CsrView<'a, i64, f32>),
    /// Wide indices, double precision.
    Csr64F64(CsrView<'a, i64, f64>),
    /// Dense rows, single precision.
    DenseF32(DenseView<'a, f32>),
    /// Dense rows, double precision.
    DenseF64(DenseView<'a, f64>),
    /// One number per row.
    Scaled(ScaledView<'a>),
}

impl<'a> Layout<'a> {
    /// The same rows as `scaled` where they have such a form.
    pub fn or_scaled<'b>(&self, scaled: Option<&'b Scaled<'a>>) -> Layout<'b>
    where
        'a: 'b,
    {
        scaled.map_or(*self, |scaled| Layout::Scaled(scaled.view()))
    }
}

macro_rules! from {
    ($($variant:ident: $view:ty),*) => {$(
        impl<'a> From<$view> for Layout<'a> {
            fn from(view: $view) -> Self {
                Self::$variant(view)
            }
        }
    )*};
}
from!(
    Csr32F32: CsrView<'a, i32, f32>, Csr32F64: CsrView<'a, i32, f64>, Csr64F32: CsrView<'a, i64, f32>,
    Csr64F64: CsrView<'a, i64, f64>, DenseF32: DenseView<'a, f32>, DenseF64: DenseView<'a, f64>
);

impl<'a> From<View<'a>> for Layout<'a> {
    fn from(view: View<'a>) -> Self {
        match view {
            View::Row(rows) => Self::Scaled(rows),
            View::F32(rows) => Self::Csr32F32(rows),
            View::F64(rows) => Self::Csr32F64(rows),
        }
    }
}

macro_rules! each {
    ($any:expr, $rows:ident => $body:expr) => {
        match $any {
            Layout::Csr32F32($rows) => $body,
            Layout::Csr32F64($rows) => $body,
            Layout::Csr64F32($rows) => $body,
            Layout::Csr64F64($rows) => $body,
            Layout::DenseF32($rows) => $body,
            Layout::DenseF64($rows) => $body,
            Layout::Scaled($rows) => $body,
        }
    };
}

/// Out-of-line copies of the row functions of a layout.
mod outlined {
    use super::{Map, PairSource, Rows};

    #[inline(never)]
    pub fn dot<R: Rows>(rows: &R, i: usize, w: &[f64]) -> f64 {
        rows.dot(i, w)
    }
    #[inline(never)]
    pub fn add_scaled<R: Rows>(rows: &R, i: usize, scale: f64, w: &mut [f64]) {
        rows.add_scaled(i, scale, w);
    }
    #[inline(never)]
    pub fn for_each<R: Rows>(rows: &R, i: usize, f: &mut dyn FnMut(usize, f64)) {
        rows.for_each(i, f);
    }
    #[inline(never)]
    pub fn dot_lanes<R: Rows, const L: usize>(rows: &R, i: usize, w: &[[f64; L]]) -> [f64; L] {
        rows.dot_lanes(i, w)
    }
    #[inline(never)]
    pub fn add_lanes<R: Rows, const L: usize>(rows: &R, i: usize, scale: &[f64; L], w: &mut [[f64; L]]) {
        rows.add_lanes(i, scale, w);
    }
    #[inline(never)]
    pub fn pair_dot<R: PairSource, const L: usize>(
        rows: &R,
        i: usize,
        map: &Map,
        w: &[[f64; L]],
    ) -> [f64; L] {
        rows.pair_dot(i, map, w)
    }
    #[inline(never)]
    pub fn pair_add<R: PairSource, const L: usize>(
        rows: &R,
        i: usize,
        map: &Map,
        scale: &[f64; L],
        w: &mut [[f64; L]],
    ) {
        rows.pair_add(i, map, scale, w);
    }
}

impl<'a> Layout<'a> {
    /// The same rows with one number per row, if their values allow it; see [`Scaled`]. An epoch of dual
    /// coordinate descent (squared hinge) then takes 2.8 ns an entry instead of 4.8 on flights, 2.5 instead
    /// of 3.4 on a9a, 3.3 instead of 3.8 on w8a (`benches/limits.rs`).
    pub fn scaled(&self) -> Option<Scaled<'a>> {
        match self {
            Self::Csr32F32(rows) => Scaled::new(rows),
            Self::Csr32F64(rows) => Scaled::new(rows),
            _ => None,
        }
    }
}

impl Layout<'_> {
    /// `phi(x_i) . w` in each lane for the degree-2 map `phi`.
    #[inline]
    pub fn pair_dot<const L: usize>(&self, i: usize, map: &Map, w: &[[f64; L]]) -> [f64; L] {
        each!(self, rows => outlined::pair_dot(rows, i, map, w))
    }

    /// `w += scale * phi(x_i)` in each lane for the degree-2 map `phi`.
    #[inline]
    pub fn pair_add<const L: usize>(&self, i: usize, map: &Map, scale: &[f64; L], w: &mut [[f64; L]]) {
        each!(self, rows => outlined::pair_add(rows, i, map, scale, w));
    }
}

impl Rows for Layout<'_> {
    fn n_rows(&self) -> usize {
        each!(self, rows => rows.n_rows())
    }
    #[inline]
    fn n_cols(&self) -> usize {
        each!(self, rows => rows.n_cols())
    }
    #[inline]
    fn row_len(&self, i: usize) -> usize {
        each!(self, rows => rows.row_len(i))
    }
    #[inline]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        each!(self, rows => outlined::dot(rows, i, w))
    }
    #[inline]
    fn add_scaled(&self, i: usize, scale: f64, w: &mut [f64]) {
        each!(self, rows => outlined::add_scaled(rows, i, scale, w));
    }
    #[inline]
    fn dot_lanes<const L: usize>(&self, i: usize, w: &[[f64; L]]) -> [f64; L] {
        each!(self, rows => outlined::dot_lanes(rows, i, w))
    }
    #[inline]
    fn add_lanes<const L: usize>(&self, i: usize, scale: &[f64; L], w: &mut [[f64; L]]) {
        each!(self, rows => outlined::add_lanes(rows, i, scale, w));
    }
    #[inline]
    fn dot_lines<const G: usize>(
        &self,
        i: usize,
        w: &[[f64; LINE]],
        stride: usize,
        first: usize,
    ) -> [[f64; LINE]; G] {
        each!(self, rows => rows.dot_lines(i, w, stride, first))
    }
    #[inline]
    fn add_lines(&self, i: usize, delta: &[[f64; LINE]], w: &mut [[f64; LINE]]) {
        each!(self, rows => rows.add_lines(i, delta, w));
    }
    #[inline]
    fn dot_places<const N: usize>(&self, i: usize, w: &[f64], stride: usize, places: [usize; N]) -> [f64; N] {
        each!(self, rows => rows.dot_places(i, w, stride, places))
    }
    #[inline]
    fn add_places<const N: usize>(
        &self,
        i: usize,
        scale: [f64; N],
        w: &mut [f64],
        stride: usize,
        places: [usize; N],
    ) {
        each!(self, rows => rows.add_places(i, scale, w, stride, places));
    }
    fn for_each(&self, i: usize, mut f: impl FnMut(usize, f64)) {
        each!(self, rows => outlined::for_each(rows, i, &mut f));
    }
    #[inline]
    fn prefetch(&self, i: usize) {
        each!(self, rows => rows.prefetch(i));
    }
    #[inline]
    fn prefetch_header(&self, i: usize) {
        each!(self, rows => rows.prefetch_header(i));
    }
    #[inline]
    fn squared_norm(&self, i: usize) -> f64 {
        each!(self, rows => rows.squared_norm(i))
    }
    fn visit<P: Pass>(&self, pass: P) -> P::Output {
        each!(self, rows => pass.run(rows))
    }
}
