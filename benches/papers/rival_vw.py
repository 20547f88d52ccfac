"""One pass of Vowpal Wabbit over a text file, in a Python that has vowpalwabbit: TRAIN TEST CACHE -> JSON.

The first run makes the cache from the text, the second learns from the cache; both learn, since vw cannot make a
cache alone.
"""

import json
import sys
import time

from vowpalwabbit import Workspace

COMMON = "--loss_function hinge --noconstant -b 22 --quiet"


def main() -> None:
    """Command line."""
    train, test, cache = sys.argv[1:4]
    started = time.perf_counter()
    Workspace(f"{COMMON} -d {train} --cache_file {cache} -k").finish()
    build = time.perf_counter() - started
    started = time.perf_counter()
    model = Workspace(f"{COMMON} --cache_file {cache}")
    learning = time.perf_counter() - started
    right = count = 0
    with open(test, encoding="ascii") as lines:
        for line in lines:
            example = model.parse(line)
            right += (model.predict(example) > 0) == (line[0] == "1")
            count += 1
            model.finish_example(example[0] if isinstance(example, list) else example)
    model.finish()
    print(json.dumps({"io": build, "learning": learning, "accuracy": 100 * right / count}))


if __name__ == "__main__":
    main()
