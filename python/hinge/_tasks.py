"""The data of the demonstration: docstrings of the installed packages, or a file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, train_test_split

from hinge import _docstrings
from hinge.svmlight import load_svmlight

N_FOLDS = 3
"""Folds of the search: few, so that a demonstration stays short."""

HOLD_OUT = 5
"""One row of so many is held out; also the rows of the smallest class that can be split."""

SEED = 0
"""Of every split."""

Folds = list[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Task:
    """A part to train on with its folds, and a part held out until the end.

    Attributes
    ----------
    about : tuple of str
        What the data are, line by line.
    X, X_test : csr_matrix of shape (n_samples, n_features), (n_test, n_features)
        Features.
    y, y_test : ndarray of shape (n_samples,), (n_test,)
        Classes.
    folds : list of (ndarray, ndarray)
        Row numbers to train and to score on, within ``X``.

    """

    about: tuple[str, ...]
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray
    folds: Folds

    @property
    def majority(self) -> float:
        """Held-out accuracy of the best guess that is always the same class."""
        _, counts = np.unique(self.y_test, return_counts=True)
        return float(counts.max() / counts.sum())


def docstring_task() -> Task:
    """Docstrings of the installed packages as frequencies of words and pairs of words."""
    data = _docstrings.collect(_docstrings.installed_folders())
    if len(set(data.packages)) < 2:
        raise ValueError("fewer than 2 installed packages have enough docstrings in source form: give a file")
    texts, y, files = np.array(data.texts, dtype=object), np.array(data.packages), np.array(data.files)
    train, test = _split_by_file(y, files, HOLD_OUT)[0]
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True, dtype=np.float32)
    X = vectorizer.fit_transform(texts[train])
    about = (
        "docstrings of the packages installed here; the class is the package, names of packages are removed",
        "TF-IDF of words and pairs of words; no source file is on both sides of a split",
    )
    folds = _split_by_file(y[train], files[train], N_FOLDS)
    return Task(about, X, y[train], vectorizer.transform(texts[test]), y[test], folds)


def source_name(file: str) -> str:
    """What a file is called."""
    return "standard input" if file == "-" else file


def file_task(file: str, n_jobs: int) -> Task:
    """An svmlight file; classes that are too small to be split are left out."""
    X, y = load_svmlight(file, n_jobs=n_jobs)
    _, ids, counts = np.unique(y, return_inverse=True, return_counts=True)
    large = counts >= HOLD_OUT
    if large.sum() < 2:
        raise ValueError(f"{source_name(file)}: expected 2 or more labels with at least {HOLD_OUT} rows each")
    about: tuple[str, ...] = (source_name(file),)
    if not large.all():
        about += (f"left out: classes of fewer than {HOLD_OUT} rows ({(~large).sum()})",)
    rows = np.flatnonzero(large[ids])
    train, test = train_test_split(rows, test_size=1 / HOLD_OUT, stratify=y[rows], random_state=SEED)
    splitter = StratifiedKFold(N_FOLDS, shuffle=True, random_state=SEED)
    return Task(about, X[train], y[train], X[test], y[test], list(splitter.split(train, y[train])))


def _split_by_file(y: np.ndarray, files: np.ndarray, n_parts: int) -> Folds:
    splitter = StratifiedGroupKFold(n_parts, shuffle=True, random_state=SEED)
    return list(splitter.split(y, y, files))
