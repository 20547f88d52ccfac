//! One exhaustive match from [`Error`] to Python exceptions.

use std::any::Any;
use std::io::ErrorKind;

use pyo3::PyErr;
use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyIsADirectoryError, PyKeyboardInterrupt, PyMemoryError,
    PyOSError, PyPermissionError, PyRuntimeError, PyValueError,
};

use crate::Error;

pyo3::create_exception!(hinge._native, DuplicateEntriesError, PyValueError, "Some row holds a column twice.");
pyo3::create_exception!(
    hinge._native,
    BlockFileError,
    PyValueError,
    "A block store is damaged, cut short, or no block store."
);
pyo3::create_exception!(
    hinge._native,
    ModelFileError,
    PyValueError,
    "A file is no model file, a damaged one, or one of a newer format."
);

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        let text = error.to_string();
        match error {
            Error::Parameter { .. }
            | Error::Shape { .. }
            | Error::Entry { .. }
            | Error::NotFinite { .. }
            | Error::Structure { .. } => PyValueError::new_err(text),
            Error::Labels { .. } | Error::Text { .. } | Error::Scale { .. } | Error::Journal { .. } => {
                PyValueError::new_err(text)
            }
            Error::Corrupt { .. } => BlockFileError::new_err(text),
            Error::Feature { .. } | Error::Cell { .. } | Error::Encoder { .. } => PyValueError::new_err(text),
            Error::ModelFile { .. } => ModelFileError::new_err(text),
            Error::PlaneFile { .. } | Error::Budget { .. } | Error::Overflow { .. } => {
                PyValueError::new_err(text)
            }
            Error::Inexpressible { .. } => PyValueError::new_err(text),
            Error::Memory { .. } => PyMemoryError::new_err(text),
            Error::Occupied { path, reason } => {
                PyFileExistsError::new_err((EEXIST, reason, path.display().to_string()))
            }
            Error::Io { path, source } => io_error(&path, &source),
            Error::Duplicates => DuplicateEntriesError::new_err(text),
            Error::Callback { .. } | Error::Stalled { .. } | Error::Thread(_) => {
                PyRuntimeError::new_err(text)
            }
            Error::Cancelled => PyKeyboardInterrupt::new_err(()),
        }
    }
}

/// The exception for what a job has panicked with: the one function that knows payloads.
pub fn from_panic(payload: Box<dyn Any + Send>) -> PyErr {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message");
    PyRuntimeError::new_err(format!("a bug in hinge, please report it: {text}"))
}

/// The number of "file exists", the same on all systems.
const EEXIST: i32 = 17;
/// The number of "is a directory", the same on all systems.
const EISDIR: i32 = 21;

/// The exception that Python itself would raise, with errno and file name where the system gave one.
fn io_error(path: &std::path::Path, source: &std::io::Error) -> PyErr {
    let path = path.display().to_string();
    let is_folder = source.kind() == ErrorKind::IsADirectory;
    let Some(errno) = source.raw_os_error().or(is_folder.then_some(EISDIR)) else {
        return PyOSError::new_err(format!("{path}: {source}"));
    };
    let text = source.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_owned();
    let arguments = (errno, text, path);
    match source.kind() {
        ErrorKind::NotFound => PyFileNotFoundError::new_err(arguments),
        ErrorKind::PermissionDenied => PyPermissionError::new_err(arguments),
        ErrorKind::IsADirectory => PyIsADirectoryError::new_err(arguments),
        _ => PyOSError::new_err(arguments),
    }
}
