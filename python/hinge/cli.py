"""The command line: ``python -m hinge demo``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from hinge import __version__, demo
from hinge._console import console

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and the number of the signal, as shells have it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 for unusable input, 130 after Ctrl-C."""
    chosen = vars(_parser().parse_args(arguments))
    try:
        demo.run(console(), demo.Options(**chosen))
    except KeyboardInterrupt:
        print("hinge: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (OSError, ValueError) as error:
        print(f"hinge: error: {_one_line(error)}", file=sys.stderr)
        return 1
    return 0


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def _parser() -> argparse.ArgumentParser:
    about = "Exact linear classification of large sparse data."
    parser = argparse.ArgumentParser(prog="python -m hinge", description=about)
    parser.add_argument("--version", action="version", version=f"hinge {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    about = "Choose C on real data, prove the optimum, compare with scikit-learn."
    _add_demo_options(commands.add_parser("demo", help=about, description=about))
    return parser


def _add_demo_options(parser: argparse.ArgumentParser) -> None:
    default = demo.Options()
    about = "svmlight file, plain, gzip, bzip2 or zstd; without it, docstrings of the installed packages"
    parser.add_argument("file", nargs="?", metavar="FILE", help=about)
    about = "where the picture of accuracy against C goes (default: %(default)s)"
    parser.add_argument("--output", default=default.output, metavar="PNG", help=about)
    about = "what is minimised (default: %(default)s)"
    parser.add_argument("--loss", choices=demo.LOSSES, default=default.loss, help=about)
    about = "threads of hinge and processes of scikit-learn (default: all usable cores)"
    parser.add_argument("--jobs", type=int, metavar="N", help=about)
    parser.add_argument("--no-compare", dest="compare", action="store_false", help="do not run scikit-learn")
