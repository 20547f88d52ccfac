"""All the figures of the papers, one script after the other.

    python benches/papers/all.py                       into benches/record, hours
    python benches/papers/all.py --quick --output F    small versions of every figure into F, minutes on two cores
    python benches/papers/all.py --generated --output F    the same without data, two minutes

Each script runs in a process of its own; what fails is named at the end, and the status is then 1. Small versions
have fewer and smaller sets and tighter limits of time: they show that everything still runs and how figures look, and
their numbers are not for the record. With two cores, both nearly free, ``--quick`` took 115 seconds: wesierski16 6,
hsieh08 23, chu15 23, changroth11 56, chang10 8.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
RECORD = HERE.parent / "record"
SCRIPTS: dict[str, tuple[list[str], list[str], list[str]]] = {
    "wesierski16": ([], ["--quick"], ["--quick", "--sets", "generated"]),
    "hsieh08": ([], ["--sets", "pcmac,a9a", "--limit", "0.5"], ["--sets", "generated", "--limit", "0.1"]),
    "chu15": (
        [],
        ["--sets", "german,ijcnn1_val", "--limit", "5"],
        ["--sets", "generated", "--limit", "10"],
    ),
    "changroth11": (
        [],
        ["--sets", "a9a,20news", "--vw", "no"],
        ["--sets", "generated,generated-classes", "--vw", "no"],
    ),
    "chang10": (
        [],
        ["--sets", "german,ijcnn1_val", "--limit", "10"],
        ["--sets", "generated", "--limit", "10"],
    ),
}
"""Words after each script: for the record, for small versions, and for those without data."""


def main(words: list[str] | None = None) -> int:
    """Runs what was asked for; the number of scripts that failed, 1 at most."""
    parse = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    size = parse.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small versions of all figures")
    size.add_argument("--generated", action="store_true", help="small versions on generated data")
    parse.add_argument("--output", type=Path, help=f"folder of the pages; {RECORD.name} unless they are small")
    options = parse.parse_args(words)
    if options.output is None and (options.quick or options.generated):
        parse.error("--output is needed: small versions are not for the record")
    output, kind = options.output or RECORD, 1 if options.quick else 2 if options.generated else 0
    failed = []
    for name, variants in SCRIPTS.items():
        began = time.perf_counter()
        command = [sys.executable, str(HERE / f"{name}.py"), *variants[kind], "--output", str(output)]
        status = subprocess.run(command, check=False).returncode
        page = output / f"{name}.md"
        state = "done" if status == 0 and page.is_file() else f"FAILED (status {status})"
        failed += [] if state == "done" else [name]
        print(f"== {name}: {state} in {time.perf_counter() - began:.0f} s", flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
