"""``hinge train``: LIBLINEAR's ``train``, with a certificate."""

from __future__ import annotations

import math
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from hinge._commands import letters, rows
from hinge._commands.model_files import save
from hinge._commands.plan import OPTIONS, Plan
from hinge._progress import show
from hinge.blocks import BlockStore
from hinge.logistic import LogisticRegression
from hinge.select import select_C
from hinge.svm import LinearSVC

USAGE = "hinge train [options] DATA [MODEL]\n       hinge train [options] --model MODEL DATA ..."
ABOUT = (
    "Trains a classifier with the options, files and output of LIBLINEAR's train, and proves how close it is to the "
    "optimum. DATA are lines of 'label index:value ...', plain or compressed by gzip, bzip2 or zstd; - is standard "
    "input. With --label they are tables. MODEL is DATA.model in the folder at hand if it is not given."
)


def main(arguments: Sequence[str]) -> None:
    """Train, or cross-validate, or search for C."""
    if "--help" in arguments or "-h" in arguments:
        print(letters.help_text(USAGE, ABOUT, OPTIONS))
        return
    given, files = letters.read(arguments, OPTIONS, "train")
    plan = Plan.of(given, files)
    if plan.searches and "solver" not in given:
        print("Solver not specified. Using -s 2", file=sys.stderr)
    with _warnings_as_lines(), rows.opened(plan) as (X, y):
        plan.parameters["class_weight"] = _known_weights(plan, X, y)
        if plan.searches:
            _find_C(plan, X, y)
        elif plan.n_folds is not None:
            _cross_validate(plan, X, y)
        else:
            _train(plan, X, y)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Warnings as one line each on standard error."""

    def line(message: Any, *_: Any, **__: Any) -> None:
        print(f"hinge: warning: {' '.join(str(message).split())}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning)
        warnings.showwarning = line
        yield


def _known_weights(plan: Plan, X: Any, y: Any) -> dict[int, float] | None:
    """The weights of classes that occur."""
    weights = plan.parameters["class_weight"]
    if weights is None:
        return None
    known = set(X.info()["classes"] if isinstance(X, BlockStore) else np.unique(y).tolist())
    for label in weights.keys() - known:
        print(f"WARNING: class label {label} specified in weight is not found", file=sys.stderr)
    return {label: weight for label, weight in weights.items() if label in known} or None


def _estimator(plan: Plan) -> Any:
    kind = LogisticRegression if plan.solver.loss == "logistic" else LinearSVC
    verbose = int(not plan.is_quiet)
    return kind(C=1.0 if plan.C is None else plan.C, tol=plan.tol, verbose=verbose, **plan.parameters)


def _train(plan: Plan, X: Any, y: Any) -> None:
    model, started = _estimator(plan), time.monotonic()
    if isinstance(X, BlockStore) and "resume" in plan.given:
        model.set_params(checkpoint=plan.given["resume"])
    model.fit(X, y)
    if not plan.is_quiet:
        _summarise(plan, X, model, time.monotonic() - started)
    if plan.encoder is not None:
        _save_pipeline(plan, model)
        return
    order = rows.label_order(X, y) if plan.format == "liblinear" else None
    save(model, plan.model, plan.format, solver=plan.solver.name, labels=order, overwrite="force" in plan.given)


def _save_pipeline(plan: Plan, model: Any) -> None:
    """Write encoder and model to one file, which knows the column of labels."""
    from sklearn.pipeline import make_pipeline

    from hinge.serving import save as save_model

    pipeline = make_pipeline(plan.encoder, model)
    save_model(pipeline, plan.model, metadata={"label": plan.label}, overwrite="force" in plan.given)


def _summarise(plan: Plan, X: Any, model: Any, seconds: float) -> None:
    """Say what was fitted and what is proved of it."""
    found = model.certificate_
    n_rows, n_features = (X.info()["n_rows"], X.n_features) if isinstance(X, BlockStore) else X.shape
    show(f"{n_rows} rows, {n_features} features, {len(model.classes_)} classes, {plan.solver.name}, C = {model.C:g}")
    show(
        f"{', '.join(sorted(set(found.status)))} by {', '.join(sorted(set(found.solver)))} in {seconds:.1f} s: "
        f"objective {found.primal.sum():.10g}, at most a share of {found.relative_gap.max():.1e} above the optimum "
        f"(asked for {plan.tol:.1e})"
    )


def _cross_validate(plan: Plan, X: Any, y: Any) -> None:
    """Print the accuracy of held-out rows: folds of random rows, as LIBLINEAR's."""
    from sklearn.model_selection import KFold

    if isinstance(X, BlockStore):
        raise ValueError("-v needs the data in memory: raise --memory, or use -C, which takes block stores")
    n_folds = int(plan.n_folds or 0)
    if n_folds > X.shape[0]:
        n_folds = X.shape[0]
        print(
            "WARNING: # folds > # data. Will use # folds = # data instead (i.e., leave-one-out cross validation)",
            file=sys.stderr,
        )
    correct = 0
    for train, test in KFold(n_folds, shuffle=True, random_state=0).split(X):
        model = _estimator(plan).fit(X[train], y[train])
        correct += int((model.predict(X[test]) == y[test]).sum())
    print(f"Cross Validation Accuracy = {100.0 * correct / X.shape[0]:g}%")


def _find_C(plan: Plan, X: Any, y: Any) -> None:
    """Search for C and print LIBLINEAR's lines about it."""
    n_folds = 5 if plan.n_folds is None else plan.n_folds
    print(f"Doing parameter search with {n_folds}-fold cross validation.", flush=True)
    found = search(plan, X, y, scoring="accuracy")
    if not plan.is_quiet:
        for C, score in zip(found.Cs, found.mean, strict=True):
            print(f"log2c={math.log2(C):7.2f}\trate={100.0 * score:g}")
    print(f"Best C = {found.best_C:g}  CV accuracy = {100.0 * found.best_score:g}%")


def search(plan: Plan, X: Any, y: Any, **options: Any) -> Any:
    """The search for C of a plan."""
    parameters = {"loss": plan.solver.loss, **plan.parameters, **options}
    if "tol" in plan.given:
        parameters["tol"] = plan.tol
    if "resume" in plan.given:
        parameters["resume"] = plan.given["resume"]
    n_folds = 5 if plan.n_folds is None else plan.n_folds
    return select_C(X, y, cv=n_folds, C_min=plan.C, verbose=int(not plan.is_quiet), **parameters)
