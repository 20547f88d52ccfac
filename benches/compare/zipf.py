"""Synthetic documents of any size, for growth curves: words by Zipf's law, half as many words as documents.

A document draws about 82 words (Poisson) with probabilities proportional to 1 / (rank + 2); values are
log(1 + count), rows have unit norm. The label is the sign of a planted linear function, turned for one document in
twenty. Rows come in chunks of their own seeds, so that a set needs little more memory than itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

WORDS_PER_DOCUMENT = 82
# Drawn words that are left when repeated ones are counted, on average: sizes are aimed at, not met exactly.
DISTINCT = 0.82
DOCUMENTS_PER_WORD = 2
FLIPPED = 0.05
CHUNK = 20_000


def zipf(nnz: float, seed: int = 0) -> tuple[sp.csr_matrix, np.ndarray]:
    """A float32 CSR matrix of about ``nnz`` nonzeros with int32 indices, and labels -1/+1."""
    n_rows = max(10, round(nnz / (WORDS_PER_DOCUMENT * DISTINCT)))
    n_columns = max(10, n_rows // DOCUMENTS_PER_WORD)
    weights = np.random.default_rng(seed).standard_normal(n_columns)
    parts = list(_chunks(n_rows, n_columns, weights, seed))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([part[0] for part in parts]))])
    indices, data, labels = (np.concatenate([part[k] for part in parts]) for k in (1, 2, 3))
    return sp.csr_matrix((data, indices, indptr.astype(np.int32)), shape=(n_rows, n_columns)), labels


def _chunks(n_rows: int, n_columns: int, weights: np.ndarray, seed: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Row lengths, indices, values and labels of some rows at a time."""
    reach = np.cumsum(1.0 / (np.arange(n_columns) + 2.0))
    # Words get their numbers in no particular order, as a vectoriser gives them.
    number_of = np.random.default_rng([seed, 1]).permutation(n_columns)
    for k, start in enumerate(range(0, n_rows, CHUNK)):
        random = np.random.default_rng([seed, 2, k])
        n = min(CHUNK, n_rows - start)
        rows = np.repeat(np.arange(n), np.maximum(1, random.poisson(WORDS_PER_DOCUMENT, n)))
        words = number_of[np.searchsorted(reach, random.random(len(rows)) * reach[-1])]
        keys, counts = np.unique(rows * n_columns + words, return_counts=True)
        rows, words = np.divmod(keys, n_columns)
        values = np.log1p(counts)
        values /= np.sqrt(np.bincount(rows, values**2, n))[rows]
        signs = np.where(np.bincount(rows, values * weights[words], n) >= 0, 1.0, -1.0)
        signs[random.random(n) < FLIPPED] *= -1.0
        yield np.bincount(rows, minlength=n), words.astype(np.int32), values.astype(np.float32), signs
