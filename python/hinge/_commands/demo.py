"""``python -m hinge demo``: choose ``C`` on real data, prove the optimum, compare with scikit-learn."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from hinge._console import console
from hinge.demo import LOSSES, Options, run


def add_options(parser: ArgumentParser) -> None:
    """Add the options of the demonstration."""
    default = Options()
    parser.set_defaults(run=_demonstrate)
    about = "svmlight file, plain, gzip, bzip2 or zstd, - for standard input; without it, docstrings of the packages"
    parser.add_argument("file", nargs="?", metavar="FILE", help=about)
    about = "where the picture of accuracy against C goes (default: %(default)s)"
    parser.add_argument("--output", default=default.output, metavar="PNG", help=about)
    about = "what is minimised (default: %(default)s)"
    parser.add_argument("--loss", choices=LOSSES, default=default.loss, help=about)
    about = "threads of hinge and processes of scikit-learn (default: all usable cores)"
    parser.add_argument("--jobs", type=int, metavar="N", help=about)
    parser.add_argument("--no-compare", dest="compare", action="store_false", help="do not run scikit-learn")


def _demonstrate(**chosen: Any) -> None:
    run(console(), Options(**chosen))
