"""``hinge convert``: model files from one format into another."""

from __future__ import annotations

from argparse import ArgumentParser

from hinge._commands import model_files


def add_options(parser: ArgumentParser) -> None:
    """Add the options."""
    parser.set_defaults(run=_convert)
    parser.add_argument("model", metavar="IN", help="a model file of hinge or LIBLINEAR")
    parser.add_argument("out", metavar="OUT", help="the file to be written")
    about = "format of OUT (default: by its name, hinge for *.hinge, onnx for *.onnx, else liblinear)"
    parser.add_argument("--format", choices=("liblinear", "hinge", "onnx"), help=about)
    parser.add_argument("--force", action="store_true", help="replace a file that is of another kind")


def _convert(model: str, out: str, format: str | None, force: bool) -> None:
    predictor = model_files.load(model)
    model_files.save(predictor, out, format or model_files.format_of(out), overwrite=force)
