"""The type of an option that names a file to write: not one of a store, and no capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from nsightlens.errors import UsageError

_OUTPUTS = (".csv", ".html", ".json", ".gz", ".log", ".pdf", ".png", ".svg", ".txt")
"""Endings that no file of a store has."""


class Target(click.Path):
    """A file that the command may make, replace, or, where it is a log, append to."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises UsageError for a file that is there and was not written by a command like this."""
        path = super().convert(value, param, ctx)
        if isinstance(path, Path) and path.is_file():
            option = param.opts[-1] if param else "--output"
            _refuse_store(path, option)
            _refuse_capture(path, option)
        return path


def _refuse_store(path: Path, option: str) -> None:
    from nsightlens.store.remote import CATALOG

    for folder in path.resolve().parents:
        if (folder / CATALOG).exists() and path.suffix.lower() not in _OUTPUTS:
            raise UsageError(f"{path}: a file of the store {folder}, which a command would spoil; give {option} another",
                             subject=option, value=str(path))


def _refuse_capture(path: Path, option: str) -> None:
    from nsightlens.discovery.files import look_at

    file = look_at(path, path.parent, "")
    is_table = file.tool == "nsys" and path.suffix.lower() in (".csv", ".json", ".txt")  # the same as a view under the same name
    if file.report or (file.tool and not is_table):
        raise UsageError(f"{path}: a capture ({file.kind}), which a command would replace; give {option} another",
                         subject=option, value=str(path))
