"""What has become slower: the figures of a run of ``bench.py`` against those of the record.

Figures are ratios to rivals measured in the same run, so that machines may differ. A case is worse if its figure has
fallen by more than ``--share``; a figure that is only a bound says nothing about the other side of it. Cases that
one of the files does not have are counted. The exit code is 1 if any case is worse.

    python regress.py bench/bench.json ../record/bench.json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

Figures = dict[tuple[str, str, str], tuple[float, str]]


def read(path: Path) -> Figures:
    """Ratio and sign of each case."""
    figures = json.loads(path.read_text("utf-8"))["figures"]
    return {(f["arena"], f["case"], f["rival"]): (f["ratio"], f["sign"]) for f in figures}


def worse(new: Figures, old: Figures, share: float) -> list[tuple[tuple[str, str, str], float, float]]:
    """Cases whose figure has certainly fallen by more than this share, worst first: new and old ratio."""
    found = []
    for key in new.keys() & old.keys():
        (ratio, sign), (before, sign_before) = new[key], old[key]
        # A rival that was stopped might have shown a larger figure; one of the record that we lost is an upper bound.
        if ratio < before * (1.0 - share) and sign != ">" and sign_before != "<":
            found.append((key, ratio, before))
    return sorted(found, key=lambda case: (case[1] / case[2], case[0]))


def main() -> None:
    """Command line."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parse.add_argument("new", type=Path, help="figures of a run")
    parse.add_argument("record", type=Path, help="figures to compare with")
    parse.add_argument("--share", type=float, default=0.1, help="fall of a figure from which a case is worse")
    options = parse.parse_args()
    new, old = read(options.new), read(options.record)
    found = worse(new, old, options.share)
    for (arena, case, rival), ratio, before in found:
        print(f"worse: {arena}, {case}, {rival}: {ratio:.2f}x instead of {before:.2f}x")
    both = len(new.keys() & old.keys())
    print(f"{both} cases compared, {len(found)} worse; {len(new) - both} new, {len(old) - both} not run")
    if not both:
        print("nothing to compare", file=sys.stderr)
    sys.exit(1 if found or not both else 0)


if __name__ == "__main__":
    main()
