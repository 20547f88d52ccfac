"""The fit of an encoder: what its columns count and measure, settled as scikit-learn's encoders do."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import cache
from itertools import chain, pairwise
from numbers import Integral
from typing import Any

import numpy as np

from hinge import _native
from hinge._encode_columns import Column, column

_LONG_TEXT = 2.0
"""Blanks in a text, on average, from which on a column of strings is taken for texts."""


def fit_columns(
    table: Any, columns: dict[str, Column] | None, options: dict[str, Any], n_threads: int
) -> tuple[Any, dict[str, Column], dict[str, str]]:
    """The native encoder of a table, its columns, and why columns that were not named have their kinds.

    Parameters
    ----------
    table : Table
    columns : dict of Column or None
        None for all columns of the table.
    options : dict
        ``numbering``, ``n_features``, ``alternate_sign``, ``missing``, ``remainder``.
    n_threads : int
    """
    batches = table.batches()
    first = next(batches, None)
    if first is None or (first.n_rows == 0 and not first.types()):
        raise ValueError("the table is empty: an encoder needs a row to see what the columns are")
    columns, guesses = resolve(first, columns, options)
    survey = _native.TableSurvey(json.dumps(_request(columns, options)))
    if survey.needs_rows():
        for batch in chain([first], batches):
            survey.add(batch, n_threads)
    else:
        survey.add_types(first)
    survey.close()
    n_rows, facts = survey.facts()
    if options["numbering"] == "counted" and n_rows == 0:
        raise ValueError("the table has no rows: counted columns are those that occur in the fit")
    for k, (found, fact) in enumerate(zip(columns.values(), facts, strict=True)):
        _settle(survey, k, found, fact, n_rows, n_threads, is_counted=options["numbering"] == "counted")
    return survey.encoder(), columns, guesses


def _request(columns: dict[str, Column], options: dict[str, Any]) -> dict[str, Any]:
    numbering: Any = "counted"
    if options["numbering"] == "hashed":
        numbering = {"hashed": {"n_features": options["n_features"], "alternate_sign": options["alternate_sign"]}}
    has_text = any(found.kind == "text" for found in columns.values())
    return {
        "numbering": numbering,
        "columns": [found.native for found in columns.values()],
        "alphabet": alphabet() if has_text else None,
    }


@cache
def alphabet() -> dict[str, Any]:
    """What this interpreter takes for characters of words, and what it writes otherwise in lower case.

    Lengths of gaps and of ranges in turns, over all code points; surrogates are no characters.
    """
    points = [chr(c) if not 0xD800 <= c < 0xE000 else "\0" for c in range(sys.maxunicode + 1)]
    text = "".join(points)
    capital = "".join("A" if c.lower() != c else " " for c in points)
    return {
        "unicode": unicodedata.unidata_version,
        "words": _ranges(re.finditer(r"\w+", text)),
        "capitals": _ranges(re.finditer("A+", capital)),
    }


def _ranges(matches: Iterable[re.Match[str]]) -> list[int]:
    ends = [0, *(end for match in matches for end in match.span())]
    return [stop - start for start, stop in pairwise(ends)]


def resolve(
    batch: Any, columns: dict[str, Column] | None, options: dict[str, Any]
) -> tuple[dict[str, Column], dict[str, str]]:
    """The columns with their kinds, those that were left open decided by a batch; and why."""
    types = dict(batch.types())
    named = {} if columns is None else dict(columns)
    if columns is None or options["remainder"] == "auto":
        dropped = options["dropped"]
        used = set(named) | dropped
        for name in types:
            if name not in used and not name.startswith("__index_level_"):
                named[name] = Column(name, "auto", {"missing": options["missing"]})
    if not named:
        raise ValueError(f"no column is left to be encoded, the table has {sorted(types) or 'none'}")
    kinds = {name: guess(batch, name, types) for name, found in named.items() if found.kind == "auto"}
    texts = [n for n, found in named.items() if (kinds[n][0] if n in kinds else found.kind) in ("text", "tokens")]
    for name, (kind, _) in kinds.items():
        given = {"missing": named[name].native["missing"]}
        named[name] = column(name, kind, given, options["numbering"], options["missing"], has_prefix=len(texts) > 1)
    return named, {name: why for name, (_, why) in kinds.items()}


def guess(batch: Any, name: str, types: dict[str, str]) -> tuple[str, str]:
    """The kind of a column, and why."""
    if name not in types:
        raise ValueError(f"the table has no column {name!r}, it has {sorted(types)}")
    kind = types[name]
    if kind in ("whole", "real"):
        return "numeric", "its values are numbers"
    if kind == "truth":
        return "numeric", "its values are true or false"
    if kind == "strings":
        return "tokens", "its values are lists of strings"
    if kind == "null":
        return "categorical", "it has no values in the first rows"
    if kind != "text":
        raise ValueError(f"column {name!r}: {kind}; or give it the kind 'drop'")
    if batch.is_dictionary(name):
        return "categorical", "its values are a dictionary's"
    n, n_different, n_blanks = batch.text_sample(name)
    if n and n_blanks >= _LONG_TEXT * n and n_different > n // 2:
        return "text", f"its strings have {n_blanks / n:.1f} blanks each on average"
    return "categorical", f"{n_different} different strings in the first {n}"


def _settle(
    survey: Any, k: int, found: Column, fact: dict[str, Any], n_rows: int, n_threads: int, *, is_counted: bool
) -> None:
    """Decide what the fit of column ``k`` has left open."""
    if found.kind == "numeric":
        _settle_numbers(survey, k, found, fact)
    elif not is_counted:
        return
    elif found.kind in ("text", "tokens"):
        _settle_terms(survey, k, found, n_rows, n_threads)
    else:
        survey.order(k, 0.0, np.inf, n_threads)
        survey.settle(k)


def _settle_numbers(survey: Any, k: int, found: Column, fact: dict[str, Any]) -> None:
    scale = found.native["kind"]["numeric"]
    if scale == "bins":
        survey.settle(k, edges=_inner_edges(found, survey.values(k)).tolist())
    elif scale == "maxabs":
        survey.settle(k, scale=fact["largest"] or 1.0)
    elif scale == "standard":
        n, mean = max(1, fact["count"]), fact["mean"]
        variance = fact["squares"] / n
        if not np.isfinite(variance):
            raise ValueError(f"column {found.name!r}: its numbers are too large for their standard deviation")
        # As StandardScaler: what rounding alone may have made is no spread.
        rounding = np.finfo(np.float64).eps
        is_constant = variance <= n * rounding * variance + (n * mean * rounding) ** 2
        survey.settle(k, scale=1.0 if is_constant else float(np.sqrt(variance)))


def _inner_edges(found: Column, values: np.ndarray) -> np.ndarray:
    """Where bins of about as many values each meet, as KBinsDiscretizer finds it."""
    if len(values) == 0 or values.min() == values.max():
        return np.empty(0)
    levels = np.linspace(0, 100, found.fit["bins"] + 1)
    edges = np.percentile(values, levels, method="averaged_inverted_cdf")
    return edges[np.ediff1d(edges, to_begin=np.inf) > 1e-8][1:-1]


def _settle_terms(survey: Any, k: int, found: Column, n_rows: int, n_threads: int) -> None:
    options = found.fit
    least, most = (
        value if isinstance(value, Integral) else value * n_rows for value in (options["min_df"], options["max_df"])
    )
    if most < least:
        raise ValueError(f"column {found.name!r}: max_df is {most} rows, less than min_df, {least}")
    occurrences, rows = survey.order(k, float(least), float(most), n_threads)
    keep = np.ones(len(rows), dtype=bool)
    if options["max_features"] is not None and len(rows) > options["max_features"]:
        # The very sort of CountVectorizer: it decides which of equally frequent terms are kept.
        keep[:] = False
        weighting = found.native["kind"]["text"][1] if found.kind == "text" else found.native["kind"]["tokens"]
        frequencies = rows if weighting["binary"] else occurrences
        keep[(-frequencies).argsort()[: options["max_features"]]] = True
    if not keep.any():
        raise ValueError(
            f"column {found.name!r}: no term is left; the texts may be empty, or min_df and max_df keep none"
        )
    factors = _idf(rows[keep], n_rows, smooth=options["smooth_idf"]).tolist() if options["use_idf"] else None
    survey.settle(k, keep=keep, factors=factors)


def _idf(rows: np.ndarray, n_rows: int, *, smooth: bool) -> np.ndarray:
    """Inverse document frequencies, in TfidfTransformer's order of operations."""
    frequencies = rows.astype(np.float64) + float(smooth)
    idf = np.full_like(frequencies, n_rows + int(smooth))
    idf /= frequencies
    return np.log(idf) + 1.0
