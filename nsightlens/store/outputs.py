"""Where a result may be written: not to a file of a store, and not to a capture."""

from __future__ import annotations

from pathlib import Path

from nsightlens.discovery.files import look_at
from nsightlens.errors import UsageError
from nsightlens.store.remote import CATALOG

_OUTPUTS = (".csv", ".html", ".json", ".gz", ".log", ".pdf", ".png", ".svg", ".txt")
"""Endings that no file of a store has."""
_FOLDERS = ("converted", "parts", "staging")
_DATABASES = {"SQLite": (0, b"SQLite format 3\0"), "DuckDB": (8, b"DUCK")}
"""Where a database has the bytes that say what it is; nobody writes one here."""


def confirm(path: Path, option: str = "path") -> None:
    """Raise UsageError for a file that is there and was not written as a result, and for one among the parts of a store.

    option: what names another file.
    """
    real = path.resolve()
    why = _among_parts(real)
    if real.is_file():
        why = why or _of_store(real) or _of_links(real) or _of_database(real) or _of_capture(real)
    if why:
        raise UsageError(f"{path}: {why}; give {option} another", subject=option, value=str(path))


def _among_parts(path: Path) -> str | None:
    """Return why nothing is written there: what lies among the parts is read as one of them by other engines."""
    store = next((folder for folder in path.parents if (folder / CATALOG).exists()), None)
    is_inside = store is not None and path.relative_to(store).parts[0] in _FOLDERS
    return f"in a folder of the store {store}, where only its own files are" if is_inside else None


def _of_store(path: Path) -> str | None:
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
    file = look_at(path, path.parent, "")
    is_table = file.tool == "nsys" and path.suffix.lower() in (".csv", ".json", ".txt")  # the same as a view under the same name
    if file.kind == "sidecar":
        return "the sidecar of a capture, which a command would replace"
    return f"a capture ({file.kind}), which a command would replace" if file.report or (file.tool and not is_table) else None
