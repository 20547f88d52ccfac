"""The commands of the command line, one module each.

The module of a command has ``add_options(parser)``, which adds its options and, as the default ``run``, the function
that is called with what was chosen for them; or, where options are in LIBLINEAR's style, ``main(arguments)``, which
reads them itself and may return an exit code. It is imported only where its command was chosen, and may import what
the command needs.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from importlib import import_module

ABOUT = {
    "train": "Train a classifier: options, files and output of LIBLINEAR's train, and a certificate.",
    "predict": "Predict rows: options, files and output of LIBLINEAR's predict.",
    "search": "Search for C by cross-validation, and show the table.",
    "info": "Show what a model file says.",
    "convert": "Turn a model file of one format into one of another.",
    "demo": "Choose C on real data, prove the optimum, compare with scikit-learn.",
    "blocks": "Compressed block stores of data sets that are larger than memory.",
}
"""What each command does, in the order of the help. The names are those of the modules."""

LETTERED = frozenset({"train", "predict", "search"})
"""Those with options in LIBLINEAR's style."""


def add_options(name: str, parser: ArgumentParser) -> None:
    """Import a command and let it add its options."""
    import_module(f"{__name__}.{name}").add_options(parser)


def run(name: str, arguments: Sequence[str]) -> int:
    """Import a command with options in LIBLINEAR's style and run it; returns the exit code."""
    return import_module(f"{__name__}.{name}").main(arguments) or 0
