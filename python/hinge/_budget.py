"""Amounts of memory as users write them."""

from __future__ import annotations

import os
import re
from numbers import Real
from typing import Any

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}

_RULE = "a number of bytes above 0 or text such as '500MB', '2GB' or '1.5GiB'"


def budget(value: Any) -> int:
    """Bytes of a ``memory_budget``; None is half of the memory that is available now."""
    if value is None:
        return max(available() // 2, 1)
    if isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < 2**62:
        return int(float(value))
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?)b?\s*", value.lower())
        if match and match[2] in _UNITS and 0 < float(match[1]) * _UNITS[match[2]] < 2**62:
            return int(float(match[1]) * _UNITS[match[2]])
    raise ValueError(f"memory_budget must be {_RULE}, got {value!r}")


def available() -> int:
    """Bytes that can be used without swapping, as far as the system tells; 4 GB where it does not."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (AttributeError, OSError, ValueError):
        return 4 * 10**9
