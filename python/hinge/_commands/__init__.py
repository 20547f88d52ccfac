"""The commands of the command line, one module each.

The module of a command has ``add_options(parser)``, which adds its options and, as the default ``run``, the function
that is called with what was chosen for them. It is imported only where its command was chosen, and may import what
the command needs.
"""

from __future__ import annotations

from argparse import ArgumentParser
from importlib import import_module

ABOUT = {
    "demo": "Choose C on real data, prove the optimum, compare with scikit-learn.",
    "blocks": "Compressed block stores of data sets that are larger than memory.",
}
"""What each command does, in the order of the help. The names are those of the modules."""


def add_options(name: str, parser: ArgumentParser) -> None:
    """Import a command and let it add its options."""
    import_module(f"{__name__}.{name}").add_options(parser)
