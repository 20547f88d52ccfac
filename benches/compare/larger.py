"""Larger than memory: build, fit and predict, each in a process whose resident set is watched from outside.

python benches/compare/larger.py [--rows N] [--limit 2GB] [--budget 1.6GB] [--losses hinge squared_hinge] [--folder DIR]

The set is ``contents.py``'s, the task its binary one. Each step is a process of its own; this one reads its resident
set every 5 ms from /proc and the kernel's own record of the peak at the end. ``within`` says whether both stayed
below the limit. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

PERIOD = 0.005


def build(path: str, kind: str, rows: int | None, n_jobs: int) -> dict:
    """A store of the set, or of so many of its rows."""
    import contents
    from hinge import BlockStore

    started = time.perf_counter()
    store = BlockStore.build(lambda: contents.rows(kind, rows), path, n_jobs=n_jobs)
    facts = store.info()
    return {
        "seconds": time.perf_counter() - started,
        "rows": facts["n_rows"],
        "nnz": facts["nnz"],
        "file_bytes": facts["file_bytes"],
        "bytes_per_nonzero": facts["bytes_per_nonzero"],
    }


def fit(path: str, model: str, loss: str, C: float, tol: float, budget: str, n_jobs: int) -> dict:
    """A model to a gap, kept in a file."""
    import joblib
    from hinge import BlockStore, LinearSVC

    store = BlockStore(path)
    started = time.perf_counter()
    found = LinearSVC(loss=loss, C=C, tol=tol, memory_budget=budget, n_jobs=n_jobs, random_state=0).fit(store)
    seconds = time.perf_counter() - started
    certificate = found.certificate_
    joblib.dump(found, model)
    return {
        "seconds": seconds,
        "solver": certificate.solver[0],
        "passes": int(found.n_iter_[0]),
        "gap": float(certificate.relative_gap[0]),
        "primal": float(certificate.primal[0]),
    }


def predict(path: str, model: str) -> dict:
    """Accuracy of a kept model on a store."""
    import joblib
    from hinge import BlockStore

    started = time.perf_counter()
    accuracy = joblib.load(model).score(BlockStore(path))
    return {"seconds": time.perf_counter() - started, "accuracy": accuracy}


STEPS = {"build": build, "fit": fit, "predict": predict}


def _kilobytes(pid: int, field: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith(field + ":")), 0)


def watched(step: str, *given: object) -> dict:
    """Run a step in a process of its own; what it found, and its largest resident set in MB."""
    command = [sys.executable, __file__, "--child", json.dumps([step, *given])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        seen = recorded = 0
        while process.poll() is None:
            try:
                seen = max(seen, _kilobytes(process.pid, "VmRSS"))
                recorded = max(recorded, _kilobytes(process.pid, "VmHWM"))
            except (OSError, ValueError):
                break
            time.sleep(PERIOD)
        output = process.stdout.read()
    if process.returncode:
        raise SystemExit(f"{step} failed with exit code {process.returncode}")
    return {**json.loads(output), "peak_mb": max(seen, recorded) * 1024 / 1e6}


def main() -> None:
    """Command line."""
    if sys.argv[1:2] == ["--child"]:
        step, *given = json.loads(sys.argv[2])
        print(json.dumps(STEPS[step](*given)))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="rows of the training set (default: all)")
    parser.add_argument("--limit", default="2GB")
    parser.add_argument("--budget", default="1.6GB", help="memory_budget of the fits")
    parser.add_argument("--losses", nargs="+", default=["hinge", "squared_hinge"])
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--folder", default=".", help="where the stores and models go")
    parser.add_argument("--keep", action="store_true", help="use stores that are there")
    chosen = parser.parse_args()
    from hinge._budget import budget

    limit, folder = budget(chosen.limit) / 1e6, Path(chosen.folder)
    part = "all" if chosen.rows is None else str(chosen.rows)
    train, test = str(folder / f"train-{part}.blocks"), str(folder / "test.blocks")

    def report(name: str, found: dict) -> None:
        facts = " ".join(
            f"{key}={value:.6g}" if isinstance(value, float) else f"{key}={value}" for key, value in found.items()
        )
        print(f"{name:22} {facts} within={'yes' if found['peak_mb'] <= limit else 'NO'}", flush=True)

    if not (chosen.keep and Path(train).exists()):
        report("build train", watched("build", train, "train", chosen.rows, chosen.jobs))
    if not (chosen.keep and Path(test).exists()):
        report("build test", watched("build", test, "test", None, chosen.jobs))
    for loss in chosen.losses:
        model = str(folder / f"{loss}-{part}.joblib")
        report(f"fit {loss}", watched("fit", train, model, loss, chosen.C, chosen.tol, chosen.budget, chosen.jobs))
        report(f"predict {loss}", watched("predict", test, model))


if __name__ == "__main__":
    main()
