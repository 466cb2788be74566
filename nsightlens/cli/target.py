"""The type of an option that names a file to write: not one of a store, and no capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class Target(click.Path):
    """A file that the command may make, replace, or, where it is a log, append to."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raises UsageError for a file that is there and was not written by a command like this."""
        path = super().convert(value, param, ctx)
        if isinstance(path, Path):
            from nsightlens.store.outputs import confirm

            confirm(path, param.opts[-1] if param else "--output")
        return path
