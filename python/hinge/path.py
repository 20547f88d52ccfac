"""The entire regularisation path of the hinge in two costs."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from hinge import _checks, _cost_events, _native, _threads, _validate
from hinge._cost_file import CostPathFile, header
from hinge._cost_problem import CostProblem, Explored
from hinge._cost_ray import CostRay
from hinge._cost_surface import ScoreSurface, held_out
from hinge._durable import drafted, reading
from hinge._progress import announce
from hinge._warn import warn

logger = logging.getLogger("hinge")

ON_LIMIT = ("raise", "partial", "grid")


class PartialPathWarning(UserWarning):
    """Only a part of the plane was explored: queries outside of it are refused."""


class RegionLimitError(ValueError):
    """The plane has more regions than ``max_regions``; ``path`` holds the part explored."""

    def __init__(self, message: str, path: CostPath | CostPathFile):
        super().__init__(message)
        self.path = path


_ARRAYS = (
    "limit",
    "start",
    "parent",
    "entry",
    "layers",
    "first",
    "events",
    "beyond",
    "corner",
    "vertices",
    "perturbation",
)


class _Arrays(dict[str, Any]):
    """Arrays of a plane, each copied from the native object when it is first asked for."""

    def __init__(self, plane: Any):
        super().__init__()
        self.plane = plane

    def __missing__(self, name: str) -> Any:
        self[name] = array = self.plane.array(name)
        return array


class CostPath(Explored):
    """Every hinge-loss model that any pair of costs in a box gives, from :func:`cost_path`.

    The plane of ``(C+, C-)`` (cost of the second and of the first class) falls into convex facets within which the
    sets left of the margin, on it
    and right of it do not change, and weights and dual variables are affine in the costs.

    Attributes
    ----------
    box : tuple of float
        Limits of C+ and C-.
    n_facets, n_edges, n_vertices, n_layers : int
    vertices : ndarray of shape (n_vertices, 3), float64
        (C+, C-, 1), or a direction (C+, C-, 0) at infinity.
    first : ndarray of shape (n_facets + 1,)
        First edge of each facet in the arrays of edges; edges run counter-clockwise.
    corner : ndarray
        Vertex at which each edge starts.
    beyond : ndarray
        Facet beyond each edge; ``OUTSIDE`` at the border of the box, ``OPEN`` where it was not explored.
    events : ndarray
        Event of each edge: four times the row, plus 0 (left to margin), 1 (right to margin), 2 (margin to left), 3
        (margin to right); numbers from
        ``2**32 - 8`` on are sides of the box.
    parent, layer : ndarray of shape (n_facets,)
        Facet from which each was reached, and number of crossings from the start. Those of Wesierski et al.
        (section 3.1) also take in facets across a vertex: :meth:`layers_across_vertices`.
    special : ndarray
        Vertices around which facets do not close in rounding; empty in the regular case. (The special cases of
        Wesierski et al., section 3.1, are other things: events that coincide, which the perturbation takes apart.)
    ended_by : str
        ``"complete"``, ``"max_regions"``, ``"interrupt"``.
    stats : dict
        Work and checks: area of the facets, attempts, changes of sets, faults.

    Notes
    -----
    Facets are those of a problem whose right-hand sides are perturbed by about 1e-6 (more if the data need it), so
    that duplicates and contradictions
    do no harm. Solutions are not: each is taken back to the unperturbed problem, solved exactly there and certified.
    Polygons and error surfaces are
    therefore off by the perturbation, models are not.

    References
    ----------
    Wesierski et al.: Exploring the Entire Regularization Path for the Asymmetric Cost Linear Support Vector Machine,
    2016.
    """

    OUTSIDE = 2**32 - 1
    OPEN = 2**32 - 2

    def __init__(self, problem: CostProblem, plane: Any, found: dict[str, Any], n_threads: int):
        self.problem = problem
        self._plane = plane
        self._arrays = _Arrays(plane)
        self._n_threads = n_threads
        self.stats = found

    @property
    def box(self) -> tuple[float, float]:
        """Limits of C+ and C-."""
        return float(self._arrays["limit"][0]), float(self._arrays["limit"][1])

    @property
    def n_facets(self) -> int:
        """Number of closed facets."""
        return len(self._plane)

    @property
    def n_vertices(self) -> int:
        """Number of vertices."""
        return len(self._arrays["vertices"])

    @property
    def n_layers(self) -> int:
        """Number of layers of the exploration."""
        return len(self._arrays["layers"]) - 1

    @property
    def layer(self) -> np.ndarray:
        """Layer of each facet."""
        return np.repeat(np.arange(self.n_layers), np.diff(self._arrays["layers"].astype(np.int64)))

    def joint_events(self) -> tuple[np.ndarray, np.ndarray]:
        """The vertices at which two event paths cross, and which ones.

        An event path is the curve on which a row passes between the left and the margin, or between the margin and the
        right: its number is twice the row, plus 0 or 1. Vertices on an axis and on the border of the box are left out.

        Returns
        -------
        vertices : ndarray of shape (n,)
            Numbers of vertices, rising.
        paths : ndarray of shape (n, 2)
            The two event paths of each, the lower number first.

        Examples
        --------
        >>> from hinge import cost_path
        >>> from sklearn.datasets import make_classification
        >>> X, y = make_classification(n_samples=20, n_features=5, random_state=0)
        >>> path = cost_path(X, y, box=(1.0, 1.0))
        >>> vertices, paths = path.joint_events()
        >>> bool((paths[:, 0] < paths[:, 1]).all())
        True
        """
        return _cost_events.joint_events(self)

    def layers_across_vertices(self) -> np.ndarray:
        """Layer of each facet as Wesierski et al. (section 3.1) count them: a layer reaches over edges and vertices.

        :attr:`layer` counts crossings of edges only, and is at most twice as large.

        Returns
        -------
        ndarray of shape (n_facets,)

        Examples
        --------
        >>> from hinge import cost_path
        >>> from sklearn.datasets import make_classification
        >>> X, y = make_classification(n_samples=20, n_features=5, random_state=0)
        >>> path = cost_path(X, y, box=(1.0, 1.0))
        >>> bool((path.layers_across_vertices() <= path.layer).all())
        True
        """
        return _cost_events.layers(self)

    def __getattr__(self, name: str) -> np.ndarray:
        if name in ("vertices", "first", "corner", "beyond", "events", "parent"):
            return self._arrays[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        partial = f", partial ({self.ended_by})" if self.is_partial else ""
        return f"CostPath({self.n_facets} facets in {self.n_layers} layers, box {self.box}{partial})"

    def polygon(self, facet: int) -> np.ndarray:
        """Vertices of a facet, counter-clockwise, shape (n, 3)."""
        self._check_facet(facet)
        first = self._arrays["first"]
        return self._arrays["vertices"][self._arrays["corner"][first[facet] : first[facet + 1]]]

    def sets(self, facet: int) -> np.ndarray:
        """State of every row in a facet: 0 left of the margin, 1 on it, 2 right of it. Shape (n_samples,), uint8."""
        self._check_facet(facet)
        return self._plane.sides(int(facet))

    def facet(self, c_pos: Any, c_neg: Any) -> np.ndarray:
        """Number of the facet that holds each pair of costs, -1 outside of the explored part."""
        from hinge._cost_problem import costs

        points, shape = costs(c_pos, c_neg)
        return self._plane.locate(np.ascontiguousarray(points), self._n_threads).reshape(shape)

    def _check_facet(self, facet: int) -> None:
        if not 0 <= facet < self.n_facets:
            raise ValueError(f"facet must be at least 0 and below {self.n_facets}, got {facet}")

    def _answers(self, points: np.ndarray) -> dict[str, np.ndarray]:
        return self._plane.answers(self.problem.native, np.ascontiguousarray(points), self._n_threads)

    def along(self, begin: Sequence[float], end: Sequence[float]) -> CostRay:
        """The piecewise-linear path on the straight line between two points of the explored part.

        Parameters
        ----------
        begin, end : pairs of float
            (C+, C-) of both ends.

        Returns
        -------
        CostRay

        Raises
        ------
        ValueError
            An end is not in the explored part, or both are the same.
        """
        start, stop = _pair("begin", begin), _pair("end", end)
        if start == stop:
            raise ValueError(f"begin and end of the line are the same point {start}")
        (t, events), sides = self._plane.along(self.problem.native, start, stop, self._n_threads)
        return CostRay(
            self.problem,
            np.array(start),
            np.array(stop),
            t,
            events,
            sides,
            self._arrays["perturbation"],
            self._n_threads,
        )

    def score_surface(self, X: Any, y: Any) -> ScoreSurface:
        """Errors of held-out rows as an exact function over the box.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_rows, n_features)
        y : array-like of shape (n_rows,)
            Labels, each one of the two classes.

        Returns
        -------
        ScoreSurface

        Raises
        ------
        ValueError
            The box is infinite; a label is unknown; X has another number of features.
        """
        held, signs = held_out(self.problem.classes, X, y)
        if held.shape[1] != self.problem.X.shape[1]:
            raise ValueError(f"X has {held.shape[1]} features, the path was made from {self.problem.X.shape[1]}")
        native = self._plane.surface(self.problem.native, _validate.native_matrix(held), signs, self._n_threads)
        return ScoreSurface(native, signs)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw the facets coloured by layer, with vertices and event paths; needs matplotlib. Returns the axes.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a figure.
        **options
            ``vertices`` (True) and ``cmap`` ("viridis").
        """
        from hinge import _cost_plots

        return _cost_plots.facets(self, ax, **options)

    def plot_multiplier(self, row: int, ax: Any = None, **options: Any) -> Any:
        """Draw the surface of one row's dual variable over the plane (3-D axes); needs matplotlib. Returns the axes."""
        from hinge import _cost_plots

        return _cost_plots.multiplier(self, row, ax, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write plane and data to one file (NumPy's compressed format).

        A saved path at ``path`` is replaced as a whole, any other file is kept.

        Raises
        ------
        FileExistsError
            At ``path`` is something else.
        ValueError
            Class labels of dtype object.
        OSError
            The file cannot be written.
        """
        data: dict[str, Any] = dict(self.problem.arrays())
        plane: dict[str, Any] = {f"plane_{key}": self._plane.array(key) for key in _ARRAYS}
        plane["plane_end"] = np.asarray(self._plane.end)
        stats: dict[str, Any] = {f"stats_{key}": np.asarray(value) for key, value in self.stats.items()}
        with drafted(path, "saved_plane") as file:
            np.savez_compressed(file, format=np.array(1), **data, **plane, **stats)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, n_jobs: int | None = None) -> Self:
        """Read what :meth:`save` wrote.

        Raises
        ------
        ValueError
            The file is not such a file, or damaged.
        OSError
            It cannot be opened.
        """
        threads = _threads.threads(n_jobs)
        with open(path, "rb") as raw, reading(os.fspath(path), "a saved cost path"):
            with np.load(raw, allow_pickle=False) as file:
                arrays = dict(file)
            if int(arrays["format"]) != 1:
                raise ValueError(f"its format is {int(arrays['format'])}, this version reads 1")
            problem = CostProblem.from_arrays(arrays)
            plane = {key.removeprefix("plane_"): value for key, value in arrays.items() if key.startswith("plane_")}
            plane["end"], plane["vertices"] = str(plane["end"]), plane["vertices"].ravel()
            stats = {key.removeprefix("stats_"): value for key, value in arrays.items() if key.startswith("stats_")}
            stats = {key: value.item() if value.ndim == 0 else value for key, value in stats.items()}
            return cls(problem, _native.Plane.from_arrays(plane), stats, threads)


def _pair(name: str, value: Any) -> tuple[float, float]:
    try:
        first, second = (float(number) for number in value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a pair of numbers, got {value!r}") from None
    if math.isnan(first) or math.isnan(second):
        raise ValueError(f"{name} must be a pair of numbers, got {value!r}")
    return first, second


def cost_path(
    X: Any,
    y: Any,
    *,
    box: Sequence[float] = (1.0, 1.0),
    start: Sequence[float] | None = None,
    ray: Sequence[float] | None = None,
    intercept_scaling: float | None = 1.0,
    max_regions: int = _native.DEFAULT_MAX_REGIONS,
    file: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: Any = None,
    on_limit: str = "raise",
    verbose: int = 0,
) -> Any:
    r"""Every linear SVM that any pair of class costs gives, exactly.

    Minimises, for every :math:`(C_+, C_-)` in the box at once,

    .. math:: \tfrac12 \|w\|^2 + C_+ \sum_{y_i=+} \max(0, 1 - w \cdot x_i) + C_- \sum_{y_i=-} \max(0, 1 + w \cdot x_i),

    by exploring the plane facet by facet (Wesierski et al. 2016), layer after layer from the start.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
        Labels of two classes; the second in sorted order is positive.
    box : pair of float, default=(1.0, 1.0)
        Largest C+ and C-; ``inf`` for no limit.
    start : pair of float, default=None
        Costs at which the exploration starts (layer 0), or a ray begins; the sets there come from a certified fit.
        None is the origin.
    ray : pair of float, default=None
        Walk only the line from ``start`` in this direction, to the border of the box: for thousands of rows. ``(1, 1)``
        from the origin is the classical path in C.
    intercept_scaling : float or None, default=1.0
        Height of the constant column whose weight is the intercept (penalised like every weight); None for no
        intercept.
    max_regions : int, default=5_000_000
        Largest number of facets. They grow quickly with the rows: :func:`estimate_regions` tells beforehand about how
        many there will be.
    file : path, default=None
        Write the layers to this file as they close, and keep only the last ones in memory; for planes that do not fit.
        A plane there is replaced when the exploration has ended, any other file is kept.
    n_jobs : int, default=None
        Threads; None means all usable cores. Results have the same bits for any number.
    random_state : int, RandomState or None, default=None
        Seed of the perturbation; None is a fixed seed.
    on_limit : {"raise", "partial", "grid"}, default="raise"
        At ``max_regions``: raise :class:`RegionLimitError` (its ``path`` holds the part explored), return that part
        with a
        :class:`PartialPathWarning`, or return a :class:`CostGrid`, whose queries are certified fits.
    verbose : int, default=0
        Progress on standard error if above 0; the logger ``hinge`` gets it at level INFO anyway.

    Returns
    -------
    CostPath, CostRay with ``ray``, CostPathFile with ``file``, or CostGrid

    Raises
    ------
    ValueError
        Unusable parameters or input; the message names the value, its place and what would be accepted.
    RegionLimitError
        The plane has more than ``max_regions`` facets.
    FileExistsError
        There is a file at ``file`` that is no cost-plane file; it is left as it is.

    Warns
    -----
    PartialPathWarning
        Ctrl-C or ``on_limit="partial"``: the part explored so far is returned.

    References
    ----------
    Wesierski et al.: Exploring the Entire Regularization Path for the Asymmetric Cost Linear Support Vector Machine,
    2016.

    Examples
    --------
    >>> import hinge
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=40, n_features=5, weights=[0.8], random_state=0)
    >>> path = hinge.cost_path(X, y, box=(10, 10))
    >>> path.is_partial
    False
    >>> model = path.estimator(4.0, 1.0)
    >>> bool(model.certificate_.relative_gap[0] <= 1e-9)
    True
    """
    _checks.whole("max_regions", max_regions, 1)
    _checks.choice("on_limit", on_limit, ON_LIMIT)
    _checks.verbosity("verbose", verbose)
    limit = _pair("box", box)
    if min(limit) <= 0:
        raise ValueError(f"box must hold two numbers above 0, got {limit}")
    n_threads, seed = _threads.threads(n_jobs), _validate.seed(random_state)
    problem = CostProblem.of(X, y, intercept_scaling)
    report = _reporter(verbose)
    begin = None if start is None else _pair("start", start)
    if ray is not None:
        if file is not None:
            raise ValueError("file has no meaning for a ray, which fits in memory")
        return _walk(problem, begin or (0.0, 0.0), _pair("ray", ray), limit, n_threads, seed, report)
    if report is not None and all(map(math.isfinite, limit)):
        expected = _expected(problem, limit, seed)
        announce(verbose, f"cost path: {expected} facets expected, at most {max_regions} allowed")
    call = (problem.native, limit, begin, int(max_regions), seed, n_threads)
    path: CostPath | CostPathFile
    if file is None:
        path = CostPath(problem, *_native.explore_plane(*call, progress=report), n_threads)
    else:
        _native.explore_to_file(*call, os.fspath(file), header(problem), progress=report)
        path = CostPathFile(file, n_jobs=n_jobs)
    if path.ended_by == "max_regions":
        return _at_limit(path, int(max_regions), on_limit, seed)
    if path.ended_by == "interrupt":
        warn(f"interrupted after {path.n_facets} facets: {_closed(path)}", PartialPathWarning)
    elif path.is_partial:
        raise RuntimeError(
            "facets overlap for every perturbation tried: the data are beyond double precision, scale them"
        )
    return path


def estimate_regions(
    X: Any,
    y: Any,
    *,
    box: Sequence[float] = (1.0, 1.0),
    intercept_scaling: float | None = 1.0,
    random_state: Any = None,
) -> float:
    """About how many facets :func:`cost_path` will find, from a few straight lines through the plane.

    The lines are walked exactly; the number of facets goes with the product of the events on lines that cross. On
    known planes the estimate is within a factor of four either way for data with several features, and several
    times too large where all rows lie on one line.

    Parameters
    ----------
    X, y, box, intercept_scaling, random_state
        As in :func:`cost_path`; the box is finite.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        Unusable parameters or input.
    RuntimeError
        A line could not be walked to its end in double precision.

    Examples
    --------
    >>> import hinge
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(n_samples=40, n_features=5, weights=[0.8], random_state=0)
    >>> known = hinge.cost_path(X, y, box=(10, 10)).n_facets
    >>> 1 / 4 < hinge.estimate_regions(X, y, box=(10, 10)) / known < 4
    True
    """
    problem = CostProblem.of(X, y, intercept_scaling)
    return float(_native.estimate_facets(problem.native, _pair("box", box), _validate.seed(random_state)))


def _expected(problem: CostProblem, box: tuple[float, float], seed: int) -> str:
    """The estimated number of facets in words; an estimate that fails must not take the plane with it."""
    try:
        return f"about {_native.estimate_facets(problem.native, box, seed):.2g}"
    except RuntimeError as error:
        logger.info("no estimate of the number of facets: %s", error)
        return "an unknown number of"


def _closed(path: CostPath | CostPathFile) -> str:
    total = path.box[0] * path.box[1]
    share = f", {path.stats['area'] / total:.2%} of the box" if math.isfinite(total) else ""
    return f"{path.n_layers} layers closed{share}"


def _at_limit(path: CostPath | CostPathFile, max_regions: int, on_limit: str, seed: int) -> Any:
    text = f"the plane has more than max_regions = {max_regions} facets ({_closed(path)}"
    if all(map(math.isfinite, path.box)):
        text += f"; {_expected(path.problem, path.box, seed)} in all"
    text += ")"
    if on_limit == "partial":
        warn(text, PartialPathWarning)
        return path
    if on_limit == "grid":
        from hinge._cost_grid import CostGrid

        logger.info("%s: falling back to a grid of certified fits", text)
        return CostGrid(path.problem, path.box, n_threads=path._n_threads)
    raise RegionLimitError(
        f"{text}: take fewer rows, a smaller box or a larger max_regions; or walk one ray, or set on_limit='partial' "
        "or 'grid'",
        path,
    )


def _walk(
    problem: CostProblem,
    begin: tuple[float, float],
    ray: tuple[float, float],
    limit: tuple[float, float],
    n_threads: int,
    seed: int,
    report: Any,
) -> CostRay:
    if min(ray) <= 0 or not all(map(math.isfinite, ray)):
        raise ValueError(f"ray must hold two finite numbers above 0, got {ray}")
    length = min((limit[k] - begin[k]) / ray[k] for k in range(2))
    if not math.isfinite(length):
        raise ValueError("a ray needs a finite box to end at")
    if begin != (0.0, 0.0) and not (min(begin) > 0 and length > 0):
        raise ValueError(f"start must be a point of the box off its border, got {begin}")
    end = (begin[0] + ray[0] * length, begin[1] + ray[1] * length)
    (t, events), sides, perturbation = _native.walk_ray(problem.native, begin, end, seed, progress=report)
    return CostRay(problem, np.array(begin), np.array(end), t, events, sides, perturbation, n_threads)


def _reporter(verbose: int) -> Any:
    """Progress of an exploration: facets and what is left of the area, or events of a ray."""
    if not verbose and not logger.isEnabledFor(logging.INFO):
        return None
    import time

    last = 0.0

    def report(what: str, count: int, left: float) -> None:
        nonlocal last
        if time.monotonic() - last < 0.5:
            return
        last = time.monotonic()
        unit = "facets" if what == "cost path" else "events"
        announce(verbose, f"{what}: {count} {unit}, {1 - left:.1%} done")

    return report
