"""The golden cases by name: what is computed, shared by the maker of the record and the test.

A case takes a number of threads and a :class:`Shelf` of golden files. Most have a record of their own; a case that goes
on from a file repeats the record of the one that did the same without it.
"""

from __future__ import annotations

import json
import pickle
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import hinge
import numpy as np
import scipy.sparse as sp
from files import (
    CACHE,
    CALIBRATED,
    CHECKPOINTS,
    HOLDS_SKLEARN,
    JOURNALS,
    KEPT,
    LOGISTIC,
    MODELS,
    SAVED,
    TABLE,
    WRITTEN_BY,
    Shelf,
    label_matrix,
    more,
    plane,
    search,
    stored_fit,
    table_model,
)
from inputs import LAYOUTS, folds, rows, weights
from outcome import Outcome, of_model, of_search, of_stream
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning


@dataclass(frozen=True)
class Case:
    """One computation.

    Attributes
    ----------
    run : callable
        From the number of threads and a shelf to the outcome.
    repeats : str or None
        The case whose record it must repeat, if not its own.
    uses_library : bool
        Whether its bits depend on functions of the C library.
    may_change : str
        Why its bits may change on purpose before long; empty for nearly all.
    is_fitted_elsewhere : bool
        Whether SciPy or scikit-learn fitted a part of it: other versions may end elsewhere.
    version : str or None
        The version of the package that the case belongs to; all others refuse its file.
    n_threads : tuple of int
        Numbers of threads that it is to be run with.
    """

    run: Callable[[int, Shelf], Outcome]
    repeats: str | None = None
    uses_library: bool = False
    may_change: str = ""
    is_fitted_elsewhere: bool = False
    version: str | None = None
    n_threads: tuple[int, ...] = (1, 2)


Named = Iterator[tuple[str, Case]]

INTERCEPTS: dict[str, dict[str, Any]] = {
    "none": {"fit_intercept": False},
    "free": {},
    "penalised": {"intercept_scaling": 2.0},
}

SOLVERS = {
    "hinge": ("dual_cd", "dual_cd_permuted", "dual_cd_online", "newton", "cutting_plane", "auto"),
    "squared_hinge": ("dual_cd", "dual_cd_permuted", "dual_cd_online", "newton", "primal_cd", "auto"),
    "logistic": ("dual_cd", "dual_cd_permuted", "dual_cd_online", "newton", "auto"),
}

FREE_CRAMMER_SINGER = "a better treatment of the free intercepts of Crammer-Singer changes them"
# Whose fits end elsewhere, or by another dual point, than when their files were written: with records of their own.
ENDED_ELSEWHERE = (
    "LinearSVC",
    "LinearSVC classes",
    "LinearSVC labels",
    "LinearSVC presolve",
    "LinearSVC sparse_coef",
    "LinearSVCCV",
    "LinearSVCCV sigmoid",
    "LinearSVCCV temperature",
    "LinearSVCCV threshold",
    "LogisticRegression",
    "LogisticRegression labels",
    "LogisticRegression stream",
    "LogisticRegressionCV",
    "SubgradientSVC",
    "logistic",  # the checkpoint
)
UNCHANGED = "a search that looks further before it keeps a solution for a larger C changes them"


def estimator(loss: str, **parameters: Any) -> Any:
    """The estimator of a loss."""
    if loss == "logistic":
        return hinge.LogisticRegression(**({"multi_class": "ovr"} | parameters))
    return hinge.LinearSVC(loss=loss, **parameters)


def _uses_library(loss: str, parameters: dict[str, Any]) -> bool:
    """Whether it is, or may be, a dual fit of the logistic loss."""
    return loss == "logistic" and parameters.get("solver") != "newton"


def _fit(
    data: str,
    loss: str = "squared_hinge",
    *,
    layout: str | None = None,
    weighted: bool = False,
    may_change: str = "",
    **parameters: Any,
) -> Case:
    """A fit of a set in some layout."""

    def run(n_jobs: int, _: Shelf) -> Outcome:
        X, y = rows(data)
        X = X if layout is None else LAYOUTS[layout](X)
        weight = weights(len(y)) if weighted else None
        return of_model(estimator(loss, n_jobs=n_jobs, **({"C": 0.5} | parameters)).fit(X, y, weight))

    return Case(run, uses_library=_uses_library(loss, parameters), may_change=may_change)


def _stopped(case: Case) -> Case:
    """A fit that ends at ``max_iter``."""

    def run(n_jobs: int, shelf: Shelf) -> Outcome:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return case.run(n_jobs, shelf)

    return replace(case, run=run)


# ---- fits in memory


def _solvers() -> Named:
    """Every solver, loss and intercept."""
    for loss, solvers in SOLVERS.items():
        for solver in solvers:
            for intercept, given in INTERCEPTS.items():
                yield f"fit/{loss}/{solver}/{intercept}", _fit("usual", loss, layout="csr32f32", solver=solver, **given)
            yield (
                f"fit/{loss}/{solver}/weighted",
                _fit("small", loss, solver=solver, weighted=True, class_weight={0: 1.0, 1: 3.0}),
            )
        yield f"fit/{loss}/tight", _fit("usual", loss, solver="dual_cd", C=1.0, tol=1e-6)
    for loss in ("logistic", "squared_hinge", "modified_huber"):
        for intercept, given in INTERCEPTS.items():
            yield f"fit/penalised/{loss}/{intercept}", _fit("usual", loss, penalty="l1", C=0.1, **given)
        elastic = {"penalty": "elasticnet", "l1_ratio": 0.5, "bounds": (-0.2, 0.3)}
        yield f"fit/penalised/{loss}/elastic", _fit("small", loss, weighted=True, **elastic)


def _layouts() -> Named:
    """Every layout of rows, under coordinate descent and Newton."""
    pairs = (("hinge", "dual_cd"), ("squared_hinge", "dual_cd"), ("logistic", "newton"), ("hinge", "newton"))
    for loss, solver in pairs:
        for layout in ("csr32f64", "csr64f32", "csr64f64"):
            yield f"layout/{layout}/{loss}/{solver}", _fit("usual", loss, layout=layout, solver=solver)
        for layout in ("dense32", "dense64"):
            yield f"layout/{layout}/{loss}/{solver}", _fit("dense", loss, layout=layout, solver=solver)
        for data in ("binary", "uniform"):
            C = 0.2 if data == "binary" else 20.0
            yield f"layout/{data}/{loss}/{solver}", _fit(data, loss, layout="csr32f32", solver=solver, C=C)
        for layout in ("csr32f32", "csr32f64", "csr64f64"):
            case = _fit("twins", loss, layout=layout, solver=solver, presolve=True)
            yield f"layout/presolved-{layout}/{loss}/{solver}", case
    yield "layout/presolved-logistic", _fit("twins", "logistic", solver="dual_cd", presolve=True, tol=1e-6)
    for solver in ("dual_cd", "newton"):
        yield f"layout/unsorted/{solver}", Case(partial(_unsorted, solver))


def _unsorted(solver: str, n_jobs: int, _: Shelf) -> Outcome:
    """Columns fall within each row; the first entry comes in two halves."""
    X, y = rows("small")
    parts = [(X.indices[a:b][::-1], X.data[a:b][::-1]) for a, b in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
    columns = [np.append(j, j[0]) for j, _ in parts]
    values = [np.append(np.concatenate([v[:1] / 2, v[1:]]), v[0] / 2) for _, v in parts]
    indptr = np.cumsum([0, *map(len, columns)])
    messy = sp.csr_matrix((np.concatenate(values), np.concatenate(columns), indptr), X.shape)
    return of_model(hinge.LinearSVC(C=0.5, solver=solver, n_jobs=n_jobs).fit(messy, y))


def _shapes() -> Named:
    """What "auto" and the parallel passes make of other shapes, and several classes."""
    for loss in SOLVERS:
        for data in ("small", "wide"):
            yield f"shape/{data}/{loss}", _fit(data, loss, layout="csr32f32")
        yield f"shape/tall/{loss}", _fit("tall", loss, layout="csr32f32", C=0.1)
        yield f"shape/dense/{loss}", _fit("dense", loss, layout="dense64", tol=1e-8)
        yield f"classes/{loss}", _fit("classes", loss, weighted=True, class_weight={1: 2.0, 4: 0.5})
    yield "classes/balanced", _fit("classes", "hinge", weighted=True, class_weight="balanced")
    yield "classes/newton", _fit("classes", "logistic", solver="newton", intercept_scaling=1.0)
    yield "classes/presolve", _fit("classes", "hinge", presolve=True, solver="dual_cd")
    yield "stopped/dual_cd", _stopped(_fit("usual", "hinge", solver="dual_cd", max_iter=3))
    yield "stopped/newton", _stopped(_fit("dense", "logistic", solver="newton", max_iter=2, tol=1e-9, C=1.0))
    yield "seed", _fit("usual", "hinge", solver="dual_cd", random_state=7)


def _crammer_singer() -> Named:
    given: dict[str, Any] = {"multi_class": "crammer_singer", "C": 0.1}
    for intercept, more_given in INTERCEPTS.items():
        note = FREE_CRAMMER_SINGER if intercept == "free" else ""
        yield f"crammer_singer/{intercept}", _fit("classes", may_change=note, **given, **more_given)
    yield "crammer_singer/many", _fit("many", **given, fit_intercept=False)
    yield "crammer_singer/two", _fit("usual", layout="csr32f32", **given, fit_intercept=False)
    yield "crammer_singer/weighted", _fit("classes", weighted=True, **given, fit_intercept=False, class_weight={1: 2.0})
    yield "crammer_singer/presolve", _fit("classes", **given, intercept_scaling=1.0, presolve=True, tol=1e-6)
    yield "crammer_singer/binary", _fit("binary", layout="csr32f32", **given, fit_intercept=False)
    yield "crammer_singer/dense", _fit("dense", layout="dense32", **given, fit_intercept=False)
    yield "crammer_singer/stopped", _stopped(_fit("classes", **given, fit_intercept=False, max_iter=2, tol=1e-9))


def _labels() -> Named:
    def case(loss: str, n_labels: int, **parameters: Any) -> Case:
        def run(n_jobs: int, _: Shelf) -> Outcome:
            X = rows("usual").X
            Y = label_matrix(X.shape[0], n_labels, 701)
            return of_model(estimator(loss, C=0.1, n_jobs=n_jobs, **parameters).fit(X, Y))

        return Case(run, uses_library=_uses_library(loss, parameters))

    yield "labels/hinge", case("hinge", 6, solver="dual_cd")
    yield "labels/logistic", case("logistic", 6)
    yield "labels/sparse", case("squared_hinge", 12, sparse_coef=True)
    yield "labels/sparse-all", case("hinge", 12, sparse_coef=True, sparse_tol=0.0)
    yield "labels/sparse-classes", _fit("many", "hinge", sparse_coef=True, sparse_tol=0.05)


def _pairs() -> Named:
    """Products of two features."""
    for loss, solver in (("hinge", "dual_cd"), ("squared_hinge", "newton"), ("logistic", "dual_cd")):
        yield f"degree2/{loss}", _fit("pairs", loss, C=0.1, solver=solver, degree=2)
        yield f"degree2/scaled/{loss}", _fit("pairs", loss, C=0.1, degree=2, gamma=0.5, intercept_scaling=1.0)
    yield "degree2/hashed", _fit("hashed", C=0.02, degree=2, hash_bits=12, random_state=5, layout="csr32f32")
    yield "degree2/binary", _fit("stored binary", "hinge", C=0.02, degree=2, hash_bits=12, solver="dual_cd")


def _descents() -> Named:
    """Subgradient methods."""

    def fit(make: Callable[..., Any], data: str, *, weighted: bool = False, **parameters: Any) -> Case:
        def run(n_jobs: int, _: Shelf) -> Outcome:
            X, y = rows(data)
            model = make(n_jobs=n_jobs, **parameters)
            return of_model(model.fit(X, y, weights(len(y)) if weighted else None))

        return Case(run)

    pegasos, descent = hinge.PegasosClassifier, hinge.SubgradientSVC
    yield "pegasos", fit(pegasos, "usual", lam=0.01, tol=0.02)
    yield "pegasos/weighted", fit(pegasos, "usual", weighted=True, lam=0.01, tol=0.02, fit_intercept=False)
    yield (
        "pegasos/batch",
        fit(pegasos, "usual", lam=0.01, tol=0.02, batch_size=16, average="all", intercept_scaling=1.0),
    )
    yield "pegasos/classes", fit(pegasos, "classes", lam=0.02, tol=0.05, loss="squared_hinge")
    yield "pegasos/logistic", fit(pegasos, "usual", lam=0.02, tol=0.005, loss="logistic", eta="root", average="none")
    yield "subgradient", fit(descent, "small", C=0.1, tol=0.02, max_iter=5000)
    yield "subgradient/logistic", fit(descent, "small", C=0.1, loss="logistic", tol=0.01, max_iter=5000)
    yield (
        "subgradient/batch",
        fit(descent, "usual", C=0.001, loss="squared_hinge", batch_size=100, tol=0.01, projection=True, max_iter=5000),
    )
    yield "subgradient/presolve", fit(descent, "twins", C=0.001, tol=0.05, presolve=True, max_iter=5000)


# ---- searches


def _searches() -> Named:
    plain: dict[str, Any] = {"Cs": 2.0 ** np.arange(-6, 3, 2), "keep_decisions": True}

    def case(data: str, loss: str, *, may_change: str = "", weighted: bool = False, **given: Any) -> Case:
        def run(n_jobs: int, _: Shelf) -> Outcome:
            X, y = rows(data)
            weight = weights(len(y)) if weighted else None
            options = {"cv": folds(len(y), 3)} | plain | given
            return of_search(hinge.select_C(X, y, loss=loss, n_jobs=n_jobs, sample_weight=weight, **options))

        return Case(run, uses_library=_uses_library(loss, given), may_change=may_change)

    for loss in SOLVERS:
        for intercept, given in INTERCEPTS.items():
            yield f"search/newton/{loss}/{intercept}", case("small", loss, solver="newton", **given)
            yield f"search/dual_cd/{loss}/{intercept}", case("small", loss, solver="dual_cd", **given)
        yield f"search/auto/{loss}", case("wide", loss, Cs=2.0 ** np.arange(-6, 1), refine=2, tol=1e-3)
    # The rows are told apart: larger values of C change nothing.
    yield "search/unchanged", case("wide", "hinge", Cs=[1.0, 8.0, 64.0, 512.0], may_change=UNCHANGED)
    # Fifteen lanes: groups of eight.
    yield "search/classes/newton", case("classes", "logistic", solver="newton", multi_class="ovr")
    yield "search/classes/dual_cd", case("classes", "squared_hinge", solver="dual_cd", weighted=True)
    yield "search/large", case("usual", "logistic", keep_decisions=True)
    yield "search/dense", case("dense", "squared_hinge", solver="newton", Cs=[0.01, 0.1])
    yield "search/presolve/newton", case("twins", "squared_hinge", solver="newton", presolve=True)
    yield "search/presolve/dual_cd", case("twins", "hinge", solver="dual_cd", presolve=True, Cs=[0.01, 0.1, 1.0])
    yield "search/binary", case("binary", "hinge", solver="dual_cd", Cs=[0.01, 0.1])
    yield "search/degree2", case("pairs", "squared_hinge", solver="dual_cd", degree=2, gamma=0.5)
    yield "search/range", case("small", "logistic", Cs=None, C_max=4.0, ratio=3.0)
    overlapping = [folds(300, 3)[0], folds(300, 4)[1], folds(300, 5)[2]]
    yield "search/overlapping", case("small", "squared_hinge", cv=overlapping, solver="dual_cd")
    crammer_singer: dict[str, Any] = {"multi_class": "crammer_singer", "Cs": [0.01, 0.1]}
    yield "search/crammer_singer", case("classes", "hinge", fit_intercept=False, **crammer_singer)
    yield "search/crammer_singer/free", case("classes", "hinge", may_change=FREE_CRAMMER_SINGER, **crammer_singer)
    for solver in ("newton", "dual_cd"):
        yield f"search/multinomial/{solver}", case("classes", "logistic", solver=solver, multi_class="multinomial")
    for loss in ("logistic", "squared_hinge"):
        yield f"search/penalised/{loss}", case("small", loss, penalty="l1", Cs=[0.01, 0.1, 1.0])
    for kind in JOURNALS:
        yield f"search/of-journal/{kind}", Case(partial(_searched, kind))
    for loss, make in (("squared_hinge", hinge.LinearSVCCV), ("logistic", hinge.LogisticRegressionCV)):
        yield f"search/refit/{loss}", Case(partial(_refitted, make))


def _searched(kind: str, n_jobs: int, shelf: Shelf) -> Outcome:
    return of_search(search(kind, shelf, n_jobs=n_jobs))


def _refitted(make: Callable[..., Any], n_jobs: int, _: Shelf) -> Outcome:
    X, y = rows("small")
    model = make(Cs=[0.01, 0.1, 1.0], cv=folds(300, 3), choose="one_se", n_jobs=n_jobs).fit(X, y)
    bits, near = of_model(model)
    return Outcome(bits | {"C_": model.C_}, near | {"mean": model.search_.mean})


# ---- streams


def _streams() -> Named:
    def case(data: str, loss: str, piece: int, **parameters: Any) -> Case:
        def run(n_jobs: int, _: Shelf) -> Outcome:
            X, y = rows(data)
            model = estimator(loss, C=0.1, n_jobs=n_jobs, **parameters)
            for k in range(0, len(y), piece):
                model.partial_fit(X[k : k + piece], y[k : k + piece], classes=np.unique(y))
            return of_stream(model)

        return Case(run, uses_library=loss == "logistic")

    bounded = {"memory_budget": 900_000, "block_options": CACHE}
    for loss in SOLVERS:
        yield f"stream/{loss}", case("usual", loss, 400, intercept_scaling=1.0)
        yield f"stream/bounded/{loss}", case("usual", loss, 300, fit_intercept=False, **bounded)
    yield (
        "stream/classes",
        case("classes", "hinge", 200, intercept_scaling=1.0, block_options=CACHE, memory_budget=1_760_000),
    )
    # The height of the constant column comes from a sum of squares, which is exact here.
    yield "stream/free", case("binary", "squared_hinge", 500, **bounded)
    yield "stream/after-a-fit", Case(_after_a_fit)
    yield "stream/pegasos", Case(_pegasos_stream)


def _after_a_fit(n_jobs: int, _: Shelf) -> Outcome:
    model = hinge.LinearSVC(C=0.1, intercept_scaling=1.0, n_jobs=n_jobs).fit(*more(0))
    return Outcome(of_stream(model.partial_fit(*more(1))).bits, {})


def _pegasos_stream(n_jobs: int, _: Shelf) -> Outcome:
    model = hinge.PegasosClassifier(0.01, n_jobs=n_jobs)
    for k in range(5):
        model.partial_fit(*more(k), classes=np.arange(5))
    return Outcome({"coef_": model.coef_, "intercept_": model.intercept_, "t_": model.t_}, {})


# ---- block stores


def _blocks() -> Named:
    """Fits and searches on the golden stores, out of core unless it says otherwise."""

    def fit(store: str, loss: str, memory: int, *, blocks: dict[str, Any] | None = None, **parameters: Any) -> Case:
        def run(n_jobs: int, shelf: Shelf) -> Outcome:
            options = {"in_memory": False} | CACHE | (blocks or {})
            given: dict[str, Any] = {"C": 0.1, "memory_budget": memory, "block_options": options} | parameters
            model = estimator(loss, n_jobs=n_jobs, **given).fit(shelf.store(store))
            assert set(model.certificate_.solver) == {"in_memory" if options["in_memory"] else "block_cd"}
            return of_model(model)

        note = FREE_CRAMMER_SINGER if parameters.get("multi_class") and parameters.get("fit_intercept", True) else ""
        return Case(run, uses_library=loss == "logistic", may_change=note)

    for name in CHECKPOINTS:
        note = FREE_CRAMMER_SINGER if name == "crammer_singer" else ""
        case = Case(partial(_whole, name), uses_library=name == "logistic", may_change=note)
        yield f"blocks/of-checkpoint/{name}", case
    for intercept, given in INTERCEPTS.items():
        yield f"blocks/squared_hinge/{intercept}", fit("two", "squared_hinge", 13_900_000, **given)
    for cache in ("auto", "projected", "steepest", "random", "none"):
        yield f"blocks/{cache}", fit("two", "hinge", 13_900_000, blocks={"cache": cache}, tol=1e-2)
    yield "blocks/duals-in-a-file", fit("binary", "hinge", 15_000_000, blocks={"duals": "file"})
    yield "blocks/logistic/classes", fit("classes", "logistic", 14_000_000, intercept_scaling=1.0)
    none = {"multi_class": "crammer_singer", "fit_intercept": False}
    yield "blocks/crammer_singer/none", fit("classes", "hinge", 14_200_000, **none)
    yield "blocks/degree2", fit("binary", "hinge", 14_600_000, degree=2, hash_bits=12, C=0.01)
    in_memory = {"in_memory": True}
    yield "blocks/in-memory/hinge", fit("two", "hinge", 10**9, blocks=in_memory, solver="dual_cd")
    yield "blocks/in-memory/classes", fit("classes", "squared_hinge", 10**9, blocks=in_memory)
    yield "blocks/in-memory/presolve", fit("binary", "hinge", 10**9, blocks=in_memory, presolve=True)
    yield "blocks/pegasos", Case(partial(_descent, hinge.PegasosClassifier(0.01, tol=0.03)))
    yield "blocks/subgradient", Case(partial(_descent, hinge.SubgradientSVC(0.01, tol=0.05, max_iter=3000)))
    for store, loss in (("two", "hinge"), ("binary", "logistic")):
        yield f"blocks/search/{loss}", Case(partial(_stored_search, store, loss), uses_library=loss == "logistic")


def _whole(name: str, n_jobs: int, shelf: Shelf) -> Outcome:
    return of_model(stored_fit(name, shelf, n_jobs))


def _descent(model: Any, n_jobs: int, shelf: Shelf) -> Outcome:
    return of_model(clone(model).set_params(n_jobs=n_jobs, memory_budget=14_300_000).fit(shelf.store("two")))


def _stored_search(name: str, loss: str, n_jobs: int, shelf: Shelf) -> Outcome:
    store = shelf.store(name)
    options: dict[str, Any] = {"memory_budget": 15_000_000, "n_jobs": n_jobs}
    options["block_options"] = {"in_memory": False} | CACHE
    splits = folds(len(store), 3)
    return of_search(hinge.select_C(store, loss=loss, Cs=[0.01, 0.1], cv=splits, keep_decisions=True, **options))


# ---- planes of two costs

ARRAYS = ("vertices", "first", "corner", "beyond", "events", "parent", "layer")


def _facets(path: Any) -> Outcome:
    """Every array of a plane, and solutions at some costs."""
    pos, neg = np.array([0.3, 2.5, 9.0, 4.0]), np.array([0.2, 7.0, 9.5, 1.0])
    bits = {name: getattr(path, name) for name in ARRAYS}
    return Outcome(
        bits | {"coef": path.coef(pos, neg), "intercept": path.intercept(pos, neg)},
        {"gap": 1.0 + path.certificate(pos, neg)["relative_gap"], "area": path.stats["area"]},
    )


def _answers(path: Any) -> Outcome:
    """Solutions of a plane that is in a file, and the facets of each layer."""
    pos, neg = np.array([0.3, 2.5, 9.0]), np.array([0.2, 7.0, 9.5])
    sizes = [len(layer["parent"]) for layer in path.layers()]
    bits = {"layers": sizes, "coef": path.coef(pos, neg), "intercept": path.intercept(pos, neg)}
    return Outcome(bits, {"area": path.stats["area"]})


def _ray(n_jobs: int, name: str, length: float, **given: Any) -> Outcome:
    X, y = rows(name)
    ray = hinge.cost_path(X, y, box=(length, length), ray=(1.0, 1.0), n_jobs=n_jobs, **given)
    found = ray.at(np.linspace(0.1, 1.0, 4))
    bits = {"t": ray.t, "rows": ray.rows, "to": ray.to, "coef": found["coef"], "intercept": found["intercept"]}
    return Outcome(bits, {"primal": found["primal"], "dual": found["dual"]})


def _planes() -> Named:
    yield "plane/in-memory", Case(lambda n_jobs, _: _facets(plane(n_jobs)))
    yield "plane/in-a-file", Case(lambda n_jobs, shelf: _answers(plane(n_jobs, file=shelf.new())))
    yield "plane/from-a-start", Case(lambda n_jobs, _: _facets(plane(n_jobs, start=(5.0, 5.0))))
    yield "plane/chosen", Case(_chosen)
    yield "plane/endless", Case(_endless, uses_library=True)
    yield "ray", Case(lambda n_jobs, _: _ray(n_jobs, "small", 0.5))
    yield "ray/no-intercept", Case(lambda n_jobs, _: _ray(n_jobs, "pairs", 0.05, intercept_scaling=None))


def _chosen(n_jobs: int, _: Shelf) -> Outcome:
    X, y = rows("plane")
    chosen = hinge.select_costs(X, y, cv=folds(len(y), 2), box=(3.0, 3.0), false_negative=2.0, n_jobs=n_jobs)
    return Outcome({"c_pos": chosen.c_pos, "c_neg": chosen.c_neg}, {"errors": [chosen.error, chosen.grid_error]})


def _endless(n_jobs: int, _: Shelf) -> Outcome:
    X, y = rows("plane")
    path = hinge.cost_path(X[:16], y[:16], box=(np.inf, np.inf), n_jobs=n_jobs)
    return Outcome({name: getattr(path, name) for name in ARRAYS}, {})


# ---- estimators, and what they do after pickling


def uses(model: Any) -> Outcome:
    """Predictions of an estimator, and one more piece of a stream."""
    if isinstance(model, hinge.Poly2Map):
        return Outcome({"map": model.transform(rows("pairs").X[:20]).toarray()}, {})
    X = rows({18: "pairs", 190: "twins", 80: "classes"}[model.n_features_in_]).X[:50]
    coef = model.coef_.toarray() if sp.issparse(model.coef_) else model.coef_
    bits: dict[str, Any] = {"coef_": coef, "intercept_": model.intercept_}
    near = {"decisions": model.decision_function(X), "predictions": _numbers(model, X)}
    if hasattr(model, "predict_proba"):
        near["probabilities"] = model.predict_proba(X)
    if hasattr(model, "search_"):
        near |= {"C_": model.C_, "mean": model.search_.mean}
    if hasattr(model, "certificate_"):
        near |= {"primal": model.certificate_.primal, "dual": model.certificate_.dual}
    if _streams_on(model):
        model.partial_fit(*more(3))
        bits["after one more piece"] = model.coef_
    return Outcome(bits, near)


def _numbers(model: Any, X: Any) -> np.ndarray:
    """Predictions as numbers."""
    predicted = model.predict(X)
    if sp.issparse(predicted) or predicted.ndim == 2:
        return predicted
    return np.searchsorted(model.classes_, predicted)


def _streams_on(model: Any) -> bool:
    """Whether it learns from the pieces of five classes."""
    return hasattr(model, "partial_fit") and len(model.classes_) == 5 and not _is_special(model)


def _is_special(model: Any) -> bool:
    return sp.issparse(model.coef_) or getattr(model, "multi_class", "ovr") != "ovr"


def _models() -> Named:
    for name, make in MODELS.items():
        given: dict[str, Any] = {"uses_library": name in LOGISTIC, "n_threads": (1,)}
        model, file = f"model/{name}", f"pickles/{name.replace(' ', '-')}"
        yield model, Case(partial(_made, make), is_fitted_elsewhere=name in CALIBRATED, **given)
        repeats = None if name in ENDED_ELSEWHERE else model
        case = Case(partial(_unpickled, file), repeats, is_fitted_elsewhere=name in HOLDS_SKLEARN, **given)
        yield f"file/{file}", case
    for name in SAVED:
        # A stream goes on from the weights in the file as if its rows were forgotten, and so has a record of its own.
        given = {"uses_library": name in LOGISTIC, "n_threads": (1,)}
        model = None if name.endswith("stream") or name in ENDED_ELSEWHERE else f"model/{name}"
        file = f"models/{name.replace(' ', '-')}"
        yield f"file/{file}", Case(partial(_loaded, name, file), model, **given)


def _made(make: Callable[[], Any], _: int, __: Shelf) -> Outcome:
    return uses(make())


def _unpickled(file: str, _: int, shelf: Shelf) -> Outcome:
    return uses(pickle.loads(shelf.copy(file).read_bytes()))


def _loaded(name: str, file: str, _: int, shelf: Shelf) -> Outcome:
    served = hinge.load(shelf.copy(file))
    model = served.to_estimator()
    X = rows({18: "pairs", 190: "twins", 80: "classes"}[model.n_features_in_]).X[:50]
    np.testing.assert_array_equal(served.decision_function(X), model.decision_function(X))
    assert served.metadata == {"case": name}
    return uses(model)


# ---- tables


def _tables() -> Named:
    for numbering in ("hashed", "counted"):
        yield f"table/{numbering}", Case(partial(_encoded, numbering), uses_library=True)
        case = Case(partial(_table_loaded, numbering), f"table/{numbering}", uses_library=True)
        yield f"file/tables/{numbering}", case


def _encoded(numbering: str, n_jobs: int, _: Shelf) -> Outcome:
    model = table_model(numbering)
    return _of_table(model[0].set_params(n_jobs=n_jobs), hinge.Predictor.of(model, n_threads=n_jobs))


def _table_loaded(numbering: str, n_jobs: int, shelf: Shelf) -> Outcome:
    served = hinge.load(shelf.copy(f"tables/{numbering}"), n_threads=n_jobs)
    assert served.metadata == {"case": numbering}
    return _of_table(served.to_estimator()[0].set_params(n_jobs=n_jobs), served)


def _of_table(encoder: Any, served: hinge.Predictor) -> Outcome:
    X = encoder.transform(TABLE)
    rows = [dict(zip(TABLE, row, strict=True)) for row in zip(*TABLE.values(), strict=True)]
    decisions = served.decision_function(rows)
    np.testing.assert_array_equal([served.decision_function(row) for row in rows], decisions)
    return Outcome({"indptr": X.indptr, "indices": X.indices, "data": X.data}, {"decisions": decisions})


# ---- other files that are gone on from


def _continued() -> Named:
    for kind in JOURNALS:
        yield f"file/journals/{kind}", Case(partial(_resumed, kind), f"search/of-journal/{kind}", version=WRITTEN_BY)
    for name in CHECKPOINTS:
        repeats = None if name in ENDED_ELSEWHERE else f"blocks/of-checkpoint/{name}"
        case = Case(partial(_gone_on, name), repeats, version=WRITTEN_BY)
        yield f"file/checkpoints/{name}", case
    yield "file/planes/saved", Case(lambda n_jobs, shelf: _facets(_saved(n_jobs, shelf)), "plane/in-memory")
    yield "file/planes/streamed", Case(lambda n_jobs, shelf: _answers(_streamed(n_jobs, shelf)), "plane/in-a-file")
    loaded = Case(lambda n_jobs, shelf: _facets(_streamed(n_jobs, shelf).load()), "plane/in-memory")
    yield "file/planes/streamed-and-loaded", loaded


def _saved(n_jobs: int, shelf: Shelf) -> hinge.CostPath:
    return hinge.CostPath.load(shelf.copy("planes/saved"), n_jobs=n_jobs)


def _streamed(n_jobs: int, shelf: Shelf) -> hinge.CostPathFile:
    return hinge.CostPathFile(shelf.copy("planes/streamed"), n_jobs=n_jobs)


def _resumed(kind: str, n_jobs: int, shelf: Shelf) -> Outcome:
    found = search(kind, shelf, resume=shelf.copy(f"journals/{kind}"), n_jobs=n_jobs)
    assert found.replayed.sum() == KEPT, f"{found.replayed.sum()} values of C are from the journal, not {KEPT}"
    return of_search(found)


def _gone_on(name: str, n_jobs: int, shelf: Shelf) -> Outcome:
    path = shelf.copy(f"checkpoints/{name}")
    before = _position(path)
    # The first step after the start is written, no other one.
    model = stored_fit(name, shelf, n_jobs, seconds=1e9, checkpoint=path)
    after = _position(path)
    assert after > before > (0, 0), f"the fit went on at {after}, the checkpoint ends at {before}"
    return of_model(model)


def _position(checkpoint: Path) -> tuple[int, int]:
    """Pass and step that a checkpoint holds, from its head."""
    content = checkpoint.read_bytes()
    head = json.loads(content[24 : 24 + int.from_bytes(content[16:24], "little")])
    return head["position"]["pass"], head["position"]["step"]


CASES: dict[str, Case] = {
    name: case
    for part in (
        _solvers,
        _layouts,
        _shapes,
        _crammer_singer,
        _labels,
        _pairs,
        _descents,
        _searches,
        _streams,
        _blocks,
        _planes,
        _models,
        _tables,
        _continued,
    )
    for name, case in part()
}
