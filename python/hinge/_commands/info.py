"""``hinge info``: what a model file says."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from hinge._commands import model_files

_SHOWN = 10
"""Classes that are listed."""


def add_options(parser: ArgumentParser) -> None:
    """Add the option."""
    parser.set_defaults(run=_info)
    parser.add_argument("model", metavar="MODEL", help="a model file of hinge or LIBLINEAR")


def _info(model: str) -> None:
    predictor = model_files.load(model)
    parts = predictor._parts()
    for name, value in _facts(model_files.kind_of(model), parts):
        print(f"{name:18} {value}")


def _facts(kind: str, parts: Any) -> list[tuple[str, str]]:
    record, classes = parts.record, parts.classes.tolist()
    shown = ", ".join(map(str, classes[:_SHOWN]))
    more = f" and {len(classes) - _SHOWN} more" if len(classes) > _SHOWN else ""
    facts = [
        ("format", {"hinge": "hinge", "liblinear": "LIBLINEAR"}[kind]),
        ("estimator", f"{record['estimator']} {record['version']}".strip()),
        ("features", str(parts.n_features)),
        ("classes", f"{len(classes)}: {shown}{more}"),
        ("answer", parts.answer["kind"].replace("_", " ")),
        ("probabilities", "none" if parts.probability is None else parts.probability["kind"]),
        ("degree", "1" if parts.pairs is None else "2"),
    ]
    for group in ("parameters", "data", "metadata"):
        facts += [(name, _short(value)) for name, value in sorted(record[group].items())]
    certificate = record["fitted"].get("certificate_")
    if certificate is not None:
        facts += [(name, _short(value)) for name, value in certificate.get("fields", certificate).items()]
    return facts


def _short(value: Any) -> str:
    if isinstance(value, dict):  # arrays and tuples with their types
        value = value.get("values", value.get("$tuple", value))
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
