"""What a golden case gives, and how it is compared with the record.

Two kinds of numbers: *bits*, which must be repeated to the last one (weights, intercepts, counts, the values of C,
decision values, the facets of a plane), and *near* ones (certificates, scores, predictions by SciPy), whose last digits
may change.

**Which machines.** Bits are compared on every machine: sums have a fixed order whatever the vector registers (AVX-512,
AVX2 or none), multiplication and addition are never fused, and exponential and logarithm of the logistic loss are the
package's own. The exception is the C library: dual fits of the logistic loss take the logarithm of their first dual
variables from there, planes without a limit the hypotenuse. Cases that do are marked; where the library's functions
have other bits than on the machine of the record, the bits of these cases are near numbers, too, to ``OTHER_LIBRARY``.
"""

from __future__ import annotations

import hashlib
import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from inputs import units

NEAR = 1e-8
"""Relative to the largest number of the same name."""

OTHER_LIBRARY = 1e-9


MOST = 64
"""Numbers of an array that are recorded: of longer ones some evenly spaced, and a digest of all."""


class Outcome(NamedTuple):
    """Arrays of numbers by name."""

    bits: dict[str, Any]
    near: dict[str, Any]

    def recorded(self) -> tuple[np.ndarray, np.ndarray]:
        """All bits and all near numbers in a row, as the record keeps them."""
        bits, near = ([_sample(value) for value in part.values()] for part in self)
        digests = [_digest(value) for value in self.bits.values()]
        return np.concatenate([digests, *bits]), np.concatenate([np.zeros(0), *near])


def _sample(value: Any) -> np.ndarray:
    numbers = np.asarray(value, dtype=np.float64).ravel()
    return numbers[:: -(-len(numbers) // MOST) or 1]


def _digest(value: Any) -> float:
    """A number of 48 bits from shape and bits of an array."""
    value = np.asarray(value, dtype=np.float64)
    digest = hashlib.sha256(repr(value.shape).encode() + value.tobytes()).digest()
    return float(int.from_bytes(digest[:6], "little"))


def of_model(model: Any) -> Outcome:
    """A fitted estimator."""
    coef = model.coef_
    if sp.issparse(coef):
        weights = {"coef_.data": coef.data, "coef_.indices": coef.indices, "coef_.indptr": coef.indptr}
    else:
        weights = {"coef_": coef}
    certificate = model.certificate_
    return Outcome(
        weights | {"intercept_": model.intercept_, "n_iter_": model.n_iter_, "converged": certificate.converged},
        {"primal": certificate.primal, "dual": certificate.dual},
    )


def of_search(search: Any) -> Outcome:
    """A search that kept its decision values."""
    return Outcome(
        {"Cs": search.Cs, "C": search.C, "n_iter": search.n_iter, "decisions": search.decisions},
        {"mean": search.mean, "objective": search.objective},
    )


def of_stream(model: Any) -> Outcome:
    """An estimator in the middle of a stream."""
    stream = model.stream_
    return Outcome(
        {
            "coef_": model.coef_,
            "intercept_": model.intercept_,
            "n_seen": stream.n_seen,
            "n_cached": stream.n_cached,
        },
        {"dual": stream.dual},
    )


def differences(found: Outcome, record: tuple[np.ndarray, np.ndarray], *, has_same_library: bool) -> list[str]:
    """What differs from the record, a sentence for each name; empty if nothing does."""
    bits, near = found.recorded()
    if (len(bits), len(near)) != tuple(map(len, record)):
        return [f"{len(bits)} and {len(near)} numbers were found, {len(record[0])} and {len(record[1])} are recorded"]
    n = len(found.bits)
    if has_same_library:
        changed = {name for name, here, there in zip(found.bits, bits[:n], record[0][:n], strict=True) if here != there}
        lines = _lines({name: found.bits[name] for name in found.bits}, record[0][n:], 0.0)
        seen = {line.split(":")[0] for line in lines}
        lines += [f"{name}: some number differs, not of those that are recorded" for name in sorted(changed - seen)]
    else:
        lines = _lines(found.bits, record[0][n:], OTHER_LIBRARY)
    return lines + _lines(found.near, record[1], NEAR)


def _lines(part: dict[str, Any], recorded: np.ndarray, tolerance: float) -> list[str]:
    lines, start = [], 0
    for name, value in part.items():
        sample = _sample(value)
        line = _difference(sample, recorded[start : start + len(sample)], tolerance)
        lines += [f"{name}: {line}"] if line else []
        start += len(sample)
    return lines


def _difference(found: np.ndarray, there: np.ndarray, tolerance: float) -> str:
    if tolerance == 0.0:
        differs = found.view(np.uint64) != there.view(np.uint64)
    else:
        scale = np.max(np.abs(there), initial=0.0, where=np.isfinite(there))
        differs = ~np.isclose(found, there, rtol=0.0, atol=tolerance * scale, equal_nan=True)
    if not differs.any():
        return ""
    k = int(differs.argmax())
    error = np.nanmax(np.abs(found - there)[differs])
    return (
        f"{differs.sum()} of {len(there)} recorded numbers differ, by {error:.2e} at most; "
        f"number {k} is {found[k]!r}, recorded is {there[k]!r}"
    )


@cache
def library_digest() -> str:
    """The bits of those functions of the C library that the package uses.

    Two logarithms of one library, with fused multiply-add and without, differ in one of 4,000 numbers near 1, and in
    fewer elsewhere.
    """
    u = units(80_000, 77)
    logarithms = [math.log(number) for number in (0.9 + 0.2 * u).tolist() + (8.0 * u[:20_000] + 1e-9).tolist()]
    return hashlib.sha256(np.array(logarithms).tobytes() + np.hypot(u, 1.0 - u).tobytes()).hexdigest()[:16]
