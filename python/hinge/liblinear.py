"""Model files of LIBLINEAR, both ways."""

from __future__ import annotations

import os

from hinge import _native
from hinge.serving import Predictor


def load_liblinear(path: str | os.PathLike[str]) -> Predictor:
    r"""Read a model file of LIBLINEAR.

    All solver types of classification are read, those with an L1 penalty among them. Classes are sorted, as those of
    estimators are: where a file names the smaller one of two first, weights change their signs, so that a positive
    decision value means the second class here, too.

    Parameters
    ----------
    path : str or os.PathLike
        The file, plain or compressed by gzip, bzip2 or zstd; ``"-"`` is standard input.

    Returns
    -------
    Predictor
        Its answers are LIBLINEAR's, but for rows of more than two classes whose highest decision values are equal to
        the bit, such as rows without a known feature: the smallest of these classes is the answer here, the one that
        comes first in the file there.

    Raises
    ------
    FileNotFoundError, PermissionError, IsADirectoryError
        As from ``open``.
    ValueError
        The file is no model of a classifier, with the line and what was expected.

    See Also
    --------
    Predictor.save_liblinear : The other way.

    Examples
    --------
    >>> import os, tempfile
    >>> import hinge
    >>> text = "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias -1\nw\n0.5 \n-1.5 \n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model")
    ...     with open(path, "w") as file:
    ...         _ = file.write(text)
    ...     model = hinge.load_liblinear(path)
    >>> model.predict([[2.0, 0.0], [0.0, 2.0]])
    array([ 1, -1])
    """
    return _read(path, False)


def load_in_order(path: str | os.PathLike[str]) -> Predictor:
    """The same with the classes of the file in its order, of two the first one last: all answers are LIBLINEAR's."""
    return _read(path, True)


def _read(path: str | os.PathLike[str], as_in_file: bool) -> Predictor:
    return Predictor(_native.load_liblinear(os.fsdecode(path), as_in_file))
