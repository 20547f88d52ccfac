"""``python -m hinge blocks``: compressed stores of data sets that are larger than memory."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from hinge._console import console
from hinge.blocks import BlockStore


def add_options(parser: ArgumentParser) -> None:
    """Add the commands for stores."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    about = "Make a store from svmlight, .npz or Parquet files."
    build = commands.add_parser("build", help=about, description=about)
    build.set_defaults(run=_build)
    build.add_argument(
        "sources", nargs="+", metavar="SOURCE", help="files or patterns of one kind; - is standard input"
    )
    about = "the file to be made; a store that is there is replaced, another file is kept"
    build.add_argument("store", metavar="STORE", help=about)
    about = "replace a file that is no store, too (a source never is)"
    build.add_argument("--force", action="store_true", help=about)
    build.add_argument("--no-relabel", dest="relabel", action="store_false", help="keep the numbers of the columns")
    build.add_argument("--blocks", type=int, metavar="N", help="number of blocks (default: 64)")
    build.add_argument("--features", type=int, metavar="N", help="number of columns (default: the largest that occurs)")
    about = "svmlight: whether indices start at 0 (default: found out from the beginning)"
    build.add_argument("--zero-based", choices=("yes", "no"), help=about)
    build.add_argument("--label", metavar="NAME", help="Parquet: column of the labels")
    build.add_argument("--indices", metavar="NAME", help="Parquet: list column of the indices")
    build.add_argument("--values", metavar="NAME", help="Parquet: list column of the values")
    build.add_argument("--hash", metavar="NAME", nargs="+", help="Parquet: plain columns to be hashed")
    build.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the blocks (default: 0)")
    build.add_argument("--jobs", type=int, metavar="N", help="threads (default: all usable cores)")
    about = "Show what a store says about itself."
    info = commands.add_parser("info", help=about, description=about)
    info.set_defaults(run=_info)
    info.add_argument("store", metavar="STORE")
    about = "Read and check every byte of a store; exit code 1 if it is damaged."
    verify = commands.add_parser("verify", help=about, description=about)
    verify.set_defaults(run=_verify)
    verify.add_argument("store", metavar="STORE")
    verify.add_argument("--jobs", type=int, metavar="N", help="threads (default: all usable cores)")


def _build(sources: list[str], store: str, **given: Any) -> None:
    if store == "-":
        raise ValueError("STORE must be the name of a file, got '-': a store cannot go to standard output")
    columns = {
        "label": given["label"],
        "indices": given["indices"],
        "values": given["values"],
        "features": given["hash"],
    }
    columns = {name: value for name, value in columns.items() if value is not None}
    base: dict[str | None, bool | str] = {"yes": True, "no": False, None: "auto"}
    options = {} if given["blocks"] is None else {"n_blocks": given["blocks"]}
    made = BlockStore.build(
        sources,
        store,
        relabel=given["relabel"],
        n_features=given["features"],
        zero_based=base[given["zero_based"]],
        columns=columns or None,
        overwrite=given["force"],
        random_state=given["seed"],
        n_jobs=given["jobs"],
        verbose=1,
        **options,
    )
    _show(made)


def _info(store: str) -> None:
    _show(BlockStore(store))


def _verify(store: str, jobs: int | None) -> None:
    BlockStore(store).verify(n_jobs=jobs, verbose=1)
    console().line(f"{store}: whole")


def _show(store: BlockStore) -> None:
    for name, value in store.info().items():
        if name in ("classes", "class_rows", "class_weight") and len(value) > 10:
            value = f"{value[:10]} and {len(value) - 10} more"
        console().line(f"{name:18} {value}")
