"""From a Parquet file of flights to a certified model: seconds of each step, beside scikit-learn; peak memory.

    python table.py                      # 300,000 rows: ours, and scikit-learn's fit at the C that ours has chosen
    python table.py --rival-search       # scikit-learn's search as well: minutes
    python table.py --lightgbm PYTHON    # and LightGBM, which the interpreter PYTHON has, reading the same file

Ours reads the file batch after batch (pyarrow), encodes ten categorical columns, chooses C by five folds and fits; the
fit alone, at the chosen C, is timed as well. scikit-learn gets a data frame of pandas that was read from the file,
``OneHotEncoder`` in a ``ColumnTransformer`` and ``LogisticRegression`` (lbfgs), at the same C. LightGBM makes its
binned data set of the file's columns as categories. Memory is the peak of a process of its own, over what it had when
the table was read, less the encoded rows.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import hinge
import numpy as np
import pandas as pd
import polars as pl
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import encode

N = 300_000


def written(folder: str) -> str:
    """The file of flights: ten columns and whether the flight was late."""
    path = str(Path(folder) / "flights.parquet")
    table = encode.flights(N)
    names = list(table)
    late = late_flights(N)
    kept = ~np.isnan(late)
    frame = pl.DataFrame(
        {name: np.array(table[name], dtype=object)[kept] for name in names}, schema=dict.fromkeys(names, pl.String)
    )
    frame.with_columns(pl.Series("late", late[kept].astype(int))).write_parquet(path)
    return path


def late_flights(n: int) -> np.ndarray:
    """Whether each flight was late; NaN where nobody knows."""
    import lzma
    from itertools import islice

    path = encode.data() / "flights/flights.tsv.xz"
    with lzma.open(path, "rt", encoding="utf8", newline="\n") as lines:
        column = next(lines).rstrip("\n").split("\t").index("DepDel15")
        values = [line.rstrip("\n").split("\t")[column] for line in islice(lines, n)]
    return np.array([float(value) if value not in ("", "NA", "nan") else np.nan for value in values])


def timed(name: str, work: Any) -> Any:
    """The result of a step, whose seconds are printed."""
    clock, processor = time.perf_counter(), time.process_time()
    result = work()
    print(
        f"{name:44} {time.perf_counter() - clock:8.2f} s, processor {time.process_time() - processor:8.2f} s",
        flush=True,
    )
    return result


def ours(path: str) -> float:
    """Encode, choose C, fit; the chosen C."""
    for numbering in ("hashed", "counted"):
        encoder = hinge.TableEncoder({"late": "drop"}, remainder="auto", numbering=numbering)
        timed(f"hinge {numbering}: look at the table", lambda encoder=encoder: encoder.fit(path))
        X, y, *_ = timed(f"hinge {numbering}: encode", lambda e=encoder: e.stream(path, target="late").collect())
        model = timed(f"hinge {numbering}: fit at C = 0.1", lambda X=X, y=y: hinge.LogisticRegression(C=0.1).fit(X, y))
        print(f"{X.shape}, gap {model.certificate_.relative_gap.max():.1e}")
        found = timed(
            f"hinge {numbering}: choose C and fit", lambda X=X, y=y: hinge.LogisticRegressionCV(cv=5).fit(X, y)
        )
        print(f"C = {found.C_:g}, accuracy {found.search_.best_score:.4f}")
    return float(found.C_)


def rival(path: str, C: float, *, searches: bool) -> None:
    """The same by scikit-learn."""
    frame = timed("pandas: read", lambda: pd.read_parquet(path))
    names = [name for name in frame if name != "late"]
    encoder = ColumnTransformer([("all", OneHotEncoder(handle_unknown="ignore"), names)])
    timed("scikit-learn: encode", lambda: encoder.fit_transform(frame))
    model = make_pipeline(encoder, LogisticRegression(C=C, max_iter=10_000))
    timed(f"scikit-learn: encode and fit at C = {C:g}", lambda: model.fit(frame, frame["late"]))
    if searches:
        model = make_pipeline(encoder, LogisticRegressionCV(cv=5, max_iter=10_000))
        timed("scikit-learn: encode, choose C and fit", lambda: model.fit(frame, frame["late"]))


LIGHTGBM = """
import sys, time
import lightgbm, pandas
clock, processor = time.perf_counter(), time.process_time()
frame = pandas.read_parquet(sys.argv[1])
late = frame.pop("late")
frame = frame.astype("category")
data = lightgbm.Dataset(frame, late, categorical_feature=list(frame), params={"num_threads": 2, "verbose": -1})
data.construct()
seconds = time.perf_counter() - clock, time.process_time() - processor
print("LightGBM: read, categories, data set         %8.2f s, processor %8.2f s" % seconds)
"""


def resident(what: str) -> float:
    """Megabytes of this process, now ("VmRSS") or at most ("VmHWM")."""
    lines = Path("/proc/self/status").read_text("utf8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


def memory(kind: str) -> None:
    """Print the memory that encoding takes beside its result."""
    if kind == "text":
        frame = pl.DataFrame({"t": encode.reviews(None)})
        encoder = hinge.TableEncoder({"t": {"kind": "text", "ngrams": (1, 2)}}).fit(frame)
    else:
        frame = pl.DataFrame(encode.flights(N))
        encoder = hinge.TableEncoder(dict.fromkeys(frame.columns, "categorical"), numbering="counted").fit(frame)
    encoder.transform(frame[:1000])
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # what was freed must not hide what is asked for
    Path("/proc/self/clear_refs").write_text("5", "utf8")  # forgets the peak
    before = resident("VmRSS")
    X = encoder.transform(frame)
    more = resident("VmHWM") - before
    size = (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) / 2**20
    print(f"{kind}: result {size:.0f} MB, table {frame.estimated_size('mb'):.0f} MB, beside them {more - size:.0f} MB")


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rival-search", action="store_true")
    parser.add_argument("--lightgbm", metavar="PYTHON")
    parser.add_argument("--memory", choices=("text", "flights"))
    options = parser.parse_args()
    if options.memory:
        memory(options.memory)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = written(folder)
        C = ours(path)
        rival(path, C, searches=options.rival_search)
        if options.lightgbm:
            subprocess.run([options.lightgbm, "-c", LIGHTGBM, path], check=True)
    for kind in ("text", "flights"):
        subprocess.run([sys.executable, __file__, "--memory", kind], check=True, env=os.environ)


if __name__ == "__main__":
    main()
