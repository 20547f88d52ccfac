"""``hinge predict``: LIBLINEAR's ``predict``, in bounded memory; it loads neither SciPy nor scikit-learn."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from hinge import _native
from hinge._commands import letters, model_files
from hinge._commands.letters import Option, whole
from hinge._encode_tables import Table
from hinge._threads import threads

USAGE = "hinge predict [options] TEST MODEL OUT\n       hinge predict [options] --model MODEL --output OUT TEST ..."
ABOUT = (
    "Predicts the rows of TEST, lines of 'label index:value ...', plain or compressed, or a table where the model was "
    "trained on tables, and writes a line per row to "
    "OUT; - is standard input or output. MODEL is a file of LIBLINEAR or of hinge. Rows are read and answered in "
    "pieces of 8 MB of text; features that the model does not know are not looked at."
)
OPTIONS = (
    Option(
        "wants_probabilities",
        "1 writes probabilities behind each label (default 0): for models of logistic regression and calibrated ones",
        letter="b",
        read=whole(0),
        metavar="0|1",
    ),
    Option("is_quiet", "do not print the accuracy", letter="q"),
    Option("threads", "threads (default: all usable cores)", letter="m", word="threads", read=whole(1), metavar="N"),
    Option("zero_based", "indices start at 0", word="zero-based"),
    Option("model", "the model file; all other files are rows then", word="model", read=str, metavar="FILE"),
    Option("out", "where lines are written, with --model", word="output", read=str, metavar="FILE"),
)


def main(arguments: Sequence[str]) -> None:
    """Predict."""
    if "--help" in arguments or "-h" in arguments:
        print(letters.help_text(USAGE, ABOUT, OPTIONS))
        return
    given, files = letters.read(arguments, OPTIONS, "predict")
    tests, model_path, out = _files(given, files)
    if given.get("wants_probabilities", 0) > 1:
        raise ValueError("-b must be 0 or 1")
    answers = Answers(model_files.load(model_path, keeps_order=True), bool(given.get("wants_probabilities")))
    with _writing(out, [*tests, model_path]) as file:
        if answers.takes_tables:
            answers.write_tables(tests, file, threads(given.get("threads")))
        else:
            readers = [_native.TextReader(test, None, bool(given.get("zero_based"))) for test in tests]
            answers.write(readers, file, threads(given.get("threads")))
    if not given.get("is_quiet") and answers.knows_labels:
        print(answers.accuracy(), file=sys.stderr if out == "-" else sys.stdout)


def _files(given: dict[str, Any], files: list[str]) -> tuple[list[str], str, str]:
    if "model" in given or "out" in given:
        if not ("model" in given and "out" in given and files):
            raise ValueError("--model, --output and TEST come together")
        return files, given["model"], given["out"]
    if len(files) != 3:
        raise ValueError(f"expected TEST, MODEL and OUT, got {len(files)} files: see 'hinge predict --help'")
    return files[:1], files[1], files[2]


@contextmanager
def _writing(out: str, sources: list[str]) -> Iterator[BinaryIO]:
    """The file for the lines, which must be none of those that are read."""
    if out == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    for source in sources:
        if os.path.isfile(out) and os.path.isfile(source) and os.path.samefile(out, source):
            raise FileExistsError(17, f"the file to be written is one that is read, {source}", out)
    with open(out, "wb") as file:
        yield file


class Answers:
    """Lines for rows, and how many of their labels were right."""

    def __init__(self, model: Any, wants_probabilities: bool):
        self._model = model
        classes = model.classes_
        # LIBLINEAR's order: of two classes the one of positive values comes first.
        self._is_turned = len(classes) == 2
        self._with_probabilities = wants_probabilities
        if model._head.answer["kind"] == "labels":
            raise ValueError("the model answers with several labels per row, predict writes one: use hinge.load")
        if wants_probabilities and not model._has_probabilities:
            raise ValueError("probability output is only supported for logistic regression and calibrated models")
        self.numbers: np.ndarray | None = classes.astype(np.float64) if classes.dtype.kind in "biuf" else None
        format = "%g" if wants_probabilities else "%.17g"
        texts = [str(c) for c in classes] if self.numbers is None else [format % c for c in self.numbers]
        self._texts = [text.encode() for text in texts]
        self.total = self.correct = 0
        self.knows_labels = self.numbers is not None

    def write(self, readers: Sequence[_native.TextReader], file: BinaryIO, n_threads: int) -> None:
        """Write the lines of all rows."""
        if self._with_probabilities:
            file.write(self._head())
        for reader in readers:
            while (piece := reader.next("float64", n_threads)) is not None:
                indptr, indices, values, n_columns, labels, _ = piece
                rows = _known(indptr, indices, values, n_columns, self._model.n_features_in_)
                ids, lines = self._lines(rows, n_threads)
                self.total += len(ids)
                if self.numbers is not None:
                    self.correct += int((self.numbers[ids] == labels).sum())
                file.write(lines)

    @property
    def takes_tables(self) -> bool:
        """Whether the model takes rows of tables."""
        return self._model._coder is not None

    def write_tables(self, tests: Sequence[str], file: BinaryIO, n_threads: int) -> None:
        """Write the lines of the rows of tables; labels, where the tables have them, are compared."""
        if self._with_probabilities:
            file.write(self._head())
        coder, label = self._model._coder, self._model.metadata.get("label")
        self.knows_labels = label is not None
        for test in tests:
            for batch in Table(test).batches():
                ids, lines = self._lines(coder.rows([batch], n_threads), n_threads)
                file.write(lines)
                self.total += len(ids)
                self.knows_labels = self.knows_labels and any(name == label for name, _ in batch.types())
                if self.knows_labels:
                    given = np.array(batch.values(label), dtype=object)
                    self.correct += int((self._model.classes_[ids].astype(object) == given).sum())

    def _head(self) -> bytes:
        shown = self._model.classes_[::-1] if self._is_turned else self._model.classes_
        integral = self.numbers is not None and (self.numbers == np.trunc(self.numbers)).all()
        names = [str(int(label)) if integral else str(label) for label in shown]
        return f"labels {' '.join(names)}\n".encode()

    def _lines(self, rows: Any, n_threads: int) -> tuple[np.ndarray, bytes]:
        """Numbers of the classes of rows, and their lines."""
        native = self._model._native
        ids = native.classes(rows, n_threads)
        texts = [self._texts[k] for k in ids.tolist()]
        if not self._with_probabilities:
            return ids, b"\n".join([*texts, b""])
        probabilities = np.empty((len(ids), len(self._texts)))
        native.probabilities(rows, n_threads, False, probabilities)
        if self._is_turned:
            probabilities = probabilities[:, ::-1]
        numbers = _native.print_numbers(np.ascontiguousarray(probabilities).ravel(), 6, len(self._texts))
        lines = zip(texts, numbers.split(b"\n"), strict=False)
        return ids, b"".join([b"%b %b\n" % line for line in lines])

    def accuracy(self) -> str:
        """LIBLINEAR's line."""
        share = 100.0 * self.correct / self.total if self.total else float("nan")
        return f"Accuracy = {share:g}% ({self.correct}/{self.total})"


def _known(indptr: Any, indices: Any, values: Any, n_columns: int, n_features: int) -> Any:
    """Rows without the entries of columns that the model does not have."""
    if n_columns > n_features:
        kept = indices < n_features
        indptr = np.concatenate([[0], np.cumsum(kept)])[indptr]
        indices, values = indices[kept], values[kept]
    return indptr.astype(indices.dtype, copy=False), indices, values, n_features
