"""Who takes part in the bench of fits: packages, their solvers for each loss, threads, and the Python that has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from problems import REPOSITORY
from process import missing, this_python
from tasks import Task

# scikit-learn's newton-cholesky keeps a dense Hessian of the features: at most this many bytes of it.
LARGEST_HESSIAN = 2e9
TOLERANCES = tuple(10.0**-k for k in range(9))


@dataclass(frozen=True)
class Entry:
    """A package that may take part, and how: its worker module, its solvers by loss, the tolerances to try."""

    name: str
    worker: str
    module: str
    solvers: Mapping[str, tuple[object, ...]]
    threads: tuple[int, ...]
    python: str = field(default_factory=this_python)
    tolerances: tuple[float, ...] = TOLERANCES
    # A folder of packages that come before those of ``python``.
    folder: str = ""

    def applicable(self, loss: str, task: Task) -> tuple[object, ...]:
        """The solvers that can be run on this task."""
        dense = 8.0 * task.X.shape[1] ** 2
        return tuple(s for s in self.solvers[loss] if s != "newton-cholesky" or dense <= LARGEST_HESSIAN)

    @property
    def warm_solver(self) -> object:
        """A solver of the squared hinge for the tiny fit at the start."""
        return self.solvers["squared_hinge"][0]


# LIBLINEAR's solvers as its option -s counts them: dual ones for the hinge; primal Newton and dual for the others.
LIBLINEAR = {"hinge": (3,), "squared_hinge": (1, 2), "logistic": (0, 7)}
# The multi-core edition has no parallel version of -s 7.
MULTICORE = LIBLINEAR | {"logistic": (0,)}
SKLEARN = {
    "hinge": ("dual",),
    "squared_hinge": ("dual", "primal"),
    "logistic": ("newton-cholesky", "newton-cg", "lbfgs", "liblinear"),
}
ONLY = dict.fromkeys(LIBLINEAR, ("auto",))
MULTICORE_PYTHON = str(REPOSITORY / ".venv-multicore" / "bin" / "python")
SNAPML_PYTHON = str(REPOSITORY / ".venv-snapml" / "bin" / "python")


def roster(
    multicore: str = MULTICORE_PYTHON, snapml: str = SNAPML_PYTHON, release: Mapping[str, str] | None = None
) -> dict[str, Entry]:
    """Everybody by name, ourselves first; our last release where it is known which Python or folder has it."""
    ours = {"worker": "hinge", "module": "hinge", "solvers": ONLY, "threads": (1, 2), "tolerances": TOLERANCES[1:8]}
    entries = (
        Entry("hinge", **ours),
        *([Entry("release", **ours, **release)] if release else []),
        Entry("liblinear", "liblinear", "liblinear", LIBLINEAR, (1,)),
        Entry("multicore", "liblinear", "liblinear", MULTICORE, (2,), multicore),
        Entry("sklearn", "sklearn", "sklearn", SKLEARN, (1,)),
        Entry("snapml", "snapml", "snapml", ONLY, (2,), snapml, TOLERANCES[1:]),
    )
    return {entry.name: entry for entry in entries}


def present(names: list[str], entries: Mapping[str, Entry]) -> list[Entry]:
    """Those of the named that are installed; of the others one line says what is wrong."""
    there = []
    for name in names:
        reason = missing(entries[name].module, entries[name].python, entries[name].folder)
        if reason:
            print(f"{name} takes no part: {reason}")
        else:
            there.append(entries[name])
    return there
