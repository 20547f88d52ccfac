//! Binding of [`crate::durable`]: the one rule about files that are in the way, and drafts for what Python
//! writes.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use super::turns::Turns;
use crate::durable::draft::Draft;
use crate::durable::target;
use crate::durable::target::{Kind, Replace};
use crate::store::format;

/// A plane in NumPy's format: the names of its first arrays.
const SAVED_PLANE: Kind = Kind {
    name: "a saved cost path",
    is_one: |head| {
        head.starts_with(b"PK\x03\x04")
            && head.get(30..40) == Some(b"format.npy")
            && memchr::memmem::find(head, b"signs.npy").is_some()
    },
};

/// A picture that the package drew: its metadata say so.
const PICTURE: Kind = Kind {
    name: "a picture that hinge drew",
    is_one: |head| {
        head.starts_with(b"\x89PNG\r\n\x1a\n") && memchr::memmem::find(head, b"Software\0hinge").is_some()
    },
};

/// A graph of ONNX: a message that begins with the version of its format and names its producer.
const GRAPH: Kind = Kind {
    name: "an ONNX model that hinge wrote",
    is_one: |head| head.first() == Some(&0x08) && memchr::memmem::find(head, b"hinge").is_some(),
};

/// A kind by its name in the facade.
fn kind_of(name: &str) -> PyResult<Kind> {
    match name {
        "store" => Ok(format::KIND),
        "saved_plane" => Ok(SAVED_PLANE),
        "picture" => Ok(PICTURE),
        "onnx" => Ok(GRAPH),
        _ => Err(PyValueError::new_err(format!("{name:?} is not a kind of file"))),
    }
}

/// What a truth value of the facade stands for.
pub(super) fn replaced(overwrite: bool) -> Replace {
    if overwrite { Replace::AnyFile } else { Replace::SameKind }
}

/// Refuses a path that must not be written: at which something else is, or that is one of the sources.
#[pyfunction]
#[pyo3(signature = (path, kind, overwrite=false, sources=Vec::new()))]
pub fn check_target(
    py: Python<'_>,
    path: PathBuf,
    kind: &str,
    overwrite: bool,
    sources: Vec<PathBuf>,
) -> PyResult<()> {
    let kind = kind_of(kind)?;
    py.detach(|| {
        target::check_sources(&path, &sources)?;
        target::check(&path, &kind, replaced(overwrite))
    })?;
    Ok(())
}

/// A file that appears under its name when it is published. Dropped before, it leaves no file.
#[pyclass(name = "Draft", frozen, module = "hinge._native")]
pub struct PyDraft {
    draft: Turns<Option<Draft>>,
}

#[pymethods]
impl PyDraft {
    /// Begins a file; with `overwrite` also where one of another kind is.
    #[new]
    #[pyo3(signature = (path, kind, overwrite=false))]
    fn new(py: Python<'_>, path: PathBuf, kind: &str, overwrite: bool) -> PyResult<Self> {
        let kind = kind_of(kind)?;
        let draft = py.detach(|| Draft::new(&path, kind, replaced(overwrite)))?;
        Ok(Self { draft: Turns::new(Some(draft)) })
    }

    /// Appends bytes.
    fn write(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<()> {
        let mut held = self.draft.take(py)?;
        let draft = held.as_mut().ok_or_else(ended)?;
        Ok(py.detach(|| draft.write(bytes))?)
    }

    /// Makes the file durable and gives it its name.
    fn publish(&self, py: Python<'_>) -> PyResult<()> {
        let draft = self.draft.take(py)?.take().ok_or_else(ended)?;
        py.detach(|| draft.publish())?;
        Ok(())
    }

    /// Abandons the file.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        self.draft.take(py)?.take();
        Ok(())
    }
}

fn ended() -> PyErr {
    PyValueError::new_err("the file is already published or abandoned")
}
