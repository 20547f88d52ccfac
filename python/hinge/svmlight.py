"""Reading of svmlight / LIBSVM files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from hinge import _checks, _duplicates, _native, _threads

DTYPES = ("float32", "float64")
MATRICES = ("scipy", "arrays")


def load_svmlight(
    path: str | bytes | os.PathLike[Any],
    *,
    n_features: int | None = None,
    dtype: Any = np.float64,
    zero_based: bool | str = "auto",
    query_id: bool = False,
    n_jobs: int | None = None,
    matrix: str = "scipy",
) -> tuple[Any, ...]:
    r"""Read a file in svmlight format, plain or compressed.

    A line is ``label [qid:number] index:value ... [# comment]``; gzip, bzip2 and zstd are recognised by the first
    bytes of the file, whatever its name.

    Parameters
    ----------
    path : str, bytes or os.PathLike
        The file; ``"-"`` is standard input.
    n_features : int, default=None
        Number of columns; a larger index in the file is an error. None takes the largest index of the file.
        Give it for test data, which may lack the last columns of the training data.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the values of X. Decimals are rounded once, directly to it.
    zero_based : {"auto", True, False}, default="auto"
        Whether indices start at 0. "auto" says so if the index 0 occurs anywhere in the file.
    query_id : bool, default=False
        Whether to return the queries too.
    n_jobs : int, default=None
        Threads. None means all usable cores; the result is the same for any number.
    matrix : {"scipy", "arrays"}, default="scipy"
        What X is: a matrix of SciPy, or its plain arrays, in which the numbers are the same. With "arrays" SciPy is
        not imported, whose import takes longer and more memory than many a file.

    Returns
    -------
    X : scipy.sparse.csr_matrix of shape (n_samples, n_features), dtype as given
        Indices within a row may be unsorted, as they are in the file. A column that comes twice in a row has
        the sum of both values. Index arrays are int32 where that is enough, else int64.
        With ``matrix="arrays"`` it is the tuple ``((values, indices, indptr), (n_samples, n_features))``: what
        ``csr_matrix`` takes, so that ``csr_matrix(*X)`` makes the matrix of them. Row ``i`` has the values
        ``values[indptr[i]:indptr[i + 1]]`` in the columns ``indices[indptr[i]:indptr[i + 1]]``, counted from 0.
    y : ndarray of shape (n_samples,), float64
        Labels.
    qid : ndarray of shape (n_samples,), int64
        Queries; only if ``query_id`` is true.

    Raises
    ------
    FileNotFoundError, PermissionError, IsADirectoryError
        As from ``open``, with ``errno`` and ``filename``.
    OSError
        A compressed file is damaged or cut short.
    ValueError
        Unusable parameters; malformed text, with line and column of the first bad token; several labels in a
        line; numbers that are not finite in ``dtype``; no rows; ``query_id`` for a file without queries.

    See Also
    --------
    sklearn.datasets.load_svmlight_file : The same format; also reads file objects and multi-label files.

    Examples
    --------
    >>> import os, tempfile
    >>> from hinge import load_svmlight
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.svm")
    ...     with open(path, "w") as file:
    ...         _ = file.write("+1 1:0.5 3:2\n-1 2:1  # a comment\n")
    ...     X, y = load_svmlight(path)
    ...     arrays, _ = load_svmlight(path, matrix="arrays")
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> y
    array([ 1., -1.])

    The same matrix as plain arrays:

    >>> arrays
    ((array([0.5, 2. , 1. ]), array([0, 2, 1], dtype=int32), array([0, 2, 3], dtype=int32)), (2, 3))

    """
    if n_features is not None:
        _checks.whole("n_features", n_features, 1)
        n_features = int(n_features)
    _checks.truth("query_id", query_id)
    _checks.choice("matrix", matrix, MATRICES)
    base = _zero_based(zero_based)
    values_dtype, n_threads = _dtype(dtype), _threads.threads(n_jobs)
    parts = _native.load_svmlight(os.fsdecode(path), n_features, base, values_dtype, n_threads)
    indptr, indices, values, n_columns, y, qid = parts
    if query_id and qid is None:
        raise ValueError(
            f"{os.fsdecode(path)}: no queries; expected qid:N after the label of every row, or query_id=False"
        )
    shape = (len(indptr) - 1, n_columns)
    index = np.int32 if max(*shape, len(values)) < 2**31 else np.int64
    indptr, indices = indptr.astype(index, copy=False), indices.astype(index, copy=False)
    indptr, indices, values = _duplicates.summed(indptr, indices, values, n_columns)
    X: Any = (values, indices, indptr), shape
    if matrix == "scipy":
        from scipy.sparse import csr_matrix

        X = csr_matrix(*X)
    return (X, y, qid) if query_id else (X, y)


def _zero_based(value: Any) -> bool | None:
    """The native spelling: None for "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"zero_based must be 'auto', True or False, got {value!r}")
    return bool(value)


def _dtype(dtype: Any) -> str:
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = None
    if name not in DTYPES:
        raise ValueError(f"dtype must be numpy.float32 or numpy.float64, got {dtype!r}")
    return name
