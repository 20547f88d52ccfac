//! The one type of all matrices: rows in any layout, or the degree-2 features of such rows.

use super::kernels::LINE;
use super::layout::Layout;
use super::rows::{Pass, Rows};
use crate::pairs::Poly2;

/// A borrowed matrix. Solvers are compiled once, for this type; their inner loops are passes
/// ([`Rows::visit`]), compiled for each layout.
#[derive(Clone, Copy)]
pub enum Matrix<'a> {
    /// Rows as they are.
    Plain(Layout<'a>),
    /// Their degree-2 features.
    Pairs(Poly2<'a>),
}

impl<'a, L: Into<Layout<'a>>> From<L> for Matrix<'a> {
    fn from(rows: L) -> Self {
        Self::Plain(rows.into())
    }
}

impl<'a> From<Poly2<'a>> for Matrix<'a> {
    fn from(rows: Poly2<'a>) -> Self {
        Self::Pairs(rows)
    }
}

macro_rules! either {
    ($matrix:expr, $rows:ident => $body:expr) => {
        match $matrix {
            Matrix::Plain($rows) => $body,
            Matrix::Pairs($rows) => $body,
        }
    };
}

impl Rows for Matrix<'_> {
    fn n_rows(&self) -> usize {
        either!(self, rows => rows.n_rows())
    }
    #[inline]
    fn n_cols(&self) -> usize {
        either!(self, rows => rows.n_cols())
    }
    #[inline]
    fn row_len(&self, i: usize) -> usize {
        either!(self, rows => rows.row_len(i))
    }
    #[inline]
    fn dot(&self, i: usize, w: &[f64]) -> f64 {
        either!(self, rows => rows.dot(i, w))
    }
    #[inline]
    fn add_scaled(&self, i: usize, scale: f64, w: &mut [f64]) {
        either!(self, rows => rows.add_scaled(i, scale, w));
    }
    #[inline]
    fn dot_lanes<const L: usize>(&self, i: usize, w: &[[f64; L]]) -> [f64; L] {
        either!(self, rows => rows.dot_lanes(i, w))
    }
    #[inline]
    fn add_lanes<const L: usize>(&self, i: usize, scale: &[f64; L], w: &mut [[f64; L]]) {
        either!(self, rows => rows.add_lanes(i, scale, w));
    }
    #[inline]
    fn dot_lines<const G: usize>(
        &self,
        i: usize,
        w: &[[f64; LINE]],
        stride: usize,
        first: usize,
    ) -> [[f64; LINE]; G] {
        either!(self, rows => rows.dot_lines(i, w, stride, first))
    }
    #[inline]
    fn add_lines(&self, i: usize, delta: &[[f64; LINE]], w: &mut [[f64; LINE]]) {
        either!(self, rows => rows.add_lines(i, delta, w));
    }
    #[inline]
    fn dot_places<const N: usize>(&self, i: usize, w: &[f64], stride: usize, places: [usize; N]) -> [f64; N] {
        either!(self, rows => rows.dot_places(i, w, stride, places))
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
        either!(self, rows => rows.add_places(i, scale, w, stride, places));
    }
    fn for_each(&self, i: usize, mut f: impl FnMut(usize, f64)) {
        either!(self, rows => rows.for_each(i, &mut f));
    }
    #[inline]
    fn prefetch(&self, i: usize) {
        either!(self, rows => rows.prefetch(i));
    }
    #[inline]
    fn prefetch_header(&self, i: usize) {
        either!(self, rows => rows.prefetch_header(i));
    }
    #[inline]
    fn squared_norm(&self, i: usize) -> f64 {
        either!(self, rows => rows.squared_norm(i))
    }
    fn visit<P: Pass>(&self, pass: P) -> P::Output {
        either!(self, rows => rows.visit(pass))
    }
}
