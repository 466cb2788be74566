"""Runs an analysis from a user's folder of views; what goes wrong in it is reported with file and line."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pyarrow as pa

from nsightlens.errors import UsageError, ViewError
from nsightlens.views.header import View


def run(view: View, ask: Callable[..., pa.Table], arguments: Mapping[str, object]) -> pa.Table:
    """Return what the function `analyse` in the view's file returns.

    Raises ViewError for any error in it, and UsageError as the function itself raises it.
    """
    try:
        table = _load(view.file, view.name)(ask, **arguments)
    except Exception as exc:
        frames = traceback.extract_tb(exc.__traceback__)
        own = [frame for frame in frames if Path(frame.filename) == view.file.absolute()]
        if isinstance(exc, UsageError) and own and frames[-1] is own[-1]:
            raise
        line = own[-1].lineno if own else None
        raise ViewError(view.file, line or view.line, f"{type(exc).__name__}: {exc}") from exc
    if not isinstance(table, pa.Table):
        raise ViewError(view.file, view.line, f"analyse returns a pyarrow.Table, not {type(table).__name__}")
    documented = [name for name, _ in view.columns]
    if table.column_names != documented:
        raise ViewError(view.file, view.line, f"its columns are {', '.join(table.column_names)}; "
                        f"its @column lines name {', '.join(documented) or 'none'}")
    return table


def _load(file: Path, name: str) -> Callable[..., object]:
    """Return the function `analyse` of a file. Raises whatever the file raises when it is run."""
    spec = spec_from_file_location(f"_own_{name}", file)
    assert spec is not None and spec.loader is not None, "a .py file has a loader"
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[..., object] = module.analyse
    return found
