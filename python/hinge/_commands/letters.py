"""Options in LIBLINEAR's style: the letter behind the dash selects, and most options take the next argument.

No library for command lines reads these. argparse, and typer and click likewise, take ``-w3 5`` for the option ``-w``
with the value 3 and a file of the name 5, ``-solver`` for an unknown option where LIBLINEAR looks at the letter alone,
and need ``-B=-1`` once another option looks like a negative number. So LIBLINEAR's letters, and words of our own beside
them, are read here, from one table that the help is made of, too.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

_WIDTH = 100
_COLUMN = 26


@dataclass(frozen=True)
class Option:
    """An option.

    Attributes
    ----------
    key : str
        What it sets.
    about : str
        What it means, for the help.
    letter : str
        One letter, or empty.
    word : str
        For ``--word``, or empty.
    read : callable or None
        From the text of the value; None for a switch.
    metavar : str
        What the help calls the value.
    is_labelled : bool
        Whether a class stands behind the letter: the option then sets a dict, values of one class multiplied.
    """

    key: str
    about: str
    letter: str = ""
    word: str = ""
    read: Callable[[str], Any] | None = None
    metavar: str = ""
    is_labelled: bool = False

    @property
    def names(self) -> str:
        """Its names as the help shows them."""
        names = [f"-{self.letter}i" if self.is_labelled else f"-{self.letter}"] if self.letter else []
        names += [f"--{self.word}"] if self.word else []
        return f"{', '.join(names)} {self.metavar}".rstrip()


def read(arguments: Sequence[str], options: Sequence[Option], command: str) -> tuple[dict[str, Any], list[str]]:
    """What options say, and the arguments that are none.

    Parameters
    ----------
    arguments : sequence of str
        Options may come anywhere; behind ``--`` there are none.
    options : sequence of Option
        All that are known.
    command : str
        Its name, for errors.

    Returns
    -------
    chosen : dict of str to object
        By key, those that were given.
    files : list of str

    Raises
    ------
    ValueError
        An unknown option, or a value that is missing or unusable.
    """
    chosen: dict[str, Any] = {}
    files: list[str] = []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "--":
            files.extend(waiting)
        elif argument == "-" or not argument.startswith("-"):
            files.append(argument)
        else:
            _take(chosen, argument, waiting, options, command)
    return chosen, files


def _take(
    chosen: dict[str, Any], argument: str, waiting: Iterator[str], options: Sequence[Option], command: str
) -> None:
    """Put one option with its value into ``chosen``."""
    word, has_value, text = argument[2:].partition("=") if argument.startswith("--") else ("", "", "")
    names = [option.word == word if word else option.letter == argument[1] for option in options]
    if True not in names:
        raise ValueError(f"unknown option {argument}: 'hinge {command} --help' shows all")
    option = options[names.index(True)]
    if option.read is None:
        if has_value:
            raise ValueError(f"--{word} takes no value, got {text!r}")
        chosen[option.key] = True
        return
    if not has_value:
        following = next(waiting, None)
        if following is None:
            raise ValueError(f"{argument} needs a value: {option.about}")
        text = following
    try:
        value = option.read(text)
    except ValueError as error:
        raise ValueError(f"{argument}: {error}") from error
    if option.is_labelled:
        label = _label(argument)
        weights = chosen.setdefault(option.key, {})
        weights[label] = weights.get(label, 1.0) * value
    else:
        chosen[option.key] = value


def _label(argument: str) -> int:
    try:
        return int(argument[2:])
    except ValueError as error:
        raise ValueError(f"{argument}: a class must stand behind -{argument[1]}, as in -{argument[1]}3") from error


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError as error:
        raise ValueError(f"expected a number, got {text!r}") from error
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError(f"expected a finite number, got {text!r}")
    return value


def positive(text: str) -> float:
    """A number above 0."""
    value = number(text)
    if not value > 0:
        raise ValueError(f"expected a number above 0, got {text!r}")
    return value


def whole(least: int) -> Callable[[str], int]:
    """A whole number that is at least this."""

    def read_whole(text: str) -> int:
        if not text.lstrip("+-").isdecimal() or int(text) < least:
            raise ValueError(f"expected a whole number of at least {least}, got {text!r}")
        return int(text)

    return read_whole


def one_of(*choices: str) -> Callable[[str], str]:
    """One of some words."""

    def read_word(text: str) -> str:
        if text not in choices:
            raise ValueError(f"expected {' or '.join(choices)}, got {text!r}")
        return text

    return read_word


def help_text(usage: str, about: str, options: Sequence[Option]) -> str:
    """The help of a command."""
    lines = [f"usage: {usage}", "", *textwrap.wrap(about, _WIDTH), "", "options:"]
    for option in options:
        parts = textwrap.wrap(option.about, _WIDTH - _COLUMN)
        name = f"  {option.names}"
        if len(name) >= _COLUMN:
            lines.append(name)
            name = ""
        lines.append(f"{name:{_COLUMN}}{parts[0]}")
        lines.extend(" " * _COLUMN + part for part in parts[1:])
    return "\n".join(lines)
