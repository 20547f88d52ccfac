"""What a user says of the columns of a table, checked, and as the native module takes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

from hinge import _checks

KINDS = ("auto", "categorical", "cross", "drop", "numeric", "text", "tokens")

_TERMS = (
    "binary",
    "max_df",
    "max_features",
    "min_df",
    "norm",
    "prefix",
    "smooth_idf",
    "sublinear_tf",
    "use_idf",
)
"""Options of columns that fall into terms."""

_COUNTED_ONLY = {
    "min_df": 1,
    "max_df": 1.0,
    "max_features": None,
    "use_idf": False,
    "smooth_idf": True,
    "sublinear_tf": False,
}
"""Options that need counts, and what they are without."""

_OPTIONS: dict[str, tuple[str, ...]] = {
    "auto": ("missing",),
    "drop": (),
    "numeric": ("missing", "scale", "bins"),
    "categorical": ("missing", "handle_unknown"),
    "cross": ("missing", "columns"),
    "tokens": ("missing", *_TERMS),
    "text": ("missing", "analyzer", "ngrams", "lowercase", "token_pattern", "stop_words", *_TERMS),
}

_PATTERNS = {r"(?u)\b\w\w+\b": "words", r"(?u)\b\w+\b": "short_words", r"\S+": "blanks"}
_ANALYZERS = {"char": "chars", "char_wb": "chars_in_words"}
_SCALES = {None: "none", "standard": "standard", "maxabs": "maxabs"}
_NORMS = {None: "none", "l1": "l1", "l2": "l2"}


@dataclass
class Column:
    """A column of an encoder.

    Attributes
    ----------
    name : str
    kind : str
        One of ``KINDS`` but "drop".
    native : dict
        What the native module is told of it; nothing while the kind is "auto".
    fit : dict
        Options that only a fit reads.
    """

    name: str
    kind: str
    native: dict[str, Any] = field(default_factory=dict)
    fit: dict[str, Any] = field(default_factory=dict)

    @property
    def reads(self) -> list[str]:
        """The columns of the table that it reads."""
        return list(self.native["kind"]["cross"]["columns"]) if self.kind == "cross" else [self.name]


def check_columns(columns: Any, numbering: str, missing: str) -> dict[str, Column] | None:
    """The columns that a user has named, in their order; None for all columns of the table."""
    if isinstance(columns, str):
        if columns != "auto":
            raise ValueError(f"columns must be 'auto' or a dict of names and kinds, got {columns!r}")
        return None
    if not isinstance(columns, Mapping) or not columns:
        raise ValueError(f"columns must be 'auto' or a dict of names and kinds with an entry at least, got {columns!r}")
    texts = [name for name, given in columns.items() if _kind(name, given)[0] in ("text", "tokens")]
    found = {}
    for name, given in columns.items():
        kind, options = _kind(name, given)
        if kind != "drop":
            found[name] = column(name, kind, options, numbering, missing, has_prefix=len(texts) > 1)
    return found


def _kind(name: Any, given: Any) -> tuple[str, dict[str, Any]]:
    if not isinstance(name, str):
        raise TypeError(f"columns has the key {name!r}: names of columns are strings")
    options = dict(given) if isinstance(given, Mapping) else {"kind": given}
    kind = options.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(
            f"columns[{name!r}] must be one of {list(KINDS)}, or a dict with such a 'kind' and options, got {given!r}"
        )
    unknown = sorted(str(option) for option in set(options) - set(_OPTIONS[kind]))
    if unknown:
        known = sorted(_OPTIONS[kind]) or "none"
        raise ValueError(f"columns[{name!r}]: a column of kind {kind!r} has no option {unknown[0]!r}, it has {known}")
    return kind, options


def column(name: str, kind: str, options: dict[str, Any], numbering: str, missing: str, *, has_prefix: bool) -> Column:
    """A column from its kind and options."""
    where = f"columns[{name!r}]"
    own = _checks.choice(f"{where}['missing']", options.get("missing", missing), ("own", "zero"))
    native: dict[str, Any] = {"name": name, "missing": own}
    fit: dict[str, Any] = {}
    if kind == "numeric":
        native["kind"], fit = {"numeric": _scale(where, options)}, {"bins": options.get("bins")}
    elif kind == "categorical":
        unknown = _checks.choice(
            f"{where}['handle_unknown']", options.get("handle_unknown", "ignore"), ("error", "ignore")
        )
        native["kind"] = {"categorical": {"refuses_unknown": unknown == "error"}}
    elif kind == "cross":
        native["kind"] = {"cross": {"columns": _crossed(where, options)}}
    elif kind in ("text", "tokens"):
        is_text = kind == "text"
        weighting, fit = _weighting(where, name, options, numbering, is_text=is_text, has_prefix=has_prefix)
        native["kind"] = {"text": [_text(where, options), weighting]} if is_text else {"tokens": weighting}
    return Column(name, kind, native, fit)


def _scale(where: str, options: dict[str, Any]) -> str:
    scale, bins = options.get("scale"), options.get("bins")
    if scale not in _SCALES:
        raise ValueError(f"{where}['scale'] must be None, 'standard' or 'maxabs', got {scale!r}")
    if bins is None:
        return _SCALES[scale]
    _checks.whole(f"{where}['bins']", bins, 2)
    if scale is not None:
        raise ValueError(f"{where}: a column is scaled or cut into bins, not both")
    return "bins"


def _crossed(where: str, options: dict[str, Any]) -> list[str]:
    columns = options.get("columns")
    if not isinstance(columns, (list, tuple)) or len(columns) < 2 or not all(isinstance(name, str) for name in columns):
        raise ValueError(f"{where}['columns'] must be a list of the names of two columns or more, got {columns!r}")
    return list(columns)


def _text(where: str, options: dict[str, Any]) -> dict[str, Any]:
    analyzer = _checks.choice(f"{where}['analyzer']", options.get("analyzer", "word"), ("char", "char_wb", "word"))
    pattern = options.get("token_pattern", next(iter(_PATTERNS)))
    if pattern not in _PATTERNS:
        raise ValueError(
            f"{where}['token_pattern'] must be one of {list(_PATTERNS)}, got {pattern!r}: others would not mean the "
            "same to every regular-expression library; make tokens of the texts yourself, and a column of kind 'tokens'"
        )
    if analyzer != "word" and ("token_pattern" in options or options.get("stop_words")):
        raise ValueError(f"{where}: token_pattern and stop_words belong to words, the analyzer is {analyzer!r}")
    return {
        "analyzer": _ANALYZERS.get(analyzer, _PATTERNS[pattern]),
        "ngrams": _ngrams(where, options.get("ngrams", (1, 1))),
        "lowercase": _checks.truth(f"{where}['lowercase']", options.get("lowercase", True)),
        "stop_words": _stop_words(where, options.get("stop_words")),
    }


def _ngrams(where: str, ngrams: Any) -> list[int]:
    is_pair = isinstance(ngrams, (tuple, list)) and len(ngrams) == 2 and all(_checks.is_number(n) for n in ngrams)
    if not is_pair or not 1 <= ngrams[0] <= ngrams[1]:
        raise ValueError(f"{where}['ngrams'] must be (least, most) with 1 <= least <= most, got {ngrams!r}")
    return [int(n) for n in ngrams]


def _stop_words(where: str, words: Any) -> list[str]:
    if words is None:
        return []
    if isinstance(words, str) or not isinstance(words, Iterable) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{where}['stop_words'] must be None or a list of words, got {words!r}")
    return sorted(set(words))


def _weighting(
    where: str, name: str, options: dict[str, Any], numbering: str, *, is_text: bool, has_prefix: bool
) -> tuple[dict[str, Any], dict[str, Any]]:
    """How terms are weighted: in the encoder, and for the fit."""
    is_counted = numbering == "counted"
    for option, off in _COUNTED_ONLY.items():
        if not is_counted and options.get(option, off) != off:
            raise ValueError(f"{where}[{option!r}] needs numbering='counted': hashed terms are not counted in the fit")
    norm = options.get("norm", "l2" if is_text else None)
    if norm not in _NORMS:
        raise ValueError(f"{where}['norm'] must be None, 'l1' or 'l2', got {norm!r}")
    prefix = options.get("prefix", f"{name}=" if has_prefix and not is_counted else "")
    if not isinstance(prefix, str) or (prefix and is_counted):
        raise ValueError(f"{where}['prefix'] must be a string, and goes with numbering='hashed', got {prefix!r}")
    weighting = {
        "binary": _checks.truth(f"{where}['binary']", options.get("binary", False)),
        "sublinear": _checks.truth(f"{where}['sublinear_tf']", options.get("sublinear_tf", False)),
        "norm": _NORMS[norm],
        "prefix": prefix,
    }
    limit = options.get("max_features")
    fit = {
        "min_df": _share(where, "min_df", options.get("min_df", 1)),
        "max_df": _share(where, "max_df", options.get("max_df", 1.0)),
        "max_features": None if limit is None else _checks.whole(f"{where}['max_features']", limit, 1),
        "use_idf": _checks.truth(f"{where}['use_idf']", options.get("use_idf", is_text and is_counted)),
        "smooth_idf": _checks.truth(f"{where}['smooth_idf']", options.get("smooth_idf", True)),
    }
    return weighting, fit


def _share(where: str, option: str, value: Any) -> Any:
    """A number of rows, or a share of them."""
    is_count = _checks.is_number(value) and int(value) >= 1
    if not is_count and not (_checks.is_real(value) and not isinstance(value, Integral) and 0.0 <= value <= 1.0):
        raise ValueError(
            f"{where}[{option!r}] must be a whole number of rows from 1 on, or a share of them from 0.0 to 1.0, "
            f"got {value!r}"
        )
    return value
