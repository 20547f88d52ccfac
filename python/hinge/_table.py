"""How a search looks: as text, in a notebook, as a data frame, as a picture."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from hinge._choice import std_error


def frame(search: Any) -> Any:
    """See :meth:`hinge.CSearch.to_frame`."""
    import pandas as pd

    columns = {"C": search.Cs, "mean": search.mean, "std_error": search.std_error}
    columns |= {f"fold_{k}": search.scores[:, k] for k in range(search.n_folds)}
    for name in _others(search):
        scores = search.all_scores[name]
        columns |= {f"mean_{name}": scores.mean(axis=1), f"std_error_{name}": std_error(scores, search.repeats)}
    columns["objective"] = search.objective.sum(axis=(1, 2))
    if search.n_nonzero is not None:
        columns["n_nonzero"] = search.n_nonzero.mean(axis=1)
    names = ("seconds", "passes", "n_iter", "n_inner", "unchanged", "unchanged_until", "converged", "replayed")
    return pd.DataFrame(columns | {name: getattr(search, name) for name in names})


def plot(search: Any, ax: Any = None) -> Any:
    """See :meth:`hinge.CSearch.plot`."""
    ax = _axes(ax)
    mean, error = search.mean, np.nan_to_num(search.std_error)
    ax.fill_between(search.Cs, mean - error, mean + error, alpha=0.25, linewidth=0)
    ax.plot(search.Cs, mean, marker="o", markersize=3)
    ax.axvline(search.best_C, linestyle="--", linewidth=1, color="black", label="best")
    if search.choose == "one_se":
        ax.axvline(search.one_se_C, linestyle=":", linewidth=1.5, color="black", label="within one standard error")
        ax.legend()
    ax.set_xscale("log", base=2)
    ax.set_xlabel("C")
    ax.set_ylabel(f"mean {search.scorer} on held-out folds")
    ax.set_title(_choice(search) + (", partial" if search.is_partial else ""))
    return ax


def plot_coefs(search: Any, ax: Any, problem: int, n_features: int) -> Any:
    """See :meth:`hinge.CSearch.plot_coefs`."""
    n_problems = search.coefs[0].shape[0] // search.n_folds
    weights = np.array([np.asarray(coefs[problem::n_problems].mean(axis=0)).ravel() for coefs in search.coefs])
    largest = np.argsort(-np.abs(weights).max(axis=0), kind="stable")[:n_features]
    ax = _axes(ax)
    ax.plot(search.Cs, weights[:, largest], linewidth=1)
    ax.axvline(search.C, linestyle="--", linewidth=1, color="black", label="chosen")
    ax.axhline(0.0, linewidth=0.5, color="black")
    ax.set_xscale("log", base=2)
    ax.set_xlabel("C")
    ax.set_ylabel("weight, mean over folds")
    ax.set_title(f"the {len(largest)} features of the largest weights")
    return ax


def _axes(ax: Any) -> Any:
    """The given axes, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise ImportError("pictures need matplotlib: pip install hinge[plot]") from missing
    return Figure(figsize=(7, 4.5), layout="constrained").add_subplot()


def text(search: Any) -> str:
    """A line about the search, a line of names, a line per C: ``*`` is the chosen one, ``+`` the best if another."""
    header, rows = _cells(search)
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    marks = {search.best_index: "+", search.index: "*"}
    lines = [f"CSearch: {_about(search)}", " " + _line(header, widths)]
    lines += [marks.get(k, " ") + _line(row, widths) for k, row in enumerate(rows)]
    return "\n".join(lines)


def html(search: Any) -> str:
    """The same as a table, the chosen row in bold."""
    header, rows = _cells(search)
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = []
    for k, row in enumerate(rows):
        style = ' style="font-weight: bold"' if k == search.index else ""
        body.append(f"<tr{style}>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>")
    return (
        f"<div><p><b>CSearch</b>: {escape(_about(search))}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def _others(search: Any) -> list[str]:
    """Scorers that do not choose."""
    return [name for name in search.all_scores if name != search.scorer]


def _choice(search: Any) -> str:
    best = f"best C = {search.best_C:g}, {search.scorer} {search.best_score:.4f}"
    return f"C = {search.C:g} within one standard error; {best}" if search.choose == "one_se" else best


def _about(search: Any) -> str:
    partial = "partial, stopped" if search.is_partial else "ended"
    return (
        f"{_choice(search)}; {len(search.Cs)} values, {search.n_folds} folds, {search.seconds.sum():.2f} s, "
        f"{partial} by {search.stopped_by}"
    )


def _cells(search: Any) -> tuple[list[str], list[list[str]]]:
    others = {name: search.all_scores[name].mean(axis=1) for name in _others(search)}
    is_sparse = search.n_nonzero is not None
    header = ["C", search.scorer, "+- error", *others, *(["nonzero"] if is_sparse else []), "passes", "seconds", ""]
    rows = []
    for k, C in enumerate(search.Cs):
        scores = (search.mean[k], search.std_error[k], *(mean[k] for mean in others.values()))
        effort = (f"{search.passes[k]:.0f}", f"{search.seconds[k]:.3f}", _remark(search, k))
        nonzero = [f"{search.n_nonzero[k].mean():.1f}"] if is_sparse else []
        rows.append([f"{C:.5g}", *(f"{score:.4f}" for score in scores), *nonzero, *effort])
    return header, rows


def _remark(search: Any, k: int) -> str:
    remarks = {
        "unchanged": search.unchanged[k],
        "not converged": not search.converged[k] and not search.unchanged[k],
        "replayed": search.replayed[k],
    }
    return ", ".join(remark for remark, holds in remarks.items() if holds)


def _line(cells: list[str], widths: list[int]) -> str:
    *numbers, remark = zip(cells, widths, strict=True)
    return ("  ".join(cell.rjust(width) for cell, width in numbers) + f"  {remark[0]}").rstrip()
