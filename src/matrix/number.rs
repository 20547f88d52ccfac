//! The numbers that matrices are stored in: column indices and values as NumPy has them.

use crate::memory::Zero;

/// A column index as NumPy stores it.
pub trait Index: Zero + Send + Sync + std::fmt::Display + 'static {
    /// Size in bytes, by which kernels choose.
    const BYTES: usize;
    /// The number as `usize`, or `None` when it is negative.
    fn checked(self) -> Option<usize>;
    /// The number as `usize`; meaningless for a negative one.
    fn to_usize(self) -> usize;
    /// The number in eight bytes.
    fn to_i64(self) -> i64;
    /// The numbers themselves if they have four bytes.
    fn as_i32(numbers: &[Self]) -> Option<&[i32]>;
}

/// A matrix value as NumPy stores it.
pub trait Value: Zero + Default + Send + Sync + 'static {
    /// Size in bytes, by which kernels choose.
    const BYTES: usize;
    /// Distance from 1 to the next number.
    const EPSILON: f64;
    /// The number nearest to one in double precision.
    fn from_f64(x: f64) -> Self;
    /// The number in double precision.
    fn to_f64(self) -> f64;
    /// Such numbers as the variant of their type.
    fn typed(values: Vec<Self>) -> CsrValues;
}

/// Values of a CSR matrix.
pub enum CsrValues {
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

macro_rules! index {
    ($($t:ty, $as_i32:expr);*) => {$(
        impl Index for $t {
            const BYTES: usize = size_of::<$t>();
            #[inline(always)]
            fn checked(self) -> Option<usize> {
                usize::try_from(self).ok()
            }
            #[inline(always)]
            fn to_usize(self) -> usize {
                self as usize
            }
            #[inline(always)]
            fn to_i64(self) -> i64 {
                i64::from(self)
            }
            fn as_i32(numbers: &[Self]) -> Option<&[i32]> {
                $as_i32(numbers)
            }
        }
    )*};
}
index!(i32, Some; i64, |_| None);

macro_rules! value {
    ($($t:ty, $variant:ident);*) => {$(
        impl Value for $t {
            const BYTES: usize = size_of::<$t>();
            const EPSILON: f64 = <$t>::EPSILON as f64;
            #[inline(always)]
            fn from_f64(x: f64) -> Self {
                x as $t
            }
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn typed(values: Vec<Self>) -> CsrValues {
                CsrValues::$variant(values)
            }
        }
    )*};
}
value!(f32, F32; f64, F64);
