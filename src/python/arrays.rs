//! NumPy arrays to row views without copies: the only module that knows dtypes.
//!
//! A matrix arrives as a C-ordered 2-D array, or as `(indptr, indices, data, n_columns)`, each index array of
//! int32 or int64. Row pointers of int32 are copied, all other arrays are borrowed for the length of a call;
//! changing them from another thread meanwhile is the caller's mistake, as with every extension that
//! releases the interpreter.

use numpy::{
    Element, IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2,
    PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::front::Checked;
use crate::matrix::csr::CsrView;
use crate::matrix::dense::DenseView;
use crate::memory;
use crate::memory::CollectLarge;

/// Evaluates `$body` with `$pieces` the matrix, whose rows are checked as they are used: for predictions.
macro_rules! with_pieces {
    ($slices:expr, |$pieces:ident| $body:expr) => {{
        macro_rules! csr {
            ($x:expr) => {{
                let $pieces =
                    $crate::matrix::csr::CsrPieces::new($x.indptr, $x.indices, $x.values, $x.n_cols)?;
                $body
            }};
        }
        macro_rules! dense {
            ($x:expr) => {{
                let $pieces = $crate::matrix::dense::DensePieces::new($x.values, $x.n_rows, $x.n_cols)?;
                $body
            }};
        }
        $crate::python::arrays::by_layout!($slices, csr, dense)
    }};
}
pub(crate) use with_pieces;

/// Hands the arrays of a matrix to the macro of its kind.
macro_rules! by_layout {
    ($slices:expr, $csr:ident, $dense:ident) => {
        match $slices {
            $crate::python::arrays::Slices::Csr32F32(x) => $csr!(x),
            $crate::python::arrays::Slices::Csr32F64(x) => $csr!(x),
            $crate::python::arrays::Slices::Csr64F32(x) => $csr!(x),
            $crate::python::arrays::Slices::Csr64F64(x) => $csr!(x),
            $crate::python::arrays::Slices::DenseF32(x) => $dense!(x),
            $crate::python::arrays::Slices::DenseF64(x) => $dense!(x),
        }
    };
}
pub(crate) use by_layout;

/// A borrowed matrix of any supported layout.
pub enum PyMatrix<'py> {
    Csr32F32(BorrowedCsr<'py, i32, f32>),
    Csr32F64(BorrowedCsr<'py, i32, f64>),
    Csr64F32(BorrowedCsr<'py, i64, f32>),
    Csr64F64(BorrowedCsr<'py, i64, f64>),
    DenseF32(PyReadonlyArray2<'py, f32>),
    DenseF64(PyReadonlyArray2<'py, f64>),
}

/// The borrowed arrays of a CSR matrix.
pub struct BorrowedCsr<'py, I: numpy::Element, V: numpy::Element> {
    pub indptr: Pointers<'py>,
    pub indices: PyReadonlyArray1<'py, I>,
    pub values: PyReadonlyArray1<'py, V>,
    pub n_cols: usize,
}

/// Row pointers: NumPy's if they have eight bytes, else a copy that has.
pub enum Pointers<'py> {
    Lent(PyReadonlyArray1<'py, i64>),
    Widened(Vec<i64>),
}

/// An array whose numbers are of one of some types. The derived extraction would word an error for each type
/// that it passes by, some 10 us in Python, which is much of a small fit.
macro_rules! array_of_any {
    ($(#[$doc:meta])* $name:ident { $($variant:ident: $number:ty),+ }) => {
        $(#[$doc])*
        pub enum $name<'py> {
            $($variant(numpy::PyReadonlyArray1<'py, $number>)),+
        }

        impl<'a, 'py> pyo3::FromPyObject<'a, 'py> for $name<'py> {
            type Error = pyo3::PyErr;

            fn extract(object: pyo3::Borrowed<'a, 'py, pyo3::PyAny>) -> pyo3::PyResult<Self> {
                $(if let Ok(array) = object.cast::<numpy::PyArray1<$number>>() {
                    return Ok(Self::$variant($crate::python::arrays::readable(&array)?));
                })+
                let accepted = [$(numpy::dtype::<$number>(object.py()).to_string()),+];
                Err($crate::python::arrays::not_an_array_of(&accepted, &object))
            }
        }
    };
}
pub(crate) use array_of_any;

array_of_any!(
    /// Indices as NumPy stores them.
    IndexArray { Narrow: i32, Wide: i64 }
);

array_of_any!(
    /// Values in either precision.
    FloatArray { F32: f32, F64: f64 }
);

/// Says what was expected, and what came instead.
pub fn not_an_array_of(accepted: &[String], object: &Bound<'_, PyAny>) -> PyErr {
    let found = match object.cast::<PyUntypedArray>() {
        Ok(array) => format!("a {}-dimensional array of {}", array.ndim(), array.dtype()),
        Err(_) => object.get_type().to_string(),
    };
    let accepted = accepted.join(" or ");
    PyTypeError::new_err(format!("expected a 1-dimensional array of {accepted}, got {found}"))
}

/// An array that is only read.
pub fn readable<'py, T: Element>(array: &Bound<'py, PyArray1<T>>) -> PyResult<PyReadonlyArray1<'py, T>> {
    array.try_readonly().map_err(|error| PyValueError::new_err(error.to_string()))
}

impl<'a, 'py> FromPyObject<'a, 'py> for Pointers<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match object.extract()? {
            IndexArray::Wide(pointers) => Ok(Self::Lent(pointers)),
            IndexArray::Narrow(pointers) => {
                let pointers = pointers.as_slice()?;
                let widened = || Ok::<_, PyErr>(pointers.iter().map(|p| i64::from(*p)).collect_large());
                Ok(Self::Widened(memory::catch(widened)?))
            }
        }
    }
}

impl Pointers<'_> {
    /// The numbers.
    pub fn as_slice(&self) -> PyResult<&[i64]> {
        match self {
            Self::Lent(array) => Ok(array.as_slice()?),
            Self::Widened(numbers) => Ok(numbers),
        }
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for PyMatrix<'py> {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if let Ok(x) = object.extract() {
            return Ok(Self::DenseF32(x));
        }
        if let Ok(x) = object.extract() {
            return Ok(Self::DenseF64(x));
        }
        let (indptr, indices, values, n_cols): (Bound<'py, PyAny>, IndexArray<'py>, FloatArray<'py>, usize) =
            object.extract().map_err(|_| unsupported())?;
        if !indptr.is_instance_of::<PyUntypedArray>() {
            return Err(unsupported());
        }
        let indptr: Pointers<'py> = indptr.extract()?; // whose error may be that there is no memory
        Ok(match (indices, values) {
            (IndexArray::Narrow(indices), FloatArray::F32(values)) => {
                Self::Csr32F32(BorrowedCsr { indptr, indices, values, n_cols })
            }
            (IndexArray::Narrow(indices), FloatArray::F64(values)) => {
                Self::Csr32F64(BorrowedCsr { indptr, indices, values, n_cols })
            }
            (IndexArray::Wide(indices), FloatArray::F32(values)) => {
                Self::Csr64F32(BorrowedCsr { indptr, indices, values, n_cols })
            }
            (IndexArray::Wide(indices), FloatArray::F64(values)) => {
                Self::Csr64F64(BorrowedCsr { indptr, indices, values, n_cols })
            }
        })
    }
}

fn unsupported() -> PyErr {
    PyTypeError::new_err(
        "a matrix is a C-ordered float32 or float64 array, or (indptr, indices, data, n_columns) with \
         int32 or int64 indices",
    )
}

/// The memory of a matrix, free of the interpreter: what a job works on.
#[derive(Clone, Copy)]
pub enum Slices<'a> {
    Csr32F32(CsrSlices<'a, i32, f32>),
    Csr32F64(CsrSlices<'a, i32, f64>),
    Csr64F32(CsrSlices<'a, i64, f32>),
    Csr64F64(CsrSlices<'a, i64, f64>),
    DenseF32(DenseSlice<'a, f32>),
    DenseF64(DenseSlice<'a, f64>),
}

/// The memory of a CSR matrix.
#[derive(Clone, Copy)]
pub struct CsrSlices<'a, I, V> {
    pub indptr: &'a [i64],
    pub indices: &'a [I],
    pub values: &'a [V],
    pub n_cols: usize,
}

/// The memory of a C-ordered array.
#[derive(Clone, Copy)]
pub struct DenseSlice<'a, V> {
    pub values: &'a [V],
    pub n_rows: usize,
    pub n_cols: usize,
}

impl<'a> Slices<'a> {
    /// Checks the memory and wraps it. Belongs inside a job: the check is parallel.
    pub fn checked(self) -> crate::Result<Checked<'a>> {
        macro_rules! csr {
            ($x:expr) => {{
                let (rows, structure) = CsrView::new($x.indptr, $x.indices, $x.values, $x.n_cols)?;
                Ok(Checked { rows: rows.into(), structure })
            }};
        }
        macro_rules! dense {
            ($x:expr) => {{
                let (rows, structure) = DenseView::new($x.values, $x.n_rows, $x.n_cols)?;
                Ok(Checked { rows: rows.into(), structure })
            }};
        }
        by_layout!(self, csr, dense)
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        match self {
            Self::Csr32F32(x) => x.indptr.len().saturating_sub(1),
            Self::Csr32F64(x) => x.indptr.len().saturating_sub(1),
            Self::Csr64F32(x) => x.indptr.len().saturating_sub(1),
            Self::Csr64F64(x) => x.indptr.len().saturating_sub(1),
            Self::DenseF32(x) => x.n_rows,
            Self::DenseF64(x) => x.n_rows,
        }
    }
}

impl<I: numpy::Element, V: numpy::Element> BorrowedCsr<'_, I, V> {
    fn slices(&self) -> PyResult<CsrSlices<'_, I, V>> {
        let (indptr, indices, values) =
            (self.indptr.as_slice()?, self.indices.as_slice()?, self.values.as_slice()?);
        Ok(CsrSlices { indptr, indices, values, n_cols: self.n_cols })
    }
}

fn dense<'a, V: numpy::Element>(x: &'a PyReadonlyArray2<'_, V>) -> PyResult<DenseSlice<'a, V>> {
    if !x.is_c_contiguous() {
        return Err(PyValueError::new_err("a dense matrix must be C-ordered"));
    }
    let shape = x.shape();
    Ok(DenseSlice { values: x.as_slice()?, n_rows: shape[0], n_cols: shape[1] })
}

impl PyMatrix<'_> {
    /// The memory of the matrix.
    pub fn slices(&self) -> PyResult<Slices<'_>> {
        Ok(match self {
            Self::Csr32F32(x) => Slices::Csr32F32(x.slices()?),
            Self::Csr32F64(x) => Slices::Csr32F64(x.slices()?),
            Self::Csr64F32(x) => Slices::Csr64F32(x.slices()?),
            Self::Csr64F64(x) => Slices::Csr64F64(x.slices()?),
            Self::DenseF32(x) => Slices::DenseF32(dense(x)?),
            Self::DenseF64(x) => Slices::DenseF64(dense(x)?),
        })
    }
}

/// An array of Python's with the given numbers.
pub fn collected<T: Element>(
    py: Python<'_>,
    items: impl Iterator<Item = T>,
) -> PyResult<Bound<'_, PyArray1<T>>> {
    let items = memory::catch(|| Ok::<_, PyErr>(items.collect_large()))?;
    Ok(items.into_pyarray(py))
}

/// An array of Python's that is a copy.
pub fn copied<'py, T: Element + Clone>(py: Python<'py>, list: &[T]) -> PyResult<Bound<'py, PyArray1<T>>> {
    collected(py, list.iter().cloned())
}

/// A C-ordered array of Python's with the given rows, each of `width` numbers; a row that is given away is
/// freed once it is copied.
pub fn table<'py>(
    py: Python<'py>,
    width: usize,
    rows: impl ExactSizeIterator<Item: AsRef<[f64]>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let n_rows = rows.len();
    let numbers = memory::catch(|| {
        let mut numbers = memory::with_capacity(n_rows * width);
        rows.for_each(|row| numbers.extend_from_slice(row.as_ref()));
        Ok::<_, PyErr>(numbers)
    })?;
    numbers.into_pyarray(py).reshape([n_rows, width])
}
