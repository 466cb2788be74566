"""A user's own views: the .sql files and Python analyses of a folder, with the same headers as ours.

Files that begin with `_` are private: an .sql file is a view that others may require, a Python file is no analysis.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from nsightlens.errors import UsageError, ViewError
from nsightlens.views import registry
from nsightlens.views.header import View, parse, parse_analysis

if TYPE_CHECKING:
    import duckdb

VARIABLE = "NSIGHTLENS_VIEWS"


def locate(folder: str | Path | None) -> Path | None:
    """Return the folder of the user's own views: as given, else the environment's NSIGHTLENS_VIEWS; None where there is none."""
    named = folder or os.environ.get(VARIABLE)
    return Path(named) if named else None


def load(folder: Path | None) -> dict[str, View]:
    """Return the views of a folder by name, private ones included, each after those that it requires; nothing is run.

    Raises UsageError where there is no such folder, ViewError (FILE:LINE) for a file that is no view, or has the name of another.
    """
    if folder is None:
        return {}
    if not folder.is_dir():
        raise UsageError(f"{folder}: no such folder of views", subject="views", value=str(folder))
    files = [*sorted(folder.glob("*.sql")), *sorted(folder.glob("[!_]*.py"))]
    taken = {**registry.load(), **registry.known()}
    found: dict[str, View] = {}
    for file in files:
        view = _read(file)
        if view is None:
            continue
        if view.name in taken or view.name in registry.TABLES:
            raise ViewError(file, view.line, f"nsightlens has a view or table {view.name}: choose another name")
        if view.name in found:
            raise ViewError(file, view.line, f"{found[view.name].file} is called {view.name}, too")
        found[view.name] = view
    return registry.ordered(found, taken)


def _read(file: Path) -> View | None:
    try:
        source = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise ViewError(file, 1, f"it cannot be read ({exc})") from exc
    view = parse_analysis(source, file) if file.suffix == ".py" else registry.named_like_its_file(parse(source, file))
    if view is not None and not view.doc:
        raise ViewError(file, 1, "no documentation: the header begins with what a row is")
    return view


def create(connection: duckdb.DuckDBPyConnection, views: Mapping[str, View]) -> None:
    """Create the views of a folder in the connection's temporary schema. Raises ViewError for what DuckDB refuses."""
    for view in views.values():
        if view.sql:
            _create(connection, view)


def _create(connection: duckdb.DuckDBPyConnection, view: View) -> None:
    registry.execute(connection, view, view.sql.replace("CREATE ", "CREATE TEMP ", 1))
    described = connection.execute(f"DESCRIBE {registry.query(view, {})[0]}").fetchall()
    there, documented = [row[0] for row in described], [name for name, _ in view.columns]
    if there != documented:
        raise ViewError(view.file, view.line, f"its columns are {', '.join(there)}; "
                        f"its @column lines name {', '.join(documented) or 'none'}")
