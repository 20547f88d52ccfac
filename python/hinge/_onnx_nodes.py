"""The nodes of an ONNX graph as they are put together: names, constants and calls, of whatever graph they end up in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

FLOAT, INT64, DOUBLE = 1, 7, 11
"""Types of tensors by ONNX's numbers, for ``Cast``."""

OPSET = 18
"""Version of the operators of a graph of our own: every runtime since 2023 knows it."""

LEAST_OPSET = 13
"""Version from which all operators that we call for dense rows mean the same."""

MAX_BYTES = (1 << 31) - (1 << 20)
"""Bytes of constants: a model is one message of Protocol Buffers, of less than 2 GB."""


@dataclass(frozen=True)
class Call:
    """A call of an operator.

    Attributes
    ----------
    operator : str
    inputs, outputs : list of str
        Names of values.
    attributes : dict
        A loop has a :class:`Body`.
    """

    operator: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Value:
    """A value that goes into a graph or comes out.

    Attributes
    ----------
    name : str
    dtype : dtype
        object for strings.
    shape : tuple of int or str
        Names are for sizes that differ from call to call.
    """

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class Body:
    """What a loop does in each turn.

    Attributes
    ----------
    inputs, outputs : list of Value
        As the operator ``Loop`` orders them.
    calls : list of Call
        Their constants are those of the nodes around the loop.
    """

    inputs: list[Value]
    outputs: list[Value]
    calls: list[Call]


def _numbered() -> Callable[[str], str]:
    """A function that makes names unique by a number."""
    numbers = count()
    return lambda name: f"{name}_{next(numbers)}"


@dataclass
class Nodes:
    """Calls of operators in their order, and the constants they use.

    Attributes
    ----------
    unique : callable
        From a name to one that nothing else has.
    calls : list of Call
    constants : dict of str to ndarray
        Strings have the dtype object.
    """

    unique: Callable[[str], str] = field(default_factory=_numbered)
    calls: list[Call] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)

    def constant(self, name: str, value: Any) -> str:
        """The name of a constant of this value.

        Raises
        ------
        ValueError
            All constants together would be more than a model can hold.
        """
        array = np.asarray(value)
        self.check_room(array.nbytes)
        name = self.unique(name)
        self.constants[name] = array
        return name

    def check_room(self, n_bytes: int) -> None:
        """Refuse more bytes of constants than a model has room for, before they are made."""
        total = n_bytes + sum(array.nbytes for array in self.constants.values())
        if total > MAX_BYTES:
            raise ValueError(
                f"the weights would take {total / 1e9:.1f} GB written out, an ONNX model holds 2 GB: dtype='float32' "
                "takes half, a model of fewer features, classes or labels less"
            )

    def call(self, operator: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Call an operator and return the name of its output, a new one where none is given."""
        output = self.unique(operator.lower()) if output is None else output
        self.calls.append(Call(operator, list(inputs), [output], attributes))
        return output

    def integers(self, *values: int) -> str:
        """A constant vector of integers, for shapes and positions."""
        return self.constant("integers", np.array(values, dtype=np.int64))

    def double(self, value: float) -> str:
        """A constant number in double precision."""
        return self.constant("number", np.float64(value))
