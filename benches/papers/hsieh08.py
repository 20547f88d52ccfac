"""The comparison of Hsieh08 and those of Pegasos in SchmidtThieme on real sets; writes pictures and a page.

    python benches/papers/hsieh08.py --sets pcmac,20news --output benches/record

For each set, C = 1 and no intercept, one thread: objective and test accuracy against processor seconds, for dual
coordinate descent in permuted order without shrinking (DCDL1, DCDL2 of Hsieh08), with shrinking (-S), and in its online
setting (random rows, no shrinking), beside Pegasos and cutting planes (hinge) or PCD and Newton (squared hinge). A
point of a curve is a fit of its own with a limit of epochs, so its seconds are those of the whole fit, input checks
included. Measurements are kept as
JSON, one file per set, and the page shows all there are; ``--parts none`` only draws. The set ``generated`` needs no
data.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "compare")]

import hinge  # noqa: E402
import hsieh08_page  # noqa: E402
import problems  # noqa: E402
from harness import describe, names  # noqa: E402

SETS = ("pcmac", "20news", "a9a", "w8a", "flights", "phishing_urls", "imdb", "contents")
PARTS = ("curves", "batch", "steps", "lecture", "limits")
RECORD = HERE.parent / "record"
STEM = "hsieh08"
COMMON: dict[str, Any] = {"fit_intercept": False, "n_jobs": 1}
CURVES = {
    "hinge": {
        "DCDL1": "dual_cd_permuted",
        "DCDL1-S": "dual_cd",
        "online L1": "dual_cd_online",
        "cutting plane": "cutting_plane",
        "Pegasos": "pegasos",
    },
    "squared_hinge": {
        "DCDL2": "dual_cd_permuted",
        "DCDL2-S": "dual_cd",
        "online L2": "dual_cd_online",
        "PCD": "primal_cd",
        "Newton": "newton",
    },
}
CONTENTS_ROWS = 200_000


class Data:
    """Rows for training and for the test, labels -1/+1."""

    def __init__(self, name: str):
        self.name = name
        if name == "generated":
            random = np.random.default_rng(0)
            X = sp.random(600, 80, density=0.2, format="csr", random_state=random, data_rvs=random.standard_normal)
            y = np.where(X @ random.standard_normal(80) + random.standard_normal(600) > 0, 1.0, -1.0)
            self.X, self.y, self.X_test, self.y_test = X[:400], y[:400], X[400:], y[400:]
            return
        loader = problems._loader()
        if name == "contents":
            X, sections, packages = next(iter(loader.contents(n_rows=CONTENTS_ROWS, chunk=CONTENTS_ROWS)))
            # Files are sorted by path: the commonest section against the rest, held out by package.
            y = np.where(sections == np.bincount(sections).argmax(), 1.0, -1.0)
            held = np.array([hash_of(package) % 5 == 0 for package in packages])
            self.X, self.y, self.X_test, self.y_test = X[~held], y[~held], X[held], y[held]
        else:
            X, y, X_test, y_test = loader.load(name)
            if X_test is None:
                held = np.random.default_rng(0).random(X.shape[0]) < 0.2
                X, X_test, y, y_test = X[~held], X[held], y[~held], y[held]
            # Two classes: the larger label against the other; more: the smallest against the rest.
            classes = np.unique(y)
            positive = classes[-1] if len(classes) == 2 else classes[0]
            self.X, self.y = sp.csr_matrix(X), np.where(y == positive, 1.0, -1.0)
            self.X_test, self.y_test = sp.csr_matrix(X_test), np.where(y_test == positive, 1.0, -1.0)
        self.X.sort_indices()


def hash_of(text: str) -> int:
    """A number for a text, the same in every process."""
    return int.from_bytes(text.encode()[-8:].rjust(8, b"\0"), "little") * 2654435761 >> 7


def fit(model: Any, data: Data) -> tuple[Any, float]:
    """The fitted model and its processor seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(data.X, data.y)
        return model, time.process_time() - start


def objective(data: Data, loss: str, C: float, w: np.ndarray) -> float:
    """Primal value in float64, by the same code for everybody."""
    margins = data.y * (data.X.astype(np.float64) @ w)
    return 0.5 * float(w @ w) + C * float(problems.LOSSES[loss](margins).sum())


def optimum(data: Data, loss: str, C: float, limit: float) -> tuple[float, float]:
    """The best lower bound at hand, of a fit to a gap of 1e-7 or what can be had in three times the limit, and the norm
    of its weights."""
    tol = 1e-3
    while True:
        model, seconds = fit(hinge.LinearSVC(C, loss=loss, tol=tol, max_iter=100_000, **COMMON), data)
        if tol <= 1e-7 or seconds > limit:
            return float(model.certificate_.dual[0]), float(np.linalg.norm(model.coef_[0]))
        tol /= 100


def curve(data: Data, loss: str, solver: str, C: float, best: float, limit: float) -> dict[str, list[float]]:
    """Seconds, relative distance and test accuracy for rising limits of epochs."""
    points: dict[str, list[float]] = {"seconds": [], "distance": [], "accuracy": [], "epochs": []}

    def add(seconds: float, epochs: float, w: np.ndarray) -> None:
        points["seconds"].append(seconds)
        points["epochs"].append(epochs)
        points["distance"].append(objective(data, loss, C, w) / best - 1)
        points["accuracy"].append(float(np.mean(np.where(data.X_test @ w > 0, 1, -1) == data.y_test)))

    epochs = 1
    while True:
        if solver == "pegasos":
            model = hinge.PegasosClassifier(None, C=C, tol=1e-12, max_iter=epochs, presolve=False, **COMMON)
        else:
            model = hinge.LinearSVC(
                C, loss=loss, solver=solver, tol=1e-12, max_iter=epochs, presolve=False, random_state=0, **COMMON
            )
        model, seconds = fit(model, data)
        add(seconds, epochs, model.coef_[0])
        if points["distance"][-1] < 1e-6 or seconds > limit or epochs >= 4096:
            return points
        epochs = max(epochs + 1, int(1.6 * epochs))


def curves(data: Data, limit: float) -> dict[str, Any]:
    """All curves of a set at C = 1."""
    found: dict[str, Any] = {}
    for loss, solvers in CURVES.items():
        best, _ = optimum(data, loss, 1.0, limit)
        found[loss] = {label: curve(data, loss, solver, 1.0, best, limit) for label, solver in solvers.items()} | {
            "optimum": best
        }
    return found


def batch(data: Data, limit: float) -> dict[str, Any]:
    """ShalevShwartz07: objective against the number of rows per step at fixed work (rows read), and the norm."""
    lam = 1e-4
    best, norm = optimum(data, "hinge", 1 / (lam * data.X.shape[0]), limit)
    best *= lam
    ks, found = [1, 4, 16, 64, 256, 1024], {"lam": lam, "optimum": best, "k": [], "distance": {}, "largest_norm": 0.0}
    for epochs in (1, 4, 16):
        row = []
        for k in ks:
            model, _ = fit(
                hinge.PegasosClassifier(lam, batch_size=k, max_iter=epochs, tol=1e-12, average="none", **COMMON), data
            )
            row.append(float(model.certificate_.primal[0]) * lam / best - 1)
            found["largest_norm"] = max(found["largest_norm"], float(model.history_[0]["norm"].max() * lam**0.5))
        found["distance"][str(epochs)] = row
    return found | {"k": ks, "optimum_norm": norm * lam**0.5}


def steps(data: Data, limit: float) -> dict[str, Any]:
    """Objective against epochs for step lengths and averages."""
    lam = 1e-4
    best, _ = optimum(data, "hinge", 1 / (lam * data.X.shape[0]), limit)
    mean = float(np.sqrt(data.X.multiply(data.X).sum() / data.X.shape[0]))
    forms = {
        "1/(lambda t), suffix": {"average": "suffix"},
        "1/(lambda t), all": {"average": "all"},
        "1/(lambda t), last": {"average": "none"},
        "1/(lambda t), last, no projection": {"average": "none", "projection": False},
        "eta0/sqrt(t), suffix": {"eta": "root", "eta0": lam**-0.5 / mean, "average": "suffix"},
        "constant, suffix": {"eta": "constant", "eta0": 1.0 / mean**2, "average": "suffix"},
    }
    found = {}
    for label, form in forms.items():
        model, _ = fit(hinge.PegasosClassifier(lam, max_iter=128, tol=1e-12, **form, **COMMON), data)
        looks = model.history_[0]
        found[label] = {"epochs": looks["epoch"].tolist(), "distance": (looks["primal"] / best - 1).tolist()}
    return found


def lecture(data: Data, limit: float) -> dict[str, Any]:
    """What the slide "Pegasos" of SchmidtThieme leaves open: rows of a step with and without replacement, at equal
    work, and where its stop ends a descent, beside that by whole steps. Distances are of the last iterate."""
    lam, window = 1e-4, 1000
    best, _ = optimum(data, "hinge", 1 / (lam * data.X.shape[0]), limit)
    best *= lam

    def run(**form: Any) -> tuple[Any, float]:
        model, _ = fit(hinge.PegasosClassifier(lam, tol=1e-12, average="none", **form, **COMMON), data)
        return model, float(model.certificate_.primal[0]) * lam / best - 1

    draws = [
        {"k": k, "replace": replace, "distance": run(batch_size=k, replace=replace, max_iter=16)[1]}
        for k in (16, 256)
        for replace in (True, False)
    ]
    stops = []
    for share in (1.0, 0.1):
        for length in ("whole", "loss"):
            step_tol = share * lam**-0.5  # of the radius of the ball
            model, distance = run(step_tol=step_tol, step_length=length, window=window, max_iter=128)
            steps, still = int(model.t_), model.certificate_.status[0] == "stalled"
            stops.append({"share": share, "length": length, "steps": steps, "still": still, "distance": distance})
    return {"window": window, "draws": draws, "stops": stops}


def limits(data: Data, limit: float) -> list[dict[str, Any]]:
    """Processor seconds to a gap of 1e-3 for rising C: where coordinate descent in the dual is the wrong choice."""
    rows = []
    for C in (0.01, 1.0, 100.0):
        row: dict[str, Any] = {"C": C}
        for solver in ("dual_cd", "newton", "auto"):
            cheap, seconds = fit(hinge.LinearSVC(C, solver=solver, tol=1e-3, max_iter=50, **COMMON), data)
            if not cheap.certificate_.converged and seconds < limit / 20:
                cheap, seconds = fit(hinge.LinearSVC(C, solver=solver, tol=1e-3, max_iter=1000, **COMMON), data)
            row[solver] = seconds if cheap.certificate_.converged else None
        rows.append(row)
    return rows


def command_line(words: list[str] | None) -> argparse.Namespace:
    """Options."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("--sets", type=names, default=list(SETS), help="comma-separated sets, or generated")
    parse.add_argument("--parts", type=names, default=list(PARTS), help=f"of {', '.join(PARTS)}, or none")
    parse.add_argument("--limit", type=float, default=8.0, help="processor seconds that a point of a curve may take")
    parse.add_argument("--output", type=Path, default=RECORD, help="folder of the page")
    parse.add_argument("--note", default="", help="text for the header of the measurements")
    options = parse.parse_args(words)
    options.parts = [] if options.parts == ["none"] else options.parts
    if unknown := set(options.parts) - set(PARTS):
        parse.error(f"--parts must be of {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    return options


def main(words: list[str] | None = None) -> None:
    """Measure, draw, write the page."""
    options = command_line(words)
    if options.parts and options.sets != ["generated"] and problems.data_root() is None:
        print("skipped: no data sets, set HINGE_DATA to their folder")
        return
    folder = options.output / STEM
    folder.mkdir(parents=True, exist_ok=True)
    header = f"{describe()}; limit {options.limit:g} s a point" + (f"; {options.note}" if options.note else "")
    for name in options.sets if options.parts else []:
        data = Data(name)
        path = folder / f"{name}.json"
        study = json.loads(path.read_text("utf-8")) if path.exists() else {}
        study |= {"shape": [*data.X.shape, int(data.X.nnz)]}
        for part in options.parts:
            study |= {part: globals()[part](data, options.limit), "header": header}
            unfinished = path.with_suffix(".tmp")
            unfinished.write_text(json.dumps(study, indent=1) + "\n", "utf-8")
            unfinished.replace(path)
            print(f"{name}: {part}", flush=True)
    studies = {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}
    order = [*SETS, *sorted(set(studies) - set(SETS))]
    studies = {name: studies[name] for name in order if name in studies}
    hsieh08_page.write(studies, options.output, STEM)
    print(f"wrote {options.output / (STEM + '.md')}")


if __name__ == "__main__":
    main()
