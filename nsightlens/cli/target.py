"""The type of an option that names a file to write: not one of a store, and no capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nsightlens.errors import UsageError

_OUTPUTS = (".csv", ".html", ".json", ".gz", ".log", ".pdf", ".png", ".svg", ".txt")
"""Endings that no file of a store has."""
_DATABASES = {"SQLite": (0, b"SQLite format 3\0"), "DuckDB": (8, b"DUCK")}
"""Where a database has the bytes that say what it is; no command writes one."""


class Target(click.Path):
    """A file that the command may make, replace, or, where it is a log, append to."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises UsageError for a file that is there and was not written by a command like this."""
        path = super().convert(value, param, ctx)
        if isinstance(path, Path) and path.is_file():
            real = path.resolve()
            why = _of_store(real) or _of_links(real) or _of_database(real) or _of_capture(real)
            if why:
                option = param.opts[-1] if param else "--output"
                raise UsageError(f"{path}: {why}; give {option} another", subject=option, value=str(path))
        return path


def _of_store(path: Path) -> str | None:
    from nsightlens.store.remote import CATALOG

    store = next((folder for folder in path.parents if (folder / CATALOG).exists()), None)
    return f"a file of the store {store}, which a command would spoil" if store and path.suffix.lower() not in _OUTPUTS else None


def _of_links(path: Path) -> str | None:
    names = path.stat().st_nlink
    return f"a file that has {names} names (hard links), and would change under each" if names > 1 else None


def _of_database(path: Path) -> str | None:
    with path.open("rb") as file:
        head = file.read(32)
    kind = next((kind for kind, (start, magic) in _DATABASES.items() if head.startswith(magic, start)), None)
    return f"a {kind} database, which a command would replace" if kind else None


def _of_capture(path: Path) -> str | None:
    from nsightlens.discovery.files import look_at

    file = look_at(path, path.parent, "")
    is_table = file.tool == "nsys" and path.suffix.lower() in (".csv", ".json", ".txt")  # the same as a view under the same name
    if file.kind == "sidecar":
        return "the sidecar of a capture, which a command would replace"
    return f"a capture ({file.kind}), which a command would replace" if file.report or (file.tool and not is_table) else None
