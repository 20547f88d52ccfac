"""The demonstration: choose ``C`` on real data, prove the result, and set it beside scikit-learn.

Without a file the data are the docstrings of the packages installed here, so nothing is downloaded.
"""

from __future__ import annotations

import errno
import logging
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hinge import _checks, _native, _threads
from hinge._comparison import compare
from hinge._console import News, PlainConsole
from hinge._csearch import CSearch
from hinge._durable import drafted
from hinge._progress import logger
from hinge._tasks import N_FOLDS, Task, docstring_task, file_task, source_name
from hinge.logistic import LogisticRegressionCV
from hinge.svm import LinearSVCCV

LOSSES = ("squared_hinge", "hinge", "logistic")


@dataclass(frozen=True)
class Options:
    """What a demonstration can be asked for.

    Attributes
    ----------
    file : str or None
        An svmlight file, ``"-"`` for standard input; None is the docstrings.
    output : str
        Path of the picture, which may replace an older one.
    loss : {"squared_hinge", "hinge", "logistic"}
        What is minimised.
    jobs : int or None
        Threads of hinge and processes of scikit-learn; None means all usable cores.
    compare : bool
        Whether scikit-learn runs too.

    """

    file: str | None = None
    output: str = "hinge-demo.png"
    loss: str = LOSSES[0]
    jobs: int | None = None
    compare: bool = True


def run(show: PlainConsole, options: Options) -> None:
    """Run the whole demonstration.

    Parameters
    ----------
    show : PlainConsole
        Where results and progress go.
    options : Options
        What to do.

    Raises
    ------
    OSError, ValueError
        The file cannot be read or is no classification problem; the folder of the picture does not exist, or in its
        place is a file that is no picture of a demonstration.

    """
    _checks.choice("loss", options.loss, LOSSES)
    n_jobs = _threads.threads(options.jobs)
    folder = Path(options.output).absolute().parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, "no such folder", str(folder))
    _native.check_target(options.output, "picture")
    task = read(show, options.file, n_jobs)
    describe(show, task)
    model, seconds = fit(show, task, options.loss, n_jobs)
    report(show, task, model, seconds, n_jobs)
    draw(show, model.search_, options.output)
    if options.compare:
        compare(show, task, options.loss, n_jobs, model, seconds)


def read(show: PlainConsole, file: str | None, n_jobs: int) -> Task:
    """Read the data."""
    if file is None:
        with show.busy("Reading docstrings of the installed packages"):
            return docstring_task()
    with show.busy(f"Reading {source_name(file)}"):
        return file_task(file, n_jobs)


def describe(show: PlainConsole, task: Task) -> None:
    """Say what the data are."""
    n_rows, n_features = task.X.shape
    n_classes = len(np.unique(task.y))
    show.heading("Data")
    for line in task.about:
        show.line(f"  {line}")
    show.line(f"  {n_rows:,} rows to train and choose, {len(task.y_test):,} held out (split fixed by a seed)")
    show.line(f"  {n_features:,} features, {n_classes} classes, {task.X.nnz:,} nonzeros ({task.X.dtype})")


def fit(show: PlainConsole, task: Task, loss: str, n_jobs: int) -> tuple[Any, float]:
    """Choose C and fit; returns the model and the wall time."""
    with (
        show.busy(f"hinge: searching C on {N_FOLDS} folds") as news,
        _log_to(news),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the report says so
        model = _model(task, loss, n_jobs)
        started = time.perf_counter()
        model.fit(task.X, task.y)
    return model, time.perf_counter() - started


def _model(task: Task, loss: str, n_jobs: int) -> Any:
    # The intercept is LIBLINEAR's, so that scikit-learn solves the same problem.
    if loss == "logistic":
        return LogisticRegressionCV(cv=task.folds, intercept_scaling=1.0, n_jobs=n_jobs)
    return LinearSVCCV(loss=loss, cv=task.folds, intercept_scaling=1.0, n_jobs=n_jobs)


class _NewsHandler(logging.Handler):
    """Hands on what the library logs."""

    def __init__(self, news: News):
        super().__init__()
        self._news = news

    def emit(self, record: logging.LogRecord) -> None:
        """Hand on a message."""
        self._news(record.getMessage())


@contextmanager
def _log_to(news: News) -> Iterator[None]:
    handler, level = _NewsHandler(news), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def report(show: PlainConsole, task: Task, model: Any, seconds: float, n_jobs: int) -> None:
    """Show the table of C, the held-out accuracy and the certificate."""
    search, certificate = model.search_, model.certificate_
    show.heading(f"Search for C (accuracy on {N_FOLDS} folds, ended by {search.stopped_by})")
    rows = [_row(search, k) for k in range(len(search.Cs))]
    show.table(("C", "accuracy", "+- error", "seconds", "remark"), rows, marked=search.best_index)
    show.heading("Result")
    accuracy = model.score(task.X_test, task.y_test)
    gap, n_problems = certificate.relative_gap.max(), len(certificate.relative_gap)
    where = "" if n_problems == 1 else f", the worst of {n_problems} problems"
    status = " and ".join(sorted(set(certificate.status)))
    show.line(f"  chosen C            {model.C_:g}")
    show.line(f"  held-out accuracy   {accuracy:.4f}; the most frequent class alone gives {task.majority:.4f}")
    show.line(f"  certificate         {status}: at most {gap:.1e} above the optimum (relative gap{where})")
    show.line(f"  time                {seconds:.2f} s for search and final fit, {n_jobs} threads")


def _row(search: CSearch, k: int) -> tuple[str, ...]:
    remark = "unchanged" if search.unchanged[k] else ("" if search.converged[k] else "not converged")
    numbers = (search.mean[k], search.std_error[k])
    return (f"{search.Cs[k]:.5g}", *(f"{x:.4f}" for x in numbers), f"{search.seconds[k]:.2f}", remark)


def draw(show: PlainConsole, search: CSearch, output: str) -> None:
    """Save the curve of accuracy against C, or say why not."""
    try:
        axes = search.plot()
    except ImportError:
        show.line("  picture             not drawn: matplotlib is missing, try pip install 'hinge[plot]'")
        return
    axes.set_ylabel(f"mean accuracy on {N_FOLDS} folds, with standard error")
    axes.grid(alpha=0.3)
    with drafted(output, "picture") as file:
        axes.figure.savefig(file, format="png", dpi=150, metadata={"Software": f"hinge {_native.__version__}"})
    show.line(f"  picture             {output}")
