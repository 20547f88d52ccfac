"""Selective block minimisation against block minimisation: dual value after each pass over a store, equal memory.

python benches/compare/blocks.py STORE [--share 0.167] [--C 1] [--output FILE]

The optimum comes from a fit in memory. ``--share`` is the memory for rows as a share of all rows.
"""

import argparse
import csv
import resource
import sys
import time
import warnings

from hinge import BlockStore, LinearSVC
from sklearn.exceptions import ConvergenceWarning

VARIANTS = {
    "SBM-1/2": {"cache": "steepest", "cache_share": 0.5},
    "SBM-1/3": {"cache": "steepest", "cache_share": 1 / 3},
    "SBM-1/2-projected": {"cache": "projected", "cache_share": 0.5},
    "SBM-1/2-random": {"cache": "random", "cache_share": 0.5},
    "BMD": {"cache": "none"},
}
PASSES = {"SBM-1/2": (1, 2, 3), "SBM-1/3": (1, 2, 3), "SBM-1/2-projected": (1, 2, 3)}
SLOW_PASSES = (1, 2, 4, 8, 12, 16)

# Bytes of rows and of the solver's state per row, as the budget of a fit counts them, and page buffers.
ROW_BYTES, BUFFERS = 160, 13_700_000


def budget(store, share):
    facts = store.info()
    entry = 4 if facts["uniform_rows"] else 8
    rows = share * (facts["nnz"] * entry + facts["n_rows"] * ROW_BYTES)
    return int(8 * (facts["n_used"] + 1 + facts["n_rows"]) + BUFFERS + rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store")
    parser.add_argument("--share", type=float, default=1 / 6)
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, nargs="+", default=[10])
    parser.add_argument("--output")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    store = BlockStore(chosen.store)
    common = {"loss": "hinge", "C": chosen.C, "fit_intercept": False, "random_state": 0}
    optimum = LinearSVC(**common, tol=1e-6, block_options={"in_memory": True}).fit(store).certificate_.dual[0]
    fields = ("variant", "rounds", "passes", "dual_difference", "relative_gap", "seconds", "peak_rss_mb")
    with open(chosen.output, "w", newline="") if chosen.output else sys.stdout as file:
        writer = csv.writer(file)
        writer.writerow(fields)
        for name, options in VARIANTS.items():
            for rounds in chosen.rounds:
                for passes in PASSES.get(name, SLOW_PASSES):
                    started = time.perf_counter()
                    blocks = {**options, "rounds": rounds, "in_memory": False, "keep_compressed": False}
                    memory = budget(store, chosen.share)
                    model = LinearSVC(**common, tol=1e-12, max_iter=passes, memory_budget=memory, block_options=blocks)
                    certificate = model.fit(store).certificate_
                    seconds = time.perf_counter() - started
                    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
                    difference = (optimum - certificate.dual[0]) / optimum
                    gap = certificate.relative_gap[0]
                    row = [name, rounds, passes, f"{difference:.2e}", f"{gap:.2e}", f"{seconds:.2f}", f"{peak:.0f}"]
                    writer.writerow(row)
                    file.flush()


if __name__ == "__main__":
    main()
