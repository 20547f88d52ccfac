"""A plane of two costs that stays in its file."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from hinge import _checks, _native, _threads
from hinge._cost_problem import CostProblem, Explored
from hinge._durable import reading


def header(problem: CostProblem) -> bytes:
    """The problem as the file of its plane keeps it."""
    buffer = io.BytesIO()
    arrays: dict[str, Any] = dict(problem.arrays())
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


class CostPathFile(Explored):
    """A plane that :func:`hinge.cost_path` wrote to a file, layer by layer.

    Nothing but the data is in memory. Layers are read one at a time, the whole plane by :meth:`load`. Solutions at any
    costs need no facets: each is found from a certified fit, solved exactly and certified.

    Parameters
    ----------
    path : path
        The file.
    n_jobs : int, default=None
        Threads for queries; None means all usable cores.

    Attributes
    ----------
    path : str
    box : tuple of float
        Limits of C+ and C-.
    n_facets, n_edges, n_vertices, n_layers : int
    special : ndarray
        Vertices around which facets do not close in rounding; empty in the regular case.
    ended_by : str
        ``"complete"``, ``"max_regions"``, ``"interrupt"``.
    stats : dict
        Work and checks, as of a :class:`hinge.CostPath`.

    Raises
    ------
    ValueError
        The file is damaged or not such a file.
    OSError
        It cannot be read.

    Examples
    --------
    >>> import hinge, os, tempfile
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=40, n_features=5, weights=[0.8], random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     plane = hinge.cost_path(X, y, box=(10, 10), file=os.path.join(folder, "plane"))
    ...     facets = sum(len(layer["parent"]) for layer in plane.layers())
    ...     facets == plane.n_facets == plane.load().n_facets
    True
    """

    def __init__(self, path: str | os.PathLike[str], *, n_jobs: int | None = None):
        self.path = os.fspath(path)
        self._n_threads = _threads.threads(n_jobs)
        self._file = _native.PlaneFile(self.path)
        self.stats = self._file.findings()
        with (
            reading(self.path, "an intact cost-plane file"),
            np.load(io.BytesIO(self._file.header()), allow_pickle=False) as arrays,
        ):
            self.problem = CostProblem.from_arrays(dict(arrays))

    @property
    def box(self) -> tuple[float, float]:
        """Limits of C+ and C-."""
        first, second = self._file.limit
        return first, second

    @property
    def n_facets(self) -> int:
        """Number of closed facets."""
        return int(self.stats["n_facets"])

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return int(self.stats["n_vertices"])

    @property
    def n_layers(self) -> int:
        """Number of layers of the exploration."""
        return len(self._file)

    def __repr__(self) -> str:
        partial = f", partial ({self.ended_by})" if self.is_partial else ""
        return f"CostPathFile({self.path!r}, {self.n_facets} facets in {self.n_layers} layers, box {self.box}{partial})"

    def layer(self, k: int) -> dict[str, Any]:
        """The arrays of layer ``k``, with the numbers of the whole plane.

        Returns
        -------
        dict
            ``first_facet``, ``first_vertex``: numbers of its first facet and first new vertex. Per facet ``parent``,
            ``entry`` (event on the way from the parent) and ``lengths`` (edges). Per edge, counter-clockwise facet by
            facet, ``events``, ``beyond``, ``corner``. ``vertices``, shape (n, 3): those that no earlier layer has.
            Meanings as in :class:`hinge.CostPath`.
        """
        _checks.whole("layer", k, 0)
        return self._file.layer(int(k))

    def layers(self) -> Iterator[dict[str, Any]]:
        """All layers in order, one at a time in memory."""
        return (self._file.layer(k) for k in range(self.n_layers))

    def load(self) -> Any:
        """The whole plane in memory, a :class:`hinge.CostPath`."""
        from hinge.path import CostPath

        return CostPath(self.problem, *self._file.load(), self._n_threads)

    def _answers(self, points: np.ndarray) -> dict[str, np.ndarray]:
        outside = (points > np.array(self.box)).any(axis=1)
        if outside.any():
            bad = points[np.flatnonzero(outside)[0]]
            raise ValueError(f"({bad[0]:g}, {bad[1]:g}) is outside of the box {self.box}")
        perturbation = self._file.perturbation()
        codes = _native.sides_at(self.problem.native, perturbation, np.ascontiguousarray(points), self._n_threads)
        return _native.answers_from(
            self.problem.native, perturbation, np.ascontiguousarray(points), codes, self._n_threads
        )
