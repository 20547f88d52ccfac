"""The command line: ``hinge COMMAND`` or ``python -m hinge COMMAND``, with the commands of ``hinge._commands``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from hinge import __version__, _commands

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and the number of the signal, as shells have it."""

CLOSED_PIPE = 141
"""The same where the reader of standard output has left."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0, 1 for unusable input, 130 after Ctrl-C, 141 for a closed pipe."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Quietly, as other tools; the interpreter would complain when it closes standard output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except KeyboardInterrupt:
        print("hinge: interrupted", file=sys.stderr)
        return INTERRUPTED
    except (OSError, ValueError) as error:
        print(f"hinge: error: {_one_line(error)}", file=sys.stderr)
        return 1


def _run(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] in _commands.LETTERED:
        return _commands.run(arguments[0], arguments[1:])
    chosen = vars(_parser(arguments).parse_args(arguments))
    chosen.pop("run")(**chosen)
    return 0


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of these arguments: it knows the names of all commands, but options of the chosen one only."""
    about = "Exact linear classification of large sparse data."
    parser = argparse.ArgumentParser(prog="hinge", description=about)
    parser.add_argument("--version", action="version", version=f"hinge {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    chosen = next((argument for argument in arguments if not argument.startswith("-")), None)
    for name, about in _commands.ABOUT.items():
        command = commands.add_parser(name, help=about, description=about)
        if name == chosen:
            _commands.add_options(name, command)
    return parser
