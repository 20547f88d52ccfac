"""``hinge search``: the table of a search for ``C``."""

from __future__ import annotations

from collections.abc import Sequence

from hinge._commands import letters, rows
from hinge._commands.letters import Option
from hinge._commands.plan import OPTIONS, Plan
from hinge._commands.train import search
from hinge._console import console

USAGE = "hinge search [options] DATA ..."
ABOUT = (
    "Searches for C by warm-started cross-validation, and shows every C with its mean score. Options are those of "
    "train; -v is the number of folds, -c the first C, --tol the accuracy of the fits."
)

_KEPT = {"solver", "C", "bias", "is_free", "class_weight", "n_folds", "is_quiet", "threads", "memory", "resume"}

SEARCH_OPTIONS = (
    *(option for option in OPTIONS if option.key in _KEPT | {"tol", "max_iter", "zero_based"}),
    Option(
        "scoring",
        "what a C is chosen by: any name of a scorer of scikit-learn (default: accuracy)",
        word="scoring",
        read=str,
        metavar="NAME",
    ),
)


def main(arguments: Sequence[str]) -> None:
    """Search, and show the table."""
    if "--help" in arguments or "-h" in arguments:
        print(letters.help_text(USAGE, ABOUT, SEARCH_OPTIONS))
        return
    given, files = letters.read(arguments, SEARCH_OPTIONS, "search")
    scoring = given.pop("scoring", "accuracy")
    plan = Plan.of({**given, "searches": True, "model": "", "format": "hinge"}, files)
    with rows.opened(plan) as (X, y):
        found = search(plan, X, y, scoring=scoring)
    errors = found.std_error
    lines = [
        [f"{C:.6g}", f"{mean:.6f}", f"{error:.6f}", f"{seconds:.2f}"]
        for C, mean, error, seconds in zip(found.Cs, found.mean, errors, found.seconds, strict=True)
    ]
    out = console()
    out.table(["C", scoring, "std. error", "seconds"], lines, marked=found.best_index)
    out.line(f"best C = {found.best_C:.6g}, {scoring} {found.best_score:.6f} ({found.n_folds} folds)")
