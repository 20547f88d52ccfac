"""The choice of C: LIBLINEAR's option -C against hinge.select_C.

Same set, five folds, no intercept (LIBLINEAR's default), each side's own default tolerance, which is the
same relative gradient norm for both, and each side's computed first value of C. LIBLINEAR shuffles the rows
into folds, scikit-learn cuts them in order within each class (``--shuffle`` shuffles here too), so the
accuracies differ by the folds.
"""

from __future__ import annotations

import contextlib
import io
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

import engines
import hinge
import problems
from harness import Report, arguments, parser
from liblinear import liblinear, liblinearutil
from problems import Problem
from sklearn.model_selection import StratifiedKFold

SOLVERS = {"squared_hinge": 2, "logistic": 0}
FOLDS = 5

COLUMNS = {
    "set": ">10",
    "loss": ">13",
    "liblinear_s": ">9.4g",
    "of_it_convert_s": ">9.4g",
    "liblinear_C": ">9.4g",
    "liblinear_accuracy": ">7.4f",
    "liblinear_n_Cs": ">4d",
    "hinge_1_s": ">9.4g",
    "hinge_2_s": ">9.4g",
    "hinge_C": ">9.4g",
    "hinge_accuracy": ">7.4f",
    "hinge_n_Cs": ">4d",
    "ratio_1": ">7.2f",
    "ratio_2": ">7.2f",
    "ratio_1_no_convert": ">7.2f",
}


@dataclass(frozen=True)
class Search:
    """Outcome of one search."""

    seconds: float
    C: float
    accuracy: float
    count: int


def search_liblinear(converted: liblinearutil.problem, loss: str) -> Search:
    """LIBLINEAR's search; the values of C are counted in what it prints."""
    lines: list[str] = []
    parameter = liblinearutil.parameter(f"-C -s {SOLVERS[loss]} -v {FOLDS} -q")
    parameter.print_func = liblinear.PRINT_STRING_FUN(lambda text: lines.append(text.decode()))
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        C, _, accuracy = liblinearutil.train(converted, parameter)
    seconds = time.perf_counter() - start
    return Search(seconds, C, accuracy, len(re.findall(r"log2c=", "".join(lines))))


def search_hinge(problem: Problem, loss: str, n_jobs: int, shuffle: bool) -> Search:
    """Our search from the SciPy matrix."""
    cv = StratifiedKFold(FOLDS, shuffle=True, random_state=0) if shuffle else FOLDS
    start = time.perf_counter()
    found = hinge.select_C(problem.X, problem.y, loss=loss, cv=cv, fit_intercept=False, n_jobs=n_jobs)
    seconds = time.perf_counter() - start
    return Search(seconds, found.best_C, found.best_score, len(found.Cs))


def medians(searches: dict[str, Callable[[], Search]], repeat: int) -> dict[str, tuple[float, Search]]:
    """Median time and last outcome of each search, run in turn."""
    runs = [{name: search() for name, search in searches.items()} for _ in range(repeat)]
    return {name: (median(run[name].seconds for run in runs), runs[-1][name]) for name in searches}


def compare(problem: Problem, loss: str, repeat: int, shuffle: bool) -> dict:
    """The table row of one set and loss."""
    conversions = [engines.liblinear_problem(problem) for _ in range(repeat)]
    converted, convert = conversions[-1][0], median(seconds for _, seconds in conversions)
    searches = {
        "liblinear": lambda: search_liblinear(converted, loss),
        "1": lambda: search_hinge(problem, loss, 1, shuffle),
        "2": lambda: search_hinge(problem, loss, 2, shuffle),
    }
    found = medians(searches, repeat)
    (theirs, liblinear_found), (one, _), (two, hinge_found) = (found[name] for name in searches)
    return {
        "set": problem.name,
        "loss": loss,
        "liblinear_s": theirs + convert,
        "of_it_convert_s": convert,
        "liblinear_C": liblinear_found.C,
        "liblinear_accuracy": liblinear_found.accuracy,
        "liblinear_n_Cs": liblinear_found.count,
        "hinge_1_s": one,
        "hinge_2_s": two,
        "hinge_C": hinge_found.C,
        "hinge_accuracy": hinge_found.accuracy,
        "hinge_n_Cs": hinge_found.count,
        "ratio_1": (theirs + convert) / one,
        "ratio_2": (theirs + convert) / two,
        "ratio_1_no_convert": theirs / one,
    }


def main() -> None:
    """Command line."""
    parse = parser(__doc__, losses=tuple(SOLVERS), Cs=())
    parse.add_argument("--shuffle", action="store_true", help="shuffle the rows into our folds as well")
    options = arguments(parse)
    report = Report(COLUMNS, options.output, f"median of {options.repeat}, time in seconds")
    for name in options.sets:
        problem = problems.load(name)
        for loss in options.losses:
            report.add(**compare(problem, loss, options.repeat, options.shuffle))


if __name__ == "__main__":
    main()
