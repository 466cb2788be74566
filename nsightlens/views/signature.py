"""The signature of each view: a digest of all that its rows follow from, beside the rows of the tables.

That is its text and, transitively, the texts of the views that it requires or may ask and of the modules of ours that it
imports, the peaks of `gpus.csv`, and DuckDB's major version. What a view answered under one signature holds for as long as that
stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from hashlib import blake2b
from pathlib import Path

import duckdb

from nsightlens.views.header import PACKAGE, View

_IMPORT = re.compile(r"^\s*(?:from (nsightlens[\w.]*) )?import (\([^)]*\)|.*)", re.MULTILINE)
"""An import statement, in a docstring too: a file too many does no harm."""
_CODE = frozenset({".py", ".sql", ".csv"})


def signatures(views: Mapping[str, View]) -> dict[str, str]:
    """Return the signature of each view by name. views: with all that they require, private ones included."""
    found: dict[str, str] = {}

    def sign(view: View) -> str:
        if view.name not in found:
            required = [sign(views[name]) for name in sorted(set(view.requires)) if name in views]
            imported = [] if view.sql else sorted(_digest_of(file) for file in imports(view))
            found[view.name] = digest([_foundation(), view.source, *required, *imported])
        return found[view.name]

    return {name: sign(view) for name, view in views.items()}


def digest(texts: Iterable[str]) -> str:
    """Return a digest of texts in their order."""
    total = blake2b(digest_size=16)
    for text in texts:
        encoded = text.encode()
        total.update(len(encoded).to_bytes(8, "little") + encoded)
    return total.hexdigest()


def imports(view: View) -> set[Path]:
    """Return the files of ours that an analysis imports, directly or not, wherever in it; found without running anything."""
    found: set[Path] = set()
    waiting = set(_imported(view.source))
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting |= _imported_by(file)
    return found


@lru_cache(maxsize=1)
def code_digest() -> str:
    """Return a digest of all modules, views and datasheets, and DuckDB's version: where it is the same, all rows are."""
    files = sorted(file for file in PACKAGE.rglob("*") if file.suffix in _CODE)
    return digest([duckdb.__version__, *(text for file in files for text in _named(file))])


@lru_cache(maxsize=1)
def _foundation() -> str:
    """Return what every signature holds: the peaks of GPUs, and DuckDB's major version."""
    return digest([(PACKAGE / "gpus.csv").read_text(encoding="utf-8"), duckdb.__version__.partition(".")[0]])


@cache
def _digest_of(file: Path) -> str:
    return digest(_named(file))


def _named(file: Path) -> list[str]:
    """Return the path of a file of ours, and its text."""
    return [file.relative_to(PACKAGE).as_posix(), file.read_text(encoding="utf-8")]


@cache
def _imported_by(file: Path) -> frozenset[Path]:
    return _imported(file.read_text(encoding="utf-8"))


def _imported(source: str) -> frozenset[Path]:
    """Return the files of ours that the import statements of a module name, wherever they stand."""
    names = {f"{module}.{name}".lstrip(".")
             for module, listed in _IMPORT.findall(source) for name in re.findall(r"[\w.]+", listed)}
    return frozenset(file for name in names if name.startswith("nsightlens.") for file in _files(name.split(".")[1:]))


def _files(parts: list[str]) -> set[Path]:
    """Return the files that are run to import the dotted name: its packages below ours, and the module that defines it."""
    found, folder = set(), PACKAGE
    for part in parts:
        if (folder / f"{part}.py").is_file():
            found.add(folder / f"{part}.py")
            break
        folder /= part
        if not folder.is_dir():
            break
        found.add(folder / "__init__.py")
    return found
