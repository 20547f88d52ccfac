"""Vowpal Wabbit on a text file, in a Python that has vowpalwabbit: TRAIN TEST CACHE PASSES OPTIONS -> JSON.

The first run makes the cache from the text (and learns meanwhile, since vw cannot make a cache alone); then each number
of passes is a run of its own from zero over the cache, its test accuracy measured.
"""

import json
import os
import sys
import time

from vowpalwabbit import Workspace

COMMON = "--loss_function hinge --noconstant -b 22 --quiet"


def _accuracy(model: Workspace, path: str) -> float:
    right = count = 0
    with open(path, encoding="ascii") as lines:
        for line in lines:
            example = model.parse(line)
            right += (model.predict(example) > 0) == (line[0] == "1")
            count += 1
            model.finish_example(example[0] if isinstance(example, list) else example)
    return 100 * right / count


def main() -> None:
    """Command line."""
    train, test, cache, passes_wanted, words = sys.argv[1:6]
    common = f"{COMMON} {words}"
    started = time.perf_counter()
    Workspace(f"{common} -d {train} --cache_file {cache} -k").finish()
    found = {"io": time.perf_counter() - started, "cache_bytes": os.path.getsize(cache), "runs": []}
    for passes in map(int, passes_wanted.split(",")):
        started = time.perf_counter()
        Workspace(f"{common} --cache_file {cache} --passes {passes} --holdout_off -f {cache}.model").finish()
        seconds = time.perf_counter() - started
        model = Workspace(f"--quiet -t -i {cache}.model")
        found["runs"].append({"passes": passes, "seconds": seconds, "accuracy": _accuracy(model, test)})
        model.finish()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
