"""How training on blocks is to be done, for those who want it otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from hinge import _checks, _native
from hinge._declared import Parameter, declared, one_of, table

CACHES = ("auto", "gradient", "projected", "steepest", "random", "none")
WAITING = ("rest", "train")
DUALS = ("auto", "memory", "file")


def _share(name: str, value: Any) -> float | None:
    if isinstance(value, str) and value == "auto":
        return None
    if not isinstance(value, Real) or not 0 <= float(value) <= 0.9:
        raise ValueError(f"{name} must be 'auto' or a number from 0 to 0.9, got {value!r}")
    return float(value)


def _seconds(name: str, value: Any) -> float:
    if not isinstance(value, Real) or not float(value) >= 0:
        raise ValueError(f"{name} must be a number of at least 0, got {value!r}")
    return float(value)


_OPTIONS = table(
    one_of("cache", CACHES).means("""
        Which rows stay in memory: "projected" those least certain to stay at their bound, the first score of
        Chang, Roth 2011, section 2.2 (with ``multi_class="crammer_singer"`` those with the least part of their dual
        variables shrunken, section 3); "steepest", their second score, those with the largest gradient into the box of
        their dual variable (not with "crammer_singer"); "gradient" those near the margin, a rule of this package;
        "random" a random choice; "none" no rows. "auto" is "steepest", and with "crammer_singer" "projected".
    """),
    Parameter("cache_share", '"auto" or float', "auto", _share).means("""
        Share of the memory for rows that the cache has, from 0 to 0.9. "auto" is a third where this holds a tenth of
        the rows or more, else half.
    """),
    Parameter("rounds", "int", _native.DEFAULT_ROUNDS, _checks.at_least(1)).means("Epochs per loaded block."),
    Parameter("round_tol", "float", 0.0, _checks.not_negative).means(
        "Largest spread of the projected gradients at which the epochs on a block end early; 0 for never."
    ),
    Parameter("keep_compressed", "bool", True, _checks.truth).means(
        "Whether the compressed file is kept in memory if it fits, so that the disk is read once."
    ),
    one_of("while_reading", WAITING).means("""
        What a fit does that is faster than the disk: "rest" waits, which keeps the bits; "train" goes on with the
        cached rows and is never idle, with results that differ within ``tol``.
    """),
    one_of("duals", DUALS).means("""
        Where the dual variables are: in "memory", or in a "file" beside the checkpoint or in the system's temporary
        folder; "auto" takes a file where that saves readings of the store; with ``multi_class="crammer_singer"``
        where the memory is too small otherwise.
    """),
    Parameter("in_memory", "bool", None, _checks.optional(_checks.truth)).means(
        "Whether to fit all rows in memory, without blocks; None if they fit."
    ),
    Parameter("checkpoint_seconds", "float", 60.0, _seconds).means(
        "Least seconds between two states that are written to ``checkpoint``."
    ),
)


@declared(_OPTIONS)
@dataclass(frozen=True, kw_only=True)
class BlockOptions:
    """How to train on a :class:`BlockStore`: ``block_options`` of the estimators, for experts.

    The defaults suit nearly all data; ``memory_budget`` is what matters.

    Parameters
    ----------
    {parameters}

    Raises
    ------
    ValueError
        An option that is not possible.

    Examples
    --------
    >>> from hinge import BlockOptions, LinearSVC
    >>> model = LinearSVC(memory_budget="2GB", block_options=BlockOptions(rounds=5, duals="memory"))
    """

    cache: str = "auto"
    cache_share: str | float = "auto"
    rounds: int = _native.DEFAULT_ROUNDS
    round_tol: float = 0.0
    keep_compressed: bool = True
    while_reading: str = "rest"
    duals: str = "auto"
    in_memory: bool | None = None
    checkpoint_seconds: float = 60.0

    def __post_init__(self) -> None:
        self.native()

    def native(self) -> dict[str, Any]:
        """The options as the native module takes them."""
        return {name: _OPTIONS[name].check(f"block_options[{name!r}]", value) for name, value in vars(self).items()}


_DEFAULTS = BlockOptions().native()


def block_options(name: str, value: Any) -> dict[str, Any]:
    """The native options that None, a dict of some, or all of them stand for."""
    if value is None:
        return _DEFAULTS
    if isinstance(value, BlockOptions):
        return value.native()
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a dict, BlockOptions or None, got {value!r}")
    for key in value:
        if key not in _OPTIONS:
            raise ValueError(f"{name} knows {sorted(_OPTIONS)}, got {key!r}")
    return BlockOptions(**value).native()
