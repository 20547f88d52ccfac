//! Binding of [`crate::store`]: a writer, a reader, and text in pieces.

use std::path::PathBuf;
use std::sync::OnceLock;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::arrays::{PyMatrix, collected};
use super::durable::replaced;
use super::run::run;
use super::text::{SvmlightArrays, base_of, svmlight_arrays};
use super::turns::Turns;
use crate::fit::{Monitor, Progress};
use crate::labels::classes::Classes;
use crate::matrix::arena::{Arena, Width};
use crate::matrix::{Matrix, Rows};
use crate::store::columns::{MAX_RELABELLED, Order};
use crate::store::reader::{RowFacts, Store};
use crate::store::text::{TextPieces, count_columns};
use crate::store::writer::{StoreBuilder, StoreOptions};
use crate::text::{ReadOptions, SvmlightData};
use crate::{Result, memory};

/// A store that is being written. Dropped before `finish`, it leaves no file.
#[pyclass(frozen, module = "hinge._native")]
pub struct StoreWriter {
    writer: Turns<Option<StoreBuilder>>,
}

#[pymethods]
impl StoreWriter {
    /// Begins a file; with `overwrite` also where another is. `counts` are the entries per column, by which
    /// columns are relabelled; None leaves them.
    #[new]
    #[pyo3(signature = (path, n_blocks, seed, n_features, counts, source, overwrite))]
    fn new(
        path: PathBuf,
        n_blocks: u32,
        seed: u64,
        n_features: Option<usize>,
        counts: Option<PyReadonlyArray1<'_, u64>>,
        source: String,
        overwrite: bool,
    ) -> PyResult<Self> {
        let order = match counts {
            Some(counts) => memory::catch(|| PyResult::Ok(Order::by_count(counts.as_slice()?)))?,
            None => Order::default(),
        };
        let replace = replaced(overwrite);
        let options = StoreOptions { n_blocks, seed, n_cols: n_features, order, source, replace };
        Ok(Self { writer: Turns::new(Some(StoreBuilder::create(&path, options)?)) })
    }

    /// Appends rows; returns (rows so far, bytes written so far).
    #[pyo3(signature = (matrix, class_ids, weight, n_threads))]
    fn append(
        &self,
        py: Python<'_>,
        matrix: PyMatrix<'_>,
        class_ids: PyReadonlyArray1<'_, u32>,
        weight: Option<PyReadonlyArray1<'_, f64>>,
        n_threads: usize,
    ) -> PyResult<(u64, u64)> {
        let (classes, slices) = (class_ids.as_slice()?, matrix.slices()?);
        let weight = weight.as_ref().map(|weight| weight.as_slice()).transpose()?;
        let mut writer = self.writer.take(py)?;
        // Taken out: after an error the file is abandoned.
        let mut taken = writer
            .take()
            .ok_or_else(|| PyValueError::new_err("the store is already finished or abandoned"))?;
        let taken = run(py, n_threads, None, move |monitor| {
            let rows = slices.checked()?.rows;
            taken.append(&rows.into(), classes, weight, monitor)?;
            Ok(taken)
        })?;
        let progress = (taken.n_rows(), taken.bytes());
        *writer = Some(taken);
        Ok(progress)
    }

    /// Makes the file whole and gives it its name. `labels` are the labels of the class ids, of one type.
    #[pyo3(signature = (labels, feature_names, n_threads))]
    fn finish(
        &self,
        py: Python<'_>,
        labels: &Bound<'_, PyList>,
        feature_names: Option<Vec<String>>,
        n_threads: usize,
    ) -> PyResult<()> {
        let classes = classes_of(labels)?;
        let writer = self.writer.take(py)?.take();
        let writer =
            writer.ok_or_else(|| PyValueError::new_err("the store is already finished or abandoned"))?;
        run(py, n_threads, None, |_| writer.finish(classes, feature_names))
    }

    /// Abandons the file.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.writer.take(py)?.take();
        Ok(())
    }
}

/// Labels of one Python type; truth values before integers, of which they are a kind.
pub fn classes_of(labels: &Bound<'_, PyList>) -> PyResult<Classes> {
    fn all<'py, T: for<'a> FromPyObject<'a, 'py>>(labels: &Bound<'py, PyList>) -> Option<Vec<T>> {
        labels.iter().map(|label| label.extract().ok()).collect()
    }
    all(labels)
        .map(Classes::Bool)
        .or_else(|| all(labels).map(Classes::Int))
        .or_else(|| all(labels).map(Classes::Float))
        .or_else(|| all(labels).map(Classes::Text))
        .ok_or_else(|| {
            PyTypeError::new_err("labels are all truth values, integers of 8 bytes, numbers or texts")
        })
}

/// The labels as a list of Python's own types.
pub fn labels_of<'py>(py: Python<'py>, classes: &Classes) -> PyResult<Bound<'py, PyList>> {
    match classes {
        Classes::Bool(labels) => PyList::new(py, labels),
        Classes::Int(labels) => PyList::new(py, labels),
        Classes::Float(labels) => PyList::new(py, labels),
        Classes::Text(labels) => PyList::new(py, labels),
    }
}

/// An open store.
#[pyclass(frozen, module = "hinge._native")]
pub struct StoreReader {
    pub(super) store: Store,
    old: OnceLock<Vec<u32>>,
}

/// Rows of a store: indptr, indices, values, class numbers, sample weights, row numbers.
type Block<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i32>>,
    Bound<'py, PyAny>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<u64>>,
);

/// Class numbers and sample weights.
type ClassesAndWeights<'py> = (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<f64>>);

#[pymethods]
impl StoreReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let store = py.detach(|| memory::catch(|| Store::open(&path)))?;
        Ok(Self { store, old: OnceLock::new() })
    }

    /// What the file says about itself.
    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (store, meta, facts) = (&self.store, self.store.meta(), PyDict::new(py));
        facts.set_item("path", store.path())?;
        facts.set_item("n_rows", meta.n_rows)?;
        facts.set_item("n_features", meta.n_cols)?;
        facts.set_item("n_used", meta.n_used)?;
        facts.set_item("nnz", meta.nnz)?;
        facts.set_item("n_blocks", meta.n_blocks)?;
        facts.set_item("n_pages", store.pages().len())?;
        facts.set_item("file_bytes", store.file_bytes())?;
        facts.set_item("seed", meta.seed)?;
        facts.set_item("dtype", if meta.needs_f64 { "float64" } else { "float32" })?;
        facts.set_item("uniform_rows", meta.is_uniform)?;
        facts.set_item("has_weights", meta.has_weights)?;
        facts.set_item("n_relabelled", meta.n_relabelled)?;
        facts.set_item("classes", labels_of(py, &store.classes())?)?;
        facts.set_item("class_rows", store.class_rows())?;
        facts.set_item("class_weight", store.class_weight())?;
        facts.set_item("feature_names", &meta.feature_names)?;
        facts.set_item("max_squared_norm", meta.max_squared_norm)?;
        facts.set_item("sum_squared_norm", meta.sum_squared_norm)?;
        facts.set_item("source", &meta.source)?;
        facts.set_item("fingerprint", &meta.fingerprint)?;
        facts.set_item("written_by", &meta.written_by)?;
        Ok(facts)
    }

    /// The pages of a block: (number, rows, entries) each.
    fn pages(&self, block: u32) -> Vec<(u32, u32, u32)> {
        let size = |page: u32| {
            (page, self.store.pages()[page as usize].n_rows, self.store.pages()[page as usize].nnz)
        };
        self.store.pages_of(block).into_iter().map(size).collect()
    }

    /// Decodes pages: rows in the order of the file, columns as in the input and rising.
    fn read<'py>(&self, py: Python<'py>, pages: Vec<u32>, n_threads: usize) -> PyResult<Block<'py>> {
        if let Some(page) = pages.iter().find(|&&page| page as usize >= self.store.pages().len()) {
            return Err(PyValueError::new_err(format!(
                "page {page} does not exist, the store has {}",
                self.store.pages().len()
            )));
        }
        let old = self.old(py)?;
        let width = self.store.plain_width();
        let (rows, values, facts) = run(py, n_threads, None, |monitor| {
            let (arena, facts) = self.store.load(&pages, width, monitor)?;
            let (rows, values) = plain(&arena, old);
            Ok((rows, values, facts))
        })?;
        let RowFacts { classes, weights, numbers } = facts;
        let values = match width {
            Width::F64 => values.into_pyarray(py).into_any(),
            _ => collected(py, values.into_iter().map(|v| v as f32))?.into_any(),
        };
        let (indptr, indices) = rows;
        let facts = (classes.into_pyarray(py), weights.into_pyarray(py), numbers.into_pyarray(py));
        Ok((indptr.into_pyarray(py), indices.into_pyarray(py), values, facts.0, facts.1, facts.2))
    }

    /// Class numbers and sample weights of all rows, in the order of the input.
    fn facts<'py>(&self, py: Python<'py>, n_threads: usize) -> PyResult<ClassesAndWeights<'py>> {
        let (classes, weights) = run(py, n_threads, None, |monitor| self.store.facts(monitor))?;
        Ok((classes.into_pyarray(py), weights.into_pyarray(py)))
    }

    /// Checks every byte; `progress` is called with the share of pages done.
    #[pyo3(signature = (n_threads, progress=None))]
    fn verify(&self, py: Python<'_>, n_threads: usize, progress: Option<Bound<'_, PyAny>>) -> PyResult<()> {
        let total = self.store.pages().len() as f64;
        run(py, n_threads, progress.as_ref(), |monitor| {
            self.store.verify(monitor, &|done| {
                let accuracy = done as f64 / total;
                monitor.observe(&Progress { solver: "verify", iteration: done, accuracy, search: None });
            })
        })
    }
}

impl StoreReader {
    /// Columns of the input by columns of the store, read once.
    fn old(&self, py: Python<'_>) -> Result<&[u32]> {
        if self.old.get().is_none() {
            let read = py.detach(|| memory::catch(|| self.store.old_columns()))?;
            let _ = self.old.set(read); // another thread was faster: the same numbers
        }
        Ok(self.old.get().map_or(&[], Vec::as_slice))
    }
}

/// Row pointers and columns.
type Pattern = (Vec<i64>, Vec<i32>);

fn plain(arena: &Arena, old: &[u32]) -> (Pattern, Vec<f64>) {
    let mut indptr = memory::with_capacity(arena.n_rows() + 1);
    let (mut indices, mut values) = (memory::with_capacity(arena.nnz()), memory::with_capacity(arena.nnz()));
    indptr.push(0);
    let mut row: Vec<(i32, f64)> = Vec::new();
    let rows = &Matrix::from(arena.view());
    for i in 0..rows.n_rows() {
        row.clear();
        rows.for_each(i, |j, v| row.push((old.get(j).map_or(j as i32, |&j| j as i32), v)));
        row.sort_unstable_by_key(|entry| entry.0);
        indices.extend(row.iter().map(|entry| entry.0));
        values.extend(row.iter().map(|entry| entry.1));
        indptr.push(indices.len() as i64);
    }
    ((indptr, indices), values)
}

/// How often columns occur in plain svmlight text in samples of `bytes` bytes, each at an offset
/// (path, offset) of a file; columns from `limit` on are left out, and those that are not relabelled.
#[pyfunction]
#[pyo3(signature = (places, bytes, zero_based, limit))]
pub fn sample_columns<'py>(
    py: Python<'py>,
    places: Vec<(PathBuf, u64)>,
    bytes: usize,
    zero_based: bool,
    limit: usize,
) -> PyResult<Bound<'py, PyArray1<u64>>> {
    let counts = run(py, 1, None, |monitor| {
        let mut counts = Vec::new();
        for (path, offset) in &places {
            monitor.poll()?;
            count_columns(
                path,
                *offset,
                bytes,
                usize::from(!zero_based),
                limit.min(MAX_RELABELLED),
                &mut counts,
            )?;
        }
        // Room was made ahead, and a column that is not there must not become one.
        counts.truncate(counts.iter().rposition(|&count| count > 0).map_or(0, |at| at + 1));
        Ok(counts)
    })?;
    Ok(counts.into_pyarray(py))
}

/// An svmlight file in pieces.
#[pyclass(frozen, module = "hinge._native")]
pub struct TextReader {
    pieces: Turns<TextPieces>,
}

#[pymethods]
impl TextReader {
    /// Opens a file. `zero_based` is None for "auto": the first piece decides.
    #[new]
    #[pyo3(signature = (path, n_features, zero_based))]
    fn new(path: PathBuf, n_features: Option<usize>, zero_based: Option<bool>) -> PyResult<Self> {
        let options = ReadOptions { base: base_of(zero_based), n_features };
        Ok(Self { pieces: Turns::new(TextPieces::open(&path, options)?) })
    }

    /// The next piece, as of `load_svmlight`; None at the end.
    fn next<'py>(
        &self,
        py: Python<'py>,
        dtype: &str,
        n_threads: usize,
    ) -> PyResult<Option<SvmlightArrays<'py>>> {
        let mut pieces = self.pieces.take(py)?;
        let pieces = &mut *pieces;
        match dtype {
            "float32" => {
                let data: Option<SvmlightData<f32>> =
                    run(py, n_threads, None, |monitor| pieces.next(&|| monitor.cancelled()))?;
                Ok(data.map(|data| svmlight_arrays(py, data)))
            }
            _ => {
                let data: Option<SvmlightData<f64>> =
                    run(py, n_threads, None, |monitor| pieces.next(&|| monitor.cancelled()))?;
                Ok(data.map(|data| svmlight_arrays(py, data)))
            }
        }
    }

    /// Whether indices start at 0, once that is decided.
    #[getter]
    fn zero_based(&self, py: Python<'_>) -> PyResult<Option<bool>> {
        use crate::text::IndexBase;
        Ok(match self.pieces.take(py)?.base() {
            IndexBase::Auto => None,
            IndexBase::Zero => Some(true),
            IndexBase::One => Some(false),
        })
    }
}
