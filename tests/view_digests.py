"""What every view, and the comparison of ranks, answer for captures: equal before and after a change that should move no figure.

    python -m tests.view_digests CAPTURE... > before.tsv

Each capture (a file or a folder) gets a store of its own, and a line per view: the capture, how its answers were made, the view,
its rows and a digest of them (of scope rows: in no order, as some views have none). `kept`: answers that an ingest of a large
capture computes, partly in linear passes (store/swept.py); `asked`: in SQL and Python.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import nsightlens as nl
from nsightlens.errors import NsightlensError
from nsightlens.store import answers
from nsightlens.store.store import Store
from tests.cli.command_line import run


def digests(store: Store) -> Iterator[tuple[str, int, str]]:
    """Yield each view, the number of its rows and their digest; of a view that refuses, the name of its error."""
    for name, view in store.views.items():
        try:
            table = store.view(name)
        except NsightlensError as exc:
            yield name, 0, type(exc).__name__
        else:
            rows = list(map(repr, table.to_pylist()))
            ordered = sorted(rows) if view.scope == "rows" else rows
            yield name, table.num_rows, _digest("\n".join([*table.column_names, *ordered]))
    page = run("compare", "ranks", "--store", store.path)
    yield "compare ranks", len(page.stdout.splitlines()), _digest(page.stdout.replace(str(store.path), "STORE"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def main() -> None:
    """Print the digests of the captures that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+", type=Path, metavar="CAPTURE")
    parser.add_argument("--how", action="append", choices=("asked", "kept"), help="one of them only")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for capture in options.captures:
        for how in options.how or ("asked", "kept"):
            for view, rows, digest in _of_capture(capture, how):
                print(capture.name, how, view, rows, digest, sep="\t", flush=True)


def _of_capture(capture: Path, how: str) -> list[tuple[str, int, str]]:
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        try:
            with pytest.MonkeyPatch.context() as patch:
                if how == "kept":
                    patch.setattr(answers, "WORTH_IT", 0)  # none is too small for the passes of a large one
                nl.ingest(capture, store=store, answers=how == "kept", jobs=1).close()
            with nl.open(store) as made:
                return list(digests(made))
        except NsightlensError as exc:
            return [("ingest", 0, type(exc).__name__)]


if __name__ == "__main__":
    main()
